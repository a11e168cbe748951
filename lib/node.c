/*
 * A node in a thread: options in words become those of node/server.h, and calls from other threads
 * become calls on the loop's thread. A call leaves its function in `request`, wakes the loop and
 * waits; once the loop has ended, it runs the function itself. All that needs files is also in this
 * file, since a node reads and writes none: keys, lists, examples and their ledger, the record, and
 * the list of passed self-tests.
 */
#include "lib/node.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/hooks.h"
#include "core/memory.h"
#include "core/options.h"
#include "core/platform.h"
#include "core/signals.h"
#include "lib/devices.h"
#include "lib/node_data.h"
#include "matrix/gemm.h"
#include "matrix/residue_bytes.h"
#include "node/server.h"
#include "store/passed.h"
#include "store/record.h"
#include "wire/handoff.h"

#define HANDOFF_MS 10000u
#define ASK_MS 100u
#define TEST_WAIT_MS 1000u /* for a self-test that another process makes */

/* A function to be run on the loop's thread. */
typedef struct request {
    void (*run)(sherd_node *n, void *arg);
    void *arg;
    bool done;
} request;

struct sherd_node {
    sherd__server_options o;
    char host[256], advertised[256], *allow_file;
    sherd_identity *identity;
    sherd__peers allowed, peers;
    sherd__node_data data;
    sherd__recording *record; /* used by the loop's thread while it runs; NULL: none, or complete */
    sherd__server *server;
    pthread_t thread;
    bool runs;

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    request *request;
    bool ending, orphaned;
    const char *lost;       /* why it ends: all its devices are lost; NULL: for another reason */
    bool over;              /* the loop has ended */
    double computing_since; /* when only a product kept it from ending; 0: not */
    int record_err;
    sherd_diag record_fault;
};

/* ---- options --------------------------------------------------------------------------------- */

/* Parses "127.0.0.1:7001", "[::1]:7001", ":7001" (every address). */
static int parse_listen(const char *text, char *host, size_t size, uint16_t *port, sherd_diag *d)
{
    const char *colon = strrchr(text, ':'), *from = text, *end = colon;
    char *rest;
    if (colon && text[0] == '[' && colon > text && colon[-1] == ']') {
        from++;
        end = colon - 1;
    } else if (colon && memchr(text, ':', (size_t)(colon - text))) {
        colon = NULL; /* an IPv6 address without brackets */
    }
    bool digits = colon && colon[1] >= '0' && colon[1] <= '9';
    unsigned long n = digits ? strtoul(colon + 1, &rest, 10) : 65536;
    if (n > 65535 || *rest || (size_t)(end - from) >= size)
        return sherd__fail(d, SHERD_EINVAL, "127.0.0.1:0 lets the system choose a port",
                           "address to listen on: expected ADDRESS:PORT, found '%s'", text);
    memcpy(host, from, (size_t)(end - from));
    host[end - from] = '\0';
    if (end == from) memcpy(host, "0.0.0.0", 8);
    *port = (uint16_t)n;
    return SHERD_OK;
}

static uint64_t default_memory(void)
{
    uint64_t limit, all = sherd__memory_machine(&limit);
    if (all == 0) return (uint64_t)1 << 30;
    return (limit ? limit : all) / 2;
}

/* Checks a name that is part of the node's line, which must be valid in a node file. */
static int check_name(const char *what, const char *name, sherd_diag *d)
{
    if (!name || sherd__peer_name_valid(name)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "use 1 to 63 letters, digits and . _ - : / @ +",
                       "%s \"%.80s\" is empty, too long or has other characters", what, name);
}

/* ---- keys and lists -------------------------------------------------------------------------- */

static int read_list(sherd__peers *out, const char *text, const char *file, const char *name,
                     sherd_diag *d)
{
    return text ? sherd__peers_parse(out, text, strlen(text), name, d)
                : sherd__peers_load(out, file, d);
}

