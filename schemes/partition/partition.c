/*
 * Layout of `permute` and `plain`: slots, groups, panels, tiles and their permutations. The
 * operands are first read by hide.c.
 */
#include "schemes/partition/partition.h"

#include <math.h>
#include <sodium.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/wipe.h"
#include "matrix/view.h"
#include "schemes/partition/internal.h"
#include "schemes/slots.h"

size_t sherd__partition_rows(const partition *d, sherd__cell c, size_t *first)
{
    const partition_slot *s = &d->slots[c.slot];
    size_t from = (size_t)c.panel * d->p.panel_rows;
    *first = from < s->rows ? from : s->rows;
    return s->rows - *first < d->p.panel_rows ? s->rows - *first : d->p.panel_rows;
}

const uint32_t *sherd__partition_perm(const partition *d, const partition_group *g,
                                      uint32_t *scratch, int *err)
{
    *err = SHERD_OK;
    if (partition_plain(d)) return NULL;
    if (d->perms) return d->perms + g->cached * d->m;
    *err = d->p.perm.row(d->p.perm.ctx, g->leader, (uint32_t)d->m, scratch);
    return *err ? NULL : scratch;
}

const uint32_t *sherd__partition_order(const partition *d, const partition_group *g,
                                       uint32_t *scratch, int *err)
{
    *err = SHERD_OK;
    if (!d->p.rows.row) return NULL;
    if (d->rowperms) return d->rowperms + g->cached * d->n;
    *err = d->p.rows.row(d->p.rows.ctx, g->leader, (uint32_t)d->n, scratch);
    return *err ? NULL : scratch;
}

const double *sherd__partition_row_b(const partition *d, size_t c, size_t from, size_t len,
                                     double *scratch)
{
    const sherd_view part = sherd_view_sub(d->p.b, c, 1, from, len);
    size_t ld;
    const double *row = d->p.exact ? NULL : sherd__view_borrow_f64(part, &ld);
    if (row) return row;
    if (d->p.exact) sherd__fixed_row(&d->p.fixed_b, d->p.b, c, from, len, scratch);
    else sherd__view_row_f64(d->p.b, c, from, len, scratch);
    return scratch;
}

uint8_t sherd__partition_dtype(sherd_view v, bool exact, const sherd__fixed *f)
{
    bool small = sherd_dtype_size(v.dtype) <= 4 || v.dtype == SHERD_F64;
    if (!exact) return (uint8_t)(small ? v.dtype : SHERD_F64);
    sherd_dtype fits = f->bound <= INT8_MAX    ? SHERD_I8
                       : f->bound <= INT16_MAX ? SHERD_I16
                       : f->bound <= INT32_MAX ? SHERD_I32
                                               : SHERD_I64;
    /* 200 in a u8, or -2^31 in an i32: the own type is narrower than the signed one that fits. */
    bool own = f->integers && small && v.dtype != SHERD_F32 && v.dtype != SHERD_F64;
    return (uint8_t)(own && sherd_dtype_size(v.dtype) <= sherd_dtype_size(fits) ? v.dtype : fits);
}

static int slots_plain(partition *d)
{
    sherd__slots_bounds(d->n, d->p.slots, d->p.weights, d->bounds);
    for (uint32_t i = 0; i < d->p.slots; i++) {
        partition_slot *s = &d->slots[i];
        if (!s->groups) s->groups = sherd__calloc(1, sizeof *s->groups);
        if (!s->groups) return SHERD_ENOMEM;
        s->ngroups = 1;
        s->ncols = s->groups[0].len = (uint32_t)d->k;
        s->row0 = d->bounds[i];
        s->rows = d->bounds[i + 1] - d->bounds[i];
    }
    d->widest = d->k;
    return SHERD_OK;
}

static void free_secret(uint32_t *p, size_t n)
{
    if (p) sodium_memzero(p, n * sizeof *p);
    sherd__free(p);
}

/*
 * out[q] = the place at which the q-th group in ascending order is sent. It is drawn for each
 * operand and not stored: recovery needs only what this process remembers, and most columns in
 * ascending order could be identified by the order alone. Answers are always added up in ascending
 * order, so that the bits of a float result do not depend on the draw.
 */
static void draw_order(const partition *d, uint32_t n, uint32_t *out)
{
    for (uint32_t q = 0; q < n; q++) out[q] = q;
    for (uint32_t q = n; q > 1; q--) {
        uint32_t other = (uint32_t)sherd__entropy_below(&d->p.entropy, q), t = out[q - 1];
        out[q - 1] = out[other];
        out[other] = t;
    }
}

