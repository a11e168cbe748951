/*
 * Makes a training. All errors in recipe, data and options are found here, before a node is used.
 * Memory is judged before anything large is allocated, and processes that are peers agree before
 * any of them allocates it.
 */
#include "lib/train/training.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/options.h"
#include "core/rand.h"
#include "core/wipe.h"

bool sherd__training_first(const sherd_training *t)
{
    return !t->among.sum || t->among.rank == 0;
}

void sherd__training_log(const sherd_training *t, sherd_log_level level, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    if (!t->outer.log || !sherd__training_first(t)) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    t->outer.log(t->outer.ctx, level, text);
}

void sherd__training_seed(sherd_training *t, uint64_t number)
{
    static const uint8_t key[32];
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_derived(&state, key, "sherd seed number", number);
    e.fill(e.ctx, t->seed, sizeof t->seed);
    t->seed_known = true;
    t->seed_number = number;
}

/* Returns whether nodes are shown what a scheme has shuffled by permutations from a seed. */
static bool permutes(const sherd_training *t)
{
    return t->o.nodes > 0 && t->o.by == SHERD_BY_PRODUCTS &&
           sherd_scheme_get(t->products.opt.scheme)->takes & SHERD_TAKES_SHUFFLES;
}

/* Sets the seed, and what secrets derive from. A seed of 32 bytes is used for both. A number can be
 * guessed, and is reported, so secrets never derive from it. */
static int take_seed(sherd_training *t, sherd_diag *d)
{
    sherd__entropy os = sherd__entropy_os();
    const uint64_t *number = t->o.seed_number;
    uint32_t drawn;
    if (number && (t->o.seed || *number > SHERD_TRAIN_SEED_MAX))
        return sherd__fail(d, SHERD_EINVAL,
                           t->o.seed ? "leave one of them out" : "0 to 9007199254740991",
                           t->o.seed ? "the seed is given twice, as bytes and as a number"
                                     : "the seed %" PRIu64 " is too large",
                           *number);
    os.fill(os.ctx, t->secret, sizeof t->secret);
    os.fill(os.ctx, &drawn, sizeof drawn);
    if (number) sherd__training_seed(t, *number);
    else if (!t->o.seed && !permutes(t)) sherd__training_seed(t, drawn);
    else {
        if (t->o.seed) memcpy(t->secret, t->o.seed, sizeof t->secret);
        memcpy(t->seed, t->secret, sizeof t->seed);
    }
    return SHERD_OK;
}

/* The seed may be that of a checkpoint, which was read. */
static void warn_of_number(const sherd_training *t)
{
    if (t->seed_known && permutes(t))
        sherd__training_log(t, SHERD_LOG_WARN,
                            "the seed %" PRIu64
                            " can be guessed: nodes that know the first weights "
                            "can find the permutations of --scheme %s; use a seed of 32 bytes",
                            t->seed_number, sherd_scheme_get(t->products.opt.scheme)->name);
}

static int load_data(sherd_training *t, const sherd_data_source *from, size_t width, sherd_diag *d)
{
    return t->o.aggregate == SHERD_AGGREGATE_SECURE
               ? sherd__training_secure_data(t, from, width, d)
               : sherd__data_load(&t->data, t->recipe, from, width, t->seed, d);
}

static int make_trainer(sherd_training *t, sherd_diag *d)
{
    const sherd__dataset *data = &t->data->train, *validation = &t->data->validation;
    int err = t->o.aggregate == SHERD_AGGREGATE_SECURE
                  ? sherd__training_secure_trainer(t, d)
                  : sherd__trainer_new(&t->trainer, &t->recipe->recipe, data, validation, t->seed,
                                       d);
    t->labels = t->data->train.targets.labels != NULL;
    return err ? err
               : sherd__model_of(&t->model, t->recipe, sherd__trainer_network(t->trainer),
                                 &t->data->schema, true, d);
}

