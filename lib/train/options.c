/*
 * Options of a training: defaults, and combinations that contradict each other. Options that a way
 * of training does not use have no effect, except where their user would believe that data are
 * hidden or results compared. Messages name options as the command spells them.
 */
#include <assert.h>
#include <inttypes.h>

#include "core/diag.h"
#include "core/options.h"
#include "lib/train/training.h"
#include "matrix/fixed.h"

#define DELTA 1e-6
#define BITS_LEAST 2u
#define BITS_MOST 26u
#define SURVIVORS_LEAST 3u

static_assert(SHERD_TRAIN_SHARDS_MAX == SHERD__SHARDS_MAX, "one limit");

/* A reason to refuse options. */
typedef struct rule {
    bool breaks;
    const char *a, *b, *why;
} rule;

#define RULES(list) (list), sizeof(list) / sizeof *(list)

/* a and b exclude each other. */
static int apart(const rule *rules, size_t len, sherd_diag *d)
{
    for (size_t i = 0; i < len; i++)
        if (rules[i].breaks)
            return sherd__fail(d, SHERD_EINVAL, "leave one of them out",
                               "%s and %s cannot be combined: %s", rules[i].a, rules[i].b,
                               rules[i].why);
    return SHERD_OK;
}

/* a needs b. */
static int needs(const rule *rules, size_t len, sherd_diag *d)
{
    for (size_t i = 0; i < len; i++)
        if (rules[i].breaks)
            return sherd__fail(d, SHERD_EINVAL, rules[i].why, "%s needs %s", rules[i].a,
                               rules[i].b);
    return SHERD_OK;
}

static int check_secure(const sherd_train_options *o, bool data, sherd_diag *d)
{
    static const char secure[] = "--aggregate secure";
    const rule against[] = {
        { o->shards > 0, "--shards", secure, "the data of each node are one shard" },
        { o->async, "--async", secure, "a sum needs all of its nodes" },
        { o->local_steps > 0, "--local-steps", secure, "nodes send gradients" },
        { o->allow_drop, "--allow-drop", secure, "a node that is lost is always left out" },
        { o->floats, "--float-gradients", secure, "masks are integers" },
        { o->check, "--check", secure, "this process does not have the nodes' examples" },
        { o->bits > 0, "--bits", secure, "nodes compute gradients in float64" },
        { data && !o->simulate, "--data", secure,
          "examples that this machine sends to the nodes are not hidden" },
    };
    const rule wants[] = {
        { o->nodes == 0, secure, "nodes",
          "give nodes that have their own data, or nodes and --simulate, to try it out" },
        { o->noise > 0 && !(o->clip > 0), "--noise",
          "--clip: noise covers what one example can "
          "change",
          "add --clip C, a typical norm of one example's gradient" },
        { o->examples == 0 && !o->simulate, secure,
          "--examples N: how many examples of each node an epoch goes over, the same for all",
          "give the largest number that a node has; the others are padded with empty places" },
    };
    int err = apart(RULES(against), d);
    if (!err) err = needs(RULES(wants), d);
    if (!err && o->nodes < SURVIVORS_LEAST)
        err = sherd__fail(d, SHERD_EFEWNODES,
                          o->simulate ? "use -n 3 or more"
                                      : "list more nodes that have data of their own",
                          "%s needs %u nodes or more, and there %s %u", secure, SURVIVORS_LEAST,
                          o->nodes == 1 ? "is" : "are", o->nodes);
    if (!err && !(o->clip >= 0 && o->noise >= 0 && o->noise <= SHERD_TRAIN_NOISE_MAX &&
                  o->delta >= 0 && o->delta < 1))
        err = sherd__fail(d, SHERD_EINVAL, NULL,
                          "clip %g, noise %g, delta %g: expected a norm, 0 to %g, and a "
                          "probability",
                          o->clip, o->noise, o->delta, SHERD_TRAIN_NOISE_MAX);
    if (err || o->survivors == 0 || o->survivors >= SURVIVORS_LEAST) return err;
    return sherd__fail(d, SHERD_EINVAL, "leave it out for the least that is safe",
                       "--survivors %u: expected %u or more, since each of two nodes can subtract "
                       "its own part from the sum",
                       o->survivors, SURVIVORS_LEAST);
}

