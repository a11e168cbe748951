/*
 * --check: compares the result from the nodes with the centralized one. Exact products and
 * element-wise operations have one correct answer, and every bit must equal it. Float products have
 * a correct interval, gamma_k |A||B| around the true value, entry by entry (matrix/compare.h).
 *
 * The reference is computed in row panels, so that no second result is held in memory.
 */
#include <math.h>
#include <string.h>

#include "cli/work.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "matrix/fixed.h"
#include "matrix/funcs.h"
#include "sherd/machine.h"
#include "matrix/reference.h"
#include "matrix/view.h"

#define PANEL_BYTES ((size_t)64 << 20)

static size_t panel_rows(size_t cols, size_t rows)
{
    size_t n = cols == 0 ? rows : PANEL_BYTES / (cols * sizeof(double));
    return n == 0 ? 1 : n < rows ? n : rows;
}

/* Compares the rows of C from row `first` with the same rows of the float64 product in `panel`. */
static void measure_distance(sherd__product_run *w, const double *panel, size_t first, size_t rows)
{
    sherd__distance *x = &w->verdict.from_float;
    const double *c = w->c + first * w->cols;
    for (size_t i = 0; i < rows * w->cols; i++) {
        double off = fabs(c[i] - panel[i]);
        x->off += off * off;
        x->whole += panel[i] * panel[i];
        if (!(off > x->largest)) continue;
        x->largest = off;
        x->row = first + i / w->cols;
        x->col = i % w->cols;
    }
}

double sherd__product_run_relative(const sherd__distance *x)
{
    return x->whole > 0 ? sqrt(x->off / x->whole) : 0;
}

static int check_exact(sherd__product_run *w, double *panel, size_t step, sherd_diag *d)
{
    sherd_view a = w->in[0].view, b = w->in[1].view;
    sherd__fixed fa, fb;
    int err = sherd__fixed_choose(a, sherd__product_run_bits(w, 0), w->in[0].path, &fa, d);
    if (!err) err = sherd__fixed_choose(b, sherd__product_run_bits(w, 1), w->in[1].path, &fb, d);
    w->verdict.from_float = (sherd__distance){ .bound = 0 };
    if (!err) w->verdict.from_float.bound = sherd__fixed_product_bound(&fa, &fb, a.cols);
    for (size_t r = 0; r < w->rows && !err; r += step) {
        size_t n = w->rows - r < step ? w->rows - r : step;
        err = sherd__reference_exact(sherd_view_sub(a, r, n, 0, a.cols), b, &fa, &fb, panel,
                                     w->cols, d);
        if (!err)
            sherd__compare_rows(&w->verdict.found, w->c + r * w->cols, w->cols, panel, w->cols, r,
                                n, w->cols);
        if (!err && w->measures)
            err = sherd__reference_float(sherd_view_sub(a, r, n, 0, a.cols), b, panel, w->cols, d);
        if (!err && w->measures) measure_distance(w, panel, r, n);
        if (!err) err = sherd__work_go_on(d);
    }
    return err;
}

static int check_map(sherd__product_run *w, double *panel, sherd_diag *d)
{
    double *a = panel, *b = panel + w->cols, *out = b + w->cols;
    for (size_t r = 0; r < w->rows; r++) {
        sherd__view_row_f64(w->in[0].view, r, 0, w->cols, a);
        if (w->in_len == 2) sherd__view_row_f64(w->in[1].view, r, 0, w->cols, b);
        int err = sherd__map_f64(w->op, a, w->in_len == 2 ? b : NULL, w->cols, out);
        if (err) return sherd__fail(d, err, NULL, "cannot compute %s here", w->operation);
        sherd__compare_rows(&w->verdict.found, w->c + r * w->cols, w->cols, out, w->cols, r, 1,
                            w->cols);
    }
    return 0;
}

static int check_bits(sherd__product_run *w, sherd_diag *d)
{
    size_t step = w->op == 0 ? panel_rows(w->cols, w->rows) : 3;
    double *panel = sherd__calloc(step * w->cols + 1, sizeof *panel);
    if (!panel) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory for --check");
    sherd__compare_init(&w->verdict.found);
    int err = w->op == 0 ? check_exact(w, panel, step, d) : check_map(w, panel, d);
    sherd__free(panel);
    w->verdict.equal = w->verdict.found.equal == w->verdict.found.count;
    return err;
}

int sherd__product_run_check(sherd__product_run *w, sherd_diag *d)
{
    sherd__comparison *v = &w->verdict;
    double began = sherd__clock_s();
    uint64_t calls = sherd_blas_calls();
    int err;
    v->bitwise = w->op != 0 || w->opt.exact;
    if (v->bitwise) {
        err = check_bits(w, d);
    } else {
        err = sherd__compare_product(w->in[0].view, w->in[1].view, w->c, w->cols, &v->found, d);
        v->equal = v->found.beyond == 0;
    }
    v->blas_calls = sherd_blas_calls() - calls;
    v->seconds = sherd__clock_s() - began;
    v->done = err == 0;
    return err;
}
