/* Inside of a member of a circle, for circle.c (tasks), circle_meet.c (who it is, and links) and
 * reduce.c (blocks). No other file includes this. */
#ifndef NODE_ALLREDUCE_STATE_H
#define NODE_ALLREDUCE_STATE_H

#include <stdatomic.h>

#include "learn/allreduce_plan.h"
#include "learn/member.h"
#include "node/allreduce/allreduce.h"
#include "node/allreduce/packs.h"

enum { CIRCLE_STEPS = 2 * (SHERD__ALLREDUCE_MOST - 1) };

/* A sum under way. Fragments that are being sent hold it, also after their round was given up. */
typedef struct circle_sum {
    uint32_t holders;
    sherd__pool *pool;
    size_t len;
    int64_t *values;
} circle_sum;

/* One whom this member sends to. */
typedef struct circle_peer {
    bool wanted;
    void *link;              /* NULL: not opened, or lost */
    sherd__session *session; /* NULL: not up */
    int err;                 /* why it is not */
    uint64_t out, in;        /* bytes of links that were closed */
} circle_peer;

typedef struct circle_piece {
    uint64_t round;
    sherd__fragment *body; /* NULL: none is here */
} circle_piece;

struct sherd__allreduce {
    sherd__allreduce_site site;
    bool running;         /* between GO and done */
    atomic_bool forget;   /* then; the compute thread looks at it between local steps */
    atomic_bool unwanted; /* as long as it runs: it was called off */
    /* since MEET */
    uint64_t job; /* 0: none */
    bool met;
    sherd__allreduce_plan plan;
    sherd__recipe recipe;
    sherd__peers roster;
    sherd__member *member;
    sherd__block *state; /* of MEET, held while it runs */
    uint64_t reserved;
    sherd__packs packs;
    sherd__pack_chunk *old; /* packs of before, still held */
    bool looking;           /* a STEP's packs are being looked for; what follows it waits */
    circle_peer peers[SHERD__ALLREDUCE_MOST];
    int64_t links[SHERD__ALLREDUCE_MOST]; /* what CONNECT tells */
    /* since STEP */
    uint64_t round;
    sherd__step_plan shards_of;
    sherd__allreduce_round head;
    uint8_t *scratch; /* for shards that are not in one place; NULL: no room */
    uint64_t scratch_len;
    circle_sum *sum; /* NULL: none */
    uint32_t step, steps;
    size_t added; /* numbers of the step's in part that are taken */
    bool adding;  /* the rest is, and steps behind it, in the next turn */
    bool open;    /* from STEP to the sum, or the round's end without one */
    bool exchanging, summed;
    uint64_t bytes[3]; /* out, in, and bodies in: as REDUCE tells them */
    uint64_t bodies_in;
    int err;          /* the round cannot be ended */
    uint32_t culprit; /* then: the member at the other end, or this one */
    sherd_diag why;
    circle_piece pieces[CIRCLE_STEPS];
};

/* circle_meet.c */

/** Reads plan and roster of MEET and makes room. What was before is gone, but for the member where
 *  the plan keeps it. */
int sherd__allreduce_open_plan(sherd__allreduce *c, const sherd__task *t, const sherd__block *left,
                               const sherd__block *right, sherd_diag *d) SHERD_MUST;
/** Makes the member, or keeps it. */
int sherd__allreduce_meet(sherd__allreduce *c, sherd_diag *d) SHERD_MUST;
/** Opens links to all whom the schedule names, once; false while one is neither up nor failed. */
bool sherd__allreduce_connected(sherd__allreduce *c);
void sherd__allreduce_disconnect(sherd__allreduce *c);
void sherd__allreduce_drop_scratch(sherd__allreduce *c);
/** Forgets everything. */
void sherd__allreduce_leave(sherd__allreduce *c);

/* reduce.c */

/** Memory for this round's sum. */
int sherd__allreduce_sum_new(sherd__allreduce *c, sherd_diag *d) SHERD_MUST;
/** What is being sent keeps it alive. */
void sherd__allreduce_sum_free(sherd__allreduce *c);
/** Bytes that have moved on links, either way. */
uint64_t sherd__allreduce_moved(const sherd__allreduce *c);
/** The sum is this member's own; the exchange begins. */
void sherd__allreduce_exchange(sherd__allreduce *c);
/** The round is given up, or over. */
void sherd__allreduce_drop_round(sherd__allreduce *c);
/** Blocks that came for rounds up to this one. */
void sherd__allreduce_drop_pieces(sherd__allreduce *c, uint64_t last);

#endif
