/*
 * Members that owe an answer and send nothing. Their sessions are alive, or they would be lost
 * already. But a member that hangs, or only answers pings, would block all others for as long as
 * the slowest step may take, and before the first step that time is not known. Such a member is
 * therefore asked for its progress (WHERE), which a node answers even while it computes, together
 * with the processor time that it has used. A member that uses processor time is slow; one that
 * does not, and has no bytes moving in either direction, hangs.
 *
 * Processor time is reported by the node and cannot be checked. A member that keeps reporting more
 * of it is waited for as long as a first step may take, or many times as long as steps take, and no
 * longer.
 */
#include "scheduler/allreduce/internal.h"

#define QUIET_MS 5000.0  /* at least, without any progress */
#define QUIET_TIMES 10.0 /* times the duration of a step */
/* A member computes if it uses at least 1/ALIVE_SHARE of the time. A node that only answers pings
 * uses a tenth of that. */
#define ALIVE_SHARE 500u
#define BELIEVED_TIMES 30.0 /* times the duration of a step, while it reports processor time */
#define CONNECT_MS (4.0 * SHERD__HANDSHAKE_MS) /* links time out after one SHERD__HANDSHAKE_MS */

static double quiet_ms(const sherd__allreduce_job *j)
{
    double ms = QUIET_TIMES * j->w.usual_ms;
    return ms > QUIET_MS ? ms : QUIET_MS;
}

static bool believed(const sherd__allreduce_job *j, const member *m)
{
    double ms = BELIEVED_TIMES * j->w.usual_ms, first = sherd__work_first_ms(&j->w);
    return (double)(j->now_ms - m->w.since_ms) < (ms > first ? ms : first);
}

void sherd__allreduce_take_alive(sherd__allreduce_job *j, member *m,
                                 const sherd__allreduce_where *was)
{
    uint64_t ms = j->now_ms - m->alive_ms;
    bool works = m->looks > 0 && m->where.worked_us - was->worked_us >= ms * 1000 / ALIVE_SHARE &&
                 m->where.worked_us > was->worked_us;
    m->alive_ms = j->now_ms;
    if (!works) {
        m->looks++;
        return;
    }
    m->looks = 1;
    if (believed(j, m)) m->w.progress_ms = j->now_ms;
}

/* A member with which no byte is exchanged is handled as in every other sherd__work. */
static void watch(sherd__allreduce_job *j, uint32_t node)
{
    member *m = &j->nodes[node];
    bool moved = m->w.progress_ms > m->alive_ms;
    uint64_t since = moved ? m->w.progress_ms : m->alive_ms;
    double quiet = (double)(j->now_ms - since);
    if (moved) m->looks = 0;
    if (m->asked_ms) {
        if (m->asked_ms > since) quiet = (double)(j->now_ms - m->asked_ms);
        if (quiet >= MEMBER_ANSWER_MS)
            j->w.owner.expel(j->w.owner.ctx, node, SHERD_ESILENT, "does not report its progress");
    } else if (m->looks > 1) {
        sherd__allreduce_leave_out(j, node, "does not work on its tasks");
        sherd__allreduce_break_without(j, "a member that does not work");
    } else if (quiet >= quiet_ms(j)) {
        sherd__allreduce_sent(j, node, sherd__allreduce_send_where(j, node));
    }
}

/* Members that connect may wait for others for long, so their processor time says nothing. */
static void watch_links(sherd__allreduce_job *j, uint32_t node)
{
    if ((double)(j->now_ms - j->phase_ms) < CONNECT_MS) return;
    j->w.owner.expel(j->w.owner.ctx, node, SHERD_ESILENT, "does not report its links");
}

void sherd__allreduce_watch_still(sherd__allreduce_job *j)
{
    for (uint32_t i = 0; i < j->members && !j->w.done; i++) {
        uint32_t node = j->node_of[i];
        const member *m = &j->nodes[node];
        if (!m->in || !m->w.session || !m->asked || (j->phase == STEPPING && m->graded)) continue;
        if (j->phase == CONNECTING) watch_links(j, node);
        else if (j->phase != HEARING && j->phase != IDLE) watch(j, node);
        if (j->phase == IDLE) return; /* the membership is about to be decided again */
    }
}
