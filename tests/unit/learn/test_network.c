/*
 * Layers and networks: every gradient against central differences of the cost, at odd sizes; each
 * layer stands above one with parameters, so that what it hands down is tested too.
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

#define LAYERS_MAX 8
#define ROWS 3u
#define IN_MAX 128u

static double inputs[ROWS * IN_MAX];
static const double wanted[ROWS * 4] = { 0.3, -0.2, 0.9, 0, 1.1, 0.4, -0.7, 0.2, 0, 0.5, 0.6, -1 };
static const uint32_t labels[ROWS] = { 2, 0, 1 };

static int fill_inputs(void **s)
{
    (void)s;
    for (size_t i = 0; i < ROWS * IN_MAX; i++) inputs[i] = sin(7.0 * (double)i + 1.0);
    return 0;
}

/* ---- a multiplier that allocates nothing and counts ------------------------------------------ */

static struct {
    unsigned products, maps, fail_at; /* fail_at: the product that fails, from 1; 0 none */
} plain_seen;

static double at(sherd_view v, size_t r, size_t c)
{
    return ((const double *)v.data)[(ptrdiff_t)r * v.row_stride + (ptrdiff_t)c * v.col_stride];
}

static int plain_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                          sherd_diag *d)
{
    (void)ctx;
    (void)d;
    if (++plain_seen.products == plain_seen.fail_at) return SHERD_EFEWNODES;
    for (size_t i = 0; i < a.rows; i++)
        for (size_t j = 0; j < b.cols; j++) {
            double sum = 0;
            for (size_t k = 0; k < a.cols; k++) sum += at(a, i, k) * at(b, k, j);
            c[i * ldc + j] = sum;
        }
    return SHERD_OK;
}

static int plain_map(void *ctx, sherd_op op, sherd_view a, const sherd_view *b, double *out,
                     size_t ld, sherd_diag *d)
{
    sherd_multiplier *local = ctx;
    plain_seen.maps++;
    return sherd_multiplier_map(*local, op, a, b, out, ld, d);
}

static const sherd_multiplier_ops plain_ops = {
    .abi = SHERD_MULTIPLIER_ABI, .name = "loops", .multiply = plain_multiply, .map = plain_map,
};

static sherd_multiplier local_new(unsigned bits)
{
    sherd_multiplier m;
    assert_int_equal(sherd_multiplier_local(bits, &m, NULL), SHERD_OK);
    return m;
}

/* ---- networks -------------------------------------------------------------------------------- */

typedef struct plan {
    sherd__form in;
    sherd__layer_spec layers[LAYERS_MAX];
    sherd__loss loss;
    double l2;
} plan;

static size_t plan_len(const plan *p)
{
    size_t len = 0;
    while (len < LAYERS_MAX && p->layers[len].kind != NULL) len++;
    return len;
}

static sherd__network_spec spec_of(const plan *p)
{
    return (sherd__network_spec){ .in = p->in, .layers = p->layers, .len = plan_len(p),
                                  .batch = ROWS, .loss = p->loss, .l2 = p->l2 };
}

static sherd__network *made(const plan *p)
{
    sherd__network *n;
    sherd__network_spec spec = spec_of(p);
    sherd_diag d = { 0 };
    sherd_entropy_seeded state;
    sherd_entropy e = sherd__entropy_seeded(&state, 5);
    if (sherd__network_new(&spec, &n, &d) != SHERD_OK) fail_msg("%s", d.message);
    sherd__network_draw(n, &e, 0.7);
    for (size_t i = 0; i < sherd__network_len(n); i++) { /* biases must count */
        const sherd__layer *l = sherd__network_layer(n, i);
        for (size_t k = 0; k < l->cols; k++) l->biases[k] = 0.1 * (double)k - 0.15;
    }
    return n;
}

static sherd__batch batch_of(const plan *p, size_t rows)
{
    size_t size = p->in.height * p->in.width * p->in.channels;
    sherd__batch b = { .x = sherd_view_c(inputs, SHERD_F64, rows, size) };
    if (p->loss == SHERD__LOSS_CROSS_ENTROPY)
        b.targets.labels = labels;
    else
        b.targets.values = wanted;
    return b;
}

static double cost_of(sherd__network *n, sherd__engine e, const sherd__batch *b)
{
    double cost = NAN;
    sherd_diag d = { 0 };
    if (sherd__network_learn(n, e, b, &cost, NULL, &d) != SHERD_OK) fail_msg("%s", d.message);
    return cost;
}

#define COUNT_MAX 2000

