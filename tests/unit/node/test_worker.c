/*
 * The task loop under real sessions in memory and an inline executor: what is submitted has run,
 * and is answered when the test drains.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "node/check.h"
#include "node/worker.h"
#include "sherd/mat.h"
#include "tests/support/joined.h"
#include "wire/says.h"

#define MB ((uint64_t)1 << 20)
#define HEARD_MAX 512

/* A coordinator's session joined to a client of the worker. */
typedef struct peer {
    joined j;
    uint32_t results[HEARD_MAX], results_len; /* task numbers, as they came */
    sherd__refusal refusals[HEARD_MAX];
    uint32_t refusals_len;
    double last[4]; /* first values of the latest result */
} peer;

static sherd_executor *executor;
static sherd__worker *worker;
static uint32_t ran[HEARD_MAX], ran_len;
static int fake_err;
static double now_s;

enum { LONG = 7, EIGHTH = 8 }; /* jobs whose tasks take 100 s and 1/8 s: far from estimated */

static double fake_clock(void)
{
    return now_s;
}

/* Computes nothing, remembers the order. */
static int fake_run(void *ctx, const sherd__task *t, const sherd_fragment *left,
                    const sherd_fragment *right, uint8_t *out, sherd_diag *d)
{
    (void)ctx, (void)right, (void)d;
    memset(out, 0, t->result.len);
    now_s += t->job == LONG ? 100 : t->job == EIGHTH ? 0.125 : 2e-9 * sherd__task_flops(t, left);
    if (ran_len < HEARD_MAX) ran[ran_len++] = t->task;
    return fake_err;
}

static const sherd__backend fake = { .abi = SHERD__BACKEND_ABI, .name = "fake", .run = fake_run };

static void start_by(double (*clock)(void), const sherd__backend *b, void *ctx, double gflops,
                     uint64_t memory)
{
    sherd__worker_options o = { .backend = b, .backend_ctx = ctx, .memory = memory,
                                .clock = clock };
    o.caps.gflops = gflops;
    assert_int_equal(sherd__executor_new_inline(&executor), SHERD_OK);
    o.executor = executor;
    assert_int_equal(sherd__worker_new(&worker, &o), SHERD_OK);
    ran_len = 0;
    fake_err = 0;
    now_s = 0;
}

static void start(const sherd__backend *b, void *ctx, double gflops, uint64_t memory)
{
    start_by(NULL, b, ctx, gflops, memory);
}

