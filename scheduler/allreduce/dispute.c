/*
 * Blame for conflicting reports of members. A dispute is a pair of nodes of which at least one
 * reports falsely or has a broken machine; it is remembered until the training ends. A node that is
 * in disputes with two others is left out. No dispute is recorded if a node of the pair that is
 * already at fault explains it, so a liar is in at most two disputes before it is left out. An
 * honest member is left out only by two disputes, each with a liar: there are never more honest
 * members left out than liars, however they collude.
 *
 * Two members that wait for the same one count as a pair of disputes, and both disputes stay
 * recorded. Two liars that have caused one honest member to be left out are therefore in their
 * second dispute if they accuse the next one.
 */
#include "scheduler/allreduce/internal.h"

static unsigned ones(uint64_t bits)
{
    unsigned n = 0;
    for (; bits; bits &= bits - 1) n++;
    return n;
}

bool sherd__allreduce_at_fault(const sherd__allreduce_job *j, uint32_t node)
{
    return ones(j->nodes[node].disputes) >= 2;
}

void sherd__allreduce_dispute(sherd__allreduce_job *j, uint32_t a, uint32_t b)
{
    if (sherd__allreduce_at_fault(j, a) || sherd__allreduce_at_fault(j, b)) return;
    j->nodes[a].disputes |= UINT64_C(1) << b;
    j->nodes[b].disputes |= UINT64_C(1) << a;
}
