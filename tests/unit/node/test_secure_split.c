/*
 * A coordinator that lies about the members of a sum: it names one set of survivors to some nodes
 * and another set to the others, has T members that sign and answer anything, and forwards what it
 * chooses, in one session with each node or in two. The honest nodes are real, and no two sets get
 * an answer from them. Also, the result of a sum that is opened correctly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "crypto/aggregate.h"
#include "learn/secure.h"
#include "tests/support/draw.h"
#include "tests/support/joined.h"
#include "tests/support/memory_ledger.h"
#include "tests/support/no_backend.h"
#include "tests/support/under_valgrind.h"

static const char text[] = "input = 2\nlayer = dense 1\nloss = squared\ntargets = values\n"
                           "data = file\nepochs = 1\nrate = 0.5\n";
enum {
    COUNT = 3,
    LEN = COUNT + SHERD__SECURE_EXTRA,
    MOST = 7,
    ROWS = 6,
    JOB = 9,
    TEXT = 1,
    PLAN = 2,
    ROSTER = 3,
    FIRST = 10,
    LINKS = 2
};

/* A session with a node. */
typedef struct link {
    joined j;
    uint32_t tasks, next_block;
    uint8_t *pieces;
} link;

typedef struct party {
    sherd_identity *identity;
    double examples[ROWS * 3];
    sherd__own own;
    memory_ledger ledger;
    sherd__executor *executor;
    sherd__worker *worker;
    link links[LINKS];
    int refused;
    uint8_t *result; /* of the last task */
    uint8_t upload[8 * LEN], answer[8 * LEN];
} party;

static party parties[MOST];
static sherd__aggregate a;
static double params[COUNT] = { 0.5, -0.25, 0.125 }, clip, noise; /* clip, noise: of the plan */
static unsigned on, links = 1; /* the session in use, and the number of sessions with each node */
static uint8_t cards[LINKS][MOST * SHERD__SECURE_CARD], roster[LINKS][SHERD__ABOUT],
    about[LINKS][SHERD__ABOUT], bound[LINKS][SHERD__ABOUT];

/* ---- requests -------------------------------------------------------------------------------- */

static void hear(void *ctx, sherd__event *e)
{
    party *p = ctx;
    if (e->kind != SHERD__EV_RESULT && e->kind != SHERD__EV_REFUSED) return;
    p->refused = e->kind == SHERD__EV_REFUSED ? e->refusal.code : 0;
    if (p->refused) return;
    size_t len = (size_t)sherd__fragment_info_of(e->fragment)->len;
    free(p->result);
    p->result = malloc(len);
    memcpy(p->result, sherd__fragment_bytes(e->fragment), len);
}

static int ask(party *p, uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t rows,
               uint64_t cols)
{
    joined *j = &p->links[on].j;
    p->refused = 1;
    joined_ask(j, JOB, ++p->links[on].tasks, op, left, right, dtype, rows, cols);
    joined_settle(j, p->executor);
    return p->refused;
}

static uint32_t put(party *p, uint8_t dtype, uint64_t rows, uint64_t cols, const void *bytes)
{
    link *l = &p->links[on];
    joined_put(&l->j, JOB, FIRST + l->next_block, dtype, rows, cols, bytes);
    return FIRST + l->next_block++;
}

static void start(uint32_t i)
{
    party *p = &parties[i];
    *p = (party){ 0 };
    assert_int_equal(sherd_identity_new(&p->identity, NULL), 0);
    for (size_t k = 0; k < ROWS * 3; k++) p->examples[k] = (double)draw() / 0x1p32;
    p->own.x = sherd_view_c(p->examples, SHERD_F64, i + 1 < ROWS ? i + 1 : ROWS, 3);
    assert_int_equal(sherd__executor_new_inline(&p->executor), 0);
    sherd__worker_options o = { .backend = &none,
                                .memory = (uint64_t)16 << 20,
                                .executor = p->executor,
                                .self = { .identity = p->identity,
                                          .data = &p->own,
                                          .policy = &policy_of_tests,
                                          .ledger = memory_ledger_ref(&p->ledger) } };
    assert_int_equal(sherd__worker_new(&p->worker, &o), 0);
    for (unsigned k = 0; k < links; k++) joined_open(&p->links[k].j, p->worker, hear, p);
}