static void stop(void)
{
    while (sherd__executor_drain(executor)) {}
    assert_int_equal(sherd__worker_memory(worker)->used, 0);
    assert_int_equal(sherd__worker_stats_of(worker)->queued, 0);
    assert_int_equal(sherd__worker_stats_of(worker)->clients_now, 0);
    sherd__executor_free(executor);
    sherd__worker_free(worker);
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

/* Also lets the compute thread's results out. */
static void settle(peer *p)
{
    joined_settle(&p->j, executor);
}

static void join(peer *p)
{
    memset(p, 0, sizeof *p);
    joined_open(&p->j, worker, hear, p);
}

/* As the holder of a key of this one byte. */
static void join_as(peer *p, uint8_t key, uint64_t memory)
{
    sherd__fingerprint whole;
    memset(&whole, key, sizeof whole);
    memset(p, 0, sizeof *p);
    joined_open_as(&p->j, worker, &whole, memory, hear, p);
}

static void cut(peer *p)
{
    joined_cut(&p->j);
}

static void put(peer *p, uint64_t job, uint32_t block, uint64_t rows, uint64_t cols, double value)
{
    double *v = malloc((rows * cols + 1) * sizeof *v);
    for (uint64_t k = 0; k < rows * cols; k++) v[k] = value;
    joined_put(&p->j, job, block, SHERD_F64, rows, cols, v);
    free(v);
}

static sherd__task task_of(uint64_t job, uint32_t number, uint64_t n, uint64_t m)
{
    return (sherd__task){ .job = job, .task = number, .attempt = 1, .op = SHERD__OP_MULTIPLY,
                          .left = 1, .right = 2,
                          .result = { .origin = SHERD__RESULT, .dtype = SHERD_F64, .rows = n,
                                      .cols = m, .len = 8 * n * m } };
}

static void ask(peer *p, uint64_t job, uint32_t number, uint64_t n, uint64_t m)
{
    sherd__task t = task_of(job, number, n, m);
    assert_int_equal(sherd__session_task(p->j.co, &t), SHERD_OK);
}

/* --- with the CPU backend ------------------------------------------------------------------ */

static void *cpu;

static int open_cpu(void **s)
{
    (void)s;
    sherd__backend_options o = { .threads = 1, .quick = true };
    sherd__backend_caps caps;
    return sherd__backend_cpu.open(&cpu, &o, &caps, NULL);
}

static int close_cpu(void **s)
{
    (void)s;
    sherd__backend_cpu.close(cpu);
    return 0;
}

static void a_product_of_stored_blocks_comes_back(void **s)
{
    (void)s;
    peer p;
    start(&sherd__backend_cpu, cpu, 50, 16 * MB);
    join(&p);
    put(&p, 9, 1, 3, 4, 2);
    put(&p, 9, 2, 4, 5, 3);
    ask(&p, 9, 1, 3, 5);
    settle(&p);
    assert_int_equal(p.results_len, 1);
    assert_true(p.last[0] == 24 && p.last[3] == 24);
    const sherd__worker_stats *st = sherd__worker_stats_of(worker);
    assert_int_equal(st->tasks[SHERD__OP_MULTIPLY], 1);
    assert_int_equal(st->inline_tasks, 1);
    assert_int_equal(st->blocks_in, 2);
    assert_int_equal(st->bytes_in, 8 * (12 + 20));
    assert_int_equal(st->bytes_out, 8 * 15);
    cut(&p);
    stop();
}

static void an_outer_product_is_sent_without_being_stored(void **s)
{
    (void)s;
    peer p;
    start(&sherd__backend_cpu, cpu, 50, 12 * MB);
    join(&p);
    put(&p, 9, 1, 1000, 1, 2);
    put(&p, 9, 2, 1, 1000, 3);
    for (uint32_t k = 1; k <= 20; k++) ask(&p, 9, k, 1000, 1000); /* 160 MB of results */
    p.j.paused = true;
    joined_exchange(&p.j);
    assert_true(sherd__worker_memory(worker)->used < MB);
    p.j.paused = false;
    settle(&p);
    assert_int_equal(p.results_len, 20);
    assert_true(p.last[0] == 6);
    assert_int_equal(sherd__worker_stats_of(worker)->streamed_tasks, 20);
    assert_int_equal(sherd__worker_stats_of(worker)->tasks[SHERD__OP_MULTIPLY], 20);
    cut(&p);
    stop();
}

static void a_cut_connection_frees_what_was_being_streamed(void **s)
{
    (void)s;
    peer p;
    start(&sherd__backend_cpu, cpu, 50, 12 * MB);
    join(&p);
    put(&p, 9, 1, 1000, 1, 2);
    put(&p, 9, 2, 1, 1000, 3);
    ask(&p, 9, 1, 1000, 1000);
    p.j.paused = true;
    joined_exchange(&p.j);
    (void)joined_move(&p.j, false); /* part of it */
    cut(&p);
    stop();
}

/* --- with a backend that only remembers ------------------------------------------------------- */

#define SLOW 1e-3 /* GF/s: every task goes to the executor */

static void small_blocks(peer *p, uint64_t job)
{
    put(p, job, 1, 200, 2, 1);
    put(p, job, 2, 2, 200, 1);
}

static void unknown_blocks_and_wrong_shapes_are_refused(void **s)
{
    (void)s;
    peer p;
    start(&fake, NULL, SLOW, 16 * MB);
    join(&p);
    small_blocks(&p, 9);
    ask(&p, 8, 1, 200, 200); /* another job */
    ask(&p, 9, 2, 200, 199);
    settle(&p);
    assert_int_equal(p.refusals_len, 2);
    assert_int_equal(p.refusals[0].code, SHERD_EINVAL);
    assert_int_equal(p.refusals[0].task, 1);
    assert_non_null(strstr(p.j.withheld, "200 x 200")); /* in the node's own log */
    assert_int_equal(p.refusals[1].code, SHERD_ESHAPE);
    assert_string_equal(p.refusals[1].text, sherd__says(SHERD_ESHAPE, p.j.withheld));
    assert_int_equal(ran_len, 0);
    cut(&p);
    stop();
}

static void another_session_cannot_name_a_block(void **s)
{
    (void)s;
    peer p, q;
    start(&fake, NULL, SLOW, 16 * MB);
    join(&p);
    join(&q);
    small_blocks(&p, 9);
    settle(&p);
    ask(&q, 9, 1, 200, 200);
    settle(&q);
    assert_int_equal(q.refusals_len, 1);
    assert_int_equal(sherd__session_drop(q.j.co, 9, 1), SHERD_OK); /* nor drop it */
    settle(&q);
    ask(&p, 9, 1, 200, 200);
    settle(&p);
    assert_int_equal(p.results_len, 1);
    cut(&q);
    ask(&p, 9, 2, 200, 200); /* nor end it by leaving */
    settle(&p);
    assert_int_equal(p.results_len, 2);
    cut(&p);
    stop();
}

static void a_second_block_of_one_name_is_refused(void **s)
{
    (void)s;
    peer p;
    start(&fake, NULL, SLOW, 16 * MB);
    join(&p);
    put(&p, 9, 1, 2, 2, 1);
    put(&p, 9, 1, 2, 2, 1);
    settle(&p);
    assert_int_equal(p.refusals_len, 1);
    assert_int_equal(p.refusals[0].block, 1);
    cut(&p);
    stop();
}

static void sessions_take_turns(void **s)
{
    (void)s;
    peer p, q;
    start(&fake, NULL, SLOW, 64 * MB);
    join(&p);
    join(&q);
    small_blocks(&p, 9);
    small_blocks(&q, 9);
    for (uint32_t k = 1; k <= 10; k++) ask(&p, 9, k, 200, 200);
    joined_exchange(&p.j); /* all ten wait before the other's first */
    for (uint32_t k = 101; k <= 104; k++) ask(&q, 9, k, 200, 200);
    joined_exchange(&q.j);
    while (sherd__executor_drain(executor)) {}
    joined_exchange(&p.j);
    joined_exchange(&q.j);
    assert_int_equal(p.results_len, 10);
    assert_int_equal(q.results_len, 4);
    assert_int_equal(ran_len, 14);
    for (uint32_t k = 0; k < 14; k++) {
        /* which of the two begins is open; each keeps its order and they alternate */
        if (k >= 2 && k < 9) assert_true((ran[k] > 100) != (ran[k + 1] > 100));
    }
    for (uint32_t k = 0; k < 10; k++) assert_int_equal(p.results[k], k + 1);
    for (uint32_t k = 0; k < 4; k++) assert_int_equal(q.results[k], 101 + k);
    cut(&p);
    cut(&q);
    stop();
}

static void a_cancelled_task_is_not_run_and_not_answered_twice(void **s)
{
    (void)s;
    peer p;
    start(&fake, NULL, SLOW, 64 * MB);
    join(&p);
    small_blocks(&p, 9);
    for (uint32_t k = 1; k <= 6; k++) ask(&p, 9, k, 200, 200);
    joined_exchange(&p.j); /* two are with the executor, four wait */
    assert_int_equal(ran_len, 2);
    assert_int_equal(sherd__session_cancel(p.j.co, 9, 1, 1), SHERD_OK);
    assert_int_equal(sherd__session_cancel(p.j.co, 9, 4, 1), SHERD_OK);
    assert_int_equal(sherd__session_cancel(p.j.co, 9, 6, 1), SHERD_OK);
    settle(&p);
    assert_int_equal(p.results_len, 3);
    assert_int_equal(p.results[0], 2);
    assert_int_equal(p.results[1], 3);
    assert_int_equal(p.results[2], 5);
    assert_int_equal(ran_len, 4);
    assert_int_equal(sherd__worker_stats_of(worker)->cancelled, 3);
    cut(&p);
    stop();
}

static void blocks_of_a_dead_session_stay_until_the_compute_thread_is_done(void **s)
{
    (void)s;
    peer p;
    start(&fake, NULL, SLOW, 64 * MB);
    join(&p);
    small_blocks(&p, 9);
    for (uint32_t k = 1; k <= 5; k++) ask(&p, 9, k, 200, 200);
    joined_exchange(&p.j);
    cut(&p);
    uint64_t held = sherd__worker_memory(worker)->used;
    assert_true(held >= 2 * (8 * 200 * 200 + 8 * 400)); /* two results and both blocks */
    assert_true(held < 3 * 8 * 200 * 200 + 2 * 8 * 400);
    stop(); /* drains, and finds nothing used */
}

static void sessions_of_one_key_share_its_turns(void **s)
{
    enum { SESSIONS = 5 };
    (void)s;
    peer many[SESSIONS], one;
    start(&fake, NULL, SLOW, 64 * MB);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        join_as(&many[i], 1, 0);
        small_blocks(&many[i], 9);
        for (uint32_t k = 1; k <= 4; k++) ask(&many[i], 9, k, 200, 200);
        joined_exchange(&many[i].j);
    }
    join_as(&one, 2, 0);
    small_blocks(&one, 9);
    for (uint32_t k = 101; k <= 104; k++) ask(&one, 9, k, 200, 200);
    joined_exchange(&one.j);
    while (sherd__executor_drain(executor)) {}
    assert_int_equal(ran_len, 4 * SESSIONS + 4);
    for (uint32_t k = 2; k < 8; k++) assert_true((ran[k] > 100) != (ran[k + 1] > 100));
    settle(&one);
    assert_int_equal(one.results_len, 4);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        settle(&many[i]);
        assert_int_equal(many[i].results_len, 4);
        cut(&many[i]);
    }
    cut(&one);
    stop();
}

