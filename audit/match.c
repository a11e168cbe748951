/*
 * The matching attack. Rates are compared after arcsin sqrt, which gives them the same variance at
 * every rate. The first guess is a Hungarian assignment on the rates alone. It gets one column in
 * eight right and most others near their place, which is enough. The cost of matching column i to
 * public column j then becomes the distance of i's correlations with the other columns from j's
 * with the columns that those are matched to. Each difference is capped so that wrong partners
 * count little. The assignment is repeated until it no longer changes.
 */
#include "audit/match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/assign.h"
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/clones.h"
#include "matrix/gemm.h"
#include "matrix/view.h"

#define ROUNDS 12u
#define CAP 0.02        /* of a squared difference of correlations */
#define OWN_WEIGHT 0.02 /* of a column's own statistics, when correlations are used */
#define QUANTILES 4096u /* values that thresholds are computed from */

static double *alloc_matrix(size_t rows, size_t cols)
{
    size_t len;
    return sherd__mul(rows, cols, &len) ? sherd__calloc(len, sizeof(double)) : NULL;
}

/* --- statistics of a column ------------------------------------------------------------------- */

static double even(double rate)
{
    return asin(sqrt(rate < 0 ? 0 : rate > 1 ? 1 : rate));
}

/* Computes the statistics of column j of x (rows x cols, multiplied by `scale`), which has n rows
   in truth; the rows that are absent are zero. */
static void describe(const double *x, size_t rows, size_t cols, size_t j, double n, double scale,
                     const double *rates, double *out)
{
    double zero = n - (double)rows, sum = 0, squares = 0, above[SHERD__MATCH_RATES] = { 0 };
    if (n <= 0) n = 1;
    for (size_t r = 0; r < rows; r++) {
        double v = x[r * cols + j] * scale;
        zero += v == 0;
        sum += v;
        squares += v * v;
        for (unsigned q = 0; q < SHERD__MATCH_RATES; q++) above[q] += v > rates[q];
    }
    double mean = sum / n, variance = squares / n - mean * mean;
    double missing = n - (double)rows;
    out[0] = even(zero / n);
    out[1] = copysign(even(fabs(mean)), mean);
    out[2] = even(sqrt(variance > 0 ? variance : 0));
    for (unsigned q = 0; q < SHERD__MATCH_RATES; q++)
        out[3 + q] = even((above[q] + (rates[q] < 0 ? missing : 0)) / n);
}

/* Computes the correlations between all columns of x (rows x cols); 0 where a column is
   constant. */
static int correlate(const double *x, size_t rows, size_t cols, double *corr)
{
    double *mean = sherd__calloc(cols, sizeof *mean), *sd = sherd__calloc(cols, sizeof *sd);
    int err = mean && sd ? SHERD_OK : SHERD_ENOMEM;
    for (size_t r = 0; r < rows && !err; r++)
        for (size_t j = 0; j < cols; j++) mean[j] += x[r * cols + j] / (double)rows;
    if (!err) err = sherd__gemm_t_f64(cols, rows, cols, x, cols, x, cols, 0, corr, cols);
    for (size_t j = 0; j < cols && !err; j++) {
        double v = corr[j * cols + j] / (double)rows - mean[j] * mean[j];
        sd[j] = v > 1e-12 ? sqrt(v) : 0;
    }
    for (size_t i = 0; i < cols && !err; i++)
        for (size_t j = 0; j < cols; j++) {
            double s = sd[i] * sd[j], c = corr[i * cols + j] / (double)rows - mean[i] * mean[j];
            corr[i * cols + j] = s > 0 ? c / s : 0;
        }
    sherd__free(mean);
    sherd__free(sd);
    return err;
}

/* --- side information ------------------------------------------------------------------------- */

