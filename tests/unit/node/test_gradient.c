/*
 * Rounds of gradients with real sessions in memory: answers equal those of a grader in the test,
 * every task is answered once for any plan, and nothing is left behind.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "learn/plan.h"
#include "node/gradient.h"
#include "node/worker.h"
#include "sherd/mat.h"
#include "tests/support/draw.h"
#include "tests/support/joined.h"
#include "tests/support/no_backend.h"
#include "tests/support/threaded.h"

#define MB ((uint64_t)1 << 20)

static const char text[] = "input = 6\nlayer = dense 5\nlayer = tanh\nlayer = dense 3\n"
                           "loss = cross-entropy\n";
enum {
    ROWS = 12,
    INPUTS = 6,
    CLASSES = 3,
    TIERS = 2,
    JOB = 7,
    HEARD = 64,
    RECIPE = 1,
    X = 2,
    T = 3,
    PLAN = 4,
    PARAMS = 5
};
static const size_t counts[TIERS] = { 6 * 5 + 5, 5 * 3 + 3 };
static double x[ROWS * INPUTS], params[TIERS][40];
static uint32_t labels[ROWS];
static const int32_t scales[TIERS] = { 30, 31 };

/* A coordinator's session joined to a client of the worker. */
typedef struct peer {
    joined j;
    uint32_t order[HEARD], results; /* tasks in the order of their answers */
    uint8_t answers[HEARD][4096];
    sherd__refusal refused[HEARD];
    uint32_t refusals;
} peer;

static sherd__executor *executor;
static sherd__worker *worker;

static int fill(void **s)
{
    (void)s;
    for (size_t i = 0; i < ROWS * INPUTS; i++) x[i] = (double)draw() / 0x1p30 - 1;
    for (size_t i = 0; i < ROWS; i++) labels[i] = (uint32_t)(draw() % CLASSES);
    for (size_t t = 0; t < TIERS; t++)
        for (size_t i = 0; i < counts[t]; i++) params[t][i] = (double)draw() / 0x1p31 - 0.5;
    return 0;
}

static pthread_mutex_t woken_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned woken;

static void wake(void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&woken_lock);
    woken++;
    pthread_mutex_unlock(&woken_lock);
}

static bool turns; /* the worker asks for turns of a loop, even without threads */

static void *device; /* of threaded_backend; NULL: passes are computed on the host */
static void *host;   /* computes for it */
static uint32_t passes;

/* Passes are computed on a device that accepts one call at a time, so many beside each other. */
static void use_device(unsigned latency_us, uint32_t several)
{
    const sherd__backend_options quick = { .threads = 1, .quick = true };
    assert_int_equal(sherd__backend_cpu.open(&host, &quick, NULL), 0);
    const threaded_options one = { .cpu = host, .depth = 1, .latency_us = latency_us };
    assert_int_equal(threaded_open(&device, &one), 0);
    passes = several;
}

static void drop_device(void)
{
    if (device) threaded_backend.close(device);
    if (host) sherd__backend_cpu.close(host);
    device = host = NULL;
    passes = 0;
}

static void start(uint64_t memory, bool threaded)
{
    sherd__worker_options o = { .backend = device ? &threaded_backend : &none,
                                .backend_ctx = device,
                                .memory = memory,
                                .passes = passes };
    const sherd__device one = { .does = SHERD__DOES_ALL,
                                .depth = device ? 1 : 2,
                                .gflops = threaded ? 1 : 10 };
    o.devices = &one;
    o.devices_len = 1;
    if (threaded || turns) o.wake = wake;
    assert_int_equal(threaded ? sherd__executor_new(&executor, 16, wake, NULL)
                              : sherd__executor_new_inline(&executor),
                     0);
    o.executor = executor;
    assert_int_equal(sherd__worker_new(&worker, &o), 0);
}

static void stop(void)
{
    do {
        sherd__executor_drain(executor);
        sherd__worker_poll(worker); /* ends clients, and leaves their networks to the executor */
        usleep(1000);
    } while (sherd__executor_pending(executor));
    assert_int_equal(sherd__worker_stats_of(worker)->queued, 0);
    assert_int_equal(sherd__worker_stats_of(worker)->clients_now, 0);
    assert_int_equal(sherd__worker_memory(worker)->used, 0);
    sherd__executor_free(executor);
    sherd__worker_free(worker);
}

