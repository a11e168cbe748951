/*
 * The parameter server. A synchronous step cuts the batch into shards and groups the shards into
 * parts, one for each worker. It adds the results up, divides once and updates once. The grouping
 * of shards into parts changes no bit. It trusts its engine to hand each part back once and to have
 * checked lengths.
 */
#include "learn/gradients.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/gradients_state.h"
#include "matrix/view.h"

/* ---- versions -------------------------------------------------------------------------------- */

sherd__version *sherd__version_new(size_t count, uint64_t number)
{
    size_t bytes;
    if (!sherd__mul(count, sizeof(double), &bytes) ||
        !sherd__add(bytes, sizeof(sherd__version), &bytes))
        return NULL;
    sherd__version *v = sherd__alloc_large(bytes);
    if (!v) return NULL;
    atomic_init(&v->holders, 1);
    v->number = number;
    v->count = count;
    return v;
}

void sherd__version_hold(sherd__version *v)
{
    atomic_fetch_add_explicit(&v->holders, 1, memory_order_relaxed);
}

void sherd__version_release(sherd__version *v)
{
    if (v && atomic_fetch_sub_explicit(&v->holders, 1, memory_order_acq_rel) == 1) sherd__free(v);
}

sherd__version *sherd__gradients_version(gradients *g, sherd_diag *d)
{
    if (!g->current) {
        g->current = sherd__version_new(g->count, g->updates);
        if (!g->current) {
            (void)sherd__fail_memory(d, "a copy of the parameters");
            return NULL;
        }
        memcpy(g->current->values, sherd__network_params(g->o.network), g->count * sizeof(double));
    }
    sherd__version_hold(g->current);
    return g->current;
}

/* ---- sums ------------------------------------------------------------------------------------ */

int sherd__sums_init(sherd__sums *s, size_t tiers, const size_t *counts, bool whole)
{
    *s = (sherd__sums){ .tiers = tiers, .whole = whole };
    s->of = sherd__calloc(tiers, sizeof *s->of);
    s->taken = sherd__calloc(tiers, sizeof *s->taken);
    s->counts = sherd__calloc(tiers, sizeof *s->counts);
    s->has_sum = sherd__calloc(tiers, sizeof *s->has_sum);
    bool fits = s->of && s->taken && s->counts && s->has_sum;
    for (size_t t = 0; fits && t < tiers; t++) {
        s->counts[t] = counts[t];
        fits = (s->of[t] = sherd__alloc_large(8 * counts[t])) != NULL;
    }
    if (fits) return SHERD_OK;
    sherd__sums_fini(s);
    return SHERD_ENOMEM;
}

void sherd__sums_fini(sherd__sums *s)
{
    if (s->taken) sherd__sums_clear(s);
    for (size_t t = 0; s->of && t < s->tiers; t++) sherd__free(s->of[t]);
    sherd__free(s->of);
    sherd__free(s->taken);
    sherd__free(s->counts);
    sherd__free(s->has_sum);
    *s = (sherd__sums){ 0 };
}

void sherd__sums_clear(sherd__sums *s)
{
    for (size_t t = 0; t < s->tiers; t++) {
        sherd__sums_taken *x = &s->taken[t];
        if (s->has_sum) s->has_sum[t] = false;
        if (!x->own) continue;
        s->of[t] = x->own;
        x->release(x->ctx);
        *x = (sherd__sums_taken){ 0 };
    }
}

void sherd__sums_take(sherd__sums *s, size_t tier, void *bytes, void (*release)(void *ctx),
                      void *ctx)
{
    if (s->has_sum[tier] || (uintptr_t)bytes % sizeof(double)) {
        sherd__sums_add(s, tier, bytes);
        release(ctx);
        return;
    }
    s->taken[tier] = (sherd__sums_taken){ s->of[tier], release, ctx };
    s->of[tier] = bytes;
    s->has_sum[tier] = true;
}

