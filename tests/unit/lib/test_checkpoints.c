/* Checkpoints through the public interface: a training that is resumed has the bits of one that was
 * not interrupted, another training is refused, and the chain of files is verified. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "lib/train/training.h"
#include "store/chain.h"
#include "store/npz.h"
#include "training_world.h"

static char folder[] = "/tmp/sherd-checkpoints-XXXXXX", path[64];

/* Every test has its own folder. */
static int set_up(void **state)
{
    static int number;
    (void)state;
    snprintf(path, sizeof path, "%s/%d", folder, number++);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    char command[100];
    (void)state;
    snprintf(command, sizeof command, "exec rm -rf %s", folder);
    FILE *f = popen(command, "r");
    return f ? pclose(f) : -1;
}

typedef struct watched {
    unsigned asked, stop_at, writes_begun, writes_ended;
    uint64_t first_done, total; /* of progress */
} watched;

static bool interrupted(void *ctx)
{
    watched *w = ctx;
    return ++w->asked == w->stop_at;
}

static void on_progress(void *ctx, const sherd_progress *p)
{
    watched *w = ctx;
    if (w->first_done == 0) w->first_done = p->done;
    w->total = p->total;
}

static void on_checkpoint(void *ctx, bool writes)
{
    watched *w = ctx;
    *(writes ? &w->writes_begun : &w->writes_ended) += 1;
    assert_true(w->writes_begun == w->writes_ended + writes);
}

static sherd_train_options options(watched *w)
{
    return (sherd_train_options){
        .size = sizeof(sherd_train_options),
        .seed = world_seed,
        .hooks = { .interrupted = interrupted, .progress = on_progress, .ctx = w },
        .checkpoints = path,
        .checkpoint_every = 4,
        .on_checkpoint = on_checkpoint,
        .ctx = w
    };
}

/* Interrupts a training after 7 steps. */
static void interrupt_after_7_steps(const sherd_train_options *o)
{
    sherd_diag d = { 0 };
    int err = world_run(NULL, o, NULL, &d);
    if (err != SHERD_ESTOPPED || strcmp(d.message, "interrupted after 7 of 18 steps") != 0)
        fail_msg("%d, %s", err, d.message);
}

static void a_resumed_training_has_the_bits_of_an_uninterrupted_one(void **s)
{
    (void)s;
    double whole[WORLD_PARAMETERS], resumed[WORLD_PARAMETERS];
    watched w = { .stop_at = 8 };
    int err;
    sherd_diag d = { 0 };
    const sherd_train_options plain = { .size = sizeof plain, .seed = world_seed };
    sherd_train_options o = options(&w);
    assert_int_equal(world_run(NULL, &plain, whole, &d), 0);
    interrupt_after_7_steps(&o);
    assert_true(w.writes_begun == 3 &&
                w.writes_ended == 3); /* before the first step, after 4, after 7 */
    o.resume = true;
    o.seed = NULL; /* that of the checkpoint */
    w.first_done = 0;
    sherd_training *t = world_new(NULL, &o, &err, &d);
    if (err) fail_msg("%s", d.message);
    sherd_train_report r = { .size = sizeof r };
    assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
    assert_true(r.first_step == 7 && r.step == 7);
    if (sherd_training_run(t, NULL, &d)) fail_msg("%s", d.message);
    world_parameters(t, resumed);
    assert_memory_equal(whole, resumed, sizeof whole);
    assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
    assert_true(r.first_step == 7 && r.step == 18 && r.examples == 11 * 20);
    assert_true(w.first_done > 7 && w.total == 18); /* progress continues after the seventh step */
    sherd_training_free(t);
}

static void a_checkpoint_is_a_model(void **s)
{
    (void)s;
    watched w = { .stop_at = 8 };
    char file[128];
    sherd_model *m;
    sherd_diag d = { 0 };
    sherd_train_options o = options(&w);
    assert_int_equal(world_run("class_names = low, middle, high\nstandardise = yes\n", &o, NULL,
                               NULL),
                     SHERD_ESTOPPED);
    snprintf(file, sizeof file, "%s/checkpoint-000000000007.npz", path);
    if (sherd_model_load(&m, file, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd_model_outputs(m), 3);
    assert_string_equal(sherd_model_class_name(m, 2), "high");
    sherd_model_free(m);
}

/* Permutations do not derive from the number, so the file has what they derive from, too. */
static void a_resumed_training_keeps_number_and_secret_of_its_seed(void **s)
{
    (void)s;
    const uint64_t number = 402, other = 403;
    watched w = { .stop_at = 8 };
    sherd_train_options o = options(&w);
    sherd_train_report r = { .size = sizeof r };
    sherd_diag d = { 0 };
    uint8_t secret[32];
    int err;
    o.seed = NULL;
    o.seed_number = &number;
    sherd_training *t = world_new(NULL, &o, &err, NULL);
    assert_int_equal(sherd_training_run(t, NULL, NULL), SHERD_ESTOPPED);
    memcpy(secret, t->secret, sizeof secret);
    sherd_training_free(t);
    o.resume = true;
    for (int given = 0; given < 2; given++) {
        o.seed_number = given ? &number : NULL;
        t = world_new(NULL, &o, &err, NULL);
        assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
        assert_true(r.seed_known && r.seed_number == 402 && r.first_step == 7);
        assert_memory_equal(t->secret, secret, sizeof secret);
        sherd_training_free(t);
    }
    o.seed_number = &other;
    assert_null(world_new(NULL, &o, &err, &d));
    assert_int_equal(err, SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "began with another --seed"));
}

