/*
 * `sherd train NAME|CONFIG`. All errors in recipe, data and options are found before nodes are
 * started. The model is written after training, if nothing has failed, so an earlier model survives
 * a failure.
 */
#include "cli/train.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/applies.h"
#include "cli/limit.h"
#include "lib/model.h"
#include "cli/paths.h"
#include "cli/plot.h"
#include "cli/seed.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/rand.h"
#include "crypto/privacy.h"
#include "learn/gradients.h"
#include "core/wipe.h"

static const char *const choices_precision[] = { "f64", "f32", NULL };
static const char *const choices_by[] = { "products", "gradients", NULL };
static const char *const choices_aggregate[] = { "plain", "secure", "ring", "halving-doubling",
                                                 NULL };
static const char *const choices_average[] = { "plain", "weighted", NULL };

/* ---- preparation ----------------------------------------------------------------------------- */

static int read_seed(sherd__train *t, sherd_diag *d)
{
    const char *path = sherd__opt_text(t->cli, "seed");
    sherd__entropy os = sherd__entropy_os();
    if (path) return sherd__seed_read(t->seed, path, d);
    os.fill(os.ctx, t->seed, sizeof t->seed);
    return 0;
}

static int read_recipe(sherd__train *t, sherd_diag *d)
{
    sherd__cli *cli = t->cli;
    sherd__recipe *r = &t->recipe;
    t->name = cli->args[0];
    int err = sherd__recipe_load(r, t->name, d);
    if (err) return err;
    if (sherd__opt_given(cli, "epochs")) {
        r->epochs = (uint64_t)sherd__opt_int(cli, "epochs");
        r->steps = 0;
    }
    if (sherd__opt_given(cli, "batch")) r->batch = (size_t)sherd__opt_int(cli, "batch");
    if (sherd__opt_given(cli, "rate")) r->schedule.rate = sherd__opt_real(cli, "rate");
    if (sherd__opt_given(cli, "precision"))
        r->precision = sherd__opt_choice(cli, "precision") == 1 ? SHERD_F32 : SHERD_F64;
    if (sherd__opt_given(cli, "examples")) r->examples = (size_t)sherd__opt_int(cli, "examples");
    return 0;
}

static int prepare(sherd__train *t, sherd_diag *d)
{
    sherd__cli *cli = t->cli;
    size_t width = 0;
    sherd__train_leave_to_first(cli);
    const char *initial = sherd__opt_text(cli, "initial"), *plot = sherd__opt_text(cli, "plot");
    int err = sherd__paths_differ(cli, sherd__recipe_is_builtin(cli->args[0]) ? 0 : 1, d);
    if (!err) err = sherd__paths_output(cli, d);
    if (!err && plot) err = sherd__plot_check(plot, d);
    if (!err) err = sherd__train_by_judge(cli, d);
    if (!err) err = read_recipe(t, d);
    if (!err) err = sherd__remote_products_read(&t->over, cli, d);
    if (!err) err = sherd__remote_products_precision(&t->over, t->recipe.precision, d);
    if (!err) err = sherd__train_by_read(t, d);
    bool beside = t->over.nodes && t->over.bits > 0;
    if (!err && sherd__opt_flag(cli, "check") && !beside && sherd__opt_idle(cli, "check"))
        err = sherd__fail(d, SHERD_EINVAL,
                          t->over.nodes ? "add --mode exact, or leave --check out"
                                        : "add -n N, or leave --check out",
                          t->over.nodes ? "--check compares bit for bit, which floats over nodes "
                                          "cannot promise"
                                        : "--check has no effect without nodes");
    if (!err) err = read_seed(t, d);
    if (!err) err = sherd__train_keep_open(t, d);
    if (!err) err = sherd__train_share_seed(t, d);
    if (!err) err = sherd__train_weigh(t, 0, &width, d);
    if (!err)
        err = t->secure ? sherd__train_secure_data(t, width, d)
                        : sherd__data_load(&t->data, &t->recipe, sherd__opt_text(cli, "data"),
                                           width, t->seed, d);
    if (!err) err = sherd__train_weigh(t, t->data.train.x.rows, &width, d);
    if (!err && t->secure) err = sherd__train_secure_trainer(t, d);
    else if (!err)
        err = sherd__trainer_new(&t->trainer, &t->recipe, &t->data.train, &t->data.validation,
                                 t->seed, d);
    if (!err && initial) err = sherd__model_params(sherd__trainer_network(t->trainer), initial, d);
    if (!err) err = sherd__train_by_suits(t, d);
    if (!err) err = sherd__train_keep_load(t, d);
    if (!err) err = sherd__train_share_start(t, d);
    return err;
}

