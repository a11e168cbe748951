/*
 * Data sets: examples for training or prediction, from files, from arrays in memory, or from the
 * generator that a recipe names. All values are checked when a data set is made.
 */
#ifndef SHERD_DATA_H
#define SHERD_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/mat.h"
#include "sherd/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Where examples come from: a path, or arrays; neither: the source that the recipe names.
 * Zero-initialise, set size, then set what differs.
 */
typedef struct sherd_data_source {
    size_t size;      /* sizeof(sherd_data_source) */
    const char *path; /* a folder of IDX files (.gz or not), a .npy or .csv whose last columns are
                         targets (in a .csv also names of classes, and any column that the recipe
                         names), or a .npz with members x and y, or x_train, y_train, x_test and
                         y_test */
    sherd_view x, y;  /* inputs, a row for each example, and their targets: a column of labels
                         (whole numbers from 0), or values if the recipe says so. Any dtype and
                         strides; x.data NULL: none */
    sherd_view validation_x, validation_y; /* likewise, for validation; x.data NULL: none */
    const char *name;                      /* name of the arrays in messages; NULL: "arrays" */
} sherd_data_source;

typedef struct sherd_data sherd_data;

typedef enum sherd_data_part { SHERD_DATA_TRAINING, SHERD_DATA_VALIDATION } sherd_data_part;

typedef struct sherd_data_info {
    size_t size;         /* sizeof(sherd_data_info), set by the caller */
    uint64_t examples;   /* for training; 0: only nodes have them */
    uint64_t validation; /* examples for validation */
    uint64_t inputs;     /* numbers of one example */
    uint64_t outputs;    /* of the recipe's network; with labels, the number of classes */
    bool labels;         /* targets are labels; otherwise values, or there are none */
    bool embedded;       /* generated digits replace images that were not given */
    char text[200];      /* source and size, for people */
} sherd_data_info;

/**
 * Loads the examples that a recipe trains on and checks all of them: finite values, labels below
 * the number of outputs, as many inputs as the network has. The recipe's `examples`, `holdout`,
 * `divide_inputs` and `standardise` are applied. from NULL: the recipe's own source. seed: 32 bytes
 * that generated examples and the choice of held-out ones derive from; NULL: fresh. Arrays are
 * borrowed until sherd_data_free, where they need not be converted. The caller frees *out with
 * sherd_data_free; it is NULL on failure.
 *
 * Errors: SHERD_EOPEN, SHERD_EIO, SHERD_EFORMAT, SHERD_ESHAPE; SHERD_ERANGE (a value that is not
 * finite); SHERD_EINVAL (a recipe for files, and no file); SHERD_ENOMEM. The message names the
 * file, and the row, column or line.
 */
SHERD_API int sherd_data_load(sherd_data **out, const sherd_recipe *r,
                              const sherd_data_source *from, const uint8_t *seed,
                              sherd_diag *d) SHERD_MUST;
/**
 * Loads inputs for prediction, as the training part: a folder of IDX files (its test images), one
 * IDX file, a .npy, a .npz with a member x, or a .csv. They have targets if the file has them. The
 * recipe's `divide_inputs` is applied. Columns of a .csv are found by the names that the recipe
 * gives. Errors as of sherd_data_load; SHERD_EINVAL also if the recipe standardises, because the
 * means are in the model: see sherd_model_inputs_load.
 */
SHERD_API int sherd_data_inputs(sherd_data **out, const sherd_recipe *r, const char *path,
                                sherd_diag *d) SHERD_MUST;
/** Returns the inputs, a row for each example; no rows if the part is empty. Valid until
 *  sherd_data_free. */
SHERD_API sherd_view sherd_data_x(const sherd_data *x, sherd_data_part part);
/** Returns the targets: labels (a column of SHERD_U32) or values (SHERD_F64); no rows if there are
 *  none. Valid until sherd_data_free. */
SHERD_API sherd_view sherd_data_y(const sherd_data *x, sherd_data_part part);
SHERD_API int sherd_data_get(const sherd_data *x, sherd_data_info *out, sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_data_info_fields(size_t *count);
/** Writes the SHA-256 (32 bytes) of inputs and targets, those for validation included. Checkpoints
 *  contain it. Takes a second for 2 GB. SHERD_ENOMEM. */
SHERD_API int sherd_data_digest(const sherd_data *x, uint8_t *out, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_data_free(sherd_data *x);

#ifdef __cplusplus
}
#endif

#endif
