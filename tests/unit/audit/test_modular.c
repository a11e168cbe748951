/*
 * Linear algebra modulo primes: weights compared with those of the scheme, null spaces with their
 * definition, short multiples with an exhaustive search.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "audit/modular.h"
#include "core/alloc.h"
#include "crypto/inner.h"

static uint64_t state = 5;

static uint32_t below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % n);
}

static sherd__seen_code code(uint32_t k, uint32_t t, uint32_t n)
{
    return (sherd__seen_code){
        .blocks = k, .masks = t, .shares = n, .primes_len = 2, .primes = { 5931641, 8388593 }
    };
}

static void inverses_and_centred_residues_are_correct(void **s)
{
    (void)s;
    for (uint32_t a = 1; a < 251; a++)
        assert_int_equal(a * sherd__modular_inverse(a, 251) % 251, 1);
    assert_int_equal(sherd__modular_centre(3, 7), 3);
    assert_int_equal(sherd__modular_centre(4, 7), -3);
}

static void weights_equal_those_of_the_scheme(void **s)
{
    (void)s;
    for (uint32_t k = 1; k < 6; k++) {
        for (uint32_t t = 1; t < 4; t++) {
            sherd__seen_code c = code(k, t, 16);
            sherd__lcc lcc = { k, t, 16 };
            for (uint32_t i = 0; i < 32; i++) {
                uint32_t p = c.primes[i % 2], w[9];
                double want[9];
                sherd__modular_weights(&c, i % 2, i / 2, w);
                assert_int_equal(sherd__lcc_encode_weights(&lcc, p, i / 2, want), 0);
                for (uint32_t j = 0; j < k + t; j++)
                    assert_true((double)sherd__modular_centre(w[j], p) == want[j]);
            }
        }
    }
}

static void weights_of_the_inner_code_equal_those_of_the_scheme(void **s)
{
    (void)s;
    for (uint32_t k = 1; k < 6; k++)
        for (uint32_t t = 1; t < 4; t++) {
            sherd__seen_code c = code(k, t, k + 2 * t);
            sherd__lcc lcc = { k, t, k + 2 * t };
            for (uint32_t i = 0; i < 4 * c.shares; i++) {
                uint32_t p = c.primes[i % 2], share = i / 4, w[9];
                double want[9];
                c.form = i & 2 ? SHERD__SEEN_INNER_RIGHT : SHERD__SEEN_INNER_LEFT;
                assert_int_equal(sherd__modular_check(&c, NULL), SHERD_OK);
                sherd__modular_weights(&c, i % 2, share, w);
                assert_int_equal((i & 2 ? sherd__code_inner.right
                                        : sherd__code_inner.left)(&lcc, p, share, want),
                                 0);
                for (uint32_t j = 0; j < k + t; j++)
                    assert_true((double)sherd__modular_centre(w[j], p) == want[j]);
            }
            c.shares++;
            assert_int_equal(sherd__modular_check(&c, NULL), SHERD_EINVAL);
        }
}

static void a_share_at_a_blocks_point_is_that_block(void **s)
{
    static const uint32_t alpha[] = { 9, 2, 4 };
    sherd__seen_code c = code(2, 2, 3);
    uint32_t w[4];
    (void)s;
    c.alpha = alpha;
    sherd__modular_weights(&c, 0, 1, w);
    assert_true(w[0] == 0 && w[1] == 1 && w[2] == 0 && w[3] == 0);
    sherd__modular_weights(&c, 1, 2, w); /* beta of the second mask */
    assert_true(w[0] == 0 && w[1] == 0 && w[2] == 0 && w[3] == 1);
}

static uint32_t largest(const uint32_t *g, uint32_t len, uint32_t p)
{
    uint32_t most = 0;
    for (uint32_t j = 0; j < len; j++) {
        uint32_t size = g[j] < p - g[j] ? g[j] : p - g[j];
        if (size > most) most = size;
    }
    return most;
}

