/*
 * Training by gradients in processes that are peers (sherd/collective.h): an engine of the stepper
 * by gradients, and what peers agree on.
 */
#ifndef LEARN_COLLECTIVE_H
#define LEARN_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "learn/gradients.h"
#include "sherd/collective.h"

/** Copies `bytes` of process 0 to all processes. */
int sherd__collective_share(const sherd_collective *c, void *bytes, size_t len,
                            sherd_diag *d) SHERD_MUST;
/** Returns the first failure of all processes: err of the process of lowest rank that has one, or 0
 *  if no process has one. *who (may be NULL) is that process. If `sum` fails, its error is returned
 *  instead. */
int sherd__collective_agree(const sherd_collective *c, int err, uint32_t *who,
                            sherd_diag *d) SHERD_MUST;
/** As sherd__collective_agree, and copies *d of the failed process to all processes. */
int sherd__collective_tell(const sherd_collective *c, int err, sherd_diag *d) SHERD_MUST;
/**
 * Creates an engine for the synchronous stepper in fixed point; every process creates one. Each
 * process grades one part of every step with `inner`. The engine takes ownership of inner on
 * success and borrows *c. SHERD_ENOMEM.
 */
int sherd__gradients_among(sherd__gradient_engine *out, const sherd_collective *c,
                           sherd__gradient_engine inner, sherd_diag *d) SHERD_MUST;

#endif
