/*
 * The comparison has two parts: measures that are printed (differences, ulps, shares), and the
 * judgement by the standard bound on the error of a dot product. The bound is on the distance from
 * the exact product, and the local product is only within that bound too. Entries in the gap that
 * this leaves are computed again with Dot2 (Ogita, Rump, Oishi 2005), which is as accurate as twice
 * the precision. Panels in all three dimensions keep temporaries small.
 */
#include "matrix/compare.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/pieces.h"
#include "matrix/gemm.h"
#include "matrix/reference.h"
#include "matrix/view.h"

#define ROWS 1024u
#define COLS 1024u
#define DEPTH 2048u
#define CHUNK 512u

/* --- measures -------------------------------------------------------------------------------- */

void sherd__compare_init(sherd__compare *out)
{
    *out = (sherd__compare){ 0 };
}

/* Maps doubles to ordered integers: adjacent ones differ by one, -0 and +0 are the same. */
static int64_t ordered(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

/* Keeps the smallest position, since panels are not in row order. */
static void keep_first(bool only, size_t row, size_t col, size_t *at_row, size_t *at_col)
{
    if (!only && (row > *at_row || (row == *at_row && col >= *at_col))) return;
    *at_row = row;
    *at_col = col;
}

static void finite_entry(sherd__compare *out, double c, double r, size_t row, size_t col)
{
    double d = fabs(c - r);
    uint64_t lo = (uint64_t)ordered(c), hi = (uint64_t)ordered(r);
    uint64_t ulp = (int64_t)lo < (int64_t)hi ? hi - lo : lo - hi;
    if (d > out->max_abs) {
        out->max_abs = d;
        out->abs_row = row;
        out->abs_col = col;
    }
    if (ulp > out->max_ulp) {
        out->max_ulp = ulp;
        out->ulp_row = row;
        out->ulp_col = col;
    }
    out->close += d <= 1e-8 + 1e-5 * fabs(r);
}

/* Adds entries that differ in bits, or are both NaN. */
static void unequal(sherd__compare *out, double c, double r, size_t row, size_t col)
{
    if (isnan(c) && isnan(r)) {
        out->nan++;
        out->equal++;
        out->close++;
        return;
    }
    keep_first(out->count - out->equal == 1, row, col, &out->bit_row, &out->bit_col);
    if (isfinite(r) && isfinite(c)) finite_entry(out, c, r, row, col);
    else out->mismatched++;
}

void sherd__compare_rows(sherd__compare *out, const double *c, size_t ldc, const double *ref,
                         size_t ldr, sherd__compare_part at)
{
    for (size_t i = 0; i < at.rows; i++) {
        const double *x = c + i * ldc, *r = ref + i * ldr;
        for (size_t j = 0; j < at.cols; j++) {
            out->count++;
            if (memcmp(x + j, r + j, sizeof *x) != 0) {
                unequal(out, x[j], r[j], at.row + i, at.col + j);
                continue;
            }
            out->nan += isnan(x[j]) != 0;
            out->equal++;
            out->close++;
        }
    }
}

/* --- judgement ------------------------------------------------------------------------------- */

/* One panel of C: its product, the product of the magnitudes, and which of A's rows and B's columns
 * contain NaN or infinity. */
typedef struct panel {
    double *a, *b;          /* ROWS x DEPTH and DEPTH x COLS parts of the operands */
    double *product, *size; /* ROWS x COLS: A*B and |A|*|B| */
    bool *bad_row, *bad_col;
    size_t r0, rows, c0, cols;
} panel;

static void panel_fini(panel *p)
{
    sherd__free(p->a);
    sherd__free(p->b);
    sherd__free(p->product);
    sherd__free(p->size);
    sherd__free(p->bad_row);
    sherd__free(p->bad_col);
}

static int panel_init(panel *p, size_t n, size_t k, size_t m)
{
    n = sherd__least(n, ROWS);
    k = sherd__least(k, DEPTH);
    m = sherd__least(m, COLS);
    *p = (panel){ .a = sherd__alloc(n * k * sizeof(double)),
                  .b = sherd__alloc(k * m * sizeof(double)),
                  .product = sherd__alloc(n * m * sizeof(double)),
                  .size = sherd__alloc(n * m * sizeof(double)),
                  .bad_row = sherd__alloc(n * sizeof(bool)),
                  .bad_col = sherd__alloc(m * sizeof(bool)) };
    return p->a && p->b && p->product && p->size && p->bad_row && p->bad_col ? SHERD_OK
                                                                             : SHERD_ENOMEM;
}

/* Sets x = |x| and records rows (or, with cols, columns) that are not all finite. */
static void magnitudes(double *x, size_t rows, size_t cols, bool *bad_row, bool *bad_col)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            double *e = x + i * cols + j;
            *e = fabs(*e);
            if (*e < HUGE_VAL) continue;
            if (bad_row) bad_row[i] = true;
            if (bad_col) bad_col[j] = true;
        }
}

