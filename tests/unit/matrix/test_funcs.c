/* Element-wise functions: errors below one ulp compared with long double, numpy's edge cases, and
 * the same bits from every instruction set. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "matrix/funcs.h"

#define N 60000

enum { LOG = SHERD_OP_EXP + 1 }; /* not an operation; tested with them */

static uint64_t state = 13;

static double unit(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

/* Under valgrind, a long double has the precision of a double and cannot serve as an oracle. */
static bool long_double_is_wider(void)
{
    volatile long double one = 1.0L, tiny = 0x1p-60L;
    return one + tiny != one;
}

static long double sigmoid(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

/* Returns |y - t| in units of the last place of t, denormals included. */
static double ulps(double y, long double t)
{
    int e;
    double r = (double)t;
    if (isinf(r) || isinf(y)) return r == y ? 0.0 : 1e9;
    (void)frexp(r, &e);
    if (e < -1021 || r == 0.0) e = -1021;
    return (double)(fabsl((long double)y - t) / ldexpl(1.0L, e - 53));
}

static const struct subject {
    void (*f)(const double *, size_t, double *);
    long double (*truth)(long double);
    double low, high;
    bool powers; /* the arguments are 2^u with u in [low, high) */
} subjects[] = {
    { sherd__exp_f64, expl, -745.2, 709.8, false },
    { sherd__exp_f64, expl, -1, 1, false },
    { sherd__exp_f64, expl, -745.2, -708, false },
    { sherd__exp_f64, expl, -60, -1, true },
    { sherd__tanh_f64, tanhl, -22, 22, false },
    { sherd__tanh_f64, tanhl, -0.6, 0.6, false },
    { sherd__tanh_f64, tanhl, -1074, 5, true },
    { sherd__tanh_f64, tanhl, -35, -20, true },
    { sherd__sigmoid_f64, sigmoid, -746, 40, false },
    { sherd__sigmoid_f64, sigmoid, -3, 3, false },
    { sherd__sigmoid_f64, sigmoid, -746, -700, false },
    { sherd__sigmoid_f64, sigmoid, -60, 0, true },
    { sherd__log_f64, logl, -1074, 1024, true },
    { sherd__log_f64, logl, -0.6, 0.6, true },
    { sherd__log_f64, logl, 0.99, 1.01, false },
};

static void functions_are_within_one_ulp(void **s)
{
    (void)s;
    if (!long_double_is_wider()) skip();
    static double x[N], y[N];
    for (size_t t = 0; t < sizeof subjects / sizeof *subjects; t++) {
        const struct subject *f = &subjects[t];
        for (size_t i = 0; i < N; i++) {
            double u = f->low + (f->high - f->low) * unit();
            x[i] = f->powers ? exp2(u) : u;
        }
        f->f(x, N, y);
        for (size_t i = 0; i < N; i++)
            if (!(ulps(y[i], f->truth(x[i])) <= 1.0))
                fail_msg("case %zu: f(%a) = %a is %g ulp off", t, x[i], y[i],
                         ulps(y[i], f->truth(x[i])));
    }
}

static void every_instruction_set_gives_the_same_bits(void **s)
{
    (void)s;
    enum { M = 4099 };
    static double x[M], b[M], first[M], y[M];
    for (size_t i = 0; i < M; i++) {
        uint64_t bits = (uint64_t)(unit() * 0x1p53) << 11 ^ (uint64_t)(unit() * 0x1p53);
        if (i % 3 == 0) memcpy(&x[i], &bits, 8); /* any bits, NaN payloads included */
        else x[i] = (unit() - 0.5) * (i % 3 == 1 ? 1600 : 8);
        b[i] = i % 17 == 0 ? NAN : x[(i * 7) % (i + 1)];
    }
    for (uint32_t op = SHERD_OP_SIGMOID; op <= LOG; op++) {
        for (unsigned level = 1; level <= 3; level++) {
            if (!sherd__funcs_force(level)) continue;
            double *out = level == 1 ? first : y;
            memcpy(out, x, sizeof x); /* in place */
            if (op == LOG) sherd__log_f64(out, M, out);
            else
                assert_int_equal(sherd__map_f64(op, out, sherd__map_arity(op) == 2 ? b : NULL, M,
                                                out),
                                 SHERD_OK);
            if (level > 1) assert_memory_equal(first, y, sizeof y);
        }
        assert_true(sherd__funcs_force(0));
        for (size_t from = 0; from < 9; from++) /* the bits depend on neither position nor length */
            for (size_t n = 0; n < 20; n++) {
                if (op == LOG) sherd__log_f64(x + from, n, y);
                else
                    assert_int_equal(sherd__map_f64(op, x + from,
                                                    sherd__map_arity(op) == 2 ? b + from : NULL, n,
                                                    y),
                                     SHERD_OK);
                assert_memory_equal(y, first + from, n * 8);
            }
    }
    assert_false(sherd__funcs_force(4));
}

static double one(uint32_t op, double a)
{
    double y;
    assert_int_equal(sherd__map_f64(op, &a, NULL, 1, &y), SHERD_OK);
    return y;
}

static double two(uint32_t op, double a, double b)
{
    double y;
    assert_int_equal(sherd__map_f64(op, &a, &b, 1, &y), SHERD_OK);
    return y;
}

static void edge_cases_equal_those_of_numpy(void **s)
{
    (void)s;
    const double inf = HUGE_VAL, tiny = 0x1p-1074;
    assert_true(one(SHERD_OP_EXP, 800) == inf && one(SHERD_OP_EXP, -800) == 0 &&
                one(SHERD_OP_EXP, inf) == inf);
    assert_true(one(SHERD_OP_EXP, -inf) == 0 && one(SHERD_OP_EXP, 0.0) == 1 &&
                one(SHERD_OP_EXP, -0.0) == 1);
    assert_true(one(SHERD_OP_EXP, tiny) == 1 && isnan(one(SHERD_OP_EXP, NAN)));
    assert_true(one(SHERD_OP_EXP, 0x1.62e42fefa39efp9) < inf &&
                one(SHERD_OP_EXP, 0x1.62e42fefa39fp9) == inf);
    assert_true(one(SHERD_OP_SIGMOID, 800) == 1 && one(SHERD_OP_SIGMOID, -800) == 0);
    assert_true(one(SHERD_OP_SIGMOID, inf) == 1 && one(SHERD_OP_SIGMOID, -inf) == 0);
    assert_true(one(SHERD_OP_SIGMOID, 0) == 0.5 && one(SHERD_OP_SIGMOID, -tiny) == 0.5);
    assert_true(one(SHERD_OP_SIGMOID, -740) > 0 && isnan(one(SHERD_OP_SIGMOID, NAN)));
    assert_true(one(SHERD_OP_TANH, 800) == 1 && one(SHERD_OP_TANH, -800) == -1 &&
                one(SHERD_OP_TANH, inf) == 1);
    assert_true(one(SHERD_OP_TANH, -inf) == -1 && isnan(one(SHERD_OP_TANH, NAN)));
    assert_true(signbit(one(SHERD_OP_TANH, -0.0)) && !signbit(one(SHERD_OP_TANH, 0.0)));
    assert_true(one(SHERD_OP_TANH, -tiny) == -tiny && one(SHERD_OP_TANH, 0x1p-1030) == 0x1p-1030);
    assert_true(one(SHERD_OP_RELU, -3) == 0 && one(SHERD_OP_RELU, 3) == 3 &&
                one(SHERD_OP_RELU, inf) == inf);
    assert_true(one(SHERD_OP_RELU, -inf) == 0 && isnan(one(SHERD_OP_RELU, NAN)) &&
                one(SHERD_OP_RELU, tiny) == tiny);
    assert_true(one(SHERD_OP_SQUARE, -3) == 9 && one(SHERD_OP_SQUARE, 1e200) == inf &&
                isnan(one(SHERD_OP_SQUARE, NAN)));
    assert_true(two(SHERD_OP_MINUS, 5, 3) == 2 && isnan(two(SHERD_OP_MINUS, inf, inf)));
    assert_true(two(SHERD_OP_TIMES, -5, 3) == -15 && isnan(two(SHERD_OP_TIMES, inf, 0)));
    double x[5] = { 0.0, -1.0, inf, NAN, 1.0 }, y[5];
    sherd__log_f64(x, 5, y);
    assert_true(y[0] == -inf && isnan(y[1]) && y[2] == inf && isnan(y[3]) && y[4] == 0.0);
}

static void every_nan_result_has_the_same_bits(void **s)
{
    (void)s;
    const uint64_t quiet = UINT64_C(0x7ff8000000000000), payload = UINT64_C(0xfff7000000000123);
    double odd;
    memcpy(&odd, &payload, 8);
    for (uint32_t op = SHERD_OP_SIGMOID; op <= SHERD_OP_EXP; op++) {
        double y = sherd__map_arity(op) == 2 ? two(op, 1.0, odd) : one(op, odd);
        assert_memory_equal(&y, &quiet, 8);
    }
    double y = two(SHERD_OP_MINUS, HUGE_VAL, HUGE_VAL);
    assert_memory_equal(&y, &quiet, 8);
}

static void sigmoid_and_tanh_are_monotone_and_symmetric(void **s)
{
    (void)s;
    static double x[N], y[N], z[N];
    for (size_t i = 0; i < N; i++) x[i] = -30 + 60.0 * (double)i / N;
    sherd__tanh_f64(x, N, y);
    for (size_t i = 0; i < N; i++) x[i] = -x[i];
    sherd__tanh_f64(x, N, z);
    for (size_t i = 0; i < N; i++) assert_true(y[i] == -z[i] && fabs(y[i]) <= 1.0);
    for (size_t i = 1; i < N; i++) assert_true(y[i] >= y[i - 1]);
}

static void operations_are_found_by_number_and_name(void **s)
{
    (void)s;
    double x[2] = { 1, 2 }, y[2];
    static const struct {
        sherd_op op;
        const char *name;
    } all[] = { { SHERD_OP_PRODUCT, "dot" },    { SHERD_OP_SIGMOID, "sigmoid" },
                { SHERD_OP_MINUS, "minus" },    { SHERD_OP_SQUARE, "square" },
                { SHERD_OP_TIMES, "multiply" }, { SHERD_OP_RELU, "relu" },
                { SHERD_OP_TANH, "tanh" },      { SHERD_OP_EXP, "exp" } };
    unsigned named = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_string_equal(sherd_op_name(all[i].op), all[i].name);
        assert_int_equal(sherd_op_find(all[i].name), all[i].op);
    }
    for (unsigned op = 0; op <= LOG; op++) named += sherd_op_name((sherd_op)op) != NULL;
    assert_int_equal(named, sizeof all / sizeof *all);
    assert_int_equal(sherd_op_find("relux"), 0);
    assert_int_equal(sherd_op_find(""), 0);
    assert_null(sherd_op_name(2));
    assert_null(sherd_op_name((sherd_op)LOG));
    assert_int_equal(sherd__map_arity(15), 0);
    assert_int_equal(sherd__map_arity(UINT32_MAX), 0);
    assert_int_equal(sherd__map_f64(1, x, NULL, 2, y), SHERD_EINVAL);
    assert_int_equal(sherd__map_f64(SHERD_OP_MINUS, x, NULL, 2, y), SHERD_EINVAL);
    assert_int_equal(sherd__map_f64(SHERD_OP_EXP, x, x, 2, y), SHERD_EINVAL);
}

/* ---- floats ---------------------------------------------------------------------------------- */

static const struct single {
    void (*f)(const float *, size_t, float *);
    long double (*truth)(long double);
    float low, high;
    bool powers;
} singles[] = {
    { sherd__exp_f32, expl, -104, 89, false },     { sherd__exp_f32, expl, -1, 1, false },
    { sherd__exp_f32, expl, -40, 0, true },        { sherd__tanh_f32, tanhl, -12, 12, false },
    { sherd__tanh_f32, tanhl, -149, 4, true },     { sherd__sigmoid_f32, sigmoid, -104, 30, false },
    { sherd__sigmoid_f32, sigmoid, -3, 3, false },
};

static double ulps32(float y, long double t)
{
    int e;
    float r = (float)t;
    if (isinf(r) || isinf(y)) return r == y ? 0.0 : 1e9;
    (void)frexpf(r, &e);
    if (e < -125 || r == 0.0f) e = -125;
    return (double)(fabsl((long double)y - t) / ldexpl(1.0L, e - 24));
}

static void functions_of_floats_are_almost_correctly_rounded(void **s)
{
    (void)s;
    if (!long_double_is_wider()) skip();
    static float x[N], y[N];
    for (size_t t = 0; t < sizeof singles / sizeof *singles; t++) {
        const struct single *f = &singles[t];
        for (size_t i = 0; i < N; i++) {
            float u = f->low + (f->high - f->low) * (float)unit();
            x[i] = f->powers ? exp2f(u) : u;
        }
        f->f(x, N, y);
        for (size_t i = 0; i < N; i++)
            if (!(ulps32(y[i], f->truth((long double)x[i])) <= 0.501))
                fail_msg("case %zu: f(%a) = %a is %g ulp off", t, (double)x[i], (double)y[i],
                         ulps32(y[i], f->truth((long double)x[i])));
    }
}

static void every_instruction_set_gives_the_same_bits_for_floats(void **s)
{
    (void)s;
    enum { M = 4099 };
    static float x[M], first[M], y[M];
    static void (*const all[])(const float *, size_t, float *) = { sherd__exp_f32, sherd__tanh_f32,
                                                                   sherd__sigmoid_f32,
                                                                   sherd__relu_f32 };
    for (size_t i = 0; i < M; i++) {
        uint32_t bits = (uint32_t)(unit() * 0x1p32);
        if (i % 3 == 0) memcpy(&x[i], &bits, 4); /* any bits, NaN payloads included */
        else x[i] = (float)(unit() - 0.5) * (i % 3 == 1 ? 300 : 8);
    }
    for (size_t q = 0; q < 4; q++) {
        for (unsigned level = 1; level <= 3; level++) {
            if (!sherd__funcs_force(level)) continue;
            float *out = level == 1 ? first : y;
            memcpy(out, x, sizeof x);
            all[q](out, M, out);
            if (level > 1) assert_memory_equal(first, y, sizeof y);
        }
        assert_true(sherd__funcs_force(0));
        for (size_t from = 0; from < 9; from++)
            for (size_t n = 0; n < 40; n++) {
                all[q](x + from, n, y);
                assert_memory_equal(y, first + from, n * 4);
            }
    }
}

static void edge_cases_of_floats_equal_those_of_numpy(void **s)
{
    (void)s;
    const float in[] = { NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1000, -1000, 0x1p-149f };
    float y[8];
    sherd__exp_f32(in, 8, y);
    assert_true(isnan(y[0]) && y[1] == INFINITY && y[2] == 0 && y[3] == 1 && y[4] == 1);
    assert_true(y[5] == INFINITY && y[6] == 0 && y[7] == 1);
    sherd__tanh_f32(in, 8, y);
    assert_true(isnan(y[0]) && y[1] == 1 && y[2] == -1 && y[3] == 0 && !signbit(y[3]));
    assert_true(y[4] == 0 && signbit(y[4]) && y[5] == 1 && y[6] == -1 && y[7] == 0x1p-149f);
    sherd__sigmoid_f32(in, 8, y);
    assert_true(isnan(y[0]) && y[1] == 1 && y[2] == 0 && y[3] == 0.5f && y[5] == 1 && y[6] == 0);
    sherd__relu_f32(in, 8, y);
    assert_true(isnan(y[0]) && y[1] == INFINITY && y[2] == 0 && y[5] == 1000 && y[6] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_within_one_ulp),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(edge_cases_equal_those_of_numpy),
        cmocka_unit_test(every_nan_result_has_the_same_bits),
        cmocka_unit_test(sigmoid_and_tanh_are_monotone_and_symmetric),
        cmocka_unit_test(operations_are_found_by_number_and_name),
        cmocka_unit_test(functions_of_floats_are_almost_correctly_rounded),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits_for_floats),
        cmocka_unit_test(edge_cases_of_floats_equal_those_of_numpy),
    };
    return cmocka_run_group_tests_name("matrix/funcs", tests, NULL, NULL);
}
