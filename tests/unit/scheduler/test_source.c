/* What is known of nodes before one is started or connected to: sherd_cluster_check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "sherd/cluster.h"
#include "sherd/product.h"

static const char here[] = "127.0.0.1:1 domain=a\n[::1]:2 domain=b\nlocalhost:3 domain=c\n"
                           "* role=coordinator\n",
                  away[] = "# ours\n192.0.2.1:1 domain=a\n192.0.2.2:1\n192.0.2.3:1 domain=a\n";

static int check(const sherd_cluster_options *o, uint32_t *nodes, bool *loopback, sherd_diag *d)
{
    *d = (sherd_diag){ 0 };
    return sherd_cluster_check(nodes, loopback, o, d);
}

static void nodes_are_counted_and_their_state_is_read(void **state)
{
    (void)state;
    sherd_cluster_options o = { .size = sizeof o, .nodes = here };
    sherd_diag d;
    uint32_t nodes = 0;
    bool loopback = false;
    assert_int_equal(check(&o, &nodes, &loopback, &d), 0);
    assert_true(nodes == 3 && loopback); /* coordinators are left out */
    o.nodes = away;
    assert_int_equal(check(&o, &nodes, &loopback, &d), 0);
    assert_true(nodes == 3 && !loopback);
    assert_int_equal(check(&o, NULL, NULL, &d), 0);
    o.nodes = NULL;
    o.local_nodes = 7;
    loopback = false;
    assert_int_equal(check(&o, &nodes, &loopback, &d), 0);
    assert_true(nodes == 7 && loopback);
}

static void a_file_is_read_like_its_text(void **state)
{
    (void)state;
    char path[] = "/tmp/sherd-source-XXXXXX";
    int fd = mkstemp(path);
    sherd_cluster_options o = { .size = sizeof o, .nodes_file = path };
    sherd_diag d;
    uint32_t nodes = 0;
    assert_int_equal(write(fd, here, sizeof here - 1), sizeof here - 1);
    close(fd);
    assert_int_equal(check(&o, &nodes, NULL, &d), 0);
    assert_int_equal(nodes, 3);
    unlink(path);
    assert_int_equal(check(&o, &nodes, NULL, &d), SHERD_EOPEN);
    assert_non_null(strstr(d.message, path));
}

static void one_source_of_nodes_is_named(void **state)
{
    (void)state;
    const sherd_cluster_options bad[] = {
        { .size = sizeof *bad },
        { .size = sizeof *bad, .local_nodes = 1, .nodes = here },
        { .size = sizeof *bad, .nodes_file = "x", .nodes = here },
        { .size = sizeof *bad, .running = true, .nodes_file = "x" },
        { .size = 0, .local_nodes = 1 },
    };
    sherd_diag d;
    uint32_t nodes = 77;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(check(&bad[i], &nodes, NULL, &d), SHERD_EINVAL);
    assert_int_equal(nodes, 77);
}

static void a_list_without_nodes_is_refused(void **state)
{
    (void)state;
    sherd_cluster_options o = { .size = sizeof o, .nodes = "* role=coordinator\n" };
    sherd_diag d;
    uint32_t nodes;
    assert_int_equal(check(&o, &nodes, NULL, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "contains no node"));
    o.nodes = "\nhost\n";
    assert_int_equal(check(&o, &nodes, NULL, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "list of nodes:2"));
}

static void a_scheme_states_how_many_nodes_it_needs(void **state)
{
    (void)state;
    sherd_product_options work = { .size = sizeof work, .scheme = SHERD_SHARE };
    sherd_cluster_options o = { .size = sizeof o, .local_nodes = 2, .work = &work };
    sherd_diag d;
    assert_int_equal(check(&o, NULL, NULL, &d), SHERD_EFEWNODES);
    assert_non_null(strstr(d.message, "needs 3 or more"));
    o.local_nodes = 3;
    assert_int_equal(check(&o, NULL, NULL, &d), 0);
    work.spare = 1;
    assert_int_equal(check(&o, NULL, NULL, &d), SHERD_EFEWNODES);
    work.spare = 0;
    work.colluding = 2;
    assert_int_equal(check(&o, NULL, NULL, &d), SHERD_EFEWNODES);
    work.scheme = SHERD_PERMUTE;
    o.local_nodes = 1;
    assert_int_equal(check(&o, NULL, NULL, &d), 0);
    work.size = 0;
    assert_int_equal(check(&o, NULL, NULL, &d), SHERD_EINVAL);
}

static void domains_of_a_list_are_counted(void **state)
{
    (void)state;
    sherd_product_options work = { .size = sizeof work, .scheme = SHERD_SHARE };
    sherd_cluster_options o = { .size = sizeof o, .nodes = here, .work = &work };
    sherd_diag d;
    assert_int_equal(check(&o, NULL, NULL, &d), 0);
    o.nodes = away;
    assert_int_equal(check(&o, NULL, NULL, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "list of nodes:3: 192.0.2.2:1 has no domain="));
    o.nodes = "h:1 domain=a\ng:1 domain=b\n";
    assert_int_equal(check(&o, NULL, NULL, &d), SHERD_EFEWNODES);
    assert_non_null(strstr(d.message, "lists 2 nodes, and 3 or more are needed"));
    o.nodes = "h:1 domain=a\ng:1 domain=b\n* role=coordinator\n\nf:1 domain=b\n";
    assert_int_equal(check(&o, NULL, NULL, &d), SHERD_EFEWNODES);
    assert_non_null(strstr(d.message, "list of nodes:5: domain=b is that of line 2, too: 3 nodes "
                                      "of 2 domains are listed, and 3 domains or more are needed"));
}

/* Nothing is started before that: the program does not exist. */
static void opening_a_cluster_checks_its_work_first(void **state)
{
    (void)state;
    sherd_product_options work = { .size = sizeof work, .scheme = SHERD_SHARE };
    sherd_cluster_options o = {
        .size = sizeof o, .local_nodes = 2, .work = &work, .program = "/nowhere/sherd"
    };
    sherd_cluster *c;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_cluster_open(&c, &o, &d), SHERD_EFEWNODES);
    assert_null(c);
    assert_non_null(strstr(d.message, "needs 3 or more"));
    o.local_nodes = 3;
    d = (sherd_diag){ 0 };
    /* SHERD_EOPEN, or, where posix_spawn cannot report why it failed, SHERD_EFEWNODES: valgrind */
    assert_int_not_equal(sherd_cluster_open(&c, &o, &d), 0);
    assert_null(strstr(d.message, "needs 3 or more"));
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    sherd_cluster_options o = { .size = sizeof o, .nodes = here };
    sherd_diag d;
    size_t n = 0;
    int err;
    do {
        uint32_t nodes = 77;
        sherd__alloc_fail_nth(++n);
        err = check(&o, &nodes, NULL, &d);
        sherd__alloc_fail_nth(0);
        assert_true(err ? err == SHERD_ENOMEM && nodes == 77 : nodes == 3);
    } while (err);
    assert_true(n > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_counted_and_their_state_is_read),
        cmocka_unit_test(a_file_is_read_like_its_text),
        cmocka_unit_test(one_source_of_nodes_is_named),
        cmocka_unit_test(a_list_without_nodes_is_refused),
        cmocka_unit_test(a_scheme_states_how_many_nodes_it_needs),
        cmocka_unit_test(domains_of_a_list_are_counted),
        cmocka_unit_test(opening_a_cluster_checks_its_work_first),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("scheduler/source", tests, NULL, NULL);
}
