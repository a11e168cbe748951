/*
 * Fair sharing among keys. Holders of keys with queued tasks are in a ring. The next task is taken
 * from the holder with the least time used, or the first in the ring of several, so that a holder
 * with many tasks, many sessions or long tasks delays another by one task at most. (Start-time fair
 * queueing: Goyal, Vin, Cheng, "Start-time fair queuing", SIGCOMM 1996, section 2. Differs in that
 * a task's time is estimated when it starts, and corrected when it ends.) A key's sessions take its
 * turns one after another, and share its part of the memory.
 *
 * A holder that enters the ring starts with at least served_us, the time used by the holder that
 * was last served: a holder without tasks saves up no time. One long task puts its holder back by
 * TURN_LEAD_US at most.
 */
#include "core/alloc.h"
#include "node/worker_state.h"

/* Memory for forms of a key's blocks: of its share, which may take it back. A form that a call uses
 * cannot be taken back, so it must not count for other keys. */

static uint8_t *lend(void *pool, uint64_t len)
{
    return sherd__pool_lend(pool, len);
}

static void give_back(void *pool, uint8_t *bytes, uint64_t len)
{
    sherd__pool_take_back(pool, bytes, len);
}

static bool take_back(void *lending)
{
    return sherd__lending_relieve(lending);
}

tenant *sherd__worker_tenant(sherd__worker *w, const sherd__fingerprint *key, uint64_t memory)
{
    for (sherd__account *a = w->accounts; key && a; a = a->next) {
        if (!a->named || !sherd__fingerprint_equal(&a->key, key)) continue;
        sherd__pool_limit(a->pool, memory);
        return (tenant *)a;
    }
    tenant *t = sherd__calloc(1, sizeof *t);
    if (!t) return NULL;
    sherd__account *a = &t->account;
    if (sherd__pool_share(&a->pool, w->pool, memory)) {
        sherd__free(t);
        return NULL;
    }
    t->lending.from = (sherd__lender){ lend, give_back, a->pool };
    sherd__pool_lender(a->pool, take_back, &t->lending);
    a->named = key != NULL;
    if (key) a->key = *key;
    a->next = w->accounts;
    w->accounts = a;
    return t;
}

void sherd__worker_free_tenants(sherd__worker *w)
{
    for (sherd__account *a; (a = w->accounts);) {
        w->accounts = a->next;
        sherd__pool_free(a->pool);
        sherd__free(a);
    }
}

sherd__account *sherd__worker_accounts(const sherd__worker *w)
{
    return w->accounts;
}

sherd__account *sherd__worker_account(const sherd__client *c)
{
    return &c->tenant->account;
}

void sherd__worker_enter(sherd__worker *w, sherd__client *c)
{
    tenant *t = c->tenant;
    if (c->turn_next) return;
    c->turn_next = t->last ? t->last->turn_next : c;
    if (t->last) t->last->turn_next = c;
    t->last = c;
    if (t->turn_next) return;
    if (t->used_us < w->served_us) t->used_us = w->served_us;
    t->turn_next = w->last ? w->last->turn_next : t;
    if (w->last) w->last->turn_next = t;
    w->last = t;
}

static void leave(sherd__worker *w, tenant *t)
{
    tenant *before = t;
    while (before->turn_next != t) before = before->turn_next;
    before->turn_next = t->turn_next;
    if (w->last == t) w->last = before == t ? NULL : before;
    t->turn_next = NULL;
}

void sherd__worker_leave_turns(sherd__worker *w, sherd__client *c)
{
    tenant *t = c->tenant;
    if (!c->turn_next) return;
    sherd__client *before = c;
    while (before->turn_next != c) before = before->turn_next;
    before->turn_next = c->turn_next;
    if (t->last == c) t->last = before == c ? NULL : before;
    c->turn_next = NULL;
    if (!t->last) leave(w, t);
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

/* Takes a task out of the queue. Walking the rounds is cheap: there are few (SHERD__ROUNDS_MAX). */
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

void sherd__worker_charge(sherd__client *c, double us)
{
    const sherd__worker *w = c->worker;
    tenant *t = c->tenant;
    if (!w->opt.clock) return;
    t->used_us += us;
    if (t->used_us > w->served_us + TURN_LEAD_US) t->used_us = w->served_us + TURN_LEAD_US;
}

/* Returns the holder with the least time used. A linear search is enough: the allow-list and the
 * limit of connections bound the number of holders. */
static tenant *least_served(const sherd__worker *w)
{
    tenant *least = w->last->turn_next;
    for (tenant *t = least->turn_next; t != w->last->turn_next; t = t->turn_next)
        if (t->used_us < least->used_us) least = t;
    return least;
}

task *sherd__worker_next(sherd__worker *w)
{
    if (!w->last) return NULL;
    tenant *holder = least_served(w);
    if (holder->used_us > w->served_us) w->served_us = holder->used_us;
    sherd__client *c = holder->last->turn_next;
    task *t = c->head;
    if (t->next) holder->last = c;
    unqueue(c, t);
    if (holder->last) w->last = holder;
    return t;
}
