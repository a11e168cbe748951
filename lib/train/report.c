/* Figures of a training. During a run they are the current ones, afterwards those of its end. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/options.h"
#include "lib/train/training.h"
#include "scheduler/cluster/internal.h"

#define EPOCHS_FIRST 64u
#define INSTANT_S 1e-9 /* keeps rates finite */

static bool running(const sherd_training *t)
{
    return t->stepper.ops;
}

sherd__network_traffic sherd__training_traffic(const sherd_training *t)
{
    if (!t->cluster) return t->traffic;
    sherd__network_traffic x = sherd__network_traffic_of(t->cluster);
    x.bytes_out -= t->before.bytes_out;
    x.bytes_in -= t->before.bytes_in;
    return x;
}

const sherd__gradients_stats *sherd__training_stats(const sherd_training *t)
{
    return running(t) ? sherd__gradients_stats_of(&t->stepper) : &t->stats;
}

sherd__training_pace sherd__training_pace_of(sherd_training *t)
{
    sherd__training_pace p = { .times = 0 };
    if (!running(t)) return t->pace;
    if (!t->cluster) return p;
    const sherd__slowest s = t->allreduce.lead.ops ? sherd__training_allreduce_slowest(t)
                                                   : sherd__training_stats(t)->slowest;
    if (!s.node) return p;
    snprintf(p.node, sizeof p.node, "%s", sherd__cluster_node(t->cluster, s.node - 1).name);
    p.times = s.times;
    return p;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static int make_room(sherd_training *t, sherd_diag *d)
{
    if (t->epochs_len < t->epochs_cap) return SHERD_OK;
    size_t cap = t->epochs_cap > 0 ? 2 * t->epochs_cap : EPOCHS_FIRST;
    void *more = sherd__realloc(t->epochs, cap * sizeof *t->epochs);
    if (!more) return sherd__fail_memory(d, "%zu epochs", cap);
    t->epochs = more;
    t->epochs_cap = cap;
    return SHERD_OK;
}

int sherd__training_add_epoch(sherd_training *t, const sherd__train_epoch *e,
                              const sherd_epoch **out, sherd_diag *d)
{
    int err = make_room(t, d);
    if (err) return err;
    sherd__network_traffic x = sherd__training_traffic(t);
    double now = sherd__clock_s(), epsilon = sherd__training_epsilon(t);
    sherd_epoch *mine = &t->epochs[t->epochs_len++];
    *mine = (sherd_epoch){ .epoch = e->epoch,
                           .step = e->step,
                           .loss = e->cost,
                           .accuracy = e->accuracy,
                           .validation_loss = e->validation_cost,
                           .validation_accuracy = e->validation_accuracy,
                           .rate = e->rate,
                           .epsilon = epsilon,
                           .delta = isnan(epsilon) ? NAN : t->o.delta,
                           .seconds = now - t->began,
                           .examples_per_second = (double)(t->examples - t->reported_examples) /
                                                  (now - t->reported_at + INSTANT_S),
                           .nodes = x.up,
                           .bytes_out = x.bytes_out,
                           .bytes_in = x.bytes_in };
    sherd__training_check_float64(t, &mine->float64_accuracy, &mine->float64_validation_accuracy);
    t->reported_at = now;
    t->reported_examples = t->examples;
    *out = mine;
    return SHERD_OK;
}

const sherd_epoch *sherd_training_epoch_at(const sherd_training *t, size_t i)
{
    return i < t->epochs_len ? &t->epochs[i] : NULL;
}

/* ---- reports --------------------------------------------------------------------------------- */

static const char *by(const sherd_training *t)
{
    if (t->o.by == SHERD_BY_PRODUCTS) return "products";
    switch (t->o.aggregate) {
    case SHERD_AGGREGATE_SECURE: return "summed";
    case SHERD_AGGREGATE_RING:
    case SHERD_AGGREGATE_HALVING_DOUBLING: return "circle";
    default: return "gradients";
    }
}

static const char *sees(const sherd_training *t)
{
    if (t->o.by == SHERD_BY_PRODUCTS) return sherd__network_products_sees(&t->products);
    if (t->o.aggregate == SHERD_AGGREGATE_SECURE)
        return t->o.simulate ? "simulated secure aggregation of data sent from this machine: "
                               "nothing is hidden"
                             : "secure aggregation: sums of gradients on this machine, weights in "
                               "clear at nodes";
    if (t->among.sum) return "by all processes, which see examples and weights in clear";
    return t->o.nodes ? "by gradients: nodes see examples and weights in clear"
                      : "all data stay on this machine";
}

/* Sets the figures of the present epoch, or of the last one. */
static void set_figures(sherd_training *t, sherd_train_report *r)
{
    const sherd__train_state *s = sherd__trainer_state(t->trainer);
    const sherd__training_best *b = &t->best;
    r->stopped_early = !running(t) && sherd__training_patience_over(t);
    r->best_step = (uint64_t)b->step;
    r->best_loss = b->cost;
    r->best_accuracy = b->accuracy;
    r->loss = s->seen > 0 ? s->cost / (double)s->seen : s->last_cost;
    r->accuracy = s->seen > 0 && t->labels ? (double)s->hits / (double)s->seen : s->last_accuracy;
}

int sherd_training_report_get(sherd_training *t, sherd_train_report *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_train_report", d);
    if (err) return err;
    const sherd__train_order *order = sherd__trainer_order(t->trainer);
    uint64_t steps = sherd__trainer_steps(t->trainer);
    sherd__network_traffic x = sherd__training_traffic(t);
    sherd_train_report r = { .by = by(t),
                             .nodes = t->o.nodes,
                             .nodes_up = x.up,
                             .among = t->among.name,
                             .processes = t->among.count,
                             .bits = t->products.bits,
                             .parameters = sherd__network_count(sherd__trainer_network(t->trainer)),
                             .batch = order->batch,
                             .step = sherd__trainer_state(t->trainer)->step,
                             .first_step = t->first_step,
                             .steps = steps,
                             .epochs = (steps + order->per_epoch - 1) / order->per_epoch,
                             .examples = t->examples,
                             .seconds = running(t) ? sherd__clock_s() - t->began : t->seconds,
                             .bytes_out = x.bytes_out,
                             .bytes_in = x.bytes_in,
                             .epochs_checked = sherd__training_checked(t),
                             .sees = sees(t),
                             .seed_known = t->seed_known,
                             .seed_number = t->seed_known ? t->seed_number : 0,
                             .steps_per_epoch = order->per_epoch,
                             .steps_per_report = sherd__trainer_interval(t->trainer) };
    set_figures(t, &r);
    sherd__training_meta_report(t, &r);
    r.examples_per_second = (double)r.examples / (r.seconds + INSTANT_S);
    if (t->o.nodes && t->o.by == SHERD_BY_PRODUCTS)
        r.scheme = sherd_scheme_get(t->products.opt.scheme)->name;
    sherd__result_write(out, &r, sizeof r);
    return SHERD_OK;
}

int sherd_training_gradients_get(sherd_training *t, sherd_train_gradients *out, sherd_diag *d)
{
    if (t->o.by != SHERD_BY_GRADIENTS || t->o.aggregate == SHERD_AGGREGATE_SECURE)
        return sherd__fail(d, SHERD_EINVAL, NULL, "this training is not by gradients");
    int err = sherd__result_check(out, "sherd_train_gradients", d);
    if (err) return err;
    const sherd__gradients_stats *s = sherd__training_stats(t);
    const sherd__training_pace pace = sherd__training_pace_of(t);
    bool alone = !t->o.nodes && !t->among.sum;
    sherd_train_gradients r = {
        .shards = t->o.shards,
        .async = t->o.async,
        .in_process = alone,
        .threads = alone ? sherd__training_threads(t) : 0,
        .local_steps = t->o.local_steps,
        .updates = s->updates,
        .parts = s->parts,
        .staleness_mean = s->parts ? (double)s->staleness_sum / (double)s->parts : 0,
        .staleness_most = s->staleness_most,
        .dropped = s->dropped,
        .rescaled = s->rescaled,
        .pace_times = pace.times,
    };
    memcpy(r.pace_node, pace.node, sizeof r.pace_node);
    sherd__result_write(out, &r, sizeof r);
    return SHERD_OK;
}
