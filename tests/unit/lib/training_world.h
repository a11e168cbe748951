/* Trainings of a small network on arrays in memory. */
#ifndef TESTS_UNIT_LIB_TRAINING_WORLD_H
#define TESTS_UNIT_LIB_TRAINING_WORLD_H

#include "sherd/train.h"

enum {
    WORLD_ROWS = 60,
    WORLD_EPOCHS = 6,
    WORLD_STEPS = 18,
    WORLD_PARAMETERS = 2 * 7 + 7 + 7 * 3 + 3
};

extern const uint8_t world_seed[32];

/** A recipe of 6 epochs of 3 steps on 60 examples. more: lines that replace keys of it, or NULL. */
sherd_recipe *world_recipe(const char *more);
/** Makes the training; NULL on failure, with *err set and *d filled. */
sherd_training *world_make(const sherd_recipe *r, const sherd_train_options *o, int *err,
                           sherd_diag *d);
/** The same of world_recipe(more). */
sherd_training *world_new(const char *more, const sherd_train_options *o, int *err, sherd_diag *d);
/** Makes and runs it here, and copies its parameters, WORLD_PARAMETERS of them. Returns the
 *  error. */
int world_run(const char *more, const sherd_train_options *o, double *parameters, sherd_diag *d);
void world_parameters(sherd_training *t, double *out);

#endif
