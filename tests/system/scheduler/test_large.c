/*
 * Operands far beyond every budget: divided into panels and tiles, sent as memory permits, folded
 * as answers arrive. The result is right, and no process uses more memory than its limit.
 *
 * Permitted beyond the limits: the coordinator 256 MB beyond operands and result; a node the memory
 * of an idle process with OpenBLAS and TLS (measured with an empty product), its budget, and
 * NODE_SLACK for buffers of the link and of BLAS.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "command.h"

#define MB (INT64_C(1) << 20)
#define ROWS 50000u
#define INNER 500u
#define COLS 400u
#define NODE_BUDGET_MB 8
#define NODE_SLACK (24 * MB)
#define NODES_MAX 128

static char top[128], out[160];

static int begin(void **s)
{
    (void)s;
    folder_new(top);
    snprintf(out, sizeof out, "%s/C.npy", top);
    return 0;
}

static int end(void **s)
{
    (void)s;
    folder_remove(top);
    return 0;
}

/* Reads a field of /proc/PID/NAME in bytes; 0 if the process is gone. */
static int64_t memory_of(pid_t pid, const char *name, const char *field)
{
    char path[64], line[256];
    long long kb = 0;
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0) sscanf(line + strlen(field) + 1, "%lld", &kb);
    if (f) fclose(f);
    return kb * 1024;
}

typedef struct watched {
    int64_t coordinator; /* maximum of anonymous memory */
    int64_t node;        /* maximum of resident memory over all nodes */
    int64_t sum;         /* maximum of the proportional memory of all processes at one time */
    size_t nodes;
    int64_t ms;
    json_t *root;
} watched;

