/*
 * Exposures and permutations of metadata, derived from the seed or read from a file. If a loaded
 * file has tables, they take precedence over its seed, so that a product uses the numbers that its
 * user sees. Tables are read from the file on demand. A table is used by a product only after the
 * whole operation has been verified.
 */
#include "scheduler/metadata/metadata.h"

#include <inttypes.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/options.h"
#include "core/wipe.h"
#include "crypto/perm.h"
#include "sherd/product.h"

#define ROWS_BYTES ((size_t)256 << 10)

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
                             sherd_strerror(err))
               : SHERD_OK;
}

static int no_such_node(const sherd_meta *meta, size_t i, uint64_t row, uint32_t node,
                        sherd_diag *d)
{
    return sherd__fail(d, SHERD_EFORMAT, "`sherd meta verify` names all that is wrong",
                       "%s: operation %s, row %" PRIu64 ": exposure %" PRIu32
                       " is not one of the %" PRIu32 " nodes",
                       sherd__meta_where(meta), meta->f.ops[i].name, row, node,
                       meta->f.settings.nodes);
}

int sherd_meta_exposures(sherd_meta *meta, size_t i, uint32_t *out, sherd_diag *d)
{
    int err = sherd__meta_index(meta, i, d);
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
    int err = sherd__meta_index(meta, i, d);
    if (err) return err;
    if (sherd_meta_expanded(meta)) return count_of_file(meta, i, counts, d);
    sherd__perm_key(key, meta->f.seed, SHERD__EXPO_LABEL, i, 0);
    err = sherd__exposure_counts(key, (size_t)sherd_meta_columns(&meta->f.ops[i]), s->nodes,
                                 s->balanced, counts);
    sherd__wipe(key, sizeof key);
    return err ? sherd__fail(d, err, NULL, "operation %s: exposures: %s", meta->f.ops[i].name,
                             sherd_strerror(err))
               : SHERD_OK;
}

/* Reads rows from a reader, which is positioned at the first of them, and checks each. */
static int read_rows(const sherd_meta *meta, const sherd__meta_part *p, sherd__npz_reader *r,
                     uint8_t *out, sherd_diag *d)
{
    uint64_t all, cols;
    unsigned width = sherd__metafile_index_bytes(&meta->f, p->i, p->table, &all, &cols);
    size_t row_bytes = (size_t)cols * width;
    uint8_t *seen = sherd__alloc((size_t)cols);
    int err = seen ? SHERD_OK : sherd__meta_no_memory(d);
    for (uint64_t q = 0; q < p->rows && !err && row_bytes > 0; q++, out += row_bytes) {
        err = sherd__npz_reader_next(r, out, row_bytes, d);
        int64_t at = err ? -1 : sherd__meta_row_fault(out, width, (size_t)cols, seen);
        if (at >= 0)
            err = sherd__fail(d, SHERD_EFORMAT, "restore the file from a copy",
                              "%s: operation %s, row %" PRIu64 " of %s is not a permutation "
                              "(position %" PRId64 ")",
                              sherd__meta_where(meta), meta->f.ops[p->i].name, p->row + q,
                              sherd__metafile_table_name(p->table), at);
    }
    if (seen) sherd__wipe(seen, (size_t)cols);
    sherd__free(seen);
    return err;
}

static int rows_of_file(sherd_meta *meta, const sherd__meta_part *p, uint8_t *out, sherd_diag *d)
{
    sherd__npz_reader *r = NULL;
    uint8_t skipped[4096];
    uint64_t all, cols;
    unsigned width = sherd__metafile_index_bytes(&meta->f, p->i, p->table, &all, &cols);
    uint64_t skip = p->row * cols * width;
    int err = sherd__metafile_reader(&r, &meta->f, p->i, p->table, d);
    while (!err && skip > 0) {
        size_t n = skip < sizeof skipped ? (size_t)skip : sizeof skipped;
        err = sherd__npz_reader_next(r, skipped, n, d);
        skip -= n;
    }
    if (!err) err = read_rows(meta, p, r, out, d);
    sherd__npz_reader_free(r);
    sherd__wipe(skipped, sizeof skipped);
    return err;
}

static int rows_of_seed(const sherd_meta *meta, const sherd__meta_part *p, uint64_t step,
                        uint32_t *out, sherd_diag *d)
{
    uint8_t key[32];
    uint32_t *perm = NULL;
    bool inverse = p->table == SHERD_META_UNSHUFFLES || p->table == SHERD_META_UNROWS;
    uint64_t all, cols;
    int err = SHERD_OK;
    (void)sherd__metafile_index_bytes(&meta->f, p->i, p->table, &all, &cols);
    if (inverse && !(perm = sherd__alloc((size_t)cols * 4))) return sherd__meta_no_memory(d);
    sherd__meta_key(meta, meta->f.seed, p->i, p->table, step, key);
    if (!inverse)
        err = sherd__perm_rows(key, p->row, (size_t)p->rows, (uint32_t)cols, 4, out, NULL);
    for (uint64_t q = 0; inverse && q < p->rows && !err; q++)
        err = sherd__perm_rows(key, p->row + q, 1, (uint32_t)cols, 4, perm, out + q * cols);
    sherd__wipe(key, sizeof key);
    if (perm) sherd__wipe(perm, (size_t)cols * 4);
    sherd__free(perm);
    return err ? sherd__fail(d, err, NULL, "operation %s: permutations: %s", meta->f.ops[p->i].name,
                             sherd_strerror(err))
               : SHERD_OK;
}

