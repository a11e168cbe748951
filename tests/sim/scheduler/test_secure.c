/*
 * Secure aggregation with both state machines joined: the sum equals that of all local gradients,
 * bit for bit, whichever node is lost and when; the bytes that the coordinator receives contain no
 * gradient.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "learn/plan.h"
#include "tests/sim/scheduler/secure_world.h"
#include "tests/support/draw.h"

static void the_sum_equals_that_of_all_local_gradients_bit_for_bit(void **s)
{
    (void)s;
    static const uint32_t kinds[][3] = { { 3, 3, 1 }, { 4, 0, 1 }, { 7, 0, 2 }, { 7, 7, 5 } };
    for (size_t i = 0; i < 4; i++) {
        world w;
        draw_state = 11 + i;
        secure_begin(&w, kinds[i][0], kinds[i][1], kinds[i][2]);
        secure_meet(&w);
        assert_int_equal(w.a.nodes, kinds[i][0]);
        for (unsigned round = 0; round < 4; round++) {
            for (size_t k = 0; k < COUNT; k++) w.params->values[k] *= 0.75;
            assert_int_equal(secure_ask(&w), 0);
            secure_is_sum_without(&w, NULL, 0);
        }
        assert_string_equal(w.log, "");
        secure_end(&w);
    }
}

/* Seven nodes, two may collude, five must remain (U > 4.5). */
static void nodes_may_be_lost_at_any_moment_if_enough_remain(void **s)
{
    (void)s;
    for (const uint32_t *op = secure_phases + ROUND; op < secure_phases + PHASES; op++)
        for (uint32_t at = 1; at <= 5; at++) {
            world w;
            draw_state = 100 * *op + at;
            secure_begin(&w, 7, 5, 2);
            secure_meet(&w);
            assert_int_equal(secure_ask(&w), 0);
            w.op = *op;
            w.at = at;
            w.seen = 0;
            w.lost[0] = 5;
            w.lost[1] = 6;
            w.lost_len = 2;
            assert_int_equal(secure_ask(&w), 0);
            /* answers arrive in the order of nodes: 5 and 6 have uploaded nothing before they are
             * lost, and everything by the time of answers to CONFIRM and OPEN */
            if (*op >= SHERD__OP_OPEN) secure_is_sum_without(&w, NULL, 0);
            else secure_is_sum_without(&w, w.lost, 2);
            w.lost_len = 0;
            assert_int_equal(secure_ask(&w), 0);
            secure_is_sum_without(&w, (uint32_t[]){ 5, 6 }, 2);
            secure_end(&w);
        }
}

static void a_node_lost_after_its_upload_is_in_the_sum(void **s)
{
    (void)s;
    world w;
    draw_state = 5;
    secure_begin(&w, 7, 5, 2);
    secure_meet(&w);
    w.op = SHERD__OP_HIDE;
    w.at = 4; /* nodes 0 to 3 have uploaded */
    w.lost[0] = 1;
    w.lost[1] = 6;
    w.lost_len = 2;
    assert_int_equal(secure_ask(&w), 0);
    secure_is_sum_without(&w, (uint32_t[]){ 6 }, 1);
    assert_non_null(strstr(w.log, "n1 is lost: cut; its data is still in this sum"));
    assert_non_null(strstr(w.log, "n6 is lost: cut; its data is not in this sum"));
    secure_end(&w);
}

static void a_node_lost_between_pieces_and_upload_is_not_in_the_sum(void **s)
{
    (void)s;
    world w;
    draw_state = 15;
    secure_begin(&w, 7, 5, 2);
    secure_meet(&w);
    w.op = SHERD__OP_SEAL;
    w.at = 1;
    w.lost_len = 1; /* node 0, whose pieces arrived first */
    w.lost[0] = 0;
    assert_int_equal(secure_ask(&w), 0);
    secure_is_sum_without(&w, (uint32_t[]){ 0 }, 1);
    secure_end(&w);
}

static void with_one_answer_too_few_nothing_is_opened(void **s)
{
    (void)s;
    for (const uint32_t *op = secure_phases + ROUND; op < secure_phases + PHASES; op++) {
        world w;
        draw_state = 6;
        secure_begin(&w, 7, 5, 2);
        secure_meet(&w);
        w.op = *op;
        w.at = 1;
        w.lost[0] = 3;
        w.lost[1] = 4;
        w.lost[2] = 6;
        w.lost_len = 3;
        secure_begin_ask(&w);
        secure_settle(&w);
        secure_pass(&w);
        assert_int_equal(secure_take(&w), SHERD_EFEWNODES);
        assert_int_equal(sherd_err_exit(SHERD_EFEWNODES), 7);
        secure_end(&w);
    }
}

