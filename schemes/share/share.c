/*
 * Layout and lifetime of `share` and `share1`: how A is cut into blocks and panels, and the right
 * operand into tiles, the weights, and which masks belong to which encoding. An encoding of A lives
 * as long as the hiding; every right operand is a separate encoding with its own masks.
 */
#include "schemes/share/share.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "matrix/exact.h"
#include "matrix/residue.h"
#include "schemes/partition/partition.h"
#include "schemes/share/bytes.h"

/* --- weights --------------------------------------------------------------------------------- */

/* Computes the weights for each prime: of A and D (shares x K+T), and of B (shares x its terms; if
 * it is public, one term of weight 1). */
static int weights(share *d)
{
    const sherd__lcc *c = &d->p.code;
    uint32_t terms = c->blocks + c->masks;
    uint32_t wide = d->p.public_b ? 1 : sherd__code_right_blocks(d->p.by, c) + c->masks;
    size_t each = (size_t)c->shares * (terms + wide);
    d->weights = sherd__calloc(d->p.primes_len, each * sizeof *d->weights);
    if (!d->weights) return SHERD_ENOMEM;
    for (uint32_t q = 0; q < d->p.primes_len; q++) {
        double *wa = d->weights + q * each, *wb = wa + (size_t)c->shares * terms;
        d->a.w[q] = wa;
        d->b_weights[q] = wb;
        for (uint32_t i = 0; i < c->shares; i++, wa += terms, wb += wide) {
            int err = d->p.by->left(c, d->p.primes[q], i, wa);
            if (!err && !d->p.public_b) err = d->p.by->right(c, d->p.primes[q], i, wb);
            if (err) return err;
            if (d->p.public_b) *wb = 1;
        }
    }
    return SHERD_OK;
}

/* Makes the weights of an operand whose weights in `from` are canonical, for its seeds. */
static int narrow(const share *d, share_operand *o, const double *const *from, int8_t *to)
{
    const size_t each = (size_t)d->p.code.shares * o->terms;
    double *w = sherd__alloc(each * sizeof *w);
    int err = w ? SHERD_OK : SHERD_ENOMEM;
    for (uint32_t q = 0; q < d->p.primes_len && !err; q++, to += each) {
        memcpy(w, from[q], each * sizeof *w);
        if (o->seeds)
            err = sherd__seeded_weights(d->p.primes[q], d->p.code.shares, o->blocks, o->masks,
                                        o->seeded, w);
        for (size_t i = 0; i < each; i++) to[i] = (int8_t)w[i];
        o->w_bytes[q] = to;
    }
    sherd__free(w);
    return err;
}

/* Chooses the slots of an operand's seeds: those from number `turn` on. */
static void choose_seeds(const share *d, share_operand *o, size_t turn)
{
    const uint32_t all = d->p.seed_slots_len;
    if (!all) return;
    o->seeds = o->masks;
    for (uint32_t t = 0; t < o->masks; t++) o->seeded[t] = d->seed_slots[(turn + t) % all];
}

/* A and the right operand have weights of their own, each of up to K+T terms for a share. */
static int weights_bytes(share *d)
{
    const sherd__lcc *c = &d->p.code;
    const size_t each = (size_t)c->shares * d->a.terms * d->p.primes_len;
    d->weights_bytes = sherd__alloc(2 * each);
    if (!d->weights_bytes) return SHERD_ENOMEM;
    d->right_bytes = d->weights_bytes + each;
    choose_seeds(d, &d->a, 0);
    return narrow(d, &d->a, d->a.w, d->weights_bytes);
}

/* --- the right operand ----------------------------------------------------------------------- */

static void close_right(share *d)
{
    sherd__share_forget_right(d);
    for (uint32_t t = 0; d->tile && t < d->tiles; t++) {
        sherd__share_forget(d->tile[t].sum);
        sherd__share_forget(d->tile[t].whole);
    }
    for (size_t i = 0; d->spot && i < (size_t)d->tiles * d->panels; i++)
        sherd__share_batch_close(d, &d->spot[i].batch);
    sherd__free(d->tile);
    sherd__free(d->spot);
    d->tile = NULL;
    d->spot = NULL;
    sherd__share_loop_free(d);
    if (d->bytes) sherd__share_bytes_forget_b(d);
    sherd__masks_free(d->b_masks);
    d->b_masks = NULL;
    d->tiles = 0;
}

