/*
 * The cluster: links to all nodes on one loop thread, a compute thread beside it, and the calling
 * thread that waits. Only the loop thread touches links, sessions and the running job; the calling
 * thread leaves a request and sees snapshots, both under one lock.
 *
 * Trusts: its own configuration. Nothing that a node says is believed beyond what session and scheme
 * have checked; what it says of itself (memory, speed) only steers planning.
 */
#include "sherd/cluster.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/rand.h"
#include "scheduler/buffers.h"
#include "scheduler/cluster_internal.h"
#include "scheduler/domains.h"
#include "scheduler/launch.h"
#include "sherd/version.h"
#include "store/record.h"
#include "wire/link.h"

#define TICK_MS 100u
#define RETRY_MS 300u          /* between attempts to reach a node again */
#define RETRIES_MAX 5u         /* of one job; a node that was lost earlier is tried once per job */
#define CONNECT_MS 10000u
#define LOG_LINES 64u
#define LOG_LINE 400u
#define EXECUTOR_QUEUE 65536u
#define SOFTWARE "sherd " SHERD_VERSION

typedef struct pool_node {
    sherd_cluster *cluster;
    uint32_t index;
    sherd__peer peer;
    char label[400];           /* "node-3 (127.0.0.1:7003)" */
    uint32_t domain;
    pid_t pid;
    sherd_link *link;          /* loop thread's, as everything below */
    bool up, banned, touched;
    uint64_t sessions;         /* so far: the number of the current one */
    uint32_t retries;
    uint64_t retry_ms;         /* when to connect again; 0: not to */
    sherd__hello hello;
    uint64_t past_in, past_out; /* of earlier sessions */
    uint64_t tasks;
    sherd__record_peer *record;
    int last_err;
    char last_text[SHERD__TEXT_MAX];
    sherd_node_info info;      /* snapshot, under the lock */
} pool_node;

struct sherd_cluster {
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t tick;
    uv_thread_t thread;
    bool loop_made, thread_runs;
    sherd_identity *identity;
    sherd__launch *launch;
    sherd__record *record;
    sherd_executor *executor;
    sherd__buffers *answers;
    sherd_entropy entropy;
    pool_node *nodes;
    uint32_t count, domains;
    uint32_t *domain_of;
    bool simulated;
    sherd_cluster_options o;
    double open_until;         /* when opening must be done; 0: no such time */

    sherd_job *job;            /* loop thread's: the one that runs */
    bool job_last, job_ended;
    uint64_t deadline_ms;
    uint32_t open_links;
    bool closing;

    pthread_mutex_t lock;      /* guards what follows, and the nodes' info */
    pthread_cond_t changed;
    sherd_job *next_job;       /* request */
    bool next_last, next_drop, close_wanted, stop_wanted, job_waits;
    uint32_t next_timeout_ms;
    bool job_done;
    sherd_progress progress;
    char waiting[300];
    char banned[256];
    char log[LOG_LINES][LOG_LINE];
    sherd_log_level log_level[LOG_LINES];
    uint32_t log_from, log_len;
    uint32_t log_lost;         /* lines that found no room, and the gravest level among them */
    sherd_log_level log_lost_level;
};

/* --- telling --------------------------------------------------------------------------------- */

static void keep_log(void *ctx, sherd_log_level level, const char *text)
{
    sherd_cluster *c = ctx;
    pthread_mutex_lock(&c->lock);
    if (c->log_len < LOG_LINES) {
        uint32_t at = (c->log_from + c->log_len++) % LOG_LINES;
        snprintf(c->log[at], LOG_LINE, "%s", text);
        c->log_level[at] = level;
        pthread_cond_signal(&c->changed);
    } else {
        c->log_lost++;
        if (level > c->log_lost_level) c->log_lost_level = level;
    }
    pthread_mutex_unlock(&c->lock);
}

