/*
 * Comparison with the centralized result. The reference is computed in row panels, so that no
 * second result is held in memory.
 */
#include "sherd/check.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/hooks.h"
#include "core/options.h"
#include "matrix/compare.h"
#include "matrix/fixed.h"
#include "matrix/funcs.h"
#include "matrix/gemm.h"
#include "matrix/reference.h"
#include "matrix/view.h"
#include "scheduler/plan/profile.h"

#define PANEL_BYTES ((size_t)64 << 20)

typedef struct checking {
    sherd_check_options opt;
    sherd_op op;
    sherd_view a, b;
    size_t rows, cols;
    const double *c; /* row-major, ldc doubles a row */
    size_t ldc;
    double *own; /* copy of C, or NULL */
    sherd__hooked hooks;
} checking;

static int check_shapes(const checking *k, sherd_view c, sherd_diag *d)
{
    sherd_view a = k->a, b = k->b;
    unsigned operands = sherd_op_operands(k->op);
    bool product = k->op == SHERD_OP_PRODUCT;
    if (operands == 0)
        return sherd__fail(d, SHERD_EINVAL, "sherd/op.h lists them: SHERD_OP_PRODUCT, ...",
                           "unknown operation %d", (int)k->op);
    int err = sherd__view_check(a, "A", d);
    if (!err && operands == 2) err = sherd__view_check(b, "B", d);
    if (!err) err = sherd__view_check(c, "C", d);
    if (!err) err = sherd__profile_check(k->opt.profile_a, a, "A", d);
    if (!err && operands == 2) err = sherd__profile_check(k->opt.profile_b, b, "B", d);
    if (err) return err;
    bool fits = product ? a.cols == b.rows && c.rows == a.rows && c.cols == b.cols
                : operands == 2
                    ? a.rows == b.rows && a.cols == b.cols && c.rows == a.rows && c.cols == a.cols
                    : c.rows == a.rows && c.cols == a.cols;
    if (fits && c.dtype == SHERD_F64) return SHERD_OK;
    return sherd__fail(d, fits ? SHERD_EINVAL : SHERD_ESHAPE, "give the operands and their result",
                       "a result of %zu x %zu of %s does not fit %s of %zu x %zu%s", c.rows, c.cols,
                       sherd_dtype_word(c.dtype), sherd_op_name(k->op), a.rows, a.cols,
                       operands == 2 ? " and the second operand" : "");
}

/* Takes C as row-major doubles: its own memory if it has this form. */
static int take_result(checking *k, sherd_view c, sherd_diag *d)
{
    size_t len;
    if ((k->c = sherd__view_borrow_f64(c, &k->ldc))) return SHERD_OK;
    if (!sherd__mul(c.rows, c.cols, &len) || !sherd__mul(len, sizeof(double), &len) ||
        !(k->own = sherd__alloc(len)))
        return sherd__fail_memory(d, "a copy of the result");
    sherd__view_dense_f64(c, k->own, c.cols);
    k->c = k->own;
    k->ldc = c.cols;
    return SHERD_OK;
}

static int begin(checking *k, sherd_view a, sherd_view b, sherd_view c,
                 const sherd_check_options *opt, sherd_diag *d)
{
    *k = (checking){ .a = a, .b = b, .rows = c.rows, .cols = c.cols };
    int err = sherd__options_read(&k->opt, sizeof k->opt, opt, "sherd_check_options", d);
    if (err) return err;
    k->op = k->opt.op ? k->opt.op : SHERD_OP_PRODUCT;
    if (!k->opt.bits) k->opt.bits = SHERD__FIXED_BITS;
    if (!k->opt.bits_b) k->opt.bits_b = k->opt.bits;
    if (!k->opt.name_a) k->opt.name_a = "A";
    if (!k->opt.name_b) k->opt.name_b = "B";
    k->hooks = sherd__hooks_begin(&k->opt.hooks);
    err = check_shapes(k, c, d);
    return err ? err : take_result(k, c, d);
}

