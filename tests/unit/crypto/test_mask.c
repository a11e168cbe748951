/*
 * Masks: equal to the header's definition, computed with integers and libsodium's primitives;
 * uniform; never repeated. The keystream is wrapped so that a test can choose the words.
 * link: -Wl,--wrap=sherd__keystream_read
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/keystream.h"
#include "crypto/mask.h"
#include "matrix/residue.h"

#define KEY 32

/* ---- known entropy --------------------------------------------------------------------------- */

static size_t drawn;

static void fill_known(void *ctx, void *out, size_t len)
{
    drawn += len;
    memset(out, *(const uint8_t *)ctx, len);
}

static sherd__masks *masks_of(uint8_t byte)
{
    sherd__masks *m;
    const sherd__entropy e = { fill_known, &byte };
    assert_int_equal(sherd__masks_new(&m, &e), SHERD_OK);
    return m;
}

/* ---- chosen words ---------------------------------------------------------------------------- */

static const uint32_t *chosen; /* words of nonce 0 */
static const uint32_t *spare;  /* words of every other nonce, one block; NULL: such a read is an
                                * error */
static uint64_t asked;         /* the last other nonce that was read */

int __real_sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                                 size_t len);
int __wrap_sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                                 size_t len);

int __wrap_sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                                 size_t len)
{
    if (!chosen) return __real_sherd__keystream_read(ks, nonce, block, out, len);
    if (nonce == 0) {
        memcpy(out, chosen + 16 * block, len);
    } else {
        asked = nonce;
        memcpy(out, spare + 16 * block, len);
    }
    return SHERD_OK;
}

/* --- the definition -------------------------------------------------------------------------- */

/* The definition of crypto/mask.h, with integers. Returns false if the word is dropped. */
static bool defined_residue(uint32_t word, uint32_t p, int64_t *r)
{
    const int64_t half = INT64_C(1) << 29, range = INT64_C(1) << 30;
    int64_t v = (int64_t)(word / 4), wide, l;
    if (v >= half) v -= range;
    wide = v * p;
    *r = wide >= -half ? (wide + half) / range : -((-wide - half + range - 1) / range);
    l = wide - *r * range;
    assert_true(l >= -half && l < half);
    return l >= -half + range % p;
}

static void defined_key(uint8_t byte, const sherd__mask_id *id, uint8_t key[KEY])
{
    static const char label[] = "sherd mask-v1";
    uint8_t master[KEY], text[sizeof label + 24];
    memset(master, byte, KEY);
    memcpy(text, label, sizeof label);
    sherd__put_u32(text + sizeof label, (uint32_t)id->role);
    sherd__put_u32(text + sizeof label + 4, id->t);
    sherd__put_u32(text + sizeof label + 8, id->prime_index);
    sherd__put_u32(text + sizeof label + 12, id->p);
    sherd__put_u64(text + sizeof label + 16, id->width);
    crypto_generichash(key, KEY, text, sizeof text, master, KEY);
}

static uint32_t defined_word(const uint8_t key[KEY], uint64_t nonce, uint64_t word)
{
    uint8_t block[64] = { 0 }, n[8];
    sherd__put_u64(n, nonce);
    crypto_stream_chacha20_xor_ic(block, block, 64, n, word / 16, key);
    return sherd__get_u32(block + word % 16 * 4);
}

/* Returns element (row, col); *dropped counts dropped words. */
static int64_t defined_element(const uint8_t key[KEY], const sherd__mask_id *id, uint64_t row,
                               uint64_t col, size_t *dropped)
{
    uint64_t e = (id->width + 15) / 16 * 16 * row + col;
    int64_t r;
    if (defined_residue(defined_word(key, 0, e), id->p, &r)) return r;
    ++*dropped;
    for (uint64_t i = 0; !defined_residue(defined_word(key, 1 + e, i), id->p, &r); i++) ++*dropped;
    return r;
}

