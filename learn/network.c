/*
 * Networks. Parameters and gradients are one vector each, cut into layers, because optimisers,
 * checkpoints and aggregation want vectors. Activations work in the memory of the layer below
 * wherever nobody needs what was there (`shared` in lay_out): dense, convolution and pools need
 * their input for the way back but not their output. Gradients go back and forth between two
 * buffers. Shapes are fitted once; passes trust them and check only what comes with the batch.
 */
#include "learn/network.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/draw.h"
#include "matrix/local.h"
#include "matrix/view.h"

struct sherd__network {
    sherd__layer *layers;
    sherd_dtype dtype;
    void **outs; /* each layer's outputs; several may be the same memory */
    bool *owned;   /* outs[i] is its own memory */
    size_t len, batch, size, width; /* size: numbers in one input */
    size_t count;
    size_t first;  /* lowest layer with parameters; len: none */
    bool any_view; /* the lowest layer that computes takes any view */
    sherd__loss loss;
    double l2;
    union { double *params; float *params32; };
    union { double *gradient; float *gradient32; };
    void *input;    /* x in the network's dtype, unless any_view */
    void *delta[2]; /* d cost / d outputs of a layer, and of the one below */
    double *told;   /* a network of f32: the outputs as f64, for the caller */
    sherd__network_hooks hooks;
};

/* ---- making ---------------------------------------------------------------------------------- */

static int too_large(sherd_diag *d, size_t i, const char *name)
{
    return sherd__fail(d, SHERD_ESHAPE, NULL, "layer %zu (%s) is too large to count", i, name);
}

/* Memory for count examples of `each` numbers, or NULL. */
static void *numbers(const sherd__network *n, size_t count, size_t each)
{
    size_t bytes;
    if (!sherd__mul(count, each, &bytes) ||
        !sherd__mul(bytes, sherd_dtype_size(n->dtype), &bytes))
        return NULL;
    return sherd__alloc_large(bytes);
}

static void *zeros(const sherd__network *n, size_t count)
{
    void *p = numbers(n, count, 1);
    if (p != NULL) memset(p, 0, count * sherd_dtype_size(n->dtype));
    return p;
}

static int fit(sherd__network *n, const sherd__network_spec *spec, sherd_diag *d)
{
    sherd__form in = spec->in;
    n->first = n->len;
    for (size_t i = 0; i < n->len; i++) {
        sherd__layer *l = &n->layers[i];
        size_t weights, all;
        l->spec = spec->layers[i];
        l->in = in;
        l->bias_total = spec->bias_total;
        l->dtype = n->dtype;
        if (l->spec.kind == NULL)
            return sherd__fail(d, SHERD_EINVAL, NULL, "layer %zu has no kind", i);
        int err = l->spec.kind->fit(l, d);
        if (err != 0) return err;
        if (!sherd__mul(l->rows, l->cols, &weights) || !sherd__add(weights, l->cols, &all) ||
            !sherd__add(n->count, all, &n->count) || !sherd__form_size(l->out, &n->width))
            return too_large(d, i, l->spec.kind->name);
        if (l->cols > 0 && n->first == n->len) n->first = i;
        in = l->out;
    }
    return SHERD_OK;
}

static void cut_vectors(sherd__network *n)
{
    size_t at = 0;
    for (size_t i = 0; i < n->len; i++) {
        sherd__layer *l = &n->layers[i];
        size_t biases = at + l->rows * l->cols;
        if (n->dtype == SHERD_F32) {
            l->weights32 = n->params32 + at;
            l->weights_gradient32 = n->gradient32 + at;
            l->biases32 = n->params32 + biases;
            l->biases_gradient32 = n->gradient32 + biases;
        } else {
            l->weights = n->params + at;
            l->weights_gradient = n->gradient + at;
            l->biases = n->params + biases;
            l->biases_gradient = n->gradient + biases;
        }
        at = biases + l->cols;
    }
}