static void say(sherd_cluster *c, sherd_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say(sherd_cluster *c, sherd_log_level level, const char *fmt, ...)
{
    char text[LOG_LINE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    keep_log(c, level, text);
}

/* The oldest line, or, behind all of them, how many more there were. The lock is held. */
static sherd_log_level next_log(sherd_cluster *c, char text[LOG_LINE])
{
    sherd_log_level level = c->log_lost_level;
    if (c->log_len) {
        level = c->log_level[c->log_from];
        memcpy(text, c->log[c->log_from], LOG_LINE);
        c->log_from = (c->log_from + 1) % LOG_LINES;
        c->log_len--;
    } else {
        snprintf(text, LOG_LINE, "and %u more such lines, which came too fast", c->log_lost);
        c->log_lost = 0;
        c->log_lost_level = SHERD_LOG_DEBUG;
    }
    return level;
}

/* Hands log lines to the user; the lock is held, and given up meanwhile. */
static void deliver_logs(sherd_cluster *c)
{
    while (c->log_len || c->log_lost) {
        char text[LOG_LINE];
        sherd_log_level level = next_log(c, text);
        pthread_mutex_unlock(&c->lock);
        if (c->o.log) c->o.log(c->o.ctx, level, text);
        pthread_mutex_lock(&c->lock);
    }
}

/* A link has no session before TLS is up. */
static void add_session_bytes(sherd_link *l, uint64_t *in, uint64_t *out)
{
    const sherd_session *session = sherd__link_session(l);
    if (!session) return;
    const sherd__session_stats *s = sherd__session_stats_of(session);
    *in += s->bytes_in;
    *out += s->bytes_out;
}

/* What the outside may see of the nodes and of the job, as of now. */
static void publish(sherd_cluster *c)
{
    uint64_t now = uv_now(&c->loop), in = 0, out = 0;
    pthread_mutex_lock(&c->lock);
    c->progress.nodes_up = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        pool_node *n = &c->nodes[i];
        sherd_node_info *info = &n->info;
        info->bytes_in = n->past_in;
        info->bytes_out = n->past_out;
        if (n->link) add_session_bytes(n->link, &info->bytes_in, &info->bytes_out);
        info->state = n->banned ? SHERD_NODE_BANNED : n->up ? SHERD_NODE_UP
                    : n->retry_ms || n->link ? SHERD_NODE_CONNECTING : SHERD_NODE_LOST;
        info->tasks = n->tasks + (c->job ? sherd__job_node_tasks(c->job, i) : 0);
        memcpy(info->blas_core, n->hello.blas_core, sizeof info->blas_core);
        info->threads = n->hello.threads;
        info->memory = n->hello.memory;
        info->gflops = n->hello.gflops;
        c->progress.nodes_up += n->up;
        in += info->bytes_in;
        out += info->bytes_out;
    }
    c->progress.bytes_in = in;
    c->progress.bytes_out = out;
    if (c->job) {
        sherd__job_stats stats;
        sherd__job_count(c->job, &stats);
        c->progress.done = stats.folded;
        c->progress.total = stats.cells;
        sherd__job_waiting(c->job, now, c->waiting, sizeof c->waiting);
    }
    pthread_mutex_unlock(&c->lock);
}

/* --- links ----------------------------------------------------------------------------------- */

static void on_event(void *ctx, sherd_link *l, sherd__event *e);
static void on_closed(void *ctx, sherd_link *l);

static uint8_t *place_answer(void *ctx, uint64_t job, uint32_t number, uint64_t len)
{
    (void)job;
    (void)number;
    return sherd__buffers_get(ctx, len);
}

static void unplace_answer(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)len;
    sherd__buffers_give(ctx, bytes);
}

/* Why the node is not up; the calling thread reads it while it waits for nodes. */
static void note_end(sherd_cluster *c, pool_node *n, int err, const char *text)
{
    pthread_mutex_lock(&c->lock);
    n->last_err = err;
    snprintf(n->last_text, sizeof n->last_text, "%.*s", SHERD__TEXT_MAX - 1, text);
    pthread_mutex_unlock(&c->lock);
}

static void connect_node(sherd_cluster *c, pool_node *n)
{
    sherd__link_options lo = {
        .loop = &c->loop, .identity = c->identity,
        .session = { .role = SHERD__COORDINATOR, .hello = { .software = SOFTWARE },
                     .place = place_answer, .unplace = unplace_answer, .place_ctx = c->answers },
        .owner = { on_event, on_closed, n }, .connect_timeout_ms = c->o.connect_timeout_ms,
    };
    sherd_diag d = { 0 };
    if (n->record) {
        lo.session.tap = sherd__record_tap;
        lo.session.tap_ctx = n->record;
    }
    n->retry_ms = 0;
    int err = sherd__link_connect(&n->link, &lo, n->peer.host, n->peer.port, &n->peer.key, &d);
    if (err) {
        note_end(c, n, err, d.code ? d.message : sherd_strerror(err));
    } else {
        c->open_links++;
    }
}

