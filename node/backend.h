/*
 * What computes on a node. A backend is a constant struct of functions; the task loop knows nothing
 * else of it. One contract suite (tests/contract) runs every backend against the reference.
 */
#ifndef NODE_BACKEND_H
#define NODE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/fragment.h"
#include "crypto/fragment_make.h"
#include "sherd/err.h"
#include "wire/session.h"

#define SHERD__BACKEND_ABI 1

typedef struct sherd__backend_options {
    uint32_t threads; /* 0: as many as the backend finds sensible */
    bool quick;       /* test correctness only at small sizes, and guess the speed from them: for
                         many nodes that start on one machine at once */
} sherd__backend_options;

typedef struct sherd__backend_caps {
    char name[16];
    char core[32]; /* OpenBLAS core, GPU model */
    uint32_t threads;
    double gflops;         /* measured by open's self-test */
    double residue_gflops; /* likewise, from packed residues to packed residues, where they are not
                              taken apart and multiplied in f64; else 0 */
    uint64_t scratch;      /* most temporary memory of run, bytes, beside blocks and result */
} sherd__backend_caps;

typedef struct sherd__backend {
    uint32_t abi;
    const char *name;
    /** Opens and self-tests the device (a product of awkward shape against a plain int64 loop, in
     *  f64 and modulo a prime). SHERD_EDEVICE if it computes wrongly: the node must not start. */
    int (*open)(void **ctx, const sherd__backend_options *opt, sherd__backend_caps *caps,
                sherd_diag *d);
    /**
     * Runs one task: left (and right, or NULL) are checked fragments in memory; writes
     * task->result.len bytes to out, which the caller owns. Runs on the compute thread.
     * SHERD_ESHAPE / SHERD_EINVAL where task and blocks disagree: nothing was computed. The loop
     * has called sherd__task_check; sherd__task_check_groups is for run to call.
     */
    int (*run)(void *ctx, const sherd__task *task, const sherd_fragment *left,
               const sherd_fragment *right, uint8_t *out, sherd_diag *d);
    /**
     * Optional (NULL). A result that costs no more to compute than to copy (outer products) need
     * not be stored: gives a source of its bytes in *out, with the bytes of memory that it holds in
     * *memory; out->fill NULL where the task is better run. The source borrows left and right until
     * its free is called; fill runs on the thread that sends. Errors as in run.
     */
    int (*stream)(void *ctx, const sherd__task *task, const sherd_fragment *left,
                  const sherd_fragment *right, sherd__fragment_source *out, uint64_t *memory,
                  sherd_diag *d);
    void (*close)(void *ctx);
} sherd__backend;

extern const sherd__backend sherd__backend_cpu;

#endif
