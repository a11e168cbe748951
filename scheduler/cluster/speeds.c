/*
 * How the work is divided among the nodes of a cluster: by the weights of their list, otherwise by
 * how fast they did the last product of the same kind. Before the first one, how fast they answered
 * other ones counts, and the rates that they declare; these can only make a node's own part smaller
 * (scheduler/plan/weights.h). So can products whose check does not find a node that answers without
 * computing.
 *
 * The speed in a kind of work is multiplications by time. Bytes would not do: each node is sent all
 * of B under `plain`, and returns as much as C under `permute`, however small its part is. Where
 * each part is in proportion to (part / time) of the product before, the times of all nodes become
 * equal, also if a part has a cost that does not depend on its size.
 */
#include <math.h>
#include <string.h>

#include "core/diag.h"
#include "core/median.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/cluster/state.h"
#include "scheduler/plan/weights.h"

#define JOB_S 0.1        /* shorter jobs say little of the nodes' speeds, ... */
#define JOB_BYTES 65536u /* ... and so do those that move fewer bytes at each node */
#define ANSWER_S 1e-3    /* resolution of the clock */

static bool any_weight(const sherd_cluster *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->nodes[i].peer.weight != 1) return true;
    return false;
}

/* Returns the rate that the node declares for this kind of work; 0: unknown, or it says nothing.
 * Processors of this machine are shared: what a node measured at its start, while others started,
 * says nothing of it. */
static double declared(const sherd_cluster *c, const sherd_node_info *n, sherd__work_kind kind)
{
    bool shares = c->simulated && !strcmp(n->backend, "cpu");
    if (shares || n->state != SHERD_NODE_UP) return 0;
    if (kind == SHERD__WORK_BYTES) return n->byte_gops;
    return kind == SHERD__WORK_RESIDUES && n->residue_gflops > 0 ? n->residue_gflops : n->gflops;
}

/* Returns the weights that the speeds in this kind of work suggest; NULL: all equal. The lock must
 * be held. */
static const uint32_t *weights_of(sherd_cluster *c, sherd__work_kind kind)
{
    double *out = c->scratch, *other = out + c->count, *did = other + c->count,
           *room = did + c->count;
    uint32_t *to = c->speeds + (size_t)kind * c->count;
    for (uint32_t i = 0; i < c->count; i++) c->compared[i] = c->nodes[i].speed;
    sherd__weights_of_speeds(c->compared, c->count, out, room);
    for (uint32_t i = 0; i < c->count; i++)
        c->compared[i] = (sherd__speed){ .rate = declared(c, &c->nodes[i].info, kind) };
    sherd__weights_of_speeds(c->compared, c->count, other, room);
    uint32_t known = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        c->compared[i] = c->nodes[i].speeds[kind];
        known += c->compared[i].rate > 0;
    }
    sherd__weights_of_speeds(c->compared, c->count, did, room);
    const bool most = 2 * known > c->count; /* otherwise they were not compared */
    for (uint32_t i = 0; i < c->count; i++)
        out[i] = most && c->compared[i].rate > 0 ? did[i] : fmin(out[i], other[i]);
    if (!sherd__weights_differ(out, c->count)) return NULL;
    sherd__weights_round(out, c->count, to);
    return to;
}

void sherd__cluster_weights(sherd_cluster *c, sherd__nodes *out)
{
    bool given = any_weight(c);
    for (uint32_t i = 0; i < c->count && given; i++) c->scratch[i] = c->nodes[i].peer.weight;
    if (given) sherd__weights_round(c->scratch, c->count, c->weights);
    out->weights = given ? c->weights : NULL;
    pthread_mutex_lock(&c->lock);
    for (int k = 0; k < SHERD__WORK_KINDS; k++) out->speeds[k] = weights_of(c, (sherd__work_kind)k);
    pthread_mutex_unlock(&c->lock);
}

void sherd__cluster_weights_unused(sherd_cluster *c, const char *why)
{
    if (c->weights_reported || !any_weight(c)) return;
    c->weights_reported = true;
    uint32_t first = 0;
    while (c->nodes[first].peer.weight == 1) first++;
    sherd__cluster_say(c, SHERD_LOG_WARN, "weight= of %s has no effect: %s", c->nodes[first].label,
                       why);
}

/* In a series of products, as of a training, each may be too short to show who delays it. */
static void name_pace(sherd_cluster *c, const sherd__job_pace *paces)
{
    double median;
    c->jobs++;
    for (uint32_t i = 0; i < c->count; i++) {
        c->nodes[i].owed_s += paces[i].seconds;
        c->scratch[i] = c->nodes[i].owed_s;
    }
    uint32_t slowest = sherd__weights_slowest(c->scratch, c->count, c->jobs, c->scratch + c->count,
                                              &median);
    if (slowest == UINT32_MAX || c->nodes[slowest].pace_named) return;
    pool_node *worst = &c->nodes[slowest];
    worst->pace_named = true;
    sherd__cluster_say(c, SHERD_LOG_WARN,
                       "%s is slow: its answers to %u products took %.1f s, those of the "
                       "others %.1f s (median)",
                       worst->label, c->jobs, worst->owed_s, median);
}

/* Divides the rates of nodes that had a part, above 0, by their median. Returns how many have. */
static uint32_t compare(double *rates, uint32_t len, double *room)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < len; i++)
        if (rates[i] > 0) room[known++] = rates[i];
    double median = sherd__median(room, known, false);
    for (uint32_t i = 0; i < len && known; i++) rates[i] /= median;
    return known;
}

void sherd__cluster_note_paces(sherd_cluster *c, const sherd__job_pace *paces,
                               sherd__work_kind kind, bool verified)
{
    double *moved = c->scratch, *did = moved + c->count, *room = did + c->count, longest = 0;
    uint64_t bytes = 0;
    name_pace(c, paces);
    for (uint32_t i = 0; i < c->count; i++) {
        const sherd__job_pace *p = &paces[i];
        longest = fmax(longest, p->seconds);
        bytes += p->bytes;
        moved[i] = (double)p->bytes / fmax(p->seconds, ANSWER_S);
        did[i] = p->work / fmax(p->seconds + p->missed, ANSWER_S);
    }
    uint32_t known = compare(moved, c->count, room);
    if (known < 2 || longest < JOB_S || bytes < (uint64_t)JOB_BYTES * known) return;
    bool judged = !c->probing && compare(did, c->count, room) >= 2;
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < c->count; i++) {
        pool_node *n = &c->nodes[i];
        sherd__speed_learn(&n->speed, moved[i], false);
        if (judged) sherd__speed_learn(&n->speeds[kind], did[i], verified);
    }
    pthread_mutex_unlock(&c->lock);
}

int sherd__cluster_measure_speeds(sherd_cluster *c, const sherd_hooks *hooks, uint32_t timeout_ms,
                                  sherd_diag *d)
{
    bool known = c->simulated || c->record || c->count < 2 || any_weight(c) || c->speeds_measured;
    sherd_diag own = { 0 };
    if (known) return SHERD_OK;
    c->speeds_measured = true;
    int err = sherd__rates_glance(c, hooks, timeout_ms, &own);
    /* The product itself reports what else is wrong. */
    if (err != SHERD_EINTERRUPTED && err != SHERD_ETIMEOUT) return SHERD_OK;
    return sherd__fail(d, err, own.hint, "%s", own.message);
}
