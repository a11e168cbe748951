/* `sherd cluster up -n 7`, `status`, `down`: local nodes for later commands, and the state of nodes
 * elsewhere. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/fields.h"
#include "cli/nodes.h"
#include "cli/process.h"
#include "cli/rows.h"
#include "sherd/local.h"

#define NODES_MAX 1000
#define REACH_MS 5000u /* time for a node to answer */

static sherd_local_node node_at(const sherd_local *l, uint32_t i)
{
    sherd_local_node n = { .size = sizeof n };
    if (sherd_local_at(l, i, &n, NULL)) n.name[0] = '\0'; /* there is one */
    return n;
}

/* ---- up -------------------------------------------------------------------------------------- */

static int print_up(sherd__cli *cli, const sherd_local *l, sherd_diag *d)
{
    static const char *const names[] = { "name", "pid", "line", NULL };
    uint32_t len = sherd_local_count(l);
    json_t *all = json_array();
    for (uint32_t i = 0; i < len; i++) {
        const sherd_local_node n = node_at(l, i);
        json_t *o = json_object();
        sherd__fields_json_of(o, &n, sherd_local_node_fields, names);
        json_array_append_new(all, o);
        if (!cli->json) sherd__cli_print("%-9s pid %-7ld %s", n.name, (long)n.pid, n.address);
    }
    if (!cli->json) {
        json_decref(all);
        sherd__cli_say(cli,
                       "%u node%s up; commands without -n and --nodes now use %s; end with: sherd "
                       "cluster down",
                       len, len == 1 ? " is" : "s are", len == 1 ? "it" : "them");
        return 0;
    }
    json_t *obj = sherd__cli_json_new(cli);
    json_object_set_new(obj, "nodes", all);
    json_object_set_new(obj, "folder", sherd__cli_json_text(sherd_local_folder(l)));
    return sherd__cli_json_end(cli, obj, d);
}

static int run_up(sherd__cli *cli, sherd_diag *d)
{
    sherd_local *l = NULL;
    const sherd_local_options o = { .size = sizeof o,
                                    .nodes = (uint32_t)sherd__opt_int(cli, "local"),
                                    .program = SHERD__SELF,
                                    .node_memory = sherd__opt_size(cli, "node-memory"),
                                    .threads = (uint32_t)sherd__opt_int(cli, "threads"),
                                    .unbound = sherd__opt_choice(cli, "bind-to") ==
                                               SHERD__BIND_NONE,
                                    .hooks = { .interrupted = sherd__cli_stops },
                                    .backend = sherd__opt_text(cli, "backend"),
                                    .devices = sherd__opt_text(cli, "device"),
                                    .devices_each = (uint32_t)sherd__opt_int(cli, "devices"),
                                    .opencl_library = sherd__opt_text(cli, "opencl-library"),
                                    .cuda_library = sherd__opt_text(cli, "cuda-library") };
    int err = sherd_local_start(&l, &o, d);
    if (err) return err;
    err = print_up(cli, l, d);
    if (err && sherd_local_stop(NULL, NULL, NULL)) sherd__cli_warn(cli, "the nodes are up");
    sherd_local_free(l);
    return err;
}

/* ---- status ---------------------------------------------------------------------------------- */

static void print_status(const sherd_local_node *n)
{
    char bytes[24];
    if (n->up)
        sherd__cli_print("%-9s up    pid %-7ld %-22s %s", n->name, (long)n->pid, n->address,
                         sherd__cli_bytes(n->resident, bytes));
    else sherd__cli_print("%-9s gone  %-11s %-22s messages: %s", n->name, "", n->address, n->log);
}

