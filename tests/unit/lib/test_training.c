/* Trainings on this machine through the public interface: what they report, how they end early, and
 * what is refused before they begin. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "lib/network_products.h"
#include "lib/train/training.h"
#include "training_world.h"

static sherd_train_options seeded(void)
{
    return (sherd_train_options){ .size = sizeof(sherd_train_options), .seed = world_seed };
}

static void run(const char *more, const sherd_train_options *o, double *parameters)
{
    sherd_diag d = { 0 };
    if (world_run(more, o, parameters, &d)) fail_msg("%s", d.message);
}

typedef struct heard {
    sherd_training *training;
    sherd_epoch epochs[WORLD_EPOCHS];
    size_t len;
    int fail_at; /* number of the epoch that ends it */
    unsigned asked, stop_at;
    uint64_t done, total;
    unsigned updates, warned;
    sherd_train_update last;
} heard;

static int on_epoch(void *ctx, const sherd_epoch *e, sherd_diag *d)
{
    heard *h = ctx;
    assert_true(h->len < WORLD_EPOCHS);
    h->epochs[h->len++] = *e;
    if (h->training) { /* reading is allowed from here */
        sherd_train_report r = { .size = sizeof r };
        assert_int_equal(sherd_training_report_get(h->training, &r, NULL), 0);
        assert_true(r.step == e->step && r.loss == e->loss && r.accuracy == e->accuracy);
    }
    if ((int)h->len != h->fail_at) return 0;
    return sherd__fail(d, SHERD_EIO, NULL, "no ink is left");
}

static bool interrupted(void *ctx)
{
    heard *h = ctx;
    return ++h->asked >= h->stop_at && h->stop_at > 0;
}

static void on_progress(void *ctx, const sherd_progress *p)
{
    heard *h = ctx;
    h->done = p->done;
    h->total = p->total;
}

static void on_update(void *ctx, const sherd_train_update *u)
{
    heard *h = ctx;
    h->updates++;
    h->last = *u;
}

static void on_log(void *ctx, sherd_log_level level, const char *text)
{
    heard *h = ctx;
    h->warned += level == SHERD_LOG_WARN && strstr(text, "can be guessed");
}

static void epochs_are_reported_and_kept(void **s)
{
    (void)s;
    heard h = { 0 };
    sherd_diag d = { 0 };
    int err;
    sherd_train_options o = seeded();
    o.on_epoch = on_epoch;
    o.ctx = &h;
    o.hooks = (sherd_hooks){ .progress = on_progress, .ctx = &h };
    h.training = world_new(NULL, &o, &err, &d);
    if (err) fail_msg("%s", d.message);
    sherd_train_report before = { .size = sizeof before }, r = before;
    assert_int_equal(sherd_training_report_get(h.training, &before, NULL), 0);
    assert_true(before.step == 0 && before.steps == WORLD_STEPS && before.epochs == WORLD_EPOCHS &&
                isnan(before.loss) && before.parameters == WORLD_PARAMETERS && before.batch == 20);
    if (sherd_training_run(h.training, NULL, &d)) fail_msg("%s", d.message);
    assert_int_equal(h.len, WORLD_EPOCHS);
    for (size_t i = 0; i < h.len; i++) {
        const sherd_epoch *e = sherd_training_epoch_at(h.training, i);
        assert_memory_equal(e, &h.epochs[i], sizeof *e);
        assert_true(e->epoch == i + 1 && e->step == 3 * (i + 1) && e->rate == 0.2);
        assert_true(isnan(e->validation_loss) && isnan(e->epsilon) && isnan(e->delta) &&
                    isnan(e->float64_accuracy) && e->nodes == 0 && e->bytes_out == 0);
    }
    assert_null(sherd_training_epoch_at(h.training, h.len));
    assert_true(h.epochs[5].loss < h.epochs[0].loss && h.epochs[5].accuracy > 0.5);
    assert_int_equal(sherd_training_report_get(h.training, &r, NULL), 0);
    assert_true(r.step == WORLD_STEPS && r.first_step == 0 && r.examples == 6 * WORLD_ROWS &&
                r.loss == h.epochs[5].loss && r.seconds > 0 && r.examples_per_second > 0);
    assert_string_equal(r.by, "products");
    assert_string_equal(r.sees, "all data stay on this machine");
    assert_true(!r.scheme && !r.among && r.bits == 0 && r.nodes == 0);
    assert_true(h.done == WORLD_STEPS && h.total == WORLD_STEPS);
    sherd_data_info info = { .size = sizeof info };
    assert_int_equal(sherd_data_get(sherd_training_data(h.training), &info, NULL), 0);
    assert_int_equal(info.examples, WORLD_ROWS);
    sherd_training_free(h.training);
}