/* Copies the caller's parameters, each array of which must have the shape of the network's. */
static int take_initial(sherd_training *t, sherd_diag *d)
{
    const sherd_model *from = t->o.initial;
    sherd__network *n = sherd__trainer_network(t->trainer);
    const char *name;
    if (!from) return SHERD_OK;
    for (size_t i = 0; (name = sherd_model_parameter_name(t->model, i)); i++) {
        sherd_view mine = sherd_model_parameter_find(t->model, name),
                   theirs = sherd_model_parameter_find(from, name);
        if (!theirs.data || theirs.rows != mine.rows || theirs.cols != mine.cols)
            return sherd__fail(d, SHERD_ESHAPE, NULL,
                               "%s: %s is %zu x %zu: the network takes %zu x %zu",
                               from->recipe->name, name, theirs.rows, theirs.cols, mine.rows,
                               mine.cols);
    }
    if (sherd__network_count(from->network) != sherd__network_count(n))
        return sherd__fail(d, SHERD_ESHAPE, "give a model of the recipe's network",
                           "%s has more parameters than the network", from->recipe->name);
    double *all = sherd__calloc(sherd__network_count(n), sizeof *all);
    if (!all) return sherd__fail_memory(d, "initial parameters");
    sherd__network_get(from->network, all);
    sherd__network_set(n, all);
    sherd__free(all);
    return SHERD_OK;
}

/* Forgets what belongs to the caller and is not read again. */
static void let_go(sherd_train_options *o)
{
    o->seed = NULL;
    o->seed_number = NULL;
    o->initial = NULL;
    o->products = NULL;
    o->among = NULL;
    o->checkpoints = NULL;
    o->meta = NULL;
}

static int make(sherd_training *t, const sherd_data_source *data, const sherd_train_options *opt,
                sherd_diag *d)
{
    sherd_data_source from;
    size_t width = 0;
    int err = sherd__options_read(&from, sizeof from, data, "sherd_data_source", d);
    if (err) return err;
    t->given = from.path || from.x.data;
    err = sherd__training_options(t, opt, d);
    if (err) return err;
    t->outer = t->o.hooks;
    err = take_seed(t, d);
    if (!err) err = sherd__training_keep_open(t, d);
    if (!err) warn_of_number(t);
    if (!err) err = sherd__training_share_seed(t, d);
    if (!err) err = sherd__training_measure(t, 0, &width, d);
    if (!err) err = load_data(t, &from, width, d);
    if (!err) err = sherd__training_measure(t, t->data->train.x.rows, &width, d);
    if (!err) err = make_trainer(t, d);
    if (!err) err = take_initial(t, d);
    if (!err) err = sherd__training_suits(t, d);
    if (!err) err = sherd__training_meta_open(t, d);
    if (!err) err = sherd__training_patience_open(t, d);
    if (!err) err = sherd__training_keep_load(t, d);
    if (!err) err = sherd__training_meta_check(t, d);
    if (!err) err = sherd__training_share_start(t, d);
    if (!err && t->outer.log) sherd__training_foretell(t);
    let_go(&t->o);
    return err;
}

int sherd_training_new(sherd_training **out, const sherd_recipe *r, const sherd_data_source *data,
                       const sherd_train_options *opt, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    sherd_training *t = sherd__calloc(1, sizeof *t);
    *out = NULL;
    if (!d) d = &mine;
    if (!t) return sherd__fail_memory(d, "the training");
    t->first_cost = NAN;
    int err = sherd__recipe_of(&t->recipe, &r->recipe, r->name, d);
    if (!err) err = make(t, data, opt, d);
    if (err) {
        sherd_training_free(t);
        return err;
    }
    *out = t;
    return SHERD_OK;
}

void sherd_training_free(sherd_training *t)
{
    if (!t) return;
    sherd__training_check_free(t->check);
    sherd__training_keep_free(t->keep);
    sherd__training_meta_free(t->meta);
    sherd__training_secure_close(t);
    sherd__model_free(t->model);
    sherd__trainer_free(t->trainer);
    sherd_data_free(t->data);
    sherd_recipe_free(t->recipe);
    sherd__free(t->allreduce.links);
    sherd__free(t->epochs);
    sherd__free(t->best.params);
    sherd__wipe(t, sizeof *t);
    sherd__free(t);
}

sherd_model *sherd_training_model(sherd_training *t)
{
    return t->model;
}

const sherd_data *sherd_training_data(const sherd_training *t)
{
    return t->data;
}
