/*
 * Where passes get the multipliers that compute their products: this machine's by default; on a
 * node, its devices.
 */
#ifndef LEARN_ARITHMETIC_H
#define LEARN_ARITHMETIC_H

#include "learn/network.h"
#include "sherd/multiplier.h"

typedef struct sherd__arithmetic {
    /** Makes a multiplier, with `bits` as in sherd_multiplier_local. In fixed point its products
     *  have the same bits as those of sherd_multiplier_local. *out is zeroed on failure. */
    int (*multiplier)(void *ctx, unsigned bits, sherd_multiplier *out, sherd_diag *d);
    /** Optional (NULL). Makes what computes whole passes; out->run is NULL where passes only ask
     *  for products. `bits` is as above. */
    int (*elsewhere)(void *ctx, unsigned bits, sherd__elsewhere *out, sherd_diag *d);
    void *ctx; /* not used after the calls */
} sherd__arithmetic;

/** Makes a multiplier by `a`, or by sherd_multiplier_local if `a` is NULL or zeroed. */
static inline int sherd__arithmetic_multiplier(const sherd__arithmetic *a, unsigned bits,
                                               sherd_multiplier *out, sherd_diag *d)
{
    return a && a->multiplier ? a->multiplier(a->ctx, bits, out, d)
                              : sherd_multiplier_local(out, bits, d);
}

#endif
