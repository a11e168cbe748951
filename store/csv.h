/*
 * CSV as training data or an operand (RFC 4180): one example per line, decimal numbers and names of
 * classes, separated by commas. The first line is a header if none of its fields is a number and
 * not all are nan or inf (a class in the last one aside), or if columns are wanted by their names.
 * Common output of spreadsheets is accepted: a UTF-8 byte order mark, CR LF or LF, a last line with
 * or without a line end, blanks around numbers and names, also within quotes, and quotes around any
 * field.
 */
#ifndef STORE_CSV_H
#define STORE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/namelist.h"
#include "sherd/err.h"

/** Maximum number of classes that are found in a file. */
#define SHERD__CSV_CLASSES_MAX 16384u

/** Maximum length of a number; beyond 767 digits, no single digit can change a double. */
#define SHERD__CSV_NUMBER_MAX 1024u

/** Which columns are inputs and which are targets. */
typedef struct sherd__csv_want {
    bool operand;   /* all columns are numbers, also nan, inf and infinity, with a sign and in any
                       case; the names in a header are not kept. No other member is set */
    size_t targets; /* number of target columns, which are the last ones; 0: all are inputs */
    bool labels;    /* targets is 1, and the column has integers from 0 to 2^32 - 2 */
    bool names;     /* labels: it may have names of classes instead, at least in the first line; the
                       classes are the names, sorted by bytes */
    const sherd__namelist
        *classes; /* labels: it has these names; label i is name i. NULL: see above */
    /* target's name in the header, in any column; NULL: the last column. Only with targets 1 */
    const char *label;
    bool label_optional; /* without a header, the target is the last column; else it is an error */
    /* lines with so many fields have no targets, which are then optional; 0: they are required */
    size_t inputs;
    /* names of the inputs in the header, in their order; other columns are not read. NULL: all
       columns that are not targets. With `inputs` set, a file without a header has just these */
    const sherd__namelist *columns;
} sherd__csv_want;

typedef struct sherd__csv {
    double *x;        /* rows x inputs, row-major, in file order; finite unless an operand's */
    uint32_t *labels; /* one per row; NULL if there are none */
    double *values;   /* rows x targets, finite; NULL if targets are labels or absent */
    size_t rows, inputs;
    sherd__namelist columns, target; /* names of inputs and targets; empty without a header
                                        and of an operand */
    sherd__namelist classes; /* found in the file; empty: labels are numbers or wanted names */
} sherd__csv;

/**
 * Parses a text in memory in one pass; time and memory are proportional to len for any input. Each
 * number becomes the nearest double, as strtod returns it in the C locale. Messages begin with
 * "WHERE:LINE:COLUMN:"; columns are counted in bytes from 1. The caller frees *out with
 * sherd__csv_fini. Errors: SHERD_EFORMAT: a field that is not valid for its column (including nan
 * and infinity unless it is an operand, and values outside the range of a double), lines of unequal
 * length, unclosed quotes, no example, no column of that name or more than one, more than
 * SHERD__CSV_CLASSES_MAX classes; SHERD_ESHAPE: no column is left for inputs; SHERD_ENOMEM.
 */
int sherd__csv_parse(sherd__csv *out, const uint8_t *bytes, size_t len, const char *where,
                     const sherd__csv_want *want, sherd_diag *d) SHERD_MUST;
/** Does the same for a file, mapped if it is large. More errors: SHERD_EOPEN, SHERD_EIO. */
int sherd__csv_load(sherd__csv *out, const char *path, const sherd__csv_want *want,
                    sherd_diag *d) SHERD_MUST;
/** Frees *x. It may be zeroed, and may be freed twice. */
void sherd__csv_fini(sherd__csv *x);

#endif
