/*
 * Matrices from files (numpy's .npy, a member of an .npz, .csv, or IDX, the format of MNIST,
 * gzipped or not) and generated images: handwritten digits drawn from strokes, so that examples and
 * simulations need no download.
 */
#ifndef SHERD_ARRAY_H
#define SHERD_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A matrix and the memory or the mapped file that it is in. */
typedef struct sherd_array sherd_array;

/**
 * Opens a matrix; the format is found from the first bytes, and that of a .csv from its name. IDX
 * images are flattened: n x 28 x 28 becomes n x 784. A .csv has numbers, as which nan, inf and
 * infinity count, with a sign and in any case. Its first line is a header, and ignored, if none of
 * its fields is a number. Of a pipe the name decides: .csv; IDX if it ends in -ubyte or .gz; and
 * otherwise .npy. An .npz is not read from a pipe.
 *
 * member: a member of an .npz, without ".npy"; NULL if the file is of another format, has one
 * member only, or `path` is FILE.npz:MEMBER. The caller closes *out with sherd_array_close; on
 * failure *out is NULL. Errors: SHERD_EOPEN, SHERD_EIO; SHERD_EFORMAT: none of these formats, no
 * such member, a damaged file, or an unsupported dtype; SHERD_ESHAPE: more than two dimensions
 * (.npy, .npz) or three (IDX); SHERD_EINVAL: a member of a file that has none; SHERD_ENOMEM.
 */
SHERD_API int sherd_array_open(sherd_array **out, const char *path, const char *member,
                               sherd_diag *d) SHERD_MUST;
/**
 * Opens a set of IDX files in `folder`: PREFIX-images-idx3-ubyte as *images, n x pixels, and
 * PREFIX-labels-idx1-ubyte as *labels, n x 1. MNIST's prefixes are "train" and "t10k"; names with
 * .gz, and with .idx3-ubyte, are found as well. The caller closes both. SHERD_EOPEN names the
 * missing file; SHERD_ESHAPE: the numbers of labels and images differ; otherwise as
 * sherd_array_open.
 */
SHERD_API int sherd_array_open_idx(sherd_array **images, sherd_array **labels, const char *folder,
                                   const char *prefix, sherd_diag *d) SHERD_MUST;
/** Returns the matrix, which borrows from a. One dimension of n is 1 x n, but n x 1 of IDX. */
SHERD_API sherd_view sherd_array_view(const sherd_array *a);
/** Returns the matrix as an operand, by numpy's rule for vectors: one dimension of n is a row,
 *  1 x n, or with `column`, as on the right of a product, n x 1. It borrows from a. */
SHERD_API sherd_view sherd_array_operand(const sherd_array *a, bool column);
/** Returns the number of dimensions in the file, 0 to 3. */
SHERD_API unsigned sherd_array_ndim(const sherd_array *a);
/** Returns SHERD_EIO if the file of a mapped matrix (.npy) has changed since it was opened; results
 *  from it are then invalid. */
SHERD_API int sherd_array_check(const sherd_array *a, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_array_close(sherd_array *a);

/** Bytes of a generated image: 28 x 28. */
#define SHERD_DIGIT_PIXELS 784u

/**
 * Draws the images `first` to first + rows - 1 of the set of `seed` (0: the set of `sherd demo`).
 * pixels receives rows x SHERD_DIGIT_PIXELS bytes, row-major, of which about 80 % are 0 as in
 * MNIST. labels receives `rows` digits from 0 to 9; NULL: not wanted. An image depends on seed and
 * number only, and is the same on every machine. It takes about 3 microseconds.
 */
SHERD_API void sherd_digits_draw(uint64_t seed, uint64_t first, size_t rows, uint8_t *pixels,
                                 uint8_t *labels);

#ifdef __cplusplus
}
#endif

#endif
