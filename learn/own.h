/*
 * Examples that stay with their owner: read before anybody has said what is to be trained on them,
 * fitted to a recipe when somebody does, and graded. Messages say what was expected and nothing of
 * the data, since they may travel.
 */
#ifndef LEARN_OWN_H
#define LEARN_OWN_H

#include <stddef.h>
#include <stdint.h>

#include "learn/dataset.h"
#include "learn/grader.h"

/** Examples of a pass: fixed, so that it decides no bit that a machine's memory would. */
#define SHERD__OWN_CHUNK 256u

/** As read; borrowed. */
typedef struct sherd__own {
    sherd_view x; /* examples x numbers */
    sherd_view y; /* their targets; rows 0: the last columns of x are */
} sherd__own;

/**
 * The examples as the recipe wants them (divided, targets as labels or values), for a network of so
 * many inputs and outputs; *out is the caller's (sherd__dataset_fini). SHERD_ESHAPE, SHERD_ERANGE
 * (a number that is not finite, a target that is no label), SHERD_ENOMEM.
 */
int sherd__own_fit(sherd__dataset *out, const sherd__own *own, const sherd__recipe *r,
                   size_t inputs, size_t width, sherd_diag *d) SHERD_MUST;
/** Most bytes that this takes. */
uint64_t sherd__own_memory(const sherd__own *own, size_t inputs, size_t width);

/**
 * What is summed (learn/secure.h) over `rows` examples from `first` on, those at the beginning
 * following the last ones; rows 0: all of them from 0 on. Parameters are in the grader. scales: by
 * tier, and of the cost. out: numbers of all tiers and SHERD__SECURE_EXTRA. SHERD_EBUSY: an entry
 * beyond 2^room; SHERD_ERANGE: diverged; SHERD_ENOMEM. out is undefined then.
 */
int sherd__own_grade(sherd__grader *g, const sherd__dataset *data, uint64_t first, uint64_t rows,
                     const int32_t *scales, unsigned room, int64_t *out, sherd_diag *d) SHERD_MUST;

#endif