static int check_allreduce(const sherd_train_options *o, sherd_diag *d)
{
    const char *b = o->aggregate == SHERD_AGGREGATE_RING ? "--aggregate ring"
                                                         : "--aggregate halving-doubling";
    const rule against[] = {
        { o->async, "--async", b, "a sum among nodes waits for all of them" },
        { o->floats, "--float-gradients", b,
          "sums of floats depend on their order, and nodes would not agree" },
        { o->nodes == 0, "threads of this process", b, "they share memory" },
    };
    return apart(RULES(against), d);
}

/* Peer processes have no nodes, and no update before all have sent theirs. */
static int check_peers(const sherd_train_options *o, sherd_diag *d)
{
    const struct {
        bool set;
        const char *name;
    } without[] = { { o->nodes > 0, "a cluster of nodes" },
                    { o->async, "--async" },
                    { o->allow_drop, "--allow-drop" },
                    { o->floats, "--float-gradients" },
                    { o->check, "--check" },
                    { o->aggregate != SHERD_AGGREGATE_PLAIN, "--aggregate" } };
    if (o->by != SHERD_BY_GRADIENTS)
        return sherd__fail(d, SHERD_EINVAL, "add --by gradients",
                           "peer processes train by gradients only");
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (without[i].set)
            return sherd__fail(d, SHERD_EINVAL, "leave it out",
                               "%s has no effect among peer processes", without[i].name);
    return SHERD_OK;
}

static int check_gradients(const sherd_train_options *o, bool data, sherd_diag *d)
{
    const rule against[] = {
        { o->check && o->async, "--check", "--async",
          "asynchronous updates arrive in a different order each time" },
        { o->check && o->allow_drop, "--check", "--allow-drop",
          "dropping a part changes the gradient" },
        { o->check && o->floats, "--check", "--float-gradients",
          "floats depend on which node computes them" },
        { o->bits > 0 && o->floats, "--bits", "--float-gradients", "floats have no fixed width" },
        { o->allow_drop && o->nodes == 0, "--allow-drop", "threads of this process",
          "threads are not lost" },
    };
    const rule wants[] = {
        { o->staleness_bounded && !o->async, "--staleness-max", "--async",
          "add --async: without it no gradient misses an update" },
        { o->local_batch > 0 && !o->local_steps, "--local-batch", "--local-steps",
          "add --local-steps N, or use --batch for the examples of a step" },
        { o->weighted && !o->local_steps, "--average", "--local-steps",
          "add --local-steps N: weights are averaged between those" },
    };
    int err = SHERD_OK;
    if (o->aggregate == SHERD_AGGREGATE_SECURE) err = check_secure(o, data, d);
    else if (o->aggregate != SHERD_AGGREGATE_PLAIN) err = check_allreduce(o, d);
    if (!err) err = apart(RULES(against), d);
    if (!err) err = needs(RULES(wants), d);
    if (err) return err;
    if (o->shards > SHERD_TRAIN_SHARDS_MAX || o->local_steps > UINT32_MAX)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "%u shards, %" PRIu64 " local steps: up to %u and %u are possible",
                           o->shards, o->local_steps, SHERD_TRAIN_SHARDS_MAX, UINT32_MAX);
    if (o->bits == 0 || (o->bits >= BITS_LEAST && o->bits <= BITS_MOST)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "choose --bits between 2 and 26",
                       "gradients of %u bits: %u to %u are possible", o->bits, BITS_LEAST,
                       BITS_MOST);
}

/* Metadata are for products over nodes; the scheme is checked with the file. */
static int check_metadata(const sherd_train_options *o, sherd_diag *d)
{
    const rule wants[] = {
        { o->by != SHERD_BY_PRODUCTS, "--meta", "--by products",
          "leave one of them out: gradients have no permutations" },
        { o->nodes == 0, "--meta", "nodes", "add -n N, or leave --meta out" },
    };
    return o->meta ? needs(RULES(wants), d) : SHERD_OK;
}

/* Refuses options of another way to train whose user would believe that data are hidden. */
static int check_hiding(const sherd_train_options *o, sherd_diag *d)
{
    bool gradients = o->by == SHERD_BY_GRADIENTS;
    const rule wants[] = {
        { !gradients && o->aggregate != SHERD_AGGREGATE_PLAIN, "--aggregate", "--by gradients",
          "add it, or leave --aggregate out" },
        { (!gradients || o->aggregate != SHERD_AGGREGATE_SECURE) &&
              (o->noise > 0 || o->clip > 0 || o->survivors > 0),
          "--noise, --clip or --survivors", "--aggregate secure",
          "add it, or leave them out: only secure sums clip gradients and add noise" },
    };
    int err = needs(RULES(wants), d);
    if (err || !gradients || !o->products || !sherd_scheme_private(o->products->scheme)) return err;
    return sherd__fail(d, SHERD_EINVAL, "leave it out, or use --by products",
                       "--scheme %s has no effect with --by gradients: nodes see examples and "
                       "weights in clear",
                       sherd_scheme_get(o->products->scheme)->name);
}

