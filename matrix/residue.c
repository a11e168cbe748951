/*
 * Products modulo a prime on dgemm: k is divided into blocks with sums below 2^53, and between
 * blocks x - p*rint(x/p) reduces the accumulator. rint is computed by adding and subtracting
 * 1.5*2^52, which every vector width supports; the fma makes x - q*p exact even where q*p alone
 * would round. The quotient may be wrong by one where x/p is close to a half, so |r| <= h+1 between
 * blocks (allowed for in sherd__prime_block), and one comparison at the end makes it canonical.
 */
#include "matrix/residue.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "matrix/clones.h"
#include "matrix/gemm.h"

#define ROUND 0x1.8p52
#define BLOCK_MAX 4096u

/* The largest primes for which blocks of 1024 and 512 rows are exact, in descending order. */
const sherd__primes sherd__primes_default = { { 5931641, 5931637, 5931559, 5931533 }, 1024 };
const sherd__primes sherd__primes_wide = { { 8388593, 8388587, 8388581, 8388571 }, 512 };

bool sherd__prime_ok(uint32_t p)
{
    for (size_t i = 0; i < SHERD__TABLE_PRIMES; i++) /* nearly all calls are for these */
        if (p == sherd__primes_default.p[i] || p == sherd__primes_wide.p[i]) return true;
    if (p < 5 || p >= UINT32_C(1) << 23 || p % 2 == 0) return false;
    for (uint32_t q = 3; q * q <= p; q += 2)
        if (p % q == 0) return false;
    return true;
}

size_t sherd__prime_block(uint32_t p)
{
    uint64_t h = (p - 1) / 2, room = (UINT64_C(1) << 53) - h - 1;
    size_t block = 1;
    while (block < BLOCK_MAX && 2 * block * h * h <= room) block *= 2;
    return block;
}

/* Reduces whole |x| <= 2^53 to |r| <= h + 1. */
SHERD__CLONES_FMA
static void reduce(double *x, size_t n, double p, double inverse)
{
    for (size_t i = 0; i < n; i++) {
        double q = x[i] * inverse + ROUND - ROUND;
        x[i] = fma(-q, p, x[i]);
    }
}

/* Like reduce, to canonical form. Adding 0.0 removes negative zeros. */
SHERD__CLONES_FMA
static void canonise(const double *x, size_t n, double p, double inverse, double h, double *out)
{
    for (size_t i = 0; i < n; i++) {
        double q = x[i] * inverse + ROUND - ROUND;
        double r = fma(-q, p, x[i]) + 0.0;
        r = r > h ? r - p : r;
        out[i] = r < -h ? r + p : r;
    }
}

static double half(uint32_t p)
{
    return (double)((p - 1) / 2);
}

void sherd__residue_from_f64(const double *x, size_t n, uint32_t p, double *out)
{
    canonise(x, n, (double)p, 1.0 / (double)p, half(p), out);
}

bool sherd__residue_canonical(const double *x, size_t n, uint32_t p)
{
    double h = half(p);
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i]) <= h) || x[i] != rint(x[i])) return false;
    return true;
}

int sherd__residue_gemm(uint32_t p, size_t n, size_t k, size_t m, const double *a, size_t lda,
                        const double *b, size_t ldb, double *c, size_t ldc)
{
    assert(lda >= k && ldb >= m && ldc >= m);
    size_t block = sherd__prime_block(p), l = 0;
    double f = (double)p, inverse = 1.0 / f, h = half(p);
    do {
        size_t part = k - l < block ? k - l : block;
        double beta = l == 0 ? 0.0 : 1.0;
        int err = sherd__gemm_f64(n, part, m, a + l, lda, b + l * ldb, ldb, beta, c, ldc);
        if (err != 0) return err;
        l += part;
        bool last = l == k;
        for (size_t i = 0; i < n; i++) {
            double *row = c + i * ldc;
            if (last) canonise(row, m, f, inverse, h, row);
            else reduce(row, m, f, inverse);
        }
    } while (l < k);
    return SHERD_OK;
}

/* --- self-test ------------------------------------------------------------------------------- */

/* Returns extremes of the canonical range, all of one sign, or numbers of a linear congruential
 * generator. */
