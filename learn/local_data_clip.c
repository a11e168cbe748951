/*
 * Clipped gradients of single examples, from passes over many. For one example the gradient of a
 * dense layer's weights is x^T dy, where x and dy have one row each, so its norm is |x| |dy| and
 * can be found without the gradient (Goodfellow, arXiv 1510.01799). It is added up as rint(x_i dy_j
 * factor) and never stored. In a convolution x and dy have one row per output pixel, so its
 * gradient is computed and kept until the factor is known, which depends on all layers.
 *
 * x and dy may be any finite numbers, so their squares may overflow float64 or become 0. Each is
 * scaled by a power of two to entries of about 1 before it is squared, and the sum is made of these
 * scaled numbers. So the sum contains nothing that the norm does not cover. In addition, the
 * squares of each example's integers are summed, and an example beyond
 * sherd__privacy_gradient_bound is made absent by a second pass over the chunk.
 *
 * Subnormal numbers count as zeros here. That makes no entry of the vector larger. The norm loses:
 * x and dy that are subnormal, which are zeros in the vector too; of scaled numbers, squares below
 * 2^-1022 next to one of at least 2^-44; and parts below 2^-511 of the clipping norm, to which it
 * is compared. The slack in choose_factors is larger than the latter two.
 *
 * The contribution of an example depends only on the example and the parameters: products are
 * chains of sums by ascending k, whatever other rows there are (matrix/tiled.h). Rows that are
 * absent have gradients of zeros unless parameters overflow; the factor 0 covers that case.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/pick.h"
#include "core/wipe.h"
#include "learn/local_data_state.h"
#include "learn/secure.h"
#include "matrix/clones.h"
#include "matrix/local.h"
#include "matrix/view.h"

#define BLOCK 32u /* columns that are summed at a time */
#define CHUNK_MOST 64u
#define POWER_MOST                                                                                 \
    1000                 /* largest absolute exponent of a scale: the powers of two are normal
                            numbers */
#define NEAREST 0x1.8p52 /* adding and subtracting it rounds a number below 2^51 to an integer */

/* Results of a pass for a layer with parameters. */
struct sherd__own_tier {
    size_t rows, cols;
    bool dense, total; /* total: each bias gradient is the sum over all
                          (sherd__network_spec.bias_total) */
    const double *x;   /* dense: chunk x rows, borrowed until the next pass */
    double *dy;        /* dense: chunk x cols */
    double *each;      /* other layers: chunk x (rows x cols + cols), the gradients */
    /* for each example: x is used as x 2^-x_power times 2^x_power; dy, or the gradient, is stored
       multiplied by 2^-power */
    int32_t x_power[CHUNK_MOST], power[CHUNK_MOST];
};

static size_t each_len(const sherd__own_tier *t)
{
    return t->rows * t->cols + t->cols;
}

/* ---- making ---------------------------------------------------------------------------------- */

int sherd__own_chunk(const sherd__recipe *r, bool clips, size_t *chunk, size_t *kept, sherd_diag *d)
{
    sherd__tensor_shape in = r->in;
    *kept = clips ? BLOCK : 0;
    *chunk = clips ? CHUNK_MOST : SHERD__OWN_CHUNK;
    for (size_t i = 0; i < r->len && clips; i++) {
        sherd__layer l = { .spec = r->layers[i], .in = in };
        size_t numbers = 0;
        int err = l.spec.kind->fit(&l, d);
        if (err) return err;
        if (sherd__layer_windows(&l).count > 0 &&
            (!sherd__mul(l.rows + 1, l.cols, &numbers) || !sherd__add(*kept, numbers, kept)))
            *kept = SIZE_MAX;
        in = l.out;
    }
    while (*chunk > 1 && *kept > SHERD__OWN_APART / *chunk) *chunk /= 2;
    return SHERD_OK;
}

/* Returns the tier of a layer. */
static size_t tier_of(const sherd__own_grader *g, const sherd__layer *l)
{
    size_t t = 0;
    while (t < g->tiers && g->at[t] != l->from) t++;
    return t;
}

static int take(void *ctx, const sherd__layer *l, sherd_view x, const double *dy, sherd_diag *d);

