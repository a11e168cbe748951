/*
 * B at the nodes. Under `share` the shares of a tile are made while they are sent, on the loop
 * thread: all slots read the same rows at about the same time, so that the shares of some rows are
 * made together and kept for a while in a cache of a fixed size. A slot that lags behind has its
 * rows made anew, of the same masks: the same bytes. Under share1 B is written as it is, in the
 * narrowest element kind.
 */
#include <string.h>

#include "core/alloc.h"
#include "crypto/deal.h"
#include "crypto/fragment_make.h"
#include "crypto/share_internal.h"
#include "matrix/residue.h"

#define CACHE_BYTES ((size_t)16 << 20)
#define CHUNK_BYTES ((size_t)1 << 20) /* of all shares together, where a row is not larger */

/* --- chunks of encoded rows ------------------------------------------------------------------ */

void sherd__share_loop_free(share *d)
{
    share_loop *l = &d->loop;
    for (uint32_t i = 0; i < SHARE_CHUNKS; i++) sherd__share_forget(l->chunk[i].bytes);
    sherd__share_scratch_free(&l->scratch);
    sherd__masks_free(l->masks);
    *l = (share_loop){ 0 };
}

static void size_chunks(const share *d, share_loop *l)
{
    size_t row = d->tile_cols * SHERD__RESIDUE_BYTES * d->p.code.shares;
    l->rows = row < CHUNK_BYTES ? CHUNK_BYTES / row : 1;
    if (l->rows > d->k) l->rows = d->k;
    l->size = l->rows * row;
    size_t chunks = CACHE_BYTES / l->size;
    l->chunks = chunks < 2 ? 2 : chunks > SHARE_CHUNKS ? SHARE_CHUNKS : (uint32_t)chunks;
}

static int encode_chunk(const share *d, share_loop *l, share_chunk *c)
{
    uint8_t *out[SHERD__LCC_SHARES_MAX];
    share_span span = sherd__share_span_b(d, c->tile);
    span.row = c->first;
    if (span.rows - c->first < l->rows) span.rows -= c->first;
    else span.rows = l->rows;
    for (uint32_t i = 0; i < d->p.code.shares; i++)
        out[i] = c->bytes + i * span.rows * span.cols * SHERD__RESIDUE_BYTES;
    const share_output to = { .first = c->prime, .end = c->prime + 1, .out = out };
    return sherd__share_pass(d, &l->scratch, &d->b, l->masks, &span, &to, NULL);
}

/* The chunk that holds `row`: a cached one, or in place of the one that was used longest ago. */
static int chunk_of(share *d, uint32_t tile, uint32_t prime, size_t row, share_chunk **out)
{
    share_loop *l = &d->loop;
    if (!l->chunks) size_chunks(d, l);
    size_t first = row - row % l->rows;
    share_chunk *old = &l->chunk[0];
    for (uint32_t i = 0; i < l->chunks; i++) {
        share_chunk *c = &l->chunk[i];
        if (c->used && c->tile == tile && c->prime == prime && c->first == first) {
            c->used = ++l->clock;
            *out = c;
            return SHERD_OK;
        }
        if (c->used < old->used) old = c;
    }
    if (!old->bytes && !(old->bytes = sherd__share_secret(l->size, 1, 1, 1))) return SHERD_ENOMEM;
    old->tile = tile;
    old->prime = prime;
    old->first = first;
    int err = encode_chunk(d, l, old);
    old->used = err ? 0 : ++l->clock;
    *out = old;
    return err;
}

/* --- the source ------------------------------------------------------------------------------ */

typedef struct resident {
    share *d;
    uint32_t slot, tile;
    size_t width, row_bytes;
    double *line;   /* share1: two rows of B, and the bytes of one */
    uint8_t *bytes;
    uint64_t made;  /* row of the body that they are, or UINT64_MAX */
} resident;

static void resident_free(void *ctx)
{
    resident *r = ctx;
    sherd__free(r->line);
    sherd__free(r->bytes);
    sherd__free(r);
}

/* Body row `at` (rows of one prime behind those of another) of a B that is public. */
static void public_row(resident *r, uint64_t at)
{
    const share *d = r->d;
    sherd__fixed_row(&d->b.fixed, d->b.v, (size_t)(at % d->k), (size_t)r->tile * d->tile_cols,
                     r->width, r->line);
    if (d->dtype_b == SHERD__RESIDUES) {
        uint32_t p = d->p.primes[at / d->k];
        sherd__residue_from_f64(r->line, r->width, p, r->line);
        sherd__residue_pack(r->line, r->width, p, r->bytes);
    } else {
        sherd__deal_narrow(d->dtype_b, r->line, r->width, r->bytes);
    }
    r->made = at;
}

static int resident_fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    resident *r = ctx;
    share *d = r->d;
    while (len) {
        uint64_t at = offset / r->row_bytes;
        size_t skip = (size_t)(offset % r->row_bytes), n = r->row_bytes - skip;
        const uint8_t *from = r->bytes + skip;
        if (d->p.public_b) {
            if (r->made != at) public_row(r, at);
        } else {
            share_chunk *c;
            size_t row = (size_t)(at % d->k);
            int err = chunk_of(d, r->tile, (uint32_t)(at / d->k), row, &c);
            if (err) return err;
            size_t rows = d->k - c->first < d->loop.rows ? d->k - c->first : d->loop.rows;
            size_t within = (row - c->first) * r->row_bytes + skip;
            n = rows * r->row_bytes - within;
            from = c->bytes + r->slot * rows * r->row_bytes + within;
        }
        if (n > len) n = len;
        memcpy(out, from, n);
        offset += n;
        out += n;
        len -= n;
    }
    return SHERD_OK;
}

int sherd__share_resident(void *ctx, uint32_t slot, uint32_t tile, sherd_fragment **out)
{
    share *d = ctx;
    bool residues = d->dtype_b == SHERD__RESIDUES;
    resident *r = sherd__calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return SHERD_ENOMEM;
    *r = (resident){ .d = d, .slot = slot, .tile = tile, .made = UINT64_MAX };
    r->width = share_tile_width(d, tile);
    r->row_bytes = r->width * (residues ? SHERD__RESIDUE_BYTES
                                        : sherd_dtype_size((sherd_dtype)d->dtype_b));
    int err = SHERD_OK;
    if (d->p.public_b) {
        r->line = sherd__alloc(r->width * sizeof *r->line);
        r->bytes = sherd__alloc(r->row_bytes);
        if (!r->line || !r->bytes) err = SHERD_ENOMEM;
    }
    size_t primes = residues ? d->p.primes_len : 0;
    sherd__fragment_info info = {
        .origin = SHERD__HIDDEN, .dtype = d->dtype_b, .primes = (uint8_t)primes, .rows = d->k,
        .cols = r->width, .len = (uint64_t)d->k * r->row_bytes * (primes ? primes : 1),
    };
    const sherd__fragment_source source = { resident_fill, resident_free, r };
    if (!err) err = sherd__fragment_new_source(out, &info, source);
    if (err) resident_free(r);
    return err;
}
