/*
 * Grading in threads of this process, with a queue of parts to do and a queue of parts done.
 * Threads compute in parallel except for products, which are made one at a time (BLAS). Sums are
 * added under the lock in any order, since integer addition is independent of order.
 */
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/gradients.h"

typedef struct here here;

typedef struct hand {
    here *all;
    uint32_t number;
    pthread_t thread;
    bool runs;
    sherd__grader *grader;
    void *x, *targets; /* one shard, gathered */
    void **sums;       /* by tier, of one part */
} hand;

struct here {
    const sherd__dataset *data;
    size_t batch;
    bool end;
    hand *hands;
    uint32_t count;
    pthread_mutex_t lock;
    pthread_cond_t todo, done;
    sherd__part *first, **last;
    sherd__part *back, **back_last;
    uint32_t under_way;
};

/* ---- one product at a time ------------------------------------------------------------------- */

static pthread_mutex_t blas = PTHREAD_MUTEX_INITIALIZER;
static const sherd_multiplier_ops *unlocked; /* of the local multiplier; set under the lock */
static sherd_multiplier_ops locked;          /* as `unlocked`, with products under the lock */

static int locked_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                           sherd_diag *d)
{
    pthread_mutex_lock(&blas);
    int err = unlocked->multiply(ctx, a, b, c, ldc, d);
    pthread_mutex_unlock(&blas);
    return err;
}

/* Makes a local multiplier, of which a process's threads use only one at a time. Passes without
   kept operands and maps call no other function of it than multiply. */
static int take_turns(void *ctx, unsigned bits, sherd_multiplier *out, sherd_diag *d)
{
    (void)ctx;
    int err = sherd_multiplier_local(out, bits, d);
    if (err) return err;
    pthread_mutex_lock(&blas);
    if (!unlocked) {
        locked = *out->ops;
        locked.multiply = locked_multiply;
        unlocked = out->ops;
    }
    pthread_mutex_unlock(&blas);
    out->ops = &locked;
    return SHERD_OK;
}

/* ---- one part -------------------------------------------------------------------------------- */

static bool in_a_row(const uint32_t *rows, size_t len)
{
    for (size_t i = 1; i < len; i++)
        if (rows[i] != rows[0] + i) return false;
    return true;
}

static sherd__shard shard_of(const hand *h, const uint32_t *rows, size_t len)
{
    const sherd__dataset *data = h->all->data;
    sherd__shard s;
    if (in_a_row(rows, len)) {
        sherd__dataset part = sherd__dataset_part(data, rows[0], len);
        return (sherd__shard){ part.x, part.targets };
    }
    sherd__shard_inputs(data, rows, len, h->x);
    sherd__shard_targets(data, rows, len, h->targets);
    s.x = sherd_view_c(h->x, data->x.dtype, len, data->x.cols);
    s.targets = data->targets.labels ? (sherd__targets){ .labels = h->targets }
                                     : (sherd__targets){ .values = h->targets };
    return s;
}

/* Copies the parameters for local steps, which change them; lends them otherwise. */
static void take_params(hand *h, const sherd__version *v, bool local)
{
    const double *at = v->values;
    for (size_t t = 0; t < sherd__grader_tiers(h->grader); t++) {
        size_t n = sherd__grader_count(h->grader, t);
        if (local) memcpy(sherd__grader_params(h->grader, t), at, n * sizeof *at);
        else sherd__grader_lend(h->grader, t, at);
        at += n;
    }
}

static void grade(hand *h, sherd__part *p)
{
    sherd__grading how = { .scales = p->scales, .room = p->room, .sums = h->sums };
    p->err = SHERD_OK;
    p->why = (sherd_diag){ 0 };
    for (uint32_t i = p->first; i < p->first + p->shards && !p->err; i++) {
        size_t len = p->at[i + 1] - p->at[i];
        sherd__shard s = shard_of(h, p->rows + p->at[i], len);
        if (p->local) how.local = p->local[i];
        how.fresh = i == p->first;
        take_params(h, p->params, p->local != NULL);
        p->err = sherd__grader_run(h->grader, &s, &how, &p->costs[i], &p->hits[i], &p->why);
    }
}

