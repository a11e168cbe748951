/*
 * Turns cells in state todo into tasks: chooses the next cell, sends resident blocks and blocks
 * that are used once, and cancels cells whose position no longer needs them.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "crypto/seed.h"
#include "scheduler/job/internal.h"

void sherd__job_cell_done(sherd__job *j, uint64_t ordinal)
{
    assert(j->nodes[j->cells[ordinal].node].under_way > 0);
    j->nodes[j->cells[ordinal].node].under_way--;
    job_cell_becomes(j, &j->cells[ordinal], CELL_DONE);
}

void sherd__job_back(sherd__job *j, uint64_t ordinal)
{
    job_cell *c = &j->cells[ordinal];
    uint32_t slot = (uint32_t)(ordinal % j->shape.slots);
    uint64_t pos = ordinal / j->shape.slots;
    if (job_closed(j, pos)) {
        sherd__job_cell_done(j, ordinal);
        return;
    }
    assert(j->nodes[c->node].under_way > 0);
    j->nodes[c->node].under_way--;
    job_cell_becomes(j, c, CELL_TODO);
    c->given_up = c->node + 1;
    if (pos < j->todo_from[slot]) j->todo_from[slot] = pos;
    j->stats.repeated++;
}

/* Cancels the remaining tasks of a position that has enough answers. */
void sherd__job_close_position(sherd__job *j, uint64_t pos)
{
    for (uint32_t s = 0; s < j->shape.slots; s++) {
        uint64_t ordinal = job_ordinal(j, s, pos);
        job_cell *c = &j->cells[ordinal];
        if (c->state == CELL_TODO) {
            c->state = CELL_DONE;
            if (j->owner[s] != NOBODY) sherd__job_unneeded(j, j->owner[s]);
        }
        if (c->state != CELL_HIDING && c->state != CELL_SENT) continue;
        job_node *n = &j->nodes[c->node];
        bool owed = c->state == CELL_SENT && n->state == NODE_UP;
        if (c->state == CELL_SENT && n->state == NODE_UP && !sherd__job_trial_begin(j, ordinal)) {
            /* A session that has just ended has already cancelled everything. */
            (void)!sherd__session_cancel(n->session, j->o.id, (uint32_t)ordinal + 1, c->attempt);
            j->o.owner.touch(j->o.owner.ctx, c->node);
            j->stats.cancelled++;
        }
        sherd__job_cell_done(j, ordinal);
        if (owed) sherd__job_excused(j, c->node);
    }
    while (j->fold_pos < job_positions(j) && job_closed(j, j->fold_pos)) j->fold_pos++;
}

/* --- blocks ---------------------------------------------------------------------------------- */

static size_t right_at(const sherd__job *j, sherd__cell c)
{
    return (size_t)(j->shape.shared ? 0 : c.slot) * j->shape.tiles + c.tile;
}

/* Block numbers: first resident left blocks, then resident right blocks, then blocks used once. */
static uint32_t left_number(sherd__cell c, const sherd__job *j)
{
    return 1 + (uint32_t)job_left_at(j, c);
}

static uint32_t right_number(const sherd__job *j, size_t at)
{
    return 1 + job_lefts(j) + (uint32_t)at;
}

void sherd__job_block_refused(sherd__job *j, job_node *n, uint32_t block)
{
    uint32_t lefts = job_lefts(j), rights = j->shape.slots * j->shape.tiles;
    if (block == 0 || block > lefts + rights) return;
    if (block <= lefts) n->lefts[block - 1] = 0;
    else n->holds[block - 1 - lefts] = 0;
}

/* Replaces a seed by the share that it encodes, unless the node can do that itself. */
static int fit(const job_node *n, sherd__fragment **f)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(*f);
    const sherd__fragment_info whole = sherd__fragment_whole(i);
    sherd__fragment *share;
    if (i->encoding != SHERD__SEED ||
        sherd__session_peer(n->session)->features & SHERD__FEATURE_SEEDS)
        return SHERD_OK;
    uint8_t *bytes = whole.len <= SIZE_MAX ? sherd__alloc_large((size_t)whole.len) : NULL;
    if (!bytes) return SHERD_ENOMEM;
    int err = sherd__seed_defer(&share, *f, bytes, NULL, NULL);
    if (err) {
        sherd__free(bytes);
        return err;
    }
    *f = share;
    return sherd__fragment_settle(share);
}

