/*
 * Encoding: one pass over the rows of an operand makes its terms (quantised blocks and masks,
 * modulo each prime), multiplies them by check vectors and sums them into as many shares as are
 * wanted. Rows are processed in pieces that stay in cache, so that the operand is read from memory
 * once, and masks are generated where they are used. The work does not depend on the values:
 * nothing is skipped or compressed.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/wipe.h"
#include "matrix/residue.h"
#include "schemes/share/bytes.h"

/* Elements of a term that are encoded together, or the size of ROWS rows, which are multiplied by
 * check vectors together, as long as all terms and blocks fit in SCRATCH doubles (1 MB). */
#define ROOM 4096u
#define ROWS 4u
#define SCRATCH 131072u

/* --- memory that is wiped -------------------------------------------------------------------- */

/* The offset and the length of the allocation are stored before each block; the block is aligned
 * for vectors of 64 bytes. */
#define LINE 64u
#define HEAD 16u

void *sherd__share_secret(size_t a, size_t b, size_t c, size_t size)
{
    size_t len;
    if (!sherd__mul(a, b, &len) || !sherd__mul(len, c, &len) || !sherd__mul(len, size, &len) ||
        !sherd__add(len, HEAD + LINE, &len))
        return NULL;
    uint8_t *p = sherd__calloc(1, len);
    if (!p) return NULL;
    size_t offset = HEAD + (LINE - ((uintptr_t)p + HEAD) % LINE) % LINE;
    sherd__put_u64(p + offset - HEAD, offset);
    sherd__put_u64(p + offset - HEAD / 2, len);
    return p + offset;
}

void sherd__share_forget(void *secret)
{
    if (!secret) return;
    uint8_t *at = secret, *p = at - (size_t)sherd__get_u64(at - HEAD);
    sherd__wipe(p, (size_t)sherd__get_u64(at - HEAD / 2));
    sherd__free(p);
}

static size_t room_for(const share *d, size_t cols)
{
    size_t most = SCRATCH / (2 * (size_t)d->p.code.blocks + d->p.code.masks);
    size_t room = cols > ROOM / ROWS ? ROWS * cols : ROOM;
    if (room > most) room = most;
    if (room < cols) room = cols;
    return (room + 7) / 8 * 8; /* terms are aligned, too */
}

int sherd__share_scratch(const share *d, share_scratch *s, size_t cols)
{
    size_t room = room_for(d, cols), k = d->p.code.blocks, t = d->p.code.masks;
    const sherd__windows *w = d->a.windows;
    if (w && !s->laid) {
        s->laid = sherd__share_secret(w->wide, w->row, 1, sizeof *s->laid);
        if (!s->laid) return SHERD_ENOMEM;
    }
    if (s->data && s->room >= room) return SHERD_OK;
    sherd__share_forget(s->data);
    s->data = sherd__share_secret(room, 2 * k + t, 1, sizeof *s->data);
    if (!s->data) return SHERD_ENOMEM;
    s->term = s->data + room * k;
    s->room = room;
    return SHERD_OK;
}

void sherd__share_scratch_free(share_scratch *s)
{
    sherd__share_forget(s->data);
    sherd__share_forget(s->laid);
    *s = (share_scratch){ 0 };
}

/* --- one pass -------------------------------------------------------------------------------- */

/* Adds one row of every block at a time: the hash must not depend on how many are read together. */
static int bind(const share_scratch *s, const share_operand *o, const share_span *span, size_t row,
                size_t rows, sherd__binding_hash *h)
{
    int err = SHERD_OK;
    for (size_t i = 0; i < rows && o->binding && !err; i++) {
        for (size_t j = 0; j < o->blocks && !err; j++)
            err = sherd__binding_add(o->binding, h, s->data + j * s->room + i * span->cols,
                                     span->cols);
        size_t end = row + i + 1;
        if (err) break;
        if (end % o->run_rows == 0 || end == span->rows)
            err = sherd__binding_hold(o->binding, span->run + (end - 1) / o->run_rows, h);
    }
    return err;
}

