/*
 * What a node lets others do in a circle: a coordinator names members, but none that may give tasks
 * here and none but those of --peers; a member brings the blocks of its steps, once each, and
 * nothing else. Every task is answered once, whatever plans say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "crypto/fragment_make.h"
#include "tests/support/draw.h"
#include "tests/unit/node/allreduce_member.h"

static void only_members_of_a_circle_that_stands_may_connect(void **unused)
{
    (void)unused;
    circle_start(NULL);
    assert_int_equal(sherd__worker_member(one.worker, circle_key(0)), 0);
    assert_int_equal(circle_meet(), 0);
    assert_int_equal(sherd__worker_member(one.worker, circle_key(0)), CIRCLE);
    assert_int_equal(sherd__worker_member(one.worker, circle_key(2)), CIRCLE);
    assert_int_equal(sherd__worker_member(one.worker, circle_key(N)), 0);
    assert_int_equal(sherd__worker_member(one.worker, circle_key(SELF)), 0);
    assert_int_equal(sherd__session_drop(one.j.co, JOB, 0), 0);
    circle_settle();
    assert_int_equal(sherd__worker_member(one.worker, circle_key(0)), 0);
    circle_stop();
}

static void a_member_brings_the_blocks_of_its_steps_and_nothing_else(void **unused)
{
    (void)unused;
    circle_start(NULL);
    assert_int_equal(circle_meet(), 0);
    assert_int_equal(circle_step(1, 0), 0);
    uint32_t first = sherd__allreduce_block(1, 0);
    uint64_t len = circle_len_of(0);
    assert_int_equal(circle_bring(N, CIRCLE, first, len, SHERD_I64), 1); /* a stranger */
    assert_int_equal(circle_bring(2, CIRCLE, first, len, SHERD_I64), 1); /* another member's */
    assert_int_equal(circle_bring(0, CIRCLE + 1, first, len, SHERD_I64), 1);
    assert_int_equal(circle_bring(0, JOB, first, len, SHERD_I64), 1); /* the coordinator's job */
    assert_int_equal(circle_bring(0, CIRCLE, first, len + 8, SHERD_I64), 1);
    assert_int_equal(circle_bring(0, CIRCLE, first, len - 8, SHERD_I64), 1);
    assert_int_equal(circle_bring(0, CIRCLE, first, 0, SHERD_I64), 1);
    assert_int_equal(circle_bring(0, CIRCLE, sherd__allreduce_block(1, 4), len, SHERD_I64), 1);
    assert_int_equal(circle_bring(0, CIRCLE, 1u << 8, len, SHERD_I64), 1); /* no step at all */
    assert_int_equal(circle_bring(0, CIRCLE, first, len, SHERD_F64), SHERD_EUNASKED);
    uint32_t later = sherd__allreduce_block(1, 1);
    len = circle_len_of(1);
    assert_int_equal(circle_bring(0, CIRCLE, later, len, SHERD_I64), 0); /* early: it waits */
    assert_int_equal(circle_bring(0, CIRCLE, later, len, SHERD_I64), SHERD_EUNASKED); /* twice */
    circle_stop();
}

/* It says nothing of that circle but that there is one. */
static void a_name_of_another_coordinators_circle_is_refused(void **unused)
{
    (void)unused;
    static const uint32_t who[N] = { 0, 1, 2 };
    sherd__allreduce_plan p = circle_plan();
    circle_start(NULL);
    assert_int_equal(circle_meet(), 0);
    circle_swap();
    assert_int_equal(circle_meet(), SHERD_EBUSY);
    p.id++;
    assert_int_equal(circle_meet_with(&p, who), 0);
    circle_swap();
    assert_int_equal(circle_meet_with(&p, who), SHERD_EBUSY);
    assert_int_equal(circle_meet(), 0); /* its own */
    circle_swap();
    joined_cut(&one.j);
    circle_swap();
    assert_int_equal(circle_meet_with(&p, who), 0); /* the first one is gone */
    circle_stop();
}

static void a_members_block_is_of_the_account_that_its_connection_counts_for(void **unused)
{
    (void)unused;
    uint32_t first = sherd__allreduce_block(1, 0);
    uint64_t len = circle_len_of(0);
    sherd__fragment *f;
    sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_I64, .rows = 1, .cols = len / 8, .len = len
    };
    circle_start(NULL);
    sherd__account *own = sherd__worker_accounts(one.worker);
    assert_int_equal(circle_meet(), 0);
    assert_int_equal(circle_step(1, 0), 0);
    circle_swap();
    circle_swap();
    sherd__account *other = sherd__worker_accounts(one.worker);
    assert_ptr_not_equal(other, own);
    assert_null(sherd__worker_member_place(one.worker, &other, circle_key(0), CIRCLE, first, len));
    uint8_t *bytes = sherd__worker_member_place(one.worker, &own, circle_key(0), CIRCLE, first,
                                                len);
    assert_non_null(bytes);
    memset(bytes, 0, len);
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, sherd__worker_unplace, own->pool), 0);
    assert_int_equal(sherd__worker_member_block(one.worker, other, circle_key(0), CIRCLE, first, f),
                     0); /* goes nowhere */
    assert_int_equal(circle_bring(0, CIRCLE, first, len, SHERD_I64), 0);
    circle_swap();
    joined_cut(&one.j);
    circle_swap();
    circle_stop();
}

