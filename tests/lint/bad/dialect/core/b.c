/* Core: whoever calls it begins anew. */
#include "core/a.h"