void sherd__sums_add(sherd__sums *s, size_t tier, const void *from)
{
    size_t n = s->counts[tier];
    if (!s->has_sum[tier]) {
        memcpy(s->of[tier], from, 8 * n);
        s->has_sum[tier] = true;
    } else if (s->whole) {
        uint64_t *to = s->of[tier];
        const unsigned char *b = from;
        for (size_t i = 0; i < n; i++) {
            uint64_t v;
            memcpy(&v, b + 8 * i, 8);
            to[i] += v;
        }
    } else {
        double *to = s->of[tier];
        const unsigned char *b = from;
        for (size_t i = 0; i < n; i++) {
            double v;
            memcpy(&v, b + 8 * i, 8);
            to[i] += v;
        }
    }
}

/* ---- scales ---------------------------------------------------------------------------------- */

unsigned sherd__gradients_room(uint32_t shards)
{
    unsigned bits = 0;
    while (((uint32_t)1 << bits) < shards) bits++;
    return 62 - bits; /* 2^bits times 2^room is at most 2^62 */
}

void sherd__gradients_most(const gradients *g, double *most)
{
    const double *gradient = sherd__network_gradient(g->o.network);
    if (g->peaks_known) {
        memcpy(most, g->peaks, g->tiers * sizeof *most);
        return;
    }
    for (size_t t = 0; t < g->tiers; t++) {
        sherd_view v = sherd_view_c(gradient + g->at[t], SHERD_F64, 1, g->counts[t]);
        if (!sherd__view_peak(v, &most[t])) most[t] = INFINITY; /* treated as unknown */
    }
}

void sherd__gradients_scales_of(const gradients *g, const double *most, const sherd__scaling *by,
                                int32_t *scales)
{
    const int try = (int)by->try, lower = try < 2 ? 16 *
    try : GRADIENTS_DIGITS
        *(try - 2);
    for (size_t t = 0; t < g->tiers; t++) {
        double bound;
        int e = 0;
        bound = (most[t] > 0 && isfinite(most[t]) && try < 2 ? most[t] : 1) * by->examples;
        if (g->o.local_steps) bound *= by->rate;
        if (isfinite(bound) && bound > 0) frexp(bound, &e);
        int scale = (int)by->room - GRADIENTS_HEADROOM - e - lower;
        scales[t] = scale > 1000 ? 1000 : scale < -1000 ? -1000 : scale;
    }
}

void sherd__gradients_scales(const gradients *g, double rate, double examples, unsigned room,
                             unsigned try, int32_t *scales)
{
    double most[SHERD__RECIPE_LAYERS_MAX];
    sherd__gradients_most(g, most);
    sherd__gradients_scales_of(g, most, &(sherd__scaling){ rate, examples, room, try }, scales);
}

double sherd__gradients_local(const gradients *g, double rate, const size_t *cuts, uint32_t n,
                              sherd__local_steps *out)
{
    size_t most = 1;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        most = cuts[i + 1] - cuts[i] > most ? cuts[i + 1] - cuts[i] : most;
    double kept = 1 - g->o.recipe->l2 * rate;
    for (uint32_t i = 0; i < n; i++) {
        sherd__local_steps *l = &out[i];
        *l = (sherd__local_steps){ .steps = g->o.local_steps,
                                   .batch = g->o.local_batch,
                                   .rate = rate,
                                   .l2 = g->o.recipe->l2,
                                   .weight = 1 };
        if (g->o.weighted) {
            double share = (double)(cuts[i + 1] - cuts[i]) / (double)most;
            uint64_t steps = (uint64_t)rint((double)l->steps * share);
            if (steps == 0) steps = 1;
            for (uint64_t k = steps; k < l->steps && kept > 0; k++) l->weight *= kept;
            if (l->weight < 0x1p-20) l->weight = 0x1p-20; /* a weight must be above 0 */
            l->steps = steps;
        }
        sum += l->weight;
    }
    return sum;
}

/* ---- a synchronous step ---------------------------------------------------------------------- */

uint32_t sherd__gradients_cut(gradients *g, size_t len)
{
    uint32_t n = g->o.shards < len ? g->o.shards : (uint32_t)len;
    size_t each = len / n, more = len % n;
    for (uint32_t i = 0; i <= n; i++) g->cuts[i] = i * each + (i < more ? i : more);
    return n;
}

/* Posts all parts and waits for all of them. Returns the first failure of a part, or the
   engine's. */
