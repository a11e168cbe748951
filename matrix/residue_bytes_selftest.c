/*
 * Tests the products of byte residues before a node uses them, and measures their speed: processors
 * and systems with wrong results have been shipped. The test relies on integer arithmetic only, and
 * compares every element.
 *
 * Random residues detect terms that are lost or exchanged; extremes detect sums that overflow or
 * saturate, and their exact sums need no loop. The shapes reach all edges of the kernels: 37 and 20
 * rows end in one strip and in two; so do 67 and 51 columns for AMX, and in one, two and three
 * strips for VNNI.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "matrix/clones.h"
#include "matrix/residue_bytes.h"

enum {
    N = 37,
    K = 4096 + 70, /* more than are multiplied at a time */
    M = 67,
    WIDE = 80, /* M rounded up, for loops of constant length */
    MORE = 65536 + 70,
    PERIOD = 4099 /* samples; a prime: no two rows of an operand are equal */
};

typedef struct room {
    uint8_t a[N * K], out[N * M];
    int8_t b[K * M];
    int32_t sums[N][WIDE];
    uint8_t *left, *right; /* laid out, for N x K x M and for 1 x MORE x 1 */
} room;

/* ---- operands -------------------------------------------------------------------------------- */

static void fill_random(room *r, uint32_t p)
{
    uint64_t state = p;
    for (size_t i = 0; i < PERIOD; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        r->a[i] = (uint8_t)((state >> 40) * p >> 24);
        r->b[i] = (int8_t)((int32_t)((state & 0xffffff) * p >> 24) - (int32_t)(p - 1) / 2);
    }
    for (size_t i = PERIOD; i < sizeof r->a; i++) r->a[i] = r->a[i - PERIOD];
    for (size_t i = PERIOD; i < sizeof r->b; i++) r->b[i] = r->b[i - PERIOD];
}

/* Extremes of residues, and bytes that are none and give larger sums. */
static int32_t extreme_a(uint32_t p, size_t i)
{
    return i % 2 ? 255 : (int32_t)p - 1;
}

static int32_t extreme_b(uint32_t p, size_t j)
{
    int32_t half = (int32_t)(p - 1) / 2;
    return j % 3 == 0 ? -half : j % 3 == 1 ? half : -128;
}

static void fill_extreme(room *r, uint32_t p)
{
    for (size_t i = 0; i < N; i++) memset(r->a + i * K, extreme_a(p, i), K);
    for (size_t j = 0; j < M; j++) r->b[j] = (int8_t)extreme_b(p, j);
    for (size_t l = 1; l < K; l++) memcpy(r->b + l * M, r->b, M);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* |sum| <= K * 255 * 128 < 2^31, and each product fits 16 bits. */
SHERD__CLONES
static void sum_up(const uint8_t *a, const int8_t *b, int32_t sums[N][WIDE])
{
    for (size_t l = 0; l < K; l++) {
        int16_t row[WIDE] = { 0 };
        for (size_t j = 0; j < M; j++) row[j] = b[l * M + j];
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < WIDE; j++) sums[i][j] += (int16_t)(a[i * K + l] * row[j]);
    }
}

static void sum_extreme(uint32_t p, int32_t sums[N][WIDE])
{
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < M; j++) sums[i][j] = K * extreme_a(p, i) * extreme_b(p, j);
}

/* ---- products -------------------------------------------------------------------------------- */

static int compare(const room *r, uint32_t p, size_t i, size_t j, int64_t sum, sherd_diag *d)
{
    unsigned want = (unsigned)((sum % (int64_t)p + p) % p), found = r->out[i * M + j];
    return found == want
               ? SHERD_OK
               : sherd__fail(d, SHERD_EDEVICE, "set OPENBLAS_CORETYPE to an older core",
                             "%s: element (%zu, %zu) of a product modulo %u is %u, expected %u",
                             sherd__bytes_path_name(sherd__bytes_path_here()), i, j, p, found,
                             want);
}

/* Multiplies n rows by m columns of the operands, adds the product to `before` such products, and
 * compares. */
