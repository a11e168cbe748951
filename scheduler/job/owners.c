/*
 * Assigns the work of a slot: to the node that it was planned for, and if that node is gone for
 * good, to another one, as far as the ledger permits. A slot that is a share of an encoding stays
 * in its domain: slot s belongs to domain s and no other may take it over. For such slots the
 * answers that can still arrive are counted instead.
 */
#include <string.h>

#include "scheduler/job/internal.h"

/* Returns the position of the slot's first cell in state todo; cells / slots if there is none. */
uint64_t sherd__job_first_todo(sherd__job *j, uint32_t slot)
{
    uint64_t end = job_positions(j), pos = j->todo_from[slot];
    while (pos < end && j->cells[job_ordinal(j, slot, pos)].state != CELL_TODO) pos++;
    return j->todo_from[slot] = pos;
}

static uint32_t owned(const sherd__job *j, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < j->shape.slots; s++) n += j->owner[s] == node;
    return n;
}

/* Returns the node with the least load that may take over the slot's next cell, or NOBODY. */
static uint32_t adopter(const sherd__job *j, sherd__cell cell)
{
    uint32_t best = NOBODY, best_owned = 0;
    double best_seen = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const job_node *n = &j->nodes[i];
        if (n->state != NODE_UP || !sherd__ledger_may(j->o.ledger, n->domain, cell)) continue;
        if (j->shape.threshold && (n->domain != cell.slot || job_dead(j, n->domain))) continue;
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

static bool any_in(const sherd__job *j, node_state state)
{
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (j->nodes[i].state == state) return true;
    return false;
}

static void nobody_may(sherd__job *j)
{
    if (!any_in(j, NODE_UP))
        sherd__job_stop(j, SHERD_EFEWNODES,
                        j->no_memory ? "end other programs that use the memory of these nodes or "
                                       "of their devices, or start more nodes"
                                     : "start more nodes, or read the nodes' own messages",
                        "no node is left for the work%s%s",
                        j->last_refusal[0] ? "; last refusal: " : "", j->last_refusal);
    else
        sherd__job_stop(j, SHERD_EEXPOSURE,
                        "raise --exposure-max, or use more nodes so that each needs less",
                        "the work of a lost node cannot be given to another node: each live domain "
                        "would be given more than %.3g of A or %.3g of B",
                        sherd__ledger_bound(j->o.ledger, 0), sherd__ledger_bound(j->o.ledger, 1));
}

/* Finds another owner for a slot. Fails the job if there is none and no node can return. */
void sherd__job_reassign(sherd__job *j, uint32_t slot)
{
    uint64_t pos = sherd__job_first_todo(j, slot);
    if (j->done || pos == job_positions(j)) return;
    uint32_t from = j->owner[slot];
    uint32_t to = adopter(j, job_cell_at(j, job_ordinal(j, slot, pos)));
    j->owner[slot] = to;
    if (to != NOBODY) {
        if (from != NOBODY && from != to && !j->nodes[from].absent)
            sherd__job_say(j, SHERD_LOG_WARN, "%s takes over from %s", sherd__job_name(j, to),
                           sherd__job_name(j, from));
    } else if (!j->shape.threshold && !any_in(j, NODE_AWAY)) {
        nobody_may(j); /* otherwise repeated when a node returns or is given up */
    }
}

/* Marks the domains that cannot hold a share. A domain may be given a share, and is expected to
 * answer, if one of its nodes is up or may return and none of its nodes is convicted. All code that
 * makes, assigns or waits for shares uses this result. */
static void note_dead(sherd__job *j)
{
    memset(j->dead, 0xff, job_dead_bytes(j));
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const job_node *n = &j->nodes[i];
        if (n->domain < j->shape.slots && n->state != NODE_GONE)
            j->dead[n->domain / 8] &= (uint8_t) ~(1 << n->domain % 8);
    }
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const job_node *n = &j->nodes[i];
        if (n->domain < j->shape.slots && n->convicted)
            j->dead[n->domain / 8] |= (uint8_t)(1 << n->domain % 8);
    }
}

static uint32_t shares_alive(const sherd__job *j)
{
    uint32_t alive = 0;
    for (uint32_t s = 0; s < j->shape.slots; s++) alive += !job_dead(j, s);
    return alive;
}

/* Returns whether this share has an answer, even if its node is gone by now, or can still get one.
 * An answer that is being checked counts until its verdict; if it is wrong, shares are counted
 * again. */
static bool may_count(const sherd__job *j, uint32_t slot, uint64_t pos)
{
    uint8_t state = j->cells[job_ordinal(j, slot, pos)].state;
    return state == CELL_DONE || state == CELL_JUDGING || !job_dead(j, slot);
}

/* Fails the job if a position can no longer have enough answers. */
static void count_shares(sherd__job *j)
{
    for (uint64_t pos = j->fold_pos; pos < job_positions(j) && !j->done; pos++) {
        uint32_t can = 0;
        if (job_closed(j, pos)) continue;
        for (uint32_t s = 0; s < j->shape.slots; s++) can += may_count(j, s, pos);
        if (can >= j->shape.threshold) continue;
        j->starved = true;
        j->alive = shares_alive(j);
        sherd__job_stop(j, SHERD_EFEWNODES,
                        "start more nodes, or allow more of them to be missing with --spare",
                        "%u of %u domains can still answer, and %u must%s%s", j->alive,
                        j->shape.slots, j->shape.threshold,
                        j->last_refusal[0] ? "; last refusal: " : "", j->last_refusal);
    }
}

void sherd__job_adopt(sherd__job *j)
{
    if (j->shape.threshold) note_dead(j);
    for (uint32_t s = 0; s < j->shape.slots && !j->done; s++) {
        uint32_t own = j->owner[s];
        if (own == NOBODY || j->nodes[own].state == NODE_GONE || job_dead(j, s))
            sherd__job_reassign(j, s);
    }
    if (j->shape.threshold) count_shares(j);
}

bool sherd__job_owners_init(sherd__job *j)
{
    for (uint32_t s = 0; s < j->shape.slots; s++) {
        j->owner[s] = j->shape.threshold ? NOBODY : s;
        for (uint32_t i = j->o.nodes; j->shape.threshold && i-- > 0;)
            if (j->nodes[i].domain == s) j->owner[s] = i;
        if (j->owner[s] == NOBODY) return false;
    }
    return true;
}
