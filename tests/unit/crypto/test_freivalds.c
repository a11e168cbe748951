/*
 * Freivalds' check: kernels compared with slow arithmetic; correct answers pass and corrupted ones
 * do not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "crypto/freivalds_internal.h"
#include "matrix/gemm.h"

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

static sherd__seeded seeded;
static sherd__entropy entropy;

static int start(void **s)
{
    (void)s;
    entropy = sherd__entropy_seeded(&seeded, 20);
    return 0;
}

/* The tests draw much more than a check does, from a congruential generator rather than from the
 * entropy under test. */
static uint64_t state = 77;

static uint64_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 11;
}

static double whole(int64_t limit)
{
    return (double)((int64_t)(draw() % (uint64_t)(2 * limit + 1)) - limit);
}

/* --- field ----------------------------------------------------------------------------------- */

static uint64_t slow_mod(i128 x)
{
    i128 r = x % (i128)SHERD__F61;
    return (uint64_t)(r < 0 ? r + (i128)SHERD__F61 : r);
}

static void field_operations_equal_128_bit_remainders(void **s)
{
    (void)s;
    const uint64_t edge[] = { 0, 1, 2, SHERD__F61 - 1, SHERD__F61 - 2, UINT64_C(1) << 60 };
    for (size_t i = 0; i < 20000; i++) {
        uint64_t a = i < 36 ? edge[i / 6] : (draw() << 11 ^ draw()) % SHERD__F61;
        uint64_t b = i < 36 ? edge[i % 6] : (draw() << 11 ^ draw()) % SHERD__F61;
        assert_int_equal(sherd__f61_add(a, b), (uint64_t)(((u128)a + b) % SHERD__F61));
        assert_int_equal(sherd__f61_sub(a, b), slow_mod((i128)a - (i128)b));
        assert_int_equal(sherd__f61_mul(a, b), (uint64_t)((u128)a * b % SHERD__F61));
        int64_t x = (int64_t)(a * 8 + b);
        assert_int_equal(sherd__f61_from_i64(x), slow_mod(x));
    }
    assert_int_equal(sherd__f61_from_i64(INT64_MIN), slow_mod(INT64_MIN));
    assert_int_equal(sherd__f61_from_i64((int64_t)SHERD__F61), 0);
    assert_int_equal(sherd__f61_from_i64(-(int64_t)SHERD__F61), 0);
    assert_int_equal(sherd__f61_from_i64((int64_t)SHERD__F61 + 1), 1);
}

static void dot_products_are_exact_for_the_worst_values_and_every_length(void **s)
{
    (void)s;
    enum { N = 9000 };
    static double y[N];
    static uint64_t t[N], u[N];
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < N; i++) {
            y[i] = kind == 0   ? 0x1p53 - 1
                   : kind == 1 ? -(0x1p53 - 1)
                               : whole((INT64_C(1) << 53) - 1);
            t[i] = kind == 2 ? (draw() << 11 ^ draw()) % SHERD__F61 : SHERD__F61 - 1;
            u[i] = SHERD__F61 - 1 - (kind == 2 ? draw() : 0);
        }
        for (size_t n = 0; n <= N; n = n < 70 ? n + 1 : n * 2 - 1) {
            uint64_t want = 0, got = 1, want_u = 0;
            for (size_t i = 0; i < n; i++) {
                want = sherd__f61_add(want, slow_mod((i128)(int64_t)y[i] * (i128)t[i]));
                want_u = (uint64_t)(((u128)t[i] * u[i] + want_u) % SHERD__F61);
            }
            assert_int_equal(sherd__f61_dot_f64(y, t, n, &got), SHERD_OK);
            assert_int_equal(got, want);
            assert_int_equal(sherd__f61_dot(t, u, n), want_u);
        }
    }
}

