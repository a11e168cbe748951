/*
 * The part of a node in the rounds of a secure sum: one request of each kind a round, with the
 * description for which its pieces were sealed, over one set of survivors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/unit/node/secure_member.h"

static void each_round_has_a_mask_of_its_own(void **s)
{
    (void)s;
    uint8_t first[8 * LEN];
    member_start(NULL);
    member_meet();
    assert_int_equal(member_seal(1), 0);
    assert_int_equal(member_hide(1, 20), 0);
    memcpy(first, m.result, sizeof first);
    member_round(2);
    assert_int_equal(member_seal(3), 0);
    assert_int_equal(member_hide(3, 20), 0);
    size_t alike = 0;
    for (size_t i = 0; i < LEN; i++) alike += !memcmp(first + 8 * i, m.result + 8 * i, 8);
    assert_int_equal(alike, 0);
    member_stop();
}

static void each_request_of_a_round_is_answered_once(void **s)
{
    (void)s;
    member_start(NULL);
    assert_int_equal(member_seal(1), SHERD_EINVAL); /* the node has not joined */
    member_meet();
    assert_int_equal(member_roster(), SHERD_EINVAL);
    assert_int_equal(member_hide(0, 20), SHERD_EINVAL);
    assert_int_equal(member_seal(0), SHERD_EINVAL);
    assert_int_equal(member_seal(5), 0);
    members_seal(5);
    assert_int_equal(member_seal(5), SHERD_EINVAL);
    assert_int_equal(member_seal(4), SHERD_EINVAL);
    assert_int_equal(member_hide(6, 20), SHERD_EINVAL);
    member_plan_round(5, 20); /* the description of the refused request was a different one */
    assert_int_equal(member_hide(5, 20), 0);
    assert_int_equal(member_hide(5, 20), SHERD_EINVAL);
    assert_int_equal(member_hide(5, 21), SHERD_EINVAL);
    assert_int_equal(member_open_for(4, member_all, N), SHERD_EINVAL);
    assert_int_equal(member_open(5, U, member_all, U), SHERD_EINVAL); /* there are no survivors */
    assert_int_equal(member_confirm(4, member_all, U), SHERD_EINVAL);
    assert_int_equal(member_open_for(5, member_all, U), 0);
    assert_int_equal(member_confirm(5, member_all, U), SHERD_EINVAL);
    assert_int_equal(member_confirm(5, member_all, N), SHERD_EEXPOSURE); /* another set */
    assert_int_equal(member_open(5, U, member_all, U), SHERD_EINVAL);
    assert_int_equal(member_open(5, N, member_all, N), SHERD_EINVAL);
    member_round(6);
    member_stop();
}

static void begin_checked(uint64_t round)
{
    assert_int_equal(member_seal(round), 0);
    members_seal(round);
    assert_int_equal(member_hide(round, 20), 0);
    assert_int_equal(member_check(round, N), SHERD_EINVAL); /* there is no round */
    assert_int_equal(member_confirm(round, member_all, N), 0);
    members_confirm(round, member_all, N);
}

static void pieces_are_checked_once_and_opened_afterwards(void **s)
{
    (void)s;
    static const uint8_t fine[N];
    member_start(NULL);
    member_meet();
    begin_checked(1);
    assert_int_equal(member_check(2, N), SHERD_EINVAL);
    assert_int_equal(member_check(1, U), SHERD_ESHAPE);
    assert_int_equal(member_open(1, 0, member_all, N), SHERD_EINVAL); /* no pieces were checked
                                                                       * yet */
    assert_int_equal(member_check(1, N), 0);
    assert_int_equal(m.result_len, N);
    assert_memory_equal(m.result, fine, N);
    assert_int_equal(member_check(1, N), SHERD_EINVAL);
    assert_int_equal(member_open(1, N, member_all, N), SHERD_EINVAL); /* a second time */
    assert_int_equal(m.ledger.binds, 0);
    assert_int_equal(member_open(1, 0, member_all, N), 0);
    assert_int_equal(m.ledger.binds, 1);
    assert_int_equal(member_open(1, 0, member_all, N), SHERD_EINVAL);
    begin_checked(2);
    assert_int_equal(member_check(2, N), 0);
    assert_int_equal(member_open(2, 0, member_all, N), 0);
    assert_int_equal(member_check(2, N), SHERD_EINVAL);
    member_stop();
}

/* Zeros and random bytes in place of a piece, and a piece of another place. */
static void a_member_with_an_invalid_piece_is_named_and_nothing_is_bound(void **s)
{
    (void)s;
    member_start(NULL);
    for (unsigned k = 0; k < 8; k++) {
        const uint8_t want[N] = { 0, 1, 0, k % 2 };
        size_t binds = m.ledger.binds;
        member_meet();
        begin_checked(1 + k);
        if (k < 4) memset(m.pieces[1], k % 3 ? 0xa5 : 0, sizeof m.pieces[1]);
        else memcpy(m.pieces[1], m.pieces[2], sizeof m.pieces[1]);
        if (want[3]) m.pieces[3][60] ^= 1;
        if (k < 6) {
            assert_int_equal(member_check(1 + k, N), 0);
            assert_memory_equal(m.result, want, N);
        }
        assert_int_equal(member_open(1 + k, k < 6 ? 0 : N, member_all, N), SHERD_EFRAME);
        assert_int_equal(m.ledger.binds, binds);
        for (uint32_t i = 1; i < N; i++) {
            sherd__aggregate_member_free(m.others[i].member);
            m.others[i].member = NULL;
        }
    }
    member_stop();
}

