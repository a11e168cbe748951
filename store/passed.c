/*
 * Lines are appended under a lock on the file. A line that is cut off, by a full disk or a crash,
 * equals no key; the next writer clears a file that does not end with a line, or has too many. A
 * reader needs no lock: it can only miss a line that is being written.
 *
 * The file vouches for code, so only this user may be able to write it. Links are not followed.
 */
#include "store/passed.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "store/file.h"
#include "store/folder.h"

enum { LINE = 2 * SHERD__HASH + 1, LINES_MAX = 256, POLL_MS = 2 };

/* ---- the file -------------------------------------------------------------------------------- */

/* Opens the folder, and creates it and the one that contains it where they are missing. */
static int open_folder(char *path)
{
    struct stat st;
    char *slash = strrchr(path, '/');
    if (slash && slash != path) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !sherd__owned(&st))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int open_in(int folder)
{
    struct stat st;
    int flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(folder, "selftests", flags, 0600);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || !sherd__owned(&st))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int open_file(const char *folder)
{
    char *path = folder ? sherd__strdup(folder)
                        : sherd__user_folder("XDG_CACHE_HOME", ".cache", "sherd");
    int in = path ? open_folder(path) : -1, fd = in >= 0 ? open_in(in) : -1;
    if (in >= 0) close(in);
    sherd__free(path);
    return fd;
}

/* Reads the lines. Returns their length, or -1 if the file is not of whole lines, or too long. */
static ssize_t read_lines(int fd, char text[LINES_MAX * LINE + 1])
{
    ssize_t len = pread(fd, text, LINES_MAX * LINE + 1, 0);
    return len < 0 || len > LINES_MAX * LINE || len % LINE ? -1 : len;
}

static void line_of(const uint8_t key[SHERD__HASH], char out[LINE + 1])
{
    sodium_bin2hex(out, LINE + 1, key, SHERD__HASH);
    out[LINE - 1] = '\n';
}

static bool has_line(int fd, const uint8_t key[SHERD__HASH])
{
    char text[LINES_MAX * LINE + 1], line[LINE + 1];
    ssize_t len = read_lines(fd, text);
    line_of(key, line);
    for (ssize_t at = 0; at < len; at += LINE)
        if (memcmp(text + at, line, LINE) == 0) return true;
    return false;
}

static void append_line(int fd, const uint8_t key[SHERD__HASH])
{
    char text[LINES_MAX * LINE + 1], line[LINE + 1];
    ssize_t len = read_lines(fd, text);
    line_of(key, line);
    if ((len < 0 || len == LINES_MAX * LINE) && ftruncate(fd, 0) != 0) return;
    if (sherd__write_all(fd, -1, line, LINE) != 0) return; /* tests are repeated then */
}

/* ---- a test ---------------------------------------------------------------------------------- */

/* Waits for the lock, or for the line of another process. Returns whether the line is there. */
static bool wait_for_it(sherd__passed *p, uint32_t wait_ms)
{
    const struct timespec pause = { .tv_nsec = POLL_MS * 1000000 };
    int64_t deadline = sherd__clock_ms() + wait_ms;
    while (flock(p->fd, LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || sherd__clock_ms() >= deadline) {
            sherd__passed_end(p, false);
            return false;
        }
        nanosleep(&pause, NULL);
        if (has_line(p->fd, p->key)) return true;
    }
    return has_line(p->fd, p->key);
}

bool sherd__passed_begin(sherd__passed *p, const char *folder, const uint8_t key[SHERD__HASH],
                         uint32_t wait_ms)
{
    memcpy(p->key, key, SHERD__HASH);
    p->fd = open_file(folder);
    if (p->fd < 0) return false;
    if (!has_line(p->fd, key) && !wait_for_it(p, wait_ms)) return false;
    sherd__passed_end(p, false);
    return true;
}

void sherd__passed_end(sherd__passed *p, bool now)
{
    if (p->fd < 0) return;
    if (now) append_line(p->fd, p->key);
    close(p->fd);
    p->fd = -1;
}

void sherd__passed_forget(const char *folder)
{
    int fd = open_file(folder);
    if (fd < 0) return;
    int e = ftruncate(fd, 0); /* a file system that is read-only keeps the lines */
    (void)e;
    close(fd);
}
