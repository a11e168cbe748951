/* The options of `sherd node`, and what they mean for a node. */
#include <string.h>

#include "cli/applies.h"
#include "cli/node.h"
#include "cli/process.h"

/* ---- options --------------------------------------------------------------------------------- */

static int need_files(const sherd_node_options *o, bool starts, sherd_diag *d)
{
    if (o->parent_pipe) return 0;
    if (!o->key_file)
        return sherd__fail(d, SHERD_EINVAL, "sherd keygen node.key",
                           "--key FILE is missing: this node's private key");
    if (starts && !o->allow_file)
        return sherd__fail(d, SHERD_EINVAL,
                           "a file with a line `* key=sha256:... role=coordinator` for each "
                           "coordinator; sherd keygen --show prints a key's fingerprint",
                           "--allow FILE is missing: no coordinator is accepted by default");
    return 0;
}

static int read_data(sherd__cli *cli, sherd_node_data *x, sherd_node_options *o, sherd_diag *d)
{
    static const char *const ours[] = {
        "label",    "columns",    "classes",        "any-peers", "any-roster",    "epsilon",
        "delta",    "ledger",     "require-ledger", "min-nodes", "min-colluding", "min-rows",
        "max-rows", "max-rounds", "max-rounds-day", NULL
    };
    const char *path = sherd__opt_text(cli, "data");
    const char *idle = path ? NULL : sherd__opts_forget_unless_argv(cli, ours);
    if (idle)
        return sherd__fail(d, SHERD_EINVAL, "add --data FILE, or leave it out",
                           "--%s has no effect without --data", idle);
    *x = (sherd_node_data){ .size = sizeof *x,
                            .path = path,
                            .label = sherd__opt_text(cli, "label"),
                            .columns = sherd__opt_text(cli, "columns"),
                            .classes = sherd__opt_text(cli, "classes"),
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
                               .advertise = sherd__opt_text(cli, "advertise"),
                               .name = sherd__opt_text(cli, "name"),
                               .domain = sherd__opt_text(cli, "domain"),
                               .key_file = sherd__opt_text(cli, "key"),
                               .allow_file = sherd__opt_text(cli, "allow"),
                               .memory = sherd__opt_size(cli, "memory"),
                               .threads = (uint32_t)sherd__opt_int(cli, "threads"),
                               .connections = (uint32_t)sherd__opt_int(cli, "connections"),
                               .backend = sherd__opt_text(cli, "backend"),
                               .devices = sherd__opt_text(cli, "device"),
                               .device_memory = sherd__opt_size(cli, "device-memory"),
                               .device_nodes = (uint32_t)sherd__opt_int(cli, "device-nodes"),
                               .device_timeout_s = sherd__opt_real(cli, "device-timeout"),
                               .opencl_library = sherd__opt_text(cli, "opencl-library"),
                               .cuda_library = sherd__opt_text(cli, "cuda-library"),
                               .program = SHERD__SELF,
                               .probe_timeout_s = sherd__opt_real(cli, "probe-timeout"),
                               .quick_test = sherd__opt_choice(cli, "selftest") == 1,
                               .record_dir = sherd__opt_text(cli, "record"),
                               .peers_file = sherd__opt_text(cli, "peers"),
                               .parent_pipe = (int)sherd__opt_int(cli, "parent-pipe"),
                               .parent_stays = sherd__opt_flag(cli, "stay"),
                               .cores = sherd__opt_text(cli, "cores") };
}

/* A fallback starts the node again: its record exists then, and only a port that the node's line
 * has can be chosen again. */
static int check_fallback(const sherd__cli *cli, const sherd_node_options *o, sherd_diag *d)
{
    if (sherd__opt_choice(cli, "fallback") != 1) return 0;
    if (o->record_dir)
        return sherd__fail(d, SHERD_EINVAL, "leave out one of them",
                           "--record cannot be combined with --fallback cpu: the node that takes "
                           "over would need a new folder");
    const char *colon = o->advertise ? strrchr(o->advertise, ':') : NULL;
    const char *listens = strrchr(o->listen, ':');
    const bool port = colon && (*o->advertise == '[' || colon == strchr(o->advertise, ':'));
    if (port && listens && strspn(listens + 1, "0") == strlen(listens + 1))
        return sherd__fail(d, SHERD_EINVAL, "name the port in --listen, as 0.0.0.0:7001",
                           "--advertise with a port and --listen with port 0 cannot be combined "
                           "with --fallback cpu: the node that takes over must listen on the same "
                           "port");
    return 0;
}

