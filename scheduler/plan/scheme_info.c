/* Public queries of the table of schemes. The description of an unknown scheme has only a name, so
 * it is treated as a scheme that hides nothing. */
#include "scheduler/plan/schemes.h"

const sherd__scheme *sherd__scheme_find(sherd_scheme s)
{
    for (const sherd__scheme *e = sherd__schemes; e->info; e++)
        if (e->info->scheme == s) return e;
    return NULL;
}

const sherd_scheme_info *sherd_scheme_at(size_t i)
{
    const sherd__scheme *e = sherd__schemes;
    while (i > 0 && e->info) e++, i--;
    return e->info;
}

const sherd_scheme_info *sherd_scheme_describe(sherd_scheme s)
{
    static const sherd_scheme_info unknown = { .name = "unknown" };
    const sherd__scheme *e = sherd__scheme_find(s);
    return e ? e->info : &unknown;
}

bool sherd_scheme_private(sherd_scheme s)
{
    const sherd_scheme_info *info = sherd_scheme_describe(s);
    return info->hides_a && info->withstands != SHERD_WITHSTANDS_NONE;
}

bool sherd_scheme_for_network(sherd_scheme s)
{
    const sherd_scheme_info *info = sherd_scheme_describe(s);
    return info->scheme && (info->hides_b || !sherd_scheme_private(s));
}
