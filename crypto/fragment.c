/*
 * Fragments: a description and either bytes in memory or a source that produces them. Both schemes
 * (which hide) and the wire (which parses) come through here, so this file also holds the one place
 * where a description is checked against arithmetic. It trusts its callers for the bytes of what
 * they made, and nothing for a description: those may have come from a peer.
 */
#include "crypto/fragment.h"

#include <sodium.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "crypto/fragment_make.h"
#include "sherd/mat.h"

struct sherd_fragment {
    sherd__fragment_info info;
    uint8_t *bytes; /* NULL: produced by source */
    void (*release)(void *ctx, uint8_t *bytes, uint64_t len);
    void *release_ctx;
    sherd__fragment_source source;
};

const sherd__fragment_info *sherd__fragment_info_of(const sherd_fragment *f)
{
    return &f->info;
}

const uint8_t *sherd__fragment_bytes(const sherd_fragment *f)
{
    return f->bytes;
}

int sherd__fragment_read(sherd_fragment *f, uint64_t offset, void *out, size_t len)
{
    if (offset > f->info.len || len > f->info.len - offset) return SHERD_EINVAL;
    if (!f->bytes) return f->source.fill(f->source.ctx, offset, out, len);
    if (len) memcpy(out, f->bytes + offset, len);
    return SHERD_OK;
}

static int new_fragment(sherd_fragment **out, const sherd__fragment_info *info)
{
    *out = NULL;
    int err = sherd__fragment_info_check(info, NULL);
    if (err) return SHERD_EINVAL;
    sherd_fragment *f = sherd__calloc(1, sizeof *f);
    if (!f) return SHERD_ENOMEM;
    f->info = *info;
    *out = f;
    return SHERD_OK;
}

int sherd__fragment_new_source(sherd_fragment **out, const sherd__fragment_info *info,
                               sherd__fragment_source source)
{
    int err = info->encoding == SHERD__DENSE ? new_fragment(out, info) : SHERD_EINVAL;
    if (err) *out = NULL;
    else (*out)->source = source;
    return err;
}

int sherd__fragment_take(sherd_fragment **out, const sherd__fragment_info *info, uint8_t *bytes,
                         void (*release)(void *ctx, uint8_t *bytes, uint64_t len), void *ctx)
{
    int err = new_fragment(out, info);
    if (err) return err;
    (*out)->bytes = bytes;
    (*out)->release = release;
    (*out)->release_ctx = ctx;
    return SHERD_OK;
}

void sherd__fragment_free(sherd_fragment *f)
{
    if (!f) return;
    if (f->bytes) {
        if (f->release) {
            f->release(f->release_ctx, f->bytes, f->info.len);
        } else {
            sodium_memzero(f->bytes, f->info.len);
            sherd__free(f->bytes);
        }
    } else if (f->source.free) {
        f->source.free(f->source.ctx);
    }
    sherd__free(f);
}

