/* Secure aggregation: any U answers give the sum and fewer do not, what one node or T nodes hold is
 * uniform, and a node cannot be talked into opening a mask. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/rand.h"
#include "crypto/aggregate.h"

#define JOB 77
#define MOST 9 /* nodes */

static sherd_entropy_seeded stream;

static sherd_entropy entropy(uint64_t seed)
{
    return sherd__entropy_seeded(&stream, seed);
}

/* ---- a whole session ------------------------------------------------------------------------- */

static const uint8_t about[SHERD__ABOUT] = { 1, 2, 3 };

typedef struct session {
    sherd__aggregate a;
    sherd__aggregate_member *node[MOST];
    sherd__seal_key key[MOST];
    uint8_t open[MOST][32];
    int64_t *x;        /* nodes x len */
    uint64_t *uploads; /* nodes x len */
    uint8_t *sealed;
    sherd_entropy e;
} session;

static void begin(session *s, uint32_t n, uint32_t u, uint32_t t, size_t len, uint64_t seed)
{
    *s = (session){ .a = { n, u, t, len }, .e = entropy(seed) };
    assert_int_equal(sherd__aggregate_check(&s->a, NULL), 0);
    for (uint32_t i = 0; i < n; i++) {
        sherd__seal_key_new(&s->key[i]);
        memcpy(s->open[i], s->key[i].open, 32);
    }
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(sherd__aggregate_member_new(&s->node[i], &s->a, i, JOB, &s->key[i],
                                                     (const uint8_t (*)[32])s->open, NULL),
                         0);
    s->x = calloc(n * len, sizeof *s->x);
    s->uploads = calloc(n * len, sizeof *s->uploads);
    s->sealed = malloc(sherd__aggregate_sealed_len(&s->a));
}

static void end(session *s)
{
    for (uint32_t i = 0; i < s->a.nodes; i++) sherd__aggregate_member_free(s->node[i]);
    free(s->x);
    free(s->uploads);
    free(s->sealed);
}

/* Masks, pieces to everybody, uploads of values up to the bound. */
static void round_of(session *s, uint64_t number)
{
    uint64_t bound = (uint64_t)sherd__aggregate_bound(&s->a);
    uint32_t n = s->a.nodes;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(sherd__aggregate_begin(s->node[i], number, about, &s->e, NULL), 0);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            if (i == j) continue;
            assert_int_equal(sherd__aggregate_send(s->node[i], j, s->sealed, NULL), 0);
            assert_int_equal(sherd__aggregate_receive(s->node[j], i, s->sealed, NULL), 0);
        }
    for (uint32_t i = 0; i < n; i++) {
        int64_t *x = s->x + i * s->a.len;
        for (size_t k = 0; k < s->a.len; k++)
            x[k] = (int64_t)sherd__entropy_below(&s->e, 2 * bound + 1) - (int64_t)bound;
        assert_int_equal(sherd__aggregate_upload(s->node[i], x, s->uploads + i * s->a.len, NULL),
                         0);
    }
}

/* A node is told of these survivors, the first U nodes confirm them, and it answers. */
static int answer_for(session *s, uint32_t node, const uint32_t *list, uint32_t len, uint64_t *out)
{
    uint8_t statement[SHERD__CONFIRMATION];
    int err = sherd__aggregate_confirm(s->node[node], list, len, statement, NULL);
    for (uint32_t i = 0; i < s->a.threshold && !err; i++)
        err = sherd__aggregate_confirmed(s->node[node], i, NULL);
    return err ? err : sherd__aggregate_answer(s->node[node], out, NULL);
}

