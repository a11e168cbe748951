/*
 * Shares made on the compute thread: those of A's panels, and those of D's if the product is
 * transposed. The shares of all slots are made in one pass when the first is requested, since
 * reading, quantising and drawing masks cost more than one more share. The others are kept until
 * they are requested, or until the position is decoded without them. A share that is requested
 * again is made again from the same masks and has the same bytes.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/wipe.h"
#include "crypto/fragment_make.h"
#include "schemes/share/bytes.h"

size_t sherd__share_bytes(const share *d, share_side side, size_t rows, size_t cols)
{
    if (d->bytes && side == SHARE_LEFT) return sherd__share_bytes_laid(d, rows, cols);
    if (d->bytes && side == SHARE_RIGHT) return sherd__share_bytes_laid(d, cols, rows);
    return rows * cols * (d->bytes ? 1 : SHERD__RESIDUE_BYTES) * d->p.primes_len;
}

sherd__fragment_info sherd__share_residues(const share *d, share_side side, size_t rows,
                                           size_t cols)
{
    static const uint8_t bytes[] = { SHERD__BYTES_LEFT, SHERD__BYTES_RIGHT, SHERD__BYTES };
    return (sherd__fragment_info){
        .origin = side == SHARE_ANSWER ? SHERD__RESULT : SHERD__HIDDEN,
        .dtype = d->bytes ? bytes[side] : SHERD__RESIDUES,
        .primes = (uint8_t)d->p.primes_len,
        .rows = rows,
        .cols = cols,
        .len = sherd__share_bytes(d, side, rows, cols),
    };
}

size_t sherd__share_tile_runs(const share *d)
{
    if (d->bytes) return sherd__share_bytes_runs(d);
    return d->loop.rows ? (d->depth + d->loop.rows - 1) / d->loop.rows : 0;
}

share_part sherd__share_part(const share *d, uint32_t panel)
{
    size_t i = (d->first + panel) / d->part_panels, from = i * d->p.part_rows;
    size_t rows = d->n - from < d->p.part_rows ? d->n - from : d->p.part_rows;
    return (share_part){ from, rows, i * d->h, (rows - 1) / share_row_blocks(d) + 1 };
}

static size_t panel_at(const share *d, uint32_t panel)
{
    return (size_t)((d->first + panel) % d->part_panels) * d->p.panel_rows;
}

size_t sherd__share_panel_rows(const share *d, uint32_t panel)
{
    size_t left = sherd__share_part(d, panel).height - panel_at(d, panel);
    return left < d->p.panel_rows ? left : d->p.panel_rows;
}

size_t sherd__share_answer_rows(const share *d, uint32_t panel)
{
    return sherd__share_panel_rows(d, panel) * d->each;
}

share_span sherd__share_span_a(const share *d, uint32_t panel)
{
    share_part p = sherd__share_part(d, panel);
    size_t at = panel_at(d, panel);
    return (share_span){ .row = p.row + at,
                         .rows = sherd__share_panel_rows(d, panel),
                         .cols = d->windows.count ? d->p.a.cols : d->depth,
                         .block_cols = share_cuts_inner(d) ? d->depth : 0,
                         .at = at,
                         .height = p.height,
                         .from = p.from,
                         .limit = p.rows,
                         .run = d->first + panel };
}

/* D has the rows of this product only, one for each row of A (with windows, several for p.a's). */
share_span sherd__share_span_d(const share *d, uint32_t tile, uint32_t panel)
{
    share_span span = sherd__share_span_a(d, panel);
    span.from = (span.from - d->rows.first) * d->each;
    span.row *= d->each;
    span.rows *= d->each;
    span.at *= d->each;
    span.height *= d->each;
    span.limit *= d->each;
    span.col = (size_t)tile * d->tile_cols;
    span.cols = share_tile_width(d, tile);
    span.run = (size_t)tile * d->panels + panel;
    return span;
}

share_span sherd__share_span_b(const share *d, uint32_t tile)
{
    return (share_span){ .rows = d->depth,
                         .col = (size_t)tile * d->tile_cols,
                         .cols = share_tile_width(d, tile),
                         .height = d->depth,
                         .limit = d->k,
                         .run = tile * sherd__share_tile_runs(d) };
}

