/*
 * The time of these products is that of reading B once from memory. Adding and subtracting 1.5 *
 * 2^52 rounds like rint, to nearest and ties to even, up to 2^51, in two additions that every
 * processor has in vectors. Sums are of whole numbers below 2^53, so their order is free: four rows
 * of B are added at a time, and a sum along a row is kept in many parts.
 */
#include "matrix/skinny_gemm.h"

#include <math.h>
#include <string.h>

#include "matrix/clones.h"
#include "matrix/view.h"

#define ROUND 0x1.8p52
#define COLUMNS 4096u /* of C at a time: they fit the first-level cache */
#define PARTS 32u

bool sherd__skinny_fits(size_t rows, sherd_view b, const sherd__fixed *fb)
{
    size_t ld;
    if (rows > SHERD__SKINNY_ROWS || b.rows == 0 || b.dtype != SHERD_F64) return false;
    if (fb->integers || fb->bits > 50) return false;
    return sherd__view_borrow_f64(b, &ld) || sherd__view_borrow_f64(sherd_view_t(b), &ld);
}

/* Computes c += x[0] * row 0 of b + ... + x[3] * row 3. */
SHERD__CLONES_WHOLE
static void add_four(double *restrict c, size_t m, const double *restrict b, size_t ld,
                     const double *restrict x, double factor)
{
    const double *restrict b1 = b + ld, *restrict b2 = b1 + ld, *restrict b3 = b2 + ld;
    double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    for (size_t j = 0; j < m; j++)
        c[j] += x0 * (b[j] * factor + ROUND - ROUND) + x1 * (b1[j] * factor + ROUND - ROUND) +
                x2 * (b2[j] * factor + ROUND - ROUND) + x3 * (b3[j] * factor + ROUND - ROUND);
}

SHERD__CLONES_WHOLE
static void add_one(double *restrict c, size_t m, const double *restrict b, double x, double factor)
{
    for (size_t j = 0; j < m; j++) c[j] += x * (b[j] * factor + ROUND - ROUND);
}

typedef double parts __attribute__((vector_size(8 * sizeof(double)), aligned(8), may_alias));

SHERD__CLONES_WHOLE
static double dot(const double *a, const double *b, size_t n, double factor)
{
    parts s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };
    double sum = 0;
    size_t i = 0;
    for (; i + PARTS <= n; i += PARTS) {
        const parts *x = (const parts *)(const void *)(a + i);
        const parts *y = (const parts *)(const void *)(b + i);
        s0 += x[0] * (y[0] * factor + ROUND - ROUND);
        s1 += x[1] * (y[1] * factor + ROUND - ROUND);
        s2 += x[2] * (y[2] * factor + ROUND - ROUND);
        s3 += x[3] * (y[3] * factor + ROUND - ROUND);
    }
    s0 += s1 + s2 + s3;
    for (size_t k = 0; k < 8; k++) sum += s0[k];
    for (; i < n; i++) sum += a[i] * (b[i] * factor + ROUND - ROUND);
    return sum;
}

void sherd__skinny_exact(const double *qa, size_t rows, sherd_view b, const sherd__fixed *fb,
                         double *c, size_t ldc)
{
    size_t k = b.rows, m = b.cols, ld;
    double factor = ldexp(1.0, fb->scale);
    const double *at = sherd__view_borrow_f64(b, &ld);
    if (!at) { /* B is stored by columns */
        at = sherd__view_borrow_f64(sherd_view_t(b), &ld);
        for (size_t j = 0; j < m; j++)
            for (size_t i = 0; i < rows; i++)
                c[i * ldc + j] = dot(qa + i * k, at + j * ld, k, factor);
        return;
    }
    for (size_t i = 0; i < rows; i++) memset(c + i * ldc, 0, m * sizeof *c);
    for (size_t j = 0, n; j < m; j += n) {
        size_t l = 0;
        n = m - j < COLUMNS ? m - j : COLUMNS;
        for (; l + 4 <= k; l += 4)
            for (size_t i = 0; i < rows; i++)
                add_four(c + i * ldc + j, n, at + l * ld + j, ld, qa + i * k + l, factor);
        for (; l < k; l++)
            for (size_t i = 0; i < rows; i++)
                add_one(c + i * ldc + j, n, at + l * ld + j, qa[i * k + l], factor);
    }
}
