/*
 * The coordinator of secure aggregation. It carries sealed pieces from node to node and opens none;
 * of uploads it keeps the sum. It is trusted to name one set of survivors to all: nodes hold it to
 * that by answering once (crypto/aggregate_member.c).
 *
 * Trusts nodes for what they sum, which nobody can check, and for nothing else: keys are the pinned
 * ones, numbers are below q, and whoever breaks that is expelled.
 */
#include "scheduler/secure_job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "scheduler/secure_internal.h"

#define PATIENCE_MS 60000.0 /* at least, until a member that has not answered is overdue */
#define PATIENCE_FIRST_MS 600000.0
#define PATIENCE_TIMES 30.0

/* ---- telling ------------------------------------------------------------------------------- */

static void say(const sherd__secure_job *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const sherd__secure_job *j, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    j->o.owner.log(j->o.owner.ctx, SHERD_LOG_WARN, text);
}

static const char *name_of(const sherd__secure_job *j, uint32_t node)
{
    return j->o.owner.name(j->o.owner.ctx, node);
}

static void stop(sherd__secure_job *j, int err, const char *hint, const char *message)
{
    if (j->done) return;
    j->done = true;
    j->err = sherd__fail(&j->diag, err, hint, "%s", message);
    j->o.changed(j->o.changed_ctx);
}

static void no_memory(sherd__secure_job *j)
{
    stop(j, SHERD_ENOMEM, NULL, "no memory for what nodes are sent");
}

static bool in(const member *m)
{
    return m->session && !m->out;
}

static uint32_t count_in(const sherd__secure_job *j)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) n += in(&j->nodes[i]);
    return n;
}

/* A session that takes no more is about to end; anything else is the end of all. */
static void sent(sherd__secure_job *j, uint32_t node, int err)
{
    j->o.owner.touch(j->o.owner.ctx, node);
    if (err == SHERD_ENOMEM) no_memory(j);
}

/* ---- JOIN and ROSTER ----------------------------------------------------------------------- */

/* All that are up, as members in their order; anew when one was lost before it had joined. */
static void begin_join(sherd__secure_job *j)
{
    sherd_diag d = { 0 };
    uint32_t n = count_in(j), u = j->o.train.survivors, t = j->o.train.colluding;
    if (n < 3) {
        stop(j, SHERD_EFEWNODES, "start more nodes",
             "secure aggregation needs 3 nodes that take part");
        return;
    }
    j->a = (sherd__aggregate){ .nodes = n, .colluding = t ? t : 1,
                               .len = j->o.count + SHERD__SECURE_EXTRA };
    j->a.threshold = u ? u : sherd__aggregate_threshold(n, j->a.colluding);
    int err = sherd__aggregate_check(&j->a, &d);
    if (err) {
        stop(j, err, d.hint[0] ? d.hint : NULL, d.message);
        return;
    }
    j->phase = JOINING;
    for (uint32_t i = 0, self = 0; i < j->o.nodes && !j->done; i++) {
        member *m = &j->nodes[i];
        if (!in(m)) continue;
        if (m->sealed || m->asked) (void)!sherd__session_forget(m->session, j->o.id);
        j->node_of[self] = i;
        m->self = self++;
        m->sealed = false;
        m->asked = 0;
        sent(j, i, sherd__secure_send_join(j, m));
    }
}

static void take_card(sherd__secure_job *j, uint32_t node, const uint8_t *card)
{
    member *m = &j->nodes[node];
    uint8_t statement[SHERD__SECURE_STATEMENT];
    sherd__fingerprint key;
    sherd__secure_plan p = { .nodes = j->a.nodes, .threshold = j->a.threshold,
                             .colluding = j->a.colluding };
    sherd__fingerprint_public(&key, card);
    sherd__secure_statement(statement, j->o.id, &p, m->self, card + 32);
    if (!sherd__fingerprint_equal(&key, j->o.key(j->o.key_ctx, node)) ||
        !sherd__identity_verify(card, statement, sizeof statement, card + 64)) {
        j->o.owner.expel(j->o.owner.ctx, node, SHERD_EWRONG, "signed no key of its own");
        return;
    }
    memcpy(m->card, card, sizeof m->card);
    m->sealed = true;
}

