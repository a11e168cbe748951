/* Lists of names: splitting, finding, checking, and texts of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/alloc.h"
#include "core/namelist.h"

static sherd__namelist split(const char *text)
{
    sherd__namelist x = { 0 };
    assert_int_equal(sherd__namelist_split(&x, text, strlen(text), ','), 0);
    return x;
}

static void a_text_is_split_at_separators_without_blanks(void **s)
{
    (void)s;
    sherd__namelist x = split(" a b,c , ,d"), copy;
    assert_int_equal(x.len, 4);
    assert_string_equal(x.at[0], "a b");
    assert_string_equal(x.at[1], "c");
    assert_string_equal(x.at[2], "");
    assert_string_equal(x.at[3], "d");
    assert_int_equal(sherd__namelist_find(&x, "c", 3), 1);
    assert_int_equal(sherd__namelist_find(&x, "d", 3), 3);
    assert_int_equal(sherd__namelist_find(&x, "e", 0), 4);
    assert_int_equal(sherd__namelist_copy(&copy, &x), 0);
    size_t len;
    char *text = sherd__namelist_text(&copy, '\n', &len);
    assert_string_equal(text, "a b\nc\n\nd");
    assert_int_equal(len, strlen(text));
    sherd__free(text);
    sherd__namelist_fini(&copy);
    sherd__namelist_fini(&x);
    text = sherd__namelist_text(&x, '\n', &len);
    assert_true(len == 0 && text[0] == '\0');
    sherd__free(text);
}

static void checked(const char *text, int err, size_t bad)
{
    sherd__namelist x = split(text);
    size_t at = 99;
    if (sherd__namelist_check(&x, &at) != err || (err && at != bad)) fail_msg("%s: %zu", text, at);
    sherd__namelist_fini(&x);
}

static void names_are_different_texts(void **s)
{
    (void)s;
    char longest[SHERD__NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[SHERD__NAME_MAX] = '\0';
    checked("a,B,\xc3\xa4", 0, 0);
    checked(longest, 0, 0);
    longest[SHERD__NAME_MAX] = 'x';
    longest[SHERD__NAME_MAX + 1] = '\0';
    checked(longest, SHERD_EFORMAT, 0);
    checked("a,b,,c", SHERD_EFORMAT, 2);
    checked("b,a,c,a", SHERD_EFORMAT, 1);
    checked("a,b\x1b[2J", SHERD_EFORMAT, 1);
    checked("a,\x7f", SHERD_EFORMAT, 1);
}

static void a_list_for_a_message_is_cut_off(void **s)
{
    (void)s;
    char out[16];
    sherd__namelist x = split("one,two"), y = split("one,two,three,four");
    assert_string_equal(sherd__namelist_shown(&x, out, sizeof out), "one, two");
    assert_string_equal(sherd__namelist_shown(&y, out, sizeof out), "one, two, ...");
    sherd__namelist_fini(&x);
    sherd__namelist_fini(&y);
}

static void names_for_a_message_are_quoted_as_in_csv(void **s)
{
    (void)s;
    static const char *const names[] = { "rose, red", "a \"b\"", "", "tulip" };
    char out[64], quoted[SHERD__NAME_QUOTED], longest[SHERD__NAME_MAX + 2];
    sherd__namelist x = { 0 };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(sherd__namelist_add(&x, names[i], strlen(names[i])), 0);
    assert_string_equal(sherd__namelist_shown(&x, out, sizeof out),
                        "\"rose, red\", \"a \"\"b\"\"\", \"\", tulip");
    sherd__namelist_fini(&x);
    memset(longest, '"', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(sherd__name_quoted(longest, quoted), SHERD__NAME_QUOTED - 1);
}

static void without_memory_a_list_is_unchanged(void **s)
{
    (void)s;
    sherd__namelist x = split("a,b"), copy;
    size_t len;
    for (size_t n = 1; n <= 3; n++) {
        sherd__alloc_fail_nth(n);
        assert_int_equal(sherd__namelist_copy(&copy, &x), SHERD_ENOMEM);
        assert_null(copy.at);
    }
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__namelist_add(&x, "c", 1), SHERD_ENOMEM);
    assert_int_equal(x.len, 2);
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__namelist_check(&x, NULL), SHERD_ENOMEM);
    sherd__alloc_fail_nth(1);
    assert_null(sherd__namelist_text(&x, ',', &len));
    sherd__alloc_fail_nth(0);
    sherd__namelist_fini(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_split_at_separators_without_blanks),
        cmocka_unit_test(names_are_different_texts),
        cmocka_unit_test(a_list_for_a_message_is_cut_off),
        cmocka_unit_test(names_for_a_message_are_quoted_as_in_csv),
        cmocka_unit_test(without_memory_a_list_is_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
