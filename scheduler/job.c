/*
 * The state machine of a job. Every decision is made here, from what is known now: whose turn it is,
 * whether the ledger allows it, who takes over from a lost node. Nothing waits: the caller brings
 * events, time and finished pieces, and asks whether it is done.
 */
#include "scheduler/job.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "scheduler/job_internal.h"

/* A node that holds tasks but answers none for this long has failed, heartbeats or not: the base,
 * and how many times the usual time of a task. The end of it is fixed, since that usual time is made
 * of what nodes say: they shall not buy each other patience by being slow. */
#define OVERDUE_MS 10000u
#define OVERDUE_FACTOR 30.0
#define OVERDUE_MAX_MS 60000.0
#define MOVED_BYTES 4096u
#define REFUSALS_MAX 4u

static void fail(sherd_job *j, int err, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void fail(sherd_job *j, int err, const char *hint, const char *fmt, ...)
{
    char text[sizeof j->diag.message];
    va_list ap;
    if (j->done) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    sherd__fail(&j->diag, err, hint, "%s", text);
    j->err = err;
    j->done = true;
}

static void say(const sherd_job *j, sherd_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say(const sherd_job *j, sherd_log_level level, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    if (!j->o.owner.log) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    j->o.owner.log(j->o.owner.ctx, level, text);
}

static const char *name_of(const sherd_job *j, uint32_t node)
{
    return j->o.owner.name(j->o.owner.ctx, node);
}

/* --- owners ---------------------------------------------------------------------------------- */

/* Position of the slot's first cell that is to be done; cells / slots when none is. */
static uint64_t first_todo(sherd_job *j, uint32_t slot)
{
    uint64_t end = j->cells_len / j->shape.slots, pos = j->todo_from[slot];
    while (pos < end && j->cells[job_ordinal(j, slot, pos)].state != CELL_TODO) pos++;
    return j->todo_from[slot] = pos;
}

static uint32_t owned(const sherd_job *j, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < j->shape.slots; s++) n += j->owner[s] == node;
    return n;
}

/* The node that takes the slot's next cell over with the least burden, or NOBODY. */
static uint32_t adopter(const sherd_job *j, sherd__cell cell)
{
    uint32_t best = NOBODY, best_owned = 0;
    double best_seen = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const job_node *n = &j->nodes[i];
        if (n->state != NODE_UP || !sherd__ledger_may(j->o.ledger, n->domain, cell)) continue;
        uint32_t has = owned(j, i);
        double seen = sherd__ledger_fraction(j->o.ledger, n->domain, 0);
        if (best == NOBODY || has < best_owned || (has == best_owned && seen < best_seen)) {
            best = i;
            best_owned = has;
            best_seen = seen;
        }
    }
    return best;
}

static bool any_in(const sherd_job *j, node_state state)
{
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (j->nodes[i].state == state) return true;
    return false;
}

/* Finds another owner for a slot. Fails the job where there is none and none can come back. */
static void reassign(sherd_job *j, uint32_t slot)
{
    uint64_t pos = first_todo(j, slot);
    if (j->done || pos == j->cells_len / j->shape.slots) return;
    uint32_t from = j->owner[slot];
    uint32_t to = adopter(j, job_cell_at(j, job_ordinal(j, slot, pos)));
    j->owner[slot] = to;
    if (to != NOBODY) {
        if (from != NOBODY && from != to)
            say(j, SHERD_LOG_WARN, "%s takes over from %s", name_of(j, to), name_of(j, from));
    } else if (any_in(j, NODE_AWAY)) {
        return; /* asked again when one returns or is given up */
    } else if (!any_in(j, NODE_UP)) {
        fail(j, SHERD_EFEWNODES, "start more nodes, or look at the nodes' own messages",
             "no node is left to do the work%s%s", j->last_refusal[0] ? "; last refusal: " : "",
             j->last_refusal);
    } else {
        fail(j, SHERD_EEXPOSURE, "raise --exposure-max, or use more nodes so that each needs less",
             "the work of a lost node may go to no other: each live domain would be given more than "
             "%.3g of A or %.3g of B",
             sherd__ledger_bound(j->o.ledger, 0), sherd__ledger_bound(j->o.ledger, 1));
    }
}

