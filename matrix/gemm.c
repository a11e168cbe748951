/*
 * dgemm behind one function. OpenBLAS ends the process (or prints a message and returns) on a bad
 * leading dimension, and takes 32-bit sizes, so shapes are checked here and long dimensions are
 * split. Outer products and other thin products are bound by writing C, which plain loops do faster
 * than BLAS with its packing.
 */
#include "matrix/gemm.h"

#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/pieces.h"
#include "matrix/blas_room.h"
#include "matrix/clones.h"

/* Up to this inner dimension the loops below are faster than OpenBLAS with its packing (measured:
 * see bench). */
#define THIN_K 2u
/* Length of a piece of a dimension too long for blasint; a multiple of every kernel's unrolling. */
#define PIECE ((size_t)1 << 30)

static atomic_uint_fast64_t calls;

/* Sets c = beta*c, without reading c if beta = 0. */
static void scale(size_t n, size_t m, double beta, double *c, size_t ldc)
{
    if (beta == 1.0 || m == 0) return;
    for (size_t i = 0; i < n; i++) {
        if (beta == 0.0) memset(c + i * ldc, 0, m * sizeof *c);
        else
            for (size_t j = 0; j < m; j++) c[i * ldc + j] *= beta;
    }
}

/* Each operation rounds, without fma, so that bits do not depend on the clone. Zeros become
 * positive, as in a sum that starts at 0. */
SHERD__CLONES
static void row_set(size_t m, double x, const double *b, double *c)
{
    for (size_t j = 0; j < m; j++) c[j] = x * b[j] + 0.0;
}

SHERD__CLONES
static void row_add(size_t m, double x, const double *b, double *c)
{
    for (size_t j = 0; j < m; j++) c[j] += x * b[j];
}

SHERD__CLONES
static void row_set2(size_t m, double x, const double *b, double y, const double *e, double *c)
{
    for (size_t j = 0; j < m; j++) c[j] = x * b[j] + y * e[j] + 0.0;
}

/* The left factor: element (i, l) of A, or of A^T if A is stored transposed. */
typedef struct left {
    const double *at;
    size_t ld;
    bool transposed;
} left;

static const double *element(left a, size_t i, size_t l)
{
    return a.transposed ? a.at + l * a.ld + i : a.at + i * a.ld + l;
}

/* Handles a few columns of A, and dimensions that do not fit BLAS's integers. */
static void loops(size_t n, size_t k, size_t m, left a, const double *b, size_t ldb, double beta,
                  double *c, size_t ldc)
{
    for (size_t i = 0; i < n; i++) {
        double *ci = c + i * ldc;
        size_t l = 0;
        if (beta == 0.0 && k >= 2) {
            row_set2(m, *element(a, i, 0), b, *element(a, i, 1), b + ldb, ci);
            l = 2;
        } else if (beta == 0.0) {
            row_set(m, *element(a, i, 0), b, ci);
            l = 1;
        } else {
            scale(1, m, beta, ci, ldc);
        }
        for (; l < k; l++) row_add(m, *element(a, i, l), b + l * ldb, ci);
    }
}

static int blas(size_t n, size_t k, size_t m, left a, const double *b, size_t ldb, double beta,
                double *c, size_t ldc)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    const bool alone = !sherd__blas_by_many();
    int err = sherd__blas_enter();
    if (err != 0) return err;
    if (alone) pthread_mutex_lock(&turn);
    for (size_t i = 0; i < n; i += PIECE)
        for (size_t j = 0; j < m; j += PIECE)
            for (size_t l = 0; l < k; l += PIECE)
                cblas_dgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, CblasNoTrans,
                            (int)sherd__least(n - i, PIECE), (int)sherd__least(m - j, PIECE),
                            (int)sherd__least(k - l, PIECE), 1.0, element(a, i, l), (int)a.ld,
                            b + l * ldb + j, (int)ldb, l == 0 ? beta : 1.0, c + i * ldc + j,
                            (int)ldc);
    if (alone) pthread_mutex_unlock(&turn);
    sherd__blas_leave();
    return SHERD_OK;
}

/* Returns whether the last element of an x with leading dimension ld is within the address
 * space. */
static int addressable(size_t rows, size_t cols, size_t ld)
{
    size_t len;
    if (ld < cols) return 0;
    if (rows == 0) return 1;
    return sherd__mul(rows - 1, ld, &len) && sherd__add(len, cols, &len) &&
           sherd__mul(len, sizeof(double), &len) && len <= PTRDIFF_MAX;
}

