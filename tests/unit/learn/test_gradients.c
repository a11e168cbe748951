/*
 * Synchronous training by gradients: sums must have the same bits however shards are divided,
 * threaded, lost or repeated, and must be the gradient of the whole batch.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "tests/support/draw.h"
#include "tests/unit/learn/gradients_world.h"

/* ---- gradients ------------------------------------------------------------------------------- */

static void the_bits_depend_on_neither_threads_nor_the_order_of_arrival(void **s)
{
    (void)s;
    const unsigned counts[] = { 1, 2, 3, 5 };
    for (unsigned bits = 17; bits <= 40; bits += 23) {
        double first[COUNT], other[COUNT];
        for (size_t len = ROWS; len >= 1; len = len > 7 ? 7 : len == 7 ? 1 : 0) {
            sherd__gradients_options o = { .bits = bits, .shards = 4 };
            grad_params_after(first, grad_threads(1, bits), o, len);
            for (size_t i = 1; i < 4; i++) {
                grad_params_after(other, grad_threads(counts[i], bits), o, len);
                assert_memory_equal(first, other, sizeof first);
            }
            for (unsigned k = 0; k < 4; k++) {
                mock m = { .workers = 1 + k };
                grad_params_after(other, mock_engine(&m, bits), o, len);
                assert_memory_equal(first, other, sizeof first);
            }
        }
    }
}

/* Computes, number by number, the update of a step from its sums, and the maximum of the sums by
 * tier. */
static void update_by_hand(const grad_run *r, const mock *m, sherd__optimiser *o, double *params,
                           double *gradient, double most[3])
{
    size_t at = 0, tier = 0;
    for (size_t i = 0; i < sherd__network_len(r->network); i++) {
        const sherd__layer *l = sherd__network_layer(r->network, i);
        const int64_t *sum = l->cols ? m->sums->of[tier] : NULL;
        if (!sum) continue;
        most[tier] = 0;
        for (size_t k = 0; k < l->rows * l->cols + l->cols; k++, at++) {
            gradient[at] = (double)sum[k] * ldexp(1, -m->scales[tier]) / ROWS;
            if (k < l->rows * l->cols) gradient[at] += grad_recipe.l2 * params[at];
            most[tier] = fmax(most[tier], fabs(gradient[at]));
        }
        tier++;
    }
    sherd__optimiser_begin(o);
    sherd__optimiser_apply(o, 0.1, 0, at, params, gradient);
}

/* More numbers than one thread updates at a time. The peaks determine the scales of the next
 * step. */
static void an_update_of_many_numbers_equals_single_updates(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    mock m = { .workers = 2 };
    grad_run r;
    grad_choose("input = 6\nlayer = dense 9000\nlayer = relu\nlayer = dense 21\nlayer = tanh\n"
                "layer = dense 3\nloss = cross-entropy\nl2 = 0.01\n");
    grad_begin(&r, mock_engine(&m, 17), (sherd__gradients_options){ .bits = 17, .shards = 4 });
    size_t count = sherd__network_count(r.network), bytes = count * sizeof(double);
    double *params = malloc(bytes), *gradient = malloc(bytes), most[3];
    sherd__optimiser o;
    sherd__optimiser_spec spec = { .method = SHERD__MOMENTUM };
    assert_int_equal(sherd__optimiser_init(&o, &spec, count, &d), 0);
    memcpy(params, sherd__network_params(r.network), bytes);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(grad_step(&r, i, ROWS, 0.1, &d), 0);
        for (size_t t = 0; t < 3 && i > 0; t++) {
            int e;
            frexp(most[t] * ROWS, &e);
            assert_int_equal(m.scales[t], 60 - 24 - e);
        }
        update_by_hand(&r, &m, &o, params, gradient, most);
        assert_memory_equal(params, sherd__network_params(r.network), bytes);
        assert_memory_equal(gradient, sherd__network_gradient(r.network), bytes);
    }
    sherd__optimiser_fini(&o);
    free(params);
    free(gradient);
    grad_end(&r);
    grad_choose(NULL);
}

