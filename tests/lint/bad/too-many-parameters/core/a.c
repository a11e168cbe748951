/* Core: includes no other folder (docs/GUIDE.md, "Second part"). */
#include "core/a.h"

#include "sherd/err.h"

const char *sherd_strerror(int err)
{
    return err ? "error" : "success";
}

int sherd__a(int x)
{
    return x + 1;
}

int sherd__many(int a, int b, int c, int d, int e, int f,
                int (*of)(int, int))
{
    return a + b + c + d + e + f + of(a, b);
}
