/*
 * Each grader takes the next shard when it has finished one. Before it adds to the sum of a tier,
 * it waits until no other one does, and in float64 until the shard before its own was added. The
 * pass that adds last completes the sum.
 */
#include "learn/passes.h"

#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"

typedef struct pass {
    sherd__passes *of;
    sherd__grader *grader;
    uint32_t shard;
    bool local; /* it makes local steps */
} pass;

typedef struct progress {
    uint32_t added; /* shards */
    bool adding;
} progress;

struct sherd__passes {
    unsigned bits;
    uint32_t count;
    pthread_mutex_t lock; /* guards the members below, and is held for no computation */
    pthread_cond_t changed;
    bool sole; /* one pass computes the sum, and needs no lock */
    const sherd__passes_sum *sum;
    uint32_t next; /* shard */
    int err;
    sherd_diag why;
    progress tiers[SHERD__RECIPE_LAYERS_MAX];
    pass passes[];
};

/* ---- start and end --------------------------------------------------------------------------- */

int sherd__passes_new(sherd__passes **out, const sherd__passes_options *o, sherd_diag *d)
{
    sherd__passes *p = *out = sherd__calloc(1, sizeof *p + o->count * sizeof *p->passes);
    int err = SHERD_OK;
    if (!p) return sherd__fail_memory(d, "passes over examples");
    p->bits = o->bits;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    for (; p->count < o->count && !err; p->count++) {
        pass *x = &p->passes[p->count];
        x->of = p;
        err = sherd__grader_new(&x->grader, o->recipe, o->batch, o->bits, o->by, d);
    }
    if (!err) return SHERD_OK;
    sherd__passes_free(p);
    *out = NULL;
    return err;
}

void sherd__passes_free(sherd__passes *p)
{
    if (!p) return;
    for (uint32_t i = 0; i < p->count; i++) sherd__grader_free(p->passes[i].grader);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    sherd__free(p);
}

const sherd__grader *sherd__passes_grader(const sherd__passes *p)
{
    return p->passes[0].grader;
}

/* ---- one pass -------------------------------------------------------------------------------- */

static void enter(sherd__passes *p)
{
    if (!p->sole) pthread_mutex_lock(&p->lock);
}

static void leave_unchanged(sherd__passes *p)
{
    if (!p->sole) pthread_mutex_unlock(&p->lock);
}

/* Leaves after a change for which others may wait. */
static void leave(sherd__passes *p)
{
    if (p->sole) return;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static int interrupted(sherd_diag *d)
{
    return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "this pass was cancelled");
}

static bool failed(sherd__passes *p)
{
    enter(p);
    bool any = p->err != SHERD_OK;
    leave_unchanged(p);
    return any;
}

static bool stop(void *ctx)
{
    const pass *x = ctx;
    const sherd__passes_sum *s = x->of->sum;
    return failed(x->of) || (s->stop && s->stop(s->ctx));
}

static int need(void *ctx, size_t t, sherd_diag *d)
{
    pass *x = ctx;
    const sherd__passes_sum *s = x->of->sum;
    const double *params = NULL;
    if (failed(x->of)) return interrupted(d);
    int err = s->need(s->ctx, t, &params, d);
    if (err) return err;
    if (!x->local) sherd__grader_lend(x->grader, t, params);
    else
        memcpy(sherd__grader_params(x->grader, t), params,
               sherd__grader_count(x->grader, t) * sizeof *params);
    return SHERD_OK;
}

/* Waits until the pass may add to the tier's sum. */
static int begin(void *ctx, size_t t, bool *fresh, sherd_diag *d)
{
    const pass *x = ctx;
    sherd__passes *p = x->of;
    progress *tier = &p->tiers[t];
    enter(p);
    while (!p->err && (tier->adding || (!p->bits && tier->added != x->shard)))
        pthread_cond_wait(&p->changed, &p->lock);
    bool mine = !p->err;
    if (mine) tier->adding = true;
    *fresh = tier->added == 0;
    leave_unchanged(p);
    return mine ? SHERD_OK : interrupted(d);
}

static void done(void *ctx, size_t t)
{
    const pass *x = ctx;
    sherd__passes *p = x->of;
    enter(p);
    p->tiers[t].adding = false;
    bool complete = ++p->tiers[t].added == p->sum->shards;
    leave(p);
    if (complete && p->sum->done) p->sum->done(p->sum->ctx, t);
}

/* Takes the next shard. Returns false after the last one, or if a pass has failed. */
static bool take(pass *x)
{
    sherd__passes *p = x->of;
    enter(p);
    bool more = !p->err && p->next < p->sum->shards;
    if (more) x->shard = p->next++;
    leave_unchanged(p);
    return more;
}

static void fail(sherd__passes *p, int err, const sherd_diag *why)
{
    enter(p);
    if (!p->err) {
        p->err = err;
        p->why = *why;
    }
    leave(p);
}

static void run(void *ctx, size_t i, unsigned thread)
{
    sherd__passes *p = ctx;
    const sherd__passes_sum *s = p->sum;
    pass *x = &p->passes[i];
    sherd__grading how = { .scales = s->scales,
                           .room = s->room,
                           .sums = s->sums,
                           .need = need,
                           .begin = begin,
                           .done = done,
                           .stop = stop,
                           .ctx = x };
    (void)thread;
    while (take(x)) {
        sherd_diag d = { .code = 0 };
        sherd__graded *out = &s->graded[x->shard];
        const sherd__shard examples = s->shard(s->ctx, x->shard, (uint32_t)i, &how.local);
        x->local = how.local.steps > 0;
        int err = sherd__grader_run(x->grader, &examples, &how, &out->cost, &out->hits, &d);
        if (err) fail(p, err, &d);
    }
}

int sherd__passes_run(sherd__passes *p, sherd__team *team, const sherd__passes_sum *s,
                      sherd_diag *d)
{
    uint32_t count = p->count < s->shards ? p->count : s->shards;
    if (s->most && s->most < count) count = s->most;
    p->sole = count == 1;
    p->sum = s;
    p->next = 0;
    p->err = SHERD_OK;
    p->why = (sherd_diag){ .code = 0 };
    memset(p->tiers, 0, sizeof p->tiers);
    sherd__team_run(team, count, run, p);
    if (p->err && d) *d = p->why;
    return p->err;
}
