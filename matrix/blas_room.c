/*
 * Checks for the address space of OpenBLAS's buffers by mapping as much and unmapping it. The
 * kernel's answer covers limits, overcommitment and current use, for two system calls that touch no
 * page. The state of OpenBLAS's own threads shows which of them still need a buffer: a thread with
 * a buffer sleeps until there is work, a thread without one never sleeps.
 *
 * Another thread may take the room between the check and OpenBLAS's call. That window is narrow,
 * and callers have allocated their operands before it.
 */
#include "matrix/blas_room.h"

#include <cblas.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/bytes.h"
#include "core/clock.h"
#include "core/diag.h"

/* OpenBLAS's BUFFER_SIZE is 128 MiB on x86-64 and less elsewhere; the rest is for its tables. */
#define BUFFER ((size_t)129 << 20)
#define SETTLE_SECONDS 10.0 /* at most, on a busy machine */
#define SPIN_SECONDS 0.1    /* of CPU time per thread: idle ones spin for 0.03 and sleep */

bool sherd__blas_room(unsigned threads)
{
    size_t len;
    if (threads == 0) return true;
    if (!sherd__mul(BUFFER, threads, &len)) return false;
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return false;
    munmap(at, len);
    return true;
}

/* ---- its own threads ------------------------------------------------------------------------- */

/* Reads the letter after the name in `TID (name) S ...`; a name may contain anything, including
 * brackets. */
static bool asleep(int tasks, const char *tid)
{
    char path[300], text[256];
    snprintf(path, sizeof path, "%s/stat", tid);
    int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true; /* the thread has ended */
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    if (len <= 0) return true;
    text[len] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] == 'S';
}

/* Returns whether every thread except this one sleeps; false if that is unknown. */
static bool others_asleep(void)
{
    char own[24];
    DIR *dir = opendir("/proc/self/task");
    if (!dir) return false;
    snprintf(own, sizeof own, "%ld", syscall(SYS_gettid));
    bool all = true;
    for (struct dirent *e; all && (e = readdir(dir));)
        if (e->d_name[0] != '.' && strcmp(e->d_name, own) != 0) all = asleep(dirfd(dir), e->d_name);
    closedir(dir);
    return all;
}

/* Returns the CPU time used by all threads except this one, in seconds. */
static double others_used(void)
{
    struct timespec all, own;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all) != 0 ||
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own) != 0)
        return 0;
    return (double)(all.tv_sec - own.tv_sec) + (double)(all.tv_nsec - own.tv_nsec) * 1e-9;
}

int sherd__blas_settle(sherd_diag *d)
{
    int n = openblas_get_num_threads();
    if (n <= 1 || sherd__blas_room((unsigned)n)) return SHERD_OK;
    double before = others_used();
    for (double end = sherd__clock_s() + SETTLE_SECONDS; sherd__clock_s() < end;) {
        if (others_asleep()) return SHERD_OK;
        if (sherd__blas_room(1)) before = others_used();
        else if (others_used() - before > SPIN_SECONDS * n)
            return sherd__fail(d, SHERD_ENOMEM,
                               "raise the limit (ulimit -v, ulimit -d), or set "
                               "OPENBLAS_NUM_THREADS=1",
                               "too little address space: OpenBLAS needs %zu MiB for each of %d "
                               "threads",
                               BUFFER >> 20, n);
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    }
    return SHERD_OK;
}

/* ---- callers --------------------------------------------------------------------------------- */

static atomic_uint inside, /* callers inside now */
    most;                  /* callers that have had a buffer at the same time */

int sherd__blas_enter(void)
{
    unsigned now = atomic_fetch_add(&inside, 1) + 1, had = atomic_load(&most);
    if (now <= had || sherd__blas_room(now - had)) return SHERD_OK;
    atomic_fetch_sub(&inside, 1);
    return SHERD_ENOMEM;
}

void sherd__blas_leave(void)
{
    unsigned now = atomic_fetch_sub(&inside, 1), had = atomic_load(&most);
    while (now > had && !atomic_compare_exchange_weak(&most, &had, now)) continue;
}
