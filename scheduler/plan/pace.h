/*
 * Which node sets the pace of a product: the one that needs the longest time of those that are
 * waited for, by what nodes declare. Pure arithmetic.
 */
#ifndef SCHEDULER_PLAN_PACE_H
#define SCHEDULER_PLAN_PACE_H

#include "scheduler/plan/contention.h"
#include "scheduler/plan/prepare.h"

/** The work of all nodes. */
typedef struct sherd__pace_work {
    sherd__node_arithmetic in;
    double flops;
    double copied;     /* bytes of blocks and answers, which a node with devices copies to these and
                           from them */
    double copied_all; /* of these, bytes that each device of a node is given */
    double here_gflops; /* rate of a node that computes on a processor of this machine; 0: as
                           declared */
    bool coded; /* each domain has one share, and the slowest `spare` ones are not waited for */
    uint32_t spare;
} sherd__pace_work;

typedef struct sherd__pace {
    uint32_t node;    /* UINT32_MAX: no node declares a rate */
    bool uneven;      /* coded: some nodes are faster than others */
    double gflops;    /* without copies, where these are known */
    double copied;    /* bytes that it would copy if it did all of the work */
    double copy_rate; /* bytes per second; 0: it copies nothing, or the rate is unknown */
} sherd__pace;

/** Returns how many nodes compute on devices of their own. */
uint32_t sherd__pace_devices(const sherd__nodes *n);
/**
 * Finds the node that sets the pace. n->each must not be NULL. Nodes with coded shares are
 * ordered by how fast they answered in earlier jobs, if that is known of all of them (n->paces),
 * otherwise by the time that work and copies would take at their rates; nodes of which nothing is
 * known are the first to be spare. SHERD_ENOMEM.
 */
int sherd__pace_find(sherd__pace *out, const sherd__nodes *n, const sherd__pace_work *w) SHERD_MUST;

#endif
