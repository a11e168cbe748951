/*
 * `sherd meta build | show | expand | compact | verify`: metadata files on the command line. All
 * that is decided here is what to say; sherd/meta.h does the work.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/seed.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/wipe.h"
#include "crypto/perm.h"
#include "sherd/meta.h"

#define WIDTHS_MAX 64
#define COUNTS_PER_LINE 12
#define EXPANDED_MAX 0x1p40 /* bytes; each entry takes one at least */
/* Below this an expanded file is written in a moment, and no progress is shown. */
#define PROGRESS_FROM ((uint64_t)1 << 30)

static int no_memory(sherd_diag *d)
{
    return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
}

/* ---- progress and Ctrl-C --------------------------------------------------------------------- */

typedef struct watcher {
    sherd__progress_line line;
    bool quiet;
} watcher;

static int watch(void *ctx, uint64_t done, uint64_t total)
{
    watcher *w = ctx;
    if (!w->quiet && total >= PROGRESS_FROM)
        sherd__progress_update(&w->line, done >> 20, total >> 20, NULL, sherd__clock_s());
    return sherd__cli_interrupted();
}

static void watch_begin(watcher *w, const sherd__cli *cli, sherd_meta *meta)
{
    w->quiet = cli->quiet;
    sherd__progress_init(&w->line, stderr, SHERD__PROGRESS_AUTO, cli->title, "MiB",
                         sherd__clock_s());
    sherd_meta_watch(meta, watch, w);
}

static void watch_end(watcher *w, sherd_meta *meta)
{
    sherd_meta_watch(meta, NULL, NULL);
    sherd__progress_fini(&w->line);
}

/* ---- reading what a user asked for ----------------------------------------------------------- */

/* "784,128,10" */
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
                               "--network: expected widths with commas between, found \"%.60s\"",
                               text);
        widths[(*len)++] = n;
        if (!*end) return SHERD_OK;
        p = end + 1;
    }
}

/* "z1=dot:60000x784x128", "a1=sigmoid:60000x128" */
static int read_operation(const char *text, sherd_meta_operation *op, sherd_diag *d)
{
    static const char hint[] = "NAME=dot:NxKxM or NAME=sigmoid:NxM";
    char name[64], kind[32], rest = 0;
    uint64_t n = 0, k = 0, m = 0;
    *op = (sherd_meta_operation){ .n = 0 };
    int got = sscanf(text, "%63[^=]=%31[a-z]:%" SCNu64 "x%" SCNu64 "x%" SCNu64 "%c", name, kind,
                     &n, &k, &m, &rest);
    op->kind = (sherd_meta_kind)(got >= 2 ? sherd_meta_kind_find(kind) : 0);
    bool dot = op->kind == SHERD_META_DOT;
    if (!op->kind || got != (dot ? 5 : 4) || strlen(name) >= sizeof op->name ||
        strchr(text, '-') || (!dot && text[strlen(text) - 1] == 'x'))
        return sherd__fail(d, SHERD_EINVAL, hint, "expected an operation, found \"%.80s\"", text);
    memcpy(op->name, name, strlen(name) + 1);
    op->n = n;
    op->k = dot ? k : 0;
    op->m = dot ? m : k;
    return SHERD_OK;
}

static int add_operations(sherd__cli *cli, sherd_meta *meta, sherd_diag *d)
{
    uint64_t widths[WIDTHS_MAX];
    size_t len;
    const char *network = sherd__opt_text(cli, "network");
    if (!network && cli->args_len == 0)
        return sherd__fail(d, SHERD_EINVAL, "--network 784,128,10 --samples 60000, or z=dot:6x5x4",
                           "no operations: expected --network or NAME=KIND:SHAPE");
    if (!network != !sherd__opt_given(cli, "samples"))
        return sherd__fail(d, SHERD_EINVAL, "give both or neither",
                           "--network and --samples belong together");
    int err = network ? read_widths(network, widths, &len, d) : SHERD_OK;
    if (network && !err)
        err =
            sherd_meta_add_network(meta, widths, len, (uint64_t)sherd__opt_int(cli, "samples"), d);
    for (int i = 0; i < cli->args_len && !err; i++) {
        sherd_meta_operation op;
        err = read_operation(cli->args[i], &op, d);
        if (!err) err = sherd_meta_add(meta, &op, d);
    }
    return err;
}

