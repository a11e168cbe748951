/*
 * Ridge regression and nearest neighbours, from the public data restricted to the matched columns.
 * The regression predicts all public columns and, by one column per class, the label; both
 * together, since they share one factorisation. Neighbours vote for the label and are averaged for
 * the rest.
 */
#include "audit/infer.h"

#include <math.h>
#include <string.h>

#include "audit/assign.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "matrix/gemm.h"

#define RIDGE 1e-3 /* times the rows, on variables scaled to at most 1 */

static double *alloc_matrix(size_t rows, size_t cols)
{
    size_t len;
    return sherd__mul(rows, cols, &len) ? sherd__calloc(len, sizeof(double)) : NULL;
}

void sherd__inferred_fini(sherd__inferred *i)
{
    for (unsigned k = 0; k < 2; k++) {
        sherd__free(i->rebuilt[k]);
        sherd__free(i->label[k]);
    }
    memset(i, 0, sizeof *i);
}

int sherd__cholesky_solve(double *s, size_t m, double *r, size_t k)
{
    for (size_t j = 0; j < m; j++) { /* S = L L^T, L in the lower half */
        for (size_t i = j; i < m; i++) {
            double sum = s[i * m + j];
            for (size_t q = 0; q < j; q++) sum -= s[i * m + q] * s[j * m + q];
            if (i == j && !(sum > 0)) return SHERD_ERANGE;
            s[i * m + j] = i == j ? sqrt(sum) : sum / s[j * m + j];
        }
    }
    for (size_t i = 0; i < m; i++) { /* L Z = R */
        for (size_t q = 0; q < i; q++)
            for (size_t c = 0; c < k; c++) r[i * k + c] -= s[i * m + q] * r[q * k + c];
        for (size_t c = 0; c < k; c++) r[i * k + c] /= s[i * m + i];
    }
    for (size_t i = m; i-- > 0;) { /* L^T W = Z */
        for (size_t q = i + 1; q < m; q++)
            for (size_t c = 0; c < k; c++) r[i * k + c] -= s[q * m + i] * r[q * k + c];
        for (size_t c = 0; c < k; c++) r[i * k + c] /= s[i * m + i];
    }
    return SHERD_OK;
}

/* The columns in use: seen values and public values, minus the public mean. */
typedef struct parts {
    size_t m, targets;
    double *x, *p;    /* rows x m; public rows x m */
    double *mean, *y; /* public rows x targets: all columns, then one column per class; mean: of
                         these */
} parts;

static void parts_fini(parts *t)
{
    sherd__free(t->x);
    sherd__free(t->p);
    sherd__free(t->mean);
    sherd__free(t->y);
}

static int make_parts(parts *t, const double *x, size_t rows, size_t m, const size_t *to,
                      const sherd__public *pub)
{
    for (size_t j = 0; j < m; j++) t->m += to[j] != SHERD__ASSIGN_NONE;
    t->targets = pub->cols + (pub->labels ? pub->classes : 0);
    t->x = alloc_matrix(rows, t->m);
    t->p = alloc_matrix(pub->rows, t->m);
    t->y = alloc_matrix(pub->rows, t->targets);
    t->mean = sherd__calloc(t->targets, sizeof *t->mean);
    if (!t->x || !t->p || !t->y || !t->mean) return SHERD_ENOMEM;
    for (size_t r = 0; r < pub->rows; r++) {
        double *y = t->y + r * t->targets;
        memcpy(y, pub->x + r * pub->cols, pub->cols * sizeof *y);
        if (pub->labels) y[pub->cols + pub->labels[r]] = 1;
        for (size_t c = 0; c < t->targets; c++) t->mean[c] += y[c] / (double)pub->rows;
    }
    for (size_t r = 0; r < pub->rows; r++)
        for (size_t c = 0; c < t->targets; c++) t->y[r * t->targets + c] -= t->mean[c];
    for (size_t j = 0, at = 0; j < m; j++) {
        if (to[j] == SHERD__ASSIGN_NONE) continue;
        for (size_t r = 0; r < rows; r++) t->x[r * t->m + at] = x[r * m + j] - t->mean[to[j]];
        for (size_t r = 0; r < pub->rows; r++) t->p[r * t->m + at] = t->y[r * t->targets + to[j]];
        at++;
    }
    return SHERD_OK;
}

static uint8_t greatest(const double *v, size_t n)
{
    size_t best = 0;
    for (size_t c = 1; c < n; c++)
        if (v[c] > v[best]) best = c;
    return (uint8_t)best;
}