void sherd__public_fini(sherd__public *p)
{
    sherd__free(p->x);
    sherd__free(p->corr);
    sherd__free(p->features);
    sherd__free(p->labels);
    memset(p, 0, sizeof *p);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sets thresholds at the deciles of the non-zero values. */
static int choose_rates(sherd__public *p)
{
    size_t all = p->rows * p->cols, len = 0;
    double *some = sherd__calloc(QUANTILES, sizeof *some);
    if (!some) return SHERD_ENOMEM;
    uint64_t at = 0, nonzeros = 0;
    for (size_t i = 0; i < all; i++) nonzeros += p->x[i] != 0;
    uint64_t step = nonzeros / QUANTILES + 1;
    for (size_t i = 0; i < all && len < QUANTILES; i++)
        if (p->x[i] != 0 && at++ % step == 0) some[len++] = p->x[i];
    qsort(some, len, sizeof *some, compare_doubles);
    for (unsigned q = 0; q < SHERD__MATCH_RATES; q++)
        p->rates[q] = len ? some[(q + 1) * len / (SHERD__MATCH_RATES + 1)] : 0;
    sherd__free(some);
    return SHERD_OK;
}

static int take_labels(sherd__public *p, sherd_view all, size_t rows, sherd_diag *d)
{
    bool column = all.cols == 1;
    if ((column ? all.rows : all.cols) != rows || (!column && all.rows != 1))
        return sherd__fail(d, SHERD_ESHAPE, "give one label for each row",
                           "there are %zu x %zu labels for %zu rows", all.rows, all.cols, rows);
    p->labels = sherd__calloc(p->rows, 1);
    if (!p->labels) return sherd__fail_memory(d, "%zu labels", rows);
    for (size_t i = 0; i < p->rows; i++) {
        size_t r = i * rows / p->rows;
        double v = sherd__view_at(all, column ? r : 0, column ? 0 : r);
        if (!(v >= 0 && v < 256) || v != floor(v))
            return sherd__fail(d, SHERD_EFORMAT, "give whole numbers from 0 to 255",
                               "label %zu is %g", r, v);
        p->labels[i] = (uint8_t)v;
        if (p->labels[i] >= p->classes) p->classes = p->labels[i] + 1u;
    }
    return SHERD_OK;
}

int sherd__public_make(sherd__public *out, sherd_view data, const sherd_view *labels,
                       size_t rows_max, sherd_diag *d)
{
    sherd__public p = { .rows = data.rows < rows_max ? data.rows : rows_max, .cols = data.cols };
    double largest = 0;
    if (p.rows < 2 || p.cols == 0)
        return sherd__fail(d, SHERD_EINVAL,
                           "give a matrix with the columns of A, and rows like its",
                           "the public data are %zu x %zu", data.rows, data.cols);
    p.x = alloc_matrix(p.rows, p.cols);
    p.corr = alloc_matrix(p.cols, p.cols);
    p.features = alloc_matrix(p.cols, SHERD__MATCH_FEATURES);
    int err = p.x && p.corr && p.features ? SHERD_OK : sherd__fail_memory(d, "the public data");
    for (size_t i = 0; i < p.rows && !err; i++) {
        double *row = p.x + i * p.cols;
        sherd__view_row_f64(data, i * data.rows / p.rows, 0, p.cols, row);
        for (size_t j = 0; j < p.cols; j++) {
            if (!isfinite(row[j])) row[j] = 0;
            if (fabs(row[j]) > largest) largest = fabs(row[j]);
        }
    }
    for (size_t i = 0; i < p.rows * p.cols && !err && largest > 0; i++) p.x[i] /= largest;
    if (!err && (choose_rates(&p) || correlate(p.x, p.rows, p.cols, p.corr)))
        err = sherd__fail_memory(d, "the public data");
    for (size_t j = 0; j < p.cols && !err; j++)
        describe(p.x, p.rows, p.cols, j, (double)p.rows, 1, p.rates,
                 p.features + j * SHERD__MATCH_FEATURES);
    if (!err && labels) err = take_labels(&p, *labels, data.rows, d);
    if (err) sherd__public_fini(&p);
    else *out = p;
    return err;
}

/* --- the attack ------------------------------------------------------------------------------- */

/* Sets cost[i][j]: the distance of column i from public column j by their own statistics. */
static void own_cost(const sherd__adversary_view *s, uint64_t n, const sherd__public *pub,
                     double *cost)
{
    double f[SHERD__MATCH_FEATURES], scale = s->largest > 0 ? 1 / s->largest : 0;
    size_t i = 0;
    for (size_t k = 0; k < s->len; k++) {
        const sherd__sheaf *h = &s->sheaves[k];
        /* The same fraction is missing from the kept rows as from all rows. */
        double of = h->rows && n > h->rows ? (double)h->kept * (double)n / (double)h->rows
                                           : (double)h->kept;
        for (size_t j = 0; j < h->cols; j++, i++) {
            describe(h->values, h->kept, h->cols, j, of, scale, pub->rates, f);
            if (h->rows == 0) f[0] = even(1);
            for (size_t c = 0; c < pub->cols; c++) {
                const double *g = pub->features + c * SHERD__MATCH_FEATURES;
                double sum = 0;
                for (unsigned q = 0; q < SHERD__MATCH_FEATURES; q++)
                    sum += (f[q] - g[q]) * (f[q] - g[q]);
                cost[i * pub->cols + c] = sum;
            }
        }
    }
}

/* Adds to row i of `cost` the distance of i's correlation with its neighbour k from those of the
   public columns with the column that k is matched to. */
SHERD__CLONES static void add_partner(const sherd__public *pub, double corr, size_t taken,
                                      double weight, double *row)
{
    const double *p = pub->corr + taken * pub->cols; /* symmetric */
    for (size_t c = 0; c < pub->cols; c++) {
        double diff = corr - p[c];
        diff *= diff;
        row[c] += weight * (diff < CAP ? diff : CAP);
    }
}

/* Costs of columns of the view for public columns: of their own statistics, and of all that is
 * known under the current guess; corr: correlations by sheaf, or NULL. */
typedef struct costs {
    double *const *corr;
    const double *own;
    double *all;
} costs;

/* Computes the cost under the current guess, sheaf by sheaf: correlations are known only within a
   sheaf. */
static void joint_cost(const sherd__adversary_view *s, const sherd__public *pub, const costs *of,
                       const size_t *guess)
{
    double *const *corr = of->corr, *cost = of->all;
    size_t first = 0;
    for (size_t i = 0; i < s->cols * pub->cols; i++) cost[i] = OWN_WEIGHT * of->own[i];
    for (size_t k = 0; k < s->len; first += s->sheaves[k].cols, k++) {
        size_t m = s->sheaves[k].cols;
        if (!corr[k]) continue;
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < m; j++)
                if (j != i && guess[first + j] != SHERD__ASSIGN_NONE)
                    add_partner(pub, corr[k][i * m + j], guess[first + j], 1 / (double)(m - 1),
                                cost + (first + i) * pub->cols);
    }
}

