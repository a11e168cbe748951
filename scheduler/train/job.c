/*
 * The state machine of training. Parts go to idle nodes, lowest number first, so that the same
 * shards go to the same nodes as long as nothing fails, and the examples that nodes keep can be
 * used again. If there are more parts than nodes, each node gets a second one, which is sent while
 * the first is computed. answer.c processes the numbers of an answer.
 */
#include "scheduler/train/job.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "scheduler/train/internal.h"

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool busy(const sherd__work_node *n)
{
    return ((const train_node *)n)->has_len > 0;
}

static bool usable(const train_node *n)
{
    return n->w.session && !n->unfit && !n->closing;
}

/* Publishes the numbers of usable and unknown nodes, and ends the job if no node is left. */
static void count_nodes(sherd__train_job *j)
{
    uint32_t up = 0, open = 0, away = 0, unfit = 0;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        const train_node *n = &j->nodes[i];
        up += usable(n);
        open += !n->w.heard;
        away += n->w.heard && !n->w.session && n->back && !n->unfit;
        unfit += n->unfit;
    }
    pthread_mutex_lock(&j->lock);
    bool other = j->usable != up || j->open != open;
    j->usable = up;
    j->open = open;
    for (uint32_t i = 0, at = 0; i < j->o.nodes; i++)
        if (usable(&j->nodes[i])) j->usable_nodes[at++] = i;
    pthread_mutex_unlock(&j->lock);
    if (up + open + away == 0)
        sherd__work_stop(&j->w, SHERD_EFEWNODES,
                         unfit ? "update the nodes, or give them more --memory"
                               : "start nodes again and resume",
                         unfit ? "no node is left that can compute these gradients"
                               : "no node is left to compute gradients");
    if (other) j->w.changed(j->w.changed_ctx);
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
    j->w.changed(j->w.changed_ctx);
}

/* Returns true if no answer to this part has come and it must not be computed again. */
static bool dropped(const sherd__train_job *j, const flight *f)
{
    return j->o.train.allow_drop && f->left == j->o.tiers;
}

static given *find_given(train_node *n, uint32_t plan)
{
    for (uint32_t i = 0; i < n->has_len; i++)
        if (n->has[i].plan == plan) return &n->has[i];
    return NULL;
}

static void take_away(train_node *n, const given *g)
{
    n->has_len--;
    for (size_t i = (size_t)(g - n->has); i < n->has_len; i++) n->has[i] = n->has[i + 1];
}

/* The node's parts are returned, dropped, or queued for the next idle node. */
static void lose(sherd__train_job *j, train_node *n)
{
    while (n->has_len > 0) {
        flight *f = n->has[--n->has_len].flight;
        if (f->over || f->left == 0) {
            if (f->adding == 0) hand_back(j, f); /* else the executor's last piece does */
        } else if (dropped(j, f)) {
            f->part->dropped = true;
            hand_back(j, f);
        } else {
            f->next = j->todo;
            j->todo = f;
        }
    }
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
            sherd__work_stop(&j->w, SHERD_ENOMEM, NULL, "out of memory for a part of the training");
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
    if (finish) sherd__work_stop(&j->w, SHERD_OK, NULL, NULL);
}

/* Returns the place of the first part that this node may compute: not those that are planned for
 * another node, unless that one cannot compute any more. */
static flight **next_for(sherd__train_job *j, uint32_t node)
{
    flight **at = &j->todo;
    for (uint32_t wish; *at; at = &(*at)->next) {
        wish = (*at)->part->wish;
        if (wish == 0 || wish == node + 1 || !usable(&j->nodes[wish - 1])) break;
    }
    return at;
}

static void give(sherd__train_job *j, uint32_t node, flight **at, uint64_t now_ms)
{
    train_node *n = &j->nodes[node];
    flight *f = *at;
    given g = { .flight = f };
    const sherd__part *p = f->part;
    int err = sherd__train_send(j, node, &g);
    if (err == SHERD_ENOMEM)
        sherd__work_stop(&j->w, err, NULL, "out of memory for data that is sent to nodes");
    if (err) {
        n->closing = true; /* the end of its session follows */
        return;
    }
    *at = f->next;
    f->next = NULL;
    f->asked = (double)(now_ms - j->began_ms) * 1e-3;
    n->has[n->has_len++] = g;
    sherd__work_expect(&j->w,
                       j->w.flops * sherd__shards_examples(p->at + p->first, p->shards,
                                                           p->local ? p->local + p->first : NULL));
    if (n->has_len == 1) sherd__work_asked(&j->w, node, now_ms);
}

