/*
 * One fault and the command that it hits: nodes are killed or stopped, disconnected, or lie. In all
 * cases the product has the bits of an undisturbed one, or the command ends with the right code and
 * does not change the earlier file; and a node that is given up is named on stderr within 20 s of
 * the fault. How long the rest of the work takes depends on the machine.
 *
 * Instants are points in the work, not times: "before" is when all nodes listen; later ones are
 * when so many bytes have been sent to the victim or received from it (as the coordinator's
 * --record shows), so that a slow machine has the same cases as a fast one.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault_case.h"
#include "proxy.h"
#include "tests/support/send_signal.h"

/* Two sessions that end in silence, of 7 s each where this process is late itself, a retry and a
 * grace; only timers run meanwhile. */
#define WITHIN_MS 20000
#define HANGS_MS 60000
#define START_MS 1000 /* start of the nodes: they do not lie before */
#define OLD "an earlier result\n"

const char *const fault_names[KINDS] = {
    "kill",  "stop",    "reset", "half",   "stall",  "garbage", "wronglen", "wrong",
    "twice", "unasked", "slow",  "silent", "strict", "bound",   "all",
};
char fault_top[128];
calm fault_calm[WAYS];
char fault_shared[FAULT_FEW][1024];

static const char *const ways[WAYS][8] = {
    { "--mode", "exact", "--exposure", "balanced", NULL },
    { "--mode", "exact", "--scheme", "plain", NULL },
    { "--exposure", "balanced", NULL },
    { "--scheme", "share", "--spare", "1", "--same-host-domains", NULL },
};

/* ---- running the command --------------------------------------------------------------------- */

void fault_begin(fault_command *r, const fault_case *f, const char *program, int way,
                 unsigned nodes, const char *nodes_file, bool record, const char *env)
{
    char n[16], a[200], b[200], s[200], key[200];
    const char *argv[48];
    const char *const envs[] = { env, NULL };
    size_t k = 0;
    snprintf(r->dir, sizeof r->dir, "%s/%s-%u", fault_top, fault_names[f->kind], f->index);
    snprintf(r->out, sizeof r->out, "%s/C.npy", r->dir);
    snprintf(r->record, sizeof r->record, "%s/record", r->dir);
    snprintf(a, sizeof a, "%s/A.npy", fault_top);
    snprintf(b, sizeof b, "%s/B.npy", fault_top);
    snprintf(s, sizeof s, "%s/seed", fault_top);
    snprintf(key, sizeof key, "%s/me.key", fault_top);
    snprintf(n, sizeof n, "%u", nodes);
    r->reported_ms = 0;
    if (mkdir(r->dir, 0700) != 0) abort();
    file_put(r->out, OLD, sizeof OLD - 1);
    const char *fixed[] = { "sherd",  "multiply",   a,      b,          "-o", r->out,
                            "--json", "--progress", "none", "--memory", "2M" };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) argv[k++] = fixed[i];
    for (const char *const *w = ways[way]; *w; w++) argv[k++] = *w;
    if (way == EXACT || way == FLOAT) argv[k++] = "--seed", argv[k++] = s; /* permute */
    argv[k++] = nodes_file ? "--nodes" : "-n";
    argv[k++] = nodes_file ? nodes_file : n;
    if (nodes_file) argv[k++] = "--key", argv[k++] = key;
    if (record) argv[k++] = "--record", argv[k++] = r->record;
    if (f->kind == STRICT) argv[k++] = "--strict";
    argv[k] = NULL;
    command_start(&r->c, program, argv, env ? envs : NULL);
}

void fault_say(fault_case *f, const char *fmt, ...)
{
    va_list ap;
    size_t at = strlen(f->text);
    va_start(ap, fmt);
    vsnprintf(f->text + at, sizeof f->text - at, fmt, ap);
    va_end(ap);
    f->ok = false;
}

void fault_say_end(fault_case *f, const fault_command *r)
{
    char *err = command_said(r->c.err), *out = command_said(r->c.out);
    fault_say(f, "; exit %d after %lld ms; stderr: %.300s; stdout: %.200s", r->c.status,
              (long long)(r->c.ended_ms - r->c.began_ms), err, out);
    free(err);
    free(out);
}