/* One key asks, from task 1 on; when it has been answered two of them `drained` times, another one
 * asks, from task 101 on. */
static void ask_as_two(uint64_t job, uint32_t first_len, uint64_t other_job, uint32_t drained)
{
    peer p, q;
    start_by(fake_clock, &fake, NULL, SLOW, 64 * MB);
    join_as(&p, 1, 0);
    join_as(&q, 2, 0);
    put(&p, job, 1, 200, 32, 1);
    put(&p, job, 2, 32, 200, 1);
    small_blocks(&q, other_job);
    for (uint32_t k = 1; k <= first_len; k++) ask(&p, job, k, 200, 200);
    joined_exchange(&p.j);
    for (uint32_t k = 0; k < drained; k++) (void)sherd__executor_drain(executor);
    for (uint32_t k = 101; k <= 160; k++) ask(&q, other_job, k, 200, 200);
    joined_exchange(&q.j);
    while (sherd__executor_drain(executor)) {}
    assert_int_equal(ran_len, first_len + 60);
    settle(&p);
    settle(&q);
    cut(&p);
    cut(&q);
    stop();
}

static uint32_t others_before(uint32_t number)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < ran_len && ran[k] != number; k++) n += ran[k] > 100;
    return n;
}

/* Tasks of one take sixteen times as long as the other's. */
static void keys_share_the_time_of_tasks_not_their_number(void **s)
{
    (void)s;
    ask_as_two(9, 7, 9, 0);
    for (uint32_t k = 3; k <= 4; k++)
        assert_in_range(others_before(k + 1) - others_before(k), 14, 18);
}

