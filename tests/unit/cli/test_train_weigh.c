/*
 * The time that a training takes is judged by a small piece of its work, which a signal ends;
 * memory by what all processes of a host take together.
 *
 * link: -Wl,--wrap=sherd__tiled_multiply -Wl,--wrap=sherd__cli_interrupted
 * link: -Wl,--wrap=sherd__memory_told -Wl,--wrap=sherd__memory_available
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cli/options.h"
#include "cli/train.h"
#include "matrix/tiled.h"

int __real_sherd__tiled_multiply(const sherd__tiled *p, sherd__team *team, sherd__tiled_room *room);
int __wrap_sherd__tiled_multiply(const sherd__tiled *p, sherd__team *team, sherd__tiled_room *room);
int __wrap_sherd__cli_interrupted(void);

static double most; /* multiplications of one call */
static unsigned calls;
static int came; /* a signal */

int __wrap_sherd__tiled_multiply(const sherd__tiled *p, sherd__team *team, sherd__tiled_room *room)
{
    double n = (double)p->a.rows * (double)p->a.cols * (double)p->b.cols;
    most = n > most ? n : most;
    calls++;
    return __real_sherd__tiled_multiply(p, team, room);
}

int __wrap_sherd__cli_interrupted(void)
{
    return came;
}

uint64_t __wrap_sherd__memory_told(const char *root);
uint64_t __wrap_sherd__memory_available(void);

static uint64_t of_machine = UINT64_MAX, of_process = UINT64_MAX;

uint64_t __wrap_sherd__memory_told(const char *root)
{
    (void)root;
    return of_machine;
}

uint64_t __wrap_sherd__memory_available(void)
{
    return of_machine < of_process ? of_machine : of_process;
}

static const sherd__option none[] = { { 0 } };
static const sherd__verb verb = { .name = "train", .usage = "", .options = none, .args_max = 9 };

/* One training, judged; whether it was found to take more than a day. */
static bool judge(const char *text)
{
    sherd__cli cli = { .verb = &verb, .quiet = true };
    sherd__train t = { .cli = &cli, .log = { .fd = -1 } };
    sherd_diag d = { 0 };
    most = calls = 0;
    if (sherd__recipe_parse(&t.recipe, text, strlen(text), "r", SHERD__RECIPE_ALL, &d))
        fail_msg("%s", d.message);
    if (sherd__data_load(&t.data, &t.recipe, NULL, 3, t.seed, &d)) fail_msg("%s", d.message);
    if (sherd__trainer_new(&t.trainer, &t.recipe, &t.data.train, NULL, t.seed, &d))
        fail_msg("%s", d.message);
    sherd__train_foretell(&t);
    sherd__trainer_free(t.trainer);
    sherd__data_fini(&t.data);
    return t.foretold;
}

#define LAYERS "layer = dense 1000\nlayer = relu\nlayer = dense 1000\nlayer = dense 3\n"
#define REST                                                                                       \
    "input = 2\nloss = cross-entropy\ndata = spiral\nexamples = 600\nclasses = 3\n"                \
    "batch = 300\nrate = 0.1\n"

static void a_part_of_the_work_is_measured_however_large_the_network(void **s)
{
    (void)s;
    came = 0;
    assert_true(judge(LAYERS REST "epochs = 100000000000\n"));
    assert_true(calls > 0 && most > 0 && most <= 256. * 256 * 256);
    assert_false(judge(LAYERS REST "epochs = 1\n"));
    assert_true(judge(LAYERS REST "epochs = 100000000000\nprecision = f32\n"));
    assert_true(calls > 0 && most <= 256. * 256 * 256);
}

static void small_networks_and_images_are_judged_too(void **s)
{
    (void)s;
    came = 0;
    assert_true(judge("layer = dense 3\n" REST "epochs = 1000000000000\n"));
    assert_true(calls > 0 && most <= 256. * 2 * 3);
    assert_true(judge("input = 32 x 32 x 3\nlayer = conv2d 8 window 3\nlayer = relu\n"
                      "layer = flatten\nlayer = dense 3\nloss = cross-entropy\ndata = random\n"
                      "examples = 30\nclasses = 3\nbatch = 10\nrate = 0.1\n"
                      "epochs = 10000000000\n"));
    assert_true(calls > 0 && most <= 256. * 256 * 256);
}

static void a_signal_ends_it_after_what_is_under_way(void **s)
{
    (void)s;
    came = 2;
    (void)judge(LAYERS REST "epochs = 100000000000\n");
    assert_int_equal(calls, 1);
}

static int alone(void *ctx, int64_t *values, size_t n, sherd_diag *d)
{
    (void)ctx;
    (void)values;
    (void)n;
    (void)d;
    return 0;
}

/* What is said of a network of 1,007,003 parameters in so many processes of a host. */
static int weigh(uint32_t here, sherd_diag *d)
{
    static const char text[] = LAYERS REST "epochs = 1\n";
    static const sherd__option options[] = { { .name = "check", .type = SHERD__FLAG }, { 0 } };
    static const sherd__verb with = { .name = "train", .usage = "", .options = options };
    char name[] = "train", *argv[] = { name, NULL };
    const sherd__collective equals = { "test", 0, 1, here, alone, NULL };
    sherd__cli cli = { .verb = &with };
    sherd__train t = { .cli = &cli, .name = "r", .log = { .fd = -1 } };
    size_t width;
    bool help = false;
    *d = (sherd_diag){ 0 };
    if (sherd__opts_parse(&cli, 1, argv, NULL, &help, d) ||
        sherd__recipe_parse(&t.recipe, text, strlen(text), "r", SHERD__RECIPE_ALL, d))
        fail_msg("%s", d->message);
    sherd__train_among(here > 0 ? &equals : NULL);
    int err = sherd__train_weigh(&t, 0, &width, d);
    sherd__train_among(NULL);
    sherd__opts_free(cli.opts);
    return err;
}

static void memory_is_judged_for_all_processes_of_a_host(void **s)
{
    (void)s;
    sherd_diag d;
    of_machine = 40000000;
    assert_int_equal(weigh(0, &d), 0);
    assert_int_equal(weigh(1, &d), 0);
    assert_int_equal(weigh(4, &d), SHERD_ENOMEM);
    assert_non_null(strstr(d.message, " in 4 processes of this host (1007003 parameters), "
                                      "and 40 MB"));
    of_process = 1000000; /* which the others do not share */
    of_machine = UINT64_MAX;
    assert_int_equal(weigh(4, &d), SHERD_ENOMEM);
    assert_null(strstr(d.message, "processes"));
    assert_non_null(strstr(d.message, "1.0 MB are available"));
    of_process = 40000000;
    assert_int_equal(weigh(4, &d), 0);
    of_process = UINT64_MAX;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_of_the_work_is_measured_however_large_the_network),
        cmocka_unit_test(small_networks_and_images_are_judged_too),
        cmocka_unit_test(memory_is_judged_for_all_processes_of_a_host),
        cmocka_unit_test(a_signal_ends_it_after_what_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