static int read_key(sherd_node *n, const sherd_node_options *o, sherd_diag *d)
{
    if (!o->identity)
        return o->key_file ? sherd_identity_load(&n->identity, o->key_file, d)
                           : sherd_identity_new(&n->identity, d);
    int err = sherd__identity_share(&n->identity, o->identity);
    return err ? sherd__fail_memory(d, "the identity") : SHERD_OK;
}

/* Reads an allow-list. A line without a key would allow no coordinator. */
static int read_allow_list(sherd__peers *out, const char *text, const char *file, sherd_diag *d)
{
    int err = read_list(out, text, file, "allow-list", d);
    for (size_t i = 0; i < out->len && !err; i++)
        if (!out->list[i].has_key)
            err = sherd__fail(d, SHERD_EFORMAT,
                              "`sherd keygen --show FILE` prints a key's fingerprint",
                              "%s:%" PRIu32 ": key=sha256:... is missing",
                              text ? "allow-list" : file, out->list[i].line);
    return err;
}

static int read_allowed(sherd_node *n, const sherd_node_options *o, sherd_diag *d)
{
    if (!o->allow && !o->allow_file)
        return sherd__fail(d, SHERD_EINVAL,
                           "add a line: * key=sha256:... role=coordinator, for each coordinator",
                           "there is no allow-list, and no coordinator is accepted by default");
    int err = read_allow_list(&n->allowed, o->allow, o->allow_file, d);
    if (!err && n->allowed.len == 0)
        err = sherd__fail(d, SHERD_EFORMAT, "add a line: * key=sha256:... role=coordinator",
                          "%s lists no coordinator", o->allow ? "the allow-list" : o->allow_file);
    if (!err && !o->allow && !(n->allow_file = sherd__strdup(o->allow_file)))
        err = sherd__fail_memory(d, "the name of the allow-list");
    return err;
}

/* Reads both from the process that started this one. */
static int read_handoff(sherd_node *n, int fd, sherd_diag *d)
{
    sherd__handoff h;
    int err = sherd__handoff_read(fd, HANDOFF_MS, &h, d);
    if (err) return err;
    err = sherd__identity_parse(&n->identity, h.key, h.key_len, d);
    if (!err)
        err = sherd__peers_parse(&n->allowed, h.allow, h.allow_len, "allow-list of the parent", d);
    sherd__handoff_fini(&h);
    return err;
}

static int read_keys(sherd_node *n, const sherd_node_options *o, sherd_diag *d)
{
    int err = o->parent_pipe > 0 ? read_handoff(n, o->parent_pipe, d) : read_key(n, o, d);
    if (!err && o->parent_pipe <= 0) err = read_allowed(n, o, d);
    if (!err && (o->peers || o->peers_file)) {
        err = read_list(&n->peers, o->peers, o->peers_file, "list of peers", d);
        n->o.peers = &n->peers;
    }
    n->o.identity = n->identity;
    return err;
}

/* ---- record ---------------------------------------------------------------------------------- */

static void warn(sherd_node *n, int err, const sherd_diag *d)
{
    if (n->o.hooks.log)
        n->o.hooks.log(n->o.hooks.ctx, SHERD_LOG_WARN,
                       d->message[0] ? d->message : sherd_strerror(err));
}

