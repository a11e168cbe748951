/*
 * Faults, with real processes: nodes killed and stopped, connections cut, stalled and half closed
 * by a proxy, nodes that lie in every way that prog_misbehave knows; each at twenty seeded
 * instants. A quarter of the cases are in shares, where a node may be missing without any work
 * being done again.
 * Whatever happens, the product has the bits of an undisturbed one, or the command ends with the
 * right code and leaves the earlier file alone; and within 15 s of the fault.
 *
 * All cases run in processes of their own, a dozen at a time, since most of their time is waiting;
 * the tests then judge kind by kind. FAULTS_SEED=n draws other instants, FAULTS_ONLY=word picks.
 *
 * Instants are points in the work, not times: "before" is when all nodes listen, later ones are
 * when so many bytes have gone to the victim or come back (the coordinator's --record says), so
 * that a slow machine meets the same cases as a fast one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "core/rand.h"
#include "proxy.h"
#include "tests/support/send_signal.h"

#define N 560
#define K 420
#define M 390
#define LOCAL 7            /* nodes, where they are killed and stopped */
#define FEW 4              /* elsewhere */
#define AT_ONCE 12u
#define EACH 20u
#define WITHIN_MS 15000
#define SET_UP_MS 120000   /* of one undisturbed product, on however busy a machine */
#define START_MS 1000      /* of the nodes: no lie is told before */
#define OLD "an earlier result\n"

typedef enum kind {
    KILL, STOP, RESET, HALF, STALL, GARBAGE, WRONGLEN, WRONG, TWICE, UNASKED, SLOW, SILENT,
    STRICT, BOUND, ALL, KINDS
} kind;

static const char *const kind_names[KINDS] = {
    "kill", "stop", "reset", "half", "stall", "garbage", "wronglen", "wrong", "twice", "unasked",
    "slow", "silent", "strict", "bound", "all",
};

/* How products are made; the undisturbed one of each is the reference. */
enum { EXACT, PLAIN, FLOAT, SHARE, WAYS };
static const char *const ways[WAYS][8] = {
    { "--mode", "exact", "--exposure", "balanced", NULL },
    { "--mode", "exact", "--scheme", "plain", NULL },
    { "--exposure", "balanced", NULL },
    { "--scheme", "share", "--spare", "1", "--same-host-domains", NULL },
};

typedef struct fault_case {
    kind kind;
    unsigned index;
    uint64_t draw[4];
    pid_t pid;
    /* Filled in by the case's process. */
    bool ok, struck;
    int64_t took_ms;
    char text[900];
} fault_case;

typedef struct calm {
    char file[200];
    uint64_t sent, received; /* one node's bytes */
    uint32_t panels;
} calm;

static char top[128];
static uint64_t seed = 20260;
static calm calm_of[2][WAYS]; /* local: LOCAL nodes, FEW nodes */
static fault_case *cases;
static unsigned cases_len;
static command shared[FEW];   /* real nodes for the proxied cases */
static char shared_line[FEW][1024];

/* ---- running the command --------------------------------------------------------------------- */

typedef struct run {
    command c;
    char dir[160], out[200], record[200];
} run;

