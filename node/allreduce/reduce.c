/*
 * The all-reduce of one round: parts are sent as learn/reduce.h schedules them, and received parts
 * are added or copied. This runs on the loop's thread, some in each turn: adding takes less time
 * than the decryption of the same bytes.
 *
 * A block is sent directly from the sum, chunk by chunk as the connection takes it. This is
 * correct: after a part was sent in the first half, nothing changes it until its sum comes back in
 * the second half, and this sum includes what was sent. An abandoned round may have parts that are
 * still being sent: they keep the old sum alive, and the next round has another.
 *
 * Blocks may arrive before this member gets the STEP of their round, since other members may get it
 * first. They are kept in the entry of their step; a block of a later round replaces an earlier
 * one, since its sender has abandoned the earlier round.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "crypto/fragment_make.h"
#include "node/allreduce/state.h"

enum {
    ADD_TURN = 1 << 19, /* numbers that are added or copied, and sent, in one turn */
    STEPS_TURN = 16     /* steps in one turn, each with a block to send */
};

/* ---- sums ------------------------------------------------------------------------------------ */

static void release(allreduce_sum *s)
{
    if (!s || --s->holders > 0) return;
    sherd__pool_give(s->pool, (uint8_t *)s->values, 8 * s->len);
    sherd__free(s);
}

void sherd__allreduce_sum_free(sherd__allreduce *c)
{
    release(c->sum);
    c->sum = NULL;
}

int sherd__allreduce_sum_new(sherd__allreduce *c, sherd_diag *d)
{
    size_t len = sherd__member_count(c->member);
    allreduce_sum *s = c->sum;
    if (s && s->holders == 1 && s->len == len) return SHERD_OK;
    sherd__allreduce_sum_free(c);
    s = sherd__alloc(sizeof *s);
    uint8_t *bytes = s ? sherd__pool_get(c->site.pool, 8 * (uint64_t)len) : NULL;
    if (!bytes) {
        sherd__free(s);
        return sherd__fail_memory(d, "a sum of %zu numbers", len);
    }
    *s = (allreduce_sum){ 1, c->site.pool, len, (int64_t *)(void *)bytes };
    c->sum = s;
    return SHERD_OK;
}

/* ---- parts of a sum -------------------------------------------------------------------------- */

/* Consecutive blocks of a sum, as one or two ranges of it. */
typedef struct stretch {
    size_t at[2], len[2];
} stretch;

static stretch stretch_of(const sherd__allreduce *c, sherd__reduce_part p)
{
    size_t all = c->sum->len, len = sherd__reduce_len(all, c->plan.members, p);
    size_t at = sherd__reduce_at(all, c->plan.members, p.first);
    size_t first = len < all - at ? len : all - at;
    return (stretch){ { at, 0 }, { first, len - first } };
}

typedef struct sending {
    allreduce_sum *sum;
    stretch what;
} sending;

static int fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    const sending *s = ctx;
    for (int i = 0; i < 2; i++) {
        uint64_t bytes = 8 * (uint64_t)s->what.len[i];
        if (offset < bytes && len > 0) {
            size_t n = len < bytes - offset ? len : (size_t)(bytes - offset);
            memcpy(out, (const uint8_t *)(s->sum->values + s->what.at[i]) + offset, n);
            out += n;
            len -= n;
            offset += n;
        }
        offset -= bytes < offset ? bytes : offset;
    }
    return SHERD_OK;
}

static void free_sending(void *ctx)
{
    sending *s = ctx;
    release(s->sum);
    sherd__free(s);
}

static int send_part(sherd__allreduce *c, allreduce_peer *p, stretch what)
{
    uint64_t len = (uint64_t)what.len[0] + what.len[1];
    sherd__fragment_info info = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_I64, .rows = 1, .cols = len, .len = 8 * len
    };
    sherd__fragment *f;
    sending *s = sherd__alloc(sizeof *s);
    if (!s) return SHERD_ENOMEM;
    *s = (sending){ c->sum, what };
    int err = sherd__fragment_new_source(&f, &info,
                                         (sherd__fragment_source){ fill, free_sending, s });
    if (err) {
        sherd__free(s);
        return err;
    }
    c->sum->holders++;
    err = sherd__session_put(p->session, c->plan.id, sherd__allreduce_block(c->round, c->step), f);
    if (err) sherd__fragment_free(f);
    return err;
}

/* Returns numbers `first` to first + n - 1 of a stretch. */
static stretch some_of(stretch s, size_t first, size_t n)
{
    for (int i = 0; i < 2; i++) {
        size_t skip = first < s.len[i] ? first : s.len[i];
        first -= skip;
        s.at[i] += skip;
        s.len[i] = n < s.len[i] - skip ? n : s.len[i] - skip;
        n -= s.len[i];
    }
    return s;
}