static void hear(void *ctx, sherd__event *e)
{
    peer *p = ctx;
    if (e->kind == SHERD__EV_RESULT) {
        const sherd__fragment_info *i = sherd__fragment_info_of(e->fragment);
        assert_true(i->len <= sizeof p->answers[0] && p->results < HEARD);
        memcpy(p->answers[p->results], sherd__fragment_bytes(e->fragment), i->len);
        p->order[p->results++] = e->task.task;
    } else if (e->kind == SHERD__EV_REFUSED) {
        p->refused[p->refusals++ % HEARD] = e->refusal;
    }
}

static void settle(peer *p)
{
    joined_settle(&p->j, executor);
}

static void join(peer *p)
{
    memset(p, 0, sizeof *p);
    joined_open(&p->j, worker, hear, p);
}

static void cut(peer *p)
{
    joined_cut(&p->j);
}

/* ---- a round --------------------------------------------------------------------------------- */

static void put(peer *p, uint32_t block, uint8_t dtype, uint64_t rows, uint64_t cols,
                const void *bytes)
{
    joined_put(&p->j, JOB, block, dtype, rows, cols, bytes);
}

typedef struct layout {
    sherd__step_plan plan;
    sherd__step_plan_shard shard[2];
} layout;

static layout usual(void)
{
    return (layout){ .plan = { .recipe = RECIPE,
                               .bits = 17,
                               .room = 61,
                               .tiers = TIERS,
                               .params = PARAMS,
                               .shards = 2,
                               .batch = 8 },
                     .shard = { { .x = X, .targets = T, .first = 0, .rows = 8 },
                                { .x = X, .targets = T, .first = 8, .rows = 4 } } };
}

static size_t write_plan(const layout *l, uint8_t *out)
{
    sherd__step_plan_write(out, &l->plan, scales);
    for (uint32_t i = 0; i < l->plan.shards; i++)
        sherd__step_plan_write_shard(out, &l->plan, i, &l->shard[i]);
    return sherd__plan_size(l->plan.tiers, l->plan.shards);
}

static void put_examples(peer *p)
{
    put(p, RECIPE, SHERD_U8, 1, sizeof text - 1, text);
    put(p, X, SHERD_F64, ROWS, INPUTS, x);
    put(p, T, SHERD_U32, ROWS, 1, labels);
}

static sherd__task task_of(const layout *l, uint32_t t, uint32_t plan)
{
    uint64_t n = sherd__plan_numbers(counts[t], t, l->plan.shards);
    return (sherd__task){ .job = JOB,
                          .task = 100 * plan + t,
                          .attempt = 1,
                          .op = SHERD__OP_GRADIENT,
                          .flags = SHERD__DROP_RIGHT | (t == 0 ? SHERD__DROP_LEFT : 0u),
                          .left = plan,
                          .right = l->plan.params + t,
                          .result = { .origin = SHERD__RESULT,
                                      .dtype = l->plan.bits ? SHERD_I64 : SHERD_F64,
                                      .rows = 1,
                                      .cols = n,
                                      .len = 8 * n } };
}

static void ask_tier(peer *p, const layout *l, uint32_t t, uint32_t plan)
{
    sherd__task task = task_of(l, t, plan);
    put(p, l->plan.params + t, SHERD_F64, 1, counts[t], params[t]);
    assert_int_equal(sherd__session_task(p->j.co, &task), 0);
}

static void ask(peer *p, const layout *l, uint32_t plan)
{
    uint8_t bytes[1024];
    size_t len = write_plan(l, bytes);
    put(p, plan, SHERD_I64, 1, len / 8, bytes);
    for (uint32_t t = 0; t < TIERS; t++) ask_tier(p, l, t, plan);
}

