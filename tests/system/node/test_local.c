/* Local nodes that outlive the program that started them: sherd/local.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "sherd/sherd.h"
#include "tests/support/send_signal.h"

static char dir[] = "/tmp/sherd-local-XXXXXX", folder[64];

static int begin(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    if (!mkdtemp(dir)) return -1;
    snprintf(folder, sizeof folder, "%s/nodes here", dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    char line[128];
    (void)!sherd_local_stop(folder, NULL, NULL);
    snprintf(line, sizeof line, "rm -rf %s", dir);
    return system(line);
}

static sherd_local_options options(uint32_t nodes)
{
    return (sherd_local_options){ .size = sizeof(sherd_local_options),
                                  .nodes = nodes,
                                  .folder = folder,
                                  .program = getenv("SHERD"),
                                  .node_memory = 64 << 20 };
}

static sherd_local_node node(const sherd_local *l, uint32_t i)
{
    sherd_local_node n = { .size = sizeof n };
    assert_int_equal(sherd_local_at(l, i, &n, NULL), 0);
    return n;
}

static void multiply_over_the_running_ones(void)
{
    double a[] = { 1, 2, 3, 4 }, b[] = { 5, 6, 7, 8 }, c[4];
    sherd_product_options how = { .size = sizeof how, .scheme = SHERD_SHARE, .exact = true };
    sherd_cluster_options where = {
        .size = sizeof where, .running = true, .running_folder = folder, .work = &how
    };
    sherd_cluster *nodes;
    sherd_diag d = { 0 };
    if (sherd_cluster_open(&nodes, &where, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd_cluster_size(nodes), 3);
    assert_true(sherd_cluster_simulated(nodes));
    if (sherd_multiply(nodes, sherd_view_c(a, SHERD_F64, 2, 2), sherd_view_c(b, SHERD_F64, 2, 2), c,
                       2, &how, NULL, &d))
        fail_msg("%s", d.message);
    sherd_cluster_close(nodes);
    assert_true(c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50);
}

static void nodes_run_until_they_are_stopped(void **state)
{
    (void)state;
    sherd_local_options o = options(3);
    sherd_local *l, *again;
    sherd_diag d = { 0 };
    uint32_t nodes = 0, ended = 0;
    char file[128];
    struct stat st;
    bool loopback = false;
    if (sherd_local_start(&l, &o, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd_local_count(l), 3);
    assert_string_equal(sherd_local_folder(l), folder);
    for (uint32_t i = 0; i < 3; i++) {
        sherd_local_node n = node(l, i);
        sherd_peers *list;
        sherd_peer p = { .size = sizeof p };
        assert_true(n.up && n.pid > 1 && n.resident > 1 << 20 && n.name[0] && n.address[0]);
        assert_int_equal(stat(n.log, &st), 0);
        assert_int_equal(sherd_peers_parse(&list, n.line, NULL, NULL), 0);
        assert_int_equal(sherd_peers_at(list, 0, &p, NULL), 0);
        assert_string_equal(p.name, n.name);
        assert_true(p.key[0] && !p.domain[0]);
        sherd_peers_free(list);
    }
    assert_int_equal(sherd_local_start(NULL, &o, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "3 nodes is already up"));
    assert_int_equal(sherd_local_status(&again, folder, NULL), 0);
    assert_string_equal(node(again, 2).line, node(l, 2).line);
    assert_int_equal(node(again, 2).pid, node(l, 2).pid);
    sherd_local_free(again);

    sherd_cluster_options where = { .size = sizeof where,
                                    .running = true,
                                    .running_folder = folder };
    assert_int_equal(sherd_cluster_check(&nodes, &loopback, &where, NULL), 0);
    assert_true(nodes == 3 && loopback);
    assert_int_equal(sherd_local_nodes_file(folder, file, sizeof file, NULL), 0);
    where = (sherd_cluster_options){ .size = sizeof where, .nodes_file = file };
    assert_int_equal(sherd_cluster_check(&nodes, &loopback, &where, NULL), 0);
    assert_int_equal(sherd_local_nodes_file(folder, file, 8, NULL), SHERD_EINVAL);
    multiply_over_the_running_ones();

    sherd_local_node gone = node(l, 1), n = { .size = sizeof n };
    send_signal((pid_t)gone.pid, SIGKILL);
    for (int i = 0; i < 1000 && node(l, 1).pid; i++) {
        sherd_local_free(l);
        assert_int_equal(sherd_local_status(&l, folder, NULL), 0);
        usleep(10000);
    }
    n = node(l, 1);
    assert_true(!n.up && n.pid == 0 && n.resident == 0);
    assert_int_equal(stat(n.log, &st), 0);
    assert_int_equal(sherd_local_at(l, 3, &n, NULL), SHERD_EINVAL);
    sherd_local_free(l);

    assert_int_equal(sherd_local_stop(folder, &ended, NULL), 0);
    assert_int_equal(ended, 2);
    assert_int_not_equal(stat(folder, &st), 0);
    sherd_local_free(NULL);
}

static void nodes_that_were_not_started_are_an_error(void **state)
{
    (void)state;
    sherd_local *l = (sherd_local *)(uintptr_t)1;
    char file[128] = "as it was";
    sherd_cluster_options where = { .size = sizeof where,
                                    .running = true,
                                    .running_folder = folder };
    sherd_cluster *c;
    assert_int_equal(sherd_local_status(&l, folder, NULL), SHERD_EFEWNODES);
    assert_null(l);
    assert_int_equal(sherd_local_stop(folder, NULL, NULL), SHERD_EFEWNODES);
    assert_int_equal(sherd_local_nodes_file(folder, file, sizeof file, NULL), SHERD_EFEWNODES);
    assert_string_equal(file, "as it was");
    assert_int_equal(sherd_cluster_open(&c, &where, NULL), SHERD_EFEWNODES);
}

static void a_folder_that_others_can_access_is_refused(void **state)
{
    (void)state;
    sherd_local_options o = options(1);
    sherd_local *l;
    char file[128];
    sherd_cluster_options where = { .size = sizeof where,
                                    .running = true,
                                    .running_folder = folder };
    sherd_cluster *c;
    assert_int_equal(mkdir(folder, 0700) | chmod(folder, 0750), 0);
    assert_int_equal(sherd_local_start(NULL, &o, NULL), SHERD_EOPEN);
    assert_int_equal(sherd_local_status(&l, folder, NULL), SHERD_EOPEN);
    assert_int_equal(sherd_local_stop(folder, NULL, NULL), SHERD_EOPEN);
    assert_int_equal(sherd_local_nodes_file(folder, file, sizeof file, NULL), SHERD_EOPEN);
    assert_int_equal(sherd_cluster_open(&c, &where, NULL), SHERD_EOPEN);
    assert_int_equal(rmdir(folder), 0);
}

static bool yes(void *ctx)
{
    (void)ctx;
    return true;
}

static void a_start_that_fails_leaves_nothing_running(void **state)
{
    (void)state;
    sherd_local_options o = options(2);
    sherd_local *l;
    sherd_diag d = { 0 };
    o.nodes = 0;
    assert_int_equal(sherd_local_start(&l, &o, NULL), SHERD_EINVAL);
    o.nodes = 1001;
    assert_int_equal(sherd_local_start(&l, &o, NULL), SHERD_EINVAL);
    o = options(2);
    o.size = 0;
    assert_int_equal(sherd_local_start(&l, &o, NULL), SHERD_EINVAL);
    o = options(2);
    o.hooks.interrupted = yes;
    assert_int_equal(sherd_local_start(&l, &o, NULL), SHERD_EINTERRUPTED);
    assert_null(l);
    o = options(2);
    o.program = "/bin/false";
    assert_int_equal(sherd_local_start(&l, &o, &d), SHERD_EFEWNODES);
    assert_non_null(strstr(d.message, "exit status 1"));
    assert_int_equal(sherd_local_status(&l, folder, NULL), SHERD_EFEWNODES);
}

/* Writes a file into the folder. */
static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static bool is_there(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void files_of_other_programs_are_kept(void **state)
{
    (void)state;
    static const char *const names[] = { "key", "nodes", "node-a.log", "node-1.log" };
    sherd_local_options o = options(1);
    sherd_local *l;
    for (size_t i = 0; i < 4; i++) {
        sherd_diag d = { 0 };
        put(names[i], "mine");
        assert_int_equal(sherd_local_start(&l, &o, &d), SHERD_EOPEN);
        assert_non_null(strstr(d.message, names[i]));
        assert_true(is_there(names[i]));
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    /* An interrupted start left an empty state and its files. */
    put("state", "[]");
    put("key", "old");
    put("node-1.log", "old");
    put("notes", "mine");
    assert_int_equal(sherd_local_start(&l, &o, NULL), 0);
    assert_int_equal(sherd_local_stop(folder, NULL, NULL), 0);
    sherd_local_free(l);
    assert_true(is_there("notes") && !is_there("key"));
    char path[512];
    snprintf(path, sizeof path, "%s/notes", folder);
    assert_int_equal(unlink(path), 0);
}

/* Every allocation of the first ones fails once. */
static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    sherd_local_options o = options(1);
    sherd_local *l;
    size_t n = 0;
    int err;
    do {
        sherd__alloc_fail_nth(++n);
        err = sherd_local_start(&l, &o, NULL);
        sherd__alloc_fail_nth(0);
        assert_true(err ? err == SHERD_ENOMEM && !l : l != NULL);
    } while (err && n < 100);
    assert_true(n > 4 && n < 100);
    sherd_local_free(l);
    n = 0;
    do {
        sherd__alloc_fail_nth(++n);
        err = sherd_local_status(&l, folder, NULL);
        sherd__alloc_fail_nth(0);
        assert_true(err ? err == SHERD_ENOMEM && !l : l != NULL);
        sherd_local_free(l);
    } while (err);
    assert_int_equal(sherd_local_stop(folder, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_run_until_they_are_stopped),
        cmocka_unit_test(nodes_that_were_not_started_are_an_error),
        cmocka_unit_test(a_folder_that_others_can_access_is_refused),
        cmocka_unit_test(a_start_that_fails_leaves_nothing_running),
        cmocka_unit_test(files_of_other_programs_are_kept),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("node/local", tests, begin, end);
}
