/*
 * Requests of secure sums and of all-reduce groups as an honest coordinator sends them, which
 * fuzz_worker.c then changes. The node is member 0; the others are simulated here, with keys,
 * cards, signatures and pieces of their own, so that a script of a few bytes passes every check.
 * Network, parameters and sizes are small and fixed.
 */
#ifndef TESTS_FUZZ_WORKER_STEPS_H
#define TESTS_FUZZ_WORKER_STEPS_H

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "crypto/aggregate.h"
#include "learn/allreduce_plan.h"
#include "learn/secure.h"
#include "node/worker.h"

static const char network[] = "input = 2\nlayer = dense 1\nloss = squared\ntargets = values\n"
                              "data = file\nepochs = 1\nrate = 0.5\n";

static const char layers[] = "input = 2\nlayer = dense 1\nloss = squared\n";

enum {
    N = 3,
    U = 3,
    COUNT = 3,
    LEN = COUNT + SHERD__SECURE_EXTRA,
    PIECE = 3,
    SEALED = 8 * PIECE + 96,
    PLACES = 40,
    STATE = 3 * COUNT + 1, /* of momentum */
    JOB = 2,
    TEXT = 1,
    PLAN = 2,
    CARDS = 3,
    QUESTION = 4,
    PARAMS = 5,
    PIECES = 6,
    START = 7,
    INPUTS = 8,
    TARGETS = 9,
    GROUPS = 1000 /* ids of groups count from there */
};

/* What a coordinator knows of a sum, and of a group. */
typedef struct steps {
    uint64_t round;
    double clip, noise;
    uint8_t cards[N * SHERD__SECURE_CARD];
    sherd__seal_key keys[N];
    sherd__aggregate_member *member[N]; /* 1 and 2, since the last ROSTER */
    uint8_t bound[SHERD__ABOUT], about[SHERD__ABOUT];
    double params[COUNT];
    uint8_t pieces[N][SEALED], signatures[N][SHERD__SECURE_SIGNATURE];
    bool checking;                        /* pieces of the round were sent to be checked */
    uint32_t era, answered[32], unsealed; /* of answers: 1 + the era; 0: no answer */
    uint64_t allreduce, allreduce_round, made;
    uint32_t packs;
} steps;

/* A request: the block on its left (numbers, or bytes), and the block on its right. */
typedef struct question {
    uint32_t op;
    uint64_t left[64];
    uint32_t left_len;
    uint8_t right[1024];
    uint32_t right_rows, right_cols;
    uint8_t right_dtype;
    uint8_t dtype;
    uint64_t rows, cols;
} question;

static sherd_identity *puppet[N];

static void steps_init(void)
{
    for (int i = 0; i < N; i++)
        if (sherd_identity_new(&puppet[i], NULL) != 0) abort();
}

static void steps_free(steps *m)
{
    for (int i = 1; i < N; i++) sherd__aggregate_member_free(m->member[i]);
    memset(m, 0, sizeof *m);
}

static uint64_t bits_of(double x)
{
    uint64_t v;
    memcpy(&v, &x, 8);
    return v;
}

static sherd__secure_plan plan_of(const steps *m)
{
    return (sherd__secure_plan){ .recipe = TEXT,
                                 .nodes = N,
                                 .threshold = U,
                                 .colluding = 1,
                                 .rows = PLACES,
                                 .places = PLACES,
                                 .clip = m->clip,
                                 .noise = m->noise };
}

static void ask_join(steps *m, question *q)
{
    sherd__secure_plan p = plan_of(m);
    uint8_t bytes[8 * SHERD__SECURE_PLAN];
    sherd__secure_plan_write(bytes, &p);
    *q = (question){ .op = SHERD__OP_JOIN,
                     .left_len = SHERD__SECURE_PLAN,
                     .dtype = SHERD_U8,
                     .rows = 1,
                     .cols = SHERD__SECURE_CARD };
    memcpy(q->left, bytes, sizeof bytes);
    m->round = 0;
}

