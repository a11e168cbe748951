/*
 * Rounds. The pass is learn/grader.c's, the same that trains in one process; here is what surrounds
 * it: plans and blocks that came from a peer are checked before any memory, memory is counted in the
 * node's budget, and the loop's thread and the compute thread hand tiers to each other under one
 * lock. A plan is trusted in nothing: every number in it is compared with the blocks that it names.
 */
#include "node/gradient.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/grader.h"
#include "learn/plan.h"

typedef struct sherd__model {
    uint64_t job;
    uint32_t recipe;
    unsigned bits;
    size_t batch;
    sherd__grader *grader;
    double flops; /* of one example, forward and back */
    uint64_t reserved;
    uint32_t users;
    struct sherd__model *next;
} model;

typedef struct tier {
    sherd__task what;
    sherd__block *params;
    uint8_t *out;         /* the answer's; NULL once it is given away */
    bool there;           /* its task has come */
    bool computed, given, cancelled;
} tier;

typedef struct shard {
    sherd__block *x, *targets;
    sherd__plan_shard what;
    double cost;
    uint64_t hits;
} shard;

struct sherd__round {
    sherd__gradient_site *site;
    sherd__round *next;
    uint64_t job;
    uint32_t number;      /* of the plan's block */
    sherd__block *plan;
    model *model;
    uint32_t tiers, shards;
    unsigned room;
    uint32_t params;      /* block of tier 0 */
    int32_t *scales;
    tier *tier;
    shard *shard;
    void **sums;
    uint64_t reserved;
    uint32_t tasks;       /* that have come */
    bool queued, running, ended, gone;
    pthread_mutex_t lock; /* guards there, computed, given, gone and times, while a pass runs */
    pthread_cond_t came;
    uint32_t at;          /* the pass: shard */
    bool parked;
    int err;
    sherd_diag why;
    double base;          /* all times count from the first task */
    double times[SHERD__PLAN_TIMES];
};

static double now(const sherd__round *r)
{
    return r->site->clock ? r->site->clock() - r->base : 0;
}

/* ---- models ----------------------------------------------------------------------------------- */

static void free_model(sherd__gradient_site *site, model *m)
{
    sherd__grader_free(m->grader);
    sherd__pool_unreserve(site->pool, m->reserved);
    sherd__free(m);
}

void sherd__gradient_forget(sherd__gradient_site *site, uint64_t job)
{
    for (model **at = &site->models; *at;) {
        model *m = *at;
        if (m->users || (job && m->job != job)) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        free_model(site, m);
    }
}

/* Multiplications and additions of one example, in both directions. */
static double flops_of(const sherd__recipe *r)
{
    sherd__form in = r->in;
    double sum = 0;
    for (size_t i = 0; i < r->len; i++) {
        sherd__layer l = { .spec = r->layers[i], .in = in };
        if (l.spec.kind->fit(&l, NULL)) return INFINITY;
        double places = l.cols ? (double)l.out.height * (double)l.out.width : 0;
        sum += 6 * (double)l.rows * (double)l.cols * places +
               20 * (double)l.out.height * (double)l.out.width * (double)l.out.channels;
        in = l.out;
    }
    return sum;
}

