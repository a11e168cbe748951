/*
 * Networks and their multipliers: every multiplier gives the same bits; inputs are kept for the
 * backward pass and no longer; a pass allocates nothing; failures of a multiplier.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "learn/network.h"
#include "learn/optimiser.h"
#include "tests/unit/learn/network_world.h"

static void element_wise_steps_by_the_multiplier_give_the_same_bits(void **s)
{
    (void)s;
    sherd_multiplier local = net_local(0);
    for (size_t i = 0; i < NET_PLANS; i++) {
        sherd__network *a = net_made(&net_plans[i]), *b = net_made(&net_plans[i]);
        sherd__batch batch = net_batch(&net_plans[i], ROWS);
        size_t bytes = sherd__network_count(a) * sizeof(double);
        sherd__engine here = { .products = { &net_plain, &local } }, there = here;
        there.maps = true;
        net_plain_seen.maps = 0;
        double cost = net_cost(a, here, &batch);
        assert_int_equal(net_plain_seen.maps, 0);
        assert_true(cost == net_cost(b, there, &batch));
        assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b), bytes);
        if (i == 4) assert_int_equal(net_plain_seen.maps, 2 + 2 * 3);
        sherd__network_free(a);
        sherd__network_free(b);
    }
    sherd_multiplier_free(local);
}

static void a_pass_allocates_nothing_and_only_multiplies(void **s)
{
    (void)s;
    sherd_multiplier local = net_local(0);
    sherd__engine e = { .products = { &net_plain, &local } };
    for (size_t i = 0; i < NET_PLANS; i++) {
        sherd__network *n = net_made(&net_plans[i]);
        sherd__batch batch = net_batch(&net_plans[i], ROWS);
        sherd__alloc_fail_nth(0);
        net_plain_seen.products = 0;
        net_cost(n, e, &batch);
        assert_int_equal(sherd__alloc_fail_nth(0), 0);
        if (i == 3) /* the first layer needs no dx */
            assert_int_equal(net_plain_seen.products, 2 + 3);
        sherd__network_free(n);
    }
    sherd_multiplier_free(local);
}

static void input_may_be_kept_or_given_as_any_view(void **s)
{
    (void)s;
    static const size_t which[] = { 3, 8, 9, 10 };
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        const plan *p = &net_plans[which[i]];
        size_t size = p->in.height * p->in.width * p->in.channels;
        uint8_t bytes[ROWS * IN_MAX];
        double whole[ROWS * IN_MAX];
        for (size_t k = 0; k < ROWS * size; k++) {
            bytes[(k % size) * ROWS + k / size] = (uint8_t)(k * 37 % 5); /* transposed */
            whole[k] = (double)(k * 37 % 5);
        }
        sherd__network *a = net_made(p), *b = net_made(p);
        sherd__engine e = { .products = net_local(17) };
        sherd__batch batch = net_batch(p, ROWS), other = batch;
        batch.x = sherd_view_c(whole, SHERD_F64, ROWS, size);
        other.x = sherd_view_t(sherd_view_c(bytes, SHERD_U8, size, ROWS));
        double cost = net_cost(a, e, &batch);
        size_t len = sherd__network_count(a) * sizeof(double);
        assert_true(cost == net_cost(b, e, &other));
        assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b), len);
        assert_int_equal(sherd__network_keep(b, e, batch.x, ROWS, &other.kept, NULL), SHERD_OK);
        assert_int_equal(sherd__network_keeps(b), i != 1); /* sigmoids use no input */
        assert_int_equal(other.kept != NULL, i != 1);
        assert_true(cost == net_cost(b, e, &other));
        assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b), len);
        other.first = 1; /* beyond the end of what is kept */
        sherd_diag d = { 0 };
        if (other.kept)
            assert_int_equal(sherd__network_learn(b, e, &other, &cost, NULL, &d), SHERD_ESHAPE);
        sherd_multiplier_release(e.products, other.kept);
        sherd__network_free(a);
        sherd__network_free(b);
        sherd_multiplier_free(e.products);
    }
}

