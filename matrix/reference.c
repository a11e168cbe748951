/*
 * Products computed on this machine. B is quantised (or converted) once, A and C are processed in
 * panels of rows, so that temporaries are B's size plus panels. The __int128 loop shares only the
 * quantisation, which is the specification, with the fast path.
 */
#include "matrix/reference.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/gemm.h"
#include "matrix/skinny_gemm.h"
#include "matrix/view.h"

#define PANEL 1024u
#define CACHED 65536u /* doubles: half a megabyte */
#define NEAR 2048u    /* doubles, of a first-level cache */
#define FEW_ROWS 64u  /* of A, for B to be rounded in parts of CACHED numbers */
#define FEW 16384u    /* numbers for which no second thread is woken */

int sherd__product_shapes(sherd_view a, sherd_view b, size_t ldc, sherd_diag *d)
{
    size_t len;
    int err = sherd__view_check(a, "A", d);
    if (err == 0) err = sherd__view_check(b, "B", d);
    if (err != 0) return err;
    if (a.cols != b.rows)
        return sherd__fail(d, SHERD_ESHAPE, "A's columns must be as many as B's rows",
                           "A is %zu x %zu, B is %zu x %zu: %zu and %zu differ", a.rows, a.cols,
                           b.rows, b.cols, a.cols, b.rows);
    if (ldc < b.cols)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "C's leading dimension is %zu, its rows have %zu elements", ldc, b.cols);
    if (!sherd__mul(a.rows, ldc, &len) || !sherd__mul(len, sizeof(double), &len) ||
        len > PTRDIFF_MAX)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a result of %zu x %zu elements is too large",
                           a.rows, b.cols);
    return SHERD_OK;
}

/* Allocates rows x cols doubles; NULL on failure. */
static double *doubles(size_t rows, size_t cols)
{
    size_t len;
    if (!sherd__mul(rows, cols, &len) || !sherd__mul(len, sizeof(double), &len)) return NULL;
    return sherd__alloc(len);
}

static int no_memory(sherd_diag *d, const char *what, size_t rows, size_t cols)
{
    return sherd__fail_memory_hint(d, "free memory, or compare on a larger machine",
                                   "%s (%zu x %zu doubles)", what, rows, cols);
}

static size_t panel_rows(sherd_view a)
{
    return a.rows < PANEL ? a.rows : PANEL;
}

static sherd_view rows_of(sherd_view v, size_t r0, size_t rows)
{
    return sherd_view_sub(v, r0, rows, 0, v.cols);
}

/* --- exact ----------------------------------------------------------------------------------- */

/* A product in progress, and what to do with its rows. */
typedef struct exact {
    const sherd__tiled *p;
    const sherd__fixed *a, *b;
    sherd__team *team;
    bool scaled;              /* C already includes the factor 2^-(sA+sB) */
    size_t first, rows, each; /* complete rows; rows of a part */
    double peaks[SHERD__TEAM_MOST];
} exact;

static void finish_part(void *ctx, size_t i, unsigned thread)
{
    exact *x = ctx;
    const sherd__tiled *p = x->p;
    size_t m = p->b.cols, ld = p->ldc, at = i * x->each, row = x->first + at;
    size_t rows = x->rows - at < x->each ? x->rows - at : x->each;
    double *c = (double *)p->c + row * ld, peak;
    if (!x->scaled && ld == m) sherd__fixed_unscale(x->a, x->b, c, rows * m);
    for (size_t r = 0; r < rows && !x->scaled && ld != m; r++)
        sherd__fixed_unscale(x->a, x->b, c + r * ld, m);
    if (p->finish) p->finish(p->ctx, row, 0, rows, m, c, ld);
    if (!p->peak_c) return;
    sherd_view done = sherd_view_sub(sherd_view_c(c, SHERD_F64, rows, ld), 0, rows, 0, m);
    if (!sherd__view_peak(done, &peak)) peak = INFINITY;
    if (peak > x->peaks[thread]) x->peaks[thread] = peak;
}

/* Completes rows with final sums. */
static void finish(exact *x, size_t first, size_t rows)
{
    size_t m = x->p->b.cols;
    x->first = first;
    x->rows = rows;
    x->each = m < NEAR ? NEAR / m : 1;
    sherd__team_run(rows * m > FEW ? x->team : NULL, (rows + x->each - 1) / x->each, finish_part,
                    x);
}

