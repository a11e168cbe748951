/*
 * A node's side of a round, as a state machine without network code. It contains the rules that
 * keep a single mask from being opened, so that the code that transfers the bytes cannot bypass
 * them.
 */
#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "crypto/aggregate.h"

struct sherd__aggregate_member {
    sherd__aggregate a;
    uint32_t self;
    uint64_t job, round; /* round 0: no round yet */
    uint8_t about[SHERD__ABOUT];
    sherd__seal_key own;
    uint8_t (*keys)[32];
    sherd__aggregate_mask *mask;
    size_t piece;                       /* numbers per piece */
    uint64_t *pieces;                   /* nodes x piece */
    uint8_t *bytes;                     /* buffer for one piece, sent or received */
    bool *held;                         /* pieces[i] has arrived */
    uint32_t *survivors, survivors_len; /* of this round, as received; 0: not yet */
    bool *confirmed;                    /* node i confirmed the same survivors */
    bool answered;
};

static size_t piece_bytes(const sherd__aggregate_member *m)
{
    return m->piece * sizeof(uint64_t);
}

size_t sherd__aggregate_sealed_len(const sherd__aggregate *a)
{
    return sherd__aggregate_piece_len(a) * sizeof(uint64_t) + SHERD__SEAL_EXTRA;
}

int sherd__aggregate_member_new(sherd__aggregate_member **out, const sherd__aggregate *a,
                                const sherd__aggregate_self *self, sherd_diag *d)
{
    size_t each, all;
    *out = NULL;
    int err = sherd__aggregate_check(a, d);
    if (err != 0) return err;
    if (self->node >= a->nodes)
        return sherd__fail(d, SHERD_EINVAL, NULL, "node %u of %u", self->node, a->nodes);
    sherd__aggregate_member *m = sherd__calloc(1, sizeof *m);
    if (!m) return sherd__fail_memory(d, "aggregation");
    m->a = *a;
    m->self = self->node;
    m->job = self->job;
    m->own = *self->own;
    m->piece = sherd__aggregate_piece_len(a);
    m->keys = sherd__calloc(a->nodes, sizeof *m->keys);
    m->held = sherd__calloc(a->nodes, sizeof *m->held);
    m->survivors = sherd__calloc(a->nodes, sizeof *m->survivors);
    m->confirmed = sherd__calloc(a->nodes, sizeof *m->confirmed);
    if (sherd__mul(m->piece, sizeof(uint64_t), &each) && sherd__mul(each, a->nodes, &all)) {
        m->pieces = sherd__alloc_large(all);
        m->bytes = sherd__alloc(each);
    }
    if (!m->keys || !m->held || !m->survivors || !m->confirmed || !m->pieces || !m->bytes) {
        sherd__aggregate_member_free(m);
        return sherd__fail_memory(d, "%u pieces of %zu numbers", a->nodes,
                                  sherd__aggregate_piece_len(a));
    }
    memcpy(m->keys, self->keys, a->nodes * sizeof *m->keys);
    *out = m;
    return SHERD_OK;
}

static void forget_round(sherd__aggregate_member *m)
{
    sherd__aggregate_mask_free(m->mask);
    m->mask = NULL;
    for (uint32_t i = 0; i < m->a.nodes && m->held && m->pieces; i++) {
        if (m->held[i]) sherd__wipe(m->pieces + i * m->piece, piece_bytes(m));
        m->held[i] = false;
    }
    if (m->bytes) sherd__wipe(m->bytes, piece_bytes(m));
    if (m->confirmed) memset(m->confirmed, 0, m->a.nodes * sizeof *m->confirmed);
    m->survivors_len = 0;
    m->answered = false;
}

void sherd__aggregate_member_free(sherd__aggregate_member *m)
{
    if (!m) return;
    forget_round(m);
    sherd__free(m->keys);
    sherd__free(m->held);
    sherd__free(m->survivors);
    sherd__free(m->confirmed);
    sherd__free(m->pieces);
    sherd__free(m->bytes);
    sherd__wipe(m, sizeof *m);
    sherd__free(m);
}

