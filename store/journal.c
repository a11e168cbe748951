/*
 * A journal is read completely when it is opened, one part at a time, so that its length is not
 * limited. After that it is only appended to, with one write and one sync per addition. The
 * contents are not trusted, except that the owner of the file has written it.
 */
#include "store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "store/file.h"

#define PART ((size_t)1 << 20) /* bytes read at once: longer than any line */

struct sherd__journal {
    char *path;
    const sherd__journal_kind *kind;
    int fd;
    uint64_t end; /* of the last complete line */
    bool made;    /* the file did not exist */
    bool broken;  /* a line may be incomplete or missing */
};

static int fail_file(const sherd__journal *j, int err, const char *what, sherd_diag *d)
{
    char text[96];
    return sherd__fail(d, err, NULL, "%s: cannot %s it: %s", sherd__path_tail(j->path), what,
                       strerror_r(errno, text, sizeof text));
}

static int no_memory(const sherd__journal_kind *kind, sherd_diag *d)
{
    return sherd__fail_memory(d, "the %s", kind->name);
}

/* Parses each complete line of a part of the file; *used is the number of bytes parsed. */
static int take_lines(sherd__journal *j, const char *text, size_t len, size_t *number, void *ctx,
                      size_t *used)
{
    size_t first = strlen(j->kind->first);
    int err = SHERD_OK;
    *used = 0;
    for (const char *end; !err && (end = memchr(text + *used, '\n', len - *used)); ++*number) {
        const char *at = text + *used;
        *used = (size_t)(end + 1 - text);
        if (*number) err = j->kind->line(ctx, at, end);
        else if (*used != first || memcmp(at, j->kind->first, first)) err = SHERD_EFORMAT;
    }
    return err;
}

static int read_lines(sherd__journal *j, void *ctx, sherd_diag *d)
{
    char *text = sherd__alloc(PART);
    size_t have = 0, number = 0, used;
    ssize_t got = 0;
    int err = text ? SHERD_OK : SHERD_ENOMEM;
    while (!err) {
        got = pread(j->fd, text + have, PART - have, (off_t)(j->end + have));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        have += (size_t)got;
        err = take_lines(j, text, have, &number, ctx, &used);
        if (!err && !used && have == PART) number++, err = SHERD_EFORMAT;
        j->end += used;
        have -= used;
        memmove(text, text + used, have);
    }
    if (!err && got < 0) err = fail_file(j, SHERD_EIO, "read", d);
    else if (!err && !number) number++, err = SHERD_EFORMAT;
    sherd__free(text);
    if (err == SHERD_ENOMEM) return no_memory(j->kind, d);
    return err != SHERD_EFORMAT ? err
                                : sherd__fail(d, SHERD_EFORMAT, "restore it from a backup",
                                              "%s:%zu: this is not a line of a %s",
                                              sherd__path_tail(j->path), number, j->kind->name);
}

/* Publishes a synced file unless the name exists by now: if two processes find no file, only one
 * creates it, and nothing is replaced. */
static int name_new(sherd__journal *j, const sherd__file *f, sherd_diag *d)
{
    const char *slash = strrchr(j->path, '/');
    size_t len = slash == j->path ? 1 : slash ? (size_t)(slash - j->path) : 0;
    char from[40], *folder = sherd__calloc(len + 2, 1);
    if (!folder) return no_memory(j->kind, d);
    memcpy(folder, len ? j->path : ".", len ? len : 1);
    snprintf(from, sizeof from, "/proc/self/fd/%d", sherd__file_fd(f));
    int err = SHERD_OK;
    if (linkat(AT_FDCWD, from, AT_FDCWD, j->path, AT_SYMLINK_FOLLOW) == 0)
        err = sherd__file_sync_folder(folder, d);
    else if (errno == EEXIST)
        err = sherd__fail(d, SHERD_EBUSY, "end that process first, or try again",
                          "%s: another process created this %s at the same time",
                          sherd__path_tail(j->path), j->kind->name);
    else err = fail_file(j, SHERD_EOPEN, "make", d);
    sherd__free(folder);
    return err;
}

/* Opens the file for appending and locks it for this process. Opening a pipe for both directions
 * does not block. */