static void report_every_chooses_the_epochs(void **s)
{
    (void)s;
    heard h = { 0 };
    sherd_train_options o = seeded();
    o.on_epoch = on_epoch;
    o.ctx = &h;
    run("report_every = 4\nholdout = 0.25\n", &o, NULL);
    assert_true(h.len == 2 && h.epochs[0].epoch == 4 && h.epochs[1].epoch == 6);
    assert_true(h.epochs[0].validation_loss > 0 && h.epochs[1].validation_accuracy > 0);
}

static void reports_may_be_steps_apart(void **s)
{
    (void)s;
    heard h = { 0 };
    sherd_train_report r = { .size = sizeof r };
    sherd_train_options o = seeded();
    int err;
    o.on_epoch = on_epoch;
    o.ctx = &h;
    h.training = world_new("report_every = 4 steps\nholdout = 0.25\n", &o, &err, NULL);
    assert_int_equal(err, 0);
    assert_int_equal(sherd_training_run(h.training, NULL, NULL), 0);
    assert_int_equal(sherd_training_report_get(h.training, &r, NULL), 0);
    /* 45 examples in batches of 20: three steps are an epoch, the last one has 5 */
    assert_true(r.steps_per_epoch == 3 && r.steps_per_report == 4 && r.steps == 18);
    static const uint64_t steps[] = { 4, 8, 12, 16, 18 }, epochs[] = { 2, 3, 4, 6, 6 };
    assert_int_equal(h.len, 5);
    for (size_t i = 0; i < 5; i++)
        assert_true(h.epochs[i].step == steps[i] && h.epochs[i].epoch == epochs[i] &&
                    h.epochs[i].validation_loss > 0 && h.epochs[i].seconds > 0);
    sherd_training_free(h.training);
}

/* Two features decide the classes, so a rate that is too large soon makes validation worse. */
#define STOPS "holdout = 0.25\nrate = 2\nepochs = 40\nmethod = momentum 0.9\npatience = 3\n"

static void training_ends_when_validation_has_not_improved_for_too_long(void **s)
{
    (void)s;
    heard h = { 0 };
    sherd_train_report r = { .size = sizeof r };
    sherd_train_options o = seeded();
    double stopped[WORLD_PARAMETERS], best[WORLD_PARAMETERS], last[WORLD_PARAMETERS];
    char lines[100];
    int err;
    o.on_epoch = on_epoch;
    o.ctx = &h;
    h.training = world_new(STOPS, &o, &err, NULL);
    assert_int_equal(err, 0);
    assert_int_equal(sherd_training_run(h.training, NULL, NULL), 0);
    assert_int_equal(sherd_training_report_get(h.training, &r, NULL), 0);
    world_parameters(h.training, stopped);
    sherd_training_free(h.training);
    h.training = NULL;
    size_t lowest = 0;
    for (size_t i = 0; i < h.len; i++)
        if (h.epochs[i].validation_loss < h.epochs[lowest].validation_loss) lowest = i;
    assert_true(r.stopped_early && h.len < 40 && h.len == lowest + 1 + 3 && r.step == 3 * h.len);
    assert_true(r.best_step == h.epochs[lowest].step &&
                r.best_loss == h.epochs[lowest].validation_loss &&
                r.best_accuracy == h.epochs[lowest].validation_accuracy);
    snprintf(lines, sizeof lines, "holdout = 0.25\nrate = 2\nmethod = momentum 0.9\nepochs = %zu\n",
             lowest + 1);
    h.len = 0;
    run(lines, &o, best);
    snprintf(lines, sizeof lines, "holdout = 0.25\nrate = 2\nmethod = momentum 0.9\nepochs = %zu\n",
             lowest + 4);
    h.len = 0;
    run(lines, &o, last);
    assert_memory_equal(stopped, best, sizeof best);
    assert_memory_not_equal(stopped, last, sizeof last);
}

static void a_training_that_makes_all_steps_has_its_best_model_too(void **s)
{
    (void)s;
    sherd_train_report r = { .size = sizeof r };
    sherd_train_options o = seeded();
    double all[WORLD_PARAMETERS], best[WORLD_PARAMETERS];
    char lines[100];
    int err;
    sherd_training *t = world_new(STOPS "epochs = 8\npatience = 8\n", &o, &err, NULL);
    assert_int_equal(err, 0);
    assert_int_equal(sherd_training_run(t, NULL, NULL), 0);
    assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
    world_parameters(t, all);
    sherd_training_free(t);
    assert_true(!r.stopped_early && r.step == 24 && r.best_step > 0 && r.best_step < 24);
    snprintf(lines, sizeof lines, "holdout = 0.25\nrate = 2\nmethod = momentum 0.9\nsteps = %u\n",
             (unsigned)r.best_step);
    run(lines, &o, best);
    assert_memory_equal(all, best, sizeof best);
}

