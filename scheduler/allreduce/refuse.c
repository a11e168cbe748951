/*
 * Refusals: their effect depends on the task that was refused and on which node is to blame. A
 * member may be unable to do something now (no memory left because of another job, no free slot for
 * a link) but able to do it later: it is put off and asked again after a delay that doubles each
 * time. A member that rejects a task for another reason is left out. The training continues as long
 * as any member is left.
 *
 * A member that refuses a sum usually reports a broken link, for which either end may be to blame.
 * It is asked which link broke. Both ends are remembered until a round is complete, and are not
 * neighbours the next time. A node that breaks links with two others in that time is put off.
 */
#include <stdio.h>

#include "core/diag.h"
#include "scheduler/allreduce/internal.h"

#define AGAIN_MS 1000u /* the first delay; each further delay is twice as long */
#define AGAIN_MOST 12u /* most doublings: about an hour */

void sherd__allreduce_put_off(sherd__allreduce_job *j, uint32_t node, const char *why)
{
    member *m = &j->nodes[node];
    uint64_t ms = (uint64_t)AGAIN_MS << (m->put_off < AGAIN_MOST ? m->put_off : AGAIN_MOST);
    m->put_off++;
    m->again_ms = j->now_ms + ms;
    m->breaks = 0;
    sherd__work_say(&j->w, "%s %s: the training continues without it, and asks it again in %u s",
                    sherd__work_name(&j->w, node), why, (unsigned)(ms / 1000));
    sherd__allreduce_release(j, node);
}

/* Leaves out members that are new to a meeting if an older member rejects one of them. */
static bool leave_new(sherd__allreduce_job *j)
{
    bool any = false;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        if (!j->nodes[i].in || j->nodes[i].stood) continue;
        sherd__allreduce_leave_out(j, i, "is not accepted by all members");
        any = true;
    }
    return any;
}

static void remember(sherd__allreduce_job *j, int code, const char *text)
{
    j->refused = code;
    snprintf(j->why, sizeof j->why, "%s", text);
}

void sherd__allreduce_take_refusal(sherd__allreduce_job *j, uint32_t node, const sherd__event *e)
{
    member *m = &j->nodes[node];
    const sherd__refusal *r = &e->refusal;
    uint32_t op = r->task ? e->task.op : SHERD__OP_MEET;
    char text[SHERD__TEXT_MAX + 420];
    if (r->task) m->asked--;
    snprintf(text, sizeof text, "%s: %s", sherd__work_name(&j->w, node), r->text);
    if (op == SHERD__OP_STEP && (r->code == SHERD_EBUSY || r->code == SHERD_ERANGE)) {
        sherd__allreduce_doubt(j, node, r->code, text);
    } else if (op == SHERD__OP_REDUCE) {
        if (m->refused || m->breaking) return; /* of a step that it has refused before */
        remember(j, r->code, text);
        m->breaking = true;
        sherd__allreduce_sent(j, node, sherd__allreduce_send_where(j, node));
    } else if (op == SHERD__OP_MEET && r->task && r->code == SHERD_EAUTH && !j->stood) {
        sherd__work_stop(&j->w, r->code, "--peers of the node lists the keys that it accepts",
                         text);
    } else if (op == SHERD__OP_MEET && r->task && r->code == SHERD_EAUTH && m->stood &&
               leave_new(j)) {
        sherd__work_say(&j->w, "%s", text);
        sherd__allreduce_break_without(j, text);
    } else {
        char why[SHERD__TEXT_MAX + 20];
        remember(j, r->code, text);
        snprintf(why, sizeof why, "refuses (%s)", r->text);
        if (r->code == SHERD_EBUSY || r->code == SHERD_ENOMEM)
            sherd__allreduce_put_off(j, node, why);
        else sherd__allreduce_leave_out(j, node, why);
        sherd__allreduce_break_without(j, text);
    }
}

/* Puts off a node that has broken links with two others since the last complete round. */
static bool breaks_all(sherd__allreduce_job *j, uint32_t node)
{
    uint64_t b = j->nodes[node].breaks;
    if (!(b & (b - 1))) return false;
    sherd__allreduce_put_off(j, node, "has links that break");
    return true;
}

/* Handles a broken link between two nodes. */
static void on_broken_link(sherd__allreduce_job *j, uint32_t a, uint32_t b, const char *text)
{
    j->nodes[a].breaks |= UINT64_C(1) << b;
    j->nodes[b].breaks |= UINT64_C(1) << a;
    sherd__work_say(&j->w, "%s; the round is repeated", text);
    bool gone = breaks_all(j, a);
    gone |= breaks_all(j, b);
    if (!gone && j->members > 2 && j->failed + 1 >= FAILED_MOST) { /* always the same two */
        sherd__allreduce_put_off(j, a, "has a link that breaks repeatedly");
        gone = true;
    }
    if (gone) {
        sherd__allreduce_break_without(j, text);
        return;
    }
    sherd__allreduce_part(j, a, b);
    sherd__allreduce_break(j, text);
}

void sherd__allreduce_take_broken(sherd__allreduce_job *j, uint32_t node)
{
    member *m = &j->nodes[node];
    char text[sizeof j->why], why[sizeof j->why + 40];
    snprintf(text, sizeof text, "%s", j->why);
    m->breaking = false;
    if (m->replied && m->where.phase == SHERD__ALLREDUCE_BROKEN && m->where.step < j->members &&
        m->where.step != m->self) {
        on_broken_link(j, node, j->node_of[m->where.step], text);
        return;
    }
    snprintf(why, sizeof why, "cannot end a sum (%s)", text);
    sherd__allreduce_put_off(j, node, why);
    sherd__allreduce_break_without(j, text);
}
