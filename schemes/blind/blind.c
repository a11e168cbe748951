/*
 * Masking, checking and unmasking by rows. A panel is hidden in runs of a few rows that stay in
 * cache: each run is quantised once and then, for each prime, masked, added up for the check and
 * packed. The check is Freivalds' on the masked product, modulo every prime, with two trials.
 * Accepted answers are unmasked, recombined and scaled directly into C, so no sum is kept. The
 * source of R*B is trusted (its tags were checked); of an answer only the length is.
 */
#include "schemes/blind/blind.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/wipe.h"
#include "crypto/binding.h"
#include "crypto/fragment_make.h"
#include "crypto/freivalds.h"
#include "matrix/exact.h"
#include "matrix/view.h"
#include "schemes/partition/partition.h"
#include "schemes/slots.h"

#define RUN_BYTES ((size_t)256 << 10) /* size of a run of rows, as doubles */
#define TRIALS 2u

/* Check vectors of a tile, and B times them. After a wrong answer new ones are drawn. Cells that
 * were hidden under the old ones keep these until their answers are checked, with the new ones. */
typedef struct blind_probe {
    unsigned refs;
    size_t width;
    double *s, *vs; /* for each prime and trial: width numbers; k numbers */
} blind_probe;

/* State of a cell between hiding and folding it. */
typedef struct blind_cell {
    size_t rows;
    blind_probe *probe;
    double *r;                /* for each prime and trial: rows numbers */
    uint32_t want[4][TRIALS]; /* (rT*U)*(B*s) */
} blind_cell;

typedef struct blind {
    sherd__blind_params p;
    size_t n, k, m, run_rows;
    size_t *bounds, longest; /* of the rows of slots (schemes/slots.h); rows of the longest slot */
    uint32_t panels, tiles;
    blind_cell **cells;      /* (tile, panel, slot) */
    blind_probe **probes;    /* for each tile */
    sherd__masks *masks;     /* NULL until armed */
    sherd__binding *binding; /* runs: (panel, slot) */
    uint64_t first_row;
    sherd__crt crt;
    uint8_t dtype_b;
    double *x, *u;   /* run_rows x k: quantised rows; masked rows */
    double *ru;      /* for each prime and trial: k numbers */
    double *line;    /* (primes + 1) x tile_cols */
    uint8_t *packed; /* 3 x tile_cols */
} blind;

static void wipe_free(void *p, size_t len)
{
    if (p) sherd__wipe(p, len);
    sherd__free(p);
}

static uint32_t trials(const blind *h)
{
    return h->p.primes_len * TRIALS;
}

static size_t tile_width(const blind *h, uint32_t tile)
{
    size_t left = h->m - (size_t)tile * h->p.tile_cols;
    return left < h->p.tile_cols ? left : h->p.tile_cols;
}

/* Returns the number of A's rows in the slot, and the first of them. */
static size_t slot_rows(const blind *h, uint32_t slot, size_t *row0)
{
    *row0 = h->bounds[slot];
    return h->bounds[slot + 1] - h->bounds[slot];
}

/* Returns the number of A's rows in the cell, and the first of them. */
static size_t cell_rows(const blind *h, sherd__cell c, size_t *row0)
{
    size_t rows = slot_rows(h, c.slot, row0), from = (size_t)c.panel * h->p.panel_rows;
    if (from > rows) from = rows;
    *row0 += from;
    return rows - from < h->p.panel_rows ? rows - from : h->p.panel_rows;
}

static blind_cell **cell_of(const blind *h, sherd__cell c)
{
    assert(c.slot < h->p.slots && c.tile < h->tiles && c.panel < h->panels);
    return &h->cells[((size_t)c.tile * h->panels + c.panel) * h->p.slots + c.slot];
}

