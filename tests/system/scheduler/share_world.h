/*
 * Nodes that compute under `share`, through the library and through the command. Losses are caused
 * at defined points: some nodes are stopped before the product starts, others end themselves at an
 * answer of a given number (prog_misbehave), so that a slow machine has the same cases. All results
 * are compared with the product of one machine, bit for bit.
 */
#ifndef TESTS_SYSTEM_SCHEDULER_SHARE_WORLD_H
#define TESTS_SYSTEM_SCHEDULER_SHARE_WORLD_H

#include "sherd/multiplier.h"
#include "sherd/product.h"
#include "tests/system/scheduler/command.h"

#define NODES 5u

extern sherd_cluster *share_cluster; /* NODES honest nodes */
extern char share_said[4096];        /* of the latest command */

/** Set-up and teardown of a group of tests. */
int share_begin(void **state);
int share_end(void **state);

sherd_product_options share_options(sherd_scheme scheme, uint32_t spare);

double *share_matrix(size_t rows, size_t cols);
sherd_view share_view(const double *v, size_t rows, size_t cols);
/** Returns the product of one machine; the caller frees it. */
double *share_reference(sherd_view a, sherd_view b);
void share_must_equal(const double *c, const double *want, size_t len, const char *what);
/** Multiplies A*B over the nodes and checks the bits. */
void share_multiply(sherd_cluster *c, const sherd_product_options *o, sherd_view a, sherd_view b,
                    sherd_report *r);

/** Returns the path of a file in the tests' folder. */
void share_path(char out[200], const char *name);
/** Starts `sherd multiply A B -o C --scheme share MORE...`; misbehave: NULL or the mode of a
 *  node. */
void share_start(command *c, const char *misbehave, const char *a, const char *b,
                 const char *const *more);
/** Returns its JSON after it has ended with `expected`. */
json_t *share_finish(command *c, int expected);
json_int_t share_count(json_t *root, const char *field);

#endif
