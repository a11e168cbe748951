/*
 * --by gradients: nodes get examples and weights in clear and send gradients. Options are checked
 * before anything is opened. Options that hide data are refused by name, since nothing is hidden
 * here.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/applies.h"
#include "cli/nodes.h"
#include "cli/train.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "matrix/fixed.h"
#include "scheduler/train/train.h"

enum { BY_PRODUCTS, BY_GRADIENTS };

struct sherd__train_by {
    sherd__train *train;
    sherd__gradients_options o; /* without network, optimiser and engine */
    bool in_process, allow_drop;
    uint32_t threads;
    sherd__jsonl trace; /* --trace; fd is -1 without it */
    bool failed;        /* a line of the trace could not be written */
};

/* ---- options --------------------------------------------------------------------------------- */

static bool by_gradients(const sherd__cli *cli)
{
    return sherd__opt_choice(cli, "by") == BY_GRADIENTS;
}

static int no_effect(sherd__cli *cli, bool gradients, sherd_diag *d)
{
    static const char *const ours[] = { "shards",      "async",       "staleness-max",
                                        "local-steps", "local-batch", "average",
                                        "in-process",  "allow-drop",  "float-gradients",
                                        "trace",       "aggregate",   "survivors",
                                        "simulate",    NULL };
    static const char *const theirs[] = { "scheme",       "spare",    "group",       "exposure",
                                          "exposure-max", "encoding", "elementwise", "rounding",
                                          "mode",         "strict",   NULL };
    bool secure = gradients && sherd__opt_choice(cli, "aggregate") == SHERD__AGGREGATE_SECURE;
    const char *name = sherd__opts_idle(cli, gradients ? theirs : ours);
    if (!name && gradients && !secure && sherd__opt_idle(cli, "colluding")) name = "colluding";
    return !name ? 0
                 : sherd__fail(d, SHERD_EINVAL,
                               gradients ? "leave it out, or train --by products"
                                         : "add --by gradients, or leave it out",
                               "--%s has no effect by %s%s", name,
                               gradients ? "gradients" : "products",
                               gradients ? ": nodes see examples and weights in clear" : "");
}

static int judge(sherd__cli *cli, sherd_diag *d)
{
    static const struct {
        const char *name, *needs, *remedy;
    } pairs[] = {
        { "staleness-max", "async", "add --async: without it no gradient misses an update" },
        { "local-batch", "local-steps",
          "add --local-steps N, or say --batch for a step's examples" },
        { "average", "local-steps", "add --local-steps N: weights are averaged between those" }
    };
    static const struct {
        const char *a, *b, *why;
    } against[] = { { "check", "async", "asynchronous updates come in another order each time" },
                    { "check", "allow-drop", "what is dropped is another gradient" },
                    { "check", "float-gradients", "floats depend on who computes them" },
                    { "bits", "float-gradients", "floats have no fixed width" },
                    { "nodes", "in-process", "threads are on this machine" },
                    { "allow-drop", "in-process", "threads are not lost" } };
    for (size_t i = 0; i < sizeof against / sizeof *against; i++)
        if (sherd__opts_clash(cli, against[i].a, against[i].b))
            return sherd__fail(d, SHERD_EINVAL, "leave one of them out",
                               "--%s and --%s do not go together: %s", against[i].a, against[i].b,
                               against[i].why);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!sherd__opt_in_effect(cli, pairs[i].needs) && sherd__opt_idle(cli, pairs[i].name))
            return sherd__fail(d, SHERD_EINVAL, pairs[i].remedy, "--%s needs --%s", pairs[i].name,
                               pairs[i].needs);
    return 0;
}

/* Peer processes have no nodes, and no update before all have sent theirs. An option for hidden
 * gradients is refused from any source instead of forgotten, since the user relies on it. */
static int judge_together(sherd__cli *cli, sherd_diag *d)
{
    static const char *const theirs[] = { "nodes",      "local",      "async",
                                          "in-process", "allow-drop", "float-gradients",
                                          "check",      "aggregate",  NULL };
    const char *name = NULL;
    if (!by_gradients(cli))
        return sherd__fail(d, SHERD_EINVAL, "add --by gradients",
                           "processes that are equals train by gradients only");
    if (sherd__opt_choice(cli, "aggregate") == SHERD__AGGREGATE_SECURE) name = "aggregate";
    if (!name) name = sherd__opts_idle(cli, theirs);
    return !name ? 0
                 : sherd__fail(d, SHERD_EINVAL, "leave it out",
                               "--%s has no meaning among processes that are equals", name);
}

