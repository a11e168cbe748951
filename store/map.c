/*
 * Reads a file as an array of bytes. Large regular files are mapped, so that operands larger than
 * memory work and nothing is copied. Small files and pipes are read into memory, where other
 * processes cannot change them. Sizes come from the kernel when the file is opened, never from a
 * header.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "store/file.h"

#define READ_FIRST ((size_t)64 << 10)
#define READ_CHUNK ((size_t)1 << 30)

static int fail_errno(const char *path, int code, const char *what, int e, sherd_diag *d)
{
    if (e == ENOMEM) return sherd__fail_memory(d, "%s", path);
    if (e == ECANCELED)
        return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "%s: interrupted before its writer ended",
                           sherd__path_tail(path));
    const char *hint = "check the disk";
    if (code == SHERD_EOPEN) hint = "check the path and its permissions";
    if (code == SHERD_EOPEN && strcmp(path, "-") == 0) hint = "use /dev/stdin for standard input";
    return sherd__fail_file(code, hint, path, what, e, d);
}

static atomic_int stop_fd = -1;

void sherd__file_stop_at(int fd)
{
    atomic_store(&stop_fd, fd);
}

/* Waits until there is data or the end of file. A pipe that no process has opened for writing yet
 * has neither. Returns 0 or an errno, ECANCELED if waiting was cancelled. */
static int wait_for_writer(int fd)
{
    struct pollfd two[] = { { .fd = fd, .events = POLLIN },
                            { .fd = atomic_load(&stop_fd), .events = POLLIN } };
    while (poll(two, 2, -1) < 0)
        if (errno != EINTR) return errno;
    return two[1].revents ? ECANCELED : 0;
}

/* Opens with O_NONBLOCK: otherwise opening a pipe would wait for its writer, and could not be
 * cancelled. */
static int open_input(int *fd, struct stat *st, const char *path, sherd_diag *d)
{
    int h = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (h < 0 && errno == EWOULDBLOCK) /* another process has a lease on the file */
        h = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (h < 0) return fail_errno(path, SHERD_EOPEN, "open", errno, d);
    int e = fstat(h, st) != 0 ? errno : S_ISDIR(st->st_mode) ? EISDIR : 0;
    if (e) {
        close(h);
        return fail_errno(path, SHERD_EOPEN, "open", e, d);
    }
    /* some kernel files need blocking reads */
    if (S_ISREG(st->st_mode)) (void)fcntl(h, F_SETFL, 0);
    *fd = h;
    return SHERD_OK;
}

/* Reads up to len bytes, fewer only at the end. Returns 0 or an errno. */
static int read_up_to(int fd, bool regular, uint8_t *out, size_t len, size_t *got)
{
    size_t n = 0;
    while (n < len) {
        size_t want = len - n < READ_CHUNK ? len - n : READ_CHUNK;
        int e = regular ? 0 : wait_for_writer(fd);
        if (e) return e;
        ssize_t r = read(fd, out + n, want);
        if (r < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (r < 0) return errno;
        if (r == 0) break;
        n += (size_t)r;
    }
    *got = n;
    return 0;
}

/* An open file; guess: its length, as far as that is known; len_max: the most that is read. */
typedef struct input {
    int fd;
    bool regular;
    size_t guess, len_max;
    const char *path;
} input;

/* Reads all data of fd, at most len_max bytes; `guess` is the size of the first read. */
static int read_whole(const input *in, uint8_t **bytes, size_t *len, sherd_diag *d)
{
    const char *path = in->path;
    const size_t len_max = in->len_max;
    size_t cap = in->guess < len_max ? in->guess : len_max, n = 0, got = 0;
    uint8_t *p = sherd__alloc(cap + 1), *more;
    if (!p) return sherd__fail_memory(d, "%s", path);
    for (;;) {
        /* one extra byte shows whether there is more */
        int e = read_up_to(in->fd, in->regular, p + n, cap + 1 - n, &got);
        if (e) {
            sherd__free(p);
            return fail_errno(path, SHERD_EIO, "read", e, d);
        }
        n += got;
        if (n <= cap) break;
        if (cap == len_max) {
            sherd__free(p);
            return sherd__fail(d, SHERD_EFORMAT, "give a smaller file, or a regular one",
                               "%s: longer than the %zu bytes that are read",
                               sherd__path_tail(path), len_max);
        }
        cap = cap > len_max / 2 ? len_max : cap * 2;
        more = sherd__realloc(p, cap + 1);
        if (!more) {
            sherd__free(p);
            return sherd__fail_memory(d, "%s", path);
        }
        p = more;
    }
    p[n] = '\0';
    *bytes = p;
    *len = n;
    return SHERD_OK;
}

int sherd__map_open(sherd__map *m, const char *path, size_t read_max, sherd_diag *d)
{
    struct stat st;
    int fd = -1;
    int err = open_input(&fd, &st, path, d);
    if (err) return err;
    sherd__map r = { .fd = fd, .changed_s = st.st_mtim.tv_sec, .changed_ns = st.st_mtim.tv_nsec };
    bool regular = S_ISREG(st.st_mode) && st.st_size > 0; /* files in /proc report 0 too */
    size_t size = regular ? (size_t)st.st_size : 0;
    if (size > SHERD__MAP_COPY) {
        void *at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED) {
            r.bytes = r.owned = at;
            r.len = r.owned_len = size;
            r.mapped = true;
            *m = r;
            return SHERD_OK;
        }
    }
    uint8_t *bytes;
    const input in = { fd, S_ISREG(st.st_mode), regular ? size : READ_FIRST,
                       regular ? size : read_max, path };
    err = read_whole(&in, &bytes, &r.len, d);
    close(fd);
    if (err) return err;
    if (regular && r.len != size) {
        sherd__free(bytes);
        return sherd__fail(d, SHERD_EIO, "let its writer finish first",
                           "%s: %zu bytes long when opened, %zu when read", sherd__path_tail(path),
                           size, r.len);
    }
    r.bytes = r.owned = bytes;
    r.fd = -1;
    *m = r;
    return SHERD_OK;
}

int sherd__map_check(const sherd__map *m, const char *path, sherd_diag *d)
{
    struct stat st;
    if (!m->mapped) return SHERD_OK;
    if (fstat(m->fd, &st) != 0) return fail_errno(path, SHERD_EIO, "look at", errno, d);
    if ((size_t)st.st_size == m->len && st.st_mtim.tv_sec == m->changed_s &&
        st.st_mtim.tv_nsec == m->changed_ns)
        return SHERD_OK;
    return sherd__fail(d, SHERD_EIO, "run again once its writer has finished",
                       "%s: changed while it was read (%zu bytes when opened, %lld now)",
                       sherd__path_tail(path), m->len, (long long)st.st_size);
}

void sherd__map_close(sherd__map *m)
{
    if (m->mapped) {
        munmap(m->owned, m->owned_len);
        close(m->fd);
    } else {
        sherd__free(m->owned);
    }
    *m = (sherd__map){ .fd = -1 };
}

int sherd__file_read_small(uint8_t **bytes, size_t *len, const char *path, size_t len_max,
                           sherd_diag *d)
{
    struct stat st;
    int fd = -1;
    *bytes = NULL;
    int err = open_input(&fd, &st, path, d);
    if (err) return err;
    size_t guess = st.st_size > 0 && (size_t)st.st_size < len_max ? (size_t)st.st_size : 4096;
    err = read_whole(&(input){ fd, S_ISREG(st.st_mode), guess, len_max, path }, bytes, len, d);
    close(fd);
    return err;
}
