/*
 * `blind` through its vtable and with a real backend: masked, computed, checked and unmasked, a
 * product has the bits of the fixed-point reference. What is sent is A plus masks and nothing else,
 * and nothing is hidden before masks were given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "core/alloc.h"
#include "matrix/residue.h"
#include "tests/contract/schemes/blind_world.h"

static void every_product_has_the_bits_of_the_reference(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        blinded x = blind_case();
        blind_run(&x);
    }
}

static void sizes_zero_and_one_work(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++) {
        blinded x = blind_case();
        x.n = i & 1;
        x.k = i >> 1 & 1;
        x.m = i >> 2 & 1;
        blind_run(&x);
    }
}

static void a_panel_longer_than_a_run_of_rows_works(void **state)
{
    (void)state;
    blinded x = { .n = 70,
                  .k = 2000,
                  .m = 5,
                  .slots = 1,
                  .panel_rows = 70,
                  .tile_cols = 5,
                  .bits_a = 26,
                  .bits_b = 26,
                  .primes_len = 4 };
    x.ta = x.tb = SHERD_F64;
    blind_run(&x);
}

static void nothing_is_hidden_before_masks_are_given(void **state)
{
    (void)state;
    blinded x = { .n = 3,
                  .k = 4,
                  .m = 2,
                  .slots = 1,
                  .panel_rows = 3,
                  .tile_cols = 2,
                  .ta = SHERD_F64,
                  .tb = SHERD_F64,
                  .bits_a = 17,
                  .bits_b = 17,
                  .primes_len = 2 };
    sherd__cell_work w;
    blinded_new(&x);
    assert_int_equal(x.h.ops->hide(x.h.ctx, (sherd__cell){ 0, 0, 0 }, &w), SHERD_EINTERNAL);
    assert_null(w.left);
    assert_int_equal(sherd__blind_arm(&x.h, x.key, 0), 0);
    assert_int_equal(sherd__blind_arm(&x.h, x.key, 3), SHERD_EINVAL); /* only once */
    assert_int_equal(x.h.ops->hide(x.h.ctx, (sherd__cell){ 0, 0, 0 }, &w), SHERD_OK);
    sherd__fragment_free(w.left);
    blinded_free(&x);
}

/* Sizes and number of messages depend on shapes only: A of zeros, and A of ones. */
static void zeros_are_sent_like_any_value(void **state)
{
    (void)state;
    for (unsigned zeros = 0; zeros <= 10; zeros += 10) {
        blinded x = { .n = 8,
                      .k = 16,
                      .m = 4,
                      .slots = 2,
                      .panel_rows = 4,
                      .tile_cols = 4,
                      .ta = SHERD_F64,
                      .tb = SHERD_F64,
                      .bits_a = 17,
                      .bits_b = 17,
                      .primes_len = 2,
                      .zeros = zeros };
        sherd__cell_work w;
        blinded_new(&x);
        assert_int_equal(sherd__blind_arm(&x.h, x.key, 0), 0);
        assert_int_equal(x.h.ops->hide(x.h.ctx, (sherd__cell){ 1, 0, 0 }, &w), SHERD_OK);
        assert_false(w.empty);
        assert_int_equal(sherd__fragment_info_of(w.left)->rows, 4);
        assert_int_equal(sherd__fragment_info_of(w.left)->len, 4 * 16 * 3 * 2);
        sherd__fragment_free(w.left);
        blinded_free(&x);
    }
}

/* Masks of two primes, two rows or two keys are different numbers; the chi-squared statistic of the
 * masked values of a constant A is that of uniform ones. */
static void masked_values_look_uniform_modulo_every_prime(void **state)
{
    (void)state;
    enum { BINS = 256, N = 64, K = 512 };
    blinded x = { .n = N,
                  .k = K,
                  .m = 1,
                  .slots = 1,
                  .panel_rows = N,
                  .tile_cols = 1,
                  .ta = SHERD_U8,
                  .tb = SHERD_U8,
                  .bits_a = 9,
                  .bits_b = 9,
                  .primes_len = 2,
                  .zeros = 10 };
    sherd__cell_work w;
    blinded_new(&x);
    assert_int_equal(sherd__blind_arm(&x.h, x.key, 0), 0);
    assert_int_equal(x.h.ops->hide(x.h.ctx, (sherd__cell){ 0, 0, 0 }, &w), SHERD_OK);
    const uint8_t *body = sherd__fragment_bytes(w.left);
    size_t equal = 0;
    for (unsigned what = 0; what < 3; what++) { /* each prime, and their difference */
        double count[BINS] = { 0 }, chi = 0;
        for (size_t i = 0; i < N * K; i++) {
            uint32_t v[2];
            for (unsigned q = 0; q < 2; q++) {
                const uint8_t *at = body + 3 * (q * (size_t)N * K + i);
                v[q] = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
            }
            uint32_t p = sherd__primes_default.p[what & 1], d = (v[0] + p - v[1] % p) % p;
            count[(uint64_t)(what < 2 ? v[what] : d) * BINS / p]++;
            equal += what == 2 && v[0] == v[1];
        }
        for (unsigned b = 0; b < BINS; b++) {
            double e = (double)N * K / BINS;
            chi += (count[b] - e) * (count[b] - e) / e;
        }
        if (chi > 255 + 6 * sqrt(2 * 255))
            fail_msg("chi-squared of %u: %g with 255 degrees", what, chi);
    }
    assert_true(equal < 4); /* 32768 values out of 6 million */
    sherd__fragment_free(w.left);
    blinded_free(&x);
}

static void a_failed_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    blinded x = { .n = 5,
                  .k = 4,
                  .m = 6,
                  .slots = 2,
                  .panel_rows = 2,
                  .tile_cols = 3,
                  .ta = SHERD_F64,
                  .tb = SHERD_F64,
                  .bits_a = 17,
                  .bits_b = 17,
                  .primes_len = 2 };
    sherd__cell_work w;
    sherd__hiding h;
    blinded_new(&x);
    for (size_t n = 1;; n++) {
        sherd__alloc_fail_nth(n);
        int err = sherd__blind_open(&h, &x.p);
        if (!err) err = sherd__blind_arm(&h, x.key, 0);
        if (!err) err = h.ops->hide(h.ctx, (sherd__cell){ 0, 1, 0 }, &w);
        size_t made = sherd__alloc_fail_nth(0);
        if (h.ops) h.ops->free(h.ctx);
        if (!err) break;
        assert_int_equal(err, SHERD_ENOMEM);
        assert_true(made >= n && n < 60);
    }
    sherd__fragment_free(w.left);
    blinded_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_product_has_the_bits_of_the_reference),
        cmocka_unit_test(sizes_zero_and_one_work),
        cmocka_unit_test(a_panel_longer_than_a_run_of_rows_works),
        cmocka_unit_test(nothing_is_hidden_before_masks_are_given),
        cmocka_unit_test(zeros_are_sent_like_any_value),
        cmocka_unit_test(masked_values_look_uniform_modulo_every_prime),
        cmocka_unit_test(a_failed_allocation_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests_name("crypto/blind", tests, blind_begin, blind_end);
}
