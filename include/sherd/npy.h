/*
 * numpy's .npy files as matrices. Read: format 1.0 and 2.0, C and Fortran order, <f4 <f8 <i2 <i4
 * <i8 <u2 <u4 |i1 |u1, at most two dimensions; large files are mapped, not read. Written: format
 * 1.0, C order, all at once or not at all. No pickle, ever.
 *
 * A mapped file belongs to whoever writes to it as well: one that is overwritten meanwhile gives
 * old and new values (sherd_npy_check tells), and one that is cut short raises SIGBUS in the thread
 * that reads it, which ends a program that does not catch it. Replace files by renaming, as
 * sherd_npy_save does, and neither happens.
 *
 * A 1-D array of n is read as one row, 1 x n, and a 0-D one as 1 x 1; sherd_npy_ndim tells, for a
 * caller who wants a column (sherd_view_t).
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
 * Opens a .npy file; on success *out is the caller's (sherd_npy_close), else NULL.
 *
 * Errors: SHERD_EOPEN, SHERD_EIO;  SHERD_EFORMAT  not .npy, truncated, or of a dtype that is not
 * read (the hint says how to re-save it);  SHERD_ESHAPE  more than two dimensions;  SHERD_ENOMEM.
 * The message names file, what was found and what was expected.
 */
SHERD_API int sherd_npy_open(sherd_npy **out, const char *path, sherd_diag *d) SHERD_MUST;
/** The matrix; it borrows from f. */
SHERD_API sherd_view sherd_npy_view(const sherd_npy *f);
/** Dimensions as numpy would say: 0, 1 or 2. */
SHERD_API unsigned sherd_npy_ndim(const sherd_npy *f);
/** SHERD_EIO if the file changed since it was opened: what was computed from it is then void. */
SHERD_API int sherd_npy_check(const sherd_npy *f, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_npy_close(sherd_npy *f);

/**
 * Writes v to path. An earlier file of that name survives every failure, a full disk included
 * (SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM; SHERD_EINVAL for a dtype that is none). Any strides.
 */
SHERD_API int sherd_npy_save(const char *path, sherd_view v, sherd_diag *d) SHERD_MUST;

/** The same row by row, for results that are never whole in memory. */
typedef struct sherd_npy_writer sherd_npy_writer;

/** Starts a rows x cols file and asks the disk for its room. */
SHERD_API int sherd_npy_writer_new(sherd_npy_writer **out, const char *path, sherd_dtype dtype,
                                   size_t rows, size_t cols, sherd_diag *d) SHERD_MUST;
/** Appends v's rows; dtype and cols must be the writer's and the rows fit (SHERD_EINVAL). A writer
 *  takes rows or tiles, not both. */
SHERD_API int sherd_npy_writer_rows(sherd_npy_writer *w, sherd_view v, sherd_diag *d) SHERD_MUST;
/** Writes v at [row, row + v.rows) x [col, col + v.cols), for tiles that come in any order. Places
 *  never written read as zero. SHERD_EINVAL outside the matrix; SHERD_EUNSUPPORTED on a pipe. */
SHERD_API int sherd_npy_writer_tile(sherd_npy_writer *w, size_t row, size_t col, sherd_view v,
                                    sherd_diag *d) SHERD_MUST;
/** Makes the file appear and frees w, on failure too. SHERD_EINVAL where rows are missing and no
 *  tile was written. */
SHERD_API int sherd_npy_writer_commit(sherd_npy_writer *w, sherd_diag *d) SHERD_MUST;
/** Drops it; NULL is allowed. */
SHERD_API void sherd_npy_writer_abort(sherd_npy_writer *w);

#ifdef __cplusplus
}
#endif

#endif
