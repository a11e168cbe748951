/* A BLAS that computes almost right: the last element of every product is off by one. */
#include <dlfcn.h>
#include <stddef.h>

typedef void dgemm(int order, int ta, int tb, int n, int m, int k, double alpha, const double *a,
                   int lda, const double *b, int ldb, double beta, double *c, int ldc);

__attribute__((visibility("default"))) /* against the build's -fvisibility=hidden */
void cblas_dgemm(int order, int ta, int tb, int n, int m, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc);

void cblas_dgemm(int order, int ta, int tb, int n, int m, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
    dgemm *real;
    *(void **)&real = dlsym(RTLD_NEXT, "cblas_dgemm");
    real(order, ta, tb, n, m, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (n > 0 && m > 0) c[(size_t)(n - 1) * (size_t)ldc + (size_t)m - 1] += 1;
}