static int check_all(const sherd_training *t, sherd_diag *d)
{
    const sherd_train_options *o = &t->o;
    if (!o->checkpoints && (o->resume || o->checkpoint_every || o->checkpoint_keep))
        return sherd__fail(d, SHERD_EINVAL, "add --checkpoint FOLDER",
                           "--resume, --checkpoint-every and --checkpoint-keep need a folder of "
                           "checkpoints");
    if (!o->check || (o->nodes > 0 && t->products.bits > 0)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL,
                       o->nodes ? "add --mode exact, or leave --check out"
                                : "add -n N, or leave --check out",
                       o->nodes ? "--check compares bit for bit, which floats over nodes do not "
                                  "guarantee"
                                : "--check has no effect without nodes");
}

static int read_peers(sherd_training *t, sherd_diag *d)
{
    sherd_collective *c = &t->among;
    if (!t->o.among) return SHERD_OK;
    int err = sherd__options_read(c, sizeof *c, t->o.among, "sherd_collective", d);
    if (err) return err;
    if (!c->here) c->here = 1;
    if (c->common) *c->common = false;
    if (!c->name || !c->sum || c->rank >= c->count)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "process %u of %u: a collective needs a name, a sum and a rank below "
                           "its count",
                           c->rank, c->count);
    return check_peers(&t->o, d);
}

/* The data and the inputs of layers stay at the nodes for a step's products from both sides. */
static int check_code(const sherd_training *t, sherd_diag *d)
{
    if (t->products.opt.code != SHERD_CODE_INNER || t->o.by == SHERD_BY_GRADIENTS ||
        t->products.stochastic)
        return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "use --code lagrange, or leave the choice to sherd",
                       "--code inner multiplies an operand that stays at the nodes from one side, "
                       "and a training needs both");
}

/* Reads what decides how products are computed; the products of gradients are those of
 * validation. */
static int read_arithmetic(sherd_training *t, sherd_diag *d)
{
    sherd_train_options *o = &t->o;
    bool gradients = o->by == SHERD_BY_GRADIENTS;
    int err = sherd__network_products_read(&t->products, gradients ? NULL : o->products,
                                           o->nodes > 0 || gradients, d);
    if (err) return err;
    if (gradients) {
        bool floats = o->floats || o->aggregate == SHERD_AGGREGATE_SECURE;
        t->products.bits = floats ? 0 : o->bits ? o->bits : SHERD__FIXED_BITS;
    } else {
        t->products.maps = o->elementwise_at_nodes;
        t->products.stochastic = o->stochastic;
    }
    err = sherd__network_products_check(&t->products, t->recipe->recipe.precision, d);
    if (!err) err = check_code(t, d);
    t->products.nodes = o->nodes > 0;
    return err;
}

int sherd__training_options(sherd_training *t, const sherd_train_options *opt, sherd_diag *d)
{
    sherd_train_options *o = &t->o;
    int err = sherd__options_read(o, sizeof *o, opt, "sherd_train_options", d);
    if (!err && (o->by > SHERD_BY_GRADIENTS || o->aggregate > SHERD_AGGREGATE_HALVING_DOUBLING))
        err = sherd__fail(d, SHERD_EINVAL, "sherd/train.h lists them",
                          "unknown way to train %d, or to aggregate %d", (int)o->by,
                          (int)o->aggregate);
    if (!err) err = check_hiding(o, d);
    if (!err) err = check_metadata(o, d);
    if (!err) err = read_peers(t, d);
    if (!err && o->by == SHERD_BY_GRADIENTS) err = check_gradients(o, t->given, d);
    if (!err) err = read_arithmetic(t, d);
    if (!err) err = check_all(t, d);
    if (!o->shards) o->shards = SHERD__SHARDS_DEFAULT;
    if (!o->colluding) o->colluding = 1;
    if (!(o->delta > 0)) o->delta = DELTA;
    return err;
}
