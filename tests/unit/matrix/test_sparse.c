/*
 * Sparse times dense compared with the loop that defines it, bit for bit: a multiplication and an
 * addition in ascending order are guaranteed, on any CPU and with or without scratch memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/rand.h"
#include "matrix/sparse.h"

static sherd__seeded state_;
static sherd__entropy rng;

static uint64_t below(uint64_t n)
{
    return sherd__entropy_below(&rng, n);
}

static double real(void)
{
    return ((double)below(UINT64_C(1) << 53) - 0x1p52) / 0x1p50;
}

static void check(size_t n, size_t k, size_t m, unsigned per_cent, bool add, bool roomy)
{
    size_t ldb = m + below(3), ldc = m + below(3), entries = 0;
    uint32_t *count = calloc(n + 1, 4), *index = calloc(n * k + 1, 4);
    double *value = calloc(n * k + 1, 8), *b = calloc(k * ldb + 1, 8),
           *c = malloc((n * ldc + 1) * 8);
    double *want = malloc((n * ldc + 1) * 8), *room = malloc((SHERD__SPARSE_ROOM(k) + 1) * 8);
    for (size_t i = 0; i < k * ldb; i++) b[i] = real();
    for (size_t i = 0; i < n * ldc; i++) c[i] = want[i] = real();
    for (size_t i = 0; i < n; i++) {
        size_t first = entries;
        for (uint32_t x = 0; x < k; x++)
            if (below(100) < per_cent) index[entries] = x, value[entries++] = real();
        count[i] = (uint32_t)(entries - first);
        for (size_t j = 0; j < m; j++) {
            double sum = add ? want[i * ldc + j] : 0;
            for (size_t e = first; e < entries; e++) {
                double product = value[e] * b[index[e] * ldb + j];
                sum += product;
            }
            want[i * ldc + j] = sum;
        }
    }
    sherd__sparse_f64(n, k, m, count, index, value, b, ldb, add, c, ldc, roomy ? room : NULL);
    assert_memory_equal(c, want, n * ldc * 8); /* the memory between the rows included */
    free(count), free(index), free(value), free(b), free(c), free(want), free(room);
}

static void the_result_has_the_bits_of_the_loop(void **state)
{
    (void)state;
    static const size_t sizes[][3] = { { 0, 3, 3 },    { 3, 0, 3 },  { 3, 3, 0 },   { 1, 1, 1 },
                                       { 5, 9, 7 },    { 7, 20, 8 }, { 9, 33, 31 }, { 9, 33, 32 },
                                       { 40, 50, 75 }, { 3, 5, 200 } };
    for (unsigned round = 0; round < 240; round++) {
        const size_t *s = sizes[round % 10];
        check(s[0], s[1], s[2], (const unsigned[]){ 0, 3, 30, 100 }[round / 10 % 4], round & 1,
              round & 2);
    }
}

static void sparse_products_pay_below_a_density_that_falls_with_threads(void **state)
{
    (void)state;
    assert_true(sherd__sparse_pays(0, 10, 10, 1));
    assert_true(sherd__sparse_pays(29, 10, 10, 1));
    assert_false(sherd__sparse_pays(30, 10, 10, 1));
    assert_false(sherd__sparse_pays(29, 10, 10, 2));
    assert_true(sherd__sparse_pays(14, 10, 10, 2));
    assert_true(sherd__sparse_pays(29, 10, 10, 0)); /* 0 threads count as one */
    assert_false(sherd__sparse_pays(0, 0, 10, 1));
    assert_true(sherd__sparse_pays(UINT32_MAX, UINT32_MAX, UINT32_MAX, 64));
}

static int begin(void **state)
{
    (void)state;
    rng = sherd__entropy_seeded(&state_, 31);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_result_has_the_bits_of_the_loop),
        cmocka_unit_test(sparse_products_pay_below_a_density_that_falls_with_threads),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
