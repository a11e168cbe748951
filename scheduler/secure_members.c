/*
 * Who is a member of secure aggregation, who may be again, and who is wanted in the next roster.
 *
 * A sum whose survivors were named and that too few answered for is bound to them: answers that did
 * come open a part of it (a mask is shared so that T answers tell nothing and U all of it), so a
 * second sum of other members under the same parameters would tell, by its difference, a part of
 * what single ones have. A second sum of the same members is the same numbers. So it is asked for
 * again of these and no other, with new keys and masks, or not at all.
 */
#include <stdio.h>

#include "scheduler/secure_internal.h"

bool sherd__secure_up(const member *m)
{
    return m->w.session && !m->out;
}

bool sherd__secure_in(const member *m)
{
    return sherd__secure_up(m) && !m->waits;
}

uint32_t sherd__secure_count(const sherd__secure_job *j)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) n += sherd__secure_in(&j->nodes[i]);
    return n;
}

bool sherd__secure_wanted(const sherd__secure_job *j, const member *m)
{
    return sherd__secure_up(m) && (!j->bound || m->bound);
}

uint32_t sherd__secure_least(const sherd__secure_job *j)
{
    return j->bound ? j->bound : j->a.threshold;
}

bool sherd__secure_hope(const sherd__secure_job *j)
{
    uint32_t there = 0, in = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const member *m = &j->nodes[i];
        if (j->bound && !m->bound) continue;
        bool may = !m->out && (m->w.session || m->away);
        there += may;
        in += may || (j->phase == HIDING && m->sealed && m->hidden); /* of a sum to be opened */
    }
    /* others than these are as many as the first roster needed (agree, in secure_job.c) */
    return j->bound ? in >= j->bound && there >= j->a.threshold : there >= j->least;
}

bool sherd__secure_others(const sherd__secure_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const member *m = &j->nodes[i];
        if (sherd__secure_wanted(j, m) ? m->waits : sherd__secure_in(m)) return true;
    }
    return sherd__secure_count(j) < sherd__secure_least(j);
}

void sherd__secure_bind(sherd__secure_job *j)
{
    sherd__secure_unbind(j);
    j->bound = j->survivors_len;
    for (uint32_t i = 0; i < j->survivors_len; i++)
        j->nodes[j->node_of[j->survivors[i]]].bound = true;
}

void sherd__secure_unbind(sherd__secure_job *j)
{
    j->bound = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].bound = false;
}

void sherd__secure_too_few(sherd__secure_job *j, uint32_t have, const char *what)
{
    char text[200];
    if (j->bound) {
        snprintf(text, sizeof text,
                 "a sum over %u nodes was not opened, and they are not all there any more: over "
                 "others it would tell what single nodes have", j->bound);
        sherd__work_stop(&j->w, SHERD_EFEWNODES,
                         "--resume goes on from the last checkpoint; docs/THREATS.md says what "
                         "that tells", text);
        return;
    }
    snprintf(text, sizeof text, "%u of %u nodes %s: %u are needed to open the sum", have,
             j->a.nodes, what, j->a.threshold);
    sherd__work_stop(&j->w, SHERD_EFEWNODES,
                     "start nodes again; --survivors says how many must be left", text);
}