int sherd__node_read(sherd__cli *cli, sherd_node_options *o, sherd_node_data *data, sherd_diag *d)
{
    read_options(cli, o);
    int err = need_files(o, !sherd__opt_flag(cli, "print-line"), d);
    if (!err) err = check_fallback(cli, o, d);
    return err ? err : read_data(cli, data, o, d);
}

static const char *const choices_fallback[] = { "none", "cpu", NULL };
static const char *const choices_probe[] = { "list", "open", "measure", "first", NULL };
static const char *const choices_selftest[] = { "full", "quick", NULL };

/* clang-format off */
const sherd__option sherd__node_options_table[] = {
    { .name = "listen", .type = SHERD__TEXT, .arg = "ADDR:PORT", .preset = "127.0.0.1:0",
      .help = "address and port to listen on; with port 0 the system chooses one" },
    { .name = "advertise", .type = SHERD__TEXT, .arg = "HOST[:PORT]",
      .help = "address in the printed line, where coordinators reach the node [that of --listen, "
              "or an address of this machine]" },
    { .name = "print-line", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,
      .help = "print the line of a node file without starting the node, for lists of --peers" },
    { .name = "key", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_NO_ENV,
      .help = "this node's private key (sherd keygen)" },
    { .name = "allow", .type = SHERD__FILE, .arg = "FILE",
      .help = "file that lists the coordinators that may connect, one per line; read again on "
              "SIGHUP" },
    { .name = "name", .type = SHERD__TEXT, .arg = "NAME", .help = "name of this node" },
    { .name = "domain", .type = SHERD__TEXT, .arg = "NAME",
      .help = "domain (host, tenant, operator) of this node" },
    { .name = "memory", .type = SHERD__SIZE, .arg = "SIZE",
      .help = "budget for blocks and results of all coordinators [half of this machine's]" },
    { .name = "data", .type = SHERD__FILE, .arg = "FILE",
      .help = "the node's own examples: a .npy or .csv (targets are the last columns), a .npz with "
              "members x and y, or a folder of IDX files; only masked sums over them leave the "
              "node (train --aggregate secure)" },
    { .name = "label", .type = SHERD__TEXT, .arg = "NAME",
      .help = "the target column of a .csv, by its name in the first line" },
    { .name = "columns", .type = SHERD__TEXT, .arg = "NAMES",
      .help = "the input columns of a .csv, by their names, as a,b,c, in the order of the "
              "network's inputs [all but the target]" },
    { .name = "classes", .type = SHERD__TEXT, .arg = "NAMES",
      .help = "names of classes in a .csv, as cat,dog, in the order of the network's outputs, the "
              "same at all nodes [labels are numbers]" },
    { .name = "peers", .type = SHERD__FILE, .arg = "FILE",
      .help = "file that lists the nodes that may be in a sum with this one, one per line as in a "
              "node file: the lines that --print-line printed at each of them" },
    { .name = "any-peers", .type = SHERD__FLAG, .excludes = "peers",
      .help = "--data: accept any other nodes that the coordinator names" },
    { .name = "any-roster", .type = SHERD__FLAG,
      .help = "--data: allow another sum over the same examples and weights with other nodes; the "
              "difference of both reveals the data of single nodes, except for noise" },
    { .name = "epsilon", .type = SHERD__REAL, .arg = "E", .min = 1e-6, .max = 1e6, .word = "none",
      .preset = "8",
      .help = "--data: limit of the privacy cost of an example over all rounds; none also allows "
              "rounds without noise" },
    { .name = "delta", .type = SHERD__REAL, .arg = "D", .min = 1e-300, .max = 0.1,
      .preset = "1e-6", .help = "--data: the probability at which --epsilon holds" },
    { .name = "ledger", .type = SHERD__FILE, .arg = "FILE",
      .help = "--data: file that records uploads and their costs [beside the data, FILE.ledger]" },
    { .name = "require-ledger", .type = SHERD__FLAG,
      .help = "--data: fail if the ledger does not exist, instead of creating an empty one" },
    { .name = "min-nodes", .type = SHERD__INT, .arg = "N", .min = 3, .max = 1024, .preset = "3",
      .help = "--data: fewest nodes in a sum" },
    { .name = "min-colluding", .type = SHERD__INT, .arg = "T", .min = 1, .max = 1022,
      .preset = "1", .help = "--data: fewest colluding nodes that a sum must withstand" },
    { .name = "min-rows", .type = SHERD__INT, .arg = "N", .min = 1, .max = 4294967295.0,
      .preset = "32",
      .help = "--data: fewest places for examples of each node in a round, empty ones included" },
    { .name = "max-rows", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,
      .preset = "1048576", .help = "--data: most places for examples of each node in a round" },
    { .name = "max-rounds", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,
      .preset = "10000",
      .help = "--data: most rounds of one training, or of one coordinator in a day" },
    { .name = "max-rounds-day", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,
      .preset = "20000", .help = "--data: most rounds in one day (UTC), of all trainings" },
    SHERD__OPT_THREADS,
    { .name = "backend", .type = SHERD__CHOICE, .arg = "NAME", .preset = "auto",
      .flags = SHERD__OPT_BACKENDS,
      .help = "what computes; auto is a GPU if there is one that passes its self-test, else cpu" },
    { .name = "device", .type = SHERD__TEXT, .arg = "N",
      .help = "device of the backend: a number, several as 0,1, or all [0]" },
    { .name = "device-memory", .type = SHERD__SIZE, .arg = "SIZE",
      .help = "memory of each device that the node may use [most of it]" },
    { .name = "device-nodes", .type = SHERD__INT, .arg = "N", .preset = "1", .min = 1, .max = 10000,
      .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "how many nodes that start together use these devices" },
    { .name = "device-timeout", .type = SHERD__REAL, .arg = "SECONDS", .min = 0.1, .max = 86400,
      .preset = "30",
      .help = "a device that does not respond for this time, after 20 times what its task should "
              "take, is given up: the node sends BYE and ends" },
    { .name = "fallback", .type = SHERD__CHOICE, .arg = "NAME", .preset = "none",
      .choices = choices_fallback,
      .help = "cpu: if the device or its driver fails, continue on the processor with the same key "
              "and address; --key, --allow and other files are read again" },
    { .name = "opencl-library", .type = SHERD__FILE, .arg = "FILE",
      .help = "library of OpenCL [libOpenCL of the system]" },
    { .name = "cuda-library", .type = SHERD__FILE, .arg = "FILE",
      .help = "library of CUDA's driver [libcuda of the system]; where libraries are named, auto "
              "tries no others" },
    { .name = "list-devices", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,
      .help = "list the devices of this machine without starting the node" },
    { .name = "measure", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,
      .help = "with --list-devices: also open and test each device, and measure its rates" },
    { .name = "probe", .type = SHERD__CHOICE, .arg = "HOW", .choices = choices_probe,
      .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "examine devices for another process, which reads standard output" },
    { .name = "probe-timeout", .type = SHERD__REAL, .arg = "SECONDS", .min = 0, .max = 86400,
      .preset = "0", .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "within which the process that examines devices must answer" },
    { .name = "supervised", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "another process runs this one (--fallback)" },
    { .name = "connections", .type = SHERD__INT, .arg = "N", .preset = "64", .min = 1, .max = 10000,
      .help = "most connections of coordinators and members at a time" },
    { .name = "record", .type = SHERD__DIR, .arg = "DIR", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write all bytes that the node receives and sends into the new folder DIR" },
    { .name = "selftest", .type = SHERD__CHOICE, .arg = "HOW", .preset = "full",
      .choices = choices_selftest,
      .help = "self-test at the start: full, or quick (correctness, unless the same program and "
              "libraries have passed on this machine before, and an estimate of the speed)" },
    { .name = "parent-pipe", .type = SHERD__INT, .arg = "FD", .min = 3, .max = 1048576,
      .excludes = "key", .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "read key and allow-list from this descriptor; the node ends when it is closed" },
    { .name = "cores", .type = SHERD__TEXT, .arg = "LIST",
      .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "run on these cores, as 0,2,3, as long as they are not shared" },
    { .name = "stay", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV | SHERD__OPT_HIDDEN,
      .help = "keep running when the parent's pipe is closed, if the parent has written to it" },
    { 0 },
};
/* clang-format on */