int sherd_meta_rows(sherd_meta *meta, size_t i, sherd_meta_table table, uint64_t step, uint64_t row,
                    uint64_t rows, uint32_t *out, sherd_diag *d)
{
    const sherd__meta_part part = { i, table, row, rows };
    uint64_t all = 0, cols = 0;
    int err = sherd__meta_index(meta, i, d);
    if (err) return err;
    unsigned width = sherd__metafile_index_bytes(&meta->f, i, table, &all, &cols);
    if (width == 0 || row > all || rows > all - row)
        return sherd__fail(d, SHERD_EINVAL, "`sherd meta show` lists what there is",
                           "%s: operation %s has %" PRIu64 " rows of %s, rows %" PRIu64
                           " to %" PRIu64 " were requested",
                           sherd__meta_where(meta), meta->f.ops[i].name, width ? all : 0,
                           sherd__metafile_table_name(table), row, row + rows);
    if (!sherd_meta_expanded(meta) || step > 0) {
        if (!sherd_meta_seed(meta))
            return sherd__fail(d, SHERD_EUNSUPPORTED, "give the seed with --seed FILE",
                               "%s: contains the permutations of one step only; other steps need "
                               "the seed",
                               sherd__meta_where(meta));
        return rows_of_seed(meta, &part, step, out, d);
    }
    err = rows_of_file(meta, &part, (uint8_t *)out, d);
    for (size_t j = (size_t)(rows * cols); j-- > 0 && !err && width < 4;)
        out[j] = sherd__meta_value(out, width, j); /* widened in place, last index first */
    return err;
}

/* ---- for products ---------------------------------------------------------------------------- */

static int lent_row(const sherd__meta_lent *l, size_t row, uint32_t *out)
{
    if (!l->table) return sherd__perm_row(l->key, row, l->cols, out);
    const uint8_t *at = l->table + row * (size_t)l->cols * l->width;
    if (row >= l->len / ((size_t)l->cols * l->width)) return SHERD_EINVAL;
    for (uint32_t j = 0; j < l->cols; j++) out[j] = sherd__meta_value(at, l->width, j);
    return SHERD_OK;
}

static int lent_perm(void *ctx, size_t row, uint32_t *out)
{
    return lent_row(&((const sherd_meta *)ctx)->lent[0], row, out);
}

static int lent_rows(void *ctx, size_t row, uint32_t *out)
{
    return lent_row(&((const sherd_meta *)ctx)->lent[1], row, out);
}

/* Reads the table of an expanded file, or derives the key from which rows are derived. */
static int lend(sherd_meta *meta, size_t i, sherd_meta_table table, sherd__meta_lent *l,
                sherd_diag *d)
{
    uint64_t rows, cols;
    l->width = sherd__metafile_index_bytes(&meta->f, i, table, &rows, &cols);
    if (l->width == 0) return SHERD_OK;
    l->cols = (uint32_t)cols;
    if (!sherd_meta_expanded(meta)) {
        sherd__meta_key(meta, meta->f.seed, i, table, 0, l->key);
        return SHERD_OK;
    }
    if (!sherd__mul((size_t)rows, (size_t)cols, &l->len) ||
        !sherd__mul(l->len, l->width, &l->len) || !(l->table = sherd__alloc(l->len)))
        return sherd__fail_memory_hint(d, "compact the file to its seed form",
                                       "the %" PRIu64 " x %" PRIu64 " %s of %s in %s", rows, cols,
                                       sherd__metafile_table_name(table), meta->f.ops[i].name,
                                       sherd__meta_where(meta));
    return rows_of_file(meta, &(sherd__meta_part){ i, table, 0, rows }, l->table, d);
}

void sherd__meta_drop_shuffles(sherd_meta *meta)
{
    for (size_t t = 0; t < sizeof meta->lent / sizeof *meta->lent; t++) {
        if (meta->lent[t].table) sherd__wipe(meta->lent[t].table, meta->lent[t].len);
        sherd__free(meta->lent[t].table);
    }
    sherd__free(meta->exposures);
    sherd__wipe(meta->lent, sizeof meta->lent);
    meta->exposures = NULL;
}

int sherd_meta_shuffles(sherd_meta *meta, size_t i, struct sherd_shuffles *out,
                        const sherd_meta_read_options *opt, sherd_diag *d)
{
    size_t bytes;
    sherd_meta_read_options own;
    int err = sherd__result_check(out, "sherd_shuffles", d);
    if (!err) err = sherd__options_read(&own, sizeof own, opt, "sherd_meta_read_options", d);
    if (!err) err = sherd__meta_index(meta, i, d);
    if (!err) sherd__meta_begin(meta, &own.hooks);
    if (!err) err = sherd__meta_verify_operation(meta, i, d);
    if (err) return err;
    sherd__meta_drop_shuffles(meta);
    if (!sherd__mul((size_t)sherd_meta_columns(&meta->f.ops[i]), sizeof *meta->exposures, &bytes) ||
        !(meta->exposures = sherd__alloc(bytes)))
        return sherd__meta_no_memory(d);
    err = sherd_meta_exposures(meta, i, meta->exposures, d);
    if (!err) err = lend(meta, i, SHERD_META_ENSHUFFLES, &meta->lent[0], d);
    if (!err) err = lend(meta, i, SHERD_META_ROWS, &meta->lent[1], d);
    if (err) {
        sherd__meta_drop_shuffles(meta);
        return err;
    }
    const sherd_shuffles found = { .exposures = meta->exposures,
                                   .perm = lent_perm,
                                   .rows = meta->lent[1].width ? lent_rows : NULL,
                                   .ctx = meta };
    sherd__result_write(out, &found, sizeof found);
    return SHERD_OK;
}