static void begin_roster(sherd__secure_job *j)
{
    uint8_t *cards = sherd__alloc((size_t)j->a.nodes * SHERD__SECURE_CARD);
    if (!cards) {
        no_memory(j);
        return;
    }
    for (uint32_t i = 0; i < j->a.nodes; i++)
        memcpy(cards + (size_t)i * SHERD__SECURE_CARD, j->nodes[j->node_of[i]].card,
               SHERD__SECURE_CARD);
    j->phase = ROSTER;
    for (uint32_t i = 0; i < j->a.nodes && !j->done; i++) {
        uint32_t node = j->node_of[i];
        sent(j, node, sherd__secure_send_roster(j, &j->nodes[node], cards));
    }
    sherd__free(cards);
}

static void too_few(sherd__secure_job *j, uint32_t have, const char *what)
{
    char text[160];
    snprintf(text, sizeof text, "%u of %u nodes %s: %u are needed to open the sum", have,
             j->a.nodes, what, j->a.threshold);
    stop(j, SHERD_EFEWNODES, "start nodes again; --survivors says how many must be left", text);
}

/* ---- a round ------------------------------------------------------------------------------- */

static void over(sherd__secure_job *j, int err, const char *text)
{
    sherd__secure_sum *s = j->sum;
    j->phase = IDLE;
    j->sum = NULL;
    if (err) s->err = sherd__fail(&s->why, err, NULL, "%s", text);
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        member *m = &j->nodes[i];
        sherd__fragment_free(m->pieces);
        m->pieces = NULL;
        if (!in(m) || !m->asked) continue; /* what is still open is not wanted */
        (void)!sherd__session_cancel(m->session, j->o.id, 0, 0);
        j->o.owner.touch(j->o.owner.ctx, i);
        m->asked = 0;
    }
    j->done_sums++;
    pthread_mutex_lock(&j->lock);
    j->answered = true;
    pthread_mutex_unlock(&j->lock);
    j->o.changed(j->o.changed_ctx);
}

static void begin_round(sherd__secure_job *j, sherd__secure_sum *s)
{
    if (count_in(j) < j->a.threshold) {
        too_few(j, count_in(j), "are left");
        return;
    }
    j->sum = s;
    j->round++;
    j->asked_sums++;
    j->phase = HIDING;
    j->survivors_len = j->answers = 0;
    memset(s->uploads, 0, j->a.len * sizeof *s->uploads);
    s->in = 0;
    s->err = SHERD_OK;
    s->why = (sherd_diag){ 0 };
    for (uint32_t i = 0; i < j->o.nodes && !j->done; i++) {
        member *m = &j->nodes[i];
        m->sealed = m->hidden = false;
        if (!in(m)) continue;
        if (m->next_block > UINT32_MAX - 8) m->next_block = SECURE_FIRST_BLOCK;
        sent(j, i, sherd__secure_send_hide(j, m));
    }
}

static void begin_open(sherd__secure_job *j)
{
    j->survivors_len = 0;
    for (uint32_t i = 0; i < j->a.nodes; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        if (m->sealed && m->hidden) j->survivors[j->survivors_len++] = i;
    }
    if (j->survivors_len < j->a.threshold) {
        too_few(j, j->survivors_len, "gave a gradient");
        return;
    }
    j->phase = OPENING;
    j->sum->in = j->survivors_len;
    for (uint32_t i = 0; i < j->a.nodes && !j->done; i++) {
        uint32_t node = j->node_of[i];
        member *m = &j->nodes[node];
        if (in(m) && m->sealed) sent(j, node, sherd__secure_send_open(j, m));
    }
}

/* ---- moving on ----------------------------------------------------------------------------- */

static bool open_tasks(const sherd__secure_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (in(&j->nodes[i]) && j->nodes[i].asked) return true;
    return false;
}

static bool all_joined(const sherd__secure_job *j)
{
    for (uint32_t i = 0; i < j->a.nodes; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        if (!in(m) || !m->sealed) return false;
    }
    return true;
}

static bool all_heard(const sherd__secure_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (!j->nodes[i].heard) return false;
    return true;
}

static void become_ready(sherd__secure_job *j)
{
    if (count_in(j) < j->a.threshold) {
        too_few(j, count_in(j), "are left");
        return;
    }
    j->phase = IDLE;
    pthread_mutex_lock(&j->lock);
    j->ready = true;
    pthread_mutex_unlock(&j->lock);
    j->o.changed(j->o.changed_ctx);
}

