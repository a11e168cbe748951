/*
 * How the work is divided among the nodes of a cluster: by the weights of their list, otherwise by
 * how fast they answered in earlier jobs and, for nodes elsewhere, by the rates that they declare.
 * A declared or measured speed can only make a node's own part smaller (scheduler/plan/weights.h).
 */
#include <math.h>

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

/* Returns whether the measured speeds make a weight smaller than 1. The lock must be held. */
static bool weights_of_speeds(sherd_cluster *c)
{
    double *speeds = c->scratch, *seen = speeds + c->count, *declared = seen + c->count,
           *room = declared + c->count;
    for (uint32_t i = 0; i < c->count; i++) speeds[i] = c->nodes[i].speed;
    bool any = sherd__weights_of_speeds(speeds, c->count, seen, room);
    /* Nodes on this machine share its cores: what one of them measured at its start, while others
     * started, says nothing of it. */
    for (uint32_t i = 0; i < c->count && !c->simulated; i++)
        speeds[i] = c->nodes[i].info.state == SHERD_NODE_UP ? c->nodes[i].info.gflops : 0;
    if (!c->simulated) {
        any = sherd__weights_of_speeds(speeds, c->count, declared, room) || any;
        for (uint32_t i = 0; i < c->count; i++) seen[i] = fmin(seen[i], declared[i]);
    }
    if (any) sherd__weights_round(seen, c->count, c->speeds);
    return any;
}

void sherd__cluster_weights(sherd_cluster *c, const uint32_t **weights, const uint32_t **speeds)
{
    bool given = any_weight(c);
    for (uint32_t i = 0; i < c->count && given; i++) c->scratch[i] = c->nodes[i].peer.weight;
    if (given) sherd__weights_round(c->scratch, c->count, c->weights);
    *weights = given ? c->weights : NULL;
    *speeds = weights_of_speeds(c) ? c->speeds : NULL;
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

void sherd__cluster_note_paces(sherd_cluster *c, const sherd__job_pace *paces)
{
    double longest = 0;
    uint64_t bytes = 0;
    uint32_t known = 0;
    name_pace(c, paces);
    for (uint32_t i = 0; i < c->count; i++) {
        longest = fmax(longest, paces[i].seconds);
        bytes += paces[i].bytes;
        if (paces[i].bytes)
            c->scratch[known++] = (double)paces[i].bytes / fmax(paces[i].seconds, ANSWER_S);
    }
    if (known < 2 || longest < JOB_S || bytes < (uint64_t)JOB_BYTES * known) return;
    double median = sherd__median(c->scratch, known, true);
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < c->count; i++) {
        double *speed = &c->nodes[i].speed;
        if (paces[i].bytes)
            *speed = (double)paces[i].bytes / fmax(paces[i].seconds, ANSWER_S) / median;
        else *speed = sqrt(*speed); /* it had no part: it is tried again after some jobs */
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
