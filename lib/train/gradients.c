/*
 * By gradients: makes the engine that computes them (threads, peers or nodes) and the stepper. The
 * stepper is the parameter server (learn/gradients.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cpu.h"
#include "core/diag.h"
#include "learn/collective.h"
#include "lib/train/training.h"
#include "scheduler/train/train.h"

/* ---- traces ---------------------------------------------------------------------------------- */

static void on_pass(void *ctx, const sherd__train_trace *x)
{
    const sherd_training *t = ctx;
    const sherd_train_pass p = { .version = x->version,
                                 .node = x->node,
                                 .shards = x->shards,
                                 .asked = x->asked,
                                 .answered = x->answered,
                                 .forward = x->forward,
                                 .last_params = x->last_params,
                                 .top_left = x->top_left,
                                 .lowest_backward = x->lowest_backward,
                                 .computed = x->computed };
    t->o.on_pass(t->o.ctx, &p);
}

static void on_update(void *ctx, const sherd__gradients_update *x)
{
    const sherd_training *t = ctx;
    const sherd_train_update u = { .version = x->version,
                                   .staleness = x->staleness,
                                   .by = x->by,
                                   .parts = x->parts,
                                   .dropped = x->dropped,
                                   .examples = x->examples };
    t->o.on_update(t->o.ctx, &u);
}

/* ---- engines --------------------------------------------------------------------------------- */

static sherd__gradients_options options_of(const sherd_training *t, sherd__trainer *trainer)
{
    const sherd_train_options *o = &t->o;
    return (sherd__gradients_options){
        .recipe = &t->recipe->recipe,
        .data = &t->data->train,
        .network = sherd__trainer_network(trainer),
        .optimiser = sherd__trainer_optimiser(trainer),
        .shards = o->shards,
        .bits = t->products.bits,
        .async = o->async,
        .staleness_max = o->staleness_bounded ? o->staleness_max : UINT64_MAX,
        .local_steps = o->local_steps,
        .local_batch = o->local_batch,
        .weighted = o->weighted,
    };
}

static int threads(sherd__gradient_engine *e, const sherd_training *t, unsigned count,
                   sherd_diag *d)
{
    size_t batch = sherd__trainer_order(t->trainer)->batch;
    return sherd__gradients_here(e, &t->recipe->recipe, &t->data->train,
                                 &(sherd__here_options){ sherd__shard_most(batch, t->o.shards),
                                                         t->products.bits, count },
                                 d);
}

static int peers(sherd__gradient_engine *e, const sherd_training *t, sherd_diag *d)
{
    sherd__gradient_engine own;
    int err = threads(&own, t, 1, d);
    if (err) return err;
    err = sherd__gradients_among(e, &t->among, own, d);
    if (err) sherd__gradient_engine_free(own);
    return err;
}

static int over_nodes(sherd__gradient_engine *e, sherd_training *t, sherd_diag *d)
{
    sherd__order order = t->recipe->recipe.order;
    uint32_t shards = t->o.shards, nodes = t->o.nodes;
    if (nodes > shards && nodes > 1)
        sherd__training_log(t, SHERD_LOG_WARN,
                            "%" PRIu32 " shards for %" PRIu32 " nodes: some have nothing to do; "
                            "--shards %" PRIu32 " gives each one",
                            shards, nodes, nodes);
    sherd__train_options o = {
        .recipe = &t->recipe->recipe,
        .data = &t->data->train,
        .shards = shards,
        .batch = sherd__trainer_order(t->trainer)->batch,
        .bits = t->products.bits,
        .allow_drop = t->o.allow_drop,
        .async = t->o.async,
        .staleness_max = t->o.staleness_bounded ? t->o.staleness_max : UINT64_MAX,
        .recurring = order == SHERD__ORDER_GIVEN || order == SHERD__ORDER_BATCHES,
        .trace = t->o.on_pass ? on_pass : NULL,
        .trace_ctx = t
    };
    return sherd__train_engine(e, t->cluster, &o, d);
}

int sherd__training_suits(const sherd_training *t, sherd_diag *d)
{
    bool peer = t->among.sum;
    const char *what = peer ? "processes" : t->o.nodes ? "nodes" : "threads";
    uint32_t many = peer ? t->among.count : t->o.nodes ? t->o.nodes : t->o.threads;
    if (t->o.by != SHERD_BY_GRADIENTS || t->o.aggregate == SHERD_AGGREGATE_SECURE) return SHERD_OK;
    size_t batch = sherd__trainer_order(t->trainer)->batch;
    if (many <= batch) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "start fewer, or use a larger --batch",
                       "%" PRIu32 " %s for steps of %zu examples", many, what, batch);
}

int sherd__training_gradients_open(sherd_training *t, sherd_diag *d)
{
    sherd__gradients_options g = options_of(t, t->trainer);
    if (t->o.on_update) {
        g.note = on_update;
        g.note_ctx = t;
    }
    if (t->o.aggregate == SHERD_AGGREGATE_SECURE) return sherd__training_secure_open(t, &g, d);
    if (t->o.aggregate != SHERD_AGGREGATE_PLAIN) return sherd__training_allreduce_open(t, &g, d);
    int err = t->among.sum ? peers(&g.engine, t, d)
              : t->cluster ? over_nodes(&g.engine, t, d)
                           : threads(&g.engine, t, sherd__training_threads(t), d);
    if (err) return err;
    err = sherd__stepper_gradients(&t->stepper, &g, d);
    if (err) sherd__gradient_engine_free(g.engine);
    return err;
}

uint32_t sherd__training_threads(const sherd_training *t)
{
    if (t->o.by != SHERD_BY_GRADIENTS || t->o.nodes > 0) return 0;
    return t->among.sum ? 1 : t->o.threads ? t->o.threads : sherd__cpu_usable();
}

int sherd__training_gradients_beside(const sherd_training *t, sherd__trainer *trainer,
                                     sherd__stepper *out, sherd_diag *d)
{
    sherd__gradients_options g = options_of(t, trainer);
    const double *from = sherd__network_gradient(sherd__trainer_network(t->trainer));
    for (size_t i = 0, at = 0; i < sherd__network_len(g.network); i++) { /* sets the scales */
        const sherd__layer *l = sherd__network_layer(g.network, i);
        size_t n = l->rows * l->cols + l->cols;
        if (n) memcpy(l->weights_gradient, from + at, n * sizeof *from);
        at += n;
    }
    int err = threads(&g.engine, t, 1, d);
    if (err) return err;
    err = sherd__stepper_gradients(out, &g, d);
    if (err) sherd__gradient_engine_free(g.engine);
    return err;
}

void sherd__training_gradients_name(const sherd_training *t, char *out, size_t size)
{
    const sherd_train_options *o = &t->o;
    char local[80] = "", bits[40] = "float64";
    if (t->products.bits) snprintf(bits, sizeof bits, "fixed point of %u bits", t->products.bits);
    if (o->local_steps)
        snprintf(local, sizeof local, ", %" PRIu64 " local steps of %" PRIu64 "%s", o->local_steps,
                 o->local_batch, o->weighted ? ", weighted" : "");
    snprintf(out, size, "gradients of %" PRIu32 " shards, %s%s%s", o->shards, bits, local,
             o->async ? ", async" : "");
}
