/* Crypto: wire may not use this. */
#include "crypto/perm.h"

int sherd__perm(int x)
{
    return -x;
}
