/* Options without effect: refused on the command line, forgotten if given in another place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/applies.h"
#include "cli/options.h"

static const sherd__option options[] = {
    SHERD__OPTS_CLUSTER, SHERD__OPT_CHECK, SHERD__OPTS_SCHEME, SHERD__OPTS_ARITHMETIC, { 0 }
};
static const sherd__verb verb = {
    .name = "try", .usage = "A", .summary = "s", .options = options, .args_max = 2
};

static sherd__cli cli;
static char config[] = "/tmp/sherd-applies-XXXXXX";

static void parse(const char *line, char *const *env, const char *file)
{
    static char copy[256], *argv[16];
    int argc = 0;
    bool help;
    sherd_diag d = { 0 };
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fputs(file, f);
    fclose(f);
    snprintf(copy, sizeof copy, "try %s", line);
    for (char *w = strtok(copy, " "); w && argc < 15; w = strtok(NULL, " ")) argv[argc++] = w;
    argv[argc] = NULL;
    sherd__opts_free(cli.opts);
    cli = (sherd__cli){ .verb = &verb, .title = "try" };
    const sherd__opts_sources src = { .env = env, .user_config = config };
    if (sherd__opts_parse(&cli, argc, argv, &src, &help, &d)) fail_msg("%s", d.message);
}

static int open_file(void **state)
{
    int fd = mkstemp(config);
    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int close_file(void **state)
{
    (void)state;
    sherd__opts_free(cli.opts);
    return unlink(config);
}

static char *spare_and_check[] = { "SHERD_SPARE=3", "SHERD_CHECK=1", "SHERD_KEY=k", NULL };

static void options_of_the_command_line_are_left_for_the_caller_to_refuse(void **state)
{
    (void)state;
    static const char *const names[] = { "check", "spare", "group", NULL };
    parse("--spare 2 --group 4", spare_and_check, "");
    assert_true(sherd__opt_forget_unless_argv(&cli, "spare"));
    assert_int_equal(sherd__opt_int(&cli, "spare"), 2); /* still set: the caller can name it */
    assert_string_equal(sherd__opts_forget_unless_argv(&cli, names), "spare");
}

static void options_of_other_places_are_forgotten(void **state)
{
    static const char *const names[] = { "check", "spare", "group", "nodes", "bits", NULL };
    (void)state;
    parse("", spare_and_check, "group = 7\nnodes = here.txt\nbits = 12\n");
    assert_int_equal(sherd__opt_int(&cli, "spare"), 3);
    assert_int_equal(sherd__opt_int(&cli, "group"), 7);
    assert_true(sherd__opt_is_set(&cli, "nodes"));
    assert_null(sherd__opts_forget_unless_argv(&cli, names));
    assert_int_equal(sherd__opt_int(&cli, "spare"), 0); /* its preset */
    assert_int_equal(sherd__opt_int(&cli, "group"), 0);
    assert_false(sherd__opt_flag(&cli, "check"));
    assert_null(sherd__opt_text(&cli, "nodes"));
    for (size_t i = 0; names[i]; i++) {
        assert_false(sherd__opt_given(&cli, names[i]));
        assert_false(sherd__opt_is_set(&cli, names[i]));
    }
}

static void options_that_are_not_set_or_do_not_exist_are_ignored(void **state)
{
    static const char *const names[] = { "scheme", "check", "no-such-option", NULL };
    (void)state;
    parse("--no-check", NULL, "");
    assert_null(
        sherd__opts_forget_unless_argv(&cli,
                                       names)); /* a flag that is turned off has no effect anyway */
    assert_false(sherd__opt_is_set(&cli, "check"));
    assert_false(sherd__opt_is_set(&cli, "scheme"));
    assert_int_equal(sherd__opt_choice(&cli, "scheme"), 0);
    assert_false(sherd__opts_clash(&cli, "check", "scheme"));
}

static void the_option_of_the_stronger_place_wins(void **state)
{
    (void)state;
    parse("--check", spare_and_check, "spare = 4\n");
    assert_false(sherd__opts_clash(&cli, "check", "spare"));
    assert_true(sherd__opt_flag(&cli, "check"));
    assert_false(sherd__opt_given(&cli, "spare"));

    parse("--spare 2", spare_and_check, "");
    assert_false(sherd__opts_clash(&cli, "check", "spare"));
    assert_false(sherd__opt_flag(&cli, "check"));
    assert_int_equal(sherd__opt_int(&cli, "spare"), 2);

    parse("--no-check", spare_and_check, "");
    assert_false(sherd__opts_clash(&cli, "check", "spare"));
    assert_int_equal(sherd__opt_int(&cli, "spare"), 3);
}

