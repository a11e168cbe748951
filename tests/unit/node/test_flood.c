/*
 * The work that one coordinator can cause at a node with few bytes: records about absent jobs, jobs
 * of very many tasks and blocks, tasks that take no time. Measured in freed objects and in
 * processor time, with a full table.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "node/account.h"
#include "node/backends/hosted.h"
#include "node/worker.h"
#include "sherd/mat.h"
#include "tests/support/joined.h"

#define MB ((uint64_t)1 << 20)

enum {
    TASKS = 130000,
    BLOCKS = 100000,
    CANCELS = 2900 /* 93 KB */,
    OTHER = 8,
    LONG = 100 /* of a matrix whose square is too long a task for the loop's thread */
};

typedef struct peer {
    joined j;
    uint32_t results, refusals;
} peer;

static sherd__executor *executor;
static sherd__worker *worker;
static unsigned wakes;

static int fake_compute(void *ctx, const sherd__call *c, const sherd__fragment *left,
                        const sherd__fragment *right, sherd_diag *d)
{
    (void)ctx, (void)left, (void)right, (void)d;
    memset(c->out, 0, c->task->result.len);
    return SHERD_OK;
}

static int fake_submit(void *ctx, sherd__call *c, sherd_diag *d)
{
    return sherd__hosted_submit(ctx, fake_compute, c, d);
}

static const sherd__backend fake = { .abi = SHERD__BACKEND_ABI,
                                     .name = "fake",
                                     .hold = sherd__hosted_hold,
                                     .drop = sherd__hosted_drop,
                                     .submit = fake_submit,
                                     .cancel = sherd__hosted_cancel,
                                     .multiplier = sherd__hosted_multiplier,
                                     .compute = fake_compute };

static void note_wake(void *ctx)
{
    (void)ctx;
    wakes++;
}

static void start_with(uint64_t memory, double gflops, bool turns)
{
    sherd__worker_options o = { .backend = &fake, .memory = memory };
    const sherd__device device = { .does = SHERD__DOES_ALL, .depth = 2, .gflops = gflops };
    o.devices = &device;
    o.devices_len = 1;
    if (turns) o.wake = note_wake;
    assert_int_equal(sherd__executor_new_inline(&executor), SHERD_OK);
    o.executor = executor;
    assert_int_equal(sherd__worker_new(&worker, &o), SHERD_OK);
    wakes = 0;
}

static void start(double gflops, bool turns)
{
    start_with(1024 * MB, gflops, turns);
}

static void hear(void *ctx, sherd__event *e)
{
    peer *p = ctx;
    p->results += e->kind == SHERD__EV_RESULT;
    p->refusals += e->kind == SHERD__EV_REFUSED;
}

static void join(peer *p)
{
    memset(p, 0, sizeof *p);
    joined_open(&p->j, worker, hear, p);
}

static uint64_t used(void)
{
    return sherd__worker_memory(worker)->used;
}

/* Runs turns of the loop until it asks for none; returns their number. */
static unsigned turns(void)
{
    unsigned n = 0;
    while (wakes) {
        wakes = 0;
        sherd__worker_poll(worker);
        n++;
    }
    return n;
}

