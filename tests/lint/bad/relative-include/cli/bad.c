/* The command, which includes crypto by way of the parent folder. */
#include "../crypto/perm.h"
