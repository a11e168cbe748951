#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "core/suggest.h"

static const char *const verbs[] = { "multiply", "apply", "plan", "node", "cluster", "meta", NULL };

static void one_slip_finds_the_word(void **s)
{
    (void)s;
    assert_string_equal(sherd__suggest("multiplly", verbs), "multiply");
    assert_string_equal(sherd__suggest("mutliply", verbs), "multiply");
    assert_string_equal(sherd__suggest("aply", verbs), "apply");
    assert_string_equal(sherd__suggest("nodes", verbs), "node");
    assert_string_equal(sherd__suggest("META", verbs), "meta");
    assert_string_equal(sherd__suggest("plna", verbs), "plan");
    assert_string_equal(sherd__suggest("cluster", verbs), "cluster");
}

static void what_is_far_from_everything_gets_no_suggestion(void **s)
{
    (void)s;
    char long_word[200];
    memset(long_word, 'm', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_null(sherd__suggest("", verbs));
    assert_null(sherd__suggest("x", verbs));
    assert_null(sherd__suggest("frobnicate", verbs));
    assert_null(sherd__suggest("mtea!!", verbs));
    assert_null(sherd__suggest(long_word, verbs));
    assert_null(sherd__suggest("node", (const char *const[]){ NULL }));
}

static void the_nearest_wins_and_the_first_of_a_tie(void **s)
{
    (void)s;
    static const char *const known[] = { "bat", "cat", "cart", NULL };
    assert_string_equal(sherd__suggest("cat", known), "cat");
    assert_string_equal(sherd__suggest("rat", known), "bat");
}

static void a_word_cut_short_is_found_where_it_begins_one_alone(void **s)
{
    (void)s;
    static const char *const known[] = {
        "plain", "secure", "ring", "halving-doubling", "checkpoint-every", "checkpoint-keep", NULL
    };
    assert_string_equal(sherd__suggest("halving", known), "halving-doubling");
    assert_string_equal(sherd__suggest("HALV", known), "halving-doubling");
    assert_null(sherd__suggest("ha", known));
    assert_null(sherd__suggest("checkpoint", known));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_slip_finds_the_word),
        cmocka_unit_test(what_is_far_from_everything_gets_no_suggestion),
        cmocka_unit_test(the_nearest_wins_and_the_first_of_a_tie),
        cmocka_unit_test(a_word_cut_short_is_found_where_it_begins_one_alone),
    };
    return cmocka_run_group_tests_name("core/suggest", tests, NULL, NULL);
}