static int slot_permute(partition *d, uint32_t i, const uint32_t *exposures)
{
    partition_slot *s = &d->slots[i];
    for (size_t c = 0; c < d->k; c++) s->ncols += exposures[c] == i;
    uint32_t g = d->p.group == SHERD__GROUP_ALL || d->p.group > s->ncols ? s->ncols : d->p.group;
    s->ngroups = s->ncols ? (s->ncols - 1) / g + 1 : 0;
    s->cols = sherd__calloc(s->ncols, sizeof *s->cols);
    s->groups = sherd__calloc(s->ngroups, sizeof *s->groups);
    s->ascending = sherd__calloc(s->ngroups, sizeof *s->ascending);
    uint32_t *place = sherd__calloc(s->ngroups, sizeof *place); /* inverse of `ascending` */
    if (!s->cols || !s->groups || !s->ascending || !place) {
        sherd__free(place);
        return SHERD_ENOMEM;
    }
    draw_order(d, s->ngroups, s->ascending);
    for (uint32_t q = 0; q < s->ngroups; q++) place[s->ascending[q]] = q;
    for (uint32_t q = 0, first = 0; q < s->ngroups; q++) {
        uint32_t from = place[q] * g, len = s->ncols - from < g ? s->ncols - from : g;
        s->groups[q] = (partition_group){ 0, first, len, 0 };
        first += len;
    }
    uint32_t at = 0;
    for (size_t c = 0; c < d->k; c++) {
        if (exposures[c] != i) continue;
        partition_group *to = &s->groups[s->ascending[at / g]];
        if (at % g == 0) to->leader = (uint32_t)c;
        s->cols[to->first + at % g] = (uint32_t)c;
        at++;
    }
    free_secret(place, s->ngroups);
    s->rows = d->n;
    if (s->ncols > d->widest) d->widest = s->ncols;
    return SHERD_OK;
}

static int slots_permute(partition *d)
{
    for (size_t c = 0; c < d->k; c++)
        if (d->p.exposures[c] >= d->p.slots) return SHERD_EINVAL;
    for (uint32_t i = 0; i < d->p.slots; i++) {
        int err = slot_permute(d, i, d->p.exposures);
        if (err) return err;
    }
    return SHERD_OK;
}

/* Caches all permutations of one kind if they fit: deriving one costs more than using it. */
static int cache_perms(partition *d, const sherd__perm_source *src, size_t n, uint32_t **out)
{
    size_t groups = 0, len;
    for (uint32_t i = 0; i < d->p.slots; i++)
        for (uint32_t q = 0; q < d->slots[i].ngroups; q++) d->slots[i].groups[q].cached = groups++;
    if (!src->row || !sherd__mul(groups, n, &len) || !sherd__mul(len, sizeof **out, &len) ||
        len > d->p.perm_cache)
        return SHERD_OK;
    if (!(*out = sherd__alloc(len))) return SHERD_ENOMEM;
    for (uint32_t i = 0; i < d->p.slots; i++) {
        for (uint32_t q = 0; q < d->slots[i].ngroups; q++) {
            const partition_group *g = &d->slots[i].groups[q];
            int err = src->row(src->ctx, g->leader, (uint32_t)n, *out + g->cached * n);
            if (err) return err;
        }
    }
    return SHERD_OK;
}

/* A wide sum holds every k * max_a * max_b that the primes hold. */
static int wide_sums(partition *d)
{
    size_t len;
    if (!d->p.primes_len) return SHERD_OK;
    int err = sherd__crt_init(&d->crt, d->p.primes, d->p.primes_len);
    if (err) return err;
    if (!sherd__mul(d->n, d->m, &len) || !(d->wide = sherd__calloc(len, sizeof *d->wide)))
        return SHERD_ENOMEM;
    d->residues = sherd__calloc(d->p.primes_len * d->p.tile_cols, sizeof *d->residues);
    d->wide_line = sherd__calloc(d->p.tile_cols, sizeof *d->wide_line);
    return d->residues && d->wide_line ? SHERD_OK : SHERD_ENOMEM;
}

static void cut_panels(partition *d)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < d->p.slots; i++)
        if (d->slots[i].rows > longest) longest = d->slots[i].rows;
    d->panels = longest ? (uint32_t)((longest - 1) / d->p.panel_rows + 1) : 0;
}

