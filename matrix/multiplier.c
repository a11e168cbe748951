/*
 * The multiplier interface, which checks arguments once for every implementation, and the local
 * implementation. That one stores kept operands as row-major f64 copies: later changes of the
 * caller's memory have no effect, as with operands that are resident on nodes.
 */
#include "sherd/multiplier.h"

#include <assert.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/options.h"
#include "matrix/fixed.h"
#include "matrix/funcs.h"
#include "matrix/gemm.h"
#include "matrix/local.h"
#include "matrix/reference.h"
#include "matrix/view.h"
#include "matrix/windows.h"

static int check_abi(sherd_multiplier m, sherd_diag *d)
{
    if (!m.ops) return sherd__fail(d, SHERD_EINVAL, NULL, "no multiplier was given");
    if (m.ops->abi != SHERD_MULTIPLIER_ABI)
        return sherd__fail(d, SHERD_EINVAL, "build it against this version's headers",
                           "multiplier of interface version %u, expected %u", m.ops->abi,
                           SHERD_MULTIPLIER_ABI);
    return SHERD_OK;
}

int sherd_multiplier_multiply(sherd_multiplier m, sherd_view a, sherd_view b, double *c, size_t ldc,
                              sherd_diag *d)
{
    int err = check_abi(m, d);
    if (err == 0) err = sherd__product_shapes(a, b, ldc, d);
    const sherd__result out = { c, a.rows, b.cols, ldc };
    if (err == 0) err = sherd__view_apart(a, "A", &out, d);
    if (err == 0) err = sherd__view_apart(b, "B", &out, d);
    if (err != 0) return err;
    return m.ops->multiply(m.ctx, a, b, c, ldc, d);
}

static int check_windows(sherd_view a, const sherd_windows *w, sherd_diag *d)
{
    sherd__windows s;
    size_t rows;
    if (!sherd__windows_fit(w, &s))
        return sherd__fail(d, SHERD_EINVAL,
                           "the window must fit into the image, and the padding must be smaller "
                           "than the window",
                           "windows of %u every %u with padding %u of images of %u x %u x %u",
                           w->window, w->stride, w->padding, w->height, w->width, w->channels);
    if (a.cols != s.image || !sherd__mul(a.rows, s.count, &rows))
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "an operand of %zu x %zu: its rows must be images of %zu numbers with "
                           "%zu windows each",
                           a.rows, a.cols, s.image, s.count);
    return SHERD_OK;
}

int sherd_multiplier_keep(sherd_kept **kept, sherd_multiplier m, sherd_view a,
                          const sherd_keep_options *how, sherd_diag *d)
{
    sherd_keep_options own;
    *kept = NULL;
    int err = check_abi(m, d);
    if (err == 0) err = sherd__options_read(&own, sizeof own, how, "sherd_keep_options", d);
    if (err == 0) err = sherd__view_check(a, "A", d);
    if (err == 0 && own.windows) err = check_windows(a, own.windows, d);
    if (err != 0) return err;
    if (own.part == 0) own.part = a.rows > 0 ? a.rows : 1;
    return m.ops->keep(m.ctx, a, &own, kept, d);
}

static int check_rows(sherd_rows r, size_t rows, size_t part, sherd_diag *d)
{
    if (r.first > rows || r.count > rows - r.first)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%zu rows from %zu on: %zu are kept", r.count,
                           r.first, rows);
    if (r.first % part == 0 && (r.count % part == 0 || r.first + r.count == rows)) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "use whole parts",
                       "%zu rows from %zu on: the operand is kept in parts of %zu", r.count,
                       r.first, part);
}

int sherd_multiplier_multiply_rows(sherd_multiplier m, sherd_kept *kept, sherd_rows rows,
                                   bool transposed, sherd_view b, double *c, size_t ldc,
                                   sherd_diag *d)
{
    int err = check_abi(m, d);
    sherd_view shape = sherd_view_c("", SHERD_U8, 0, 0);
    size_t part;
    if (err != 0) return err;
    if (!kept) return sherd__fail(d, SHERD_EINVAL, NULL, "no kept operand was given");
    m.ops->kept_shape(kept, &shape.rows, &shape.cols, &part);
    err = check_rows(rows, shape.rows, part, d);
    shape.rows = rows.count;
    if (transposed) shape = sherd_view_t(shape);
    if (err == 0) err = sherd__product_shapes(shape, b, ldc, d);
    if (err != 0) return err;
    return m.ops->multiply_kept(m.ctx, kept, rows, transposed, b, c, ldc, d);
}

int sherd_multiplier_multiply_kept(sherd_multiplier m, sherd_kept *kept, bool transposed,
                                   sherd_view b, double *c, size_t ldc, sherd_diag *d)
{
    sherd_rows all = { .first = 0 };
    size_t cols, part;
    int err = check_abi(m, d);
    if (err != 0) return err;
    if (kept) m.ops->kept_shape(kept, &all.count, &cols, &part);
    return sherd_multiplier_multiply_rows(m, kept, all, transposed, b, c, ldc, d);
}