static int round_trip(gradients *g, const sherd__step *s, uint32_t shards, uint32_t parts,
                      sherd_diag *d)
{
    sherd__part *back, *bad = NULL;
    int err = SHERD_OK;
    for (uint32_t i = 0, first = 0; i < parts && !err; first += g->division[i++].shards) {
        sherd__part *p = &g->parts[i];
        *p = (sherd__part){ .first = first,
                            .shards = g->division[i].shards,
                            .wish = g->division[i].wish,
                            .rows = s->rows,
                            .at = g->cuts,
                            .scales = g->scales,
                            .room = sherd__gradients_room(shards),
                            .local = g->o.local_steps ? g->local : NULL,
                            .sums = &g->sums,
                            .costs = g->costs,
                            .hits = g->hits };
        p->params = sherd__gradients_version(g, d);
        err = p->params ? g->o.engine.ops->post(g->o.engine.ctx, p, d) : SHERD_ENOMEM;
        if (err) parts = i;
        if (err) sherd__version_release(p->params);
    }
    int ended = SHERD_OK;
    for (uint32_t i = 0; i < parts && !ended; i++) {
        ended = g->o.engine.ops->next(g->o.engine.ctx, &back, d);
        if (!ended && back->err && (!bad || bad->err == SHERD_EBUSY)) bad = back;
    }
    g->broken = g->broken || ended;
    for (uint32_t i = 0; i < parts; i++) sherd__version_release(g->parts[i].params);
    if (err || ended) return err ? err : ended;
    return bad ? sherd__fail(d, bad->err, bad->why.hint[0] ? bad->why.hint : NULL, "%s",
                             bad->why.message)
               : SHERD_OK;
}

/* Repeats the round trip with coarser scales until everything fits. */
static int grade(gradients *g, const sherd__step *s, uint32_t shards, uint32_t parts, double weight,
                 sherd_diag *d)
{
    int err = SHERD_EBUSY;
    for (unsigned try = 0; try < GRADIENTS_TRIES && err == SHERD_EBUSY; try++) {
        sherd_diag now = { 0 };
        sherd__gradients_scales(g, s->rate, weight, sherd__gradients_room(shards), try, g->scales);
        sherd__sums_clear(&g->sums);
        err = round_trip(g, s, shards, parts, &now);
        g->stats.rescaled += try > 0;
        if (!err || err == SHERD_EBUSY) continue;
        if (d && !d->code) *d = now;
        return err;
    }
    return err ? sherd__fail(d, SHERD_ERANGE, "a smaller rate", "a gradient exceeds all scales")
               : SHERD_OK;
}

bool sherd__gradients_others(const gradients *g)
{
    return g->o.engine.ops->workers(g->o.engine.ctx) > 0;
}

/* Combines the results of the parts. *weight is the weight of all shards on entry, and of those
   that were not dropped on return. */
static sherd__step_result count(gradients *g, uint32_t parts, double *weight,
                                sherd__gradients_update *u)
{
    sherd__step_result r = { 0 };
    for (uint32_t i = 0; i < parts; i++) {
        const sherd__part *p = &g->parts[i];
        g->stats.dropped += p->dropped;
        u->dropped += p->dropped;
        u->parts += !p->dropped;
        for (uint32_t k = p->first; k < p->first + p->shards; k++) {
            size_t len = g->cuts[k + 1] - g->cuts[k];
            if (p->dropped) {
                *weight -= g->o.local_steps ? g->local[k].weight : (double)len;
                continue;
            }
            r.cost += g->costs[k];
            r.hits += g->hits[k];
            u->examples += len;
        }
    }
    return r;
}

/* Divides the shards into parts. Returns the number of parts. */
static uint32_t divide(gradients *g, uint32_t shards)
{
    const sherd__gradient_engine_ops *ops = g->o.engine.ops;
    if (ops->divide) return ops->divide(g->o.engine.ctx, shards, g->division);
    uint32_t parts = ops->workers(g->o.engine.ctx);
    if (parts > shards) parts = shards;
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t from = (uint32_t)((uint64_t)shards * i / parts);
        uint32_t to = (uint32_t)((uint64_t)shards * (i + 1) / parts);
        g->division[i] = (sherd__division){ .shards = to - from };
    }
    return parts;
}

