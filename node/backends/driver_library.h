/* Libraries of drivers, which are loaded by name when a node starts. */
#ifndef NODE_BACKENDS_DRIVER_LIBRARY_H
#define NODE_BACKENDS_DRIVER_LIBRARY_H

#include "sherd/err.h"

/** Loads `file`, or where it is NULL the first of `names` that can be loaded; NULL ends the list.
 *  what: the interface, for messages. SHERD_EUNSUPPORTED: none is found. SHERD_EDEVICE: one is
 *  there, and cannot be loaded. *d has the loader's reason for that one, or else for the first of
 *  `names`, and `hint`. */
int sherd__driver_library(void **out, const char *file, const char *const *names, const char *what,
                          const char *hint, sherd_diag *d) SHERD_MUST;
/** Stores the address of a function in *member, a pointer to a function; NULL if the library lacks
 *  it. */
void sherd__driver_symbol(void *library, const char *name, void *member);
/** Checks that this process may read and write those files in `folder` that are there; NULL ends
 *  `names`. SHERD_EDEVICE: *d names the first file that it may not, and the file's group. */
int sherd__driver_files(const char *folder, const char *const *names, sherd_diag *d) SHERD_MUST;

#endif
