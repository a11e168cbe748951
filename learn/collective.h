/*
 * Training by gradients in equal processes. Each process runs the same loop, grades its own parts
 * of every step, and takes part in a sum over all processes (MPI_Allreduce, if MPI is the
 * implementation). The order of addition does not change a sum of integers, so every process has
 * the same parameters, bit for bit, and they are those of a parameter server.
 *
 * Who learns it: every process sees the sums of all gradients and has all data. The implementation
 * of `sum` decides who can read what the processes send each other.
 */
#ifndef LEARN_COLLECTIVE_H
#define LEARN_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "learn/gradients.h"

typedef struct sherd__collective {
    const char *name;
    uint32_t rank, size;
    uint32_t here; /* processes on this host, this one included */
    /** Replaces values[i] by the sum of all processes' values[i], modulo 2^64. All processes call
     *  it in the same order with the same n. A failure ends the training, since it cannot be
     *  reported to the other processes. */
    int (*sum)(void *ctx, int64_t *values, size_t n, sherd_diag *d);
    void *ctx;
} sherd__collective;

/** Copies `bytes` of process 0 to all processes. */
int sherd__collective_share(const sherd__collective *c, void *bytes, size_t len,
                            sherd_diag *d) SHERD_MUST;
/** Returns the first failure of all processes: err of the process of lowest rank that has one, or 0
 *  if no process has one. *who (may be NULL) is that process. If `sum` fails, its error is returned
 *  instead. */
int sherd__collective_agree(const sherd__collective *c, int err, uint32_t *who,
                            sherd_diag *d) SHERD_MUST;
/** As sherd__collective_agree, and copies *d of the failed process to all processes. */
int sherd__collective_tell(const sherd__collective *c, int err, sherd_diag *d) SHERD_MUST;
/**
 * Creates an engine for the synchronous stepper in fixed point; every process creates one. Each
 * process grades one part of every step with `inner`. The engine takes ownership of inner on
 * success and borrows *c. SHERD_ENOMEM.
 */
int sherd__gradients_among(sherd__gradient_engine *out, const sherd__collective *c,
                           sherd__gradient_engine inner, sherd_diag *d) SHERD_MUST;

#endif
