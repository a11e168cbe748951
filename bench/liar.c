/*
 * A node for `sherd bench`: `sherd node` with a backend that computes correctly until a signal
 * comes and from then on changes one bit of every answer. This backend is not part of the node that
 * users run: no option, environment variable or message selects it.
 */
#include <signal.h>

#include "bench/bench.h"
#include "bench/verbs.h"
#include "cli/node.h"
#include "node/backends/hosted.h"

static volatile sig_atomic_t lying;

static void on_signal(int number)
{
    (void)number;
    lying = 1;
}

static int open_liar(void **ctx, const sherd__backend_options *opt, sherd_diag *d)
{
    return sherd__backend_cpu.open(ctx, opt, d);
}

static const sherd__device *devices_liar(void *ctx, uint32_t *count)
{
    return sherd__backend_cpu.devices(ctx, count);
}

static int compute_liar(void *ctx, const sherd__call *c, const sherd__fragment *left,
                        const sherd__fragment *right, sherd_diag *d)
{
    int err = sherd__backend_cpu.compute(ctx, c, left, right, d);
    if (!err && lying && c->task->result.len > 0) c->out[c->task->result.len / 2] ^= 1;
    return err;
}

static int submit_liar(void *ctx, sherd__call *c, sherd_diag *d)
{
    return sherd__hosted_submit(ctx, compute_liar, c, d);
}

static void close_liar(void *ctx)
{
    sherd__backend_cpu.close(ctx);
}

static const sherd__backend liar = { .abi = SHERD__BACKEND_ABI,
                                     .name = "liar",
                                     .open = open_liar,
                                     .devices = devices_liar,
                                     .hold = sherd__hosted_hold,
                                     .drop = sherd__hosted_drop,
                                     .submit = submit_liar,
                                     .cancel = sherd__hosted_cancel,
                                     .multiplier = sherd__hosted_multiplier,
                                     .compute = compute_liar,
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