static void run_begin(run *r, const fault_case *f, const char *program, int way, unsigned nodes,
                      const char *nodes_file, bool record, const char *env)
{
    char n[16], a[200], b[200], s[200], key[200];
    const char *argv[48];
    const char *const envs[] = { env, NULL };
    size_t k = 0;
    snprintf(r->dir, sizeof r->dir, "%s/%s-%u", top, kind_names[f->kind], f->index);
    snprintf(r->out, sizeof r->out, "%s/C.npy", r->dir);
    snprintf(r->record, sizeof r->record, "%s/record", r->dir);
    snprintf(a, sizeof a, "%s/A.npy", top);
    snprintf(b, sizeof b, "%s/B.npy", top);
    snprintf(s, sizeof s, "%s/seed", top);
    snprintf(key, sizeof key, "%s/me.key", top);
    snprintf(n, sizeof n, "%u", nodes);
    if (mkdir(r->dir, 0700) != 0) abort();
    file_put(r->out, OLD, sizeof OLD - 1);
    const char *fixed[] = { "sherd", "multiply", a, b, "-o", r->out, "--json", "--progress", "none",
                            "--memory", "2M" };
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

static void say(fault_case *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(fault_case *f, const char *fmt, ...)
{
    va_list ap;
    size_t at = strlen(f->text);
    va_start(ap, fmt);
    vsnprintf(f->text + at, sizeof f->text - at, fmt, ap);
    va_end(ap);
    f->ok = false;
}

static void say_end(fault_case *f, const run *r)
{
    char *err = command_said(r->c.err), *out = command_said(r->c.out);
    say(f, "; exit %d after %lld ms; stderr: %.300s; stdout: %.200s", r->c.status,
        (long long)(r->c.ended_ms - r->c.began_ms), err, out);
    free(err);
    free(out);
}

/* The run must have ended with this code within the time of the fault, and the file be right. */
static void judge(fault_case *f, run *r, int64_t since_ms, int code, const calm *want)
{
    f->took_ms = r->c.ended_ms - since_ms;
    if (r->c.status != code) say(f, "expected exit %d", code);
    else if (f->took_ms > WITHIN_MS * patience())
        say(f, "took %lld ms", (long long)f->took_ms);
    else if (code == 0 && !files_equal(r->out, want->file)) say(f, "the product is wrong");
    else if (code != 0 && !file_holds(r->out, OLD)) say(f, "the earlier file is gone");
    else if (folder_hidden(r->dir)) say(f, "a temporary file is left");
    if (!f->ok) say_end(f, r);
}

static json_t *node_of(json_t *root, const char *name)
{
    size_t i;
    json_t *n;
    json_array_foreach(json_object_get(root, "nodes"), i, n)
        if (!strcmp(json_string_value(json_object_get(n, "name")), name)) return n;
    return NULL;
}

static bool node_is(json_t *root, const char *name, const char *state)
{
    const char *found = json_string_value(json_object_get(node_of(root, name), "state"));
    return found && strcmp(found, state) == 0;
}

static json_int_t count_of(json_t *root, const char *field)
{
    return json_integer_value(json_object_get(root, field));
}

/* Every fourth case of the kinds that need no way of their own. */
static int way_of(const fault_case *f)
{
    return f->index % 4 == 3 ? SHARE : EXACT;
}

/* ---- killed and stopped ---------------------------------------------------------------------- */

/* Waits for the instant: 4 before, 6 by what was sent, 6 by what came back, 4 after. */
static void await_instant(fault_case *f, run *r, unsigned victim, const calm *usual)
{
    char sent[240], received[240];
    int64_t out = 0, in = 0;
    snprintf(sent, sizeof sent, "%s/node-%u.sent", r->record, victim);
    snprintf(received, sizeof received, "%s/node-%u.received", r->record, victim);
    if (f->index < 2) out = 0;                                   /* it listens */
    else if (f->index < 4) out = 1;                              /* it has been greeted */
    else if (f->index < 10) out = (int64_t)(100 + f->draw[1] % usual->sent);
    else if (f->index < 16) in = (int64_t)(100 + f->draw[1] % usual->received);
    else in = (int64_t)usual->received + 1; /* its last answer is in, or nearly */
    while (!command_over(&r->c) && (file_size(sent) < out || file_size(received) < in)) {
        usleep(200);
    }
}

static void killed_or_stopped(fault_case *f)
{
    unsigned victim = 1 + (unsigned)(f->draw[0] % LOCAL);
    int way = way_of(f);
    const calm *usual = &calm_of[0][way];
    char name[16];
    run r;
    snprintf(name, sizeof name, "node-%u", victim);
    run_begin(&r, f, sherd_path(), way, LOCAL, NULL, true, NULL);
    await_instant(f, &r, victim, usual);
    pid_t pid = child_named(r.c.pid, name);
    int64_t at = clock_now_ms();
    if (pid) send_signal(pid, f->kind == KILL ? SIGKILL : SIGSTOP);
    if (!command_wait(&r.c, 60000)) say(f, "it hangs");
    judge(f, &r, pid ? at : r.c.ended_ms, 0, usual);
    json_t *root = command_json(&r.c);
    f->struck = count_of(root, "nodes_lost") == 1 || node_is(root, name, "lost");
    if (way == SHARE) { /* the others are enough: it may end before a silent node counts as lost */
        f->struck = pid != 0;
        if (count_of(root, "encodings") != 1) say(f, "shares were made anew"), say_end(f, &r);
    }
    json_decref(root);
    if (pid && process_alive(pid)) say(f, "node %ld is left", (long)pid);
    command_free(&r.c);
}

/* Five of seven, or all, in the middle of the work; every product takes a second. */
static void too_many(fault_case *f)
{
    pid_t pids[LOCAL];
    char received[240];
    run r;
    run_begin(&r, f, liar_path(), EXACT, LOCAL, NULL, true, "SHERD_TEST_MISBEHAVE=slow:1");
    snprintf(received, sizeof received, "%s/node-1.received", r.record);
    while (!command_over(&r.c) && file_size(received) < 2000) pause_ms(1);
    size_t n = children_of(r.c.pid, pids, LOCAL), doomed = f->kind == ALL ? n : 5;
    int64_t at = clock_now_ms();
    for (size_t i = 0; i < doomed && i < n; i++)
        send_signal(pids[i], f->index % 2 ? SIGSTOP : SIGKILL);
    if (n != LOCAL) say(f, "%zu nodes", n);
    if (!command_wait(&r.c, 60000)) say(f, "it hangs");
    judge(f, &r, at, f->kind == ALL ? 7 : 10, NULL);
    json_t *root = command_json(&r.c);
    json_t *error = json_object_get(root, "error");
    if (count_of(error, "code") != (f->kind == ALL ? 7 : 10) ||
        !json_string_length(json_object_get(error, "hint")))
        say(f, "the JSON does not say why");
    json_decref(root);
    if (!processes_gone(pids, n, 10000 * patience())) say(f, "a node is left");
    command_free(&r.c);
}

/* ---- cut connections ------------------------------------------------------------------------- */

static uint16_t port_of(const char *line)
{
    return (uint16_t)atoi(strchr(line, ':') + 1);
}

/* The node file, with one node's port replaced by the proxy's. */
static void write_nodes(const char *path, unsigned through, uint16_t port)
{
    char text[FEW * 1200] = "";
    for (unsigned i = 0; i < FEW; i++) {
        const char *rest = strchr(shared_line[i], ' ');
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "127.0.0.1:%u%s domain=d%u\n",
                 i == through ? port : port_of(shared_line[i]), rest, i);
    }
    file_put(path, text, strlen(text));
}

static void cut(fault_case *f)
{
    static const proxy_fault faults[] = { PROXY_RESET, PROXY_HALF, PROXY_STALL };
    unsigned victim = (unsigned)(f->draw[0] % FEW);
    int direction = (int)(f->draw[2] % 2); /* 0: on the way to the node */
    int way = way_of(f);
    const calm *usual = &calm_of[1][way];
    uint64_t whole = direction ? usual->received : usual->sent;
    char nodes[200], name[16];
    proxy p;
    run r;
    proxy_open(&p, port_of(shared_line[victim]), faults[f->kind - RESET], direction,
               1 + f->draw[1] % (whole + 2000));
    snprintf(nodes, sizeof nodes, "%s/nodes-%s-%u", top, kind_names[f->kind], f->index);
    write_nodes(nodes, victim, p.port);
    run_begin(&r, f, sherd_path(), way, 0, nodes, false, NULL);
    int64_t deadline = clock_now_ms() + 60000;
    while (!command_over(&r.c) && clock_now_ms() < deadline) proxy_turn(&p, 5);
    if (!command_wait(&r.c, 0)) say(f, "it hangs");
    judge(f, &r, p.struck_ms ? p.struck_ms : r.c.ended_ms, 0, usual);
    json_t *root = command_json(&r.c);
    snprintf(name, sizeof name, "n%u", victim);
    f->struck = p.struck_ms && (way == SHARE || count_of(root, "nodes_lost") ||
                                !node_is(root, name, "up"));
    if (count_of(root, "nodes_banned")) say(f, "an honest node was banned"), say_end(f, &r);
    json_decref(root);
    proxy_close(&p);
    command_free(&r.c);
}

/* ---- liars ----------------------------------------------------------------------------------- */

/* Watches a node's answers until the command ends: when the last one came. */
static int64_t last_answer(run *r, const char *name)
{
    char received[240];
    int64_t had = 0, at = r->c.began_ms, deadline = at + 60000;
    snprintf(received, sizeof received, "%s/%s.received", r->record, name);
    while (!command_over(&r->c) && clock_now_ms() < deadline) {
        int64_t has = file_size(received);
        if (has > had + 1000) { /* more than a sign of life */
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
    unsigned liar = 1 + (unsigned)(f->draw[0] % FEW);
    int way = (int)(f->index % WAYS);
    const calm *usual = &calm_of[1][way];
    const char *mode = f->kind == STRICT ? strict_modes[f->index % 5] : kind_names[f->kind];
    uint64_t after = f->draw[1] % usual->panels;
    char env[96], name[16];
    run r;
    if (f->kind == STRICT) after %= 3;
    /* A second for each of the others */
    if (f->kind == SLOW) after = usual->panels - 1 - after % 3;
    snprintf(name, sizeof name, "node-%u", liar);
    snprintf(env, sizeof env, "SHERD_TEST_MISBEHAVE=%s:%" PRIu64 "@%s", mode, after, name);
    run_begin(&r, f, liar_path(), way, FEW, NULL, f->kind == SILENT, env);
    int64_t since = r.c.began_ms + START_MS;
    if (f->kind == SILENT) since = last_answer(&r, name);
    if (!command_wait(&r.c, 60000)) say(f, "it hangs");
    /* In shares the others may be enough before the liar has had its say. */
    bool unheard = f->kind == STRICT && way == SHARE && r.c.status == 0;
    judge(f, &r, since, f->kind == STRICT && !unheard ? 8 : 0, usual);
    json_t *root = command_json(&r.c);
    char *words = command_said(r.c.err);
    bool banned = node_is(root, name, "banned"), lost = node_is(root, name, "lost");
    f->struck = f->kind == SLOW ? f->took_ms > 0 : f->kind == SILENT ? lost : banned;
    if (way == SHARE && f->kind == SILENT) f->struck = count_of(root, "tasks_cancelled") > 0;
    if (unheard) {
        if (banned) say(f, "it goes on with a lie that was heard: %s", words);
    } else if (f->kind == STRICT) {
        json_t *error = json_object_get(root, "error");
        const char *message = json_string_value(json_object_get(error, "message"));
        if (count_of(error, "code") != 8 || !message || !strstr(message, name))
            say(f, "it does not say who: %s", message ? message : words);
    } else {
        char sentence[96];
        snprintf(sentence, sizeof sentence, f->kind == WRONG ? "%s (127.0.0.1:" : "%s", name);
        if ((banned || lost) && !strstr(words, sentence))
            say(f, "stderr does not name it: %s", words);
        if (f->kind == WRONG && banned && !strstr(words, ") answered wrongly: banned"))
            say(f, "stderr does not say what it did: %s", words);
        if (banned != (count_of(root, "nodes_banned") == 1))
            say(f, "banned nodes: %lld", (long long)count_of(root, "nodes_banned"));
    }
    if (f->kind == SLOW && (banned || lost)) say(f, "a slow node was given up");
    free(words);
    json_decref(root);
    command_free(&r.c);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void run_case(fault_case *f)
{
    f->ok = true;
    switch (f->kind) {
    case KILL: case STOP: killed_or_stopped(f); break;
    case RESET: case HALF: case STALL: cut(f); break;
    case BOUND: case ALL: too_many(f); break;
    default: lies(f); break;
    }
}

static void add_cases(const sherd_entropy *e)
{
    static const unsigned how_many[KINDS] = { [STRICT] = 10, [BOUND] = 4, [ALL] = 4 };
    const char *only = getenv("FAULTS_ONLY");
    cases = mmap(NULL, KINDS * EACH * sizeof *cases, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(cases != MAP_FAILED);
    for (kind k = 0; k < KINDS; k++)
        for (unsigned i = 0; i < (how_many[k] ? how_many[k] : EACH); i++) {
            fault_case f = { .kind = k, .index = i };
            for (int d = 0; d < 4; d++) f.draw[d] = sherd__entropy_u64(e) >> 1;
            if (!only || strcmp(only, kind_names[k]) == 0) cases[cases_len++] = f;
        }
    for (unsigned i = cases_len; i > 1; i--) { /* kinds that wait and kinds that compute, mixed */
        unsigned j = (unsigned)sherd__entropy_below(e, i);
        fault_case t = cases[i - 1];
        cases[i - 1] = cases[j];
        cases[j] = t;
    }
}

/* Waits for the end of one case; the shared nodes are children too. */
static void collect_one(void)
{
    for (;;) {
        int status;
        pid_t pid = wait(&status);
        assert_true(pid > 0);
        for (unsigned i = 0; i < cases_len; i++) {
            fault_case *f = &cases[i];
            if (f->pid != pid) continue;
            if (!WIFEXITED(status) || WEXITSTATUS(status)) say(f, "the case itself failed");
            if (getenv("FAULTS_VERBOSE"))
                printf("# %-8s %2u %5lld ms%s%s %s\n", kind_names[f->kind], f->index,
                       (long long)f->took_ms, f->struck ? " struck" : "", f->ok ? "" : " FAILED",
                       f->text);
            return;
        }
    }
}

static void run_cases(void)
{
    unsigned under_way = 0;
    fflush(stdout);
    for (unsigned i = 0; i < cases_len; i++) {
        if (under_way == AT_ONCE) collect_one(), under_way--;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            signal(SIGABRT, SIG_DFL); /* the test runner catches it, and would run on in here */
            signal(SIGSEGV, SIG_DFL);
            alarm(170);
            run_case(&cases[i]);
            _exit(0);
        }
        cases[i].pid = pid; /* not in the child: it shares the table */
        under_way++;
    }
    while (under_way--) collect_one();
}

/* ---- what they are measured against ---------------------------------------------------------- */

static void undisturbed(unsigned nodes, int way, calm *out)
{
    fault_case f = { .kind = KINDS - 1, .index = 100 + nodes * 10 + (unsigned)way };
    run r;
    run_begin(&r, &f, sherd_path(), way, nodes, NULL, false, NULL);
    bool ended = command_wait(&r.c, SET_UP_MS);
    json_t *root = command_json(&r.c);
    if (!ended || r.c.status) say_end(&f, &r);
    if (!ended || r.c.status) fail_msg("an undisturbed product failed: %s", f.text);
    snprintf(out->file, sizeof out->file, "%s", r.out);
    out->panels = (uint32_t)count_of(root, "panels");
    json_t *node = node_of(root, "node-1");
    out->sent = (uint64_t)count_of(node, "bytes_out");
    out->received = (uint64_t)count_of(node, "bytes_in");
    assert_true(out->panels >= 6 && out->sent > 0 && out->received > 0);
    json_decref(root);
    command_free(&r.c);
}

/* The exact reference itself is held against the product computed centrally. */
static void check_reference(void)
{
    char a[200], b[200], c[200], s[200];
    command k;
    snprintf(a, sizeof a, "%s/A.npy", top);
    snprintf(b, sizeof b, "%s/B.npy", top);
    snprintf(c, sizeof c, "%s/checked.npy", top);
    snprintf(s, sizeof s, "%s/seed", top);
    const char *argv[] = { "sherd", "multiply", a, b, "-o", c, "-n", "2", "--mode", "exact",
                           "--check",
                           "--seed", s, NULL };
    command_start(&k, sherd_path(), argv, NULL);
    if (!command_wait(&k, SET_UP_MS) || k.status)
        fail_msg("exit %d: %s", k.status, command_said(k.err));
    command_free(&k);
    for (int local = 0; local < 2; local++) {
        assert_true(files_equal(c, calm_of[local][EXACT].file));
        assert_true(files_equal(c, calm_of[local][PLAIN].file));
        assert_true(files_equal(c, calm_of[local][SHARE].file));
    }
}

static void start_shared_nodes(void)
{
    static const char *const more[] = { "--memory", "1G", NULL };
    char mine[160], allow[160], fingerprint[64], name[8];
    snprintf(mine, sizeof mine, "%s/me.key", top);
    snprintf(allow, sizeof allow, "%s/allow", top);
    key_file(mine, fingerprint);
    allow_file(allow, fingerprint);
    for (unsigned i = 0; i < FEW; i++) {
        snprintf(name, sizeof name, "n%u", i);
        node_start(&shared[i], top, name, allow, more, shared_line[i]);
    }
}

static int begin(void **state)
{
    (void)state;
    sherd_entropy_seeded drawn;
    char path[200];
    uint8_t bytes[32];
    if (getenv("FAULTS_SEED")) seed = strtoull(getenv("FAULTS_SEED"), NULL, 10);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# FAULTS_SEED=%" PRIu64 "\n", seed);
    sherd_entropy e = sherd__entropy_seeded(&drawn, seed);
    folder_new(top);
    snprintf(path, sizeof path, "%s/A.npy", top);
    matrix_file(path, N, K, seed + 1);
    snprintf(path, sizeof path, "%s/B.npy", top);
    matrix_file(path, K, M, seed + 2);
    snprintf(path, sizeof path, "%s/seed", top);
    e.fill(e.ctx, bytes, sizeof bytes);
    file_put(path, bytes, sizeof bytes);
    for (int way = 0; way < WAYS; way++) {
        undisturbed(LOCAL, way, &calm_of[0][way]);
        undisturbed(FEW, way, &calm_of[1][way]);
    }
    check_reference();
    start_shared_nodes();
    add_cases(&e);
    int64_t began = clock_now_ms();
    run_cases();
    printf("# %u cases in %lld ms\n", cases_len, (long long)(clock_now_ms() - began));
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FEW; i++) {
        if (shared[i].pid) send_signal(shared[i].pid, SIGTERM);
        if (shared[i].pid) (void)command_wait(&shared[i], 10000);
    }
    folder_remove(top);
    return 0;
}

/* Every case of the kind is right, and at least so many met their fault while the work went on. */
static void kind_holds(kind k, unsigned struck_min)
{
    unsigned struck = 0, bad = 0, ran = 0;
    int64_t longest = 0;
    for (unsigned i = 0; i < cases_len; i++) {
        const fault_case *f = &cases[i];
        if (f->kind != k) continue;
        ran++;
        struck += f->struck;
        bad += !f->ok;
        if (f->took_ms > longest) longest = f->took_ms;
        if (!f->ok) print_message("# %s %u: %s\n", kind_names[k], f->index, f->text);
    }
    print_message("# %s: %u cases, %u struck, at most %lld ms\n", kind_names[k], ran, struck,
                  (long long)longest);
    if (ran == 0) skip();
    if (bad) fail_msg("%u of %u cases are wrong (FAULTS_SEED=%" PRIu64 ")", bad, ran, seed);
    if (struck < struck_min) fail_msg("only %u of %u faults met the work", struck, ran);
}

#define HOLDS(name, kind, struck)                                                                  \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        kind_holds(kind, struck);                                                                  \
    }

HOLDS(a_node_may_be_killed_at_any_instant, KILL, 8)
HOLDS(a_node_may_be_stopped_at_any_instant, STOP, 8)
HOLDS(a_connection_may_be_reset_anywhere, RESET, 10)
HOLDS(a_connection_may_be_half_closed_anywhere, HALF, 10)
HOLDS(a_connection_may_stall_anywhere, STALL, 10)
HOLDS(garbage_is_turned_away_and_its_node_named, GARBAGE, 10)
HOLDS(an_answer_of_another_length_is_turned_away_and_its_node_named, WRONGLEN, 10)
HOLDS(wrong_numbers_are_turned_away_and_their_node_named, WRONG, 10)
HOLDS(an_answer_given_twice_is_turned_away_and_its_node_named, TWICE, 8)
HOLDS(an_answer_nobody_asked_for_is_turned_away_and_its_node_named, UNASKED, 10)
HOLDS(a_slow_node_is_waited_for, SLOW, 10)
HOLDS(a_silent_node_is_given_up, SILENT, 10)
HOLDS(strict_ends_with_the_first_lie_and_exit_8, STRICT, 6)
HOLDS(beyond_the_exposure_bound_it_is_exit_10, BOUND, 0)
HOLDS(without_nodes_it_is_exit_7, ALL, 0)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_may_be_killed_at_any_instant),
        cmocka_unit_test(a_node_may_be_stopped_at_any_instant),
        cmocka_unit_test(a_connection_may_be_reset_anywhere),
        cmocka_unit_test(a_connection_may_be_half_closed_anywhere),
        cmocka_unit_test(a_connection_may_stall_anywhere),
        cmocka_unit_test(garbage_is_turned_away_and_its_node_named),
        cmocka_unit_test(an_answer_of_another_length_is_turned_away_and_its_node_named),
        cmocka_unit_test(wrong_numbers_are_turned_away_and_their_node_named),
        cmocka_unit_test(an_answer_given_twice_is_turned_away_and_its_node_named),
        cmocka_unit_test(an_answer_nobody_asked_for_is_turned_away_and_its_node_named),
        cmocka_unit_test(a_slow_node_is_waited_for),
        cmocka_unit_test(a_silent_node_is_given_up),
        cmocka_unit_test(strict_ends_with_the_first_lie_and_exit_8),
        cmocka_unit_test(beyond_the_exposure_bound_it_is_exit_10),
        cmocka_unit_test(without_nodes_it_is_exit_7),
    };
    return cmocka_run_group_tests_name("scheduler/faults", tests, begin, end);
}
