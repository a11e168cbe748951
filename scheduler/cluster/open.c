/*
 * Opens a cluster from its options: starts local nodes or takes those of a list (source.c), numbers
 * domains, starts threads, and waits until every node is up or has failed. end.c closes it.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/signals.h"
#include "scheduler/cluster/domains.h"
#include "scheduler/cluster/source.h"
#include "scheduler/cluster/state.h"
#include "scheduler/cluster/wait_policy.h"
#include "wire/loop.h"

#define CONNECT_MS 10000u
/* Extra time for a link to report why it timed out: its thread may have to wait for a processor. */
#define WORD_S 2.0
#define EXECUTOR_QUEUE 65536u

/* --- opening --------------------------------------------------------------------------------- */

static uint32_t connect_limit_ms(const sherd_cluster *c)
{
    return c->o.connect_timeout_ms ? c->o.connect_timeout_ms : CONNECT_MS;
}

static int take_local(sherd_cluster *c, sherd_diag *d)
{
    sherd__launch_options lo = {
        .nodes = c->o.local_nodes,
        .program = c->o.program,
        .verb = c->o.program_verb,
        .memory = c->o.node_memory,
        .unbound = c->o.unbound,
        .timeout_ms = c->o.timeout_ms,
        .least = c->o.nodes_min,
        .spare = c->o.spare,
        .hooks = c->o.hooks,
        .on = { .backend = c->o.backend,
                .devices = c->o.devices,
                .each = c->o.devices_each,
                .opencl_library = c->o.opencl_library,
                .cuda_library = c->o.cuda_library },
    };
    int err = sherd_identity_new(&c->identity, d);
    if (err) return err;
    lo.allow = *sherd__identity_fingerprint(c->identity);
    err = sherd__launch_start(&c->launch, &lo, d);
    if (err) return err;
    c->simulated = true;
    c->count = c->o.local_nodes;
    c->nodes = sherd__calloc(c->count, sizeof *c->nodes);
    if (!c->nodes) return sherd__fail_memory(d, "%u nodes", c->count);
    for (uint32_t i = 0; i < c->count; i++) {
        const sherd__launched *l = sherd__launch_node(c->launch, i);
        c->nodes[i].peer = l->peer;
        c->nodes[i].pid = l->pid;
        c->nodes[i].absent = l->absent[0];
        c->nodes[i].last_err = l->absent[0] ? SHERD_EFEWNODES : SHERD_OK;
        snprintf(c->nodes[i].last_text, sizeof c->nodes[i].last_text, "%s", l->absent);
        if (!c->nodes[i].peer.domain[0])
            snprintf(c->nodes[i].peer.domain, sizeof c->nodes[i].peer.domain, "simulated-%u",
                     i + 1);
    }
    return SHERD_OK;
}

static int take_list(sherd_cluster *c, const sherd__node_source *from, sherd_diag *d)
{
    bool here = true;
    c->nodes = sherd__calloc(from->peers.len, sizeof *c->nodes);
    if (!c->nodes) return sherd__fail_memory(d, "%zu nodes", from->peers.len);
    for (size_t i = 0; i < from->peers.len; i++) {
        const sherd__peer *p = &from->peers.list[i];
        if (!p->has_key || p->port == 0 || strcmp(p->host, "*") == 0)
            return sherd__fail(d, SHERD_EFORMAT,
                               "paste the line that the node prints when it starts",
                               "%s: node %zu has no %s", from->where, i + 1,
                               p->has_key ? "address" : "key");
        c->nodes[c->count++].peer = *p;
        here = here && sherd__peer_loopback(p);
    }
    c->simulated = here; /* sherd_local_start, or nodes started by hand */
    return SHERD_OK;
}

/* Waits for the addresses of hosts, no longer than for connections. A host without addresses is
 * compared by name only, and its node is unlikely to be reached. */
static int wait_for_names(sherd_cluster *c, sherd__names *names, sherd_diag *d)
{
    double until = sherd__clock_s() + connect_limit_ms(c) * 1e-3;
    uint32_t missing;
    bool over = false;
    pthread_mutex_lock(&c->lock);
    while ((missing = sherd__names_missing(names)) < c->count && !over && !c->stop_wanted &&
           sherd__clock_s() < until) {
        sherd__cluster_wait(c, 5);
        over = c->open_until > 0 && sherd__clock_s() >= c->open_until;
    }
    bool stop = c->stop_wanted;
    pthread_mutex_unlock(&c->lock);
    if (stop) return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
    if (missing < c->count && over)
        return sherd__fail(d, SHERD_ETIMEOUT,
                           "write its address instead, or allow more time with --timeout",
                           "the time limit expired, and the name %s is not resolved",
                           c->nodes[missing].peer.host);
    return SHERD_OK;
}

