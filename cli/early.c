/* Tries threads before OpenBLAS starts its own; see cli/early.h. At that time only libc is
 * initialised. */
#include "cli/early.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK "_SHERD_ONE_THREAD=1"
#define VARIABLES_MAX 4096
#define TRIED_MAX 128 /* the most threads that Debian's OpenBLAS starts */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* threads of sanitizers need state that is not set up yet */
#else
#define SANITIZED 0
#endif

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_all(void *unused)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return unused;
}

/* Returns whether `count` threads can run at one time in addition to this one. */
static int can_start(int count)
{
    static pthread_t threads[TRIED_MAX];
    int started = 0;
    pthread_mutex_lock(&gate);
    while (started < count && pthread_create(&threads[started], NULL, wait_for_all, NULL) == 0)
        started++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return started == count;
}

static int set(char **env, const char *name)
{
    size_t n = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=' && (*env)[n + 1]) return 1;
    return 0;
}

static void try_threads(int argc, char **argv, char **env)
{
    static char *more[VARIABLES_MAX + 3];
    static char one[] = "OPENBLAS_NUM_THREADS=1", mark[] = MARK;
    cpu_set_t cpus;
    size_t n = 0;
    (void)argc;
    if (SANITIZED || set(env, "OPENBLAS_NUM_THREADS") || set(env, "OMP_NUM_THREADS") ||
        set(env, "GOTO_NUM_THREADS") || sched_getaffinity(0, sizeof cpus, &cpus) != 0)
        return;
    int count = CPU_COUNT(&cpus) - 1;
    if (count < 1 || can_start(count < TRIED_MAX ? count : TRIED_MAX)) return;
    for (; env[n]; n++) {
        if (n == VARIABLES_MAX) return;
        more[n] = env[n];
    }
    more[n] = one;
    more[n + 1] = mark;
    execve("/proc/self/exe", argv, more);
}

__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char **,
                                                                            char **) = try_threads;

bool sherd__early_alone(void)
{
    if (!getenv("_SHERD_ONE_THREAD")) return false;
    unsetenv("_SHERD_ONE_THREAD"); /* must not reach child processes */
    return true;
}

void sherd__early_warn(void)
{
    if (sherd__early_alone())
        fputs("sherd: warning: cannot start another thread, which OpenBLAS needs: products use one "
              "thread\n"
              "  try: raise the limit (ulimit -u, ulimit -v, the control group's pids)\n",
              stderr);
}