/* Whether the answers of `who` (a bit set, U of them) about `survivors` give the sum over these. */
static bool gives_sum(session *s, unsigned survivors, unsigned who)
{
    size_t len = s->a.len, piece = sherd__aggregate_piece_len(&s->a);
    uint64_t *sum = calloc(len, sizeof *sum), *held = calloc(MOST * piece, sizeof *held);
    const uint64_t *answers[MOST];
    int64_t *got = calloc(len, sizeof *got);
    uint32_t list[MOST], asked[MOST], list_len = 0, asked_len = 0;
    bool equal = true;
    for (uint32_t i = 0; i < s->a.nodes; i++) {
        if (survivors >> i & 1) {
            list[list_len++] = i;
            sherd__aggregate_add(sum, s->uploads + i * len, len);
        }
        if (who >> i & 1 && asked_len < s->a.threshold) asked[asked_len++] = i;
    }
    for (uint32_t j = 0; j < asked_len; j++) {
        uint64_t *answer = held + j * piece;
        assert_int_equal(answer_for(s, asked[j], list, list_len, answer), 0);
        answers[j] = answer;
    }
    assert_int_equal(sherd__aggregate_reveal(&s->a, sum, asked, answers, got, NULL), 0);
    for (size_t k = 0; k < len; k++) {
        int64_t want = 0;
        for (uint32_t j = 0; j < list_len; j++) want += s->x[list[j] * len + k];
        equal = equal && got[k] == want;
    }
    free(sum);
    free(held);
    free(got);
    return equal;
}

