/*
 * The answers of a node do not depend on its examples. Two nodes that differ only in their examples
 * get the same requests, valid and invalid ones, with parameters and scales that a hostile
 * coordinator would choose. Refusals, their texts, the sizes of answers and the memory in use must
 * be the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "crypto/aggregate.h"
#include "learn/secure.h"
#include "node/worker.h"
#include "tests/support/draw.h"
#include "tests/support/joined.h"
#include "tests/support/memory_ledger.h"
#include "tests/support/no_backend.h"

static const char *const texts[] = {
    "input = 3\nlayer = dense 4\nlayer = relu\nlayer = dense 2\nloss = cross-entropy\n"
    "data = file\nepochs = 1\nrate = 0.5\n",
    "input = 3\nlayer = dense 1\nloss = squared\ntargets = values\ndata = file\nepochs = 1\n"
    "rate = 0.5\n",
};
enum {
    COUNT_MAX = 26,
    N = 4,
    U = 3,
    JOB = 7,
    TEXT = 1,
    PLAN = 2,
    ROSTER = 3,
    FIRST = 10,
    PLACES = 300,
    ROWS_MAX = 700,
    COLS = 4
};

/* One node, as its coordinator sees it. */
typedef struct side {
    double examples[ROWS_MAX * COLS];
    sherd__own own;
    sherd_identity *identity;
    sherd__executor *executor;
    sherd__worker *worker;
    memory_ledger ledger;
    joined j;
    uint32_t answered;
    int code;
    char text[SHERD__TEXT_MAX];
    uint64_t len;
    uint8_t card[SHERD__SECURE_CARD];
    uint8_t cards[N * SHERD__SECURE_CARD], roster[SHERD__ABOUT], about[SHERD__ABOUT];
} side;

static side sides[2];
static sherd_identity *others[N];
static sherd__policy policy;
static uint32_t tasks, next_block;
static size_t count;
static unsigned recipe;

/* ---- the two nodes --------------------------------------------------------------------------- */

static void hear(void *ctx, sherd__event *e)
{
    side *n = ctx;
    if (e->kind != SHERD__EV_RESULT && e->kind != SHERD__EV_REFUSED) return;
    n->answered++;
    n->code = e->kind == SHERD__EV_REFUSED ? e->refusal.code : 0;
    memset(n->text, 0, sizeof n->text);
    n->len = 0;
    if (n->code) {
        snprintf(n->text, sizeof n->text, "%s", e->refusal.text);
        return;
    }
    n->len = sherd__fragment_info_of(e->fragment)->len;
    if (e->task.op == SHERD__OP_JOIN)
        memcpy(n->card, sherd__fragment_bytes(e->fragment), sizeof n->card);
}

static void start(side *n)
{
    assert_int_equal(sherd__executor_new_inline(&n->executor), 0);
    assert_int_equal(sherd_identity_new(&n->identity, NULL), 0);
    memset(&n->ledger, 0, sizeof n->ledger);
    sherd__worker_options o = { .backend = &none,
                                .memory = (uint64_t)16 << 20,
                                .executor = n->executor,
                                .self = { .identity = n->identity,
                                          .data = &n->own,
                                          .policy = &policy,
                                          .ledger = memory_ledger_ref(&n->ledger) } };
    assert_int_equal(sherd__worker_new(&n->worker, &o), 0);
    joined_open(&n->j, n->worker, hear, n);
    n->answered = 0;
}

static void stop(side *n)
{
    joined_cut(&n->j);
    assert_int_equal(sherd__worker_memory(n->worker)->used, 0);
    sherd__worker_free(n->worker);
    sherd__executor_free(n->executor);
    sherd_identity_free(n->identity);
}

static void put(uint32_t block, uint8_t dtype, uint64_t rows, uint64_t cols, const void *bytes)
{
    for (unsigned i = 0; i < 2; i++) joined_put(&sides[i].j, JOB, block, dtype, rows, cols, bytes);
}

/* Asks both nodes and checks that their answers agree. */
static int task(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t rows,
                uint64_t cols)
{
    tasks++;
    for (unsigned i = 0; i < 2; i++) {
        joined_ask(&sides[i].j, JOB, tasks, op, left, right, dtype, rows, cols);
        joined_settle(&sides[i].j, sides[i].executor);
        assert_int_equal(sides[i].answered, tasks);
    }
    assert_int_equal(sides[0].code, sides[1].code);
    assert_string_equal(sides[0].text, sides[1].text);
    assert_int_equal(sides[0].len, sides[1].len);
    assert_int_equal(sherd__worker_memory(sides[0].worker)->used,
                     sherd__worker_memory(sides[1].worker)->used);
    return sides[0].code;
}

