/*
 * The training loop. Its only state is sherd__train_state: rows depend on the step's number, rates
 * on the schedule, and the figures of a window on sums in the state. Batches are gathered unless
 * they are consecutive rows of the data. If the multiplier keeps the data, they are kept in the
 * order in which batches use them, so that a batch is a range of rows.
 */
#include "learn/train.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"

struct sherd__trainer {
    sherd__recipe recipe;
    sherd__dataset data, validation; /* borrowed */
    sherd__network *network;
    sherd__optimiser optimiser;
    sherd__train_order order;
    sherd__train_state state;
    uint64_t steps;
    uint32_t *rows;   /* of the step */
    sherd__rows list; /* that `rows` is a range of */
    uint8_t *x;       /* the rows of the step, gathered */
    uint8_t *targets;
    uint64_t gathered;                  /* fixed orders: the batch that x holds; UINT64_MAX: no
                                           batch */
    sherd_kept *kept, *kept_validation; /* the data, during a run */
};

/* ---- creation -------------------------------------------------------------------------------- */

static bool fixed(const sherd__train_order *o)
{
    return o->order == SHERD__ORDER_GIVEN || o->order == SHERD__ORDER_BATCHES;
}

static size_t target_size(const sherd__dataset *s)
{
    return s->targets.labels ? sizeof *s->targets.labels : s->width * sizeof *s->targets.values;
}

static bool take_memory(sherd__trainer *t)
{
    size_t row = t->data.x.cols * sherd_dtype_size(t->data.x.dtype), x, targets, rows;
    if (!sherd__mul(t->order.batch, row, &x) ||
        !sherd__mul(t->order.batch, target_size(&t->data), &targets) ||
        !sherd__mul(t->order.batch, sizeof *t->rows, &rows))
        return false;
    t->rows = sherd__alloc(rows);
    if (!t->rows) return false;
    if (t->order.order == SHERD__ORDER_GIVEN) return true; /* batches are views of the data */
    t->x = sherd__alloc_large(x);
    t->targets = sherd__alloc(targets);
    return t->x && t->targets;
}

int sherd__trainer_new(sherd__trainer **out, const sherd__recipe *r, const sherd__dataset *data,
                       const sherd__dataset *validation, const uint8_t seed[32], sherd_diag *d)
{
    sherd__seeded state;
    *out = NULL;
    sherd__trainer *t = sherd__calloc(1, sizeof *t);
    if (!t) return sherd__fail_memory(d, "the training");
    t->recipe = *r;
    t->data = *data;
    if (validation) t->validation = *validation;
    t->gathered = UINT64_MAX;
    t->state.last_cost = t->state.last_accuracy = t->state.last_validation = NAN;
    int err = sherd__train_order_init(&t->order, r->order, data->x.rows, r->batch, seed, d);
    if (err == 0) err = sherd__recipe_network(r, t->order.batch, &t->network, d);
    sherd__optimiser_spec spec = r->optimiser;
    spec.dtype = r->precision;
    if (err == 0)
        err = sherd__optimiser_init(&t->optimiser, &spec, sherd__network_count(t->network), d);
    size_t steps = (size_t)r->steps;
    if (err == 0 && steps == 0 && !sherd__mul((size_t)r->epochs, t->order.per_epoch, &steps))
        err = sherd__fail(d, SHERD_EINVAL, "fewer epochs",
                          "%" PRIu64 " epochs of %zu steps are too many", r->epochs,
                          (size_t)t->order.per_epoch);
    t->steps = steps;
    if (err == 0 && !take_memory(t))
        err = sherd__fail_memory_hint(d, "a smaller batch needs less", "batches of %zu examples",
                                      t->order.batch);
    if (err != 0) {
        sherd__trainer_free(t);
        return err;
    }
    sherd__entropy e = sherd__train_entropy(&state, seed, "weights", 0);
    sherd__network_draw(t->network, &e, r->weights);
    sherd__wipe(&state, sizeof state);
    *out = t;
    return SHERD_OK;
}

void sherd__trainer_free(sherd__trainer *t)
{
    if (!t) return;
    sherd__network_free(t->network);
    sherd__optimiser_fini(&t->optimiser);
    sherd__train_order_fini(&t->order);
    sherd__free(t->rows);
    sherd__free(t->x);
    sherd__free(t->targets);
    sherd__free(t);
}

sherd__network *sherd__trainer_network(sherd__trainer *t)
{
    return t->network;
}

sherd__optimiser *sherd__trainer_optimiser(sherd__trainer *t)
{
    return &t->optimiser;
}

sherd__train_order *sherd__trainer_order(sherd__trainer *t)
{
    return &t->order;
}

sherd__train_state *sherd__trainer_state(sherd__trainer *t)
{
    return &t->state;
}