static void *tap_open(void *ctx, const sherd__fingerprint *peer, uint64_t session)
{
    sherd_node *n = ctx;
    char name[40], text[SHERD__FINGERPRINT_TEXT];
    sherd_diag d = { .code = 0 };
    sherd__record_peer *p = NULL;
    snprintf(name, sizeof name, "session-%llu", (unsigned long long)session);
    sherd__fingerprint_text(peer, text);
    int err = sherd__record_peer_add(&p, n->record, name, &d);
    if (!err) err = sherd__record_peer_key(p, text);
    if (!err) return p;
    warn(n, err, &d);
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

static int start_record(sherd_node *n, const char *dir, sherd_diag *d)
{
    if (!dir) return SHERD_OK;
    n->o.tap = (sherd__node_tap){ tap_open, tap_bytes, tap_close, n };
    return sherd__record_new(&n->record, dir, "node", d);
}

/* Completes the record. No session is left. */
static void end_record(sherd_node *n)
{
    sherd__recording *record = n->record;
    n->record = NULL;
    if (record) n->record_err = sherd__record_end(record, &n->record_fault);
}

/* ---- the loop's thread ----------------------------------------------------------------------- */

static void woken(void *ctx)
{
    sherd_node *n = ctx;
    pthread_mutex_lock(&n->lock);
    request *r = n->request;
    n->request = NULL;
    pthread_mutex_unlock(&n->lock);
    if (!r) return;
    r->run(n, r->arg);
    pthread_mutex_lock(&n->lock);
    r->done = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

static void ending(void *ctx, bool parent)
{
    sherd_node *n = ctx;
    pthread_mutex_lock(&n->lock);
    n->ending = true;
    n->orphaned = parent;
    n->lost = sherd__server_lost(n->server); /* set before, and not changed again */
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

static void computing(void *ctx)
{
    sherd_node *n = ctx;
    pthread_mutex_lock(&n->lock);
    end_record(n);
    n->computing_since = sherd__clock_s();
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

static void *serve(void *ctx)
{
    sherd_node *n = ctx;
    (void)pthread_setname_np(pthread_self(), SHERD__NODE_THREAD);
    sherd__server_run(n->server);
    pthread_mutex_lock(&n->lock);
    end_record(n);
    n->over = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

/* Runs a function on the loop's thread, or on this one once the loop has ended. */
static void call(sherd_node *n, void (*run)(sherd_node *n, void *arg), void *arg)
{
    request r = { .run = run, .arg = arg };
    pthread_mutex_lock(&n->lock);
    while (n->request && !n->over) pthread_cond_wait(&n->changed, &n->lock);
    if (!n->over) {
        n->request = &r;
        sherd__server_wake(n->server);
    }
    while (!r.done && !n->over) pthread_cond_wait(&n->changed, &n->lock);
    if (!r.done) run(n, arg);
    if (n->request == &r) n->request = NULL;
    pthread_mutex_unlock(&n->lock);
}

/* ---- starting and ending --------------------------------------------------------------------- */

/* Reads HOST or HOST:PORT; an IPv6 address with a port is in brackets. */
static int read_advertised(sherd_node *n, const char *text, sherd_diag *d)
{
    struct in6_addr v6;
    if (!text) return SHERD_OK;
    bool bare = !strchr(text, ':') || inet_pton(AF_INET6, text, &v6) == 1;
    int err = SHERD_OK;
    if (bare) snprintf(n->advertised, sizeof n->advertised, "%.255s", text);
    else if (*text != ':')
        err = parse_listen(text, n->advertised, sizeof n->advertised, &n->o.line_port, NULL);
    if (!err && !sherd__peer_name_valid(n->advertised)) err = SHERD_EINVAL;
    n->o.line_host = n->advertised;
    return err ? sherd__fail(d, err, "as 10.0.0.5, node.example:7001 or [2001:db8::5]:7001",
                             "address to advertise: expected HOST or HOST:PORT, found '%s'", text)
               : SHERD_OK;
}

static int fill_options(sherd_node *n, const sherd_node_options *o, sherd_diag *d)
{
    int err = parse_listen(o->listen ? o->listen : "127.0.0.1:0", n->host, sizeof n->host,
                           &n->o.port, d);
    if (!err) err = read_advertised(n, o->advertise, d);
    if (!err) err = check_name("name", o->name, d);
    if (!err) err = check_name("domain", o->domain, d);
    n->o.host = n->host;
    n->o.name = o->name;
    n->o.domain = o->domain;
    n->o.parent_pipe = o->parent_pipe > 0 ? o->parent_pipe : -1;
    n->o.stay = o->parent_stays;
    n->o.threads = o->threads;
    n->o.cores = o->cores;
    n->o.quick = o->quick_test;
    n->o.memory = o->memory ? o->memory : default_memory();
    n->o.connections_max = o->connections;
    n->o.hooks = o->hooks;
    n->o.woken = woken;
    n->o.ending = ending;
    n->o.computing = computing;
    n->o.ctx = n;
    return err;
}

static int open_data(sherd_node *n, const sherd_node_options *o, sherd_diag *d)
{
    if (!o->data) return SHERD_OK;
    int err = sherd__node_data_open(&n->data, o->data, n->o.memory, o->peers || o->peers_file,
                                    &o->hooks, d);
    n->o.data = &n->data.own.own;
    n->o.policy = &n->data.policy;
    n->o.ledger = sherd__node_data_ledger(&n->data);
    return err;
}

/* Hashes what the result of the backend's self-test depends on. Returns false if it is unknown. */
static bool hash_test(const sherd_node *n, uint8_t out[SHERD__HASH])
{
    uint8_t platform[SHERD__HASH];
    uint32_t threads = n->o.threads ? n->o.threads : sherd__blas_threads();
    const char *backend = n->o.backend->name, *core = sherd__blas_core();
    const char *bytes = sherd__bytes_path_name(sherd__bytes_path_here());
    const sherd__hash_part parts[] = { { platform, sizeof platform },
                                       { &threads, sizeof threads },
                                       { backend, strlen(backend) + 1 },
                                       { core, strlen(core) + 1 },
                                       { bytes, strlen(bytes) + 1 } };
    if (!sherd__platform_hash(platform)) return false;
    sherd__hash_of(parts, sizeof parts / sizeof *parts, out);
    return true;
}

/* Opens the server. With a quick test, a test of correctness that has passed is not repeated. */
static int open_server(sherd_node *n, sherd_diag *d)
{
    uint8_t key[SHERD__HASH];
    sherd__passed passed = { .fd = -1 };
    n->o.tested = n->o.quick && !n->o.backend->list && hash_test(n, key) &&
                  sherd__passed_begin(&passed, NULL, key, TEST_WAIT_MS);
    int err = sherd__server_open(&n->server, &n->o, &n->allowed, d);
    sherd__passed_end(&passed, !err);
    if (err == SHERD_EDEVICE) sherd__passed_forget(NULL);
    return err;
}

static int start_thread(sherd_node *n, sherd_diag *d)
{
    sigset_t before;
    sherd__signals_hold(&before);
    n->runs = pthread_create(&n->thread, NULL, serve, n) == 0;
    sherd__signals_restore(&before);
    return n->runs ? SHERD_OK
                   : sherd__fail(d, SHERD_ENOMEM, NULL, "cannot start the thread of the node");
}

static void init_lock(sherd_node *n)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&n->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&n->changed, &attr);
    pthread_condattr_destroy(&attr);
}

static void free_node(sherd_node *n)
{
    sherd__server_close(n->server);
    end_record(n);
    sherd__node_data_close(&n->data);
    sherd__peers_fini(&n->allowed);
    sherd__peers_fini(&n->peers);
    sherd_identity_free(n->identity);
    pthread_mutex_destroy(&n->lock);
    pthread_cond_destroy(&n->changed);
    sherd__free(n->allow_file);
    sherd__free(n);
}

static int start_with(sherd_node **out, const sherd_node_options *opt,
                      const sherd__backend *backend, const sherd__backend_options *how,
                      sherd_diag *d)
{
    sherd_node_options o;
    *out = NULL;
    int err = sherd__options_read(&o, sizeof o, opt, "sherd_node_options", d);
    if (err) return err;
    sherd_node *n = sherd__calloc(1, sizeof *n);
    if (!n) return sherd__fail_memory(d, "a node");
    init_lock(n);
    n->o.backend = backend;
    n->o.how = *how;
    err = fill_options(n, &o, d);
    if (!err) err = open_data(n, &o, d);
    if (!err) err = read_keys(n, &o, d);
    if (!err) err = sherd__hooks_check(&o.hooks, "interrupted before the node listened", d);
    if (!err) err = open_server(n, d);
    if (!err) err = start_record(n, o.record_dir, d); /* last: a start that fails leaves none */
    n->o.name = n->o.domain = n->o.cores = n->o.how.library = NULL; /* the caller's, and not read
                                                                       again */
    if (!err) err = start_thread(n, d);
    if (err) {
        free_node(n);
        return sherd__fail_to(d, err, "start the node");
    }
    *out = n;
    return SHERD_OK;
}

int sherd__node_start_with(sherd_node **out, const sherd_node_options *opt,
                           const sherd__backend *backend, sherd_diag *d)
{
    const sherd__backend_options how = { .threads = 0 };
    return start_with(out, opt, backend, &how, d);
}

int sherd_node_start(sherd_node **out, const sherd_node_options *opt, sherd_diag *d)
{
    sherd_node_options o;
    sherd__backend_options how;
    const sherd__backend *backend = NULL;
    *out = NULL;
    int err = sherd__options_read(&o, sizeof o, opt, "sherd_node_options", d);
    if (!err) err = sherd__backend_choose(&backend, &how, &o, d);
    return err ? err : start_with(out, opt, backend, &how, d);
}

int sherd_node_line_of(const sherd_node_options *opt, char out[SHERD_PEER_LINE_SIZE], sherd_diag *d)
{
    sherd_node_options o;
    sherd_node n = { 0 };
    sherd_identity *own = NULL;
    int err = sherd__options_read(&o, sizeof o, opt, "sherd_node_options", d);
    if (!err) err = fill_options(&n, &o, d);
    if (!err && !n.o.port && !n.o.line_port)
        err = sherd__fail(d, SHERD_EINVAL, "name the port: --listen ADDR:PORT",
                          "the line of a node whose port the system chooses is not known before "
                          "the node listens");
    if (!err && !o.identity && !o.key_file)
        err = sherd__fail(d, SHERD_EINVAL, "set identity or key_file", "the node has no key");
    if (!err && !o.identity) err = sherd_identity_load(&own, o.key_file, d);
    n.o.identity = o.identity ? o.identity : own;
    if (!err) sherd__server_line_of(&n.o, n.o.port, out);
    sherd_identity_free(own);
    return err;
}

static void do_end(sherd_node *n, void *arg)
{
    (void)arg;
    sherd__server_end(n->server, "as requested");
}

/* Ends the node. Returns false if a product alone has kept the loop running for ms; 0: any time.
 * lost: set to why the node has no device left, or to NULL. */
static bool finish(sherd_node *n, uint32_t ms, const char **lost)
{
    call(n, do_end, NULL);
    pthread_mutex_lock(&n->lock);
    double left = 1;
    while (!n->over && left > 0) {
        struct timespec until = sherd__clock_after(left);
        pthread_cond_timedwait(&n->changed, &n->lock, &until);
        bool computing = n->computing_since > 0;
        left = !ms || !computing ? 1 : ms * 1e-3 - (sherd__clock_s() - n->computing_since);
    }
    bool over = n->over;
    *lost = n->lost;
    pthread_mutex_unlock(&n->lock);
    return over;
}

int sherd_node_end(sherd_node *n, uint32_t timeout_ms, sherd_diag *d)
{
    const char *lost;
    bool over = finish(n, timeout_ms, &lost);
    if (lost) return sherd__fail(d, SHERD_EDEVICE, NULL, "the node has no device left: %s", lost);
    if (!over)
        return sherd__fail(d, SHERD_ETIMEOUT, NULL, "the node has not ended: a product is running");
    if (n->record_err && d && !d->code) *d = n->record_fault;
    return n->record_err;
}

void sherd_node_free(sherd_node *n)
{
    if (!n) return;
    if (n->runs) {
        const char *lost;
        (void)finish(n, 0, &lost);
        pthread_join(n->thread, NULL);
    }
    free_node(n);
}

int sherd_node_wait(sherd_node *n, sherd_diag *d)
{
    int err = SHERD_OK;
    pthread_mutex_lock(&n->lock);
    while (!n->ending && !err) {
        struct timespec until = sherd__clock_after(ASK_MS * 1e-3);
        pthread_mutex_unlock(&n->lock);
        if (sherd__hooks_interrupted(&n->o.hooks))
            err = sherd__fail(d, SHERD_EINTERRUPTED, NULL,
                              "interrupted; the node continues to serve");
        pthread_mutex_lock(&n->lock);
        if (!n->ending && !err) pthread_cond_timedwait(&n->changed, &n->lock, &until);
    }
    pthread_mutex_unlock(&n->lock);
    return err;
}

bool sherd_node_orphaned(const sherd_node *n)
{
    sherd_node *locked = (sherd_node *)(uintptr_t)n;
    pthread_mutex_lock(&locked->lock);
    bool orphaned = n->orphaned;
    pthread_mutex_unlock(&locked->lock);
    return orphaned;
}

const char *sherd_node_line(const sherd_node *n)
{
    return sherd__server_line(n->server);
}

/* ---- allow-list ------------------------------------------------------------------------------ */

static void do_allow(sherd_node *n, void *peers)
{
    sherd__server_allow(n->server, peers);
}

int sherd_node_allow(sherd_node *n, const char *allow, sherd_diag *d)
{
    sherd__peers peers = { 0 };
    if (!allow && !n->allow_file)
        return sherd__fail(d, SHERD_EINVAL, "give a list",
                           "the node's allow-list is not from a file");
    int err = read_allow_list(&peers, allow, n->allow_file, d);
    if (!err) call(n, do_allow, &peers);
    sherd__peers_fini(&peers);
    return err;
}

/* ---- counters -------------------------------------------------------------------------------- */

static void do_report(sherd_node *n, void *report)
{
    const sherd__worker_stats *t = sherd__server_tasks(n->server);
    const sherd__pool_stats *m = sherd__server_memory(n->server);
    const sherd__device *device = sherd__server_device(n->server);
    sherd_node_report *r = report;
    *r = (sherd_node_report){ .blocks_in = t->blocks_in,
                              .bytes_in = t->bytes_in,
                              .bytes_out = t->bytes_out,
                              .sessions = t->clients,
                              .memory_budget = m->budget,
                              .memory_peak = m->peak,
                              .threads = device->threads };
    memcpy(r->blas_core, device->core, sizeof r->blas_core);
}

static void do_tasks(sherd_node *n, void *tasks)
{
    const sherd__worker_stats *s = sherd__server_tasks(n->server);
    const uint64_t *t = s->tasks;
    *(sherd_node_tasks *)tasks = (sherd_node_tasks){
        .multiply = t[SHERD__OP_MULTIPLY],
        .multiply_transposed = t[SHERD__OP_MULTIPLY_T],
        .gradient = t[SHERD__OP_GRADIENT],
        .meet = t[SHERD__OP_MEET],
        .connect = t[SHERD__OP_CONNECT],
        .step = t[SHERD__OP_STEP],
        .reduce = t[SHERD__OP_REDUCE],
        .join = t[SHERD__OP_JOIN],
        .roster = t[SHERD__OP_ROSTER],
        .seal = t[SHERD__OP_SEAL],
        .hide = t[SHERD__OP_HIDE],
        .open = t[SHERD__OP_OPEN],
        .state = t[SHERD__OP_STATE],
        .where = t[SHERD__OP_WHERE],
        .confirm = t[SHERD__OP_CONFIRM],
        .sigmoid = t[SHERD__OP_SIGMOID],
        .minus = t[SHERD__OP_MINUS],
        .square = t[SHERD__OP_SQUARE],
        .times = t[SHERD__OP_TIMES],
        .relu = t[SHERD__OP_RELU],
        .tanh = t[SHERD__OP_TANH],
        .exp = t[SHERD__OP_EXP],
        .check = t[SHERD__OP_CHECK],
        .refused = s->refused,
        .cancelled = s->cancelled,
    };
}

int sherd_node_report_get(sherd_node *n, sherd_node_report *out, sherd_diag *d)
{
    sherd_node_report r;
    int err = sherd__result_check(out, "sherd_node_report", d);
    if (err) return err;
    call(n, do_report, &r);
    sherd__result_write(out, &r, sizeof r);
    return SHERD_OK;
}

int sherd_node_tasks_get(sherd_node *n, sherd_node_tasks *out, sherd_diag *d)
{
    sherd_node_tasks t;
    int err = sherd__result_check(out, "sherd_node_tasks", d);
    if (err) return err;
    call(n, do_tasks, &t);
    sherd__result_write(out, &t, sizeof t);
    return SHERD_OK;
}

int sherd_node_privacy_get(sherd_node *n, sherd_node_privacy *out, sherd_diag *d)
{
    sherd_node_privacy p;
    int err = sherd__result_check(out, "sherd_node_privacy", d);
    if (!err && !n->o.data)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "the node has no examples of its own");
    if (err) return err;
    sherd__node_data_spent(&n->data, &p);
    sherd__result_write(out, &p, sizeof p);
    return SHERD_OK;
}

static const sherd_field node_report_fields[] = {
    SHERD__FIELD(sherd_node_report, blocks_in, U64, "", "blocks stored"),
    SHERD__FIELD(sherd_node_report, bytes_in, U64, "bytes", "bytes of these blocks"),
    SHERD__FIELD(sherd_node_report, bytes_out, U64, "bytes", "bytes of results"),
    SHERD__FIELD(sherd_node_report, sessions, U64, "", "connections of coordinators"),
    SHERD__FIELD(sherd_node_report, memory_budget, U64, "bytes", "budget for blocks, results"),
    SHERD__FIELD(sherd_node_report, memory_peak, U64, "bytes", "most memory in use so far"),
    SHERD__FIELD(sherd_node_report, blas_core, TEXT, "", "kernels that compute"),
    SHERD__FIELD(sherd_node_report, threads, U32, "", "compute threads"),
};
SHERD__FIELDS(sherd_node_report, node_report_fields)

#define TASKS(member, text) SHERD__FIELD(sherd_node_tasks, member, U64, "tasks", text)

static const sherd_field node_tasks_fields[] = {
    TASKS(multiply, "A*B"),
    TASKS(multiply_transposed, "A^T*B"),
    TASKS(gradient, "gradients of batches"),
    TASKS(meet, "all-reduce groups joined"),
    TASKS(connect, "connections to members of groups"),
    TASKS(step, "gradients of all-reduce steps"),
    TASKS(reduce, "sums of all-reduce steps"),
    TASKS(join, "secure sums joined"),
    TASKS(roster, "rosters of secure sums"),
    TASKS(seal, "masks of secure sums sealed"),
    TASKS(hide, "masked gradients"),
    TASKS(open, "masks of secure sums opened"),
    TASKS(state, "states of all-reduce groups"),
    TASKS(where, "questions about all-reduce steps"),
    TASKS(confirm, "survivors of secure sums confirmed"),
    TASKS(sigmoid, "sigmoid, element by element"),
    TASKS(minus, "differences, element by element"),
    TASKS(square, "squares, element by element"),
    TASKS(times, "products, element by element"),
    TASKS(relu, "relu, element by element"),
    TASKS(tanh, "tanh, element by element"),
    TASKS(exp, "exp, element by element"),
    TASKS(check, "sealed pieces of secure sums checked"),
    TASKS(refused, "refused"),
    TASKS(cancelled, "cancelled by the coordinator"),
};
SHERD__FIELDS(sherd_node_tasks, node_tasks_fields)

static const sherd_field node_privacy_fields[] = {
    SHERD__FIELD(sherd_node_privacy, uploads, U64, "", "uploads charged so far"),
    SHERD__FIELD(sherd_node_privacy, epsilon, F64, "", "privacy spent, at delta"),
    SHERD__FIELD(sherd_node_privacy, epsilon_max, F64, "", "privacy that may be spent"),
    SHERD__FIELD(sherd_node_privacy, delta, F64, "", "probability at which epsilon holds"),
};
SHERD__FIELDS(sherd_node_privacy, node_privacy_fields)
