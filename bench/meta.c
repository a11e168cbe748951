/*
 * Metadata of one training step of a 784-128-10 network over 60000 samples: the eleven operations
 * expanded into memory on this thread, compared with numpy's loop, and their seed form.
 *
 * numpy's loop fills the same tables as published: it shuffles a row, then writes each entry of its
 * inverse. A second numpy figure inverts a row by one indexed assignment, which is the fastest way
 * in numpy. Both run on a sample of rows of every length and are scaled by the number of indices.
 */
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/wipe.h"
#include "crypto/perm.h"
#include "sherd/meta.h"

static const uint64_t widths[] = { 784, 128, 10 };

typedef struct tables {
    sherd_meta *meta;
    uint64_t indices; /* of all operations, without inverses */
    size_t bytes, longest;
    uint8_t *all;   /* enshuffles and unshuffles of each operation */
    uint32_t *some; /* exposures, or one row, of one operation: `longest` entries */
} tables;

static int new_meta(sherd_meta **out, const sherd__bench *b, sherd_diag *d)
{
    sherd_meta_settings settings = { .nodes = SHERD__BENCH_NODES };
    int err = sherd_meta_new(out, &settings, NULL, d);
    return err ? err : sherd_meta_add_network(*out, widths, 3, b->quick ? 600 : 60000, d);
}

static int begin(tables *t, const sherd__bench *b, sherd_diag *d)
{
    *t = (tables){ 0 };
    int err = new_meta(&t->meta, b, d);
    for (size_t i = 0; !err && i < sherd_meta_count(t->meta); i++) {
        const sherd_meta_operation *op = sherd_meta_at(t->meta, i);
        uint64_t n = sherd_meta_table_rows(op) * op->m, k = sherd_meta_columns(op);
        t->indices += n;
        t->bytes += (size_t)(2 * n * sherd__perm_width(op->m));
        if (k > t->longest) t->longest = (size_t)k;
        if (op->m > t->longest) t->longest = (size_t)op->m;
    }
    if (err) return err;
    t->all = sherd__alloc_large(t->bytes);
    t->some = sherd__calloc(t->longest, sizeof *t->some);
    if (!t->all || !t->some)
        return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for the tables");
    memset(t->all, 0, t->bytes);
    return 0;
}