/* --seed FILE into a loaded file, where given. */
static int supply_seed(sherd__cli *cli, sherd_meta *meta, sherd_diag *d)
{
    uint8_t seed[32];
    const char *path = sherd__opt_text(cli, "seed");
    if (!path) return SHERD_OK;
    int err = sherd__seed_read(seed, path, d);
    if (!err) err = sherd_meta_set_seed(meta, seed, d);
    sherd__wipe(seed, sizeof seed);
    return err;
}

/* ---- telling what there is ------------------------------------------------------------------- */

/* How many exposures each node has; *counts is the caller's (nodes of them). */
static int count_exposures(sherd_meta *meta, size_t i, uint64_t **counts, sherd_diag *d)
{
    uint64_t *out = sherd__calloc(sherd_meta_settings_of(meta)->nodes, sizeof *out);
    int err = out ? sherd_meta_exposure_counts(meta, i, out, d) : no_memory(d);
    if (err) sherd__free(out);
    else *counts = out;
    return err;
}

static const char *time_text(double s, char out[24])
{
    if (s < 1) snprintf(out, 24, "%.3g ms", s * 1e3);
    else sherd__cli_seconds(s, out);
    return out;
}

static void print_operation(const sherd_meta *meta, size_t i, const uint64_t *counts,
                            const double *seconds)
{
    const sherd_meta_operation *op = sherd_meta_at(meta, i);
    uint32_t nodes = sherd_meta_settings_of(meta)->nodes;
    char shape[48], size[24], took[24] = "";
    snprintf(shape, sizeof shape, "%" PRIu64 " x %" PRIu64, sherd_meta_table_rows(op), op->m);
    printf("%-19s %-8s %15s  %10s", op->name, sherd_meta_kind_name(op->kind), shape,
           sherd__cli_bytes(sherd_meta_bytes(meta, i), size));
    if (seconds) printf("  %9s", time_text(seconds[i], took));
    printf("  exposures");
    for (uint32_t n = 0; n < nodes; n++)
        printf("%s%" PRIu64, n && n % COUNTS_PER_LINE == 0 ? "\n                    " : " ",
               counts[n]);
    printf("%s\n", !seconds && op->used ? "  (used)" : "");
}

static json_t *json_of_operation(const sherd_meta *meta, size_t i, const uint64_t *counts,
                                 const double *seconds)
{
    const sherd_meta_operation *op = sherd_meta_at(meta, i);
    json_t *o = json_object(), *list = json_array();
    json_t *shape = op->kind == SHERD_META_DOT
                        ? json_pack("[I,I,I]", (json_int_t)op->n, (json_int_t)op->k,
                                    (json_int_t)op->m)
                        : json_pack("[I,I]", (json_int_t)op->n, (json_int_t)op->m);
    for (uint32_t n = 0; n < sherd_meta_settings_of(meta)->nodes; n++)
        json_array_append_new(list, json_integer((json_int_t)counts[n]));
    json_object_set_new(o, "name", json_string(op->name));
    json_object_set_new(o, "kind", json_string(sherd_meta_kind_name(op->kind)));
    json_object_set_new(o, "shape", shape);
    json_object_set_new(o, "rows", json_integer((json_int_t)sherd_meta_table_rows(op)));
    json_object_set_new(o, "length", json_integer((json_int_t)op->m));
    json_object_set_new(o, "exposures", list);
    json_object_set_new(o, "bytes_expanded", json_integer((json_int_t)sherd_meta_bytes(meta, i)));
    json_object_set_new(o, "used", json_boolean(op->used));
    if (seconds) json_object_set_new(o, "seconds", json_real(seconds[i]));
    return o;
}

