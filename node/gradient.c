/*
 * Open rounds. The passes are those of learn/passes.c. This file connects them to the node: the
 * loop's thread and the threads of passes exchange tiers under one lock, and results are sent as
 * they are computed.
 */
#include "node/gradient.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "node/gradient_state.h"

double sherd__round_now(const sherd__round *r)
{
    return r->site->clock ? r->site->clock() - r->base : 0;
}

bool sherd__round_startable(sherd__round *r)
{
    if (r->queued || r->running || r->ended || r->gone) return false;
    bool tiny = !r->site->wake || sherd__round_us(r) < SHERD__ROUND_INLINE_US || r->parked;
    if (r->tasks < r->tiers && (tiny || !r->tier[0].there)) return false; /* more will arrive */
    return r->queued = true;
}

double sherd__round_us(const sherd__round *r)
{
    double gflops = r->site->gflops, examples = 0, numbers = 0;
    for (uint32_t i = 0; i < r->shards; i++)
        examples += (double)r->shard[i].what.rows *
                    (r->shard[i].what.local.steps ? (double)r->shard[i].what.local.steps : 1);
    for (uint32_t t = 0; t < r->tiers; t++) numbers += (double)sherd__round_count(r, t);
    return examples * r->model->flops * 2 / (gflops * 1e3) + numbers * r->shards / 5e2;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* Waits until the tier's parameters have arrived. If they are late, all passes end. The caller
 * holds the lock. */
static int wait_for(sherd__round *r, uint32_t t, sherd_diag *d)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += SHERD__ROUND_WAIT_MS / 1000;
    int late = 0;
    while (!r->tier[t].there && !r->gone && !r->parked && !late)
        late = pthread_cond_timedwait(&r->changed, &r->lock, &until);
    if (r->gone) return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "this round was cancelled");
    if (r->tier[t].there) return SHERD_OK;
    r->parked = true;
    pthread_cond_broadcast(&r->changed);
    return sherd__fail(d, SHERD_EBUSY, NULL, "parameters of tier %u have not arrived", t);
}

static int need(void *ctx, size_t t, const double **params, sherd_diag *d)
{
    sherd__round *r = ctx;
    pthread_mutex_lock(&r->lock);
    int err = wait_for(r, (uint32_t)t, d);
    pthread_mutex_unlock(&r->lock);
    if (err) return err;
    *params = (const void *)sherd__fragment_bytes(r->tier[t].params->fragment);
    return SHERD_OK;
}

static sherd__shard shard(void *ctx, uint32_t i, uint32_t pass, sherd__local_steps *local)
{
    const sherd__round *r = ctx;
    (void)pass;
    *local = r->shard[i].what.local;
    return sherd__examples_shard(&r->shard[i]);
}

/* Called when the tier's sum is complete. */
static void done(void *ctx, size_t t)
{
    sherd__round *r = ctx;
    if (t == 0) return; /* its result includes the costs, which are not written yet */
    pthread_mutex_lock(&r->lock);
    if (t == 1) r->times[SHERD__PLAN_LOWEST_BACKWARD] = sherd__round_now(r);
    r->tier[t].computed = true;
    pthread_mutex_unlock(&r->lock);
    if (r->site->wake) r->site->wake(r->site->wake_ctx);
}

/* Writes cost and hits of every shard behind tier 0's sum. */
static void write_figures(sherd__round *r)
{
    uint8_t *to = r->tier[0].out + 8 * sherd__round_count(r, 0);
    for (uint32_t i = 0; i < r->shards; i++, to += 16) {
        memcpy(to, &r->graded[i].cost, 8);
        sherd__put_u64(to + 8, r->graded[i].hits);
    }
}

static bool nobody_waits(void *ctx)
{
    sherd__round *r = ctx;
    pthread_mutex_lock(&r->lock);
    bool gone = r->gone;
    pthread_mutex_unlock(&r->lock);
    return gone;
}

void sherd__round_begin(sherd__round *r)
{
    r->model->touched = true;
    r->running = true;
    r->queued = false;
    r->parked = false;
    r->err = SHERD_OK;
    r->why = (sherd_diag){ 0 };
}

void sherd__round_run(sherd__round *r)
{
    const sherd__passes_sum sum = { .shards = r->shards,
                                    .scales = r->scales,
                                    .room = r->room,
                                    .sums = r->sums,
                                    .stop = nobody_waits,
                                    .shard = shard,
                                    .need = need,
                                    .done = done,
                                    .graded = r->graded,
                                    .ctx = r };
    r->times[SHERD__PLAN_FORWARD] = sherd__round_now(r);
    r->err = sherd__passes_run(r->model->passes, r->site->team, &sum, &r->why);
    if (r->err) return;
    write_figures(r);
    pthread_mutex_lock(&r->lock);
    r->times[SHERD__PLAN_COMPUTED] = sherd__round_now(r);
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

/* ---- results --------------------------------------------------------------------------------- */

static void write_times(sherd__round *r)
{
    if (!r->times[SHERD__PLAN_TOP_LEFT]) r->times[SHERD__PLAN_TOP_LEFT] = sherd__round_now(r);
    uint64_t at = sherd__plan_numbers(sherd__round_count(r, 0), 0, r->shards) - SHERD__PLAN_TIMES;
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
        r->times[SHERD__PLAN_TOP_LEFT] = sherd__round_now(r);
    pthread_mutex_unlock(&r->lock);
}

/* Returns whether a task of the tier is to be answered. */
static bool is_open(const tier *a)
{
    return a->there && !a->given && !a->cancelled;
}

bool sherd__round_refused(sherd__round *r, sherd__task *what)
{
    if (!r->ended || !r->err) return false;
    for (uint32_t t = 0; t < r->tiers; t++) {
        tier *a = &r->tier[t];
        if (!is_open(a)) continue;
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

/* Drops a block, unless another block has its number by now. */
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
        const sherd__examples *s = &r->shard[i];
        if (!s->what.drop) continue;
        drop(r, s->what.x, s->x);
        drop(r, s->what.targets, s->targets);
    }
    sherd__round_free(r);
    return true;
}

/* ---- cancelling ------------------------------------------------------------------------------ */

void sherd__round_abandon(sherd__round *r)
{
    pthread_mutex_lock(&r->lock);
    r->gone = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

bool sherd__round_withdraw(sherd__gradient_site *site, uint64_t job, sherd__task *what)
{
    for (sherd__round *r = site->rounds; r; r = r->next)
        for (uint32_t t = 0; t < r->tiers && r->job == job; t++) {
            if (!is_open(&r->tier[t])) continue;
            r->tier[t].cancelled = true;
            *what = r->tier[t].what;
            return true;
        }
    return false;
}

uint32_t sherd__round_cancel(sherd__gradient_site *site, uint64_t job, uint32_t task,
                             uint32_t attempt)
{
    uint32_t cancelled = 0;
    for (sherd__round *r = site->rounds; r; r = r->next) {
        if (r->job != job) continue;
        for (uint32_t t = 0; t < r->tiers; t++) {
            tier *a = &r->tier[t];
            if (!is_open(a)) continue;
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
        for (uint32_t t = 0; t < r->tiers; t++) wanted = wanted || is_open(&r->tier[t]);
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
    while (site->rounds) sherd__round_free(site->rounds);
    sherd__gradient_forget(site, 0);
}