static void stop(void)
{
    for (uint32_t i = 0; i < a.nodes; i++) {
        party *p = &parties[i];
        for (unsigned k = 0; k < links; k++) {
            joined_cut(&p->links[k].j);
            free(p->links[k].pieces);
        }
        assert_int_equal(sherd__worker_memory(p->worker)->used, 0);
        sherd__worker_free(p->worker);
        sherd__executor_free(p->executor);
        sherd_identity_free(p->identity);
        free(p->result);
    }
}

/* All members join in the session in use, and get the roster. */
static void join(uint32_t nodes, uint32_t survivors, uint32_t colluding)
{
    uint8_t training[SHERD__ABOUT], more[SHERD__SECURE_TRAINING];
    sherd__secure_plan all = { .recipe = TEXT,
                               .nodes = nodes,
                               .threshold = survivors,
                               .colluding = colluding,
                               .rows = ROWS,
                               .places = ROWS,
                               .clip = clip,
                               .noise = noise };
    sherd__secure_training(more, &all);
    for (uint32_t i = 0; i < nodes; i++) {
        uint8_t plan[8 * SHERD__SECURE_PLAN];
        sherd__secure_plan p = all;
        p.self = i;
        joined *j = &parties[i].links[on].j;
        sherd__secure_plan_write(plan, &p);
        joined_put(j, JOB, TEXT, SHERD_U8, 1, sizeof text - 1, text);
        joined_put(j, JOB, PLAN, SHERD_I64, 1, SHERD__SECURE_PLAN, plan);
        assert_int_equal(ask(&parties[i], SHERD__OP_JOIN, PLAN, 0, SHERD_U8, 1, SHERD__SECURE_CARD),
                         0);
        memcpy(cards[on] + i * SHERD__SECURE_CARD, parties[i].result, SHERD__SECURE_CARD);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        joined_put(&parties[i].links[on].j, JOB, ROSTER, SHERD_U8, nodes, SHERD__SECURE_CARD,
                   cards[on]);
        assert_int_equal(ask(&parties[i], SHERD__OP_ROSTER, PLAN, ROSTER, SHERD_I64, 1, 1), 0);
    }
    sherd__about(training,
                 (const sherd__about_part[]){ { text, sizeof text - 1 }, { more, sizeof more } },
                 2);
    sherd__about(roster[on],
                 (const sherd__about_part[]){ { training, sizeof training },
                                              { cards[on], nodes * SHERD__SECURE_CARD } },
                 2);
}

static void meet(uint32_t nodes, uint32_t survivors, uint32_t colluding)
{
    a = (sherd__aggregate){ nodes, survivors, colluding, LEN };
    for (uint32_t i = 0; i < nodes; i++) start(i);
    for (on = links; on-- > 0;) join(nodes, survivors, colluding);
    on = 0;
}

/* Pieces and uploads of all members, with new parameters or again with those of round `as`. */
static void give_as(uint64_t round, uint64_t as)
{
    uint64_t hiding[SHERD__SECURE_HIDE + 2] = { SHERD__SECURE_FORMAT, round, 0, 20, 20 };
    uint64_t sealing[SHERD__SECURE_SEAL] = { SHERD__SECURE_FORMAT, round };
    size_t sealed = sherd__aggregate_sealed_len(&a);
    params[1] = (double)as / 64;
    sherd__about(about[on],
                 (const sherd__about_part[]){ { roster[on], SHERD__ABOUT },
                                              { hiding, sizeof hiding },
                                              { params, sizeof params } },
                 3);
    sherd__about(bound[on],
                 (const sherd__about_part[]){ { roster[on], SHERD__ABOUT },
                                              { about[on], SHERD__ABOUT } },
                 2);
    memcpy(sealing + 2, about[on], SHERD__ABOUT);
    for (uint32_t i = 0; i < a.nodes; i++) {
        party *p = &parties[i];
        uint32_t at = put(p, SHERD_I64, 1, SHERD__SECURE_SEAL, sealing);
        assert_int_equal(ask(p, SHERD__OP_SEAL, at, 0, SHERD_U8, a.nodes, sealed), 0);
        free(p->links[on].pieces);
        p->links[on].pieces = p->result;
        p->result = NULL;
        at = put(p, SHERD_I64, 1, SHERD__SECURE_HIDE + 2, hiding);
        (void)put(p, SHERD_F64, 1, COUNT, params);
        assert_int_equal(ask(p, SHERD__OP_HIDE, at, at + 1, SHERD_I64, 1, LEN), 0);
        memcpy(p->upload, p->result, sizeof p->upload);
    }
}