/* A line (or JSON object) for each operation; json may be NULL. */
static int tell_operations(sherd_meta *meta, const double *seconds, json_t *json, sherd_diag *d)
{
    json_t *list = json ? json_array() : NULL;
    int err = SHERD_OK;
    if (!json)
        printf("%-19s %-8s %15s  %10s%s\n", "operation", "kind", "rows x length", "expanded",
               seconds ? "   made in" : "");
    for (size_t i = 0; i < sherd_meta_count(meta) && !err; i++) {
        uint64_t *counts;
        err = count_exposures(meta, i, &counts, d);
        if (err) break;
        if (json) json_array_append_new(list, json_of_operation(meta, i, counts, seconds));
        else print_operation(meta, i, counts, seconds);
        sherd__free(counts);
    }
    if (json) json_object_set_new(json, "operations", list);
    return err;
}

static void tell_settings(const sherd_meta *meta, bool expanded, bool seed, json_t *json)
{
    const sherd_meta_settings *s = sherd_meta_settings_of(meta);
    char hex[65], group[16] = "all";
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", sherd_meta_commitment(meta)[i]);
    if (s->group) snprintf(group, sizeof group, "%" PRIu32, s->group);
    if (!json) {
        printf("%s form, %zu operation%s, %" PRIu32 " node%s, %s exposure, group %s%s, seed %s\n",
               expanded ? "expanded" : "seed", sherd_meta_count(meta),
               sherd_meta_count(meta) == 1 ? "" : "s", s->nodes, s->nodes == 1 ? "" : "s",
               s->balanced ? "balanced" : "uniform", group,
               s->shuffle_rows ? ", rows shuffled" : "", seed ? "held" : "not held");
        return;
    }
    json_object_set_new(json, "form", json_string(expanded ? "expanded" : "seed"));
    json_object_set_new(json, "nodes", json_integer(s->nodes));
    json_object_set_new(json, "exposure", json_string(s->balanced ? "balanced" : "uniform"));
    json_object_set_new(json, "group", s->group ? json_integer(s->group) : json_string("all"));
    json_object_set_new(json, "shuffle_rows", json_boolean(s->shuffle_rows));
    json_object_set_new(json, "seed_held", json_boolean(seed));
    json_object_set_new(json, "seed_commitment", json_string(hex));
}

/* The file that a verb has written, `seconds` of which were writing (and making what is
 * streamed). */
