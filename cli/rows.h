/* Tables for people: one line for each struct of a kind, in columns that name its fields
 * (sherd/field.h). The same fields give its JSON (cli/fields.h). */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include <stddef.h>

#include "cli/fields.h"

typedef struct sherd__column {
    const char *head;
    int width;         /* of the column, as in printf: negative is left-aligned */
    const char *field; /* NULL: `text` computes the cell */
    const char *(*text)(const void *x, char out[48]); /* NULL: the value of the field in its unit */
} sherd__column;

/** Returns the value of a field as text: bytes and seconds with a unit (no time, which is 0, as
 *  "-"), a fraction in percent. */
const char *sherd__field_text(const void *x, const sherd_field *field, char out[48]);
/** Returns the field of that name, or NULL. */
const sherd_field *sherd__field_find(sherd__fields fields, const char *name);
/** Writes the line of *x, or that of the heads if x is NULL, without a newline. columns ends with a
 *  head that is NULL. Returns out. */
const char *sherd__row_text(char *out, size_t size, const sherd__column *columns, const void *x,
                            sherd__fields fields);

#endif