static void a_key_that_was_away_has_no_time_saved_up(void **s)
{
    (void)s;
    ask_as_two(9, 40, 9, 12);
    uint32_t first = 0;
    while (ran[first] < 100) first++;
    assert_in_range(first, 24, 30);
    assert_in_range(others_before(first + 1), 1, 36);
    assert_in_range(others_before(first + 2) - others_before(first + 1), 14, 18);
}

static void one_long_task_puts_its_key_back_by_a_second(void **s)
{
    (void)s;
    ask_as_two(LONG, 4, EIGHTH, 0);
    assert_in_range(others_before(3), 8, 10);
}

static void sessions_of_one_key_share_its_part_of_the_budget(void **s)
{
    (void)s;
    peer a, b, other;
    start(&fake, NULL, SLOW, 4 * MB);
    join_as(&a, 1, 3 * MB);
    put(&a, 9, 1, 400, 400, 1); /* 1.25 MB each, as they are counted */
    settle(&a);
    join_as(&b, 1, 3 * MB);
    put(&b, 9, 1, 400, 400, 1);
    put(&b, 9, 2, 400, 400, 1); /* the third is beyond it */
    settle(&b);
    assert_int_equal(a.refusals_len, 0);
    assert_int_equal(b.refusals_len, 1);
    assert_int_equal(b.refusals[0].block, 2);
    assert_int_equal(b.refusals[0].code, SHERD_EREFUSED);
    join_as(&other, 2, 3 * MB);
    put(&other, 9, 1, 300, 300, 1);
    settle(&other);
    assert_int_equal(other.refusals_len, 0);
    cut(&a); /* what it had is the key's again, */
    put(&b, 9, 2, 400, 400, 1);
    settle(&b);
    assert_int_equal(b.refusals_len, 1);
    cut(&b);
    join_as(&a, 1, 2 * MB); /* and a smaller part goes for what comes */
    put(&a, 9, 1, 400, 400, 1);
    put(&a, 9, 2, 400, 400, 1);
    settle(&a);
    assert_int_equal(a.refusals_len, 1);
    cut(&a);
    cut(&other);
    stop();
}

