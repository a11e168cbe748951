/* Internals of a member of an all-reduce group, for allreduce.c (tasks), meet.c (plan, roster and
 * links) and reduce.c (blocks). No other file includes this. */
#ifndef NODE_ALLREDUCE_STATE_H
#define NODE_ALLREDUCE_STATE_H

#include <stdatomic.h>

#include "learn/allreduce_plan.h"
#include "learn/member.h"
#include "node/allreduce/allreduce.h"
#include "node/allreduce/packs.h"

enum { ALLREDUCE_STEPS = 2 * (SHERD__ALLREDUCE_MOST - 1) };

/* The sum of a round. Fragments that are being sent hold it, also after their round was
 * abandoned. */
typedef struct allreduce_sum {
    uint32_t holders;
    sherd__pool *pool;
    size_t len;
    int64_t *values;
} allreduce_sum;

/* A member that this member may send to. */
typedef struct allreduce_peer {
    bool wanted;
    void *link;              /* NULL: not opened, or lost */
    sherd__session *session; /* NULL: not connected */
    int err;                 /* why it is not connected */
    uint64_t out, in;        /* bytes of links that were closed */
} allreduce_peer;

typedef struct allreduce_piece {
    uint64_t round;
    sherd__fragment *body; /* NULL: not received */
} allreduce_piece;

struct sherd__allreduce {
    sherd__allreduce_site site;
    bool running;         /* between GO and done */
    atomic_bool forget;   /* free everything when the running task is done; the compute thread
                             checks it between local steps */
    atomic_bool unwanted; /* the running task was cancelled */
    /* set by MEET */
    uint64_t job; /* 0: no job */
    bool met;
    sherd__allreduce_plan plan;
    sherd__recipe recipe;
    sherd__peers roster;
    sherd__member *member;
    sherd__block *state; /* the block of MEET, held while MEET runs */
    uint64_t reserved;
    uint32_t passes; /* of the member */
    sherd__packs packs;
    sherd__pack_chunk *old; /* packs of earlier trainings, still held */
    bool looking;           /* the packs of a STEP are being looked up; later tasks wait */
    allreduce_peer peers[SHERD__ALLREDUCE_MOST];
    int64_t links[SHERD__ALLREDUCE_MOST]; /* the result of CONNECT */
    /* set by STEP */
    uint64_t round;
    sherd__step_plan shards_of;
    sherd__allreduce_round head;
    uint8_t *scratch;                   /* for shards that are not contiguous; NULL: no room */
    uint64_t scratch_len, scratch_each; /* each: of a pass */
    allreduce_sum *sum;                 /* NULL: no sum */
    uint32_t step, steps;
    size_t added; /* numbers of the step's in part that were added or copied */
    bool adding;  /* the rest, and the steps after it, follow in the next turn */
    bool open;    /* from STEP to the sum, or to the round's end without one */
    bool exchanging, summed;
    uint64_t bytes[3]; /* out, in, and bodies in: as in the result of REDUCE */
    uint64_t bodies_in;
    int err;          /* why the round cannot be finished */
    uint32_t culprit; /* with err: the member at the other end, or this one */
    sherd_diag why;
    allreduce_piece pieces[ALLREDUCE_STEPS];
};

/* meet.c */

/** Reads plan and roster of MEET and allocates memory. The previous state is freed, except the
 *  member if the plan keeps it. */
int sherd__allreduce_open_plan(sherd__allreduce *c, const sherd__task *t, const sherd__block *left,
                               const sherd__block *right, sherd_diag *d) SHERD_MUST;
/** Creates the member, or keeps it. */
int sherd__allreduce_meet(sherd__allreduce *c, sherd_diag *d) SHERD_MUST;
/** Opens links to all members that the schedule names, once. Returns false while one is neither
 *  connected nor failed. */
bool sherd__allreduce_connected(sherd__allreduce *c);
void sherd__allreduce_disconnect(sherd__allreduce *c);
void sherd__allreduce_drop_scratch(sherd__allreduce *c);
/** Frees everything but the site. */
void sherd__allreduce_leave(sherd__allreduce *c);

/* reduce.c */

/** Allocates this round's sum. */
int sherd__allreduce_sum_new(sherd__allreduce *c, sherd_diag *d) SHERD_MUST;
/** Releases the sum, which fragments that are being sent keep alive. */
void sherd__allreduce_sum_free(sherd__allreduce *c);
/** Returns the bytes that were sent or received on links. */
uint64_t sherd__allreduce_moved(const sherd__allreduce *c);
/** Starts the exchange; the sum holds this member's own values. */
void sherd__allreduce_exchange(sherd__allreduce *c);
/** Ends or abandons the round. */
void sherd__allreduce_drop_round(sherd__allreduce *c);
/** Frees the received blocks of rounds up to `last`. */
void sherd__allreduce_drop_pieces(sherd__allreduce *c, uint64_t last);

#endif