static void give(uint64_t round)
{
    give_as(round, round);
}

/* ---- two sets of survivors: all, and all but member 0 -------------------------------------- */

static uint8_t signatures[LINKS][2][MOST][SHERD__SECURE_SIGNATURE];
static bool has_signed[LINKS][2][MOST];

static uint32_t list_of(unsigned set, uint32_t *list)
{
    for (uint32_t i = set; i < a.nodes; i++) list[i - set] = i;
    return a.nodes - set;
}

/* Signs the statement as a member that signs anything. */
static void sign(uint64_t round, unsigned set, uint32_t i)
{
    uint32_t list[MOST], len = list_of(set, list);
    uint8_t statement[SHERD__CONFIRMATION];
    sherd__confirmation(statement, JOB, round, bound[on], list, len);
    assert_int_equal(sherd__identity_sign(parties[i].identity, statement, sizeof statement,
                                          signatures[on][set][i]),
                     0);
    has_signed[on][set][i] = true;
}

/* T members sign for both sets. */
static void collude(uint64_t round)
{
    memset(has_signed[on], 0, sizeof has_signed[on]);
    for (uint32_t i = a.nodes - a.colluding; i < a.nodes; i++) {
        sign(round, 0, i);
        sign(round, 1, i);
    }
}

static int confirm(uint64_t round, unsigned set, uint32_t i)
{
    uint64_t question[SHERD__SECURE_CONFIRM + MOST] = { SHERD__SECURE_FORMAT, round };
    uint32_t list[MOST], len = list_of(set, list);
    party *p = &parties[i];
    for (uint32_t k = 0; k < len; k++) question[SHERD__SECURE_CONFIRM + k] = list[k];
    uint32_t at = put(p, SHERD_I64, 1, SHERD__SECURE_CONFIRM + len, question);
    int err = ask(p, SHERD__OP_CONFIRM, at, 0, SHERD_U8, 1, SHERD__SECURE_SIGNATURE);
    if (err) return err;
    memcpy(signatures[on][set][i], p->result, SHERD__SECURE_SIGNATURE);
    has_signed[on][set][i] = true;
    return 0;
}

/* Opens with the signatures of members that signed `set`; mixed: and of those that signed the other
 * set. */
static int open_set(uint64_t round, unsigned set, uint32_t i, bool mixed)
{
    uint64_t question[SHERD__SECURE_OPEN + MOST * SHERD__SECURE_CONFIRMED] = { SHERD__SECURE_FORMAT,
                                                                               round };
    uint8_t pieces[MOST * (8 * LEN + SHERD__SEAL_EXTRA)];
    size_t sealed = sherd__aggregate_sealed_len(&a), told = 0;
    uint32_t list[MOST], len = list_of(set, list);
    party *p = &parties[i];
    for (uint32_t k = 0; k < a.nodes; k++) {
        uint64_t *at = question + SHERD__SECURE_OPEN + SHERD__SECURE_CONFIRMED * told;
        unsigned from = has_signed[on][set][k] ? set : !set;
        if (!has_signed[on][from][k] || (from != set && !mixed)) continue;
        at[0] = k;
        memcpy(at + 1, signatures[on][from][k], SHERD__SECURE_SIGNATURE);
        told++;
    }
    for (uint32_t k = 0; k < len; k++)
        memcpy(pieces + k * sealed, parties[list[k]].links[on].pieces + i * sealed, sealed);
    uint32_t at = put(p, SHERD_I64, 1, SHERD__SECURE_OPEN + SHERD__SECURE_CONFIRMED * told,
                      question);
    (void)put(p, SHERD_U8, len, sealed, pieces);
    int err = ask(p, SHERD__OP_OPEN, at, at + 1, SHERD_I64, 1, sherd__aggregate_piece_len(&a));
    if (!err) memcpy(p->answer, p->result, 8 * sherd__aggregate_piece_len(&a));
    return err;
}

