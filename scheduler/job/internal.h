/* Declarations shared by the files of scheduler/job: the state machine (job.c) and its parts, and
 * the pieces of compute work (work.c). */
#ifndef SCHEDULER_JOB_INTERNAL_H
#define SCHEDULER_JOB_INTERNAL_H

#include "scheduler/job/job.h"

typedef enum cell_state { CELL_TODO, CELL_HIDING, CELL_SENT, CELL_JUDGING, CELL_DONE } cell_state;

typedef struct job_cell {
    uint8_t state;
    uint32_t node;     /* that works on it in state hiding, sent or judging */
    uint32_t given_up; /* 1 + the node whose task for it was given up; 0: none */
    uint32_t attempt;  /* of the current task; from a counter of the whole job, never 0 */
    float work;        /* multiplications of its task, in a unit of the whole job */
    uint64_t since_ms;
} job_cell;

typedef enum node_state { NODE_AWAY, NODE_UP, NODE_GONE } node_state;

/* See trial.c. attempt is 0 if there is no trial. */
typedef struct job_trial {
    uint32_t task, attempt; /* not cancelled although its answer is not needed */
    uint64_t out;           /* bytes that the session has sent once the task is sent */
    uint64_t since_ms;      /* when that was reached; 0: not yet */
} job_trial;

typedef struct job_node {
    sherd__session *session; /* if up; otherwise NULL */
    uint64_t session_number; /* of the session that `holds` refers to */
    node_state state;
    uint32_t domain;
    uint64_t back_until_ms; /* away: time after which it counts as lost; 0: not known yet */
    uint64_t progress_ms;   /* time of the last answer, or of the first task after an idle period */
    uint64_t heard_ms;      /* time of the last answer, needed or not, or of the session's start */
    uint64_t mute_ms;       /* time without answers in trials of earlier runs since then */
    job_trial trial;
    uint32_t under_way; /* number of its cells in state hiding, sent or judging */
    uint32_t sent;      /* of these, cells whose answers are outstanding */
    sherd__delivery *delivery;
    bool owing;                     /* as of owed_from_ms an answer is outstanding */
    uint64_t owed_from_ms, owed_ms; /* owed_ms: time in which it owed answers that came */
    uint64_t own;                   /* number of these answers, without those in place of others */
    uint64_t
        missed_ms; /* time in which it owed answers that did not come: it was lost, or relieved */
    uint64_t moved_at, moved; /* bytes of work of its session then; during owed_ms */
    double work; /* of its tasks that were accepted, without those in place of others */
    uint32_t depth;
    uint32_t refusals;     /* consecutive refusals when it had only one task at a time */
    uint32_t refused_upto; /* value of job.attempts when the last refusal was counted */
    bool convicted;
    bool relieved; /* it was too slow for a cell, which another node was given (relieve.c) */
    bool absent;   /* the log says already, without this job, that it takes no part */
    uint64_t accepted;
    uint8_t *holds; /* resident right blocks, by slot * tiles + tile */
    uint8_t *lefts; /* LEFT_* by slot and panel of all resident left blocks, or NULL */
} job_node;

/* Answers that have passed their check, by cell. Only the executor uses this while the job runs. */
typedef struct job_folding {
    sherd__fragment **held;
    uint8_t *ready;
    uint32_t *have; /* threshold: number of answers by position */
    uint64_t next;  /* ordered: next cell to fold */
    uint64_t folded;
} job_folding;

struct sherd__job {
    sherd__job_options o;
    sherd__hiding hiding;
    sherd__scheme_shape shape;
    uint64_t cells_len, cells_room;
    size_t holds_room;
    job_cell *cells;
    job_node *nodes;
    uint32_t *owner;     /* by slot: its node, or NOBODY */
    uint64_t *todo_from; /* by slot: no cell at a lower position is in state todo */
    uint8_t *dead;       /* threshold, one bit per domain: it is not given a share, nor asked for
                            its answer */
    job_folding folding;
    uint64_t folded;       /* as known to the loop thread */
    uint64_t fold_pos;     /* ordered, threshold: first position that is not folded */
    uint32_t *accepted_at; /* threshold: number of accepted answers by position */
    uint32_t attempts, blocks;
    uint32_t pieces;             /* pieces of work that the executor holds */
    sherd__delivery *deliveries; /* used if the owner provides none */
    sherd__delivery_peers peers; /* as computed in the last tick */
    double *medians;             /* scratch memory for these */
    uint64_t now_ms;             /* as of the last call that passed it */
    bool finishing, done, starved;
    uint32_t alive; /* starved: number of domains that could still answer at that time */
    int err;
    sherd_diag diag;
    sherd__job_stats stats;
    char last_refusal[SHERD__TEXT_MAX];
    bool no_memory; /* that refusal: the node had no memory */
};

#define NOBODY UINT32_MAX

/* Changes the state of a cell that a node has, and updates the count of answers that the node
 * owes. */
static inline void job_cell_becomes(sherd__job *j, job_cell *c, cell_state state)
{
    job_node *n = &j->nodes[c->node];
    if (state == CELL_SENT) n->sent++;
    if (c->state == CELL_SENT) n->sent--;
    c->state = (uint8_t)state;
}

enum { LEFT_NONE, LEFT_HELD, LEFT_MAKING }; /* MAKING: a piece of work on the executor makes it */

static inline sherd__cell job_cell_at(const sherd__job *j, uint64_t ordinal)
{
    uint64_t pos = ordinal / j->shape.slots;
    return (sherd__cell){ (uint32_t)(ordinal % j->shape.slots), (uint32_t)(pos / j->shape.panels),
                          (uint32_t)(pos % j->shape.panels) };
}

