/* The progress line, written to memory, with a simulated clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/progress.h"

typedef struct paper {
    FILE *file;
    char *text;
    size_t len;
} paper;

static int open_paper(void **state)
{
    static paper p;
    p.file = open_memstream(&p.text, &p.len);
    *state = &p;
    return !p.file;
}

static int close_paper(void **state)
{
    paper *p = *state;
    fclose(p->file);
    free(p->text);
    return 0;
}

static const char *written(paper *p)
{
    fflush(p->file);
    return p->text;
}

static size_t count(const char *s, char c)
{
    size_t n = 0;
    for (; *s != '\0'; s++) n += *s == c;
    return n;
}

static void plain_mode_prints_a_line_for_each_tenth(void **state)
{
    paper *p = *state;
    sherd__progress_line line;
    sherd__progress_init(&line, p->file, SHERD__PROGRESS_PLAIN, "multiply", "tasks", 100);
    for (uint64_t i = 0; i <= 1000; i++)
        sherd__progress_update(&line, i, 1000, NULL, 100 + (double)i / 100);
    sherd__progress_fini(&line);
    assert_int_equal(count(written(p), '\n'), 10);
    assert_true(strncmp(written(p), "multiply: 10 %, 100/1000 tasks  100/s  9.00 s left\n", 51) ==
                0);
    assert_non_null(strstr(written(p), "multiply: 100 %, 1000/1000 tasks  100/s\n"));
}

static void plain_mode_prints_one_line_for_several_tenths_at_once(void **state)
{
    paper *p = *state;
    sherd__progress_line line;
    sherd__progress_init(&line, p->file, SHERD__PROGRESS_PLAIN, "x", "t", 0);
    sherd__progress_update(&line, 2, 3, "1 KB", 0.1);
    sherd__progress_update(&line, 3, 3, "2 KB", 0.2);
    assert_string_equal(written(p), "x: 66 %, 2/3 t  1 KB\nx: 100 %, 3/3 t  2 KB\n");
}

static void a_bar_is_drawn_ten_times_a_second_at_most(void **state)
{
    paper *p = *state;
    sherd__progress_line line;
    sherd__progress_init(&line, p->file, SHERD__PROGRESS_BAR, "multiply", "tasks", 0);
    for (int i = 0; i < 1000; i++)
        sherd__progress_update(&line, (uint64_t)i, 1000, NULL, (double)i / 1000);
    assert_in_range(count(written(p), '\r'), 9, 11);
    sherd__progress_update(&line, 1000, 1000, NULL, 0.999);
    assert_non_null(strstr(written(p), "100 % [####################]"));
    sherd__progress_fini(&line);
    assert_string_equal(p->text + p->len - 4, "\r\033[K");
    assert_int_equal(count(p->text, '\n'), 0);
}

static void a_bar_fits_the_width(void **state)
{
    paper *p = *state;
    sherd__progress_line line;
    setenv("COLUMNS", "30", 1);
    sherd__progress_init(&line, p->file, SHERD__PROGRESS_BAR, "multiply", "tasks", 0);
    sherd__progress_update(&line, 1, 2, "a lot more than fits on a line", 1);
    unsetenv("COLUMNS");
    assert_int_equal(strlen(written(p)), 1 + 29 + 3);
    sherd__progress_fini(&line);
}

static void mode_none_prints_nothing(void **state)
{
    paper *p = *state;
    sherd__progress_line line;
    sherd__progress_init(&line, p->file, SHERD__PROGRESS_NONE, "x", "t", 0);
    sherd__progress_update(&line, 1, 1, NULL, 1);
    sherd__progress_fini(&line);
    assert_string_equal(written(p), "");
}

static void an_unknown_total_prints_nothing_and_an_excess_counts_as_complete(void **state)
{
    paper *p = *state;
    sherd__progress_line line;
    sherd__progress_init(&line, p->file, SHERD__PROGRESS_PLAIN, "x", "t", 0);
    sherd__progress_update(&line, 0, 0, NULL, 1);
    assert_string_equal(written(p), "");
    sherd__progress_update(&line, 9, 3, NULL, 0.1);
    assert_string_equal(written(p), "x: 100 %, 3/3 t\n");
}

static void auto_mode_is_plain_without_a_terminal(void **state)
{
    (void)state;
    FILE *f = tmpfile();
    sherd__progress_line line;
    sherd__progress_init(&line, f, SHERD__PROGRESS_AUTO, "x", "t", 0);
    assert_int_equal(line.mode, SHERD__PROGRESS_PLAIN);
    fclose(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_paper, close_paper)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plain_mode_prints_a_line_for_each_tenth),
        TEST(plain_mode_prints_one_line_for_several_tenths_at_once),
        TEST(a_bar_is_drawn_ten_times_a_second_at_most),
        TEST(a_bar_fits_the_width),
        TEST(mode_none_prints_nothing),
        TEST(an_unknown_total_prints_nothing_and_an_excess_counts_as_complete),
        cmocka_unit_test(auto_mode_is_plain_without_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
