/*
 * numpy's .npy files as matrices. Read: format 1.0 and 2.0, C and Fortran order, <f4 <f8 <i2 <i4
 * <i8 <u2 <u4 |i1 |u1, at most two dimensions; large files are mapped, not read. Written: format
 * 1.0, C order, completely or not at all. Pickle is never supported.
 *
 * Other processes can write to a mapped file. A file that is overwritten while it is mapped gives
 * old and new values (sherd_npy_check detects this). A file that is truncated raises SIGBUS in the
 * thread that reads it, which ends a program that does not catch it. Neither happens if files are
 * replaced by renaming, as sherd_npy_save does.
 *
 * A 1-D array of n is read as one row, 1 x n, and a 0-D one as 1 x 1. sherd_npy_ndim returns the
 * original dimensions for a caller that wants a column (sherd_view_t).
 */
#ifndef SHERD_NPY_H
#define SHERD_NPY_H

#include <stddef.h>

#include "sherd/err.h"
#include "sherd/mat.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sherd_npy sherd_npy;

/**
 * Opens a .npy file. On success the caller closes *out with sherd_npy_close; on failure *out is
 * NULL.
 *
 * Errors: SHERD_EOPEN, SHERD_EIO;  SHERD_EFORMAT  not .npy, truncated, or of an unsupported dtype
 * (the hint says how to re-save it);  SHERD_ESHAPE  more than two dimensions, or one above
 * 2^32 - 1, or above 2^24 in an array without values;  SHERD_ENOMEM. The message names the file,
 * what was found and what was expected.
 */
SHERD_API int sherd_npy_open(sherd_npy **out, const char *path, sherd_diag *d) SHERD_MUST;
/** Returns the matrix, which borrows from f. */
SHERD_API sherd_view sherd_npy_view(const sherd_npy *f);
/** Returns the number of dimensions in numpy's sense: 0, 1 or 2. */
SHERD_API unsigned sherd_npy_ndim(const sherd_npy *f);
/** Returns SHERD_EIO if the file has changed since it was opened; results from it are then
 *  invalid. */
SHERD_API int sherd_npy_check(const sherd_npy *f, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_npy_close(sherd_npy *f);

/**
 * Writes v, of any strides, to path. An earlier file of that name survives every failure, a full
 * disk included. SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM; SHERD_EINVAL for an invalid dtype.
 */
SHERD_API int sherd_npy_save(const char *path, sherd_view v, sherd_diag *d) SHERD_MUST;

/** Writes a file row by row or tile by tile, for results that are never in memory as a whole. */
typedef struct sherd_npy_writer sherd_npy_writer;

/** Starts a rows x cols file and reserves its disk space. */
SHERD_API int sherd_npy_writer_new(sherd_npy_writer **out, const char *path, sherd_dtype dtype,
                                   size_t rows, size_t cols, sherd_diag *d) SHERD_MUST;
/** Appends v's rows; dtype and cols must be the writer's, and the rows must fit (SHERD_EINVAL). A
 *  writer accepts rows or tiles, not both. */
SHERD_API int sherd_npy_writer_rows(sherd_npy_writer *w, sherd_view v, sherd_diag *d) SHERD_MUST;
/** Writes v at [row, row + v.rows) x [col, col + v.cols); tiles may come in any order. Parts never
 *  written read as zero. SHERD_EINVAL outside the matrix; SHERD_EUNSUPPORTED on a pipe. */
SHERD_API int sherd_npy_writer_tile(sherd_npy_writer *w, size_t row, size_t col, sherd_view v,
                                    sherd_diag *d) SHERD_MUST;
/** Makes the file appear under its name and frees w, also on failure. SHERD_EINVAL if rows are
 *  missing and no tile was written; SHERD_EIO, also if the file appeared but its folder could not
 *  be synced. */
SHERD_API int sherd_npy_writer_commit(sherd_npy_writer *w, sherd_diag *d) SHERD_MUST;
/** Discards the file and frees w; NULL is allowed. */
SHERD_API void sherd_npy_writer_abort(sherd_npy_writer *w);

#ifdef __cplusplus
}
#endif

#endif