/* A coordinator that gives one member different weights could extract the gradient of that member
 * from a sum (CCS 2022, "model inconsistency"). */
static void a_gradient_is_given_only_for_the_description_of_the_pieces(void **s)
{
    (void)s;
    double was = m.params[3];
    member_start(NULL);
    member_meet();
    for (unsigned round = 1; round < 5; round++) {
        assert_int_equal(member_seal(round), 0);
        members_seal(round);
        if (round == 1) m.params[3] += 0x1p-40;
        int err = member_hide(round, round == 2 ? 21 : 20);
        m.params[3] = was;
        if (round < 3) {
            assert_int_equal(err, SHERD_EINVAL);
            assert_non_null(strstr(m.j.withheld, "has other parameters"));
            assert_int_equal(member_hide(round, 20), 0); /* nothing was given yet */
        }
        if (round == 4) { /* the description that another member received */
            uint8_t theirs[SHERD__ABOUT], mine[SHERD__ABOUT];
            m.params[3] += 1;
            member_plan_round(round + 1, 20);
            m.params[3] = was;
            memcpy(theirs, m.bound, sizeof theirs);
            assert_int_equal(member_seal(round + 1), 0);
            memcpy(mine, m.bound, sizeof mine);
            memcpy(m.bound, theirs, sizeof m.bound);
            members_seal(round + 1);
            memcpy(m.bound, mine, sizeof m.bound); /* their signatures confirm the node's
                                                    * description */
            assert_int_equal(member_hide(round + 1, 20), 0);
            assert_int_equal(member_open_for(round + 1, member_all, N), SHERD_EFRAME);
        }
    }
    member_stop();
}

static void too_few_survivors_and_pieces_of_other_rounds_open_nothing(void **s)
{
    (void)s;
    member_start(NULL);
    member_meet();
    assert_int_equal(member_seal(1), 0);
    members_seal(1);
    assert_int_equal(member_hide(1, 20), 0);
    assert_int_equal(member_open_for(1, member_all, U - 1), SHERD_EFEWNODES);
    static const uint64_t twice[] = { 0, 1, 1 }, beyond[] = { 0, 1, 4 }, back[] = { 0, 2, 1 };
    assert_int_equal(member_open_for(1, twice, 3), SHERD_EINVAL);
    assert_int_equal(member_open_for(1, beyond, 3), SHERD_EINVAL);
    assert_int_equal(member_open_for(1, back, 3), SHERD_EINVAL);
    assert_int_equal(member_open_for(1, member_all, N), 0);
    assert_int_equal(member_seal(2), 0);
    assert_int_equal(member_hide(2, 20), 0);
    assert_int_equal(member_open_for(2, member_all, N), SHERD_EFRAME); /* pieces of round 1 */
    members_seal(2);
    assert_int_equal(member_open(2, N, member_all, N), SHERD_EINVAL); /* it has answered */
    member_stop();
}

static void a_nonfinite_parameter_is_refused(void **s)
{
    (void)s;
    member_start(NULL);
    member_meet();
    m.params[0] = NAN;
    assert_int_equal(member_seal(1), 0);
    assert_int_equal(member_hide(1, 20), SHERD_EINVAL);
    assert_int_equal(m.ledger.len, 0);
    m.params[0] = 0.25;
    member_stop();
    member_start_with((uint64_t)16 << 20, NULL, NULL);
    assert_int_equal(member_join(), SHERD_EINVAL);
    assert_non_null(strstr(m.refusal.text, "no data of its own"));
    member_stop();
}

/* Parameters that give the same sum, bit by bit, have one entry in the ledger. */
static void signed_zeros_and_subnormal_parameters_give_the_same_sum(void **s)
{
    (void)s;
    static const double zeros[] = { 0, -0.0, 0x1p-1074, -0x1p-1023 };
    const double was = m.params[1];
    uint64_t round = 0;
    member_start(NULL);
    member_meet();
    m.kept = true;
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        m.params[1] = zeros[i];
        assert_int_equal(member_seal(++round), 0);
        assert_int_equal(member_hide(round, 20), 0);
        assert_memory_equal(m.ledger.charges[i].about, m.ledger.charges[0].about,
                            SHERD__LEDGER_DIGEST);
    }
    m.params[1] = 0x1p-1022; /* the smallest normal number */
    assert_int_equal(member_seal(++round), 0);
    assert_int_equal(member_hide(round, 20), 0);
    assert_memory_not_equal(m.ledger.charges[round - 1].about, m.ledger.charges[0].about,
                            SHERD__LEDGER_DIGEST);
    m.kept = false;
    m.params[1] = was;
    member_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_round_has_a_mask_of_its_own),
        cmocka_unit_test(each_request_of_a_round_is_answered_once),
        cmocka_unit_test(pieces_are_checked_once_and_opened_afterwards),
        cmocka_unit_test(a_member_with_an_invalid_piece_is_named_and_nothing_is_bound),
        cmocka_unit_test(a_gradient_is_given_only_for_the_description_of_the_pieces),
        cmocka_unit_test(too_few_survivors_and_pieces_of_other_rounds_open_nothing),
        cmocka_unit_test(a_nonfinite_parameter_is_refused),
        cmocka_unit_test(signed_zeros_and_subnormal_parameters_give_the_same_sum),
    };
    return cmocka_run_group_tests(tests, member_fill, member_empty);
}
