/*
 * The list of operations of a metadata file, and the reader of such files. The manifest determines
 * the members and their sizes. Every member of the archive must be one of these with exactly that
 * shape and width, and none may be missing. Later reads therefore have to check only the numbers.
 */
#include "store/metafile.h"

#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/wipe.h"
#include "matrix/funcs.h"
#include "store/manifest.h"

#define MANIFEST_MAX ((size_t)4 << 20)
#define HINT "write the file again with `sherd meta build`"
/* Limit on the unpacked size: rows of ten compress to a half, rows of one to almost nothing. */
#define UNPACKED_BASE ((uint64_t)1 << 30)
#define UNPACKED_PER_BYTE 32u

/* ---- operations ------------------------------------------------------------------------------ */

uint64_t sherd_meta_columns(const sherd_meta_operation *op)
{
    return op->kind == SHERD_OP_PRODUCT ? op->k : op->m;
}

uint64_t sherd_meta_table_rows(const sherd_meta_operation *op)
{
    return op->kind == SHERD_OP_PRODUCT ? op->k : op->n;
}

static const sherd_field settings_fields[] = {
    SHERD__FIELD(sherd_meta_settings, nodes, U32, "", "nodes that columns are assigned to"),
    SHERD__FIELD(sherd_meta_settings, group, U32, "", "columns that share a permutation; 0: all"),
    SHERD__FIELD(sherd_meta_settings, balanced, BOOL, "", "exposures are assigned in equal counts"),
    SHERD__FIELD(sherd_meta_settings, shuffle_rows, BOOL, "", "A's rows are shuffled too"),
};
SHERD__FIELDS(sherd_meta_settings, settings_fields)

static const sherd_field operation_fields[] = {
    SHERD__FIELD(sherd_meta_operation, name, TEXT, "", "name of the operation"),
    SHERD__FIELD_ENUM(sherd_meta_operation, kind, sherd__op_names, "what it computes"),
    SHERD__FIELD(sherd_meta_operation, n, U64, "", "rows of A"),
    SHERD__FIELD(sherd_meta_operation, k, U64, "", "dot: columns of A"),
    SHERD__FIELD(sherd_meta_operation, m, U64, "", "columns of the result"),
    SHERD__FIELD(sherd_meta_operation, used, BOOL, "", "it has been used with operands"),
    SHERD__FIELD(sherd_meta_operation, operands, BYTES, "", "their digest"),
};
SHERD__FIELDS(sherd_meta_operation, operation_fields)

int sherd__metafile_check_settings(const sherd_meta_settings *s, sherd_diag *d)
{
    if (s->nodes >= 1 && s->nodes <= UINT16_MAX) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, NULL, "%" PRIu32 " nodes: expected 1 to %d", s->nodes,
                       UINT16_MAX);
}

static bool name_is_plain(const char name[SHERD_META_NAME_SIZE])
{
    size_t n = strnlen(name, SHERD_META_NAME_SIZE);
    return n > 0 && n < SHERD_META_NAME_SIZE &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == n &&
           strcmp(name, "manifest") != 0 && strcmp(name, "seed") != 0;
}

static int check_operation(const sherd__metafile *f, const sherd_meta_operation *op, sherd_diag *d)
{
    if (!name_is_plain(op->name))
        return sherd__fail(d, SHERD_EINVAL, "letters, digits and _, at most 31 of them",
                           "\"%.31s\" cannot name an operation", op->name);
    if (sherd__metafile_find(f, op->name) >= 0)
        return sherd__fail(d, SHERD_EINVAL, "give each operation its own name",
                           "two operations are named %s", op->name);
    if (!sherd_op_name(op->kind))
        return sherd__fail(d, SHERD_EINVAL, NULL, "operation %s: %d is not the number of a kind",
                           op->name, (int)op->kind);
    uint64_t k = op->kind == SHERD_OP_PRODUCT ? op->k : 0;
    uint64_t most = op->n > k ? op->n : k;
    if (op->m > most) most = op->m;
    if (most > SHERD_META_DIM_MAX)
        return sherd__fail(d, SHERD_EINVAL, "split it into operations of fewer rows or columns",
                           "operation %s: a dimension is %" PRIu64 ", at most %" PRIu64
                           " are taken",
                           op->name, most, SHERD_META_DIM_MAX);
    return SHERD_OK;
}

int sherd__metafile_add(sherd__metafile *f, const sherd_meta_operation *op, sherd_diag *d)
{
    int err = check_operation(f, op, d);
    if (err) return err;
    if (f->count == SHERD__META_OPERATIONS_MAX)
        return sherd__fail(d, SHERD_EINVAL, "use several files", "more than %u operations",
                           SHERD__META_OPERATIONS_MAX);
    if (f->count == f->capacity) {
        size_t capacity = f->capacity ? 2 * f->capacity : 16;
        void *ops = sherd__realloc(f->ops, capacity * sizeof *f->ops);
        if (!ops) return sherd__fail_memory(d, "%zu operations", capacity);
        f->ops = ops;
        f->capacity = capacity;
    }
    f->ops[f->count] = *op;
    f->ops[f->count].size = sizeof *f->ops;
    if (op->kind != SHERD_OP_PRODUCT) f->ops[f->count].k = 0;
    f->count++;
    return SHERD_OK;
}

