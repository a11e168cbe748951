/*
 * The inner-product code: the example of the design, products compared with integers, the
 * distribution of what T nodes see, and refusals.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "crypto/inner.h"
#include "matrix/residue.h"
#include "tests/support/draw.h"
#include "tests/unit/crypto/lagrange_world.h"

#define SHARES_MAX (2 * MOST)

static const sherd__code *const inner = &sherd__code_inner;

static uint64_t weight(double w, uint32_t p)
{
    return lcc_mod((int64_t)w, p);
}

/* --- the code -------------------------------------------------------------------------------- */

static void the_weights_are_those_of_the_example(void **s)
{
    (void)s;
    static const uint32_t p = 251;
    static const uint64_t left[3][4] = { { 0, 1, 2, 3 }, { 0, 1, 4, 9 }, { 1, 1, 1, 1 } };
    static const uint64_t right[3][4] = { { 0, 123, 4, 124 },
                                          { 0, 126, 250, 126 },
                                          { 209, 126, 125, 42 } };
    const sherd__lcc c = { 2, 1, 4 };
    double w[3];
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(inner->left(&c, p, i, w), 0);
        assert_true(sherd__residue_canonical(w, 3, p));
        for (uint32_t j = 0; j < 3; j++) assert_int_equal(weight(w[j], p), left[j][i]);
        assert_int_equal(inner->right(&c, p, i, w), 0);
        assert_true(sherd__residue_canonical(w, 3, p));
        for (uint32_t j = 0; j < 3; j++) assert_int_equal(weight(w[j], p), right[j][i]);
    }
}

static void every_node_is_needed_and_takes_part(void **s)
{
    (void)s;
    for (uint32_t n = 0; n < 200; n++)
        for (uint32_t t = 0; t < 70; t++) {
            uint32_t m = inner->blocks(n, t, 0, true);
            bool fits = t >= 1 && n > 2 * t && n - 2 * t + t <= MOST;
            assert_int_equal(m, fits ? n - 2 * t : 0);
            if (m) assert_int_equal(inner->threshold(m, t, true), n);
            assert_int_equal(inner->blocks(n, t, 1, true), 0);
            assert_int_equal(inner->blocks(n, t, 0, false), 0);
        }
    assert_true(inner->complete);
    assert_int_equal(inner->blocks(UINT32_MAX, 1, 0, true), 0);
    assert_int_equal(inner->blocks(3, UINT32_MAX, 0, true), 0);
}