static int number_domains(sherd_cluster *c, sherd_diag *d)
{
    uint32_t unnamed = 0;
    sherd__domains found = { .file = c->o.nodes_file };
    const uint32_t *split = found.split;
    sherd__names *names = NULL;
    sherd__peer **peers = sherd__calloc(c->count, sizeof *peers);
    c->domain_of = sherd__calloc(c->count, sizeof *c->domain_of);
    c->budgets = sherd__calloc(c->count, sizeof *c->budgets);
    c->seeds = sherd__calloc(c->count, sizeof *c->seeds);
    c->rooms = sherd__calloc(c->count, sizeof *c->rooms);
    c->weights = sherd__calloc(c->count, sizeof *c->weights);
    c->speeds = sherd__calloc(c->count, SHERD__WORK_KINDS * sizeof *c->speeds);
    c->compared = sherd__calloc(c->count, sizeof *c->compared);
    c->scratch = sherd__calloc(c->count, 6 * sizeof *c->scratch);
    c->each = sherd__calloc(c->count, sizeof *c->each);
    bool fits = peers && c->domain_of && c->budgets && c->seeds && c->rooms;
    fits = fits && c->weights && c->speeds && c->compared && c->each;
    int err = fits && c->scratch ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t i = 0; !err && i < c->count; i++) peers[i] = &c->nodes[i].peer;
    while (!err && unnamed < c->count && peers[unnamed]->domain[0]) unnamed++;
    if (!err) err = sherd__names_start(&names, peers, c->count);
    if (!err) err = wait_for_names(c, names, d);
    found.of = c->domain_of;
    if (!err) err = sherd__domains_number(&found, peers, c->count, sherd__names_addresses, names);
    c->domains = found.len;
    if (!err && !c->o.local_nodes)
        (void)sherd__domains_fault(&found, peers, c->count, unnamed, c->o.same_host_domains,
                                   &c->domain_fault);
    /* Not reported if all nodes are on loopback: then the cluster is called simulated in any case;
     * nor if the work will be refused for it. */
    bool refused = c->domain_fault.text[0] && c->o.work && sherd__prepare_least(c->o.work) > 1;
    if (!err && split[0] != split[1] && !c->simulated && !refused)
        sherd__cluster_say(c, SHERD_LOG_WARN,
                           "%s:%u and %s:%u are one host, which the node file names as two domains "
                           "(%s, %s): its operator sees the data of both",
                           peers[split[0]]->host, peers[split[0]]->port, peers[split[1]]->host,
                           peers[split[1]]->port, peers[split[0]]->domain, peers[split[1]]->domain);
    sherd__names_free(names);
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
        if (!n->absent)
            snprintf(n->info.address, sizeof n->info.address, "%s:%u", n->peer.host, n->peer.port);
        snprintf(n->label, sizeof n->label, n->absent ? "%s" : "%s (%s)", n->peer.name,
                 n->info.address);
        n->info.pid = n->pid;
        n->info.weight = n->peer.weight;
        if (n->absent) n->info.state = SHERD_NODE_LOST;
        snprintf(n->info.name, sizeof n->info.name, "%s", n->peer.name);
        snprintf(n->info.domain, sizeof n->info.domain, "%s", n->peer.domain);
        sherd__fingerprint_text(&n->peer.key, n->info.key);
        if (!c->record) continue;
        int err = sherd__record_peer_add(&n->record, c->record, n->peer.name, d);
        if (!err) err = sherd__record_peer_about(n->record, n->info.address);
        if (!err) err = sherd__record_peer_key(n->record, n->info.key);
        if (!err) err = sherd__record_peer_domain(n->record, n->domain, n->info.domain);
        if (err) return err;
    }
    return SHERD_OK;
}

static int start_loop(sherd_cluster *c, sherd_diag *d)
{
    int err = sherd__loop_init(&c->loop, d);
    if (err) return err;
    c->loop_made = true;
    uv_async_init(&c->loop, &c->wake, sherd__cluster_on_wake);
    uv_timer_init(&c->loop, &c->tick);
    c->wake.data = c->tick.data = c;
    uv_timer_start(&c->tick, sherd__cluster_on_tick, CLUSTER_TICK_MS, CLUSTER_TICK_MS);
    /* Threads started here inherit this signal mask. SIGPIPE of a broken connection stays blocked
     * in the thread that wrote. If another process truncates a mapped operand, SIGBUS is raised in
     * the thread that accesses it. */
    sigset_t before;
    sherd__signals_hold(&before);
    err = sherd__buffers_new(&c->answers);
    if (!err) err = sherd__executor_new(&c->executor, EXECUTOR_QUEUE, sherd__cluster_wake, c);
    bool runs = !err && uv_thread_create(&c->thread, sherd__cluster_loop, c) == 0;
    sherd__signals_restore(&before);
    if (err) return sherd__fail(d, err, NULL, "cannot start the compute thread");
    if (!runs) return sherd__fail(d, SHERD_ENOMEM, NULL, "cannot start the loop thread");
    c->thread_runs = true;
    return SHERD_OK;
}

