/* Matrix: includes core. */
#include "matrix/m.h"

#include "core/a.h"

int sherd__m(int x)
{
    return sherd__a(x);
}

static int seven(int a, int b, int c, int d, int e, int f, int g)
{
    return a + b + c + d + e + f + g;
}

int sherd__six(int a, int b, int c, int d, int e, int (*sum)(int, int))
{
    return seven(a, b, c, d, e, sum(a, b), 1);
}