static bool lay_out(sherd__network *n)
{
    size_t most = 0, i = 0;
    while (i < n->len && n->layers[i].spec.kind->traits & SHERD__LAYER_ALIAS) i++;
    n->any_view = i < n->len && n->layers[i].spec.kind->traits & SHERD__LAYER_ANY_VIEW;
    if (!n->any_view && (n->input = numbers(n, n->batch, n->size)) == NULL) return false;
    bool needed = true; /* what lies below is the caller's, or somebody's on the way back */
    for (i = 0; i < n->len; i++) {
        sherd__layer *l = &n->layers[i];
        unsigned traits = l->spec.kind->traits;
        size_t each = 0;
        sherd__form_size(l->out, &each); /* counted by fit */
        most = each > most ? each : most;
        bool shared = traits & SHERD__LAYER_ALIAS || (traits & SHERD__LAYER_IN_PLACE && !needed);
        n->owned[i] = !shared;
        n->outs[i] = !shared ? numbers(n, n->batch, each) : i > 0 ? n->outs[i - 1] : NULL;
        if (n->owned[i] && n->outs[i] == NULL) return false;
        if (l->scratch_each > 0 && (l->scratch = numbers(n, n->batch, l->scratch_each)) == NULL)
            return false;
        if (!(traits & SHERD__LAYER_ALIAS)) needed = traits & SHERD__LAYER_IN_PLACE;
    }
    n->delta[0] = numbers(n, n->batch, most);
    n->delta[1] = numbers(n, n->batch, most);
    n->params = zeros(n, n->count);
    n->gradient = zeros(n, n->count);
    if (n->dtype == SHERD_F32 &&
        (n->told = sherd__calloc(n->batch, n->width * sizeof *n->told)) == NULL)
        return false;
    return n->delta[0] && n->delta[1] && n->params && n->gradient;
}

static int check_spec(const sherd__network_spec *spec, size_t *size, sherd_diag *d)
{
    if (spec->len == 0 || spec->batch == 0)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a network needs layers and a batch: %zu and %zu",
                           spec->len, spec->batch);
    if (!sherd__form_size(spec->in, size) || *size == 0)
        return sherd__fail(d, SHERD_EINVAL, NULL, "an input of %zu x %zu x %zu numbers",
                           spec->in.height, spec->in.width, spec->in.channels);
    if (sherd__loss_name(spec->loss) == NULL)
        return sherd__fail(d, SHERD_EINVAL, NULL, "%d is no loss", (int)spec->loss);
    if (spec->dtype != 0 && spec->dtype != SHERD_F64 && spec->dtype != SHERD_F32)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a network of dtype %d: expected f64 or f32",
                           (int)spec->dtype);
    if (!(spec->l2 >= 0) || isinf(spec->l2))
        return sherd__fail(d, SHERD_EINVAL, "0 switches it off", "an L2 weight of %g", spec->l2);
    return SHERD_OK;
}

int sherd__network_new(const sherd__network_spec *spec, sherd__network **out, sherd_diag *d)
{
    size_t size = 0;
    *out = NULL;
    int err = check_spec(spec, &size, d);
    if (err != 0) return err;
    sherd__network *n = sherd__calloc(1, sizeof *n);
    if (n == NULL) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for a network");
    n->len = spec->len;
    n->batch = spec->batch;
    n->size = size;
    n->loss = spec->loss;
    n->dtype = spec->dtype != 0 ? spec->dtype : SHERD_F64;
    n->l2 = spec->l2;
    n->layers = sherd__calloc(n->len, sizeof *n->layers);
    n->outs = sherd__calloc(n->len, sizeof *n->outs);
    n->owned = sherd__calloc(n->len, sizeof *n->owned);
    if (n->layers == NULL || n->outs == NULL || n->owned == NULL) err = SHERD_ENOMEM;
    if (err == 0) err = fit(n, spec, d);
    if (err == 0 && !lay_out(n)) err = SHERD_ENOMEM;
    if (err != 0) {
        sherd__network_free(n);
        return err != SHERD_ENOMEM ? err
                                   : sherd__fail(d, err, "a smaller batch needs less",
                                                 "no memory for a network of %zu layers and "
                                                 "batches of %zu", spec->len, spec->batch);
    }
    cut_vectors(n);
    *out = n;
    return SHERD_OK;
}

void sherd__network_free(sherd__network *n)
{
    if (n == NULL) return;
    for (size_t i = 0; i < n->len && n->layers != NULL; i++) sherd__free(n->layers[i].scratch);
    for (size_t i = 0; i < n->len && n->outs != NULL && n->owned != NULL; i++)
        if (n->owned[i]) sherd__free(n->outs[i]);
    sherd__free(n->layers);
    sherd__free(n->outs);
    sherd__free(n->owned);
    sherd__free(n->params);
    sherd__free(n->gradient);
    sherd__free(n->input);
    sherd__free(n->told);
    sherd__free(n->delta[0]);
    sherd__free(n->delta[1]);
    sherd__free(n);
}

/* ---- looking --------------------------------------------------------------------------------- */