/* ---- callbacks during training --------------------------------------------------------------- */

static int on_step(void *ctx, const sherd__step *s, const sherd__step_result *r, sherd_diag *d)
{
    sherd__train *t = ctx;
    (void)d;
    t->examples += r->examples > 0 ? r->examples : s->len;
    if (isnan(t->first_cost)) t->first_cost = r->cost;
    sherd__train_pace(t);
    sherd__train_progress(t);
    return 0;
}

static int on_epoch(void *ctx, const sherd__train_epoch *e, bool report, sherd_diag *d)
{
    sherd__train *t = ctx;
    int err = 0;
    t->last = *e;
    if (t->check) err = sherd__train_check_epoch(t, e, report, d);
    return err || !report ? err : sherd__train_tell_epoch(t, e, d);
}

static bool interrupted(void *ctx)
{
    int sig = sherd__cli_interrupted();
    (void)ctx;
    return sig != 0 && sig != SIGALRM;
}

/* Returns whether to stop after a signal or --timeout. It is asked between steps, where --timeout
 * also ends training with local products. */
static bool stop_asked(void *ctx)
{
    sherd__train *t = ctx;
    uint32_t ms = sherd__opt_time_ms(t->cli, "timeout");
    bool late = ms > 0 && (sherd__clock_s() - t->began) * 1e3 > ms;
    t->stopped = sherd__train_stop_together(interrupted(t) ? SHERD_EINTERRUPTED
                                            : late         ? SHERD_ETIMEOUT
                                                           : 0,
                                            &t->stopped_by);
    if (t->stopped) sherd__limit_heard();
    return t->stopped != 0;
}

/* Opens the nodes, the stepper, and all files that a run writes. */
static int open_run(sherd__train *t, sherd_diag *d)
{
    uint8_t products[32];
    sherd__seeded state;
    sherd__entropy e = sherd__train_entropy(&state, t->seed, "products", 0);
    e.fill(e.ctx, products, sizeof products);
    e = sherd__train_entropy(&state, t->seed, "rounding", 0);
    e.fill(e.ctx, t->over.rounding, sizeof t->over.rounding);
    t->began = t->told_at = sherd__clock_s();
    int err = sherd__remote_products_open(&t->over, t->cli, products, d);
    sherd__wipe(products, sizeof products);
    sherd__wipe(&state, sizeof state);
    if (!err) err = sherd__train_record_rows(t, d);
    if (!err && t->by) err = sherd__train_by_open(t, d);
    else if (!err)
        err = sherd__stepper_products(&t->stepper, sherd__trainer_network(t->trainer),
                                      sherd__trainer_optimiser(t->trainer), t->over.engine, d);
    if (!err && sherd__opt_flag(t->cli, "check")) err = sherd__train_check_new(t, d);
    if (!err) err = sherd__train_log_open(t, d);
    return err ? err : sherd__train_keep_begin(t, d);
}

/* Reports why a run ended early, and how to continue it. */
static int broken_off(sherd__train *t, int err, const sherd_diag *why, sherd_diag *d)
{
    bool late = t->stopped ? t->stopped == SHERD_ETIMEOUT : !interrupted(t);
    if (err == SHERD_EINTERRUPTED && t->stopped && t->stopped_by.code)
        return sherd__fail(d, t->stopped,
                           "--resume goes on from the last checkpoint, if there are "
                           "any",
                           "%s; %s", t->stopped_by.message, why->message);
    if (err == SHERD_EINTERRUPTED && late)
        return sherd__fail(d, SHERD_ETIMEOUT, "give it more with --timeout",
                           "the time of %s is over; %s", sherd__opt_where(t->cli, "timeout"),
                           why->message);
    if (err == SHERD_EINTERRUPTED && t->keep)
        return sherd__fail(d, SHERD_ESTOPPED, "the same command with --resume goes on", "%s",
                           why->message);
    if (err == SHERD_EINTERRUPTED)
        return sherd__fail(d, err, NULL, "%s%s", why->message,
                           sherd__train_is_first() ? "; no model was written" : "");
    return sherd__fail(d, err, why->hint, "%s", why->message);
}

