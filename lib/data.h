/* Data sets: the struct behind sherd/data.h, and the readers of its sources. */
#ifndef LIB_DATA_H
#define LIB_DATA_H

#include <stdbool.h>

#include "learn/dataset.h"
#include "lib/model.h"
#include "lib/recipe.h"
#include "lib/schema.h"
#include "sherd/data.h"
#include "store/digest.h"
#include "store/npz.h"

/* The largest unpacked size and ratio of a data archive (sherd__npz_open). */
#define SHERD__DATA_UNPACKED ((uint64_t)16 << 30)
#define SHERD__DATA_RATIO 1100u

struct sherd_data {
    sherd__dataset train, validation; /* validation.x.rows 0: no validation set */
    uint32_t *from; /* index of each training row among the rows read; NULL: all, in order */
    char text[200]; /* description and source of the data, for people */
    bool embedded;  /* embedded digits replace images that were not given */
    size_t inputs, outputs;
    sherd__schema schema; /* names, and how the inputs were standardised */
};

/* ---- data.c ---------------------------------------------------------------------------------- */

/** As sherd_data_load, for a network of `width` outputs, with options of this version. from may
 *  name no source. */
int sherd__data_load(sherd_data **out, const sherd_recipe *r, const sherd_data_source *from,
                     size_t width, const uint8_t seed[32], sherd_diag *d) SHERD_MUST;
/** Makes an empty data set for that recipe and width: examples that this process does not have. Its
 *  schema has the recipe's names. SHERD_EFORMAT (another number of classes than outputs),
 *  SHERD_ENOMEM. */
int sherd__data_none(sherd_data **out, const sherd_recipe *r, size_t width, const char *text,
                     sherd_diag *d) SHERD_MUST;

/** Checks that a model of a recipe that standardises has means and deviations. SHERD_EINVAL. */
int sherd__data_standardised(const sherd_model *m, sherd_diag *d) SHERD_MUST;

/** Fails because there is no memory for the examples of `what`: a file, "`holdout`". */
int sherd__data_no_memory(const char *what, sherd_diag *d);

/* ---- data_files.c ---------------------------------------------------------------------------- */

/** Reads training data and, if the file has them, validation data. Values are not checked yet. */
int sherd__data_read(sherd_data *x, const sherd__recipe *r, const char *path, size_t width,
                     sherd_diag *d) SHERD_MUST;
/** Reads inputs for prediction into the training part, with their targets if the file has them.
 *  Columns and classes of a .csv are found by the names in the schema. */
int sherd__data_read_inputs(sherd_data *x, const sherd__recipe *r, const char *path,
                            sherd_diag *d) SHERD_MUST;
/** Compares the classes in the schema with the outputs. SHERD_EFORMAT. */
int sherd__data_check_classes(const sherd_data *x, const char *name, sherd_diag *d) SHERD_MUST;

/** Checks that data without a header (`has` false) are not to be read by names of columns. Messages
 *  begin with `where`. SHERD_EINVAL. */
int sherd__data_has_columns(const sherd__recipe *r, const char *where, bool has,
                            sherd_diag *d) SHERD_MUST;
/** Fails because the path does not exist. The hint names `sherd fetch` if it downloads such
 *  data. */
int sherd__data_missing(const char *path, sherd_diag *d) SHERD_MUST;
/** Returns whether a path ends so: ".npz". */
bool sherd__data_ends_in(const char *path, const char *tail);

/** Inputs and targets in memory. */
typedef struct sherd__data_pair {
    const char *where;    /* begins messages */
    const char *names[2]; /* of x and y */
    sherd_view x, y;      /* data NULL: not there */
} sherd__data_pair;

/** Makes a data set of them. Targets are converted to labels or values; x is borrowed if it is
 *  row-major, otherwise copied. SHERD_EFORMAT, SHERD_ESHAPE, SHERD_ENOMEM. */
int sherd__data_take_pair(sherd__dataset *out, const sherd__recipe *r, const sherd__data_pair *p,
                          size_t width, sherd_diag *d) SHERD_MUST;
/** Reads a member as a matrix into new memory (*bytes, which the caller frees, on failure too); one
 *  dimension is a column. *there is false if the member does not exist. */
int sherd__data_member(sherd__npz *z, const char *name, sherd_view *v, void **bytes, bool *there,
                       sherd_diag *d) SHERD_MUST;

#endif
