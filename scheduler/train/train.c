/*
 * The gradient engine over a cluster. Parts are passed to the loop's thread and come back from it
 * while the calling thread waits as for a product (log lines, interruption). The loop is woken once
 * all parts that nodes can take have been posted.
 */
#include "scheduler/train/train.h"

#include <string.h>

#include "core/alloc.h"
#include "core/buf.h"
#include "core/clock.h"
#include "core/diag.h"
#include "scheduler/cluster/caller.h"
#include "scheduler/train/job.h"
#include "scheduler/train/shard_size.h"

#define NAMED_AFTER 20u

typedef struct engine {
    sherd_cluster *cluster;
    sherd__train_job *job;
    sherd__train_options o;
    sherd__part *back;  /* the part that the caller waited for */
    uint32_t under_way; /* number of parts */
    bool silent;        /* posted since the loop was woken */
    uint64_t back_len;  /* parts that were returned */
    uint32_t divisions;
    sherd__shard_size shards_per_task;
} engine;

static uint32_t workers(void *ctx)
{
    const engine *e = ctx;
    uint32_t up, open;
    sherd__train_job_count(e->job, &up, &open);
    if (up == 0) return 1;
    /* Of n parts in progress at equally fast nodes, the oldest becomes n - 1 updates old. */
    bool two = e->o.async && e->o.staleness_max >= 2 * (uint64_t)up - 1;
    return two ? 2 * up : up;
}

static uint32_t shards_per_task(void *ctx, uint32_t most)
{
    engine *e = ctx;
    return sherd__shard_size_shards(&e->shards_per_task, sherd__clock_s(),
                                    sherd__clock_busy_of(e->cluster->thread), e->back_len, most);
}

/* A division that changes is reported, with the nodes that caused it. A slow node that cannot be
 * given less, or not enough less, is reported after some steps. Nodes that were started here share
 * this machine: which of them is slow changes within seconds, and the user cannot mend it. */
static uint32_t divide(void *ctx, uint32_t shards, sherd__division *out)
{
    engine *e = ctx;
    sherd__train_slow slow;
    bool changed;
    uint32_t parts = sherd__train_job_divide(e->job, shards, out, &changed);
    changed = changed || ++e->divisions == NAMED_AFTER;
    for (uint32_t i = 0; changed && i < sherd_cluster_size(e->cluster); i++) {
        if (!sherd__train_job_slow(e->job, i, &slow)) continue;
        sherd__cluster_say(
            e->cluster, e->cluster->launch ? SHERD_LOG_DEBUG : SHERD_LOG_WARN,
            "%s takes %.2g times as long for a shard as the others (median): it gets "
            "%u of %u shards",
            sherd__cluster_node(e->cluster, i).name, slow.times, slow.shards, shards);
    }
    return parts;
}

static sherd__slowest slowest(void *ctx)
{
    const engine *e = ctx;
    return sherd__train_job_slowest(e->job);
}

static void wake(engine *e)
{
    e->silent = false;
    sherd__caller_wake(e->cluster);
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

/* Takes the next part that was returned. Returns false if there is none. */
static bool taken(void *ctx)
{
    engine *e = ctx;
    e->back = sherd__train_job_take(e->job);
    return e->back != NULL;
}

static int next(void *ctx, sherd__part **out, sherd_diag *d)
{
    engine *e = ctx;
    if (e->silent) wake(e);
    int err = sherd__caller_await(e->cluster, sherd__train_job_work(e->job), taken, e, d);
    tell_traces(e);
    if (err) return err;
    e->under_way--;
    e->back_len++;
    *out = e->back;
    return SHERD_OK;
}

static void free_engine(void *ctx)
{
    engine *e = ctx;
    sherd__train_job_finish(e->job);
    sherd__caller_finished(e->cluster);
    sherd__train_job_free(e->job);
    sherd__free(e);
}

static const sherd__gradient_engine_ops cluster_ops = {
    .name = "cluster",
    .workers = workers,
    .shards_per_task = shards_per_task,
    .divide = divide,
    .slowest = slowest,
    .post = post,
    .next = next,
    .free = free_engine,
};

static int make_job(engine *e, sherd_diag *d)
{
    size_t tiers, counts[SHERD__RECIPE_LAYERS_MAX];
    sherd__job_options job = { 0 };
    sherd__buf text;
    sherd__buf_init(&text, SHERD__RECIPE_BYTES_MAX, 0);
    int err = sherd__recipe_tiers(e->o.recipe, &tiers, counts, d);
    if (!err) err = sherd__recipe_print(e->o.recipe, SHERD__RECIPE_NETWORK, &text);
    if (!err) {
        sherd__nodes nodes;
        sherd__cluster_nodes(e->cluster, &nodes);
        sherd__cluster_job_options(e->cluster, &job);
        sherd__train_job_options o = {
            .train = e->o,
            .text = (const char *)text.data,
            .text_len = text.len,
            .tiers = tiers,
            .counts = counts,
            .executor = job.executor,
            .id = job.id,
            .nodes = job.nodes,
            .weights = nodes.weights,
            .owner = job.owner,
            .changed = sherd__caller_changed,
            .changed_ctx = e->cluster,
        };
        err = sherd__train_job_new(&e->job, &o);
    }
    sherd__buf_fini(&text);
    return err ? sherd__fail_to(d, err, "prepare the training") : SHERD_OK;
}

/* Returns true if every node has connected or failed and the job is not over (no node is left). */
static bool heard(void *ctx)
{
    const engine *e = ctx;
    uint32_t up, open;
    sherd__train_job_count(e->job, &up, &open);
    return open == 0 && !e->cluster->job_done;
}

int sherd__train_engine(sherd__gradient_engine *out, sherd_cluster *c,
                        const sherd__train_options *opt, sherd_diag *d)
{
    *out = (sherd__gradient_engine){ 0 };
    engine *e = sherd__calloc(1, sizeof *e);
    if (!e) return sherd__fail_memory(d, "the training");
    e->cluster = c;
    e->o = *opt;
    int err = make_job(e, d);
    if (err) {
        sherd__free(e);
        return err;
    }
    err = sherd__caller_begin(c, sherd__train_job_work(e->job), heard, e, d);
    if (err) {
        free_engine(e);
        return err;
    }
    *out = (sherd__gradient_engine){ &cluster_ops, e };
    return SHERD_OK;
}
