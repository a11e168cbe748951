/*
 * IDX files, the format of MNIST and similar data sets (http://yann.lecun.com/exdb/mnist/, "the IDX
 * file format"): unsigned bytes, one to three dimensions, optionally gzipped. Images are flattened:
 * n x 28 x 28 becomes n x 784.
 */
#ifndef STORE_IDX_H
#define STORE_IDX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"

/** Maximum size that a file may declare (50 x MNIST); checked before anything is allocated. */
#define SHERD__IDX_BYTES_MAX ((size_t)4 << 30)

typedef struct sherd__idx {
    uint8_t *values; /* rows x cols, row-major */
    size_t rows, cols;
    unsigned ndim; /* dimensions in the file: 1..3 */
    uint32_t shape[3];
} sherd__idx;

/**
 * Reads one file. The caller frees *out with sherd__idx_fini. Errors: SHERD_EOPEN, SHERD_EIO,
 * SHERD_ENOMEM; SHERD_EFORMAT: not IDX, values that are not bytes, a declared size that differs
 * from the file's, damaged gzip data.
 */
int sherd__idx_load(sherd__idx *out, const char *path, sherd_diag *d) SHERD_MUST;
/** Does the same for bytes in memory; `where` names them in messages. */
int sherd__idx_parse(sherd__idx *out, const uint8_t *bytes, size_t len, const char *where,
                     sherd_diag *d) SHERD_MUST;
/** Frees *x. It may be zeroed, and may be freed twice. */
void sherd__idx_fini(sherd__idx *x);
/** Returns the values as a |u1 view that borrows from x. */
sherd_view sherd__idx_view(const sherd__idx *x);

/** Images with their labels: n x pixels and n x 1. */
typedef struct sherd__idx_set {
    sherd__idx images, labels;
} sherd__idx_set;

/** Returns true if `folder` has any file of this set, so that a partial set can be reported. */
bool sherd__idx_set_any(const char *folder, const char *prefix);
/**
 * Reads PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte (or .idx3-ubyte, with or without .gz)
 * from `folder`; prefix is "train" or "t10k". The caller frees *out with sherd__idx_set_fini.
 * Errors: SHERD_EOPEN names the missing file; SHERD_ESHAPE if the numbers of labels and images
 * differ.
 */
int sherd__idx_set_load(sherd__idx_set *out, const char *folder, const char *prefix,
                        sherd_diag *d) SHERD_MUST;
void sherd__idx_set_fini(sherd__idx_set *x);

#endif
