/*
 * Metadata in memory: the list of operations, and their exposures and permutations wherever they
 * come from. The tables of a loaded file count before its seed, so that a product uses what its
 * user sees; they stay in the file until asked for, and a row of them is never used before it has
 * been found to be a permutation. A seed that its own file's commitment disowns is treated as
 * unknown.
 */
#include "scheduler/metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "crypto/perm.h"
#include "sherd/product.h"

#define ROWS_BYTES ((size_t)256 << 10)

_Static_assert((int)SHERD_META_SIGMOID == (int)SHERD_OP_SIGMOID &&
                   (int)SHERD_META_MINUS == (int)SHERD_OP_MINUS &&
                   (int)SHERD_META_SQUARE == (int)SHERD_OP_SQUARE &&
                   (int)SHERD_META_MULTIPLY == (int)SHERD_OP_MULTIPLY &&
                   (int)SHERD_META_RELU == (int)SHERD_OP_RELU &&
                   (int)SHERD_META_TANH == (int)SHERD_OP_TANH &&
                   (int)SHERD_META_EXP == (int)SHERD_OP_EXP,
               "element-wise kinds have the numbers of sherd_elementwise");

static int no_memory(sherd_diag *d)
{
    return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
}

const char *sherd__meta_where(const sherd_meta *meta)
{
    return meta->f.npz ? sherd__npz_where(meta->f.npz) : "metadata";
}

/* ---- making ---------------------------------------------------------------------------------- */

int sherd_meta_new(sherd_meta **out, const sherd_meta_settings *settings, const uint8_t *seed,
                   sherd_diag *d)
{
    *out = NULL;
    int err = sherd__metafile_check_settings(settings, d);
    if (err) return err;
    sherd_meta *meta = sherd__calloc(1, sizeof *meta);
    if (!meta) return no_memory(d);
    sherd_entropy os = sherd__entropy_os();
    meta->f.settings = *settings;
    meta->f.has_seed = true;
    if (seed) memcpy(meta->f.seed, seed, sizeof meta->f.seed);
    else os.fill(os.ctx, meta->f.seed, sizeof meta->f.seed);
    sherd__seed_commitment(meta->f.commitment, meta->f.seed);
    *out = meta;
    return SHERD_OK;
}

int sherd_meta_add(sherd_meta *meta, const sherd_meta_operation *op, sherd_diag *d)
{
    if (meta->f.npz)
        return sherd__fail(d, SHERD_EINVAL, "build a new file",
                           "%s: a file takes no more operations", sherd__meta_where(meta));
    return sherd__metafile_add(&meta->f, op, d);
}

static int add(sherd_meta *meta, sherd_meta_kind kind, uint64_t n, uint64_t k, uint64_t m,
               sherd_diag *d, const char *fmt, size_t layer)
{
    sherd_meta_operation op = { .kind = kind, .n = n, .k = k, .m = m };
    snprintf(op.name, sizeof op.name, fmt, layer);
    return sherd_meta_add(meta, &op, d);
}

/* delta of layer l, and with it the gradients of its weights and of its input. */
static int add_backward(sherd_meta *meta, const uint64_t *w, size_t l, uint64_t n, sherd_diag *d)
{
    int err = add(meta, SHERD_META_MULTIPLY, n, 0, w[l], d, "a%zu_dz", l);
    if (!err) /* (rows of the activation) transposed delta: w[l] x n by n x w[l-1] */
        err = add(meta, SHERD_META_DOT, w[l], n, w[l - 1], d, "z%zu_dw", l);
    if (!err && l > 1) /* weights by transposed delta: w[l-1] x w[l] by w[l] x n */
        err = add(meta, SHERD_META_DOT, w[l - 1], w[l], n, d, "z%zu_da", l);
    return err;
}

