/* The state of a simulated cluster that sim.c and sim_link.c share; no other file uses it. */
#ifndef TESTS_SIM_SCHEDULER_SIM_STATE_H
#define TESTS_SIM_SCHEDULER_SIM_STATE_H

#include "core/executor.h"
#include "core/rand.h"
#include "node/worker.h"
#include "scheduler/job/job.h"
#include "sim.h"

/* Bytes in transit. */
typedef struct segment {
    uint8_t *bytes;
    size_t len;
    uint64_t at_ms;
    struct segment *next;
} segment;

typedef struct pipe_end {
    segment *head, **tail;
    uint64_t last_ms;
} pipe_end;

struct sim;

typedef struct sim_node {
    struct sim *sim;
    uint32_t index;
    sherd__worker *worker;
    sherd__executor *executor;
    sherd__client *client;
    sherd__session *here, *there; /* coordinator's end, node's end */
    pipe_end down, up;            /* to the node, from it */
    bool dead, stopped, lying, colluding, banned;
    bool frozen, dripping;
    uint64_t chatter_ms; /* time of its next records; 0: it sends none */
    uint32_t slow_ms;
    uint64_t resume_ms, retry_ms;
    unsigned retries;
    uint64_t sessions;
    sim_fault fault;
    uint64_t fault_at; /* number of pieces of bytes, in either direction, before the fault */
    uint64_t pieces;
    uint8_t *last; /* its last bytes, to be sent twice */
    size_t last_len;
    void *backend;
    void *remote;       /* its devices; NULL: the common backend */
    uint64_t turned_ms; /* their latest turn */
    bool computing;     /* calls on them are in progress */
} sim_node;

typedef struct sim {
    const sim_options *o;
    sim_outcome *out;
    sherd__seeded state;
    sherd__entropy rng;
    sim_node *nodes;
    sherd__job *job;
    sherd__executor *executor;
    uint64_t now;
} sim;

/* sim.c: numbers from the seed; a log, which is printed and part of the outcome's hash. */
uint64_t sim_below(sim *s, uint64_t n);
void sim_note(sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* sim_link.c: */
void sim_pipe_clear(pipe_end *p);
/* Opens a new connection, unless the node does not answer. */
void sim_connect(sim *s, sim_node *n);
/* Ends the node's end of the connection. */
void sim_end_there(sim_node *n, int err);
/* Moves all bytes that sessions offer into transit. */
void sim_pull(sim *s);
/* Returns the time of the next event, `tick` at the latest. */
uint64_t sim_next_time(const sim *s, uint64_t tick);
/* Lets the node's devices compute until now; `all`: until they are idle. */
void sim_compute(sim *s, sim_node *n, bool all);
/* Delivers to this node what is due by now. */
void sim_move(sim *s, sim_node *n);

#endif