/* Returns true if the node could be reached but refused us, has another key than expected, or does
 * not speak the protocol. If too few nodes are up, such a node is reported first. */
static bool refused_us(const pool_node *n)
{
    return n->info.state == SHERD_NODE_LOST && n->last_err != SHERD_ESILENT &&
           sherd_err_class(n->last_err) == SHERD_BLAME_PEER;
}

/* State of the nodes while waiting for them. */
typedef struct standing {
    double began, until;                 /* until: when waiting ends */
    uint32_t up, open, domains, missing; /* missing: the node that is not up to report */
    bool away, stop, enough, over;
    int err; /* of that node */
    char why[SHERD__TEXT_MAX];
} standing;

/* Returns true if the node may still connect. */
static bool may_come(const sherd_cluster *c, uint32_t i)
{
    return c->nodes[i].info.state == SHERD_NODE_CONNECTING &&
           !(c->launch && sherd__launch_stopped(c->launch, i));
}

/* Returns whether one of the first `nodes` nodes is in that domain and up. */
static bool seen_up(const sherd_cluster *c, uint32_t nodes, uint32_t domain)
{
    for (uint32_t i = 0; i < nodes; i++)
        if (c->domain_of[i] == domain && c->nodes[i].info.state == SHERD_NODE_UP) return true;
    return false;
}

/* Counts the nodes by state. The lock must be held. */
static void look_at_nodes(const sherd_cluster *c, standing *s)
{
    s->up = s->open = s->domains = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        sherd_node_state state = c->nodes[i].info.state;
        s->up += state == SHERD_NODE_UP;
        s->domains += state == SHERD_NODE_UP && !seen_up(c, i, c->domain_of[i]);
        s->open += may_come(c, i);
        if (state != SHERD_NODE_UP && !s->away) s->missing = i;
        s->away = s->away || refused_us(&c->nodes[i]);
    }
    s->stop = c->stop_wanted;
}

/* Shortens the wait: as many domains are up as the work needs. */
static void hurry(const sherd_cluster *c, standing *s, double now)
{
    int64_t end = c->open_until > 0 ? (int64_t)(c->open_until * 1e3) : INT64_MAX;
    double until = (double)sherd__wait_policy_until((int64_t)(s->began * 1e3), (int64_t)(now * 1e3),
                                                    end) *
                   1e-3;
    if (until < s->until) s->until = until;
    s->enough = true;
}

/* Writes why node i is not up. The lock must be held. */
static void tell_missing(const sherd_cluster *c, uint32_t i, double waited, char *why, size_t size)
{
    const pool_node *n = &c->nodes[i];
    if (n->last_text[0]) snprintf(why, size, "%s", n->last_text);
    else if (c->launch && sherd__launch_stopped(c->launch, i))
        snprintf(why, size, "its process, %ld, is stopped", (long)n->pid);
    else snprintf(why, size, "it has not answered within %.3g s", waited);
}

/* Fails with the reason of the missing node. A link's message ends in a hint after a semicolon; a
 * semicolon in the message of a local node that never listened is followed by its own output. */
static int fail_missing(const sherd_cluster *c, standing *s, int err, sherd_diag *d)
{
    const char *hint = c->launch ? "find out what stops or kills it, and start again"
                                 : "check that it runs and that its allow-list has our key";
    char *mark = NULL;
    if (s->away) hint = "check that it is a node of this version, with the named key";
    for (char *p = s->why; !c->nodes[s->missing].absent && (p = strstr(p, "; ")); p += 2) mark = p;
    if (mark) {
        *mark = '\0';
        hint = mark + 2;
    }
    return sherd__fail(d, err, hint, "%u of %u nodes are up; %s: %s", s->up, c->count,
                       c->nodes[s->missing].label, s->why);
}