static void end(tables *t)
{
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

/* Checks that the timed work produced the metadata: the last row of each table must equal the row
 * that files get. */
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

/* ---- numpy ----------------------------------------------------------------------------------- */

static const char numpy_loop[] = "import time\n"
                                 "limit, total, loop, best = float(sys.argv[1]), 0, 0., 0.\n"
                                 "rng = np.random.default_rng(1)\n"
                                 "def sample(n, rows, one):\n"
                                 "    en, un = np.zeros((rows, n), int), np.zeros((rows, n), int)\n"
                                 "    done, began = 0, time.perf_counter()\n"
                                 "    while True:\n"
                                 "        for c in range(rows): one(en, un, c, n)\n"
                                 "        done += rows * n\n"
                                 "        took = time.perf_counter() - began\n"
                                 "        if took > limit: return took / done\n"
                                 "def as_published(en, un, c, n):\n"
                                 "    en[c] = np.arange(n)\n"
                                 "    np.random.shuffle(en[c])\n"
                                 "    for i in range(n): un[c, en[c, i]] = i\n"
                                 "def at_best(en, un, c, n):\n"
                                 "    row = np.arange(n)\n"
                                 "    rng.shuffle(row)\n"
                                 "    en[c] = row\n"
                                 "    un[c, row] = np.arange(n)\n"
                                 "for arg in sys.argv[2:]:\n"
                                 "    n, count = map(int, arg.split(':'))\n"
                                 "    total += count\n"
                                 "    rows = max(1, min(64, 50000 // n))\n"
                                 "    loop += count * sample(n, rows, as_published)\n"
                                 "    best += count * sample(n, rows, at_best)\n"
                                 "print(loop / total * 1e9, best / total * 1e9)\n";

/* Lists the lengths of rows, each once, with the number of indices in rows of that length:
 * "784:47040000". */
static size_t count_lengths(const tables *t, char counts[][40], size_t max)
{
    uint64_t lengths[16], indices[16] = { 0 };
    size_t len = 0;
    for (size_t i = 0; i < sherd_meta_count(t->meta); i++) {
        const sherd_meta_operation *op = sherd_meta_at(t->meta, i);
        size_t at = 0;
        while (at < len && lengths[at] != op->m) at++;
        if (at == len && len == max) continue;
        if (at == len) lengths[len++] = op->m;
        indices[at] += sherd_meta_table_rows(op) * op->m;
    }
    for (size_t i = 0; i < len; i++)
        snprintf(counts[i], 40, "%llu:%llu", (unsigned long long)lengths[i],
                 (unsigned long long)indices[i]);
    return len;
}

/* Measures ns per index of the published loop and of numpy's fastest way. */
static int time_numpy(const tables *t, const sherd__bench *b, double out[2], sherd_diag *d)
{
    char limit[16], counts[8][40];
    const char *args[10] = { limit };
    size_t len = count_lengths(t, counts, 8);
    snprintf(limit, sizeof limit, "%g", b->quick ? 0.02 : 0.3);
    for (size_t i = 0; i < len; i++) args[i + 1] = counts[i];
    return sherd__numpy_run(b, numpy_loop, args, 0, out, 2, d);
}

/* ---- the expanded form ----------------------------------------------------------------------- */

static int time_command(sherd__bench *b, const char *form, double *seconds, sherd_diag *d)
{
    char path[PATH_MAX];
    sherd__child c;
    const char *argv[] = { "meta",       "build",     "--network",
                           "784,128,10", "--samples", b->quick ? "600" : "60000",
                           "--nodes",    "7",         "--form",
                           form,         "-o",        path,
                           "--quiet",    NULL };
    int err = sherd__bench_path(b, "meta.npz", path, d);
    if (!err) err = sherd__child_self(&c, b, argv, d);
    *seconds = c.seconds;
    unlink(path);
    return err;
}

static int measure(sherd__bench *b, tables *t, sherd__figure *own, sherd__figure *ratio,
                   sherd_diag *d)
{
    double loops[SHERD__BENCH_RUNS_MAX], bests[SHERD__BENCH_RUNS_MAX], command, np[2];
    int runs = sherd__bench_runs(b, 5), with = 0;
    int err = expand(t, d); /* warms pages and caches */
    if (!err) err = compare(t, d);
    for (int i = 0; i < runs && !err; i++) {
        sherd_diag mine = { 0 };
        double began = sherd__clock_s();
        err = expand(t, d);
        double ns = (sherd__clock_s() - began) * 1e9 / (double)t->indices;
        if (err) break;
        sherd__figure_add(own, ns);
        int no = with == i ? time_numpy(t, b, np, &mine) : SHERD_EUNSUPPORTED;
        if (no == 0) {
            loops[with] = np[0];
            bests[with++] = np[1];
            sherd__figure_add(ratio, np[0] / ns);
        } else if (no != SHERD_EUNSUPPORTED) {
            err = sherd__fail(d, no, mine.hint, "%s", mine.message);
        }
    }
    if (!err) err = time_command(b, "expanded", &command, d);
    if (err) return err;
    sherd__figure_beside(own, "indices", "indices", (double)t->indices, "with inverses");
    sherd__figure_beside(own, "command_seconds", "whole command, file written and synced", command,
                         "s");
    if (with > 0) {
        sherd__figure_beside(ratio, "numpy_ns", "numpy's loop", sherd__median(loops, with),
                             "ns/index (sampled)");
        sherd__figure_beside(ratio, "numpy_best_ns", "numpy inverting whole rows",
                             sherd__median(bests, with), "ns/index (sampled)");
    } else {
        ratio->remark = "no numpy in /usr/bin/python3: nothing to compare with";
    }
    return 0;
}

int sherd__bench_meta(sherd__bench *b, sherd_diag *d)
{
    sherd__figure own = { .name = "meta-expanded",
                          .unit = "ns/index",
                          .target = 3.5,
                          .what = "metadata of a step, expanded, one core" };
    sherd__figure ratio = { .name = "meta-numpy",
                            .unit = "x",
                            .better = SHERD__HIGHER,
                            .target = 100,
                            .what = "  against numpy's shuffle-and-invert loop" };
    tables t;
    int err = begin(&t, b, d);
    if (!err) err = measure(b, &t, &own, &ratio, d);
    end(&t);
    if (err) return err;
    sherd__bench_tell(b, &own);
    sherd__bench_tell(b, &ratio);
    return 0;
}

/* ---- the seed form --------------------------------------------------------------------------- */

/* Chooses a path in a memory file system if there is one, since disk writes are not to be
 * measured. */
static int seed_path(sherd__bench *b, char out[PATH_MAX], sherd_diag *d)
{
    static const char memory[] = "/dev/shm";
    if (access(memory, W_OK | X_OK) != 0) return sherd__bench_path(b, "seed.npz", out, d);
    snprintf(out, PATH_MAX, "%s/sherd-bench-%ld.npz", memory, (long)getpid());
    return 0;
}

static int build_seed(sherd__bench *b, const char *path, uint64_t *size, double *seconds,
                      sherd_diag *d)
{
    sherd_meta_save_options opt = { .size = sizeof opt, .expanded = false };
    sherd_meta *meta = NULL;
    double began = sherd__clock_s();
    int err = new_meta(&meta, b, d);
    if (!err) err = sherd_meta_save(meta, path, &opt, size, d);
    *seconds = sherd__clock_s() - began;
    sherd_meta_free(meta);
    return err;
}

int sherd__bench_seed(sherd__bench *b, sherd_diag *d)
{
    sherd__figure bytes = { .name = "meta-seed-bytes",
                            .unit = "bytes",
                            .target = 2047,
                            .what = "metadata of a step, seed form" };
    sherd__figure time = {
        .name = "meta-seed-time", .unit = "ms", .target = 1, .what = "  built and written to memory"
    };
    char path[PATH_MAX];
    double seconds = 0, command = 0;
    uint64_t size = 0;
    int err = seed_path(b, path, d), runs = sherd__bench_runs(b, 5);
    if (!err) err = build_seed(b, path, &size, &seconds, d); /* warms up */
    for (int i = 0; i < runs && !err; i++) {
        err = build_seed(b, path, &size, &seconds, d);
        sherd__figure_add(&time, seconds * 1e3);
    }
    unlink(path);
    if (!err) err = time_command(b, "seed", &command, d);
    if (err) return err;
    sherd__figure_add(&bytes, (double)size);
    sherd__figure_beside(&time, "command_ms", "whole command, file synced", command * 1e3, "ms");
    sherd__bench_tell(b, &bytes);
    sherd__bench_tell(b, &time);
    return 0;
}
