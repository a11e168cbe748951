/*
 * Estimates before a training: time is estimated by a small part of the work, which can be
 * interrupted; memory is that of all processes of a host together.
 *
 * link: -Wl,--wrap=sherd__tiled_multiply
 * link: -Wl,--wrap=sherd__memory_available_in -Wl,--wrap=sherd__memory_available
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "matrix/tiled.h"
#include "sherd/train.h"

int __real_sherd__tiled_multiply(const sherd__tiled *p, sherd__team *team, sherd__tiled_room *room);
int __wrap_sherd__tiled_multiply(const sherd__tiled *p, sherd__team *team, sherd__tiled_room *room);

static double most; /* multiplications of one call */
static unsigned calls;
static bool stop;

int __wrap_sherd__tiled_multiply(const sherd__tiled *p, sherd__team *team, sherd__tiled_room *room)
{
    double n = (double)p->a.rows * (double)p->a.cols * (double)p->b.cols;
    most = n > most ? n : most;
    calls++;
    return __real_sherd__tiled_multiply(p, team, room);
}

uint64_t __wrap_sherd__memory_available_in(const char *root);
uint64_t __wrap_sherd__memory_available(void);

static uint64_t of_machine = UINT64_MAX, of_process = UINT64_MAX;

uint64_t __wrap_sherd__memory_available_in(const char *root)
{
    (void)root;
    return of_machine;
}

uint64_t __wrap_sherd__memory_available(void)
{
    return of_machine < of_process ? of_machine : of_process;
}

static bool interrupted(void *ctx)
{
    (void)ctx;
    return stop;
}

static void take_line(void *ctx, sherd_log_level level, const char *text)
{
    if (level == SHERD_LOG_WARN && strstr(text, "this training takes")) *(bool *)ctx = true;
}

/* Makes a training; returns the error, and whether a warning of more than a day was given. */
static int make(const char *text, const sherd_collective *among, bool *is_long, sherd_diag *d)
{
    sherd_recipe *r;
    sherd_training *t;
    sherd_train_options o = { .size = sizeof o,
                              .hooks = { interrupted, take_line, NULL, is_long },
                              .by = among ? SHERD_BY_GRADIENTS : SHERD_BY_PRODUCTS,
                              .among = among };
    *d = (sherd_diag){ 0 };
    *is_long = false;
    most = calls = 0;
    if (sherd_recipe_parse(&r, text, "r", d)) fail_msg("%s", d->message);
    int err = sherd_training_new(&t, r, NULL, &o, d);
    sherd_training_free(t);
    sherd_recipe_free(r);
    return err;
}

static bool judge(const char *text)
{
    sherd_diag d;
    bool is_long;
    if (make(text, NULL, &is_long, &d)) fail_msg("%s", d.message);
    return is_long;
}

#define LAYERS "layer = dense 1000\nlayer = relu\nlayer = dense 1000\nlayer = dense 3\n"
#define REST                                                                                       \
    "input = 2\nloss = cross-entropy\ndata = spiral\nexamples = 600\nclasses = 3\n"                \
    "batch = 300\nrate = 0.1\n"

static void only_a_part_of_the_work_is_measured_for_any_network(void **s)
{
    (void)s;
    stop = false;
    assert_true(judge(LAYERS REST "epochs = 100000000000\n"));
    assert_true(calls > 0 && most > 0 && most <= 256. * 256 * 256);
    assert_false(judge(LAYERS REST "epochs = 1\n"));
    assert_true(judge(LAYERS REST "epochs = 100000000000\nprecision = f32\n"));
    assert_true(calls > 0 && most <= 256. * 256 * 256);
}

static void small_networks_and_images_are_estimated(void **s)
{
    (void)s;
    stop = false;
    assert_true(judge("layer = dense 3\n" REST "epochs = 1000000000000\n"));
    assert_true(calls > 0 && most <= 256. * 2 * 3);
    assert_true(judge("input = 32 x 32 x 3\nlayer = conv2d 8 window 3\nlayer = relu\n"
                      "layer = flatten\nlayer = dense 3\nloss = cross-entropy\ndata = random\n"
                      "examples = 30\nclasses = 3\nbatch = 10\nrate = 0.1\n"
                      "epochs = 10000000000\n"));
    assert_true(calls > 0 && most <= 256. * 256 * 256);
}

static void an_interruption_ends_the_measurement_after_the_current_product(void **s)
{
    (void)s;
    stop = true;
    (void)judge(LAYERS REST "epochs = 100000000000\n");
    assert_int_equal(calls, 1);
    stop = false;
}

static int alone(void *ctx, int64_t *values, size_t n, sherd_diag *d)
{
    (void)ctx;
    (void)values;
    (void)n;
    (void)d;
    return 0;
}

/* Makes a training of a network of 1,007,003 parameters in so many processes of a host. */
static int weigh(uint32_t here, sherd_diag *d)
{
    bool common = false, is_long;
    const sherd_collective peers = { .size = sizeof peers,
                                     .name = "test",
                                     .count = 1,
                                     .here = here,
                                     .sum = alone,
                                     .common = &common };
    int err = make(LAYERS REST "epochs = 1\n", here > 0 ? &peers : NULL, &is_long, d);
    assert_int_equal(common, err && here > 0);
    return err;
}

static void memory_is_estimated_for_all_processes_of_a_host(void **s)
{
    (void)s;
    sherd_diag d;
    of_machine = 60000000;
    assert_int_equal(weigh(0, &d), 0);
    assert_int_equal(weigh(1, &d), 0);
    assert_int_equal(weigh(4, &d), SHERD_ENOMEM);
    assert_non_null(strstr(d.message, "r: training takes "));
    assert_non_null(strstr(d.message, " in 4 processes of this host (1007003 parameters), "
                                      "and 60 MB"));
    of_process = 1000000; /* which the others do not share */
    of_machine = UINT64_MAX;
    assert_int_equal(weigh(4, &d), SHERD_ENOMEM);
    assert_null(strstr(d.message, "processes"));
    assert_non_null(strstr(d.message, "1.0 MB are available"));
    of_process = 60000000;
    assert_int_equal(weigh(4, &d), 0);
    of_process = UINT64_MAX;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_part_of_the_work_is_measured_for_any_network),
        cmocka_unit_test(small_networks_and_images_are_estimated),
        cmocka_unit_test(memory_is_estimated_for_all_processes_of_a_host),
        cmocka_unit_test(an_interruption_ends_the_measurement_after_the_current_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
