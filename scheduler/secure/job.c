/*
 * The coordinator of secure aggregation: determines the members and the next phase. It forwards
 * sealed pieces from node to node and opens none; of uploads it keeps only the sum (round.c). It
 * must name the same survivors to all members. Nodes enforce this: each signs the survivors that it
 * received, once a round, and opens nothing before U members have signed the same list
 * (crypto/aggregate_member.c).
 *
 * Nodes are trusted only for the values of what they sum; their keys are the pinned ones.
 */
#include "scheduler/secure/job.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "scheduler/secure/internal.h"

#define JOIN_AGAIN_MS 100u /* delay before a busy node is asked again */
#define JOIN_TRIES 600u
#define CLIP_TIMES 8.0  /* a gradient of each example costs more than one of a batch */
#define MASK_FLOPS 20.0 /* of one number of a mask */
#define WINDOWS_MAX ((uint64_t)1 << 20) /* costs are kept by window up to this, else together */

/* ---- members ------------------------------------------------------------------------------- */

static bool busy(const sherd__work_node *n)
{
    return ((const member *)n)->asked > 0;
}

/* ---- JOIN and ROSTER ----------------------------------------------------------------------- */

static void ask_to_join(sherd__secure_job *j, uint32_t node)
{
    member *m = &j->nodes[node];
    m->again_ms = 0;
    sherd__secure_sent(j, node, sherd__secure_send_join(j, m));
}

/* Computes the thresholds for n members. */
static int agree(sherd__secure_job *j, uint32_t n, sherd_diag *d)
{
    uint32_t u = j->o.train.survivors, t = j->o.train.colluding ? j->o.train.colluding : 1;
    j->a = (sherd__aggregate){ .nodes = n,
                               .colluding = t,
                               .len = j->o.count + SHERD__SECURE_EXTRA };
    if (j->roster_accepted) u = sherd__secure_needed(j, n);
    j->a.threshold = u ? u : sherd__aggregate_threshold(n, t);
    return sherd__aggregate_check(&j->a, d);
}

static uint32_t count_wanted(const sherd__secure_job *j)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) n += sherd__secure_wanted(j, &j->nodes[i]);
    return n;
}

/* Makes members of all nodes that are up and wanted, in the order of nodes. */
static void begin_join(sherd__secure_job *j)
{
    sherd_diag d = { 0 };
    uint32_t n = count_wanted(j);
    if ((j->exact && n < j->bound) || (j->roster_accepted && n < sherd__secure_floor(j))) {
        sherd__secure_too_few(j, n, "are left");
        return;
    }
    int err = n < 3 ? SHERD_EFEWNODES : agree(j, n, &d);
    if (err && j->refused) {
        const char *hint = NULL;
        if (j->refused == SHERD_EAUTH) hint = "the node's --peers lists the keys it accepts";
        if (j->refused == SHERD_EREFUSED)
            hint = "choose what the node accepts, or ask its owner to change the option that it "
                   "names";
        sherd__work_stop(&j->w, j->refused, hint, j->refusal);
        return;
    }
    if (err) {
        sherd__work_stop(&j->w, err,
                         n < 3 ? "start nodes that have data of their own: sherd node --data FILE"
                         : d.hint[0] ? d.hint
                                     : NULL,
                         n < 3 ? "secure aggregation needs 3 nodes that take part" : d.message);
        return;
    }
    j->phase = JOINING;
    j->replace = false;
    for (uint32_t i = 0, self = 0; i < j->o.nodes && !j->w.done; i++) {
        member *m = &j->nodes[i];
        if (!sherd__secure_wanted(j, m)) {
            m->waits = sherd__secure_up(m);
            continue;
        }
        j->node_of[self] = i;
        m->self = self++;
        m->waits = m->sealed = m->hidden = false;
        m->asked = m->tries = 0;
        ask_to_join(j, i);
    }
}

/* Makes another roster: now, or as soon as nodes are back that may be back soon. */
static void gather(sherd__secure_job *j)
{
    uint32_t least = j->exact ? j->bound : sherd__secure_floor(j);
    if (j->roster_accepted && count_wanted(j) < least && sherd__secure_hope(j))
        j->phase = GATHERING;
    else begin_join(j);
}

