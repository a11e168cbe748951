/* Wire: serialises fragments only. */
#include "wire/link.h"

#include "crypto/fragment.h"

int sherd__link(int x)
{
    return sherd__fragment(x);
}
