/*
 * Encoding in byte residues: blocks of an operand become terms, laid out as nodes multiply them,
 * and sums of terms become shares. A block is read, quantised and masked once for all primes.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/pieces.h"
#include "core/wipe.h"
#include "schemes/share/bytes.h"
#include "schemes/share/bytes_state.h"

enum {
    TILE = SHERD__BYTES_TILE,
    STEP = SHERD__BYTES_STEP,
    LEN = TILE * STEP, /* bytes of a tile */
    LEFT_ROWS = SHERD__DRAWN_LEFT_ROWS,
    LEFT_COLS = SHERD__DRAWN_LEFT_COLS,
    RIGHT_ROWS = SHERD__DRAWN_RIGHT_ROWS, /* a block of B or D */
    RIGHT_COLS = SHERD__DRAWN_RIGHT_COLS,
    AREA = SHERD__DRAWN_AREA
};

#define CACHE_BYTES ((size_t)16 << 20) /* for chunks of B, unless four of them are larger */

size_t sherd__share_bytes_laid(const share *d, size_t lines, size_t terms)
{
    return sherd__bytes_laid(lines, terms) * d->p.primes_len;
}

/* --- blocks ---------------------------------------------------------------------------------- */

/* Rows [row, row+rows) and columns [col, col+cols) of a span. */
typedef struct block {
    const share_source *of;
    size_t row, rows, col, cols;
    sherd__drawn drawn;
    size_t area; /* elements in scratch, those beyond the block included */
} block;

/* Returns the columns of a block of A, or of the right operand. */
static uint32_t block_cols(const share *d, bool left)
{
    return left ? LEFT_COLS : d->transposed ? RIGHT_COLS : (uint32_t)d->bytes->loop_cols;
}

/* The block that begins there, of at most `wide` columns. */
static block block_of(const share_source *of, bool left, size_t row, size_t col, size_t wide)
{
    const share_span *span = of->span;
    block b = { .of = of,
                .row = row,
                .rows = sherd__least(left ? LEFT_ROWS : RIGHT_ROWS, span->rows - row),
                .col = col,
                .cols = sherd__least(wide, span->cols - col) };
    b.drawn = (sherd__drawn){ left, b.rows, b.cols };
    b.area = sherd__drawn_area(&b.drawn);
    return b;
}

/* Reads n columns from `col` on, where blocks are ranges of columns. */
static void load_columns(const share_operand *o, const share_span *span, size_t row, size_t col,
                         size_t n, double *out)
{
    size_t there = col < o->v.cols ? sherd__least(n, o->v.cols - col) : 0;
    if (there) sherd__fixed_row(&o->fixed, o->v, span->from + span->at + row, col, there, out);
    memset(out + there, 0, (n - there) * sizeof *out);
}

/* Reads and quantises a block of every block of the code, and adds it to the hash of its run. */
static int load(bytes_scratch *s, const block *b, sherd__binding_hash *h)
{
    const share_operand *o = b->of->o;
    const share_span *span = b->of->span;
    size_t from[SHERD__LCC_BLOCKS_MAX];
    double *to[SHERD__LCC_BLOCKS_MAX];
    if (!sherd__drawn_whole(&b->drawn)) memset(s->data, 0, o->blocks * AREA * sizeof *s->data);
    for (size_t i = 0; i < b->rows; i++) {
        for (size_t c = 0; c < b->cols; c += STEP) {
            size_t count = 0, n = sherd__least(STEP, b->cols - c);
            for (size_t j = 0; j < o->blocks && span->block_cols; j++)
                load_columns(o, span, b->row + i, j * span->block_cols + b->col + c, n,
                             s->data + j * AREA + sherd__drawn_place(&b->drawn, i, c));
            for (size_t j = 0; j < o->blocks && !span->block_cols; j++) {
                double *out = s->data + j * AREA + sherd__drawn_place(&b->drawn, i, c);
                size_t at = j * span->height + span->at + b->row + i;
                if (at >= span->limit) {
                    memset(out, 0, n * sizeof *out);
                    continue;
                }
                from[count] = span->from + at;
                to[count++] = out;
            }
            sherd__fixed_turns(&o->fixed, o->v, from, count, span->col + b->col + c, n, to);
        }
    }
    int err = SHERD_OK;
    for (size_t j = 0; j < o->blocks && o->binding && !err; j++)
        err = sherd__binding_add(o->binding, h, s->data + j * AREA, b->area);
    return err;
}