/* Bytes of one value on the wire; 0 for an unknown kind. */
static size_t element_bytes(uint8_t dtype)
{
    switch (dtype) {
    case SHERD__RESIDUES: return 3;
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

static int length_check(const sherd__fragment_info *i, size_t each, sherd_diag *d)
{
    size_t len, blocks = i->primes ? i->primes : 1;
    sherd__csr csr;
    if (i->encoding == SHERD__CSR) {
        if (sherd__csr_layout(i, &csr)) return SHERD_OK;
        return sherd__fail(d, SHERD_EFRAME, NULL, "no block in CSR of %llu x %llu has %llu bytes",
                           (unsigned long long)i->rows, (unsigned long long)i->cols,
                           (unsigned long long)i->len);
    }
    if (!sherd__mul(i->rows, i->cols, &len) || !sherd__mul(len, each * blocks, &len) ||
        !sherd__add(len, 8 * (size_t)i->groups, &len))
        return sherd__fail(d, SHERD_EFRAME, NULL, "fragment sizes wrap");
    /* With several groups rows * cols only bounds the values: narrower groups hold fewer. */
    bool exact = i->groups <= 1;
    if (exact ? i->len != len : i->len > len || i->len < 8 * (uint64_t)i->groups)
        return sherd__fail(d, SHERD_EFRAME, NULL, "a fragment of %llu bytes where %llu belong",
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
    if (i->encoding != SHERD__DENSE && i->encoding != SHERD__CSR)
        return sherd__fail(d, SHERD_EFRAME, NULL, "fragment of unknown encoding %u", i->encoding);
    if ((i->dtype == SHERD__RESIDUES) != (i->primes > 0) || i->primes > 4)
        return sherd__fail(d, SHERD_EFRAME, NULL, "%u primes with dtype %u", i->primes, i->dtype);
    if (i->groups > SHERD__GROUPS_MAX || (i->primes && i->groups > 1))
        return sherd__fail(d, SHERD_EFRAME, NULL, "%u groups in one fragment", i->groups);
    if (i->origin == SHERD__RESULT && i->groups)
        return sherd__fail(d, SHERD_EFRAME, NULL, "a result with a group table");
    if (i->rows > UINT32_MAX || i->cols > UINT32_MAX)
        return sherd__fail(d, SHERD_EFRAME, NULL, "a fragment of %llu x %llu",
                           (unsigned long long)i->rows, (unsigned long long)i->cols);
    if (i->encoding == SHERD__CSR &&
        (i->origin != SHERD__HIDDEN || i->primes || i->groups == 0))
        return sherd__fail(d, SHERD_EFRAME, NULL,
                           "CSR with origin %u, %u primes, %u groups: only hidden blocks with a "
                           "table are", i->origin, i->primes, i->groups);
    return length_check(i, each, d);
}

/* --- the body -------------------------------------------------------------------------------- */

static uint64_t number_at(const uint8_t *p, unsigned width)
{
    return width == 1 ? *p : width == 2 ? sherd__get_u16(p) : sherd__get_u32(p);
}

/* n > 0 columns, each above the one before and all below cols. */
static bool ascends(const uint8_t *p, unsigned width, uint64_t n, uint64_t cols)
{
    uint64_t last = number_at(p, width);
    bool falls = false;
    for (uint64_t k = 1; k < n; k++) {
        uint64_t x = number_at(p + k * width, width);
        falls |= x <= last;
        last = x;
    }
    return !falls && last < cols;
}

/* Counts and columns of a body whose table agrees with info. */
static int entries_check(const sherd__fragment_info *i, const uint8_t *body, sherd_diag *d)
{
    sherd__csr csr;
    if (!sherd__csr_layout(i, &csr))
        return sherd__fail(d, SHERD_EFRAME, NULL, "a length that is none of CSR");
    const uint8_t *count = body + csr.counts;
    uint64_t at = 0;
    for (uint32_t q = 0; q < i->groups; q++) {
        uint64_t rows = sherd__get_u32(body + 8 * (size_t)q);
        uint64_t cols = sherd__get_u32(body + 8 * (size_t)q + 4);
        for (uint64_t r = 0; r < rows; r++, count += csr.width) {
            for (; csr.width == 1 && rows - r > 8 && !sherd__get_u64(count); count += 8) r += 8;
            uint64_t n = number_at(count, csr.width);
            if (n > cols || n > csr.entries - at)
                return sherd__fail(d, SHERD_EFRAME, NULL,
                                   "row %llu of group %u has %llu entries: %llu columns, %llu left",
                                   (unsigned long long)r, q, (unsigned long long)n,
                                   (unsigned long long)cols,
                                   (unsigned long long)(csr.entries - at));
            if (n && !ascends(body + csr.columns + at * csr.width, csr.width, n, cols))
                return sherd__fail(d, SHERD_EFRAME, NULL,
                                   "row %llu of group %u: columns do not ascend below %llu",
                                   (unsigned long long)r, q, (unsigned long long)cols);
            at += n;
        }
    }
    if (at != csr.entries)
        return sherd__fail(d, SHERD_EFRAME, NULL, "rows have %llu entries of %llu",
                           (unsigned long long)at, (unsigned long long)csr.entries);
    return SHERD_OK;
}

int sherd__fragment_table_check(const sherd__fragment_info *i, const uint8_t *body, sherd_diag *d)
{
    uint64_t rows = 0, widest = 0, values = 0;
    if (i->groups == 0) return SHERD_OK;
    for (uint32_t q = 0; q < i->groups; q++) {
        uint64_t r = sherd__get_u32(body + 8 * (size_t)q);
        uint64_t c = sherd__get_u32(body + 8 * (size_t)q + 4);
        rows += r; /* at most 2^24 groups of less than 2^32 rows: no overflow */
        if (c > widest) widest = c;
        if (rows > i->rows || c > i->cols) break;
        values += r * c; /* <= i->rows * i->cols, which info_check has shown not to wrap */
    }
    if (rows != i->rows || widest != i->cols)
        return sherd__fail(d, SHERD_EFRAME, NULL,
                           "group table of %llu x %llu where %llu x %llu is announced",
                           (unsigned long long)rows, (unsigned long long)widest,
                           (unsigned long long)i->rows, (unsigned long long)i->cols);
    if (i->encoding == SHERD__CSR) return entries_check(i, body, d);
    size_t blocks = i->primes ? i->primes : 1;
    if (values * element_bytes(i->dtype) * blocks + 8 * (uint64_t)i->groups != i->len)
        return sherd__fail(d, SHERD_EFRAME, NULL, "group table needs %llu values, body differs",
                           (unsigned long long)values);
    return SHERD_OK;
}
