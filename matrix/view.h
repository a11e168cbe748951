/*
 * Reading a sherd_view: one place that knows dtypes and strides. Everything else sees rows of f64.
 * u8, i8, u16, i16, u32, i32 and f32 convert exactly; an i64 beyond 2^53 is rounded to nearest even
 * (sherd__view_scan says so in `inexact`). Read-only, no allocation, safe from several threads.
 */
#ifndef MATRIX_VIEW_H
#define MATRIX_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/mat.h"

/** Known dtype, data present unless empty, and offsets that fit in ptrdiff_t; `name` goes into the
 *  message ("A"). SHERD_EINVAL. */
int sherd__view_check(sherd_view v, const char *name, sherd_diag *d) SHERD_MUST;

/** Element (r, c), which must lie within v. */
double sherd__view_at(sherd_view v, size_t r, size_t c);
/** out[j] = v(r, c0 + j) for j < n; the range must lie within v. */
void sherd__view_row_f64(sherd_view v, size_t r, size_t c0, size_t n, double *out);
/** out[j] = v(r, cols[j]) for j < n; cols may repeat. */
void sherd__view_gather_f64(sherd_view v, size_t r, const uint32_t *cols, size_t n, double *out);
/** The whole of v as row-major f64, ld >= cols; by blocks, so that Fortran order costs no more. */
void sherd__view_dense_f64(sherd_view v, double *out, size_t ld);
/** v's own memory where it is row-major f64 already (*ld = its leading dimension), else NULL. */
const double *sherd__view_borrow_f64(sherd_view v, size_t *ld);

/** What one pass over a matrix tells. */
typedef struct sherd__scan {
    double min_abs, max_abs; /* over finite values; 0 and 0 where there are none */
    uint64_t nonzeros;       /* NaN and infinities included */
    uint64_t nonfinite;      /* how many NaN and infinities */
    size_t bad_row, bad_col; /* the first of them in row order, if any */
    double bad_value;
    bool integers; /* every value is finite and a whole number */
    bool inexact;  /* some i64 is not a double: max_abs is of the rounded value */
} sherd__scan;

void sherd__view_scan(sherd_view v, sherd__scan *out);
/** max |v|, of an empty one 0. False: something in it is NaN or infinite, and *max_abs means
 *  nothing. A fraction of a scan's time. */
bool sherd__view_peak(sherd_view v, double *max_abs);
/** The bits of max |x| over n numbers, 0 where n is 0; those of a NaN are above infinity's. Takes
 *  as long whatever the numbers are. */
uint64_t sherd__peak_bits(const double *x, size_t n);
/** Like sherd__scan.nonzeros alone, and faster for the integer dtypes. */
uint64_t sherd__view_nonzeros(sherd_view v);

#endif