/* Returns whether the command has ended; sets r->reported_ms when it first names a node as lost. */
static bool over(fault_command *r)
{
    bool ended = command_over(&r->c);
    char *err = r->reported_ms ? NULL : command_said(r->c.err);
    if (err && (strstr(err, "lost") || strstr(err, "banned"))) r->reported_ms = clock_now_ms();
    free(err);
    return ended;
}

static void await_end(fault_case *f, fault_command *r)
{
    int64_t deadline = clock_now_ms() + HANGS_MS;
    while (!over(r) && clock_now_ms() < deadline) pause_ms(5);
    if (!command_wait(&r->c, 0)) fault_say(f, "it hangs");
}

/* Checks that the run ended with this code, that it named a lost node within the time limit after
 * the fault, and that the file is right. */
static void judge(fault_case *f, fault_command *r, int64_t since_ms, int code, const calm *want)
{
    f->took_ms = r->c.ended_ms - since_ms;
    if (r->c.status != code) fault_say(f, "expected exit %d", code);
    else if (r->reported_ms - since_ms > WITHIN_MS * patience())
        fault_say(f, "told after %lld ms", (long long)(r->reported_ms - since_ms));
    else if (code == 0 && !files_equal(r->out, want->file)) fault_say(f, "the product is wrong");
    else if (code != 0 && !file_holds(r->out, OLD)) fault_say(f, "the earlier file is gone");
    else if (folder_hidden(r->dir)) fault_say(f, "a temporary file is left");
    if (!f->ok) fault_say_end(f, r);
}

json_t *fault_node(json_t *root, const char *name)
{
    size_t i;
    json_t *n;
    json_array_foreach(json_object_get(root, "nodes"), i,
                       n) if (!strcmp(json_string_value(json_object_get(n, "name")),
                                      name)) return n;
    return NULL;
}

static bool node_is(json_t *root, const char *name, const char *state)
{
    const char *found = json_string_value(json_object_get(fault_node(root, name), "state"));
    return found && strcmp(found, state) == 0;
}

json_int_t fault_count(json_t *root, const char *field)
{
    return json_integer_value(json_object_get(root, field));
}

/* Every fourth case of the kinds that can use any of the schemes. */
static int way_of(const fault_case *f)
{
    return f->index % 4 == 3 ? SHARE : EXACT;
}

/* ---- killed and stopped ---------------------------------------------------------------------- */

/* Waits for the instant: of 12 cases, 2 before, 4 by the bytes sent, 4 by the bytes received, 2
 * after. The fourth of each four is in shares. */
static void await_instant(fault_case *f, fault_command *r, unsigned victim, const calm *usual)
{
    char sent[240], received[240];
    int64_t out = 0, in = 0;
    snprintf(sent, sizeof sent, "%s/node-%u.sent", r->record, victim);
    snprintf(received, sizeof received, "%s/node-%u.received", r->record, victim);
    switch (f->index % 12) {
    case 0: out = 0; break;  /* it listens */
    case 11: out = 1; break; /* the handshake was sent */
    case 1:
    case 2:
    case 3:
    case 4: out = (int64_t)(100 + f->draw[1] % usual->sent); break;
    case 5:
    case 6:
    case 7:
    case 8: in = (int64_t)(100 + f->draw[1] % usual->received); break;
    default: in = (int64_t)usual->received + 1; /* its last answer has arrived, or nearly */
    }
    while (!over(r) && (file_size(sent) < out || file_size(received) < in)) usleep(200);
}

static void killed_or_stopped(fault_case *f)
{
    unsigned victim = 1 + (unsigned)(f->draw[0] % FAULT_FEW);
    int way = way_of(f);
    const calm *usual = &fault_calm[way];
    char name[16];
    fault_command r;
    snprintf(name, sizeof name, "node-%u", victim);
    fault_begin(&r, f, sherd_path(), way, FAULT_FEW, NULL, true, NULL);
    await_instant(f, &r, victim, usual);
    pid_t pid = child_named(r.c.pid, name);
    int64_t at = clock_now_ms();
    if (pid) send_signal(pid, f->kind == KILL ? SIGKILL : SIGSTOP);
    await_end(f, &r);
    judge(f, &r, pid ? at : r.c.ended_ms, 0, usual);
    json_t *root = command_json(&r.c);
    f->struck = fault_count(root, "nodes_lost") == 1 || node_is(root, name, "lost");
    if (way == SHARE) { /* the other nodes are enough: it may end before a silent node counts as
                         * lost */
        f->struck = pid != 0;
        if (fault_count(root, "encodings") != 1)
            fault_say(f, "shares were made again"), fault_say_end(f, &r);
    }
    json_decref(root);
    if (pid && process_alive(pid)) fault_say(f, "node %ld is left", (long)pid);
    command_free(&r.c);
}

