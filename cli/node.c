/*
 * `sherd node`: a scheduler node as a process. It prints its own line of a node file once it
 * listens. Then it serves until SIGTERM, SIGINT or, for a node that the command started, the end of
 * its parent's pipe. With --json the line is an object, and a second object with the counters
 * follows at the end and on SIGUSR1.
 */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/node.h"
#include "cli/node_data.h"
#include "node/server.h"
#include "sherd/machine.h"
#include "store/record.h"
#include "wire/identity.h"

/* Context of the server's callbacks. */
typedef struct run {
    sherd__cli *cli;
    sherd__record *record;
    sherd__node_data data;
    sherd_diag *d;
} run;

/* ---- messages -------------------------------------------------------------------------------- */

static void listening(void *ctx, const char *line)
{
    run *r = ctx;
    sherd_diag d = { .code = 0 };
    if (r->cli->json) {
        json_t *obj = sherd__cli_json_new(r->cli);
        json_object_set_new(obj, "listening", json_string(line));
        json_object_set_new(obj, "pid", json_integer(getpid()));
        if (sherd__cli_json_end(r->cli, obj, &d)) sherd__cli_warn(r->cli, "%s", d.message);
    } else {
        printf("%s\n", line);
    }
    if (fflush(stdout)) sherd__cli_warn(r->cli, "cannot write to standard output");
}

static void say(void *ctx, sherd__node_level level, const char *line)
{
    run *r = ctx;
    if (level == SHERD__NODE_WARN) sherd__cli_warn(r->cli, "%s", line);
    else if (level == SHERD__NODE_SAY) sherd__cli_say(r->cli, "%s", line);
    else sherd__cli_note(r->cli, "%s", line);
}

static const char *const op_names[SHERD__OPS_MAX] = {
    [SHERD__OP_MULTIPLY] = "multiply", [SHERD__OP_MULTIPLY_T] = "multiply_transposed",
    [SHERD__OP_GRADIENT] = "gradient", [SHERD__OP_JOIN] = "join",
    [SHERD__OP_ROSTER] = "roster",     [SHERD__OP_SEAL] = "seal",
    [SHERD__OP_HIDE] = "hide",         [SHERD__OP_OPEN] = "open",
    [SHERD__OP_CONFIRM] = "confirm",   [SHERD__OP_CHECK] = "check",
    [SHERD__OP_MEET] = "meet",         [SHERD__OP_CONNECT] = "connect",
    [SHERD__OP_STEP] = "step",         [SHERD__OP_REDUCE] = "reduce",
    [SHERD__OP_STATE] = "state",       [SHERD__OP_WHERE] = "where",
    [SHERD__OP_SIGMOID] = "sigmoid",   [SHERD__OP_MINUS] = "minus",
    [SHERD__OP_SQUARE] = "square",     [SHERD__OP_TIMES] = "times",
    [SHERD__OP_RELU] = "relu",         [SHERD__OP_TANH] = "tanh",
    [SHERD__OP_EXP] = "exp",
};

