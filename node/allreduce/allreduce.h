/*
 * A member of an all-reduce group (docs/PROTOCOL.md, "All-reduce groups"): a node that trains with
 * others and adds up sums with them, without sending them through the coordinator. It belongs to a
 * client. The coordinator names the members and tells them when a round starts. Blocks come from
 * other members over their own sessions, in which they have the coordinator's role and this node
 * has the node's.
 *
 *   MEET -> CONNECT -> STEP and REDUCE -> STEP and REDUCE ... ; STATE between them, WHERE any time
 *
 * Tasks wait until they can run: STEP, MEET and STATE for earlier tasks, CONNECT for links, REDUCE
 * for the blocks of other members. A waiting task ends with the coordinator's CANCEL or with the
 * loss of a link: there are no timeouts here.
 *
 * The coordinator is trusted for the list of members (with --peers each must be in that file too).
 * Members are trusted for the values of their blocks, which cannot be checked, and for nothing
 * else. A member that sends anything but the block of a step that it has to send is disconnected.
 *
 * The loop's thread makes all calls except sherd__allreduce_run, which the compute thread makes
 * between SHERD__ALLREDUCE_GO and sherd__allreduce_done, one at a time.
 */
#ifndef NODE_ALLREDUCE_ALLREDUCE_H
#define NODE_ALLREDUCE_ALLREDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/team.h"
#include "learn/arithmetic.h"
#include "node/later.h"
#include "node/pool.h"
#include "node/store.h"
#include "sherd/err.h"
#include "wire/identity.h"
#include "wire/session.h"

typedef struct sherd__allreduce sherd__allreduce;

/** Links to members. After open, link_up or link_down is called, but not from within open. */
typedef struct sherd__allreduce_links {
    /** Connects to this member only, in the role of a coordinator and with the node's own key. */
    int (*open)(void *ctx, void **link, sherd__allreduce *c, uint32_t member,
                const sherd__peer *peer);
    /** Called when the link's session has something to send. */
    void (*flush)(void *ctx, void *link);
    /** Closes the link. No function is called for it afterwards. */
    void (*close)(void *ctx, void *link);
    void *ctx;
} sherd__allreduce_links;

typedef struct sherd__allreduce_site {
    const sherd_identity *identity; /* NULL: the node takes no part in groups */
    const sherd__peers *peers;      /* allowed members; NULL: those that the coordinator names */
    sherd__allreduce_links links;
    /** Returns whether this key is a coordinator's on this node. Coordinators' keys are not
     *  accepted as members. */
    bool (*coordinator)(void *ctx, const sherd__fingerprint *key);
    void *coordinator_ctx;
    /** Returns whether another coordinator's group on this node has this name, which identifies
     *  blocks of members. */
    bool (*taken)(void *ctx, uint64_t name);
    void *taken_ctx;
    sherd__pool *pool;
    sherd__later later;   /* for objects as large as the network */
    sherd__store *store;  /* calls back when blocks leave it */
    sherd__arithmetic by; /* of gradients */
    uint32_t passes;      /* beside each other, as in sherd__gradient_site; at least 1 */
    sherd__team *team;    /* of as many threads; NULL: for one pass */
    bool turns;           /* long work continues in the loop's next turn */
} sherd__allreduce_site;

/** Returns whether this operation belongs to all-reduce. */
bool sherd__allreduce_op(uint32_t op);
int sherd__allreduce_new(sherd__allreduce **out, const sherd__allreduce_site *site) SHERD_MUST;
/** Frees the member and closes its links, but not between GO and done. NULL is allowed. */
void sherd__allreduce_free(sherd__allreduce *c);
/** Returns whether it holds blocks of dropped packs or of an earlier training. */
bool sherd__allreduce_to_reap(const sherd__allreduce *c);
/** Releases these blocks, of about `most` packs. Returns how many packs. */
size_t sherd__allreduce_reap(sherd__allreduce *c, size_t most);

