/* All-reduce: nodes sum gradients among themselves and compute the updates. This process sends
 * plans and receives costs. */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/options.h"
#include "lib/train/training.h"
#include "scheduler/cluster/internal.h"

int sherd__training_allreduce_open(sherd_training *t, const sherd__gradients_options *g,
                                   sherd_diag *d)
{
    sherd__training_allreduce *a = &t->allreduce;
    assert(t->cluster && "options without nodes are refused");
    a->links = sherd__calloc(t->o.nodes, sizeof *a->links);
    if (!a->links) return sherd__fail_memory(d, "the training");
    for (uint32_t i = 0; i < t->o.nodes; i++) {
        const sherd_node_info info = sherd__cluster_node(t->cluster, i);
        memcpy(a->links[i].node, info.name, sizeof a->links[i].node);
    }
    bool ring = t->o.aggregate == SHERD_AGGREGATE_RING;
    sherd__allreduce_options o = { .recipe = &t->recipe->recipe,
                                   .data = &t->data->train,
                                   .network = g->network,
                                   .optimiser = g->optimiser,
                                   .kind = ring ? SHERD__REDUCE_RING : SHERD__REDUCE_HALVING,
                                   .shards = g->shards,
                                   .batch = sherd__trainer_order(t->trainer)->batch,
                                   .bits = g->bits,
                                   .allow_drop = t->o.allow_drop };
    int err = sherd__allreduce_open(&a->lead, t->cluster, &o, d);
    if (err) return err;
    err = sherd__stepper_allreduce(&t->stepper, g, a->lead, t->keep != NULL, d);
    if (err) {
        a->lead.ops->free(a->lead.ctx);
        a->lead = (sherd__allreduce_lead){ 0 };
    }
    return err;
}

/* Updates the statistics while the leader is there. */
static void count(sherd__training_allreduce *a, uint32_t nodes)
{
    if (!a->lead.ops) return;
    sherd__allreduce_count(&a->lead, &a->stats);
    for (uint32_t i = 0; i < nodes; i++) a->links[i].bytes = sherd__allreduce_links_of(&a->lead, i);
}

sherd__slowest sherd__training_allreduce_slowest(sherd_training *t)
{
    count(&t->allreduce, t->o.nodes);
    return t->allreduce.stats.slowest;
}

void sherd__training_allreduce_end(sherd_training *t)
{
    count(&t->allreduce, t->o.nodes);
    t->allreduce.lead = (sherd__allreduce_lead){ 0 };
}

static int is_allreduce(const sherd_training *t, sherd_diag *d)
{
    if (t->o.by == SHERD_BY_GRADIENTS && (t->o.aggregate == SHERD_AGGREGATE_RING ||
                                          t->o.aggregate == SHERD_AGGREGATE_HALVING_DOUBLING))
        return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, NULL, "this training is not by all-reduce");
}

int sherd_training_allreduce_get(sherd_training *t, sherd_train_allreduce *out, sherd_diag *d)
{
    sherd__training_allreduce *a = &t->allreduce;
    int err = is_allreduce(t, d);
    if (!err) err = sherd__result_check(out, "sherd_train_allreduce", d);
    if (err) return err;
    count(a, t->o.nodes);
    const sherd_train_allreduce r = {
        .by = sherd__reduce_name(t->o.aggregate == SHERD_AGGREGATE_RING ? SHERD__REDUCE_RING
                                                                        : SHERD__REDUCE_HALVING),
        .members = a->stats.members,
        .rounds = a->stats.rounds,
        .repeated = a->stats.repeated,
        .link_bytes_out = a->stats.link_out,
        .link_bytes_in = a->stats.link_in,
        .examples_bytes = a->stats.examples_out,
    };
    sherd__result_write(out, &r, sizeof r);
    return SHERD_OK;
}

int sherd_training_link_at(sherd_training *t, uint32_t node, sherd_train_link *out, sherd_diag *d)
{
    sherd__training_allreduce *a = &t->allreduce;
    sherd_train_link r = { 0 };
    int err = is_allreduce(t, d);
    if (!err && node >= t->o.nodes)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "node %u of %u", node, t->o.nodes);
    if (!err) err = sherd__result_check(out, "sherd_train_link", d);
    if (err) return err;
    count(a, t->o.nodes);
    if (a->links) {
        memcpy(r.node, a->links[node].node, sizeof r.node);
        r.bytes_out = a->links[node].bytes.out;
        r.bytes_in = a->links[node].bytes.in;
        r.blocks_in = a->links[node].bytes.bodies;
    }
    sherd__result_write(out, &r, sizeof r);
    return SHERD_OK;
}
