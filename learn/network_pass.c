/*
 * Passes of a network: forward through the layers, the loss, and back. Shapes were fitted when the
 * network was made; passes trust them and check only what comes with the batch. Gradients go back
 * and forth between two buffers. A layer that can does the work of the activation above it in its
 * own passes, which then is left out here.
 */
#include <math.h>

#include "core/diag.h"
#include "learn/network_state.h"
#include "matrix/local.h"
#include "matrix/view.h"

static int check_batch(const sherd__network *n, sherd__engine e, const sherd__batch *b,
                       sherd_diag *d)
{
    size_t rows, cols, part;
    int err = sherd__view_check(b->x, "the batch", d);
    if (err != 0) return err;
    if (b->x.cols != n->size)
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "the network takes %zu numbers an example, the batch has %zu", n->size,
                           b->x.cols);
    if (b->x.rows == 0 || b->x.rows > n->batch)
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "a batch of %zu examples: expected 1 to %zu", b->x.rows, n->batch);
    if (n->dtype == SHERD_F32 && (!sherd__local_is(e.products) || e.maps))
        return sherd__fail(d, SHERD_EUNSUPPORTED, "products by nodes and in fixed point take f64",
                           "a network of f32 is computed on this machine, in floats");
    if (n->dtype == SHERD_F32 && n->any_view && !sherd__tiled_takes(b->x))
        return sherd__fail(d, SHERD_EUNSUPPORTED, "copy it, or use f64",
                           "a network of f32 reads rows of f64, f32 or u8, not of %s",
                           sherd_dtype_name(b->x.dtype));
    if (b->kept == NULL) return SHERD_OK;
    e.products.ops->kept_shape(b->kept, &rows, &cols, &part);
    if (b->first > rows || b->x.rows > rows - b->first || cols != b->x.cols)
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "%zu x %zu are kept for a batch of %zu x %zu from row %zu on", rows,
                           cols, b->x.rows, b->x.cols, b->first);
    return SHERD_OK;
}

/* x as row-major f32 in the network's own memory, by way of some doubles. */
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

/* The batch as layers take it: as it is, or row-major in the network's dtype. */
static sherd_view input_of(sherd__network *n, const sherd__batch *b)
{
    size_t ld = 0;
    if (n->any_view) return b->x;
    if (n->dtype == SHERD_F32) {
        narrow(n, b->x);
        return sherd_view_c(n->input, SHERD_F32, b->x.rows, n->size);
    }
    const double *own = sherd__view_borrow_f64(b->x, &ld);
    if (own != NULL && ld == n->size)
        return sherd_view_c(own, SHERD_F64, b->x.rows, n->size);
    sherd__view_dense_f64(b->x, n->input, n->size);
    return sherd_view_c(n->input, SHERD_F64, b->x.rows, n->size);
}

/* Whether layer i does the work of the activation above it: that one works in its memory. */
static bool finishes(const sherd__network *n, sherd__engine e, const sherd__layer_call *call,
                     size_t i)
{
    return n->layers[i].spec.kind->traits & SHERD__LAYER_FINISHES && i + 1 < n->len &&
           n->layers[i + 1].spec.kind->op != 0 && !e.maps && sherd__here_can(call, call->x);
}

/* Call i of a pass: where x lies, and y. Layers above the last one that shares the input's memory
 * see the input. */
