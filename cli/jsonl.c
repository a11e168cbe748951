/*
 * Lines of JSON. Each is written by one write to a file opened for appending, so that a killed
 * process leaves complete lines. If a full disk takes only a part of a line, that part is cut off
 * again. A system crash may still leave a part, which is cut off before the next run continues the
 * file. Files are only ever cut directly after the end of a line.
 */
#include "cli/jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"

#define PIECE 4096

static int cannot(const sherd__jsonl *l, int err, const char *what, sherd_diag *d)
{
    return sherd__fail(d, err, NULL, "%s: cannot %s: %s", l->path, what, strerror(errno));
}

/* Returns where the last complete line within the file's first `size` bytes ends; -1 if the file
 * cannot be read. */
static off_t end_of_lines(int fd, off_t size)
{
    char piece[PIECE];
    while (size > 0) {
        off_t from = (size - 1) / PIECE * PIECE;
        ssize_t n = pread(fd, piece, (size_t)(size - from), from);
        if (n != size - from) return -1;
        const char *last = memrchr(piece, '\n', (size_t)n);
        if (last) return from + (last - piece) + 1;
        size = from;
    }
    return 0;
}

/* Cuts off an incomplete last line. */
static int find_end(sherd__jsonl *l, off_t size, sherd_diag *d)
{
    off_t end = end_of_lines(l->fd, size);
    if (end < 0) return cannot(l, SHERD_EIO, "read", d);
    if (end < size && ftruncate(l->fd, end) != 0) return cannot(l, SHERD_EIO, "write", d);
    l->size = (uint64_t)end;
    return 0;
}

int sherd__jsonl_open(sherd__jsonl *l, const char *path, bool append, sherd_diag *d)
{
    struct stat st;
    bool file = append && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    int how = O_CREAT | O_APPEND | O_CLOEXEC;
    *l = (sherd__jsonl){ .fd = -1, .path = path };
    l->fd = open(path, how | (file ? O_RDWR : O_WRONLY) | (append ? 0 : O_TRUNC), 0666);
    if (l->fd < 0) return cannot(l, SHERD_EOPEN, "write", d);
    int err = file && fstat(l->fd, &st) != 0 ? cannot(l, SHERD_EIO, "read", d) : 0;
    if (!err && file) err = find_end(l, st.st_size, d);
    if (err) sherd__jsonl_close(l);
    return err;
}

int sherd__jsonl_add(sherd__jsonl *l, json_t *o, int digits, sherd_diag *d)
{
    const size_t how = JSON_COMPACT | JSON_REAL_PRECISION(digits);
    size_t len = o ? json_dumpb(o, NULL, 0, how) : 0;
    char *text = len > 0 ? sherd__alloc(len + 1) : NULL;
    bool printed = text && json_dumpb(o, text, len, how) == len;
    json_decref(o);
    if (!printed) {
        sherd__free(text);
        return sherd__fail_memory(d, "a line of %s", l->path);
    }
    text[len] = '\n';
    ssize_t n = write(l->fd, text, len + 1);
    sherd__free(text);
    if (n == (ssize_t)(len + 1)) {
        l->size += len + 1;
        return 0;
    }
    if (n >= 0) errno = ENOSPC;
    int err = cannot(l, SHERD_EIO, "write", d);
    if (n > 0 && ftruncate(l->fd, (off_t)l->size) != 0) return err; /* already reported */
    return err;
}

int sherd__jsonl_sync(sherd__jsonl *l, sherd_diag *d)
{
    if (fsync(l->fd) == 0 || errno == EINVAL || errno == EROFS) return 0;
    return cannot(l, SHERD_EIO, "write", d);
}

void sherd__jsonl_close(sherd__jsonl *l)
{
    if (l->fd >= 0) close(l->fd);
    l->fd = -1;
}