static void flush_touched(sherd_cluster *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        pool_node *n = &c->nodes[i];
        if (!n->touched) continue;
        n->touched = false;
        if (n->link) sherd__link_flush(n->link);
    }
}

static void job_moved(sherd_cluster *c);

/* The node is not let back in while this cluster is open. */
static void ban(sherd_cluster *c, pool_node *n)
{
    n->banned = true;
    pthread_mutex_lock(&c->lock);
    size_t len = strlen(c->banned);
    snprintf(c->banned + len, sizeof c->banned - len, "%s%s", len ? ", " : "", n->label);
    pthread_mutex_unlock(&c->lock);
}

/* What a link tells opens with its address, which the node's label has too. */
static const char *cause(const pool_node *n, const char *text)
{
    char address[sizeof n->info.address + 4];
    int len = snprintf(address, sizeof address,
                       strchr(n->peer.host, ':') ? "[%s]:%u: " : "%s:%u: ", n->peer.host,
                       n->peer.port);
    return strncmp(text, address, (size_t)len) == 0 ? text + len : text;
}

/* A session ended, or never began: may the node come back? */
static void on_session_over(sherd_cluster *c, pool_node *n, const sherd__event *e)
{
    uint64_t now = uv_now(&c->loop);
    const char *why = cause(n, e->text);
    bool was_up = n->up;
    add_session_bytes(n->link, &n->past_in, &n->past_out);
    n->link = NULL;
    n->up = false;
    note_end(c, n, e->err, why);
    if (sherd_err_class(e->err) == SHERD_BLAME_PEER && e->err != SHERD_ESILENT && was_up &&
        !n->banned) { /* it broke the protocol: not the network's doing */
        ban(c, n);
        if (c->job) sherd__job_node_banned(c->job, n->index, why);
    }
    bool again = !n->banned && !c->closing && n->retries < RETRIES_MAX &&
                 (was_up || e->err == SHERD_ECLOSED || e->err == SHERD_ENET) &&
                 e->err != SHERD_EINTERRUPTED;
    if (again) {
        n->retries++;
        n->retry_ms = now + RETRY_MS;
    }
    if (c->job) sherd__job_node_down(c->job, n->index, again, why, now);
}

static void on_event(void *ctx, sherd_link *l, sherd__event *e)
{
    pool_node *n = ctx;
    sherd_cluster *c = n->cluster;
    uint64_t now = uv_now(&c->loop);
    switch (e->kind) {
    case SHERD__EV_READY:
        n->up = true;
        n->sessions++;
        n->hello = e->hello;
        if (c->job) sherd__job_node_up(c->job, n->index, sherd__link_session(l), n->sessions, now);
        pthread_mutex_lock(&c->lock);
        pthread_cond_signal(&c->changed);
        pthread_mutex_unlock(&c->lock);
        publish(c);
        break;
    case SHERD__EV_CLOSED:
        on_session_over(c, n, e);
        publish(c);
        pthread_mutex_lock(&c->lock);
        pthread_cond_signal(&c->changed);
        pthread_mutex_unlock(&c->lock);
        break;
    case SHERD__EV_RESULT:
    case SHERD__EV_REFUSED:
        if (c->job) sherd__job_event(c->job, n->index, e, now);
        break;
    default: break;
    }
    sherd__fragment_free(e->fragment);
    e->fragment = NULL;
    job_moved(c);
}

static void on_closed(void *ctx, sherd_link *l)
{
    pool_node *n = ctx;
    (void)l;
    n->cluster->open_links--;
}

/* --- the job --------------------------------------------------------------------------------- */

static void job_touch(void *ctx, uint32_t node)
{
    sherd_cluster *c = ctx;
    c->nodes[node].touched = true;
}

static void job_expel(void *ctx, uint32_t node, int code, const char *why)
{
    sherd_cluster *c = ctx;
    pool_node *n = &c->nodes[node];
    if (code == SHERD_EWRONG) ban(c, n);
    n->retries = RETRIES_MAX;
    if (n->link) sherd__link_close(n->link, code, why);
}

static const char *job_name(void *ctx, uint32_t node)
{
    const sherd_cluster *c = ctx;
    return c->nodes[node].label;
}