static void codes_with_coinciding_points_or_other_sizes_are_refused(void **s)
{
    (void)s;
    static const sherd__lcc bad[] = { { 0, 1, 2 },    { 1, 0, 1 },          { 2, 1, 3 },
                                      { 2, 1, 5 },    { 64, 1, 66 },        { 63, 2, 67 },
                                      { 1, 64, 129 }, { UINT32_MAX, 1, 1 }, { 1, UINT32_MAX, 1 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(inner->check(&bad[i], 5931641), SHERD_EINVAL);
    for (uint32_t t = 1; t < 4; t++)
        for (uint32_t m = 1; m < 20; m++) {
            const sherd__lcc c = { m, t, m + 2 * t };
            static const uint32_t primes[] = { 5, 7, 11, 13, 17, 19, 23, 251, 8388593 };
            for (size_t i = 0; i < sizeof primes / sizeof *primes; i++)
                assert_int_equal(inner->check(&c, primes[i]),
                                 c.shares <= primes[i] ? SHERD_OK : SHERD_EINVAL);
            assert_int_equal(inner->check(&c, 5931643), SHERD_EINVAL); /* not a prime */
            double w[MOST];
            assert_int_equal(inner->left(&c, 251, c.shares, w), SHERD_EINVAL);
            assert_int_equal(inner->right(&c, 251, c.shares, w), SHERD_EINVAL);
            for (uint32_t p = 5; p < c.shares; p += 2) { /* points coincide */
                assert_int_equal(inner->left(&c, p, p, w), SHERD_EINVAL);
                assert_int_equal(inner->right(&c, p, p, w), SHERD_EINVAL);
            }
        }
}

/* --- products -------------------------------------------------------------------------------- */

/* One entry of a product: a row of A and a column of B, M blocks of one number and T masks each.
 * Returns the sum of the answers of all nodes but `missing`. */
static uint64_t answer_sum(const sherd__lcc *c, uint32_t p, const int64_t *a, const int64_t *b,
                           uint32_t missing)
{
    uint32_t terms = c->blocks + c->masks;
    uint64_t all = 0;
    double w[MOST];
    for (uint32_t i = 0; i < c->shares; i++) {
        uint64_t u = 0, v = 0;
        assert_int_equal(inner->left(c, p, i, w), 0);
        assert_true(sherd__residue_canonical(w, terms, p));
        for (uint32_t j = 0; j < terms; j++) u = (u + weight(w[j], p) * lcc_mod(a[j], p)) % p;
        assert_int_equal(inner->right(c, p, i, w), 0);
        assert_true(sherd__residue_canonical(w, terms, p));
        for (uint32_t j = 0; j < terms; j++) v = (v + weight(w[j], p) * lcc_mod(b[j], p)) % p;
        if (i != missing) all = (all + u * v) % p;
    }
    return all;
}

static void the_sum_of_all_answers_is_the_product(void **s)
{
    (void)s;
    static const uint32_t primes[] = { 131, 227, 251, 5931641, 8388593 };
    for (size_t i = 0; i < sizeof primes / sizeof *primes; i++)
        for (uint32_t t = 1; t <= 5; t++)
            for (uint32_t m = 1; m + t <= MOST; m += 1 + m / 6) {
                const sherd__lcc c = { m, t, m + 2 * t };
                const uint32_t p = primes[i];
                int64_t a[MOST], b[MOST], product = 0;
                double one[SHARES_MAX];
                uint32_t share[SHARES_MAX];
                assert_int_equal(inner->check(&c, p), SHERD_OK);
                for (uint32_t j = 0; j < m + t; j++) {
                    a[j] = (int64_t)(draw() % 8388607) - 4194303;
                    b[j] = (int64_t)(draw() % 8388607) - 4194303;
                    if (j < m) product += a[j] * b[j];
                }
                assert_int_equal(answer_sum(&c, p, a, b, UINT32_MAX), lcc_mod(product, p));
                for (uint32_t j = 0; j < c.shares; j++) share[j] = j;
                inner->decode(&c, p, 0, share, c.shares, one);
                for (uint32_t j = 0; j < c.shares; j++) assert_true(one[j] == 1);
            }
}

/* A control: the product of random operands is not the sum of fewer answers. */
static void a_missing_answer_changes_the_sum(void **s)
{
    (void)s;
    const sherd__lcc c = { 3, 1, 5 };
    for (uint32_t missing = 1; missing < 5; missing++) {
        int64_t a[] = { 5, -7, 11, 13 }, b[] = { 3, 2, -9, 4 };
        assert_int_not_equal(answer_sum(&c, 5931641, a, b, missing), lcc_mod(-98, 5931641));
    }
}

/* --- hiding ---------------------------------------------------------------------------------- */

typedef int weights(const sherd__lcc *c, uint32_t p, uint32_t share, double *w);

static uint32_t power(uint32_t x, uint32_t e)
{
    uint32_t r = 1;
    for (; e > 0; e--) r *= x;
    return r;
}

/* Counts how often each view of the shares in `set` occurs over all masks, for these blocks. */
static void count_views(const sherd__lcc *c, uint32_t p, weights *of, const uint64_t *block,
                        uint32_t set, uint32_t *count)
{
    double w[MOST];
    memset(count, 0, power(p, (uint32_t)__builtin_popcount(set)) * sizeof *count);
    for (uint32_t masks = 0; masks < power(p, c->masks); masks++) {
        uint32_t view = 0;
        for (uint32_t i = 0; i < c->shares; i++) {
            uint64_t x = 0;
            if (!(set >> i & 1)) continue;
            assert_int_equal(of(c, p, i, w), 0);
            for (uint32_t j = 0; j < c->blocks; j++) x += weight(w[j], p) * block[j];
            for (uint32_t t = 0, rest = masks; t < c->masks; t++, rest /= p)
                x += weight(w[c->blocks + t], p) * (rest % p);
            view = view * p + (uint32_t)(x % p);
        }
        count[view]++;
    }
}

#define VIEWS_MAX 117649 /* 7^6 */
static uint32_t first[VIEWS_MAX], count[VIEWS_MAX];

/* Returns whether the views of each coalition of `size` nodes have one distribution, whatever the
 * blocks of the operand are. */
static bool views_are_alike(const sherd__lcc *c, uint32_t p, weights *of, uint32_t size)
{
    bool alike = true;
    for (uint32_t set = 1; set < UINT32_C(1) << c->shares; set++) {
        if (__builtin_popcount(set) != (int)size) continue;
        for (uint32_t data = 0; data < power(p, c->blocks) && alike; data++) {
            uint64_t block[4];
            for (uint32_t j = 0, rest = data; j < c->blocks; j++, rest /= p) block[j] = rest % p;
            count_views(c, p, of, block, set, data ? count : first);
            if (data) alike = memcmp(first, count, power(p, size) * sizeof *count) == 0;
        }
    }
    return alike;
}

static void views_of_colluders_do_not_depend_on_the_data(void **s)
{
    (void)s;
    static const uint32_t cases[][3] = { /* p, N, T */
                                         { 5, 4, 1 },
                                         { 7, 4, 1 },
                                         { 5, 5, 1 },
                                         { 5, 5, 2 },
                                         { 7, 6, 2 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t p = cases[i][0], t = cases[i][2];
        const sherd__lcc c = { cases[i][1] - 2 * t, t, cases[i][1] };
        assert_int_equal(inner->check(&c, p), SHERD_OK);
        assert_true(views_are_alike(&c, p, inner->left, t));
        assert_true(views_are_alike(&c, p, inner->right, t));
        /* A control: with one more colluder they depend on it. */
        assert_false(views_are_alike(&c, p, inner->left, t + 1));
        assert_false(views_are_alike(&c, p, inner->right, t + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_weights_are_those_of_the_example),
        cmocka_unit_test(every_node_is_needed_and_takes_part),
        cmocka_unit_test(codes_with_coinciding_points_or_other_sizes_are_refused),
        cmocka_unit_test(the_sum_of_all_answers_is_the_product),
        cmocka_unit_test(a_missing_answer_changes_the_sum),
        cmocka_unit_test(views_of_colluders_do_not_depend_on_the_data),
    };
    return cmocka_run_group_tests_name("crypto/inner", tests, NULL, NULL);
}
