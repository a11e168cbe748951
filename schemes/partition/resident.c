/*
 * Blocks that stay at nodes (`permute`, `plain`): a slot's rows of B, with each group's columns in
 * its secret order, and panels of A if these stay too. A block is never in memory as a whole: rows
 * are read, and shuffled, while they are sent, on the loop thread, so a source has its own buffers.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "schemes/partition/internal.h"

int sherd__partition_shuffled_row(partition *d, const partition_slot *s, partition_reader *r,
                                  uint32_t at, const double **out)
{
    const partition_group *g = &s->groups[r->q];
    size_t from = (size_t)r->tile * d->p.tile_cols, width = partition_tile_width(d, r->tile);
    size_t c = s->cols ? s->cols[at] : at;
    int err = SHERD_OK;
    assert(at >= g->first && at - g->first < g->len);
    if (at == g->first || !r->perm) r->perm = sherd__partition_perm(d, g, r->scratch, &err);
    if (err) return err;
    if (!r->perm) {
        *out = sherd__partition_row_b(d, c, from, width, r->line);
        return SHERD_OK;
    }
    const double *row = sherd__partition_row_b(d, c, 0, d->m, r->line);
    for (size_t j = 0; j < width; j++) r->row[j] = row[r->perm[from + j]];
    *out = r->row;
    return SHERD_OK;
}

/* Produces the rows of a block while they are sent; on the loop thread, with its own buffers. */
typedef struct source {
    partition *d;
    uint32_t slot;
    bool left;             /* rows of a panel of A; otherwise the slot's rows of B */
    size_t first;          /* left: the first row, of those of the slot */
    uint32_t rows, width;  /* rows: left only */
    partition_reader read; /* of B */
    size_t row_bytes;
    uint32_t made;  /* the row in `bytes`, or UINT32_MAX */
    uint8_t *bytes; /* row_bytes */
    double *row;    /* a row that is narrowed, or does not fit into what is sent at once */
} source;

static void source_free(void *ctx)
{
    source *r = ctx;
    sherd__free(r->bytes);
    sherd__free(r->read.line);
    sherd__free(r->row);
    sherd__free(r->read.scratch);
    sherd__free(r);
}

/* Returns where a row of doubles is made: in the message if it is sent as such, else in r->row. */
static double *row_into(source *r, uint8_t dtype, uint8_t *out)
{
    bool as_is = dtype == SHERD_F64 && (uintptr_t)out % _Alignof(double) == 0;
    return as_is ? (double *)(void *)out : r->row;
}

static int row_of_b(source *r, uint32_t at, uint8_t *out)
{
    partition *d = r->d;
    const partition_slot *s = &d->slots[r->slot];
    uint32_t q = r->read.q;
    const double *row;
    if (at < s->groups[q].first) q = 0;
    while (at >= s->groups[q].first + s->groups[q].len) q++;
    if (q != r->read.q) r->read.perm = NULL;
    r->read.q = q;
    r->read.row = row_into(r, d->dtype_b, out);
    int err = sherd__partition_shuffled_row(d, s, &r->read, at, &row);
    if (!err && (const uint8_t *)row != out)
        sherd__partition_narrow(d->dtype_b, row, r->width, out);
    return err;
}

static int row_of_a(source *r, uint32_t at, uint8_t *out)
{
    partition *d = r->d;
    const partition_slot *s = &d->slots[r->slot];
    double *row = row_into(r, d->dtype_a, out);
    sherd__partition_row_a(d, s, s->row0 + r->first + at, 0, s->ncols, row);
    if ((uint8_t *)row != out) sherd__partition_narrow(d->dtype_a, row, s->ncols, out);
    return SHERD_OK;
}

static int make_row(source *r, uint32_t at, uint8_t *out)
{
    return r->left ? row_of_a(r, at, out) : row_of_b(r, at, out);
}

static void make_table(const source *r, uint64_t offset, uint8_t *out, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t at = offset + i;
        uint8_t pair[8];
        sherd__put_u32(pair, r->left ? r->rows : r->d->slots[r->slot].groups[at / 8].len);
        sherd__put_u32(pair + 4, r->width);
        out[i] = pair[at % 8];
    }
}

static int source_fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    source *r = ctx;
    uint64_t table = 8 * (uint64_t)r->d->slots[r->slot].ngroups;
    if (offset < table) {
        size_t n = table - offset < len ? (size_t)(table - offset) : len;
        make_table(r, offset, out, n);
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
            err = make_row(r, at, out);
        } else {
            if (r->made != at) err = make_row(r, at, r->bytes);
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

/* Allocates a source like *of, whose rows are of dtype, with buffers. NULL: no memory. */
static source *source_new(const source *of, uint8_t dtype)
{
    const size_t m = of->left ? 0 : of->d->m;
    source *r = sherd__alloc(sizeof *r);
    if (!r) return NULL;
    *r = *of;
    r->made = UINT32_MAX;
    r->row_bytes = r->width * sherd_dtype_size((sherd_dtype)dtype);
    r->bytes = sherd__alloc(r->row_bytes);
    r->row = sherd__alloc(r->width * sizeof *r->row);
    r->read.line = sherd__alloc(m * sizeof *r->read.line);
    r->read.scratch = sherd__alloc(m * sizeof *r->read.scratch);
    if (r->bytes && r->row && r->read.line && r->read.scratch) return r;
    source_free(r);
    return NULL;
}

static int make_fragment(sherd__fragment **out, const sherd__fragment_info *info, source *r)
{
    int err = SHERD_ENOMEM;
    *out = NULL;
    if (r)
        err = sherd__fragment_new_source(out, info,
                                         (sherd__fragment_source){ source_fill, source_free, r });
    if (err && r) source_free(r);
    return err;
}

int sherd__partition_resident(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out)
{
    partition *d = ctx;
    const partition_slot *s = &d->slots[slot];
    const source of = { .d = d,
                        .slot = slot,
                        .width = (uint32_t)partition_tile_width(d, tile),
                        .read = { .tile = tile } };
    source *r = source_new(&of, d->dtype_b);
    const sherd__fragment_info info = {
        .origin = SHERD__HIDDEN,
        .dtype = d->dtype_b,
        .groups = s->ngroups,
        .rows = s->ncols,
        .cols = of.width,
        .len = 8 * (uint64_t)s->ngroups + (r ? (uint64_t)s->ncols * r->row_bytes : 0),
    };
    return make_fragment(out, &info, r);
}

int sherd__partition_left_rows(partition *d, uint32_t slot, size_t first,
                               const sherd__fragment_info *info, sherd__fragment **out)
{
    const source of = { .d = d,
                        .slot = slot,
                        .left = true,
                        .first = first,
                        .rows = (uint32_t)info->rows,
                        .width = d->slots[slot].ncols };
    return make_fragment(out, info, source_new(&of, d->dtype_a));
}