static int lock(sherd__journal *j, sherd_diag *d)
{
    struct stat st;
    j->fd = open(j->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (j->fd < 0 && errno == ELOOP)
        return sherd__fail(d, SHERD_EOPEN, "name the file itself",
                           "%s: is a symbolic link, not a "
                           "%s",
                           sherd__path_tail(j->path), j->kind->name);
    if (j->fd < 0 || fstat(j->fd, &st) != 0) return fail_file(j, SHERD_EOPEN, "add to", d);
    if (!S_ISREG(st.st_mode))
        return sherd__fail(d, SHERD_EOPEN, "name a file, or a new one",
                           "%s: not a regular file, which a %s is", sherd__path_tail(j->path),
                           j->kind->name);
    if (flock(j->fd, LOCK_EX | LOCK_NB) == 0) return SHERD_OK;
    if (errno != EWOULDBLOCK) return fail_file(j, SHERD_EIO, "lock", d);
    return sherd__fail(d, SHERD_EBUSY, "end that process first",
                       "%s: another process has this %s "
                       "open",
                       sherd__path_tail(j->path), j->kind->name);
}

/* Creates a new file. It is locked before it has a name, so no other process appended to it. */
static int begin(sherd__journal *j, sherd__journal_mode mode, sherd_diag *d)
{
    sherd__file *f;
    int err = sherd__file_begin(&f, j->path, SHERD__FILE_PRIVATE, d);
    if (err) return err;
    j->made = true;
    j->end = strlen(j->kind->first);
    j->fd = fcntl(sherd__file_fd(f), F_DUPFD_CLOEXEC, 0);
    if (j->fd < 0 || flock(j->fd, LOCK_EX | LOCK_NB) != 0)
        err = fail_file(j, SHERD_EOPEN, "lock", d);
    if (!err) err = sherd__file_write(f, j->kind->first, j->end, d);
    if (!err && mode == SHERD__JOURNAL_FRESH) return sherd__file_commit(f, d);
    if (!err) err = sherd__file_sync(f, d);
    if (!err) err = name_new(j, f, d);
    sherd__file_abort(f);
    return err;
}

static int take_up(sherd__journal *j, sherd__journal_mode mode, void *ctx, sherd_diag *d)
{
    struct stat st;
    bool there = lstat(j->path, &st) == 0 || errno != ENOENT;
    if (!there && mode == SHERD__JOURNAL_EXISTING)
        return sherd__fail(d, SHERD_EFORMAT, j->kind->remedy, "%s: does not exist: %s",
                           sherd__path_tail(j->path), j->kind->missing);
    if (!there) return begin(j, mode, d);
    int err = lock(j, d);
    if (!err && mode == SHERD__JOURNAL_FRESH) {
        int old = j->fd; /* stays locked until it is replaced */
        err = begin(j, mode, d);
        close(old);
        return err;
    }
    if (!err) err = read_lines(j, ctx, d);
    if (!err && ftruncate(j->fd, (off_t)j->end) != 0) err = fail_file(j, SHERD_EIO, "mend", d);
    return err;
}

int sherd__journal_open(sherd__journal **out, const char *path, sherd__journal_mode mode,
                        const sherd__journal_kind *kind, void *ctx, sherd_diag *d)
{
    size_t size = strlen(path) + 1;
    *out = NULL;
    sherd__journal *j = sherd__calloc(1, sizeof *j);
    if (!j) return no_memory(kind, d);
    j->fd = -1;
    j->kind = kind;
    j->path = sherd__alloc(size);
    if (!j->path) {
        sherd__journal_close(j);
        return no_memory(kind, d);
    }
    memcpy(j->path, path, size);
    int err = take_up(j, mode, ctx, d);
    if (err) sherd__journal_close(j);
    else *out = j;
    return err;
}

int sherd__journal_add(sherd__journal *j, const char *text, size_t len, bool lasts, sherd_diag *d)
{
    if (j->broken)
        return sherd__fail(d, SHERD_EIO, NULL, "%s: could not be written",
                           sherd__path_tail(j->path));
    errno = sherd__write_all(j->fd, (int64_t)j->end, text, len);
    j->broken = errno || (lasts && fsync(j->fd) != 0);
    if (j->broken) return fail_file(j, SHERD_EIO, "write", d);
    j->end += len;
    return SHERD_OK;
}

bool sherd__journal_made(const sherd__journal *j)
{
    return j->made;
}

void sherd__journal_close(sherd__journal *j)
{
    if (!j) return;
    if (j->fd >= 0) close(j->fd);
    sherd__free(j->path);
    sherd__free(j);
}
