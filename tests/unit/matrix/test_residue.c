/*
 * Residues: the properties of the tables, packing, and products modulo p compared with int64.
 * link: -Wl,--wrap=sherd__residue_pack_wide -Wl,--wrap=sherd__residue_unpack_wide
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrix/residue_internal.h"

static uint64_t state = 11;

static uint64_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 20;
}

/* Processors with wide vectors have kernels of their own; `plain` switches them off. */
static bool plain;

bool __real_sherd__residue_pack_wide(const double *x, size_t n, uint32_t p, uint8_t *out);
bool __wrap_sherd__residue_pack_wide(const double *x, size_t n, uint32_t p, uint8_t *out);
bool __real_sherd__residue_unpack_wide(const uint8_t *in, size_t n, uint32_t p, double *out,
                                       uint32_t *most);
bool __wrap_sherd__residue_unpack_wide(const uint8_t *in, size_t n, uint32_t p, double *out,
                                       uint32_t *most);

bool __wrap_sherd__residue_pack_wide(const double *x, size_t n, uint32_t p, uint8_t *out)
{
    return !plain && __real_sherd__residue_pack_wide(x, n, p, out);
}

bool __wrap_sherd__residue_unpack_wide(const uint8_t *in, size_t n, uint32_t p, double *out,
                                       uint32_t *most)
{
    return !plain && __real_sherd__residue_unpack_wide(in, n, p, out, most);
}

static double residue(uint32_t p)
{
    return (double)((int64_t)(draw() % p) - (int64_t)((p - 1) / 2));
}

/* Miller-Rabin with bases that are sufficient for all 32-bit numbers: a method other than trial
 * division. */
static bool prime(uint64_t n)
{
    static const uint64_t bases[] = { 2, 7, 61 };
    for (size_t i = 0; i < 3; i++) {
        uint64_t d = n - 1, x = 1, b = bases[i] % n;
        if (b == 0) continue;
        int twos = 0;
        for (; d % 2 == 0; d /= 2) twos++;
        for (uint64_t e = d; e != 0; e /= 2, b = b * b % n)
            if (e & 1) x = x * b % n;
        bool good = x == 1 || x == n - 1;
        for (int t = 1; t < twos && !good; t++) good = (x = x * x % n) == n - 1;
        if (!good) return false;
    }
    return true;
}

static void the_tables_contain_primes_that_allow_their_block(void **s)
{
    (void)s;
    const sherd__primes *tables[] = { &sherd__primes_default, &sherd__primes_wide };
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < SHERD__TABLE_PRIMES; i++) {
            uint64_t p = tables[t]->p[i], h = (p - 1) / 2, kb = tables[t]->block;
            assert_true(prime(p) && sherd__prime_ok((uint32_t)p));
            assert_true(kb * h * h + p / 2 <= UINT64_C(1) << 53);
            assert_int_equal(sherd__prime_block((uint32_t)p), kb);
            if (i > 0) assert_true(p < tables[t]->p[i - 1]);
        }
    /* The first of each table is the largest prime that allows its block. */
    for (int t = 0; t < 2; t++) {
        uint64_t p = tables[t]->p[0] + 2, kb = tables[t]->block;
        while (!prime(p)) p += 2;
        uint64_t h = (p - 1) / 2;
        assert_true(p >= 1 << 23 || kb * h * h + p / 2 > UINT64_C(1) << 53);
    }
}

static void only_odd_primes_below_2_23_are_accepted(void **s)
{
    (void)s;
    for (uint32_t n = 0; n < 4000; n++)
        assert_int_equal(sherd__prime_ok(n), n >= 5 && n % 2 == 1 && prime(n));
    for (uint32_t n = 8386000; n < 8390000; n++)
        assert_int_equal(sherd__prime_ok(n), n < 1u << 23 && n % 2 == 1 && prime(n));
    assert_false(sherd__prime_ok(UINT32_MAX));
}

static void whole_numbers_up_to_2_53_reduce_canonically(void **s)
{
    (void)s;
    static const uint32_t primes[] = { 5, 7, 251, 5931641, 8388593 };
    static const int64_t edges[] = {
        0, 1, 2, 3, INT64_C(1) << 52, (INT64_C(1) << 53) - 1, INT64_C(1) << 53
    };
    double x[4000], r[4000];
    for (size_t q = 0; q < 5; q++) {
        int64_t p = primes[q], h = (p - 1) / 2;
        for (size_t i = 0; i < 4000; i++) {
            int64_t v = (int64_t)(draw() % (UINT64_C(1) << 53));
            if (i < 7) v = edges[i];
            else if (i < 100)
                v = (int64_t)(draw() % ((UINT64_C(1) << 53) / (uint64_t)p)) * p +
                    ((int64_t)i % 5 - 2) + h;
            if (v > INT64_C(1) << 53) v = INT64_C(1) << 53;
            x[i] = (double)(i % 2 ? -v : v);
        }
        sherd__residue_from_f64(x, 4000, (uint32_t)p, r);
        for (size_t i = 0; i < 4000; i++) {
            int64_t want = (int64_t)x[i] % p;
            want += want > h ? -p : want < -h ? p : 0;
            assert_true(r[i] == (double)want);
            assert_false(r[i] == 0.0 && signbit(r[i]));
        }
        assert_true(sherd__residue_canonical(r, 4000, (uint32_t)p));
        r[9] = (double)h + 1;
        assert_false(sherd__residue_canonical(r, 4000, (uint32_t)p));
        r[9] = 0.5;
        assert_false(sherd__residue_canonical(r, 4000, (uint32_t)p));
        r[9] = NAN;
        assert_false(sherd__residue_canonical(r, 4000, (uint32_t)p));
    }
}

