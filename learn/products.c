/*
 * Products of layers with parameters by a multiplier. The forward product and the weight gradient
 * have x on the left, once as it is and once transposed. A kept operand allows both, so an input
 * kept by the nodes is sent once for both passes and, if it is training data, once for all epochs.
 * For a convolution x is the windows of images, but the images are kept: a window matrix is larger
 * by the overlap of the windows, and the multiplier lays windows out where its operands are.
 *
 * In the backward pass the gradient of an image is dy W^T, which is windows again, added up where
 * they overlap. If nodes lay out windows, an equal product is requested instead: the windows of dy,
 * padded with enough zeros that each pixel of x has one window, times the rotated W. Its result is
 * an image. Both ways add up whole numbers, but the first rounds them to doubles before adding. The
 * second is therefore used only if the sums are small enough (engine.whole).
 */
#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "learn/layer.h"

sherd__windows sherd__layer_windows(const sherd__layer *l)
{
    sherd__windows w = { .count = 0 };
    const sherd_windows of = {
        .height = (uint32_t)l->in.height,
        .width = (uint32_t)l->in.width,
        .channels = (uint32_t)l->in.channels,
        .window = (uint32_t)l->spec.window,
        .stride = l->spec.stride > 0 ? (uint32_t)l->spec.stride : 1,
        .padding = (uint32_t)l->spec.padding,
    };
    if (l->spec.kind == &sherd__layer_conv2d)
        (void)sherd__windows_fit(&of, &w); /* cannot fail: checked in fit */
    return w;
}

int sherd__layer_keep(const sherd__layer *l, sherd__engine e, sherd_view x, size_t part,
                      sherd_kept **kept, sherd_diag *d)
{
    sherd__windows w = sherd__layer_windows(l);
    const sherd_keep_options how = {
        .size = sizeof how, .part = part, .windows = w.count > 0 ? &w.of : NULL, .cols = l->cols
    };
    return sherd_multiplier_keep(kept, e.products, x, &how, d);
}

int sherd__products_hold(sherd__layer *l, const sherd__layer_call *call, bool *held, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    sherd__windows w = sherd__layer_windows(l);
    *held = call->kept != NULL;
    if (*held || !call->engine.keeps || (!call->returns && w.count == 0)) return SHERD_OK;
    /* Windows that leave pixels out may have a smaller maximum, and so another exponent. */
    if (w.count > 0 && !sherd__windows_cover(&w)) return SHERD_OK;
    int err = sherd__layer_keep(l, call->engine, call->x, call->examples, &l->held, &mine);
    *held = err == 0;
    return err == 0 || err == SHERD_EFEWNODES ? SHERD_OK
                                              : sherd__fail(d, err, mine.hint, "%s", mine.message);
}

/* x * b, or with `transposed` x^T * b. */
typedef struct product {
    sherd_view x;
    bool transposed;
    sherd_view b;
} product;

/* Computes a product from the multiplier's copy of x or from x. */
static int multiply(const sherd__layer *l, const sherd__layer_call *call, const product *p,
                    double *c, sherd_diag *d)
{
    const bool transposed = p->transposed;
    sherd_multiplier m = call->engine.products;
    sherd__windows w = sherd__layer_windows(l);
    size_t each = w.count > 0 ? w.count : 1;
    sherd_rows rows = { call->kept ? call->first * each : 0, call->examples * each };
    sherd_kept *kept = call->kept ? call->kept : l->held;
    if (kept) return sherd_multiplier_multiply_rows(m, kept, rows, transposed, p->b, c, l->cols, d);
    return sherd_multiplier_multiply(m, transposed ? sherd_view_t(p->x) : p->x, p->b, c, l->cols,
                                     d);
}

int sherd__products_forward(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                            sherd_diag *d)
{
    sherd_view w = sherd_view_c(l->weights, SHERD_F64, l->rows, l->cols);
    int err = multiply(l, call, &(product){ x, false, w }, call->y, d);
    if (!call->returns) sherd__products_release(l, call->engine);
    if (err == 0 && !call->unbiased) sherd__bias_add(l, x.rows, call->y);
    return err;
}