/* The cards of all members; the node's is the answer to its JOIN. */
static void ask_roster(steps *m, question *q)
{
    static const sherd__aggregate agreed = { N, U, 1, LEN };
    const sherd__secure_plan p = plan_of(m);
    uint8_t keys[N][32];
    ask_join(m, q);
    for (uint32_t i = 1; i < N; i++) {
        uint8_t *card = m->cards + i * SHERD__SECURE_CARD, text[SHERD__SECURE_STATEMENT];
        sherd__seal_key_new(&m->keys[i]);
        sherd__secure_statement(text, JOB, &p, i, m->keys[i].open);
        sherd__identity_public(puppet[i], card);
        memcpy(card + 32, m->keys[i].open, 32);
        if (sherd__identity_sign(puppet[i], text, sizeof text, card + 64) != 0) abort();
    }
    for (int i = 0; i < N; i++) memcpy(keys[i], m->cards + i * SHERD__SECURE_CARD + 32, 32);
    for (uint32_t i = 1; i < N; i++) {
        sherd__aggregate_member_free(m->member[i]);
        m->member[i] = NULL;
        (void)!sherd__aggregate_member_new(&m->member[i], &agreed,
                                           &(sherd__aggregate_self){ i, JOB, &m->keys[i],
                                                                     (const uint8_t(*)[32])keys },
                                           NULL);
    }
    q->op = SHERD__OP_ROSTER;
    q->dtype = SHERD_I64;
    q->rows = q->cols = 1;
    q->right_dtype = SHERD_U8;
    q->right_rows = N;
    q->right_cols = SHERD__SECURE_CARD;
    memcpy(q->right, m->cards, sizeof m->cards);
}

static void hiding(const steps *m, question *q)
{
    const uint64_t numbers[] = { SHERD__SECURE_FORMAT, m->round, 0, 20, 20 };
    *q = (question){ .op = SHERD__OP_HIDE,
                     .left_len = 5,
                     .right_rows = 1,
                     .right_cols = COUNT,
                     .right_dtype = SHERD_F64,
                     .dtype = SHERD_I64,
                     .rows = 1,
                     .cols = LEN };
    memcpy(q->left, numbers, sizeof numbers);
    memcpy(q->right, m->params, sizeof m->params);
}

/* A new round: its description, and the pieces that the others seal for the node. */
static void ask_seal(steps *m, question *q)
{
    const sherd__secure_plan p = plan_of(m);
    const sherd__entropy e = sherd__entropy_os();
    uint8_t training[SHERD__ABOUT], all[SHERD__ABOUT], plan[SHERD__SECURE_TRAINING];
    m->round++;
    m->params[0] = (double)m->round / 64;
    hiding(m, q);
    sherd__secure_training(plan, &p);
    sherd__about(training,
                 (const sherd__about_part[]){ { network, sizeof network - 1 },
                                              { plan, sizeof plan } },
                 2);
    sherd__about(all,
                 (const sherd__about_part[]){ { training, sizeof training },
                                              { m->cards, sizeof m->cards } },
                 2);
    sherd__about(m->about,
                 (const sherd__about_part[]){
                     { all, sizeof all }, { q->left, 40 }, { m->params, sizeof m->params } },
                 3);
    sherd__about(m->bound,
                 (const sherd__about_part[]){ { all, sizeof all }, { m->about, sizeof m->about } },
                 2);
    for (uint32_t i = 1; i < N; i++)
        if (m->member[i] && !sherd__aggregate_begin(m->member[i], m->round, m->bound, &e, NULL))
            (void)!sherd__aggregate_send(m->member[i], 0, m->pieces[i], NULL);
    m->checking = false;
    *q = (question){ .op = SHERD__OP_SEAL,
                     .left_len = SHERD__SECURE_SEAL,
                     .dtype = SHERD_U8,
                     .rows = N,
                     .cols = SEALED };
    q->left[0] = SHERD__SECURE_FORMAT;
    q->left[1] = m->round;
    memcpy(q->left + 2, m->about, sizeof m->about);
}

