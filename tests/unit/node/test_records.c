/*
 * The time that one record takes of a node's loop, whatever blocks it names: tables, rosters,
 * networks and lists of any size are handled by the compute thread. Measured in processor time of
 * the loop's thread.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "learn/plan.h"
#include "node/check.h"
#include "sherd/mat.h"
#include "tests/unit/node/allreduce_member.h"

#define MB ((uint64_t)1 << 20)

static double used_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu_s(void)
{
    return used_s(CLOCK_THREAD_CPUTIME_ID);
}

/* Returns the resident memory of this process in MB. */
static double resident(void)
{
    long all, here = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &all, &here), 2);
    fclose(f);
    return (double)here * (double)sysconf(_SC_PAGESIZE) / (double)MB;
}

/* ---- tables of groups ------------------------------------------------------------------------ */

/* Sends groups of rows x cols; the last one has `last` columns. */
static void put_groups(uint32_t block, uint32_t groups, uint32_t rows, uint32_t cols, uint32_t last)
{
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = SHERD_U8,
                               .groups = groups,
                               .rows = (uint64_t)groups * rows,
                               .cols = cols,
                               .len = 8 * (uint64_t)groups };
    i.len += i.rows * cols - (uint64_t)rows * (cols - last);
    sherd__fragment *f;
    uint8_t *bytes = calloc(1, (size_t)i.len);
    assert_non_null(bytes);
    for (uint32_t g = 0; g < groups; g++) {
        sherd__put_u32(bytes + 8 * (size_t)g, rows);
        sherd__put_u32(bytes + 8 * (size_t)g + 4, g + 1 < groups ? cols : last);
    }
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, NULL, NULL), 0);
    assert_int_equal(sherd__session_put(one.j.co, JOB, block, f), 0);
}

static int multiply_groups(uint32_t groups, uint32_t last)
{
    put_groups(one.next_block, groups, 0, 1, last);
    put_groups(one.next_block + 1, groups, 1, 1, 1);
    one.next_block += 2;
    uint32_t before = one.answered;
    joined_ask(&one.j, JOB, ++one.tasks, SHERD__OP_MULTIPLY, one.next_block - 2, one.next_block - 1,
               SHERD_F64, 0, 1);
    allreduce_settle();
    assert_int_equal(one.answered, before + 1);
    return one.refused;
}

/* The backend of this worker computes nothing, so that refusals of the loop can be distinguished
 * from those of the backend. */
static void long_tables_are_not_compared_on_the_loop(void **unused)
{
    (void)unused;
    one.memory = 64 * MB;
    allreduce_start(NULL);
    uint32_t most = SHERD__GROUPS_AT_ONCE;
    assert_int_equal(multiply_groups(most, 0), SHERD_ESHAPE);
    assert_int_equal(multiply_groups(most + 1, 0), SHERD_EINTERNAL); /* no_backend.h */
    allreduce_stop();
}

static void long_tables_are_compared_before_the_multiplication(void **unused)
{
    (void)unused;
    sherd__backend_options o = { .threads = 1, .quick = true };
    assert_int_equal(sherd__backend_cpu.open(&one.backend_ctx, &o, NULL), 0);
    one.backend = &sherd__backend_cpu;
    allreduce_start(NULL);
    uint32_t many = SHERD__GROUPS_AT_ONCE + 1;
    assert_int_equal(multiply_groups(many, 1), 0);
    assert_int_equal(multiply_groups(many, 0), SHERD_ESHAPE);
    allreduce_stop();
    sherd__backend_cpu.close(one.backend_ctx);
    one.backend = NULL;
    one.memory = 0;
}

/* ---- rosters --------------------------------------------------------------------------------- */