static void *work(void *arg)
{
    hand *h = arg;
    here *a = h->all;
    pthread_mutex_lock(&a->lock);
    while (!a->end) {
        sherd__part *p = a->first;
        if (!p) {
            pthread_cond_wait(&a->todo, &a->lock);
            continue;
        }
        if (!(a->first = p->next)) a->last = &a->first;
        pthread_mutex_unlock(&a->lock);
        grade(h, p);
        pthread_mutex_lock(&a->lock);
        for (size_t t = 0; t < sherd__grader_tiers(h->grader) && !p->err; t++)
            sherd__sums_add(p->sums, t, h->sums[t]);
        p->by = h->number;
        p->dropped = false;
        p->next = NULL;
        *a->back_last = p;
        a->back_last = &p->next;
        pthread_cond_signal(&a->done);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- the engine ------------------------------------------------------------------------------ */

static uint32_t here_workers(void *ctx)
{
    return ((here *)ctx)->count;
}

static int here_post(void *ctx, sherd__part *p, sherd_diag *d)
{
    here *a = ctx;
    (void)d;
    pthread_mutex_lock(&a->lock);
    p->next = NULL;
    *a->last = p;
    a->last = &p->next;
    a->under_way++;
    pthread_cond_signal(&a->todo);
    pthread_mutex_unlock(&a->lock);
    return SHERD_OK;
}

static int here_next(void *ctx, sherd__part **out, sherd_diag *d)
{
    here *a = ctx;
    pthread_mutex_lock(&a->lock);
    if (a->under_way == 0) {
        pthread_mutex_unlock(&a->lock);
        return sherd__fail(d, SHERD_EINVAL, NULL, "no part is in progress");
    }
    while (!a->back) pthread_cond_wait(&a->done, &a->lock);
    *out = a->back;
    if (!(a->back = a->back->next)) a->back_last = &a->back;
    a->under_way--;
    pthread_mutex_unlock(&a->lock);
    return SHERD_OK;
}

static void free_hand(hand *h)
{
    for (size_t t = 0; h->grader && h->sums && t < sherd__grader_tiers(h->grader); t++)
        sherd__free(h->sums[t]);
    sherd__free(h->sums);
    sherd__grader_free(h->grader);
    sherd__free(h->x);
    sherd__free(h->targets);
}

static void here_free(void *ctx)
{
    here *a = ctx;
    pthread_mutex_lock(&a->lock);
    a->end = true;
    pthread_cond_broadcast(&a->todo);
    pthread_mutex_unlock(&a->lock);
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->hands[i].runs) pthread_join(a->hands[i].thread, NULL);
        free_hand(&a->hands[i]);
    }
    pthread_cond_destroy(&a->todo);
    pthread_cond_destroy(&a->done);
    pthread_mutex_destroy(&a->lock);
    sherd__free(a->hands);
    sherd__free(a);
}

static const sherd__gradient_engine_ops here_ops = {
    .name = "in-process",
    .workers = here_workers,
    .post = here_post,
    .next = here_next,
    .free = here_free,
};

/* Allocates the memory of one thread and starts it. */
static int start(here *a, uint32_t number, const sherd__recipe *r, unsigned bits, sherd_diag *d)
{
    hand *h = &a->hands[number];
    size_t row, target, bytes;
    h->all = a;
    h->number = number;
    const sherd__arithmetic turns = { .multiplier = take_turns };
    int err = sherd__grader_new(&h->grader, r, a->batch, bits, a->count > 1 ? &turns : NULL, d);
    if (err) return err;
    size_t tiers = sherd__grader_tiers(h->grader);
    bool fits = sherd__mul(a->data->x.cols, sherd_dtype_size(a->data->x.dtype), &row) &&
                sherd__mul(row, a->batch, &bytes) && (h->x = sherd__alloc(bytes)) &&
                sherd__mul(a->data->width, sizeof(double), &target) &&
                sherd__mul(target, a->batch, &bytes) && (h->targets = sherd__alloc(bytes)) &&
                (h->sums = sherd__calloc(tiers, sizeof *h->sums));
    for (size_t t = 0; fits && t < tiers; t++)
        fits = (h->sums[t] = sherd__alloc_large(8 * sherd__grader_count(h->grader, t))) != NULL;
    if (!fits) return sherd__fail_memory(d, "a thread's gradients");
    h->runs = pthread_create(&h->thread, NULL, work, h) == 0;
    return h->runs ? SHERD_OK : sherd__fail(d, SHERD_ENOMEM, NULL, "cannot start a thread");
}

int sherd__gradients_here(sherd__gradient_engine *out, const sherd__recipe *r,
                          const sherd__dataset *data, const sherd__here_options *opt, sherd_diag *d)
{
    *out = (sherd__gradient_engine){ 0 };
    here *a = sherd__calloc(1, sizeof *a);
    if (!a) return sherd__fail_memory(d, "threads");
    a->data = data;
    a->batch = opt->batch;
    a->last = &a->first;
    a->back_last = &a->back;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->todo, NULL);
    pthread_cond_init(&a->done, NULL);
    a->hands = sherd__calloc(opt->threads, sizeof *a->hands);
    a->count = a->hands ? opt->threads : 0;
    int err = a->hands ? SHERD_OK : sherd__fail_memory(d, "threads");
    for (uint32_t i = 0; i < a->count && !err; i++) err = start(a, i, r, opt->bits, d);
    if (err) {
        here_free(a);
        return err;
    }
    *out = (sherd__gradient_engine){ &here_ops, a };
    return SHERD_OK;
}
