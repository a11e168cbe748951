/*
 * The Lagrange code: weights compared with the polynomials that they evaluate; enough answers
 * decode and too few do not; T shares reveal nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "crypto/code.h"
#include "matrix/residue.h"
#include "tests/unit/crypto/lagrange_world.h"

static uint64_t power(uint64_t x, uint64_t e, uint32_t p)
{
    uint64_t r = 1 % p;
    for (x %= p; e != 0; e /= 2, x = x * x % p)
        if (e & 1) r = r * x % p;
    return r;
}

/* Returns the rank of a rows x cols matrix modulo p; overwrites the matrix. */
static size_t rank(uint64_t *m, size_t rows, size_t cols, uint32_t p)
{
    size_t r = 0;
    for (size_t c = 0; c < cols && r < rows; c++) {
        size_t pivot = r;
        while (pivot < rows && m[pivot * cols + c] == 0) pivot++;
        if (pivot == rows) continue;
        for (size_t j = 0; j < cols; j++) {
            uint64_t t = m[pivot * cols + j];
            m[pivot * cols + j] = m[r * cols + j];
            m[r * cols + j] = t;
        }
        uint64_t inverse = power(m[r * cols + c], p - 2, p);
        for (size_t i = r + 1; i < rows; i++) {
            uint64_t f = m[i * cols + c] * inverse % p;
            for (size_t j = c; j < cols; j++)
                m[i * cols + j] = (m[i * cols + j] + (p - f) * m[r * cols + j]) % p;
        }
        r++;
    }
    return r;
}

/* Advances to the next subset of `take` elements of 0..n-1 in lexical order. Returns false after
 * the last. */
static bool next_subset(uint32_t *set, uint32_t take, uint32_t n)
{
    for (uint32_t i = take; i-- > 0;)
        if (set[i] < n - take + i) {
            for (set[i]++; i + 1 < take; i++) set[i + 1] = set[i] + 1;
            return true;
        }
    return false;
}

static void first_subset(uint32_t *set, uint32_t take)
{
    for (uint32_t i = 0; i < take; i++) set[i] = i;
}

/* Primes of both tables, and primes that are barely large enough. */
static uint32_t prime(size_t i)
{
    const sherd__primes *table = i < SHERD__TABLE_PRIMES ? &sherd__primes_default
                                                         : &sherd__primes_wide;
    return table->p[i % SHERD__TABLE_PRIMES];
}
enum { PRIMES = 2 * SHERD__TABLE_PRIMES };

/* --- the code -------------------------------------------------------------------------------- */

