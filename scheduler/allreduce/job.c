/*
 * The leader of an all-reduce group: decides the next action, and handles nodes that are slow, lost
 * or refuse. Every failure in a round has the same result: all open tasks are cancelled, the
 * remaining members meet again, and the round is repeated.
 *
 * Nodes are trusted for the values of what they sum, which cannot be checked without computing
 * them, and for the parameters that they send, but for nothing else.
 */
#include "scheduler/allreduce/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "scheduler/allreduce/internal.h"

#define WAIT_MS 60000.0 /* at least, from the last gradient computed to the sum */
/* In the first sum, of which no time is known: each step of the schedule, and the rate of the
 * slowest link in bytes per ms. */
#define STEP_FIRST_MS 5000.0
#define RATE_FIRST 64.0
#define WAIT_TIMES 30.0

/* A member that only waits for the sums of others is not slow. */
static bool busy(const sherd__work_node *n)
{
    const member *m = (const member *)n;
    return m->asked > 0 && !m->graded;
}

/* ---- used by other files --------------------------------------------------------------------- */

void sherd__allreduce_sent(sherd__allreduce_job *j, uint32_t node, int err)
{
    j->w.owner.touch(j->w.owner.ctx, node);
    if (err == SHERD_ENOMEM)
        sherd__work_stop(&j->w, err, NULL, "out of memory for data that is sent to nodes");
}

void sherd__allreduce_call_off(sherd__allreduce_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        member *m = &j->nodes[i];
        if (!m->in || !m->w.session) continue;
        if (m->asked) (void)!sherd__session_cancel(m->w.session, j->o.id, 0, 0);
        sherd__allreduce_send_drops(j, i);
        m->asked = 0;
        m->graded = m->summed = m->refused = m->breaking = false;
        m->asked_ms = 0;
        j->w.owner.touch(j->w.owner.ctx, i);
    }
}

/* Forgets the member's data and open tasks. */
static void forget(sherd__allreduce_job *j, uint32_t node)
{
    member *m = &j->nodes[node];
    m->in = m->loaded = m->has_text = m->breaking = false;
    m->asked = 0;
    m->asked_ms = 0;
    m->state = 0;
    sherd__allreduce_forget_rows(j, node);
}

void sherd__allreduce_release(sherd__allreduce_job *j, uint32_t node)
{
    forget(j, node);
    sherd__work_forget(&j->w, node);
}

void sherd__allreduce_leave_out(sherd__allreduce_job *j, uint32_t node, const char *why)
{
    sherd__work_say(&j->w, "%s %s: it no longer takes part in the training",
                    sherd__work_name(&j->w, node), why);
    j->nodes[node].out = true;
    sherd__allreduce_release(j, node);
}

void sherd__allreduce_answer(sherd__allreduce_job *j, int err, const char *why)
{
    if (err) j->ask->err = sherd__fail(&j->ask->why, err, NULL, "%s", why);
    if (err) sherd__allreduce_call_off(j);
    sherd__allreduce_trust(j);
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        j->nodes[i].graded = false;
        if (j->nodes[i].spent_len == 0) continue;
        sherd__allreduce_send_drops(j, i);
        j->w.owner.touch(j->w.owner.ctx, i);
    }
    j->phase = IDLE;
    j->ask = NULL;
    sherd__request_slot_answer(&j->requests);
    j->w.changed(j->w.changed_ctx);
}

/* ---- transitions ----------------------------------------------------------------------------- */

static bool open_tasks(const sherd__allreduce_job *j)
{
    for (uint32_t i = 0; i < j->members; i++)
        if (j->nodes[j->node_of[i]].asked) return true;
    return false;
}

static bool all_heard(const sherd__allreduce_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (!j->nodes[i].w.heard) return false;
    return true;
}

