/* Parts of the writer of sherd/npy.h that are not public. */
#ifndef STORE_NPY_WRITER_H
#define STORE_NPY_WRITER_H

#include <stdbool.h>

#include "sherd/npy.h"
#include "store/npy_header.h"

/** sherd_npy_writer_new with dtype, ndim (0 to 2), rows and cols of *shape. With less than two
 *  dimensions the file has rows x cols numbers in one dimension or, if ndim is 0, one number. */
int sherd__npy_writer_begin(sherd_npy_writer **out, const char *path,
                            const sherd__npy_header *shape, sherd_diag *d) SHERD_MUST;
/** sherd_npy_writer_commit that writes to *published (may be NULL) whether the file exists, which
 *  it may also do after an error (sherd__file_publish). */
int sherd__npy_writer_publish(sherd_npy_writer *w, bool *published, sherd_diag *d) SHERD_MUST;

#endif
