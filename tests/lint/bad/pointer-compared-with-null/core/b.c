/* Core: the other source. */
#include "core/a.h"

static int length(const char *text)
{
    if (text == 0 || text == NULL) return 0;
    return 1;
}
