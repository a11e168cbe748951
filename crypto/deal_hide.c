/*
 * Hiding of `permute` and `plain`: a cell's rows of A are gathered into one dense panel, cut into
 * the groups, freed of zero rows, and written in the narrowest element kind; B's rows are shuffled
 * while they are sent. While a row of A passes, its part of the check (rT*U)*(V*s) is added up, so
 * that the answer can be judged without reading A again.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/deal_internal.h"
#include "crypto/fragment_make.h"
#include "crypto/freivalds.h"
#include "matrix/view.h"

/* --- elements -------------------------------------------------------------------------------- */

#define NARROW(type)                                                                               \
    do {                                                                                           \
        for (size_t j = 0; j < n; j++) {                                                           \
            type v = (type)x[j];                                                                   \
            memcpy(out + j * sizeof v, &v, sizeof v);                                              \
        }                                                                                          \
    } while (0)

/* Values that the element kind is known to hold; little-endian machines only (asserted at
 * build). */
void sherd__deal_narrow(uint8_t dtype, const double *x, size_t n, uint8_t *out)
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

/* --- V*s of the resident block --------------------------------------------------------------- */

static deal_probe *probe_new(const deal *d, const deal_slot *s, size_t width)
{
    deal_probe *p = sherd__calloc(1, sizeof *p);
    bool wide = d->p.primes_len > 0, ok;
    if (!p) return NULL;
    p->refs = 1;
    p->width = width;
    if (d->p.exact) {
        p->s61 = sherd__calloc(width, sizeof *p->s61);
        if (wide) p->vs127 = sherd__calloc(s->ncols, sizeof *p->vs127);
        else p->vs61 = sherd__calloc(s->ncols, sizeof *p->vs61);
        ok = p->s61 && (p->vs61 || p->vs127);
    } else {
        p->s = sherd__calloc(width, sizeof *p->s);
        p->vs = sherd__calloc(s->ncols, sizeof *p->vs);
        p->abs_vs = sherd__calloc(s->ncols, sizeof *p->abs_vs);
        if (!d->p.finite) p->taint = sherd__calloc(s->ngroups, width);
        ok = p->s && p->vs && p->abs_vs && (d->p.finite || p->taint);
    }
    if (ok) return p;
    sherd__deal_probe_drop(p);
    return NULL;
}

/* Row `at` of the slot's resident block, columns of the tile, as the node is given it. */
static int shuffled_row(deal *d, const deal_slot *s, uint32_t q, uint32_t at, uint32_t tile,
                        double *line, uint32_t *scratch, const uint32_t **perm, double *out)
{
    size_t from = (size_t)tile * d->p.tile_cols, width = deal_tile_width(d, tile);
    size_t c = s->cols ? s->cols[at] : at;
    int err = SHERD_OK;
    if (at == s->groups[q].first || !*perm)
        *perm = sherd__deal_perm(d, &s->groups[q], scratch, &err);
    if (err) return err;
    sherd__deal_row_b(d, c, line);
    if (!*perm) memcpy(out, line + from, width * sizeof *out);
    else
        for (size_t j = 0; j < width; j++) out[j] = line[(*perm)[from + j]];
    return SHERD_OK;
}

/* x*s over whole numbers, modulo 2^127-1. */
static sherd__f127 wide_dot(const double *x, const uint64_t *s, size_t n)
{
    sherd__f127 sum = 0;
    for (size_t j = 0; j < n; j++) /* each product stays below 2^114 */
        sum = sherd__f127_add(sum, sherd__f127_from((sherd__i128)(int64_t)x[j] * (int64_t)s[j]));
    return sum;
}

/* Notes which columns of the group's rows of B hold NaN or infinity: the sums of such a column are
 * not finite, and say nothing of the others. */
static int taint_group(deal *d, const deal_slot *s, uint32_t q, uint32_t tile, deal_probe *p)
{
    const deal_group *g = &s->groups[q];
    const uint32_t *perm = NULL;
    double *row = d->line + d->line_len;
    for (uint32_t at = g->first; at < g->first + g->len; at++) {
        int err = shuffled_row(d, s, q, at, tile, d->line, d->colbuf, &perm, row);
        if (err) return err;
        for (size_t j = 0; j < p->width; j++)
            if (!isfinite(row[j])) p->taint[q * p->width + j] = 1;
    }
    return SHERD_OK;
}

