/* Data sets: generated ones (shape, distribution, reproducible bits), checks, copies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "learn/dataset.h"
#include "learn/digits.h"
#include "learn/draw.h"
#include "matrix/view.h"

static const uint8_t seed[32] = { 1, 2, 3 };

static uint64_t hash(uint64_t h, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < len; i++) h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* ---- draws ----------------------------------------------------------------------------------- */

static void a_shuffle_is_a_permutation_and_uniform(void **s)
{
    (void)s;
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_derived(&state, seed, "test", 0);
    unsigned at[5][5] = { { 0 } };
    for (int i = 0; i < 20000; i++) {
        uint32_t p[5];
        unsigned seen = 0;
        sherd__draw_shuffle(&e, p, 5);
        for (unsigned k = 0; k < 5; k++) {
            seen |= 1u << p[k];
            at[k][p[k]]++;
        }
        assert_int_equal(seen, 31);
    }
    for (unsigned k = 0; k < 5; k++) /* 4000 each, standard deviation 57 */
        for (unsigned v = 0; v < 5; v++) assert_in_range(at[k][v], 4000 - 285, 4000 + 285);
    uint32_t one[1] = { 7 };
    sherd__draw_shuffle(&e, one, 0);
    assert_int_equal(one[0], 7);
    sherd__draw_shuffle(&e, one, 1);
    assert_int_equal(one[0], 0);
}

static void draws_below_a_number_reject_values_that_would_bias_them(void **s)
{
    (void)s;
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_derived(&state, seed, "test", 1);
    enum { N = 30000 };
    static uint32_t out[N];
    const uint32_t n = UINT32_C(3) << 30; /* without rejection, one third would be twice as
                                           * frequent */
    size_t third = 0;
    sherd__draw_below(&e, n, out, N);
    for (size_t i = 0; i < N; i++) {
        assert_true(out[i] < n);
        third += out[i] % 3 == 0;
    }
    assert_in_range(third, 10000 - 410, 10000 + 410);
    sherd__draw_below(&e, 1, out, 100);
    for (size_t i = 0; i < 100; i++) assert_int_equal(out[i], 0);
}

static void streams_of_one_seed_differ_by_label_and_number(void **s)
{
    (void)s;
    sherd__seeded a, b;
    uint8_t other[32] = { 1, 2, 3 };
    sherd__entropy x = sherd__entropy_derived(&a, seed, "weights", 0);
    uint64_t first = sherd__entropy_u64(&x);
    x = sherd__entropy_derived(&b, seed, "weights", 1);
    assert_true(sherd__entropy_u64(&x) != first);
    x = sherd__entropy_derived(&b, seed, "weight", 0);
    assert_true(sherd__entropy_u64(&x) != first);
    x = sherd__entropy_derived(&b, other, "weights", 0);
    assert_true(sherd__entropy_u64(&x) == first);
    other[31] = 1;
    x = sherd__entropy_derived(&b, other, "weights", 0);
    assert_true(sherd__entropy_u64(&x) != first);
}

/* ---- generators ------------------------------------------------------------------------------ */

