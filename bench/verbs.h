/* The verbs of the command that measure it. */
#ifndef BENCH_VERBS_H
#define BENCH_VERBS_H

#include "cli/cli.h"

extern const sherd__verb sherd__verb_bench;

/** `sherd bench-node` (bench/liar.c): a node that answers wrongly from SIGUSR2 on. In no list of
 *  verbs; started by sherd__bench_disturbed alone. */
#define SHERD__BENCH_NODE "bench-node"
extern const sherd__verb sherd__verb_bench_node;

#endif
