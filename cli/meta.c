/*
 * `sherd meta build | show | expand | compact | verify`: metadata files on the command line. This
 * file only handles options and output; sherd/meta.h does the work.
 */
#include "cli/meta.h"

#include <stdio.h>

#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/remote_products.h"
#include "cli/seed.h"
#include "core/clock.h"
#include "core/wipe.h"
#include "store/file.h"

/* A smaller expanded file is written too quickly to show progress. */
#define PROGRESS_FROM ((uint64_t)1 << 30)

static void on_progress(void *line, const sherd_progress *p)
{
    if (p->total >= PROGRESS_FROM)
        sherd__progress_update(line, p->done >> 20, p->total >> 20, NULL, sherd__clock_s());
}

int sherd__meta_write(sherd__cli *cli, sherd_meta *meta, bool verify, sherd_meta_save_options *opt,
                      uint64_t *size, sherd_diag *d)
{
    sherd__progress_line line;
    sherd__progress_init(&line, stderr, cli->quiet ? SHERD__PROGRESS_NONE : SHERD__PROGRESS_AUTO,
                         cli->title, "MiB", sherd__clock_s());
    const sherd_meta_read_options read = {
        .size = sizeof read, .hooks = { sherd__cli_stops, NULL, on_progress, &line }
    };
    int err = verify ? sherd_meta_verify(meta, &read, d) : SHERD_OK;
    if (opt) opt->hooks = read.hooks;
    if (!err && opt) err = sherd_meta_save(meta, sherd__opt_text(cli, "output"), opt, size, d);
    sherd__progress_fini(&line);
    return err;
}

/* Sets --seed FILE, if given, as the seed of a loaded file. */
static int supply_seed(sherd__cli *cli, sherd_meta *meta, sherd_diag *d)
{
    uint8_t seed[32];
    const char *path = sherd__opt_text(cli, "seed");
    if (!path) return SHERD_OK;
    int err = sherd__seed_read(seed, path, d);
    if (!err) err = sherd_meta_seed_set(meta, seed, d);
    sherd__wipe(seed, sizeof seed);
    return err;
}

/* ---- show, verify ---------------------------------------------------------------------------- */

static int run_show(sherd__cli *cli, sherd_diag *d)
{
    sherd_meta *meta = NULL;
    json_t *json = cli->json ? sherd__cli_json_new(cli) : NULL;
    int err = sherd_meta_load(&meta, cli->args[0], d);
    if (!err)
        sherd__meta_print_settings(meta, sherd_meta_expanded(meta), sherd_meta_seed(meta) != NULL,
                                   json);
    if (!err) err = sherd__meta_print_operations(meta, NULL, json, d);
    if (!err && json) {
        json_object_set_new(json, "file", sherd__cli_json_text(cli->args[0]));
        err = sherd__cli_json_end(cli, json, d);
        json = NULL;
    }
    json_decref(json);
    sherd_meta_free(meta);
    return err;
}

static int run_verify(sherd__cli *cli, sherd_diag *d)
{
    sherd_meta *meta = NULL;
    int err = sherd_meta_load(&meta, cli->args[0], d);
    if (!err) err = supply_seed(cli, meta, d);
    if (!err) err = sherd__meta_write(cli, meta, true, NULL, NULL, d);
    bool seed = !err && sherd_meta_seed(meta);
    size_t count = err ? 0 : sherd_meta_count(meta);
    bool expanded = !err && sherd_meta_expanded(meta);
    sherd_meta_free(meta);
    if (err) return err;
    if (cli->json) {
        json_t *json = sherd__cli_json_new(cli);
        json_object_set_new(json, "file", sherd__cli_json_text(cli->args[0]));
        json_object_set_new(json, "operations", json_integer((json_int_t)count));
        json_object_set_new(json, "regenerated", json_boolean(seed && expanded));
        return sherd__cli_json_end(cli, json, d);
    }
    sherd__cli_print("%s: valid: %zu operations%s", cli->args[0], count,
                     !expanded ? ", the seed matches its commitment"
                     : seed    ? ", all numbers match the seed"
                               : ", permutations and their inverses (the seed is not known)");
    return SHERD_OK;
}

/* ---- expand, compact ------------------------------------------------------------------------- */

/* Saves a loaded file. verified: all of it has been checked. */
static int convert(sherd__cli *cli, sherd_meta_save_options *opt, bool verified, sherd_diag *d)
{
    sherd_meta *meta = NULL;
    uint64_t size = 0;
    double began = sherd__clock_s();
    const char *path = sherd__opt_text(cli, "output");
    int err = sherd__paths_differ(cli, 0, d);
    if (!err && !sherd__opt_flag(cli, "force") && !sherd__path_same(cli->args[0], path))
        err = sherd__paths_replace_meta(path, d);
    if (!err) err = sherd_meta_load(&meta, cli->args[0], d);
    if (!err) err = supply_seed(cli, meta, d);
    if (!err && verified && !sherd_meta_seed(meta) && sherd_meta_expanded(meta)) {
        err = sherd_meta_verify(meta, NULL, d); /* reports a changed seed as such */
        if (!err)
            err = sherd__fail(d, SHERD_EFORMAT, "give the seed with --seed FILE",
                              "%s: does not contain its seed, which cannot be derived from "
                              "permutations",
                              cli->args[0]);
    }
    if (!err) err = sherd__meta_write(cli, meta, verified, opt, &size, d);
    sherd_meta_free(meta);
    return err ? err
               : sherd__meta_print_file(cli, size, sherd__clock_s() - began,
                                        cli->json ? sherd__cli_json_new(cli) : NULL, d);
}

