/*
 * Moves work from a slow node to an idle one, where every node holds the same B. Idle nodes
 * take the cells of others as long as some are not started (next_cell in send.c). Where panels
 * of A stay at nodes, they take only cells whose panel they hold, or those of slow nodes. What
 * is left then is what slow nodes have in progress: up to `depth` cells, for which everything
 * would wait. An idle node takes over the last of them if it is likely to have it done much
 * sooner. The task is cancelled, and the slow node is given fewer at a time from then on. It
 * takes over no cell itself: otherwise two silent nodes could pass one to each other without
 * end, and neither would be late.
 */
#include <math.h>

#include "scheduler/job/internal.h"
#include "scheduler/plan/cost.h"

/* Returns the time until the node's last answer is expected. A node whose answer is late is
 * expected to need as long again. */
static double expected_ms(const sherd__job *j, const job_node *n)
{
    double passed = (double)(j->now_ms - n->progress_ms), each = n->delivery->usual_ms;
    if (passed > each) return n->sent * passed;
    return n->sent * each - passed;
}

/* Returns the time in which work of other nodes may be left to them, where a node is idle. */
static double soon_ms(const job_node *idle)
{
    return 1e3 * SHERD__TAKE_OVER_S + SHERD__TAKE_OVER_TIMES * idle->delivery->usual_ms;
}

/* Returns the cells of a slot that no node was given yet. */
static uint32_t todo_of(const sherd__job *j, uint32_t slot)
{
    uint32_t n = 0;
    for (uint64_t pos = j->todo_from[slot]; pos < job_positions(j); pos++)
        n += j->cells[job_ordinal(j, slot, pos)].state == CELL_TODO;
    return n;
}

bool sherd__job_may_help(const sherd__job *j, uint32_t node, uint64_t ordinal)
{
    const job_node *n = &j->nodes[node];
    const sherd__cell cell = job_cell_at(j, ordinal);
    const uint32_t by = j->owner[cell.slot];
    if (!j->shape.left_stays || by == NOBODY || n->lefts[job_left_at(j, cell)] != LEFT_NONE)
        return true;
    const job_node *owner = &j->nodes[by];
    double passed = owner->sent ? (double)(j->now_ms - owner->progress_ms) : 0;
    double rest = fmax(passed, owner->delivery->usual_ms) * (owner->sent + todo_of(j, cell.slot));
    return rest > soon_ms(n);
}

/* Returns the last cell in progress of the node that the idle one may take over, or cells_len. */
static uint64_t last_sent(const sherd__job *j, uint32_t node, uint32_t idle)
{
    for (uint64_t i = j->cells_len; i-- > 0;) {
        const job_cell *c = &j->cells[i];
        if (c->state == CELL_SENT && c->node == node)
            return sherd__ledger_may(j->o.ledger, j->nodes[idle].domain, job_cell_at(j, i))
                       ? i
                       : j->cells_len;
    }
    return j->cells_len;
}

static uint32_t slowest(const sherd__job *j, uint32_t idle)
{
    uint32_t worst = NOBODY;
    double most = soon_ms(&j->nodes[idle]);
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const job_node *n = &j->nodes[i];
        if (i == idle || n->state != NODE_UP || n->sent == 0) continue;
        double ms = expected_ms(j, n);
        if (ms <= most) continue;
        most = ms;
        worst = i;
    }
    return worst;
}

static void name_slow(const sherd__job *j, uint32_t node, uint32_t idle)
{
    const sherd__job_owner *o = &j->o.owner;
    bool first = !o->first_report || o->first_report(o->ctx, node, SHERD__JOB_IS_SLOW, "");
    sherd__job_say(j, first ? SHERD_LOG_WARN : SHERD_LOG_DEBUG,
                   "%s is slow: %s takes over tasks that it has in progress",
                   sherd__job_name(j, node), sherd__job_name(j, idle));
}

/* Takes the cell back from its node. */
static void cancel(sherd__job *j, uint64_t ordinal)
{
    const job_cell *c = &j->cells[ordinal];
    uint32_t node = c->node;
    job_node *n = &j->nodes[node];
    (void)!sherd__session_cancel(n->session, j->o.id, (uint32_t)ordinal + 1, c->attempt);
    j->o.owner.touch(j->o.owner.ctx, node);
    j->stats.cancelled++;
    sherd__job_awaited(n, j->now_ms);
    sherd__job_back(j, ordinal);
    sherd__job_excused(j, node);
    n->relieved = true;
    n->depth = n->under_way > 0 ? n->under_way : 1;
}

uint64_t sherd__job_relieve(sherd__job *j, uint32_t idle)
{
    const job_node *n = &j->nodes[idle];
    bool able = j->shape.shared && !j->shape.threshold && !n->relieved && n->under_way == 0 &&
                n->accepted > 0;
    uint32_t from = able ? slowest(j, idle) : NOBODY;
    uint64_t ordinal = from == NOBODY ? j->cells_len : last_sent(j, from, idle);
    if (ordinal < j->cells_len) {
        name_slow(j, from, idle);
        cancel(j, ordinal);
    }
    return ordinal;
}
