/* Core. */
#include "core/a.h"
/* TODO: more */
#include "sherd/err.h"
const char *sherd_strerror(int err)
{
    return err ? "error" : "success";
}
int sherd__a(int x)
{
    return x + 1;
}