static void the_number_of_blocks_is_the_largest_that_the_threshold_allows(void **s)
{
    (void)s;
    static const uint32_t table[][4] = {
        { 3, 1, 0, 1 }, { 5, 1, 0, 2 }, { 7, 1, 0, 3 }, { 8, 1, 1, 3 }, { 16, 2, 3, 5 }
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_int_equal(sherd__lcc_blocks(table[i][0], table[i][1], table[i][2], true),
                         table[i][3]);
    for (uint32_t n = 0; n < 200; n++)
        for (uint32_t t = 1; t < 70; t++)
            for (uint32_t spare = 0; spare < 9; spare++)
                for (int both = 0; both < 2; both++) {
                    uint32_t k = sherd__lcc_blocks(n, t, spare, both);
                    if (k > 0) assert_true(sherd__lcc_threshold(k, t, both) + spare <= n);
                    if (k + t < MOST) assert_true(sherd__lcc_threshold(k + 1, t, both) + spare > n);
                    assert_true(k == 0 || k + t <= MOST);
                }
    assert_int_equal(sherd__lcc_threshold(3, 1, true), 7);
    assert_int_equal(sherd__lcc_threshold(3, 1, false), 4);
}

static void no_point_of_a_share_is_the_point_of_a_block(void **s)
{
    (void)s;
    for (size_t i = 0; i < PRIMES; i++)
        for (uint32_t terms = 2; terms <= MOST; terms++) {
            const sherd__lcc c = { terms - 1, 1, SHERD__LCC_SHARES_MAX };
            static bool seen[MOST + SHERD__LCC_SHARES_MAX + 1];
            memset(seen, 0, sizeof seen);
            assert_int_equal(sherd__lcc_check(&c, prime(i)), SHERD_OK);
            for (uint32_t j = 0; j < terms + c.shares; j++) {
                uint32_t x = (j < terms ? sherd__lcc_beta(j)
                                        : sherd__lcc_alpha(&c, prime(i), j - terms)) %
                             prime(i);
                assert_true(x < sizeof seen);
                assert_false(seen[x]);
                seen[x] = true;
            }
        }
}

static void invalid_codes_are_refused(void **s)
{
    (void)s;
    static const sherd__lcc bad[] = { { 0, 1, 3 },          { 1, 0, 3 },
                                      { 1, 1, 0 },          { 64, 1, 3 },
                                      { 63, 2, 3 },         { 1, 64, 3 },
                                      { UINT32_MAX, 1, 1 }, { 1, UINT32_MAX, 1 },
                                      { 1, 1, 4097 },       { UINT32_MAX, 2, UINT32_MAX } };
    const sherd__lcc good = { 3, 1, 7 }, largest = { 62, 2, 4096 }, tiny = { 2, 2, 3 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sherd__lcc_check(&bad[i], 5931641), SHERD_EINVAL);
    assert_int_equal(sherd__lcc_check(&good, 5931641), SHERD_OK);
    assert_int_equal(sherd__lcc_check(&largest, 8388593), SHERD_OK);
    assert_int_equal(sherd__lcc_check(&good, 5931643), SHERD_EINVAL); /* not a prime */
    assert_int_equal(sherd__lcc_check(&good, 7), SHERD_EINVAL);       /* 11 points do not fit */
    assert_int_equal(sherd__lcc_check(&good, 11), SHERD_OK);
    assert_int_equal(sherd__lcc_check(&tiny, 7), SHERD_OK);
    assert_int_equal(sherd__lcc_check(&tiny, 5), SHERD_EINVAL);
}

/* The point after p is that of the first block, whose share would be the block without a mask. Each
 * prime that is used limits the points, and the smallest one all of them. */
static void points_never_wrap(void **s)
{
    (void)s;
    static const uint32_t primes[] = { 5, 7, 11, 227, 239, 251 };
    for (size_t i = 0; i < sizeof primes / sizeof *primes; i++)
        for (uint32_t terms = 2; terms <= MOST && terms < primes[i]; terms++) {
            const uint32_t p = primes[i], most = p - terms;
            sherd__lcc c = { terms - 1, 1, most };
            double w[MOST], before[MOST];
            assert_int_equal(sherd__lcc_check(&c, p), SHERD_OK);
            for (uint32_t share = 0; share < most; share++) {
                uint32_t x = sherd__lcc_alpha(&c, p, share);
                assert_true(x > terms && x <= p);
                assert_int_equal(sherd__lcc_encode_weights(&c, p, share, w), SHERD_OK);
                bool masked = false;
                for (uint32_t t = c.blocks; t < terms; t++) masked = masked || w[t] != 0;
                assert_true(masked);
            }
            memcpy(before, w, sizeof w);
            for (uint32_t share = most; share < most + terms; share++) {
                assert_int_equal(sherd__lcc_alpha(&c, p, share), 0);
                assert_int_equal(sherd__lcc_encode_weights(&c, p, share, w), SHERD_EINVAL);
                assert_int_equal(sherd__code_lagrange.right(&c, p, share, w), SHERD_EINVAL);
            }
            assert_int_equal(sherd__lcc_alpha(&c, p, UINT32_MAX), 0);
            assert_memory_equal(before, w, terms * sizeof *w);
            c.shares++;
            assert_int_equal(sherd__lcc_check(&c, p), SHERD_EINVAL);
        }
}

/* --- weights --------------------------------------------------------------------------------- */

/* Checks sum_i w[i] * x[i]^d = at^d for every d below len: the weights evaluate every
 * polynomial. */
static void weights_carry_monomials(const double *w, const uint32_t *x, uint32_t len, uint32_t at,
                                    uint32_t p)
{
    assert_true(sherd__residue_canonical(w, len, p));
    for (uint32_t d = 0; d < len; d++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < len; i++)
            sum = (sum + lcc_mod((int64_t)w[i], p) * power(x[i], d, p)) % p;
        assert_int_equal(sum, power(at, d, p));
    }
}