static void values_that_are_not_integers_are_a_peer_error(void **s)
{
    (void)s;
    static const double bad[] = { NAN,     HUGE_VAL, -HUGE_VAL, 0.5,  0x1p53,
                                  -0x1p53, 1e300,    0x1p-1074, -1.25 };
    double y[1200];
    uint64_t t[1200], out = 9, acc = 4, left[1200];
    sherd__f61_draw(&entropy, 1200, t);
    for (size_t i = 0; i < 9; i++)
        for (size_t at = 0; at < 1200; at += 171) {
            for (size_t j = 0; j < 1200; j++) y[j] = whole(1000);
            y[at] = bad[i];
            assert_int_equal(sherd__f61_dot_f64(y, t, 1200, &out), SHERD_EFRAME);
            assert_int_equal(out, 9);
            assert_int_equal(sherd__f61_answer(y, 12, 100, 100, t, t, &acc), SHERD_EFRAME);
            assert_int_equal(acc, 4);
            assert_int_equal(sherd__f61_right(y, 12, 100, 100, t, left), SHERD_EINVAL);
        }
}

static void draws_are_below_q_and_fill_the_range(void **s)
{
    (void)s;
    enum { N = 20000 };
    static uint64_t t[N];
    size_t eighth[8] = { 0 };
    sherd__f61_draw(&entropy, N, t);
    for (size_t i = 0; i < N; i++) {
        assert_true(t[i] < SHERD__F61);
        eighth[t[i] >> 58]++;
        if (i > 0) assert_true(t[i] != t[i - 1]);
    }
    for (int i = 0; i < 8; i++) assert_in_range(eighth[i], N / 8 - 300, N / 8 + 300);
    sherd__f61_draw(&entropy, 0, t);
}

/* An entropy source whose first words must all be rejected. */
static void all_ones_then_zero(void *ctx, void *out, size_t len)
{
    size_t *calls = ctx;
    memset(out, (*calls)++ < 3 ? 0xff : 0, len);
}

static void values_that_are_not_below_the_modulus_are_drawn_again(void **s)
{
    (void)s;
    size_t calls = 0;
    sherd__entropy e = { all_ones_then_zero, &calls };
    uint64_t t[2] = { 5, 5 };
    sherd__f61_draw(&e, 2, t);
    assert_true(calls == 4 && t[0] == 0 && t[1] == 0);
    double r[2] = { 5, 5 };
    calls = 0;
    sherd__fvp_draw(&e, 5931641, 2, r);
    assert_true(calls == 4 && r[0] == 0 && r[1] == 0);
}

/* --- integer products ------------------------------------------------------------------------ */

typedef struct product {
    size_t n, k, m;
    double *u, *v, *y;
} product;

static product make(size_t n, size_t k, size_t m, int64_t limit)
{
    product p = { n, k, m, malloc(n * k * 8 + 8), malloc(k * m * 8 + 8), malloc(n * m * 8 + 8) };
    for (size_t i = 0; i < n * k; i++) p.u[i] = whole(limit);
    for (size_t i = 0; i < k * m; i++) p.v[i] = whole(limit);
    assert_int_equal(sherd__gemm_f64(n, k, m, p.u, k, p.v, m, 0.0, p.y, m), SHERD_OK);
    return p;
}

static void drop(product *p)
{
    free(p->u);
    free(p->v);
    free(p->y);
}

typedef struct vectors {
    uint64_t *r, *s, *ru, *vs;
    uint64_t want;
} vectors;

static vectors project(const product *p, bool zero)
{
    vectors x = { calloc(p->n + 1, 8), calloc(p->m + 1, 8), calloc(p->k + 1, 8),
                  calloc(p->k + 1, 8), 0 };
    if (!zero) {
        sherd__f61_draw(&entropy, p->n, x.r);
        sherd__f61_draw(&entropy, p->m, x.s);
    }
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < p->k; j++) {
            uint64_t u = (uint64_t)fabs(p->u[i * p->k + j]);
            uint64_t term = sherd__f61_mul(x.r[i], p->u[i * p->k + j] < 0 ? SHERD__F61 - u : u);
            x.ru[j] = sherd__f61_add(x.ru[j], term);
        }
    assert_int_equal(sherd__f61_right(p->v, p->k, p->m, p->m, x.s, x.vs), SHERD_OK);
    x.want = sherd__f61_dot(x.ru, x.vs, p->k);
    return x;
}

static void forget(vectors *x)
{
    free(x->r);
    free(x->s);
    free(x->ru);
    free(x->vs);
}

