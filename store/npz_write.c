/*
 * Writes .npz through libzip into the atomic file of store/file.h. libzip pulls the data: in
 * zip_close it reads every member from a source defined here, which fills whole rows into a buffer.
 * It writes the archive to another such source, the sink, which combines libzip's 8 KiB pieces into
 * larger ones. Only one buffer of rows is held in memory. The archive contains no times, so that
 * equal contents give equal files.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zip.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "store/file.h"
#include "store/npz.h"

#define SINK_BYTES ((size_t)1 << 20)
#define ROWS_BYTES ((size_t)256 << 10)

typedef struct member {
    struct member *next;
    sherd__npz_writer *w;
    sherd__npz_source source;
    const uint8_t *values; /* of sherd__npz_writer_add_values */
    uint8_t head[SHERD__NPY_HEADER_OUT];
    size_t head_len, rows, row_bytes;
    uint64_t size;
    /* used while libzip reads the member */
    uint64_t at;            /* bytes returned so far */
    uint8_t *buffer;        /* of rows */
    size_t row, from, have; /* next row to fill; unread part of the buffer */
    zip_error_t error;
} member;

struct sherd__npz_writer {
    sherd__file *file;
    char *path;
    zip_t *zip;
    member *first, **last;
    bool reserved;
    int err; /* error of a callback, with its message in diag */
    sherd_diag diag;
    /* the sink */
    uint8_t *sink;
    uint64_t sink_at, size; /* file offset of sink[0]; end of the file */
    size_t sink_len;
    zip_error_t error;
};

/* ---- a member, read by libzip ---------------------------------------------------------------- */

static int note(sherd__npz_writer *w, int err)
{
    if (!w->err) w->err = err;
    return err;
}

static int refill(member *m)
{
    size_t rows = m->row_bytes >= ROWS_BYTES ? 1 : ROWS_BYTES / m->row_bytes;
    if (rows > m->rows - m->row) rows = m->rows - m->row;
    int err = m->source.fill(m->source.ctx, m->row, rows, m->buffer, &m->w->diag);
    if (err) return note(m->w, err);
    m->row += rows;
    m->from = 0;
    m->have = rows * m->row_bytes;
    return SHERD_OK;
}

static zip_int64_t member_read(member *m, uint8_t *out, uint64_t len)
{
    uint64_t done = 0;
    while (done < len && m->at < m->size) {
        const uint8_t *src = m->buffer + m->from;
        size_t n = m->have - m->from;
        if (m->at < m->head_len) {
            src = m->head + m->at;
            n = m->head_len - (size_t)m->at;
        } else if (n == 0) {
            if (refill(m)) return -1;
            continue;
        }
        if (n > len - done) n = (size_t)(len - done);
        memcpy(out + done, src, n);
        if (m->at >= m->head_len) m->from += n;
        m->at += n;
        done += n;
    }
    return (zip_int64_t)done;
}

static zip_int64_t member_open(member *m)
{
    m->at = 0;
    m->row = m->from = m->have = 0;
    if (m->buffer || m->size == m->head_len) return 0;
    m->buffer = sherd__alloc(m->row_bytes > ROWS_BYTES ? m->row_bytes : ROWS_BYTES);
    if (m->buffer) return 0;
    note(m->w, sherd__fail_memory(&m->w->diag, "a member of an archive"));
    zip_error_set(&m->error, ZIP_ER_MEMORY, 0);
    return -1;
}

static void member_close(member *m)
{
    if (m->buffer) sherd__wipe(m->buffer, m->row_bytes > ROWS_BYTES ? m->row_bytes : ROWS_BYTES);
    sherd__free(m->buffer);
    m->buffer = NULL;
}

static zip_int64_t member_source(void *ctx, void *data, zip_uint64_t len, zip_source_cmd_t cmd)
{
    member *m = ctx;
    switch (cmd) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                              ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
                                              -1);
    case ZIP_SOURCE_OPEN: return member_open(m);
    case ZIP_SOURCE_READ: return member_read(m, data, len);
    case ZIP_SOURCE_CLOSE: member_close(m); return 0;
    case ZIP_SOURCE_STAT: {
        zip_stat_t *st = data;
        if (len < sizeof *st) return -1;
        zip_stat_init(st);
        st->size = m->size;
        st->valid |= ZIP_STAT_SIZE;
        return sizeof *st;
    }
    case ZIP_SOURCE_ERROR: return zip_error_to_data(&m->error, data, len);
    case ZIP_SOURCE_FREE: return 0; /* the writer frees it */
    default: zip_error_set(&m->error, ZIP_ER_OPNOTSUPP, 0); return -1;
    }
}

/* ---- the sink, written by libzip ------------------------------------------------------------- */

static int sink_flush(sherd__npz_writer *w)
{
    if (w->sink_len == 0) return SHERD_OK;
    int err = sherd__file_write_at(w->file, w->sink_at, w->sink, w->sink_len, &w->diag);
    if (err) return note(w, err);
    w->sink_at += w->sink_len;
    w->sink_len = 0;
    return SHERD_OK;
}