static void check_gradients(const plan *p, ptrdiff_t number, size_t rows)
{
    static double got[COUNT_MAX];
    sherd__network *n = made(p);
    sherd__engine e = { .products = local_new(0) };
    sherd__batch b = batch_of(p, rows);
    double *w = sherd__network_params(n), most = 0;
    size_t count = sherd__network_count(n);
    assert_in_range(count, 1, COUNT_MAX);
    assert_true(sherd__network_width(n) <= 4);
    cost_of(n, e, &b);
    memcpy(got, sherd__network_gradient(n), count * sizeof *got);
    for (size_t k = 0; k < count; k++) {
        const double h = 1e-5, was = w[k];
        w[k] = was + h;
        double up = cost_of(n, e, &b);
        w[k] = was - h;
        double want = (up - cost_of(n, e, &b)) / (2 * h);
        w[k] = was;
        if (!(fabs(got[k] - want) <= 1e-6 * (1 + fabs(want))))
            fail_msg("plan %td, parameter %zu: gradient %.12g, difference %.12g", number, k,
                     got[k], want);
        most = fmax(most, fabs(want));
    }
    assert_true(most > 1e-3); /* a flat cost would prove nothing */
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

#define DENSE(n) { .kind = &sherd__layer_dense, .units = (n) }
#define RELU { .kind = &sherd__layer_relu }
#define SIGMOID { .kind = &sherd__layer_sigmoid }
#define TANH { .kind = &sherd__layer_tanh }
#define SOFTMAX { .kind = &sherd__layer_softmax }
#define FLATTEN { .kind = &sherd__layer_flatten }
#define CONV(n, w, s, p) \
    { .kind = &sherd__layer_conv2d, .units = (n), .window = (w), .stride = (s), .padding = (p) }
#define MAX_POOL(w, s) { .kind = &sherd__layer_max_pool, .window = (w), .stride = (s) }
#define AVERAGE_POOL(w, s) { .kind = &sherd__layer_average_pool, .window = (w), .stride = (s) }

static const plan plans[] = {
    { { 1, 1, 5 }, { DENSE(3) }, SHERD__LOSS_SQUARED, 0 },
    { { 1, 1, 5 }, { DENSE(3) }, SHERD__LOSS_CROSS_ENTROPY, 0.3 },
    { { 1, 1, 1 }, { DENSE(1), DENSE(1) }, SHERD__LOSS_SQUARED, 0.1 },
    { { 1, 1, 7 }, { DENSE(5), RELU, DENSE(3) }, SHERD__LOSS_CROSS_ENTROPY, 0 },
    { { 1, 1, 7 }, { DENSE(5), SIGMOID, DENSE(3), SIGMOID }, SHERD__LOSS_SQUARED, 0 },
    { { 1, 1, 7 }, { DENSE(5), TANH, DENSE(3), TANH }, SHERD__LOSS_SQUARED, 0 },
    { { 1, 1, 7 }, { DENSE(5), SOFTMAX, DENSE(3), SOFTMAX }, SHERD__LOSS_SQUARED, 0 },
    /* activations upon each other, and upon the input: nobody's input may be overwritten */
    { { 1, 1, 7 }, { DENSE(5), TANH, RELU, SIGMOID, DENSE(3), FLATTEN, SOFTMAX, TANH },
      SHERD__LOSS_SQUARED, 0 },
    { { 1, 7, 1 }, { FLATTEN, SIGMOID, TANH, FLATTEN, DENSE(3) }, SHERD__LOSS_SQUARED, 0 },
    { { 7, 1, 1 }, { FLATTEN, DENSE(3) }, SHERD__LOSS_SQUARED, 0 },
    { { 5, 7, 2 }, { CONV(3, 3, 0, 0), FLATTEN, DENSE(3) }, SHERD__LOSS_CROSS_ENTROPY, 0.01 },
    { { 5, 7, 2 }, { CONV(3, 3, 0, 1), RELU, CONV(2, 3, 2, 2), TANH, FLATTEN, DENSE(3) },
      SHERD__LOSS_SQUARED, 0 },
    { { 5, 5, 1 }, { CONV(2, 1, 3, 0), CONV(4, 2, 0, 0) }, SHERD__LOSS_SQUARED, 0 },
    { { 7, 5, 1 }, { CONV(3, 2, 0, 0), AVERAGE_POOL(2, 0), RELU, FLATTEN, DENSE(3) },
      SHERD__LOSS_CROSS_ENTROPY, 0 },
    { { 7, 5, 1 }, { CONV(3, 2, 0, 0), TANH, AVERAGE_POOL(3, 1), FLATTEN, DENSE(3) },
      SHERD__LOSS_SQUARED, 0 },
    { { 7, 5, 1 }, { CONV(3, 2, 0, 0), MAX_POOL(2, 0), SIGMOID, FLATTEN, DENSE(3) },
      SHERD__LOSS_CROSS_ENTROPY, 0 },
    { { 7, 5, 1 }, { CONV(3, 2, 0, 0), SIGMOID, MAX_POOL(3, 1), FLATTEN, DENSE(3) },
      SHERD__LOSS_SQUARED, 0 },
    { { 5, 7, 2 }, { CONV(3, 3, 0, 1), TANH, CONV(2, 3, 0, 1), RELU, CONV(2, 2, 1, 0), FLATTEN,
                     DENSE(3) }, SHERD__LOSS_SQUARED, 0 },
    /* most pixels lie in no window */
    { { 6, 4, 1 }, { CONV(2, 1, 0, 0), CONV(3, 1, 3, 0), FLATTEN, DENSE(3) },
      SHERD__LOSS_CROSS_ENTROPY, 0 },
};
#define PLANS (sizeof plans / sizeof *plans)

static void every_gradient_is_that_of_the_cost(void **s)
{
    (void)s;
    for (size_t i = 0; i < PLANS; i++) {
        check_gradients(&plans[i], (ptrdiff_t)i, ROWS);
        check_gradients(&plans[i], (ptrdiff_t)i, 1);
    }
}

/* ---- who computes ---------------------------------------------------------------------------- */

static void element_wise_steps_by_the_multiplier_give_the_same_bits(void **s)
{
    (void)s;
    sherd_multiplier local = local_new(0);
    for (size_t i = 0; i < PLANS; i++) {
        sherd__network *a = made(&plans[i]), *b = made(&plans[i]);
        sherd__batch batch = batch_of(&plans[i], ROWS);
        size_t bytes = sherd__network_count(a) * sizeof(double);
        sherd__engine here = { .products = { &plain_ops, &local } }, there = here;
        there.maps = true;
        plain_seen.maps = 0;
        double cost = cost_of(a, here, &batch);
        assert_int_equal(plain_seen.maps, 0);
        assert_true(cost == cost_of(b, there, &batch));
        assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b), bytes);
        if (i == 4) assert_int_equal(plain_seen.maps, 2 + 2 * 3);
        sherd__network_free(a);
        sherd__network_free(b);
    }
    sherd_multiplier_free(local);
}