static void dispatch(sherd__train_job *j, uint64_t now_ms)
{
    for (uint32_t len = 0; len < GIVEN_MOST; len++)
        for (uint32_t i = 0; i < j->o.nodes && j->todo && !j->w.done; i++) {
            const train_node *n = &j->nodes[i];
            if (!usable(n) || n->has_len != len) continue;
            flight **at = next_for(j, i);
            if (*at && (len == 0 || !sherd__train_comes_round(j, n, *at))) give(j, i, at, now_ms);
        }
}

/* ---- answers --------------------------------------------------------------------------------- */

void sherd__train_maybe_back(sherd__train_job *j, flight *f)
{
    if (f->adding || (f->left && !f->over)) return;
    for (uint32_t i = 0; i < j->o.nodes; i++) {
        train_node *n = &j->nodes[i];
        for (uint32_t k = n->has_len; k-- > 0;)
            if (n->has[k].flight == f) take_away(n, &n->has[k]);
    }
    hand_back(j, f);
}

static void note_time(sherd__train_job *j, uint32_t node, const flight *f, uint64_t now_ms)
{
    double seconds = (double)(now_ms - j->began_ms) * 1e-3 - f->asked;
    pthread_mutex_lock(&j->lock);
    sherd__divide_took(&j->division[node], seconds, f->part->shards);
    pthread_mutex_unlock(&j->lock);
}

static void on_result(sherd__train_job *j, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    train_node *n = &j->nodes[node];
    given *g = find_given(n, e->task.left);
    if (!g || e->task.right - g->params >= j->o.tiers) return;
    flight *f = g->flight;
    uint32_t t = e->task.right - g->params;
    n->w.progress_ms = now_ms;
    if (t == 0) {
        if (!sherd__train_figures(j, node, f, sherd__fragment_bytes(e->fragment), now_ms)) {
            j->w.owner.expel(j->w.owner.ctx, node, SHERD_EWRONG,
                             "reported a loss that is not a number");
            return;
        }
        sherd__work_took(&j->w, node, now_ms);
        n->w.accepted++;
        note_time(j, node, f, now_ms);
        f->part->by = node;
    }
    if (!f->added[t]) {
        f->added[t] = true;
        f->left--;
        sherd__fragment *answer = e->fragment;
        e->fragment = NULL;
        int err = sherd__train_add(j, f, t, answer);
        if (err) {
            sherd__work_stop(&j->w, err, NULL, "out of memory for sums of gradients");
            return;
        }
    }
    if (++g->answered == j->o.tiers) {
        take_away(n, g);
        if (n->has_len > 0) sherd__work_asked(&j->w, node, now_ms); /* the next part */
    }
    sherd__train_maybe_back(j, f);
}

/* The node cannot hold or compute what it was sent. */
static void on_unfit(sherd__train_job *j, uint32_t node, const sherd__refusal *r)
{
    train_node *n = &j->nodes[node];
    n->unfit = true;
    sherd__work_say(&j->w, "%s cannot take part in the training: %s", sherd__work_name(&j->w, node),
                    r->text);
    sherd__work_forget(&j->w, node);
    sherd__train_forget(n);
    lose(j, n);
    count_nodes(j);
}

static void on_refused(sherd__train_job *j, uint32_t node, const sherd__event *e)
{
    train_node *n = &j->nodes[node];
    given *g = e->refusal.task ? find_given(n, e->task.left) : NULL;
    if (e->refusal.task && !g) return;
    if (!e->refusal.task || (e->refusal.code != SHERD_EBUSY && e->refusal.code != SHERD_ERANGE)) {
        on_unfit(j, node, &e->refusal);
        return;
    }
    flight *f = g->flight;
    f->part->by = node;
    f->part->err = sherd__fail(&f->part->why, e->refusal.code, NULL, "%s: %s",
                               sherd__work_name(&j->w, node), e->refusal.text);
    f->over = true;
    for (uint32_t t = 0; t < j->o.tiers; t++) /* tiers not yet answered */
        (void)!sherd__session_cancel(n->w.session, j->o.id, g->params + t, g->attempt + t);
    j->w.owner.touch(j->w.owner.ctx, node);
    take_away(n, g);
    sherd__train_maybe_back(j, f);
}

/* ---- as the cluster's loop sees it ----------------------------------------------------------- */

