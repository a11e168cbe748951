/* The policy of an owner of examples: each rule separately, with a text that contains the policy's
 * numbers and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "crypto/privacy.h"
#include "tests/support/memory_ledger.h"

static memory_ledger ledger;
static const uint8_t all[5][SHERD__LEDGER_DIGEST] = { { 1 }, { 2 }, { 3 }, { 4 }, { 5 } };

static sherd__secure_plan plan(void)
{
    return (sherd__secure_plan){
        .nodes = 5, .threshold = 4, .colluding = 1, .rows = 64, .places = 640, .clip = 1, .noise = 1
    };
}

static void refuses(const sherd__policy *p, const sherd__secure_plan *q, bool peers,
                    const char *text)
{
    sherd_diag d = { 0 };
    assert_int_equal(sherd__policy_join(p, q, peers, &d), SHERD_EREFUSED);
    assert_non_null(strstr(d.message, text));
}

static void a_plan_is_checked_against_the_policy(void **s)
{
    (void)s;
    const sherd__policy usual = SHERD__POLICY_DEFAULT;
    static const char few[] = "policy: this node takes part in rounds of at least 32 places of "
                              "each node, the last of an epoch too (--min-rows)";
    sherd__policy p = usual;
    sherd__secure_plan q = plan();
    assert_int_equal(sherd__policy_join(&p, &q, true, NULL), 0);
    refuses(&p, &q, false, "has no list of its peers (--peers)");
    p.any_peers = true;
    assert_int_equal(sherd__policy_join(&p, &q, false, NULL), 0);
    q.noise = 0;
    refuses(&p, &q, false, "takes part in sums with noise only (--epsilon)");
    p.epsilon = INFINITY;
    assert_int_equal(sherd__policy_join(&p, &q, false, NULL), 0);
    q = plan();
    p = usual;
    p.nodes_min = 6;
    refuses(&p, &q, true, "of at least 6 nodes (--min-nodes)");
    p = usual;
    p.colluding_min = 2;
    refuses(&p, &q, true, "at least 2 colluding nodes (--min-colluding)");
    p = usual;
    for (uint64_t last = 0; last < q.rows; last++) { /* places of an epoch's last round */
        q.places = 2 * q.rows + last;
        if (last == 0 || last >= 32) assert_int_equal(sherd__policy_join(&p, &q, true, NULL), 0);
        else refuses(&p, &q, true, few);
    }
    q.rows = 32;
    q.places = 33;
    refuses(&p, &q, true, few);
    q.rows = q.places = 31;
    refuses(&p, &q, true, few);
    q.rows = 1048577;
    q.places = 10 * q.rows;
    refuses(&p, &q, true,
            "policy: this node takes part in rounds of at most 1048576 places of "
            "each node (--max-rows)");
    q.places = q.rows = 1048576;
    assert_int_equal(sherd__policy_join(&p, &q, true, NULL), 0);
}

static sherd__charge charge_of(uint8_t about, double rho)
{
    sherd__charge c = {
        .job = 7, .first = 0, .rows = 32, .rho = rho, .keys = all, .nodes = 5, .threshold = 4
    };
    c.about[0] = about;
    return c;
}

static int charge(const sherd__policy *p, const sherd__charge *c, const char *text)
{
    sherd_diag d = { 0 };
    int err = sherd__policy_charge(p, sherd__privacy_rho(p->epsilon, p->delta),
                                   memory_ledger_ref(&ledger), c, &d);
    if (err) assert_non_null(strstr(d.message, text));
    return err;
}

static void uploads_are_charged_until_the_budget_is_spent(void **s)
{
    (void)s;
    sherd__policy p = SHERD__POLICY_DEFAULT;
    double rho = sherd__privacy_rho(p.epsilon, p.delta) / 3.5;
    memset(&ledger, 0, sizeof ledger);
    for (uint8_t i = 0; i < 6; i++) {
        sherd__charge c = charge_of(i, rho);
        int err = charge(&p, &c, "this node's privacy budget is spent (--epsilon)");
        assert_int_equal(err, i < 3 ? 0 : SHERD_EEXPOSURE);
    }
    assert_int_equal(ledger.len, 3);
    sherd__charge c = charge_of(9, rho);
    c.first = 32; /* other places */
    assert_int_equal(charge(&p, &c, ""), 0);
    c = charge_of(10, INFINITY);
    c.first = 100;
    assert_int_equal(charge(&p, &c, "budget is spent"), SHERD_EEXPOSURE);
}

static void a_round_of_too_few_places_is_not_charged(void **s)
{
    (void)s;
    const sherd__policy p = SHERD__POLICY_DEFAULT;
    sherd__charge c = charge_of(1, 0);
    memset(&ledger, 0, sizeof ledger);
    c.rows = 31;
    assert_int_equal(charge(&p, &c,
                            "policy: this node gives no round of so few places "
                            "(--min-rows)"),
                     SHERD_EEXPOSURE);
    assert_int_equal(ledger.len, 0);
    c.rows = 32;
    assert_int_equal(charge(&p, &c, ""), 0);
}