/* What can go on does; each phase waits for all who are still there. */
static void move(sherd__secure_job *j)
{
    if (j->done) return;
    switch (j->phase) {
    case HEARING:
        if (all_heard(j)) begin_join(j);
        break;
    case JOINING:
        if (open_tasks(j)) break;
        if (all_joined(j)) begin_roster(j);
        else begin_join(j); /* without those who were lost */
        break;
    case ROSTER:
        if (!open_tasks(j)) become_ready(j);
        break;
    case HIDING:
        if (!open_tasks(j)) begin_open(j);
        break;
    case OPENING:
        if (j->answers >= j->a.threshold) over(j, SHERD_OK, "");
        else if (!open_tasks(j)) too_few(j, j->answers, "answered");
        break;
    case IDLE: break;
    }
}

/* ---- answers ------------------------------------------------------------------------------- */

static void lie(sherd__secure_job *j, uint32_t node)
{
    j->o.owner.expel(j->o.owner.ctx, node, SHERD_EWRONG, "sent numbers that are none of the field");
}

/* Sums are only touched when all of it is well. */
static void take_upload(sherd__secure_job *j, uint32_t node, const uint8_t *bytes)
{
    uint64_t *x = sherd__alloc_large(j->a.len * sizeof *x);
    if (!x) {
        no_memory(j);
        return;
    }
    if (sherd__aggregate_parse(bytes, j->a.len, x)) {
        lie(j, node);
    } else {
        sherd__aggregate_add(j->sum->uploads, x, j->a.len);
        j->nodes[node].hidden = true;
    }
    sherd__free(x);
}

static void take_answer(sherd__secure_job *j, uint32_t node, const uint8_t *bytes)
{
    size_t n = sherd__aggregate_piece_len(&j->a);
    if (j->answers >= j->a.threshold) return;
    if (sherd__aggregate_parse(bytes, n, j->sum->answers + j->answers * n)) {
        lie(j, node);
        return;
    }
    j->sum->who[j->answers++] = j->nodes[node].self;
}

static void on_result(sherd__secure_job *j, uint32_t node, sherd__event *e)
{
    member *m = &j->nodes[node];
    const uint8_t *bytes = sherd__fragment_bytes(e->fragment);
    double took = (double)(j->now_ms - m->since_ms);
    m->asked--;
    m->accepted++;
    m->since_ms = j->now_ms;
    switch (e->task.op) {
    case SHERD__OP_JOIN: take_card(j, node, bytes); break;
    case SHERD__OP_SEAL:
        m->pieces = e->fragment;
        e->fragment = NULL;
        m->sealed = true;
        break;
    case SHERD__OP_HIDE:
        j->round_ms = j->round_ms > 0 ? 0.9 * j->round_ms + 0.1 * took : took + 1;
        take_upload(j, node, bytes);
        break;
    case SHERD__OP_OPEN: take_answer(j, node, bytes); break;
    default: break;
    }
}

/* Takes no part any more; whoever waits for the others goes on. */
static void leave_out(sherd__secure_job *j, uint32_t node)
{
    member *m = &j->nodes[node];
    m->out = true;
    m->asked = 0;
    if (m->session) (void)!sherd__session_forget(m->session, j->o.id);
    j->o.owner.touch(j->o.owner.ctx, node);
}

/* A node that cannot or will not; what that means depends on what was asked. */
static void on_refused(sherd__secure_job *j, uint32_t node, const sherd__event *e)
{
    member *m = &j->nodes[node];
    const sherd__refusal *r = &e->refusal;
    char text[SHERD__TEXT_MAX + 420];
    if (e->refusal.task) m->asked--;
    snprintf(text, sizeof text, "%s: %s", name_of(j, node), r->text);
    uint32_t op = r->task ? e->task.op : SHERD__OP_JOIN;
    if (op == SHERD__OP_JOIN || op == SHERD__OP_ROSTER)
        stop(j, r->code, r->code == SHERD_EAUTH ? "the node's --peers says whom it believes" : NULL,
             text);
    else if (op == SHERD__OP_HIDE && (r->code == SHERD_EBUSY || r->code == SHERD_ERANGE))
        over(j, r->code, text);
    else if (op == SHERD__OP_OPEN)
        say(j, "%s: its answer is missing", text);
    else {
        say(j, "%s: it takes no part in the training any more", text);
        leave_out(j, node);
    }
}

