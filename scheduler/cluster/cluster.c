/*
 * The public functions of a cluster: they leave requests for the loop thread, wait for them, and
 * deliver log lines and snapshots. Only the loop thread accesses links, sessions and the running
 * job (loop.c). Data that both threads access is protected by one lock.
 *
 * Trusts its own configuration. Data from a node is used only as far as session and scheme have
 * checked it. What a node reports about itself (memory, speed) affects only planning.
 */
#include "sherd/cluster.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/hooks.h"
#include "core/options.h"
#include "scheduler/cluster/state.h"

/* --- logging --------------------------------------------------------------------------------- */

void sherd__cluster_log(void *ctx, sherd_log_level level, const char *text)
{
    sherd_cluster *c = ctx;
    pthread_mutex_lock(&c->lock);
    if (c->log_len < CLUSTER_LOG_LINES) {
        uint32_t at = (c->log_from + c->log_len++) % CLUSTER_LOG_LINES;
        snprintf(c->log[at], CLUSTER_LOG_LINE, "%s", text);
        c->log_level[at] = level;
        pthread_cond_signal(&c->changed);
    } else {
        c->log_lost++;
        if (level > c->log_lost_level) c->log_lost_level = level;
    }
    pthread_mutex_unlock(&c->lock);
}

void sherd__cluster_say(sherd_cluster *c, sherd_log_level level, const char *fmt, ...)
{
    char text[CLUSTER_LOG_LINE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    sherd__cluster_log(c, level, text);
}

/* Removes and returns the oldest line, or, after all of them, a line with the number of lines
 * dropped. The lock must be held. */
static sherd_log_level next_log(sherd_cluster *c, char text[CLUSTER_LOG_LINE])
{
    sherd_log_level level = c->log_lost_level;
    if (c->log_len) {
        level = c->log_level[c->log_from];
        memcpy(text, c->log[c->log_from], CLUSTER_LOG_LINE);
        c->log_from = (c->log_from + 1) % CLUSTER_LOG_LINES;
        c->log_len--;
    } else {
        snprintf(text, CLUSTER_LOG_LINE, "and %u more such lines, which were too frequent",
                 c->log_lost);
        c->log_lost = 0;
        c->log_lost_level = SHERD_LOG_DEBUG;
    }
    return level;
}

/* Delivers log lines to the user. The lock must be held; it is released during each call of the
 * user's function. */
void sherd__cluster_hand_out(sherd_cluster *c)
{
    while (c->log_len || c->log_lost) {
        char text[CLUSTER_LOG_LINE];
        sherd_log_level level = next_log(c, text);
        pthread_mutex_unlock(&c->lock);
        if (c->hooks.log) c->hooks.log(c->hooks.ctx, level, text);
        pthread_mutex_lock(&c->lock);
    }
}

/* --- waiting, on the calling thread ---------------------------------------------------------- */

/* Waits up to ms for a change, delivers log lines, and asks whether to stop. The lock must be
 * held. */
void sherd__cluster_wait(sherd_cluster *c, unsigned ms)
{
    struct timespec until = sherd__clock_after(ms * 1e-3);
    if (!c->log_len) pthread_cond_timedwait(&c->changed, &c->lock, &until);
    sherd__cluster_hand_out(c);
    if (c->hooks.interrupted && !c->stop_wanted) {
        pthread_mutex_unlock(&c->lock);
        bool stop = sherd__hooks_interrupted(&c->hooks);
        pthread_mutex_lock(&c->lock);
        c->stop_wanted = c->stop_wanted || stop;
    }
}

void sherd__cluster_post(sherd_cluster *c, sherd__work work, bool last, bool drop,
                         uint32_t timeout_ms)
{
    c->next_work = work;
    c->next_last = last;
    c->next_drop = drop;
    c->next_timeout_ms = timeout_ms;
    c->job_done = false;
    c->stop_wanted = false;
    c->waiting[0] = '\0';
    c->progress.done = c->progress.total = 0;
    uv_async_send(&c->wake);
}

void sherd__cluster_call(sherd_cluster *c, const sherd_hooks *hooks)
{
    c->hooks = hooks && sherd__hooks_any(hooks) ? *hooks : c->o.hooks;
    pthread_mutex_lock(&c->lock);
    c->bans_before = c->bans;
    pthread_mutex_unlock(&c->lock);
}

const sherd_hooks *sherd__cluster_hooks(const sherd_cluster *c)
{
    return &c->o.hooks;
}

const char *sherd__cluster_record_dir(const sherd_cluster *c)
{
    return c->record ? sherd__record_dir(c->record) : NULL;
}

/* Copies the names of the nodes banned during this call, in order. The lock must be held. */
static void copy_bans(const sherd_cluster *c, sherd__run_result *r)
{
    size_t len = 0;
    r->bans = c->bans - c->bans_before;
    for (uint32_t b = c->bans_before + 1; b <= c->bans; b++)
        for (uint32_t i = 0; i < c->count && len < sizeof r->banned; i++)
            if (c->nodes[i].ban == b)
                len += (size_t)snprintf(r->banned + len, sizeof r->banned - len, "%s%s",
                                        len ? ", " : "", c->nodes[i].label);
}

int sherd__cluster_run(sherd_cluster *c, sherd__job *job, bool last, uint32_t timeout_ms,
                       sherd__run_result *r, sherd_diag *d)
{
    double began = sherd__clock_s();
    sherd__hooked hooked = sherd__hooks_begin(&c->hooks);
    int err = sherd__cluster_over(c, d);
    if (err) return r->err = err;
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < c->count; i++) {
        r->bytes_out[i] = c->nodes[i].info.bytes_out;
        r->bytes_in[i] = c->nodes[i].info.bytes_in;
        r->work_out -= c->nodes[i].info.work_out; /* wraps around; the addition below reverses it */
        r->work_in -= c->nodes[i].info.work_in;
    }
    sherd_progress start = c->progress;
    sherd__cluster_post(c, sherd__job_work(job), last, false, timeout_ms);
    while (!c->job_done) {
        sherd__cluster_wait(c, CLUSTER_TICK_MS);
        sherd_progress p = c->progress;
        p.bytes_in -= start.bytes_in;
        p.bytes_out -= start.bytes_out;
        pthread_mutex_unlock(&c->lock);
        sherd__hooks_progress(&hooked, p);
        pthread_mutex_lock(&c->lock);
    }
    sherd__cluster_hand_out(c);
    for (uint32_t i = 0; i < c->count; i++) {
        r->bytes_out[i] = c->nodes[i].info.bytes_out - r->bytes_out[i];
        r->bytes_in[i] = c->nodes[i].info.bytes_in - r->bytes_in[i];
        r->work_out += c->nodes[i].info.work_out;
        r->work_in += c->nodes[i].info.work_in;
        r->states[i] = c->nodes[i].info.state;
    }
    copy_bans(c, r);
    pthread_mutex_unlock(&c->lock);
    sherd__job_count(job, &r->stats);
    (void)sherd__job_done(job, &err, d);
    r->seconds = sherd__clock_s() - began;
    return r->err = err;
}

