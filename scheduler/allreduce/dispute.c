/*
 * Who is at fault where one member's word stands against another's. A dispute is a pair of which
 * one lies, or of whose machines one is broken, and it is remembered until the training ends. Who
 * is in disputes with two others goes. No dispute is noted that one of a pair who is at fault
 * already explains, so whoever lies is in two at most before it goes; an honest member goes only by
 * two disputes, each with a liar: never more honest members than liars, however they agree.
 *
 * (Two members that wait for one pass for a pair of disputes, and both stay noted: two liars that
 * have had one honest member left out are themselves in their second dispute with the next one.)
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
