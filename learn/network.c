/*
 * Networks. Parameters and gradients are one vector each, divided into layers, because optimisers,
 * checkpoints and aggregation work on vectors. The outputs of a layer share the memory of the layer
 * below if its contents are not needed any more (`shared` in lay_out): dense, convolution and pool
 * layers need their input for the backward pass but not their output. Shapes are fitted once, here;
 * passes are in network_pass.c.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "learn/draw.h"
#include "learn/network_state.h"

/* ---- creation -------------------------------------------------------------------------------- */

static int too_large(sherd_diag *d, size_t i, const char *name)
{
    return sherd__fail(d, SHERD_ESHAPE, NULL, "layer %zu (%s) is too large", i, name);
}

static void *allocate_vector(const sherd__network *n)
{
    size_t bytes;
    return sherd__mul(n->count, sherd_dtype_size(n->dtype), &bytes) ? sherd__alloc_pages(bytes)
                                                                    : NULL;
}

static int fit(sherd__network *n, const sherd__network_spec *spec, sherd_diag *d)
{
    sherd__tensor_shape in = spec->in;
    n->first = n->len;
    for (size_t i = 0; i < n->len; i++) {
        sherd__layer *l = &n->layers[i];
        size_t weights, all;
        l->spec = spec->layers[i];
        l->in = in;
        l->bias_total = spec->bias_total;
        l->dtype = n->dtype;
        if (!l->spec.kind) return sherd__fail(d, SHERD_EINVAL, NULL, "layer %zu has no kind", i);
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

/* Points each layer at its part of the parameters and of the gradient. */
static void cut_vectors(sherd__network *n)
{
    size_t at = 0;
    for (size_t i = 0; i < n->len; i++) {
        sherd__layer *l = &n->layers[i];
        size_t biases = at + l->rows * l->cols;
        l->from = at;
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

/* All memory that passes write is one allocation, because huge pages fit one large block better
   than several small ones. */
typedef struct room {
    char *at; /* NULL: only computes sizes */
    size_t used;
} room;

#define CACHE_LINE 64u

/* Reserves memory for `each` numbers per example of a batch, and stores its address in *to. Returns
   false if the size overflows. */
static bool take(room *r, const sherd__network *n, size_t each, void **to)
{
    size_t bytes;
    if (!sherd__mul(n->batch, each, &bytes) ||
        !sherd__mul(bytes, sherd_dtype_size(n->dtype), &bytes) ||
        !sherd__add(bytes, (CACHE_LINE - bytes % CACHE_LINE) % CACHE_LINE, &bytes))
        return false;
    *to = r->at ? r->at + r->used : NULL;
    return sherd__add(r->used, bytes, &r->used);
}

/* Divides the memory of passes among the layers: with r->at NULL it only computes the size,
   otherwise it sets the pointers. Returns false if the size overflows. */
static bool lay_out(sherd__network *n, room *r)
{
    size_t most = 0, i = 0;
    while (i < n->len && n->layers[i].spec.kind->traits & SHERD__LAYER_ALIAS) i++;
    n->any_view = i < n->len && n->layers[i].spec.kind->traits & SHERD__LAYER_ANY_VIEW;
    if (!n->any_view && !take(r, n, n->size, &n->input)) return false;
    bool needed = true; /* the memory below is the caller's, or is needed by the backward pass */
    for (i = 0; i < n->len; i++) {
        sherd__layer *l = &n->layers[i];
        unsigned traits = l->spec.kind->traits;
        size_t each = 0;
        void *scratch = NULL;
        sherd__form_size(l->out, &each); /* fit has checked that this does not overflow */
        most = each > most ? each : most;
        bool shared = traits & SHERD__LAYER_ALIAS || (traits & SHERD__LAYER_IN_PLACE && !needed);
        if (shared) n->outs[i] = i > 0 ? n->outs[i - 1] : NULL;
        else if (!take(r, n, each, &n->outs[i])) return false;
        if (l->scratch_each > 0 && !take(r, n, l->scratch_each, &scratch)) return false;
        l->scratch = scratch;
        if (!(traits & SHERD__LAYER_ALIAS)) needed = traits & SHERD__LAYER_IN_PLACE;
    }
    return take(r, n, most, &n->delta[0]) && take(r, n, most, &n->delta[1]);
}

/* Computes the size of one row of `widened`. Returns false if it overflows. */
static bool widened_row(const sherd__network *n, size_t *bytes)
{
    return sherd__mul(n->width, sizeof *n->widened, bytes);
}

static bool allocate(sherd__network *n)
{
    room r = { 0 };
    size_t row;
    if (!lay_out(n, &r) || !(r.at = n->room = sherd__alloc_pages(r.used))) return false;
    r.used = 0;
    n->params = allocate_vector(n);
    n->gradient = allocate_vector(n);
    if (n->dtype == SHERD_F32 &&
        (!widened_row(n, &row) || !(n->widened = sherd__calloc(n->batch, row))))
        return false;
    return lay_out(n, &r) && n->params && n->gradient;
}

static int check_spec(const sherd__network_spec *spec, size_t *size, sherd_diag *d)
{
    if (spec->len == 0 || spec->batch == 0)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a network needs layers and a batch: %zu and %zu",
                           spec->len, spec->batch);
    if (!sherd__form_size(spec->in, size) || *size == 0)
        return sherd__fail(d, SHERD_EINVAL, NULL, "an input of %zu x %zu x %zu numbers",
                           spec->in.height, spec->in.width, spec->in.channels);
    if (!sherd__loss_name(spec->loss))
        return sherd__fail(d, SHERD_EINVAL, NULL, "%d is not a loss", (int)spec->loss);
    if (spec->dtype != 0 && spec->dtype != SHERD_F64 && spec->dtype != SHERD_F32)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a network of dtype %d: expected f64 or f32",
                           (int)spec->dtype);
    if (!(spec->l2 >= 0) || isinf(spec->l2))
        return sherd__fail(d, SHERD_EINVAL, "0 switches it off", "an L2 weight of %g", spec->l2);
    return SHERD_OK;
}

/* Fits the shapes. Allocates the list of layers only, no parameters. n is zeroed on entry; the
   caller frees it on failure too. */
static int begin(sherd__network *n, const sherd__network_spec *spec, sherd_diag *d)
{
    size_t size = 0;
    int err = check_spec(spec, &size, d);
    if (err != 0) return err;
    n->len = spec->len;
    n->batch = spec->batch;
    n->size = size;
    n->loss = spec->loss;
    n->dtype = spec->dtype != 0 ? spec->dtype : SHERD_F64;
    n->l2 = spec->l2;
    n->layers = sherd__calloc(n->len, sizeof *n->layers);
    n->outs = sherd__calloc(n->len, sizeof *n->outs);
    return !n->layers || !n->outs ? SHERD_ENOMEM : fit(n, spec, d);
}

int sherd__network_measure(const sherd__network_spec *spec, sherd__network_size *out, sherd_diag *d)
{
    sherd__network n = { 0 };
    room r = { 0 };
    size_t vectors, row, widened, bytes;
    int err = begin(&n, spec, d);
    if (err == 0) {
        size_t size = sherd_dtype_size(n.dtype);
        bool fits = lay_out(&n, &r) && sherd__mul(n.count, 2 * size, &vectors) &&
                    widened_row(&n, &row) &&
                    sherd__mul(n.dtype == SHERD_F32 ? n.batch : 0, row, &widened) &&
                    sherd__add(r.used, vectors, &bytes) && sherd__add(bytes, widened, &bytes);
        *out = (sherd__network_size){ n.count, n.width, fits ? bytes : SIZE_MAX };
    }
    sherd__free(n.layers);
    sherd__free(n.outs);
    return err == SHERD_ENOMEM ? sherd__fail_memory(d, "a network") : err;
}

static int make(const sherd__network_spec *spec, bool memory, sherd__network **out, sherd_diag *d)
{
    *out = NULL;
    sherd__network *n = sherd__calloc(1, sizeof *n);
    if (!n) return sherd__fail_memory(d, "a network");
    int err = begin(n, spec, d);
    if (err == 0 && memory && !allocate(n)) err = SHERD_ENOMEM;
    if (err != 0) {
        sherd__network_free(n);
        return err != SHERD_ENOMEM ? err
                                   : sherd__fail_memory_hint(d, "a smaller batch needs less",
                                                             "a network of %zu layers and batches "
                                                             "of %zu",
                                                             spec->len, spec->batch);
    }
    *out = n;
    return SHERD_OK;
}

int sherd__network_new(const sherd__network_spec *spec, sherd__network **out, sherd_diag *d)
{
    int err = make(spec, true, out, d);
    if (err) return err;
    sherd__network *n = *out;
    cut_vectors(n);
    size_t bytes = spec->unset ? 0 : n->count * sherd_dtype_size(n->dtype);
    memset(n->params, 0, bytes);
    memset(n->gradient, 0, bytes);
    return SHERD_OK;
}

int sherd__network_shapes(const sherd__network_spec *spec, sherd__network **out, sherd_diag *d)
{
    return make(spec, false, out, d);
}

void sherd__network_free(sherd__network *n)
{
    if (!n) return;
    sherd__free(n->layers);
    sherd__free(n->outs);
    sherd__free(n->params);
    sherd__free(n->gradient);
    sherd__free(n->room);
    sherd__free(n->widened);
    sherd__free(n);
}

/* ---- accessors ------------------------------------------------------------------------------- */

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

static void copy_as_f64(const sherd__network *n, const void *from, size_t count, double *out)
{
    const float *p = from;
    if (n->dtype == SHERD_F64) memcpy(out, from, count * sizeof *out);
    for (size_t k = 0; k < count && n->dtype == SHERD_F32; k++) out[k] = (double)p[k];
}

void sherd__network_get(const sherd__network *n, double *params)
{
    copy_as_f64(n, n->params, n->count, params);
}

void sherd__network_get_gradient(const sherd__network *n, double *gradient)
{
    copy_as_f64(n, n->gradient, n->count, gradient);
}

void sherd__network_forget_gradient(sherd__network *n)
{
    for (size_t k = 0; k < n->count; k++) {
        if (n->dtype == SHERD_F32) n->gradient32[k] = NAN;
        else n->gradient[k] = NAN;
    }
}

void sherd__network_set(sherd__network *n, const double *params)
{
    if (n->dtype == SHERD_F64) memcpy(n->params, params, n->count * sizeof *params);
    for (size_t k = 0; k < n->count && n->dtype == SHERD_F32; k++)
        n->params32[k] = (float)params[k];
}

void sherd__network_lend(sherd__network *n, size_t layer, const double *params)
{
    sherd__layer *l = &n->layers[layer];
    assert(n->dtype == SHERD_F64);
    l->weights = params ? (double *)(uintptr_t)params : n->params + l->from;
    l->biases = l->weights + l->rows * l->cols;
}

void sherd__network_steady(sherd__network *n)
{
    n->steady = true;
}

void sherd__network_apart(sherd__network *n, sherd__layer_apart apart)
{
    n->apart = apart;
}

void sherd__network_hook(sherd__network *n, const sherd__network_hooks *hooks)
{
    n->hooks = hooks ? *hooks : (sherd__network_hooks){ 0 };
}

/* ---- initial weights ------------------------------------------------------------------------- */

void sherd__network_draw(sherd__network *n, const sherd__entropy *e, double scale)
{
    for (size_t i = 0; i < n->len; i++) {
        sherd__layer *l = &n->layers[i];
        size_t count = l->rows * l->cols;
        double pair[2], by = scale > 0 || count == 0 ? scale : sqrt(2.0 / (double)l->rows);
        for (size_t k = 0; k < count; k++) {
            if (k % 2 == 0) sherd__draw_normal(e, pair);
            if (n->dtype == SHERD_F32) l->weights32[k] = (float)(by * pair[k % 2]);
            else l->weights[k] = by * pair[k % 2];
        }
        memset(l->biases, 0, l->cols * sherd_dtype_size(n->dtype));
    }
}
