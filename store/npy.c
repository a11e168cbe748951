/*
 * .npy files as matrices: a mapping with a view on it, and a writer that writes rows or tiles to a
 * new file. Views with arbitrary strides are packed through one buffer. The machine is assumed to
 * be little-endian, like numpy's '<' dtypes (checked at compile time).
 */
#include "sherd/npy.h"

#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "store/file.h"
#include "store/npy_header.h"
#include "store/npy_writer.h"
#include "store/pack.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are little endian in memory");

#define STREAM_MAX ((size_t)4 << 30) /* maximum bytes read from a pipe */
#define PACK_BYTES ((size_t)256 << 10)

/* ---- reading --------------------------------------------------------------------------------- */

struct sherd_npy {
    sherd__map map;
    void *copy; /* the values, if they are unaligned in the file; else NULL */
    char *path;
    unsigned ndim;
    sherd_view view;
};

static sherd_view view_of(const sherd__npy_header *h, const void *values)
{
    if (!h->fortran) return sherd_view_c(values, h->dtype, h->rows, h->cols);
    return sherd_view_t(sherd_view_c(values, h->dtype, h->cols, h->rows));
}

static int open_values(sherd_npy *f, sherd_diag *d)
{
    const char *where = sherd__path_tail(f->path);
    sherd__npy_header h;
    int err = sherd__npy_header_parse(&h, f->map.bytes, f->map.len, where, d);
    if (!err) err = sherd__npy_size_check(&h, f->map.len, where, d);
    if (err) return err;
    const void *values = f->map.bytes + h.data_at;
    if ((uintptr_t)values % sherd_dtype_size(h.dtype) != 0) { /* header not written by numpy */
        f->copy = sherd__alloc(h.data_len);
        if (!f->copy) return sherd__fail_memory(d, "%s", where);
        memcpy(f->copy, values, h.data_len);
        values = f->copy;
    }
    f->ndim = h.ndim;
    f->view = view_of(&h, values);
    return SHERD_OK;
}

int sherd_npy_open(sherd_npy **out, const char *path, sherd_diag *d)
{
    *out = NULL;
    sherd_npy *f = sherd__calloc(1, sizeof *f);
    if (!f) return sherd__fail_memory(d, "%s", path);
    f->path = sherd__strdup(path);
    int err = f->path ? sherd__map_open(&f->map, path, STREAM_MAX, d)
                      : sherd__fail_memory(d, "%s", path);
    if (!err) err = open_values(f, d);
    if (err) {
        sherd_npy_close(f);
        return err;
    }
    *out = f;
    return SHERD_OK;
}

sherd_view sherd_npy_view(const sherd_npy *f)
{
    return f->view;
}

unsigned sherd_npy_ndim(const sherd_npy *f)
{
    return f->ndim;
}

int sherd_npy_check(const sherd_npy *f, sherd_diag *d)
{
    return sherd__map_check(&f->map, f->path, d);
}

void sherd_npy_close(sherd_npy *f)
{
    if (!f) return;
    sherd__map_close(&f->map);
    sherd__free(f->copy);
    sherd__free(f->path);
    sherd__free(f);
}

/* ---- writing --------------------------------------------------------------------------------- */

struct sherd_npy_writer {
    sherd__file *file;
    sherd_dtype dtype;
    size_t rows, cols, size; /* size: bytes of an element */
    size_t head_len;
    size_t appended; /* number of rows */
    bool tiled;
    _Alignas(8) uint8_t pack[PACK_BYTES];
};

int sherd__npy_writer_begin(sherd_npy_writer **out, const char *path,
                            const sherd__npy_header *shape, sherd_diag *d)
{
    uint8_t head[SHERD__NPY_HEADER_OUT];
    sherd_dtype dtype = shape->dtype;
    size_t rows = shape->rows, cols = shape->cols, size = sherd_dtype_size(dtype), len;
    *out = NULL;
    if (size == 0)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%s: %d is not a dtype", sherd__path_tail(path),
                           (int)dtype);
    if (!sherd__mul(rows, cols, &len) || !sherd__mul(len, size, &len) || len > PTRDIFF_MAX - 128)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%s: %zu x %zu values do not fit a file",
                           sherd__path_tail(path), rows, cols);
    sherd_npy_writer *w = sherd__alloc(sizeof *w);
    if (!w) return sherd__fail_memory(d, "%s", path);
    w->file = NULL;
    w->dtype = dtype;
    w->rows = rows;
    w->cols = cols;
    w->size = size;
    w->appended = 0;
    w->tiled = false;
    w->head_len = sherd__npy_header_format(head, dtype, shape->ndim, rows,
                                           shape->ndim == 1 ? rows * cols : cols);
    int err = sherd__file_begin(&w->file, path, SHERD__FILE_PUBLIC, d);
    if (!err) err = sherd__file_reserve(w->file, w->head_len + len, d);
    if (!err) err = sherd__file_write(w->file, head, w->head_len, d);
    if (err) {
        sherd_npy_writer_abort(w);
        return err;
    }
    *out = w;
    return SHERD_OK;
}

