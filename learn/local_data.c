/*
 * Copies places into the rows of two buffers, a chunk at a time, and converts them there, so that a
 * round takes the same memory for every owner. A place without a valid example takes its numbers
 * from another row, so that reading takes as long, and is marked as absent; the loss turns that
 * into a gradient of zeros (learn/loss.h).
 *
 * Clipping uses the gradients of single examples without computing them (learn/local_data_clip.c).
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/pick.h"
#include "core/subnormal.h"
#include "core/wipe.h"
#include "learn/local_data_state.h"
#include "learn/secure.h"
#include "matrix/clones.h"
#include "matrix/local.h"
#include "matrix/view.h"

/* ---- making ---------------------------------------------------------------------------------- */

static size_t targets_of(const sherd__own_grader *g)
{
    return g->values ? g->width : 1;
}

static int check_columns(const sherd__own_grader *g, sherd_diag *d)
{
    bool apart = g->data.y.rows > 0;
    size_t targets = targets_of(g), want = apart ? g->inputs : g->inputs + targets;
    if (g->data.x.cols == want && (!apart || g->data.y.cols == targets)) return SHERD_OK;
    return sherd__fail(d, SHERD_ESHAPE, NULL,
                       "the network takes %zu inputs and %zu target%s, the "
                       "examples have %zu columns%s",
                       g->inputs, targets, targets == 1 ? "" : "s",
                       g->data.x.cols + (apart ? g->data.y.cols : 0),
                       apart ? " in two members" : "");
}

static int take_memory(sherd__own_grader *g)
{
    size_t x, targets;
    if (!sherd__mul(g->chunk, g->inputs, &x) || !sherd__mul(g->chunk, g->width, &targets))
        return SHERD_ENOMEM;
    g->x = sherd__calloc(x, sizeof *g->x);
    if (g->values) g->targets = sherd__calloc(targets, sizeof *g->targets);
    else g->labels = sherd__calloc(g->chunk, sizeof *g->labels);
    g->absent = sherd__calloc(g->chunk, sizeof *g->absent);
    g->sum = sherd__calloc(g->count, sizeof *g->sum);
    if (!g->x || !(g->values ? (void *)g->targets : (void *)g->labels) || !g->absent || !g->sum)
        return SHERD_ENOMEM;
    return g->clip > 0 ? sherd__own_clip_new(g) : SHERD_OK;
}

int sherd__own_new(sherd__own_grader **out, const sherd__own_options *o, sherd_diag *d)
{
    sherd__recipe r = *o->recipe;
    size_t counts[SHERD__RECIPE_LAYERS_MAX], kept;
    sherd__own_grader *g = *out = sherd__calloc(1, sizeof *g);
    if (!g) return sherd__fail_memory(d, "a gradient");
    r.l2 = 0; /* it depends on the parameters and not on any example */
    r.precision = SHERD_F64;
    g->data = *o->data;
    g->divide = o->divide;
    g->clip = o->clip;
    g->stop = o->stop;
    g->stop_ctx = o->stop_ctx;
    g->values = o->values;
    g->loss = r.loss;
    int err = sherd__recipe_tiers(&r, &g->tiers, counts, d);
    if (!err) err = sherd__own_chunk(&r, o->clip > 0, &g->chunk, &kept, d);
    if (!err) err = sherd__recipe_network(&r, g->chunk, &g->network, d);
    if (!err) err = sherd__arithmetic_multiplier(&o->by, 0, &g->products, d);
    g->here = g->products;
    if (!err && !sherd__local_is(g->products)) err = sherd_multiplier_local(&g->here, 0, d);
    if (!err && !sherd__form_size(r.in, &g->inputs)) err = SHERD_ESHAPE;
    if (!err) {
        sherd__network_steady(g->network);
        g->width = sherd__network_width(g->network);
        g->count = sherd__network_count(g->network);
        for (size_t t = 0; t < g->tiers; t++) g->at[t + 1] = g->at[t] + counts[t];
        err = check_columns(g, d);
    }
    if (!err && take_memory(g)) err = sherd__fail_memory(d, "examples");
    if (err) {
        sherd__own_free(g);
        *out = NULL;
    }
    return err;
}

