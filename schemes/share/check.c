/*
 * Freivalds' check of coded answers, two trials for every prime: Y is accepted as u*v only if
 * rT*Y*s = (rT*u)*(v*s). Both sides are linear in the terms of the code. The terms are therefore
 * projected once for each panel and once for each tile, and their products form a small table for
 * each position. The answer of any slot is checked with the table and the slot's weights, without
 * reading a share. r and s are kept as long as the encoding. After the first wrong answer all of
 * them are drawn again; projections of the old ones are discarded and computed again if needed. An
 * answer that comes after its position was decoded is not used; it is checked all the same, unless
 * this would need another projection.
 *
 * Transposed, Y = u^T*d: (u*r) and (d*s) replace rT*u and v*s.
 */
#include <string.h>

#include "core/alloc.h"
#include "schemes/share/bytes.h"
#include "schemes/share/bytes_state.h"

/* --- check vectors --------------------------------------------------------------------------- */

static void drop(void **p)
{
    sherd__share_forget(*p);
    *p = NULL;
}

/* Draws TRIALS vectors of n residues for each prime. */
static int draw(const share *d, size_t n, void **out)
{
    if (*out) return SHERD_OK;
    double *x = sherd__share_secret(d->p.primes_len, TRIALS, n, sizeof *x);
    *out = x;
    if (!x) return SHERD_ENOMEM;
    if (d->bytes) {
        int err = sherd__share_bytes_draw(d, n, *out);
        if (err) drop(out);
        return err;
    }
    for (uint32_t q = 0; q < d->p.primes_len; q++, x += TRIALS * n)
        sherd__fvp_draw(&d->p.entropy, d->p.primes[q], TRIALS * n, x);
    return SHERD_OK;
}

/* Lays out vectors of n byte residues by which rows are multiplied. */
static int lay(const share *d, const void *x, size_t n, void **out)
{
    *out = sherd__share_secret(sherd__share_bytes_laid_vectors(d, n), 1, 1, 1);
    int err = *out ? sherd__share_bytes_lay(d, x, n, *out) : SHERD_ENOMEM;
    if (err) drop(out);
    return err;
}

int sherd__share_draw_r(share *d, uint32_t panel)
{
    int err = draw(d, sherd__share_panel_rows(d, panel), &share_panel_of(d, panel)->r);
    return err || !d->windows.count ? err : draw(d, d->each, &d->across);
}

int sherd__share_draw_s(share *d, uint32_t tile)
{
    const size_t width = share_tile_width(d, tile);
    void **s = &d->tile[tile].s, *x = NULL;
    if (!d->bytes) return draw(d, width, s);
    int err = *s ? SHERD_OK : draw(d, width, &x);
    if (!err && x) err = lay(d, x, width, s);
    drop(&x);
    return err;
}

int sherd__share_draw_rt(share *d)
{
    int err = draw(d, d->k, &d->rt);
    if (err || !d->bytes || d->bytes->rt) return err;
    return lay(d, d->rt, d->k, &d->bytes->rt);
}

const void *sherd__share_rt(const share *d)
{
    return d->bytes ? d->bytes->rt : d->rt;
}

void sherd__share_forget_right(share *d)
{
    for (uint32_t i = 0; d->tile && i < d->tiles; i++) {
        drop(&d->tile[i].s);
        drop(&d->tile[i].vs);
    }
    for (size_t i = 0; d->spot && i < (size_t)d->tiles * d->panels; i++) {
        drop(&d->spot[i].ds);
        drop(&d->spot[i].gram);
    }
}

void sherd__share_redraw(share *d)
{
    for (uint32_t i = 0; d->panel && i < d->lefts; i++) {
        drop(&d->panel[i].r);
        drop(&d->panel[i].ru);
        drop(&d->panel[i].ur);
        d->panel[i].held = 0;
    }
    d->held = 0;
    drop(&d->rt);
    if (d->bytes) drop(&d->bytes->rt);
    drop(&d->across);
    drop(&d->spread);
    sherd__share_forget_right(d);
}

