/* The seeded stream compared with libsodium's, and the unbiased draw compared with its
 * definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "core/rand.h"

static void equal_seeds_give_equal_streams(void **state)
{
    (void)state;
    uint8_t a[3][1000];
    for (int i = 0; i < 3; i++) {
        sherd__seeded st;
        sherd__entropy e = sherd__entropy_seeded(&st, i < 2 ? 42 : 43);
        e.fill(e.ctx, a[i], sizeof a[i]);
    }
    assert_memory_equal(a[0], a[1], sizeof a[0]);
    assert_memory_not_equal(a[0], a[2], sizeof a[0]);
}

static void the_seeded_stream_is_chacha20_under_the_hashed_seed(void **state)
{
    (void)state;
    uint8_t seed[8] = { 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01 }, nonce[8] = { 0 };
    uint8_t key[32], want[640], got[640];
    assert_int_equal(crypto_generichash(key, sizeof key, seed, sizeof seed, NULL, 0), 0);
    assert_int_equal(crypto_stream_chacha20(want, sizeof want, nonce, key), 0);
    sherd__seeded st;
    sherd__entropy e = sherd__entropy_seeded(&st, UINT64_C(0x0123456789abcdef));
    e.fill(e.ctx, got, 64); /* whole blocks: the pieces join without a gap */
    e.fill(e.ctx, got + 64, 128);
    e.fill(e.ctx, got + 192, sizeof got - 192);
    assert_memory_equal(got, want, sizeof want);
}

/* However long the draws are: short and long ones in turn, and two streams in turn. */
static void each_draw_begins_at_the_next_block(void **state)
{
    (void)state;
    enum { BLOCK = 64, ROOM = 1 << 16 };
    static const size_t lens[] = { 8, 8, 64, 0, 65, 8, 700, 1, 63, 512, 8 };
    static uint8_t want[2][ROOM], got[1024];
    const uint8_t keys[2][32] = { { 1 }, { 2 } }, nonce[8] = { 0 };
    sherd__seeded st[2];
    sherd__entropy e[2];
    size_t at[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(crypto_stream_chacha20(want[i], ROOM, nonce, keys[i]), 0);
        e[i] = sherd__entropy_keyed(&st[i], keys[i]);
    }
    for (size_t n = 0; n < 200; n++) {
        const size_t i = n / 3 % 2, len = lens[n % 11];
        e[i].fill(e[i].ctx, got, len);
        assert_memory_equal(got, want[i] + at[i], len);
        at[i] += (len + BLOCK - 1) / BLOCK * BLOCK;
        assert_true(at[i] + sizeof got < ROOM);
    }
}

static void no_part_of_a_block_is_given_twice(void **state)
{
    (void)state;
    sherd__seeded st;
    sherd__entropy e = sherd__entropy_seeded(&st, 7);
    uint64_t seen[200];
    for (int i = 0; i < 200; i++) {
        seen[i] = sherd__entropy_u64(&e);
        for (int j = 0; j < i; j++) assert_true(seen[i] != seen[j]);
    }
    e.fill(e.ctx, seen, 0);
    assert_true(sherd__entropy_u64(&e) != seen[0]);
}

/* Entropy that returns prepared values. */
typedef struct script {
    const uint64_t *next;
    size_t taken;
} script;

static void give_next(void *ctx, void *out, size_t len)
{
    script *s = ctx;
    assert_int_equal(len, 8);
    memcpy(out, &s->next[s->taken++], 8);
}

static void values_that_would_bias_the_result_are_drawn_again(void **state)
{
    (void)state;
    /* 2^64 mod 6 = 4: 0..3 are rejected. */
    static const uint64_t six[] = { 0, 3, 4, 5, UINT64_MAX };
    script s = { six, 0 };
    sherd__entropy e = { give_next, &s };
    assert_int_equal(sherd__entropy_below(&e, 6), 4);
    assert_int_equal(s.taken, 3);
    assert_int_equal(sherd__entropy_below(&e, 6), 5);
    assert_int_equal(sherd__entropy_below(&e, 6), UINT64_MAX % 6);
    /* A power of two divides 2^64: nothing is rejected. */
    static const uint64_t eight[] = { 0, 7, 8, UINT64_MAX };
    s = (script){ eight, 0 };
    assert_int_equal(sherd__entropy_below(&e, 8), 0);
    assert_int_equal(sherd__entropy_below(&e, 8), 7);
    assert_int_equal(sherd__entropy_below(&e, 8), 0);
    assert_int_equal(sherd__entropy_below(&e, 8), 7);
    assert_int_equal(s.taken, 4);
    /* 2^63 + 1: almost every second value is rejected. */
    static const uint64_t big[] = { UINT64_C(0x7ffffffffffffffe), UINT64_C(0x7fffffffffffffff) };
    s = (script){ big, 0 };
    assert_true(sherd__entropy_below(&e, UINT64_C(0x8000000000000001)) == big[1]);
}

static void draws_below_n_are_uniform(void **state)
{
    (void)state;
    sherd__seeded st;
    sherd__entropy e = sherd__entropy_seeded(&st, 3);
    static const uint64_t sizes[] = { 1, 2, 3, 7, 10, 37 };
    enum { DRAWS = 100000 };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t n = sizes[k];
        double counts[37] = { 0 }, expected = (double)DRAWS / (double)n, chi2 = 0;
        for (int i = 0; i < DRAWS; i++) {
            uint64_t v = sherd__entropy_below(&e, n);
            assert_true(v < n);
            counts[v]++;
        }
        for (uint64_t v = 0; v < n; v++)
            chi2 += (counts[v] - expected) * (counts[v] - expected) / expected;
        /* n - 1 degrees of freedom, at the 1 - 1e-6 quantile or above for each of these n. */
        static const double most[] = { 0, 24, 28, 39, 45, 95 };
        assert_true(chi2 <= most[k]);
    }
}

static void the_systems_entropy_differs_each_time(void **state)
{
    (void)state;
    sherd__entropy e = sherd__entropy_os();
    uint8_t a[32] = { 0 }, b[32] = { 0 };
    e.fill(e.ctx, a, sizeof a);
    e.fill(e.ctx, b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_seeds_give_equal_streams),
        cmocka_unit_test(the_seeded_stream_is_chacha20_under_the_hashed_seed),
        cmocka_unit_test(each_draw_begins_at_the_next_block),
        cmocka_unit_test(no_part_of_a_block_is_given_twice),
        cmocka_unit_test(values_that_would_bias_the_result_are_drawn_again),
        cmocka_unit_test(draws_below_n_are_uniform),
        cmocka_unit_test(the_systems_entropy_differs_each_time),
    };
    return cmocka_run_group_tests_name("core/rand", tests, NULL, NULL);
}