/* Reads one row of blocks that are ranges of columns. */
static void load_columns(share_scratch *s, const share_operand *o, const share_span *span,
                         size_t row, size_t to)
{
    size_t at = 0, from = span->from + span->at + row;
    for (size_t j = 0; j < o->blocks; j++, at += span->block_cols) {
        double *out = s->data + j * s->room + to * span->cols;
        size_t left = at < o->v.cols ? o->v.cols - at : 0;
        size_t n = left < span->cols ? left : span->cols;
        if (n) sherd__fixed_row(&o->fixed, o->v, from, at, n, out);
        memset(out + n, 0, (span->cols - n) * sizeof *out);
    }
}

int sherd__share_load(share_scratch *s, const share_operand *o, const share_span *span, size_t row,
                      size_t rows, sherd__binding_hash *h)
{
    size_t from[SHERD__LCC_BLOCKS_MAX];
    double *to[SHERD__LCC_BLOCKS_MAX];
    for (size_t i = 0; i < rows; i++) {
        size_t count = 0;
        if (span->block_cols) {
            load_columns(s, o, span, row + i, i);
            continue;
        }
        for (size_t j = 0; j < o->blocks; j++) {
            double *out = s->data + j * s->room + i * span->cols;
            size_t at = j * span->height + span->at + row + i;
            if (at >= span->limit) {
                memset(out, 0, span->cols * sizeof *out);
                continue;
            }
            from[count] = span->from + at;
            to[count++] = out;
        }
        sherd__fixed_turns(&o->fixed, o->v, from, count, span->col, span->cols, to);
    }
    return bind(s, o, span, row, rows, h);
}

int sherd__share_terms(const share *d, share_scratch *s, const share_piece *piece,
                       const double **term)
{
    const share_operand *o = piece->of->o;
    const share_span *span = piece->of->span;
    uint32_t p = d->p.primes[piece->q];
    bool small = o->fixed.bound <= (p - 1) / 2;
    for (uint32_t j = 0; j < o->blocks; j++) {
        const double *data = s->data + j * s->room;
        if (!small)
            sherd__residue_from_f64(data, piece->rows * span->cols, p, s->term + j * s->room);
        term[j] = small ? data : s->term + j * s->room;
    }
    for (uint32_t t = 0; t < o->masks; t++) {
        double *to = s->term + (o->blocks + t) * s->room;
        term[o->blocks + t] = to;
        const sherd__mask_id id = { o->role, t, piece->q, p, o->v.cols };
        int err = sherd__masks_part(piece->of->masks, &id,
                                    (sherd__mask_part){ span->row + piece->row, piece->rows,
                                                        span->col, span->cols },
                                    to, span->cols);
        if (err) return err;
    }
    return SHERD_OK;
}

/* Returns true if quantised values are their own residues, for every prime. */
static bool all_small(const share *d, const share_operand *o)
{
    bool small = true;
    for (uint32_t q = 0; q < d->p.primes_len; q++)
        small = small && o->fixed.bound <= (d->p.primes[q] - 1) / 2;
    return small;
}

/* Adds rT*term of these rows to that of earlier rows. since: for each term, see sherd__fvp_left. A
 * block that is the same for all primes is processed once, with the first prime. */
static void project_left(const share *d, const share_piece *piece, const double *const *term,
                         const share_probe *probe, size_t (*since)[SHERD__LCC_BLOCKS_MAX])
{
    const share_operand *o = piece->of->o;
    const share_span *span = piece->of->span;
    const size_t cols = span->cols;
    const uint32_t q = piece->q;
    bool same = all_small(d, o);
    for (uint32_t j = 0; j < o->terms; j++) {
        sherd__fvp_sum sum[4];
        uint32_t first = q, end = q + 1;
        if (same && j < o->blocks) end = q == 0 ? d->p.primes_len : q;
        for (uint32_t i = first; i < end; i++) {
            const double *r = (const double *)probe->r + (size_t)i * TRIALS * span->rows +
                              piece->row;
            double *acc = (double *)probe->left + ((size_t)i * TRIALS * o->terms + j) * cols;
            sum[i - first] = (sherd__fvp_sum){ d->p.primes[i],
                                               { r, r + span->rows },
                                               { acc, acc + (size_t)o->terms * cols } };
        }
        sherd__fvp_left_many(term[j], piece->rows, cols, cols, sum, end - first, &since[q][j]);
    }
}

