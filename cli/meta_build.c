/* `sherd meta build`: parses operations from the command line and writes the file of exposures and
 * permutations. */
#include "cli/meta.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/applies.h"
#include "cli/paths.h"
#include "cli/seed.h"
#include "cli/train.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/suggest.h"
#include "core/wipe.h"

#define WIDTHS_MAX 64

/* Parses "784,128,10". */
static int read_widths(const char *text, uint64_t widths[WIDTHS_MAX], size_t *len, sherd_diag *d)
{
    const char *p = text;
    *len = 0;
    for (;;) {
        char *end;
        errno = 0;
        unsigned long long n = strtoull(p, &end, 10);
        if (end == p || *p < '0' || *p > '9' || errno || n == 0 || n > UINT32_MAX ||
            (*end && *end != ',') || *len == WIDTHS_MAX)
            return sherd__fail(d, SHERD_EINVAL, "--network 784,128,10 has 784 inputs, 10 outputs",
                               "--network: expected widths separated by commas, found \"%.60s\"",
                               text);
        widths[(*len)++] = n;
        if (!*end) return SHERD_OK;
        p = end + 1;
    }
}

/* Returns the nearest kind of operation to a misspelt one, or NULL. */
static const char *nearest_kind(const char *kind)
{
    const char *known[SHERD_OP_EXP + 1] = { NULL };
    size_t len = 0;
    for (unsigned i = SHERD_OP_PRODUCT; i <= SHERD_OP_EXP && len < SHERD_OP_EXP; i++)
        if ((known[len] = sherd_op_name((sherd_op)i))) len++;
    return sherd__suggest(kind, known);
}

/* Parses "z1=dot:60000x784x128", "a1=sigmoid:60000x128". */
static int read_operation(const char *text, sherd_meta_operation *op, sherd_diag *d)
{
    static const char hint[] = "NAME=dot:NxKxM or NAME=sigmoid:NxM";
    char name[64], kind[32], rest = 0;
    uint64_t n = 0, k = 0, m = 0;
    *op = (sherd_meta_operation){ .size = sizeof *op };
    int got = sscanf(text, "%63[^=]=%31[a-z]:%" SCNu64 "x%" SCNu64 "x%" SCNu64 "%c", name, kind, &n,
                     &k, &m, &rest);
    op->kind = got >= 2 ? sherd_op_find(kind) : (sherd_op)0;
    bool dot = op->kind == SHERD_OP_PRODUCT;
    const char *meant = got >= 2 && !op->kind ? nearest_kind(kind) : NULL;
    if (meant) {
        char near[80];
        snprintf(near, sizeof near, "did you mean '%s'? %s", meant, hint);
        return sherd__fail(d, SHERD_EINVAL, near, "\"%.80s\": '%s' is not a kind of operation",
                           text, kind);
    }
    if (!op->kind || got != (dot ? 5 : 4) || strlen(name) >= sizeof op->name || strchr(text, '-') ||
        (!dot && text[strlen(text) - 1] == 'x'))
        return sherd__fail(d, SHERD_EINVAL, hint, "expected an operation, found \"%.80s\"", text);
    memcpy(op->name, name, strlen(name) + 1);
    op->n = n;
    op->k = dot ? k : 0;
    op->m = dot ? m : k;
    return SHERD_OK;
}

/* Counts the examples that a recipe trains on. */
static int count_examples(const sherd_recipe *r, const char *path, uint64_t *count, sherd_diag *d)
{
    sherd_data *data = NULL;
    sherd_data_info info = { .size = sizeof info };
    const sherd_data_source from = { .size = sizeof from, .path = path };
    int err = sherd_data_load(&data, r, path ? &from : NULL, NULL, d);
    if (!err) err = sherd_data_get(data, &info, d);
    *count = info.examples;
    sherd_data_free(data);
    return err;
}

/* Adds the operations of a step of --recipe. The data are needed to count them only. */
static int add_recipe(sherd__cli *cli, sherd_meta *meta, sherd_diag *d)
{
    sherd_recipe *recipe = NULL;
    const char *path = sherd__opt_text(cli, "data");
    sherd_step_options step = { .size = sizeof step,
                                .elementwise = sherd__opt_choice(cli, "elementwise") == 1 };
    int err = sherd_recipe_load(&recipe, sherd__opt_text(cli, "recipe"), d);
    if (!err) err = sherd__train_change_recipe(cli, recipe, d);
    if (!err && (path || strstr(sherd_recipe_text(recipe), "batch = all\n")))
        err = count_examples(recipe, path, &step.examples, d);
    if (!err) err = sherd_meta_add_recipe(meta, recipe, &step, d);
    sherd_recipe_free(recipe);
    return err;
}

static int check_recipe(sherd__cli *cli, sherd_diag *d)
{
    static const char *const needs[] = { "data", "batch", "examples", "elementwise", NULL };
    const char *idle = sherd__opt_given(cli, "recipe") ? NULL
                                                       : sherd__opts_forget_unless_argv(cli, needs);
    return idle ? sherd__fail(d, SHERD_EINVAL, "give both or neither",
                              "--%s has no effect without --recipe", idle)
                : SHERD_OK;
}

