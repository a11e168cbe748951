/*
 * Fragments: a description, and either bytes in memory or a source that produces them. Both schemes
 * (which hide) and the wire code (which parses) create fragments here, so this file also contains
 * the only check of a description against arithmetic. The bytes of a caller's own fragment are
 * trusted; descriptions are not, since they may have come from a peer.
 */
#include "crypto/fragment.h"

#include <sodium.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/fragment_make.h"
#include "crypto/seed.h"
#include "matrix/residue_bytes.h"
#include "sherd/mat.h"

struct sherd__fragment {
    sherd__fragment_info info;
    uint8_t *bytes; /* NULL: produced by the source */
    void (*release)(void *ctx, uint8_t *bytes, uint64_t len);
    void *release_ctx;
    sherd__fragment_source
        source; /* deferred: of `bytes`; once they are settled its fill is NULL */
};

const sherd__fragment_info *sherd__fragment_info_of(const sherd__fragment *f)
{
    return &f->info;
}

const uint8_t *sherd__fragment_bytes(const sherd__fragment *f)
{
    return f->bytes;
}

int sherd__fragment_settle(const sherd__fragment *f)
{
    if (!f->bytes || !f->source.fill) return SHERD_OK;
    int err = f->source.fill(f->source.ctx, 0, f->bytes, f->info.len);
    if (!err) ((sherd__fragment *)(uintptr_t)f)->source.fill = NULL; /* fragments are on the heap */
    return err;
}

int sherd__fragment_read(sherd__fragment *f, uint64_t offset, void *out, size_t len)
{
    if (offset > f->info.len || len > f->info.len - offset) return SHERD_EINVAL;
    int err = sherd__fragment_settle(f);
    if (err) return err;
    if (!f->bytes) return f->source.fill(f->source.ctx, offset, out, len);
    if (len) memcpy(out, f->bytes + offset, len);
    return SHERD_OK;
}

static int new_fragment(sherd__fragment **out, const sherd__fragment_info *info)
{
    *out = NULL;
    int err = sherd__fragment_info_check(info, NULL);
    if (err) return SHERD_EINVAL;
    sherd__fragment *f = sherd__calloc(1, sizeof *f);
    if (!f) return SHERD_ENOMEM;
    f->info = *info;
    *out = f;
    return SHERD_OK;
}

int sherd__fragment_new_source(sherd__fragment **out, const sherd__fragment_info *info,
                               sherd__fragment_source source)
{
    int err = info->encoding == SHERD__DENSE ? new_fragment(out, info) : SHERD_EINVAL;
    if (err) *out = NULL;
    else (*out)->source = source;
    return err;
}

int sherd__fragment_take(sherd__fragment **out, const sherd__fragment_info *info, uint8_t *bytes,
                         void (*release)(void *ctx, uint8_t *bytes, uint64_t len), void *ctx)
{
    int err = new_fragment(out, info);
    if (err) return err;
    (*out)->bytes = bytes;
    (*out)->release = release;
    (*out)->release_ctx = ctx;
    return SHERD_OK;
}

int sherd__fragment_defer(sherd__fragment **out, const sherd__fragment_info *info, uint8_t *bytes,
                          void (*release)(void *ctx, uint8_t *bytes, uint64_t len), void *ctx,
                          sherd__fragment_source source)
{
    *out = NULL;
    if (info->encoding != SHERD__DENSE) return SHERD_EINVAL;
    int err = sherd__fragment_take(out, info, bytes, release, ctx);
    if (!err) (*out)->source = source;
    return err;
}

void sherd__fragment_free(sherd__fragment *f)
{
    if (!f) return;
    if (f->source.free) f->source.free(f->source.ctx);
    if (f->bytes && f->release) {
        f->release(f->release_ctx, f->bytes, f->info.len);
    } else if (f->bytes) {
        sodium_memzero(f->bytes, f->info.len);
        sherd__free(f->bytes);
    }
    sherd__free(f);
}

bool sherd__fragment_is_bytes(uint8_t dtype)
{
    return dtype == SHERD__BYTES_LEFT || dtype == SHERD__BYTES_RIGHT || dtype == SHERD__BYTES;
}

static unsigned primes_most(uint8_t dtype)
{
    return sherd__fragment_is_bytes(dtype) ? SHERD__BYTES_PRIMES_MAX
           : dtype == SHERD__RESIDUES      ? SHERD__RESIDUES_PRIMES_MAX
                                           : 0;
}

