/*
 * Sums that make no progress. Members have no clock, and a member that waits for a part cannot know
 * whether its sender is slow, cut off or silent; only the leader sees all of them. When a sum takes
 * far longer than usual, members are asked for their progress, and as long as anything moves the
 * leader waits. Otherwise a member waits for another one that claims to have sent its part. If
 * several wait for the same sender, the sender is at fault; if only one waits, either of the two
 * may be. Then the round is repeated with the members in an order in which neither of the two
 * starts by sending to the other. A node that is in such disputes with two others is left out
 * (dispute.c).
 */
#include <stdio.h>
#include <string.h>

#include "scheduler/allreduce/internal.h"

#define QUIET_MS 5000.0   /* at least, without any progress */
#define QUIET_TIMES 10.0  /* times the usual duration of a sum */
#define MOVED_BYTES 4096u /* more than sessions exchange when idle */
#define ORDERS 64u

/* Returns the milliseconds after which members are asked, or asked again. */
static double quiet_ms(const sherd__allreduce_job *j)
{
    double ms = QUIET_TIMES * j->usual_ms;
    return ms > QUIET_MS ? ms : QUIET_MS;
}

void sherd__allreduce_watch_round(sherd__allreduce_job *j)
{
    j->graded_ms = j->moved_ms = j->now_ms;
    j->asked_ms = 0;
    j->looks = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].replied = false;
}

void sherd__allreduce_take_where(sherd__allreduce_job *j, uint32_t node, const uint8_t *bytes)
{
    member *m = &j->nodes[node];
    sherd__allreduce_where w, was = m->where;
    bool fits = sherd__allreduce_where_parse(&w, bytes);
    m->replied = fits && w.round == j->round;
    if (fits) {
        m->where = w;
        m->asked_ms = 0;
    }
    if (m->breaking) sherd__allreduce_take_broken(j, node);
    else if (fits && !(j->phase == STEPPING && m->graded)) sherd__allreduce_take_alive(j, m, &was);
    if (!m->replied) return;
    m->moved = j->looks <= 1 || w.phase != was.phase || w.step != was.step ||
               w.bytes - was.bytes >= MOVED_BYTES;
}

/* Asks every member that has not reported its sum. */
static void look(sherd__allreduce_job *j)
{
    j->asked_ms = j->now_ms;
    j->looks++;
    for (uint32_t i = 0; i < j->members && !j->w.done; i++) {
        member *m = &j->nodes[j->node_of[i]];
        m->replied = m->moved = false;
        if (!m->summed)
            sherd__allreduce_sent(j, j->node_of[i], sherd__allreduce_send_where(j, j->node_of[i]));
    }
}

/* Returns true if member number `waits` waits for a part from `sender` in the first half of a sum:
 * a member that does not send or receive stops all others there. */
static bool meets(const sherd__allreduce_job *j, uint32_t waits, uint32_t sender)
{
    sherd__reduce kind = j->o.train.kind;
    for (uint32_t s = 0; s < sherd__reduce_steps(kind, j->members) / 2; s++)
        if (sherd__reduce_step_of(kind, j->members, waits, s).from == sender) return true;
    return false;
}

/* Three members of a ring have neighbours in one direction only. Three that halve all send to each
 * other, but there two members wait for one that is silent. */
void sherd__allreduce_part(sherd__allreduce_job *j, uint32_t waits, uint32_t sender)
{
    uint32_t first = j->order + 1, one_way = first;
    for (j->order = first; j->order < first + ORDERS; j->order++) {
        uint32_t nodes[SHERD__ALLREDUCE_MOST], n = 0, at = 0, from = 0;
        for (uint32_t i = 0; i < j->o.nodes; i++)
            if (j->nodes[i].in) nodes[n++] = i;
        sherd__allreduce_shuffle(j->order, nodes, n);
        for (uint32_t i = 0; i < n; i++) {
            if (nodes[i] == waits) at = i;
            if (nodes[i] == sender) from = i;
        }
        if (meets(j, at, from)) continue;
        if (!meets(j, from, at)) return;
        if (one_way == first) one_way = j->order;
    }
    j->order = one_way;
}

static void convict(sherd__allreduce_job *j, uint32_t node, const char *why)
{
    sherd__allreduce_leave_out(j, node, why);
    sherd__allreduce_break_without(j, why);
}

/* Leaves out those of these nodes that are now in disputes with two others. */
static bool convict_all(sherd__allreduce_job *j, uint32_t sender, const uint32_t *waits, uint32_t n,
                        const char *text)
{
    bool any = sherd__allreduce_at_fault(j, sender);
    if (any) sherd__allreduce_leave_out(j, sender, "sends no parts to others");
    for (uint32_t i = 0; i < n; i++) {
        if (!sherd__allreduce_at_fault(j, waits[i])) continue;
        sherd__allreduce_leave_out(j, waits[i], "receives no parts from others");
        any = true;
    }
    if (any) sherd__allreduce_break_without(j, text);
    return any;
}