/* For sums below 2^53 and an A of a few rows: B is used in place. */
static int exact_thin(exact *x, sherd_diag *d)
{
    sherd_view a = x->p->a;
    double *qa = doubles(a.rows, a.cols);
    if (!qa) return no_memory(d, "A in fixed point", a.rows, a.cols);
    sherd__fixed_dense(x->a, a, qa, a.cols);
    sherd__skinny_exact(qa, a.rows, x->p->b, x->b, x->p->c, x->p->ldc);
    finish(x, 0, a.rows);
    sherd__free(qa);
    return SHERD_OK;
}

/* Returns whether A has few rows, and B many numbers that are stored as exact_few reads them. */
static bool few_fits(sherd_view a, sherd_view b, bool *columns)
{
    size_t ld;
    if (a.rows > FEW_ROWS || a.cols == 0 || b.rows * b.cols < 2 * CACHED) return false;
    *columns = !sherd__view_borrow_f64(b, &ld);
    return !*columns || sherd__view_borrow_f64(sherd_view_t(b), &ld);
}

/* Memory of exact_few. */
typedef struct few {
    bool columns;
    double *qa, *qb; /* A in fixed point, transposed if `columns`; a part of B */
    double *own;     /* columns: a part of C, transposed */
} few;

/* Multiplies by `count` rows of B from `at`, or computes so many columns of C. f->qb: these rows or
 * columns in fixed point, one after another. */
static int few_part(const exact *x, const few *f, size_t at, size_t count)
{
    size_t n = x->p->a.rows, k = x->p->a.cols, m = x->p->b.cols, ldc = x->p->ldc;
    double *c = x->p->c;
    if (!f->columns) return sherd__gemm_f64(n, count, m, f->qa + at, k, f->qb, m, at > 0, c, ldc);
    int err = sherd__gemm_f64(count, k, n, f->qb, k, f->qa, n, 0, f->own, n);
    for (size_t i = 0; i < n && !err; i++)
        for (size_t j = 0; j < count; j++) c[i * ldc + at + j] = f->own[j * n + i];
    return err;
}

/* For sums below 2^53 and an A of few rows, as in training by small shards: B is rounded in parts,
 * which are multiplied while they are in cache. A B that is stored in columns is not transposed:
 * columns of C are computed, from A transposed. */
static int exact_few(exact *x, bool columns, sherd_diag *d)
{
    sherd_view a = x->p->a, b = columns ? sherd_view_t(x->p->b) : x->p->b;
    size_t n = a.rows, k = a.cols, part = CACHED / b.cols < 16 ? 16 : CACHED / b.cols;
    few f = { columns, doubles(n, k), doubles(part, b.cols), doubles(part, n) };
    int err = f.qa && f.qb && f.own ? SHERD_OK : no_memory(d, "a part of B", part, b.cols);
    if (!err && columns) sherd__fixed_dense(x->a, sherd_view_t(a), f.qa, n);
    else if (!err) sherd__fixed_dense(x->a, a, f.qa, k);
    for (size_t at = 0; at < b.rows && !err; at += part) {
        size_t count = b.rows - at < part ? b.rows - at : part;
        sherd__fixed_dense(x->b, rows_of(b, at, count), f.qb, b.cols);
        err = few_part(x, &f, at, count);
    }
    if (!err) finish(x, 0, n);
    sherd__free(f.own);
    sherd__free(f.qb);
    sherd__free(f.qa);
    return err;
}

/* Returns the number of rows of C that are still in cache when they are finished, or more if BLAS
 * needs more to be fast. */
static size_t rows_in_cache(sherd_view a, size_t m)
{
    size_t rows = (a.cols < 4 ? NEAR : CACHED) / m, least = a.cols < 16 ? 16 : 256;
    if (rows < least) rows = least;
    if (rows > PANEL) rows = PANEL;
    return a.rows < rows ? a.rows : rows;
}

/* For sums below 2^53: one dgemm a panel. If the columns of A are contiguous, A is quantised in its
 * layout, and BLAS transposes it while packing. */
