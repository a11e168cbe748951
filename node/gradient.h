/*
 * Gradients on a node (docs/PROTOCOL.md, "Gradients"): a plan names a recipe, shards of examples
 * and scales; tasks that name this plan, one for each tier, ask for the sums of gradients under the
 * parameters that come with them. The tasks of one plan are a round: one pass over its shards,
 * begun when the parameters of the lowest tier are there, answered tier by tier from the top while
 * the layers below are still being computed. All of it is in clear here.
 *
 * The loop's thread makes all calls but sherd__round_run, which the compute thread makes between
 * sherd__round_begin and sherd__round_end (or the loop's thread itself).
 */
#ifndef NODE_GRADIENT_H
#define NODE_GRADIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "node/later.h"
#include "node/pool.h"
#include "node/store.h"
#include "sherd/err.h"
#include "wire/session.h"

/** A round estimated to take less than this runs on the loop's thread, at once. */
#define SHERD__ROUND_INLINE_US 300.0
/** How long a pass waits for parameters that are on their way, before it lets others compute and is
 *  begun anew when they are there. */
#define SHERD__ROUND_WAIT_MS 1000

/** Rounds that a client may have open: what it cancels or asks for is looked up among them. */
#define SHERD__ROUNDS_MAX 256u

typedef struct sherd__round sherd__round;

/** What all rounds of a client share. Zero-initialise and fill in what is above models. */
typedef struct sherd__gradient_site {
    sherd__pool *pool;
    sherd__later later; /* of networks that were computed with */
    sherd__store *store;
    double gflops;           /* of this node, f64 */
    void (*wake)(void *ctx); /* from the compute thread: a tier is computed. NULL: passes begin
                                    when all parameters are there */
    void *wake_ctx;
    double (*clock)(void); /* seconds, for the times in answers; NULL: they are 0 */
    struct sherd__model *models;
    sherd__round *rounds;
} sherd__gradient_site;

/** Frees what no round uses: of one job, or with job 0 of all. */
void sherd__gradient_forget(sherd__gradient_site *site, uint64_t job);
/** Gives up all rounds and frees everything; none may be between begin and end. */
void sherd__gradient_fini(sherd__gradient_site *site);

/**
 * A task of this operation: opens its round or joins it. After success *out is that round.
 * SHERD_EINVAL: a block that is not here, a tier that was asked for already; SHERD_EFORMAT: a plan
 * or recipe that is none; SHERD_ESHAPE: what does not fit each other; SHERD_ENOMEM: beyond the
 * node's budget; the task is then to be refused.
 */
int sherd__round_task(sherd__gradient_site *site, const sherd__task *t, sherd__round **out,
                      sherd_diag *d) SHERD_MUST;
/** Whether it waits for nothing but its turn: true once, then again after a pass that gave up
 *  waiting for parameters. */
bool sherd__round_startable(sherd__round *r);
double sherd__round_us(const sherd__round *r);

void sherd__round_begin(sherd__round *r);
void sherd__round_run(sherd__round *r);
/**
 * The pass is over. False: it gave up waiting, and is to be begun again when startable. True: what
 * next does not give any more is to be refused, also tasks that are still to come, with the code
 * and text of sherd__round_failure.
 */
bool sherd__round_end(sherd__round *r);

/** A tier that is computed and not answered: its task, and its bytes, which are the pool's and now
 *  the caller's. False: none at the moment. Top tiers first. */
bool sherd__round_next(sherd__round *r, sherd__task *what, uint8_t **bytes);
/** What next gave has been handed to the connection. */
void sherd__round_left(sherd__round *r);
/** After a failure: a task of it that is to be refused. */
bool sherd__round_refused(sherd__round *r, sherd__task *what);
int sherd__round_failure(const sherd__round *r, const char **text);
/** Every tier was answered or refused: closes it, with the drops that its tasks and plan asked for.
 *  False: not yet, or between begin and end. */
bool sherd__round_close(sherd__round *r);

/** A task is not wanted any more, or with task 0 the whole job; its session has answered it.
 *  Returns how many that were. Rounds of which nothing is wanted are gone then: out of the queue,
 *  if they are in it, and to be closed. */
uint32_t sherd__round_cancel(sherd__gradient_site *site, uint64_t job, uint32_t task,
                             uint32_t attempt);
/** The last part of that alone, for a job whose blocks are dropped. */
void sherd__round_sweep(sherd__gradient_site *site, uint64_t job);
bool sherd__round_gone(const sherd__round *r);
/** The client's rounds, one after another; the first one after NULL. */
sherd__round *sherd__round_after(const sherd__gradient_site *site, const sherd__round *r);
/** What startable put into the queue is taken out of it; fail: and cannot be computed. */
void sherd__round_unqueue(sherd__round *r);
void sherd__round_fail(sherd__round *r, int err, const char *why);
/** Nobody waits for its answers; its pass ends soon. */
void sherd__round_abandon(sherd__round *r);

#endif