static void take_card(sherd__secure_job *j, uint32_t node, const uint8_t *card)
{
    member *m = &j->nodes[node];
    uint8_t statement[SHERD__SECURE_STATEMENT];
    sherd__fingerprint key;
    sherd__secure_plan p = { .nodes = j->a.nodes,
                             .threshold = j->a.threshold,
                             .colluding = j->a.colluding,
                             .x = j->o.train.deal != NULL };
    sherd__fingerprint_public(&key, card);
    sherd__secure_statement(statement, j->o.id, &p, m->self, card + 32);
    if (!sherd__fingerprint_equal(&key, j->o.key(j->o.key_ctx, node)) ||
        !sherd__identity_verify(card, statement, sizeof statement, card + 64) ||
        !sherd__seal_key_valid(card + 32)) {
        j->w.owner.expel(j->w.owner.ctx, node, SHERD_EWRONG, "did not sign a key of its own");
        return;
    }
    memcpy(m->card, card, sizeof m->card);
    m->sealed = true;
}

static void begin_roster(sherd__secure_job *j)
{
    uint8_t *cards = sherd__alloc((size_t)j->a.nodes * SHERD__SECURE_CARD);
    if (!cards) {
        sherd__secure_no_memory(j);
        return;
    }
    for (uint32_t i = 0; i < j->a.nodes; i++)
        memcpy(cards + (size_t)i * SHERD__SECURE_CARD, j->nodes[j->node_of[i]].card,
               SHERD__SECURE_CARD);
    sherd__secure_about_roster(j, cards);
    j->phase = ROSTER;
    for (uint32_t i = 0; i < j->a.nodes && !j->w.done; i++) {
        uint32_t node = j->node_of[i];
        sherd__secure_sent(j, node, sherd__secure_send_roster(j, &j->nodes[node], cards));
    }
    sherd__free(cards);
}

/* ---- transitions --------------------------------------------------------------------------- */

static bool open_tasks(const sherd__secure_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (sherd__secure_in(&j->nodes[i]) && (j->nodes[i].asked || j->nodes[i].again_ms))
            return true;
    return false;
}

static bool all_joined(const sherd__secure_job *j)
{
    for (uint32_t i = 0; i < j->a.nodes; i++) {
        const member *m = &j->nodes[j->node_of[i]];
        if (!sherd__secure_in(m) || !m->sealed) return false;
    }
    return true;
}

static bool all_heard(const sherd__secure_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (!j->nodes[i].w.heard) return false;
    return true;
}

static void become_ready(sherd__secure_job *j)
{
    size_t room;
    if (j->replace || (sherd__secure_count(j) < sherd__secure_least(j) && j->roster_accepted)) {
        gather(j);
        return;
    }
    if (sherd__secure_count(j) < j->a.threshold) {
        sherd__secure_too_few(j, sherd__secure_count(j), "are left");
        return;
    }
    sherd__free(j->pieces);
    sherd__free(j->confirmed);
    j->pieces = sherd__mul(j->a.threshold, sherd__aggregate_piece_len(&j->a), &room)
                    ? sherd__calloc(room, sizeof *j->pieces)
                    : NULL;
    j->confirmed = sherd__calloc(j->a.threshold, 8 * SHERD__SECURE_CONFIRMED);
    if (!j->pieces || !j->confirmed) {
        sherd__secure_no_memory(j);
        return;
    }
    if (!j->roster_accepted) j->least = j->a.threshold;
    j->roster_accepted = true;
    for (uint32_t i = 0; i < j->a.nodes; i++) j->nodes[j->node_of[i]].known = true;
    j->phase = IDLE;
    if (!sherd__request_slot_ready(&j->requests)) j->first = j->a;
    sherd__request_slot_stands(&j->requests);
    j->w.changed(j->w.changed_ctx);
}

/* Starts the next phase if it can start; each phase waits for all members that are still up. */
static void move(sherd__secure_job *j)
{
    if (j->w.done) return;
    switch (j->phase) {
    case HEARING:
        if (all_heard(j)) begin_join(j);
        break;
    case JOINING:
        if (open_tasks(j)) break;
        if (all_joined(j)) begin_roster(j);
        else gather(j); /* without lost members */
        break;
    case ROSTER:
        if (!open_tasks(j)) become_ready(j);
        break;
    case HIDING:
        if (!open_tasks(j)) sherd__secure_begin_confirm(j);
        break;
    case CONFIRMING:
        if (!open_tasks(j) ||
            (j->confirmed_len == j->a.threshold && sherd__secure_clean(j) >= j->a.threshold))
            sherd__secure_begin_open(j);
        break;
    case OPENING:
        if (j->answers >= j->a.threshold) sherd__secure_over(j);
        else if (!open_tasks(j)) sherd__secure_unopened(j);
        break;
    case GATHERING: gather(j); break;
    case IDLE: break;
    }
}

