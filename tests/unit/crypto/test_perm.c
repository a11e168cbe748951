#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/perm.h"

static uint8_t seed[32], key3[32]; /* 0..31; the perm-v1 key of operation 3 made from it */

static int begin(void **s)
{
    (void)s;
    for (int i = 0; i < 32; i++) seed[i] = (uint8_t)i;
    sherd__perm_key(key3, seed, SHERD__PERM_LABEL, 3, 0);
    return 0;
}

static void hex_of_row(const uint32_t *p, size_t n, char hex[65])
{
    uint8_t digest[32], *le = malloc(n * 4 + 1);
    for (size_t i = 0; i < n; i++) sherd__put_u32(le + i * 4, p[i]);
    crypto_hash_sha256(digest, le, n * 4);
    sodium_bin2hex(hex, 65, digest, 32);
    free(le);
}

static void list_of_row(const uint32_t *p, size_t n, char *out, size_t cap)
{
    size_t at = 0;
    snprintf(out, cap, "-");
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, cap - at, "%s%u", i ? "," : "", p[i]);
}

static void check_row(uint32_t n, uint64_t r, const char *want)
{
    char got[4096];
    uint32_t *p = malloc(n * 4 + 4);
    assert_int_equal(sherd__perm_row(key3, r, n, p), 0);
    if (n > 128) hex_of_row(p, n, got);
    else list_of_row(p, n, got, sizeof got);
    assert_string_equal(got, want);
    free(p);
}

static void check_table(uint32_t n, uint32_t rows, const char *want)
{
    char got[65];
    uint32_t *p = malloc((size_t)n * rows * 4);
    assert_int_equal(sherd__perm_rows(key3, 0, rows, n, 4, p, NULL), 0);
    hex_of_row(p, (size_t)n * rows, got);
    assert_string_equal(got, want);
    free(p);
}

static void check_exposures(uint32_t nodes, int balanced, const char *want)
{
    char got[4096];
    uint8_t key[32];
    uint32_t out[50];
    sherd__perm_key(key, seed, SHERD__EXPO_LABEL, 3, 0);
    assert_int_equal(sherd__exposures(key, 50, nodes, balanced, out), 0);
    list_of_row(out, 50, got, sizeof got);
    assert_string_equal(got, want);
}

static void check_digest(const char *what, uint64_t step, const char *want)
{
    char got[65];
    uint8_t out[32];
    if (what[0] == 'k') sherd__perm_key(out, seed, SHERD__PERM_LABEL, 3, step);
    else sherd__seed_commitment(out, seed);
    sodium_bin2hex(got, sizeof got, out, 32);
    assert_string_equal(got, want);
}

static void rows_keys_and_exposures_equal_those_of_the_independent_program(void **s)
{
    (void)s;
    char what[16], want[2048];
    unsigned long long a, b;
    int lines = 0;
    FILE *f = fopen("tests/vectors/perm_v1.txt", "r");
    assert_non_null(f);
    for (; fscanf(f, "%15s %llu", what, &a) == 2; lines++) {
        int two = strcmp(what, "key") && strcmp(what, "commitment");
        if (two) assert_int_equal(fscanf(f, "%llu", &b), 1);
        assert_int_equal(fscanf(f, "%2047s", want), 1);
        if (!strcmp(what, "row")) check_row((uint32_t)a, b, want);
        else if (!strcmp(what, "table")) check_table((uint32_t)a, (uint32_t)b, want);
        else if (!strcmp(what, "exposures")) check_exposures((uint32_t)a, (int)b, want);
        else check_digest(what, a, want);
    }
    fclose(f);
    assert_int_equal(lines, 39);
}

static uint32_t get(const void *p, unsigned width, size_t i)
{
    return width == 1   ? ((const uint8_t *)p)[i]
           : width == 2 ? ((const uint16_t *)p)[i]
                        : ((const uint32_t *)p)[i];
}

/* Compares many rows at once, from any first row, with single rows, for every width. */
static void compare_rows(uint32_t n, uint64_t row0, size_t nrows, unsigned width)
{
    uint8_t *p = malloc(n * nrows * width + 1), *v = malloc(n * nrows * width + 1);
    uint32_t *one = malloc(n * 4 + 4);
    assert_int_equal(sherd__perm_rows(key3, row0, nrows, n, width, p, v), 0);
    for (size_t r = 0; r < nrows; r++) {
        assert_int_equal(sherd__perm_row(key3, row0 + r, n, one), 0);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(get(p, width, r * n + i), one[i]);
            assert_int_equal(get(v, width, r * n + one[i]), i);
        }
    }
    free(p);
    free(v);
    free(one);
}