/* Five of seven nodes, or all, during the work; every product takes a second. */
static void too_many(fault_case *f)
{
    pid_t pids[FAULT_LOCAL];
    char received[240];
    fault_command r;
    fault_begin(&r, f, liar_path(), EXACT, FAULT_LOCAL, NULL, true, "SHERD_TEST_MISBEHAVE=slow:1");
    snprintf(received, sizeof received, "%s/node-1.received", r.record);
    while (!over(&r) && file_size(received) < 2000) pause_ms(1);
    size_t n = children_of(r.c.pid, pids, FAULT_LOCAL), doomed = f->kind == ALL ? n : 5;
    int64_t at = clock_now_ms();
    for (size_t i = 0; i < doomed && i < n; i++)
        send_signal(pids[i], f->index % 2 ? SIGSTOP : SIGKILL);
    if (n != FAULT_LOCAL) fault_say(f, "%zu nodes", n);
    await_end(f, &r);
    judge(f, &r, at, f->kind == ALL ? 7 : 10, NULL);
    json_t *root = command_json(&r.c);
    json_t *error = json_object_get(root, "error");
    if (fault_count(error, "code") != (f->kind == ALL ? 7 : 10) ||
        !json_string_length(json_object_get(error, "hint")))
        fault_say(f, "the JSON does not give the reason");
    json_decref(root);
    if (!processes_gone(pids, n, 10000 * patience())) fault_say(f, "a node is left");
    command_free(&r.c);
}

/* ---- cut connections ------------------------------------------------------------------------- */

static uint16_t port_of(const char *line)
{
    return (uint16_t)atoi(strchr(line, ':') + 1);
}

/* Writes the node file, with one node's port replaced by the proxy's. */
static void write_nodes(const char *path, unsigned through, uint16_t port)
{
    char text[FAULT_FEW * 1200] = "";
    for (unsigned i = 0; i < FAULT_FEW; i++) {
        const char *rest = strchr(fault_shared[i], ' ');
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "127.0.0.1:%u%s domain=d%u\n",
                 i == through ? port : port_of(fault_shared[i]), rest, i);
    }
    file_put(path, text, strlen(text));
}

static void cut(fault_case *f)
{
    static const proxy_fault faults[] = { PROXY_RESET, PROXY_HALF, PROXY_STALL };
    unsigned victim = (unsigned)(f->draw[0] % FAULT_FEW);
    int direction = (int)(f->draw[2] % 2); /* 0: towards the node */
    int way = way_of(f);
    const calm *usual = &fault_calm[way];
    uint64_t whole = direction ? usual->received : usual->sent;
    char nodes[200], name[16];
    proxy p;
    fault_command r;
    proxy_open(&p, port_of(fault_shared[victim]), faults[f->kind - RESET], direction,
               1 + f->draw[1] % (whole + 2000));
    snprintf(nodes, sizeof nodes, "%s/nodes-%s-%u", fault_top, fault_names[f->kind], f->index);
    write_nodes(nodes, victim, p.port);
    fault_begin(&r, f, sherd_path(), way, 0, nodes, false, NULL);
    int64_t deadline = clock_now_ms() + HANGS_MS;
    while (!over(&r) && clock_now_ms() < deadline) proxy_turn(&p, 5);
    if (!command_wait(&r.c, 0)) fault_say(f, "it hangs");
    judge(f, &r, p.struck_ms ? p.struck_ms : r.c.ended_ms, 0, usual);
    json_t *root = command_json(&r.c);
    snprintf(name, sizeof name, "n%u", victim);
    f->struck = p.struck_ms &&
                (way == SHARE || fault_count(root, "nodes_lost") || !node_is(root, name, "up"));
    if (fault_count(root, "nodes_banned"))
        fault_say(f, "an honest node was banned"), fault_say_end(f, &r);
    json_decref(root);
    proxy_close(&p);
    command_free(&r.c);
}

