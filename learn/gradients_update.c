/*
 * Updates: turns a sum of gradients into new parameters. For a large network this reads and writes
 * much memory while all nodes wait. Therefore each block of numbers passes all stages while it is
 * in cache, and blocks are divided among threads. The stages are: the sum becomes the gradient; L2
 * and the optimiser are applied; the result is copied for the next request; and the gradient's peak
 * is recorded for the next step's scales. Each number is computed independently, so blocks change
 * no bit.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "learn/gradients_state.h"
#include "matrix/clones.h"
#include "matrix/gemm.h"
#include "matrix/view.h"

#define BLOCK 16384u /* numbers: three arrays of this length fit in the second-level cache */
#define ALONE 8u     /* too few blocks to wake a thread for */

static const sherd__layer *tier_layer(const gradients *g, size_t t)
{
    return sherd__network_layer(g->o.network, g->layers[t]);
}

/* ---- stages ---------------------------------------------------------------------------------- */

SHERD__CLONES_DQ
static void take_whole(double *restrict to, const int64_t *restrict from, size_t n, double unit,
                       double by, bool add)
{
    if (add)
        for (size_t i = 0; i < n; i++) to[i] += (double)from[i] * unit / by;
    else
        for (size_t i = 0; i < n; i++) to[i] = (double)from[i] * unit / by;
}

static void take_real(double *restrict to, const double *restrict from, size_t n, double by,
                      bool add)
{
    for (size_t i = 0; i < n; i++) to[i] = (add ? to[i] : 0) + from[i] / by;
}

/* Computes the gradient of numbers [from, from + n) of tier t. */
static void take(const gradients *g, const sherd__gradients_sum *s, size_t t, size_t from, size_t n)
{
    double *to = tier_layer(g, t)->weights_gradient + from;
    if (s->sums->whole)
        take_whole(to, (const int64_t *)s->sums->of[t] + from, n, ldexp(1, -s->scales[t]), s->by,
                   s->add);
    else take_real(to, (const double *)s->sums->of[t] + from, n, s->by, s->add);
}

void sherd__gradients_take(gradients *g, const sherd__gradients_sum *s)
{
    for (size_t t = 0; t < g->tiers; t++) take(g, s, t, 0, g->counts[t]);
    g->peaks_known = false;
}

SHERD__CLONES
static void add_scaled(double *restrict to, const double *restrict from, size_t n, double by)
{
    for (size_t i = 0; i < n; i++) to[i] += by * from[i];
}

/* Biases, which come last, have no L2 term. */
static void add_l2(const gradients *g, size_t t, size_t from, size_t n)
{
    const sherd__layer *l = tier_layer(g, t);
    size_t weights = l->rows * l->cols;
    if (g->o.recipe->l2 <= 0 || from >= weights) return;
    if (n > weights - from) n = weights - from;
    add_scaled(l->weights_gradient + from, l->weights + from, n, g->o.recipe->l2);
}

void sherd__gradients_add_l2(gradients *g)
{
    for (size_t t = 0; t < g->tiers; t++) add_l2(g, t, 0, g->counts[t]);
}

double sherd__gradients_l2(const gradients *g)
{
    double sum = 0;
    for (size_t t = 0; t < g->tiers && g->o.recipe->l2 > 0; t++) {
        const sherd__layer *l = tier_layer(g, t);
        for (size_t i = 0; i < l->rows * l->cols; i++) sum += l->weights[i] * l->weights[i];
    }
    return g->o.recipe->l2 / 2 * sum;
}

/* ---- updates, block by block ----------------------------------------------------------------- */

static size_t blocks_of(const gradients *g, size_t t)
{
    return (g->counts[t] + BLOCK - 1) / BLOCK;
}

typedef struct update {
    gradients *g;
    const sherd__gradients_sum *sum; /* NULL: the network already holds the gradient */
    double rate;
    sherd__version *copy; /* NULL: no copy */
} update;

static void block(void *ctx, size_t i, unsigned thread)
{
    const update *u = ctx;
    gradients *g = u->g;
    size_t t = 0, k = i;
    (void)thread;
    for (; k >= blocks_of(g, t); t++) k -= blocks_of(g, t);
    size_t from = k * BLOCK, at = g->at[t] + from;
    size_t n = g->counts[t] - from < BLOCK ? g->counts[t] - from : BLOCK;
    double *params = sherd__network_params(g->o.network);
    const double *gradient = sherd__network_gradient(g->o.network);
    if (u->sum) take(g, u->sum, t, from, n);
    if (g->o.local_steps == 0) add_l2(g, t, from, n); /* local steps already include it */
    sherd__optimiser_apply(g->o.optimiser, u->rate, at, n, params, gradient);
    if (u->copy) memcpy(u->copy->values + at, params + at, n * sizeof *params);
    if (!sherd__view_peak(sherd_view_c(gradient + at, SHERD_F64, 1, n), &g->block_peaks[i]))
        g->block_peaks[i] = INFINITY;
}

static void join_peaks(gradients *g)
{
    size_t i = 0;
    for (size_t t = 0; t < g->tiers; t++) {
        double most = 0;
        for (size_t end = i + blocks_of(g, t); i < end; i++)
            most = g->block_peaks[i] > most ? g->block_peaks[i] : most;
        g->peaks[t] = most;
    }
    g->peaks_known = true;
}

int sherd__gradients_blocks(gradients *g)
{
    g->blocks = 0;
    for (size_t t = 0; t < g->tiers; t++) g->blocks += blocks_of(g, t);
    g->peaks = sherd__calloc(g->tiers, sizeof *g->peaks);
    g->block_peaks = sherd__calloc(g->blocks, sizeof *g->block_peaks);
    if (!g->peaks || !g->block_peaks) return SHERD_ENOMEM;
    return g->blocks > ALONE ? sherd__team_new(&g->team, sherd__blas_threads()) : SHERD_OK;
}

/* The copy of parameters is out of date. Its memory is reused if it has no other holder, since
   allocating memory for a large network takes as long as filling it. */
static sherd__version *retire(gradients *g)
{
    sherd__version *old = g->current;
    g->current = NULL;
    if (old && atomic_load_explicit(&old->holders, memory_order_acquire) == 1) return old;
    sherd__version_release(old);
    return sherd__version_new(g->count, 0); /* NULL: the next request tries again and reports the
                                               failure */
}

void sherd__gradients_apply(gradients *g, double rate, const sherd__gradients_update *u,
                            const sherd__gradients_sum *sum)
{
    update all = { g, sum, rate, retire(g) };
    sherd__optimiser_begin(g->o.optimiser);
    sherd__team_run(g->team, g->blocks, block, &all);
    join_peaks(g);
    g->updates++;
    g->current = all.copy;
    if (g->current) g->current->number = g->updates;
    g->stats.updates++;
    g->stats.parts += u->parts;
    g->stats.examples += u->examples;
    if (g->o.note) g->o.note(g->o.note_ctx, u);
}
