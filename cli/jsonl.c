/*
 * Lines of JSON. Each goes out by one write to a file opened for appending, so a killed process
 * leaves whole lines; a disk that takes only a part of one has it cut off again. A machine that
 * goes down may leave a part all the same: whoever goes on in the file cuts that off first. Files
 * are only ever cut behind a line's end, and only as far back as that.
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

/* Where the last whole line of the file's first `size` bytes ends; -1: it cannot be read. */
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

/* Cuts off a last line without an end. */
static int find_end(sherd__jsonl *l, off_t size, sherd_diag *d)
{
    off_t end = end_of_lines(l->fd, size);
    if (end < 0) return cannot(l, SHERD_EIO, "read", d);
    if (end < size && ftruncate(l->fd, end) != 0) return cannot(l, SHERD_EIO, "write", d);
    l->size = (uint64_t)end;
    return 0;
}

int sherd__jsonl_open(sherd__jsonl *l, const char *path, bool go_on, sherd_diag *d)
{
    struct stat st;
    bool file = go_on && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    int how = O_CREAT | O_APPEND | O_CLOEXEC;
    *l = (sherd__jsonl){ .fd = -1, .path = path };
    l->fd = open(path, how | (file ? O_RDWR : O_WRONLY) | (go_on ? 0 : O_TRUNC), 0666);
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
        return sherd__fail(d, SHERD_ENOMEM, NULL, "%s: no memory for a line", l->path);
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
    if (n > 0 && ftruncate(l->fd, (off_t)l->size) != 0) return err; /* it was told already */
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
