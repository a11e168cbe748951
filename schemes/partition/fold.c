/*
 * Checking and folding of `permute` and `plain`. An answer's rows are first checked as a whole
 * (Freivalds, two-sided; crypto/freivalds.h). Then each row is added to its row of C with its
 * columns in the original order: column j of a shuffled answer belongs to column perm[j] of C.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "crypto/freivalds.h"
#include "matrix/clones.h"
#include "matrix/residue.h"
#include "matrix/view.h"
#include "schemes/partition/internal.h"

/* Recombines row t of a residue answer into integers. */
static int wide_row(const partition *d, const partition_cell *cell, const uint8_t *body,
                    size_t width, size_t t)
{
    const double *residue[4];
    for (uint32_t i = 0; i < d->p.primes_len; i++) {
        const uint8_t *from = body + ((uint64_t)i * cell->rows + t) * width * 3;
        double *to = d->residues + i * d->p.tile_cols;
        int err = sherd__residue_unpack(from, width, d->p.primes[i], to, NULL);
        if (err) return SHERD_EWRONG;
        residue[i] = to;
    }
    sherd__crt_i128(&d->crt, residue, width, d->wide_line);
    return SHERD_OK;
}

/* With more than 61 bits, an error that is a multiple of 2^61-1 would be missed modulo 2^61-1. */
static int check_wide(const partition *d, const partition_cell *cell, const partition_probe *p,
                      const uint8_t *body, size_t width)
{
    sherd__f127 sum = 0;
    for (size_t t = 0; t < cell->rows; t++) {
        sherd__f127 dot = 0;
        int err = wide_row(d, cell, body, width, t);
        if (err) return err;
        for (size_t j = 0; j < width; j++)
            dot = sherd__f127_add(dot,
                                  sherd__f127_mul(sherd__f127_from(d->wide_line[j]), p->s61[j]));
        sum = sherd__f127_add(sum, sherd__f127_mul(cell->r61[t], dot));
    }
    return sum == cell->ru_vs127 ? SHERD_OK : SHERD_EWRONG;
}

/* --- operands with NaN or infinity ----------------------------------------------------------- */

/* Entries of one answer for which the kind (NaN, +infinity, -infinity) is recomputed. */
#define KINDS_MAX 1024u

static int kind_of(double x)
{
    return isnan(x) ? 0 : !isinf(x) ? 2 : x > 0 ? 1 : -1;
}

/* Recomputes entry (row of C, column j of the group's answer) and checks that y is of its kind. */
static int check_kind(partition *d, const partition_slot *s, const partition_group *g, size_t row,
                      size_t column, double y)
{
    double sum = 0, size = 0;
    for (uint32_t at = g->first; at < g->first + g->len; at++) {
        size_t c = s->cols ? s->cols[at] : at;
        double product = sherd__view_at(d->p.a, row, c) * sherd__view_at(d->p.b, c, column);
        sum += product;
        if (isfinite(product)) size += fabs(product);
    }
    /* If finite terms alone may overflow, the result depends on the order of summing. */
    return !isfinite(size) || kind_of(sum) == kind_of(y) ? SHERD_OK : SHERD_EWRONG;
}

/* A group of an answer, whose columns are those of C from `from` on, in the order of perm. */
typedef struct tainted {
    const partition_cell *cell;
    const partition_slot *s;
    uint32_t q;
    const uint32_t *perm; /* NULL: none */
    size_t from;
    uint64_t one_in; /* of the entries that are not finite, one in so many is recomputed */
} tainted;

/* Checks one row of an answer. Entries that are finite according to the operands are added to *dot
 * with their weights. The others must not be finite, and some of them, chosen at random, must be of
 * the right kind. */