int sherd__products_down(const sherd__layer *l, const sherd__layer_call *call, size_t rows,
                         double *dx, sherd_diag *d)
{
    sherd_view dy = sherd_view_c(call->dy, SHERD_F64, rows, l->cols);
    sherd_view w = sherd_view_c(l->weights, SHERD_F64, l->rows, l->cols);
    return sherd_multiplier_multiply(call->engine.products, dy, sherd_view_t(w), dx, l->rows, d);
}

int sherd__products_backward(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                             double *dx, sherd_diag *d)
{
    sherd_view dy = sherd_view_c(call->dy, SHERD_F64, x.rows, l->cols);
    int err = call->apart ? call->apart->take(call->apart->ctx, l, x, call->dy, d)
                          : multiply(l, call, &(product){ x, true, dy }, l->weights_gradient, d);
    sherd__products_release(l, call->engine);
    if (err != 0) return err;
    sherd__bias_gradient(l, x.rows, call->dy);
    return !dx ? SHERD_OK : sherd__products_down(l, call, x.rows, dx, d);
}

void sherd__products_release(sherd__layer *l, sherd__engine e)
{
    sherd_multiplier_release(e.products, l->held);
    l->held = NULL;
}

/* ---- the gradient of images ------------------------------------------------------------------ */

/* Rotates W. Rows are positions of a window of dy, which are those of W from the last to the first,
   and its channels; columns are channels of x. */
static void turn_round(const sherd__layer *l, double *to)
{
    size_t places = l->spec.window * l->spec.window, channels = l->in.channels;
    for (size_t at = 0; at < places; at++)
        for (size_t u = 0; u < l->cols; u++)
            for (size_t c = 0; c < channels; c++)
                *to++ = l->weights[((places - 1 - at) * channels + c) * l->cols + u];
}

static bool pays(const sherd__layer *l, sherd__engine e)
{
    size_t terms;
    return e.keeps && l->spec.stride <= 1 &&
           sherd__mul(l->spec.window * l->spec.window, l->cols, &terms) && terms <= e.whole;
}

int sherd__products_image(const sherd__layer *l, const sherd__layer_call *call, bool *done,
                          sherd_diag *d)
{
    sherd_multiplier m = call->engine.products;
    const sherd_windows windows = {
        .height = (uint32_t)l->out.height,
        .width = (uint32_t)l->out.width,
        .channels = (uint32_t)l->cols,
        .window = (uint32_t)l->spec.window,
        .stride = 1,
        .padding = (uint32_t)(l->spec.window - 1 - l->spec.padding),
    };
    const sherd_keep_options how = {
        .size = sizeof how, .part = call->examples, .windows = &windows, .cols = l->in.channels
    };
    sherd_diag mine = { 0 };
    sherd_kept *kept;
    *done = false;
    if (!pays(l, call->engine)) return SHERD_OK;
    sherd_view dy = sherd_view_c(call->dy, SHERD_F64, call->examples,
                                 l->out.height * l->out.width * l->cols);
    size_t rows = l->spec.window * l->spec.window * l->cols, len = rows * l->in.channels;
    double *turned = sherd__alloc(len * sizeof *turned); /* as many numbers as the weights */
    if (!turned) return sherd__fail_memory(d, "the weights of a convolution");
    turn_round(l, turned);
    int err = sherd_multiplier_keep(&kept, m, dy, &how, &mine);
    if (err == 0) {
        err = sherd_multiplier_multiply_kept(m, kept, false,
                                             sherd_view_c(turned, SHERD_F64, rows, l->in.channels),
                                             call->dx, l->in.channels, &mine);
        sherd_multiplier_release(m, kept);
        *done = err == 0;
    } else if (err == SHERD_EFEWNODES) {
        err = 0; /* the nodes have no room: use the first way */
    }
    sherd__wipe(turned, len * sizeof *turned);
    sherd__free(turned);
    return err == 0 ? SHERD_OK : sherd__fail(d, err, mine.hint, "%s", mine.message);
}
