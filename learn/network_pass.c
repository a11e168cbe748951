/*
 * Passes of a network: forward through the layers, the loss, and backward. Shapes were fitted when
 * the network was created; passes trust them and check only what comes with the batch. Gradients
 * alternate between two buffers. A layer that is able to computes the activation above it in its
 * own passes, and the activation's layer is then skipped here.
 */
#include <math.h>

#include "core/diag.h"
#include "learn/network_state.h"
#include "matrix/local.h"
#include "matrix/view.h"

/* Returns the lowest layer that computes, if its input can be a kept operand of a multiplier.
   Windows that are too long for nodes are laid out here instead. */
static const sherd__layer *keeper(const sherd__network *n)
{
    size_t i = 0;
    while (i < n->len && n->layers[i].spec.kind->traits & SHERD__LAYER_ALIAS) i++;
    const sherd__layer *l = i < n->len && n->layers[i].cols > 0 ? &n->layers[i] : NULL;
    return l && sherd__layer_windows(l).row <= SHERD__WINDOW_MAX ? l : NULL;
}

bool sherd__network_keeps(const sherd__network *n)
{
    return keeper(n) != NULL;
}

int sherd__network_keep(const sherd__network *n, sherd__engine e, sherd_view x, size_t part,
                        sherd_kept **kept, sherd_diag *d)
{
    const sherd__layer *l = keeper(n);
    *kept = NULL;
    return !l ? SHERD_OK : sherd__layer_keep(l, e, x, part, kept, d);
}

static int check_kept(const sherd__network *n, sherd__engine e, const sherd__batch *b,
                      sherd_diag *d)
{
    size_t rows, cols, part, each = 1;
    const sherd__layer *l = keeper(n);
    e.products.ops->kept_shape(b->kept, &rows, &cols, &part);
    if (l && sherd__layer_windows(l).count > 0) each = sherd__layer_windows(l).count;
    if (!l || cols != l->rows || rows % each != 0 || b->first > rows / each ||
        b->x.rows > rows / each - b->first)
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "%zu x %zu are kept for a batch of %zu x %zu from row %zu on", rows,
                           cols, b->x.rows, b->x.cols, b->first);
    return SHERD_OK;
}

static int check_size(const sherd__network *n, sherd_view x, sherd_diag *d)
{
    int err = sherd__view_check(x, "the batch", d);
    if (err != 0) return err;
    if (x.cols != n->size)
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "the network takes %zu numbers an example, the batch has %zu", n->size,
                           x.cols);
    if (x.rows == 0 || x.rows > n->batch)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a batch of %zu examples: expected 1 to %zu",
                           x.rows, n->batch);
    return SHERD_OK;
}

static int check_batch(const sherd__network *n, sherd__engine e, const sherd__batch *b,
                       sherd_diag *d)
{
    int err = check_size(n, b->x, d);
    if (err != 0) return err;
    if (n->dtype == SHERD_F32 && (!sherd__local_is(e.products) || e.maps))
        return sherd__fail(d, SHERD_EUNSUPPORTED, "products by nodes and in fixed point take f64",
                           "a network of f32 is computed on this machine, in floats");
    if (n->dtype == SHERD_F32 && n->any_view && !sherd__tiled_takes(b->x))
        return sherd__fail(d, SHERD_EUNSUPPORTED, "copy it, or use f64",
                           "a network of f32 reads rows of f64, f32 or u8, not of %s",
                           sherd_dtype_word(b->x.dtype));
    return b->kept ? check_kept(n, e, b, d) : SHERD_OK;
}

/* Converts x to row-major f32 in the network's memory, through a small buffer of doubles. */
static void narrow(sherd__network *n, sherd_view x)
{
    double some[256];
    float *to = n->input;
    for (size_t r = 0; r < x.rows; r++)
        for (size_t c = 0; c < x.cols; c += 256) {
            size_t len = x.cols - c < 256 ? x.cols - c : 256;
            sherd__view_row_f64(x, r, c, len, some);
            for (size_t k = 0; k < len; k++) *to++ = (float)some[k];
        }
}