/* Returns where a span's part of a mask is. */
static uint64_t place_of(const share_span *span)
{
    assert(span->row <= UINT32_MAX && span->col <= UINT32_MAX);
    return (uint64_t)span->row << 32 | span->col;
}

/* Draws a block of one mask. */
static int draw(const share *d, const block *b, uint32_t q, uint32_t t, uint8_t *out)
{
    const share_operand *o = b->of->o;
    const share_span *span = b->of->span;
    const sherd__mask_id id = { o->role, t, q, d->p.primes[q], o->v.cols };
    const sherd__seed_id seed = { o->role, o->seeded[t], place_of(span) };
    const uint64_t within = (uint64_t)b->row << 32 | b->col;
    if (o->seeds) return sherd__masks_block(b->of->masks, &id, &seed, within, &b->drawn, out);
    assert(span->row + b->row <= UINT32_MAX && span->col + b->col <= UINT32_MAX);
    return sherd__masks_block(b->of->masks, &id, NULL, place_of(span) + within, &b->drawn, out);
}

int sherd__share_bytes_seed(const share *d, const share_source *of, uint32_t slot,
                            sherd__fragment **out)
{
    const share_span *span = of->span;
    const bool left = of->o == &d->a;
    const sherd__fragment_info whole = sherd__share_residues(d, left ? SHARE_LEFT : SHARE_RIGHT,
                                                             span->rows, span->cols);
    const sherd__seed_id id = { of->o->role, slot, place_of(span) };
    uint8_t seed[SHERD__SEED_BYTES];
    sherd__masks_seed(of->masks, &id, seed);
    int err = sherd__seeded_fragment(out, &whole, seed, block_cols(d, left), d->p.primes);
    sherd__wipe(seed, sizeof seed);
    return err;
}

/* Writes the elements of a block's rows below `kept` in the order of draw(). Returns its end. */
static uint32_t *list_block(const block *b, size_t kept, uint32_t *to)
{
    const bool tiles = b->drawn.left && sherd__drawn_whole(&b->drawn);
    const size_t high = tiles ? TILE : 1, wide = tiles ? STEP : b->cols;
    for (size_t row = 0; row < b->rows; row += high)
        for (size_t col = 0; col < b->cols; col += wide)
            for (size_t i = b->row + row; i < b->row + row + high && i < kept; i++)
                for (size_t j = 0; j < wide; j++)
                    *to++ = (uint32_t)(i * b->of->span->cols + b->col + col + j);
    return to;
}

void sherd__share_drawn(bool left, size_t rows, size_t cols, size_t kept, uint32_t *order)
{
    const share_span span = { .rows = rows, .cols = cols };
    const share_source of = { .span = &span };
    const size_t wide = left ? LEFT_COLS : RIGHT_COLS;
    for (size_t col = 0; col < cols; col += wide)
        for (size_t row = 0; row < rows; row += left ? LEFT_ROWS : RIGHT_ROWS) {
            const block b = block_of(&of, left, row, col, wide);
            order = list_block(&b, kept, order);
        }
}

static uint8_t *term_of(const bytes_scratch *s, const share_operand *o, uint32_t q, uint32_t j)
{
    return s->term + ((size_t)q * o->terms + j) * AREA;
}

