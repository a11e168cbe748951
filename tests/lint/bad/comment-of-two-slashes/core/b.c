/* Core: the other source ("https://example.org"). */
// Not a comment of this project.
#include "core/a.h"
