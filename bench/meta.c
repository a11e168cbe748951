/*
 * Metadata of one training step of a 784-128-10 network over 60000 samples: the eleven operations
 * expanded into memory on this thread, compared with numpy's loop, and their seed form.
 */
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "core/wipe.h"
#include "crypto/perm.h"
#include "sherd/meta.h"

typedef struct tables {
    sherd_meta *meta;
    uint64_t indices; /* of all operations, without inverses */
    uint8_t *all;     /* enshuffles and unshuffles of each operation */
    uint32_t *some;   /* exposures, or one row, of one operation */
} tables;

static int new_meta(sherd_meta **out, const sherd__bench *b, sherd_diag *d)
{
    static const uint64_t widths[] = { 784, 128, 10 };
    const sherd_meta_settings settings = { .size = sizeof settings, .nodes = SHERD__BENCH_NODES };
    int err = sherd_meta_new(out, &settings, NULL, d);
    return err ? err : sherd_meta_add_network(*out, widths, 3, b->quick ? 600 : 60000, d);
}

static int open_meta(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    tables *t = state;
    size_t bytes = 0, longest = 0;
    (void)spec;
    int err = new_meta(&t->meta, b, d);
    if (err) return err;
    for (size_t i = 0; i < sherd_meta_count(t->meta); i++) {
        const sherd_meta_operation *op = sherd_meta_at(t->meta, i);
        uint64_t n = sherd_meta_table_rows(op) * op->m, k = sherd_meta_columns(op);
        t->indices += n;
        bytes += (size_t)(2 * n * sherd__perm_width(op->m));
        if (k > longest) longest = (size_t)k;
        if (op->m > longest) longest = (size_t)op->m;
    }
    t->all = sherd__alloc_large(bytes);
    t->some = sherd__calloc(longest, sizeof *t->some);
    if (!t->all || !t->some) return sherd__bench_no_memory(d);
    memset(t->all, 0, bytes); /* no page is faulted in while a clock runs */
    return 0;
}

static void close_meta(void *state)
{
    tables *t = state;
    sherd__free(t->all);
    sherd__free(t->some);
    sherd_meta_free(t->meta);
}

/* Expands all tables, including exposures. */
static int expand(tables *t, sherd_diag *d)
{
    uint8_t key[32], *at = t->all;
    int err = 0;
    for (size_t i = 0; !err && i < sherd_meta_count(t->meta); i++) {
        const sherd_meta_operation *op = sherd_meta_at(t->meta, i);
        size_t rows = (size_t)sherd_meta_table_rows(op);
        unsigned width = sherd__perm_width(op->m);
        size_t len = rows * (size_t)op->m * width;
        err = sherd_meta_exposures(t->meta, i, t->some, d);
        if (err) break;
        sherd__perm_key(key, sherd_meta_seed(t->meta), SHERD__PERM_LABEL, i, 0);
        err = sherd__perm_rows(key, 0, rows, (uint32_t)op->m, width, at, at + len);
        if (err) sherd__fail(d, err, NULL, "permutations: %s", sherd_strerror(err));
        at += 2 * len;
    }
    sherd__wipe(key, sizeof key);
    return err;
}

static uint32_t index_at(const uint8_t *p, unsigned width, size_t j)
{
    uint32_t v = p[j * width];
    for (unsigned q = 1; q < width; q++) v |= (uint32_t)p[j * width + q] << 8 * q;
    return v;
}

/* Checks that the timed work made the metadata: the last row of each table must be the row that
 * files get. */
static int compare(const tables *t, sherd_diag *d)
{
    const uint8_t *at = t->all;
    uint32_t *row = t->some;
    for (size_t i = 0; i < sherd_meta_count(t->meta); i++) {
        const sherd_meta_operation *op = sherd_meta_at(t->meta, i);
        size_t m = (size_t)op->m, rows = (size_t)sherd_meta_table_rows(op);
        unsigned width = sherd__perm_width(m);
        const uint8_t *last = at + (rows - 1) * m * width;
        int err = sherd_meta_rows(t->meta, i, SHERD_META_ENSHUFFLES, 0, rows - 1, 1, row, d);
        if (err) return err;
        for (size_t j = 0; j < m; j++)
            if (index_at(last, width, j) != row[j] ||
                index_at(last + rows * m * width, width, row[j]) != j)
                return sherd__fail(d, SHERD_EDIFFERS, NULL, "operation %s: row %zu differs",
                                   op->name, rows - 1);
        at += 2 * rows * m * width;
    }
    return 0;
}

