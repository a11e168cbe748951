/*
 * Saves metadata. Tables are produced while they are written, a few rows at a time. If the seed is
 * known, they are derived from it; otherwise they are copied from the loaded file. Each group of
 * rows is derived twice, for the permutations and for their inverses, because that costs less than
 * keeping the inverses in memory. Metadata that is saved as it was loaded has its tables copied
 * always, because the file must hold the numbers that a product has used.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/options.h"
#include "core/wipe.h"
#include "crypto/perm.h"
#include "scheduler/metadata/metadata.h"

typedef struct saving {
    sherd_meta *meta;
    double *seconds;
    bool derives;     /* from the seed; otherwise the tables are copied */
    uint8_t *scratch; /* permutations to invert; also `seen` of a copied row */
    size_t scratch_len;
    sherd__npz_reader *reader;
} saving;

static int need_scratch(saving *s, size_t len, sherd_diag *d)
{
    if (len <= s->scratch_len) return SHERD_OK;
    if (s->scratch) sherd__wipe(s->scratch, s->scratch_len);
    sherd__free(s->scratch);
    s->scratch_len = 0;
    s->scratch = sherd__alloc(len);
    if (!s->scratch) return sherd__fail_memory(d, "%zu bytes of metadata", len);
    s->scratch_len = len;
    return SHERD_OK;
}

static int derive(saving *s, const sherd__meta_part *p, void *out, sherd_diag *d)
{
    uint8_t key[32];
    uint64_t all, cols;
    unsigned width = sherd__metafile_index_bytes(&s->meta->f, p->i, p->table, &all, &cols);
    bool inverse = p->table == SHERD_META_UNSHUFFLES || p->table == SHERD_META_UNROWS;
    size_t rows = (size_t)p->rows;
    int err = inverse ? need_scratch(s, rows * (size_t)cols * width, d) : SHERD_OK;
    if (err) return err;
    sherd__meta_key(s->meta, s->meta->f.seed, p->i, p->table, 0, key);
    err = sherd__perm_rows(key, p->row, rows, (uint32_t)cols, width, inverse ? s->scratch : out,
                           inverse ? out : NULL);
    sherd__wipe(key, sizeof key);
    return err ? sherd__fail(d, err, NULL, "operation %s: permutations: %s",
                             s->meta->f.ops[p->i].name, sherd_strerror(err))
               : SHERD_OK;
}

static int copy(saving *s, const sherd__meta_part *p, uint8_t *out, sherd_diag *d)
{
    uint64_t all, wide;
    unsigned width = sherd__metafile_index_bytes(&s->meta->f, p->i, p->table, &all, &wide);
    size_t cols = (size_t)wide, rows = (size_t)p->rows;
    int err = need_scratch(s, cols, d);
    if (!err && p->row == 0) {
        sherd__npz_reader_free(s->reader);
        err = sherd__metafile_reader(&s->reader, &s->meta->f, p->i, p->table, d);
    }
    if (!err) err = sherd__npz_reader_next(s->reader, out, rows * cols * width, d);
    for (size_t q = 0; q < rows && !err; q++)
        if (sherd__meta_row_fault(out + q * cols * width, width, cols, s->scratch) >= 0)
            err = sherd__fail(d, SHERD_EFORMAT, "restore the file from a copy",
                              "%s: operation %s, row %llu of %s is not a permutation",
                              sherd__meta_where(s->meta), s->meta->f.ops[p->i].name,
                              (unsigned long long)(p->row + q),
                              sherd__metafile_table_name(p->table));
    return err;
}

static int fill_rows(void *ctx, size_t i, sherd_meta_table table, uint64_t row, size_t rows,
                     void *out, sherd_diag *d)
{
    saving *s = ctx;
    uint64_t all, cols;
    double began = sherd__clock_s();
    unsigned width = sherd__metafile_index_bytes(&s->meta->f, i, table, &all, &cols);
    const sherd__meta_part part = { i, table, row, rows };
    int err = s->derives ? derive(s, &part, out, d) : copy(s, &part, out, d);
    if (s->seconds) s->seconds[i] += sherd__clock_s() - began;
    return err ? err : sherd__meta_step(s->meta, (uint64_t)rows * cols * width, d);
}

/* Copies exposures only if they match their digest: with a new digest, changed exposures would look
 * valid. */
