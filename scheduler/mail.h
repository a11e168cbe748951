/*
 * Between the thread that has a training and the cluster's loop, which makes it
 * (scheduler/caller.h): one question at a time, whether it has been answered, whether the work
 * stands, and that it is to end. The loop never waits here; the other thread waits for the work's
 * `changed` and looks.
 */
#ifndef SCHEDULER_MAIL_H
#define SCHEDULER_MAIL_H

#include <pthread.h>
#include <stdbool.h>

typedef struct sherd__mail {
    pthread_mutex_t lock; /* also of what a work counts for the other thread */
    void *asked;          /* not taken yet; its asker's */
    bool answered, ready, finish;
} sherd__mail;

void sherd__mail_init(sherd__mail *m);
void sherd__mail_fini(sherd__mail *m);

/* The asker's side. */

/** The loop takes it when it can. */
void sherd__mail_ask(sherd__mail *m, void *what);
bool sherd__mail_answered(sherd__mail *m);
bool sherd__mail_ready(sherd__mail *m);
/** Nothing more will be asked. */
void sherd__mail_finish(sherd__mail *m);

/* The loop's side. */

/** The question that has not been taken, or NULL. */
void *sherd__mail_asked(sherd__mail *m);
/** Takes it. */
void *sherd__mail_take(sherd__mail *m);
void sherd__mail_answer(sherd__mail *m);
/** Questions may come. */
void sherd__mail_stands(sherd__mail *m);
bool sherd__mail_finishing(sherd__mail *m);

#endif
