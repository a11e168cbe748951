/*
 * What the suite of backends computes with: blocks of small integers (so that f64 sums are exact
 * and bits must agree) and of residues, tasks for them, the product by the book, outputs filled
 * with noise and guarded behind; and the suite, once per backend.
 */
#ifndef TESTS_CONTRACT_NODE_BACKEND_WORLD_H
#define TESTS_CONTRACT_NODE_BACKEND_WORLD_H

#include "core/rand.h"
#include "node/backend.h"
#include "sherd/mat.h"

/* The backend of a case, and draws from the group's seed. */
extern const sherd__backend *backend_now;
extern void *backend_ctx;
/* That of the CPU, and the executor of calls. */
extern void *backend_cpu;
extern sherd__executor *backend_executor;
extern sherd__entropy backend_rnd;

/** A group's set-up and teardown, and a case's set-up, whose state is the backend's number. */
int backend_open_all(void **s);
int backend_close_all(void **s);
int backend_choose(void **state);
#define NAMED(test, name, i)                                                                       \
    {                                                                                              \
        name, test, backend_choose, NULL, (void *)(uintptr_t)(i)                                   \
    }
#define EACH(test, i) NAMED(test, #test, i)
/** On all: the CPU's, and tests/support/remote.h. */
#define ALL(test) NAMED(test, #test, 0), NAMED(test, #test "_remote", 1)
/** A call of the backend; its answer and how often done came. */
typedef struct calling {
    sherd__call call; /* first */
    unsigned dones;
} calling;

/** On device 0. */
sherd__handle backend_hold(const sherd__fragment *f, uint64_t owner);
/** Submits a call; what submit returns. */
int backend_begin(calling *c, const sherd__task *t, sherd__handle left, sherd__handle right,
                  uint64_t owner, uint8_t *out);
/** Until no call is under way. */
void backend_settle(void);
/** The words of the last task that backend_run ran. */
extern char backend_why[SHERD__TEXT_MAX];
/** A task from its blocks to its result; words where it fails, and else none. */
int backend_run(const sherd__task *t, const sherd__fragment *a, const sherd__fragment *b,
                uint8_t *out);

/* A block as a test thinks of it: values as doubles, groups as shapes. */
typedef struct plan {
    uint32_t groups; /* 0: no table */
    uint32_t rows[64], cols[64];
    uint8_t dtype;
} plan;

typedef struct block {
    plan p;
    double *values; /* all groups' values in order */
    size_t len;
    sherd__fragment *f;
} block;

/** No table where groups is 0. */
plan plan_dense(uint32_t groups, uint32_t rows, uint32_t cols, uint8_t dtype);
/** Groups of any shape, a quarter of them without rows; `right` has m columns. */
void plan_groups(plan *left, plan *right, uint32_t groups, uint32_t inner_max, uint32_t m);
/** Small integers of any sign that the type has. */
block block_new(const plan *p);
void block_free(block *b);
/** These values as a block on its own. */
sherd__fragment *block_encode(const plan *p, const double *values);
/** The grouped product by the book, n x m; the caller's. */
double *block_product(const block *a, const block *b, size_t n, size_t m);
sherd__task task_product(const sherd__fragment *a, const sherd__fragment *b, uint8_t dtype);

#define GUARD 64
/** NaN all over, with a guard behind it; the caller's. */
uint8_t *out_new(size_t len);
void out_guarded(const uint8_t *out, size_t len);

extern const uint32_t backend_primes[SHERD__PRIMES_MAX];
/** Residues modulo the first r primes, one matrix after the other. worst: those farthest from 0. */
uint32_t *residues_draw(uint32_t rows, uint32_t cols, uint32_t r, bool worst);
/** They as a block; groups: 0 or 1. */
sherd__fragment *residues_new(uint32_t groups, uint32_t rows, uint32_t cols, uint32_t r,
                              const uint32_t *values);
sherd__task task_modular(uint32_t n, uint32_t m, uint32_t r);
/** As a result has them, three bytes each. */
uint32_t residue_at(const uint8_t *p);

#endif
