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
#include "matrix/funcs.h"
#include "matrix/view.h"

struct sherd__network {
    sherd__layer *layers;
    double **outs; /* each layer's outputs; several may be the same memory */
    bool *owned;   /* outs[i] is its own memory */
    size_t len, batch, size, width; /* size: numbers in one input */
    size_t count;
    size_t first;  /* lowest layer with parameters; len: none */
    bool any_view; /* the lowest layer that computes takes any view */
    sherd__loss loss;
    double l2;
    double *params, *gradient;
    double *input;    /* x as f64, unless any_view */
    double *delta[2]; /* d cost / d outputs of a layer, and of the one below */
    sherd__network_hooks hooks;
};

/* ---- making ---------------------------------------------------------------------------------- */

static int too_large(sherd_diag *d, size_t i, const char *name)
{
    return sherd__fail(d, SHERD_ESHAPE, NULL, "layer %zu (%s) is too large to count", i, name);
}

/* Doubles for count examples of `each` numbers, or NULL. */
static double *doubles(size_t count, size_t each)
{
    size_t bytes;
    if (!sherd__mul(count, each, &bytes) || !sherd__mul(bytes, sizeof(double), &bytes)) return NULL;
    return sherd__alloc_large(bytes);
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
        l->weights = n->params + at;
        l->weights_gradient = n->gradient + at;
        at += l->rows * l->cols;
        l->biases = n->params + at;
        l->biases_gradient = n->gradient + at;
        at += l->cols;
    }
}

static bool lay_out(sherd__network *n)
{
    size_t most = 0, i = 0;
    while (i < n->len && n->layers[i].spec.kind->traits & SHERD__LAYER_ALIAS) i++;
    n->any_view = i < n->len && n->layers[i].spec.kind->traits & SHERD__LAYER_ANY_VIEW;
    if (!n->any_view && (n->input = doubles(n->batch, n->size)) == NULL) return false;
    bool needed = true; /* what lies below is the caller's, or somebody's on the way back */
    for (i = 0; i < n->len; i++) {
        sherd__layer *l = &n->layers[i];
        unsigned traits = l->spec.kind->traits;
        size_t each = 0;
        sherd__form_size(l->out, &each); /* counted by fit */
        most = each > most ? each : most;
        bool shared = traits & SHERD__LAYER_ALIAS || (traits & SHERD__LAYER_IN_PLACE && !needed);
        n->owned[i] = !shared;
        n->outs[i] = !shared ? doubles(n->batch, each) : i > 0 ? n->outs[i - 1] : NULL;
        if (n->owned[i] && n->outs[i] == NULL) return false;
        if (l->scratch_each > 0 && (l->scratch = doubles(n->batch, l->scratch_each)) == NULL)
            return false;
        if (!(traits & SHERD__LAYER_ALIAS)) needed = traits & SHERD__LAYER_IN_PLACE;
    }
    n->delta[0] = doubles(n->batch, most);
    n->delta[1] = doubles(n->batch, most);
    n->params = sherd__calloc(n->count, sizeof(double));
    n->gradient = sherd__calloc(n->count, sizeof(double));
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

void sherd__network_hook(sherd__network *n, const sherd__network_hooks *hooks)
{
    n->hooks = hooks != NULL ? *hooks : (sherd__network_hooks){ 0 };
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Uniform in (-1, 1), 53 bits. */
static double uniform(const sherd_entropy *e)
{
    return ((double)(sherd__entropy_u64(e) >> 11) + 0.5) * 0x1p-52 - 1.0;
}

static void normal_pair(const sherd_entropy *e, double out[2])
{
    double u, v, s, log_s;
    do {
        u = uniform(e);
        v = uniform(e);
        s = u * u + v * v;
    } while (s >= 1.0 || s == 0.0);
    sherd__log_f64(&s, 1, &log_s);
    double f = sqrt(-2.0 * log_s / s);
    out[0] = u * f;
    out[1] = v * f;
}

void sherd__network_draw(sherd__network *n, const sherd_entropy *e, double scale)
{
    for (size_t i = 0; i < n->len; i++) {
        sherd__layer *l = &n->layers[i];
        size_t count = l->rows * l->cols;
        double pair[2], by = scale > 0 || count == 0 ? scale : sqrt(2.0 / (double)l->rows);
        for (size_t k = 0; k < count; k++) {
            if (k % 2 == 0) normal_pair(e, pair);
            l->weights[k] = by * pair[k % 2];
        }
        memset(l->biases, 0, l->cols * sizeof *l->biases);
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
    if (b->kept == NULL) return SHERD_OK;
    e.products.ops->kept_shape(b->kept, &rows, &cols, &part);
    if (b->first > rows || b->x.rows > rows - b->first || cols != b->x.cols)
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "%zu x %zu are kept for a batch of %zu x %zu from row %zu on", rows,
                           cols, b->x.rows, b->x.cols, b->first);
    return SHERD_OK;
}

/* The batch as layers take it: as it is, or row-major f64. */
static sherd_view input_of(sherd__network *n, const sherd__batch *b)
{
    size_t ld = 0;
    if (n->any_view) return b->x;
    const double *own = sherd__view_borrow_f64(b->x, &ld);
    if (own != NULL && ld == n->size)
        return sherd_view_c(own, SHERD_F64, b->x.rows, n->size);
    sherd__view_dense_f64(b->x, n->input, n->size);
    return sherd_view_c(n->input, SHERD_F64, b->x.rows, n->size);
}

/* Call i of a pass: where x lies, and y. Layers above the last one that shares the input's memory
 * see the input. */
static sherd__layer_call call_of(const sherd__network *n, sherd__engine e, const sherd__batch *b,
                                 sherd_view input, size_t i)
{
    sherd__layer_call call = { .engine = e, .examples = input.rows };
    const double *below = i > 0 ? n->outs[i - 1] : NULL;
    size_t size;
    if (below == NULL) {
        call.x = input;
        call.kept = b->kept;
        call.first = b->first;
    } else if (sherd__form_size(n->layers[i].in, &size)) {
        call.x = sherd_view_c(below, SHERD_F64, input.rows, size);
    }
    call.y = n->outs[i];
    return call;
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
        if (err == 0) err = l->spec.kind->forward(l, &call, d);
    }
    return err;
}

static void add_l2(const sherd__network *n, sherd__layer *l)
{
    for (size_t k = 0; n->l2 > 0 && k < l->rows * l->cols; k++)
        l->weights_gradient[k] += n->l2 * l->weights[k];
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
        call.dy = n->delta[at];
        if (!in_place) at = 1 - at;
        call.dx = i > n->first ? n->delta[at] : NULL;
        err = l->spec.kind->backward(l, &call, d);
        if (err != 0 || l->cols == 0) continue;
        add_l2(n, l);
        if (n->hooks.after_backward != NULL) err = n->hooks.after_backward(n->hooks.ctx, i, d);
    }
    return err;
}

