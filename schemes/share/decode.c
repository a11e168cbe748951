/*
 * Decoding: the blocks of C are weighted sums of any `threshold` accepted answers of a position
 * (crypto/code.h), or C itself is, if A was cut by columns. Residues are summed for each prime,
 * recombined and rounded once, in pieces that stay in cache, directly into C. No error depends on
 * the values: only verified answers come here, and an error that depended on the decoded values
 * would be an oracle.
 *
 * Transposed, C is the sum of the blocks' products over all panels: one row of weights gives the
 * sum over blocks, panels are added up modulo each prime, and the last one converts the sum. If the
 * total would need more primes than the products of one panel do, only groups of panels are added
 * up in this way, and the groups' sums are added as integers.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "matrix/exact.h"
#include "matrix/residue.h"
#include "schemes/share/bytes.h"

#define TABLE_KEPT 65536u /* bytes of a table of checks that is kept for answers that come late */
#define PIECE 1024u       /* values of a block that are decoded together */

/* --- weights --------------------------------------------------------------------------------- */

/* Returns the number of rows of weights: one for each block, or one for their sum. */
static uint32_t weight_rows(const share *d)
{
    return d->transposed ? 1 : share_row_blocks(d);
}

/* Turns weights of one prime into bytes, times the factor of the recombination. */
static void narrow(const share *d, uint32_t q, const double *w, size_t n, int8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        double x = w[i] * d->crt_bytes.fold[q];
        sherd__residue_from_f64(&x, 1, d->p.primes[q], &x);
        out[i] = (int8_t)x;
    }
}

static int make_weights(const share *d, const uint32_t *slots, double *w)
{
    uint32_t len = d->threshold;
    double *one = sherd__alloc(len * sizeof *one);
    if (!one) return SHERD_ENOMEM;
    for (uint32_t q = 0; q < d->p.primes_len; q++) {
        for (uint32_t j = 0; j < share_row_blocks(d); j++) {
            d->p.by->decode(&d->p.code, d->p.primes[q], j, slots, len, one);
            for (uint32_t i = 0; i < len; i++) w[i] += one[i]; /* at most 64 below 2^22: exact */
            if (!d->transposed) w += len;
        }
        if (!d->transposed) continue;
        sherd__residue_from_f64(w, len, d->p.primes[q], w);
        w += len;
    }
    sherd__free(one);
    return SHERD_OK;
}

/* Returns the weights of a set of slots, ascending; most positions use one of a few sets. */
static int weights_of(share *d, const uint32_t *slots, const void **out)
{
    uint32_t len = d->threshold;
    for (uint32_t i = 0; i < SHARE_WEIGHTS; i++) {
        const share_weights *c = &d->cache[i];
        if (!c->slots || c->transposed != d->transposed ||
            memcmp(c->slots, slots, len * sizeof *slots))
            continue;
        *out = c->w;
        return SHERD_OK;
    }
    share_weights *c = &d->cache[d->cache_next++ % SHARE_WEIGHTS];
    sherd__free(c->slots);
    sherd__free(c->w);
    *c = (share_weights){ .transposed = d->transposed };
    uint32_t *copy = sherd__alloc(len * sizeof *copy);
    double *w = sherd__calloc((size_t)d->p.primes_len * weight_rows(d), len * sizeof *w);
    int err = copy && w ? make_weights(d, slots, w) : SHERD_ENOMEM;
    size_t each = weight_rows(d) * (size_t)len;
    for (uint32_t q = 0; q < d->p.primes_len && !err && d->bytes; q++)
        narrow(d, q, w + q * each, each, (int8_t *)w + q * each); /* in front of what is read */
    if (err) {
        sherd__free(copy);
        sherd__free(w);
        return err;
    }
    memcpy(copy, slots, len * sizeof *copy);
    c->slots = copy;
    *out = c->w = w;
    return SHERD_OK;
}

/* --- values ---------------------------------------------------------------------------------- */

typedef struct answers {
    const uint32_t *slots;
    const uint8_t **bodies; /* in ascending order of slots */
    const uint8_t **at;     /* scratch */
    const void *w;
    size_t rows, width; /* of each answer */
    uint32_t tile, panel;
} answers;

