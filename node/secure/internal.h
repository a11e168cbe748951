/* What the parts of a node's side of secure aggregation share: its life (secure.c), who takes part
 * (join.c) and rounds (secure_round.c). No other file includes this. */
#ifndef NODE_SECURE_INTERNAL_H
#define NODE_SECURE_INTERNAL_H

#include "crypto/aggregate.h"
#include "learn/secure.h"
#include "node/secure/secure.h"

struct sherd__secure {
    sherd__secure_site site;
    uint32_t admitted;       /* tasks that are not done */
    const atomic_bool *stop; /* of the task that runs */
    uint64_t forget;         /* job to be forgotten then; 0: none */
    uint64_t reserved;
    /* since JOIN */
    uint64_t job; /* 0: none */
    sherd__secure_plan plan;
    sherd__recipe recipe;
    sherd__block *x, *targets; /* dealt; NULL: its own */
    bool joined;
    sherd__own_grader *grader;
    sherd__own dealt;
    double budget;       /* rho of the policy's epsilon and delta */
    size_t tiers, count; /* count: parameters */
    sherd__aggregate a;
    sherd__seal_key key;
    uint8_t card[SHERD__SECURE_CARD];
    uint8_t training[SHERD__ABOUT]; /* what is trained: the recipe, and of the plan what is the same
                                       for all */
    /* since ROSTER */
    sherd__aggregate_member *member;
    uint8_t (*signers)[32];       /* public key of each member */
    int64_t *sum;                 /* what is hidden, and then what is sent, a.len numbers */
    int64_t *noise;               /* of this round, a.len numbers; NULL: none */
    uint8_t roster[SHERD__ABOUT]; /* what is trained, with whom */
    uint8_t about[SHERD__ABOUT];  /* what this round was said to be about */
    uint8_t bound[SHERD__ABOUT];  /* that, among the members that this node knows: what is sealed
                                       and signed in it */
    uint64_t round;
    bool hidden, checked, opened;  /* asked for in this round */
    bool whole;                    /* all pieces of the survivors have been received */
    bool given;                    /* its upload of this round was computed */
    uint8_t charged[SHERD__ABOUT]; /* under what the upload of this round is in the ledger */
};

/* secure.c */

/** Forgets everything but where it is; wipes. */
void sherd__secure_leave(sherd__secure *s);
/** A fragment in memory, dense, without groups, of this dtype. */
bool sherd__secure_dense(const sherd__fragment *f, uint8_t dtype);
/** SHERD_ESHAPE where the block, or the task's result, is another one. */
int sherd__secure_check_block(const sherd__fragment *f, uint8_t dtype, uint64_t rows, uint64_t cols,
                              const char *what, sherd_diag *d) SHERD_MUST;
int sherd__secure_check_result(const sherd__task *t, uint8_t dtype, uint64_t rows, uint64_t cols,
                               sherd_diag *d) SHERD_MUST;

/** Whether the task that runs is to end. */
bool sherd__secure_stopped(void *secure);

/* One task each, on the compute thread but for sherd__secure_admit_join; see sherd__secure_run. */

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
