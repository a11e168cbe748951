/*
 * Verifies each number of a metadata file: against the seed if it is known, otherwise for
 * consistency. A seed with one changed bit disagrees with its commitment and with every table. The
 * first row that differs is reported with both reasons, because the user needs to decide whether
 * the seed or the table is wrong.
 */
#include <inttypes.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/options.h"
#include "core/wipe.h"
#include "crypto/perm.h"
#include "scheduler/metadata/metadata.h"

typedef struct checking {
    sherd_meta *meta;
    const uint8_t *seed; /* to derive the expected numbers; NULL: unknown */
    size_t op;
    sherd_meta_table there, back;
    size_t cols, row_bytes, rows_max;
    unsigned width;
    uint8_t *memory; /* of the five buffers below */
    size_t memory_len;
    uint8_t *got, *inverse, *want, *want_inverse, *seen;
    sherd_diag *d;
} checking;

static int wrong(const checking *c, uint64_t row, const char *what, const char *why)
{
    const char *hint = c->seed ? "expand it again from the seed: sherd meta compact, then expand"
                               : "restore the file from a copy";
    if (c->meta->seed_wrong) {
        hint = "restore the file from a copy";
        why = "does not follow from the seed, which does not match the commitment of the manifest";
    }
    return sherd__fail(c->d, SHERD_EFORMAT, hint, "%s: operation %s, row %" PRIu64 ": %s %s",
                       sherd__meta_where(c->meta), c->meta->f.ops[c->op].name, row, what, why);
}

/* ---- exposures ------------------------------------------------------------------------------- */

static int compare_exposures(checking *c, const uint32_t *got, uint32_t *want, uint64_t len)
{
    uint8_t sha256[32];
    for (uint64_t i = 0; i < len; i++)
        if (got[i] >= c->meta->f.settings.nodes)
            return wrong(c, i, "the exposure", "is not one of the nodes");
    if (c->seed) {
        int err = sherd__meta_derive_exposures(c->meta, c->seed, c->op, want, c->d);
        if (err) return err;
        for (uint64_t i = 0; i < len; i++)
            if (got[i] != want[i])
                return wrong(c, i, "the exposure", "is not the one that follows from the seed");
    }
    sherd__metafile_exposures_sha256(sha256, got, (size_t)len);
    if (memcmp(sha256, c->meta->f.exposures_sha256[c->op], sizeof sha256) == 0) return SHERD_OK;
    return wrong(c, 0, "the exposures", "have another digest than the one in the manifest");
}