static share_operand right_of(const share *d, sherd_view b, const sherd__fixed *fixed)
{
    share_operand o = { .v = b, .fixed = *fixed, .role = SHERD__MASK_RIGHT };
    o.blocks = d->transposed   ? d->p.code.blocks
               : d->p.public_b ? 1
                               : sherd__code_right_blocks(d->p.by, &d->p.code);
    o.masks = d->p.public_b ? 0 : d->p.code.masks;
    o.terms = o.blocks + o.masks;
    memcpy(o.w, d->transposed ? d->a.w : d->b_weights, sizeof o.w);
    return o;
}

/* Creates or resets the binding of a right operand of which nothing has been hidden yet. */
static int bind_right(share *d, const sherd__fixed *fixed)
{
    size_t each = d->panels, runs;
    if (!d->transposed) {
        if (d->bytes) sherd__share_bytes_loop_size(d);
        else sherd__share_loop_size(d);
        each = sherd__share_tile_runs(d);
    }
    if (!sherd__mul(d->tiles, each, &runs)) return SHERD_ENOMEM;
    int err = d->b_binding
                  ? sherd__binding_reset(d->b_binding, runs, (double)fixed->bound)
                  : sherd__binding_new(&d->b_binding, runs, (double)fixed->bound, &d->p.entropy);
    d->b.binding = d->b_binding;
    d->b.run_rows = d->transposed ? SIZE_MAX : d->loop.rows;
    return err;
}

/* Makes the tiles and positions of a product with b, and fresh masks for it. */
static int open_right(share *d, sherd_view b, const sherd__fixed *fixed)
{
    d->m = b.cols;
    d->b = right_of(d, b, fixed);
    d->tile_cols = d->p.tile_cols < d->m ? d->p.tile_cols : d->m;
    size_t spots, tiles = d->m ? (d->m - 1) / d->tile_cols + 1 : 0;
    if (tiles > UINT32_MAX || !sherd__mul(tiles, d->panels, &spots)) return SHERD_ENOMEM;
    d->tile = sherd__calloc(tiles, sizeof *d->tile);
    d->spot = sherd__calloc(spots, sizeof *d->spot);
    if (!d->tile || !d->spot) return SHERD_ENOMEM;
    d->tiles = (uint32_t)tiles;
    d->dtype_b = SHERD__RESIDUES;
    if (d->p.public_b) {
        d->dtype_b = sherd__partition_dtype(b, true, fixed);
        if (d->dtype_b == SHERD_F64) d->dtype_b = SHERD__RESIDUES; /* more than 32 bits */
        return SHERD_OK;
    }
    int err = SHERD_OK;
    if (d->bytes) {
        choose_seeds(d, &d->b, (size_t)++d->rights * d->b.masks);
        err = narrow(d, &d->b, d->b.w, d->right_bytes);
    }
    if (!err) err = sherd__masks_new(&d->b_masks, &d->p.entropy);
    if (!err && !d->transposed) err = sherd__masks_clone(&d->loop.masks, d->b_masks);
    return err ? err : bind_right(d, fixed);
}

/* Decoding writes every number of the result, unless there is nothing to decode. */
static void clear_result(share *d)
{
    size_t rows = d->m == 0 || !d->p.c ? 0 : d->transposed ? d->k : d->rows.count * d->each;
    if (d->panels > 0) return;
    for (size_t i = 0; i < rows; i++) memset(d->p.c + i * d->p.ldc, 0, d->m * sizeof *d->p.c);
}

/* --- lifetime -------------------------------------------------------------------------------- */