static unsigned bits(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

static void any_u_answers_give_the_sum_over_any_survivors(void **state)
{
    static const uint32_t shapes[][3] = { { 3, 3, 1 }, { 4, 3, 1 }, { 5, 4, 1 }, { 5, 4, 2 },
                                          { 7, 5, 1 }, { 7, 6, 4 } };
    uint64_t round = 1;
    (void)state;
    for (size_t q = 0; q < sizeof shapes / sizeof *shapes; q++) {
        for (size_t len = 1; len <= 13; len += 6) {
            session s;
            uint32_t n = shapes[q][0], u = shapes[q][1];
            begin(&s, n, u, shapes[q][2], len, q * 100 + len);
            for (unsigned survivors = 0; survivors < 1u << n; survivors++) {
                if (bits(survivors) < u) continue;
                /* a round has one answer of each node: another set of answers each time */
                unsigned who = (unsigned)round % (1u << n);
                while (bits(who) != u) who = (who + 1) % (1u << n);
                round_of(&s, round++);
                assert_true(gives_sum(&s, survivors, who));
            }
            end(&s);
        }
    }
}

static void one_answer_too_few_or_wrong_gives_something_else(void **state)
{
    session s;
    uint64_t answer[MOST][8], sum[5] = { 0 };
    const uint64_t *answers[MOST];
    const uint32_t all[] = { 0, 1, 2, 3, 4 };
    int64_t got[5];
    (void)state;
    begin(&s, 5, 4, 1, 5, 9);
    round_of(&s, 1);
    for (uint32_t i = 0; i < 5; i++) {
        sherd__aggregate_add(sum, s.uploads + i * 5, 5);
        assert_int_equal(answer_for(&s, i, all, 5, answer[i]), 0);
        answers[i] = answer[i];
    }
    answer[3][0] ^= 1; /* what is missing, but for a bit of one number */
    assert_int_equal(sherd__aggregate_reveal(&s.a, sum, all, answers, got, NULL), 0);
    int64_t want = 0;
    for (uint32_t i = 0; i < 5; i++) want += s.x[i * 5];
    assert_true(got[0] != want);
    const uint32_t twice[] = { 0, 1, 1, 3 }, none[] = { 0, 1, 2, 5 };
    assert_int_equal(sherd__aggregate_reveal(&s.a, sum, twice, answers, got, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_reveal(&s.a, sum, none, answers, got, NULL), SHERD_EINVAL);
    end(&s);
}

/* ---- secrecy --------------------------------------------------------------------------------- */

/* chi-squared over 16 classes: below 44 but once in ten thousand. */
static double chi(const unsigned *count, unsigned all)
{
    double x = 0, mean = all / 16.0;
    for (unsigned i = 0; i < 16; i++) x += (count[i] - mean) * (count[i] - mean) / mean;
    return x;
}

static unsigned top(uint64_t x)
{
    return (unsigned)(x >> 57);
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a >= b ? a - b : a + SHERD__AGGREGATE_Q - b;
}

static void a_piece_and_an_upload_are_uniform_and_tell_nothing_of_the_mask(void **state)
{
    enum { ROUNDS = 4000 };
    const sherd__aggregate a = { 3, 3, 1, 2 }, deep = { 5, 5, 3, 1 };
    sherd_entropy e = entropy(21);
    unsigned upload[16] = { 0 }, piece[16] = { 0 }, apart[16] = { 0 }, three[16] = { 0 };
    (void)state;
    for (unsigned r = 0; r < ROUNDS; r++) {
        sherd__aggregate_mask *m;
        const int64_t x[2] = { 5, -5 };
        uint64_t hidden[2], p[4];
        assert_int_equal(sherd__aggregate_mask_new(&m, &a, &e), 0);
        sherd__aggregate_piece(m, 1, p);
        assert_int_equal(sherd__aggregate_hide(m, x, hidden), 0);
        upload[top(hidden[0])]++;
        piece[top(p[0])]++;
        apart[top(minus(p[0], hidden[0]))]++;
        sherd__aggregate_mask_free(m);
        /* three colluders: what a parabola through their pieces says of the mask, 3 p0 - 3 p1 +
         * p2, which it would be if the highest terms were not there */
        assert_int_equal(sherd__aggregate_mask_new(&m, &deep, &e), 0);
        for (uint32_t j = 0; j < 3; j++) sherd__aggregate_piece(m, j, &p[j]);
        assert_int_equal(sherd__aggregate_hide(m, x, hidden), 0);
        uint64_t guess = p[2];
        for (unsigned k = 0; k < 3; k++) guess = minus(guess, minus(p[1], p[0]));
        three[top(minus(hidden[0], guess))]++;
        sherd__aggregate_mask_free(m);
    }
    assert_true(chi(upload, ROUNDS) < 44);
    assert_true(chi(piece, ROUNDS) < 44);
    assert_true(chi(apart, ROUNDS) < 44);
    assert_true(chi(three, ROUNDS) < 44);
}

static void every_round_has_another_mask(void **state)
{
    session s;
    (void)state;
    begin(&s, 3, 3, 1, 4, 3);
    const int64_t x[4] = { 1, 2, 3, 4 };
    uint64_t first[4], second[4];
    assert_int_equal(sherd__aggregate_begin(s.node[0], 1, about, &s.e, NULL), 0);
    assert_int_equal(sherd__aggregate_upload(s.node[0], x, first, NULL), 0);
    assert_int_equal(sherd__aggregate_upload(s.node[0], x, second, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_begin(s.node[0], 1, about, &s.e, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_begin(s.node[0], 2, about, &s.e, NULL), 0);
    assert_int_equal(sherd__aggregate_upload(s.node[0], x, second, NULL), 0);
    for (size_t i = 0; i < 4; i++) assert_true(first[i] != second[i]);
    end(&s);
}

/* ---- what a node refuses --------------------------------------------------------------------- */

static void thresholds_that_would_open_a_mask_are_refused(void **state)
{
    const sherd__aggregate bad[] = { { 2, 2, 1, 1 },    { 3, 2, 1, 1 }, { 3, 4, 1, 1 },
                                     { 5, 3, 1, 1 },    { 5, 3, 2, 1 }, { 4, 4, 0, 1 },
                                     { 7, 4, 1, 1 },    { 4, 4, 3, 1 }, { 7, 5, 1, 0 },
                                     { 1025, 600, 1, 1 } };
    sherd_diag d = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        d = (sherd_diag){ 0 };
        assert_int_equal(sherd__aggregate_check(&bad[i], &d), SHERD_EINVAL);
        assert_true(d.message[0] != '\0');
    }
    assert_int_equal(sherd__aggregate_threshold(3, 1), 3);
    assert_int_equal(sherd__aggregate_threshold(4, 1), 3);
    assert_int_equal(sherd__aggregate_threshold(5, 1), 4);
    assert_int_equal(sherd__aggregate_threshold(7, 1), 5);
    assert_int_equal(sherd__aggregate_threshold(8, 5), 7);
}

static void a_node_confirms_and_answers_once_and_for_enough_survivors_only(void **state)
{
    session s;
    uint64_t out[8];
    uint32_t told;
    uint8_t statement[SHERD__CONFIRMATION];
    const uint32_t all[] = { 0, 1, 2, 3, 4 }, twice[] = { 0, 1, 1, 2 }, far[] = { 0, 1, 2, 5 };
    (void)state;
    begin(&s, 5, 4, 1, 6, 4);
    sherd__aggregate_member *m = s.node[2];
    assert_int_equal(sherd__aggregate_confirm(m, all, 5, statement, NULL), SHERD_EINVAL);
    round_of(&s, 1);
    assert_int_equal(sherd__aggregate_confirm(m, all, 3, statement, NULL), SHERD_EFEWNODES);
    assert_int_equal(sherd__aggregate_confirm(m, twice, 4, statement, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_confirm(m, far, 4, statement, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_confirmed(m, 1, NULL), SHERD_EINVAL); /* confirms what? */
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EINVAL);
    assert_null(sherd__aggregate_survivors(m, &told));
    assert_int_equal(sherd__aggregate_confirm(m, all, 4, statement, NULL), 0);
    assert_int_equal(sherd__aggregate_confirm(m, all, 4, statement, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_confirm(m, all, 5, statement, NULL), SHERD_EINVAL);
    assert_memory_equal(sherd__aggregate_survivors(m, &told), all, 4 * sizeof *all);
    assert_int_equal(told, 4);
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EFEWNODES);
    for (uint32_t i = 0; i < 4; i++) /* node 1 twice */
        assert_int_equal(sherd__aggregate_confirmed(m, i < 3 ? i : 1, NULL), 0);
    assert_int_equal(sherd__aggregate_confirmed(m, 5, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EFEWNODES);
    assert_int_equal(sherd__aggregate_confirmed(m, 4, NULL), 0);
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), 0);
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EINVAL);
    round_of(&s, 2); /* and nothing of it counts in the next one */
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_confirm(m, all, 5, statement, NULL), 0);
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EFEWNODES);
    end(&s);
}

