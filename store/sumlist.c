/*
 * The list of sums, read whole when it is opened and appended to from then on: one write and one
 * sync for each sum, before anybody is asked for it. Trusts nothing of what it reads but that its
 * owner wrote the file: any other line than these three kinds ends it.
 */
#include "store/sumlist.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/buf.h"
#include "core/diag.h"
#include "store/file.h"

#define NAME "sums"
#define FIRST_LINE "sherd-sums-1\n"
#define KEY_TEXT (2 * SHERD__DIGEST_BYTES)
#define FILE_MAX ((size_t)1 << 30)

typedef struct entry {
    uint64_t step;
    size_t from, len; /* in keys */
} entry;

struct sherd__sumlist {
    char *path;
    int fd;
    uint64_t end;     /* of what is whole in the file */
    sherd_buf steps;  /* of entry, ascending */
    sherd_buf keys;   /* of sherd__digest */
    size_t from, len; /* the last set */
    bool broken;      /* a line may be there in part, or not at all */
};

static int no_memory(sherd_diag *d)
{
    return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for the list of sums");
}

static int fail_file(const sherd__sumlist *s, int err, const char *what, sherd_diag *d)
{
    char text[96];
    return sherd__fail(d, err, NULL, "%s: cannot %s it: %s", sherd__path_tail(s->path), what,
                       strerror_r(errno, text, sizeof text));
}

/* ---- in memory ----------------------------------------------------------------------------- */

static const entry *entries(const sherd__sumlist *s, size_t *len)
{
    *len = s->steps.len / sizeof(entry);
    return (const entry *)(const void *)s->steps.data;
}

static const sherd__digest *keys_at(const sherd__sumlist *s, size_t from)
{
    return (const sherd__digest *)(const void *)s->keys.data + from;
}

static int compare_steps(const void *key, const void *element)
{
    uint64_t a = *(const uint64_t *)key, b = ((const entry *)element)->step;
    return (a > b) - (a < b);
}

const sherd__digest *sherd__sumlist_find(const sherd__sumlist *s, uint64_t step, size_t *len)
{
    size_t all;
    const entry *list = entries(s, &all);
    const entry *e = all ? bsearch(&step, list, all, sizeof *list, compare_steps) : NULL;
    *len = e ? e->len : 0;
    return e ? keys_at(s, e->from) : NULL;
}

static bool above_all(const sherd__sumlist *s, uint64_t step)
{
    size_t len;
    const entry *list = entries(s, &len);
    return len == 0 || step > list[len - 1].step;
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(sherd__digest));
}

/* ---- reading ------------------------------------------------------------------------------- */

/* "over KEY KEY ...": at is behind "over". */
static bool take_keys(sherd__sumlist *s, const char *at, const char *end, int *err)
{
    sherd__digest key;
    size_t from = s->keys.len / sizeof key, len = 0, used;
    for (; at < end && *at == ' '; at += KEY_TEXT + 1, len++) {
        if (end - at < KEY_TEXT + 1 || len == SHERD__SUMLIST_NODES ||
            sodium_hex2bin(key.sha256, sizeof key.sha256, at + 1, KEY_TEXT, NULL, &used, NULL) ||
            used != sizeof key.sha256 ||
            (len && compare_keys(keys_at(s, from + len - 1), &key) >= 0))
            return false;
        *err = sherd__buf_append(&s->keys, &key, sizeof key);
        if (*err) return true;
    }
    s->from = from;
    s->len = len;
    return at == end && len > 0;
}

static bool take_step(sherd__sumlist *s, const char *at, const char *end, int *err)
{
    char *behind;
    if (at == end || *at < '0' || *at > '9' || end - at > 20) return false;
    errno = 0;
    const entry e = { .step = strtoull(at, &behind, 10), .from = s->from, .len = s->len };
    if (errno || behind != end || s->len == 0 || !above_all(s, e.step)) return false;
    *err = sherd__buf_append(&s->steps, &e, sizeof e);
    return true;
}

/* Lines that have their end; what is behind the last one was cut. */
static int parse(sherd__sumlist *s, const char *text, size_t len, sherd_diag *d)
{
    size_t head = strlen(FIRST_LINE), number = 1;
    int err = SHERD_OK;
    bool well = len >= head && memcmp(text, FIRST_LINE, head) == 0;
    s->end = head;
    for (const char *at = text + head, *end; well && !err && s->end < len; at = end + 1) {
        end = memchr(at, '\n', len - (size_t)s->end);
        if (!end) return SHERD_OK;
        number++;
        if (!strncmp(at, "over ", 5)) well = take_keys(s, at + 4, end, &err);
        else if (!strncmp(at, "step ", 5)) well = take_step(s, at + 5, end, &err);
        else well = false;
        s->end += (size_t)(end + 1 - at);
    }
    if (err) return no_memory(d);
    if (well) return SHERD_OK;
    return sherd__fail(d, SHERD_EFORMAT, "take the folder from a backup, or begin anew",
                       "%s:%zu: is no line of a list of sums", sherd__path_tail(s->path), number);
}

