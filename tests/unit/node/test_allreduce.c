/*
 * What a node permits in an all-reduce group: a coordinator names members, but none that may give
 * tasks here, and only nodes of --peers. A member delivers the blocks of its steps, once each, and
 * nothing else. Every task is answered once, whatever plans contain.
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

static void only_members_of_an_established_group_may_connect(void **unused)
{
    (void)unused;
    allreduce_start(NULL);
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(0)), 0);
    assert_int_equal(allreduce_meet(), 0);
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(0)), GROUP);
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(2)), GROUP);
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(N)), 0);
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(SELF)), 0);
    assert_int_equal(sherd__session_drop(one.j.co, JOB, 0), 0);
    allreduce_settle();
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(0)), 0);
    allreduce_stop();
}

static void a_member_can_deliver_the_blocks_of_its_steps_only(void **unused)
{
    (void)unused;
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet(), 0);
    assert_int_equal(allreduce_step(1, 0), 0);
    uint32_t first = sherd__allreduce_block(1, 0);
    uint64_t len = allreduce_len_of(0);
    assert_int_equal(allreduce_bring(N, GROUP, first, len, SHERD_I64), 1); /* a stranger */
    assert_int_equal(allreduce_bring(2, GROUP, first, len, SHERD_I64),
                     1); /* a block of another member */
    assert_int_equal(allreduce_bring(0, GROUP + 1, first, len, SHERD_I64), 1);
    assert_int_equal(allreduce_bring(0, JOB, first, len, SHERD_I64), 1); /* the coordinator's job */
    assert_int_equal(allreduce_bring(0, GROUP, first, len + 8, SHERD_I64), 1);
    assert_int_equal(allreduce_bring(0, GROUP, first, len - 8, SHERD_I64), 1);
    assert_int_equal(allreduce_bring(0, GROUP, first, 0, SHERD_I64), 1);
    assert_int_equal(allreduce_bring(0, GROUP, sherd__allreduce_block(1, 4), len, SHERD_I64), 1);
    assert_int_equal(allreduce_bring(0, GROUP, 1u << 8, len, SHERD_I64), 1); /* not a step */
    assert_int_equal(allreduce_bring(0, GROUP, first, len, SHERD_F64), SHERD_EUNASKED);
    uint32_t later = sherd__allreduce_block(1, 1);
    len = allreduce_len_of(1);
    assert_int_equal(allreduce_bring(0, GROUP, later, len, SHERD_I64), 0); /* early: it is kept */
    assert_int_equal(allreduce_bring(0, GROUP, later, len, SHERD_I64), SHERD_EUNASKED); /* twice */
    allreduce_stop();
}

/* The answer reveals only that there is such a group. */
static void the_id_of_another_coordinators_group_is_refused(void **unused)
{
    (void)unused;
    static const uint32_t who[N] = { 0, 1, 2 };
    sherd__allreduce_plan p = allreduce_plan();
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet(), 0);
    allreduce_swap();
    assert_int_equal(allreduce_meet(), SHERD_EBUSY);
    p.id++;
    assert_int_equal(allreduce_meet_with(&p, who), 0);
    allreduce_swap();
    assert_int_equal(allreduce_meet_with(&p, who), SHERD_EBUSY);
    assert_int_equal(allreduce_meet(), 0); /* its own group */
    allreduce_swap();
    joined_cut(&one.j);
    allreduce_swap();
    assert_int_equal(allreduce_meet_with(&p, who), 0); /* the first coordinator has left */
    allreduce_stop();
}

static void a_members_block_belongs_to_the_account_of_its_connection(void **unused)
{
    (void)unused;
    uint32_t first = sherd__allreduce_block(1, 0);
    uint64_t len = allreduce_len_of(0);
    sherd__fragment *f;
    sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_I64, .rows = 1, .cols = len / 8, .len = len
    };
    allreduce_start(NULL);
    sherd__account *own = sherd__worker_accounts(one.worker);
    assert_int_equal(allreduce_meet(), 0);
    assert_int_equal(allreduce_step(1, 0), 0);
    allreduce_swap();
    allreduce_swap();
    sherd__account *other = sherd__worker_accounts(one.worker);
    assert_ptr_not_equal(other, own);
    assert_null(
        sherd__worker_member_place(one.worker, &other, allreduce_key(0), GROUP, first, len));
    uint8_t *bytes = sherd__worker_member_place(one.worker, &own, allreduce_key(0), GROUP, first,
                                                len);
    assert_non_null(bytes);
    memset(bytes, 0, len);
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, sherd__worker_unplace, own->pool), 0);
    assert_int_equal(sherd__worker_member_block(one.worker, other, allreduce_key(0), GROUP, first,
                                                f),
                     0); /* it is dropped */
    assert_int_equal(allreduce_bring(0, GROUP, first, len, SHERD_I64), 0);
    allreduce_swap();
    joined_cut(&one.j);
    allreduce_swap();
    allreduce_stop();
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