static int exact_direct(exact *x, const double *qb, sherd_diag *d)
{
    sherd_view a = x->p->a;
    size_t k = a.cols, m = x->p->b.cols, ldc = x->p->ldc, panel = rows_in_cache(a, m), ld;
    bool lies_t = !sherd__view_borrow_f64(a, &ld) && sherd__view_borrow_f64(sherd_view_t(a), &ld);
    double *qa = doubles(panel, k);
    int err = SHERD_OK;
    if (!qa) return no_memory(d, "a panel of A", panel, k);
    for (size_t r = 0; r < a.rows && err == 0; r += panel) {
        size_t n = a.rows - r < panel ? a.rows - r : panel;
        double *cr = (double *)x->p->c + r * ldc;
        if (lies_t) {
            sherd__fixed_dense(x->a, sherd_view_t(rows_of(a, r, n)), qa, n);
            err = sherd__gemm_t_f64(n, k, m, qa, n, qb, m, 0.0, cr, ldc);
        } else {
            sherd__fixed_dense(x->a, rows_of(a, r, n), qa, k);
            err = sherd__gemm_f64(n, k, m, qa, k, qb, m, 0.0, cr, ldc);
        }
        if (err == 0) finish(x, r, n);
    }
    sherd__free(qa);
    return err;
}

/* A product by residues: B in fixed point (qb, k x m), and for panels of n rows of A qa and ra
 * (n x k each), rb (k x m), rc (primes x n x m). */
typedef struct residue_work {
    size_t k, m;
    int shift;
    sherd__crt crt;
    const double *qb;
    double *qa, *ra, *rb, *rc;
} residue_work;

/* Computes the panel of A in w->qa modulo every prime and recombines it into C. */
static int residue_panel(const residue_work *w, size_t n, double *c, size_t ldc)
{
    const size_t k = w->k, m = w->m;
    const sherd__crt *crt = &w->crt;
    const double *part[SHERD__TABLE_PRIMES];
    for (size_t q = 0; q < crt->count; q++) {
        double *rc = w->rc + q * n * m;
        sherd__residue_from_f64(w->qa, n * k, crt->p[q], w->ra);
        sherd__residue_from_f64(w->qb, k * m, crt->p[q], w->rb);
        int err = sherd__residue_gemm(crt->p[q], n, k, m, w->ra, k, w->rb, m, rc, m);
        if (err != 0) return err;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t q = 0; q < crt->count; q++) part[q] = w->rc + q * n * m + i * m;
        sherd__crt_f64(crt, part, m, w->shift, c + i * ldc);
    }
    return SHERD_OK;
}

static int exact_residues(exact *x, const double *qb, sherd_diag *d)
{
    sherd_view a = x->p->a;
    const sherd__fixed *fa = x->a, *fb = x->b;
    size_t k = a.cols, m = x->p->b.cols, ldc = x->p->ldc, panel = panel_rows(a), primes;
    double *c = x->p->c;
    residue_work w = { .k = k, .m = m, .shift = fa->scale + fb->scale, .qb = qb };
    const sherd__primes *table = &sherd__primes_default;
    int err = sherd__exact_primes_needed(k, fa->largest, fb->largest, table, &primes);
    if (err != 0)
        return sherd__fail(d, err, "use fewer bits",
                           "%zu products of %llu and %llu exceed what four primes can hold", k,
                           (unsigned long long)fa->largest, (unsigned long long)fb->largest);
    err = sherd__crt_init(&w.crt, table->p, primes);
    w.qa = doubles(panel, k);
    w.ra = doubles(panel, k);
    w.rb = doubles(k, m);
    w.rc = doubles(primes * panel, m);
    if (!w.qa || !w.ra || !w.rb || !w.rc)
        err = no_memory(d, "residues of A, B and C", 2 * panel + primes * panel, k > m ? k : m);
    for (size_t r = 0; r < a.rows && err == 0; r += panel) {
        size_t n = a.rows - r < panel ? a.rows - r : panel;
        sherd__fixed_dense(fa, rows_of(a, r, n), w.qa, k);
        err = residue_panel(&w, n, c + r * ldc, ldc);
        if (err == 0) finish(x, r, n);
    }
    sherd__free(w.rc);
    sherd__free(w.rb);
    sherd__free(w.ra);
    sherd__free(w.qa);
    return err;
}

static int multiply(exact *x, sherd_diag *d)
{
    sherd_view a = x->p->a, b = x->p->b;
    bool direct = sherd__exact_in_f64(a.cols, x->a->largest, x->b->largest);
    bool columns;
    if (direct && sherd__skinny_fits(a.rows, b, x->b)) return exact_thin(x, d);
    if (direct && few_fits(a, b, &columns)) return exact_few(x, columns, d);
    double *qb = doubles(b.rows, b.cols);
    if (!qb) return no_memory(d, "B in fixed point", b.rows, b.cols);
    sherd__fixed_dense(x->b, b, qb, b.cols);
    x->scaled = !direct;
    int err = direct ? exact_direct(x, qb, d) : exact_residues(x, qb, d);
    sherd__free(qb);
    return err;
}