/* Returns a prime for which words are dropped as often as possible: 2^30 mod p is nearly p. */
static uint32_t wasteful_prime(void)
{
    for (uint32_t p = (1u << 23) - 1;; p -= 2)
        if ((1u << 30) % p > p - p / 16 && sherd__prime_ok(p)) return p;
}

static void elements_equal_the_definition_in_the_header(void **s)
{
    (void)s;
    static const size_t widths[] = { 1, 2, 10, 15, 16, 17, 100, 784, 4096, 4097, 9000 };
    const uint32_t primes[] = { 5, 5931641, 8388593, wasteful_prime() };
    static double got[64 * 9000];
    size_t dropped = 0;
    sherd__masks *m = masks_of(7);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (uint32_t q = 0; q < 4; q++) {
            const sherd__mask_id id = { w % 2 ? SHERD__MASK_LEFT : SHERD__MASK_RIGHT, (uint32_t)w,
                                        q, primes[q], widths[w] };
            uint64_t row0 = w % 3 ? w * 1000 : UINT64_C(1) << 40;
            size_t n = widths[w], rows = 9000 / n < 3 ? 3 : 9000 / n > 64 ? 64 : 9000 / n;
            uint8_t key[KEY];
            defined_key(7, &id, key);
            assert_int_equal(sherd__masks_part(m, &id, (sherd__mask_part){ row0, rows, 0, n }, got,
                                               n),
                             SHERD_OK);
            assert_true(sherd__residue_canonical(got, rows * n, primes[q]));
            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < n; j += 1 + n / 500)
                    assert_true(got[i * n + j] ==
                                (double)defined_element(key, &id, row0 + i, j, &dropped));
        }
    assert_true(dropped > 20); /* otherwise no dropped word was tested */
    sherd__masks_free(m);
}

static void any_part_equals_that_part_of_the_whole(void **s)
{
    (void)s;
    enum { ROWS = 40, WIDTH = 5000 };
    static double whole[ROWS * WIDTH], part[ROWS * (WIDTH + 1) + 1];
    static const size_t widths[] = { 1, 9, 33, 700, WIDTH };
    uint64_t state = 3;
    sherd__masks *m = masks_of(1);
    for (size_t w = 0; w < 5; w++) {
        const sherd__mask_id id = { SHERD__MASK_LEFT, 2, 1, wasteful_prime(), widths[w] };
        size_t n = widths[w];
        assert_int_equal(sherd__masks_part(m, &id, (sherd__mask_part){ 5, ROWS, 0, n }, whole, n),
                         SHERD_OK);
        for (int i = 0; i < 200; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            size_t r0 = (state >> 40) % ROWS, c0 = (state >> 20) % n;
            size_t rows = 1 + (state >> 33) % (ROWS - r0), cols = 1 + (state >> 13) % (n - c0);
            part[rows * (cols + 1)] = 0.25; /* row stride one more than needed */
            assert_int_equal(sherd__masks_part(m, &id, (sherd__mask_part){ 5 + r0, rows, c0, cols },
                                               part, cols + 1),
                             SHERD_OK);
            for (size_t r = 0; r < rows; r++)
                assert_memory_equal(part + r * (cols + 1), whole + (r0 + r) * n + c0, cols * 8);
            assert_true(part[rows * (cols + 1)] == 0.25);
        }
        assert_int_equal(sherd__masks_row(m, &(sherd__mask_id){ id.role, 2, 1, id.p, n }, 11, part),
                         SHERD_OK);
        assert_memory_equal(part, whole + 6 * n, n * 8);
        assert_int_equal(sherd__masks_part(m, &id, (sherd__mask_part){ 5, 0, 0, n }, part, n),
                         SHERD_OK);
        assert_int_equal(sherd__masks_part(m, &id, (sherd__mask_part){ 5, 3, 0, 0 }, part, n),
                         SHERD_OK);
    }
    sherd__masks_free(m);
}

/* --- uniformity ------------------------------------------------------------------------------ */