static void a_roster_that_is_too_long_is_not_read(void **unused)
{
    enum { LINES = 1 << 20 };
    (void)unused;
    uint8_t plan[8 * SHERD__ALLREDUCE_PLAN];
    char *roster = malloc(2 * LINES);
    assert_non_null(roster);
    for (size_t i = 0; i < 2 * LINES; i++) roster[i] = i % 2 ? '\n' : '*';
    one.memory = 16 * MB;
    allreduce_start(NULL);
    sherd__allreduce_plan p = allreduce_plan();
    sherd__allreduce_plan_write(plan, &p);
    allreduce_put(10, SHERD_I64, plan, SHERD__ALLREDUCE_PLAN);
    allreduce_put(11, SHERD_U8, roster, 2 * LINES); /* as peers they would take 450 bytes each */
    allreduce_settle();
    double before = cpu_s();
    assert_int_equal(allreduce_ask(SHERD__OP_MEET, 10, 11, SHERD_I64, 1), SHERD_EFORMAT);
    double took = cpu_s() - before;
    print_message("a roster of %u lines: %.4f s\n", LINES, took);
    assert_true(took < 0.05); /* 0.25 if it were read */
    allreduce_stop();
    one.memory = 0;
    free(roster);
}

/* ---- networks -------------------------------------------------------------------------------- */

/* Plans of two batch sizes alternate, each of which takes a network of its own; the task is refused
 * because its tier does not exist. */