static void a_node_lost_before_the_roster_is_left_out(void **s)
{
    (void)s;
    world w;
    draw_state = 7;
    secure_begin(&w, 5, 0, 1);
    w.op = SHERD__OP_JOIN;
    w.at = 2;
    w.lost[0] = 4;
    w.lost_len = 1;
    secure_meet(&w);
    assert_int_equal(w.a.nodes, 4);
    assert_int_equal(secure_ask(&w), 0);
    secure_is_sum_without(&w, (uint32_t[]){ 4 }, 1);
    secure_end(&w);
}

static void a_node_whose_key_is_not_the_pinned_one_is_refused(void **s)
{
    (void)s;
    world w;
    sherd_identity *other;
    draw_state = 8;
    secure_begin(&w, 5, 0, 1);
    assert_int_equal(sherd_identity_new(&other, NULL), 0);
    sherd_identity *own = w.node[2].identity;
    w.node[2].identity = other; /* the key that the coordinator now expects */
    secure_meet(&w);
    assert_true(w.node[2].expelled);
    assert_int_equal(w.a.nodes, 4);
    assert_int_equal(secure_ask(&w), 0);
    w.node[2].identity = own;
    secure_is_sum_without(&w, (uint32_t[]){ 2 }, 1);
    sherd_identity_free(other);
    secure_end(&w);
}

/* Passed on, it would end the round for all: no member opens a sum with it. Its gradient stays in
 * the sum. */
static void a_node_that_confirms_something_else_is_expelled_and_the_sum_opened(void **s)
{
    (void)s;
    world w;
    draw_state = 12;
    secure_begin(&w, 7, 5, 2);
    secure_meet(&w);
    w.forge = true;
    assert_int_equal(secure_ask(&w), 0);
    assert_true(w.node[0].expelled);
    secure_is_sum_without(&w, NULL, 0);
    assert_int_equal(secure_ask(&w), 0);
    secure_is_sum_without(&w, (uint32_t[]){ 0 }, 1);
    secure_end(&w);
}

static void a_node_that_does_not_support_confirmation_takes_no_part(void **s)
{
    (void)s;
    world w;
    draw_state = 13;
    secure_begin_some(&w, 5, 0, 1, 4, NULL);
    w.node[4].older = true;
    secure_connect(&w.node[4]);
    secure_meet(&w);
    assert_int_equal(w.a.nodes, 4);
    assert_non_null(strstr(w.log, "n4 does not take part in secure aggregation: its version is "
                                  "older and does not confirm the members of a sum"));
    assert_int_equal(secure_ask(&w), 0);
    secure_is_sum_without(&w, (uint32_t[]){ 4 }, 1);
    secure_end(&w);
}

/* Neither the answers of a node nor the sum of the others depend on whether a gradient fits. */
static void a_gradient_that_does_not_fit_saturates(void **s)
{
    (void)s;
    world w;
    int64_t most = INT64_C(1) << sherd__secure_room(4);
    draw_state = 9;
    secure_begin(&w, 4, 0, 1);
    secure_meet(&w);
    w.params->values[40] = 0x1p60;
    assert_int_equal(secure_ask(&w), 0);
    assert_int_equal(w.sum.in, 4);
    size_t large = 0;
    for (size_t k = 0; k < COUNT; k++) large += llabs(w.out[k]) > most / 2;
    assert_true(large > 0);
    for (size_t k = 0; k < LEN; k++) assert_true(llabs(w.out[k]) <= 4 * most);
    assert_int_equal(w.log[0], 0);
    secure_end(&w);
}

/* ---- the data that the coordinator receives -------------------------------------------------- */

enum { SET = 1 << 16 };

static void set_add(uint64_t *set, uint64_t v)
{
    size_t at = (size_t)(v * UINT64_C(0x9E3779B97F4A7C15) >> 48);
    while (set[at] && set[at] != v) at = (at + 1) % SET;
    set[at] = v;
}

static bool set_has(const uint64_t *set, uint64_t v)
{
    size_t at = (size_t)(v * UINT64_C(0x9E3779B97F4A7C15) >> 48);
    while (set[at] && set[at] != v) at = (at + 1) % SET;
    return v && set[at] == v;
}

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, 8);
    return bits;
}

static size_t found(const uint64_t *set, const uint8_t *bytes, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i + 8 <= len; i++) n += set_has(set, sherd__get_u64(bytes + i));
    return n;
}

static void put(sim_node *n, uint32_t block, uint8_t dtype, uint64_t rows, uint64_t cols,
                const void *bytes)
{
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = dtype,
                               .rows = rows,
                               .cols = cols,
                               .len = sherd_dtype_size((sherd_dtype)dtype) * rows * cols };
    sherd__fragment *f;
    uint8_t *copy = malloc(i.len);
    memcpy(copy, bytes, i.len);
    assert_int_equal(sherd__fragment_take(&f, &i, copy, NULL, NULL), 0);
    assert_int_equal(sherd__session_put(n->co, 78, block, f), 0);
}