int sherd_npy_writer_new(sherd_npy_writer **out, const char *path, sherd_dtype dtype, size_t rows,
                         size_t cols, sherd_diag *d)
{
    const sherd__npy_header shape = { .dtype = dtype, .ndim = 2, .rows = rows, .cols = cols };
    return sherd__npy_writer_begin(out, path, &shape, d);
}

/* Destination of streamed bytes: the end of the file, or offset `at`. */
typedef struct target {
    sherd__file *file;
    bool append;
    uint64_t at;
} target;

static int emit(void *ctx, const void *bytes, size_t len, sherd_diag *d)
{
    target *t = ctx;
    if (t->append) return sherd__file_write(t->file, bytes, len, d);
    int err = sherd__file_write_at(t->file, t->at, bytes, len, d);
    t->at += len;
    return err;
}

static int refuse(const sherd_npy_writer *w, sherd_view v, size_t row, size_t col, sherd_diag *d)
{
    const char *name = sherd_dtype_word(v.dtype);
    return sherd__fail(d, SHERD_EINVAL, NULL,
                       "%zu x %zu of %s at (%zu, %zu) does not fit a %zu x %zu file of %s", v.rows,
                       v.cols, name ? name : "no dtype", row, col, w->rows, w->cols,
                       sherd_dtype_word(w->dtype));
}

int sherd_npy_writer_rows(sherd_npy_writer *w, sherd_view v, sherd_diag *d)
{
    if (v.dtype != w->dtype || v.cols != w->cols || v.rows > w->rows - w->appended || w->tiled)
        return refuse(w, v, w->appended, 0, d);
    target t = { .file = w->file, .append = true };
    int err = sherd__view_stream(v, w->pack, sizeof w->pack, emit, &t, d);
    if (!err) w->appended += v.rows;
    return err;
}

int sherd_npy_writer_tile(sherd_npy_writer *w, size_t row, size_t col, sherd_view v, sherd_diag *d)
{
    if (v.dtype != w->dtype || row > w->rows || v.rows > w->rows - row || col > w->cols ||
        v.cols > w->cols - col || w->appended)
        return refuse(w, v, row, col, d);
    w->tiled = true;
    for (size_t r = 0, n; r < v.rows; r += n) { /* whole rows of the file are contiguous */
        n = v.cols == w->cols ? v.rows : 1;
        target t = { .file = w->file,
                     .at = w->head_len + ((uint64_t)(row + r) * w->cols + col) * w->size };
        int err = sherd__view_stream(sherd_view_sub(v, r, n, 0, v.cols), w->pack, sizeof w->pack,
                                     emit, &t, d);
        if (err) return err;
    }
    return SHERD_OK;
}

int sherd__npy_writer_publish(sherd_npy_writer *w, bool *published, sherd_diag *d)
{
    int err = SHERD_OK;
    if (published) *published = false;
    if (w->tiled)
        err = sherd__file_stretch(w->file, w->head_len + (uint64_t)w->rows * w->cols * w->size, d);
    else if (w->appended < w->rows)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "%zu of %zu rows were written", w->appended,
                          w->rows);
    if (!err) {
        err = sherd__file_publish(w->file, published, d);
        w->file = NULL;
    }
    sherd_npy_writer_abort(w);
    return err;
}

int sherd_npy_writer_commit(sherd_npy_writer *w, sherd_diag *d)
{
    return sherd__npy_writer_publish(w, NULL, d);
}

void sherd_npy_writer_abort(sherd_npy_writer *w)
{
    if (!w) return;
    sherd__file_abort(w->file);
    sherd__free(w);
}

int sherd_npy_save(const char *path, sherd_view v, sherd_diag *d)
{
    sherd_npy_writer *w;
    int err = sherd_npy_writer_new(&w, path, v.dtype, v.rows, v.cols, d);
    if (err) return err;
    err = sherd_npy_writer_rows(w, v, d);
    if (err) {
        sherd_npy_writer_abort(w);
        return err;
    }
    return sherd_npy_writer_commit(w, d);
}
