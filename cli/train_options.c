/*
 * Options of `sherd train`. Options that do not apply to this run are refused on the command line
 * and forgotten otherwise (cli/applies.h). The library refuses combinations that contradict each
 * other, with the reason; here the option from the weaker place is forgotten.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/applies.h"
#include "cli/command.h"
#include "cli/nodes.h"
#include "cli/options.h"
#include "cli/seed.h"
#include "cli/train.h"

/* --by, --aggregate, --average: in the order of their choices. */
enum { BY_PRODUCTS, BY_GRADIENTS };
enum { PLAIN, SECURE, RING, HALVING };

/* ---- peers ----------------------------------------------------------------------------------- */

static const sherd_collective *peers; /* NULL: this is the only process */

void sherd__train_among(const sherd_collective *c)
{
    peers = c;
}

bool sherd__train_is_first(const sherd__train *t)
{
    return !t->o.among || t->o.among->rank == 0;
}

void sherd__train_leave_to_first(sherd__cli *cli)
{
    static const char *const names[] = {
        "output",          "log",    "trace",   "plot", "checkpoint", "checkpoint-every",
        "checkpoint-keep", "resume", "initial", "json"
    };
    if (!peers || peers->rank == 0) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) sherd__opt_forget(cli, names[i]);
    cli->json = false;
    cli->quiet = true;
}

/* ---- what applies ---------------------------------------------------------------------------- */

static bool gradients(const sherd__cli *cli)
{
    return sherd__opt_choice(cli, "by") == BY_GRADIENTS;
}

/* Returns the value of --aggregate, which has an effect only with --by gradients. */
static int aggregate(const sherd__cli *cli)
{
    return gradients(cli) ? sherd__opt_choice(cli, "aggregate") : PLAIN;
}

/* Checks for options of the other way to train. */
static int judge_way(sherd__cli *cli, sherd_diag *d)
{
    static const char *const ours[] = {
        "shards",     "async",      "staleness-max",   "local-steps", "local-batch", "average",
        "in-process", "allow-drop", "float-gradients", "trace",       "aggregate",   "survivors",
        "simulate",   "clip",       "noise",           "delta",       NULL
    };
    static const char *const theirs[] = {
        "scheme",      "spare",    "code", "group",  "exposure", "exposure-max",   "encoding",
        "elementwise", "rounding", "mode", "strict", "meta",     "reuse-metadata", NULL
    };
    bool by = gradients(cli);
    const char *name = sherd__opts_forget_unless_argv(cli, by ? theirs : ours);
    if (!name && by && aggregate(cli) != SECURE && sherd__opt_forget_unless_argv(cli, "colluding"))
        name = "colluding";
    return !name ? 0
                 : sherd__fail(d, SHERD_EINVAL,
                               by ? "leave it out, or use --by products"
                                  : "add --by gradients, or leave it out",
                               "--%s has no effect with --by %s%s", name,
                               by ? "gradients" : "products",
                               by ? ": nodes see examples and weights in clear" : "");
}

/* Checks what the library cannot: where nodes and their data come from. */
static int judge_secure(sherd__cli *cli, sherd_diag *d)
{
    static const char *const others[] = { "shards",     "async",      "local-steps",
                                          "in-process", "allow-drop", "float-gradients",
                                          "check",      "bits",       NULL };
    sherd__opts_forget(cli, others);
    if (sherd__opt_flag(cli, "simulate")) return 0;
    sherd__opts_forget(cli, (const char *const[]){ "data", NULL });
    if (peers || sherd__opt_given(cli, "nodes") || sherd__opt_given(cli, "data")) return 0;
    return sherd__fail(d, SHERD_EINVAL, "give a node file; or -n N --simulate, to try it out",
                       "--aggregate secure needs --nodes FILE: nodes that have their own data");
}