/* The calling thread has the job back. */
static void release_job(sherd_cluster *c)
{
    sherd__job_rest(c->job);
    c->job = NULL;
    sherd__buffers_trim(c->answers);
    pthread_mutex_lock(&c->lock);
    c->job_done = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void end_job(sherd_cluster *c)
{
    publish(c);
    for (uint32_t i = 0; i < c->count; i++)
        c->nodes[i].tasks += sherd__job_node_tasks(c->job, i);
    release_job(c);
}

/* Something has happened: move the job on, send what it wants sent, notice its end. */
static void job_moved(sherd_cluster *c)
{
    int err;
    if (!c->job) return;
    sherd__job_pump(c->job, uv_now(&c->loop));
    if (sherd__job_done(c->job, &err, NULL) && !c->job_ended) {
        c->job_ended = true;
        if (c->job_last || err) sherd__job_end(c->job);
    }
    flush_touched(c);
    if (c->job_ended && sherd__job_idle(c->job)) end_job(c);
}

/* Up, and not about to be closed by us. */
static bool usable(const pool_node *n)
{
    return n->up && !n->banned && sherd__session_ready(sherd__link_session(n->link));
}

static void start_job(sherd_cluster *c, sherd_job *job, bool last, uint32_t timeout_ms)
{
    uint64_t now = uv_now(&c->loop);
    c->job = job;
    c->job_last = last;
    c->job_ended = false;
    c->deadline_ms = timeout_ms ? now + timeout_ms : 0;
    for (uint32_t i = 0; i < c->count; i++) {
        pool_node *n = &c->nodes[i];
        if (!n->banned) n->retries = 0;
        if (usable(n)) {
            sherd__job_node_up(job, i, sherd__link_session(n->link), n->sessions, now);
        } else {
            /* One that was lost before is asked once more while the others begin. */
            if (!n->banned && !n->link) n->retry_ms = now;
            sherd__job_node_down(job, i, !n->banned, n->last_text, now);
        }
    }
    job_moved(c);
}

static void drop_job(sherd_cluster *c, sherd_job *job)
{
    c->job = job;
    for (uint32_t i = 0; i < c->count; i++) {
        const pool_node *n = &c->nodes[i];
        if (usable(n))
            sherd__job_node_up(job, i, sherd__link_session(n->link), n->sessions,
                               uv_now(&c->loop));
    }
    sherd__job_end(job);
    flush_touched(c);
    release_job(c);
}

/* --- loop thread ----------------------------------------------------------------------------- */

static void begin_close(sherd_cluster *c)
{
    c->closing = true;
    for (uint32_t i = 0; i < c->count; i++) {
        c->nodes[i].retry_ms = 0;
        if (c->nodes[i].link) sherd__link_close(c->nodes[i].link, SHERD_OK, "the work is done");
    }
}

static void on_wake(uv_async_t *h)
{
    sherd_cluster *c = h->data;
    pthread_mutex_lock(&c->lock);
    sherd_job *job = c->next_job;
    bool last = c->next_last, drop = c->next_drop, close = c->close_wanted && !c->closing;
    uint32_t timeout_ms = c->next_timeout_ms;
    c->next_job = NULL;
    pthread_mutex_unlock(&c->lock);
    if (job && drop) drop_job(c, job);
    else if (job) start_job(c, job, last, timeout_ms);
    else job_moved(c);
    if (close) begin_close(c);
}

static void check_deadlines(sherd_cluster *c, uint64_t now)
{
    char text[400];
    pthread_mutex_lock(&c->lock);
    bool stop = c->stop_wanted;
    snprintf(text, sizeof text, "the time given is over%s%s", c->waiting[0] ? "; " : "",
             c->waiting);
    pthread_mutex_unlock(&c->lock);
    if (stop) sherd__job_fail(c->job, SHERD_EINTERRUPTED, NULL, "interrupted");
    if (c->deadline_ms && now >= c->deadline_ms)
        sherd__job_fail(c->job, SHERD_ETIMEOUT, "give it more with --timeout", text);
}

static void on_tick(uv_timer_t *h)
{
    sherd_cluster *c = h->data;
    uint64_t now = uv_now(&c->loop);
    for (uint32_t i = 0; i < c->count && !c->closing; i++) {
        pool_node *n = &c->nodes[i];
        if (!n->link && n->retry_ms && now >= n->retry_ms) connect_node(c, n);
    }
    if (c->job) {
        check_deadlines(c, now);
        sherd__job_tick(c->job, now);
        job_moved(c);
    }
    publish(c);
    if (c->closing && c->open_links == 0) {
        uv_close((uv_handle_t *)&c->wake, NULL);
        uv_close((uv_handle_t *)&c->tick, NULL);
    }
}

static void loop_main(void *arg)
{
    sherd_cluster *c = arg;
    uv_update_time(&c->loop);
    for (uint32_t i = 0; i < c->count; i++) connect_node(c, &c->nodes[i]);
    uv_run(&c->loop, UV_RUN_DEFAULT);
}

static void wake_loop(void *ctx)
{
    sherd_cluster *c = ctx;
    uv_async_send(&c->wake);
}

/* --- waiting, on the calling thread ---------------------------------------------------------- */

/* Waits up to ms for a change; the lock is held. Log lines are delivered, interruption is asked. */
static void wait_a_moment(sherd_cluster *c, unsigned ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (!c->log_len) pthread_cond_timedwait(&c->changed, &c->lock, &until);
    deliver_logs(c);
    if (c->o.interrupted && !c->stop_wanted) {
        pthread_mutex_unlock(&c->lock);
        bool stop = c->o.interrupted(c->o.ctx);
        pthread_mutex_lock(&c->lock);
        c->stop_wanted = c->stop_wanted || stop;
    }
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void post_job(sherd_cluster *c, sherd_job *job, bool last, bool drop, uint32_t timeout_ms)
{
    c->next_job = job;
    c->next_last = last;
    c->next_drop = drop;
    c->next_timeout_ms = timeout_ms;
    c->job_done = false;
    c->stop_wanted = false;
    c->banned[0] = '\0';
    c->waiting[0] = '\0';
    c->progress.done = c->progress.total = 0;
    uv_async_send(&c->wake);
}

int sherd__cluster_run(sherd_cluster *c, sherd_job *job, bool last,
                       const sherd_product_options *opt, sherd__run_result *r, sherd_diag *d)
{
    double began = seconds_now(), told = began;
    int err = SHERD_OK;
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < c->count; i++) {
        r->bytes_out[i] = c->nodes[i].info.bytes_out;
        r->bytes_in[i] = c->nodes[i].info.bytes_in;
    }
    sherd_progress start = c->progress;
    post_job(c, job, last, false, opt->timeout_ms);
    while (!c->job_done) {
        wait_a_moment(c, TICK_MS);
        double now = seconds_now();
        if (!opt->progress || now - told < 0.1) continue;
        sherd_progress p = c->progress;
        told = now;
        p.bytes_in -= start.bytes_in;
        p.bytes_out -= start.bytes_out;
        p.seconds = now - began;
        pthread_mutex_unlock(&c->lock);
        opt->progress(opt->progress_ctx, &p);
        pthread_mutex_lock(&c->lock);
    }
    deliver_logs(c);
    for (uint32_t i = 0; i < c->count; i++) {
        r->bytes_out[i] = c->nodes[i].info.bytes_out - r->bytes_out[i];
        r->bytes_in[i] = c->nodes[i].info.bytes_in - r->bytes_in[i];
    }
    memcpy(r->banned, c->banned, sizeof r->banned);
    pthread_mutex_unlock(&c->lock);
    sherd__job_count(job, &r->stats);
    (void)sherd__job_done(job, &err, d);
    r->seconds = seconds_now() - began;
    return r->err = err;
}

void sherd__cluster_drop(sherd_cluster *c, sherd_job *job)
{
    pthread_mutex_lock(&c->lock);
    post_job(c, job, true, true, 0);
    while (!c->job_done) wait_a_moment(c, TICK_MS);
    pthread_mutex_unlock(&c->lock);
}

void sherd__cluster_nodes(sherd_cluster *c, sherd__nodes *out)
{
    uint64_t least = UINT64_MAX;
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < c->count; i++)
        if (c->nodes[i].info.state != SHERD_NODE_BANNED && c->nodes[i].info.memory &&
            c->nodes[i].info.memory < least)
            least = c->nodes[i].info.memory;
    pthread_mutex_unlock(&c->lock);
    *out = (sherd__nodes){ c->count, c->domain_of, c->domains, least };
}