static int check_tainted_row(partition *d, const tainted *g, size_t t, const double *y, double *dot)
{
    const partition_cell *cell = g->cell;
    const partition_probe *p = cell->probe;
    const uint32_t *perm = g->perm;
    const size_t from = g->from;
    for (size_t j = 0; j < p->width; j++) {
        if (cell->r[t] != 0 && !p->taint[g->q * p->width + j]) {
            *dot += y[j] * p->s[j];
            continue;
        }
        if (isfinite(y[j])) return SHERD_EWRONG;
        if (sherd__entropy_below(&d->p.entropy, g->one_in)) continue;
        int err = check_kind(d, g->s, &g->s->groups[g->q], cell->row[t],
                             perm ? perm[from + j] : from + j, y[j]);
        if (err) return err;
    }
    return SHERD_OK;
}

static int check_tainted(partition *d, const partition_cell *cell, sherd__cell at, const double *y)
{
    const partition_slot *s = &d->slots[at.slot];
    size_t width = cell->probe->width, t = 0;
    tainted g = { .cell = cell,
                  .s = s,
                  .from = (size_t)at.tile * d->p.tile_cols,
                  .one_in = (uint64_t)cell->rows * width / KINDS_MAX + 1 };
    double sum = 0;
    for (uint32_t q = 0; q < s->ngroups; q++) {
        int err;
        g.q = q;
        g.perm = sherd__partition_perm(d, &s->groups[q], d->colbuf, &err);
        for (uint32_t i = 0; i < cell->count[q] && !err; i++, t++) {
            double dot = 0;
            err = check_tainted_row(d, &g, t, y + t * width, &dot);
            if (cell->r[t] != 0) sum += cell->r[t] * dot;
        }
        if (err) return err;
    }
    return cell->unjudged || fabs(sum - cell->ru_vs) <= cell->tolerance ? SHERD_OK : SHERD_EWRONG;
}

/* --- all answers ----------------------------------------------------------------------------- */

static int judge(partition *d, const partition_cell *cell, sherd__cell at, const uint8_t *body)
{
    const partition_probe *p = cell->probe;
    const double *y = (const double *)(const void *)body;
    if (d->p.primes_len) return check_wide(d, cell, p, body, p->width);
    if (d->p.exact) {
        uint64_t sum = 0;
        int err = sherd__f61_answer(y, cell->rows, p->width, p->width, cell->r61, p->s61, &sum);
        return err || sum != cell->ru_vs61 ? SHERD_EWRONG : SHERD_OK;
    }
    if (p->taint) return check_tainted(d, cell, at, y);
    double sum = sherd__fv_answer_f64(y, cell->rows, p->width, p->width, cell->r, p->s);
    return cell->unjudged || fabs(sum - cell->ru_vs) <= cell->tolerance ? SHERD_OK : SHERD_EWRONG;
}

/* The sender of a wrong answer may have learnt something about these vectors: drops them all. */
static void redraw(partition *d)
{
    for (size_t i = 0; i < (partition_plain(d) ? 1 : d->p.slots) * (size_t)d->tiles; i++) {
        sherd__partition_probe_drop(d->probes[i]);
        d->probes[i] = NULL;
    }
}

int sherd__partition_check(void *ctx, sherd__cell at, const uint8_t *body)
{
    partition *d = ctx;
    size_t cell = partition_index(d, at);
    int err = d->cells[cell] ? sherd__partition_renew(d, at) : SHERD_EINTERNAL;
    if (!err) err = judge(d, d->cells[cell], at, body);
    if (err == SHERD_EWRONG) redraw(d);
    return err;
}

/* How one group's columns are put back; at most one of these is used, none for plain. */
typedef struct order {
    const uint32_t *perm;    /* column j of the answer belongs to column perm[j] of C */
    const uint32_t *inverse; /* column x of C is column inverse[x] of the answer: whole tiles */
} order;

/* Reading in permuted order costs half as much as writing in permuted order. */
SHERD__CLONES
static void add_gathered(double *restrict c, const double *restrict y,
                         const uint32_t *restrict inverse, size_t n)
{
    for (size_t j = 0; j < n; j++) c[j] += y[inverse[j]];
}

