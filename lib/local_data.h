/* Loads a node's own examples from a file into memory. */
#ifndef LIB_LOCAL_DATA_H
#define LIB_LOCAL_DATA_H

#include "learn/local_data.h"

typedef struct sherd__own_data {
    sherd__own own;
    void *members[2]; /* memory that `own` borrows from */
} sherd__own_data;

/** How a .csv is read, as sherd_node_data states. */
typedef struct sherd__own_columns {
    const char *label, *columns, *classes;
} sherd__own_columns;

/**
 * Loads data in the formats of `sherd train --data`: a folder of IDX files (its training pair), a
 * .npy or .csv whose last columns are targets, or a .npz with members x and y, or x_train and
 * y_train. The caller frees *out with sherd__own_close, on failure too. SHERD_EOPEN, SHERD_EFORMAT,
 * SHERD_ESHAPE, SHERD_EINVAL (columns of a file that is not .csv, or an invalid list of names),
 * SHERD_ENOMEM.
 */
int sherd__own_load(sherd__own_data *out, const char *path, const sherd__own_columns *of,
                    sherd_diag *d) SHERD_MUST;
/** Safe on a zeroed struct. */
void sherd__own_close(sherd__own_data *x);

#endif
