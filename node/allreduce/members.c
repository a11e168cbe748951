/*
 * Two kinds of connections in one list. A connection that was opened here belongs to a group, which
 * closes it or is informed of its end. An accepted connection belongs to a key. Bodies that it
 * received remain in the group after it has ended, and hold its record: through the record they go
 * back to the memory of the coordinator that the group belongs to.
 *
 * Every connection counts for a coordinator's key, and uses this key's part of connections, memory
 * and turns, since a coordinator may name members that do not exist. The first block of a
 * connection shows which group it is for. Until then it counts for a key with a group that has the
 * member.
 */
#include "node/allreduce/members.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "node/account.h"
#include "node/lines.h"
#include "sherd/version.h"

enum {
    MEMBER_LINKS = 4, /* for each group: one, and closing ones of earlier meetings */
    LOOKS = 128       /* connections that are examined for one to displace */
};

typedef struct conn {
    sherd__members *members;
    sherd__link *link;
    sherd__allreduce *allreduce; /* opened here, and the group still uses it */
    uint32_t member;
    bool incoming, over;
    bool displaced;          /* it no longer counts for an account */
    sherd__fingerprint key;  /* of an accepted connection */
    uint64_t id;             /* the group that it brings blocks of; 0: none so far */
    uint64_t bodies;         /* its bodies that are still in use */
    sherd__account *account; /* the account that it counts for */
    struct conn *prev, *next;
} conn;

struct sherd__members {
    sherd__members_options opt;
    sherd__worker *worker;
    conn *conns;
    uint32_t count;
    uint32_t looked;       /* index of the connection that is examined next */
    sherd__lines lines[2]; /* notes, problems: by the coordinator's key */
};

static void say(sherd__members *m, const sherd__account *a, bool problem, const char *what,
                const char *who, const char *why)
{
    char line[800];
    uint32_t left_out;
    bool may = sherd__lines_may(&m->lines[problem], &a->key, uv_now(m->opt.loop), &left_out);
    if (left_out > 0) {
        snprintf(line, sizeof line, "%u more lines about members were left out", left_out);
        m->opt.say(m->opt.ctx, problem, line);
    }
    if (!may) return;
    snprintf(line, sizeof line, "%s %s%s%s", what, who, why[0] ? ": " : "", why);
    m->opt.say(m->opt.ctx, problem, line);
}

static conn *new_conn(sherd__members *m)
{
    conn *c = sherd__calloc(1, sizeof *c);
    if (!c) return NULL;
    c->members = m;
    c->next = m->conns;
    if (c->next) c->next->prev = c;
    m->conns = c;
    m->count++;
    return c;
}

static void unlist(conn *c)
{
    sherd__members *m = c->members;
    *(c->prev ? &c->prev->next : &m->conns) = c->next;
    if (c->next) c->next->prev = c->prev;
    m->count--;
}

static void on_closed(void *ctx, sherd__link *l)
{
    conn *c = ctx;
    sherd__members *m = c->members;
    (void)l;
    unlist(c);
    if (!c->displaced) *(c->incoming ? &c->account->connections : &c->account->opened) -= 1;
    c->over = true;
    if (c->bodies == 0) sherd__free(c);
    if (m->count == 0) m->opt.drained(m->opt.ctx);
}

/* ---- opened connections ---------------------------------------------------------------------- */

static void on_event_out(void *ctx, sherd__link *l, sherd__event *e)
{
    conn *c = ctx;
    sherd__worker *w = c->members->worker;
    sherd__allreduce *allreduce = c->allreduce;
    sherd__fragment_free(e->fragment); /* no task was given over this connection */
    e->fragment = NULL;
    if (!allreduce) return;
    switch (e->kind) {
    case SHERD__EV_READY:
        sherd__worker_link_up(w, allreduce, c->member, sherd__link_session(l));
        break;
    case SHERD__EV_REFUSED: sherd__worker_link_refused(w, allreduce, c->member, &e->refusal); break;
    case SHERD__EV_CLOSED:
        c->allreduce = NULL;
        say(c->members, c->account, true, "no link to", sherd__link_peer_address(l), e->text);
        sherd__worker_link_down(w, allreduce, c->member, e->err, e->text);
        break;
    default: break;
    }
}

