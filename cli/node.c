/*
 * `sherd node`: a scheduler node as a process. It prints its own line of a node file once it
 * listens. Then it serves until SIGTERM, SIGINT or, for a node that the command started, the end of
 * its parent's pipe. SIGHUP reads the allow-list again. With --json the line is an object, and a
 * second object with the counters follows at the end and on SIGUSR1.
 */
#include "cli/node.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/fields.h"
#include "cli/node_devices.h"
#include "cli/nodes.h"
#include "core/alloc.h"

#define COMPUTE_MS 2000u /* how long an ending node waits for its running product */
#define ORPHAN_MS 1u     /* ... when nothing can receive the result */
#define REUSE_BYTES ((size_t)64 << 20)

/* ---- signals --------------------------------------------------------------------------------- */

static atomic_int end_signal, reload_wanted, report_wanted;

static void on_signal(int number)
{
    int none = 0;
    if (number == SIGHUP) atomic_store(&reload_wanted, 1);
    else if (number == SIGUSR1) atomic_store(&report_wanted, 1);
    else atomic_compare_exchange_strong(&end_signal, &none, number);
}

static void catch_signals(void)
{
    static const int caught[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1 };
    struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) sigaction(caught[i], &act, NULL);
}

/* While the node starts, signals are those of the command. SIGHUP does not stop a node: it asks to
 * read files again, which a node does when it starts. */
static bool is_to_end(void)
{
    int sig = sherd__cli_interrupted();
    return atomic_load(&end_signal) || sig == SIGTERM || sig == SIGINT;
}

static bool interrupted(void *ctx)
{
    (void)ctx;
    return is_to_end() || atomic_load(&reload_wanted) || atomic_load(&report_wanted);
}

/* A local node ends when its parent's pipe closes. If the node is stopped then, the parent's death
 * must wake it. SIGKILL would not do: the kernel sends the signal when the thread that started the
 * node ends, and a program may open a cluster in a thread that ends early. */
static void wake_when_orphaned(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGCONT);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void say_line(const sherd__cli *cli, const char *line)
{
    sherd_diag d = { .code = 0 };
    if (cli->json) {
        json_t *obj = sherd__cli_json_new(cli);
        json_object_set_new(obj, "listening", json_string(line));
        json_object_set_new(obj, "pid", json_integer(getpid()));
        if (sherd__cli_json_end(cli, obj, &d)) sherd__cli_warn(cli, "%s", d.message);
    } else {
        sherd__cli_print("%s", line);
    }
    if (fflush(stdout)) sherd__cli_warn(cli, "cannot write to standard output");
}

static void say_privacy(const sherd__cli *cli, sherd_node *node)
{
    sherd_node_privacy p = { .size = sizeof p };
    char most[32] = "no bound";
    if (sherd_node_privacy_get(node, &p, NULL)) return;
    if (isfinite(p.epsilon_max)) snprintf(most, sizeof most, "%.4g", p.epsilon_max);
    if (isfinite(p.epsilon))
        sherd__cli_say(cli, "privacy spent so far: epsilon %.4g of %s at delta %g, in %llu uploads",
                       p.epsilon, most, p.delta, (unsigned long long)p.uploads);
    else
        sherd__cli_say(cli,
                       "privacy spent so far: no bound, since some of the %llu uploads had no "
                       "noise",
                       (unsigned long long)p.uploads);
}

static uint64_t sum(const sherd_node_tasks *t)
{
    size_t count;
    const sherd_field *fields = sherd_node_tasks_fields(&count);
    uint64_t all = 0, one;
    for (size_t i = 0; i < count; i++) {
        memcpy(&one, (const char *)t + fields[i].offset, sizeof one);
        all += one;
    }
    return all - t->refused - t->cancelled;
}

static void say_counters(const sherd__cli *cli, sherd_node *node)
{
    sherd_node_report r = { .size = sizeof r };
    sherd_node_tasks t = { .size = sizeof t };
    sherd_node_privacy p = { .size = sizeof p };
    sherd_diag d = { .code = 0 };
    char in[24], out[24], peak[24];
    if (sherd_node_report_get(node, &r, NULL) || sherd_node_tasks_get(node, &t, NULL)) return;
    if (cli->json) {
        json_t *obj = sherd__cli_json_new(cli);
        json_object_set_new(obj, "tasks", sherd__fields_object(&t, sherd_node_tasks_fields, NULL));
        sherd__fields_json(obj, &r, sherd_node_report_fields, NULL);
        if (sherd_node_privacy_get(node, &p, NULL) == 0)
            json_object_set_new(obj, "privacy",
                                sherd__fields_object(&p, sherd_node_privacy_fields, NULL));
        if (sherd__cli_json_end(cli, obj, &d)) sherd__cli_warn(cli, "%s", d.message);
        fflush(stdout);
        return;
    }
    say_privacy(cli, node);
    sherd__cli_note(cli, "%llu task%s done, %llu refused; %s in, %s out; at most %s of memory",
                    (unsigned long long)sum(&t), sum(&t) == 1 ? "" : "s",
                    (unsigned long long)t.refused, sherd__cli_bytes(r.bytes_in, in),
                    sherd__cli_bytes(r.bytes_out, out), sherd__cli_bytes(r.memory_peak, peak));
}

