/*
 * Passes beside each other: the sums of any number of graders are those of one, in fixed point and
 * in floats, also where graders overtake each other; a tier is announced once, when its sum is
 * complete; the first failure ends all of them, and leaves graders that can be used again.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "learn/passes.h"
#include "tests/support/draw.h"

static const char text[] = "input = 6\nlayer = dense 5\nlayer = tanh\nlayer = dense 3\n"
                           "loss = cross-entropy\n";
enum { SHARDS = 7, MOST = 4, ROWS = 20, INPUTS = 6, TIERS = 2, NUMBERS = 40, GRADERS = 5 };
static const size_t first[SHARDS + 1] = { 0, 4, 7, 8, 12, 14, 17, 20 };
static const size_t counts[TIERS] = { 6 * 5 + 5, 5 * 3 + 3 };
static const int32_t scales[TIERS] = { 30, 31 };
static double x[ROWS * INPUTS], params[TIERS][NUMBERS];
static uint32_t labels[ROWS];
static sherd__recipe recipe;

static int fill(void **s)
{
    (void)s;
    for (size_t i = 0; i < ROWS * INPUTS; i++) x[i] = (double)draw() / 0x1p30 - 1;
    for (size_t i = 0; i < ROWS; i++) labels[i] = (uint32_t)(draw() % 3);
    for (size_t t = 0; t < TIERS; t++)
        for (size_t i = 0; i < counts[t]; i++) params[t][i] = (double)draw() / 0x1p31 - 0.5;
    return sherd__recipe_parse(&recipe, text, sizeof text - 1, "t", SHERD__RECIPE_NETWORK, NULL);
}

/* What the passes are given, and what they did. */
typedef struct world {
    int64_t sums[TIERS][NUMBERS], want[TIERS][NUMBERS]; /* or doubles */
    void *to[TIERS];
    sherd__graded graded[SHARDS], right[SHARDS];
    pthread_mutex_t lock;
    sherd__local_steps local;
    uint32_t most;
    unsigned late;  /* this shard starts late */
    unsigned needs; /* calls of need */
    unsigned fails; /* the call that fails; 0: none */
    unsigned done[TIERS], order;
    bool incomplete, stops;
} world;

static sherd__shard shard(void *ctx, uint32_t i, uint32_t pass, sherd__local_steps *local)
{
    world *w = ctx;
    assert_true(pass < (w->most ? w->most : GRADERS));
    if (i == w->late) usleep(20000);
    *local = w->local;
    return (sherd__shard){ sherd_view_c(x + first[i] * INPUTS, SHERD_F64, first[i + 1] - first[i],
                                        INPUTS),
                           { .labels = labels + first[i] } };
}

static int need(void *ctx, size_t t, const double **out, sherd_diag *d)
{
    world *w = ctx;
    pthread_mutex_lock(&w->lock);
    const unsigned n = ++w->needs;
    pthread_mutex_unlock(&w->lock);
    if (n == w->fails) return sherd__fail(d, SHERD_ECLOSED, NULL, "this one fails");
    *out = params[t];
    return SHERD_OK;
}

static void done(void *ctx, size_t t)
{
    world *w = ctx;
    w->done[t] = ++w->order;
    w->incomplete |= memcmp(w->sums[t], w->want[t], 8 * counts[t]) != 0;
}

static bool stops(void *ctx)
{
    return ((world *)ctx)->stops;
}

static sherd__passes_sum sum_of(world *w)
{
    for (size_t t = 0; t < TIERS; t++) w->to[t] = w->sums[t];
    memset(w->sums, 0xEE, sizeof w->sums);
    memset(w->done, 0, sizeof w->done);
    w->order = w->needs = 0;
    return (sherd__passes_sum){ .shards = SHARDS,
                                .scales = scales,
                                .room = 61,
                                .sums = w->to,
                                .stop = stops,
                                .shard = shard,
                                .need = need,
                                .done = done,
                                .graded = w->graded,
                                .most = w->most,
                                .ctx = w };
}

/* One grader computes all shards. */
static void expect(world *w, unsigned bits)
{
    sherd__grader *g;
    void *to[TIERS] = { w->want[0], w->want[1] };
    assert_int_equal(sherd__grader_new(&g, &recipe, MOST, bits, NULL, NULL), 0);
    for (uint32_t i = 0; i < SHARDS; i++) {
        sherd__grading how = { .scales = scales, .room = 61, .sums = to, .fresh = i == 0 };
        sherd__shard s = shard(w, i, 0, &how.local);
        for (size_t t = 0; t < TIERS; t++)
            memcpy(sherd__grader_params(g, t), params[t], counts[t] * sizeof(double));
        assert_int_equal(sherd__grader_run(g, &s, &how, &w->right[i].cost, &w->right[i].hits, NULL),
                         0);
    }
    sherd__grader_free(g);
}

