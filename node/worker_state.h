/* Inside of the task loop, for worker.c (tasks, events), worker_turns.c (keys and their turns),
 * worker_reap.c (memory, and what is freed in slices), worker_rounds.c (rounds of gradients),
 * node/allreduce/worker.c (sums among nodes) and worker_stream.c (results that are made as they are
 * sent). No other file includes this. */
#ifndef NODE_WORKER_STATE_H
#define NODE_WORKER_STATE_H

#include <stdatomic.h>
#include <stddef.h>

#include "node/account.h"
#include "node/allreduce/allreduce.h"
#include "node/devices.h"
#include "node/gradient.h"
#include "node/secure/secure.h"
#include "node/store.h"
#include "node/worker.h"

#define RUNNING_LEAST 2u /* one runs, one is there for the compute thread to go on with */
#define RUNNING_MAX 64u
#define FAILURES_MAX 2u   /* of a device, after which a task is given another attempt */
#define ENDINGS_MOST 512u /* that wait for the compute thread, which has room for twice as many */
#define ASIDE_MAX 256u    /* tasks of a circle that a client may have waiting */
#define TURN_US 2000.0    /* estimated work on the loop's thread before others have their turn */
#define TURN_LEAD_US 1e6  /* that a key's tasks may have taken more than those of one that waits */
#define STIRRED_TURN 4u   /* circles that go on in a turn, each of another key */
#define REAP_TURN 1024u   /* records that are freed in a turn */
#define REAP_AT_ONCE 512u /* by CANCELs and DROPs in a turn, before the next one frees the rest */
#define WIPE_TURN (4u << 20) /* bytes that are wiped in a turn */
#define REAP_RELIEF 16384u   /* in a turn, where memory is wanted: keys' for themselves; others' */

typedef struct task {
    sherd__executor_item work; /* first: the executor hands it back */
    sherd__call call;          /* of a device */
    sherd__device_state *on;   /* where a call of it is under way; or NULL */
    bool waiting;              /* started, until a device has room */
    bool cramped;              /* a device had no memory for it beside others */
    uint32_t failures;         /* of devices */
    sherd__grouped_item item;  /* of its client's table, while `listed` */
    struct task *prev, *next;  /* in the queue, or of those set aside */
    struct task *next_round;   /* of rounds in the queue */
    bool listed, aside, queued;
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
    atomic_bool stop;  /* to the compute thread: its result is not needed */
    double charged_us; /* to its client's key, when it was started: estimated */
    double took_us;    /* the compute thread, by opt.clock */
    int err;
    char text[SHERD__TEXT_MAX];
} task;

/* The holder of a key: all sessions of it share one part of the budget and one turn. It stays as
 * long as the worker: sessions and answers under way point to its pool, and the allow-list bounds
 * how many there are. */
typedef struct tenant {
    sherd__account account;   /* first: the list of all has these */
    sherd__client *last;      /* ring of its clients with queued tasks: as w->last */
    double used_us;           /* that its tasks took (worker_turns.c) */
    size_t relieved;          /* its records that were freed since the turn, for its room */
    uint64_t went;            /* the last turn in which a circle of it went on */
    struct tenant *turn_next; /* ring of tenants with queued tasks; NULL: not in it */
} tenant;

struct sherd__client {
    sherd__worker *worker;
    tenant *tenant;
    sherd__pool *pool;       /* the tenant's */
    uint64_t owner;          /* of its blocks on devices */
    sherd__session *session; /* NULL before the first event and after the last */
    void *tag;
    sherd__store store;
    sherd__gradient_site site;
    sherd__secure *secure;    /* NULL: never asked for */
    sherd__allreduce *circle; /* likewise */
    task *aside;              /* tasks of it that cannot be done yet */
    uint32_t aside_len;
    bool moving;
    bool stirred;                /* some of them may go on: a turn of the loop sees to it */
    sherd__client *stirred_next; /* then: who is seen to after it */
    uint32_t asked;              /* tasks of rounds that are not answered */
    sherd__grouped tasks;        /* accepted and not started, by name */
    task *head, *last;           /* the queue */
    task *rounds;                /* of these, rounds */
    uint32_t running;            /* with the executor */
    bool closed;
    sherd__session *over;       /* the session of a closed one, until it is freed; or NULL */
    sherd__client *turn_next;   /* ring of the tenant's with queued tasks; NULL: not in it */
    sherd__client *prev, *next; /* all clients */
};