static void reassign_orphans(sherd_job *j)
{
    for (uint32_t s = 0; s < j->shape.slots && !j->done; s++) {
        uint32_t own = j->owner[s];
        if (own == NOBODY || j->nodes[own].state == NODE_GONE) reassign(j, s);
    }
}

/* --- cells ----------------------------------------------------------------------------------- */

static void back_to_todo(sherd_job *j, uint64_t ordinal)
{
    job_cell *c = &j->cells[ordinal];
    uint32_t slot = (uint32_t)(ordinal % j->shape.slots);
    uint64_t pos = ordinal / j->shape.slots;
    j->nodes[c->node].under_way--;
    c->state = CELL_TODO;
    if (pos < j->todo_from[slot]) j->todo_from[slot] = pos;
    j->stats.repeated++;
}

static void done_cell(sherd_job *j, uint64_t ordinal)
{
    j->nodes[j->cells[ordinal].node].under_way--;
    j->cells[ordinal].state = CELL_DONE;
}

/* Sends the slot's resident block, unless the node has it. */
static int ensure_resident(sherd_job *j, job_node *n, sherd__cell cell, uint32_t *block)
{
    uint32_t slot = j->shape.shared ? 0 : cell.slot;
    size_t at = (size_t)slot * j->shape.tiles + cell.tile;
    sherd_fragment *f;
    *block = 1 + (uint32_t)at;
    if (n->holds[at]) return SHERD_OK;
    int err = j->hiding.ops->resident(j->hiding.ctx, slot, cell.tile, &f);
    if (err) return err;
    err = sherd__session_put(n->session, j->o.id, *block, f);
    if (err) sherd__fragment_free(f);
    else n->holds[at] = 1;
    return err;
}

/* Once every cell of a tile is past its node, the tile's resident block only takes room there. */
static void drop_old_tiles(sherd_job *j, uint32_t node, sherd__cell cell)
{
    job_node *n = &j->nodes[node];
    if (j->shape.tiles == 1 || !j->shape.resident) return;
    uint32_t slot = j->shape.shared ? 0 : cell.slot;
    for (uint32_t t = 0; t < cell.tile; t++) {
        size_t at = (size_t)slot * j->shape.tiles + t;
        if (!n->holds[at]) continue;
        bool needed = false;
        uint64_t from = (uint64_t)t * j->shape.panels;
        for (uint32_t s = 0; s < j->shape.slots && !needed; s++) {
            if (!j->shape.shared && s != slot) continue;
            for (uint64_t p = from; p < from + j->shape.panels && !needed; p++) {
                const job_cell *c = &j->cells[job_ordinal(j, s, p)];
                needed = (c->state == CELL_HIDING || c->state == CELL_SENT) && c->node == node;
            }
        }
        if (!needed && !sherd__session_drop(n->session, j->o.id, 1 + (uint32_t)at)) n->holds[at] = 0;
    }
}

/* A number for a block that goes with its task. They come round again after four thousand million,
 * when the first have long been dropped. */
static uint32_t passing_block(sherd_job *j)
{
    uint32_t base = 1 + j->shape.slots * j->shape.tiles;
    return base + j->blocks++ % (UINT32_MAX - base);
}

