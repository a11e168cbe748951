/* The table of open tasks compared with a plain list: random adds, finds and removes, at many
 * loads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "wire/tasks.h"

static sherd__task named(uint64_t job, uint32_t task, uint32_t attempt)
{
    return (sherd__task){ .job = job, .task = task, .attempt = attempt };
}

static void an_empty_table_finds_nothing(void **state)
{
    (void)state;
    sherd__tasks t = { 0 };
    assert_null(sherd__tasks_find(&t, 1, 1, 1));
    sherd__tasks_fini(&t);
}

static void random_changes_agree_with_a_plain_list(void **state)
{
    (void)state;
    enum { NAMES = 200, STEPS = 50000 };
    sherd__seeded seeded;
    sherd__entropy e = sherd__entropy_seeded(&seeded, 7);
    sherd__tasks t = { 0 };
    bool in[NAMES] = { false };
    size_t len = 0;
    for (int step = 0; step < STEPS; step++) {
        /* The table fills and empties in waves; names differ in one part only. */
        uint32_t k = (uint32_t)sherd__entropy_below(&e, NAMES);
        bool fill = sherd__entropy_below(&e, 10) < (step / 5000 % 2 ? 3u : 7u);
        sherd__task name = named(1 + k % 3, 1 + k / 3 % 9, k / 27);
        sherd__open_task *o = sherd__tasks_find(&t, name.job, name.task, name.attempt);
        assert_int_equal(o != NULL, in[k]);
        if (o) assert_int_equal(o->sequence, k);
        if (fill) {
            assert_int_equal(sherd__tasks_add(&t, &name, k), in[k] ? SHERD_EINVAL : SHERD_OK);
            len += !in[k];
            in[k] = true;
        } else if (o) {
            sherd__tasks_remove(&t, o);
            in[k] = false;
            len--;
        }
        assert_int_equal(t.table.len, len);
    }
    for (uint32_t k = 0; k < NAMES; k++)
        assert_int_equal(sherd__tasks_find(&t, 1 + k % 3, 1 + k / 3 % 9, k / 27) != NULL, in[k]);
    sherd__tasks_fini(&t);
}

static void the_table_holds_the_promised_number_and_is_then_busy(void **state)
{
    (void)state;
    sherd__tasks t = { 0 };
    for (uint32_t i = 1; i <= SHERD__TASKS_MAX; i++) {
        sherd__task name = named(1, i, 0);
        if (sherd__tasks_add(&t, &name, i)) fail_msg("task %u was not taken", i);
    }
    sherd__task one_more = named(2, 1, 0);
    assert_int_equal(sherd__tasks_add(&t, &one_more, 0), SHERD_EBUSY);
    assert_int_equal(sherd__tasks_find(&t, 1, SHERD__TASKS_MAX, 0)->sequence, SHERD__TASKS_MAX);
    sherd__tasks_fini(&t);
}

static void a_failed_growth_leaves_the_table_unchanged(void **state)
{
    (void)state;
    sherd__tasks t = { 0 };
    sherd__task name;
    uint32_t n = 0;
    for (;; n++) {
        name = named(1, n + 1, 0);
        sherd__alloc_fail_nth(1);
        int err = sherd__tasks_add(&t, &name, n);
        sherd__alloc_fail_nth(0);
        if (err) {
            assert_int_equal(err, SHERD_ENOMEM);
            assert_int_equal(t.table.len, n);
            assert_null(sherd__tasks_find(&t, 1, n + 1, 0));
            if (n > 0) break;
            assert_int_equal(sherd__tasks_add(&t, &name, n), SHERD_OK);
        }
    }
    for (uint32_t i = 0; i < n; i++) assert_non_null(sherd__tasks_find(&t, 1, i + 1, 0));
    sherd__tasks_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_finds_nothing),
        cmocka_unit_test(random_changes_agree_with_a_plain_list),
        cmocka_unit_test(the_table_holds_the_promised_number_and_is_then_busy),
        cmocka_unit_test(a_failed_growth_leaves_the_table_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