static void stop(void)
{
    do (void)turns();
    while (sherd__executor_drain(executor));
    (void)turns();
    assert_int_equal(sherd__worker_stats_of(worker)->queued, 0);
    sherd__executor_free(executor);
    assert_int_equal(used(), 0);
    sherd__worker_free(worker);
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put_empty(peer *p, uint64_t job, uint32_t number)
{
    joined_put(&p->j, job, number, SHERD_F64, 0, 0, "");
}

static void ask_of(peer *p, uint64_t job, uint32_t number, uint32_t block, uint64_t rows)
{
    sherd__task t = { .job = job,
                      .task = number,
                      .attempt = 1,
                      .op = SHERD__OP_TIMES,
                      .left = block,
                      .right = block,
                      .result = { .origin = SHERD__RESULT,
                                  .dtype = SHERD_F64,
                                  .rows = rows,
                                  .cols = rows,
                                  .len = 8 * rows * rows } };
    assert_int_equal(sherd__session_task(p->j.co, &t), SHERD_OK);
}

static void ask(peer *p, uint64_t job, uint32_t number)
{
    ask_of(p, job, number, 1, 0);
}

/* Asks for very many tasks behind two that the compute thread has. */
static void fill(peer *p, uint64_t job, uint32_t tasks)
{
    static const double numbers[LONG * LONG];
    joined_put(&p->j, OTHER, 1, SHERD_F64, LONG, LONG, numbers);
    for (uint32_t k = 1; k <= 2; k++) ask_of(p, OTHER, k, 1, LONG);
    put_empty(p, job, 1);
    joined_exchange(&p->j);
    for (uint32_t k = 1; k <= tasks; k++) {
        ask(p, job, k);
        if (k % 1000 == 0) joined_exchange(&p->j);
    }
    joined_exchange(&p->j);
    assert_int_equal(p->refusals, 0);
}

static void records_about_absent_jobs_are_cheap_even_with_many_tasks(void **s)
{
    (void)s;
    peer p;
    start(0, false);
    join(&p);
    fill(&p, 9, TASKS);
    assert_int_equal(sherd__worker_stats_of(worker)->queued, TASKS + 2);
    double from = cpu_s();
    for (uint32_t k = 0; k < CANCELS; k++)
        assert_int_equal(sherd__session_cancel(p.j.co, 1000 + k, 0, 0), SHERD_OK);
    joined_exchange(&p.j);
    double cancels = cpu_s() - from;
    for (uint32_t k = 0; k < CANCELS; k++)
        assert_int_equal(sherd__session_drop(p.j.co, 1000 + k, 0), SHERD_OK);
    joined_exchange(&p.j);
    double drops = cpu_s() - from - cancels;
    print_message("# %d CANCELs: %.1f ms, %d DROPs: %.1f ms\n", CANCELS, 1e3 * cancels, CANCELS,
                  1e3 * drops);
    assert_true(cancels < 0.25 && drops < 0.25);
    assert_int_equal(sherd__worker_stats_of(worker)->queued, TASKS + 2);
    joined_cut(&p.j);
    stop();
}

static void a_cancelled_job_of_many_tasks_is_freed_in_slices(void **s)
{
    (void)s;
    peer p;
    start(0, true);
    join(&p);
    fill(&p, 9, TASKS);
    sherd__session *no = p.j.no;
    sherd__event e = { .kind = SHERD__EV_CANCEL, .job = 9, .task = { .job = 9 } };
    const sherd__worker_stats *st = sherd__worker_stats_of(worker);
    sherd__worker_event(p.j.client, no, &e);
    assert_true(st->queued >= TASKS - 600 && wakes);
    uint64_t most = 0;
    while (wakes) {
        uint64_t before = st->queued;
        wakes = 0;
        sherd__worker_poll(worker);
        if (before - st->queued > most) most = before - st->queued;
    }
    assert_true(most > 0 && most <= 15000);
    assert_true(st->queued <= 2); /* with the compute thread */
    joined_cut(&p.j);
    stop();
}

static void cancels_of_many_jobs_free_no_more_in_a_turn_than_one(void **s)
{
    enum { MANY = 100, EACH = 100 };
    (void)s;
    peer p;
    start(0, true);
    join(&p);
    fill(&p, 9, 0);
    for (uint32_t j = 0; j < MANY; j++) {
        put_empty(&p, 100 + j, 1);
        for (uint32_t k = 1; k <= EACH; k++) ask(&p, 100 + j, k);
        joined_exchange(&p.j);
    }
    const sherd__worker_stats *st = sherd__worker_stats_of(worker);
    uint64_t before = st->reaped;
    for (uint32_t j = 0; j < MANY; j++)
        assert_int_equal(sherd__session_cancel(p.j.co, 100 + j, 0, 0), SHERD_OK);
    joined_exchange(&p.j);
    assert_true(st->reaped > before && st->reaped - before <= 512 && wakes);
    wakes = 0;
    sherd__worker_poll(worker);
    assert_true(st->reaped - before <= 512 + 1024);
    joined_cut(&p.j);
    stop();
}

/* The session's answers as well: some at once, the rest with its timer. */
static void a_cancelled_job_is_answered_in_slices(void **s)
{
    enum { SOME = 20000 };
    (void)s;
    peer p;
    start(0, true);
    join(&p);
    fill(&p, 9, SOME);
    /* Bypasses the coordinator's session, which would drop the answers. */
    uint8_t bytes[32] = { 0 };
    const uint8_t *from;
    size_t taken;
    sherd__event e;
    assert_int_equal(sherd__session_cancel(p.j.co, 9, 0, 0), SHERD_OK);
    assert_int_equal(sherd__session_pending(p.j.co, 1, &from), sizeof bytes);
    memcpy(bytes, from, sizeof bytes);
    sherd__session_sent(p.j.co, sizeof bytes);
    assert_int_equal(sherd__session_feed(p.j.no, bytes, sizeof bytes, 1, &taken, &e), SHERD_OK);
    assert_int_equal(e.kind, SHERD__EV_CANCEL);
    sherd__worker_event(p.j.client, p.j.no, &e);
    uint64_t before = sherd__session_stats_of(p.j.no)->refusals;
    assert_true(before > 0 && before < 1000);
    unsigned ticks = 0;
    while (sherd__session_deadline(p.j.no) == 0) {
        sherd__session_tick(p.j.no, 1, &e);
        assert_int_equal(e.kind, SHERD__EV_NONE);
        uint64_t now = sherd__session_stats_of(p.j.no)->refusals;
        assert_true(now - before <= 4096);
        before = now;
        ticks++;
    }
    assert_int_equal(before, SOME);
    assert_true(ticks > 4);
    joined_cut(&p.j);
    stop();
}

/* The block that a new task names belongs to a cancelled task that drops it. Making room for the
 * new task frees the cancelled tasks, and must not leave the new task with a freed block. */
static void a_task_over_a_block_that_is_freed_to_make_room_is_refused(void **s)
{
    enum { SIDE = 602, SMALL = 700, LAST = 5000 };
    static const double numbers[SIDE * SIDE];
    (void)s;
    peer p;
    start_with(8 * MB, 0, true);
    join(&p);
    joined_put(&p.j, OTHER, 1, SHERD_F64, LONG, LONG, numbers);
    for (uint32_t k = 1; k <= 2; k++) ask_of(&p, OTHER, k, 1, LONG);
    joined_put(&p.j, 9, 1, SHERD_F64, SIDE, SIDE, numbers);
    put_empty(&p, 9, 2);
    joined_exchange(&p.j);
    sherd__task t = { .job = 9,
                      .task = 1,
                      .attempt = 1,
                      .op = SHERD__OP_TIMES,
                      .left = 1,
                      .right = 1,
                      .flags = SHERD__DROP_LEFT,
                      .result = { .origin = SHERD__RESULT,
                                  .dtype = SHERD_F64,
                                  .rows = SIDE,
                                  .cols = SIDE,
                                  .len = 8 * SIDE * SIDE } };
    assert_int_equal(sherd__session_task(p.j.co, &t), SHERD_OK);
    for (uint32_t k = 2; k <= SMALL; k++) ask_of(&p, 9, k, 2, 0);
    joined_exchange(&p.j);
    assert_int_equal(p.refusals, 0);
    assert_int_equal(sherd__session_cancel(p.j.co, 9, 0, 0), SHERD_OK);
    ask_of(&p, 9, LAST, 1, SIDE);
    joined_exchange(&p.j);
    assert_int_equal(p.refusals, 1);
    assert_int_equal(p.results, 0);
    joined_cut(&p.j);
    stop();
}

static void a_dropped_job_of_many_blocks_is_freed_in_slices_or_on_demand(void **s)
{
    const uint64_t budget = 160 * MB;
    (void)s;
    peer p;
    start_with(budget, 0, true);
    join(&p);
    for (uint32_t k = 1; k <= BLOCKS; k++) {
        put_empty(&p, 9, k);
        if (k % 1000 == 0) joined_exchange(&p.j);
    }
    uint64_t full = used();
    assert_int_equal(p.refusals, 0);
    assert_int_equal(sherd__session_drop(p.j.co, 9, 0), SHERD_OK);
    joined_exchange(&p.j);
    assert_true(used() > full - full / 50 && wakes);
    put_empty(&p, 9, 1); /* its numbers can be used again at once */
    joined_exchange(&p.j);
    assert_int_equal(p.refusals, 0);
    wakes = 0;
    sherd__worker_poll(worker);
    assert_true(wakes && used() > full - full / 20);
    /* If only those blocks can provide the room, they are freed. */
    uint64_t want = budget - used() + full / 40;
    uint8_t *bytes = sherd__calloc(want, 1);
    joined_put(&p.j, 9, 7, SHERD_U8, 1, want, bytes);
    joined_exchange(&p.j);
    sherd__free(bytes);
    assert_int_equal(p.refusals, 0);
    joined_cut(&p.j);
    stop();
}

static void put_many(peer *p, uint32_t blocks)
{
    for (uint32_t k = 1; k <= blocks; k++) {
        put_empty(p, 9, k);
        if (k % 1000 == 0) joined_exchange(&p->j);
    }
    joined_exchange(&p->j);
}

static void put_bytes(peer *p, uint64_t len)
{
    uint8_t *bytes = sherd__calloc(len, 1);
    assert_non_null(bytes);
    joined_put(&p->j, 8, 1, SHERD_U8, 1, len, bytes);
    joined_exchange(&p->j);
    sherd__free(bytes);
}

/* The room that a key has given up is its own, whatever other keys give up and request in the same
 * turn. */
static void blocks_that_a_key_dropped_are_freed_for_that_key_first(void **s)
{
    enum { FEW = 4000, MANY = 40000 };
    static const sherd__fingerprint keys[3] = { { .sha256 = { 1 } },
                                                { .sha256 = { 2 } },
                                                { .sha256 = { 3 } } };
    (void)s;
    for (int both = 0; both <= 1; both++) {
        peer few, many[2];
        memset(&few, 0, sizeof few);
        memset(many, 0, sizeof many);
        start_with(256 * MB, 0, true);
        joined_open_as(&few.j, worker, &keys[0], 256 * MB, hear, &few);
        uint64_t before = used();
        put_many(&few, FEW);
        uint64_t part = used() - before;
        for (int i = 0; i < 2; i++) {
            joined_open_as(&many[i].j, worker, &keys[1 + i], 256 * MB, hear, &many[i]);
            put_many(&many[i], MANY);
        }
        (void)turns();
        sherd__pool_limit(sherd__worker_account(few.j.client)->pool, part + MB / 2);
        sherd__pool_limit(sherd__worker_account(many[0].j.client)->pool, part);
        assert_int_equal(sherd__session_drop(few.j.co, 9, 0), SHERD_OK);
        joined_exchange(&few.j);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(sherd__session_drop(many[i].j.co, 9, 0), SHERD_OK);
            joined_exchange(&many[i].j);
        }
        if (both) put_bytes(&many[0], 256 * MB); /* more than can be freed */
        assert_int_equal(many[0].refusals, both);
        put_bytes(&few, part / 2);
        assert_int_equal(few.refusals, 0);
        joined_cut(&few.j);
        for (int i = 0; i < 2; i++) joined_cut(&many[i].j);
        stop();
    }
}

