/*
 * Reads .npz with libzip over bytes that are mapped or in memory, so that files, pipes and fuzzers
 * use the same code path. Every number that an archive declares is checked. The .npy header gives
 * the length of a member, the zip directory must agree with it, the packed bytes must be able to
 * unpack to it, and the sum must stay below the caller's limit. A member is then read to exactly
 * that length, where libzip compares the CRC. A false directory can therefore use no more memory
 * than the limit, and no more time than is needed to inflate it.
 */
#include "store/npz.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zip.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "store/file.h"

#define STREAM_MAX ((size_t)4 << 30) /* maximum bytes read from a pipe */
#define DEFLATE_RATIO 1032u /* maximum expansion of a deflate stream (zlib's technical notes) */
#define COPY_AGAIN "copy the file again, or write it again"
#define RESAVE "re-save it with numpy.savez(path, name=array)"

struct sherd__npz {
    sherd__map map; /* zeroed if the bytes are borrowed */
    char *where;
    zip_t *zip;
    size_t count;
    uint64_t len, unpacked_max;
    sherd__npz_member *members;
};

struct sherd__npz_reader {
    sherd__npz *z;
    const sherd__npz_member *m;
    zip_file_t *file;
    uint64_t left; /* bytes of values not yet read */
};

/* ---- names ----------------------------------------------------------------------------------- */

/* Matches [A-Za-z0-9_]+(\.[a-z]+)?\.npy: no folders, nothing special to a file system. */
static bool name_is_plain(const char *name)
{
    const char *p = name;
    while (isalnum((unsigned char)*p) || *p == '_') p++;
    if (p == name || *p != '.') return false;
    if (strcmp(p, ".npy") == 0) return true;
    const char *word = ++p;
    while (*p >= 'a' && *p <= 'z') p++;
    return p > word && strcmp(p, ".npy") == 0;
}

