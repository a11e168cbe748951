/*
 * System calls that fail: in the process that $CALLS_IN names (node: `sherd node`, command: all
 * others), calls of $CALLS_NAME from number $CALLS_FROM on fail with the error of exhausted
 * resources.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define OVER __attribute__((visibility("default"))) /* overrides the build's -fvisibility=hidden */

static atomic_long calls;
static bool here;

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    const char *in = getenv("CALLS_IN");
    bool node = argc > 1 && strcmp(argv[1], "node") == 0;
    bool ours = strcmp(program_invocation_short_name, "timeout") != 0;
    here = ours && (!in || node == (strcmp(in, "node") == 0));
}

static bool fails(const char *name, int error)
{
    const char *chosen = getenv("CALLS_NAME"), *from = getenv("CALLS_FROM");
    if (!here || !chosen || strcmp(chosen, name) != 0) return false;
    long n = atomic_fetch_add(&calls, 1) + 1;
    if (!from || n < atol(from)) return false;
    errno = error;
    return true;
}

#define WRAP(type, name, failed, error, params, args)                                              \
    OVER type name params;                                                                         \
    type name params                                                                               \
    {                                                                                              \
        static type(*real) params;                                                                 \
        if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);                                      \
        return fails(#name, error) ? (failed) : real args;                                         \
    }

WRAP(int, epoll_ctl, -1, ENOMEM, (int at, int op, int fd, struct epoll_event *e), (at, op, fd, e))
WRAP(int, epoll_create1, -1, EMFILE, (int flags), (flags))
WRAP(int, epoll_pwait, -1, ENOMEM,
     (int at, struct epoll_event *e, int len, int ms, const sigset_t *mask), (at, e, len, ms, mask))
WRAP(int, epoll_wait, -1, ENOMEM, (int at, struct epoll_event *e, int len, int ms),
     (at, e, len, ms))
WRAP(int, eventfd, -1, EMFILE, (unsigned count, int flags), (count, flags))
WRAP(int, socket, -1, EMFILE, (int family, int type, int protocol), (family, type, protocol))
WRAP(int, ftruncate, -1, ENOSPC, (int fd, off_t len), (fd, len))
WRAP(void *, mmap, MAP_FAILED, ENOMEM,
     (void *at, size_t len, int may, int flags, int fd, off_t from),
     (at, len, may, flags, fd, from))
WRAP(ssize_t, getrandom, -1, ENOSYS, (void *out, size_t len, unsigned flags), (out, len, flags))
WRAP(ssize_t, pwrite, -1, ENOSPC, (int fd, const void *bytes, size_t len, off_t at),
     (fd, bytes, len, at))

WRAP(int, pipe2, -1, EMFILE, (int fds[2], int flags), (fds, flags))
WRAP(int, sigaction, -1, EINVAL, (int number, const struct sigaction *act, struct sigaction *was),
     (number, act, was))
WRAP(ssize_t, read, -1, EIO, (int fd, void *bytes, size_t len), (fd, bytes, len))
WRAP(ssize_t, writev, -1, ENOBUFS, (int fd, const struct iovec *bytes, int len), (fd, bytes, len))

/* Messages of errors are still written. */
OVER ssize_t write(int fd, const void *bytes, size_t len);
ssize_t write(int fd, const void *bytes, size_t len)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "write");
    return fd > 2 && fails("write", ENOSPC) ? -1 : real(fd, bytes, len);
}