static sherd__passes *made(uint32_t count, unsigned bits, sherd__team **team)
{
    sherd__passes *p;
    const sherd__passes_options o = { &recipe, MOST, bits, NULL, count };
    assert_int_equal(sherd__passes_new(&p, &o, NULL), 0);
    assert_int_equal(sherd__team_new(team, count), 0);
    return p;
}

static void computes(sherd__passes *p, sherd__team *team, world *w)
{
    sherd_diag d = { 0 };
    const sherd__passes_sum s = sum_of(w);
    if (sherd__passes_run(p, team, &s, &d)) fail_msg("%s", d.message);
    for (size_t t = 0; t < TIERS; t++) assert_memory_equal(w->sums[t], w->want[t], 8 * counts[t]);
    assert_memory_equal(w->graded, w->right, sizeof w->right);
    assert_int_equal(w->done[1], 1); /* the top one first, and each once */
    assert_int_equal(w->done[0], 2);
    assert_int_equal(w->order, TIERS);
    assert_false(w->incomplete);
}

static void any_number_of_graders_has_the_sums_of_one(void **s)
{
    (void)s;
    static const unsigned bits[] = { 17, 40, 0 };
    for (size_t b = 0; b < sizeof bits / sizeof *bits; b++)
        for (unsigned steps = 0; steps < 3; steps += 2) {
            world w = { .lock = PTHREAD_MUTEX_INITIALIZER,
                        .late = SHARDS,
                        .local = { .steps = steps, .batch = 2, .rate = 0.25, .weight = 1 } };
            expect(&w, bits[b]);
            for (uint32_t count = 1; count <= GRADERS; count++) {
                sherd__team *team;
                sherd__passes *p = made(count, bits[b], &team);
                for (w.late = 0; w.late <= SHARDS; w.late += 2) computes(p, team, &w);
                w.most = 2;
                computes(p, team, &w);
                w.most = 0;
                sherd__passes_free(p);
                sherd__team_free(team);
            }
        }
}

static void a_failure_ends_all_passes_and_they_can_be_used_again(void **s)
{
    (void)s;
    sherd__team *team;
    sherd__passes *p = made(3, 17, &team);
    world w = { .lock = PTHREAD_MUTEX_INITIALIZER, .late = SHARDS };
    expect(&w, 17);
    for (w.fails = 1; w.fails <= SHARDS * TIERS; w.fails++) {
        sherd_diag d = { 0 };
        const sherd__passes_sum sum = sum_of(&w);
        assert_int_equal(sherd__passes_run(p, team, &sum, &d), SHERD_ECLOSED);
        assert_string_equal(d.message, "this one fails");
        assert_true(!w.done[0] || !w.done[1]);
    }
    w.incomplete = false;
    computes(p, team, &w);
    sherd__passes_sum narrow = sum_of(&w);
    narrow.room = 3;
    assert_int_equal(sherd__passes_run(p, team, &narrow, NULL), SHERD_EBUSY);
    w.stops = true;
    w.local = (sherd__local_steps){ .steps = 3, .rate = 0.25, .weight = 1 };
    const sherd__passes_sum stopped = sum_of(&w);
    assert_int_equal(sherd__passes_run(p, team, &stopped, NULL), SHERD_EINTERRUPTED);
    w.stops = false;
    w.local = (sherd__local_steps){ 0 };
    computes(p, team, &w);
    sherd__passes_free(p);
    sherd__team_free(team);
}

static void a_failed_allocation_leaves_nothing_behind(void **s)
{
    (void)s;
    for (size_t nth = 1;; nth++) {
        sherd__passes *p;
        const sherd__passes_options o = { &recipe, MOST, 17, NULL, 2 };
        sherd__alloc_fail_nth(nth);
        int err = sherd__passes_new(&p, &o, NULL);
        (void)sherd__alloc_fail_nth(0);
        sherd__passes_free(p);
        if (!err) break;
        assert_int_equal(err, SHERD_ENOMEM);
        assert_null(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_graders_has_the_sums_of_one),
        cmocka_unit_test(a_failure_ends_all_passes_and_they_can_be_used_again),
        cmocka_unit_test(a_failed_allocation_leaves_nothing_behind),
    };
    return cmocka_run_group_tests_name("learn/passes", tests, fill, NULL);
}
