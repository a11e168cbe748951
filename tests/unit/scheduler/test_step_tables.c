/* Tables of a training step: which one a call gets, keys, and what was shown. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "crypto/perm.h"
#include "scheduler/job/step_tables.h"

enum { NODES = 2 };

/* A product of 4 x 6 x 5, a tanh of 1 x 3, and the same product again. */
static sherd__step_tables make(void)
{
    static const sherd_op kinds[] = { SHERD_OP_PRODUCT, SHERD_OP_TANH, SHERD_OP_PRODUCT };
    sherd__step_tables t = { .nodes = NODES, .len = 3, .at = sherd__calloc(3, sizeof *t.at) };
    memset(t.seed, 7, sizeof t.seed);
    for (size_t i = 0; i < t.len; i++) {
        bool dot = kinds[i] == SHERD_OP_PRODUCT;
        t.at[i] = (sherd__step_table){
            .op = { .kind = kinds[i], .n = dot ? 4 : 1, .k = dot ? 6 : 0, .m = dot ? 5 : 3 },
            .number = 10 + i,
            .exposures = sherd__calloc(6, sizeof(uint32_t)),
            .shown = sherd__calloc(2 * NODES, sizeof(double))
        };
    }
    return t;
}

static sherd__step_table *take(sherd__step_tables *t, sherd_op kind, size_t columns, size_t length)
{
    sherd__step_table *x = NULL;
    sherd_diag d = { 0 };
    int err = sherd__step_tables_next(t, kind, columns, length, &x, &d);
    assert_true(err == 0 || (err == SHERD_EINTERNAL && d.message[0] && !x));
    return x;
}

static void a_pass_takes_the_tables_in_their_order(void **s)
{
    (void)s;
    sherd__step_tables t = make();
    for (uint64_t pass = 3; pass < 5; pass++) {
        sherd__step_tables_begin(&t, pass);
        assert_int_equal(t.pass, pass);
        assert_ptr_equal(take(&t, SHERD_OP_PRODUCT, 6, 5), &t.at[0]);
        assert_ptr_equal(take(&t, SHERD_OP_TANH, 3, 3), &t.at[1]);
        assert_ptr_equal(take(&t, SHERD_OP_PRODUCT, 2, 5), &t.at[2]); /* a shorter batch */
        assert_null(take(&t, SHERD_OP_PRODUCT, 6, 5));
    }
    sherd__step_tables_begin(&t, sherd__pass_of_validation(9, 1)); /* the forward part only */
    assert_ptr_equal(take(&t, SHERD_OP_PRODUCT, 6, 5), &t.at[0]);
    sherd__step_tables_fini(&t);
    assert_null(t.at);
    sherd__step_tables_fini(&t);
}

static void another_operation_than_the_next_is_an_error(void **s)
{
    (void)s;
    sherd__step_tables t = make();
    sherd__step_tables_begin(&t, 0);
    assert_null(take(&t, SHERD_OP_TANH, 3, 3));
    assert_null(take(&t, SHERD_OP_PRODUCT, 7, 5));
    assert_null(take(&t, SHERD_OP_PRODUCT, 6, 6));
    assert_int_equal(t.next, 0);
    assert_non_null(take(&t, SHERD_OP_PRODUCT, 6, 5));
    sherd__step_tables_fini(&t);
}

static void only_the_next_table_decides_what_stays(void **s)
{
    (void)s;
    sherd__step_tables t = make();
    t.at[2].kept = true;
    sherd__step_tables_begin(&t, 0);
    assert_false(sherd__step_tables_keep(&t));
    assert_non_null(take(&t, SHERD_OP_PRODUCT, 6, 5));
    assert_non_null(take(&t, SHERD_OP_TANH, 3, 3));
    assert_true(sherd__step_tables_keep(&t));
    assert_non_null(take(&t, SHERD_OP_PRODUCT, 6, 5));
    assert_false(sherd__step_tables_keep(&t)); /* there is no other */
    sherd__step_tables_fini(&t);
}

static void keys_depend_on_the_operation_and_on_the_turn(void **s)
{
    (void)s;
    sherd__step_tables t = make();
    uint8_t key[32], want[32], other[32];
    sherd__step_table_key(&t, &t.at[2], 5, key);
    sherd__perm_key(want, t.seed, "perm-v1", 12, 5);
    assert_memory_equal(key, want, sizeof key);
    sherd__step_table_key(&t, &t.at[0], 5, other);
    assert_memory_not_equal(key, other, sizeof key);
    sherd__step_table_key(&t, &t.at[2], 6, other);
    assert_memory_not_equal(key, other, sizeof key);
    sherd__step_tables_fini(&t);
}

/* Steps, and batches of validations after different numbers of steps, have numbers of their own. */
static void numbers_of_passes_do_not_overlap(void **s)
{
    (void)s;
    uint64_t last = sherd__pass_of_validation(7, SHERD__PASS_BATCHES - 1);
    assert_int_equal(sherd__pass_of_validation(8, 0), last + 1);
    assert_true(sherd__pass_of_validation(0, 0) > SHERD__PASS_STEPS);
    assert_true(sherd__pass_of_validation(SHERD__PASS_STEPS - 1, SHERD__PASS_BATCHES - 1) ==
                UINT64_MAX);
}

static void the_largest_fractions_are_kept(void **s)
{
    (void)s;
    double a[] = { 0.5, 0.25 }, b[] = { 0.125, 1 }, less[] = { 0.25, 0.5 };
    sherd__step_tables t = make();
    const sherd_report first = { .nodes = NODES, .exposed_a = a, .exposed_b = b },
                       then = { .nodes = NODES, .exposed_a = less, .exposed_b = less },
                       none = { .nodes = 0 };
    sherd__step_table_show(&t.at[0], &first);
    sherd__step_table_show(&t.at[0], &then);
    sherd__step_table_show(&t.at[0], &none); /* it failed before nodes were given work */
    assert_int_equal(t.at[0].calls, 2);
    assert_true(t.at[0].shown[0] == 0.5 && t.at[0].shown[1] == 0.5);
    assert_true(t.at[0].shown[NODES] == 0.25 && t.at[0].shown[NODES + 1] == 1);
    sherd__step_tables_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_takes_the_tables_in_their_order),
        cmocka_unit_test(another_operation_than_the_next_is_an_error),
        cmocka_unit_test(only_the_next_table_decides_what_stays),
        cmocka_unit_test(keys_depend_on_the_operation_and_on_the_turn),
        cmocka_unit_test(numbers_of_passes_do_not_overlap),
        cmocka_unit_test(the_largest_fractions_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