static void take_part(sherd__allreduce *c, stretch what, const uint8_t *from, bool add)
{
    for (int i = 0; i < 2; i++) {
        int64_t *to = c->sum->values + what.at[i];
        if (add)
            for (size_t k = 0; k < what.len[i]; k++) {
                uint64_t v;
                memcpy(&v, from + 8 * k, 8);
                to[k] = (int64_t)((uint64_t)to[k] + v);
            }
        else if (what.len[i]) memcpy(to, from, 8 * what.len[i]);
        from += 8 * what.len[i];
    }
}

/* ---- the exchange ---------------------------------------------------------------------------- */

/* Marks the open round as failed, which the result of REDUCE will report. */
static void fail(sherd__allreduce *c, int err, const char *what, uint32_t member)
{
    if (c->err || !c->open) return;
    c->culprit = member;
    c->err = sherd__fail(&c->why, err, NULL, "%s member %u: %s", what, member, sherd_strerror(err));
    c->exchanging = false;
}

static sherd__reduce_step step_of(const sherd__allreduce *c, uint32_t step)
{
    return sherd__reduce_step_of(c->plan.kind, c->plan.members, c->plan.self, step);
}

/* Sends the out part of the current step. An empty part is not sent, nor does its receiver wait. */
static void send_step(sherd__allreduce *c)
{
    sherd__reduce_step s = step_of(c, c->step);
    allreduce_peer *p = &c->peers[s.to];
    stretch what = stretch_of(c, s.out);
    if (what.len[0] + what.len[1] == 0) return;
    int err = p->session ? send_part(c, p, what) : p->err ? p->err : SHERD_ECLOSED;
    if (err) fail(c, err, "cannot send to", s.to);
    else c->site.links.flush(c->site.links.ctx, p->link);
}

/* Adds or copies the in part of the current step, up to *most numbers; the rest follows in the next
 * turn. Returns true when the part is complete. */
static bool take_step(sherd__allreduce *c, size_t *most)
{
    sherd__reduce_step s = step_of(c, c->step);
    allreduce_piece *p = &c->pieces[c->step];
    stretch what = stretch_of(c, s.in);
    size_t rest = what.len[0] + what.len[1] - c->added;
    if (rest == 0) return true;
    if (!p->body || p->round != c->round) return false;
    size_t n = rest < *most ? rest : *most;
    take_part(c, some_of(what, c->added, n), sherd__fragment_bytes(p->body) + 8 * c->added, s.add);
    c->added += n;
    *most -= n;
    c->adding = n < rest;
    if (c->adding) return false;
    c->added = 0;
    sherd__fragment_free(p->body);
    *p = (allreduce_piece){ 0 };
    return true;
}

static uint64_t link_bytes(const sherd__allreduce *c, bool out)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->plan.members; i++) {
        const allreduce_peer *p = &c->peers[i];
        const sherd__session_stats *s = p->session ? sherd__session_stats_of(p->session) : NULL;
        sum += out ? p->out : p->in;
        if (s) sum += out ? s->bytes_out : s->bytes_in;
    }
    return sum;
}

uint64_t sherd__allreduce_moved(const sherd__allreduce *c)
{
    return link_bytes(c, true) + link_bytes(c, false) + c->bodies_in;
}

static void move(sherd__allreduce *c)
{
    size_t most = c->site.turns ? ADD_TURN : SIZE_MAX;
    uint32_t steps = c->site.turns ? STEPS_TURN : UINT32_MAX;
    c->adding = false;
    while (c->exchanging && c->step < c->steps && !c->adding && take_step(c, &most)) {
        if (++c->step < c->steps) send_step(c);
        c->adding = --steps == 0;
    }
    if (!c->exchanging || c->step < c->steps) return;
    c->exchanging = c->open = false;
    c->summed = true;
    c->bytes[0] = link_bytes(c, true);
    c->bytes[1] = link_bytes(c, false);
    c->bytes[2] = c->bodies_in;
}

void sherd__allreduce_continue(sherd__allreduce *c)
{
    if (c->adding) move(c);
}

void sherd__allreduce_exchange(sherd__allreduce *c)
{
    if (c->err) return; /* a link was lost meanwhile */
    c->exchanging = true;
    c->step = 0;
    c->added = 0;
    c->steps = sherd__reduce_steps(c->plan.kind, c->plan.members);
    sherd__allreduce_drop_pieces(c, c->round - 1);
    if (c->steps > 0) send_step(c);
    move(c);
}

void sherd__allreduce_drop_round(sherd__allreduce *c)
{
    c->open = c->exchanging = c->summed = false;
    c->err = SHERD_OK;
    c->why = (sherd_diag){ 0 };
    if (c->sum && c->sum->holders > 1) sherd__allreduce_sum_free(c); /* else it is kept */
}