static int run_status_local(sherd__cli *cli, sherd_diag *d)
{
    static const char *const without[] = { "line", "log", NULL };
    sherd_local *l = NULL;
    json_t *all = json_array();
    uint32_t gone = 0;
    int err = sherd_local_status(&l, NULL, d);
    if (err) goto out;
    uint32_t len = sherd_local_count(l);
    for (uint32_t i = 0; i < len; i++) {
        const sherd_local_node n = node_at(l, i);
        json_t *o = sherd__fields_object(&n, sherd_local_node_fields, without);
        if (n.pid == 0) json_object_set_new(o, "pid", json_null());
        json_array_append_new(all, o);
        gone += !n.up;
        if (!cli->json) print_status(&n);
    }
    if (gone)
        err = sherd__fail(d, SHERD_EFEWNODES, "sherd cluster down, then up again",
                          "%u of %u local nodes are gone", gone, len);
    if (cli->json) {
        json_t *obj = sherd__cli_json_new(cli);
        json_object_set(obj, "nodes", all);
        err = err ? sherd__cli_json_fail(cli, obj, err, d) : sherd__cli_json_end(cli, obj, d);
    }
out:
    json_decref(all);
    sherd_local_free(l);
    return err;
}

/* ---- status of a list ------------------------------------------------------------------------ */

/* Writes a number that the node may not have stated. */
static const char *stated(const sherd_node_info *n, const char *text, char out[48])
{
    snprintf(out, 48, "%s", n->load_known ? text : "-");
    return out;
}

static const char *free_text(const void *x, char out[48])
{
    char bytes[24];
    const sherd_node_info *n = x;
    return stated(n, sherd__cli_bytes(n->memory_free, bytes), out);
}

static const char *uptime_text(const void *x, char out[48])
{
    char text[32];
    const sherd_node_info *n = x;
    uint64_t s = n->uptime;
    if (s < 120) snprintf(text, sizeof text, "%" PRIu64 " s", s);
    else if (s < UINT64_C(2) * 3600) snprintf(text, sizeof text, "%" PRIu64 " min", s / 60);
    else if (s < UINT64_C(48) * 3600) snprintf(text, sizeof text, "%" PRIu64 " h", s / 3600);
    else snprintf(text, sizeof text, "%" PRIu64 " days", s / 86400);
    return stated(n, text, out);
}

static const char *work_text(const void *x, char out[48])
{
    char text[32] = "idle";
    const sherd_node_info *n = x;
    if (n->open_tasks)
        snprintf(text, sizeof text, "%" PRIu32 " task%s", n->open_tasks,
                 n->open_tasks == 1 ? "" : "s");
    else if (n->sessions > 1) snprintf(text, sizeof text, "in use"); /* the other one waits */
    return stated(n, text, out);
}

static const char *domain_text(const void *x, char out[48])
{
    const sherd_node_info *n = x;
    (void)out;
    return n->domain[0] ? n->domain : "-";
}

static const char *address_text(const void *x, char out[48])
{
    (void)out;
    return ((const sherd_node_info *)x)->address;
}

/* Sets the columns of a table: the first ones are as wide as their longest cells. */
static void set_columns(sherd__column out[9], sherd_cluster *c)
{
    const sherd__column all[9] = {
        { "node", -4, "name", NULL },
        { "domain", -6, NULL, domain_text },
        { "address", -7, NULL, address_text },
        { "threads", 7, "threads", NULL },
        { "free", 7, NULL, free_text },
        { "latency", 7, "latency", NULL },
        { "uptime", 6, NULL, uptime_text },
        { "work", 0, NULL, work_text },
        { NULL, 0, NULL, NULL },
    };
    memcpy(out, all, sizeof all);
    for (uint32_t i = 0; i < sherd_cluster_size(c); i++) {
        sherd_node_info n = { .size = sizeof n };
        if (sherd_cluster_node_at(c, i, &n, NULL)) continue; /* there is one */
        const char *const cells[] = { n.name, domain_text(&n, NULL), n.address };
        for (unsigned k = 0; k < sizeof cells / sizeof *cells; k++)
            if ((int)strlen(cells[k]) > -out[k].width) out[k].width = -(int)strlen(cells[k]);
    }
}