static void a_pass_allocates_nothing_and_only_multiplies(void **s)
{
    (void)s;
    sherd_multiplier local = local_new(0);
    sherd__engine e = { .products = { &plain_ops, &local } };
    for (size_t i = 0; i < PLANS; i++) {
        sherd__network *n = made(&plans[i]);
        sherd__batch batch = batch_of(&plans[i], ROWS);
        sherd__alloc_fail_nth(0);
        plain_seen.products = 0;
        cost_of(n, e, &batch);
        assert_int_equal(sherd__alloc_fail_nth(0), 0);
        if (i == 3) assert_int_equal(plain_seen.products, 2 + 3); /* no dx for the first layer */
        sherd__network_free(n);
    }
    sherd_multiplier_free(local);
}

static void input_may_be_kept_or_come_as_any_view(void **s)
{
    (void)s;
    static const size_t which[] = { 3, 8, 9, 10 };
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        const plan *p = &plans[which[i]];
        size_t size = p->in.height * p->in.width * p->in.channels;
        uint8_t bytes[ROWS * IN_MAX];
        double whole[ROWS * IN_MAX];
        for (size_t k = 0; k < ROWS * size; k++) {
            bytes[(k % size) * ROWS + k / size] = (uint8_t)(k * 37 % 5); /* transposed */
            whole[k] = (double)(k * 37 % 5);
        }
        sherd__network *a = made(p), *b = made(p);
        sherd__engine e = { .products = local_new(17) };
        sherd__batch batch = batch_of(p, ROWS), other = batch;
        batch.x = sherd_view_c(whole, SHERD_F64, ROWS, size);
        other.x = sherd_view_t(sherd_view_c(bytes, SHERD_U8, size, ROWS));
        double cost = cost_of(a, e, &batch);
        size_t len = sherd__network_count(a) * sizeof(double);
        assert_true(cost == cost_of(b, e, &other));
        assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b), len);
        assert_int_equal(sherd__network_keep(b, e, batch.x, ROWS, &other.kept, NULL), SHERD_OK);
        assert_int_equal(sherd__network_keeps(b), i != 1); /* sigmoids take nothing */
        assert_int_equal(other.kept != NULL, i != 1);
        assert_true(cost == cost_of(b, e, &other));
        assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b), len);
        other.first = 1; /* more than is kept behind it */
        sherd_diag d = { 0 };
        if (other.kept != NULL)
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
    sherd__network *a = made(p), *b = made(p);
    sherd__engine e = { .products = local_new(17) };
    sherd_kept *kept;
    sherd_view whole = sherd_view_c(all, SHERD_U8, 3 * ROWS, size);
    assert_int_equal(sherd__network_keep(a, e, whole, PART, &kept, NULL), SHERD_OK);
    for (size_t first = 0; first + ROWS <= 3 * ROWS; first += PART) {
        sherd__batch batch = batch_of(p, ROWS / PART * PART), same;
        batch.x = sherd_view_sub(whole, first, ROWS / PART * PART, 0, size);
        same = batch;
        same.kept = kept;
        same.first = first;
        assert_true(cost_of(a, e, &batch) == cost_of(b, e, &same));
        assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b),
                            sherd__network_count(a) * sizeof(double));
    }
    sherd_multiplier_release(e.products, kept);
    sherd__network_free(a);
    sherd__network_free(b);
    sherd_multiplier_free(e.products);
}

/* What is kept may be all examples, of which a batch is some parts. */
static void a_batch_may_be_parts_of_what_is_kept(void **s)
{
    (void)s;
    static const size_t which[] = { 3, 11, 13 };
    for (size_t i = 0; i < 3; i++) parts_of(&plans[which[i]]);
}