static int copy_exposures(sherd_meta *meta, size_t i, uint32_t *out, sherd_diag *d)
{
    uint8_t sha256[32];
    int err = sherd_meta_exposures(meta, i, out, d);
    if (err) return err;
    sherd__metafile_exposures_sha256(sha256, out, (size_t)sherd_meta_columns(&meta->f.ops[i]));
    if (memcmp(sha256, meta->f.exposures_sha256[i], sizeof sha256) == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EFORMAT, "restore the file from a copy",
                       "%s: operation %s: the digest of the exposures differs from the one in the "
                       "manifest",
                       sherd__meta_where(meta), meta->f.ops[i].name);
}

static int fill_exposures(void *ctx, size_t i, uint32_t *out, sherd_diag *d)
{
    saving *s = ctx;
    double began = sherd__clock_s();
    int err = s->derives ? sherd__meta_derive_exposures(s->meta, s->meta->f.seed, i, out, d)
                         : copy_exposures(s->meta, i, out, d);
    if (s->seconds) s->seconds[i] += sherd__clock_s() - began;
    return err;
}

static int save(sherd_meta *meta, const char *path, const sherd_meta_save_options *opt,
                bool derives, uint64_t *size, sherd_diag *d)
{
    saving s = { .meta = meta, .seconds = opt->seconds, .derives = derives };
    sherd__metafile_source source = { fill_exposures, fill_rows, &s };
    if (meta->seed_wrong)
        return sherd__fail(d, SHERD_EFORMAT, "restore the file from a copy",
                           "%s: the seed does not match the commitment of the manifest",
                           sherd__meta_where(meta));
    if (opt->seconds) memset(opt->seconds, 0, meta->f.count * sizeof *opt->seconds);
    sherd__meta_begin(meta, &opt->hooks);
    int err = sherd__metafile_write(&meta->f, path, opt, &source, size, d);
    sherd__npz_reader_free(s.reader);
    if (s.scratch) sherd__wipe(s.scratch, s.scratch_len);
    sherd__free(s.scratch);
    return err;
}

#define EXPANDED_MAX 0x1p40 /* bytes; each entry takes at least one */

/* Returns the free bytes at `path`; UINT64_MAX if unknown or if `path` is not a regular file. */
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

/* Detects, before hours of writing begin, that the arrays cannot be written. Deflate reduces an
 * array to a quarter at best. */
static int check_room(const sherd_meta *meta, const char *path, const sherd_meta_save_options *opt,
                      sherd_diag *d)
{
    static const char hint[] = "the seed form (--form seed) contains the same in 32 bytes";
    double entries = 0;
    uint64_t bytes = 0, room = opt->expanded ? free_at(path) : UINT64_MAX;
    char needs[16], has[16];
    for (size_t i = 0; i < meta->f.count && opt->expanded; i++) {
        const sherd_meta_operation *op = &meta->f.ops[i];
        entries += (double)sherd_meta_table_rows(op) * (double)op->m +
                   (double)op->k * (double)op->n;
        if (entries > EXPANDED_MAX)
            return sherd__fail(d, SHERD_EINVAL, hint,
                               "the expanded form of %s, and all before it, would take more than "
                               "%s",
                               op->name, sherd__bytes_text(EXPANDED_MAX, needs));
        bytes += sherd_meta_bytes(meta, i);
    }
    if ((opt->deflate ? bytes / 4 : bytes) <= room) return SHERD_OK;
    return sherd__fail(d, SHERD_EIO, hint, "%s needs %s, and its disk has %s left", path,
                       sherd__bytes_text((double)bytes, needs),
                       sherd__bytes_text((double)room, has));
}

/* Makes `opt` describe the form in which the metadata was loaded. */
static void set_as_loaded(const sherd_meta *meta, sherd_meta_save_options *opt)
{
    opt->expanded = sherd_meta_expanded(meta);
    opt->without_seed = !sherd_meta_seed(meta);
    opt->deflate = false;
    for (size_t i = 0; meta->f.npz && i < sherd__npz_count(meta->f.npz); i++)
        opt->deflate |= sherd__npz_member_at(meta->f.npz, i)->deflated;
}

int sherd_meta_save(sherd_meta *meta, const char *path, const sherd_meta_save_options *opt,
                    uint64_t *size, sherd_diag *d)
{
    sherd_meta_save_options own;
    int err = sherd__options_read(&own, sizeof own, opt, "sherd_meta_save_options", d);
    if (err) return err;
    if (own.as_loaded) set_as_loaded(meta, &own);
    bool derives = sherd_meta_seed(meta) && !(own.as_loaded && own.expanded);
    err = check_room(meta, path, &own, d);
    return err ? err : save(meta, path, &own, derives, size, d);
}