static int64_t larger(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* Runs the command and samples its memory and that of its children. */
static watched watch(const char *const *argv, bool sums)
{
    command c;
    watched w = { 0 };
    pid_t pids[NODES_MAX];
    command_start(&c, sherd_path(), argv, NULL);
    int64_t deadline = clock_now_ms() + 100000 * patience();
    while (!command_over(&c) && clock_now_ms() < deadline) {
        int64_t sum = sums ? memory_of(c.pid, "smaps_rollup", "Pss") : 0;
        size_t n = children_of(c.pid, pids, NODES_MAX);
        w.coordinator = larger(w.coordinator, memory_of(c.pid, "status", "RssAnon"));
        for (size_t i = 0; i < n; i++) {
            /* Before exec, a spawned process shares the coordinator's memory. */
            if (!started_with(pids[i], "--listen", "127.0.0.1:0")) continue;
            w.node = larger(w.node, memory_of(pids[i], "status", "VmHWM"));
            if (sums) sum += memory_of(pids[i], "smaps_rollup", "Pss");
        }
        w.sum = larger(w.sum, sum);
        w.nodes = n > w.nodes ? n : w.nodes;
        pause_ms(sums ? 100 : 10);
    }
    if (!command_wait(&c, 0)) fail_msg("it hangs");
    if (c.status) fail_msg("exit %d: %s%s", c.status, command_said(c.out), command_said(c.err));
    w.ms = c.ended_ms - c.began_ms;
    w.root = command_json(&c);
    assert_non_null(w.root);
    command_free(&c);
    return w;
}

static int64_t count_of(json_t *root, const char *field)
{
    return json_integer_value(json_object_get(root, field));
}

static void in_memory(const char *a, const char *b, int64_t idle, const char *const *more)
{
    const char *argv[40] = { "sherd",
                             "multiply",
                             a,
                             b,
                             "-o",
                             out,
                             "-n",
                             "3",
                             "--json",
                             "-q",
                             "--memory",
                             "16M",
                             "--node-memory",
                             "8M",
                             "--check",
                             "--threads",
                             "1" };
    for (size_t n = 17; *more; more++) argv[n++] = *more;
    watched w = watch(argv, false);
    int64_t operands = (int64_t)(ROWS * INNER + INNER * COLS) * 8,
            result = (int64_t)ROWS * COLS * 8;
    json_t *check = json_object_get(w.root, "check");
    assert_true(json_is_true(json_object_get(check, "equal")));
    print_message("# %lld ms, %lld panels x %lld tiles; coordinator %lld MB without the mapped "
                  "files (result %lld MB), node %lld MB (idle %lld MB)\n",
                  (long long)w.ms, (long long)count_of(w.root, "panels"),
                  (long long)count_of(w.root, "tiles"), (long long)(w.coordinator / MB),
                  (long long)(result / MB), (long long)(w.node / MB), (long long)(idle / MB));
    assert_true(count_of(w.root, "panels") > 10);
    /* The operands are mapped files: this counts the result and everything else. */
    assert_true(operands > 190 * MB);
    assert_true(w.coordinator < result + 256 * MB);
    assert_true(w.node < idle + NODE_BUDGET_MB * MB + NODE_SLACK);
    json_decref(w.root);
}

static int64_t idle_node(void)
{
    char a[160], b[160];
    snprintf(a, sizeof a, "%s/one.npy", top);
    snprintf(b, sizeof b, "%s/other.npy", top);
    matrix_file(a, 4, 3, 1);
    matrix_file(b, 3, 4, 2);
    const char *argv[] = { "sherd", "multiply", a, b, "-o", out, "-n", "3", "--json", "-q", NULL };
    watched w = watch(argv, false);
    json_decref(w.root);
    return w.node;
}

static void operands_beyond_all_budgets_are_divided_and_no_budget_is_exceeded(void **s)
{
    (void)s;
    static const char *const exact[] = { "--mode", "exact", NULL };
    static const char *const plain[] = { "--mode", "exact", "--scheme", "plain", NULL };
    char a[160], b[160];
    snprintf(a, sizeof a, "%s/A.npy", top);
    snprintf(b, sizeof b, "%s/B.npy", top);
    matrix_file(a, ROWS, INNER, 3);
    matrix_file(b, INNER, COLS, 4);
    int64_t idle = idle_node();
    in_memory(a, b, idle, exact);
    in_memory(a, b, idle, plain);
}

/* B is so wide that no node can hold its rows of B at once. */
static void a_wide_b_is_divided_into_tiles(void **s)
{
    (void)s;
    char a[160], b[160];
    snprintf(a, sizeof a, "%s/few.npy", top);
    snprintf(b, sizeof b, "%s/wide.npy", top);
    matrix_file(a, 40, 600, 5);
    matrix_file(b, 600, 20000, 6);
    const char *argv[] = { "sherd",
                           "multiply",
                           a,
                           b,
                           "-o",
                           out,
                           "-n",
                           "3",
                           "--json",
                           "-q",
                           "--memory",
                           "16M",
                           "--node-memory",
                           "8M",
                           "--mode",
                           "exact",
                           "--check",
                           NULL };
    watched w = watch(argv, false);
    assert_true(json_is_true(json_object_get(json_object_get(w.root, "check"), "equal")));
    assert_true(count_of(w.root, "tiles") > 3);
    assert_true(w.node < idle_node() + NODE_BUDGET_MB * MB + NODE_SLACK);
    json_decref(w.root);
}

static void a_hundred_local_nodes_multiply_512_cubed(void **s)
{
    (void)s;
    char a[160], b[160];
    snprintf(a, sizeof a, "%s/a512.npy", top);
    snprintf(b, sizeof b, "%s/b512.npy", top);
    matrix_file(a, 512, 512, 7);
    matrix_file(b, 512, 512, 8);
    const char *argv[] = { "sherd", "multiply", a,    b,        "-o",    out,       "-n",
                           "100",   "--json",   "-q", "--mode", "exact", "--check", NULL };
    watched w = watch(argv, true);
    assert_true(json_is_true(json_object_get(json_object_get(w.root, "check"), "equal")));
    print_message("# 100 nodes: %lld ms, %lld MB in total, %lld MB the largest\n", (long long)w.ms,
                  (long long)(w.sum / MB), (long long)(w.node / MB));
    assert_int_equal(w.nodes, 100);
    assert_true(w.ms < 60000 * patience());
    assert_true(w.sum > 100 * MB && w.sum < 6000 * MB);
    json_decref(w.root);
}

int main(void)
{
    const char *san = getenv("SAN");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_beyond_all_budgets_are_divided_and_no_budget_is_exceeded),
        cmocka_unit_test(a_wide_b_is_divided_into_tiles),
        cmocka_unit_test(a_hundred_local_nodes_multiply_512_cubed),
    };
    if (san && *san) {
        printf("TAP version 13\n1..1\nok 1 # SKIP a sanitizer's own memory would be measured\n");
        return 0;
    }
    return cmocka_run_group_tests_name("scheduler/large", tests, begin, end);
}
