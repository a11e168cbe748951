/*
 * Secure aggregation: nodes train on their own data, and this process gets sums of gradients. It
 * has no examples: the training loop runs over a placeholder with one row for each place of an
 * epoch at a node (learn/secure.h). All rows are the same zeros.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/options.h"
#include "crypto/aggregate.h"
#include "crypto/privacy.h"
#include "lib/train/training.h"
#include "node/secure/policy.h"

#define VALIDATION_BATCH 256u

static_assert((int)SHERD_TRAIN_NOISE_MAX == (int)SHERD__PRIVACY_NOISE_MAX, "one limit");

/* Warns that nodes with the preset --min-rows refuse rounds of so few places. */
static void warn_few(const sherd_training *t)
{
    const sherd__training_secure *s = &t->secure;
    const sherd__policy usual = SHERD__POLICY_DEFAULT;
    uint64_t least = usual.rows_min;
    char examples[64] = "";
    if (s->places < least)
        snprintf(examples, sizeof examples, "--examples %" PRIu64 " and ", least);
    sherd__training_log(t, SHERD_LOG_WARN,
                        "a round goes over %" PRIu64 " places of each node: nodes with the preset "
                        "--min-rows (%" PRIu64 ") refuse this training; choose %s--batch %" PRIu64
                        " or more",
                        s->rows, least, examples, least * t->o.nodes);
}

/* Warns that nodes refuse rounds with fewer rows than --min-rows or more than --max-rows, which
 * only they know. */
static void warn_rows(const sherd_training *t)
{
    const sherd__training_secure *s = &t->secure;
    const sherd__policy usual = SHERD__POLICY_DEFAULT;
    uint64_t last = s->places % s->rows, batch = t->recipe->recipe.batch;
    if (batch / t->o.nodes >= s->places && batch > s->places * t->o.nodes)
        sherd__training_log(t, SHERD_LOG_WARN,
                            "a batch of %" PRIu64 " is more than the %" PRIu64
                            " places of all nodes: each epoch is one round over all of them",
                            batch, s->places * t->o.nodes);
    bool simulate = t->o.simulate;
    if (!simulate && s->rows > usual.rows_max)
        sherd__training_log(t, SHERD_LOG_WARN,
                            "a round goes over %" PRIu64 " places of each node: nodes with the "
                            "preset --max-rows (%" PRIu64 ") refuse this training; choose a "
                            "smaller --batch",
                            s->rows, usual.rows_max);
    if (!simulate && s->rows < usual.rows_min) warn_few(t);
    if (simulate || last == 0 || last >= usual.rows_min || s->rows < usual.rows_min) return;
    sherd__training_log(t, SHERD_LOG_WARN,
                        "the last round of an epoch goes over %" PRIu64 " of the %" PRIu64
                        " places of each node: nodes with the preset --min-rows (%" PRIu64
                        ") refuse this training; --examples %" PRIu64 " adds empty places, or "
                        "choose another --batch",
                        last, s->places, usual.rows_min, s->places - last + usual.rows_min);
}

static double cost_of(const sherd_training *t, double noise)
{
    uint32_t colluding = t->o.colluding ? t->o.colluding : 1;
    const sherd__privacy_round r = {
        .threshold = t->o.survivors ? t->o.survivors
                                    : sherd__aggregate_threshold(t->o.nodes, colluding),
        .colluding = colluding,
        .gradient = sherd__network_count(sherd__trainer_network(t->trainer)),
        .noise = noise,
    };
    return sherd__privacy_cost(&r);
}

/* Returns the least noise, in two digits, with which an example may be in `times` rounds, or some
 * noise above the largest possible one. */
static double noise_for(const sherd_training *t, double times, double budget)
{
    double noise = sqrt(times / (2 * budget)), unit;
    do {
        unit = pow(10, floor(log10(noise)) - 1);
        noise = ceil(noise * 1.001 / unit) * unit;
    } while (noise <= SHERD__PRIVACY_NOISE_MAX && times * cost_of(t, noise) > budget);
    return noise;
}

/* Warns that nodes with the preset --epsilon end the training before its last round. An example is
 * in one round of each epoch. Only nodes know what earlier trainings have spent. */
