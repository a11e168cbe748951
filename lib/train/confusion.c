/*
 * Confusion matrices. They are counted once, by a pass on this machine in the arithmetic of the
 * training, and not during the epochs: nodes are not asked again, and in fixed point the bits, and
 * so the counts, are those of the last validation.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "lib/train/training.h"

static int count(sherd_training *t, const sherd__dataset *data, uint64_t *counts, sherd_diag *d)
{
    sherd__network_products local = t->products;
    size_t batch = sherd__trainer_order(t->trainer)->batch;
    double cost, accuracy;
    sherd_hooks *hooks = &local.opt.hooks;
    hooks->progress = NULL;
    local.engine = (sherd__engine){ .maps = false };
    int err = sherd__network_products_open(&local, NULL, NULL, d);
    if (!err)
        err = sherd__train_evaluate(sherd__trainer_network(t->trainer), local.engine,
                                    &(sherd__evaluation){ .recipe = &t->recipe->recipe,
                                                          .data = data,
                                                          .batch = batch,
                                                          .confusion = counts },
                                    &cost, &accuracy, d);
    sherd__network_products_close(&local);
    return err;
}

int sherd_training_confusion(sherd_training *t, uint64_t *counts, sherd_data_part *part,
                             sherd_diag *d)
{
    bool validation = t->data->validation.x.rows > 0;
    const sherd__dataset *all = validation ? &t->data->validation : &t->data->train;
    size_t outputs = sherd_model_outputs(t->model), rows = all->x.rows;
    if (!all->targets.labels || rows == 0 || outputs > SHERD_TRAIN_CONFUSION_MAX)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "there is no confusion matrix: %s",
                           outputs > SHERD_TRAIN_CONFUSION_MAX ? "too many classes"
                           : rows == 0                         ? "this process has no examples"
                                                               : "targets are values");
    if (!validation && rows > SHERD_TRAIN_CONFUSION_ROWS) rows = SHERD_TRAIN_CONFUSION_ROWS;
    uint64_t *mine = sherd__calloc(outputs * outputs, sizeof *mine);
    if (!mine) return sherd__fail_memory(d, "a confusion matrix of %zu classes", outputs);
    const sherd__dataset data = sherd__dataset_part(all, 0, rows);
    int err = count(t, &data, mine, d);
    if (!err) memcpy(counts, mine, outputs * outputs * sizeof *mine);
    if (!err && part) *part = validation ? SHERD_DATA_VALIDATION : SHERD_DATA_TRAINING;
    sherd__free(mine);
    return err;
}
