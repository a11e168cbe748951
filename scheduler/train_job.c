/*
 * The state machine of training. Parts go to idle nodes, lowest number first, so that the same
 * shards meet the same nodes as long as nothing happens and what they keep is of use. Large tiers
 * are added up on the executor, small ones here: a hop costs more than adding a few thousand
 * numbers.
 *
 * Trusts nodes for the values of gradients, which nobody can check without computing them; for
 * nothing else.
 */
#include "scheduler/train_job.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "scheduler/train_internal.h"

#define ADD_HERE 8192u        /* numbers of a tier that are added on the loop's thread */
#define PATIENCE_MS 60000.0   /* at least, until a node that has not answered is overdue */
#define PATIENCE_FIRST_MS 600000.0 /* while nobody knows how long a part takes */
#define PATIENCE_TIMES 30.0
#define MOVED_BYTES 65536u

typedef struct add {
    sherd_work work; /* first: the executor hands it back */
    sherd__train_job *job;
    flight *flight;
    uint32_t tier;
    sherd_fragment *answer;
} add;

/* ---- telling --------------------------------------------------------------------------------- */

static void say(const sherd__train_job *j, sherd_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say(const sherd__train_job *j, sherd_log_level level, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    j->o.owner.log(j->o.owner.ctx, level, text);
}

static const char *name_of(const sherd__train_job *j, uint32_t node)
{
    return j->o.owner.name(j->o.owner.ctx, node);
}

static void stop(sherd__train_job *j, int err, const char *hint, const char *message)
{
    if (j->done) return;
    j->done = true;
    j->err = sherd__fail(&j->diag, err, hint, "%s", message);
    j->o.changed(j->o.changed_ctx);
}

static bool usable(const train_node *n)
{
    return n->session && !n->unfit && !n->closing;
}

/* What others see of the nodes, and whether any are left. */
static void count_nodes(sherd__train_job *j)
{
    uint32_t up = 0, open = 0, away = 0, unfit = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const train_node *n = &j->nodes[i];
        up += usable(n);
        open += !n->heard;
        away += n->heard && !n->session && n->back && !n->unfit;
        unfit += n->unfit;
    }
    pthread_mutex_lock(&j->lock);
    bool other = j->usable != up || j->open != open;
    j->usable = up;
    j->open = open;
    pthread_mutex_unlock(&j->lock);
    if (up + open + away == 0)
        stop(j, SHERD_EFEWNODES,
             unfit ? "update the nodes, or give them more --memory"
                   : "start nodes again and resume",
             unfit ? "no node is left that can compute these gradients"
                   : "no node is left to compute gradients");
    if (other) j->o.changed(j->o.changed_ctx);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void hand_back(sherd__train_job *j, flight *f)
{
    sherd__part *p = f->part;
    sherd__free(f);
    j->parts_back++;
    pthread_mutex_lock(&j->lock);
    p->next = NULL;
    *j->back_last = p;
    j->back_last = &p->next;
    pthread_mutex_unlock(&j->lock);
    j->o.changed(j->o.changed_ctx);
}

/* The node has it no more: whoever is next takes it, or nobody. */
static void lose(sherd__train_job *j, train_node *n)
{
    flight *f = n->has;
    n->has = NULL;
    if (!f) return;
    if (f->over || (f->left == 0 && f->adding == 0)) {
        if (f->adding == 0) hand_back(j, f);
        return; /* else the executor's last piece hands it back */
    }
    if (j->o.train.allow_drop && f->left == j->o.tiers) {
        f->part->dropped = true;
        hand_back(j, f);
        return;
    }
    f->next = j->todo;
    j->todo = f;
}

static void take_posted(sherd__train_job *j)
{
    pthread_mutex_lock(&j->lock);
    sherd__part *p = j->posted;
    j->posted = NULL;
    j->posted_last = &j->posted;
    bool finish = j->finish;
    pthread_mutex_unlock(&j->lock);
    flight **end = &j->todo;
    while (*end) end = &(*end)->next;
    for (sherd__part *next; p; p = next) {
        next = p->next;
        flight *f = sherd__calloc(1, sizeof *f + j->o.tiers * sizeof *f->added);
        if (!f) {
            stop(j, SHERD_ENOMEM, NULL, "no memory for a part of the training");
            return;
        }
        f->part = p;
        f->left = (uint32_t)j->o.tiers;
        p->dropped = false;
        p->err = SHERD_OK;
        p->why = (sherd_diag){ 0 };
        j->parts++;
        *end = f;
        end = &f->next;
    }
    if (finish) j->done = true;
}

static void give(sherd__train_job *j, uint32_t node, uint64_t now_ms)
{
    train_node *n = &j->nodes[node];
    flight *f = j->todo;
    int err = sherd__train_send(j, node, f);
    if (err == SHERD_ENOMEM) stop(j, err, NULL, "no memory for what nodes are sent");
    if (err) {
        n->closing = true; /* its end follows */
        return;
    }
    j->todo = f->next;
    f->next = NULL;
    f->asked = (double)(now_ms - j->began_ms) * 1e-3;
    n->has = f;
    n->answered = 0;
    n->since_ms = n->progress_ms = now_ms;
    n->queued = sherd__session_queued(n->session);
    n->bytes_in = sherd__session_stats_of(n->session)->bytes_in;
}

static void dispatch(sherd__train_job *j, uint64_t now_ms)
{
    for (uint32_t i = 0; i < j->o.nodes && j->todo && !j->done; i++)
        if (usable(&j->nodes[i]) && !j->nodes[i].has) give(j, i, now_ms);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void note_trace(sherd__train_job *j, uint32_t node, const flight *f, const uint8_t *times,
                       uint64_t now_ms)
{
    double t[SHERD__PLAN_TIMES];
    if (!j->o.train.trace) return;
    for (uint32_t i = 0; i < SHERD__PLAN_TIMES; i++)
        t[i] = (double)sherd__get_u64(times + 8 * (size_t)i) * 1e-6;
    pthread_mutex_lock(&j->lock);
    if (j->traces_len == TRACES) {
        j->traces_from = (j->traces_from + 1) % TRACES;
        j->traces_len--;
    }
    j->traces[(j->traces_from + j->traces_len++) % TRACES] = (sherd__train_trace){
        .version = f->part->params->number, .node = name_of(j, node), .shards = f->part->shards,
        .forward = t[SHERD__PLAN_FORWARD], .last_params = t[SHERD__PLAN_LAST_PARAMS],
        .top_left = t[SHERD__PLAN_TOP_LEFT], .lowest_backward = t[SHERD__PLAN_LOWEST_BACKWARD],
        .computed = t[SHERD__PLAN_COMPUTED], .asked = f->asked,
        .answered = (double)(now_ms - j->began_ms) * 1e-3,
    };
    pthread_mutex_unlock(&j->lock);
}

/* Costs and hits behind tier 0's sum. False: they are none. */
static bool take_figures(sherd__train_job *j, uint32_t node, flight *f, const uint8_t *bytes,
                         uint64_t now_ms)
{
    sherd__part *p = f->part;
    const uint8_t *at = bytes + 8 * j->counts[0];
    for (uint32_t i = p->first; i < p->first + p->shards; i++, at += 16) {
        double cost;
        memcpy(&cost, at, 8);
        uint64_t hits = sherd__get_u64(at + 8);
        if (!isfinite(cost) || hits > p->at[i + 1] - p->at[i]) return false;
        p->costs[i] = cost;
        p->hits[i] = hits;
    }
    note_trace(j, node, f, at, now_ms);
    return true;
}

static void maybe_back(sherd__train_job *j, flight *f)
{
    if (f->adding || (f->left && !f->over)) return;
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (j->nodes[i].has == f) j->nodes[i].has = NULL;
    hand_back(j, f);
}

static void on_add(sherd_work *work)
{
    add *a = (add *)work;
    sherd__sums_add(a->flight->part->sums, a->tier, sherd__fragment_bytes(a->answer));
}

static void on_added(sherd_work *work)
{
    add *a = (add *)work;
    sherd__train_job *j = a->job;
    flight *f = a->flight;
    sherd__fragment_free(a->answer);
    sherd__free(a);
    j->pieces--;
    f->adding--;
    maybe_back(j, f);
}

/* Takes the fragment. */
static int add_tier(sherd__train_job *j, flight *f, uint32_t t, sherd_fragment *answer)
{
    if (j->counts[t] <= ADD_HERE) {
        sherd__sums_add(f->part->sums, t, sherd__fragment_bytes(answer));
        sherd__fragment_free(answer);
        return SHERD_OK;
    }
    add *a = sherd__alloc(sizeof *a);
    int err = a ? SHERD_OK : SHERD_ENOMEM;
    if (!err) {
        *a = (add){ { on_add, on_added, NULL }, j, f, t, answer };
        err = sherd__executor_submit(j->o.executor, &a->work);
    }
    if (err) {
        sherd__fragment_free(answer);
        sherd__free(a);
        return err;
    }
    f->adding++;
    j->pieces++;
    return SHERD_OK;
}

static void on_result(sherd__train_job *j, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    train_node *n = &j->nodes[node];
    flight *f = n->has;
    uint32_t t = e->task.right - n->params;
    if (!f || e->task.left != n->plan || t >= j->o.tiers) return;
    n->progress_ms = now_ms;
    if (t == 0) {
        if (!take_figures(j, node, f, sherd__fragment_bytes(e->fragment), now_ms)) {
            j->o.owner.expel(j->o.owner.ctx, node, SHERD_EWRONG, "told a cost that is no number");
            return;
        }
        double took = (double)(now_ms - n->since_ms);
        j->part_ms = j->part_ms > 0 ? 0.9 * j->part_ms + 0.1 * took : took + 1;
        n->accepted++;
        f->part->by = node;
    }
    if (!f->added[t]) {
        f->added[t] = true;
        f->left--;
        sherd_fragment *answer = e->fragment;
        e->fragment = NULL;
        int err = add_tier(j, f, t, answer);
        if (err) {
            stop(j, err, NULL, "no memory to add up gradients");
            return;
        }
    }
    if (++n->answered == j->o.tiers) n->has = NULL;
    maybe_back(j, f);
}

/* The node cannot hold or compute what it was sent. */
static void on_unfit(sherd__train_job *j, uint32_t node, const sherd__refusal *r)
{
    train_node *n = &j->nodes[node];
    n->unfit = true;
    say(j, SHERD_LOG_WARN, "%s cannot take part in the training: %s", name_of(j, node), r->text);
    (void)!sherd__session_forget(n->session, j->o.id);
    sherd__train_forget(n);
    j->o.owner.touch(j->o.owner.ctx, node);
    lose(j, n);
    count_nodes(j);
}

static void on_refused(sherd__train_job *j, uint32_t node, const sherd__event *e)
{
    train_node *n = &j->nodes[node];
    flight *f = n->has;
    if (e->refusal.task && (!f || e->task.left != n->plan)) return;
    if (!e->refusal.task || (e->refusal.code != SHERD_EBUSY && e->refusal.code != SHERD_ERANGE)) {
        on_unfit(j, node, &e->refusal);
        return;
    }
    f->part->by = node;
    f->part->err = sherd__fail(&f->part->why, e->refusal.code, NULL, "%s: %s", name_of(j, node),
                               e->refusal.text);
    f->over = true;
    n->has = NULL;
    (void)!sherd__session_cancel(n->session, j->o.id, 0, 0);
    j->o.owner.touch(j->o.owner.ctx, node);
    maybe_back(j, f);
}

/* ---- as the cluster's loop sees it ----------------------------------------------------------- */

static void node_up(void *ctx, uint32_t node, sherd_session *s, uint64_t session_number,
                    uint64_t now_ms)
{
    sherd__train_job *j = ctx;
    train_node *n = &j->nodes[node];
    if (!j->began_ms) j->began_ms = now_ms;
    n->session = s;
    n->heard = true;
    n->closing = false;
    if (n->session_number != session_number) sherd__train_forget(n);
    n->session_number = session_number;
    if (!(sherd__session_peer(s)->features & SHERD__FEATURE_GRADIENTS)) {
        say(j, SHERD_LOG_WARN, "%s does not compute gradients: it is an older one",
            name_of(j, node));
        n->unfit = true;
    }
    count_nodes(j);
}

static void node_down(void *ctx, uint32_t node, bool back, const char *why, uint64_t now_ms)
{
    sherd__train_job *j = ctx;
    train_node *n = &j->nodes[node];
    const flight *f = n->has;
    bool was = n->session != NULL, dropped = j->o.train.allow_drop && f && f->left == j->o.tiers;
    if (!j->began_ms) j->began_ms = now_ms;
    n->session = NULL;
    n->heard = true;
    n->back = back;
    if (was && f)
        say(j, SHERD_LOG_WARN, "%s is lost: %s; its %u shard%s %s", name_of(j, node), why,
            f->part->shards, f->part->shards == 1 ? "" : "s",
            dropped ? "do not count in this step" : "go to another node");
    else if (was) say(j, SHERD_LOG_WARN, "%s is lost: %s", name_of(j, node), why);
    lose(j, n);
    count_nodes(j);
}

static void node_banned(void *ctx, uint32_t node, const char *why)
{
    sherd__train_job *j = ctx;
    j->nodes[node].unfit = true;
    say(j, SHERD_LOG_WARN, "%s is not let back in: %s", name_of(j, node), why);
}

static void node_barred(void *ctx, uint32_t node)
{
    sherd__train_job *j = ctx;
    j->nodes[node].unfit = true;
}

static void event(void *ctx, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    sherd__train_job *j = ctx;
    if (e->job != j->o.id || j->done || !j->nodes[node].session) return;
    if (e->kind == SHERD__EV_RESULT) on_result(j, node, e, now_ms);
    else if (e->kind == SHERD__EV_REFUSED) on_refused(j, node, e);
}

static double patience(const sherd__train_job *j)
{
    if (j->part_ms <= 0) return PATIENCE_FIRST_MS;
    double ms = PATIENCE_TIMES * j->part_ms;
    return ms > PATIENCE_MS ? ms : PATIENCE_MS;
}

static void tick(void *ctx, uint64_t now_ms)
{
    sherd__train_job *j = ctx;
    for (uint32_t i = 0; i < j->o.nodes && !j->done; i++) {
        train_node *n = &j->nodes[i];
        if (!n->session || !n->has) continue;
        uint64_t queued = sherd__session_queued(n->session);
        uint64_t in = sherd__session_stats_of(n->session)->bytes_in;
        if (queued < n->queued || in - n->bytes_in >= MOVED_BYTES) n->progress_ms = now_ms;
        n->queued = queued;
        n->bytes_in = in;
        if ((double)(now_ms - n->progress_ms) <= patience(j)) continue;
        j->o.owner.expel(j->o.owner.ctx, i, SHERD_ESILENT, "computes no gradient");
    }
}

static void pump(void *ctx, uint64_t now_ms)
{
    sherd__train_job *j = ctx;
    if (!j->began_ms) j->began_ms = now_ms;
    sherd__executor_drain(j->o.executor);
    take_posted(j);
    if (!j->done) dispatch(j, now_ms);
}

static bool done(const void *ctx, int *err, sherd_diag *d)
{
    const sherd__train_job *j = ctx;
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
    sherd__train_job *j = ctx;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        train_node *n = &j->nodes[i];
        if (!n->session) continue;
        (void)!sherd__session_forget(n->session, j->o.id);
        j->o.owner.touch(j->o.owner.ctx, i);
    }
}

static void rest(void *ctx)
{
    sherd__train_job *j = ctx;
    for (uint32_t i = 0; i < j->o.nodes; i++) j->nodes[i].session = NULL;
}

static bool idle(const void *ctx)
{
    return ((const sherd__train_job *)ctx)->pieces == 0;
}

static uint64_t node_tasks(const void *ctx, uint32_t node)
{
    return ((const sherd__train_job *)ctx)->nodes[node].accepted;
}

static void progress(const void *ctx, uint64_t *so_far, uint64_t *all)
{
    const sherd__train_job *j = ctx;
    *so_far = j->parts_back;
    *all = j->parts;
}

static void waiting(const void *ctx, uint64_t now_ms, char *out, size_t size)
{
    const sherd__train_job *j = ctx;
    uint32_t worst = UINT32_MAX;
    out[0] = '\0';
    for (uint32_t i = 0; i < j->o.nodes; i++)
        if (j->nodes[i].has &&
            (worst == UINT32_MAX || j->nodes[i].since_ms < j->nodes[worst].since_ms))
            worst = i;
    if (worst == UINT32_MAX || now_ms < j->nodes[worst].since_ms + 2000) return;
    snprintf(out, size, "waiting %" PRIu64 " s for gradients of %s",
             (now_ms - j->nodes[worst].since_ms) / 1000, name_of(j, worst));
}

static const sherd__work_ops train_ops = {
    .node_up = node_up, .node_down = node_down, .node_banned = node_banned,
    .node_barred = node_barred, .event = event, .tick = tick, .pump = pump, .done = done,
    .fail = fail, .end = end, .rest = rest, .idle = idle, .node_tasks = node_tasks,
    .progress = progress, .waiting = waiting,
};

sherd__work sherd__train_job_work(sherd__train_job *j)
{
    return (sherd__work){ &train_ops, j };
}

/* ---- other threads --------------------------------------------------------------------------- */

void sherd__train_job_post(sherd__train_job *j, sherd__part *p)
{
    pthread_mutex_lock(&j->lock);
    p->next = NULL;
    *j->posted_last = p;
    j->posted_last = &p->next;
    pthread_mutex_unlock(&j->lock);
}

sherd__part *sherd__train_job_take(sherd__train_job *j)
{
    pthread_mutex_lock(&j->lock);
    sherd__part *p = j->back;
    if (p && !(j->back = p->next)) j->back_last = &j->back;
    pthread_mutex_unlock(&j->lock);
    return p;
}

bool sherd__train_job_trace(sherd__train_job *j, sherd__train_trace *out)
{
    pthread_mutex_lock(&j->lock);
    bool any = j->traces_len > 0;
    if (any) {
        *out = j->traces[j->traces_from];
        j->traces_from = (j->traces_from + 1) % TRACES;
        j->traces_len--;
    }
    pthread_mutex_unlock(&j->lock);
    return any;
}

void sherd__train_job_count(sherd__train_job *j, uint32_t *up, uint32_t *open)
{
    pthread_mutex_lock(&j->lock);
    *up = j->usable;
    *open = j->open;
    pthread_mutex_unlock(&j->lock);
}

void sherd__train_job_finish(sherd__train_job *j)
{
    pthread_mutex_lock(&j->lock);
    j->finish = true;
    pthread_mutex_unlock(&j->lock);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

int sherd__train_job_new(sherd__train_job **out, const sherd__train_job_options *opt)
{
    sherd__train_job *j = *out = sherd__calloc(1, sizeof *j);
    if (!j) return SHERD_ENOMEM;
    j->o = *opt;
    j->posted_last = &j->posted;
    j->back_last = &j->back;
    j->open = opt->nodes;
    pthread_mutex_init(&j->lock, NULL);
    j->text = sherd__alloc(opt->text_len);
    j->counts = sherd__calloc(opt->tiers, sizeof *j->counts);
    j->at = sherd__calloc(opt->tiers, sizeof *j->at);
    j->nodes = sherd__calloc(opt->nodes, sizeof *j->nodes);
    if (!j->text || !j->counts || !j->at || !j->nodes) {
        sherd__train_job_free(j);
        *out = NULL;
        return SHERD_ENOMEM;
    }
    memcpy(j->text, opt->text, opt->text_len);
    for (size_t t = 0, at = 0; t < opt->tiers; at += opt->counts[t], t++) {
        j->counts[t] = opt->counts[t];
        j->at[t] = at;
    }
    for (uint32_t i = 0; i < opt->nodes; i++) sherd__train_forget(&j->nodes[i]);
    return SHERD_OK;
}

void sherd__train_job_free(sherd__train_job *j)
{
    if (!j) return;
    for (uint32_t i = 0; j->nodes && i < j->o.nodes; i++) {
        sherd__train_forget(&j->nodes[i]);
        sherd__free(j->nodes[i].kept);
        sherd__free(j->nodes[i].has);
    }
    for (flight *f = j->todo, *next; f; f = next) {
        next = f->next;
        sherd__free(f);
    }
    sherd__free(j->nodes);
    sherd__free(j->text);
    sherd__free(j->counts);
    sherd__free(j->at);
    pthread_mutex_destroy(&j->lock);
    sherd__free(j);
}