static int probe_group(deal *d, const deal_slot *s, uint32_t q, uint32_t tile, deal_probe *p)
{
    const deal_group *g = &s->groups[q];
    const uint32_t *perm = NULL;
    double *row = d->line + d->line_len, *masked = d->line + 2 * d->line_len;
    const double *weights = p->s;
    int err = p->taint ? taint_group(d, s, q, tile, p) : SHERD_OK;
    if (p->taint) {
        for (size_t j = 0; j < p->width; j++)
            masked[j] = p->taint[q * p->width + j] ? 0 : p->s[j];
        weights = masked;
    }
    for (uint32_t at = g->first; at < g->first + g->len && !err; at++) {
        err = shuffled_row(d, s, q, at, tile, d->line, d->colbuf, &perm, row);
        if (err) break;
        if (p->vs127) p->vs127[at] = wide_dot(row, p->s61, p->width);
        else if (p->vs61)
            err = sherd__f61_right(row, 1, p->width, p->width, p->s61, &p->vs61[at]);
        else
            sherd__fv_right_f64(row, 1, p->width, p->width, weights, &p->vs[at], &p->abs_vs[at]);
    }
    return err;
}

/* Draws s and computes V*s: one pass over the slot's rows of B. */
static int make_probe(deal *d, const deal_slot *s, uint32_t tile, deal_probe **out)
{
    deal_probe *p = probe_new(d, s, deal_tile_width(d, tile));
    if (!p) return SHERD_ENOMEM;
    if (d->p.exact) sherd__f61_draw(&d->p.entropy, p->width, p->s61);
    else sherd__fv_weights(&d->p.entropy, p->width, p->s);
    int err = SHERD_OK;
    for (uint32_t q = 0; q < s->ngroups && !err; q++) err = probe_group(d, s, q, tile, p);
    if (err) sherd__deal_probe_drop(p);
    else *out = p;
    return err;
}

/* --- a cell ---------------------------------------------------------------------------------- */

/* Reads row `r` of A, columns [first, first+len) of the slot. */
static void gather(const deal *d, const deal_slot *s, size_t r, uint32_t first, uint32_t len,
                   double *out)
{
    const uint32_t *cols = s->cols ? s->cols + first : NULL;
    if (cols && d->p.exact) sherd__fixed_gather(&d->p.fixed_a, d->p.a, r, cols, len, out);
    else if (cols) sherd__view_gather_f64(d->p.a, r, cols, len, out);
    else if (d->p.exact) sherd__fixed_row(&d->p.fixed_a, d->p.a, r, first, len, out);
    else sherd__view_row_f64(d->p.a, r, first, len, out);
}

int sherd__deal_gather(deal *d, const deal_slot *s, size_t first, size_t rows)
{
    if (!d->p.rows.row) {
        for (size_t t = 0; t < rows; t++)
            gather(d, s, s->row0 + first + t, 0, s->ncols, d->panel + t * s->ncols);
        return SHERD_OK;
    }
    for (uint32_t q = 0; q < s->ngroups; q++) {
        const deal_group *g = &s->groups[q];
        int err;
        const uint32_t *order = sherd__deal_order(d, g, d->rowbuf, &err);
        if (err) return err;
        for (size_t t = 0; t < rows; t++)
            gather(d, s, order[first + t], g->first, g->len, d->panel + t * s->ncols + g->first);
    }
    return SHERD_OK;
}

/* Notes that the cell's answer has a row for row `r` of C, made of x (len values of A): what
 * x*(V*s) is stands in r's place until r is drawn (weigh_rows). */
