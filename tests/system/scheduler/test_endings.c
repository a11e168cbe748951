/*
 * However the command ends while its local nodes work - Ctrl-C, SIGTERM, SIGHUP, kill -9 - no node
 * and no temporary file is left, and the earlier output is unchanged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "tests/support/send_signal.h"

#define NODES 7
#define SLOW "SHERD_TEST_MISBEHAVE=slow:1" /* seconds */
#define OLD "an earlier result\n"

static char top[128], tmp[160], out_dir[160], a[160], b[160], large_a[160], large_b[160];
static char out[200], sent[260];

static int begin(void **s)
{
    (void)s;
    folder_new(top);
    snprintf(tmp, sizeof tmp, "%s/tmp", top);
    snprintf(out_dir, sizeof out_dir, "%s/out", top);
    snprintf(a, sizeof a, "%s/A.npy", top);
    snprintf(b, sizeof b, "%s/B.npy", top);
    snprintf(out, sizeof out, "%s/C.npy", out_dir);
    matrix_file(a, 400, 300, 1);
    matrix_file(b, 300, 200, 2);
    snprintf(large_a, sizeof large_a, "%s/large-A.npy", top);
    snprintf(large_b, sizeof large_b, "%s/large-B.npy", top);
    matrix_file(large_a, 3000, 700, 3);
    matrix_file(large_b, 700, 1500, 4);
    return mkdir(tmp, 0700) || mkdir(out_dir, 0700) ? -1 : 0;
}

static int end(void **s)
{
    (void)s;
    folder_remove(top);
    return 0;
}

/* The operands, and the memory: many small pieces. */
typedef struct work {
    const char *a, *b, *memory;
} work;

static const work small = { a, b, "2M" };
/* Pieces that are computed on the nodes' compute threads; those of microseconds are computed on the
 * loop. */
static const work large = { large_a, large_b, "192M" };

/* Starts a command whose nodes take some time for each product, with seven child processes. */
static void start_with(command *c, const work *w, unsigned run, const char *slow, pid_t pids[NODES],
                       bool until_answers)
{
    char record[200], received[240], env_tmp[200], folder[64];
    const char *env[] = { slow, env_tmp, NULL };
    const char *argv[] = { "sherd",      "multiply", w->a,       w->b,       "-o",
                           out,          "-n",       "7",        "--memory", w->memory,
                           "--progress", "none",     "--record", record,     NULL };
    snprintf(folder, sizeof folder, "record-%u-%d", run, until_answers);
    snprintf(record, sizeof record, "%s/%s", top, folder);
    snprintf(received, sizeof received, "%s/node-1.received", record);
    snprintf(sent, sizeof sent, "%s/node-1.sent", record);
    snprintf(env_tmp, sizeof env_tmp, "TMPDIR=%s", tmp);
    file_put(out, OLD, sizeof OLD - 1);
    command_start(c, liar_path(), argv, env);
    int64_t deadline = clock_now_ms() + 30000 * patience(), enough = until_answers ? 2000 : 0;
    size_t n = 0;
    while (clock_now_ms() < deadline && !command_over(c)) {
        n = children_of(c->pid, pids, NODES);
        if (n == NODES && (!until_answers || file_size(received) > enough)) break;
        pause_ms(1);
    }
    if (command_over(c)) fail_msg("it ended by itself: %s", command_said(c->err));
    assert_int_equal(n, NODES);
}

static void start(command *c, unsigned run, const char *slow, pid_t pids[NODES], bool until_answers)
{
    start_with(c, &small, run, slow, pids, until_answers);
}

static void nothing_is_left(const pid_t pids[NODES])
{
    if (!processes_gone(pids, NODES, 15000 * patience())) fail_msg("a local node is left");
    assert_int_equal(folder_entries(out_dir), 1);
    assert_int_equal(folder_entries(tmp), 0);
    assert_true(file_holds(out, OLD));
}

/* During the work, and as soon as the processes exist. */
static void ends_by(int signal_number, int status, unsigned run)
{
    for (int at_work = 0; at_work < 2; at_work++) {
        command c;
        pid_t pids[NODES];
        start(&c, run, SLOW, pids, at_work);
        send_signal(c.pid, signal_number);
        if (!command_wait(&c, 15000 * patience())) fail_msg("it hangs");
        if (c.status != status) fail_msg("ended with %d: %s", c.status, command_said(c.err));
        if (status > 0) assert_non_null(strstr(command_said(c.err), "interrupted"));
        nothing_is_left(pids);
        command_free(&c);
    }
}

static void ctrl_c_gives_exit_130_and_leaves_nothing_behind(void **s)
{
    (void)s;
    ends_by(SIGINT, 130, 1);
}

static void sigterm_gives_exit_130_and_leaves_nothing_behind(void **s)
{
    (void)s;
    ends_by(SIGTERM, 130, 2);
}

static void sighup_gives_exit_130_and_leaves_nothing_behind(void **s)
{
    (void)s;
    ends_by(SIGHUP, 130, 3);
}

static void kill_9_leaves_nothing_behind(void **s)
{
    (void)s;
    ends_by(SIGKILL, -SIGKILL, 4);
}

