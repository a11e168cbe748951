/*
 * Dtypes and views: arithmetic on descriptions only; no element is accessed. The caller must
 * respect ranges (sherd_view_sub asserts them: views are made by code of this project from checked
 * shapes).
 */
#include "sherd/mat.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/view.h"

static const struct {
    size_t size;
    const char *name, *word;
} dtypes[] = {
    [SHERD_F64] = { 8, "<f8", "float64" }, [SHERD_F32] = { 4, "<f4", "float32" },
    [SHERD_U8] = { 1, "|u1", "uint8" },    [SHERD_U16] = { 2, "<u2", "uint16" },
    [SHERD_U32] = { 4, "<u4", "uint32" },  [SHERD_I8] = { 1, "|i1", "int8" },
    [SHERD_I16] = { 2, "<i2", "int16" },   [SHERD_I32] = { 4, "<i4", "int32" },
    [SHERD_I64] = { 8, "<i8", "int64" },
};

static int known(sherd_dtype t)
{
    return (unsigned)t < sizeof dtypes / sizeof *dtypes && dtypes[t].size != 0;
}

size_t sherd_dtype_size(sherd_dtype t)
{
    return known(t) ? dtypes[t].size : 0;
}

const char *sherd_dtype_name(sherd_dtype t)
{
    return known(t) ? dtypes[t].name : NULL;
}

const char *sherd_dtype_word(sherd_dtype t)
{
    return known(t) ? dtypes[t].word : NULL;
}

sherd_dtype sherd_dtype_find(const char *name)
{
    for (unsigned t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        if (dtypes[t].name && strcmp(dtypes[t].name, name) == 0) return (sherd_dtype)t;
    return (sherd_dtype)0;
}

sherd_view sherd_view_c(const void *data, sherd_dtype dtype, size_t rows, size_t cols)
{
    return (sherd_view){ .data = data,
                         .dtype = dtype,
                         .rows = rows,
                         .cols = cols,
                         .row_stride = (ptrdiff_t)cols,
                         .col_stride = 1 };
}

sherd_view sherd_view_t(sherd_view v)
{
    sherd_view t = v;
    t.rows = v.cols;
    t.cols = v.rows;
    t.row_stride = v.col_stride;
    t.col_stride = v.row_stride;
    return t;
}

sherd_view sherd_view_sub(sherd_view v, size_t r0, size_t rows, size_t c0, size_t cols)
{
    assert(r0 <= v.rows && rows <= v.rows - r0 && c0 <= v.cols && cols <= v.cols - c0);
    sherd_view s = v;
    s.rows = rows;
    s.cols = cols;
    /* An empty part may start beyond the last element; it keeps the old base. */
    if (rows != 0 && cols != 0) {
        ptrdiff_t at = (ptrdiff_t)r0 * v.row_stride + (ptrdiff_t)c0 * v.col_stride;
        s.data = (const char *)v.data + at * (ptrdiff_t)sherd_dtype_size(v.dtype);
    }
    return s;
}

/* Adds |stride| * (n - 1) * size to *span; returns nonzero if the result exceeds ptrdiff_t. */
static int add_extent(size_t n, ptrdiff_t stride, size_t size, ptrdiff_t *span)
{
    ptrdiff_t reach;
    if (n < 2) return 0;
    if (n - 1 > PTRDIFF_MAX || stride == PTRDIFF_MIN) return 1;
    ptrdiff_t step = stride < 0 ? -stride : stride;
    return __builtin_mul_overflow((ptrdiff_t)(n - 1), step, &reach) ||
           __builtin_mul_overflow(reach, (ptrdiff_t)size, &reach) ||
           __builtin_add_overflow(*span, reach, span);
}

int sherd__view_check(sherd_view v, const char *name, sherd_diag *d)
{
    size_t size = sherd_dtype_size(v.dtype);
    ptrdiff_t span = (ptrdiff_t)size;
    if (size == 0)
        return sherd__fail(d, SHERD_EINVAL, "convert it: .astype('float64') in numpy",
                           "%s: dtype %d is not an element type; " SHERD__DTYPES_READ " are read",
                           name, (int)v.dtype);
    bool empty = v.rows == 0 || v.cols == 0;
    if (!empty && !v.data)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%s: %zu x %zu elements, but no data", name,
                           v.rows, v.cols);
    if (!empty && (add_extent(v.rows, v.row_stride, size, &span) ||
                   add_extent(v.cols, v.col_stride, size, &span)))
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "%s: %zu x %zu elements with strides %td and %td exceed the address "
                           "space",
                           name, v.rows, v.cols, v.row_stride, v.col_stride);
    if (!sherd__shape_ok(v.rows, v.cols))
        return sherd__fail(d, SHERD_ESHAPE, "cut the matrix",
                           "%s is %zu x %zu: a dimension is " SHERD__DIMENSION_LIMITS, name, v.rows,
                           v.cols);
    return SHERD_OK;
}

/* Bytes from `from` to before `to`. */
typedef struct range {
    uintptr_t from, to;
} range;

static bool meet(range x, range y)
{
    return x.from < y.to && y.from < x.to;
}

/* Adds the elements from the first to the last of n to a range that holds one. */
static void stretch(range *r, size_t n, ptrdiff_t stride, size_t size)
{
    if (stride < 0) r->from -= (n - 1) * (size_t)-stride * size;
    else r->to += (n - 1) * (size_t)stride * size;
}

int sherd__view_apart(sherd_view v, const char *name, const sherd__result *c, sherd_diag *d)
{
    size_t size = sherd_dtype_size(v.dtype), pitch, len;
    uintptr_t at = (uintptr_t)v.data, out = (uintptr_t)c->at;
    if (v.rows == 0 || v.cols == 0 || c->rows == 0 || c->cols == 0) return SHERD_OK;
    if (c->ldc < c->cols || !sherd__mul(c->ldc, sizeof *c->at, &pitch) ||
        !sherd__mul(c->rows - 1, pitch, &len) || !sherd__add(len, c->cols * sizeof *c->at, &len))
        return SHERD_OK; /* there is no such memory: the shape is refused elsewhere */
    range all = { at, at + size }, row = all;
    stretch(&all, v.rows, v.row_stride, size);
    stretch(&all, v.cols, v.col_stride, size);
    if (!meet(all, (range){ out, out + len })) return SHERD_OK;
    bool by_rows = (size_t)v.row_stride * size == pitch;
    if (by_rows || (size_t)v.col_stride * size == pitch) { /* both are cut from rows of `pitch` */
        if (by_rows) stretch(&row, v.cols, v.col_stride, size);
        else stretch(&row, v.rows, v.row_stride, size);
        uintptr_t offset = (row.from - out) % pitch, width = row.to - row.from;
        if (row.from < out) offset = (pitch - (out - row.from) % pitch) % pitch;
        if (offset >= c->cols * sizeof *c->at && offset + width <= pitch) return SHERD_OK;
    }
    return sherd__fail(d, SHERD_EINVAL, "give the result memory of its own",
                       "the result overlaps %s, which is read while the result is written", name);
}

void sherd_view_read(sherd_view v, double *out, size_t ld)
{
    sherd__view_dense_f64(v, out, ld);
}