/* A pool takes its input from nobody. */
static void what_no_layer_takes_is_not_kept(void **s)
{
    (void)s;
    const plan p = { { 7, 5, 1 }, { AVERAGE_POOL(2, 0), FLATTEN, DENSE(3) }, SHERD__LOSS_SQUARED,
                     0 };
    sherd__network *n = made(&p);
    sherd__engine e = { .products = local_new(17) };
    sherd__batch batch = batch_of(&p, ROWS);
    sherd_kept *kept = (sherd_kept *)&p;
    double cost;
    assert_false(sherd__network_keeps(n));
    assert_int_equal(sherd__network_keep(n, e, batch.x, 1, &kept, NULL), SHERD_OK);
    assert_null(kept);
    assert_int_equal(sherd_multiplier_keep(e.products, batch.x, &batch.kept, NULL), SHERD_OK);
    assert_int_equal(sherd__network_learn(n, e, &batch, &cost, NULL, NULL), SHERD_ESHAPE);
    sherd_multiplier_release(e.products, batch.kept);
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

/* They are laid out here, whoever multiplies. */
static void windows_too_long_for_nodes_are_not_kept(void **s)
{
    (void)s;
    enum { SIDE = 1025 }; /* squared: above 2^20 */
    for (size_t side = SIDE - 1; side <= SIDE; side++) {
        const sherd__layer_spec layers[] = {
            { .kind = &sherd__layer_conv2d, .units = 1, .window = side },
            { .kind = &sherd__layer_flatten },
        };
        sherd__network_spec spec = { .in = { side, side, 1 }, .layers = layers, .len = 2,
                                     .batch = 1, .loss = SHERD__LOSS_SQUARED };
        sherd__network *n;
        assert_int_equal(sherd__network_new(&spec, &n, NULL), SHERD_OK);
        assert_int_equal(sherd__network_keeps(n), side < SIDE);
        sherd__network_free(n);
    }
}

/* Products and kept operands of another multiplier, counted; call number fail_at fails. */
typedef struct counted {
    sherd_multiplier inner;
    unsigned kept, held, products, of_kept, calls, fail_at;
    size_t numbers; /* that were kept */
    bool full; /* nothing can be kept */
} counted;

static int counted_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                            sherd_diag *d)
{
    counted *m = ctx;
    m->products++;
    return ++m->calls == m->fail_at ? SHERD_EWRONG
                                    : sherd_multiplier_multiply(m->inner, a, b, c, ldc, d);
}

static int counted_keep(void *ctx, sherd_view a, const sherd_keeping *how, sherd_kept **kept,
                        sherd_diag *d)
{
    counted *m = ctx;
    if (++m->calls == m->fail_at) return SHERD_EWRONG;
    if (m->full) return SHERD_EFEWNODES;
    m->kept++;
    m->held++;
    m->numbers += a.rows * a.cols;
    return sherd_multiplier_keep_as(m->inner, a, how, kept, d);
}

static int counted_rows(void *ctx, sherd_kept *kept, sherd_rows rows, bool transposed,
                        sherd_view b, double *c, size_t ldc, sherd_diag *d)
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
    .abi = SHERD_MULTIPLIER_ABI, .name = "counted", .multiply = counted_multiply,
    .keep = counted_keep, .multiply_kept = counted_rows, .kept_shape = counted_shape,
    .release = counted_release,
};

/* Of layers with parameters: those whose input can be kept, those of them that are convolutions,
 * and those whose image's gradient can be a product of windows. */
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

/* The third time nothing is said of how large sums may be, and an image's gradient is windows. */
static void inputs_stay_for_the_way_back_and_no_longer(void **s)
{
    (void)s;
    for (size_t k = 0; k < 3 * PLANS; k++) {
        size_t i = k / 3, most = (size_t[]){ (size_t)1 << 21, 1, 0 }[k % 3];
        sherd__network *a = made(&plans[i]), *b = made(&plans[i]);
        counted m = { .inner = local_new(17) };
        sherd__engine here = { .products = m.inner };
        sherd__engine e = { { &counted_ops, &m }, .keeps = true, .whole = most };
        sherd__batch batch = batch_of(&plans[i], ROWS);
        size_t bytes = sherd__network_count(a) * sizeof(double), layers, keep, convs, images;
        double cost = 7;
        const double *y;
        count_layers(a, &layers, &keep, &convs, &images);
        if (most < 2) images = 0;
        counted_now = &m;
        assert_true(cost_of(a, here, &batch) == cost_of(b, e, &batch));
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
        assert_int_equal(m.kept, convs); /* nothing comes back: for their windows alone */
        assert_int_equal(m.held, 0);
        m.full = true;
        assert_true(cost_of(a, here, &batch) == cost_of(b, e, &batch));
        sherd__network_free(a);
        sherd__network_free(b);
        sherd_multiplier_free(m.inner);
    }
}

