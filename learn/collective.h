/*
 * Training by gradients in processes that are equals: each runs the same loop, grades its own parts
 * of every step, and all add up what they have by a sum over all of them (MPI_Allreduce, where that
 * is what is behind it). Integers add up to the same sum in any order, so every process has the
 * same parameters, bit for bit, and they are those of a parameter server.
 *
 * Who learns it: every process sees all gradients' sums and has all data; what travels between them
 * is the business of whoever implements `sum`.
 */
#ifndef LEARN_COLLECTIVE_H
#define LEARN_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "learn/gradients.h"

typedef struct sherd__collective {
    const char *name;
    uint32_t rank, size;
    uint32_t here; /* processes on this one's host, itself included */
    /** values[i] becomes the sum of all processes' values[i], modulo 2^64. Called by all of
     *  them, in the same order, with the same n. A failure is the end: the others cannot be
     *  told. */
    int (*sum)(void *ctx, int64_t *values, size_t n, sherd_diag *d);
    void *ctx;
} sherd__collective;

/** Everybody's bytes become those of process 0. */
int sherd__collective_share(const sherd__collective *c, void *bytes, size_t len,
                            sherd_diag *d) SHERD_MUST;
/** The first failure among all: err of the process of lowest rank that has one, 0 where none has;
 *  *who (may be NULL) is that process. SHERD_E* of `sum` comes instead where that fails. */
int sherd__collective_agree(const sherd__collective *c, int err, uint32_t *who,
                            sherd_diag *d) SHERD_MUST;
/** The same; in all of them *d becomes what it is in that process. */
int sherd__collective_tell(const sherd__collective *c, int err, sherd_diag *d) SHERD_MUST;
/**
 * An engine for the synchronous stepper in fixed point, which every process has: of the parts of a
 * step each grades one, by `inner`. Takes inner on success and borrows *c. SHERD_ENOMEM.
 */
int sherd__gradients_among(sherd__gradient_engine *out, const sherd__collective *c,
                           sherd__gradient_engine inner, sherd_diag *d) SHERD_MUST;

#endif
