/*
 * Gradients of examples that stay with their owner: the sum covers valid examples only, whatever
 * the other places contain. With clipping, one example changes the sum by a vector of bounded norm,
 * counted in integers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/diag.h"
#include "core/subnormal.h"
#include "crypto/privacy.h"
#include "learn/grader.h"
#include "learn/local_data.h"
#include "learn/secure.h"
#include "matrix/tiled.h"
#include "tests/support/draw.h"

static const char *const texts[] = {
    "input = 6\nlayer = dense 5\nlayer = tanh\nlayer = dense 3\nloss = cross-entropy\n"
    "data = file\nepochs = 1\nrate = 1\n",
    "input = 6\nlayer = dense 2\nloss = squared\ntargets = values\ndata = file\nepochs = 1\n"
    "rate = 1\n",
    "input = 6 x 6 x 1\nlayer = conv2d 3 window 3\nlayer = relu\nlayer = max-pool 2\n"
    "layer = dense 4\nloss = cross-entropy\ndata = file\nepochs = 1\nrate = 1\n",
    "input = 6\nlayer = dense 3\nloss = cross-entropy\ndata = file\nepochs = 1\nrate = 1\n",
};
enum { TEXTS = 4, ROWS = 700, COLS = 40, COUNT_MAX = 96 };

static double examples[ROWS * COLS];
static sherd__recipe recipe;
static size_t inputs, targets, count, tiers;
static sherd__own own;

/* Makes examples for recipe `k`, all of them valid. */
static void make(unsigned k, size_t rows)
{
    size_t counts[SHERD__RECIPE_LAYERS_MAX], cols;
    assert_int_equal(sherd__recipe_parse(&recipe, texts[k], strlen(texts[k]), "t",
                                         SHERD__RECIPE_ALL, NULL),
                     0);
    assert_int_equal(sherd__recipe_tiers(&recipe, &tiers, counts, NULL), 0);
    count = 0;
    for (size_t t = 0; t < tiers; t++) count += counts[t];
    assert_true(count <= COUNT_MAX);
    inputs = k == 2 ? 36 : 6;
    targets = k == 1 ? 2 : 1;
    cols = inputs + targets;
    for (size_t i = 0; i < rows * cols; i++)
        examples[i] = recipe.target_values || i % cols < inputs ? (double)draw() / 0x1p30 - 1
                                                                : (double)(draw() % 3);
    own = (sherd__own){ .x = sherd_view_c(examples, SHERD_F64, rows, cols) };
}

static sherd__arithmetic arithmetic; /* of graders; zeroed: this machine's */

static sherd__own_grader *begin(double clip)
{
    sherd__own_grader *g;
    sherd__own_options o = { .recipe = &recipe,
                             .data = &own,
                             .divide = 1,
                             .clip = clip,
                             .values = recipe.target_values,
                             .by = arithmetic };
    assert_int_equal(sherd__own_new(&g, &o, NULL), 0);
    draw_state = 77;
    for (size_t i = 0; i < count; i++) sherd__own_params(g)[i] = (double)draw() / 0x1p31 - 0.5;
    return g;
}

static const int32_t scales[] = { 30, 30, 30, 30, 30 };
static const int32_t figures[] = { 0, 0, -4, -4, -4 };

static void grade(double clip, uint64_t first, uint64_t rows, const int32_t *s, int64_t *out)
{
    sherd__own_grader *g = begin(clip);
    assert_int_equal(sherd__own_grade(g, &(sherd__own_request){ first, rows, s, 50 }, out, NULL),
                     0);
    sherd__own_free(g);
}