/* Computes term*s. The trials of a prime are consecutive. */
static void project_right(const share *d, share_scratch *sc, const share_piece *piece,
                          const double *const *term, const share_probe *probe)
{
    const share_operand *o = piece->of->o;
    const share_span *span = piece->of->span;
    const sherd__windows *w = o->windows;
    const uint32_t q = piece->q;
    const size_t trial = (size_t)q * TRIALS, cols = w ? w->row : span->cols;
    const size_t each = w ? w->count : 1;
    const double *s = (const double *)probe->s + trial * cols;
    double *right = probe->right;
    const double *const ss[] = { s, s + cols };
    for (uint32_t j = 0; j < o->terms; j++) {
        size_t at = trial * o->terms + j, next = at + o->terms;
        double *const out[] = { right + (at * span->rows + piece->row) * each,
                                right + (next * span->rows + piece->row) * each };
        if (w) sherd__share_windows_right(d, sc, term[j], piece->rows, ss, d->p.primes[q], out);
        else sherd__fvp_right(term[j], piece->rows, cols, cols, ss, d->p.primes[q], out);
    }
}

/* Reduces the sums to canonical form after the last rows. */
static void settle(const share *d, const share_operand *o, size_t cols, double *left)
{
    size_t len = TRIALS * o->terms * cols;
    for (uint32_t q = 0; q < d->p.primes_len; q++, left += len)
        sherd__residue_from_f64(left, len, d->p.primes[q], left);
}

static void encode(const share *d, const share_piece *piece, const double *const *term,
                   uint8_t *const *shares)
{
    const share_operand *o = piece->of->o;
    const share_span *span = piece->of->span;
    const uint32_t q = piece->q;
    uint8_t *out[SHERD__LCC_SHARES_MAX];
    size_t at = (q * span->rows + piece->row) * span->cols * SHERD__RESIDUE_BYTES;
    for (uint32_t i = 0; i < d->p.code.shares; i++) out[i] = shares[i] ? shares[i] + at : NULL;
    sherd__lcc_encode(o->w[q], d->p.code.shares, o->terms, d->p.primes[q], term,
                      piece->rows * span->cols, out);
}

int sherd__share_pass(const share *d, share_scratch *s, const share_source *of, uint8_t *const *out,
                      const share_probe *probe)
{
    if (d->bytes) return sherd__share_bytes_pass(d, of, out, probe);
    const share_span *span = of->span;
    const double *term[SHERD__LCC_BLOCKS_MAX];
    int err = sherd__share_scratch(d, s, span->cols);
    size_t step = span->cols ? s->room / span->cols : span->rows;
    size_t since[4][SHERD__LCC_BLOCKS_MAX] = { { 0 } };
    sherd__binding_hash hash = { 0 };
    if (step > ROWS) step -= step % ROWS;
    for (size_t row = 0; row < span->rows && !err; row += step) {
        size_t rows = span->rows - row < step ? span->rows - row : step;
        err = sherd__share_load(s, of->o, span, row, rows, &hash);
        for (uint32_t q = 0; q < d->p.primes_len && !err; q++) {
            const share_piece piece = { of, row, rows, q };
            err = sherd__share_terms(d, s, &piece, term);
            if (err) break;
            if (probe && probe->left) project_left(d, &piece, term, probe, since);
            if (probe && probe->right) project_right(d, s, &piece, term, probe);
            if (out) encode(d, &piece, term, out);
        }
    }
    if (!err && probe && probe->left) settle(d, of->o, span->cols, probe->left);
    return err;
}