static int run_expand(sherd__cli *cli, sherd_diag *d)
{
    sherd_meta_save_options opt = {
        .size = sizeof opt,
        .expanded = true,
        .deflate = sherd__opt_flag(cli, "deflate"),
        .without_seed = sherd__opt_flag(cli, "without-seed"),
    };
    return convert(cli, &opt, false, d);
}

static int run_compact(sherd__cli *cli, sherd_diag *d)
{
    sherd_meta_save_options opt = { .size = sizeof opt, .expanded = false };
    return convert(cli, &opt, true, d);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const char *const forms[] = { "seed", "expanded", NULL };

/* clang-format off */
#define OPT_DEFLATE                                                                                \
    {.name = "deflate", .type = SHERD__FLAG,                                                       \
     .help = "compress the arrays (to half their size in rows of ten, not in long rows)"}
#define OPT_WITHOUT_SEED                                                                           \
    {.name = "without-seed", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,                   \
     .help = "expanded form: leave the seed out; the file cannot be compacted then"}
#define OPT_FORCE                                                                                  \
    {.name = "force", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,                          \
     .help = "replace metadata that has been used, or a file that is not metadata"}
#define OPT_KNOWN_SEED                                                                             \
    {.name = "seed", .type = SHERD__FILE, .arg = "FILE",                                           \
     .flags = SHERD__OPT_NO_ENV | SHERD__OPT_ONLY_ARGV,                                            \
     .help = "the 32 bytes that the file was built from, if it does not contain them"}
/* clang-format on */

/* clang-format off */
static const sherd__option build_options[] = {
    { .name = "network", .type = SHERD__TEXT, .arg = "WIDTHS", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "the operations of one training step: inputs,hidden...,outputs" },
    { .name = "samples", .type = SHERD__INT, .arg = "N", .min = 0, .max = 4294967295.0,
      .flags = SHERD__OPT_ONLY_ARGV, .help = "rows of the network's training set" },
    { .name = "recipe", .type = SHERD__TEXT, .arg = "NAME|CONFIG", .flags = SHERD__OPT_ONLY_ARGV,
      .help = "the products of one step of sherd train with this recipe" },
    { .name = "data", .type = SHERD__FILE, .arg = "PATH",
      .help = "--recipe: the data of the training, if a step has all of them" },
    { .name = "batch", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e9, .word = "all",
      .help = "--recipe: examples of one step, or all [from the recipe]" },
    { .name = "examples", .type = SHERD__INT, .arg = "N", .min = 1, .max = 1e9,
      .help = "--recipe: as sherd train --examples" },
    { .name = "elementwise", .type = SHERD__CHOICE, .arg = "WHERE", .preset = "here",
      .choices = sherd__choices_elementwise,
      .help = "--recipe: with nodes, add the activations that sherd train --elementwise nodes "
              "sends" },
    { .name = "nodes", .type = SHERD__INT, .arg = "N", .min = 1, .max = 65535,
      .flags = SHERD__OPT_REQUIRED | SHERD__OPT_ONLY_ARGV,
      .help = "number of nodes that columns are assigned to" },
    SHERD__OPT_OUTPUT("META.npz"),
    OPT_FORCE,
    { .name = "form", .type = SHERD__CHOICE, .arg = "FORM", .preset = "seed", .choices = forms,
      .help = "seed (32 bytes from which everything is derived) or expanded (arrays for numpy)" },
    OPT_DEFLATE,
    OPT_WITHOUT_SEED,
    SHERD__OPT_SEED(0),
    { .name = "group", .type = SHERD__INT, .arg = "G", .min = 1, .max = 4294967295.0, .word = "all",
      .word_value = 0, .preset = "all",
      .help = "columns that share one permutation in products, 1 to all" },
    { .name = "exposure", .type = SHERD__CHOICE, .arg = "HOW", .preset = "uniform",
      .choices = sherd__choices_exposure,
      .help = "assign columns to nodes at random (uniform) or in equal counts (balanced)" },
    { .name = "shuffle-rows", .type = SHERD__FLAG,
      .help = "products: send A's rows in another order in every group" },
    { 0 },
};
/* clang-format on */
static const sherd__option show_options[] = { { 0 } };
static const sherd__option verify_options[] = { OPT_KNOWN_SEED, { 0 } };
static const sherd__option expand_options[] = {
    SHERD__OPT_OUTPUT("META.npz"), OPT_FORCE, OPT_DEFLATE, OPT_WITHOUT_SEED, OPT_KNOWN_SEED, { 0 }
};
static const sherd__option compact_options[] = {
    SHERD__OPT_OUTPUT("META.npz"), OPT_FORCE, OPT_KNOWN_SEED, { 0 }
};

static const sherd__example build_examples[] = {
    { "sherd meta build --network 784,128,10 --samples 60000 --nodes 7 -o meta.npz",
      "the eleven operations of one training step, in 32 bytes" },
    { "sherd meta build --recipe spiral --nodes 3 -o step.npz",
      "the products of a step of sherd train spiral" },
    { "sherd train spiral -n 3 --meta step.npz", "a training that uses them in every step" },
    { "sherd meta build z=dot:1000x512x64 --nodes 3 --form expanded -o z.npz",
      "one product, as arrays for numpy" },
    { "sherd multiply A.npy B.npy -o C.npy -n 3 --meta z.npz", "a product that uses them" },
    { 0 },
};
static const sherd__example show_examples[] = {
    { "sherd meta show meta.npz", "operations, and how many exposures each node has" },
    { "sherd meta show meta.npz --json", "the same as JSON" },
    { "python3 -c 'import numpy; print(numpy.load(\"meta.npz\").files)'", "what numpy sees" },
    { 0 },
};
static const sherd__example verify_examples[] = {
    { "sherd meta verify meta.npz",
      "checks every number; on exit 3 the message names operation and row" },
    { "sherd meta verify shared.npz --seed seed.bin", "the same for a file without its seed" },
    { "sherd meta verify meta.npz && echo valid", "in a script" },
    { 0 },
};
static const sherd__example expand_examples[] = {
    { "sherd meta expand meta.npz -o arrays.npz", "arrays for numpy" },
    { "sherd meta expand meta.npz -o arrays.npz --deflate", "smaller, and slower to write" },
    { "sherd meta expand meta.npz -o shared.npz --without-seed",
      "for a reader who may undo the shuffles of this step only" },
    { 0 },
};
static const sherd__example compact_examples[] = {
    { "sherd meta compact arrays.npz -o meta.npz",
      "back to 32 bytes, if every number is derived from them" },
    { "sherd meta compact shared.npz --seed seed.bin -o meta.npz", "for a file without its seed" },
    { "sherd meta compact arrays.npz -o arrays.npz", "in place" },
    { 0 },
};

static const sherd__verb build = {
    .name = "build",
    .usage = "[NAME=KIND:SHAPE ...] -o META.npz",
    .summary = "make exposures and permutations for the operations of a job",
    .details = "Operations are those of --network, then those of --recipe, then those of the "
               "arguments: NAME=dot:NxKxM for an n x k by k x m product, NAME=sigmoid:NxM (minus, "
               "square, multiply, relu, tanh, exp) for an element-wise one. Those of --recipe are "
               "the products of one step of sherd train: forward_1, backward_1_weights, ... The "
               "seed form derives everything from 32 fresh bytes; the expanded form holds "
               "NAME.exposures, NAME.enshuffles and NAME.unshuffles as arrays. Anyone who reads "
               "the file can undo the permutations, so it is written with mode 0600.",
    .examples = build_examples,
    .options = build_options,
    .args_min = 0,
    .args_max = -1,
    .run = sherd__meta_build,
};
static const sherd__verb show = {
    .name = "show",
    .usage = "META.npz",
    .summary = "list the operations of a metadata file",
    .examples = show_examples,
    .options = show_options,
    .args_min = 1,
    .args_max = 1,
    .run = run_show,
};
static const sherd__verb expand = {
    .name = "expand",
    .usage = "META.npz -o ARRAYS.npz",
    .summary = "write the arrays that are derived from a seed",
    .examples = expand_examples,
    .options = expand_options,
    .args_min = 1,
    .args_max = 1,
    .run = run_expand,
};
static const sherd__verb compact = {
    .name = "compact",
    .usage = "ARRAYS.npz -o META.npz",
    .summary = "reduce arrays to the seed that they are derived from",
    .details =
        "The seed must be known: contained in the file, or given with --seed. Every number is "
        "compared with the one derived from the seed before anything is written.",
    .examples = compact_examples,
    .options = compact_options,
    .args_min = 1,
    .args_max = 1,
    .run = run_compact,
};
static const sherd__verb verify = {
    .name = "verify",
    .usage = "META.npz",
    .summary = "check every number of a metadata file",
    .details = "Numbers are compared with those derived from the seed, if it is known. Without it, "
               "exposures must name nodes, every row must be a permutation, and unshuffles must be "
               "the inverses.",
    .examples = verify_examples,
    .options = verify_options,
    .args_min = 1,
    .args_max = 1,
    .run = run_verify,
};

static const sherd__verb *const subs[] = { &build, &show, &expand, &compact, &verify, NULL };

const sherd__verb sherd__verb_meta = {
    .name = "meta",
    .usage = "build|show|expand|compact|verify",
    .summary = "make and check metadata files: exposures and permutations",
    .examples = build_examples,
    .subs = subs,
};
