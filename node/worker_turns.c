/*
 * Whose turn it is: clients with queued tasks stand in a ring, and each is served its oldest task
 * before any is served twice, so that a client with many tasks delays another by one of them.
 */
#include "node/worker_state.h"

void sherd__worker_enter(sherd__worker *w, sherd__client *c)
{
    if (c->turn_next) return;
    if (w->last) {
        c->turn_next = w->last->turn_next;
        w->last->turn_next = c;
    } else {
        c->turn_next = c;
    }
    w->last = c;
}

void sherd__worker_leave_turns(sherd__worker *w, sherd__client *c)
{
    if (!c->turn_next) return;
    sherd__client *before = c;
    while (before->turn_next != c) before = before->turn_next;
    before->turn_next = c->turn_next;
    if (w->last == c) w->last = before == c ? NULL : before;
    c->turn_next = NULL;
}

void sherd__worker_queue(sherd__client *c, task *t)
{
    *c->tail = t;
    c->tail = &t->next;
    sherd__worker_enter(c->worker, c);
}

void sherd__worker_requeued(sherd__client *c)
{
    for (c->tail = &c->head; *c->tail;) c->tail = &(*c->tail)->next;
    if (!c->head) sherd__worker_leave_turns(c->worker, c);
}

task *sherd__worker_next(sherd__worker *w)
{
    if (!w->last) return NULL;
    sherd__client *c = w->last->turn_next;
    task *t = c->head;
    if (!(c->head = t->next)) {
        c->tail = &c->head;
        sherd__worker_leave_turns(w, c);
    } else {
        w->last = c;
    }
    return t;
}