void sherd__cluster_job_options(sherd_cluster *c, sherd__job_options *out)
{
    out->executor = c->executor;
    out->id = sherd__entropy_u64(&c->entropy) | 1; /* 0 is no job */
    out->nodes = c->count;
    out->domain = c->domain_of;
    out->owner = (sherd__job_owner){ job_touch, job_expel, keep_log, job_name, c };
}

uint32_t sherd_cluster_size(const sherd_cluster *c)
{
    return c->count;
}

bool sherd_cluster_simulated(const sherd_cluster *c)
{
    return c->simulated;
}

void sherd_cluster_node(sherd_cluster *c, uint32_t i, sherd_node_info *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->nodes[i].info;
    pthread_mutex_unlock(&c->lock);
}

/* --- opening --------------------------------------------------------------------------------- */

static int take_local(sherd_cluster *c, sherd_diag *d)
{
    sherd__launch_options lo = {
        .nodes = c->o.local_nodes, .program = c->o.program, .memory = c->o.node_memory,
        .timeout_ms = c->o.timeout_ms, .interrupted = c->o.interrupted, .ctx = c->o.ctx,
    };
    int err = sherd__identity_new(&c->identity);
    if (err) return sherd__fail(d, err, NULL, "cannot make a key: %s", sherd_strerror(err));
    lo.allow = *sherd__identity_fingerprint(c->identity);
    err = sherd__launch_start(&c->launch, &lo, d);
    if (err) return err;
    c->simulated = true;
    c->count = c->o.local_nodes;
    c->nodes = sherd__calloc(c->count, sizeof *c->nodes);
    if (!c->nodes) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    for (uint32_t i = 0; i < c->count; i++) {
        const sherd__launched *l = sherd__launch_node(c->launch, i);
        c->nodes[i].peer = l->peer;
        c->nodes[i].pid = l->pid;
        if (!c->nodes[i].peer.domain[0])
            snprintf(c->nodes[i].peer.domain, sizeof c->nodes[i].peer.domain, "simulated-%u", i + 1);
    }
    return SHERD_OK;
}