static void a_step_uses_the_gradient_of_the_whole_batch(void **s)
{
    (void)s;
    for (unsigned bits = 0; bits <= 40; bits += 40) {
        grad_run r;
        sherd_diag d = { 0 };
        grad_begin(&r, grad_threads(2, bits),
                   (sherd__gradients_options){ .bits = bits, .shards = 4 });
        sherd__network *n;
        sherd__optimiser o;
        sherd__stepper central;
        sherd_multiplier products;
        sherd__optimiser_spec spec = { .method = SHERD__MOMENTUM };
        sherd__step_result out = { 0 };
        double x[ROWS * INPUTS];
        uint32_t l[ROWS];
        assert_int_equal(sherd_multiplier_local(&products, bits, &d), 0);
        assert_int_equal(sherd__recipe_network(&grad_recipe, ROWS, &n, &d), 0);
        memcpy(sherd__network_params(n), sherd__network_params(r.network), sizeof(double) * COUNT);
        assert_int_equal(sherd__optimiser_init(&o, &spec, COUNT, &d), 0);
        assert_int_equal(sherd__stepper_products(&central, n, &o,
                                                 (sherd__engine){ .products = products }, &d),
                         0);
        sherd__shard_inputs(&grad_data, grad_order, ROWS, x);
        sherd__shard_targets(&grad_data, grad_order, ROWS, l);
        sherd__step step = { .rate = 0.1,
                             .rows = grad_order,
                             .len = ROWS,
                             .batch = { .x = sherd_view_c(x, SHERD_F64, ROWS, INPUTS),
                                        .targets = { .labels = l } } };
        for (unsigned i = 0; i < 5; i++) {
            step.number = i;
            assert_int_equal(central.ops->step(central.ctx, &step, &out, &d), 0);
            assert_int_equal(grad_step(&r, i, ROWS, 0.1, &d), 0);
            assert_true(fabs(out.cost - r.cost) < 1e-9);
            assert_int_equal(out.hits, r.hits);
            for (size_t k = 0; k < COUNT; k++)
                assert_true(
                    fabs(sherd__network_params(n)[k] - sherd__network_params(r.network)[k]) < 1e-9);
        }
        sherd__stepper_free(central);
        sherd__optimiser_fini(&o);
        sherd__network_free(n);
        sherd_multiplier_free(products);
        grad_end(&r);
    }
}

static void a_gradient_that_exceeds_its_scale_is_computed_again_with_a_coarser_one(void **s)
{
    (void)s;
    double first[COUNT], other[COUNT];
    grad_run r;
    sherd_diag d = { 0 };
    for (unsigned k = 0; k < 3; k++) {
        mock m = { .workers = 1 + k };
        grad_begin(&r, mock_engine(&m, 30), (sherd__gradients_options){ .bits = 30, .shards = 5 });
        for (size_t i = 0; i < COUNT; i++) /* the assumed gradient of the last step */
            sherd__network_layer(r.network, 0)->weights_gradient[i] = 1e-250;
        assert_int_equal(grad_step(&r, 0, ROWS, 0.1, &d), 0);
        assert_true(sherd__gradients_stats_of(&r.stepper)->rescaled >= 2);
        memcpy(k ? other : first, sherd__network_gradient(r.network), sizeof first);
        if (k) assert_memory_equal(first, other, sizeof first);
        grad_end(&r);
    }
    grad_begin(&r, grad_threads(1, 30), (sherd__gradients_options){ .bits = 30, .shards = 5 });
    assert_int_equal(grad_step(&r, 0, ROWS, 0.1, &d), 0);
    assert_int_equal(sherd__gradients_stats_of(&r.stepper)->rescaled, 0);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(fabs(first[i] - sherd__network_gradient(r.network)[i]) < 1e-5);
    grad_end(&r);
}