static sherd__layer_call call_of(const sherd__network *n, sherd__engine e, const sherd__batch *b,
                                 sherd_view input, size_t i)
{
    sherd__layer_call call = { .engine = e, .examples = input.rows,
                               .team = sherd__local_team(e.products) };
    const void *below = i > 0 ? n->outs[i - 1] : NULL;
    size_t size;
    if (below == NULL) {
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

static int run_forward(sherd__network *n, sherd__engine e, const sherd__batch *b, sherd_view input,
                       bool unbiased, bool returns, sherd_diag *d)
{
    int err = SHERD_OK;
    for (size_t i = 0; i < n->len && err == 0; i++) {
        sherd__layer *l = &n->layers[i];
        sherd__layer_call call = call_of(n, e, b, input, i);
        call.unbiased = unbiased;
        call.returns = returns;
        if (l->cols > 0 && n->hooks.before_forward != NULL)
            err = n->hooks.before_forward(n->hooks.ctx, i, d);
        if (err == 0) err = forward(l, &call, d);
        if (call.then != 0) i++;
    }
    return err;
}

static void add_l2(const sherd__network *n, sherd__layer *l)
{
    const size_t count = n->l2 > 0 ? l->rows * l->cols : 0;
    const float by = (float)n->l2;
    if (n->dtype == SHERD_F32)
        for (size_t k = 0; k < count; k++) l->weights_gradient32[k] += by * l->weights32[k];
    else
        for (size_t k = 0; k < count; k++) l->weights_gradient[k] += n->l2 * l->weights[k];
}

static int run_backward(sherd__network *n, sherd__engine e, const sherd__batch *b, sherd_view input,
                        sherd_diag *d)
{
    unsigned at = 0;
    int err = SHERD_OK;
    for (size_t i = n->len; i-- > n->first && err == 0;) {
        sherd__layer *l = &n->layers[i];
        bool in_place = l->spec.kind->traits & SHERD__LAYER_IN_PLACE;
        sherd__layer_call call = call_of(n, e, b, input, i);
        if (i > n->first && l->spec.kind->op != 0 && call_of(n, e, b, input, i - 1).then != 0)
            continue; /* the layer below does it */
        call.dy = n->delta[at];
        if (!in_place) at = 1 - at;
        call.dx = i > n->first ? n->delta[at] : NULL;
        err = backward(l, &call, d);
        if (err != 0 || l->cols == 0) continue;
        add_l2(n, l);
        if (n->hooks.after_backward != NULL) err = n->hooks.after_backward(n->hooks.ctx, i, d);
    }
    return err;
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
    return n->outs[n->len - 1] != NULL ? n->outs[n->len - 1] : input.data;
}

/* Outputs as the caller gets them. */
static const double *tell(sherd__network *n, const void *y, size_t rows)
{
    const float *narrow = y;
    if (n->dtype == SHERD_F64) return y;
    for (size_t k = 0; k < rows * n->width; k++) n->told[k] = (double)narrow[k];
    return n->told;
}

int sherd__network_forward(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                           bool unbiased, const double **y, sherd_diag *d)
{
    int err = check_batch(n, e, batch, d);
    if (err != 0) return err;
    sherd_view input = input_of(n, batch);
    err = run_forward(n, e, batch, input, unbiased, false, d);
    if (err == 0) *y = tell(n, output_of(n, input), input.rows);
    return err;
}

/* Forward, loss and back. */
static int learn(sherd__network *n, sherd__engine e, const sherd__batch *batch, sherd_view input,
                 double *c, sherd_diag *d)
{
    int err = run_forward(n, e, batch, input, false, true, d);
    const void *out = output_of(n, input);
    if (err != 0) return err;
    err = n->dtype == SHERD_F32
              ? sherd__loss_gradient32(n->loss, out, input.rows, n->width, batch->targets, c,
                                       n->delta[0], d)
              : sherd__loss_gradient(n->loss, out, input.rows, n->width, batch->targets, c,
                                     n->delta[0], d);
    if (err != 0) return err;
    *c += l2_cost(n);
    if (!isfinite(*c))
        return sherd__fail(d, SHERD_ERANGE, "a smaller rate, or inputs scaled to about 1",
                           "the cost is %g: training diverged", *c);
    return run_backward(n, e, batch, input, d);
}

int sherd__network_learn(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                         double *cost, const double **y, sherd_diag *d)
{
    double c;
    int err = check_batch(n, e, batch, d);
    if (err != 0) return err;
    sherd_view input = input_of(n, batch);
    err = learn(n, e, batch, input, &c, d);
    for (size_t i = 0; i < n->len; i++) sherd__products_release(&n->layers[i], e);
    if (err != 0) return err;
    *cost = c;
    if (y != NULL) *y = tell(n, output_of(n, input), input.rows);
    return SHERD_OK;
}
