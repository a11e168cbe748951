/*
 * Compares the environment with the tables of all verbs. A variable that is not read deserves a
 * warning: SHERD_DRY_RUN=1 before a command would otherwise let it run without a dry run. Options
 * for one run and options that name secrets are never read from the environment (cli/cli.h).
 */
#include "cli/environment.h"

#include <string.h>

#include "cli/options.h"
#include "core/suggest.h"

#define NAMES_MAX 255
#define NAME_SIZE 64

typedef struct naming {
    const char *name; /* of the variable */
    size_t name_len;
    bool read, on_argv; /* read by a verb; only allowed on the command line */
    size_t len;
    char names[NAMES_MAX][NAME_SIZE]; /* variables that are read */
} naming;

static void add(naming *n, const char *name)
{
    for (size_t i = 0; i < n->len; i++)
        if (strcmp(n->names[i], name) == 0) return;
    if (n->len < NAMES_MAX) snprintf(n->names[n->len++], NAME_SIZE, "%s", name);
}

static bool look(void *ctx, const sherd__verb *v, const char *title)
{
    naming *n = ctx;
    char name[NAME_SIZE];
    const sherd__option *list[SHERD__OPTIONS_MAX];
    size_t len = sherd__options_of(v, list, SHERD__OPTIONS_MAX);
    (void)title;
    for (size_t i = 0; i < len; i++) {
        bool of_env = (list[i]->flags & (SHERD__OPT_NO_ENV | SHERD__OPT_ONLY_ARGV)) == 0;
        sherd__option_env_name(list[i], name);
        bool is_it = strlen(name) == n->name_len && memcmp(name, n->name, n->name_len) == 0;
        n->read = n->read || (is_it && of_env);
        n->on_argv = n->on_argv || (is_it && !of_env);
        if (of_env) add(n, name);
    }
    return n->read;
}

static bool ours(const char *variable)
{
    static const char *const others[] = { "SHERD_TEST_", "SHERD_MNIST=", "SHERD_CUDA_PATH=" };
    bool other = false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        other |= strncmp(variable, others[i], strlen(others[i])) == 0;
    return strncmp(variable, "SHERD_", 6) == 0 && !other;
}

bool sherd__env_unread(const char *variable, char why[240])
{
    const char *known[NAMES_MAX + 1] = { NULL };
    char name[NAME_SIZE];
    naming n = { .name = variable, .name_len = strcspn(variable, "=") };
    if (!ours(variable) || sherd__verbs_each(look, &n)) return false;
    for (size_t i = 0; i < n.len; i++) known[i] = n.names[i];
    snprintf(name, sizeof name, "%.*s", (int)(n.name_len < 60 ? n.name_len : 60), variable);
    const char *near = n.on_argv ? NULL : sherd__suggest(name, known);
    snprintf(why, 240, "%s %s%s%s%s", name,
             n.on_argv ? "is ignored: its option can only be given on the command line"
                       : "sets no option",
             near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return true;
}

void sherd__env_warn(const sherd__cli *cli, char *const *env)
{
    char why[240];
    for (; *env; env++)
        if (sherd__env_unread(*env, why)) sherd__cli_warn(cli, "%s", why);
}
