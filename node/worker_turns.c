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
    t->queued = true;
    t->next = NULL;
    t->prev = c->last;
    *(c->last ? &c->last->next : &c->head) = t;
    c->last = t;
    if (t->round) {
        t->next_round = c->rounds;
        c->rounds = t;
    }
    sherd__worker_enter(c->worker, c);
}

/* Out of the queue: there are few rounds (SHERD__ROUNDS_MAX). */
static void unqueue(sherd__client *c, task *t)
{
    *(t->prev ? &t->prev->next : &c->head) = t->next;
    *(t->next ? &t->next->prev : &c->last) = t->prev;
    t->prev = t->next = NULL;
    t->queued = false;
    if (t->round) {
        task **at = &c->rounds;
        while (*at != t) at = &(*at)->next_round;
        *at = t->next_round;
    }
    if (!c->head) sherd__worker_leave_turns(c->worker, c);
}

static void unlist(sherd__client *c, task *t)
{
    if (t->listed) sherd__grouped_remove(&c->tasks, &t->item);
    t->listed = false;
}

void sherd__worker_take_out(sherd__client *c, task *t)
{
    if (t->queued) unqueue(c, t);
    if (t->aside) {
        task **at = &c->aside;
        while (*at != t) at = &(*at)->next;
        *at = t->next;
        t->aside = false;
        c->aside_len--;
    }
    unlist(c, t);
}

void sherd__worker_drop_rounds(sherd__client *c, bool all)
{
    for (task *t = c->rounds, *next; t; t = next) {
        next = t->next_round;
        if (!all && !sherd__round_gone(t->round)) continue;
        sherd__round_unqueue(t->round);
        sherd__worker_take_out(c, t);
        sherd__worker_release(t);
    }
}

task *sherd__worker_next(sherd__worker *w)
{
    if (!w->last) return NULL;
    sherd__client *c = w->last->turn_next;
    task *t = c->head;
    if (t->next) w->last = c;
    unqueue(c, t);
    return t;
}