static int take_file(sherd_cluster *c, sherd_diag *d)
{
    sherd__peers peers = { 0 };
    const char *file = c->o.nodes_file;
    bool here = true;
    if (!c->o.key_file)
        return sherd__fail(d, SHERD_EINVAL, "make one with 'sherd keygen' and give it with --key",
                           "the nodes of %s want to see our key", file);
    int err = sherd__identity_load(&c->identity, c->o.key_file, d);
    if (!err) err = sherd__peers_load(&peers, file, d);
    if (err) return err;
    c->nodes = sherd__calloc(peers.len, sizeof *c->nodes);
    if (!c->nodes) err = sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; !err && i < peers.len; i++) {
        const sherd__peer *p = &peers.list[i];
        if (strcmp(p->role, "coordinator") == 0) continue;
        if (!p->has_key || p->port == 0 || strcmp(p->host, "*") == 0)
            err = sherd__fail(d, SHERD_EFORMAT, "paste the line that the node prints when it starts",
                              "%s: node %zu has no %s", file, i + 1, p->has_key ? "address" : "key");
        else c->nodes[c->count++].peer = *p;
        here = here && sherd__peer_loopback(p);
    }
    c->simulated = here; /* `sherd cluster up`, or nodes started by hand */
    if (!err && c->count == 0)
        err = sherd__fail(d, SHERD_EFEWNODES, "paste the lines that nodes print when they start",
                          "%s names no node", file);
    sherd__peers_fini(&peers);
    return err;
}

static int number_domains(sherd_cluster *c)
{
    uint32_t split[2];
    sherd__peer **peers = sherd__calloc(c->count, sizeof *peers);
    c->domain_of = sherd__calloc(c->count, sizeof *c->domain_of);
    int err = peers && c->domain_of ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t i = 0; !err && i < c->count; i++) peers[i] = &c->nodes[i].peer;
    if (!err) err = sherd__domains_number(peers, c->count, sherd__addresses_system, c->domain_of,
                                          &c->domains, split);
    /* Nodes that are all on loopback are called simulated anyway. */
    if (!err && split[0] != split[1] && !c->simulated)
        say(c, SHERD_LOG_WARN, "%s:%u and %s:%u are one host, which the node file calls two domains "
            "(%s, %s): who runs it sees what both are given", peers[split[0]]->host,
            peers[split[0]]->port, peers[split[1]]->host, peers[split[1]]->port,
            peers[split[0]]->domain, peers[split[1]]->domain);
    sherd__free(peers);
    return err;
}