static double norm_of(const int64_t *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Computes the sum row by row with the grader of training by gradients. */
static void plain_sum(const uint8_t *in, double *out, double *cost, uint64_t *hits)
{
    sherd__grader *g;
    sherd__own_grader *params = begin(0);
    double sums[COUNT_MAX];
    void *to[8];
    size_t at = 0;
    assert_int_equal(sherd__grader_new(&g, &recipe, 1, 0, NULL, NULL), 0);
    for (size_t t = 0; t < tiers; at += sherd__grader_count(g, t++)) {
        to[t] = sums + at;
        memcpy(sherd__grader_params(g, t), sherd__own_params(params) + at,
               sherd__grader_count(g, t) * sizeof(double));
    }
    memset(out, 0, count * sizeof *out);
    *cost = 0;
    *hits = 0;
    for (size_t r = 0; r < own.x.rows; r++) {
        const double *row = examples + r * own.x.cols;
        uint32_t label = (uint32_t)row[inputs];
        sherd__shard s = { .x = sherd_view_c(row, SHERD_F64, 1, inputs) };
        sherd__grading how = { .scales = scales, .fresh = true, .sums = to };
        double c;
        uint64_t h;
        if (recipe.target_values) s.targets.values = row + inputs;
        else s.targets.labels = &label;
        if (!in[r]) continue;
        assert_int_equal(sherd__grader_run(g, &s, &how, &c, &h, NULL), 0);
        for (size_t i = 0; i < count; i++) out[i] += sums[i];
        *cost += c;
        *hits += h;
    }
    sherd__grader_free(g);
    sherd__own_free(params);
}

static void a_sum_covers_valid_examples_only(void **s)
{
    (void)s;
    for (unsigned k = 0; k < TEXTS; k++)
        for (unsigned spoilt = 0; spoilt < 2; spoilt++) {
            static uint8_t in[ROWS];
            int64_t out[COUNT_MAX + SHERD__SECURE_EXTRA];
            double want[COUNT_MAX], cost;
            uint64_t hits, valid = 0;
            draw_state = 10 + k;
            make(k, 330);
            memset(in, 1, sizeof in);
            for (size_t r = 0; r < 330 && spoilt; r += 1 + draw() % 7) {
                static const double odd[] = { NAN, INFINITY, -INFINITY };
                in[r] = 0;
                size_t c = draw() % own.x.cols;
                examples[r * own.x.cols + c] = odd[draw() % 3];
                if (k != 1 && draw() % 2) { /* invalid labels: too large, negative, a fraction */
                    static const double no_label[] = { 7, -1, 0.5 };
                    examples[r * own.x.cols + inputs] = no_label[draw() % 3];
                }
            }
            for (size_t r = 0; r < 330; r++) valid += in[r];
            plain_sum(in, want, &cost, &hits);
            grade(0, 0, 700, scales, out); /* more places than examples */
            for (size_t i = 0; i < count; i++)
                assert_true(fabs((double)out[i] - want[i] * 0x1p30) <= 64);
            assert_int_equal(out[count], valid);
            assert_true(fabs((double)out[count + 1] - cost * 0x1p30) <= 1e-9 * cost * 0x1p30 + 64);
            assert_int_equal(out[count + 2], hits);
        }
}

static void the_places_of_a_round_are_a_window(void **s)
{
    (void)s;
    for (unsigned clipped = 0; clipped < 2; clipped++) {
        int64_t all[COUNT_MAX + 3], part[COUNT_MAX + 3], sum[COUNT_MAX + 3] = { 0 };
        draw_state = 20;
        make(0, 300);
        grade(clipped, 0, 400, clipped ? figures : scales, all);
        for (uint64_t first = 0; first < 400; first += 100) {
            grade(clipped, first, 100, clipped ? figures : scales, part);
            for (size_t i = 0; i < count + 3; i++) sum[i] += part[i];
            if (first >= 300) assert_true(norm_of(part, count + 3) == 0);
        }
        for (size_t i = 0; i < count + 3; i++) assert_true(llabs(all[i] - sum[i]) <= 8);
    }
}

static void values_that_exceed_the_range_saturate(void **s)
{
    (void)s;
    int64_t out[COUNT_MAX + 3];
    static const int32_t fine[] = { 900, 900, 900 };
    draw_state = 21;
    make(0, 50);
    grade(0, 0, 50, fine, out);
    size_t most = 0;
    for (size_t i = 0; i < count; i++) most += llabs(out[i]) == INT64_C(1) << 50;
    assert_true(most > count / 2);
    assert_int_equal(out[count + 1], INT64_C(1) << 50);
    assert_int_equal(out[count], 50);
}

/* ---- clipping -------------------------------------------------------------------------------- */

/* For one example: its contribution is no longer than the accountant's bound, and as long as the
 * clipped gradient. */
static void an_example_contributes_its_clipped_gradient(void **s)
{
    (void)s;
    for (unsigned k = 0; k < TEXTS; k++)
        for (double clip = 1e-3; clip < 1e3; clip *= 10) {
            int64_t out[COUNT_MAX + 3];
            double want[COUNT_MAX], cost, norm = 0;
            uint64_t hits;
            uint8_t in = 1;
            draw_state = 30 + k;
            make(k, 1);
            plain_sum(&in, want, &cost, &hits);
            grade(clip, 0, 1, figures, out);
            for (size_t i = 0; i < count; i++) norm += want[i] * want[i];
            norm = sqrt(norm);
            double by = 0x1p18 / fmax(norm, clip);
            for (size_t i = 0; i < count; i++)
                assert_true(fabs((double)out[i] - want[i] * by) <= 0.51);
            assert_true(norm_of(out, count) <= sqrt((double)sherd__privacy_gradient_bound(count)));
            assert_int_equal(out[count], SHERD__PRIVACY_FIGURE);
            double c = ldexp(cost, figures[tiers]) * (double)SHERD__PRIVACY_FIGURE;
            assert_true(fabs((double)out[count + 1] - fmin(c, (double)SHERD__PRIVACY_FIGURE)) < 1);
            assert_int_equal(out[count + 2], hits ? SHERD__PRIVACY_FIGURE : 0);
        }
}

static double odd_number(void)
{
    static const double of[] = { NAN, INFINITY, 1e308, -1e308, 1e150, 5e-324, 0, -3, 2, 1e-300 };
    return of[draw() % (sizeof of / sizeof *of)];
}

enum { FEW = 20 };

static void fill_oddly(unsigned seed, uint64_t state)
{
    draw_state = state;
    make(seed % TEXTS, FEW);
    for (size_t i = 0; i < FEW * own.x.cols; i++)
        if (seed % 4 && draw() % (3 + seed) == 0) examples[i] = odd_number();
}

/* Computes how the sum changes when example `row` is removed. */
static void change_of(size_t row, double clip, int64_t *change)
{
    int64_t without[COUNT_MAX + 3];
    double kept = examples[row * own.x.cols];
    grade(clip, 0, FEW, figures, change);
    examples[row * own.x.cols] = NAN; /* an empty place */
    grade(clip, 0, FEW, figures, without);
    examples[row * own.x.cols] = kept;
    for (size_t i = 0; i < count + 3; i++) change[i] -= without[i];
}

/* For any examples, removing one changes the sum by at most the accountant's bound, and by the same
 * vector whatever the other examples are. */
static void one_example_changes_the_sum_by_a_bounded_vector(void **s)
{
    (void)s;
    for (unsigned seed = 0; seed < 60; seed++) {
        int64_t change[COUNT_MAX + 3], other[COUNT_MAX + 3];
        double mine[COLS], clip = seed % 2 ? 1e-4 : 1;
        size_t row = seed % FEW;
        fill_oddly(seed, 400 + seed);
        memcpy(mine, examples + row * own.x.cols, own.x.cols * sizeof *mine);
        change_of(row, clip, change);
        assert_true(norm_of(change, count) <= sqrt((double)sherd__privacy_gradient_bound(count)));
        for (size_t i = count; i < count + 3; i++)
            assert_true(llabs(change[i]) <= SHERD__PRIVACY_FIGURE);
        fill_oddly(seed, 900 + seed);
        memcpy(examples + row * own.x.cols, mine, own.x.cols * sizeof *mine);
        change_of(row, clip, other);
        assert_memory_equal(change, other, (count + 3) * sizeof *change);
    }
}

static void grade_with(const double *params, double clip, uint64_t rows, int64_t *out)
{
    sherd__own_grader *g = begin(clip);
    memcpy(sherd__own_params(g), params, count * sizeof *params);
    assert_int_equal(sherd__own_grade(g, &(sherd__own_request){ 0, rows, figures, 50 }, out, NULL),
                     0);
    sherd__own_free(g);
}

/* A softmax with a bias 373 above the others: slopes of 1e-162, whose squares are 0. The inputs
 * take the gradient from far below the clipping norm to far above it. */
static void the_norm_includes_slopes_whose_squares_are_zero(void **s)
{
    (void)s;
    const double clips[] = { SHERD__OWN_CLIP_LEAST, 1, SHERD__OWN_CLIP_MOST };
    draw_state = 50;
    make(3, 1);
    for (unsigned bias = 399; bias >= 360; bias -= 13)
        for (unsigned c = 0; c < 3; c++)
            for (int e = 300; e < 800; e++) {
                int64_t out[COUNT_MAX + 3];
                double params[COUNT_MAX] = { 0 }, units = 0x1p18;
                for (size_t i = 0; i < inputs; i++) examples[i] = ldexp(1, e);
                examples[inputs] = 1;
                params[count - 2] = bias;
                grade_with(params, clips[c], 1, out);
                /* The slopes of two labels are exp(-bias), and that of the example's label is at
                 * most their sum. */
                double norm = sqrt(2.0 * (double)inputs) * ldexp(exp(-(double)bias), e);
                assert_true(norm_of(out, count) <=
                            sqrt((double)sherd__privacy_gradient_bound(count)));
                if (norm > clips[c]) assert_true(norm_of(out, count) > 0.999 * units);
                if (norm < clips[c] * 0x1p-30) assert_true(norm_of(out, count) == 0);
                assert_int_equal(out[count], SHERD__PRIVACY_FIGURE);
            }
}

static double any_number(int least, int most)
{
    return ldexp((double)draw() / 0x1p31 - 1, least + (int)(draw() % (unsigned)(most - least)));
}

/* Weights and examples with numbers of any magnitude. */
static void no_example_exceeds_the_bound(void **s)
{
    (void)s;
    for (unsigned seed = 0; seed < 4000; seed++) {
        int64_t out[COUNT_MAX + 3];
        double params[COUNT_MAX];
        draw_state = 5000 + seed;
        make(seed % TEXTS, 1);
        int of = (int)(draw() % 2000) - 1050, at = (int)(draw() % 2000) - 1050;
        for (size_t i = 0; i < count; i++)
            params[i] = draw() % 8 ? any_number(of, of + 40) : any_number(-1070, 1000);
        for (size_t i = 0; i < own.x.cols; i++)
            if (i < inputs || recipe.target_values)
                examples[i] = draw() % 8 ? any_number(at, at + 40) : any_number(-1070, 1000);
        double clip = ldexp(1, (int)(draw() % 201) - 100);
        grade_with(params, clip, 1, out);
        assert_true(norm_of(out, count) <= sqrt((double)sherd__privacy_gradient_bound(count)));
    }
}

/* Slopes of exp(-bias), which are subnormal from a bias of 709 on, with inputs that make a large
 * gradient of them: nothing exceeds the bound, and values that count as zero do so in both norm and
 * sum. */
static void subnormal_slopes_stay_within_the_bound(void **s)
{
    (void)s;
    draw_state = 51;
    make(3, 1);
    for (unsigned bias = 690; bias <= 750; bias += 3)
        for (int e = 0; e <= 1020; e += 17)
            for (int c = -100; c <= 100; c += 50) {
                int64_t out[COUNT_MAX + 3];
                double params[COUNT_MAX] = { 0 }, clip = ldexp(1, c);
                for (size_t i = 0; i < inputs; i++) examples[i] = ldexp(1, i % 2 ? e : -e - 53);
                examples[inputs] = 1;
                params[count - 2] = bias;
                grade_with(params, clip, 1, out);
                double norm = norm_of(out, count);
                assert_true(norm <= sqrt((double)sherd__privacy_gradient_bound(count)));
                if (bias < 702 && e >= 1003 && c < 0) assert_true(norm > 0.999 * 0x1p18);
            }
}

/* ---- time ------------------------------------------------------------------------------------ */

/* The gradient of a weight is input times slope, about 2^-1060 times 2^900: the result is a normal
 * number although a factor is not. */
static void subnormal_numbers_count_as_zero_only_within_a_gradient(void **s)
{
    (void)s;
    volatile double least = 0x1p-1022;
    static const int32_t up[] = { 180, 0 };
    double params[COUNT_MAX] = { 0 };
    int64_t out[COUNT_MAX + 3];
    (void)sherd__subnormal_flush(true);
    if (!sherd__subnormal_flushed()) skip(); /* this processor does not support it */
    (void)sherd__subnormal_flush(false);
    draw_state = 60;
    make(1, 1);
    for (unsigned k = 0; k < 2; k++) {
        for (size_t i = 0; i < inputs; i++) examples[i] = k ? 0x1p-1020 : 0x1p-1030;
        for (size_t i = inputs; i < own.x.cols; i++) examples[i] = 0x1p880;
        sherd__own_grader *g = begin(0);
        memcpy(sherd__own_params(g), params, count * sizeof *params);
        assert_int_equal(sherd__own_grade(g, &(sherd__own_request){ 0, 1, up, 50 }, out, NULL), 0);
        for (size_t i = 0; i < inputs; i++) assert_int_equal(out[i] != 0, k);
        sherd__own_free(g);
        assert_false(sherd__subnormal_flushed());
        assert_true(least * 0.5 != 0);
    }
}

static bool stop_at_last(void *ctx)
{
    unsigned *left = ctx;
    return --*left == 0;
}

/* The coordinator chooses the number of places. */
static void a_round_stops_between_chunks(void **s)
{
    (void)s;
    int64_t out[COUNT_MAX + 3];
    for (unsigned clips = 0; clips < 2; clips++) {
        sherd__own_grader *g;
        unsigned left = 3;
        make(0, 9);
        sherd__own_options o = { .recipe = &recipe,
                                 .data = &own,
                                 .divide = 1,
                                 .clip = clips,
                                 .stop = stop_at_last,
                                 .stop_ctx = &left };
        assert_int_equal(sherd__own_new(&g, &o, NULL), 0);
        memset(sherd__own_params(g), 0, count * sizeof(double));
        assert_int_equal(sherd__own_grade(g, &(sherd__own_request){ 0, 100000, scales, 50 }, out,
                                          NULL),
                         SHERD_EINTERRUPTED);
        assert_int_equal(left, 0);
        left = 100;
        assert_int_equal(sherd__own_grade(g, &(sherd__own_request){ 0, 5, scales, 50 }, out, NULL),
                         0);
        assert_int_equal(left, 99);
        sherd__own_free(g);
    }
}

/* ---- another multiplier ---------------------------------------------------------------------- */

/* Computes as the layers do here, but multiplies by `factor`, and fails at a product. */
static struct {
    sherd_multiplier_ops ops;
    double factor;
    unsigned left; /* products before it fails; 0: it does not fail */
} another;

static int another_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                            sherd_diag *d)
{
    sherd__tiled p = { .type = SHERD_F64, .a = a, .b = b, .c = c, .ldc = ldc };
    sherd__tiled_room room = { 0 };
    (void)ctx;
    if (another.left && --another.left == 0)
        return sherd__fail(d, SHERD_EDEVICE, NULL, "the device failed");
    int err = sherd__tiled_multiply(&p, NULL, &room);
    sherd__tiled_room_fini(&room);
    for (size_t i = 0; i < a.rows; i++)
        for (size_t j = 0; j < b.cols; j++) c[i * ldc + j] *= another.factor;
    return err;
}