/* Computes the expected result with a grader of the test. */
static void expect(const layout *l, int64_t sums[TIERS][40], double costs[2], uint64_t hits[2])
{
    sherd__recipe r;
    sherd__grader *g;
    void *to[TIERS] = { sums[0], sums[1] };
    assert_int_equal(sherd__recipe_parse(&r, text, sizeof text - 1, "t", SHERD__RECIPE_NETWORK,
                                         NULL),
                     0);
    assert_int_equal(sherd__grader_new(&g, &r, 8, l->plan.bits, NULL, NULL), 0);
    memset(sums, 0, sizeof(int64_t) * TIERS * 40);
    for (uint32_t i = 0; i < l->plan.shards; i++) {
        const sherd__step_plan_shard *s = &l->shard[i];
        sherd__grading how = {
            .scales = scales, .room = l->plan.room, .sums = to, .local = s->local
        };
        for (size_t t = 0; t < TIERS; t++)
            memcpy(sherd__grader_params(g, t), params[t], counts[t] * sizeof(double));
        sherd__shard shard = { sherd_view_c(x + s->first * INPUTS, SHERD_F64, s->rows, INPUTS),
                               { .labels = labels + s->first } };
        assert_int_equal(sherd__grader_run(g, &shard, &how, &costs[i], &hits[i], NULL), 0);
    }
    sherd__grader_free(g);
}

static void is_expected(const peer *p, const layout *l, uint32_t plan)
{
    int64_t want[TIERS][40];
    double costs[2];
    uint64_t hits[2];
    unsigned seen = 0;
    expect(l, want, costs, hits);
    for (uint32_t i = 0; i < p->results; i++) {
        if (p->order[i] / 100 != plan) continue;
        uint32_t t = p->order[i] % 100;
        seen |= 1u << t;
        assert_memory_equal(p->answers[i], want[t], 8 * counts[t]);
        for (uint32_t k = 0; t == 0 && k < l->plan.shards; k++) {
            const uint8_t *at = p->answers[i] + 8 * counts[0] + 16 * k;
            assert_memory_equal(at, &costs[k], 8);
            assert_int_equal(sherd__get_u64(at + 8), hits[k]);
        }
    }
    assert_int_equal(seen, 3);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_round_is_answered_from_the_top_tier_with_a_graders_results(void **s)
{
    (void)s;
    peer p;
    for (unsigned local = 0; local < 2; local++) {
        layout l = usual();
        for (unsigned i = 0; i < 2; i++)
            l.shard[i].local = (sherd__local_steps){
                .steps = local * 3, .batch = 3, .rate = 0.25, .l2 = 0.125, .weight = 1
            };
        start(16 * MB, false);
        join(&p);
        put_examples(&p);
        ask(&p, &l, PLAN);
        settle(&p);
        assert_int_equal(p.results, 2);
        assert_int_equal(p.order[0] % 100, 1);
        assert_int_equal(p.order[1] % 100, 0);
        is_expected(&p, &l, PLAN);
        l.plan.params = 20; /* examples are kept, everything else ended with the round */
        ask(&p, &l, 10);
        settle(&p);
        is_expected(&p, &l, 10);
        assert_int_equal(p.refusals, 0);
        assert_int_equal(sherd__worker_stats_of(worker)->tasks[SHERD__OP_GRADIENT], 4);
        cut(&p);
        stop();
    }
}

static void blocks_that_a_plan_drops_are_freed_after_the_round(void **s)
{
    (void)s;
    peer p;
    layout l = usual();
    l.shard[0].drop = l.shard[1].drop = true;
    start(16 * MB, false);
    join(&p);
    put_examples(&p);
    ask(&p, &l, PLAN);
    settle(&p);
    is_expected(&p, &l, PLAN);
    ask(&p, &l, PLAN); /* the numbers of the plan and of the parameters can be used again */
    settle(&p);
    assert_int_equal(p.results, 2);
    assert_int_equal(p.refusals, 2);
    assert_int_equal(p.refused[0].code, SHERD_EINVAL);
    assert_non_null(strstr(p.j.withheld, "no block 2"));
    cut(&p);
    stop();
}

/* Each number of a plan is changed in turn, and random bits of it. */
static void an_invalid_plan_does_no_harm_and_every_task_is_answered_once(void **s)
{
    (void)s;
    static const uint64_t values[] = {
        0, 1, 2, 3, 63, 64, 4097, 5000, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX, UINT64_C(1) << 63
    };
    layout l = usual();
    uint8_t good[1024], bad[1024];
    size_t len = write_plan(&l, good), tries = 0;
    for (size_t i = 0; i < len / 8 + 60; i++)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++, tries++) {
            peer p;
            memcpy(bad, good, len);
            if (i < len / 8) sherd__put_u64(bad + 8 * i, values[k]);
            else bad[draw() % len] ^= (uint8_t)(1u << draw() % 8);
            start(16 * MB, false);
            join(&p);
            put_examples(&p);
            put(&p, PLAN, SHERD_I64, 1, len / 8, bad);
            for (uint32_t t = 0; t < TIERS; t++) ask_tier(&p, &l, t, PLAN);
            settle(&p);
            if (p.j.client) assert_int_equal(p.results + p.refusals, 2);
            cut(&p);
            stop();
        }
    assert_true(tries > 1000);
}

