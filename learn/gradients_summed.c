/*
 * Steps over sums that parties make among themselves. Only the sum is known here, not even how many
 * examples a party has. Scales follow from the gradient, the cost and the number of examples of the
 * step before. If an entry of a sum is so large that a party may have saturated it, the sum is
 * requested again with coarser scales; the first step finds its scales in this way. With clipping
 * nothing saturates, but the figures contain noise and are clamped to possible values. The parties
 * are trusted to report the truth: an impossible sum is detected, a wrong one is not.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/gradients_state.h"
#include "learn/secure.h"

#define FIRST_EXAMPLES 65536.0 /* number of examples that the first step's scales allow for */

typedef struct summed {
    gradients g; /* first: the part shared with other steppers by gradients */
    sherd__summer summer;
    int32_t *scales; /* by tier, then of the cost */
    int64_t *sum;
    double examples, cost; /* of the step before */
} summed;

/* The figures that a sum contains in addition to the gradient. */
typedef struct figures {
    double examples, cost, hits; /* cost: mean over the examples */
} figures;

static void choose_scales(summed *s, double rate, unsigned room, unsigned try)
{
    int lower = try < 2 ? 16 * (int)
    try : GRADIENTS_DIGITS
        *((int)try - 2), e;
    double cost = try < 2 && s->cost > 0 ? s->cost : s->summer.clip > 0 ? 4 : 1;
    sherd__gradients_scales(&s->g, rate, s->examples, room, try, s->scales);
    /* With clipping an example's cost is at most 1; there is room for four times the mean. */
    (void)frexp(s->summer.clip > 0 ? 4 * fmax(cost, 0x1p-20) : cost * s->examples, &e);
    int scale = s->summer.clip > 0 ? -e : (int)room - GRADIENTS_HEADROOM - e - lower;
    s->scales[s->g.tiers] = scale > 1000 ? 1000 : scale < -1000 ? -1000 : scale;
}

/* Returns whether a party may have saturated an entry: then the sum over all parties is hardly
   below half of one party's maximum. */
static bool too_large(const summed *s, unsigned room)
{
    int64_t most = INT64_C(1) << (room - 1);
    for (size_t i = 0; i < s->g.count; i++)
        if (s->sum[i] >= most || s->sum[i] <= -most) return true;
    return s->sum[s->g.count + 1] >= most || s->sum[s->g.count + 1] <= -most;
}

/* Requests the sum, with coarser scales until it fits. */
static int ask(summed *s, const sherd__step *at, uint32_t *in, sherd_diag *d)
{
    gradients *g = &s->g;
    unsigned room = sherd__secure_room(s->summer.most);
    bool again = true;
    for (unsigned try = 0; try < GRADIENTS_TRIES && again; try++) {
        sherd__version *params = sherd__gradients_version(g, d);
        if (!params) return SHERD_ENOMEM;
        choose_scales(s, at->rate, room, try);
        int err = s->summer.ops->sum(s->summer.ctx, at->number, params, s->scales, s->sum, in, d);
        sherd__version_release(params);
        g->stats.rescaled += try > 0;
        g->broken = err != SHERD_OK;
        if (err) return err;
        again = s->summer.clip == 0 && too_large(s, room);
    }
    return again ? sherd__fail(d, SHERD_ERANGE, "a smaller rate",
                               "a gradient exceeds all scales: training diverged")
                 : SHERD_OK;
}

/* Reads the figures of a sum. With clipping they contain noise. */
static int read_figures(const summed *s, figures *f, sherd_diag *d)
{
    const int64_t *from = s->sum + s->g.count;
    double by = s->summer.clip > 0 ? (double)SHERD__PRIVACY_FIGURE : 1;
    if (s->summer.clip == 0 && (from[0] <= 0 || from[2] < 0 || from[2] > from[0]))
        return sherd__fail(d, SHERD_EWRONG,
                           from[0] ? NULL
                                   : "set --examples to the largest number of examples of a node",
                           "a sum over %lld examples with %lld hits: a node did not do its part, "
                           "or no node has an example in this batch",
                           (long long)from[0], (long long)from[2]);
    f->examples = fmax((double)from[0] / by, 1);
    f->cost = ldexp((double)from[1] / by, -s->scales[s->g.tiers]) / f->examples;
    f->hits = fmin(fmax((double)from[2] / by, 0), f->examples);
    return SHERD_OK;
}