static int multiply(size_t n, size_t k, size_t m, left a, const double *b, size_t ldb, double beta,
                    double *c, size_t ldc)
{
    if (!addressable(a.transposed ? k : n, a.transposed ? n : k, a.ld) || !addressable(k, m, ldb) ||
        !addressable(n, m, ldc))
        return SHERD_EINVAL;
    if (n == 0 || m == 0) return SHERD_OK;
    if (k == 0) {
        scale(n, m, beta, c, ldc);
        return SHERD_OK;
    }
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (k > THIN_K && a.ld <= INT_MAX && ldb <= INT_MAX && ldc <= INT_MAX)
        return blas(n, k, m, a, b, ldb, beta, c, ldc);
    loops(n, k, m, a, b, ldb, beta, c, ldc);
    return SHERD_OK;
}

int sherd__gemm_f64(size_t n, size_t k, size_t m, const double *a, size_t lda, const double *b,
                    size_t ldb, double beta, double *c, size_t ldc)
{
    return multiply(n, k, m, (left){ a, lda, false }, b, ldb, beta, c, ldc);
}

int sherd__gemm_t_f64(size_t n, size_t k, size_t m, const double *a, size_t lda, const double *b,
                      size_t ldb, double beta, double *c, size_t ldc)
{
    return multiply(n, k, m, (left){ a, lda, true }, b, ldb, beta, c, ldc);
}

/* Threads that were started remain, and need no more memory when they are requested again. */
void sherd__blas_threads_set(unsigned threads)
{
    static atomic_uint most;
    unsigned is = sherd__blas_threads(), had = atomic_load(&most);
    if (had < is) had = is;
    if (threads == 0) threads = 1;
    if (threads > 1024) threads = 1024;
    while (threads > had && !sherd__blas_room(threads - had)) threads--;
    openblas_set_num_threads((int)threads);
    atomic_store(&most, threads > had ? threads : had);
}

unsigned sherd__blas_threads(void)
{
    int n = openblas_get_num_threads();
    return n < 1 ? 1 : (unsigned)n;
}

bool sherd__blas_by_many(void)
{
    return openblas_get_parallel() == OPENBLAS_THREAD;
}

const char *sherd__blas_core(void)
{
    const char *core = openblas_get_corename();
    return !core ? "unknown" : core;
}

uint64_t sherd__blas_calls(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

/* Returns whole numbers in [-h, h], where about half are extremes. */
static int64_t sample(uint64_t *state, int64_t h)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = *state >> 33;
    if (x & 1) return x & 2 ? h : -h;
    return (int64_t)(x * (uint64_t)(2 * h + 1) >> 31) - h; /* no division: these are many */
}

/*
 * Fills `out` with samples that repeat. The period is a prime above any row of the self-test, so
 * that no two rows of an operand are equal.
 */
static void fill_samples(double *out, size_t len, uint64_t *state, int64_t h)
{
    size_t drawn = len < 2053 ? len : 2053;
    for (size_t i = 0; i < drawn; i++) out[i] = (double)sample(state, h);
    for (size_t i = drawn; i < len; i++) out[i] = out[i - drawn];
}

/* A product C = A*B + beta*C of the self-test: exact, since k*h*h plus C's h stays below 2^53. */
typedef struct selftest {
    size_t n, k, m;
    int64_t h;
    double beta;
    bool transposed;
} selftest;

/* Its operands and result, whose rows have gaps. */
typedef struct selftest_data {
    left a;
    double *b, *c;
    size_t ldb, ldc;
    uint64_t *weights, *right; /* m; k: B times the weights */
} selftest_data;

/* Returns what C(i, j) was before the product. */
static int64_t selftest_before(const selftest *t, const selftest_data *x, size_t i, size_t j)
{
    return t->beta == 0.0 ? 0 : (int64_t)((i * x->ldc + j) % 97);
}

/*
 * Returns whether the rows of C agree with those of A*B by their sums with odd weights, modulo
 * 2^64. A wrong integer below 2^53 times an odd weight below 2^10 is not 0, so one wrong element of
 * a row is always found, and several with the probability that drawn weights do not cancel them.
 * This takes n*k + k*m multiplications in place of n*k*m.
 */
static bool selftest_agrees(const selftest *t, const selftest_data *x, uint64_t *seed)
{
    for (size_t j = 0; j < t->m; j++) x->weights[j] = (uint64_t)(sample(seed, 511) + 512) | 1;
    for (size_t l = 0; l < t->k; l++) {
        uint64_t sum = 0;
        for (size_t j = 0; j < t->m; j++)
            sum += x->weights[j] * (uint64_t)(int64_t)x->b[l * x->ldb + j];
        x->right[l] = sum;
    }
    for (size_t i = 0; i < t->n; i++) {
        uint64_t sum = 0;
        for (size_t j = 0; j < t->m; j++) {
            double c = x->c[i * x->ldc + j];
            if (!(c >= -0x1p53 && c <= 0x1p53) || c != (double)(int64_t)c) return false;
            sum += x->weights[j] * (uint64_t)((int64_t)c - selftest_before(t, x, i, j));
        }
        for (size_t l = 0; l < t->k; l++)
            sum -= (uint64_t)(int64_t)*element(x->a, i, l) * x->right[l];
        if (sum) return false;
    }
    return true;
}