void sherd__own_free(sherd__own_grader *g)
{
    if (!g) return;
    if (g->x) sherd__wipe(g->x, g->chunk * g->inputs * sizeof *g->x);
    if (g->sum) sherd__wipe(g->sum, g->count * sizeof *g->sum);
    sherd__own_clip_free(g);
    sherd__network_free(g->network);
    if (g->here.ctx != g->products.ctx) sherd_multiplier_free(g->here);
    sherd_multiplier_free(g->products);
    sherd__free(g->x);
    sherd__free(g->targets);
    sherd__free(g->labels);
    sherd__free(g->absent);
    sherd__free(g->sum);
    sherd__free(g);
}

int sherd__own_memory(const sherd__recipe *r, bool clips, uint64_t *bytes, sherd_diag *d)
{
    size_t chunk, kept;
    uint64_t pass, apart;
    int err = sherd__own_chunk(r, clips, &chunk, &kept, d);
    if (!err) err = sherd__grader_memory(r, chunk, &pass, d);
    /* A pass with its products and copies of all parameters; with clipping also the numbers kept of
       a chunk, which for dense layers are fewer than its activations. */
    if (!err && (__builtin_mul_overflow(kept, 8 * (uint64_t)chunk, &apart) ||
                 __builtin_mul_overflow(pass, clips ? 2 : 1, bytes) ||
                 __builtin_add_overflow(*bytes, apart, bytes)))
        *bytes = UINT64_MAX;
    return err;
}

double *sherd__own_params(sherd__own_grader *g)
{
    return sherd__network_params(g->network);
}

/* ---- examples -------------------------------------------------------------------------------- */

/* Sets out[i] = x[i] / divide, or 0 for numbers that are not finite. Returns whether all were
   finite. */
static bool take_numbers(sherd_view x, size_t row, size_t col, size_t n, double divide, double *out)
{
    bool finite = true;
    sherd__view_row_f64(x, row, col, n, out);
    for (size_t i = 0; i < n; i++) {
        double v = out[i] / divide;
        bool fine = fabs(v) < HUGE_VAL;
        finite &= fine;
        out[i] = sherd__pick_f64(fine, v, 0);
    }
    return finite;
}

/* Returns whether the target is a valid label. */
static bool take_label(const sherd__own_grader *g, sherd_view y, size_t row, size_t col,
                       uint32_t *out)
{
    double v = sherd__view_at(y, row, col);
    bool fine = (v >= 0) & (v < (double)g->width);
    uint32_t label = (uint32_t)sherd__pick_f64(fine, v, 0);
    fine &= (double)label == v;
    *out = label & ((uint32_t)0 - (uint32_t)fine);
    return fine;
}

/* Copies place `place` to row i of the buffers. */
static void take_place(sherd__own_grader *g, uint64_t place, size_t i)
{
    size_t all = g->data.x.rows, row = (size_t)(place % all);
    bool apart = g->data.y.rows > 0;
    sherd_view y = apart ? g->data.y : g->data.x;
    size_t col = apart ? 0 : g->inputs;
    bool fine = take_numbers(g->data.x, row, 0, g->inputs, g->divide, g->x + i * g->inputs);
    fine &= g->values ? take_numbers(y, row, col, g->width, 1, g->targets + i * g->width)
                      : take_label(g, y, row, col, g->labels + i);
    g->absent[i] = !(fine & (place < all));
}

int sherd__own_take(sherd__own_grader *g, uint64_t first, size_t len, sherd_diag *d)
{
    if (g->stop && g->stop(g->stop_ctx))
        return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "the round was abandoned");
    for (size_t i = 0; i < len; i++) take_place(g, first + i, i);
    return SHERD_OK;
}

