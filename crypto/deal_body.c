/*
 * The bytes of a cell's left block: the group table, and behind it the rows that stay, dense or in CSR
 * (crypto/fragment.h). CSR is written where it was asked for and is the smaller of the two for this
 * very cell, so that a panel with more values than the others never takes more room than it was
 * planned for. Rows come from the gathered panel, which is still in cache.
 */
#include <string.h>

#include "core/bytes.h"
#include "crypto/deal_internal.h"
#include "matrix/clones.h"

SHERD__CLONES
static size_t nonzeros_long(const double *x, size_t n)
{
    size_t sum = 0;
    for (size_t j = 0; j < n; j++) sum += x[j] != 0;
    return sum;
}

static size_t nonzeros(const double *x, size_t n)
{
    size_t sum = 0;
    if (n >= 16) return nonzeros_long(x, n);
    for (size_t j = 0; j < n; j++) sum += x[j] != 0; /* a call would cost more */
    return sum;
}

/* Columns and values of what is not zero, in order, and room for one more of each: without branches,
 * which nobody could foresee. */
static size_t compact(const double *x, uint32_t first, size_t n, uint32_t *column, double *value)
{
    size_t m = 0;
    for (size_t j = 0; j < n; j++) {
        column[m] = first + (uint32_t)j;
        value[m] = x[j];
        m += x[j] != 0;
    }
    return m;
}

static uint32_t widest(const deal_slot *s)
{
    uint32_t most = 0;
    for (uint32_t q = 0; q < s->ngroups; q++)
        if (s->groups[q].len > most) most = s->groups[q].len;
    return most;
}

void sherd__deal_size(const deal *d, const deal_slot *s, size_t rows, deal_size *out)
{
    size_t each = sherd_dtype_size((sherd_dtype)d->dtype_a);
    *out = (deal_size){ .widest = widest(s), .rows = (uint64_t)rows * s->ngroups,
                        .len = 8 * (uint64_t)s->ngroups + (uint64_t)rows * s->ncols * each };
    if (d->csr) sherd__deal_measure(d, s, rows, out);
}

void sherd__deal_measure(const deal *d, const deal_slot *s, size_t rows, deal_size *out)
{
    size_t each = sherd_dtype_size((sherd_dtype)d->dtype_a);
    uint64_t values = 0;
    *out = (deal_size){ .widest = widest(s) };
    for (uint32_t q = 0; q < s->ngroups; q++) {
        const deal_group *g = &s->groups[q];
        for (size_t t = 0; t < rows; t++) {
            size_t n = nonzeros(d->panel + t * s->ncols + g->first, g->len);
            if (d->p.skip_zeros && n == 0) continue;
            out->rows++;
            out->entries += n;
            values += g->len;
        }
    }
    uint64_t csr = sherd__csr_len(s->ngroups, out->rows, out->widest, out->entries, each);
    out->len = 8 * (uint64_t)s->ngroups + values * each;
    if (!d->csr || csr >= out->len) return;
    out->encoding = SHERD__CSR;
    out->len = csr;
}

void sherd__deal_body_begin(deal_body *b, const deal *d, const deal_slot *s, const deal_size *size,
                            uint8_t *bytes)
{
    unsigned width = sherd__csr_width(size->widest);
    *b = (deal_body){ .dtype = d->dtype_a, .encoding = size->encoding, .bytes = bytes,
                      .values = 8 * (size_t)s->ngroups };
    if (size->encoding != SHERD__CSR) return;
    b->width = width;
    b->counts = b->values;
    b->columns = b->counts + (size_t)size->rows * width;
    b->values = b->columns + (size_t)size->entries * width;
}

static void put_number(uint8_t *out, unsigned width, uint32_t v)
{
    if (width == 1) *out = (uint8_t)v;
    else if (width == 2) sherd__put_u16(out, (uint16_t)v);
    else sherd__put_u32(out, v);
}

void sherd__deal_body_row(deal_body *b, const double *x, uint32_t len)
{
    enum { AT_ONCE = 256 };
    size_t each = sherd_dtype_size((sherd_dtype)b->dtype);
    uint32_t column[AT_ONCE + 1], count = 0;
    double value[AT_ONCE + 1];
    if (b->encoding != SHERD__CSR) {
        sherd__deal_narrow(b->dtype, x, len, b->bytes + b->values);
        b->values += len * each;
        return;
    }
    for (uint32_t j = 0, n; j < len; j += n) {
        n = len - j < AT_ONCE ? len - j : AT_ONCE;
        size_t m = compact(x + j, j, n, column, value);
        for (size_t i = 0; i < m; i++)
            put_number(b->bytes + b->columns + i * b->width, b->width, column[i]);
        sherd__deal_narrow(b->dtype, value, m, b->bytes + b->values);
        b->columns += m * b->width;
        b->values += m * each;
        count += (uint32_t)m;
    }
    put_number(b->bytes + b->counts, b->width, count);
    b->counts += b->width;
}

void sherd__deal_sparse(sherd__hiding *h, bool csr)
{
    deal *d = h->ctx;
    d->csr = csr;
}

uint64_t sherd__deal_csr_cells(const sherd__hiding *h)
{
    const deal *d = h->ctx;
    return d->csr_cells;
}

int sherd__deal_cost(sherd__hiding *h, sherd__deal_total *out)
{
    deal *d = h->ctx;
    *out = (sherd__deal_total){ 0 };
    for (uint32_t slot = 0; slot < d->p.slots; slot++) {
        const deal_slot *s = &d->slots[slot];
        for (uint32_t panel = 0; panel < d->panels; panel++) {
            deal_size size;
            size_t first, rows = sherd__deal_rows(d, (sherd__cell){ slot, 0, panel }, &first);
            if (rows == 0 || s->ncols == 0) continue;
            int err = sherd__deal_gather(d, s, first, rows);
            if (err) return err;
            sherd__deal_measure(d, s, rows, &size);
            if (size.rows == 0) continue;
            out->cells += d->tiles;
            out->csr_cells += size.encoding == SHERD__CSR ? d->tiles : 0;
            out->bytes += size.len * d->tiles;
            out->rows += size.rows;
            out->entries += size.entries;
        }
    }
    return SHERD_OK;
}
