/*
 * Processes that run the same training as peers (sherd/collective.h). State that must be equal in
 * all of them and is not determined by recipe, data and options (a fresh seed, initial parameters,
 * the checkpoint that is resumed) comes from process 0. What these determine is compared.
 */
#include <string.h>

#include "core/buf.h"
#include "core/diag.h"
#include "learn/collective.h"
#include "lib/train/training.h"
#include "store/digest.h"

/* Records that all processes have this error. */
static int common(const sherd_training *t, int err)
{
    if (err && t->among.common) *t->among.common = true;
    return err;
}

int sherd__training_share_seed(sherd_training *t, sherd_diag *d)
{
    uint64_t known[2] = { t->seed_known, t->seed_number };
    if (!t->among.sum) return SHERD_OK;
    int err = sherd__collective_share(&t->among, t->seed, sizeof t->seed, d);
    if (!err) err = sherd__collective_share(&t->among, known, sizeof known, d);
    t->seed_known = known[0] != 0;
    t->seed_number = known[1];
    return err;
}

int sherd__training_agree(const sherd_training *t, int err, sherd_diag *d)
{
    return t->among.sum ? common(t, sherd__collective_tell(&t->among, err, d)) : err;
}

/* Hashes the recipe, the examples with their targets, and the way gradients are computed. */
static int identify(const sherd_training *t, sherd__digest *out, sherd_diag *d)
{
    sherd__buf text;
    uint8_t data[SHERD__DIGEST_BYTES];
    char how[160];
    sherd__training_gradients_name(t, how, sizeof how);
    sherd__buf_init(&text, SHERD__RECIPE_BYTES_MAX + sizeof how + sizeof data, 0);
    int err = sherd__buf_append(&text, t->recipe->text, strlen(t->recipe->text));
    if (!err) err = sherd__buf_append(&text, how, strlen(how) + 1);
    if (!err) err = sherd_data_digest(t->data, data, d);
    if (!err) err = sherd__buf_append(&text, data, sizeof data);
    if (!err) err = sherd__digest_labelled(out, "sherd-training-v1", text.data, text.len);
    sherd__buf_fini(&text);
    return err ? sherd__fail_to(d, err, "compare trainings") : 0;
}

static int same_training(const sherd_training *t, sherd_diag *d)
{
    const sherd_collective *c = &t->among;
    sherd__digest mine, first;
    uint32_t who = 0;
    int err = identify(t, &mine, d);
    if (err) return err;
    first = mine;
    err = sherd__collective_share(c, &first, sizeof first, d);
    if (err) return err;
    int differs = memcmp(&first, &mine, sizeof mine) != 0 ? SHERD_EFORMAT : 0;
    err = sherd__collective_agree(c, differs, &who, d);
    if (err != SHERD_EFORMAT) return err;
    return common(t, sherd__fail(d, err, "give all of them the same files and options",
                                 "process %u has another recipe or other data, shards or width of "
                                 "numbers than process 0",
                                 who));
}

/* Shares the state of early stopping: all processes must end at the same step. */
static int share_best(sherd_training *t, sherd_diag *d)
{
    const sherd_collective *c = &t->among;
    sherd__training_best *b = &t->best;
    if (b->patience == 0) return SHERD_OK;
    int err = sherd__collective_share(c, &b->waited, sizeof b->waited, d);
    if (!err) err = sherd__collective_share(c, &b->step, sizeof b->step, d);
    if (!err) err = sherd__collective_share(c, &b->cost, sizeof b->cost, d);
    if (!err) err = sherd__collective_share(c, &b->accuracy, sizeof b->accuracy, d);
    return err ? err : sherd__collective_share(c, b->params, sherd__training_best_bytes(t), d);
}

/* Shares the whole state that a step depends on. This includes gradients, which determine
 * scales. */
static int share_state(sherd_training *t, sherd_diag *d)
{
    const sherd_collective *c = &t->among;
    sherd__network *n = sherd__trainer_network(t->trainer);
    sherd__optimiser *o = sherd__trainer_optimiser(t->trainer);
    sherd__train_state *s = sherd__trainer_state(t->trainer);
    uint64_t steps = o->steps;
    size_t bytes = o->state_len * sherd_dtype_size(o->spec.dtype);
    int err = sherd__collective_share(c, s, sizeof *s, d);
    if (!err) err = sherd__collective_share(c, &steps, sizeof steps, d);
    if (!err) err = sherd__collective_share(c, o->state, bytes, d);
    for (size_t i = 0; i < sherd__network_len(n) && !err; i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        size_t biases = l->cols * sherd_dtype_size(l->dtype), weights = l->rows * biases;
        if (l->cols == 0) continue;
        err = sherd__collective_share(c, l->weights, weights, d);
        if (!err) err = sherd__collective_share(c, l->biases, biases, d);
        if (!err) err = sherd__collective_share(c, l->weights_gradient, weights, d);
        if (!err) err = sherd__collective_share(c, l->biases_gradient, biases, d);
    }
    if (!err) sherd__optimiser_resume(o, steps);
    return err ? err : share_best(t, d);
}

int sherd__training_share_start(sherd_training *t, sherd_diag *d)
{
    if (!t->among.sum) return SHERD_OK;
    int err = same_training(t, d);
    if (!err) err = share_state(t, d);
    t->first_step = sherd__trainer_state(t->trainer)->step;
    return err;
}

int sherd__training_stop(const sherd_training *t, int why, sherd_diag *d)
{
    return t->among.sum ? sherd__collective_agree(&t->among, why, NULL, d) : why;
}
