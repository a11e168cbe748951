/*
 * Help from the tables. It shows the tables that the parser reads; there is no second list.
 * Requested help is printed on stdout; help after a user error is printed on stderr.
 */
#include "cli/help.h"

#include <assert.h>
#include <string.h>

#include "cli/options.h"
#include "core/suggest.h"

#define WIDTH 80
#define OPTION_COLUMN 26

/* ---- laying out text ------------------------------------------------------------------------- */

static void newline(FILE *out, int indent)
{
    fprintf(out, "\n%*s", indent, "");
}

static const char *put_word(FILE *out, const char *s, int *at, int indent, int width)
{
    size_t n = strcspn(s, " \n");
    bool first = *at == indent;
    if (!first && *at + 1 + (int)n > width) {
        newline(out, indent);
        *at = indent;
        first = true;
    }
    fprintf(out, "%s%.*s", first ? "" : " ", (int)n, s);
    *at += (int)n + (first ? 0 : 1);
    return s + n;
}

void sherd__print_filled(FILE *out, const char *text, int at, int indent, int width)
{
    const char *s = text;
    while (*s != '\0') {
        if (*s == ' ' && (s == text || s[-1] == '\n')) { /* printed unchanged */
            int n = (int)strcspn(s, "\n");
            if (at != indent) newline(out, indent);
            fprintf(out, "%.*s", n, s);
            at = indent + n;
            s += n;
        } else if (*s == '\n') {
            size_t n = strspn(s, "\n");
            if (n > 1) fputc('\n', out);
            if (n > 1 && s[n] != '\0') newline(out, indent);
            if (n > 1) at = indent;
            s += n;
        } else if (*s == ' ') {
            s++;
        } else {
            s = put_word(out, s, &at, indent, width);
        }
    }
    fputc('\n', out);
}

int sherd__option_synopsis(const sherd__option *o, char *out, size_t size)
{
    char letter[8] = "    ";
    if (o->letter != 0) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    return snprintf(out, size, "%s--%s%s%s", letter, o->name, o->arg ? " " : "",
                    o->arg ? o->arg : "");
}

static void print_option(FILE *out, const sherd__option *o)
{
    char head[96], help[320], text[400];
    int at = sherd__option_synopsis(o, head, sizeof head) + 2;
    snprintf(text, sizeof text, "%s%s%s%s", sherd__option_help(o, help), o->preset ? " [" : "",
             o->preset ? o->preset : "", o->preset ? "]" : "");
    fprintf(out, "  %s", head);
    if (at + 2 > OPTION_COLUMN) newline(out, OPTION_COLUMN);
    else fprintf(out, "%*s", OPTION_COLUMN - at, "");
    sherd__print_filled(out, text, OPTION_COLUMN, OPTION_COLUMN, WIDTH);
}

/* ---- finding verbs --------------------------------------------------------------------------- */

const sherd__verb *sherd__verb_find(const sherd__verb *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp((*list)->name, name) == 0) return *list;
    return NULL;
}

int sherd__verb_unknown(const sherd__verb *const *list, const char *title, const char *name,
                        sherd_diag *d)
{
    char hint[120];
    const char *known[64];
    size_t len = 0;
    for (; *list; list++)
        if (!(*list)->hidden && len < 63) known[len++] = (*list)->name;
    known[len] = NULL;
    const char *near = sherd__suggest(name, known);
    const char *space = *title != '\0' ? " " : "";
    if (near) snprintf(hint, sizeof hint, "did you mean `sherd %s%s%s`?", title, space, near);
    else snprintf(hint, sizeof hint, "`sherd help%s%s` lists them", space, title);
    return sherd__fail(d, SHERD_EINVAL, hint, "unknown verb '%.60s'", name);
}

/* ---- three levels of help -------------------------------------------------------------------- */

void sherd__help_short(FILE *out)
{
    char names[400] = "";
    size_t at = 0;
    for (const sherd__verb *const *v = sherd__verbs; *v && at < sizeof names; v++)
        if (!(*v)->hidden)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", (*v)->name,
                                   v[1] ? ", " : "");
    fputs("sherd splits matrix products into fragments, has them computed by machines that\n"
          "are not trusted with the whole, and puts the results together.\n\n"
          "  sherd demo                                a demonstration on 7 local nodes\n"
          "  sherd multiply A.npy B.npy -o C.npy -n 7  a product over 7 local nodes\n"
          "  sherd help VERB                           examples and options of a verb\n\n"
          "Verbs: ",
          out);
    sherd__print_filled(out, names, 7, 7, WIDTH);
    fputs("`sherd help` describes each verb.\n", out);
}