static void parts_of(const plan *p)
{
    enum { PART = 2 };
    size_t size = p->in.height * p->in.width * p->in.channels;
    uint8_t all[3 * ROWS * IN_MAX];
    for (size_t k = 0; k < 3 * ROWS * size; k++) all[k] = (uint8_t)(k * 37 % 251);
    sherd__network *a = net_made(p), *b = net_made(p);
    sherd__engine e = { .products = net_local(17) };
    sherd_kept *kept;
    sherd_view whole = sherd_view_c(all, SHERD_U8, 3 * ROWS, size);
    assert_int_equal(sherd__network_keep(a, e, whole, PART, &kept, NULL), SHERD_OK);
    for (size_t first = 0; first + ROWS <= 3 * ROWS; first += PART) {
        sherd__batch batch = net_batch(p, ROWS / PART * PART), same;
        batch.x = sherd_view_sub(whole, first, ROWS / PART * PART, 0, size);
        same = batch;
        same.kept = kept;
        same.first = first;
        assert_true(net_cost(a, e, &batch) == net_cost(b, e, &same));
        assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b),
                            sherd__network_count(a) * sizeof(double));
    }
    sherd_multiplier_release(e.products, kept);
    sherd__network_free(a);
    sherd__network_free(b);
    sherd_multiplier_free(e.products);
}

/* All examples may be kept, and a batch may consist of some of their parts. */
static void a_batch_may_consist_of_parts_of_a_kept_operand(void **s)
{
    (void)s;
    static const size_t which[] = { 3, 11, 13 };
    for (size_t i = 0; i < 3; i++) parts_of(&net_plans[which[i]]);
}

/* A pool reads its input directly, without a product. */
static void an_input_that_no_layer_multiplies_is_not_kept(void **s)
{
    (void)s;
    const plan p = {
        { 7, 5, 1 }, { AVERAGE_POOL(2, 0), FLATTEN, DENSE(3) }, SHERD__LOSS_SQUARED, 0
    };
    sherd__network *n = net_made(&p);
    sherd__engine e = { .products = net_local(17) };
    sherd__batch batch = net_batch(&p, ROWS);
    sherd_kept *kept = (sherd_kept *)&p;
    double cost;
    assert_false(sherd__network_keeps(n));
    assert_int_equal(sherd__network_keep(n, e, batch.x, 1, &kept, NULL), SHERD_OK);
    assert_null(kept);
    assert_int_equal(sherd_multiplier_keep(&batch.kept, e.products, batch.x, NULL, NULL), SHERD_OK);
    assert_int_equal(sherd__network_learn(n, e, &batch, &cost, NULL, NULL), SHERD_ESHAPE);
    sherd_multiplier_release(e.products, batch.kept);
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

/* They are laid out on this machine, for every multiplier. */
static void windows_that_are_too_long_for_nodes_are_not_kept(void **s)
{
    (void)s;
    enum { SIDE = 1025 }; /* squared: above 2^20 */
    for (size_t side = SIDE - 1; side <= SIDE; side++) {
        const sherd__layer_spec layers[] = {
            { .kind = &sherd__layer_conv2d, .units = 1, .window = side },
            { .kind = &sherd__layer_flatten },
        };
        sherd__network_spec spec = { .in = { side, side, 1 },
                                     .layers = layers,
                                     .len = 2,
                                     .batch = 1,
                                     .loss = SHERD__LOSS_SQUARED };
        sherd__network *n;
        assert_int_equal(sherd__network_new(&spec, &n, NULL), SHERD_OK);
        assert_int_equal(sherd__network_keeps(n), side < SIDE);
        sherd__network_free(n);
    }
}

/* Counts products and kept operands of another multiplier; call number fail_at fails. */
typedef struct counted {
    sherd_multiplier inner;
    unsigned kept, held, products, of_kept, calls, fail_at;
    size_t numbers; /* numbers that were kept */
    bool full;      /* nothing can be kept */
} counted;

static int counted_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                            sherd_diag *d)
{
    counted *m = ctx;
    m->products++;
    return ++m->calls == m->fail_at ? SHERD_EWRONG
                                    : sherd_multiplier_multiply(m->inner, a, b, c, ldc, d);
}

