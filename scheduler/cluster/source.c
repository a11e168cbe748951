/*
 * What a scheme needs of its nodes is known before one is started: their number, and for private
 * schemes their domains. Two nodes of one host may still have different domains in the file;
 * opening finds that, since it needs the hosts' addresses (domains.c).
 */
#include "scheduler/cluster/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/diag.h"
#include "core/options.h"
#include "scheduler/cluster/running.h"
#include "scheduler/plan/prepare.h"

/* ---- where the nodes come from --------------------------------------------------------------- */

static int check_source(const sherd_cluster_options *o, sherd_diag *d)
{
    const bool devices = o->backend || o->devices || o->devices_each;
    if (devices && o->local_nodes == 0)
        return sherd__fail(d, SHERD_EINVAL,
                           "start local nodes with -n N, or start the nodes on these devices",
                           "backend and devices are those of local nodes, and none are started");
    if ((o->local_nodes > 0) + !!o->nodes_file + !!o->nodes + o->running == 1) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "start local nodes with -n N, or name nodes with --nodes",
                       "no nodes are given");
}

static int read_work(sherd__node_source *s, sherd_diag *d)
{
    s->least = 1;
    if (!s->o.work) return SHERD_OK;
    int err = sherd__options_read(&s->work, sizeof s->work, s->o.work, "sherd_product_options", d);
    if (err) return err;
    s->o.work = &s->work;
    if (s->work.colluding == 0) s->work.colluding = 1;
    s->least = sherd__prepare_least(&s->work);
    /* Nodes take over the work of lost ones, as far as the scheme allows. */
    if (s->o.nodes_min == 0)
        s->o.nodes_min = s->least == 1 ? 1 : (uint32_t)(s->least - s->work.spare);
    if (s->o.spare == 0 && s->least > 1) s->o.spare = s->work.spare;
    return SHERD_OK;
}

static bool is_coordinator(const sherd__peer *p)
{
    return strcmp(p->role, "coordinator") == 0;
}

/* Leaves out coordinators. */
static int keep_nodes(sherd__node_source *s, sherd_diag *d)
{
    size_t n = 0;
    for (size_t i = 0; i < s->peers.len; i++)
        if (!is_coordinator(&s->peers.list[i])) s->peers.list[n++] = s->peers.list[i];
    s->peers.len = n;
    if (n > 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EFORMAT, "paste the lines that nodes print when they start",
                       "%s: contains no node", s->where);
}

static int read_list(sherd__node_source *s, sherd_diag *d)
{
    sherd__running running;
    sherd_cluster_options *o = &s->o;
    const char *file = o->nodes_file;
    int err = SHERD_OK;
    if (o->running) {
        err = sherd__running_find(&running, o->running_folder, d);
        file = running.nodes;
        o->same_host_domains = true;
    }
    snprintf(s->where, sizeof s->where, "%s", o->nodes ? "list of nodes" : err ? "" : file);
    if (!err)
        err = o->nodes ? sherd__peers_parse(&s->peers, o->nodes, strlen(o->nodes), s->where, d)
                       : sherd__peers_load(&s->peers, file, d);
    return err ? err : keep_nodes(s, d);
}

/* ---- whether they are enough ----------------------------------------------------------------- */

static int too_few_local(const sherd__node_source *s, sherd_diag *d)
{
    char hint[80];
    snprintf(hint, sizeof hint, "-n %" PRIu64 "%s", s->least,
             s->work.colluding > 1 || s->work.spare > 0 ? ", or lower --colluding or --spare" : "");
    return sherd__fail(d, SHERD_EFEWNODES, hint,
                       "-n %" PRIu32 ": --scheme %s with --colluding %" PRIu32
                       " and --spare %" PRIu32 " needs %" PRIu64 " or more",
                       s->o.local_nodes, sherd_scheme_get(s->work.scheme)->name, s->work.colluding,
                       s->work.spare, s->least);
}

/* Returns the first node of the domain of node i. */
static const sherd__peer *first_of_domain(const sherd__peers *peers, size_t i)
{
    size_t j = 0;
    while (strcmp(peers->list[j].domain, peers->list[i].domain) != 0) j++;
    return &peers->list[j];
}

/* Checks that there are enough domains. */
static int check_domains(const sherd__node_source *s, sherd_diag *d)
{
    const sherd__peer *one = NULL, *other = NULL;
    uint64_t domains = 0;
    for (size_t i = 0; i < s->peers.len; i++) {
        const sherd__peer *p = &s->peers.list[i], *first = first_of_domain(&s->peers, i);
        domains += first == p;
        if (first != p && !one) one = first, other = p;
    }
    if (domains >= s->least || !one) return SHERD_OK;
    return sherd__fail(d, SHERD_EFEWNODES,
                       "list nodes of other operators, or lower --colluding or --spare",
                       "%s:%" PRIu32 ": domain=%s is that of line %" PRIu32
                       ", too: %zu nodes of %" PRIu64 " domain%s are listed, and %" PRIu64
                       " domains or more are needed",
                       s->where, other->line, other->domain, one->line, s->peers.len, domains,
                       domains == 1 ? "" : "s", s->least);
}

