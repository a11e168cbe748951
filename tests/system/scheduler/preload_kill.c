/*
 * Ends the process like kill -9 at a chosen system call. Once a path ending in $KILL_ON is opened
 * for writing, calls that lock, write, sync or send are counted. The process dies before call
 * number $KILL_AT / 2 if $KILL_AT is even, and directly after it if it is odd. At its end it writes
 * the number of calls to $KILL_FILE, if set.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define OVER __attribute__((visibility("default"))) /* overrides the build's -fvisibility=hidden */

OVER int open(const char *path, int flags, ...);
OVER int open64(const char *path, int flags, ...);
OVER int flock(int fd, int how);
OVER int fsync(int fd);
OVER ssize_t write(int fd, const void *bytes, size_t len);
OVER ssize_t writev(int fd, const struct iovec *v, int n);
OVER ssize_t sendmsg(int fd, const struct msghdr *m, int flags);
OVER ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at);
OVER ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t at);

static atomic_bool armed;
static atomic_long calls;

static void *next(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);
    if (!f) abort();
    return f;
}

/* Called once before and once after each call. */
static void step(int after)
{
    const char *at = getenv("KILL_AT");
    if (!atomic_load(&armed)) return;
    long n = after ? atomic_load(&calls) : atomic_fetch_add(&calls, 1) + 1;
    if (at && atol(at) == 2 * n + after) kill(getpid(), SIGKILL);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("KILL_FILE");
    if (!path || !atomic_load(&armed)) return;
    atomic_store(&armed, 0);
    FILE *f = fopen(path, "w");
    if (!f) return;
    fprintf(f, "%ld\n", atomic_load(&calls));
    fclose(f);
}

static int open_by(const char *name, const char *path, int flags, mode_t mode)
{
    int (*real)(const char *, int, ...);
    const char *on = getenv("KILL_ON");
    *(void **)&real = next(name);
    int fd = real(path, flags, mode);
    size_t n = on ? strlen(on) : 0, len = strlen(path);
    if (fd >= 0 && n > 0 && len >= n && (flags & O_ACCMODE) == O_RDWR &&
        !strcmp(path + len - n, on))
        atomic_store(&armed, 1);
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return open_by("open", path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return open_by("open64", path, flags, mode);
}

#define WRAP(type, name, params, args)                                                             \
    type name params                                                                               \
    {                                                                                              \
        static type(*real) params;                                                                 \
        if (!real) *(void **)&real = next(#name);                                                  \
        step(0);                                                                                   \
        type r = real args;                                                                        \
        step(1);                                                                                   \
        return r;                                                                                  \
    }

WRAP(int, flock, (int fd, int how), (fd, how))
WRAP(int, fsync, (int fd), (fd))
WRAP(ssize_t, write, (int fd, const void *bytes, size_t len), (fd, bytes, len))
WRAP(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
WRAP(ssize_t, pwrite, (int fd, const void *bytes, size_t len, off_t at), (fd, bytes, len, at))
WRAP(ssize_t, pwrite64, (int fd, const void *bytes, size_t len, off_t at), (fd, bytes, len, at))
