/*
 * Secure aggregation in one process: the coordinator's state machine and real task loops of nodes
 * with examples of their own, joined by sessions in memory. What every node sends is kept, its
 * masks and keys are noted, and the end of a world looks whether any was there twice. Whoever
 * begins one sets draw_state first.
 */
#ifndef TESTS_SIM_SCHEDULER_SECURE_WORLD_H
#define TESTS_SIM_SCHEDULER_SECURE_WORLD_H

#include "learn/secure.h"
#include "node/worker.h"
#include "scheduler/secure/job.h"
#include "tests/support/memory_ledger.h"

enum {
    INPUTS = 6,
    CLASSES = 3,
    COUNT = 6 * 5 + 5 + 5 * 3 + 3,
    LEN = COUNT + SHERD__SECURE_EXTRA,
    NODES = 7,
    ROWS = 40,
    NOBODY = 100,
    STEPS = 64,
    SLACK = 8
};
extern const char secure_text[]; /* the recipe */
extern const int32_t secure_scales[3];
extern const uint32_t secure_phases[]; /* operations, in the order of a training */
enum { ROUND = 2, PHASES = 6 };        /* those of a round, and where they end */

typedef struct sim_node {
    sherd_identity *identity;
    double examples[ROWS * (INPUTS + 1)]; /* the last column is the label */
    size_t rows;
    sherd__own own;
    memory_ledger ledger;
    sherd__executor *executor;
    void *devices; /* tests/support/node_devices.h */
    sherd__worker *worker;
    sherd__client *client;
    sherd__session *co, *no;
    bool up, expelled, absent; /* absent: not there at first */
    bool older;                /* confirms nothing */
    bool unchecking;           /* checks no pieces */
    uint64_t sessions;
    const sherd__peers *peers;
    bool hidden;    /* its upload of this sum has come */
    uint8_t *heard; /* by the coordinator */
    size_t heard_len, heard_room;
} sim_node;

typedef struct world {
    uint32_t count;
    sim_node node[NODES];
    sherd__recipe recipe;
    sherd__secure_job *job;
    sherd__aggregate a;
    sherd__secure_sum sum;
    sherd__version *params;
    int64_t out[LEN];
    char log[4000];
    /* what is to happen: after the at-th answer to `op`, from whomever, these are lost */
    uint32_t op, at, seen;
    uint32_t lost[NODES], lost_len;
    struct befallen { /* and after that, in turn */
        uint32_t op, at, lost[NODES], lost_len;
    } then[2];
    bool back;               /* whoever is lost may be back at once */
    bool returns;            /* and is */
    bool banned;             /* and never may: it broke the protocol */
    uint32_t flaps, flap_op; /* nodes (bits) whose link breaks, and stands again, with
                                      each answer to this */
    uint32_t spoil;          /* members (bits) that cannot open what node 0 seals for them */
    uint32_t accuse;         /* members whose pieces node 0 says it cannot open */
    bool forge;              /* node 0 signs something else than its survivors */
    uint32_t often;          /* one in so many results loses somebody; 0: none */
    uint64_t now;
    /* whose uploads were to be opened under these parameters: one set of them for each sum, and
       for each step of a training that goes on from a checkpoint */
    uint32_t sum_number, opened_number, opened, opened_of[STEPS];
    uint64_t step;
    bool stepped;
    sherd__sumlist *sums; /* what the coordinator keeps of that; NULL: nothing */
    uint32_t survivors, colluding;
    uint64_t job_id;
    uint32_t life; /* results until the coordinator is killed; 0: it is not */
    bool killed;
    /* every mask and every key that any node has made */
    uint64_t masks[4000], keys[4000];
    size_t masks_len, keys_len;
} world;

/** A world of so many nodes; `absent`, if it is one of them, is not there at first; `peers` is whom
 * node 0 believes, NULL: all. Ended by secure_end. */
void secure_begin_some(world *w, uint32_t nodes, uint32_t survivors, uint32_t colluding,
                       uint32_t absent, const sherd__peers *peers);
void secure_begin(world *w, uint32_t nodes, uint32_t survivors, uint32_t colluding);
void secure_end(world *w);

/** The coordinator is no more; another one goes on, from a list of sums (may be NULL), with those
 *  nodes whose bit is set in `up`. */
void secure_end_job(world *w);
void secure_begin_again(world *w, sherd__sumlist *sums, uint32_t up);

/** A node that has not been heard of is one that checks no pieces. */
void secure_unchecking(sim_node *n);

/** Until nothing moves any more, or the coordinator was killed. */
void secure_settle(world *w);
/** Until the first roster stands, into w->a. */
void secure_meet(world *w);
/** Asks for a sum, into w->out: of the next step, or of w->step if w->stepped; the step decides the
 *  parameters. An error is the job's. */
int secure_ask(world *w);
/** The same in two: what was asked for before, once it has settled. */
void secure_begin_ask(world *w);
int secure_take(world *w);

/** A node's connection breaks, and it may be back (w->back); it is; or attempts to reach it have
 *  failed, and it has been waited for for as long as the training had lasted. */
void secure_cut(world *w, uint32_t i);
void secure_connect(sim_node *n);
void secure_give_up(world *w, uint32_t i);
/** As long again as this has lasted. */
void secure_pass(world *w);

/** What a node's gradient should be: by a grader of another kind, in one pass; each number within
 *  SLACK of it. */
void secure_local_sum(const world *w, const sim_node *n, int64_t *out);
/** w->out is the sum over all but those; or over those whose uploads have come. */
void secure_is_sum_without(const world *w, const uint32_t *without, uint32_t len);
void secure_is_sum_of_uploads(const world *w);

#endif
