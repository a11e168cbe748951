/* Core: the other source. */
#include "core/a.h"

static const char *text(void)
{
    return "the node lets "
           "go of the block";
}