static void weights_interpolate_every_polynomial(void **s)
{
    (void)s;
    static const sherd__lcc codes[] = {
        { 1, 1, 3 }, { 3, 1, 7 }, { 5, 2, 16 }, { 2, 3, 40 }, { 60, 4, 130 }
    };
    for (size_t i = 0; i < PRIMES; i++)
        for (size_t k = 0; k < sizeof codes / sizeof *codes; k++) {
            const sherd__lcc *c = &codes[k];
            uint32_t p = prime(i), terms = c->blocks + c->masks, x[2 * MOST], share[2 * MOST];
            uint32_t len = sherd__lcc_threshold(c->blocks, c->masks, true);
            double w[2 * MOST];
            for (uint32_t j = 0; j < terms; j++) x[j] = sherd__lcc_beta(j);
            for (uint32_t q = 0; q < c->shares; q += 1 + c->shares / 9) {
                assert_int_equal(sherd__lcc_encode_weights(c, p, q, w), 0);
                weights_carry_monomials(w, x, terms, sherd__lcc_alpha(c, p, q), p);
            }
            for (uint32_t j = 0; j < len; j++) { /* some shares, in mixed order */
                share[j] = (uint32_t)((j * UINT64_C(7) + 3) % c->shares);
                for (uint32_t q = 0; q < j; q++)
                    if (share[q] == share[j]) share[j] = (share[j] + 1) % c->shares, q = UINT32_MAX;
                x[j] = sherd__lcc_alpha(c, p, share[j]);
            }
            for (uint32_t j = 0; j < c->blocks; j += 1 + c->blocks / 5) {
                sherd__lcc_decode_weights(c, p, j, share, len, w);
                weights_carry_monomials(w, x, len, sherd__lcc_beta(j), p);
            }
        }
}

/* Checks the T x T minors of the weights of masks, for any T shares. */
static void minors_of(const sherd__lcc *c, uint32_t p)
{
    double w[16][MOST];
    uint32_t set[3];
    for (uint32_t i = 0; i < c->shares; i++)
        assert_int_equal(sherd__lcc_encode_weights(c, p, i, w[i]), 0);
    first_subset(set, c->masks);
    do {
        uint64_t m[9];
        for (uint32_t i = 0; i < c->masks; i++)
            for (uint32_t t = 0; t < c->masks; t++)
                m[i * c->masks + t] = lcc_mod((int64_t)w[set[i]][c->blocks + t], p);
        assert_int_equal(rank(m, c->masks, c->masks, p), c->masks);
    } while (next_subset(set, c->masks, c->shares));
}

static void every_minor_of_the_mask_weights_is_invertible(void **s)
{
    (void)s;
    for (size_t i = 0; i < PRIMES; i++)
        for (uint32_t masks = 1; masks <= 3; masks++)
            for (uint32_t blocks = 1; blocks <= 8; blocks++) {
                const sherd__lcc c = { blocks, masks, 16 };
                minors_of(&c, prime(i));
            }
}

/* --- decoding -------------------------------------------------------------------------------- */

enum { LEN = 37 };

/* The computation of the nodes: answers[i] = share of u times share of v, element by element. */
typedef struct run {
    sherd__lcc c;
    uint32_t p;
    double u[MOST][LEN], v[MOST][LEN];
    uint8_t answer[16][3 * LEN];
} run;

static void encode(const run *r, double x[][LEN], uint8_t out[][3 * LEN])
{
    uint32_t terms = r->c.blocks + r->c.masks;
    const double *in[MOST];
    double w[16 * MOST];
    uint8_t *to[16];
    for (uint32_t j = 0; j < terms; j++) in[j] = x[j];
    for (uint32_t i = 0; i < r->c.shares; i++) {
        assert_int_equal(sherd__lcc_encode_weights(&r->c, r->p, i, w + i * terms), 0);
        to[i] = out[i];
    }
    sherd__lcc_encode(w, r->c.shares, terms, r->p, in, LEN, to);
}

