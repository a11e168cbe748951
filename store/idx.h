/*
 * IDX files, the form in which MNIST and its kin are published (http://yann.lecun.com/exdb/mnist/,
 * "the IDX file format"): unsigned bytes, one to three dimensions, gzipped or not. Images are
 * flattened: n x 28 x 28 becomes n x 784.
 */
#ifndef STORE_IDX_H
#define STORE_IDX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"

/** No file claims more than this before anything is allocated (fifty times MNIST). */
#define SHERD__IDX_BYTES_MAX ((size_t)4 << 30)

typedef struct sherd__idx {
    uint8_t *values; /* rows x cols, row-major */
    size_t rows, cols;
    unsigned ndim; /* of the file: 1..3 */
    uint32_t shape[3];
} sherd__idx;

/**
 * Reads one file. SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM; SHERD_EFORMAT: not IDX, other values than
 * bytes, a size that the file does not have, damaged gzip. *out is the caller's (sherd__idx_fini).
 */
int sherd__idx_load(sherd__idx *out, const char *path, sherd_diag *d) SHERD_MUST;
/** The same from memory; `where` names it in messages. */
int sherd__idx_parse(sherd__idx *out, const uint8_t *bytes, size_t len, const char *where,
                     sherd_diag *d) SHERD_MUST;
/** Safe on a zeroed struct and twice. */
void sherd__idx_fini(sherd__idx *x);
/** |u1; borrows from x. */
sherd_view sherd__idx_view(const sherd__idx *x);

/** Images with their labels: n x pixels and n x 1. */
typedef struct sherd__idx_set {
    sherd__idx images, labels;
} sherd__idx_set;

/** Whether any file of such a set is in `folder`: a half of one is a mistake, none is none. */
bool sherd__idx_set_any(const char *folder, const char *prefix);
/**
 * Reads PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte (or .idx3-ubyte, with or without .gz)
 * from `folder`; prefix is "train" or "t10k". SHERD_EOPEN names what was looked for; SHERD_ESHAPE
 * where there are not as many labels as images.
 */
int sherd__idx_set_load(sherd__idx_set *out, const char *folder, const char *prefix,
                        sherd_diag *d) SHERD_MUST;
void sherd__idx_set_fini(sherd__idx_set *x);

#endif
