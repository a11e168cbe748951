/*
 * A member may report that a gradient does not fit its scale, or that a cost is not a number. If
 * this is true, the step is repeated with a coarser scale, or the training ends. But it is the
 * claim of one member, and if it makes the claim for every step, no training would finish.
 * Gradients have the same bits on every member, so other members confirm the claim or compute the
 * same part.
 *
 * A refusal by a second member settles the question. Otherwise shards are partitioned again, with
 * each part moved to the next member, until half of the members have computed the part in question
 * without an error: then the member that refused it is left out. An honest member is thus never
 * left out on the claims of fewer than half of all members. The cost of believing two colluding
 * liars is a scale that is too coarse, or an early end of the training with an error message.
 */
#include <stdio.h>

#include "scheduler/allreduce/internal.h"

void sherd__allreduce_trust(sherd__allreduce_job *j)
{
    j->doubted = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].denied = false;
}

/* Returns the index of its part of the partition. */
static uint32_t part_of(const sherd__allreduce_job *j, const member *m)
{
    return (m->self + j->turned) % j->members;
}

void sherd__allreduce_doubt(sherd__allreduce_job *j, uint32_t node, int code, const char *text)
{
    member *m = &j->nodes[node];
    if (m->from == m->to) {
        sherd__allreduce_leave_out(j, node, "refuses shards but has none");
        sherd__allreduce_break_without(j, text);
        return;
    }
    if (j->members == 1 || (j->doubted && j->doubted != node + 1)) {
        sherd__allreduce_answer(j, code, text);
        return;
    }
    m->refused = true;
    if (!j->doubted) {
        j->doubted = node + 1;
        j->doubted_part = part_of(j, m);
        j->refused = code;
        snprintf(j->why, sizeof j->why, "%s", text);
    }
    (void)sherd__allreduce_settled(j); /* the others may have answered already */
}

bool sherd__allreduce_settled(sherd__allreduce_job *j)
{
    uint32_t denied = 0;
    for (uint32_t i = 0; i < j->members; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        if (!m->graded && !m->refused) return false;
    }
    if (!j->doubted) return true;
    for (uint32_t i = 0; i < j->members; i++) {
        member *m = &j->nodes[j->node_of[i]];
        m->denied |= m->graded && part_of(j, m) == j->doubted_part;
        denied += m->denied;
    }
    if (2 * denied < j->members) { /* too few members have computed it: the next one does */
        j->turned++;
        sherd__allreduce_call_off(j);
        j->phase = IDLE;
        return false;
    }
    uint32_t node = j->doubted - 1;
    char text[sizeof j->why + 100];
    snprintf(text, sizeof text,
             "reports that a step does not fit, and others report that it does (%s)", j->why);
    sherd__allreduce_leave_out(j, node, text);
    sherd__allreduce_break_without(j, text);
    return false;
}
