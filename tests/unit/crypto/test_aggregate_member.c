/* A node cannot be made to open a mask: it answers once, for survivors that enough members
 * confirmed, and accepts from each sender only the piece that the sender sealed for this round. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/support/under_valgrind.h"
#include "tests/unit/crypto/aggregate_session.h"

static void a_node_confirms_and_answers_once_and_only_for_enough_survivors(void **state)
{
    session s;
    uint64_t out[8];
    uint32_t confirming;
    uint8_t statement[SHERD__CONFIRMATION];
    const uint32_t all[] = { 0, 1, 2, 3, 4 }, twice[] = { 0, 1, 1, 2 }, far[] = { 0, 1, 2, 5 };
    (void)state;
    session_begin(&s, 5, 4, 1, 6, 4);
    sherd__aggregate_member *m = s.node[2];
    assert_int_equal(sherd__aggregate_confirm(m, all, 5, statement, NULL), SHERD_EINVAL);
    session_round(&s, 1);
    assert_int_equal(sherd__aggregate_confirm(m, all, 3, statement, NULL), SHERD_EFEWNODES);
    assert_int_equal(sherd__aggregate_confirm(m, twice, 4, statement, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_confirm(m, far, 4, statement, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_confirmed(m, 1, NULL),
                     SHERD_EINVAL); /* the node has no survivors yet */
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EINVAL);
    assert_null(sherd__aggregate_survivors(m, &confirming));
    assert_int_equal(sherd__aggregate_confirm(m, all, 4, statement, NULL), 0);
    assert_int_equal(sherd__aggregate_confirm(m, all, 4, statement, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_confirm(m, all, 5, statement, NULL), SHERD_EINVAL);
    assert_memory_equal(sherd__aggregate_survivors(m, &confirming), all, 4 * sizeof *all);
    assert_int_equal(confirming, 4);
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EFEWNODES);
    for (uint32_t i = 0; i < 4; i++) /* node 1 twice */
        assert_int_equal(sherd__aggregate_confirmed(m, i < 3 ? i : 1, NULL), 0);
    assert_int_equal(sherd__aggregate_confirmed(m, 5, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EFEWNODES);
    assert_int_equal(sherd__aggregate_confirmed(m, 4, NULL), 0);
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), 0);
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EINVAL);
    session_round(&s, 2); /* none of these confirmations counts in the next round */
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_confirm(m, all, 5, statement, NULL), 0);
    assert_int_equal(sherd__aggregate_answer(m, out, NULL), SHERD_EFEWNODES);
    session_end(&s);
}

/* Gives each honest node one of two sets of survivors (bits of `confirming`); colluding nodes
 * confirm both. answers: the number of honest nodes that answer for each set. */
static void split(session *s, unsigned confirming, uint32_t answers[2])
{
    const uint32_t all[MOST] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    uint32_t n = s->a.nodes, honest = n - s->a.colluding;
    uint64_t out[8];
    uint8_t statement[SHERD__CONFIRMATION];
    answers[0] = answers[1] = 0;
    for (uint32_t i = 0; i < honest; i++) {
        unsigned set = confirming >> i & 1;
        assert_int_equal(sherd__aggregate_confirm(s->node[i], all + set, n - set, statement, NULL),
                         0);
        for (uint32_t k = 0; k < n; k++)
            if (k >= honest || (confirming >> k & 1) == set)
                assert_int_equal(sherd__aggregate_confirmed(s->node[i], k, NULL), 0);
        answers[set] += sherd__aggregate_answer(s->node[i], out, NULL) == 0;
    }
}

static void however_survivors_are_split_at_most_one_set_is_answered(void **state)
{
    static const uint32_t shapes[][3] = { { 4, 3, 1 }, { 5, 4, 1 }, { 5, 4, 2 }, { 7, 5, 1 },
                                          { 7, 5, 2 }, { 7, 6, 4 }, { 8, 6, 3 } };
    unsigned opened = 0, none = 0;
    (void)state;
    for (size_t q = 0; q < (under_valgrind() ? 3 : sizeof shapes / sizeof *shapes); q++) {
        session s;
        uint64_t round = 1;
        uint32_t answers[2], honest = shapes[q][0] - shapes[q][2];
        session_begin(&s, shapes[q][0], shapes[q][1], shapes[q][2], 8, 30 + q);
        for (unsigned confirming = 0; confirming < 1u << honest; confirming++) {
            session_round(&s, round++);
            split(&s, confirming, answers);
            assert_true(answers[0] == 0 || answers[1] == 0);
            opened += answers[0] + answers[1] + s.a.colluding >= s.a.threshold;
            none += answers[0] + answers[1] == 0;
        }
        session_end(&s);
    }
    assert_true(opened > (under_valgrind() ? 5 : 50) && none > (under_valgrind() ? 5 : 20));
}