static int sync_step(gradients *g, const sherd__step *s, sherd__step_result *out, sherd_diag *d)
{
    uint32_t shards = sherd__gradients_cut(g, s->len);
    double weight;
    sherd__gradients_update u = { .version = g->updates };
    sherd__step_result r;
    do { /* once, unless all workers with a part of it are lost and parts may be dropped */
        uint32_t parts = divide(g, shards);
        weight = g->o.local_steps ? sherd__gradients_local(g, s->rate, g->cuts, shards, g->local)
                                  : (double)s->len;
        int err = grade(g, s, shards, parts, weight, d);
        if (err) return err;
        r = count(g, parts, &weight, &u);
    } while (u.examples == 0 && sherd__gradients_others(g));
    if (u.examples == 0)
        return sherd__fail(d, SHERD_EFEWNODES, NULL, "no shard of step %llu was graded",
                           (unsigned long long)s->number);
    r.cost = r.cost / (double)u.examples + sherd__gradients_l2(g);
    sherd__gradients_sum sum = { &g->sums, g->scales, g->o.local_steps ? weight * s->rate : weight,
                                 false };
    sherd__gradients_apply(g, s->rate, &u, &sum);
    *out = r;
    return SHERD_OK;
}

/* ---- the stepper ----------------------------------------------------------------------------- */

static int step(void *ctx, const sherd__step *s, sherd__step_result *out, sherd_diag *d)
{
    gradients *g = ctx;
    if (g->broken)
        return sherd__fail(d, SHERD_EFEWNODES, NULL,
                           "no node or thread is left to compute gradients");
    if (s->len == 0) return sherd__fail(d, SHERD_EINVAL, NULL, "a step without examples");
    return g->o.async ? sherd__gradients_async_step(g, s, out, d) : sync_step(g, s, out, d);
}

static int settle(void *ctx, sherd_diag *d)
{
    gradients *g = ctx;
    return g->o.async && !g->broken ? sherd__gradients_async_settle(g, d) : SHERD_OK;
}

void sherd__gradients_fini(gradients *g)
{
    sherd__version_release(g->current);
    sherd__free(g->peaks);
    sherd__free(g->block_peaks);
    sherd__team_free(g->team);
    sherd__sums_fini(&g->sums);
    sherd__free(g->layers);
    sherd__free(g->at);
    sherd__free(g->counts);
    sherd__free(g->parts);
    sherd__free(g->division);
    sherd__free(g->cuts);
    sherd__free(g->costs);
    sherd__free(g->hits);
    sherd__free(g->local);
    sherd__free(g->scales);
    sherd__free(g->versions);
    sherd__free(g);
}

static void free_stepper(void *ctx)
{
    gradients *g = ctx;
    sherd__gradient_engine_free(g->o.engine);
    sherd__gradients_async_fini(g);
    sherd__gradients_fini(g);
}

static const sherd__stepper_ops gradients_ops = {
    .name = "gradients",
    .traits = SHERD__STEPPER_ROWS,
    .step = step,
    .settle = settle,
    .free = free_stepper,
};

int sherd__gradients_number(gradients *g)
{
    sherd__network *n = g->o.network;
    size_t len = sherd__network_len(n);
    g->layers = sherd__calloc(len, sizeof *g->layers);
    g->at = sherd__calloc(len, sizeof *g->at);
    g->counts = sherd__calloc(len, sizeof *g->counts);
    if (!g->layers || !g->at || !g->counts) return SHERD_ENOMEM;
    for (size_t i = 0; i < len; i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        if (l->cols == 0) continue;
        g->layers[g->tiers] = i;
        g->at[g->tiers] = g->count;
        g->counts[g->tiers] = l->rows * l->cols + l->cols;
        g->count += g->counts[g->tiers++];
    }
    return SHERD_OK;
}

int sherd__gradients_shards(gradients *g)
{
    size_t shards = g->o.shards;
    g->parts = sherd__calloc(shards, sizeof *g->parts);
    g->division = sherd__calloc(shards, sizeof *g->division);
    g->cuts = sherd__calloc(shards + 1, sizeof *g->cuts);
    g->costs = sherd__calloc(shards, sizeof *g->costs);
    g->hits = sherd__calloc(shards, sizeof *g->hits);
    g->local = sherd__calloc(shards, sizeof *g->local);
    g->scales = sherd__calloc(SHERD__RECIPE_LAYERS_MAX, sizeof *g->scales);
    bool fits = g->parts && g->division && g->cuts && g->costs && g->hits && g->local && g->scales;
    return fits ? SHERD_OK : SHERD_ENOMEM;
}