int sherd__blind_mask(sherd__masks *m, uint32_t q, uint32_t p, sherd__mask_part part, double *out)
{
    const sherd__mask_id id = {
        .role = SHERD__MASK_LEFT, .prime_index = q, .p = p, .width = part.cols
    };
    assert(part.col == 0);
    return sherd__masks_part(m, &id, part, out, part.cols);
}

/* ---- check vectors --------------------------------------------------------------------------- */

static void probe_drop(const blind *h, blind_probe *p)
{
    if (!p || --p->refs) return;
    wipe_free(p->s, trials(h) * p->width * sizeof *p->s);
    wipe_free(p->vs, trials(h) * h->k * sizeof *p->vs);
    sherd__free(p);
}

static void cell_free(const blind *h, blind_cell *c)
{
    if (!c) return;
    wipe_free(c->r, trials(h) * c->rows * sizeof *c->r);
    probe_drop(h, c->probe);
    sherd__free(c);
}

/* Draws vectors of n residues for every prime and trial. */
static double *draw(const blind *h, size_t n)
{
    double *out = sherd__calloc(trials(h), n * sizeof *out);
    for (uint32_t t = 0; out && t < trials(h); t++)
        sherd__fvp_draw(&h->p.entropy, h->p.primes[t / TRIALS], n, out + t * n);
    return out;
}

/* Computes B*s, row by row; `line` holds a row of B, then its residues. */
static void project(const blind *h, size_t from, blind_probe *p)
{
    double *row = h->line, *residues = h->line + h->p.tile_cols;
    for (size_t i = 0; i < h->k; i++) {
        sherd__fixed_row(&h->p.fixed_b, h->p.b, i, from, p->width, row);
        for (uint32_t q = 0; q < h->p.primes_len; q++) {
            const double *s = p->s + q * TRIALS * p->width, *const both[] = { s, s + p->width };
            double *at = p->vs + q * TRIALS * h->k + i, *const out[] = { at, at + h->k };
            sherd__residue_from_f64(row, p->width, h->p.primes[q], residues);
            sherd__fvp_right(residues, 1, p->width, p->width, both, h->p.primes[q], out);
        }
    }
}

static int make_probe(blind *h, uint32_t tile)
{
    blind_probe *p = sherd__calloc(1, sizeof *p);
    if (!p) return SHERD_ENOMEM;
    p->refs = 1;
    p->width = tile_width(h, tile);
    p->s = draw(h, p->width);
    p->vs = sherd__calloc(trials(h), h->k * sizeof *p->vs);
    if (!p->s || !p->vs) {
        probe_drop(h, p);
        return SHERD_ENOMEM;
    }
    project(h, (size_t)tile * h->p.tile_cols, p);
    h->probes[tile] = p;
    return SHERD_OK;
}

/* ---- hiding ---------------------------------------------------------------------------------- */

/* A pass over the rows of a cell, which are those of A from row0 on. */
typedef struct pass {
    size_t row0;
    size_t since[SHERD__TABLE_PRIMES]; /* see sherd__fvp_left */
    sherd__binding_hash hash;
    uint8_t *body; /* NULL: only projects */
} pass;

/* Masks, projects and packs rows `at` to at + rows of the cell. */
static int hide_run(blind *h, const blind_cell *cell, pass *w, size_t at, size_t rows)
{
    size_t n = rows * h->k, row0 = w->row0 + at;
    for (size_t i = 0; i < rows; i++)
        sherd__fixed_row(&h->p.fixed_a, h->p.a, row0 + i, 0, h->k, h->x + i * h->k);
    int err = sherd__binding_add(h->binding, &w->hash, h->x, n);
    for (uint32_t q = 0; q < h->p.primes_len && !err; q++) {
        uint32_t p = h->p.primes[q];
        err = sherd__blind_mask(h->masks, q, p,
                                (sherd__mask_part){ h->first_row + row0, rows, 0, h->k }, h->u);
        if (err) return err;
        for (size_t i = 0; i < n; i++) h->u[i] += h->x[i]; /* below 2^22 + 2^25 in magnitude */
        sherd__residue_from_f64(h->u, n, p, h->u);
        const double *r = cell->r + q * TRIALS * cell->rows + at, *const both[] = {
            r, r + cell->rows
        };
        double *to = h->ru + q * TRIALS * h->k, *const acc[] = { to, to + h->k };
        sherd__fvp_left(h->u, rows, h->k, h->k, both, p, acc, &w->since[q]);
        if (!w->body) continue;
        sherd__residue_pack(h->u, n, p,
                            w->body + SHERD__RESIDUE_BYTES * ((size_t)q * cell->rows + at) * h->k);
    }
    return err;
}