static int send_cell(sherd_job *j, uint64_t ordinal, sherd__cell_work *work)
{
    job_cell *c = &j->cells[ordinal];
    job_node *n = &j->nodes[c->node];
    sherd__cell cell = job_cell_at(j, ordinal);
    sherd__task task = { .job = j->o.id, .task = (uint32_t)ordinal + 1, .attempt = c->attempt,
                         .op = j->o.op, .flags = SHERD__DROP_LEFT, .result = work->result,
                         .primes_len = j->shape.primes_len };
    memcpy(task.primes, j->shape.primes, sizeof task.primes);
    drop_old_tiles(j, c->node, cell);
    int err = j->shape.resident ? ensure_resident(j, n, cell, &task.right) : SHERD_OK;
    if (err) return err;
    task.left = passing_block(j);
    err = sherd__session_put(n->session, j->o.id, task.left, work->left);
    if (err) return err;
    work->left = NULL;
    if (work->right) {
        task.right = passing_block(j);
        task.flags |= SHERD__DROP_RIGHT;
        err = sherd__session_put(n->session, j->o.id, task.right, work->right);
        if (err) return err;
        work->right = NULL;
    }
    return sherd__session_task(n->session, &task);
}

/* Starts a cell at a node. The ledger has the last word. */
static int start_cell(sherd_job *j, uint32_t node, uint64_t ordinal, uint64_t now_ms)
{
    job_cell *c = &j->cells[ordinal];
    job_node *n = &j->nodes[node];
    int err = sherd__ledger_give(j->o.ledger, n->domain, job_cell_at(j, ordinal));
    if (err) return err;
    c->node = node;
    if (++j->attempts == 0) j->attempts = 1;
    c->attempt = j->attempts;
    c->since_ms = now_ms;
    err = sherd__job_hide(j, ordinal);
    if (err) return err;
    c->state = CELL_HIDING;
    if (n->under_way++ == 0) n->progress_ms = now_ms;
    return SHERD_OK;
}

/* The next cell for a node: the lowest position among the slots it owns; where every node holds all
 * of B (plain), also of slots whose owners are behind. cells_len: none. */
static uint64_t next_cell(sherd_job *j, uint32_t node)
{
    uint64_t best = UINT64_MAX, end = j->cells_len / j->shape.slots;
    uint32_t best_slot = 0;
    for (uint32_t s = 0; s < j->shape.slots; s++) {
        if (j->owner[s] != node) continue;
        uint64_t pos = first_todo(j, s);
        if (pos < best && pos < end) best = pos, best_slot = s;
    }
    for (uint32_t s = 0; best == UINT64_MAX && j->shape.shared && s < j->shape.slots; s++) {
        uint64_t pos = first_todo(j, s);
        if (pos < end && sherd__ledger_may(j->o.ledger, j->nodes[node].domain,
                                           job_cell_at(j, job_ordinal(j, s, pos))))
            best = pos, best_slot = s;
    }
    if (best == UINT64_MAX) return j->cells_len;
    if (j->shape.ordered && best >= j->fold_pos + j->o.depth) return j->cells_len;
    return job_ordinal(j, best_slot, best);
}

static void dispatch(sherd_job *j, uint64_t now_ms)
{
    for (bool more = true; more && !j->done;) {
        more = false;
        for (uint32_t i = 0; i < j->o.nodes && !j->done; i++) { /* one each in turn */
            job_node *n = &j->nodes[i];
            if (n->state != NODE_UP || n->under_way >= n->depth ||
                !sherd__session_ready(n->session))
                continue;
            uint64_t ordinal = next_cell(j, i);
            if (ordinal == j->cells_len) continue;
            int err = start_cell(j, i, ordinal, now_ms);
            uint32_t slot = (uint32_t)(ordinal % j->shape.slots);
            if (err == SHERD_EEXPOSURE) reassign(j, slot);
            else if (err == SHERD_EBUSY) return;
            else if (err) fail(j, err, NULL, "cannot start a task: %s", sherd_strerror(err));
            more = !err || (err == SHERD_EEXPOSURE && j->owner[slot] != NOBODY);
        }
    }
}

