/*
 * The compute work of a job: hide a cell, check and fold an answer, finish. A piece of work
 * contains all its inputs. `run` accesses only the scheme and the folding state of the job. `done`
 * (loop thread) passes the result to the state machine.
 *
 * Answers of an ordered scheme wait in `held` until all earlier ones are folded, so that sums of
 * floats have the same bits regardless of the order of arrival.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "scheduler/job/internal.h"

typedef enum piece_kind { PIECE_HIDE, PIECE_JUDGE, PIECE_FINISH } piece_kind;

typedef struct piece {
    sherd__executor_item work; /* first: the executor returns a pointer to it */
    sherd__job *job;
    piece_kind kind;
    uint64_t ordinal;
    uint32_t node, attempt;
    bool left, ran;
    int err;
    sherd__cell_work hidden;
    sherd__fragment *answer;
    uint64_t folded, next;
    uint8_t dead[]; /* hide, threshold: copy of job.dead */
} piece;

static int fold(sherd__job *j, uint64_t ordinal)
{
    job_folding *f = &j->folding;
    const uint8_t *body = f->held[ordinal] ? sherd__fragment_bytes(f->held[ordinal]) : NULL;
    int err = j->hiding.ops->fold(j->hiding.ctx, job_cell_at(j, ordinal), body);
    sherd__fragment_free(f->held[ordinal]);
    f->held[ordinal] = NULL;
    f->folded++;
    return err;
}

static void release(sherd__job *j, uint64_t pos)
{
    for (uint32_t s = 0; s < j->shape.slots; s++) {
        uint64_t ordinal = job_ordinal(j, s, pos);
        sherd__fragment_free(j->folding.held[ordinal]);
        j->folding.held[ordinal] = NULL;
    }
}

/* Stores an accepted answer of a share. When as many as the threshold are stored, the position is
 * decoded. */
static int gather(sherd__job *j, uint64_t ordinal, sherd__fragment *answer)
{
    job_folding *f = &j->folding;
    uint64_t pos = ordinal / j->shape.slots;
    sherd__cell cell = job_cell_at(j, ordinal);
    uint32_t want = j->shape.threshold, len = 0;
    assert(!f->held[ordinal]);
    f->held[ordinal] = answer;
    f->have[pos]++;
    if (f->have[pos] > want) release(j, pos); /* this answer arrived late */
    if (f->have[pos] != want) return SHERD_OK;
    uint32_t *slots = sherd__calloc(want, sizeof *slots);
    const uint8_t **bodies = sherd__calloc(want, sizeof *bodies);
    for (uint32_t s = 0; slots && bodies && s < j->shape.slots; s++) {
        const sherd__fragment *held = f->held[job_ordinal(j, s, pos)];
        if (!held) continue;
        slots[len] = s;
        bodies[len++] = sherd__fragment_bytes(held);
    }
    int err = slots && bodies
                  ? j->hiding.ops->decode(j->hiding.ctx, cell.tile, cell.panel, slots, bodies, len)
                  : SHERD_ENOMEM;
    sherd__free(slots);
    sherd__free(bodies);
    release(j, pos);
    f->folded += j->shape.slots;
    return err;
}

/* Stores an accepted answer (or an empty cell), and folds all cells that can be folded. */
static int settle(sherd__job *j, uint64_t ordinal, sherd__fragment *answer)
{
    job_folding *f = &j->folding;
    int err = SHERD_OK;
    if (j->shape.threshold) return gather(j, ordinal, answer);
    assert(!f->ready[ordinal] && "a cell is folded once");
    f->held[ordinal] = answer;
    f->ready[ordinal] = 1;
    if (!j->shape.ordered) return fold(j, ordinal);
    while (!err && f->next < j->cells_len && f->ready[f->next]) err = fold(j, f->next++);
    return err;
}

static bool decoded(const sherd__job *j, uint64_t ordinal)
{
    return j->shape.threshold && j->folding.have[ordinal / j->shape.slots] >= j->shape.threshold;
}

static void run(sherd__executor_item *w)
{
    piece *p = (piece *)w;
    sherd__job *j = p->job;
    const sherd__hiding_ops *ops = j->hiding.ops;
    p->ran = true;
    switch (p->kind) {
    case PIECE_HIDE:
        if (j->folding.ready[p->ordinal]) { /* an earlier attempt found it empty */
            p->hidden.empty = true;
            break;
        }
        if (decoded(j, p->ordinal)) break; /* decoded in the meantime: the task will be cancelled */
        if (ops->spare && j->shape.threshold) ops->spare(j->hiding.ctx, p->dead);
        p->err = ops->hide(j->hiding.ctx, job_cell_at(j, p->ordinal), &p->hidden);
        if (!p->err && p->left) {
            sherd__cell cell = job_cell_at(j, p->ordinal);
            p->err = ops->left(j->hiding.ctx, cell.slot, cell.panel, &p->hidden.left);
        }
        if (!p->err && p->hidden.empty) p->err = settle(j, p->ordinal, NULL);
        break;
    case PIECE_JUDGE:
        p->err = ops->check(j->hiding.ctx, job_cell_at(j, p->ordinal),
                            sherd__fragment_bytes(p->answer));
        if (!p->err) {
            p->err = settle(j, p->ordinal, p->answer);
            p->answer = NULL;
        }
        break;
    case PIECE_FINISH: p->err = ops->finish(j->hiding.ctx); break;
    }
    p->folded = j->folding.folded;
    p->next = j->folding.next;
}

static void done(sherd__executor_item *w)
{
    piece *p = (piece *)w;
    sherd__job *j = p->job;
    j->pieces--;
    if (!p->ran) p->err = SHERD_EINTERRUPTED; /* the executor is shutting down */
    else sherd__job_folded(j, p->folded, p->next);
    switch (p->kind) {
    case PIECE_HIDE:
        if (p->left) sherd__job_left_back(j, p->node, p->ordinal);
        sherd__job_hidden(j, p->ordinal, p->attempt, p->err, &p->hidden);
        break;
    case PIECE_JUDGE: sherd__job_judged(j, p->ordinal, p->attempt, p->err); break;
    case PIECE_FINISH: sherd__job_finished(j, p->err); break;
    }
    sherd__fragment_free(p->answer);
    sherd__free(p);
}

static int start(sherd__job *j, piece_kind kind, uint64_t ordinal, sherd__fragment *answer,
                 bool left)
{
    piece *p = sherd__calloc(1, sizeof *p + job_dead_bytes(j));
    if (!p) return SHERD_ENOMEM;
    *p = (piece){ .work = { run, done, NULL }, .job = j, .kind = kind, .ordinal = ordinal };
    p->answer = answer;
    p->left = left;
    memcpy(p->dead, j->dead, job_dead_bytes(j));
    if (kind != PIECE_FINISH) {
        p->node = j->cells[ordinal].node;
        p->attempt = j->cells[ordinal].attempt;
    }
    int err = sherd__executor_submit(j->o.executor, &p->work);
    if (err) sherd__free(p);
    else j->pieces++;
    return err;
}

int sherd__job_hide(sherd__job *j, uint64_t ordinal, bool left)
{
    return start(j, PIECE_HIDE, ordinal, NULL, left);
}

int sherd__job_judge(sherd__job *j, uint64_t ordinal, sherd__fragment *answer)
{
    return start(j, PIECE_JUDGE, ordinal, answer, false);
}

int sherd__job_finish(sherd__job *j)
{
    return start(j, PIECE_FINISH, 0, NULL, false);
}
