/* Four local nodes and operands of any kind, for tests of products through the public interface. */
#ifndef TESTS_SYSTEM_SCHEDULER_PRODUCT_WORLD_H
#define TESTS_SYSTEM_SCHEDULER_PRODUCT_WORLD_H

#include "sherd/product.h"

#define NODES 4u

extern sherd_cluster *cluster; /* shared by all cases */
extern bool cluster_stop;      /* interrupts calls that wait for a product */

/** Set-up and teardown of a group of tests; restarts all random series. */
int cluster_begin(void **state);
int cluster_end(void **state);
size_t cluster_below(size_t n);
/** Opens a separate cluster, which cluster_stop interrupts; misbehave: NULL, or the mode of its
 *  nodes. */
sherd_cluster *cluster_of(uint32_t nodes, const char *misbehave);
uint64_t bytes_of_all(const uint64_t *per_node);

typedef struct operand {
    uint8_t *memory;
    sherd_view v;
} operand;

/** Makes an operand of random values, a third of them zero, in C order, Fortran order, or with
 *  gaps. */
operand operand_new(size_t rows, size_t cols, sherd_dtype t);
operand operand_any(size_t rows, size_t cols);
/** Stores one value as type t. */
void operand_put(uint8_t *at, sherd_dtype t, double x);
/** Compares a product with the reference. Exact: the same bits. Float: |C - AB| <= gamma |A||B|,
 *  and the same class if not finite. */
void operand_must_equal(const sherd_product_options *o, sherd_view a, sherd_view b, const double *c,
                        size_t ldc);
/** Multiplies and compares. */
void operand_multiply(sherd_cluster *on, const sherd_product_options *o, sherd_view a, sherd_view b,
                      sherd_report *r);

#endif