static void a_plan_truncated_anywhere_is_refused(void **s)
{
    (void)s;
    layout l = usual();
    uint8_t good[1024];
    size_t len = write_plan(&l, good);
    for (size_t n = 1; n < len / 8; n++) {
        peer p;
        start(16 * MB, false);
        join(&p);
        put_examples(&p);
        put(&p, PLAN, SHERD_I64, 1, n, good);
        for (uint32_t t = 0; t < TIERS; t++) ask_tier(&p, &l, t, PLAN);
        settle(&p);
        assert_int_equal(p.refusals, 2);
        assert_int_equal(p.refused[0].code, SHERD_EFORMAT);
        cut(&p);
        stop();
    }
}

static void inconsistent_requests_are_refused_with_the_reason(void **s)
{
    (void)s;
    enum { KINDS = 11 };
    for (unsigned kind = 0; kind < KINDS; kind++) {
        peer p;
        layout l = usual();
        int code = SHERD_ESHAPE;
        uint64_t memory = 16 * MB;
        uint32_t wrong[ROWS] = { 0, 9 };
        double wide[ROWS * (INPUTS + 1)] = { 0 };
        if (kind == 9) memory = 12000;
        start(memory, false);
        join(&p);
        put(&p, RECIPE, SHERD_U8, 1, kind == 0 ? 20 : sizeof text - 1, text);
        put(&p, X, SHERD_F64, ROWS, kind == 1 ? INPUTS + 1 : INPUTS, kind == 1 ? wide : x);
        put(&p, T, kind == 2 ? SHERD_I32 : SHERD_U32, ROWS, 1, kind == 3 ? wrong : labels);
        if (kind == 0) code = SHERD_EFORMAT;
        if (kind == 3) code = SHERD_EINVAL;
        if (kind == 4) l.plan.room = 3, code = SHERD_EBUSY;
        if (kind == 5) l.shard[1].first = 9;
        if (kind == 6) l.shard[1].rows = 9, code = SHERD_EFORMAT;
        if (kind == 9) code = SHERD_ENOMEM;
        uint8_t bytes[1024];
        size_t len = write_plan(&l, bytes);
        put(&p, PLAN, kind == 10 ? SHERD_F64 : SHERD_I64, 1, len / 8, bytes);
        if (kind == 10) code = SHERD_EFORMAT;
        for (uint32_t t = 0; t < TIERS; t++) {
            sherd__task task = task_of(&l, t, PLAN);
            if (kind == 7) task.result.cols++, task.result.len += 8;
            if (kind == 8) task.result.dtype = SHERD_F64;
            put(&p, PARAMS + t, SHERD_F64, 1, counts[t], params[t]);
            assert_int_equal(sherd__session_task(p.j.co, &task), 0);
        }
        settle(&p);
        if (p.refusals < 2 || p.refused[p.refusals - 1].code != code)
            fail_msg("kind %u: %u refusals, code %d: %s", kind, p.refusals, p.refused[0].code,
                     p.refused[0].text);
        assert_true(p.refused[0].text[0]);
        assert_int_equal(p.results, 0);
        cut(&p);
        stop();
    }
}

