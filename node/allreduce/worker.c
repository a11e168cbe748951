/*
 * All-reduce tasks in the task loop. A task is accepted like any other, with memory for its result,
 * and is then set aside until the group can run it (node/allreduce/allreduce.h); then it is queued
 * with its client. Blocks from members arrive here too, and may be what a task waits for.
 */
#include "core/diag.h"
#include "node/worker_state.h"

static bool is_coordinator(void *ctx, const sherd__fingerprint *key)
{
    const sherd__worker *w = ctx;
    return w->opt.coordinator && w->opt.coordinator(w->opt.coordinator_ctx, key);
}

static bool name_taken(void *ctx, uint64_t name)
{
    const sherd__client *c = ctx;
    for (const sherd__client *o = c->worker->clients; o; o = o->next)
        if (o->allreduce && !o->closed && o->tenant != c->tenant &&
            sherd__allreduce_name(o->allreduce) == name)
            return true;
    return false;
}

int sherd__worker_allreduce(sherd__client *c, const sherd__task *what, const sherd__block *left,
                            const sherd__block *right, sherd_diag *d)
{
    sherd__worker *w = c->worker;
    sherd__allreduce_site site = { .identity = w->opt.self.identity,
                                   .peers = w->opt.self.peers,
                                   .links = w->opt.links,
                                   .coordinator = is_coordinator,
                                   .coordinator_ctx = w,
                                   .taken = name_taken,
                                   .taken_ctx = c,
                                   .pool = c->pool,
                                   .store = &c->store,
                                   .later = sherd__worker_later(c),
                                   .by = sherd__products_arithmetic(&c->products),
                                   .passes = sherd__team_threads(w->team),
                                   .team = w->team,
                                   .turns = w->opt.wake != NULL };
    if (!c->allreduce && sherd__allreduce_new(&c->allreduce, &site))
        return sherd__fail_memory(d, "all-reduce training");
    return sherd__allreduce_admit(c->allreduce, what, left, right, d);
}

int sherd__worker_set_aside(sherd__client *c, task *t)
{
    task **at = &c->aside;
    if (c->aside_len == ASIDE_MAX) return SHERD_ENOMEM;
    while (*at) at = &(*at)->next;
    *at = t;
    t->aside = true;
    c->aside_len++;
    sherd__worker_move(c);
    return SHERD_OK;
}

/* Moves the first task set aside that need not wait. Returns false where all must wait. */
static bool move_one(sherd__client *c)
{
    sherd__allreduce_begin_turn(c->allreduce);
    for (task **at = &c->aside; *at; at = &(*at)->next) {
        task *t = *at;
        sherd_diag d = { .code = 0 };
        if (sherd__grouped_is_given_up(&c->tasks, &t->item)) continue;
        sherd__allreduce_turn turn = sherd__allreduce_ready(c->allreduce, &t->what, t->left,
                                                            t->right, &d);
        if (turn == SHERD__ALLREDUCE_WAIT) continue;
        *at = t->next;
        t->next = NULL;
        t->aside = false;
        c->aside_len--;
        if (turn == SHERD__ALLREDUCE_NOW) {
            sherd__worker_answer_now(t);
        } else if (turn == SHERD__ALLREDUCE_GO) {
            t->group_waits = true;
            sherd__worker_queue(c, t);
        } else {
            if (c->session) sherd__worker_refuse(c, &t->what, d.code, d.message);
            sherd__worker_release(t);
        }
        return true;
    }
    return false;
}

void sherd__worker_move(sherd__client *c)
{
    if (!c->allreduce || c->moving || c->closed) return;
    c->moving = true;
    while (move_one(c)) continue;
    c->moving = false;
    if (sherd__allreduce_wants_turn(c->allreduce)) sherd__worker_stir(c);
    sherd__worker_pump(c->worker);
}

void sherd__worker_stir(sherd__client *c)
{
    sherd__worker *w = c->worker;
    if (!c->stirred) {
        c->stirred_next = NULL;
        *(w->stirred ? &w->stirred_last->stirred_next : &w->stirred) = c;
        w->stirred_last = c;
    }
    c->stirred = true;
    if (w->opt.wake) w->opt.wake(w->opt.wake_ctx);
}

void sherd__worker_calm(sherd__client *c)
{
    sherd__worker *w = c->worker;
    sherd__client *before = NULL, *o = w->stirred;
    if (!c->stirred) return;
    while (o != c) {
        before = o;
        o = o->stirred_next;
    }
    *(before ? &before->stirred_next : &w->stirred) = c->stirred_next;
    if (w->stirred_last == c) w->stirred_last = before;
    c->stirred = false;
}

void sherd__worker_allreduce_over(task *t)
{
    sherd__client *c = t->client;
    if (!t->group_waits) return;
    sherd__allreduce_done(c->allreduce, &t->what, t->err, t->answered);
    sherd__worker_stir(c); /* it may end without being run, and from any call */
}

/* ---- members --------------------------------------------------------------------------------- */

