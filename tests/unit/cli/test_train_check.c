/* --check: that it passes what is equal, sees one bit anywhere, and says where. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/train.h"

#define BITS 17u

static const char text[] = "input = 2\nlayer = dense 5\nlayer = tanh\nlayer = dense 3\n"
                           "loss = cross-entropy\ndata = spiral\nexamples = 40\nclasses = 3\n"
                           "batch = 16\nepochs = 3\nmethod = momentum\nrate = 0.1\n";

static sherd__train begin(const char *more)
{
    char whole[400];
    sherd_diag d = { 0 };
    sherd__train t = { .log = { .fd = -1 }, .over = { .bits = BITS } };
    snprintf(whole, sizeof whole, "%s%s", text, more);
    memset(t.seed, 7, sizeof t.seed);
    assert_int_equal(sherd__recipe_parse(&t.recipe, whole, strlen(whole), "r", SHERD__RECIPE_ALL,
                                         &d),
                     0);
    if (sherd__data_load(&t.data, &t.recipe, NULL, 3, t.seed, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd__trainer_new(&t.trainer, &t.recipe, &t.data.train, &t.data.validation,
                                        t.seed, &d),
                     0);
    assert_int_equal(sherd_multiplier_local(&t.over.engine.products, BITS, &d), 0);
    assert_int_equal(sherd__remote_products_round(&t.over, &t.over.engine.products, &d), 0);
    assert_int_equal(sherd__stepper_products(&t.stepper, sherd__trainer_network(t.trainer),
                                             sherd__trainer_optimiser(t.trainer), t.over.engine,
                                             &d),
                     0);
    /* Initial weights may come from a file. */
    sherd__network_params(sherd__trainer_network(t.trainer))[3] = 0.25;
    if (sherd__train_check_new(&t, &d)) fail_msg("%s", d.message);
    return t;
}

static void end(sherd__train *t)
{
    sherd__train_check_free(t->check);
    sherd__stepper_free(t->stepper);
    sherd__trainer_free(t->trainer);
    sherd_multiplier_free(t->over.engine.products);
    sherd__data_fini(&t->data);
}

static int on_epoch(void *ctx, const sherd__train_epoch *e, bool report, sherd_diag *d)
{
    return sherd__train_check_epoch(ctx, e, report, d);
}

static int run(sherd__train *t, uint64_t until, sherd_diag *d)
{
    sherd__train_calls calls = { .epoch = on_epoch, .ctx = t, .keep = true, .until = until };
    return sherd__trainer_run(t->trainer, t->stepper, t->over.engine, &calls, d);
}

static void equal_trainings_pass_and_float64_stands_beside(void **s)
{
    (void)s;
    sherd__train t = begin("holdout = 0.25\n");
    sherd_diag d = { 0 };
    uint64_t parameters, epochs;
    double accuracy, validation;
    if (run(&t, 0, &d)) fail_msg("%s", d.message);
    sherd__train_check_count(&t, &parameters, &epochs);
    sherd__train_check_float64(&t, &accuracy, &validation);
    assert_true(parameters == 2 * 5 + 5 + 5 * 3 + 3 && epochs == 3);
    assert_true(accuracy > 0 && accuracy <= 1 && validation >= 0 && validation <= 1);
    end(&t);
}

static void one_bit_of_any_parameter_is_seen_and_named(void **s)
{
    (void)s;
    static const struct {
        size_t at;
        const char *name;
    } places[] = { { 0, "w1, row 0, column 0" },
                   { 9, "w1, row 1, column 4" },
                   { 12, "b1, entry 2" },
                   { 16, "w2, row 0, column 1" },
                   { 32, "b2, entry 2" } };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        sherd__train t = begin("");
        sherd_diag d = { 0 };
        assert_int_equal(run(&t, 3, &d), 0); /* the first epoch; then somebody lies */
        double *p = sherd__network_params(sherd__trainer_network(t.trainer)) + places[i].at;
        *p = nextafter(*p, 10);
        sherd__train_epoch e = { .epoch = 1, .step = 3 };
        assert_int_equal(sherd__train_check_epoch(&t, &e, false, &d), SHERD_EDIFFERS);
        if (!strstr(d.message, places[i].name) ||
            strstr(d.message, "epoch 1: 1 of 33 parameters differ") == NULL)
            fail_msg("%s", d.message);
        end(&t);
    }
}

static void another_order_of_steps_differs(void **s)
{
    (void)s;
    sherd__train t = begin("");
    sherd_diag d = { 0 };
    sherd__trainer_order(t.trainer)->seed[0] ^= 1;
    assert_int_equal(run(&t, 0, &d), SHERD_EDIFFERS);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_trainings_pass_and_float64_stands_beside),
        cmocka_unit_test(one_bit_of_any_parameter_is_seen_and_named),
        cmocka_unit_test(another_order_of_steps_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