static void node_up(void *ctx, uint32_t node, sherd__session *s, uint64_t session_number,
                    uint64_t now_ms)
{
    sherd__train_job *j = ctx;
    train_node *n = &j->nodes[node];
    if (!j->began_ms) j->began_ms = now_ms;
    n->w.session = s;
    n->w.heard = true;
    n->closing = false;
    if (n->session_number != session_number) sherd__train_forget(n);
    n->session_number = session_number;
    if (!(sherd__session_peer(s)->features & SHERD__FEATURE_GRADIENTS)) {
        sherd__work_say(&j->w, "%s does not compute gradients: its version is older",
                        sherd__work_name(&j->w, node));
        n->unfit = true;
    }
    count_nodes(j);
}

static void node_down(void *ctx, uint32_t node, bool back, const char *why, uint64_t now_ms)
{
    sherd__train_job *j = ctx;
    train_node *n = &j->nodes[node];
    uint32_t shards = 0, fewer = 0; /* shards of its parts: all of them, and those that will not
                                       count in the step */
    for (uint32_t i = 0; i < n->has_len; i++) {
        const flight *f = n->has[i].flight;
        shards += f->part->shards;
        fewer += dropped(j, f) ? f->part->shards : 0;
    }
    bool was = n->w.session != NULL;
    if (!j->began_ms) j->began_ms = now_ms;
    n->w.session = NULL;
    n->w.heard = true;
    n->back = back;
    if (was && shards)
        sherd__work_say(&j->w, "%s is lost: %s; its %u shard%s %s", sherd__work_name(&j->w, node),
                        why, shards, shards == 1 ? "" : "s",
                        fewer == shards ? "do not count in this step"
                        : fewer         ? "go to another node, or do not count in this step"
                                        : "go to another node");
    else if (was) sherd__work_say(&j->w, "%s is lost: %s", sherd__work_name(&j->w, node), why);
    lose(j, n);
    count_nodes(j);
}

static void node_banned(void *ctx, uint32_t node, const char *why)
{
    sherd__train_job *j = ctx;
    j->nodes[node].unfit = true;
    sherd__work_say(&j->w, "%s may not take part again: %s", sherd__work_name(&j->w, node), why);
}

static void node_barred(void *ctx, uint32_t node)
{
    sherd__train_job *j = ctx;
    j->nodes[node].unfit = true;
}

static void event(void *ctx, uint32_t node, sherd__event *e, uint64_t now_ms)
{
    sherd__train_job *j = ctx;
    if (e->job != j->o.id || j->w.done || !j->nodes[node].w.session) return;
    if (e->kind == SHERD__EV_RESULT) on_result(j, node, e, now_ms);
    else if (e->kind == SHERD__EV_REFUSED) on_refused(j, node, e);
}

static void pump(void *ctx, uint64_t now_ms)
{
    sherd__train_job *j = ctx;
    if (!j->began_ms) j->began_ms = now_ms;
    sherd__executor_drain(j->o.executor);
    take_posted(j);
    if (!j->w.done) dispatch(j, now_ms);
}

static bool idle(const void *ctx)
{
    return ((const sherd__train_job *)ctx)->pieces == 0;
}

static void progress(const void *ctx, uint64_t *so_far, uint64_t *all)
{
    const sherd__train_job *j = ctx;
    *so_far = j->parts_back;
    *all = j->parts;
}

