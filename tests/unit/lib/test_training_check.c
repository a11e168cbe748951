/* The comparison with the same training here: equal trainings pass, and one bit of any parameter is
 * found and named. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/train/training.h"

static const char text[] = "input = 2\nlayer = dense 5\nlayer = tanh\nlayer = dense 3\n"
                           "loss = cross-entropy\ndata = spiral\nexamples = 40\nclasses = 3\n"
                           "batch = 16\nepochs = 3\nmethod = momentum\nrate = 0.1\n";

/* Opens a training in fixed point as sherd_training_run does, with the multiplier of this machine
 * in place of nodes. */
static sherd_training *begin(const char *more)
{
    char whole[400];
    const uint8_t seed[32] = { 7, 7, 7 };
    sherd_diag d = { 0 };
    sherd_recipe *r;
    sherd_training *t;
    const sherd_product_options exact = { .size = sizeof exact, .exact = true };
    const sherd_train_options o = { .size = sizeof o, .seed = seed, .products = &exact };
    snprintf(whole, sizeof whole, "%s%s", text, more);
    if (sherd_recipe_parse(&r, whole, "r", &d)) fail_msg("%s", d.message);
    if (sherd_training_new(&t, r, NULL, &o, &d)) fail_msg("%s", d.message);
    sherd_recipe_free(r);
    assert_int_equal(sherd__network_products_open(&t->products, NULL, NULL, &d), 0);
    assert_int_equal(sherd__stepper_products(&t->stepper, sherd__trainer_network(t->trainer),
                                             sherd__trainer_optimiser(t->trainer),
                                             t->products.engine, &d),
                     0);
    /* Initial weights may come from a file. */
    sherd__network_params(sherd__trainer_network(t->trainer))[3] = 0.25;
    if (sherd__training_check_new(t, &d)) fail_msg("%s", d.message);
    return t;
}

static void end(sherd_training *t)
{
    sherd__stepper_free(t->stepper);
    sherd__network_products_close(&t->products);
    sherd_training_free(t);
}

static int on_epoch(void *ctx, const sherd__train_epoch *e, bool report, sherd_diag *d)
{
    return sherd__training_check_epoch(ctx, e, report, d);
}

static int run(sherd_training *t, uint64_t until, sherd_diag *d)
{
    sherd__train_calls calls = { .epoch = on_epoch, .ctx = t, .keep = true, .until = until };
    return sherd__trainer_run(t->trainer, t->stepper, t->products.engine, &calls, d);
}

static void equal_trainings_pass_and_float64_is_measured_beside(void **s)
{
    (void)s;
    sherd_training *t = begin("holdout = 0.25\n");
    sherd_diag d = { 0 };
    double accuracy, validation;
    if (run(t, 0, &d)) fail_msg("%s", d.message);
    sherd__training_check_float64(t, &accuracy, &validation);
    assert_int_equal(sherd__training_checked(t), 3);
    assert_true(accuracy > 0 && accuracy <= 1 && validation >= 0 && validation <= 1);
    end(t);
}

static void a_difference_of_one_bit_is_found_and_named(void **s)
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
        sherd_training *t = begin("");
        sherd_diag d = { 0 };
        assert_int_equal(run(t, 3, &d), 0); /* the first epoch */
        double *p = sherd__network_params(sherd__trainer_network(t->trainer)) + places[i].at;
        *p = nextafter(*p, 10);
        sherd__train_epoch e = { .epoch = 1, .step = 3 };
        assert_int_equal(sherd__training_check_epoch(t, &e, false, &d), SHERD_EDIFFERS);
        if (!strstr(d.message, places[i].name) ||
            !strstr(d.message, "epoch 1: 1 of 33 parameters differ"))
            fail_msg("%s", d.message);
        end(t);
    }
}

static void another_order_of_steps_differs(void **s)
{
    (void)s;
    sherd_training *t = begin("");
    sherd_diag d = { 0 };
    sherd__trainer_order(t->trainer)->seed[0] ^= 1;
    assert_int_equal(run(t, 0, &d), SHERD_EDIFFERS);
    end(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_trainings_pass_and_float64_is_measured_beside),
        cmocka_unit_test(a_difference_of_one_bit_is_found_and_named),
        cmocka_unit_test(another_order_of_steps_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
