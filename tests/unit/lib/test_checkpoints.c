/* Checkpoints through the public interface: a training that is resumed has the bits of one that was
 * not interrupted, another training is refused, and the chain of files is verified. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/train/training.h"
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
} watched;

static bool interrupted(void *ctx)
{
    watched *w = ctx;
    return ++w->asked == w->stop_at;
}

static void on_checkpoint(void *ctx, bool writes)
{
    watched *w = ctx;
    *(writes ? &w->writes_begun : &w->writes_ended) += 1;
    assert_true(w->writes_begun == w->writes_ended + writes);
}

static sherd_train_options options(watched *w)
{
    return (sherd_train_options){ .size = sizeof(sherd_train_options),
                                  .seed = world_seed,
                                  .hooks = { .interrupted = interrupted, .ctx = w },
                                  .checkpoints = path,
                                  .checkpoint_every = 4,
                                  .on_checkpoint = on_checkpoint,
                                  .ctx = w };
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
    assert_int_equal(sherd_checkpoints_verify(folder, NULL, NULL, NULL), SHERD_EINVAL);
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
    };
    return cmocka_run_group_tests(tests, begin, end);
}
