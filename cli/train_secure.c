/*
 * --aggregate secure: nodes train on data of their own, and this process gets sums of gradients. So
 * there are no examples here: the training loop goes over a stand-in of one row, a round for each
 * step and epoch, and how many examples a round had is part of the sum.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "cli/applies.h"
#include "cli/train.h"
#include "core/alloc.h"
#include "scheduler/secure.h"

#define SURVIVORS_LEAST 3

struct sherd__train_secure {
    bool simulate;
    uint32_t colluding, survivors;
    sherd__dataset stand_in;
    sherd__sumlist *sums; /* beside the checkpoints; NULL: there are none */
};

static int judge(sherd__cli *cli, sherd_diag *d)
{
    static const struct { const char *name, *why; } against[] = {
        { "shards", "each node's data are one" },
        { "async", "a sum needs all who are in it" },
        { "local-steps", "nodes give gradients" },
        { "in-process", "threads of one process hide nothing from it" },
        { "allow-drop", "who is lost is always left out" },
        { "float-gradients", "masks are of whole numbers" },
        { "check", "it trains on the examples here, and these are the nodes'" },
        { "examples", "how many a node has is its own affair" },
    };
    for (size_t i = 0; i < sizeof against / sizeof *against; i++)
        if (sherd__opt_idle(cli, against[i].name))
            return sherd__fail(d, SHERD_EINVAL, "leave one of them out",
                               "--%s and --aggregate secure do not go together: %s",
                               against[i].name, against[i].why);
    if (sherd__opt_flag(cli, "simulate")) return 0;
    if (sherd__opt_idle(cli, "data"))
        return sherd__fail(d, SHERD_EINVAL, "start nodes with --data; or --simulate, to try it out",
                           "--data and --aggregate secure: from who deals the examples nothing of "
                           "them is hidden");
    if (!sherd__opt_given(cli, "nodes"))
        return sherd__fail(d, SHERD_EINVAL, "give a node file; or -n N --simulate, to try it out",
                           "--aggregate secure needs --nodes FILE: nodes that bring their own "
                           "data");
    return 0;
}

int sherd__train_secure_judge(sherd__cli *cli, sherd_diag *d)
{
    static const char *const ours[] = { "survivors", "simulate", NULL };
    if (sherd__opt_choice(cli, "aggregate") == SHERD__AGGREGATE_SECURE) return judge(cli, d);
    const char *name = sherd__opts_idle(cli, ours);
    return name == NULL ? 0 : sherd__fail(d, SHERD_EINVAL,
                                          "add --aggregate secure, or leave it out",
                                          "--%s has no effect without --aggregate secure", name);
}

int sherd__train_secure_read(sherd__train *t, sherd_diag *d)
{
    sherd__cli *cli = t->cli;
    bool simulate = sherd__opt_flag(cli, "simulate");
    if (sherd__opt_choice(cli, "aggregate") != SHERD__AGGREGATE_SECURE) return 0;
    sherd__train_secure *s = t->secure = sherd__calloc(1, sizeof *s);
    if (s == NULL) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory to train");
    s->simulate = simulate;
    s->colluding = (uint32_t)sherd__opt_int(cli, "colluding");
    if (sherd__opt_given(cli, "survivors"))
        s->survivors = (uint32_t)sherd__opt_int(cli, "survivors");
    if (s->survivors > 0 && s->survivors < SURVIVORS_LEAST)
        return sherd__fail(d, SHERD_EINVAL, "leave it out for the least that is safe",
                           "%s %u: expected %d or more, since of a sum of two each node can take "
                           "its own part and have the other's", sherd__opt_where(cli, "survivors"),
                           s->survivors, SURVIVORS_LEAST);
    t->over.says = simulate ? "simulated secure aggregation of data dealt from here: nothing is "
                              "hidden"
                            : "secure aggregation: sums of gradients here, weights in clear at "
                              "nodes";
    return 0;
}

int sherd__train_secure_data(sherd__train *t, size_t width, sherd_diag *d)
{
    sherd__train_secure *s = t->secure;
    sherd__dataset *x = &s->stand_in;
    size_t inputs = 0;
    int err = 0;
    if (s->simulate)
        err = sherd__data_load(&t->data, &t->recipe, sherd__opt_text(t->cli, "data"), width,
                               t->seed, d);
    if (err) return err;
    if (!sherd__form_size(t->recipe.in, &inputs)) return SHERD_ESHAPE;
    x->owned[0] = sherd__calloc(inputs, sizeof(double));
    x->owned[1] = sherd__calloc(width, sizeof(double));
    if (x->owned[0] == NULL || x->owned[1] == NULL)
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory to train");
    x->x = sherd_view_c(x->owned[0], SHERD_F64, 1, inputs);
    x->width = width;
    bool values = s->simulate ? t->data.train.targets.labels == NULL : t->recipe.target_values;
    if (values) x->targets.values = x->owned[1];
    else x->targets.labels = x->owned[1];
    x->classes = values ? 0 : width;
    if (s->simulate) return 0;
    t->data.train.targets = x->targets;
    snprintf(t->data.says, sizeof t->data.says, "examples of the nodes' own");
    return 0;
}

int sherd__train_secure_trainer(sherd__train *t, sherd_diag *d)
{
    sherd__recipe r = t->recipe;
    r.batch = 0;
    r.order = SHERD__ORDER_GIVEN;
    /* Simulated nodes hide nothing, and have new keys each time: no list would know them. */
    int err = t->secure->simulate ? 0 : sherd__train_keep_sums(t, &t->secure->sums, d);
    return err ? err
               : sherd__trainer_new(&t->trainer, &r, &t->secure->stand_in, &t->data.validation,
                                    t->seed, d);
}

int sherd__train_secure_open(sherd__train *t, const sherd__gradients_options *g, sherd_diag *d)
{
    const sherd__train_secure *s = t->secure;
    sherd__summer summer;
    assert(t->over.cluster != NULL && "who is judged to train so has nodes");
    uint64_t nodes = sherd_cluster_size(t->over.cluster), batch = t->recipe.batch;
    sherd__secure_options o = { .recipe = &t->recipe, .colluding = s->colluding,
                                .survivors = s->survivors, .bits = g->bits,
                                .rows = batch / nodes + (batch % nodes != 0),
                                .deal = s->simulate ? &t->data.train : NULL,
                                .sums = s->sums };
    int err = sherd__secure_open(&summer, t->over.cluster, &o, d);
    if (err) return err;
    const sherd__train_state *state = sherd__trainer_state(t->trainer);
    err = sherd__stepper_summed(&t->stepper, g, summer, state->step_examples, state->step_cost, d);
    if (err) summer.ops->free(summer.ctx);
    return err;
}

json_t *sherd__train_secure_json(const sherd__train *t)
{
    const sherd__train_secure *s = t->secure;
    const sherd__gradients_stats *x = sherd__gradients_stats_of(&t->stepper);
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I}", "simulated", (int)s->simulate, "colluding",
                     (json_int_t)s->colluding, "updates", (json_int_t)x->updates, "parts",
                     (json_int_t)x->parts, "dropped", (json_int_t)x->dropped, "rescaled",
                     (json_int_t)x->rescaled);
}

void sherd__train_secure_free(sherd__train_secure *s)
{
    if (s == NULL) return;
    sherd__dataset_fini(&s->stand_in);
    sherd__sumlist_close(s->sums);
    sherd__free(s);
}
