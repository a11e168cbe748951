/*
 * What a node lets others do in a circle: a coordinator names members, but none that may give tasks
 * here and none but those of --peers; a member brings the blocks of its steps, once each, and
 * nothing else. Every task is answered once, whatever plans say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "learn/circle_plan.h"
#include "learn/member.h"
#include "node/worker.h"
#include "tests/support/draw.h"
#include "tests/support/joined.h"
#include "tests/support/no_backend.h"

static const char text[] = "input = 3\nlayer = dense 2\nloss = squared\n";
enum { COUNT = 8, N = 3, SELF = 1, JOB = 7, CIRCLE = 99, TEXT = 1, STATE = 2, FIRST = 10 };

static sherd_identity *identity[N + 1]; /* of members; the last one is a stranger */
static sherd_executor *executor;
static sherd__worker *worker;
static joined j;
static uint32_t tasks, answered, next_block, opened;
static bool coordinators;               /* member 2's key may give tasks */
static bool calls_off;                  /* whatever is asked, at once */
static int refused;
static uint8_t told[512];               /* the last result */

static const sherd__fingerprint *key(uint32_t member)
{
    return sherd__identity_fingerprint(identity[member]);
}

static bool is_coordinator(void *ctx, const sherd__fingerprint *k)
{
    (void)ctx;
    return coordinators && sherd__fingerprint_equal(k, key(2));
}

static int open_link(void *ctx, void **link, sherd__circle *c, uint32_t member,
                     const sherd__peer *peer)
{
    (void)ctx, (void)c;
    assert_true(sherd__fingerprint_equal(&peer->key, key(member)));
    *link = &opened;
    opened++;
    return SHERD_OK;
}

static void no_link(void *ctx, void *link)
{
    (void)ctx, (void)link;
}

/* ---- a coordinator's session --------------------------------------------------------------- */

static void hear(void *ctx, sherd__event *e)
{
    (void)ctx;
    if (e->kind != SHERD__EV_RESULT && e->kind != SHERD__EV_REFUSED) return;
    answered++;
    if (e->kind == SHERD__EV_RESULT && e->task.result.len <= sizeof told)
        memcpy(told, sherd__fragment_bytes(e->fragment), (size_t)e->task.result.len);
    refused = e->kind == SHERD__EV_REFUSED ? e->refusal.code : 0;
}

static void settle(void)
{
    joined_settle(&j, executor);
}

static void put(uint32_t block, uint8_t dtype, const void *bytes, size_t cols)
{
    joined_put(&j, JOB, block, dtype, 1, cols, bytes);
}

/* Its answer: 0 or the code of the refusal; 1: none yet. */
static int ask(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t cols)
{
    sherd__task t = { .job = JOB, .task = ++tasks, .attempt = 1, .op = op, .left = left,
                      .right = right, .result = { .origin = SHERD__RESULT, .dtype = dtype,
                                                  .rows = 1, .cols = cols, .len = 8 * cols } };
    uint32_t before = answered;
    assert_int_equal(sherd__session_task(j.co, &t), 0);
    if (calls_off) {
        while (joined_move(&j, true)) {}
        assert_int_equal(sherd__session_cancel(j.co, JOB, 0, 0), 0);
    }
    settle();
    return answered == before ? 1 : refused;
}

static void nobody(void *ctx)
{
    (void)ctx;
}

static void start_on(bool threaded, const sherd__peers *peers)
{
    double params[COUNT] = { 0.5, -0.25 };
    for (uint32_t i = 0; i <= N; i++)
        if (!identity[i]) assert_int_equal(sherd__identity_new(&identity[i]), 0);
    assert_int_equal(threaded ? sherd__executor_new(&executor, 16, nobody, NULL)
                              : sherd__executor_new_inline(&executor), 0);
    sherd__worker_options o = { .backend = &none, .memory = (uint64_t)1 << 22,
                                .executor = executor,
                                .self = { .identity = identity[SELF], .peers = peers },
                                .links = { open_link, no_link, no_link, NULL },
                                .coordinator = is_coordinator };
    assert_int_equal(sherd__worker_new(&worker, &o), 0);
    joined_open(&j, worker, hear, NULL);
    tasks = answered = opened = 0;
    next_block = FIRST;
    put(TEXT, SHERD_U8, text, strlen(text));
    put(STATE, SHERD_F64, params, COUNT);
}