static void add_row(double *restrict c, const double *restrict y, order by, size_t n)
{
    if (by.inverse) add_gathered(c, y, by.inverse, n);
    else if (by.perm)
        for (size_t j = 0; j < n; j++) c[by.perm[j]] += y[j];
    else
        for (size_t j = 0; j < n; j++) c[j] += y[j];
}

/* An answer: `width` columns of C from `from` on. */
typedef struct answer {
    const partition_cell *cell;
    const uint8_t *body;
    size_t width, from;
} answer;

static int fold_row(partition *d, const answer *a, size_t t, order by)
{
    const size_t row = a->cell->row[t], width = a->width, from = a->from;
    if (!d->p.primes_len) {
        double *c = d->p.c + row * d->p.ldc;
        const double *y = (const double *)(const void *)a->body + t * width;
        add_row(by.perm ? c : c + from, y, by, width);
        return SHERD_OK;
    }
    int err = wide_row(d, a->cell, a->body, width, t);
    sherd__i128 *c = d->wide + row * d->m;
    for (size_t j = 0; j < width && !err; j++)
        c[by.perm ? by.perm[j] : from + j] += d->wide_line[j];
    return err;
}

/* The inverse pays off from a few rows on; computing it each time costs less than one row. */
#define INVERSE_ROWS 3u

static order order_of(partition *d, const partition_group *g, uint32_t rows, size_t width,
                      size_t from, int *err)
{
    order by = { 0 };
    const uint32_t *perm = sherd__partition_perm(d, g, d->colbuf, err);
    if (!perm) return by;
    by.perm = perm + from;
    if (width < d->m || rows < INVERSE_ROWS) return by;
    for (size_t j = 0; j < width; j++) d->inverse[perm[j]] = (uint32_t)j;
    by.inverse = d->inverse;
    return by;
}

/* Adds the rows of one group's answer, from row t of the cell's answer on, to C. */
static int fold_group(partition *d, const answer *a, const partition_slot *s, uint32_t q, size_t t)
{
    int err = SHERD_OK;
    order by = order_of(d, &s->groups[q], a->cell->count[q], a->width, a->from, &err);
    for (uint32_t i = 0; i < a->cell->count[q] && !err; i++, t++) err = fold_row(d, a, t, by);
    return err;
}

int sherd__partition_fold(void *ctx, sherd__cell at, const uint8_t *body)
{
    partition *d = ctx;
    const partition_slot *s = &d->slots[at.slot];
    partition_cell **keep = &d->cells[partition_index(d, at)], *cell = *keep;
    const answer a = { cell, body, partition_tile_width(d, at.tile),
                       (size_t)at.tile * d->p.tile_cols };
    int err = SHERD_OK;
    if (cell) {
        size_t *first = sherd__calloc(s->ngroups, sizeof *first); /* of each group's answer */
        if (!first) return SHERD_ENOMEM;
        for (uint32_t q = 1; q < s->ngroups; q++) first[q] = first[q - 1] + cell->count[q - 1];
        for (uint32_t i = 0; i < s->ngroups && !err; i++) {
            uint32_t q = s->ascending ? s->ascending[i] : i;
            if (cell->count[q]) err = fold_group(d, &a, s, q, first[q]);
        }
        sherd__free(first);
    }
    sherd__partition_cell_free(cell);
    *keep = NULL;
    return err;
}

int sherd__partition_finish(void *ctx)
{
    partition *d = ctx;
    int shift = d->p.fixed_a.scale + d->p.fixed_b.scale;
    if (!d->p.exact || (shift == 0 && !d->wide)) return SHERD_OK;
    for (size_t i = 0; i < d->n; i++) {
        double *c = d->p.c + i * d->p.ldc;
        for (size_t j = 0; j < d->m; j++)
            c[j] = ldexp(d->wide ? sherd__i128_f64(d->wide[i * d->m + j]) : c[j], -shift);
    }
    return SHERD_OK;
}