static double take(sherd__masks *m, uint32_t p, const uint32_t *words, size_t *again)
{
    const sherd__mask_id id = { SHERD__MASK_LEFT, 0, 0, p, 16 };
    double out[16];
    asked = 0;
    chosen = words;
    assert_int_equal(sherd__masks_part(m, &id, (sherd__mask_part){ 0, 1, 0, 16 }, out, 16),
                     SHERD_OK);
    chosen = NULL;
    *again = asked;
    return out[9];
}

/* The words kept for each residue are a run of floor(2^30/p) values. The test tries both ends of
 * the run and the values beyond. No other of the 2^30 values can then be kept. */
static void equally_many_words_give_each_residue(void **s)
{
    (void)s;
    const uint32_t primes[] = {
        5, 7, 251, 257, 5931641, 5931533, 8388593, 8388571, wasteful_prime()
    };
    const int64_t range = INT64_C(1) << 30, half = range / 2;
    static const uint32_t zeros[16];
    sherd__masks *m = masks_of(9);
    spare = zeros;
    for (size_t q = 0; q < sizeof primes / sizeof *primes; q++) {
        int64_t p = primes[q], h = (p - 1) / 2, d = range % p;
        for (int64_t r = -h; r <= h; r += p < 300 ? 1 : r == -h || r >= h - 1 ? 1 : 9973) {
            /* smallest and largest v with r*2^30 - 2^29 + d <= v*p < r*2^30 + 2^29 */
            int64_t low = r * range - half + d, high = r * range + half - 1;
            int64_t first = low >= 0 ? (low + p - 1) / p : -(-low / p);
            int64_t last = high >= 0 ? high / p : -((-high + p - 1) / p);
            assert_int_equal(last - first + 1, range / p);
            assert_true(first >= -half && last < half);
            for (int64_t v = first - 1; v <= last + 1; v += v == first ? last - first : 1) {
                uint32_t words[16] = { 0 };
                size_t again;
                if (v < -half || v >= half) continue;
                words[9] = (uint32_t)(uint64_t)v << 2 | (uint32_t)(v & 3);
                double got = take(m, primes[q], words, &again);
                int64_t want;
                bool kept = defined_residue(words[9], primes[q], &want);
                assert_int_equal(again, kept ? 0 : 10); /* 1 + element */
                assert_true(got == (double)(kept ? want : 0));
                if (v == first || v == last) assert_true(kept && want == r);
            }
        }
    }
    sherd__masks_free(m);
}

static void a_dropped_word_is_replaced_until_one_is_kept(void **s)
{
    (void)s;
    uint32_t words[16] = { 0 }, others[64];
    size_t again;
    sherd__masks *m = masks_of(3);
    words[9] = 0x80000001; /* the tie, which is dropped for every p */
    for (int i = 0; i < 64; i++) others[i] = 0x80000002;
    others[37] = 4 * 1000;
    spare = others;
    double got = take(m, 5931641, words, &again);
    int64_t want;
    assert_true(defined_residue(4 * 1000, 5931641, &want) && got == (double)want);
    assert_int_equal(again, 10);
    sherd__masks_free(m);
}

/* Chi-squared over `cells` cells; returns the deviate of its normal approximation. */
static double deviate(const uint32_t *count, size_t cells, double expected)
{
    double chi = 0.0;
    for (size_t i = 0; i < cells; i++)
        chi += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    return (chi - (double)(cells - 1)) / (double)(cells - 1);
}

