/*
 * Use of one-time masks from a file. The number of used rows is recorded twice: by the mark in the
 * file, and by a counter in a separate folder. The mark is written first. If the process is killed
 * between the two writes, the mark is ahead: the file is the newest version, nothing was sent, and
 * the rows in between are lost. A mark behind the counter can only come from an older copy of the
 * file.
 *
 * Both are written in place, as one piece of 64 bytes with a tag. If a power failure interrupts the
 * write, the tag does not match and the file is refused. No bytes of either file are trusted unless
 * their tags confirm them.
 */
#include "store/maskfile_form.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "store/file.h"
#include "store/maskfile_state.h"

#define WINDOW ((size_t)256 << 10) /* bytes read at a time */

typedef unsigned long long ull;

struct sherd__maskfile {
    sherd__maskfile_head head;
    char *path, *state;
    int fd, counter; /* both locked; counter is -1 if the file was opened read-only */
    uint64_t used;
    uint8_t *root; /* guarded memory: locked if the system allows it, never in a core dump */
    uint8_t tag_key[32];
    uint8_t *window; /* bytes [at, at+len) of the file */
    uint64_t at;
    size_t len;
    uint64_t checked; /* rows from `used` up to this one have matched their tags */
    uint8_t *row;     /* buffer of row `held`, if any, with its tag */
    uint64_t held;
};

#define NONE UINT64_MAX

/* ---- opening --------------------------------------------------------------------------------- */

static int fail_file(const sherd__maskfile *f, const char *what, int e, sherd_diag *d)
{
    return sherd__fail_file(SHERD_EIO, "check the disk and the file system", f->path, what, e, d);
}

static int damaged(const sherd__maskfile *f, const char *what, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EFORMAT, "prepare new masks; use none of this file's",
                       "%s: %s does not fit its tag: the file was damaged or edited",
                       sherd__path_tail(f->path), what);
}

/* Returns true if this is not a file of masks, so that its mode does not matter. */
static bool no_masks(int fd)
{
    char head[8];
    return pread(fd, head, sizeof head, 0) != (ssize_t)sizeof head ||
           memcmp(head, SHERD__MASKFILE_MAGIC, sizeof head) != 0;
}

static int no_masks_fail(const sherd__maskfile *f, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EFORMAT, "name a file that sherd prepare made",
                       "%s: is not a file of masks, or its first bytes were edited",
                       sherd__path_tail(f->path));
}