/* sherd__gradients_take needs sums by tier; here all tiers are consecutive in one array. */
static void take(summed *s, double examples)
{
    gradients *g = &s->g;
    void *of[SHERD__RECIPE_LAYERS_MAX];
    sherd__sums sums = { .tiers = g->tiers, .whole = true, .of = of, .counts = g->counts };
    for (size_t t = 0; t < g->tiers; t++) of[t] = s->sum + g->at[t];
    if (s->summer.clip > 0) {
        memset(s->scales, 0, g->tiers * sizeof *s->scales);
        examples *= (double)SHERD__PRIVACY_UNITS / s->summer.clip;
    }
    sherd__gradients_take(g, &(sherd__gradients_sum){ &sums, s->scales, examples, false });
}

static int step(void *ctx, const sherd__step *at, sherd__step_result *out, sherd_diag *d)
{
    summed *s = ctx;
    gradients *g = &s->g;
    uint32_t in = 0;
    if (g->broken)
        return sherd__fail(d, SHERD_EFEWNODES, NULL, "no node that computes gradients is left");
    figures f = { 0 };
    int err = ask(s, at, &in, d);
    if (!err) err = read_figures(s, &f, d);
    if (err) return err;
    sherd__gradients_update u = { .version = g->updates,
                                  .parts = in,
                                  .dropped = s->summer.parties > in ? s->summer.parties - in : 0,
                                  .examples = (uint64_t)rint(f.examples) };
    sherd__step_result r = { .cost = f.cost + sherd__gradients_l2(g),
                             .hits = (uint64_t)rint(f.hits),
                             .examples = u.examples };
    g->stats.dropped += u.dropped;
    take(s, f.examples);
    sherd__gradients_apply(g, at->rate, &u, NULL);
    s->examples = f.examples;
    s->cost = fabs(r.cost); /* as it is reported: a resumed run has only that value */
    *out = r;
    return SHERD_OK;
}

static int settle(void *ctx, sherd_diag *d)
{
    (void)ctx;
    (void)d;
    return SHERD_OK;
}

static void free_memory(summed *s)
{
    sherd__free(s->scales);
    sherd__free(s->sum);
    sherd__gradients_fini(&s->g); /* also frees s */
}

static void free_stepper(void *ctx)
{
    summed *s = ctx;
    s->summer.ops->free(s->summer.ctx);
    free_memory(s);
}

const sherd__stepper_ops sherd__summed_ops = {
    .name = "summed",
    .traits = SHERD__STEPPER_ROWS,
    .step = step,
    .settle = settle,
    .free = free_stepper,
};

int sherd__stepper_summed(sherd__stepper *out, const sherd__gradients_options *opt,
                          sherd__summer summer, uint64_t examples, double cost, sherd_diag *d)
{
    size_t len = 0;
    *out = (sherd__stepper){ 0 };
    summed *s = sherd__calloc(1, sizeof *s);
    if (!s) return sherd__fail_memory(d, "gradients");
    s->g.o = (sherd__gradients_options){ .recipe = opt->recipe,
                                         .network = opt->network,
                                         .optimiser = opt->optimiser,
                                         .note = opt->note,
                                         .note_ctx = opt->note_ctx,
                                         .shards = 1,
                                         .bits = 2 };
    s->summer = summer;
    s->examples = examples ? (double)examples : FIRST_EXAMPLES;
    s->cost = examples ? fabs(cost) : 0;
    int err = sherd__gradients_lay_out(&s->g);
    if (!err && sherd__add(s->g.count, SHERD__SECURE_EXTRA, &len)) {
        s->scales = sherd__calloc(s->g.tiers + 1, sizeof *s->scales);
        s->sum = sherd__calloc(len, sizeof *s->sum);
    }
    if (err || !s->scales || !s->sum) {
        free_memory(s);
        return sherd__fail_memory(d, "sums of gradients");
    }
    *out = (sherd__stepper){ &sherd__summed_ops, s };
    return SHERD_OK;
}
