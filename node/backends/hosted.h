/*
 * The common part of all backends that compute in the host's memory: a handle names the fragment,
 * nothing is copied, and calls run on the compute thread of their executor, one after another.
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

#endif
