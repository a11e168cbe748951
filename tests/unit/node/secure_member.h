/*
 * A node with examples of its own, member 0 of a secure sum, and its environment in a test: the
 * coordinator's session, and members 1 to 3 with keys of their own. There is one at a time, with
 * the state `m`. A step that fails fails the test.
 */
#ifndef TESTS_UNIT_NODE_SECURE_MEMBER_H
#define TESTS_UNIT_NODE_SECURE_MEMBER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "crypto/aggregate.h"
#include "learn/secure.h"
#include "node/worker.h"
#include "tests/support/joined.h"
#include "tests/support/memory_ledger.h"

enum {
    ROWS = 9,
    COUNT = 8,
    LEN = COUNT + SHERD__SECURE_EXTRA,
    N = 4,
    U = 3,
    JOB = 7,
    TEXT = 1,
    PLAN = 2,
    ROSTER = 3,
    MEMBER_X = 4,
    MEMBER_TARGETS = 5,
    FIRST = 10,
    ROOM = 4096
};

typedef struct member_world {
    double examples[ROWS * 5], params[COUNT];
    sherd__own own;
    memory_ledger ledger;
    sherd__policy policy;
    sherd_identity *identity;
    sherd__executor *executor;
    sherd__worker *worker;
    joined j;
    struct {
        sherd_identity *identity;
        sherd__seal_key key;
        sherd__aggregate_member *member;
    } others[N];   /* members 1 to 3 */
    bool threaded; /* tasks run on a compute thread */
    bool turns;    /* the worker asks for turns of a loop, which count as wakes */
    unsigned wakes;
    atomic_uint charged; /* uploads, counted when the compute thread charges them */

    uint32_t tasks, answered, next_block;
    int refused; /* code of the last refusal; 0: a result */
    sherd__refusal refusal;
    uint8_t result[ROOM];
    uint64_t result_len;

    const char *recipe; /* with 8 parameters and 1 tier */
    uint64_t places;    /* of a plan, all in one round */
    bool dealt;         /* examples are these blocks, sent by the coordinator; members' cards say
                         * so */
    double noise;       /* with a clipping norm of 1; 0: no noise */
    bool stays;         /* the job continues from one JOIN to the next */
    uint8_t cards[N * SHERD__SECURE_CARD];
    /* What members receive in a round: its HIDE request, and a digest of its description, also one
     * that includes the members. Each round has new parameters, unless they are kept. */
    bool kept;
    int64_t hiding[SHERD__SECURE_HIDE + 2];
    uint8_t about[SHERD__ABOUT], bound[SHERD__ABOUT];
    uint8_t pieces[N][512]; /* pieces that members 1 to 3 have sealed for the node in this round */
    /* The signatures of all members over the survivors of this round; the node's own is from its
     * answer. */
    uint8_t confirmed[N][SHERD__SECURE_SIGNATURE];
    uint64_t confirm_job;
} member_world;
extern member_world m;
extern const uint64_t member_all[N];
extern const sherd__aggregate member_agreed; /* thresholds: U of N, one of which may collude */

/** Set-up and tear-down of a group of tests: examples and identities. */
int member_fill(void **s);
int member_empty(void **s);

/** Starts a worker with these data (NULL: none) and peers (NULL: any), and a session with it. */
void member_start_with(uint64_t memory, const sherd__own *data, const sherd__peers *peers);
void member_start(const sherd__peers *peers);
/** Checks that every task was answered, and ends everything. */
void member_stop(void);
/** The second part of member_stop, for tests in which nothing is left to answer. */
void member_end(void);
/** Receives the events of m.j. */
void member_hear(void *ctx, sherd__event *e);

/** Sends a block from the coordinator; asks for a task, and member_task also waits for its
 *  answer. */
void member_put(uint32_t block, uint8_t dtype, uint64_t rows, uint64_t cols, const void *bytes);
void member_ask(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t rows,
                uint64_t cols);
/** Returns the code of the refusal; 0: done, with the result in m.result. */
int member_task(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t rows,
                uint64_t cols);
/** Waits until nothing is left to compute, a minute at most. Returns whether that is so. */
bool member_idle(void);

/** The requests of a training, each once; they return what member_task returns. */
sherd__secure_plan member_plan(void);
int member_join_as(const sherd__secure_plan *p);
int member_join(void);
void member_card_of(const sherd_identity *id, uint32_t self, const sherd__seal_key *k,
                    uint8_t *out);
/** Sets all cards, the node's own from its JOIN. */
void member_deal_cards(void);
int member_roster(void);
/** Runs JOIN and ROSTER of all members. */
void member_meet(void);

/** The requests of a round. A coordinator plans it before it asks for seals. */
void member_plan_round(uint64_t round, int64_t scale);
uint32_t member_put_seal(uint64_t round, int64_t scale);
int member_seal(uint64_t round);
/** Members 1 to 3 seal pieces for the node. */
void members_seal(uint64_t round);
/** Returns the first of two blocks. */
uint32_t member_put_hide(uint64_t round, int64_t scale);
int member_hide(uint64_t round, int64_t scale);
int member_confirm(uint64_t round, const uint64_t *who, uint64_t len);
/** Members 1 to 3 sign these survivors. */
void members_confirm(uint64_t round, const uint64_t *who, uint64_t len);
/** Checks the pieces of the first `survivors`. */
int member_check(uint64_t round, uint64_t survivors);
/** Opens with the signatures of these members and the pieces of the first `survivors`; 0: m.result
 *  has the answer. */
int member_open(uint64_t round, uint64_t survivors, const uint64_t *signers, uint64_t len);
/** Names these survivors to all members; they are the first `len`. */
int member_open_for(uint64_t round, const uint64_t *who, uint64_t len);
/** Runs a complete round of all members. */
void member_round(uint64_t round);

#endif
