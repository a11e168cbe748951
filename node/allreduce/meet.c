/*
 * The members of an all-reduce group, and links to those that the schedule names. Plan, roster and
 * recipe come from the coordinator. This node must be in the roster at its own place under its own
 * key, no member may have a key that gives tasks to this node, and with --peers all members must be
 * in that file.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "node/allreduce/state.h"

enum { ROSTER_LINE = 1024 }; /* bytes of a line, including its end */

/* ---- end ------------------------------------------------------------------------------------- */

void sherd__allreduce_disconnect(sherd__allreduce *c)
{
    for (uint32_t i = 0; i < SHERD__ALLREDUCE_MOST; i++) {
        void *link = c->peers[i].link;
        c->peers[i].link = NULL;
        if (link) c->site.links.close(c->site.links.ctx, link);
        c->peers[i] = (allreduce_peer){ 0 };
    }
}

void sherd__allreduce_drop_scratch(sherd__allreduce *c)
{
    sherd__pool_give(c->site.pool, c->scratch, c->scratch_len);
    c->scratch = NULL;
    c->scratch_len = c->scratch_each = 0;
}

static void end_member(void *member)
{
    sherd__member_free(member);
}

void sherd__allreduce_leave(sherd__allreduce *c)
{
    sherd__allreduce_disconnect(c);
    sherd__allreduce_drop_round(c);
    sherd__allreduce_drop_pieces(c, UINT64_MAX);
    sherd__allreduce_drop_scratch(c);
    sherd__allreduce_sum_free(c);
    sherd__packs_close(&c->packs, &c->old);
    sherd__block_release(c->state);
    sherd__later_end(&c->site.later, c->site.pool, end_member, c->member, c->reserved);
    sherd__peers_fini(&c->roster);
    *c = (sherd__allreduce){ .site = c->site, .old = c->old };
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool dense(const sherd__fragment *f, uint8_t dtype)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    return i->encoding == SHERD__DENSE && i->groups == 0 && i->rows == 1 && i->dtype == dtype &&
           sherd__fragment_bytes(f);
}

static int read_plan(const sherd__block *left, sherd__allreduce_plan *p, sherd_diag *d)
{
    if (!dense(left->fragment, SHERD_I64))
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is not a plan", left->number);
    return sherd__allreduce_plan_parse(p, sherd__fragment_bytes(left->fragment),
                                       (size_t)sherd__fragment_info_of(left->fragment)->len, d);
}

static int check_member(const sherd__allreduce *c, const sherd__allreduce_plan *p, uint32_t i,
                        const sherd__peer *peer, sherd_diag *d)
{
    const sherd__fingerprint *self = sherd__identity_fingerprint(c->site.identity);
    if (!peer->has_key || strcmp(peer->host, "*") == 0)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "member %u has no address, or no key", i);
    if ((i == p->self) != sherd__fingerprint_equal(&peer->key, self))
        return sherd__fail(d, SHERD_EAUTH, NULL, "member %u is not this node, or another member is",
                           i);
    if (i == p->self) return SHERD_OK;
    if (c->site.coordinator && c->site.coordinator(c->site.coordinator_ctx, &peer->key))
        return sherd__fail(d, SHERD_EAUTH, NULL, "member %u has a key that gives tasks here", i);
    if (c->site.peers && !sherd__peers_find(c->site.peers, &peer->key))
        return sherd__fail(d, SHERD_EAUTH, NULL, "member %u's key is not in --peers of this node",
                           i);
    return SHERD_OK;
}

/* Returns whether the roster has at most as many lines as members. A longer one is not parsed,
 * since parsed peers take more memory than their lines. */
static bool roster_fits(const char *text, size_t len, uint32_t members)
{
    uint32_t lines = 0;
    if (len > (size_t)members * ROSTER_LINE) return false;
    for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
    return lines <= members;
}

/* Reads the roster: lines as in a node file, in the members' order. */
static int read_roster(const sherd__allreduce *c, const sherd__allreduce_plan *p,
                       const sherd__block *right, sherd__peers *out, sherd_diag *d)
{
    if (!dense(right->fragment, SHERD_U8))
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is not a roster", right->number);
    const char *text = (const char *)sherd__fragment_bytes(right->fragment);
    size_t len = (size_t)sherd__fragment_info_of(right->fragment)->len;
    if (!roster_fits(text, len, p->members))
        return sherd__fail(d, SHERD_EFORMAT, NULL, "a roster of %zu bytes for %u members", len,
                           p->members);
    int err = sherd__peers_parse(out, text, len, "roster", d);
    if (err) return err;
    if (out->len != p->members)
        err = sherd__fail(d, SHERD_EFORMAT, NULL, "a roster of %zu for %u members", out->len,
                          p->members);
    for (uint32_t i = 0; i < p->members && !err; i++) err = check_member(c, p, i, &out->list[i], d);
    if (err) sherd__peers_fini(out);
    return err;
}