/* Interpolates values [from, from+n) of every answer: bytes at d->line, [q][row of weights], PIECE
 * each. */
static void interpolate_bytes(share *d, const answers *a, size_t from, size_t n)
{
    uint8_t *out[SHERD__LCC_BLOCKS_MAX];
    const int8_t *w = a->w;
    const uint32_t rows = weight_rows(d);
    for (uint32_t q = 0; q < d->p.primes_len; q++, w += (size_t)rows * d->threshold) {
        for (uint32_t i = 0; i < d->threshold; i++)
            a->at[i] = a->bodies[i] + q * a->rows * a->width + from;
        for (uint32_t j = 0; j < rows; j++)
            out[j] = (uint8_t *)d->line + ((size_t)q * rows + j) * PIECE;
        sherd__bytes_combine(w, rows, d->threshold, d->p.primes[q], false, a->at, n, out);
    }
}

/* The same in doubles, or of bytes. */
static int interpolate(share *d, const answers *a, size_t from, size_t n)
{
    if (d->bytes) {
        interpolate_bytes(d, a, from, n);
        return SHERD_OK;
    }
    double *out[SHERD__LCC_BLOCKS_MAX];
    uint32_t rows = weight_rows(d);
    size_t part = a->rows * a->width;
    for (uint32_t q = 0; q < d->p.primes_len; q++) {
        for (uint32_t i = 0; i < d->threshold; i++)
            a->at[i] = a->bodies[i] + (q * part + from) * SHERD__RESIDUE_BYTES;
        for (uint32_t j = 0; j < rows; j++)
            out[j] = (double *)d->line + ((size_t)q * rows + j) * PIECE;
        int err = sherd__lcc_decode((const double *)a->w + (size_t)q * rows * d->threshold, rows,
                                    d->threshold, d->p.primes[q], a->at, n, out);
        if (err) return SHERD_EWRONG;
    }
    return SHERD_OK;
}

/* Recombines row `row` of d->line: sums, times 2^-scale. */
static void recombine(const share *d, uint32_t row, size_t n, int scale, double *out)
{
    const double *residues[SHERD__TABLE_PRIMES];
    const uint8_t *bytes[SHERD__BYTE_PRIMES];
    for (uint32_t q = 0; q < d->p.primes_len && d->bytes; q++)
        bytes[q] = (const uint8_t *)d->line + ((size_t)q * weight_rows(d) + row) * PIECE;
    if (d->bytes) {
        sherd__bytes_crt_f64(&d->crt_bytes, bytes, n, scale, out);
        return;
    }
    for (uint32_t q = 0; q < d->p.primes_len; q++)
        residues[q] = (const double *)d->line + ((size_t)q * weight_rows(d) + row) * PIECE;
    sherd__crt_f64(&d->crt, residues, n, scale, out);
}

/* Rows of C from `row` on, up to limit; those beyond are padding. */
typedef struct place_in {
    size_t row, limit;
} place_in;

/* Copies values [from, from+n) of a rows x width part of C. */
static void place(const share *d, const answers *a, place_in c_rows, size_t from, size_t n,
                  const double *x)
{
    while (n) {
        size_t i = from / a->width, j = from % a->width, len = a->width - j;
        if (len > n) len = n;
        if (c_rows.row + i >= c_rows.limit) return;
        double *c = d->p.c + (c_rows.row + i) * d->p.ldc + (size_t)a->tile * d->tile_cols;
        memcpy(c + j, x, len * sizeof *x);
        from += len;
        x += len;
        n -= len;
    }
}

static int decode_blocks(share *d, const answers *a)
{
    size_t all = a->rows * a->width;
    share_span span = sherd__share_span_a(d, a->panel);
    size_t to = span.from - d->rows.first, each = d->each; /* first row of the part in C */
    double *x = (double *)d->line + (size_t)d->p.primes_len * weight_rows(d) * PIECE;
    for (size_t from = 0; from < all; from += PIECE) {
        size_t n = all - from < PIECE ? all - from : PIECE;
        int err = interpolate(d, a, from, n);
        if (err) return err;
        for (uint32_t j = 0; j < share_row_blocks(d); j++) {
            recombine(d, j, n, d->a.fixed.scale + d->b.fixed.scale, x);
            const place_in rows = { (to + j * span.height + span.at) * each,
                                    (to + span.limit) * each };
            place(d, a, rows, from, n, x);
        }
    }
    return SHERD_OK;
}