static void maybe_finish(sherd_job *j)
{
    if (j->done || j->finishing || j->folded < j->cells_len) return;
    int err = sherd__job_finish(j);
    if (err && err != SHERD_EBUSY) fail(j, err, NULL, "cannot finish: %s", sherd_strerror(err));
    j->finishing = !err;
}

void sherd__job_pump(sherd_job *j, uint64_t now_ms)
{
    do {
        sherd__executor_drain(j->o.executor);
        if (!j->done) dispatch(j, now_ms);
        maybe_finish(j);
    } while (!j->done && !sherd__job_idle(j) && sherd__executor_drain(j->o.executor));
}

/* --- pieces that are back -------------------------------------------------------------------- */

void sherd__job_folded(sherd_job *j, uint64_t folded, uint64_t next)
{
    j->folded = folded;
    j->fold_pos = next / j->shape.slots;
}

void sherd__job_hidden(sherd_job *j, uint64_t ordinal, uint32_t attempt, int err,
                       sherd__cell_work *work)
{
    job_cell *c = &j->cells[ordinal];
    bool current = c->state == CELL_HIDING && c->attempt == attempt;
    if (!current || j->done) goto out;
    uint32_t node = c->node;
    if (err) {
        fail(j, err, NULL, "cannot prepare a task: %s", sherd_strerror(err));
    } else if (work->empty) {
        done_cell(j, ordinal);
    } else if (!sherd__session_ready(j->nodes[node].session)) {
        back_to_todo(j, ordinal); /* it has just ended; its CLOSED event is on the way */
    } else {
        err = send_cell(j, ordinal, work);
        if (err) fail(j, err, NULL, "cannot send a task to %s: %s", name_of(j, node),
                      sherd_strerror(err));
        else c->state = CELL_SENT;
        j->o.owner.touch(j->o.owner.ctx, node);
    }
out:
    sherd__fragment_free(work->left);
    sherd__fragment_free(work->right);
}

static void lose(sherd_job *j, uint32_t node, bool gone);

/* The node did what no honest one does. Once is enough: more of its answers may be on the way. */
static void convict(sherd_job *j, uint32_t node, const char *what)
{
    if (j->nodes[node].convicted) return;
    j->nodes[node].convicted = true;
    j->stats.banned++;
    if (j->o.strict)
        fail(j, SHERD_EWRONG, "leave --strict out to have its work done by the other nodes",
             "%s %s", name_of(j, node), what);
    else
        say(j, SHERD_LOG_WARN, "%s %s: banned", name_of(j, node), what);
}

void sherd__job_judged(sherd_job *j, uint64_t ordinal, uint32_t attempt, int err)
{
    job_cell *c = &j->cells[ordinal];
    uint32_t node = c->node;
    (void)attempt; /* a cell that is judged is not started again before its verdict */
    if (err == SHERD_OK) {
        done_cell(j, ordinal);
        j->nodes[node].accepted++;
        j->stats.accepted++;
        return;
    }
    back_to_todo(j, ordinal);
    if (j->done) return;
    if (err != SHERD_EWRONG) {
        fail(j, err, NULL, "cannot use an answer of %s: %s", name_of(j, node), sherd_strerror(err));
        return;
    }
    bool first = !j->nodes[node].convicted;
    convict(j, node, "answered wrongly");
    if (!first || j->done) return;
    if (j->nodes[node].state == NODE_UP)
        j->o.owner.expel(j->o.owner.ctx, node, SHERD_EWRONG, "a result failed verification");
    lose(j, node, true);
}

void sherd__job_finished(sherd_job *j, int err)
{
    j->finishing = false;
    if (err) fail(j, err, NULL, "cannot finish: %s", sherd_strerror(err));
    j->done = true;
}

/* --- nodes ----------------------------------------------------------------------------------- */