/* ---- answers ------------------------------------------------------------------------------- */

static void on_result(sherd__secure_job *j, uint32_t node, sherd__event *e)
{
    member *m = &j->nodes[node];
    const uint8_t *bytes = sherd__fragment_bytes(e->fragment);
    m->asked--;
    m->w.accepted++;
    if (e->task.op != SHERD__OP_HIDE) sherd__work_heard(&j->w, node, j->now_ms);
    switch (e->task.op) {
    case SHERD__OP_JOIN: take_card(j, node, bytes); break;
    case SHERD__OP_SEAL:
        m->pieces = e->fragment;
        e->fragment = NULL;
        m->sealed = true;
        break;
    case SHERD__OP_HIDE:
        sherd__work_took(&j->w, node, j->now_ms);
        sherd__secure_take_upload(j, node, bytes);
        break;
    case SHERD__OP_CONFIRM: sherd__secure_take_confirmation(j, node, bytes); break;
    case SHERD__OP_CHECK: sherd__secure_take_check(j, node, bytes); break;
    case SHERD__OP_OPEN: sherd__secure_take_answer(j, node, bytes); break;
    default: break;
    }
    if (m->asked) sherd__work_asked(&j->w, node, j->now_ms);
}

/* Handles a roster that a node rejects: leaves out members that are new to it, or else that
 * node. */
static void on_disbelief(sherd__secure_job *j, uint32_t node)
{
    bool any = false;
    for (uint32_t i = 0; i < j->a.nodes && j->roster_accepted; i++) {
        uint32_t k = j->node_of[i];
        if (j->nodes[k].known || j->nodes[k].out) continue;
        sherd__work_say(&j->w, "%s does not take part in the training: not all members accept it",
                        sherd__work_name(&j->w, k));
        sherd__secure_leave_out(j, k);
        any = true;
    }
    if (!any && !j->replace) sherd__secure_leave_out(j, node);
    j->replace = true;
}

/* Handles a node that cannot or will not do a task; the effect depends on the task and on whether
 * the job can continue without the node. */
static void on_refused(sherd__secure_job *j, uint32_t node, const sherd__event *e)
{
    member *m = &j->nodes[node];
    const sherd__refusal *r = &e->refusal;
    char text[sizeof j->refusal];
    if (e->refusal.task) m->asked--;
    snprintf(text, sizeof text, "%s: %s", sherd__work_name(&j->w, node), r->text);
    uint32_t op = r->task ? e->task.op : SHERD__OP_JOIN;
    bool meeting = op == SHERD__OP_JOIN || op == SHERD__OP_ROSTER;
    if (op == SHERD__OP_JOIN && r->task && r->code == SHERD_EBUSY && m->tries < JOIN_TRIES) {
        m->tries++;
        m->again_ms = j->now_ms + JOIN_AGAIN_MS;
    } else if (op == SHERD__OP_CONFIRM || op == SHERD__OP_CHECK || op == SHERD__OP_OPEN) {
        sherd__work_say(&j->w, "%s: its answer is missing", text);
    } else {
        sherd__work_say(&j->w,
                        op == SHERD__OP_ROSTER && j->roster_accepted
                            ? "%s"
                            : "%s: it no longer takes part in the training",
                        text);
        if (meeting) {
            j->refused = r->code;
            memcpy(j->refusal, text, sizeof j->refusal);
        }
        if (op == SHERD__OP_HIDE && r->code == SHERD_EEXPOSURE)
            memcpy(j->withheld, text, sizeof j->withheld);
        if (op == SHERD__OP_ROSTER) on_disbelief(j, node);
        else sherd__secure_leave_out(j, node);
    }
}

/* ---- operations of sherd__work ------------------------------------------------------------- */

