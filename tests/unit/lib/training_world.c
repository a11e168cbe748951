/* See training_world.h: two features that decide three classes. */
#include "training_world.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint8_t world_seed[32] = { 11, 12, 13 };

static _Noreturn void die(const sherd_diag *d)
{
    fprintf(stderr, "%s\n", d->message);
    abort();
}

sherd_recipe *world_recipe(const char *more)
{
    static const char text[] = "input = 2\nlayer = dense 7\nlayer = tanh\nlayer = dense 3\n"
                               "loss = cross-entropy\ndata = file\nbatch = 20\nepochs = 6\n"
                               "method = momentum\nrate = 0.2\n";
    char lines[200], *rest;
    sherd_recipe *r;
    sherd_diag d = { 0 };
    if (sherd_recipe_parse(&r, text, NULL, &d)) die(&d);
    snprintf(lines, sizeof lines, "%s", more ? more : "");
    for (char *key = strtok_r(lines, "\n", &rest); key; key = strtok_r(NULL, "\n", &rest)) {
        char *value = strstr(key, " = ");
        *value = '\0';
        if (sherd_recipe_set(r, key, value + 3, &d)) die(&d);
    }
    return r;
}

static double x[WORLD_ROWS * 2];
static int32_t y[WORLD_ROWS];

static void fill(void)
{
    for (size_t i = 0; i < WORLD_ROWS; i++) {
        x[2 * i] = sin((double)(i * i));
        x[2 * i + 1] = cos(3. * (double)i);
        y[i] = (x[2 * i] > 0) + (x[2 * i + 1] > 0.2);
    }
}

sherd_training *world_make(const sherd_recipe *r, const sherd_train_options *o, int *err,
                           sherd_diag *d)
{
    static pthread_once_t filled = PTHREAD_ONCE_INIT;
    pthread_once(&filled, fill);
    const sherd_data_source data = { .size = sizeof data,
                                     .x = sherd_view_c(x, SHERD_F64, WORLD_ROWS, 2),
                                     .y = sherd_view_c(y, SHERD_I32, WORLD_ROWS, 1) };
    sherd_training *t;
    *err = sherd_training_new(&t, r, &data, o, d);
    return t;
}

sherd_training *world_new(const char *more, const sherd_train_options *o, int *err, sherd_diag *d)
{
    sherd_recipe *r = world_recipe(more);
    sherd_training *t = world_make(r, o, err, d);
    sherd_recipe_free(r);
    return t;
}

void world_parameters(sherd_training *t, double *out)
{
    const sherd_model *m = sherd_training_model(t);
    const char *name;
    for (size_t i = 0; (name = sherd_model_parameter_name(m, i)); i++) {
        sherd_view v = sherd_model_parameter_find(m, name);
        memcpy(out, v.data, v.rows * v.cols * sizeof *out);
        out += v.rows * v.cols;
    }
}

int world_run(const char *more, const sherd_train_options *o, double *parameters, sherd_diag *d)
{
    int err;
    sherd_training *t = world_new(more, o, &err, d);
    if (!err) err = sherd_training_run(t, NULL, d);
    if (t && parameters) world_parameters(t, parameters);
    sherd_training_free(t);
    return err;
}
