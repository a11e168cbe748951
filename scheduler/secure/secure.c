/*
 * The calling thread's side of secure aggregation: passes a request to the cluster's loop, waits as
 * for a product (log lines, interruption), and opens the sum from the answers.
 */
#include "scheduler/secure/secure.h"

#include <string.h>

#include "core/alloc.h"
#include "core/buf.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/secure.h"
#include "scheduler/cluster/caller.h"
#include "scheduler/secure/job.h"

typedef struct summer {
    sherd_cluster *cluster;
    sherd__secure_job *job;
    sherd__secure_sum sum;
    sherd__aggregate first; /* parameters at the start */
} summer;

static const sherd__fingerprint *key_of(void *ctx, uint32_t node)
{
    const sherd_cluster *c = ctx;
    return &c->nodes[node].peer.key;
}

static bool answered(void *ctx)
{
    return sherd__secure_job_answered(((const summer *)ctx)->job);
}

static int sum(void *ctx, uint64_t step, sherd__version *params, const int32_t *scales,
               int64_t *out, uint32_t *in, sherd_diag *d)
{
    summer *s = ctx;
    const uint64_t *answers[SHERD__AGGREGATE_NODES_MAX];
    s->sum.params = params;
    s->sum.scales = scales;
    s->sum.step = step;
    sherd__secure_job_ask(s->job, &s->sum);
    sherd__caller_wake(s->cluster);
    int err = sherd__caller_await(s->cluster, sherd__secure_job_work(s->job), answered, s, d);
    if (err) return err;
    const sherd__aggregate *a = &s->sum.a;
    *in = s->sum.in;
    for (uint32_t i = 0; i < a->threshold; i++)
        answers[i] = s->sum.answers + i * sherd__aggregate_piece_len(a);
    return sherd__aggregate_reveal(a, s->sum.uploads, s->sum.who, answers, out, d);
}

static void free_summer(void *ctx)
{
    summer *s = ctx;
    sherd__secure_job_finish(s->job);
    sherd__caller_finished(s->cluster);
    sherd__secure_job_free(s->job);
    sherd__free(s);
}

sherd__secure_spent sherd__secure_spent_of(const sherd__summer *s)
{
    return sherd__secure_job_spent(((const summer *)s->ctx)->job);
}

static const sherd__summer_ops cluster_ops = { .name = "secure", .sum = sum, .free = free_summer };

static int make_job(summer *s, const sherd__secure_options *opt, sherd_diag *d)
{
    size_t tiers, counts[SHERD__RECIPE_LAYERS_MAX], count = 0;
    sherd__job_options job = { 0 };
    sherd__buf text;
    sherd__buf_init(&text, SHERD__RECIPE_BYTES_MAX, 0);
    int err = sherd__recipe_tiers(opt->recipe, &tiers, counts, d);
    for (size_t t = 0; t < tiers && !err; t++)
        if (!sherd__add(count, counts[t], &count)) err = SHERD_ESHAPE;
    if (!err) err = sherd__recipe_print(opt->recipe, SHERD__RECIPE_ALL, &text);
    if (!err) {
        sherd__cluster_job_options(s->cluster, &job);
        sherd__secure_job_options o = {
            .train = *opt,
            .text = (const char *)text.data,
            .text_len = text.len,
            .tiers = tiers,
            .count = count,
            .id = job.id,
            .nodes = job.nodes,
            .owner = job.owner,
            .key = key_of,
            .key_ctx = s->cluster,
            .changed = sherd__caller_changed,
            .changed_ctx = s->cluster,
        };
        err = sherd__secure_job_new(&s->job, &o);
    }
    sherd__buf_fini(&text);
    return err ? sherd__fail_to(d, err, "prepare the training") : SHERD_OK;
}

/* Returns true if the members are known. */
static bool ready(void *ctx)
{
    summer *s = ctx;
    return sherd__secure_job_ready(s->job, &s->first);
}

int sherd__secure_open(sherd__summer *out, sherd_cluster *c, const sherd__secure_options *opt,
                       sherd_diag *d)
{
    *out = (sherd__summer){ 0 };
    if (opt->deal && opt->deal->x.rows < sherd_cluster_size(c))
        return sherd__fail(d, SHERD_EINVAL, "fewer nodes, or more examples",
                           "%u nodes for %zu examples", sherd_cluster_size(c), opt->deal->x.rows);
    summer *s = sherd__calloc(1, sizeof *s);
    if (!s) return sherd__fail_memory(d, "the training");
    s->cluster = c;
    sherd__cluster_weights_unused(c, "each node computes with its own examples");
    int err = make_job(s, opt, d);
    if (err) {
        sherd__free(s);
        return err;
    }
    err = sherd__caller_begin(c, sherd__secure_job_work(s->job), ready, s, d);
    if (err) {
        free_summer(s);
        return err;
    }
    *out = (sherd__summer){ .ops = &cluster_ops,
                            .ctx = s,
                            .parties = s->first.nodes,
                            .most = sherd_cluster_size(c),
                            .clip = opt->clip };
    return SHERD_OK;
}
