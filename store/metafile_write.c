/*
 * Writes a metadata file: manifest and seed from memory, arrays streamed from the caller's source.
 * All exposures are requested first (they are short), since the manifest contains their digests and
 * is the first member.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "store/manifest.h"
#include "store/metafile.h"

#define MANIFEST_MAX ((size_t)4 << 20)

typedef struct array {
    struct writing *w;
    size_t op;
    sherd_meta_table table;
} array;

typedef struct writing {
    const sherd__metafile *f;
    const sherd__metafile_source *source;
    sherd__buf manifest;
    uint8_t (*sha256)[32]; /* one per operation */
    uint8_t **exposures;   /* one per operation, in the file's width */
    array *arrays;         /* one per operation and table */
} writing;

static int no_memory(sherd_diag *d)
{
    return sherd__fail_memory(d, "writing metadata");
}

/* ---- sources of members ---------------------------------------------------------------------- */

static unsigned exposure_width(const sherd__metafile *f)
{
    return f->settings.nodes <= 256 ? 1 : 2;
}

static int fill_exposures(void *ctx, size_t row, size_t rows, void *out, sherd_diag *d)
{
    const array *a = ctx;
    const sherd__metafile *f = a->w->f;
    (void)row, (void)rows, (void)d;
    memcpy(out, a->w->exposures[a->op], sherd_meta_columns(&f->ops[a->op]) * exposure_width(f));
    return SHERD_OK;
}

static int fill_rows(void *ctx, size_t row, size_t rows, void *out, sherd_diag *d)
{
    const array *a = ctx;
    const sherd__metafile_source *s = a->w->source;
    return s->rows(s->ctx, a->op, a->table, row, rows, out, d);
}

/* ---- adding members -------------------------------------------------------------------------- */

static int take_exposures(writing *w, size_t i, sherd_diag *d)
{
    size_t len = (size_t)sherd_meta_columns(&w->f->ops[i]), bytes;
    if (!sherd__mul(len, sizeof(uint32_t), &bytes)) return no_memory(d);
    uint32_t *wide = sherd__alloc(bytes);
    if (!wide) return no_memory(d);
    w->exposures[i] = (uint8_t *)wide;
    int err = w->source->exposures(w->source->ctx, i, wide, d);
    if (err) return err;
    sherd__metafile_exposures_sha256(w->sha256[i], wide, len);
    /* In place: a narrow value is never written beyond the wide one that it comes from. */
    for (size_t c = 0; c < len; c++) {
        uint32_t v = wide[c];
        if (exposure_width(w->f) == 1) w->exposures[i][c] = (uint8_t)v;
        else sherd__put_u16(w->exposures[i] + 2 * c, (uint16_t)v);
    }
    return SHERD_OK;
}

static int take_all_exposures(writing *w, sherd_diag *d)
{
    size_t count = w->f->count;
    w->sha256 = sherd__calloc(count, sizeof *w->sha256);
    w->exposures = sherd__calloc(count, sizeof *w->exposures);
    w->arrays = sherd__calloc(count * 5, sizeof *w->arrays);
    if (!w->sha256 || !w->exposures || !w->arrays) return no_memory(d);
    for (size_t i = 0; i < count; i++) {
        int err = take_exposures(w, i, d);
        if (err) return err;
    }
    return SHERD_OK;
}

static int add_arrays(writing *w, sherd__npz_writer *out, size_t i, bool deflate, sherd_diag *d)
{
    static const sherd_dtype dtypes[] = { 0, SHERD_U8, SHERD_U16, 0, SHERD_U32 };
    const sherd__metafile *f = w->f;
    char name[SHERD__NPZ_NAME_SIZE];
    array *a = &w->arrays[i * 5];
    *a = (array){ .w = w, .op = i };
    sherd__metafile_member(f, i, "exposures", name);
    int err = sherd__npz_writer_add(out,
                                    &(sherd__npz_array){ name, dtypes[exposure_width(f)], 1, 1,
                                                         (size_t)sherd_meta_columns(&f->ops[i]) },
                                    deflate, (sherd__npz_source){ fill_exposures, a }, d);
    for (int t = SHERD_META_ENSHUFFLES; t <= SHERD_META_UNROWS && !err; t++) {
        uint64_t rows, cols;
        unsigned width = sherd__metafile_index_bytes(f, i, (sherd_meta_table)t, &rows, &cols);
        if (width == 0) continue;
        *++a = (array){ .w = w, .op = i, .table = (sherd_meta_table)t };
        sherd__metafile_member(f, i, sherd__metafile_table_name(a->table), name);
        err = sherd__npz_writer_add(out,
                                    &(sherd__npz_array){ name, dtypes[width], 2, (size_t)rows,
                                                         (size_t)cols },
                                    deflate, (sherd__npz_source){ fill_rows, a }, d);
    }
    return err;
}

static int add_members(writing *w, sherd__npz_writer *out, const sherd_meta_save_options *opt,
                       sherd_diag *d)
{
    const sherd__metafile *f = w->f;
    int err = sherd__manifest_format(f, opt->expanded, (const uint8_t(*)[32])w->sha256,
                                     &w->manifest);
    if (err) return sherd__fail(d, err, NULL, "the manifest cannot be written");
    err = sherd__npz_writer_add_values(out,
                                       &(sherd__npz_array){ "manifest", SHERD_U8, 1, 1,
                                                            w->manifest.len },
                                       opt->deflate, w->manifest.data, d);
    if (!err && f->has_seed && !(opt->expanded && opt->without_seed))
        err = sherd__npz_writer_add_values(out,
                                           &(sherd__npz_array){ "seed", SHERD_U8, 1, 1,
                                                                sizeof f->seed },
                                           false, f->seed, d);
    for (size_t i = 0; opt->expanded && i < f->count && !err; i++)
        err = add_arrays(w, out, i, opt->deflate, d);
    return err;
}

static void writing_fini(writing *w)
{
    for (size_t i = 0; w->exposures && i < w->f->count; i++) {
        if (w->exposures[i]) sherd__wipe(w->exposures[i], sherd_meta_columns(&w->f->ops[i]) * 4);
        sherd__free(w->exposures[i]);
    }
    sherd__free(w->exposures);
    sherd__free(w->sha256);
    sherd__free(w->arrays);
    sherd__buf_fini(&w->manifest);
}

int sherd__metafile_write(const sherd__metafile *f, const char *path,
                          const sherd_meta_save_options *opt, const sherd__metafile_source *source,
                          uint64_t *size, sherd_diag *d)
{
    writing w = { .f = f, .source = source };
    sherd__npz_writer *out = NULL;
    if (!opt->expanded && !f->has_seed)
        return sherd__fail(d, SHERD_EINVAL, "give the seed with --seed FILE",
                           "%s: the seed form needs the seed, which is not known", path);
    sherd__buf_init(&w.manifest, MANIFEST_MAX, 0);
    int err = opt->expanded ? take_all_exposures(&w, d) : SHERD_OK;
    if (!err) err = sherd__npz_writer_new(&out, path, d);
    if (!err) err = add_members(&w, out, opt, d);
    if (err) sherd__npz_writer_abort(out);
    else err = sherd__npz_writer_commit(out, size, d);
    writing_fini(&w);
    return err;
}
