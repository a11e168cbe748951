/*
 * The coordinator computes no product except for a requested comparison: a preloaded library counts
 * the actual BLAS calls, whatever the command reports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

static char top[128], a[160], b[160], out[160];
#define VOLUME (320ul * 280ul * 150ul)

static int begin(void **s)
{
    (void)s;
    folder_new(top);
    snprintf(a, sizeof a, "%s/A.npy", top);
    snprintf(b, sizeof b, "%s/B.npy", top);
    snprintf(out, sizeof out, "%s/C.npy", top);
    matrix_file(a, 320, 280, 1);
    matrix_file(b, 280, 150, 2);
    return 0;
}

static int end(void **s)
{
    (void)s;
    folder_remove(top);
    return 0;
}

typedef struct counted {
    unsigned long calls, volume;
    json_t *root;
} counted;

/* Runs the command with the counting library. */
static counted count(const char *const *argv)
{
    char preload[1200], file[200], count_file[240], here[1000] = "";
    const char *build = getenv("B") ? getenv("B") : "build/plain";
    const char *env[] = { preload, count_file, NULL };
    counted got = { 0 };
    command c;
    if (build[0] != '/') assert_non_null(getcwd(here, sizeof here));
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/%s/tests/system/scheduler/preload_blas.so",
             here, build);
    snprintf(file, sizeof file, "%s/count", top);
    snprintf(count_file, sizeof count_file, "COUNT_FILE=%s", file);
    (void)remove(file);
    command_start(&c, sherd_path(), argv, env);
    assert_true(command_wait(&c, 60000 * patience()));
    if (c.status) fail_msg("exit %d: %s%s", c.status, command_said(c.out), command_said(c.err));
    FILE *f = fopen(file, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &got.calls, &got.volume), 2);
    fclose(f);
    got.root = command_json(&c);
    assert_non_null(got.root);
    command_free(&c);
    return got;
}

static void multiplies(const char *const *more, unsigned long volume)
{
    const char *argv[32] = { "sherd", "multiply", a, b, "-o", out, "-n", "3", "--json", "-q" };
    for (size_t n = 10; *more; more++) argv[n++] = *more;
    counted got = count(argv);
    if (got.volume != volume)
        fail_msg("%lu multiplications in %lu calls, expected %lu", got.volume, got.calls, volume);
    assert_int_equal(json_integer_value(json_object_get(got.root, "local_products")), 0);
    json_decref(got.root);
}

static void a_product_over_nodes_computes_none_locally(void **s)
{
    (void)s;
    static const char *const ways[][8] = {
        { NULL },
        { "--group", "1", NULL },
        { "--scheme", "plain", NULL },
        { "--mode", "exact", NULL },
        { "--bits", "26", "--scheme", "plain", NULL }, /* modulo primes */
        { "--mode", "exact", "--memory", "2M", "--shuffle-rows", NULL },
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) multiplies(ways[i], 0);
}

static void with_check_the_comparison_is_computed_locally(void **s)
{
    (void)s;
    static const char *const in_floats[] = { "--check", NULL };
    static const char *const exact[] = { "--check", "--mode", "exact", NULL };
    multiplies(in_floats, 2 * VOLUME); /* A B, and |A| |B| for the tolerance */
    multiplies(exact, 2 * VOLUME);     /* in fixed point, and in floats for the difference */
}

static counted demo(const char *samples)
{
    const char *argv[] = { "sherd", "demo", "-n", "3", "--samples", samples, "--json", "-q", NULL };
    counted got = count(argv);
    assert_int_equal(json_integer_value(json_object_get(got.root, "local_products")), 0);
    json_decref(got.root);
    return got;
}

/* The attack at its end uses the same number of digits for any number of samples: the additional
 * volume of more samples is that of the job. Once in floats as above, once more for its time, and
 * once exactly. */
static void the_demo_computes_only_its_comparisons(void **s)
{
    (void)s;
    assert_int_equal(demo("3000").volume - demo("1000").volume, 4ul * 2000 * 784 * 128);
}

int main(void)
{
    const char *san = getenv("SAN");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_over_nodes_computes_none_locally),
        cmocka_unit_test(with_check_the_comparison_is_computed_locally),
        cmocka_unit_test(the_demo_computes_only_its_comparisons),
    };
    if (san && *san) { /* a sanitizer must be loaded first */
        printf("TAP version 13\n1..1\nok 1 # SKIP nothing can be preloaded before a sanitizer\n");
        return 0;
    }
    return cmocka_run_group_tests_name("scheduler/blas", tests, begin, end);
}
