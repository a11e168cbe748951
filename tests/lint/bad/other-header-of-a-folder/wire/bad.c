/* Wrong. */
#include "crypto/perm.h"
