/*
 * Requests from the thread that owns a training to the cluster's loop, which runs it
 * (scheduler/cluster/caller.h): one request at a time, whether it has been answered, whether the
 * work is ready, and whether it must end. The loop never waits here. The other thread waits for the
 * work's `changed` callback and checks the flags.
 */
#ifndef SCHEDULER_CLUSTER_REQUEST_SLOT_H
#define SCHEDULER_CLUSTER_REQUEST_SLOT_H

#include <pthread.h>
#include <stdbool.h>

typedef struct sherd__request_slot {
    pthread_mutex_t lock; /* also protects what a work counts for the other thread */
    void *asked;          /* not taken yet; owned by the asker */
    bool answered, ready, finish;
} sherd__request_slot;

void sherd__request_slot_init(sherd__request_slot *m);
void sherd__request_slot_fini(sherd__request_slot *m);

/* Functions of the asking thread. */

/** Leaves a request. The loop takes it when it can. */
void sherd__request_slot_ask(sherd__request_slot *m, void *what);
bool sherd__request_slot_answered(sherd__request_slot *m);
bool sherd__request_slot_ready(sherd__request_slot *m);
/** No more requests will follow. */
void sherd__request_slot_finish(sherd__request_slot *m);

/* Functions of the loop thread. */

/** Returns the request that has not been taken, or NULL. */
void *sherd__request_slot_asked(sherd__request_slot *m);
/** Takes the request. */
void *sherd__request_slot_take(sherd__request_slot *m);
void sherd__request_slot_answer(sherd__request_slot *m);
/** The work accepts requests from now on. */
void sherd__request_slot_stands(sherd__request_slot *m);
bool sherd__request_slot_finishing(sherd__request_slot *m);

#endif