/* Measures numpy on rows of every length, given as LENGTH:INDICES for each operation. */
static int run_numpy(sherd__bench *b, const tables *t, sherd_diag *d)
{
    static const char *const names[] = { "numpy", "numpy-best", NULL };
    const char *args[18] = { b->quick ? "0.02" : "0.3" };
    char counts[16][40];
    for (size_t i = 0; i < sherd_meta_count(t->meta) && i < 16; i++) {
        const sherd_meta_operation *op = sherd_meta_at(t->meta, i);
        snprintf(counts[i], sizeof *counts, "%llu:%llu", (unsigned long long)op->m,
                 (unsigned long long)(sherd_meta_table_rows(op) * op->m));
        args[i + 1] = counts[i];
    }
    return sherd__bench_numpy(b, sherd__bench_permutations_py, args, 0, names, d);
}

static int turn_meta(sherd__bench *b, void *state, sherd_diag *d)
{
    tables *t = state;
    double began = sherd__clock_s();
    int err = expand(t, d);
    sherd__bench_put(b, "ns", (sherd__clock_s() - began) * 1e9 / (double)t->indices);
    if (!err && b->warming) err = compare(t, d);
    return err ? err : run_numpy(b, t, d);
}

/* Times `sherd meta build`, the file written and synced. */
static int time_command(sherd__bench *b, const char *form, sherd_diag *d)
{
    char path[PATH_MAX];
    double seconds = 0;
    const char *argv[] = { "meta",       "build",     "--network",
                           "784,128,10", "--samples", b->quick ? "600" : "60000",
                           "--nodes",    "7",         "--form",
                           form,         "-o",        path,
                           "--quiet",    NULL };
    int err = sherd__bench_path(b, "meta.npz", path, d);
    if (!err) err = sherd__bench_command(b, argv, &seconds, NULL, 0, d);
    sherd__bench_set(b, "command", seconds);
    return err;
}

static int end_meta(sherd__bench *b, void *state, sherd_diag *d)
{
    sherd__bench_set(b, "indices", (double)((tables *)state)->indices);
    return time_command(b, "expanded", d);
}

const sherd__kind sherd__bench_meta = { sizeof(tables), open_meta, turn_meta, end_meta,
                                        close_meta,     false,     false };

/* ---- the seed form --------------------------------------------------------------------------- */

typedef struct seed {
    char path[PATH_MAX];
} seed;

/* Chooses a path in a memory file system if there is one, since disk writes are not to be
 * measured. */
static int open_seed(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    static const char memory[] = "/dev/shm";
    char *path = ((seed *)state)->path;
    (void)spec;
    if (access(memory, W_OK | X_OK) != 0) return sherd__bench_path(b, "seed.npz", path, d);
    snprintf(path, PATH_MAX, "%s/sherd-bench-%ld.npz", memory, (long)getpid());
    return 0;
}

static int turn_seed(sherd__bench *b, void *state, sherd_diag *d)
{
    const sherd_meta_save_options opt = { .size = sizeof opt, .expanded = false };
    sherd_meta *meta = NULL;
    uint64_t size = 0;
    double began = sherd__clock_s();
    int err = new_meta(&meta, b, d);
    if (!err) err = sherd_meta_save(meta, ((seed *)state)->path, &opt, &size, d);
    sherd__bench_put(b, "seconds", sherd__clock_s() - began);
    sherd__bench_set(b, "bytes", (double)size);
    sherd_meta_free(meta);
    return err;
}

static int end_seed(sherd__bench *b, void *state, sherd_diag *d)
{
    (void)state;
    return time_command(b, "seed", d);
}

static void close_seed(void *state)
{
    unlink(((seed *)state)->path);
}

const sherd__kind sherd__bench_seed = { sizeof(seed), open_seed, turn_seed, end_seed,
                                        close_seed,   false,     false };