static int panel_product(panel *p, sherd_view a, sherd_view b)
{
    size_t k = a.cols, l = 0;
    memset(p->bad_row, 0, p->rows * sizeof(bool));
    memset(p->bad_col, 0, p->cols * sizeof(bool));
    do {
        size_t part = sherd__least(k - l, DEPTH);
        double beta = l == 0 ? 0.0 : 1.0;
        sherd__view_dense_f64(sherd_view_sub(a, p->r0, p->rows, l, part), p->a, part);
        sherd__view_dense_f64(sherd_view_sub(b, l, part, p->c0, p->cols), p->b, p->cols);
        int err = sherd__gemm_f64(p->rows, part, p->cols, p->a, part, p->b, p->cols, beta,
                                  p->product, p->cols);
        if (err != 0) return err;
        magnitudes(p->a, p->rows, part, p->bad_row, NULL);
        magnitudes(p->b, part, p->cols, NULL, p->bad_col);
        err = sherd__gemm_f64(p->rows, part, p->cols, p->a, part, p->b, p->cols, beta, p->size,
                              p->cols);
        if (err != 0) return err;
        l += part;
    } while (l < k);
    return SHERD_OK;
}

/* Returns |c - (AB)ij| with the product as Dot2's two parts; the error is at most
 * gamma_k^2*(|A||B|)ij. */
static double distance(sherd_view a, sherd_view b, size_t i, size_t j, double c)
{
    double x[CHUNK], y[CHUNK], sum = 0.0, rest = 0.0;
    sherd_view bt = sherd_view_t(b);
    for (size_t l = 0; l < a.cols; l += CHUNK) {
        size_t n = sherd__least(a.cols - l, CHUNK);
        sherd__view_row_f64(a, i, l, n, x);
        sherd__view_row_f64(bt, j, l, n, y);
        for (size_t t = 0; t < n; t++) {
            double h = x[t] * y[t], e = fma(x[t], y[t], -h);
            double s = sum + h, z = s - sum;
            rest += (sum - (s - z)) + (h - z) + e;
            sum = s;
        }
    }
    return fabs((c - sum) - rest);
}

/* An entry of C, the product in float64, and |A|*|B|. */
typedef struct entry {
    size_t row, col;
    double value, ref, size;
} entry;

/* Returns whether an entry may be of a float64 product of finite operands. */
static bool within(sherd_view a, sherd_view b, const entry *e, double gamma, double floor,
                   double *ratio)
{
    /* `size` is a float64 product too, at most gamma too small. */
    double tol = gamma * e->size * (1.0 + 3.0 * gamma + 0x1p-50) + floor;
    double d = fabs(e->value - e->ref);
    *ratio = d == 0.0 ? 0.0 : d / tol;
    if (d <= tol) return true;
    if (d > 2.0 * tol) return false;
    return distance(a, b, e->row, e->col, e->value) <= tol + gamma * gamma * e->size;
}

static int class_of(double x)
{
    return isnan(x) ? 2 : isinf(x) ? (x > 0.0 ? 1 : -1) : 0;
}

static void judge(const panel *p, sherd_view a, sherd_view b, const double *c, size_t ldc,
                  sherd__compare *out)
{
    double ku = (double)a.cols * 0x1p-53, gamma = ku / (1.0 - ku);
    double floor = (double)a.cols * 0x1p-1074;
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < p->cols; j++) {
            const size_t row = p->r0 + i, col = p->c0 + j, at = i * p->cols + j;
            const entry e = { row, col, c[row * ldc + col], p->product[at], p->size[at] };
            double ratio = 0.0;
            bool good;
            if (p->bad_row[i] || p->bad_col[j]) {
                good = class_of(e.value) == class_of(e.ref);
            } else if (!isfinite(e.size)) {
                out->unjudged++;
                continue;
            } else {
                good = isfinite(e.value) && within(a, b, &e, gamma, floor, &ratio);
            }
            if (ratio > out->worst) out->worst = ratio;
            if (good) continue;
            out->beyond++;
            keep_first(out->beyond == 1, row, col, &out->beyond_row, &out->beyond_col);
        }
}

int sherd__compare_product(sherd_view a, sherd_view b, const double *c, size_t ldc,
                           sherd__compare *out, sherd_diag *d)
{
    sherd__compare sum = { 0 };
    panel p;
    int err = sherd__product_shapes(a, b, ldc, d);
    if (err != 0) return err;
    err = panel_init(&p, a.rows, a.cols, b.cols);
    if (err != 0) err = sherd__fail_memory(d, "the panels of a comparison");
    for (p.r0 = 0; p.r0 < a.rows && err == 0; p.r0 += ROWS)
        for (p.c0 = 0; p.c0 < b.cols && err == 0; p.c0 += COLS) {
            p.rows = sherd__least(a.rows - p.r0, ROWS);
            p.cols = sherd__least(b.cols - p.c0, COLS);
            err = panel_product(&p, a, b);
            if (err != 0) break;
            sherd__compare_rows(&sum, c + p.r0 * ldc + p.c0, ldc, p.product, p.cols,
                                (sherd__compare_part){ p.r0, p.c0, p.rows, p.cols });
            judge(&p, a, b, c, ldc, &sum);
        }
    panel_fini(&p);
    if (err == 0) *out = sum;
    return err;
}
