/*
 * The libuv shell around node/worker.c. It adds access control, the assignment of connections to
 * clients, and an orderly shutdown. The shutdown proceeds in this order: stop accepting, say
 * goodbye on every session, wait for the running product, stop the loop; then close the handles and
 * free. The compute thread is reached through the executor only; everything here runs on the loop's
 * thread, but for opening and closing.
 */
#include "node/server.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/executor.h"
#include "core/hooks.h"
#include "core/signals.h"
#include "matrix/gemm.h"
#include "node/account.h"
#include "node/address.h"
#include "node/allreduce/members.h"
#include "node/cores.h"
#include "node/hosts.h"
#include "node/lines.h"
#include "sherd/version.h"
#include "wire/handoff.h"
#include "wire/link.h"
#include "wire/loop.h"

#define CONNECTIONS 64u
#define QUEUE_MAX 1024u /* of the executor: two tasks, and sessions to wipe */
#define DRAIN_MS 20u    /* between two looks at a running product, when the node should end */
#define PASSES_MAX 64u
#define START_MS 50u /* between two checks whether starting was interrupted */

typedef sherd__server server;

/* One connection that passed the allow-list. */
typedef struct conn {
    server *server;
    sherd__link *link;
    sherd__client *client; /* NULL once its session is over */
    sherd__account *account;
    sherd__fingerprint key;
    char name[64];
    void *tap;
    struct conn *prev, *next;
} conn;

struct sherd__server {
    const sherd__server_options *opt;
    uv_loop_t loop;
    sherd__peers allowed;
    void *backend_ctx;
    const sherd__device *device; /* the backend's devices */
    uint32_t devices;
    sherd__executor *executor;
    sherd__worker *worker;
    sherd__members *members;
    sherd__cores *cores;
    sherd__listener *listener;
    conn *conns;
    uint64_t sessions;
    double began; /* listening, by sherd__clock_s */
    bool loop_up, ending, drained;
    bool start_over;                /* the caller, or the end of the parent, ends the start */
    bool computing;                 /* connections are closed, and a product still runs */
    char lost[SHERD__TEXT_MAX];     /* why all devices are lost; empty: they are not */
    bool released;                  /* the parent has written, so it may end now (opt->stay) */
    sherd__lines strangers_refused; /* limits log lines on strangers, all together */
    sherd__lines refused;           /* limits log lines on refused requests, for each key */
    bool accept_logged; /* accept_link has logged the refusal: `rejected` logs nothing */
    uv_async_t wake;
    uv_timer_t drain;
    uv_pipe_t parent;
    unsigned handles; /* initialised ones of the three above, for closing */
    char line[SHERD_PEER_LINE_SIZE];
};

