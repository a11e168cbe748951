/*
 * A circle in one process: the leader, real task loops of nodes and the links between them, joined
 * by sessions in memory that move any number of bytes in any order. What is to be lost, and when,
 * is said in the world. Whoever opens one sets draw_state first.
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
    uint32_t states[8], states_len; /* blocks of a state that it has been given and keeps */
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
    /* what is to happen, when so many pieces have moved since the circle stood */
    uint64_t at;
    uint32_t kill, freeze, sever; /* nodes; sever: its first link */
    uint32_t mute, deaf;          /* a node that sends no blocks; that takes none */
    uint32_t back;                /* a node that is started again once it is down */
    uint64_t often;               /* a link breaks once in so many pieces; 0: never */
    uint64_t memory;              /* that each node tells of */
    uint32_t liar, other;         /* gives another state; tells another hash of its own */
    uint32_t liar_links;          /* tells that it does not reach the last member */
    double steps;                 /* after which all agree that a state is; 0: what it is */
    uint32_t keeps, dumb;         /* does not tell its sums; nor where it is in them */
    uint32_t hurries;             /* tells that bytes move, always */
    uint32_t agree;               /* nodes, as bits, that keep their sums and say of one honest
                                     node after the other that they wait for its part */
    uint32_t flaps;               /* is lost in each step that it grades, and back at once */
    uint32_t absent, doubts;      /* not there at first; does not believe that one, or ALL */
    sherd__peers peers;           /* whom they believe */
    uint32_t stuck;               /* computes nothing, and answers what is answered at once */
    bool later;                   /* once the circle stands */
    uint32_t slow;                /* computes nothing until then, and says that it does */
    uint64_t slow_until;
    uint64_t idle;             /* virtual ms that pass when nothing moves */
    uint32_t refuses, refused; /* a node that refuses this operation, so many times */
    uint64_t refuse_times;
    int refuse_code;
    uint64_t refused_under;          /* what the meeting was called that it refused last */
    uint8_t secret;                  /* what meetings are called follows from it */
    uint64_t pace;                   /* virtual ms that pass while bytes move; 0: none */
    bool stands, tamper;             /* tamper: a bit of the second half of a sum, once */
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

/* Two rows are left for every third step: fewer than shards. */
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
    sherd__allreduce_stats s; /* once trained */
} trial;

/** A world of t->nodes without a circle, nothing to befall it. */
void circle_world_open(world *w, const training *t);
/** Parameters before the first step. */
void circle_run_begin(run *r, world *w, const training *t);
/** Of the stepper, without an engine. */
sherd__gradients_options circle_options(world *w, const training *t, run *r);
/** All steps in one process, from circle_run_begin on. */
void circle_run_here(run *r, world *w, const training *t);
/** Starts the nodes, waits for their circle to stand and makes it the stepper of `r`. */
void circle_job_open(world *w, const training *t, run *r);
/** What the circle is called that all its members have, who are more than one; 0: they differ. */
uint64_t circle_world_name(const world *w);
/** Steps and what settles them; never hangs. */
int circle_run_steps(run *r, const training *t, unsigned steps, sherd_diag *d);
/** Two runs have the same bits. */
void circle_assert_same(const run *a, const run *b);
void circle_run_end(run *r);
/** A world of `t` drawn from `seed`, `here` done, `there` before its first step. What is to befall
 * it is said in x->w before circle_trial_start, or after. */
void circle_trial_open(trial *x, uint64_t seed, const training *t);
/** circle_job_open. */
void circle_trial_start(trial *x);
/** All steps well, and the bits are those of one process. */
void circle_trial_train(trial *x);
void circle_trial_close(trial *x);
/** Ends the job and all nodes; nothing of theirs is left. */
void circle_world_close(world *w);
/** Nodes keep their keys from world to world: a group's teardown. */
int circle_keys_free(void **unused);

#endif
