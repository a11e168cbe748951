/*
 * A round of secure aggregation on the coordinator: asks members, collects uploads, confirmations
 * and answers, and detects when too few members are left.
 *
 * Members are trusted for the values of what they sum, which cannot be checked, and for nothing
 * else. Numbers must be below q, and signatures must be of the coordinator's statement, since a
 * wrong one would end the round for all. A member that violates this is expelled.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "scheduler/secure/internal.h"

/* ---- failures ------------------------------------------------------------------------------ */

void sherd__secure_sent(sherd__secure_job *j, uint32_t node, int err)
{
    j->w.owner.touch(j->w.owner.ctx, node);
    if (err == SHERD_ENOMEM) sherd__secure_no_memory(j);
}

void sherd__secure_no_memory(sherd__secure_job *j)
{
    sherd__work_stop(&j->w, SHERD_ENOMEM, NULL, "out of memory for data that is sent to nodes");
}

/* ---- a round ------------------------------------------------------------------------------- */

/* Frees the sealed pieces and cancels tasks that are still open. */
static void end_round(sherd__secure_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        member *m = &j->nodes[i];
        sherd__fragment_free(m->pieces);
        m->pieces = NULL;
        if (!sherd__secure_in(m) || !m->asked) continue;
        (void)!sherd__session_cancel(m->w.session, j->o.id, 0, 0);
        j->w.owner.touch(j->w.owner.ctx, i);
        m->asked = 0;
    }
}

void sherd__secure_over(sherd__secure_job *j)
{
    sherd__secure_unbind(j);
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].opened = false;
    for (uint32_t i = 0; i < j->survivors_len; i++)
        j->nodes[j->node_of[j->survivors[i]]].opened = true;
    j->opened_step = j->sum->step;
    j->bound_least = j->a.threshold;
    j->phase = IDLE;
    j->sum = NULL;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].losses = 0;
    end_round(j);
    (void)sherd__secure_judge(j);
    j->done_sums++;
    sherd__request_slot_answer(&j->requests);
    j->w.changed(j->w.changed_ctx);
}

void sherd__secure_begin_round(sherd__secure_job *j, sherd__secure_sum *s)
{
    j->sum = s;
    j->round++;
    j->asked_sums++;
    j->phase = HIDING;
    j->survivors_len = j->answers = j->confirmed_len = 0;
    memset(j->uploads, 0, j->a.len * sizeof *j->uploads);
    s->a = j->a;
    s->uploads = j->uploads;
    s->answers = j->pieces;
    s->in = 0;
    sherd__secure_about_round(j);
    if (!sherd__secure_note_round(j)) return;
    for (uint32_t i = 0; i < j->o.nodes && !j->w.done; i++) {
        member *m = &j->nodes[i];
        m->sealed = m->hidden = false;
        if (!sherd__secure_in(m)) continue;
        if (m->next_block > UINT32_MAX - 8) m->next_block = SECURE_FIRST_BLOCK;
        sherd__secure_sent(j, i, sherd__secure_send_hide(j, m));
    }
}

/* Requests the sum again, in a round with its own masks: those of this round permanently hide what
 * was uploaded and not opened. */
static void ask_again(sherd__secure_job *j)
{
    sherd__secure_sum *s = j->sum;
    j->phase = IDLE;
    j->sum = NULL;
    j->asked_sums--;
    end_round(j);
    sherd__request_slot_ask(&j->requests, s);
}

/* Asks all members of the roster that are up, have sealed in this round and, as far as is known,
 * can open the pieces. A member with no upload in the sum can confirm and open it as well. */
static void ask_sealers(sherd__secure_job *j, int (*send)(sherd__secure_job *, member *))
{
    for (uint32_t i = 0; i < j->a.nodes && !j->w.done; i++) {
        uint32_t node = j->node_of[i];
        member *m = &j->nodes[node];
        if (sherd__secure_in(m) && m->sealed && m->clean) sherd__secure_sent(j, node, send(j, m));
    }
}

uint32_t sherd__secure_clean(const sherd__secure_job *j)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->a.nodes; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        n += sherd__secure_in(m) && m->sealed && m->clean;
    }
    return n;
}

void sherd__secure_begin_confirm(sherd__secure_job *j)
{
    j->survivors_len = 0;
    for (uint32_t i = 0; i < j->a.nodes; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        if (m->sealed && m->hidden) j->survivors[j->survivors_len++] = i;
    }
    if (j->survivors_len < sherd__secure_least(j)) {
        if (!j->exact) sherd__secure_bind(j, false);
        if (sherd__secure_hope(j)) ask_again(j);
        else sherd__secure_too_few(j, j->survivors_len, "gave a gradient");
        return;
    }
    j->phase = CONFIRMING;
    j->sum->in = j->survivors_len;
    for (uint32_t i = 0; i < j->a.nodes; i++) j->nodes[j->node_of[i]].clean = true;
    ask_sealers(j, sherd__secure_send_confirm);
    for (uint32_t i = 0; i < j->a.nodes; i++) {
        member *m = &j->nodes[j->node_of[i]];
        m->clean = !m->checks; /* until it reports that it can open all pieces */
    }
}