/* Makes the terms of a block, in the order of scratch. */
static int make_terms(const share *d, bytes_scratch *s, const block *b, sherd__binding_hash *h)
{
    const share_operand *o = b->of->o;
    int err = load(s, b, h);
    for (uint32_t j = 0; j < o->blocks && !err; j++)
        sherd__bytes_reduce(s->data + j * AREA, b->area, d->p.primes_len, o->terms * (size_t)AREA,
                            term_of(s, o, 0, j));
    for (uint32_t q = 0; q < d->p.primes_len; q++)
        for (uint32_t t = 0; t < o->masks && !err; t++)
            err = draw(d, b, q, t, term_of(s, o, q, o->blocks + t));
    return err;
}

/* --- projections ----------------------------------------------------------------------------- */

/* Adds R^T * terms of a block of A to the sums of its columns: [q][v][term][LEFT_COLS]. */
static void project_left(const share *d, bytes_scratch *s, const block *b, const int8_t *r)
{
    const share_operand *o = b->of->o;
    const size_t rows = b->of->span->rows, ld = o->terms * (size_t)LEFT_COLS;
    for (uint32_t q = 0; q < d->p.primes_len; q++)
        for (uint32_t j = 0; j < o->terms; j++)
            for (size_t i = 0; i < b->rows; i += TILE)
                for (size_t c = 0; c < b->cols; c += STEP)
                    sherd__bytes_project(r + q * CHECKS * rows + b->row + i, rows,
                                         term_of(s, o, q, j) + sherd__drawn_place(&b->drawn, i, c),
                                         sherd__least(TILE, b->rows - i), STEP, STEP,
                                         s->sums + q * CHECKS * ld + j * LEFT_COLS + c, ld);
}

/* Ends the sums of columns [col, col+cols). */
static void settle_left(const share *d, const bytes_scratch *s, const share_source *of, size_t col,
                        size_t cols, int8_t *left)
{
    const size_t lines = CHECKS * (size_t)of->o->terms, all = of->span->cols;
    for (uint32_t q = 0; q < d->p.primes_len; q++)
        for (size_t i = 0; i < lines; i++)
            sherd__bytes_settle(s->sums + (q * lines + i) * LEFT_COLS, cols, d->p.primes[q], true,
                                (uint8_t *)left + (q * lines + i) * all + col);
}

/* Adds terms of a block * s to `right`: [q][term][rows][v], unsigned. The first columns of a row
 * replace what was there. A group of four terms of s has 64 bytes. */
static int project_right(const share *d, const bytes_scratch *s, const block *b,
                         const uint8_t *laid, uint8_t *right)
{
    const share_operand *o = b->of->o;
    const share_span *span = b->of->span;
    const size_t strip = sherd__bytes_laid(CHECKS, span->cols);
    int err = SHERD_OK;
    for (uint32_t q = 0; q < d->p.primes_len; q++)
        for (uint32_t j = 0; j < o->terms && !err; j++) {
            const sherd__bytes_product x = {
                .p = d->p.primes[q],
                .n = b->rows,
                .k = b->cols,
                .m = CHECKS,
                .a = term_of(s, o, q, j),
                .a_ld = b->drawn.left ? 0 : RIGHT_COLS,
                .b = laid + q * strip + b->col * TILE,
                .out = right + (((size_t)q * o->terms + j) * span->rows + b->row) * CHECKS,
                .ld = CHECKS,
                .add = b->col > 0,
            };
            err = sherd__bytes_multiply(&x, NULL);
        }
    return err;
}

/* Turns the left operand's [q][term][rows][v] into [q][v][term][rows], signed. */
static int turn(const share *d, const share_operand *o, size_t rows, int8_t *x)
{
    const size_t part = o->terms * rows * CHECKS;
    uint8_t *copy = sherd__share_secret(part, 1, 1, 1);
    if (!copy) return SHERD_ENOMEM;
    for (uint32_t q = 0; q < d->p.primes_len; q++, x += part) {
        memcpy(copy, x, part);
        for (size_t i = 0; i < o->terms * rows; i++)
            for (size_t v = 0; v < CHECKS; v++)
                x[v * o->terms * rows + i] = share_bytes_signed(copy[i * CHECKS + v],
                                                                d->p.primes[q]);
    }
    sherd__share_forget(copy);
    return SHERD_OK;
}