static void warn_budget(const sherd_training *t)
{
    const sherd__training_secure *s = &t->secure;
    const sherd__policy usual = SHERD__POLICY_DEFAULT;
    if (t->o.simulate || !(t->o.noise > 0)) return;
    uint64_t windows = (s->places + s->rows - 1) / s->rows,
             rounds = sherd__trainer_steps(t->trainer);
    double budget = sherd__privacy_rho(usual.epsilon, usual.delta), cost = cost_of(t, t->o.noise),
           times = (double)(rounds / windows + (rounds % windows != 0));
    if (times * cost <= budget) return;
    double noise = noise_for(t, times, budget), paid = floor(budget / cost);
    char fewer[64] = "", more[64] = "choose fewer epochs";
    if (noise <= SHERD__PRIVACY_NOISE_MAX)
        snprintf(more, sizeof more, "choose --noise %.10g or more", noise);
    if (paid > 0) snprintf(fewer, sizeof fewer, ", or --epochs %.0f", paid);
    sherd__training_log(t, SHERD_LOG_WARN,
                        "with --noise %g, nodes with the preset --epsilon (%g) end this training "
                        "after %.0f of %" PRIu64 " rounds, which cost epsilon %.3g in all; %s%s",
                        t->o.noise, usual.epsilon, paid * (double)windows, rounds,
                        sherd__privacy_epsilon(times * cost, usual.delta), more, fewer);
}

/* A round has the same number of places at each node, at least one. */
static int check_batch(const sherd_training *t, sherd_diag *d)
{
    uint64_t batch = t->recipe->recipe.batch, nodes = t->o.nodes;
    const sherd__policy usual = SHERD__POLICY_DEFAULT;
    if (batch == 0 || batch >= nodes) return SHERD_OK;
    char hint[128];
    snprintf(hint, sizeof hint,
             "choose --batch %" PRIu64 " or more; nodes with the preset --min-rows need %" PRIu64,
             nodes, usual.rows_min * nodes);
    return sherd__fail(d, SHERD_EINVAL, hint,
                       "a batch of %" PRIu64 " is too small for secure sums of %" PRIu64
                       " nodes: each node has at least one place in a round",
                       batch, nodes);
}

/* Computes places and rounds from options and the number of nodes only. */
static void plan_places(sherd_training *t)
{
    sherd__training_secure *s = &t->secure;
    uint64_t nodes = t->o.nodes, batch = t->recipe->recipe.batch, all = t->data->train.x.rows;
    s->places = t->o.simulate ? all / nodes + (all % nodes != 0) : t->o.examples;
    uint64_t rows = batch / nodes + (batch % nodes != 0);
    s->rows = rows == 0 || rows > s->places ? s->places : rows;
    warn_rows(t);
}

/* Makes a data set that repeats one row of zeros. It has as many rows as the loop needs for an
 * epoch with one step per round, in batches that validation can use. */
static int make_stand_in(sherd_training *t, size_t width, sherd_diag *d)
{
    sherd__training_secure *s = &t->secure;
    sherd__dataset *x = &s->stand_in;
    size_t inputs = t->data->inputs, steps = (size_t)((s->places + s->rows - 1) / s->rows);
    s->stand_in_batch = s->rows < VALIDATION_BATCH ? (size_t)s->rows : VALIDATION_BATCH;
    if (steps >= UINT32_MAX / s->stand_in_batch) s->stand_in_batch = 1;
    x->owned[0] = sherd__calloc(inputs, sizeof(double));
    x->owned[1] = sherd__calloc(width, sizeof(double));
    if (!x->owned[0] || !x->owned[1]) return sherd__fail_memory(d, "the training");
    x->x = sherd_view_c(x->owned[0], SHERD_F64, 1, inputs);
    x->x.rows = steps * s->stand_in_batch;
    x->x.row_stride = 0;
    x->width = width;
    bool values = t->o.simulate ? !t->data->train.targets.labels : t->recipe->recipe.target_values;
    if (values) x->targets.values = x->owned[1];
    else x->targets.labels = x->owned[1];
    x->classes = values ? 0 : width;
    return SHERD_OK;
}

int sherd__training_secure_data(sherd_training *t, const sherd_data_source *from, size_t width,
                                sherd_diag *d)
{
    if (t->recipe->recipe.standardise && !t->o.simulate)
        return sherd__fail(d, SHERD_EINVAL,
                           "standardise the files of the nodes by means that all of them know, or "
                           "use divide_inputs",
                           "standardise = yes: only the nodes have the examples, and their means "
                           "are not part of a secure sum");
    int err = check_batch(t, d);
    if (err) return err;
    err = t->o.simulate
              ? sherd__data_load(&t->data, t->recipe, from, width, t->seed, d)
              : sherd__data_none(&t->data, t->recipe, width, "the nodes' own examples", d);
    if (err) return err;
    plan_places(t);
    err = make_stand_in(t, width, d);
    if (!err && !t->o.simulate) t->data->train.targets = t->secure.stand_in.targets;
    return err;
}