static void start(const sherd__peers *peers)
{
    start_on(false, peers);
}

static void stop(void)
{
    joined_cut(&j);
    assert_int_equal(sherd__worker_member(worker, key(0)), 0);
    assert_int_equal(sherd__worker_stats_of(worker)->queued, 0);
    assert_int_equal(sherd__worker_memory(worker)->used, 0);
    sherd__worker_free(worker);
    sherd__executor_free(executor);
}

/* ---- questions ----------------------------------------------------------------------------- */

static sherd__circle_plan usual(void)
{
    return (sherd__circle_plan){ .kind = SHERD__REDUCE_RING, .members = N, .self = SELF,
                                 .id = CIRCLE, .recipe = TEXT, .state = STATE, .bits = 20,
                                 .batch = 4, .examples = 6, .optimiser = { .method = SHERD__SGD } };
}

static int meet_of(const sherd__circle_plan *p, const uint32_t *who, uint32_t n)
{
    uint8_t plan[8 * SHERD__CIRCLE_PLAN];
    char roster[1024];
    size_t len = 0;
    for (uint32_t i = 0; i < n; i++) {
        char fp[SHERD__FINGERPRINT_TEXT];
        sherd__fingerprint_text(key(who[i]), fp);
        len += (size_t)snprintf(roster + len, sizeof roster - len, "127.0.0.1:%u key=%s\n",
                                7000 + i, fp);
    }
    sherd__circle_plan_write(plan, p);
    put(next_block, SHERD_I64, plan, SHERD__CIRCLE_PLAN);
    put(next_block + 1, SHERD_U8, roster, len);
    next_block += 2;
    return ask(SHERD__OP_MEET, next_block - 2, next_block - 1, SHERD_I64, 1);
}

static int meet_with(const sherd__circle_plan *p, const uint32_t who[N])
{
    return meet_of(p, who, N);
}

static int meet_alone(const sherd__circle_plan *p)
{
    return meet_of(p, (const uint32_t[]){ SELF }, 1);
}

static int meet(void)
{
    static const uint32_t who[N] = { 0, 1, 2 };
    sherd__circle_plan p = usual();
    return meet_with(&p, who);
}

/* A round without shards of this node's own: it takes part with a sum of nothing. */
static int step(uint64_t round, uint64_t commit)
{
    uint8_t bytes[8 * (SHERD__CIRCLE_STEP + SHERD__PLAN_HEAD + 1)];
    const int32_t scale = 20;
    sherd__circle_round r = { .round = round, .commit = commit, .rate = 0.5, .by = 3,
                              .list = { SHERD__ROWS_GIVEN, 6, 6, { 0 } } };
    sherd__plan p = { .recipe = TEXT, .bits = 20, .room = 40, .tiers = 1, .params = 1,
                      .batch = 4 };
    sherd__circle_round_write(bytes, &r);
    sherd__plan_write(bytes + 8 * SHERD__CIRCLE_STEP, &p, &scale);
    put(next_block++, SHERD_I64, bytes, sizeof bytes / 8);
    return ask(SHERD__OP_STEP, next_block - 1, 0, SHERD_I64, 1);
}

static int reduce(void)
{
    return ask(SHERD__OP_REDUCE, next_block - 1, 0, SHERD_F64, 1 + SHERD__CIRCLE_FIGURES);
}

static uint64_t len_of(uint32_t step_number)
{
    sherd__reduce_step s = sherd__reduce_step_of(SHERD__REDUCE_RING, N, SELF, step_number);
    return 8 * sherd__reduce_len(COUNT, N, s.in);
}