/* --- shares ---------------------------------------------------------------------------------- */

/* Sums a block of A into shares: the tiles of a strip follow each other in both. */
static void encode_left(const share *d, const bytes_scratch *s, const block *b,
                        uint8_t *const *shares)
{
    const share_operand *o = b->of->o;
    const size_t tiles = sherd__pieces(b->of->span->cols, STEP),
                 n = sherd__pieces(b->cols, STEP) * LEN;
    const uint8_t *in[SHERD__LCC_BLOCKS_MAX];
    uint8_t *out[SHERD__LCC_SHARES_MAX];
    for (uint32_t q = 0; q < d->p.primes_len; q++)
        for (size_t i = 0; i < sherd__pieces(b->rows, TILE); i++) {
            size_t strip = b->row / TILE + i;
            size_t at = ((strip * d->p.primes_len + q) * tiles + b->col / STEP) * LEN;
            for (uint32_t j = 0; j < o->terms; j++) in[j] = term_of(s, o, q, j) + i * n;
            for (uint32_t k = 0; k < d->p.code.shares; k++)
                out[k] = shares[k] ? shares[k] + at : NULL;
            sherd__bytes_combine(o->w_bytes[q], d->p.code.shares, o->terms, d->p.primes[q], false,
                                 in, n, out);
        }
}

/* Lays a strip of 16 columns of a block out: one tile for each term, from `to` on. */
static void lay_right(const bytes_scratch *s, const block *b, uint32_t q, size_t strip,
                      uint8_t *const *to)
{
    const share_operand *o = b->of->o;
    for (uint32_t j = 0; j < o->terms; j++)
        sherd__bytes_lay_columns((const int8_t *)term_of(s, o, q, j) + strip * TILE, RIGHT_ROWS,
                                 TILE, RIGHT_COLS, to[j]);
}

static void encode_right(const share *d, const bytes_scratch *s, const block *b,
                         uint8_t *const *shares)
{
    const share_operand *o = b->of->o;
    const size_t tiles = sherd__pieces(b->of->span->rows, STEP);
    uint8_t laid[SHERD__LCC_BLOCKS_MAX][LEN], *in[SHERD__LCC_BLOCKS_MAX];
    uint8_t *out[SHERD__LCC_SHARES_MAX];
    for (uint32_t j = 0; j < o->terms; j++) in[j] = laid[j];
    for (uint32_t q = 0; q < d->p.primes_len; q++)
        for (size_t i = 0; i < sherd__pieces(b->cols, TILE); i++) {
            size_t strip = b->col / TILE + i;
            size_t at = ((strip * d->p.primes_len + q) * tiles + b->row / STEP) * LEN;
            lay_right(s, b, q, i, in);
            for (uint32_t k = 0; k < d->p.code.shares; k++)
                out[k] = shares[k] ? shares[k] + at : NULL;
            sherd__bytes_combine(o->w_bytes[q], d->p.code.shares, o->terms, d->p.primes[q], true,
                                 (const uint8_t *const *)in, LEN, out);
        }
    sherd__wipe(laid, o->terms * sizeof laid[0]);
}

static int pass_block(const share *d, const block *b, uint8_t *const *out, const share_probe *probe,
                      sherd__binding_hash *h)
{
    bytes_scratch *s = &d->bytes->scratch;
    int err = make_terms(d, s, b, h);
    if (err) return err;
    if (probe && probe->left) project_left(d, s, b, probe->r);
    if (probe && probe->right) err = project_right(d, s, b, probe->s, probe->right);
    if (!err && out && b->drawn.left) encode_left(d, s, b, out);
    if (!err && out && !b->drawn.left) encode_right(d, s, b, out);
    return err;
}

