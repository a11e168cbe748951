/* Operands in .csv: NaN and infinity are numbers, and the bits that are written are read. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "store/csv.h"
#include "store/csv_write.h"
#include "store/file.h"
#include "tests/support/comma_locale.h"
#include "tests/unit/store/scratch.h"

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

static const sherd__csv_want operand = { .operand = true };
static const sherd__csv_want training[] = { { .targets = 0 },
                                            { .targets = 1, .labels = true },
                                            { .targets = 1, .labels = true, .names = true } };

static int parse(sherd__csv *x, const char *text, const sherd__csv_want *w, sherd_diag *d)
{
    return sherd__csv_parse(x, (const uint8_t *)text, strlen(text), "f.csv", w, d);
}

/* Checks that the text is refused, with a message that begins with `begins`. */
static void refuses(const char *text, const sherd__csv_want *w, const char *begins)
{
    sherd__csv c;
    sherd_diag d = { 0 };
    int err = parse(&c, text, w, &d);
    if (err != SHERD_EFORMAT || strncmp(d.message, begins, strlen(begins)) != 0)
        fail_msg("%s: %d: %s\n  expected: %s", text, err, d.message, begins);
}

static void a_line_that_is_not_finite_is_no_header(void **s)
{
    (void)s;
    static const char *const lines[] = { "nan", "inf,-INF", "+NaN,\"infinity\"",
                                         "-Infinity, nan " };
    static const double expected[][2] = {
        { NAN, 0 }, { INFINITY, -INFINITY }, { NAN, INFINITY }, { -INFINITY, NAN }
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        sherd__csv c;
        sherd_diag d = { 0 };
        char text[64], two[64];
        snprintf(text, sizeof text, "%s\n%s\n", lines[i], lines[i]);
        if (parse(&c, text, &operand, &d)) fail_msg("%s", d.message);
        assert_true(c.rows == 2 && c.inputs == 1u + (i > 0));
        for (size_t j = 0; j < 2 * c.inputs; j++)
            assert_true(isnan(c.x[j]) ? isnan(expected[i][j % c.inputs])
                                      : c.x[j] == expected[i][j % c.inputs]);
        sherd__csv_fini(&c);
        snprintf(two, sizeof two, "%s,0\n%s,1\n", lines[i], lines[i]);
        for (size_t w = 0; w < 3; w++)
            refuses(w ? two : text, &training[w], "f.csv:1:1: field 1: expected a number, found");
        snprintf(two, sizeof two, "%s,cat\n1,1,dog\n", lines[i]);
        refuses(two, &training[2], "f.csv:1:1: field 1: expected a number, found");
    }
    refuses("1,nan,cat\n1,2,dog\n", &training[2], "f.csv:1:3: field 2: expected a number, found");
    refuses("nan,a,cat\n1,nan,dog\n", &training[2],
            "f.csv:2:3: field 2: expected a number"); /* names */
    static const char *const words[] = { "na",     "nanx",  "infinit", "infinityx", "--inf",
                                         "\xc9nf", "i\xef", "x\xc3",   "1.5inf",    "inf1" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[64];
        snprintf(text, sizeof text, "1\n%s\n", words[i]);
        refuses(text, &operand, "f.csv:2:1: field 1: expected a number");
    }
    refuses("nan,b\n1,2\n", &operand,
            "f.csv:1:5: expected all names or all numbers in the first line, found 'b' beside");
}

static void names_of_an_operand_are_not_kept(void **s)
{
    (void)s;
    sherd__csv c;
    assert_int_equal(parse(&c, "a,b\n1,nan\n", &operand, NULL), 0);
    assert_true(c.rows == 1 && c.inputs == 2 && c.columns.len == 0 && isnan(c.x[1]));
    sherd__csv_fini(&c);
    size_t len = (size_t)1 << 16;
    uint8_t *text = malloc(2 * len);
    for (size_t i = 0; i < len; i++) memcpy(text + 2 * i, i + 1 < len ? "a," : "a\n", 2);
    sherd__alloc_fail_nth(1000000);
    assert_int_equal(sherd__csv_parse(&c, text, 2 * len, "f.csv", &operand, NULL), SHERD_EFORMAT);
    assert_true(sherd__alloc_fail_nth(0) < 10); /* not one for each name */
    free(text);
}

static void what_is_written_is_read_with_the_same_bits(void **s)
{
    (void)s;
    static const double edges[] = { NAN,     INFINITY,     -INFINITY, -0.0,
                                    DBL_MAX, DBL_TRUE_MIN, DBL_MIN,   0.1 };
    uint64_t state = 5;
    for (int round = 0; round < 300; round++) {
        size_t rows = 1 + next(&state) % 9, cols = 1 + next(&state) % (round % 50 ? 9 : 1100);
        static double x[9 * 1100];
        for (size_t i = 0; i < rows * cols; i++) {
            uint64_t bits = next(&state);
            memcpy(&x[i], &bits, sizeof bits);
            if (isnan(x[i]) || (round % 2 && i % cols == 0)) x[i] = edges[bits % 8];
            if (round % 3 == 0) x[i] = edges[bits % 3]; /* no line has a number in digits */
        }
        sherd__file *f;
        sherd__csv c;
        sherd_diag d = { 0 };
        const char *path = scratch_path("bits.csv");
        assert_int_equal(sherd__file_begin(&f, path, SHERD__FILE_PUBLIC, NULL), 0);
        assert_int_equal(sherd__csv_write(f, sherd_view_c(x, SHERD_F64, rows, cols), NULL), 0);
        assert_int_equal(sherd__file_commit(f, NULL), 0);
        if (sherd__csv_load(&c, path, &operand, &d)) fail_msg("%s", d.message);
        assert_true(c.rows == rows && c.inputs == cols);
        assert_memory_equal(c.x, x, rows * cols * sizeof *x);
        sherd__csv_fini(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_that_is_not_finite_is_no_header),
        cmocka_unit_test(names_of_an_operand_are_not_kept),
        cmocka_unit_test(what_is_written_is_read_with_the_same_bits),
    };
    comma_locale(); /* changes nothing */
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