size_t sherd__network_len(const sherd__network *n)
{
    return n->len;
}

const sherd__layer *sherd__network_layer(const sherd__network *n, size_t i)
{
    return &n->layers[i];
}

size_t sherd__network_width(const sherd__network *n)
{
    return n->width;
}

size_t sherd__network_count(const sherd__network *n)
{
    return n->count;
}

double *sherd__network_params(sherd__network *n)
{
    return n->params;
}

const double *sherd__network_gradient(const sherd__network *n)
{
    return n->gradient;
}

sherd_dtype sherd__network_dtype(const sherd__network *n)
{
    return n->dtype;
}

static void widen(const sherd__network *n, const void *from, size_t count, double *out)
{
    const float *p = from;
    if (n->dtype == SHERD_F64) memcpy(out, from, count * sizeof *out);
    for (size_t k = 0; k < count && n->dtype == SHERD_F32; k++) out[k] = (double)p[k];
}

void sherd__network_get(const sherd__network *n, double *params)
{
    widen(n, n->params, n->count, params);
}

void sherd__network_get_gradient(const sherd__network *n, double *gradient)
{
    widen(n, n->gradient, n->count, gradient);
}

void sherd__network_set(sherd__network *n, const double *params)
{
    if (n->dtype == SHERD_F64) memcpy(n->params, params, n->count * sizeof *params);
    for (size_t k = 0; k < n->count && n->dtype == SHERD_F32; k++)
        n->params32[k] = (float)params[k];
}

sherd__team *sherd__network_team(sherd__engine e)
{
    return sherd__local_team(e.products);
}

void sherd__network_hook(sherd__network *n, const sherd__network_hooks *hooks)
{
    n->hooks = hooks != NULL ? *hooks : (sherd__network_hooks){ 0 };
}

/* ---- drawing --------------------------------------------------------------------------------- */

void sherd__network_draw(sherd__network *n, const sherd_entropy *e, double scale)
{
    for (size_t i = 0; i < n->len; i++) {
        sherd__layer *l = &n->layers[i];
        size_t count = l->rows * l->cols;
        double pair[2], by = scale > 0 || count == 0 ? scale : sqrt(2.0 / (double)l->rows);
        for (size_t k = 0; k < count; k++) {
            if (k % 2 == 0) sherd__draw_normal(e, pair);
            if (n->dtype == SHERD_F32)
                l->weights32[k] = (float)(by * pair[k % 2]);
            else
                l->weights[k] = by * pair[k % 2];
        }
        memset(l->biases, 0, l->cols * sherd_dtype_size(n->dtype));
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

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
                       bool unbiased, sherd_diag *d)
{
    int err = SHERD_OK;
    for (size_t i = 0; i < n->len && err == 0; i++) {
        sherd__layer *l = &n->layers[i];
        sherd__layer_call call = call_of(n, e, b, input, i);
        call.unbiased = unbiased;
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
    if (n->dtype == SHERD_F64) return y;
    widen(n, y, rows * n->width, n->told);
    return n->told;
}

int sherd__network_forward(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                           bool unbiased, const double **y, sherd_diag *d)
{
    int err = check_batch(n, e, batch, d);
    if (err != 0) return err;
    sherd_view input = input_of(n, batch);
    err = run_forward(n, e, batch, input, unbiased, d);
    if (err == 0) *y = tell(n, output_of(n, input), input.rows);
    return err;
}

int sherd__network_learn(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                         double *cost, const double **y, sherd_diag *d)
{
    const void *out;
    double c;
    int err = check_batch(n, e, batch, d);
    if (err != 0) return err;
    sherd_view input = input_of(n, batch);
    err = run_forward(n, e, batch, input, false, d);
    if (err != 0) return err;
    out = output_of(n, input);
    err = n->dtype == SHERD_F32
              ? sherd__loss_gradient32(n->loss, out, input.rows, n->width, batch->targets, &c,
                                       n->delta[0], d)
              : sherd__loss_gradient(n->loss, out, input.rows, n->width, batch->targets, &c,
                                     n->delta[0], d);
    if (err != 0) return err;
    c += l2_cost(n);
    if (!isfinite(c))
        return sherd__fail(d, SHERD_ERANGE, "a smaller rate, or inputs scaled to about 1",
                           "the cost is %g: training diverged", c);
    err = run_backward(n, e, batch, input, d);
    if (err != 0) return err;
    *cost = c;
    if (y != NULL) *y = tell(n, out, input.rows);
    return SHERD_OK;
}
