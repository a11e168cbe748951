/*
 * What a product will cost, before anything is sent: every byte of it, and a prediction of its
 * time.
 * Bytes are counted cell by cell, by the functions that make and frame them. What this machine does
 * is rehearsed: a few cells are hidden and folded, and timed.
 */
#ifndef SCHEDULER_PLAN_FORECAST_H
#define SCHEDULER_PLAN_FORECAST_H

#include "scheduler/plan/prepare.h"

/** What will travel. */
typedef struct sherd__traffic {
    uint64_t tasks, tasks_csr; /* and of these, with a left block in CSR */
    uint64_t out, in;          /* bytes of PUT and TASK, and of RESULT, headers included */
    uint64_t first;            /* of out: blocks that stay at the nodes */
    uint64_t left, answer;     /* bodies alone, of the cells' left blocks and of results */
    double flops;              /* of all tasks; multiply-adds count two */
    double multiplied;         /* of flops, those that are no streams (below) */
    bool residues; /* left operands of all of them travel as packed residues, and right ones
                              do or are integers */
    double unpacked, packed; /* bytes of packed residues that nodes take apart, and make */
    double widened;          /* of narrower types that they make doubles of, as floats */
    struct {
        double packed, widened; /* of these, for right operands */
    } right;
    double laid;     /* of right blocks of doubles, once for each product with them */
    double streamed; /* of answers that are made as they are sent */
    double busiest;  /* share of the answers' and operands' bytes that one slot has */
    bool at_most;    /* how much of it travels depends on who is first: spare shares that come
                              late are not asked for, and an idle node helps only where there is
                              time */
} sherd__traffic;

/** alike: all panels but the last are as the first, which is true of operands without zeros and
 *  saves reading them. p must not be running. SHERD_EUNSUPPORTED: the scheme does not tell
 *  sizes. */
int sherd__traffic_count(sherd__traffic *out, const sherd__prepared *p, bool alike) SHERD_MUST;

/** Seconds of the coordinator's threads for the whole product, from a few of its cells; p is used
 *  up.
 *  A scheme that may not be rehearsed (blind: masks are struck off) is estimated from its bytes. */
typedef struct sherd__calibration {
    double hide_s, fold_s, fill_s;
} sherd__calibration;
int sherd__rehearse(sherd__calibration *out, sherd__prepared *p,
                    const sherd__traffic *t) SHERD_MUST;

#endif