/* Returns the batch as layers need it: unchanged, or row-major in the network's dtype. */
static sherd_view input_of(sherd__network *n, const sherd__batch *b)
{
    size_t ld = 0;
    if (n->any_view) return b->x;
    if (n->dtype == SHERD_F32) {
        narrow(n, b->x);
        return sherd_view_c(n->input, SHERD_F32, b->x.rows, n->size);
    }
    const double *own = sherd__view_borrow_f64(b->x, &ld);
    if (own && ld == n->size) return sherd_view_c(own, SHERD_F64, b->x.rows, n->size);
    sherd__view_dense_f64(b->x, n->input, n->size);
    return sherd_view_c(n->input, SHERD_F64, b->x.rows, n->size);
}

/* Returns whether layer i also computes the activation above it, which then works in its memory. */
static bool finishes(const sherd__network *n, sherd__engine e, const sherd__layer_call *call,
                     size_t i)
{
    return n->layers[i].spec.kind->traits & SHERD__LAYER_FINISHES && i + 1 < n->len &&
           n->layers[i + 1].spec.kind->op != 0 && !e.maps && sherd__here_can(call, call->x);
}

/* Fills call i of a pass with the memory of x and y. Layers up to the last one that shares the
   input's memory read the input. */
static sherd__layer_call call_of(const sherd__network *n, sherd__engine e, const sherd__batch *b,
                                 sherd_view input, size_t i)
{
    sherd__layer_call call = { .engine = e,
                               .examples = input.rows,
                               .team = sherd__local_team(e.products) };
    const void *below = i > 0 ? n->outs[i - 1] : NULL;
    size_t size;
    if (!below) {
        call.x = input;
        call.kept = b->kept;
        call.first = b->first;
    } else if (sherd__form_size(n->layers[i].in, &size)) {
        call.x = sherd_view_c(below, n->dtype, input.rows, size);
    }
    call.y = n->outs[i];
    if (finishes(n, e, &call, i)) call.then = n->layers[i + 1].spec.kind->op;
    return call;
}

static int forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return l->dtype == SHERD_F32 ? l->spec.kind->forward32(l, call, d)
                                 : l->spec.kind->forward(l, call, d);
}

static int backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return l->dtype == SHERD_F32 ? l->spec.kind->backward32(l, call, d)
                                 : l->spec.kind->backward(l, call, d);
}

/* A batch on its way through the network. */
typedef struct passing {
    sherd__network *n;
    sherd__engine e;
    const sherd__batch *b;
    sherd_view input; /* its rows as the first layer reads them */
} passing;

static int run_forward(const passing *w, bool unbiased, bool returns, sherd_diag *d)
{
    sherd__network *n = w->n;
    int err = SHERD_OK;
    n->layers[0].x_peak = 0;
    for (size_t i = 0; i < n->len && err == 0; i++) {
        sherd__layer *l = &n->layers[i];
        sherd__layer_call call = call_of(n, w->e, w->b, w->input, i);
        call.unbiased = unbiased;
        call.returns = returns;
        size_t above = i + 1 + (call.then != 0);
        if (above < n->len) n->layers[above].x_peak = 0;
        if (above < n->len && n->layers[above].cols > 0) call.y_peak = &n->layers[above].x_peak;
        if (l->cols > 0 && n->hooks.before_forward)
            err = n->hooks.before_forward(n->hooks.ctx, i, d);
        if (err == 0) err = forward(l, &call, d);
        if (call.then != 0) i++;
    }
    return err;
}

static void add_l2(const sherd__network *n, sherd__layer *l)
{
    if (n->l2 <= 0) return;
    if (n->dtype == SHERD_F32)
        sherd__here_l232(n->l2, l->rows * l->cols, l->weights32, l->weights_gradient32);
    else sherd__here_l2(n->l2, l->rows * l->cols, l->weights, l->weights_gradient);
}

/* Returns whether layers may update weights during the backward pass: no hook needs the gradients,
   and nothing except memory can fail. */
