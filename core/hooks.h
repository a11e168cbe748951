/* The hooks of one long call (sherd/hooks.h), called as often as they promise. */
#ifndef CORE_HOOKS_H
#define CORE_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/hooks.h"

typedef struct sherd__hooked {
    sherd_hooks hooks;
    double began, reported; /* sherd__clock_s; reported: time of the last report of progress */
} sherd__hooked;

/** One of the calls that a long call consists of. */
typedef struct sherd__hooked_part {
    sherd__hooked *all;
    uint64_t before, share, total; /* progress of the long call: before this part, of this part, and
                                      of all parts */
} sherd__hooked_part;

/** Begins a call; all hooks may be NULL. */
sherd__hooked sherd__hooks_begin(const sherd_hooks *hooks);
/** Returns true if any hook is set. */
bool sherd__hooks_any(const sherd_hooks *hooks);
/** Returns true if the caller wants the call to end. */
bool sherd__hooks_interrupted(const sherd_hooks *hooks);
/** Returns SHERD_EINTERRUPTED, with the message `what`, if the caller wants the call to end. */
int sherd__hooks_check(const sherd_hooks *hooks, const char *what, sherd_diag *d) SHERD_MUST;
/** Returns whether it is time to report progress. last: all is done. */
bool sherd__hooks_due(const sherd__hooked *h, bool last);
/** Reports progress if it is time to. p->seconds is set here. */
void sherd__hooks_progress(sherd__hooked *h, sherd_progress p);
/** Reports progress if it is time to, or if all is done, and returns SHERD_EINTERRUPTED, with *d
 *  filled, if the caller wants the call to end. */
int sherd__hooks_step(sherd__hooked *h, uint64_t done, uint64_t total, sherd_diag *d) SHERD_MUST;
/** Returns the hooks of a part, which call those of the long call. *part must outlive them. */
sherd_hooks sherd__hooks_part(sherd__hooked_part *part);

#endif