static void say(const sherd__server_options *o, sherd_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say(const sherd__server_options *o, sherd_log_level level, const char *fmt, ...)
{
    char line[640];
    va_list ap;
    if (!o->hooks.log) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    o->hooks.log(o->hooks.ctx, level, line);
}

/* --- access control ------------------------------------------------------------------------ */

static const sherd__peer *find_allowed(const server *s, const sherd__fingerprint *key)
{
    const sherd__peer *p = sherd__peers_find(&s->allowed, key);
    return p && strcmp(p->role, "node") != 0 ? p : NULL;
}

/* Allows coordinators by the allow-list, and members of an all-reduce group while it exists. */
static bool allow(void *ctx, const sherd__fingerprint *key)
{
    const server *s = ctx;
    return !s->ending && (find_allowed(s, key) || sherd__worker_member(s->worker, key));
}

static bool is_coordinator(void *ctx, const sherd__fingerprint *key)
{
    return find_allowed(ctx, key) != NULL;
}

/* Returns whether one more line of this kind is logged. */
static bool may_say(server *s, sherd__lines *l, const sherd__fingerprint *key, const char *what)
{
    uint32_t left_out;
    bool may = sherd__lines_may(l, key, uv_now(&s->loop), &left_out);
    if (left_out > 0) say(s->opt, SHERD_LOG_WARN, "%u more %s", left_out, what);
    return may;
}

static void rejected(void *ctx, int code, const char *peer_address, const char *reason)
{
    server *s = ctx;
    if (s->accept_logged) {
        s->accept_logged = false;
        return;
    }
    const sherd__fingerprint strangers = { { 0 } };
    if (may_say(s, &s->strangers_refused, &strangers, "connections were refused"))
        say(s->opt, SHERD_LOG_WARN, "refused %s: %s (%s)", peer_address, reason,
            sherd_err_name(code));
}

/* --- connections --------------------------------------------------------------------------- */

static void check_drained(server *s);

static void on_event(void *ctx, sherd__link *l, sherd__event *e)
{
    conn *c = ctx;
    sherd__event_kind kind = e->kind;
    if (kind == SHERD__EV_READY)
        say(c->server->opt, SHERD_LOG_INFO, "coordinator %s (%s) connected: %s", c->name,
            sherd__link_peer_address(l), e->hello.software);
    if (kind == SHERD__EV_CLOSED)
        say(c->server->opt, SHERD_LOG_INFO, "coordinator %s (%s) disconnected: %s", c->name,
            sherd__link_peer_address(l), e->text);
    if (!c->client) return;
    sherd__worker_event(c->client, sherd__link_session(l), e);
    if (kind == SHERD__EV_CLOSED) c->client = NULL;
}

static void free_conn(conn *c)
{
    server *s = c->server;
    *(c->prev ? &c->prev->next : &s->conns) = c->next;
    if (c->next) c->next->prev = c->prev;
    if (c->tap && s->opt->tap.close) s->opt->tap.close(c->tap);
    c->account->connections--;
    sherd__free(c);
}

static void on_closed(void *ctx, sherd__link *l)
{
    conn *c = ctx;
    server *s = c->server;
    (void)l;
    free_conn(c);
    check_drained(s);
}

static uint64_t features_of(const server *s)
{
    return SHERD__FEATURE_GRADIENTS | SHERD__FEATURE_SECURE | SHERD__FEATURE_ALLREDUCE |
           SHERD__FEATURE_WINDOWS | SHERD__FEATURE_CONFIRM | SHERD__FEATURE_CHECK |
           SHERD__FEATURE_SEEDS | (s->opt->data ? SHERD__FEATURE_DATA : 0u);
}

static void describe_devices(const server *s, sherd__hello *h)
{
    h->devices_len = s->devices < SHERD__DEVICES_MAX ? s->devices : SHERD__DEVICES_MAX;
    for (uint32_t i = 0; i < h->devices_len; i++) {
        const sherd__device *v = &s->device[i];
        h->devices[i] = (sherd__hello_device){ .does = v->does & SHERD__DOES_ALL,
                                               .gflops = v->gflops,
                                               .residue_gflops = v->residue_gflops,
                                               .memory = v->memory,
                                               .cell = v->cell,
                                               .depth = v->depth,
                                               .byte_gops = v->byte_gops };
        h->copy_rate += v->copy_rate;
        h->resident_gflops += v->resident_gflops;
        h->resident_residue_gflops += v->resident_residue_gflops;
        h->resident_byte_gops += v->resident_byte_gops;
    }
    const sherd__hello_rates all = sherd__hello_rates_of(h);
    h->gflops = all.gflops;
    h->residue_gflops = all.residue_gflops;
    h->byte_gops = all.byte_gops;
}

/* Returns how much of the memory a coordinator should plan with: a task must fit on any device. */
static uint64_t planned_of(const server *s, uint64_t memory)
{
    for (uint32_t i = 0; i < s->devices; i++)
        if (s->device[i].memory && s->device[i].memory < memory) memory = s->device[i].memory;
    return memory;
}

static void describe_session(const server *s, uint64_t memory, sherd__session_options *o)
{
    sherd__hello *h = &o->hello;
    o->role = SHERD__NODE;
    *h = (sherd__hello){ .minor_max = SHERD__MINOR,
                         .features = features_of(s),
                         .software = "sherd " SHERD_VERSION,
                         .threads = s->device->threads,
                         .memory = planned_of(s, memory) };
    describe_devices(s, h);
    memcpy(h->blas_core, s->device->core, sizeof h->blas_core);
    memcpy(h->backend, s->device->name, sizeof h->backend);
}

/* A coordinator learns whether others use the node. It can tell from the time of its tasks, too.
 * Free memory is at most what this coordinator may use, in sixteenths of it: the exact number would
 * state the sizes of others' operands. */
static sherd__hello_load load_of(const server *s, uint64_t memory)
{
    const uint64_t unit = memory / 16 + 1;
    const sherd__worker_stats *w = sherd__worker_stats_of(s->worker);
    const sherd__pool_stats *m = sherd__worker_memory(s->worker);
    uint64_t free = m->used < m->budget ? m->budget - m->used : 0;
    if (free > memory) free = memory;
    if (free < memory) free -= free % unit;
    return (sherd__hello_load){ .known = true,
                                .uptime_s = (uint64_t)(sherd__clock_s() - s->began),
                                .memory_free = free,
                                .tasks = (uint32_t)w->queued,
                                .sessions = (uint32_t)w->clients_now };
}

static void name_conn(conn *c, const sherd__peer *p)
{
    char text[SHERD__FINGERPRINT_TEXT];
    sherd__fingerprint_text(&c->key, text);
    snprintf(c->name, sizeof c->name, "%s", p->name[0] ? p->name : text);
}

static bool is_named(void *ctx, const char *peer_address)
{
    const server *s = ctx;
    for (size_t i = 0; i < s->allowed.len; i++) {
        const sherd__peer *p = &s->allowed.list[i];
        if (strcmp(p->host, "*") != 0 && strcmp(p->role, "node") != 0 &&
            sherd__host_matches(p->host, peer_address))
            return true;
    }
    return false;
}

/* Returns how many of `all` connections or bytes one key may have: where other keys are allowed,
 * not the last quarter. */
static uint64_t part_of(const server *s, const sherd__fingerprint *key, uint64_t all)
{
    for (size_t i = 0; i < s->allowed.len; i++)
        if (strcmp(s->allowed.list[i].role, "node") != 0 &&
            !sherd__fingerprint_equal(&s->allowed.list[i].key, key))
            return all - all / 4;
    return all;
}

static uint32_t connections_of(const server *s)
{
    return s->opt->connections_max ? s->opt->connections_max : CONNECTIONS;
}

static uint32_t connections_most(void *ctx, const sherd__account *a)
{
    return (uint32_t)part_of(ctx, &a->key, connections_of(ctx));
}

static bool has_enough(server *s, const sherd__fingerprint *key)
{
    const sherd__account *a = sherd__worker_accounts(s->worker);
    while (a && !(a->named && sherd__fingerprint_equal(&a->key, key))) a = a->next;
    return a && a->connections >= connections_most(s, a);
}

/* Logs the reason of a refusal, which the coordinator does not receive. */
static void withheld(void *ctx, const sherd__refusal *r)
{
    conn *c = ctx;
    if (may_say(c->server, &c->server->refused, &c->key, "requests were refused"))
        say(c->server->opt, SHERD_LOG_INFO, "refused %s %u of %s: %s (%s)",
            r->block ? "block" : "task", r->block ? r->block : r->task, c->name, r->text,
            sherd_err_name(r->code));
}

static int accept_link(void *ctx, sherd__link *l, const sherd__fingerprint *key,
                       const char *peer_address, sherd__session_options *session,
                       sherd__link_owner *owner)
{
    server *s = ctx;
    const sherd__peer *p = find_allowed(s, key);
    if (!p && sherd__worker_member(s->worker, key)) {
        describe_session(s, s->opt->memory, session);
        return sherd__members_accept(s->members, l, key, session, owner);
    }
    if (!p || !sherd__host_matches(p->host, peer_address)) {
        rejected(s, SHERD_EAUTH, peer_address,
                 "its key is allowed from another address only (allow-list: `*` is any)");
        s->accept_logged = true;
        return SHERD_EAUTH;
    }
    if (has_enough(s, key)) return SHERD_EBUSY;
    conn *c = sherd__calloc(1, sizeof *c);
    if (!c) return SHERD_ENOMEM;
    c->server = s;
    c->link = l;
    c->key = *key;
    name_conn(c, p);
    uint64_t memory = part_of(s, key, s->opt->memory);
    int err = sherd__worker_join(s->worker, &c->client, c, key, memory);
    if (err) {
        sherd__free(c);
        return err;
    }
    c->account = sherd__worker_account(c->client);
    c->account->connections++;
    c->next = s->conns;
    if (c->next) c->next->prev = c;
    s->conns = c;
    if (s->opt->tap.open) {
        c->tap = s->opt->tap.open(s->opt->tap.ctx, key, ++s->sessions);
        if (!c->tap) {
            rejected(s, SHERD_EIO, peer_address, "its session cannot be recorded");
            s->accept_logged = true;
            sherd__worker_leave(c->client);
            free_conn(c);
            return SHERD_EIO;
        }
        session->tap = s->opt->tap.bytes;
        session->tap_ctx = c->tap;
    }
    describe_session(s, memory, session);
    session->hello.load = load_of(s, planned_of(s, memory));
    sherd__worker_session(c->client, session);
    session->withheld = withheld;
    session->withheld_ctx = c;
    *owner = (sherd__link_owner){ on_event, on_closed, c, &c->account->turn };
    return SHERD_OK;
}

static void flush(void *ctx, void *tag)
{
    (void)ctx;
    sherd__link_flush(((conn *)tag)->link);
}

/* --- shutdown ------------------------------------------------------------------------------ */

static void close_handles(server *s)
{
    uv_handle_t *all[] = { (uv_handle_t *)&s->wake, (uv_handle_t *)&s->drain,
                           (uv_handle_t *)&s->parent };
    for (unsigned i = 0; i < s->handles; i++) uv_close(all[i], NULL);
    sherd__cores_unwatch(s->cores);
}

static void on_drain(uv_timer_t *t)
{
    check_drained(t->data);
}

/* Once the last connection is closed: waits for the running product, then stops the loop. */
static void check_drained(server *s)
{
    if (!s->ending || s->conns || sherd__members_count(s->members)) return;
    if (sherd__executor_pending(s->executor) == 0) {
        s->drained = true;
        uv_stop(&s->loop);
        return;
    }
    if (!s->computing && s->opt->computing) s->opt->computing(s->opt->ctx);
    s->computing = true;
    uv_timer_start(&s->drain, on_drain, DRAIN_MS, 0);
}

static void end(server *s, const char *why, bool parent)
{
    const char *goodbye = s->lost[0] ? "the node is ending: its device failed"
                                     : "the node is ending";
    if (s->ending) return;
    s->ending = true;
    if (s->opt->ending) s->opt->ending(s->opt->ctx, parent);
    say(s->opt, SHERD_LOG_INFO, "ending: %s", why);
    sherd__listener_close(s->listener);
    s->listener = NULL;
    for (conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        sherd__link_close(c->link, SHERD_ECLOSED, goodbye);
    }
    sherd__members_close(s->members);
    check_drained(s);
}

void sherd__server_end(sherd__server *s, const char *why)
{
    end(s, why, false);
}

static void members_say(void *ctx, bool problem, const char *line)
{
    const server *s = ctx;
    say(s->opt, problem ? SHERD_LOG_WARN : SHERD_LOG_INFO, "%s", line);
}

static void members_drained(void *ctx)
{
    check_drained(ctx);
}

/* --- requests, parent, compute thread -------------------------------------------------------- */

void sherd__server_allow(sherd__server *s, sherd__peers *allowed)
{
    sherd__peers_fini(&s->allowed);
    s->allowed = *allowed;
    *allowed = (sherd__peers){ 0 };
    for (conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        const sherd__peer *p = find_allowed(s, &c->key);
        if (!p || !sherd__host_matches(p->host, sherd__link_peer_address(c->link)))
            sherd__link_close(c->link, SHERD_EAUTH, "key is no longer allowed");
    }
}

static void parent_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    static char nothing[64]; /* anything that a parent writes after the handoff means: stay */
    (void)h;
    (void)suggested;
    *buf = uv_buf_init(nothing, sizeof nothing);
}

