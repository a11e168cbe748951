/*
 * IDX reader. The header (magic, sizes) is read first, from the file or from the first inflated
 * bytes. The size that it declares is compared with the file's length, or with the maximum that
 * deflate can produce from it, before anything is allocated. Then exactly that many bytes are read,
 * and no data may follow. A damaged or padded file fails zlib's checksum or the length check.
 */
#include "store/idx.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "store/file.h"

#define HEAD_MAX 16u        /* magic and three sizes */
#define DEFLATE_RATIO 1032u /* maximum expansion of a deflate stream (zlib's technical notes) */
#define REMEDY "download the file again, or unpack it with gunzip to see what it is"

static uint32_t get_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Bytes of a header, and of the values that it claims. */
typedef struct lengths {
    size_t head, size;
} lengths;

/* Parses magic and sizes. `have`: bytes in `head`, 4 or enough for all dimensions. */
static int parse_head(sherd__idx *x, const uint8_t *head, size_t have, const char *where,
                      lengths *of, sherd_diag *d)
{
    if (have == 0)
        return sherd__fail(d, SHERD_EFORMAT, "download the file again", "%s: is empty", where);
    if (have < 4 || head[0] != 0 || head[1] != 0)
        return sherd__fail(d, SHERD_EFORMAT, REMEDY,
                           "%s: is not an IDX file (it begins %02x %02x, one begins 00 00 08)",
                           where, head[0], have > 1 ? head[1] : 0);
    if (head[2] != 0x08)
        return sherd__fail(d, SHERD_EFORMAT, "convert it to .npy",
                           "%s: byte 2: values of type 0x%02x, unsigned bytes (0x08) are read",
                           where, head[2]);
    if (head[3] < 1 || head[3] > 3)
        return sherd__fail(d, SHERD_EFORMAT, "convert it to .npy",
                           "%s: byte 3: %u dimensions, 1 to 3 are read", where, head[3]);
    x->ndim = head[3];
    of->head = 4 + 4 * (size_t)x->ndim;
    if (have < of->head)
        return sherd__fail(d, SHERD_EFORMAT, REMEDY,
                           "%s: truncated: its header needs %zu bytes, it has %zu", where, of->head,
                           have);
    x->rows = x->shape[0] = get_be32(head + 4);
    x->cols = 1;
    bool fits = true;
    for (unsigned i = 1; i < x->ndim; i++) {
        x->shape[i] = get_be32(head + 4 + 4 * i);
        fits = fits && sherd__mul(x->cols, x->shape[i], &x->cols);
    }
    if (!fits || !sherd__mul(x->rows, x->cols, &of->size) || of->size > SHERD__IDX_BYTES_MAX)
        return sherd__fail(d, SHERD_EFORMAT, REMEDY,
                           "%s: claims %u x %u x %u values, more than the %zu that are read", where,
                           x->shape[0], x->ndim > 1 ? x->shape[1] : 1u,
                           x->ndim > 2 ? x->shape[2] : 1u, SHERD__IDX_BYTES_MAX);
    if (!sherd__shape_ok(x->rows, x->cols))
        return sherd__fail(d, SHERD_EFORMAT, REMEDY,
                           "%s: claims %zu x %zu values: a dimension is " SHERD__DIMENSION_LIMITS,
                           where, x->rows, x->cols);
    return SHERD_OK;
}

static int fail_size(const char *where, size_t need, size_t have, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EFORMAT, REMEDY, "%s: %s: needs %zu bytes, has %s%zu", where,
                       have < need ? "truncated" : "too long", need, have < need ? "" : "at least ",
                       have);
}

static int parse_plain(sherd__idx *x, const uint8_t *bytes, size_t len, const char *where,
                       sherd_diag *d)
{
    lengths of = { 0, 0 };
    int err = parse_head(x, bytes, len, where, &of, d);
    if (err) return err;
    if (len != of.head + of.size) return fail_size(where, of.head + of.size, len, d);
    x->values = sherd__alloc(of.size);
    if (!x->values) return sherd__fail_memory(d, "%s", where);
    memcpy(x->values, bytes + of.head, of.size);
    return SHERD_OK;
}

/* ---- gzip ------------------------------------------------------------------------------------ */

static voidpf zlib_alloc(voidpf ctx, uInt items, uInt size)
{
    (void)ctx;
    return sherd__calloc(items, size);
}

static void zlib_free(voidpf ctx, voidpf p)
{
    (void)ctx;
    sherd__free(p);
}

typedef struct unpacker {
    z_stream z;
    const uint8_t *in;
    size_t in_left;
    bool ended;
} unpacker;

/* Inflates up to len bytes into out; *got < len only at the end of the stream. */
static int unpack(unpacker *u, uint8_t *out, size_t len, size_t *got, const char *where,
                  sherd_diag *d)
{
    size_t n = 0;
    while (n < len && !u->ended) {
        uInt in = u->in_left < (1u << 30) ? (uInt)u->in_left : 1u << 30;
        uInt room = len - n < (1u << 30) ? (uInt)(len - n) : 1u << 30;
        u->z.next_in = (z_const Bytef *)u->in;
        u->z.avail_in = in;
        u->z.next_out = out + n;
        u->z.avail_out = room;
        int e = inflate(&u->z, Z_NO_FLUSH);
        u->in += in - u->z.avail_in;
        u->in_left -= in - u->z.avail_in;
        n += room - u->z.avail_out;
        u->ended = e == Z_STREAM_END;
        if (e == Z_MEM_ERROR) return sherd__fail_memory(d, "%s", where);
        if (e != Z_OK && e != Z_STREAM_END)
            return sherd__fail(d, SHERD_EFORMAT, "download the file again",
                               "%s: damaged or truncated gzip data near byte %llu: %s", where,
                               (unsigned long long)u->z.total_in,
                               u->z.msg ? u->z.msg : "it ends too early");
    }
    *got = n;
    return SHERD_OK;
}

