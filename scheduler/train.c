/*
 * The engine over a cluster: parts go to the loop's thread and come back from it, while the calling
 * thread waits as it does for a product (log lines, interruption). The loop is woken once all parts
 * that nodes can take are there.
 */
#include "scheduler/train.h"

#include <string.h>

#include "core/alloc.h"
#include "core/buf.h"
#include "core/diag.h"
#include "scheduler/cluster_state.h"
#include "scheduler/train_job.h"

typedef struct engine {
    sherd_cluster *cluster;
    sherd__train_job *job;
    sherd__train_options o;
    uint32_t under_way; /* parts */
    bool silent;        /* posted since the loop was woken */
} engine;

static void changed(void *ctx)
{
    sherd_cluster *c = ctx;
    pthread_mutex_lock(&c->lock);
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static uint32_t workers(void *ctx)
{
    const engine *e = ctx;
    uint32_t up, open;
    sherd__train_job_count(e->job, &up, &open);
    if (up == 0) return 1;
    /* Of n parts under way at equals the eldest becomes n - 1 updates old. */
    bool two = e->o.async && e->o.staleness_max >= 2 * (uint64_t)up - 1;
    return two ? 2 * up : up;
}

static void wake(engine *e)
{
    e->silent = false;
    uv_async_send(&e->cluster->wake);
}

static int post(void *ctx, sherd__part *p, sherd_diag *d)
{
    engine *e = ctx;
    (void)d;
    sherd__train_job_post(e->job, p);
    e->silent = true;
    if (++e->under_way >= workers(e)) wake(e);
    return SHERD_OK;
}

static void tell_traces(const engine *e)
{
    sherd__train_trace t;
    while (e->o.trace && sherd__train_job_trace(e->job, &t)) e->o.trace(e->o.trace_ctx, &t);
}

/* Why the job is over. */
static int over(const engine *e, sherd_diag *d)
{
    sherd__work w = sherd__train_job_work(e->job);
    sherd_diag why = { 0 };
    int err = SHERD_EINTERNAL;
    (void)w.ops->done(w.ctx, &err, &why);
    return sherd__fail(d, err ? err : SHERD_EINTERNAL, why.hint[0] ? why.hint : NULL, "%s",
                       why.message[0] ? why.message : "the training is over");
}

static int next(void *ctx, sherd__part **out, sherd_diag *d)
{
    engine *e = ctx;
    sherd_cluster *c = e->cluster;
    sherd__part *p;
    if (e->silent) wake(e);
    pthread_mutex_lock(&c->lock);
    while (!(p = sherd__train_job_take(e->job)) && !c->job_done)
        sherd__cluster_wait(c, CLUSTER_TICK_MS);
    sherd__cluster_hand_out(c);
    pthread_mutex_unlock(&c->lock);
    tell_traces(e);
    if (!p) return over(e, d);
    e->under_way--;
    *out = p;
    return SHERD_OK;
}

static void free_engine(void *ctx)
{
    engine *e = ctx;
    sherd_cluster *c = e->cluster;
    sherd__train_job_finish(e->job);
    uv_async_send(&c->wake);
    pthread_mutex_lock(&c->lock);
    while (!c->job_done) sherd__cluster_wait(c, CLUSTER_TICK_MS);
    sherd__cluster_hand_out(c);
    pthread_mutex_unlock(&c->lock);
    sherd__train_job_free(e->job);
    sherd__free(e);
}

static const sherd__gradient_engine_ops cluster_ops = {
    .name = "cluster",
    .workers = workers,
    .post = post,
    .next = next,
    .free = free_engine,
};

static int make_job(engine *e, sherd_diag *d)
{
    size_t tiers, counts[SHERD__RECIPE_LAYERS_MAX];
    sherd__job_options job = { 0 };
    sherd_buf text;
    sherd__buf_init(&text, SHERD__RECIPE_BYTES_MAX, 0);
    int err = sherd__recipe_tiers(e->o.recipe, &tiers, counts, d);
    if (!err) err = sherd__recipe_print(e->o.recipe, SHERD__RECIPE_NETWORK, &text);
    if (!err) {
        sherd__cluster_job_options(e->cluster, &job);
        sherd__train_job_options o = {
            .train = e->o, .text = (const char *)text.data, .text_len = text.len, .tiers = tiers,
            .counts = counts, .executor = job.executor, .id = job.id, .nodes = job.nodes,
            .owner = job.owner, .changed = changed, .changed_ctx = e->cluster,
        };
        err = sherd__train_job_new(&e->job, &o);
    }
    sherd__buf_fini(&text);
    return err ? sherd__fail(d, err, NULL, "cannot prepare the training: %s", sherd_strerror(err))
               : SHERD_OK;
}

/* Hands the job to the loop, and waits until every node was heard of. */
static int start(engine *e, sherd_diag *d)
{
    sherd_cluster *c = e->cluster;
    uint32_t up, open;
    pthread_mutex_lock(&c->lock);
    sherd__cluster_post(c, sherd__train_job_work(e->job), true, false, 0);
    for (;;) {
        sherd__train_job_count(e->job, &up, &open);
        if (open == 0 || c->job_done) break;
        sherd__cluster_wait(c, CLUSTER_TICK_MS);
    }
    bool ended = c->job_done;
    sherd__cluster_hand_out(c);
    pthread_mutex_unlock(&c->lock);
    return ended ? over(e, d) : SHERD_OK;
}

int sherd__train_engine(sherd__gradient_engine *out, sherd_cluster *c,
                        const sherd__train_options *opt, sherd_diag *d)
{
    *out = (sherd__gradient_engine){ 0 };
    engine *e = sherd__calloc(1, sizeof *e);
    if (!e) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for the training");
    e->cluster = c;
    e->o = *opt;
    int err = make_job(e, d);
    if (err) {
        sherd__free(e);
        return err;
    }
    err = start(e, d);
    if (err) {
        free_engine(e);
        return err;
    }
    *out = (sherd__gradient_engine){ &cluster_ops, e };
    return SHERD_OK;
}
