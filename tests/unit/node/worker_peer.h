/*
 * A task loop with an inline executor, and coordinators' sessions joined to it. There is one at a
 * time, with the state `loop`. A step that fails fails the test.
 */
#ifndef TESTS_UNIT_NODE_WORKER_PEER_H
#define TESTS_UNIT_NODE_WORKER_PEER_H

#include "node/worker.h"
#include "tests/support/joined.h"
#include "tests/support/remote.h"

#define MB ((uint64_t)1 << 20)
#define HEARD_MAX 512
#define SLOW 1e-3              /* GF/s: every task goes to the executor */
enum { LONG = 7, EIGHTH = 8 }; /* jobs whose tasks take 100 s and 1/8 s, far from the estimates */

/* A coordinator's session joined to a client of the worker. */
typedef struct peer {
    joined j;
    uint32_t results[HEARD_MAX], results_len; /* task numbers in order of arrival */
    sherd__refusal refusals[HEARD_MAX];
    uint32_t refusals_len;
    double last[4]; /* first values of the latest result */
} peer;

typedef struct worker_loop {
    sherd__executor *executor;
    sherd__worker *worker;
    uint32_t ran[HEARD_MAX], ran_len; /* tasks of the fake backend, in order */
    int fake_err;                     /* its result */
    double now_s;                     /* its clock */
    void *remote;                     /* devices that get turns; or NULL */
} worker_loop;
extern worker_loop loop;
extern const sherd__backend worker_fake;
double worker_clock(void);

/** As worker_start, with a clock and a wake. worker_start has neither: times of tasks are
 *  estimated, and a turn never ends. */
void worker_start_by(double (*clock)(void), void (*wake)(void *ctx), const sherd__backend *b,
                     void *ctx, double gflops, uint64_t memory);
void worker_start(const sherd__backend *b, void *ctx, double gflops, uint64_t memory);
/** Starts over devices of tests/support/remote.h, which stay open (loop.remote). */
void worker_start_remote(const remote_options *devices, uint64_t memory);
/** Checks that everything has run and nothing is left. */
void worker_stop(void);

void peer_join(peer *p);
/** Joins as the holder of a key with this first byte, with its part of the budget. */
void peer_join_as(peer *p, uint8_t key, uint64_t memory);
void peer_cut(peer *p);
/** Also delivers the compute thread's results. */
void peer_settle(peer *p);
/** Sends a block with equal entries. */
void peer_put(peer *p, uint64_t job, uint32_t block, uint64_t rows, uint64_t cols, double value);
/** Sends blocks 1 and 2 of a job. */
void peer_small_blocks(peer *p, uint64_t job);
/** Asks for the product of blocks 1 and 2, n x m; does not wait for the answer. */
sherd__task peer_task(uint64_t job, uint32_t number, uint64_t n, uint64_t m);
void peer_ask(peer *p, uint64_t job, uint32_t number, uint64_t n, uint64_t m);

#endif