int sherd_meta_add_network(sherd_meta *meta, const uint64_t *widths, size_t widths_len,
                           uint64_t samples, sherd_diag *d)
{
    size_t layers = widths_len - 1;
    int err = SHERD_OK;
    if (widths_len < 2)
        return sherd__fail(d, SHERD_EINVAL, "784,128,10 has inputs, a hidden layer and outputs",
                           "a network has at least two widths");
    for (size_t i = 0; i < widths_len; i++)
        if (widths[i] == 0)
            return sherd__fail(d, SHERD_EINVAL, "give every layer at least one unit",
                               "width %zu of the network is 0", i + 1);
    for (size_t l = 1; l <= layers && !err; l++) {
        err = add(meta, SHERD_META_DOT, samples, widths[l - 1], widths[l], d, "z%zu", l);
        if (!err) err = add(meta, SHERD_META_SIGMOID, samples, 0, widths[l], d, "a%zu", l);
    }
    if (!err) err = add(meta, SHERD_META_MINUS, samples, 0, widths[layers], d, "cost_delta", 0);
    if (!err)
        err = add(meta, SHERD_META_SQUARE, samples, 0, widths[layers], d, "cost_delta_squared", 0);
    for (size_t l = layers; l >= 1 && !err; l--) err = add_backward(meta, widths, l, samples, d);
    return err;
}

/* Wipes and gives back what sherd_meta_shuffles lent. */
static void drop_shuffles(sherd_meta *meta)
{
    if (meta->table) sherd__wipe(meta->table, meta->table_len);
    sherd__free(meta->table);
    sherd__free(meta->exposures);
    sherd__wipe(meta->key, sizeof meta->key);
    meta->table = NULL;
    meta->exposures = NULL;
}

void sherd_meta_free(sherd_meta *meta)
{
    if (!meta) return;
    drop_shuffles(meta);
    sherd__metafile_fini(&meta->f);
    sherd__free(meta);
}

int sherd_meta_load(sherd_meta **out, const char *path, sherd_diag *d)
{
    uint8_t commitment[32];
    *out = NULL;
    sherd_meta *meta = sherd__calloc(1, sizeof *meta);
    if (!meta) return no_memory(d);
    int err = sherd__metafile_open(&meta->f, path, d);
    if (!err && meta->f.has_seed) {
        sherd__seed_commitment(commitment, meta->f.seed);
        meta->seed_wrong = memcmp(commitment, meta->f.commitment, sizeof commitment) != 0;
        if (meta->seed_wrong && !meta->f.expanded)
            err = sherd__fail(d, SHERD_EFORMAT, "restore the file from a copy",
                              "%s: the seed is not the one that the manifest commits to: one of "
                              "the two was changed",
                              sherd__meta_where(meta));
    }
    if (err) {
        sherd_meta_free(meta);
        return err;
    }
    *out = meta;
    return SHERD_OK;
}

/* ---- what it is ------------------------------------------------------------------------------ */

const sherd_meta_settings *sherd_meta_settings_of(const sherd_meta *meta)
{
    return &meta->f.settings;
}

size_t sherd_meta_count(const sherd_meta *meta)
{
    return meta->f.count;
}

const sherd_meta_operation *sherd_meta_at(const sherd_meta *meta, size_t i)
{
    return i < meta->f.count ? &meta->f.ops[i] : NULL;
}

int64_t sherd_meta_find(const sherd_meta *meta, const char *name)
{
    return sherd__metafile_find(&meta->f, name);
}

bool sherd_meta_expanded(const sherd_meta *meta)
{
    return meta->f.npz && meta->f.expanded;
}

const uint8_t *sherd_meta_seed(const sherd_meta *meta)
{
    return meta->f.has_seed && !meta->seed_wrong ? meta->f.seed : NULL;
}

const uint8_t *sherd_meta_commitment(const sherd_meta *meta)
{
    return meta->f.commitment;
}