static void over_budget_blocks_and_results_are_refused_and_the_rest_goes_on(void **s)
{
    (void)s;
    peer p;
    start(&fake, NULL, SLOW, MB);
    join(&p);
    small_blocks(&p, 9);
    put(&p, 9, 3, 500, 500, 1); /* 2 MB: longer than the node takes */
    ask(&p, 9, 1, 200, 200);    /* 320 KB each: the fourth does not fit */
    ask(&p, 9, 2, 200, 200);
    ask(&p, 9, 3, 200, 200);
    ask(&p, 9, 4, 200, 200);
    settle(&p);
    assert_int_equal(p.refusals_len, 2);
    assert_int_equal(p.refusals[0].block, 3);
    assert_int_equal(p.refusals[1].code, SHERD_ENOMEM);
    assert_non_null(strstr(p.j.withheld, "no room"));
    assert_int_equal(p.results_len, 3 - (p.refusals[1].task <= 3));
    assert_true(sherd__worker_memory(worker)->peak <= MB);
    ask(&p, 9, 5, 200, 200);
    settle(&p);
    assert_int_equal(p.results[p.results_len - 1], 5);
    cut(&p);
    stop();
}

/* What a node remembers of a block is memory, too, which a coordinator could make it spend. */
static void blocks_of_nothing_count_in_the_budget(void **s)
{
    enum { MOST = 3000 };
    (void)s;
    peer p;
    start(&fake, NULL, SLOW, MB);
    join(&p);
    for (uint32_t k = 1; k <= MOST; k++) {
        put(&p, 9, k, 0, 4, 0);
        if (k % 256 == 0) settle(&p); /* unread, refusals would want memory, too */
    }
    settle(&p);
    const sherd__pool_stats *m = sherd__worker_memory(worker);
    uint64_t here = sherd__worker_stats_of(worker)->blocks_in;
    assert_true(here > 0 && here < MOST);
    assert_int_equal(p.refusals_len, MOST - here);
    assert_true(m->used >= here * SHERD__POOL_OVERHEAD && m->peak <= MB);
    assert_int_equal(sherd__session_drop(p.j.co, 9, 1), SHERD_OK);
    put(&p, 9, MOST + 1, 0, 4, 0);
    settle(&p);
    assert_int_equal(sherd__worker_stats_of(worker)->blocks_in, here + 1);
    cut(&p);
    stop();
}

static void flagged_blocks_go_with_their_task(void **s)
{
    (void)s;
    peer p;
    start(&fake, NULL, SLOW, 16 * MB);
    join(&p);
    small_blocks(&p, 9);
    sherd__task t = task_of(9, 1, 200, 200);
    t.flags = SHERD__DROP_LEFT;
    assert_int_equal(sherd__session_task(p.j.co, &t), SHERD_OK);
    settle(&p);
    put(&p, 9, 1, 200, 2, 1); /* its name is free again */
    ask(&p, 9, 2, 200, 200);  /* and the right one still there */
    settle(&p);
    assert_int_equal(p.results_len, 2);
    assert_int_equal(p.refusals_len, 0);
    cut(&p);
    stop();
}