static void a_cancelled_task_or_an_ended_session_leaves_nothing_behind(void **s)
{
    (void)s;
    for (unsigned kind = 0; kind < 5; kind++) {
        peer p;
        layout l = usual();
        uint8_t bytes[1024];
        size_t len = write_plan(&l, bytes);
        start(16 * MB, false);
        join(&p);
        put_examples(&p);
        put(&p, PLAN, SHERD_I64, 1, len / 8, bytes);
        ask_tier(&p, &l, 0, PLAN); /* waits for tier 1 */
        settle(&p);
        assert_int_equal(p.results + p.refusals, 0);
        assert_int_equal(sherd__worker_stats_of(worker)->queued, 1);
        if (kind == 0) assert_int_equal(sherd__session_cancel(p.j.co, JOB, 100 * PLAN, 1), 0);
        if (kind == 1) assert_int_equal(sherd__session_cancel(p.j.co, JOB, 0, 0), 0);
        if (kind == 2) assert_int_equal(sherd__session_forget(p.j.co, JOB), 0);
        if (kind == 3) assert_int_equal(sherd__session_drop(p.j.co, JOB, 0), 0);
        settle(&p);
        if (kind < 4) assert_int_equal(sherd__worker_stats_of(worker)->queued, 0);
        assert_int_equal(p.refusals, kind == 3); /* answers to cancelled tasks are discarded */
        if (kind < 2) { /* the plan ends with its tasks; the same numbers can be used again */
            ask(&p, &l, PLAN);
            settle(&p);
            is_expected(&p, &l, PLAN);
        }
        cut(&p);
        stop();
    }
}

static void a_tier_that_is_requested_twice_is_refused(void **s)
{
    (void)s;
    peer p;
    layout l = usual();
    uint8_t bytes[1024];
    size_t len = write_plan(&l, bytes);
    start(16 * MB, false);
    join(&p);
    put_examples(&p);
    put(&p, PLAN, SHERD_I64, 1, len / 8, bytes);
    ask_tier(&p, &l, 0, PLAN);
    sherd__task again = task_of(&l, 0, PLAN);
    again.task = 77;
    assert_int_equal(sherd__session_task(p.j.co, &again), 0);
    ask_tier(&p, &l, 1, PLAN);
    settle(&p);
    assert_int_equal(p.refusals, 1);
    assert_int_equal(p.refused[0].task, 77);
    is_expected(&p, &l, PLAN);
    cut(&p);
    stop();
}

/* With a compute thread: the pass starts with tier 0's task. */
static void a_pass_starts_before_the_last_parameters_and_restarts_if_they_are_late(void **s)
{
    (void)s;
    for (unsigned late = 0; late < 4; late++) {
        peer p;
        layout l = usual();
        uint8_t bytes[1024];
        size_t len = write_plan(&l, bytes);
        for (unsigned i = 0; i < 2; i++) /* too long for the loop's thread */
            l.shard[i].local = (sherd__local_steps){ .steps = 400, .rate = 0.01, .weight = 1 };
        if (late >= 2) use_device(0, 2);
        len = write_plan(&l, bytes);
        start(16 * MB, true);
        join(&p);
        put_examples(&p);
        put(&p, PLAN, SHERD_I64, 1, len / 8, bytes);
        ask_tier(&p, &l, 0, PLAN);
        settle(&p);
        assert_int_equal(sherd__executor_pending(executor), 1);
        if (late % 2) usleep((SHERD__ROUND_WAIT_MS + 300) * 1000);
        settle(&p);
        ask_tier(&p, &l, 1, PLAN);
        for (unsigned i = 0; i < 60000 && p.results < 2; i++) {
            settle(&p);
            sherd__worker_poll(worker);
            usleep(1000);
        }
        is_expected(&p, &l, PLAN);
        assert_int_equal(p.refusals, 0);
        cut(&p);
        stop();
        drop_device();
    }
}

