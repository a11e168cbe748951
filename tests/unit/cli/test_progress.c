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
    assert_true(strncmp(written(p), "multiply: 10 %, 9.00 s left  100/1000 tasks  100/s\n", 51) ==
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
    assert_string_equal(written(p), "x: 66 %, 1 KB  2/3 t\nx: 100 %, 2 KB  3/3 t\n");
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

/* Draws one line for a terminal of this width; returns it without the control characters. */
static const char *drawn(paper *p, const char *columns, const char *what, const char *extra)
{
    static char line[512];
    size_t before = strlen(written(p));
    sherd__progress_line bar;
    setenv("COLUMNS", columns, 1);
    sherd__progress_init(&bar, p->file, SHERD__PROGRESS_BAR, what, "steps", 0);
    sherd__progress_update(&bar, 31, 50, extra, 5);
    unsetenv("COLUMNS");
    snprintf(line, sizeof line, "%s", written(p) + before + 1);
    sherd__progress_fini(&bar);
    char *end = strstr(line, "\033[K");
    assert_non_null(end);
    *end = '\0';
    return line;
}

static void a_bar_fits_the_width_and_cuts_no_field(void **state)
{
    static const char figures[] = "epoch 4/5  loss 1.06922  accuracy 0.2889  1975482 examples/s";
    paper *p = *state;
    assert_string_equal(drawn(p, "160", "train", figures),
                        "train  62 % [############--------]  3.06 s left  epoch 4/5  loss 1.06922"
                        "  accuracy 0.2889  1975482 examples/s  31/50 steps  6.2/s");
    assert_string_equal(drawn(p, "80", "train", figures),
                        "train  62 % [####----]  3.06 s left  epoch 4/5  loss 1.06922  accuracy "
                        "0.2889");
    assert_string_equal(drawn(p, "40", "train", figures), "train  62 % [####----]  3.06 s left");
    assert_string_equal(drawn(p, "24", "train", figures), "train  62 % [####----]");
    assert_string_equal(drawn(p, "16", "train", figures), "train  62 %");
    assert_string_equal(drawn(p, "8", "train", figures), " 62 %");
    for (int width = 6; width < 160; width++) {
        char columns[8];
        snprintf(columns, sizeof columns, "%d", width);
        const char *line = drawn(p, columns, "multiply", figures);
        assert_true(strlen(line) < (size_t)width);
        const char *text = strstr(line, "]  ");
        if (!text) continue;
        size_t len = strlen(text + 3); /* the line ends where a field does */
        const char *whole = "3.06 s left  epoch 4/5  loss 1.06922  accuracy 0.2889  1975482 "
                            "examples/s  31/50 steps  6.2/s";
        assert_int_equal(strncmp(whole, text + 3, len), 0);
        assert_true(whole[len] == '\0' || strncmp(whole + len, "  ", 2) == 0);
    }
}

static void a_resumed_run_has_the_rate_of_its_own_steps(void **state)
{
    paper *p = *state;
    sherd__progress_line line;
    sherd__progress_init(&line, p->file, SHERD__PROGRESS_PLAIN, "train", "steps", 0);
    line.from = 80;
    sherd__progress_update(&line, 90, 100, NULL, 1);
    assert_string_equal(written(p), "train: 90 %, 1.00 s left  90/100 steps  10/s\n");
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
        TEST(a_bar_fits_the_width_and_cuts_no_field),
        TEST(a_resumed_run_has_the_rate_of_its_own_steps),
        TEST(mode_none_prints_nothing),
        TEST(an_unknown_total_prints_nothing_and_an_excess_counts_as_complete),
        cmocka_unit_test(auto_mode_is_plain_without_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
