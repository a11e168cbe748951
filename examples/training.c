/*
 * Trains a network on arrays in memory, over three local nodes that learn neither data nor weights,
 * saves it, loads it again and uses it:
 *
 *     cc training.c $(pkg-config --cflags --libs sherd) -lm -o training && ./training
 *
 * The arguments are the sherd command that the nodes run ("sherd" is looked up in PATH otherwise)
 * and the file of the model (model.npz). The task is to distinguish points of the plane inside a
 * circle from those outside.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <sherd/sherd.h>

enum { EXAMPLES = 600, TESTS = 200, NODES = 3 };

static const char text[] = "input = 2\n"
                           "layer = dense 16\n"
                           "layer = tanh\n"
                           "layer = dense 2\n"
                           "loss = cross-entropy\n"
                           "data = file\n" /* or arrays */
                           "batch = 100\n"
                           "epochs = 40\n"
                           "report_every = 10\n"
                           "method = adam\n"
                           "rate = 0.05\n";

static double points[EXAMPLES + TESTS][2];
static unsigned char inside[EXAMPLES + TESTS];

static void make_points(void)
{
    for (int i = 0; i < EXAMPLES + TESTS; i++) {
        for (int k = 0; k < 2; k++) points[i][k] = 2. * rand() / RAND_MAX - 1;
        inside[i] = hypot(points[i][0], points[i][1]) < 0.7;
    }
}

static int print_epoch(void *ctx, const sherd_epoch *e, sherd_diag *d)
{
    (void)ctx;
    (void)d; /* to end the training, fill it and return a SHERD_E* error */
    printf("epoch %2llu: loss %.4f, accuracy %.3f, on the %d other points %.3f\n",
           (unsigned long long)e->epoch, e->loss, e->accuracy, TESTS, e->validation_accuracy);
    return 0;
}

/* Trains and writes the model to path. */
static int train(const char *program, const char *path, sherd_diag *d)
{
    sherd_recipe *recipe = NULL;
    sherd_training *training = NULL;
    sherd_cluster *cluster = NULL;
    sherd_view x = sherd_view_c(points, SHERD_F64, EXAMPLES + TESTS, 2),
               y = sherd_view_c(inside, SHERD_U8, EXAMPLES + TESTS, 1);
    sherd_data_source data = { .size = sizeof data,
                               .x = sherd_view_sub(x, 0, EXAMPLES, 0, 2),
                               .y = sherd_view_sub(y, 0, EXAMPLES, 0, 1),
                               .validation_x = sherd_view_sub(x, EXAMPLES, TESTS, 0, 2),
                               .validation_y = sherd_view_sub(y, EXAMPLES, TESTS, 0, 1) };
    sherd_product_options how = { .size = sizeof how, .scheme = SHERD_SHARE };
    sherd_train_options o = {
        .size = sizeof o, .nodes = NODES, .products = &how, .on_epoch = print_epoch
    };
    sherd_cluster_options where = { .size = sizeof where,
                                    .local_nodes = NODES,
                                    .program = program };

    int err = sherd_recipe_parse(&recipe, text, "circle", d);
    if (!err) err = sherd_training_new(&training, recipe, &data, &o, d); /* finds all mistakes */
    if (!err) err = sherd_cluster_open(&cluster, &where, d);
    if (!err) err = sherd_training_run(training, cluster, d);
    if (!err) err = sherd_model_save(sherd_training_model(training), path, d);
    if (!err) {
        sherd_train_report r = { .size = sizeof r };
        err = sherd_training_report_get(training, &r, d);
        if (!err)
            printf("%llu steps in %.1f s, %s\n", (unsigned long long)r.step, r.seconds, r.sees);
    }
    sherd_training_free(training);
    sherd_cluster_close(cluster);
    sherd_recipe_free(recipe);
    return err;
}

/* Loads the model and prints its classes of four points. */
static int use(const char *path, sherd_diag *d)
{
    static const double x[4][2] = { { 0, 0 }, { 0.3, -0.4 }, { 0.9, 0.9 }, { -1, 0.1 } };
    double y[4][2];
    uint32_t labels[4];
    sherd_model *model;
    int err = sherd_model_load(&model, path, d);
    if (err) return err;
    err = sherd_model_predict(model, sherd_view_c(x, SHERD_F64, 4, 2), y[0], 2, NULL, NULL, d);
    if (!err) sherd_predict_labels(y[0], 2, 4, 2, labels);
    for (int i = 0; i < 4 && !err; i++)
        printf("(%4.1f, %4.1f) is %s\n", x[i][0], x[i][1], labels[i] ? "inside" : "outside");
    sherd_model_free(model);
    return err;
}

int main(int argc, char **argv)
{
    const char *program = argc > 1 ? argv[1] : "sherd", *path = argc > 2 ? argv[2] : "model.npz";
    sherd_diag d = { 0 };
    signal(SIGPIPE, SIG_IGN); /* a lost connection must not end the program */
    make_points();
    int err = train(program, path, &d);
    if (!err) err = use(path, &d);
    if (!err) return 0;
    fprintf(stderr, "training: %s\n", d.message);
    if (d.hint[0]) fprintf(stderr, "hint: %s\n", d.hint);
    return sherd_err_exit(err);
}
