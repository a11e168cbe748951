/*
 * Sums that stand still. Members have no clock, and whoever waits for a part cannot say whether its
 * sender is slow, cut off or mute; from here one sees all of them. When a sum takes far longer than
 * sums do, members are asked how far they are, and as long as anything moves, all is well. Else
 * somebody waits for one that says it has handed on its part. If several wait for that one, it is
 * at fault; of a pair either is. Then the round is made anew with the members in an order in which
 * the one does not begin by sending to the other, and who is in such a pair again is left out.
 */
#include <stdio.h>
#include <string.h>

#include "scheduler/circle_internal.h"

#define QUIET_MS 5000.0      /* at least, without anything that moves */
#define QUIET_TIMES 10.0     /* of what a sum takes */
#define ANSWER_MS 30000.0    /* its session lives, and it does not say where it is */
#define MOVED_BYTES 4096u    /* more than sessions say to each other by themselves */
#define ORDERS 64u

/* Milliseconds after which members are asked, and asked again. */
static double quiet_ms(const sherd__circle_job *j)
{
    double ms = QUIET_TIMES * j->usual_ms;
    return ms > QUIET_MS ? ms : QUIET_MS;
}

void sherd__circle_watch_round(sherd__circle_job *j)
{
    j->moved_ms = j->now_ms;
    j->asked_ms = 0;
    j->looks = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].told = false;
}

void sherd__circle_take_where(sherd__circle_job *j, member *m, const uint8_t *bytes)
{
    sherd__circle_where w, was = m->where;
    m->told = sherd__circle_where_parse(&w, bytes) && w.round == j->round;
    if (!m->told) return;
    m->moved = j->looks <= 1 || w.phase != was.phase || w.step != was.step ||
               w.bytes - was.bytes >= MOVED_BYTES;
    m->where = w;
}

/* Everybody who has not told its sum. */
static void look(sherd__circle_job *j)
{
    j->asked_ms = j->now_ms;
    j->looks++;
    for (uint32_t i = 0; i < j->members && !j->w.done; i++) {
        member *m = &j->nodes[j->node_of[i]];
        m->told = m->moved = false;
        if (!m->summed)
            sherd__circle_sent(j, j->node_of[i], sherd__circle_send_where(j, j->node_of[i]));
    }
}

/* Whether one of this number waits for a part from `sender` in the first half of a sum: who is mute
 * or deaf stops all the others there. */
static bool meets(const sherd__circle_job *j, uint32_t waits, uint32_t sender)
{
    sherd__reduce kind = j->o.train.kind;
    for (uint32_t s = 0; s < sherd__reduce_steps(kind, j->members) / 2; s++)
        if (sherd__reduce_step_of(kind, j->members, waits, s).from == sender) return true;
    return false;
}

/* The next order in which it does not, where there is one: three that halve all send to each other,
 * but there two wait for one that is mute. */
static void part_them(sherd__circle_job *j, uint32_t waits, uint32_t sender)
{
    uint32_t first = j->order + 1;
    for (j->order = first; j->order < first + ORDERS; j->order++) {
        uint32_t nodes[SHERD__CIRCLE_MOST], n = 0, at = 0, from = 0;
        for (uint32_t i = 0; i < j->o.nodes; i++)
            if (j->nodes[i].in) nodes[n++] = i;
        sherd__circle_shuffle(j->order, nodes, n);
        for (uint32_t i = 0; i < n; i++) {
            if (nodes[i] == waits) at = i;
            if (nodes[i] == sender) from = i;
        }
        if (!meets(j, at, from)) return;
    }
}

static void convict(sherd__circle_job *j, uint32_t node, const char *why)
{
    sherd__circle_leave_out(j, node, why);
    sherd__circle_break_without(j, why);
}

/* Nodes. The one waits for a part that the other says it has handed on; alone: nobody else
 * waits for that one. */