static int judge_gradients(sherd__cli *cli, sherd_diag *d)
{
    static const char *const of_secure[] = {
        "survivors", "simulate", "clip", "noise", "delta", NULL
    };
    static const char *const not_among_nodes[] = { "async", "float-gradients", "in-process", NULL };
    static const char *const of_nodes[] = { "backend", "device", "devices" };
    static const char *const pairs[][2] = { { "check", "async" },
                                            { "check", "allow-drop" },
                                            { "check", "float-gradients" },
                                            { "bits", "float-gradients" },
                                            { "allow-drop", "in-process" } };
    static const char *const needs[][2] = { { "staleness-max", "async" },
                                            { "local-batch", "local-steps" },
                                            { "average", "local-steps" } };
    int how = aggregate(cli);
    const char *idle = how == SECURE ? NULL : sherd__opts_forget_unless_argv(cli, of_secure);
    if (idle)
        return sherd__fail(d, SHERD_EINVAL, "add --aggregate secure, or leave it out",
                           "--%s has no effect without --aggregate secure", idle);
    int err = how == SECURE ? judge_secure(cli, d) : 0;
    if (how == RING || how == HALVING) sherd__opts_forget(cli, not_among_nodes);
    if (!err && sherd__opts_clash(cli, "nodes", "in-process"))
        err = sherd__fail(d, SHERD_EINVAL, "leave one of them out",
                          "--nodes and --in-process cannot be combined: threads are on this "
                          "machine");
    for (size_t i = 0; i < sizeof of_nodes / sizeof *of_nodes; i++)
        if (!err && sherd__opts_clash(cli, of_nodes[i], "in-process"))
            err = sherd__fail(d, SHERD_EINVAL, "leave one of them out",
                              "--%s and --in-process cannot be combined: threads compute on the "
                              "processor",
                              of_nodes[i]);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        (void)sherd__opts_clash(cli, pairs[i][0], pairs[i][1]);
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (!sherd__opt_is_set(cli, needs[i][1]))
            (void)sherd__opt_forget_unless_argv(cli, needs[i][0]);
    return err;
}

/* Peers have no nodes, and no update before all have sent theirs. An option for hidden gradients is
 * not forgotten, since the user relies on it. */
static void judge_peers(sherd__cli *cli)
{
    static const char *const theirs[] = { "nodes",      "local",           "async", "in-process",
                                          "allow-drop", "float-gradients", "check", NULL };
    sherd__opts_forget(cli, theirs);
    if (aggregate(cli) != SECURE) (void)sherd__opt_forget_unless_argv(cli, "aggregate");
}

static int judge(sherd__cli *cli, sherd_diag *d)
{
    bool by = gradients(cli),
         nodes = sherd__opt_given(cli, "local") || sherd__opt_given(cli, "nodes");
    if (!by && !nodes) (void)sherd__opt_forget_unless_argv(cli, "by"); /* on argv it needs nodes */
    int err = judge_way(cli, d);
    if (!err && peers) judge_peers(cli);
    return err || !by ? err : judge_gradients(cli, d);
}

/* ---- the recipe ------------------------------------------------------------------------------ */

/* The recipe's parser would name the recipe, not the option. */
static int set_interval(const sherd__cli *cli, sherd_recipe *recipe, sherd_diag *d)
{
    if (!sherd__opt_is_set(cli, "report-every")) return SHERD_OK;
    const char *value = sherd__opt_text(cli, "report-every");
    int err = sherd_recipe_set(recipe, "report_every", value, NULL);
    if (err != SHERD_EFORMAT) return err ? sherd__fail_to(d, err, "set report_every") : SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "use 5 for every five epochs, or 100steps",
                       "%s: expected a number of epochs, or of steps, found '%.40s'",
                       sherd__opt_where(cli, "report-every"), value);
}

int sherd__train_change_recipe(const sherd__cli *cli, sherd_recipe *recipe, sherd_diag *d)
{
    static const char *const keys[] = { "epochs",    "batch",    "rate",
                                        "precision", "examples", "patience" };
    char value[64];
    int err = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !err; i++) {
        const char *key = keys[i];
        if (!sherd__opt_is_set(cli, key)) continue;
        if (strcmp(key, "rate") == 0)
            snprintf(value, sizeof value, "%.17g", sherd__opt_real(cli, key));
        else if (strcmp(key, "precision") == 0)
            snprintf(value, sizeof value, "%s", sherd__opt_text(cli, key));
        else if (sherd__opt_int(cli, key) == 0) snprintf(value, sizeof value, "all");
        else snprintf(value, sizeof value, "%" PRId64, sherd__opt_int(cli, key));
        err = sherd_recipe_set(recipe, key, value, d);
    }
    return err ? err : set_interval(cli, recipe, d);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void read_gradients(sherd__train *t)
{
    const sherd__cli *cli = t->cli;
    sherd_train_options *o = &t->o;
    o->aggregate = (sherd_aggregate)sherd__opt_choice(cli, "aggregate");
    o->shards = (uint32_t)sherd__opt_int(cli, "shards");
    o->floats = sherd__opt_flag(cli, "float-gradients");
    o->bits = (uint32_t)sherd__opt_int(cli, "bits");
    o->async = sherd__opt_flag(cli, "async");
    o->staleness_bounded = sherd__opt_given(cli, "staleness-max");
    o->staleness_max = (uint64_t)sherd__opt_int(cli, "staleness-max");
    o->local_steps = (uint64_t)sherd__opt_int(cli, "local-steps");
    o->local_batch = (uint64_t)sherd__opt_int(cli, "local-batch");
    o->weighted = sherd__opt_choice(cli, "average") == 1;
    o->allow_drop = sherd__opt_flag(cli, "allow-drop");
    if (sherd__opt_flag(cli, "in-process")) {
        t->over.nodes = false;
        o->threads = (uint32_t)sherd__opt_int(cli, "local");
    } else {
        t->over.nodes = !peers || sherd__opt_given(cli, "local") || sherd__opt_given(cli, "nodes");
    }
    o->on_pass = sherd__opt_text(cli, "trace") ? sherd__train_on_pass : NULL;
    o->on_update = sherd__opt_text(cli, "trace") ? sherd__train_on_update : NULL;
    if (o->aggregate != SHERD_AGGREGATE_SECURE) return;
    o->colluding = (uint32_t)sherd__opt_int(cli, "colluding");
    o->survivors = (uint32_t)sherd__opt_int(cli, "survivors");
    o->examples = (uint64_t)sherd__opt_int(cli, "examples");
    o->clip = sherd__opt_real(cli, "clip");
    o->noise = sherd__opt_real(cli, "noise");
    o->delta = sherd__opt_real(cli, "delta");
    o->simulate = sherd__opt_flag(cli, "simulate");
}

