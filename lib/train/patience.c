/*
 * Early stopping. Each report compares the loss of the validation data with the lowest so far. A
 * training with `patience` keeps the parameters of that report, ends after so many reports without
 * a lower loss, and its model has those parameters at the end, also if it makes all of its steps.
 * The state is part of a checkpoint, so a resumed run ends at the same step with the same bits.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "learn/collective.h"
#include "lib/train/training.h"

static sherd__network *network(const sherd_training *t)
{
    return sherd__trainer_network(t->trainer);
}

size_t sherd__training_best_bytes(const sherd_training *t)
{
    return sherd__network_count(network(t)) * sherd_dtype_size(sherd__network_dtype(network(t)));
}

int sherd__training_patience_open(sherd_training *t, sherd_diag *d)
{
    sherd__training_best *b = &t->best;
    b->cost = b->accuracy = NAN;
    b->patience = (int64_t)t->recipe->recipe.patience;
    if (b->patience == 0) return SHERD_OK;
    if (t->data->validation.x.rows == 0)
        return sherd__fail(
            d, SHERD_EINVAL,
            t->o.aggregate == SHERD_AGGREGATE_SECURE
                ? "leave patience out: the data of the nodes are not used to validate"
                : "add `holdout = 0.2` to the recipe, or give data with test "
                  "examples",
            "%s: patience needs validation data, and there are none", t->recipe->name);
    b->params = sherd__calloc(1, sherd__training_best_bytes(t));
    return b->params ? SHERD_OK : sherd__fail_memory(d, "the best parameters");
}

int sherd__training_patience_judge(sherd_training *t, const sherd__train_epoch *e, sherd_diag *d)
{
    sherd__training_best *b = &t->best;
    double cost = e->validation_cost;
    if (b->patience == 0) return SHERD_OK;
    /* Processors may round differently; peers must end at the same step. */
    int err = t->among.sum ? sherd__collective_share(&t->among, &cost, sizeof cost, d) : SHERD_OK;
    if (err) return err;
    b->waited++;
    if (!(cost < b->cost) && !(isnan(b->cost) && !isnan(cost))) return SHERD_OK;
    b->waited = 0;
    b->cost = cost;
    b->accuracy = e->validation_accuracy;
    b->step = (int64_t)e->step;
    memcpy(b->params, sherd__network_params(network(t)), sherd__training_best_bytes(t));
    return SHERD_OK;
}

bool sherd__training_patience_over(void *training)
{
    const sherd__training_best *b = &((const sherd_training *)training)->best;
    return b->patience > 0 && b->waited >= b->patience;
}

void sherd__training_patience_end(sherd_training *t)
{
    if (t->best.step == 0) return;
    memcpy(sherd__network_params(network(t)), t->best.params, sherd__training_best_bytes(t));
}