/* ---- lying nodes ----------------------------------------------------------------------------- */

/* Observes a node's answers until the command ends; returns the time of the last one. */
static int64_t last_answer(fault_command *r, const char *name)
{
    char received[240];
    int64_t had = 0, at = r->c.began_ms, deadline = at + HANGS_MS;
    snprintf(received, sizeof received, "%s/%s.received", r->record, name);
    while (!over(r) && clock_now_ms() < deadline) {
        int64_t has = file_size(received);
        if (has > had + 1000) { /* more than a heartbeat */
            had = has;
            at = clock_now_ms();
        }
        pause_ms(5);
    }
    return at;
}

static void lies(fault_case *f)
{
    static const char *const strict_modes[] = { "wrong", "garbage", "wronglen", "twice",
                                                "unasked" };
    unsigned liar = 1 + (unsigned)(f->draw[0] % FAULT_FEW);
    int way = (int)(f->index % WAYS);
    const calm *usual = &fault_calm[way];
    const char *mode = f->kind == STRICT ? strict_modes[f->index % 5] : fault_names[f->kind];
    uint64_t after = f->draw[1] % usual->panels;
    char env[96], name[16];
    fault_command r;
    if (f->kind == STRICT) after %= 3;
    /* A second for each of the others */
    if (f->kind == SLOW) after = usual->panels - 1 - after % 3;
    snprintf(name, sizeof name, "node-%u", liar);
    snprintf(env, sizeof env, "SHERD_TEST_MISBEHAVE=%s:%" PRIu64 "@%s", mode, after, name);
    fault_begin(&r, f, liar_path(), way, FAULT_FEW, NULL, f->kind == SILENT, env);
    int64_t since = r.c.began_ms + START_MS;
    if (f->kind == SILENT) since = last_answer(&r, name);
    await_end(f, &r);
    /* In shares, the others may be enough before the liar has answered. */
    bool unheard = f->kind == STRICT && way == SHARE && r.c.status == 0;
    judge(f, &r, since, f->kind == STRICT && !unheard ? 8 : 0, usual);
    json_t *root = command_json(&r.c);
    char *words = command_said(r.c.err);
    bool banned = node_is(root, name, "banned"), lost = node_is(root, name, "lost");
    f->struck = f->kind == SLOW ? f->took_ms > 0 : f->kind == SILENT ? lost : banned;
    if (way == SHARE && f->kind == SILENT) f->struck = fault_count(root, "tasks_cancelled") > 0;
    if (unheard) {
        if (banned) fault_say(f, "it continued although a lie was detected: %s", words);
    } else if (f->kind == STRICT) {
        json_t *error = json_object_get(root, "error");
        const char *message = json_string_value(json_object_get(error, "message"));
        if (fault_count(error, "code") != 8 || !message || !strstr(message, name))
            fault_say(f, "it does not name the node: %s", message ? message : words);
    } else {
        char sentence[96];
        snprintf(sentence, sizeof sentence, f->kind == WRONG ? "%s (127.0.0.1:" : "%s", name);
        if ((banned || lost) && !strstr(words, sentence))
            fault_say(f, "stderr does not name it: %s", words);
        if (f->kind == WRONG && banned && !strstr(words, ") answered wrongly: banned"))
            fault_say(f, "stderr does not describe the fault: %s", words);
        if (banned != (fault_count(root, "nodes_banned") == 1))
            fault_say(f, "banned nodes: %lld", (long long)fault_count(root, "nodes_banned"));
    }
    if (f->kind == SLOW && (banned || lost)) fault_say(f, "a slow node was given up");
    free(words);
    json_decref(root);
    command_free(&r.c);
}

void fault_run(fault_case *f)
{
    f->ok = true;
    switch (f->kind) {
    case KILL:
    case STOP: killed_or_stopped(f); break;
    case RESET:
    case HALF:
    case STALL: cut(f); break;
    case BOUND:
    case ALL: too_many(f); break;
    default: lies(f); break;
    }
}