static zip_int64_t sink_write(sherd__npz_writer *w, const uint8_t *in, uint64_t len)
{
    for (uint64_t done = 0; done < len;) {
        size_t n = SINK_BYTES - w->sink_len;
        if (n == 0) {
            if (sink_flush(w)) return -1;
            continue;
        }
        if (n > len - done) n = (size_t)(len - done);
        memcpy(w->sink + w->sink_len, in + done, n);
        w->sink_len += n;
        done += n;
    }
    if (w->sink_at + w->sink_len > w->size) w->size = w->sink_at + w->sink_len;
    return (zip_int64_t)len;
}

static zip_int64_t sink_seek(sherd__npz_writer *w, void *data, zip_uint64_t len)
{
    uint64_t here = w->sink_at + w->sink_len;
    zip_int64_t to = zip_source_seek_compute_offset(here, w->size, data, len, &w->error);
    if (to < 0) return -1;
    if ((uint64_t)to == here) return 0;
    if (sink_flush(w)) return -1;
    w->sink_at = (uint64_t)to;
    return 0;
}

static zip_int64_t sink_source(void *ctx, void *data, zip_uint64_t len, zip_source_cmd_t cmd)
{
    sherd__npz_writer *w = ctx;
    switch (cmd) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                              ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
                                              ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
                                              ZIP_SOURCE_BEGIN_WRITE, ZIP_SOURCE_COMMIT_WRITE,
                                              ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_WRITE,
                                              ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE,
                                              ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_STAT: { /* the file is empty at first */
        zip_stat_t *st = data;
        if (len < sizeof *st) return -1;
        zip_stat_init(st);
        st->size = 0;
        st->valid |= ZIP_STAT_SIZE;
        return sizeof *st;
    }
    case ZIP_SOURCE_ERROR: return zip_error_to_data(&w->error, data, len);
    case ZIP_SOURCE_WRITE: return sink_write(w, data, len);
    case ZIP_SOURCE_SEEK_WRITE: return sink_seek(w, data, len);
    case ZIP_SOURCE_TELL_WRITE: return (zip_int64_t)(w->sink_at + w->sink_len);
    case ZIP_SOURCE_COMMIT_WRITE: return sink_flush(w) ? -1 : 0;
    case ZIP_SOURCE_OPEN:
    case ZIP_SOURCE_READ:
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_SEEK:
    case ZIP_SOURCE_TELL:
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_REMOVE:
    case ZIP_SOURCE_FREE: return 0;
    default: zip_error_set(&w->error, ZIP_ER_OPNOTSUPP, 0); return -1;
    }
}

/* ---- the writer ------------------------------------------------------------------------------ */

static int no_memory(const sherd__npz_writer *w, sherd_diag *d)
{
    return sherd__fail_memory(d, "%s", sherd__path_tail(w->path));
}

static int open_sink(sherd__npz_writer *w, sherd_diag *d)
{
    zip_error_t e;
    struct stat st;
    /* A pipe is not opened: opening waits for a reader, which could not be served. */
    bool pipe = stat(w->path, &st) == 0 && S_ISFIFO(st.st_mode);
    int err = pipe ? 0 : sherd__file_begin(&w->file, w->path, SHERD__FILE_PRIVATE, d);
    if (err) return err;
    if (pipe || sherd__file_fd(w->file) < 0)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "write to a regular file",
                           "%s: an .npz cannot be written to a pipe or device",
                           sherd__path_tail(w->path));
    w->sink = sherd__alloc(SINK_BYTES);
    if (!w->sink) return no_memory(w, d);
    zip_error_init(&e);
    zip_source_t *src = zip_source_function_create(sink_source, w, &e);
    w->zip = src ? zip_open_from_source(src, ZIP_CREATE | ZIP_TRUNCATE, &e) : NULL;
    if (!w->zip && src) zip_source_free(src);
    zip_error_fini(&e);
    return w->zip ? SHERD_OK : no_memory(w, d);
}

int sherd__npz_writer_new(sherd__npz_writer **out, const char *path, sherd_diag *d)
{
    *out = NULL;
    sherd__npz_writer *w = sherd__calloc(1, sizeof *w);
    if (!w) return sherd__fail_memory(d, "%s", path);
    w->last = &w->first;
    zip_error_init(&w->error);
    w->path = sherd__strdup(path);
    int err = w->path ? open_sink(w, d) : sherd__fail_memory(d, "%s", path);
    if (err) {
        sherd__npz_writer_abort(w);
        return err;
    }
    *out = w;
    return SHERD_OK;
}