static void short_multiples_are_the_shortest(void **s)
{
    enum { PRIME = 4099 };
    (void)s;
    for (int round = 0; round < 300; round++) {
        uint32_t len = 1 + below(5), g[5], h[5], best = PRIME;
        for (uint32_t j = 0; j < len; j++) g[j] = below(4) == 0 ? 0 : below(PRIME);
        g[len - 1] = 1 + below(PRIME - 1);
        for (uint32_t m = 1; m < PRIME; m++) {
            for (uint32_t j = 0; j < len; j++) h[j] = g[j] * m % PRIME;
            uint32_t size = largest(h, len, PRIME);
            if (size < best) best = size;
        }
        memcpy(h, g, sizeof h);
        uint32_t scale = sherd__modular_shorten(h, len, PRIME);
        assert_int_equal(largest(h, len, PRIME), best);
        for (uint32_t j = 0; j < len; j++) assert_int_equal(h[j], g[j] * scale % PRIME);
    }
    uint32_t zero[2] = { 0, 0 };
    assert_int_equal(sherd__modular_shorten(zero, 2, PRIME), 1);
}

/* Checks every row: it contains no mask, it has the stated data, and rows are independent. */
static void holds(const sherd__unmasked *u, const sherd__seen_code *c, uint32_t prime,
                  const uint32_t *members)
{
    uint32_t p = c->primes[prime], len = c->blocks + c->masks, w[64];
    for (uint32_t r = 0; r < u->rows; r++) {
        uint64_t sum[64] = { 0 };
        for (uint32_t i = 0; i < u->members; i++) {
            sherd__modular_weights(c, prime, members[i], w);
            for (uint32_t j = 0; j < len; j++)
                sum[j] = (sum[j] + (uint64_t)u->coef[r * u->members + i] * w[j]) % p;
        }
        for (uint32_t j = 0; j < c->blocks; j++)
            assert_int_equal(sum[j], u->weight[r * u->blocks + j]);
        for (uint32_t t = 0; t < c->masks; t++) assert_int_equal(sum[c->blocks + t], 0);
    }
}

static void t_shares_have_no_mask_free_combination_and_more_shares_have(void **s)
{
    (void)s;
    for (uint32_t round = 0; round < 400; round++) {
        uint32_t k = 1 + below(6), t = 1 + below(3), n = k + t + 4, size = 1 + below(k + t + 2);
        sherd__seen_code c = code(k, t, n);
        uint32_t members[16], at = 0;
        for (uint32_t i = 0; i < n && at < size; i++)
            if (below(n - i) < size - at) members[at++] = i;
        sherd__unmasked u;
        assert_int_equal(sherd__unmasked_find(&u, &c, round % 2, members, size), 0);
        uint32_t want = size <= t ? 0 : size - t < k ? size - t : k;
        assert_int_equal(u.rows, want);
        holds(&u, &c, round % 2, members);
        for (uint32_t r = 0; r < u.rows; r++) /* K+T shares determine every block */
            assert_int_equal(sherd__unmasked_block(&u, r), want == k ? r : UINT32_MAX);
        sherd__unmasked_fini(&u);
    }
}

static bool next(uint32_t *chosen, uint32_t size, uint32_t of)
{
    uint32_t i = size;
    while (i > 0 && chosen[i - 1] == of - size + i - 1) i--;
    if (i == 0) return false;
    for (uint32_t v = chosen[--i] + 1; i < size; i++, v++) chosen[i] = v;
    return true;
}

/* The rule: no alpha is a beta, and every T x T minor of the masks' weights is invertible, modulo
 * any prime. */
static void no_t_shares_of_any_code_in_use_cancel_their_masks(void **s)
{
    static const sherd__primes *const tables[] = { &sherd__primes_default, &sherd__primes_wide };
    size_t all = 0;
    (void)s;
    for (uint32_t n = 3; n <= 16; n++) {
        for (uint32_t t = 1; t <= 3; t++) {
            uint32_t k = sherd__lcc_blocks(n, t, 0, true), first[3] = { 0, 1, 2 }, members[3];
            for (uint32_t which = 0; k > 0 && which < 8; which++) {
                sherd__seen_code c = { .blocks = k,
                                       .masks = t,
                                       .shares = n,
                                       .primes_len = 1,
                                       .primes = { tables[which / 4]->p[which % 4] } };
                memcpy(members, first, sizeof members);
                do {
                    sherd__unmasked u;
                    assert_int_equal(sherd__unmasked_find(&u, &c, 0, members, t), 0);
                    assert_int_equal(u.rows, 0);
                    sherd__unmasked_fini(&u);
                    all++;
                } while (next(members, t, n));
            }
        }
    }
    assert_true(all > 20000);
}

