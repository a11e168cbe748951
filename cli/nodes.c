/* Which nodes a command uses: those of -n, of --nodes, or of a running local cluster. */
#include "cli/nodes.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "cli/applies.h"
#include "cli/fields.h"
#include "cli/process.h"
#include "sherd/local.h"
#include "sherd/machine.h"

/* Reads where the nodes of -n compute; other nodes were started before. */
static int read_devices(sherd_cluster_options *o, sherd__cli *cli, sherd_diag *d)
{
    static const char *const of_local[] = { "backend", "device", "devices", NULL };
    const char *idle = o->local_nodes ? NULL : sherd__opts_forget_unless_argv(cli, of_local);
    if (idle)
        return sherd__fail(d, SHERD_EINVAL, "add -n N, or start the nodes with it",
                           "--%s has no effect without -n", idle);
    o->backend = sherd__opt_text(cli, "backend");
    o->devices = sherd__opt_text(cli, "device");
    o->devices_each = (uint32_t)sherd__opt_int(cli, "devices");
    o->opencl_library = sherd__opt_text(cli, "opencl-library");
    o->cuda_library = sherd__opt_text(cli, "cuda-library");
    return 0;
}

/* Reads the options that name nodes. *o borrows from *cli. */
static int read_source(sherd_cluster_options *o, sherd__cli *cli, sherd_diag *d)
{
    char file[PATH_MAX];
    *o = (sherd_cluster_options){ .size = sizeof *o,
                                  .nodes_file = sherd__opt_text(cli, "nodes"),
                                  .same_host_domains = sherd__opt_flag(cli, "same-host-domains"),
                                  .node_memory = sherd__opt_size(cli, "node-memory") };
    if (!o->nodes_file) /* given, or preset by the verb */
        o->local_nodes = (uint32_t)sherd__opt_int(cli, "local");
    int err = read_devices(o, cli, d);
    if (err || o->nodes_file || o->local_nodes > 0) return err;
    sherd_diag why = { .code = 0 };
    err = sherd_local_nodes_file(NULL, file, PATH_MAX, &why);
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

static int check(sherd__cli *cli, const sherd_product_options *work, uint32_t *nodes, sherd_diag *d)
{
    sherd_cluster_options o;
    int err = read_source(&o, cli, d);
    o.work = work;
    return err ? err : sherd_cluster_check(nodes, NULL, &o, d);
}

int sherd__nodes_count(uint32_t *out, sherd__cli *cli, sherd_diag *d)
{
    return check(cli, NULL, out, d);
}

int sherd__nodes_suit(sherd__cli *cli, const sherd_product_options *opt, sherd_diag *d)
{
    return check(cli, opt, NULL, d);
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

void sherd__nodes_print_devices(const sherd__cli *cli, sherd_cluster *c,
                                void (*print)(const sherd__cli *cli, const char *line))
{
    char line[400];
    for (uint32_t i = 0; i < sherd_cluster_size(c); i++) {
        sherd_node_info n = { .size = sizeof n };
        if (sherd_cluster_node_at(c, i, &n, NULL) || !n.backend[0] || strcmp(n.backend, "cpu") == 0)
            continue;
        if (n.devices > 1)
            snprintf(line, sizeof line,
                     "%s: %" PRIu32 " devices of %s, the first is %s; %.3g GF/s in float64", n.name,
                     n.devices, n.backend, n.blas_core, n.gflops);
        else
            snprintf(line, sizeof line, "%s: %s, %s; %.3g GF/s in float64", n.name, n.backend,
                     n.blas_core, n.gflops);
        print(cli, line);
    }
}

json_t *sherd__nodes_device_object(sherd_cluster *c, uint32_t i)
{
    static const char *const names[] = { "name",   "backend",        "devices",   "blas_core",
                                         "gflops", "residue_gflops", "byte_gops", NULL };
    sherd_node_info n = { .size = sizeof n };
    json_t *o = json_object();
    if (sherd_cluster_node_at(c, i, &n, NULL) == 0)
        sherd__fields_json_of(o, &n, sherd_node_info_fields, names);
    return o;
}

void sherd__nodes_check_memory(const sherd__cli *cli, const char *option, uint64_t budget)
{
    sherd_machine m = { .size = sizeof m };
    char has[24];
    if (budget == 0 || sherd_machine_get(&m, NULL)) return;
    uint64_t most = m.memory_limit > 0 && m.memory_limit < m.memory ? m.memory_limit : m.memory;
    if (most > 0 && budget > most)
        sherd__cli_warn(cli, "%s is more than the %s of memory that this machine has",
                        sherd__opt_where(cli, option), sherd__cli_bytes(most, has));
}

void sherd__nodes_say_start(const sherd__cli *cli, const sherd_cluster_options *o)
{
    sherd_machine machine = { .size = sizeof machine };
    uint32_t nodes = o->local_nodes;
    if (sherd_machine_get(&machine, NULL) == 0 && nodes > machine.cores)
        sherd__cli_say(cli, "starting %u nodes, which share the %u core%s of this machine", nodes,
                       machine.cores, machine.cores == 1 ? "" : "s");
    if (nodes > 0) sherd__nodes_check_memory(cli, "node-memory", o->node_memory);
}

static int read_key(sherd_cluster_options *o, const sherd__cli *cli, sherd_diag *d)
{
    o->key_file = sherd__opt_text(cli, "key");
    if (!o->nodes_file || o->key_file) return 0;
    return sherd__fail(d, SHERD_EINVAL, "`sherd keygen me.key` makes one; the nodes must allow it",
                       "%s also needs --key FILE: nodes serve only keys that they allow",
                       sherd__opt_where(cli, "nodes"));
}

int sherd__nodes_look_options(sherd_cluster_options *o, const sherd__cli *cli, sherd_diag *d)
{
    *o = (sherd_cluster_options){ .size = sizeof *o,
                                  .nodes_file = sherd__opt_text(cli, "nodes"),
                                  .timeout_ms = sherd__opt_time_ms(cli, "timeout"),
                                  .look_only = true,
                                  .hooks = { .interrupted = sherd__cli_stops } };
    return read_key(o, cli, d);
}

int sherd__nodes_options(sherd_cluster_options *o, bool opens, sherd__cli *cli, sherd_diag *d)
{
    int err = read_source(o, cli, d);
    if (err || !opens) return err;
    err = read_key(o, cli, d);
    if (err) return err;
    o->timeout_ms = sherd__opt_time_ms(cli, "timeout");
    o->program = SHERD__SELF;
    o->unbound = sherd__opt_choice(cli, "bind-to") == SHERD__BIND_NONE;
    o->record_dir = sherd__opt_text(cli, "record");
    o->hooks = (sherd_hooks){ .interrupted = sherd__cli_stops, .log = log_line, .ctx = cli };
    return 0;
}

int sherd__nodes_open(sherd_cluster **out, sherd__cli *cli, const sherd_product_options *work,
                      sherd_diag *d)
{
    sherd_cluster_options o;
    *out = NULL;
    int err = sherd__nodes_options(&o, true, cli, d);
    if (err) return err;
    o.work = work;
    if (!work) o.nodes_min = 1;
    sherd__nodes_say_start(cli, &o);
    return sherd_cluster_open(out, &o, d);
}
