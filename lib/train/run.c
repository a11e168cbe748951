/*
 * Runs a training: opens multiplier and stepper, calls the loop of learn/train.h, and closes all of
 * it, so that the cluster is free for other work afterwards.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/diag.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "lib/train/training.h"
#include "scheduler/cluster/internal.h"

#define GRACE_S 0.5 /* after the end of the time, a step under way is interrupted */

/* ---- interruption ---------------------------------------------------------------------------- */

static bool late(const sherd_training *t)
{
    return sherd__clock_s() > t->deadline;
}

/* Hooks of calls within a step. */

static bool interrupted(void *ctx)
{
    sherd_training *t = ctx;
    return sherd__clock_s() > t->deadline + GRACE_S || sherd__hooks_interrupted(&t->outer);
}

static void log_line(void *ctx, sherd_log_level level, const char *text)
{
    sherd_training *t = ctx;
    if (t->outer.log) t->outer.log(t->outer.ctx, level, text);
}

/* Called between steps. */
static bool stop_asked(void *ctx)
{
    sherd_training *t = ctx;
    int why = late(t)                               ? SHERD_ETIMEOUT
              : sherd__hooks_interrupted(&t->outer) ? SHERD_EINTERRUPTED
                                                    : SHERD_OK;
    t->stopped = sherd__training_stop(t, why, &t->stopped_by);
    return t->stopped != 0;
}

/* ---- callbacks of the loop ------------------------------------------------------------------- */

static void report_progress(sherd_training *t)
{
    const sherd__train_state *s = sherd__trainer_state(t->trainer);
    uint64_t steps = sherd__trainer_steps(t->trainer);
    if (!sherd__hooks_due(&t->hooked, s->step == steps)) return;
    sherd__network_traffic x = sherd__training_traffic(t);
    sherd__hooks_progress(&t->hooked, (sherd_progress){ .done = s->step,
                                                        .total = steps,
                                                        .bytes_out = x.bytes_out,
                                                        .bytes_in = x.bytes_in,
                                                        .nodes_up = x.up });
}

static int on_step(void *ctx, const sherd__step *s, const sherd__step_result *r, sherd_diag *d)
{
    sherd_training *t = ctx;
    (void)d;
    t->examples += r->examples > 0 ? r->examples : s->len;
    if (isnan(t->first_cost)) t->first_cost = r->cost;
    sherd__training_warn_slow(t);
    report_progress(t);
    return SHERD_OK;
}

static int on_epoch(void *ctx, const sherd__train_epoch *e, bool report, sherd_diag *d)
{
    sherd_training *t = ctx;
    const sherd_epoch *figures;
    int err = t->check ? sherd__training_check_epoch(t, e, report, d) : SHERD_OK;
    if (!err && report) err = sherd__training_add_epoch(t, e, &figures, d);
    if (!err && report) err = sherd__training_patience_judge(t, e, d);
    if (err || !report || !t->o.on_epoch) return err;
    sherd_diag mine = { 0 };
    err = t->o.on_epoch(t->o.ctx, figures, &mine);
    if (!err) return SHERD_OK;
    return sherd__fail(d, err, mine.hint[0] ? mine.hint : NULL, "%s",
                       mine.message[0] ? mine.message : "ended by the callback of an epoch");
}

/* ---- the run --------------------------------------------------------------------------------- */

static int may_run(const sherd_training *t, const sherd_cluster *c, sherd_diag *d)
{
    uint32_t nodes = c ? sherd_cluster_size(c) : 0;
    if (t->ran)
        return sherd__fail(d, SHERD_EINVAL, "make another one, which may resume its checkpoints",
                           "a training runs once");
    if (nodes == t->o.nodes) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "set `nodes` in the options to the size of the cluster",
                       "a training for %u nodes was given %u", t->o.nodes, nodes);
}

/* Uses the cluster's hooks if the caller has none. */
static void choose_hooks(sherd_training *t)
{
    const sherd_hooks *own = t->cluster ? sherd__cluster_hooks(t->cluster) : NULL;
    t->outer = own && !sherd__hooks_any(&t->o.hooks) ? *own : t->o.hooks;
}

/* Passes the hooks to the calls of a step. */
static void set_hooks(sherd_training *t)
{
    const sherd_hooks inner = { .interrupted = interrupted, .log = log_line, .ctx = t };
    if (!t->cluster) return;
    sherd__cluster_call(t->cluster, &inner);
    if (!sherd__hooks_any(&t->products.opt.hooks)) t->products.opt.hooks = inner;
}

static void derive(uint8_t out[32], const uint8_t seed[32], const char *what)
{
    sherd__seeded state;
    sherd__entropy e = sherd__train_entropy(&state, seed, what, 0);
    e.fill(e.ctx, out, 32);
    sherd__wipe(&state, sizeof state);
}