/* Saves the model. If the disk has become full, saves it elsewhere, so that hours of training are
 * not lost. */
static int save(sherd__train *t, sherd_diag *d)
{
    const char *output = sherd__opt_text(t->cli, "output"), *folder = getenv("TMPDIR");
    sherd__network *n = sherd__trainer_network(t->trainer);
    char other[PATH_MAX];
    if (!output) return 0;
    int err = sherd__model_write(output, &t->recipe, n, d);
    if (!err) return 0;
    snprintf(other, sizeof other, "%s/sherd-model-%ld.npz",
             folder && *folder == '/' ? folder : "/tmp", (long)getpid());
    if (sherd__model_write(other, &t->recipe, n, NULL) == 0)
        sherd__cli_warn(t->cli, "the model is in %s instead", other);
    return err;
}

/* An epoch may be a step of a millisecond. Writing and syncing a file for each would then take most
 * of the time. */
static uint64_t steps_between_reports(const sherd__train *t)
{
    uint64_t epoch = sherd__trainer_order(t->trainer)->per_epoch, all = t->recipe.report_every;
    return all <= UINT64_MAX / epoch ? epoch * all : UINT64_MAX;
}

static int run(sherd__train *t, sherd_diag *d)
{
    const char *output = sherd__opt_text(t->cli, "output");
    int err = output ? sherd__model_room(output, sherd__trainer_network(t->trainer), d) : 0;
    if (err) return err;
    sherd__train_foretell(t);
    err = open_run(t, d);
    if (err) return err;
    sherd__train_say_start(t);
    sherd__progress_mode mode = (sherd__progress_mode)sherd__opt_choice(t->cli, "progress");
    t->began = t->told_at = sherd__clock_s();
    sherd__progress_init(&t->progress, stderr, t->cli->quiet ? SHERD__PROGRESS_NONE : mode, "train",
                         "steps", t->began);
    sherd__train_calls calls = { .step = on_step,
                                 .epoch = on_epoch,
                                 .interrupted = stop_asked,
                                 .figures = !t->check,
                                 .ctx = t,
                                 .keep = t->over.nodes || t->over.bits > 0 };
    if (t->keep) {
        calls.checkpoint = sherd__train_keep_add;
        calls.checkpoint_every = sherd__opt_given(t->cli, "checkpoint-every")
                                     ? (uint64_t)sherd__opt_int(t->cli, "checkpoint-every")
                                     : steps_between_reports(t);
    }
    sherd_diag mine = { 0 };
    err = sherd__trainer_run(t->trainer, t->stepper, t->over.engine, &calls, &mine);
    t->seconds = sherd__clock_s() - t->began;
    if (err) err = broken_off(t, err, &mine, d);
    if (t->stopped && !t->stopped_by.code) /* the others end after the first's checkpoint */
        (void)sherd__train_stop_together(0, NULL);
    if (!err) err = save(t, d);
    err = sherd__train_plot(t, err, d);
    err = sherd__train_by_end(t, err, d);
    return sherd__train_tell_end(t, err, d);
}

static int run_train(sherd__cli *cli, sherd_diag *d)
{
    sherd__train t = {
        .cli = cli, .log = { .fd = -1 }, .last = { .cost = NAN, .accuracy = NAN }, .first_cost = NAN
    };
    int err = prepare(&t, d);
    if (!err) err = run(&t, d);
    sherd__progress_fini(&t.progress);
    sherd__train_tell_fini(&t);
    sherd__train_check_free(t.check);
    sherd__train_keep_free(t.keep);
    sherd__stepper_free(t.stepper);
    sherd__train_by_free(t.by);
    sherd__train_secure_free(t.secure);
    sherd__train_allreduce_free(t.circle);
    sherd__trainer_free(t.trainer);
    if (!err) err = sherd__remote_products_end(&t.over, d);
    sherd__remote_products_close(&t.over);
    sherd__data_fini(&t.data);
    if (t.result)
        err = err ? sherd__cli_json_fail(cli, t.result, err, d)
                  : sherd__cli_json_end(cli, t.result, d);
    sherd__wipe(&t, sizeof t);
    return err;
}

