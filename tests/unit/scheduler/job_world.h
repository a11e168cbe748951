/*
 * The job's state machine between a scheme that only counts calls and real sessions in memory,
 * whose other ends do what each test needs: situations that the random schedules of the simulation
 * reach rarely or never.
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
#define UNREAD (-7.0) /* an answer that the scheme does not read, because it is not needed */

/** A scheme that counts calls. */
typedef struct fake {
    sherd__scheme_shape shape;
    unsigned hidden[CELLS_MAX], folded[CELLS_MAX], finished;
    uint64_t resident_rows;
    unsigned residents, live; /* resident sources that were made, and those not yet freed */
    int hide_err;
    sherd__job *stops; /* is interrupted while it finishes; NULL: none */
    bool empty;        /* every cell is empty */
    bool seeds;        /* all blocks are seeds */
    uint8_t spared; /* threshold: the slots that were reported dead when a cell was last hidden */
    unsigned decoded[CELLS_MAX], lefts; /* threshold: number of times for each position; left_stays:
                                         * blocks that were made */
} fake;
extern const sherd__hiding_ops fake_ops;

/** The test's end of a node's session, and what it has received. */
typedef struct end {
    sherd__session *here, *there;
    uint64_t sessions;
    sherd__task tasks[CELLS_MAX]; /* requested and not answered */
    size_t asked;
    unsigned blocks, drops;
    unsigned seeds; /* of the blocks, those in this encoding */
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
    uint32_t domain[NODES_MAX]; /* world_start numbers them 0, 1, ..., unless they were set */
    bool domains_set;
    uint32_t older; /* this many nodes, the first ones, do not support windows of images, nor
                       seeds */
    uint32_t needs; /* kinds of arithmetic that the job needs */
    uint32_t other; /* this many nodes, the first ones, have two devices with these kinds */
    uint32_t does[2];
    uint32_t already_reported; /* what the log says already that nodes cannot do (first_report) */
    char reason[SHERD__TEXT_MAX + 24]; /* the last one given to first_report */
    bool behind; /* the executor is delayed: several answers arrive before one is judged */
    char said[4096];
} world;

/** Moves one offer; `to_node`: towards the node. Returns the bytes that were moved. */
size_t world_move(world *w, uint32_t i, bool to_node);
/** Pumps and moves until nothing moves any more. */
void world_settle(world *w);
/** Opens a new session of node i, which is not ready yet. */
void world_join(world *w, uint32_t i);
/** Ends the session; tell: the job is notified, with `back` saying whether the node may come
 *  back. */
void world_part(world *w, uint32_t i, bool tell, bool back);
/** Answers the oldest task of the node; `value` 0: correctly. */
void world_answer(world *w, uint32_t i, double value);
/** Refuses all open tasks of the node. */
void world_refuse_all(world *w, uint32_t i);
/** Answers everything until nothing moves any more; node `but` stays silent. */
void world_work(world *w, uint32_t but);
/** Returns a world, not started, with a scheme for which `threshold` answers are enough. */
world world_of(uint32_t threshold);
/** Starts a job over `nodes` nodes and completes the shape of w->scheme. */
void world_start(world *w, uint32_t nodes, uint32_t tiles, uint32_t panels, uint32_t depth,
                 double exposure, bool strict);
/** Ends the world; no source of the scheme may be left. */
void world_stop(world *w);
/** Fails unless the job is done with `want`, and every cell was folded, or every position decoded,
 *  once. */
void world_must_be_done(world *w, int want);
/** Returns whether the job is done. */
bool world_is_done(world *w);
/** Returns the number of tasks that nodes have not answered. */
size_t world_asked(const world *w);

#endif
