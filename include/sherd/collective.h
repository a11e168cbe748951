/*
 * Processes that run the same training as peers (sherd_train_options.among). Each process runs the
 * same loop, computes its own parts of every gradient, and takes part in a sum over all processes,
 * such as MPI_Allreduce. The order of addition does not change a sum of integers, so every process
 * has the same parameters, bit for bit, and they are those of a training in one process.
 *
 * A call fails in all processes with the same error, or in one alone. The others then wait for that
 * one in `sum`, until the implementation ends them, as MPI_Abort does.
 *
 * Who learns it: every process sees the sums of all gradients and has all data. The implementation
 * of `sum` decides who can read what the processes send each other.
 */
#ifndef SHERD_COLLECTIVE_H
#define SHERD_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** Zero-initialise, then set size and all other members. */
typedef struct sherd_collective {
    size_t size;          /* sizeof(sherd_collective) */
    const char *name;     /* what transfers the sums, in words; borrowed */
    uint32_t rank, count; /* rank of this process, from 0; number of processes */
    uint32_t here;        /* number of processes on this host, including this one; 0: 1 */
    /** Replaces values[i] by the sum of all processes' values[i], modulo 2^64. All processes call
     *  it in the same order with the same n. An error ends the training, since it cannot be
     *  reported to the other processes. */
    int (*sum)(void *ctx, int64_t *values, size_t n, sherd_diag *d);
    void *ctx;
    /** NULL, or set by sherd_training_new to whether its error is that of all processes, with the
     *  same message, so that one of them may report it. */
    bool *common;
} sherd_collective;

#endif