static void two_options_of_one_place_are_left_for_the_caller_to_refuse(void **state)
{
    (void)state;
    parse("", spare_and_check, "");
    assert_true(sherd__opts_clash(&cli, "check", "spare"));
    parse("--check --spare 1", NULL, "");
    assert_true(sherd__opts_clash(&cli, "spare", "check"));
    assert_true(sherd__opt_flag(&cli, "check") && sherd__opt_int(&cli, "spare") == 1);
    parse("", NULL, "check = yes\nspare = 1\n");
    assert_true(sherd__opts_clash(&cli, "spare", "check"));
}

static const sherd__option *option_of(const char *name)
{
    for (const sherd__option *o = options; o->name; o++)
        if (strcmp(o->name, name) == 0) return o;
    return NULL;
}

static void an_option_that_the_scheme_does_not_read_is_found(void **state)
{
    (void)state;
    const sherd_scheme_info *plain = sherd_scheme_get(SHERD_PLAIN),
                            *share = sherd_scheme_get(SHERD_SHARE);
    parse("--spare 1 --encoding csr", NULL, "");
    assert_string_equal(sherd__opts_forget_unread(&cli, plain, 0)->name, "spare");
    assert_string_equal(sherd__opts_forget_unread(&cli, share, 0)->name, "encoding");
    assert_null(sherd__opts_forget_unread(&cli, plain, SHERD_TAKES_COLLUDING));
    parse("", spare_and_check, "group = 4\n");
    assert_null(sherd__opts_forget_unread(&cli, plain, 0));
    assert_int_equal(sherd__opt_int(&cli, "spare"), 0); /* the preset: forgotten */
    assert_int_equal(sherd__opt_int(&cli, "group"), 0);
    parse("--public b", NULL, "");
    assert_null(sherd__opts_forget_unread(&cli, share, 0));
    assert_string_equal(sherd__opts_forget_unread(&cli, sherd_scheme_get(SHERD_BLIND), 0)->name,
                        "public");
}

static void its_refusal_names_a_scheme_that_reads_it(void **state)
{
    (void)state;
    sherd_diag d = { 0 };
    const sherd_scheme_info *plain = sherd_scheme_get(SHERD_PLAIN),
                            *share = sherd_scheme_get(SHERD_SHARE);
    static const char *const named[][2] = {
        { "group", "permute" }, { "bits-b", "share" }, { "masks", "blind" }, { "public", "share" }
    };
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        char hint[64];
        d = (sherd_diag){ 0 };
        assert_int_equal(sherd__opt_refuse(option_of(named[i][0]), plain, &d), SHERD_EINVAL);
        snprintf(hint, sizeof hint, "leave it out, or use --scheme %s", named[i][1]);
        assert_string_equal(d.hint, hint);
    }
    assert_non_null(strstr(d.message, "under --scheme plain, which is not private"));
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__opt_refuse(option_of("encoding"), share, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "--encoding has no effect under --scheme share");
    assert_non_null(strstr(d.hint, "has no zero entries"));
}

static void help_begins_with_the_schemes_that_read_an_option(void **state)
{
    (void)state;
    char help[320];
    static const sherd__option of_networks = SHERD__OPT_COLLUDING(SHERD__OPT_NETWORK);
    sherd__option_help(option_of("colluding"), help);
    assert_true(strncmp(help, "share, share1: number", 21) == 0);
    sherd__option_help(&of_networks, help); /* share1 would show a network's weights */
    assert_true(strncmp(help, "share: number", 13) == 0);
    sherd__option_help(option_of("check"), help);
    assert_string_equal(help, option_of("check")->help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_the_command_line_are_left_for_the_caller_to_refuse),
        cmocka_unit_test(options_of_other_places_are_forgotten),
        cmocka_unit_test(options_that_are_not_set_or_do_not_exist_are_ignored),
        cmocka_unit_test(the_option_of_the_stronger_place_wins),
        cmocka_unit_test(two_options_of_one_place_are_left_for_the_caller_to_refuse),
        cmocka_unit_test(an_option_that_the_scheme_does_not_read_is_found),
        cmocka_unit_test(its_refusal_names_a_scheme_that_reads_it),
        cmocka_unit_test(help_begins_with_the_schemes_that_read_an_option),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