static void ask_confirm(steps *m, question *q)
{
    static const uint32_t who[N] = { 0, 1, 2 };
    uint8_t text[SHERD__CONFIRMATION];
    sherd__confirmation(text, JOB, m->round, m->bound, who, N);
    for (int i = 1; i < N; i++)
        if (sherd__identity_sign(puppet[i], text, sizeof text, m->signatures[i]) != 0) abort();
    *q = (question){ .op = SHERD__OP_CONFIRM,
                     .left = { SHERD__SECURE_FORMAT, m->round, 0, 1, 2 },
                     .left_len = 5,
                     .dtype = SHERD_U8,
                     .rows = 1,
                     .cols = SHERD__SECURE_SIGNATURE };
}

/* Appends the pieces that every member has sealed for the node. */
static void add_pieces(const steps *m, question *q)
{
    q->right_dtype = SHERD_U8;
    q->right_rows = N;
    q->right_cols = SEALED;
    memcpy(q->right, m->pieces, sizeof m->pieces);
}

static void ask_check(steps *m, question *q)
{
    m->checking = true;
    *q = (question){ .op = SHERD__OP_CHECK,
                     .left = { SHERD__SECURE_FORMAT, m->round },
                     .left_len = SHERD__SECURE_CHECK,
                     .dtype = SHERD_U8,
                     .rows = 1,
                     .cols = N };
    add_pieces(m, q);
}

/* Without pieces if they have been checked. */
static void ask_open(const steps *m, question *q, bool pieces)
{
    *q = (question){ .op = SHERD__OP_OPEN,
                     .left = { SHERD__SECURE_FORMAT, m->round },
                     .left_len = SHERD__SECURE_OPEN + N * SHERD__SECURE_CONFIRMED,
                     .dtype = SHERD_I64,
                     .rows = 1,
                     .cols = PIECE };
    for (uint64_t i = 0; i < N; i++) {
        uint64_t *at = q->left + SHERD__SECURE_OPEN + SHERD__SECURE_CONFIRMED * i;
        at[0] = i;
        memcpy(at + 1, m->signatures[i], SHERD__SECURE_SIGNATURE);
    }
    if (pieces) add_pieces(m, q);
}

/* ---- properties of the answers --------------------------------------------------------------- */

/* The number of a request encodes what is checked of its answer: the era, in which at most one
 * round starts; and the members whose pieces are not the sealed ones. Counts from 1,000. */
static uint32_t number_of(const steps *m, const question *q, uint32_t count)
{
    uint32_t bad = 0;
    for (uint32_t i = 1; i < N && q->right_cols == SEALED; i++)
        bad |= (uint32_t)(memcmp(q->right + i * SEALED, m->pieces[i], SEALED) != 0) << i;
    return (m->era % 4096) << 20 | bad << 16 | (1000 + count % 60000);
}

/* HIDE, CHECK and OPEN are answered once a round; CHECK detects pieces that are not sealed
 * correctly, and then there is no sum. len: bytes of the answer. */
static void check_answer(steps *m, const sherd__task *t, const uint8_t *bytes, uint64_t len)
{
    const uint32_t era = (t->task >> 20) + 1, bad = t->task >> 16 & 15;
    if (t->op == SHERD__OP_HIDE || t->op == SHERD__OP_CHECK || t->op == SHERD__OP_OPEN) {
        assert(m->answered[t->op] != era);
        m->answered[t->op] = era;
    }
    if (t->op == SHERD__OP_CHECK)
        for (uint32_t i = 0; i < N && i < len; i++) {
            assert(bytes[i] <= 1 && bytes[i] >= (bad >> i & 1));
            if (bytes[i]) m->unsealed = era;
        }
    if (t->op == SHERD__OP_OPEN) assert(m->unsealed != era && !bad);
}

/* ---- all-reduce groups ----------------------------------------------------------------------- */