static void data_that_a_member_leaves_unread_count_for_its_coordinator(void **unused)
{
    (void)unused;
    joined j = { .hear = hears_nothing };
    sherd__session_options o = { .role = SHERD__COORDINATOR, .now_ms = 1 };
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet(), 0);
    uint64_t before = allreduce_used();
    assert_int_equal(sherd__session_new(&j.co, &o), 0);
    o = (sherd__session_options){ .role = SHERD__NODE, .now_ms = 1, .place = nowhere };
    sherd__worker_member_session(one.worker, sherd__worker_accounts(one.worker), &o);
    assert_int_equal(sherd__session_new(&j.no, &o), 0);
    joined_exchange(&j);
    for (uint32_t i = 1; i <= 10000; i++)
        joined_put(&j, GROUP, i, SHERD_I64, 1, 1, &(int64_t){ 0 });
    while (joined_move(&j, true)) {}
    uint64_t most = allreduce_used() - before;
    assert_in_range(most, 256 * 1024, 2 * 1024 * 1024);
    sherd__session_free(j.co);
    sherd__session_free(j.no);
    assert_int_equal(allreduce_used(), before);
    allreduce_stop();
}

/* For any numbers that a member sends, memory stays within what one round may deliver. */
static void a_flooding_member_fills_only_the_places_of_its_blocks(void **unused)
{
    (void)unused;
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet(), 0);
    uint64_t before = allreduce_used();
    for (unsigned i = 0; i < 5000; i++)
        (void)allreduce_bring((uint32_t)(draw() % 2) * 2, GROUP, (uint32_t)draw(),
                              allreduce_len_of((uint32_t)(draw() % 4)), SHERD_I64);
    for (uint64_t round = 1; round < 2000; round++)
        for (uint32_t s = 0; s < 4; s++)
            (void)allreduce_bring(s < 2 ? 0 : 2, GROUP, sherd__allreduce_block(round, s),
                                  allreduce_len_of(s), SHERD_I64);
    assert_true(allreduce_used() - before < 4 * (1024 + 512));
    allreduce_stop();
}

/* The coordinator chooses the numbers of rounds. */
static void blocks_of_the_last_possible_round_are_freed_with_their_group(void **unused)
{
    (void)unused;
    uint32_t first = sherd__allreduce_block(UINT64_MAX, 0);
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet(), 0);
    assert_int_equal(allreduce_step(UINT64_MAX, 0), 0);
    uint64_t before = allreduce_used();
    assert_int_equal(allreduce_bring(0, GROUP, first, allreduce_len_of(0), SHERD_I64), 0);
    assert_true(allreduce_used() > before);
    allreduce_stop();
}

static void a_roster_that_contradicts_this_node_is_refused(void **unused)
{
    (void)unused;
    static const uint32_t moved[N] = { 1, 0, 2 }, absent[N] = { 0, 3, 2 }, good[N] = { 0, 1, 2 };
    sherd__peer friends[2] = { { .has_key = true }, { .has_key = true } };
    sherd__allreduce_plan p = allreduce_plan();
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet_with(&p, moved), SHERD_EAUTH);
    assert_int_equal(allreduce_meet_with(&p, absent), SHERD_EAUTH);
    p.members = 2;
    assert_int_equal(allreduce_meet_with(&p, good),
                     SHERD_EFORMAT); /* three lines for two members */
    p.members = N;
    one.coordinators = true; /* a key that may give tasks cannot be a member */
    assert_int_equal(allreduce_meet_with(&p, good), SHERD_EAUTH);
    one.coordinators = false;
    assert_int_equal(allreduce_meet_with(&p, good), 0);
    assert_int_equal(allreduce_meet_with(&p, moved), SHERD_EAUTH); /* the existing group remains */
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(0)), GROUP);
    allreduce_stop();
    friends[0].key = *allreduce_key(0);
    friends[1].key = *allreduce_key(3);
    allreduce_start(&(sherd__peers){ friends, 2 });
    assert_int_equal(allreduce_meet_with(&p, good), SHERD_EAUTH); /* 2 is not in --peers */
    friends[1].key = *allreduce_key(2);
    assert_int_equal(allreduce_meet_with(&p, good), 0);
    allreduce_stop();
}