static void patience_without_validation_data_is_refused(void **s)
{
    (void)s;
    sherd_train_options o = seeded();
    sherd_diag d = { 0 };
    int err;
    assert_null(world_new("patience = 3\n", &o, &err, &d));
    assert_int_equal(err, SHERD_EINVAL);
    assert_string_equal(d.message, "recipe: patience needs validation data, and there are none");
    assert_non_null(strstr(d.hint, "holdout"));
}

static void recipe_data_and_seed_decide_every_bit(void **s)
{
    (void)s;
    static const uint8_t other[32] = { 1 };
    double a[WORLD_PARAMETERS], b[WORLD_PARAMETERS];
    sherd_train_options o = seeded();
    run(NULL, &o, a);
    run(NULL, &o, b);
    assert_memory_equal(a, b, sizeof a);
    o.seed = other;
    run(NULL, &o, b);
    assert_memory_not_equal(a, b, sizeof a);
    o.seed = NULL;
    run(NULL, &o, a);
    run(NULL, &o, b);
    assert_memory_not_equal(a, b, sizeof a);
}

static void fixed_point_and_its_rounding_are_options(void **s)
{
    (void)s;
    double floats[WORLD_PARAMETERS], exact[WORLD_PARAMETERS], random[WORLD_PARAMETERS];
    const sherd_product_options p = { .size = sizeof p, .exact = true, .bits = 12 };
    sherd_train_options o = seeded();
    run(NULL, &o, floats);
    o.products = &p;
    run(NULL, &o, exact);
    o.stochastic = true;
    run(NULL, &o, random);
    for (size_t i = 0; i < WORLD_PARAMETERS; i++) {
        assert_true(fabs(exact[i] - floats[i]) < 0.05);
        assert_true(fabs(random[i] - floats[i]) < 0.05);
    }
    assert_memory_not_equal(exact, floats, sizeof exact);
    assert_memory_not_equal(exact, random, sizeof exact);
}

/* The strings of `products` may be freed once the training has been made. */
static void names_of_operands_are_not_kept(void **s)
{
    (void)s;
    sherd_product_options o = {
        .size = sizeof o, .scheme = SHERD_SHARE, .name_a = "X", .name_b = "Y"
    };
    sherd__network_products p;
    o.masks = o.masks_state = "M";
    assert_int_equal(sherd__network_products_read(&p, &o, true, NULL), 0);
    assert_true(!p.opt.name_a && !p.opt.name_b && !p.opt.masks && !p.opt.masks_state);
}

static void a_training_starts_with_given_parameters(void **s)
{
    (void)s;
    double first[WORLD_PARAMETERS], begun[WORLD_PARAMETERS];
    int err;
    sherd_diag d = { 0 };
    sherd_train_options o = seeded();
    sherd_training *t = world_new(NULL, &o, &err, &d), *next, *other;
    assert_int_equal(sherd_training_run(t, NULL, NULL), 0);
    world_parameters(t, first);
    o.seed = NULL;
    o.initial = sherd_training_model(t);
    next = world_new(NULL, &o, &err, &d);
    if (err) fail_msg("%s", d.message);
    world_parameters(next, begun);
    assert_memory_equal(first, begun, sizeof first);
    sherd_recipe *spiral;
    assert_int_equal(sherd_recipe_load(&spiral, "spiral", NULL), 0);
    assert_int_equal(sherd_training_new(&other, spiral, NULL, &o, &d), SHERD_ESHAPE);
    assert_non_null(strstr(d.message, "recipe: w1 is 2 x 7: the network takes 2 x 100"));
    assert_null(other);
    sherd_recipe_free(spiral);
    /* A model whose first layers are those of the network, and which has more. */
    sherd_recipe *longer;
    assert_int_equal(sherd_recipe_parse(&longer,
                                        "input = 2\nlayer = dense 7\nlayer = tanh\n"
                                        "layer = dense 3\nlayer = dense 3\n"
                                        "loss = cross-entropy\ndata = file\nbatch = 20\n"
                                        "epochs = 6\nmethod = momentum\nrate = 0.2\n",
                                        NULL, &d),
                     0);
    sherd_train_options without = seeded();
    other = world_make(longer, &without, &err, &d);
    assert_int_equal(err, 0);
    o.initial = sherd_training_model(other);
    sherd_training *refused = world_new(NULL, &o, &err, &d);
    assert_int_equal(err, SHERD_ESHAPE);
    assert_null(refused);
    sherd_training_free(other);
    sherd_recipe_free(longer);
    sherd_training_free(next);
    sherd_training_free(t);
}