static void a_spiral_has_arms_of_increasing_radius(void **s)
{
    (void)s;
    sherd__dataset x;
    double sum = 0, square = 0;
    assert_int_equal(sherd__generate_spiral(&x, 451, 3, seed, NULL), SHERD_OK);
    assert_true(x.x.rows == 451 && x.x.cols == 2 && x.classes == 3 && x.width == 3);
    const double *p = x.x.data;
    size_t counts[3] = { 0 };
    for (size_t i = 0; i < 451; i++) counts[x.targets.labels[i]]++;
    assert_true(counts[0] == 151 && counts[1] == 150 && counts[2] == 150);
    for (size_t i = 0, within = 0; i < 451; i++, within++) {
        uint32_t j = x.targets.labels[i];
        if (i > 0 && j != x.targets.labels[i - 1]) within = 0;
        double t = (double)within / (double)(counts[j] - 1);
        assert_true(fabs(hypot(p[2 * i], p[2 * i + 1]) - t) < 1e-14);
        if (within == 0) continue;
        double off = atan2(p[2 * i], p[2 * i + 1]) - 4 * (j + t);
        off -= 2 * M_PI * rint(off / (2 * M_PI));
        sum += off;
        square += off * off;
    }
    assert_true(fabs(sum / 448) < 0.05); /* 0.2 N(0, 1): five standard deviations of the mean */
    assert_true(sqrt(square / 448) > 0.165 && sqrt(square / 448) < 0.235);
    sherd__dataset_fini(&x);
    assert_int_equal(sherd__generate_spiral(&x, 3, 3, seed, NULL),
                     SHERD_OK); /* one point for each class */
    sherd__dataset_fini(&x);
    assert_int_equal(sherd__generate_spiral(&x, 2, 3, seed, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__generate_spiral(&x, 0, 0, seed, NULL), SHERD_EINVAL);
}

static void a_parabola_has_squares_as_targets(void **s)
{
    (void)s;
    sherd__dataset x;
    assert_int_equal(sherd__generate_parabola(&x, 50, NULL), SHERD_OK);
    const double *p = x.x.data;
    assert_true(p[0] == -2 && p[49] == 2 && x.width == 1 && !x.targets.labels);
    for (size_t i = 0; i < 50; i++) assert_true(x.targets.values[i] == p[i] * p[i]);
    for (size_t i = 1; i < 50; i++) assert_true(fabs(p[i] - p[i - 1] - 4.0 / 49) < 1e-15);
    sherd__dataset_fini(&x);
    assert_int_equal(sherd__generate_parabola(&x, 0, NULL), SHERD_EINVAL);
}

static void random_examples_are_uniform(void **s)
{
    (void)s;
    sherd__dataset x;
    double sum = 0, square = 0;
    size_t counts[10] = { 0 };
    assert_int_equal(sherd__generate_random(&x, 2000, 20, 10, seed, NULL), SHERD_OK);
    const double *p = x.x.data;
    for (size_t i = 0; i < 40000; i++) {
        assert_true(p[i] >= 0 && p[i] < 1);
        sum += p[i];
        square += p[i] * p[i];
    }
    assert_true(fabs(sum / 40000 - 0.5) < 0.0075 && fabs(square / 40000 - 1.0 / 3) < 0.0075);
    for (size_t i = 0; i < 2000; i++) counts[x.targets.labels[i]]++;
    for (size_t i = 0; i < 10; i++) assert_in_range(counts[i], 130, 270);
    sherd__dataset_fini(&x);
}

static void digits_equal_those_of_the_embedded_set(void **s)
{
    (void)s;
    sherd__dataset x;
    uint8_t pixels[20 * SHERD__DIGIT_PIXELS], labels[20];
    sherd__digits_draw(SHERD__DIGITS_SEED, 5, 20, pixels, labels);
    assert_int_equal(sherd__generate_digits(&x, 5, 20, NULL), SHERD_OK);
    assert_memory_equal(x.x.data, pixels, sizeof pixels);
    for (size_t i = 0; i < 20; i++) assert_int_equal(x.targets.labels[i], labels[i]);
    sherd__dataset_fini(&x);
}

/* Computed by this code; must be the same on every machine. */
static void generated_bits_are_reproducible(void **s)
{
    (void)s;
    sherd__dataset x;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    assert_int_equal(sherd__generate_spiral(&x, 450, 3, seed, NULL), SHERD_OK);
    h = hash(h, x.x.data, 900 * sizeof(double));
    sherd__dataset_fini(&x);
    assert_int_equal(sherd__generate_random(&x, 30, 7, 4, seed, NULL), SHERD_OK);
    h = hash(h, x.x.data, 210 * sizeof(double));
    h = hash(h, x.targets.labels, 30 * sizeof(uint32_t));
    sherd__dataset_fini(&x);
    assert_int_equal(h, UINT64_C(0xf3fbab056b424bdc));
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void invalid_examples_are_named_by_row(void **s)
{
    (void)s;
    double x[6] = { 1, 2, 3, 4, 5, 6 }, values[3] = { 1, 2, 3 };
    uint32_t labels[3] = { 0, 2, 1 };
    sherd__dataset set = {
        .x = sherd_view_c(x, SHERD_F64, 3, 2), .targets.labels = labels, .classes = 3, .width = 3
    };
    sherd_diag d = { 0 };
    assert_int_equal(sherd__dataset_check(&set, "f", 2, 3, &d), SHERD_OK);
    assert_int_equal(sherd__dataset_check(&set, "f", 2, 2, &d), SHERD_EFORMAT);
    assert_string_equal(d.message, "f: row 1 has the label 2: expected one below 2");
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__dataset_check(&set, "f", 3, 3, &d), SHERD_ESHAPE);
    x[3] = NAN;
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__dataset_check(&set, "f", 2, 3, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "row 1, column 1"));
    x[3] = 4;
    set.targets = (sherd__targets){ .values = values };
    set.width = 1;
    assert_int_equal(sherd__dataset_check(&set, "f", 2, 1, NULL), SHERD_OK);
    assert_int_equal(sherd__dataset_check(&set, "f", 2, 3, NULL), SHERD_ESHAPE);
    values[2] = INFINITY;
    assert_int_equal(sherd__dataset_check(&set, "f", 2, 1, NULL), SHERD_ERANGE);
}

