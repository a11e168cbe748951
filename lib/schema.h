/* What a model keeps of the data that it was trained on: the names of columns and classes, and how
 * inputs are standardised. */
#ifndef LIB_SCHEMA_H
#define LIB_SCHEMA_H

#include "core/namelist.h"
#include "learn/dataset.h"
#include "learn/recipe.h"
#include "store/npz.h"

/** Zeroed: nothing is known. */
typedef struct sherd__schema {
    sherd__namelist columns;  /* of the inputs; empty: they have no names, or not different ones */
    sherd__namelist target;   /* of the target's column; empty: no name, or several columns */
    sherd__namelist classes;  /* in the order of outputs; empty: labels are numbers */
    double *mean, *deviation; /* of each input, after `divide_inputs`; NULL: not standardised */
    size_t inputs;            /* length of these */
} sherd__schema;

/** Copies a schema; *out is zeroed on failure. SHERD_ENOMEM. */
int sherd__schema_copy(sherd__schema *out, const sherd__schema *x, sherd_diag *d) SHERD_MUST;
/** Safe on a zeroed struct and when called twice. */
void sherd__schema_fini(sherd__schema *x);

/** Forgets names by which columns cannot be found: empty, very long or equal ones. SHERD_ENOMEM. */
int sherd__schema_prune(sherd__schema *x, sherd_diag *d) SHERD_MUST;
/** Sets mean and deviation from the inputs of s. Errors of sherd__dataset_measure. */
int sherd__schema_measure(sherd__schema *x, const sherd__dataset *s, const char *name,
                          double divide, sherd_diag *d) SHERD_MUST;
/** Replaces s by a scaled copy. Means and deviations are used if there are any. SHERD_ENOMEM;
 *  SHERD_ERANGE: a quotient is not finite. */
int sherd__schema_scale(const sherd__schema *x, sherd__dataset *s, const char *name, double divide,
                        sherd_diag *d) SHERD_MUST;

/* ---- members of a model's file --------------------------------------------------------------- */

#define SHERD__SCHEMA_MEMBERS 5u

/** Members of an .npz: names as text, one per line, means and deviations as numbers. */
typedef struct sherd__schema_members {
    sherd__npz_array arrays[SHERD__SCHEMA_MEMBERS];
    const void *values[SHERD__SCHEMA_MEMBERS]; /* borrowed from the schema and from `texts` */
    char *texts[3];
    size_t len;
} sherd__schema_members;

/** Lists what is known. The caller frees *out with sherd__schema_members_fini. SHERD_ENOMEM. */
int sherd__schema_list(const sherd__schema *x, sherd__schema_members *out,
                       sherd_diag *d) SHERD_MUST;
void sherd__schema_members_fini(sherd__schema_members *x);
/** Returns an upper bound of the bytes that the members take in a file. */
uint64_t sherd__schema_bytes(const sherd__schema *x);
/**
 * Reads the members that are there, for a network of these inputs and outputs. needed: means and
 * deviations must be there if the recipe standardises. *out is zeroed on failure. SHERD_EFORMAT,
 * SHERD_ESHAPE, SHERD_ERANGE: the message names file and member; SHERD_ENOMEM.
 */
int sherd__schema_read(sherd__schema *out, sherd__npz *z, const sherd__recipe *r, size_t outputs,
                       bool needed, sherd_diag *d) SHERD_MUST;

#endif