static bool updates(const sherd__network *n, sherd__engine e, const sherd__layer_update *how)
{
    return how && sherd__local_is(e.products) && !e.maps && !n->hooks.after_backward;
}

/* `how` NULL: gradients only. */
static int run_backward(sherd__network *n, sherd__engine e, const sherd__batch *b, sherd_view input,
                        const sherd__layer_update *how, sherd_diag *d)
{
    unsigned at = 0;
    int err = SHERD_OK;
    for (size_t i = n->len; i-- > n->first && err == 0;) {
        sherd__layer *l = &n->layers[i];
        bool in_place = l->spec.kind->traits & SHERD__LAYER_IN_PLACE;
        sherd__layer_call call = call_of(n, e, b, input, i);
        if (i > n->first && l->spec.kind->op != 0 && call_of(n, e, b, input, i - 1).then != 0)
            continue; /* the layer below computes it */
        if (updates(n, e, how)) call.update = how;
        if (n->apart.take) call.apart = &n->apart;
        call.dy = n->delta[at];
        if (!in_place) at = 1 - at;
        call.dx = i > n->first ? n->delta[at] : NULL;
        l->updated = false;
        err = backward(l, &call, d);
        if (err != 0 || l->cols == 0) continue;
        if (!l->updated) add_l2(n, l);
        if (n->hooks.after_backward) err = n->hooks.after_backward(n->hooks.ctx, i, d);
    }
    return err;
}

/* Updates all parameters except those that layers have updated. */
static void finish_update(const sherd__network *n, sherd__engine e, const sherd__layer_update *how)
{
    const size_t size = sherd_dtype_size(n->dtype);
    for (size_t i = n->first; i < n->len; i++) {
        const sherd__layer *l = &n->layers[i];
        size_t weights = l->rows * l->cols, from = l->from + (l->updated ? weights : 0);
        sherd__optimiser_apply_here(how->optimiser, how->rate, from,
                                    l->from + weights + l->cols - from,
                                    (char *)n->params + from * size,
                                    (const char *)n->gradient + from * size,
                                    sherd__local_team(e.products));
    }
}

static double l2_cost(const sherd__network *n)
{
    double sum = 0;
    for (size_t i = 0; n->l2 > 0 && i < n->len; i++) {
        const sherd__layer *l = &n->layers[i];
        for (size_t k = 0; k < l->rows * l->cols; k++) {
            double w = n->dtype == SHERD_F32 ? (double)l->weights32[k] : l->weights[k];
            sum += w * w;
        }
    }
    return n->l2 / 2 * sum;
}

static const void *output_of(const sherd__network *n, sherd_view input)
{
    return n->outs[n->len - 1] ? n->outs[n->len - 1] : input.data;
}

/* Returns outputs in the caller's type, f64. */
static const double *widened_outputs(sherd__network *n, const void *y, size_t rows)
{
    const float *narrow = y;
    if (n->dtype == SHERD_F64) return y;
    for (size_t k = 0; k < rows * n->width; k++) n->widened[k] = (double)narrow[k];
    return n->widened;
}

int sherd__network_forward(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                           bool unbiased, const double **y, sherd_diag *d)
{
    int err = check_batch(n, e, batch, d);
    if (err != 0) return err;
    const passing w = { n, e, batch, input_of(n, batch) };
    err = run_forward(&w, unbiased, false, d);
    if (err == 0) *y = widened_outputs(n, output_of(n, w.input), w.input.rows);
    return err;
}

/* Computes the cost, and the gradient of outputs. */
static int lose(const passing *w, double *c, sherd_diag *d)
{
    const sherd__network *n = w->n;
    const void *out = output_of(n, w->input);
    int err = n->dtype == SHERD_F32 ? sherd__loss_gradient32(n->loss, out, w->input.rows, n->width,
                                                             w->b->targets, c, n->delta[0], d)
                                    : sherd__loss_gradient(n->loss, out, w->input.rows, n->width,
                                                           w->b->targets, c, n->delta[0], d);
    if (err != 0) return err;
    *c += l2_cost(n);
    return n->steady || isfinite(*c)
               ? SHERD_OK
               : sherd__fail(d, SHERD_ERANGE, "a smaller rate, or inputs scaled to about 1",
                             "the loss is %g: training diverged", *c);
}