uint64_t sherd__trainer_steps(const sherd__trainer *t)
{
    return t->steps;
}

uint64_t sherd__trainer_window(const sherd__trainer *t)
{
    return t->recipe.report_steps ? t->recipe.report_every : t->order.per_epoch;
}

uint64_t sherd__trainer_interval(const sherd__trainer *t)
{
    uint64_t every = t->recipe.report_steps ? 1 : t->recipe.report_every;
    return every <= UINT64_MAX / sherd__trainer_window(t) ? every * sherd__trainer_window(t)
                                                          : UINT64_MAX;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Gathers the step's rows; values are copied unchanged. */
static void gather(sherd__trainer *t, size_t len)
{
    sherd_view x = t->data.x;
    size_t size = sherd_dtype_size(x.dtype), each = target_size(&t->data);
    const uint8_t *targets = t->data.targets.labels ? (const uint8_t *)t->data.targets.labels
                                                    : (const uint8_t *)t->data.targets.values;
    for (size_t i = 0; i < len; i++) {
        const uint8_t *from = (const uint8_t *)x.data +
                              (ptrdiff_t)t->rows[i] * x.row_stride * (ptrdiff_t)size;
        uint8_t *to = t->x + i * x.cols * size;
        if (x.col_stride == 1) memcpy(to, from, x.cols * size);
        else
            for (size_t c = 0; c < x.cols; c++)
                memcpy(to + c * size, from + (ptrdiff_t)c * x.col_stride * (ptrdiff_t)size, size);
        memcpy(t->targets + i * each, targets + t->rows[i] * each, each);
    }
}

static sherd__batch view_batch(const sherd__trainer *t, size_t first, size_t len)
{
    sherd__dataset part = sherd__dataset_part(&t->data, first, len);
    return (sherd__batch){ .x = part.x, .targets = part.targets };
}

static sherd__batch gathered_batch(const sherd__trainer *t, size_t len)
{
    sherd__batch b = { .x = sherd_view_c(t->x, t->data.x.dtype, len, t->data.x.cols) };
    if (t->data.targets.labels) b.targets.labels = (const uint32_t *)(const void *)t->targets;
    else b.targets.values = (const double *)(const void *)t->targets;
    return b;
}

/* Prepares the rows and the batch of step `number`. */
static sherd__step prepare(sherd__trainer *t, uint64_t number, bool rows_only)
{
    sherd__step s = { .number = number,
                      .rows = t->rows,
                      .rate = sherd__schedule_rate(&t->recipe.schedule, number) };
    s.len = sherd__train_order_rows(&t->order, number, t->rows);
    t->list = sherd__train_order_list(&t->order, number, &s.first);
    s.list = &t->list;
    if (rows_only) return s;
    uint64_t batch = fixed(&t->order) ? sherd__train_order_batch(&t->order, number) : UINT64_MAX;
    if (!t->x) {
        s.batch = view_batch(t, (size_t)batch * t->order.batch, s.len);
    } else {
        if (batch == UINT64_MAX || batch != t->gathered) gather(t, s.len);
        t->gathered = batch;
        s.batch = gathered_batch(t, s.len);
    }
    if (t->kept) {
        s.batch.kept = t->kept;
        s.batch.first = (size_t)batch * t->order.batch;
    }
    return s;
}

static size_t validation_batch(const sherd__trainer *t)
{
    return t->validation.x.rows < t->order.batch ? t->validation.x.rows : t->order.batch;
}

/* Keeps the training data, in the order of batches. */
static int keep_data(sherd__trainer *t, sherd__engine e, sherd_diag *d)
{
    const uint32_t *rows = sherd__train_order_fixed(&t->order);
    sherd__dataset copy = { 0 };
    int err = SHERD_OK;
    if (!fixed(&t->order) || !sherd__network_keeps(t->network)) return SHERD_OK;
    if (rows) err = sherd__dataset_copy(&copy, &t->data, rows, t->data.x.rows, NULL, d);
    if (err == 0)
        err = sherd__network_keep(t->network, e, rows ? copy.x : t->data.x, t->order.batch,
                                  &t->kept, d);
    sherd__dataset_fini(&copy);
    return err;
}

/* Keeps the validation data in their own order. If the nodes have no room for them in addition to
   the training data, they are sent for every evaluation instead. */
static int keep_validation(sherd__trainer *t, sherd__engine e, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    if (t->validation.x.rows == 0) return SHERD_OK;
    int err = sherd__network_keep(t->network, e, t->validation.x, validation_batch(t),
                                  &t->kept_validation, &mine);
    if (err == 0 || err == SHERD_EFEWNODES) return SHERD_OK;
    return sherd__fail(d, err, mine.hint, "%s", mine.message);
}

/* ---- figures --------------------------------------------------------------------------------- */

int sherd__train_evaluate(sherd__network *n, sherd__engine e, const sherd__evaluation *of,
                          double *cost, double *accuracy, sherd_diag *d)
{
    const sherd__dataset *data = of->data;
    size_t width = sherd__network_width(n), room, bytes;
    double sum = 0, hits = 0;
    int err = SHERD_OK;
    size_t batch = of->batch < data->x.rows ? of->batch : data->x.rows;
    double *dy = sherd__mul(batch, width, &room) && sherd__mul(room, sizeof *dy, &bytes)
                     ? sherd__alloc(bytes)
                     : NULL;
    if (!dy) return sherd__fail_memory(d, "an evaluation");
    for (size_t at = 0; at < data->x.rows && err == 0; at += batch) {
        size_t len = data->x.rows - at < batch ? data->x.rows - at : batch;
        sherd__dataset part = sherd__dataset_part(data, at, len);
        sherd__batch b = { .x = part.x, .targets = part.targets, .kept = of->kept, .first = at };
        const double *y;
        double c = 0;
        if (e.begin) e.begin(e.begin_ctx, sherd__pass_of_validation(of->step, at / batch));
        err = sherd__network_forward(n, e, &b, of->recipe->validation_unbiased, &y, d);
        if (err == 0)
            err = sherd__loss_gradient(of->recipe->loss, y, len, width, part.targets, &c, dy, d);
        sum += c * (double)len;
        if (err == 0 && part.targets.labels)
            hits += (double)sherd__labels_hit(y, len, width, part.targets.labels);
        if (err == 0 && of->confusion)
            sherd__labels_confuse(y, len, width, part.targets.labels, of->confusion);
    }
    sherd__free(dy);
    if (err != 0) return err;
    *cost = sum / (double)data->x.rows;
    *accuracy = data->targets.labels ? hits / (double)data->x.rows : NAN;
    return SHERD_OK;
}

/* ---- the loop -------------------------------------------------------------------------------- */

typedef struct run {
    sherd__trainer *t;
    sherd__stepper stepper;
    sherd__engine engine;
    const sherd__train_calls *calls;
} run;

/* Adds "step 17, epoch 3: " to the error message of a step. */
static int located(const run *r, uint64_t step, int err, const sherd_diag *mine, sherd_diag *d)
{
    if (err != SHERD_ERANGE) return sherd__fail(d, err, mine->hint, "%s", mine->message);
    return sherd__fail(d, err, mine->hint, "step %" PRIu64 ", epoch %" PRIu64 ": %s", step,
                       (step - 1) / r->t->order.per_epoch + 1, mine->message);
}

/* Checks that the parameters after the last step are finite. */
static int check_params(const run *r, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    const void *params = sherd__network_params(r->t->network);
    const double *p = params;
    const float *p32 = params;
    bool f32 = sherd__network_dtype(r->t->network) == SHERD_F32;
    size_t count = sherd__network_count(r->t->network), i = 0;
    while (i < count && (f32 ? isfinite(p32[i]) : isfinite(p[i]))) i++;
    if (i == count) return SHERD_OK;
    int err = sherd__fail(&mine, SHERD_ERANGE, "a smaller rate, or inputs scaled to about 1",
                          "parameter %zu of %zu is %g: training diverged", i, count,
                          f32 ? (double)p32[i] : p[i]);
    return located(r, r->t->state.step, err, &mine, d);
}

static int make_step(run *r, double *rate, sherd_diag *d)
{
    sherd__trainer *t = r->t;
    sherd__train_state *st = &t->state;
    sherd__step_result result = { 0 };
    sherd_diag mine = { 0 };
    sherd__step s = prepare(t, st->step, r->stepper.ops->traits & SHERD__STEPPER_ROWS);
    s.gradient = r->calls->checkpoint != NULL; /* a checkpoint may be requested after any step */
    int err = r->stepper.ops->step(r->stepper.ctx, &s, &result, &mine);
    if (err == SHERD_EINTERRUPTED) return err; /* `stop` asked for it */
    if (err == 0 && !isfinite(result.cost))
        err = sherd__fail(&mine, SHERD_ERANGE, "a smaller rate, or inputs scaled to about 1",
                          "the loss is %g: training diverged", result.cost);
    if (err != 0) return located(r, st->step + 1, err, &mine, d);
    st->step++;
    uint64_t examples = result.examples > 0 ? result.examples : s.len;
    st->cost += result.cost * (double)examples;
    st->hits += result.hits;
    st->seen += examples;
    st->step_cost = result.cost;
    st->step_examples = examples;
    *rate = s.rate;
    return r->calls->step ? r->calls->step(r->calls->ctx, &s, &result, d) : SHERD_OK;
}

/* Completes steps in progress. A divergence found only now is reported for the last step. */
static int settle(const run *r, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    uint64_t step = r->t->state.step;
    int err = r->stepper.ops->settle(r->stepper.ctx, &mine);
    return err ? located(r, step ? step : 1, err, &mine, d) : SHERD_OK;
}

static int end_window(run *r, double rate, sherd_diag *d)
{
    sherd__trainer *t = r->t;
    sherd__train_state *st = &t->state;
    bool last = st->step == t->steps;
    sherd__train_epoch e = { .epoch = (st->step + t->order.per_epoch - 1) / t->order.per_epoch,
                             .step = st->step,
                             .cost = st->cost / (double)st->seen,
                             .accuracy = t->data.targets.labels
                                             ? (double)st->hits / (double)st->seen
                                             : NAN,
                             .validation_cost = NAN,
                             .validation_accuracy = NAN,
                             .rate = rate };
    bool report = last || t->recipe.report_steps || e.epoch % t->recipe.report_every == 0;
    bool judged = report && t->validation.x.rows > 0;
    bool spared = r->calls->figures && r->stepper.ops->traits & SHERD__STEPPER_FAR;
    int err = SHERD_OK;
    if (!spared || judged || last) {
        err = settle(r, d);
        if (err == 0) err = check_params(r, d);
    }
    if (err == 0 && judged)
        err = sherd__train_evaluate(t->network, r->engine,
                                    &(sherd__evaluation){ .recipe = &t->recipe,
                                                          .data = &t->validation,
                                                          .kept = t->kept_validation,
                                                          .batch = validation_batch(t),
                                                          .step = st->step },
                                    &e.validation_cost, &e.validation_accuracy, d);
    if (err != 0) return err;
    st->last_cost = e.cost;
    st->last_accuracy = e.accuracy;
    if (report) st->last_validation = e.validation_accuracy;
    st->cost = 0;
    st->hits = st->seen = 0;
    return r->calls->epoch ? r->calls->epoch(r->calls->ctx, &e, report, d) : SHERD_OK;
}

static int checkpoint(run *r, sherd_diag *d)
{
    if (!r->calls->checkpoint) return SHERD_OK;
    int err = settle(r, d);
    if (err == 0) err = check_params(r, d);
    return err != 0 ? err : r->calls->checkpoint(r->calls->ctx, &r->t->state, d);
}

static int stop(run *r, sherd_diag *d)
{
    int err = settle(r, d);
    if (err == 0 && r->t->state.step > 0) err = checkpoint(r, d);
    if (err != 0) return err;
    return sherd__fail(d, SHERD_EINTERRUPTED, NULL,
                       "interrupted after %" PRIu64 " of %" PRIu64 " steps", r->t->state.step,
                       r->t->steps);
}

static bool enough(const run *r)
{
    return r->calls->enough && r->calls->enough(r->calls->ctx);
}

static int loop(run *r, sherd_diag *d)
{
    sherd__train_state *st = &r->t->state;
    uint64_t every = r->calls->checkpoint_every, end = r->t->steps;
    int err = SHERD_OK;
    if (r->calls->until > 0 && r->calls->until < end) end = r->calls->until;
    while (st->step < end && err == 0 && !enough(r)) {
        double rate = 0;
        if (r->calls->interrupted && r->calls->interrupted(r->calls->ctx)) return stop(r, d);
        err = make_step(r, &rate, d);
        if (err == SHERD_EINTERRUPTED) {
            if (!(r->stepper.ops->traits & SHERD__STEPPER_ROWS))
                sherd__network_forget_gradient(r->t->network);
            return stop(r, d);
        }
        bool last = st->step == r->t->steps;
        if (err == 0 && (last || st->step % sherd__trainer_window(r->t) == 0)) {
            err = end_window(r, rate, d);
            last = last || (err == 0 && enough(r));
        }
        if (err == 0 && (last || (every > 0 && st->step % every == 0))) err = checkpoint(r, d);
    }
    return err;
}

int sherd__trainer_run(sherd__trainer *t, sherd__stepper s, sherd__engine e,
                       const sherd__train_calls *calls, sherd_diag *d)
{
    static const sherd__train_calls none;
    run r = { t, s, e, calls ? calls : &none };
    int err = SHERD_OK;
    t->gathered = UINT64_MAX;
    if (r.calls->keep && !(s.ops->traits & SHERD__STEPPER_ROWS)) {
        err = keep_data(t, e, d);
        if (err == 0) err = keep_validation(t, e, d);
    }
    if (err == 0) err = loop(&r, d);
    sherd_multiplier_release(e.products, t->kept);
    sherd_multiplier_release(e.products, t->kept_validation);
    t->kept = t->kept_validation = NULL;
    return err;
}