/* For any number of keys that request room in one turn, each from its own dropped blocks. */
static void freeing_on_demand_is_bounded_over_all_keys(void **s)
{
    enum { KEYS = 10, EACH = 5000, MOST = 2 * 16384 + 512 };
    (void)s;
    peer p[KEYS];
    memset(p, 0, sizeof p);
    start_with(256 * MB, 0, true);
    for (unsigned i = 0; i < KEYS; i++) {
        const sherd__fingerprint key = { .sha256 = { 1 + (uint8_t)i } };
        joined_open_as(&p[i].j, worker, &key, 256 * MB, hear, &p[i]);
    }
    uint64_t before = used();
    for (unsigned i = 0; i < KEYS; i++) put_many(&p[i], EACH);
    (void)turns();
    uint64_t part = used() - before;
    for (unsigned i = 0; i < KEYS; i++) {
        const sherd__account *a = sherd__worker_account(p[i].j.client);
        sherd__pool_limit(a->pool, sherd__pool_stats_of(a->pool)->used);
        assert_int_equal(sherd__session_drop(p[i].j.co, 9, 0), SHERD_OK);
        joined_exchange(&p[i].j);
    }
    for (unsigned i = 0; i < KEYS; i++) put_bytes(&p[i], 256 * MB); /* more than can be freed */
    assert_in_range(used() - before, part - part * MOST / (KEYS * EACH), part);
    for (unsigned i = 0; i < KEYS; i++) joined_cut(&p[i].j);
    stop();
}