/* Returns the bytes of one value on the wire; 0 for an unknown kind. */
static size_t element_bytes(uint8_t dtype)
{
    switch (dtype) {
    case SHERD__RESIDUES: return 3;
    case SHERD__BYTES_LEFT:
    case SHERD__BYTES_RIGHT:
    case SHERD__BYTES:
    case SHERD_U8:
    case SHERD_I8: return 1;
    case SHERD_U16:
    case SHERD_I16: return 2;
    case SHERD_U32:
    case SHERD_I32:
    case SHERD_F32: return 4;
    case SHERD_F64:
    case SHERD_I64: return 8;
    default: return 0;
    }
}

unsigned sherd__csr_width(uint64_t cols)
{
    return cols <= UINT8_MAX ? 1 : cols <= UINT16_MAX ? 2 : 4;
}

uint64_t sherd__csr_len(uint32_t groups, uint64_t rows, uint64_t cols, uint64_t entries,
                        size_t value_bytes)
{
    unsigned width = sherd__csr_width(cols);
    return 8 * (uint64_t)groups + width * rows + (width + value_bytes) * entries;
}

bool sherd__csr_layout(const sherd__fragment_info *i, sherd__csr *out)
{
    size_t each = element_bytes(i->dtype);
    if (i->encoding != SHERD__CSR || i->origin != SHERD__HIDDEN || i->primes || !i->groups ||
        !each || i->groups > SHERD__GROUPS_MAX || i->rows > UINT32_MAX || i->cols > UINT32_MAX)
        return false;
    unsigned width = sherd__csr_width(i->cols);
    uint64_t counts = 8 * (uint64_t)i->groups, columns = counts + width * i->rows; /* < 2^35 */
    if (i->len < columns || i->len > SHERD__CSR_MAX) return false;
    if ((i->len - columns) % (width + each)) return false;
    uint64_t entries = (i->len - columns) / (width + each);
    if (entries > i->rows * i->cols) return false;
    *out = (sherd__csr){ width, entries, counts, columns, columns + width * entries };
    return true;
}

/* Sets *len to the bytes of a dense body whose groups are not narrower than info.cols. Strips and
 * tiles of byte residues are complete. */
static bool dense_len(const sherd__fragment_info *i, size_t each, size_t *len)
{
    size_t rows = i->rows, cols = i->cols, blocks = i->primes ? i->primes : 1;
    if (i->dtype == SHERD__BYTES_LEFT || i->dtype == SHERD__BYTES_RIGHT) {
        bool left = i->dtype == SHERD__BYTES_LEFT;
        const size_t lines = left ? rows : cols, terms = left ? cols : rows;
        rows = (lines + SHERD__BYTES_TILE - 1) / SHERD__BYTES_TILE * SHERD__BYTES_TILE;
        cols = (terms + SHERD__BYTES_STEP - 1) / SHERD__BYTES_STEP * SHERD__BYTES_STEP;
    }
    return sherd__mul(rows, cols, len) && sherd__mul(*len, each * blocks, len) &&
           sherd__add(*len, 8 * (size_t)i->groups, len);
}

sherd__fragment_info sherd__fragment_whole(const sherd__fragment_info *info)
{
    sherd__fragment_info whole = *info;
    size_t len = 0;
    if (info->encoding != SHERD__SEED) return whole;
    whole.encoding = SHERD__DENSE;
    whole.len = dense_len(info, 1, &len) ? len : UINT64_MAX; /* which info_check excludes */
    return whole;
}

/* A seed has a length of its own, and encodes a body that can exist. */
static int seed_check(const sherd__fragment_info *i, sherd_diag *d)
{
    const sherd__fragment_info whole = sherd__fragment_whole(i);
    if (i->dtype != SHERD__BYTES_LEFT && i->dtype != SHERD__BYTES_RIGHT)
        return sherd__fail(d, SHERD_EFRAME, NULL, "a seed with dtype %u", i->dtype);
    if (i->len == sherd__seed_len(i->primes) && whole.len < UINT64_MAX) return SHERD_OK;
    return sherd__fail(d, SHERD_EFRAME, NULL, "a seed of %llu bytes, expected %llu",
                       (unsigned long long)i->len, (unsigned long long)sherd__seed_len(i->primes));
}

