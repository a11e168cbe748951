/*
 * The loop thread of a cluster: connections to all nodes, the running job, deadlines. A separate
 * compute thread (core/executor.h) hides, checks and folds.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/cluster/measure.h"
#include "scheduler/cluster/state.h"
#include "sherd/version.h"

#define RETRY_MS 300u        /* between attempts to reconnect to a node */
#define RETRIES_MAX 5u       /* per job; a node lost earlier is tried once per job */
#define RETRY_LATER_MS 2000u /* for a lasting job, after those */
#define STALLS_MAX 2u        /* consecutive sessions ending in silence before a node is shut out */
#define SHUT_MS UINT64_C(30000) /* an expelled silent node is given nothing for this long */
#define SHUT_DOUBLED 7u
#define STEADY_MS 10000u /* after this time up, a node has all quick attempts again */
#define SOFTWARE "sherd " SHERD_VERSION

/* Adds the byte counts of a link's session; there is none before TLS is established. */
static void add_session_bytes(sherd__link *l, sherd__session_stats *sum)
{
    const sherd__session *session = sherd__link_session(l);
    if (!session) return;
    const sherd__session_stats *s = sherd__session_stats_of(session);
    sum->bytes_in += s->bytes_in;
    sum->bytes_out += s->bytes_out;
    sum->work_in += s->work_in;
    sum->work_out += s->work_out;
}

/* Returns whether the node is up and we are not about to close its connection. */
static bool usable(const pool_node *n)
{
    return n->up && !n->banned && sherd__session_ready(sherd__link_session(n->link));
}

static sherd_node_state state_of(const pool_node *n)
{
    if (n->banned) return SHERD_NODE_BANNED;
    if (n->expelled) return SHERD_NODE_LOST; /* its connection may still be closing */
    if (usable(n)) return SHERD_NODE_UP;
    if (n->given_up) return SHERD_NODE_LOST; /* it is tried again, but no call waits for it */
    return n->retry_ms || n->link ? SHERD_NODE_CONNECTING : SHERD_NODE_LOST;
}

/* Updates the public snapshot of nodes and job. */
static void publish(sherd_cluster *c)
{
    uint64_t now = uv_now(&c->loop), in = 0, out = 0;
    pthread_mutex_lock(&c->lock);
    c->progress.nodes_up = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        pool_node *n = &c->nodes[i];
        sherd_node_info *info = &n->info;
        sherd__session_stats sum = n->past;
        if (n->link) add_session_bytes(n->link, &sum);
        info->bytes_in = sum.bytes_in;
        info->bytes_out = sum.bytes_out;
        info->work_in = sum.work_in;
        info->work_out = sum.work_out;
        if (!c->closing) info->state = state_of(n); /* otherwise keep that at our goodbye */
        info->tasks = n->tasks + (c->work.ops ? c->work.ops->node_tasks(c->work.ctx, i) : 0);
        memcpy(info->blas_core, n->hello.blas_core, sizeof info->blas_core);
        info->threads = n->hello.threads;
        info->memory = n->hello.memory;
        n->rates = sherd__hello_rates_of(&n->hello);
        info->gflops = n->rates.gflops;
        info->residue_gflops = n->rates.residue_gflops;
        info->byte_gops = n->rates.byte_gops;
        info->devices = n->rates.devices;
        info->latency = n->round_trip;
        memcpy(info->software, n->hello.software, sizeof info->software);
        memcpy(info->backend, n->hello.backend, sizeof info->backend);
        info->load_known = n->hello.load.known;
        info->memory_free = n->hello.load.memory_free;
        info->uptime = n->hello.load.uptime_s;
        info->open_tasks = n->hello.load.tasks;
        info->sessions = n->hello.load.sessions;
        n->windows = (n->hello.features & SHERD__FEATURE_WINDOWS) != 0;
        n->seeds = (n->hello.features & SHERD__FEATURE_SEEDS) != 0;
        c->progress.nodes_up += info->state == SHERD_NODE_UP;
        in += info->bytes_in;
        out += info->bytes_out;
    }
    c->progress.bytes_in = in;
    c->progress.bytes_out = out;
    if (c->work.ops) {
        c->work.ops->progress(c->work.ctx, &c->progress.done, &c->progress.total);
        c->work.ops->waiting(c->work.ctx, now, c->waiting, sizeof c->waiting);
    }
    pthread_mutex_unlock(&c->lock);
}

