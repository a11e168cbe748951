/* Core: computes what it was
 * told. */
#include "core/a.h"