static void divergence_is_reported_and_changes_nothing(void **s)
{
    (void)s;
    for (unsigned bits = 0; bits <= 17; bits += 17) {
        grad_run r;
        sherd_diag d = { 0 };
        double before[COUNT];
        grad_begin(&r, grad_threads(2, bits), (sherd__gradients_options){ .bits = bits });
        sherd__network_params(r.network)[COUNT - 1] = 1e308;
        sherd__network_params(r.network)[COUNT - 2] = -1e308;
        memcpy(before, sherd__network_params(r.network), sizeof before);
        assert_int_equal(grad_step(&r, 0, ROWS, 0.1, &d), SHERD_ERANGE);
        assert_true(d.message[0]);
        assert_memory_equal(before, sherd__network_params(r.network), sizeof before);
        assert_int_equal(r.updates, 0);
        grad_end(&r);
    }
}

/* There is one shard, and its worker is lost; other workers remain. */
static void a_step_whose_parts_were_all_dropped_is_computed_by_other_workers(void **s)
{
    (void)s;
    for (unsigned async = 0; async < 2; async++) {
        grad_run r, calm;
        sherd_diag d = { 0 };
        mock m = { .workers = 1, .lost = 1 }, whole = { .workers = 1 };
        sherd__gradients_options o = {
            .bits = 17, .shards = 1, .async = async > 0, .staleness_max = UINT64_MAX
        };
        grad_begin(&r, mock_engine(&m, 17), o);
        grad_begin(&calm, mock_engine(&whole, 17), o);
        if (grad_step(&r, 0, ROWS, 0.1, &d)) fail_msg("%s", d.message);
        assert_int_equal(grad_step(&calm, 0, ROWS, 0.1, &d), 0);
        assert_memory_equal(sherd__network_params(r.network), sherd__network_params(calm.network),
                            COUNT * sizeof(double));
        assert_int_equal(m.posts, 2);
        assert_int_equal(sherd__gradients_stats_of(&r.stepper)->dropped, 1);
        grad_end(&r);
        grad_end(&calm);
    }
}

static void a_dropped_part_has_no_effect(void **s)
{
    (void)s;
    grad_run r, rest;
    sherd_diag d = { 0 };
    mock m = { .workers = 3, .lost = 3 };
    grad_begin(&r, mock_engine(&m, 40), (sherd__gradients_options){ .bits = 40, .shards = 3 });
    assert_int_equal(grad_step(&r, 0, ROWS, 0.1, &d), 0);
    assert_int_equal(r.last.dropped, 1);
    assert_int_equal(r.last.parts, 2);
    assert_int_equal(r.last.examples, 30);
    grad_begin(&rest, grad_threads(1, 40), (sherd__gradients_options){ .bits = 40, .shards = 2 });
    assert_int_equal(grad_step(&rest, 0, 30, 0.1, &d), 0);
    for (size_t k = 0; k < COUNT; k++)
        assert_true(fabs(sherd__network_gradient(r.network)[k] -
                         sherd__network_gradient(rest.network)[k]) < 1e-9);
    assert_true(fabs(r.cost - rest.cost) < 1e-9);
    grad_end(&r);
    grad_end(&rest);
}

static void a_run_resumed_with_its_gradient_has_the_same_bits(void **s)
{
    (void)s;
    grad_run whole, half;
    sherd__gradients_options o = { .bits = 17 };
    sherd_diag d = { 0 };
    grad_begin(&whole, grad_threads(1, 17), o);
    grad_steps(&whole, 3, ROWS);
    grad_begin(&half, grad_threads(2, 17), o);
    memcpy(sherd__network_params(half.network), sherd__network_params(whole.network),
           COUNT * sizeof(double));
    memcpy(half.optimiser.state, whole.optimiser.state, COUNT * sizeof(double));
    memcpy(sherd__network_layer(half.network, 0)->weights_gradient,
           sherd__network_gradient(whole.network), COUNT * sizeof(double));
    for (unsigned i = 3; i < 6; i++) {
        assert_int_equal(grad_step(&whole, i, ROWS, 0.1, &d), 0);
        assert_int_equal(grad_step(&half, i, ROWS, 0.1, &d), 0);
    }
    assert_memory_equal(sherd__network_params(half.network), sherd__network_params(whole.network),
                        COUNT * sizeof(double));
    grad_end(&whole);
    grad_end(&half);
}

