/* Option values: the limits of each type, and the message for a wrong value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options.h"

static sherd_diag diag;

static int parse(sherd__value *v, const sherd__option *o, const char *text)
{
    diag = (sherd_diag){ 0 };
    *v = (sherd__value){ .integer = -77, .real = -77 };
    return sherd__value_parse(v, o, text, "--x", SHERD_EINVAL, &diag);
}

static void assert_reads(const sherd__option *o, const char *text, int64_t expected)
{
    sherd__value v;
    if (parse(&v, o, text) != 0) fail_msg("'%s': %s", text, diag.message);
    if (v.integer != expected) fail_msg("'%s' gave %lld", text, (long long)v.integer);
}

static void assert_refuses(const sherd__option *o, const char *text, const char *says)
{
    sherd__value v;
    if (parse(&v, o, text) != SHERD_EINVAL) fail_msg("'%s' was taken", text);
    if (!strstr(diag.message, says)) fail_msg("'%s': %s", text, diag.message);
    assert_int_equal(v.integer, -77);
    assert_true(strncmp(diag.message, "--x: ", 5) == 0);
}

static void sizes_are_powers_of_1024(void **state)
{
    (void)state;
    static const sherd__option o = { .name = "x", .type = SHERD__SIZE };
    assert_reads(&o, "1", 1);
    assert_reads(&o, "4096", 4096);
    assert_reads(&o, "1K", 1024);
    assert_reads(&o, "512M", 536870912);
    assert_reads(&o, "4G", 4294967296);
    assert_reads(&o, "4GiB", 4294967296);
    assert_reads(&o, "1.5g", 1610612736);
    assert_reads(&o, "2 T", 2199023255552);
    assert_reads(&o, "0.5K", 512);
    static const char *const wrong[] = { "",      "G",    "-1",  "+1",       "4X",  "4GB",
                                         "1e999", "nan",  "0",   "0G",       "0.1", "0x1",
                                         "1 2",   "1,5G", "inf", "8388608T", " 1",  "4G " };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refuses(&o, wrong[i], "a size such as 512M");
}

static void times_are_read_in_milliseconds_with_seconds_as_the_default_unit(void **state)
{
    (void)state;
    static const sherd__option o = { .name = "x", .type = SHERD__TIME };
    assert_reads(&o, "30", 30000);
    assert_reads(&o, "30s", 30000);
    assert_reads(&o, "0.25", 250);
    assert_reads(&o, "500ms", 500);
    assert_reads(&o, "2m", 120000);
    assert_reads(&o, "2min", 120000);
    assert_reads(&o, "1h", 3600000);
    assert_refuses(&o, "0", "a time such as");
    assert_refuses(&o, "-1s", "a time such as");
    assert_refuses(&o, "1d", "a time such as");
    assert_refuses(&o, "1194h", "at most 49 days");
}

static void whole_numbers_outside_their_range_are_refused(void **state)
{
    (void)state;
    static const sherd__option o = { .name = "x", .type = SHERD__INT, .min = 1, .max = 100 };
    assert_reads(&o, "1", 1);
    assert_reads(&o, "100", 100);
    static const char *const wrong[] = { "0",
                                         "101",
                                         "-1",
                                         "",
                                         "1.0",
                                         "1e2",
                                         "x",
                                         " 1",
                                         "1 ",
                                         "0x10",
                                         "--1",
                                         "+1",
                                         "99999999999999999999" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refuses(&o, wrong[i], "a whole number from 1 to 100");
    static const sherd__option any = { .name = "x", .type = SHERD__INT };
    assert_reads(&any, "-5", -5);
    assert_reads(&any, "9223372036854775807", INT64_MAX);
}

static void a_word_can_replace_a_number(void **state)
{
    (void)state;
    static const sherd__option o = {
        .name = "x", .type = SHERD__INT, .min = 1, .max = 9, .word = "all", .word_value = 0
    };
    assert_reads(&o, "all", 0);
    assert_reads(&o, "9", 9);
    assert_refuses(&o, "0", "from 1 to 9, or all");
    assert_refuses(&o, "ALL", "or all");
}

static void real_numbers_must_be_finite_and_in_range(void **state)
{
    (void)state;
    static const sherd__option o = { .name = "x", .type = SHERD__REAL, .min = 0.1, .max = 1 };
    sherd__value v;
    assert_int_equal(parse(&v, &o, "0.5"), 0);
    assert_true(v.real == 0.5);
    assert_refuses(&o, "0", "a number from 0.1 to 1");
    assert_refuses(&o, "nan", "a number from 0.1 to 1");
    assert_refuses(&o, "inf", "a number from 0.1 to 1");
    assert_refuses(&o, "0.5x", "a number from 0.1 to 1");
    assert_refuses(&o, "", "a number from 0.1 to 1");
}

static void an_unknown_choice_is_reported_with_the_nearest(void **state)
{
    (void)state;
    static const sherd__option o = { .name = "x",
                                     .type = SHERD__CHOICE,
                                     .choices = sherd__choices_progress };
    assert_reads(&o, "auto", 0);
    assert_reads(&o, "none", 3);
    assert_refuses(&o, "plian", "expected auto, bar, plain or none, found 'plian'");
    assert_string_equal(diag.hint, "did you mean plain?");
    assert_refuses(&o, "zebra", "expected auto, bar");
    assert_string_equal(diag.hint, "");
}

static void flags_in_files_are_yes_or_no(void **state)
{
    (void)state;
    static const sherd__option o = { .name = "x", .type = SHERD__FLAG };
    assert_reads(&o, "yes", 1);
    assert_reads(&o, "on", 1);
    assert_reads(&o, "true", 1);
    assert_reads(&o, "1", 1);
    assert_reads(&o, "no", 0);
    assert_reads(&o, "0", 0);
    assert_refuses(&o, "maybe", "yes or no");
    assert_refuses(&o, "", "yes or no");
}

static void an_empty_path_is_refused(void **state)
{
    (void)state;
    static const sherd__option o = { .name = "x", .type = SHERD__FILE };
    sherd__value v;
    assert_int_equal(parse(&v, &o, "a b"), 0);
    assert_string_equal(v.text, "a b");
    assert_refuses(&o, "", "a path, found nothing");
}

static void formatted_numbers_have_two_or_three_digits(void **state)
{
    (void)state;
    char t[24];
    assert_string_equal(sherd__cli_bytes(0, t), "0 bytes");
    assert_string_equal(sherd__cli_bytes(999, t), "999 bytes");
    assert_string_equal(sherd__cli_bytes(1000, t), "1.0 KB");
    assert_string_equal(sherd__cli_bytes(999499, t), "999 KB");
    assert_string_equal(sherd__cli_bytes(999999, t), "1.0 MB");
    assert_string_equal(sherd__cli_bytes(376320000, t), "376 MB");
    assert_string_equal(sherd__cli_bytes(UINT64_MAX, t), "18447 PB");
    assert_string_equal(sherd__cli_seconds(0, t), "0.0 ms");
    assert_string_equal(sherd__cli_seconds(0.00004, t), "40 us");
    assert_string_equal(sherd__cli_seconds(0.0009994, t), "999 us");
    assert_string_equal(sherd__cli_seconds(0.0009996, t), "1.0 ms");
    assert_string_equal(sherd__cli_seconds(0.0123, t), "12.3 ms");
    assert_string_equal(sherd__cli_seconds(0.5, t), "0.50 s");
    assert_string_equal(sherd__cli_seconds(9.999, t), "10.0 s");
    assert_string_equal(sherd__cli_seconds(125, t), "2 min 05 s");
    assert_string_equal(sherd__cli_seconds(7320, t), "2 h 02 min");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_powers_of_1024),
        cmocka_unit_test(times_are_read_in_milliseconds_with_seconds_as_the_default_unit),
        cmocka_unit_test(whole_numbers_outside_their_range_are_refused),
        cmocka_unit_test(a_word_can_replace_a_number),
        cmocka_unit_test(real_numbers_must_be_finite_and_in_range),
        cmocka_unit_test(an_unknown_choice_is_reported_with_the_nearest),
        cmocka_unit_test(flags_in_files_are_yes_or_no),
        cmocka_unit_test(an_empty_path_is_refused),
        cmocka_unit_test(formatted_numbers_have_two_or_three_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