static void networks_of_gradients_are_not_initialised_on_the_loop(void **unused)
{
    enum { IN = 1000, OUT = 2000, TIMES = 3, LABELS = 12 };
    static const char text[] = "input = 1000\nlayer = dense 2000\nloss = squared\n";
    static double numbers[OUT];
    const int32_t scale = 30;
    (void)unused;
    one.memory = 256 * MB;
    allreduce_start(NULL);
    joined_put(&one.j, JOB, LABELS, SHERD_U8, 1, sizeof text - 1, text);
    joined_put(&one.j, JOB, LABELS + 1, SHERD_F64, 1, IN, numbers);
    joined_put(&one.j, JOB, LABELS + 2, SHERD_F64, 1, OUT, numbers);
    for (uint32_t most = 1; most <= 2; most++) {
        uint8_t bytes[8 * (SHERD__PLAN_HEAD + 1 + SHERD__PLAN_SHARD)];
        sherd__step_plan p = { .recipe = LABELS,
                               .bits = 24,
                               .room = 60,
                               .tiers = 1,
                               .params = 40,
                               .shards = 1,
                               .batch = most };
        sherd__step_plan_shard shard = { .x = LABELS + 1, .targets = LABELS + 2, .rows = 1 };
        sherd__step_plan_write(bytes, &p, &scale);
        sherd__step_plan_write_shard(bytes, &p, 0, &shard);
        allreduce_put(20 + most, SHERD_I64, bytes, sizeof bytes / 8);
    }
    allreduce_settle();
    double before = resident();
    for (uint32_t i = 0; i < TIMES; i++)
        assert_int_equal(allreduce_ask(SHERD__OP_GRADIENT, 21 + i % 2, 99, SHERD_I64, 13),
                         SHERD_EINVAL);
    double more = resident() - before; /* one of them still exists */
    print_message("networks of %u parameters: %.1f MB\n", IN * OUT, more);
    assert_true(more < 2 * 8e-6 * IN * OUT / 2);
    allreduce_stop();
    one.memory = 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

enum { BATCH = 1 << 17 };
static size_t batch = BATCH; /* maximum number of examples of a shard */

/* Waits until the compute thread has nothing to do, a minute at most. */
static void rest(void)
{
    allreduce_settle();
    for (unsigned i = 0; i < 60000 && sherd__executor_pending(one.executor); i++) {
        usleep(1000);
        allreduce_settle();
    }
    assert_int_equal(sherd__executor_pending(one.executor), 0);
}

static void meet_over(uint32_t examples)
{
    sherd__allreduce_plan p = allreduce_plan();
    p.members = 1;
    p.self = 0;
    p.examples = examples;
    p.batch = batch;
    (void)allreduce_meet_alone(&p);
    rest();
    assert_int_equal(one.refused, 0);
}

/* Asks for a STEP of some equal shards; does not wait for the answer. */
static void ask_step(uint64_t round, const sherd__rows *list, uint32_t packs, uint32_t shards,
                     uint64_t rows)
{
    size_t head = 8 * SHERD__ALLREDUCE_STEP, len = head + sherd__plan_size(1, shards);
    const int32_t scale = 20;
    uint8_t *bytes = malloc(len);
    assert_non_null(bytes);
    sherd__allreduce_round r = {
        .round = round, .rate = 0.5, .by = 3, .packs = packs, .list = *list
    };
    sherd__step_plan p = { .recipe = TEXT,
                           .bits = 20,
                           .room = 40,
                           .tiers = 1,
                           .params = 1,
                           .shards = shards,
                           .batch = batch };
    sherd__allreduce_round_write(bytes, &r);
    sherd__step_plan_write(bytes + head, &p, &scale);
    for (uint32_t i = 0; i < shards; i++)
        sherd__step_plan_write_shard(bytes + head, &p, i,
                                     &(sherd__step_plan_shard){ .rows = rows });
    allreduce_put(one.next_block, SHERD_I64, bytes, len / 8);
    joined_ask(&one.j, JOB, 1000 + (uint32_t)round, SHERD__OP_STEP, one.next_block++, 0, SHERD_I64,
               1, 2 * (uint64_t)shards + 1);
    free(bytes);
}

static void rows_are_listed_and_looked_up_off_the_loop(void **unused)
{
    enum { EXAMPLES = 4000000, STEPS = 5 };
    (void)unused;
    one.memory = 256 * MB;
    allreduce_start_on(true, NULL);
    double before = cpu_s(), all = used_s(CLOCK_PROCESS_CPUTIME_ID);
    meet_over(EXAMPLES);
    for (uint8_t k = 1; k <= STEPS; k++) {
        ask_step(k, &(sherd__rows){ SHERD__ROWS_SHUFFLED, EXAMPLES, EXAMPLES, { k } }, 0, 1, 9);
        rest();
        assert_int_equal(one.refused, SHERD_EINVAL); /* no row is present */
    }
    double took = cpu_s() - before;
    all = used_s(CLOCK_PROCESS_CPUTIME_ID) - all;
    print_message("%d lists of %d rows: %.4f s of %.4f s\n", STEPS, EXAMPLES, took, all);
    assert_true(took < all / 3); /* normally a tenth of it; half if the loop drew them */
    allreduce_stop();
    one.memory = 0;
}

static void shards_with_more_rows_than_the_list_are_refused_at_once(void **unused)
{
    enum { EXAMPLES = 100000, SHARDS = 4096 };
    const sherd__rows list = { SHERD__ROWS_GIVEN, EXAMPLES, EXAMPLES, { 0 } };
    (void)unused;
    one.memory = 64 * MB;
    allreduce_start_on(true, NULL);
    meet_over(EXAMPLES);
    ask_step(1, &list, 0, SHARDS, EXAMPLES);
    rest();
    assert_int_equal(one.refused, SHERD_EFORMAT);
    ask_step(1, &list, 0, SHARDS, EXAMPLES / SHARDS);
    rest();
    assert_int_equal(one.refused, SHERD_EINVAL); /* as many as the list has; none is present */
    allreduce_stop();
    one.memory = 0;
}

enum { PACKS = 6000 };

/* Runs turns of the loop until it asks for none; returns their number. */
static unsigned turns(void)
{
    unsigned n = 0;
    for (allreduce_settle(); one.wakes; n++) {
        one.wakes = 0;
        sherd__worker_poll(one.worker);
        allreduce_settle();
    }
    return n;
}

/* Returns the memory in use before the packs arrived. */
static uint64_t start_with_packs(void)
{
    static const double x[3], y[2];
    one.memory = 64 * MB;
    one.turns = true;
    allreduce_start(NULL);
    meet_over(PACKS);
    uint64_t before = sherd__worker_memory(one.worker)->used;
    for (uint32_t k = 0; k < PACKS; k++) {
        allreduce_put(sherd__allreduce_pack(k), SHERD_U32, &k, 1);
        joined_put(&one.j, JOB, sherd__allreduce_pack(k) + 1, SHERD_F64, 1, 3, x);
        joined_put(&one.j, JOB, sherd__allreduce_pack(k) + 2, SHERD_F64, 1, 2, y);
        if (k % 500 == 0) allreduce_settle();
    }
    (void)turns();
    return before;
}

static void end_turns(void)
{
    for (one.wakes = 1; one.wakes;) {
        one.wakes = 0;
        sherd__worker_poll(one.worker);
    }
    while (sherd__executor_drain(one.executor)) {}
    assert_int_equal(sherd__worker_memory(one.worker)->used, 0);
    sherd__worker_free(one.worker);
    sherd__executor_free(one.executor);
    one.turns = false;
    one.memory = 0;
}

static void stop_turns(void)
{
    joined_cut(&one.j);
    end_turns();
}

static void packs_are_looked_up_in_slices(void **unused)
{
    const sherd__rows list = { SHERD__ROWS_GIVEN, PACKS, PACKS, { 0 } };
    (void)unused;
    (void)start_with_packs();
    uint32_t before = one.answered, refusals = one.refusals;
    ask_step(1, &list, PACKS, 1, PACKS);
    joined_ask(&one.j, JOB, 2000, SHERD__OP_REDUCE, one.next_block - 1, 0, SHERD_F64, 1,
               1 + SHERD__ALLREDUCE_FIGURES);
    unsigned n = turns();
    print_message("%d packs in %u turns\n", PACKS, n);
    assert_true(n >= PACKS / 1024 - 2); /* each of the two records looks up some, too */
    assert_int_equal(one.answered, before + 2);
    assert_int_equal(one.refusals, refusals); /* REDUCE has waited for its STEP */
    stop_turns();
}

/* Several sessions have the node look up packs at the same time: a turn has one limit for all. If
 * all but the last have the same key, the last one gets its share of each turn. */
static void take_turns(const sherd__fingerprint *key)
{
    enum { SESSIONS = 12, MANY = 1100 }; /* two slices, the first of which is done on arrival */
    const unsigned at_once = key ? 2 : 4;
    const unsigned most = key ? SESSIONS - 1 : SESSIONS / at_once;
    const sherd__rows list = { SHERD__ROWS_GIVEN, MANY, MANY, { 0 } };
    static const double x[3], y[2];
    joined all[SESSIONS];
    uint32_t refusals = one.refusals;
    one.memory = 256 * MB;
    one.turns = true;
    one.key = key;
    allreduce_start(NULL);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        if (i == SESSIONS - 1) one.key = NULL;
        sherd__allreduce_plan p = allreduce_plan();
        p.members = 1;
        p.self = 0;
        p.id = GROUP + i;
        p.examples = MANY;
        p.batch = batch;
        if (i) allreduce_swap(); /* another coordinator */
        (void)allreduce_meet_alone(&p);
        for (uint32_t k = 0; k < MANY; k++) {
            allreduce_put(sherd__allreduce_pack(k), SHERD_U32, &k, 1);
            joined_put(&one.j, JOB, sherd__allreduce_pack(k) + 1, SHERD_F64, 1, 3, x);
            joined_put(&one.j, JOB, sherd__allreduce_pack(k) + 2, SHERD_F64, 1, 2, y);
        }
        (void)turns();
        assert_int_equal(one.refusals, refusals);
        ask_step(1, &list, MANY, 1, MANY); /* not yet sent */
        all[i] = one.j;
        one.j = one.away = (joined){ 0 };
    }
    uint32_t before = one.answered, answered = before;
    for (uint32_t i = 0; i < SESSIONS; i++) joined_exchange(&all[i]);
    for (unsigned n = 1; answered < before + SESSIONS; n++) {
        assert_true(one.wakes && n <= most);
        one.wakes = 0;
        sherd__worker_poll(one.worker);
        for (uint32_t i = 0; i < SESSIONS - 1; i++) joined_settle(&all[i], one.executor);
        answered = one.answered;
        joined_settle(&all[SESSIONS - 1], one.executor);
        assert_true(one.answered <= before + n * at_once);
        if (one.answered > answered && key) assert_int_equal(n, 1);
        answered = one.answered;
    }
    assert_int_equal(one.refusals, refusals);
    for (uint32_t i = 0; i < SESSIONS; i++) joined_cut(&all[i]);
    end_turns();
}

