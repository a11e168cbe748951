/* Core: the other source. */
#include "core/a.h"

static const char *text(void)
{
    return "the work goes on";
}