/* What the node had under way is to be done again; gone: by others. */
static void lose(sherd_job *j, uint32_t node, bool gone)
{
    job_node *n = &j->nodes[node];
    for (uint64_t i = 0; i < j->cells_len && n->under_way; i++) {
        const job_cell *c = &j->cells[i];
        if (c->node == node && (c->state == CELL_HIDING || c->state == CELL_SENT)) back_to_todo(j, i);
    }
    memset(n->holds, 0, (size_t)j->shape.slots * j->shape.tiles);
    n->session = NULL;
    n->state = gone ? NODE_GONE : NODE_AWAY;
    if (gone) reassign_orphans(j);
}

void sherd__job_node_up(sherd_job *j, uint32_t node, sherd_session *s, uint64_t session_number,
                        uint64_t now_ms)
{
    job_node *n = &j->nodes[node];
    if (n->session_number != session_number)
        memset(n->holds, 0, (size_t)j->shape.slots * j->shape.tiles);
    n->session = s;
    n->session_number = session_number;
    n->state = NODE_UP;
    n->progress_ms = now_ms;
    if (!j->done) reassign_orphans(j);
}

void sherd__job_node_banned(sherd_job *j, uint32_t node, const char *why)
{
    char what[SHERD__TEXT_MAX + 24];
    snprintf(what, sizeof what, "broke the protocol: %s", why);
    if (!j->done) convict(j, node, what);
}

void sherd__job_node_down(sherd_job *j, uint32_t node, bool back, const char *why, uint64_t now_ms)
{
    job_node *n = &j->nodes[node];
    if (n->state == NODE_GONE) return;
    if (n->state == NODE_UP) {
        j->stats.lost++;
        if (!j->done) say(j, SHERD_LOG_WARN, "%s lost: %s", name_of(j, node), why);
    }
    n->back_until_ms = now_ms + j->o.return_ms;
    lose(j, node, !back || j->o.return_ms == 0);
}

/* It has room for fewer tasks at a time, or for none at all: several refusals of what was sent at
 * one time say it only once. */
static void count_refusal(sherd_job *j, job_node *n, const sherd__refusal *r)
{
    if (r->task && r->attempt <= n->refused_upto) return;
    n->refused_upto = j->attempts;
    if (n->depth > 1) n->depth /= 2;
    else n->refusals++;
}

static void refused(sherd_job *j, uint32_t node, const sherd__refusal *r)
{
    job_node *n = &j->nodes[node];
    snprintf(j->last_refusal, sizeof j->last_refusal, "%s", r->text);
    if (n->state != NODE_UP) return;
    count_refusal(j, n, r);
    if (r->block && r->block <= j->shape.slots * j->shape.tiles) n->holds[r->block - 1] = 0;
    if (r->task && r->task <= j->cells_len) {
        uint64_t ordinal = r->task - 1;
        const job_cell *c = &j->cells[ordinal];
        if (c->state == CELL_SENT && c->node == node && c->attempt == r->attempt)
            back_to_todo(j, ordinal);
    }
    if (n->refusals <= REFUSALS_MAX) return;
    say(j, SHERD_LOG_WARN, "%s refuses its work (%s)", name_of(j, node), r->text);
    (void)!sherd__session_forget(n->session, j->o.id);
    j->o.owner.touch(j->o.owner.ctx, node);
    lose(j, node, true);
}

static void answered(sherd_job *j, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    job_node *n = &j->nodes[node];
    uint64_t ordinal = (uint64_t)e->task.task - 1;
    if (e->task.task == 0 || ordinal >= j->cells_len) return;
    job_cell *c = &j->cells[ordinal];
    if (c->state != CELL_SENT || c->node != node || c->attempt != e->task.attempt) return;
    double took = (double)(now_ms - c->since_ms);
    j->task_ms = j->task_ms > 0 ? 0.9 * j->task_ms + 0.1 * took : took;
    n->progress_ms = now_ms;
    n->refusals = 0;
    int err = sherd__job_judge(j, ordinal, e->fragment);
    if (err) {
        fail(j, err, NULL, "cannot check an answer: %s", sherd_strerror(err));
        return;
    }
    e->fragment = NULL;
    c->state = CELL_JUDGING;
}