int sherd__reference_finished(const sherd__tiled *p, const sherd__fixed *fa, const sherd__fixed *fb,
                              sherd__team *team, sherd_diag *d)
{
    exact x = { .p = p, .a = fa, .b = fb, .team = team };
    double peak = 0;
    int err = sherd__product_shapes(p->a, p->b, p->ldc, d);
    if (err == 0 && p->a.rows > 0 && p->b.cols > 0) err = multiply(&x, d);
    if (err != 0 || !p->peak_c) return err;
    for (unsigned i = 0; i < sherd__team_threads(team); i++)
        if (x.peaks[i] > peak) peak = x.peaks[i];
    *p->peak_c = isfinite(peak) ? peak : 0;
    return SHERD_OK;
}

int sherd__reference_exact(const sherd__matrices *m, const sherd__fixed *fa, const sherd__fixed *fb,
                           sherd_diag *d)
{
    sherd__tiled p = { .type = SHERD_F64, .a = m->a, .b = m->b, .c = m->out, .ldc = m->ld };
    return sherd__reference_finished(&p, fa, fb, NULL, d);
}

int sherd__reference_i128(const sherd__matrices *m, const sherd__fixed *fa, const sherd__fixed *fb,
                          sherd_diag *d)
{
    const sherd_view a = m->a, b = m->b;
    int err = sherd__product_shapes(a, b, m->ld, d);
    sherd__u128 most;
    if (err != 0) return err;
    if (__builtin_mul_overflow((sherd__u128)a.cols * fa->largest, (sherd__u128)fb->largest,
                               &most) ||
        most >> 127 != 0)
        return sherd__fail(d, SHERD_ERANGE, "use fewer bits", "sums exceed 127 bits");
    double *row = doubles(2, a.cols), *col = !row ? NULL : row + a.cols;
    if (!row) return no_memory(d, "a row and a column", 2, a.cols);
    sherd_view bt = sherd_view_t(b);
    for (size_t j = 0; j < b.cols; j++) {
        sherd__fixed_row(fb, bt, j, 0, bt.cols, col);
        for (size_t i = 0; i < a.rows; i++) {
            sherd__i128 sum = 0;
            sherd__fixed_row(fa, a, i, 0, a.cols, row);
            for (size_t l = 0; l < a.cols; l++)
                sum += (sherd__i128)(int64_t)row[l] * (int64_t)col[l];
            m->out[i * m->ld + j] = scalbn((double)sum, -(fa->scale + fb->scale));
        }
    }
    sherd__free(row);
    return SHERD_OK;
}

/* --- float ----------------------------------------------------------------------------------- */

int sherd__reference_float(sherd_view a, sherd_view b, double *c, size_t ldc, sherd_diag *d)
{
    size_t k = a.cols, m = b.cols, lda = k, ldb = m, panel = panel_rows(a);
    double *da = NULL, *db = NULL;
    int err = sherd__product_shapes(a, b, ldc, d);
    if (err != 0) return err;
    const double *pa = sherd__view_borrow_f64(a, &lda), *pb = sherd__view_borrow_f64(b, &ldb);
    if (!pb) {
        db = doubles(k, m);
        if (!db) return no_memory(d, "B as doubles", k, m);
        sherd__view_dense_f64(b, db, m);
        pb = db;
        ldb = m;
    }
    if (pa) {
        err = sherd__gemm_f64(a.rows, k, m, pa, lda, pb, ldb, 0.0, c, ldc);
        goto out;
    }
    da = doubles(panel, k);
    if (!da) {
        err = no_memory(d, "a panel of A", panel, k);
        goto out;
    }
    for (size_t r = 0; r < a.rows && err == 0; r += panel) {
        size_t n = a.rows - r < panel ? a.rows - r : panel;
        sherd__view_dense_f64(rows_of(a, r, n), da, k);
        err = sherd__gemm_f64(n, k, m, da, k, pb, ldb, 0.0, c + r * ldc, ldc);
    }
out:
    sherd__free(da);
    sherd__free(db);
    return err;
}
