/*
 * A node opens a sum only over survivors that enough members have confirmed: these survivors, of
 * this round, job and roster, each signed with the member's own key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/unit/node/secure_member.h"

/* A lying coordinator names one set of survivors to this node and another set to others. */
static void survivors_that_too_few_members_confirm_open_nothing(void **s)
{
    (void)s;
    static const uint64_t less[] = { 0, 1, 2 }, twice[] = { 0, 1, 1 }, beyond[] = { 0, 1, 4 };
    static const uint64_t others_of_it[] = { 1, 2, 3 };
    member_start(NULL);
    member_meet();
    assert_int_equal(member_seal(1), 0);
    members_seal(1);
    assert_int_equal(member_hide(1, 20), 0);
    assert_int_equal(member_confirm(1, member_all, N), 0);
    assert_int_equal(member_confirm(1, less, U), SHERD_EINVAL);
    assert_non_null(strstr(m.j.withheld, "round 1 already has its survivors"));
    members_confirm(1, less, U); /* the set that the others received */
    assert_int_equal(member_open(1, N, member_all, N), SHERD_EAUTH);
    assert_non_null(strstr(m.j.withheld, "member 1 has not confirmed these survivors of round 1"));
    members_confirm(1, member_all, N);
    assert_int_equal(member_open(1, N, beyond, 3), SHERD_EAUTH);
    m.confirmed[2][63] ^= 1;
    assert_int_equal(member_open(1, N, member_all, N), SHERD_EAUTH);
    assert_non_null(strstr(m.j.withheld, "member 2 has not confirmed these"));
    m.confirmed[2][63] ^= 1;
    assert_int_equal(member_open(1, N, others_of_it, U), 0);
    for (uint64_t round = 2; round < 4; round++) { /* too few, and one of them twice */
        assert_int_equal(member_seal(round), 0);
        members_seal(round);
        assert_int_equal(member_hide(round, 20), 0);
        assert_int_equal(member_confirm(round, member_all, N), 0);
        members_confirm(round, member_all, N);
        assert_int_equal(member_open(round, N, twice, round == 2 ? U - 1 : U), SHERD_EFEWNODES);
        assert_int_equal(member_open(round, N, member_all, N), SHERD_EINVAL); /* it has answered */
    }
    member_stop();
}

/* Signed by the right member for the right survivors, but of another round, job, description or
 * roster. */
static void confirmations_of_another_round_job_or_roster_do_not_count(void **s)
{
    (void)s;
    member_start(NULL);
    member_meet();
    for (unsigned what = 0; what < 4; what++) {
        uint8_t was[SHERD__ABOUT];
        uint64_t round = 1 + what, said = round - (what == 0);
        assert_int_equal(member_seal(round), 0);
        members_seal(round);
        assert_int_equal(member_confirm(round, member_all, N),
                         SHERD_EINVAL); /* nothing was given */
        assert_int_equal(member_hide(round, 20), 0);
        assert_int_equal(member_confirm(round, member_all, N), 0);
        memcpy(was, m.bound, sizeof was);
        if (what == 1) memcpy(m.bound, m.about, sizeof m.bound); /* as without a roster */
        if (what == 2) m.bound[31] ^= 1;
        m.confirm_job = what == 3 ? JOB + 1 : JOB;
        members_confirm(said, member_all, N);
        m.confirm_job = JOB;
        memcpy(m.bound, was, sizeof m.bound);
        assert_int_equal(member_open(round, N, member_all, N), SHERD_EAUTH);
        assert_non_null(strstr(m.j.withheld, "member 1 has not confirmed"));
        members_confirm(round, member_all, N);
        assert_int_equal(member_open(round, N, member_all, N), 0);
    }
    member_stop();
}

/* The signed statement contains the members that this node knows, whatever description SEAL has. */
static void a_signature_covers_survivors_members_and_description(void **s)
{
    (void)s;
    uint8_t statement[SHERD__CONFIRMATION], key[32];
    const uint32_t all[N] = { 0, 1, 2, 3 };
    member_start(NULL);
    member_meet();
    assert_int_equal(member_seal(1), 0);
    assert_int_equal(member_hide(1, 20), 0);
    assert_int_equal(member_confirm(1, member_all, N), 0);
    sherd__identity_public(m.identity, key);
    sherd__confirmation(statement, JOB, 1, m.bound, all, N);
    assert_true(sherd__identity_verify(key, statement, sizeof statement, m.confirmed[0]));
    memcpy(m.bound, m.about, sizeof m.bound);
    sherd__confirmation(statement, JOB, 1, m.bound, all, N);
    assert_false(sherd__identity_verify(key, statement, sizeof statement, m.confirmed[0]));
    member_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survivors_that_too_few_members_confirm_open_nothing),
        cmocka_unit_test(confirmations_of_another_round_job_or_roster_do_not_count),
        cmocka_unit_test(a_signature_covers_survivors_members_and_description),
    };
    return cmocka_run_group_tests(tests, member_fill, member_empty);
}