/* The client's model for this plan: made once, as long as plans agree. */
static int find_model(sherd__gradient_site *site, uint64_t job, const sherd__plan *p, model **out,
                      sherd_diag *d)
{
    sherd__recipe recipe;
    for (model *m = site->models; m; m = m->next)
        if (m->job == job && m->recipe == p->recipe && m->bits == p->bits && m->batch == p->batch) {
            *out = m;
            return SHERD_OK;
        }
    sherd__gradient_forget(site, job);
    sherd__block *text = sherd__store_find(site->store, job, p->recipe);
    if (!text)
        return sherd__fail(d, SHERD_EINVAL, NULL, "no block %u of this job here", p->recipe);
    const sherd__fragment_info *info = sherd__fragment_info_of(text->fragment);
    if (info->dtype != SHERD_U8 || info->encoding != SHERD__DENSE || info->groups || info->rows != 1)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is no recipe", p->recipe);
    int err = sherd__recipe_parse(&recipe, (const char *)sherd__fragment_bytes(text->fragment),
                                  (size_t)info->len, "recipe", SHERD__RECIPE_NETWORK, d);
    uint64_t bytes = 0;
    if (!err) err = sherd__grader_memory(&recipe, p->batch, &bytes, d);
    if (err) return err;
    if (bytes > UINT64_MAX / 2 || !sherd__pool_reserve(site->pool, bytes + sizeof(model)))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no room for a network of %llu bytes",
                           (unsigned long long)bytes);
    model *m = sherd__calloc(1, sizeof *m);
    err = m ? sherd__grader_new(&m->grader, &recipe, p->batch, p->bits, false, d) : SHERD_ENOMEM;
    if (err) {
        sherd__free(m);
        sherd__pool_unreserve(site->pool, bytes + sizeof(model));
        return sherd__fail(d, err, NULL, "out of memory");
    }
    *m = (model){ .job = job, .recipe = p->recipe, .bits = p->bits, .batch = p->batch,
                  .grader = m->grader, .flops = flops_of(&recipe),
                  .reserved = bytes + sizeof(model), .next = site->models };
    *out = site->models = m;
    return SHERD_OK;
}

/* ---- opening a round -------------------------------------------------------------------------- */

static void free_round(sherd__round *r)
{
    sherd__gradient_site *site = r->site;
    for (sherd__round **at = &site->rounds; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    for (uint32_t t = 0; r->tier && t < r->tiers; t++) {
        sherd__block_release(r->tier[t].params);
        if (r->tier[t].out)
            sherd__pool_give(site->pool, r->tier[t].out, r->tier[t].what.result.len);
    }
    for (uint32_t i = 0; r->shard && i < r->shards; i++) {
        sherd__block_release(r->shard[i].x);
        sherd__block_release(r->shard[i].targets);
    }
    if (r->model) r->model->users--;
    sherd__block_release(r->plan);
    sherd__pool_unreserve(site->pool, r->reserved);
    pthread_cond_destroy(&r->came);
    pthread_mutex_destroy(&r->lock);
    sherd__free(r->scales);
    sherd__free(r->tier);
    sherd__free(r->shard);
    sherd__free(r->sums);
    sherd__free(r);
}

static int check_inputs(const sherd__round *r, const shard *s, sherd_diag *d)
{
    const sherd__fragment_info *x = sherd__fragment_info_of(s->x->fragment);
    const sherd__fragment_info *t = sherd__fragment_info_of(s->targets->fragment);
    const sherd__grader *g = r->model->grader;
    if (x->encoding != SHERD__DENSE || x->groups || !sherd_dtype_size((sherd_dtype)x->dtype) ||
        x->cols != sherd__grader_inputs(g))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "block %u holds no inputs of %zu numbers",
                           s->what.x, sherd__grader_inputs(g));
    bool labels = t->dtype == SHERD_U32 && t->cols == 1;
    bool values = t->dtype == SHERD_F64 && t->cols == sherd__grader_width(g);
    if (t->encoding != SHERD__DENSE || t->groups || t->rows != x->rows || !(labels || values))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "block %u holds no targets of %llu examples",
                           s->what.targets, (unsigned long long)x->rows);
    if (s->what.rows > x->rows || s->what.first > x->rows - s->what.rows)
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "rows %llu and %llu more of a block of %llu",
                           (unsigned long long)s->what.first, (unsigned long long)s->what.rows,
                           (unsigned long long)x->rows);
    return SHERD_OK;
}

static int take_shards(sherd__round *r, const sherd__plan *p, sherd_diag *d)
{
    for (uint32_t i = 0; i < r->shards; i++) {
        shard *s = &r->shard[i];
        s->what = sherd__plan_shard_at(p, i);
        if (!sherd__plan_shard_valid(&s->what, p->batch))
            return sherd__fail(d, SHERD_EFORMAT, NULL, "shard %u of the plan makes no sense", i);
        sherd__block *x = sherd__store_find(r->site->store, r->job, s->what.x);
        sherd__block *t = sherd__store_find(r->site->store, r->job, s->what.targets);
        if (!x || !t)
            return sherd__fail(d, SHERD_EINVAL, NULL, "no block %u of this job here",
                               x ? s->what.targets : s->what.x);
        sherd__block_hold(s->x = x);
        sherd__block_hold(s->targets = t);
        int err = check_inputs(r, s, d);
        if (err) return err;
    }
    return SHERD_OK;
}