static void tasks_that_take_no_time_run_in_slices(void **s)
{
    enum { SOME = 20000 };
    (void)s;
    peer p;
    start(1e9, true);
    join(&p);
    put_empty(&p, 9, 1);
    for (uint32_t k = 1; k <= SOME; k++) ask(&p, 9, k);
    joined_exchange(&p.j);
    assert_true(p.results < 2000 && wakes);
    uint32_t before = p.results, most = 0;
    while (wakes) {
        wakes = 0;
        sherd__worker_poll(worker);
        joined_exchange(&p.j);
        if (p.results - before > most) most = p.results - before;
        before = p.results;
    }
    assert_int_equal(p.results, SOME);
    assert_true(most < 2000);
    joined_cut(&p.j);
    stop();
}

/* Cuts the connection and runs turns until everything is freed, with a limited number of records in
 * each turn. */
static void leave_behind(peer *p, uint64_t least)
{
    const sherd__worker_stats *st = sherd__worker_stats_of(worker);
    uint64_t full = used(), before = st->reaped, most = 0;
    unsigned n = 0;
    joined_cut(&p->j);
    assert_true(used() > full - full / 20 && wakes);
    for (; wakes; n++) {
        wakes = 0;
        if (st->reaped - before > most) most = st->reaped - before;
        before = st->reaped;
        sherd__worker_poll(worker);
    }
    assert_true(most <= 1024);
    assert_true(st->reaped >= least && n >= least / 1024);
    stop();
}

