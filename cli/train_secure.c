/*
 * --aggregate secure: nodes train on their own data, and this process gets sums of gradients. It
 * has no examples: the training loop runs over a placeholder with one row for each place of an
 * epoch at a node (learn/secure.h). All rows are the same zeros.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/applies.h"
#include "cli/nodes.h"
#include "cli/train.h"
#include "core/alloc.h"
#include "crypto/privacy.h"
#include "node/secure/policy.h"
#include "scheduler/secure/secure.h"

#define SURVIVORS_LEAST 3
#define VALIDATION_BATCH 256u

struct sherd__train_secure {
    bool simulate;
    uint32_t colluding, survivors;
    double clip, noise, delta;
    uint64_t rows, places; /* of each node: rows in a step, places in an epoch */
    size_t stand_in_batch;
    sherd__summer summer; /* of the stepper, once it is open */
    sherd__dataset stand_in;
    sherd__sumlist *sums; /* in the folder of checkpoints; NULL: there is no list */
};

static int judge(sherd__cli *cli, sherd_diag *d)
{
    static const struct {
        const char *name, *why;
    } against[] = {
        { "shards", "each node's data are one" },
        { "async", "a sum needs all who are in it" },
        { "local-steps", "nodes give gradients" },
        { "in-process", "threads of one process hide nothing from it" },
        { "allow-drop", "who is lost is always left out" },
        { "float-gradients", "masks are of whole numbers" },
        { "check", "it trains on the examples here, and these are the nodes'" },
        { "bits", "nodes compute gradients in float64" },
    };
    for (size_t i = 0; i < sizeof against / sizeof *against; i++)
        if (sherd__opt_idle(cli, against[i].name))
            return sherd__fail(d, SHERD_EINVAL, "leave one of them out",
                               "--%s and --aggregate secure do not go together: %s",
                               against[i].name, against[i].why);
    if (sherd__opt_given(cli, "noise") && !sherd__opt_given(cli, "clip"))
        return sherd__fail(d, SHERD_EINVAL,
                           "add --clip C, a typical norm of one example's gradient",
                           "--noise needs --clip: noise covers what one example can change");
    if (sherd__opt_flag(cli, "simulate")) return 0;
    if (sherd__opt_idle(cli, "data"))
        return sherd__fail(d, SHERD_EINVAL, "start nodes with --data; or --simulate, to try it out",
                           "--data and --aggregate secure: from who deals the examples nothing of "
                           "them is hidden");
    if (!sherd__opt_given(cli, "nodes"))
        return sherd__fail(d, SHERD_EINVAL, "give a node file; or -n N --simulate, to try it out",
                           "--aggregate secure needs --nodes FILE: nodes that bring their own "
                           "data");
    if (!sherd__opt_given(cli, "examples"))
        return sherd__fail(d, SHERD_EINVAL,
                           "give the number of the node that has most; others are "
                           "filled up with empty places",
                           "--aggregate secure needs --examples N: "
                           "how many examples of each node an epoch goes over, the same for all");
    return 0;
}

int sherd__train_secure_judge(sherd__cli *cli, sherd_diag *d)
{
    static const char *const ours[] = { "survivors", "simulate", "clip", "noise", "delta", NULL };
    if (sherd__opt_choice(cli, "aggregate") == SHERD__AGGREGATE_SECURE) return judge(cli, d);
    const char *name = sherd__opts_idle(cli, ours);
    return !name ? 0
                 : sherd__fail(d, SHERD_EINVAL, "add --aggregate secure, or leave it out",
                               "--%s has no effect without --aggregate secure", name);
}

int sherd__train_secure_read(sherd__train *t, sherd_diag *d)
{
    sherd__cli *cli = t->cli;
    bool simulate = sherd__opt_flag(cli, "simulate");
    if (sherd__opt_choice(cli, "aggregate") != SHERD__AGGREGATE_SECURE) return 0;
    sherd__train_secure *s = t->secure = sherd__calloc(1, sizeof *s);
    if (!s) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory to train");
    s->simulate = simulate;
    s->colluding = (uint32_t)sherd__opt_int(cli, "colluding");
    if (sherd__opt_given(cli, "clip")) s->clip = sherd__opt_real(cli, "clip");
    if (sherd__opt_given(cli, "noise")) s->noise = sherd__opt_real(cli, "noise");
    s->delta = sherd__opt_real(cli, "delta");
    if (sherd__opt_given(cli, "survivors"))
        s->survivors = (uint32_t)sherd__opt_int(cli, "survivors");
    if (s->survivors > 0 && s->survivors < SURVIVORS_LEAST)
        return sherd__fail(d, SHERD_EINVAL, "leave it out for the least that is safe",
                           "%s %u: expected %d or more, since of a sum of two each node can take "
                           "its own part and have the other's",
                           sherd__opt_where(cli, "survivors"), s->survivors, SURVIVORS_LEAST);
    t->over.bits = 0;
    t->over.says = simulate ? "simulated secure aggregation of data dealt from here: nothing is "
                              "hidden"
                            : "secure aggregation: sums of gradients here, weights in clear at "
                              "nodes";
    return 0;
}

