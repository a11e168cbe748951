/*
 * Readers of views: one loop per dtype, contiguous or strided, and a blocked transposing copy.
 * Elements are read through unaligned, may-alias types: a mapped file may have data at any address,
 * and these loads cost nothing here and can be vectorised. Callers keep ranges in bounds.
 */
#include "matrix/view.h"

#include <assert.h>
#include <string.h>

#include "matrix/clones.h"

typedef double __attribute__((aligned(1), may_alias)) f64_any;
typedef float __attribute__((aligned(1), may_alias)) f32_any;
typedef uint8_t __attribute__((may_alias)) u8_any;
typedef uint16_t __attribute__((aligned(1), may_alias)) u16_any;
typedef uint32_t __attribute__((aligned(1), may_alias)) u32_any;
typedef int8_t __attribute__((may_alias)) i8_any;
typedef int16_t __attribute__((aligned(1), may_alias)) i16_any;
typedef int32_t __attribute__((aligned(1), may_alias)) i32_any;
typedef int64_t __attribute__((aligned(1), may_alias)) i64_any;

/* Columns and rows of a transposing block: 64 x 64 doubles fit in L1 with their source. */
#define BLOCK 64u

#define DTYPES(XX)                                                                                 \
    XX(SHERD_F64, f64)                                                                             \
    XX(SHERD_F32, f32)                                                                             \
    XX(SHERD_U8, u8)                                                                               \
    XX(SHERD_U16, u16)                                                                             \
    XX(SHERD_U32, u32)                                                                             \
    XX(SHERD_I8, i8)                                                                               \
    XX(SHERD_I16, i16)                                                                             \
    XX(SHERD_I32, i32)                                                                             \
    XX(SHERD_I64, i64)

/* Per dtype: reads n elements `step` apart from p; n elements at given columns; an n x m block. */
#define READERS(dtype, t)                                                                          \
    SHERD__CLONES                                                                                  \
    static void run_##t(const t##_any *p, ptrdiff_t step, size_t n, double *out)                   \
    {                                                                                              \
        if (step == 1)                                                                             \
            for (size_t j = 0; j < n; j++) out[j] = (double)p[j];                                  \
        else                                                                                       \
            for (size_t j = 0; j < n; j++) out[j] = (double)p[(ptrdiff_t)j * step];                \
    }                                                                                              \
    static void gather_##t(const t##_any *p, ptrdiff_t step, const uint32_t *cols, size_t n,       \
                           double *out)                                                            \
    {                                                                                              \
        if (step == 1)                                                                             \
            for (size_t j = 0; j < n; j++) out[j] = (double)p[cols[j]];                            \
        else                                                                                       \
            for (size_t j = 0; j < n; j++) out[j] = (double)p[(ptrdiff_t)cols[j] * step];          \
    }                                                                                              \
    static void block_##t(const t##_any *p, ptrdiff_t row, ptrdiff_t col, size_t n, size_t m,      \
                          double *out, size_t ld)                                                  \
    {                                                                                              \
        for (size_t c = 0; c < m; c++)                                                             \
            for (size_t r = 0; r < n; r++)                                                         \
                out[r * ld + c] = (double)p[(ptrdiff_t)r * row + (ptrdiff_t)c * col];              \
    }
DTYPES(READERS)

static const char *address(const sherd_view *v, size_t r, size_t c)
{
    ptrdiff_t at = (ptrdiff_t)r * v->row_stride + (ptrdiff_t)c * v->col_stride;
    return (const char *)v->data + at * (ptrdiff_t)sherd_dtype_size(v->dtype);
}

void sherd__view_row_f64(sherd_view v, size_t r, size_t c0, size_t n, double *out)
{
    if (n == 0) return;
    assert(r < v.rows && c0 < v.cols && n <= v.cols - c0);
    const char *p = address(&v, r, c0);
    if (v.dtype == SHERD_F64 && v.col_stride == 1) {
        memcpy(out, p, n * sizeof *out);
        return;
    }
    switch (v.dtype) {
#define XX(dtype, t)                                                                               \
    case dtype: run_##t((const t##_any *)(const void *)p, v.col_stride, n, out); return;
        DTYPES(XX)
#undef XX
    }
}

double sherd__view_at(sherd_view v, size_t r, size_t c)
{
    double x = 0.0;
    sherd__view_row_f64(v, r, c, 1, &x);
    return x;
}

void sherd__view_gather_f64(sherd_view v, size_t r, const uint32_t *cols, size_t n, double *out)
{
    if (n == 0) return;
    assert(r < v.rows);
    const char *p = address(&v, r, 0);
    switch (v.dtype) {
#define XX(dtype, t)                                                                               \
    case dtype: gather_##t((const t##_any *)(const void *)p, v.col_stride, cols, n, out); return;
        DTYPES(XX)
#undef XX
    }
}

static void dense_block(const sherd_view *v, size_t r, size_t c, size_t n, size_t m, double *out,
                        size_t ld)
{
    const char *p = address(v, r, c);
    switch (v->dtype) {
#define XX(dtype, t)                                                                               \
    case dtype:                                                                                    \
        block_##t((const t##_any *)(const void *)p, v->row_stride, v->col_stride, n, m, out, ld);  \
        return;
        DTYPES(XX)
#undef XX
    }
}

void sherd__view_dense_f64(sherd_view v, double *out, size_t ld)
{
    assert(ld >= v.cols);
    if (v.rows > 1 && v.col_stride == 1 && v.row_stride == (ptrdiff_t)v.cols && ld == v.cols)
        v = sherd_view_c(v.data, v.dtype, 1, v.rows * v.cols);
    if (v.col_stride == 1 || v.rows == 1) {
        for (size_t r = 0; r < v.rows; r++) sherd__view_row_f64(v, r, 0, v.cols, out + r * ld);
        return;
    }
    for (size_t r = 0; r < v.rows; r += BLOCK) {
        size_t n = v.rows - r < BLOCK ? v.rows - r : BLOCK;
        for (size_t c = 0; c < v.cols; c += BLOCK) {
            size_t m = v.cols - c < BLOCK ? v.cols - c : BLOCK;
            dense_block(&v, r, c, n, m, out + r * ld + c, ld);
        }
    }
}

const double *sherd__view_borrow_f64(sherd_view v, size_t *ld)
{
    if (v.dtype != SHERD_F64 || (uintptr_t)v.data % _Alignof(double) != 0) return NULL;
    if (v.cols > 1 && v.col_stride != 1) return NULL;
    if (v.rows > 1 && (v.row_stride < 0 || (size_t)v.row_stride < v.cols)) return NULL;
    *ld = v.rows > 1 ? (size_t)v.row_stride : v.cols;
    if (*ld == 0) *ld = 1;
    return v.data;
}
