/*
 * Gradients on a node (docs/PROTOCOL.md, "Gradients"). A plan names a recipe, shards of examples
 * and scales; tasks that name this plan, one for each tier, ask for the sums of gradients under the
 * parameters that come with them. The tasks of one plan are a round: one pass over its shards, or
 * several beside each other where devices compute the products (learn/passes.h). It starts when the
 * parameters of the lowest tier have arrived. Its results are sent tier by tier from the top while
 * the layers below are still being computed. All data are in clear on the
 * node.
 *
 * The loop's thread makes all calls except sherd__round_run, which the compute thread makes between
 * sherd__round_begin and sherd__round_end (or the loop's thread).
 */
#ifndef NODE_GRADIENT_H
#define NODE_GRADIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/team.h"
#include "learn/arithmetic.h"
#include "node/later.h"
#include "node/pool.h"
#include "node/store.h"
#include "sherd/err.h"
#include "wire/session.h"

/** A round with a lower estimate than this runs on the loop's thread, at once. */
#define SHERD__ROUND_INLINE_US 300.0
/** How long a pass waits for parameters that have not arrived. After this it lets other tasks
 *  compute, and it restarts when the parameters are there. */
#define SHERD__ROUND_WAIT_MS 1000

/** Rounds that a client may have open. CANCEL and task records look rounds up by walking them. */
#define SHERD__ROUNDS_MAX 256u

typedef struct sherd__round sherd__round;

/** State shared by all rounds of a client. Zero-initialise, then set the members above `models`. */
typedef struct sherd__gradient_site {
    sherd__pool *pool;
    sherd__later later; /* ends networks that were computed with */
    sherd__store *store;
    sherd__arithmetic by; /* of passes */
    uint32_t passes;      /* beside each other; 0: one. There are fewer where their networks would
                                take more than a quarter of the budget */
    sherd__team *team;    /* of as many threads; NULL: for one pass */
    double gflops;        /* rate of this node in float64 */
    void (*wake)(void *ctx); /* called from the compute thread when a tier is computed; NULL: a pass
                                starts only when all parameters are there */
    void *wake_ctx;
    double (*clock)(void); /* seconds, for the times in results; NULL: these are 0 */
    struct sherd__model *models;
    sherd__round *rounds;
} sherd__gradient_site;

/** Frees the networks that no round uses: those of one job, or with job 0 those of all jobs. */
void sherd__gradient_forget(sherd__gradient_site *site, uint64_t job);
/** Frees all rounds and networks; no round may be between begin and end. */
void sherd__gradient_fini(sherd__gradient_site *site);

/**
 * Handles a task of this operation: opens its round or joins it. On success *out is that round.
 *
 * Errors: SHERD_EINVAL where a block is missing or the tier was asked for already; SHERD_EFORMAT
 * where the plan or recipe is malformed; SHERD_ESHAPE where sizes disagree; SHERD_ENOMEM beyond the
 * node's budget. The caller then refuses the task.
 */
int sherd__round_task(sherd__gradient_site *site, const sherd__task *t, sherd__round **out,
                      sherd_diag *d) SHERD_MUST;
/** Returns whether the round can be queued: true once, and once more after each pass that gave up
 *  waiting for parameters. */
bool sherd__round_startable(sherd__round *r);
double sherd__round_us(const sherd__round *r);

void sherd__round_begin(sherd__round *r);
void sherd__round_run(sherd__round *r);
/**
 * Ends a pass. Returns false if it gave up waiting for parameters: it is started again once
 * sherd__round_startable returns true. Returns true if it is finished: tasks that sherd__round_next
 * does not return are then refused, also those that arrive later, with the code and text of
 * sherd__round_failure.
 */
bool sherd__round_end(sherd__round *r);

/** Returns in *what the task of a tier that is computed and not yet answered, and in *bytes its
 *  result, from the pool; the caller owns the bytes now. Top tiers come first. Returns false where
 *  there is no such tier at the moment. */
bool sherd__round_next(sherd__round *r, sherd__task *what, uint8_t **bytes);
/** Records that the results of sherd__round_next were passed to the connection. */
void sherd__round_left(sherd__round *r);
/** After a failure: returns in *what a task of the round that is to be refused. */
bool sherd__round_refused(sherd__round *r, sherd__task *what);
int sherd__round_failure(const sherd__round *r, const char **text);
/** Closes the round if every tier was answered or refused, and makes the drops that its tasks and
 *  plan asked for. Returns false where the round stays open, also between begin and end. */
bool sherd__round_close(sherd__round *r);

/** Cancels one attempt of a task, or with task 0 all tasks of the job, for which the session has
 *  already answered. Returns the number of cancelled tasks. Rounds without a remaining task are
 *  then gone: the caller takes them out of the queue and closes them. */
uint32_t sherd__round_cancel(sherd__gradient_site *site, uint64_t job, uint32_t task,
                             uint32_t attempt);
/** Takes an open task of the job's rounds out of its round, for the caller to refuse. Returns false
 *  where none is left. */
bool sherd__round_withdraw(sherd__gradient_site *site, uint64_t job, sherd__task *what);
/** Marks rounds of a job without remaining tasks as gone: the caller does the same as after
 *  sherd__round_cancel. */
void sherd__round_sweep(sherd__gradient_site *site, uint64_t job);
bool sherd__round_gone(const sherd__round *r);
/** Returns the client's next round; the first one after NULL. */
sherd__round *sherd__round_after(const sherd__gradient_site *site, const sherd__round *r);
/** Takes a round that sherd__round_startable marked as queued out of the queue. sherd__round_fail
 *  does the same and makes the round fail. */
void sherd__round_unqueue(sherd__round *r);
void sherd__round_fail(sherd__round *r, int err, const char *why);
/** Marks the round as gone: its results are not needed, and its pass ends soon. */
void sherd__round_abandon(sherd__round *r);

#endif
