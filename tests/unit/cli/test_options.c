/* The command line, the environment and configuration files: which value is used, and what is an
 * error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/options.h"
#include "core/alloc.h"

static const sherd__option options[] = {
    SHERD__OPTS_CLUSTER, SHERD__OPT_OUTPUT("C.npy"), SHERD__OPT_SEED(0),     SHERD__OPT_DRY_RUN,
    SHERD__OPT_CHECK,    SHERD__OPTS_SCHEME,         SHERD__OPTS_ARITHMETIC, { 0 },
};
static const sherd__verb verb = {
    .name = "try", .usage = "A B", .summary = "s", .options = options, .args_max = 2
};

/* Parses a command line; the results are valid until the next call. */
static sherd__cli cli;
static sherd_diag diag;
static bool help;

static int parse_with(const sherd__opts_sources *src, const char *line)
{
    static char copy[512];
    static char *argv[32];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *w = strtok(copy, " "); w && argc < 31; w = strtok(NULL, " ")) argv[argc++] = w;
    argv[argc] = NULL;
    sherd__opts_free(cli.opts);
    cli = (sherd__cli){ .verb = &verb, .title = "try" };
    diag = (sherd_diag){ 0 };
    return sherd__opts_parse(&cli, argc, argv, src, &help, &diag);
}

static int parse(const char *line)
{
    return parse_with(NULL, line);
}

static void assert_fails(int code, const char *line, const char *message, const char *hint)
{
    if (parse(line) != code) fail_msg("'%s' did not return %d: %s", line, code, diag.message);
    assert_string_equal(diag.message, message);
    if (hint) assert_string_equal(diag.hint, hint);
}