/* Names one of the two sets to each honest member (bits of `told`). answers: the number of members
 * that answer for each set. */
static void split(uint64_t round, unsigned told, uint32_t answers[2])
{
    uint32_t honest = a.nodes - a.colluding, all[2] = { a.colluding, a.colluding };
    answers[0] = answers[1] = 0;
    collude(round);
    for (uint32_t i = 0; i < honest; i++) {
        unsigned set = told >> i & 1;
        assert_int_equal(confirm(round, set, i), 0);
        assert_int_equal(confirm(round, !set, i), SHERD_EINVAL);
        all[set]++;
    }
    for (uint32_t i = 0; i < honest; i++) {
        unsigned set = told >> i & 1;
        bool enough = all[set] >= a.threshold;
        if (all[!set] > a.colluding) assert_int_equal(open_set(round, set, i, true), SHERD_EAUTH);
        assert_int_equal(open_set(round, !set, i, false), SHERD_EAUTH); /* a set that it did not
                                                                         * confirm */
        assert_int_equal(open_set(round, set, i, false), enough ? 0 : SHERD_EFEWNODES);
        answers[set] += enough;
    }
}

/* Under valgrind, one small and one large group are enough: the others take the same paths. */
static bool passes_over(const uint32_t shape[3])
{
    return under_valgrind() && !(shape[0] == 4 || (shape[0] == MOST && shape[2] == 2));
}

static void at_most_one_set_of_a_round_is_answered_however_members_are_split(void **s)
{
    (void)s;
    static const uint32_t shapes[][3] = { { 4, 3, 1 }, { 5, 4, 2 }, { 7, 5, 1 }, { 7, 5, 2 } };
    for (size_t q = 0; q < sizeof shapes / sizeof *shapes; q++) {
        uint32_t answers[2], opened[2] = { 0, 0 }, closed = 0;
        if (passes_over(shapes[q])) continue;
        draw_state = 40 + q;
        meet(shapes[q][0], shapes[q][1], shapes[q][2]);
        for (unsigned told = 0; told < 1u << (a.nodes - a.colluding); told++) {
            give(told + 1);
            split(told + 1, told, answers);
            assert_true(answers[0] == 0 || answers[1] == 0);
            for (unsigned k = 0; k < 2; k++) opened[k] += answers[k] + a.colluding >= a.threshold;
            closed += answers[0] + answers[1] == 0;
        }
        assert_int_equal(opened[0], opened[1]);
        assert_int_equal(opened[0] + opened[1] + closed, 1u << (a.nodes - a.colluding));
        assert_true(opened[0] > 0);
        stop();
    }
}

/* The same sum is requested in a second round, of the same members: it is opened over the set of
 * the first round or not at all. */
static void at_most_one_set_of_a_sum_is_opened_in_two_rounds(void **s)
{
    (void)s;
    static const uint32_t shapes[][3] = { { 4, 3, 1 }, { 5, 4, 2 } };
    unsigned again = 0, refused = 0;
    for (size_t q = 0; q < sizeof shapes / sizeof *shapes; q++) {
        if (passes_over(shapes[q])) continue;
        draw_state = 60 + q;
        meet(shapes[q][0], shapes[q][1], shapes[q][2]);
        uint32_t honest = a.nodes - a.colluding;
        uint64_t round = 0;
        for (unsigned first = 0; first < 1u << honest; first++)
            for (unsigned second = 0; second < 1u << honest; second++) {
                uint32_t opened[2] = { 0, 0 };
                uint64_t as = round + 1;
                for (unsigned turn = 0; turn < 2; turn++) {
                    unsigned told = turn ? second : first;
                    give_as(++round, as);
                    collude(round);
                    for (uint32_t i = 0; i < honest; i++)
                        refused += confirm(round, told >> i & 1, i) != 0;
                    for (unsigned set = 0; set < 2; set++) {
                        uint32_t answers = a.colluding;
                        for (uint32_t i = 0; i < honest; i++)
                            answers += !open_set(round, set, i, false);
                        opened[set] += answers >= a.threshold;
                    }
                }
                assert_true(opened[0] == 0 || opened[1] == 0);
                again += opened[0] + opened[1] == 2;
            }
        stop();
    }
    assert_true(again > 10 && refused > (under_valgrind() ? 50 : 100));
}

