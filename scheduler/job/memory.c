/*
 * Memory of a job: its cells, and the record of the blocks that each node holds. If the scheme of a
 * job is given other operands, what still fits is kept, in particular which blocks are at the
 * nodes.
 */
#include "scheduler/job/internal.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"

static void reset_cells(sherd__job *j)
{
    memset(j->cells, 0, j->cells_len * sizeof *j->cells);
    memset(j->todo_from, 0, j->shape.slots * sizeof *j->todo_from);
    memset(j->folding.ready, 0, j->cells_len);
    memset(j->folding.held, 0, j->cells_len * sizeof(sherd__fragment *));
    memset(j->folding.have, 0, job_positions(j) * sizeof *j->folding.have);
    memset(j->accepted_at, 0, job_positions(j) * sizeof *j->accepted_at);
    j->folding.next = j->folding.folded = j->folded = j->fold_pos = 0;
    j->finishing = j->done = false;
}

static void free_cells(sherd__job *j)
{
    sherd__free(j->folding.held);
    sherd__free(j->folding.ready);
    sherd__free(j->folding.have);
    sherd__free(j->accepted_at);
    sherd__free(j->cells);
    j->folding = (job_folding){ 0 };
    j->accepted_at = NULL;
    j->cells = NULL;
    j->cells_len = j->cells_room = 0;
}

/* Allocates the cells for the scheme's shape. */
static int allocate_cells(sherd__job *j)
{
    size_t positions = (size_t)j->shape.tiles * j->shape.panels, cells;
    if (!sherd__mul(positions, j->shape.slots, &cells) || cells >= UINT32_MAX) return SHERD_ENOMEM;
    j->cells_len = j->cells_room = cells;
    j->cells = sherd__calloc(cells, sizeof *j->cells);
    j->folding.held = sherd__calloc(cells, sizeof(sherd__fragment *));
    j->folding.ready = sherd__calloc(cells, 1);
    j->folding.have = sherd__calloc(positions, sizeof *j->folding.have);
    j->accepted_at = sherd__calloc(positions, sizeof *j->accepted_at);
    return j->cells && j->folding.held && j->folding.ready && j->folding.have && j->accepted_at
               ? SHERD_OK
               : SHERD_ENOMEM;
}

static int allocate_holds(sherd__job *j)
{
    j->holds_room = (size_t)j->shape.slots * j->shape.tiles;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        sherd__free(j->nodes[i].holds);
        j->nodes[i].holds = sherd__calloc(j->holds_room, 1);
        if (!j->nodes[i].holds) return SHERD_ENOMEM;
    }
    return SHERD_OK;
}

static int allocate(sherd__job *j)
{
    j->nodes = sherd__calloc(j->o.nodes, sizeof *j->nodes);
    j->owner = sherd__calloc(j->shape.slots, sizeof *j->owner);
    j->todo_from = sherd__calloc(j->shape.slots, sizeof *j->todo_from);
    j->dead = sherd__calloc(job_dead_bytes(j), 1);
    j->medians = sherd__calloc(j->o.nodes, sizeof *j->medians);
    if (!j->o.deliveries) j->deliveries = sherd__calloc(j->o.nodes, sizeof *j->deliveries);
    if (!j->medians || (!j->o.deliveries && !j->deliveries)) return SHERD_ENOMEM;
    if (!j->nodes || !j->owner || !j->todo_from || !j->dead || allocate_cells(j) ||
        allocate_holds(j))
        return SHERD_ENOMEM;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        job_node *n = &j->nodes[i];
        n->depth = j->o.depth;
        n->delivery = j->deliveries
                          ? &j->deliveries[i]
                          : (void *)((char *)j->o.deliveries + i * j->o.deliveries_stride);
        n->domain = j->o.domain[i];
        if (j->shape.left_stays && !(n->lefts = sherd__calloc(job_lefts(j), 1)))
            return SHERD_ENOMEM;
    }
    return SHERD_OK;
}

int sherd__job_new(sherd__job **out, const sherd__job_options *opt)
{
    *out = NULL;
    sherd__job *j = sherd__calloc(1, sizeof *j);
    if (!j) return SHERD_ENOMEM;
    j->o = *opt;
    j->hiding = *opt->hiding;
    j->hiding.ops->shape(j->hiding.ctx, &j->shape);
    int err = j->shape.slots > opt->nodes ? SHERD_EINVAL : allocate(j);
    if (!err && !sherd__job_owners_init(j)) err = SHERD_EINVAL;
    if (err) {
        sherd__job_free(j);
        return err;
    }
    reset_cells(j);
    *out = j;
    return SHERD_OK;
}

void sherd__job_free(sherd__job *j)
{
    if (!j) return;
    assert(sherd__job_idle(j) && "the executor holds none of its work");
    for (uint64_t i = 0; j->folding.held && i < j->cells_len; i++)
        sherd__fragment_free(j->folding.held[i]);
    for (uint32_t i = 0; j->nodes && i < j->o.nodes; i++) {
        sherd__free(j->nodes[i].holds);
        sherd__free(j->nodes[i].lefts);
    }
    free_cells(j);
    sherd__free(j->nodes);
    sherd__free(j->owner);
    sherd__free(j->deliveries);
    sherd__free(j->medians);
    sherd__free(j->todo_from);
    sherd__free(j->dead);
    sherd__free(j);
}

/* Adjusts the cells after the scheme was given other operands. If the left blocks are resident, the
 * right ones have been dropped; if the right blocks are resident, their layout is unchanged. */
static int reshape(sherd__job *j)
{
    uint32_t lefts = job_lefts(j), tiles = j->shape.tiles;
    j->hiding.ops->shape(j->hiding.ctx, &j->shape);
    uint64_t cells = (uint64_t)j->shape.tiles * j->shape.panels * j->shape.slots;
    if (!j->shape.left_stays) {
        if (cells > j->cells_room || tiles != j->shape.tiles) return SHERD_EINVAL;
        j->cells_len = cells;
        return SHERD_OK;
    }
    if (lefts != job_lefts(j)) return SHERD_EINVAL;
    if (cells <= j->cells_room && tiles == j->shape.tiles) {
        j->cells_len = cells;
        return SHERD_OK;
    }
    free_cells(j);
    int err = allocate_cells(j);
    return err ? err : allocate_holds(j);
}

int sherd__job_again(sherd__job *j)
{
    if (j->err || !sherd__job_idle(j) || (!j->done && j->attempts)) return SHERD_EINVAL;
    int err = reshape(j);
    if (err) return err;
    sherd__ledger_next_left(j->o.ledger);
    j->stats = (sherd__job_stats){ 0 };
    sherd__job_rest(j);
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        j->nodes[i].accepted = 0;
        j->nodes[i].owed_ms = j->nodes[i].missed_ms = j->nodes[i].moved = 0;
        j->nodes[i].own = 0;
        j->nodes[i].work = 0;
        j->nodes[i].depth = j->o.depth;
        j->nodes[i].refused_upto = 0;
        j->nodes[i].relieved = false;
    }
    reset_cells(j);
    return SHERD_OK;
}
