/*
 * Predicts the time of a product over nodes from the bytes transferred, the work computed, and the
 * speeds of machines and links. Pure arithmetic: the same inputs give the same time.
 *
 * A product is a pipeline of parts that run at the same time, and the slowest determines the
 * total: the loop thread here (sessions and cipher), the compute thread here (hide, check, fold),
 * the links, and the busiest node. Before the first task can run, the resident blocks must be at
 * the nodes and the first position must be hidden; the last position is folded after everything
 * else is done.
 *
 * Links have a latency: the first task and the last answer travel for half of it each, and a node
 * with few tasks in progress waits for the next ones.
 *
 * A device with a memory of its own is one more part: the busiest node copies blocks to it and
 * answers from it while other tasks are computed. The first copies and the first product, and the
 * last ones, are not at the same time: one task's of the shorter part is added.
 *
 * Nodes on this machine share its cores with all of these. Then the sum of all work divided by the
 * number of usable cores is another bound. A core is usable only if a thread can keep it busy:
 * before the first blocks are at the nodes, these threads are the loop thread here, the threads of
 * the nodes that receive the blocks, and the compute thread here while it has work.
 */
#ifndef SCHEDULER_PLAN_COST_H
#define SCHEDULER_PLAN_COST_H

#include <stdbool.h>
#include <stdint.h>

/** An idle node takes over a task of a slow one if its answer is expected later than so many times
 *  the usual time of the idle node, and so many seconds: the task's part of A is sent again. */
#define SHERD__TAKE_OVER_TIMES 3.0
#define SHERD__TAKE_OVER_S 0.25

typedef struct sherd__cost_input {
    /* The work of all nodes together. */
    uint64_t bytes_out, bytes_in; /* through sessions */
    uint64_t bytes_first;         /* of bytes_out, the resident blocks */
    uint64_t tasks;
    double flops;     /* a multiply-add counts as two */
    double convert_s; /* seconds of one core for conversions at nodes: of blocks before products, of
                         answers after them */
    double copied;    /* bytes that the nodes copy to their devices and from them; 0: none */
    double busiest; /* largest share of flops, convert_s and copied at one node; 1/nodes if even */
    /* Seconds of the compute thread here, and seconds to produce blocks that the loop thread makes
     * while it sends them. */
    double hide_s, fold_s, fill_s;
    uint64_t positions; /* in hide_s and fold_s, processed one after another; 0: so many that the
                           first and last one do not matter */
    /* Machines and links. */
    double node_gflops;    /* of one node running alone */
    uint32_t node_threads; /* per node for products; 0: 1 */
    double copy_rate;      /* bytes per second that one node copies; used if `copied` is above 0 */
    uint32_t cores;        /* of this machine */
    bool local;            /* the nodes run on these cores, ... */
    double apart;          /* ... and this fraction of flops is computed on devices apart from them;
                              the rest at core_gflops (0: node_gflops) */
    double core_gflops;
    double session_rate; /* bytes per second that one thread processes in sessions */
    double link_rate;    /* bytes per second of all links together, in each direction; ignored if
                              local */
    double tail_s;    /* until the last tasks of slow nodes are done or taken over, while all others
                              wait */
    double latency_s; /* until the answer of a small task is here; ignored if local */
    uint32_t depth;   /* tasks in progress per node; 0: so many that no node waits for the next
                              one */
} sherd__cost_input;

typedef enum sherd__cost_bound {
    SHERD__BOUND_CORES = 1, /* local: all cores are busy */
    SHERD__BOUND_NODES,     /* products at the busiest node */
    SHERD__BOUND_LINKS,     /* the network, or the thread that serves the sessions */
    SHERD__BOUND_HERE,      /* hiding, checking and folding */
    SHERD__BOUND_DEVICES    /* copies to the devices of the busiest node and from them */
} sherd__cost_bound;

typedef struct sherd__cost {
    double nodes_s, links_s, here_s, cores_s,
        copies_s;   /* each part alone, as if nothing else had to be
                                                 waited for */
    double first_s; /* until the resident blocks are at the nodes */
    double seconds;
    sherd__cost_bound bound; /* the slowest part */
} sherd__cost;

/**
 * Returns the time that nodes of these speeds take together, where one of the lowest speed would
 * take 1 for all of the work. shares: of the work, by node. moves: idle nodes take over what slow
 * ones have not done. Speeds that are not known (0; NULL: all) count as the lowest.
 */
double sherd__cost_uneven(const double *shares, const double *speeds, uint32_t len, bool moves);

/** All rates must be positive. */
void sherd__cost_predict(sherd__cost *out, const sherd__cost_input *in);

#endif