/* The same in two sessions with each node, over the same members: both have given and confirmed
 * before either is opened. They are opened member by member, or session by session. */
static void at_most_one_set_of_a_sum_is_opened_in_two_sessions(void **s)
{
    (void)s;
    static const uint32_t shapes[][3] = { { 4, 3, 1 }, { 5, 4, 2 } };
    unsigned again = 0, refused = 0;
    links = LINKS;
    for (size_t q = 0; q < sizeof shapes / sizeof *shapes; q++) {
        if (passes_over(shapes[q])) continue;
        draw_state = 70 + q;
        meet(shapes[q][0], shapes[q][1], shapes[q][2]);
        const uint32_t honest = a.nodes - a.colluding;
        for (unsigned k = 0; k < 2u << 2 * honest; k++) {
            const unsigned told[LINKS] = { k >> 1 & ((1u << honest) - 1), k >> (honest + 1) };
            uint32_t opened[2] = { 0, 0 }, answers[LINKS][2] = { { 0 } };
            bool asked[MOST][2] = { { false } }, answered[MOST][2] = { { false } };
            for (on = 0; on < links; on++) give(k + 1);
            for (on = 0; on < links; on++) {
                collude(k + 1);
                for (uint32_t i = 0; i < honest; i++)
                    assert_int_equal(confirm(k + 1, told[on] >> i & 1, i), 0);
            }
            for (unsigned turn = 0; turn < links * honest; turn++) {
                uint32_t i = k & 1 ? turn / links : turn % honest;
                on = k & 1 ? turn % links : turn / honest;
                unsigned set = told[on] >> i & 1;
                int err = open_set(k + 1, set, i, false);
                answers[on][set] += !err;
                answered[i][set] |= !err;
                assert_int_equal(err == SHERD_EEXPOSURE, asked[i][!set]);
                asked[i][set] = true;
                refused += err == SHERD_EEXPOSURE;
                if (err == SHERD_EEXPOSURE) /* and again */
                    assert_int_equal(open_set(k + 1, set, i, false), SHERD_EEXPOSURE);
            }
            for (uint32_t i = 0; i < honest; i++) assert_false(answered[i][0] && answered[i][1]);
            for (on = 0; on < links; on++)
                for (unsigned set = 0; set < 2; set++)
                    opened[set] += answers[on][set] + a.colluding >= a.threshold;
            assert_true(opened[0] == 0 || opened[1] == 0);
            again += opened[0] + opened[1] == 2;
        }
        on = 0;
        stop();
    }
    links = 1;
    assert_true(again > 10 && refused > (under_valgrind() ? 50 : 100));
}

/* ---- correct rounds -------------------------------------------------------------------------- */

/* Computes the sum of a round over one of the sets; returns the number of examples of its nodes. */
static int64_t sum_of(uint64_t round, unsigned set, int64_t *sum)
{
    uint64_t uploads[LEN] = { 0 }, held[MOST][LEN];
    const uint64_t *answers[MOST];
    uint32_t who[MOST], list[MOST], len = list_of(set, list);
    int64_t rows = 0;
    memset(has_signed[on], 0, sizeof has_signed[on]);
    for (uint32_t i = 0; i < a.nodes; i++) assert_int_equal(confirm(round, set, i), 0);
    for (uint32_t i = 0; i < len; i++) {
        uint64_t x[LEN];
        assert_int_equal(sherd__aggregate_parse(parties[list[i]].upload, LEN, x), 0);
        sherd__aggregate_add(uploads, x, LEN);
        rows += (int64_t)parties[list[i]].own.x.rows;
    }
    for (uint32_t i = 0; i < a.threshold; i++) {
        who[i] = i + (a.nodes - a.threshold) * set;
        assert_int_equal(open_set(round, set, who[i], false), 0);
        assert_int_equal(sherd__aggregate_parse(parties[who[i]].answer,
                                                sherd__aggregate_piece_len(&a), held[i]),
                         0);
        answers[i] = held[i];
    }
    assert_int_equal(sherd__aggregate_reveal(&a, uploads, who, answers, sum, NULL), 0);
    return rows;
}