static void another_training_is_not_continued(void **s)
{
    (void)s;
    static const uint8_t other[32] = { 1 };
    static const sherd_product_options exact = { .size = sizeof exact, .exact = true };
    watched w = { .stop_at = 8 };
    sherd_train_options o = options(&w);
    interrupt_after_7_steps(&o);
    o.resume = true;
    static const struct {
        const char *more, *words;
    } recipes[] = { { "rate = 0.3\n", "is a checkpoint of another way to train" },
                    { "l2 = 0.5\n", "is a checkpoint of another network" },
                    { "holdout = 0.1\n", "is a checkpoint of another way to train" },
                    { "steps = 5\n", "has made 7 steps of 5" } };
    for (size_t i = 0; i < 6; i++) {
        sherd_train_options x = o;
        sherd_diag d = { 0 };
        int err;
        if (i == 4) x.seed = other;
        if (i == 5) x.products = &exact;
        const char *words = i < 4    ? recipes[i].words
                            : i == 4 ? "began with another --seed"
                                     : "was computed in another arithmetic";
        sherd_training *t = world_new(i < 4 ? recipes[i].more : NULL, &x, &err, &d);
        assert_null(t);
        if (err != SHERD_EFORMAT || !strstr(d.message, words)) fail_msg("%d, %s", err, d.message);
    }
    o.resume = false;
    assert_int_equal(world_run(NULL, &o, NULL, NULL), SHERD_EINVAL); /* the folder is in use */
    o.resume = true;
    w = (watched){ 0 };
    assert_int_equal(world_run("epochs = 7\nreport_every = 2\n", &o, NULL, NULL), 0); /* longer */
}