static int read_plan(const sherd__block *b, uint32_t number, sherd__plan *p, sherd_diag *d)
{
    const sherd__fragment_info *info = sherd__fragment_info_of(b->fragment);
    if (info->dtype != SHERD_I64 || info->encoding != SHERD__DENSE || info->groups || info->rows != 1)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "block %u is no plan", number);
    return sherd__plan_parse(p, sherd__fragment_bytes(b->fragment), (size_t)info->len, d);
}

static int open_round(sherd__gradient_site *site, const sherd__task *t, sherd__round **out,
                      sherd_diag *d)
{
    sherd__plan p;
    sherd__block *plan = sherd__store_find(site->store, t->job, t->left);
    if (!plan) return sherd__fail(d, SHERD_EINVAL, NULL, "no block %u of this job here", t->left);
    int err = read_plan(plan, t->left, &p, d);
    if (err) return err;
    uint64_t memory = sizeof(sherd__round) + p.tiers * (sizeof(tier) + 16) +
                      p.shards * (uint64_t)sizeof(shard) + SHERD__POOL_OVERHEAD;
    if (!sherd__pool_reserve(site->pool, memory))
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no room for a round of %u shards", p.shards);
    sherd__round *r = sherd__calloc(1, sizeof *r);
    if (!r) {
        sherd__pool_unreserve(site->pool, memory);
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    }
    *r = (sherd__round){ .site = site, .job = t->job, .number = t->left, .plan = plan,
                         .tiers = p.tiers, .shards = p.shards, .room = p.room,
                         .params = p.params, .reserved = memory };
    sherd__block_hold(plan);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->came, NULL);
    if (site->clock) r->base = site->clock();
    r->scales = sherd__calloc(p.tiers, sizeof *r->scales);
    r->tier = sherd__calloc(p.tiers, sizeof *r->tier);
    r->shard = sherd__calloc(p.shards, sizeof *r->shard);
    r->sums = sherd__calloc(p.tiers, sizeof *r->sums);
    if (!r->scales || !r->tier || !r->shard || !r->sums)
        err = sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    if (!err) err = find_model(site, t->job, &p, &r->model, d);
    if (!err) r->model->users++;
    if (!err && sherd__grader_tiers(r->model->grader) != p.tiers)
        err = sherd__fail(d, SHERD_ESHAPE, NULL, "a plan of %u tiers for a network of %zu", p.tiers,
                          sherd__grader_tiers(r->model->grader));
    for (uint32_t i = 0; i < p.tiers && !err; i++) r->scales[i] = sherd__plan_scale(&p, i);
    if (!err) err = take_shards(r, &p, d);
    if (err) {
        free_round(r);
        return err;
    }
    r->next = site->rounds;
    *out = site->rounds = r;
    return SHERD_OK;
}

/* ---- tasks ------------------------------------------------------------------------------------ */

static uint64_t numbers_of(const sherd__round *r, uint32_t t)
{
    return sherd__plan_numbers(sherd__grader_count(r->model->grader, t), t, r->shards);
}

static int check_task(const sherd__round *r, const sherd__task *t, sherd_diag *d)
{
    uint32_t i = t->right - r->params;
    if (t->primes_len || t->right < r->params || i >= r->tiers)
        return sherd__fail(d, SHERD_EINVAL, NULL, "block %u holds parameters of no tier",
                           t->right);
    if (r->tier[i].there)
        return sherd__fail(d, SHERD_EINVAL, NULL, "tier %u was asked for already", i);
    const sherd__fragment_info *a = &t->result;
    uint8_t dtype = r->model->bits ? SHERD_I64 : SHERD_F64;
    if (a->dtype != dtype || a->rows != 1 || a->cols != numbers_of(r, i) || a->groups ||
        a->encoding != SHERD__DENSE)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "tier %u gives %llu numbers of dtype %u", i,
                           (unsigned long long)numbers_of(r, i), dtype);
    return SHERD_OK;
}

