/* Internals of the task loop, for worker.c (tasks, events), worker_turns.c (keys and their turns),
 * worker_reap.c (memory, and records that are freed in slices), worker_rounds.c (rounds of
 * gradients), node/allreduce/worker.c (sums among nodes) and worker_stream.c (results that are made
 * as they are sent). No other file includes this. */
#ifndef NODE_WORKER_STATE_H
#define NODE_WORKER_STATE_H

#include <stdatomic.h>
#include <stddef.h>

#include "node/account.h"
#include "node/allreduce/allreduce.h"
#include "node/devices.h"
#include "node/gradient.h"
#include "node/products.h"
#include "node/secure/secure.h"
#include "node/store.h"
#include "node/worker.h"

#define RUNNING_LEAST 2u /* one runs, one waits for the compute thread to take next */
#define RUNNING_MAX 64u
#define ENDINGS_MOST 512u /* that wait for the compute thread, which has room for twice as many */
#define ASIDE_MAX 256u    /* all-reduce tasks that a client may have waiting */
#define TURN_US 2000.0    /* estimated work on the loop's thread before other events are handled */
#define TURN_LEAD_US 1e6  /* lead that a key's tasks may have over those of a waiting key */
#define STIRRED_TURN 4u   /* stirred clients handled in a turn, each of another key */
#define REAP_TURN 1024u   /* records that are freed in a turn */
#define REAP_AT_ONCE 512u /* by CANCELs and DROPs in a turn; the next turn frees the rest */
#define WIPE_TURN (4u << 20) /* bytes that are wiped in a turn */
#define REAP_RELIEF 16384u   /* in a turn, to make room: of the key; of other keys */

typedef struct task {
    sherd__executor_item work; /* must be first: the executor hands it back */
    sherd__call call;          /* of a device */
    sherd__device_state *on;   /* the device of a call in progress; or NULL */
    bool waiting;              /* started, until a device has room */
    bool cramped;              /* a device had no memory for it together with other calls */
    uint32_t failures;         /* of devices */
    sherd__grouped_item item;  /* in its client's table, while `listed` */
    struct task *prev, *next;  /* in the queue, or in the list of tasks set aside */
    struct task *next_round;   /* next round in the queue */
    bool listed, aside, queued;
    sherd__client *client;
    sherd__round *round; /* a pass over gradients, which uses nothing below; or NULL */
    sherd__task what;
    sherd__block *left, *right;
    uint8_t *out;
    uint64_t reserved; /* in the pool; 0 once out is allocated */
    bool secure;       /* of secure aggregation */
    bool allreduce;    /* of an all-reduce group */
    bool group_waits;  /* an all-reduce task: the group waits for its end */
    bool cancelled, answered;
    atomic_bool stop;  /* tells the compute thread that the result is not needed */
    double charged_us; /* charged to its client's key when it started: an estimate */
    double took_us;    /* time on the compute thread, by opt.clock */
    int err;
    char text[SHERD__TEXT_MAX];
} task;

/* The holder of a key: all its sessions share one part of the budget and one turn. It lasts as long
 * as the worker: sessions and unsent results refer to its pool, and the allow-list bounds how many
 * holders there are. */
typedef struct tenant {
    sherd__account account;   /* must be first: the list of all accounts holds these */
    sherd__lending lending;   /* for forms of its blocks */
    sherd__client *last;      /* ring of its clients with queued tasks: as w->last */
    double used_us;           /* time that its tasks took (worker_turns.c) */
    size_t relieved;          /* its records freed in this turn to make room for it */
    uint64_t went;            /* the last turn in which a group of it continued */
    struct tenant *turn_next; /* ring of tenants with queued tasks; NULL: not in it */
} tenant;

struct sherd__client {
    sherd__worker *worker;
    tenant *tenant;
    sherd__pool *pool;        /* that of the tenant */
    sherd__products products; /* of its passes; and the owner of its blocks on devices */
    sherd__session *session;  /* NULL before the first event and after the last */
    void *tag;
    sherd__store store;
    sherd__gradient_site site;
    sherd__secure *secure;       /* NULL: not used yet */
    sherd__allreduce *allreduce; /* NULL: not used yet */
    task *aside;                 /* all-reduce tasks that cannot run yet */
    uint32_t aside_len;
    bool moving;
    bool stirred;                /* some of them may run now: a turn of the loop checks them */
    sherd__client *stirred_next; /* next stirred client */
    uint32_t asked;              /* tasks of rounds that are not answered */
    sherd__grouped tasks;        /* accepted and not started, by name */
    task *head, *last;           /* the queue */
    task *rounds;                /* of these, rounds */
    uint32_t running;            /* tasks with the executor */
    bool closed;
    sherd__session *over;       /* the session of a closed client, until it is freed; or NULL */
    sherd__client *turn_next;   /* ring of the tenant's with queued tasks; or NULL */
    sherd__client *prev, *next; /* all clients */
};