static bool passes(const product *p, const vectors *x)
{
    uint64_t acc = 0;
    size_t third = p->n / 3;
    assert_int_equal(sherd__f61_answer(p->y, third, p->m, p->m, x->r, x->s, &acc), SHERD_OK);
    assert_int_equal(sherd__f61_answer(p->y + third * p->m, p->n - third, p->m, p->m, x->r + third,
                                       x->s, &acc),
                     SHERD_OK);
    return acc == x->want;
}

static void correct_integer_products_pass(void **s)
{
    (void)s;
    static const size_t shapes[][3] = { { 0, 3, 2 },    { 3, 0, 2 },     { 3, 2, 0 },   { 1, 1, 1 },
                                        { 2, 7, 1300 }, { 70, 600, 33 }, { 5000, 3, 2 } };
    for (size_t i = 0; i < 7; i++) {
        product p = make(shapes[i][0], shapes[i][1], shapes[i][2], 65535);
        vectors x = project(&p, false);
        assert_true(passes(&p, &x));
        forget(&x);
        drop(&p);
    }
}

static void ten_thousand_corruptions_are_all_rejected(void **s)
{
    (void)s;
    product p = make(12, 9, 17, 65535);
    vectors x = project(&p, false);
    for (size_t round = 0; round < 10000; round++) {
        if (round % 100 == 0) {
            forget(&x);
            x = project(&p, false);
            assert_true(passes(&p, &x));
        }
        double keep[12 * 17];
        memcpy(keep, p.y, sizeof keep);
        size_t at = draw() % (12 * 17), other = draw() % (12 * 17);
        switch (round % 5) {
        case 0: p.y[at] += 1; break;
        case 1: p.y[at] -= 1; break;
        case 2: p.y[at] = whole(INT64_C(1) << 52); break;
        case 3: /* errors that a plain sum would not detect */
            p.y[at] += 1;
            p.y[other] -= 1;
            break;
        case 4: /* two entries exchanged */
            p.y[at] = keep[other];
            p.y[other] = keep[at];
            break;
        }
        bool same = memcmp(p.y, keep, sizeof keep) == 0;
        assert_int_equal(passes(&p, &x), same);
        memcpy(p.y, keep, sizeof keep);
    }
    forget(&x);
    drop(&p);
}

static void with_zero_vectors_any_answer_would_pass(void **s)
{
    (void)s;
    /* A control: the tests above pass because of r and s. */
    product p = make(6, 5, 7, 100);
    vectors x = project(&p, true);
    p.y[3] += 1;
    assert_true(passes(&p, &x));
    forget(&x);
    drop(&p);
}

/* --- floats ---------------------------------------------------------------------------------- */

static double real(void)
{
    return (double)draw() * 0x1p-53 - 0.5;
}

typedef struct weights {
    double *r, *s, *ru, *vs, *abs_ru, *abs_vs;
} weights;

static weights weight_vectors(const product *p)
{
    weights x = { calloc(p->n + 1, 8), calloc(p->m + 1, 8), calloc(p->k + 1, 8),
                  calloc(p->k + 1, 8), calloc(p->k + 1, 8), calloc(p->k + 1, 8) };
    sherd__fv_weights(&entropy, p->n, x.r);
    sherd__fv_weights(&entropy, p->m, x.s);
    return x;
}

static void weight_project(const product *p, const weights *x)
{
    memset(x->ru, 0, p->k * 8);
    memset(x->abs_ru, 0, p->k * 8);
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < p->k && x->r[i] != 0; j++) {
            x->ru[j] += x->r[i] * p->u[i * p->k + j];
            x->abs_ru[j] += fabs(x->r[i] * p->u[i * p->k + j]);
        }
    sherd__fv_right_f64(p->v, p->k, p->m, p->m, x->s, x->vs, x->abs_vs);
}

/* Judges the answer as a scheme does, by (k+n+m)*2^-52 * abs_ru*abs_vs + underflow. */
static bool weight_passes(const product *p, const weights *x)
{
    double rys = sherd__fv_answer_f64(p->y, p->n, p->m, p->m, x->r, x->s);
    double want = sherd__fv_dot_f64(x->ru, x->vs, p->k, NULL);
    double size = sherd__fv_dot_f64(x->abs_ru, x->abs_vs, p->k, NULL);
    double tolerance = (double)(p->k + p->n + p->m) * 0x1p-52 * size;
    return fabs(rys - want) <= tolerance + sherd__fv_underflow(p->n, p->k, p->m);
}