/* Nodes `waits` wait for a part that `sender` claims to have sent. */
static void suspect(sherd__allreduce_job *j, uint32_t sender, const uint32_t *waits, uint32_t n)
{
    char text[1000], name[400];
    uint64_t before = j->nodes[sender].disputes;
    snprintf(name, sizeof name, "%s", sherd__work_name(&j->w, sender));
    snprintf(text, sizeof text,
             "a sum makes no progress: %s waits for a part from %s, which reports that it has sent "
             "it",
             sherd__work_name(&j->w, waits[0]), name);
    sherd__work_say(&j->w, "%s", text);
    for (uint32_t i = 0; i < n; i++) sherd__allreduce_dispute(j, waits[i], sender);
    if (convict_all(j, sender, waits, n, text)) return;
    if (j->members == 2) {
        convict(j, sender, "sends no parts to others");
    } else if (before == j->nodes[sender].disputes) { /* known, and it reaches all others */
        convict(j, waits[0], "receives no parts from others");
    } else {
        sherd__allreduce_part(j, waits[0], sender);
        sherd__allreduce_break_without(j, text); /* progress: the number of pairs is limited */
    }
}

/* Returns the number of the member for which this one waits, if that member claims to have sent its
 * part; otherwise UINT32_MAX. */
static uint32_t waits_for(const sherd__allreduce_job *j, uint32_t i)
{
    const member *m = &j->nodes[j->node_of[i]];
    sherd__reduce kind = j->o.train.kind;
    if (m->summed || m->where.phase != SHERD__ALLREDUCE_EXCHANGING ||
        m->where.step >= sherd__reduce_steps(kind, j->members))
        return UINT32_MAX;
    uint32_t from = sherd__reduce_step_of(kind, j->members, i, m->where.step).from;
    const member *f = &j->nodes[j->node_of[from]];
    bool handed = f->summed || f->where.phase == SHERD__ALLREDUCE_SUMMED ||
                  f->where.step >= m->where.step;
    return handed ? from : UINT32_MAX;
}

/* Called if nothing has moved between two rounds of questions, or the sum is overdue. Returns false
 * if no member is at fault. */
static bool judge(sherd__allreduce_job *j)
{
    uint32_t waiting[SHERD__ALLREDUCE_MOST] = { 0 }, nodes[SHERD__ALLREDUCE_MOST] = { 0 }, n = 0;
    uint32_t most = UINT32_MAX;
    for (uint32_t i = 0; i < j->members; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        bool part = m->summed || m->where.phase == SHERD__ALLREDUCE_SUMMED ||
                    m->where.phase == SHERD__ALLREDUCE_EXCHANGING;
        if (!part) {
            convict(j, j->node_of[i], "does not take part in the sum");
            return true;
        }
        uint32_t from = waits_for(j, i);
        if (from == UINT32_MAX) continue;
        waiting[from]++;
        if (most == UINT32_MAX || waiting[from] > waiting[most]) most = from;
    }
    if (most == UINT32_MAX) return false; /* all members have their parts and compute */
    for (uint32_t i = 0; i < j->members; i++)
        if (waits_for(j, i) == most) nodes[n++] = j->node_of[i];
    suspect(j, j->node_of[most], nodes, n);
    return true;
}

/* A member that reports moving bytes, or that it has the sum and is about to report it, is believed
 * until the time limit of the sum. */
bool sherd__allreduce_overdue(sherd__allreduce_job *j)
{
    uint32_t keeps = UINT32_MAX;
    bool any = false;
    for (uint32_t i = 0; i < j->members; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        any |= m->summed;
        if (m->summed) continue;
        if (!j->looks || m->where.round != j->round) return false; /* it has not been asked yet */
        if (m->where.phase == SHERD__ALLREDUCE_SUMMED) keeps = j->node_of[i];
    }
    if (!any || keeps == UINT32_MAX) return judge(j);
    convict(j, keeps, "does not report its sum");
    return true;
}

void sherd__allreduce_watch(sherd__allreduce_job *j)
{
    bool all = true, moved = false;
    if (j->phase != STEPPING || !j->graded_ms) return;
    if (!j->asked_ms) {
        if ((double)(j->now_ms - j->moved_ms) >= quiet_ms(j)) look(j);
        return;
    }
    for (uint32_t i = 0; i < j->members; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        if (m->summed && !m->asked) continue; /* a member that has summed must still answer WHERE */
        all &= m->replied;
        moved |= m->moved;
        if (m->replied || (double)(j->now_ms - j->asked_ms) < MEMBER_ANSWER_MS) continue;
        j->w.owner.expel(j->w.owner.ctx, j->node_of[i], SHERD_ESILENT,
                         "does not report the progress of a sum");
        return;
    }
    if (!all) return;
    j->moved_ms = j->now_ms; /* the next round of questions is a new one, whatever is decided */
    j->asked_ms = 0;
    if (!moved) (void)judge(j);
}