/* Returns true if a connected node is not in the present group and may join it. */
static bool comes(const sherd__allreduce_job *j)
{
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (j->nodes[i].w.session && !j->nodes[i].out && !j->nodes[i].in &&
            j->now_ms >= j->nodes[i].again_ms)
            return true;
    return false;
}

static void begin_ask(sherd__allreduce_job *j)
{
    if (!j->ask->step) sherd__allreduce_begin_fetch(j);
    else if (!j->aborted && comes(j)) sherd__allreduce_begin_stock(j);
    else sherd__allreduce_begin_step(j);
}

static void move(sherd__allreduce_job *j)
{
    if (j->w.done) return;
    switch (j->phase) {
    case HEARING:
        if (all_heard(j)) sherd__allreduce_begin_meet(j);
        break;
    case MEETING:
        if (!open_tasks(j)) sherd__allreduce_begin_connect(j);
        break;
    case CONNECTING:
        if (!open_tasks(j)) sherd__allreduce_judge_links(j);
        if (j->phase == IDLE) move(j);
        break;
    case IDLE:
        if (j->broken) sherd__allreduce_begin_meet(j);
        else if (j->ask) begin_ask(j);
        break;
    case STEPPING:
        if (!open_tasks(j)) sherd__allreduce_end_step(j);
        break;
    case FETCHING:
        if (!open_tasks(j)) sherd__allreduce_end_fetch(j);
        if (j->phase == IDLE) move(j);
        break;
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static void on_result(sherd__allreduce_job *j, uint32_t node, sherd__event *e)
{
    member *m = &j->nodes[node];
    const uint8_t *bytes = sherd__fragment_bytes(e->fragment);
    m->asked--;
    m->w.accepted++;
    switch (e->task.op) {
    case SHERD__OP_CONNECT: memcpy(m->links, bytes, j->members * sizeof *m->links); break;
    case SHERD__OP_STEP:
        sherd__work_took(&j->w, node, j->now_ms);
        if (!sherd__allreduce_take_costs(j, m, bytes))
            j->w.owner.expel(j->w.owner.ctx, node, SHERD_EWRONG,
                             "reported a loss that is not a number");
        else if (sherd__allreduce_settled(j)) sherd__allreduce_watch_round(j);
        break;
    case SHERD__OP_REDUCE: sherd__allreduce_take_figures(j, m, bytes); break;
    case SHERD__OP_STATE: sherd__allreduce_take_state(j, m, e); break;
    case SHERD__OP_WHERE: sherd__allreduce_take_where(j, node, bytes); break;
    default: break;
    }
}

/* ---- operations of sherd__work --------------------------------------------------------------- */

static void node_up(void *ctx, uint32_t node, sherd__session *s, uint64_t session_number,
                    uint64_t now_ms)
{
    sherd__allreduce_job *j = ctx;
    member *m = &j->nodes[node];
    bool known = m->known;
    (void)session_number;
    j->now_ms = now_ms;
    m->w.session = s;
    m->w.heard = m->known = true;
    if (m->out) return;
    if (!(sherd__session_peer(s)->features & SHERD__FEATURE_ALLREDUCE)) {
        sherd__work_say(&j->w, "%s does not support all-reduce: its version is older",
                        sherd__work_name(&j->w, node));
        m->out = true;
    } else if (j->phase != HEARING) { /* its data was lost with its session */
        sherd__work_say(&j->w, "%s %s, and in the training from the next round on",
                        sherd__work_name(&j->w, node), known ? "is back" : "has come");
    }
}

/* Its shards go to the other members or, with allow_drop, do not count. */
static void lose_shards(sherd__allreduce_job *j, const member *m)
{
    if (j->phase != STEPPING || !j->o.train.allow_drop) return;
    for (uint32_t i = m->from; i < m->to; i++) j->ask->step->dropped[j->shards[i]] = true;
}

static void node_down(void *ctx, uint32_t node, bool back, const char *why, uint64_t now_ms)
{
    sherd__allreduce_job *j = ctx;
    member *m = &j->nodes[node];
    bool was = m->in || (m->w.session && !m->out), stood = m->in;
    (void)back;
    j->now_ms = now_ms;
    m->w.session = NULL;
    m->w.heard = true;
    forget(j, node);
    m->out |= m->w.silent;
    if (!was) return;
    sherd__work_say(&j->w, "%s is lost: %s%s", sherd__work_name(&j->w, node), why,
                    j->phase != STEPPING    ? ""
                    : j->o.train.allow_drop ? "; the step is repeated without its shards"
                                            : "; the nodes that are left repeat the step");
    if (!stood) return;
    lose_shards(j, m);
    sherd__allreduce_break_without(j, why);
}

static void node_banned(void *ctx, uint32_t node, const char *why)
{
    sherd__allreduce_job *j = ctx;
    sherd__work_say(&j->w, "%s may not take part again: %s", sherd__work_name(&j->w, node), why);
}

static void node_barred(void *ctx, uint32_t node)
{
    ((sherd__allreduce_job *)ctx)->nodes[node].out = true;
}

static void event(void *ctx, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    sherd__allreduce_job *j = ctx;
    member *m = &j->nodes[node];
    j->now_ms = now_ms;
    if (e->job != j->o.id || j->w.done || !m->in || !m->w.session) return;
    if (e->kind == SHERD__EV_RESULT && m->asked) on_result(j, node, e);
    else if (e->kind == SHERD__EV_REFUSED && (m->asked || !e->refusal.task))
        sherd__allreduce_take_refusal(j, node, e);
    move(j);
}

static double wait_max_ms(const sherd__allreduce_job *j)
{
    if (j->usual_ms > 0) return fmax(WAIT_MS, WAIT_TIMES * j->usual_ms);
    return WAIT_MS + STEP_FIRST_MS * sherd__reduce_steps(j->o.train.kind, j->members) +
           16 * (double)j->numbers / RATE_FIRST;
}

/* Ends a round in which all members have computed their gradients but the sum does not come, and
 * watch.c finds no member to blame. */
static void tick(void *ctx, uint64_t now_ms)
{
    sherd__allreduce_job *j = ctx;
    double wait_ms = wait_max_ms(j);
    j->now_ms = now_ms;
    sherd__work_tick(ctx, now_ms);
    if (!j->w.done) sherd__allreduce_watch_still(j);
    if (!j->w.done) sherd__allreduce_watch(j);
    if (j->w.done || j->phase != STEPPING || !j->graded_ms ||
        (double)(now_ms - j->graded_ms) <= wait_ms ||
        (j->failed > 0 && sherd__allreduce_overdue(j)))
        return;
    sherd__work_say(&j->w, "a sum among the nodes is not finished in time; the round is repeated");
    sherd__allreduce_break(j, "it was not finished in time");
}

static void pump(void *ctx, uint64_t now_ms)
{
    sherd__allreduce_job *j = ctx;
    j->now_ms = now_ms;
    if (!j->ask) j->ask = sherd__request_slot_take(&j->requests);
    if (sherd__request_slot_finishing(&j->requests)) sherd__work_stop(&j->w, SHERD_OK, NULL, "");
    move(j);
}

static void progress(const void *ctx, uint64_t *so_far, uint64_t *all)
{
    const sherd__allreduce_job *j = ctx;
    *so_far = j->commit;
    *all = j->round;
}

static const sherd__work_ops leader_ops = {
    .lasting = true,
    .node_up = node_up,
    .node_down = node_down,
    .node_banned = node_banned,
    .node_barred = node_barred,
    .event = event,
    .tick = tick,
    .pump = pump,
    .done = sherd__work_done,
    .fail = sherd__work_fail,
    .end = sherd__work_end,
    .rest = sherd__work_rest,
    .idle = sherd__work_idle,
    .node_tasks = sherd__work_node_tasks,
    .progress = progress,
    .waiting = sherd__work_waiting,
};

sherd__work sherd__allreduce_job_work(sherd__allreduce_job *j)
{
    return (sherd__work){ &leader_ops, j };
}

/* ---- other threads --------------------------------------------------------------------------- */

bool sherd__allreduce_job_ready(sherd__allreduce_job *j)
{
    return sherd__request_slot_ready(&j->requests);
}

void sherd__allreduce_job_ask(sherd__allreduce_job *j, sherd__allreduce_ask *a)
{
    if (a->step) memset(a->step->dropped, 0, a->step->shards * sizeof *a->step->dropped);
    a->err = SHERD_OK;
    a->why = (sherd_diag){ 0 };
    sherd__request_slot_ask(&j->requests, a);
}

bool sherd__allreduce_job_answered(sherd__allreduce_job *j)
{
    return sherd__request_slot_answered(&j->requests);
}

sherd__allreduce_link_bytes sherd__allreduce_job_links(sherd__allreduce_job *j, uint32_t node)
{
    pthread_mutex_lock(&j->requests.lock);
    sherd__allreduce_link_bytes b = j->nodes[node].links_now;
    pthread_mutex_unlock(&j->requests.lock);
    return b;
}

void sherd__allreduce_job_count(sherd__allreduce_job *j, sherd__allreduce_stats *out)
{
    pthread_mutex_lock(&j->requests.lock);
    *out = j->stats;
    pthread_mutex_unlock(&j->requests.lock);
}

void sherd__allreduce_job_finish(sherd__allreduce_job *j)
{
    sherd__request_slot_finish(&j->requests);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

int sherd__allreduce_job_new(sherd__allreduce_job **out, const sherd__allreduce_job_options *opt)
{
    sherd__allreduce_job *j = *out = sherd__calloc(1, sizeof *j);
    if (!j) return SHERD_ENOMEM;
    uint32_t shards = opt->train.shards;
    j->o = *opt;
    j->examples = opt->train.data->x.rows;
    sherd__version_hold(j->o.state);
    j->w = (sherd__work_state){ .id = opt->id,
                                .len = opt->nodes,
                                .stride = sizeof *j->nodes,
                                .owner = opt->owner,
                                .changed = opt->changed,
                                .changed_ctx = opt->changed_ctx,
                                .busy = busy,
                                .wanted = "gradients of ",
                                .silent = "does not compute gradients",
                                .flops = sherd__recipe_flops(opt->train.recipe) };
    j->numbers = opt->state->count;
    sherd__request_slot_init(&j->requests);
    j->text = sherd__alloc(opt->text_len);
    j->shards = sherd__calloc(shards, sizeof *j->shards);
    j->w.nodes = j->nodes = sherd__calloc(opt->nodes, sizeof *j->nodes);
    bool fits = j->text && j->shards && j->nodes;
    for (uint32_t i = 0; i < opt->nodes && fits; i++) {
        member *m = &j->nodes[i];
        m->spent = sherd__calloc(shards, sizeof *m->spent);
        m->has = sherd__calloc((j->examples + 7) / 8, 1);
        fits = m->spent && m->has;
    }
    if (!fits) {
        sherd__allreduce_job_free(j);
        *out = NULL;
        return SHERD_ENOMEM;
    }
    memcpy(j->text, opt->text, opt->text_len);
    return SHERD_OK;
}

void sherd__allreduce_job_free(sherd__allreduce_job *j)
{
    if (!j) return;
    for (uint32_t i = 0; j->nodes && i < j->o.nodes; i++) {
        if (j->nodes[i].has) sherd__allreduce_forget_rows(j, i);
        sherd__free(j->nodes[i].has);
        sherd__free(j->nodes[i].spent);
    }
    sherd__version_release(j->o.state);
    sherd__version_release(j->stock);
    sherd__free(j->nodes);
    sherd__free(j->shards);
    sherd__free(j->text);
    sherd__request_slot_fini(&j->requests);
    sherd__free(j);
}
