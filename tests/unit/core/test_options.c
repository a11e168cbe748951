/* Structs whose size is that of an older or a newer caller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/options.h"

typedef struct v1 {
    size_t size;
    int a;
    int b;
} v1;

typedef struct v2 {
    size_t size;
    int a;
    int b;
    double c;
} v2;

static void members_that_an_older_caller_lacks_are_zero(void **state)
{
    (void)state;
    const struct {
        v1 o;
        uint8_t after[8];
    } x = { .o = { .size = sizeof(v1), .a = 1, .b = 7 }, .after = { 1, 2, 3, 4 } };
    v2 mine = { .c = 3.5 };
    assert_int_equal(sherd__options_read(&mine, sizeof mine, &x.o, "options", NULL), 0);
    assert_true(mine.size == sizeof mine && mine.a == 1 && mine.b == 7 && mine.c == 0);
}

static void a_newer_caller_cannot_set_members_that_this_library_lacks(void **state)
{
    (void)state;
    v2 o = { .size = sizeof o, .b = 2 };
    v1 mine = { .a = 1 }, before;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__options_read(&mine, sizeof mine, &o, "options", &d), 0);
    assert_int_equal(mine.b, 2);
    o.c = 1;
    before = mine;
    assert_int_equal(sherd__options_read(&mine, sizeof mine, &o, "options", &d),
                     SHERD_EUNSUPPORTED);
    assert_memory_equal(&mine, &before, sizeof mine);
}

static void null_options_are_all_defaults(void **state)
{
    (void)state;
    v2 mine = { .a = 1, .c = 3.5 };
    sherd_diag d = { 0 };
    assert_int_equal(sherd__options_read(&mine, sizeof mine, NULL, "options", &d), 0);
    assert_true(mine.size == sizeof mine && mine.a == 0 && mine.b == 0 && mine.c == 0);
    assert_int_equal(sherd__result_check(NULL, "some_result", &d), SHERD_EINVAL);
    assert_string_equal(d.message, "some_result is NULL");
}

static void structs_without_a_size_are_refused(void **state)
{
    (void)state;
    /* missing, the size of a member, and a value that uninitialised memory may contain */
    static const size_t sizes[] = { 0, sizeof(size_t), (size_t)1 << 40 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        v2 mine = { .c = 3.5 }, o = { .size = sizes[i] };
        sherd_diag d = { 0 };
        assert_int_equal(sherd__options_read(&mine, sizeof mine, &o, "some_options", &d),
                         SHERD_EINVAL);
        assert_non_null(strstr(d.message, "some_options.size"));
        assert_int_equal(sherd__result_check(&o, "some_result", NULL), SHERD_EINVAL);
        assert_true(mine.c == 3.5);
    }
}

static void a_result_is_written_only_as_far_as_its_caller_has_room(void **state)
{
    (void)state;
    const v2 result = { .size = 1, .a = 1, .b = 2, .c = 3.5 };
    struct {
        v1 o;
        uint8_t after[8];
    } older = { .o = { .size = sizeof(v1) }, .after = { 0xee } };
    struct {
        v2 o;
        double newer;
    } newer = { .newer = 4 };
    newer.o.size = sizeof newer;
    assert_int_equal(sherd__result_check(&older.o, "result", NULL), 0);
    sherd__result_write(&older.o, &result, sizeof result);
    assert_true(older.o.size == sizeof(v1) && older.o.a == 1 && older.o.b == 2);
    assert_int_equal(older.after[0], 0xee);
    sherd__result_write(&newer.o, &result, sizeof result);
    assert_true(newer.o.size == sizeof newer && newer.o.c == 3.5 && newer.newer == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_an_older_caller_lacks_are_zero),
        cmocka_unit_test(a_newer_caller_cannot_set_members_that_this_library_lacks),
        cmocka_unit_test(null_options_are_all_defaults),
        cmocka_unit_test(structs_without_a_size_are_refused),
        cmocka_unit_test(a_result_is_written_only_as_far_as_its_caller_has_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