static void the_signed_statement_depends_on_job_round_description_and_each_survivor(void **state)
{
    uint8_t all[5][SHERD__CONFIRMATION], other[SHERD__ABOUT] = { 1, 2, 4 };
    const uint32_t list[] = { 0, 1, 2, 4 }, moved[] = { 0, 1, 3, 4 };
    (void)state;
    sherd__confirmation(all[0], JOB, 1, session_about, list, 4);
    sherd__confirmation(all[1], JOB + 1, 1, session_about, list, 4);
    sherd__confirmation(all[2], JOB, 2, session_about, list, 4);
    sherd__confirmation(all[3], JOB, 1, other, list, 4);
    sherd__confirmation(all[4], JOB, 1, session_about, moved, 4);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < i; k++) assert_memory_not_equal(all[i], all[k], sizeof all[i]);
    sherd__confirmation(all[1], JOB, 1, session_about, list, 3);
    assert_memory_not_equal(all[0], all[1], sizeof all[0]);
    sherd__confirmation(all[1], JOB, 1, session_about, list, 4);
    assert_memory_equal(all[0], all[1], sizeof all[0]);
}

static void survivors_with_a_missing_piece_get_no_answer(void **state)
{
    session s;
    uint64_t out[8];
    const uint32_t all[] = { 0, 1, 2, 3 };
    (void)state;
    session_begin(&s, 4, 3, 1, 6, 5);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sherd__aggregate_begin(s.node[i], 1, session_about, &s.e, NULL), 0);
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(sherd__aggregate_send(s.node[i], 0, s.sealed, NULL), 0);
        assert_int_equal(sherd__aggregate_receive(s.node[0], i, s.sealed, NULL), 0);
        assert_int_equal(sherd__aggregate_receive(s.node[0], i, s.sealed, NULL), SHERD_EINVAL);
    }
    assert_int_equal(session_answer(&s, 0, all, 4, out), SHERD_ECLOSED);
    assert_int_equal(sherd__aggregate_answer(s.node[0], out, NULL), SHERD_ECLOSED);
    assert_int_equal(sherd__aggregate_send(s.node[3], 0, s.sealed, NULL), 0);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 3, s.sealed, NULL), 0);
    assert_int_equal(sherd__aggregate_answer(s.node[0], out, NULL), 0);
    session_end(&s);
}

static void a_piece_of_another_round_sender_receiver_or_job_is_refused(void **state)
{
    session s;
    (void)state;
    session_begin(&s, 4, 3, 1, 6, 6);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sherd__aggregate_begin(s.node[i], 1, session_about, &s.e, NULL), 0);
    assert_int_equal(sherd__aggregate_send(s.node[1], 0, s.sealed, NULL), 0);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 2, s.sealed, NULL), SHERD_EFRAME);
    assert_int_equal(sherd__aggregate_receive(s.node[2], 1, s.sealed, NULL), SHERD_EFRAME);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 0, s.sealed, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 4, s.sealed, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__aggregate_send(s.node[1], 1, s.sealed, NULL), SHERD_EINVAL);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(sherd__aggregate_begin(s.node[i], 2, session_about, &s.e, NULL), 0);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), SHERD_EFRAME);
    uint8_t body[16] = { 1 }, got[16], boxed[16 + SHERD__SEAL_EXTRA];
    const sherd__seal_place here = { JOB, 2, 1, 0, { 0 } }, elsewhere = { JOB + 1, 2, 1, 0, { 0 } };
    const uint8_t *from = s.open[1];
    assert_int_equal(sherd__seal(boxed, body, 16, elsewhere, &s.key[1], s.open[0]), 0);
    assert_int_equal(sherd__unseal(got, 16, boxed, here, from, &s.key[0]), SHERD_EFRAME);
    assert_int_equal(sherd__unseal(got, 16, boxed, elsewhere, from, &s.key[0]), 0);
    assert_memory_equal(got, body, 16);
    session_end(&s);
}

/* The coordinator, which forwards the pieces, knows all public keys, places and digests. If it
 * could replace the pieces of all members but one by its own, the sum of the answers would reveal
 * that member's mask. */