static int join_round(sherd__round *r, const sherd__task *t, sherd_diag *d)
{
    int err = check_task(r, t, d);
    if (err) return err;
    uint32_t i = t->right - r->params;
    sherd__block *b = sherd__store_find(r->site->store, t->job, t->right);
    if (!b) return sherd__fail(d, SHERD_EINVAL, NULL, "no block %u of this job here", t->right);
    const sherd__fragment_info *info = sherd__fragment_info_of(b->fragment);
    size_t count = sherd__grader_count(r->model->grader, i);
    if (info->dtype != SHERD_F64 || info->encoding != SHERD__DENSE || info->groups ||
        info->rows != 1 || info->cols != count)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "block %u: tier %u has %zu parameters", t->right,
                           i, count);
    uint8_t *bytes = sherd__pool_get(r->site->pool, t->result.len);
    if (!bytes)
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no room for a gradient of %llu bytes",
                           (unsigned long long)t->result.len);
    sherd__block_hold(b);
    pthread_mutex_lock(&r->lock);
    tier *a = &r->tier[i];
    *a = (tier){ .what = *t, .params = b, .out = bytes, .there = true };
    r->sums[i] = bytes;
    r->tasks++;
    r->times[SHERD__PLAN_LAST_PARAMS] = now(r);
    pthread_cond_signal(&r->came);
    pthread_mutex_unlock(&r->lock);
    return SHERD_OK;
}

int sherd__round_task(sherd__gradient_site *site, const sherd__task *t, sherd__round **out,
                      sherd_diag *d)
{
    sherd__round *r = site->rounds;
    while (r && (r->job != t->job || r->number != t->left || r->gone)) r = r->next;
    if (r) {
        int err = join_round(r, t, d);
        if (!err) *out = r;
        return err;
    }
    int err = open_round(site, t, &r, d);
    if (err) return err;
    err = join_round(r, t, d);
    if (err) free_round(r);
    else *out = r;
    return err;
}

bool sherd__round_startable(sherd__round *r)
{
    bool tiny = !r->site->wake || sherd__round_us(r) < SHERD__ROUND_INLINE_US || r->parked;
    if (r->queued || r->running || r->ended || r->gone) return false;
    if (r->tasks < r->tiers && (tiny || !r->tier[0].there)) return false; /* more will come */
    return r->queued = true;
}

double sherd__round_us(const sherd__round *r)
{
    double gflops = r->site->gflops > 1 ? r->site->gflops : 1, examples = 0, numbers = 0;
    for (uint32_t i = 0; i < r->shards; i++)
        examples += (double)r->shard[i].what.rows *
                    (r->shard[i].what.local.steps ? (double)r->shard[i].what.local.steps : 1);
    for (uint32_t t = 0; t < r->tiers; t++)
        numbers += (double)sherd__grader_count(r->model->grader, t);
    return examples * r->model->flops * 2 / (gflops * 1e3) + numbers * r->shards / 5e2;
}

/* ---- the pass --------------------------------------------------------------------------------- */

/* Waits until the tier's parameters are there; the lock is held. */
static int wait_for(sherd__round *r, uint32_t t, sherd_diag *d)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SHERD__ROUND_WAIT_MS / 1000;
    int late = 0;
    while (!r->tier[t].there && !r->gone && !late)
        late = pthread_cond_timedwait(&r->came, &r->lock, &until);
    if (r->gone) return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "nobody waits for this round");
    if (r->tier[t].there) return SHERD_OK;
    r->parked = true;
    return sherd__fail(d, SHERD_EBUSY, NULL, "parameters of tier %u have not come", t);
}

static int need(void *ctx, size_t t, sherd_diag *d)
{
    sherd__round *r = ctx;
    if (r->at > 0 && r->shard[r->at].what.local.steps == 0) return SHERD_OK; /* they are in */
    pthread_mutex_lock(&r->lock);
    int err = wait_for(r, (uint32_t)t, d);
    pthread_mutex_unlock(&r->lock);
    if (err) return err;
    if (r->at == 0) memset(r->tier[t].out, 0, r->tier[t].what.result.len);
    memcpy(sherd__grader_params(r->model->grader, t),
           sherd__fragment_bytes(r->tier[t].params->fragment),
           sherd__grader_count(r->model->grader, t) * sizeof(double));
    return SHERD_OK;
}