/* As a connection of this member would: 1 where there is no place for it. */
static int bring(uint32_t member, uint64_t id, uint32_t number, uint64_t len, uint8_t dtype)
{
    sherd_fragment *f;
    uint8_t *bytes = sherd__worker_member_place(worker, key(member), id, number, len);
    if (!bytes) return 1;
    memset(bytes, 0, len);
    sherd__fragment_info i = { .origin = SHERD__HIDDEN, .dtype = dtype, .rows = 1,
                               .cols = len / 8, .len = len };
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, sherd__worker_unplace,
                                          sherd__worker_pool(worker)), 0);
    int err = sherd__worker_member_block(worker, key(member), id, number, f);
    settle();
    return err;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void only_members_of_a_circle_that_stands_may_connect(void **unused)
{
    (void)unused;
    start(NULL);
    assert_int_equal(sherd__worker_member(worker, key(0)), 0);
    assert_int_equal(meet(), 0);
    assert_int_equal(sherd__worker_member(worker, key(0)), CIRCLE);
    assert_int_equal(sherd__worker_member(worker, key(2)), CIRCLE);
    assert_int_equal(sherd__worker_member(worker, key(N)), 0);
    assert_int_equal(sherd__worker_member(worker, key(SELF)), 0);
    assert_int_equal(sherd__session_drop(j.co, JOB, 0), 0);
    settle();
    assert_int_equal(sherd__worker_member(worker, key(0)), 0);
    stop();
}

/* Powers of the betas are made step by step: betas next to 1 and a number would take months. */
static void a_state_after_more_steps_than_anybody_takes_is_refused(void **unused)
{
    enum { LEN = 4 * COUNT + 1 };
    double state[LEN] = { 0.5 };
    sherd__circle_plan p = usual();
    (void)unused;
    start(NULL);
    p.members = 1;
    p.self = 0;
    p.optimiser = (sherd__optimiser_spec){ .method = SHERD__ADAM, .beta1 = 1 - 0x1p-53,
                                           .beta2 = 1 - 0x1p-53 };
    state[LEN - 1] = 0x1p53;
    put(p.state = next_block++, SHERD_F64, state, LEN);
    assert_int_equal(meet_alone(&p), SHERD_EINVAL);
    state[LEN - 1] = 1000;
    put(p.state = next_block++, SHERD_F64, state, LEN);
    assert_int_equal(meet_alone(&p), 0);
    stop();
}

/* Until the compute thread has nothing to do, a minute at most. */
static bool rests(void)
{
    for (unsigned i = 0; i < 60000 && sherd__executor_pending(executor); i++) {
        usleep(1000);
        settle();
    }
    return sherd__executor_pending(executor) == 0;
}

static void local_steps_until(int (*ended)(sherd_session *co))
{
    enum { ROWS = 6 };
    uint8_t bytes[8 * (SHERD__CIRCLE_STEP + SHERD__PLAN_HEAD + 1 + SHERD__PLAN_SHARD)];
    const uint32_t rows[ROWS] = { 0, 1, 2, 3, 4, 5 };
    const double x[ROWS * 3] = { 0.5 }, y[ROWS * 2] = { 0.25 };
    const int32_t scale = 20;
    sherd__circle_plan plan = usual();
    sherd__circle_round r = { .round = 1, .rate = 0.5, .by = 3, .local = true, .packs = 1,
                              .list = { SHERD__ROWS_GIVEN, ROWS, ROWS, { 0 } } };
    sherd__plan p = { .recipe = TEXT, .bits = 20, .room = 40, .tiers = 1, .params = 1, .shards = 1,
                      .batch = 4 };
    sherd__plan_shard shard = { .rows = 4, .local = { .steps = UINT32_MAX, .rate = 1e-9,
                                                      .weight = 1 } };
    sherd__task step = { .job = JOB, .task = 500, .attempt = 1, .op = SHERD__OP_STEP,
                         .result = { .origin = SHERD__RESULT, .dtype = SHERD_I64, .rows = 1,
                                     .cols = 3, .len = 24 } };
    start_on(true, NULL);
    plan.members = 1;
    plan.self = 0;
    (void)meet_alone(&plan);
    assert_true(rests() && answered == 1 && refused == 0);
    put(sherd__circle_pack(0), SHERD_U32, rows, ROWS);
    joined_put(&j, JOB, sherd__circle_pack(0) + 1, SHERD_F64, ROWS, 3, x);
    joined_put(&j, JOB, sherd__circle_pack(0) + 2, SHERD_F64, ROWS, 2, y);
    sherd__circle_round_write(bytes, &r);
    sherd__plan_write(bytes + 8 * SHERD__CIRCLE_STEP, &p, &scale);
    sherd__plan_write_shard(bytes + 8 * SHERD__CIRCLE_STEP, &p, 0, &shard);
    put(step.left = next_block++, SHERD_I64, bytes, sizeof bytes / 8);
    assert_int_equal(sherd__session_task(j.co, &step), 0);
    settle();
    usleep(20000);
    assert_int_equal(sherd__executor_pending(executor), 1);
    assert_int_equal(ended(j.co), 0);
    settle();
    assert_true(rests());
    stop();
}

