/*
 * The common part of all backends that compute in the host's memory: a handle names the fragment,
 * nothing is copied, and calls run on the compute thread of their executor, one after another.
 *
 * A block that is used by several calls can be kept in the form that the arithmetic needs, beside
 * the fragment: numbers as float64, residues sorted into tiles. Such a form is made by the second
 * call that wishes for it, in memory that the host lends, and is given back when the handle is
 * dropped. It is made at most once. Where there is no memory, calls compute from the fragment.
 */
#ifndef NODE_BACKENDS_HOSTED_H
#define NODE_BACKENDS_HOSTED_H

#include "node/backend.h"

/* hold, drop and cancel of sherd__backend. */
int sherd__hosted_hold(void *ctx, uint32_t device, const sherd__fragment *f, uint64_t owner,
                       sherd__handle *out, sherd_diag *d);
void sherd__hosted_drop(void *ctx, const sherd__handle *h);
void sherd__hosted_cancel(void *ctx, sherd__call *c);
/** submit of sherd__backend, for a backend that computes with `compute` and its ctx. */
int sherd__hosted_submit(void *ctx, sherd__compute *compute, sherd__call *c,
                         sherd_diag *d) SHERD_MUST;
/** multiplier of sherd__backend: sherd_multiplier_local. */
int sherd__hosted_multiplier(void *ctx, unsigned bits, sherd_multiplier *out, sherd_diag *d);

/* ---- derived forms of blocks ----------------------------------------------------------------- */

/** Forms of one block with equal keys are the same. Zeroed before its members are set. */
typedef struct sherd__form_key {
    uint32_t kind; /* the backend's number */
    uint32_t primes_len, primes[SHERD__PRIMES_MAX];
} sherd__form_key;

/** A form that a call could use. len 0: none. */
typedef struct sherd__form_wish {
    sherd__form_key key;
    uint64_t len;
} sherd__form_wish;

/** Sets the wishes of a task for its left and its right block (which may be NULL); both are zeroed
 *  before. `compute` checks the task before it makes or uses a form. */
typedef void sherd__wishing(const sherd__task *t, const sherd__fragment *left,
                            const sherd__fragment *right, sherd__form_wish wish[2]);

/** As sherd__hosted_submit, for a backend that keeps forms. */
int sherd__hosted_submit_wishing(void *ctx, sherd__compute *compute, sherd__wishing *wishing,
                                 sherd__call *c, sherd_diag *d) SHERD_MUST;

typedef struct sherd__form sherd__form;

/** Forms that a block may have; further ones are not kept. */
#define SHERD__FORMS_MAX 4u

/** For `compute`: returns the form for a call's left (0) or right block (1), or NULL. */
sherd__form *sherd__hosted_form(const sherd__call *c, int side);
/** Returns what the form was wished for as. */
const sherd__form_wish *sherd__form_what(const sherd__form *f);
/** Returns the bytes of a finished form; NULL where it is not finished. */
const uint8_t *sherd__form_bytes(const sherd__form *f);
/** Returns the memory of a form that the caller has to make: only one call gets it. NULL where
 *  another call has made it, is making it, or could not. */
uint8_t *sherd__form_begin(sherd__form *f);
/** Ends that. err: SHERD_OK, SHERD_EINTERRUPTED (another call may begin again), or an error, after
 *  which no call makes the form. */
void sherd__form_end(sherd__form *f, int err);

#endif