/* The compute thread serves all clients, and one coordinator chooses the number of steps. */
static void local_steps_end(bool dropped)
{
    peer p;
    layout l = usual();
    uint8_t bytes[1024];
    for (unsigned i = 0; i < 2; i++)
        l.shard[i].local = (sherd__local_steps){ .steps = UINT32_MAX, .rate = 1e-9, .weight = 1 };
    size_t len = write_plan(&l, bytes);
    start(16 * MB, true);
    join(&p);
    put_examples(&p);
    put(&p, PLAN, SHERD_I64, 1, len / 8, bytes);
    ask_tier(&p, &l, 0, PLAN);
    ask_tier(&p, &l, 1, PLAN);
    settle(&p);
    usleep(20000);
    assert_int_equal(sherd__executor_pending(executor), 1);
    if (dropped) assert_int_equal(sherd__session_drop(p.j.co, JOB, 0), 0);
    if (dropped) joined_exchange(&p.j);
    else cut(&p);
    for (unsigned i = 0; i < 60000 && sherd__executor_pending(executor); i++) {
        sherd__executor_drain(executor);
        usleep(1000);
    }
    assert_int_equal(sherd__executor_pending(executor), 0);
    if (dropped) {
        settle(&p);
        assert_int_equal(p.results, 0);
        assert_int_equal(p.refusals, TIERS); /* each task is answered once */
        for (unsigned t = 0; t < TIERS; t++)
            assert_int_equal(p.refused[t].code, SHERD_EINTERRUPTED);
        l = usual();
        put_examples(&p); /* the job can be used again */
        ask(&p, &l, PLAN);
        for (unsigned i = 0; i < 60000 && p.results < TIERS; i++) {
            settle(&p);
            sherd__worker_poll(worker);
            usleep(1000);
        }
        is_expected(&p, &l, PLAN);
        cut(&p);
    }
    stop();
}

static void local_steps_end_with_their_session(void **s)
{
    (void)s;
    local_steps_end(false);
    use_device(0, 2);
    local_steps_end(false);
    drop_device();
}

static void local_steps_end_with_their_job(void **s)
{
    (void)s;
    local_steps_end(true);
    use_device(0, 2);
    local_steps_end(true);
    drop_device();
}

/* One device that accepts one call at a time: a task that found it busy with a pass is tried again,
 * even if it is the only task. */
static void a_device_serves_passes_and_tasks_of_other_clients(void **s)
{
    (void)s;
    enum { SIDE = 20, SQUARE = 3, ROUNDS = 4 };
    static const uint32_t tasks[ROUNDS] = { 1, 1, 1, 20 };
    static double square[SIDE * SIDE];
    peer p, q;
    layout l = usual();
    uint32_t asked = 0;
    for (unsigned i = 0; i < 2; i++)
        l.shard[i].local = (sherd__local_steps){ .steps = 25, .rate = 0.01, .weight = 1 };
    for (size_t i = 0; i < SIDE * SIDE; i++) square[i] = (double)(i % 7);
    use_device(200, 0);
    start(16 * MB, true);
    join(&p);
    join(&q);
    put_examples(&p);
    joined_put(&q.j, JOB, SQUARE, SHERD_F64, SIDE, SIDE, square);
    for (uint32_t r = 0; r < ROUNDS; r++) {
        l.plan.params = 20 + 10 * r;
        ask(&p, &l, PLAN + 20 + 10 * r);
        settle(&p);
        usleep(2000); /* the pass has started */
        for (uint32_t k = 0; k < tasks[r]; k++)
            joined_ask(&q.j, JOB, ++asked, SHERD__OP_MULTIPLY, SQUARE, SQUARE, SHERD_F64, SIDE,
                       SIDE);
        for (unsigned i = 0; i < 20000 && (q.results < asked || p.results < 2 * (r + 1)); i++) {
            settle(&p);
            settle(&q);
            sherd__worker_poll(worker);
            usleep(200);
        }
        assert_int_equal(q.results, asked);
        assert_int_equal(p.refusals + q.refusals, 0);
        is_expected(&p, &l, PLAN + 20 + 10 * r);
    }
    assert_true(threaded_refused(device) > 0);
    cut(&p);
    cut(&q);
    stop();
    drop_device();
}

static uint64_t used(void)
{
    return sherd__worker_memory(worker)->used;
}

/* Drops the job. The loop has turns in which nothing arrives from the compute thread. */
static void drop_job(peer *p)
{
    assert_int_equal(sherd__session_drop(p->j.co, JOB, 0), 0);
    for (int i = 0; i < 4; i++) {
        joined_exchange(&p->j);
        sherd__worker_poll(worker);
    }
}

