/* Core: the other source. */
#include "core/a.h"

static int length(const char *text)
{
    if (text == NULL) return 0;
    return 1;
}