/* What a pass finds out of its numbers on the way is nothing to the next, of larger ones. */
static void fixed_point_here_has_the_bits_of_any_multiplier(void **s)
{
    (void)s;
    for (size_t k = 0; k < 3 * PLANS; k++) {
        const plan *p = &plans[k / 3];
        sherd__network *a = made(p), *b = made(p);
        counted m = { .inner = local_new((unsigned[]){ 9, 17, 38 }[k % 3]) };
        sherd__engine here = { .products = m.inner }, there = { .products = { &counted_ops, &m } };
        double x[ROWS * IN_MAX];
        for (int batches = 0; batches < 3; batches++) {
            sherd__batch batch = batch_of(p, ROWS);
            for (size_t i = 0; i < ROWS * IN_MAX; i++) x[i] = ldexp(inputs[i], 3 * batches - 3);
            x[5] *= 8; /* where the last plan does not look */
            batch.x.data = x;
            assert_true(cost_of(a, here, &batch) == cost_of(b, there, &batch));
            assert_memory_equal(sherd__network_gradient(a), sherd__network_gradient(b),
                                sherd__network_count(a) * sizeof(double));
        }
        sherd__network_free(a);
        sherd__network_free(b);
        sherd_multiplier_free(m.inner);
    }
}

static void a_product_that_fails_ends_the_pass(void **s)
{
    (void)s;
    sherd__engine e = { .products = { &plain_ops, NULL } };
    sherd__network *n = made(&plans[11]);
    sherd__batch batch = batch_of(&plans[11], ROWS);
    sherd__optimiser_spec how = { .method = SHERD__SGD };
    sherd__optimiser o;
    size_t count = sherd__network_count(n);
    double before[COUNT_MAX];
    unsigned at_most = 3 + 5;
    assert_int_equal(sherd__optimiser_init(&o, &how, count, NULL), SHERD_OK);
    sherd__network_get(n, before);
    for (plain_seen.fail_at = 1; plain_seen.fail_at <= at_most; plain_seen.fail_at++) {
        double cost = 42;
        plain_seen.products = 0;
        assert_int_equal(sherd__network_learn(n, e, &batch, &cost, NULL, NULL), SHERD_EFEWNODES);
        assert_int_equal(plain_seen.products, plain_seen.fail_at);
        assert_true(cost == 42);
        plain_seen.products = 0;
        assert_int_equal(sherd__network_step(n, e, &batch, &o, 0.1, true, &cost, NULL, NULL),
                         SHERD_EFEWNODES);
        assert_memory_equal(sherd__network_params(n), before, count * sizeof *before);
        assert_true(o.steps == 0 && cost == 42);
    }
    sherd__optimiser_fini(&o);
    plain_seen.products = 0;
    cost_of(n, e, &batch);
    assert_int_equal(plain_seen.products, at_most);
    plain_seen.fail_at = 0;
    sherd__network_free(n);
}

/* ---- passes ---------------------------------------------------------------------------------- */

static struct {
    sherd__network *n;
    char seen[32];
    size_t fail_backward;
} hooked = { .fail_backward = 99 };

static void note(char c)
{
    size_t len = strlen(hooked.seen);
    assert_true(len + 1 < sizeof hooked.seen);
    hooked.seen[len] = c;
    hooked.seen[len + 1] = 0;
}

static int saw_forward(void *ctx, size_t layer, sherd_diag *d)
{
    (void)d;
    assert_ptr_equal(ctx, &hooked);
    note((char)('0' + layer));
    return SHERD_OK;
}

static int saw_backward(void *ctx, size_t layer, sherd_diag *d)
{
    (void)ctx;
    (void)d;
    const sherd__layer *l = sherd__network_layer(hooked.n, layer);
    assert_true(l->biases_gradient[0] != 0);
    for (size_t i = 0; i < layer; i++) { /* nothing below has begun */
        const sherd__layer *below = sherd__network_layer(hooked.n, i);
        if (below->cols > 0) assert_true(below->biases_gradient[0] == 0);
    }
    note((char)('a' + layer));
    return layer == hooked.fail_backward ? SHERD_ECLOSED : SHERD_OK;
}

static void hooks_see_gradients_of_the_top_before_those_below(void **s)
{
    (void)s;
    const sherd__network_hooks hooks = { saw_forward, saw_backward, &hooked };
    const plan *p = &plans[11];
    sherd__engine e = { .products = local_new(0) };
    sherd__batch batch = batch_of(p, ROWS);
    double cost;
    hooked.n = made(p);
    sherd__network_hook(hooked.n, &hooks);
    cost_of(hooked.n, e, &batch);
    assert_string_equal(hooked.seen, "025fca");
    sherd__network_free(hooked.n);
    hooked.n = made(p);
    sherd__network_hook(hooked.n, &hooks);
    hooked.seen[0] = 0;
    hooked.fail_backward = 2;
    assert_int_equal(sherd__network_learn(hooked.n, e, &batch, &cost, NULL, NULL), SHERD_ECLOSED);
    assert_string_equal(hooked.seen, "025fc");
    sherd__network_free(hooked.n);
    sherd_multiplier_free(e.products);
}