int sherd__train_by_judge(sherd__cli *cli, sherd_diag *d)
{
    bool gradients = by_gradients(cli),
         nodes = sherd__opt_given(cli, "local") || sherd__opt_given(cli, "nodes");
    if (!gradients && !nodes) (void)sherd__opt_idle(cli, "by"); /* on argv it needs nodes */
    int err = no_effect(cli, gradients, d);
    if (!err && sherd__train_others()) err = judge_together(cli, d);
    if (err || !gradients) return err;
    err = sherd__train_secure_judge(cli, d);
    if (!err) err = sherd__train_allreduce_judge(cli, d);
    return err ? err : judge(cli, d);
}

int sherd__train_by_read(sherd__train *t, sherd_diag *d)
{
    sherd__cli *cli = t->cli;
    if (!by_gradients(cli)) return 0;
    sherd__train_by *b = t->by = sherd__calloc(1, sizeof *b);
    if (!b) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory to train");
    b->train = t;
    b->trace.fd = -1;
    b->in_process = sherd__opt_flag(cli, "in-process") || sherd__train_others();
    b->allow_drop = sherd__opt_flag(cli, "allow-drop");
    b->threads = sherd__opt_given(cli, "local") ? (uint32_t)sherd__opt_int(cli, "local")
                                                : sherd__cpu_usable();
    b->o.shards = sherd__opt_given(cli, "shards") ? (uint32_t)sherd__opt_int(cli, "shards")
                                                  : SHERD__SHARDS_DEFAULT;
    b->o.async = sherd__opt_flag(cli, "async");
    b->o.staleness_max = sherd__opt_given(cli, "staleness-max")
                             ? (uint64_t)sherd__opt_int(cli, "staleness-max")
                             : UINT64_MAX;
    if (sherd__opt_given(cli, "local-steps"))
        b->o.local_steps = (uint64_t)sherd__opt_int(cli, "local-steps");
    if (sherd__opt_given(cli, "local-batch"))
        b->o.local_batch = (uint64_t)sherd__opt_int(cli, "local-batch");
    b->o.weighted = sherd__opt_choice(cli, "average") == 1;
    b->o.bits = sherd__opt_flag(cli, "float-gradients") ? 0
                : sherd__opt_given(cli, "bits")         ? (unsigned)sherd__opt_int(cli, "bits")
                                                        : SHERD__FIXED_BITS;
    t->over.here = true;
    t->over.nodes = !b->in_process;
    if (sherd__train_others())
        t->over.says = "by all processes, which see examples and weights in clear";
    t->over.bits = b->o.bits;
    int err = sherd__train_secure_read(t, d);
    return err ? err : sherd__train_allreduce_read(t, d);
}

/* ---- the trace ------------------------------------------------------------------------------- */

static void trace_line(sherd__train_by *b, json_t *o)
{
    if (sherd__jsonl_add(&b->trace, o, 9, NULL)) b->failed = true;
}

static void on_trace(void *ctx, const sherd__train_trace *x)
{
    json_t *o = json_pack("{s:s, s:I, s:s, s:I, s:f, s:f}", "event", "pass", "version",
                          (json_int_t)x->version, "node", x->node, "shards", (json_int_t)x->shards,
                          "asked", x->asked, "answered", x->answered);
    json_object_set_new(o, "forward", json_real(x->forward));
    json_object_set_new(o, "last_params", json_real(x->last_params));
    json_object_set_new(o, "top_left", json_real(x->top_left));
    json_object_set_new(o, "lowest_backward", json_real(x->lowest_backward));
    json_object_set_new(o, "computed", json_real(x->computed));
    trace_line(ctx, o);
}

static void on_update(void *ctx, const sherd__gradients_update *u)
{
    trace_line(ctx, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "event", "update", "version",
                              (json_int_t)u->version, "staleness", (json_int_t)u->staleness, "by",
                              (json_int_t)u->by, "parts", (json_int_t)u->parts, "dropped",
                              (json_int_t)u->dropped, "examples", (json_int_t)u->examples));
}

/* ---- opening --------------------------------------------------------------------------------- */