static void tables_of_every_width_equal_their_single_rows_and_have_inverses(void **s)
{
    (void)s;
    static const uint32_t ns[] = { 0, 1, 2, 5, 6, 7, 10, 49, 128, 255, 256 };
    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++)
        for (unsigned w = 1; w <= 4; w *= 2) compare_rows(ns[i], 77, 600, w);
    for (unsigned w = 2; w <= 4; w *= 2) {
        compare_rows(257, 0, 40, w);
        compare_rows(512, 0, 300, w); /* some of these rows drop a word */
        compare_rows(21000, UINT64_C(1) << 33, 3, w);
        compare_rows(65536, 5, 2, w);
    }
    compare_rows(65537, 5, 2, 4);
    compare_rows(600000, 0, 1, 4); /* the bands of two and three draws */
}

static void words_needed_is_the_number_of_words_of_a_row_that_drops_none(void **s)
{
    (void)s;
    static const uint32_t q[][2] = { { 1u << 30, 1 }, { 1 << 19, 2 }, { 1 << 14, 3 },
                                     { 1 << 11, 4 },  { 1 << 9, 5 },  { 6, 6 } };
    for (uint32_t n = 0; n < 700000; n += n < 3000 ? 1 : 997) {
        uint64_t words = 0;
        for (uint32_t i = n; i > 1; words++) {
            size_t b = 0;
            while (b < 6 && i <= q[b][0]) b++;
            i -= b < 6 ? q[b][1] : i - 1;
        }
        assert_int_equal(sherd__perm_words_needed(n), words);
    }
    assert_int_equal(sherd__perm_words_needed(UINT32_MAX) - sherd__perm_words_needed(1u << 30),
                     3221225471u);
}

static uint64_t next_word(void *ctx)
{
    uint64_t **at = ctx;
    return *(*at)++;
}

static void a_dropped_word_is_replaced_by_the_next_and_has_no_effect(void **s)
{
    (void)s;
    /* n = 3: the remainder of both draws is 6w mod 2^64. It is below 2^64 mod 6 = 4 for the first
     * three words. For the last it is 4, so the word is kept: 1 of 3, then 0 of 2, which makes 0 1
     * 2 -> 0 2 1 -> 2 0 1. */
    static const uint64_t dropped[] = { 0, UINT64_C(1) << 63, UINT64_C(3074457345618258603) };
    for (size_t i = 0; i < 3; i++) {
        uint64_t words[] = { dropped[i], UINT64_C(0x5555555555555556) }, *at = words + 1;
        sherd__perm_words src = { words, next_word, &at };
        uint32_t p[3];
        sherd__perm_from_words(&src, 3, p);
        assert_ptr_equal(at, words + 2);
        assert_int_equal(p[0] * 100 + p[1] * 10 + p[2], 201);
    }
}

/* With w in steps of 2^64/1200, every order occurs equally often. */
static void equally_spaced_words_give_every_order_equally_often(void **s)
{
    (void)s;
    int count[120] = { 0 };
    for (uint64_t w = 0; w < 1200; w++) {
        uint64_t word = (2 * w + 1) * (UINT64_MAX / 2400), *none = NULL;
        sherd__perm_words src = { &word, next_word, &none };
        uint32_t p[5], rank = 0;
        sherd__perm_from_words(&src, 5, p);
        for (uint32_t i = 0; i < 5; i++) {
            uint32_t less = 0;
            for (uint32_t j = i + 1; j < 5; j++) less += p[j] < p[i];
            rank = rank * (5 - i) + less;
        }
        count[rank]++;
    }
    for (int i = 0; i < 120; i++) assert_int_equal(count[i], 10);
}

static void orders_of_six_are_uniform(void **s)
{
    (void)s;
    enum { ROWS = 720000 };
    static uint8_t p[ROWS * 6];
    static uint32_t count[46656];
    double chi2 = 0, mean = ROWS / 720.0;
    uint32_t seen = 0;
    assert_int_equal(sherd__perm_rows(key3, 0, ROWS, 6, 1, p, NULL), 0);
    for (size_t r = 0; r < ROWS; r++) {
        uint32_t at = 0;
        for (size_t i = 0; i < 6; i++) at = at * 6 + p[r * 6 + i];
        count[at]++;
    }
    for (size_t i = 0; i < 46656; i++)
        if (count[i]) chi2 += (count[i] - mean) * (count[i] - mean) / mean, seen++;
    assert_int_equal(seen, 720);
    assert_true(chi2 > 530 && chi2 < 920); /* 719 degrees of freedom: 5 standard deviations */
}

