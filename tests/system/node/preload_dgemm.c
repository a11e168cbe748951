/*
 * A BLAS that computes slightly wrong results. The last element of every product is off by one;
 * with PRELOAD_DGEMM=large, only sums of 2^52 or more are wrong, as if a kernel had one bit too
 * few. Only modular products have such sums. With PRELOAD_DGEMM=right nothing is wrong.
 */
#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef void dgemm(int order, int ta, int tb, int n, int m, int k, double alpha, const double *a,
                   int lda, const double *b, int ldb, double beta, double *c, int ldc);

__attribute__((visibility("default"))) /* overrides the build's -fvisibility=hidden */
void cblas_dgemm(int order, int ta, int tb, int n, int m, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc);

void cblas_dgemm(int order, int ta, int tb, int n, int m, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
    dgemm *real;
    *(void **)&real = dlsym(RTLD_NEXT, "cblas_dgemm");
    real(order, ta, tb, n, m, k, alpha, a, lda, b, ldb, beta, c, ldc);
    const char *how = getenv("PRELOAD_DGEMM");
    if (how && !strcmp(how, "right")) return;
    if (how && !strcmp(how, "large")) {
        if (k < 100) return;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++) {
                double *x = &c[(size_t)i * (size_t)ldc + (size_t)j];
                if (fabs(*x) >= 0x1p52) *x += 1;
            }
        return;
    }
    if (n > 0 && m > 0) c[(size_t)(n - 1) * (size_t)ldc + (size_t)m - 1] += 1;
}