static int make_another(void *ctx, unsigned bits, sherd_multiplier *out, sherd_diag *d)
{
    (void)ctx;
    int err = sherd_multiplier_local(out, bits, d);
    if (err) return err;
    another.ops = *out->ops;
    another.ops.multiply = another_multiply;
    out->ops = &another.ops;
    return 0;
}

static void grade_by_another(double clip, double factor, unsigned left, int64_t *out)
{
    another.factor = factor;
    another.left = left;
    arithmetic.multiplier = make_another;
    grade(clip, 0, ROWS, clip > 0 ? figures : scales, out);
    arithmetic.multiplier = NULL;
}

static void one_multiplier_computes_the_whole_sum(void **s)
{
    (void)s;
    int64_t want[COUNT_MAX + 3], got[COUNT_MAX + 3];
    size_t len;
    for (unsigned k = 0; k < TEXTS; k++)
        for (unsigned clips = 0; clips < 2; clips++) {
            double clip = clips ? 0.5 : 0;
            draw_state = 5 + k;
            make(k, ROWS);
            len = (count + 3) * sizeof *want;
            grade(clip, 0, ROWS, clips ? figures : scales, want);
            grade_by_another(clip, 1, 0, got);
            assert_memory_equal(got, want, len);
            grade_by_another(clip, 1 + 1e-3, 0, got);
            assert_memory_not_equal(got, want, len);
            grade_by_another(clip, 1 + 1e-3, 1, got);
            assert_memory_equal(got, want, len);
            grade_by_another(clip, 1 + 1e-3, 3, got); /* in a later chunk, or layer */
            assert_memory_equal(got, want, len);
        }
}