/* Twice the tasks, since the session has a table of them, too. */
static void data_of_a_client_that_disconnects_are_freed_in_slices(void **s)
{
    (void)s;
    peer p;
    start(0, true);
    join(&p);
    fill(&p, 9, TASKS);
    leave_behind(&p, 2 * TASKS);
}

static void data_of_a_client_with_a_job_for_each_task_are_freed_in_slices(void **s)
{
    (void)s;
    peer p;
    start(0, true);
    join(&p);
    fill(&p, 9, 0);
    for (uint32_t k = 1; k <= TASKS / 2; k++) {
        put_empty(&p, 100 + k, 1);
        ask(&p, 100 + k, 1);
        if (k % 1000 == 0) joined_exchange(&p.j);
    }
    joined_exchange(&p.j);
    assert_int_equal(p.refusals, 0);
    leave_behind(&p, 3 * (TASKS / 2)); /* and its block */
}

static void clients_that_end_together_share_the_slices(void **s)
{
    enum { CLIENTS = 8, EACH = 600 };
    (void)s;
    const sherd__worker_stats *st;
    peer many[CLIENTS];
    start(0, true);
    for (unsigned i = 0; i < CLIENTS; i++) {
        join(&many[i]);
        for (uint32_t k = 1; k <= EACH; k++) put_empty(&many[i], 9, k);
        joined_exchange(&many[i].j);
    }
    st = sherd__worker_stats_of(worker);
    for (unsigned i = 0; i < CLIENTS; i++) joined_cut(&many[i].j);
    assert_int_equal(st->reaped, 0);
    assert_true(turns() >= CLIENTS * EACH / 1024);
    assert_int_equal(st->reaped, CLIENTS * EACH);
    stop();
}

static void unread_answers_are_freed_in_slices(void **s)
{
    enum { SOME = 50000 };
    (void)s;
    peer p;
    start(1e9, true);
    join(&p);
    put_empty(&p, 9, 1);
    joined_exchange(&p.j);
    p.j.paused = true;
    for (uint32_t k = 1; k <= SOME; k++) ask(&p, 9, k);
    joined_exchange(&p.j);
    (void)turns();
    assert_int_equal(sherd__session_stats_of(p.j.no)->results, SOME);
    leave_behind(&p, SOME);
}

static void drop_all(peer *p, uint64_t job, uint32_t blocks)
{
    for (uint32_t k = 1; k <= blocks; k++)
        assert_int_equal(sherd__session_drop(p->j.co, job, k), SHERD_OK);
    joined_exchange(&p->j);
}

/* Bytes are wiped some in each turn: the first client's blocks when the second client connects, and
 * then the blocks that the second client drops. */
static void freed_blocks_are_wiped_in_slices(void **s)
{
    enum { SOME = 32, SIDE = 512, SLICE = 4 << 20, EACH = 8 * SIDE * SIDE };
    static const double numbers[SIDE * SIDE] = { 1 };
    const sherd__pool_stats *m;
    (void)s;
    peer p, q;
    start(0, true);
    m = sherd__worker_memory(worker);
    join(&p);
    for (int both = 0; both < 2; both++) {
        for (uint32_t k = 1; k <= SOME; k++)
            joined_put(&p.j, OTHER, k, SHERD_F64, SIDE, SIDE, numbers);
        joined_exchange(&p.j);
        drop_all(&p, OTHER, SOME);
        if (!both) {
            (void)turns();
            assert_true(m->stale == 0 && m->kept >= (uint64_t)SOME * EACH);
            join(&q);
        }
        unsigned n = 0;
        uint64_t before = m->stale;
        assert_true(wakes && before >= (uint64_t)(SOME - 2) * EACH);
        for (; wakes; n++) {
            wakes = 0;
            sherd__worker_poll(worker);
            assert_true(m->stale + SLICE + EACH + 4096 >= before);
            before = m->stale;
        }
        assert_true(n >= (SOME - 2) * (unsigned)EACH / SLICE && m->stale == 0);
    }
    for (uint32_t k = 1; k <= SOME; k++) joined_put(&q.j, OTHER, k, SHERD_F64, SIDE, SIDE, numbers);
    joined_exchange(&q.j);
    drop_all(&q, OTHER, SOME);
    joined_cut(&p.j);
    joined_cut(&q.j);
    assert_true(m->stale > 0); /* and the node ends with stale bytes */
    sherd__executor_free(executor);
    sherd__worker_free(worker);
}