/* The tier's sum has the last shard in it. */
static void done(void *ctx, size_t t)
{
    sherd__round *r = ctx;
    if (r->at + 1 < r->shards) return;
    if (t == 1) r->times[SHERD__PLAN_LOWEST_BACKWARD] = now(r);
    if (t == 0) return; /* its answer has more in it */
    pthread_mutex_lock(&r->lock);
    r->tier[t].computed = true;
    pthread_mutex_unlock(&r->lock);
    if (r->site->wake) r->site->wake(r->site->wake_ctx);
}

static sherd__shard shard_of(const sherd__round *r, const shard *s)
{
    const sherd__fragment_info *x = sherd__fragment_info_of(s->x->fragment);
    const sherd__fragment_info *t = sherd__fragment_info_of(s->targets->fragment);
    sherd_view all = sherd_view_c(sherd__fragment_bytes(s->x->fragment), (sherd_dtype)x->dtype,
                                  (size_t)x->rows, (size_t)x->cols);
    const void *targets = sherd__fragment_bytes(s->targets->fragment);
    sherd__shard out = { sherd_view_sub(all, (size_t)s->what.first, (size_t)s->what.rows, 0,
                                        all.cols), { NULL, NULL } };
    if (t->dtype == SHERD_U32) out.targets.labels = (const uint32_t *)targets + s->what.first;
    else out.targets.values = (const double *)targets +
                              s->what.first * sherd__grader_width(r->model->grader);
    return out;
}

/* Behind tier 0's sum: what every shard cost and hit. */
static void write_figures(sherd__round *r)
{
    uint8_t *to = r->tier[0].out + 8 * sherd__grader_count(r->model->grader, 0);
    for (uint32_t i = 0; i < r->shards; i++, to += 16) {
        memcpy(to, &r->shard[i].cost, 8);
        sherd__put_u64(to + 8, r->shard[i].hits);
    }
}

void sherd__round_begin(sherd__round *r)
{
    r->running = true;
    r->queued = false;
    r->parked = false;
    r->err = SHERD_OK;
    r->why = (sherd_diag){ 0 };
}

void sherd__round_run(sherd__round *r)
{
    sherd__grading how = { .scales = r->scales, .room = r->room, .sums = r->sums, .need = need,
                           .done = done, .ctx = r };
    r->times[SHERD__PLAN_FORWARD] = now(r);
    for (r->at = 0; r->at < r->shards && !r->err; r->at++) {
        shard *s = &r->shard[r->at];
        sherd__shard examples = shard_of(r, s);
        how.local = s->what.local;
        r->err = sherd__grader_run(r->model->grader, &examples, &how, &s->cost, &s->hits, &r->why);
    }
    if (r->err) return;
    write_figures(r);
    pthread_mutex_lock(&r->lock);
    r->times[SHERD__PLAN_COMPUTED] = now(r);
    r->tier[0].computed = true;
    pthread_mutex_unlock(&r->lock);
}

bool sherd__round_end(sherd__round *r)
{
    r->running = false;
    if (r->parked && !r->gone) {
        r->err = SHERD_OK;
        return false;
    }
    return r->ended = true;
}

/* ---- answers ---------------------------------------------------------------------------------- */

static void write_times(sherd__round *r)
{
    if (!r->times[SHERD__PLAN_TOP_LEFT]) r->times[SHERD__PLAN_TOP_LEFT] = now(r);
    uint64_t at = sherd__plan_numbers(sherd__grader_count(r->model->grader, 0), 0, r->shards) -
                  SHERD__PLAN_TIMES;
    for (uint32_t i = 0; i < SHERD__PLAN_TIMES; i++)
        sherd__put_u64(r->tier[0].out + 8 * (at + i), (uint64_t)llround(r->times[i] * 1e6));
}