static void sessions_share_the_slices_for_their_packs(void **unused)
{
    static const sherd__fingerprint key = { .sha256 = { 1 } };
    (void)unused;
    take_turns(NULL);
    take_turns(&key);
}

static void a_step_cancelled_meanwhile_does_not_delay_others(void **unused)
{
    const sherd__rows list = { SHERD__ROWS_GIVEN, PACKS, PACKS, { 0 } };
    (void)unused;
    (void)start_with_packs();
    ask_step(1, &list, PACKS, 1, PACKS);
    joined_exchange(&one.j);
    assert_int_equal(sherd__session_cancel(one.j.co, JOB, 1001, 1), 0);
    uint32_t before = one.answered;
    ask_step(2, &list, PACKS, 1, PACKS);
    (void)turns();
    assert_int_equal(one.answered, before + 1);
    assert_int_equal(one.refused, 0);
    stop_turns();
}

static void packs_are_freed_in_slices(void **unused)
{
    const sherd__rows list = { SHERD__ROWS_GIVEN, PACKS, PACKS, { 0 } };
    (void)unused;
    for (int whole = 0; whole <= 1; whole++) { /* one by one; with their group */
        uint64_t before = start_with_packs();
        ask_step(1, &list, PACKS, 1, PACKS);
        (void)turns();
        uint64_t packs = sherd__worker_memory(one.worker)->used - before;
        if (whole) assert_int_equal(sherd__session_drop(one.j.co, JOB, 0), 0);
        for (uint32_t k = 0; k < PACKS && !whole; k++)
            for (uint32_t b = 0; b < 3; b++)
                assert_int_equal(sherd__session_drop(one.j.co, JOB, sherd__allreduce_pack(k) + b),
                                 0);
        joined_exchange(&one.j);
        assert_true(one.wakes);
        uint64_t left = sherd__worker_memory(one.worker)->used;
        unsigned n = turns();
        print_message("%d packs freed in %u turns\n", PACKS, n);
        assert_true(n >= PACKS / 1024);
        if (!whole)
            assert_true(left > before + packs / 2); /* otherwise all data of the group were
                                                             * freed */
        assert_true(sherd__worker_memory(one.worker)->used < before + packs / 2);
        stop_turns();
    }
}

