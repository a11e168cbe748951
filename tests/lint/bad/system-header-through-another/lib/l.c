/* A public call. */
#include "wire/link.h"

int sherd__l(int x)
{
    return sherd__link(x);
}