/* ---- requests -------------------------------------------------------------------------------- */

static sherd__aggregate aggregate(void)
{
    return (sherd__aggregate){ N, U, 1, count + SHERD__SECURE_EXTRA };
}

static int join(const sherd__secure_plan *p)
{
    uint8_t bytes[8 * SHERD__SECURE_PLAN];
    sherd__secure_plan_write(bytes, p);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(sherd__session_drop(sides[i].j.co, JOB, 0), 0);
    put(TEXT, SHERD_U8, 1, strlen(texts[recipe]), texts[recipe]);
    put(PLAN, SHERD_I64, 1, SHERD__SECURE_PLAN, bytes);
    return task(SHERD__OP_JOIN, PLAN, 0, SHERD_U8, 1, SHERD__SECURE_CARD);
}

static int roster(const sherd__secure_plan *p)
{
    uint8_t statement[SHERD__SECURE_STATEMENT], training[SHERD__SECURE_TRAINING], all[SHERD__ABOUT];
    sherd__secure_training(training, p);
    sherd__about(all,
                 (const sherd__about_part[]){ { texts[recipe], strlen(texts[recipe]) },
                                              { training, sizeof training } },
                 2);
    for (unsigned s = 0; s < 2; s++) {
        side *n = &sides[s];
        memcpy(n->cards, n->card, sizeof n->card);
        for (uint32_t i = 1; i < N; i++) {
            uint8_t *card = n->cards + i * SHERD__SECURE_CARD;
            sherd__seal_key k;
            sherd__seal_key_new(&k);
            sherd__secure_statement(statement, JOB, p, i, k.open);
            sherd__identity_public(others[i], card);
            memcpy(card + 32, k.open, 32);
            assert_int_equal(sherd__identity_sign(others[i], statement, sizeof statement,
                                                  card + 64),
                             0);
        }
        sherd__about(n->roster,
                     (const sherd__about_part[]){ { all, sizeof all },
                                                  { n->cards, sizeof n->cards } },
                     2);
        joined_put(&n->j, JOB, ROSTER, SHERD_U8, N, SHERD__SECURE_CARD, n->cards);
    }
    return task(SHERD__OP_ROSTER, PLAN, ROSTER, SHERD_I64, 1, 1);
}

/* Chooses parameters and scales as a hostile coordinator would. */
static void choose(double *params, int64_t *question, size_t scales, uint64_t round)
{
    unsigned how = (unsigned)(draw() % 5);
    for (size_t i = 0; i < count; i++) {
        double x = (double)draw() / 0x1p30 - 1;
        params[i] = how == 0     ? x
                    : how == 1   ? x * 0x1p1000
                    : how == 2   ? x * 0x1p-1060
                    : how == 3   ? ldexp(x, (int)(draw() % 600) - 300)
                    : draw() % 4 ? 0
                                 : 1e300;
    }
    question[0] = SHERD__SECURE_FORMAT;
    question[1] = (int64_t)round;
    question[2] = (int64_t)(draw() % 5);
    for (size_t i = 0; i < scales; i++) question[3 + i] = (int64_t)(draw() % 2001) - 1000;
    if (draw() % 20 == 0) question[3] = 1001;
    if (draw() % 20 == 0) params[draw() % count] = NAN;
}