static int read_list(sherd__sumlist *s, sherd_diag *d)
{
    uint8_t *bytes;
    size_t len;
    if (access(s->path, F_OK) != 0 && errno == ENOENT)
        return sherd__fail(d, SHERD_EFORMAT, "take the whole folder, or begin anew",
                           "%s: is not there, so nobody knows over which nodes the steps behind "
                           "the last checkpoint were", sherd__path_tail(s->path));
    int err = sherd__file_read_small(&bytes, &len, s->path, FILE_MAX, d);
    if (err) return err;
    err = parse(s, (const char *)bytes, len, d);
    sherd__free(bytes);
    return err;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int begin_list(sherd__sumlist *s, const char *folder, sherd_diag *d)
{
    sherd__file *f;
    int err = sherd__file_begin(&f, s->path, SHERD__FILE_PRIVATE, d);
    if (err) return err;
    s->end = strlen(FIRST_LINE);
    err = sherd__file_write(f, FIRST_LINE, s->end, d);
    if (err) {
        sherd__file_abort(f);
        return err;
    }
    err = sherd__file_commit(f, d);
    return err ? err : sherd__file_sync_folder(folder, d);
}

int sherd__sumlist_open(sherd__sumlist **out, const char *folder, bool fresh, sherd_diag *d)
{
    size_t size = strlen(folder) + 1 + sizeof NAME;
    *out = NULL;
    sherd__sumlist *s = sherd__calloc(1, sizeof *s);
    if (!s) return no_memory(d);
    s->fd = -1;
    sherd__buf_init(&s->steps, FILE_MAX, 0);
    sherd__buf_init(&s->keys, FILE_MAX, 0);
    s->path = sherd__alloc(size);
    if (!s->path) {
        sherd__sumlist_close(s);
        return no_memory(d);
    }
    snprintf(s->path, size, "%s/" NAME, folder);
    int err = fresh ? begin_list(s, folder, d) : read_list(s, d);
    if (!err) {
        s->fd = open(s->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
        if (s->fd < 0) err = fail_file(s, SHERD_EOPEN, "add to", d);
    }
    if (!err && ftruncate(s->fd, (off_t)s->end) != 0) err = fail_file(s, SHERD_EIO, "mend", d);
    if (err) sherd__sumlist_close(s);
    else *out = s;
    return err;
}

void sherd__sumlist_close(sherd__sumlist *s)
{
    if (!s) return;
    if (s->fd >= 0) close(s->fd);
    sherd__buf_fini(&s->steps);
    sherd__buf_fini(&s->keys);
    sherd__free(s->path);
    sherd__free(s);
}

/* ---- adding -------------------------------------------------------------------------------- */

/* Lines for this step over these keys; those of a set that is the last one are there. */
static int print_lines(sherd_buf *text, uint64_t step, const sherd__digest *keys, size_t len,
                       bool same)
{
    char word[KEY_TEXT + 2] = " ";
    int err = same ? SHERD_OK : sherd__buf_append(text, "over", 4);
    for (size_t i = 0; i < len && !same && !err; i++) {
        sodium_bin2hex(word + 1, sizeof word - 1, keys[i].sha256, sizeof keys[i].sha256);
        err = sherd__buf_append(text, word, KEY_TEXT + 1);
    }
    int n = snprintf(word, sizeof word, "%sstep %" PRIu64 "\n", same ? "" : "\n", step);
    return err ? err : sherd__buf_append(text, word, (size_t)n);
}

static int append(sherd__sumlist *s, uint64_t step, const sherd__digest *keys, size_t len,
                  sherd_diag *d)
{
    sherd_buf text;
    bool same = len == s->len && memcmp(keys_at(s, s->from), keys, len * sizeof *keys) == 0;
    sherd__buf_init(&text, FILE_MAX, 0);
    int err = print_lines(&text, step, keys, len, same);
    if (!err && !same) {
        s->from = s->keys.len / sizeof *keys;
        s->len = 0;
        err = sherd__buf_append(&s->keys, keys, len * sizeof *keys);
        if (!err) s->len = len;
    }
    const entry e = { step, s->from, len };
    if (!err) err = sherd__buf_append(&s->steps, &e, sizeof e);
    if (err) {
        err = no_memory(d);
        s->broken = true; /* the last set may not be in the file */
    } else {
        errno = sherd__write_all(s->fd, (int64_t)s->end, text.data, text.len);
        s->broken = errno || fsync(s->fd) != 0;
        if (s->broken) err = fail_file(s, SHERD_EIO, "write", d);
        s->end += text.len;
    }
    sherd__buf_fini(&text);
    return err;
}

int sherd__sumlist_add(sherd__sumlist *s, uint64_t step, const sherd__digest *who, size_t len,
                    sherd_diag *d)
{
    size_t had;
    if (s->broken)
        return sherd__fail(d, SHERD_EIO, NULL, "%s: could not be written",
                           sherd__path_tail(s->path));
    if (len == 0 || len > SHERD__SUMLIST_NODES)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a sum over %zu nodes", len);
    sherd__digest *keys = sherd__alloc(len * sizeof *keys);
    if (!keys) return no_memory(d);
    memcpy(keys, who, len * sizeof *keys);
    qsort(keys, len, sizeof *keys, compare_keys);
    const sherd__digest *before = sherd__sumlist_find(s, step, &had);
    int err = SHERD_OK;
    if (before ? had != len || memcmp(before, keys, len * sizeof *keys) != 0 : !above_all(s, step))
        err = sherd__fail(d, SHERD_EINVAL, NULL, "step %" PRIu64 " has had a sum over %zu other "
                          "nodes", step, had);
    else if (!before)
        err = append(s, step, keys, len, d);
    sherd__free(keys);
    return err;
}
