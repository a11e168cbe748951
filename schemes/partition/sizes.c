/*
 * Sizes of cells for estimates. Where rows that are wholly zero are left out, or panels are sent in
 * CSR, they depend on the number of entries that are not zero. These are counted in A itself, which
 * takes a fraction of the time of gathering and rounding its panels as for sending them: one pass
 * counts the entries of each column in each panel, for all slots. Only whether a row of a group is
 * zero needs its entries, up to the first that is not.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "matrix/view.h"
#include "schemes/partition/internal.h"

#define COUNTS_MAX ((size_t)4 << 20) /* numbers */

void sherd__partition_forget(partition *d)
{
    sherd__free(d->columns);
    d->columns = NULL;
}

/* Returns the largest magnitude that is sent as 0: rounding is to even. */
static double least(const partition *d)
{
    return d->p.exact ? ldexp(0.5, -d->p.fixed_a.scale) : 0;
}

/* Counts all columns in all panels, of slots that have all rows in their natural order. Returns
 * false if A cannot be counted. */
static bool count_columns(partition *d, size_t panel_rows)
{
    size_t len;
    if (d->columns) return true;
    if (d->p.rows.row || d->p.a.col_stride != 1 || !sherd__mul(d->panels, d->k, &len) ||
        len > COUNTS_MAX || !(d->columns = sherd__calloc(len, sizeof *d->columns)))
        return false;
    for (size_t panel = 0; panel < d->panels; panel++) {
        size_t first = panel * panel_rows;
        size_t rows = d->n - first < panel_rows ? d->n - first : panel_rows;
        sherd__view_count_columns(sherd_view_sub(d->p.a, first, rows, 0, d->k), least(d),
                                  d->columns + panel * d->k);
    }
    return true;
}

/* Counts the rows of a group that are not wholly zero. entries: of all of them. */
static uint64_t rows_of(const partition *d, const partition_slot *s, const partition_group *g,
                        size_t first, size_t rows, uint64_t entries)
{
    uint64_t some = 0;
    if (!d->p.skip_zeros || entries == (uint64_t)rows * g->len) return rows;
    if (g->len == 1 || entries == 0) return entries;
    for (size_t t = 0; t < rows; t++)
        some += sherd__view_any(d->p.a, first + t, s->cols + g->first, g->len, least(d));
    return some;
}

static void count_cell(const partition *d, const partition_slot *s, uint32_t panel, size_t first,
                       size_t rows, partition_size *out)
{
    const uint32_t *columns = d->columns + (size_t)panel * d->k;
    *out = (partition_size){ .rows = 0 };
    for (uint32_t q = 0; q < s->ngroups; q++) {
        const partition_group *g = &s->groups[q];
        uint64_t entries = 0;
        for (uint32_t j = 0; j < g->len; j++) entries += columns[s->cols[g->first + j]];
        uint64_t kept = rows_of(d, s, g, first, rows, entries);
        out->rows += kept;
        out->entries += entries;
        out->values += kept * g->len;
    }
    sherd__partition_encode(d, s, out);
}

/* plain: a cell has all columns of its rows. */
static void count_rows(const partition *d, const partition_slot *s, size_t first, size_t rows,
                       partition_size *out)
{
    sherd_view part = sherd_view_sub(d->p.a, s->row0 + first, rows, 0, d->k);
    *out = (partition_size){ .rows = rows,
                             .values = (uint64_t)rows * d->k,
                             .entries = sherd__view_nonzeros(part) };
    sherd__partition_encode(d, s, out);
}

/* Returns whether the entries that are sent as 0 are those that are 0. */
static bool no_rounding(const partition *d)
{
    return !d->p.exact || (d->p.a.dtype != SHERD_F64 && d->p.a.dtype != SHERD_F32);
}

int sherd__partition_sizes(void *ctx, sherd__cell at, sherd__cell_sizes *out)
{
    partition *d = ctx;
    const partition_slot *s = &d->slots[at.slot];
    size_t first, rows = sherd__partition_rows(d, at, &first);
    partition_size size;
    *out = (sherd__cell_sizes){ .empty = rows == 0 || s->ncols == 0 };
    if (out->empty) return SHERD_OK;
    if (!d->p.skip_zeros && !d->csr) {
        sherd__partition_size(d, s, rows, &size);
    } else if (!s->cols && !d->p.rows.row && no_rounding(d)) {
        count_rows(d, s, first, rows, &size);
    } else if (s->cols && count_columns(d, d->p.panel_rows)) {
        count_cell(d, s, at.panel, first, rows, &size);
    } else {
        int err = sherd__partition_gather(d, s, first, rows);
        if (err) return err;
        sherd__partition_measure(d, s, rows, &size);
    }
    out->empty = size.rows == 0;
    sherd__partition_describe(d, at, size.rows, &size, &out->left, &out->result);
    return SHERD_OK;
}