/* Of two sets of survivors, honest nodes (bits of `told`) are told the one or the other; who
 * colludes confirms both. How many honest nodes answer for each. */
static void split(session *s, unsigned told, uint32_t answers[2])
{
    const uint32_t all[MOST] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    uint32_t n = s->a.nodes, honest = n - s->a.colluding;
    uint64_t out[8];
    uint8_t statement[SHERD__CONFIRMATION];
    answers[0] = answers[1] = 0;
    for (uint32_t i = 0; i < honest; i++) {
        unsigned set = told >> i & 1;
        assert_int_equal(sherd__aggregate_confirm(s->node[i], all + set, n - set, statement, NULL),
                         0);
        for (uint32_t k = 0; k < n; k++)
            if (k >= honest || (told >> k & 1) == set)
                assert_int_equal(sherd__aggregate_confirmed(s->node[i], k, NULL), 0);
        answers[set] += sherd__aggregate_answer(s->node[i], out, NULL) == 0;
    }
}

static void however_nodes_are_told_apart_no_two_sets_are_answered_for(void **state)
{
    static const uint32_t shapes[][3] = { { 4, 3, 1 }, { 5, 4, 1 }, { 5, 4, 2 }, { 7, 5, 1 },
                                          { 7, 5, 2 }, { 7, 6, 4 }, { 8, 6, 3 } };
    unsigned opened = 0, none = 0;
    (void)state;
    for (size_t q = 0; q < sizeof shapes / sizeof *shapes; q++) {
        session s;
        uint64_t round = 1;
        uint32_t answers[2], honest = shapes[q][0] - shapes[q][2];
        begin(&s, shapes[q][0], shapes[q][1], shapes[q][2], 8, 30 + q);
        for (unsigned told = 0; told < 1u << honest; told++) {
            round_of(&s, round++);
            split(&s, told, answers);
            assert_true(answers[0] == 0 || answers[1] == 0);
            opened += answers[0] + answers[1] + s.a.colluding >= s.a.threshold;
            none += answers[0] + answers[1] == 0;
        }
        end(&s);
    }
    assert_true(opened > 50 && none > 20);
}