static int check_name(const char *name, const char *where, size_t i, sherd_diag *d)
{
    size_t len = strlen(name);
    char shown[64];
    if (len < SHERD__NPZ_NAME_SIZE && name_is_plain(name)) return SHERD_OK;
    snprintf(shown, sizeof shown, "%s", name);
    for (char *p = shown; *p; p++)
        if (!isprint((unsigned char)*p)) *p = '?';
    return sherd__fail(d, SHERD_EFORMAT, RESAVE,
                       "%s: member %zu is named \"%s\", expected NAME.npy of letters and digits",
                       where, i, shown);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int fail_zip(const char *where, zip_error_t *e, sherd_diag *d)
{
    if (zip_error_code_zip(e) == ZIP_ER_MEMORY) return sherd__fail_memory(d, "%s", where);
    return sherd__fail(d, SHERD_EFORMAT, COPY_AGAIN, "%s: is not a valid .npz archive: %s", where,
                       zip_error_strerror(e));
}

/* Fails for bytes that libzip does not open. A zip file begins with PK also if it is cut. */
static int fail_open(const char *where, const uint8_t *bytes, size_t len, zip_error_t *e,
                     sherd_diag *d)
{
    bool npy = len >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0;
    if (zip_error_code_zip(e) != ZIP_ER_NOZIP || (len >= 2 && memcmp(bytes, "PK", 2) == 0))
        return fail_zip(where, e, d);
    return sherd__fail(d, SHERD_EFORMAT,
                       npy ? "it is a .npy file: an .npz is expected here" : "name an .npz",
                       "%s: is not an .npz archive", where);
}

static int fail_member(const sherd__npz *z, const char *name, zip_error_t *e, sherd_diag *d)
{
    if (zip_error_code_zip(e) == ZIP_ER_MEMORY) return sherd__fail_memory(d, "%s", z->where);
    if (zip_error_code_zip(e) == ZIP_ER_CRC)
        return sherd__fail(d, SHERD_EFORMAT, COPY_AGAIN,
                           "%s: %s: the CRC does not match: the file is damaged", z->where, name);
    return sherd__fail(d, SHERD_EFORMAT, COPY_AGAIN, "%s: %s: cannot be unpacked: %s", z->where,
                       name, zip_error_strerror(e));
}

/* Reads the directory entry of member i; *st is then complete. */
static int check_stat(sherd__npz *z, size_t i, zip_stat_t *st, sherd_diag *d)
{
    const uint64_t need = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                          ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    zip_stat_init(st);
    if (zip_stat_index(z->zip, i, 0, st) != 0) return fail_zip(z->where, zip_get_error(z->zip), d);
    if ((st->valid & need) != need)
        return sherd__fail(d, SHERD_EFORMAT, COPY_AGAIN, "%s: member %zu lacks a name or size",
                           z->where, i);
    int err = check_name(st->name, z->where, i, d);
    if (err) return err;
    if (st->encryption_method != ZIP_EM_NONE)
        return sherd__fail(d, SHERD_EFORMAT, RESAVE, "%s: %s is encrypted", z->where, st->name);
    if (st->comp_method != ZIP_CM_STORE && st->comp_method != ZIP_CM_DEFLATE)
        return sherd__fail(
            d, SHERD_EFORMAT, RESAVE,
            "%s: %s is compressed by method %u, stored (0) and deflated (8) are read", z->where,
            st->name, st->comp_method);
    if (st->size / DEFLATE_RATIO > st->comp_size)
        return sherd__fail(d, SHERD_EFORMAT, COPY_AGAIN,
                           "%s: %s claims %llu bytes, more than its %llu can unpack to", z->where,
                           st->name, (unsigned long long)st->size,
                           (unsigned long long)st->comp_size);
    if (zip_name_locate(z->zip, st->name, 0) != (zip_int64_t)i)
        return sherd__fail(d, SHERD_EFORMAT, RESAVE, "%s: %s occurs twice", z->where, st->name);
    return SHERD_OK;
}

static int read_exactly(const sherd__npz *z, const char *name, zip_file_t *file, uint8_t *out,
                        size_t len, sherd_diag *d)
{
    while (len > 0) {
        zip_int64_t got = zip_fread(file, out, len);
        if (got < 0) return fail_member(z, name, zip_file_get_error(file), d);
        if (got == 0)
            return sherd__fail(d, SHERD_EFORMAT, COPY_AGAIN, "%s: %s ends %zu bytes early",
                               z->where, name, len);
        out += got;
        len -= (size_t)got;
    }
    return SHERD_OK;
}

static int read_head(sherd__npz *z, size_t i, const zip_stat_t *st, sherd_diag *d)
{
    uint8_t head[SHERD__NPY_HEADER_MAX];
    char where[512];
    size_t len = st->size < sizeof head ? (size_t)st->size : sizeof head;
    zip_file_t *file = zip_fopen_index(z->zip, i, 0);
    if (!file) return fail_member(z, st->name, zip_get_error(z->zip), d);
    snprintf(where, sizeof where, "%s: %s", z->where, st->name);
    int err = read_exactly(z, st->name, file, head, len, d);
    zip_fclose(file);
    if (!err) err = sherd__npy_header_parse(&z->members[i].head, head, len, where, d);
    if (!err) err = sherd__npy_size_check(&z->members[i].head, st->size, where, d);
    return err;
}

static int read_directory(sherd__npz *z, sherd_diag *d)
{
    zip_int64_t count = zip_get_num_entries(z->zip, 0);
    uint64_t total = 0;
    if (count < 0 || count > SHERD__NPZ_MEMBERS_MAX)
        return sherd__fail(d, SHERD_EFORMAT, RESAVE, "%s: has %lld members, at most %u are read",
                           z->where, (long long)count, SHERD__NPZ_MEMBERS_MAX);
    z->members = sherd__calloc((size_t)count, sizeof *z->members);
    if (!z->members) return sherd__fail_memory(d, "%s", z->where);
    for (size_t i = 0; i < (size_t)count; i++) {
        zip_stat_t st;
        int err = check_stat(z, i, &st, d);
        if (err) return err;
        if (st.size > z->unpacked_max - total)
            return sherd__fail(d, SHERD_EFORMAT, "is this the right file?",
                               "%s: %s would unpack to %llu bytes, beyond the %llu allowed in all",
                               z->where, st.name, (unsigned long long)st.size,
                               (unsigned long long)z->unpacked_max);
        total += st.size;
        err = read_head(z, i, &st, d);
        if (err) return err;
        z->members[i].deflated = st.comp_method == ZIP_CM_DEFLATE;
        z->members[i].packed = st.comp_size;
        memcpy(z->members[i].name, st.name, strlen(st.name) - strlen(".npy"));
    }
    z->count = (size_t)count;
    return SHERD_OK;
}

/* Returns base + ratio * len, or the largest number on overflow. */
static uint64_t ceiling(uint64_t base, uint32_t ratio, uint64_t len)
{
    uint64_t max;
    if (__builtin_mul_overflow(len, ratio, &max) || __builtin_add_overflow(max, base, &max))
        max = UINT64_MAX;
    return max;
}

/* Takes ownership of z, which has its name and limit set. */
static int open_zip(sherd__npz **out, sherd__npz *z, const uint8_t *bytes, size_t len,
                    sherd_diag *d)
{
    zip_error_t e;
    int err = SHERD_OK;
    z->len = len;
    if (len == 0) { /* libzip would treat this as a new archive */
        sherd__fail(d, SHERD_EFORMAT, COPY_AGAIN, "%s: is empty, not an .npz archive", z->where);
        sherd__npz_close(z);
        return SHERD_EFORMAT;
    }
    zip_error_init(&e);
    zip_source_t *src = zip_source_buffer_create(bytes, len, 0, &e);
    z->zip = src ? zip_open_from_source(src, ZIP_RDONLY | ZIP_CHECKCONS, &e) : NULL;
    if (!z->zip) {
        err = fail_open(z->where, bytes, len, &e, d);
        if (src) zip_source_free(src);
    }
    zip_error_fini(&e);
    if (!err) err = read_directory(z, d);
    if (err) {
        sherd__npz_close(z);
        return err;
    }
    *out = z;
    return SHERD_OK;
}

static int new_npz(sherd__npz **out, const char *where, sherd_diag *d)
{
    sherd__npz *z = sherd__calloc(1, sizeof *z);
    if (z && (z->where = sherd__strdup(sherd__path_tail(where)))) {
        *out = z;
        return SHERD_OK;
    }
    sherd__free(z);
    return sherd__fail_memory(d, "%s", sherd__path_tail(where));
}

int sherd__npz_open_bytes(sherd__npz **out, const uint8_t *bytes, size_t len, const char *where,
                          sherd__npz_limit limit, sherd_diag *d)
{
    sherd__npz *z = NULL;
    *out = NULL;
    int err = new_npz(&z, where, d);
    if (err) return err;
    z->unpacked_max = ceiling(limit.base, limit.ratio, len);
    return open_zip(out, z, bytes, len, d);
}

int sherd__npz_open(sherd__npz **out, const char *path, uint64_t unpacked_base,
                    uint32_t unpacked_ratio, sherd_diag *d)
{
    sherd__npz *z = NULL;
    *out = NULL;
    int err = new_npz(&z, path, d);
    if (err) return err;
    err = sherd__map_open(&z->map, path, STREAM_MAX, d);
    if (err) {
        sherd__npz_close(z);
        return err;
    }
    z->unpacked_max = ceiling(unpacked_base, unpacked_ratio, z->map.len);
    return open_zip(out, z, z->map.bytes, z->map.len, d);
}

void sherd__npz_close(sherd__npz *z)
{
    if (!z) return;
    if (z->zip) zip_discard(z->zip);
    sherd__map_close(&z->map);
    sherd__free(z->members);
    sherd__free(z->where);
    sherd__free(z);
}

size_t sherd__npz_count(const sherd__npz *z)
{
    return z->count;
}

const sherd__npz_member *sherd__npz_member_at(const sherd__npz *z, size_t i)
{
    return &z->members[i];
}

int64_t sherd__npz_find(const sherd__npz *z, const char *name)
{
    char file[SHERD__NPZ_NAME_SIZE + 8];
    int n = snprintf(file, sizeof file, "%s.npy", name);
    return n < 0 || (size_t)n >= sizeof file ? -1 : zip_name_locate(z->zip, file, 0);
}

const char *sherd__npz_where(const sherd__npz *z)
{
    return z->where;
}

/* ---- reading values -------------------------------------------------------------------------- */

int sherd__npz_reader_new(sherd__npz_reader **out, sherd__npz *z, size_t i, sherd_diag *d)
{
    uint8_t head[SHERD__NPY_HEADER_MAX];
    *out = NULL;
    sherd__npz_reader *r = sherd__calloc(1, sizeof *r);
    if (!r) return sherd__fail_memory(d, "%s", z->where);
    r->z = z;
    r->m = &z->members[i];
    r->left = r->m->head.data_len;
    r->file = zip_fopen_index(z->zip, i, 0);
    int err = r->file ? read_exactly(z, r->m->name, r->file, head, r->m->head.data_at, d)
                      : fail_member(z, r->m->name, zip_get_error(z->zip), d);
    if (!err && r->left == 0) err = sherd__npz_reader_next(r, head, 0, d);
    if (err) {
        sherd__npz_reader_free(r);
        return err;
    }
    *out = r;
    return SHERD_OK;
}

int sherd__npz_reader_next(sherd__npz_reader *r, void *out, size_t len, sherd_diag *d)
{
    uint8_t beyond;
    if (len > r->left)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%s: %s: %zu bytes requested, %llu are left",
                           r->z->where, r->m->name, len, (unsigned long long)r->left);
    int err = read_exactly(r->z, r->m->name, r->file, out, len, d);
    if (err) return err;
    r->left -= len;
    if (r->left > 0) return SHERD_OK;
    zip_int64_t more = zip_fread(r->file, &beyond, 1); /* the CRC is compared at the end */
    if (more < 0) return fail_member(r->z, r->m->name, zip_file_get_error(r->file), d);
    if (more > 0)
        return sherd__fail(d, SHERD_EFORMAT, COPY_AGAIN, "%s: %s: is longer than its header says",
                           r->z->where, r->m->name);
    return SHERD_OK;
}