/* Warns that nodes refuse rounds with fewer rows than --min-rows or more than --max-rows, which
 * only they know. */
static void warn_rows(const sherd__train *t)
{
    const sherd__train_secure *s = t->secure;
    const sherd__policy usual = SHERD__POLICY_DEFAULT;
    uint64_t last = s->places % s->rows;
    if (!s->simulate && s->rows > usual.rows_max)
        sherd__cli_warn(t->cli,
                        "a round goes over %" PRIu64 " places of each node: nodes with the "
                        "preset --max-rows (%" PRIu64 ") refuse this training; choose a smaller "
                        "--batch",
                        s->rows, usual.rows_max);
    if (s->simulate || last == 0 || last >= usual.rows_min || s->rows < usual.rows_min) return;
    sherd__cli_warn(t->cli,
                    "the last round of an epoch goes over %" PRIu64 " of the %" PRIu64
                    " places of each node: nodes with the preset --min-rows (%" PRIu64 ") refuse "
                    "this training; --examples %" PRIu64 " adds empty places, or choose another "
                    "--batch",
                    last, s->places, usual.rows_min, s->places - last + usual.rows_min);
}

/* Computes places and rounds from options and the number of nodes only. */
static int plan_places(sherd__train *t, sherd_diag *d)
{
    sherd__train_secure *s = t->secure;
    uint32_t nodes = 0;
    int err = sherd__nodes_count(&nodes, NULL, t->cli, d);
    if (err) return err;
    uint64_t batch = t->recipe.batch, all = t->data.train.x.rows;
    s->places = s->simulate ? all / nodes + (all % nodes != 0)
                            : (uint64_t)sherd__opt_int(t->cli, "examples");
    uint64_t rows = batch / nodes + (batch % nodes != 0);
    s->rows = rows == 0 || rows > s->places ? s->places : rows;
    warn_rows(t);
    return SHERD_OK;
}

/* Makes a data set that repeats one row of zeros. It has as many rows as the loop needs for an
 * epoch with one step per round, in batches that validation can use. */
static int make_stand_in(sherd__train *t, size_t width, sherd_diag *d)
{
    sherd__train_secure *s = t->secure;
    sherd__dataset *x = &s->stand_in;
    size_t inputs = 0, steps = (size_t)((s->places + s->rows - 1) / s->rows);
    s->stand_in_batch = s->rows < VALIDATION_BATCH ? (size_t)s->rows : VALIDATION_BATCH;
    if (steps >= UINT32_MAX / s->stand_in_batch) s->stand_in_batch = 1;
    if (!sherd__form_size(t->recipe.in, &inputs)) return SHERD_ESHAPE;
    x->owned[0] = sherd__calloc(inputs, sizeof(double));
    x->owned[1] = sherd__calloc(width, sizeof(double));
    if (!x->owned[0] || !x->owned[1])
        return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory to train");
    x->x = sherd_view_c(x->owned[0], SHERD_F64, 1, inputs);
    x->x.rows = steps * s->stand_in_batch;
    x->x.row_stride = 0;
    x->width = width;
    bool values = s->simulate ? !t->data.train.targets.labels : t->recipe.target_values;
    if (values) x->targets.values = x->owned[1];
    else x->targets.labels = x->owned[1];
    x->classes = values ? 0 : width;
    return SHERD_OK;
}

int sherd__train_secure_data(sherd__train *t, size_t width, sherd_diag *d)
{
    sherd__train_secure *s = t->secure;
    int err = 0;
    if (s->simulate)
        err = sherd__data_load(&t->data, &t->recipe, sherd__opt_text(t->cli, "data"), width,
                               t->seed, d);
    if (!err) err = plan_places(t, d);
    if (!err) err = make_stand_in(t, width, d);
    if (err || s->simulate) return err;
    t->data.train.targets = s->stand_in.targets;
    snprintf(t->data.says, sizeof t->data.says, "examples of the nodes' own");
    return 0;
}