static void what_is_signed_depends_on_job_round_subject_and_every_survivor(void **state)
{
    uint8_t all[5][SHERD__CONFIRMATION], other[SHERD__ABOUT] = { 1, 2, 4 };
    const uint32_t list[] = { 0, 1, 2, 4 }, moved[] = { 0, 1, 3, 4 };
    (void)state;
    sherd__confirmation(all[0], JOB, 1, about, list, 4);
    sherd__confirmation(all[1], JOB + 1, 1, about, list, 4);
    sherd__confirmation(all[2], JOB, 2, about, list, 4);
    sherd__confirmation(all[3], JOB, 1, other, list, 4);
    sherd__confirmation(all[4], JOB, 1, about, moved, 4);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < i; k++) assert_memory_not_equal(all[i], all[k], sizeof all[i]);
    sherd__confirmation(all[1], JOB, 1, about, list, 3);
    assert_memory_not_equal(all[0], all[1], sizeof all[0]);
    sherd__confirmation(all[1], JOB, 1, about, list, 4);
    assert_memory_equal(all[0], all[1], sizeof all[0]);
}

static void a_survivor_whose_piece_never_came_is_not_answered_for(void **state)
{
    session s;
    uint64_t out[8];
    const uint32_t all[] = { 0, 1, 2, 3 };
    (void)state;
    begin(&s, 4, 3, 1, 6, 5);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sherd__aggregate_begin(s.node[i], 1, about, &s.e, NULL), 0);
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(sherd__aggregate_send(s.node[i], 0, s.sealed, NULL), 0);
        assert_int_equal(sherd__aggregate_receive(s.node[0], i, s.sealed, NULL), 0);
        assert_int_equal(sherd__aggregate_receive(s.node[0], i, s.sealed, NULL), SHERD_EINVAL);
    }
    assert_int_equal(answer_for(&s, 0, all, 4, out), SHERD_ECLOSED);
    assert_int_equal(sherd__aggregate_answer(s.node[0], out, NULL), SHERD_ECLOSED);
    assert_int_equal(sherd__aggregate_send(s.node[3], 0, s.sealed, NULL), 0);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 3, s.sealed, NULL), 0);
    assert_int_equal(sherd__aggregate_answer(s.node[0], out, NULL), 0);
    end(&s);
}

static void a_piece_of_another_round_sender_receiver_or_job_is_refused(void **state)
{
    session s;
    (void)state;
    begin(&s, 4, 3, 1, 6, 6);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sherd__aggregate_begin(s.node[i], 1, about, &s.e, NULL), 0);
    assert_int_equal(sherd__aggregate_send(s.node[1], 0, s.sealed, NULL), 0);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 2, s.sealed, NULL), SHERD_EFRAME);
    assert_int_equal(sherd__aggregate_receive(s.node[2], 1, s.sealed, NULL), SHERD_EFRAME);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 0, s.sealed, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 4, s.sealed, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_send(s.node[1], 1, s.sealed, NULL), SHERD_EINVAL);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(sherd__aggregate_begin(s.node[i], 2, about, &s.e, NULL), 0);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), SHERD_EFRAME);
    uint8_t body[16] = { 1 }, got[16], boxed[16 + SHERD__SEAL_EXTRA];
    const sherd__seal_place here = { JOB, 2, 1, 0, { 0 } }, elsewhere = { JOB + 1, 2, 1, 0, { 0 } };
    const uint8_t *from = s.open[1];
    assert_int_equal(sherd__seal(boxed, body, 16, elsewhere, &s.key[1], s.open[0]), 0);
    assert_int_equal(sherd__unseal(got, 16, boxed, here, from, &s.key[0]), SHERD_EFRAME);
    assert_int_equal(sherd__unseal(got, 16, boxed, elsewhere, from, &s.key[0]), 0);
    assert_memory_equal(got, body, 16);
    end(&s);
}

/* Whoever carries the pieces knows all open keys, places and digests. With pieces of its own in the
 * place of all but one member's, answers would add up to that one's mask. */
