/*
 * A member of an all-reduce group and its environment in a test: the coordinator's session, and the
 * other members' connections. There is one at a time, with the state `one`. A step that fails fails
 * the test.
 */
#ifndef TESTS_UNIT_NODE_ALLREDUCE_MEMBER_H
#define TESTS_UNIT_NODE_ALLREDUCE_MEMBER_H

#include <stdbool.h>

#include "learn/allreduce_plan.h"
#include "learn/member.h"
#include "node/account.h"
#include "tests/support/joined.h"

enum { COUNT = 8, N = 3, SELF = 1, JOB = 7, GROUP = 99, TEXT = 1, STATE = 2, FIRST = 10 };

typedef struct allreduce_member {
    sherd_identity *identity[N + 1]; /* of members; the last one belongs to a stranger */
    sherd__executor *executor;
    sherd__worker *worker;
    joined j, away;
    const sherd__backend *backend; /* NULL: one that computes nothing */
    void *backend_ctx;
    uint64_t memory;               /* of the worker; 0: 4 MB */
    const sherd__fingerprint *key; /* of coordinators that connect; NULL: each has a key of its
                                    * own */
    bool turns;                    /* the worker asks for turns of a loop, which count as wakes */
    unsigned wakes;
    sherd__allreduce *allreduce; /* that opened a link */
    uint32_t tasks, answered, next_block, opened;
    const sherd__allreduce_links *links; /* NULL: links on which nothing moves */
    uint16_t port;                       /* of all members; 0: 7000 plus the member's number */
    bool coordinators;                   /* member 2's key may give tasks */
    bool calls_off;                      /* cancels every request at once */
    uint32_t refusals;
    int refused;
    uint8_t last_result[512]; /* the last result */
} allreduce_member;
extern allreduce_member one;

/** Returns the key of a member. Beyond the stranger: a key that no identity has, valid until the
 *  next call. */
const sherd__fingerprint *allreduce_key(uint32_t member);

/** Starts a worker with these peers (NULL: any), and a session with it; threaded: tasks run on a
 *  compute thread. */
void allreduce_start_on(bool threaded, const sherd__peers *peers);
void allreduce_start(const sherd__peers *peers);
void allreduce_make_identities(void);
/** Ends the session and checks that nothing is left. Tests with links to close in between call it
 *  in two steps. */
void allreduce_stop(void);
void allreduce_stop_coordinator(void);
void allreduce_stop_worker(void);
/** Exchanges the coordinator with another one, and back again. */
void allreduce_swap(void);
void allreduce_settle(void);
/** Returns the bytes in use by all coordinators. */
uint64_t allreduce_used(void);
/** The tear-down of a group of tests. */
int allreduce_free_identities(void **unused);

/** Sends a block from the coordinator. */
void allreduce_put(uint32_t block, uint8_t dtype, const void *bytes, size_t cols);
/** Asks for a task. Returns its answer: 0 or the code of the refusal, or 1 if there is no answer
 *  yet; so do the functions below. */
int allreduce_ask(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t cols);

/** Asks for a meeting of all members, of the node alone, or with these keys in the n lines of the
 *  roster. */
sherd__allreduce_plan allreduce_plan(void);
int allreduce_meet_of(const sherd__allreduce_plan *p, const uint32_t *who, uint32_t n);
int allreduce_meet_with(const sherd__allreduce_plan *p, const uint32_t who[N]);
int allreduce_meet_alone(const sherd__allreduce_plan *p);
int allreduce_meet(void);
/** Asks for a round in which this node has no shards: it takes part with an empty sum. */
int allreduce_step(uint64_t round, uint64_t commit);
int allreduce_reduce(void);

/** Returns the bytes that the node receives in this step. */
uint64_t allreduce_len_of(uint32_t step_number);
/** Delivers a block as from a connection of this member; 1 if there is no place for it. */
int allreduce_bring(uint32_t member, uint64_t id, uint32_t number, uint64_t len, uint8_t dtype);

#endif
