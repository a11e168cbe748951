/*
 * Memory that is used again: once products of a shape have run in a session, the next one touches
 * hardly any page that the system has to provide, neither here nor at the nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sherd/product.h"
#include "tests/system/scheduler/local_nodes.h"

enum { NODES = 3, DIM = 1456, PAGE = 4096 }; /* B takes 17 MB: panels of A stay under `plain` */

/* Returns the pages that the system has provided to a process without reading a file. */
static unsigned long faults_of(pid_t pid)
{
    char path[64], text[2048], *at;
    unsigned long faults = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_non_null(at = strrchr(text, ')')); /* the name before it may contain anything */
    for (int field = 2; field < 10 && at; field++) at = strchr(at + 1, ' ');
    assert_true(at && sscanf(at, "%lu", &faults) == 1);
    return faults;
}

static unsigned long faults_of_all(sherd_cluster *c)
{
    unsigned long sum = faults_of(getpid());
    for (uint32_t i = 0; i < NODES; i++) sum += faults_of(local_pid(c, i));
    return sum;
}

/* Returns the faults of the product that had the fewest. How many cells a node has in progress at a
 * time, and how many buffers it needs, depends on the other processes of the machine. */
static unsigned long fewest_faults(sherd_scheme scheme, bool exact)
{
    const sherd_product_options o = { .size = sizeof o, .scheme = scheme, .exact = exact };
    sherd_cluster *c = local_open(NODES, NULL, 0);
    const size_t len = (size_t)DIM * DIM;
    double *a = malloc(len * sizeof *a), *b = malloc(len * sizeof *b), *out = malloc(len * 8);
    unsigned long least = ULONG_MAX;
    for (size_t i = 0; i < len; i++) {
        a[i] = (double)(i % 201) - 100;
        b[i] = (double)(i % 199) - 100;
    }
    const sherd_view va = sherd_view_c(a, SHERD_F64, DIM, DIM),
                     vb = sherd_view_c(b, SHERD_F64, DIM, DIM);
    for (int i = 0; i < 12; i++) {
        unsigned long before = faults_of_all(c);
        assert_int_equal(sherd_multiply(c, va, vb, out, DIM, &o, NULL, NULL), SHERD_OK);
        unsigned long faults = faults_of_all(c) - before;
        if (i > 0 && faults < least) least = faults;
    }
    sherd_cluster_close(c);
    free(a);
    free(b);
    free(out);
    return least;
}

static void a_repeated_plain_product_needs_no_fresh_memory(void **state)
{
    (void)state;
    unsigned long faults = fewest_faults(SHERD_PLAIN, false);
    print_message("# %lu faults\n", faults);
    assert_true(faults < (1 << 20) / PAGE); /* operands and result take 51 MB */
}

static void a_repeated_permuted_product_needs_no_fresh_memory(void **state)
{
    (void)state;
    unsigned long faults = fewest_faults(SHERD_PERMUTE, false);
    print_message("# %lu faults\n", faults);
    assert_true(faults < (1 << 20) / PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeated_plain_product_needs_no_fresh_memory),
        cmocka_unit_test(a_repeated_permuted_product_needs_no_fresh_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
