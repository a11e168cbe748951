/*
 * Two nodes, one of which runs a quarter of the time: the parts that products plan for them after
 * others have shown how fast they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/cluster/launch.h"
#include "sherd/product.h"
#include "tests/support/send_signal.h"
#include "tests/system/scheduler/command.h"

#define SIDE 1400u
#define RUNS_MS 10u
#define RESTS_MS 30u
#define TRIES 40 /* the machine may be busy: parts follow the speeds of each moment */

static char dir[128], own_key[160], node_file[160];
static sherd__launch *nodes;
static double *a, *b, *out;
static pthread_t brake;
static atomic_bool over;

/* Stops the second node three quarters of the time. */
static void *hold_back(void *arg)
{
    (void)arg;
    const pid_t pid = sherd__launch_node(nodes, 1)->pid;
    while (!atomic_load(&over)) {
        send_signal(pid, SIGSTOP);
        pause_ms(RESTS_MS);
        send_signal(pid, SIGCONT);
        pause_ms(RUNS_MS);
    }
    return NULL;
}

static int begin(void **state)
{
    (void)state;
    sherd_identity *me;
    sherd_diag d = { 0 };
    signal(SIGPIPE, SIG_IGN);
    folder_new(dir);
    snprintf(own_key, sizeof own_key, "%s/key", dir);
    snprintf(node_file, sizeof node_file, "%s/nodes", dir);
    assert_int_equal(sherd_identity_new(&me, NULL), SHERD_OK);
    assert_int_equal(sherd_identity_save(me, own_key, NULL), SHERD_OK);
    sherd__launch_options o = {
        .nodes = 2, .program = sherd_path(), .threads = 1, .allow = *sherd__identity_fingerprint(me)
    };
    if (sherd__launch_start(&nodes, &o, &d)) fail_msg("%s", d.message);
    sherd_identity_free(me);
    a = calloc(3, SIDE * SIDE * sizeof *a);
    assert_non_null(a);
    b = a + SIDE * SIDE;
    out = b + SIDE * SIDE;
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        a[i] = (double)(i % 1009) - 504;
        b[i] = (double)(i % 811) - 405;
    }
    return pthread_create(&brake, NULL, hold_back, NULL);
}

static int end(void **state)
{
    (void)state;
    atomic_store(&over, true);
    pthread_join(brake, NULL);
    sherd__launch_stop(nodes, 0);
    folder_remove(dir);
    free(a);
    return 0;
}

/* Opens a cluster of the nodes, of which the first one has this weight. */
static sherd_cluster *open_nodes(double weight)
{
    sherd_cluster *c;
    sherd_diag d = { 0 };
    FILE *f = fopen(node_file, "we");
    assert_non_null(f);
    for (uint32_t i = 0; i < 2; i++) {
        char line[1200];
        sherd__peer p = sherd__launch_node(nodes, i)->peer;
        p.weight = i ? 1 : weight;
        snprintf(p.domain, sizeof p.domain, "d%u", i);
        (void)sherd__peer_format(&p, line, sizeof line);
        fprintf(f, "%s\n", line);
    }
    assert_int_equal(fclose(f), 0);
    sherd_cluster_options o = { .size = sizeof o, .nodes_file = node_file, .key_file = own_key };
    if (sherd_cluster_open(&c, &o, &d)) fail_msg("%s", d.message);
    return c;
}

/* Multiplies, and returns the first node's part divided by the second one's. */
static double parts(sherd_cluster *c, sherd_scheme scheme, bool exact)
{
    sherd_diag d = { 0 };
    sherd_report r = { .size = sizeof r };
    const sherd_product_options o = {
        .size = sizeof o, .scheme = scheme, .exact = exact, .bits = exact ? 20 : 0
    };
    const sherd_view va = sherd_view_c(a, SHERD_F64, SIDE, SIDE);
    const sherd_view vb = sherd_view_c(b, SHERD_F64, SIDE, SIDE);
    if (sherd_multiply(c, va, vb, out, SIDE, &o, &r, &d)) fail_msg("%s", d.message);
    double ratio = (double)r.planned[0] / (double)r.planned[1];
    sherd_report_fini(&r);
    return ratio;
}

/* The columns of `permute` are drawn, so that their numbers vary a little. */
static void follow(sherd_scheme scheme)
{
    sherd_cluster *c = open_nodes(1);
    double ratio = parts(c, scheme, true);
    assert_true(ratio > 0.8 && ratio < 1.25); /* nothing is known yet */
    for (int i = 0; i < TRIES && (ratio < 3 || ratio > 4.5); i++) ratio = parts(c, scheme, true);
    if (ratio < 3 || ratio > 4.5) fail_msg("the parts are as %g to 1", ratio);
    sherd_cluster_close(c);
}

static void a_node_four_times_as_fast_gets_four_times_the_rows(void **state)
{
    (void)state;
    follow(SHERD_PLAIN);
}

static void a_node_four_times_as_fast_gets_four_times_the_columns(void **state)
{
    (void)state;
    follow(SHERD_PERMUTE);
}

static void floats_that_are_checked_roughly_give_no_node_more(void **state)
{
    (void)state;
    sherd_cluster *c = open_nodes(1);
    for (int i = 0; i < 4; i++) {
        double ratio = parts(c, SHERD_PERMUTE, false);
        assert_true(ratio > 0.8 && ratio < 1.25);
    }
    sherd_cluster_close(c);
}

static void weights_of_the_list_override_speeds(void **state)
{
    (void)state;
    sherd_cluster *c = open_nodes(0.5);
    for (int i = 0; i < 3; i++) assert_float_equal(parts(c, SHERD_PLAIN, true), 0.5, 0.01);
    sherd_cluster_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_four_times_as_fast_gets_four_times_the_rows),
        cmocka_unit_test(a_node_four_times_as_fast_gets_four_times_the_columns),
        cmocka_unit_test(floats_that_are_checked_roughly_give_no_node_more),
        cmocka_unit_test(weights_of_the_list_override_speeds),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
