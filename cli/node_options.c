/* The options of `sherd node`, and what they mean for a node. */
#include "cli/applies.h"
#include "cli/node.h"

/* ---- options --------------------------------------------------------------------------------- */

static int need_files(const sherd_node_options *o, sherd_diag *d)
{
    if (o->parent_pipe) return 0;
    if (!o->key_file)
        return sherd__fail(d, SHERD_EINVAL, "sherd keygen node.key",
                           "--key FILE is missing: this node's private key");
    if (!o->allow_file)
        return sherd__fail(d, SHERD_EINVAL,
                           "a file with a line `* key=sha256:... role=coordinator` for each "
                           "coordinator; sherd keygen --show prints a key's fingerprint",
                           "--allow FILE is missing: no coordinator is let in by default");
    return 0;
}

static int read_data(sherd__cli *cli, sherd_node_data *x, sherd_node_options *o, sherd_diag *d)
{
    static const char *const ours[] = { "label",          "any-peers", "any-roster",
                                        "epsilon",        "delta",     "ledger",
                                        "require-ledger", "min-nodes", "min-colluding",
                                        "min-rows",       "max-rows",  "max-rounds",
                                        "max-rounds-day", NULL };
    const char *path = sherd__opt_text(cli, "data");
    const char *idle = path ? NULL : sherd__opts_idle(cli, ours);
    if (idle)
        return sherd__fail(d, SHERD_EINVAL, "add --data FILE, or leave it out",
                           "--%s has no effect without --data", idle);
    *x = (sherd_node_data){ .size = sizeof *x,
                            .path = path,
                            .label = sherd__opt_text(cli, "label"),
                            .ledger = sherd__opt_text(cli, "ledger"),
                            .require_ledger = sherd__opt_flag(cli, "require-ledger"),
                            .epsilon = sherd__opt_real(cli, "epsilon"),
                            .delta = sherd__opt_real(cli, "delta"),
                            .any_peers = sherd__opt_flag(cli, "any-peers"),
                            .any_roster = sherd__opt_flag(cli, "any-roster"),
                            .nodes_min = (uint32_t)sherd__opt_int(cli, "min-nodes"),
                            .colluding_min = (uint32_t)sherd__opt_int(cli, "min-colluding"),
                            .rows_min = (uint64_t)sherd__opt_int(cli, "min-rows"),
                            .rows_max = (uint64_t)sherd__opt_int(cli, "max-rows"),
                            .rounds_max = (uint64_t)sherd__opt_int(cli, "max-rounds"),
                            .rounds_day = (uint64_t)sherd__opt_int(cli, "max-rounds-day") };
    if (path) o->data = x;
    return 0;
}

static void read_options(const sherd__cli *cli, sherd_node_options *o)
{
    *o = (sherd_node_options){ .size = sizeof *o,
                               .listen = sherd__opt_text(cli, "listen"),
                               .name = sherd__opt_text(cli, "name"),
                               .domain = sherd__opt_text(cli, "domain"),
                               .key_file = sherd__opt_text(cli, "key"),
                               .allow_file = sherd__opt_text(cli, "allow"),
                               .memory = sherd__opt_size(cli, "memory"),
                               .threads = (uint32_t)sherd__opt_int(cli, "threads"),
                               .connections = (uint32_t)sherd__opt_int(cli, "connections"),
                               .backend = sherd__opt_text(cli, "backend"),
                               .quick_test = sherd__opt_choice(cli, "selftest") == 1,
                               .record_dir = sherd__opt_text(cli, "record"),
                               .peers_file = sherd__opt_text(cli, "peers"),
                               .parent_pipe = (int)sherd__opt_int(cli, "parent-pipe"),
                               .parent_stays = sherd__opt_flag(cli, "stay"),
                               .cores = sherd__opt_text(cli, "cores") };
}

int sherd__node_read(sherd__cli *cli, sherd_node_options *o, sherd_node_data *data, sherd_diag *d)
{
    read_options(cli, o);
    int err = need_files(o, d);
    return err ? err : read_data(cli, data, o, d);
}

static const char *const choices_selftest[] = { "full", "quick", NULL };