int sherd_meta_set_seed(sherd_meta *meta, const uint8_t seed[32], sherd_diag *d)
{
    uint8_t commitment[32];
    sherd__seed_commitment(commitment, seed);
    if (memcmp(commitment, meta->f.commitment, sizeof commitment) != 0)
        return sherd__fail(d, SHERD_EFORMAT, "give the seed that the file was built from",
                           "%s: was built from another seed than this one",
                           sherd__meta_where(meta));
    memcpy(meta->f.seed, seed, sizeof meta->f.seed);
    meta->f.has_seed = true;
    meta->seed_wrong = false;
    return SHERD_OK;
}

uint64_t sherd_meta_bytes(const sherd_meta *meta, size_t i)
{
    uint64_t bytes = sherd_meta_columns(&meta->f.ops[i]) * (meta->f.settings.nodes <= 256 ? 1 : 2);
    for (int t = SHERD_META_ENSHUFFLES; t <= SHERD_META_UNROWS; t++) {
        uint64_t rows = 0, cols = 0;
        unsigned width = sherd__metafile_table(&meta->f, i, (sherd_meta_table)t, &rows, &cols);
        bytes += rows * cols * width;
    }
    return bytes;
}

void sherd_meta_watch(sherd_meta *meta, int (*watch)(void *ctx, uint64_t done, uint64_t total),
                      void *ctx)
{
    meta->watch = watch;
    meta->watch_ctx = ctx;
}

void sherd__meta_begin(sherd_meta *meta)
{
    meta->done = meta->total = 0;
    for (size_t i = 0; i < meta->f.count; i++) meta->total += sherd_meta_bytes(meta, i);
}

int sherd__meta_step(sherd_meta *meta, uint64_t len, sherd_diag *d)
{
    meta->done += len;
    if (!meta->watch || !meta->watch(meta->watch_ctx, meta->done, meta->total)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
}

static int check_index(const sherd_meta *meta, size_t i, sherd_diag *d)
{
    if (i < meta->f.count) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "`sherd meta show` lists them",
                       "%s: has %zu operations, number %zu was asked for", sherd__meta_where(meta),
                       meta->f.count, i);
}

