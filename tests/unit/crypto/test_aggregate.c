/* Secure aggregation: any U answers give the sum and fewer do not; the data that one node or T
 * nodes hold are uniform. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>

#include "tests/unit/crypto/aggregate_session.h"

/* Returns whether the answers of `who` (a bit set of U nodes) about `survivors` give the sum over
 * the survivors. */
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
        assert_int_equal(session_answer(s, asked[j], list, list_len, answer), 0);
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
    static const uint32_t shapes[][3] = { { 3, 3, 1 }, { 4, 3, 1 }, { 5, 4, 1 },
                                          { 5, 4, 2 }, { 7, 5, 1 }, { 7, 6, 4 } };
    uint64_t round = 1;
    (void)state;
    for (size_t q = 0; q < sizeof shapes / sizeof *shapes; q++) {
        for (size_t len = 1; len <= 13; len += 6) {
            session s;
            uint32_t n = shapes[q][0], u = shapes[q][1];
            session_begin(&s, n, u, shapes[q][2], len, q * 100 + len);
            for (unsigned survivors = 0; survivors < 1u << n; survivors++) {
                if (bits(survivors) < u) continue;
                /* a node answers once a round, so each round uses another set of nodes */
                unsigned who = (unsigned)round % (1u << n);
                while (bits(who) != u) who = (who + 1) % (1u << n);
                session_round(&s, round++);
                assert_true(gives_sum(&s, survivors, who));
            }
            session_end(&s);
        }
    }
}

static void with_a_missing_or_wrong_answer_the_sum_is_wrong(void **state)
{
    session s;
    uint64_t answer[MOST][8], sum[5] = { 0 };
    const uint64_t *answers[MOST];
    const uint32_t all[] = { 0, 1, 2, 3, 4 };
    int64_t got[5];
    (void)state;
    session_begin(&s, 5, 4, 1, 5, 9);
    session_round(&s, 1);
    for (uint32_t i = 0; i < 5; i++) {
        sherd__aggregate_add(sum, s.uploads + i * 5, 5);
        assert_int_equal(session_answer(&s, i, all, 5, answer[i]), 0);
        answers[i] = answer[i];
    }
    answer[3][0] ^= 1; /* the right answer except for one bit */
    assert_int_equal(sherd__aggregate_reveal(&s.a, sum, all, answers, got, NULL), 0);
    int64_t want = 0;
    for (uint32_t i = 0; i < 5; i++) want += s.x[i * 5];
    assert_true(got[0] != want);
    const uint32_t twice[] = { 0, 1, 1, 3 }, none[] = { 0, 1, 2, 5 };
    assert_int_equal(sherd__aggregate_reveal(&s.a, sum, twice, answers, got, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_reveal(&s.a, sum, none, answers, got, NULL), SHERD_EINVAL);
    session_end(&s);
}

/* Chi-squared statistic over 16 classes: above 44 with probability 1e-4. */
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

static void a_piece_and_an_upload_are_uniform_and_reveal_nothing_of_the_mask(void **state)
{
    enum { ROUNDS = 4000 };
    const sherd__aggregate a = { 3, 3, 1, 2 }, deep = { 5, 5, 3, 1 };
    sherd__seeded stream;
    sherd__entropy e = sherd__entropy_seeded(&stream, 21);
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
        /* three colluders: 3 p0 - 3 p1 + p2, the value at 0 of the parabola through their pieces;
         * it would be the mask if there were no terms of higher degree */
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

static void every_round_has_a_different_mask(void **state)
{
    session s;
    (void)state;
    session_begin(&s, 3, 3, 1, 4, 3);
    const int64_t x[4] = { 1, 2, 3, 4 };
    uint64_t first[4], second[4];
    assert_int_equal(sherd__aggregate_begin(s.node[0], 1, session_about, &s.e, NULL), 0);
    assert_int_equal(sherd__aggregate_upload(s.node[0], x, first, NULL), 0);
    assert_int_equal(sherd__aggregate_upload(s.node[0], x, second, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_begin(s.node[0], 1, session_about, &s.e, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_begin(s.node[0], 2, session_about, &s.e, NULL), 0);
    assert_int_equal(sherd__aggregate_upload(s.node[0], x, second, NULL), 0);
    for (size_t i = 0; i < 4; i++) assert_true(first[i] != second[i]);
    session_end(&s);
}

static void thresholds_that_could_open_a_mask_are_refused(void **state)
{
    const sherd__aggregate bad[] = { { 2, 2, 1, 1 },     { 3, 2, 1, 1 }, { 3, 4, 1, 1 },
                                     { 5, 3, 1, 1 },     { 5, 3, 2, 1 }, { 4, 4, 0, 1 },
                                     { 7, 4, 1, 1 },     { 4, 4, 3, 1 }, { 7, 5, 1, 0 },
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

static void the_largest_numbers_add_up_and_larger_ones_are_refused(void **state)
{
    session s;
    (void)state;
    session_begin(&s, 3, 3, 1, 2, 8);
    int64_t bound = sherd__aggregate_bound(&s.a);
    uint64_t out[2];
    session_round(&s, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(sherd__aggregate_begin(s.node[i], 2, session_about, &s.e, NULL), 0);
        const int64_t over[2] = { i == 1 ? -bound - 1 : 0, i == 2 ? bound + 1 : 0 };
        assert_int_equal(sherd__aggregate_upload(s.node[i], over, out, NULL),
                         i == 0 ? 0 : SHERD_ERANGE);
    }
    for (int sign = -1; sign <= 1; sign += 2) {
        session_round(&s, (uint64_t)(sign + 5));
        for (uint32_t i = 0; i < 3; i++) {
            sherd__aggregate_mask *m;
            const int64_t x[2] = { sign * bound, 0 };
            assert_int_equal(sherd__aggregate_mask_new(&m, &s.a, &s.e), 0);
            assert_int_equal(sherd__aggregate_hide(m, x, out), 0);
            sherd__aggregate_mask_free(m);
            /* the upload of this round, shifted from its x to this one */
            int64_t by = x[0] - s.x[i * 2];
            uint64_t shift = by < 0 ? SHERD__AGGREGATE_Q - (uint64_t)-by : (uint64_t)by;
            sherd__aggregate_add(&s.uploads[i * 2], &shift, 1);
            s.x[i * 2] = x[0];
        }
        assert_true(gives_sum(&s, 7, 7));
    }
    session_end(&s);
}

static void values_that_are_not_field_elements_are_refused(void **state)
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
        cmocka_unit_test(with_a_missing_or_wrong_answer_the_sum_is_wrong),
        cmocka_unit_test(a_piece_and_an_upload_are_uniform_and_reveal_nothing_of_the_mask),
        cmocka_unit_test(every_round_has_a_different_mask),
        cmocka_unit_test(thresholds_that_could_open_a_mask_are_refused),
        cmocka_unit_test(the_largest_numbers_add_up_and_larger_ones_are_refused),
        cmocka_unit_test(values_that_are_not_field_elements_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