/* The place of each value in rows of 600, the second longest band. */
static void every_value_occurs_equally_often_at_every_place(void **s)
{
    (void)s;
    enum { N = 600, ROWS = 12000, BINS = 20 };
    static uint16_t p[N * ROWS];
    static uint32_t count[BINS][BINS];
    double chi2 = 0, mean = (double)N * ROWS / (BINS * BINS);
    assert_int_equal(sherd__perm_rows(key3, 0, ROWS, N, 2, p, NULL), 0);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < N; i++) count[i * BINS / N][p[r * N + i] * BINS / N]++;
    for (size_t i = 0; i < BINS * BINS; i++) {
        double d = count[i / BINS][i % BINS] - mean;
        chi2 += d * d / mean;
    }
    assert_true(chi2 > 361 - 5 * 27 && chi2 < 361 + 5 * 27);
}

static void exposures_are_uniform_or_balanced(void **s)
{
    (void)s;
    enum { K = 70001 };
    static uint32_t e[K];
    uint8_t key[32];
    sherd__perm_key(key, seed, SHERD__EXPO_LABEL, 0, 0);
    for (uint32_t nodes = 1; nodes < 12; nodes++)
        for (int balanced = 0; balanced < 2; balanced++) {
            uint32_t count[12] = { 0 };
            double chi2 = 0, mean = K / (double)nodes;
            assert_int_equal(sherd__exposures(key, K, nodes, balanced, e), 0);
            for (size_t i = 0; i < K; i++) {
                assert_true(e[i] < nodes);
                count[e[i]]++;
            }
            uint64_t told[12];
            assert_int_equal(sherd__exposure_counts(key, K, nodes, balanced, told), 0);
            for (uint32_t i = 0; i < nodes; i++) assert_int_equal(told[i], count[i]);
            for (uint32_t i = 0; i < nodes; i++) {
                chi2 += (count[i] - mean) * (count[i] - mean) / mean;
                if (balanced) assert_true(count[i] == K / nodes || count[i] == K / nodes + 1);
            }
            assert_true(balanced || chi2 < 45);
        }
    assert_int_equal(sherd__exposures(key, 0, 7, 0, e), 0);
    assert_int_equal(sherd__exposures(key, 0, 7, 1, e), 0);
    assert_int_equal(sherd__exposures(key, 5, 0, 0, e), SHERD_EINVAL);
}

static void steps_operations_and_labels_have_different_keys(void **s)
{
    (void)s;
    static const char *const labels[] = { SHERD__PERM_LABEL, SHERD__EXPO_LABEL, SHERD__ROWS_LABEL };
    uint8_t keys[27][32];
    for (unsigned i = 0; i < 27; i++)
        sherd__perm_key(keys[i], seed, labels[i % 3], i / 3 % 3, i / 9);
    for (int i = 0; i < 27; i++)
        for (int j = 0; j < i; j++) assert_memory_not_equal(keys[i], keys[j], 32);
}

static void a_width_that_is_too_narrow_is_refused(void **s)
{
    (void)s;
    uint32_t p[300];
    assert_int_equal(sherd__perm_width(256), 1);
    assert_int_equal(sherd__perm_width(257), 2);
    assert_int_equal(sherd__perm_width(65536), 2);
    assert_int_equal(sherd__perm_width(65537), 4);
    assert_int_equal(sherd__perm_rows(key3, 0, 1, 257, 1, p, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__perm_rows(key3, 0, 1, 10, 3, p, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__perm_rows(key3, 0, 1, 10, 0, p, NULL), SHERD_EINVAL);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    uint32_t p[8];
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__perm_row(key3, 0, 8, p), SHERD_ENOMEM);
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__exposures(key3, 8, 3, 1, p), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_keys_and_exposures_equal_those_of_the_independent_program),
        cmocka_unit_test(tables_of_every_width_equal_their_single_rows_and_have_inverses),
        cmocka_unit_test(words_needed_is_the_number_of_words_of_a_row_that_drops_none),
        cmocka_unit_test(a_dropped_word_is_replaced_by_the_next_and_has_no_effect),
        cmocka_unit_test(equally_spaced_words_give_every_order_equally_often),
        cmocka_unit_test(orders_of_six_are_uniform),
        cmocka_unit_test(every_value_occurs_equally_often_at_every_place),
        cmocka_unit_test(exposures_are_uniform_or_balanced),
        cmocka_unit_test(steps_operations_and_labels_have_different_keys),
        cmocka_unit_test(a_width_that_is_too_narrow_is_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("crypto/perm", tests, begin, NULL);
}
