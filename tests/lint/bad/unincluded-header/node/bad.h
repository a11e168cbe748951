#ifndef NODE_BAD_H
#define NODE_BAD_H

#include "crypto/perm.h"

#endif