void sherd__share_put_by(share *d, share_panel *p, size_t rows)
{
    size_t each = d->p.primes_len * TRIALS * sizeof(double), all = 0;
    if (p->ru) all += each * d->a.terms * d->depth;
    if (p->ur) all += each * d->a.terms * rows;
    d->held -= p->held;
    p->held = 0;
    if (all <= d->p.check_bytes - d->held) {
        d->held += p->held = all;
        return;
    }
    drop(&p->ru);
    drop(&p->ur);
}

/* --- projections ----------------------------------------------------------------------------- */

/* Makes a pass without shares. *out receives the probe's result (len numbers for each term, prime
 * and trial), of windows if the operand has some. */
static int project(share *d, const share_operand *o, sherd__masks *masks, const share_span *span,
                   share_probe probe, void **out)
{
    if (*out) return SHERD_OK;
    size_t len = probe.r ? span->cols : span->rows * (o->windows ? o->windows->count : 1);
    void *x = sherd__share_secret(d->p.primes_len * TRIALS, o->terms, len, sizeof(double));
    if (!x) return SHERD_ENOMEM;
    if (probe.r) probe.left = x;
    else probe.right = x;
    int err = sherd__share_pass(d, &d->scratch, &(share_source){ o, masks, span }, NULL, &probe);
    if (!err && probe.r && o->windows) err = sherd__share_windows_left(d, &x);
    if (err) sherd__share_forget(x);
    else *out = x;
    return err;
}

/* Projects rT*A of a panel and B*s of a tile. */
static int project_product(share *d, uint32_t tile, uint32_t panel)
{
    share_panel *l = share_panel_of(d, panel);
    share_tile *r = &d->tile[tile];
    const share_span a = sherd__share_span_a(d, panel), b = sherd__share_span_b(d, tile);
    int err = sherd__share_draw_r(d, panel);
    if (!err) err = project(d, &d->a, d->a_masks, &a, (share_probe){ .r = l->r }, &l->ru);
    if (!err) err = sherd__share_draw_s(d, tile);
    return err ? err : project(d, &d->b, d->b_masks, &b, (share_probe){ .s = r->s }, &r->vs);
}

/* Projects A*r of a panel and D*s of a position. */
static int project_transposed(share *d, uint32_t tile, uint32_t panel, share_spot *spot)
{
    share_panel *l = share_panel_of(d, panel);
    const share_span a = sherd__share_span_a(d, panel), b = sherd__share_span_d(d, tile, panel);
    int err = sherd__share_draw_rt(d);
    if (!err)
        err = project(d, &d->a, d->a_masks, &a, (share_probe){ .s = sherd__share_rt(d) }, &l->ur);
    if (!err) err = sherd__share_draw_s(d, tile);
    const share_probe s = { .s = d->tile[tile].s };
    return err ? err : project(d, &d->b, d->b_masks, &b, s, &spot->ds);
}

/* Computes the products of every projected term of the left operand with every one of the right. */
static int table(share *d, uint32_t tile, uint32_t panel, share_spot *spot)
{
    if (spot->gram) return SHERD_OK;
    int err = d->transposed ? project_transposed(d, tile, panel, spot)
                            : project_product(d, tile, panel);
    if (err) return err;
    const double *x = d->transposed ? share_panel_of(d, panel)->ur : share_panel_of(d, panel)->ru;
    const double *y = d->transposed ? spot->ds : d->tile[tile].vs;
    size_t len = d->transposed ? sherd__share_answer_rows(d, panel) : d->depth;
    uint32_t trials = d->p.primes_len * TRIALS;
    if (d->bytes) {
        spot->gram = sherd__share_secret(d->p.primes_len * CHECKS * CHECKS, d->a.terms, d->b.terms,
                                         1);
        if (!spot->gram) return SHERD_ENOMEM;
        sherd__share_bytes_table(d, (const void *)x, (const void *)y, len, spot->gram);
        drop(&spot->ds);
        return SHERD_OK;
    }
    uint32_t *g = sherd__share_secret(trials, d->a.terms, d->b.terms, sizeof *g);
    if (!g) return SHERD_ENOMEM;
    spot->gram = g;
    for (uint32_t t = 0; t < trials; t++, y += d->b.terms * len)
        for (uint32_t i = 0; i < d->a.terms; i++, x += len)
            for (uint32_t j = 0; j < d->b.terms; j++)
                *g++ = sherd__fvp_dot(x, y + j * len, len, d->p.primes[t / TRIALS]);
    drop(&spot->ds);
    return SHERD_OK;
}