static bool plan_may_clip_at(double clip)
{
    uint8_t bytes[8 * SHERD__SECURE_PLAN];
    sherd__secure_plan p = { .recipe = 1,
                             .nodes = 4,
                             .threshold = 3,
                             .colluding = 1,
                             .rows = 32,
                             .places = 64,
                             .clip = clip },
                       out;
    sherd__secure_plan_write(bytes, &p);
    return sherd__secure_plan_parse(&out, bytes, sizeof bytes, NULL) == SHERD_OK;
}

static void a_plan_accepts_clipping_norms_in_the_permitted_range(void **s)
{
    (void)s;
    const double fine[] = { 0, SHERD__OWN_CLIP_LEAST, 1, SHERD__OWN_CLIP_MOST };
    const double not [] = { 0x1p-101, 0x1p101, 0x1p-500, -1, 5e-324, INFINITY, NAN };
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) assert_true(plan_may_clip_at(fine[i]));
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++) assert_false(plan_may_clip_at(not [i]));
}

static void columns_that_do_not_fit_are_refused(void **s)
{
    (void)s;
    sherd__own_grader *g;
    make(0, 3);
    own.x.cols--;
    sherd__own_options o = { .recipe = &recipe, .data = &own, .divide = 1 };
    assert_int_equal(sherd__own_new(&g, &o, NULL), SHERD_ESHAPE);
    assert_null(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_covers_valid_examples_only),
        cmocka_unit_test(the_places_of_a_round_are_a_window),
        cmocka_unit_test(values_that_exceed_the_range_saturate),
        cmocka_unit_test(an_example_contributes_its_clipped_gradient),
        cmocka_unit_test(one_example_changes_the_sum_by_a_bounded_vector),
        cmocka_unit_test(the_norm_includes_slopes_whose_squares_are_zero),
        cmocka_unit_test(no_example_exceeds_the_bound),
        cmocka_unit_test(subnormal_slopes_stay_within_the_bound),
        cmocka_unit_test(subnormal_numbers_count_as_zero_only_within_a_gradient),
        cmocka_unit_test(a_round_stops_between_chunks),
        cmocka_unit_test(one_multiplier_computes_the_whole_sum),
        cmocka_unit_test(a_plan_accepts_clipping_norms_in_the_permitted_range),
        cmocka_unit_test(columns_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
