/* Reports as JSON, from the tables of their fields (sherd/field.h). */
#ifndef CLI_FIELDS_H
#define CLI_FIELDS_H

#include <jansson.h>
#include <stddef.h>

#include "sherd/field.h"

/**
 * Adds the members of *x that `fields` describes to obj, under their names, except those in
 * `without`, a list of names that ends with NULL (NULL: none). Numbers that are not finite, and
 * texts that do not exist, become null; bytes become hexadecimal text.
 */
void sherd__fields_json(json_t *obj, const void *x, const sherd_field *fields, size_t count,
                        const char *const *without);
/** Adds only the members named in `names`, a list that ends with NULL. */
void sherd__fields_json_of(json_t *obj, const void *x, const sherd_field *fields, size_t count,
                           const char *const *names);
/** Returns the value of one field. */
json_t *sherd__field_json(const void *x, const sherd_field *field);

#endif
