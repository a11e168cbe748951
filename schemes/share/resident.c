/*
 * B at the nodes. Under `share` a slot's share of a tile is made while it is sent, on the loop
 * thread. Most of the cost is drawing masks and reading B, and all slots read the same rows at
 * about the same time. The terms of some rows are therefore kept in a cache of a fixed size, and
 * each slot's share is summed from them. For a slot that is behind, the terms are made again from
 * the same masks and give the same bytes. Under share1 B is sent in clear, in the narrowest element
 * kind.
 */
#include <string.h>

#include "core/alloc.h"
#include "crypto/fragment_make.h"
#include "matrix/residue.h"
#include "schemes/partition/partition.h"
#include "schemes/share/bytes.h"

/* 16 MB, and 1 MB for each term from the 17th on. Sessions request 256 KB of a share at a time;
 * this fits in the cache with any number of terms, so the next slot finds the terms there. */
#define CHUNK_BYTES ((size_t)1 << 20) /* unless a row is larger */
#define CHUNKS 16u

/* --- terms of some rows ---------------------------------------------------------------------- */

void sherd__share_loop_free(share *d)
{
    for (uint32_t i = 0; i < SHARE_CHUNKS; i++) sherd__share_scratch_free(&d->loop.chunk[i].terms);
    sherd__masks_free(d->loop.masks);
    d->loop = (share_loop){ 0 };
}

void sherd__share_loop_size(share *d)
{
    share_loop *l = &d->loop;
    if (!d->depth || !d->m) return; /* nothing will be read */
    size_t row = d->tile_cols * d->b.terms * sizeof(double);
    l->rows = row < CHUNK_BYTES ? CHUNK_BYTES / row : 1;
    if (l->rows > d->depth) l->rows = d->depth;
    size_t cache = (d->b.terms > CHUNKS ? d->b.terms : CHUNKS) * CHUNK_BYTES;
    size_t chunks = cache / (l->rows * row);
    l->chunks = chunks < 2 ? 2 : chunks > SHARE_CHUNKS ? SHARE_CHUNKS : (uint32_t)chunks;
}

static int fill_chunk(const share *d, share_loop *l, share_chunk *c, uint32_t tile, uint32_t prime,
                      size_t first)
{
    const double *term[SHERD__LCC_BLOCKS_MAX];
    const share_span span = sherd__share_span_b(d, tile);
    sherd__binding_hash hash = { 0 };
    share_scratch *t = &c->terms;
    t->room = l->rows * d->tile_cols;
    if (!t->data) t->data = t->term = sherd__share_secret(t->room, d->b.terms, 1, sizeof(double));
    if (!t->data) return SHERD_ENOMEM;
    *c = (share_chunk){ .terms = *t, .tile = tile, .prime = prime, .first = first };
    c->rows = d->depth - first < l->rows ? d->depth - first : l->rows;
    int err = sherd__share_load(t, &d->b, &span, first, c->rows, &hash);
    const share_source of = { &d->b, l->masks, &span };
    if (!err) err = sherd__share_terms(d, t, &(share_piece){ &of, first, c->rows, prime }, term);
    if (!err) c->used = ++l->clock;
    return err;
}

/* Returns the chunk that contains `row`: a cached one, or a new one that replaces the least
 * recently used. */
static int chunk_of(share *d, uint32_t tile, uint32_t prime, size_t row, share_chunk **out)
{
    share_loop *l = &d->loop;
    share_chunk *old = &l->chunk[0];
    for (uint32_t i = 0; i < l->chunks; i++) {
        share_chunk *c = &l->chunk[i];
        if (c->used && c->tile == tile && c->prime == prime && c->first == row - row % l->rows) {
            c->used = ++l->clock;
            *out = c;
            return SHERD_OK;
        }
        if (c->used < old->used) old = c;
    }
    *out = old;
    return fill_chunk(d, l, old, tile, prime, row - row % l->rows);
}

/* Computes values [from, from+n) of a slot's share from a chunk. */
static void sum_terms(const share *d, const share_chunk *c, uint32_t slot, size_t from, size_t n,
                      uint8_t *out)
{
    const double *in[SHERD__LCC_BLOCKS_MAX];
    const double *w = d->b.w[c->prime] + (size_t)slot * d->b.terms;
    for (uint32_t j = 0; j < d->b.terms; j++) in[j] = c->terms.term + j * c->terms.room + from;
    sherd__lcc_encode(w, 1, d->b.terms, d->p.primes[c->prime], in, n, &out);
}

/* Computes bytes [offset, offset+len) of a slot's share of a tile; the range may start or end
 * within a value. */