static void the_callback_of_an_epoch_can_end_a_training(void **s)
{
    (void)s;
    heard h = { .fail_at = 2 };
    sherd_diag d = { 0 };
    sherd_train_options o = seeded();
    o.on_epoch = on_epoch;
    o.ctx = &h;
    assert_int_equal(world_run(NULL, &o, NULL, &d), SHERD_EIO);
    assert_int_equal(h.len, 2);
    assert_string_equal(d.message, "no ink is left");
}

static void an_interruption_ends_a_training_between_steps(void **s)
{
    (void)s;
    double parameters[WORLD_PARAMETERS], two[WORLD_PARAMETERS];
    heard h = { .stop_at = 3 };
    sherd_diag d = { 0 };
    sherd_train_options o = seeded();
    o.hooks = (sherd_hooks){ .interrupted = interrupted, .ctx = &h };
    assert_int_equal(world_run(NULL, &o, parameters, &d), SHERD_EINTERRUPTED);
    assert_string_equal(d.message, "interrupted after 2 of 18 steps");
    o.hooks = (sherd_hooks){ 0 };
    run("steps = 2\n", &o, two); /* the parameters of the last complete step */
    assert_memory_equal(parameters, two, sizeof two);
}

static void a_training_ends_when_its_time_is_over(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    int err;
    sherd_train_options o = seeded();
    o.timeout_ms = 30;
    sherd_recipe *r;
    sherd_training *t;
    assert_int_equal(sherd_recipe_load(&r, "spiral", NULL), 0);
    assert_int_equal(sherd_recipe_set(r, "epochs", "100000000", NULL), 0);
    assert_int_equal(sherd_training_new(&t, r, NULL, &o, &d), 0);
    err = sherd_training_run(t, NULL, &d);
    assert_int_equal(err, SHERD_ETIMEOUT);
    assert_non_null(strstr(d.message, "interrupted after "));
    sherd_training_free(t);
    sherd_recipe_free(r);
}