static void share_free(void *ctx)
{
    share *d = ctx;
    sherd__share_redraw(d);
    close_right(d);
    for (uint32_t i = 0; d->panel && i < d->lefts; i++)
        sherd__share_batch_close(d, &d->panel[i].left);
    for (uint32_t i = 0; i < SHARE_WEIGHTS; i++) {
        sherd__free(d->cache[i].slots);
        sherd__free(d->cache[i].w);
    }
    sherd__free(d->panel);
    sherd__masks_free(d->a_masks);
    sherd__binding_free(d->a_binding);
    sherd__binding_free(d->b_binding);
    sherd__share_scratch_free(&d->scratch);
    sherd__share_forget(d->line);
    sherd__free(d->weights);
    sherd__free(d->weights_bytes);
    sherd__free(d->seed_slots);
    sherd__share_bytes_free(d);
    sherd__free(d);
}

static void share_shape(const void *ctx, sherd__scheme_shape *out)
{
    const share *d = ctx;
    size_t rows = d->transposed ? d->k : share_panel_most(d) * d->each;
    *out = (sherd__scheme_shape){
        .slots = d->p.code.shares,
        .tiles = d->tiles,
        .panels = d->panels,
        .resident = !d->transposed,
        .shared = d->p.public_b,
        .threshold = d->threshold,
        .left_stays = d->p.left_stays,
        .lefts = d->lefts,
        .left_from = d->first,
        .transposed = d->transposed,
        .windows = d->windows.of,
        .result_max = sherd__share_bytes(d, SHARE_ANSWER, rows, d->tile_cols),
        .primes_len = d->p.primes_len,
    };
    memcpy(out->primes, d->p.primes, sizeof out->primes);
}

static void share_entries(const void *ctx, sherd__cell cell, uint64_t *a, uint64_t *b)
{
    (void)ctx;
    (void)cell;
    *a = *b = 0;
}

/* Nothing to do: every position was written when it was decoded. */
static int share_finish(void *ctx)
{
    (void)ctx;
    return SHERD_OK;
}

sherd__changed sherd__share_changed(const void *ctx)
{
    const share *d = ctx;
    return sherd__binding_broken(d->a_binding)   ? SHERD__LEFT_CHANGED
           : sherd__binding_broken(d->b_binding) ? SHERD__RIGHT_CHANGED
                                                 : SHERD__UNCHANGED;
}

/* Positions are decoded, not folded cell by cell. */
static int share_fold(void *ctx, sherd__cell cell, const uint8_t *body)
{
    (void)ctx;
    (void)cell;
    (void)body;
    return SHERD_EINTERNAL;
}

static const sherd__hiding_ops scheme_share = {
    .shape = share_shape,
    .hide = sherd__share_hide,
    .spare = sherd__share_spare,
    .resident = sherd__share_resident,
    .left = sherd__share_left,
    .check = sherd__share_check,
    .fold = share_fold,
    .decode = sherd__share_decode,
    .entries = share_entries,
    .sizes = sherd__share_sizes,
    .changed = sherd__share_changed,
    .finish = share_finish,
    .free = share_free,
};

/* Returns false if only A's encoding is opened, for later products. */
static bool has_product(const sherd__share_params *p)
{
    return p->c || !p->left_stays;
}

static int params_check(const sherd__share_params *p, uint32_t threshold)
{
    if (!p->panel_rows || !p->tile_cols || p->primes_len < 1 ||
        p->primes_len > (p->bytes ? SHERD__BYTE_PRIMES : SHERD__TABLE_PRIMES))
        return SHERD_EINVAL;
    if (p->bytes && (p->public_b || p->windows.window || p->a.cols > SHERD__SHARE_TERMS ||
                     p->panel_rows > SHERD__SHARE_TERMS || p->tile_cols > SHERD__SHARE_TERMS ||
                     p->a.rows > UINT32_MAX || p->b.cols > UINT32_MAX))
        return SHERD_EINVAL;
    if (p->seed_slots_len && (!p->bytes || p->seed_slots_len < p->code.masks)) return SHERD_EINVAL;
    for (uint32_t i = 0; i < p->seed_slots_len; i++)
        if (p->seed_slots[i] >= p->code.shares) return SHERD_EINVAL;
    for (uint32_t q = 0; q < p->primes_len; q++) {
        int err = p->by->check(&p->code, p->primes[q]);
        if (err) return err;
    }
    sherd__windows w;
    if (p->windows.window && (!p->left_stays || has_product(p) ||
                              !sherd__windows_fit(&p->windows, &w) || w.image != p->a.cols))
        return SHERD_EINVAL;
    if (has_product(p) && (p->b.rows != p->a.cols || p->ldc < p->b.cols)) return SHERD_EINVAL;
    bool rows = p->by->cut == SHERD__CUT_ROWS;
    bool cut = !rows || p->code.blocks <= p->a.rows || !p->a.rows;
    if (!rows && (p->windows.window || p->public_b)) return SHERD_EINVAL;
    return cut && p->code.shares >= threshold ? SHERD_OK : SHERD_EINVAL;
}