/* SHERD_EIO: the rows differ from those that their masks hid before, or exceed the values that
 * masks can hide. */
static int hide_rows(blind *h, sherd__cell c, blind_cell *cell, size_t row0, uint8_t *body)
{
    pass w = { .row0 = row0, .body = body };
    int err = SHERD_OK;
    memset(h->ru, 0, trials(h) * h->k * sizeof *h->ru);
    for (size_t at = 0; at < cell->rows && !err; at += h->run_rows) {
        size_t rows = cell->rows - at < h->run_rows ? cell->rows - at : h->run_rows;
        err = hide_run(h, cell, &w, at, rows);
    }
    if (!err) err = sherd__binding_hold(h->binding, (size_t)c.panel * h->p.slots + c.slot, &w.hash);
    sherd__wipe(h->x, h->run_rows * h->k * sizeof *h->x);
    sherd__wipe(h->u, h->run_rows * h->k * sizeof *h->u);
    for (uint32_t t = 0; t < trials(h) && !err; t++) {
        double *ru = h->ru + t * h->k;
        uint32_t p = h->p.primes[t / TRIALS];
        sherd__residue_from_f64(ru, h->k, p, ru);
        cell->want[t / TRIALS][t % TRIALS] = sherd__fvp_dot(ru, cell->probe->vs + t * h->k, h->k,
                                                            p);
    }
    return err;
}

static blind_cell *cell_new(blind *h, sherd__cell at, size_t rows)
{
    blind_cell *c = sherd__calloc(1, sizeof *c);
    if (!c) return NULL;
    c->rows = rows;
    c->r = draw(h, rows);
    if (!c->r) {
        cell_free(h, c);
        return NULL;
    }
    c->probe = h->probes[at.tile];
    c->probe->refs++;
    return c;
}

static sherd__fragment_info block(const blind *h, uint8_t origin, size_t rows, size_t cols)
{
    return (sherd__fragment_info){
        .origin = origin,
        .dtype = SHERD__RESIDUES,
        .primes = (uint8_t)h->p.primes_len,
        .rows = rows,
        .cols = cols,
        .len = (uint64_t)rows * cols * SHERD__RESIDUE_BYTES * h->p.primes_len,
    };
}

static int blind_sizes(void *ctx, sherd__cell at, sherd__cell_sizes *out)
{
    const blind *h = ctx;
    size_t row0, rows = cell_rows(h, at, &row0);
    *out = (sherd__cell_sizes){ .empty = rows == 0 || h->k == 0 };
    out->left = block(h, SHERD__HIDDEN, rows, h->k);
    out->result = block(h, SHERD__RESULT, rows, tile_width(h, at.tile));
    return SHERD_OK;
}

static sherd__changed blind_changed(const void *ctx)
{
    const blind *h = ctx;
    return sherd__binding_broken(h->binding) ? SHERD__LEFT_CHANGED : SHERD__UNCHANGED;
}