/* clang-format off */
const sherd__option sherd__node_options_table[] = {
    { .name = "listen", .type = SHERD__TEXT, .arg = "ADDR:PORT", .preset = "127.0.0.1:0",
      .help = "where to listen; port 0 lets the system choose" },
    { .name = "key", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_NO_ENV,
      .help = "this node's private key (sherd keygen)" },
    { .name = "allow", .type = SHERD__FILE, .arg = "FILE",
      .help = "coordinators that are let in, one line each; read again on SIGHUP" },
    { .name = "name", .type = SHERD__TEXT, .arg = "NAME", .help = "what to call this node" },
    { .name = "domain", .type = SHERD__TEXT, .arg = "NAME",
      .help = "the domain (host, tenant, operator) that it belongs to" },
    { .name = "memory", .type = SHERD__SIZE, .arg = "SIZE",
      .help = "budget for blocks and results of all coordinators [half of this machine's]" },
    { .name = "data", .type = SHERD__FILE, .arg = "FILE",
      .help = "examples of this node's own: a .npy or .csv (targets are the last columns), a "
              ".npz with members x and y, or a folder of IDX files; only masked sums over them "
              "leave it (train --aggregate secure)" },
    { .name = "label", .type = SHERD__TEXT, .arg = "NAME",
      .help = "the column of a .csv that is the target, by its name in the first line" },
    { .name = "peers", .type = SHERD__FILE, .arg = "FILE",
      .help = "nodes that may be members with it, one line each as in a node file" },
    { .name = "any-peers", .type = SHERD__FLAG, .excludes = "peers",
      .help = "--data: aggregate with whatever nodes the coordinator names" },
    { .name = "any-roster", .type = SHERD__FLAG,
      .help = "--data: give a sum over the same examples and weights to other members, too: their "
              "difference tells what single nodes have, but for noise" },
    { .name = "epsilon", .type = SHERD__REAL, .arg = "E", .min = 1e-6, .max = 1e6, .word = "none",
      .preset = "8",
      .help = "--data: what all rounds together may cost an example's privacy; none allows rounds "
              "without noise" },
    { .name = "delta", .type = SHERD__REAL, .arg = "D", .min = 1e-300, .max = 0.1,
      .preset = "1e-6", .help = "--data: the probability that goes with --epsilon" },
    { .name = "ledger", .type = SHERD__FILE, .arg = "FILE",
      .help = "--data: where uploads and their costs are kept [beside the data, FILE.ledger]" },
    { .name = "require-ledger", .type = SHERD__FLAG,
      .help = "--data: end where the ledger does not exist, instead of making one in which "
              "nothing is charged" },
    { .name = "min-nodes", .type = SHERD__INT, .arg = "N", .min = 3, .max = 1024, .preset = "3",
      .help = "--data: take part in sums of at least so many nodes" },
    { .name = "min-colluding", .type = SHERD__INT, .arg = "T", .min = 1, .max = 1022,
      .preset = "1", .help = "--data: ... that withstand at least so many colluding ones" },
    { .name = "min-rows", .type = SHERD__INT, .arg = "N", .min = 1, .max = 4294967295.0,
      .preset = "32",
      .help = "--data: ... of at least so many places of each node a round, empty ones too" },
    { .name = "max-rows", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,
      .preset = "1048576", .help = "--data: ... of at most so many places of each node a round" },
    { .name = "max-rounds", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,
      .preset = "10000",
      .help = "--data: most rounds of one training, or for one coordinator a day" },
    { .name = "max-rounds-day", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,
      .preset = "20000", .help = "--data: most rounds in one day (UTC), of all trainings" },
    SHERD__OPT_THREADS,
    { .name = "backend", .type = SHERD__CHOICE, .arg = "NAME", .preset = "auto",
      .flags = SHERD__OPT_BACKENDS, .help = "what computes" },
    { .name = "connections", .type = SHERD__INT, .arg = "N", .preset = "64", .min = 1, .max = 10000,
      .help = "most connections of coordinators and members at a time" },
    { .name = "record", .type = SHERD__DIR, .arg = "DIR", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write all that the node sees and says into the new folder DIR" },
    { .name = "selftest", .type = SHERD__CHOICE, .arg = "HOW", .preset = "full",
      .choices = choices_selftest, .help = "full, or quick: correctness and a guess of the speed" },
    { .name = "parent-pipe", .type = SHERD__INT, .arg = "FD", .min = 3, .max = 1048576,
      .excludes = "key", .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "key and allow-list come over this descriptor; the node ends when it does" },
    { .name = "cores", .type = SHERD__TEXT, .arg = "LIST",
      .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "run on these cores, as 0,2,3, as long as they are not shared" },
    { .name = "stay", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "outlive the parent's pipe once something was written to it" },
    { 0 },
};
/* clang-format on */
