/* Compares the sources of option values as cli/applies.h describes. */
#include "cli/applies.h"

#include "cli/options.h"

bool sherd__opt_is_set(const sherd__cli *cli, const char *name)
{
    return sherd__opt_source(cli, name) > SHERD__FROM_PRESET;
}

bool sherd__opt_forget_unless_argv(sherd__cli *cli, const char *name)
{
    sherd__option_source source = sherd__opt_source(cli, name);
    if (source == SHERD__FROM_ARGV) return true;
    if (source > SHERD__FROM_PRESET) sherd__opt_forget(cli, name);
    return false;
}

const char *sherd__opts_forget_unless_argv(sherd__cli *cli, const char *const *names)
{
    for (; *names; names++)
        if (sherd__opt_forget_unless_argv(cli, *names)) return *names;
    return NULL;
}

const sherd__option *sherd__opts_forget_unread(sherd__cli *cli, const sherd_scheme_info *s,
                                               unsigned also)
{
    for (const sherd__option *o = cli->verb->options; o->name; o++)
        if (!(o->takes & also) && !sherd__option_applies(o, s) &&
            sherd__opt_forget_unless_argv(cli, o->name))
            return o;
    return NULL;
}

int sherd__opt_refuse(const sherd__option *o, const sherd_scheme_info *s, sherd_diag *d)
{
    char hint[80];
    size_t i = 0;
    const sherd_scheme_info *reads = sherd__option_scheme(o, &i);
    if (s->hides_zeros && o->takes & SHERD_TAKES_ENCODING)
        snprintf(hint, sizeof hint, "omit it: a coded operand has no zero entries");
    else
        snprintf(hint, sizeof hint, "leave it out%s%s", reads ? ", or use --scheme " : "",
                 reads ? reads->name : "");
    return sherd__fail(d, SHERD_EINVAL, hint, "--%s has no effect under --scheme %s%s", o->name,
                       s->name, sherd_scheme_private(s->scheme) ? "" : ", which is not private");
}

void sherd__opts_forget(sherd__cli *cli, const char *const *names)
{
    for (; *names; names++) (void)sherd__opt_forget_unless_argv(cli, *names);
}

bool sherd__opts_clash(sherd__cli *cli, const char *a, const char *b)
{
    sherd__option_source of_a = sherd__opt_source(cli, a), of_b = sherd__opt_source(cli, b);
    if (of_a <= SHERD__FROM_PRESET || of_b <= SHERD__FROM_PRESET) return false;
    if (of_a == of_b) return true;
    sherd__opt_forget(cli, of_a < of_b ? a : b);
    return false;
}