static int choose(sherd_profile *known, sherd_view v, unsigned bits, const char *name,
                  sherd__fixed *out, sherd_diag *d)
{
    return known ? sherd__profile_fixed(known, bits, name, out, d)
                 : sherd__fixed_choose(v, bits, name, out, d);
}

static int choose_both(const checking *k, sherd__fixed *fa, sherd__fixed *fb, sherd_diag *d)
{
    int err = choose(k->opt.profile_a, k->a, k->opt.bits, k->opt.name_a, fa, d);
    if (!err) err = choose(k->opt.profile_b, k->b, k->opt.bits_b, k->opt.name_b, fb, d);
    return err;
}

/* ---- panels ---------------------------------------------------------------------------------- */

/* Rows [first, first + rows) of C, and the panel with the same rows of the reference. */
typedef struct part {
    size_t first, rows;
    double *panel;
} part;

static size_t panel_rows(const checking *k)
{
    size_t n = k->cols == 0 ? k->rows : PANEL_BYTES / sizeof(double) / k->cols;
    return n == 0 ? 1 : n < k->rows ? n : k->rows;
}

/* Calls fn with panels of at most `step` rows, each of which has room for k->cols doubles and
 * `extra` more. */
static int each_panel(checking *k, size_t step, size_t extra,
                      int (*fn)(checking *k, const part *p, void *ctx, sherd_diag *d), void *ctx,
                      sherd_diag *d)
{
    size_t room;
    if (!sherd__mul(step, k->cols, &room) || !sherd__add(room, extra, &room) ||
        !sherd__add(room, 1, &room))
        return sherd__fail_memory(d, "the comparison");
    part p = { .panel = sherd__calloc(room, sizeof *p.panel) };
    int err = p.panel ? SHERD_OK : sherd__fail_memory(d, "the comparison");
    for (; p.first < k->rows && !err; p.first += step) {
        p.rows = k->rows - p.first < step ? k->rows - p.first : step;
        err = fn(k, &p, ctx, d);
        if (!err) err = sherd__hooks_step(&k->hooks, p.first + p.rows, k->rows, d);
    }
    sherd__free(p.panel);
    return err;
}

static sherd_view rows_of_a(const checking *k, const part *p)
{
    return sherd_view_sub(k->a, p->first, p->rows, 0, k->a.cols);
}

/* ---- comparison ------------------------------------------------------------------------------ */

typedef struct exact_check {
    sherd__compare *found;
    sherd__fixed fa, fb;
} exact_check;

static int exact_panel(checking *k, const part *p, void *ctx, sherd_diag *d)
{
    exact_check *e = ctx;
    int err = sherd__reference_exact(&(sherd__matrices){ rows_of_a(k, p), k->b, p->panel, k->cols },
                                     &e->fa, &e->fb, d);
    if (!err)
        sherd__compare_rows(e->found, k->c + p->first * k->ldc, k->ldc, p->panel, k->cols,
                            (sherd__compare_part){ p->first, 0, p->rows, k->cols });
    return err;
}

static int check_exact(checking *k, sherd__compare *found, sherd_diag *d)
{
    exact_check e = { .found = found };
    int err = choose_both(k, &e.fa, &e.fb, d);
    return err ? err : each_panel(k, panel_rows(k), 0, exact_panel, &e, d);
}

/* The panel has one row of the result; the operands' rows follow it. */
static int map_row(checking *k, const part *p, void *ctx, sherd_diag *d)
{
    double *out = p->panel, *a = out + k->cols, *b = a + k->cols;
    bool two = sherd_op_operands(k->op) == 2;
    sherd__view_row_f64(k->a, p->first, 0, k->cols, a);
    if (two) sherd__view_row_f64(k->b, p->first, 0, k->cols, b);
    int err = sherd__map_f64((uint32_t)k->op, a, two ? b : NULL, k->cols, out);
    if (err) return sherd__fail(d, err, NULL, "cannot compute %s locally", sherd_op_name(k->op));
    sherd__compare_rows(ctx, k->c + p->first * k->ldc, k->ldc, out, k->cols,
                        (sherd__compare_part){ p->first, 0, 1, k->cols });
    return SHERD_OK;
}