static int read_recipe(const sherd__allreduce *c, uint64_t job, uint32_t number, sherd__recipe *out,
                       sherd_diag *d)
{
    const sherd__block *b = sherd__store_find(c->site.store, job, number);
    if (!b || !dense(b->fragment, SHERD_U8))
        return sherd__fail(d, SHERD_EINVAL, NULL, "block %u is not a recipe", number);
    return sherd__recipe_parse(out, (const char *)sherd__fragment_bytes(b->fragment),
                               (size_t)sherd__fragment_info_of(b->fragment)->len, "recipe",
                               SHERD__RECIPE_NETWORK, d);
}

/* ---- MEET ------------------------------------------------------------------------------------ */

static sherd__member_options options_of(const sherd__allreduce *c)
{
    return (sherd__member_options){ .recipe = &c->recipe,
                                    .optimiser = c->plan.optimiser,
                                    .batch = c->plan.batch,
                                    .bits = c->plan.bits,
                                    .by = c->site.by,
                                    .passes = c->passes };
}

/* Frees the previous state, and reserves room for a new member. */
static int begin(sherd__allreduce *c, const sherd__task *t, sherd__allreduce_plan *p,
                 sherd__recipe *recipe, sherd_diag *d)
{
    uint64_t once, each;
    sherd__allreduce_leave(c);
    c->job = t->job;
    c->plan = *p;
    c->recipe = *recipe;
    sherd__block *state = sherd__store_find(c->site.store, t->job, p->state);
    if (!state || !dense(state->fragment, SHERD_F64))
        return sherd__fail(d, SHERD_EINVAL, NULL, "block %u is not a state", p->state);
    sherd__member_options o = options_of(c);
    int err = sherd__member_memory(&o, &once, &each, d);
    if (err) return err;
    c->passes = c->site.passes;
    if (!sherd__later_reserve_each(&c->site.later, c->site.pool, once, each, &c->passes))
        return sherd__fail_memory(d, "a training of %llu bytes", (unsigned long long)(once + each));
    c->reserved = once + each * c->passes;
    sherd__block_hold(c->state = state);
    return sherd__packs_open(&c->packs, c->site.pool, p->examples, d);
}

int sherd__allreduce_open_plan(sherd__allreduce *c, const sherd__task *t, const sherd__block *left,
                               const sherd__block *right, sherd_diag *d)
{
    sherd__allreduce_plan p;
    sherd__recipe recipe;
    sherd__peers roster;
    int err = read_plan(left, &p, d);
    if (!err && c->site.taken && c->site.taken(c->site.taken_ctx, p.id))
        err = sherd__fail(d, SHERD_EBUSY, NULL, "another all-reduce group has this name");
    if (!err) err = read_recipe(c, t->job, p.recipe, &recipe, d);
    if (err) return err;
    if (!p.state && (t->job != c->job || !c->member || p.bits != c->plan.bits ||
                     p.batch != c->plan.batch || p.examples != c->plan.examples))
        return sherd__fail(d, SHERD_EINVAL, NULL, "no state to continue from");
    err = read_roster(c, &p, right, &roster, d);
    if (err) return err;
    c->met = false;
    if (p.state) {
        err = begin(c, t, &p, &recipe, d);
    } else {
        sherd__allreduce_disconnect(c);
        sherd__allreduce_drop_round(c);
        sherd__allreduce_drop_pieces(c, UINT64_MAX);
        sherd__peers_fini(&c->roster);
        c->plan = p;
        c->bodies_in = 0;
    }
    c->roster = roster;
    if (err) sherd__allreduce_leave(c);
    return err;
}

int sherd__allreduce_meet(sherd__allreduce *c, sherd_diag *d)
{
    if (!c->plan.state) {
        sherd__member_meet(c->member);
        return SHERD_OK;
    }
    sherd__member_options o = options_of(c);
    int err = sherd__member_new(&c->member, &o, d);
    if (err) return err;
    const sherd__fragment *f = c->state->fragment;
    const void *bytes = sherd__fragment_bytes(f);
    return sherd__member_load(c->member, c->plan.round, bytes, sherd__fragment_info_of(f)->cols, d);
}

/* ---- CONNECT --------------------------------------------------------------------------------- */

static void want(sherd__allreduce *c, uint32_t member)
{
    allreduce_peer *p = &c->peers[member];
    if (p->wanted) return;
    p->wanted = true;
    int err = c->site.links.open ? c->site.links.open(c->site.links.ctx, &p->link, c, member,
                                                      &c->roster.list[member])
                                 : SHERD_EUNSUPPORTED;
    if (err) {
        p->link = NULL;
        p->err = err;
    }
}

bool sherd__allreduce_connected(sherd__allreduce *c)
{
    uint32_t steps = sherd__reduce_steps(c->plan.kind, c->plan.members);
    for (uint32_t i = 0; i < steps; i++)
        want(c, sherd__reduce_step_of(c->plan.kind, c->plan.members, c->plan.self, i).to);
    for (uint32_t i = 0; i < c->plan.members; i++) {
        const allreduce_peer *p = &c->peers[i];
        if (p->wanted && !p->session && !p->err) return false;
    }
    return true;
}

void sherd__allreduce_link_up(sherd__allreduce *c, uint32_t member, sherd__session *s)
{
    c->peers[member].session = s;
}