static double sample(uint64_t *state, int64_t h, bool extreme)
{
    if (extreme) return (double)h;
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)((int64_t)((*state >> 33) * (uint64_t)(2 * h + 1) >> 31) - h);
}

enum { N = 9, M = 14, LDA = 1100, LDC = 17 }; /* shapes of the self-test; k is at most LDA */

/* A product of the self-test. */
typedef struct selftest {
    int64_t p, h;
    size_t k;
    double *a, *b, *c;
    int64_t *right; /* k: B times the weights */
} selftest;

/*
 * Returns whether C is canonical, and its rows agree with those of A*B by their sums with drawn
 * weights, modulo p: a wrong row passes with probability 1/p. Takes N*k + k*M multiplications in
 * place of N*k*M. Sums are at most LDA products below 2^46.
 */
static bool selftest_agrees(const selftest *t, uint64_t *seed)
{
    int64_t weights[M];
    for (size_t j = 0; j < M; j++) weights[j] = (int64_t)sample(seed, t->h, false);
    for (size_t l = 0; l < t->k; l++) {
        int64_t sum = 0;
        for (size_t j = 0; j < M; j++) sum += weights[j] * (int64_t)t->b[l * M + j];
        t->right[l] = sum % t->p;
    }
    for (size_t i = 0; i < N; i++) {
        int64_t found = 0, want = 0;
        for (size_t j = 0; j < M; j++) {
            double c = t->c[i * LDC + j];
            if (!(fabs(c) <= (double)t->h) || c != rint(c)) return false;
            found += weights[j] * (int64_t)c;
        }
        for (size_t l = 0; l < t->k; l++) want += (int64_t)t->a[i * LDA + l] * t->right[l];
        if ((found - want) % t->p) return false;
    }
    return true;
}

/* Names the first wrong element. */
static int selftest_wrong(const selftest *t, sherd_diag *d)
{
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < M; j++) {
            int64_t want = 0;
            for (size_t l = 0; l < t->k; l++)
                want += (int64_t)t->a[i * LDA + l] * (int64_t)t->b[l * M + j];
            want %= t->p;
            want += want > t->h ? -t->p : want < -t->h ? t->p : 0;
            if (t->c[i * LDC + j] != (double)want)
                return sherd__fail(d, SHERD_EDEVICE,
                                   "use another BLAS, or set OPENBLAS_CORETYPE to an older core",
                                   "BLAS core %s: element (%zu, %zu) of a product modulo %lld is "
                                   "%.17g, expected %lld",
                                   sherd__blas_core(), i, j, (long long)t->p, t->c[i * LDC + j],
                                   (long long)want);
        }
    return sherd__fail(d, SHERD_EINTERNAL, NULL, "the self-test of residues contradicts itself");
}

static int selftest_prime(uint32_t p, bool extreme, double *buf, sherd_diag *d)
{
    double *a = buf, *b = a + N * LDA, *c = b + LDA * M;
    selftest t = { .p = p, .h = (p - 1) / 2, .a = a, .b = b, .c = c };
    uint64_t seed = p;
    t.k = sherd__prime_block(p) + 37;
    t.right = (int64_t *)(c + N * LDC);
    assert(t.k <= LDA);
    for (size_t i = 0; i < N * LDA; i++) a[i] = sample(&seed, t.h, extreme);
    for (size_t i = 0; i < LDA * M; i++) b[i] = sample(&seed, t.h, extreme);
    int err = sherd__residue_gemm(p, N, t.k, M, a, LDA, b, M, c, LDC);
    if (err != 0) return err;
    return selftest_agrees(&t, &seed) ? SHERD_OK : selftest_wrong(&t, d);
}

int sherd__residue_selftest(sherd_diag *d)
{
    int err = SHERD_OK;
    double *buf = sherd__alloc((N * LDA + LDA * M + N * LDC + LDA) * sizeof *buf);
    if (!buf) return sherd__fail_memory(d, "the self-test");
    for (size_t i = 0; i < 4 * SHERD__TABLE_PRIMES && err == 0; i++) {
        const sherd__primes *table = i & 1 ? &sherd__primes_wide : &sherd__primes_default;
        err = selftest_prime(table->p[i / 4], (i & 2) != 0, buf, d);
    }
    sherd__free(buf);
    return err;
}
