/* The fake backend computes nothing: it records the order of calls and advances its own clock. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/unit/node/worker_peer.h"

#include "node/backends/hosted.h"
#include "node/check.h"
#include "sherd/mat.h"

worker_loop loop;

double worker_clock(void)
{
    return loop.now_s;
}

static int fake_compute(void *ctx, const sherd__call *c, const sherd__fragment *left,
                        const sherd__fragment *right, sherd_diag *d)
{
    const sherd__task *t = c->task;
    (void)ctx, (void)right, (void)d;
    memset(c->out, 0, t->result.len);
    loop.now_s += t->job == LONG     ? 100
                  : t->job == EIGHTH ? 0.125
                                     : 2e-9 * sherd__task_flops(t, left);
    if (loop.ran_len < HEARD_MAX) loop.ran[loop.ran_len++] = t->task;
    return loop.fake_err;
}

static int fake_submit(void *ctx, sherd__call *c, sherd_diag *d)
{
    return sherd__hosted_submit(ctx, fake_compute, c, d);
}

const sherd__backend worker_fake = { .abi = SHERD__BACKEND_ABI,
                                     .name = "fake",
                                     .hold = sherd__hosted_hold,
                                     .drop = sherd__hosted_drop,
                                     .submit = fake_submit,
                                     .cancel = sherd__hosted_cancel,
                                     .multiplier = sherd__hosted_multiplier,
                                     .compute = fake_compute };

void worker_start_by(double (*clock)(void), void (*wake)(void *ctx), const sherd__backend *b,
                     void *ctx, double gflops, uint64_t memory)
{
    sherd__worker_options o = {
        .backend = b, .backend_ctx = ctx, .memory = memory, .clock = clock, .wake = wake
    };
    const sherd__device device = { .does = SHERD__DOES_ALL, .depth = 2, .gflops = gflops };
    o.devices = &device;
    o.devices_len = 1;
    assert_int_equal(sherd__executor_new_inline(&loop.executor), SHERD_OK);
    o.executor = loop.executor;
    assert_int_equal(sherd__worker_new(&loop.worker, &o), SHERD_OK);
    loop.ran_len = 0;
    loop.fake_err = 0;
    loop.now_s = 0;
}

void worker_start(const sherd__backend *b, void *ctx, double gflops, uint64_t memory)
{
    worker_start_by(NULL, NULL, b, ctx, gflops, memory);
}

void worker_start_remote(const remote_options *devices, uint64_t memory)
{
    assert_int_equal(remote_open(&loop.remote, devices), SHERD_OK);
    sherd__worker_options o = { .backend = &remote_backend,
                                .backend_ctx = loop.remote,
                                .memory = memory };
    assert_int_equal(sherd__executor_new_inline(&loop.executor), SHERD_OK);
    o.executor = loop.executor;
    assert_int_equal(sherd__worker_new(&loop.worker, &o), SHERD_OK);
}

/* Runs everything that was sent and submitted. */
static void compute_all(void)
{
    while (sherd__executor_drain(loop.executor)) {}
    while (loop.remote && sherd__executor_pending(loop.executor)) {
        (void)remote_turn(loop.remote);
        (void)sherd__executor_drain(loop.executor);
    }
}

void worker_stop(void)
{
    compute_all();
    sherd__worker_poll(loop.worker);
    loop.remote = NULL;
    assert_int_equal(sherd__worker_memory(loop.worker)->used, 0);
    assert_int_equal(sherd__worker_stats_of(loop.worker)->queued, 0);
    assert_int_equal(sherd__worker_stats_of(loop.worker)->clients_now, 0);
    sherd__executor_free(loop.executor);
    sherd__worker_free(loop.worker);
}

static void hear(void *ctx, sherd__event *e)
{
    peer *p = ctx;
    if (e->kind == SHERD__EV_RESULT) {
        const sherd__fragment_info *i = sherd__fragment_info_of(e->fragment);
        p->results[p->results_len++ % HEARD_MAX] = e->task.task;
        memcpy(p->last, sherd__fragment_bytes(e->fragment), i->len < 32 ? i->len : 32);
    } else if (e->kind == SHERD__EV_REFUSED) {
        p->refusals[p->refusals_len++ % HEARD_MAX] = e->refusal;
    }
}

void peer_settle(peer *p)
{
    joined_settle(&p->j, loop.executor);
    if (!loop.remote) return;
    compute_all();
    joined_exchange(&p->j);
}

void peer_join(peer *p)
{
    memset(p, 0, sizeof *p);
    joined_open(&p->j, loop.worker, hear, p);
}

void peer_join_as(peer *p, uint8_t key, uint64_t memory)
{
    sherd__fingerprint whole;
    memset(&whole, key, sizeof whole);
    memset(p, 0, sizeof *p);
    joined_open_as(&p->j, loop.worker, &whole, memory, hear, p);
}

void peer_cut(peer *p)
{
    joined_cut(&p->j);
}

void peer_put(peer *p, uint64_t job, uint32_t block, uint64_t rows, uint64_t cols, double value)
{
    double *v = malloc((rows * cols + 1) * sizeof *v);
    for (uint64_t k = 0; k < rows * cols; k++) v[k] = value;
    joined_put(&p->j, job, block, SHERD_F64, rows, cols, v);
    free(v);
}

sherd__task peer_task(uint64_t job, uint32_t number, uint64_t n, uint64_t m)
{
    return (sherd__task){ .job = job,
                          .task = number,
                          .attempt = 1,
                          .op = SHERD__OP_MULTIPLY,
                          .left = 1,
                          .right = 2,
                          .result = { .origin = SHERD__RESULT,
                                      .dtype = SHERD_F64,
                                      .rows = n,
                                      .cols = m,
                                      .len = 8 * n * m } };
}

void peer_ask(peer *p, uint64_t job, uint32_t number, uint64_t n, uint64_t m)
{
    sherd__task t = peer_task(job, number, n, m);
    assert_int_equal(sherd__session_task(p->j.co, &t), SHERD_OK);
}

void peer_small_blocks(peer *p, uint64_t job)
{
    peer_put(p, job, 1, 200, 2, 1);
    peer_put(p, job, 2, 2, 200, 1);
}