static int compare(checking *k, sherd__compare *found, bool bitwise, sherd_diag *d)
{
    sherd__compare_init(found);
    if (!bitwise) return sherd__compare_product(k->a, k->b, k->c, k->ldc, found, d);
    if (k->op == SHERD_OP_PRODUCT) return check_exact(k, found, d);
    return each_panel(k, 1, 2 * k->cols, map_row, found, d);
}

static void fill(sherd_check *out, const sherd__compare *x, bool bitwise)
{
    *out = (sherd_check){
        .equal = bitwise ? x->equal == x->count : x->beyond == 0,
        .judged = bitwise ? SHERD_JUDGED_BITS : SHERD_JUDGED_GAMMA,
        .entries = x->count,
        .bit_equal = x->equal,
        .isclose = x->close,
        .mismatched = x->mismatched,
        .nan = x->nan,
        .max_abs = x->max_abs,
        .max_ulp = x->max_ulp,
        .beyond = x->beyond,
        .unjudged = bitwise ? 0 : x->unjudged,
        .worst = x->worst,
        .row = bitwise ? x->bit_row : x->beyond_row,
        .col = bitwise ? x->bit_col : x->beyond_col,
    };
    if (out->equal) out->row = out->col = 0;
}

static int differs(const checking *k, const sherd_check *x, sherd_diag *d)
{
    bool bitwise = x->judged == SHERD_JUDGED_BITS;
    uint64_t wrong = bitwise ? x->entries - x->bit_equal : x->beyond;
    const char *name = k->opt.name_c ? k->opt.name_c : "";
    return sherd__fail(d, SHERD_EDIFFERS, "compute the result again",
                       "%s%s%llu of %llu entries differ from the centralized result%s, the first "
                       "at row %llu, column %llu",
                       name, *name ? ": " : "", (unsigned long long)wrong,
                       (unsigned long long)x->entries,
                       bitwise ? "" : " by more than gamma_k |A||B|", (unsigned long long)x->row,
                       (unsigned long long)x->col);
}

int sherd_check_result(sherd_view a, sherd_view b, sherd_view c, const sherd_check_options *opt,
                       sherd_check *out, sherd_diag *d)
{
    checking k = { .own = NULL };
    sherd__compare found;
    sherd_check x = { .equal = false };
    double began = sherd__clock_s();
    uint64_t calls = sherd__blas_calls();
    int err = out ? sherd__result_check(out, "sherd_check", d) : SHERD_OK;
    if (!err) err = begin(&k, a, b, c, opt, d);
    bool bitwise = k.op != SHERD_OP_PRODUCT || k.opt.exact;
    if (!err) err = compare(&k, &found, bitwise, d);
    if (!err) fill(&x, &found, bitwise);
    if (!err && x.unjudged > 0 && x.unjudged == x.entries)
        err = sherd__fail(d, SHERD_ERANGE, "scale the operands down",
                          "no entry can be compared with the centralized result: |A||B| overflows");
    if (!err) {
        x.seconds = sherd__clock_s() - began;
        x.blas_calls = sherd__blas_calls() - calls;
        if (out) sherd__result_write(out, &x, sizeof x);
        if (!x.equal) err = differs(&k, &x, d);
    }
    sherd__free(k.own);
    return err;
}

/* ---- distance from float64 ------------------------------------------------------------------- */

typedef struct far_sums {
    sherd_distance x;
    double off, whole; /* sums of squares: of the differences, of the float64 product */
} far_sums;

