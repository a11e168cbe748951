/*
 * Fetches the state of a training from one member, confirmed by all: one member sends the numbers,
 * and all members send a hash of theirs. More than half must agree. A member that holds other
 * numbers, or sent numbers that it does not hold, is named and left out. The state is fetched for
 * the leader's caller, and for nodes that join (again) during a training.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "learn/member.h"
#include "scheduler/allreduce/internal.h"

/* A state for joining nodes leaves out the gradient: it may be that of an aborted round which some
 * members had finished. */
static void begin(sherd__allreduce_job *j, double *to, size_t len)
{
    j->phase = FETCHING;
    j->fetch = to;
    j->fetch_len = len;
    for (uint32_t i = 0; i < j->members && !j->w.done; i++) {
        uint32_t node = j->node_of[i];
        int err = sherd__allreduce_send_state(j, node, len, true);
        if (!err && i == 0) err = sherd__allreduce_send_state(j, node, len, false);
        sherd__allreduce_sent(j, node, err);
    }
}

void sherd__allreduce_begin_fetch(sherd__allreduce_job *j)
{
    sherd__version_release(j->stock);
    j->stock = NULL;
    begin(j, j->ask->state, j->ask->len);
}

void sherd__allreduce_begin_stock(sherd__allreduce_job *j)
{
    sherd__version_release(j->stock);
    j->stock = sherd__version_new(sherd__allreduce_state_len(j->o.train.optimiser), 0);
    if (!j->stock)
        sherd__work_stop(&j->w, SHERD_ENOMEM, NULL,
                         "out of memory for the state of a node that joins");
    else begin(j, j->stock->values, j->stock->count);
}

void sherd__allreduce_take_state(sherd__allreduce_job *j, member *m, const sherd__event *e)
{
    const uint8_t *bytes = sherd__fragment_bytes(e->fragment);
    if (e->task.result.dtype == SHERD_I64) memcpy(m->hash, bytes, sizeof m->hash);
    else memcpy(j->fetch, bytes, j->fetch_len * sizeof *j->fetch);
}

/* Returns the hash that more than half of the members have; otherwise NULL. */
static const uint8_t *agreed(const sherd__allreduce_job *j)
{
    for (uint32_t i = 0; i < j->members; i++) {
        const uint8_t *h = j->nodes[j->node_of[i]].hash;
        uint32_t same = 0;
        for (uint32_t k = 0; k < j->members; k++)
            same += memcmp(h, j->nodes[j->node_of[k]].hash, SHERD__HASH) == 0;
        if (2 * same > j->members) return h;
    }
    return NULL;
}

/* Ends the training: without a majority the wrong member cannot be identified. */
static void differ(sherd__allreduce_job *j)
{
    char text[1000];
    uint32_t i = 1;
    const uint8_t *first = j->nodes[j->node_of[0]].hash;
    while (memcmp(j->nodes[j->node_of[i]].hash, first, SHERD__HASH) == 0) i++;
    snprintf(text, sizeof text, "%s and %s hold different weights",
             sherd__work_name(&j->w, j->node_of[0]), sherd__work_name(&j->w, j->node_of[i]));
    sherd__work_stop(&j->w, SHERD_EWRONG,
                     "one of them computes wrongly: resume from the last checkpoint without one of "
                     "them, then without the other",
                     text);
}

void sherd__allreduce_end_fetch(sherd__allreduce_job *j)
{
    uint8_t right[SHERD__HASH], got[SHERD__HASH];
    const uint8_t *most = agreed(j);
    bool wrong = false;
    if (!most) {
        differ(j);
        return;
    }
    memcpy(right, most, sizeof right);
    sherd__state_hash(j->commit, j->fetch, j->fetch_len, j->o.train.optimiser->count,
                      j->stock != NULL, got);
    uint32_t giver = j->node_of[0];
    for (uint32_t i = 0; i < j->members; i++) {
        uint32_t node = j->node_of[i];
        bool holds = memcmp(j->nodes[node].hash, right, sizeof right) == 0;
        if (holds && (node != giver || memcmp(got, right, sizeof right) == 0)) continue;
        sherd__allreduce_leave_out(j, node,
                                   holds ? "sent other weights than it reported"
                                         : "has other weights than most members");
        wrong = true;
    }
    if (wrong) {
        sherd__allreduce_break_without(j, "the members have different weights");
    } else if (!j->stock) {
        sherd__allreduce_answer(j, SHERD_OK, "");
    } else {
        sherd__version_release(j->o.state);
        j->o.state = j->stock;
        j->stock = NULL;
        sherd__allreduce_begin_meet(j);
    }
}
