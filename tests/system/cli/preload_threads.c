/*
 * A limit on threads as it affects OpenBLAS: no thread can be started in a process unless its
 * environment has OPENBLAS_NUM_THREADS=1; if THREADS_NONE is set, no thread can be started at all.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attr,
                                                          void *(*run)(void *), void *ctx);

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *ctx)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    const char *alone = getenv("OPENBLAS_NUM_THREADS");
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (!alone || strcmp(alone, "1") != 0 || getenv("THREADS_NONE")) return EAGAIN;
    return real(thread, attr, run, ctx);
}