void sherd__cluster_drop(sherd_cluster *c, sherd__job *job)
{
    if (c->ended) return; /* nodes have dropped all blocks with the connection */
    pthread_mutex_lock(&c->lock);
    sherd__cluster_post(c, sherd__job_work(job), true, true, 0);
    while (!c->job_done) sherd__cluster_wait(c, CLUSTER_TICK_MS);
    pthread_mutex_unlock(&c->lock);
}

/* Inserts `value` into an ascending list of `len` numbers. */
static void put_ascending(uint64_t *list, uint32_t len, uint64_t value)
{
    for (; len > 0 && list[len - 1] > value; len--) list[len] = list[len - 1];
    list[len] = value;
}

/* Returns the number of domains with a node that is up (windows: and that can process windows of
 * images) and without a banned one. budgets, or NULL: receives the least memory of such nodes in
 * each domain, ascending. The lock must be held. */
static uint32_t usable_domains(const sherd_cluster *c, bool windows, uint64_t *budgets)
{
    uint32_t usable = 0;
    for (uint32_t d = 0; d < c->domains; d++) {
        bool up = false, banned = false;
        uint64_t least = UINT64_MAX;
        for (uint32_t i = 0; i < c->count; i++) {
            const pool_node *n = &c->nodes[i];
            if (c->domain_of[i] != d) continue;
            banned = banned || n->info.state == SHERD_NODE_BANNED;
            if (n->info.state != SHERD_NODE_UP || (windows && !n->windows)) continue;
            up = true;
            if (n->info.memory < least) least = n->info.memory;
        }
        if (!up || banned) continue;
        if (budgets) put_ascending(budgets, usable, least);
        usable++;
    }
    return usable;
}

