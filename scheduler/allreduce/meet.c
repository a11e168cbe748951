/*
 * Meetings: every member learns of all others and then opens links to its neighbours in the
 * schedule. Links are opened only after all members know each other, so no connection is rejected
 * because it comes early. If a group that was never connected cannot connect, its setup is wrong
 * and the training ends with an error. A group that was connected continues without the member that
 * most broken links have in common.
 */
#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "core/diag.h"
#include "core/rand.h"
#include "scheduler/allreduce/internal.h"

/* Writes one line for each member, as in a node file. */
static int write_roster(const sherd__allreduce_job *j, sherd__buf *out)
{
    int err = SHERD_OK;
    for (uint32_t i = 0; i < j->members && !err; i++) {
        const sherd__peer *from = j->o.peer(j->o.peer_ctx, j->node_of[i]);
        sherd__peer p = { .port = from->port, .has_key = true, .key = from->key, .weight = 1 };
        char line[512];
        memcpy(p.host, from->host, sizeof p.host);
        int len = sherd__peer_format(&p, line, sizeof line - 1);
        if (len < 0 || (size_t)len >= sizeof line - 1) return SHERD_EINVAL;
        line[len++] = '\n';
        err = sherd__buf_append(out, line, (size_t)len);
    }
    return err;
}

void sherd__allreduce_shuffle(uint32_t order, uint32_t *things, uint32_t n)
{
    uint32_t at[SHERD__ALLREDUCE_MOST], was[SHERD__ALLREDUCE_MOST];
    sherd__rows how = { .kind = SHERD__ROWS_SHUFFLED, .examples = n, .len = n };
    if (!order || n == 0) return;
    memcpy(how.key, &order, sizeof order);
    memcpy(was, things, n * sizeof *was);
    sherd__rows_list(&how, at);
    for (uint32_t i = 0; i < n; i++) things[i] = was[at[i]];
}

static void take_numbers(sherd__allreduce_job *j)
{
    j->members = 0;
    sherd__allreduce_trust(j);
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        member *m = &j->nodes[i];
        m->in = m->w.session && !m->out && (m->loaded || j->o.state) && j->now_ms >= m->again_ms;
        if (m->in) j->node_of[j->members++] = i;
    }
    sherd__allreduce_shuffle(j->order, j->node_of, j->members);
    for (uint32_t i = 0; i < j->members; i++) j->nodes[j->node_of[i]].self = i;
    pthread_mutex_lock(&j->requests.lock);
    j->stats.members = j->members;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].links_before = j->nodes[i].links_now;
    pthread_mutex_unlock(&j->requests.lock);
}

/* If a node has refused, that is the cause. If the group was never connected, the error is the text
 * of that refusal. */
static void nobody_left(sherd__allreduce_job *j)
{
    char text[sizeof j->why + 100];
    snprintf(text, sizeof text, "no node is left to compute gradients%s%s",
             j->refused ? "; the last refusal: " : "", j->refused ? j->why : "");
    if (j->refused && !j->stood) sherd__work_stop(&j->w, j->refused, NULL, j->why);
    else sherd__work_stop(&j->w, SHERD_EFEWNODES, "start nodes again and resume", text);
}

/* The name is random: another coordinator that knew it in advance could let nodes meet under it. */
static uint64_t next_name(sherd__allreduce_job *j)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_derived(&state, j->o.names, "meeting", ++j->meetings);
    return sherd__entropy_u64(&e) | 1;
}

void sherd__allreduce_begin_meet(sherd__allreduce_job *j)
{
    sherd__buf roster;
    sherd__allreduce_call_off(j);
    j->broken = false;
    take_numbers(j);
    if (j->members == 0) {
        nobody_left(j);
        return;
    }
    j->phase = MEETING;
    j->id = next_name(j);
    sherd__buf_init(&roster, 512 * SHERD__ALLREDUCE_MOST, 0);
    int err = write_roster(j, &roster);
    if (err) sherd__work_stop(&j->w, err, NULL, "cannot encode the roster of the all-reduce group");
    for (uint32_t i = 0; i < j->members && !j->w.done; i++) {
        uint32_t node = j->node_of[i];
        sherd__allreduce_sent(j, node,
                              sherd__allreduce_send_meet(j, node, (const char *)roster.data,
                                                         roster.len));
    }
    sherd__buf_fini(&roster);
}

void sherd__allreduce_begin_connect(sherd__allreduce_job *j)
{
    j->phase = CONNECTING;
    j->phase_ms = j->now_ms;
    for (uint32_t i = 0; i < j->members && !j->w.done; i++)
        sherd__allreduce_sent(j, j->node_of[i], sherd__allreduce_send_connect(j, j->node_of[i]));
}