static inline uint64_t job_ordinal(const sherd__job *j, uint32_t slot, uint64_t pos)
{
    return pos * j->shape.slots + slot;
}

static inline uint64_t job_positions(const sherd__job *j)
{
    return j->cells_len / j->shape.slots;
}

static inline size_t job_dead_bytes(const sherd__job *j)
{
    return ((size_t)j->shape.slots + 7) / 8;
}

static inline bool job_dead(const sherd__job *j, uint32_t domain)
{
    if (!j->shape.threshold) return false;
    return domain >= j->shape.slots || j->dead[domain / 8] >> domain % 8 & 1;
}

/* Threshold: returns whether this position has enough answers. */
static inline bool job_closed(const sherd__job *j, uint64_t pos)
{
    return j->shape.threshold && j->accepted_at[pos] >= j->shape.threshold;
}

static inline uint32_t job_lefts(const sherd__job *j)
{
    uint32_t lefts = j->shape.lefts ? j->shape.lefts : j->shape.panels;
    return j->shape.left_stays ? j->shape.slots * lefts : 0;
}

static inline size_t job_left_at(const sherd__job *j, sherd__cell c)
{
    uint32_t lefts = j->shape.lefts ? j->shape.lefts : j->shape.panels;
    return (size_t)c.slot * lefts + j->shape.left_from + c.panel;
}

/* late.c, for nodes that are up. owes: to be called after the node's cells have changed; answered:
 * before they change; excused: a task of the node is no longer needed. */
void sherd__job_excused(sherd__job *j, uint32_t node);
void sherd__job_owes(sherd__job *j, uint32_t node, uint64_t now_ms);
/* others: the task was one of another node, which was lost or relieved. */
void sherd__job_answered(sherd__job *j, uint32_t node, bool others, uint64_t now_ms);
/* The answers of a node that is away were not needed: until now it was not waited for. */
void sherd__job_unneeded(sherd__job *j, uint32_t node);
/* The answers that the node owes are no longer waited for: it is lost, returns after its session
 * ended, or is relieved of a task. */
void sherd__job_awaited(job_node *n, uint64_t now_ms);
/** Expels the nodes that are past their deadline. */
void sherd__job_late(sherd__job *j, uint64_t now_ms);

/* job.c. stop: fails the job with this error unless it is done. say: writes a log line. name:
 * returns the name of a node for messages. */
void sherd__job_stop(sherd__job *j, int err, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void sherd__job_say(const sherd__job *j, sherd_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const char *sherd__job_name(const sherd__job *j, uint32_t node);

/* owners.c */
uint64_t sherd__job_first_todo(sherd__job *j, uint32_t slot);
/** Assigns an owner to each slot. Returns false if a slot has no node. */
bool sherd__job_owners_init(sherd__job *j);
void sherd__job_reassign(sherd__job *j, uint32_t slot);
/** Finds owners for slots that have lost theirs. Fails the job if the work cannot be done. */
void sherd__job_adopt(sherd__job *j);

/* trial.c; threshold only. begin: starts a trial if one is needed, and returns whether the task
 * must be left to run instead of being cancelled. heard: the node has answered. failed: returns
 * whether the node has had enough time. rest: the run is over. forget: the node has a new session
 * or none. */
bool sherd__job_trial_begin(sherd__job *j, uint64_t ordinal);
void sherd__job_trial_heard(sherd__job *j, job_node *n, uint32_t attempt);
bool sherd__job_trial_failed(const sherd__job *j, job_node *n, double wait_max_ms);
void sherd__job_trial_rest(sherd__job *j, job_node *n);
void sherd__job_trial_forget(sherd__job *j, job_node *n);

/* relieve.c: takes a cell back from a slow node for a node that has nothing to do, and returns it;
 * cells_len: none. */
uint64_t sherd__job_relieve(sherd__job *j, uint32_t idle);
/** Returns whether an idle node should be given this cell of another one's slot: not if a panel of
 *  A would have to be sent to it for work that its owner will soon have done. */
bool sherd__job_may_help(const sherd__job *j, uint32_t node, uint64_t ordinal);

/* send.c */
void sherd__job_cell_done(sherd__job *j, uint64_t ordinal);
void sherd__job_back(sherd__job *j, uint64_t ordinal);
void sherd__job_close_position(sherd__job *j, uint64_t pos);
void sherd__job_block_refused(sherd__job *j, job_node *n, uint32_t block);
void sherd__job_drop_rights(sherd__job *j, uint32_t node);
int sherd__job_send(sherd__job *j, uint64_t ordinal, sherd__cell_work *work);
/** To be called when the piece that makes the cell's left block for the node has finished. */
void sherd__job_left_back(sherd__job *j, uint32_t node, uint64_t ordinal);
void sherd__job_dispatch(sherd__job *j, uint64_t now_ms);

/* work.c: start a piece of work on the executor. On failure nothing is started. left: also make the
 * resident block of the left operand. */
int sherd__job_hide(sherd__job *j, uint64_t ordinal, bool left);
int sherd__job_judge(sherd__job *j, uint64_t ordinal, sherd__fragment *answer);
int sherd__job_finish(sherd__job *j);

/* job.c: to be called when a piece of work has finished. The callee takes the fragments of
 * `work`. */
void sherd__job_hidden(sherd__job *j, uint64_t ordinal, uint32_t attempt, int err,
                       sherd__cell_work *work);
void sherd__job_judged(sherd__job *j, uint64_t ordinal, uint32_t attempt, int err);
void sherd__job_finished(sherd__job *j, int err);
void sherd__job_folded(sherd__job *j, uint64_t folded, uint64_t next);

#endif