/* ---- as the cluster's loop sees it --------------------------------------------------------- */

static void node_up(void *ctx, uint32_t node, sherd_session *s, uint64_t session_number,
                    uint64_t now_ms)
{
    sherd__secure_job *j = ctx;
    member *m = &j->nodes[node];
    uint64_t features = sherd__session_peer(s)->features;
    bool again = m->heard && !m->out;
    (void)session_number;
    j->now_ms = now_ms;
    m->session = s;
    if (m->heard) { /* its part went with its session */
        if (again) say(j, "%s is back, and stays out of this training", name_of(j, node));
        m->out = true;
        return;
    }
    m->heard = true;
    if (!(features & SHERD__FEATURE_SECURE)) {
        say(j, "%s takes no part in secure aggregation: it is an older one", name_of(j, node));
        m->out = true;
    } else if (!j->o.train.deal && !(features & SHERD__FEATURE_DATA)) {
        say(j, "%s has no data of its own (sherd node --data)", name_of(j, node));
        m->out = true;
    }
}

static void node_down(void *ctx, uint32_t node, bool back, const char *why, uint64_t now_ms)
{
    sherd__secure_job *j = ctx;
    member *m = &j->nodes[node];
    (void)back;
    j->now_ms = now_ms;
    bool was = in(m);
    m->session = NULL;
    m->heard = true;
    m->asked = 0;
    if (!was) return;
    const char *what = j->phase == HIDING && !m->hidden ? "not in this sum"
                       : j->phase == HIDING || j->phase == OPENING ? "still in this sum"
                                                                   : "in no more sums";
    say(j, "%s is lost: %s; what it has is %s", name_of(j, node), why, what);
    m->out = j->phase > JOINING;
    if ((j->phase == IDLE || j->phase == HIDING) && count_in(j) < j->a.threshold)
        too_few(j, count_in(j), "are left");
}

static void node_banned(void *ctx, uint32_t node, const char *why)
{
    sherd__secure_job *j = ctx;
    say(j, "%s is not let back in: %s", name_of(j, node), why);
}

static void node_barred(void *ctx, uint32_t node)
{
    ((sherd__secure_job *)ctx)->nodes[node].out = true;
}

static void event(void *ctx, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    sherd__secure_job *j = ctx;
    member *m = &j->nodes[node];
    j->now_ms = now_ms;
    if (e->job != j->o.id || j->done || !in(m) || !m->asked) return;
    if (e->kind == SHERD__EV_RESULT) on_result(j, node, e);
    else if (e->kind == SHERD__EV_REFUSED) on_refused(j, node, e);
    move(j);
}

static double patience(const sherd__secure_job *j)
{
    double ms = PATIENCE_TIMES * j->round_ms;
    return j->round_ms <= 0 ? PATIENCE_FIRST_MS : ms > PATIENCE_MS ? ms : PATIENCE_MS;
}

static void tick(void *ctx, uint64_t now_ms)
{
    sherd__secure_job *j = ctx;
    j->now_ms = now_ms;
    for (uint32_t i = 0; i < j->o.nodes && !j->done; i++) {
        const member *m = &j->nodes[i];
        if (in(m) && m->asked && (double)(now_ms - m->since_ms) > patience(j))
            j->o.owner.expel(j->o.owner.ctx, i, SHERD_ESILENT, "does not answer");
    }
}

static void pump(void *ctx, uint64_t now_ms)
{
    sherd__secure_job *j = ctx;
    j->now_ms = now_ms;
    pthread_mutex_lock(&j->lock);
    sherd__secure_sum *s = j->phase == IDLE ? j->asked : NULL;
    if (s) j->asked = NULL;
    if (j->finish) j->done = true;
    pthread_mutex_unlock(&j->lock);
    if (j->done) return;
    if (s) begin_round(j, s);
    move(j);
}

static bool done(const void *ctx, int *err, sherd_diag *d)
{
    const sherd__secure_job *j = ctx;
    if (!j->done) return false;
    *err = j->err;
    if (j->err && d && !d->code) *d = j->diag;
    return true;
}

static void fail(void *ctx, int err, const char *hint, const char *message)
{
    stop(ctx, err, hint, message);
}

