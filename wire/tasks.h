/*
 * The tasks that are open between two peers, found by (job, task, attempt) in constant time, and
 * listed by job. The coordinator keeps what it asked for until it is answered; the node what it was
 * asked until it answers: an answer that is not in the table was not asked for.
 */
#ifndef WIRE_TASKS_H
#define WIRE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/grouped.h"
#include "wire/session.h"

#define SHERD__TASKS_MAX (1u << 17) /* open at a time on one session */

typedef struct sherd__open_task {
    sherd__grouped_item item; /* first */
    sherd__task task;
    uint64_t sequence; /* place of its TASK record in the sender's queue */
    bool cancelled;
} sherd__open_task;

/** Zero-initialise; key and budget as core/grouped.h says. */
typedef struct sherd__tasks {
    sherd__grouped table;
} sherd__tasks;

void sherd__tasks_fini(sherd__tasks *t);
/** Frees up to `most` of a table of which nothing is wanted any more; how many they were. */
size_t sherd__tasks_reap(sherd__tasks *t, size_t most);
/** SHERD_EINVAL if it is there already, SHERD_EBUSY at SHERD__TASKS_MAX, SHERD_ENOMEM: no memory,
 *  or no room in the budget. */
int sherd__tasks_add(sherd__tasks *t, const sherd__task *task, uint64_t sequence) SHERD_MUST;
sherd__open_task *sherd__tasks_find(const sherd__tasks *t, uint64_t job, uint32_t task,
                                    uint32_t attempt);
/** Takes out and frees what find, first, next or given_up gave. */
void sherd__tasks_remove(sherd__tasks *t, sherd__open_task *open);

/** Those of a job, one after another; NULL behind the last. */
sherd__open_task *sherd__tasks_first(const sherd__tasks *t, uint64_t job);
sherd__open_task *sherd__tasks_next(const sherd__open_task *open);
/** From now on no task of the job is found; each is to be removed, as given_up gives them. */
void sherd__tasks_give_up(sherd__tasks *t, uint64_t job);
sherd__open_task *sherd__tasks_given_up(const sherd__tasks *t);

#endif
