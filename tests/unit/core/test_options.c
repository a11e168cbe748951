/* Option structs of an older and a newer caller. */
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

static const v2 defaults = { .a = 1, .b = 2, .c = 3.5 };

static void init_sets_the_size_and_the_defaults(void **state)
{
    (void)state;
    v2 o;
    memset(&o, 0xff, sizeof o);
    sherd__options_init(&o, sizeof o, &defaults, sizeof defaults);
    assert_int_equal(o.size, sizeof o);
    assert_true(o.a == 1 && o.b == 2 && o.c == 3.5);
}

static void an_older_caller_gets_defaults_for_what_it_does_not_know(void **state)
{
    (void)state;
    struct {
        v1 o;
        uint8_t after[8];
    } x;
    memset(&x, 0xee, sizeof x);
    sherd__options_init(&x.o, sizeof x.o, &defaults, sizeof defaults);
    for (size_t i = 0; i < sizeof x.after; i++) assert_int_equal(x.after[i], 0xee);
    x.o.b = 7;
    v2 mine = defaults;
    assert_int_equal(sherd__options_read(&mine, sizeof mine, &x.o, sizeof(v1), "options", NULL), 0);
    assert_true(mine.size == sizeof mine && mine.a == 1 && mine.b == 7 && mine.c == 3.5);
}

static void a_newer_caller_may_not_set_what_this_library_lacks(void **state)
{
    (void)state;
    v2 o;
    v1 mine = { .a = 1 }, before;
    const v1 known = { .a = 1, .b = 2 };
    sherd_diag d = { 0 };
    sherd__options_init(&o, sizeof o, &known, sizeof known);
    assert_int_equal(sherd__options_read(&mine, sizeof mine, &o, sizeof(v1), "options", &d), 0);
    assert_int_equal(mine.b, 2);
    o.c = 1;
    before = mine;
    assert_int_equal(sherd__options_read(&mine, sizeof mine, &o, sizeof(v1), "options", &d),
                     SHERD_EUNSUPPORTED);
    assert_memory_equal(&mine, &before, sizeof mine);
}

static void options_without_a_size_are_refused(void **state)
{
    (void)state;
    v2 mine = defaults, o = { 0 };
    sherd_diag d = { 0 };
    assert_int_equal(sherd__options_read(&mine, sizeof mine, &o, sizeof(v1), "options", &d),
                     SHERD_EINVAL);
    assert_non_null(strstr(d.hint, "_init"));
    o.size = (size_t)1 << 40; /* what an uninitialised struct may contain */
    assert_int_equal(sherd__options_read(&mine, sizeof mine, &o, sizeof(v1), "options", NULL),
                     SHERD_EINVAL);
    assert_true(mine.c == 3.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_sets_the_size_and_the_defaults),
        cmocka_unit_test(an_older_caller_gets_defaults_for_what_it_does_not_know),
        cmocka_unit_test(a_newer_caller_may_not_set_what_this_library_lacks),
        cmocka_unit_test(options_without_a_size_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
