/* Tests the products of byte residues before a node uses them, since processors and systems with
 * wrong results have been shipped, and measures their speed. The test relies on integer arithmetic
 * only. */
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "matrix/residue_bytes.h"

enum { N = 37, K = 4096 + 70, M = 51 };

typedef enum filling { RANDOM, LARGEST, BEYOND, FILLINGS } filling;

/* Fills with residues, with those that give the largest sums, or with bytes that are none and give
 * larger ones. */
static void fill(uint8_t *at, size_t n, uint32_t p, bool right, filling how)
{
    uint64_t state = p + right;
    int32_t half = right ? (int32_t)(p - 1) / 2 : 0;
    for (size_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int32_t v = (int32_t)((state >> 33) % p) - half;
        if (how == LARGEST) v = right ? -half : (int32_t)p - 1;
        if (how == BEYOND) v = right ? -128 : 255;
        at[i] = (uint8_t)v;
    }
}

typedef struct room {
    uint8_t a[N * K], b[K * M], out[N * M];
    uint8_t *left, *right;
} room;

static int selftest_prime(room *r, uint32_t p, filling how, sherd_diag *d)
{
    const sherd__bytes_product x = {
        .p = p, .n = N, .k = K, .m = M, .a = r->left, .b = r->right, .out = r->out, .ld = M
    };
    fill(r->a, sizeof r->a, p, false, how);
    fill(r->b, sizeof r->b, p, true, how);
    sherd__bytes_lay_rows(r->a, N, K, K, r->left);
    sherd__bytes_lay_columns((const int8_t *)r->b, K, M, M, r->right);
    int err = sherd__bytes_multiply(&x, NULL);
    if (err) return err;
    for (size_t i = 0; i < N; i++) {
        int64_t sums[M] = { 0 };
        for (size_t l = 0; l < K; l++)
            for (size_t j = 0; j < M; j++) sums[j] += r->a[i * K + l] * (int8_t)r->b[l * M + j];
        for (size_t j = 0; j < M; j++) {
            int64_t want = (sums[j] % (int64_t)p + p) % p;
            if (r->out[i * M + j] != want)
                return sherd__fail(d, SHERD_EDEVICE, "set OPENBLAS_CORETYPE to an older core",
                                   "%s: element (%zu, %zu) of a product modulo %u is %u, expected "
                                   "%u",
                                   sherd__bytes_path_name(sherd__bytes_path_here()), i, j, p,
                                   r->out[i * M + j], (unsigned)want);
        }
    }
    return SHERD_OK;
}

int sherd__bytes_selftest(sherd_diag *d)
{
    size_t left = sherd__bytes_laid(N, K), right = sherd__bytes_laid(M, K);
    room *r = sherd__alloc(sizeof *r);
    uint8_t *laid = sherd__alloc(left + right + 64);
    int err = r && laid ? SHERD_OK : sherd__fail_memory(d, "the self-test");
    if (!err) {
        r->left = laid + (64 - (uintptr_t)laid % 64) % 64;
        r->right = r->left + left;
    }
    for (unsigned i = 0; i < SHERD__BYTE_PRIMES && !err; i++)
        err = selftest_prime(r, sherd__byte_primes[i], (filling)(i % FILLINGS), d);
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
