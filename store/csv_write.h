/* Writes matrices as CSV: a row in each line, no header. */
#ifndef STORE_CSV_WRITE_H
#define STORE_CSV_WRITE_H

#include "core/buf.h"
#include "sherd/err.h"
#include "sherd/mat.h"
#include "store/file.h"

/** Appends a line of numbers, which strtod reads as the same bits, with "nan", "inf" and "-inf" for
 *  those that are not finite. SHERD_ENOMEM. */
int sherd__csv_append(sherd__buf *line, const double *values, size_t len) SHERD_MUST;
/** Writes a matrix to the file, which is neither committed nor aborted. Errors: those of
 *  sherd__file_write; SHERD_ENOMEM. */
int sherd__csv_write(sherd__file *f, sherd_view v, sherd_diag *d) SHERD_MUST;

#endif
