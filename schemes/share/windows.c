/*
 * Projections for the check of a product in which nodes multiply windows of images. A share of the
 * windows is the windows of the share, so terms are projected as before, through windows:
 *
 *   windows * s   is computed image by image, one line of windows at a time, in cache;
 *   rT * windows  would cost as much for every panel, and r as much memory as answers have rows.
 *                 So r has one number for each image and one for each position of a window, the
 *                 same in all images, and r(i, o) is their product: rT*windows is then the windows
 *                 of one image, the sum of all images weighted by the first, summed with the
 *                 weights of the second.
 *
 * A wrong answer is then accepted with the probability of a root of a polynomial of degree 3,
 * instead of degree 2 without windows (Schwartz-Zippel): rT*E*s is linear in each of the three
 * vectors.
 */
#include <string.h>

#include "core/alloc.h"
#include "matrix/residue.h"
#include "schemes/share/internal.h"

void sherd__share_windows_right(const share *d, share_scratch *s, const double *x, size_t rows,
                                const double *const vector[TRIALS], uint32_t p,
                                double *const out[TRIALS])
{
    const sherd__windows *w = &d->windows;
    for (size_t at = 0; at < rows * w->count; at += w->wide) {
        double *const to[] = { out[0] + at, out[1] + at };
        sherd__windows_rows(w, x, sizeof *x, at, w->wide, s->laid);
        sherd__fvp_right(s->laid, w->wide, w->row, w->row, vector, p, to);
    }
}

/* Sums one image's windows with the weights of their positions. sherd__fvp_left takes two vectors
 * at a time; each trial has its own image, so the second result is unused. */
static void sum_windows(const share *d, double *laid, const double *image, const double *across,
                        uint32_t p, double *out, double *unused)
{
    const sherd__windows *w = &d->windows;
    double *const acc[] = { out, unused };
    size_t since = 0;
    for (size_t at = 0; at < w->count; at += w->wide) {
        const double *const r[] = { across + at, across + at };
        sherd__windows_rows(w, image, sizeof *image, at, w->wide, laid);
        sherd__fvp_left(laid, w->wide, w->row, w->row, r, p, acc, &since);
    }
    sherd__residue_from_f64(out, w->row, p, out);
}

int sherd__share_windows_left(share *d, void **left)
{
    const sherd__windows *w = &d->windows;
    uint32_t trials = d->p.primes_len * TRIALS, terms = d->a.terms;
    double *to = sherd__share_secret(trials, terms, w->row, sizeof *to);
    double *laid = sherd__share_secret(w->wide + 1, w->row, 1, sizeof *laid);
    const double *images = *left, *across = d->across;
    double *unused = laid ? laid + w->wide * w->row : NULL;
    if (!to || !laid) {
        sherd__share_forget(to);
        sherd__share_forget(laid);
        return SHERD_ENOMEM;
    }
    for (uint32_t t = 0; t < trials; t++)
        for (uint32_t j = 0; j < terms; j++) {
            size_t at = (size_t)t * terms + j;
            memset(unused, 0, w->row * sizeof *unused);
            sum_windows(d, laid, images + at * w->image, across + t * w->count,
                        d->p.primes[t / TRIALS], to + at * w->row, unused);
        }
    sherd__share_forget(laid);
    sherd__share_forget(*left);
    *left = to;
    return SHERD_OK;
}

int sherd__share_spread(share *d, uint32_t panel, uint32_t q, const double **out)
{
    size_t rows = sherd__share_panel_rows(d, panel), each = d->each, n = rows * each;
    const double *r = (const double *)share_panel_of(d, panel)->r + q * TRIALS * rows;
    if (!d->windows.count) {
        *out = r;
        return SHERD_OK;
    }
    if (!d->spread)
        d->spread = sherd__share_secret(TRIALS, share_panel_most(d), each, sizeof(double));
    if (!d->spread) return SHERD_ENOMEM;
    const double *across = (const double *)d->across + q * TRIALS * each;
    double *spread = d->spread;
    for (size_t t = 0; t < TRIALS; t++)
        for (size_t i = 0; i < rows; i++)
            for (size_t o = 0; o < each; o++)
                spread[t * n + i * each + o] = r[t * rows + i] * across[t * each + o];
    sherd__residue_from_f64(spread, TRIALS * n, d->p.primes[q], spread);
    *out = spread;
    return SHERD_OK;
}