/* Updates the snapshot if a thread waits for it. */
static void publish_wanted(sherd_cluster *c)
{
    pthread_mutex_lock(&c->lock);
    bool wanted = c->publish_wanted;
    pthread_mutex_unlock(&c->lock);
    if (!wanted) return;
    publish(c);
    pthread_mutex_lock(&c->lock);
    c->publish_wanted = false;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* --- links ----------------------------------------------------------------------------------- */

static void on_event(void *ctx, sherd__link *l, sherd__event *e);
static void on_closed(void *ctx, sherd__link *l);

/* Notes why the node is not up. The calling thread reads it while it waits for nodes. */
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
        .loop = &c->loop,
        .identity = c->identity,
        .session = { .role = SHERD__COORDINATOR,
                     .hello = { .minor_max = SHERD__MINOR, .software = SOFTWARE },
                     .place = sherd__buffers_place,
                     .unplace = sherd__buffers_unplace,
                     .place_ctx = c->answers },
        .owner = { on_event, on_closed, n },
        .connect_timeout_ms = c->o.connect_timeout_ms,
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

/* Bans the node while this cluster is open. The reason must be logged first, so that no ban is
 * unreported. */
static void ban(sherd_cluster *c, pool_node *n)
{
    if (n->banned) return;
    n->banned = true;
    n->retry_ms = 0;
    pthread_mutex_lock(&c->lock);
    n->ban = ++c->bans;
    n->info.state = SHERD_NODE_BANNED;
    pthread_mutex_unlock(&c->lock);
}

/* Removes the node's address from the start of a link's message, because the node's label has it as
 * well. */
static const char *cause(const pool_node *n, const char *text)
{
    char address[sizeof n->info.address + 4];
    int len = snprintf(address, sizeof address,
                       strchr(n->peer.host, ':') ? "[%s]:%u: " : "%s:%u: ", n->peer.host,
                       n->peer.port);
    return strncmp(text, address, (size_t)len) == 0 ? text + len : text;
}

/* Shuts the node out, each time for twice as long. A node that delivers nothing costs each work its
 * deadline; one that was stopped for a while may be useful again. */
static void shut_out(pool_node *n, uint64_t now_ms)
{
    uint32_t times = n->silences < SHUT_DOUBLED ? n->silences : SHUT_DOUBLED;
    n->silences++;
    n->shut_until_ms = now_ms + (SHUT_MS << times);
}

/* Handles the end of a session, or of an attempt to start one, and decides whether the node may
 * return. */
static void on_session_over(sherd_cluster *c, pool_node *n, const sherd__event *e)
{
    uint64_t now = uv_now(&c->loop);
    const char *why = cause(n, e->text);
    bool was_up = n->up;
    add_session_bytes(n->link, &n->past);
    n->link = NULL;
    n->up = false;
    note_end(c, n, e->err, why);
    if (sherd_err_class(e->err) == SHERD_BLAME_PEER && e->err != SHERD_ESILENT && was_up &&
        !n->banned) { /* it broke the protocol; the network cannot cause that */
        if (c->work.ops) c->work.ops->node_banned(c->work.ctx, n->index, why);
        else if (!c->closing)
            sherd__cluster_say(c, SHERD_LOG_WARN, "%s broke the protocol: %s: banned", n->label,
                               why);
        ban(c, n);
    } else if (was_up && !c->work.ops && !c->closing && !n->banned && !n->expelled) {
        sherd__cluster_say(c, SHERD_LOG_WARN, "%s lost: %s", n->label, why);
    }
    bool lasting = c->work.ops && c->work.ops->lasting;
    if (lasting && was_up && !n->expelled && now - n->up_ms >= STEADY_MS) n->retries = 0;
    if (was_up && e->err == SHERD_ESILENT && !n->expelled && ++n->stalls >= STALLS_MAX) {
        shut_out(n, now);
        n->retries = RETRIES_MAX;
    }
    bool again = !n->banned && !c->closing && n->retries < RETRIES_MAX &&
                 (was_up || e->err == SHERD_ECLOSED || e->err == SHERD_ENET) &&
                 e->err != SHERD_EINTERRUPTED;
    n->given_up = !was_up && !again;
    if (again) {
        n->retries++;
        n->retry_ms = now + RETRY_MS;
    } else if (lasting && !n->banned && !n->expelled && !c->closing) {
        n->retry_ms = now + RETRY_LATER_MS;
        if (n->retry_ms < n->shut_until_ms) n->retry_ms = n->shut_until_ms;
    }
    if (c->work.ops) c->work.ops->node_down(c->work.ctx, n->index, again, why, now);
}

static void on_event(void *ctx, sherd__link *l, sherd__event *e)
{
    pool_node *n = ctx;
    sherd_cluster *c = n->cluster;
    uint64_t now = uv_now(&c->loop);
    switch (e->kind) {
    case SHERD__EV_READY:
        n->up = true;
        n->given_up = false;
        n->up_ms = now;
        n->sessions++;
        n->hello = e->hello;
        n->round_trip = sherd__link_round_trip(l);
        n->reported_cannot = 0; /* it may have been restarted, as another version */
        if (c->work.ops)
            c->work.ops->node_up(c->work.ctx, n->index, sherd__link_session(l), n->sessions, now);
        pthread_mutex_lock(&c->lock);
        pthread_cond_signal(&c->changed);
        pthread_mutex_unlock(&c->lock);
        publish(c);
        sherd__cluster_report_small(c, n->index);
        break;
    case SHERD__EV_CLOSED:
        on_session_over(c, n, e);
        publish(c);
        pthread_mutex_lock(&c->lock);
        pthread_cond_signal(&c->changed);
        pthread_mutex_unlock(&c->lock);
        break;
    case SHERD__EV_RESULT:
        n->stalls = 0;
        /* fall through */
    case SHERD__EV_REFUSED:
        if (c->work.ops) c->work.ops->event(c->work.ctx, n->index, e, now);
        break;
    default: break;
    }
    sherd__fragment_free(e->fragment);
    e->fragment = NULL;
    job_moved(c);
}

static void on_closed(void *ctx, sherd__link *l)
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
    else shut_out(n, uv_now(&c->loop));
    n->retries = RETRIES_MAX;
    n->expelled = true;
    if (n->link) sherd__link_close(n->link, code, why);
}