static void clear_result(partition *d)
{
    for (size_t i = 0; i < d->n; i++) memset(d->p.c + i * d->p.ldc, 0, d->m * sizeof *d->p.c);
    if (d->wide) memset(d->wide, 0, d->n * d->m * sizeof *d->wide);
}

static int open_deal(partition *d)
{
    size_t cells, line = d->m > d->k ? d->m : d->k;
    d->slots = sherd__calloc(d->p.slots, sizeof *d->slots);
    d->bounds = sherd__calloc((size_t)d->p.slots + 1, sizeof *d->bounds);
    if (!d->slots || !d->bounds) return SHERD_ENOMEM;
    int err = partition_plain(d) ? slots_plain(d) : slots_permute(d);
    if (err) return err;
    cut_panels(d);
    d->tiles = d->m ? (uint32_t)((d->m - 1) / d->p.tile_cols + 1) : 0;
    if (!sherd__mul((size_t)d->panels * d->tiles, d->p.slots, &cells)) return SHERD_ENOMEM;
    d->cells = sherd__calloc(cells, sizeof(partition_cell *));
    d->probes = sherd__calloc((partition_plain(d) ? 1 : (size_t)d->p.slots) * d->tiles,
                              sizeof(partition_probe *));
    d->colbuf = sherd__calloc(d->m, sizeof *d->colbuf);
    d->inverse = sherd__calloc(d->m, sizeof *d->inverse);
    d->rowbuf = sherd__calloc(d->p.rows.row ? d->n : 0, sizeof *d->rowbuf);
    d->panel = sherd__calloc(d->p.panel_rows, d->widest * sizeof *d->panel);
    d->line_len = line;
    d->line = sherd__calloc(3 * line, sizeof *d->line);
    if (!d->cells || !d->probes || !d->colbuf || !d->inverse || !d->rowbuf || !d->panel || !d->line)
        return SHERD_ENOMEM;
    d->dtype_a = sherd__partition_dtype(d->p.a, d->p.exact, &d->p.fixed_a);
    d->dtype_b = sherd__partition_dtype(d->p.b, d->p.exact, &d->p.fixed_b);
    err = cache_perms(d, &d->p.perm, d->m, &d->perms);
    if (!err) err = cache_perms(d, &d->p.rows, d->n, &d->rowperms);
    return err ? err : wide_sums(d);
}

void sherd__partition_cell_free(partition_cell *cell)
{
    if (!cell) return;
    if (cell->r) sherd__wipe(cell->r, cell->rows * sizeof *cell->r);
    if (cell->r61) sherd__wipe(cell->r61, cell->rows * sizeof *cell->r61);
    sherd__free(cell->count);
    sherd__free(cell->row);
    sherd__free(cell->r);
    sherd__free(cell->r61);
    sherd__free(cell->dot);
    sherd__partition_probe_drop(cell->probe);
    sherd__free(cell);
}

static void partition_free(void *ctx)
{
    partition *d = ctx;
    size_t groups = 0, cells = (size_t)d->panels * d->tiles * d->p.slots;
    for (uint32_t i = 0; d->slots && i < d->p.slots; i++) {
        groups += d->slots[i].ngroups;
        free_secret(d->slots[i].cols, d->slots[i].ncols);
        free_secret(d->slots[i].ascending, d->slots[i].ngroups);
        sherd__free(d->slots[i].groups);
    }
    for (size_t i = 0; d->cells && i < cells; i++) sherd__partition_cell_free(d->cells[i]);
    for (size_t i = 0; d->probes && i < (partition_plain(d) ? 1 : d->p.slots) * (size_t)d->tiles;
         i++)
        sherd__partition_probe_drop(d->probes[i]);
    sherd__free(d->slots);
    sherd__free(d->bounds);
    sherd__free(d->cells);
    sherd__free(d->probes);
    free_secret(d->perms, groups * d->m);
    free_secret(d->rowperms, groups * d->n);
    free_secret(d->colbuf, d->m);
    free_secret(d->inverse, d->m);
    free_secret(d->rowbuf, d->p.rows.row ? d->n_max : 0);
    sherd__partition_forget(d);
    sherd__free(d->panel);
    sherd__free(d->line);
    sherd__free(d->wide);
    sherd__free(d->residues);
    sherd__free(d->wide_line);
    sherd__free(d);
}