static void log_line(void *ctx, sherd_log_level level, const char *text)
{
    sherd__nodes_log(ctx, level, text);
}

/* ---- serving --------------------------------------------------------------------------------- */

static void reload(const sherd__cli *cli, sherd_node *node)
{
    sherd_diag d = { .code = 0 };
    const char *file = sherd__opt_text(cli, "allow");
    if (!file) return; /* the parent's list */
    if (sherd_node_allow(node, NULL, &d))
        sherd__cli_warn(cli, "the allow-list is unchanged: %s", d.message);
    else sherd__cli_say(cli, "read %s again", file);
}

/* Ends the process, in which a driver may still run: neither its memory nor its handlers of exit
 * may be used. */
static _Noreturn void end_lost(const sherd__cli *cli, const sherd_diag *d)
{
    sherd__cli_warn(cli, "%s", d->message);
    fflush(stdout);
    _exit(sherd__opt_flag(cli, "supervised") ? SHERD__NODE_LOST : sherd_err_exit(SHERD_EDEVICE));
}

/* Serves until a signal or the parent ends the node. */
static int serve(sherd__cli *cli, sherd_node *node, sherd_diag *d)
{
    while (!is_to_end() && sherd_node_wait(node, NULL) == SHERD_EINTERRUPTED) {
        if (atomic_exchange(&reload_wanted, 0)) reload(cli, node);
        if (atomic_exchange(&report_wanted, 0)) say_counters(cli, node);
    }
    int err = sherd_node_end(node, sherd_node_orphaned(node) ? ORPHAN_MS : COMPUTE_MS, d);
    say_counters(cli, node);
    if (err == SHERD_EDEVICE) end_lost(cli, d);
    if (err != SHERD_ETIMEOUT) return err;
    /* The product cannot be interrupted, so none of its memory may be freed. */
    fflush(stdout);
    _exit(0);
}

/* Makes descriptor 1 standard error while a driver is loaded and opened, since drivers may print.
 * Returns the descriptor of standard output; -1: it could not be duplicated, and is unchanged. */
static int set_output_aside(void)
{
    fflush(stdout);
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (out >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        close(out);
        return -1;
    }
    return out;
}

static void restore_output(int out)
{
    if (out < 0) return;
    fflush(stdout); /* what a driver has printed */
    (void)dup2(out, STDOUT_FILENO);
    close(out);
}