static size_t panels_of(const share *d, size_t rows)
{
    return rows ? ((rows - 1) / share_row_blocks(d)) / d->p.panel_rows + 1 : 0;
}

/* Computes the parts and panels of A, and a product of all of them. If k is 0 there are no panels,
 * and the result is 0. */
static bool lay_out(share *d)
{
    size_t part, full, all;
    d->n = d->p.a.rows;
    d->k = d->windows.count ? d->windows.row : d->p.a.cols;
    d->each = d->windows.count ? d->windows.count : 1;
    d->depth = d->k;
    if (share_cuts_inner(d) && d->k) d->depth = (d->k - 1) / d->p.code.blocks + 1;
    if (!d->p.part_rows || d->p.part_rows > d->n) d->p.part_rows = d->n ? d->n : 1;
    part = d->n ? d->p.part_rows : 0;
    d->h = part ? (part - 1) / share_row_blocks(d) + 1 : 0;
    if (d->p.panel_rows > d->h) d->p.panel_rows = d->h ? d->h : 1;
    full = part ? d->n / part : 0;
    if (!sherd__mul(full, panels_of(d, part), &all)) return false;
    all += part ? panels_of(d, d->n % part) : 0;
    if (all >= UINT32_MAX) return false;
    d->part_panels = part ? (uint32_t)panels_of(d, part) : 1;
    d->lefts = d->panels = d->k ? (uint32_t)all : 0;
    d->rows.count = d->n;
    return true;
}

/* Selects these rows of A for the product. */
static bool take_rows(share *d, sherd_rows rows)
{
    if (rows.first % d->each || rows.count % d->each) return false;
    rows = (sherd_rows){ rows.first / d->each, rows.count / d->each };
    size_t part = d->p.part_rows, end = rows.first + rows.count;
    if (rows.first > d->n || rows.count > d->n - rows.first || rows.first % part ||
        (end % part && end != d->n))
        return false;
    d->rows = rows;
    d->first = (uint32_t)(rows.first / part) * d->part_panels;
    d->panels = d->k ? (uint32_t)(rows.count / part * d->part_panels +
                                  panels_of(d, rows.count % part))
                     : 0;
    return true;
}

static int open_left(share *d)
{
    const sherd__lcc *c = &d->p.code;
    if (!lay_out(d)) return SHERD_ENOMEM;
    d->a = (share_operand){ .v = d->p.a,
                            .fixed = d->p.fixed_a,
                            .blocks = c->blocks,
                            .masks = c->masks,
                            .terms = c->blocks + c->masks,
                            .role = SHERD__MASK_LEFT,
                            .run_rows = SIZE_MAX,
                            .windows = d->windows.count ? &d->windows : NULL };
    d->panel = sherd__calloc(d->lefts, sizeof *d->panel);
    if (!d->panel) return SHERD_ENOMEM;
    int err = SHERD_OK;
    if (d->p.bytes) sherd__bytes_crt_init(&d->crt_bytes, d->p.primes_len);
    else err = sherd__crt_init(&d->crt, d->p.primes, d->p.primes_len);
    if (!err) err = weights(d);
    if (!err && d->p.bytes) err = weights_bytes(d);
    if (!err && d->p.bytes) err = sherd__share_bytes_open(d);
    if (!err) err = sherd__masks_new(&d->a_masks, &d->p.entropy);
    if (!err)
        err = sherd__binding_new(&d->a_binding, d->lefts, (double)d->p.fixed_a.bound,
                                 &d->p.entropy);
    d->a.binding = d->a_binding;
    return err;
}