static json_t *number(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *tasks_json(const sherd__worker_stats *t)
{
    json_t *obj = json_object();
    for (unsigned i = 0; i < SHERD__OPS_MAX; i++)
        if (op_names[i]) json_object_set_new(obj, op_names[i], number(t->tasks[i]));
    json_object_set_new(obj, "refused", number(t->refused));
    json_object_set_new(obj, "cancelled", number(t->cancelled));
    return obj;
}

static void report(void *ctx, const sherd__worker_stats *t, const sherd__pool_stats *m,
                   const sherd__device *device)
{
    run *r = ctx;
    sherd_diag d = { .code = 0 };
    char in[24], out[24], peak[24];
    uint64_t tasks = 0;
    if (r->cli->json) {
        json_t *obj = sherd__cli_json_new(r->cli);
        json_object_set_new(obj, "tasks", tasks_json(t));
        json_object_set_new(obj, "blocks_in", number(t->blocks_in));
        json_object_set_new(obj, "bytes_in", number(t->bytes_in));
        json_object_set_new(obj, "bytes_out", number(t->bytes_out));
        json_object_set_new(obj, "sessions", number(t->clients));
        json_object_set_new(obj, "memory_budget", number(m->budget));
        json_object_set_new(obj, "memory_peak", number(m->peak));
        json_object_set_new(obj, "blas_core", json_string(device->core));
        json_object_set_new(obj, "threads", number(device->threads));
        if (r->data.ledger) json_object_set_new(obj, "privacy", sherd__node_data_json(&r->data));
        if (sherd__cli_json_end(r->cli, obj, &d)) sherd__cli_warn(r->cli, "%s", d.message);
        fflush(stdout);
        return;
    }
    if (r->data.ledger) sherd__node_data_say(r->cli, &r->data);
    for (unsigned i = 0; i < SHERD__OPS_MAX; i++) tasks += t->tasks[i];
    sherd__cli_note(r->cli, "%llu tasks done, %llu refused; %s in, %s out; at most %s of memory",
                    (unsigned long long)tasks, (unsigned long long)t->refused,
                    sherd__cli_bytes(t->bytes_in, in), sherd__cli_bytes(t->bytes_out, out),
                    sherd__cli_bytes(m->peak, peak));
}

/* ---- record ---------------------------------------------------------------------------------- */

static void *tap_open(void *ctx, const sherd__fingerprint *peer, uint64_t session)
{
    run *r = ctx;
    char name[40], text[SHERD__FINGERPRINT_TEXT];
    sherd_diag d = { .code = 0 };
    sherd__record_peer *p = NULL;
    snprintf(name, sizeof name, "session-%llu", (unsigned long long)session);
    sherd__fingerprint_text(peer, text);
    int err = sherd__record_peer_add(&p, r->record, name, &d);
    if (!err) err = sherd__record_peer_key(p, text);
    if (!err) return p;
    sherd__cli_warn(r->cli, "%s", d.message[0] ? d.message : sherd_strerror(err));
    return NULL;
}

static void tap_bytes(void *tap, bool out, const uint8_t *bytes, size_t len)
{
    sherd__record_tap(tap, out, bytes, len);
}

static void tap_close(void *tap)
{
    sherd__record_peer_end(tap);
}

static int end_record(run *r, int err)
{
    sherd__record *record = r->record;
    r->record = NULL;
    if (!record) return err;
    int late = sherd__record_end(record, err ? NULL : r->d);
    return err ? err : late;
}

/* A product is still running and cannot be interrupted, so none of its memory may be freed. */
static void abandon(void *ctx)
{
    run *r = ctx;
    int err = end_record(r, 0);
    fflush(stdout);
    _exit(sherd_err_exit(err));
}

/* Returns whether to stop. SIGHUP does not stop a node: it asks to read files again, which a node
 * does when it starts. */
static bool interrupted(void *ctx)
{
    int sig = sherd__cli_interrupted();
    (void)ctx;
    return sig == SIGTERM || sig == SIGINT;
}

/* ---- options --------------------------------------------------------------------------------- */

/* Parses "127.0.0.1:7001", "[::1]:7001", ":7001" (every address). */
static int parse_listen(const char *text, char *host, size_t size, uint16_t *port, sherd_diag *d)
{
    const char *colon = strrchr(text, ':'), *end = colon;
    char *rest;
    if (colon && text[0] == '[' && colon > text && colon[-1] == ']') {
        text++;
        end = colon - 1;
    } else if (colon && memchr(text, ':', (size_t)(colon - text))) {
        colon = NULL; /* an IPv6 address without brackets */
    }
    bool digits = colon && colon[1] >= '0' && colon[1] <= '9';
    unsigned long n = digits ? strtoul(colon + 1, &rest, 10) : 65536;
    if (n > 65535 || *rest || (size_t)(end - text) >= size)
        return sherd__fail(d, SHERD_EINVAL, "--listen 127.0.0.1:0 lets the system choose a port",
                           "--listen: expected ADDRESS:PORT, found '%s'", text);
    memcpy(host, text, (size_t)(end - text));
    host[end - text] = '\0';
    if (end == text) memcpy(host, "0.0.0.0", 8);
    *port = (uint16_t)n;
    return 0;
}

static uint64_t default_memory(void)
{
    sherd_machine m = { .size = sizeof m };
    if (sherd_machine_get(&m, NULL) != 0 || m.memory == 0) return (uint64_t)1 << 30;
    return (m.memory_limit ? m.memory_limit : m.memory) / 2;
}

static int need_files(const sherd__node_options *o, sherd_diag *d)
{
    if (o->parent_pipe >= 0) return 0;
    if (!o->key_file)
        return sherd__fail(d, SHERD_EINVAL, "sherd keygen node.key",
                           "--key FILE is missing: this "
                           "node's private key");
    if (!o->allow_file)
        return sherd__fail(d, SHERD_EINVAL,
                           "a file with a line `* key=sha256:... role=coordinator` for each "
                           "coordinator; sherd keygen --show prints a key's fingerprint",
                           "--allow FILE is missing: nobody is let in by default");
    return 0;
}

/* Checks a name that is part of the line that the node prints, which must be valid in a node
 * file. */
static int check_name(const sherd__cli *cli, const char *option, sherd_diag *d)
{
    const char *name = sherd__opt_text(cli, option);
    if (!name || sherd__peer_name_valid(name)) return 0;
    return sherd__fail(d, SHERD_EINVAL, "use 1 to 63 letters, digits and . _ - : / @ +",
                       "%s \"%.80s\" is empty, too long or has other characters",
                       sherd__opt_where(cli, option), name);
}

static int read_options(sherd__cli *cli, sherd__node_options *o, char *host, size_t host_size,
                        sherd_diag *d)
{
    int err = parse_listen(sherd__opt_text(cli, "listen"), host, host_size, &o->port, d);
    if (err) return err;
    err = check_name(cli, "name", d);
    if (!err) err = check_name(cli, "domain", d);
    if (err) return err;
    o->host = host;
    o->name = sherd__opt_text(cli, "name");
    o->domain = sherd__opt_text(cli, "domain");
    o->key_file = sherd__opt_text(cli, "key");
    o->allow_file = sherd__opt_text(cli, "allow");
    bool local = sherd__opt_given(cli, "parent-pipe");
    o->parent_pipe = local ? (int)sherd__opt_int(cli, "parent-pipe") : -1;
    o->stay = sherd__opt_flag(cli, "stay");
    o->threads = (uint32_t)sherd__opt_int(cli, "threads");
    o->cores = sherd__opt_text(cli, "cores");
    o->quick = sherd__opt_choice(cli, "selftest") == 1;
    o->memory = sherd__opt_given(cli, "memory") ? sherd__opt_size(cli, "memory") : default_memory();
    o->connections_max = (uint32_t)sherd__opt_int(cli, "connections");
    return need_files(o, d);
}

/* A local node ends when its parent's pipe closes. If the node is stopped then, the parent's death
 * must wake it. SIGKILL would not do: the kernel sends the signal when the thread that started the
 * node ends, and a program may open a cluster in a thread that ends early. */
static void wake_when_orphaned(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGCONT);
}