static void answer_all(run *r, bool both)
{
    uint8_t u[16][3 * LEN], v[16][3 * LEN];
    for (uint32_t j = 0; j < r->c.blocks + r->c.masks; j++)
        for (size_t i = 0; i < LEN; i++) {
            r->u[j][i] = lcc_residue(r->p);
            r->v[j][i] = j > 0 && j < r->c.blocks ? r->v[0][i] : lcc_residue(r->p);
        }
    encode(r, r->u, u);
    encode(r, r->v, v);
    for (uint32_t s = 0; s < r->c.shares; s++) {
        double x[LEN], y[LEN];
        assert_int_equal(sherd__residue_unpack(u[s], LEN, r->p, x, NULL), SHERD_OK);
        assert_int_equal(sherd__residue_unpack(v[s], LEN, r->p, y, NULL), SHERD_OK);
        for (size_t i = 0; i < LEN; i++) x[i] *= both ? y[i] : 1.0;
        sherd__residue_from_f64(x, LEN, r->p, x);
        sherd__residue_pack(x, LEN, r->p, r->answer[s]);
    }
}

/* Returns whether the answers of `share` decode to the products of all blocks. */
static bool decodes(const run *r, bool both, const uint32_t *share, uint32_t len)
{
    static double out[MOST][LEN], w[MOST * 2 * MOST];
    double *to[MOST];
    const uint8_t *in[16];
    bool right = true;
    for (uint32_t j = 0; j < r->c.blocks; j++) {
        sherd__lcc_decode_weights(&r->c, r->p, j, share, len, w + j * len);
        to[j] = out[j];
    }
    for (uint32_t i = 0; i < len; i++) in[i] = r->answer[share[i]];
    assert_int_equal(sherd__lcc_decode(w, r->c.blocks, len, r->p, in, LEN, to), SHERD_OK);
    for (uint32_t j = 0; j < r->c.blocks; j++)
        for (size_t i = 0; i < LEN; i++) {
            double want = r->u[j][i] * (both ? r->v[j][i] : 1.0);
            sherd__residue_from_f64(&want, 1, r->p, &want);
            right = right && out[j][i] == want;
        }
    return right;
}

static void any_threshold_of_eight_answers_decode_and_fewer_do_not(void **s)
{
    (void)s;
    for (size_t i = 0; i < PRIMES; i++)
        for (uint32_t masks = 1; masks <= 3; masks++)
            for (uint32_t blocks = 1; blocks <= 6; blocks++)
                for (int both = 0; both < 2; both++) {
                    run r = { .c = { blocks, masks, 8 }, .p = prime(i) };
                    uint32_t set[8], len = sherd__lcc_threshold(blocks, masks, both);
                    if (len > 8 || blocks + masks > 8) continue;
                    answer_all(&r, both);
                    first_subset(set, len);
                    do {
                        assert_true(decodes(&r, both, set, len));
                    } while (next_subset(set, len, 8));
                    first_subset(set, len - 1);
                    do {
                        assert_false(decodes(&r, both, set, len - 1));
                    } while (next_subset(set, len - 1, 8));
                }
}

/* For polynomials with `threshold` coefficients, one answer fewer does not determine the value at
 * any block's point: its row of powers is independent of the answers' rows. */
static void with_one_answer_fewer_no_block_is_determined(void **s)
{
    (void)s;
    for (size_t i = 0; i < PRIMES; i++)
        for (uint32_t blocks = 1; blocks <= 3; blocks++) {
            const sherd__lcc c = { blocks, 1, 8 };
            uint32_t p = prime(i), len = sherd__lcc_threshold(blocks, 1, true), set[8];
            first_subset(set, len - 1);
            do
                for (uint32_t j = 0; j < blocks; j++) {
                    uint64_t m[64];
                    for (uint32_t row = 0; row < len; row++)
                        for (uint32_t d = 0; d < len; d++)
                            m[row * len + d] = power(row + 1 < len
                                                         ? sherd__lcc_alpha(&c, p, set[row])
                                                         : sherd__lcc_beta(j),
                                                     d, p);
                    assert_int_equal(rank(m, len, len, p), len);
                }
            while (next_subset(set, len - 1, 8));
        }
}

/* --- hiding ---------------------------------------------------------------------------------- */

/* Counts how often each tuple of values of the shares in `set` occurs over all masks, for these
 * blocks. */