int sherd__gradients_lay_out(gradients *g)
{
    int err = sherd__gradients_number(g);
    if (!err) err = sherd__gradients_blocks(g);
    if (!err) err = sherd__gradients_shards(g);
    return err ? err : sherd__sums_init(&g->sums, g->tiers, g->counts, g->o.bits > 0);
}

int sherd__gradients_check(const sherd__gradients_options *o, sherd_diag *d)
{
    if (o->shards > SHERD__SHARDS_MAX)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%u shards: at most %u", o->shards,
                           SHERD__SHARDS_MAX);
    if (sherd__network_dtype(o->network) != SHERD_F64)
        return sherd__fail(d, SHERD_EINVAL, "train it in f64",
                           "gradients are sent in f64 only, the network is in %s",
                           sherd_dtype_word(sherd__network_dtype(o->network)));
    if (o->local_steps && o->optimiser->spec.method != SHERD__SGD)
        return sherd__fail(d, SHERD_EINVAL, "use sgd, or no local steps",
                           "local steps are those of plain descent, the optimiser is %s",
                           sherd__method_name(o->optimiser->spec.method));
    return SHERD_OK;
}

int sherd__stepper_gradients(sherd__stepper *out, const sherd__gradients_options *opt,
                             sherd_diag *d)
{
    *out = (sherd__stepper){ 0 };
    int err = sherd__gradients_check(opt, d);
    if (err) return err;
    gradients *g = sherd__calloc(1, sizeof *g);
    if (!g) return sherd__fail_memory(d, "gradients");
    g->o = *opt;
    if (!g->o.shards) g->o.shards = SHERD__SHARDS_DEFAULT;
    err = sherd__gradients_lay_out(g);
    if (err) {
        sherd__gradients_fini(g);
        return sherd__fail_memory(d, "the sums of gradients");
    }
    *out = (sherd__stepper){ &gradients_ops, g };
    return SHERD_OK;
}

const sherd__gradients_stats *sherd__gradients_stats_of(const sherd__stepper *s)
{
    gradients *g = s->ctx;
    if (s->ops == &sherd__summed_ops || s->ops == &sherd__allreduce_stepper_ops) return &g->stats;
    if (s->ops != &gradients_ops) return NULL;
    const sherd__gradient_engine *e = &g->o.engine;
    if (e->ops->slowest) g->stats.slowest = e->ops->slowest(e->ctx);
    return &g->stats;
}

size_t sherd__shard_most(size_t batch, uint32_t shards)
{
    if (shards == 0) shards = SHERD__SHARDS_DEFAULT;
    return batch / shards + (batch % shards != 0);
}

void sherd__gradient_engine_free(sherd__gradient_engine e)
{
    if (e.ops) e.ops->free(e.ctx);
}

/* ---- gathering ------------------------------------------------------------------------------- */

void sherd__shard_inputs(const sherd__dataset *data, const uint32_t *rows, size_t len, void *out)
{
    const sherd_view *x = &data->x;
    size_t size = sherd_dtype_size(x->dtype);
    unsigned char *to = out;
    for (size_t i = 0; i < len; i++) {
        const unsigned char *from = (const unsigned char *)x->data +
                                    (ptrdiff_t)rows[i] * x->row_stride * (ptrdiff_t)size;
        if (x->col_stride == 1) {
            memcpy(to, from, x->cols * size);
            to += x->cols * size;
            continue;
        }
        for (size_t c = 0; c < x->cols; c++, to += size)
            memcpy(to, from + (ptrdiff_t)c * x->col_stride * (ptrdiff_t)size, size);
    }
}

void sherd__shard_targets(const sherd__dataset *data, const uint32_t *rows, size_t len, void *out)
{
    const sherd__targets *t = &data->targets;
    if (t->labels) {
        uint32_t *to = out;
        for (size_t i = 0; i < len; i++) to[i] = t->labels[rows[i]];
    } else {
        double *to = out;
        for (size_t i = 0; i < len; i++)
            memcpy(to + i * data->width, t->values + rows[i] * data->width,
                   data->width * sizeof *to);
    }
}