int sherd__node_with(const sherd__backend *backend, sherd__cli *cli, sherd_diag *d)
{
    char host[256];
    run r = { .cli = cli, .d = d };
    sherd__node_options o = { .backend = backend,
                              .listening = listening,
                              .say = say,
                              .report = report,
                              .interrupted = interrupted,
                              .abandon = abandon,
                              .ctx = &r };
    int err = read_options(cli, &o, host, sizeof host, d);
    if (err) return err;
    if (o.parent_pipe >= 0) wake_when_orphaned();
    /* Large buffers are mapped and unmapped directly, so that freed memory returns to the
     * system. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_ARENA_MAX, 2);
    const char *dir = sherd__opt_text(cli, "record");
    err = sherd__node_data_open(&r.data, cli, &o, d);
    if (!err && dir) err = sherd__record_new(&r.record, dir, "node", d);
    if (r.record) o.tap = (sherd__node_tap){ tap_open, tap_bytes, tap_close, &r };
    if (!err && r.data.ledger) sherd__node_data_say(cli, &r.data);
    if (!err) err = sherd__node_run(&o, d);
    err = end_record(&r, err);
    sherd__node_data_close(&r.data);
    return err;
}

static int run_node(sherd__cli *cli, sherd_diag *d)
{
    return sherd__node_with(&sherd__backend_cpu, cli, d);
}

static const char *const choices_backend[] = { "auto", "cpu", NULL };
static const char *const choices_selftest[] = { "full", "quick", NULL };

static const sherd__example examples[] = {
    { "sherd node --listen 127.0.0.1:0 --key node.key --allow allow.txt",
      "serves this machine, on a port that the system chooses" },
    { "sherd node --listen 0.0.0.0:7001 --key node.key --allow allow.txt --memory 8G >>nodes.txt",
      "serves the network; its line is appended to a node file" },
    { "sherd node --listen :7001 --key node.key --allow allow.txt --data mine.npz --peers all.txt",
      "brings examples to a training and keeps them; rounds cost at most --epsilon 8" },
    { "sherd node --listen :7001 --key node.key --allow allow.txt --record seen",
      "also writes down everything that this node gets to see" },
    { 0 },
};

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
    SHERD__NODE_DATA_OPTIONS,
    SHERD__OPT_THREADS,
    { .name = "backend", .type = SHERD__CHOICE, .arg = "NAME", .preset = "auto",
      .choices = choices_backend, .help = "what computes: auto or cpu" },
    { .name = "connections", .type = SHERD__INT, .arg = "N", .preset = "64", .min = 1, .max = 10000,
      .help = "most connections of coordinators and members at a time" },
    { .name = "record", .type = SHERD__DIR, .arg = "DIR", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write all that the node sees and says into the new folder DIR" },
    { .name = "selftest", .type = SHERD__CHOICE, .arg = "HOW", .preset = "full",
      .choices = choices_selftest, .help = "full, or quick: correctness and a guess of the speed" },
    { .name = "parent-pipe", .type = SHERD__INT, .arg = "FD", .min = 0, .max = 1048576,
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

const sherd__verb sherd__verb_node = {
    .name = "node",
    .usage = "",
    .summary = "run a scheduler node",
    .details =
        "Stores blocks that coordinators send and computes on them. Prints its line of a node file "
        "once it listens: paste it where the coordinator runs. Only keys of the allow-list are let "
        "in, always over TLS 1.3. What does not fit into --memory is refused. SIGTERM and SIGINT "
        "end it in good order, SIGHUP reads the allow-list again, SIGUSR1 tells its counters (-v, "
        "--json). It keeps nothing: everything is gone with the process.",
    .examples = examples,
    .options = sherd__node_options_table,
    .args_min = 0,
    .args_max = 0,
    .run = run_node,
};