/* ---- blocks of members ----------------------------------------------------------------------- */

static void carry(sherd__session *from, sherd__session *to)
{
    const uint8_t *bytes;
    size_t len = sherd__session_pending(from, 1, &bytes);
    for (size_t at = 0, used; at < len; at += used) {
        sherd__event e;
        assert_int_equal(sherd__session_feed(to, bytes + at, len - at, 1, &used, &e), 0);
        sherd__fragment_free(e.fragment);
    }
    sherd__session_sent(from, len);
}

/* Returns a link of the node to a member that accepts everything. */
static sherd__session *link_to(uint32_t member, sherd__session **other)
{
    sherd__session *own;
    sherd__session_options o = { .role = SHERD__COORDINATOR, .now_ms = 1 };
    assert_int_equal(sherd__session_new(&own, &o), 0);
    o.role = SHERD__NODE;
    assert_int_equal(sherd__session_new(other, &o), 0);
    while (!sherd__session_ready(own) || !sherd__session_ready(*other)) {
        carry(own, *other);
        carry(*other, own);
    }
    sherd__worker_link_up(one.worker, one.allreduce, member, own);
    return own;
}

static sherd__session *own[2], *other[2];
static uint32_t ring;

/* Starts a ring of so many members over a network of 4 * width numbers, in its first round. */
static void start_ring(uint32_t members, uint32_t width)
{
    enum { LARGE = 5 };
    uint32_t who[SHERD__ALLREDUCE_MOST];
    char text[64];
    size_t numbers = 4 * (size_t)width;
    double *state = calloc(numbers, sizeof *state);
    assert_non_null(state);
    int len = snprintf(text, sizeof text, "input = 3\nlayer = dense %u\nloss = squared\n", width);
    for (uint32_t i = 0; i < members; i++) who[i] = i < N ? i : i + 1;
    ring = members;
    one.memory = 1024 * MB;
    one.turns = true;
    allreduce_start(NULL);
    allreduce_put(LARGE, SHERD_U8, text, (size_t)len);
    allreduce_put(LARGE + 1, SHERD_F64, state, numbers);
    free(state);
    sherd__allreduce_plan p = allreduce_plan();
    p.members = members;
    p.recipe = LARGE;
    p.state = LARGE + 1;
    p.batch = batch = 1;
    assert_int_equal(allreduce_meet_of(&p, who, members), 0);
    assert_int_equal(allreduce_ask(SHERD__OP_CONNECT, LARGE, 0, SHERD_I64, members), 1);
    own[0] = link_to(2, &other[0]);
    own[1] = link_to(0, &other[1]);
    ask_step(1, &(sherd__rows){ SHERD__ROWS_GIVEN, 6, 6, { 0 } }, 0, 0, 0);
    (void)turns();
    assert_int_equal(one.refused, 0);
}