static int drop_job(sherd_session *co)
{
    return sherd__session_drop(co, JOB, 0);
}

static int cancel_job(sherd_session *co)
{
    return sherd__session_cancel(co, JOB, 0, false);
}

static void local_steps_end_with_the_job_that_asked_for_them(void **unused)
{
    (void)unused;
    local_steps_until(drop_job);
}

static void local_steps_end_when_their_round_is_called_off(void **unused)
{
    (void)unused;
    local_steps_until(cancel_job);
}

static void a_member_brings_the_blocks_of_its_steps_and_nothing_else(void **unused)
{
    (void)unused;
    start(NULL);
    assert_int_equal(meet(), 0);
    assert_int_equal(step(1, 0), 0);
    uint32_t first = sherd__circle_block(1, 0);
    uint64_t len = len_of(0);
    assert_int_equal(bring(N, CIRCLE, first, len, SHERD_I64), 1);      /* a stranger */
    assert_int_equal(bring(2, CIRCLE, first, len, SHERD_I64), 1);      /* not this member's step */
    assert_int_equal(bring(0, CIRCLE + 1, first, len, SHERD_I64), 1);  /* another circle */
    assert_int_equal(bring(0, JOB, first, len, SHERD_I64), 1);         /* the coordinator's job */
    assert_int_equal(bring(0, CIRCLE, first, len + 8, SHERD_I64), 1);
    assert_int_equal(bring(0, CIRCLE, first, len - 8, SHERD_I64), 1);
    assert_int_equal(bring(0, CIRCLE, first, 0, SHERD_I64), 1);
    assert_int_equal(bring(0, CIRCLE, sherd__circle_block(1, 4), len_of(0), SHERD_I64), 1);
    assert_int_equal(bring(0, CIRCLE, 1u << 8, len, SHERD_I64), 1);    /* no step at all */
    assert_int_equal(bring(0, CIRCLE, first, len, SHERD_F64), SHERD_EUNASKED);
    uint32_t later = sherd__circle_block(1, 1);
    assert_int_equal(bring(0, CIRCLE, later, len_of(1), SHERD_I64), 0); /* early: it waits */
    assert_int_equal(bring(0, CIRCLE, later, len_of(1), SHERD_I64), SHERD_EUNASKED); /* twice */
    stop();
}

/* Whatever numbers a member makes up, memory stays what one round may bring. */
static void a_member_that_floods_fills_no_more_than_its_places(void **unused)
{
    (void)unused;
    start(NULL);
    assert_int_equal(meet(), 0);
    uint64_t before = sherd__worker_memory(worker)->used;
    for (unsigned i = 0; i < 5000; i++)
        (void)bring((uint32_t)(draw() % 2) * 2, CIRCLE, (uint32_t)draw(),
                    len_of((uint32_t)(draw() % 4)), SHERD_I64);
    for (uint64_t round = 1; round < 2000; round++)
        for (uint32_t s = 0; s < 4; s++)
            (void)bring(s < 2 ? 0 : 2, CIRCLE, sherd__circle_block(round, s), len_of(s),
                        SHERD_I64);
    assert_true(sherd__worker_memory(worker)->used - before < 4 * (1024 + 512));
    stop();
}

