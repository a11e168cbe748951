/* Declarations shared by the parts of a node's side of secure aggregation: life cycle (secure.c),
 * members (join.c) and rounds (round.c). No other file includes this. */
#ifndef NODE_SECURE_INTERNAL_H
#define NODE_SECURE_INTERNAL_H

#include "crypto/aggregate.h"
#include "learn/secure.h"
#include "node/secure/secure.h"

struct sherd__secure {
    sherd__secure_site site;
    uint32_t admitted;       /* admitted tasks that are not done */
    const atomic_bool *stop; /* of the running task */
    uint64_t forget;         /* job to forget when they are done; 0: no job */
    uint64_t reserved;
    /* set by JOIN */
    uint64_t job; /* 0: no job */
    sherd__secure_plan plan;
    sherd__recipe recipe;
    sherd__block *x, *targets; /* dealt examples; NULL: the node's own */
    bool joined;
    sherd__own_grader *grader;
    sherd__own dealt;
    double budget;       /* rho of the policy's epsilon and delta */
    size_t tiers, count; /* count: number of parameters */
    sherd__aggregate a;
    sherd__seal_key key;
    uint8_t card[SHERD__SECURE_CARD];
    uint8_t training[SHERD__ABOUT]; /* digest of the recipe and of the part of the plan that is the
                                       same for all members */
    /* set by ROSTER */
    sherd__aggregate_member *member;
    uint8_t (*signers)[32];       /* public key of each member */
    int64_t *sum;                 /* the sum before and after masking, a.len numbers */
    int64_t *noise;               /* of this round, a.len numbers; NULL: no noise */
    uint8_t roster[SHERD__ABOUT]; /* digest of the training and its members */
    uint8_t about[SHERD__ABOUT];  /* digest of what the round is about, as announced by SEAL */
    uint8_t bound[SHERD__ABOUT];  /* digest of `about` with the members that this node knows: pieces
                                     are sealed and statements signed in its context */
    uint64_t round;
    bool hidden, checked, opened;  /* tasks that were requested in this round */
    bool whole;                    /* all pieces of the survivors were received */
    bool given;                    /* the upload of this round was computed */
    uint8_t charged[SHERD__ABOUT]; /* digest of this round's upload in the ledger */
};

/* secure.c */

/** Wipes and forgets everything but the site. */
void sherd__secure_leave(sherd__secure *s);
/** Returns whether f is a fragment in memory, dense, without groups, of this dtype. */
bool sherd__secure_dense(const sherd__fragment *f, uint8_t dtype);
/** Check the shape of a block, or of the task's result. Return SHERD_ESHAPE where it differs. */
int sherd__secure_check_block(const sherd__fragment *f, uint8_t dtype, uint64_t rows, uint64_t cols,
                              const char *what, sherd_diag *d) SHERD_MUST;
int sherd__secure_check_result(const sherd__task *t, uint8_t dtype, uint64_t rows, uint64_t cols,
                               sherd_diag *d) SHERD_MUST;

/** Returns whether the running task should stop. */
bool sherd__secure_stopped(void *secure);

/* One function for each operation. All run on the compute thread, except sherd__secure_admit_join;
 * see sherd__secure_run. */

int sherd__secure_admit_join(sherd__secure *s, const sherd__task *t, const sherd__block *left,
                             sherd_diag *d) SHERD_MUST;
int sherd__secure_run_join(sherd__secure *s, const sherd__task *t, uint8_t *out,
                           sherd_diag *d) SHERD_MUST;
int sherd__secure_run_roster(sherd__secure *s, const sherd__task *t, const sherd__fragment *right,
                             uint8_t *out, sherd_diag *d) SHERD_MUST;
int sherd__secure_run_seal(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                           uint8_t *out, sherd_diag *d) SHERD_MUST;
int sherd__secure_run_hide(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                           const sherd__fragment *right, uint8_t *out, sherd_diag *d) SHERD_MUST;
int sherd__secure_run_confirm(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                              uint8_t *out, sherd_diag *d) SHERD_MUST;
int sherd__secure_run_check(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                            const sherd__fragment *right, uint8_t *out, sherd_diag *d) SHERD_MUST;
int sherd__secure_run_open(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                           const sherd__fragment *right, uint8_t *out, sherd_diag *d) SHERD_MUST;

#endif