/* Delivers the block of a step; returns its number of numbers. */
static uint64_t bring(uint32_t width, uint32_t step)
{
    sherd__reduce_step s = sherd__reduce_step_of(SHERD__REDUCE_RING, ring, SELF, step);
    uint64_t len = sherd__reduce_len(4 * (size_t)width, ring, s.in);
    assert_int_equal(allreduce_bring(s.from, GROUP, sherd__allreduce_block(1, step), 8 * len,
                                     SHERD_I64),
                     0);
    return len;
}

static sherd__allreduce_where where_now(void)
{
    sherd__allreduce_where w;
    assert_int_equal(allreduce_ask(SHERD__OP_WHERE, TEXT, 0, SHERD_I64, SHERD__ALLREDUCE_WHERE), 0);
    assert_true(sherd__allreduce_where_parse(&w, one.last_result));
    return w;
}

static void stop_ring(void)
{
    joined_cut(&one.j);
    for (int i = 0; i < 2; i++) {
        sherd__session_free(own[i]);
        sherd__session_free(other[i]);
    }
    end_turns();
    batch = BATCH;
}

/* For any number of blocks, in any order of arrival. */
static void blocks_of_members_are_added_in_slices(void **unused)
{
    enum { WIDTH = 1 << 20, STEPS = 2 * (N - 1), AT_ONCE = 1 << 19 };
    (void)unused;
    for (int backwards = 0; backwards <= 1; backwards++) {
        uint64_t numbers = 0;
        start_ring(N, WIDTH);
        for (uint32_t i = 0; i < STEPS; i++) numbers += bring(WIDTH, backwards ? STEPS - 1 - i : i);
        unsigned n = turns();
        print_message("%llu numbers in %u turns\n", (unsigned long long)numbers, n);
        assert_int_equal(n, numbers / AT_ONCE);
        assert_int_equal(where_now().phase, SHERD__ALLREDUCE_SUMMED);
        stop_ring();
    }
}

static void steps_are_executed_in_slices(void **unused)
{
    enum { WIDTH = 64, STEPS = 2 * (SHERD__ALLREDUCE_MOST - 1), AT_ONCE = 16 };
    (void)unused;
    start_ring(SHERD__ALLREDUCE_MOST, WIDTH);
    for (uint32_t i = STEPS; i-- > 0;) (void)bring(WIDTH, i);
    assert_int_equal(where_now().step, AT_ONCE);
    assert_int_equal(turns(), STEPS / AT_ONCE);
    sherd__allreduce_where w = where_now();
    assert_int_equal(w.phase, SHERD__ALLREDUCE_SUMMED);
    assert_int_equal(w.step, STEPS);
    stop_ring();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_tables_are_not_compared_on_the_loop),
        cmocka_unit_test(long_tables_are_compared_before_the_multiplication),
        cmocka_unit_test(a_roster_that_is_too_long_is_not_read),
        cmocka_unit_test(networks_of_gradients_are_not_initialised_on_the_loop),
        cmocka_unit_test(rows_are_listed_and_looked_up_off_the_loop),
        cmocka_unit_test(shards_with_more_rows_than_the_list_are_refused_at_once),
        cmocka_unit_test(packs_are_looked_up_in_slices),
        cmocka_unit_test(sessions_share_the_slices_for_their_packs),
        cmocka_unit_test(a_step_cancelled_meanwhile_does_not_delay_others),
        cmocka_unit_test(packs_are_freed_in_slices),
        cmocka_unit_test(blocks_of_members_are_added_in_slices),
        cmocka_unit_test(steps_are_executed_in_slices),
    };
    return cmocka_run_group_tests_name("node/records", tests, NULL, allreduce_free_identities);
}