/* Writes a file that is removed when the test program ends. */
static const char *file_with(const char *text)
{
    static char paths[8][32];
    static size_t used;
    char *path = paths[used++ % 8];
    strcpy(path, "/tmp/sherd-opts-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static void values_come_from_long_and_short_names(void **state)
{
    (void)state;
    assert_int_equal(parse("try a -n 7 --output=x.npy --group 3 b -vv -q --json"), 0);
    assert_int_equal(sherd__opt_int(&cli, "local"), 7);
    assert_string_equal(sherd__opt_text(&cli, "output"), "x.npy");
    assert_int_equal(sherd__opt_int(&cli, "group"), 3);
    assert_int_equal(cli.verbose, 2);
    assert_true(cli.quiet && cli.json);
    assert_int_equal(cli.args_len, 2);
    assert_string_equal(cli.args[0], "a");
    assert_string_equal(cli.args[1], "b");
}

static void presets_are_values_but_do_not_count_as_given(void **state)
{
    (void)state;
    assert_int_equal(parse("try -o x"), 0);
    assert_int_equal(sherd__opt_choice(&cli, "scheme"), 0);
    assert_int_equal(sherd__opt_int(&cli, "group"), 0);
    assert_false(sherd__opt_given(&cli, "scheme"));
    assert_null(sherd__opt_text(&cli, "nodes"));
    assert_int_equal(sherd__opt_time_ms(&cli, "timeout"), 0);
    assert_false(sherd__opt_flag(&cli, "check"));
}

static void unambiguous_names_can_be_abbreviated(void **state)
{
    (void)state;
    assert_int_equal(parse("try -o x --sch plain --time 2s"), 0);
    assert_int_equal(sherd__opt_choice(&cli, "scheme"), 1);
    assert_int_equal(sherd__opt_time_ms(&cli, "timeout"), 2000);
    assert_fails(SHERD_EINVAL, "try -o x --node f", "--node could be any of --nodes, --node-memory",
                 "write it out");
    assert_int_equal(parse("try -o x --nodes f"), 0);
}

static void a_misspelt_option_is_reported_with_the_nearest(void **state)
{
    (void)state;
    assert_fails(SHERD_EINVAL, "try -o x --shceme plain", "unknown option --shceme",
                 "did you mean --scheme?");
    assert_fails(SHERD_EINVAL, "try --gropu=4 -o x", "unknown option --gropu",
                 "did you mean --group?");
    assert_fails(SHERD_EINVAL, "try -o x --zzzzzz", "unknown option --zzzzzz", "sherd help try");
    assert_fails(SHERD_EINVAL, "try -o x -Z", "unknown option -Z", "sherd help try");
    assert_fails(SHERD_EINVAL, "try -qZ", "unknown option -Z", "sherd help try");
    assert_fails(SHERD_EINVAL, "try --listen -o x", "sherd try has no --listen",
                 "--listen belongs to `sherd node`");
}

static void missing_and_unexpected_values_are_reported(void **state)
{
    (void)state;
    assert_fails(SHERD_EINVAL, "try -o", "-o needs a value: C.npy", NULL);
    assert_fails(SHERD_EINVAL, "try --output", "--output needs a value: C.npy", NULL);
    assert_fails(SHERD_EINVAL, "try --check=yes -o x", "--check takes no value", NULL);
    assert_fails(SHERD_EINVAL, "try a b", "needs -o C.npy", "sherd help try");
    assert_fails(SHERD_EINVAL, "try -o x -n 0",
                 "-n: expected a whole number from 1 to 1000, found '0'", NULL);
    assert_fails(SHERD_EINVAL, "try -o x a b c",
                 "expected at most 2 arguments, found 3; 'c' is one too many", NULL);
}

static void an_option_cannot_be_given_twice(void **state)
{
    (void)state;
    assert_fails(SHERD_EINVAL, "try -o x -o y", "-o is given twice", "leave one of them out");
    assert_fails(SHERD_EINVAL, "try -o x --check --no-check", "--no-check is given twice", NULL);
    assert_fails(SHERD_EINVAL, "try -o x --output y", "--output is given twice", NULL);
}

static void options_that_exclude_each_other_are_an_error_in_one_place(void **state)
{
    (void)state;
    assert_fails(SHERD_EINVAL, "try -o x -n 3 --nodes f", "-n and --nodes cannot be combined",
                 "leave one of them out");
}

static void a_dry_run_needs_no_output(void **state)
{
    (void)state;
    assert_int_equal(parse("try --dry-run a b"), 0);
}

static void help_ends_the_parsing(void **state)
{
    (void)state;
    assert_int_equal(parse("try --help"), 0);
    assert_true(help);
    assert_int_equal(parse("try a b c d e f -h"), 0);
    assert_true(help);
}

static void a_double_dash_ends_the_options(void **state)
{
    (void)state;
    assert_int_equal(parse("try -o x -- --check -q"), 0);
    assert_int_equal(cli.args_len, 2);
    assert_string_equal(cli.args[0], "--check");
    assert_false(cli.quiet);
}

static void the_value_of_the_stronger_place_is_used(void **state)
{
    (void)state;
    char *env[] = { "SHERD_GROUP=5", "SHERD_EXPOSURE_MAX=0.5", "PATH=/bin", "SHERD_SCHEME=", NULL };
    const char *config = file_with("group = 4\nexposure = balanced\nexposure-max=0.4\n");
    const char *user = file_with("# mine\n\n  group=3\r\nexposure = uniform\nprogress = plain\n"
                                 "timeout = 5s\n");
    const char *system = file_with("timeout = 9s\nprogress = none\nnode-memory = 1G\ncheck");
    sherd__opts_sources src = { env, user, system };
    char line[128];
    snprintf(line, sizeof line, "try -o x --config %s", config);
    if (parse_with(&src, line) != 0) fail_msg("%s", diag.message);
    assert_int_equal(sherd__opt_int(&cli, "group"), 5);
    assert_true(sherd__opt_real(&cli, "exposure-max") == 0.5);
    assert_int_equal(sherd__opt_choice(&cli, "exposure"), 1);
    assert_int_equal(sherd__opt_choice(&cli, "progress"), 2);
    assert_int_equal(sherd__opt_time_ms(&cli, "timeout"), 5000);
    assert_int_equal(sherd__opt_size(&cli, "node-memory"), 1 << 30);
    assert_true(sherd__opt_flag(&cli, "check"));
    assert_int_equal(sherd__opt_choice(&cli, "scheme"), 0);
    assert_string_equal(sherd__opt_where(&cli, "group"), "SHERD_GROUP");
    snprintf(line, sizeof line, "try -o x --group 6 --no-check");
    if (parse_with(&src, line) != 0) fail_msg("%s", diag.message);
    assert_int_equal(sherd__opt_int(&cli, "group"), 6);
    assert_false(sherd__opt_flag(&cli, "check"));
    assert_int_equal(sherd__opt_choice(&cli, "exposure"), 0);
    unlink(config);
    unlink(user);
    unlink(system);
}

static void of_options_that_exclude_each_other_the_one_of_the_stronger_place_is_used(void **state)
{
    (void)state;
    char *env[] = { "SHERD_NODES=nodes.txt", NULL };
    sherd__opts_sources src = { env, NULL, NULL };
    assert_int_equal(parse_with(&src, "try -o x -n 3"), 0);
    assert_null(sherd__opt_text(&cli, "nodes"));
    assert_int_equal(sherd__opt_int(&cli, "local"), 3);
    char *other[] = { "SHERD_LOCAL=3", NULL };
    src.env = other;
    assert_int_equal(parse_with(&src, "try -o x --nodes f"), 0);
    assert_int_equal(sherd__opt_int(&cli, "local"), 0);
    assert_false(sherd__opt_given(&cli, "local"));
}

static void secrets_are_not_read_from_the_environment(void **state)
{
    (void)state;
    char *env[] = { "SHERD_SEED=s", "SHERD_KEY=k", "SHERD_OUTPUT=o", "SHERD_HELP=1", NULL };
    sherd__opts_sources src = { env, NULL, NULL };
    assert_int_equal(parse_with(&src, "try --dry-run"), 0);
    assert_null(sherd__opt_text(&cli, "seed"));
    assert_null(sherd__opt_text(&cli, "key"));
    assert_null(sherd__opt_text(&cli, "output"));
    assert_false(help);
}

static void a_wrong_value_in_the_environment_is_reported_with_its_variable(void **state)
{
    (void)state;
    char *env[] = { "SHERD_GROUP=many", NULL };
    sherd__opts_sources src = { env, NULL, NULL };
    assert_int_equal(parse_with(&src, "try -o x --group 3"), SHERD_EINVAL);
    assert_string_equal(diag.message, "SHERD_GROUP: expected a whole number from 1 to 4294967295, "
                                      "or all, found 'many'");
}

/* {text, part of the message after the path, hint} */
static void a_wrong_configuration_is_reported_with_file_and_line(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        { "\n# c\ngroup = x\n", ":3: group: expected a whole number", NULL },
        { "gruop = 3\n", ":1: no verb has an option 'gruop'", "did you mean group?" },
        { "group = 3\ngroup = 4\n", ":2: group: is set a second time", "leave one of them out" },
        { "= 3\n", ":1: expected `option = value`, found ''", NULL },
        { "group 3\n", ":1: expected `option = value`, found 'group 3'", NULL },
        { "--group = 3\n", ":1: expected an option's long name, found '--group'", NULL },
        { "seed = s\n", ":1: seed: cannot be set in a configuration file",
          "give it on the command line" },
        { "config = s\n", ":1: config: cannot be set in a configuration file", NULL },
        { "scheme = plian", ":1: scheme: expected permute, plain, ", "did you mean plain?" },
        { "progress =\n", ":1: progress: expected auto, bar, plain or none, found ''", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = file_with(cases[i][0]);
        char line[128], expected[160];
        snprintf(line, sizeof line, "try -o x --config %s", path);
        if (parse(line) != SHERD_EFORMAT) fail_msg("case %zu: %s", i, diag.message);
        snprintf(expected, sizeof expected, "%s%s", path, cases[i][1]);
        if (strncmp(diag.message, expected, strlen(expected)) != 0)
            fail_msg("case %zu: %s", i, diag.message);
        if (cases[i][2]) assert_string_equal(diag.hint, cases[i][2]);
        unlink(path);
    }
}

static void options_of_other_verbs_in_a_file_are_ignored(void **state)
{
    (void)state;
    const char *path = file_with("json = yes\n");
    sherd__opts_sources src = { NULL, path, NULL };
    assert_int_equal(parse_with(&src, "try -o x"), 0);
    assert_true(cli.json);
    unlink(path);
}

static void a_binary_or_endless_file_is_refused(void **state)
{
    (void)state;
    assert_int_equal(parse("try -o x --config /proc/self/exe"), SHERD_EFORMAT);
    assert_int_equal(parse("try -o x --config /dev/zero"), SHERD_EFORMAT);
    assert_int_equal(parse("try -o x --config /tmp"), SHERD_EIO);
    assert_int_equal(parse("try -o x --config /dev/null"), 0);
}

static void a_missing_configuration_is_an_error_only_if_it_was_named(void **state)
{
    (void)state;
    sherd__opts_sources src = { NULL, "/nowhere/u", "/nowhere/s" };
    assert_int_equal(parse_with(&src, "try -o x"), 0);
    assert_int_equal(parse("try -o x --config /nowhere/c"), SHERD_EOPEN);
    assert_non_null(strstr(diag.message, "/nowhere/c"));
}

static void bits_imply_exact_unless_float_is_set_in_the_same_or_a_stronger_place(void **state)
{
    (void)state;
    bool exact;
    uint32_t bits;
    assert_int_equal(parse("try -o x"), 0);
    assert_int_equal(sherd__opts_arithmetic(&cli, &exact, &bits, &diag), 0);
    assert_false(exact);
    assert_int_equal(bits, 17);
    assert_int_equal(parse("try -o x --bits 9"), 0);
    assert_int_equal(sherd__opts_arithmetic(&cli, &exact, &bits, &diag), 0);
    assert_true(exact);
    assert_int_equal(bits, 9);
    assert_int_equal(parse("try -o x --mode exact"), 0);
    assert_int_equal(sherd__opts_arithmetic(&cli, &exact, &bits, &diag), 0);
    assert_true(exact);
    assert_int_equal(parse("try -o x --mode float --bits 9"), 0);
    assert_int_equal(sherd__opts_arithmetic(&cli, &exact, &bits, &diag), SHERD_EINVAL);
    assert_string_equal(diag.message, "--bits asks for exact arithmetic, --mode for float");
    char *env[] = { "SHERD_BITS=9", NULL };
    sherd__opts_sources src = { env, NULL, NULL };
    assert_int_equal(parse_with(&src, "try -o x --mode float"), 0);
    assert_int_equal(sherd__opts_arithmetic(&cli, &exact, &bits, &diag), 0);
    assert_false(exact);
    char *mode[] = { "SHERD_MODE=float", NULL };
    src.env = mode;
    assert_int_equal(parse_with(&src, "try -o x --bits 12"), 0);
    assert_int_equal(sherd__opts_arithmetic(&cli, &exact, &bits, &diag), 0);
    assert_true(exact);
    assert_int_equal(bits, 12);
}

static void running_out_of_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    char *env[] = { "SHERD_GROUP=5", "SHERD_EXPOSURE_MAX=0.5", NULL };
    const char *config = file_with("timeout = 4s\nexposure = balanced\n");
    sherd__opts_sources src = { env, config, NULL };
    int err = SHERD_ENOMEM;
    for (size_t n = 1; err != 0; n++) {
        assert_true(n < 100);
        sherd__opts_free(cli.opts);
        cli.opts = NULL;
        sherd__alloc_fail_nth(n);
        err = parse_with(&src, "try -o x -q");
        sherd__alloc_fail_nth(0);
        assert_true(err == 0 || err == SHERD_ENOMEM);
    }
    unlink(config);
}

static int cleanup(void **state)
{
    (void)state;
    sherd__opts_free(cli.opts);
    cli.opts = NULL;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_from_long_and_short_names),
        cmocka_unit_test(presets_are_values_but_do_not_count_as_given),
        cmocka_unit_test(unambiguous_names_can_be_abbreviated),
        cmocka_unit_test(a_misspelt_option_is_reported_with_the_nearest),
        cmocka_unit_test(missing_and_unexpected_values_are_reported),
        cmocka_unit_test(an_option_cannot_be_given_twice),
        cmocka_unit_test(options_that_exclude_each_other_are_an_error_in_one_place),
        cmocka_unit_test(a_dry_run_needs_no_output),
        cmocka_unit_test(help_ends_the_parsing),
        cmocka_unit_test(a_double_dash_ends_the_options),
        cmocka_unit_test(the_value_of_the_stronger_place_is_used),
        cmocka_unit_test(of_options_that_exclude_each_other_the_one_of_the_stronger_place_is_used),
        cmocka_unit_test(secrets_are_not_read_from_the_environment),
        cmocka_unit_test(a_wrong_value_in_the_environment_is_reported_with_its_variable),
        cmocka_unit_test(a_wrong_configuration_is_reported_with_file_and_line),
        cmocka_unit_test(options_of_other_verbs_in_a_file_are_ignored),
        cmocka_unit_test(a_binary_or_endless_file_is_refused),
        cmocka_unit_test(a_missing_configuration_is_an_error_only_if_it_was_named),
        cmocka_unit_test(bits_imply_exact_unless_float_is_set_in_the_same_or_a_stronger_place),
        cmocka_unit_test(running_out_of_memory_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, cleanup);
}
