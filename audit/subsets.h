/*
 * Coalitions: subsets of one size among n domains. All subsets or, if there are more than `most`,
 * that many different ones drawn from a seed.
 */
#ifndef AUDIT_SUBSETS_H
#define AUDIT_SUBSETS_H

#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__subsets {
    uint32_t size, len; /* len subsets */
    uint64_t of;        /* number of possible subsets; UINT64_MAX: overflow */
    uint32_t *list;     /* len x size, each ascending, below n */
} sherd__subsets;

/** 1 <= size <= n, else len = 0. SHERD_ENOMEM. */
int sherd__subsets_choose(sherd__subsets *out, uint32_t n, uint32_t size, uint32_t most,
                          uint64_t seed) SHERD_MUST;
void sherd__subsets_fini(sherd__subsets *m);

#endif
