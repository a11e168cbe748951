/* The version of these headers, and that of the library loaded. */
#ifndef SHERD_VERSION_H
#define SHERD_VERSION_H

#include "sherd/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHERD_VERSION "0.2.0"

/** Returns SHERD_VERSION as it was when the library was built. */
SHERD_API const char *sherd_version(void);

#ifdef __cplusplus
}
#endif

#endif
