/*
 * The kernels of the Lagrange code compared with int64: every number of terms, length and code,
 * with and without wide vectors.
 * link: -Wl,--wrap=sherd__lcc_encode_steps -Wl,--wrap=sherd__lcc_encode_wide
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "crypto/lagrange_internal.h"
#include "matrix/clones.h"
#include "matrix/residue.h"
#include "tests/support/draw.h"
#include "tests/unit/crypto/lagrange_world.h"

/* Processors with wide vectors have kernels of their own; `plain` switches them off. */
static bool plain, stepped;

bool __real_sherd__lcc_encode_steps(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                                    const double *const *in, size_t n, uint8_t *const *out);
bool __wrap_sherd__lcc_encode_steps(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                                    const double *const *in, size_t n, uint8_t *const *out);
size_t __real_sherd__lcc_encode_wide(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                                     const double *const *in, size_t n, uint8_t *const *out);
size_t __wrap_sherd__lcc_encode_wide(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                                     const double *const *in, size_t n, uint8_t *const *out);

bool __wrap_sherd__lcc_encode_steps(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                                    const double *const *in, size_t n, uint8_t *const *out)
{
    stepped = !plain && __real_sherd__lcc_encode_steps(w, shares, blocks, p, in, n, out);
    return stepped;
}

size_t __wrap_sherd__lcc_encode_wide(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                                     const double *const *in, size_t n, uint8_t *const *out)
{
    return plain ? 0 : __real_sherd__lcc_encode_wide(w, shares, blocks, p, in, n, out);
}