static void a_failing_backend_is_a_refusal(void **s)
{
    (void)s;
    peer p;
    start(&fake, NULL, SLOW, 16 * MB);
    join(&p);
    small_blocks(&p, 9);
    fake_err = SHERD_EDEVICE;
    ask(&p, 9, 1, 200, 200);
    settle(&p);
    assert_int_equal(p.results_len, 0);
    assert_int_equal(p.refusals_len, 1);
    assert_int_equal(p.refusals[0].code, SHERD_EDEVICE);
    cut(&p);
    stop();
}

static void wake(void *ctx)
{
    (void)ctx; /* the test looks by itself */
}

static void a_compute_thread_works_while_sessions_come_and_go(void **s)
{
    (void)s;
    peer p, q;
    start(&sherd__backend_cpu, cpu, SLOW, 64 * MB);
    sherd__executor_free(executor);
    sherd__worker_free(worker);
    assert_int_equal(sherd__executor_new(&executor, 4, wake, NULL), SHERD_OK);
    sherd__worker_options o = { .backend = &sherd__backend_cpu, .backend_ctx = cpu,
                                .memory = 64 * MB, .executor = executor };
    assert_int_equal(sherd__worker_new(&worker, &o), SHERD_OK);
    join(&p);
    small_blocks(&p, 9);
    for (uint32_t k = 1; k <= 40; k++) ask(&p, 9, k, 200, 200);
    joined_exchange(&p.j);
    for (uint32_t round = 0; round < 10; round++) {
        join(&q);
        small_blocks(&q, 9);
        for (uint32_t k = 1; k <= 5; k++) ask(&q, 9, k, 200, 200);
        joined_exchange(&q.j);
        sherd__executor_drain(executor);
        cut(&q); /* in the middle of its tasks */
    }
    while (p.results_len < 40) settle(&p);
    assert_true(p.last[0] == 2);
    cut(&p);
    while (sherd__executor_pending(executor)) sherd__executor_drain(executor);
    stop();
}

/* Many tasks, two sessions, everything allowed to fail once: no leak, no task left behind. */
static void every_failed_allocation_is_survived(void **s)
{
    (void)s;
    for (size_t nth = 1, seen = nth; seen >= nth; nth++) {
        peer p;
        start(&sherd__backend_cpu, cpu, nth & 1 ? SLOW : 50, 16 * MB);
        join(&p);
        small_blocks(&p, 9);
        ask(&p, 9, 1, 200, 200);
        ask(&p, 9, 2, 200, 200);
        sherd__alloc_fail_nth(nth);
        settle(&p);
        seen = sherd__alloc_fail_nth(0);
        if (seen < nth) assert_int_equal(p.results_len, 2);
        cut(&p);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_of_stored_blocks_comes_back),
        cmocka_unit_test(an_outer_product_is_sent_without_being_stored),
        cmocka_unit_test(a_cut_connection_frees_what_was_being_streamed),
        cmocka_unit_test(unknown_blocks_and_wrong_shapes_are_refused),
        cmocka_unit_test(another_session_cannot_name_a_block),
        cmocka_unit_test(a_second_block_of_one_name_is_refused),
        cmocka_unit_test(sessions_take_turns),
        cmocka_unit_test(sessions_of_one_key_share_its_turns),
        cmocka_unit_test(keys_share_the_time_of_tasks_not_their_number),
        cmocka_unit_test(a_key_that_was_away_has_no_time_saved_up),
        cmocka_unit_test(one_long_task_puts_its_key_back_by_a_second),
        cmocka_unit_test(sessions_of_one_key_share_its_part_of_the_budget),
        cmocka_unit_test(a_cancelled_task_is_not_run_and_not_answered_twice),
        cmocka_unit_test(blocks_of_a_dead_session_stay_until_the_compute_thread_is_done),
        cmocka_unit_test(over_budget_blocks_and_results_are_refused_and_the_rest_goes_on),
        cmocka_unit_test(blocks_of_nothing_count_in_the_budget),
        cmocka_unit_test(flagged_blocks_go_with_their_task),
        cmocka_unit_test(a_failing_backend_is_a_refusal),
        cmocka_unit_test(a_compute_thread_works_while_sessions_come_and_go),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("node/worker", tests, open_cpu, close_cpu);
}