static int blind_hide(void *ctx, sherd__cell at, sherd__cell_work *out)
{
    blind *h = ctx;
    size_t row0, rows = cell_rows(h, at, &row0);
    blind_cell **keep = cell_of(h, at), *cell = NULL;
    *out = (sherd__cell_work){ .empty = rows == 0 || h->k == 0 };
    cell_free(h, *keep);
    *keep = NULL;
    if (out->empty) return SHERD_OK;
    if (blind_changed(h)) return SHERD_EIO;
    int err = !h->masks && h->p.strike ? h->p.strike(h->p.strike_ctx) : SHERD_OK;
    if (err) return err;
    if (!h->masks) return SHERD_EINTERNAL; /* no masks were reserved */
    err = h->probes[at.tile] ? SHERD_OK : make_probe(h, at.tile);
    if (err) return err;
    sherd__fragment_info left = block(h, SHERD__HIDDEN, rows, h->k);
    out->result = block(h, SHERD__RESULT, rows, h->probes[at.tile]->width);
    uint8_t *body = sherd__alloc((size_t)left.len);
    if (!body || !(cell = cell_new(h, at, rows))) err = SHERD_ENOMEM;
    if (!err) err = hide_rows(h, at, cell, row0, body);
    if (!err) err = sherd__fragment_take(&out->left, &left, body, NULL, NULL);
    if (err) {
        wipe_free(body, (size_t)left.len);
        cell_free(h, cell);
    } else {
        *keep = cell;
    }
    return err;
}

static int blind_resident(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out)
{
    const blind *h = ctx;
    (void)slot;
    return sherd__blind_tile(out, h->p.b, &h->p.fixed_b, h->dtype_b, (size_t)tile * h->p.tile_cols,
                             tile_width(h, tile));
}

/* ---- answers --------------------------------------------------------------------------------- */

static int check_prime(const blind *h, const blind_cell *c, uint32_t q, const uint8_t *body)
{
    size_t width = c->probe->width;
    const double *r = c->r + (size_t)q * TRIALS * c->rows, *s = c->probe->s + q * TRIALS * width;
    const double *const rs[] = { r, r + c->rows }, *const ss[] = { s, s + width };
    uint32_t got[TRIALS];
    int err = sherd__fvp_answer(body + SHERD__RESIDUE_BYTES * (size_t)q * c->rows * width, c->rows,
                                width, rs, ss, h->p.primes[q], got);
    return err || memcmp(got, c->want[q], sizeof got) != 0 ? SHERD_EWRONG : SHERD_OK;
}

/* Checks a cell that was hidden before a wrong answer with vectors drawn after it: its rows are
 * projected again. */
static int renew(blind *h, sherd__cell at, blind_cell *c)
{
    size_t row0;
    if (c->probe == h->probes[at.tile]) return SHERD_OK;
    int err = h->probes[at.tile] ? SHERD_OK : make_probe(h, at.tile);
    if (err) return err;
    double *r = draw(h, c->rows);
    if (!r) return SHERD_ENOMEM;
    wipe_free(c->r, trials(h) * c->rows * sizeof *c->r);
    c->r = r;
    probe_drop(h, c->probe);
    c->probe = h->probes[at.tile];
    c->probe->refs++;
    (void)!cell_rows(h, at, &row0);
    return hide_rows(h, at, c, row0, NULL);
}

static int blind_check(void *ctx, sherd__cell at, const uint8_t *body)
{
    blind *h = ctx;
    blind_cell *c = *cell_of(h, at);
    int err = c ? renew(h, at, c) : SHERD_EINTERNAL;
    for (uint32_t q = 0; q < h->p.primes_len && !err; q++) err = check_prime(h, c, q, body);
    /* The sender of a wrong answer may have learnt something about these vectors: drop them. */
    for (uint32_t t = 0; t < h->tiles && err == SHERD_EWRONG; t++) {
        probe_drop(h, h->probes[t]);
        h->probes[t] = NULL;
    }
    return err;
}

