/*
 * A disk that fails, or a Ctrl-C, at a chosen moment: of the calls that sync files or give them
 * their names (fsync, linkat, renameat) number $DISK_AT fails with EIO or, if $DISK_DOES is
 * "interrupt", is preceded by SIGINT. While the file $DISK_SLOW exists, each call takes most of a
 * second. At the end the number of calls is written to $DISK_FILE, if it is set.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OVER __attribute__((visibility("default"))) /* overrides the build's -fvisibility=hidden */

OVER int fsync(int fd);
OVER int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
OVER int renameat(int from_dir, const char *from, int to_dir, const char *to);

static atomic_long calls;

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("DISK_FILE");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    fprintf(f, "%ld\n", atomic_load(&calls));
    fclose(f);
}

static bool fails(void)
{
    const char *at = getenv("DISK_AT"), *does = getenv("DISK_DOES"), *slow = getenv("DISK_SLOW");
    if (slow && !access(slow, F_OK)) usleep(700000);
    long n = atomic_fetch_add(&calls, 1) + 1;
    if (!at || atol(at) != n) return false;
    if (does && !strcmp(does, "interrupt")) {
        raise(SIGINT);
        return false;
    }
    errno = EIO;
    return true;
}

#define WRAP(name, params, args)                                                                   \
    int name params                                                                                \
    {                                                                                              \
        static int(*real) params;                                                                  \
        if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);                                      \
        return fails() ? -1 : real args;                                                           \
    }

WRAP(fsync, (int fd), (fd))
WRAP(linkat, (int from_dir, const char *from, int to_dir, const char *to, int flags),
     (from_dir, from, to_dir, to, flags))
WRAP(renameat, (int from_dir, const char *from, int to_dir, const char *to),
     (from_dir, from, to_dir, to))
