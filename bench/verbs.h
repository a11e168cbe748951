/* The verbs `sherd bench` and `sherd bench-node`. */
#ifndef BENCH_VERBS_H
#define BENCH_VERBS_H

#include "cli/cli.h"

extern const sherd__verb sherd__verb_bench;

/** `sherd bench-node` (bench/liar.c): a node that answers wrongly after SIGUSR2. It is hidden from
 *  all lists of verbs and started only by sherd__bench_disturbed. */
#define SHERD__BENCH_NODE "bench-node"
extern const sherd__verb sherd__verb_bench_node;

#endif
