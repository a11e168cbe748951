/*
 * Predicts the time of a step over nodes, from the bytes that it transfers and the work that it
 * computes, and compares it with that of a step on this machine. By products: the sum of the
 * forecasts of a step's products, each with fresh operands; operands that stay at the nodes make
 * some of them faster. By gradients: all parameters are sent to each node in each step, and as many
 * numbers come back.
 */
#include <stdio.h>

#include "core/cpu.h"
#include "lib/train/training.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/plan/cost.h"
#include "scheduler/plan/encoding.h"
#include "sherd/forecast.h"

#define SLOWER 3.0      /* times this machine's step: less is not worth a warning, ... */
#define LONGER_S 5      /* ... nor is a training that takes so little longer ... */
#define SLOWER_NOTE 1.5 /* ... but a line for those who ask for details */

/* Adds the predicted time of A (n x k) times B (k x m) to *sum. */
static int add_product(double *sum, const sherd_training *t, const sherd_forecast_options *f,
                       size_t n, size_t k, size_t m)
{
    const sherd_view a = { .rows = n, .cols = k, .dtype = SHERD_F64 };
    const sherd_view b = { .rows = k, .cols = m, .dtype = SHERD_F64 };
    sherd_forecast x = { .size = sizeof x };
    int err = sherd_forecast_multiply(a, b, &t->products.opt, f, &x, NULL);
    *sum += x.seconds;
    return err;
}

/* Outputs, gradients of weights and, except in the lowest layer, gradients of inputs. */
static double by_products(const sherd_training *t, const sherd_forecast_options *f)
{
    const sherd__network *net = sherd__trainer_network(t->trainer);
    size_t batch = sherd__trainer_order(t->trainer)->batch;
    bool lowest = true;
    double sum = 0;
    int err = SHERD_OK;
    for (size_t i = 0; i < sherd__network_len(net) && !err; i++) {
        const sherd__layer *l = sherd__network_layer(net, i);
        size_t rows = batch * l->out.height * l->out.width;
        if (l->cols == 0) continue;
        err = add_product(&sum, t, f, rows, l->rows, l->cols);
        if (!err) err = add_product(&sum, t, f, l->rows, rows, l->cols);
        if (!err && !lowest) err = add_product(&sum, t, f, rows, l->cols, l->rows);
        lowest = false;
    }
    return err ? 0 : sum;
}

static double by_gradients(const sherd_training *t, const sherd_forecast_options *f)
{
    const sherd__network *net = sherd__trainer_network(t->trainer);
    size_t batch = sherd__trainer_order(t->trainer)->batch, tiers = 0;
    double products = 0, parameters = 0;
    sherd__nodes nodes;
    sherd__cost cost;
    for (size_t i = 0; i < sherd__network_len(net); i++) {
        const sherd__layer *l = sherd__network_layer(net, i);
        double places = (double)batch * (double)l->out.height * (double)l->out.width;
        if (l->cols == 0) continue;
        products += places * (double)l->rows * (double)l->cols * (tiers > 0 ? 3 : 2);
        parameters += ((double)l->rows + 1) * (double)l->cols;
        tiers++;
    }
    sherd__cluster_nodes(t->cluster, &nodes);
    uint64_t bytes = (uint64_t)(parameters * sizeof(double)) * nodes.count;
    if (!(nodes.gflops > 0) || nodes.count == 0) return 0;
    sherd__cost_predict(&cost, &(sherd__cost_input){ .bytes_out = bytes,
                                                     .bytes_in = bytes,
                                                     .tasks = tiers * nodes.count,
                                                     .flops = 2 * products,
                                                     .busiest = 1.0 / nodes.count,
                                                     .node_gflops = nodes.gflops,
                                                     .node_threads = nodes.threads,
                                                     .cores = sherd__cpu_usable(),
                                                     .local = !nodes.remote,
                                                     .session_rate = f->rates.session,
                                                     .link_rate = f->rates.link,
                                                     .latency_s = f->latency });
    return cost.seconds;
}

/* Returns whether the time of a step depends on this machine and its links alone. Between nodes of
 * an all-reduce group there are links that are not measured here. */
static bool comparable(const sherd_training *t)
{
    bool plain = t->o.aggregate == SHERD_AGGREGATE_PLAIN && !t->o.async && t->o.local_steps == 0;
    bool apart = !sherd_cluster_simulated(t->cluster);
    if (t->o.by == SHERD_BY_GRADIENTS && !plain) return false;
    return !(apart && sherd__cluster_record_dir(t->cluster));
}

static const char *step_text(double seconds, char out[32])
{
    if (seconds < 0.995) snprintf(out, 32, seconds < 0.0995 ? "%.2g ms" : "%.0f ms", 1e3 * seconds);
    else snprintf(out, 32, "%.2g s", seconds);
    return out;
}

void sherd__training_compare_pace(const sherd_training *t)
{
    sherd_forecast_options f = { .size = sizeof f,
                                 .cluster = t->cluster,
                                 .no_measurements = true,
                                 .rates = { .session = sherd__link_rate(true) },
                                 .hooks = { .interrupted = t->outer.interrupted,
                                            .ctx = t->outer.ctx } };
    char text[2][32];
    if (!t->outer.log || !t->cluster || !comparable(t)) return;
    double here = sherd__training_step_here(t), left = (double)sherd__training_steps_left(t);
    if (!(here > 0) || sherd_forecast_probe(&f, NULL)) return;
    double there = t->o.by == SHERD_BY_GRADIENTS ? by_gradients(t, &f) : by_products(t, &f);
    if (there < SLOWER_NOTE * here || left < 1) return;
    bool much = there >= SLOWER * here && (there - here) * left >= LONGER_S;
    sherd__training_log(t, much ? SHERD_LOG_WARN : SHERD_LOG_INFO,
                        "a step takes about %s over these nodes and %s on this machine alone: "
                        "leave the nodes out if they are not needed for privacy or memory, or use "
                        "larger batches",
                        step_text(there, text[0]), step_text(here, text[1]));
}