static void a_roster_that_this_node_does_not_believe_is_refused(void **unused)
{
    (void)unused;
    static const uint32_t moved[N] = { 1, 0, 2 }, absent[N] = { 0, 3, 2 }, good[N] = { 0, 1, 2 };
    sherd__peer friends[2] = { { .has_key = true }, { .has_key = true } };
    sherd__circle_plan p = usual();
    start(NULL);
    assert_int_equal(meet_with(&p, moved), SHERD_EAUTH);
    assert_int_equal(meet_with(&p, absent), SHERD_EAUTH);
    p.members = 2;
    assert_int_equal(meet_with(&p, good), SHERD_EFORMAT); /* three lines for two */
    p.members = N;
    coordinators = true; /* who may give tasks is no member */
    assert_int_equal(meet_with(&p, good), SHERD_EAUTH);
    coordinators = false;
    assert_int_equal(meet_with(&p, good), 0);
    assert_int_equal(meet_with(&p, moved), SHERD_EAUTH); /* and what stood goes on standing */
    assert_int_equal(sherd__worker_member(worker, key(0)), CIRCLE);
    stop();
    friends[0].key = *key(0);
    friends[1].key = *key(3);
    start(&(sherd__peers){ friends, 2 });
    assert_int_equal(meet_with(&p, good), SHERD_EAUTH); /* 2 is nobody of --peers */
    friends[1].key = *key(2);
    assert_int_equal(meet_with(&p, good), 0);
    stop();
}

static void plans_that_make_no_sense_are_refused(void **unused)
{
    (void)unused;
    static const uint32_t good[N] = { 0, 1, 2 };
    start(NULL);
    assert_int_equal(step(1, 0), SHERD_EINVAL); /* nobody has met */
    sherd__circle_plan p = usual();
    p.state = 0;
    assert_int_equal(meet_with(&p, good), SHERD_EINVAL); /* nothing to go on from */
    p = usual();
    p.state = TEXT;
    assert_int_equal(meet_with(&p, good), SHERD_EINVAL);
    p = usual();
    p.bits = 1;
    assert_int_equal(meet_with(&p, good), SHERD_EFORMAT);
    p = usual();
    p.optimiser.method = SHERD__MOMENTUM;
    p.optimiser.beta1 = 1.5;
    assert_int_equal(meet_with(&p, good), SHERD_EINVAL);
    assert_int_equal(sherd__worker_member(worker, key(0)), 0);
    assert_int_equal(meet(), 0);
    assert_int_equal(step(3, 0), 0);
    assert_int_equal(step(3, 0), SHERD_EINVAL); /* not again */
    assert_int_equal(step(2, 0), SHERD_EINVAL);
    assert_int_equal(step(4, 1), SHERD_EINVAL); /* the sum of a round that never was */
    uint8_t noise[8 * (SHERD__CIRCLE_STEP + SHERD__PLAN_HEAD + 1)];
    for (unsigned i = 0; i < 500; i++) {
        for (size_t k = 0; k < sizeof noise; k++) noise[k] = (uint8_t)(draw() % 3);
        put(next_block++, SHERD_I64, noise, sizeof noise / 8);
        assert_true(ask(SHERD__OP_STEP, next_block - 1, 0, SHERD_I64, 1) < 0);
    }
    stop();
}

static int where(sherd__circle_where *w)
{
    int code = ask(SHERD__OP_WHERE, TEXT, 0, SHERD_I64, SHERD__CIRCLE_WHERE);
    if (!code) assert_true(sherd__circle_where_parse(w, told));
    return code;
}

/* A link that is lost ends the round, and the next one is another. */
static void what_waits_for_a_lost_link_is_refused(void **unused)
{
    (void)unused;
    sherd__circle_where w;
    start(NULL);
    assert_int_equal(meet(), 0);
    assert_int_equal(step(1, 0), 0);
    int answer = reduce(); /* nobody has connected: nothing can be sent */
    assert_true(answer < 0);
    assert_int_equal(where(&w), 0);
    assert_int_equal(w.phase, SHERD__CIRCLE_BROKEN);
    assert_int_equal(w.step, 2); /* to whom it would send */
    assert_int_equal(step(2, 0), 0);
    stop();
}

