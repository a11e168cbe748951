/* Writes matrices as CSV: a row in each line, no header. */
#ifndef STORE_CSV_WRITE_H
#define STORE_CSV_WRITE_H

#include "core/buf.h"
#include "sherd/err.h"
#include "sherd/mat.h"
#include "store/file.h"

/** Appends numbers with commas between them and `end` after the last. strtod reads each as the same
 *  bits; those that are not finite are "nan", "inf" and "-inf". Errors of sherd__buf_append. */
int sherd__csv_append(sherd__buf *text, const double *values, size_t len, char end) SHERD_MUST;
/** Reserves the least disk space that a matrix of this shape takes: two bytes for each number.
 *  Errors of sherd__file_reserve. */
int sherd__csv_reserve(sherd__file *f, size_t rows, size_t cols, sherd_diag *d) SHERD_MUST;
/** Writes a matrix to the file, which is neither committed nor aborted. Errors: those of
 *  sherd__file_write; SHERD_ENOMEM. */
int sherd__csv_write(sherd__file *f, sherd_view v, sherd_diag *d) SHERD_MUST;

#endif
