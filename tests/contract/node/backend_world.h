/*
 * The data of the suite for backends: blocks of small integers (so that f64 sums are exact and bits
 * must agree) and of residues, tasks for them, the product by definition, outputs filled with noise
 * and followed by a guard; and the suite, which runs once for each backend.
 */
#ifndef TESTS_CONTRACT_NODE_BACKEND_WORLD_H
#define TESTS_CONTRACT_NODE_BACKEND_WORLD_H

#include "core/rand.h"
#include "node/backend.h"
#include "sherd/mat.h"

/* The backend of a case, and numbers drawn from the group's seed. */
extern const sherd__backend *backend_now;
extern void *backend_ctx;
/* The backend of the CPU, and the executor of calls. */
extern void *backend_cpu;
extern sherd__executor *backend_executor;
extern sherd__entropy backend_rnd;

/** Set-up and teardown of a group of tests, and the set-up of a case, whose state is the number of
 *  the backend. */
int backend_open_all(void **s);
int backend_close_all(void **s);
int backend_choose(void **state);
#define NAMED(test, name, i)                                                                       \
    {                                                                                              \
        name, test, backend_choose, NULL, (void *)(uintptr_t)(i)                                   \
    }
#define EACH(test, i) NAMED(test, #test, i)
/** For all backends in the host's memory or with a test's device, which do everything: the CPU's,
 *  and tests/support/remote.h. */
#define HOSTED(test) NAMED(test, #test, 0), NAMED(test, #test "_remote", 1)
/** Those over stand-ins for drivers, of tests/system/node. */
#define STANDINS(test)                                                                             \
    NAMED(test, #test "_opencl_standin", 2), NAMED(test, #test "_cuda_standin", 3),                \
        NAMED(test, #test "_cublas_standin", 4)
/** For all backends: also over the system's OpenCL, except in a build with sanitizers, which that
 *  does not support. If SHERD_CONTRACT names a device, this takes its place, and no other case
 *  runs: "cuda" (its kernels alone), "cublas" (all products by the library) or "opencl", with the
 *  number of the device as in "cuda:1". Then SHERD_CUDA_LIBRARY, SHERD_OPENCL_LIBRARY and
 *  SHERD_CUDA_PATH apply as to nodes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALL(test) HOSTED(test), STANDINS(test)
#else
#define ALL(test) HOSTED(test), STANDINS(test), NAMED(test, #test "_device", 5)
#endif
/** A call of the backend, its result, and the number of calls of done. */
typedef struct calling {
    sherd__call call; /* must be first */
    unsigned dones;
} calling;

/** Memory for forms of blocks, as calls of backend_begin have it. */
typedef struct lending {
    uint64_t gets, gives, bytes;
    bool none; /* there is none */
} lending;
extern lending backend_lent;

/** Holds a block on device 0. */
sherd__handle backend_hold(const sherd__fragment *f, uint64_t owner);
/** Submits a call; returns the result of submit. */
int backend_begin(calling *c, const sherd__task *t, sherd__handle left, sherd__handle right,
                  uint64_t owner, uint8_t *out);
/** Waits until no call is in progress. */
void backend_settle(void);
/** The message of the last task that backend_run ran. */
extern char backend_why[SHERD__TEXT_MAX];
/** Runs a task from its blocks to its result, several times with the same handles; backend_why has
 *  a message if it fails, and is empty otherwise. */
int backend_run(const sherd__task *t, const sherd__fragment *a, const sherd__fragment *b,
                uint8_t *out);

/* The description of a block: values as doubles, shapes of groups. */
typedef struct plan {
    uint32_t groups; /* 0: no table */
    uint32_t rows[64], cols[64];
    uint8_t dtype;
} plan;

typedef struct block {
    plan p;
    double *values; /* the values of all groups in order */
    size_t len;
    sherd__fragment *f;
} block;

/** Describes a dense block; without a table if groups is 0. */
plan plan_dense(uint32_t groups, uint32_t rows, uint32_t cols, uint8_t dtype);
/** Describes groups of any shape, a quarter of them without rows; `right` has m columns. */
void plan_groups(plan *left, plan *right, uint32_t groups, uint32_t inner_max, uint32_t m);
/** Makes a block of small integers, with any sign that the type supports. */
block block_new(const plan *p);
void block_free(block *b);
/** Makes a separate block of these values. */
sherd__fragment *block_encode(const plan *p, const double *values);
/** Returns the grouped product by definition, n x m; the caller frees it. */
double *block_product(const block *a, const block *b, size_t n, size_t m);
sherd__task task_product(const sherd__fragment *a, const sherd__fragment *b, uint8_t dtype);

#define GUARD 64
/** Returns an output filled with NaN and followed by a guard; the caller frees it. */
uint8_t *out_new(size_t len);
void out_guarded(const uint8_t *out, size_t len);

extern const uint32_t backend_primes[SHERD__RESIDUES_PRIMES_MAX];
/** Draws residues modulo the first r primes, one matrix after the other. worst: those farthest from
 *  0. */
uint32_t *residues_draw(uint32_t rows, uint32_t cols, uint32_t r, bool worst);
/** Makes a block of residues; groups: 0 or 1. */
sherd__fragment *residues_new(uint32_t groups, uint32_t rows, uint32_t cols, uint32_t r,
                              const uint32_t *values);
sherd__task task_modular(uint32_t n, uint32_t m, uint32_t r);
/** Reads a residue of a result, three bytes. */
uint32_t residue_at(const uint8_t *p);

#endif