static void outputs_may_leave_biases_out(void **s)
{
    (void)s;
    const plan *p = &plans[0];
    const double *y;
    double with[ROWS * 3];
    sherd__network *n = made(p);
    sherd__engine e = { .products = local_new(0) };
    sherd__batch batch = batch_of(p, ROWS);
    assert_int_equal(sherd__network_forward(n, e, &batch, false, &y, NULL), SHERD_OK);
    memcpy(with, y, sizeof with);
    assert_int_equal(sherd__network_forward(n, e, &batch, true, &y, NULL), SHERD_OK);
    for (size_t k = 0; k < ROWS * 3; k++)
        assert_true(fabs(with[k] - y[k] - (0.1 * (double)(k % 3) - 0.15)) < 1e-15);
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

static void the_published_bias_gradient_is_one_sum_for_all(void **s)
{
    (void)s;
    const plan *p = &plans[4];
    sherd__network_spec spec = spec_of(p);
    sherd__network *right = made(p), *total;
    sherd__engine e = { .products = local_new(0) };
    sherd__batch batch = batch_of(p, ROWS);
    size_t count = sherd__network_count(right);
    spec.bias_total = true;
    assert_int_equal(sherd__network_new(&spec, &total, NULL), SHERD_OK);
    memcpy(sherd__network_params(total), sherd__network_params(right), count * sizeof(double));
    assert_true(cost_of(right, e, &batch) == cost_of(total, e, &batch));
    for (size_t i = 0; i < 4; i += 2) {
        const sherd__layer *l = sherd__network_layer(right, i), *q = sherd__network_layer(total, i);
        double sum = 0;
        for (size_t k = 0; k < l->cols; k++) sum += l->biases_gradient[k];
        for (size_t k = 0; k < l->cols; k++) assert_true(q->biases_gradient[k] == sum);
        assert_memory_equal(l->weights_gradient, q->weights_gradient,
                            l->rows * l->cols * sizeof(double));
    }
    sherd__network_free(right);
    sherd__network_free(total);
    sherd_multiplier_free(e.products);
}

static void a_small_batch_equals_a_network_made_for_it(void **s)
{
    (void)s;
    const plan *p = &plans[11];
    sherd__network_spec spec = spec_of(p);
    sherd__network *large = made(p), *small;
    sherd__engine e = { .products = local_new(20) };
    sherd__batch batch = batch_of(p, ROWS);
    size_t len = sherd__network_count(large) * sizeof(double);
    spec.batch = 2;
    assert_int_equal(sherd__network_new(&spec, &small, NULL), SHERD_OK);
    memcpy(sherd__network_params(small), sherd__network_params(large), len);
    cost_of(large, e, &batch); /* leaves something in every buffer */
    batch.x.rows = 2;
    assert_true(cost_of(large, e, &batch) == cost_of(small, e, &batch));
    assert_memory_equal(sherd__network_gradient(large), sherd__network_gradient(small), len);
    sherd__network_free(large);
    sherd__network_free(small);
    sherd_multiplier_free(e.products);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void softmax_and_sigmoid_stand_large_inputs(void **s)
{
    (void)s;
    const plan soft = { { 1, 1, 3 }, { SOFTMAX }, SHERD__LOSS_SQUARED, 0 };
    const plan sig = { { 1, 1, 3 }, { SIGMOID }, SHERD__LOSS_SQUARED, 0 };
    static const double x[6] = { 1e4, 1e4, -1e4, -800, 0, 800 };
    const double *y;
    sherd__engine e = { .products = local_new(0) };
    sherd__batch batch = { .x = sherd_view_c(x, SHERD_F64, 2, 3) };
    sherd__network *n = made(&soft);
    assert_int_equal(sherd__network_forward(n, e, &batch, false, &y, NULL), SHERD_OK);
    assert_true(y[0] == 0.5 && y[1] == 0.5 && y[2] == 0 && y[5] == 1);
    sherd__network_free(n);
    n = made(&sig);
    assert_int_equal(sherd__network_forward(n, e, &batch, false, &y, NULL), SHERD_OK);
    assert_true(y[0] == 1 && y[2] == 0 && y[3] < 1e-300 && y[4] == 0.5 && y[5] == 1);
    assert_true(x[0] == 1e4 && x[5] == 800); /* the caller's input is the caller's */
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

/* Pixel (y, x) of an example with its padding. */
static double padded(const plan *p, size_t row, size_t y, size_t x, size_t c, size_t padding)
{
    const sherd__form in = p->in;
    if (y < padding || x < padding || y - padding >= in.height || x - padding >= in.width) return 0;
    return inputs[((row * in.height + y - padding) * in.width + x - padding) * in.channels + c];
}

/* Output (row, y, x, u) by loops over its window. */
static double by_loops(const plan *p, const sherd__layer *l, size_t row, size_t y, size_t x,
                       size_t u)
{
    const sherd__layer_kind *kind = l->spec.kind;
    size_t w = l->spec.window, stride = l->spec.stride, k = 0;
    double sum = kind == &sherd__layer_conv2d ? l->biases[u] : 0, most = -INFINITY;
    if (stride == 0) stride = kind == &sherd__layer_conv2d ? 1 : w;
    for (size_t wy = 0; wy < w; wy++)
        for (size_t wx = 0; wx < w; wx++)
            for (size_t c = 0; c < p->in.channels; c++, k++) {
                double v = padded(p, row, y * stride + wy, x * stride + wx, c, l->spec.padding);
                if (kind == &sherd__layer_conv2d) {
                    sum += v * l->weights[k * l->cols + u];
                } else if (c == u) {
                    sum += v / (double)(w * w);
                    most = fmax(most, v);
                }
            }
    return kind == &sherd__layer_max_pool ? most : sum;
}

static void convolutions_and_pools_equal_loops_over_their_windows(void **s)
{
    (void)s;
    static const plan cases[] = {
        { { 5, 7, 2 }, { CONV(3, 3, 0, 0) }, SHERD__LOSS_SQUARED, 0 },
        { { 5, 7, 2 }, { CONV(3, 3, 2, 1) }, SHERD__LOSS_SQUARED, 0 },
        { { 2, 3, 3 }, { CONV(2, 4, 0, 3) }, SHERD__LOSS_SQUARED, 0 }, /* windows wholly outside */
        { { 7, 6, 2 }, { CONV(5, 2, 3, 0) }, SHERD__LOSS_SQUARED, 0 },
        { { 7, 6, 2 }, { MAX_POOL(2, 0) }, SHERD__LOSS_SQUARED, 0 },
        { { 7, 6, 2 }, { MAX_POOL(3, 2) }, SHERD__LOSS_SQUARED, 0 },
        { { 7, 6, 2 }, { AVERAGE_POOL(2, 0) }, SHERD__LOSS_SQUARED, 0 },
        { { 7, 6, 2 }, { AVERAGE_POOL(4, 1) }, SHERD__LOSS_SQUARED, 0 },
    };
    static const size_t shapes[][2] = { { 3, 5 }, { 3, 4 }, { 5, 6 }, { 2, 2 },
                                        { 3, 3 }, { 3, 2 }, { 3, 3 }, { 4, 3 } };
    sherd__engine e = { .products = local_new(0) };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd__network *n = made(&cases[i]);
        const sherd__layer *l = sherd__network_layer(n, 0);
        sherd__batch batch = batch_of(&cases[i], ROWS);
        const double *y;
        assert_int_equal(l->out.height, shapes[i][0]);
        assert_int_equal(l->out.width, shapes[i][1]);
        assert_int_equal(sherd__network_forward(n, e, &batch, false, &y, NULL), SHERD_OK);
        for (size_t row = 0; row < ROWS; row++)
            for (size_t oy = 0; oy < l->out.height; oy++)
                for (size_t ox = 0; ox < l->out.width; ox++)
                    for (size_t u = 0; u < l->out.channels; u++)
                        assert_true(fabs(*y++ - by_loops(&cases[i], l, row, oy, ox, u)) < 1e-13);
        sherd__network_free(n);
    }
    sherd_multiplier_free(e.products);
}

static void drawn_weights_are_normal_and_scaled(void **s)
{
    (void)s;
    const plan p = { { 1, 1, 99 }, { DENSE(401) }, SHERD__LOSS_SQUARED, 0 };
    sherd_entropy_seeded state;
    for (int he = 0; he < 2; he++) {
        sherd__network *n = made(&p);
        const sherd__layer *l = sherd__network_layer(n, 0);
        sherd_entropy e = sherd__entropy_seeded(&state, 9);
        double sum = 0, square = 0, fourth = 0, scale = he ? sqrt(2.0 / 99) : 0.01;
        size_t count = 99 * 401;
        sherd__network_draw(n, &e, he ? 0 : 0.01);
        for (size_t k = 0; k < count; k++) {
            double w = l->weights[k] / scale;
            sum += w;
            square += w * w;
            fourth += w * w * w * w;
        }
        assert_true(fabs(sum / (double)count) < 0.025);
        assert_true(fabs(square / (double)count - 1) < 0.035);
        assert_true(fabs(fourth / (double)count - 3) < 0.25);
        for (size_t k = 0; k < 401; k++) assert_true(l->biases[k] == 0);
        sherd__network_free(n);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refuse(const plan *p, int err)
{
    sherd__network *n = (sherd__network *)1;
    sherd__network_spec spec = spec_of(p);
    sherd_diag d = { 0 };
    assert_int_equal(sherd__network_new(&spec, &n, &d), err);
    assert_null(n);
    assert_int_equal(d.code, err);
    assert_true(d.message[0] != 0);
}

static void layers_that_do_not_fit_are_refused(void **s)
{
    (void)s;
    const plan squared = { { 1, 1, 3 }, { { 0 } }, SHERD__LOSS_SQUARED, 0 };
    plan p = squared;
    refuse(&p, SHERD_EINVAL);
    p.layers[0] = (sherd__layer_spec)DENSE(0);
    refuse(&p, SHERD_EINVAL);
    p.layers[0] = (sherd__layer_spec)DENSE(SIZE_MAX / 2);
    refuse(&p, SHERD_ESHAPE);
    p.layers[0] = (sherd__layer_spec)DENSE(SIZE_MAX / 16);
    refuse(&p, SHERD_ENOMEM);
    p.layers[0] = (sherd__layer_spec)CONV(2, 3, 1, 0);
    refuse(&p, SHERD_ESHAPE);
    p.layers[0] = (sherd__layer_spec)CONV(2, 3, 1, 3);
    refuse(&p, SHERD_ESHAPE);
    p.layers[0] = (sherd__layer_spec)CONV(2, 0, 1, 0);
    refuse(&p, SHERD_EINVAL);
    p.layers[0] = (sherd__layer_spec)MAX_POOL(2, 0);
    refuse(&p, SHERD_ESHAPE);
    p.layers[0] = (sherd__layer_spec)AVERAGE_POOL(0, 1);
    refuse(&p, SHERD_EINVAL);
    p.layers[0] = (sherd__layer_spec)DENSE(2);
    p.in.width = 0;
    refuse(&p, SHERD_EINVAL);
    p.in.width = SIZE_MAX;
    refuse(&p, SHERD_EINVAL);
    p.in.width = 1;
    p.l2 = -1;
    refuse(&p, SHERD_EINVAL);
    p.l2 = NAN;
    refuse(&p, SHERD_EINVAL);
    p.l2 = 0;
    p.loss = (sherd__loss)7;
    refuse(&p, SHERD_EINVAL);
}

static void batches_that_do_not_fit_are_refused(void **s)
{
    (void)s;
    static double wide[(ROWS + 1) * 8];
    sherd__network *n = made(&plans[3]);
    sherd__engine e = { .products = local_new(0) };
    static const size_t rows[] = { 0, ROWS + 1, ROWS, ROWS }, cols[] = { 7, 7, 8, 6 };
    const double *y = NULL;
    for (size_t i = 0; i < 4; i++) {
        sherd__batch b = { .x = sherd_view_c(wide, SHERD_F64, rows[i], cols[i]) };
        sherd_diag d = { 0 };
        assert_int_equal(sherd__network_forward(n, e, &b, false, &y, &d), SHERD_ESHAPE);
        assert_null(y);
    }
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

static void a_cost_that_is_not_finite_is_divergence(void **s)
{
    (void)s;
    sherd__network *n = made(&plans[3]);
    sherd__engine e = { .products = local_new(0) };
    sherd__batch b = batch_of(&plans[3], ROWS);
    sherd_diag d = { 0 };
    double cost = 42;
    sherd__network_params(n)[sherd__network_count(n) - 1] = NAN;
    assert_int_equal(sherd__network_learn(n, e, &b, &cost, NULL, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "diverged"));
    assert_true(cost == 42);
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

static void a_network_without_memory_is_none(void **s)
{
    (void)s;
    sherd__network_spec spec = spec_of(&plans[8]);
    for (size_t i = 1;; i++) {
        sherd__network *n;
        sherd_diag d = { 0 };
        sherd__alloc_fail_nth(i);
        int err = sherd__network_new(&spec, &n, &d);
        sherd__alloc_fail_nth(0);
        if (err == SHERD_OK) {
            assert_true(i > 5);
            sherd__network_free(n);
            return;
        }
        assert_int_equal(err, SHERD_ENOMEM);
        assert_null(n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gradient_is_that_of_the_cost),
        cmocka_unit_test(element_wise_steps_by_the_multiplier_give_the_same_bits),
        cmocka_unit_test(a_pass_allocates_nothing_and_only_multiplies),
        cmocka_unit_test(input_may_be_kept_or_come_as_any_view),
        cmocka_unit_test(a_batch_may_be_parts_of_what_is_kept),
        cmocka_unit_test(what_no_layer_takes_is_not_kept),
        cmocka_unit_test(windows_too_long_for_nodes_are_not_kept),
        cmocka_unit_test(inputs_stay_for_the_way_back_and_no_longer),
        cmocka_unit_test(fixed_point_here_has_the_bits_of_any_multiplier),
        cmocka_unit_test(a_product_that_fails_ends_the_pass),
        cmocka_unit_test(hooks_see_gradients_of_the_top_before_those_below),
        cmocka_unit_test(outputs_may_leave_biases_out),
        cmocka_unit_test(the_published_bias_gradient_is_one_sum_for_all),
        cmocka_unit_test(a_small_batch_equals_a_network_made_for_it),
        cmocka_unit_test(softmax_and_sigmoid_stand_large_inputs),
        cmocka_unit_test(convolutions_and_pools_equal_loops_over_their_windows),
        cmocka_unit_test(drawn_weights_are_normal_and_scaled),
        cmocka_unit_test(layers_that_do_not_fit_are_refused),
        cmocka_unit_test(batches_that_do_not_fit_are_refused),
        cmocka_unit_test(a_cost_that_is_not_finite_is_divergence),
        cmocka_unit_test(a_network_without_memory_is_none),
    };
    return cmocka_run_group_tests(tests, fill_inputs, NULL);
}
