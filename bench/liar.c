/*
 * A node for `sherd bench`: that of `sherd node` with a backend of its own, which computes as the
 * other does until a signal comes, and from then on changes one bit of every answer. The node that
 * people run has no part in it: there is no option, no environment and no message that reaches this
 * backend.
 */
#include <signal.h>

#include "bench/bench.h"
#include "bench/verbs.h"
#include "cli/node.h"

static volatile sig_atomic_t lying;

static void on_signal(int number)
{
    (void)number;
    lying = 1;
}

static int open_liar(void **ctx, const sherd__backend_options *opt, sherd__backend_caps *caps,
                     sherd_diag *d)
{
    return sherd__backend_cpu.open(ctx, opt, caps, d);
}

static int run_liar(void *ctx, const sherd__task *task, const sherd_fragment *left,
                    const sherd_fragment *right, uint8_t *out, sherd_diag *d)
{
    int err = sherd__backend_cpu.run(ctx, task, left, right, out, d);
    if (!err && lying && task->result.len > 0) out[task->result.len / 2] ^= 1;
    return err;
}

static void close_liar(void *ctx)
{
    sherd__backend_cpu.close(ctx);
}

static const sherd__backend liar = { .abi = SHERD__BACKEND_ABI,
                                     .name = "liar",
                                     .open = open_liar,
                                     .run = run_liar,
                                     .close = close_liar };

static int run_bench_node(sherd__cli *cli, sherd_diag *d)
{
    struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigaction(SIGUSR2, &act, NULL);
    return sherd__node_with(&liar, cli, d);
}

const sherd__verb sherd__verb_bench_node = {
    .name = SHERD__BENCH_NODE,
    .summary = "a node of `sherd bench` that lies when it is told to",
    .options = sherd__node_options_table,
    .run = run_bench_node,
};
