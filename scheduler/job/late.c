/*
 * Deadlines of a job's nodes (scheduler/cluster/deadline.h). A node owes an answer while one of its
 * tasks is sent and not answered. Time for hiding a cell or checking an answer here is not charged
 * to the node. Tasks of a spare node are cancelled before they are overdue; if the node is silent,
 * one of them is left to run (trial.c).
 */
#include <math.h>

#include "scheduler/job/internal.h"

#define LATE_MAX_MS 60000.0 /* upper limit of the deadline, because cells are small */

static uint64_t moved(const job_node *n)
{
    return sherd__session_moved(n->session);
}

void sherd__job_owes(sherd__job *j, uint32_t node, uint64_t now_ms)
{
    job_node *n = &j->nodes[node];
    if (n->sent > 0 && !n->owing) n->owed_from_ms = now_ms;
    n->owing = n->sent > 0;
    sherd__delivery_owes(n->delivery, n->sent > 0, moved(n), now_ms);
}

void sherd__job_excused(sherd__job *j, uint32_t node)
{
    job_node *n = &j->nodes[node];
    sherd__delivery_owes(n->delivery, false, moved(n), j->now_ms);
    n->owing = false;
    sherd__job_owes(j, node, j->now_ms);
}

/* Of the time for a task in place of another node, what is usual for this node does not count. */
void sherd__job_answered(sherd__job *j, uint32_t node, bool others, uint64_t now_ms)
{
    job_node *n = &j->nodes[node];
    sherd__delivery_made(n->delivery, &j->peers, moved(n), now_ms);
    uint64_t took = n->owing ? now_ms - n->owed_from_ms : 0;
    if (others) {
        uint64_t usual = n->own ? n->owed_ms / n->own : took;
        n->owed_ms += took > usual ? took - usual : 0;
    } else {
        n->owed_ms += took;
        n->own++;
        n->moved += moved(n) - n->moved_at;
    }
    n->owed_from_ms = now_ms;
    n->moved_at = moved(n);
}

void sherd__job_unneeded(sherd__job *j, uint32_t node)
{
    if (j->nodes[node].state == NODE_AWAY) j->nodes[node].owed_from_ms = j->now_ms;
}

void sherd__job_awaited(job_node *n, uint64_t now_ms)
{
    if (n->owing) n->missed_ms += now_ms - n->owed_from_ms;
    n->owing = false;
}

sherd__job_pace sherd__job_node_pace(const sherd__job *j, uint32_t node)
{
    const job_node *n = &j->nodes[node];
    return (sherd__job_pace){ .seconds = (double)n->owed_ms * 1e-3,
                              .missed = (double)n->missed_ms * 1e-3,
                              .bytes = n->moved,
                              .work = n->work };
}

void sherd__job_late(sherd__job *j, uint64_t now_ms)
{
    size_t stride = j->o.deliveries ? j->o.deliveries_stride : sizeof *j->deliveries;
    sherd__delivery_peers_of(&j->peers, j->nodes[0].delivery, stride, j->o.nodes, j->medians);
    for (uint32_t i = 0; i < j->o.nodes && !j->done; i++) {
        job_node *n = &j->nodes[i];
        if (n->state != NODE_UP) continue;
        sherd__delivery *d = n->delivery;
        sherd__job_owes(j, i, now_ms);
        sherd__delivery_charge(d, &j->peers, moved(n), now_ms);
        double allowed = fmin(sherd__delivery_allowed(d, &j->peers), LATE_MAX_MS);
        bool late = sherd__delivery_late(d, &j->peers, allowed);
        if (late || sherd__job_trial_failed(j, n, allowed)) {
            const char *why = late && sherd__delivery_slow(d, allowed) ? "its answers take too long"
                                                                       : "it does not answer tasks";
            sherd__delivery_expelled(d);
            j->o.owner.expel(j->o.owner.ctx, i, SHERD_ESILENT, why);
            sherd__job_node_down(j, i, false, why, now_ms);
        }
    }
}