static const sherd__example examples[] = {
    { "sherd train spiral", "a small network, here" },
    { "sherd train mnist-proper --data ~/mnist -o model.npz -n 3 --scheme share",
      "MNIST over three nodes that learn nothing of data and weights" },
    { "sherd train my.conf --data my.npz -n 7 --mode exact --check",
      "your own network, compared bit for bit with the same training here" },
    { "sherd train my.conf --by gradients --aggregate secure --nodes nodes.txt -o model.npz",
      "on data that nodes keep to themselves" },
    { "sherd train spiral -n 2 --by gradients --check",
      "two nodes that hold examples and weights, and send gradients" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "output", .letter = 'o', .type = SHERD__FILE, .arg = "MODEL.npz",
      .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write the network to this file; an earlier one survives every failure" },
    { .name = "data", .type = SHERD__FILE, .arg = "PATH",
      .help = "train on this: a folder of IDX files (.gz or not), a .npy, a .npz or a .csv" },
    { .name = "initial", .type = SHERD__FILE, .arg = "FILE.npz", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "begin with these weights: members w1, b1, w2, b2, ..." },
    { .name = "epochs", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e12,
      .help = "how long [as the recipe says]" },
    { .name = "batch", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e9, .word = "all",
      .help = "examples of one step, or all [as the recipe says]" },
    { .name = "rate", .type = SHERD__REAL, .arg = "R", .min = 1e-300, .max = 1e300,
      .help = "learning rate [as the recipe says]" },
    { .name = "examples", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e9,
      .help = "train on the first N, or on so many generated ones; --aggregate secure: of each "
              "node, places for so many" },
    { .name = "precision", .type = SHERD__CHOICE, .arg = "TYPE", .choices = choices_precision,
      .help = "f64, or f32 here in floats: half the time and memory [as the recipe says]" },
    { .name = "checkpoint", .type = SHERD__FILE, .arg = "FOLDER", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "keep checkpoints in this folder, each naming the hash of the one before" },
    { .name = "checkpoint-every", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,
      .help = "steps between two checkpoints [report_every epochs]" },
    { .name = "checkpoint-keep", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e6,
      .help = "remove all but the newest N [keep all]" },
    { .name = "resume", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,
      .help = "go on from the newest checkpoint as if nothing had happened; without any, begin" },
    { .name = "log", .type = SHERD__FILE, .arg = "FILE.jsonl", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write a JSON object for each epoch into this file, a line each" },
    { .name = "plot", .type = SHERD__FILE, .arg = "FILE.svg", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "draw loss and accuracy, and the regions of data in the plane (.svg or .png)" },
    { .name = "by", .type = SHERD__CHOICE, .arg = "HOW", .choices = choices_by,
      .help = "products: the network stays here, its products go to the nodes; gradients: nodes "
              "have examples and weights in clear" },
    { .name = "shards", .type = SHERD__INT, .arg = "N", .min = 1, .max = SHERD__SHARDS_MAX,
      .help = "by gradients: pieces of a batch, whatever the number of nodes [8]" },
    { .name = "async", .type = SHERD__FLAG,
      .help = "by gradients: apply each one as it comes, without waiting for the others" },
    { .name = "staleness-max", .type = SHERD__INT, .arg = "N", .min = 0, .max = 1e15,
      .help = "--async: updates made meanwhile that a gradient may miss [any number]" },
    { .name = "local-steps", .type = SHERD__INT, .arg = "N", .min = 1, .max = 4294967295.0,
      .help = "by gradients: so many steps of each shard on its own between two averages" },
    { .name = "local-batch", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e9,
      .help = "--local-steps: examples of one [all of the shard]" },
    { .name = "average", .type = SHERD__CHOICE, .arg = "HOW", .preset = "plain",
      .choices = choices_average,
      .help = "--local-steps: plain, or weighted by how many steps a shard made" },
    { .name = "aggregate", .type = SHERD__CHOICE, .arg = "HOW", .preset = "plain",
      .choices = choices_aggregate,
      .help = "by gradients: plain, here; secure: nodes bring their own data (sherd node --data) "
              "and only sums over those that stay are seen here; ring or halving-doubling: nodes "
              "add up among themselves" },
    { .name = "survivors", .type = SHERD__INT, .arg = "U", .min = 1, .max = 1024,
      .help = "--aggregate secure: nodes that must be left to open a sum [more than half of nodes "
              "and --colluding together]" },
    { .name = "clip", .type = SHERD__REAL, .arg = "C", .min = 1e-30, .max = 1e30,
      .help = "--aggregate secure: scale each example's gradient down to this norm" },
    { .name = "noise", .type = SHERD__REAL, .arg = "S", .min = 1e-6,
      .max = SHERD__PRIVACY_NOISE_MAX,
      .help = "--aggregate secure: nodes add noise of S times what one example can change, for "
              "differential privacy" },
    { .name = "delta", .type = SHERD__REAL, .arg = "D", .min = 1e-300, .max = 0.1, .preset = "1e-6",
      .help = "--noise: the probability at which epsilon is told" },
    { .name = "simulate", .type = SHERD__FLAG,
      .help = "--aggregate secure: deal the examples from here, which hides nothing" },
    { .name = "in-process", .type = SHERD__FLAG,
      .help = "by gradients: threads of this process in place of nodes; -n N of them" },
    { .name = "allow-drop", .type = SHERD__FLAG,
      .help = "by gradients: go on without what a lost node had, rather than give it to another" },
    { .name = "float-gradients", .type = SHERD__FLAG,
      .help = "by gradients: float64 in place of fixed point; other nodes, other bits" },
    { .name = "trace", .type = SHERD__FILE, .arg = "FILE.jsonl", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "by gradients: write when each pass began, sent and ended, and each update's "
              "staleness" },
    SHERD__OPT_ELEMENTWISE,
    SHERD__OPTS_CLUSTER,
    SHERD__OPTS_OVER,
    SHERD__OPT_MODE,
    SHERD__OPT_BITS,
    SHERD__OPT_ROUNDING,
    { .name = "seed", .type = SHERD__FILE, .arg = "FILE",
      .flags = SHERD__OPT_NO_ENV | SHERD__OPT_ONLY_ARGV,
      .help = "32 bytes that weights, order and permutations derive from [fresh]" },
    { .name = "check", .type = SHERD__FLAG,
      .help = "train here too and compare every parameter after each epoch; exit 9 where they "
              "differ" },
    SHERD__OPT_STRICT,
    SHERD__OPT_MEMORY,
    SHERD__OPT_THREADS,
    { 0 },
};
/* clang-format on */

const sherd__verb sherd__verb_train = {
    .name = "train",
    .usage = "NAME|CONFIG",
    .summary = "trains a network, here or over nodes",
    .details =
        "NAME is a recipe that comes with sherd (mnist, mnist-proper, spiral, parabola, lenet, "
        "deep), CONFIG a file of the same form: `key = value` lines that name layers, data and how "
        "to train (docs/TRAINING.md). Without nodes everything is computed here. With -n or "
        "--nodes the network stays here and each of its products goes to the nodes under a scheme; "
        "sums, activations and the update are made here.\n"
        "\n"
        "--by gradients deals each batch to the nodes, in clear, with the weights; they send "
        "gradients, which are added up here. Nothing is hidden from them. With --aggregate secure "
        "they keep their own examples instead, and give nothing but masked sums: any --survivors U "
        "of them open one, and --colluding T learn nothing but that sum with the coordinator. "
        "Sums tell, too: --clip and --noise bound what they tell of an example, and nodes ask for "
        "that by default. With --aggregate ring or halving-doubling nodes send gradients to each "
        "other and make the updates, to the same bits; an example passes here once for each node "
        "that grades it, and stays there.\n"
        "\n"
        "In fixed point (--mode exact, --bits, --scheme share) recipe, data and seed decide every "
        "bit of the result, whatever nodes, threads and losses of nodes; --check trains here "
        "beside it and compares.\n"
        "\n"
        "A model is an .npz that numpy opens: w1, b1, w2, ... and the recipe's text; sherd predict "
        "reads it.",
    .examples = examples,
    .options = options,
    .args_min = 1,
    .args_max = 1,
    .run = run_train,
};