static int unpack_all(sherd__idx *x, unpacker *u, size_t packed_len, const char *where,
                      sherd_diag *d)
{
    uint8_t head[HEAD_MAX] = { 0 }, after;
    lengths of = { 0, 0 };
    size_t got = 0, more = 0;
    int err = unpack(u, head, 4, &got, where, d);
    if (err) return err;
    if (got == 4 && head[3] >= 1 && head[3] <= 3)
        err = unpack(u, head + 4, 4 * (size_t)head[3], &more, where, d);
    if (!err) err = parse_head(x, head, got + more, where, &of, d);
    if (err) return err;
    if (of.size / DEFLATE_RATIO > packed_len)
        return sherd__fail(d, SHERD_EFORMAT, REMEDY,
                           "%s: claims %zu values, more than its %zu bytes can unpack to", where,
                           of.size, packed_len);
    x->values = sherd__alloc(of.size);
    if (!x->values) return sherd__fail_memory(d, "%s", where);
    err = unpack(u, x->values, of.size, &got, where, d);
    if (!err && got < of.size) err = fail_size(where, of.head + of.size, of.head + got, d);
    if (!err) err = unpack(u, &after, 1, &more, where, d); /* also verifies the checksum */
    if (!err && (more || u->in_left))
        err = fail_size(where, of.head + of.size, of.head + of.size + 1, d);
    return err;
}

static int parse_gzip(sherd__idx *x, const uint8_t *bytes, size_t len, const char *where,
                      sherd_diag *d)
{
    unpacker u = { .z = { .zalloc = zlib_alloc, .zfree = zlib_free }, .in = bytes, .in_left = len };
    int e = inflateInit2(&u.z, 15 + 16);
    if (e == Z_MEM_ERROR) return sherd__fail_memory(d, "%s", where);
    if (e != Z_OK)
        return sherd__fail(d, SHERD_EINTERNAL, NULL, "%s: zlib cannot be initialised", where);
    int err = unpack_all(x, &u, len, where, d);
    inflateEnd(&u.z);
    return err;
}

/* ---- public calls ---------------------------------------------------------------------------- */

int sherd__idx_parse(sherd__idx *out, const uint8_t *bytes, size_t len, const char *where,
                     sherd_diag *d)
{
    sherd__idx x = { 0 };
    bool gzip = len >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
    int err = (gzip ? parse_gzip : parse_plain)(&x, bytes, len, where, d);
    if (err) {
        sherd__free(x.values);
        return err;
    }
    *out = x;
    return SHERD_OK;
}

int sherd__idx_load(sherd__idx *out, const char *path, sherd_diag *d)
{
    sherd__map m;
    int err = sherd__map_open(&m, path, SHERD__IDX_BYTES_MAX, d);
    if (err) return err;
    err = sherd__idx_parse(out, m.bytes, m.len, sherd__path_tail(path), d);
    sherd__map_close(&m);
    return err;
}

void sherd__idx_fini(sherd__idx *x)
{
    sherd__free(x->values);
    *x = (sherd__idx){ 0 };
}

sherd_view sherd__idx_view(const sherd__idx *x)
{
    return sherd_view_c(x->values, SHERD_U8, x->rows, x->cols);
}

/* Finds a file under any of its four possible names. */
static bool find_one(char *path, size_t size, const char *folder, const char *prefix,
                     const char *what, unsigned ndim)
{
    for (unsigned i = 0; i < 4; i++) {
        int n = snprintf(path, size, "%s/%s-%s%cidx%u-ubyte%s", folder, prefix, what,
                         i & 2 ? '.' : '-', ndim, i & 1 ? "" : ".gz");
        if (n >= 0 && (size_t)n < size && access(path, F_OK) == 0) return true;
    }
    return false;
}

bool sherd__idx_set_any(const char *folder, const char *prefix)
{
    char path[4096];
    return find_one(path, sizeof path, folder, prefix, "images", 3) ||
           find_one(path, sizeof path, folder, prefix, "labels", 1);
}

static int load_one(sherd__idx *out, const char *folder, const char *prefix, const char *what,
                    unsigned ndim, sherd_diag *d)
{
    char path[4096];
    if (find_one(path, sizeof path, folder, prefix, what, ndim))
        return sherd__idx_load(out, path, d);
    return sherd__fail(d, SHERD_EOPEN, "give the folder that holds the four files of the data set",
                       "%s: has no %s-%s-idx%u-ubyte, with or without .gz",
                       sherd__path_tail(folder), prefix, what, ndim);
}

int sherd__idx_set_load(sherd__idx_set *out, const char *folder, const char *prefix, sherd_diag *d)
{
    sherd__idx_set s = { 0 };
    int err = load_one(&s.images, folder, prefix, "images", 3, d);
    if (!err) err = load_one(&s.labels, folder, prefix, "labels", 1, d);
    if (!err && (s.labels.ndim != 1 || s.labels.rows != s.images.rows))
        err = sherd__fail(d, SHERD_ESHAPE, "download both files again",
                          "%s: %s has %zu images, but %zu labels", sherd__path_tail(folder), prefix,
                          s.images.rows, s.labels.rows);
    if (err) {
        sherd__idx_set_fini(&s);
        return err;
    }
    *out = s;
    return SHERD_OK;
}

void sherd__idx_set_fini(sherd__idx_set *x)
{
    sherd__idx_fini(&x->images);
    sherd__idx_fini(&x->labels);
}
