/* Libraries of drivers, which are loaded by name when a node starts. */
#ifndef NODE_BACKENDS_DRIVER_LIBRARY_H
#define NODE_BACKENDS_DRIVER_LIBRARY_H

#include "sherd/err.h"

/** Loads `file`, or where it is NULL the first of `names` that can be loaded; NULL ends the list.
 *  what: the interface, for messages. Returns SHERD_EUNSUPPORTED with the loader's reason and
 *  `hint` where there is none. */
int sherd__driver_library(void **out, const char *file, const char *const *names, const char *what,
                          const char *hint, sherd_diag *d) SHERD_MUST;
/** Stores the address of a function in *member, a pointer to a function; NULL: there is none. */
void sherd__driver_symbol(void *library, const char *name, void *member);

#endif