static const sherd__work_ops train_ops = {
    .node_up = node_up,
    .node_down = node_down,
    .node_banned = node_banned,
    .node_barred = node_barred,
    .event = event,
    .tick = sherd__work_tick,
    .pump = pump,
    .done = sherd__work_done,
    .fail = sherd__work_fail,
    .end = sherd__work_end,
    .rest = sherd__work_rest,
    .idle = idle,
    .node_tasks = sherd__work_node_tasks,
    .progress = progress,
    .waiting = sherd__work_waiting,
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

void sherd__train_job_count(sherd__train_job *j, uint32_t *up, uint32_t *open)
{
    pthread_mutex_lock(&j->lock);
    *up = j->usable;
    *open = j->open;
    pthread_mutex_unlock(&j->lock);
}

uint32_t sherd__train_job_divide(sherd__train_job *j, uint32_t shards, sherd__division *out,
                                 bool *changed)
{
    uint32_t parts = 0;
    pthread_mutex_lock(&j->lock);
    bool same = j->divided_len == j->usable;
    for (uint32_t i = 0; i < j->usable; i++) {
        sherd__divide_node *n = &j->division[j->usable_nodes[i]];
        same = same && j->divided[i] == n;
        j->divided[i] = n;
    }
    j->divided_len = j->usable;
    *changed = sherd__divide(j->divided, j->usable, shards, same);
    for (uint32_t i = 0; i < j->usable; i++)
        if (j->divided[i]->shards)
            out[parts++] = (sherd__division){ j->usable_nodes[i] + 1, j->divided[i]->shards };
    pthread_mutex_unlock(&j->lock);
    if (parts == 0)
        out[parts++] = (sherd__division){ 0, shards }; /* no node is up: posting fails */
    return parts;
}

bool sherd__train_job_slow(sherd__train_job *j, uint32_t node, sherd__train_slow *out)
{
    pthread_mutex_lock(&j->lock);
    sherd__divide_node *n = &j->division[node];
    uint32_t at = 0;
    while (at < j->divided_len && j->divided[at] != n) at++;
    *out = (sherd__train_slow){ .shards = n->shards };
    if (at < j->divided_len)
        out->times = sherd__divide_slower(j->divided, j->divided_len, at, j->scratch);
    bool tell = out->times > SHERD__TRAIN_SLOW && out->times > 2 * n->named;
    if (tell) n->named = out->times;
    pthread_mutex_unlock(&j->lock);
    return tell;
}

sherd__slowest sherd__train_job_slowest(sherd__train_job *j)
{
    sherd__slowest s = { .times = SHERD__TRAIN_SLOW };
    pthread_mutex_lock(&j->lock);
    for (uint32_t i = 0; i < j->divided_len; i++) {
        double times = sherd__divide_slower(j->divided, j->divided_len, i, j->scratch);
        if (times <= s.times) continue;
        s = (sherd__slowest){ (uint32_t)(j->divided[i] - j->division) + 1, times };
    }
    pthread_mutex_unlock(&j->lock);
    return s;
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
    j->w = (sherd__work_state){ .id = opt->id,
                                .len = opt->nodes,
                                .stride = sizeof *j->nodes,
                                .owner = opt->owner,
                                .changed = opt->changed,
                                .changed_ctx = opt->changed_ctx,
                                .busy = busy,
                                .wanted = "gradients of ",
                                .silent = "does not compute gradients",
                                .flops = sherd__recipe_flops(opt->train.recipe),
                                .apart = true };
    j->posted_last = &j->posted;
    j->back_last = &j->back;
    j->open = opt->nodes;
    pthread_mutex_init(&j->lock, NULL);
    j->text = sherd__alloc(opt->text_len);
    j->counts = sherd__calloc(opt->tiers, sizeof *j->counts);
    j->at = sherd__calloc(opt->tiers, sizeof *j->at);
    j->w.nodes = j->nodes = sherd__calloc(opt->nodes, sizeof *j->nodes);
    j->usable_nodes = sherd__calloc(opt->nodes, sizeof *j->usable_nodes);
    j->division = sherd__calloc(opt->nodes, sizeof *j->division);
    j->divided = sherd__calloc(opt->nodes, sizeof(sherd__divide_node *));
    j->scratch = sherd__calloc(opt->nodes, sizeof *j->scratch);
    if (!j->text || !j->counts || !j->at || !j->nodes || !j->usable_nodes || !j->division ||
        !j->divided || !j->scratch) {
        sherd__train_job_free(j);
        *out = NULL;
        return SHERD_ENOMEM;
    }
    memcpy(j->text, opt->text, opt->text_len);
    for (size_t t = 0, at = 0; t < opt->tiers; at += opt->counts[t], t++) {
        j->counts[t] = opt->counts[t];
        j->at[t] = at;
    }
    for (uint32_t i = 0; i < opt->nodes; i++) {
        sherd__train_forget(&j->nodes[i]);
        j->division[i].weight = opt->weights ? opt->weights[i] : 1;
    }
    return SHERD_OK;
}

void sherd__train_job_free(sherd__train_job *j)
{
    if (!j) return;
    for (uint32_t i = 0; j->nodes && i < j->o.nodes; i++) {
        sherd__train_forget(&j->nodes[i]);
        sherd__free(j->nodes[i].keep.list);
        for (uint32_t k = 0; k < j->nodes[i].has_len; k++) sherd__free(j->nodes[i].has[k].flight);
    }
    for (flight *f = j->todo, *next; f; f = next) {
        next = f->next;
        sherd__free(f);
    }
    sherd__free(j->nodes);
    sherd__free(j->usable_nodes);
    sherd__free(j->division);
    sherd__free(j->divided);
    sherd__free(j->scratch);
    sherd__free(j->text);
    sherd__free(j->counts);
    sherd__free(j->at);
    pthread_mutex_destroy(&j->lock);
    sherd__free(j);
}
