/* Clusters of local nodes through the library; see local_nodes.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/cluster/internal.h"
#include "tests/support/send_signal.h"
#include "tests/system/scheduler/command.h"
#include "tests/system/scheduler/local_nodes.h"

char local_warned[4096];

void local_note(void *ctx, sherd_log_level level, const char *text)
{
    (void)ctx;
    size_t len = strlen(local_warned);
    if (level == SHERD_LOG_WARN)
        snprintf(local_warned + len, sizeof local_warned - len, "%s\n", text);
}

sherd_cluster *local_open_as(sherd_cluster_options o, const char *misbehave)
{
    sherd_cluster *c;
    sherd_diag d = { 0 };
    signal(SIGPIPE, SIG_IGN);
    o.hooks.log = local_note;
    o.program = misbehave ? liar_path() : sherd_path();
    local_warned[0] = '\0';
    if (misbehave) setenv("SHERD_TEST_MISBEHAVE", misbehave, 1);
    int err = sherd_cluster_open(&c, &o, &d);
    unsetenv("SHERD_TEST_MISBEHAVE");
    if (err) fail_msg("%s", d.message);
    return c;
}

sherd_cluster *local_open(uint32_t nodes, const char *misbehave, uint64_t memory)
{
    return local_open_as((sherd_cluster_options){ .size = sizeof(sherd_cluster_options),
                                                  .local_nodes = nodes,
                                                  .node_memory = memory },
                         misbehave);
}

pid_t local_pid(sherd_cluster *c, uint32_t node)
{
    sherd_node_info info = { .size = sizeof info };
    assert_int_equal(sherd_cluster_node_at(c, node, &info, NULL), 0);
    return (pid_t)info.pid;
}

uint64_t local_sent(sherd_cluster *c)
{
    uint64_t sum = 0;
    sherd__cluster_refresh(c);
    for (uint32_t i = 0; i < sherd_cluster_size(c); i++) {
        sherd_node_info info = { .size = sizeof info };
        assert_int_equal(sherd_cluster_node_at(c, i, &info, NULL), 0);
        sum += info.work_out;
    }
    return sum;
}

void local_stop(sherd_cluster *c, uint32_t node)
{
    const pid_t pid = local_pid(c, node);
    int64_t deadline = clock_now_ms() + 30000 * patience();
    send_signal(pid, SIGSTOP);
    while (!is_stopped(pid)) {
        if (clock_now_ms() > deadline) fail_msg("node %u does not stop", node);
        pause_ms(1);
    }
}

void local_gone(sherd_cluster *c, uint32_t node)
{
    sherd_node_info info = { .size = sizeof info, .state = SHERD_NODE_UP };
    int64_t deadline = clock_now_ms() + 30000 * patience();
    while (info.state == SHERD_NODE_UP) {
        if (clock_now_ms() > deadline) fail_msg("%s is still up", info.name);
        pause_ms(5);
        assert_int_equal(sherd_cluster_node_at(c, node, &info, NULL), 0);
    }
}