void sherd_multiplier_release(sherd_multiplier m, sherd_kept *kept)
{
    if (kept) m.ops->release(m.ctx, kept);
}

int sherd_multiplier_map(sherd_multiplier m, sherd_op op, sherd_view a, sherd_view b, double *out,
                         size_t ld, sherd_diag *d)
{
    unsigned arity = sherd__map_arity(op);
    int err = check_abi(m, d);
    if (err == 0) err = sherd__view_check(a, "A", d);
    if (err == 0 && arity == 2) err = sherd__view_check(b, "B", d);
    if (err != 0) return err;
    if (arity == 0)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%d is not an element-wise operation", (int)op);
    if (arity == 2 && (b.rows != a.rows || b.cols != a.cols))
        return sherd__fail(d, SHERD_ESHAPE, "element-wise operations need equal shapes",
                           "A is %zu x %zu, B is %zu x %zu", a.rows, a.cols, b.rows, b.cols);
    if (ld < a.cols)
        return sherd__fail(d, SHERD_EINVAL, NULL,
                           "the result's leading dimension is %zu, its rows have %zu elements", ld,
                           a.cols);
    return m.ops->map(m.ctx, op, a, b, out, ld, d);
}

void sherd_multiplier_free(sherd_multiplier m)
{
    if (m.ops) m.ops->free(m.ctx);
}

/* --- local ----------------------------------------------------------------------------------- */

typedef struct local {
    unsigned bits;
    sherd__team *team; /* created on first use */
    sherd__tiled_room room;
} local;

struct sherd_kept {
    size_t rows, cols, part; /* of images if windows are kept */
    sherd__windows windows;  /* count 0: no windows */
    sherd__fixed fixed;      /* chosen once, if bits != 0 */
    double *data;            /* rows x cols */
};

/* Chooses the exponent of an operand. Its peak may be known; if it is unknown and the operand is of
 * floats, it is stored there. */
static int choose(const local *l, sherd_view v, double *peak, const char *name, sherd__fixed *out,
                  sherd_diag *d)
{
    bool floats = v.dtype == SHERD_F64 || v.dtype == SHERD_F32;
    if (floats && peak && *peak > 0) {
        sherd__fixed_of_peak(*peak, l->bits, out);
        return SHERD_OK;
    }
    int err = sherd__fixed_choose(v, l->bits, name, out, d);
    if (err == 0 && floats && peak) *peak = out->max_abs;
    return err;
}

/* Computes C = A*B, where A is a kept operand (fa its fixed point) or a view of the caller's (fa
 * NULL). */
static int local_product(const local *l, const sherd__matrices *m, const sherd__fixed *fa,
                         sherd_diag *d)
{
    sherd__fixed fixed_a, fixed_b;
    int err = SHERD_OK;
    if (l->bits == 0) return sherd__reference_float(m->a, m->b, m->out, m->ld, d);
    if (!fa) {
        err = sherd__fixed_choose(m->a, l->bits, "A", &fixed_a, d);
        fa = &fixed_a;
    }
    if (err == 0) err = sherd__fixed_choose(m->b, l->bits, "B", &fixed_b, d);
    if (err == 0) err = sherd__reference_exact(m, fa, &fixed_b, d);
    return err;
}

static int local_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                          sherd_diag *d)
{
    return local_product(ctx, &(sherd__matrices){ a, b, c, ldc }, NULL, d);
}

static int local_keep(void *ctx, sherd_view a, const sherd_keep_options *how, sherd_kept **out,
                      sherd_diag *d)
{
    const local *l = ctx;
    size_t len;
    sherd_kept *kept = sherd__calloc(1, sizeof *kept);
    int err = !kept ? SHERD_ENOMEM : SHERD_OK;
    if (err == 0 && l->bits != 0) err = sherd__fixed_choose(a, l->bits, "A", &kept->fixed, d);
    if (err == 0 && (!sherd__mul(a.rows, a.cols, &len) || !sherd__mul(len, sizeof(double), &len) ||
                     !(kept->data = sherd__alloc(len))))
        err = SHERD_ENOMEM;
    if (err != 0) {
        sherd__free(kept);
        return err == SHERD_ENOMEM
                   ? sherd__fail_memory(d, "a kept operand of %zu x %zu", a.rows, a.cols)
                   : err;
    }
    kept->rows = a.rows;
    kept->cols = a.cols;
    kept->part = how->part;
    if (how->windows) (void)sherd__windows_fit(how->windows, &kept->windows); /* it fits */
    sherd__view_dense_f64(a, kept->data, a.cols);
    *out = kept;
    return SHERD_OK;
}

