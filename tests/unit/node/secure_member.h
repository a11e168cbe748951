/*
 * A node with examples of its own, member 0 of a secure sum, and what a test plays around it: the
 * coordinator's session, and members 1 to 3 with keys of their own. One at a time: its state is
 * `m`. Steps that fail fail the test.
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
    atomic_uint charged; /* uploads, as the compute thread charges them */

    uint32_t tasks, answered, next_block;
    int refused; /* code of the last refusal; 0: a result */
    sherd__refusal refusal;
    uint8_t result[ROOM];
    uint64_t result_len;

    const char *recipe; /* of 8 parameters and 1 tier */
    uint64_t places;    /* of a plan, all in one round */
    bool dealt;         /* by these blocks, which the test puts: members' cards say so */
    double noise;       /* with a clipping norm of 1 */
    bool stays;         /* the job goes on from one JOIN to the next */
    uint8_t cards[N * SHERD__SECURE_CARD];
    /* What members are told of a round: its hide question, and a digest of all that it is about,
     * also among these members. Each round has parameters of its own, unless they are kept. */
    bool kept;
    int64_t hiding[SHERD__SECURE_HIDE + 2];
    uint8_t about[SHERD__ABOUT], bound[SHERD__ABOUT];
    uint8_t pieces[N][512]; /* what members 1 to 3 have sealed for the node in this round */
    /* What each member has signed of the survivors of this round; the node's own is its answer. */
    uint8_t confirmed[N][SHERD__SECURE_SIGNATURE];
    uint64_t confirm_job;
} member_world;
extern member_world m;
extern const uint64_t member_all[N];
extern const sherd__aggregate member_agreed; /* of U of N, one of whom may collude */

/** Set-up and tear-down of a group: examples and identities. */
int member_fill(void **s);
int member_empty(void **s);

/** A worker with these data (NULL: none) and peers (NULL: any), and a session with it. */
void member_start_with(uint64_t memory, const sherd__own *data, const sherd__peers *peers);
void member_start(const sherd__peers *peers);
/** Every task was answered, and nothing is left. */
void member_stop(void);
/** The rest of that, where nothing is left. */
void member_end(void);
/** What m.j hears. */
void member_hear(void *ctx, sherd__event *e);

/** A block of the coordinator's; a task, of which the second waits for the answer. */
void member_put(uint32_t block, uint8_t dtype, uint64_t rows, uint64_t cols, const void *bytes);
void member_ask(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t rows,
                uint64_t cols);
/** The code of its refusal; 0: done, into m.result. */
int member_task(uint32_t op, uint32_t left, uint32_t right, uint8_t dtype, uint64_t rows,
                uint64_t cols);
/** Whether nothing is left to compute; waits for a minute at most. */
bool member_idle(void);

/** The questions of a training, each once; what they return is as of member_task. */
sherd__secure_plan member_plan(void);
int member_join_as(const sherd__secure_plan *p);
int member_join(void);
void member_card_of(const sherd_identity *id, uint32_t self, const sherd__seal_key *k,
                    uint8_t *out);
/** All cards, the node's own from its JOIN. */
void member_deal_cards(void);
int member_roster(void);
/** JOIN and ROSTER, of all. */
void member_meet(void);

/** The questions of a round. A coordinator plans it before it asks for seals. */
void member_plan_round(uint64_t round, int64_t scale);
uint32_t member_put_seal(uint64_t round, int64_t scale);
int member_seal(uint64_t round);
/** Members 1 to 3 seal for the node. */
void members_seal(uint64_t round);
/** The first of two blocks. */
uint32_t member_put_hide(uint64_t round, int64_t scale);
int member_hide(uint64_t round, int64_t scale);
int member_confirm(uint64_t round, const uint64_t *who, uint64_t len);
/** Members 1 to 3 sign these survivors. */
void members_confirm(uint64_t round, const uint64_t *who, uint64_t len);
/** With the pieces of the first `survivors`. */
int member_check(uint64_t round, uint64_t survivors);
/** With what these have signed, and pieces of the first `survivors`; 0: it has them. */
int member_open(uint64_t round, uint64_t survivors, const uint64_t *signers, uint64_t len);
/** All are told of these; they are the first `len`. */
int member_open_for(uint64_t round, const uint64_t *who, uint64_t len);
/** A whole round of all members. */
void member_round(uint64_t round);

#endif