void sherd__secure_begin_open(sherd__secure_job *j)
{
    if (j->confirmed_len < j->a.threshold || sherd__secure_clean(j) < j->a.threshold) {
        sherd__secure_unopened(j);
        return;
    }
    if (!sherd__secure_name(j)) return;
    j->phase = OPENING;
    ask_sealers(j, sherd__secure_send_open);
}

void sherd__secure_unopened(sherd__secure_job *j)
{
    bool lost = sherd__secure_count(j) < j->a.threshold; /* otherwise those that are up refuse */
    bool opening = j->phase == OPENING;
    if (!opening && sherd__secure_judge(j)) lost = true;
    if (lost && !j->exact) sherd__secure_bind(j, opening);
    if (!lost || !sherd__secure_hope(j)) {
        bool signed_by_few = j->confirmed_len < j->a.threshold;
        sherd__secure_too_few(j,
                              opening         ? j->answers
                              : signed_by_few ? j->confirmed_len
                                              : sherd__secure_clean(j),
                              opening         ? "answered"
                              : signed_by_few ? "confirmed the members of the sum"
                                              : "can open what the others have sealed");
        return;
    }
    if (j->exact)
        sherd__work_say(&j->w,
                        "a sum could not be opened: it is requested again when all its %u nodes "
                        "are up",
                        j->bound);
    ask_again(j);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void lie(sherd__secure_job *j, uint32_t node, const char *what)
{
    j->w.owner.expel(j->w.owner.ctx, node, SHERD_EWRONG, what);
}

static const char no_numbers[] = "sent numbers outside the field";

void sherd__secure_take_upload(sherd__secure_job *j, uint32_t node, const uint8_t *bytes)
{
    uint64_t *x = sherd__alloc_large(j->a.len * sizeof *x);
    if (!x) {
        sherd__secure_no_memory(j);
        return;
    }
    if (sherd__aggregate_parse(bytes, j->a.len, x)) {
        lie(j, node, no_numbers);
    } else { /* added only if all numbers are valid */
        sherd__aggregate_add(j->uploads, x, j->a.len);
        j->nodes[node].hidden = true;
    }
    sherd__free(x);
}

void sherd__secure_take_confirmation(sherd__secure_job *j, uint32_t node, const uint8_t *bytes)
{
    uint8_t statement[SHERD__CONFIRMATION];
    const member *m = &j->nodes[node];
    if (j->confirmed_len >= j->a.threshold) return;
    sherd__confirmation(statement, j->o.id, j->round, j->bound_about, j->survivors,
                        j->survivors_len);
    if (!sherd__identity_verify(m->card, statement, sizeof statement, bytes)) {
        lie(j, node, "confirmed other survivors than it was sent");
        return;
    }
    uint8_t *at = j->confirmed + 8 * SHERD__SECURE_CONFIRMED * (size_t)j->confirmed_len++;
    sherd__put_u64(at, m->self);
    memcpy(at + 8, bytes, SHERD__SECURE_SIGNATURE);
}

void sherd__secure_take_check(sherd__secure_job *j, uint32_t node, const uint8_t *bytes)
{
    member *m = &j->nodes[node];
    m->clean = true;
    for (uint32_t i = 0; i < j->survivors_len; i++) {
        uint32_t other = j->node_of[j->survivors[i]];
        if (!bytes[i] || other == node) continue;
        m->clean = false;
        j->blames[(size_t)node * j->o.nodes + other] = 1;
        if (m->complaint_logged) continue;
        m->complaint_logged = true;
        sherd__work_say(&j->w, "%s cannot open what %s sealed for it: one of the two is at fault",
                        sherd__work_name(&j->w, node), sherd__work_name(&j->w, other));
    }
    if (m->clean && j->phase == OPENING) /* it was late for OPEN and may be needed */
        sherd__secure_sent(j, node, sherd__secure_send_open(j, m));
}

void sherd__secure_take_answer(sherd__secure_job *j, uint32_t node, const uint8_t *bytes)
{
    size_t n = sherd__aggregate_piece_len(&j->a);
    if (j->answers >= j->a.threshold) return;
    if (sherd__aggregate_parse(bytes, n, j->pieces + j->answers * n)) {
        lie(j, node, no_numbers);
        return;
    }
    j->sum->who[j->answers++] = j->nodes[node].self;
}