static const size_t lengths[] = { 0,  1,  2,  3,  7,  8,   9,   10,  11,  15,  16,
                                  17, 18, 19, 31, 33, 100, 511, 512, 513, 1100 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void fill(double *x, size_t n, uint32_t p, int kind)
{
    double h = (p - 1) / 2;
    for (size_t i = 0; i < n; i++)
        x[i] = kind == 0 ? lcc_residue(p) : kind == 1 || i % 2 == 0 ? h : -h;
}

static void shares_equal_int64_for_every_number_of_terms_and_length(void **s)
{
    plain = *s != NULL;
    enum { N = 1100, SHARES = 3 };
    static const uint32_t primes[] = { 5, 251, 5931641, 8388593 };
    for (uint32_t terms = 1; terms <= MOST; terms += 1 + terms / 20)
        for (size_t l = 0; l < LENGTHS; l++) {
            size_t n = lengths[l];
            uint32_t p = primes[(terms + l) % 4];
            double *x = malloc(terms * N * 8), w[SHARES * MOST];
            uint8_t *out[SHARES];
            const double *in[MOST];
            fill(x, terms * N, p, (int)(l % 3));
            fill(w, SHARES * terms, p, (int)((l + terms) % 3));
            for (uint32_t j = 0; j < terms; j++) in[j] = x + j * N;
            for (int i = 0; i < SHARES; i++) out[i] = malloc(3 * n); /* exact, for sanitizers */
            uint8_t *middle = out[1];
            out[1] = NULL;
            sherd__lcc_encode(w, SHARES, terms, p, in, n, out);
            out[1] = middle;
            for (size_t i = 0; i < n; i++)
                for (uint32_t q = 0; q < SHARES; q += 2) {
                    int64_t sum = 0;
                    for (uint32_t j = 0; j < terms; j++)
                        sum += (int64_t)w[q * terms + j] * (int64_t)in[j][i] % (int64_t)p;
                    const uint8_t *b = out[q] + 3 * i;
                    assert_int_equal(b[0] | b[1] << 8 | b[2] << 16, lcc_mod(sum, p));
                }
            for (int i = 0; i < SHARES; i++) free(out[i]);
            free(x);
        }
}

/* Values and differences at their bounds, with signs that make each share in turn the largest or
 * the smallest; rows of 0 and 1, whose residues are next to where fractions wrap. */
static void fill_code(double *x, size_t n, uint32_t term, const double *w, uint32_t p)
{
    for (size_t i = 0; i < n; i++) {
        double sign = (w[term] < 0) == (i % 2 != 0) ? 1 : -1;
        x[i] = i % 4 < 2   ? sign * ((p - 1) / 2)
               : i % 8 < 6 ? (double)(draw() % 3) - 1
                           : lcc_residue(p);
    }
}

static void check_code(const sherd__lcc *c, uint32_t p, size_t n)
{
    enum { N = 1100, SHARES = 24 };
    uint32_t terms = c->blocks + c->masks;
    double *x = malloc(terms * N * 8), w[SHARES * MOST];
    const double *in[MOST];
    uint8_t *out[SHARES], *skipped = NULL;
    for (uint32_t i = 0; i < c->shares; i++) {
        assert_int_equal(sherd__lcc_encode_weights(c, p, i, w + i * terms), 0);
        out[i] = malloc(3 * n); /* exact, for sanitizers */
    }
    uint32_t aim = (uint32_t)(draw() % c->shares);
    for (uint32_t j = 0; j < terms; j++) {
        fill_code(x + j * N, n, j, w + aim * terms, p);
        in[j] = x + j * N;
    }
    if (c->shares > 4) skipped = out[2], out[2] = NULL;
    sherd__lcc_encode(w, c->shares, terms, p, in, n, out);
    for (uint32_t q = 0; q < c->shares; q++)
        for (size_t i = 0; i < n && out[q]; i++) {
            int64_t sum = 0;
            for (uint32_t j = 0; j < terms; j++)
                sum += (int64_t)w[q * terms + j] * (int64_t)in[j][i] % (int64_t)p;
            const uint8_t *b = out[q] + 3 * i;
            assert_int_equal(b[0] | b[1] << 8 | b[2] << 16, lcc_mod(sum, p));
        }
    for (uint32_t i = 0; i < c->shares; i++) free(out[i]);
    free(skipped);
    free(x);
}

/* Codes and primes within and beyond the range in which steps are exact. */
static void shares_of_every_code_equal_int64(void **s)
{
    (void)s;
    static const sherd__lcc codes[] = { { 3, 1, 7 },  { 3, 1, 8 },  { 2, 1, 5 },  { 1, 1, 3 },
                                        { 1, 1, 2 },  { 2, 2, 8 },  { 4, 1, 9 },  { 1, 3, 7 },
                                        { 5, 2, 16 }, { 3, 1, 13 }, { 3, 1, 14 }, { 4, 1, 8 },
                                        { 1, 2, 24 }, { 3, 3, 6 },  { 3, 3, 7 } };
    static const uint32_t primes[] = { 5931641, 5931533, 8388593, 1048573, 524309, 262139, 251 };
    size_t fast = 0, all = 0;
    plain = false;
    for (size_t k = 0; k < sizeof codes / sizeof *codes; k++)
        for (size_t q = 0; q < sizeof primes / sizeof *primes; q++) {
            check_code(&codes[k], primes[q], lengths[(k + q) % LENGTHS]);
            check_code(&codes[k], primes[q], 1100);
            fast += stepped, all++;
        }
    if (fast) assert_true(all / 5 < fast && fast < all * 9 / 10); /* both paths were used */
    const sherd__lcc usual = { 3, 1, 7 };
    for (size_t l = 0; l < LENGTHS; l++) check_code(&usual, 5931641, lengths[l]);
#ifdef SHERD__IS_V4_BYTES
    if (SHERD__IS_V4_BYTES) assert_true(stepped);
#endif
}

/* One changed weight of a usual code changes only its own share, in the last columns, too. */
static void weights_that_belong_to_no_code_are_used_as_given(void **s)
{
    (void)s;
    enum { N = 37 };
    const sherd__lcc c = { 3, 1, 7 };
    const uint32_t p = 5931641;
    double x[4][N], w[7 * 4];
    uint8_t bytes[7][3 * N], *out[7];
    const double *const in[] = { x[0], x[1], x[2], x[3] };
    plain = false;
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(sherd__lcc_encode_weights(&c, p, i, w + 4 * i), 0);
    for (int i = 0; i < 7; i++) out[i] = bytes[i];
    fill(x[0], 4 * N, p, 0);
    for (int at = 0; at < 28; at++) {
        w[at] += 1;
        sherd__lcc_encode(w, 7, 4, p, in, N, out);
        assert_false(stepped);
        for (int i = 0; i < 7 * N; i++) {
            const double *v = w + 4 * (i / N);
            const uint8_t *b = bytes[i / N] + 3 * (i % N);
            int64_t sum = 0;
            for (int j = 0; j < 4; j++) sum += (int64_t)(v[j] * x[j][i % N]);
            assert_int_equal(b[0] | b[1] << 8 | b[2] << 16, lcc_mod(sum, p));
        }
        w[at] -= 1;
    }
}

static void decoding_equals_int64_for_every_number_and_length_of_answers(void **s)
{
    (void)s;
    enum { N = 1100, BLOCKS = 3 };
    static const uint32_t primes[] = { 5, 251, 5931641, 8388593 };
    for (uint32_t len = 1; len < 2 * MOST; len += 1 + len / 8)
        for (size_t l = 0; l < LENGTHS; l++) {
            size_t n = lengths[l];
            uint32_t p = primes[(len + l) % 4];
            double *x = malloc(len * N * 8), *w = malloc(BLOCKS * len * 8), *out[BLOCKS];
            uint8_t *packed = malloc(len * 3 * n);
            const uint8_t *in[2 * MOST];
            fill(x, len * N, p, (int)(l % 3));
            fill(w, BLOCKS * len, p, (int)((l + len) % 3));
            for (uint32_t j = 0; j < len; j++) {
                sherd__residue_pack(x + j * N, n, p, packed + j * 3 * n);
                in[j] = packed + j * 3 * n;
            }
            for (int i = 0; i < BLOCKS; i++) out[i] = malloc(8 * n);
            assert_int_equal(sherd__lcc_decode(w, BLOCKS, len, p, in, n, out), SHERD_OK);
            for (int q = 0; q < BLOCKS; q++) {
                assert_true(sherd__residue_canonical(out[q], n, p));
                for (size_t i = 0; i < n; i++) {
                    int64_t sum = 0;
                    for (uint32_t j = 0; j < len; j++)
                        sum += (int64_t)w[(uint32_t)q * len + j] * (int64_t)x[j * N + i] %
                               (int64_t)p;
                    assert_int_equal(lcc_mod((int64_t)out[q][i], p), lcc_mod(sum, p));
                }
            }
            if (n > 0) { /* p itself is not a residue, at any place */
                uint8_t *bad = packed + draw() % len * 3 * n + 3 * (draw() % n);
                memcpy(bad, (const uint8_t[]){ (uint8_t)p, (uint8_t)(p >> 8), (uint8_t)(p >> 16) },
                       3);
                assert_int_equal(sherd__lcc_decode(w, BLOCKS, len, p, in, n, out), SHERD_EFRAME);
            }
            for (int i = 0; i < BLOCKS; i++) free(out[i]);
            free(x), free(w), free(packed);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_equal_int64_for_every_number_of_terms_and_length),
        { "shares equal int64 (plain)", shares_equal_int64_for_every_number_of_terms_and_length,
          NULL, NULL, &plain },
        cmocka_unit_test(shares_of_every_code_equal_int64),
        cmocka_unit_test(weights_that_belong_to_no_code_are_used_as_given),
        cmocka_unit_test(decoding_equals_int64_for_every_number_and_length_of_answers),
    };
    return cmocka_run_group_tests_name("crypto/lagrange_kernels", tests, NULL, NULL);
}
