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
    int err = new_fragment(out, info);
    if (!err) (*out)->source = source;
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

int sherd__fragment_info_check(const sherd__fragment_info *i, sherd_diag *d)
{
    size_t each = element_bytes(i->dtype), len, blocks = i->primes ? i->primes : 1;
    if (i->origin != SHERD__HIDDEN && i->origin != SHERD__RESULT)
        return sherd__fail(d, SHERD_EFRAME, NULL, "fragment of unknown origin %u", i->origin);
    if (each == 0)
        return sherd__fail(d, SHERD_EFRAME, NULL, "fragment of unknown dtype %u", i->dtype);
    if (i->encoding != SHERD__DENSE)
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
    size_t blocks = i->primes ? i->primes : 1;
    if (values * element_bytes(i->dtype) * blocks + 8 * (uint64_t)i->groups != i->len)
        return sherd__fail(d, SHERD_EFRAME, NULL, "group table needs %llu values, body differs",
                           (unsigned long long)values);
    return SHERD_OK;
}
