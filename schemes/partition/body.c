/*
 * The bytes of a cell's left block: the group table, followed by the rows that are sent, dense or
 * in CSR (crypto/fragment.h). CSR is used if it is enabled and smaller than dense for this cell, so
 * that a panel with more values than the others never takes more room than planned. Rows are read
 * from the gathered panel, which is still in cache.
 */
#include <string.h>

#include "core/bytes.h"
#include "matrix/clones.h"
#include "schemes/partition/internal.h"

SHERD__CLONES
static void flags(const double *x, size_t n, uint8_t *out)
{
    for (size_t j = 0; j < n; j++) out[j] = x[j] != 0;
}

/* Returns a mask with bit j set if x[j] is not zero; n <= 64. A multiplication gathers the flags of
 * eight bytes: byte i goes to bit 56 + i, and no two terms overlap. */
static uint64_t mask_of(const double *x, size_t n)
{
    uint64_t mask = 0, eight;
    uint8_t flag[64] = { 0 };
    if (n < 8) { /* a call of flags() would cost more */
        for (size_t j = 0; j < n; j++) mask |= (uint64_t)(x[j] != 0) << j;
        return mask;
    }
    flags(x, n, flag);
    for (size_t j = 0; j < 64; j += 8) {
        memcpy(&eight, flag + j, sizeof eight);
        mask |= (eight * UINT64_C(0x0102040810204080) >> 56) << j;
    }
    return mask;
}

static size_t nonzeros(const double *x, size_t n)
{
    size_t sum = 0;
    for (size_t j = 0; j < n; j += 64)
        sum += (size_t)__builtin_popcountll(mask_of(x + j, n - j < 64 ? n - j : 64));
    return sum;
}

static uint32_t widest(const partition_slot *s)
{
    uint32_t most = 0;
    for (uint32_t q = 0; q < s->ngroups; q++)
        if (s->groups[q].len > most) most = s->groups[q].len;
    return most;
}

void sherd__partition_size(const partition *d, const partition_slot *s, size_t rows,
                           partition_size *out)
{
    *out = (partition_size){ .rows = (uint64_t)rows * s->ngroups,
                             .values = (uint64_t)rows * s->ncols };
    if (d->csr) sherd__partition_measure(d, s, rows, out);
    else sherd__partition_encode(d, s, out);
}

void sherd__partition_measure(const partition *d, const partition_slot *s, size_t rows,
                              partition_size *out)
{
    *out = (partition_size){ .rows = 0 };
    for (uint32_t q = 0; q < s->ngroups; q++) {
        const partition_group *g = &s->groups[q];
        for (size_t t = 0; t < rows; t++) {
            size_t n = nonzeros(partition_panel_row(d, t) + g->first, g->len);
            if (d->p.skip_zeros && n == 0) continue;
            out->rows++;
            out->entries += n;
            out->values += g->len;
        }
    }
    sherd__partition_encode(d, s, out);
}

void sherd__partition_encode(const partition *d, const partition_slot *s, partition_size *out)
{
    size_t each = sherd_dtype_size((sherd_dtype)d->dtype_a);
    out->widest = widest(s);
    uint64_t csr = sherd__csr_len(s->ngroups, out->rows, out->widest, out->entries, each);
    out->len = 8 * (uint64_t)s->ngroups + out->values * each;
    if (!d->csr || csr >= out->len || csr > SHERD__CSR_MAX) return;
    out->encoding = SHERD__CSR;
    out->len = csr;
}

void sherd__partition_body_begin(partition_body *b, const partition *d, const partition_slot *s,
                                 const partition_size *size, uint8_t *bytes)
{
    unsigned width = sherd__csr_width(size->widest);
    *b = (partition_body){ .dtype = d->dtype_a,
                           .encoding = size->encoding,
                           .bytes = bytes,
                           .values = 8 * (size_t)s->ngroups };
    if (size->encoding != SHERD__CSR) return;
    b->width = width;
    b->counts = b->values;
    b->columns = b->counts + (size_t)size->rows * width;
    b->values = b->columns + (size_t)size->entries * width;
}

static void put_numbers(uint8_t *out, unsigned width, const uint32_t *x, size_t n)
{
    for (size_t i = 0; i < n && width == 1; i++) out[i] = (uint8_t)x[i];
    for (size_t i = 0; i < n && width == 2; i++) sherd__put_u16(out + 2 * i, (uint16_t)x[i]);
    for (size_t i = 0; i < n && width == 4; i++) sherd__put_u32(out + 4 * i, x[i]);
}

enum { AT_ONCE = 512 };

/* Writes columns and values of the non-zero entries of x, at most AT_ONCE. */
static size_t compact(const double *x, uint32_t first, uint32_t n, uint32_t *column, double *value)
{
    size_t m = 0;
    for (uint32_t j = 0; j < n; j += 64) {
        uint64_t mask = mask_of(x + j, n - j < 64 ? n - j : 64);
        for (; mask; mask &= mask - 1, m++) {
            uint32_t at = j + (uint32_t)__builtin_ctzll(mask);
            column[m] = first + at;
            value[m] = x[at];
        }
    }
    return m;
}

void sherd__partition_body_row(partition_body *b, const double *x, uint32_t len)
{
    size_t each = sherd_dtype_size((sherd_dtype)b->dtype);
    uint32_t column[AT_ONCE], count = 0;
    double value[AT_ONCE];
    if (b->encoding != SHERD__CSR) {
        sherd__partition_narrow(b->dtype, x, len, b->bytes + b->values);
        b->values += len * each;
        return;
    }
    for (uint32_t j = 0, n; j < len; j += n) {
        n = len - j < AT_ONCE ? len - j : AT_ONCE;
        size_t m = compact(x + j, j, n, column, value);
        put_numbers(b->bytes + b->columns, b->width, column, m);
        sherd__partition_narrow(b->dtype, value, m, b->bytes + b->values);
        b->columns += m * b->width;
        b->values += m * each;
        count += (uint32_t)m;
    }
    put_numbers(b->bytes + b->counts, b->width, &count, 1);
    b->counts += b->width;
}

void sherd__partition_sparse(sherd__hiding *h, bool csr)
{
    partition *d = h->ctx;
    d->csr = csr;
}

uint64_t sherd__partition_csr_cells(const sherd__hiding *h)
{
    const partition *d = h->ctx;
    return d->csr_cells;
}
