/* A part of the writer of sherd/npy.h that is not public. */
#ifndef STORE_NPY_WRITER_H
#define STORE_NPY_WRITER_H

#include <stdbool.h>

#include "sherd/npy.h"

/** sherd_npy_writer_commit that writes to *published (may be NULL) whether the file exists, which
 *  it may also do after an error (sherd__file_publish). */
int sherd__npy_writer_publish(sherd_npy_writer *w, bool *published, sherd_diag *d) SHERD_MUST;

#endif