static void a_failing_engine_ends_the_steps(void **s)
{
    (void)s;
    for (unsigned async = 0; async < 2; async++) {
        grad_run r;
        sherd_diag d = { 0 };
        mock m = { .workers = 3, .fail_after = 2 };
        grad_begin(&r, mock_engine(&m, 17),
                   (sherd__gradients_options){
                       .bits = 17, .async = async > 0, .staleness_max = UINT64_MAX });
        assert_int_equal(grad_step(&r, 0, ROWS, 0.1, &d), SHERD_EFEWNODES);
        assert_int_equal(grad_step(&r, 1, ROWS, 0.1, &d), SHERD_EFEWNODES);
        grad_end(&r);
    }
}

/* ---- local steps ----------------------------------------------------------------------------- */

static void one_local_step_of_all_shards_is_a_step_of_the_batch(void **s)
{
    (void)s;
    grad_run one, local;
    sherd_diag d = { 0 };
    sherd__gradients_options o = { .bits = 0, .shards = 3 };
    grad_begin(&one, grad_threads(1, 0), o);
    o.local_steps = 1;
    grad_begin(&local, grad_threads(2, 0), o);
    /* Only one step: from the second on, momentum differs from plain descent. */
    assert_int_equal(grad_step(&one, 0, ROWS, 0.1, &d), 0);
    assert_int_equal(grad_step(&local, 0, ROWS, 0.1, &d), 0);
    for (size_t k = 0; k < COUNT; k++)
        assert_true(fabs(sherd__network_params(one.network)[k] -
                         sherd__network_params(local.network)[k]) < 1e-12);
    assert_true(fabs(one.cost - local.cost) < 1e-9);
    grad_end(&one);
    grad_end(&local);
}

static void local_steps_have_the_same_bits_for_any_distribution(void **s)
{
    (void)s;
    double first[COUNT], other[COUNT];
    sherd__gradients_options o = { .bits = 17, .shards = 4, .local_steps = 5, .local_batch = 3 };
    for (unsigned weighted = 0; weighted < 2; weighted++) {
        o.weighted = weighted > 0;
        grad_params_after(first, grad_threads(1, 17), o, ROWS);
        grad_params_after(other, grad_threads(3, 17), o, ROWS);
        assert_memory_equal(first, other, sizeof first);
        mock m = { .workers = 2, .reverse = true };
        grad_params_after(other, mock_engine(&m, 17), o, ROWS);
        assert_memory_equal(first, other, sizeof first);
    }
}

/* Shards of 12, 11, 11 and 11 examples: three shards lack two of 24 steps, and a step contracts
 * regularised parameters by 1 - l2 rate. The result is the mean by these weights. */