static void print_node(const sherd__cli *cli, const sherd__column *columns,
                       const sherd_node_info *n)
{
    char line[512], bytes[24];
    if (n->state != SHERD_NODE_UP) {
        sherd__cli_print_prose(4, "%*s  %*s  %s  cannot be reached: %s", columns[0].width, n->name,
                               columns[1].width, domain_text(n, NULL), n->address, n->why);
        return;
    }
    sherd__cli_print("%s", sherd__row_text(line, sizeof line, columns, n, sherd_node_info_fields));
    if (cli->verbose > 0)
        sherd__cli_print("    %s, backend %s, %" PRIu32 " device%s, %s of memory", n->software,
                         n->backend, n->devices, n->devices == 1 ? "" : "s",
                         sherd__cli_bytes(n->memory, bytes));
}

static json_t *node_object(const sherd_node_info *n)
{
    static const char *const always[] = { "name", "address", "domain", "key", "state", NULL };
    static const char *const known[] = { "software", "backend", "blas_core", "threads", "memory",
                                         "devices",  "gflops",  "byte_gops", "latency", NULL };
    static const char *const load[] = { "memory_free", "uptime", "open_tasks", "sessions", NULL };
    static const char *const fault[] = { "why", NULL };
    json_t *o = json_object();
    sherd__fields_json_of(o, n, sherd_node_info_fields, always);
    json_object_set_new(o, "error", n->error ? json_string(sherd_err_name(n->error)) : json_null());
    if (n->state != SHERD_NODE_UP) {
        sherd__fields_json_of(o, n, sherd_node_info_fields, fault);
        return o;
    }
    sherd__fields_json_of(o, n, sherd_node_info_fields, known);
    if (n->load_known) sherd__fields_json_of(o, n, sherd_node_info_fields, load);
    return o;
}

static int print_nodes(sherd__cli *cli, sherd_cluster *c, sherd_diag *d)
{
    char line[512];
    sherd__column columns[9];
    uint32_t len = sherd_cluster_size(c), away = 0;
    json_t *all = json_array();
    int err = 0;
    set_columns(columns, c);
    if (!cli->json)
        sherd__cli_say(cli, "%s",
                       sherd__row_text(line, sizeof line, columns, NULL, sherd_node_info_fields));
    for (uint32_t i = 0; i < len; i++) {
        sherd_node_info n = { .size = sizeof n };
        if (sherd_cluster_node_at(c, i, &n, NULL)) continue; /* there is one */
        away += n.state != SHERD_NODE_UP;
        json_array_append_new(all, node_object(&n));
        if (!cli->json) print_node(cli, columns, &n);
    }
    if (away)
        err = sherd__fail(d, SHERD_EFEWNODES,
                          "start them, and check that their lines and allow-lists are right",
                          "%u of %u nodes cannot be reached", away, len);
    if (!cli->json) {
        json_decref(all);
        return err;
    }
    json_t *obj = sherd__cli_json_new(cli);
    json_object_set_new(obj, "nodes", all);
    return err ? sherd__cli_json_fail(cli, obj, err, d) : sherd__cli_json_end(cli, obj, d);
}

static int run_status(sherd__cli *cli, sherd_diag *d)
{
    sherd_cluster *c;
    sherd_cluster_options o;
    if (!sherd__opt_text(cli, "nodes")) return run_status_local(cli, d);
    int err = sherd__nodes_look_options(&o, cli, d);
    if (err) return err;
    o.connect_timeout_ms = REACH_MS;
    err = sherd_cluster_open(&c, &o, d);
    if (err) return err;
    err = print_nodes(cli, c, d);
    sherd_cluster_close(c);
    return err;
}

/* ---- down ------------------------------------------------------------------------------------ */

static int run_down(sherd__cli *cli, sherd_diag *d)
{
    uint32_t ended = 0;
    int err = sherd_local_stop(NULL, &ended, d);
    if (err) return err;
    if (!cli->json) {
        sherd__cli_say(cli, "ended %u node%s", ended, ended == 1 ? "" : "s");
        return 0;
    }
    json_t *obj = sherd__cli_json_new(cli);
    json_object_set_new(obj, "ended", json_integer(ended));
    return sherd__cli_json_end(cli, obj, d);
}

