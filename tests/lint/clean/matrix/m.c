/* Matrix: includes core. */
#include "matrix/m.h"

#include "core/a.h"

int sherd__m(int x)
{
    return sherd__a(x);
}
