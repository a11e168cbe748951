/*
 * Threads that multiply while the calling thread measures. Two threads that share units, caches or
 * the heat limit of a processor each run slower than one alone, by a third to a half. A measurement
 * therefore predicts a product over nodes of this machine only if all processors are as busy as
 * they will be during that product.
 */
#ifndef SCHEDULER_PLAN_CONTENTION_H
#define SCHEDULER_PLAN_CONTENTION_H

#include <stdbool.h>
#include <stddef.h>

#include "sherd/err.h"

/** The arithmetic of a node's products. */
typedef enum sherd__node_arithmetic {
    SHERD__IN_F64,
    SHERD__IN_RESIDUES, /* packed, as transferred; only if sherd__limbs_here */
    SHERD__IN_BYTES     /* byte residues, laid out as transferred */
} sherd__node_arithmetic;

/** Shape of a task's product; for a large one a part of it is measured. */
typedef struct sherd__contention_work {
    size_t rows, inner, cols;
    sherd__node_arithmetic in;
} sherd__contention_work;

typedef struct sherd__contention sherd__contention;

/** Approximate bytes of memory that each thread uses, the calling thread included. */
#define SHERD__CONTENTION_MEMBER ((size_t)32 << 20)

/** Starts up to `others` threads, fewer if the system provides no more, that multiply until
 *  sherd__contention_end. Multiplies on the calling thread as well for some hundredths of a second
 *  before it returns. The caller frees the result with sherd__contention_end. Returns NULL if there
 *  is no memory. More than one thread at a time multiplies doubles only if sherd__blas_by_many. */
sherd__contention *sherd__contention_begin(unsigned others,
                                           const sherd__contention_work *w) SHERD_MUST;
/** Ends the threads and frees c, which may be NULL. Returns the mean rate of one thread in billions
 *  of operations per second of processor time (a multiply-add counts as two), or 0 if none was
 *  measured. */
double sherd__contention_end(sherd__contention *c);

#endif