static int read_metadata(sherd__train *t, sherd_diag *d)
{
    const sherd__cli *cli = t->cli;
    sherd_train_options *o = &t->o;
    o->meta = sherd__opt_text(cli, "meta");
    o->meta_reuse = sherd__opt_flag(cli, "reuse-metadata");
    if (o->meta_reuse && !o->meta)
        return sherd__fail(d, SHERD_EINVAL, "give both or neither",
                           "--reuse-metadata has no effect without --meta");
    if (sherd__opt_given(cli, "group")) o->meta_settings |= SHERD_META_GROUP;
    if (sherd__opt_given(cli, "exposure")) o->meta_settings |= SHERD_META_EXPOSURE;
    return 0;
}

static void read_checkpoints(sherd__train *t)
{
    static const char *const of_folder[] = { "resume", "checkpoint-every", "checkpoint-keep",
                                             NULL };
    sherd_train_options *o = &t->o;
    o->checkpoints = sherd__opt_text(t->cli, "checkpoint");
    if (!o->checkpoints) sherd__opts_forget(t->cli, of_folder);
    o->checkpoint_every = (uint64_t)sherd__opt_int(t->cli, "checkpoint-every");
    o->checkpoint_keep = (uint64_t)sherd__opt_int(t->cli, "checkpoint-keep");
    o->resume = sherd__opt_flag(t->cli, "resume");
}

/* --check is forgotten if the same training computed locally would not have the same bits. */
static void read_check(sherd__train *t)
{
    const sherd_train_options *o = &t->o;
    bool exact = o->by == SHERD_BY_GRADIENTS ? !o->floats && o->aggregate != SHERD_AGGREGATE_SECURE
                                             : t->over.opt.exact;
    if (!t->over.nodes || !exact) (void)sherd__opt_forget_unless_argv(t->cli, "check");
    t->o.check = sherd__opt_flag(t->cli, "check");
}

int sherd__train_options(sherd__train *t, sherd_diag *d)
{
    sherd__cli *cli = t->cli;
    sherd_train_options *o = &t->o;
    const char *seed = sherd__opt_text(cli, "seed");
    int err = judge(cli, d);
    if (!err) err = sherd__remote_products_read(&t->over, cli, d);
    if (err) return err;
    o->by = gradients(cli) ? SHERD_BY_GRADIENTS : SHERD_BY_PRODUCTS;
    o->products = gradients(cli) ? NULL : &t->over.opt;
    o->stochastic = t->over.stochastic;
    o->elementwise_at_nodes = t->over.elementwise;
    o->timeout_ms = sherd__opt_time_ms(cli, "timeout");
    if (gradients(cli)) read_gradients(t);
    if (peers) {
        t->among = *peers;
        t->among.common = &t->common;
        o->among = &t->among;
    }
    read_check(t);
    read_checkpoints(t);
    err = read_metadata(t, d);
    bool number = false;
    if (!err && seed) err = sherd__seed_read_any(t->seed, &t->seed_number, &number, seed, d);
    if (number) o->seed_number = &t->seed_number;
    else if (seed) o->seed = t->seed;
    if (!err && t->over.nodes) err = sherd__nodes_count(&o->nodes, cli, d);
    return err;
}