void sherd__job_event(sherd_job *j, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    if (!j->done && e->job == j->o.id) {
        if (e->kind == SHERD__EV_RESULT) answered(j, node, e, now_ms);
        if (e->kind == SHERD__EV_REFUSED) refused(j, node, &e->refusal);
    }
    sherd__fragment_free(e->fragment);
    e->fragment = NULL;
}

/* A large block over a slow link takes its time: while bytes of work move, the node is not mute.
 * What PONGs bring does not count. */
static void notice_bytes(job_node *n, uint64_t now_ms)
{
    uint64_t queued = sherd__session_queued(n->session);
    uint64_t in = sherd__session_stats_of(n->session)->bytes_in;
    if (queued < n->queued || in - n->bytes_in >= MOVED_BYTES) n->progress_ms = now_ms;
    if (in - n->bytes_in >= MOVED_BYTES || in < n->bytes_in) n->bytes_in = in;
    n->queued = queued;
}

void sherd__job_tick(sherd_job *j, uint64_t now_ms)
{
    double patience = fmin(OVERDUE_MS + OVERDUE_FACTOR * j->task_ms, OVERDUE_MAX_MS);
    bool gone = false;
    for (uint32_t i = 0; i < j->o.nodes && !j->done; i++) {
        job_node *n = &j->nodes[i];
        if (n->state == NODE_AWAY && n->back_until_ms && now_ms >= n->back_until_ms) {
            n->state = NODE_GONE;
            gone = true;
        }
        if (n->state == NODE_UP) notice_bytes(n, now_ms);
        if (n->state == NODE_UP && n->under_way &&
            (double)(now_ms - n->progress_ms) > patience) {
            j->o.owner.expel(j->o.owner.ctx, i, SHERD_ESILENT, "it answers no task");
            sherd__job_node_down(j, i, false, "it answers no task", now_ms);
        }
    }
    if (gone && !j->done) reassign_orphans(j);
}

/* --- beginning and end ----------------------------------------------------------------------- */

static void reset_cells(sherd_job *j)
{
    memset(j->cells, 0, j->cells_len * sizeof *j->cells);
    memset(j->todo_from, 0, j->shape.slots * sizeof *j->todo_from);
    memset(j->folding.ready, 0, j->cells_len);
    memset(j->folding.held, 0, j->cells_len * sizeof(sherd_fragment *));
    j->folding.next = j->folding.folded = j->folded = j->fold_pos = 0;
    j->finishing = j->done = false;
}

static int allocate(sherd_job *j)
{
    size_t cells, holds = (size_t)j->shape.slots * j->shape.tiles;
    if (!sherd__mul((size_t)j->shape.tiles * j->shape.panels, j->shape.slots, &cells) ||
        cells >= UINT32_MAX)
        return SHERD_ENOMEM;
    j->cells_len = j->cells_room = cells;
    j->cells = sherd__calloc(cells, sizeof *j->cells);
    j->nodes = sherd__calloc(j->o.nodes, sizeof *j->nodes);
    j->owner = sherd__calloc(j->shape.slots, sizeof *j->owner);
    j->todo_from = sherd__calloc(j->shape.slots, sizeof *j->todo_from);
    j->folding.held = sherd__calloc(cells, sizeof(sherd_fragment *));
    j->folding.ready = sherd__calloc(cells, 1);
    if (!j->cells || !j->nodes || !j->owner || !j->todo_from || !j->folding.held ||
        !j->folding.ready)
        return SHERD_ENOMEM;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        j->nodes[i].depth = j->o.depth;
        j->nodes[i].domain = j->o.domain[i];
        j->nodes[i].holds = sherd__calloc(holds, 1);
        if (!j->nodes[i].holds) return SHERD_ENOMEM;
    }
    return SHERD_OK;
}

