/*
 * The state machine of a job. All decisions are made here, from what is known at the time: which
 * cell is next, whether the ledger permits it, which node replaces a lost one. No function waits:
 * the caller passes in events, time and finished pieces of work, and asks whether the job is done.
 */
#include "scheduler/job/job.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/diag.h"
#include "scheduler/job/internal.h"

#define REFUSALS_MAX 4u

static void end_with(sherd__job *j, int err, const char *hint, const char *text)
{
    sherd__fail(&j->diag, err, hint, "%s", text);
    j->err = err;
    j->done = true;
}

void sherd__job_stop(sherd__job *j, int err, const char *hint, const char *fmt, ...)
{
    char text[sizeof j->diag.message];
    va_list ap;
    if (j->done) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    end_with(j, err, hint, text);
}

void sherd__job_say(const sherd__job *j, sherd_log_level level, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    if (!j->o.owner.log) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    j->o.owner.log(j->o.owner.ctx, level, text);
}

const char *sherd__job_name(const sherd__job *j, uint32_t node)
{
    return j->o.owner.name(j->o.owner.ctx, node);
}

/* Returns true, and ends the job, if an operand changed while its hidden form was in use. */
static bool operand_changed(sherd__job *j)
{
    const sherd__hiding_ops *ops = j->hiding.ops;
    sherd__changed which = ops->changed ? ops->changed(j->hiding.ctx) : SHERD__UNCHANGED;
    const char *left = j->o.left ? j->o.left : "A", *right = j->o.right ? j->o.right : "B";
    if (which == SHERD__UNCHANGED) return false;
    sherd__job_stop(j, SHERD_EIO, "run again once its writer has finished, or give a copy of it",
                    "%s changed while it was in use: its masks would hide other values than "
                    "before, so nothing more of it was sent",
                    which == SHERD__LEFT_CHANGED ? left : right);
    return true;
}

static void maybe_finish(sherd__job *j)
{
    if (j->done || j->finishing || j->folded < j->cells_len) return;
    int err = sherd__job_finish(j);
    if (err && err != SHERD_EBUSY)
        sherd__job_stop(j, err, NULL, "cannot finish: %s", sherd_strerror(err));
    j->finishing = !err;
}

void sherd__job_pump(sherd__job *j, uint64_t now_ms)
{
    j->now_ms = now_ms;
    do {
        sherd__executor_drain(j->o.executor);
        if (!j->done && !operand_changed(j)) sherd__job_dispatch(j, now_ms);
        maybe_finish(j);
    } while (!j->done && !sherd__job_idle(j) && sherd__executor_drain(j->o.executor));
}

/* --- finished pieces of work ----------------------------------------------------------------- */

void sherd__job_folded(sherd__job *j, uint64_t folded, uint64_t next)
{
    j->folded = folded;
    if (!j->shape.threshold) j->fold_pos = next / j->shape.slots;
}

void sherd__job_hidden(sherd__job *j, uint64_t ordinal, uint32_t attempt, int err,
                       sherd__cell_work *work)
{
    assert(ordinal < j->cells_len);
    job_cell *c = &j->cells[ordinal];
    bool current = c->state == CELL_HIDING && c->attempt == attempt;
    if (!current || j->done) goto out;
    uint32_t node = c->node;
    if (operand_changed(j)) goto out;
    if (err) {
        sherd__job_stop(j, err, NULL, "cannot prepare a task: %s", sherd_strerror(err));
    } else if (work->empty) {
        sherd__job_cell_done(j, ordinal);
    } else if (!sherd__session_ready(j->nodes[node].session) ||
               job_dead(j, j->nodes[node].domain)) {
        sherd__job_back(j, ordinal); /* the session has just ended; its CLOSED event follows */
    } else {
        err = sherd__job_send(j, ordinal, work);
        if (err == SHERD_EUNASKED) sherd__job_back(j, ordinal);
        else if (err)
            sherd__job_stop(j, err, NULL, "cannot send a task to %s: %s", sherd__job_name(j, node),
                            sherd_strerror(err));
        else job_cell_becomes(j, c, CELL_SENT);
        if (!err) sherd__job_owes(j, node, j->now_ms);
        j->o.owner.touch(j->o.owner.ctx, node);
    }
out:
    sherd__fragment_free(work->left);
    sherd__fragment_free(work->right);
}

static void lose(sherd__job *j, uint32_t node, bool gone);

/*
 * Marks a node that did something no honest node does. One occurrence is enough, because more of
 * its answers may follow. It counts until the job is returned to the caller, even if the other
 * nodes' answers were already sufficient.
 */