/* The running product is useless then: its node must not finish it. Returns true if the nodes ended
 * at once; otherwise this machine was busy, but they have ended, too. */
static bool nodes_end_at_once(unsigned run)
{
    command c;
    pid_t pids[NODES];
    start_with(&c, &large, run, "SHERD_TEST_MISBEHAVE=minute", pids, false);
    for (int i = 0; i < 100 && file_size(sent) < 2000; i++) pause_ms(100);
    pause_ms(500);
    send_signal(c.pid, SIGKILL);
    assert_true(command_wait(&c, 5000 * patience()));
    bool gone = processes_gone(pids, NODES, 1000 * patience());
    nothing_is_left(pids);
    command_free(&c);
    return gone;
}

static void kill_9_ends_nodes_within_a_product(void **s)
{
    (void)s;
    for (unsigned run = 10; run < 15; run++)
        if (nodes_end_at_once(run)) return;
    fail_msg("nodes continue after the coordinator was killed");
}

static void a_stopped_node_is_not_left_behind(void **s)
{
    (void)s;
    command c;
    pid_t pids[NODES];
    start(&c, 5, SLOW, pids, true);
    send_signal(pids[3], SIGSTOP);
    send_signal(c.pid, SIGTERM);
    if (!command_wait(&c, 15000 * patience())) fail_msg("it hangs");
    assert_int_equal(c.status, 130);
    nothing_is_left(pids);
    command_free(&c);
}

/* The process that inherits the children may belong to their session, as the first process of a
 * container does: then the kernel does not wake children that are stopped when their parent
 * dies. */
static void a_stopped_node_does_not_outlive_kill_9(void **s)
{
    (void)s;
    command c;
    pid_t pids[NODES];
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    start(&c, 8, SLOW, pids, true);
    send_signal(pids[3], SIGSTOP);
    send_signal(c.pid, SIGKILL);
    assert_true(command_wait(&c, 5000 * patience()));
    nothing_is_left(pids);
    command_free(&c);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
}

static void a_second_ctrl_c_leaves_nothing_behind(void **s)
{
    (void)s;
    command c;
    pid_t pids[NODES];
    start(&c, 6, SLOW, pids, true);
    send_signal(c.pid, SIGINT);
    pause_ms(5);
    send_signal(c.pid, SIGINT);
    if (!command_wait(&c, 15000 * patience())) fail_msg("it hangs");
    assert_true(c.status == 130 || c.status == -SIGINT);
    nothing_is_left(pids);
    command_free(&c);
}

/* The same for a product that writes its result: at many points between start and end. */
static void kill_9_while_it_writes_leaves_one_complete_file(void **s)
{
    (void)s;
    char whole[200], env_tmp[200];
    const char *env[] = { env_tmp, NULL };
    const char *argv[] = { "sherd", "multiply",   a,      b,   "-o", whole, "-n", "2", "--mode",
                           "exact", "--progress", "none", NULL };
    snprintf(whole, sizeof whole, "%s/whole.npy", top);
    snprintf(env_tmp, sizeof env_tmp, "TMPDIR=%s", tmp);
    command c;
    command_start(&c, sherd_path(), argv, env);
    assert_true(command_wait(&c, 30000 * patience()));
    assert_int_equal(c.status, 0);
    int64_t usual = c.ended_ms - c.began_ms;
    command_free(&c);
    argv[5] = out;
    unsigned finished = 0;
    for (unsigned i = 0; i < 16; i++) {
        file_put(out, OLD, sizeof OLD - 1);
        command_start(&c, sherd_path(), argv, env);
        pause_ms((unsigned)(usual / 2 + usual * i / 24));
        pid_t pids[2];
        size_t n = children_of(c.pid, pids, 2);
        send_signal(c.pid, SIGKILL);
        assert_true(command_wait(&c, 5000));
        command_free(&c);
        assert_true(processes_gone(pids, n, 5000 * patience()));
        bool old = file_holds(out, OLD);
        if (!old && !files_equal(out, whole)) fail_msg("a part of a result was written");
        finished += !old;
        /* A hidden name may exist between link and rename */
        if (folder_entries(out_dir) != 1) {
            command_start(&c, sherd_path(), argv, env); /* the next writer removes it */
            assert_true(command_wait(&c, 30000 * patience()));
            command_free(&c);
        }
        assert_int_equal(folder_entries(out_dir), 1);
    }
    print_message("# %u of 16 had finished\n", finished);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ctrl_c_gives_exit_130_and_leaves_nothing_behind),
        cmocka_unit_test(sigterm_gives_exit_130_and_leaves_nothing_behind),
        cmocka_unit_test(sighup_gives_exit_130_and_leaves_nothing_behind),
        cmocka_unit_test(kill_9_leaves_nothing_behind),
        cmocka_unit_test(kill_9_ends_nodes_within_a_product),
        cmocka_unit_test(a_stopped_node_is_not_left_behind),
        cmocka_unit_test(a_stopped_node_does_not_outlive_kill_9),
        cmocka_unit_test(a_second_ctrl_c_leaves_nothing_behind),
        cmocka_unit_test(kill_9_while_it_writes_leaves_one_complete_file),
    };
    return cmocka_run_group_tests_name("scheduler/endings", tests, begin, end);
}