/* Requests the same gradient by SHERD__OP_GRADIENT, over examples that the coordinator sends. */
static void ask_in_clear(world *w, sim_node *n)
{
    sherd__step_plan plan = {
        .recipe = 1, .bits = 40, .room = 50, .tiers = 2, .params = 5, .shards = 1, .batch = ROWS
    };
    sherd__step_plan_shard shard = { .x = 2, .targets = 3, .rows = n->rows };
    uint8_t bytes[400];
    double x[ROWS * INPUTS];
    uint32_t labels[ROWS];
    for (size_t r = 0; r < n->rows; r++) {
        memcpy(x + r * INPUTS, n->examples + r * (INPUTS + 1), INPUTS * sizeof *x);
        labels[r] = (uint32_t)n->examples[r * (INPUTS + 1) + INPUTS];
    }
    sherd__step_plan_write(bytes, &plan, secure_scales);
    sherd__step_plan_write_shard(bytes, &plan, 0, &shard);
    put(n, 1, SHERD_U8, 1, (uint64_t)(strstr(secure_text, "data =") - secure_text), secure_text);
    put(n, 2, SHERD_F64, n->rows, INPUTS, x);
    put(n, 3, SHERD_U32, n->rows, 1, labels);
    put(n, 4, SHERD_I64, 1, sherd__plan_size(2, 1) / 8, bytes);
    for (uint32_t t = 0; t < 2; t++) {
        uint64_t cols = sherd__plan_numbers(t ? 18 : 35, t, 1);
        sherd__task task = { .job = 78,
                             .task = t + 1,
                             .attempt = 1,
                             .op = SHERD__OP_GRADIENT,
                             .left = 4,
                             .right = 5 + t,
                             .result = { .origin = SHERD__RESULT,
                                         .dtype = SHERD_I64,
                                         .rows = 1,
                                         .cols = cols,
                                         .len = 8 * cols } };
        put(n, 5 + t, SHERD_F64, 1, t ? 18 : 35, w->params->values + (t ? 35 : 0));
        assert_int_equal(sherd__session_task(n->co, &task), 0);
    }
    secure_settle(w);
}

static void the_coordinators_data_contain_no_gradient_and_no_example(void **s)
{
    (void)s;
    world w;
    static uint64_t set[SET];
    int64_t one[LEN];
    draw_state = 10;
    memset(set, 0, sizeof set);
    secure_begin(&w, 7, 5, 2);
    secure_meet(&w);
    w.op = SHERD__OP_HIDE;
    w.at = 4;
    w.lost[0] = 1;
    w.lost[1] = 6;
    w.lost_len = 2;
    assert_int_equal(secure_ask(&w), 0);
    for (uint32_t i = 0; i < w.count; i++) {
        const sim_node *n = &w.node[i];
        secure_local_sum(&w, n, one);
        for (size_t k = 0; k < LEN; k++) {
            int32_t scale = k < 35 ? secure_scales[0] : secure_scales[1];
            for (int64_t v = one[k] - SLACK; v <= one[k] + SLACK; v++) {
                if (k < COUNT + 2 && k != COUNT) set_add(set, (uint64_t)v);
                if (k < COUNT) set_add(set, bits_of(ldexp((double)v, -scale)));
            }
        }
        for (size_t k = 0; k < n->rows * (INPUTS + 1); k++)
            if (k % (INPUTS + 1) < INPUTS) set_add(set, bits_of(n->examples[k]));
    }
    size_t bytes = 0;
    for (uint32_t i = 0; i < w.count; i++) {
        assert_int_equal(found(set, w.node[i].heard, w.node[i].heard_len), 0);
        bytes += w.node[i].heard_len;
    }
    assert_true(bytes > 7 * 7 * 100);
    ask_in_clear(&w, &w.node[3]); /* a control: here they are found */
    assert_true(found(set, w.node[3].heard, w.node[3].heard_len) >= COUNT - 5);
    assert_int_equal(found(set, (const uint8_t *)w.node[2].examples, 7 * 8), INPUTS);
    secure_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_equals_that_of_all_local_gradients_bit_for_bit),
        cmocka_unit_test(nodes_may_be_lost_at_any_moment_if_enough_remain),
        cmocka_unit_test(a_node_lost_after_its_upload_is_in_the_sum),
        cmocka_unit_test(a_node_lost_between_pieces_and_upload_is_not_in_the_sum),
        cmocka_unit_test(with_one_answer_too_few_nothing_is_opened),
        cmocka_unit_test(a_node_lost_before_the_roster_is_left_out),
        cmocka_unit_test(a_node_whose_key_is_not_the_pinned_one_is_refused),
        cmocka_unit_test(a_node_that_confirms_something_else_is_expelled_and_the_sum_opened),
        cmocka_unit_test(a_node_that_does_not_support_confirmation_takes_no_part),
        cmocka_unit_test(a_gradient_that_does_not_fit_saturates),
        cmocka_unit_test(the_coordinators_data_contain_no_gradient_and_no_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