static int describe_nodes(sherd_cluster *c, sherd_diag *d)
{
    for (uint32_t i = 0; i < c->count; i++) {
        pool_node *n = &c->nodes[i];
        n->cluster = c;
        n->index = i;
        n->domain = c->domain_of[i];
        if (!n->peer.name[0]) snprintf(n->peer.name, sizeof n->peer.name, "node-%u", i + 1);
        snprintf(n->label, sizeof n->label, "%s (%s:%u)", n->peer.name, n->peer.host, n->peer.port);
        n->info.pid = n->pid;
        snprintf(n->info.name, sizeof n->info.name, "%s", n->peer.name);
        snprintf(n->info.address, sizeof n->info.address, "%s:%u", n->peer.host, n->peer.port);
        snprintf(n->info.domain, sizeof n->info.domain, "%s", n->peer.domain);
        sherd__fingerprint_text(&n->peer.key, n->info.key);
        if (!c->record) continue;
        int err = sherd__record_peer_add(&n->record, c->record, n->peer.name, d);
        if (!err) err = sherd__record_peer_about(n->record, n->info.address);
        if (err) return err;
    }
    return SHERD_OK;
}

static int start_loop(sherd_cluster *c, sherd_diag *d)
{
    if (uv_loop_init(&c->loop)) return sherd__fail(d, SHERD_ENOMEM, NULL, "cannot make an event loop");
    c->loop_made = true;
    uv_async_init(&c->loop, &c->wake, on_wake);
    uv_timer_init(&c->loop, &c->tick);
    c->wake.data = c->tick.data = c;
    uv_timer_start(&c->tick, on_tick, TICK_MS, TICK_MS);
    /* Our threads take no signals: the program's handlers run on its own ones, and a broken
     * connection's SIGPIPE stays with the thread that wrote. What a thread's own access raises is
     * left to the program: a mapped operand that somebody cuts short is a SIGBUS right here. */
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = sherd__buffers_new(&c->answers);
    if (!err) err = sherd__executor_new(&c->executor, EXECUTOR_QUEUE, wake_loop, c);
    bool runs = !err && uv_thread_create(&c->thread, loop_main, c) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err) return sherd__fail(d, err, NULL, "cannot start the compute thread");
    if (!runs)
        return sherd__fail(d, SHERD_ENOMEM, NULL, "cannot start the loop thread");
    c->thread_runs = true;
    return SHERD_OK;
}

/* True where the node could be reached and would not have us, or is not the one it should be: going
 * on without it would hide a mistake, or an attack. */
static bool turned_away(const pool_node *n)
{
    return n->info.state == SHERD_NODE_LOST && n->last_err != SHERD_ESILENT &&
           sherd_err_class(n->last_err) == SHERD_BLAME_PEER;
}

/* How it stands with the nodes while they are waited for. */
typedef struct standing {
    uint32_t up, open, missing; /* missing: which of those that are not up to speak of */
    bool away, stop;
    int err;                    /* of that one, and its text */
    char why[SHERD__TEXT_MAX];
} standing;

/* The lock is held. */
static void look_at_nodes(const sherd_cluster *c, standing *s)
{
    s->up = s->open = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        sherd_node_state state = c->nodes[i].info.state;
        s->up += state == SHERD_NODE_UP;
        s->open += state == SHERD_NODE_CONNECTING;
        if (state != SHERD_NODE_UP && !s->away) s->missing = i;
        s->away = s->away || turned_away(&c->nodes[i]);
    }
    s->stop = c->stop_wanted;
}

/* What a link tells ends in its remedy, behind a semicolon. */
static int fail_missing(const sherd_cluster *c, standing *s, int err, sherd_diag *d)
{
    const char *hint = "look whether it runs and whether its allow-list has our key";
    char *mark = NULL;
    for (char *p = s->why; (p = strstr(p, "; ")) != NULL; p += 2) mark = p;
    if (mark) {
        *mark = '\0';
        hint = mark + 2;
    }
    return sherd__fail(d, err, hint, "%u of %u nodes are up; %s: %s", s->up, c->count,
                       c->nodes[s->missing].label,
                       s->why[0] ? s->why : "no answer within the connect time");
}