int sherd__own_clip_new(sherd__own_grader *g)
{
    g->apart = sherd__calloc(g->tiers, sizeof *g->apart);
    g->norms = sherd__calloc(g->chunk, sizeof *g->norms);
    g->by = sherd__calloc(g->chunk, sizeof *g->by);
    g->slope = sherd__calloc(g->width, sizeof *g->slope);
    g->squared = sherd__calloc(g->chunk * BLOCK, sizeof *g->squared);
    if (!g->squared || !g->apart || !g->norms || !g->by || !g->slope) return SHERD_ENOMEM;
    for (size_t i = 0; i < sherd__network_len(g->network); i++) {
        const sherd__layer *l = sherd__network_layer(g->network, i);
        size_t numbers;
        if (l->cols == 0) continue;
        sherd__own_tier *t = &g->apart[tier_of(g, l)];
        *t = (sherd__own_tier){ .rows = l->rows,
                                .cols = l->cols,
                                .total = l->bias_total,
                                .dense = sherd__layer_windows(l).count == 0 };
        if (!sherd__mul(t->dense ? t->cols : each_len(t), g->chunk, &numbers)) return SHERD_ENOMEM;
        double **to = t->dense ? &t->dy : &t->each;
        *to = sherd__calloc(numbers, sizeof **to);
        if (!*to) return SHERD_ENOMEM;
    }
    sherd__network_apart(g->network, (sherd__layer_apart){ take, g });
    return SHERD_OK;
}

void sherd__own_clip_free(sherd__own_grader *g)
{
    for (size_t i = 0; i < g->tiers && g->apart; i++) {
        sherd__own_tier *t = &g->apart[i];
        if (t->dy) sherd__wipe(t->dy, g->chunk * t->cols * sizeof *t->dy);
        if (t->each) sherd__wipe(t->each, g->chunk * each_len(t) * sizeof *t->each);
        sherd__free(t->dy);
        sherd__free(t->each);
    }
    sherd__free(g->apart);
    sherd__free(g->norms);
    sherd__free(g->by);
    sherd__free(g->slope);
    sherd__free(g->squared);
}

/* ---- norms ----------------------------------------------------------------------------------- */

static int clamped(int e)
{
    return e < -POWER_MOST ? -POWER_MOST : e > POWER_MOST ? POWER_MOST : e;
}

/* Returns 2^e; |e| is at most POWER_MOST. */
static double power_of_two(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns the e, clamped, for which all entries of x 2^-e are below 1 and at least one is 1/2 or
   more. */
static int power_of(const double *x, size_t n)
{
    return clamped((int)(sherd__peak_bits(x, n) >> 52) - 1022);
}

SHERD__CLONES
static void scale(double *restrict x, size_t n, double by)
{
    for (size_t i = 0; i < n; i++) x[i] *= by;
}

/* Returns the squared norm of x times `by`. */
SHERD__CLONES
static double squares(const double *restrict x, size_t n, double by)
{
    double part[8] = { 0 }, sum = 0;
    size_t whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        for (size_t k = 0; k < 8; k++) part[k] += (x[i + k] * by) * (x[i + k] * by);
    for (size_t i = whole; i < n; i++) sum += (x[i] * by) * (x[i] * by);
    for (size_t k = 0; k < 8; k++) sum += part[k];
    return sum;
}

/* Computes the gradients of biases from rows of dy; to has t->cols numbers. */
static void sum_biases(const sherd__own_tier *t, const double *dy, size_t rows, double *to)
{
    double all = 0;
    memset(to, 0, t->cols * sizeof *to);
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < t->cols; j++) to[j] += dy[r * t->cols + j];
    for (size_t j = 0; j < t->cols; j++) all += to[j];
    for (size_t j = 0; j < t->cols && t->total; j++) to[j] = all;
}

static double bias_norm(const sherd__own_tier *t, const double *dy)
{
    double all = 0;
    if (!t->total) return sqrt(squares(dy, t->cols, 1));
    for (size_t j = 0; j < t->cols; j++) all += dy[j];
    return fabs(all) * sqrt((double)t->cols);
}

/* Adds the squared norm of a part of example i's gradient; that norm is `norm` 2^power. Norms are
   in units of the clipping norm, so that squares below the range of float64 are negligible compared
   with 1. */
static void add_norm(sherd__own_grader *g, size_t i, double norm, int power)
{
    norm *= power_of_two(power) / g->unit;
    g->norms[i] += norm * norm;
}

/* Computes the gradient of example i of a convolution with `rows` output pixels. */
static int make_each(sherd__own_grader *g, sherd__own_tier *t, size_t i, sherd_view x,
                     const double *dy, sherd_diag *d)
{
    double *to = t->each + i * each_len(t);
    sherd__tiled p = { .type = SHERD_F64,
                       .c = to,
                       .ldc = t->cols,
                       .a = sherd_view_t(x),
                       .b = sherd_view_c(dy, SHERD_F64, x.rows, t->cols) };
    int err = sherd__local_multiply(g->here, &p, d);
    sum_biases(t, dy, x.rows, to + t->rows * t->cols);
    t->power[i] = power_of(to, each_len(t));
    scale(to, each_len(t), power_of_two(-t->power[i]));
    add_norm(g, i, sqrt(squares(to, each_len(t), 1)), t->power[i]);
    return err;
}