static void weight_forget(weights *x)
{
    free(x->r), free(x->s), free(x->ru), free(x->vs), free(x->abs_ru), free(x->abs_vs);
}

static product make_real(size_t n, size_t k, size_t m, int scale)
{
    product p = make(n, k, m, 1);
    for (size_t i = 0; i < n * k; i++) p.u[i] = ldexp(real(), scale);
    for (size_t i = 0; i < k * m; i++) p.v[i] = ldexp(real(), scale);
    assert_int_equal(sherd__gemm_f64(n, k, m, p.u, k, p.v, m, 0.0, p.y, m), SHERD_OK);
    return p;
}

static void masked_dot_products_skip_nonfinite_values_in_a_fixed_order(void **s)
{
    (void)s;
    double y[41], t[41];
    for (size_t n = 0; n <= 41; n++) {
        double lanes[8] = { 0 }, sizes[8] = { 0 }, size = 1.0;
        for (size_t i = 0; i < n; i++) {
            y[i] = real();
            t[i] = i % 5 == 3 ? 0.0 : draw() & 1 ? 1.0 : -1.0;
            if (i % 5 == 3) {
                y[i] = i % 2 ? NAN : -HUGE_VAL;
                continue;
            }
            lanes[i % 8] += y[i] * t[i];
            sizes[i % 8] += fabs(y[i]);
        }
        double want = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
                      ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
        double want_size = 1.0 + (((sizes[0] + sizes[4]) + (sizes[2] + sizes[6])) +
                                  ((sizes[1] + sizes[5]) + (sizes[3] + sizes[7])));
        double got = sherd__fv_dot_f64(y, t, n, &size);
        assert_true(got == want && size == want_size);
        assert_true(sherd__fv_dot_f64(y, t, n, NULL) == want);
    }
}

static void correct_float_products_pass_and_gross_errors_do_not(void **s)
{
    (void)s;
    static const size_t shapes[][3] = {
        { 1, 1, 1 }, { 3, 0, 4 }, { 200, 1, 90 }, { 60, 500, 70 }, { 400, 30, 3 }
    };
    static const int scales[] = { 0, 300, -500, -530 };
    for (size_t i = 0; i < 5; i++)
        for (size_t z = 0; z < 4; z++)
            for (int round = 0; round < 20; round++) {
                product p = make_real(shapes[i][0], shapes[i][1], shapes[i][2], scales[z]);
                weights x = weight_vectors(&p);
                weight_project(&p, &x);
                assert_true(weight_passes(&p, &x));
                size_t at = draw() % (p.n * p.m);
                if (scales[z] >= 0) { /* a single error cannot cancel */
                    p.y[at] += ldexp(1.0, 2 * scales[z]);
                    assert_false(weight_passes(&p, &x));
                }
                p.y[at] = round & 1 ? NAN : HUGE_VAL;
                assert_false(weight_passes(&p, &x));
                weight_forget(&x);
                drop(&p);
            }
}

static void rows_and_columns_with_nonfinite_values_are_left_out(void **s)
{
    (void)s;
    product p = make_real(20, 30, 25, 0);
    p.u[4 * 30 + 7] = NAN;
    p.u[9 * 30] = -HUGE_VAL;
    p.v[3 * 25 + 11] = HUGE_VAL;
    p.v[29 * 25 + 11] = NAN;
    assert_int_equal(sherd__gemm_f64(20, 30, 25, p.u, 30, p.v, 25, 0.0, p.y, 25), SHERD_OK);
    weights x = weight_vectors(&p);
    assert_int_equal(sherd__fv_mask_rows(p.u, 20, 30, 30, x.r), 2);
    x.s[11] = 0;
    assert_true(x.r[4] == 0 && x.r[9] == 0 && x.s[11] == 0 && x.r[0] != 0);
    weight_project(&p, &x);
    assert_true(weight_passes(&p, &x));
    p.y[5 * 25 + 12] += 1.0;
    assert_false(weight_passes(&p, &x));
    weight_forget(&x);
    drop(&p);
}