static void convict(sherd__job *j, uint32_t node, const char *what)
{
    char text[sizeof j->diag.message];
    if (j->nodes[node].convicted) return;
    j->nodes[node].convicted = true;
    j->stats.banned++;
    snprintf(text, sizeof text, "%s %s", sherd__job_name(j, node), what);
    if (j->o.strict && !j->err)
        end_with(j, SHERD_EWRONG, "without --strict the other nodes do its work", text);
    else sherd__job_say(j, SHERD_LOG_WARN, "%s: banned", text);
}

/* Returns whether the cell's task is in place of another node. */
static bool for_another(const job_cell *c)
{
    return c->given_up && c->given_up != c->node + 1;
}

void sherd__job_judged(sherd__job *j, uint64_t ordinal, uint32_t attempt, int err)
{
    job_cell *c = &j->cells[ordinal];
    uint32_t node = c->node;
    assert(c->state == CELL_JUDGING &&
           c->attempt == attempt); /* not started again before its verdict */
    if (err == SHERD_OK) {
        uint64_t pos = ordinal / j->shape.slots;
        sherd__job_cell_done(j, ordinal);
        j->nodes[node].accepted++;
        if (!for_another(c)) j->nodes[node].work += c->work;
        j->stats.accepted++;
        if (j->shape.threshold && ++j->accepted_at[pos] == j->shape.threshold)
            sherd__job_close_position(j, pos);
        return;
    }
    if (err == SHERD_EBUSY) { /* not checked: other answers were enough */
        sherd__job_cell_done(j, ordinal);
        j->stats.cancelled++;
        return;
    }
    sherd__job_back(j, ordinal);
    if (operand_changed(j)) return; /* a correct answer to what was sent may fail the check now */
    if (err != SHERD_EWRONG) {
        sherd__job_stop(j, err, NULL, "cannot use an answer of %s: %s", sherd__job_name(j, node),
                        sherd_strerror(err));
        return;
    }
    bool first = !j->nodes[node].convicted;
    convict(j, node, "answered wrongly");
    if (!first) { /* the node is already lost, but this answer was still expected */
        if (!j->done) sherd__job_adopt(j);
        return;
    }
    j->o.owner.expel(j->o.owner.ctx, node, SHERD_EWRONG, "a result failed verification");
    lose(j, node, true);
}

void sherd__job_finished(sherd__job *j, int err)
{
    assert(j->finishing); /* the job may have been stopped meanwhile: its first error stays */
    j->finishing = false;
    if (err) sherd__job_stop(j, err, NULL, "cannot finish: %s", sherd_strerror(err));
    j->done = true;
}

/* --- nodes ----------------------------------------------------------------------------------- */

static void forget_blocks(sherd__job *j, job_node *n)
{
    memset(n->holds, 0, j->holds_room);
    if (n->lefts) memset(n->lefts, 0, job_lefts(j));
}

/* Puts the node's cells back to state todo. gone: other nodes take them over. */
static void lose(sherd__job *j, uint32_t node, bool gone)
{
    job_node *n = &j->nodes[node];
    for (uint64_t i = 0; i < j->cells_len && n->under_way; i++) {
        const job_cell *c = &j->cells[i];
        if (c->node == node && (c->state == CELL_HIDING || c->state == CELL_SENT))
            sherd__job_back(j, i);
    }
    forget_blocks(j, n);
    sherd__job_trial_forget(j, n);
    sherd__delivery_end(n->delivery);
    n->session = NULL;
    n->state = gone ? NODE_GONE : NODE_AWAY;
    if (gone) sherd__job_awaited(n, j->now_ms);
    if (gone && !j->done) sherd__job_adopt(j);
}

/* Returns what this node cannot do that the job needs; 0: nothing. */
static uint32_t lacking(const sherd__job *j, const sherd__hello *h)
{
    if (j->shape.windows.window && !(h->features & SHERD__FEATURE_WINDOWS))
        return SHERD__JOB_CANNOT_WINDOWS;
    return j->o.needs & ~sherd__hello_rates_of(h).does;
}

static const char *text_of_lack(uint32_t lacks)
{
    return lacks & SHERD__JOB_CANNOT_WINDOWS
               ? "does not support windows of images: its version is older"
           : lacks & SHERD__DOES_BYTES    ? "does not compute products modulo primes below 256"
           : lacks & SHERD__DOES_RESIDUES ? "does not compute products modulo primes"
           : lacks & SHERD__DOES_MAPS     ? "does not compute element-wise operations"
                                          : "does not compute products in float64";
}

