/*
 * Freivalds' check: kernels against slow arithmetic, honest answers pass, corrupted ones do not.
 * link: -Wl,--wrap=sherd__fvp_answer_wide
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
#include "crypto/freivalds_internal.h"
#include "matrix/gemm.h"
#include "matrix/residue.h"

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

static sherd_entropy_seeded seeded;
static sherd_entropy entropy;

static int start(void **s)
{
    (void)s;
    entropy = sherd__entropy_seeded(&seeded, 20);
    return 0;
}

/* Tests draw much more than a check does: a congruence, not the entropy under test. */
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
    const uint64_t edge[] = {0, 1, 2, SHERD__F61 - 1, SHERD__F61 - 2, UINT64_C(1) << 60};
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

static void dots_are_exact_for_the_worst_values_and_every_length(void **s)
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

static void values_that_are_no_integers_are_the_peers_fault(void **s)
{
    (void)s;
    static const double bad[] = {NAN,     HUGE_VAL, -HUGE_VAL, 0.5,  0x1p53,
                                 -0x1p53, 1e300,    0x1p-1074, -1.25};
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
            memset(left, 0, sizeof left);
            assert_int_equal(sherd__f61_left(y, 12, 100, 100, t, left), SHERD_EINVAL);
            assert_int_equal(sherd__f61_right(y, 12, 100, 100, t, left), SHERD_EINVAL);
        }
}

static void draws_are_below_q_and_fill_the_range(void **s)
{
    (void)s;
    enum { N = 20000 };
    static uint64_t t[N];
    size_t eighth[8] = {0};
    sherd__f61_draw(&entropy, N, t);
    for (size_t i = 0; i < N; i++) {
        assert_true(t[i] < SHERD__F61);
        eighth[t[i] >> 58]++;
        if (i > 0) assert_true(t[i] != t[i - 1]);
    }
    for (int i = 0; i < 8; i++) assert_in_range(eighth[i], N / 8 - 300, N / 8 + 300);
    sherd__f61_draw(&entropy, 0, t);
}

/* A source whose first words must all be rejected. */
static void all_ones_then_zero(void *ctx, void *out, size_t len)
{
    size_t *calls = ctx;
    memset(out, (*calls)++ < 3 ? 0xff : 0, len);
}

static void what_is_not_below_the_modulus_is_drawn_again(void **s)
{
    (void)s;
    size_t calls = 0;
    sherd_entropy e = {all_ones_then_zero, &calls};
    uint64_t t[2] = {5, 5};
    sherd__f61_draw(&e, 2, t);
    assert_true(calls == 4 && t[0] == 0 && t[1] == 0);
    double r[2] = {5, 5};
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
    product p = {n, k, m, malloc(n * k * 8 + 8), malloc(k * m * 8 + 8), malloc(n * m * 8 + 8)};
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
    vectors x = {calloc(p->n + 1, 8), calloc(p->m + 1, 8), calloc(p->k + 1, 8), calloc(p->k + 1, 8),
                 0};
    if (!zero) {
        sherd__f61_draw(&entropy, p->n, x.r);
        sherd__f61_draw(&entropy, p->m, x.s);
    }
    /* U in two panels, as it is read. */
    size_t half = p->n / 2;
    assert_int_equal(sherd__f61_left(p->u, half, p->k, p->k, x.r, x.ru), SHERD_OK);
    assert_int_equal(sherd__f61_left(p->u + half * p->k, p->n - half, p->k, p->k, x.r + half, x.ru),
                     SHERD_OK);
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
    assert_int_equal(
        sherd__f61_answer(p->y + third * p->m, p->n - third, p->m, p->m, x->r + third, x->s, &acc),
        SHERD_OK);
    return acc == x->want;
}