static void drop(uint8_t *bytes, size_t len)
{
    if (bytes) sherd__wipe(bytes, len);
    sherd__free(bytes);
}

/* --- batches --------------------------------------------------------------------------------- */

void sherd__share_batch_close(const share *d, share_batch *b)
{
    for (uint32_t i = 0; b->bytes && i < d->p.code.shares; i++) drop(b->bytes[i], b->len);
    sherd__free(b->bytes);
    b->bytes = NULL;
    b->over = true;
}

void sherd__share_spare(void *ctx, const uint8_t *dead)
{
    share *d = ctx;
    memcpy(d->dead, dead, (d->p.code.shares + 7) / 8);
}

/* Allocates buffers for `slot`, which requests its share, and for all slots that will. Seeds need
 * none. */
static int batch_open(const share *d, share_batch *b, const share_operand *o, uint32_t slot,
                      size_t len)
{
    b->len = len;
    b->bytes = sherd__calloc(d->p.code.shares, sizeof *b->bytes);
    if (!b->bytes) return SHERD_ENOMEM;
    for (uint32_t i = 0; i < d->p.code.shares; i++) {
        bool dead = d->dead[i / 8] >> i % 8 & 1;
        if ((dead || share_seeded(o, i)) && i != slot) continue;
        if (!(b->bytes[i] = sherd__alloc_large(len))) return SHERD_ENOMEM;
    }
    return SHERD_OK;
}

/* Makes the share of one slot that is not held. */
static int make_one(share *d, const share_source *of, uint32_t slot, size_t len, uint8_t **out)
{
    uint8_t *wanted[SHERD__LCC_SHARES_MAX] = { 0 };
    uint8_t *bytes = wanted[slot] = sherd__alloc_large(len);
    if (!bytes) return SHERD_ENOMEM;
    int err = sherd__share_pass(d, &d->scratch, of, wanted, NULL);
    if (err) drop(bytes, len);
    else *out = bytes;
    return err;
}

static share_side side_of(const share *d, const share_source *of)
{
    return of->o == &d->a ? SHARE_LEFT : SHARE_RIGHT;
}

static int take(share *d, share_batch *b, const share_source *of, const share_probe *probe,
                uint32_t slot, uint8_t **out)
{
    size_t len = sherd__share_bytes(d, side_of(d, of), of->span->rows, of->span->cols);
    if (!b->bytes && !b->over) {
        int err = batch_open(d, b, of->o, slot, len);
        if (!err) err = sherd__share_pass(d, &d->scratch, of, b->bytes, probe);
        if (err) {
            sherd__share_batch_close(d, b);
            b->over = false;
            return err;
        }
    }
    if (!b->bytes || !b->bytes[slot]) return make_one(d, of, slot, len, out);
    *out = b->bytes[slot];
    b->bytes[slot] = NULL;
    return SHERD_OK;
}

/* --- fragments ------------------------------------------------------------------------------- */

static int wrap(const share *d, share_side side, const share_span *span, uint8_t *bytes,
                sherd__fragment **out)
{
    sherd__fragment_info info = sherd__share_residues(d, side, span->rows, span->cols);
    int err = sherd__fragment_take(out, &info, bytes, NULL, NULL);
    if (err) drop(bytes, info.len);
    return err;
}

/* Makes A's share and, in the same pass, rT*A (transposed: A*r) if it does not exist yet. */
static int share_of_a(share *d, share_batch *b, uint32_t slot, uint32_t panel,
                      sherd__fragment **out)
{
    share_panel *at = share_panel_of(d, panel);
    share_span span = sherd__share_span_a(d, panel);
    void **to = d->transposed ? &at->ur : &at->ru, *x = NULL;
    uint8_t *bytes;
    bool first = !*to && !b->bytes && !b->over;
    int err = SHERD_OK;
    const share_source of = { &d->a, d->a_masks, &span };
    if (share_seeded(&d->a, slot)) return sherd__share_bytes_seed(d, &of, slot, out);
    if (first) {
        size_t len = d->transposed ? span.rows * d->each : span.cols;
        err = d->transposed ? sherd__share_draw_rt(d) : sherd__share_draw_r(d, panel);
        x = sherd__share_secret(d->p.primes_len * TRIALS, d->a.terms, len, sizeof(double));
        if (!err && !x) err = SHERD_ENOMEM;
    }
    const share_probe probe = d->transposed ? (share_probe){ .s = sherd__share_rt(d), .right = x }
                                            : (share_probe){ .r = at->r, .left = x };
    if (!err) err = take(d, b, &of, first ? &probe : NULL, slot, &bytes);
    if (!err && first && !d->transposed && d->windows.count &&
        (err = sherd__share_windows_left(d, &x)) != 0)
        drop(bytes, sherd__share_bytes(d, SHARE_LEFT, span.rows, span.cols));
    if (!err && first) {
        *to = x;
        x = NULL;
    }
    sherd__share_forget(x);
    return err ? err : wrap(d, SHARE_LEFT, &span, bytes, out);
}