bool sherd__round_next(sherd__round *r, sherd__task *what, uint8_t **bytes)
{
    bool found = false;
    pthread_mutex_lock(&r->lock);
    for (uint32_t t = r->tiers; t-- > 0 && !found;) {
        tier *a = &r->tier[t];
        if (!a->computed || a->given || a->cancelled || r->gone) continue;
        if (t == 0) write_times(r);
        a->given = found = true;
        *what = a->what;
        *bytes = a->out;
        a->out = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    return found;
}

void sherd__round_left(sherd__round *r)
{
    pthread_mutex_lock(&r->lock);
    if (r->tier[r->tiers - 1].given && !r->times[SHERD__PLAN_TOP_LEFT])
        r->times[SHERD__PLAN_TOP_LEFT] = now(r);
    pthread_mutex_unlock(&r->lock);
}

bool sherd__round_refused(sherd__round *r, sherd__task *what)
{
    if (!r->ended || !r->err) return false;
    for (uint32_t t = 0; t < r->tiers; t++) {
        tier *a = &r->tier[t];
        if (!a->there || a->given || a->cancelled) continue;
        a->given = true;
        *what = a->what;
        return true;
    }
    return false;
}

int sherd__round_failure(const sherd__round *r, const char **text)
{
    *text = r->why.message;
    return r->err;
}

/* A block is dropped, unless another has taken its number meanwhile. */
static void drop(sherd__round *r, uint32_t number, const sherd__block *b)
{
    if (sherd__store_find(r->site->store, r->job, number) == b)
        (void)sherd__store_drop(r->site->store, r->job, number);
}

bool sherd__round_close(sherd__round *r)
{
    bool open = !r->ended && !r->gone;
    for (uint32_t t = 0; t < r->tiers && !r->gone; t++)
        open = open || !(r->tier[t].given || r->tier[t].cancelled);
    if (open || r->running || r->queued) return false;
    for (uint32_t t = 0; t < r->tiers; t++) {
        const tier *a = &r->tier[t];
        if (!a->there) continue;
        if (a->what.flags & SHERD__DROP_RIGHT) drop(r, a->what.right, a->params);
        if (a->what.flags & SHERD__DROP_LEFT) drop(r, a->what.left, r->plan);
    }
    for (uint32_t i = 0; i < r->shards; i++) {
        const shard *s = &r->shard[i];
        if (!s->what.drop) continue;
        drop(r, s->what.x, s->x);
        drop(r, s->what.targets, s->targets);
    }
    free_round(r);
    return true;
}

/* ---- giving up -------------------------------------------------------------------------------- */

void sherd__round_abandon(sherd__round *r)
{
    pthread_mutex_lock(&r->lock);
    r->gone = true;
    pthread_cond_signal(&r->came);
    pthread_mutex_unlock(&r->lock);
}

uint32_t sherd__round_cancel(sherd__gradient_site *site, uint64_t job, uint32_t task,
                             uint32_t attempt)
{
    uint32_t cancelled = 0;
    for (sherd__round *r = site->rounds; r; r = r->next) {
        if (r->job != job) continue;
        for (uint32_t t = 0; t < r->tiers; t++) {
            tier *a = &r->tier[t];
            if (!a->there || a->given || a->cancelled) continue;
            if (task && (a->what.task != task || a->what.attempt != attempt)) continue;
            a->cancelled = true;
            cancelled++;
        }
    }
    sherd__round_sweep(site, job);
    return cancelled;
}

void sherd__round_sweep(sherd__gradient_site *site, uint64_t job)
{
    for (sherd__round *r = site->rounds; r; r = r->next) {
        bool wanted = false;
        for (uint32_t t = 0; t < r->tiers; t++)
            wanted = wanted || (r->tier[t].there && !r->tier[t].cancelled && !r->tier[t].given);
        if (r->job == job && !wanted) sherd__round_abandon(r);
    }
}

bool sherd__round_gone(const sherd__round *r)
{
    return r->gone;
}

sherd__round *sherd__round_after(const sherd__gradient_site *site, const sherd__round *r)
{
    return r ? r->next : site->rounds;
}

void sherd__round_unqueue(sherd__round *r)
{
    r->queued = false;
}

void sherd__round_fail(sherd__round *r, int err, const char *why)
{
    r->queued = false;
    r->ended = true;
    r->err = sherd__fail(&r->why, err, NULL, "%s", why);
}

void sherd__gradient_fini(sherd__gradient_site *site)
{
    while (site->rounds) free_round(site->rounds);
    sherd__gradient_forget(site, 0);
}
