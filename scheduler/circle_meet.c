/*
 * Meetings: everybody is told of everybody, and then opens links to those whom the schedule names.
 * Links are only opened once all know of each other, so that nobody is turned away for being early.
 * A circle that has never stood and cannot connect is an error of whoever set it up; one that stood
 * goes on without the member that most broken links have in common.
 */
#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "core/diag.h"
#include "scheduler/circle_internal.h"

/* One line for each member, as in a node file. */
static int write_roster(const sherd__circle_job *j, sherd_buf *out)
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

void sherd__circle_shuffle(uint32_t order, uint32_t *things, uint32_t n)
{
    uint32_t at[SHERD__CIRCLE_MOST], was[SHERD__CIRCLE_MOST];
    sherd__rows how = { .kind = SHERD__ROWS_SHUFFLED, .examples = n, .len = n };
    if (!order || n == 0) return;
    memcpy(how.key, &order, sizeof order);
    memcpy(was, things, n * sizeof *was);
    sherd__rows_list(&how, at);
    for (uint32_t i = 0; i < n; i++) things[i] = was[at[i]];
}

static void take_numbers(sherd__circle_job *j)
{
    j->members = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        member *m = &j->nodes[i];
        m->in = m->w.session && !m->out && (m->loaded || j->o.state);
        if (m->in) j->node_of[j->members++] = i;
    }
    sherd__circle_shuffle(j->order, j->node_of, j->members);
    for (uint32_t i = 0; i < j->members; i++) j->nodes[j->node_of[i]].self = i;
    pthread_mutex_lock(&j->mail.lock);
    j->stats.members = j->members;
    j->link_out = j->stats.link_out;
    j->link_in = j->stats.link_in;
    pthread_mutex_unlock(&j->mail.lock);
}

void sherd__circle_begin_meet(sherd__circle_job *j)
{
    sherd_buf roster;
    sherd__circle_call_off(j);
    j->broken = false;
    take_numbers(j);
    if (j->members == 0) {
        sherd__work_stop(&j->w, SHERD_EFEWNODES, "start nodes again and resume",
                         "no node is left to compute gradients");
        return;
    }
    j->phase = MEETING;
    j->id = (j->o.id ^ ++j->meetings * UINT64_C(0x9E3779B97F4A7C15)) | 1;
    sherd__buf_init(&roster, 512 * SHERD__CIRCLE_MOST, 0);
    int err = write_roster(j, &roster);
    if (err) sherd__work_stop(&j->w, err, NULL, "cannot write down who is in the circle");
    for (uint32_t i = 0; i < j->members && !j->w.done; i++) {
        uint32_t node = j->node_of[i];
        sherd__circle_sent(j, node, sherd__circle_send_meet(j, node, (const char *)roster.data,
                                                            roster.len));
    }
    sherd__buf_fini(&roster);
}

void sherd__circle_begin_connect(sherd__circle_job *j)
{
    j->phase = CONNECTING;
    for (uint32_t i = 0; i < j->members && !j->w.done; i++)
        sherd__circle_sent(j, j->node_of[i], sherd__circle_send_connect(j, j->node_of[i]));
}

static void stand(sherd__circle_job *j)
{
    j->phase = IDLE;
    j->stood = true;
    for (uint32_t i = 0; i < j->members; i++) {
        member *m = &j->nodes[j->node_of[i]];
        m->loaded = m->stood = true;
    }
    sherd__version_release(j->o.state);
    j->o.state = NULL;
    sherd__mail_stands(&j->mail);
    j->w.changed(j->w.changed_ctx);
}

/* Of the two ends of a link nobody can say which is at fault: who was such an end before is. */
static bool worse(const member *a, uint32_t a_broken, const member *b, uint32_t b_broken)
{
    if (a_broken != b_broken) return a_broken > b_broken;
    if (a->loaded != b->loaded) return !a->loaded; /* one that has just come */
    return a->suspect && !b->suspect;
}

static void suspect_ends(sherd__circle_job *j, uint32_t worst, const uint32_t *broken)
{
    for (uint32_t i = 0; i < j->members; i++) {
        member *m = &j->nodes[j->node_of[i]];
        bool link = m->links[worst] || j->nodes[j->node_of[worst]].links[i];
        if (i != worst && link && broken[i] == broken[worst]) m->suspect = j->node_of[worst] + 1;
    }
}

void sherd__circle_judge_links(sherd__circle_job *j)
{
    uint32_t broken[SHERD__CIRCLE_MOST] = { 0 }, worst = 0, from = UINT32_MAX, to = 0;
    char text[1000];
    for (uint32_t i = 0; i < j->members; i++)
        for (uint32_t k = 0; k < j->members; k++) {
            if (j->nodes[j->node_of[i]].links[k] == 0) continue;
            broken[i]++;
            broken[k]++;
            from = i;
            to = k;
        }
    if (from == UINT32_MAX) {
        stand(j);
        return;
    }
    int64_t err = j->nodes[j->node_of[from]].links[to];
    snprintf(text, sizeof text, "%s cannot reach %s: %s",
             sherd__work_name(&j->w, j->node_of[from]), sherd__work_name(&j->w, j->node_of[to]),
             sherd_strerror((int)err));
    if (!j->stood) {
        sherd__work_stop(&j->w, SHERD_ECONNECT, "nodes connect to each other at the addresses of "
                         "the node file: these must be right from everywhere", text);
        return;
    }
    worst = j->members - 1;
    for (uint32_t i = 0; i < j->members; i++)
        if (worse(&j->nodes[j->node_of[i]], broken[i], &j->nodes[j->node_of[worst]], broken[worst]))
            worst = i;
    suspect_ends(j, worst, broken);
    sherd__work_say(&j->w, "%s", text);
    sherd__circle_leave_out(j, j->node_of[worst], "has links that do not come up");
    sherd__circle_begin_meet(j);
}