/* Returns the size of a residue in the sums of tiles. */
static size_t share_sum_bytes(const share *d)
{
    return d->bytes ? 1 : sizeof(double);
}

/* Adds values [from, from+n) of a panel's sum, in d->line, to those of the group, and stores the
 * group's sum in d->line. */
static void add_panel(const share *d, share_tile *tile, size_t all, size_t from, size_t n)
{
    static const int8_t ones[2] = { 1, 1 };
    for (uint32_t q = 0; q < d->p.primes_len && d->bytes; q++) {
        uint8_t *sum = (uint8_t *)tile->sum + q * all + from, both[PIECE], *to = both;
        uint8_t *add = (uint8_t *)d->line + (size_t)q * PIECE;
        sherd__bytes_combine(ones, 1, 2, d->p.primes[q], false, (const uint8_t *[]){ sum, add }, n,
                             &to);
        memcpy(sum, both, n);
        memcpy(add, both, n);
    }
    for (uint32_t q = 0; q < d->p.primes_len && !d->bytes; q++) {
        double *sum = (double *)tile->sum + q * all + from;
        double *add = (double *)d->line + (size_t)q * PIECE;
        for (size_t i = 0; i < n; i++) add[i] += sum[i];
        sherd__residue_from_f64(add, n, d->p.primes[q], add);
        memcpy(sum, add, n * sizeof *sum);
    }
}

/* Adds the group's values, in d->line, to the integer sums, and starts the next group. Products of
 * two primes, or of six below 256, are below 2^53, so the doubles are exact integers. */
static void add_group(const share *d, share_tile *tile, size_t all, size_t from, size_t n,
                      double *x)
{
    const size_t each = share_sum_bytes(d);
    for (uint32_t q = 0; q < d->p.primes_len; q++)
        memset((uint8_t *)tile->sum + each * (q * all + from), 0, each * n);
    recombine(d, 0, n, 0, x);
    for (size_t i = 0; i < n; i++) tile->whole[from + i] += (int64_t)x[i];
}

static int room_for_sum(const share *d, share_tile *tile, size_t all)
{
    if (!tile->sum) tile->sum = sherd__share_secret(d->p.primes_len, all, 1, share_sum_bytes(d));
    if (d->group && !tile->whole) tile->whole = sherd__share_secret(all, 1, 1, sizeof *tile->whole);
    return tile->sum && (tile->whole || !d->group) ? SHERD_OK : SHERD_ENOMEM;
}

/* Adds a panel's sum to that of the tile; the last panel of the tile writes C. */
static int decode_sum(share *d, const answers *a)
{
    share_tile *tile = &d->tile[a->tile];
    size_t all = a->rows * a->width;
    double *x = (double *)d->line + (size_t)d->p.primes_len * PIECE;
    const bool alone = d->panels == 1 && !d->group; /* there is nothing to add */
    int shift = d->a.fixed.scale + d->b.fixed.scale;
    int err = alone ? SHERD_OK : room_for_sum(d, tile, all);
    if (err) return err;
    bool last = tile->decoded + 1 == d->panels;
    bool full = d->group && (last || tile->summed + 1 == d->group);
    for (size_t from = 0; from < all; from += PIECE) {
        size_t n = all - from < PIECE ? all - from : PIECE;
        err = interpolate(d, a, from, n);
        if (err) return err;
        if (!alone) add_panel(d, tile, all, from, n);
        if (full) add_group(d, tile, all, from, n, x);
        if (!last) continue;
        if (!d->group) recombine(d, 0, n, shift, x);
        for (size_t i = 0; d->group && i < n; i++) x[i] = (double)tile->whole[from + i];
        if (d->group) sherd__exact_unscale(x, n, shift);
        place(d, a, (place_in){ 0, d->k }, from, n, x);
    }
    tile->summed = full ? 0 : tile->summed + 1;
    if (!last) return SHERD_OK;
    sherd__share_forget(tile->sum);
    sherd__share_forget(tile->whole);
    tile->sum = NULL;
    tile->whole = NULL;
    return SHERD_OK;
}

