/*
 * Threads that multiply while this one measures. Two that share a processor's insides (units,
 * caches, heat) are each slower than one by itself, by a third or by half: what a product over
 * nodes on this machine will find is found only while every processor works as it will then.
 */
#ifndef SCHEDULER_PLAN_CONTENTION_H
#define SCHEDULER_PLAN_CONTENTION_H

#include <stdbool.h>
#include <stddef.h>

#include "sherd/err.h"

/** A task's product; large ones are measured on a part. */
typedef struct sherd__contention_work {
    size_t rows, inner, cols;
    bool residues; /* packed, as they travel: only where sherd__limbs_here */
} sherd__contention_work;

typedef struct sherd__contention sherd__contention;

/** About as many bytes has each thread, the caller's included. */
#define SHERD__CONTENTION_MEMBER ((size_t)32 << 20)

/** Starts `others` threads, or fewer where the system has no more, that multiply until the end, and
 *  multiplies beside them for some hundredths of a second. The caller's (sherd__contention_end);
 *  NULL without memory. More than one at a time of doubles only where sherd__blas_by_many. */
sherd__contention *sherd__contention_begin(unsigned others,
                                           const sherd__contention_work *w) SHERD_MUST;
/** Ends the threads. Billions of operations (a multiply-add counts two) a second of processor time
 *  that one thread did in the mean; 0: none could be measured. NULL is allowed, and gives 0. */
double sherd__contention_end(sherd__contention *c);

#endif
