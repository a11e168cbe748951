/* Which nodes a command uses: those of -n, of --nodes, or of a running local cluster. */
#include "cli/nodes.h"

#include <limits.h>
#include <string.h>

#include "cli/process.h"
#include "sherd/local.h"
#include "sherd/machine.h"

/* Reads the options that name nodes. file: receives the path of the node file, empty if local nodes
 * are to be started; *o borrows from it. */
static int read_options(sherd_cluster_options *o, char file[PATH_MAX], const sherd__cli *cli,
                        sherd_diag *d)
{
    const char *nodes = sherd__opt_text(cli, "nodes");
    *o = (sherd_cluster_options){ .size = sizeof *o };
    file[0] = '\0';
    o->same_host_domains = sherd__opt_flag(cli, "same-host-domains");
    if (nodes) {
        snprintf(file, PATH_MAX, "%s", nodes);
        o->nodes_file = nodes;
        return 0;
    }
    o->local_nodes = (uint32_t)sherd__opt_int(cli, "local"); /* given, or preset by the verb */
    if (o->local_nodes > 0) return 0;
    sherd_diag why = { .code = 0 };
    int err = sherd_local_nodes_file(NULL, file, PATH_MAX, &why);
    if (err == SHERD_EFEWNODES)
        return sherd__fail(d, SHERD_EINVAL,
                           "-n 7 starts seven nodes on this machine; --nodes FILE uses those that "
                           "FILE lists",
                           "no nodes: give -n N or --nodes FILE");
    if (err)
        return sherd__fail(d, err, why.hint, "no nodes: give -n N or --nodes FILE; %s",
                           why.message);
    o->running = o->same_host_domains = true;
    return 0;
}

static int check(sherd__cli *cli, const sherd_product_options *work, uint32_t *nodes,
                 bool *loopback, sherd_diag *d)
{
    sherd_cluster_options o;
    char file[PATH_MAX];
    int err = read_options(&o, file, cli, d);
    o.work = work;
    return err ? err : sherd_cluster_check(nodes, loopback, &o, d);
}

int sherd__nodes_file(char *file, size_t size, bool *same_host, sherd__cli *cli, sherd_diag *d)
{
    sherd_cluster_options o;
    char path[PATH_MAX];
    int err = read_options(&o, path, cli, d);
    if (err) return err;
    snprintf(file, size, "%s", path);
    *same_host = o.same_host_domains;
    return 0;
}

int sherd__nodes_count(uint32_t *out, bool *loopback, sherd__cli *cli, sherd_diag *d)
{
    return check(cli, NULL, out, loopback, d);
}

int sherd__nodes_suit(sherd__cli *cli, const sherd_product_options *opt, sherd_diag *d)
{
    return check(cli, opt, NULL, NULL, d);
}

static bool interrupted(void *ctx)
{
    (void)ctx;
    return sherd__cli_interrupted() != 0;
}

void sherd__nodes_log(const sherd__cli *cli, sherd_log_level level, const char *text)
{
    if (level == SHERD_LOG_WARN) sherd__cli_warn(cli, "%s", text);
    else if (level == SHERD_LOG_INFO || cli->verbose > 1) sherd__cli_note(cli, "%s", text);
}

static void log_line(void *ctx, sherd_log_level level, const char *text)
{
    sherd__nodes_log(ctx, level, text);
}

/* Starting many nodes takes a while, and nodes beyond the number of cores share them. */
static void say_start(const sherd__cli *cli, uint32_t nodes)
{
    sherd_machine machine = { .size = sizeof machine };
    if (sherd_machine_get(&machine, NULL) == 0 && nodes > machine.cores)
        sherd__cli_say(cli, "starting %u nodes, which share the %u core%s of this machine", nodes,
                       machine.cores, machine.cores == 1 ? "" : "s");
}

int sherd__nodes_open(sherd_cluster **out, sherd__cli *cli, const sherd_product_options *work,
                      sherd_diag *d)
{
    sherd_cluster_options o;
    char file[PATH_MAX];
    *out = NULL;
    int err = read_options(&o, file, cli, d);
    if (err) return err;
    o.key_file = sherd__opt_text(cli, "key");
    if (o.nodes_file && !o.key_file)
        return sherd__fail(d, SHERD_EINVAL,
                           "`sherd keygen me.key` makes one; the nodes must allow it",
                           "%s also needs --key FILE: nodes serve only keys that they allow",
                           sherd__opt_where(cli, "nodes"));
    o.work = work;
    if (!work) o.nodes_min = 1;
    o.timeout_ms = sherd__opt_time_ms(cli, "timeout");
    o.program = SHERD__SELF;
    o.node_memory = sherd__opt_size(cli, "node-memory");
    o.unbound = sherd__opt_choice(cli, "bind-to") == SHERD__BIND_NONE;
    o.record_dir = sherd__opt_text(cli, "record");
    o.hooks = (sherd_hooks){ .interrupted = interrupted, .log = log_line, .ctx = cli };
    if (o.local_nodes > 0) say_start(cli, o.local_nodes);
    return sherd_cluster_open(out, &o, d);
}