/* Somebody else was lost while they met anew: that meeting is called off, its members go on. */
static void a_meeting_that_is_called_off_takes_nothing_from_a_member(void **unused)
{
    (void)unused;
    static const uint32_t who[N] = { 0, 1, 2 };
    sherd__circle_plan p = usual();
    start(NULL);
    assert_int_equal(meet(), 0);
    p.state = 0;
    p.id++;
    calls_off = true;
    assert_int_equal(meet_with(&p, who), 1); /* whoever cancels hears no answer */
    calls_off = false;
    assert_int_equal(sherd__worker_member(worker, key(0)), 0);
    assert_int_equal(meet_with(&p, who), 0);
    assert_int_equal(sherd__worker_member(worker, key(0)), CIRCLE + 1);
    stop();
}

/* Of another block than its STEP's, with more tiers than there are: answers would hold what lay
 * about in memory. */
static void a_sum_is_told_for_the_tiers_that_there_are(void **unused)
{
    (void)unused;
    enum { TIERS = 5 };
    const sherd__circle_plan alone = { .kind = SHERD__REDUCE_RING, .members = 1, .id = CIRCLE,
                                       .recipe = TEXT, .state = STATE, .bits = 20, .batch = 4,
                                       .examples = 6,
                                       .optimiser = { .method = SHERD__SGD } };
    const int32_t scales[TIERS] = { 20, 20, 20, 20, 20 };
    uint8_t bytes[8 * (SHERD__CIRCLE_STEP + SHERD__PLAN_HEAD + TIERS)];
    start(NULL);
    assert_int_equal(meet_alone(&alone), 0);
    assert_int_equal(step(1, 0), 0);
    uint32_t own = next_block - 1;
    sherd__circle_round r = { .round = 1, .rate = 0.5, .by = 3,
                              .list = { SHERD__ROWS_GIVEN, 6, 6, { 0 } } };
    sherd__plan p = { .recipe = TEXT, .bits = 20, .room = 40, .tiers = TIERS, .params = 1,
                      .batch = 4 };
    sherd__circle_round_write(bytes, &r);
    sherd__plan_write(bytes + 8 * SHERD__CIRCLE_STEP, &p, scales);
    put(next_block, SHERD_I64, bytes, sizeof bytes / 8);
    assert_int_equal(ask(SHERD__OP_REDUCE, next_block, 0, SHERD_F64,
                         TIERS + SHERD__CIRCLE_FIGURES), SHERD_ESHAPE);
    assert_int_equal(ask(SHERD__OP_REDUCE, own, 0, SHERD_F64, 1 + SHERD__CIRCLE_FIGURES), 0);
    stop();
}

/* Also while a sum waits for others: then more than ever. */
static void a_member_says_where_it_is_at_any_time(void **unused)
{
    (void)unused;
    sherd__circle_where w;
    start(NULL);
    assert_true(ask(SHERD__OP_WHERE, TEXT, 0, SHERD_I64, 3) < 0);
    assert_int_equal(where(&w), 0);
    assert_true(w.phase == SHERD__CIRCLE_NOWHERE && w.round == 0);
    sherd__circle_plan alone = usual();
    alone.members = 1;
    alone.self = 0;
    assert_int_equal(meet_alone(&alone), 0);
    assert_int_equal(where(&w), 0);
    assert_true(w.phase == SHERD__CIRCLE_NOWHERE && w.round == 0);
    assert_int_equal(step(1, 0), 0);
    assert_int_equal(where(&w), 0);
    assert_true(w.phase == SHERD__CIRCLE_SUMMED && w.round == 1);
    assert_int_equal(reduce(), 0);
    assert_int_equal(where(&w), 0);
    assert_true(w.phase == SHERD__CIRCLE_NOWHERE && w.round == 1);
    told[8] = 5; /* phases */
    assert_false(sherd__circle_where_parse(&w, told));
    stop();
}

static int state_of(uint64_t commit, uint64_t len, bool bare, bool hash, uint64_t cols)
{
    uint8_t bytes[8 * SHERD__CIRCLE_STATE];
    const sherd__circle_question q = { commit, 0.5, len, bare };
    sherd__circle_state_write(bytes, &q);
    put(next_block++, SHERD_I64, bytes, SHERD__CIRCLE_STATE);
    return ask(SHERD__OP_STATE, next_block - 1, 0, hash ? SHERD_I64 : SHERD_F64, cols);
}

