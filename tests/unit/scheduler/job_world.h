/*
 * The job's state machine between a scheme that only counts and real sessions in memory, whose
 * other ends do what each test wants: what the simulation's random schedules meet rarely or never.
 */
#ifndef TESTS_UNIT_SCHEDULER_JOB_WORLD_H
#define TESTS_UNIT_SCHEDULER_JOB_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/fragment_make.h"
#include "scheduler/job/job.h"

#define NODES_MAX 8u
#define CELLS_MAX 1024u
#define JOB 0x77u
#define UNREAD (-7.0) /* an answer that the scheme does not look at: it is not needed */

/** A scheme that counts. */
typedef struct fake {
    sherd__scheme_shape shape;
    unsigned hidden[CELLS_MAX], folded[CELLS_MAX], finished;
    uint64_t resident_rows;
    unsigned residents, live; /* resident sources made, and not yet freed */
    int hide_err;
    bool empty;     /* every cell is */
    uint8_t spared; /* threshold: the slots that were said to be dead when last hidden */
    unsigned decoded[CELLS_MAX], lefts; /* threshold: by position; left_stays: blocks made */
} fake;
extern const sherd__hiding_ops fake_ops;

/** What the tests' end of a node's session has met. */
typedef struct end {
    sherd__session *here, *there;
    uint64_t sessions;
    sherd__task tasks[CELLS_MAX]; /* asked and not answered */
    size_t asked;
    unsigned blocks, drops;
    int expelled;
} end;

typedef struct world {
    fake scheme;
    sherd__hiding hiding;
    sherd__exposure_ledger *ledger;
    sherd__executor *executor;
    sherd__job *job;
    end ends[NODES_MAX];
    sherd__delivery deliveries[NODES_MAX]; /* outlive the job */
    uint32_t nodes;
    uint64_t now;
    uint32_t domain[NODES_MAX]; /* world_start numbers them 0, 1, ..., unless set */
    bool domains_set;
    uint32_t older; /* the first so many nodes take no windows of images */
    bool behind;    /* the executor is: several answers come before one is judged */
    char said[4096];
} world;

/** Moves one offer; `to_node`: towards the node. Bytes that were moved. */
size_t world_move(world *w, uint32_t i, bool to_node);
/** Pumps and moves until nothing moves any more. */
void world_settle(world *w);
/** A new session of node i, not ready yet. */
void world_join(world *w, uint32_t i);
/** Ends it; tell: the job is told, and whether the node may come back. */
void world_part(world *w, uint32_t i, bool tell, bool back);
/** The node answers its oldest task; `value` 0: rightly. */
void world_answer(world *w, uint32_t i, double value);
/** The node refuses all that it was asked. */
void world_refuse_all(world *w, uint32_t i);
/** Answers everything until nothing moves any more; node `but` stays silent. */
void world_work(world *w, uint32_t but);
/** Of a scheme of which `threshold` answers are enough; to be started. */
world world_of(uint32_t threshold);
/** A job over `nodes` nodes; the shape of w->scheme is filled in. */
void world_start(world *w, uint32_t nodes, uint32_t tiles, uint32_t panels, uint32_t depth,
                 double exposure, bool strict);
/** Ends it; no source of the scheme may be left. */
void world_stop(world *w);
/** Fails unless the job is done with `want`, every cell folded, or every position decoded, once. */
void world_must_be_done(world *w, int want);
/** Whether it is done. */
bool world_is_done(world *w);
/** Tasks that nodes were asked and have not answered. */
size_t world_asked(const world *w);

#endif
