/*
 * Each row keeps its position in its entries. Since columns ascend, the entries of a range of
 * columns are the next ones of every row. Values of rows that are adjacent in the block are
 * converted in one call.
 */
#include "node/csr.h"

#include <string.h>

#include "core/bytes.h"
#include "matrix/view.h"

static uint32_t number_at(const uint8_t *p, unsigned width, uint64_t i)
{
    p += i * width;
    return width == 1 ? *p : width == 2 ? sherd__get_u16(p) : sherd__get_u32(p);
}

static uint32_t column_at(const sherd__csr_block *b, uint64_t entry)
{
    return number_at(b->body + b->at.columns, b->at.width, entry);
}

void sherd__csr_open(sherd__csr_block *out, const sherd__fragment *f)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    *out = (sherd__csr_block){ .body = sherd__fragment_bytes(f), .dtype = i->dtype };
    (void)sherd__csr_layout(i, &out->at); /* succeeded before, when the block arrived */
}

uint64_t sherd__csr_begin(sherd__csr_rows *r, const sherd__csr_block *b, uint64_t first, size_t n,
                          uint64_t at)
{
    r->n = n;
    for (size_t i = 0; i < n; i++) {
        r->next[i] = at;
        at += number_at(b->body + b->at.counts, b->at.width, first + i);
        r->end[i] = at;
    }
    return at;
}

bool sherd__csr_range(sherd__csr_rows *r, const sherd__csr_block *b, uint64_t cols, size_t step,
                      size_t *from, size_t *len)
{
    uint64_t least = cols;
    for (size_t i = 0; i < r->n; i++)
        if (r->next[i] < r->end[i] && column_at(b, r->next[i]) < least)
            least = column_at(b, r->next[i]);
    if (least == cols) return false;
    *from = (size_t)(least - least % step);
    *len = cols - *from < step ? (size_t)(cols - *from) : step;
    r->taken = 0;
    for (size_t i = 0; i < r->n; i++) {
        uint64_t stop = r->end[i];
        if (cols > *from + *len)
            for (stop = r->next[i]; stop < r->end[i] && column_at(b, stop) < *from + *len;) stop++;
        r->count[i] = (uint32_t)(stop - r->next[i]);
        r->taken += r->count[i];
    }
    return true;
}

/* Converts the values of n entries from `entry` on. */
static void values(const sherd__csr_block *b, uint64_t entry, size_t n, double *out)
{
    size_t all = (size_t)b->at.entries;
    sherd_view v = sherd_view_c(b->body + b->at.values, (sherd_dtype)b->dtype, 1, all);
    sherd__view_row_f64(v, 0, (size_t)entry, n, out);
}

static void columns(const sherd__csr_block *b, uint64_t entry, size_t n, size_t from, uint32_t *out)
{
    const uint8_t *p = b->body + b->at.columns;
    unsigned width = b->at.width;
    for (size_t k = 0; k < n; k++) out[k] = number_at(p, width, entry + k) - (uint32_t)from;
}

void sherd__csr_lists(sherd__csr_rows *r, const sherd__csr_block *b, size_t from, uint32_t *column,
                      double *value)
{
    for (size_t i = 0; i < r->n;) {
        uint64_t first = r->next[i], stop = first;
        for (; i < r->n && r->next[i] == stop; i++) stop = r->next[i] += r->count[i];
        size_t n = (size_t)(stop - first);
        columns(b, first, n, from, column);
        values(b, first, n, value);
        column += n;
        value += n;
    }
}

void sherd__csr_dense(sherd__csr_rows *r, const sherd__csr_block *b, size_t from, size_t len,
                      double *out)
{
    enum { AT_ONCE = 256 };
    double value[AT_ONCE];
    memset(out, 0, r->n * len * sizeof *out);
    for (size_t i = 0; i < r->n; i++, out += len) {
        for (uint32_t left = r->count[i], n; left > 0; left -= n) {
            n = left < AT_ONCE ? left : AT_ONCE;
            values(b, r->next[i], n, value);
            for (uint32_t k = 0; k < n; k++) out[column_at(b, r->next[i] + k) - from] = value[k];
            r->next[i] += n;
        }
    }
}