static void partition_shape(const void *ctx, sherd__scheme_shape *out)
{
    const partition *d = ctx;
    *out = (sherd__scheme_shape){
        .slots = d->p.slots,
        .tiles = d->tiles,
        .panels = d->panels,
        .resident = true,
        .shared = partition_plain(d),
        .left_stays = d->p.left_stays,
        .ordered = !d->p.exact && !partition_plain(d),
        .primes_len = d->p.primes_len,
    };
    memcpy(out->primes, d->p.primes, sizeof out->primes);
    for (uint32_t i = 0; i < d->p.slots; i++) {
        const partition_slot *s = &d->slots[i];
        size_t rows = s->rows < d->p.panel_rows ? s->rows : d->p.panel_rows;
        size_t each = d->p.primes_len ? 3 * d->p.primes_len : sizeof(double);
        uint64_t len = (uint64_t)rows * s->ngroups * d->p.tile_cols * each;
        if (len > out->result_max) out->result_max = len;
    }
}

static void partition_entries(const void *ctx, sherd__cell cell, uint64_t *a, uint64_t *b)
{
    const partition *d = ctx;
    size_t first, rows = sherd__partition_rows(d, cell, &first);
    *a = (uint64_t)rows * d->slots[cell.slot].ncols;
    *b = (uint64_t)d->slots[cell.slot].ncols * partition_tile_width(d, cell.tile);
}

static const sherd__hiding_ops scheme_partition = {
    .shape = partition_shape,
    .hide = sherd__partition_hide,
    .resident = sherd__partition_resident,
    .left = sherd__partition_left,
    .check = sherd__partition_check,
    .fold = sherd__partition_fold,
    .entries = partition_entries,
    .sizes = sherd__partition_sizes,
    .finish = sherd__partition_finish,
    .free = partition_free,
};

int sherd__partition_open(sherd__hiding *out, const sherd__partition_params *p)
{
    *out = (sherd__hiding){ 0 };
    if (!p->slots || !p->panel_rows || !p->tile_cols || !p->group) return SHERD_EINVAL;
    if (p->left_stays && (p->exposures || p->skip_zeros)) return SHERD_EINVAL;
    partition *d = sherd__calloc(1, sizeof *d);
    if (!d) return SHERD_ENOMEM;
    d->p = *p;
    d->n = d->n_max = p->a.rows;
    d->k = p->a.cols;
    d->m = p->b.cols;
    if (d->p.panel_rows > d->n) d->p.panel_rows = d->n ? d->n : 1;
    if (d->p.tile_cols > d->m) d->p.tile_cols = d->m ? d->m : 1;
    int err = open_deal(d);
    d->p.weights = NULL;
    if (err) {
        partition_free(d);
        return err;
    }
    if (p->c) clear_result(d);
    *out = (sherd__hiding){ &scheme_partition, d };
    return SHERD_OK;
}

int sherd__partition_next(sherd__hiding *h, sherd_view a, double *c, size_t ldc, bool finite,
                          const sherd__fixed *fixed_a)
{
    partition *d = h->ctx;
    assert(!d->p.left_stays && "another A would not be sent");
    if (a.rows > d->n_max || a.cols != d->k || ldc < d->m) return SHERD_ESHAPE;
    for (size_t i = 0; i < (size_t)d->panels * d->tiles * d->p.slots; i++) {
        sherd__partition_cell_free(d->cells[i]);
        d->cells[i] = NULL;
    }
    sherd__partition_forget(d);
    d->p.a = a;
    d->p.c = c;
    d->p.ldc = ldc;
    d->p.finite = finite;
    d->p.fixed_a = *fixed_a;
    d->n = a.rows;
    d->dtype_a = sherd__partition_dtype(a, d->p.exact, fixed_a);
    d->skipped = d->fragments = d->csr_cells = 0;
    int err = SHERD_OK;
    if (partition_plain(d)) err = slots_plain(d);
    else
        for (uint32_t i = 0; i < d->p.slots; i++) d->slots[i].rows = d->n;
    cut_panels(d);
    if (!err) clear_result(d);
    return err;
}

void sherd__partition_counts(const sherd__hiding *h, uint64_t *skipped, uint64_t *fragments)
{
    const partition *d = h->ctx;
    *skipped = d->skipped;
    *fragments = d->fragments;
}

size_t sherd__partition_planned(const sherd__hiding *h, uint32_t slot)
{
    const partition *d = h->ctx;
    return partition_plain(d) ? d->slots[slot].rows : d->slots[slot].ncols;
}