static int by_ridge(sherd__inferred *out, const parts *t, const sherd__public *pub)
{
    double *s = alloc_matrix(t->m, t->m), *w = alloc_matrix(t->m, t->targets);
    double *guess = alloc_matrix(out->rows, t->targets);
    int err = s && w && guess ? SHERD_OK : SHERD_ENOMEM;
    if (!err) err = sherd__gemm_t_f64(t->m, pub->rows, t->m, t->p, t->m, t->p, t->m, 0, s, t->m);
    if (!err)
        err = sherd__gemm_t_f64(t->m, pub->rows, t->targets, t->p, t->m, t->y, t->targets, 0, w,
                                t->targets);
    for (size_t j = 0; j < t->m && !err; j++) s[j * t->m + j] += RIDGE * (double)pub->rows;
    if (!err) err = sherd__cholesky_solve(s, t->m, w, t->targets);
    if (!err)
        err = sherd__gemm_f64(out->rows, t->m, t->targets, t->x, t->m, w, t->targets, 0, guess,
                              t->targets);
    for (size_t r = 0; r < out->rows && !err; r++) {
        double *g = guess + r * t->targets;
        for (size_t c = 0; c < t->targets; c++) g[c] += t->mean[c];
        memcpy(out->rebuilt[0] + r * pub->cols, g, pub->cols * sizeof *g);
        if (out->label[0]) out->label[0][r] = greatest(g + pub->cols, pub->classes);
    }
    sherd__free(s);
    sherd__free(w);
    sherd__free(guess);
    return err;
}

/* Finds the neighbours of one row, nearest first. */
static void nearest(const double *dot, const double *norm, size_t n, size_t *best, size_t *len)
{
    double d[SHERD__INFER_NEIGHBOURS];
    *len = 0;
    for (size_t i = 0; i < n; i++) {
        double v = norm[i] - 2 * dot[i];
        size_t at = *len;
        if (at == SHERD__INFER_NEIGHBOURS && v >= d[at - 1]) continue;
        if (at == SHERD__INFER_NEIGHBOURS) at--;
        else ++*len;
        for (; at > 0 && d[at - 1] > v; at--) {
            d[at] = d[at - 1];
            best[at] = best[at - 1];
        }
        d[at] = v;
        best[at] = i;
    }
}

static int by_neighbours(sherd__inferred *out, const parts *t, const sherd__public *pub)
{
    double *dot = alloc_matrix(out->rows, pub->rows),
           *norm = sherd__calloc(pub->rows, sizeof *norm);
    double *turned = alloc_matrix(t->m, pub->rows);
    int err = dot && norm && turned ? SHERD_OK : SHERD_ENOMEM;
    for (size_t r = 0; r < pub->rows && !err; r++)
        for (size_t j = 0; j < t->m; j++) {
            double v = t->p[r * t->m + j];
            turned[j * pub->rows + r] = v;
            norm[r] += v * v;
        }
    if (!err)
        err = sherd__gemm_f64(out->rows, t->m, pub->rows, t->x, t->m, turned, pub->rows, 0, dot,
                              pub->rows);
    for (size_t r = 0; r < out->rows && !err; r++) {
        size_t best[SHERD__INFER_NEIGHBOURS], len;
        double votes[256] = { 0 };
        nearest(dot + r * pub->rows, norm, pub->rows, best, &len);
        for (size_t i = 0; i < len; i++) {
            const double *p = pub->x + best[i] * pub->cols;
            for (size_t c = 0; c < pub->cols; c++)
                out->rebuilt[1][r * pub->cols + c] += p[c] / (double)len;
            if (pub->labels) votes[pub->labels[best[i]]] += 1 + 1e-3 * (double)(len - i);
        }
        if (out->label[1]) out->label[1][r] = greatest(votes, pub->classes);
    }
    sherd__free(dot);
    sherd__free(norm);
    sherd__free(turned);
    return err;
}

int sherd__infer(sherd__inferred *out, const double *x, size_t rows, size_t m, const size_t *to,
                 const sherd__public *pub)
{
    sherd__inferred o = { .rows = rows, .cols = pub->cols };
    parts t = { 0 };
    int err = make_parts(&t, x, rows, m, to, pub);
    for (unsigned k = 0; k < 2 && !err; k++) {
        o.rebuilt[k] = alloc_matrix(rows, pub->cols);
        if (pub->labels) o.label[k] = sherd__calloc(rows, 1);
        if (!o.rebuilt[k] || (pub->labels && !o.label[k])) err = SHERD_ENOMEM;
    }
    if (!err) err = by_ridge(&o, &t, pub);
    if (!err) err = by_neighbours(&o, &t, pub);
    parts_fini(&t);
    if (err) sherd__inferred_fini(&o);
    else *out = o;
    return err;
}