static uint8_t *nowhere(void *ctx, uint64_t job, uint32_t number, uint64_t len)
{
    (void)ctx, (void)job, (void)number, (void)len;
    return NULL;
}

static void hears_nothing(void *ctx, sherd__event *e)
{
    (void)ctx, (void)e;
}

static void what_a_member_leaves_unread_counts_in_its_coordinators_memory(void **unused)
{
    (void)unused;
    joined j = { .hear = hears_nothing };
    sherd__session_options o = { .role = SHERD__COORDINATOR, .now_ms = 1 };
    circle_start(NULL);
    assert_int_equal(circle_meet(), 0);
    uint64_t before = circle_used();
    assert_int_equal(sherd__session_new(&j.co, &o), 0);
    o = (sherd__session_options){ .role = SHERD__NODE, .now_ms = 1, .place = nowhere };
    sherd__worker_member_session(one.worker, sherd__worker_accounts(one.worker), &o);
    assert_int_equal(sherd__session_new(&j.no, &o), 0);
    joined_exchange(&j);
    for (uint32_t i = 1; i <= 10000; i++)
        joined_put(&j, CIRCLE, i, SHERD_I64, 1, 1, &(int64_t){ 0 });
    while (joined_move(&j, true)) {}
    uint64_t most = circle_used() - before;
    assert_in_range(most, 256 * 1024, 2 * 1024 * 1024);
    sherd__session_free(j.co);
    sherd__session_free(j.no);
    assert_int_equal(circle_used(), before);
    circle_stop();
}

/* Whatever numbers a member makes up, memory stays what one round may bring. */
static void a_member_that_floods_fills_no_more_than_its_places(void **unused)
{
    (void)unused;
    circle_start(NULL);
    assert_int_equal(circle_meet(), 0);
    uint64_t before = circle_used();
    for (unsigned i = 0; i < 5000; i++)
        (void)circle_bring((uint32_t)(draw() % 2) * 2, CIRCLE, (uint32_t)draw(),
                           circle_len_of((uint32_t)(draw() % 4)), SHERD_I64);
    for (uint64_t round = 1; round < 2000; round++)
        for (uint32_t s = 0; s < 4; s++)
            (void)circle_bring(s < 2 ? 0 : 2, CIRCLE, sherd__allreduce_block(round, s),
                               circle_len_of(s), SHERD_I64);
    assert_true(circle_used() - before < 4 * (1024 + 512));
    circle_stop();
}

/* Rounds are the coordinator's to choose. */
static void what_came_for_the_last_round_there_is_goes_with_its_circle(void **unused)
{
    (void)unused;
    uint32_t first = sherd__allreduce_block(UINT64_MAX, 0);
    circle_start(NULL);
    assert_int_equal(circle_meet(), 0);
    assert_int_equal(circle_step(UINT64_MAX, 0), 0);
    uint64_t before = circle_used();
    assert_int_equal(circle_bring(0, CIRCLE, first, circle_len_of(0), SHERD_I64), 0);
    assert_true(circle_used() > before);
    circle_stop();
}

static void a_roster_that_this_node_does_not_believe_is_refused(void **unused)
{
    (void)unused;
    static const uint32_t moved[N] = { 1, 0, 2 }, absent[N] = { 0, 3, 2 }, good[N] = { 0, 1, 2 };
    sherd__peer friends[2] = { { .has_key = true }, { .has_key = true } };
    sherd__allreduce_plan p = circle_plan();
    circle_start(NULL);
    assert_int_equal(circle_meet_with(&p, moved), SHERD_EAUTH);
    assert_int_equal(circle_meet_with(&p, absent), SHERD_EAUTH);
    p.members = 2;
    assert_int_equal(circle_meet_with(&p, good), SHERD_EFORMAT); /* three lines for two */
    p.members = N;
    one.coordinators = true; /* who may give tasks is no member */
    assert_int_equal(circle_meet_with(&p, good), SHERD_EAUTH);
    one.coordinators = false;
    assert_int_equal(circle_meet_with(&p, good), 0);
    assert_int_equal(circle_meet_with(&p, moved), SHERD_EAUTH); /* and what stood stays */
    assert_int_equal(sherd__worker_member(one.worker, circle_key(0)), CIRCLE);
    circle_stop();
    friends[0].key = *circle_key(0);
    friends[1].key = *circle_key(3);
    circle_start(&(sherd__peers){ friends, 2 });
    assert_int_equal(circle_meet_with(&p, good), SHERD_EAUTH); /* 2 is not in --peers */
    friends[1].key = *circle_key(2);
    assert_int_equal(circle_meet_with(&p, good), 0);
    circle_stop();
}

