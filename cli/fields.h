/* Reports as JSON, from the tables of their fields (sherd/field.h). */
#ifndef CLI_FIELDS_H
#define CLI_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/field.h"

/** A value of a field that is neither a text nor bytes, in the member of its type. */
typedef union sherd__field_value {
    bool b;
    int32_t i32;
    uint32_t u32; /* an enum, too */
    int64_t i64;
    uint64_t u64;
    double f64;
    const char *name;
} sherd__field_value;

/** Reads the value at `at`, of the type and size that the field has. */
sherd__field_value sherd__field_read(const void *at, const sherd_field *field);
/** Returns the text of an enum's value, or NULL if the field has none for it. */
const char *sherd__field_enum(const sherd_field *field, uint32_t value);

/** A function of a public header that returns the table of a struct: sherd_X_fields. */
typedef const sherd_field *(*sherd__fields)(size_t *count);

/**
 * Adds the members of *x that `fields` describes to obj, under their names, except those in
 * `without`, a list of names that ends with NULL (NULL: none). Numbers that are not finite, and
 * texts that do not exist, become null; bytes become hexadecimal text.
 */
void sherd__fields_json(json_t *obj, const void *x, sherd__fields fields,
                        const char *const *without);
/** Adds only the members named in `names`, a list that ends with NULL. */
void sherd__fields_json_of(json_t *obj, const void *x, sherd__fields fields,
                           const char *const *names);
/** Returns an object with the members of *x, except those in `without`. */
json_t *sherd__fields_object(const void *x, sherd__fields fields, const char *const *without);
/** Returns a number, at most 2^63 - 1, since JSON has no unsigned numbers of 64 bits. */
json_t *sherd__json_whole(uint64_t n);
/** Returns the value of one field. */
json_t *sherd__field_json(const void *x, const sherd_field *field);

#endif
