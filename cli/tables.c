/*
 * Rows that are shared by verbs, and functions that walk all tables: help, man page, completion and
 * "did you mean" use the same options as the parser.
 */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "cli/options.h"
#include "sherd/node.h"

const char *const sherd__choices_bind_to[] = { "core", "none", NULL };
const char *const sherd__choices_progress[] = { "auto", "bar", "plain", "none", NULL };
const char *const sherd__choices_public[] = { "b", NULL };
const char *const sherd__choices_encoding[] = { "auto", "dense", "csr", NULL };
const char *const sherd__choices_code[] = { "auto", "lagrange", "inner", NULL };
const char *const sherd__choices_exposure[] = { "uniform", "balanced", NULL };
const char *const sherd__choices_mode[] = { "float", "exact", NULL };

/* clang-format off */
const sherd__option sherd__options_general[] = {
    { .name = "config", .type = SHERD__FILE, .arg = "FILE",
      .help = "also read options from FILE (`option = value` lines)" },
    { .name = "json", .type = SHERD__FLAG, .help = "print one JSON object on stdout, also on "
                                                   "failure" },
    { .name = "quiet", .letter = 'q', .type = SHERD__FLAG,
      .help = "print only errors and warnings on stderr" },
    { .name = "verbose", .letter = 'v', .type = SHERD__COUNT, .help = "print more messages on "
                                                                      "stderr" },
    { .name = "help", .letter = 'h', .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,
      .help = "print this help" },
    { 0 },
};
/* clang-format on */

size_t sherd__options_of(const sherd__verb *v, const sherd__option **out, size_t max)
{
    size_t len = 0;
    const sherd__option *const lists[] = { v->options, sherd__options_general };
    for (size_t i = 0; i < 2; i++)
        for (const sherd__option *o = lists[i]; o && o->name; o++) {
            if (v->text && strcmp(o->name, "json") == 0) continue;
            assert(len < max);
            out[len++] = o;
        }
    return len;
}

#define SCHEMES_MAX 64

static const char *const *scheme_names(void)
{
    static const char *names[SCHEMES_MAX + 1];
    const sherd_scheme_info *s;
    for (size_t i = 0; (s = sherd_scheme_at(i)); i++) {
        assert(i < SCHEMES_MAX);
        names[i] = s->name;
    }
    return names;
}

#define BACKENDS_MAX 16

static const char *const *backend_names(void)
{
    static const char *names[BACKENDS_MAX + 2] = { "auto" };
    for (size_t i = 0; sherd_backend_name(i); i++) {
        assert(i < BACKENDS_MAX);
        names[i + 1] = sherd_backend_name(i);
    }
    return names;
}

const char *const *sherd__option_choices(const sherd__option *o)
{
    if (o->flags & SHERD__OPT_BACKENDS) return backend_names();
    return o->flags & SHERD__OPT_SCHEMES ? scheme_names() : o->choices;
}

const sherd_scheme_info *sherd__opt_scheme(const sherd__cli *cli)
{
    return sherd_scheme_at((size_t)sherd__opt_choice(cli, "scheme"));
}

bool sherd__option_applies(const sherd__option *o, const sherd_scheme_info *s)
{
    if (o->flags & SHERD__OPT_PUBLIC) return s->public_b != 0;
    return !o->takes || (s->takes & o->takes);
}

const sherd_scheme_info *sherd__option_scheme(const sherd__option *o, size_t *i)
{
    const sherd_scheme_info *s;
    while ((s = sherd_scheme_at((*i)++))) {
        bool network = o->flags & SHERD__OPT_NETWORK;
        if (sherd__option_applies(o, s) && (!network || sherd_scheme_for_network(s->scheme)))
            return s;
    }
    return NULL;
}

const char *sherd__option_help(const sherd__option *o, char out[320])
{
    const sherd_scheme_info *s;
    int at = 0;
    bool some = o->takes || o->flags & SHERD__OPT_PUBLIC;
    for (size_t i = 0; some && (s = sherd__option_scheme(o, &i)) && at < 320;)
        at += snprintf(out + at, 320 - (size_t)at, "%s%s", at ? ", " : "", s->name);
    if (at < 320) at += snprintf(out + at, 320 - (size_t)at, "%s%s", at ? ": " : "", o->help);
    const char *between = ": ";
    for (size_t i = 0; o->flags & SHERD__OPT_BACKENDS && backend_names()[i] && at < 320; i++)
        at += snprintf(out + at, 320 - (size_t)at, "%s%s", i ? ", " : ": ", backend_names()[i]);
    for (size_t i = 0; o->flags & SHERD__OPT_SCHEMES && (s = sherd__option_scheme(o, &i));) {
        const char *what = !sherd_scheme_private(s->scheme) ? " (not private)"
                           : s->hides_b                     ? " (private)"
                                                            : " (private, B public)";
        if (at < 320) at += snprintf(out + at, 320 - (size_t)at, "%s%s%s", between, s->name, what);
        between = ", ";
    }
    return out;
}

bool sherd__verbs_each(bool (*fn)(void *ctx, const sherd__verb *v, const char *title), void *ctx)
{
    char title[48];
    for (const sherd__verb *const *v = sherd__verbs; *v; v++) {
        if (!(*v)->subs && fn(ctx, *v, (*v)->name)) return true;
        for (const sherd__verb *const *s = (*v)->subs; s && *s; s++) {
            snprintf(title, sizeof title, "%s %s", (*v)->name, (*s)->name);
            if (fn(ctx, *s, title)) return true;
        }
    }
    return false;
}

void sherd__option_env_name(const sherd__option *o, char out[64])
{
    int n = snprintf(out, 64, "SHERD_%s", o->name);
    assert(n < 64);
    for (char *p = out; *p != '\0'; p++) *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}