/* Returns true if a position of the panel was hidden and its answers cannot be checked yet. */
static bool awaits_projection(const share *d, uint32_t panel)
{
    for (uint32_t t = 0; t < d->tiles; t++) {
        const share_spot *spot = share_spot_of(d, t, panel);
        if (spot->batch.bytes && !spot->gram) return true;
    }
    return false;
}

static bool all_decoded(const share *d, uint32_t panel)
{
    for (uint32_t t = 0; t < d->tiles; t++)
        if (!share_spot_of(d, t, panel)->decoded) return false;
    return true;
}

/*
 * Frees data that only open positions need. rT*A is kept, if there is room, when the next product
 * multiplies the same shares; otherwise the next tile computes it again while it encodes. The small
 * table is kept for answers that come late.
 */
static void close_spot(share *d, uint32_t tile, uint32_t panel)
{
    share_spot *spot = share_spot_of(d, tile, panel);
    share_panel *p = share_panel_of(d, panel);
    share_tile *t = &d->tile[tile];
    spot->decoded = true;
    sherd__share_batch_close(d, &spot->batch);
    sherd__share_forget(spot->ds);
    spot->ds = NULL;
    if (d->bytes && sherd__share_bytes_table_len(d) > TABLE_KEPT) {
        sherd__share_forget(spot->gram);
        spot->gram = NULL;
    }
    if (++t->decoded == d->panels) {
        sherd__share_forget(t->vs);
        t->vs = NULL;
    }
    if (d->p.left_stays) {
        sherd__share_batch_close(d, &p->left);
        if (all_decoded(d, panel)) sherd__share_put_by(d, p, sherd__share_answer_rows(d, panel));
    } else if (!awaits_projection(d, panel)) {
        sherd__share_forget(p->ru);
        p->ru = NULL;
    }
}

/* Sorts slots, with their bodies, in ascending order, so that one set has one entry of weights. */
static void sort(uint32_t *slots, const uint8_t **bodies, uint32_t len)
{
    for (uint32_t i = 1; i < len; i++) {
        uint32_t s = slots[i], j = i;
        const uint8_t *b = bodies[i];
        for (; j > 0 && slots[j - 1] > s; j--) {
            slots[j] = slots[j - 1];
            bodies[j] = bodies[j - 1];
        }
        slots[j] = s;
        bodies[j] = b;
    }
}

int sherd__share_decode(void *ctx, uint32_t tile, uint32_t panel, const uint32_t *slots,
                        const uint8_t *const *bodies, uint32_t len)
{
    share *d = ctx;
    uint32_t *order = sherd__alloc(len * sizeof *order);
    const uint8_t **by = sherd__alloc(2 * (size_t)len * sizeof *by);
    answers a = { .slots = order,
                  .bodies = by,
                  .tile = tile,
                  .panel = panel,
                  .rows = d->transposed ? d->k : sherd__share_answer_rows(d, panel),
                  .width = share_tile_width(d, tile) };
    int err = order && by ? SHERD_OK : SHERD_ENOMEM;
    assert(len == d->threshold && !share_spot_of(d, tile, panel)->decoded);
    size_t room = ((size_t)d->p.primes_len * d->p.code.blocks + 1) * PIECE;
    if (!err && !d->line && !(d->line = sherd__share_secret(room, 1, 1, sizeof(double))))
        err = SHERD_ENOMEM;
    if (!err) {
        memcpy(order, slots, len * sizeof *order);
        memcpy(by, bodies, len * sizeof *by);
        sort(order, by, len);
        a.at = by + len;
        err = weights_of(d, order, &a.w);
    }
    if (!err) err = d->transposed ? decode_sum(d, &a) : decode_blocks(d, &a);
    if (!err) close_spot(d, tile, panel);
    sherd__free(order);
    sherd__free(by);
    return err;
}