static void rounds_of_a_job_and_of_a_day_are_limited(void **s)
{
    (void)s;
    sherd__policy p = policy_of_tests;
    p.rounds_max = 3;
    memset(&ledger, 0, sizeof ledger);
    for (uint8_t i = 0; i < 4; i++) {
        sherd__charge c = charge_of(i, 1);
        assert_int_equal(charge(&p, &c, "(--max-rounds)"), i < 3 ? 0 : SHERD_EEXPOSURE);
    }
    sherd__charge c = charge_of(9, 1);
    c.job = 8; /* another number does not reset the limit; another coordinator has its own */
    assert_int_equal(charge(&p, &c, "to this coordinator today (--max-rounds)"), SHERD_EEXPOSURE);
    c.coordinator[0] = 1;
    assert_int_equal(charge(&p, &c, ""), 0);
    p.rounds_day = 4;
    c.about[0] = 10;
    assert_int_equal(charge(&p, &c, "(--max-rounds-day)"), SHERD_EEXPOSURE);
    ledger.today = 0;
    assert_int_equal(charge(&p, &c, ""), 0);
    c = charge_of(11, 1); /* the same job on another day */
    assert_int_equal(charge(&p, &c, "(--max-rounds)"), SHERD_EEXPOSURE);
    c.coordinator[0] = 1; /* another coordinator's job with the same number is another job */
    assert_int_equal(charge(&p, &c, ""), 0);
    c.coordinator[0] = 0;
    c.job = 9;
    assert_int_equal(charge(&p, &c, ""), 0);
}

static void new_sets_of_members_are_limited_by_the_ledger(void **s)
{
    (void)s;
    const sherd__policy p = policy_of_tests;
    const sherd__charge c = charge_of(1, 1);
    memset(&ledger, 0, sizeof ledger);
    ledger.named = true;
    assert_int_equal(charge(&p, &c,
                            "policy: this node records no more new sets of members "
                            "today"),
                     SHERD_EEXPOSURE);
}

static void the_same_sum_requires_the_same_members(void **s)
{
    (void)s;
    sherd__policy p = policy_of_tests;
    sherd__charge c = charge_of(1, 1);
    static const uint8_t other[5][SHERD__LEDGER_DIGEST] = { { 1 }, { 2 }, { 3 }, { 4 }, { 6 } };
    static const uint8_t part[4][SHERD__LEDGER_DIGEST] = { { 1 }, { 3 }, { 4 }, { 5 } };
    memset(&ledger, 0, sizeof ledger);
    assert_int_equal(charge(&p, &c, ""), 0);
    assert_int_equal(charge(&p, &c, ""), 0); /* once more, which is charged once more */
    assert_int_equal(ledger.len, 2);
    c.keys = other;
    assert_int_equal(charge(&p, &c, "to other members (--any-roster)"), SHERD_EEXPOSURE);
    c.keys = part;
    c.nodes = 4;
    c.threshold = 3;
    assert_int_equal(charge(&p, &c, "to other members"), SHERD_EEXPOSURE); /* a lower threshold */
    c.threshold = 4;
    assert_int_equal(charge(&p, &c, ""), 0);
    c.keys = all;
    c.nodes = 5;
    assert_int_equal(charge(&p, &c, "to other members"), SHERD_EEXPOSURE);
    p.any_roster = true;
    assert_int_equal(charge(&p, &c, ""), 0);
}

static void a_sum_that_was_opened_is_opened_again_over_the_same_members_only(void **s)
{
    (void)s;
    sherd__policy p = policy_of_tests;
    static const uint8_t about[SHERD__LEDGER_DIGEST] = { 1 }, members[SHERD__LEDGER_DIGEST] = { 2 },
                         others[SHERD__LEDGER_DIGEST] = { 3 };
    sherd_diag d = { 0 };
    memset(&ledger, 0, sizeof ledger);
    sherd__ledger_ref l = memory_ledger_ref(&ledger);
    assert_int_equal(sherd__policy_confirm(&p, l, about, others, NULL), 0);
    assert_int_equal(sherd__policy_open(&p, l, about, members, NULL), 0);
    assert_int_equal(sherd__policy_confirm(&p, l, about, members, NULL), 0);
    assert_int_equal(sherd__policy_open(&p, l, about, members, NULL), 0);
    assert_int_equal(sherd__policy_confirm(&p, l, about, others, NULL), SHERD_EEXPOSURE);
    assert_int_equal(sherd__policy_open(&p, l, about, others, &d), SHERD_EEXPOSURE);
    assert_string_equal(d.message, "policy: this node has given the same sum to other members "
                                   "(--any-roster)");
    p.any_roster = true;
    assert_int_equal(sherd__policy_confirm(&p, l, about, others, NULL), 0);
    assert_int_equal(sherd__policy_open(&p, l, about, others, NULL), 0);
    ledger.full = true;
    assert_int_equal(sherd__policy_open(&p, l, others, others, NULL), SHERD_EIO);
}

static void a_sum_that_cannot_be_charged_is_not_given(void **s)
{
    (void)s;
    sherd__policy p = policy_of_tests;
    sherd__charge c = charge_of(1, 1);
    memset(&ledger, 0, sizeof ledger);
    ledger.full = true;
    assert_int_equal(charge(&p, &c, "cannot write its ledger"), SHERD_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_checked_against_the_policy),
        cmocka_unit_test(uploads_are_charged_until_the_budget_is_spent),
        cmocka_unit_test(a_round_of_too_few_places_is_not_charged),
        cmocka_unit_test(rounds_of_a_job_and_of_a_day_are_limited),
        cmocka_unit_test(new_sets_of_members_are_limited_by_the_ledger),
        cmocka_unit_test(the_same_sum_requires_the_same_members),
        cmocka_unit_test(a_sum_that_was_opened_is_opened_again_over_the_same_members_only),
        cmocka_unit_test(a_sum_that_cannot_be_charged_is_not_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
