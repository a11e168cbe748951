/*
 * A node for `sherd bench`: `sherd node` with a backend that computes correctly until a signal
 * comes and from then on changes one bit of every answer. This backend is not part of the node that
 * users run: no option, environment variable or message selects it.
 */
#include <signal.h>

#include "bench/bench.h"
#include "bench/verbs.h"
#include "cli/node.h"
#include "lib/node.h"
#include "node/backends/hosted.h"

static volatile sig_atomic_t lying;

static void on_signal(int number)
{
    (void)number;
    lying = 1;
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

static int start_liar(sherd_node **out, const sherd_node_options *opt, sherd_diag *d)
{
    static sherd__backend liar; /* outlives the node */
    liar = sherd__backend_cpu;
    liar.name = "liar";
    liar.submit = submit_liar;
    liar.compute = compute_liar;
    liar.stream = NULL;
    return sherd__node_start_with(out, opt, &liar, d);
}

static int run_bench_node(sherd__cli *cli, sherd_diag *d)
{
    struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigaction(SIGUSR2, &act, NULL);
    return sherd__node_with(start_liar, cli, d);
}

const sherd__verb sherd__verb_bench_node = {
    .name = SHERD__BENCH_NODE,
    .summary = "a node of `sherd bench` that answers wrongly after SIGUSR2",
    .options = sherd__node_options_table,
    .run = run_bench_node,
};