/* A meeting of the node alone, or with member 1; continues from the node's state, or from START. */
static void ask_meet(steps *m, question *q, const sherd_identity *node, bool two, bool on)
{
    sherd__allreduce_plan p = { .kind = m->allreduce % 2 ? SHERD__REDUCE_RING
                                                         : SHERD__REDUCE_HALVING,
                                .members = two ? 2 : 1,
                                .id = GROUPS + ++m->allreduce,
                                .recipe = TEXT,
                                .state = on ? 0 : START,
                                .round = on ? m->made : 0,
                                .bits = 17,
                                .batch = 8,
                                .examples = 8,
                                .optimiser = { .method = SHERD__MOMENTUM } };
    char line[256];
    *q = (question){ .op = SHERD__OP_MEET,
                     .left_len = SHERD__ALLREDUCE_PLAN,
                     .right_dtype = SHERD_U8,
                     .right_rows = 1,
                     .dtype = SHERD_I64,
                     .rows = 1,
                     .cols = 1 };
    sherd__allreduce_plan_write((uint8_t *)q->left, &p);
    for (int i = 0; i < 1 + two; i++) {
        sherd__peer member = { .port = (uint16_t)(9 + i),
                               .host = "127.0.0.1",
                               .has_key = true,
                               .weight = 1,
                               .key = *sherd__identity_fingerprint(i ? puppet[1] : node) };
        (void)sherd__peer_format(&member, line, sizeof line);
        size_t len = strlen(line);
        memcpy(q->right + q->right_cols, line, len);
        q->right[q->right_cols + len] = '\n';
        q->right_cols += (uint32_t)len + 1;
    }
    m->allreduce_round = m->made = on ? m->made : 0;
}

/* STEP, or REDUCE of the previous step: four rows of the eight. */
static void ask_step(steps *m, question *q, bool reduce)
{
    if (!reduce) {
        m->made = m->allreduce_round;
        m->allreduce_round++;
    }
    const uint64_t numbers[] = { SHERD__ALLREDUCE_FORMAT,
                                 m->allreduce_round,
                                 m->made,
                                 bits_of(0.5),
                                 bits_of(4),
                                 0,
                                 m->packs,
                                 0,
                                 8,
                                 0,
                                 0,
                                 0,
                                 0,
                                 1,
                                 TEXT,
                                 17,
                                 60,
                                 1,
                                 10,
                                 1,
                                 8,
                                 20,
                                 0,
                                 0,
                                 m->allreduce_round % 4,
                                 4,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 bits_of(1) };
    *q = (question){ .op = reduce ? SHERD__OP_REDUCE : SHERD__OP_STEP,
                     .left_len = sizeof numbers / 8,
                     .dtype = reduce ? SHERD_F64 : SHERD_I64,
                     .rows = 1,
                     .cols = reduce ? 1 + SHERD__ALLREDUCE_FIGURES : 3 };
    memcpy(q->left, numbers, sizeof numbers);
}

/* A round of gradients over a shard of INPUTS and TARGETS. */
static void ask_gradient(question *q)
{
    static const double params[COUNT] = { 0.5, -0.25, 0.125 };
    const uint64_t numbers[] = { 1,       TEXT, 17, 60, 1, PARAMS, 1, 8, 20,        INPUTS,
                                 TARGETS, 0,    8,  0,  0, 0,      0, 0, bits_of(1) };
    *q = (question){ .op = SHERD__OP_GRADIENT,
                     .left_len = sizeof numbers / 8,
                     .right_rows = 1,
                     .right_cols = COUNT,
                     .right_dtype = SHERD_F64,
                     .dtype = SHERD_I64,
                     .rows = 1,
                     .cols = COUNT + 2 + 5 };
    memcpy(q->left, numbers, sizeof numbers);
    memcpy(q->right, params, sizeof params);
}

