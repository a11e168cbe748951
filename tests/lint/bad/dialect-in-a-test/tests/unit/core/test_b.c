/* Tests of core. */
/* Nobody calls it. */
#include "core/a.h"
