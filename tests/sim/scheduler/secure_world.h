/*
 * Secure aggregation in one process: the coordinator's state machine and real task loops of nodes
 * with examples of their own, joined by sessions in memory. Everything that nodes send is kept,
 * their masks and keys are recorded, and the end of a world checks that none occurred twice. A test
 * sets draw_state before it opens a world.
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
enum {
    ROUND = 2,
    PHASES = 6
}; /* index of the first operation of a round, and number of all
                                        * operations */

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
    bool older;                /* an older version, which does not confirm */
    bool unchecking;           /* does not check pieces */
    uint64_t sessions;
    const sherd__peers *peers;
    bool hidden;    /* its upload of this sum has arrived */
    uint8_t *heard; /* received by the coordinator */
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
    /* faults: after the at-th answer to `op`, from any node, these nodes are lost */
    uint32_t op, at, seen;
    uint32_t lost[NODES], lost_len;
    struct befallen { /* and after that, in turn */
        uint32_t op, at, lost[NODES], lost_len;
    } then[2];
    bool back;               /* a lost node may return at once */
    bool returns;            /* and does */
    bool banned;             /* it may never return: it broke the protocol */
    uint32_t flaps, flap_op; /* nodes (bits) whose connection breaks, and is restored, with each
                              * answer to this operation */
    uint32_t spoil;          /* members (bits) that cannot open what node 0 seals for them */
    uint32_t accuse;         /* members whose pieces node 0 claims it cannot open */
    bool forge;              /* node 0 signs something other than its survivors */
    uint32_t often;          /* one in this many results loses a node; 0: none */
    uint64_t now;
    /* the nodes whose uploads were to be opened with these parameters: one set for each sum, and
     * one for each step of a training that continues from a checkpoint */
    uint32_t sum_number, opened_number, opened, opened_of[STEPS];
    uint64_t step;
    bool stepped;
    sherd__sumlist *sums; /* the coordinator's record of these sets; NULL: none */
    uint32_t survivors, colluding;
    uint64_t job_id;
    uint32_t life; /* results until the coordinator is killed; 0: it is not */
    bool killed;
    /* all masks and keys that any node has made */
    uint64_t masks[4000], keys[4000];
    size_t masks_len, keys_len;
} world;

/** Opens a world of so many nodes. `absent`, if it is one of them, is not there at first; `peers`
 *  are the nodes that node 0 accepts, NULL: all. Ended by secure_end. */
void secure_begin_some(world *w, uint32_t nodes, uint32_t survivors, uint32_t colluding,
                       uint32_t absent, const sherd__peers *peers);
void secure_begin(world *w, uint32_t nodes, uint32_t survivors, uint32_t colluding);
void secure_end(world *w);

/** Ends the coordinator; another one continues, with a list of sums (may be NULL) and the nodes
 *  whose bit is set in `up`. */
void secure_end_job(world *w);
void secure_begin_again(world *w, sherd__sumlist *sums, uint32_t up);

/** Makes a node that has not joined yet one that does not check pieces. */
void secure_unchecking(sim_node *n);

/** Runs until nothing moves any more, or the coordinator is killed. */
void secure_settle(world *w);
/** Runs until the first roster is established, which is in w->a then. */
void secure_meet(world *w);
/** Asks for a sum, into w->out: of the next step, or of w->step if w->stepped; the step determines
 *  the parameters. Returns the error of the job. */
int secure_ask(world *w);
/** The same in two parts: secure_take returns the sum that was asked for, after it has settled. */
void secure_begin_ask(world *w);
int secure_take(world *w);

/** secure_cut breaks a node's connection, and the node may return (w->back); secure_connect
 *  restores it. secure_pass: attempts to reach it have failed, and the coordinator has waited for
 *  it as long as the training had lasted. */
void secure_cut(world *w, uint32_t i);
void secure_connect(sim_node *n);
void secure_give_up(world *w, uint32_t i);
/** Lets as much time pass again as the training has lasted. */
void secure_pass(world *w);

/** Computes a node's expected gradient with a grader of another kind, in one pass; each number is
 *  within SLACK of it. */
void secure_local_sum(const world *w, const sim_node *n, int64_t *out);
/** Checks that w->out is the sum over all nodes except these; or over those whose uploads have
 *  arrived. */
void secure_is_sum_without(const world *w, const uint32_t *without, uint32_t len);
void secure_is_sum_of_uploads(const world *w);

#endif