/* ---- verbs ----------------------------------------------------------------------------------- */

/* clang-format off */
static const sherd__option up_options[] = {
    { .name = "local", .letter = 'n', .type = SHERD__INT, .arg = "N", .min = 1, .max = NODES_MAX,
      .flags = SHERD__OPT_REQUIRED, .help = "number of nodes" },
    SHERD__OPT_NODE_MEMORY,
    SHERD__OPT_BIND_TO,
    SHERD__OPTS_DEVICES,
    { .name = "threads", .type = SHERD__INT, .arg = "N", .min = 1, .max = 4096,
      .help = "threads of each node [cores / N, at least 1]" },
    { 0 },
};
/* clang-format on */

/* clang-format off */
static const sherd__option status_options[] = {
    SHERD__OPT_NODES,
    SHERD__OPT_KEY,
    SHERD__OPT_TIMEOUT,
    { 0 },
};
/* clang-format on */

static const sherd__option no_options[] = { { 0 } };

static const sherd__example up_examples[] = {
    { "sherd cluster up -n 7", "starts seven nodes on this machine" },
    { "sherd cluster up -n 2 --node-memory 4G", "starts two nodes, which store 4 GB each" },
    { "sherd cluster up -n 2 --devices 1", "starts two nodes, each on a GPU of its own" },
    { "sherd multiply A.npy B.npy -o C.npy", "uses these nodes" },
    { 0 },
};

static const sherd__example status_examples[] = {
    { "sherd cluster status", "one line for each node" },
    { "sherd cluster status --json", "the same as JSON" },
    { "sherd cluster status --nodes nodes.txt --key me.key",
      "nodes elsewhere: what each one does" },
    { "sherd cluster status || sherd cluster up -n 7", "starts the nodes unless they run" },
    { 0 },
};

static const sherd__example down_examples[] = {
    { "sherd cluster down", "ends the local nodes" },
    { "sherd cluster down -q", "prints no message" },
    { "sherd cluster down && sherd cluster up -n 3", "starts another number of nodes" },
    { 0 },
};

static const sherd__verb up = {
    .name = "up",
    .usage = "-n N",
    .summary = "start local nodes that outlive this command",
    .details = "Starts N nodes on this machine, each its own process with its own key and a port "
               "that the system chooses. Commands with neither -n nor --nodes use them until "
               "`sherd cluster down`.",
    .examples = up_examples,
    .options = up_options,
    .run = run_up,
};

static const sherd__verb status = {
    .name = "status",
    .usage = "[--nodes FILE --key KEY]",
    .summary = "list the nodes and their state; exit 7 if some are gone",
    .details =
        "Without --nodes, lists the local nodes that `sherd cluster up` started. With --nodes, "
        "connects to each node of the list and prints its name, domain, address, threads, free "
        "memory, the round-trip time, the time since it started, and how many tasks it has, of "
        "all coordinators; -v adds its version, backend and memory. A node that does not answer "
        "within 5 seconds is listed with the reason.",
    .examples = status_examples,
    .options = status_options,
    .run = run_status,
};

static const sherd__verb down = {
    .name = "down",
    .usage = "",
    .summary = "end the local nodes",
    .examples = down_examples,
    .options = no_options,
    .run = run_down,
};

static const sherd__example examples[] = {
    { "sherd cluster up -n 7", "starts seven nodes, which later commands use" },
    { "sherd multiply A.npy B.npy -o C.npy", "computes over them" },
    { "sherd cluster down", "ends them" },
    { 0 },
};

static const sherd__verb *const subs[] = { &up, &status, &down, NULL };

const sherd__verb sherd__verb_cluster = {
    .name = "cluster",
    .usage = "up|status|down",
    .summary = "keep local nodes running between commands",
    .examples = examples,
    .subs = subs,
};