static int solve(sherd__match_how how, const double *cost, size_t rows, size_t cols, size_t *to)
{
    return how == SHERD__MATCH_ASCENDING ? sherd__assign_ascending(cost, rows, cols, to)
                                         : sherd__assign(cost, rows, cols, to);
}

static int refine(const sherd__adversary_view *s, const sherd__public *pub, sherd__match_how how,
                  const costs *of, size_t *to)
{
    size_t *next = sherd__calloc(s->cols, sizeof *next);
    int err = next ? SHERD_OK : SHERD_ENOMEM;
    for (unsigned round = 0; round < ROUNDS && !err; round++) {
        joint_cost(s, pub, of, to);
        err = solve(how, of->all, s->cols, pub->cols, next);
        if (err || memcmp(next, to, s->cols * sizeof *to) == 0) break;
        memcpy(to, next, s->cols * sizeof *to);
    }
    sherd__free(next);
    return err;
}

int sherd__match(const sherd__adversary_view *s, uint64_t n, const sherd__public *pub,
                 sherd__match_how how, size_t *to)
{
    double *own = alloc_matrix(s->cols, pub->cols), *cost = alloc_matrix(s->cols, pub->cols);
    double **corr = sherd__calloc(s->len, sizeof *corr);
    int err = own && cost && corr ? SHERD_OK : SHERD_ENOMEM;
    bool together = false, places = how == SHERD__MATCH_ASCENDING && s->cols == pub->cols;
    for (size_t k = 0; k < s->len && !err && how != SHERD__MATCH_OWN && !places; k++) {
        const sherd__sheaf *h = &s->sheaves[k];
        if (h->cols < 2 || h->kept < 2) continue;
        corr[k] = alloc_matrix(h->cols, h->cols);
        err = corr[k] ? correlate(h->values, h->kept, h->cols, corr[k]) : SHERD_ENOMEM;
        together = true;
    }
    if (!err) {
        own_cost(s, n, pub, own);
        err = solve(how, own, s->cols, pub->cols, to);
    }
    if (!err && together) err = refine(s, pub, how, &(costs){ corr, own, cost }, to);
    for (size_t k = 0; corr && k < s->len; k++) sherd__free(corr[k]);
    sherd__free(corr);
    sherd__free(own);
    sherd__free(cost);
    return err;
}