static void weights_have_random_signs_and_magnitudes_from_one_to_two(void **s)
{
    (void)s;
    enum { N = 20000 };
    static double t[N];
    double sum = 0, size = 0;
    sherd__fv_weights(&entropy, N, t);
    for (size_t i = 0; i < N; i++) {
        assert_true(fabs(t[i]) >= 1.0 && fabs(t[i]) < 2.0);
        sum += t[i];
        size += fabs(t[i]) - 1.5;
    }
    assert_true(fabs(sum) < 8 * sqrt(N));
    assert_true(fabs(size) < 2 * sqrt(N));
}

/* With weights of +-1, errors of equal size would cancel half of the time. */
static void errors_that_would_cancel_under_random_signs_do_not_pass(void **s)
{
    (void)s;
    product p = make_real(12, 9, 10, 0);
    for (int round = 0; round < 2000; round++) {
        weights x = weight_vectors(&p);
        weight_project(&p, &x);
        size_t i = draw() % p.n, j = draw() % p.m, l = (j + 1 + draw() % (p.m - 1)) % p.m;
        double e = round % 2 ? 1e-3 : -1e-3, before[2] = { p.y[i * p.m + j], p.y[i * p.m + l] };
        p.y[i * p.m + j] += 1e-3;
        p.y[i * p.m + l] += e;
        assert_false(weight_passes(&p, &x));
        p.y[i * p.m + j] = before[0];
        p.y[i * p.m + l] = before[1];
        weight_forget(&x);
    }
    drop(&p);
}

/* --- 127 bits -------------------------------------------------------------------------------- */

/* A slow product: double and add, bit by bit. */
static sherd__f127 slow_mul(sherd__f127 a, sherd__f127 b)
{
    sherd__f127 r = 0;
    for (int bit = 126; bit >= 0; bit--) {
        r = sherd__f127_add(r, r);
        if (b >> bit & 1) r = sherd__f127_add(r, a);
    }
    return r;
}

static void arithmetic_modulo_2_127_minus_1_is_correct(void **s)
{
    (void)s;
    const sherd__f127 q = ((sherd__f127)1 << 127) - 1;
    assert_true(sherd__f127_add(q - 1, 1) == 0);
    assert_true(sherd__f127_add(q - 1, q - 1) == q - 2);
    assert_true(sherd__f127_mul(q - 1, q - 1) == 1);
    assert_true(sherd__f127_mul((sherd__f127)1 << 126, 2) == 1);
    assert_true(sherd__f127_from(-1) == q - 1);
    for (int i = 0; i < 2000; i++) {
        sherd__f127 a = ((sherd__f127)draw() << 64 | draw()) % q,
                    b = ((sherd__f127)draw() << 64 | draw()) % q;
        assert_true(sherd__f127_mul(a, b) == slow_mul(a, b));
        assert_true(sherd__f127_mul(a, b) == sherd__f127_mul(b, a));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_operations_equal_128_bit_remainders),
        cmocka_unit_test(dot_products_are_exact_for_the_worst_values_and_every_length),
        cmocka_unit_test(values_that_are_not_integers_are_a_peer_error),
        cmocka_unit_test(draws_are_below_q_and_fill_the_range),
        cmocka_unit_test(values_that_are_not_below_the_modulus_are_drawn_again),
        cmocka_unit_test(correct_integer_products_pass),
        cmocka_unit_test(ten_thousand_corruptions_are_all_rejected),
        cmocka_unit_test(with_zero_vectors_any_answer_would_pass),
        cmocka_unit_test(masked_dot_products_skip_nonfinite_values_in_a_fixed_order),
        cmocka_unit_test(correct_float_products_pass_and_gross_errors_do_not),
        cmocka_unit_test(rows_and_columns_with_nonfinite_values_are_left_out),
        cmocka_unit_test(weights_have_random_signs_and_magnitudes_from_one_to_two),
        cmocka_unit_test(errors_that_would_cancel_under_random_signs_do_not_pass),
        cmocka_unit_test(arithmetic_modulo_2_127_minus_1_is_correct),
    };
    return cmocka_run_group_tests_name("crypto/freivalds", tests, start, NULL);
}