static void shards_with_fewer_steps_weigh_less_by_the_contraction_of_those_steps(void **s)
{
    (void)s;
    for (unsigned weighted = 0; weighted < 2; weighted++) {
        grad_run r;
        sherd_diag d = { 0 };
        mock m = { .workers = 2 };
        double rate = 0.1, kept = 1 - grad_recipe.l2 * rate, less = weighted ? kept * kept : 1;
        double before[COUNT], all = 1 + 3 * less;
        grad_begin(&r, mock_engine(&m, 17),
                   (sherd__gradients_options){
                       .bits = 17, .shards = 4, .local_steps = 24, .weighted = weighted > 0 });
        memcpy(before, sherd__network_params(r.network), sizeof before);
        assert_int_equal(grad_step(&r, 0, ROWS, rate, &d), 0);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(m.local[i].steps, weighted && i ? 22 : 24);
            assert_true(fabs(m.local[i].weight - (i ? less : 1)) < 1e-15);
        }
        for (size_t k = 0; k < m.sums->counts[0]; k++) {
            double moved = (double)((const int64_t *)m.sums->of[0])[k] * ldexp(1, -m.scales[0]);
            double now = sherd__network_params(r.network)[k];
            assert_true(fabs(before[k] - moved / all - now) < 1e-13);
        }
        grad_end(&r);
    }
}

/* ---- adding up ------------------------------------------------------------------------------- */

static void an_entry_that_exceeds_its_range_is_reported(void **s)
{
    (void)s;
    int64_t sums[5] = { 0 };
    double v[5] = { 1, -2, 3.5, 2.5, -8 };
    assert_true(sherd__grader_add(sums, v, 5, 1, 3));
    int64_t want[5] = { 1, -2, 4, 2, -8 };
    assert_memory_equal(sums, want, sizeof sums);
    v[4] = nextafter(-8, -9);
    assert_false(sherd__grader_add(sums, v, 5, 1, 3));
    v[4] = NAN;
    assert_false(sherd__grader_add(sums, v, 5, 1, 3));
    v[4] = INFINITY;
    assert_false(sherd__grader_add(sums, v, 5, 1, 62));
    v[4] = -1;
    assert_true(sherd__grader_add(sums, v, 5, 0x1p60, 62));
    assert_int_equal(sums[4], INT64_C(-8) - 8 - 8 - 8 - (INT64_C(1) << 60) + 24);
    assert_true(sherd__grader_add(sums, v, 0, 1, 0));
}

static void the_first_sum_is_kept_for_a_step_and_then_returned(void **s)
{
    (void)s;
    grad_run r;
    mock m = { .workers = 3 };
    mock_lent = mock_given_back = 0;
    grad_begin(&r, mock_engine(&m, 17), (sherd__gradients_options){ .shards = 6, .bits = 17 });
    for (unsigned n = 1; n <= 4; n++) {
        grad_steps(&r, 1, ROWS);
        assert_int_equal(mock_lent, 9 * n);               /* 3 parts of 3 tiers */
        assert_int_equal(mock_lent - mock_given_back, 3); /* the first part of each tier */
    }
    grad_end(&r);
    assert_int_equal(mock_lent, mock_given_back);
}

static void lent_parameters_are_read_in_place_and_for_one_run_only(void **s)
{
    (void)s;
    sherd__grader *g;
    sherd_diag d = { 0 };
    int64_t out[4][3][64];
    int32_t scales[3] = { 40, 40, 40 };
    double own[3][64], theirs[3][64], cost;
    uint64_t hits = 0;
    sherd__shard shard = { grad_data.x, grad_data.targets };
    assert_int_equal(sherd__grader_new(&g, &grad_recipe, ROWS, 17, NULL, &d), 0);
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < sherd__grader_count(g, t); i++) {
            own[t][i] = (double)draw() / 0x1p30 - 1;
            theirs[t][i] = (double)draw() / 0x1p30 - 1;
        }
    for (int pass = 0; pass < 4; pass++) { /* own; the caller's, copied; the caller's, lent; own
                                            * again */
        void *sums[3] = { out[pass][0], out[pass][1], out[pass][2] };
        sherd__grading how = { .scales = scales, .room = 60, .sums = sums, .fresh = true };
        for (size_t t = 0; t < 3; t++) {
            size_t n = sherd__grader_count(g, t);
            if (pass < 3) memcpy(sherd__grader_params(g, t), pass == 1 ? theirs[t] : own[t], 8 * n);
            if (pass == 2) sherd__grader_lend(g, t, theirs[t]);
            if (pass == 2) assert_memory_equal(sherd__grader_params(g, t), own[t], 8 * n);
        }
        assert_int_equal(sherd__grader_run(g, &shard, &how, &cost, &hits, &d), 0);
    }
    for (size_t t = 0; t < 3; t++) {
        size_t n = sherd__grader_count(g, t);
        assert_memory_equal(out[2][t], out[1][t], 8 * n);
        assert_memory_equal(out[3][t], out[0][t], 8 * n);
        assert_memory_not_equal(out[0][t], out[1][t], 8 * n);
    }
    sherd__grader_free(g);
}