static void scratch_close(bytes_scratch *s)
{
    sherd__share_forget(s->data);
    sherd__share_forget(s->term);
    sherd__share_forget(s->sums);
    *s = (bytes_scratch){ 0 };
}

static int scratch_open(const share *d, bytes_scratch *s)
{
    const size_t terms = d->a.terms;
    if (s->data) return SHERD_OK;
    s->term = sherd__share_secret(d->p.primes_len, terms, AREA, 1);
    s->sums = sherd__share_secret(d->p.primes_len * CHECKS, terms, LEFT_COLS, sizeof *s->sums);
    s->data = sherd__share_secret(d->p.code.blocks, AREA, 1, sizeof *s->data);
    if (s->data && s->term && s->sums) return SHERD_OK;
    scratch_close(s);
    return SHERD_ENOMEM;
}

/* Binds what was read: of B each chunk of columns, of A and D the span. */
static int hold(const share_operand *o, size_t run, sherd__binding_hash *h)
{
    return o->binding ? sherd__binding_hold(o->binding, run, h) : SHERD_OK;
}

int sherd__share_bytes_pass(const share *d, const share_source *of, uint8_t *const *out,
                            const share_probe *probe)
{
    const share_span *span = of->span;
    const bool left = of->o == &d->a, chunks = !left && !d->transposed;
    const size_t high = left ? LEFT_ROWS : RIGHT_ROWS;
    const size_t wide = block_cols(d, left);
    const size_t sums = d->p.primes_len * CHECKS * of->o->terms * LEFT_COLS;
    bytes_scratch *s = &d->bytes->scratch;
    sherd__binding_hash hash = { 0 };
    int err = scratch_open(d, s);
    for (size_t col = 0; col < span->cols && !err; col += wide) {
        if (probe && probe->left) memset(s->sums, 0, sums * sizeof *s->sums);
        for (size_t row = 0; row < span->rows && !err; row += high) {
            const block b = block_of(of, left, row, col, wide);
            err = pass_block(d, &b, out, probe, &hash);
        }
        if (!err && probe && probe->left)
            settle_left(d, s, of, col, sherd__least(wide, span->cols - col), probe->left);
        if (!err && chunks) err = hold(of->o, span->run + col / wide, &hash);
    }
    if (!err && !chunks) err = hold(of->o, span->run, &hash);
    if (!err && probe && probe->right && left) err = turn(d, of->o, span->rows, probe->right);
    return err;
}

/* --- chunks of B ----------------------------------------------------------------------------- */

size_t sherd__share_bytes_runs(const share *d)
{
    return d->depth ? sherd__pieces(d->tile_cols, d->bytes->loop_cols) : 0;
}

void sherd__share_bytes_loop_size(share *d)
{
    share_bytes *y = d->bytes;
    size_t strip = sherd__share_bytes_laid(d, TILE, d->depth) * d->b.terms;
    y->loop_cols = strip * (RIGHT_COLS / TILE) * 4 > CACHE_BYTES ? TILE : RIGHT_COLS;
    y->chunk_len = strip * (y->loop_cols / TILE);
    size_t chunks = CACHE_BYTES / (y->chunk_len ? y->chunk_len : 1);
    y->chunks = chunks < 4 ? 4 : chunks > BYTES_CHUNKS ? BYTES_CHUNKS : (uint32_t)chunks;
}