/* Waits until all nodes are up, or have failed, or the time is over. */
static int wait_for_nodes(sherd_cluster *c, sherd_diag *d)
{
    uint32_t limit = c->o.connect_timeout_ms ? c->o.connect_timeout_ms : CONNECT_MS;
    uint32_t want = c->o.nodes_min ? c->o.nodes_min : c->count;
    double until = seconds_now() + limit * 1e-3;
    bool over = false;
    standing s = { .up = 0 };
    pthread_mutex_lock(&c->lock);
    do {
        wait_a_moment(c, 20);
        look_at_nodes(c, &s);
        over = c->open_until > 0 && seconds_now() >= c->open_until;
    } while (s.open && !over && seconds_now() < until && !s.stop);
    s.err = c->nodes[s.missing].last_err;
    snprintf(s.why, sizeof s.why, "%s", c->nodes[s.missing].last_text);
    pthread_mutex_unlock(&c->lock);
    if (s.stop) return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
    if (s.open && over && !s.away)
        return sherd__fail(d, SHERD_ETIMEOUT, "give it more with --timeout",
                           "the time given is over; %u of %u nodes are up, %s is not", s.up,
                           c->count, c->nodes[s.missing].label);
    if (s.up < want || s.away)
        return fail_missing(c, &s, s.err && (s.away || s.up == 0 || want == c->count)
                                       ? s.err : SHERD_EFEWNODES, d);
    if (s.up < c->count)
        say(c, SHERD_LOG_WARN, "going on with %u of %u nodes; %s: %s", s.up, c->count,
            c->nodes[s.missing].label, s.why[0] ? s.why : "no answer within the connect time");
    return SHERD_OK;
}

static void init_lock(sherd_cluster *c)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &attr);
    pthread_condattr_destroy(&attr);
}

int sherd_cluster_open(sherd_cluster **out, const sherd_cluster_options *opt, sherd_diag *d)
{
    *out = NULL;
    if ((opt->local_nodes > 0) == (opt->nodes_file != NULL))
        return sherd__fail(d, SHERD_EINVAL, "start local nodes with -n N, or name nodes with --nodes",
                           "it is not said which nodes to use");
    sherd_cluster *c = sherd__calloc(1, sizeof *c);
    if (!c) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    c->o = *opt;
    c->entropy = sherd__entropy_os();
    if (opt->timeout_ms) c->open_until = seconds_now() + opt->timeout_ms * 1e-3;
    init_lock(c);
    int err = SHERD_OK;
    if (opt->record_dir) err = sherd__record_new(&c->record, opt->record_dir, "coordinator", d);
    if (!err) err = opt->local_nodes ? take_local(c, d) : take_file(c, d);
    if (!err) err = number_domains(c);
    if (!err) err = describe_nodes(c, d);
    if (!err) err = start_loop(c, d);
    if (!err) err = wait_for_nodes(c, d);
    if (err) {
        sherd_cluster_close(c);
        return sherd__fail(d, err, NULL, "cannot open the cluster: %s", sherd_strerror(err));
    }
    *out = c;
    return SHERD_OK;
}

#define GRACE_MS 500u /* for local nodes to end, where one of them does not answer any more */

void sherd_cluster_close(sherd_cluster *c)
{
    if (!c) return;
    bool mute = false;
    if (c->thread_runs) {
        pthread_mutex_lock(&c->lock);
        for (uint32_t i = 0; i < c->count; i++) mute = mute || c->nodes[i].info.state != SHERD_NODE_UP;
        c->close_wanted = true;
        pthread_mutex_unlock(&c->lock);
        uv_async_send(&c->wake);
        uv_thread_join(&c->thread);
    } else if (c->loop_made) {
        uv_close((uv_handle_t *)&c->wake, NULL);
        uv_close((uv_handle_t *)&c->tick, NULL);
        uv_run(&c->loop, UV_RUN_DEFAULT);
    }
    sherd__executor_free(c->executor);
    if (c->loop_made) (void)uv_loop_close(&c->loop);
    sherd__buffers_free(c->answers);
    sherd__launch_stop(c->launch, mute ? GRACE_MS : 0);
    if (c->record) (void)!sherd__record_end(c->record, NULL);
    sherd__identity_free(c->identity);
    sherd__free(c->nodes);
    sherd__free(c->domain_of);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    sherd__free(c);
}
