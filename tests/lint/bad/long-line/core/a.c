/* Core. */
#include "core/a.h"
/* A line that goes on and on, past the hundredth column, where a reader with two windows side by side loses it. */
#include "sherd/err.h"
const char *sherd_strerror(int err)
{
    return err ? "error" : "success";
}
int sherd__a(int x)
{
    return x + 1;
}