static int take(void *ctx, const sherd__layer *l, sherd_view x, const double *dy, sherd_diag *d)
{
    sherd__own_grader *g = ctx;
    sherd__own_tier *t = &g->apart[tier_of(g, l)];
    size_t examples = g->examples;
    if (!t->dense) {
        int err = SHERD_OK;
        const size_t rows = x.rows / examples;
        for (size_t i = 0; i < examples && !err; i++)
            err = make_each(g, t, i, sherd_view_sub(x, i * rows, rows, 0, x.cols),
                            dy + i * rows * t->cols, d);
        return err;
    }
    t->x = x.data;
    memcpy(t->dy, dy, examples * t->cols * sizeof *dy);
    for (size_t i = 0; i < examples; i++) {
        const double *of = t->x + i * t->rows;
        double *slope = t->dy + i * t->cols;
        t->x_power[i] = power_of(of, t->rows);
        t->power[i] = power_of(slope, t->cols);
        scale(slope, t->cols, power_of_two(-t->power[i]));
        double norm = sqrt(squares(of, t->rows, power_of_two(-t->x_power[i])) *
                           squares(slope, t->cols, 1));
        add_norm(g, i, norm, clamped(t->x_power[i] + t->power[i]));
        add_norm(g, i, bias_norm(t, slope), t->power[i]);
    }
    return SHERD_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Computes sum[j] += rint(a[e] dy[e][j]) over examples, and adds squares to BLOCK sums of each
   example, which are exact below 2^53. Numbers beyond the units cannot be of a clipped gradient;
   they are the result of a norm that overflowed. */
SHERD__CLONES
static void add_block(double *restrict sum, const double *restrict a, const double *restrict dy,
                      size_t examples, size_t cols, size_t n, double *restrict squared)
{
    const double most = 2.0 * (double)SHERD__PRIVACY_UNITS;
    double part[BLOCK] = { 0 };
    for (size_t e = 0; e < examples; e++, dy += cols, squared += BLOCK)
        for (size_t j = 0; j < n; j++) {
            double v = a[e] * dy[j];
            v = sherd__pick_f64(fabs(v) <= most, v, 0);
            v = (v + NEAREST) - NEAREST;
            part[j] += v;
            squared[j] += v * v;
        }
    for (size_t j = 0; j < n; j++) sum[j] += part[j];
}

static void add_row(double *sum, const double *a, const double *dy, size_t examples, size_t cols,
                    double *squared)
{
    size_t j = 0;
    for (; j + BLOCK <= cols; j += BLOCK)
        add_block(sum + j, a, dy + j, examples, cols, BLOCK, squared);
    if (j < cols) add_block(sum + j, a, dy + j, examples, cols, cols - j, squared);
}

/* Returns the factor that turns an example's scaled numbers into integers before rounding. */
static double factor(const sherd__own_grader *g, size_t e, int power)
{
    return g->by[e] / g->unit * power_of_two(power);
}

static void add_dense(const sherd__own_grader *g, const sherd__own_tier *t, size_t examples,
                      double *sum)
{
    double a[CHUNK_MOST], by[CHUNK_MOST], x_by[CHUNK_MOST];
    for (size_t e = 0; e < examples; e++) {
        by[e] = factor(g, e, clamped(t->x_power[e] + t->power[e]));
        x_by[e] = power_of_two(-t->x_power[e]);
    }
    for (size_t i = 0; i < t->rows; i++) {
        for (size_t e = 0; e < examples; e++) a[e] = t->x[e * t->rows + i] * x_by[e] * by[e];
        add_row(sum + i * t->cols, a, t->dy, examples, t->cols, g->squared);
    }
    sum += t->rows * t->cols;
    for (size_t e = 0; e < examples && t->total; e++)
        sum_biases(t, t->dy + e * t->cols, 1, t->dy + e * t->cols);
    for (size_t e = 0; e < examples; e++) by[e] = factor(g, e, t->power[e]);
    add_row(sum, by, t->dy, examples, t->cols, g->squared);
}

/* Adds stored gradients, example by example. */
static void add_each(const sherd__own_grader *g, const sherd__own_tier *t, size_t examples,
                     double *sum)
{
    for (size_t e = 0; e < examples; e++) {
        double by = factor(g, e, t->power[e]);
        add_row(sum, &by, t->each + e * each_len(t), 1, each_len(t), g->squared + e * BLOCK);
    }
}

/* Computes each example's factor units min(1, C/|g|) from its squared norm in units of C, rounded
   up by more than the error of a sum of so many terms. A norm that is NaN gives a factor of 0. */
static void choose_factors(sherd__own_grader *g, size_t examples)
{
    const double slack = 1 + 0x1p-50 * (double)(g->count + g->inputs + 64);
    for (size_t i = 0; i < examples; i++) {
        double norm = sqrt(g->norms[i]) * slack;
        bool fine = (norm < HUGE_VAL) & !g->absent[i];
        double by = (double)SHERD__PRIVACY_UNITS / sherd__pick_f64(fine & (norm > 1), norm, 1);
        g->by[i] = sherd__pick_f64(fine, by, 0);
    }
}

/* Returns whether all examples are within the bound. Those that are not become absent. */
static bool all_bounded(sherd__own_grader *g, size_t examples)
{
    const double bound = (double)sherd__privacy_gradient_bound(g->count);
    bool all = true;
    for (size_t e = 0; e < examples; e++) {
        double sum = 0;
        for (size_t j = 0; j < BLOCK; j++) sum += g->squared[e * BLOCK + j];
        bool fine = sum <= bound;
        g->absent[e] |= !fine;
        all &= fine;
    }
    return all;
}

/* ---- figures --------------------------------------------------------------------------------- */

/* Adds the figures of example i: 1 for its presence, its cost up to 1, and 1 for a hit. */
static int add_figures(sherd__own_grader *g, size_t i, const double *y, double cost_by,
                       int64_t *extra, sherd_diag *d)
{
    const double figure = (double)SHERD__PRIVACY_FIGURE;
    const int64_t there = -(int64_t)!g->absent[i];
    sherd__targets t = { .values = g->targets ? g->targets + i * g->width : NULL,
                         .labels = g->labels ? g->labels + i : NULL };
    bool hit = t.labels && sherd__labels_hit(y, 1, g->width, t.labels);
    double cost = 0;
    int err = sherd__loss_gradient(g->loss, y, 1, g->width, t, &cost, g->slope, d);
    extra[0] += SHERD__PRIVACY_FIGURE & there;
    extra[1] += sherd__own_saturated(cost * cost_by * figure, figure) & there;
    extra[2] += SHERD__PRIVACY_FIGURE & there & -(int64_t)hit;
    return err;
}

/* ---- a round --------------------------------------------------------------------------------- */

/* Makes a pass and the sum of its rounded gradients. */
static int sum_chunk(sherd__own_grader *g, size_t examples, sherd__own_figures *f, sherd_diag *d)
{
    memset(g->norms, 0, examples * sizeof *g->norms);
    memset(g->squared, 0, examples * BLOCK * sizeof *g->squared);
    memset(g->sum, 0, g->count * sizeof *g->sum);
    g->examples = examples;
    g->unit = g->clip / (double)examples; /* a pass computes parts of a mean over all examples */
    int err = sherd__own_learn(g, examples, f, d);
    if (err) return err;
    choose_factors(g, examples);
    for (size_t t = 0; t < g->tiers; t++) {
        const sherd__own_tier *of = &g->apart[t];
        (of->dense ? add_dense : add_each)(g, of, examples, g->sum + g->at[t]);
    }
    return SHERD_OK;
}

static int grade_chunk(sherd__own_grader *g, size_t examples, double cost_by, int64_t *out,
                       sherd_diag *d)
{
    sherd__own_figures f;
    int err;
    do err = sum_chunk(g, examples, &f, d);
    while (!err && !all_bounded(g, examples));
    for (size_t i = 0; i < g->count && !err; i++) out[i] += (int64_t)g->sum[i];
    for (size_t i = 0; i < examples && !err; i++)
        err = add_figures(g, i, f.y + i * g->width, cost_by, out + g->count, d);
    return err;
}

int sherd__own_grade_clipped(sherd__own_grader *g, uint64_t first, uint64_t rows,
                             const int32_t *scales, int64_t *out, sherd_diag *d)
{
    double cost_by = ldexp(1, scales[g->tiers]);
    memset(out, 0, (g->count + SHERD__SECURE_EXTRA) * sizeof *out);
    for (size_t len; rows > 0; rows -= len, first += len) {
        len = rows < g->chunk ? (size_t)rows : g->chunk;
        int err = sherd__own_take(g, first, len, d);
        if (!err) err = grade_chunk(g, len, cost_by, out, d);
        if (err) return err;
    }
    return SHERD_OK;
}