static void parent_read(uv_stream_t *h, ssize_t n, const uv_buf_t *buf)
{
    server *s = h->data;
    (void)buf;
    if (n > 0 && s->opt->stay) s->released = true;
    if (n >= 0) return;
    uv_read_stop(h);
    if (!s->released) end(s, "the process that started this node has ended", true);
}

/* Without a device, the node ends: its coordinators give its work to others. */
static void check_lost(server *s)
{
    const char *why = sherd__worker_lost(s->worker);
    if (s->ending || !why) return;
    snprintf(s->lost, sizeof s->lost, "%s", why);
    say(s->opt, SHERD_LOG_INFO, "no device is left: %s", why);
    end(s, "its devices are lost", false);
}

static void on_wake(uv_async_t *h)
{
    server *s = h->data;
    sherd__executor_drain(s->executor);
    sherd__worker_poll(s->worker);
    check_lost(s);
    check_drained(s);
    if (s->opt->woken) s->opt->woken(s->opt->ctx);
}

static void wake(void *ctx)
{
    uv_async_send(ctx);
}

void sherd__server_wake(sherd__server *s)
{
    wake(&s->wake);
}

static int uv_fail(sherd_diag *d, int err, const char *what)
{
    return sherd__fail(d, SHERD_ENET, NULL, "%s: %s", what, uv_strerror(err));
}