static int multiply(room *r, uint32_t p, size_t n, size_t m, int64_t before, sherd_diag *d)
{
    const sherd__bytes_product x = { .p = p,
                                     .n = n,
                                     .k = K,
                                     .m = m,
                                     .a = r->left,
                                     .b = r->right,
                                     .out = r->out,
                                     .ld = M,
                                     .add = before > 0 };
    int err = sherd__bytes_multiply(&x, NULL);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m && !err; j++)
            err = compare(r, p, i, j, (before + 1) * r->sums[i][j], d);
    return err;
}

static void lay(room *r)
{
    sherd__bytes_lay_rows(r->a, N, K, K, r->left);
    sherd__bytes_lay_columns(r->b, K, M, M, r->right);
}

static int selftest_prime(room *r, uint32_t p, sherd_diag *d)
{
    memset(r->sums, 0, sizeof r->sums);
    fill_random(r, p);
    sum_up(r->a, r->b, r->sums);
    lay(r);
    int err = multiply(r, p, N, M, 0, d);
    if (!err) err = multiply(r, p, 5, 51, 1, d);
    if (err) return err;
    fill_extreme(r, p);
    sum_extreme(p, r->sums);
    lay(r);
    return multiply(r, p, 20, 35, 0, d);
}

/* More terms than one sum of 32 bits holds. */
static int selftest_long(room *r, uint32_t p, sherd_diag *d)
{
    const sherd__bytes_product x = {
        .p = p, .n = 1, .k = MORE, .m = 1, .a = r->left, .b = r->right, .out = r->out, .ld = M
    };
    memset(r->left, 255, sherd__bytes_laid(1, MORE));
    memset(r->right, 0x80, sherd__bytes_laid(1, MORE));
    memset(r->left + MORE / SHERD__BYTES_STEP * 1024 + MORE % SHERD__BYTES_STEP, 0,
           SHERD__BYTES_STEP - MORE % SHERD__BYTES_STEP); /* of the first row */
    int err = sherd__bytes_multiply(&x, NULL);
    return err ? err : compare(r, p, 0, 0, MORE * INT64_C(255) * -128, d);
}

int sherd__bytes_selftest(sherd_diag *d)
{
    size_t left = sherd__bytes_laid(N, K), right = sherd__bytes_laid(M, K);
    size_t more = sherd__bytes_laid(1, MORE);
    if (left < more) left = more;
    if (right < more) right = more;
    room *r = sherd__alloc(sizeof *r);
    uint8_t *laid = sherd__alloc(left + right + 64);
    int err = r && laid ? SHERD_OK : sherd__fail_memory(d, "the self-test");
    if (!err) {
        r->left = laid + (64 - (uintptr_t)laid % 64) % 64;
        r->right = r->left + left;
    }
    for (unsigned i = 0; i < SHERD__BYTE_PRIMES && !err; i++)
        err = selftest_prime(r, sherd__byte_primes[i], d);
    if (!err) err = selftest_long(r, sherd__byte_primes[0], d);
    sherd__free(laid);
    sherd__free(r);
    return err;
}

double sherd__bytes_gops(size_t n, size_t k, size_t m)
{
    const size_t left = sherd__bytes_laid(n, k), right = sherd__bytes_laid(m, k);
    uint8_t *all = sherd__calloc(left + right + n * m + 64, 1);
    double best = 0, spent = 0;
    if (!all) return 0;
    sherd__bytes_product x = { .p = sherd__byte_primes[0], .n = n, .k = k, .m = m, .ld = m };
    x.a = all + (64 - (uintptr_t)all % 64) % 64;
    x.b = x.a + left;
    x.out = all + (x.b - all) + right;
    for (int round = 0; round < 4 && spent < 2e-3; round++) {
        double took = sherd__clock_busy_s();
        int err = sherd__bytes_multiply(&x, NULL);
        took = sherd__clock_busy_s() - took;
        double rate = took > 0 ? 2e-9 * (double)n * (double)k * (double)m / took : 0;
        spent += took;
        if (!err && rate > best) best = rate;
    }
    sherd__free(all);
    return best;
}
