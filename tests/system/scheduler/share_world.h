/*
 * Nodes that compute under `share`, through the library and through the command. Lost nodes are
 * made, not waited for: some are stopped before the product begins, others end themselves at an
 * answer of a given number (prog_misbehave), so that a slow machine meets the same cases. All
 * is held against the product of one machine, bit for bit.
 */
#ifndef TESTS_SYSTEM_SCHEDULER_SHARE_WORLD_H
#define TESTS_SYSTEM_SCHEDULER_SHARE_WORLD_H

#include "sherd/multiplier.h"
#include "sherd/product.h"
#include "tests/system/scheduler/command.h"

#define NODES 5u

extern sherd_cluster *share_cluster; /* NODES honest nodes */
extern char share_said[4096];        /* by the last command */

/** A group's set-up and teardown. */
int share_begin(void **state);
int share_end(void **state);

sherd_product_options share_options(sherd_scheme scheme, uint32_t spare);

double *share_matrix(size_t rows, size_t cols);
sherd_view share_view(const double *v, size_t rows, size_t cols);
/** The product of one machine; the caller's. */
double *share_reference(sherd_view a, sherd_view b);
void share_must_equal(const double *c, const double *want, size_t len, const char *what);
/** A*B over the nodes with the right bits. */
void share_multiply(sherd_cluster *c, const sherd_product_options *o, sherd_view a, sherd_view b,
                    sherd_report *r);

/** A file of the tests' folder. */
void share_path(char out[200], const char *name);
/** `sherd multiply A B -o C --scheme share MORE...`; misbehave: NULL or what a node does. */
void share_start(command *c, const char *misbehave, const char *a, const char *b,
                 const char *const *more);
/** Its JSON, when it has ended with `expected`. */
json_t *share_finish(command *c, int expected);
json_int_t share_count(json_t *root, const char *field);

#endif
