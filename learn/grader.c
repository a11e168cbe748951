/*
 * Grading is a pass of sherd__network_learn with hooks. Parameters are requested as late as
 * possible, and the sum of a tier is complete before the layers below start, so that communication
 * overlaps with computation. L2 is added by the caller that combines the sums, since it depends on
 * the parameters and not on any example. The grader trusts that recipe and data were checked
 * (sherd__recipe_parse; the loss checks labels).
 */
#include "learn/grader.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/clones.h"

struct sherd__grader {
    sherd__network *network;
    sherd_multiplier products;
    sherd__elsewhere elsewhere; /* run NULL: passes are made here */
    size_t batch, tiers, inputs;
    size_t *layer_of, *tier_of; /* tier to layer, and layer to tier */
    unsigned bits;
    double *before; /* local steps: the parameters before the first step */
    /* the current pass */
    const sherd__grading *how;
    double rows; /* examples of the pass, as a factor */
    bool local;
};

/* ---- making ---------------------------------------------------------------------------------- */

static int number_tiers(sherd__grader *g)
{
    size_t len = sherd__network_len(g->network);
    g->layer_of = sherd__calloc(len, sizeof *g->layer_of);
    g->tier_of = sherd__calloc(len, sizeof *g->tier_of);
    if (!g->layer_of || !g->tier_of) return SHERD_ENOMEM;
    for (size_t i = 0; i < len; i++) {
        if (sherd__network_layer(g->network, i)->cols == 0) continue;
        g->tier_of[i] = g->tiers;
        g->layer_of[g->tiers++] = i;
    }
    return SHERD_OK;
}

static int need_tier(void *ctx, size_t layer, sherd_diag *d);
static int tier_done(void *ctx, size_t layer, sherd_diag *d);

int sherd__grader_new(sherd__grader **out, const sherd__recipe *r, size_t batch, unsigned bits,
                      const sherd__arithmetic *by, sherd_diag *d)
{
    sherd__recipe without = *r;
    sherd__grader *g = *out = sherd__calloc(1, sizeof *g);
    if (!g) return sherd__fail_memory(d, "a gradient");
    without.l2 = 0;
    without.precision = SHERD_F64; /* sums and messages are made of doubles */
    g->batch = batch;
    g->bits = bits;
    int err = sherd__arithmetic_multiplier(by, bits, &g->products, d);
    if (!err && by && by->elsewhere) err = by->elsewhere(by->ctx, bits, &g->elsewhere, d);
    if (!err) err = sherd__recipe_network_unset(&without, batch, &g->network, d);
    if (!err) err = number_tiers(g);
    if (!err && g->tiers == 0)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "a network without parameters has no gradient");
    if (!err && !sherd__form_size(r->in, &g->inputs)) err = SHERD_ESHAPE;
    if (err) {
        sherd__grader_free(g);
        *out = NULL;
        return sherd__fail_to(d, err, "make a network");
    }
    sherd__network_hook(g->network, &(sherd__network_hooks){ need_tier, tier_done, g });
    return SHERD_OK;
}

void sherd__grader_free(sherd__grader *g)
{
    if (!g) return;
    sherd__network_free(g->network);
    sherd_multiplier_free(g->products);
    if (g->elsewhere.free) g->elsewhere.free(g->elsewhere.ctx);
    sherd__free(g->layer_of);
    sherd__free(g->tier_of);
    sherd__free(g->before);
    sherd__free(g);
}

/* a += b * c, saturating. */
static void grow(uint64_t *a, uint64_t b, uint64_t c)
{
    uint64_t product;
    if (__builtin_mul_overflow(b, c, &product) || __builtin_add_overflow(*a, product, a))
        *a = UINT64_MAX;
}

