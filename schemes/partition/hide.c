/*
 * Hiding of `permute` and `plain`: a cell's rows of A are gathered into one dense panel, cut into
 * the groups, stripped of zero rows, and written in the narrowest element kind. While a row of A is
 * processed, its part of the check (rT*U)*(V*s) is added up, so that the answer can be checked
 * without reading A again.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "crypto/freivalds.h"
#include "matrix/view.h"
#include "schemes/partition/internal.h"

/* --- elements -------------------------------------------------------------------------------- */

#define NARROW(type)                                                                               \
    do {                                                                                           \
        for (size_t j = 0; j < n; j++) {                                                           \
            type v = (type)x[j];                                                                   \
            memcpy(out + j * sizeof v, &v, sizeof v);                                              \
        }                                                                                          \
    } while (0)

/* The element kind must hold the values; little-endian machines only (asserted at build). */
void sherd__partition_narrow(uint8_t dtype, const double *x, size_t n, uint8_t *out)
{
    switch (dtype) {
    case SHERD_F32: NARROW(float); break;
    case SHERD_U8: NARROW(uint8_t); break;
    case SHERD_I8: NARROW(int8_t); break;
    case SHERD_U16: NARROW(uint16_t); break;
    case SHERD_I16: NARROW(int16_t); break;
    case SHERD_U32: NARROW(uint32_t); break;
    case SHERD_I32: NARROW(int32_t); break;
    case SHERD_I64: NARROW(int64_t); break;
    default: memcpy(out, x, n * sizeof *x);
    }
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bodies are little-endian memory");

static bool all_zero(const double *x, size_t n)
{
    for (size_t j = 0; j < n; j++)
        if (x[j] != 0) return false;
    return true;
}

/* --- a cell ---------------------------------------------------------------------------------- */

void sherd__partition_row_a(const partition *d, const partition_slot *s, size_t r, uint32_t first,
                            uint32_t len, double *out)
{
    const uint32_t *cols = s->cols ? s->cols + first : NULL;
    if (cols && d->p.exact) sherd__fixed_gather(&d->p.fixed_a, d->p.a, r, cols, len, out);
    else if (cols) sherd__view_gather_f64(d->p.a, r, cols, len, out);
    else if (d->p.exact) sherd__fixed_row(&d->p.fixed_a, d->p.a, r, first, len, out);
    else sherd__view_row_f64(d->p.a, r, first, len, out);
}

/* Returns whether the slot's rows are sent as they are in A. */
static bool as_stored(const partition *d, const partition_slot *s)
{
    return !d->p.exact && !s->cols && !d->p.rows.row;
}

int sherd__partition_gather(partition *d, const partition_slot *s, size_t first, size_t rows)
{
    const sherd_view part = as_stored(d, s)
                                ? sherd_view_sub(d->p.a, s->row0 + first, rows, 0, s->ncols)
                                : (sherd_view){ .data = NULL };
    d->gathered = part.data ? sherd__view_borrow_f64(part, &d->gathered_ld) : NULL;
    if (d->gathered) return SHERD_OK;
    d->gathered = d->panel;
    d->gathered_ld = s->ncols;
    if (!d->p.rows.row) {
        for (size_t t = 0; t < rows; t++)
            sherd__partition_row_a(d, s, s->row0 + first + t, 0, s->ncols, d->panel + t * s->ncols);
        return SHERD_OK;
    }
    for (uint32_t q = 0; q < s->ngroups; q++) {
        const partition_group *g = &s->groups[q];
        int err;
        const uint32_t *order = sherd__partition_order(d, g, d->rowbuf, &err);
        if (err) return err;
        for (size_t t = 0; t < rows; t++)
            sherd__partition_row_a(d, s, order[first + t], g->first, g->len,
                                   d->panel + t * s->ncols + g->first);
    }
    return SHERD_OK;
}

/* Records that the cell's answer has a row for row `r` of C, made of x, a group's values of A.
 * r's entry holds x*(V*s) until r is drawn (weigh_rows). */
static void note_row(partition *d, partition_cell *cell, const partition_group *g, size_t r,
                     const double *x)
{
    const partition_probe *p = cell->probe;
    const uint32_t first = g->first, len = g->len;
    size_t i = cell->rows++;
    cell->row[i] = (uint32_t)r;
    if (d->p.primes_len) {
        cell->dot[i] = 0;
        for (uint32_t j = 0; j < len; j++) {
            sherd__f127 product = sherd__f127_mul(sherd__f127_from((int64_t)x[j]),
                                                  p->vs127[first + j]);
            cell->dot[i] = sherd__f127_add(cell->dot[i], product);
        }
        return;
    }
    if (d->p.exact) {
        /* Quantised values are integers: the dot product cannot reject them. */
        if (sherd__f61_dot_f64(x, p->vs61 + first, len, &cell->r61[i])) cell->r61[i] = 0;
        return;
    }
    double mask = 1, sum = 0, abs = 0;
    if (!d->p.finite && sherd__fv_mask_rows(x, 1, len, len, &mask)) {
        cell->r[i] = NAN;
        return;
    }
    if (len >= 16) {
        sum = sherd__fv_dot_f64(x, p->vs + first, len, NULL);
        (void)sherd__fv_dot_f64(x, p->abs_vs + first, len, &abs);
    } else { /* a call would cost more than the sum */
        for (uint32_t j = 0; j < len; j++) {
            sum += x[j] * p->vs[first + j];
            abs += fabs(x[j]) * p->abs_vs[first + j];
        }
    }
    cell->r[i] = sum;
    cell->tolerance += abs;
}

/* Draws r, now that the number of rows is known, and adds up (rT*U)*(V*s). */
static int weigh_rows(partition *d, partition_cell *cell)
{
    if (d->p.exact) {
        uint64_t *r = sherd__alloc(cell->rows * sizeof *r);
        if (!r) return SHERD_ENOMEM;
        sherd__f61_draw(&d->p.entropy, cell->rows, r);
        if (cell->dot)
            for (size_t i = 0; i < cell->rows; i++)
                cell->ru_vs127 = sherd__f127_add(cell->ru_vs127,
                                                 sherd__f127_mul(r[i], cell->dot[i]));
        else cell->ru_vs61 = sherd__f61_dot(r, cell->r61, cell->rows);
        sherd__free(cell->dot);
        cell->dot = NULL;
        sherd__free(cell->r61);
        cell->r61 = r;
        return SHERD_OK;
    }
    double *r = sherd__alloc(cell->rows * sizeof *r);
    if (!r) return SHERD_ENOMEM;
    sherd__fv_weights(&d->p.entropy, cell->rows, r);
    for (size_t i = 0; i < cell->rows; i++) {
        if (isnan(cell->r[i])) r[i] = 0; /* a row with NaN or infinity cannot be projected */
        else cell->ru_vs += r[i] * cell->r[i];
    }
    sherd__free(cell->r);
    cell->r = r;
    return SHERD_OK;
}

static uint8_t *body_new(const partition *d, uint64_t len)
{
    return d->p.bodies.get ? d->p.bodies.get(d->p.bodies.ctx, len) : sherd__alloc(len);
}

static void body_free(const partition *d, uint8_t *bytes, uint64_t len)
{
    if (d->p.bodies.get && bytes) d->p.bodies.give(d->p.bodies.ctx, bytes, len);
    else sherd__free(bytes);
}

/* Makes a fragment of a body, which is freed if that fails. */
static int take_body(const partition *d, const sherd__fragment_info *info, uint8_t *bytes,
                     sherd__fragment **out)
{
    const sherd__body_memory *m = &d->p.bodies;
    int err = sherd__fragment_take(out, info, bytes, m->get ? m->give : NULL, m->ctx);
    if (err) body_free(d, bytes, info->len);
    return err;
}

static void put_group(uint8_t *bytes, uint32_t q, uint32_t rows, uint32_t len)
{
    sherd__put_u32(bytes + 8 * (size_t)q, rows);
    sherd__put_u32(bytes + 8 * (size_t)q + 4, len);
}

/* Records every row of the gathered panel that is sent, and writes table and groups of the left
 * block. bytes NULL: the block stays at the node and is made by sherd__partition_left. */
static int emit(partition *d, sherd__cell at, partition_cell *cell, partition_size *size,
                uint8_t *bytes)
{
    const partition_slot *s = &d->slots[at.slot];
    size_t first, rows = sherd__partition_rows(d, at, &first);
    partition_body body;
    if (bytes) sherd__partition_body_begin(&body, d, s, size, bytes);
    for (uint32_t q = 0; q < s->ngroups; q++) {
        const partition_group *g = &s->groups[q];
        int err;
        const uint32_t *order = sherd__partition_order(d, g, d->rowbuf, &err);
        if (err) return err;
        size_t before = cell->rows;
        for (size_t t = 0; t < rows; t++) {
            const double *x = partition_panel_row(d, t) + g->first;
            if (d->p.skip_zeros && all_zero(x, g->len)) continue;
            if (bytes) sherd__partition_body_row(&body, x, g->len);
            note_row(d, cell, g, order ? order[first + t] : s->row0 + first + t, x);
        }
        cell->count[q] = (uint32_t)(cell->rows - before);
        if (bytes) put_group(bytes, q, cell->count[q], g->len);
    }
    if (bytes) size->len = body.values; /* the last section: it ends where the body ends */
    return SHERD_OK;
}

static partition_cell *cell_new(const partition *d, const partition_slot *s, size_t rows)
{
    size_t most;
    partition_cell *cell = sherd__calloc(1, sizeof *cell);
    if (!cell || !sherd__mul(rows, s->ngroups, &most)) goto fail;
    cell->count = sherd__calloc(s->ngroups, sizeof *cell->count);
    cell->row = sherd__calloc(most, sizeof *cell->row);
    if (d->p.exact) cell->r61 = sherd__alloc(most * sizeof *cell->r61);
    else cell->r = sherd__alloc(most * sizeof *cell->r);
    if (d->p.primes_len) cell->dot = sherd__calloc(most, sizeof *cell->dot);
    if (!cell->count || !cell->row || !(cell->r || cell->r61)) goto fail;
    if (d->p.primes_len && !cell->dot) goto fail;
    return cell;
fail:
    sherd__partition_cell_free(cell);
    return NULL;
}

void sherd__partition_describe(const partition *d, sherd__cell at, size_t rows,
                               const partition_size *size, sherd__fragment_info *left,
                               sherd__fragment_info *result)
{
    *left = (sherd__fragment_info){
        .origin = SHERD__HIDDEN,
        .dtype = d->dtype_a,
        .encoding = size->encoding,
        .groups = d->slots[at.slot].ngroups,
        .rows = rows,
        .cols = size->widest,
        .len = size->len,
    };
    size_t width = partition_tile_width(d, at.tile), r = d->p.primes_len;
    *result = (sherd__fragment_info){
        .origin = SHERD__RESULT,
        .dtype = r ? SHERD__RESIDUES : SHERD_F64,
        .primes = (uint8_t)r,
        .rows = rows,
        .cols = width,
        .len = (uint64_t)rows * width * (r ? 3 * r : 8),
    };
}

/* Counts, for the report, the rows of a cell that were sent and, of `all`, those that were zero. */
static void count_rows(partition *d, uint64_t all, const partition_cell *cell, int sign)
{
    uint64_t sent = cell->rows, zero = all - sent;
    d->fragments += sign > 0 ? sent : 0 - sent;
    d->skipped += sign > 0 ? zero : 0 - zero;
    if (cell->csr) d->csr_cells += sign > 0 ? 1 : (uint64_t)-1;
}

/* Hides a cell under the current probe. The caller frees *out and *body: the bytes to send, NULL if
 * the left block stays at the node. left, result: descriptions of the blocks. The panel must not be
 * empty. */
static int make_cell(partition *d, sherd__cell at, partition_cell **out, uint8_t **body,
                     sherd__fragment_info *left, sherd__fragment_info *result)
{
    const partition_slot *s = &d->slots[at.slot];
    partition_probe **probe = partition_probe_of(d, at.slot, at.tile);
    size_t first, rows = sherd__partition_rows(d, at, &first);
    partition_size size;
    uint8_t *bytes = NULL;
    int err = *probe ? SHERD_OK : sherd__partition_probe_make(d, s, at.tile, probe);
    if (!err) err = sherd__partition_gather(d, s, first, rows);
    if (err) return err;
    partition_cell *cell = cell_new(d, s, rows);
    if (!cell) return SHERD_ENOMEM;
    cell->probe = *probe;
    cell->probe->refs++;
    sherd__partition_size(d, s, rows, &size);
    if (!d->p.left_stays && !(bytes = body_new(d, size.len))) err = SHERD_ENOMEM;
    if (!err) err = emit(d, at, cell, &size, bytes);
    if (!err) sherd__partition_describe(d, at, cell->rows, &size, left, result);
    cell->csr = size.encoding == SHERD__CSR;
    if (!err) err = weigh_rows(d, cell);
    if (err) {
        sherd__partition_cell_free(cell);
        body_free(d, bytes, size.len);
        return err;
    }
    double limit = 2 * (double)(d->k + rows + d->m) * 0x1p-52; /* 2: |r| is below 2 */
    /* The sums that are compared may overflow: |r| is below 2, and rounding adds less than as much
     * again. */
    cell->unjudged = !d->p.exact && !isfinite(4 * cell->tolerance);
    cell->tolerance = cell->tolerance * limit + sherd__fv_underflow(rows, d->k, d->m);
    *out = cell;
    *body = bytes;
    return SHERD_OK;
}

int sherd__partition_hide(void *ctx, sherd__cell at, sherd__cell_work *out)
{
    partition *d = ctx;
    const partition_slot *s = &d->slots[at.slot];
    partition_cell **keep = &d->cells[partition_index(d, at)], *cell;
    size_t first, rows = sherd__partition_rows(d, at, &first);
    sherd__fragment_info left;
    uint8_t *body;
    *out = (sherd__cell_work){ .empty = rows == 0 || s->ncols == 0 };
    if (*keep) count_rows(d, rows * s->ngroups, *keep, -1); /* hidden before, for a node now lost */
    sherd__partition_cell_free(*keep);
    *keep = NULL;
    if (out->empty) return SHERD_OK;
    int err = make_cell(d, at, &cell, &body, &left, &out->result);
    if (err) return err;
    out->empty = cell->rows == 0;
    if (out->empty) body_free(d, body, left.len);
    else if (body) err = take_body(d, &left, body, &out->left);
    if (err) {
        sherd__partition_cell_free(cell);
        return err;
    }
    count_rows(d, rows * s->ngroups, cell, 1);
    *keep = cell;
    return SHERD_OK;
}

/* Writes a left block of a plain slot from the gathered panel. */
static int left_body(partition *d, const partition_slot *s, size_t rows, partition_size *size,
                     const sherd__fragment_info *info, sherd__fragment **out)
{
    partition_body body;
    uint8_t *bytes = body_new(d, size->len);
    if (!bytes) return SHERD_ENOMEM;
    sherd__partition_body_begin(&body, d, s, size, bytes);
    for (size_t t = 0; t < rows; t++)
        sherd__partition_body_row(&body, partition_panel_row(d, t), s->ncols);
    put_group(bytes, 0, (uint32_t)rows, s->ncols);
    return take_body(d, info, bytes, out);
}

int sherd__partition_left(void *ctx, uint32_t slot, uint32_t panel, sherd__fragment **out)
{
    partition *d = ctx;
    const partition_slot *s = &d->slots[slot];
    const sherd__cell at = { slot, 0, panel };
    size_t first, rows = sherd__partition_rows(d, at, &first);
    sherd__fragment_info left, result;
    partition_size size;
    *out = NULL;
    if (rows == 0 || s->ncols == 0) return SHERD_OK;
    int err = d->csr ? sherd__partition_gather(d, s, first, rows) : SHERD_OK;
    if (err) return err;
    sherd__partition_size(d, s, rows, &size);
    sherd__partition_describe(d, at, rows, &size, &left, &result);
    return size.encoding == SHERD__DENSE ? sherd__partition_left_rows(d, slot, first, &left, out)
                                         : left_body(d, s, rows, &size, &left, out);
}

int sherd__partition_renew(partition *d, sherd__cell at)
{
    partition_cell **keep = &d->cells[partition_index(d, at)], *cell;
    sherd__fragment_info left, result;
    uint8_t *body;
    if ((*keep)->probe == *partition_probe_of(d, at.slot, at.tile)) return SHERD_OK;
    int err = make_cell(d, at, &cell, &body, &left, &result);
    if (err) return err;
    body_free(d, body, left.len);
    sherd__partition_cell_free(*keep);
    *keep = cell;
    return SHERD_OK;
}