static int read_share(share *d, uint32_t slot, uint32_t tile, uint64_t offset, uint8_t *out,
                      size_t len)
{
    if (d->bytes) return sherd__share_bytes_read(d, slot, tile, offset, out, len);
    const size_t each = SHERD__RESIDUE_BYTES, width = share_tile_width(d, tile);
    while (len) {
        uint64_t at = offset / each, row = at / width;
        size_t cut = (size_t)(offset % each), n = len / each;
        share_chunk *c;
        int err = chunk_of(d, tile, (uint32_t)(row / d->depth), (size_t)(row % d->depth), &c);
        if (err) return err;
        size_t from = ((size_t)(row % d->depth) - c->first) * width + (size_t)(at % width);
        if (cut || !n) {
            uint8_t one[SHERD__RESIDUE_BYTES];
            sum_terms(d, c, slot, from, 1, one);
            n = each - cut < len ? each - cut : len;
            memcpy(out, one + cut, n);
        } else {
            if (n > c->rows * width - from) n = c->rows * width - from;
            sum_terms(d, c, slot, from, n, out);
            n *= each;
        }
        offset += n;
        out += n;
        len -= n;
    }
    return SHERD_OK;
}

/* --- the source ------------------------------------------------------------------------------ */

typedef struct resident {
    share *d;
    uint32_t slot, tile;
    size_t width, row_bytes;
    double *line; /* share1: a row of B; its bytes */
    uint8_t *bytes;
    uint64_t made; /* row of the body in these buffers, or UINT64_MAX */
} resident;

static void resident_free(void *ctx)
{
    resident *r = ctx;
    sherd__free(r->line);
    sherd__free(r->bytes);
    sherd__free(r);
}

/* Makes row `at` of the body (rows of one prime after those of another) for a public B. */
static void public_row(resident *r, uint64_t at)
{
    const share *d = r->d;
    sherd__fixed_row(&d->b.fixed, d->b.v, (size_t)(at % d->depth), (size_t)r->tile * d->tile_cols,
                     r->width, r->line);
    if (d->dtype_b == SHERD__RESIDUES) {
        uint32_t p = d->p.primes[at / d->depth];
        sherd__residue_from_f64(r->line, r->width, p, r->line);
        sherd__residue_pack(r->line, r->width, p, r->bytes);
    } else {
        sherd__partition_narrow(d->dtype_b, r->line, r->width, r->bytes);
    }
    r->made = at;
}

static int resident_fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    resident *r = ctx;
    if (!r->d->p.public_b) {
        int err = sherd__share_changed(r->d) ? SHERD_EIO
                                             : read_share(r->d, r->slot, r->tile, offset, out, len);
        if (err != SHERD_EIO) return err;
        memset(out, 0, len); /* the session continues with other jobs; this job is about to end */
        return SHERD_OK;
    }
    while (len) {
        uint64_t at = offset / r->row_bytes;
        size_t skip = (size_t)(offset % r->row_bytes), n = r->row_bytes - skip;
        if (n > len) n = len;
        if (r->made != at) public_row(r, at);
        memcpy(out, r->bytes + skip, n);
        offset += n;
        out += n;
        len -= n;
    }
    return SHERD_OK;
}

int sherd__share_resident(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out)
{
    share *d = ctx;
    bool residues = d->dtype_b == SHERD__RESIDUES;
    const share_span span = sherd__share_span_b(d, tile);
    if (share_seeded(&d->b, slot))
        return sherd__share_bytes_seed(d, &(share_source){ &d->b, d->loop.masks, &span }, slot,
                                       out);
    resident *r = sherd__calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return SHERD_ENOMEM;
    *r = (resident){ .d = d, .slot = slot, .tile = tile, .made = UINT64_MAX };
    r->width = share_tile_width(d, tile);
    r->row_bytes = r->width *
                   (residues ? SHERD__RESIDUE_BYTES : sherd_dtype_size((sherd_dtype)d->dtype_b));
    int err = SHERD_OK;
    if (d->p.public_b) {
        r->line = sherd__alloc(r->width * sizeof *r->line);
        r->bytes = sherd__alloc(r->row_bytes);
        if (!r->line || !r->bytes) err = SHERD_ENOMEM;
    }
    size_t primes = residues ? d->p.primes_len : 0;
    sherd__fragment_info info = {
        .origin = SHERD__HIDDEN,
        .dtype = d->dtype_b,
        .primes = (uint8_t)primes,
        .rows = d->depth,
        .cols = r->width,
        .len = (uint64_t)d->depth * r->row_bytes * (primes ? primes : 1),
    };
    const sherd__fragment_source source = { resident_fill, resident_free, r };
    if (d->bytes) info = sherd__share_residues(d, SHARE_RIGHT, d->depth, r->width);
    if (!err) err = sherd__fragment_new_source(out, &info, source);
    if (err) resident_free(r);
    return err;
}
