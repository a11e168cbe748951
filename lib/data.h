/* Examples of a recipe, from files or generators, limited, cut and scaled as the recipe
 * specifies. */
#ifndef LIB_DATA_H
#define LIB_DATA_H

#include <stdbool.h>

#include "learn/dataset.h"
#include "learn/recipe.h"
#include "store/digest.h"
#include "store/npz.h"

/* The largest unpacked size and ratio of a data archive (sherd__npz_open). */
#define SHERD__DATA_UNPACKED ((uint64_t)16 << 30)
#define SHERD__DATA_RATIO 1100u

typedef struct sherd__data {
    sherd__dataset train, validation; /* validation.x.rows 0: no validation set */
    uint32_t *from; /* index of each training row among the rows read; NULL: all, in order */
    char says[200]; /* description and source of the data, for people */
    bool embedded;  /* embedded digits replace images that were not given */
} sherd__data;

/**
 * Loads the data that `r` trains on, for a network of `width` outputs, and checks all of it (finite
 * values, labels below width, as many inputs as the network has). path: a folder of IDX files, a
 * .npy (the last columns are targets), a .npz (members x and y, or x_train, y_train, x_test,
 * y_test) or a .csv (store/csv.h); NULL: the recipe's own source. The choice of validation rows
 * depends on the seed only. The caller frees *out with sherd__data_fini. SHERD_EOPEN,
 * SHERD_EFORMAT, SHERD_ESHAPE, SHERD_ERANGE, SHERD_EINVAL (a recipe for files and no path),
 * SHERD_ENOMEM.
 */
int sherd__data_load(sherd__data *out, const sherd__recipe *r, const char *path, size_t width,
                     const uint8_t seed[32], sherd_diag *d) SHERD_MUST;
/** Computes the digest of training and validation data, inputs and targets. Resumed runs and
 *  processes of one training compare it. */
int sherd__data_digest(const sherd__data *x, sherd__digest *out, sherd_diag *d) SHERD_MUST;
void sherd__data_fini(sherd__data *x);
/** Reads a member as a matrix into new memory (*bytes, which the caller frees, on failure too); one
 *  dimension is a column. *there is false if the member does not exist. */
int sherd__data_member(sherd__npz *z, const char *name, sherd_view *v, void **bytes, bool *there,
                       sherd_diag *d) SHERD_MUST;

/**
 * Loads inputs alone, for prediction: a folder of IDX files (its test images), one IDX file, a
 * .npy, a .npz with a member x, or a .csv. Labels are loaded if the folder or archive has them.
 * Rows of another length than `inputs` are SHERD_ESHAPE. A .npy or .csv may contain the targets
 * too, which are left out. Values are divided as the recipe specifies.
 */
int sherd__data_inputs(sherd__dataset *out, const sherd__recipe *r, const char *path, size_t width,
                       sherd_diag *d) SHERD_MUST;

#endif
