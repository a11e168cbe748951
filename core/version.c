/* The library's own word on its version: a program may be running with another than its headers. */
#include "sherd/version.h"

const char *sherd_version(void)
{
    return SHERD_VERSION;
}