/* Continues with what waited for an event of a member. Must be called last. */
static void continue_client(sherd__client *c)
{
    sherd__worker_move(c);
    sherd__worker_flush(c->worker, c);
}

/* Returns the first stirred client of a key that has not had its part of this turn. */
static sherd__client *next_stirred(const sherd__worker *w)
{
    sherd__client *c = w->stirred;
    while (c && w->opt.wake && c->tenant->went == w->went) c = c->stirred_next;
    return c;
}

void sherd__worker_continue(sherd__worker *w)
{
    sherd__client *c;
    w->went++;
    for (unsigned n = 0; (n < STIRRED_TURN || !w->opt.wake) && (c = next_stirred(w)); n++) {
        c->tenant->went = w->went;
        sherd__worker_calm(c);
        sherd__allreduce_continue(c->allreduce);
        continue_client(c); /* this may end clients */
    }
    if (w->stirred && w->opt.wake) w->opt.wake(w->opt.wake_ctx);
}

static sherd__client *client_of(const sherd__worker *w, const sherd__allreduce *allreduce)
{
    for (sherd__client *c = w->clients; c; c = c->next)
        if (c->allreduce == allreduce) return c;
    return NULL;
}

void sherd__worker_link_up(sherd__worker *w, sherd__allreduce *allreduce, uint32_t member,
                           sherd__session *s)
{
    sherd__client *c = client_of(w, allreduce);
    sherd__allreduce_link_up(allreduce, member, s);
    if (c) continue_client(c);
}

void sherd__worker_link_down(sherd__worker *w, sherd__allreduce *allreduce, uint32_t member,
                             int err, const char *why)
{
    sherd__client *c = client_of(w, allreduce);
    sherd__allreduce_link_down(allreduce, member, err, why);
    if (c) continue_client(c);
}

void sherd__worker_link_refused(sherd__worker *w, sherd__allreduce *allreduce, uint32_t member,
                                const sherd__refusal *r)
{
    sherd__client *c = client_of(w, allreduce);
    sherd__allreduce_link_refused(allreduce, member, r);
    if (c) continue_client(c);
}

uint64_t sherd__worker_member(const sherd__worker *w, const sherd__fingerprint *key)
{
    uint64_t id = 0;
    for (const sherd__client *c = w->clients; c && !id; c = c->next)
        if (c->allreduce && !c->closed) id = sherd__allreduce_knows(c->allreduce, key);
    return id;
}

uint32_t sherd__worker_member_allreduces(const sherd__worker *w, const sherd__account *a,
                                         const sherd__fingerprint *key, uint64_t id)
{
    uint32_t groups = 0;
    for (const sherd__client *c = w->clients; c; c = c->next) {
        if (!c->allreduce || c->closed || &c->tenant->account != a) continue;
        uint64_t known = sherd__allreduce_knows(c->allreduce, key);
        groups += known && (!id || id == known);
    }
    return groups;
}

sherd__account *sherd__worker_allreduce_account(const sherd__worker *w,
                                                const sherd__allreduce *allreduce)
{
    return &client_of(w, allreduce)->tenant->account;
}

uint8_t *sherd__worker_member_place(sherd__worker *w, sherd__account **account,
                                    const sherd__fingerprint *key, uint64_t id, uint32_t number,
                                    uint64_t len)
{
    for (sherd__client *c = w->clients; c; c = c->next) {
        sherd__account *a = &c->tenant->account;
        if (!c->allreduce || c->closed || (*account && *account != a)) continue;
        uint8_t *bytes = sherd__allreduce_place(c->allreduce, key, id, number, len);
        if (!bytes) {
            if (sherd__allreduce_knows(c->allreduce, key) == id)
                sherd__worker_stir(c); /* place may have failed the round */
            continue;
        }
        *account = a;
        return bytes;
    }
    return NULL;
}

/* Returns a client of the account that has a group of this name with the member. */
static sherd__client *client_with(const sherd__worker *w, const sherd__account *a,
                                  const sherd__fingerprint *key, uint64_t id)
{
    for (sherd__client *c = w->clients; c; c = c->next)
        if (c->allreduce && !c->closed && (!a || a == &c->tenant->account) &&
            sherd__allreduce_knows(c->allreduce, key) == id)
            return c;
    return NULL;
}

int sherd__worker_member_block(sherd__worker *w, const sherd__account *a,
                               const sherd__fingerprint *key, uint64_t id, uint32_t number,
                               sherd__fragment *f)
{
    sherd__client *c = client_with(w, a, key, id);
    if (c) {
        int err = sherd__allreduce_block_in(c->allreduce, key, id, number, f);
        continue_client(c);
        return err;
    }
    sherd__fragment_free(f); /* of a group that has ended */
    return SHERD_OK;
}

void sherd__worker_member_gone(sherd__worker *w, const sherd__account *a,
                               const sherd__fingerprint *key, uint64_t id)
{
    sherd__client *c = client_with(w, a, key, id);
    if (!c) return;
    sherd__allreduce_lost(c->allreduce, key, id);
    continue_client(c);
}