static const char *job_name(void *ctx, uint32_t node)
{
    const sherd_cluster *c = ctx;
    return c->nodes[node].label;
}

static bool job_first_report(void *ctx, uint32_t node, uint32_t what, const char *reason)
{
    sherd_cluster *c = ctx;
    pool_node *n = &c->nodes[node];
    bool first = what & ~n->reported_cannot;
    n->reported_cannot |= what;
    if (what != SHERD__JOB_CANNOT_WORK) return first;
    first = first || strncmp(n->reported_refusal, reason, sizeof n->reported_refusal - 1);
    snprintf(n->reported_refusal, sizeof n->reported_refusal, "%s", reason);
    return first;
}

void sherd__cluster_job_options(sherd_cluster *c, sherd__job_options *out)
{
    out->executor = c->executor;
    out->id = sherd__entropy_u64(&c->entropy) | 1; /* 0 means no job */
    out->nodes = c->count;
    out->domain = c->domain_of;
    out->deliveries = &c->nodes[0].delivery;
    out->deliveries_stride = sizeof *c->nodes;
    out->owner = (sherd__job_owner){ .touch = job_touch,
                                     .expel = job_expel,
                                     .log = sherd__cluster_log,
                                     .name = job_name,
                                     .first_report = job_first_report,
                                     .ctx = c };
}

int sherd__cluster_coding(sherd_cluster *c, uint64_t job, const sherd__prepared *p, sherd_diag *d)
{
    sherd__scheme_shape shape;
    if (!c->record || !p->threshold) return SHERD_OK;
    p->hiding.ops->shape(p->hiding.ctx, &shape);
    const sherd__record_coded coded = {
        .job = job,
        .scheme = p->scheme->name,
        .code = p->coded_by->name,
        .blocks = p->code.blocks,
        .masks = p->code.masks,
        .shares = p->code.shares,
        .rows = p->coded_rows,
        .cols = p->coded_cols,
        .part = p->coded_part,
        .panel = p->plan.panel_rows,
        .stays = shape.left_stays,
        .largest = p->fixed_a.largest,
        .right = shape.left_stays ? 0 : p->fixed_b.largest,
    };
    return sherd__record_coding(c->record, &coded, d);
}

/* Returns whether the node may return within the short time that a job waits for a lost node. A
 * node whose last session broke the handshake, or that could not be reached when an earlier job
 * began, is tried again but not waited for. */
static bool awaited(const pool_node *n)
{
    return !n->banned && !n->absent && !n->given_up && !n->shut_until_ms;
}

/* Returns the job to the calling thread. */
static void release_job(sherd_cluster *c)
{
    c->work.ops->rest(c->work.ctx);
    flush_touched(c); /* notifies nodes now of what they may drop */
    c->work = (sherd__work){ 0 };
    pthread_mutex_lock(&c->lock);
    c->job_done = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    sherd__buffers_rest(c->answers); /* the caller need not wait for it */
}

static void end_job(sherd_cluster *c)
{
    publish(c);
    for (uint32_t i = 0; i < c->count; i++)
        c->nodes[i].tasks += c->work.ops->node_tasks(c->work.ctx, i);
    release_job(c);
}

/* Lets the job proceed after an event, sends what it has to send, and checks whether it is done. */
static void job_moved(sherd_cluster *c)
{
    int err;
    if (!c->work.ops) return;
    c->work.ops->pump(c->work.ctx, uv_now(&c->loop));
    if (c->work.ops->done(c->work.ctx, &err, NULL) && !c->job_ended) {
        c->job_ended = true;
        if (c->job_last || err) c->work.ops->end(c->work.ctx);
    }
    flush_touched(c);
    if (c->job_ended && c->work.ops->idle(c->work.ctx)) end_job(c);
}