static void inconsistent_plans_are_refused(void **unused)
{
    (void)unused;
    static const uint32_t good[N] = { 0, 1, 2 };
    allreduce_start(NULL);
    assert_int_equal(allreduce_step(1, 0), SHERD_EINVAL); /* before a meeting */
    sherd__allreduce_plan p = allreduce_plan();
    p.state = 0;
    assert_int_equal(allreduce_meet_with(&p, good), SHERD_EINVAL); /* there is no state to continue
                                                                 * from */
    p = allreduce_plan();
    p.state = TEXT;
    assert_int_equal(allreduce_meet_with(&p, good), SHERD_EINVAL);
    p = allreduce_plan();
    p.bits = 1;
    assert_int_equal(allreduce_meet_with(&p, good), SHERD_EFORMAT);
    p = allreduce_plan();
    p.optimiser.method = SHERD__MOMENTUM;
    p.optimiser.beta1 = 1.5;
    assert_int_equal(allreduce_meet_with(&p, good), SHERD_EINVAL);
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(0)), 0);
    assert_int_equal(allreduce_meet(), 0);
    assert_int_equal(allreduce_step(3, 0), 0);
    assert_int_equal(allreduce_step(3, 0), SHERD_EINVAL); /* a second time */
    assert_int_equal(allreduce_step(2, 0), SHERD_EINVAL);
    assert_int_equal(allreduce_step(4, 1), SHERD_EINVAL); /* the sum of a round that did not take
                                                        * place */
    uint8_t noise[8 * (SHERD__ALLREDUCE_STEP + SHERD__PLAN_HEAD + 1)];
    for (unsigned i = 0; i < 500; i++) {
        for (size_t k = 0; k < sizeof noise; k++) noise[k] = (uint8_t)(draw() % 3);
        allreduce_put(one.next_block++, SHERD_I64, noise, sizeof noise / 8);
        assert_true(allreduce_ask(SHERD__OP_STEP, one.next_block - 1, 0, SHERD_I64, 1) < 0);
    }
    allreduce_stop();
}

/* Another member was lost while they met again: that meeting is cancelled, and its members
 * continue. */
static void a_cancelled_meeting_has_no_effect_on_a_member(void **unused)
{
    (void)unused;
    static const uint32_t who[N] = { 0, 1, 2 };
    sherd__allreduce_plan p = allreduce_plan();
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet(), 0);
    p.state = 0;
    p.id++;
    one.calls_off = true;
    assert_int_equal(allreduce_meet_with(&p, who), 1); /* a cancelled task gets no answer */
    one.calls_off = false;
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(0)), 0);
    assert_int_equal(allreduce_meet_with(&p, who), 0);
    assert_int_equal(sherd__worker_member(one.worker, allreduce_key(0)), GROUP + 1);
    allreduce_stop();
}

static void block_numbers_distinguish_neighbouring_rounds(void **unused)
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
        cmocka_unit_test(only_members_of_an_established_group_may_connect),
        cmocka_unit_test(a_member_can_deliver_the_blocks_of_its_steps_only),
        cmocka_unit_test(the_id_of_another_coordinators_group_is_refused),
        cmocka_unit_test(a_members_block_belongs_to_the_account_of_its_connection),
        cmocka_unit_test(data_that_a_member_leaves_unread_count_for_its_coordinator),
        cmocka_unit_test(a_flooding_member_fills_only_the_places_of_its_blocks),
        cmocka_unit_test(blocks_of_the_last_possible_round_are_freed_with_their_group),
        cmocka_unit_test(a_roster_that_contradicts_this_node_is_refused),
        cmocka_unit_test(inconsistent_plans_are_refused),
        cmocka_unit_test(a_cancelled_meeting_has_no_effect_on_a_member),
        cmocka_unit_test(block_numbers_distinguish_neighbouring_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, allreduce_free_identities);
}
