/*
 * Counts the cblas_dgemm calls of one process, the first that loads this library. At its end it
 * writes their number and the sum of n*k*m to $COUNT_FILE. Processes that it starts find $COUNT_PID
 * set and count nothing.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) /* overrides the build's -fvisibility=hidden */
void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc);

static atomic_ulong calls, volume;
static int counts;

__attribute__((constructor)) static void begin(void)
{
    char pid[32];
    counts = getenv("COUNT_PID") == NULL;
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    if (counts) setenv("COUNT_PID", pid, 1);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("COUNT_FILE");
    FILE *f = counts && path ? fopen(path, "w") : NULL;
    if (!f) return;
    fprintf(f, "%lu %lu\n", atomic_load(&calls), atomic_load(&volume));
    fclose(f);
}

void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
    typedef void dgemm(int, int, int, int, int, int, double, const double *, int, const double *,
                       int, double, double *, int);
    static _Atomic(dgemm *) real;
    dgemm *next = atomic_load(&real);
    if (!next) {
        *(void **)&next = dlsym(RTLD_NEXT, "cblas_dgemm");
        if (!next) abort();
        atomic_store(&real, next);
    }
    atomic_fetch_add(&calls, 1);
    atomic_fetch_add(&volume, (unsigned long)m * (unsigned long)n * (unsigned long)k);
    next(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
