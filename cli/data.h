/* Examples of a recipe: from files or generators, limited, cut and scaled as the recipe says. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include <stdbool.h>

#include "learn/dataset.h"
#include "learn/recipe.h"
#include "store/digest.h"
#include "store/npz.h"

/* What an archive of data may unpack to (sherd__npz_open). */
#define SHERD__DATA_UNPACKED ((uint64_t)16 << 30)
#define SHERD__DATA_RATIO 1100u

typedef struct sherd__data {
    sherd__dataset train, validation; /* validation.x.rows 0: there are none */
    uint32_t *from; /* of each training row: which of those that were read; NULL: all, in order */
    char says[200]; /* what they are and where they come from, for people */
    bool embedded;  /* digits stand in for images that were not given */
} sherd__data;

/**
 * Loads what `r` trains on, for a network of `width` outputs, all of it checked (finite, labels
 * below width, inputs as many as the network takes). path: a folder of IDX files, a .npy (targets
 * are the last columns), a .npz (members x and y, or x_train, y_train, x_test, y_test) or a .csv
 * (store/csv.h); NULL: the recipe's own source. What validation gets is a function of the seed.
 * *out is the caller's (sherd__data_fini). SHERD_EOPEN, SHERD_EFORMAT, SHERD_ESHAPE, SHERD_ERANGE,
 * SHERD_EINVAL (a recipe for files and no path), SHERD_ENOMEM.
 */
int sherd__data_load(sherd__data *out, const sherd__recipe *r, const char *path, size_t width,
                     const uint8_t seed[32], sherd_diag *d) SHERD_MUST;
/** Of training and validation, inputs and targets: what a run goes on with, or has in common. */
int sherd__data_digest(const sherd__data *x, sherd__digest *out, sherd_diag *d) SHERD_MUST;
void sherd__data_fini(sherd__data *x);
/** A member as a matrix in memory of its own (*bytes, the caller's, on failure too); one dimension
 *  is a column. *there is false where there is none. */
int sherd__data_member(sherd__npz *z, const char *name, sherd_view *v, void **bytes, bool *there,
                       sherd_diag *d) SHERD_MUST;

/**
 * Inputs alone, to predict from: a folder of IDX files (its test images), one IDX file, a .npy, a
 * .npz with a member x or a .csv. Labels come along where the folder or archive has them. Rows of
 * another length than `inputs` are SHERD_ESHAPE; a .npy or .csv may have the targets too, which are
 * left out. Divided as the recipe says.
 */
int sherd__data_inputs(sherd__dataset *out, const sherd__recipe *r, const char *path, size_t width,
                       sherd_diag *d) SHERD_MUST;

#endif