/* Names the first wrong element. */
static int selftest_wrong(const selftest *t, const selftest_data *x, sherd_diag *d)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t j = 0; j < t->m; j++) {
            int64_t want = selftest_before(t, x, i, j);
            for (size_t l = 0; l < t->k; l++)
                want += (int64_t)*element(x->a, i, l) * (int64_t)x->b[l * x->ldb + j];
            if (x->c[i * x->ldc + j] != (double)want)
                return sherd__fail(d, SHERD_EDEVICE,
                                   "use another BLAS, or set OPENBLAS_CORETYPE to an older core",
                                   "BLAS core %s: element (%zu, %zu) of a %zu x %zu x %zu product"
                                   "%s is %.17g, expected %lld",
                                   sherd__blas_core(), i, j, t->n, t->k, t->m,
                                   t->transposed ? " of the transposed" : "", x->c[i * x->ldc + j],
                                   (long long)want);
        }
    return sherd__fail(d, SHERD_EINTERNAL, NULL, "the self-test of BLAS contradicts itself");
}

static int selftest_shape(const selftest *t, double *buf, sherd_diag *d)
{
    size_t lda = (t->transposed ? t->n : t->k) + 3, ldb = t->m + 1, ldc = t->m + 5;
    size_t len = (t->transposed ? t->k : t->n) * lda;
    double *b = buf + len, *c = b + t->k * ldb;
    selftest_data x = { .a = { buf, lda, t->transposed }, .b = b, .c = c, .ldb = ldb, .ldc = ldc };
    x.weights = (uint64_t *)(c + t->n * ldc);
    x.right = x.weights + t->m;
    uint64_t seed = t->n * 1000003 + t->k * 1009 + t->m;
    fill_samples(buf, len, &seed, t->h);
    fill_samples(b, t->k * ldb, &seed, t->h);
    for (size_t i = 0; i < t->n * ldc; i++)
        c[i] = t->beta == 0.0 ? __builtin_nan("") : (double)(i % 97);
    int err = multiply(t->n, t->k, t->m, x.a, b, ldb, t->beta, c, ldc);
    if (err != 0) return err;
    return selftest_agrees(t, &x, &seed) ? SHERD_OK : selftest_wrong(t, &x, d);
}

int sherd__gemm_selftest(sherd_diag *d)
{
    /* 512 products of (2^22-8)^2 reach 2^53 - 2^35, the maximum of modular products. */
    static const selftest cases[] = {
        { 1, 1, 1, 94906265, 0.0, false },     { 67, 512, 43, 4194296, 0.0, false },
        { 67, 512, 43, 4194296, 1.0, false },  { 33, 1, 71, 94906264, 1.0, false },
        { 13, 2, 5, 67108863, 0.0, false },    { 5, 1024, 131, 2965820, 0.0, false },
        { 129, 7, 3, 33554431, 1.0, false },   { 1, 1024, 257, 2965820, 1.0, false },
        { 257, 1024, 1, 2965820, 0.0, false }, { 150, 255, 160, 4194296, 1.0, false },
        { 67, 512, 43, 4194296, 1.0, true },   { 131, 1024, 5, 2965820, 0.0, true },
        { 1, 1024, 129, 2965820, 0.0, true },  { 17, 2, 31, 67108863, 0.0, true },
    };
    size_t max = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = (cases[i].n + 3) * (cases[i].k + 3) + cases[i].k * (cases[i].m + 1) +
                     cases[i].n * (cases[i].m + 5) + cases[i].m + cases[i].k;
        if (len > max) max = len;
    }
    double *buf = sherd__alloc(max * sizeof *buf);
    if (!buf) return sherd__fail_memory(d, "BLAS's self-test");
    int err = SHERD_OK;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && err == 0; i++)
        err = selftest_shape(&cases[i], buf, d);
    sherd__free(buf);
    return err;
}

/* With one thread, uses its CPU time, which does not count other processes that start meanwhile. */
static double seconds(void)
{
    return sherd__blas_threads() == 1 ? sherd__clock_busy_s() : sherd__clock_s();
}

double sherd__gemm_gflops(size_t dim)
{
    size_t len, bytes;
    if (dim == 0 || !sherd__mul(dim, dim, &len) || !sherd__mul(len, 3 * sizeof(double), &bytes))
        return 0.0;
    double *buf = sherd__calloc(bytes, 1), best = 0.0;
    if (!buf) return 0.0;
    for (int round = 0; round < 4; round++) {
        double t = seconds();
        int err = sherd__gemm_f64(dim, dim, dim, buf, dim, buf + len, dim, 0.0, buf + 2 * len, dim);
        t = seconds() - t;
        double flops = 2.0 * (double)dim * (double)dim * (double)dim;
        if (err == 0 && t > 0.0 && flops / t > best) best = flops / t;
    }
    sherd__free(buf);
    return best * 1e-9;
}
