/*
 * A program for a device with kernels (node/backends/accelerator.h): steps over one memory of the
 * device, which begins with zeros and is overwritten at the end. Copies are from and to memory of
 * the host that the caller owns. A step sees what all steps before it have done.
 *
 * One call runs a whole program, so that numbers which only the device needs never leave it.
 */
#ifndef NODE_BACKENDS_PROGRAM_H
#define NODE_BACKENDS_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "node/backends/kernels/job.h"
#include "node/backends/kernels_text.h"
#include "sherd/err.h"

typedef struct sherd__program_step {
    enum {
        SHERD__STEP_LAUNCH,   /* kernel, job, groups */
        SHERD__STEP_MULTIPLY, /* job: all rows of a product in float64 */
        SHERD__STEP_WRITE,    /* from the host to job.out_at: len bytes */
        SHERD__STEP_READ,     /* from job.left_at to the host */
        SHERD__STEP_CALL      /* the program's call */
    } kind;
    sherd__kernel kernel;
    uint32_t groups;
    sherd__kernel_job job; /* positions are in the program's memory */
    void *host;
    uint64_t len;
    double flops; /* operations, for the time that it should take */
} sherd__program_step;

typedef struct sherd__program {
    const sherd__program_step *steps;
    size_t count;
    uint64_t memory; /* bytes */
    uint64_t zeroed; /* bytes at its beginning that are 0 at the beginning */
    /* Called on a thread of the backend by SHERD__STEP_CALL. A failure ends the program with that
     * error. */
    int (*call)(void *ctx, sherd_diag *d);
    void *ctx;
} sherd__program;

#endif