static int open_link(void *ctx, void **link, sherd__allreduce *allreduce, uint32_t member,
                     const sherd__peer *peer)
{
    sherd__members *m = ctx;
    sherd_diag d = { .code = 0 };
    sherd__link_options o = { .loop = m->opt.loop,
                              .identity = m->opt.identity,
                              .session = { .role = SHERD__COORDINATOR,
                                           .hello = { .minor_max = SHERD__MINOR,
                                                      .software = "sherd " SHERD_VERSION } } };
    sherd__account *a = sherd__worker_allreduce_account(m->worker, allreduce);
    if (a->opened >= m->opt.most(m->opt.ctx, a)) return SHERD_EBUSY;
    conn *c = new_conn(m);
    if (!c) return SHERD_ENOMEM;
    c->allreduce = allreduce;
    c->member = member;
    c->account = a;
    o.owner = (sherd__link_owner){ on_event_out, on_closed, c, &a->turn };
    int err = sherd__link_connect(&c->link, &o, peer->host, peer->port, &peer->key, &d);
    if (err) {
        say(m, a, true, "no link to", peer->host, d.message);
        unlist(c);
        sherd__free(c);
        return err;
    }
    a->opened++;
    *link = c;
    return SHERD_OK;
}

static void flush_link(void *ctx, void *link)
{
    (void)ctx;
    sherd__link_flush(((conn *)link)->link);
}

static void close_link(void *ctx, void *link)
{
    conn *c = link;
    (void)ctx;
    c->allreduce = NULL;
    sherd__link_close(c->link, 0, "the all-reduce group has ended");
}

/* ---- accepted connections -------------------------------------------------------------------- */

static bool counts_for(const conn *c, const sherd__account *a, const sherd__fingerprint *key)
{
    return c->incoming && !c->displaced && c->account == a &&
           sherd__fingerprint_equal(&c->key, key);
}

/* Returns how many connections of this member count for this account. */
static uint32_t has(const sherd__members *m, const sherd__account *a, const sherd__fingerprint *key)
{
    uint32_t n = 0;
    for (const conn *c = m->conns; c; c = c->next) n += counts_for(c, a, key);
    return n;
}

/* Returns how many groups of the account have this member and no connection of it; below 0: the
 * number of connections beyond one for each group. */
static int64_t wants(const sherd__members *m, const sherd__account *a,
                     const sherd__fingerprint *key)
{
    return (int64_t)sherd__worker_member_allreduces(m->worker, a, key, 0) - has(m, a, key);
}

/* Returns the number of connections of an account up to which members may have one more. A quarter
 * is left for the coordinator. */
static uint32_t line_of(const sherd__members *m, const sherd__account *a)
{
    uint32_t most = m->opt.most(m->opt.ctx, a);
    return most - most / 4;
}

/* Returns how many more connections of this member may count for this account. */
static uint32_t left_of(const sherd__members *m, const sherd__account *a,
                        const sherd__fingerprint *key)
{
    if (a->connections >= line_of(m, a)) return 0;
    uint32_t most = MEMBER_LINKS * sherd__worker_member_allreduces(m->worker, a, key, 0);
    uint32_t have = has(m, a, key);
    return most > have ? most - have : 0;
}

/* Returns whether the connection may be for a group of another coordinator. */
static bool wanted_elsewhere(const sherd__members *m, const conn *c)
{
    for (const sherd__account *a = sherd__worker_accounts(m->worker); a; a = a->next)
        if (a != c->account && wants(m, a, &c->key) > 0) return true;
    return false;
}

/* Returns a member's oldest connection: of those for groups that have ended, else of those that
 * brought no block, else of all. NULL where it has none. */
static conn *oldest_of(const sherd__members *m, const sherd__account *a,
                       const sherd__fingerprint *key)
{
    conn *oldest = NULL;
    int best = 1;
    for (conn *c = m->conns; c; c = c->next) {
        if (!counts_for(c, a, key)) continue;
        bool over = c->id && !sherd__worker_member_allreduces(m->worker, a, key, c->id);
        int use = over ? 3 : c->id ? 1 : wanted_elsewhere(m, c) ? 0 : 2;
        if (use < best) continue;
        best = use;
        oldest = c;
    }
    return oldest;
}

/* Returns a connection of a member that has more than one for each of its groups, or NULL. Each
 * call examines a limited number of connections, and the next call continues. */
static conn *surplus(sherd__members *m, const sherd__account *a)
{
    uint32_t left = m->count < LOOKS ? m->count : LOOKS;
    const conn *c = m->conns;
    conn *found = NULL;
    if (m->count == 0) return NULL;
    m->looked %= m->count;
    for (uint32_t i = 0; i < m->looked; i++) c = c->next;
    for (; left > 0 && !found; left--, m->looked++, c = c->next ? c->next : m->conns)
        if (counts_for(c, a, &c->key) && wants(m, a, &c->key) < 0) found = oldest_of(m, a, &c->key);
    return found;
}

/* Displaces a connection, so that each member has one connection for each of its groups before
 * another one has more. The descriptor of the displaced connection is free on return. */
static bool make_room(sherd__members *m, sherd__account *a, const sherd__fingerprint *key)
{
    if (a->connections != line_of(m, a) || wants(m, a, key) <= 0) return false;
    conn *c = surplus(m, a);
    if (!c) return false;
    c->displaced = true;
    a->connections--;
    sherd__link_abort(c->link, SHERD_EBUSY, "another member of the coordinator has none");
    return true;
}

