/*
 * A member of a circle (docs/PROTOCOL.md, "Circles"): a node that trains with others and adds up
 * with them, without sending its sums through the coordinator. It is a client's: the coordinator
 * names the members and says when a round begins; blocks come from members over sessions of their
 * own, in which they are coordinators and this node is the node.
 *
 *   MEET -> CONNECT -> STEP and REDUCE -> STEP and REDUCE ... ; STATE between them, WHERE any time
 *
 * Tasks wait until they can be done: STEP, MEET and STATE for what was asked before, CONNECT for
 * links, REDUCE for the blocks of others. What waits ends with the coordinator's CANCEL, or with a
 * link: nothing here has a clock.
 *
 * Who is believed: the coordinator, for who belongs to the circle (with --peers each must be in
 * that file too); members, for the values of their blocks, which nobody can check, and for nothing
 * else. A member that sends anything but the block of a step that is its to send is cut off.
 *
 * The loop's thread makes all calls but sherd__allreduce_run, which the compute thread makes
 * between SHERD__ALLREDUCE_GO and sherd__allreduce_done; one at a time.
 */
#ifndef NODE_ALLREDUCE_ALLREDUCE_H
#define NODE_ALLREDUCE_ALLREDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "node/later.h"
#include "node/pool.h"
#include "node/store.h"
#include "sherd/err.h"
#include "wire/identity.h"
#include "wire/session.h"

typedef struct sherd__allreduce sherd__allreduce;

/** Links to members. link_up or link_down follows on open, not from inside it. */
typedef struct sherd__allreduce_links {
    /** Connects to this member and no other, as a coordinator with the node's own key. */
    int (*open)(void *ctx, void **link, sherd__allreduce *c, uint32_t member,
                const sherd__peer *peer);
    /** The link's session has something to send. */
    void (*flush)(void *ctx, void *link);
    /** Nothing is told of it any more. */
    void (*close)(void *ctx, void *link);
    void *ctx;
} sherd__allreduce_links;

typedef struct sherd__allreduce_site {
    const sherd_identity *identity; /* NULL: it takes no part */
    const sherd__peers *peers;      /* with whom it may meet; NULL: whom the coordinator names */
    sherd__allreduce_links links;
    /** Whether this key is a coordinator's here: such a one is not let in as a member. */
    bool (*coordinator)(void *ctx, const sherd__fingerprint *key);
    void *coordinator_ctx;
    /** Whether another coordinator's circle has this name here: places of blocks go by name. */
    bool (*taken)(void *ctx, uint64_t name);
    void *taken_ctx;
    sherd__pool *pool;
    sherd__later later;  /* of what is as large as its network */
    sherd__store *store; /* tells the circle of blocks that leave it */
    bool turns;          /* what is long goes on in the loop's next turn */
} sherd__allreduce_site;

/** Whether this operation is one of these. */
bool sherd__allreduce_op(uint32_t op);
int sherd__allreduce_new(sherd__allreduce **out, const sherd__allreduce_site *site) SHERD_MUST;
/** Closes its links. Not between GO and done. NULL is allowed. */
void sherd__allreduce_free(sherd__allreduce *c);
/** Whether it holds blocks that it needs no more: of packs that were dropped, or of before. */
bool sherd__allreduce_to_reap(const sherd__allreduce *c);
/** Lets go of those of some `most` packs; how many. */
size_t sherd__allreduce_reap(sherd__allreduce *c, size_t most);

/** Whether a task of these makes sense, with its blocks. SHERD_EUNSUPPORTED, SHERD_EINVAL. */
int sherd__allreduce_admit(sherd__allreduce *c, const sherd__task *t, const sherd__block *left,
                           const sherd__block *right, sherd_diag *d) SHERD_MUST;

typedef enum sherd__allreduce_turn {
    SHERD__ALLREDUCE_WAIT,
    SHERD__ALLREDUCE_GO,  /* to be run, then done */
    SHERD__ALLREDUCE_NOW, /* to be run here and now, by the loop's thread; never done */
    SHERD__ALLREDUCE_REFUSE
} sherd__allreduce_turn;

/** What is to become of a task that was admitted; REFUSE: the reason is in *d, whose code says
 *  which. To be asked again whenever something was done, and after every call below that may have
 *  moved it. */
sherd__allreduce_turn sherd__allreduce_ready(sherd__allreduce *c, const sherd__task *t,
                                             const sherd__block *left, const sherd__block *right,
                                             sherd_diag *d);
/** It goes on in a later turn of the loop: by this call, before tasks are asked for. */
bool sherd__allreduce_wants_turn(const sherd__allreduce *c);
void sherd__allreduce_go_on(sherd__allreduce *c);
/** Before tasks are asked for in their order. */
void sherd__allreduce_begin_turn(sherd__allreduce *c);
/**
 * Does it; out has t->result.len bytes. SHERD_EBUSY: a sum beyond its scale; SHERD_EINVAL,
 * SHERD_EFORMAT, SHERD_ESHAPE: what makes no sense; SHERD_ERANGE, SHERD_ENOMEM.
 */
int sherd__allreduce_run(sherd__allreduce *c, const sherd__task *t, const sherd__fragment *left,
                         const sherd__fragment *right, uint8_t *out, sherd_diag *d) SHERD_MUST;
/** It was run, with this result, or will not be (wanted false: its answer goes nowhere). */
void sherd__allreduce_done(sherd__allreduce *c, const sherd__task *t, int err, bool wanted);
/** The coordinator wants nothing any more of what waits: a round that is open ends here. */
void sherd__allreduce_cancel(sherd__allreduce *c, uint64_t job);
/** The job, or with 0 whatever it is, is over: closes links, and forgets all now or when what runs
 *  is done. */
void sherd__allreduce_forget(sherd__allreduce *c, uint64_t job);

/* ---- members ------------------------------------------------------------------------------- */

void sherd__allreduce_link_up(sherd__allreduce *c, uint32_t member, sherd__session *s);
/** It never came up, or is lost. The link is closed by whoever calls. */
void sherd__allreduce_link_down(sherd__allreduce *c, uint32_t member, int err, const char *why);

/** It has no use for a block that it was sent. */
void sherd__allreduce_link_refused(sherd__allreduce *c, uint32_t member, const sherd__refusal *r);

/** Its name, from MEET on; or 0. */
uint64_t sherd__allreduce_name(const sherd__allreduce *c);
/** The circle that somebody with this key may connect for, or 0. */
uint64_t sherd__allreduce_knows(const sherd__allreduce *c, const sherd__fingerprint *key);
/** A connection of theirs, for this circle, is over. */
void sherd__allreduce_lost(sherd__allreduce *c, const sherd__fingerprint *key, uint64_t id);
/** Whether this is a block that this member may send: `id` is the circle's. Bytes for its body, or
 *  NULL. */
uint8_t *sherd__allreduce_place(sherd__allreduce *c, const sherd__fingerprint *key, uint64_t id,
                                uint32_t number, uint64_t len);
/** Such a block; takes f. SHERD_EUNASKED: it is none. */
int sherd__allreduce_block_in(sherd__allreduce *c, const sherd__fingerprint *key, uint64_t id,
                              uint32_t number, sherd__fragment *f) SHERD_MUST;

#endif