static int watch_parent(server *s, sherd_diag *d)
{
    if (s->opt->parent_pipe < 0) return SHERD_OK;
    uv_pipe_init(&s->loop, &s->parent, 0);
    s->parent.data = s;
    s->handles++;
    int err = uv_pipe_open(&s->parent, s->opt->parent_pipe);
    if (!err) err = uv_read_start((uv_stream_t *)&s->parent, parent_alloc, parent_read);
    return err ? uv_fail(d, err, "cannot watch the parent's pipe") : SHERD_OK;
}

/* --- start ----------------------------------------------------------------------------------- */

/* Returns how many passes compute beside each other: while a device multiplies for one of them, the
 * host does the other part of the next one, on as many threads as it has. */
static uint32_t passes_of(const server *s)
{
    const uint32_t least = 2 * s->devices, threads = sherd__blas_threads();
    return least > threads ? least : threads < PASSES_MAX ? threads : PASSES_MAX;
}

static int start_compute(server *s, sherd_diag *d)
{
    const sherd__server_options *o = s->opt;
    sherd__backend_options b = o->how;
    sigset_t before;
    int err = sherd__loop_init(&s->loop, d);
    if (err) return err;
    b.threads = o->threads;
    b.quick = o->quick;
    b.tested = o->tested;
    s->loop_up = true;
    uv_async_init(&s->loop, &s->wake, on_wake);
    uv_timer_init(&s->loop, &s->drain);
    s->wake.data = s->drain.data = s;
    s->handles = 2;
    sherd__signals_hold(&before); /* threads that are started here inherit this mask */
    err = o->backend->open(&s->backend_ctx, &b, d);
    if (!err) err = sherd__executor_new(&s->executor, QUEUE_MAX, wake, &s->wake);
    sherd__signals_restore(&before);
    if (s->backend_ctx) s->device = o->backend->devices(s->backend_ctx, &s->devices);
    for (uint32_t i = 0; i < s->devices && !err; i++)
        if (s->device[i].library[0])
            say(o, s->device[i].library_fails ? SHERD_LOG_WARN : SHERD_LOG_INFO, "%s: %s",
                s->device[i].core, s->device[i].library);
    sherd__members_options m = { &s->loop,         o->identity,     members_say,
                                 connections_most, members_drained, s };
    if (!err) err = sherd__members_new(&s->members, &m);
    if (err) return err == SHERD_ENOMEM ? sherd__fail_memory(d, "the task loop") : err;
    sherd__worker_options w = { .backend = o->backend,
                                .backend_ctx = s->backend_ctx,
                                .executor = s->executor,
                                .memory = o->memory,
                                .passes = passes_of(s),
                                .flush = flush,
                                .wake = wake,
                                .wake_ctx = &s->wake,
                                .self = { .identity = o->identity,
                                          .data = o->data,
                                          .peers = o->peers,
                                          .policy = o->policy,
                                          .ledger = o->ledger },
                                .links = sherd__members_links(s->members),
                                .coordinator = is_coordinator,
                                .coordinator_ctx = s,
                                .clock = sherd__clock_s };
    err = sherd__worker_new(&s->worker, &w);
    sherd__members_serve(s->members, s->worker);
    return err ? sherd__fail_memory(d, "the task loop") : SHERD_OK;
}