/* The nodes of `sherd cluster up` are not in a list that the user writes. */
static int too_few_running(const sherd__node_source *s, sherd_diag *d)
{
    char hint[120];
    snprintf(hint, sizeof hint,
             "sherd cluster down, then sherd cluster up -n %" PRIu64
             ", or lower --colluding or --spare",
             s->least);
    return sherd__fail(d, SHERD_EFEWNODES, hint,
                       "%zu local node%s up: --scheme %s with --colluding %" PRIu32
                       " and --spare %" PRIu32 " needs %" PRIu64 " or more",
                       s->peers.len, s->peers.len == 1 ? " is" : "s are",
                       sherd_scheme_get(s->work.scheme)->name, s->work.colluding, s->work.spare,
                       s->least);
}

static int check_list(const sherd__node_source *s, sherd_diag *d)
{
    for (size_t i = 0; i < s->peers.len; i++) {
        const sherd__peer *p = &s->peers.list[i];
        if (!p->domain[0])
            return sherd__fail(d, SHERD_EFORMAT,
                               "add the name of its operator to every node's line, as domain=NAME",
                               "%s:%" PRIu32 ": %s:%u has no domain= in the node file: a private "
                               "scheme must know which nodes are one adversary",
                               s->where, p->line, p->host, p->port);
    }
    if (s->peers.len >= s->least) return check_domains(s, d);
    if (s->o.running) return too_few_running(s, d);
    return sherd__fail(d, SHERD_EFEWNODES, "list more nodes, or lower --colluding or --spare",
                       "%s lists %zu node%s, and %" PRIu64 " or more are needed", s->where,
                       s->peers.len, s->peers.len == 1 ? "" : "s", s->least);
}

static int check_work(const sherd__node_source *s, sherd_diag *d)
{
    if (s->least == 1) return SHERD_OK; /* one node is enough for the scheme */
    if (s->o.local_nodes == 0) return check_list(s, d);
    return s->o.local_nodes >= s->least ? SHERD_OK : too_few_local(s, d);
}

/* ---- reading them ---------------------------------------------------------------------------- */

int sherd__node_source_options(sherd__node_source *out, const sherd_cluster_options *opt,
                               sherd_diag *d)
{
    *out = (sherd__node_source){ .least = 1 };
    int err = sherd__options_read(&out->o, sizeof out->o, opt, "sherd_cluster_options", d);
    if (!err) err = check_source(&out->o, d);
    return err ? err : read_work(out, d);
}

int sherd__node_source_key(const sherd__node_source *s, sherd_identity **out, sherd_diag *d)
{
    sherd__running running;
    const sherd_cluster_options *o = &s->o;
    *out = NULL;
    if (o->local_nodes) return SHERD_OK;
    if (o->running) {
        int err = sherd__running_find(&running, o->running_folder, d);
        return err ? err : sherd_identity_load(out, running.key, d);
    }
    if (o->identity) {
        int err = sherd__identity_share(out, o->identity);
        return err ? sherd__fail_memory(d, "the identity") : SHERD_OK;
    }
    if (o->key_file) return sherd_identity_load(out, o->key_file, d);
    return sherd__fail(d, SHERD_EINVAL, "make one with 'sherd keygen' and give it with --key",
                       "the nodes of %s serve only keys that they allow, and no key is given",
                       o->nodes ? "the list" : o->nodes_file);
}

int sherd__node_source_nodes(sherd__node_source *s, sherd_diag *d)
{
    int err = s->o.local_nodes ? SHERD_OK : read_list(s, d);
    return err ? err : check_work(s, d);
}

void sherd__node_source_fini(sherd__node_source *s)
{
    sherd__peers_fini(&s->peers);
}

int sherd_cluster_check(uint32_t *nodes, bool *loopback, const sherd_cluster_options *opt,
                        sherd_diag *d)
{
    sherd__node_source s;
    bool here = true;
    int err = sherd__node_source_options(&s, opt, d);
    if (!err && (nodes || loopback || s.least > 1)) err = sherd__node_source_nodes(&s, d);
    for (size_t i = 0; i < s.peers.len; i++) here = here && sherd__peer_loopback(&s.peers.list[i]);
    if (!err && nodes) *nodes = s.o.local_nodes ? s.o.local_nodes : (uint32_t)s.peers.len;
    if (!err && loopback) *loopback = here;
    sherd__node_source_fini(&s);
    return err;
}