int sherd__aggregate_begin(sherd__aggregate_member *m, uint64_t round,
                           const uint8_t about[SHERD__ABOUT], const sherd__entropy *e,
                           sherd_diag *d)
{
    if (round <= m->round)
        return sherd__fail(d, SHERD_EINVAL,
                           "round numbers must ascend, so that no mask is used twice",
                           "round %llu after round %llu", (unsigned long long)round,
                           (unsigned long long)m->round);
    forget_round(m);
    m->round = round;
    memcpy(m->about, about, sizeof m->about);
    int err = sherd__aggregate_mask_new(&m->mask, &m->a, e);
    if (err != 0) return sherd__fail_to(d, err, "draw a mask");
    sherd__aggregate_piece(m->mask, m->self, m->pieces + m->self * m->piece);
    m->held[m->self] = true;
    return SHERD_OK;
}

static int check_other(const sherd__aggregate_member *m, uint32_t node, sherd_diag *d)
{
    if (!m->mask) return sherd__fail(d, SHERD_EINVAL, NULL, "no round has started");
    if (node >= m->a.nodes || node == m->self)
        return sherd__fail(d, SHERD_EINVAL, NULL, "node %u: expected one of %u, except %u", node,
                           m->a.nodes, m->self);
    return SHERD_OK;
}

static sherd__seal_place place_of(const sherd__aggregate_member *m, uint32_t from, uint32_t to)
{
    sherd__seal_place place = { .job = m->job, .round = m->round, .from = from, .to = to };
    memcpy(place.about, m->about, sizeof place.about);
    return place;
}

int sherd__aggregate_send(sherd__aggregate_member *m, uint32_t to, uint8_t *sealed, sherd_diag *d)
{
    int err = check_other(m, to, d);
    if (err != 0) return err;
    uint64_t *piece = sherd__alloc(piece_bytes(m));
    if (!piece) return sherd__fail_memory(d, "a piece");
    sherd__aggregate_piece(m->mask, to, piece);
    sherd__aggregate_print(piece, m->piece, m->bytes);
    sherd__wipe(piece, piece_bytes(m));
    sherd__free(piece);
    err = sherd__seal(sealed, m->bytes, piece_bytes(m), place_of(m, m->self, to), &m->own,
                      m->keys[to]);
    return err == 0 ? err : sherd__fail(d, err, NULL, "cannot seal a piece for node %u", to);
}

int sherd__aggregate_receive(sherd__aggregate_member *m, uint32_t from, const uint8_t *sealed,
                             sherd_diag *d)
{
    int err = check_other(m, from, d);
    if (err != 0) return err;
    if (m->held[from])
        return sherd__fail(d, SHERD_EINVAL, NULL, "node %u has sent its piece of round %llu", from,
                           (unsigned long long)m->round);
    uint64_t *piece = m->pieces + from * m->piece;
    err = sherd__unseal(m->bytes, piece_bytes(m), sealed, place_of(m, from, m->self), m->keys[from],
                        &m->own);
    if (err == 0) err = sherd__aggregate_parse(m->bytes, m->piece, piece);
    if (err != 0)
        return sherd__fail(d, err, NULL, "node %u's piece is not what it sealed for round %llu",
                           from, (unsigned long long)m->round);
    m->held[from] = true;
    return SHERD_OK;
}

int sherd__aggregate_upload(sherd__aggregate_member *m, const int64_t *x, uint64_t *out,
                            sherd_diag *d)
{
    if (!m->mask) return sherd__fail(d, SHERD_EINVAL, NULL, "no round has started");
    int err = sherd__aggregate_hide(m->mask, x, out);
    if (err == SHERD_EINVAL)
        return sherd__fail(d, err, NULL, "round %llu already has its upload",
                           (unsigned long long)m->round);
    if (err != 0)
        return sherd__fail(d, err, "fewer fraction bits, or smaller numbers",
                           "a number to be summed is beyond %lld",
                           (long long)sherd__aggregate_bound(&m->a));
    return SHERD_OK;
}

