/*
 * An all-reduce group in one process: the coordinator, real task loops of nodes and the links
 * between them, joined by sessions in memory that move any number of bytes in any order. The world
 * says which faults occur, and when. A test sets draw_state before it opens a world.
 */
#ifndef TESTS_SIM_SCHEDULER_ALLREDUCE_WORLD_H
#define TESTS_SIM_SCHEDULER_ALLREDUCE_WORLD_H

#include "node/account.h"
#include "scheduler/allreduce/job.h"

enum {
    COUNT = 6 * 5 + 5 + 5 * 3 + 3,
    NODES = 8,
    ROWS = 60,
    STEPS = 6,
    NOBODY = 100,
    ALL = 101,
    ROW = 6 * 8 + 4 + 4
}; /* bytes of an example: inputs, label, number */

typedef struct sim_node {
    struct world *world;
    uint32_t index;
    sherd__peer peer;
    sherd__executor *executor;
    void *devices; /* tests/support/node_devices.h */
    sherd__worker *worker;
    sherd__client *client;
    sherd__session *co, *no;
    bool up, expelled, frozen;
    uint32_t states[8], states_len; /* blocks of a state that it has received and keeps */
} sim_node;

typedef struct world {
    uint32_t count;
    sim_node node[NODES];
    struct link *links;
    sherd__recipe recipe;
    sherd__dataset data;
    sherd__allreduce_job *job;
    sherd__allreduce_ask ask;
    uint64_t now, moves;
    char log[8000];
    /* faults, which occur when so many pieces have moved since the group was established */
    uint64_t at;
    uint32_t kill, freeze, sever; /* nodes; sever: its first link */
    uint32_t mute, deaf;          /* a node that sends no blocks; a node that accepts none */
    uint32_t back;                /* a node that is started again once it is down */
    uint64_t often;               /* a link breaks once in this many pieces; 0: never */
    uint64_t memory;              /* reported by each node */
    uint32_t liar, other;         /* a node that sends another state; a node that reports another
                                   * hash of its own */
    uint32_t liar_links;          /* reports that it does not reach the last member */
    double steps;                 /* the number of steps that all report for a state; 0: the real
                                   * one */
    uint32_t keeps, dumb;         /* does not report its sums; does not report its progress */
    uint32_t hurries;             /* always reports that bytes move */
    uint32_t agree;               /* nodes, as bits, that keep their sums and report of one honest
                                   * node after the other that they wait for its part */
    uint32_t flaps;               /* is lost in each step that it computes, and back at once */
    uint32_t absent, doubts;      /* absent at first; does not accept that one, or ALL */
    sherd__peers peers;           /* the nodes that they accept */
    uint32_t stuck;               /* computes nothing, and answers only what needs no computation */
    bool later;                   /* after the group was established */
    uint32_t slow;                /* computes nothing until slow_until, and reports that it
                                   * computes */
    uint64_t slow_until;
    uint64_t idle;             /* virtual ms that pass when nothing moves */
    uint32_t refuses, refused; /* a node that refuses this operation; refuse_times: how often */
    uint32_t refuses_too;      /* another such node */
    uint64_t refuse_times;
    int refuse_code;
    uint64_t refused_under;          /* the id of the meeting that it refused last */
    uint8_t secret;                  /* ids of meetings are derived from it */
    uint64_t pace;                   /* virtual ms that pass while bytes move; 0: none */
    bool stands, tamper;             /* tamper: flips a bit of the second half of a sum, once */
    uint64_t body_bytes, link_bytes; /* between members */
} world;

typedef struct training {
    sherd__reduce kind;
    uint32_t nodes, shards;
    sherd__method method;
    uint64_t local;
    double before; /* every entry of the gradient before the first step */
    sherd__order order;
    bool allow_drop;
    size_t batch;
} training;

/* Every third step has only two rows: fewer than shards. */
static const training usual = { SHERD__REDUCE_RING,    3,     5, SHERD__SGD, 0, 0,
                                SHERD__ORDER_SHUFFLED, false, 29 };

typedef struct run {
    sherd__network *network;
    sherd__optimiser optimiser;
    sherd__stepper stepper;
    double cost;
    uint64_t hits;
} run;

/* A training in a world, and the same in one process. */
typedef struct trial {
    training t;
    world w;
    run here, there;
    sherd__allreduce_stats s; /* after the training */
} trial;

/** Opens a world of t->nodes without a group and without faults. */
void allreduce_world_open(world *w, const training *t);
/** Sets the parameters before the first step. */
void allreduce_run_begin(run *r, world *w, const training *t);
/** Returns the options of the stepper, without an engine. */
sherd__gradients_options allreduce_options(world *w, const training *t, run *r);
/** Runs all steps in one process, after allreduce_run_begin. */
void allreduce_run_here(run *r, world *w, const training *t);
/** Starts the nodes, waits until their group is established, and makes it the stepper of `r`. */
void allreduce_job_open(world *w, const training *t, run *r);
/** Returns the id of the group that all its members have, if there are several; 0: they differ. */
uint64_t allreduce_world_name(const world *w);
/** Runs steps and settles; never hangs. */
int allreduce_run_steps(run *r, const training *t, unsigned steps, sherd_diag *d);
/** Checks that two runs have the same bits. */
void allreduce_assert_same(const run *a, const run *b);
void allreduce_run_end(run *r);
/** Opens a world of `t` drawn from `seed`, with `here` completed and `there` before its first step.
 *  Faults are set in x->w before allreduce_trial_start, or after it. */
void allreduce_trial_open(trial *x, uint64_t seed, const training *t);
/** As allreduce_job_open. */
void allreduce_trial_start(trial *x);
/** Runs all steps, which must succeed, and checks that the bits are those of one process. */
void allreduce_trial_train(trial *x);
void allreduce_trial_close(trial *x);
/** Ends the job and all nodes; checks that nothing of theirs is left. */
void allreduce_world_close(world *w);
/** The teardown of a group of tests; nodes keep their keys from world to world. */
int allreduce_keys_free(void **unused);

#endif