/* Makes D's share and, in the same pass, D*s. */
static int share_of_d(share *d, sherd__cell c, sherd__fragment **out)
{
    share_spot *at = share_spot_of(d, c.tile, c.panel);
    share_span span = sherd__share_span_d(d, c.tile, c.panel);
    void *ds = NULL;
    uint8_t *bytes;
    bool first = !at->ds && !at->gram && !at->batch.bytes && !at->batch.over;
    int err = SHERD_OK;
    const share_source of = { &d->b, d->b_masks, &span };
    if (share_seeded(&d->b, c.slot)) return sherd__share_bytes_seed(d, &of, c.slot, out);
    if (first) {
        err = sherd__share_draw_s(d, c.tile);
        ds = sherd__share_secret(d->p.primes_len * TRIALS, d->b.terms, span.rows, sizeof(double));
        if (!err && !ds) err = SHERD_ENOMEM;
    }
    const share_probe probe = { .s = d->tile[c.tile].s, .right = ds };
    if (!err) err = take(d, &at->batch, &of, first ? &probe : NULL, c.slot, &bytes);
    if (!err && first) {
        at->ds = ds;
        ds = NULL;
    }
    sherd__share_forget(ds);
    return err ? err : wrap(d, SHARE_RIGHT, &span, bytes, out);
}

int sherd__share_hide(void *ctx, sherd__cell c, sherd__cell_work *out)
{
    share *d = ctx;
    size_t rows = d->transposed ? d->k : sherd__share_answer_rows(d, c.panel);
    size_t cols = share_tile_width(d, c.tile);
    int err = SHERD_OK;
    *out = (sherd__cell_work){ 0 };
    if (sherd__share_changed(d)) return SHERD_EIO;
    if (d->transposed) err = share_of_d(d, c, &out->right);
    else if (!d->p.left_stays)
        err = share_of_a(d, &share_spot_of(d, c.tile, c.panel)->batch, c.slot, c.panel, &out->left);
    out->result = sherd__share_residues(d, SHARE_ANSWER, rows, cols);
    return err;
}

/* Returns the description of what a slot is sent of an operand. */
static sherd__fragment_info sent(const share *d, const share_operand *o, uint32_t slot, size_t rows,
                                 size_t cols)
{
    sherd__fragment_info i = sherd__share_residues(d, o == &d->a ? SHARE_LEFT : SHARE_RIGHT, rows,
                                                   cols);
    if (!share_seeded(o, slot)) return i;
    i.encoding = SHERD__SEED;
    i.len = sherd__seed_len(i.primes);
    return i;
}

int sherd__share_sizes(void *ctx, sherd__cell c, sherd__cell_sizes *out)
{
    const share *d = ctx;
    size_t rows = sherd__share_answer_rows(d, c.panel), width = share_tile_width(d, c.tile);
    const share_span a = sherd__share_span_a(d, c.panel);
    *out = (sherd__cell_sizes){
        .left = sent(d, &d->a, c.slot, a.rows, a.cols),
        .result = sherd__share_residues(d, SHARE_ANSWER, d->transposed ? d->k : rows, width)
    };
    if (d->transposed) out->right = sent(d, &d->b, c.slot, rows, width);
    return SHERD_OK;
}

int sherd__share_left(void *ctx, uint32_t slot, uint32_t panel, sherd__fragment **out)
{
    share *d = ctx;
    *out = NULL;
    if (sherd__share_changed(d)) return SHERD_EIO;
    return share_of_a(d, &share_panel_of(d, panel)->left, slot, panel, out);
}