static int counted_keep(void *ctx, sherd_view a, const sherd_keep_options *how, sherd_kept **kept,
                        sherd_diag *d)
{
    counted *m = ctx;
    if (++m->calls == m->fail_at) return SHERD_EWRONG;
    if (m->full) return SHERD_EFEWNODES;
    m->kept++;
    m->held++;
    m->numbers += a.rows * a.cols;
    return sherd_multiplier_keep(kept, m->inner, a, how, d);
}

static int counted_rows(void *ctx, sherd_kept *kept, sherd_rows rows, bool transposed, sherd_view b,
                        double *c, size_t ldc, sherd_diag *d)
{
    counted *m = ctx;
    m->of_kept++;
    if (++m->calls == m->fail_at) return SHERD_EWRONG;
    return sherd_multiplier_multiply_rows(m->inner, kept, rows, transposed, b, c, ldc, d);
}

static counted *counted_now;

static void counted_shape(const sherd_kept *kept, size_t *rows, size_t *cols, size_t *part)
{
    counted_now->inner.ops->kept_shape(kept, rows, cols, part);
}

static void counted_release(void *ctx, sherd_kept *kept)
{
    counted *m = ctx;
    m->held--;
    sherd_multiplier_release(m->inner, kept);
}

static const sherd_multiplier_ops counted_ops = {
    .abi = SHERD_MULTIPLIER_ABI,
    .name = "counted",
    .multiply = counted_multiply,
    .keep = counted_keep,
    .multiply_kept = counted_rows,
    .kept_shape = counted_shape,
    .release = counted_release,
};

/* Counts layers with parameters: all; those whose input can be kept; those of them that are
 * convolutions; and those for which the gradient of an image can be a product of windows. */
static void count_layers(const sherd__network *n, size_t *all, size_t *keep, size_t *convs,
                         size_t *images)
{
    *all = *keep = *convs = *images = 0;
    for (size_t k = 0; k < sherd__network_len(n); k++) {
        const sherd__layer *l = sherd__network_layer(n, k);
        sherd__windows w = sherd__layer_windows(l);
        bool conv = w.count > 0, covers = !conv || sherd__windows_cover(&w);
        if (l->cols == 0) continue;
        *images += *all > 0 && conv && l->spec.stride <= 1;
        ++*all;
        *keep += covers;
        *convs += conv && covers;
    }
}

/* In the third case the largest sum is not known, and the gradient of an image is a product of
 * windows. */
static void inputs_are_kept_for_the_backward_pass_and_no_longer(void **s)
{
    (void)s;
    for (size_t k = 0; k < 3 * NET_PLANS; k++) {
        size_t i = k / 3, most = (size_t[]){ (size_t)1 << 21, 1, 0 }[k % 3];
        sherd__network *a = net_made(&net_plans[i]), *b = net_made(&net_plans[i]);
        counted m = { .inner = net_local(17) };
        sherd__engine here = { .products = m.inner };
        sherd__engine e = { { &counted_ops, &m }, .keeps = true, .whole = most };
        sherd__batch batch = net_batch(&net_plans[i], ROWS);
        size_t bytes = sherd__network_count(a) * sizeof(double), layers, keep, convs, images;
        double cost = 7;
        const double *y;
        count_layers(a, &layers, &keep, &convs, &images);
        if (most < 2) images = 0;
        counted_now = &m;
        assert_true(net_cost(a, here, &batch) == net_cost(b, e, &batch));
        assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b), bytes);
        assert_int_equal(m.kept, keep + images);
        assert_int_equal(m.of_kept, 2 * keep + images);
        assert_int_equal(m.products, 2 * (layers - keep) + (layers ? layers - 1 : 0) - images);
        assert_int_equal(m.held, 0);
        unsigned all = m.calls;
        for (m.fail_at = 1; m.fail_at <= all; m.fail_at++) {
            m.calls = 0;
            assert_int_equal(sherd__network_learn(b, e, &batch, &cost, NULL, NULL), SHERD_EWRONG);
            assert_int_equal(m.held, 0);
        }
        m.kept = m.fail_at = 0;
        assert_int_equal(sherd__network_forward(b, e, &batch, false, &y, NULL), SHERD_OK);
        assert_int_equal(m.kept, convs); /* without a backward pass, only inputs of convolutions are
                                          * kept, for their windows */
        assert_int_equal(m.held, 0);
        m.full = true;
        assert_true(net_cost(a, here, &batch) == net_cost(b, e, &batch));
        sherd__network_free(a);
        sherd__network_free(b);
        sherd_multiplier_free(m.inner);
    }
}