struct sherd__worker {
    sherd__worker_options opt;
    sherd__pool *pool;
    sherd__worker_stats stats;
    sherd__client *clients;
    sherd__client *stirred, *stirred_last; /* in the order in which they were */
    uint64_t went;                         /* turns in which these went on */
    sherd__account *accounts;              /* of all tenants */
    tenant *last;          /* whose turn was last; its turn_next is the next one's */
    sherd__client *inside; /* whose event is being handled: its link flushes after it */
    sherd__devices devices;
    task *running[RUNNING_MAX];  /* started and not answered */
    uint32_t running_len, depth; /* depth: how many may be */
    task *alone;                 /* found no memory: runs while no other call does; or NULL */
    bool pumping;
    double served_us;       /* the least used_us of those in the ring, when last served */
    struct ending *endings; /* with the compute thread */
    uint32_t endings_len;
    size_t reaped, relieved; /* records freed since its turn: by CANCEL or DROP; for
                                        room of other keys */
    double turn_us;          /* estimated, of work on the loop's thread since its turn */
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
/** The loop's next turn: frees a slice, and starts what can be. */
void sherd__worker_turn(sherd__worker *w);
/** Starts what can be. */
void sherd__worker_pump(sherd__worker *w);

/* worker_turns.c */

/** The holder of the key, with `memory` bytes from now on; of key NULL, a new one. NULL where there
 *  is no memory for one. */
tenant *sherd__worker_tenant(sherd__worker *w, const sherd__fingerprint *key, uint64_t memory);
void sherd__worker_free_tenants(sherd__worker *w);
/** The client's turn comes round as long as it has queued tasks. */
void sherd__worker_enter(sherd__worker *w, sherd__client *c);
void sherd__worker_leave_turns(sherd__worker *w, sherd__client *c);
/** Appends to the client's queue. */
void sherd__worker_queue(sherd__client *c, task *t);
/** Takes a task out of the queue, or of those set aside, and of the client's table. */
void sherd__worker_take_out(sherd__client *c, task *t);
/** Frees rounds' tasks in the queue: those of rounds that are gone, or all. */
void sherd__worker_drop_rounds(sherd__client *c, bool all);
/** A task of the client took so long. */
void sherd__worker_charge(sherd__client *c, double us);
/** Takes the oldest task of the client whose turn it is out of its queue; NULL: all are empty. */
task *sherd__worker_next(sherd__worker *w);

/** Runs and answers it here, though it was never queued. */
void sherd__worker_answer_now(task *t);

/* worker_reap.c */

static inline task *sherd__worker_task_of(sherd__grouped_item *it)
{
    return (task *)(void *)((char *)it - offsetof(task, item));
}

static inline task *sherd__worker_task_of_call(sherd__call *c)
{
    return (task *)(void *)((char *)c - offsetof(task, call));
}

bool sherd__worker_to_reap(const sherd__client *c);
/** Frees some of what was given up, and clients that are over; with the rest it goes on in the next
 *  turn of the loop, if there is one. */
void sherd__worker_reap(sherd__worker *w);
/** Frees some of what this client gave up, unless records of this turn have freed much. */
void sherd__worker_reap_now(sherd__client *c);
/** What is on its way out goes at once: what this pool's key gave up, or else others. True where
 *  something did. */
bool sherd__worker_relieve(void *worker, const sherd__pool *asks);
/** Frees a closed client of which nothing is left. */
void sherd__worker_over(sherd__client *c);
/** Ends that the compute thread makes, of what this client's key has reserved; without turns they
 *  are made at once. */
sherd__later sherd__worker_later(sherd__client *c);
/** A client counts until the compute thread has let go of its last task, too. */
void sherd__worker_count_clients(sherd__worker *w);

/* worker_rounds.c */

void sherd__worker_gradient(sherd__client *c, const sherd__event *e);
void sherd__worker_start_round(sherd__worker *w, task *t);
void sherd__worker_round_done(task *t);
/** Rounds of which nobody wants anything; they are in no queue any more. */
void sherd__worker_close_gone(sherd__client *c);
/** The job's blocks are gone: so are rounds that nobody waits for, and networks. */
void sherd__worker_forget(sherd__client *c, uint64_t job);

/* node/allreduce/worker.c */

/** Whether a task of a circle makes sense over these blocks. */
int sherd__worker_allreduce(sherd__client *c, const sherd__task *what, const sherd__block *left,
                            const sherd__block *right, sherd_diag *d) SHERD_MUST;
/** SHERD_ENOMEM where as many are there as may be; t is then the caller's. */
int sherd__worker_set_aside(sherd__client *c, task *t) SHERD_MUST;
/** Queues, or refuses, what stands aside and need not any more. */
void sherd__worker_move(sherd__client *c);
/** The same in a turn of the loop, where its circle goes on with what it does some at a turn;
 *  without turns, behind the event at hand. */
void sherd__worker_stir(sherd__client *c);
/** The same now for clients that were stirred: one of a key at a turn, and some keys. */
void sherd__worker_go_on(sherd__worker *w);
/** It is freed: nothing goes on. */
void sherd__worker_calm(sherd__client *c);
/** A task of a circle is let go of. */
void sherd__worker_allreduce_over(task *t);

/* worker_stream.c */

/** True if the backend streams this task: it is answered then, one way or the other. */
bool sherd__worker_stream(task *t);

#endif
