/* Times of parts contain what does not depend on the number of shards (weights, gradients, the
 * link). It is spread over the shards: a node behind a slow link looks slower, the fewer it has,
 * and finally gets none, which is right, because its part then costs the step more than it
 * saves. Times are those after which answers arrive. Gradients are not checked, so a node that
 * answers without computing looks fast: however fast it looks, it counts as at most four times as
 * fast as the median, as in products (scheduler/plan/weights.h). */
#include "scheduler/train/divide.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/median.h"
#include "scheduler/plan/weights.h"

#define KEPT 0.7          /* weight of the old value in a moving average */
#define OUTLIER 2.0       /* a new value counts as at most so many times the average */
#define RESOLUTION_S 1e-3 /* of the clock: a shorter time is not known to be shorter */
#define SAMPLES 6u        /* parts of a node before its time is used */
#define FORGIVEN 0.98     /* of the time of a node without shards, in each step */
#define NODES_MAX 256u    /* more are given equal parts */

void sherd__divide_took(sherd__divide_node *n, double seconds, uint32_t shards)
{
    double each = fmax(seconds, RESOLUTION_S) / shards;
    if (n->samples < SAMPLES) n->samples++;
    if (n->samples == 1) return;
    if (n->samples == 2) n->shard_s = each;
    n->shard_s = KEPT * n->shard_s + (1 - KEPT) * fmin(each, OUTLIER * n->shard_s);
}

static bool weighted(sherd__divide_node *const *nodes, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        if (nodes[i]->weight != 0 && nodes[i]->weight != 1) return true;
    return false;
}

static bool measured(sherd__divide_node *const *nodes, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        if (nodes[i]->samples < SAMPLES) return false;
    return true;
}

/* Writes the time that each node counts as taking for a shard. Of two middle times the longer one
 * is the median: what half of the nodes pretend does not shorten it. */
static void find_times(sherd__divide_node *const *nodes, uint32_t len, bool by_weight, double *each)
{
    for (uint32_t i = 0; i < len; i++)
        if (!by_weight) each[i] = nodes[i]->shard_s;
        else each[i] = nodes[i]->weight > 0 ? 1 / nodes[i]->weight : 1;
    if (by_weight) return;
    double room[NODES_MAX];
    memcpy(room, each, len * sizeof *room);
    double least = sherd__median(room, len, true) / SHERD__WEIGHTS_FASTER;
    for (uint32_t i = 0; i < len; i++) each[i] = fmax(each[i], least);
}

/* Returns the time of a step in the present division. */
static double step_s(sherd__divide_node *const *nodes, uint32_t len, const double *each)
{
    double most = 0;
    for (uint32_t i = 0; i < len; i++) most = fmax(most, nodes[i]->shards * each[i]);
    return most;
}

static bool divide_equally(sherd__divide_node *const *nodes, uint32_t len, uint32_t shards)
{
    uint32_t parts = len < shards ? len : shards;
    bool other = false;
    for (uint32_t i = 0; i < len; i++) {
        uint32_t from = i < parts ? (uint32_t)((uint64_t)shards * i / parts) : shards;
        uint32_t to = i < parts ? (uint32_t)((uint64_t)shards * (i + 1) / parts) : shards;
        other = other || nodes[i]->shards != to - from;
        nodes[i]->shards = to - from;
    }
    return other;
}

/* Returns the node that would have one more of its shards done first, if node i has counts[i]. */
static uint32_t first_done(const double *each, uint32_t len, const uint32_t *counts)
{
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < len; i++) {
        double s = (counts[i] + 1) * each[i];
        if (s < least) least = s, best = i;
    }
    return best;
}

/* Gives each shard to the node that would have it done first, which makes the step as short as a
 * division can. */
static bool divide_by_times(sherd__divide_node *const *nodes, uint32_t len, uint32_t shards,
                            bool by_weight, bool kept)
{
    uint32_t counts[NODES_MAX] = { 0 };
    double each[NODES_MAX], then = 0;
    bool other = false;
    assert(len <= NODES_MAX);
    find_times(nodes, len, by_weight, each);
    double now = step_s(nodes, len, each);
    for (uint32_t s = 0; s < shards; s++) counts[first_done(each, len, counts)]++;
    for (uint32_t i = 0; i < len; i++) then = fmax(then, counts[i] * each[i]);
    if (kept && (now <= SHERD__DIVIDE_GAIN * then || (!by_weight && now < SHERD__DIVIDE_LEAST_S)))
        return false;
    for (uint32_t i = 0; i < len; i++) {
        other = other || nodes[i]->shards != counts[i];
        nodes[i]->shards = counts[i];
    }
    return other;
}

/* Makes the remembered division the present one, and the other way round. */
static void turn(sherd__divide_node *const *nodes, uint32_t len, bool same)
{
    for (uint32_t i = 0; i < len; i++) {
        uint32_t was = nodes[i]->shards;
        nodes[i]->shards = same ? nodes[i]->other : 0;
        nodes[i]->other = same ? was : 0;
    }
}

static uint32_t divided(sherd__divide_node *const *nodes, uint32_t len)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < len; i++) sum += nodes[i]->shards;
    return sum;
}

bool sherd__divide(sherd__divide_node *const *nodes, uint32_t len, uint32_t shards, bool same)
{
    bool by_weight = weighted(nodes, len), turned = !same || divided(nodes, len) != shards;
    if (turned) turn(nodes, len, same);
    bool kept = same && divided(nodes, len) == shards;
    for (uint32_t i = 0; i < len; i++)
        if (nodes[i]->shards == 0) nodes[i]->shard_s *= FORGIVEN;
    if (len > NODES_MAX || (!by_weight && !measured(nodes, len)))
        return kept ? turned : divide_equally(nodes, len, shards) || turned;
    if (!kept && !by_weight) divide_equally(nodes, len, shards); /* to compare with */
    return divide_by_times(nodes, len, shards, by_weight, kept || !by_weight) || !kept || turned;
}

double sherd__divide_slower(sherd__divide_node *const *nodes, uint32_t len, uint32_t i,
                            double *room)
{
    uint32_t others = 0;
    for (uint32_t k = 0; k < len; k++)
        if (k != i && nodes[k]->samples >= SAMPLES) room[others++] = nodes[k]->shard_s;
    double median = sherd__median(room, others, true);
    return nodes[i]->samples >= SAMPLES && median > 0 ? nodes[i]->shard_s / median : 0;
}