/* Sends the slot's resident block unless the node has it. */
static int ensure_resident(sherd__job *j, job_node *n, sherd__cell cell, uint32_t *block)
{
    size_t at = right_at(j, cell);
    sherd__fragment *f;
    *block = right_number(j, at);
    if (n->holds[at]) return SHERD_OK;
    int err = j->hiding.ops->resident(j->hiding.ctx, j->shape.shared ? 0 : cell.slot, cell.tile,
                                      &f);
    if (err) return err;
    err = fit(n, &f);
    if (!err) err = sherd__session_put(n->session, j->o.id, *block, f);
    if (err) sherd__fragment_free(f);
    else n->holds[at] = 1;
    return err;
}

/* Returns whether the node still works on a cell of these positions, of one slot or of all. */
static bool busy_with(const sherd__job *j, uint32_t node, uint32_t slot, uint64_t from, uint64_t to)
{
    for (uint32_t s = 0; s < j->shape.slots; s++) {
        if (!j->shape.shared && s != slot) continue;
        for (uint64_t p = from; p < to; p++) {
            const job_cell *c = &j->cells[job_ordinal(j, s, p)];
            if ((c->state == CELL_HIDING || c->state == CELL_SENT) && c->node == node) return true;
        }
    }
    return false;
}

/* Drops the resident block of a tile once the node has finished all cells of the tile. */
static void drop_old_tiles(sherd__job *j, uint32_t node, sherd__cell cell)
{
    job_node *n = &j->nodes[node];
    if (j->shape.tiles == 1 || !j->shape.resident) return;
    for (uint32_t t = 0; t < cell.tile; t++) {
        size_t at = right_at(j, (sherd__cell){ cell.slot, t, 0 });
        uint64_t from = (uint64_t)t * j->shape.panels;
        if (!n->holds[at] || busy_with(j, node, cell.slot, from, from + j->shape.panels)) continue;
        if (!sherd__session_retract(n->session, j->o.id, right_number(j, at))) n->holds[at] = 0;
    }
}

void sherd__job_drop_rights(sherd__job *j, uint32_t node)
{
    job_node *n = &j->nodes[node];
    for (size_t at = 0; at < (size_t)j->shape.slots * j->shape.tiles; at++) {
        if (!n->holds[at]) continue;
        (void)!sherd__session_retract(n->session, j->o.id, right_number(j, at));
        n->holds[at] = 0;
    }
    j->o.owner.touch(j->o.owner.ctx, node);
}

/* Returns a number for a block that is sent with its task and used once. Numbers repeat after about
 * four thousand million blocks; the earlier blocks have long been dropped by then. */
static uint32_t passing_block(sherd__job *j)
{
    uint32_t base = right_number(j, (size_t)j->shape.slots * j->shape.tiles);
    return base + j->blocks++ % (UINT32_MAX - base);
}

/* --- tasks ----------------------------------------------------------------------------------- */

/* Sends a block that was made for the task; the session takes *f. */
static int put(sherd__job *j, job_node *n, uint32_t block, sherd__fragment **f)
{
    int err = fit(n, f);
    if (!err) err = sherd__session_put(n->session, j->o.id, block, *f);
    if (!err) *f = NULL;
    return err;
}

/* Sends the block of the left operand: a resident one the first time, otherwise one used once. */
static int put_left(sherd__job *j, job_node *n, sherd__cell cell, sherd__cell_work *work,
                    sherd__task *task)
{
    if (!j->shape.left_stays) {
        task->flags |= SHERD__DROP_LEFT;
        return put(j, n, task->left = passing_block(j), &work->left);
    }
    size_t at = job_left_at(j, cell);
    task->left = left_number(cell, j);
    if (n->lefts[at] == LEFT_HELD) return SHERD_OK;
    if (!work->left) return SHERD_EUNASKED; /* it was lost while this cell was being hidden */
    int err = put(j, n, task->left, &work->left);
    n->lefts[at] = err ? LEFT_NONE : LEFT_HELD;
    return err;
}

void sherd__job_left_back(sherd__job *j, uint32_t node, uint64_t ordinal)
{
    uint8_t *left = &j->nodes[node].lefts[job_left_at(j, job_cell_at(j, ordinal))];
    if (*left == LEFT_MAKING) *left = LEFT_NONE;
}

/* Returns how many terms each sum of the result has. Where left blocks stay it is one number for
 * all cells, and counts as 1. Element-wise operations have no sums. */
static uint64_t terms_of(const sherd__job *j, const sherd__cell_work *work)
{
    const bool sums = j->o.op == SHERD__OP_MULTIPLY && !j->shape.left_stays;
    return sums ? sherd__fragment_info_of(work->left)->cols : 1;
}