static void a_training_runs_once_with_the_nodes_that_it_was_made_for(void **s)
{
    (void)s;
    int err;
    sherd_diag d = { 0 };
    sherd_train_options o = seeded();
    sherd_training *t = world_new(NULL, &o, &err, &d);
    assert_int_equal(sherd_training_run(t, NULL, &d), 0);
    assert_int_equal(sherd_training_run(t, NULL, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "a training runs once");
    sherd_training_free(t);
    o.nodes = 3;
    d = (sherd_diag){ 0 };
    t = world_new(NULL, &o, &err, &d);
    assert_int_equal(sherd_training_run(t, NULL, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "a training for 3 nodes was given 0");
    sherd_training_free(t);
}

static void gradients_of_any_number_of_threads_have_the_same_bits(void **s)
{
    (void)s;
    double one[WORLD_PARAMETERS], many[WORLD_PARAMETERS];
    heard h = { 0 };
    int err;
    sherd_diag d = { 0 };
    sherd_train_options o = seeded();
    o.by = SHERD_BY_GRADIENTS;
    o.threads = 1;
    run(NULL, &o, one);
    o.threads = 3;
    o.on_update = on_update;
    o.ctx = &h;
    sherd_training *t = world_new(NULL, &o, &err, &d);
    if (sherd_training_run(t, NULL, &d)) fail_msg("%s", d.message);
    world_parameters(t, many);
    assert_memory_equal(one, many, sizeof one);
    assert_true(h.updates == WORLD_STEPS && h.last.version == WORLD_STEPS - 1 &&
                h.last.examples == 20 && h.last.staleness == 0);
    sherd_train_gradients g = { .size = sizeof g };
    assert_int_equal(sherd_training_gradients_get(t, &g, NULL), 0);
    assert_true(g.shards == 8 && g.updates == WORLD_STEPS && g.in_process && g.threads == 3 &&
                !g.async && g.dropped == 0 && g.staleness_most == 0);
    sherd_train_allreduce a = { .size = sizeof a };
    sherd_train_secure sums = { .size = sizeof sums };
    sherd_train_link link = { .size = sizeof link };
    assert_int_equal(sherd_training_allreduce_get(t, &a, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_training_secure_get(t, &sums, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_training_link_at(t, 0, &link, NULL), SHERD_EINVAL);
    sherd_training_free(t);
}

static void asynchronous_gradients_obey_their_bound(void **s)
{
    (void)s;
    int err;
    sherd_diag d = { 0 };
    sherd_train_options o = seeded();
    o.by = SHERD_BY_GRADIENTS;
    o.threads = 3;
    o.async = o.staleness_bounded = true;
    o.staleness_max = 1;
    sherd_training *t = world_new(NULL, &o, &err, &d);
    if (err || sherd_training_run(t, NULL, &d)) fail_msg("%s", d.message);
    sherd_train_gradients g = { .size = sizeof g };
    assert_int_equal(sherd_training_gradients_get(t, &g, NULL), 0);
    assert_true(g.async && g.staleness_most <= 1 && g.updates > WORLD_STEPS);
    sherd_training_free(t);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refused(const char *more, const sherd_train_options *o, int code, const char *words)
{
    int err;
    sherd_diag d = { 0 };
    sherd_training *t = world_new(more, o, &err, &d);
    assert_null(t);
    if (err != code || !strstr(d.message, words)) fail_msg("%d, %s; not %s", err, d.message, words);
}

static void options_that_contradict_each_other_are_refused(void **s)
{
    (void)s;
    static const sherd_product_options exact = { .size = sizeof exact, .exact = true },
                                       share = { .size = sizeof share, .scheme = SHERD_SHARE },
                                       share1 = { .size = sizeof share1, .scheme = SHERD_SHARE1 };
#define O(...)                                                                                     \
    {                                                                                              \
        .size = sizeof(sherd_train_options), __VA_ARGS__                                           \
    }
#define GRADIENTS(...) O(.by = SHERD_BY_GRADIENTS, __VA_ARGS__)
#define SECURE(...)                                                                                \
    GRADIENTS(.aggregate = SHERD_AGGREGATE_SECURE, .nodes = 4, .simulate = true, __VA_ARGS__)
    static const struct {
        sherd_train_options o;
        const char *words;
    } cases[] = {
        { O(.check = true), "--check has no effect without nodes" },
        { O(.check = true, .products = &exact), "--check has no effect without nodes" },
        { O(.check = true, .nodes = 2), "--check compares bit for bit, which floats" },
        { O(.resume = true), "need a folder of checkpoints" },
        { O(.stochastic = true), "--rounding stochastic has no effect on floats" },
        { O(.products = &share1, .nodes = 3), "--scheme share1 is refused for a network" },
        { O(.products = &share, .nodes = 3, .elementwise_at_nodes = true),
          "would show the activations" },
        { O(.aggregate = SHERD_AGGREGATE_SECURE), "--aggregate needs --by gradients" },
        { O(.noise = 1, .clip = 1), "--noise, --clip or --survivors needs --aggregate secure" },
        { O(.by = (sherd_train_by)7), "unknown way to train 7" },
        { GRADIENTS(.products = &share, .nodes = 2),
          "--scheme share has no effect with --by gradients" },
        { GRADIENTS(.noise = 1), "needs --aggregate secure" },
        { GRADIENTS(.nodes = 2, .check = true, .async = true), "--check and --async cannot" },
        { GRADIENTS(.nodes = 2, .check = true, .allow_drop = true), "--check and --allow-drop" },
        { GRADIENTS(.nodes = 2, .check = true, .floats = true), "--check and --float-gradients" },
        { GRADIENTS(.bits = 9, .floats = true), "--bits and --float-gradients cannot" },
        { GRADIENTS(.bits = 60), "gradients of 60 bits" },
        { GRADIENTS(.shards = 5000), "5000 shards" },
        { GRADIENTS(.allow_drop = true), "--allow-drop and threads of this process" },
        { GRADIENTS(.staleness_bounded = true), "--staleness-max needs --async" },
        { GRADIENTS(.local_batch = 2), "--local-batch needs --local-steps" },
        { GRADIENTS(.weighted = true), "--average needs --local-steps" },
        { GRADIENTS(.threads = 30), "30 threads for steps of 20 examples" },
        { GRADIENTS(.nodes = 30), "30 nodes for steps of 20 examples" },
        { GRADIENTS(.aggregate = SHERD_AGGREGATE_RING), "threads of this process and --aggregate" },
        { GRADIENTS(.aggregate = SHERD_AGGREGATE_RING, .nodes = 2, .async = true),
          "--async and --aggregate ring cannot" },
        { GRADIENTS(.aggregate = SHERD_AGGREGATE_SECURE, .nodes = 4, .examples = 9),
          "--data and --aggregate secure cannot" },
        { SECURE(.shards = 3), "--shards and --aggregate secure cannot" },
        { SECURE(.async = true), "--async and --aggregate secure cannot" },
        { SECURE(.local_steps = 3), "--local-steps and --aggregate secure cannot" },
        { SECURE(.allow_drop = true), "--allow-drop and --aggregate secure cannot" },
        { SECURE(.floats = true), "--float-gradients and --aggregate secure cannot" },
        { SECURE(.check = true), "--check and --aggregate secure cannot" },
        { SECURE(.bits = 12), "--bits and --aggregate secure cannot" },
        { SECURE(.noise = 1), "--noise needs --clip" },
        { SECURE(.noise = 501, .clip = 1), "noise 501" },
        { SECURE(.clip = -1), "clip -1" },
        { SECURE(.survivors = 2), "--survivors 2: expected 3 or more" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(NULL, &cases[i].o, SHERD_EINVAL, cases[i].words);
    sherd_train_options o = { .size = 0 };
    refused(NULL, &o, SHERD_EINVAL, "sherd_train_options.size");
    o = (sherd_train_options)GRADIENTS(.threads = 1);
    refused("precision = f32\n", &o, SHERD_EINVAL, "a network of f32 is computed");
    o = (sherd_train_options)O(.products = &exact);
    refused("precision = f32\n", &o, SHERD_EINVAL, "a network of f32 is computed");
}

static void secure_sums_need_nodes_with_their_own_data(void **s)
{
    (void)s;
    sherd_recipe *r = world_recipe(NULL);
    sherd_training *t;
    sherd_diag d = { 0 };
    sherd_train_options o = GRADIENTS(.aggregate = SHERD_AGGREGATE_SECURE, .nodes = 4);
    assert_int_equal(sherd_training_new(&t, r, NULL, &o, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "--aggregate secure needs --examples N"));
    o.nodes = 0;
    o.examples = 9;
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_training_new(&t, r, NULL, &o, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "--aggregate secure needs nodes"));
    o.nodes = 4;
    o.clip = 0.5;
    d = (sherd_diag){ 0 };
    if (sherd_training_new(&t, r, NULL, &o, &d)) fail_msg("%s", d.message);
    sherd_train_secure sums = { .size = sizeof sums };
    sherd_train_report report = { .size = sizeof report };
    sherd_data_info info = { .size = sizeof info };
    assert_int_equal(sherd_training_secure_get(t, &sums, NULL), 0);
    assert_true(sums.rows == 5 && sums.places == 9 && sums.clip == 0.5 && sums.noise == 0 &&
                isnan(sums.epsilon) && sums.delta == 1e-6 && sums.colluding == 1 &&
                !sums.simulated && sums.rounds == 0);
    assert_int_equal(sherd_training_report_get(t, &report, NULL), 0);
    assert_string_equal(report.by, "summed");
    assert_true(report.steps == 12 && report.epochs == 6);
    assert_int_equal(sherd_data_get(sherd_training_data(t), &info, NULL), 0);
    assert_true(info.examples == 0 && info.inputs == 2 && info.outputs == 3);
    sherd_training_free(t);
    sherd_recipe_free(r);
}

static void a_number_is_a_seed_that_can_be_repeated(void **s)
{
    (void)s;
    double a[WORLD_PARAMETERS], b[WORLD_PARAMETERS];
    uint64_t number = 402;
    sherd_train_options o = { .size = sizeof o, .seed_number = &number };
    sherd_train_report r = { .size = sizeof r };
    int err;
    run("order = shuffled\nholdout = 0.2\n", &o, a);
    run("order = shuffled\nholdout = 0.2\n", &o, b);
    assert_memory_equal(a, b, sizeof a);
    number = 403;
    run("order = shuffled\nholdout = 0.2\n", &o, b);
    assert_memory_not_equal(a, b, sizeof a);
    o.seed_number = NULL; /* one is drawn, and reported */
    sherd_training *t = world_new(NULL, &o, &err, NULL);
    assert_int_equal(sherd_training_run(t, NULL, NULL), 0);
    world_parameters(t, a);
    assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
    assert_true(r.seed_known && r.seed_number <= UINT32_MAX);
    sherd_training_free(t);
    number = r.seed_number;
    o.seed_number = &number;
    run(NULL, &o, b);
    assert_memory_equal(a, b, sizeof a);
    number = SHERD_TRAIN_SEED_MAX + 1;
    refused(NULL, &o, SHERD_EINVAL, "the seed 9007199254740992 is too large");
    number = 1;
    o.seed = world_seed;
    refused(NULL, &o, SHERD_EINVAL, "the seed is given twice");
    o.seed_number = NULL;
    t = world_new(NULL, &o, &err, NULL); /* 32 bytes are never reported */
    assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
    assert_true(!r.seed_known && r.seed_number == 0);
    sherd_training_free(t);
}

/* Permutations derive from the seed, so a seed that is drawn for them is not reported, and they do
 * not derive from a number. */
static void a_number_is_no_secret(void **s)
{
    (void)s;
    static const sherd_product_options share = { .size = sizeof share, .scheme = SHERD_SHARE },
                                       plain = { .size = sizeof plain, .scheme = SHERD_PLAIN };
    const sherd_product_options *const schemes[] = { NULL, &share, &plain };
    uint64_t number = 402;
    for (size_t i = 0; i < 3; i++) {
        heard h = { 0 };
        sherd_train_options o = { .size = sizeof o,
                                  .nodes = 3,
                                  .products = schemes[i],
                                  .hooks = { .log = on_log, .ctx = &h } };
        sherd_train_report r = { .size = sizeof r };
        int err;
        sherd_training *t = world_new(NULL, &o, &err, NULL);
        assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
        assert_true(r.seed_known == (i > 0) && h.warned == 0);
        sherd_training_free(t);
        o.seed_number = &number;
        t = world_new(NULL, &o, &err, NULL);
        assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
        assert_true(r.seed_known && r.seed_number == 402 && h.warned == (i == 0));
        assert_memory_not_equal(t->seed, t->secret, sizeof t->seed);
        const struct sherd_training *first = t;
        sherd_training *again = world_new(NULL, &o, &err, NULL);
        assert_memory_equal(first->seed, again->seed, sizeof first->seed);
        assert_memory_not_equal(first->secret, again->secret, sizeof first->secret);
        sherd_training_free(again);
        sherd_training_free(t);
    }
}

/* The number is that of the checkpoint. */
static void a_resumed_training_warns_of_a_number_once(void **s)
{
    (void)s;
    char folder[] = "/tmp/sherd-seed-XXXXXX", command[64];
    uint64_t number = 402;
    heard h = { 0 };
    sherd_train_options o = { .size = sizeof o, .seed_number = &number };
    int err;
    sherd_diag d = { 0 };
    assert_non_null(mkdtemp(folder));
    o.checkpoints = folder;
    sherd_training *t = world_new(NULL, &o, &err, &d);
    if (!t || sherd_training_run(t, NULL, &d)) fail_msg("%s", d.message);
    sherd_training_free(t);
    o.resume = true;
    o.nodes = 3;
    o.hooks = (sherd_hooks){ .log = on_log, .ctx = &h };
    for (unsigned i = 1; i <= 2; i++) { /* without --seed, and with it */
        o.seed_number = i == 1 ? NULL : &number;
        t = world_new(NULL, &o, &err, &d);
        if (!t) fail_msg("%s", d.message);
        assert_int_equal(h.warned, i);
        sherd_training_free(t);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void the_confusion_matrix_counts_every_validation_example(void **s)
{
    (void)s;
    sherd_train_options o = seeded();
    sherd_data_part part;
    uint64_t counts[9], training[9];
    int err;
    for (int held = 0; held < 2; held++) {
        sherd_training *t = world_new(held ? "holdout = 0.25\n" : NULL, &o, &err, NULL);
        assert_int_equal(sherd_training_run(t, NULL, NULL), 0);
        assert_int_equal(sherd_training_confusion(t, counts, &part, NULL), 0);
        assert_int_equal(part, held ? SHERD_DATA_VALIDATION : SHERD_DATA_TRAINING);
        const sherd_data *data = sherd_training_data(t);
        sherd_view x = sherd_data_x(data, part), y = sherd_data_y(data, part);
        double outputs[WORLD_ROWS * 3];
        uint32_t predicted[WORLD_ROWS];
        const sherd_predict_options as = { .size = sizeof as, .divided = true };
        assert_int_equal(sherd_model_predict(sherd_training_model(t), x, outputs, 3, &as, NULL,
                                             NULL),
                         0);
        sherd_predict_labels(outputs, 3, x.rows, 3, predicted);
        sherd_predict_confusion(y.data, predicted, x.rows, 3, training);
        assert_memory_equal(counts, training, sizeof counts);
        uint64_t right = counts[0] + counts[4] + counts[8], all = 0;
        for (size_t i = 0; i < 9; i++) all += counts[i];
        assert_int_equal(all, held ? 15 : 60);
        if (held) {
            const sherd_epoch *e = sherd_training_epoch_at(t, WORLD_EPOCHS - 1);
            assert_true((double)right / 15 == e->validation_accuracy);
        }
        for (size_t n = 1, seen = n; seen >= n; n++) {
            sherd__alloc_fail_nth(n);
            err = sherd_training_confusion(t, training, NULL, NULL);
            seen = sherd__alloc_fail_nth(0);
            assert_true(err == 0 || err == SHERD_ENOMEM);
        }
        sherd_training_free(t);
    }
}

static void there_is_no_confusion_matrix_of_values_or_of_examples_elsewhere(void **s)
{
    (void)s;
    sherd_recipe *r;
    sherd_training *t;
    uint64_t counts[9];
    sherd_diag d = { 0 };
    assert_int_equal(sherd_recipe_load(&r, "parabola", NULL), 0);
    assert_int_equal(sherd_training_new(&t, r, NULL, NULL, NULL), 0);
    assert_int_equal(sherd_training_confusion(t, counts, NULL, &d), SHERD_EUNSUPPORTED);
    assert_string_equal(d.message, "there is no confusion matrix: targets are values");
    sherd_training_free(t);
    sherd_recipe_free(r);
    r = world_recipe(NULL);
    sherd_train_options o = GRADIENTS(.aggregate = SHERD_AGGREGATE_SECURE, .nodes = 4,
                                      .examples = 9);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_training_new(&t, r, NULL, &o, &d), 0);
    assert_int_equal(sherd_training_confusion(t, counts, NULL, &d), SHERD_EUNSUPPORTED);
    assert_string_equal(d.message, "there is no confusion matrix: this process has no examples");
    sherd_training_free(t);
    assert_int_equal(sherd_recipe_set(r, "standardise", "yes", NULL), 0);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_training_new(&t, r, NULL, &o, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "standardise = yes: only the nodes have the examples"));
    sherd_recipe_free(r);
}

static void any_failed_allocation_is_an_error_and_leaves_nothing(void **s)
{
    (void)s;
    double want[WORLD_PARAMETERS], got[WORLD_PARAMETERS];
    const sherd_product_options exact = { .size = sizeof exact, .exact = true };
    sherd_train_options o[2] = { seeded(), seeded() };
    o[0].products = &exact;
    o[0].stochastic = true;
    o[1].by = SHERD_BY_GRADIENTS;
    o[1].threads = 1;
    sherd_recipe *r = world_recipe("holdout = 0.25\nsteps = 2\n");
    for (int way = 0; way < 2; way++) {
        run("holdout = 0.25\nsteps = 2\n", &o[way], want);
        for (size_t n = 1, seen = n; seen >= n; n++) {
            sherd__alloc_fail_nth(n);
            int err;
            sherd_training *t = world_make(r, &o[way], &err, NULL);
            if (!err) err = sherd_training_run(t, NULL, NULL);
            seen = sherd__alloc_fail_nth(0);
            if (err != 0 && err != SHERD_ENOMEM) fail_msg("allocation %zu: %d", n, err);
            if (!err) world_parameters(t, got);
            if (!err) assert_memory_equal(want, got, sizeof got);
            sherd_training_free(t);
        }
    }
    sherd_recipe_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_are_reported_and_kept),
        cmocka_unit_test(report_every_chooses_the_epochs),
        cmocka_unit_test(reports_may_be_steps_apart),
        cmocka_unit_test(training_ends_when_validation_has_not_improved_for_too_long),
        cmocka_unit_test(a_training_that_makes_all_steps_has_its_best_model_too),
        cmocka_unit_test(patience_without_validation_data_is_refused),
        cmocka_unit_test(recipe_data_and_seed_decide_every_bit),
        cmocka_unit_test(fixed_point_and_its_rounding_are_options),
        cmocka_unit_test(names_of_operands_are_not_kept),
        cmocka_unit_test(a_training_starts_with_given_parameters),
        cmocka_unit_test(the_callback_of_an_epoch_can_end_a_training),
        cmocka_unit_test(an_interruption_ends_a_training_between_steps),
        cmocka_unit_test(a_training_ends_when_its_time_is_over),
        cmocka_unit_test(a_training_runs_once_with_the_nodes_that_it_was_made_for),
        cmocka_unit_test(gradients_of_any_number_of_threads_have_the_same_bits),
        cmocka_unit_test(asynchronous_gradients_obey_their_bound),
        cmocka_unit_test(options_that_contradict_each_other_are_refused),
        cmocka_unit_test(secure_sums_need_nodes_with_their_own_data),
        cmocka_unit_test(a_number_is_a_seed_that_can_be_repeated),
        cmocka_unit_test(a_number_is_no_secret),
        cmocka_unit_test(a_resumed_training_warns_of_a_number_once),
        cmocka_unit_test(the_confusion_matrix_counts_every_validation_example),
        cmocka_unit_test(there_is_no_confusion_matrix_of_values_or_of_examples_elsewhere),
        cmocka_unit_test(any_failed_allocation_is_an_error_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
