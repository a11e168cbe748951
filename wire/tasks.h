/*
 * Table of the open tasks between two peers, found by (job, task, attempt) in constant time, and
 * listed by job. The coordinator stores its requests until they are answered, and the node stores
 * the requests until it answers them. An answer without an entry in the table was not requested.
 */
#ifndef WIRE_TASKS_H
#define WIRE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/grouped.h"
#include "wire/session.h"

#define SHERD__TASKS_MAX (1u << 17) /* maximum number of open tasks of one session */

typedef struct sherd__open_task {
    sherd__grouped_item item; /* must be the first member */
    sherd__task task;
    uint64_t sequence; /* position of its TASK record in the sender's queue */
    bool cancelled;
} sherd__open_task;

/** Zero-initialise; set key and budget as described in core/grouped.h. */
typedef struct sherd__tasks {
    sherd__grouped table;
} sherd__tasks;

void sherd__tasks_fini(sherd__tasks *t);
/** Frees up to `most` entries of a table that is no longer used. Returns how many it freed. */
size_t sherd__tasks_reap(sherd__tasks *t, size_t most);
/** Adds a task. Errors: SHERD_EINVAL if it is in the table already; SHERD_EBUSY if the table has
 *  SHERD__TASKS_MAX tasks; SHERD_ENOMEM if there is no memory or no room in the budget. */
int sherd__tasks_add(sherd__tasks *t, const sherd__task *task, uint64_t sequence) SHERD_MUST;
sherd__open_task *sherd__tasks_find(const sherd__tasks *t, uint64_t job, uint32_t task,
                                    uint32_t attempt);
/** Removes and frees an entry that find, first, next or given_up returned. */
void sherd__tasks_remove(sherd__tasks *t, sherd__open_task *open);

/** Iterate over the tasks of a job; return NULL after the last one. */
sherd__open_task *sherd__tasks_first(const sherd__tasks *t, uint64_t job);
sherd__open_task *sherd__tasks_next(const sherd__open_task *open);
/** Hides the tasks of a job, so that find and first no longer return them. given_up returns them
 *  one at a time; the caller removes each. */
void sherd__tasks_give_up(sherd__tasks *t, uint64_t job);
sherd__open_task *sherd__tasks_given_up(const sherd__tasks *t);

#endif