static void on_start(uv_timer_t *t)
{
    server *s = t->data;
    s->start_over = s->ending || sherd__hooks_interrupted(&s->opt->hooks);
}

static int start_listening(server *s, sherd_diag *d)
{
    const sherd__server_options *o = s->opt;
    sherd__listen_options l = { .loop = &s->loop,
                                .identity = o->identity,
                                .allow = allow,
                                .accept = accept_link,
                                .rejected = rejected,
                                .named = is_named,
                                .ctx = s,
                                .links_max = connections_of(s) };
    char number[SHERD__ADDRESS_TEXT];
    uv_timer_start(&s->drain, on_start, START_MS, START_MS);
    int err = sherd__address_find(number, o->host, &s->loop, &s->start_over, d);
    uv_timer_stop(&s->drain);
    return err ? err : sherd__listener_new(&s->listener, &l, number, o->port, d);
}

/* Copies the host of the node's line: as advertised, else that on which it listens, else an address
 * of this machine, or its name if it has no address that others reach. */
static void choose_host(const sherd__server_options *o, char *out, size_t size)
{
    char address[SHERD__ADDRESS_TEXT];
    bool any = strcmp(o->host, "0.0.0.0") == 0 || strcmp(o->host, "::") == 0;
    snprintf(out, size, "%s", o->line_host ? o->line_host : o->host);
    if (o->line_host || !any) return;
    unsigned found = sherd__address_of_machine(address);
    if (found) snprintf(out, size, "%s", address);
    else if (gethostname(out, size - 1)) snprintf(out, size, "%s", o->host);
    if (found != 1)
        say(o, SHERD_LOG_WARN, "the printed line names %s, %s: --advertise names another address",
            out,
            found ? "one of several addresses of this machine"
                  : "since this machine has no address that others reach");
}