/* Sets which domains expand seeds. The lock must be held. */
static void find_seeds(const sherd_cluster *c, bool *seeds)
{
    for (uint32_t d = 0; d < c->domains; d++) {
        bool up = false, all = true;
        for (uint32_t i = 0; i < c->count; i++) {
            const pool_node *n = &c->nodes[i];
            if (c->domain_of[i] != d) continue;
            if (n->info.state == SHERD_NODE_UP) up = true;
            if (n->info.state == SHERD_NODE_UP && !n->seeds) all = false;
            if (n->info.state == SHERD_NODE_BANNED) all = false;
        }
        seeds[d] = up && all;
    }
}

/* Lists the memory of each node that is up, less that of kept operands, ascending. The lock must be
 * held. */
static uint32_t rooms_of(const sherd_cluster *c, uint64_t *rooms)
{
    uint32_t len = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const sherd_node_info *info = &c->nodes[i].info;
        if (info->state != SHERD_NODE_UP) continue;
        put_ascending(rooms, len++, info->memory > c->held ? info->memory - c->held : 0);
    }
    return len;
}

static uint64_t cell_of(const sherd__hello_rates *r)
{
    return r->cell;
}

static uint64_t depth_of(const sherd__hello_rates *r)
{
    return r->depth;
}

/* Returns the largest value that more than half of the nodes have or exceed: what a few of them
 * declare changes nothing. The lock must be held. */
static uint64_t most_have(const sherd_cluster *c, uint64_t (*of)(const sherd__hello_rates *r))
{
    uint32_t len = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const sherd_node_info *info = &c->nodes[i].info;
        if (info->state != SHERD_NODE_BANNED && info->memory)
            put_ascending(c->rooms, len++, of(&c->nodes[i].rates));
    }
    return len ? c->rooms[sherd__plan_spared(len)] : 0;
}

/* Local nodes that are not given devices of their own share one. The lock must be held. */
static void list_speeds(sherd_cluster *c)
{
    const uint32_t sharing = c->o.local_nodes && !c->o.devices_each ? c->count : 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const pool_node *n = &c->nodes[i];
        bool part = n->info.state != SHERD_NODE_BANNED && n->info.memory; /* it was connected */
        c->each[i] = (sherd__node_speed){ .name = part ? n->info.name : NULL,
                                          .device = part && strcmp(n->info.backend, "cpu") != 0,
                                          .threads = n->info.threads,
                                          .sharing = sharing,
                                          .declared = n->rates };
    }
}