/* Starts the node and serves. listen: in place of the option, after a device failed; or NULL. */
static int run_with(sherd__node_starter *start, sherd__cli *cli, const char *listen, sherd_diag *d)
{
    sherd_node_data data;
    sherd_node_options o;
    sherd_node *node;
    int err = sherd__node_read(cli, &o, &data, d);
    if (err) return err;
    if (listen) {
        o.listen = listen;
        o.backend = "cpu";
        o.devices = NULL;
        o.device_memory = 0;
    }
    if (!o.parent_pipe) sherd__nodes_check_memory(cli, "memory", o.memory);
    o.hooks = (sherd_hooks){ .interrupted = interrupted, .log = log_line, .ctx = cli };
    if (o.parent_pipe) wake_when_orphaned();
    /* Large buffers are mapped and unmapped directly, so that freed memory returns to the system.
     * Loop and compute thread each have an arena; this thread has the third. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_ARENA_MAX, 3);
    sherd__alloc_reuse(REUSE_BYTES);
    int out = set_output_aside();
    err = start(&node, &o, d);
    restore_output(out);
    if (err == SHERD_EDEVICE && sherd__opt_flag(cli, "supervised")) end_lost(cli, d);
    if (err) return err;
    catch_signals();
    if (!cli->json) say_privacy(cli, node);
    if (listen) sherd__cli_say(cli, "serving on the processor: %s", sherd_node_line(node));
    else say_line(cli, sherd_node_line(node));
    err = serve(cli, node, d);
    sherd_node_free(node);
    return err;
}

int sherd__node_with(sherd__node_starter *start, sherd__cli *cli, sherd_diag *d)
{
    return run_with(start, cli, NULL, d);
}

/* Serves in another process, and after a failure of its device in this one. */
static int run_supervised(sherd__cli *cli, sherd_diag *d)
{
    char listen[300];
    int err = sherd__node_supervise(cli, listen, sizeof listen, d);
    if (err != SHERD_EDEVICE) return err;
    sherd__cli_warn(cli, "%s; continuing on the processor (--fallback cpu)", d->message);
    *d = (sherd_diag){ .code = 0 };
    return run_with(sherd_node_start, cli, listen, d);
}

static int probe(const sherd__cli *cli, sherd_diag *d)
{
    static const char *const how[] = { "list", "open", "measure", "first" };
    const sherd_node_options o = { .size = sizeof o,
                                   .backend = sherd__opt_text(cli, "backend"),
                                   .devices = sherd__opt_text(cli, "device"),
                                   .device_memory = sherd__opt_size(cli, "device-memory"),
                                   .opencl_library = sherd__opt_text(cli, "opencl-library"),
                                   .cuda_library = sherd__opt_text(cli, "cuda-library"),
                                   .quick_test = sherd__opt_choice(cli, "selftest") == 1 };
    /* A driver may hang, and the process that waits for its answer be killed. The thread that
     * started this process waits for it. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int out = set_output_aside();
    if (out < 0) return sherd__fail(d, SHERD_EIO, NULL, "no descriptor: %s", strerror(errno));
    int err = sherd_devices_probe(&o, how[sherd__opt_choice(cli, "probe")], out, d);
    if (err) return err;
    _exit(0); /* not through the handlers of a driver */
}

static int print_line(sherd__cli *cli, sherd_diag *d)
{
    sherd_node_data data;
    sherd_node_options o;
    char line[SHERD_PEER_LINE_SIZE];
    int err = sherd__node_read(cli, &o, &data, d);
    o.hooks.log = log_line;
    o.hooks.ctx = cli;
    if (!err) err = sherd_node_line_of(&o, line, d);
    if (err) return err;
    if (!cli->json) {
        sherd__cli_print("%s", line);
        return 0;
    }
    json_t *obj = sherd__cli_json_new(cli);
    json_object_set_new(obj, "line", json_string(line));
    return sherd__cli_json_end(cli, obj, d);
}

static int run_node(sherd__cli *cli, sherd_diag *d)
{
    if (sherd__opt_given(cli, "probe")) return probe(cli, d);
    if (sherd__opt_flag(cli, "list-devices")) return sherd__node_devices(cli, d);
    if (sherd__opt_flag(cli, "print-line")) return print_line(cli, d);
    if (sherd__opt_flag(cli, "supervised")) (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    else if (sherd__opt_choice(cli, "fallback") == 1) return run_supervised(cli, d);
    return sherd__node_with(sherd_node_start, cli, d);
}

static const sherd__example examples[] = {
    { "sherd node --listen 127.0.0.1:0 --key node.key --allow allow.txt",
      "serves this machine, on a port that the system chooses" },
    { "sherd node --listen 0.0.0.0:7001 --key node.key --allow allow.txt --memory 8G >>nodes.txt",
      "serves the network; its line is appended to a node file" },
    { "sherd node --list-devices", "the GPUs of this machine, and other devices with drivers" },
    { "sherd node --listen :7001 --key node.key --allow allow.txt --backend cuda --device 1",
      "computes on the second device of CUDA" },
    { "sherd node --listen :7001 --key node.key --print-line >mine.txt",
      "the line of a node that does not run yet; those of all nodes are the file of --peers" },
    { "sherd node --listen :7001 --key node.key --allow allow.txt --data mine.npz --peers all.txt",
      "trains on examples that never leave the node; rounds cost at most --epsilon 8" },
    { "sherd node --listen :7001 --key node.key --allow allow.txt --record seen",
      "also records everything that this node sees" },
    { 0 },
};

const sherd__verb sherd__verb_node = {
    .name = "node",
    .usage = "",
    .summary = "run a scheduler node",
    .details =
        "Stores blocks that coordinators send and computes on them. Prints its line of a node file "
        "when it listens: append it to the coordinator's node file. Computes on a GPU where there "
        "is one (--backend), with the same bits as on the processor. Only keys in the allow-list "
        "can connect, always over TLS 1.3. Work that does not fit into --memory is refused. "
        "SIGTERM and SIGINT end the node after it has notified its coordinators, SIGHUP reads the "
        "allow-list again, and SIGUSR1 prints its counters (with -v or --json). All blocks are "
        "lost when the process ends.",
    .examples = examples,
    .options = sherd__node_options_table,
    .args_min = 0,
    .args_max = 0,
    .run = run_node,
};
