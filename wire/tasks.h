/*
 * The tasks that are open between two peers, found by (job, task, attempt) in constant time. The
 * coordinator keeps what it asked for until it is answered; the node what it was asked until it
 * answers: an answer that is not in the table was not asked for.
 */
#ifndef WIRE_TASKS_H
#define WIRE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/session.h"

#define SHERD__TASKS_MAX (1u << 17) /* open at a time on one session */

typedef struct sherd__open_task {
    sherd__task task;
    uint64_t sequence; /* place of its TASK record in the sender's queue */
    bool used, cancelled;
} sherd__open_task;

/** Open addressing, linear probing; zero-initialise. Pointers into it last until it changes. */
typedef struct sherd__tasks {
    sherd__open_task *slots; /* cap of them, a power of two */
    size_t len, cap;
} sherd__tasks;

void sherd__tasks_fini(sherd__tasks *t);
/** SHERD_EINVAL if it is there already, SHERD_EBUSY at SHERD__TASKS_MAX, SHERD_ENOMEM. */
int sherd__tasks_add(sherd__tasks *t, const sherd__task *task, uint64_t sequence) SHERD_MUST;
sherd__open_task *sherd__tasks_find(const sherd__tasks *t, uint64_t job, uint32_t task,
                                    uint32_t attempt);
/** Takes out what find gave. */
void sherd__tasks_remove(sherd__tasks *t, sherd__open_task *open);

#endif