/* Makes the multiplier, the stepper and the first checkpoint. */
static int open_run(sherd_training *t, sherd_diag *d)
{
    uint8_t products[32];
    bool gradients = t->o.by == SHERD_BY_GRADIENTS;
    derive(products, t->secret, "products");
    derive(t->products.rounding, t->seed, "rounding");
    int err = sherd__training_meta_record(t, d);
    if (!err)
        err = sherd__network_products_open(&t->products, gradients ? NULL : t->cluster, products,
                                           d);
    sherd__wipe(products, sizeof products);
    if (!err) err = sherd__training_record_rows(t, d);
    if (!err && gradients) err = sherd__training_gradients_open(t, d);
    else if (!err)
        err = sherd__stepper_products(&t->stepper, sherd__trainer_network(t->trainer),
                                      sherd__trainer_optimiser(t->trainer), t->products.engine, d);
    if (!err && t->o.check) err = sherd__training_check_new(t, d);
    return err ? err : sherd__training_keep_begin(t, d);
}

/* Returns the reason for which a run ended early. */
static int broken_off(const sherd_training *t, int err, const sherd_diag *why, sherd_diag *d)
{
    if (err == SHERD_EINTERRUPTED && t->stopped && t->stopped_by.code)
        return sherd__fail(d, t->stopped, "it can be resumed from its last checkpoint, if any",
                           "%s; %s", t->stopped_by.message, why->message);
    if (err == SHERD_EINTERRUPTED && (t->stopped ? t->stopped == SHERD_ETIMEOUT : late(t)))
        return sherd__fail(d, SHERD_ETIMEOUT, NULL, "%s", why->message);
    if (err == SHERD_EINTERRUPTED && t->keep)
        return sherd__fail(d, SHERD_ESTOPPED, "--resume continues it", "%s", why->message);
    return sherd__fail(d, err, why->hint, "%s", why->message);
}

/* Warns of divergence, which may end in a finite cost. Steps have different examples, hence the
 * factor of 2. The first example may happen to be predicted well before training. With classes, a
 * cost up to twice that of guessing therefore does not count as divergence. */
static void warn_of_rise(const sherd_training *t)
{
    double guess = t->recipe->recipe.loss == SHERD__LOSS_CROSS_ENTROPY
                       ? log((double)sherd__network_width(sherd__trainer_network(t->trainer)))
                       : 0;
    double last = sherd__trainer_state(t->trainer)->last_cost;
    if (!(last > 2 * t->first_cost && last > 2 * guess)) return;
    sherd__training_log(t, SHERD_LOG_WARN,
                        "the loss rose from %.5g in the first step to %.5g in the last epoch: a "
                        "smaller rate may help, or inputs scaled to about 1",
                        t->first_cost, last);
}

static int train(sherd_training *t, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    sherd__train_calls calls = { .step = on_step,
                                 .epoch = on_epoch,
                                 .interrupted = stop_asked,
                                 .enough = sherd__training_patience_over,
                                 .figures = !t->check && !t->o.epoch_model,
                                 .ctx = t,
                                 .keep = t->products.nodes || t->products.bits > 0 };
    if (t->keep) {
        calls.checkpoint = sherd__training_keep_add;
        /* An epoch may be a step of a millisecond. Writing and syncing a file for each would then
         * take most of the time. */
        calls.checkpoint_every = t->o.checkpoint_every ? t->o.checkpoint_every
                                                       : sherd__trainer_interval(t->trainer);
    }
    int err = sherd__trainer_run(t->trainer, t->stepper, t->products.engine, &calls, &mine);
    t->seconds = sherd__clock_s() - t->began;
    if (!err) warn_of_rise(t);
    if (!err) sherd__training_patience_end(t);
    if (err) err = broken_off(t, err, &mine, d);
    if (t->stopped && !t->stopped_by.code) /* the others end after the first's checkpoint */
        (void)sherd__training_stop(t, 0, NULL);
    return err;
}

/* Stores the figures that are asked for later, and frees all that uses the cluster. */
static void close_run(sherd_training *t)
{
    if (t->stepper.ops && t->o.by == SHERD_BY_GRADIENTS) {
        t->stats = *sherd__gradients_stats_of(&t->stepper);
        t->pace = sherd__training_pace_of(t);
    }
    if (t->secure.summer.ops) t->secure.spent = sherd__secure_spent_of(&t->secure.summer);
    t->secure.summer = (sherd__summer){ 0 };
    sherd__training_allreduce_end(t);
    t->traffic = sherd__training_traffic(t);
    sherd__stepper_free(t->stepper);
    t->stepper = (sherd__stepper){ 0 };
    sherd__network_products_close(&t->products);
    if (t->cluster) sherd__cluster_call(t->cluster, NULL);
    t->cluster = NULL;
}

int sherd_training_run(sherd_training *t, sherd_cluster *c, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    int err = may_run(t, c, d);
    if (!err && c) err = sherd__training_meta_domains(t, c, d);
    if (err) return err;
    t->ran = true;
    t->cluster = c;
    t->began = sherd__clock_s();
    t->deadline = t->o.timeout_ms ? t->began + t->o.timeout_ms * 1e-3 : INFINITY;
    choose_hooks(t);
    sherd__training_compare_pace(t); /* it may compute products of its own */
    set_hooks(t);
    t->before = sherd__network_traffic_of(c);
    err = open_run(t, &mine);
    if (err)
        err = sherd__fail(d, err == SHERD_EINTERRUPTED && late(t) ? SHERD_ETIMEOUT : err, mine.hint,
                          "%s", mine.message);
    t->hooked = sherd__hooks_begin(&t->outer);
    t->began = t->reported_at = sherd__clock_s();
    if (!err) err = train(t, d);
    close_run(t);
    return err;
}