static void masks_are_uniform_and_independent_of_each_other(void **s)
{
    (void)s;
    enum { N = 1 << 20, WIDTH = 1 << 10, CELLS = 16 };
    static double x[4][N];
    static const sherd__mask_id ids[4] = { { SHERD__MASK_LEFT, 0, 0, 5931641, WIDTH },
                                           { SHERD__MASK_LEFT, 0, 1, 5931637, WIDTH },
                                           { SHERD__MASK_LEFT, 1, 0, 5931641, WIDTH },
                                           { SHERD__MASK_RIGHT, 0, 0, 5931641, WIDTH } };
    sherd__masks *m = masks_of(77);
    for (int i = 0; i < 4; i++)
        assert_int_equal(sherd__masks_part(m, &ids[i], (sherd__mask_part){ 0, N / WIDTH, 0, WIDTH },
                                           x[i], WIDTH),
                         SHERD_OK);
    for (int i = 0; i < 4; i++)
        for (int j = i; j < 4; j++) { /* i = j: an element and its neighbour */
            uint32_t count[CELLS * CELLS] = { 0 };
            for (size_t k = 0; k + 1 < N; k++) {
                double a = (x[i][k] + ids[i].p / 2) / ids[i].p;
                double b = (x[j][i == j ? k + 1 : k] + ids[j].p / 2) / ids[j].p;
                assert_true(a >= 0 && a < 1 && b >= 0 && b < 1);
                count[(int)(a * CELLS) * CELLS + (int)(b * CELLS)]++;
            }
            /* Standard deviation sqrt(2/255) = 0.09; the bound is six of them. */
            assert_true(deviate(count, CELLS * CELLS, (N - 1.0) / (CELLS * CELLS)) < 0.54);
            assert_true(deviate(count, CELLS * CELLS, (N - 1.0) / (CELLS * CELLS)) > -0.54);
        }
    const sherd__mask_id tiny = { SHERD__MASK_LEFT, 0, 2, 7, WIDTH };
    uint32_t count[7] = { 0 };
    assert_int_equal(sherd__masks_part(m, &tiny, (sherd__mask_part){ 0, N / WIDTH, 0, WIDTH }, x[0],
                                       WIDTH),
                     SHERD_OK);
    for (size_t k = 0; k < N; k++) count[(int)x[0][k] + 3]++;
    assert_true(deviate(count, 7, N / 7.0) < 4);
    sherd__masks_free(m);
}

/* ---- no repetition --------------------------------------------------------------------------- */

static size_t equal_elements(const double *a, const double *b, size_t n)
{
    size_t equal = 0;
    for (size_t i = 0; i < n; i++) equal += a[i] == b[i];
    return equal;
}

static void two_encodings_share_no_row(void **s)
{
    (void)s;
    enum { ROWS = 50, N = 300 };
    static double a[ROWS * N], b[ROWS * N];
    const sherd__entropy os = sherd__entropy_os();
    const sherd__mask_id id = { SHERD__MASK_LEFT, 0, 0, 5931641, N };
    sherd__masks *m, *o;
    assert_int_equal(sherd__masks_new(&m, &os), SHERD_OK);
    assert_int_equal(sherd__masks_new(&o, &os), SHERD_OK);
    assert_int_equal(sherd__masks_part(m, &id, (sherd__mask_part){ 0, ROWS, 0, N }, a, N),
                     SHERD_OK);
    assert_int_equal(sherd__masks_part(o, &id, (sherd__mask_part){ 0, ROWS, 0, N }, b, N),
                     SHERD_OK);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < ROWS; j++) {
            assert_true(equal_elements(a + i * N, b + j * N, N) < 5);
            if (i != j) assert_true(equal_elements(a + i * N, a + j * N, N) < 5);
        }
    sherd__masks_free(m);
    sherd__masks_free(o);
}

/* Every part of a mask's name changes the whole mask: role, t, prime, width, key. The test compares
 * words, using one prime, since one word gives nearly proportional residues for two primes. */