static void invalid_points_are_found_within_t_shares(void **s)
{
    static const uint32_t twins[] = { 7, 9, 7, 8 }, block[] = { 7, 1, 8, 9 };
    static const uint32_t modulo[] = { 7, 7 + 5931641, 8,
                                       9 }; /* equal to another point modulo the first prime */
    static const uint32_t pair[] = { 0, 2 }, first[] = { 0, 1 }, alone[] = { 1 };
    sherd__seen_code c = code(2, 2, 4);
    sherd__unmasked u;
    (void)s;
    c.alpha = block;
    assert_int_equal(sherd__unmasked_find(&u, &c, 0, alone, 1), 0);
    assert_int_equal(u.rows, 1);
    assert_int_equal(sherd__unmasked_block(&u, 0), 0);
    sherd__unmasked_fini(&u);
    /* Two equal shares reveal no more than one. */
    c.alpha = twins;
    assert_int_equal(sherd__unmasked_find(&u, &c, 0, pair, 2), 0);
    assert_int_equal(u.rows, 0);
    sherd__unmasked_fini(&u);
    c.alpha = modulo;
    for (uint32_t prime = 0; prime < 2; prime++) {
        assert_int_equal(sherd__unmasked_find(&u, &c, prime, first, 2), 0);
        assert_int_equal(u.rows, 0);
        sherd__unmasked_fini(&u);
    }
}

static void invalid_codes_are_refused(void **s)
{
    static const uint32_t same[] = { 1, 2, 1 + 5931641 };
    sherd__seen_code c = code(2, 1, 4);
    (void)s;
    assert_int_equal(sherd__modular_check(&c, NULL), 0);
    c.beta = same;
    assert_int_equal(sherd__modular_check(&c, NULL), SHERD_EINVAL);
    c = code(0, 1, 4);
    assert_int_equal(sherd__modular_check(&c, NULL), SHERD_EINVAL);
    c = code(1, 0, 4);
    assert_int_equal(sherd__modular_check(&c, NULL), SHERD_EINVAL);
    c = code(63, 2, 4);
    assert_int_equal(sherd__modular_check(&c, NULL), SHERD_EINVAL);
    c = code(UINT32_MAX, 2, 4);
    assert_int_equal(sherd__modular_check(&c, NULL), SHERD_EINVAL);
    c = code(2, 1, 4);
    c.primes[1] = c.primes[0];
    assert_int_equal(sherd__modular_check(&c, NULL), SHERD_EINVAL);
    c.primes[1] = 15;
    assert_int_equal(sherd__modular_check(&c, NULL), SHERD_EINVAL);
    c.primes_len = 5;
    assert_int_equal(sherd__modular_check(&c, NULL), SHERD_EINVAL);
}

static void failed_allocations_are_reported(void **s)
{
    static const uint32_t members[] = { 0, 1, 2 };
    sherd__seen_code c = code(2, 1, 4);
    sherd__unmasked u;
    (void)s;
    for (size_t nth = 1; nth <= 3; nth++) {
        sherd__alloc_fail_nth(nth);
        assert_int_equal(sherd__unmasked_find(&u, &c, 0, members, 3), SHERD_ENOMEM);
    }
    sherd__alloc_fail_nth(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverses_and_centred_residues_are_correct),
        cmocka_unit_test(weights_equal_those_of_the_scheme),
        cmocka_unit_test(weights_of_the_inner_code_equal_those_of_the_scheme),
        cmocka_unit_test(a_share_at_a_blocks_point_is_that_block),
        cmocka_unit_test(short_multiples_are_the_shortest),
        cmocka_unit_test(t_shares_have_no_mask_free_combination_and_more_shares_have),
        cmocka_unit_test(no_t_shares_of_any_code_in_use_cancel_their_masks),
        cmocka_unit_test(invalid_points_are_found_within_t_shares),
        cmocka_unit_test(invalid_codes_are_refused),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
