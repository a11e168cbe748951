/*
 * `sherd train NAME|CONFIG`. All errors in recipe, data and options are found before nodes are
 * started. The model's file is opened then, too, with the space that it needs, but gets its name
 * after training, if nothing has failed, so an earlier model survives a failure.
 */
#include "cli/train.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/limit.h"
#include "cli/nodes.h"
#include "cli/paths.h"
#include "cli/plot.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/rand.h"
#include "core/wipe.h"

static const char *const choices_precision[] = { "f64", "f32", NULL };
static const char *const choices_by[] = { "products", "gradients", NULL };
static const char *const choices_aggregate[] = { "plain", "secure", "ring", "halving-doubling",
                                                 NULL };
static const char *const choices_average[] = { "plain", "weighted", NULL };

/* ---- preparation ----------------------------------------------------------------------------- */

static bool is_builtin(const char *name)
{
    const char *own;
    for (size_t i = 0; (own = sherd_recipe_builtin_at(i)); i++)
        if (strcmp(own, name) == 0) return true;
    return false;
}

static bool interrupted(void *ctx)
{
    (void)ctx;
    if (!sherd__cli_interrupted()) return false;
    sherd__limit_handled(); /* training ends after its last checkpoint */
    return true;
}

static void log_line(void *ctx, sherd_log_level level, const char *text)
{
    const sherd__train *t = ctx;
    sherd__nodes_log(t->cli, level, text);
}

/* The writing of a checkpoint is completed on a signal. So is a training among peers, which end
 * together. */
static void on_checkpoint(void *ctx, bool writes)
{
    const sherd__train *t = ctx;
    sherd__limit_writes(writes || t->o.among);
}