int sherd__training_secure_trainer(sherd_training *t, sherd_diag *d)
{
    sherd__training_secure *s = &t->secure;
    sherd__recipe r = t->recipe->recipe;
    r.batch = s->stand_in_batch;
    r.order = SHERD__ORDER_GIVEN;
    /* Simulated nodes hide nothing and have new keys each time, so no list can identify them. */
    int err = t->o.simulate ? SHERD_OK : sherd__training_keep_sums(t, &s->sums, d);
    if (!err)
        err = sherd__trainer_new(&t->trainer, &r, &s->stand_in, &t->data->validation, t->seed, d);
    if (!err) warn_budget(t);
    return err;
}

int sherd__training_secure_open(sherd_training *t, const sherd__gradients_options *g, sherd_diag *d)
{
    sherd__training_secure *s = &t->secure;
    sherd__summer summer;
    assert(t->cluster && "options without nodes are refused");
    sherd__secure_options o = { .recipe = &t->recipe->recipe,
                                .colluding = t->o.colluding,
                                .survivors = t->o.survivors,
                                .rows = s->rows,
                                .places = s->places,
                                .clip = t->o.clip,
                                .noise = t->o.noise,
                                .deal = t->o.simulate ? &t->data->train : NULL,
                                .sums = s->sums };
    int err = sherd__secure_open(&summer, t->cluster, &o, d);
    if (err) return err;
    const sherd__train_state *state = sherd__trainer_state(t->trainer);
    err = sherd__stepper_summed(&t->stepper, g, summer, state->step_examples, state->step_cost, d);
    if (err) summer.ops->free(summer.ctx);
    else s->summer = summer;
    s->opened = !err;
    return err;
}

void sherd__training_secure_name(const sherd_training *t, char *out, size_t size)
{
    const sherd__training_secure *s = &t->secure;
    int at = snprintf(out, size,
                      "secure sums of gradients, float64, %" PRIu64 " of %" PRIu64
                      " examples of each node",
                      s->rows, s->places);
    if (t->o.clip > 0 && at > 0 && (size_t)at < size)
        snprintf(out + at, size - (size_t)at, ", clipped at %.17g", t->o.clip);
}

static sherd__secure_spent spent(const sherd_training *t)
{
    const sherd__training_secure *s = &t->secure;
    return s->summer.ops ? sherd__secure_spent_of(&s->summer) : s->spent;
}

double sherd__training_epsilon(const sherd_training *t)
{
    if (!t->secure.opened) return NAN;
    double epsilon = sherd__privacy_epsilon(spent(t).rho, t->o.delta);
    return isfinite(epsilon) ? epsilon : NAN;
}

int sherd_training_secure_get(sherd_training *t, sherd_train_secure *out, sherd_diag *d)
{
    const sherd__training_secure *s = &t->secure;
    int err = t->o.aggregate == SHERD_AGGREGATE_SECURE
                  ? sherd__result_check(out, "sherd_train_secure", d)
                  : sherd__fail(d, SHERD_EINVAL, NULL, "this training has no secure sums");
    if (err) return err;
    const sherd__gradients_stats *x = sherd__training_stats(t);
    const sherd_train_secure r = { .simulated = t->o.simulate,
                                   .colluding = t->o.colluding,
                                   .updates = x->updates,
                                   .parts = x->parts,
                                   .dropped = x->dropped,
                                   .rescaled = x->rescaled,
                                   .rounds = spent(t).rounds,
                                   .rows = s->rows,
                                   .places = s->places,
                                   .clip = t->o.clip,
                                   .noise = t->o.noise,
                                   .epsilon = sherd__training_epsilon(t),
                                   .delta = t->o.delta };
    sherd__result_write(out, &r, sizeof r);
    return SHERD_OK;
}

void sherd__training_secure_close(sherd_training *t)
{
    sherd__dataset_fini(&t->secure.stand_in);
    sherd__sumlist_close(t->secure.sums);
    t->secure.sums = NULL;
}