static void fill(const sherd__train *t, sherd__gradients_options *o, sherd__trainer *trainer)
{
    *o = t->by->o;
    o->recipe = &t->recipe;
    o->data = &t->data.train;
    o->network = sherd__trainer_network(trainer);
    o->optimiser = sherd__trainer_optimiser(trainer);
}

uint32_t sherd__train_by_threads(const sherd__train *t)
{
    return t->by && t->by->in_process ? t->by->threads : 0;
}

static int threads(sherd__gradient_engine *e, const sherd__train *t, unsigned count, sherd_diag *d)
{
    size_t batch = sherd__trainer_order(t->trainer)->batch;
    return sherd__gradients_here(e, &t->recipe, &t->data.train,
                                 sherd__shard_most(batch, t->by->o.shards), t->by->o.bits, count,
                                 d);
}

static int together(sherd__gradient_engine *e, const sherd__train *t, sherd_diag *d)
{
    sherd__gradient_engine own;
    int err = threads(&own, t, 1, d);
    if (err) return err;
    err = sherd__gradients_among(e, sherd__train_others(), own, d);
    if (err) sherd__gradient_engine_free(own);
    return err;
}

static int over_nodes(sherd__gradient_engine *e, const sherd__train *t, sherd_diag *d)
{
    sherd__train_by *b = t->by;
    uint32_t nodes = sherd_cluster_size(t->over.cluster);
    size_t batch = sherd__trainer_order(t->trainer)->batch;
    if (nodes > b->o.shards && nodes > 1)
        sherd__cli_warn(t->cli,
                        "%" PRIu32 " shards for %" PRIu32 " nodes: some have nothing to "
                        "do; --shards %" PRIu32 " gives each one",
                        b->o.shards, nodes, nodes);
    sherd__train_options o = { .recipe = &t->recipe,
                               .data = &t->data.train,
                               .shards = b->o.shards,
                               .batch = batch,
                               .bits = b->o.bits,
                               .allow_drop = b->allow_drop,
                               .async = b->o.async,
                               .staleness_max = b->o.staleness_max,
                               .recurring = t->recipe.order == SHERD__ORDER_GIVEN ||
                                            t->recipe.order == SHERD__ORDER_BATCHES,
                               .trace = b->trace.fd >= 0 ? on_trace : NULL,
                               .trace_ctx = b };
    return sherd__train_engine(e, t->over.cluster, &o, d);
}

int sherd__train_by_suits(const sherd__train *t, sherd_diag *d)
{
    const sherd__collective *others = sherd__train_others();
    const char *what = others ? "processes" : t->over.nodes ? "nodes" : "threads";
    uint32_t many = 0;
    int err = 0;
    if (!t->by || t->secure) return 0;
    size_t batch = sherd__trainer_order(t->trainer)->batch;
    if (others) many = others->size;
    else if (t->over.nodes) err = sherd__nodes_count(&many, NULL, t->cli, d);
    else if (sherd__opt_given(t->cli, "local")) many = t->by->threads;
    if (err || many <= batch) return err;
    return sherd__fail(d, SHERD_EINVAL, "start fewer, or take a larger --batch",
                       "%" PRIu32 " %s for steps of %zu examples", many, what, batch);
}

int sherd__train_by_open(sherd__train *t, sherd_diag *d)
{
    sherd__train_by *b = t->by;
    const char *path = sherd__opt_text(t->cli, "trace");
    sherd__gradients_options o;
    int err = path ? sherd__jsonl_open(&b->trace, path, false, d) : 0;
    if (err) return err;
    fill(t, &o, t->trainer);
    if (b->trace.fd >= 0) {
        o.note = on_update;
        o.note_ctx = b;
    }
    if (t->secure) return sherd__train_secure_open(t, &o, d);
    if (t->circle) return sherd__train_allreduce_open(t, &o, b->allow_drop, d);
    err = sherd__train_others() ? together(&o.engine, t, d)
          : b->in_process       ? threads(&o.engine, t, b->threads, d)
                                : over_nodes(&o.engine, t, d);
    if (err) return err;
    err = sherd__stepper_gradients(&t->stepper, &o, d);
    if (err) sherd__gradient_engine_free(o.engine);
    return err;
}

