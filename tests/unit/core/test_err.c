/* The error table (texts, names, exit codes, classes) and diagnostics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/diag.h"
#include "sherd/err.h"
#include "sherd/version.h"

typedef struct row {
    int num, exit;
    const char *name, *text;
} row;

static const row rows[] = {
#define XX(num, name, exit, text) { num, exit, #name, text },
    SHERD_ERR_MAP(XX)
#undef XX
};
enum { ROWS = sizeof rows / sizeof *rows };

static void every_error_has_its_own_number_name_and_text(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        assert_true(rows[i].num < 0);
        assert_string_equal(sherd_err_name(rows[i].num), rows[i].name);
        assert_string_equal(sherd_strerror(rows[i].num), rows[i].text);
        assert_true(strlen(rows[i].text) > 3);
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(rows[i].num, rows[j].num);
            assert_string_not_equal(rows[i].name, rows[j].name);
            assert_string_not_equal(rows[i].text, rows[j].text);
        }
    }
    assert_int_equal(SHERD_ENOMEM, -1);
    assert_string_equal(sherd_err_name(SHERD_ENOMEM), "ENOMEM");
}

static void every_error_has_a_documented_exit_code(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        int code = sherd_err_exit(rows[i].num);
        assert_int_equal(code, rows[i].exit);
        assert_true((code >= 1 && code <= 14) || code == 124 || code == 130);
    }
    assert_int_equal(sherd_err_exit(SHERD_OK), 0);
    assert_int_equal(sherd_err_exit(SHERD_EEXPOSURE), 10);
    assert_int_equal(sherd_err_exit(SHERD_EKEY), 6);
}

static void an_errors_class_follows_from_its_number(void **state)
{
    (void)state;
    assert_int_equal(sherd_err_class(SHERD_OK), SHERD_BLAME_NONE);
    assert_int_equal(sherd_err_class(1), SHERD_BLAME_NONE);
    assert_int_equal(sherd_err_class(SHERD_ENOMEM), SHERD_BLAME_LOCAL);
    assert_int_equal(sherd_err_class(-99), SHERD_BLAME_LOCAL);
    assert_int_equal(sherd_err_class(SHERD_EFRAME), SHERD_BLAME_PEER);
    assert_int_equal(sherd_err_class(SHERD_EWRONG), SHERD_BLAME_PEER);
    assert_int_equal(sherd_err_class(-199), SHERD_BLAME_PEER);
    assert_int_equal(sherd_err_class(SHERD_ECLOSED), SHERD_BLAME_NET);
    assert_int_equal(sherd_err_class(SHERD_EDEVICE), SHERD_BLAME_DEVICE);
    assert_int_equal(sherd_err_class(SHERD_EOPEN), SHERD_BLAME_STORE);
    assert_int_equal(sherd_err_class(SHERD_ECHAIN), SHERD_BLAME_STORE);
}

static void a_number_without_an_error_has_the_text_unknown(void **state)
{
    (void)state;
    static const int none[] = { 1, -50, -199, -399, -1000, INT32_MIN, INT32_MAX };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_string_equal(sherd_err_name(none[i]), "EUNKNOWN");
        assert_string_equal(sherd_strerror(none[i]), "unknown error");
        assert_int_equal(sherd_err_exit(none[i]), 1);
    }
    assert_string_equal(sherd_strerror(SHERD_OK), "success");
}

static void the_first_failure_keeps_the_diagnostic(void **state)
{
    (void)state;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__fail(&d, SHERD_EFORMAT, "save it again", "%s: byte %d", "a.npy", 6),
                     SHERD_EFORMAT);
    assert_int_equal(sherd__fail(&d, SHERD_EIO, "hint", "later"), SHERD_EIO);
    assert_int_equal(d.code, SHERD_EFORMAT);
    assert_string_equal(d.message, "a.npy: byte 6");
    assert_string_equal(d.hint, "save it again");
    assert_int_equal(sherd__fail(NULL, SHERD_ENOMEM, NULL, "no diag"), SHERD_ENOMEM);
}

static void running_out_of_memory_names_the_use_and_a_remedy(void **state)
{
    (void)state;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__fail_memory(&d, "%d labels", 12), SHERD_ENOMEM);
    assert_int_equal(sherd__fail_memory(&d, "later"), SHERD_ENOMEM);
    assert_int_equal(sherd__fail_memory(NULL, "no diagnostic"), SHERD_ENOMEM);
    assert_int_equal(d.code, SHERD_ENOMEM);
    assert_string_equal(d.message, "out of memory for 12 labels");
    assert_non_null(strstr(d.hint, "free memory"));
    sherd_diag less = { 0 };
    assert_int_equal(sherd__fail_memory_hint(&less, "use fewer", "%d rows", 9), SHERD_ENOMEM);
    assert_string_equal(less.message, "out of memory for 9 rows");
    assert_string_equal(less.hint, "use fewer");
}

static void an_error_without_a_message_is_described_by_its_text(void **state)
{
    (void)state;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__fail_to(&d, SHERD_EBUSY, "draw a mask"), SHERD_EBUSY);
    assert_string_equal(d.message, "cannot draw a mask: busy, try again later");
    assert_string_equal(d.hint, "");
    sherd_diag said = { .code = SHERD_ERANGE, .message = "too large" };
    assert_int_equal(sherd__fail_to(&said, SHERD_ERANGE, "start"), SHERD_ERANGE);
    assert_string_equal(said.message, "too large");
}

static void a_long_message_is_truncated_and_terminated(void **state)
{
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    struct {
        sherd_diag d;
        uint8_t guard[16];
    } s = { 0 };
    memset(s.guard, 0x5a, sizeof s.guard);
    assert_int_equal(sherd__fail(&s.d, SHERD_EINVAL, text, "%s", text), SHERD_EINVAL);
    assert_int_equal(strlen(s.d.message), sizeof s.d.message - 1);
    assert_int_equal(strlen(s.d.hint), sizeof s.d.hint - 1);
    for (int i = 0; i < 16; i++) assert_int_equal(s.guard[i], 0x5a);
    sherd_diag none = { .hint = "stale" };
    assert_int_equal(sherd__fail(&none, SHERD_EINVAL, NULL, "no hint"), SHERD_EINVAL);
    assert_string_equal(none.hint, "");
}

static void the_library_reports_its_version(void **state)
{
    (void)state;
    assert_string_equal(sherd_version(), SHERD_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_its_own_number_name_and_text),
        cmocka_unit_test(every_error_has_a_documented_exit_code),
        cmocka_unit_test(an_errors_class_follows_from_its_number),
        cmocka_unit_test(a_number_without_an_error_has_the_text_unknown),
        cmocka_unit_test(the_first_failure_keeps_the_diagnostic),
        cmocka_unit_test(running_out_of_memory_names_the_use_and_a_remedy),
        cmocka_unit_test(an_error_without_a_message_is_described_by_its_text),
        cmocka_unit_test(a_long_message_is_truncated_and_terminated),
        cmocka_unit_test(the_library_reports_its_version),
    };
    return cmocka_run_group_tests_name("core/err", tests, NULL, NULL);
}