/* Asks for tasks that are refused; the peer does not read the answers. */
static void ask_refused(peer *p, uint32_t tasks)
{
    p->j.paused = true;
    for (uint32_t k = 1; k <= tasks && p->j.client; k++) {
        ask(p, 9, k); /* of an absent block */
        if (k % 100 == 0) joined_exchange(&p->j);
    }
    joined_exchange(&p->j);
}

static void unread_answers_count_in_the_memory_of_their_key(void **s)
{
    enum { SOME = 20000 };
    static const sherd__fingerprint key = { .sha256 = { 7 } };
    (void)s;
    peer p[3];
    start_with(64 * MB, 0, true);
    memset(p, 0, sizeof p);
    joined_open_as(&p[0].j, worker, &key, 8 * MB, hear, &p[0]);
    uint64_t before = used();
    ask_refused(&p[0], SOME);
    assert_non_null(p[0].j.client);
    assert_true(used() - before > SOME * 40);
    /* Another session of the key has the remaining memory, and its end frees that memory. */
    for (unsigned i = 1; i < 3; i++) {
        joined_open_as(&p[i].j, worker, &key, 3 * MB, hear, &p[i]);
        ask_refused(&p[i], 4 * SOME);
        assert_null(p[i].j.client);
        joined_cut(&p[i].j);
        (void)turns();
    }
    p[0].j.paused = false;
    joined_exchange(&p[0].j);
    assert_int_equal(p[0].refusals, SOME);
    assert_int_equal(used(), before);
    joined_cut(&p[0].j);
    stop();
}

static void tables_are_counted_and_their_hash_keys_are_secret(void **s)
{
    (void)s;
    peer p;
    start(0, false);
    sherd__session_options a = { .role = SHERD__NODE }, b = a, none = a;
    join(&p);
    sherd__worker_session(p.j.client, &a);
    sherd__worker_session(p.j.client, &b);
    assert_memory_not_equal(&a.table_key, &b.table_key, sizeof a.table_key);
    assert_memory_not_equal(&a.table_key, &none.table_key, sizeof a.table_key);
    uint64_t before = used();
    fill(&p, 9, 1000);
    /* Counted: the record of a task, the buffer of its result, and two tables. */
    assert_true(used() - before > 1000 * (576 + 600 + 200));
    joined_cut(&p.j);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_about_absent_jobs_are_cheap_even_with_many_tasks),
        cmocka_unit_test(a_cancelled_job_of_many_tasks_is_freed_in_slices),
        cmocka_unit_test(cancels_of_many_jobs_free_no_more_in_a_turn_than_one),
        cmocka_unit_test(a_cancelled_job_is_answered_in_slices),
        cmocka_unit_test(a_task_over_a_block_that_is_freed_to_make_room_is_refused),
        cmocka_unit_test(a_dropped_job_of_many_blocks_is_freed_in_slices_or_on_demand),
        cmocka_unit_test(blocks_that_a_key_dropped_are_freed_for_that_key_first),
        cmocka_unit_test(freeing_on_demand_is_bounded_over_all_keys),
        cmocka_unit_test(tasks_that_take_no_time_run_in_slices),
        cmocka_unit_test(data_of_a_client_that_disconnects_are_freed_in_slices),
        cmocka_unit_test(data_of_a_client_with_a_job_for_each_task_are_freed_in_slices),
        cmocka_unit_test(clients_that_end_together_share_the_slices),
        cmocka_unit_test(unread_answers_are_freed_in_slices),
        cmocka_unit_test(freed_blocks_are_wiped_in_slices),
        cmocka_unit_test(unread_answers_count_in_the_memory_of_their_key),
        cmocka_unit_test(tables_are_counted_and_their_hash_keys_are_secret),
    };
    return cmocka_run_group_tests_name("node/flood", tests, NULL, NULL);
}