int sherd__train_by_beside(const sherd__train *t, sherd__trainer *trainer, sherd__stepper *out,
                           sherd_diag *d)
{
    sherd__gradients_options o;
    sherd__network *to = sherd__trainer_network(trainer);
    const double *from = sherd__network_gradient(sherd__trainer_network(t->trainer));
    fill(t, &o, trainer);
    for (size_t i = 0, at = 0; i < sherd__network_len(to); i++) { /* determines the scales */
        const sherd__layer *l = sherd__network_layer(to, i);
        size_t n = l->rows * l->cols + l->cols;
        if (n) memcpy(l->weights_gradient, from + at, n * sizeof *from);
        at += n;
    }
    int err = threads(&o.engine, t, 1, d);
    if (err) return err;
    err = sherd__stepper_gradients(out, &o, d);
    if (err) sherd__gradient_engine_free(o.engine);
    return err;
}

/* ---- output ---------------------------------------------------------------------------------- */

void sherd__train_by_name(const sherd__train *t, char *out, size_t size)
{
    const sherd__gradients_options *o = &t->by->o;
    char local[80] = "", bits[40] = "float64";
    if (o->bits) snprintf(bits, sizeof bits, "fixed point of %u bits", o->bits);
    if (o->local_steps)
        snprintf(local, sizeof local, ", %" PRIu64 " local steps of %" PRIu64 "%s", o->local_steps,
                 o->local_batch, o->weighted ? ", weighted" : "");
    snprintf(out, size, "gradients of %" PRIu32 " shards, %s%s%s", o->shards, bits, local,
             o->async ? ", async" : "");
}

static double mean_staleness(const sherd__gradients_stats *s)
{
    return s->parts ? (double)s->staleness_sum / (double)s->parts : 0;
}

void sherd__train_by_print(const sherd__train *t)
{
    const sherd__gradients_stats *s = sherd__gradients_stats_of(&t->stepper);
    printf("by gradients: %" PRIu64 " update%s", s->updates, s->updates == 1 ? "" : "s");
    if (sherd__train_others())
        printf(", among %" PRIu32 " process%s by %s", sherd__train_others()->size,
               sherd__train_others()->size == 1 ? "" : "es", sherd__train_others()->name);
    else if (t->by->in_process)
        printf(", %" PRIu32 " thread%s", t->by->threads, t->by->threads == 1 ? "" : "s");
    if (t->circle) sherd__train_allreduce_print(t);
    if (t->by->o.async)
        printf(", staleness %.2f on average, %" PRIu64 " at most", mean_staleness(s),
               s->staleness_most);
    if (s->dropped) printf("; %" PRIu64 " parts of lost nodes did not count", s->dropped);
    printf("\n");
}

json_t *sherd__train_by_json(const sherd__train *t)
{
    const sherd__gradients_options *o = &t->by->o;
    const sherd__gradients_stats *s = sherd__gradients_stats_of(&t->stepper);
    json_t *j = json_pack("{s:I, s:b, s:b, s:I, s:I}", "shards", (json_int_t)o->shards, "async",
                          (int)o->async, "in_process",
                          (int)(t->by->in_process && !sherd__train_others()), "local_steps",
                          (json_int_t)o->local_steps, "updates", (json_int_t)s->updates);
    if (sherd__train_others())
        json_object_set_new(j, "among",
                            json_pack("{s:s, s:I}", "by", sherd__train_others()->name, "processes",
                                      (json_int_t)sherd__train_others()->size));
    if (t->circle) json_object_set_new(j, "circle", sherd__train_allreduce_json(t));
    json_object_set_new(j, "staleness_mean", json_real(mean_staleness(s)));
    json_object_set_new(j, "staleness_most", json_integer((json_int_t)s->staleness_most));
    json_object_set_new(j, "dropped", json_integer((json_int_t)s->dropped));
    json_object_set_new(j, "rescaled", json_integer((json_int_t)s->rescaled));
    return j;
}

int sherd__train_by_end(sherd__train *t, int err, sherd_diag *d)
{
    if (!t->by || t->by->trace.fd < 0) return err;
    int e = sherd__jsonl_sync(&t->by->trace, err ? NULL : d);
    if (!e && t->by->failed)
        e = sherd__fail(err ? NULL : d, SHERD_EIO, NULL, "%s: cannot write", t->by->trace.path);
    return err ? err : e;
}

void sherd__train_by_free(sherd__train_by *b)
{
    if (!b) return;
    sherd__jsonl_close(&b->trace);
    sherd__free(b);
}
