/*
 * A member whose pieces others cannot open, and a member that falsely reports so: the faulty one is
 * left out once it is certain, at most one round is lost, and honest members cannot be framed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/sim/scheduler/secure_world.h"
#include "tests/support/draw.h"

static uint64_t rounds_of(const world *w)
{
    return sherd__secure_job_spent(w->job).rounds;
}

static void is_sum_without_the_first(world *w)
{
    const uint32_t first = 0;
    secure_is_sum_without(w, &first, 1);
}

static void a_member_that_seals_noise_costs_one_round_and_is_left_out(void **s)
{
    (void)s;
    for (uint32_t nodes = 4; nodes <= NODES; nodes++) {
        world w;
        draw_state = 100 + nodes;
        secure_begin(&w, nodes, 0, 1);
        secure_meet(&w);
        assert_int_equal(secure_ask(&w), 0);
        w.spoil = (1u << nodes) - 2;
        assert_int_equal(secure_ask(&w), 0);
        assert_int_equal(rounds_of(&w), 3);
        is_sum_without_the_first(&w);
        assert_non_null(strstr(w.log, "n0 no longer takes part in the training: "));
        assert_non_null(strstr(w.log, "others cannot open what it sealed"));
        assert_int_equal(secure_ask(&w), 0);
        assert_int_equal(rounds_of(&w), 4);
        is_sum_without_the_first(&w);
        secure_end(&w);
    }
}

/* Each of as many reporters as may collude could be the liar: the sum is opened by the others. In
 * the next round another member reports, and that is one too many. */
static void a_member_is_left_out_once_too_many_cannot_open_its_pieces(void **s)
{
    (void)s;
    world w;
    draw_state = 120;
    secure_begin(&w, 6, 0, 1);
    secure_meet(&w);
    for (uint32_t at = 1; at < 3; at++) {
        w.spoil = 1u << at;
        assert_int_equal(secure_ask(&w), 0);
        assert_int_equal(rounds_of(&w), at);
        secure_is_sum_without(&w, NULL, 0);
        assert_int_equal(strstr(w.log, "2 others cannot open what it sealed") != NULL, at == 2);
    }
    assert_non_null(strstr(w.log, "n1 cannot open what n0 sealed for it: one of the two"));
    w.spoil = 0;
    assert_int_equal(secure_ask(&w), 0);
    is_sum_without_the_first(&w);
    secure_end(&w);
}

static void as_many_members_as_may_collude_cannot_frame_another(void **s)
{
    (void)s;
    for (uint32_t rounds = 0; rounds < 2; rounds++) {
        world w;
        draw_state = 130;
        secure_begin(&w, 5, 0, 1);
        secure_meet(&w);
        w.accuse = 1u << 3;
        for (uint32_t k = 0; k < 3; k++) {
            assert_int_equal(secure_ask(&w), 0);
            secure_is_sum_without(&w, NULL, 0);
        }
        assert_null(strstr(w.log, "takes part in the training"));
        if (rounds) w.accuse = 1u << 2; /* another one, later */
        else w.accuse = (1u << 5) - 2;  /* all of them */
        assert_int_equal(secure_ask(&w), 0);
        assert_non_null(strstr(w.log, "n0 no longer takes part in the training: it reports"));
        assert_int_equal(secure_ask(&w), 0);
        is_sum_without_the_first(&w);
        assert_int_equal(rounds_of(&w), 5);
        secure_end(&w);
    }
}

/* Members of a version without checks open the sum as before. */
static void members_that_do_not_support_checks_are_asked_as_before(void **s)
{
    (void)s;
    world w;
    draw_state = 140;
    secure_begin(&w, 5, 0, 1);
    for (uint32_t i = 0; i < 5; i += 2) secure_unchecking(&w.node[i]);
    secure_meet(&w);
    for (uint32_t k = 0; k < 3; k++) {
        assert_int_equal(secure_ask(&w), 0);
        secure_is_sum_without(&w, NULL, 0);
    }
    assert_null(strstr(w.log, "takes part in the training"));
    secure_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_that_seals_noise_costs_one_round_and_is_left_out),
        cmocka_unit_test(a_member_is_left_out_once_too_many_cannot_open_its_pieces),
        cmocka_unit_test(as_many_members_as_may_collude_cannot_frame_another),
        cmocka_unit_test(members_that_do_not_support_checks_are_asked_as_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