static int open_file(sherd__maskfile *f, bool use, sherd_diag *d)
{
    struct stat st;
    char buf[96];
    const char *name = sherd__path_tail(f->path);
    f->fd = open(f->path, (use ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (f->fd < 0)
        return sherd__fail(d, SHERD_EOPEN, "check the path and its permissions",
                           "%s: cannot open: %s", name, strerror_r(errno, buf, sizeof buf));
    if (fstat(f->fd, &st) != 0) return fail_file(f, "examine it", errno, d);
    if (!S_ISREG(st.st_mode))
        return sherd__fail(d, SHERD_EOPEN, "name a file that sherd prepare made",
                           "%s: is not a regular file", name);
    if ((st.st_mode & 077) && no_masks(f->fd)) return no_masks_fail(f, d);
    if (st.st_mode & 077)
        return sherd__fail(d, SHERD_EKEY,
                           "chmod 600 the file, or prepare new masks if others saw it",
                           "%s: mode %04o lets others read the masks, expected 0600", name,
                           (unsigned)(st.st_mode & 07777));
    if (use && flock(f->fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? sherd__fail(d, SHERD_EBUSY, "wait for it, or prepare masks of its own",
                                 "%s: another run is using these masks", name)
                   : fail_file(f, "lock it", errno, d);
    return SHERD_OK;
}

static int read_at(const sherd__maskfile *f, uint64_t at, void *out, size_t len)
{
    uint8_t *to = out;
    while (len > 0) {
        ssize_t got = pread(f->fd, to, len, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return ENODATA;
        to += got;
        at += (uint64_t)got;
        len -= (size_t)got;
    }
    return 0;
}

static int check_head(sherd__maskfile *f, const uint8_t head[SHERD__MASKFILE_HEAD], uint64_t size,
                      sherd_diag *d)
{
    const char *name = sherd__path_tail(f->path);
    uint8_t tag[32];
    uint32_t version = sherd__get_u32(head + 8);
    memcpy(f->root, head + SHERD__MASKFILE_AT_KEY, 32);
    sherd__maskfile_tag_key(f->tag_key, f->root);
    sherd__maskfile_head_tag(tag, f->tag_key, head);
    bool sound = sodium_memcmp(tag, head + SHERD__MASKFILE_AT_TAG, sizeof tag) == 0;
    if (!sound && version != SHERD__MASKFILE_VERSION) /* a later version may have other tags */
        return sherd__fail(d, SHERD_EVERSION, "use the version of sherd that prepared it",
                           "%s: masks of version %u, expected %u", name, version,
                           SHERD__MASKFILE_VERSION);
    if (!sound) return damaged(f, "the head", d);
    sherd__maskfile_head_get(&f->head, head);
    uint64_t expected = sherd__maskfile_bytes(&f->head);
    if (version != SHERD__MASKFILE_VERSION || expected == 0)
        return sherd__fail(d, SHERD_EVERSION, "use the version of sherd that prepared it",
                           "%s: masks of a kind that this version does not know", name);
    if (size != expected)
        return sherd__fail(d, SHERD_EFORMAT, "prepare new masks; use none of this file's",
                           "%s: %llu bytes long, expected %llu: it was cut or extended", name,
                           (ull)size, (ull)expected);
    return SHERD_OK;
}

static int read_head(sherd__maskfile *f, sherd_diag *d)
{
    uint8_t head[SHERD__MASKFILE_HEAD] = { 0 };
    struct stat st;
    int e = fstat(f->fd, &st) != 0 ? errno : 0, err = SHERD_OK;
    if (!e && st.st_size >= (off_t)sizeof head) e = read_at(f, 0, head, sizeof head);
    if (e) return fail_file(f, "read it", e, d);
    if (memcmp(head, SHERD__MASKFILE_MAGIC, 8) != 0) err = no_masks_fail(f, d);
    if (!err) err = check_head(f, head, (uint64_t)st.st_size, d);
    if (!err &&
        !sherd__mark_get(head + SHERD__MASKFILE_AT_MARK, 'M', f->head.id, f->tag_key, &f->used))
        err = damaged(f, "the mark of used rows", d);
    sherd__wipe(head, sizeof head);
    return err;
}

/* Compares the mark with the counter. */
static int compare_counter(sherd__maskfile *f, bool use, sherd_diag *d)
{
    uint64_t counted;
    int err = sherd__counter_open(&f->counter, (sherd__counter){ f->state, f->head.id, f->tag_key },
                                  use, sherd__path_tail(f->path), &counted, d);
    if (err) return err;
    if (f->used < counted)
        return sherd__fail(d, SHERD_EEXPOSURE, "use the newest copy, or prepare new masks",
                           "%s: an older copy: it records %llu used rows, and %llu were used",
                           sherd__path_tail(f->path), (ull)f->used, (ull)counted);
    return SHERD_OK;
}

int sherd__maskfile_open(sherd__maskfile **out, const char *path, const char *state, bool use,
                         sherd_diag *d)
{
    *out = NULL;
    if (sodium_init() < 0) return sherd__fail(d, SHERD_EINTERNAL, NULL, "libsodium does not start");
    sherd__maskfile *f = sherd__calloc(1, sizeof *f);
    if (!f) return sherd__fail_memory(d, "a file of masks");
    f->fd = f->counter = -1;
    f->held = NONE;
    f->path = sherd__strdup(path);
    f->window = sherd__alloc(WINDOW);
    f->root = sodium_malloc(32);
    int err = f->path && f->window && f->root ? SHERD_OK : sherd__fail_memory(d, "a file of masks");
    if (!err) err = open_file(f, use, d);
    if (!err) err = read_head(f, d);
    if (!err) err = sherd__state_folder(&f->state, state, d);
    if (!err) err = compare_counter(f, use, d);
    if (!err && f->used > f->head.rows) err = damaged(f, "the mark of used rows", d);
    if (err) {
        sherd__maskfile_close(f);
        return err;
    }
    *out = f;
    return SHERD_OK;
}

const sherd__maskfile_head *sherd__maskfile_head_of(const sherd__maskfile *f)
{
    return &f->head;
}

uint64_t sherd__maskfile_left(const sherd__maskfile *f)
{
    return f->head.rows - f->used;
}

void sherd__maskfile_close(sherd__maskfile *f)
{
    if (!f) return;
    if (f->counter >= 0) close(f->counter);
    if (f->fd >= 0) close(f->fd);
    if (f->window) sherd__wipe(f->window, WINDOW);
    if (f->row) sherd__wipe(f->row, sherd__maskfile_stride(&f->head));
    sherd__free(f->row);
    sherd__free(f->window);
    sherd__free(f->path);
    sherd__free(f->state);
    sodium_free(f->root); /* wipes the memory */
    sherd__wipe(f, sizeof *f);
    sherd__free(f);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Reads through the window, since rows are mostly read in sequence. Returns 0 or an errno. */
static int read_through(sherd__maskfile *f, uint64_t at, uint8_t *out, size_t len)
{
    while (len > 0) {
        if (at < f->at || at >= f->at + f->len) {
            uint64_t end = SHERD__MASKFILE_HEAD + f->head.rows * sherd__maskfile_stride(&f->head);
            size_t want = end - at < WINDOW ? (size_t)(end - at) : WINDOW;
            f->len = 0;
            int e = read_at(f, at, f->window, want);
            if (e) return e;
            f->at = at;
            f->len = want;
        }
        size_t from = (size_t)(at - f->at), n = f->len - from < len ? f->len - from : len;
        memcpy(out, f->window + from, n);
        out += n;
        at += n;
        len -= n;
    }
    return 0;
}

/* Loads row i into f->row and checks its tag. The bytes are read only once, so the checked bytes
 * are the ones used. */
static int hold_row(sherd__maskfile *f, uint64_t i, sherd_diag *d)
{
    size_t bytes = sherd__maskfile_row_bytes(&f->head);
    uint8_t tag[SHERD__MASKFILE_TAG];
    char what[48];
    if (!f->row && !(f->row = sherd__alloc(bytes + sizeof tag)))
        return sherd__fail_memory(d, "a row of masks");
    f->held = NONE;
    int e = read_through(f, SHERD__MASKFILE_HEAD + i * sherd__maskfile_stride(&f->head), f->row,
                         bytes + sizeof tag);
    if (e) return fail_file(f, "read it", e, d);
    sherd__maskfile_row_tag(tag, f->tag_key, i, f->row, bytes);
    if (sodium_memcmp(tag, f->row + bytes, sizeof tag) == 0) {
        f->held = i;
        return SHERD_OK;
    }
    snprintf(what, sizeof what, "row %llu", (ull)i);
    return damaged(f, what, d);
}

int sherd__maskfile_read(sherd__maskfile *f, uint64_t row, size_t offset, size_t len, uint8_t *out,
                         sherd_diag *d)
{
    size_t bytes = sherd__maskfile_row_bytes(&f->head);
    if (row >= f->head.rows || offset > bytes || len > bytes - offset)
        return sherd__fail(d, SHERD_EINVAL, NULL, "row %llu of masks: there is no such part",
                           (ull)row);
    int err = f->held == row ? SHERD_OK : hold_row(f, row, d);
    if (!err && len) memcpy(out, f->row + offset, len);
    return err;
}

static int check_rows(sherd__maskfile *f, uint64_t first, uint64_t n, sherd_diag *d)
{
    int err = SHERD_OK;
    uint64_t i = f->checked > first ? f->checked : first;
    for (; i < first + n && !err; i++) err = hold_row(f, i, d);
    if (!err && first + n > f->checked) f->checked = first + n;
    return err;
}

/* Syncs the folder that contains the file, after following links. */
static int sync_folder(const sherd__maskfile *f, sherd_diag *d)
{
    char real[PATH_MAX];
    if (!realpath(f->path, real)) return fail_file(f, "find its folder", errno, d);
    char *slash = strrchr(real, '/');
    slash[slash == real] = '\0';
    return sherd__file_sync_folder(real, d);
}

static int move_mark(sherd__maskfile *f, uint64_t used, sherd_diag *d)
{
    uint8_t mark[SHERD__MARK_BYTES];
    sherd__mark_put(mark, 'M', f->head.id, f->tag_key, used);
    int e = sherd__write_all(f->fd, SHERD__MASKFILE_AT_MARK, mark, sizeof mark);
    if (!e && fsync(f->fd) != 0) e = errno;
    return e ? fail_file(f, "mark rows as used", e, d) : sync_folder(f, d);
}

static int check_left(const sherd__maskfile *f, uint64_t n, sherd_diag *d)
{
    uint64_t left = sherd__maskfile_left(f);
    if (n <= left) return SHERD_OK;
    return sherd__fail(
        d, SHERD_EEXPOSURE, "prepare more with sherd prepare, or multiply fewer rows",
        "%s: %llu rows of masks are left, and the product needs %llu: no row is used twice",
        sherd__path_tail(f->path), (ull)left, (ull)n);
}

int sherd__maskfile_check(sherd__maskfile *f, uint64_t n, sherd_diag *d)
{
    int err = check_left(f, n, d);
    return err ? err : check_rows(f, f->used, n, d);
}

int sherd__maskfile_strike(sherd__maskfile *f, uint64_t n, uint64_t *first, uint8_t mask_key[32],
                           sherd_diag *d)
{
    uint64_t from = f->used;
    if (f->counter < 0)
        return sherd__fail(d, SHERD_EINTERNAL, NULL, "the masks were opened for reading only");
    int err = check_left(f, n, d);
    if (err) return err;
    err = check_rows(f, from, n, d);
    if (err) return err;
    f->used = from + n; /* also if a later step fails */
    err = move_mark(f, f->used, d);
    if (!err)
        err = sherd__counter_move(f->counter, (sherd__counter){ f->state, f->head.id, f->tag_key },
                                  f->used, d);
    if (err) return err;
    sherd__maskfile_mask_key(mask_key, f->root);
    *first = from;
    return SHERD_OK;
}