static void suspect(sherd__circle_job *j, uint32_t waits, uint32_t sender, bool alone)
{
    static const char mute[] = "gives no parts to others", deaf[] = "takes no parts from others";
    char text[1000], name[400];
    member *w = &j->nodes[waits], *s = &j->nodes[sender];
    snprintf(name, sizeof name, "%s", sherd__work_name(&j->w, sender));
    snprintf(text, sizeof text, "a sum stands still: %s waits for a part from %s, which says that "
             "it has handed it on", sherd__work_name(&j->w, waits), name);
    sherd__work_say(&j->w, "%s", text);
    if (!alone || j->members == 2 || (s->suspect && s->suspect != waits + 1)) {
        convict(j, sender, mute);
    } else if (w->suspect) { /* by others too; or again, though the other's parts reach everybody */
        convict(j, waits, deaf);
    } else {
        w->suspect = sender + 1;
        s->suspect = waits + 1;
        part_them(j, waits, sender);
        sherd__circle_break(j, text);
    }
}

/* Whom this member waits for, as a member's number, where that one says it has handed on its part;
 * else UINT32_MAX. */
static uint32_t waits_for(const sherd__circle_job *j, uint32_t i)
{
    const member *m = &j->nodes[j->node_of[i]];
    sherd__reduce kind = j->o.train.kind;
    if (m->summed || m->where.phase != SHERD__CIRCLE_EXCHANGING ||
        m->where.step >= sherd__reduce_steps(kind, j->members))
        return UINT32_MAX;
    uint32_t from = sherd__reduce_step_of(kind, j->members, i, m->where.step).from;
    const member *f = &j->nodes[j->node_of[from]];
    bool handed = f->summed || f->where.phase == SHERD__CIRCLE_SUMMED ||
                  f->where.step >= m->where.step;
    return handed ? from : UINT32_MAX;
}

/* Nothing has moved between two looks, or nothing came of it. False: nobody is at fault. */
static bool judge(sherd__circle_job *j)
{
    uint32_t waiting[SHERD__CIRCLE_MOST] = { 0 }, one = UINT32_MAX, most = UINT32_MAX;
    for (uint32_t i = 0; i < j->members; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        bool part = m->summed || m->where.phase == SHERD__CIRCLE_SUMMED ||
                    m->where.phase == SHERD__CIRCLE_EXCHANGING;
        if (!part) {
            convict(j, j->node_of[i], "takes no part in the sum");
            return true;
        }
        uint32_t from = waits_for(j, i);
        if (from == UINT32_MAX) continue;
        waiting[from]++;
        if (most == UINT32_MAX || waiting[from] > waiting[most]) {
            most = from;
            one = i;
        }
    }
    if (most == UINT32_MAX) return false; /* all have it, and compute */
    suspect(j, j->node_of[one], j->node_of[most], waiting[most] == 1);
    return true;
}

/* Whoever says that bytes move, or that it has the sum and is about to tell it, is believed as long
 * as there is patience. */
bool sherd__circle_overdue(sherd__circle_job *j)
{
    uint32_t keeps = UINT32_MAX;
    bool any = false;
    for (uint32_t i = 0; i < j->members; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        any |= m->summed;
        if (m->summed) continue;
        if (!j->looks || m->where.round != j->round) return false; /* it was not asked yet */
        if (m->where.phase == SHERD__CIRCLE_SUMMED) keeps = j->node_of[i];
    }
    if (!any || keeps == UINT32_MAX) return judge(j);
    convict(j, keeps, "does not tell the sum that it has");
    return true;
}

void sherd__circle_watch(sherd__circle_job *j)
{
    bool all = true, moved = false;
    if (j->phase != STEPPING || !j->graded_ms) return;
    if (!j->asked_ms) {
        if ((double)(j->now_ms - j->moved_ms) >= quiet_ms(j)) look(j);
        return;
    }
    for (uint32_t i = 0; i < j->members; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        if (m->summed && !m->asked) continue; /* who has summed owes an answer to WHERE, too */
        all &= m->told;
        moved |= m->moved;
        if (m->told || (double)(j->now_ms - j->asked_ms) < ANSWER_MS) continue;
        j->w.owner.expel(j->w.owner.ctx, j->node_of[i], SHERD_ESILENT,
                         "does not say how far a sum has come");
        return;
    }
    if (!all) return;
    j->moved_ms = j->now_ms; /* the next look is another one, whatever is decided */
    j->asked_ms = 0;
    if (!moved) (void)judge(j);
}