/* Writes row `row` of C within the tile: the answer minus R*B, recombined and scaled. */
static int unmask_row(blind *h, const blind_cell *c, size_t i, size_t row, size_t from,
                      const uint8_t *body)
{
    size_t width = c->probe->width;
    const double *residue[4];
    double *rb = h->line + (size_t)h->p.primes_len * h->p.tile_cols;
    for (uint32_t q = 0; q < h->p.primes_len; q++) {
        uint32_t p = h->p.primes[q];
        double *y = h->line + (size_t)q * h->p.tile_cols;
        int err = sherd__residue_unpack(body + SHERD__RESIDUE_BYTES * ((size_t)q * c->rows + i) *
                                                   width,
                                        width, p, y, NULL);
        if (!err)
            err = h->p.source.row(h->p.source.ctx, h->first_row + row, q, from, width, h->packed);
        if (!err) err = sherd__residue_unpack(h->packed, width, p, rb, NULL);
        /* the answer has been checked, so R*B is wrong */
        if (err) return err == SHERD_EFRAME ? SHERD_EFORMAT : err;
        for (size_t j = 0; j < width; j++) y[j] -= rb[j];
        sherd__residue_from_f64(y, width, p, y);
        residue[q] = y;
    }
    sherd__crt_f64(&h->crt, residue, width, h->p.fixed_a.scale + h->p.fixed_b.scale,
                   h->p.c + row * h->p.ldc + from);
    return SHERD_OK;
}

static int blind_fold(void *ctx, sherd__cell at, const uint8_t *body)
{
    blind *h = ctx;
    blind_cell **keep = cell_of(h, at), *c = *keep;
    size_t row0, from = (size_t)at.tile * h->p.tile_cols;
    int err = SHERD_OK;
    (void)!cell_rows(h, at, &row0);
    for (size_t i = 0; c && i < c->rows && !err; i++)
        err = unmask_row(h, c, i, row0 + i, from, body);
    cell_free(h, c);
    *keep = NULL;
    return err;
}

