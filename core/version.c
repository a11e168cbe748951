/* The version of the library at run time, which can differ from the version of the headers. */
#include "sherd/version.h"

const char *sherd_version(void)
{
    return SHERD_VERSION;
}