struct sherd__worker {
    char lost[SHERD__TEXT_MAX]; /* why the last device was lost during a task */
    sherd__worker_options opt;
    sherd__pool *pool;
    sherd__worker_stats stats;
    sherd__client *clients;
    sherd__client *stirred, *stirred_last; /* list of stirred clients, in order of arrival */
    uint64_t went;                         /* turns in which stirred clients continued */
    sherd__account *accounts;              /* of all tenants */
    tenant *last;          /* tenant of the last turn; its turn_next has the next one */
    sherd__client *inside; /* its event is being handled: its link flushes after it */
    sherd__devices devices;
    sherd__team *team;           /* of passes that compute beside each other; NULL: one */
    task *running[RUNNING_MAX];  /* started and not answered */
    uint32_t running_len, depth; /* depth: the limit of running_len */
    task *alone;                 /* found no memory: runs while no other call does; or NULL */
    bool pumping;
    double served_us;       /* least used_us in the ring when a task was last taken */
    struct ending *endings; /* with the compute thread */
    uint32_t endings_len;
    size_t reaped, relieved; /* records freed since the last turn: by CANCEL or DROP; to make room
                                for other keys */
    double turn_us;          /* estimated work on the loop's thread since the last turn */
};

/* worker.c */

/** Passes a refusal of a task to its client's session. */
void sherd__worker_refuse(sherd__client *c, const sherd__task *t, int code, const char *text);
/** Sends queued results and refusals, unless the session is handling an event. */
void sherd__worker_flush(sherd__worker *w, sherd__client *c);
/** Counts a result that is passed to its session. */
void sherd__worker_count(sherd__worker *w, const sherd__task *t);
/** Frees a task and releases all that it holds. */
void sherd__worker_release(task *t);
/** Gives a task to the compute thread or a device, which then writes t->err. */
int sherd__worker_submit(sherd__worker *w, task *t) SHERD_MUST;
void sherd__worker_run(task *t);
/** Runs one turn of the loop: frees a slice, and starts the tasks that can start. */
void sherd__worker_turn(sherd__worker *w);
/** Starts the tasks that can start. */
void sherd__worker_pump(sherd__worker *w);

/* worker_turns.c */

/** Returns the tenant of this key and sets its memory limit to `memory` bytes; for key NULL,
 *  returns a new one. NULL where there is no memory for it. */
tenant *sherd__worker_tenant(sherd__worker *w, const sherd__fingerprint *key, uint64_t memory);
void sherd__worker_free_tenants(sherd__worker *w);
/** Enters the client into the turns, where it stays while it has queued tasks. */
void sherd__worker_enter(sherd__worker *w, sherd__client *c);
void sherd__worker_leave_turns(sherd__worker *w, sherd__client *c);
/** Appends a task to the client's queue. */
void sherd__worker_queue(sherd__client *c, task *t);
/** Takes a task out of the queue or the list of tasks set aside, and out of the table. */
void sherd__worker_take_out(sherd__client *c, task *t);
/** Frees the tasks of rounds in the queue: those of rounds that are gone, or all. */
void sherd__worker_drop_rounds(sherd__client *c, bool all);
/** Adds the time that a task of the client took. */
void sherd__worker_charge(sherd__client *c, double us);
/** Takes the oldest task of the next client in turn out of its queue. Returns NULL where all queues
 *  are empty. */
task *sherd__worker_next(sherd__worker *w);

/** Runs and answers a task at once that was never queued. */
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
/** Frees some of the dropped records, and clients that are over. The rest is freed in the next
 *  turns of the loop, if it has turns. */
void sherd__worker_reap(sherd__worker *w);
/** Frees some of the records that this client dropped, up to a limit for all in a turn. */
void sherd__worker_reap_now(sherd__client *c);
/** Frees dropped records at once: first those of this pool's key, otherwise those of other keys.
 *  Returns true where it freed any. */
bool sherd__worker_relieve(void *worker, const sherd__pool *asks);
/** Frees a closed client of which nothing is left. */
void sherd__worker_over(sherd__client *c);
/** Returns the interface by which the compute thread ends objects that this client's key has
 *  reserved; without turns they are ended at once. */
sherd__later sherd__worker_later(sherd__client *c);
/** Updates whether the pool has a sole client. A client counts until the compute thread has
 *  released its last task. */
void sherd__worker_count_clients(sherd__worker *w);

/* worker_rounds.c */

void sherd__worker_gradient(sherd__client *c, const sherd__event *e);
void sherd__worker_start_round(sherd__worker *w, task *t);
void sherd__worker_round_done(task *t);
/** Closes the rounds that are gone. They must not be in a queue. */
void sherd__worker_close_gone(sherd__client *c);
/** Ends the rounds of a job, refuses their open tasks, and frees its networks, after its blocks
 *  were dropped. */
void sherd__worker_forget(sherd__client *c, uint64_t job);

/* node/allreduce/worker.c */

/** Checks an all-reduce task against these blocks. */
int sherd__worker_allreduce(sherd__client *c, const sherd__task *what, const sherd__block *left,
                            const sherd__block *right, sherd_diag *d) SHERD_MUST;
/** Sets a task aside. Returns SHERD_ENOMEM at ASIDE_MAX; the caller then still owns t. */
int sherd__worker_set_aside(sherd__client *c, task *t) SHERD_MUST;
/** Queues or refuses the tasks set aside that need not wait any longer. */
void sherd__worker_move(sherd__client *c);
/** Requests the same in a turn of the loop, where the client's group continues with work that is
 *  spread over turns; without turns, after the current event. */
void sherd__worker_stir(sherd__client *c);
/** Does this now for stirred clients: one of each key in a turn, and a limited number of keys. */
void sherd__worker_continue(sherd__worker *w);
/** Removes a client that is being freed from the stirred ones. */
void sherd__worker_calm(sherd__client *c);
/** Ends an all-reduce task that is being released. */
void sherd__worker_allreduce_over(task *t);

/* worker_stream.c */

/** Returns true if the backend streams this task, which is then answered or refused. */
bool sherd__worker_stream(task *t);

#endif