static double l2_cost(const sherd__network *n)
{
    double sum = 0;
    for (size_t i = 0; n->l2 > 0 && i < n->len; i++)
        for (size_t k = 0; k < n->layers[i].rows * n->layers[i].cols; k++)
            sum += n->layers[i].weights[k] * n->layers[i].weights[k];
    return n->l2 / 2 * sum;
}

static const double *output_of(const sherd__network *n, sherd_view input)
{
    return n->outs[n->len - 1] != NULL ? n->outs[n->len - 1] : input.data;
}

int sherd__network_forward(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                           bool unbiased, const double **y, sherd_diag *d)
{
    int err = check_batch(n, e, batch, d);
    if (err != 0) return err;
    sherd_view input = input_of(n, batch);
    err = run_forward(n, e, batch, input, unbiased, d);
    if (err == 0) *y = output_of(n, input);
    return err;
}

int sherd__network_learn(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                         double *cost, const double **y, sherd_diag *d)
{
    const double *out;
    double c;
    int err = check_batch(n, e, batch, d);
    if (err != 0) return err;
    sherd_view input = input_of(n, batch);
    err = run_forward(n, e, batch, input, false, d);
    if (err != 0) return err;
    out = output_of(n, input);
    err = sherd__loss_gradient(n->loss, out, input.rows, n->width, batch->targets, &c,
                               n->delta[0], d);
    if (err != 0) return err;
    c += l2_cost(n);
    if (!isfinite(c))
        return sherd__fail(d, SHERD_ERANGE, "a smaller rate, or inputs scaled to about 1",
                           "the cost is %g: training diverged", c);
    err = run_backward(n, e, batch, input, d);
    if (err != 0) return err;
    *cost = c;
    if (y != NULL) *y = out;
    return SHERD_OK;
}