void sherd__server_line_of(const sherd__server_options *o, uint16_t port,
                           char out[SHERD_PEER_LINE_SIZE])
{
    sherd__peer p = { .port = o->line_port ? o->line_port : port,
                      .has_key = true,
                      .weight = 1,
                      .key = *sherd__identity_fingerprint(o->identity) };
    choose_host(o, p.host, sizeof p.host);
    if (o->name) snprintf(p.name, sizeof p.name, "%s", o->name);
    if (o->domain) snprintf(p.domain, sizeof p.domain, "%s", o->domain);
    sherd__peer_format(&p, out, SHERD_PEER_LINE_SIZE);
}

int sherd__server_open(sherd__server **out, const sherd__server_options *opt, sherd__peers *allowed,
                       sherd_diag *d)
{
    *out = NULL;
    server *s = sherd__calloc(1, sizeof *s);
    if (!s) return sherd__fail_memory(d, "a node");
    s->opt = opt;
    s->allowed = *allowed;
    int err = opt->cores ? sherd__cores_take(&s->cores, opt->cores, d) : SHERD_OK;
    if (!err) err = start_compute(s, d);
    if (!err) err = sherd__hooks_check(&opt->hooks, "interrupted before the node listened", d);
    if (!err) err = watch_parent(s, d);
    if (!err) err = start_listening(s, d);
    s->began = sherd__clock_s();
    if (err) {
        s->allowed = (sherd__peers){ 0 };
        sherd__server_close(s);
        return err;
    }
    *allowed = (sherd__peers){ 0 };
    sherd__server_line_of(opt, sherd__listener_port(s->listener), s->line);
    *out = s;
    return SHERD_OK;
}

void sherd__server_run(sherd__server *s)
{
    if (s->cores) sherd__cores_watch(s->cores, &s->loop);
    while (!s->drained) uv_run(&s->loop, UV_RUN_DEFAULT);
}

void sherd__server_close(sherd__server *s)
{
    if (!s) return;
    if (s->loop_up) {
        sherd__listener_close(s->listener);
        close_handles(s);
        while (uv_run(&s->loop, UV_RUN_DEFAULT)) continue; /* it returns at once after uv_stop */
    }
    sherd__executor_free(s->executor);
    sherd__worker_free(s->worker);
    sherd__members_free(s->members);
    if (s->loop_up) (void)uv_loop_close(&s->loop);
    if (s->backend_ctx) s->opt->backend->close(s->backend_ctx);
    sherd__peers_fini(&s->allowed);
    sherd__cores_free(s->cores);
    sherd__free(s);
}

/* --- requests of other threads ---------------------------------------------------------------- */

const char *sherd__server_line(const sherd__server *s)
{
    return s->line;
}

const sherd__worker_stats *sherd__server_tasks(const sherd__server *s)
{
    return sherd__worker_stats_of(s->worker);
}

const sherd__pool_stats *sherd__server_memory(const sherd__server *s)
{
    return sherd__worker_memory(s->worker);
}

const sherd__device *sherd__server_device(const sherd__server *s)
{
    return s->device;
}

const char *sherd__server_lost(const sherd__server *s)
{
    return s->lost[0] ? s->lost : NULL;
}