static void nobody_seals_a_piece_in_anothers_name(void **state)
{
    session s;
    sherd__seal_key carrier;
    (void)state;
    begin(&s, 4, 3, 1, 6, 19);
    sherd__seal_key_new(&carrier);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sherd__aggregate_begin(s.node[i], 1, about, &s.e, NULL), 0);
    size_t len = sherd__aggregate_sealed_len(&s.a) - SHERD__SEAL_EXTRA;
    uint8_t *known = calloc(1, len);
    sherd__seal_place place = { .job = JOB, .round = 1, .from = 1, .to = 0 };
    memcpy(place.about, about, sizeof about);
    const sherd__seal_key *makers[] = { &carrier, &s.key[2] };
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        assert_int_equal(sherd__seal(s.sealed, known, len, place, makers[i], s.open[0]), 0);
        assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), SHERD_EFRAME);
    }
    /* what a member sealed, back to itself */
    assert_int_equal(sherd__aggregate_send(s.node[0], 1, s.sealed, NULL), 0);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), SHERD_EFRAME);
    assert_int_equal(sherd__aggregate_send(s.node[1], 0, s.sealed, NULL), 0);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), 0);
    free(known);
    end(&s);
}

/* With a point of small order every secret agrees on the same, which everybody knows. */
static void a_key_of_small_order_gets_no_piece(void **state)
{
    static const uint8_t small[][SHERD__SEAL_KEY] = {
        { 0 },
        { 1 },
        { 0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4,
          0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49,
          0xb8, 0x00 },
    };
    sherd__seal_key key, other;
    const uint8_t body[8] = { 1 };
    uint8_t boxed[8 + SHERD__SEAL_EXTRA];
    sherd__seal_place place = { .job = 1 };
    (void)state;
    sherd__seal_key_new(&key);
    sherd__seal_key_new(&other);
    assert_true(sherd__seal_key_valid(other.open));
    assert_int_equal(sherd__seal(boxed, body, 8, place, &key, other.open), SHERD_OK);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        assert_false(sherd__seal_key_valid(small[i]));
        assert_int_equal(sherd__seal(boxed, body, 8, place, &key, small[i]), SHERD_EINVAL);
    }
}

static void a_piece_of_one_who_was_told_something_else_is_refused(void **state)
{
    session s;
    uint8_t other[SHERD__ABOUT] = { 0 };
    (void)state;
    begin(&s, 4, 3, 1, 6, 16);
    for (unsigned bit = 0; bit < 8 * SHERD__ABOUT; bit += 7) {
        memcpy(other, about, sizeof other);
        other[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(sherd__aggregate_begin(s.node[0], bit + 1, about, &s.e, NULL), 0);
        assert_int_equal(sherd__aggregate_begin(s.node[1], bit + 1, other, &s.e, NULL), 0);
        assert_int_equal(sherd__aggregate_begin(s.node[2], bit + 1, about, &s.e, NULL), 0);
        assert_int_equal(sherd__aggregate_send(s.node[1], 0, s.sealed, NULL), 0);
        assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), SHERD_EFRAME);
        assert_int_equal(sherd__aggregate_send(s.node[2], 0, s.sealed, NULL), 0);
        assert_int_equal(sherd__aggregate_receive(s.node[0], 2, s.sealed, NULL), 0);
    }
    end(&s);
}

static void what_a_round_is_about_depends_on_every_part_and_where_it_ends(void **state)
{
    uint8_t a[SHERD__ABOUT], b[SHERD__ABOUT];
    (void)state;
    sherd__about(a, (const sherd__about_part[]){ { "ab", 2 }, { "c", 1 } }, 2);
    sherd__about(b, (const sherd__about_part[]){ { "ab", 2 }, { "c", 1 } }, 2);
    assert_memory_equal(a, b, sizeof a);
    sherd__about(b, (const sherd__about_part[]){ { "a", 1 }, { "bc", 2 } }, 2);
    assert_memory_not_equal(a, b, sizeof a);
    sherd__about(b, (const sherd__about_part[]){ { "abc", 3 } }, 1);
    assert_memory_not_equal(a, b, sizeof a);
    sherd__about(b, (const sherd__about_part[]){ { "ab", 2 }, { "d", 1 } }, 2);
    assert_memory_not_equal(a, b, sizeof a);
}