void sherd__cluster_nodes(sherd_cluster *c, sherd__nodes *out)
{
    uint64_t least = UINT64_MAX;
    const char *smallest = NULL;
    uint32_t threads = 0;
    double slowest = 0, residues = INFINITY, bytes = INFINITY;
    uint32_t does = SHERD__DOES_ALL;
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < c->count; i++) {
        const sherd_node_info *info = &c->nodes[i].info;
        if (info->state == SHERD_NODE_BANNED || !info->memory) continue; /* or never connected */
        if (info->memory < least) {
            least = info->memory;
            smallest = c->nodes[i].label;
        }
        if (info->threads > threads) threads = info->threads;
        if (info->gflops > 0 && (slowest == 0 || info->gflops < slowest)) slowest = info->gflops;
        residues = fmin(residues, info->residue_gflops);
        bytes = fmin(bytes, info->byte_gops);
        does &= c->nodes[i].rates.does;
    }
    least -= least < c->held ? least : c->held;
    uint32_t newer = usable_domains(c, true, NULL), usable = usable_domains(c, false, c->budgets);
    for (uint32_t i = 0; i < usable; i++)
        c->budgets[i] -= c->budgets[i] < c->held ? c->budgets[i] : c->held;
    uint64_t cell = most_have(c, cell_of), depth = most_have(c, depth_of);
    uint32_t up = rooms_of(c, c->rooms);
    find_seeds(c, c->seeds);
    double *rates = c->scratch + 4 * (size_t)c->count, *paces = rates + c->count;
    for (uint32_t i = 0; i < c->count; i++) {
        rates[i] = c->nodes[i].info.gflops;
        paces[i] = c->nodes[i].speed.rate;
    }
    list_speeds(c);
    pthread_mutex_unlock(&c->lock);
    *out = (sherd__nodes){ .bodies = { sherd__buffers_body, sherd__buffers_unplace, c->answers },
                           .count = c->count,
                           .domain = c->domain_of,
                           .domains = c->domains,
                           .memory = least,
                           .smallest = smallest,
                           .budgets = usable ? c->budgets : NULL,
                           .seeds = c->seeds,
                           .usable = usable,
                           .rooms = up ? c->rooms : NULL,
                           .rooms_len = up,
                           .gflops = slowest,
                           /* Nodes on this machine share its cores and have no links. */
                           .rates = c->simulated ? NULL : rates,
                           .paces = c->simulated ? NULL : paces,
                           .each = c->each,
                           .older = usable > newer ? usable - newer : 0,
                           .no_csr = !(does & SHERD__DOES_CSR),
                           .cell = cell,
                           .depth = (uint32_t)depth,
                           .threads = threads,
                           .remote = !c->simulated,
                           .residue_gflops = isfinite(residues) ? residues : 0,
                           .byte_gops = isfinite(bytes) ? bytes : 0,
                           .domain_fault = c->domain_fault.text[0] ? c->domain_fault.text : NULL,
                           .domain_hint = c->domain_fault.hint };
    sherd__cluster_weights(c, out);
}

void sherd__cluster_report_small(sherd_cluster *c, uint32_t node)
{
    char has[16];
    pool_node *n = &c->nodes[node];
    pthread_mutex_lock(&c->lock);
    uint64_t memory = n->info.memory;
    bool tell = n->info.state == SHERD_NODE_UP && !n->reported_small && memory < c->needed;
    n->reported_small = n->reported_small || tell;
    pthread_mutex_unlock(&c->lock);
    if (tell)
        sherd__cluster_say(c, SHERD_LOG_WARN,
                           "%s reports memory for %s, which is too little for this work: it counts "
                           "as lost",
                           n->label, sherd__bytes_text((double)memory, has));
}

uint64_t sherd__cluster_pass_over(sherd_cluster *c, uint64_t memory)
{
    pthread_mutex_lock(&c->lock);
    uint64_t needed = c->needed = memory ? memory + c->held : 0;
    pthread_mutex_unlock(&c->lock);
    for (uint32_t i = 0; i < c->count; i++) sherd__cluster_report_small(c, i);
    return needed;
}

void sherd__cluster_reserve(sherd_cluster *c, uint64_t bytes)
{
    pthread_mutex_lock(&c->lock);
    c->held += bytes;
    pthread_mutex_unlock(&c->lock);
}

void sherd__cluster_unreserve(sherd_cluster *c, uint64_t bytes)
{
    pthread_mutex_lock(&c->lock);
    c->held -= bytes;
    pthread_mutex_unlock(&c->lock);
}

uint32_t sherd_cluster_size(const sherd_cluster *c)
{
    return c->count;
}

bool sherd_cluster_simulated(const sherd_cluster *c)
{
    return c->simulated;
}