static void a_set_that_all_confirm_is_opened_by_any_u_answers(void **s)
{
    (void)s;
    draw_state = 50;
    meet(7, 5, 2);
    for (unsigned set = 0; set < 2; set++) {
        int64_t sum[LEN];
        give(set + 1);
        int64_t rows = sum_of(set + 1, set, sum);
        assert_int_equal(sum[COUNT], rows);
    }
    stop();
}

/* With the same parameters, rounds differ only by noise: fresh for each, with the variance that the
 * accountant assumes for each participating node. */
static void each_round_has_noise_of_every_participating_node(void **s)
{
    (void)s;
    enum { ROUNDS = 150 };
    static int64_t sums[ROUNDS][LEN];
    double squares = 0;
    size_t alike = 0;
    clip = 0.5;
    noise = 3;
    draw_state = 52;
    meet(5, 4, 1);
    const sherd__privacy_round r = { 4, 1, COUNT, noise };
    for (unsigned i = 0; i < ROUNDS; i++) {
        give_as(i + 1, 1);
        (void)sum_of(i + 1, 0, sums[i]);
    }
    for (unsigned i = 1; i < ROUNDS; i++)
        for (size_t k = 0; k < LEN; k++) {
            double d = (double)(sums[i][k] - sums[i - 1][k]);
            squares += d * d;
            alike += d == 0;
        }
    double each = squares / (2.0 * (ROUNDS - 1) * LEN);
    double want = 5.0 * (double)sherd__privacy_variance(&r);
    assert_true(each > 0.8 * want && each < 1.25 * want);
    assert_true(alike < 3);
    for (uint32_t i = 0; i < 5; i++) { /* and every round was charged */
        assert_int_equal(parties[i].ledger.len, ROUNDS);
        assert_true(parties[i].ledger.charges[7].rho == sherd__privacy_cost(&r));
    }
    clip = noise = 0;
    stop();
}

/* Of two rosters that share a member's card, one is accepted: the signature of a member that
 * received the other roster covers other members. */
static void a_member_with_another_roster_confirms_nothing(void **s)
{
    (void)s;
    uint8_t other[SHERD__ABOUT], was[SHERD__ABOUT];
    draw_state = 51;
    meet(5, 4, 1);
    give(1);
    memset(has_signed[on], 0, sizeof has_signed[on]);
    memcpy(was, bound[on], sizeof was);
    cards[on][3 * SHERD__SECURE_CARD] ^= 1; /* members 1 to 4 received another member 3 */
    sherd__about(other,
                 (const sherd__about_part[]){ { roster[on], SHERD__ABOUT },
                                              { cards[on], sizeof cards[on] } },
                 2);
    sherd__about(bound[on],
                 (const sherd__about_part[]){ { other, sizeof other },
                                              { about[on], SHERD__ABOUT } },
                 2);
    for (uint32_t i = 1; i < 5; i++) sign(1, 0, i);
    memcpy(bound[on], was, sizeof was);
    assert_int_equal(confirm(1, 0, 0), 0);
    assert_int_equal(open_set(1, 0, 0, false), SHERD_EAUTH);
    for (uint32_t i = 1; i < 5; i++) sign(1, 0, i);
    assert_int_equal(open_set(1, 0, 0, false), 0);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_most_one_set_of_a_round_is_answered_however_members_are_split),
        cmocka_unit_test(at_most_one_set_of_a_sum_is_opened_in_two_rounds),
        cmocka_unit_test(at_most_one_set_of_a_sum_is_opened_in_two_sessions),
        cmocka_unit_test(a_set_that_all_confirm_is_opened_by_any_u_answers),
        cmocka_unit_test(each_round_has_noise_of_every_participating_node),
        cmocka_unit_test(a_member_with_another_roster_confirms_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