static void every_flipped_bit_of_a_sealed_piece_is_noticed(void **state)
{
    session s;
    (void)state;
    begin(&s, 3, 3, 1, 2, 7);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(sherd__aggregate_begin(s.node[i], 1, about, &s.e, NULL), 0);
    assert_int_equal(sherd__aggregate_send(s.node[1], 0, s.sealed, NULL), 0);
    for (size_t bit = 0; bit < 8 * sherd__aggregate_sealed_len(&s.a); bit++) {
        s.sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), SHERD_EFRAME);
        s.sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), 0);
    end(&s);
}

static void numbers_at_the_edges_add_up_and_beyond_them_are_refused(void **state)
{
    session s;
    (void)state;
    begin(&s, 3, 3, 1, 2, 8);
    int64_t bound = sherd__aggregate_bound(&s.a);
    uint64_t out[2];
    round_of(&s, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(sherd__aggregate_begin(s.node[i], 2, about, &s.e, NULL), 0);
        const int64_t over[2] = { i == 1 ? -bound - 1 : 0, i == 2 ? bound + 1 : 0 };
        assert_int_equal(sherd__aggregate_upload(s.node[i], over, out, NULL),
                         i == 0 ? 0 : SHERD_ERANGE);
    }
    for (int sign = -1; sign <= 1; sign += 2) {
        round_of(&s, (uint64_t)(sign + 5));
        for (uint32_t i = 0; i < 3; i++) {
            sherd__aggregate_mask *m;
            const int64_t x[2] = { sign * bound, 0 };
            assert_int_equal(sherd__aggregate_mask_new(&m, &s.a, &s.e), 0);
            assert_int_equal(sherd__aggregate_hide(m, x, out), 0);
            sherd__aggregate_mask_free(m);
            /* the round's own upload, moved from its x to this one */
            int64_t by = x[0] - s.x[i * 2];
            uint64_t shift = by < 0 ? SHERD__AGGREGATE_Q - (uint64_t)-by : (uint64_t)by;
            sherd__aggregate_add(&s.uploads[i * 2], &shift, 1);
            s.x[i * 2] = x[0];
        }
        assert_true(gives_sum(&s, 7, 7));
    }
    end(&s);
}

static void values_that_are_no_elements_are_refused(void **state)
{
    uint8_t bytes[24];
    uint64_t x[3] = { 0, SHERD__AGGREGATE_Q - 1, 1 }, got[3];
    (void)state;
    sherd__aggregate_print(x, 3, bytes);
    assert_int_equal(sherd__aggregate_parse(bytes, 3, got), 0);
    assert_memory_equal(x, got, sizeof x);
    x[1] = SHERD__AGGREGATE_Q;
    sherd__aggregate_print(x, 3, bytes);
    assert_int_equal(sherd__aggregate_parse(bytes, 3, got), SHERD_EFRAME);
    assert_int_equal(sherd__aggregate_parse(bytes, 1, got), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_u_answers_give_the_sum_over_any_survivors),
        cmocka_unit_test(one_answer_too_few_or_wrong_gives_something_else),
        cmocka_unit_test(a_piece_and_an_upload_are_uniform_and_tell_nothing_of_the_mask),
        cmocka_unit_test(every_round_has_another_mask),
        cmocka_unit_test(thresholds_that_would_open_a_mask_are_refused),
        cmocka_unit_test(a_node_confirms_and_answers_once_and_for_enough_survivors_only),
        cmocka_unit_test(however_nodes_are_told_apart_no_two_sets_are_answered_for),
        cmocka_unit_test(what_is_signed_depends_on_job_round_subject_and_every_survivor),
        cmocka_unit_test(a_survivor_whose_piece_never_came_is_not_answered_for),
        cmocka_unit_test(a_piece_of_another_round_sender_receiver_or_job_is_refused),
        cmocka_unit_test(nobody_seals_a_piece_in_anothers_name),
        cmocka_unit_test(a_key_of_small_order_gets_no_piece),
        cmocka_unit_test(a_piece_of_one_who_was_told_something_else_is_refused),
        cmocka_unit_test(what_a_round_is_about_depends_on_every_part_and_where_it_ends),
        cmocka_unit_test(every_flipped_bit_of_a_sealed_piece_is_noticed),
        cmocka_unit_test(numbers_at_the_edges_add_up_and_beyond_them_are_refused),
        cmocka_unit_test(values_that_are_no_elements_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