static int add_operations(sherd__cli *cli, sherd_meta *meta, sherd_diag *d)
{
    uint64_t widths[WIDTHS_MAX];
    size_t len;
    const char *network = sherd__opt_text(cli, "network");
    bool recipe = sherd__opt_given(cli, "recipe");
    int err = check_recipe(cli, d);
    if (err) return err;
    if (!network && !recipe && cli->args_len == 0)
        return sherd__fail(d, SHERD_EINVAL,
                           "--recipe mnist, --network 784,128,10 --samples 60000, or z=dot:6x5x4",
                           "no operations: expected --recipe, --network or NAME=KIND:SHAPE");
    if (!network != !sherd__opt_given(cli, "samples"))
        return sherd__fail(d, SHERD_EINVAL, "give both or neither",
                           "--network and --samples are used together");
    err = network ? read_widths(network, widths, &len, d) : SHERD_OK;
    if (network && !err)
        err = sherd_meta_add_network(meta, widths, len, (uint64_t)sherd__opt_int(cli, "samples"),
                                     d);
    if (recipe && !err) err = add_recipe(cli, meta, d);
    for (int i = 0; i < cli->args_len && !err; i++) {
        sherd_meta_operation op;
        err = read_operation(cli->args[i], &op, d);
        if (!err) err = sherd_meta_add(meta, &op, d);
    }
    return err;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int new_from_options(sherd__cli *cli, sherd_meta **meta, sherd_diag *d)
{
    uint8_t seed[32];
    const char *path = sherd__opt_text(cli, "seed");
    sherd_meta_settings s = {
        .size = sizeof s,
        .nodes = (uint32_t)sherd__opt_int(cli, "nodes"),
        .group = (uint32_t)sherd__opt_int(cli, "group"),
        .balanced = sherd__opt_choice(cli, "exposure") == 1,
        .shuffle_rows = sherd__opt_flag(cli, "shuffle-rows"),
    };
    int err = path ? sherd__seed_read(seed, path, d) : SHERD_OK;
    if (!err) err = sherd_meta_new(meta, &s, path ? seed : NULL, d);
    sherd__wipe(seed, sizeof seed);
    return err ? err : add_operations(cli, *meta, d);
}

static int count_exposures(sherd_meta *meta, size_t i, double *seconds, sherd_diag *d)
{
    uint64_t *counts = NULL;
    double began = sherd__clock_s();
    int err = sherd__meta_count_exposures(meta, i, &counts, d);
    *seconds = sherd__clock_s() - began;
    sherd__free(counts);
    return err;
}

/* Times the exposures, which are reported for the seed form. The expanded form's arrays are timed
 * while they are written. The first use of the cipher in a process loads OpenSSL, which must not
 * count for an operation: one of other metadata comes first. */
static int time_exposures(sherd_meta *meta, double *seconds, sherd_diag *d)
{
    const sherd_meta_settings one = { .size = sizeof one, .nodes = 1 };
    const sherd_meta_operation small = {
        .size = sizeof small, .name = "w", .kind = SHERD_OP_PRODUCT, 1, 1, 1
    };
    sherd_meta *first = NULL;
    double unused;
    int err = sherd_meta_new(&first, &one, NULL, d);
    if (!err) err = sherd_meta_add(first, &small, d);
    if (!err) err = count_exposures(first, 0, &unused, d);
    for (size_t i = 0; i < sherd_meta_count(meta) && !err; i++)
        err = count_exposures(meta, i, &seconds[i], d);
    sherd_meta_free(first);
    return err;
}

int sherd__meta_build(sherd__cli *cli, sherd_diag *d)
{
    sherd_meta *meta = NULL;
    char text[24];
    uint64_t size = 0;
    json_t *json = cli->json ? sherd__cli_json_new(cli) : NULL;
    double *seconds = NULL, began = sherd__clock_s(), made = 0, took = 0;
    sherd_meta_save_options opt = {
        .size = sizeof opt,
        .expanded = strcmp(sherd__opt_text(cli, "form"), "expanded") == 0,
        .deflate = sherd__opt_flag(cli, "deflate"),
        .without_seed = sherd__opt_flag(cli, "without-seed"),
    };
    const char *path = sherd__opt_text(cli, "output");
    int err = sherd__paths_differ(cli, 0, d);
    if (!err && opt.without_seed && !opt.expanded)
        err = sherd__fail(d, SHERD_EINVAL, "add --form expanded, or leave --without-seed out",
                          "--without-seed needs the expanded form: the seed form contains nothing "
                          "else");
    if (!err && !sherd__opt_flag(cli, "force")) err = sherd__paths_replace_meta(path, d);
    if (!err) err = new_from_options(cli, &meta, d);
    made = sherd__clock_s() - began;
    if (!err && !(seconds = sherd__calloc(sherd_meta_count(meta), sizeof *seconds)))
        err = sherd__fail_memory(d, "the times of the operations");
    if (!err && opt.expanded) opt.seconds = seconds;
    else if (!err) err = time_exposures(meta, seconds, d);
    if (!err) {
        began = sherd__clock_s();
        err = sherd__meta_write(cli, meta, false, &opt, &size, d);
        took = sherd__clock_s() - began;
    }
    if (!err) err = sherd__meta_print_operations(meta, seconds, json, d);
    if (!err)
        sherd__meta_print_settings(meta, opt.expanded, !(opt.expanded && opt.without_seed), json);
    if (!err && !json) printf("metadata made in %s\n", sherd__meta_time(made, text));
    if (!err && json) json_object_set_new(json, "seconds_made", json_real(made));
    if (!err) {
        err = sherd__meta_print_file(cli, size, took, json, d);
        json = NULL;
    }
    json_decref(json);
    sherd__free(seconds);
    sherd_meta_free(meta);
    return err;
}