static int a_round(uint64_t round, size_t tiers)
{
    double params[COUNT_MAX];
    int64_t question[8] = { 0 };
    sherd__aggregate a = aggregate();
    uint32_t at = next_block;
    next_block += 4;
    choose(params, question, tiers + 1, round);
    for (unsigned s = 0; s < 2; s++) {
        side *n = &sides[s];
        uint64_t seal[SHERD__SECURE_SEAL] = { SHERD__SECURE_FORMAT, round };
        sherd__about(n->about,
                     (const sherd__about_part[]){
                         { n->roster, sizeof n->roster },
                         { question, 8 * (SHERD__SECURE_HIDE + tiers + 1) },
                         { params, count * sizeof *params } },
                     3);
        memcpy(seal + 2, n->about, sizeof n->about);
        joined_put(&n->j, JOB, at, SHERD_I64, 1, SHERD__SECURE_SEAL, seal);
    }
    int err = task(SHERD__OP_SEAL, at, 0, SHERD_U8, N, sherd__aggregate_sealed_len(&a));
    put(at + 1, SHERD_I64, 1, SHERD__SECURE_HIDE + tiers + 1, question);
    put(at + 2, SHERD_F64, 1, count, params);
    if (!err) err = task(SHERD__OP_HIDE, at + 1, at + 2, SHERD_I64, 1, a.len);
    uint64_t confirm[SHERD__SECURE_CONFIRM + N] = { SHERD__SECURE_FORMAT, round, 0, 1, 2, 3 };
    put(at + 3, SHERD_I64, 1, SHERD__SECURE_CONFIRM + N, confirm);
    (void)task(SHERD__OP_CONFIRM, at + 3, 0, SHERD_U8, 1, SHERD__SECURE_SIGNATURE);
    return err;
}

/* ---- examples -------------------------------------------------------------------------------- */

static double odd(void)
{
    static const double of[] = { NAN, INFINITY, -INFINITY, 1e308, -1e308, 5e-324, 0, -1, 2.5, 1e9 };
    return of[draw() % (sizeof of / sizeof *of)];
}

/* Fills rows in which one in so many numbers is special; 0: none is. */
static void fill(side *n, size_t rows, unsigned odds)
{
    for (size_t i = 0; i < rows * COLS; i++) {
        double v = i % COLS == COLS - 1 ? (double)(draw() % 2) : (double)draw() / 0x1p30 - 1;
        n->examples[i] = odds && draw() % odds == 0 ? odd() : v;
    }
    n->own = (sherd__own){ .x = sherd_view_c(n->examples, SHERD_F64, rows, COLS) };
}

static void answers_do_not_depend_on_examples(void **s)
{
    (void)s;
    static const struct {
        size_t rows[2];
        unsigned odds[2];
    } pairs[] = {
        { { 300, 300 }, { 0, 0 } }, { { 1, 700 }, { 0, 0 } },  { { 40, 40 }, { 0, 1 } },
        { { 300, 299 }, { 0, 3 } }, { { 2, 512 }, { 1, 50 } },
    };
    unsigned given = 0, refused = 0;
    for (uint32_t i = 1; i < N; i++) assert_int_equal(sherd_identity_new(&others[i], NULL), 0);
    for (size_t k = 0; k < 4 * sizeof pairs / sizeof *pairs; k++) {
        draw_state = 900 + k;
        recipe = k % 2;
        count = recipe ? 4 : 26;
        bool clip = k / 2 % 2;
        policy = policy_of_tests;
        policy.rounds_max = 25;
        policy.epsilon = clip ? 30 : INFINITY;
        tasks = 0;
        next_block = FIRST;
        for (unsigned i = 0; i < 2; i++) {
            fill(&sides[i], pairs[k / 4].rows[i], pairs[k / 4].odds[i]);
            start(&sides[i]);
        }
        sherd__secure_plan p = { .recipe = TEXT,
                                 .nodes = N,
                                 .threshold = U,
                                 .colluding = 1,
                                 .rows = 100,
                                 .places = PLACES,
                                 .clip = clip ? 0.5 : 0,
                                 .noise = clip ? 1.25 : 0 };
        for (unsigned i = 0; i < 40; i++) { /* inconsistent plans */
            sherd__secure_plan bad = p;
            uint64_t numbers[SHERD__SECURE_PLAN];
            sherd__secure_plan_write((uint8_t *)numbers, &bad);
            numbers[draw() % SHERD__SECURE_PLAN] = draw() % 3 ? draw() % 9 : draw() << 40;
            put(next_block, SHERD_I64, 1, SHERD__SECURE_PLAN, numbers);
            (void)task(SHERD__OP_JOIN, next_block++, 0, SHERD_U8, 1, SHERD__SECURE_CARD);
        }
        assert_int_equal(join(&p), 0);
        assert_int_equal(roster(&p), 0);
        for (uint64_t round = 1; round < 40; round++) {
            int err = a_round(round, recipe ? 1 : 2);
            given += err == 0;
            refused += err != 0;
        }
        for (unsigned i = 0; i < 2; i++) stop(&sides[i]);
    }
    for (uint32_t i = 1; i < N; i++) sherd_identity_free(others[i]);
    assert_true(given > 200 && refused > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(answers_do_not_depend_on_examples) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