static void a_part_has_its_rows_and_targets(void **s)
{
    (void)s;
    sherd__dataset x;
    assert_int_equal(sherd__generate_parabola(&x, 10, NULL), SHERD_OK);
    sherd__dataset part = sherd__dataset_part(&x, 4, 3);
    assert_true(part.x.rows == 3 && !part.owned[0]);
    for (size_t i = 0; i < 3; i++)
        assert_true(sherd__view_at(part.x, i, 0) == ((const double *)x.x.data)[4 + i] &&
                    part.targets.values[i] == x.targets.values[4 + i]);
    sherd__dataset_fini(&x);
}

static void copies_select_rows_and_divide(void **s)
{
    (void)s;
    uint8_t bytes[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 200, 255 };
    uint32_t labels[4] = { 3, 2, 1, 0 };
    const uint32_t rows[] = { 3, 0, 3 };
    sherd__dataset set = { .x = sherd_view_c(bytes, SHERD_U8, 4, 3),
                           .targets.labels = labels,
                           .classes = 4,
                           .width = 4 },
                   copy;
    static const struct {
        double divide;
        sherd_dtype dtype;
    } cases[] = { { 1, SHERD_U8 }, { 256, SHERD_F32 }, { 255, SHERD_F64 }, { 0.5, SHERD_F32 } };
    for (size_t k = 0; k < 4; k++) {
        assert_int_equal(sherd__dataset_copy(&copy, &set, rows, 3,
                                             &(sherd__input_scale){ .divide = cases[k].divide },
                                             NULL),
                         SHERD_OK);
        assert_int_equal(copy.x.dtype, cases[k].dtype);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(copy.targets.labels[i], labels[rows[i]]);
            for (size_t c = 0; c < 3; c++)
                assert_true(sherd__view_at(copy.x, i, c) ==
                            bytes[3 * rows[i] + c] / cases[k].divide);
        }
        sherd__dataset_fini(&copy);
    }
    set.x = sherd_view_t(sherd_view_c(bytes, SHERD_U8, 3, 4)); /* other strides */
    assert_int_equal(sherd__dataset_copy(&copy, &set, NULL, 4, NULL, NULL), SHERD_OK);
    for (size_t i = 0; i < 4; i++)
        for (size_t c = 0; c < 3; c++)
            assert_true(sherd__view_at(copy.x, i, c) == bytes[4 * c + i]);
    sherd__dataset_fini(&copy);
}

static void inputs_are_standardised_by_column(void **s)
{
    (void)s;
    /* constant numbers that are not exact, numbers with a large mean, bytes-like numbers */
    static const double x[5 * 4] = { 1.7000000000000002, 1e9 + 1, 0, 1,
                                     1.7000000000000002, 1e9 + 2, 0, 1,
                                     1.7000000000000002, 1e9 + 3, 0, 1,
                                     1.7000000000000002, 1e9 + 4, 0, 1,
                                     1.7000000000000002, 1e9 + 5, 5, 1 };
    static const uint32_t labels[5];
    sherd__dataset set = { .x = sherd_view_c(x, SHERD_F64, 5, 4),
                           .targets.labels = labels,
                           .classes = 1,
                           .width = 1 },
                   copy;
    double mean[4], deviation[4];
    assert_int_equal(sherd__dataset_measure(&set, "x", 1, mean, deviation, NULL), SHERD_OK);
    assert_true(mean[0] == 1.7000000000000002 && deviation[0] == 1 && mean[3] == 1 &&
                deviation[3] == 1);
    assert_true(mean[1] == 1e9 + 3 && deviation[1] == sqrt(2) && mean[2] == 1 && deviation[2] == 2);
    const sherd__input_scale by = { 1, mean, deviation };
    assert_int_equal(sherd__dataset_copy(&copy, &set, NULL, 5, &by, NULL), SHERD_OK);
    assert_int_equal(copy.x.dtype, SHERD_F64);
    assert_true(sherd__view_at(copy.x, 4, 0) == 0 && sherd__view_at(copy.x, 4, 2) == 2);
    assert_true(sherd__view_at(copy.x, 0, 1) == -2 / sqrt(2));
    sherd__dataset_fini(&copy);
    assert_int_equal(sherd__dataset_measure(&set, "x", 2, mean, deviation, NULL), SHERD_OK);
    assert_true(mean[2] == 0.5 && deviation[2] == 1 && mean[0] == 0.8500000000000001);
    static const double large[] = { -1e308, 1e308 };
    sherd_diag d = { 0 };
    set.x = sherd_view_c(large, SHERD_F64, 2, 1);
    assert_int_equal(sherd__dataset_measure(&set, "x", 1, mean, deviation, &d), SHERD_ERANGE);
    assert_string_equal(d.message, "x: the numbers of column 0 are too large to be standardised");
    for (size_t n = 1; n <= 2; n++) {
        sherd__alloc_fail_nth(n);
        assert_int_equal(sherd__dataset_measure(&set, "x", 1, mean, deviation, NULL), SHERD_ENOMEM);
    }
    sherd__alloc_fail_nth(0);
}

