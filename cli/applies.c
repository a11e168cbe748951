/* Applies the rules of the header to the sources of values. */
#include "cli/applies.h"

#include "cli/options.h"

bool sherd__opt_in_effect(const sherd__cli *cli, const char *name)
{
    return sherd__opt_source(cli, name) > SHERD__FROM_PRESET;
}

bool sherd__opt_ineffective(sherd__cli *cli, const char *name)
{
    sherd__source source = sherd__opt_source(cli, name);
    if (source == SHERD__FROM_ARGV) return true;
    if (source > SHERD__FROM_PRESET) sherd__opt_forget(cli, name);
    return false;
}

const char *sherd__opts_ineffective(sherd__cli *cli, const char *const *names)
{
    for (; *names; names++)
        if (sherd__opt_ineffective(cli, *names)) return *names;
    return NULL;
}

void sherd__opts_drop(sherd__cli *cli, const char *const *names)
{
    for (; *names; names++) (void)sherd__opt_ineffective(cli, *names);
}

bool sherd__opts_clash(sherd__cli *cli, const char *a, const char *b)
{
    sherd__source of_a = sherd__opt_source(cli, a), of_b = sherd__opt_source(cli, b);
    if (of_a <= SHERD__FROM_PRESET || of_b <= SHERD__FROM_PRESET) return false;
    if (of_a == of_b) return true;
    sherd__opt_forget(cli, of_a < of_b ? a : b);
    return false;
}