static void note_row(deal *d, deal_cell *cell, const deal_probe *p, size_t r, const double *x,
                     uint32_t first, uint32_t len)
{
    size_t i = cell->rows++;
    cell->row[i] = (uint32_t)r;
    if (d->p.primes_len) {
        cell->dot[i] = 0;
        for (uint32_t j = 0; j < len; j++) {
            sherd__f127 product =
                sherd__f127_mul(sherd__f127_from((int64_t)x[j]), p->vs127[first + j]);
            cell->dot[i] = sherd__f127_add(cell->dot[i], product);
        }
        return;
    }
    if (d->p.exact) {
        /* Quantised values are whole numbers: the dot cannot refuse them. */
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

/* Draws r, only now that it is known how many rows there are, and adds up (rT*U)*(V*s). */
static int weigh_rows(deal *d, deal_cell *cell)
{
    if (d->p.exact) {
        uint64_t *r = sherd__alloc(cell->rows * sizeof *r);
        if (!r) return SHERD_ENOMEM;
        sherd__f61_draw(&d->p.entropy, cell->rows, r);
        if (cell->dot)
            for (size_t i = 0; i < cell->rows; i++)
                cell->ru_vs127 =
                    sherd__f127_add(cell->ru_vs127, sherd__f127_mul(r[i], cell->dot[i]));
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
        if (isnan(cell->r[i])) r[i] = 0; /* a row with NaN or infinity cannot be weighed */
        else cell->ru_vs += r[i] * cell->r[i];
    }
    sherd__free(cell->r);
    cell->r = r;
    return SHERD_OK;
}

/* Writes the table and the groups of the gathered panel, and notes every row that stays. */
static int emit(deal *d, const deal_slot *s, deal_cell *cell, size_t first, size_t rows,
                deal_size *size, uint8_t *bytes)
{
    deal_body body;
    sherd__deal_body_begin(&body, d, s, size, bytes);
    for (uint32_t q = 0; q < s->ngroups; q++) {
        const deal_group *g = &s->groups[q];
        int err;
        const uint32_t *order = sherd__deal_order(d, g, d->rowbuf, &err);
        if (err) return err;
        size_t before = cell->rows;
        for (size_t t = 0; t < rows; t++) {
            const double *x = d->panel + t * s->ncols + g->first;
            if (d->p.skip_zeros && all_zero(x, g->len)) continue;
            sherd__deal_body_row(&body, x, g->len);
            note_row(d, cell, cell->probe, order ? order[first + t] : s->row0 + first + t, x,
                     g->first, g->len);
        }
        cell->count[q] = (uint32_t)(cell->rows - before);
        sherd__put_u32(bytes + 8 * (size_t)q, cell->count[q]);
        sherd__put_u32(bytes + 8 * (size_t)q + 4, g->len);
    }
    size->len = body.values; /* the last section: it ends with the body */
    return SHERD_OK;
}

static deal_cell *cell_new(const deal *d, const deal_slot *s, size_t rows)
{
    size_t most;
    deal_cell *cell = sherd__calloc(1, sizeof *cell);
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
    sherd__deal_cell_free(cell);
    return NULL;
}

static void describe(const deal *d, const deal_slot *s, sherd__cell at, size_t rows,
                     const deal_size *size, sherd__fragment_info *left,
                     sherd__fragment_info *result)
{
    *left = (sherd__fragment_info){
        .origin = SHERD__HIDDEN, .dtype = d->dtype_a, .encoding = size->encoding,
        .groups = s->ngroups, .rows = rows, .cols = size->widest, .len = size->len,
    };
    size_t width = deal_tile_width(d, at.tile), r = d->p.primes_len;
    *result = (sherd__fragment_info){
        .origin = SHERD__RESULT, .dtype = r ? SHERD__RESIDUES : SHERD_F64, .primes = (uint8_t)r,
        .rows = rows, .cols = width, .len = (uint64_t)rows * width * (r ? 3 * r : 8),
    };
}

int sherd__deal_sizes(void *ctx, sherd__cell at, sherd__cell_sizes *out)
{
    deal *d = ctx;
    const deal_slot *s = &d->slots[at.slot];
    size_t first, rows = sherd__deal_rows(d, at, &first);
    deal_size size;
    *out = (sherd__cell_sizes){ .empty = rows == 0 || s->ncols == 0 };
    if (out->empty) return SHERD_OK;
    if (d->p.skip_zeros || d->csr) {
        int err = sherd__deal_gather(d, s, first, rows);
        if (err) return err;
        sherd__deal_measure(d, s, rows, &size);
    } else {
        sherd__deal_size(d, s, rows, &size);
    }
    out->empty = size.rows == 0;
    describe(d, s, at, size.rows, &size, &out->left, &out->result);
    return SHERD_OK;
}

/* For the report: of `all` rows of a cell some are sent, the others were zero. */
static void count_rows(deal *d, uint64_t all, const deal_cell *cell, int sign)
{
    uint64_t sent = cell->rows, zero = all - sent;
    d->fragments += sign > 0 ? sent : 0 - sent;
    d->skipped += sign > 0 ? zero : 0 - zero;
    if (cell->csr) d->csr_cells += sign > 0 ? 1 : (uint64_t)-1;
}

int sherd__deal_hide(void *ctx, sherd__cell at, sherd__cell_work *out)
{
    deal *d = ctx;
    const deal_slot *s = &d->slots[at.slot];
    deal_probe **probe = deal_probe_of(d, at.slot, at.tile);
    deal_cell **keep = &d->cells[deal_index(d, at)];
    size_t first, rows = sherd__deal_rows(d, at, &first);
    deal_size size;
    uint8_t *body = NULL;
    *out = (sherd__cell_work){ .empty = rows == 0 || s->ncols == 0 };
    if (*keep) count_rows(d, rows * s->ngroups, *keep, -1); /* hidden before, for a node now lost */
    sherd__deal_cell_free(*keep);
    *keep = NULL;
    if (out->empty) return SHERD_OK;

    int err = *probe ? SHERD_OK : make_probe(d, s, at.tile, probe);
    if (!err) err = sherd__deal_gather(d, s, first, rows);
    if (err) return err;
    deal_cell *cell = cell_new(d, s, rows);
    if (!cell) return SHERD_ENOMEM;
    cell->probe = *probe;
    cell->probe->refs++;
    sherd__fragment_info left;
    sherd__deal_size(d, s, rows, &size);
    err = (body = sherd__alloc(size.len)) ? SHERD_OK : SHERD_ENOMEM;
    if (!err) err = emit(d, s, cell, first, rows, &size, body);
    if (!err) describe(d, s, at, cell->rows, &size, &left, &out->result);
    cell->csr = size.encoding == SHERD__CSR;
    if (!err) err = weigh_rows(d, cell);
    out->empty = !err && cell->rows == 0;
    if (!err && !out->empty) err = sherd__fragment_take(&out->left, &left, body, NULL, NULL);
    if (!err) {
        count_rows(d, rows * s->ngroups, cell, 1);
        double limit = 2 * (double)(d->k + rows + d->m) * 0x1p-52; /* 2: |r| is below it */
        cell->unjudged = !d->p.exact && !isfinite(cell->tolerance);
        cell->tolerance = cell->tolerance * limit + sherd__fv_underflow(rows, d->k, d->m);
        *keep = cell;
    } else {
        sherd__deal_cell_free(cell);
    }
    if (!out->left) sherd__free(body);
    return err;
}

/* --- the resident block ---------------------------------------------------------------------- */

/* Produces the shuffled rows of B while they are sent; on the loop thread, so with own scratch. */
typedef struct resident {
    deal *d;
    uint32_t slot, tile, group;
    size_t row_bytes;
    uint32_t made;         /* row of the slot that `bytes` holds, or UINT32_MAX */
    uint8_t *bytes;        /* row_bytes */
    double *line, *row;    /* m each */
    uint32_t *scratch;     /* m */
    const uint32_t *perm;
} resident;

static void resident_free(void *ctx)
{
    resident *r = ctx;
    sherd__free(r->bytes);
    sherd__free(r->line);
    sherd__free(r->row);
    sherd__free(r->scratch);
    sherd__free(r);
}

static int resident_row(resident *r, uint32_t at, uint8_t *out)
{
    deal *d = r->d;
    const deal_slot *s = &d->slots[r->slot];
    uint32_t q = r->group;
    if (at < s->groups[q].first) q = 0;
    while (at >= s->groups[q].first + s->groups[q].len) q++;
    if (q != r->group) r->perm = NULL;
    r->group = q;
    size_t width = deal_tile_width(d, r->tile);
    double *row =
        d->dtype_b == SHERD_F64 && (uintptr_t)out % 8 == 0 ? (double *)(void *)out : r->row;
    int err = shuffled_row(d, s, q, at, r->tile, r->line, r->scratch, &r->perm, row);
    if (!err && (uint8_t *)row != out) sherd__deal_narrow(d->dtype_b, row, width, out);
    return err;
}

static void resident_table(const deal_slot *s, size_t width, uint64_t offset, uint8_t *out,
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
    const deal_slot *s = &r->d->slots[r->slot];
    uint64_t table = 8 * (uint64_t)s->ngroups;
    if (offset < table) {
        size_t n = table - offset < len ? (size_t)(table - offset) : len;
        resident_table(s, deal_tile_width(r->d, r->tile), offset, out, n);
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

int sherd__deal_resident(void *ctx, uint32_t slot, uint32_t tile, sherd_fragment **out)
{
    deal *d = ctx;
    const deal_slot *s = &d->slots[slot];
    size_t width = deal_tile_width(d, tile);
    resident *r = sherd__calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return SHERD_ENOMEM;
    *r = (resident){ .d = d, .slot = slot, .tile = tile, .made = UINT32_MAX };
    r->row_bytes = width * sherd_dtype_size((sherd_dtype)d->dtype_b);
    r->bytes = sherd__alloc(r->row_bytes);
    r->line = sherd__alloc(d->m * sizeof *r->line);
    r->row = sherd__alloc(width * sizeof *r->row);
    r->scratch = sherd__alloc(d->m * sizeof *r->scratch);
    sherd__fragment_info info = {
        .origin = SHERD__HIDDEN, .dtype = d->dtype_b, .groups = s->ngroups, .rows = s->ncols,
        .cols = width, .len = 8 * (uint64_t)s->ngroups + (uint64_t)s->ncols * r->row_bytes,
    };
    int err = r->bytes && r->line && r->row && r->scratch ? SHERD_OK : SHERD_ENOMEM;
    if (!err)
        err = sherd__fragment_new_source(
            out, &info, (sherd__fragment_source){ resident_fill, resident_free, r });
    if (err) resident_free(r);
    return err;
}
