/*
 * A member that says that a gradient does not fit its scale, or that a cost is no number. That may
 * be so, and then the step is asked for with a coarser scale, or the training ends; but it is one
 * member's word, and of a member that says it of everything no training would come to an end.
 * Grading is the same to the bit wherever it is done: so others say so too, or grade that part.
 *
 * A second member that refuses settles it. Else shards are dealt anew, each part to the next
 * member, until half of the members have graded the part in question without finding anything: then
 * whoever refused it goes. So an honest member never goes by the word of fewer than half of all;
 * that two who lie are believed costs scales that are too coarse, or ends the training in words.
 */
#include <stdio.h>

#include "scheduler/allreduce/internal.h"

void sherd__allreduce_trust(sherd__allreduce_job *j)
{
    j->doubted = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].denied = false;
}

/* Which part of the deal it has. */
static uint32_t part_of(const sherd__allreduce_job *j, const member *m)
{
    return (m->self + j->turned) % j->members;
}

void sherd__allreduce_doubt(sherd__allreduce_job *j, uint32_t node, int code, const char *text)
{
    member *m = &j->nodes[node];
    if (m->from == m->to) {
        sherd__allreduce_leave_out(j, node, "refuses shards where it has none");
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
    (void)sherd__allreduce_settled(j); /* the others may have graded */
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
    if (2 * denied < j->members) { /* who says so has it to itself: the next one is asked */
        j->turned++;
        sherd__allreduce_call_off(j);
        j->phase = IDLE;
        return false;
    }
    uint32_t node = j->doubted - 1;
    char text[sizeof j->why + 100];
    snprintf(text, sizeof text,
             "finds a step that does not fit where others find that it does (%s)", j->why);
    sherd__allreduce_leave_out(j, node, text);
    sherd__allreduce_break_without(j, text);
    return false;
}