static int length_check(const sherd__fragment_info *i, size_t each, sherd_diag *d)
{
    size_t len;
    sherd__csr csr;
    if (i->encoding == SHERD__SEED) return seed_check(i, d);
    if (i->encoding == SHERD__CSR) {
        if (sherd__csr_layout(i, &csr)) return SHERD_OK;
        return sherd__fail(d, SHERD_EFRAME, NULL,
                           "a block in CSR of %llu x %llu cannot have %llu bytes",
                           (unsigned long long)i->rows, (unsigned long long)i->cols,
                           (unsigned long long)i->len);
    }
    if (!dense_len(i, each, &len))
        return sherd__fail(d, SHERD_EFRAME, NULL, "fragment sizes overflow");
    /* With several groups, rows * cols is only an upper bound of the values: narrower groups have
     * fewer. */
    bool exact = i->groups <= 1;
    if (exact ? i->len != len : i->len > len || i->len < 8 * (uint64_t)i->groups)
        return sherd__fail(d, SHERD_EFRAME, NULL, "a fragment of %llu bytes, expected %llu",
                           (unsigned long long)i->len, (unsigned long long)len);
    return SHERD_OK;
}

int sherd__fragment_info_check(const sherd__fragment_info *i, sherd_diag *d)
{
    size_t each = element_bytes(i->dtype);
    if (i->origin != SHERD__HIDDEN && i->origin != SHERD__RESULT)
        return sherd__fail(d, SHERD_EFRAME, NULL, "fragment of unknown origin %u", i->origin);
    if (each == 0)
        return sherd__fail(d, SHERD_EFRAME, NULL, "fragment of unknown dtype %u", i->dtype);
    if (i->encoding > SHERD__SEED)
        return sherd__fail(d, SHERD_EFRAME, NULL, "fragment of unknown encoding %u", i->encoding);
    if ((primes_most(i->dtype) > 0) != (i->primes > 0) || i->primes > primes_most(i->dtype))
        return sherd__fail(d, SHERD_EFRAME, NULL, "%u primes with dtype %u", i->primes, i->dtype);
    if (sherd__fragment_is_bytes(i->dtype) &&
        (i->origin == SHERD__RESULT) != (i->dtype == SHERD__BYTES))
        return sherd__fail(d, SHERD_EFRAME, NULL, "dtype %u with origin %u", i->dtype, i->origin);
    if (i->groups > SHERD__GROUPS_MAX || (i->primes && i->groups > 1) ||
        (i->groups && sherd__fragment_is_bytes(i->dtype)))
        return sherd__fail(d, SHERD_EFRAME, NULL, "%u groups in one fragment", i->groups);
    if (i->origin == SHERD__RESULT && i->groups)
        return sherd__fail(d, SHERD_EFRAME, NULL, "a result with a group table");
    if (i->rows > UINT32_MAX || i->cols > UINT32_MAX)
        return sherd__fail(d, SHERD_EFRAME, NULL, "a fragment of %llu x %llu",
                           (unsigned long long)i->rows, (unsigned long long)i->cols);
    if (i->encoding == SHERD__CSR && (i->origin != SHERD__HIDDEN || i->primes || i->groups == 0))
        return sherd__fail(d, SHERD_EFRAME, NULL,
                           "CSR with origin %u, %u primes, %u groups: only hidden blocks with a "
                           "table are",
                           i->origin, i->primes, i->groups);
    return length_check(i, each, d);
}

/* --- the body -------------------------------------------------------------------------------- */

static uint64_t number_at(const uint8_t *p, unsigned width)
{
    return width == 1 ? *p : width == 2 ? sherd__get_u16(p) : sherd__get_u32(p);
}

/* Checks that columns [from, to) of a row ascend. last: the greatest column so far. */
static bool ascends(const uint8_t *row, unsigned width, uint64_t from, uint64_t to, uint64_t *last)
{
    bool falls = false;
    if (from == to) return true;
    if (from == 0) *last = number_at(row, width);
    for (uint64_t k = from ? from : 1; k < to; k++) {
        uint64_t x = number_at(row + k * width, width);
        falls |= x <= *last;
        *last = x;
    }
    return !falls;
}

/* Skips rows without entries, 8 bytes of counts at a time. */
static void skip_empty(sherd__fragment_check *c, const uint8_t *counts, uint64_t rows,
                       uint64_t room, unsigned width)
{
    uint64_t at_once = 8 / width;
    while (rows - c->row >= at_once && room >= 8 && !sherd__get_u64(counts)) {
        c->row += at_once;
        c->index += at_once;
        counts += 8;
        room -= 8;
    }
}