int sherd__job_send(sherd__job *j, uint64_t ordinal, sherd__cell_work *work)
{
    job_cell *c = &j->cells[ordinal];
    job_node *n = &j->nodes[c->node];
    sherd__cell cell = job_cell_at(j, ordinal);
    sherd__task task = { .job = j->o.id,
                         .task = (uint32_t)ordinal + 1,
                         .attempt = c->attempt,
                         .op = j->shape.transposed ? SHERD__OP_MULTIPLY_T : j->o.op,
                         .windows = j->shape.windows,
                         .result = work->result,
                         .primes_len = j->shape.primes_len };
    memcpy(task.primes, j->shape.primes, sizeof j->shape.primes);
    c->work = (float)work->result.rows * (float)work->result.cols * (float)terms_of(j, work);
    drop_old_tiles(j, c->node, cell);
    int err = j->shape.resident ? ensure_resident(j, n, cell, &task.right) : SHERD_OK;
    if (!err) err = put_left(j, n, cell, work, &task);
    if (!err && work->right) {
        task.flags |= SHERD__DROP_RIGHT;
        err = put(j, n, task.right = passing_block(j), &work->right);
    }
    return err ? err : sherd__session_task(n->session, &task);
}

/* Starts a cell at a node, if the ledger permits it. */
static int start_cell(sherd__job *j, uint32_t node, uint64_t ordinal, uint64_t now_ms)
{
    job_cell *c = &j->cells[ordinal];
    job_node *n = &j->nodes[node];
    sherd__cell cell = job_cell_at(j, ordinal);
    int err = sherd__ledger_give(j->o.ledger, n->domain, cell);
    if (err) return err;
    c->node = node;
    if (++j->attempts == 0) j->attempts = 1;
    c->attempt = j->attempts;
    c->since_ms = now_ms;
    uint8_t *left = j->shape.left_stays ? &n->lefts[job_left_at(j, cell)] : NULL;
    err = sherd__job_hide(j, ordinal, left && *left == LEFT_NONE);
    if (err) return err;
    if (left && *left == LEFT_NONE) *left = LEFT_MAKING; /* so other tiles do not request it */
    c->state = CELL_HIDING;
    if (n->under_way++ == 0) n->progress_ms = now_ms;
    return SHERD_OK;
}

/* Returns the next cell for a node: the lowest position among the slots that it owns. If every node
 * holds all of B (plain), slots whose owners are behind are included. Returns cells_len if there is
 * none. */
static uint64_t next_cell(sherd__job *j, uint32_t node)
{
    uint64_t best = UINT64_MAX, end = job_positions(j);
    uint32_t best_slot = 0;
    bool helps = j->shape.shared && !j->shape.threshold;
    for (uint32_t s = 0; s < j->shape.slots; s++) {
        if (j->owner[s] != node) continue;
        uint64_t pos = sherd__job_first_todo(j, s);
        if (pos < best && pos < end) best = pos, best_slot = s;
    }
    for (uint32_t s = 0; best == UINT64_MAX && helps && s < j->shape.slots; s++) {
        uint64_t pos = sherd__job_first_todo(j, s);
        if (pos < end && sherd__job_may_help(j, node, job_ordinal(j, s, pos)) &&
            sherd__ledger_may(j->o.ledger, j->nodes[node].domain,
                              job_cell_at(j, job_ordinal(j, s, pos))))
            best = pos, best_slot = s;
    }
    if (best == UINT64_MAX) return j->cells_len;
    if ((j->shape.ordered || j->shape.threshold) && best >= j->fold_pos + j->o.depth)
        return j->cells_len;
    return job_ordinal(j, best_slot, best);
}

void sherd__job_dispatch(sherd__job *j, uint64_t now_ms)
{
    for (bool more = true; more && !j->done;) {
        more = false;
        for (uint32_t i = 0; i < j->o.nodes && !j->done; i++) { /* one cell each, in turn */
            job_node *n = &j->nodes[i];
            if (n->state != NODE_UP || job_dead(j, n->domain) || n->under_way >= n->depth ||
                !sherd__session_ready(n->session))
                continue;
            uint64_t ordinal = next_cell(j, i);
            if (ordinal == j->cells_len) ordinal = sherd__job_relieve(j, i);
            if (ordinal == j->cells_len) continue;
            int err = start_cell(j, i, ordinal, now_ms);
            uint32_t slot = (uint32_t)(ordinal % j->shape.slots);
            if (err == SHERD_EEXPOSURE) sherd__job_reassign(j, slot);
            else if (err == SHERD_EBUSY) return;
            else if (err)
                sherd__job_stop(j, err, NULL, "cannot start a task: %s", sherd_strerror(err));
            more = !err || (err == SHERD_EEXPOSURE && j->owner[slot] != NOBODY);
        }
    }
}
