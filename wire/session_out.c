/*
 * The sending half of a session: converts queues to bytes. Control records wait encoded in one
 * buffer. Bulk data (PUT, RESULT, and TASK and DROP, which must stay in order with them) waits as
 * entries of a ring. It is encoded only when the transport asks for it, one chunk at a time,
 * directly into the single buffer that is offered. That buffer always ends at the end of a record,
 * so urgent records can overtake bulk data there.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "wire/message.h"
#include "wire/says.h"
#include "wire/session_state.h"
#include "wire/size.h"

enum {
    LEND_MIN = 64 * 1024 /* bytes of a chunk that is sent from its own memory */,
    BULKS_FIRST = 16,
    ENTRY_BYTES = 64 /* memory counted for an entry in addition to its body */
};

/* ---- the bulk queue ---- */

static sherd__bulk *bulk_at(sherd__bulks *b, uint64_t sequence)
{
    return &b->ring[sequence & (b->cap - 1)];
}

int sherd__bulks_reserve(sherd__bulks *b)
{
    size_t len = (size_t)(b->tail - b->head), bytes;
    if (len < b->cap) return SHERD_OK;
    size_t cap = b->cap ? 2 * b->cap : BULKS_FIRST;
    if (!sherd__mul(cap, sizeof *b->ring, &bytes)) return SHERD_ENOMEM;
    sherd__bulk *ring = sherd__alloc(bytes);
    if (!ring) return SHERD_ENOMEM;
    for (uint64_t q = b->head; q != b->tail; q++) ring[q & (cap - 1)] = *bulk_at(b, q);
    sherd__free(b->ring);
    b->ring = ring;
    b->cap = cap;
    return SHERD_OK;
}

static uint64_t bulk_bytes(const sherd__bulk *item)
{
    uint64_t body = item->fragment ? sherd__fragment_info_of(item->fragment)->len : 0;
    return ENTRY_BYTES + body - item->offset;
}

void sherd__bulk_push(sherd__session *s, const sherd__bulk *item)
{
    assert(s->bulks.tail - s->bulks.head < s->bulks.cap);
    *bulk_at(&s->bulks, s->bulks.tail++) = *item;
    s->bulk_bytes += bulk_bytes(item);
}

static void bulk_pop(sherd__session *s)
{
    sherd__bulk *item = bulk_at(&s->bulks, s->bulks.head++);
    s->bulk_bytes -= bulk_bytes(item);
    sherd__fragment_free(item->fragment);
}

void sherd__lent_done(sherd__session *s)
{
    s->lent = NULL;
    s->lent_len = s->lent_sent = 0;
    sherd__fragment_free(s->lender);
    s->lender = NULL;
}

void sherd__bulks_clear(sherd__session *s)
{
    if (s->lent && !s->lender) { /* the rest of the record must still be sent */
        sherd__bulk *item = bulk_at(&s->bulks, s->bulks.head++);
        s->bulk_bytes -= bulk_bytes(item);
        s->lender = item->fragment;
    }
    if (s->opt.role == SHERD__NODE && !s->unsent.ring) {
        s->unsent = s->bulks;
        s->bulks = (sherd__bulks){ .ring = NULL };
        s->bulk_bytes = 0;
    }
    while (s->bulks.head != s->bulks.tail) bulk_pop(s);
}

size_t sherd__bulks_reap(sherd__session *s, size_t most)
{
    sherd__bulks *b = &s->unsent;
    size_t n = 0;
    for (; n < most && b->head != b->tail; n++)
        sherd__fragment_free(bulk_at(b, b->head++)->fragment);
    return n;
}

/* ---- the control queue ---- */

/* Takes budget for the memory that `need` more bytes require. Returns false if there is none. */
static bool count_controls(sherd__session *s, size_t need)
{
    size_t cap = s->controls.cap ? s->controls.cap : SHERD__ANSWERS_FREE;
    while (cap < s->controls.len + need) cap *= 2;
    size_t more = cap > SHERD__ANSWERS_FREE ? cap - s->controls_counted : 0;
    if (more && !sherd__budget_take(&s->opt.budget, more)) return false;
    s->controls_counted += more;
    return true;
}

void sherd__controls_clear(sherd__session *s)
{
    s->controls.len = s->controls_sent = 0;
    if (s->controls_counted == 0) return;
    sherd__buf_fini(&s->controls);
    sherd__budget_give(&s->opt.budget, s->controls_counted);
    s->controls_counted = 0;
}