static void stand(sherd__allreduce_job *j)
{
    j->phase = IDLE;
    j->stood = true;
    for (uint32_t i = 0; i < j->members; i++) {
        member *m = &j->nodes[j->node_of[i]];
        m->loaded = m->stood = true;
    }
    sherd__version_release(j->o.state);
    j->o.state = NULL;
    sherd__request_slot_stands(&j->requests);
    j->w.changed(j->w.changed_ctx);
}

/* Of the two ends of a link it cannot be decided which one is at fault: prefers the end that was in
 * a dispute before. */
static bool worse(const member *a, const member *b)
{
    if (a->loaded != b->loaded) return !a->loaded; /* one that has just joined */
    return a->disputes && !b->disputes;
}

/* Leaves out members that have links in dispute with two others; otherwise one end of a link. */
static void leave_ends(sherd__allreduce_job *j, uint32_t from, uint32_t to)
{
    static const char why[] = "has links that cannot be opened";
    bool any = false;
    for (uint32_t i = 0; i < j->members; i++) {
        if (!sherd__allreduce_at_fault(j, j->node_of[i])) continue;
        sherd__allreduce_leave_out(j, j->node_of[i], why);
        any = true;
    }
    if (any) return;
    uint32_t a = j->node_of[from], b = j->node_of[to];
    sherd__allreduce_leave_out(j, worse(&j->nodes[a], &j->nodes[b]) ? a : b, why);
}

/* Returns true if a link failed because there was no answer: its other end may be gone, and the
 * loss of its session not yet known. */
static bool wait_for_sessions(const sherd__allreduce_job *j, int64_t err)
{
    return err == SHERD_ESILENT &&
           j->now_ms - j->phase_ms < SHERD__HANDSHAKE_MS + SHERD__PING_MS + SHERD__DEAD_MS;
}

static bool is_busy(int64_t err)
{
    return err == SHERD_EBUSY || err == SHERD_ENOMEM;
}

/* Returns the member with most broken links; if several have as many, the given one, which is an
 * end of a broken link. */
static uint32_t most_links(const sherd__allreduce_job *j, uint32_t of_equals)
{
    uint32_t broken[SHERD__ALLREDUCE_MOST] = { 0 }, most = of_equals;
    for (uint32_t i = 0; i < j->members; i++)
        for (uint32_t k = 0; k < j->members; k++) {
            bool link = j->nodes[j->node_of[i]].links[k] != 0;
            broken[i] += link;
            broken[k] += link;
        }
    for (uint32_t i = 0; i < j->members; i++)
        if (broken[i] > broken[most]) most = i;
    return most;
}

void sherd__allreduce_judge_links(sherd__allreduce_job *j)
{
    uint32_t from = UINT32_MAX, to = 0;
    char text[1000], name[400], why[1100];
    for (uint32_t i = 0; i < j->members; i++)
        for (uint32_t k = 0; k < j->members; k++) {
            if (j->nodes[j->node_of[i]].links[k] == 0) continue;
            if (wait_for_sessions(j, j->nodes[j->node_of[i]].links[k])) return;
            from = i;
            to = k;
        }
    if (from == UINT32_MAX) {
        stand(j);
        return;
    }
    for (uint32_t i = 0; i < j->members && j->stood; i++)
        for (uint32_t k = 0; k < j->members; k++)
            if (i != k && j->nodes[j->node_of[i]].links[k])
                sherd__allreduce_dispute(j, j->node_of[i], j->node_of[k]);
    snprintf(name, sizeof name, "%s", sherd__work_name(&j->w, j->node_of[to]));
    snprintf(text, sizeof text, "%s cannot reach %s: %s", sherd__work_name(&j->w, j->node_of[from]),
             name, sherd_strerror((int)j->nodes[j->node_of[from]].links[to]));
    if (!j->stood && is_busy(j->nodes[j->node_of[from]].links[to])) {
        snprintf(why, sizeof why, "has a link that cannot be opened (%s)", text);
        sherd__allreduce_put_off(j, j->node_of[most_links(j, to)], why);
        sherd__allreduce_begin_meet(j);
        return;
    }
    if (!j->stood) {
        sherd__work_stop(&j->w, SHERD_ECONNECT,
                         "nodes connect to each other at the addresses of the node file, so these "
                         "must be valid on every node",
                         text);
        return;
    }
    sherd__work_say(&j->w, "%s", text);
    leave_ends(j, from, to);
    sherd__allreduce_begin_meet(j);
}