static void node_up(void *ctx, uint32_t node, sherd__session *s, uint64_t session_number,
                    uint64_t now_ms)
{
    sherd__secure_job *j = ctx;
    member *m = &j->nodes[node];
    uint64_t features = sherd__session_peer(s)->features;
    const char *why = NULL;
    (void)session_number;
    sherd__secure_clock(j, now_ms);
    m->w.session = s;
    m->w.heard = true;
    m->away = m->joined = false;
    m->checks = features & SHERD__FEATURE_CHECK;
    if (m->out) return;
    if (!(features & SHERD__FEATURE_SECURE))
        why = "does not take part in secure aggregation: its version is older";
    else if (!(features & SHERD__FEATURE_CONFIRM))
        why = "does not take part in secure aggregation: its version is older and does not confirm "
              "the members of a sum";
    else if (!j->o.train.deal && !(features & SHERD__FEATURE_DATA))
        why = "has no data of its own (sherd node --data)";
    else if (m->w.silent)
        why = "is back, and no longer takes part in this training: it has left requests unanswered";
    m->out = why != NULL;
    m->waits = !m->out && j->phase != HEARING; /* keys of a roster are lost with their session */
    if (m->waits)
        why = m->known ? "is back, and takes part from the next sum on"
                       : "has connected, and takes part from the next sum on";
    if (why) sherd__work_say(&j->w, "%s %s", sherd__work_name(&j->w, node), why);
}

static void node_down(void *ctx, uint32_t node, bool back, const char *why, uint64_t now_ms)
{
    sherd__secure_job *j = ctx;
    member *m = &j->nodes[node];
    sherd__secure_clock(j, now_ms);
    bool was = sherd__secure_in(m), waited = m->w.session && m->waits;
    m->w.session = NULL;
    m->w.heard = true;
    m->waits = m->joined = false;
    m->away = back && !m->out;
    m->asked = 0;
    m->again_ms = 0;
    const char *what = !was                               ? "in no sum"
                       : j->phase == HIDING && !m->hidden ? "not in this sum"
                       : j->phase >= HIDING               ? "still in this sum"
                                                          : "in no sum until it is back";
    if (was || waited) {
        sherd__work_say(&j->w, "%s is lost: %s; its data is %s", sherd__work_name(&j->w, node), why,
                        what);
        sherd__secure_lost(j, node);
    }
    if (j->roster_accepted && (j->phase == IDLE || j->phase == GATHERING || j->phase == HIDING) &&
        !sherd__secure_hope(j))
        sherd__secure_too_few(j, sherd__secure_count(j), "are left");
}

static void node_banned(void *ctx, uint32_t node, const char *why)
{
    sherd__secure_job *j = ctx;
    j->nodes[node].out = true;
    sherd__work_say(&j->w, "%s may not take part again: %s", sherd__work_name(&j->w, node), why);
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
    if (e->job != j->o.id || j->w.done || !sherd__secure_in(m) || !m->asked) return;
    if (e->kind == SHERD__EV_RESULT) on_result(j, node, e);
    else if (e->kind == SHERD__EV_REFUSED) on_refused(j, node, e);
    move(j);
}

static void tick(void *ctx, uint64_t now_ms)
{
    sherd__secure_job *j = ctx;
    j->now_ms = now_ms;
    sherd__work_tick(ctx, now_ms);
    for (uint32_t i = 0; i < j->o.nodes && !j->w.done; i++)
        if (j->nodes[i].again_ms && now_ms >= j->nodes[i].again_ms) ask_to_join(j, i);
}

static void pump(void *ctx, uint64_t now_ms)
{
    sherd__secure_job *j = ctx;
    j->now_ms = now_ms;
    sherd__secure_sum *s = j->phase == IDLE ? sherd__request_slot_asked(&j->requests) : NULL;
    if (s && j->bound && s->step != j->bound_step) sherd__secure_unbind(j);
    if (s && !j->bound && !j->w.done && !sherd__secure_bind_named(j, s->step)) return;
    bool other_roster = s && sherd__secure_others(j);
    if (!other_roster && s) (void)sherd__request_slot_take(&j->requests);
    if (sherd__request_slot_finishing(&j->requests)) sherd__work_stop(&j->w, SHERD_OK, NULL, NULL);
    if (j->w.done) return;
    if (other_roster) gather(j);
    else if (s) sherd__secure_begin_round(j, s);
    move(j);
}

static void progress(const void *ctx, uint64_t *so_far, uint64_t *all)
{
    const sherd__secure_job *j = ctx;
    *so_far = j->done_sums;
    *all = j->asked_sums;
}

