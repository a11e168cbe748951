/*
 * A member of a circle and what a test plays around it: the coordinator's session, and the other
 * members' connections. One at a time: its state is `one`. Steps that fail fail the test.
 */
#ifndef TESTS_UNIT_NODE_ALLREDUCE_MEMBER_H
#define TESTS_UNIT_NODE_ALLREDUCE_MEMBER_H

#include <stdbool.h>

#include "learn/allreduce_plan.h"
#include "learn/member.h"
#include "node/account.h"
#include "tests/support/joined.h"

enum { COUNT = 8, N = 3, SELF = 1, JOB = 7, CIRCLE = 99, TEXT = 1, STATE = 2, FIRST = 10 };

typedef struct circle_member {
    sherd_identity *identity[N + 1]; /* of members; the last one is a stranger */
    sherd__executor *executor;
    sherd__worker *worker;
    joined j, away;
    const sherd__backend *backend; /* NULL: one that computes nothing */
    void *backend_ctx;
    uint64_t memory;               /* of the worker; 0: 4 MB */
    const sherd__fingerprint *key; /* of coordinators that come; NULL: each has its own */
    bool turns;                    /* it asks for turns of a loop, which count as wakes */
    unsigned wakes;
    sherd__allreduce *circle; /* that opened a link */
    uint32_t tasks, answered, next_block, opened;
    const sherd__allreduce_links *links; /* NULL: links that nothing moves on */
    uint16_t port;                       /* of all members; 0: 7000 and their number */
    bool coordinators;                   /* member 2's key may give tasks */
    bool calls_off;                      /* whatever is asked, at once */
    uint32_t refusals;
    int refused;
    uint8_t told[512]; /* the last result */
} circle_member;
extern circle_member one;

/** Of a member beyond the stranger: a key that no identity has, until the next call. */
const sherd__fingerprint *circle_key(uint32_t member);

/** A worker with these peers (NULL: any), and a session with it; threaded: tasks run on a compute
 *  thread. */
void circle_start_on(bool threaded, const sherd__peers *peers);
void circle_start(const sherd__peers *peers);
void circle_make_identities(void);
/** The session ends; nothing is left. In two steps for tests that have links to close between. */
void circle_stop(void);
void circle_stop_coordinator(void);
void circle_stop_worker(void);
/** Another coordinator takes the place of this one, and the other way round. */
void circle_swap(void);
void circle_settle(void);
/** Bytes in use, which are all coordinators'. */
uint64_t circle_used(void);
/** Tear-down of a group. */
int circle_free_identities(void **unused);

/** A block of the coordinator's. */
void circle_put(uint32_t block, uint8_t dtype, const void *bytes, size_t cols);
/** A task, and its answer: 0 or the code of the refusal; 1: none yet. So are those below. */
int circle_ask(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t cols);

/** A meeting of all, of the node alone, or with these keys in the roster's (n) lines. */
sherd__allreduce_plan circle_plan(void);
int circle_meet_of(const sherd__allreduce_plan *p, const uint32_t *who, uint32_t n);
int circle_meet_with(const sherd__allreduce_plan *p, const uint32_t who[N]);
int circle_meet_alone(const sherd__allreduce_plan *p);
int circle_meet(void);
/** A round without shards of this node's own: it takes part with a sum of nothing. */
int circle_step(uint64_t round, uint64_t commit);
int circle_reduce(void);

/** Bytes that the node is brought in this step. */
uint64_t circle_len_of(uint32_t step_number);
/** What a connection of this member would bring; 1 where there is no place for it. */
int circle_bring(uint32_t member, uint64_t id, uint32_t number, uint64_t len, uint8_t dtype);

#endif