static int tell_file(sherd__cli *cli, uint64_t size, double seconds, json_t *json, sherd_diag *d)
{
    char bytes[24], took[24];
    const char *path = sherd__opt_text(cli, "output");
    if (!json) {
        printf("%s: %s, written in %s\n", path, sherd__cli_bytes(size, bytes),
               time_text(seconds, took));
        return SHERD_OK;
    }
    json_object_set_new(json, "file", json_string(path));
    json_object_set_new(json, "bytes", json_integer((json_int_t)size));
    json_object_set_new(json, "seconds", json_real(seconds));
    return sherd__cli_json_end(cli, json, d);
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Free bytes where `path` is to be; UINT64_MAX where that is unknown or no file. */
static uint64_t free_at(const char *path)
{
    char folder[PATH_MAX];
    struct statvfs fs;
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    if ((stat(path, &st) == 0 && !S_ISREG(st.st_mode)) || len >= sizeof folder) return UINT64_MAX;
    memcpy(folder, path, len);
    folder[len] = '\0';
    if (statvfs(len ? folder : ".", &fs) != 0) return UINT64_MAX;
    return (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* Hours of writing that cannot end well are refused before they begin. Deflate may take an array to
 * a quarter at best. */
static int check_room(const sherd_meta *meta, const sherd_meta_save_options *opt, const char *path,
                      sherd_diag *d)
{
    static const char hint[] = "the seed form (--form seed) holds the same in 32 bytes";
    double entries = 0;
    uint64_t bytes = 0, room = opt->expanded ? free_at(path) : UINT64_MAX;
    char needs[24], has[24];
    for (size_t i = 0; i < sherd_meta_count(meta) && opt->expanded; i++) {
        const sherd_meta_operation *op = sherd_meta_at(meta, i);
        entries +=
            (double)sherd_meta_table_rows(op) * (double)op->m + (double)op->k * (double)op->n;
        if (entries > EXPANDED_MAX)
            return sherd__fail(d, SHERD_EINVAL, hint,
                               "the expanded form of %s and what is before it would be more than "
                               "%s",
                               op->name, sherd__cli_bytes((uint64_t)EXPANDED_MAX, needs));
        bytes += sherd_meta_bytes(meta, i);
    }
    if ((opt->deflate ? bytes / 4 : bytes) <= room) return SHERD_OK;
    return sherd__fail(d, SHERD_EIO, hint, "%s needs %s, and its disk has %s left", path,
                       sherd__cli_bytes(bytes, needs), sherd__cli_bytes(room, has));
}

/* ---- build ----------------------------------------------------------------------------------- */

static int new_from_options(sherd__cli *cli, sherd_meta **meta, sherd_diag *d)
{
    uint8_t seed[32];
    const char *path = sherd__opt_text(cli, "seed");
    sherd_meta_settings s = {
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

/* What is told of the seed form: exposures alone. The arrays of the other are timed as they are
 * written. The first use of the cipher in a process loads OpenSSL, which is no operation's time. */
static int time_exposures(sherd_meta *meta, double *seconds, sherd_diag *d)
{
    uint32_t none;
    int err = sherd__exposures(sherd_meta_seed(meta), 1, 1, 0, &none);
    for (size_t i = 0; i < sherd_meta_count(meta) && !err; i++) {
        uint64_t *counts = NULL;
        double began = sherd__clock_s();
        err = count_exposures(meta, i, &counts, d);
        seconds[i] = sherd__clock_s() - began;
        sherd__free(counts);
    }
    return err;
}

static int run_build(sherd__cli *cli, sherd_diag *d)
{
    sherd_meta *meta = NULL;
    watcher w;
    char text[24];
    uint64_t size = 0;
    json_t *json = cli->json ? sherd__cli_json_new(cli) : NULL;
    double *seconds = NULL, began = sherd__clock_s(), made = 0, took = 0;
    sherd_meta_save_options opt = {
        .expanded = strcmp(sherd__opt_text(cli, "form"), "expanded") == 0,
        .deflate = sherd__opt_flag(cli, "deflate"),
        .without_seed = sherd__opt_flag(cli, "without-seed"),
    };
    const char *path = sherd__opt_text(cli, "output");
    int err = sherd__paths_differ(cli, 0, d);
    if (!err && opt.without_seed && !opt.expanded)
        err = sherd__fail(d, SHERD_EINVAL, "add --form expanded, or leave --without-seed out",
                          "--without-seed leaves nothing of the seed form");
    if (!err && !sherd__opt_flag(cli, "force")) err = sherd__paths_replace_meta(path, d);
    if (!err) err = new_from_options(cli, &meta, d);
    if (!err) err = check_room(meta, &opt, path, d);
    made = sherd__clock_s() - began;
    if (!err && !(seconds = sherd__calloc(sherd_meta_count(meta), sizeof *seconds)))
        err = no_memory(d);
    if (!err && opt.expanded) opt.seconds = seconds;
    else if (!err) err = time_exposures(meta, seconds, d);
    if (!err) {
        began = sherd__clock_s();
        watch_begin(&w, cli, meta);
        err = sherd_meta_save(meta, path, &opt, &size, d);
        watch_end(&w, meta);
        took = sherd__clock_s() - began;
    }
    if (!err) err = tell_operations(meta, seconds, json, d);
    if (!err) tell_settings(meta, opt.expanded, !(opt.expanded && opt.without_seed), json);
    if (!err && !json) printf("metadata made in %s\n", time_text(made, text));
    if (!err && json) json_object_set_new(json, "seconds_made", json_real(made));
    if (!err) {
        err = tell_file(cli, size, took, json, d);
        json = NULL;
    }
    json_decref(json);
    sherd__free(seconds);
    sherd_meta_free(meta);
    return err;
}

/* ---- show, verify ---------------------------------------------------------------------------- */

static int run_show(sherd__cli *cli, sherd_diag *d)
{
    sherd_meta *meta = NULL;
    json_t *json = cli->json ? sherd__cli_json_new(cli) : NULL;
    int err = sherd_meta_load(&meta, cli->args[0], d);
    if (!err) tell_settings(meta, sherd_meta_expanded(meta), sherd_meta_seed(meta) != NULL, json);
    if (!err) err = tell_operations(meta, NULL, json, d);
    if (!err && json) {
        json_object_set_new(json, "file", json_string(cli->args[0]));
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
    watcher w;
    int err = sherd_meta_load(&meta, cli->args[0], d);
    if (!err) err = supply_seed(cli, meta, d);
    if (!err) {
        watch_begin(&w, cli, meta);
        err = sherd_meta_verify(meta, d);
        watch_end(&w, meta);
    }
    bool seed = !err && sherd_meta_seed(meta) != NULL;
    size_t count = err ? 0 : sherd_meta_count(meta);
    bool expanded = !err && sherd_meta_expanded(meta);
    sherd_meta_free(meta);
    if (err) return err;
    if (cli->json) {
        json_t *json = sherd__cli_json_new(cli);
        json_object_set_new(json, "file", json_string(cli->args[0]));
        json_object_set_new(json, "operations", json_integer((json_int_t)count));
        json_object_set_new(json, "regenerated", json_boolean(seed && expanded));
        return sherd__cli_json_end(cli, json, d);
    }
    printf("%s: sound: %zu operations%s\n", cli->args[0], count,
           !expanded ? ", seed as committed to"
           : seed    ? ", every number as the seed gives it"
                     : ", permutations and their inverses (the seed is not known)");
    return SHERD_OK;
}

/* ---- expand, compact ------------------------------------------------------------------------- */

/* Saves a file that was loaded; `verified`: after all of it was checked. */
static int convert(sherd__cli *cli, const sherd_meta_save_options *opt, bool verified,
                   sherd_diag *d)
{
    sherd_meta *meta = NULL;
    watcher w;
    uint64_t size = 0;
    double began = sherd__clock_s();
    const char *path = sherd__opt_text(cli, "output");
    int err = sherd__paths_differ(cli, 0, d);
    if (!err && !sherd__opt_flag(cli, "force") && !sherd__paths_same(cli->args[0], path))
        err = sherd__paths_replace_meta(path, d);
    if (!err) err = sherd_meta_load(&meta, cli->args[0], d);
    if (!err) err = supply_seed(cli, meta, d);
    if (!err) err = check_room(meta, opt, path, d);
    if (!err && verified && !sherd_meta_seed(meta) && sherd_meta_expanded(meta)) {
        err = sherd_meta_verify(meta, d); /* a seed that was changed is told as such */
        if (!err)
            err = sherd__fail(d, SHERD_EFORMAT, "give the seed with --seed FILE",
                              "%s: does not hold its seed, and permutations cannot be turned back "
                              "into one", cli->args[0]);
    }
    if (!err) {
        watch_begin(&w, cli, meta);
        if (verified) err = sherd_meta_verify(meta, d);
        if (!err) err = sherd_meta_save(meta, path, opt, &size, d);
        watch_end(&w, meta);
    }
    sherd_meta_free(meta);
    return err ? err : tell_file(cli, size, sherd__clock_s() - began,
                                 cli->json ? sherd__cli_json_new(cli) : NULL, d);
}

static int run_expand(sherd__cli *cli, sherd_diag *d)
{
    sherd_meta_save_options opt = {
        .expanded = true,
        .deflate = sherd__opt_flag(cli, "deflate"),
        .without_seed = sherd__opt_flag(cli, "without-seed"),
    };
    return convert(cli, &opt, false, d);
}

static int run_compact(sherd__cli *cli, sherd_diag *d)
{
    sherd_meta_save_options opt = { .expanded = false };
    return convert(cli, &opt, true, d);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const char *const forms[] = {"seed", "expanded", NULL};

#define OPT_DEFLATE                                                                                \
    {.name = "deflate", .type = SHERD__FLAG,                                                       \
     .help = "compress the arrays (to half at rows of ten, not at all at long rows)"}
#define OPT_WITHOUT_SEED                                                                           \
    {.name = "without-seed", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,                   \
     .help = "expanded form: leave the seed out; the file cannot be compacted then"}
#define OPT_FORCE                                                                                  \
    {.name = "force", .type = SHERD__FLAG, .flags = SHERD__OPT_ONLY_ARGV,                          \
     .help = "replace metadata that has served operands, or a file that is no metadata"}
#define OPT_KNOWN_SEED                                                                             \
    {.name = "seed", .type = SHERD__FILE, .arg = "FILE",                                           \
     .flags = SHERD__OPT_NO_ENV | SHERD__OPT_ONLY_ARGV,                                            \
     .help = "the 32 bytes that the file was built from, where it does not hold them"}

static const sherd__option build_options[] = {
    {.name = "network", .type = SHERD__TEXT, .arg = "WIDTHS", .flags = SHERD__OPT_ONLY_ARGV,
     .help = "the operations of one training step: inputs,hidden...,outputs"},
    {.name = "samples", .type = SHERD__INT, .arg = "N", .min = 0, .max = 4294967295.0,
     .flags = SHERD__OPT_ONLY_ARGV, .help = "rows of the network's training set"},
    {.name = "nodes", .type = SHERD__INT, .arg = "N", .min = 1, .max = 65535,
     .flags = SHERD__OPT_REQUIRED | SHERD__OPT_ONLY_ARGV, .help = "nodes to deal exposures to"},
    SHERD__OPT_OUTPUT("META.npz"),
    OPT_FORCE,
    {.name = "form", .type = SHERD__CHOICE, .arg = "FORM", .preset = "seed", .choices = forms,
     .help = "seed (32 bytes that all derives from) or expanded (arrays for numpy)"},
    OPT_DEFLATE,
    OPT_WITHOUT_SEED,
    SHERD__OPT_SEED,
    {.name = "group", .type = SHERD__INT, .arg = "G", .min = 1, .max = 4294967295.0, .word = "all",
     .word_value = 0, .preset = "all",
     .help = "columns that shall share one permutation in products, 1 to all"},
    {.name = "exposure", .type = SHERD__CHOICE, .arg = "HOW", .preset = "uniform",
     .choices = sherd__choices_exposure,
     .help = "draw each column's node (uniform) or deal equal counts (balanced)"},
    {.name = "shuffle-rows", .type = SHERD__FLAG,
     .help = "products: A's rows travel in another order in every group"},
    {0},
};
static const sherd__option show_options[] = {{0}};
static const sherd__option verify_options[] = {OPT_KNOWN_SEED, {0}};
static const sherd__option expand_options[] = {SHERD__OPT_OUTPUT("META.npz"), OPT_FORCE,
                                               OPT_DEFLATE,
                                               OPT_WITHOUT_SEED, OPT_KNOWN_SEED, {0}};
static const sherd__option compact_options[] = {SHERD__OPT_OUTPUT("META.npz"), OPT_FORCE,
                                                OPT_KNOWN_SEED, {0}};

static const sherd__example build_examples[] = {
    {"sherd meta build --network 784,128,10 --samples 60000 --nodes 7 -o meta.npz",
     "the eleven operations of one training step, in 32 bytes"},
    {"sherd meta build z=dot:1000x512x64 --nodes 3 --form expanded -o z.npz",
     "one product, as arrays for numpy"},
    {"sherd multiply A.npy B.npy -o C.npy -n 3 --meta z.npz", "a product that uses them"},
    {0},
};
static const sherd__example show_examples[] = {
    {"sherd meta show meta.npz", "operations, and how many exposures each node has"},
    {"sherd meta show meta.npz --json", "the same for programs"},
    {"python3 -c 'import numpy; print(numpy.load(\"meta.npz\").files)'", "what numpy sees"},
    {0},
};
static const sherd__example verify_examples[] = {
    {"sherd meta verify meta.npz", "checks every number; exit 3 names operation and row"},
    {"sherd meta verify shared.npz --seed seed.bin", "the same of a file without its seed"},
    {"sherd meta verify meta.npz && echo sound", "in a script"},
    {0},
};
static const sherd__example expand_examples[] = {
    {"sherd meta expand meta.npz -o arrays.npz", "arrays for numpy"},
    {"sherd meta expand meta.npz -o arrays.npz --deflate", "smaller, and slower to write"},
    {"sherd meta expand meta.npz -o shared.npz --without-seed",
     "for one who may undo this step's shuffles and no other"},
    {0},
};
static const sherd__example compact_examples[] = {
    {"sherd meta compact arrays.npz -o meta.npz", "back to 32 bytes, once they give every number"},
    {"sherd meta compact shared.npz --seed seed.bin -o meta.npz", "of a file without its seed"},
    {"sherd meta compact arrays.npz -o arrays.npz", "in place"},
    {0},
};

static const sherd__verb build = {
    .name = "build",
    .usage = "[NAME=KIND:SHAPE ...] -o META.npz",
    .summary = "make exposures and permutations for the operations of a job",
    .details = "Operations are those of --network, then those named: NAME=dot:NxKxM for an n x k "
               "by k x m product, NAME=sigmoid:NxM (minus, square, multiply, relu, tanh, exp) for "
               "an element-wise one. The seed form derives everything from 32 fresh bytes; the "
               "expanded form holds NAME.exposures, NAME.enshuffles and NAME.unshuffles as arrays. "
               "Whoever has the file can undo the permutations: it is written with mode 0600.",
    .examples = build_examples,
    .options = build_options,
    .args_min = 0,
    .args_max = -1,
    .run = run_build,
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
    .summary = "write the arrays that a seed stands for",
    .examples = expand_examples,
    .options = expand_options,
    .args_min = 1,
    .args_max = 1,
    .run = run_expand,
};
static const sherd__verb compact = {
    .name = "compact",
    .usage = "ARRAYS.npz -o META.npz",
    .summary = "reduce arrays to the seed that they derive from",
    .details = "Only where the seed is known: held by the file, or given with --seed. Every number "
               "is compared with what the seed gives before anything is written.",
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
    .details = "Against the seed where it is known, else for what must hold by itself: exposures "
               "name nodes, every row is a permutation, unshuffles are the inverses.",
    .examples = verify_examples,
    .options = verify_options,
    .args_min = 1,
    .args_max = 1,
    .run = run_verify,
};

static const sherd__verb *const subs[] = {&build, &show, &expand, &compact, &verify, NULL};

const sherd__verb sherd__verb_meta = {
    .name = "meta",
    .usage = "build|show|expand|compact|verify",
    .summary = "make and check metadata files: exposures and permutations",
    .examples = build_examples,
    .subs = subs,
};
