/*
 * A member may report that a gradient does not fit its scale, or that a cost is not a number. If
 * this is true, the step is repeated with a coarser scale, or the training ends. But it is the
 * claim of one member, and if it makes the claim for every step, no training would finish.
 * Gradients have the same bits on every member, so other members confirm the claim or compute the
 * same part.
 *
 * The claims of more than half of the members settle the question, whatever their parts were. If
 * fewer make one, shards are partitioned again, with each part moved to the next member, until
 * either more than half have claimed, or half of the members have computed the part in question
 * without an error: then those that refused that part are left out. So if fewer than half of the
 * members report falsely, at least one honest member confirms each result: liars can neither end
 * the training nor make its scales coarser, and no honest member is left out.
 */
#include <stdio.h>

#include "scheduler/allreduce/internal.h"

void sherd__allreduce_trust(sherd__allreduce_job *j)
{
    j->doubted = false;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        member *m = &j->nodes[i];
        m->denied = m->accuses = false;
        m->claim = SHERD_OK;
    }
}

/* Returns the index of its part of the partition. */
static uint32_t part_of(const sherd__allreduce_job *j, const member *m)
{
    return (m->self + j->turned) % j->members;
}

/* Returns how many members have made this claim, SHERD_OK: any claim. */
static uint32_t claims(const sherd__allreduce_job *j, int code)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->members; i++) {
        int claim = j->nodes[j->node_of[i]].claim;
        n += code ? claim == code : claim != SHERD_OK;
    }
    return n;
}

void sherd__allreduce_doubt(sherd__allreduce_job *j, uint32_t node, int code, const char *text)
{
    member *m = &j->nodes[node];
    if (m->from == m->to) {
        sherd__allreduce_leave_out(j, node, "refuses shards but has none");
        sherd__allreduce_break_without(j, text);
        return;
    }
    m->refused = true;
    m->claim = code;
    j->refused = code;
    if (!j->doubted) {
        j->doubted = true;
        j->doubted_part = part_of(j, m);
        snprintf(j->why, sizeof j->why, "%s", text);
    }
    m->accuses |= part_of(j, m) == j->doubted_part;
    if (2 * claims(j, SHERD_OK) > j->members) {
        /* A coarser scale is tried unless more than half report that none helps. */
        bool none = 2 * claims(j, SHERD_ERANGE) > j->members;
        sherd__allreduce_answer(j, none ? SHERD_ERANGE : SHERD_EBUSY, text);
        return;
    }
    (void)sherd__allreduce_settled(j); /* the others may have answered already */
}

static void leave_out_accusers(sherd__allreduce_job *j)
{
    char text[sizeof j->why + 100];
    snprintf(text, sizeof text,
             "reports that a step does not fit, and others report that it does (%s)", j->why);
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (j->nodes[i].in && j->nodes[i].accuses) sherd__allreduce_leave_out(j, i, text);
    sherd__allreduce_break_without(j, text);
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
    if (2 * denied >= j->members) {
        leave_out_accusers(j);
    } else { /* too few members have computed it: the next one does */
        j->turned++;
        sherd__allreduce_call_off(j);
        j->phase = IDLE;
    }
    return false;
}
