/* `sherd cluster up -n 7`, `status`, `down`: local nodes for later commands. */
#include "cli/fields.h"
#include "cli/nodes.h"
#include "cli/process.h"
#include "sherd/local.h"

#define NODES_MAX 1000

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
                                    .hooks = { .interrupted = sherd__cli_stops } };
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

static int run_status(sherd__cli *cli, sherd_diag *d)
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
    { .name = "threads", .type = SHERD__INT, .arg = "N", .min = 1, .max = 4096,
      .help = "threads of each node [cores / N, at least 1]" },
    { 0 },
};
/* clang-format on */

static const sherd__option no_options[] = { { 0 } };

static const sherd__example up_examples[] = {
    { "sherd cluster up -n 7", "starts seven nodes on this machine" },
    { "sherd cluster up -n 2 --node-memory 4G", "starts two nodes, which store 4 GB each" },
    { "sherd multiply A.npy B.npy -o C.npy", "uses these nodes" },
    { 0 },
};

static const sherd__example status_examples[] = {
    { "sherd cluster status", "one line for each node" },
    { "sherd cluster status --json", "the same as JSON" },
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
    .usage = "",
    .summary = "list the local nodes; exit 7 if some are gone",
    .examples = status_examples,
    .options = no_options,
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