size_t sherd__share_sum_max(const uint32_t *primes, uint32_t len, uint64_t a, uint64_t b)
{
    sherd__u128 all = 1, most;
    for (uint32_t q = 0; q < len; q++) all *= primes[q];
    most = (all - 1) / 2;
    if (len && primes[0] <= UINT8_MAX) most -= all >> 40; /* as sherd__bytes_primes_needed */
    most = most / (a ? a : 1) / (b ? b : 1);
    return most < SIZE_MAX ? (size_t)most : SIZE_MAX;
}

static int copy_seeds(share *d, const sherd__share_params *p)
{
    d->seed_slots = sherd__alloc(p->seed_slots_len * sizeof *d->seed_slots);
    if (!d->seed_slots) return SHERD_ENOMEM;
    memcpy(d->seed_slots, p->seed_slots, p->seed_slots_len * sizeof *d->seed_slots);
    return SHERD_OK;
}

int sherd__share_open(sherd__hiding *out, const sherd__share_params *p)
{
    *out = (sherd__hiding){ 0 };
    uint32_t threshold = p->by->threshold(p->code.blocks, p->code.masks, !p->public_b);
    int err = params_check(p, threshold);
    if (err) return err;
    share *d = sherd__calloc(1, sizeof *d);
    if (!d) return SHERD_ENOMEM;
    d->p = *p;
    d->threshold = threshold;
    d->p.seed_slots = NULL;
    if (p->seed_slots_len) err = copy_seeds(d, p);
    if (p->windows.window) (void)sherd__windows_fit(&p->windows, &d->windows); /* it fits */
    if (!err) err = open_left(d);
    if (!err && has_product(p)) err = open_right(d, p->b, &p->fixed_b);
    if (err) {
        share_free(d);
        return err;
    }
    if (has_product(p)) clear_result(d);
    *out = (sherd__hiding){ &scheme_share, d };
    return SHERD_OK;
}

/*
 * Returns true if sums of `terms` products stay within the primes for which A was encoded. Sums
 * over panels may be larger: they are converted to integers every `group` panels, and added as
 * integers.
 */
static bool in_range(const share *d, size_t terms, bool transposed, const sherd__fixed *b,
                     uint32_t *group)
{
    size_t most = sherd__share_sum_max(d->p.primes, d->p.primes_len, d->p.fixed_a.bound, b->bound);
    size_t panel = d->p.code.blocks * share_panel_most(d) * d->each;
    *group = 0;
    if (terms <= most) return true;
    uint32_t few = d->p.bytes ? SHERD__SHARE_GROUPED_BYTES : SHERD__SHARE_GROUPED;
    if (!transposed || d->p.primes_len > few || panel == 0 || panel > most) return false;
    most /= panel;
    *group = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
    sherd__u128 all;
    return !__builtin_mul_overflow((sherd__u128)terms * d->p.fixed_a.bound, (sherd__u128)b->bound,
                                   &all) &&
           all <= INT64_MAX;
}

int sherd__share_next(sherd__hiding *h, const sherd__kept_product *m, const sherd__fixed *fixed_b)
{
    share *d = h->ctx;
    bool one_way = d->p.public_b || share_cuts_inner(d);
    if (!d->p.left_stays || (m->transposed && one_way)) return SHERD_EINVAL;
    if (m->b.rows != (m->transposed ? m->rows.count : d->k) || m->ld < m->b.cols)
        return SHERD_ESHAPE;
    uint32_t group;
    if (d->bytes && m->b.cols > UINT32_MAX) return SHERD_EINVAL; /* units of masks */
    if (!in_range(d, m->b.rows, m->transposed, fixed_b, &group)) return SHERD_ERANGE;
    close_right(d);
    if (!take_rows(d, m->rows)) return SHERD_EINVAL;
    d->transposed = m->transposed;
    d->group = group;
    d->p.c = m->out;
    d->p.ldc = m->ld;
    int err = open_right(d, m->b, fixed_b);
    if (err) close_right(d);
    else clear_result(d);
    return err;
}
