/*
 * Readers of a sherd_view: the only code that handles dtypes and strides. All other code sees rows
 * of f64. u8, i8, u16, i16, u32, i32 and f32 are converted exactly; an i64 beyond 2^53 is rounded
 * to nearest even (sherd__view_scan reports it in `inexact`). The functions only read, do not
 * allocate, and may be called from several threads.
 */
#ifndef MATRIX_VIEW_H
#define MATRIX_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/hooks.h"
#include "sherd/mat.h"

/** For messages: the element types that are read. */
#define SHERD__DTYPES_READ "float32, float64, int8 to int64 and uint8 to uint32"

/** Where a result is written: rows x cols doubles, row-major. */
typedef struct sherd__result {
    const double *at;
    size_t rows, cols, ldc;
} sherd__result;

/** Checks that the dtype is known, that there is data unless v is empty, that offsets fit in
 *  ptrdiff_t (SHERD_EINVAL otherwise), and that the shape is allowed (sherd__shape_ok; SHERD_ESHAPE
 *  otherwise). `name` is used in the message ("A"). */
int sherd__view_check(sherd_view v, const char *name, sherd_diag *d) SHERD_MUST;

/** Checks that a result, rows x cols doubles with ldc >= cols, shares no element with v
 *  (SHERD_EINVAL otherwise): a result is written while operands are still read. A result between
 *  the columns of v, in rows of the same length, is allowed. v has passed sherd__view_check. */
int sherd__view_apart(sherd_view v, const char *name, const sherd__result *c,
                      sherd_diag *d) SHERD_MUST;

/** Returns element (r, c), which must be within v. */
double sherd__view_at(sherd_view v, size_t r, size_t c);
/** Returns element (r, c) of a view of i64, without rounding. */
static inline int64_t sherd__view_i64(sherd_view v, size_t r, size_t c)
{
    int64_t x;
    ptrdiff_t at = (ptrdiff_t)r * v.row_stride + (ptrdiff_t)c * v.col_stride;
    __builtin_memcpy(&x, (const char *)v.data + at * (ptrdiff_t)sizeof x, sizeof x);
    return x;
}
/** Reads out[j] = v(r, c0 + j) for j < n; the range must be within v. */
void sherd__view_row_f64(sherd_view v, size_t r, size_t c0, size_t n, double *out);
/** Reads out[j] = v(r, cols[j]) for j < n; cols may repeat. */
void sherd__view_gather_f64(sherd_view v, size_t r, const uint32_t *cols, size_t n, double *out);
/** Reads all of v as row-major f64, ld >= cols, in blocks, so that Fortran order costs no more. */
void sherd__view_dense_f64(sherd_view v, double *out, size_t ld);
/** Returns v's own memory if it is row-major f64 (*ld = its leading dimension), else NULL. */
const double *sherd__view_borrow_f64(sherd_view v, size_t *ld);

/** Results of one pass over a matrix. */
typedef struct sherd__scan {
    double min_abs, max_abs; /* over finite values; 0 and 0 if there are none */
    uint64_t nonzeros;       /* NaN and infinities included */
    uint64_t nonfinite;      /* number of NaN and infinities */
    size_t bad_row, bad_col; /* the first of them in row order, if any */
    double bad_value;
    bool integers; /* every value is finite and whole */
    bool inexact;  /* some i64 is not a double: max_abs is of the rounded value */
} sherd__scan;

void sherd__view_scan(sherd_view v, sherd__scan *out);
/** Does the same, and returns SHERD_EINTERRUPTED if a hook says so; *out is then undefined. */
int sherd__view_scan_asking(sherd_view v, sherd__scan *out, const sherd_hooks *hooks) SHERD_MUST;
/** Computes max |v|; 0 if v is empty. Returns false if an element is NaN or infinite; *max_abs is
 *  then undefined. Takes a fraction of the time of a scan. */
bool sherd__view_peak(sherd_view v, double *max_abs);
/** Returns the bits of max |x| over n numbers, 0 if n is 0; the bits of a NaN are above those of
 *  infinity. The time does not depend on the numbers. */
uint64_t sherd__peak_bits(const double *x, size_t n);
/** Returns sherd__scan.nonzeros alone, faster for the integer dtypes. */
uint64_t sherd__view_nonzeros(sherd_view v);

/** Adds to counts[c] the number of entries of column c whose magnitude exceeds `least`; NaN counts.
 *  Of integers it counts those that are not 0. The rows of v are contiguous: col_stride is 1. */
void sherd__view_count_columns(sherd_view v, double least, uint32_t *counts);
/** Returns whether row r has such an entry in one of the columns cols[0] to cols[n - 1]. It reads
 *  no further than the first. */
bool sherd__view_any(sherd_view v, size_t r, const uint32_t *cols, size_t n, double least);

#endif