static const sherd__work_ops secure_ops = {
    .node_up = node_up,
    .node_down = node_down,
    .node_banned = node_banned,
    .node_barred = node_barred,
    .event = event,
    .lasting = true,
    .tick = tick,
    .pump = pump,
    .done = sherd__work_done,
    .fail = sherd__work_fail,
    .end = sherd__work_end,
    .rest = sherd__work_rest,
    .idle = sherd__work_idle,
    .node_tasks = sherd__work_node_tasks,
    .progress = progress,
    .waiting = sherd__secure_waiting,
};

sherd__work sherd__secure_job_work(sherd__secure_job *j)
{
    return (sherd__work){ &secure_ops, j };
}

/* ---- other threads ------------------------------------------------------------------------- */

bool sherd__secure_job_ready(sherd__secure_job *j, sherd__aggregate *a)
{
    if (!sherd__request_slot_ready(&j->requests)) return false;
    *a = j->first;
    return true;
}

void sherd__secure_job_ask(sherd__secure_job *j, sherd__secure_sum *s)
{
    sherd__request_slot_ask(&j->requests, s);
}

bool sherd__secure_job_answered(sherd__secure_job *j)
{
    return sherd__request_slot_answered(&j->requests);
}

void sherd__secure_job_finish(sherd__secure_job *j)
{
    sherd__request_slot_finish(&j->requests);
}

sherd__secure_spent sherd__secure_job_spent(sherd__secure_job *j)
{
    sherd__secure_spent s = { 0 };
    pthread_mutex_lock(&j->requests.lock);
    s.rounds = j->rounds_asked;
    for (size_t i = 0; i < j->windows; i++) s.rho = j->spent[i] > s.rho ? j->spent[i] : s.rho;
    pthread_mutex_unlock(&j->requests.lock);
    return s;
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* Counts rounds of earlier runs, as if with the smallest possible roster. */
static void count_earlier(sherd__secure_job *j)
{
    size_t len = j->o.train.sums ? sherd__sumlist_rounds(j->o.train.sums) : 0;
    j->a.colluding = j->o.train.colluding ? j->o.train.colluding : 1;
    j->a.threshold = j->a.colluding + 2;
    for (size_t i = 0; i < len; i++)
        sherd__secure_spend(j, sherd__sumlist_round(j->o.train.sums, i));
}

int sherd__secure_job_new(sherd__secure_job **out, const sherd__secure_job_options *opt)
{
    sherd__secure_job *j = *out = sherd__calloc(1, sizeof *j);
    if (!j) return SHERD_ENOMEM;
    j->o = *opt;
    j->w = (sherd__work_state){ .id = opt->id,
                                .len = opt->nodes,
                                .stride = sizeof *j->nodes,
                                .owner = opt->owner,
                                .changed = opt->changed,
                                .changed_ctx = opt->changed_ctx,
                                .busy = busy,
                                .wanted = "",
                                .silent = "does not answer",
                                .flops = CLIP_TIMES * sherd__recipe_flops(opt->train.recipe),
                                .apart = true };
    sherd__work_expect(&j->w, (double)opt->train.rows * j->w.flops +
                                  MASK_FLOPS * (double)opt->count * opt->nodes);
    j->opened_step = UINT64_MAX;
    sherd__request_slot_init(&j->requests);
    j->text = sherd__alloc(opt->text_len);
    j->w.nodes = j->nodes = sherd__calloc(opt->nodes, sizeof *j->nodes);
    j->node_of = sherd__calloc(opt->nodes, sizeof *j->node_of);
    j->survivors = sherd__calloc(opt->nodes, sizeof *j->survivors);
    j->blames = sherd__calloc(opt->nodes, opt->nodes);
    j->uploads = sherd__calloc(opt->count + SHERD__SECURE_EXTRA, sizeof *j->uploads);
    uint64_t windows = (opt->train.places + opt->train.rows - 1) / opt->train.rows;
    j->windows = windows <= WINDOWS_MAX ? (size_t)windows : 1;
    j->spent = sherd__calloc(j->windows, sizeof *j->spent);
    if (!j->text || !j->nodes || !j->node_of || !j->survivors || !j->uploads || !j->spent ||
        !j->blames) {
        sherd__secure_job_free(j);
        *out = NULL;
        return SHERD_ENOMEM;
    }
    memcpy(j->text, opt->text, opt->text_len);
    count_earlier(j);
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
    sherd__free(j->blames);
    sherd__free(j->uploads);
    sherd__free(j->spent);
    sherd__free(j->pieces);
    sherd__free(j->confirmed);
    sherd__request_slot_fini(&j->requests);
    sherd__free(j);
}
