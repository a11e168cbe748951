/*
 * Coalitions: subsets of one size among n domains. All subsets or, if there are more than `most`,
 * that many different ones drawn from a seed.
 */
#ifndef AUDIT_MEMBERS_H
#define AUDIT_MEMBERS_H

#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__members {
    uint32_t size, len; /* len subsets */
    uint64_t of;        /* number of possible subsets; UINT64_MAX: overflow */
    uint32_t *list;     /* len x size, each ascending, below n */
} sherd__members;

/** 1 <= size <= n, else len = 0. SHERD_ENOMEM. */
int sherd__members_choose(sherd__members *out, uint32_t n, uint32_t size, uint32_t most,
                          uint64_t seed) SHERD_MUST;
void sherd__members_fini(sherd__members *m);

#endif
