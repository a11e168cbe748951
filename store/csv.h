/*
 * CSV as training data (RFC 4180): a line an example, numbers in decimal, commas between them. A
 * first line of which no field is a number is a header. What a spreadsheet writes besides is read
 * too: a byte order mark of UTF-8, CR LF or LF, a last line with or without its end, blanks around
 * a number, quotes around any field.
 */
#ifndef STORE_CSV_H
#define STORE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** A longer number is refused: beyond 767 digits no digit changes a double by itself. */
#define SHERD__CSV_NUMBER_MAX 1024u

/** Which columns are what. */
typedef struct sherd__csv_want {
    size_t targets;    /* columns of targets, the last ones; 0: all are inputs */
    bool labels;       /* targets is 1, and holds whole numbers from 0 to 2^32 - 2 */
    const char *label; /* the target's name in the header, wherever its column is; NULL: see above.
                          Only with targets 1 */
    size_t inputs;     /* lines of exactly so many fields have no targets, and those need not be
                          there; 0: they must */
} sherd__csv_want;

typedef struct sherd__csv {
    double *x;        /* rows x inputs, row-major, in the order of the file, finite */
    uint32_t *labels; /* rows; NULL where there are none */
    double *values;   /* rows x targets, finite; NULL where targets are labels or not there */
    size_t rows, inputs;
} sherd__csv;

/**
 * Reads a text from memory in one pass; time and memory are proportional to len, whatever it
 * holds. Each number is the double nearest to what is written, as strtod gives it in the C locale.
 * Messages begin "WHERE:LINE:COLUMN:", columns counted in bytes from 1. *out is the caller's
 * (sherd__csv_fini). SHERD_EFORMAT: a field that is not what its column takes (nan, infinity and
 * what is beyond a double included), lines of unequal length, quotes that are not closed, no
 * example, no column of that name; SHERD_ESHAPE: no column left for inputs; SHERD_ENOMEM.
 */
int sherd__csv_parse(sherd__csv *out, const uint8_t *bytes, size_t len, const char *where,
                     const sherd__csv_want *want, sherd_diag *d) SHERD_MUST;
/** The same from a file, mapped where it is large. SHERD_EOPEN, SHERD_EIO besides. */
int sherd__csv_load(sherd__csv *out, const char *path, const sherd__csv_want *want,
                    sherd_diag *d) SHERD_MUST;
/** Safe on a zeroed struct and twice. */
void sherd__csv_fini(sherd__csv *x);

#endif