/* ---- survivors, and the answer --------------------------------------------------------------- */

static int check_survivors(const sherd__aggregate_member *m, const uint32_t *survivors,
                           uint32_t len, sherd_diag *d)
{
    if (!m->mask) return sherd__fail(d, SHERD_EINVAL, NULL, "no round has started");
    if (m->survivors_len > 0)
        return sherd__fail(d, SHERD_EINVAL, "two sums of one round could be subtracted",
                           "round %llu already has its survivors", (unsigned long long)m->round);
    if (len < m->a.threshold)
        return sherd__fail(d, SHERD_EFEWNODES, NULL, "%u survivors: expected at least %u", len,
                           m->a.threshold);
    for (uint32_t i = 0; i < len; i++)
        if (survivors[i] >= m->a.nodes || (i > 0 && survivors[i] <= survivors[i - 1]))
            return sherd__fail(d, SHERD_EINVAL, NULL,
                               "survivor %u: expected ascending nodes below %u", survivors[i],
                               m->a.nodes);
    return SHERD_OK;
}

int sherd__aggregate_confirm(sherd__aggregate_member *m, const uint32_t *survivors, uint32_t len,
                             uint8_t statement[SHERD__CONFIRMATION], sherd_diag *d)
{
    int err = check_survivors(m, survivors, len, d);
    if (err != 0) return err;
    memcpy(m->survivors, survivors, len * sizeof *survivors);
    m->survivors_len = len;
    sherd__confirmation(statement, m->job, m->round, m->about, survivors, len);
    return SHERD_OK;
}

const uint32_t *sherd__aggregate_survivors(const sherd__aggregate_member *m, uint32_t *len)
{
    *len = m->survivors_len;
    return m->survivors_len > 0 ? m->survivors : NULL;
}

static int no_survivors(const sherd__aggregate_member *m, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu has no survivors yet",
                       (unsigned long long)m->round);
}

int sherd__aggregate_confirmed(sherd__aggregate_member *m, uint32_t from, sherd_diag *d)
{
    if (m->survivors_len == 0) return no_survivors(m, d);
    if (from >= m->a.nodes)
        return sherd__fail(d, SHERD_EINVAL, NULL, "node %u of %u", from, m->a.nodes);
    m->confirmed[from] = true;
    return SHERD_OK;
}

static int check_answer(const sherd__aggregate_member *m, sherd_diag *d)
{
    uint32_t confirmations = 0;
    if (m->survivors_len == 0) return no_survivors(m, d);
    if (m->answered)
        return sherd__fail(d, SHERD_EINVAL, NULL, "round %llu already has its answer",
                           (unsigned long long)m->round);
    for (uint32_t i = 0; i < m->a.nodes; i++) confirmations += m->confirmed[i];
    if (confirmations < m->a.threshold)
        return sherd__fail(d, SHERD_EFEWNODES, "other members may have been given other survivors",
                           "survivors that %u nodes confirm: expected at least %u", confirmations,
                           m->a.threshold);
    for (uint32_t i = 0; i < m->survivors_len; i++)
        if (!m->held[m->survivors[i]])
            return sherd__fail(d, SHERD_ECLOSED, NULL, "no piece of node %u was received",
                               m->survivors[i]);
    return SHERD_OK;
}

int sherd__aggregate_answer(sherd__aggregate_member *m, uint64_t *out, sherd_diag *d)
{
    int err = check_answer(m, d);
    if (err != 0) return err;
    memset(out, 0, piece_bytes(m));
    for (uint32_t i = 0; i < m->survivors_len; i++)
        sherd__aggregate_add(out, m->pieces + m->survivors[i] * m->piece, m->piece);
    m->answered = true;
    return SHERD_OK;
}
