/*
 * Compares the options that verbs read by name, found in their sources, with the option tables. A
 * name that is in no table, or that is read as another type, would abort the command only when that
 * line runs. Runs in the root of the sources, as all tests do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glob.h>

#include <cmocka.h>

#include "cli/options.h"

#define MASK(t) (1u << SHERD__##t)

/* The types that each call reads, from cli.h. */
static const struct {
    const char *call;
    unsigned types;
} calls[] = {
    { "given", ~0u },           { "where", ~0u },
    { "flag", MASK(FLAG) },     { "int", MASK(INT) | MASK(COUNT) },
    { "real", MASK(REAL) },     { "size", MASK(SIZE) },
    { "time_ms", MASK(TIME) },  { "text", MASK(TEXT) | MASK(FILE) | MASK(DIR) | MASK(CHOICE) },
    { "choice", MASK(CHOICE) }, { "forget_unless_argv", ~0u },
    { "is_set", ~0u },          { "forget", ~0u },
    { "source", ~0u },
};

typedef struct wanted {
    const char *file, *name;
    unsigned types, own; /* types of the options with this name, of all verbs and of the file's own
                          * verb */
} wanted;

/* cli/meta.c has `meta build` and the other verbs of `meta`. */
static bool is_of(const char *file, const char *title)
{
    size_t len = strcspn(title, " ");
    return strncmp(file, "cli/", 4) == 0 && strncmp(file + 4, title, len) == 0 &&
           strcmp(file + 4 + len, ".c") == 0;
}

static bool gather(void *ctx, const sherd__verb *v, const char *title)
{
    wanted *w = ctx;
    const sherd__option *list[SHERD__OPTIONS_MAX];
    size_t len = sherd__options_of(v, list, SHERD__OPTIONS_MAX);
    for (size_t i = 0; i < len; i++)
        if (strcmp(list[i]->name, w->name) == 0) {
            w->types |= 1u << list[i]->type;
            if (is_of(w->file, title)) w->own |= 1u << list[i]->type;
        }
    return false;
}

static unsigned allowed(const char *call)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].call, call) == 0) return calls[i].types;
    fail_msg("sherd__opt_%s: this test does not know it", call);
    return 0;
}

/* Checks each sherd__opt_CALL(WHOSE, "NAME") in a line; returns their number. */
static unsigned check_line(const char *file, unsigned number, const char *line)
{
    unsigned found = 0;
    for (const char *at = line; (at = strstr(at, "sherd__opt_")); at++) {
        char call[32], name[40];
        if (sscanf(at, "sherd__opt_%31[a-z_](%*[^,()], \"%39[a-z-]\")", call, name) != 2) continue;
        wanted w = { .file = file, .name = name };
        sherd__verbs_each(gather, &w);
        if (w.types == 0) fail_msg("%s:%u: no verb has an option --%s", file, number, name);
        if ((w.own & ~allowed(call)) != 0 || (w.types & allowed(call)) == 0)
            fail_msg("%s:%u: sherd__opt_%s does not read what --%s is", file, number, call, name);
        found++;
    }
    return found;
}

static void each_option_is_read_as_its_type_in_the_table(void **state)
{
    (void)state;
    glob_t files;
    unsigned found = 0;
    assert_int_equal(glob("cli/*.c", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char line[512];
        unsigned number = 0;
        FILE *f = fopen(files.gl_pathv[i], "re");
        assert_non_null(f);
        while (fgets(line, sizeof line, f)) found += check_line(files.gl_pathv[i], ++number, line);
        fclose(f);
    }
    globfree(&files);
    assert_true(found > 60); /* the pattern still matches the calls */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_is_read_as_its_type_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