static int blind_finish(void *ctx)
{
    (void)ctx;
    return SHERD_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void blind_free(void *ctx)
{
    blind *h = ctx;
    size_t cells = (size_t)h->panels * h->tiles * h->p.slots;
    for (size_t i = 0; h->cells && i < cells; i++) cell_free(h, h->cells[i]);
    for (uint32_t i = 0; h->probes && i < h->tiles; i++) probe_drop(h, h->probes[i]);
    sherd__masks_free(h->masks);
    sherd__binding_free(h->binding);
    sherd__free(h->bounds);
    sherd__free(h->cells);
    sherd__free(h->probes);
    sherd__free(h->x);
    sherd__free(h->u);
    wipe_free(h->ru, trials(h) * h->k * sizeof *h->ru);
    wipe_free(h->line, (h->p.primes_len + 1) * h->p.tile_cols * sizeof *h->line); /* contains R*B */
    wipe_free(h->packed, SHERD__RESIDUE_BYTES * h->p.tile_cols);
    sherd__wipe(h, sizeof *h);
    sherd__free(h);
}

static void blind_shape(const void *ctx, sherd__scheme_shape *out)
{
    const blind *h = ctx;
    size_t rows = h->longest < h->p.panel_rows ? h->longest : h->p.panel_rows;
    *out = (sherd__scheme_shape){
        .slots = h->p.slots,
        .tiles = h->tiles,
        .panels = h->panels,
        .resident = true,
        .shared = true,
        .result_max = (uint64_t)rows * h->p.tile_cols * SHERD__RESIDUE_BYTES * h->p.primes_len,
        .primes_len = h->p.primes_len,
    };
    memcpy(out->primes, h->p.primes, sizeof out->primes);
}

/* No entry of A is revealed. */
static void blind_entries(const void *ctx, sherd__cell cell, uint64_t *a, uint64_t *b)
{
    const blind *h = ctx;
    *a = 0;
    *b = (uint64_t)h->k * tile_width(h, cell.tile);
}

static const sherd__hiding_ops scheme_blind = {
    .shape = blind_shape,
    .hide = blind_hide,
    .resident = blind_resident,
    .check = blind_check,
    .fold = blind_fold,
    .entries = blind_entries,
    .sizes = blind_sizes,
    .changed = blind_changed,
    .finish = blind_finish,
    .free = blind_free,
};

static int open_blind(blind *h)
{
    size_t cells, rows = h->longest = sherd__slots_longest(h->n, h->p.slots, h->p.weights);
    if (!(h->bounds = sherd__calloc((size_t)h->p.slots + 1, sizeof *h->bounds)))
        return SHERD_ENOMEM;
    sherd__slots_bounds(h->n, h->p.slots, h->p.weights, h->bounds);
    int err = sherd__crt_init(&h->crt, h->p.primes, h->p.primes_len);
    if (err) return err;
    if (h->p.panel_rows > rows) h->p.panel_rows = rows ? rows : 1;
    if (h->p.tile_cols > h->m) h->p.tile_cols = h->m ? h->m : 1;
    h->panels = rows ? (uint32_t)((rows - 1) / h->p.panel_rows + 1) : 0;
    h->tiles = h->m ? (uint32_t)((h->m - 1) / h->p.tile_cols + 1) : 0;
    h->run_rows = RUN_BYTES / (sizeof(double) * (h->k ? h->k : 1));
    if (h->run_rows > h->p.panel_rows) h->run_rows = h->p.panel_rows;
    if (h->run_rows == 0) h->run_rows = 1;
    if (!sherd__mul((size_t)h->panels * h->tiles, h->p.slots, &cells)) return SHERD_ENOMEM;
    h->cells = sherd__calloc(cells, sizeof(blind_cell *));
    h->probes = sherd__calloc(h->tiles, sizeof(blind_probe *));
    h->x = sherd__calloc(h->run_rows, h->k * sizeof *h->x);
    h->u = sherd__calloc(h->run_rows, h->k * sizeof *h->u);
    h->ru = sherd__calloc(trials(h), h->k * sizeof *h->ru);
    h->line = sherd__calloc(h->p.primes_len + 1, h->p.tile_cols * sizeof *h->line);
    h->packed = sherd__calloc(h->p.tile_cols, SHERD__RESIDUE_BYTES);
    h->dtype_b = sherd__partition_dtype(h->p.b, true, &h->p.fixed_b);
    err = sherd__binding_new(&h->binding, (size_t)h->panels * h->p.slots,
                             (double)h->p.fixed_a.bound, &h->p.entropy);
    if (err) return err;
    return h->cells && h->probes && h->x && h->u && h->ru && h->line && h->packed ? SHERD_OK
                                                                                  : SHERD_ENOMEM;
}

int sherd__blind_open(sherd__hiding *out, const sherd__blind_params *p)
{
    *out = (sherd__hiding){ 0 };
    uint64_t widest = (UINT64_C(1) << 25) - 1;
    if (!p->slots || !p->panel_rows || !p->tile_cols || p->fixed_a.bound > widest ||
        p->fixed_b.bound > widest)
        return SHERD_EINVAL;
    blind *h = sherd__calloc(1, sizeof *h);
    if (!h) return SHERD_ENOMEM;
    h->p = *p;
    h->n = p->a.rows;
    h->k = p->a.cols;
    h->m = p->b.cols;
    int err = open_blind(h);
    if (err) {
        blind_free(h);
        return err;
    }
    for (size_t i = 0; p->c && i < h->n; i++) memset(p->c + i * p->ldc, 0, h->m * sizeof *p->c);
    *out = (sherd__hiding){ &scheme_blind, h };
    return SHERD_OK;
}

int sherd__blind_arm(sherd__hiding *hiding, const uint8_t key[32], uint64_t first_row)
{
    blind *h = hiding->ctx;
    if (h->masks) return SHERD_EINVAL;
    h->first_row = first_row;
    return sherd__masks_from_key(&h->masks, key);
}

size_t sherd__blind_planned(const sherd__hiding *hiding, uint32_t slot)
{
    size_t row0;
    return slot_rows(hiding->ctx, slot, &row0);
}