int sherd__control_push(sherd__session *s, const sherd__record *r, const uint8_t *body, size_t most)
{
    size_t need = SHERD__RECORD_BYTES + (size_t)r->body_len;
    uint8_t *at;
    if (s->controls.len - s->controls_sent > most - need) return SHERD_EBUSY;
    if (s->controls_sent > s->controls.len / 2) {
        sherd__buf_consume(&s->controls, s->controls_sent);
        s->controls_sent = 0;
    }
    if (!count_controls(s, need)) return SHERD_EBUSY;
    int err = sherd__buf_reserve(&s->controls, need, &at);
    if (err) return err;
    sherd__record_pack(r, at);
    if (r->body_len) memcpy(at + SHERD__RECORD_BYTES, body, (size_t)r->body_len);
    sherd__buf_commit(&s->controls, need);
    return SHERD_OK;
}

int sherd__control_refuse(sherd__session *s, const sherd__refusal *r, size_t most)
{
    uint8_t body[SHERD__CONTROL_MAX];
    sherd__refusal said = *r;
    snprintf(said.text, sizeof said.text, "%s", sherd__says(r->code, r->text));
    if (s->opt.withheld && strcmp(said.text, r->text)) s->opt.withheld(s->opt.withheld_ctx, r);
    sherd__record rec = { .type = SHERD__REC_REFUSE,
                          .job = r->job,
                          .number = r->block ? r->block : r->task,
                          .part = r->attempt,
                          .body_len = sherd__message_refuse(body, &said) };
    int err = sherd__control_push(s, &rec, body, most);
    if (!err) s->stats.refusals++;
    return err;
}

/* ---- filling the offer ---- */

static size_t offer_room(const sherd__session *s)
{
    return SHERD__OFFER_MAX - s->offer_len;
}

/* Returns where to write the body of the next record; its header is written before it later. */
static uint8_t *offer_body(sherd__session *s)
{
    return s->offer + s->offer_len + SHERD__RECORD_BYTES;
}

static void offer_record(sherd__session *s, const sherd__record *r)
{
    sherd__record_pack(r, s->offer + s->offer_len);
    s->offer_len += SHERD__RECORD_BYTES + (size_t)r->body_len;
    s->stats.records_out++;
    if (!sherd__size_counts(r->type)) return;
    s->stats.work_out += SHERD__RECORD_BYTES + r->body_len;
    s->offer_work += SHERD__RECORD_BYTES + (size_t)r->body_len;
}

static void offer_pings(sherd__session *s)
{
    if (s->pong_due)
        offer_record(s, &(sherd__record){ .type = SHERD__REC_PONG, .number = s->pong_due });
    if (s->ping_due)
        offer_record(s, &(sherd__record){ .type = SHERD__REC_PING, .number = s->ping_sent });
    s->pong_due = 0;
    s->ping_due = false;
}

static void offer_controls(sherd__session *s)
{
    while (s->controls_sent < s->controls.len) {
        const uint8_t *rec = s->controls.data + s->controls_sent;
        size_t len = SHERD__RECORD_BYTES + (size_t)sherd__get_u64(rec + 24);
        if (len > offer_room(s)) return;
        memcpy(s->offer + s->offer_len, rec, len);
        s->offer_len += len;
        s->controls_sent += len;
        s->stats.records_out++;
    }
    sherd__controls_clear(s);
}

static void offer_bye(sherd__session *s)
{
    if (offer_room(s) < SHERD__RECORD_BYTES + SHERD__CONTROL_MAX) return;
    size_t len = sherd__message_bye(offer_body(s), s->bye_code,
                                    sherd__says(s->bye_code, s->bye_text));
    offer_record(s, &(sherd__record){ .type = SHERD__REC_BYE, .body_len = len });
    s->bye_due = false;
    s->bye_offered = true;
}

static bool offer_drop(sherd__session *s, uint64_t job, uint32_t block)
{
    if (offer_room(s) < SHERD__RECORD_BYTES) return false;
    offer_record(s, &(sherd__record){ .type = SHERD__REC_DROP, .job = job, .number = block });
    return true;
}

static bool offer_task(sherd__session *s, const sherd__bulk *item)
{
    const sherd__task *t = &item->task;
    if (offer_room(s) < SHERD__RECORD_BYTES + SHERD__CONTROL_MAX) return false;
    if (item->cancelled) {
        bool left = t->flags & SHERD__DROP_LEFT, right = t->flags & SHERD__DROP_RIGHT && t->right;
        return (!left || offer_drop(s, t->job, t->left)) &&
               (!right || offer_drop(s, t->job, t->right));
    }
    size_t len = sherd__message_task(offer_body(s), t);
    offer_record(s, &(sherd__record){ .type = SHERD__REC_TASK,
                                      .job = t->job,
                                      .number = t->task,
                                      .part = t->attempt,
                                      .body_len = len });
    return true;
}