static int local_multiply_kept(void *ctx, sherd_kept *kept, sherd_rows rows, bool transposed,
                               sherd_view b, double *c, size_t ldc, sherd_diag *d)
{
    const local *l = ctx;
    bool windows = kept->windows.count > 0;
    sherd_view a;
    double *laid = NULL;
    int err = SHERD_OK;
    if (windows)
        err = sherd__windows_lay(&kept->windows, kept->data, sizeof *laid,
                                 (sherd_rows){ rows.first, rows.count }, (void **)&laid, d);
    if (err != 0) return err;
    if (windows) a = sherd_view_c(laid, SHERD_F64, rows.count, kept->windows.row);
    else a = sherd_view_c(kept->data + rows.first * kept->cols, SHERD_F64, rows.count, kept->cols);
    if (transposed) a = sherd_view_t(a);
    err = local_product(l, &(sherd__matrices){ a, b, c, ldc }, l->bits == 0 ? NULL : &kept->fixed,
                        d);
    sherd__free(laid);
    return err;
}

static void local_kept_shape(const sherd_kept *kept, size_t *rows, size_t *cols, size_t *part)
{
    *rows = kept->rows;
    *cols = kept->cols;
    *part = kept->part;
    sherd__windows_shape(&kept->windows, rows, cols, part);
}

static void local_release(void *ctx, sherd_kept *kept)
{
    (void)ctx;
    sherd__free(kept->data);
    sherd__free(kept);
}

static int local_map(void *ctx, sherd_op op, sherd_view a, sherd_view b, double *out, size_t ld,
                     sherd_diag *d)
{
    enum { CHUNK = 512 };
    double x[CHUNK], y[CHUNK];
    bool two = sherd_op_operands(op) == 2;
    (void)ctx;
    (void)d;
    for (size_t r = 0; r < a.rows; r++)
        for (size_t c = 0; c < a.cols; c += CHUNK) {
            size_t n = a.cols - c < CHUNK ? a.cols - c : CHUNK;
            sherd__view_row_f64(a, r, c, n, x);
            if (two) sherd__view_row_f64(b, r, c, n, y);
            int err = sherd__map_f64(op, x, two ? y : NULL, n, out + r * ld + c);
            if (err != 0) return err;
        }
    return SHERD_OK;
}

static void local_free(void *ctx)
{
    local *l = ctx;
    sherd__team_free(l->team);
    sherd__tiled_room_fini(&l->room);
    sherd__free(l);
}

static const sherd_multiplier_ops local_ops = {
    .abi = SHERD_MULTIPLIER_ABI,
    .name = "local",
    .multiply = local_multiply,
    .keep = local_keep,
    .multiply_kept = local_multiply_kept,
    .kept_shape = local_kept_shape,
    .release = local_release,
    .map = local_map,
    .free = local_free,
};

int sherd_multiplier_local(sherd_multiplier *out, unsigned bits, sherd_diag *d)
{
    *out = (sherd_multiplier){ 0 };
    if (bits != 0 && (bits < SHERD__FIXED_BITS_MIN || bits > SHERD__FIXED_BITS_MAX))
        return sherd__fail(d, SHERD_EINVAL, "0 is float64, 17 the usual fixed point",
                           "%u bits: expected 0, or %u to %u", bits, SHERD__FIXED_BITS_MIN,
                           SHERD__FIXED_BITS_MAX);
    local *l = sherd__calloc(1, sizeof *l);
    if (!l) return sherd__fail_memory(d, "a multiplier");
    l->bits = bits;
    *out = (sherd_multiplier){ &local_ops, l };
    return SHERD_OK;
}

bool sherd__local_fixed(sherd_multiplier m)
{
    return m.ops == &local_ops && ((const local *)m.ctx)->bits != 0;
}

bool sherd__local_is(sherd_multiplier m)
{
    return m.ops == &local_ops && ((const local *)m.ctx)->bits == 0;
}

sherd__team *sherd__local_team(sherd_multiplier m)
{
    unsigned threads = sherd__blas_threads();
    if (m.ops != &local_ops) return NULL;
    if (threads > SHERD__TEAM_MOST) threads = SHERD__TEAM_MOST;
    local *l = m.ctx;
    if (l->team && sherd__team_threads(l->team) != threads) {
        sherd__team_free(l->team);
        l->team = NULL;
    }
    if (!l->team && threads > 1 && sherd__team_new(&l->team, threads) != 0) l->team = NULL;
    return l->team;
}

static int finished(const local *l, const sherd__tiled *p, sherd__team *team, sherd_diag *d)
{
    sherd__fixed a, b;
    int err = choose(l, p->a, p->peak_a, "A", &a, d);
    if (err == 0) err = choose(l, p->b, p->peak_b, "B", &b, d);
    return err ? err : sherd__reference_finished(p, &a, &b, team, d);
}

int sherd__local_multiply(sherd_multiplier m, const sherd__tiled *p, sherd_diag *d)
{
    local *l = m.ctx;
    assert(m.ops == &local_ops);
    if (l->bits != 0) return finished(l, p, sherd__local_team(m), d);
    int err = sherd__tiled_multiply(p, sherd__local_team(m), &l->room);
    return err ? sherd__fail_memory(d, "a product of %zu x %zu and %zu x %zu", p->a.rows, p->a.cols,
                                    p->b.rows, p->b.cols)
               : SHERD_OK;
}
