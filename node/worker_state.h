/* Inside of the task loop, for worker.c (tasks, turns, events), worker_rounds.c (rounds of
 * gradients), worker_circle.c (sums among nodes) and worker_stream.c (results that are made as they
 * are sent). Nobody else includes this. */
#ifndef NODE_WORKER_STATE_H
#define NODE_WORKER_STATE_H

#include "node/circle.h"
#include "node/gradient.h"
#include "node/secure.h"
#include "node/store.h"
#include "node/worker.h"

#define RUNNING_MAX 2u

typedef struct task {
    sherd_work work; /* first: the executor hands it back */
    struct task *next;
    sherd__client *client;
    sherd__round *round; /* a pass over gradients, and nothing below counts; else NULL */
    sherd__task what;
    sherd__block *left, *right;
    uint8_t *out;
    uint64_t reserved; /* in the pool; 0 once out is there */
    bool secure;       /* of secure aggregation */
    bool circle;       /* of a circle */
    bool begun;        /* and the circle waits for its end */
    bool cancelled, answered;
    int err;
    char text[SHERD__TEXT_MAX];
} task;

struct sherd__client {
    sherd__worker *worker;
    sherd_session *session; /* NULL before the first event and after the last */
    void *tag;
    sherd__store store;
    sherd__gradient_site site;
    sherd__secure *secure;           /* NULL: never asked for */
    sherd__circle *circle;           /* likewise */
    task *aside;                     /* tasks of it that cannot be done yet */
    bool moving;
    uint32_t asked;                  /* tasks of rounds that are not answered */
    task *head, **tail;
    uint32_t running;                /* with the executor */
    bool closed;
    sherd__client *turn_next;        /* ring of clients with queued tasks; NULL: not in it */
    sherd__client *prev, *next;      /* all clients */
};

struct sherd__worker {
    sherd__worker_options opt;
    sherd__pool *pool;
    sherd__worker_stats stats;
    sherd__client *clients;
    sherd__client *last;             /* whose turn was last; its turn_next is the next one's */
    sherd__client *inside;           /* whose event is being handled: its link flushes after it */
    task *running[RUNNING_MAX];
    uint32_t running_len;
    bool pumping;
};

/* worker.c */

/** Hands a refusal of a task to its client's session. */
void sherd__worker_refuse(sherd__client *c, const sherd__task *t, int code, const char *text);
/** Sends what has been answered, unless the client's session is being pumped right now. */
void sherd__worker_flush(sherd__worker *w, sherd__client *c);
/** Counts a result that is handed over. */
void sherd__worker_count(sherd__worker *w, const sherd__task *t);
/** Lets go of a task and all that it holds. */
void sherd__worker_release(task *t);
/** Gives a task to the compute thread. On success t->err is its to write. */
int sherd__worker_submit(sherd__worker *w, task *t) SHERD_MUST;
void sherd__worker_run(task *t);
/** Starts what can be. */
void sherd__worker_pump(sherd__worker *w);

/* worker_turns.c */

/** The client's turn comes round as long as it has queued tasks. */
void sherd__worker_enter(sherd__worker *w, sherd__client *c);
void sherd__worker_leave_turns(sherd__worker *w, sherd__client *c);
/** Appends to the client's queue. */
void sherd__worker_queue(sherd__client *c, task *t);
/** The end of the client's queue has moved: something was taken out of it. */
void sherd__worker_requeued(sherd__client *c);
/** Takes the oldest task of the client whose turn it is out of its queue; NULL: all are empty. */
task *sherd__worker_next(sherd__worker *w);

/** Runs and answers it here, though it was never queued. */
void sherd__worker_answer_now(task *t);

/* worker_rounds.c */

void sherd__worker_gradient(sherd__client *c, const sherd__event *e);
void sherd__worker_start_round(sherd__worker *w, task *t);
void sherd__worker_round_done(task *t);
/** Rounds of which nobody wants anything; they are in no queue any more. */
void sherd__worker_close_gone(sherd__client *c);
/** The job's blocks are gone: so are rounds that nobody waits for, and networks. */
void sherd__worker_forget(sherd__client *c, uint64_t job);

/* worker_circle.c */

/** Whether a task of a circle makes sense over these blocks. */
int sherd__worker_circle(sherd__client *c, const sherd__task *what, const sherd__block *left,
                         const sherd__block *right, sherd_diag *d) SHERD_MUST;
void sherd__worker_set_aside(sherd__client *c, task *t);
/** Queues, or refuses, what stands aside and need not any more. */
void sherd__worker_move(sherd__client *c);
/** A task of a circle is let go of. */
void sherd__worker_circle_over(task *t);
/** Those that a CANCEL concerns; with NULL all. */
void sherd__worker_drop_aside(sherd__client *c, const sherd__event *e);

/* worker_stream.c */

/** True if the backend streams this task: it is answered then, one way or the other. */
bool sherd__worker_stream(task *t);

#endif