void sherd__allreduce_drop_pieces(sherd__allreduce *c, uint64_t last)
{
    for (uint32_t i = 0; i < ALLREDUCE_STEPS; i++) {
        allreduce_piece *p = &c->pieces[i];
        if (!p->body || p->round > last) continue;
        sherd__fragment_free(p->body);
        *p = (allreduce_piece){ 0 };
    }
}

/* ---- members --------------------------------------------------------------------------------- */

void sherd__allreduce_link_down(sherd__allreduce *c, uint32_t member, int err, const char *why)
{
    allreduce_peer *p = &c->peers[member];
    const sherd__session_stats *s = p->session ? sherd__session_stats_of(p->session) : NULL;
    if (s) {
        p->out += s->bytes_out;
        p->in += s->bytes_in;
    }
    p->link = NULL;
    p->session = NULL;
    p->err = err ? err : SHERD_ECLOSED;
    if (!c->open || c->err) return;
    c->exchanging = false;
    c->culprit = member;
    c->err = sherd__fail(&c->why, p->err, NULL, "the link to member %u is lost: %s", member, why);
}

void sherd__allreduce_link_refused(sherd__allreduce *c, uint32_t member, const sherd__refusal *r)
{
    uint64_t round;
    uint32_t step;
    sherd__allreduce_block_of(r->block, c->round, &round, &step);
    if (r->job == c->plan.id && round == c->round) fail(c, r->code, "refused by", member);
}

/* Returns the number of the member with this key, or UINT32_MAX. */
static uint32_t member_of(const sherd__allreduce *c, const sherd__fingerprint *key)
{
    for (uint32_t i = 0; c->met && i < c->plan.members; i++)
        if (i != c->plan.self && sherd__fingerprint_equal(&c->roster.list[i].key, key)) return i;
    return UINT32_MAX;
}

uint64_t sherd__allreduce_knows(const sherd__allreduce *c, const sherd__fingerprint *key)
{
    return member_of(c, key) != UINT32_MAX ? c->plan.id : 0;
}

void sherd__allreduce_lost(sherd__allreduce *c, const sherd__fingerprint *key, uint64_t id)
{
    uint32_t member = member_of(c, key);
    if (member != UINT32_MAX && id == c->plan.id)
        fail(c, SHERD_ECLOSED, "lost the link of", member);
}

/* The step of a round that a block belongs to. */
typedef struct place {
    uint64_t round;
    uint32_t step;
} place;

/* Returns whether `member` may send block `number` of len bytes now, and its place. */
static bool expected(const sherd__allreduce *c, uint32_t member, uint64_t id, uint32_t number,
                     uint64_t len, place *at)
{
    if (member == UINT32_MAX || id != c->plan.id) return false;
    sherd__allreduce_block_of(number, c->round, &at->round, &at->step);
    if (at->step >= sherd__reduce_steps(c->plan.kind, c->plan.members) || at->round == 0)
        return false;
    sherd__reduce_step s = step_of(c, at->step);
    size_t all = sherd__member_count(c->member);
    return s.from == member && len > 0 &&
           len == 8 * (uint64_t)sherd__reduce_len(all, c->plan.members, s.in);
}

uint8_t *sherd__allreduce_place(sherd__allreduce *c, const sherd__fingerprint *key, uint64_t id,
                                uint32_t number, uint64_t len)
{
    place at;
    uint32_t member = member_of(c, key);
    if (!expected(c, member, id, number, len, &at)) return NULL;
    uint8_t *bytes = sherd__pool_get(c->site.pool, len);
    if (!bytes && at.round >= c->round && !c->err) {
        fail(c, SHERD_ENOMEM, "cannot store a block from", member);
        c->culprit = c->plan.self;
    }
    return bytes;
}

int sherd__allreduce_block_in(sherd__allreduce *c, const sherd__fingerprint *key, uint64_t id,
                              uint32_t number, sherd__fragment *f)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    place at;
    bool fits = i->dtype == SHERD_I64 && i->encoding == SHERD__DENSE && i->groups == 0 &&
                i->rows == 1 && sherd__fragment_bytes(f) &&
                expected(c, member_of(c, key), id, number, i->len, &at);
    allreduce_piece *p = fits ? &c->pieces[at.step] : NULL;
    if (!fits || (p->body && p->round == at.round)) {
        sherd__fragment_free(f);
        return SHERD_EUNASKED;
    }
    c->bodies_in += i->len;
    bool late = at.round < c->round || (p->body && p->round > at.round) ||
                (at.round == c->round && c->exchanging && at.step < c->step);
    if (late) { /* of an abandoned at.round, or received before: not needed */
        sherd__fragment_free(f);
        return SHERD_OK;
    }
    sherd__fragment_free(p->body);
    *p = (allreduce_piece){ at.round, f };
    if (!c->adding) move(c);
    return SHERD_OK;
}
