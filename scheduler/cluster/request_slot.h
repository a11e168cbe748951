/*
 * Between the thread that has a training and the cluster's loop, which makes it
 * (scheduler/cluster/caller.h): one question at a time, whether it has been answered, whether the
 * work stands, and that it is to end. The loop never waits here; the other thread waits for the
 * work's `changed` and looks.
 */
#ifndef SCHEDULER_CLUSTER_REQUEST_SLOT_H
#define SCHEDULER_CLUSTER_REQUEST_SLOT_H

#include <pthread.h>
#include <stdbool.h>

typedef struct sherd__request_slot {
    pthread_mutex_t lock; /* also of what a work counts for the other thread */
    void *asked;          /* not taken yet; its asker's */
    bool answered, ready, finish;
} sherd__request_slot;

void sherd__request_slot_init(sherd__request_slot *m);
void sherd__request_slot_fini(sherd__request_slot *m);

/* The asker's side. */

/** The loop takes it when it can. */
void sherd__request_slot_ask(sherd__request_slot *m, void *what);
bool sherd__request_slot_answered(sherd__request_slot *m);
bool sherd__request_slot_ready(sherd__request_slot *m);
/** Nothing more will be asked. */
void sherd__request_slot_finish(sherd__request_slot *m);

/* The loop's side. */

/** The question that has not been taken, or NULL. */
void *sherd__request_slot_asked(sherd__request_slot *m);
/** Takes it. */
void *sherd__request_slot_take(sherd__request_slot *m);
void sherd__request_slot_answer(sherd__request_slot *m);
/** Questions may come. */
void sherd__request_slot_stands(sherd__request_slot *m);
bool sherd__request_slot_finishing(sherd__request_slot *m);

#endif
