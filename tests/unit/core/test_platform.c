/* The hash of what determines results: equal for the same process, different for another
 * environment. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/platform.h"

static void it_is_the_same_each_time(void **s)
{
    (void)s;
    uint8_t one[SHERD__HASH] = { 0 }, two[SHERD__HASH] = { 1 };
    if (!sherd__platform_hash(one)) skip(); /* a library without a build id */
    assert_true(sherd__platform_hash(two));
    assert_memory_equal(one, two, sizeof one);
    assert_int_equal(setenv("SOME_VARIABLE", "1", 1), 0);
    assert_true(sherd__platform_hash(two));
    assert_memory_equal(one, two, sizeof one);
}

static void variables_that_select_code_change_it(void **s)
{
    (void)s;
    static const char *const names[] = { "OPENBLAS_CORETYPE", "LD_PRELOAD", "GLIBC_TUNABLES" };
    uint8_t one[SHERD__HASH], two[SHERD__HASH];
    if (!sherd__platform_hash(one)) skip();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *was = getenv(names[i]);
        if (was) continue;
        assert_int_equal(setenv(names[i], "other", 1), 0);
        assert_true(sherd__platform_hash(two));
        assert_memory_not_equal(one, two, sizeof one);
        assert_int_equal(unsetenv(names[i]), 0);
    }
    assert_true(sherd__platform_hash(two));
    assert_memory_equal(one, two, sizeof one);
}

static void another_library_changes_it(void **s)
{
    (void)s;
    uint8_t one[SHERD__HASH], two[SHERD__HASH];
    if (!sherd__platform_hash(one)) skip();
    void *library = dlopen("libanl.so.1", RTLD_NOW);
    if (!library) library = dlopen("libBrokenLocale.so.1", RTLD_NOW);
    if (!library) skip();
    assert_true(sherd__platform_hash(two));
    assert_memory_not_equal(one, two, sizeof one);
    dlclose(library);
}

static void without_memory_nothing_is_known(void **s)
{
    (void)s;
    uint8_t hash[SHERD__HASH];
    sherd__alloc_fail_nth(1);
    assert_false(sherd__platform_hash(hash));
    sherd__alloc_fail_nth(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_same_each_time),
        cmocka_unit_test(variables_that_select_code_change_it),
        cmocka_unit_test(another_library_changes_it),
        cmocka_unit_test(without_memory_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
