/* The version that these headers belong to; sherd_version() tells that of the library loaded. */
#ifndef SHERD_VERSION_H
#define SHERD_VERSION_H

#define SHERD_VERSION "0.1.0"

#endif