/* ---- grading --------------------------------------------------------------------------------- */

/* Makes a pass over the first `rows` rows of the buffers. The network then holds the mean of their
   gradients. */
int sherd__own_learn(sherd__own_grader *g, size_t rows, sherd__own_figures *f, sherd_diag *d)
{
    sherd__batch b = { .x = sherd_view_c(g->x, SHERD_F64, rows, g->inputs),
                       .targets = { g->targets, g->labels, g->absent } };
    const double *y;
    double mean = 0;
    int err = sherd__network_learn(g->network, (sherd__engine){ .products = g->now }, &b, &mean, &y,
                                   d);
    if (err) return err;
    *f = (sherd__own_figures){ .cost = mean * (double)rows, .y = y };
    for (size_t i = 0; i < rows; i++) {
        bool hit = g->labels && sherd__labels_hit(y + i * g->width, 1, g->width, g->labels + i);
        f->present += !g->absent[i];
        f->hits += hit & !g->absent[i];
    }
    return SHERD_OK;
}

int64_t sherd__own_saturated(double x, double most)
{
    double a = fabs(x);
    a = sherd__pick_f64(a > most, most, a);
    a = sherd__pick_f64(a < 0x1p52, (a + 0x1p52) - 0x1p52, a);
    return (int64_t)sherd__pick_f64(x == x, copysign(a, x), 0);
}

SHERD__CLONES_DQ
static void add_scaled(double *restrict sum, const double *restrict x, size_t n, double by)
{
    for (size_t i = 0; i < n; i++) {
        double v = x[i] * by;
        sum[i] += sherd__pick_f64(fabs(v) < HUGE_VAL, v, 0);
    }
}

/* Grades without clipping: the sum of each batch is rounded once. */
static int grade_batches(sherd__own_grader *g, const sherd__own_request *r, int64_t *out,
                         sherd_diag *d)
{
    double most = ldexp(1, (int)r->room), cost = 0;
    uint64_t first = r->first, rows = r->rows;
    int64_t *extra = out + g->count;
    memset(g->sum, 0, g->count * sizeof *g->sum);
    memset(extra, 0, SHERD__SECURE_EXTRA * sizeof *extra);
    for (size_t len; rows > 0; rows -= len, first += len) {
        sherd__own_figures f;
        len = rows < g->chunk ? (size_t)rows : g->chunk;
        int err = sherd__own_take(g, first, len, d);
        if (!err) err = sherd__own_learn(g, len, &f, d);
        if (err) return err;
        add_scaled(g->sum, sherd__network_gradient(g->network), g->count, (double)len);
        cost += f.cost;
        extra[0] += (int64_t)f.present;
        extra[2] += (int64_t)f.hits;
    }
    for (size_t t = 0; t < g->tiers; t++) {
        double by = ldexp(1, r->scales[t]);
        for (size_t i = g->at[t]; i < g->at[t + 1]; i++)
            out[i] = sherd__own_saturated(g->sum[i] * by, most);
    }
    extra[1] = sherd__own_saturated(cost * ldexp(1, r->scales[g->tiers]), most);
    return SHERD_OK;
}

static int grade(sherd__own_grader *g, sherd_multiplier by, const sherd__own_request *r,
                 int64_t *out, sherd_diag *d)
{
    g->now = by;
    return g->clip > 0 ? sherd__own_grade_clipped(g, r->first, r->rows, r->scales, out, d)
                       : grade_batches(g, r, out, d);
}

/* All of a sum is computed by one multiplier: two may round differently, and the norm that bounds
   an example's contribution does not cover that. */
int sherd__own_grade(sherd__own_grader *g, const sherd__own_request *r, int64_t *out, sherd_diag *d)
{
    bool before = sherd__subnormal_flush(true);
    int err = grade(g, g->products, r, out, d);
    if (err == SHERD_EDEVICE) err = grade(g, g->here, r, out, d);
    (void)sherd__subnormal_flush(before);
    return err;
}