static void count_tuples(const sherd__lcc *c, uint32_t p, const double *blocks, const uint32_t *set,
                         uint32_t take, uint32_t *count)
{
    enum { N = 7 * 7 };
    uint32_t terms = c->blocks + c->masks, n = (uint32_t)power(p, c->masks, 1u << 20);
    static double x[4][N], w[4 * 4];
    const double *in[4];
    uint8_t out[4][3 * N], *to[4];
    assert_true(n <= N && terms <= 4 && c->shares <= 4);
    for (uint32_t j = 0; j < terms; j++) {
        in[j] = x[j];
        for (uint32_t i = 0; i < n; i++) {
            uint32_t digit = j < c->blocks ? 0
                                           : i / (uint32_t)power(p, j - c->blocks, 1u << 20) % p;
            x[j][i] = j < c->blocks ? blocks[j] : (double)digit - (double)((p - 1) / 2);
        }
    }
    for (uint32_t i = 0; i < c->shares; i++) {
        assert_int_equal(sherd__lcc_encode_weights(c, p, i, w + i * terms), 0);
        to[i] = out[i];
    }
    sherd__lcc_encode(w, c->shares, terms, p, in, n, to);
    memset(count, 0, 7 * 7 * 7 * sizeof *count);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t tuple = 0;
        for (uint32_t q = 0; q < take; q++) tuple = tuple * p + out[set[q]][3 * i];
        count[tuple]++;
    }
}

static void shares_of_colluders_are_uniform_for_any_data(void **s)
{
    (void)s;
    static const struct {
        sherd__lcc c;
        uint32_t p;
    } cases[] = { { { 1, 1, 3 }, 5 }, { { 2, 1, 2 }, 5 }, { { 1, 1, 4 }, 7 }, { { 2, 1, 4 }, 7 },
                  { { 1, 2, 4 }, 7 }, { { 2, 2, 3 }, 7 }, { { 3, 1, 3 }, 7 } };
    uint32_t count[7 * 7 * 7], set[4];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const sherd__lcc *c = &cases[k].c;
        uint32_t p = cases[k].p, all = (uint32_t)power(p, c->blocks, 1u << 20);
        assert_int_equal(sherd__lcc_check(c, p), SHERD_OK);
        for (uint32_t data = 0; data < all; data++) {
            double blocks[3];
            for (uint32_t j = 0, rest = data; j < c->blocks; j++, rest /= p)
                blocks[j] = (double)(rest % p) - (double)((p - 1) / 2);
            first_subset(set, c->masks);
            do {
                count_tuples(c, p, blocks, set, c->masks, count);
                for (uint32_t i = 0; i < power(p, c->masks, 1u << 20); i++)
                    assert_int_equal(count[i], 1);
            } while (next_subset(set, c->masks, c->shares));
        }
    }
}

/* A control for the test above: with one share more than there are masks, the distribution depends
 * on the data. */
static void with_one_more_colluder_shares_depend_on_the_data(void **s)
{
    (void)s;
    const sherd__lcc c = { 1, 1, 3 };
    const uint32_t set[2] = { 0, 2 };
    const double one = 1.0, two = 2.0;
    uint32_t a[7 * 7 * 7], b[7 * 7 * 7];
    count_tuples(&c, 7, &one, set, 2, a);
    count_tuples(&c, 7, &two, set, 2, b);
    assert_memory_not_equal(a, b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_of_blocks_is_the_largest_that_the_threshold_allows),
        cmocka_unit_test(no_point_of_a_share_is_the_point_of_a_block),
        cmocka_unit_test(invalid_codes_are_refused),
        cmocka_unit_test(points_never_wrap),
        cmocka_unit_test(weights_interpolate_every_polynomial),
        cmocka_unit_test(every_minor_of_the_mask_weights_is_invertible),
        cmocka_unit_test(any_threshold_of_eight_answers_decode_and_fewer_do_not),
        cmocka_unit_test(with_one_answer_fewer_no_block_is_determined),
        cmocka_unit_test(shares_of_colluders_are_uniform_for_any_data),
        cmocka_unit_test(with_one_more_colluder_shares_depend_on_the_data),
    };
    return cmocka_run_group_tests_name("crypto/lagrange", tests, NULL, NULL);
}
