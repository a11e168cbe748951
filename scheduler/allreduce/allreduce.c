/*
 * The calling thread's side of an all-reduce group: passes a step, or a request for the state, to
 * the cluster's loop and waits as for a product (log lines, interruption).
 */
#include "scheduler/allreduce/allreduce.h"

#include "core/alloc.h"
#include "core/buf.h"
#include "core/diag.h"
#include "core/rand.h"
#include "scheduler/allreduce/job.h"
#include "scheduler/cluster/caller.h"

typedef struct leader {
    sherd_cluster *cluster;
    sherd__allreduce_job *job;
    sherd__allreduce_ask ask;
} leader;

static const sherd__peer *peer_of(void *ctx, uint32_t node)
{
    const sherd_cluster *c = ctx;
    return &c->nodes[node].peer;
}

static bool answered(void *ctx)
{
    return sherd__allreduce_job_answered(((const leader *)ctx)->job);
}

static int ask(leader *l, sherd_diag *d)
{
    sherd__allreduce_job_ask(l->job, &l->ask);
    sherd__caller_wake(l->cluster);
    int err = sherd__caller_await(l->cluster, sherd__allreduce_job_work(l->job), answered, l, d);
    if (err) return err;
    return l->ask.err ? sherd__fail(d, l->ask.err, NULL, "%s", l->ask.why.message) : SHERD_OK;
}

static int step(void *ctx, sherd__allreduce_step *s, sherd_diag *d)
{
    leader *l = ctx;
    l->ask = (sherd__allreduce_ask){ .step = s };
    return ask(l, d);
}

static int state(void *ctx, double *out, size_t len, sherd_diag *d)
{
    leader *l = ctx;
    l->ask = (sherd__allreduce_ask){ .state = out, .len = len };
    return ask(l, d);
}

static void free_leader(void *ctx)
{
    leader *l = ctx;
    sherd__allreduce_job_finish(l->job);
    sherd__caller_finished(l->cluster);
    sherd__allreduce_job_free(l->job);
    sherd__free(l);
}

static const sherd__allreduce_ops cluster_ops = {
    .name = "allreduce", .step = step, .state = state, .free = free_leader
};

static int make_job(leader *l, const sherd__allreduce_options *opt, sherd_diag *d)
{
    size_t tiers, counts[SHERD__RECIPE_LAYERS_MAX];
    sherd__job_options job = { 0 };
    sherd__buf text;
    sherd__entropy os = sherd__entropy_os();
    bool fresh = opt->optimiser->steps == 0; /* all state except the parameters is 0 then */
    sherd__version *v = sherd__version_new(fresh ? opt->optimiser->count
                                                 : sherd__allreduce_state_len(opt->optimiser),
                                           0);
    sherd__buf_init(&text, SHERD__RECIPE_BYTES_MAX, 0);
    int err = v ? sherd__recipe_tiers(opt->recipe, &tiers, counts, d) : SHERD_ENOMEM;
    if (!err) err = sherd__recipe_print(opt->recipe, SHERD__RECIPE_NETWORK, &text);
    if (!err) {
        if (fresh) sherd__network_get(opt->network, v->values);
        else sherd__allreduce_state_of(opt->network, opt->optimiser, v->values);
        sherd__cluster_job_options(l->cluster, &job);
        sherd__allreduce_job_options o = {
            .train = *opt,
            .text = (const char *)text.data,
            .text_len = text.len,
            .tiers = tiers,
            .state = v,
            .id = job.id,
            .nodes = job.nodes,
            .owner = job.owner,
            .peer = peer_of,
            .peer_ctx = l->cluster,
            .changed = sherd__caller_changed,
            .changed_ctx = l->cluster,
        };
        os.fill(os.ctx, o.names, sizeof o.names);
        if (!o.train.shards) o.train.shards = SHERD__SHARDS_DEFAULT;
        err = sherd__allreduce_job_new(&l->job, &o);
    }
    sherd__version_release(v);
    sherd__buf_fini(&text);
    return err ? sherd__fail_to(d, err, "prepare the training") : SHERD_OK;
}

/* Returns true if the group is connected. */
static bool ready(void *ctx)
{
    return sherd__allreduce_job_ready(((const leader *)ctx)->job);
}

int sherd__allreduce_open(sherd__allreduce_lead *out, sherd_cluster *c,
                          const sherd__allreduce_options *opt, sherd_diag *d)
{
    *out = (sherd__allreduce_lead){ 0 };
    if (sherd_cluster_size(c) > SHERD__ALLREDUCE_MOST)
        return sherd__fail(d, SHERD_EINVAL, "fewer nodes, or --aggregate plain",
                           "%u nodes: an all-reduce group has at most %d", sherd_cluster_size(c),
                           SHERD__ALLREDUCE_MOST);
    leader *l = sherd__calloc(1, sizeof *l);
    if (!l) return sherd__fail_memory(d, "the training");
    l->cluster = c;
    sherd__cluster_weights_unused(c, "the members of an all-reduce group have equal parts");
    int err = make_job(l, opt, d);
    if (err) {
        sherd__free(l);
        return err;
    }
    err = sherd__caller_begin(c, sherd__allreduce_job_work(l->job), ready, l, d);
    if (err) {
        free_leader(l);
        return err;
    }
    *out = (sherd__allreduce_lead){ &cluster_ops, l };
    return SHERD_OK;
}

sherd__allreduce_link_bytes sherd__allreduce_links_of(const sherd__allreduce_lead *lead,
                                                      uint32_t node)
{
    return sherd__allreduce_job_links(((const leader *)lead->ctx)->job, node);
}

void sherd__allreduce_count(const sherd__allreduce_lead *lead, sherd__allreduce_stats *out)
{
    sherd__allreduce_job_count(((const leader *)lead->ctx)->job, out);
}
