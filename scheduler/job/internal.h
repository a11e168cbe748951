/* What the state machine (job.c) and the pieces of compute work (work.c) share. */
#ifndef SCHEDULER_JOB_INTERNAL_H
#define SCHEDULER_JOB_INTERNAL_H

#include "scheduler/job/job.h"

typedef enum cell_state { CELL_TODO, CELL_HIDING, CELL_SENT, CELL_JUDGING, CELL_DONE } cell_state;

typedef struct job_cell {
    uint8_t state;
    uint32_t node;    /* who has it, while hiding, sent or judging */
    uint32_t attempt; /* of the task under way; job-wide counter, never 0 */
    uint64_t since_ms;
} job_cell;

typedef enum node_state { NODE_AWAY, NODE_UP, NODE_GONE } node_state;

/* trial.c; attempt 0: none. */
typedef struct job_trial {
    uint32_t task, attempt; /* left to run though its answer is not needed */
    uint64_t out;           /* bytes that the session has sent when the task has left */
    uint64_t since_ms;      /* when it had; 0: it has not */
} job_trial;

typedef struct job_node {
    sherd__session *session; /* while up */
    uint64_t session_number; /* of the session that `holds` is about */
    node_state state;
    uint32_t domain;
    uint64_t back_until_ms; /* away: when it counts as gone; 0: not heard of yet */
    uint64_t progress_ms;   /* last answer, or first task after idleness */
    uint64_t heard_ms;      /* last answer, needed or not, or the session's beginning */
    uint64_t mute_ms;       /* on trial in earlier runs since then */
    job_trial trial;
    uint32_t under_way; /* its cells hiding, sent or judging */
    uint32_t sent;      /* of these: it owes their answers */
    sherd__delivery *delivery;
    uint32_t depth;
    uint32_t refusals;     /* in a row, of one task at a time */
    uint32_t refused_upto; /* attempts that were made when the last refusal was counted */
    bool convicted;
    bool absent; /* it was away when the job began, and is not waited for */
    uint64_t accepted;
    uint8_t *holds; /* right blocks that stay, by slot * tiles + tile */
    uint8_t *lefts; /* LEFT_* by slot and panel of all left blocks that stay, or NULL */
} job_node;

/* Answers that have passed their check, by cell; the executor's alone while the job runs. */
typedef struct job_folding {
    sherd__fragment **held;
    uint8_t *ready;
    uint32_t *have; /* threshold: answers by position */
    uint64_t next;  /* ordered: the cell to fold next */
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
    uint32_t *owner;     /* per slot: node, or NOBODY */
    uint64_t *todo_from; /* per slot: no cell at a lower position is to be done */
    uint8_t *dead;       /* threshold, a bit per domain: neither given nor asked for a share */
    job_folding folding;
    uint64_t folded;       /* as far as the loop thread knows */
    uint64_t fold_pos;     /* ordered, threshold: the first position that is not folded */
    uint32_t *accepted_at; /* threshold: accepted answers by position */
    uint32_t attempts, blocks;
    uint32_t pieces;             /* of work that the executor holds */
    sherd__delivery *deliveries; /* where the owner has none */
    sherd__delivery_peers peers; /* as of the last tick */
    double *medians;             /* room for them */
    uint64_t now_ms;             /* as last told */
    bool finishing, done, starved;
    uint32_t alive; /* starved: domains whose share could still be answered then */
    int err;
    sherd_diag diag;
    sherd__job_stats stats;
    char last_refusal[SHERD__TEXT_MAX];
};

#define NOBODY UINT32_MAX

/* A cell that a node has: whether the node owes its answer is counted. */
static inline void job_cell_becomes(sherd__job *j, job_cell *c, cell_state state)
{
    job_node *n = &j->nodes[c->node];
    if (state == CELL_SENT) n->sent++;
    if (c->state == CELL_SENT) n->sent--;
    c->state = (uint8_t)state;
}

enum { LEFT_NONE, LEFT_HELD, LEFT_MAKING }; /* MAKING: a piece of work brings it */

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

/* Threshold: enough answers of this position are in. */
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

/* late.c: of a node that is up. owes: after its cells have changed; answered: before; excused:
 * a task of it is not wanted any more. */
void sherd__job_excused(sherd__job *j, uint32_t node);
void sherd__job_owes(sherd__job *j, uint32_t node, uint64_t now_ms);
void sherd__job_answered(sherd__job *j, uint32_t node, uint64_t now_ms);
/** Expels those that are past their deadline. */
void sherd__job_late(sherd__job *j, uint64_t now_ms);

/* job.c: the job fails with this, unless it is done; a line for people; a node's name. */
void sherd__job_stop(sherd__job *j, int err, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void sherd__job_say(const sherd__job *j, sherd_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const char *sherd__job_name(const sherd__job *j, uint32_t node);

/* owners.c */
uint64_t sherd__job_first_todo(sherd__job *j, uint32_t slot);
/** false: a slot has no node to begin with. */
bool sherd__job_owners_init(sherd__job *j);
void sherd__job_reassign(sherd__job *j, uint32_t slot);
/** Finds owners for slots that have lost theirs; fails the job where the work cannot be done. */
void sherd__job_adopt(sherd__job *j);

/* trial.c: threshold only. begin: whether the task that is to be cancelled is left to run
 * instead; failed: its node has been given enough time; rest: the run is over; forget: the node has
 * a new session, or none. */
bool sherd__job_trial_begin(sherd__job *j, uint64_t ordinal);
void sherd__job_trial_heard(sherd__job *j, job_node *n, uint32_t attempt);
bool sherd__job_trial_failed(const sherd__job *j, job_node *n, double patience);
void sherd__job_trial_rest(sherd__job *j, job_node *n);
void sherd__job_trial_forget(sherd__job *j, job_node *n);

/* send.c */
void sherd__job_cell_done(sherd__job *j, uint64_t ordinal);
void sherd__job_back(sherd__job *j, uint64_t ordinal);
void sherd__job_close_position(sherd__job *j, uint64_t pos);
void sherd__job_block_refused(sherd__job *j, job_node *n, uint32_t block);
void sherd__job_drop_rights(sherd__job *j, uint32_t node);
int sherd__job_send(sherd__job *j, uint64_t ordinal, sherd__cell_work *work);
/** The piece that was to bring the cell's left block to the node is back. */
void sherd__job_left_back(sherd__job *j, uint32_t node, uint64_t ordinal);
void sherd__job_dispatch(sherd__job *j, uint64_t now_ms);

/* work.c: start a piece on the executor. On failure nothing was started. left: make the block
 * of the left operand that stays at the node. */
int sherd__job_hide(sherd__job *j, uint64_t ordinal, bool left);
int sherd__job_judge(sherd__job *j, uint64_t ordinal, sherd__fragment *answer);
int sherd__job_finish(sherd__job *j);

/* job.c: a piece is back. The fragments of work are the callee's. */
void sherd__job_hidden(sherd__job *j, uint64_t ordinal, uint32_t attempt, int err,
                       sherd__cell_work *work);
void sherd__job_judged(sherd__job *j, uint64_t ordinal, uint32_t attempt, int err);
void sherd__job_finished(sherd__job *j, int err);
void sherd__job_folded(sherd__job *j, uint64_t folded, uint64_t next);

#endif
