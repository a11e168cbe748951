/*
 * Metadata in memory: the list of operations, the seed, and a digest of the operands that each
 * operation served. numbers.c derives and reads the tables. A seed that does not match the
 * commitment of its own file is treated as unknown.
 */
#include "scheduler/metadata/metadata.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/options.h"
#include "core/rand.h"
#include "crypto/perm.h"
#include "sherd/product.h"

int sherd__meta_no_memory(sherd_diag *d)
{
    return sherd__fail_memory(d, "the metadata");
}

const char *sherd__meta_where(const sherd_meta *meta)
{
    return meta->f.npz ? sherd__npz_where(meta->f.npz) : "metadata";
}

/* ---- creating -------------------------------------------------------------------------------- */

int sherd_meta_new(sherd_meta **out, const sherd_meta_settings *settings, const uint8_t *seed,
                   sherd_diag *d)
{
    sherd_meta_settings own;
    *out = NULL;
    int err = sherd__options_read(&own, sizeof own, settings, "sherd_meta_settings", d);
    if (!err) err = sherd__metafile_check_settings(&own, d);
    if (err) return err;
    sherd_meta *meta = sherd__calloc(1, sizeof *meta);
    if (!meta) return sherd__meta_no_memory(d);
    sherd__entropy os = sherd__entropy_os();
    meta->f.settings = own;
    meta->f.has_seed = true;
    if (seed) memcpy(meta->f.seed, seed, sizeof meta->f.seed);
    else os.fill(os.ctx, meta->f.seed, sizeof meta->f.seed);
    sherd__seed_commitment(meta->f.commitment, meta->f.seed);
    *out = meta;
    return SHERD_OK;
}

int sherd_meta_add(sherd_meta *meta, const sherd_meta_operation *op, sherd_diag *d)
{
    sherd_meta_operation own;
    int err = sherd__options_read(&own, sizeof own, op, "sherd_meta_operation", d);
    if (err) return err;
    if (meta->f.npz)
        return sherd__fail(d, SHERD_EINVAL, "build a new file",
                           "%s: a file cannot have more operations", sherd__meta_where(meta));
    return sherd__metafile_add(&meta->f, &own, d);
}

static int add(sherd_meta *meta, sherd_op kind, uint64_t n, uint64_t k, uint64_t m, sherd_diag *d,
               const char *fmt, size_t layer)
{
    sherd_meta_operation op = { .size = sizeof op, .kind = kind, .n = n, .k = k, .m = m };
    snprintf(op.name, sizeof op.name, fmt, layer);
    return sherd_meta_add(meta, &op, d);
}

/* Adds delta of layer l, and the gradients of its weights and of its input. */
static int add_backward(sherd_meta *meta, const uint64_t *w, size_t l, uint64_t n, sherd_diag *d)
{
    int err = add(meta, SHERD_OP_TIMES, n, 0, w[l], d, "a%zu_dz", l);
    if (!err) /* (rows of the activation) transposed delta: w[l] x n by n x w[l-1] */
        err = add(meta, SHERD_OP_PRODUCT, w[l], n, w[l - 1], d, "z%zu_dw", l);
    if (!err && l > 1) /* weights by transposed delta: w[l-1] x w[l] by w[l] x n */
        err = add(meta, SHERD_OP_PRODUCT, w[l - 1], w[l], n, d, "z%zu_da", l);
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
        err = add(meta, SHERD_OP_PRODUCT, samples, widths[l - 1], widths[l], d, "z%zu", l);
        if (!err) err = add(meta, SHERD_OP_SIGMOID, samples, 0, widths[l], d, "a%zu", l);
    }
    if (!err) err = add(meta, SHERD_OP_MINUS, samples, 0, widths[layers], d, "cost_delta", 0);
    if (!err)
        err = add(meta, SHERD_OP_SQUARE, samples, 0, widths[layers], d, "cost_delta_squared", 0);
    for (size_t l = layers; l >= 1 && !err; l--) err = add_backward(meta, widths, l, samples, d);
    return err;
}

void sherd_meta_free(sherd_meta *meta)
{
    if (!meta) return;
    sherd__meta_drop_shuffles(meta);
    sherd__metafile_fini(&meta->f);
    sherd__free(meta);
}

int sherd_meta_load(sherd_meta **out, const char *path, sherd_diag *d)
{
    uint8_t commitment[32];
    *out = NULL;
    sherd_meta *meta = sherd__calloc(1, sizeof *meta);
    if (!meta) return sherd__meta_no_memory(d);
    int err = sherd__metafile_open(&meta->f, path, d);
    if (!err && meta->f.has_seed) {
        sherd__seed_commitment(commitment, meta->f.seed);
        meta->seed_wrong = memcmp(commitment, meta->f.commitment, sizeof commitment) != 0;
        if (meta->seed_wrong && !meta->f.expanded)
            err = sherd__fail(d, SHERD_EFORMAT, "restore the file from a copy",
                              "%s: the seed does not match the commitment of the manifest: one of "
                              "them was changed",
                              sherd__meta_where(meta));
    }
    if (err) {
        sherd_meta_free(meta);
        return err;
    }
    *out = meta;
    return SHERD_OK;
}

/* ---- properties ------------------------------------------------------------------------------ */

const sherd_meta_settings *sherd_meta_get(const sherd_meta *meta)
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

int sherd_meta_seed_set(sherd_meta *meta, const uint8_t seed[32], sherd_diag *d)
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
        unsigned width = sherd__metafile_index_bytes(&meta->f, i, (sherd_meta_table)t, &rows,
                                                     &cols);
        bytes += rows * cols * width;
    }
    return bytes;
}

void sherd__meta_begin(sherd_meta *meta, const sherd_hooks *hooks)
{
    meta->done = meta->total = 0;
    meta->hooked = sherd__hooks_begin(hooks);
    for (size_t i = 0; i < meta->f.count; i++) meta->total += sherd_meta_bytes(meta, i);
}

int sherd__meta_step(sherd_meta *meta, uint64_t len, sherd_diag *d)
{
    meta->done += len;
    return sherd__hooks_step(&meta->hooked, meta->done, meta->total, d);
}

int sherd__meta_index(const sherd_meta *meta, size_t i, sherd_diag *d)
{
    if (i < meta->f.count) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "`sherd meta show` lists them",
                       "%s: has %zu operations, number %zu was requested", sherd__meta_where(meta),
                       meta->f.count, i);
}

int sherd_meta_use(sherd_meta *meta, size_t i, const uint8_t digest[32], bool reuse,
                   sherd_meta_usage *usage, sherd_diag *d)
{
    int err = sherd__meta_index(meta, i, d);
    if (err) return err;
    sherd_meta_operation *op = &meta->f.ops[i];
    bool same = op->used && memcmp(op->operands, digest, sizeof op->operands) == 0;
    if (op->used && !same && !reuse)
        return sherd__fail(d, SHERD_EEXPOSURE,
                           "build new metadata, or allow it with --reuse-metadata",
                           "%s: operation %s was used for other operands: using the same exposures "
                           "and permutations twice reveals more to nodes",
                           sherd__meta_where(meta), op->name);
    *usage = same ? SHERD_META_SAME_USE : op->used ? SHERD_META_REUSED : SHERD_META_FIRST_USE;
    if (op->used) return SHERD_OK;
    op->used = true;
    memcpy(op->operands, digest, sizeof op->operands);
    return SHERD_OK;
}
