/*
 * Dense matrices in the caller's memory: a borrowed pointer, a dtype and strides. Views own no
 * memory. C order, Fortran order, transposes and sub-matrices are all views.
 */
#ifndef SHERD_MAT_H
#define SHERD_MAT_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sherd_dtype {
    SHERD_F64 = 1,
    SHERD_F32 = 2,
    SHERD_U8 = 3,
    SHERD_U16 = 4,
    SHERD_U32 = 5,
    SHERD_I8 = 6,
    SHERD_I16 = 7,
    SHERD_I32 = 8,
    SHERD_I64 = 9
} sherd_dtype;

/** A borrowed rows x cols matrix; strides are in elements, so a transpose swaps them. Passed by
 *  value: it never grows. */
typedef struct sherd_view {
    const void *data;
    sherd_dtype dtype;
    size_t rows, cols;
    ptrdiff_t row_stride, col_stride;
} sherd_view;

/** Returns the bytes of one element; 0 for a value that is not a dtype. */
SHERD_API size_t sherd_dtype_size(sherd_dtype t);
/** Returns numpy's name for the dtype in files, such as "<f8"; NULL for a value that is not a
 *  dtype. */
SHERD_API const char *sherd_dtype_name(sherd_dtype t);
/** Returns numpy's word for the dtype, such as "float64", for messages; NULL as above. */
SHERD_API const char *sherd_dtype_word(sherd_dtype t);
/** Returns the dtype of that name, spelled as by sherd_dtype_name; 0 if there is none, which every
 *  call refuses in a view (SHERD_EINVAL). */
SHERD_API sherd_dtype sherd_dtype_find(const char *name);
/** Returns a view of a row-major (C order) matrix. */
SHERD_API sherd_view sherd_view_c(const void *data, sherd_dtype dtype, size_t rows, size_t cols);
/** Returns the transpose of v, in the same memory. */
SHERD_API sherd_view sherd_view_t(sherd_view v);
/** Returns rows [r0, r0+rows) and columns [c0, c0+cols) of v; the range must be within v. */
SHERD_API sherd_view sherd_view_sub(sherd_view v, size_t r0, size_t rows, size_t c0, size_t cols);
/** Copies v to row-major doubles, ld >= v.cols. Integers beyond 2^53 are rounded to nearest
 *  even. */
SHERD_API void sherd_view_read(sherd_view v, double *out, size_t ld);

#ifdef __cplusplus
}
#endif

#endif