static void packing_and_unpacking_are_inverse_for_every_length(void **s)
{
    plain = *s != NULL;
    const uint32_t p = 8388593;
    for (size_t n = 0; n < 70; n++) {
        double *x = malloc((n + 1) * 8), *y = malloc((n + 1) * 8);
        uint8_t *bytes = malloc(3 * n); /* exact, so that a sanitizer sees an overrun of one byte */
        for (size_t i = 0; i < n; i++) x[i] = i == 3 ? 4194296.0 : i == 5 ? -4194296.0 : residue(p);
        sherd__residue_pack(x, n, p, bytes);
        for (size_t i = 0; i < n; i++) {
            uint32_t v = bytes[3 * i] | (uint32_t)bytes[3 * i + 1] << 8 |
                         (uint32_t)bytes[3 * i + 2] << 16;
            assert_true(v < p && v == (uint32_t)((int64_t)x[i] + (x[i] < 0 ? p : 0)));
        }
        assert_int_equal(sherd__residue_unpack(bytes, n, p, y, NULL), SHERD_OK);
        assert_memory_equal(x, y, n * 8);
        for (size_t i = 0; i < n; i++) {
            size_t bad = SIZE_MAX;
            uint8_t keep[3];
            memcpy(keep, bytes + 3 * i, 3);
            memcpy(bytes + 3 * i, (const uint8_t[]){ 0xf1, 0xff, 0x7f }, 3); /* p itself */
            assert_int_equal(sherd__residue_unpack(bytes, n, p, y, &bad), SHERD_EFRAME);
            assert_int_equal(bad, i);
            memset(bytes + 3 * i, 0xff, 3);
            assert_int_equal(sherd__residue_unpack(bytes, n, p, y, NULL), SHERD_EFRAME);
            memcpy(bytes + 3 * i, (const uint8_t[]){ 0xf0, 0xff, 0x7f }, 3); /* p - 1 */
            assert_int_equal(sherd__residue_unpack(bytes, n, p, y, NULL), SHERD_OK);
            assert_true(y[i] == -1.0);
            memcpy(bytes + 3 * i, keep, 3);
        }
        free(x);
        free(y);
        free(bytes);
    }
}

static void product(uint32_t p, size_t n, size_t k, size_t m, bool extreme)
{
    size_t lda = k + 1, ldb = m + 2, ldc = m + 1;
    double *a = malloc(n * lda * 8 + 8), *b = malloc(k * ldb * 8 + 8);
    double *c = malloc(n * ldc * 8 + 8), h = (p - 1) / 2;
    for (size_t i = 0; i < n * lda; i++) a[i] = extreme ? -h : residue(p);
    for (size_t i = 0; i < k * ldb; i++) b[i] = extreme ? h : residue(p);
    assert_int_equal(sherd__residue_gemm(p, n, k, m, a, lda, b, ldb, c, ldc), SHERD_OK);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            int64_t want = 0;
            for (size_t l = 0; l < k; l++)
                want = (want + (int64_t)a[i * lda + l] * (int64_t)b[l * ldb + j]) % p;
            want += want > h ? -(int64_t)p : want < -h ? (int64_t)p : 0;
            assert_true(c[i * ldc + j] == (double)want);
        }
    free(a);
    free(b);
    free(c);
}

static void products_modulo_p_equal_int64_across_blocks(void **s)
{
    (void)s;
    static const uint32_t primes[] = { 5, 251, 5931641, 5931533, 8388593, 8388571 };
    for (size_t q = 0; q < 6; q++) {
        size_t kb = sherd__prime_block(primes[q]);
        size_t ks[] = { 0, 1, 2, kb - 1, kb, kb + 1, 2 * kb, 2 * kb + 3 };
        for (size_t i = 0; i < 8; i++) {
            product(primes[q], 3, ks[i], 5, false);
            product(primes[q], 2, ks[i], 3, true);
        }
    }
    product(5931641, 0, 10, 3, false);
    product(5931641, 3, 10, 0, false);
    product(5931641, 1, 1, 1, true);
}

static void the_self_test_passes(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__residue_selftest(&d), SHERD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_contain_primes_that_allow_their_block),
        cmocka_unit_test(only_odd_primes_below_2_23_are_accepted),
        cmocka_unit_test(whole_numbers_up_to_2_53_reduce_canonically),
        cmocka_unit_test(packing_and_unpacking_are_inverse_for_every_length),
        { "packing and unpacking (plain)", packing_and_unpacking_are_inverse_for_every_length, NULL,
          NULL, &plain },
        cmocka_unit_test(products_modulo_p_equal_int64_across_blocks),
        cmocka_unit_test(the_self_test_passes),
    };
    return cmocka_run_group_tests_name("matrix/residue", tests, NULL, NULL);
}
