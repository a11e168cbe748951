/*
 * Blocks of B that stay at nodes (`permute`, `plain`): a slot's rows of B, with each group's
 * columns in its secret order. A block is never in memory as a whole: rows are shuffled while they
 * are sent, on the loop thread, so a source has its own buffers.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "schemes/partition/internal.h"

int sherd__partition_shuffled_row(partition *d, const partition_slot *s, partition_reader *r,
                                  uint32_t at, double *out)
{
    const partition_group *g = &s->groups[r->q];
    size_t from = (size_t)r->tile * d->p.tile_cols, width = partition_tile_width(d, r->tile);
    size_t c = s->cols ? s->cols[at] : at;
    int err = SHERD_OK;
    assert(at >= g->first && at - g->first < g->len);
    if (at == g->first || !r->perm) r->perm = sherd__partition_perm(d, g, r->scratch, &err);
    if (err) return err;
    sherd__partition_row_b(d, c, r->line);
    if (!r->perm) memcpy(out, r->line + from, width * sizeof *out);
    else
        for (size_t j = 0; j < width; j++) out[j] = r->line[r->perm[from + j]];
    return SHERD_OK;
}

/* Produces the shuffled rows of B while they are sent; on the loop thread, with its own buffers. */
typedef struct resident {
    partition *d;
    uint32_t slot;
    partition_reader read;
    size_t row_bytes;
    uint32_t made;  /* the row of the slot in `bytes`, or UINT32_MAX */
    uint8_t *bytes; /* row_bytes */
    double *row;    /* m */
} resident;

static void resident_free(void *ctx)
{
    resident *r = ctx;
    sherd__free(r->bytes);
    sherd__free(r->read.line);
    sherd__free(r->row);
    sherd__free(r->read.scratch);
    sherd__free(r);
}

static int resident_row(resident *r, uint32_t at, uint8_t *out)
{
    partition *d = r->d;
    const partition_slot *s = &d->slots[r->slot];
    uint32_t q = r->read.q;
    if (at < s->groups[q].first) q = 0;
    while (at >= s->groups[q].first + s->groups[q].len) q++;
    if (q != r->read.q) r->read.perm = NULL;
    r->read.q = q;
    size_t width = partition_tile_width(d, r->read.tile);
    double *row = d->dtype_b == SHERD_F64 && (uintptr_t)out % 8 == 0 ? (double *)(void *)out
                                                                     : r->row;
    int err = sherd__partition_shuffled_row(d, s, &r->read, at, row);
    if (!err && (uint8_t *)row != out) sherd__partition_narrow(d->dtype_b, row, width, out);
    return err;
}

static void resident_table(const partition_slot *s, size_t width, uint64_t offset, uint8_t *out,
                           size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t at = offset + i;
        uint8_t pair[8];
        sherd__put_u32(pair, s->groups[at / 8].len);
        sherd__put_u32(pair + 4, (uint32_t)width);
        out[i] = pair[at % 8];
    }
}

static int resident_fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    resident *r = ctx;
    const partition_slot *s = &r->d->slots[r->slot];
    uint64_t table = 8 * (uint64_t)s->ngroups;
    if (offset < table) {
        size_t n = table - offset < len ? (size_t)(table - offset) : len;
        resident_table(s, partition_tile_width(r->d, r->read.tile), offset, out, n);
        offset += n;
        out += n;
        len -= n;
    }
    while (len) {
        uint32_t at = (uint32_t)((offset - table) / r->row_bytes);
        size_t skip = (size_t)((offset - table) % r->row_bytes), n = r->row_bytes - skip;
        if (n > len) n = len;
        int err = SHERD_OK;
        if (n == r->row_bytes) {
            err = resident_row(r, at, out);
        } else {
            if (r->made != at) err = resident_row(r, at, r->bytes);
            r->made = at;
            memcpy(out, r->bytes + skip, n);
        }
        if (err) return err;
        offset += n;
        out += n;
        len -= n;
    }
    return SHERD_OK;
}

int sherd__partition_resident(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out)
{
    partition *d = ctx;
    const partition_slot *s = &d->slots[slot];
    size_t width = partition_tile_width(d, tile);
    resident *r = sherd__calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return SHERD_ENOMEM;
    *r = (resident){ .d = d, .slot = slot, .read = { .tile = tile }, .made = UINT32_MAX };
    r->row_bytes = width * sherd_dtype_size((sherd_dtype)d->dtype_b);
    r->bytes = sherd__alloc(r->row_bytes);
    r->read.line = sherd__alloc(d->m * sizeof *r->read.line);
    r->row = sherd__alloc(width * sizeof *r->row);
    r->read.scratch = sherd__alloc(d->m * sizeof *r->read.scratch);
    sherd__fragment_info info = {
        .origin = SHERD__HIDDEN,
        .dtype = d->dtype_b,
        .groups = s->ngroups,
        .rows = s->ncols,
        .cols = width,
        .len = 8 * (uint64_t)s->ngroups + (uint64_t)s->ncols * r->row_bytes,
    };
    int err = r->bytes && r->read.line && r->row && r->read.scratch ? SHERD_OK : SHERD_ENOMEM;
    if (!err)
        err = sherd__fragment_new_source(out, &info,
                                         (sherd__fragment_source){ resident_fill, resident_free,
                                                                   r });
    if (err) resident_free(r);
    return err;
}