static void every_part_of_a_masks_name_changes_the_mask(void **s)
{
    (void)s;
    enum { N = 400 };
    const uint32_t p = 5931641;
    const sherd__mask_id ids[] = {
        { SHERD__MASK_LEFT, 0, 0, p, N },       { SHERD__MASK_RIGHT, 0, 0, p, N },
        { SHERD__MASK_LEFT, 1, 0, p, N },       { SHERD__MASK_LEFT, 64, 0, p, N },
        { SHERD__MASK_LEFT, 0, 1, p, N },       { SHERD__MASK_LEFT, 0, 2, p, N },
        { SHERD__MASK_LEFT, 0, 1, 5931637, N }, { SHERD__MASK_LEFT, 0, 0, p, N + 1 },
        { SHERD__MASK_LEFT, 0, 0, p, 2 * N },   { SHERD__MASK_LEFT, 0, 0, 5931637, N }
    };
    enum { IDS = sizeof ids / sizeof *ids };
    static double x[IDS + 1][N];
    sherd__masks *m = masks_of(1), *o = masks_of(2);
    for (size_t i = 0; i < IDS; i++)
        assert_int_equal(sherd__masks_part(m, &ids[i], (sherd__mask_part){ 3, 1, 0, N }, x[i], N),
                         SHERD_OK);
    assert_int_equal(sherd__masks_part(o, &ids[0], (sherd__mask_part){ 3, 1, 0, N }, x[IDS], N),
                     SHERD_OK);
    for (size_t i = 0; i <= IDS; i++)
        for (size_t j = i + 1; j <= IDS; j++) {
            size_t near = 0;
            for (size_t k = 0; k < N; k++) near += x[i][k] - x[j][k] < 9 && x[j][k] - x[i][k] < 9;
            assert_true(near < 5);
        }
    /* The same name gives the same mask, even after others have used its place in the cache. */
    for (size_t i = 0; i < IDS; i++) {
        assert_int_equal(sherd__masks_part(m, &ids[i], (sherd__mask_part){ 3, 1, 0, N }, x[IDS], N),
                         SHERD_OK);
        assert_memory_equal(x[IDS], x[i], sizeof x[i]);
    }
    sherd__masks_free(m);
    sherd__masks_free(o);
}

static void a_clone_has_the_same_masks_and_draws_no_entropy(void **s)
{
    (void)s;
    double a[100], b[100];
    drawn = 0;
    sherd__masks *m = masks_of(5), *c;
    assert_int_equal(drawn, KEY);
    assert_int_equal(sherd__masks_clone(&c, m), SHERD_OK);
    assert_int_equal(drawn, KEY);
    assert_int_equal(sherd__masks_row(m, &(sherd__mask_id){ SHERD__MASK_RIGHT, 0, 0, 8388593, 100 },
                                      4, a),
                     SHERD_OK);
    sherd__masks_free(m);
    assert_int_equal(sherd__masks_row(c, &(sherd__mask_id){ SHERD__MASK_RIGHT, 0, 0, 8388593, 100 },
                                      4, b),
                     SHERD_OK);
    assert_memory_equal(a, b, sizeof a);
    sherd__masks_free(c);
    sherd__masks_free(NULL);
}

static void without_memory_no_masks_are_made(void **s)
{
    (void)s;
    uint8_t byte = 1;
    const sherd__entropy e = { fill_known, &byte };
    sherd__masks *m = masks_of(1), *o = m;
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__masks_new(&o, &e), SHERD_ENOMEM);
    assert_null(o);
    sherd__alloc_fail_nth(1);
    o = m;
    assert_int_equal(sherd__masks_clone(&o, m), SHERD_ENOMEM);
    assert_null(o);
    sherd__alloc_fail_nth(0);
    sherd__masks_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_equal_the_definition_in_the_header),
        cmocka_unit_test(any_part_equals_that_part_of_the_whole),
        cmocka_unit_test(equally_many_words_give_each_residue),
        cmocka_unit_test(a_dropped_word_is_replaced_until_one_is_kept),
        cmocka_unit_test(masks_are_uniform_and_independent_of_each_other),
        cmocka_unit_test(two_encodings_share_no_row),
        cmocka_unit_test(every_part_of_a_masks_name_changes_the_mask),
        cmocka_unit_test(a_clone_has_the_same_masks_and_draws_no_entropy),
        cmocka_unit_test(without_memory_no_masks_are_made),
    };
    return cmocka_run_group_tests_name("crypto/mask", tests, NULL, NULL);
}