static void a_failed_allocation_leaks_nothing_and_gives_no_wrong_result(void **s)
{
    (void)s;
    for (size_t n = 1; n < 400; n++) {
        sherd__gradient_engine e = { 0 };
        sherd__stepper st = { 0 };
        sherd__network *net = NULL;
        sherd__optimiser o = { 0 };
        sherd__optimiser_spec spec = { .method = SHERD__SGD };
        sherd_diag d = { 0 };
        sherd__step step = { .rate = 0.1, .rows = grad_order, .len = ROWS };
        sherd__step_result out = { 0 };
        assert_int_equal(sherd__recipe_network(&grad_recipe, ROWS, &net, &d), 0);
        assert_int_equal(sherd__optimiser_init(&o, &spec, COUNT, &d), 0);
        sherd__gradients_options op = { .recipe = &grad_recipe,
                                        .data = &grad_data,
                                        .network = net,
                                        .optimiser = &o,
                                        .bits = 17,
                                        .async = n % 2,
                                        .staleness_max = 2 };
        sherd__alloc_fail_nth(n);
        int err = sherd__gradients_here(&e, &grad_recipe, &grad_data,
                                        &(sherd__here_options){ ROWS, 17, 2 }, &d);
        op.engine = e;
        if (!err) err = sherd__stepper_gradients(&st, &op, &d);
        if (err) sherd__gradient_engine_free(e);
        if (!err) err = st.ops->step(st.ctx, &step, &out, &d);
        sherd__alloc_fail_nth(0);
        assert_true(err == 0 || (err == SHERD_ENOMEM && d.message[0]));
        sherd__stepper_free(st);
        sherd__optimiser_fini(&o);
        sherd__network_free(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_depend_on_neither_threads_nor_the_order_of_arrival),
        cmocka_unit_test(an_update_of_many_numbers_equals_single_updates),
        cmocka_unit_test(a_step_uses_the_gradient_of_the_whole_batch),
        cmocka_unit_test(a_gradient_that_exceeds_its_scale_is_computed_again_with_a_coarser_one),
        cmocka_unit_test(divergence_is_reported_and_changes_nothing),
        cmocka_unit_test(a_step_whose_parts_were_all_dropped_is_computed_by_other_workers),
        cmocka_unit_test(a_dropped_part_has_no_effect),
        cmocka_unit_test(a_run_resumed_with_its_gradient_has_the_same_bits),
        cmocka_unit_test(a_failing_engine_ends_the_steps),
        cmocka_unit_test(one_local_step_of_all_shards_is_a_step_of_the_batch),
        cmocka_unit_test(local_steps_have_the_same_bits_for_any_distribution),
        cmocka_unit_test(shards_with_fewer_steps_weigh_less_by_the_contraction_of_those_steps),
        cmocka_unit_test(an_entry_that_exceeds_its_range_is_reported),
        cmocka_unit_test(the_first_sum_is_kept_for_a_step_and_then_returned),
        cmocka_unit_test(lent_parameters_are_read_in_place_and_for_one_run_only),
        cmocka_unit_test(a_failed_allocation_leaks_nothing_and_gives_no_wrong_result),
    };
    return cmocka_run_group_tests(tests, grad_set_up, NULL);
}