static void print_verbs(FILE *out, const sherd__verb *const *list, const char *title)
{
    char name[64];
    for (; *list; list++) {
        if ((*list)->hidden) continue;
        snprintf(name, sizeof name, "%s%s%s", title, *title != '\0' ? " " : "", (*list)->name);
        fprintf(out, "  %-16s ", name);
        sherd__print_filled(out, (*list)->summary, 19, 19, WIDTH);
    }
}

void sherd__help_verbs(FILE *out)
{
    fputs("Usage: sherd VERB [options] [--] [arguments]\n\n", out);
    print_verbs(out, sherd__verbs, "");
    fputc('\n', out);
    sherd__print_filled(out,
                        "`sherd help VERB` begins with three examples. Options can be abbreviated. "
                        "They can also be set by SHERD_OPTION in the environment or "
                        "`option = value` in ~/.config/sherd/config. Documents that messages name "
                        "are in share/doc/sherd of the installation.",
                        0, 0, WIDTH);
}

/* Prints a command of any length, which can be copied to a shell. */
static void print_command(FILE *out, const char *s)
{
    int at = 2;
    fputc(' ', out);
    for (size_t n; *s != '\0'; s += n + strspn(s + n, " ")) {
        n = strcspn(s, " ");
        int mark = s[n] != '\0' ? 2 : 0; /* room for the mark of a continued line */
        bool fits = at == 2 || at + 1 + (int)n + mark <= WIDTH;
        if (!fits) at = fprintf(out, " \\\n   ") - 3;
        at += fprintf(out, " %.*s", (int)n, s);
    }
}

void sherd__help_verb(FILE *out, const sherd__verb *v, const char *title)
{
    for (const sherd__example *e = v->examples; e && e->command; e++) {
        print_command(out, e->command);
        newline(out, 6);
        sherd__print_filled(out, e->help, 6, 6, WIDTH);
    }
    if (v->subs) {
        fprintf(out, "\nUsage: sherd %s VERB [options] [arguments]\n\n", title);
        print_verbs(out, v->subs, title);
        return;
    }
    fprintf(out, "\nUsage: sherd %s [options]%s%s\n\n", title, v->usage && *v->usage ? " " : "",
            v->usage ? v->usage : "");
    sherd__print_filled(out, v->details ? v->details : v->summary, 0, 0, WIDTH);
    fputc('\n', out);
    const sherd__option *list[SHERD__OPTIONS_MAX];
    size_t len = sherd__options_of(v, list, SHERD__OPTIONS_MAX);
    for (size_t i = 0; i < len; i++)
        if ((list[i]->flags & SHERD__OPT_HIDDEN) == 0) print_option(out, list[i]);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int run_help(sherd__cli *cli, sherd_diag *d)
{
    char title[48];
    if (sherd__opt_flag(cli, "man")) {
        sherd__help_man(stdout);
        return 0;
    }
    if (cli->args_len == 0) {
        sherd__help_verbs(stdout);
        return 0;
    }
    const sherd__verb *v = sherd__verb_find(sherd__verbs, cli->args[0]);
    if (!v) return sherd__verb_unknown(sherd__verbs, "", cli->args[0], d);
    snprintf(title, sizeof title, "%s", v->name);
    if (cli->args_len == 2) {
        if (!v->subs) return sherd__fail(d, SHERD_EINVAL, NULL, "%s has no sub-verbs", v->name);
        const sherd__verb *sub = sherd__verb_find(v->subs, cli->args[1]);
        if (!sub) return sherd__verb_unknown(v->subs, v->name, cli->args[1], d);
        snprintf(title, sizeof title, "%s %s", v->name, sub->name);
        v = sub;
    }
    sherd__help_verb(stdout, v, title);
    return 0;
}

static const sherd__example examples[] = {
    { "sherd help", "lists the verbs" },
    { "sherd help multiply", "examples and options of `multiply`" },
    { "sherd help meta build", "the same for a sub-verb" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "man", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "print sherd(1) in man macros" },
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_help = {
    .name = "help",
    .usage = "[VERB [VERB]]",
    .summary = "print examples and options of a verb",
    .examples = examples,
    .options = options,
    .args_max = 2,
    .run = run_help,
    .text = true,
};