static bool offer_description(sherd__session *s, sherd__bulk *item)
{
    bool result = s->opt.role == SHERD__NODE;
    if (offer_room(s) < SHERD__RECORD_BYTES + SHERD__CONTROL_MAX) return false;
    size_t len = sherd__message_description(offer_body(s), sherd__fragment_info_of(item->fragment),
                                            result ? &item->task.attempt : NULL);
    offer_record(s, &(sherd__record){ .type = result ? SHERD__REC_RESULT : SHERD__REC_PUT,
                                      .job = item->task.job,
                                      .number = item->task.task,
                                      .body_len = len });
    item->described = true;
    return true;
}

/* Returns true if one more record is in the offer, or if the fragment is complete. */
static bool offer_chunk(sherd__session *s, sherd__bulk *item)
{
    uint64_t rest = sherd__fragment_info_of(item->fragment)->len - item->offset;
    size_t len = rest < SHERD__CHUNK ? (size_t)rest : SHERD__CHUNK;
    const uint8_t *bytes = len < LEND_MIN ? NULL : sherd__fragment_bytes(item->fragment);
    if (offer_room(s) < SHERD__RECORD_BYTES + (bytes ? 0 : len)) return false;
    int err = bytes ? SHERD_OK
                    : sherd__fragment_read(item->fragment, item->offset, offer_body(s), len);
    if (err) {
        sherd__session_end(s, err, true, "reading a fragment failed at byte %llu",
                           (unsigned long long)item->offset);
        return false;
    }
    offer_record(s, &(sherd__record){ .type = s->opt.role == SHERD__NODE ? SHERD__REC_RESULT
                                                                         : SHERD__REC_PUT,
                                      .job = item->task.job,
                                      .number = item->task.task,
                                      .part = ++item->part,
                                      .body_len = len });
    if (bytes) {
        s->offer_len -= len; /* the body is not in the offer but follows it */
        s->offer_work -= len;
        s->lent = bytes + item->offset;
        s->lent_len = len;
    }
    item->offset += len;
    s->bulk_bytes -= len;
    return true;
}

/* Returns true if the front entry of the queue made progress. */
static bool offer_bulk(sherd__session *s)
{
    sherd__bulk *item = bulk_at(&s->bulks, s->bulks.head);
    switch (item->kind) {
    case SHERD__BULK_TASK:
        if (!offer_task(s, item)) return false;
        break;
    case SHERD__BULK_DROP:
        if (!offer_drop(s, item->task.job, item->task.task)) return false;
        break;
    case SHERD__BULK_FRAGMENT:
        if (!item->described) return offer_description(s, item);
        if (item->offset < sherd__fragment_info_of(item->fragment)->len) {
            if (!offer_chunk(s, item)) return false;
            if (s->lent || item->offset < sherd__fragment_info_of(item->fragment)->len) return true;
        }
        break;
    }
    bulk_pop(s);
    return true;
}

static void offer_fill(sherd__session *s)
{
    s->offer_len = s->offer_sent = s->offer_work = 0;
    if (s->bye_offered) return;                       /* nothing may follow a BYE */
    if (s->stats.records_out == 0) offer_controls(s); /* nothing may precede HELLO or WELCOME */
    offer_pings(s);
    offer_controls(s);
    if (!s->bye_due)
        while (s->offer_len < SHERD__CHUNK && !s->lent && s->bulks.head != s->bulks.tail &&
               offer_bulk(s)) {}
    if (s->bye_due) offer_bye(s);
}

size_t sherd__session_pending(sherd__session *s, uint64_t now_ms, const uint8_t **out)
{
    if (now_ms > s->now_ms) s->now_ms = now_ms;
    if (s->offer_sent == s->offer_len && !s->lent) offer_fill(s);
    if (s->offer_sent == s->offer_len && s->lent) {
        *out = s->lent + s->lent_sent;
        return s->lent_len - s->lent_sent;
    }
    *out = s->offer + s->offer_sent;
    return s->offer_len - s->offer_sent;
}

void sherd__session_sent(sherd__session *s, size_t n)
{
    bool lent = s->offer_sent == s->offer_len && s->lent;
    const uint8_t *from = lent ? s->lent + s->lent_sent : s->offer + s->offer_sent;
    assert(n <= (lent ? s->lent_len - s->lent_sent : s->offer_len - s->offer_sent));
    if (n && s->opt.tap) s->opt.tap(s->opt.tap_ctx, true, from, n);
    s->stats.bytes_out += n;
    size_t work = lent ? n : n < s->offer_work ? n : s->offer_work;
    if (!lent) s->offer_work -= work;
    s->stats.moved_out += work;
    if (!lent) s->offer_sent += n;
    else if ((s->lent_sent += n) == s->lent_len) sherd__lent_done(s);
}

uint64_t sherd__session_queued(const sherd__session *s)
{
    return s->bulk_bytes + (s->controls.len - s->controls_sent);
}
