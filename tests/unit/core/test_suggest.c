#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "core/suggest.h"

static const char *const verbs[] = { "multiply", "apply", "plan", "node", "cluster", "meta", NULL };

static void a_word_with_one_typing_error_is_found(void **s)
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

static void a_word_that_resembles_no_candidate_gets_no_suggestion(void **s)
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

static void the_nearest_candidate_wins_and_a_tie_goes_to_the_first(void **s)
{
    (void)s;
    static const char *const known[] = { "bat", "cat", "cart", NULL };
    assert_string_equal(sherd__suggest("cat", known), "cat");
    assert_string_equal(sherd__suggest("rat", known), "bat");
}

static void a_truncated_word_is_found_if_only_one_candidate_begins_with_it(void **s)
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
        cmocka_unit_test(a_word_with_one_typing_error_is_found),
        cmocka_unit_test(a_word_that_resembles_no_candidate_gets_no_suggestion),
        cmocka_unit_test(the_nearest_candidate_wins_and_a_tie_goes_to_the_first),
        cmocka_unit_test(a_truncated_word_is_found_if_only_one_candidate_begins_with_it),
    };
    return cmocka_run_group_tests_name("core/suggest", tests, NULL, NULL);
}
