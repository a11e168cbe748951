/* Libraries of drivers, which are loaded by name when a node starts. */
#ifndef NODE_BACKENDS_DRIVER_LIBRARY_H
#define NODE_BACKENDS_DRIVER_LIBRARY_H

#include "sherd/err.h"

/** Loads `file`, or where it is NULL the first of `names` that can be loaded; NULL ends the list.
 *  what: the interface, for messages. SHERD_EUNSUPPORTED: none can be loaded; *d has
 *  the loader's reason and `hint`. */
int sherd__driver_library(void **out, const char *file, const char *const *names, const char *what,
                          const char *hint, sherd_diag *d) SHERD_MUST;
/** Stores the address of a function in *member, a pointer to a function; NULL if the library lacks
 *  it. */
void sherd__driver_symbol(void *library, const char *name, void *member);

#endif