static int measure_panel(checking *k, const part *p, void *ctx, sherd_diag *d)
{
    far_sums *f = ctx;
    int err = sherd__reference_float(rows_of_a(k, p), k->b, p->panel, k->cols, d);
    for (size_t i = 0; i < p->rows && !err; i++)
        for (size_t j = 0; j < k->cols; j++) {
            double there = p->panel[i * k->cols + j];
            double off = fabs(k->c[(p->first + i) * k->ldc + j] - there);
            f->off += off * off;
            f->whole += there * there;
            if (!(off > f->x.largest)) continue;
            f->x.largest = off;
            f->x.row = p->first + i;
            f->x.col = j;
        }
    return err;
}

int sherd_check_distance(sherd_view a, sherd_view b, sherd_view c, const sherd_check_options *opt,
                         sherd_distance *out, sherd_diag *d)
{
    checking k = { .own = NULL };
    far_sums f = { .off = 0 };
    sherd__fixed fa, fb;
    int err = sherd__result_check(out, "sherd_distance", d);
    if (!err) err = begin(&k, a, b, c, opt, d);
    if (!err && k.op != SHERD_OP_PRODUCT)
        err = sherd__fail(d, SHERD_EINVAL, "compare it bit for bit: sherd_check_result",
                          "%s is computed in float64 itself", sherd_op_name(k.op));
    if (!err) err = choose_both(&k, &fa, &fb, d);
    if (!err) err = each_panel(&k, panel_rows(&k), 0, measure_panel, &f, d);
    if (!err) {
        f.x.bound = sherd__fixed_product_bound(&fa, &fb, a.cols);
        f.x.relative = f.whole > 0 ? sqrt(f.off / f.whole) : 0;
        sherd__result_write(out, &f.x, sizeof f.x);
    }
    sherd__free(k.own);
    return err;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static const char *const judged[] = { "bits", "gamma", NULL };
static const sherd_field check_fields[] = {
    SHERD__FIELD(sherd_check, equal, BOOL, "", "every entry is right"),
    SHERD__FIELD_ENUM(sherd_check, judged, judged, "how entries were judged"),
    SHERD__FIELD(sherd_check, entries, U64, "", "entries"),
    SHERD__FIELD(sherd_check, bit_equal, U64, "", "entries that are equal in every bit"),
    SHERD__FIELD(sherd_check, isclose, U64, "", "entries that are close by numpy.isclose"),
    SHERD__FIELD(sherd_check, mismatched, U64, "", "NaN or infinity on one side only"),
    SHERD__FIELD(sherd_check, max_abs, F64, "", "largest difference"),
    SHERD__FIELD(sherd_check, max_ulp, U64, "", "largest difference, in units in the last place"),
    SHERD__FIELD(sherd_check, beyond, U64, "", "entries beyond gamma_k |A||B|"),
    SHERD__FIELD(sherd_check, worst, F64, "", "largest difference, as a fraction of its bound"),
    SHERD__FIELD(sherd_check, row, U64, "", "row of the first wrong entry"),
    SHERD__FIELD(sherd_check, col, U64, "", "column of the first wrong entry"),
    SHERD__FIELD(sherd_check, seconds, F64, "s", "time of computing and comparing"),
    SHERD__FIELD(sherd_check, blas_calls, U64, "", "calls of BLAS"),
    SHERD__FIELD(sherd_check, unjudged, U64, "", "entries without a bound, which are not compared"),
    SHERD__FIELD(sherd_check, nan, U64, "", "entries that are NaN in both, which counts as equal"),
};
SHERD__FIELDS(sherd_check, check_fields)

static const sherd_field distance_fields[] = {
    SHERD__FIELD(sherd_distance, largest, F64, "", "largest difference from float64"),
    SHERD__FIELD(sherd_distance, row, U64, "", "row of the entry with the largest difference"),
    SHERD__FIELD(sherd_distance, col, U64, "", "column of the entry with the largest difference"),
    SHERD__FIELD(sherd_distance, bound, F64, "", "largest difference that rounding allows"),
    SHERD__FIELD(sherd_distance, relative, F64, "",
                 "norm of all differences, divided by that of the float64 product"),
};
SHERD__FIELDS(sherd_distance, distance_fields)