/* The network's memory counts until then, and a following one may use it. A network that was never
 * used has no pages, and is freed at once. */
static void the_compute_thread_frees_a_network(void **s)
{
    (void)s;
    peer p;
    layout l = usual();
    uint64_t first = 0;
    turns = true;
    start(16 * MB, false);
    join(&p);
    for (unsigned n = 0; n < 2; n++) {
        put_examples(&p);
        ask(&p, &l, 50 + n);
        joined_exchange(&p.j);
        sherd__worker_poll(worker);
        if (n == 0) first = used();
        else
            assert_true(used() < first + 1024); /* a network has more; its end is not yet
                                                  * reported */
        for (unsigned i = 0; n == 0 && i < 100 && p.results < TIERS; i++) {
            settle(&p);
            sherd__worker_poll(worker);
        }
        assert_int_equal(p.results, TIERS * (n + 1));
        assert_int_equal(sherd__executor_pending(executor), n); /* the end of the first one */
        if (n == 0) drop_job(&p);
    }
    settle(&p);
    drop_job(&p);
    assert_int_equal(sherd__executor_drain(executor), 1);
    uint8_t bytes[1024];
    size_t len = write_plan(&l, bytes);
    sherd__task task = task_of(&l, TIERS - 1, 60);
    task.result.cols++;
    task.result.len += 8;
    put_examples(&p);
    put(&p, 60, SHERD_I64, 1, len / 8, bytes);
    assert_int_equal(sherd__session_task(p.j.co, &task), 0);
    joined_exchange(&p.j);
    assert_int_equal(p.refusals, 1);
    drop_job(&p);
    assert_int_equal(sherd__executor_pending(executor), 0);
    cut(&p);
    stop();
    turns = false;
}

/* The compute thread is busy with a long task: its queue keeps room for others. */
static void the_number_of_networks_that_wait_to_be_freed_is_bounded(void **s)
{
    enum { MANY = 600, MOST = 512 };
    (void)s;
    peer p;
    layout l = usual();
    turns = true;
    start(16 * MB, false);
    join(&p);
    for (unsigned n = 1; n <= MANY; n++) {
        put_examples(&p);
        ask(&p, &l, 50);
        drop_job(&p);
        assert_int_equal(p.results, TIERS);
        p.results = 0;
        assert_int_equal(sherd__executor_pending(executor), n < MOST ? n : MOST);
    }
    cut(&p);
    stop();
    turns = false;
}

static void a_failed_allocation_does_no_harm(void **s)
{
    (void)s;
    for (size_t n = 1; n < 120; n++) {
        peer p;
        layout l = usual();
        start(16 * MB, false);
        join(&p);
        put_examples(&p);
        settle(&p);
        ask(&p, &l, PLAN);
        sherd__alloc_fail_nth(n);
        settle(&p);
        sherd__alloc_fail_nth(0);
        settle(&p);
        cut(&p);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_is_answered_from_the_top_tier_with_a_graders_results),
        cmocka_unit_test(blocks_that_a_plan_drops_are_freed_after_the_round),
        cmocka_unit_test(an_invalid_plan_does_no_harm_and_every_task_is_answered_once),
        cmocka_unit_test(a_plan_truncated_anywhere_is_refused),
        cmocka_unit_test(inconsistent_requests_are_refused_with_the_reason),
        cmocka_unit_test(a_cancelled_task_or_an_ended_session_leaves_nothing_behind),
        cmocka_unit_test(a_tier_that_is_requested_twice_is_refused),
        cmocka_unit_test(a_pass_starts_before_the_last_parameters_and_restarts_if_they_are_late),
        cmocka_unit_test(local_steps_end_with_their_session),
        cmocka_unit_test(local_steps_end_with_their_job),
        cmocka_unit_test(a_device_serves_passes_and_tasks_of_other_clients),
        cmocka_unit_test(the_compute_thread_frees_a_network),
        cmocka_unit_test(the_number_of_networks_that_wait_to_be_freed_is_bounded),
        cmocka_unit_test(a_failed_allocation_does_no_harm),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