static int check_exposures(checking *c)
{
    uint64_t len = sherd_meta_columns(&c->meta->f.ops[c->op]);
    size_t bytes;
    if (!sherd__mul((size_t)len, 2 * sizeof(uint32_t), &bytes)) return sherd__meta_no_memory(c->d);
    uint32_t *got = sherd__alloc(bytes);
    if (!got) return sherd__meta_no_memory(c->d);
    int err = sherd__metafile_exposures(&c->meta->f, c->op, got, c->d);
    if (!err) err = compare_exposures(c, got, got + len, len);
    sherd__wipe(got, bytes);
    sherd__free(got);
    return err;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Checks row `row` of the file, which is row q of this group, without the seed. */
static int check_row(const checking *c, uint64_t row, size_t q)
{
    const uint8_t *p = c->got + q * c->row_bytes, *v = c->inverse + q * c->row_bytes;
    if (sherd__meta_row_fault(p, c->width, c->cols, c->seen) >= 0)
        return wrong(c, row, sherd__metafile_table_name(c->there), "is not a permutation");
    for (size_t j = 0; j < c->cols; j++)
        if (sherd__meta_value(v, c->width, sherd__meta_value(p, c->width, j)) != j)
            return wrong(c, row, sherd__metafile_table_name(c->back), "is not the inverse");
    return SHERD_OK;
}

/* Compares the rows of both tables with those derived from the seed. */
static int compare_rows(const checking *c, uint64_t row, size_t rows)
{
    static const char why[] = "does not follow from the seed";
    size_t len = rows * c->row_bytes;
    if (memcmp(c->got, c->want, len) == 0 && memcmp(c->inverse, c->want_inverse, len) == 0)
        return SHERD_OK;
    for (size_t q = 0; q < rows; q++) {
        size_t at = q * c->row_bytes;
        if (memcmp(c->got + at, c->want + at, c->row_bytes) != 0)
            return wrong(c, row + q, sherd__metafile_table_name(c->there), why);
        if (memcmp(c->inverse + at, c->want_inverse + at, c->row_bytes) != 0)
            return wrong(c, row + q, sherd__metafile_table_name(c->back), why);
    }
    return SHERD_OK;
}

static int check_run(const checking *c, const uint8_t key[32], uint64_t row, size_t rows)
{
    if (c->seed) {
        int err = sherd__perm_rows(key, row, rows, (uint32_t)c->cols, c->width, c->want,
                                   c->want_inverse);
        return err ? sherd__fail(c->d, err, NULL, "%s", sherd_strerror(err))
                   : compare_rows(c, row, rows);
    }
    for (size_t q = 0; q < rows; q++) {
        int err = check_row(c, row + q, q);
        if (err) return err;
    }
    return SHERD_OK;
}

/* Damage (a CRC mismatch, known only after the last bytes) is reported for the row that it affected
 * if some row shows it. */
static int check_all_rows(checking *c, uint64_t rows, sherd__npz_reader *there,
                          sherd__npz_reader *back)
{
    uint8_t key[32] = { 0 };
    int err = SHERD_OK;
    if (c->seed) sherd__meta_key(c->meta, c->seed, c->op, c->there, 0, key);
    for (uint64_t row = 0; row < rows && !err; row += c->rows_max) {
        size_t n = rows - row < c->rows_max ? (size_t)(rows - row) : c->rows_max;
        sherd_diag damage = { .code = SHERD_OK };
        int damaged = sherd__npz_reader_next(there, c->got, n * c->row_bytes, &damage);
        if (!damaged) damaged = sherd__npz_reader_next(back, c->inverse, n * c->row_bytes, &damage);
        if (!damaged || damaged == SHERD_EFORMAT) err = check_run(c, key, row, n);
        if (!err) err = sherd__meta_step(c->meta, 2 * (uint64_t)n * c->row_bytes, c->d);
        if (!err && damaged) err = sherd__fail(c->d, damaged, damage.hint, "%s", damage.message);
    }
    sherd__wipe(key, sizeof key);
    return err;
}

static int take_memory(checking *c)
{
    size_t run = c->rows_max * c->row_bytes;
    if (!sherd__mul(run, 4, &c->memory_len) || !sherd__add(c->memory_len, c->cols, &c->memory_len))
        return sherd__meta_no_memory(c->d);
    c->memory = sherd__calloc(1, c->memory_len);
    if (!c->memory) return sherd__meta_no_memory(c->d);
    c->got = c->memory;
    c->inverse = c->got + run;
    c->want = c->inverse + run;
    c->want_inverse = c->want + run;
    c->seen = c->want_inverse + run;
    return SHERD_OK;
}

static int check_pair(checking *c, sherd_meta_table there, sherd_meta_table back)
{
    sherd__npz_reader *a = NULL, *b = NULL;
    uint64_t rows, cols;
    c->there = there;
    c->back = back;
    c->width = sherd__metafile_index_bytes(&c->meta->f, c->op, there, &rows, &cols);
    if (c->width == 0) return SHERD_OK;
    c->cols = (size_t)cols;
    c->row_bytes = c->cols * c->width;
    c->rows_max = sherd__meta_rows_at_once(c->row_bytes);
    int err = take_memory(c);
    if (!err) err = sherd__metafile_reader(&a, &c->meta->f, c->op, there, c->d);
    if (!err) err = sherd__metafile_reader(&b, &c->meta->f, c->op, back, c->d);
    if (!err && c->cols > 0) err = check_all_rows(c, rows, a, b);
    sherd__npz_reader_free(a);
    sherd__npz_reader_free(b);
    if (c->memory) sherd__wipe(c->memory, c->memory_len);
    sherd__free(c->memory);
    c->memory = NULL;
    return err;
}

int sherd__meta_verify_operation(sherd_meta *meta, size_t i, sherd_diag *d)
{
    checking c = { .meta = meta, .op = i, .d = d };
    if (!sherd_meta_expanded(meta)) return SHERD_OK;
    if (meta->f.has_seed) c.seed = meta->f.seed;
    int err = check_exposures(&c);
    if (!err) err = check_pair(&c, SHERD_META_ENSHUFFLES, SHERD_META_UNSHUFFLES);
    if (!err) err = check_pair(&c, SHERD_META_ROWS, SHERD_META_UNROWS);
    return err;
}

int sherd_meta_verify(sherd_meta *meta, const sherd_meta_read_options *opt, sherd_diag *d)
{
    sherd_meta_read_options own;
    int err = sherd__options_read(&own, sizeof own, opt, "sherd_meta_read_options", d);
    if (!err) sherd__meta_begin(meta, &own.hooks);
    for (size_t i = 0; i < meta->f.count && !err; i++)
        err = sherd__meta_verify_operation(meta, i, d);
    if (!err && meta->seed_wrong)
        err = sherd__fail(d, SHERD_EFORMAT, "restore the file from a copy",
                          "%s: the manifest commits to another seed than the one in the file",
                          sherd__meta_where(meta));
    return err;
}