/* Returns the account in which this member may have the most further connections, or one where
 * another member's connection was displaced, or NULL. */
static sherd__account *choose(sherd__members *m, const sherd__fingerprint *key)
{
    sherd__account *best = NULL;
    uint32_t most = 0;
    for (sherd__account *a = sherd__worker_accounts(m->worker); a; a = a->next) {
        uint32_t left = left_of(m, a, key);
        if (left <= most) continue;
        most = left;
        best = a;
    }
    for (sherd__account *a = sherd__worker_accounts(m->worker); a && !best; a = a->next)
        if (make_room(m, a, key)) best = a;
    return best;
}

/* Moves a connection that brought a block of another coordinator's group to its account. */
static bool count_for(conn *c, sherd__account *a)
{
    if (left_of(c->members, a, &c->key) == 0 && !make_room(c->members, a, &c->key)) return false;
    c->account->connections--;
    c->account = a;
    a->connections++;
    sherd__link_turn(c->link, &a->turn);
    return true;
}

static uint8_t *place(void *ctx, uint64_t job, uint32_t number, uint64_t len)
{
    conn *c = ctx;
    sherd__account *a = c->id ? c->account : NULL;
    if (c->id && c->id != job) return NULL; /* a member of two groups has a connection for each */
    uint8_t *bytes = sherd__worker_member_place(c->members->worker, &a, &c->key, job, number, len);
    if (!bytes) return NULL;
    if (a != c->account && !count_for(c, a)) {
        sherd__worker_unplace(a->pool, bytes, len);
        return NULL;
    }
    c->bodies++;
    c->id = job;
    return bytes;
}

static void unplace(void *ctx, uint8_t *bytes, uint64_t len)
{
    conn *c = ctx;
    sherd__worker_unplace(c->account->pool, bytes, len);
    if (--c->bodies == 0 && c->over) sherd__free(c);
}

static void on_event_in(void *ctx, sherd__link *l, sherd__event *e)
{
    conn *c = ctx;
    sherd__members *m = c->members;
    const char *from = sherd__link_peer_address(l);
    int err = SHERD_OK;
    switch (e->kind) {
    case SHERD__EV_READY: say(m, c->account, false, "member is here:", from, ""); return;
    case SHERD__EV_CLOSED:
        say(m, c->account, false, "member is gone:", from, e->text);
        sherd__worker_member_gone(m->worker, c->account, &c->key, c->id);
        return;
    case SHERD__EV_BLOCK: {
        sherd__fragment *f = e->fragment;
        e->fragment = NULL;
        err = sherd__worker_member_block(m->worker, c->account, &c->key, e->job, e->block, f);
        break;
    }
    default: err = SHERD_EUNASKED; break; /* tasks, drops: a member may send blocks only */
    }
    if (!err) return;
    say(m, c->account, true, "refused member", from, "it sent a message that members may not send");
    sherd__link_close(l, SHERD_EUNASKED, "a member may send blocks of its all-reduce group only");
}

int sherd__members_accept(sherd__members *m, sherd__link *l, const sherd__fingerprint *key,
                          sherd__session_options *session, sherd__link_owner *owner)
{
    sherd__account *a = choose(m, key);
    if (!a) return SHERD_EBUSY;
    conn *c = new_conn(m);
    if (!c) return SHERD_ENOMEM;
    c->link = l;
    c->incoming = true;
    c->key = *key;
    c->account = a;
    a->connections++;
    session->role = SHERD__NODE;
    session->place = place;
    session->unplace = unplace;
    session->place_ctx = c;
    sherd__worker_member_session(m->worker, a, session);
    *owner = (sherd__link_owner){ on_event_in, on_closed, c, &a->turn };
    return SHERD_OK;
}

/* ---- all connections ------------------------------------------------------------------------- */

int sherd__members_new(sherd__members **out, const sherd__members_options *opt)
{
    sherd__members *m = *out = sherd__calloc(1, sizeof *m);
    if (!m) return SHERD_ENOMEM;
    m->opt = *opt;
    return SHERD_OK;
}

void sherd__members_free(sherd__members *m)
{
    sherd__free(m);
}

sherd__allreduce_links sherd__members_links(sherd__members *m)
{
    return (sherd__allreduce_links){ open_link, flush_link, close_link, m };
}

void sherd__members_serve(sherd__members *m, sherd__worker *w)
{
    m->worker = w;
}

uint32_t sherd__members_count(const sherd__members *m)
{
    return m->count;
}

void sherd__members_close(sherd__members *m)
{
    for (conn *c = m->conns, *next; c; c = next) {
        next = c->next;
        sherd__link_close(c->link, SHERD_ECLOSED, "the node is ending");
    }
}