void sherd__npz_reader_free(sherd__npz_reader *r)
{
    if (!r) return;
    if (r->file) zip_fclose(r->file);
    sherd__free(r);
}

int sherd__npz_read(sherd__npz *z, size_t i, void *out, size_t len, sherd_diag *d)
{
    sherd__npz_reader *r;
    if (len != z->members[i].head.data_len)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%s: %s: holds %zu bytes, not %zu", z->where,
                           z->members[i].name, z->members[i].head.data_len, len);
    int err = sherd__npz_reader_new(&r, z, i, d);
    if (!err && len > 0) err = sherd__npz_reader_next(r, out, len, d);
    sherd__npz_reader_free(r);
    return err;
}

int sherd__npz_take(sherd__npz *z, const char *name, sherd_dtype dtype, void *out, size_t len,
                    sherd_diag *d)
{
    int64_t i = sherd__npz_find(z, name);
    const sherd__npz_member *m = i >= 0 ? sherd__npz_member_at(z, (size_t)i) : NULL;
    if (!m || m->head.dtype != dtype || m->head.data_len != len)
        return sherd__fail(d, SHERD_EFORMAT, "use the version of sherd that wrote it",
                           "%s: expected a member '%s' of %zu bytes", sherd__npz_where(z), name,
                           len);
    return sherd__npz_read(z, (size_t)i, out, len, d);
}