/* The hash is of the numbers that are told, whichever part of them; bare, a gradient makes none. */
static void a_state_and_its_hash_go_together(void **unused)
{
    (void)unused;
    enum { ALL = 2 * COUNT + 1 };
    sherd__circle_plan p = usual();
    p.members = 1;
    p.self = 0;
    p.round = 5;
    start(NULL);
    assert_int_equal(meet_alone(&p), 0);
    assert_true(state_of(4, COUNT, false, false, COUNT) < 0); /* of a round that it never saw */
    for (uint64_t commit = 5; commit <= 6; commit++) {
        if (commit == 6) assert_int_equal(step(6, 5), 0);
        if (commit == 6) assert_int_equal(reduce(), 0);
        for (int bare = 0; bare < 2; bare++)
            for (size_t len = COUNT; len <= ALL; len += COUNT + 1) {
                double numbers[ALL];
                uint8_t want[SHERD__HASH];
                assert_int_equal(state_of(commit, len, bare, false, len), 0);
                memcpy(numbers, told, len * sizeof *numbers);
                assert_int_equal(state_of(commit, len, bare, true, SHERD__HASH / 8), 0);
                sherd__state_hash(commit, numbers, len, COUNT, bare, want);
                assert_memory_equal(told, want, sizeof want);
                sherd__state_hash(commit + 1, numbers, len, COUNT, bare, want);
                assert_memory_not_equal(told, want, sizeof want);
                numbers[COUNT - 1] += 1;
                sherd__state_hash(commit, numbers, len, COUNT, bare, want);
                assert_memory_not_equal(told, want, sizeof want);
            }
    }
    assert_int_equal(state_of(6, ALL + 1, false, false, ALL + 1), SHERD_ESHAPE);
    assert_int_equal(state_of(6, COUNT, false, false, COUNT + 1), SHERD_ESHAPE);
    assert_int_equal(state_of(6, COUNT, false, true, COUNT), SHERD_ESHAPE);
    stop();
}

static void numbers_of_blocks_tell_rounds_apart_for_ever(void **unused)
{
    (void)unused;
    static const uint64_t near[] = { 0, 1, 77, (1u << 23) + 5, (1u << 24) - 1, 1u << 24,
                                     UINT64_C(1) << 40 };
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        for (int64_t off = -3; off <= 3; off++)
            for (uint32_t s = 0; s < 126; s += 25) {
                uint64_t round, want = near[i] + (uint64_t)off;
                uint32_t got;
                if (off < 0 && near[i] < (uint64_t)-off) continue;
                uint32_t number = sherd__circle_block(want, s);
                assert_int_not_equal(number, 0);
                sherd__circle_block_of(number, near[i], &round, &got);
                assert_true(round == want);
                assert_int_equal(got, s);
            }
}

static int free_identities(void **unused)
{
    (void)unused;
    for (uint32_t i = 0; i <= N; i++) sherd__identity_free(identity[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_members_of_a_circle_that_stands_may_connect),
        cmocka_unit_test(a_state_after_more_steps_than_anybody_takes_is_refused),
        cmocka_unit_test(local_steps_end_with_the_job_that_asked_for_them),
        cmocka_unit_test(local_steps_end_when_their_round_is_called_off),
        cmocka_unit_test(a_member_brings_the_blocks_of_its_steps_and_nothing_else),
        cmocka_unit_test(a_member_that_floods_fills_no_more_than_its_places),
        cmocka_unit_test(a_roster_that_this_node_does_not_believe_is_refused),
        cmocka_unit_test(plans_that_make_no_sense_are_refused),
        cmocka_unit_test(what_waits_for_a_lost_link_is_refused),
        cmocka_unit_test(a_meeting_that_is_called_off_takes_nothing_from_a_member),
        cmocka_unit_test(a_sum_is_told_for_the_tiers_that_there_are),
        cmocka_unit_test(a_member_says_where_it_is_at_any_time),
        cmocka_unit_test(a_state_and_its_hash_go_together),
        cmocka_unit_test(numbers_of_blocks_tell_rounds_apart_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, free_identities);
}