/* Warns that the node cannot take part. If an earlier job has warned already, this line and the
 * one that names the node that takes over are for debugging. */
static void warn_once(sherd__job *j, uint32_t node, uint32_t what, const char *text)
{
    const sherd__job_owner *o = &j->o.owner;
    bool first = !o->first_report || o->first_report(o->ctx, node, what, text);
    sherd__job_say(j, first ? SHERD_LOG_WARN : SHERD_LOG_DEBUG, "%s %s", sherd__job_name(j, node),
                   text);
    j->nodes[node].absent = j->nodes[node].absent || !first;
}

void sherd__job_node_up(sherd__job *j, uint32_t node, sherd__session *s, uint64_t session_number,
                        uint64_t now_ms)
{
    job_node *n = &j->nodes[node];
    j->now_ms = now_ms;
    if (n->session_number != session_number) {
        forget_blocks(j, n);
        sherd__job_trial_forget(j, n);
    }
    const bool gone = n->state == NODE_GONE; /* this has been logged */
    if (sherd__session_peer(s)->memory < j->o.memory) {
        if (!gone) j->stats.lost++; /* the job's owner reports it */
        n->absent = n->absent || !n->session_number;
        lose(j, node, true);
        return;
    }
    n->session = s;
    n->session_number = session_number;
    n->state = NODE_UP;
    n->progress_ms = now_ms;
    sherd__job_awaited(n, now_ms);
    n->moved_at = sherd__session_moved(s);
    sherd__delivery_begin(n->delivery, sherd__session_moved(s), now_ms);
    uint32_t lacks = lacking(j, sherd__session_peer(s));
    if (lacks) {
        if (!gone) warn_once(j, node, lacks, text_of_lack(lacks));
        lose(j, node, true);
        return;
    }
    if (!j->done) sherd__job_adopt(j);
}

void sherd__job_node_banned(sherd__job *j, uint32_t node, const char *why)
{
    char what[SHERD__TEXT_MAX + 24];
    snprintf(what, sizeof what, "broke the protocol: %s", why);
    convict(j, node, what);
}

void sherd__job_node_barred(sherd__job *j, uint32_t node)
{
    j->nodes[node].convicted = true;
}

void sherd__job_node_down(sherd__job *j, uint32_t node, bool back, const char *why, uint64_t now_ms)
{
    job_node *n = &j->nodes[node];
    if (n->state == NODE_GONE) return;
    if (n->state == NODE_UP) {
        j->stats.lost++;
        if (!j->err)
            sherd__job_say(j, SHERD_LOG_WARN, "%s lost: %s", sherd__job_name(j, node), why);
    }
    n->absent = !back && n->back_until_ms == 0 && !n->session_number;
    n->back_until_ms = now_ms + j->o.return_ms;
    lose(j, node, !back || j->o.return_ms == 0);
}

/* Counts a refusal: the node has room for fewer tasks at a time, or for none. Several refusals of
 * tasks that were sent together count once. */
static void count_refusal(sherd__job *j, job_node *n, const sherd__refusal *r)
{
    if (r->task && r->attempt <= n->refused_upto) return;
    n->refused_upto = j->attempts;
    if (n->depth > 1) n->depth /= 2;
    else n->refusals++;
}

static void refused(sherd__job *j, uint32_t node, const sherd__refusal *r)
{
    job_node *n = &j->nodes[node];
    snprintf(j->last_refusal, sizeof j->last_refusal, "%s", r->text);
    j->no_memory = r->code == SHERD_ENOMEM;
    if (n->state != NODE_UP) return;
    if (r->task) sherd__job_trial_heard(j, n, r->attempt);
    count_refusal(j, n, r);
    sherd__job_block_refused(j, n, r->block);
    if (r->task && r->task <= j->cells_len) {
        uint64_t ordinal = r->task - 1;
        const job_cell *c = &j->cells[ordinal];
        if (c->state == CELL_SENT && c->node == node && c->attempt == r->attempt)
            sherd__job_back(j, ordinal);
    }
    if (n->refusals <= REFUSALS_MAX) return;
    char text[SHERD__TEXT_MAX + 24];
    snprintf(text, sizeof text, "refuses its work (%s)", r->text);
    warn_once(j, node, SHERD__JOB_CANNOT_WORK, text);
    (void)!sherd__session_forget(n->session, j->o.id);
    j->o.owner.touch(j->o.owner.ctx, node);
    lose(j, node, true);
}