int sherd__grader_memory(const sherd__recipe *r, size_t batch, uint64_t *bytes, sherd_diag *d)
{
    sherd__tensor_shape in = r->in;
    uint64_t numbers = 0, widest = 0;
    size_t size;
    if (!sherd__form_size(in, &size)) size = SIZE_MAX;
    grow(&numbers, batch, size);
    for (size_t i = 0; i < r->len; i++) {
        sherd__layer l = { .spec = r->layers[i], .in = in };
        int err = l.spec.kind->fit(&l, d);
        if (err) return err;
        if (!sherd__form_size(l.out, &size)) size = SIZE_MAX;
        uint64_t each = 0;
        grow(&each, 1, size);
        grow(&each, 1, l.scratch_each);
        grow(&numbers, batch, each);
        widest = each > widest ? each : widest;
        uint64_t weights = 0;
        grow(&weights, l.rows, l.cols);
        grow(&weights, l.cols, 1);
        grow(&numbers, weights, 5); /* parameters, gradient, local steps, copies for a product */
        in = l.out;
    }
    grow(&numbers, widest, batch); /* the backward pass, and copies of activations for a product */
    grow(&numbers, widest, batch);
    grow(&numbers, widest, 3 * (uint64_t)batch);
    *bytes = 4096;
    grow(bytes, numbers, sizeof(double));
    return SHERD_OK;
}

int sherd__recipe_tiers(const sherd__recipe *r, size_t *tiers,
                        size_t counts[SHERD__RECIPE_LAYERS_MAX], sherd_diag *d)
{
    sherd__tensor_shape in = r->in;
    size_t n = 0;
    for (size_t i = 0; i < r->len; i++) {
        sherd__layer l = { .spec = r->layers[i], .in = in };
        int err = l.spec.kind->fit(&l, d);
        if (err) return err;
        in = l.out;
        if (l.cols == 0) continue;
        if (!sherd__mul(l.rows, l.cols, &counts[n]) || !sherd__add(counts[n], l.cols, &counts[n]))
            return sherd__fail(d, SHERD_ESHAPE, NULL, "layer %zu is too large", i);
        n++;
    }
    *tiers = n;
    return n ? SHERD_OK
             : sherd__fail(d, SHERD_EINVAL, NULL, "a network without parameters has no gradient");
}

double sherd__recipe_flops(const sherd__recipe *r)
{
    sherd__tensor_shape in = r->in;
    double flops = 0;
    for (size_t i = 0; i < r->len; i++) {
        sherd__layer l = { .spec = r->layers[i], .in = in };
        size_t outputs;
        if (l.spec.kind->fit(&l, NULL) || !sherd__form_size(l.out, &outputs)) return 0;
        /* Three products in which each output, or its gradient, uses a column of the weights. */
        flops += (double)outputs * (6.0 * (double)l.rows + 50);
        in = l.out;
    }
    return flops;
}

double sherd__shards_examples(const size_t *at, uint32_t shards, const sherd__local_steps *local)
{
    double examples = 0;
    for (uint32_t i = 0; i < shards; i++) {
        double len = (double)(at[i + 1] - at[i]);
        if (local && local[i].steps)
            len = (double)local[i].steps * (local[i].batch ? (double)local[i].batch : len);
        examples += len;
    }
    return examples;
}

/* ---- accessors ------------------------------------------------------------------------------- */

static const sherd__layer *tier_layer(const sherd__grader *g, size_t tier)
{
    return sherd__network_layer(g->network, g->layer_of[tier]);
}

size_t sherd__grader_tiers(const sherd__grader *g)
{
    return g->tiers;
}

size_t sherd__grader_count(const sherd__grader *g, size_t tier)
{
    const sherd__layer *l = tier_layer(g, tier);
    return l->rows * l->cols + l->cols;
}

double *sherd__grader_params(sherd__grader *g, size_t tier)
{
    return sherd__network_params(g->network) + tier_layer(g, tier)->from;
}

void sherd__grader_lend(sherd__grader *g, size_t tier, const double *params)
{
    sherd__network_lend(g->network, g->layer_of[tier], params);
}

