/* What the state machine (job.c) and the pieces of compute work (job_work.c) share. */
#ifndef SCHEDULER_JOB_INTERNAL_H
#define SCHEDULER_JOB_INTERNAL_H

#include "scheduler/job.h"

typedef enum cell_state { CELL_TODO, CELL_HIDING, CELL_SENT, CELL_JUDGING, CELL_DONE } cell_state;

typedef struct job_cell {
    uint8_t state;
    uint32_t node;    /* who has it, while hiding, sent or judging */
    uint32_t attempt; /* of the task under way; job-wide counter, never 0 */
    uint64_t since_ms;
} job_cell;

typedef enum node_state { NODE_AWAY, NODE_UP, NODE_GONE } node_state;

typedef struct job_node {
    sherd_session *session; /* while up */
    uint64_t session_number; /* of the session that `holds` is about */
    node_state state;
    uint32_t domain;
    uint64_t back_until_ms; /* away: when it counts as gone; 0: not heard of yet */
    uint64_t progress_ms;   /* last answer, bytes moved, or first task after idleness */
    uint64_t queued, bytes_in; /* of its session, when last looked at */
    uint32_t under_way;     /* its cells hiding, sent or judging */
    uint32_t depth;
    uint32_t refusals;      /* in a row, of one task at a time */
    uint32_t refused_upto;  /* attempts that were made when the last refusal was counted */
    bool convicted;
    uint64_t accepted;
    uint8_t *holds;         /* resident blocks, by slot * tiles + tile */
} job_node;

/* Answers that have passed their check, by cell; the executor's alone while the job runs. */
typedef struct job_folding {
    sherd_fragment **held;
    uint8_t *ready;
    uint64_t next;   /* ordered: the cell to fold next */
    uint64_t folded;
} job_folding;

struct sherd_job {
    sherd__job_options o;
    sherd__hiding hiding;
    sherd__scheme_shape shape;
    uint64_t cells_len, cells_room;
    job_cell *cells;
    job_node *nodes;
    uint32_t *owner;       /* per slot: node, or NOBODY */
    uint64_t *todo_from;   /* per slot: no cell at a lower position is to be done */
    job_folding folding;
    uint64_t folded;       /* as far as the loop thread knows */
    uint64_t fold_pos;     /* ordered: position of the first cell not folded */
    uint32_t attempts, blocks;
    uint32_t pieces;       /* of work that the executor holds */
    double task_ms;        /* moving average of a task's time */
    bool finishing, done;
    int err;
    sherd_diag diag;
    sherd__job_stats stats;
    char last_refusal[SHERD__TEXT_MAX];
};

#define NOBODY UINT32_MAX

static inline sherd__cell job_cell_at(const sherd_job *j, uint64_t ordinal)
{
    uint64_t pos = ordinal / j->shape.slots;
    return (sherd__cell){ (uint32_t)(ordinal % j->shape.slots), (uint32_t)(pos / j->shape.panels),
                          (uint32_t)(pos % j->shape.panels) };
}

static inline uint64_t job_ordinal(const sherd_job *j, uint32_t slot, uint64_t pos)
{
    return pos * j->shape.slots + slot;
}

/* job_work.c: start a piece on the executor. On failure nothing was started. */
int sherd__job_hide(sherd_job *j, uint64_t ordinal);
int sherd__job_judge(sherd_job *j, uint64_t ordinal, sherd_fragment *answer);
int sherd__job_finish(sherd_job *j);

/* job.c: a piece is back. The fragments of work are the callee's. */
void sherd__job_hidden(sherd_job *j, uint64_t ordinal, uint32_t attempt, int err,
                       sherd__cell_work *work);
void sherd__job_judged(sherd_job *j, uint64_t ordinal, uint32_t attempt, int err);
void sherd__job_finished(sherd_job *j, int err);
void sherd__job_folded(sherd_job *j, uint64_t folded, uint64_t next);

#endif
