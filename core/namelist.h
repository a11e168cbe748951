/* Ordered lists of names: columns of a table, classes. */
#ifndef CORE_NAMELIST_H
#define CORE_NAMELIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** Maximum length of a name in bytes. */
#define SHERD__NAME_MAX 255u

/** Zeroed: an empty list. */
typedef struct sherd__namelist {
    char **at; /* `len` terminated names */
    size_t len, cap;
} sherd__namelist;

/** Appends a copy of len bytes. SHERD_ENOMEM, on which the list is unchanged. */
int sherd__namelist_add(sherd__namelist *x, const char *name, size_t len) SHERD_MUST;
/** Appends the parts of a text between separators, without blanks around them. SHERD_ENOMEM. */
int sherd__namelist_split(sherd__namelist *x, const char *text, size_t len,
                          char separator) SHERD_MUST;
/** Copies a list; *out is empty on failure. SHERD_ENOMEM. */
int sherd__namelist_copy(sherd__namelist *out, const sherd__namelist *x) SHERD_MUST;
/** Returns the list as one text, with a separator between two names; the caller frees it. *len does
 *  not count the terminating NUL. NULL without memory. */
char *sherd__namelist_text(const sherd__namelist *x, char separator, size_t *len);
/** Returns the index of a name; the length of the list if it is not in it. Takes no time if it is
 *  name `guess`. */
size_t sherd__namelist_find(const sherd__namelist *x, const char *name, size_t guess);
/** Returns whether a name is a text of 1 to SHERD__NAME_MAX bytes without control characters. */
bool sherd__name_valid(const char *name);
/** Checks that every name is valid and occurs once. SHERD_EFORMAT: *bad (may be NULL) is the index
 *  of a name that is not, or that occurs again; SHERD_ENOMEM. */
int sherd__namelist_check(const sherd__namelist *x, size_t *bad) SHERD_MUST;
/** Maximum size of a name as a field of .csv, with its terminating NUL. */
#define SHERD__NAME_QUOTED (2 * SHERD__NAME_MAX + 3)
/** Writes a name as a field of .csv: in quotes if it is empty or has a comma, a quote or a line
 *  end. A name of more than SHERD__NAME_MAX bytes is cut off. Returns the length. */
size_t sherd__name_quoted(const char *name, char out[SHERD__NAME_QUOTED]);
/** Writes `a, "b, c", d` for a message; a list that is too long ends in "...". Returns out. */
const char *sherd__namelist_shown(const sherd__namelist *x, char *out, size_t size);
/** Frees the names; the list is empty then. */
void sherd__namelist_fini(sherd__namelist *x);

#endif