static void a_piece_cannot_be_sealed_in_the_name_of_another_member(void **state)
{
    session s;
    sherd__seal_key carrier;
    (void)state;
    session_begin(&s, 4, 3, 1, 6, 19);
    sherd__seal_key_new(&carrier);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sherd__aggregate_begin(s.node[i], 1, session_about, &s.e, NULL), 0);
    size_t len = sherd__aggregate_sealed_len(&s.a) - SHERD__SEAL_EXTRA;
    uint8_t *known = calloc(1, len);
    sherd__seal_place place = { .job = JOB, .round = 1, .from = 1, .to = 0 };
    memcpy(place.about, session_about, sizeof session_about);
    const sherd__seal_key *makers[] = { &carrier, &s.key[2] };
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        assert_int_equal(sherd__seal(s.sealed, known, len, place, makers[i], s.open[0]), 0);
        assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), SHERD_EFRAME);
    }
    /* a member's own piece sent back to it */
    assert_int_equal(sherd__aggregate_send(s.node[0], 1, s.sealed, NULL), 0);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), SHERD_EFRAME);
    assert_int_equal(sherd__aggregate_send(s.node[1], 0, s.sealed, NULL), 0);
    assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), 0);
    free(known);
    session_end(&s);
}

/* With a point of small order, every secret key gives the same, publicly known shared secret. */
static void a_key_of_small_order_gets_no_piece(void **state)
{
    static const uint8_t small[][SHERD__SEAL_KEY] = {
        { 0 },
        { 1 },
        { 0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3,
          0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32,
          0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00 },
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

static void a_piece_from_a_member_with_another_description_is_refused(void **state)
{
    session s;
    uint8_t other[SHERD__ABOUT] = { 0 };
    (void)state;
    session_begin(&s, 4, 3, 1, 6, 16);
    for (unsigned bit = 0; bit < 8 * SHERD__ABOUT; bit += 7) {
        memcpy(other, session_about, sizeof other);
        other[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(sherd__aggregate_begin(s.node[0], bit + 1, session_about, &s.e, NULL), 0);
        assert_int_equal(sherd__aggregate_begin(s.node[1], bit + 1, other, &s.e, NULL), 0);
        assert_int_equal(sherd__aggregate_begin(s.node[2], bit + 1, session_about, &s.e, NULL), 0);
        assert_int_equal(sherd__aggregate_send(s.node[1], 0, s.sealed, NULL), 0);
        assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), SHERD_EFRAME);
        assert_int_equal(sherd__aggregate_send(s.node[2], 0, s.sealed, NULL), 0);
        assert_int_equal(sherd__aggregate_receive(s.node[0], 2, s.sealed, NULL), 0);
    }
    session_end(&s);
}

static void the_digest_of_a_round_depends_on_each_part_and_its_length(void **state)
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

static void every_flipped_bit_of_a_sealed_piece_is_detected(void **state)
{
    session s;
    (void)state;
    session_begin(&s, 3, 3, 1, 2, 7);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(sherd__aggregate_begin(s.node[i], 1, session_about, &s.e, NULL), 0);
    assert_int_equal(sherd__aggregate_send(s.node[1], 0, s.sealed, NULL), 0);
    for (size_t bit = 0; bit < 8 * sherd__aggregate_sealed_len(&s.a); bit++) {
        s.sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), SHERD_EFRAME);
        s.sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(sherd__aggregate_receive(s.node[0], 1, s.sealed, NULL), 0);
    session_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_confirms_and_answers_once_and_only_for_enough_survivors),
        cmocka_unit_test(however_survivors_are_split_at_most_one_set_is_answered),
        cmocka_unit_test(the_signed_statement_depends_on_job_round_description_and_each_survivor),
        cmocka_unit_test(survivors_with_a_missing_piece_get_no_answer),
        cmocka_unit_test(a_piece_of_another_round_sender_receiver_or_job_is_refused),
        cmocka_unit_test(a_piece_cannot_be_sealed_in_the_name_of_another_member),
        cmocka_unit_test(a_key_of_small_order_gets_no_piece),
        cmocka_unit_test(a_piece_from_a_member_with_another_description_is_refused),
        cmocka_unit_test(the_digest_of_a_round_depends_on_each_part_and_its_length),
        cmocka_unit_test(every_flipped_bit_of_a_sealed_piece_is_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