/* Checks counts and columns, as far as they have arrived. */
static int entries_check(sherd__fragment_check *c, const sherd__fragment_info *i,
                         const uint8_t *body, uint64_t got, sherd_diag *d)
{
    sherd__csr csr;
    if (!sherd__csr_layout(i, &csr))
        return sherd__fail(d, SHERD_EFRAME, NULL, "a length that CSR cannot have");
    uint64_t counted = got < csr.columns ? got : csr.columns;
    uint64_t here = got < csr.columns ? 0 : (got - csr.columns) / csr.width; /* columns */
    for (; c->group < i->groups; c->group++, c->row = 0) {
        uint64_t rows = sherd__get_u32(body + 8 * (size_t)c->group);
        uint64_t cols = sherd__get_u32(body + 8 * (size_t)c->group + 4);
        while (c->row < rows) {
            uint64_t at = csr.counts + c->index * csr.width;
            if (at + csr.width > counted) return SHERD_OK;
            uint64_t n = number_at(body + at, csr.width);
            if (n == 0) {
                c->row++;
                c->index++;
                at += csr.width;
                if (at < counted) skip_empty(c, body + at, rows, counted - at, csr.width);
                continue;
            }
            if (n > cols || n > csr.entries - c->entries)
                return sherd__fail(d, SHERD_EFRAME, NULL,
                                   "row %llu of group %u has %llu entries: %llu columns, %llu left",
                                   (unsigned long long)c->row, c->group, (unsigned long long)n,
                                   (unsigned long long)cols,
                                   (unsigned long long)(csr.entries - c->entries));
            uint64_t to = here < c->entries ? 0 : here - c->entries < n ? here - c->entries : n;
            if (!ascends(body + csr.columns + c->entries * csr.width, csr.width, c->within, to,
                         &c->last) ||
                (to && c->last >= cols))
                return sherd__fail(d, SHERD_EFRAME, NULL,
                                   "row %llu of group %u: columns do not ascend below %llu",
                                   (unsigned long long)c->row, c->group, (unsigned long long)cols);
            c->within = to;
            if (to < n) return SHERD_OK;
            c->within = 0;
            c->entries += n;
            c->row++;
            c->index++;
        }
    }
    if (c->entries != csr.entries)
        return sherd__fail(d, SHERD_EFRAME, NULL, "rows have %llu entries of %llu",
                           (unsigned long long)c->entries, (unsigned long long)csr.entries);
    return SHERD_OK;
}

/* Checks that the complete table agrees with info. */
static int groups_check(const sherd__fragment_check *c, const sherd__fragment_info *i,
                        sherd_diag *d)
{
    size_t blocks = i->primes ? i->primes : 1;
    if (c->rows != i->rows || c->widest != i->cols)
        return sherd__fail(d, SHERD_EFRAME, NULL,
                           "group table of %llu x %llu, expected %llu x %llu as announced",
                           (unsigned long long)c->rows, (unsigned long long)c->widest,
                           (unsigned long long)i->rows, (unsigned long long)i->cols);
    if (i->encoding != SHERD__CSR &&
        c->values * element_bytes(i->dtype) * blocks + 8 * (uint64_t)i->groups != i->len)
        return sherd__fail(d, SHERD_EFRAME, NULL, "group table needs %llu values, body differs",
                           (unsigned long long)c->values);
    return SHERD_OK;
}

int sherd__fragment_check_part(sherd__fragment_check *c, const sherd__fragment_info *i,
                               const uint8_t *body, uint64_t got, sherd_diag *d)
{
    if (c->groups < i->groups) {
        for (; c->groups < i->groups && got >= 8 * ((uint64_t)c->groups + 1); c->groups++) {
            uint64_t rows = sherd__get_u32(body + 8 * (size_t)c->groups);
            uint64_t cols = sherd__get_u32(body + 8 * (size_t)c->groups + 4);
            c->rows += rows; /* at most 2^24 groups of less than 2^32 rows: no overflow */
            if (cols > c->widest) c->widest = cols;
            if (c->rows > i->rows || cols > i->cols) return groups_check(c, i, d);
            c->values += rows * cols; /* <= i->rows * i->cols, which does not wrap (info_check) */
        }
        if (c->groups < i->groups) return SHERD_OK;
        int err = groups_check(c, i, d);
        if (err) return err;
    }
    return i->encoding == SHERD__CSR ? entries_check(c, i, body, got, d) : SHERD_OK;
}

int sherd__fragment_table_check(const sherd__fragment_info *i, const uint8_t *body, sherd_diag *d)
{
    sherd__fragment_check c = { 0 };
    return sherd__fragment_check_part(&c, i, body, i->len, d);
}