int sherd__job_new(sherd_job **out, const sherd__job_options *opt)
{
    *out = NULL;
    sherd_job *j = sherd__calloc(1, sizeof *j);
    if (!j) return SHERD_ENOMEM;
    j->o = *opt;
    j->hiding = *opt->hiding;
    j->hiding.ops->shape(j->hiding.ctx, &j->shape);
    int err = allocate(j);
    if (!err && j->shape.slots > opt->nodes) err = SHERD_EINVAL;
    if (err) {
        sherd__job_free(j);
        return err;
    }
    for (uint32_t s = 0; s < j->shape.slots; s++) j->owner[s] = s;
    reset_cells(j);
    *out = j;
    return SHERD_OK;
}

void sherd__job_free(sherd_job *j)
{
    if (!j) return;
    for (uint64_t i = 0; j->folding.held && i < j->cells_len; i++)
        sherd__fragment_free(j->folding.held[i]);
    for (uint32_t i = 0; j->nodes && i < j->o.nodes; i++) sherd__free(j->nodes[i].holds);
    sherd__free(j->folding.held);
    sherd__free(j->folding.ready);
    sherd__free(j->cells);
    sherd__free(j->nodes);
    sherd__free(j->owner);
    sherd__free(j->todo_from);
    sherd__free(j);
}

int sherd__job_again(sherd_job *j)
{
    if (j->err || !sherd__job_idle(j) || (!j->done && j->attempts)) return SHERD_EINVAL;
    j->hiding.ops->shape(j->hiding.ctx, &j->shape); /* another A may have fewer panels */
    uint64_t cells = (uint64_t)j->shape.tiles * j->shape.panels * j->shape.slots;
    if (cells > j->cells_room) return SHERD_EINVAL;
    j->cells_len = cells;
    sherd__ledger_next_left(j->o.ledger);
    j->stats = (sherd__job_stats){ 0 };
    sherd__job_rest(j);
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        j->nodes[i].accepted = 0;
        j->nodes[i].depth = j->o.depth;
        j->nodes[i].refused_upto = 0;
    }
    reset_cells(j);
    return SHERD_OK;
}

bool sherd__job_done(const sherd_job *j, int *err, sherd_diag *d)
{
    if (!j->done) return false;
    *err = j->err;
    if (j->err && d && d->code == SHERD_OK) *d = j->diag;
    return true;
}

void sherd__job_fail(sherd_job *j, int err, const char *hint, const char *message)
{
    fail(j, err, hint, "%s", message);
}

void sherd__job_end(sherd_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        if (j->nodes[i].state != NODE_UP) continue;
        (void)!sherd__session_forget(j->nodes[i].session, j->o.id);
        j->o.owner.touch(j->o.owner.ctx, i);
    }
}

void sherd__job_rest(sherd_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        job_node *n = &j->nodes[i];
        n->session = NULL;
        n->state = NODE_AWAY;
        n->back_until_ms = 0;
        n->under_way = n->refusals = 0;
    }
}

bool sherd__job_idle(const sherd_job *j)
{
    return j->pieces == 0;
}

/* --- telling --------------------------------------------------------------------------------- */

void sherd__job_count(const sherd_job *j, sherd__job_stats *out)
{
    *out = j->stats;
    out->cells = j->cells_len;
    out->folded = j->folded;
}

uint64_t sherd__job_node_tasks(const sherd_job *j, uint32_t node)
{
    return j->nodes[node].accepted;
}

void sherd__job_waiting(const sherd_job *j, uint64_t now_ms, char *out, size_t size)
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
    snprintf(out, size, "waiting %llu s for %s, last heard %llu s ago, %llu of %llu pieces in",
             (unsigned long long)((now_ms - n->progress_ms) / 1000), name_of(j, worst),
             (unsigned long long)((now_ms - heard) / 1000), (unsigned long long)j->folded,
             (unsigned long long)j->cells_len);
}