/* Adds the archive's entry for m, which the writer already owns. */
static int enter(sherd__npz_writer *w, const char *file, member *m, bool deflate, sherd_diag *d)
{
    zip_source_t *src = zip_source_function(w->zip, member_source, m);
    zip_int64_t i = src ? zip_file_add(w->zip, file, src, 0) : -1;
    if (i < 0) {
        if (src) zip_source_free(src);
        if (zip_error_code_zip(zip_get_error(w->zip)) == ZIP_ER_EXISTS)
            return sherd__fail(d, SHERD_EINVAL, NULL, "%s: %s is added twice",
                               sherd__path_tail(w->path), file);
        return no_memory(w, d);
    }
    zip_int32_t method = deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    if (zip_set_file_compression(w->zip, (zip_uint64_t)i, method, 1) != 0 ||
        zip_file_set_dostime(w->zip, (zip_uint64_t)i, 0, 0x21, 0) != 0) /* 1980-01-01 */
        return no_memory(w, d);
    return SHERD_OK;
}

static bool writable_name(const char *name)
{
    size_t len = strlen(name), dots = 0;
    for (const char *p = name; *p; p++) {
        if (*p == '.' && p > name && p[1] && !dots++) continue;
        if (dots ? *p < 'a' || *p > 'z' : !isalnum((unsigned char)*p) && *p != '_') return false;
    }
    return len > 0 && len + sizeof ".npy" <= SHERD__NPZ_NAME_SIZE;
}

static int add(sherd__npz_writer *w, const sherd__npz_array *a, bool deflate, member **out,
               sherd_diag *d)
{
    char file[SHERD__NPZ_NAME_SIZE + 8];
    size_t row_bytes, total;
    if (!writable_name(a->name) || !sherd__mul(a->cols, sherd_dtype_size(a->dtype), &row_bytes) ||
        !sherd__mul(a->rows, row_bytes, &total) || total > INT64_MAX - SHERD__NPY_HEADER_OUT)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "%s: no member \"%.60s\" of %zu x %zu can be written",
                           sherd__path_tail(w->path), a->name, a->rows, a->cols);
    member *m = sherd__calloc(1, sizeof *m);
    if (!m) return no_memory(w, d);
    *w->last = m;
    w->last = &m->next;
    m->w = w;
    m->rows = a->rows;
    m->row_bytes = row_bytes;
    m->head_len = sherd__npy_header_format(m->head, a->dtype, a->ndim, a->rows, a->cols);
    m->size = m->head_len + total;
    zip_error_init(&m->error);
    snprintf(file, sizeof file, "%s.npy", a->name);
    *out = m;
    return enter(w, file, m, deflate, d);
}

int sherd__npz_writer_add(sherd__npz_writer *w, const sherd__npz_array *a, bool deflate,
                          sherd__npz_source source, sherd_diag *d)
{
    member *m;
    int err = add(w, a, deflate, &m, d);
    if (!err) m->source = source;
    return err;
}

static int fill_values(void *ctx, size_t row, size_t rows, void *out, sherd_diag *d)
{
    const member *m = ctx;
    (void)d;
    memcpy(out, m->values + row * m->row_bytes, rows * m->row_bytes);
    return SHERD_OK;
}

int sherd__npz_writer_add_values(sherd__npz_writer *w, const sherd__npz_array *a, bool deflate,
                                 const void *values, sherd_diag *d)
{
    member *m;
    int err = add(w, a, deflate, &m, d);
    if (err) return err;
    m->values = values;
    m->source = (sherd__npz_source){ fill_values, m };
    return SHERD_OK;
}

static int fail_close(sherd__npz_writer *w, sherd_diag *d)
{
    if (w->err) return sherd__fail(d, w->err, w->diag.hint, "%s", w->diag.message);
    zip_error_t *e = zip_get_error(w->zip);
    if (zip_error_code_zip(e) == ZIP_ER_MEMORY) return no_memory(w, d);
    return sherd__fail(d, SHERD_EIO, NULL, "%s: cannot write the archive: %s",
                       sherd__path_tail(w->path), zip_error_strerror(e));
}

int sherd__npz_writer_reserve(sherd__npz_writer *w, uint64_t bytes, sherd_diag *d)
{
    w->reserved = true;
    return sherd__file_reserve(w->file, bytes, d);
}

int sherd__npz_writer_commit(sherd__npz_writer *w, uint64_t *size, sherd_diag *d)
{
    int err = SHERD_OK;
    if (zip_close(w->zip) == 0) w->zip = NULL;
    else err = fail_close(w, d);
    if (!err && w->reserved) err = sherd__file_cut(w->file, w->size, d);
    if (!err) {
        if (size) *size = w->size;
        err = sherd__file_commit(w->file, d);
        w->file = NULL;
    }
    sherd__npz_writer_abort(w);
    return err;
}

void sherd__npz_writer_abort(sherd__npz_writer *w)
{
    if (!w) return;
    if (w->zip) zip_discard(w->zip);
    sherd__file_abort(w->file);
    while (w->first) {
        member *next = w->first->next;
        member_close(w->first);
        zip_error_fini(&w->first->error);
        sherd__free(w->first);
        w->first = next;
    }
    if (w->sink) sherd__wipe(w->sink, SINK_BYTES);
    zip_error_fini(&w->error);
    sherd__free(w->sink);
    sherd__free(w->path);
    sherd__free(w);
}
