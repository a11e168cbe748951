/* Where the products of a network are computed: on this machine, or by nodes under a scheme. */
#ifndef LIB_NETWORK_PRODUCTS_H
#define LIB_NETWORK_PRODUCTS_H

#include <stdbool.h>

#include "learn/layer.h"
#include "scheduler/job/step_tables.h"
#include "sherd/cluster.h"
#include "sherd/product.h"

typedef struct sherd__network_products {
    sherd_product_options opt;  /* this version's, with defaults */
    unsigned bits;              /* width of the fixed point; 0: floats */
    bool nodes;                 /* nodes compute */
    bool maps;                  /* and sigmoid, tanh and ReLU too */
    bool stochastic;            /* operands are rounded stochastically (matrix/rounding.h) */
    uint8_t rounding[32];       /* its seed; set before sherd__network_products_open */
    sherd__step_tables *tables; /* operations of a training step from metadata, borrowed; NULL:
                                   exposures and permutations are drawn. Set before
                                   sherd__network_products_open */
    sherd__engine engine;       /* set when open */
} sherd__network_products;

/**
 * Zeroes p and takes options. nodes: nodes will compute; opt may be NULL. Messages name options as
 * the command spells them. SHERD_EINVAL: a scheme that a network cannot use (with the reason), bits
 * out of range, or options that exclude each other.
 */
int sherd__network_products_read(sherd__network_products *p, const sherd_product_options *opt,
                                 bool nodes, sherd_diag *d) SHERD_MUST;
/** Checks what depends on the members set since: SHERD_EINVAL for activations at nodes under a
 *  private scheme, for stochastic rounding of floats, and for a network of f32 that is computed
 *  other than in floats on this machine. */
int sherd__network_products_check(const sherd__network_products *p, sherd_dtype precision,
                                  sherd_diag *d) SHERD_MUST;
/** Makes the multiplier. c: the nodes, borrowed; NULL: the products are computed on this machine,
 *  also if `nodes` is set (nodes then have other work). seed: 32 bytes from which exposures and
 *  permutations derive, or NULL: fresh. Errors of sherd_multiplier_cluster and _local. */
int sherd__network_products_open(sherd__network_products *p, sherd_cluster *c, const uint8_t *seed,
                                 sherd_diag *d) SHERD_MUST;
/** For fixed point: makes *m round as p says, and give each operand the exponent that its largest
 *  number allows (matrix/scaling.h). On success *m owns the multiplier that it had; on failure that
 *  one is freed. SHERD_ENOMEM. */
int sherd__network_products_round(const sherd__network_products *p, sherd_multiplier *m,
                                  sherd_diag *d) SHERD_MUST;
/** Frees the multiplier. Safe on a zeroed struct and when called twice. */
void sherd__network_products_close(sherd__network_products *p);

/** The nodes of a cluster and their traffic so far; zeros for NULL. */
typedef struct sherd__network_traffic {
    uint32_t nodes, up;
    uint64_t bytes_out, bytes_in;
} sherd__network_traffic;
sherd__network_traffic sherd__network_traffic_of(sherd_cluster *c);
/** Returns one sentence, without full stop, that states which party sees which data. */
const char *sherd__network_products_sees(const sherd__network_products *p);

#endif