size_t sherd__grader_inputs(const sherd__grader *g)
{
    return g->inputs;
}

size_t sherd__grader_width(const sherd__grader *g)
{
    return sherd__network_width(g->network);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Returns how many entries are beyond `most`; NaN counts as beyond. The sums of such entries are
   unspecified. */
SHERD__CLONES_DQ
static int64_t add_whole(int64_t *restrict sums, const double *restrict g, size_t n, double factor,
                         double most)
{
    int64_t beyond = 0;
    for (size_t i = 0; i < n; i++) {
        double x = g[i] * factor;
        bool within = fabs(x) <= most;
        beyond += !within;
        sums[i] = (int64_t)((uint64_t)sums[i] + (uint64_t)(int64_t)rint(within ? x : 0));
    }
    return beyond;
}

SHERD__CLONES_DQ
static int64_t set_whole(int64_t *restrict sums, const double *restrict g, size_t n, double factor,
                         double most)
{
    int64_t beyond = 0;
    for (size_t i = 0; i < n; i++) {
        double x = g[i] * factor;
        bool within = fabs(x) <= most;
        beyond += !within;
        sums[i] = (int64_t)rint(within ? x : 0);
    }
    return beyond;
}

static bool whole(int64_t *sums, const double *g, size_t n, double factor, unsigned room,
                  bool fresh)
{
    double most = ldexp(1, (int)room);
    return (fresh ? set_whole : add_whole)(sums, g, n, factor, most) == 0;
}

bool sherd__grader_add(int64_t *sums, const double *g, size_t n, double factor, unsigned room)
{
    return whole(sums, g, n, factor, room, false);
}

/* Adds weight * v to the tier's sum, in integers of the agreed scale. */
static int add_tier(sherd__grader *g, size_t tier, const double *v, double weight, sherd_diag *d)
{
    size_t n = sherd__grader_count(g, tier);
    bool fresh = g->how->fresh;
    int err = g->how->begin ? g->how->begin(g->how->ctx, tier, &fresh, d) : SHERD_OK;
    if (err) return err;
    if (g->bits == 0) {
        double *sums = g->how->sums[tier];
        for (size_t i = 0; i < n; i++) sums[i] = (fresh ? 0 : sums[i]) + weight * v[i];
        return SHERD_OK;
    }
    int scale = g->how->scales[tier];
    if (whole(g->how->sums[tier], v, n, ldexp(weight, scale), g->how->room, fresh)) return SHERD_OK;
    return sherd__fail(d, SHERD_EBUSY, NULL,
                       "a gradient of layer %zu is beyond 2^%d: it does not fit its fixed point",
                       g->layer_of[tier], (int)g->how->room - scale);
}

/* ---- passes ---------------------------------------------------------------------------------- */

static int need_tier(void *ctx, size_t layer, sherd_diag *d)
{
    const sherd__grader *g = ctx;
    if (g->local)
        return SHERD_OK; /* all parameters were there before the first step and have changed
                            since */
    return g->how->need ? g->how->need(g->how->ctx, g->tier_of[layer], d) : SHERD_OK;
}

static int tier_done(void *ctx, size_t layer, sherd_diag *d)
{
    sherd__grader *g = ctx;
    size_t tier = g->tier_of[layer];
    if (g->local) return SHERD_OK;
    int err = add_tier(g, tier, sherd__network_layer(g->network, layer)->weights_gradient, g->rows,
                       d);
    if (!err && g->how->done) g->how->done(g->how->ctx, tier);
    return err;
}

static sherd__targets targets_at(const sherd__grader *g, sherd__targets t, size_t row)
{
    if (t.labels) t.labels += row;
    if (t.values) t.values += row * sherd__grader_width(g);
    return t;
}

/* Makes one pass over `rows` rows of the shard. Adds the sum of their costs, and their hits. */
static int learn(sherd__grader *g, const sherd__shard *s, size_t first, size_t rows,
                 sherd__graded *out, sherd_diag *d)
{
    sherd__batch batch = { .x = sherd_view_sub(s->x, first, rows, 0, s->x.cols),
                           .targets = targets_at(g, s->targets, first) };
    sherd__learnt got;
    g->rows = (double)rows;
    int err = g->elsewhere.run ? sherd__network_learn_by(g->network, &g->elsewhere, &batch, &got, d)
                               : SHERD_EUNSUPPORTED;
    if (err == SHERD_EUNSUPPORTED)
        err = sherd__network_learn(g->network, (sherd__engine){ .products = g->products }, &batch,
                                   &got.cost, &got.y, d);
    if (err) return err;
    out->cost += got.cost * (double)rows;
    if (batch.targets.labels)
        out->hits += sherd__labels_hit(got.y, rows, sherd__grader_width(g), batch.targets.labels);
    return SHERD_OK;
}

/* Makes one step of plain gradient descent with the gradient of the last pass. */
static void step_here(sherd__grader *g, double rate, double l2)
{
    for (size_t t = 0; t < g->tiers; t++) {
        const sherd__layer *l = tier_layer(g, t);
        size_t weights = l->rows * l->cols, n = sherd__grader_count(g, t);
        for (size_t i = 0; i < weights; i++)
            l->weights[i] -= rate * (l->weights_gradient[i] + l2 * l->weights[i]);
        for (size_t i = weights; i < n; i++) l->weights[i] -= rate * l->weights_gradient[i];
    }
}

static int run_local(sherd__grader *g, const sherd__shard *s, sherd__graded *out, sherd_diag *d)
{
    const sherd__local_steps *how = &g->how->local;
    size_t all = s->x.rows, at = 0, count = sherd__network_count(g->network);
    size_t batch = how->batch && how->batch < all ? (size_t)how->batch : all;
    double *params = sherd__network_params(g->network);
    sherd__graded first = { 0 }, later = { 0 };
    int err = SHERD_OK;
    if (!g->before && !(g->before = sherd__alloc_large(count * sizeof(double))))
        return sherd__fail_memory(d, "local steps");
    for (size_t t = 0; t < g->tiers && !err; t++)
        err = g->how->need ? g->how->need(g->how->ctx, t, d) : SHERD_OK;
    if (err) return err;
    memcpy(g->before, params, count * sizeof(double));
    for (uint64_t i = 0; i < how->steps && !err; i++) {
        size_t rows = all - at < batch ? all - at : batch;
        if (i > 0 && g->how->stop && g->how->stop(g->how->ctx))
            return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "these steps were cancelled");
        err = learn(g, s, at, rows, i == 0 ? &first : &later, d);
        if (err) return err;
        if (i == 0) {
            out->cost += first.cost / (double)rows * (double)all;
            out->hits += first.hits * all / rows;
        }
        step_here(g, how->rate, how->l2);
        at = at + rows < all ? at + rows : 0;
    }
    for (size_t i = 0; i < count; i++) g->before[i] -= params[i];
    for (size_t t = g->tiers; t-- > 0 && !err;) {
        err = add_tier(g, t, g->before + (sherd__grader_params(g, t) - params), how->weight, d);
        if (!err && g->how->done) g->how->done(g->how->ctx, t);
    }
    return err;
}

int sherd__grader_run(sherd__grader *g, const sherd__shard *s, const sherd__grading *how,
                      double *cost, uint64_t *hits, sherd_diag *d)
{
    sherd__graded sum = { 0 };
    g->how = how;
    g->local = how->local.steps > 0;
    int err = g->local ? run_local(g, s, &sum, d) : learn(g, s, 0, s->x.rows, &sum, d);
    g->how = NULL;
    for (size_t t = 0; t < g->tiers; t++) sherd__grader_lend(g, t, NULL);
    if (err) return err;
    *cost = sum.cost;
    *hits = sum.hits;
    return SHERD_OK;
}