/* Makes the forward pass, the loss and the backward pass. `how` NULL: gradients only. */
static int pass(const passing *w, const sherd__layer_update *how, double *c, sherd_diag *d)
{
    sherd__network *n = w->n;
    int err = run_forward(w, false, true, d);
    if (err == 0) err = lose(w, c, d);
    if (err != 0) return err;
    const bool begins = updates(n, w->e, how);
    if (begins) sherd__optimiser_begin(how->optimiser);
    err = run_backward(n, w->e, w->b, w->input, how, d);
    if (err != 0 || !how) return err;
    if (!begins) sherd__optimiser_begin(how->optimiser);
    finish_update(n, w->e, how);
    return SHERD_OK;
}

static int learn(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                 const sherd__layer_update *how, sherd__learnt *out, sherd_diag *d)
{
    double c;
    int err = check_batch(n, e, batch, d);
    if (err != 0) return err;
    const passing w = { n, e, batch, input_of(n, batch) };
    err = pass(&w, how, &c, d);
    for (size_t i = 0; i < n->len; i++) sherd__products_release(&n->layers[i], e);
    if (err == 0)
        *out = (sherd__learnt){ c, widened_outputs(n, output_of(n, w.input), w.input.rows) };
    return err;
}

/* ---- passes whose layers are computed elsewhere ---------------------------------------------- */

typedef struct elsewhere {
    passing w;
    double cost;
} elsewhere;

static int lose_elsewhere(void *ctx, sherd_diag *d)
{
    elsewhere *e = ctx;
    return lose(&e->w, &e->cost, d);
}

static bool has_known_mistake(const sherd__network *n)
{
    bool any = false;
    for (size_t i = 0; i < n->len; i++) any = any || n->layers[i].bias_total;
    return any;
}

int sherd__network_learn_by(sherd__network *n, const sherd__elsewhere *by,
                            const sherd__batch *batch, sherd__learnt *out, sherd_diag *d)
{
    elsewhere e = { .w = { .n = n, .b = batch, .input = batch->x } };
    const sherd__network_pass p = { .network = n,
                                    .first = n->first,
                                    .x = batch->x,
                                    .y = n->outs[n->len - 1],
                                    .dy = n->delta[0],
                                    .loss = lose_elsewhere,
                                    .ctx = &e };
    if (n->dtype != SHERD_F64 || n->apart.take || batch->kept || !p.y || has_known_mistake(n))
        return SHERD_EUNSUPPORTED;
    int err = check_size(n, batch->x, d);
    for (size_t i = n->first; i < n->len && err == 0; i++)
        if (n->layers[i].cols > 0 && n->hooks.before_forward)
            err = n->hooks.before_forward(n->hooks.ctx, i, d);
    if (err == 0) err = by->run(by->ctx, &p, d);
    for (size_t i = n->len; i-- > n->first && err == 0;) {
        if (n->layers[i].cols == 0) continue;
        add_l2(n, &n->layers[i]);
        if (n->hooks.after_backward) err = n->hooks.after_backward(n->hooks.ctx, i, d);
    }
    if (err == 0) *out = (sherd__learnt){ e.cost, p.y };
    return err;
}

int sherd__network_learn(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                         double *cost, const double **y, sherd_diag *d)
{
    sherd__learnt out;
    int err = learn(n, e, batch, NULL, &out, d);
    if (err != 0) return err;
    *cost = out.cost;
    if (y) *y = out.y;
    return SHERD_OK;
}

int sherd__network_step(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                        const sherd__network_update *by, sherd__learnt *out, sherd_diag *d)
{
    sherd__layer_update how = {
        .optimiser = by->optimiser, .rate = by->rate, .l2 = n->l2, .keep = by->keep
    };
    return learn(n, e, batch, &how, out, d);
}
