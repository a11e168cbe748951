/*
 * The same training computed locally, step by step with the one on nodes, from the same weights,
 * rows and rates. With the same specification (fixed point of the same width) all parameters must
 * agree bit for bit after every epoch. A third training in float64 is not compared: it shows the
 * loss of accuracy from fixed point.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "lib/train/training.h"

typedef struct beside {
    sherd__trainer *trainer;
    sherd__stepper stepper;
    sherd__engine engine;
} beside;

struct sherd__training_check {
    beside same, float64;
    double accuracy, validation; /* of float64 */
    uint64_t epochs;
};

static int beside_new(beside *b, sherd_training *t, unsigned bits, sherd_diag *d)
{
    sherd__network *n = sherd__trainer_network(t->trainer);
    int err = sherd__trainer_new(&b->trainer, &t->recipe->recipe, &t->data->train, NULL, t->seed,
                                 d);
    if (!err) err = sherd_multiplier_local(&b->engine.products, bits, d);
    if (!err && bits > 0) err = sherd__network_products_round(&t->products, &b->engine.products, d);
    if (err) return err;
    sherd__network *mine = sherd__trainer_network(b->trainer);
    memcpy(sherd__network_params(mine), sherd__network_params(n),
           sherd__network_count(n) * sizeof(double));
    const sherd__optimiser *o = sherd__trainer_optimiser(t->trainer);
    sherd__optimiser *own = sherd__trainer_optimiser(b->trainer);
    if (o->state_len > 0) memcpy(own->state, o->state, o->state_len * sizeof *o->state);
    sherd__optimiser_resume(own, o->steps);
    *sherd__trainer_state(b->trainer) = *sherd__trainer_state(t->trainer);
    if (t->o.by == SHERD_BY_GRADIENTS && bits > 0)
        return sherd__training_gradients_beside(t, b->trainer, &b->stepper, d);
    return sherd__stepper_products(&b->stepper, mine, sherd__trainer_optimiser(b->trainer),
                                   b->engine, d);
}

static void beside_free(beside *b)
{
    sherd__stepper_free(b->stepper);
    sherd__trainer_free(b->trainer);
    sherd_multiplier_free(b->engine.products);
}

int sherd__training_check_new(sherd_training *t, sherd_diag *d)
{
    t->check = sherd__calloc(1, sizeof *t->check);
    if (!t->check) return sherd__fail_memory(d, "the training on this machine");
    t->check->accuracy = t->check->validation = NAN;
    int err = beside_new(&t->check->same, t, t->products.bits, d);
    return err ? err : beside_new(&t->check->float64, t, 0, d);
}

typedef struct heard {
    const sherd_training *training;
    double accuracy;
} heard;

static int hear_epoch(void *ctx, const sherd__train_epoch *e, bool report, sherd_diag *d)
{
    (void)report;
    (void)d;
    ((heard *)ctx)->accuracy = e->accuracy;
    return 0;
}

static bool interrupted(void *ctx)
{
    const heard *h = ctx;
    return sherd__hooks_interrupted(&h->training->outer);
}

static int bring(beside *b, uint64_t step, bool keep, heard *h, sherd_diag *d)
{
    sherd__train_calls calls = {
        .epoch = hear_epoch, .interrupted = interrupted, .ctx = h, .keep = keep, .until = step
    };
    return sherd__trainer_run(b->trainer, b->stepper, b->engine, &calls, d);
}

/* Formats the name of parameter k: "w2, row 3, column 5". */
static void name_parameter(sherd__network *n, size_t k, char out[80])
{
    const double *params = sherd__network_params(n);
    for (size_t i = 0; i < sherd__network_len(n); i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        size_t first = (size_t)(l->weights - params), weights = l->rows * l->cols;
        bool bias = k >= first + weights;
        char name[16];
        if (k < first || k >= first + weights + l->cols) continue;
        if (!sherd__recipe_member(n, i, bias, name)) continue;
        if (bias) snprintf(out, 80, "%s, entry %zu", name, k - first - weights);
        else
            snprintf(out, 80, "%s, row %zu, column %zu", name, (k - first) / l->cols,
                     (k - first) % l->cols);
        return;
    }
}

static int compare(const sherd_training *t, const sherd__train_epoch *e, sherd_diag *d)
{
    sherd__network *n = sherd__trainer_network(t->trainer);
    const double *a = sherd__network_params(n);
    const double *b = sherd__network_params(sherd__trainer_network(t->check->same.trainer));
    size_t count = sherd__network_count(n), differ = 0, first = 0;
    char name[80] = "";
    for (size_t i = 0; i < count; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) == 0) continue;
        if (differ++ == 0) first = i;
    }
    if (differ == 0) return 0;
    name_parameter(n, first, name);
    return sherd__fail(d, SHERD_EDIFFERS, "the model cannot be used; please report this",
                       "epoch %" PRIu64 ": %zu of %zu parameters differ from the same training "
                       "computed locally, the first is %s: %.17g, locally %.17g",
                       e->epoch, differ, count, name, a[first], b[first]);
}

int sherd__training_check_epoch(sherd_training *t, const sherd__train_epoch *e, bool report,
                                sherd_diag *d)
{
    sherd__training_check *c = t->check;
    heard same = { t, NAN }, other = { t, NAN };
    sherd_diag mine = { 0 };
    double cost;
    int err = bring(&c->same, e->step, true, &same, d);
    if (!err) err = compare(t, e, d);
    if (err) return err;
    c->epochs++;
    err = bring(&c->float64, e->step, false, &other, &mine);
    if (!err && report && t->data->validation.x.rows > 0)
        err = sherd__train_evaluate(sherd__trainer_network(c->float64.trainer), c->float64.engine,
                                    &(sherd__evaluation){
                                        .recipe = &t->recipe->recipe,
                                        .data = &t->data->validation,
                                        .batch = sherd__trainer_order(c->float64.trainer)->batch },
                                    &cost, &c->validation, &mine);
    if (err == SHERD_ERANGE) { /* float64 may diverge where fixed point does not */
        c->accuracy = c->validation = NAN;
        return 0;
    }
    if (err) return sherd__fail(d, err, mine.hint, "%s", mine.message);
    c->accuracy = other.accuracy;
    return 0;
}

void sherd__training_check_float64(const sherd_training *t, double *accuracy, double *validation)
{
    *accuracy = t->check ? t->check->accuracy : NAN;
    *validation = t->check ? t->check->validation : NAN;
}

uint64_t sherd__training_checked(const sherd_training *t)
{
    return t->check ? t->check->epochs : 0;
}

void sherd__training_check_free(sherd__training_check *c)
{
    if (!c) return;
    beside_free(&c->same);
    beside_free(&c->float64);
    sherd__free(c);
}