static void old_checkpoints_are_removed_and_the_others_verify(void **s)
{
    (void)s;
    watched w = { 0 };
    sherd_diag d = { 0 };
    sherd_checkpoints c = { .size = sizeof c };
    sherd_train_options o = options(&w);
    o.checkpoint_keep = 2;
    assert_int_equal(world_run(NULL, &o, NULL, NULL), 0);
    if (sherd_checkpoints_verify(path, NULL, &c, &d)) fail_msg("%s", d.message);
    assert_true(c.checkpoints == 2 && c.step == 18 && !c.whole && !c.late);
    assert_string_equal(c.first, "checkpoint-000000000016.npz");
    assert_string_equal(c.last, "checkpoint-000000000018.npz");
    assert_int_equal(sherd_checkpoints_verify(path, c.head, NULL, NULL), 0);
    c.head[3] = c.head[3] == '0' ? '1' : '0';
    assert_int_equal(sherd_checkpoints_verify(path, c.head, NULL, &d), SHERD_ECHAIN);
    assert_non_null(strstr(d.message, "ends in sha256:"));
    assert_int_equal(sherd_checkpoints_verify(path, "sha256:abc", NULL, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_checkpoints_verify(folder, NULL, NULL, NULL), SHERD_ECHAIN);
    char file[128];
    snprintf(file, sizeof file, "%s/checkpoint-000000000018.npz", path);
    assert_int_equal(truncate(file, 100), 0);
    assert_int_equal(sherd_checkpoints_verify(path, NULL, &c, NULL), SHERD_ECHAIN);
}

static void by_default_each_report_has_a_checkpoint(void **s)
{
    (void)s;
    watched w = { 0 };
    sherd_checkpoints c = { .size = sizeof c };
    sherd_train_options o = options(&w);
    o.checkpoint_every = 0;
    assert_int_equal(world_run("report_every = 2\n", &o, NULL, NULL), 0);
    assert_int_equal(sherd_checkpoints_verify(path, NULL, &c, NULL), 0);
    assert_true(c.checkpoints == 4 && c.whole); /* steps 0, 6, 12 and 18 */
}

/* Early stopping is continued where it was, also if the run is stopped after every step. */
static void a_resumed_training_stops_early_at_the_same_step(void **s)
{
    (void)s;
    static const char lines[] = "holdout = 0.25\nrate = 2\nepochs = 40\nmethod = momentum 0.9\n"
                                "patience = 3\n";
    double whole[WORLD_PARAMETERS], resumed[WORLD_PARAMETERS];
    sherd_train_report r = { .size = sizeof r }, expected = { .size = sizeof r };
    const sherd_train_options plain = { .size = sizeof plain, .seed = world_seed };
    watched w = { 0 };
    sherd_train_options o = options(&w);
    int err;
    sherd_training *t = world_new(lines, &plain, &err, NULL);
    assert_int_equal(sherd_training_run(t, NULL, NULL), 0);
    assert_int_equal(sherd_training_report_get(t, &expected, NULL), 0);
    world_parameters(t, whole);
    sherd_training_free(t);
    assert_true(expected.stopped_early && expected.best_step > 3);
    o.resume = true;
    for (int runs = 0, ended = SHERD_ESTOPPED; ended == SHERD_ESTOPPED; runs++) {
        assert_true(runs < 120);
        w.asked = 0;
        w.stop_at = 5; /* within an epoch of three steps */
        t = world_new(lines, &o, &err, NULL);
        assert_int_equal(err, 0);
        ended = sherd_training_run(t, NULL, NULL);
        assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
        world_parameters(t, resumed);
        sherd_training_free(t);
        if (ended) assert_false(r.stopped_early);
    }
    assert_true(r.stopped_early && r.step == expected.step && r.best_step == expected.best_step &&
                r.best_loss == expected.best_loss && r.best_accuracy == expected.best_accuracy);
    assert_memory_equal(whole, resumed, sizeof whole);
    w.stop_at = 0;
    t = world_new(lines, &o, &err, NULL); /* there is nothing left to do */
    assert_int_equal(sherd_training_run(t, NULL, NULL), 0);
    assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
    world_parameters(t, resumed);
    sherd_training_free(t);
    assert_true(r.stopped_early && r.step == expected.step && r.first_step == r.step);
    assert_memory_equal(whole, resumed, sizeof whole);
    assert_int_equal(world_run("holdout = 0.25\nrate = 2\nepochs = 40\nmethod = momentum 0.9\n"
                               "patience = 4\n",
                               &o, resumed, NULL),
                     0); /* more patience continues it */
}

/* The figures that a repetition has too. */
static bool equal(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static bool same_report(const sherd_epoch *a, const sherd_epoch *b)
{
    return a->epoch == b->epoch && a->step == b->step && equal(a->loss, b->loss) &&
           equal(a->accuracy, b->accuracy) && equal(a->validation_loss, b->validation_loss) &&
           equal(a->validation_accuracy, b->validation_accuracy) && equal(a->rate, b->rate);
}

static void a_resumed_training_has_the_reports_of_the_runs_before(void **s)
{
    (void)s;
    static const char *const kinds[] = { NULL, "holdout = 0.25\n", "report_every = 2 steps\n" };
    for (size_t k = 0; k < 3; k++) {
        watched w = { .stop_at = 8 };
        sherd_train_options o = options(&w);
        const sherd_train_options plain = { .size = sizeof plain, .seed = world_seed };
        int err;
        set_up(NULL);
        sherd_training *whole = world_new(kinds[k], &plain, &err, NULL);
        assert_int_equal(sherd_training_run(whole, NULL, NULL), 0);
        assert_int_equal(world_run(kinds[k], &o, NULL, NULL), SHERD_ESTOPPED);
        o.resume = true;
        sherd_training *t = world_new(kinds[k], &o, &err, NULL);
        size_t before = 0;
        while (sherd_training_epoch_at(t, before)) before++;
        assert_int_equal(before, k == 2 ? 3 : 2); /* seven steps were made */
        assert_int_equal(sherd_training_run(t, NULL, NULL), 0);
        for (size_t i = 0; sherd_training_epoch_at(whole, i); i++) {
            const sherd_epoch *e = sherd_training_epoch_at(t, i);
            assert_true(e && same_report(e, sherd_training_epoch_at(whole, i)));
            assert_true(isnan(e->seconds) == (i < before));
            assert_null(sherd_training_epoch_at(whole, i + 1) ? NULL
                                                              : sherd_training_epoch_at(t, i + 1));
        }
        sherd_training_free(t);
        sherd_training_free(whole);
    }
}

/* The step of a run without reports in between is not averaged with those before. */
static void reports_of_other_windows_begin_with_the_run(void **s)
{
    (void)s;
    watched w = { .stop_at = 8 };
    sherd_train_options o = options(&w);
    const sherd_train_options plain = { .size = sizeof plain, .seed = world_seed };
    int err;
    set_up(NULL);
    sherd_training *whole = world_new("report_every = 1 steps\n", &plain, &err, NULL);
    assert_int_equal(sherd_training_run(whole, NULL, NULL), 0);
    assert_int_equal(world_run(NULL, &o, NULL, NULL), SHERD_ESTOPPED);
    o.resume = true;
    sherd_training *t = world_new("report_every = 1 steps\n", &o, &err, NULL);
    size_t i = 0, k = 0;
    while (sherd_training_epoch_at(t, i)) i++;
    assert_int_equal(sherd_training_run(t, NULL, NULL), 0);
    const sherd_epoch *e = sherd_training_epoch_at(t, i);
    while (sherd_training_epoch_at(whole, k)->step < e->step) k++;
    assert_true(e->step == 8 && same_report(e, sherd_training_epoch_at(whole, k)));
    sherd_training_free(t);
    sherd_training_free(whole);
}

/* A checkpoint for each of many reports must not have all of the earlier ones: its table has at
 * most 501 rows, evenly spaced, and the last report. */
static void a_long_history_is_thinned(void **s)
{
    (void)s;
    watched w = { 0 };
    sherd_train_options o = options(&w);
    int err;
    o.checkpoint_every = 5000;
    assert_int_equal(world_run("epochs = 1300\nreport_every = 1 steps\n", &o, NULL, NULL), 0);
    o.resume = true;
    sherd_training *t = world_new("epochs = 1300\nreport_every = 1 steps\n", &o, &err, NULL);
    const sherd_epoch *e, *last = NULL;
    size_t len = 0;
    for (; (e = sherd_training_epoch_at(t, len)); len++) {
        if (last) assert_true(e->step > last->step && e->step <= last->step + 8);
        last = e;
    }
    assert_true(len > 450 && len <= 501 && last->step == 3900);
    sherd_training_free(t);
}

/* ---- checkpoints of other versions, and damaged ones ----------------------------------------- */

/* Writes the checkpoint of a step to another folder, without the members whose names begin with
 * `without`, and with a history of `cols` columns if that is not 0. `path` becomes that folder. */
static void rewrite(uint64_t step, const char *without, size_t cols, const double *history)
{
    char file[128], copy[sizeof path];
    sherd__npz *z;
    sherd__chain *c;
    sherd__chain_member m[64];
    size_t len = 0;
    snprintf(file, sizeof file, "%s/checkpoint-%012u.npz", path, (unsigned)step);
    assert_int_equal(sherd__npz_open(&z, file, UINT64_C(1) << 30, 1, NULL), 0);
    for (size_t i = 0; i < sherd__npz_count(z); i++) {
        const sherd__npz_member *x = sherd__npz_member_at(z, i);
        if (strcmp(x->name, "format") == 0 || strcmp(x->name, "number") == 0 ||
            strcmp(x->name, "previous") == 0 || strncmp(x->name, without, strlen(without)) == 0)
            continue;
        void *values = malloc(x->head.data_len);
        assert_non_null(values);
        assert_int_equal(sherd__npz_read(z, i, values, x->head.data_len, NULL), 0);
        m[len++] = (sherd__chain_member){ x->name,      x->head.dtype, x->head.ndim,
                                          x->head.rows, x->head.cols,  values };
    }
    size_t own = len;
    if (cols) m[len++] = (sherd__chain_member){ "history", SHERD_F64, 2, 1, cols, history };
    int n = snprintf(copy, sizeof copy, "%s-", path);
    assert_true(n > 0 && (size_t)n < sizeof copy);
    assert_int_equal(sherd__chain_open(&c, copy, true, NULL), 0);
    assert_int_equal(sherd__chain_add(c, step, m, len, NULL), 0);
    sherd__chain_close(c);
    for (size_t i = 0; i < own; i++) free((void *)(uintptr_t)m[i].values);
    sherd__npz_close(z);
    memcpy(path, copy, sizeof path);
}

static void a_checkpoint_without_history_and_patience_is_resumed(void **s)
{
    (void)s;
    double whole[WORLD_PARAMETERS], resumed[WORLD_PARAMETERS];
    static const char lines[] = "holdout = 0.25\npatience = 20\n";
    watched w = { .stop_at = 8 };
    sherd_train_options o = options(&w);
    const sherd_train_options plain = { .size = sizeof plain, .seed = world_seed };
    int err;
    sherd_diag d = { 0 };
    assert_int_equal(world_run("holdout = 0.25\n", &plain, whole, NULL), 0);
    assert_int_equal(world_run("holdout = 0.25\n", &o, NULL, NULL), SHERD_ESTOPPED);
    rewrite(7, "history", 0, NULL);
    o.resume = true;
    sherd_training *t = world_new(lines, &o, &err, &d);
    if (err) fail_msg("%s", d.message);
    assert_null(sherd_training_epoch_at(t, 0));
    assert_int_equal(sherd_training_run(t, NULL, NULL), 0);
    world_parameters(t, resumed);
    const sherd_epoch *e = sherd_training_epoch_at(t, 3);
    assert_true(e && e->step == 18 && !sherd_training_epoch_at(t, 4));
    sherd_train_report r = { .size = sizeof r };
    assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
    if (r.best_step == 18) assert_memory_equal(whole, resumed, sizeof whole);
    assert_true(r.best_step > 7 && !r.stopped_early);
    sherd_training_free(t);
}

static void without_memory_nothing_is_resumed(void **s)
{
    (void)s;
    static const char lines[] = "holdout = 0.25\npatience = 20\n";
    watched w = { .stop_at = 8 };
    sherd_train_options o = options(&w);
    size_t seen = 1;
    int err = SHERD_ENOMEM;
    assert_int_equal(world_run(lines, &o, NULL, NULL), SHERD_ESTOPPED);
    o.resume = true;
    sherd_recipe *r = world_recipe(lines);
    for (size_t n = 1; err; n++) {
        sherd_diag d = { 0 };
        sherd__alloc_fail_nth(n);
        sherd_training *t = world_make(r, &o, &err, &d);
        seen = sherd__alloc_fail_nth(0);
        if (err && err != SHERD_ENOMEM) fail_msg("%zu: %d, %s", n, err, d.message);
        assert_true(err ? !t && seen >= n : t && sherd_training_epoch_at(t, 1));
        sherd_training_free(t);
    }
    assert_true(seen > 20);
    sherd_recipe_free(r);
}

static void a_history_that_is_no_history_is_refused(void **s)
{
    (void)s;
    static const double rows[][7] = {
        { 1, 8, 1, 1, 1, 1, 1 }, /* after the step of the checkpoint */
        { 1, 0, 1, 1, 1, 1, 1 },   { 1, -3, 1, 1, 1, 1, 1 },  { 0, 3, 1, 1, 1, 1, 1 },
        { 4, 3, 1, 1, 1, 1, 1 },   { 1, 2.5, 1, 1, 1, 1, 1 }, { 1, NAN, 1, 1, 1, 1, 1 },
        { NAN, 3, 1, 1, 1, 1, 1 }, { 1, 3, NAN, 1, 1, 1, 1 }, { 1, INFINITY, 1, 1, 1, 1, 1 },
    };
    char folder_of[sizeof path];
    watched w = { .stop_at = 8 };
    sherd_train_options o = options(&w);
    int err;
    interrupt_after_7_steps(&o);
    o.resume = true;
    snprintf(folder_of, sizeof folder_of, "%s", path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows + 1; i++) {
        sherd_diag d = { 0 };
        char command[100];
        bool narrow = i == sizeof rows / sizeof *rows;
        snprintf(path, sizeof path, "%s", folder_of);
        rewrite(7, "history", narrow ? 6 : 7, narrow ? rows[0] : rows[i]);
        assert_null(world_new(NULL, &o, &err, &d));
        assert_int_equal(err, SHERD_EFORMAT);
        if (!strstr(d.message, "history: ")) fail_msg("%s", d.message);
        snprintf(command, sizeof command, "exec rm -rf %s", path);
        FILE *f = popen(command, "r");
        assert_true(f && pclose(f) == 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(a_resumed_training_has_the_bits_of_an_uninterrupted_one),
        TEST(a_checkpoint_is_a_model),
        TEST(a_resumed_training_keeps_number_and_secret_of_its_seed),
        TEST(another_training_is_not_continued),
        TEST(old_checkpoints_are_removed_and_the_others_verify),
        TEST(by_default_each_report_has_a_checkpoint),
        TEST(a_resumed_training_stops_early_at_the_same_step),
        TEST(a_resumed_training_has_the_reports_of_the_runs_before),
        TEST(reports_of_other_windows_begin_with_the_run),
        TEST(a_long_history_is_thinned),
        TEST(a_checkpoint_without_history_and_patience_is_resumed),
        TEST(a_history_that_is_no_history_is_refused),
        TEST(without_memory_nothing_is_resumed),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