int sherd_meta_use(sherd_meta *meta, size_t i, const uint8_t digest[32], bool reuse,
                   sherd_meta_usage *usage, sherd_diag *d)
{
    int err = check_index(meta, i, d);
    if (err) return err;
    sherd_meta_operation *op = &meta->f.ops[i];
    bool same = op->used && memcmp(op->operands, digest, sizeof op->operands) == 0;
    if (op->used && !same && !reuse)
        return sherd__fail(d, SHERD_EEXPOSURE,
                           "build new metadata, or allow it with --reuse-metadata",
                           "%s: operation %s has served other operands: the same exposures and "
                           "permutations twice tell nodes more", sherd__meta_where(meta), op->name);
    *usage = same ? SHERD_META_SAME_USE : op->used ? SHERD_META_REUSED : SHERD_META_FIRST_USE;
    if (op->used) return SHERD_OK;
    op->used = true;
    memcpy(op->operands, digest, sizeof op->operands);
    return SHERD_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

uint32_t sherd__meta_value(const void *row, unsigned width, size_t j)
{
    const uint8_t *b = row;
    return width == 1 ? b[j] : width == 2 ? sherd__get_u16(b + 2 * j) : sherd__get_u32(b + 4 * j);
}

int64_t sherd__meta_row_fault(const void *row, unsigned width, size_t n, uint8_t *seen)
{
    memset(seen, 0, n);
    for (size_t j = 0; j < n; j++) {
        uint32_t v = sherd__meta_value(row, width, j);
        if (v >= n || seen[v]) return (int64_t)j;
        seen[v] = 1;
    }
    return -1;
}

size_t sherd__meta_rows_at_once(size_t row_bytes)
{
    return row_bytes == 0 || row_bytes > ROWS_BYTES ? 1 : ROWS_BYTES / row_bytes;
}

void sherd__meta_key(const sherd_meta *meta, const uint8_t seed[32], size_t i,
                     sherd_meta_table table, uint64_t step, uint8_t key[32])
{
    bool of_rows = table == SHERD_META_ROWS || table == SHERD_META_UNROWS;
    (void)meta;
    sherd__perm_key(key, seed, of_rows ? SHERD__ROWS_LABEL : SHERD__PERM_LABEL, i, step);
}

int sherd__meta_derive_exposures(const sherd_meta *meta, const uint8_t seed[32], size_t i,
                                 uint32_t *out, sherd_diag *d)
{
    uint8_t key[32];
    const sherd_meta_settings *s = &meta->f.settings;
    sherd__perm_key(key, seed, SHERD__EXPO_LABEL, i, 0);
    int err = sherd__exposures(key, (size_t)sherd_meta_columns(&meta->f.ops[i]), s->nodes,
                               s->balanced, out);
    sherd__wipe(key, sizeof key);
    return err ? sherd__fail(d, err, NULL, "operation %s: exposures: %s", meta->f.ops[i].name,
                             sherd_strerror(err)) : SHERD_OK;
}

static int no_such_node(const sherd_meta *meta, size_t i, uint64_t row, uint32_t node,
                        sherd_diag *d)
{
    return sherd__fail(d, SHERD_EFORMAT, "`sherd meta verify` names all that is wrong",
                       "%s: operation %s, row %" PRIu64 ": exposure %" PRIu32 " is none of the %"
                       PRIu32 " nodes", sherd__meta_where(meta), meta->f.ops[i].name, row, node,
                       meta->f.settings.nodes);
}

int sherd_meta_exposures(sherd_meta *meta, size_t i, uint32_t *out, sherd_diag *d)
{
    int err = check_index(meta, i, d);
    if (err) return err;
    const sherd_meta_operation *op = &meta->f.ops[i];
    if (!sherd_meta_expanded(meta))
        return sherd__meta_derive_exposures(meta, meta->f.seed, i, out, d);
    err = sherd__metafile_exposures(&meta->f, i, out, d);
    for (uint64_t c = 0; c < sherd_meta_columns(op) && !err; c++)
        if (out[c] >= meta->f.settings.nodes) err = no_such_node(meta, i, c, out[c], d);
    return err;
}

static int count_of_file(const sherd_meta *meta, size_t i, uint64_t *counts, sherd_diag *d)
{
    char name[SHERD__NPZ_NAME_SIZE];
    uint8_t block[4096];
    sherd__npz_reader *r = NULL;
    uint32_t nodes = meta->f.settings.nodes;
    unsigned width = nodes <= 256 ? 1 : 2;
    uint64_t at = 0, len = sherd_meta_columns(&meta->f.ops[i]);
    sherd__metafile_member(&meta->f, i, "exposures", name);
    int err = sherd__npz_reader_new(&r, meta->f.npz, (size_t)sherd__npz_find(meta->f.npz, name), d);
    memset(counts, 0, nodes * sizeof *counts);
    while (at < len && !err) {
        size_t n = sizeof block / width;
        if (n > len - at) n = (size_t)(len - at);
        err = sherd__npz_reader_next(r, block, n * width, d);
        for (size_t j = 0; j < n && !err; j++) {
            uint32_t node = sherd__meta_value(block, width, j);
            if (node < nodes) counts[node]++;
            else err = no_such_node(meta, i, at + j, node, d);
        }
        at += n;
    }
    sherd__npz_reader_free(r);
    sherd__wipe(block, sizeof block);
    return err;
}

int sherd_meta_exposure_counts(sherd_meta *meta, size_t i, uint64_t *counts, sherd_diag *d)
{
    uint8_t key[32];
    const sherd_meta_settings *s = &meta->f.settings;
    int err = check_index(meta, i, d);
    if (err) return err;
    if (sherd_meta_expanded(meta)) return count_of_file(meta, i, counts, d);
    sherd__perm_key(key, meta->f.seed, SHERD__EXPO_LABEL, i, 0);
    err = sherd__exposure_counts(key, (size_t)sherd_meta_columns(&meta->f.ops[i]), s->nodes,
                                 s->balanced, counts);
    sherd__wipe(key, sizeof key);
    return err ? sherd__fail(d, err, NULL, "operation %s: exposures: %s", meta->f.ops[i].name,
                             sherd_strerror(err)) : SHERD_OK;
}

/* Reads `rows` rows from a reader into table (row after row, checked). first: their number. */
static int read_rows(const sherd_meta *meta, size_t i, sherd_meta_table table,
                     sherd__npz_reader *r, uint64_t first, uint64_t rows, uint8_t *out,
                     sherd_diag *d)
{
    uint64_t all, cols;
    unsigned width = sherd__metafile_table(&meta->f, i, table, &all, &cols);
    size_t row_bytes = (size_t)cols * width;
    uint8_t *seen = sherd__alloc((size_t)cols);
    int err = seen ? SHERD_OK : no_memory(d);
    for (uint64_t q = 0; q < rows && !err && row_bytes > 0; q++, out += row_bytes) {
        err = sherd__npz_reader_next(r, out, row_bytes, d);
        int64_t at = err ? -1 : sherd__meta_row_fault(out, width, (size_t)cols, seen);
        if (at >= 0)
            err = sherd__fail(d, SHERD_EFORMAT, "restore the file from a copy",
                              "%s: operation %s, row %" PRIu64 " of %s is no permutation (position "
                              "%" PRId64 ")", sherd__meta_where(meta), meta->f.ops[i].name,
                              first + q, sherd__metafile_table_name(table), at);
    }
    if (seen) sherd__wipe(seen, (size_t)cols);
    sherd__free(seen);
    return err;
}

static int rows_of_file(sherd_meta *meta, size_t i, sherd_meta_table table, uint64_t row,
                        uint64_t rows, uint8_t *out, sherd_diag *d)
{
    sherd__npz_reader *r = NULL;
    uint8_t skipped[4096];
    uint64_t all, cols;
    unsigned width = sherd__metafile_table(&meta->f, i, table, &all, &cols);
    uint64_t skip = row * cols * width;
    int err = sherd__metafile_reader(&r, &meta->f, i, table, d);
    while (!err && skip > 0) {
        size_t n = skip < sizeof skipped ? (size_t)skip : sizeof skipped;
        err = sherd__npz_reader_next(r, skipped, n, d);
        skip -= n;
    }
    if (!err) err = read_rows(meta, i, table, r, row, rows, out, d);
    sherd__npz_reader_free(r);
    sherd__wipe(skipped, sizeof skipped);
    return err;
}

static int rows_of_seed(const sherd_meta *meta, size_t i, sherd_meta_table table, uint64_t step,
                        uint64_t row, uint64_t rows, uint64_t cols, uint32_t *out, sherd_diag *d)
{
    uint8_t key[32];
    uint32_t *perm = NULL;
    bool inverse = table == SHERD_META_UNSHUFFLES || table == SHERD_META_UNROWS;
    int err = SHERD_OK;
    if (inverse && !(perm = sherd__alloc((size_t)cols * 4))) return no_memory(d);
    sherd__meta_key(meta, meta->f.seed, i, table, step, key);
    if (!inverse) err = sherd__perm_rows(key, row, (size_t)rows, (uint32_t)cols, 4, out, NULL);
    for (uint64_t q = 0; inverse && q < rows && !err; q++)
        err = sherd__perm_rows(key, row + q, 1, (uint32_t)cols, 4, perm, out + q * cols);
    sherd__wipe(key, sizeof key);
    if (perm) sherd__wipe(perm, (size_t)cols * 4);
    sherd__free(perm);
    return err ? sherd__fail(d, err, NULL, "operation %s: permutations: %s", meta->f.ops[i].name,
                             sherd_strerror(err)) : SHERD_OK;
}

int sherd_meta_rows(sherd_meta *meta, size_t i, sherd_meta_table table, uint64_t step,
                    uint64_t row, uint64_t rows, uint32_t *out, sherd_diag *d)
{
    uint64_t all = 0, cols = 0;
    int err = check_index(meta, i, d);
    if (err) return err;
    unsigned width = sherd__metafile_table(&meta->f, i, table, &all, &cols);
    if (width == 0 || row > all || rows > all - row)
        return sherd__fail(d, SHERD_EINVAL, "`sherd meta show` lists what there is",
                           "%s: operation %s has %" PRIu64 " rows of %s, rows %" PRIu64
                           " to %" PRIu64 " were asked for",
                           sherd__meta_where(meta), meta->f.ops[i].name, width ? all : 0,
                           sherd__metafile_table_name(table), row, row + rows);
    if (!sherd_meta_expanded(meta) || step > 0) {
        if (!sherd_meta_seed(meta))
            return sherd__fail(d, SHERD_EUNSUPPORTED, "give the seed with --seed FILE",
                               "%s: holds the permutations of one step only; others need the seed",
                               sherd__meta_where(meta));
        return rows_of_seed(meta, i, table, step, row, rows, cols, out, d);
    }
    err = rows_of_file(meta, i, table, row, rows, (uint8_t *)out, d);
    for (size_t j = (size_t)(rows * cols); j-- > 0 && !err && width < 4;)
        out[j] = sherd__meta_value(out, width, j); /* widened in place, from the end */
    return err;
}

/* ---- for products ---------------------------------------------------------------------------- */

static int perm_of_table(void *ctx, size_t row, uint32_t *out)
{
    const sherd_meta *meta = ctx;
    const uint8_t *at = meta->table + row * (size_t)meta->m * meta->width;
    if (row >= meta->table_len / ((size_t)meta->m * meta->width)) return SHERD_EINVAL;
    for (uint32_t j = 0; j < meta->m; j++) out[j] = sherd__meta_value(at, meta->width, j);
    return SHERD_OK;
}

static int perm_of_seed(void *ctx, size_t row, uint32_t *out)
{
    const sherd_meta *meta = ctx;
    return sherd__perm_row(meta->key, row, meta->m, out);
}

static int load_table(sherd_meta *meta, size_t i, sherd_diag *d)
{
    uint64_t rows, cols;
    size_t len;
    meta->width = sherd__metafile_table(&meta->f, i, SHERD_META_ENSHUFFLES, &rows, &cols);
    if (!sherd__mul((size_t)rows, (size_t)cols, &len) || !sherd__mul(len, meta->width, &len) ||
        !(meta->table = sherd__alloc(len)))
        return sherd__fail(d, SHERD_ENOMEM, "compact the file to its seed form",
                           "%s: no memory for the %" PRIu64 " x %" PRIu64 " enshuffles of %s",
                           sherd__meta_where(meta), rows, cols, meta->f.ops[i].name);
    meta->table_len = len;
    return rows_of_file(meta, i, SHERD_META_ENSHUFFLES, 0, rows, meta->table, d);
}

int sherd_meta_shuffles(sherd_meta *meta, size_t i, struct sherd_shuffles *out, sherd_diag *d)
{
    size_t bytes;
    *out = (sherd_shuffles){ .exposures = NULL };
    int err = check_index(meta, i, d);
    if (err) return err;
    drop_shuffles(meta);
    meta->m = (uint32_t)meta->f.ops[i].m;
    if (!sherd__mul((size_t)sherd_meta_columns(&meta->f.ops[i]), sizeof *meta->exposures, &bytes) ||
        !(meta->exposures = sherd__alloc(bytes)))
        return no_memory(d);
    err = sherd_meta_exposures(meta, i, meta->exposures, d);
    if (!err && sherd_meta_expanded(meta)) err = load_table(meta, i, d);
    else if (!err) sherd__meta_key(meta, meta->f.seed, i, SHERD_META_ENSHUFFLES, 0, meta->key);
    if (err) {
        drop_shuffles(meta);
        return err;
    }
    *out = (sherd_shuffles){ meta->exposures, meta->table ? perm_of_table : perm_of_seed, meta };
    return SHERD_OK;
}