static void plans_that_make_no_sense_are_refused(void **unused)
{
    (void)unused;
    static const uint32_t good[N] = { 0, 1, 2 };
    circle_start(NULL);
    assert_int_equal(circle_step(1, 0), SHERD_EINVAL); /* before a meeting */
    sherd__allreduce_plan p = circle_plan();
    p.state = 0;
    assert_int_equal(circle_meet_with(&p, good), SHERD_EINVAL); /* nothing to go on from */
    p = circle_plan();
    p.state = TEXT;
    assert_int_equal(circle_meet_with(&p, good), SHERD_EINVAL);
    p = circle_plan();
    p.bits = 1;
    assert_int_equal(circle_meet_with(&p, good), SHERD_EFORMAT);
    p = circle_plan();
    p.optimiser.method = SHERD__MOMENTUM;
    p.optimiser.beta1 = 1.5;
    assert_int_equal(circle_meet_with(&p, good), SHERD_EINVAL);
    assert_int_equal(sherd__worker_member(one.worker, circle_key(0)), 0);
    assert_int_equal(circle_meet(), 0);
    assert_int_equal(circle_step(3, 0), 0);
    assert_int_equal(circle_step(3, 0), SHERD_EINVAL); /* not again */
    assert_int_equal(circle_step(2, 0), SHERD_EINVAL);
    assert_int_equal(circle_step(4, 1), SHERD_EINVAL); /* the sum of a round that never was */
    uint8_t noise[8 * (SHERD__ALLREDUCE_STEP + SHERD__PLAN_HEAD + 1)];
    for (unsigned i = 0; i < 500; i++) {
        for (size_t k = 0; k < sizeof noise; k++) noise[k] = (uint8_t)(draw() % 3);
        circle_put(one.next_block++, SHERD_I64, noise, sizeof noise / 8);
        assert_true(circle_ask(SHERD__OP_STEP, one.next_block - 1, 0, SHERD_I64, 1) < 0);
    }
    circle_stop();
}

/* Somebody else was lost while they met anew: that meeting is called off, its members go on. */
static void a_meeting_that_is_called_off_takes_nothing_from_a_member(void **unused)
{
    (void)unused;
    static const uint32_t who[N] = { 0, 1, 2 };
    sherd__allreduce_plan p = circle_plan();
    circle_start(NULL);
    assert_int_equal(circle_meet(), 0);
    p.state = 0;
    p.id++;
    one.calls_off = true;
    assert_int_equal(circle_meet_with(&p, who), 1); /* whoever cancels hears no answer */
    one.calls_off = false;
    assert_int_equal(sherd__worker_member(one.worker, circle_key(0)), 0);
    assert_int_equal(circle_meet_with(&p, who), 0);
    assert_int_equal(sherd__worker_member(one.worker, circle_key(0)), CIRCLE + 1);
    circle_stop();
}

static void numbers_of_blocks_tell_rounds_apart_for_ever(void **unused)
{
    (void)unused;
    static const uint64_t near[] = {
        0, 1, 77, (1u << 23) + 5, (1u << 24) - 1, 1u << 24, UINT64_C(1) << 40
    };
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        for (int64_t off = -3; off <= 3; off++)
            for (uint32_t s = 0; s < 126; s += 25) {
                uint64_t round, want = near[i] + (uint64_t)off;
                uint32_t got;
                if (off < 0 && near[i] < (uint64_t)-off) continue;
                uint32_t number = sherd__allreduce_block(want, s);
                assert_int_not_equal(number, 0);
                sherd__allreduce_block_of(number, near[i], &round, &got);
                assert_true(round == want);
                assert_int_equal(got, s);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_members_of_a_circle_that_stands_may_connect),
        cmocka_unit_test(a_member_brings_the_blocks_of_its_steps_and_nothing_else),
        cmocka_unit_test(a_name_of_another_coordinators_circle_is_refused),
        cmocka_unit_test(a_members_block_is_of_the_account_that_its_connection_counts_for),
        cmocka_unit_test(what_a_member_leaves_unread_counts_in_its_coordinators_memory),
        cmocka_unit_test(a_member_that_floods_fills_no_more_than_its_places),
        cmocka_unit_test(what_came_for_the_last_round_there_is_goes_with_its_circle),
        cmocka_unit_test(a_roster_that_this_node_does_not_believe_is_refused),
        cmocka_unit_test(plans_that_make_no_sense_are_refused),
        cmocka_unit_test(a_meeting_that_is_called_off_takes_nothing_from_a_member),
        cmocka_unit_test(numbers_of_blocks_tell_rounds_apart_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, circle_free_identities);
}