/* --- checks ---------------------------------------------------------------------------------- */

static uint64_t residue(double w, uint32_t p)
{
    return (uint64_t)(w < 0 ? w + (double)p : w);
}

/* Returns the value that rT*Y*s must have for a slot's answer in one trial. */
static uint32_t expected(const share *d, const share_spot *spot, uint32_t q, uint32_t t,
                         uint32_t slot)
{
    uint32_t p = d->p.primes[q], la = d->a.terms, lb = d->b.terms;
    const double *wa = d->a.w[q] + (size_t)slot * la, *wb = d->b.w[q] + (size_t)slot * lb;
    const uint32_t *g = (const uint32_t *)spot->gram + ((size_t)q * TRIALS + t) * la * lb;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < la; i++) {
        uint64_t row = 0;
        for (uint32_t j = 0; j < lb; j++) row = (row + residue(wb[j], p) * *g++) % p;
        sum = (sum + residue(wa[i], p) * row) % p;
    }
    return (uint32_t)sum;
}

/* Checks one prime's part of an answer. */
static int judge(const share *d, sherd__cell c, uint32_t q, const double *r, size_t rows,
                 const uint8_t *body)
{
    const share_spot *spot = share_spot_of(d, c.tile, c.panel);
    size_t width = share_tile_width(d, c.tile);
    const double *s = (const double *)d->tile[c.tile].s + q * TRIALS * width;
    const double *const rs[] = { r, r + rows }, *const ss[] = { s, s + width };
    uint32_t rys[TRIALS];
    if (sherd__fvp_answer(body, rows, width, rs, ss, d->p.primes[q], rys)) return SHERD_EWRONG;
    for (uint32_t t = 0; t < TRIALS; t++)
        if (rys[t] != expected(d, spot, q, t, c.slot)) return SHERD_EWRONG;
    return SHERD_OK;
}

int sherd__share_check(void *ctx, sherd__cell c, const uint8_t *body)
{
    share *d = ctx;
    share_spot *spot = share_spot_of(d, c.tile, c.panel);
    if (spot->decoded && !spot->gram) return SHERD_EBUSY;
    int err = table(d, c.tile, c.panel, spot);
    size_t rows = d->transposed ? d->k : sherd__share_answer_rows(d, c.panel);
    size_t part = rows * share_tile_width(d, c.tile) * SHERD__RESIDUE_BYTES;
    if (!err && d->bytes) {
        const void *r = d->transposed ? d->rt : share_panel_of(d, c.panel)->r;
        err = sherd__share_bytes_judge(d, c, r, d->tile[c.tile].s, rows, body);
    }
    for (uint32_t q = 0; q < d->p.primes_len && !err && !d->bytes; q++) {
        const double *r = d->rt ? (const double *)d->rt + q * TRIALS * rows : NULL;
        if (!d->transposed) err = sherd__share_spread(d, c.panel, q, &r);
        if (!err) err = judge(d, c, q, r, rows, body + q * part);
    }
    if (err == SHERD_EWRONG) sherd__share_redraw(d);
    return err;
}