/* Makes the terms of a chunk: [term][strip][q][tile], laid out. */
static int fill_chunk(share *d, bytes_chunk *c, uint32_t tile, size_t index)
{
    share_bytes *y = d->bytes;
    const share_span span = sherd__share_span_b(d, tile);
    const share_source of = { &d->b, d->loop.masks, &span };
    const size_t part = sherd__bytes_laid(TILE, d->depth), each = y->chunk_len / d->b.terms;
    uint8_t *to[SHERD__LCC_BLOCKS_MAX];
    sherd__binding_hash hash = { 0 };
    c->used = 0;
    if (!c->terms && !(c->terms = sherd__share_secret(y->chunk_len, 1, 1, 1))) return SHERD_ENOMEM;
    int err = scratch_open(d, &y->loop_scratch);
    for (size_t row = 0; row < d->depth && !err; row += RIGHT_ROWS) {
        const block b = block_of(&of, false, row, index * y->loop_cols, y->loop_cols);
        err = make_terms(d, &y->loop_scratch, &b, &hash);
        for (uint32_t q = 0; q < d->p.primes_len && !err; q++)
            for (size_t i = 0; i < sherd__pieces(b.cols, TILE); i++) {
                for (uint32_t j = 0; j < d->b.terms; j++)
                    to[j] = c->terms + j * each + (i * d->p.primes_len + q) * part +
                            row / STEP * LEN;
                lay_right(&y->loop_scratch, &b, q, i, to);
            }
    }
    if (!err) err = hold(&d->b, span.run + index, &hash);
    if (err) return err;
    c->tile = tile;
    c->index = index;
    c->used = ++y->clock;
    return SHERD_OK;
}

/* Returns a chunk: a cached one, or a new one that replaces the least recently used. */
static int chunk_of(share *d, uint32_t tile, size_t index, bytes_chunk **out)
{
    share_bytes *y = d->bytes;
    bytes_chunk *old = &y->chunk[0];
    for (uint32_t i = 0; i < y->chunks; i++) {
        bytes_chunk *c = &y->chunk[i];
        if (c->used && c->tile == tile && c->index == index) {
            c->used = ++y->clock;
            *out = c;
            return SHERD_OK;
        }
        if (c->used < old->used) old = c;
    }
    *out = old;
    return fill_chunk(d, old, tile, index);
}

int sherd__share_bytes_read(share *d, uint32_t slot, uint32_t tile, uint64_t offset, uint8_t *out,
                            size_t len)
{
    const share_bytes *y = d->bytes;
    const size_t part = sherd__bytes_laid(TILE, d->depth), each = y->chunk_len / d->b.terms;
    const uint8_t *in[SHERD__LCC_BLOCKS_MAX];
    while (len) {
        size_t at = (size_t)(offset % each), n = part - at % part;
        uint32_t q = (uint32_t)(at / part % d->p.primes_len);
        bytes_chunk *c;
        int err = chunk_of(d, tile, (size_t)(offset / each), &c);
        if (err) return err;
        for (uint32_t j = 0; j < d->b.terms; j++) in[j] = c->terms + j * each + at;
        if (n > len) n = len;
        sherd__bytes_combine(d->b.w_bytes[q] + (size_t)slot * d->b.terms, 1, d->b.terms,
                             d->p.primes[q], true, in, n, &out);
        offset += n;
        out += n;
        len -= n;
    }
    return SHERD_OK;
}

/* --- lifetime -------------------------------------------------------------------------------- */

int sherd__share_bytes_open(share *d)
{
    d->bytes = sherd__calloc(1, sizeof *d->bytes);
    return d->bytes ? SHERD_OK : SHERD_ENOMEM;
}

void sherd__share_bytes_forget_b(share *d)
{
    for (uint32_t i = 0; i < BYTES_CHUNKS; i++) sherd__share_forget(d->bytes->chunk[i].terms);
    memset(d->bytes->chunk, 0, sizeof d->bytes->chunk);
    scratch_close(&d->bytes->loop_scratch);
}

void sherd__share_bytes_free(share *d)
{
    if (!d->bytes) return;
    sherd__share_bytes_forget_b(d);
    scratch_close(&d->bytes->scratch);
    sherd__free(d->bytes);
    d->bytes = NULL;
}