int64_t sherd__metafile_find(const sherd__metafile *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->ops[i].name, name) == 0) return (int64_t)i;
    return -1;
}

void sherd__metafile_fini(sherd__metafile *f)
{
    sherd__npz_close(f->npz);
    sherd__free(f->ops);
    sherd__free(f->exposures_sha256);
    sherd__wipe(f, sizeof *f);
}

/* ---- members --------------------------------------------------------------------------------- */

const char *sherd__metafile_table_name(sherd_meta_table table)
{
    static const char *const names[] = { "enshuffles", "unshuffles", "rows", "unrows" };
    return names[table];
}

void sherd__metafile_member(const sherd__metafile *f, size_t i, const char *what,
                            char out[SHERD__NPZ_NAME_SIZE])
{
    snprintf(out, SHERD__NPZ_NAME_SIZE, "%s.%s", f->ops[i].name, what);
}

static unsigned width_below(uint64_t n)
{
    return n <= 256 ? 1 : n <= 65536 ? 2 : 4;
}

static sherd_dtype dtype_of(unsigned width)
{
    return width == 1 ? SHERD_U8 : width == 2 ? SHERD_U16 : SHERD_U32;
}

unsigned sherd__metafile_index_bytes(const sherd__metafile *f, size_t i, sherd_meta_table table,
                                     uint64_t *rows, uint64_t *cols)
{
    const sherd_meta_operation *op = &f->ops[i];
    bool of_rows = table == SHERD_META_ROWS || table == SHERD_META_UNROWS;
    if (of_rows && (!f->settings.shuffle_rows || op->kind != SHERD_OP_PRODUCT)) return 0;
    *rows = sherd_meta_table_rows(op);
    *cols = of_rows ? op->n : op->m;
    return width_below(*cols);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Finds this member, which must have this dtype and shape. */
static int expect(const sherd__metafile *f, const sherd__npz_array *a, size_t *found, sherd_diag *d)
{
    const char *where = sherd__npz_where(f->npz);
    int64_t i = sherd__npz_find(f->npz, a->name);
    if (i < 0) return sherd__fail(d, SHERD_EFORMAT, HINT, "%s: %s is missing", where, a->name);
    const sherd__npy_header *h = &sherd__npz_member_at(f->npz, (size_t)i)->head;
    if (h->dtype != a->dtype)
        return sherd__fail(d, SHERD_EFORMAT, HINT, "%s: %s is of %s, expected %s", where, a->name,
                           sherd_dtype_word(h->dtype), sherd_dtype_word(a->dtype));
    if (h->ndim != a->ndim || h->rows != a->rows || h->cols != a->cols ||
        (h->fortran && a->ndim == 2))
        return sherd__fail(d, SHERD_EFORMAT, HINT,
                           "%s: %s is a %u-dimensional %zu x %zu%s, expected %zu x %zu", where,
                           a->name, h->ndim, h->rows, h->cols,
                           h->fortran ? " in Fortran order" : "", a->rows, a->cols);
    *found = (size_t)i;
    return SHERD_OK;
}

static int read_manifest(sherd__metafile *f, sherd_diag *d)
{
    const char *where = sherd__npz_where(f->npz);
    int64_t i = sherd__npz_find(f->npz, "manifest");
    if (i < 0)
        return sherd__fail(d, SHERD_EFORMAT, HINT,
                           "%s: is an .npz without a manifest, so it is not metadata", where);
    const sherd__npy_header *h = &sherd__npz_member_at(f->npz, (size_t)i)->head;
    if (h->dtype != SHERD_U8 || h->ndim != 1 || h->data_len > MANIFEST_MAX)
        return sherd__fail(d, SHERD_EFORMAT, HINT,
                           "%s: the manifest is not a list of at most %zu bytes (|u1)", where,
                           MANIFEST_MAX);
    char *text = sherd__alloc(h->data_len);
    if (!text) return sherd__fail_memory(d, "%s", where);
    int err = sherd__npz_read(f->npz, (size_t)i, text, h->data_len, d);
    if (!err) err = sherd__manifest_parse(f, text, h->data_len, where, d);
    sherd__free(text);
    return err;
}

static int read_seed(sherd__metafile *f, sherd_diag *d)
{
    size_t i;
    f->has_seed = sherd__npz_find(f->npz, "seed") >= 0;
    if (!f->has_seed && f->expanded) return SHERD_OK;
    int err = expect(f, &(sherd__npz_array){ "seed", SHERD_U8, 1, 1, sizeof f->seed }, &i, d);
    return err ? err : sherd__npz_read(f->npz, i, f->seed, sizeof f->seed, d);
}

/* Checks the arrays of one operation, and adds the expected number of them to *members. */
static int check_arrays(const sherd__metafile *f, size_t i, size_t *members, sherd_diag *d)
{
    char name[SHERD__NPZ_NAME_SIZE];
    size_t at;
    sherd__metafile_member(f, i, "exposures", name);
    int err = expect(f,
                     &(sherd__npz_array){ name, dtype_of(width_below(f->settings.nodes)), 1, 1,
                                          sherd_meta_columns(&f->ops[i]) },
                     &at, d);
    *members += 1;
    for (int t = SHERD_META_ENSHUFFLES; t <= SHERD_META_UNROWS && !err; t++) {
        uint64_t rows, cols;
        unsigned width = sherd__metafile_index_bytes(f, i, (sherd_meta_table)t, &rows, &cols);
        if (width == 0) continue;
        sherd__metafile_member(f, i, sherd__metafile_table_name((sherd_meta_table)t), name);
        err = expect(f, &(sherd__npz_array){ name, dtype_of(width), 2, rows, cols }, &at, d);
        *members += 1;
    }
    return err;
}

static int check_members(const sherd__metafile *f, sherd_diag *d)
{
    size_t members = 1 + f->has_seed;
    for (size_t i = 0; f->expanded && i < f->count; i++) {
        int err = check_arrays(f, i, &members, d);
        if (err) return err;
    }
    if (members == sherd__npz_count(f->npz)) return SHERD_OK;
    return sherd__fail(d, SHERD_EFORMAT, HINT, "%s: has %zu members, its manifest names %zu",
                       sherd__npz_where(f->npz), sherd__npz_count(f->npz), members);
}

static int read_opened(sherd__metafile *f, sherd_diag *d)
{
    f->settings.size = sizeof f->settings;
    int err = read_manifest(f, d);
    if (!err) err = read_seed(f, d);
    if (!err) err = check_members(f, d);
    if (err) sherd__metafile_fini(f);
    return err;
}

int sherd__metafile_open_bytes(sherd__metafile *f, const uint8_t *bytes, size_t len,
                               const char *where, sherd_diag *d)
{
    *f = (sherd__metafile){ .count = 0 };
    int err = sherd__npz_open_bytes(&f->npz, bytes, len, where,
                                    (sherd__npz_limit){ UNPACKED_BASE, UNPACKED_PER_BYTE }, d);
    return err ? err : read_opened(f, d);
}

int sherd__metafile_open(sherd__metafile *f, const char *path, sherd_diag *d)
{
    *f = (sherd__metafile){ .count = 0 };
    int err = sherd__npz_open(&f->npz, path, UNPACKED_BASE, UNPACKED_PER_BYTE, d);
    return err ? err : read_opened(f, d);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void widen(uint32_t *out, size_t len, unsigned width)
{
    /* Works from the end, so that the narrow values can be at the start of the same memory. */
    const uint8_t *b = (const uint8_t *)out;
    for (size_t i = len; i-- > 0 && width < 4;)
        out[i] = width == 1 ? b[i] : sherd__get_u16(b + 2 * i);
}

int sherd__metafile_exposures(const sherd__metafile *f, size_t i, uint32_t *out, sherd_diag *d)
{
    char name[SHERD__NPZ_NAME_SIZE];
    unsigned width = width_below(f->settings.nodes);
    size_t at, len = (size_t)sherd_meta_columns(&f->ops[i]);
    sherd__metafile_member(f, i, "exposures", name);
    int err = expect(f, &(sherd__npz_array){ name, dtype_of(width), 1, 1, len }, &at, d);
    if (!err) err = sherd__npz_read(f->npz, at, out, len * width, d);
    if (!err) widen(out, len, width);
    return err;
}

int sherd__metafile_reader(sherd__npz_reader **out, const sherd__metafile *f, size_t i,
                           sherd_meta_table table, sherd_diag *d)
{
    char name[SHERD__NPZ_NAME_SIZE];
    uint64_t rows, cols;
    size_t at;
    *out = NULL;
    unsigned width = sherd__metafile_index_bytes(f, i, table, &rows, &cols);
    if (width == 0)
        return sherd__fail(d, SHERD_EINVAL, NULL, "operation %s has no table of %s", f->ops[i].name,
                           sherd__metafile_table_name(table));
    sherd__metafile_member(f, i, sherd__metafile_table_name(table), name);
    int err = expect(f, &(sherd__npz_array){ name, dtype_of(width), 2, rows, cols }, &at, d);
    return err ? err : sherd__npz_reader_new(out, f->npz, at, d);
}

void sherd__metafile_exposures_sha256(uint8_t out[32], const uint32_t *exposures, size_t len)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are little endian in memory");
    SHA256((const uint8_t *)exposures, len * sizeof *exposures, out);
}
