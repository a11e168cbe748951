/*
 * Steps by an all-reduce group. Partitioning, scales, weights and figures are those of the
 * parameter server. The members hold sums, updates and parameters, and `settle` fetches them. For
 * the scales of a step the leader needs only the largest entries of the gradient before it, which
 * members report.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "learn/allreduce.h"
#include "learn/gradients_state.h"

typedef struct allreduce_stepper {
    gradients g; /* first: the part shared with other steppers by gradients */
    sherd__allreduce_lead lead;
    bool *dropped;
    double most[SHERD__RECIPE_LAYERS_MAX]; /* largest entries of the last gradient */
    double *state;
    size_t state_len; /* numbers of the state to fetch */
    bool behind;      /* steps were made since the last fetch */
    int ended;        /* the error that ended the steps */
} allreduce_stepper;

/* ---- states ---------------------------------------------------------------------------------- */

size_t sherd__allreduce_state_len(const sherd__optimiser *o)
{
    return 2 * o->count + o->state_len + 1;
}

void sherd__allreduce_state_of(const sherd__network *n, const sherd__optimiser *o, double *out)
{
    sherd__network_get(n, out);
    sherd__network_get_gradient(n, out + o->count);
    if (o->state_len) memcpy(out + 2 * o->count, o->state, o->state_len * sizeof *out);
    out[2 * o->count + o->state_len] = (double)o->steps;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Requests the step with coarser scales until everything fits. */
static int ask(allreduce_stepper *c, sherd__allreduce_step *s, sherd_diag *d)
{
    gradients *g = &c->g;
    int err = SHERD_EBUSY;
    sherd_diag last = { 0 };
    for (unsigned try = 0; try < GRADIENTS_TRIES && err == SHERD_EBUSY; try++) {
        sherd_diag now = { 0 };
        sherd__gradients_scales_of(g, c->most,
                                   &(sherd__scaling){ s->rate, s->weight, s->room, try },
                                   g->scales);
        err = c->lead.ops->step(c->lead.ctx, s, &now);
        g->stats.rescaled += try > 0;
        last = now;
        if (!err || err == SHERD_EBUSY) continue;
        g->broken = true;
        c->ended = err;
        return sherd__fail(d, err, now.hint[0] ? now.hint : NULL, "%s", now.message);
    }
    return err ? sherd__fail(d, SHERD_ERANGE, "a smaller rate", "a gradient exceeds all scales: %s",
                             last.message)
               : SHERD_OK;
}

/* Converts the members' reports into the figures of the step. */
static void figures(allreduce_stepper *c, const sherd__allreduce_step *s,
                    sherd__gradients_update *u, sherd__step_result *out)
{
    gradients *g = &c->g;
    double cost = 0;
    for (uint32_t i = 0; i < s->shards; i++) {
        u->dropped += s->dropped[i];
        if (s->dropped[i]) continue;
        cost += s->costs[i];
        out->hits += s->hits[i];
        u->examples += s->at[i + 1] - s->at[i];
    }
    u->parts = s->members;
    if (u->examples) out->cost = cost / (double)u->examples + s->l2;
    g->stats.updates++;
    g->stats.parts += u->parts;
    g->stats.dropped += u->dropped;
    g->stats.examples += u->examples;
}

static int step(void *ctx, const sherd__step *at, sherd__step_result *out, sherd_diag *d)
{
    allreduce_stepper *c = ctx;
    gradients *g = &c->g;
    if (g->broken)
        return sherd__fail(d, SHERD_EFEWNODES, NULL, "no node that computes gradients is left");
    if (at->len == 0) return sherd__fail(d, SHERD_EINVAL, NULL, "a step without examples");
    if (!at->list || at->list->len < at->len || at->first > at->list->len - at->len)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "rows that are in no list: members cannot name them");
    uint32_t shards = sherd__gradients_cut(g, at->len);
    double weight = (double)at->len;
    if (g->o.local_steps) weight = sherd__gradients_local(g, at->rate, g->cuts, shards, g->local);
    sherd__allreduce_step s = { .version = g->updates,
                                .rows = at->rows,
                                .list = at->list,
                                .first = at->first,
                                .at = g->cuts,
                                .shards = shards,
                                .scales = g->scales,
                                .room = sherd__gradients_room(shards),
                                .local = g->o.local_steps ? g->local : NULL,
                                .rate = at->rate,
                                .weight = weight,
                                .costs = g->costs,
                                .hits = g->hits,
                                .dropped = c->dropped,
                                .most = c->most };
    int err = ask(c, &s, d);
    if (err) return err;
    sherd__gradients_update u = { .version = g->updates };
    sherd__step_result r = { 0 };
    figures(c, &s, &u, &r);
    g->updates++;
    c->behind = true;
    if (u.examples == 0)
        return sherd__fail(d, SHERD_EFEWNODES, NULL, "no shard of step %llu was graded",
                           (unsigned long long)at->number);
    if (g->o.note) g->o.note(g->o.note_ctx, &u);
    *out = r;
    return SHERD_OK;
}