int sherd__train_secure_trainer(sherd__train *t, sherd_diag *d)
{
    sherd__recipe r = t->recipe;
    r.batch = t->secure->stand_in_batch;
    r.order = SHERD__ORDER_GIVEN;
    /* Simulated nodes hide nothing and have new keys each time, so no list can identify them. */
    int err = t->secure->simulate ? 0 : sherd__train_keep_sums(t, &t->secure->sums, d);
    return err ? err
               : sherd__trainer_new(&t->trainer, &r, &t->secure->stand_in, &t->data.validation,
                                    t->seed, d);
}

int sherd__train_secure_open(sherd__train *t, const sherd__gradients_options *g, sherd_diag *d)
{
    sherd__train_secure *s = t->secure;
    assert(t->over.cluster && "who is judged to train so has nodes");
    sherd__secure_options o = { .recipe = &t->recipe,
                                .colluding = s->colluding,
                                .survivors = s->survivors,
                                .rows = s->rows,
                                .places = s->places,
                                .clip = s->clip,
                                .noise = s->noise,
                                .deal = s->simulate ? &t->data.train : NULL,
                                .sums = s->sums };
    int err = sherd__secure_open(&s->summer, t->over.cluster, &o, d);
    if (err) return err;
    const sherd__train_state *state = sherd__trainer_state(t->trainer);
    err = sherd__stepper_summed(&t->stepper, g, s->summer, state->step_examples, state->step_cost,
                                d);
    if (err) s->summer.ops->free(s->summer.ctx);
    return err;
}

void sherd__train_secure_arithmetic(const sherd__train *t, char *out, size_t size)
{
    const sherd__train_secure *s = t->secure;
    int at = snprintf(out, size,
                      "secure sums of gradients, float64, %" PRIu64 " of %" PRIu64
                      " examples of each node",
                      s->rows, s->places);
    if (s->clip > 0 && at > 0 && (size_t)at < size)
        snprintf(out + at, size - (size_t)at, ", clipped at %.17g", s->clip);
}

sherd__train_privacy sherd__train_secure_privacy(const sherd__train *t)
{
    const sherd__train_secure *s = t->secure;
    if (!s || !t->stepper.ops) return (sherd__train_privacy){ NAN, NAN, 0 };
    sherd__secure_spent spent = sherd__secure_spent_of(&s->summer);
    double epsilon = sherd__privacy_epsilon(spent.rho, s->delta);
    return (sherd__train_privacy){ isfinite(epsilon) ? epsilon : NAN, s->delta, spent.rounds };
}

void sherd__train_secure_print(const sherd__train *t)
{
    const sherd__train_privacy p = sherd__train_secure_privacy(t);
    if (isfinite(p.epsilon))
        printf("privacy: epsilon %.4g at delta %g for an example that is present or not, after "
               "%" PRIu64 " round%s (noise %g, clipped at %g)\n",
               p.epsilon, p.delta, p.rounds, p.rounds == 1 ? "" : "s", t->secure->noise,
               t->secure->clip);
    else printf("privacy: no bound, since rounds had no noise (--clip, --noise)\n");
}

json_t *sherd__train_secure_json(const sherd__train *t)
{
    const sherd__train_secure *s = t->secure;
    const sherd__gradients_stats *x = sherd__gradients_stats_of(&t->stepper);
    const sherd__train_privacy p = sherd__train_secure_privacy(t);
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:f}",
                     "simulated", (int)s->simulate, "colluding", (json_int_t)s->colluding,
                     "updates", (json_int_t)x->updates, "parts", (json_int_t)x->parts, "dropped",
                     (json_int_t)x->dropped, "rescaled", (json_int_t)x->rescaled, "rounds",
                     (json_int_t)p.rounds, "rows", (json_int_t)s->rows, "places",
                     (json_int_t)s->places, "clip", s->clip, "noise", s->noise, "epsilon",
                     isfinite(p.epsilon) ? json_real(p.epsilon) : json_null(), "delta", s->delta);
}

void sherd__train_secure_free(sherd__train_secure *s)
{
    if (!s) return;
    sherd__dataset_fini(&s->stand_in);
    sherd__sumlist_close(s->sums);
    sherd__free(s);
}