static void start_job(sherd_cluster *c, sherd__work work, bool last, uint32_t timeout_ms)
{
    uint64_t now = uv_now(&c->loop);
    c->work = work;
    c->job_last = last;
    c->job_ended = false;
    c->deadline_ms = timeout_ms ? now + timeout_ms : 0;
    for (uint32_t i = 0; i < c->count; i++) {
        pool_node *n = &c->nodes[i];
        if (n->up && now - n->up_ms >= STEADY_MS) n->retries = 0;
        n->expelled = false;
        n->stalls = 0;
        if (usable(n)) {
            work.ops->node_up(work.ctx, i, sherd__link_session(n->link), n->sessions, now);
        } else {
            /* A node lost before is tried once more while the others begin. */
            if (!n->banned && !n->absent && !n->link && now >= n->shut_until_ms) n->retry_ms = now;
            if (n->banned) work.ops->node_barred(work.ctx, i);
            work.ops->node_down(work.ctx, i, awaited(n), n->last_text, now);
        }
    }
    job_moved(c);
}

static void drop_job(sherd_cluster *c, sherd__work work)
{
    c->work = work;
    for (uint32_t i = 0; i < c->count; i++) {
        const pool_node *n = &c->nodes[i];
        if (usable(n))
            work.ops->node_up(work.ctx, i, sherd__link_session(n->link), n->sessions,
                              uv_now(&c->loop));
    }
    work.ops->end(work.ctx);
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

void sherd__cluster_on_wake(uv_async_t *h)
{
    sherd_cluster *c = h->data;
    pthread_mutex_lock(&c->lock);
    sherd__work work = c->next_work;
    bool last = c->next_last, drop = c->next_drop, close = c->close_wanted && !c->closing;
    uint32_t timeout_ms = c->next_timeout_ms;
    c->next_work = (sherd__work){ 0 };
    pthread_mutex_unlock(&c->lock);
    if (work.ops && drop) drop_job(c, work);
    else if (work.ops) start_job(c, work, last, timeout_ms);
    else job_moved(c);
    publish_wanted(c);
    if (close) begin_close(c);
}

static void check_deadlines(sherd_cluster *c, uint64_t now)
{
    char text[400];
    pthread_mutex_lock(&c->lock);
    bool stop = c->stop_wanted;
    snprintf(text, sizeof text, "the time limit expired%s%s", c->waiting[0] ? "; " : "",
             c->waiting);
    pthread_mutex_unlock(&c->lock);
    if (stop) c->work.ops->fail(c->work.ctx, SHERD_EINTERRUPTED, NULL, "interrupted");
    if (c->deadline_ms && now >= c->deadline_ms)
        c->work.ops->fail(c->work.ctx, SHERD_ETIMEOUT, "allow more time with --timeout", text);
}

/* Reported at once and only once, because work may continue for long. */
static void report_record(sherd_cluster *c)
{
    sherd_diag d = { 0 };
    if (!c->record || c->record_reported || !sherd__record_error(c->record, &d)) return;
    c->record_reported = true;
    sherd__cluster_say(c, SHERD_LOG_WARN, "recording has stopped: %s", d.message);
}

void sherd__cluster_on_tick(uv_timer_t *h)
{
    sherd_cluster *c = h->data;
    uint64_t now = uv_now(&c->loop);
    for (uint32_t i = 0; i < c->count && !c->closing; i++) {
        pool_node *n = &c->nodes[i];
        if (!n->link && n->retry_ms && now >= n->retry_ms) connect_node(c, n);
    }
    if (c->work.ops) {
        for (uint32_t i = 0; i < c->count; i++)
            if (c->nodes[i].link) sherd__link_measure(c->nodes[i].link);
        check_deadlines(c, now);
        c->work.ops->tick(c->work.ctx, now);
        job_moved(c);
    }
    publish(c);
    report_record(c);
    if (c->closing && c->open_links == 0) {
        uv_close((uv_handle_t *)&c->wake, NULL);
        uv_close((uv_handle_t *)&c->tick, NULL);
    }
}

void sherd__cluster_loop(void *arg)
{
    sherd_cluster *c = arg;
    (void)pthread_setname_np(pthread_self(), SHERD__CLUSTER_THREAD);
    uv_update_time(&c->loop);
    for (uint32_t i = 0; i < c->count; i++)
        if (!c->nodes[i].absent) connect_node(c, &c->nodes[i]);
    uv_run(&c->loop, UV_RUN_DEFAULT);
}

void sherd__cluster_wake(void *ctx)
{
    sherd_cluster *c = ctx;
    uv_async_send(&c->wake);
}