static void ask_state(const steps *m, question *q, bool hash)
{
    const uint64_t numbers[] = { SHERD__ALLREDUCE_FORMAT, m->allreduce_round, bits_of(0.5), STATE,
                                 hash };
    *q = (question){ .op = SHERD__OP_STATE,
                     .left_len = 5,
                     .dtype = hash ? SHERD_I64 : SHERD_F64,
                     .rows = 1,
                     .cols = hash ? 4 : STATE };
    memcpy(q->left, numbers, sizeof numbers);
}

static void ask_bare(question *q, uint32_t op, uint64_t cols)
{
    *q = (question){
        .op = op, .left = { 1 }, .left_len = 1, .dtype = SHERD_I64, .rows = 1, .cols = cols
    };
}

/* ---- a ledger -------------------------------------------------------------------------------- */

enum { CHARGES = 64 };

/* Full after CHARGES uploads: then it fails, as a full disk does. */
static struct {
    sherd__charge list[CHARGES];
    uint8_t keys[CHARGES][N][SHERD__LEDGER_DIGEST];
    uint8_t bound[CHARGES][2][SHERD__LEDGER_DIGEST];
    uint32_t len, binds;
} charges;

static double charges_spent(void *ctx, uint64_t first, uint64_t rows)
{
    double sum = 0;
    (void)ctx;
    for (uint32_t i = 0; i < charges.len; i++)
        if (charges.list[i].first < first + rows &&
            first < charges.list[i].first + charges.list[i].rows)
            sum += charges.list[i].rho;
    return sum;
}

static uint64_t charges_rounds(void *ctx, const uint8_t *coordinator, uint64_t job)
{
    uint64_t n = 0;
    (void)ctx;
    for (uint32_t i = 0; i < charges.len; i++)
        n += charges.list[i].job == job &&
             !memcmp(charges.list[i].coordinator, coordinator, SHERD__LEDGER_DIGEST);
    return n;
}

static uint64_t charges_today(void *ctx, const uint8_t *coordinator)
{
    uint64_t n = 0;
    (void)ctx;
    for (uint32_t i = 0; i < charges.len; i++)
        n += !coordinator ||
             !memcmp(charges.list[i].coordinator, coordinator, SHERD__LEDGER_DIGEST);
    return n;
}

static sherd__charged charges_known(void *ctx, const uint8_t about[SHERD__LEDGER_DIGEST])
{
    sherd__charged out = { 0 };
    (void)ctx;
    for (uint32_t i = 0; i < charges.len; i++)
        if (!memcmp(charges.list[i].about, about, SHERD__LEDGER_DIGEST))
            out = (sherd__charged){ .keys = (const uint8_t(*)[32])charges.keys[i],
                                    .nodes = charges.list[i].nodes,
                                    .threshold = charges.list[i].threshold };
    for (uint32_t i = 0; i < charges.binds; i++)
        if (!memcmp(charges.bound[i][0], about, SHERD__LEDGER_DIGEST))
            out.opened = charges.bound[i][1];
    return out;
}

static int charges_add(void *ctx, const sherd__charge *c, sherd_diag *d)
{
    (void)ctx, (void)d;
    if (charges.len == CHARGES || c->nodes > N) return SHERD_EIO;
    charges.list[charges.len] = *c;
    memcpy(charges.keys[charges.len++], c->keys, c->nodes * sizeof *c->keys);
    return SHERD_OK;
}

static int charges_bind(void *ctx, const uint8_t about[SHERD__LEDGER_DIGEST],
                        const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d)
{
    const sherd__charged was = charges_known(ctx, about);
    (void)d;
    if (was.opened)
        return memcmp(was.opened, members, SHERD__LEDGER_DIGEST) ? SHERD_EEXPOSURE : SHERD_OK;
    if (charges.binds == CHARGES) return SHERD_EIO;
    memcpy(charges.bound[charges.binds][0], about, SHERD__LEDGER_DIGEST);
    memcpy(charges.bound[charges.binds++][1], members, SHERD__LEDGER_DIGEST);
    return SHERD_OK;
}

static const sherd__ledger_ops charges_ops = { charges_spent, charges_rounds, charges_today,
                                               charges_known, charges_add,    charges_bind };

#endif