/** Checks an all-reduce task and its blocks. Returns SHERD_EUNSUPPORTED or SHERD_EINVAL. */
int sherd__allreduce_admit(sherd__allreduce *c, const sherd__task *t, const sherd__block *left,
                           const sherd__block *right, sherd_diag *d) SHERD_MUST;

typedef enum sherd__allreduce_turn {
    SHERD__ALLREDUCE_WAIT,
    SHERD__ALLREDUCE_GO,  /* run it, then call done */
    SHERD__ALLREDUCE_NOW, /* run it at once on the loop's thread, without done */
    SHERD__ALLREDUCE_REFUSE
} sherd__allreduce_turn;

/** Decides what to do with an admitted task. For REFUSE, *d has the code and the reason. To be
 *  called again after each task, and after every call below that may change the answer. */
sherd__allreduce_turn sherd__allreduce_ready(sherd__allreduce *c, const sherd__task *t,
                                             const sherd__block *left, const sherd__block *right,
                                             sherd_diag *d);
/** Returns whether work continues in a later turn of the loop: there the caller calls
 *  sherd__allreduce_continue before it asks for tasks. */
bool sherd__allreduce_wants_turn(const sherd__allreduce *c);
void sherd__allreduce_continue(sherd__allreduce *c);
/** To be called before tasks are asked for in their order. */
void sherd__allreduce_begin_turn(sherd__allreduce *c);
/**
 * Runs a task; out has t->result.len bytes.
 *
 * Errors: SHERD_EBUSY where a sum exceeds its scale; SHERD_EINVAL, SHERD_EFORMAT and SHERD_ESHAPE
 * where the task's data are invalid; SHERD_ERANGE, SHERD_ENOMEM.
 */
int sherd__allreduce_run(sherd__allreduce *c, const sherd__task *t, const sherd__fragment *left,
                         const sherd__fragment *right, uint8_t *out, sherd_diag *d) SHERD_MUST;
/** Ends a task, which was run with this result or will not be run. wanted is false where its result
 *  is not sent. */
void sherd__allreduce_done(sherd__allreduce *c, const sherd__task *t, int err, bool wanted);
/** Cancels the waiting tasks of the job: an open round ends. */
void sherd__allreduce_cancel(sherd__allreduce *c, uint64_t job);
/** Ends the job, or with 0 any job: closes links, and frees everything, now or when the running
 *  task is done. */
void sherd__allreduce_forget(sherd__allreduce *c, uint64_t job);

/* ---- members ------------------------------------------------------------------------------- */

void sherd__allreduce_link_up(sherd__allreduce *c, uint32_t member, sherd__session *s);
/** Handles a link that could not be opened, or was lost. The caller closes the link. */
void sherd__allreduce_link_down(sherd__allreduce *c, uint32_t member, int err, const char *why);

/** Handles a member's refusal of a block that was sent to it. */
void sherd__allreduce_link_refused(sherd__allreduce *c, uint32_t member, const sherd__refusal *r);

/** Returns the group's name, which is set by MEET; or 0. */
uint64_t sherd__allreduce_name(const sherd__allreduce *c);
/** Returns the id of the group that the holder of this key may connect for, or 0. */
uint64_t sherd__allreduce_knows(const sherd__allreduce *c, const sherd__fingerprint *key);
/** Handles the end of a member's connection for this group. */
void sherd__allreduce_lost(sherd__allreduce *c, const sherd__fingerprint *key, uint64_t id);
/** Allocates the body of a block if this member may send it now: `id` is the group's. Otherwise
 *  returns NULL. */
uint8_t *sherd__allreduce_place(sherd__allreduce *c, const sherd__fingerprint *key, uint64_t id,
                                uint32_t number, uint64_t len);
/** Handles this block; takes f. Returns SHERD_EUNASKED where the member may not send it. */
int sherd__allreduce_block_in(sherd__allreduce *c, const sherd__fingerprint *key, uint64_t id,
                              uint32_t number, sherd__fragment *f) SHERD_MUST;

#endif
