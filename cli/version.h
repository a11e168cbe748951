/* Libraries that are loaded into this process, for `version` and `doctor`. */
#ifndef CLI_VERSION_H
#define CLI_VERSION_H

#include <stddef.h>

size_t sherd__library_count(void);
const char *sherd__library_name(size_t i);
/** Returns the version of library i: "1.44.2", or "not loaded"; may point into out. */
const char *sherd__library_version(size_t i, char out[64]);

#endif
