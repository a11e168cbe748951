/*
 * Packs strided views. There is one loop per element size, since values are only moved. The inner
 * loop follows the smaller stride, so that a Fortran-order matrix is read along its columns, in
 * blocks that stay in the cache.
 */
#include "store/pack.h"

#include <string.h>

#define PIECE_MAX ((size_t)1 << 30)

bool sherd__view_packed(sherd_view v)
{
    if (v.rows == 0 || v.cols == 0) return true;
    return (v.cols == 1 || v.col_stride == 1) && (v.rows == 1 || v.row_stride == (ptrdiff_t)v.cols);
}

/* Values of any type are moved as words of their size. */
typedef uint8_t __attribute__((may_alias)) word1;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

#define PACK(type)                                                                                 \
    static void pack_##type(type *out, const type *in, const sherd_view *v)                        \
    {                                                                                              \
        ptrdiff_t rs = v->row_stride, cs = v->col_stride;                                          \
        ptrdiff_t rows = (ptrdiff_t)v->rows, cols = (ptrdiff_t)v->cols;                            \
        if ((rs < 0 ? -rs : rs) >= (cs < 0 ? -cs : cs)) {                                          \
            for (ptrdiff_t r = 0; r < rows; r++)                                                   \
                for (ptrdiff_t c = 0; c < cols; c++) out[r * cols + c] = in[r * rs + c * cs];      \
        } else {                                                                                   \
            for (ptrdiff_t c = 0; c < cols; c++)                                                   \
                for (ptrdiff_t r = 0; r < rows; r++) out[r * cols + c] = in[r * rs + c * cs];      \
        }                                                                                          \
    }

PACK(word1)
PACK(word2)
PACK(word4)
PACK(word8)

void sherd__view_pack(void *out, sherd_view v)
{
    size_t size = sherd_dtype_size(v.dtype);
    if (v.rows == 0 || v.cols == 0) return;
    if (sherd__view_packed(v)) {
        memcpy(out, v.data, v.rows * v.cols * size);
        return;
    }
    switch (size) {
    case 1: pack_word1(out, v.data, &v); break;
    case 2: pack_word2(out, v.data, &v); break;
    case 4: pack_word4(out, v.data, &v); break;
    default: pack_word8(out, v.data, &v); break;
    }
}

static int stream_packed(sherd_view v, size_t size, sherd__pack_sink sink, void *ctx, sherd_diag *d)
{
    const uint8_t *at = v.data;
    size_t len = v.rows * v.cols * size;
    for (size_t n; len > 0; at += n, len -= n) {
        n = len < PIECE_MAX ? len : PIECE_MAX;
        int err = sink(ctx, at, n, d);
        if (err) return err;
    }
    return SHERD_OK;
}

int sherd__view_stream(sherd_view v, void *buf, size_t buf_len, sherd__pack_sink sink, void *ctx,
                       sherd_diag *d)
{
    size_t size = sherd_dtype_size(v.dtype);
    if (v.rows == 0 || v.cols == 0) return SHERD_OK;
    if (sherd__view_packed(v)) return stream_packed(v, size, sink, ctx, d);
    size_t cap = buf_len / size; /* number of values */
    size_t rows_max = v.cols <= cap ? cap / v.cols : 1;
    size_t cols_max = v.cols <= cap ? v.cols : cap;
    for (size_t r = 0, n; r < v.rows; r += n) {
        n = v.rows - r < rows_max ? v.rows - r : rows_max;
        for (size_t c = 0, m; c < v.cols; c += m) {
            m = v.cols - c < cols_max ? v.cols - c : cols_max;
            sherd__view_pack(buf, sherd_view_sub(v, r, n, c, m));
            int err = sink(ctx, buf, n * m * size, d);
            if (err) return err;
        }
    }
    return SHERD_OK;
}