/* What one pass has learnt of its numbers does not affect the next pass, with larger numbers. */
static void local_fixed_point_has_the_bits_of_any_multiplier(void **s)
{
    (void)s;
    for (size_t k = 0; k < 3 * NET_PLANS; k++) {
        const plan *p = &net_plans[k / 3];
        sherd__network *a = net_made(p), *b = net_made(p);
        counted m = { .inner = net_local((unsigned[]){ 9, 17, 38 }[k % 3]) };
        sherd__engine here = { .products = m.inner }, there = { .products = { &counted_ops, &m } };
        double x[ROWS * IN_MAX];
        for (int batches = 0; batches < 3; batches++) {
            sherd__batch batch = net_batch(p, ROWS);
            for (size_t i = 0; i < ROWS * IN_MAX; i++) x[i] = ldexp(net_inputs[i], 3 * batches - 3);
            x[5] *= 8; /* the last plan does not read this pixel */
            batch.x.data = x;
            assert_true(net_cost(a, here, &batch) == net_cost(b, there, &batch));
            assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b),
                                sherd__network_count(a) * sizeof(double));
        }
        sherd__network_free(a);
        sherd__network_free(b);
        sherd_multiplier_free(m.inner);
    }
}

static void a_failing_product_ends_the_pass(void **s)
{
    (void)s;
    sherd__engine e = { .products = { &net_plain, NULL } };
    sherd__network *n = net_made(&net_plans[11]);
    sherd__batch batch = net_batch(&net_plans[11], ROWS);
    sherd__optimiser_spec how = { .method = SHERD__SGD };
    sherd__optimiser o;
    size_t count = sherd__network_count(n);
    double before[COUNT_MAX];
    unsigned at_most = 3 + 5;
    assert_int_equal(sherd__optimiser_init(&o, &how, count, NULL), SHERD_OK);
    sherd__network_get(n, before);
    for (net_plain_seen.fail_at = 1; net_plain_seen.fail_at <= at_most; net_plain_seen.fail_at++) {
        double cost = 42;
        net_plain_seen.products = 0;
        assert_int_equal(sherd__network_learn(n, e, &batch, &cost, NULL, NULL), SHERD_EFEWNODES);
        assert_int_equal(net_plain_seen.products, net_plain_seen.fail_at);
        assert_true(cost == 42);
        net_plain_seen.products = 0;
        sherd__learnt got = { .cost = 43 };
        assert_int_equal(sherd__network_step(n, e, &batch,
                                             &(sherd__network_update){ &o, 0.1, true }, &got, NULL),
                         SHERD_EFEWNODES);
        assert_memory_equal(sherd__network_params(n), before, count * sizeof *before);
        assert_true(o.steps == 0 && got.cost == 43);
    }
    sherd__optimiser_fini(&o);
    net_plain_seen.products = 0;
    net_cost(n, e, &batch);
    assert_int_equal(net_plain_seen.products, at_most);
    net_plain_seen.fail_at = 0;
    sherd__network_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_wise_steps_by_the_multiplier_give_the_same_bits),
        cmocka_unit_test(a_pass_allocates_nothing_and_only_multiplies),
        cmocka_unit_test(input_may_be_kept_or_given_as_any_view),
        cmocka_unit_test(a_batch_may_consist_of_parts_of_a_kept_operand),
        cmocka_unit_test(an_input_that_no_layer_multiplies_is_not_kept),
        cmocka_unit_test(windows_that_are_too_long_for_nodes_are_not_kept),
        cmocka_unit_test(inputs_are_kept_for_the_backward_pass_and_no_longer),
        cmocka_unit_test(local_fixed_point_has_the_bits_of_any_multiplier),
        cmocka_unit_test(a_failing_product_ends_the_pass),
    };
    return cmocka_run_group_tests(tests, net_fill_inputs, NULL);
}
