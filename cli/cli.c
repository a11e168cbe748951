/*
 * From argv to an exit code: finds the verb, reads its options, runs it, and reports how it ended.
 */
#include "cli/cli.h"
#include "cli/command.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/verbs.h"
#include "cli/bus.h"
#include "cli/environment.h"
#include "cli/help.h"
#include "cli/limit.h"
#include "cli/node.h"
#include "cli/options.h"
#include "cli/process.h"
#include "cli/report.h"
#include "sherd/machine.h"

extern const sherd__verb sherd__verb_doctor;

#define SYSTEM_CONFIG "/etc/sherd/config"

/* Returns the user's configuration file by the XDG base directory rules: a relative XDG_CONFIG_HOME
 * does not count. NULL without a home. */
static const char *user_config(char *out, size_t size)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n;
    if (xdg && *xdg == '/') n = snprintf(out, size, "%s/sherd/config", xdg);
    else if (home && *home == '/') n = snprintf(out, size, "%s/.config/sherd/config", home);
    else return NULL;
    return n > 0 && (size_t)n < size ? out : NULL;
}

/* Looks for --json before parsing, because errors in the options must already be printed as
 * JSON. */
static bool asks_for_json(int argc, char **argv)
{
    const char *env = getenv("SHERD_JSON");
    bool json = env && (strcmp(env, "1") == 0 || strcmp(env, "yes") == 0 ||
                        strcmp(env, "true") == 0 || strcmp(env, "on") == 0);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0) json = true;
        if (strcmp(argv[i], "--no-json") == 0) json = false;
    }
    return json;
}

/* For `sherd meta build ...`: goes to the sub-verb that runs; *argv then begins with its name. */
static int find_verb(sherd__cli *cli, int *argc, char ***argv, bool *help, sherd_diag *d)
{
    const char *name = (*argv)[0];
    if (name[0] == '-')
        return sherd__fail(d, SHERD_EINVAL, "options follow the verb: sherd help",
                           "expected a verb, found '%.60s'", name);
    cli->verb = strcmp(name, SHERD__BENCH_NODE) == 0 ? &sherd__verb_bench_node
                                                     : sherd__verb_find(sherd__verbs, name);
    if (!cli->verb) return sherd__verb_unknown(sherd__verbs, "", name, d);
    snprintf(cli->title, sizeof cli->title, "%s", name);
    if (!cli->verb->subs) return 0;
    const char *sub = *argc > 1 ? (*argv)[1] : NULL;
    char hint[80];
    snprintf(hint, sizeof hint, "%ssherd help %s", sub ? "options follow the verb: " : "", name);
    if (!sub) return sherd__fail(d, SHERD_EINVAL, hint, "expected a verb after `sherd %s`", name);
    *help = strcmp(sub, "--help") == 0 || strcmp(sub, "-h") == 0;
    if (*help) return 0;
    if (sub[0] == '-')
        return sherd__fail(d, SHERD_EINVAL, hint, "expected a verb after `sherd %s`, found '%.60s'",
                           name, sub);
    const sherd__verb *found = sherd__verb_find(cli->verb->subs, sub);
    if (!found) return sherd__verb_unknown(cli->verb->subs, name, sub, d);
    cli->verb = found;
    snprintf(cli->title, sizeof cli->title, "%s %s", name, sub);
    (*argc)--;
    (*argv)++;
    return 0;
}

static int run(sherd__cli *cli, int argc, char **argv, sherd_diag *d)
{
    char path[PATH_MAX];
    bool help = false;
    int err = find_verb(cli, &argc, &argv, &help, d);
    if (err) return err;
    sherd__opts_sources src = { environ, user_config(path, sizeof path), SYSTEM_CONFIG };
    if (!help) err = sherd__opts_parse(cli, argc, argv, &src, &help, d);
    if (err) return err;
    if (help) {
        sherd__help_verb(stdout, cli->verb, cli->title);
        return 0;
    }
    sherd__bus_start(cli);
    sherd__limit_start(cli);
    if (cli->verb != &sherd__verb_doctor) sherd__env_warn(cli, environ); /* doctor lists them */
    return cli->verb->run(cli, d);
}

int sherd__cli_main(int argc, char **argv)
{
    static char help[] = "help", version[] = "version";
    sherd__cli cli = { 0 };
    sherd_diag d = { 0 };
    sherd__process_start();
    cli.json = asks_for_json(argc, argv);
    if (sherd_blas_ready(&d)) _exit(sherd__cli_end(&cli, SHERD_ENOMEM, &d));
    if (argc < 2) {
        sherd__help_short(stderr);
        return sherd_err_exit(SHERD_EINVAL);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) argv[1] = help;
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) argv[1] = version;
    int code = sherd__cli_end(&cli, run(&cli, argc - 1, argv + 1, &d), &d);
    sherd__opts_free(cli.opts);
    return code;
}