static int settle(void *ctx, sherd_diag *d)
{
    allreduce_stepper *c = ctx;
    gradients *g = &c->g;
    sherd__optimiser *o = g->o.optimiser;
    size_t count = g->count;
    if (!c->behind) return SHERD_OK;
    if (g->broken)
        return sherd__fail(d, c->ended, "continue from the last checkpoint, if there is one",
                           "the nodes that hold the parameters cannot be reached");
    int err = c->lead.ops->state(c->lead.ctx, c->state, c->state_len, d);
    double steps = c->state[c->state_len - 1]; /* members agree on it, but there may be only one
                                                  member */
    if (!err && c->state_len > count && !(steps >= 0 && steps <= 0x1p53))
        err = sherd__fail(d, SHERD_EWRONG, NULL, "the nodes hold a state after %g steps", steps);
    if (err) return err;
    memcpy(sherd__network_params(g->o.network), c->state, count * sizeof *c->state);
    if (c->state_len > count) {
        memcpy(sherd__network_layer(g->o.network, g->layers[0])->weights_gradient, c->state + count,
               count * sizeof *c->state);
        if (o->state_len) memcpy(o->state, c->state + 2 * count, o->state_len * sizeof *c->state);
        sherd__optimiser_resume(o, (uint64_t)c->state[c->state_len - 1]);
    }
    c->behind = false;
    return SHERD_OK;
}

/* ---- start and end --------------------------------------------------------------------------- */

static void free_memory(allreduce_stepper *c)
{
    sherd__free(c->dropped);
    sherd__free(c->state);
    sherd__gradients_fini(&c->g); /* also frees c */
}

static void free_stepper(void *ctx)
{
    allreduce_stepper *c = ctx;
    c->lead.ops->free(c->lead.ctx);
    free_memory(c);
}

const sherd__stepper_ops sherd__allreduce_stepper_ops = {
    .name = "allreduce",
    .traits = SHERD__STEPPER_ROWS | SHERD__STEPPER_FAR,
    .step = step,
    .settle = settle,
    .free = free_stepper,
};

static int check(const sherd__gradients_options *o, sherd_diag *d)
{
    if (o->async)
        return sherd__fail(d, SHERD_EINVAL, "leave out --async",
                           "a sum among nodes waits for all of them");
    if (o->bits == 0)
        return sherd__fail(d, SHERD_EINVAL, "train in fixed point",
                           "sums of floats depend on their order: nodes would not agree");
    return sherd__gradients_check(o, d);
}

int sherd__stepper_allreduce(sherd__stepper *out, const sherd__gradients_options *opt,
                             sherd__allreduce_lead lead, bool whole, sherd_diag *d)
{
    *out = (sherd__stepper){ 0 };
    int err = check(opt, d);
    if (err) return err;
    allreduce_stepper *c = sherd__calloc(1, sizeof *c);
    if (!c) return sherd__fail_memory(d, "gradients");
    c->g.o = *opt;
    c->lead = lead;
    if (!c->g.o.shards) c->g.o.shards = SHERD__SHARDS_DEFAULT;
    err = sherd__gradients_number(&c->g);
    if (!err) err = sherd__gradients_shards(&c->g);
    if (!err) {
        c->state_len = whole ? sherd__allreduce_state_len(opt->optimiser) : c->g.count;
        c->dropped = sherd__calloc(c->g.o.shards, sizeof *c->dropped);
        c->state = sherd__alloc_large(c->state_len * sizeof *c->state);
    }
    if (err || !c->dropped || !c->state) {
        free_memory(c);
        return sherd__fail_memory(d, "the training");
    }
    sherd__gradients_most(&c->g, c->most);
    *out = (sherd__stepper){ &sherd__allreduce_stepper_ops, c };
    return SHERD_OK;
}
