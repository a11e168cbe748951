/*
 * How long a product over nodes takes, from what travels, what is computed, and how fast machines
 * and links are. Pure arithmetic: the same numbers give the same time.
 *
 * A product is a pipeline. Four things go on at the same time, and the slowest of them sets the
 * pace: the loop thread here (bytes through sessions and cipher), the compute thread here (hide,
 * check, fold), the links, and the busiest node. Before the first task can run, the blocks that
 * stay at the nodes have to be there, and the first position is hidden; the last one is folded when
 * all else is done. Nodes on this machine share its cores with all of that: then
 * the sum of everything, divided by the cores, is a bound too. There are as many cores as there are
 * threads to keep them busy: before the first blocks are there, that is the loop thread here, those
 * that take the blocks at the nodes, and the compute thread here as far as it has work.
 */
#ifndef SCHEDULER_PLAN_COST_H
#define SCHEDULER_PLAN_COST_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sherd__cost_input {
    /* The work, of all nodes together. */
    uint64_t bytes_out, bytes_in; /* through sessions */
    uint64_t bytes_first;         /* of bytes_out, blocks that stay at the nodes */
    uint64_t tasks;
    double flops;     /* multiply-adds count two */
    double convert_s; /* one core's seconds of what nodes do to blocks before products
                                     and to answers after them */
    double busiest;   /* share of flops and of convert_s that one node has, at most;
                                     1/nodes: even */
    /* The compute thread here, and blocks that are made on the loop thread as they are sent;
     * seconds. */
    double hide_s, fold_s, fill_s;
    uint64_t positions; /* that hide_s and fold_s are of, one after the other; 0: too many for the
                           first or the last to count */
    /* Machines and links. */
    double node_gflops;    /* of one node by itself */
    uint32_t node_threads; /* that it has for them; 0: 1 */
    uint32_t cores;        /* here */
    bool local;            /* the nodes share them */
    double session_rate;   /* bytes a second that one thread puts through sessions */
    double link_rate;      /* bytes a second of the links together, each way; local: no
                                     matter */
} sherd__cost_input;

typedef enum sherd__cost_bound {
    SHERD__BOUND_CORES = 1, /* local: all cores are busy */
    SHERD__BOUND_NODES,     /* products at the busiest node */
    SHERD__BOUND_LINKS,     /* the network, or the thread that serves the sessions */
    SHERD__BOUND_HERE       /* hiding, checking and folding */
} sherd__cost_bound;

typedef struct sherd__cost {
    double nodes_s, links_s, here_s, cores_s; /* each by itself, as if nothing else had to be waited
                                                 for */
    double first_s;                           /* until the blocks that stay are there */
    double seconds;
    sherd__cost_bound bound; /* what sets the pace */
} sherd__cost;

/** All rates must be positive. */
void sherd__cost_predict(sherd__cost *out, const sherd__cost_input *in);

#endif