static void honest_integer_products_pass(void **s)
{
    (void)s;
    static const size_t shapes[][3] = {{0, 3, 2},    {3, 0, 2},     {3, 2, 0},   {1, 1, 1},
                                       {2, 7, 1300}, {70, 600, 33}, {5000, 3, 2}};
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
        case 3: /* errors that a plain sum would not see */
            p.y[at] += 1;
            p.y[other] -= 1;
            break;
        case 4: /* two entries change places */
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

static void zero_vectors_would_accept_anything(void **s)
{
    (void)s;
    /* The control: it is r and s that do the work above. */
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
    weights x = {calloc(p->n + 1, 8), calloc(p->m + 1, 8), calloc(p->k + 1, 8),
               calloc(p->k + 1, 8), calloc(p->k + 1, 8), calloc(p->k + 1, 8)};
    sherd__fv_weights(&entropy, p->n, x.r);
    sherd__fv_weights(&entropy, p->m, x.s);
    return x;
}

static void weight_project(const product *p, const weights *x)
{
    memset(x->ru, 0, p->k * 8);
    memset(x->abs_ru, 0, p->k * 8);
    sherd__fv_left_f64(p->u, p->n, p->k, p->k, x->r, x->ru, x->abs_ru);
    sherd__fv_right_f64(p->v, p->k, p->m, p->m, x->s, x->vs, x->abs_vs);
}

static sherd__verdict weight_judge(const product *p, const weights *x)
{
    double rys = sherd__fv_answer_f64(p->y, p->n, p->m, p->m, x->r, x->s);
    return sherd__fv_judge_f64(rys, x->ru, x->vs, x->abs_ru, x->abs_vs, p->n, p->k, p->m);
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

static void masked_dots_skip_what_is_not_finite_in_a_fixed_order(void **s)
{
    (void)s;
    double y[41], t[41];
    for (size_t n = 0; n <= 41; n++) {
        double lanes[8] = {0}, sizes[8] = {0}, size = 1.0;
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

static void honest_float_products_pass_and_gross_errors_do_not(void **s)
{
    (void)s;
    static const size_t shapes[][3] = {
        {1, 1, 1}, {3, 0, 4}, {200, 1, 90}, {60, 500, 70}, {400, 30, 3}};
    static const int scales[] = {0, 300, -500, -530};
    for (size_t i = 0; i < 5; i++)
        for (size_t z = 0; z < 4; z++)
            for (int round = 0; round < 20; round++) {
                product p = make_real(shapes[i][0], shapes[i][1], shapes[i][2], scales[z]);
                weights x = weight_vectors(&p);
                weight_project(&p, &x);
                assert_int_equal(weight_judge(&p, &x), SHERD__ACCEPTED);
                size_t at = draw() % (p.n * p.m);
                if (scales[z] >= 0) { /* a single error cannot cancel */
                    p.y[at] += ldexp(1.0, 2 * scales[z]);
                    assert_int_equal(weight_judge(&p, &x), SHERD__REJECTED);
                }
                p.y[at] = round & 1 ? NAN : HUGE_VAL;
                assert_int_equal(weight_judge(&p, &x), SHERD__REJECTED);
                weight_forget(&x);
                drop(&p);
            }
}

static void rows_and_columns_that_are_not_finite_are_left_out(void **s)
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
    assert_int_equal(sherd__fv_mask_cols(p.v, 30, 25, 25, x.s), 1);
    assert_true(x.r[4] == 0 && x.r[9] == 0 && x.s[11] == 0 && x.r[0] != 0);
    weight_project(&p, &x);
    assert_int_equal(weight_judge(&p, &x), SHERD__ACCEPTED);
    p.y[5 * 25 + 12] += 1.0;
    assert_int_equal(weight_judge(&p, &x), SHERD__REJECTED);
    weight_forget(&x);
    drop(&p);
}

static void what_may_overflow_honestly_is_not_judged(void **s)
{
    (void)s;
    product p = make_real(4, 4, 4, 520);
    weights x = weight_vectors(&p);
    weight_project(&p, &x);
    assert_int_equal(weight_judge(&p, &x), SHERD__UNJUDGED);
    weight_forget(&x);
    drop(&p);
}

static void the_tolerance_is_as_documented(void **s)
{
    (void)s;
    const double one = 1.0, u = 0x1p-52; /* n = k = m = 1: three of them */
    assert_int_equal(sherd__fv_judge_f64(1.0 + 3 * u, &one, &one, &one, &one, 1, 1, 1),
                     SHERD__ACCEPTED);
    assert_int_equal(sherd__fv_judge_f64(1.0 + 4 * u, &one, &one, &one, &one, 1, 1, 1),
                     SHERD__REJECTED);
    assert_int_equal(sherd__fv_judge_f64(1.0 - 4 * u, &one, &one, &one, &one, 1, 1, 1),
                     SHERD__REJECTED);
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

/* Equal and opposite errors would cancel under weights of +-1 every other time. */
static void errors_that_would_cancel_under_signs_do_not_pass(void **s)
{
    (void)s;
    product p = make_real(12, 9, 10, 0);
    for (int round = 0; round < 2000; round++) {
        weights x = weight_vectors(&p);
        weight_project(&p, &x);
        size_t i = draw() % p.n, j = draw() % p.m, l = (j + 1 + draw() % (p.m - 1)) % p.m;
        double e = round % 2 ? 1e-3 : -1e-3, before[2] = {p.y[i * p.m + j], p.y[i * p.m + l]};
        p.y[i * p.m + j] += 1e-3;
        p.y[i * p.m + l] += e;
        assert_int_equal(weight_judge(&p, &x), SHERD__REJECTED);
        p.y[i * p.m + j] = before[0];
        p.y[i * p.m + l] = before[1];
        weight_forget(&x);
    }
    drop(&p);
}

/* --- 127 bits -------------------------------------------------------------------------------- */

/* The same product bit by bit: double and add. */
static sherd__f127 slow_mul(sherd__f127 a, sherd__f127 b)
{
    sherd__f127 r = 0;
    for (int bit = 126; bit >= 0; bit--) {
        r = sherd__f127_add(r, r);
        if (b >> bit & 1) r = sherd__f127_add(r, a);
    }
    return r;
}

static void arithmetic_modulo_2_127_minus_1_is_right(void **s)
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

/* --- residues -------------------------------------------------------------------------------- */

/* Processors with wide vectors have kernels of their own: what is `plain` goes without. */
static bool plain;

bool __real_sherd__fvp_answer_wide(const uint8_t *packed, size_t rows, size_t cols,
                                   const double *const r[2], const double *const s[2], uint32_t p,
                                   uint32_t *most, uint32_t out[2]);
bool __wrap_sherd__fvp_answer_wide(const uint8_t *packed, size_t rows, size_t cols,
                                   const double *const r[2], const double *const s[2], uint32_t p,
                                   uint32_t *most, uint32_t out[2]);

bool __wrap_sherd__fvp_answer_wide(const uint8_t *packed, size_t rows, size_t cols,
                                   const double *const r[2], const double *const s[2], uint32_t p,
                                   uint32_t *most, uint32_t out[2])
{
    return !plain && __real_sherd__fvp_answer_wide(packed, rows, cols, r, s, p, most, out);
}

static int set_plain(void **s)
{
    (void)s;
    plain = true;
    return 0;
}

static int set_wide(void **s)
{
    (void)s;
    plain = false;
    return 0;
}

#define UNIT_TEST_PLAIN(f) {#f " (plain)", f, set_plain, set_wide, NULL}

/* Few are drawn in another way than many. */
static void weights_are_uniform_however_many_are_drawn(void **s)
{
    (void)s;
    static const size_t lengths[] = {0, 1, 63, 64, 65, 1000, 3000};
    static double x[3001];
    uint32_t count[11] = {0}, again = 0, all = 0;
    for (int i = 0; i < 300; i++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            size_t n = lengths[k];
            x[n] = 0.25;
            sherd__fvp_draw(&entropy, 11, n, x);
            assert_true(x[n] == 0.25);
            assert_true(sherd__residue_canonical(x, n, 11));
            for (size_t j = 0; j < n; j++) count[(int)x[j] + 5]++;
            for (size_t j = 1; j < n; j++) again += x[j] == x[j - 1];
            all += (uint32_t)n;
        }
    double chi = 0, each = all / 11.0;
    for (int i = 0; i < 11; i++) chi += (count[i] - each) * (count[i] - each) / each;
    assert_true(chi < 60); /* ten degrees of freedom: 4e-9 */
    assert_true(again > 0.98 * each && again < 1.02 * each);
    sherd__fvp_draw(&entropy, 8388593, 1500, x);
    sherd__fvp_draw(&entropy, 8388593, 1500, x + 1500);
    assert_memory_not_equal(x, x + 1500, 1500 * sizeof *x);
}

static void packed_residues_are_checked_two_trials_at_once(void **s)
{
    (void)s;
    static const uint32_t primes[] = {5, 5931641, 8388593};
    for (size_t q = 0; q < 3; q++) {
        enum { N = 1300, K = 21, M = 530 };
        uint32_t p = primes[q], left[2], right[2];
        double *u = malloc(N * K * 8), *v = malloc(K * M * 8), *y = malloc(N * M * 8);
        double *r[2], *t[2], ru[2][K], vs[2][K];
        uint8_t *packed = malloc(3 * N * M);
        sherd__fvp_draw(&entropy, p, N * K, u);
        sherd__fvp_draw(&entropy, p, K * M, v);
        assert_true(sherd__residue_canonical(u, N * K, p));
        assert_int_equal(sherd__residue_gemm(p, N, K, M, u, K, v, M, y, M), SHERD_OK);
        for (int i = 0; i < 2; i++) {
            r[i] = malloc(N * 8);
            t[i] = malloc(M * 8);
            sherd__fvp_draw(&entropy, p, N, r[i]);
            sherd__fvp_draw(&entropy, p, M, t[i]);
        }
        double *const to[2] = {ru[0], ru[1]}, *const by[2] = {vs[0], vs[1]};
        const double *const rs[2] = {r[0], r[1]}, *const ts[2] = {t[0], t[1]};
        size_t since = 0;
        memset(ru, 0, sizeof ru);
        for (size_t at = 0, rows; at < N; at += rows) { /* panels of 1, 2, 3, ... rows */
            const double *const part[2] = {r[0] + at, r[1] + at};
            rows = at % 9 + 1 < N - at ? at % 9 + 1 : N - at;
            sherd__fvp_left(u + at * K, rows, K, K, part, p, to, &since);
        }
        for (int i = 0; i < 2; i++) sherd__residue_from_f64(ru[i], K, p, ru[i]);
        sherd__fvp_right(v, K, M, M, ts, p, by);
        for (int i = 0; i < 2; i++) {
            assert_true(sherd__residue_canonical(vs[i], K, p));
            right[i] = sherd__fvp_dot(ru[i], vs[i], K, p);
        }
        for (int wrong = 0; wrong < 3; wrong++) {
            /* wrong 1: one off in one place; 2: not a residue at all. */
            double was = y[777 * M + 5];
            if (wrong == 1) y[777 * M + 5] += was < 0 ? 1 : -1;
            sherd__residue_pack(y, N * M, p, packed);
            y[777 * M + 5] = was;
            if (wrong == 2) memset(packed + 3 * (1299 * M + M - 1), 0xff, 3);
            int err = sherd__fvp_answer(packed, N, M, rs, ts, p, left);
            assert_int_equal(err, wrong == 2 ? SHERD_EFRAME : SHERD_OK);
            if (wrong == 0) assert_true(left[0] == right[0] && left[1] == right[1]);
            if (wrong == 1 && p > 5) assert_true(left[0] != right[0] && left[1] != right[1]);
        }
        for (int i = 0; i < 2; i++) free(r[i]), free(t[i]);
        free(u), free(v), free(y), free(packed);
    }
}

/* Of one sign and odd more often than not, so that a sum beyond 2^53 would show. */
/* What is congruent to the right answer would pass the check: it is a second form of one number. */
static void a_residue_not_below_its_prime_is_refused_wherever_it_stands(void **s)
{
    (void)s;
    enum { N = 9 };
    static const size_t widths[] = {1, 7, 600}; /* short rows together, long ones by themselves */
    static double zero[N * 600];
    const uint32_t p = 5931641;
    for (size_t w = 0; w < 3; w++) {
        size_t m = widths[w], last = N * m - 1;
        uint8_t *packed = calloc(N * m, 3);
        const double *const none[2] = {zero, zero};
        uint32_t out[2];
        for (size_t at = 0; at <= last; at += at + 1 < last ? m : 1) {
            for (uint32_t odd = p - 1; odd <= p + 1; odd++) {
                for (int i = 0; i < 3; i++) packed[3 * at + (size_t)i] = (uint8_t)(odd >> 8 * i);
                assert_int_equal(sherd__fvp_answer(packed, N, m, none, none, p, out),
                                 odd < p ? SHERD_OK : SHERD_EFRAME);
            }
            memset(packed + 3 * at, 0, 3);
        }
        free(packed);
    }
}

static void residue_sums_stay_exact_for_the_largest_values(void **s)
{
    (void)s;
    enum { N = 6001 };
    static double y[N], v[N], ones[N];
    static uint8_t packed[3 * N];
    const uint32_t p = 8388593;
    const double *const by[2] = {v, y}, *const unit[2] = {ones, ones};
    double acc[2] = {0.0, 0.0}, *const to[2] = {acc, acc + 1};
    uint64_t sum[2] = {0, 0};
    uint32_t out[2];
    size_t since = 0;
    for (size_t i = 0; i < N; i++) {
        y[i] = (double)((p - 1) / 2 - draw() % 32);
        v[i] = (double)((p - 1) / 2 - draw() % 32);
        ones[i] = 1.0;
        sum[0] = (sum[0] + (uint64_t)y[i] * (uint64_t)v[i]) % p;
        sum[1] = (sum[1] + (uint64_t)y[i] * (uint64_t)y[i]) % p;
    }
    sherd__residue_pack(y, N, p, packed);
    assert_int_equal(sherd__fvp_answer(packed, 1, N, unit, by, p, out), SHERD_OK);
    assert_true(out[0] == sum[0] && out[1] == sum[1]);
    assert_int_equal(sherd__fvp_answer(packed, N, 1, by, unit, p, out), SHERD_OK);
    assert_true(out[0] == sum[0] && out[1] == sum[1]);
    for (size_t i = 0; i < 3 * N; i++) packed[i] = (uint8_t)((p - 1) >> i % 3 * 8);
    for (size_t i = 0; i < N; i++) ones[i] = (p - 1) / 2; /* and the largest as they travel */
    for (size_t rows = 1; rows <= N; rows += N - 1) {
        const double *const most[2] = {ones, ones};
        uint64_t h = (p - 1) / 2, want = (p - h * N % p) % p * h % p;
        assert_int_equal(sherd__fvp_answer(packed, rows, N / rows, most, most, p, out), SHERD_OK);
        assert_true(out[0] == want && out[1] == want);
    }
    assert_int_equal(sherd__fvp_dot(y, v, N, p), sum[0]);
    sherd__fvp_left(y, N, 1, 1, by, p, to, &since);
    for (int t = 0; t < 2; t++) {
        sherd__residue_from_f64(to[t], 1, p, to[t]);
        assert_true(acc[t] == (double)(sum[t] > p / 2 ? (int64_t)sum[t] - p : (int64_t)sum[t]));
    }
}

static int64_t balanced(int64_t x, uint32_t p)
{
    int64_t q = p, h = (q - 1) / 2;
    x %= q;
    return x > h ? x - q : x < -h ? x + q : x;
}

/* Every shape around the sizes at which kernels change their way, against int64. */
static void residue_kernels_equal_int64_for_every_shape(void **s)
{
    (void)s;
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 511, 512, 513, 1030};
    enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 1030 };
    const uint32_t p = 8388593;
    const double h = (p - 1) / 2;
    double *x = malloc(MOST * MOST * 8), *v = malloc(6 * MOST * 8);
    uint8_t *packed = malloc(3 * MOST * MOST);
    for (size_t i = 0; i < MOST * MOST; i++) x[i] = i % 3 ? whole((int64_t)h) : i % 2 ? h : -h;
    for (size_t i = 0; i < 4 * MOST; i++) v[i] = i % 3 ? whole((int64_t)h) : h;
    const double *const r[2] = {v, v + MOST}, *const t[2] = {v + 2 * MOST, v + 3 * MOST};
    double *const out[2] = {v + 4 * MOST, v + 5 * MOST};
    for (size_t shape = 0; shape < SIZES * SIZES; shape++) {
        size_t rows = sizes[shape / SIZES], cols = sizes[shape % SIZES], since = 0;
        uint32_t got[2] = {7, 7};
        for (size_t i = 0; i < rows; i++)
            sherd__residue_pack(x + i * MOST, cols, p, packed + 3 * i * cols);
        assert_int_equal(sherd__fvp_answer(packed, rows, cols, r, t, p, got), SHERD_OK);
        sherd__fvp_right(x, rows, cols, MOST, t, p, out);
        for (int k = 0; k < 2; k++) {
            int64_t all = 0;
            for (size_t i = 0; i < rows; i++) {
                int64_t sum = 0;
                for (size_t j = 0; j < cols; j++)
                    sum = (sum + (int64_t)x[i * MOST + j] * (int64_t)t[k][j]) % p;
                assert_true(out[k][i] == (double)balanced(sum, p));
                all = (all + balanced(sum, p) * (int64_t)r[k][i]) % p;
            }
            assert_true((int64_t)got[k] == (all < 0 ? all + p : all));
            memset(out[k], 0, cols * 8);
        }
        sherd__fvp_left(x, rows, cols, MOST, r, p, out, &since);
        for (int k = 0; k < 2; k++) {
            sherd__residue_from_f64(out[k], cols, p, out[k]);
            for (size_t j = 0; j < cols; j += 1 + cols / 9) {
                int64_t sum = 0;
                for (size_t i = 0; i < rows; i++)
                    sum = (sum + (int64_t)x[i * MOST + j] * (int64_t)r[k][i]) % p;
                assert_true(out[k][j] == (double)balanced(sum, p));
            }
        }
    }
    free(x), free(v), free(packed);
}

static void several_primes_at_once_equal_one_after_the_other(void **s)
{
    (void)s;
    enum { N = 1100, K = 37, LD = 40, MOST = 4 };
    double *x = malloc(N * LD * 8), *r = malloc(2 * MOST * N * 8);
    double one[2 * MOST][K], many[2 * MOST][K];
    for (size_t i = 0; i < N * LD; i++) x[i] = i % 3 ? whole(2965000) : 2965000;
    for (size_t i = 0; i < 2 * MOST * N; i++) r[i] = i % 3 ? whole(2965000) : 2965000;
    for (size_t len = 0; len <= MOST; len++) {
        sherd__fvp_sum sum[MOST];
        size_t together = 0;
        memset(one, 0, sizeof one);
        memset(many, 0, sizeof many);
        for (size_t q = 0; q < len; q++) {
            const double *const both[2] = {r + 2 * q * N, r + (2 * q + 1) * N};
            double *const to[2] = {one[2 * q], one[2 * q + 1]};
            size_t since = 0;
            sherd__fvp_left(x, N, K, LD, both, sherd__primes_default.p[q], to, &since);
            sum[q] = (sherd__fvp_sum){sherd__primes_default.p[q], {both[0], both[1]},
                                      {many[2 * q], many[2 * q + 1]}};
        }
        for (size_t at = 0, rows; at < N; at += rows) { /* panels of 1, 2, 3, ... rows */
            rows = at % 9 + 1 < N - at ? at % 9 + 1 : N - at;
            sherd__fvp_left_many(x + at * LD, rows, K, LD, sum, len, &together);
            for (size_t q = 0; q < len; q++) sum[q].r[0] += rows, sum[q].r[1] += rows;
        }
        for (size_t i = 0; i < 2 * len; i++) {
            sherd__residue_from_f64(one[i], K, sherd__primes_default.p[i / 2], one[i]);
            sherd__residue_from_f64(many[i], K, sherd__primes_default.p[i / 2], many[i]);
            assert_memory_equal(one[i], many[i], sizeof one[i]);
        }
    }
    free(x), free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_operations_equal_128_bit_remainders),
        cmocka_unit_test(dots_are_exact_for_the_worst_values_and_every_length),
        cmocka_unit_test(values_that_are_no_integers_are_the_peers_fault),
        cmocka_unit_test(draws_are_below_q_and_fill_the_range),
        cmocka_unit_test(what_is_not_below_the_modulus_is_drawn_again),
        cmocka_unit_test(honest_integer_products_pass),
        cmocka_unit_test(ten_thousand_corruptions_are_all_rejected),
        cmocka_unit_test(zero_vectors_would_accept_anything),
        cmocka_unit_test(masked_dots_skip_what_is_not_finite_in_a_fixed_order),
        cmocka_unit_test(honest_float_products_pass_and_gross_errors_do_not),
        cmocka_unit_test(rows_and_columns_that_are_not_finite_are_left_out),
        cmocka_unit_test(what_may_overflow_honestly_is_not_judged),
        cmocka_unit_test(the_tolerance_is_as_documented),
        cmocka_unit_test(weights_have_random_signs_and_magnitudes_from_one_to_two),
        cmocka_unit_test(errors_that_would_cancel_under_signs_do_not_pass),
        cmocka_unit_test(arithmetic_modulo_2_127_minus_1_is_right),
        cmocka_unit_test(weights_are_uniform_however_many_are_drawn),
        cmocka_unit_test(packed_residues_are_checked_two_trials_at_once),
        UNIT_TEST_PLAIN(packed_residues_are_checked_two_trials_at_once),
        cmocka_unit_test(a_residue_not_below_its_prime_is_refused_wherever_it_stands),
        UNIT_TEST_PLAIN(a_residue_not_below_its_prime_is_refused_wherever_it_stands),
        cmocka_unit_test(residue_sums_stay_exact_for_the_largest_values),
        UNIT_TEST_PLAIN(residue_sums_stay_exact_for_the_largest_values),
        cmocka_unit_test(residue_kernels_equal_int64_for_every_shape),
        cmocka_unit_test(several_primes_at_once_equal_one_after_the_other),
        UNIT_TEST_PLAIN(residue_kernels_equal_int64_for_every_shape),
    };
    return cmocka_run_group_tests_name("crypto/freivalds", tests, start, NULL);
}