static void end(void *ctx)
{
    sherd__secure_job *j = ctx;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        if (!j->nodes[i].session) continue;
        (void)!sherd__session_forget(j->nodes[i].session, j->o.id);
        j->o.owner.touch(j->o.owner.ctx, i);
    }
}

static void rest(void *ctx)
{
    sherd__secure_job *j = ctx;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].session = NULL;
}

static bool idle(const void *ctx)
{
    (void)ctx;
    return true; /* it has nothing with the executor */
}

static uint64_t node_tasks(const void *ctx, uint32_t node)
{
    return ((const sherd__secure_job *)ctx)->nodes[node].accepted;
}

static void progress(const void *ctx, uint64_t *so_far, uint64_t *all)
{
    const sherd__secure_job *j = ctx;
    *so_far = j->done_sums;
    *all = j->asked_sums;
}

static void waiting(const void *ctx, uint64_t now_ms, char *out, size_t size)
{
    const sherd__secure_job *j = ctx;
    const member *worst = NULL;
    out[0] = '\0';
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (in(&j->nodes[i]) && j->nodes[i].asked &&
            (!worst || j->nodes[i].since_ms < worst->since_ms))
            worst = &j->nodes[i];
    if (!worst || now_ms < worst->since_ms + 2000) return;
    snprintf(out, size, "waiting %" PRIu64 " s for %s", (now_ms - worst->since_ms) / 1000,
             name_of(j, (uint32_t)(worst - j->nodes)));
}

static const sherd__work_ops secure_ops = {
    .node_up = node_up, .node_down = node_down, .node_banned = node_banned,
    .node_barred = node_barred, .event = event, .tick = tick, .pump = pump, .done = done,
    .fail = fail, .end = end, .rest = rest, .idle = idle, .node_tasks = node_tasks,
    .progress = progress, .waiting = waiting,
};

sherd__work sherd__secure_job_work(sherd__secure_job *j)
{
    return (sherd__work){ &secure_ops, j };
}

/* ---- other threads ------------------------------------------------------------------------- */

bool sherd__secure_job_ready(sherd__secure_job *j, sherd__aggregate *a)
{
    pthread_mutex_lock(&j->lock);
    bool ready = j->ready;
    if (ready) *a = j->a;
    pthread_mutex_unlock(&j->lock);
    return ready;
}

void sherd__secure_job_ask(sherd__secure_job *j, sherd__secure_sum *s)
{
    pthread_mutex_lock(&j->lock);
    j->asked = s;
    j->answered = false;
    pthread_mutex_unlock(&j->lock);
}

bool sherd__secure_job_answered(sherd__secure_job *j)
{
    pthread_mutex_lock(&j->lock);
    bool answered = j->answered;
    pthread_mutex_unlock(&j->lock);
    return answered;
}

void sherd__secure_job_finish(sherd__secure_job *j)
{
    pthread_mutex_lock(&j->lock);
    j->finish = true;
    pthread_mutex_unlock(&j->lock);
}

/* ---- beginning and end --------------------------------------------------------------------- */

int sherd__secure_job_new(sherd__secure_job **out, const sherd__secure_job_options *opt)
{
    sherd__secure_job *j = *out = sherd__calloc(1, sizeof *j);
    if (!j) return SHERD_ENOMEM;
    j->o = *opt;
    pthread_mutex_init(&j->lock, NULL);
    j->text = sherd__alloc(opt->text_len);
    j->nodes = sherd__calloc(opt->nodes, sizeof *j->nodes);
    j->node_of = sherd__calloc(opt->nodes, sizeof *j->node_of);
    j->survivors = sherd__calloc(opt->nodes, sizeof *j->survivors);
    if (!j->text || !j->nodes || !j->node_of || !j->survivors) {
        sherd__secure_job_free(j);
        *out = NULL;
        return SHERD_ENOMEM;
    }
    memcpy(j->text, opt->text, opt->text_len);
    return SHERD_OK;
}

void sherd__secure_job_free(sherd__secure_job *j)
{
    if (!j) return;
    for (uint32_t i = 0; j->nodes && i < j->o.nodes; i++) sherd__fragment_free(j->nodes[i].pieces);
    sherd__free(j->text);
    sherd__free(j->nodes);
    sherd__free(j->node_of);
    sherd__free(j->survivors);
    pthread_mutex_destroy(&j->lock);
    sherd__free(j);
}