/* Logs a line for each node that the work begins without. */
static void say_missing(sherd_cluster *c, const standing *s)
{
    char why[SHERD__TEXT_MAX];
    double waited = sherd__clock_s() - s->began;
    for (uint32_t i = 0; i < c->count; i++) {
        pthread_mutex_lock(&c->lock);
        bool up = c->nodes[i].info.state == SHERD_NODE_UP;
        tell_missing(c, i, waited, why, sizeof why);
        pthread_mutex_unlock(&c->lock);
        if (!up)
            sherd__cluster_say(c, SHERD_LOG_WARN, "continuing with %u of %u nodes; %s: %s", s->up,
                               c->count, c->nodes[i].label, why);
    }
}

/* Returns whether the time is over. A link with the same time limit reports why its node is
 * missing, so it is given a little longer, unless the reason is not needed. The lock must be
 * held. */
static bool late(const sherd_cluster *c, const standing *s, double now)
{
    bool has_reason = s->enough || c->nodes[s->missing].last_err;
    return now >= s->until + (has_reason ? 0 : WORD_S);
}

/* Waits until all nodes are up or have failed, enough nodes are up, or the time is over. */
static void wait_until(sherd_cluster *c, standing *s)
{
    double now;
    s->began = sherd__clock_s();
    s->until = s->began + connect_limit_ms(c) * 1e-3;
    pthread_mutex_lock(&c->lock);
    do {
        sherd__cluster_wait(c, 20);
        look_at_nodes(c, s);
        now = sherd__clock_s();
        if (!s->enough && c->o.spare && !c->o.look_only && s->domains + c->o.spare >= c->domains)
            hurry(c, s, now);
        s->over = c->open_until > 0 && now >= c->open_until;
    } while (s->open && !s->over && !late(c, s, now) && !s->stop);
    s->err = c->nodes[s->missing].last_err;
    tell_missing(c, s->missing, now - s->began, s->why, sizeof s->why);
    pthread_mutex_unlock(&c->lock);
}

static int wait_for_nodes(sherd_cluster *c, sherd_diag *d)
{
    uint32_t want = c->o.nodes_min ? c->o.nodes_min : c->count;
    standing s = { .up = 0 };
    wait_until(c, &s);
    if (s.stop) return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
    if (c->o.look_only) return SHERD_OK;
    if (s.open && s.over && !(s.away && s.up < want))
        return sherd__fail(d, SHERD_ETIMEOUT, "allow more time with --timeout",
                           "the time limit expired; %u of %u nodes are up, %s is not", s.up,
                           c->count, c->nodes[s.missing].label);
    if (s.up < want)
        return fail_missing(c, &s,
                            s.err && (s.away || s.up == 0 || !c->o.nodes_min) ? s.err
                                                                              : SHERD_EFEWNODES,
                            d);
    say_missing(c, &s);
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

static int open_from(sherd_cluster *c, sherd__node_source *from, sherd_diag *d)
{
    double began = sherd__clock_s();
    int err = sherd__node_source_key(from, &c->identity, d);
    if (!err) err = sherd__node_source_nodes(from, d);
    c->o = from->o;
    c->hooks = c->o.hooks;
    c->entropy = sherd__entropy_os();
    if (c->o.timeout_ms) c->open_until = began + c->o.timeout_ms * 1e-3;
    if (!err && c->o.record_dir)
        err = sherd__record_new(&c->record, c->o.record_dir, "coordinator", d);
    if (!err) err = c->o.local_nodes ? take_local(c, d) : take_list(c, from, d);
    if (!err) err = number_domains(c, d);
    if (!err) err = describe_nodes(c, d);
    if (!err) err = start_loop(c, d);
    return err ? err : wait_for_nodes(c, d);
}

/* The caller may free what these members refer to once the cluster is open. */
static void forget_sources(sherd_cluster_options *o)
{
    o->program = o->program_verb = o->nodes_file = o->nodes = o->key_file = NULL;
    o->running_folder = o->record_dir = NULL;
    o->backend = o->devices = o->opencl_library = o->cuda_library = NULL;
    o->identity = NULL;
    o->work = NULL;
}

int sherd_cluster_open(sherd_cluster **out, const sherd_cluster_options *opt, sherd_diag *d)
{
    sherd__node_source from;
    *out = NULL;
    int err = sherd__node_source_options(&from, opt, d);
    sherd_cluster *c = err ? NULL : sherd__calloc(1, sizeof *c);
    if (!err && !c) err = sherd__fail_memory(d, "a cluster");
    if (!err) {
        init_lock(c);
        err = open_from(c, &from, d);
        forget_sources(&c->o);
    }
    sherd__node_source_fini(&from);
    if (err) {
        sherd_cluster_close(c);
        return sherd__fail_to(d, err, "open the cluster");
    }
    *out = c;
    return SHERD_OK;
}
