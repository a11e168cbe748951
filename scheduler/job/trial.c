/*
 * If the answers of a node are never needed in time, its tasks are always cancelled, so it never
 * owes an answer. A spare node that has stopped answering would then look like one that is merely
 * slow, until it is needed. Therefore one task of a node that has not answered for a while is left
 * to run when it would be cancelled; this is its trial. Any answer ends the trial, right or wrong,
 * because it is not used. A node that does not answer within the time that other nodes are allowed
 * is treated as failed, like them. Trial time is summed over runs, because each run may be short.
 */
#include "scheduler/job/internal.h"

#define TRIAL_AFTER_MS 1000u

static void end_trial(job_node *n)
{
    n->trial = (job_trial){ 0 };
}

bool sherd__job_trial_begin(sherd__job *j, uint64_t ordinal)
{
    const job_cell *c = &j->cells[ordinal];
    job_node *n = &j->nodes[c->node];
    if (n->trial.attempt || j->now_ms - n->heard_ms < TRIAL_AFTER_MS) return false;
    n->trial = (job_trial){ .task = (uint32_t)ordinal + 1, .attempt = c->attempt };
    /* Bytes that are sent before the task; an answer is expected from then on. */
    n->trial.out = sherd__session_stats_of(n->session)->bytes_out +
                   sherd__session_queued(n->session);
    return true;
}

void sherd__job_trial_heard(sherd__job *j, job_node *n, uint32_t attempt)
{
    n->heard_ms = j->now_ms;
    n->mute_ms = 0;
    if (n->trial.attempt == attempt) end_trial(n);
}

bool sherd__job_trial_failed(const sherd__job *j, job_node *n, double wait_max_ms)
{
    if (!n->trial.attempt) return false;
    if (!n->trial.since_ms && sherd__session_stats_of(n->session)->bytes_out >= n->trial.out)
        n->trial.since_ms = j->now_ms;
    uint64_t run = n->trial.since_ms ? j->now_ms - n->trial.since_ms : 0;
    return (double)(n->mute_ms + run) > wait_max_ms;
}

void sherd__job_trial_rest(sherd__job *j, job_node *n)
{
    if (n->trial.since_ms) n->mute_ms += j->now_ms - n->trial.since_ms;
    if (n->trial.attempt && n->state == NODE_UP && sherd__session_ready(n->session))
        (void)!sherd__session_cancel(n->session, j->o.id, n->trial.task, n->trial.attempt);
    end_trial(n);
}

void sherd__job_trial_forget(sherd__job *j, job_node *n)
{
    n->heard_ms = j->now_ms;
    n->mute_ms = 0;
    end_trial(n);
}