static void squares_of_any_finite_range_are_summed(void **s)
{
    (void)s;
    static const struct {
        double x[4], mean, deviation;
    } cases[] = {
        { { 0, 0, 1e-170, 1e-170 }, 5e-171, 5e-171 },
        { { 1e-300, 1e-300, 3e-300, 3e-300 }, 2e-300, 1e-300 },
        { { -1e200, -1e200, 1e200, 1e200 }, 0, 1e200 },
        { { -8e307, -8e307, 8e307, 8e307 }, 0, 8e307 },
        { { 0, 0, 0, 0x1p-1074 }, 0, 0x1p-1074 }, /* the root rounds to 0 */
    };
    static const uint32_t labels[4];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double mean, deviation;
        const sherd__dataset set = { .x = sherd_view_c(cases[i].x, SHERD_F64, 4, 1),
                                     .targets.labels = labels,
                                     .classes = 1,
                                     .width = 1 };
        assert_int_equal(sherd__dataset_measure(&set, "x", 1, &mean, &deviation, NULL), SHERD_OK);
        assert_true(fabs(mean - cases[i].mean) <= 1e-15 * fabs(cases[i].mean));
        assert_true(fabs(deviation / cases[i].deviation - 1) < 1e-15);
    }
}

static void without_memory_no_data_set_is_made(void **s)
{
    (void)s;
    sherd__dataset x, copy;
    for (size_t n = 1; n <= 2; n++) {
        sherd__alloc_fail_nth(n);
        assert_int_equal(sherd__generate_parabola(&x, 5, NULL), SHERD_ENOMEM);
        assert_null(x.owned[0]);
    }
    sherd__alloc_fail_nth(0);
    assert_int_equal(sherd__generate_parabola(&x, 5, NULL), SHERD_OK);
    for (size_t n = 1; n <= 3; n++) {
        sherd__alloc_fail_nth(n);
        assert_int_equal(sherd__dataset_copy(&copy, &x, NULL, 5,
                                             &(sherd__input_scale){ .divide = 3 }, NULL),
                         SHERD_ENOMEM);
        assert_null(copy.owned[0]);
    }
    sherd__alloc_fail_nth(0);
    sherd__dataset_fini(&x);
    sherd__dataset_fini(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shuffle_is_a_permutation_and_uniform),
        cmocka_unit_test(draws_below_a_number_reject_values_that_would_bias_them),
        cmocka_unit_test(streams_of_one_seed_differ_by_label_and_number),
        cmocka_unit_test(a_spiral_has_arms_of_increasing_radius),
        cmocka_unit_test(a_parabola_has_squares_as_targets),
        cmocka_unit_test(random_examples_are_uniform),
        cmocka_unit_test(digits_equal_those_of_the_embedded_set),
        cmocka_unit_test(generated_bits_are_reproducible),
        cmocka_unit_test(invalid_examples_are_named_by_row),
        cmocka_unit_test(a_part_has_its_rows_and_targets),
        cmocka_unit_test(copies_select_rows_and_divide),
        cmocka_unit_test(inputs_are_standardised_by_column),
        cmocka_unit_test(squares_of_any_finite_range_are_summed),
        cmocka_unit_test(without_memory_no_data_set_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