static int prepare(sherd__train *t, sherd_diag *d)
{
    sherd__cli *cli = t->cli;
    sherd_train_options *o = &t->o;
    sherd__train_leave_to_first(cli);
    const char *initial = sherd__opt_text(cli, "initial"), *plot = sherd__opt_text(cli, "plot");
    int err = sherd__paths_differ(cli, is_builtin(t->name) ? 0 : 1, d);
    if (!err) err = sherd__paths_output(cli, ".npz", d);
    if (!err && plot) err = sherd__plot_check(plot, d);
    if (!err) err = sherd__train_options(t, d);
    if (!err) err = sherd_recipe_load(&t->recipe, t->name, d);
    if (!err) err = sherd__train_change_recipe(cli, t->recipe, d);
    if (!err && initial) err = sherd_model_load_parameters(&t->initial, t->recipe, initial, d);
    if (err) return err;
    o->hooks = (sherd_hooks){
        .interrupted = interrupted, .log = log_line, .progress = sherd__train_on_progress, .ctx = t
    };
    o->initial = t->initial;
    o->on_epoch = sherd__train_on_epoch;
    o->on_checkpoint = on_checkpoint;
    o->ctx = t;
    if (o->among)
        sherd__limit_writes(true); /* this process ends with all, and the first may write */
    const sherd_data_source data = { .size = sizeof data, .path = sherd__opt_text(cli, "data") };
    err = sherd_training_new(&t->training, t->recipe, data.path ? &data : NULL, o, d);
    cli->reported = err && t->common && !sherd__train_is_first(t);
    return err;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Saves the model. If that fails, saves it elsewhere, so that hours of training are not lost. */
static int save(sherd__train *t, sherd_diag *d)
{
    const char *output = sherd__opt_text(t->cli, "output"), *folder = getenv("TMPDIR");
    const sherd_model *model = sherd_training_model(t->training);
    char other[PATH_MAX];
    if (!output) return 0;
    int err = sherd_model_file_save(t->file, model, d);
    if (!err) return 0;
    uint64_t name; /* that other users of the folder cannot guess */
    sherd__entropy os = sherd__entropy_os();
    os.fill(os.ctx, &name, sizeof name);
    snprintf(other, sizeof other, "%s/sherd-model-%016" PRIx64 ".npz",
             folder && *folder == '/' ? folder : "/tmp", name);
    if (sherd_model_save(model, other, NULL) == 0)
        sherd__cli_warn(t->cli, "the model was saved as %s instead", other);
    return err;
}

/* Describes what an interrupted run leaves, with the options of the command. */
static int explain(const sherd__train *t, int err, const sherd_diag *why, sherd_diag *d)
{
    bool stopped = err == SHERD_EINTERRUPTED || err == SHERD_ESTOPPED;
    if (err == SHERD_ETIMEOUT || (stopped && sherd__cli_interrupted() == SIGALRM))
        return sherd__fail(d, SHERD_ETIMEOUT, "allow more time with --timeout", "%s expired; %s",
                           sherd__opt_where(t->cli, "timeout"), why->message);
    if (err == SHERD_ESTOPPED)
        return sherd__fail(d, err, "the same command with --resume continues it", "%s",
                           why->message);
    if (err == SHERD_EINTERRUPTED)
        return sherd__fail(d, err,
                           "with --checkpoint FOLDER, an interrupted training keeps its steps, and "
                           "--resume continues it",
                           "%s%s", why->message,
                           sherd__train_is_first(t) ? "; nothing was saved" : "");
    return sherd__fail(d, err, why->hint, "%s", why->message);
}

static int train(sherd__train *t, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    sherd__progress_mode mode = (sherd__progress_mode)sherd__opt_choice(t->cli, "progress");
    sherd__train_say_start(t);
    sherd__progress_init(&t->progress, stderr, t->cli->quiet ? SHERD__PROGRESS_NONE : mode, "train",
                         "steps", sherd__clock_s());
    int err = sherd_training_run(t->training, t->cluster, &mine);
    if (err) err = explain(t, err, &mine, d);
    if (!err) err = save(t, d);
    err = sherd__train_plot(t, err, d);
    return sherd__train_report_end(t, err, d);
}

static int run(sherd__train *t, sherd_diag *d)
{
    const char *output = sherd__opt_text(t->cli, "output");
    int err = 0;
    if (output) err = sherd_model_file_open(&t->file, sherd_training_model(t->training), output, d);
    if (!err && t->o.by == SHERD_BY_PRODUCTS)
        err = sherd__remote_products_open(&t->cluster, &t->over, t->cli, d);
    else if (!err && t->over.nodes) err = sherd__nodes_open(&t->cluster, t->cli, NULL, d);
    if (!err) err = sherd__train_logs_open(t, d);
    return err ? err : train(t, d);
}

static int run_train(sherd__cli *cli, sherd_diag *d)
{
    sherd__train t = { .cli = cli,
                       .name = cli->args[0],
                       .o = { .size = sizeof t.o },
                       .log = { .fd = -1 },
                       .trace = { .fd = -1 } };
    int err = prepare(&t, d);
    if (!err) err = run(&t, d);
    sherd__progress_fini(&t.progress);
    sherd__jsonl_close(&t.log);
    sherd__jsonl_close(&t.trace);
    sherd__free(t.confusion.counts);
    sherd_model_file_close(t.file);
    sherd_training_free(t.training);
    sherd_model_free(t.initial);
    sherd_recipe_free(t.recipe);
    if (!err) err = sherd_cluster_end(t.cluster, d);
    sherd_cluster_close(t.cluster);
    if (t.result)
        err = err ? sherd__cli_json_fail(cli, t.result, err, d)
                  : sherd__cli_json_end(cli, t.result, d);
    sherd__wipe(&t, sizeof t);
    return err;
}

static const sherd__example examples[] = {
    { "sherd train spiral", "trains a small network locally" },
    { "sherd train mnist-proper --data ~/mnist -o model.npz -n 3 --scheme share",
      "MNIST over three nodes, none of which learns data or weights" },
    { "sherd train my.conf --data my.npz -n 7 --mode exact --check",
      "your own network, compared bit for bit with the same training computed locally" },
    { "sherd train my.conf --by gradients --aggregate secure --nodes nodes.txt -o model.npz",
      "on data that stay at the nodes" },
    { "sherd train spiral -n 2 --by gradients --check",
      "over two nodes that see examples and weights, and send gradients" },
    { 0 },
};

/* clang-format off */
static const sherd__option options[] = {
    { .name = "output", .letter = 'o', .type = SHERD__FILE, .arg = "MODEL.npz",
      .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write the network to this file; on failure an existing file is kept" },
    { .name = "data", .type = SHERD__FILE, .arg = "PATH",
      .help = "data to train on: a folder of IDX files (.gz or not), a .npy, a .npz or a .csv" },
    { .name = "initial", .type = SHERD__FILE, .arg = "FILE.npz", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "initial weights: members w1, b1, w2, b2, ..." },
    { .name = "epochs", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e12,
      .help = "number of epochs [from the recipe]" },
    { .name = "batch", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e9, .word = "all",
      .help = "examples of one step, or all [from the recipe]" },
    { .name = "rate", .type = SHERD__REAL, .arg = "R", .min = 1e-300, .max = 1e300,
      .help = "learning rate [from the recipe]" },
    { .name = "examples", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e9,
      .help = "use the first N examples, or generate N; --aggregate secure: N of each node" },
    { .name = "precision", .type = SHERD__CHOICE, .arg = "TYPE", .choices = choices_precision,
      .help = "f64, or f32 for local training in floats: half the time and memory [from the "
              "recipe]" },
    { .name = "report-every", .type = SHERD__TEXT, .arg = "N",
      .help = "figures, with those of validation, after every N epochs, or N steps: 100steps [from "
              "the recipe, or 1]" },
    { .name = "patience", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e12,
      .flags = SHERD__OPT_ONLY_ARGV,
      .help = "stop after N reports without a lower validation loss; the model is that of the "
              "report with the lowest one [from the recipe, or never]" },
    { .name = "checkpoint", .type = SHERD__FILE, .arg = "FOLDER", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write checkpoints to this folder; each contains the hash of the previous one" },
    { .name = "checkpoint-every", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e15,
      .help = "steps between two checkpoints [as many as between two reports]" },
    { .name = "checkpoint-keep", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e6,
      .help = "keep only the newest N checkpoints [all]" },
    { .name = "resume", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,
      .help = "continue from the newest checkpoint, with the same bits; without one, start a new "
              "run" },
    { .name = "log", .type = SHERD__FILE, .arg = "FILE.jsonl", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "write a JSON object for each report to this file, one per line" },
    { .name = "plot", .type = SHERD__FILE, .arg = "FILE.svg", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "draw loss and accuracy, and the decision regions of two inputs (.svg or .png)" },
    { .name = "by", .type = SHERD__CHOICE, .arg = "HOW", .choices = choices_by,
      .help = "products: the network stays on this machine, nodes compute its products; gradients: "
              "nodes get examples and weights in clear" },
    { .name = "shards", .type = SHERD__INT, .arg = "N", .min = 1, .max = SHERD_TRAIN_SHARDS_MAX,
      .help = "--by gradients: number of parts of a batch, for any number of nodes [8]" },
    { .name = "async", .type = SHERD__FLAG,
      .help = "--by gradients: apply each gradient when it arrives, without waiting for the "
              "others" },
    { .name = "staleness-max", .type = SHERD__INT, .arg = "N", .min = 0, .max = 1e15,
      .help = "--async: most updates that a gradient may miss [any number]" },
    { .name = "local-steps", .type = SHERD__INT, .arg = "N", .min = 1, .max = 4294967295.0,
      .help = "--by gradients: each shard makes N steps of its own between two averages" },
    { .name = "local-batch", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e9,
      .help = "--local-steps: examples of one of these steps [all of the shard]" },
    { .name = "average", .type = SHERD__CHOICE, .arg = "HOW", .preset = "plain",
      .choices = choices_average,
      .help = "--local-steps: plain, or weighted by how many steps a shard made" },
    { .name = "aggregate", .type = SHERD__CHOICE, .arg = "HOW", .preset = "plain",
      .choices = choices_aggregate,
      .help = "--by gradients: how they are summed. plain: on this machine; secure: nodes have "
              "their own data (sherd node --data), and this machine sees only sums over several "
              "nodes; ring, halving-doubling: among the nodes" },
    { .name = "survivors", .type = SHERD__INT, .arg = "U", .min = 1, .max = 1024,
      .help = "--aggregate secure: nodes that must remain to open a sum [more than half of nodes "
              "and --colluding together]" },
    { .name = "clip", .type = SHERD__REAL, .arg = "C", .min = 1e-30, .max = 1e30,
      .help = "--aggregate secure: scale each example's gradient down to this norm" },
    { .name = "noise", .type = SHERD__REAL, .arg = "S", .min = 1e-6,
      .max = SHERD_TRAIN_NOISE_MAX,
      .help = "--aggregate secure: nodes add noise of S times what one example can change, for "
              "differential privacy" },
    { .name = "delta", .type = SHERD__REAL, .arg = "D", .min = 1e-300, .max = 0.1, .preset = "1e-6",
      .help = "--noise: the probability at which epsilon is reported" },
    { .name = "simulate", .type = SHERD__FLAG,
      .help = "--aggregate secure: send examples from this machine to the nodes, which hides "
              "nothing" },
    { .name = "in-process", .type = SHERD__FLAG,
      .help = "--by gradients: use -n N threads of this process instead of nodes" },
    { .name = "allow-drop", .type = SHERD__FLAG,
      .help = "--by gradients: drop the work of a lost node instead of giving it to another node" },
    { .name = "float-gradients", .type = SHERD__FLAG,
      .help = "--by gradients: float64 instead of fixed point; the bits depend on the nodes" },
    { .name = "trace", .type = SHERD__FILE, .arg = "FILE.jsonl", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "--by gradients: write the times of each pass, and each update's staleness, to this "
              "file" },
    SHERD__OPT_ELEMENTWISE,
    SHERD__OPTS_CLUSTER,
    SHERD__OPTS_OVER,
    { .name = "meta", .type = SHERD__FILE, .arg = "FILE", .flags = SHERD__OPT_ONLY_ARGV,
      .takes = SHERD_TAKES_SHUFFLES,
      .help = "take exposures and permutations of every step from this metadata file (sherd meta "
              "build --recipe)" },
    { .name = "reuse-metadata", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,
      .help = "--meta: accept a file that has served another training" },
    SHERD__OPT_MODE,
    SHERD__OPT_BITS,
    SHERD__OPT_ROUNDING,
    { .name = "seed", .type = SHERD__FILE, .arg = "N|FILE",
      .flags = SHERD__OPT_NO_ENV | SHERD__OPT_ONLY_ARGV,
      .help = "a number from which weights, order and held-out examples are derived, or a file of "
              "32 bytes, from which permutations are derived too [fresh]" },
    { .name = "check", .type = SHERD__FLAG,
      .help = "also train locally and compare all parameters after each epoch; exit 9 if they "
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
    .summary = "train a network, locally or over nodes",
    .details =
        "NAME is a built-in recipe (mnist, mnist-proper, spiral, parabola, lenet, deep), CONFIG a "
        "file of the same format: `key = value` lines that describe layers, data and training "
        "(docs/TRAINING.md). Without nodes everything is computed locally. With -n or --nodes the "
        "network stays on this machine, and nodes compute its products under a scheme; sums, "
        "activations and updates are computed locally.\n\n"
        "--by gradients divides each batch among the nodes and sends it in clear, with the "
        "weights; they return gradients, which are summed on this machine. Nothing is hidden from "
        "them. With --aggregate secure nodes keep their own examples and send masked gradients: "
        "any --survivors U nodes open a sum, and --colluding T nodes together with the coordinator "
        "learn nothing but the sum. A sum also reveals something about its examples: --clip and "
        "--noise bound what it reveals about one example, and nodes require both by default. With "
        "--aggregate ring or halving-doubling nodes send gradients to each other and make the "
        "updates, with the same bits; an example is sent once to each node that uses it, and is "
        "kept there.\n\n"
        "In fixed point (--mode exact, --bits, --scheme share) recipe, data and seed determine "
        "every bit of the result, independently of nodes, threads and lost nodes; --check also "
        "trains locally and compares.\n\n"
        "Under --scheme permute, --meta FILE takes the exposures and permutations of every step "
        "from a file of sherd meta build --recipe. The file serves one training: another one "
        "needs --reuse-metadata. What each node was given is listed at the end.\n\n"
        "A model is an .npz that numpy opens: w1, b1, w2, ... and the recipe's text; sherd predict "
        "reads it.",
    .examples = examples,
    .options = options,
    .args_min = 1,
    .args_max = 1,
    .run = run_train,
};