void sherd__cluster_refresh(sherd_cluster *c)
{
    if (c->ended) return;
    pthread_mutex_lock(&c->lock);
    c->publish_wanted = true;
    uv_async_send(&c->wake);
    while (c->publish_wanted) sherd__cluster_wait(c, CLUSTER_TICK_MS);
    sherd__cluster_hand_out(c);
    pthread_mutex_unlock(&c->lock);
}

const char *const sherd__node_states[] = { "connecting", "up", "lost", "banned", NULL };

#define OF(member, TYPE, unit, text) SHERD__FIELD(sherd_node_info, member, TYPE, unit, text)

static const sherd_field node_info_fields[] = {
    OF(name, TEXT, "", "name"),
    OF(address, TEXT, "", "host and port"),
    OF(domain, TEXT, "", "domain"),
    OF(key, TEXT, "", "fingerprint of the node's key"),
    OF(pid, I64, "", "process, of a local node"),
    SHERD__FIELD_ENUM(sherd_node_info, state, sherd__node_states, "present state"),
    OF(blas_core, TEXT, "", "BLAS kernels that the node uses"),
    OF(threads, U32, "", "threads that the node computes with"),
    OF(memory, U64, "bytes", "memory budget"),
    OF(gflops, F64, "GFLOP/s", "rate in float64"),
    OF(residue_gflops, F64, "GFLOP/s", "rate for packed residues; 0: as in float64"),
    OF(bytes_out, U64, "bytes", "sent to the node"),
    OF(bytes_in, U64, "bytes", "received from the node"),
    OF(work_out, U64, "bytes", "sent to the node, blocks and tasks only"),
    OF(work_in, U64, "bytes", "received from the node, results only"),
    OF(tasks, U64, "tasks", "answered and accepted"),
    OF(devices, U32, "devices", "number of devices that it computes with"),
    OF(weight, F64, "", "weight= of its line"),
    OF(software, TEXT, "", "name and version"),
    OF(backend, TEXT, "", "what it computes with"),
    OF(latency, F64, "s", "round-trip time of its connection"),
    OF(load_known, BOOL, "", "the node stated the next four"),
    OF(memory_free, U64, "bytes", "memory that nothing takes"),
    OF(uptime, U64, "s", "time since it started"),
    OF(open_tasks, U32, "tasks", "accepted and not answered, of all coordinators"),
    OF(sessions, U32, "", "coordinators that are connected, this one included"),
    OF(error, I32, "", "why it is not up, as a code; 0: it is up"),
    OF(why, TEXT, "", "why it is not up"),
    OF(byte_gops, F64, "Gop/s", "rate for residues of one byte; 0: unknown, or none"),
};
SHERD__FIELDS(sherd_node_info, node_info_fields)

sherd_node_info sherd__cluster_node(sherd_cluster *c, uint32_t i)
{
    assert(i < c->count);
    pthread_mutex_lock(&c->lock);
    sherd__cluster_hand_out(c); /* so that a loss seen in the state has also been logged */
    const pool_node *n = &c->nodes[i];
    sherd_node_info info = n->info;
    bool absent = info.state == SHERD_NODE_LOST || info.state == SHERD_NODE_CONNECTING;
    if (absent) {
        info.error = n->last_err ? n->last_err : SHERD_ETIMEOUT;
        snprintf(info.why, sizeof info.why, "%.*s", (int)sizeof info.why - 1,
                 n->last_text[0] ? n->last_text : "it has not answered");
    }
    pthread_mutex_unlock(&c->lock);
    return info;
}

int sherd_cluster_node_at(sherd_cluster *c, uint32_t i, sherd_node_info *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_node_info", d);
    if (err) return err;
    if (i >= c->count)
        return sherd__fail(d, SHERD_EINVAL, NULL, "there is no node %u: there are %u", i, c->count);
    const sherd_node_info info = sherd__cluster_node(c, i);
    sherd__result_write(out, &info, sizeof info);
    return SHERD_OK;
}