static void answered(sherd__job *j, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    job_node *n = &j->nodes[node];
    uint64_t ordinal = (uint64_t)e->task.task - 1;
    sherd__job_trial_heard(j, n, e->task.attempt);
    if (e->task.task == 0 || ordinal >= j->cells_len) return;
    job_cell *c = &j->cells[ordinal];
    if (c->state != CELL_SENT || c->node != node || c->attempt != e->task.attempt) return;
    sherd__job_answered(j, node, for_another(c), now_ms);
    n->progress_ms = now_ms;
    n->refusals = 0;
    int err = sherd__job_judge(j, ordinal, e->fragment);
    if (err) {
        sherd__job_stop(j, err, NULL, "cannot check an answer: %s", sherd_strerror(err));
        return;
    }
    e->fragment = NULL;
    job_cell_becomes(j, c, CELL_JUDGING);
    sherd__job_owes(j, node, now_ms);
}

void sherd__job_event(sherd__job *j, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    j->now_ms = now_ms;
    if (!j->done && e->job == j->o.id) {
        if (e->kind == SHERD__EV_RESULT) answered(j, node, e, now_ms);
        if (e->kind == SHERD__EV_REFUSED) refused(j, node, &e->refusal);
    }
    sherd__fragment_free(e->fragment);
    e->fragment = NULL;
}

void sherd__job_tick(sherd__job *j, uint64_t now_ms)
{
    bool gone = false;
    j->now_ms = now_ms;
    for (uint32_t i = 0; i < j->o.nodes && !j->done; i++) {
        job_node *n = &j->nodes[i];
        if (n->state == NODE_AWAY && n->back_until_ms && now_ms >= n->back_until_ms) {
            n->state = NODE_GONE;
            sherd__job_awaited(n, now_ms);
            gone = true;
        }
    }
    if (!j->done) sherd__job_late(j, now_ms);
    if (gone && !j->done) sherd__job_adopt(j);
}

/* --- end ------------------------------------------------------------------------------------- */

bool sherd__job_done(const sherd__job *j, int *err, sherd_diag *d)
{
    if (!j->done) return false;
    *err = j->err;
    if (j->err && d && d->code == SHERD_OK) *d = j->diag;
    return true;
}

void sherd__job_fail(sherd__job *j, int err, const char *hint, const char *message)
{
    sherd__job_stop(j, err, hint, "%s", message);
}

void sherd__job_end(sherd__job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        if (j->nodes[i].state != NODE_UP) continue;
        (void)!sherd__session_forget(j->nodes[i].session, j->o.id);
        j->o.owner.touch(j->o.owner.ctx, i);
    }
}

void sherd__job_rest(sherd__job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        job_node *n = &j->nodes[i];
        sherd__job_trial_rest(j, n);
        if (j->shape.left_stays && n->state == NODE_UP && sherd__session_ready(n->session))
            sherd__job_drop_rights(j, i);
        sherd__delivery_end(n->delivery);
        n->session = NULL;
        n->state = NODE_AWAY;
        n->back_until_ms = 0;
        n->under_way = n->sent = n->refusals = 0;
        n->owing = false;
    }
}

bool sherd__job_starved(const sherd__job *j, uint32_t *alive)
{
    *alive = j->alive;
    return j->starved;
}

bool sherd__job_idle(const sherd__job *j)
{
    return j->pieces == 0;
}

/* --- reporting ------------------------------------------------------------------------------- */

void sherd__job_count(const sherd__job *j, sherd__job_stats *out)
{
    *out = j->stats;
    out->cells = j->cells_len;
    out->folded = j->folded;
}

uint64_t sherd__job_node_tasks(const sherd__job *j, uint32_t node)
{
    return j->nodes[node].accepted;
}

void sherd__job_waiting(const sherd__job *j, uint64_t now_ms, char *out, size_t size)
{
    uint32_t worst = NOBODY;
    out[0] = '\0';
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const job_node *n = &j->nodes[i];
        if (n->state == NODE_UP && n->under_way &&
            (worst == NOBODY || n->progress_ms < j->nodes[worst].progress_ms))
            worst = i;
    }
    if (worst == NOBODY) return;
    const job_node *n = &j->nodes[worst];
    uint64_t heard = sherd__session_stats_of(n->session)->last_heard_ms;
    snprintf(out, size,
             "waiting %llu s for %s, last byte received %llu s ago, %llu of %llu pieces done",
             (unsigned long long)((now_ms - n->progress_ms) / 1000), sherd__job_name(j, worst),
             (unsigned long long)((now_ms - heard) / 1000), (unsigned long long)j->folded,
             (unsigned long long)j->cells_len);
}
