/*
 * The program of a pass, layer by layer. Memory is laid out as it is needed: exponents of fixed
 * point at the beginning (those of integers stay 0), what the backward pass reads, and above it
 * what a layer needs for a moment, which the next one uses again.
 *
 * A product of fixed point is four kinds of steps: the peak of an operand and its exponent, the
 * operand in whole numbers, the product, and the sums as numbers. Parts of it serve several
 * products: x and W those of both directions, dy those of both gradients.
 */
#include "node/programs_build.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "matrix/exact.h"
#include "matrix/view.h"
#include "sherd/op.h"

#define ALIGNED 256u
#define READS 256u              /* of one item of a pool: more take too long */
#define TERMS ((size_t)1 << 24) /* of a sum that a few items compute: likewise */
#define PEAKS 128u /* groups that look for a peak: the last one reads what they found */

/* An operand of products: whole numbers of at most `bound`, and where their exponent is. */
typedef struct operand {
    uint64_t at, exponent, bound;
    size_t rows, cols;
} operand;

/* What the backward pass needs of a layer. */
typedef struct kept {
    uint64_t x, y;       /* numbers */
    operand left, right; /* a layer with parameters: x or its windows, and W */
} kept;

typedef struct builder {
    sherd__pass_program *to;
    const sherd__network_pass *p;
    unsigned bits;
    size_t examples;
    uint64_t at, most; /* bytes of memory: in use, and at most */
    uint64_t exponents, partial;
    bool full; /* out of memory of the host, or a size wrapped */
    bool unsupported;
} builder;

/* ---- steps and memory ------------------------------------------------------------------------ */

static sherd__program_step *add(builder *b, int kind, sherd__kernel kernel)
{
    static sherd__program_step nowhere;
    sherd__pass_program *p = b->to;
    if (p->program.count == p->room) {
        const size_t room = p->room ? 2 * p->room : 128;
        sherd__program_step *more = sherd__realloc(p->steps, room * sizeof *more);
        if (!more) {
            b->full = true;
            return &nowhere;
        }
        p->steps = more;
        p->room = room;
    }
    sherd__program_step *s = &p->steps[p->program.count++];
    memset(s, 0, sizeof *s);
    s->kind = kind;
    s->kernel = kernel;
    return s;
}

static uint64_t take(builder *b, size_t rows, size_t cols)
{
    const uint64_t at = b->at;
    size_t n, len;
    if (!sherd__mul(rows, cols, &n) || !sherd__mul(n, sizeof(double), &len) ||
        !sherd__add(len, ALIGNED - 1, &len) || len > SIZE_MAX / 2 || at > SIZE_MAX / 2 - len) {
        b->full = true;
        return at;
    }
    b->at += len / ALIGNED * ALIGNED;
    if (b->at > b->most) b->most = b->at;
    return at;
}

static sherd__kernel_job *add_layer(builder *b, uint32_t op, uint64_t from, uint64_t to, size_t n)
{
    sherd__program_step *s = add(b, SHERD__STEP_LAUNCH, SHERD__KERNEL_LAYER);
    s->job.op = op;
    s->job.left_at = from;
    s->job.out_at = to;
    s->job.n = n;
    s->flops = 16 * (double)n; /* and more where squares are read: set_windows */
    return &s->job;
}

static void add_copy(builder *b, int kind, uint64_t at, const void *host, size_t len)
{
    sherd__program_step *s = add(b, kind, SHERD__KERNEL_LAYER);
    s->job.left_at = s->job.out_at = at;
    s->host = (void *)(uintptr_t)host;
    s->len = len;
}

/* Returns how many numbers of squares an item reads. */
static double reads_of(const sherd__layer *l)
{
    const size_t w = l->spec.window, own = l->cols == 0 ? w : 1;
    const size_t step = l->spec.stride ? l->spec.stride : own, side = (w + step - 1) / step;
    return (double)side * (double)side * (l->cols == 0 ? (double)w * (double)w : 1);
}

/* Describes the windows or squares of the layer's images in the last step. */
static void set_windows(builder *b, const sherd__layer *l)
{
    const bool pool = l->cols == 0;
    if (b->full) return;
    sherd__program_step *s = &b->to->steps[b->to->program.count - 1];
    sherd__kernel_job *job = &s->job;
    if (l->in.height > UINT32_MAX || l->in.width > UINT32_MAX || l->in.channels > UINT32_MAX ||
        l->out.height > UINT32_MAX / l->out.width)
        b->unsupported = true;
    s->flops *= reads_of(l);
    job->height = (uint32_t)l->in.height;
    job->width = (uint32_t)l->in.width;
    job->channels = (uint32_t)l->in.channels;
    job->window = (uint32_t)l->spec.window;
    job->stride = (uint32_t)(l->spec.stride ? l->spec.stride : pool ? l->spec.window : 1);
    job->padding = (uint32_t)l->spec.padding;
    job->wide = (uint32_t)l->out.width;
    job->count = (uint32_t)(l->out.width * l->out.height);
}

/* ---- fixed point ----------------------------------------------------------------------------- */

/* Adds the exponent of n numbers; returns where it is. */
static uint64_t add_exponent(builder *b, uint64_t from, size_t n)
{
    const size_t groups = (n + SHERD__GROUP - 1) / SHERD__GROUP;
    const uint64_t to = b->exponents;
    const sherd__kernel_job some = { .left_at = from,
                                     .out_at = b->partial,
                                     .n = n,
                                     .count = (uint32_t)(groups < PEAKS ? groups : PEAKS) };
    const sherd__kernel_job all = {
        .left_at = b->partial, .out_at = to, .n = some.count, .count = 1, .op = b->bits
    };
    sherd__program_step *s = add(b, SHERD__STEP_LAUNCH, SHERD__KERNEL_PEAK);
    s->job = some;
    s->groups = some.count;
    s->flops = 4 * (double)n;
    s = add(b, SHERD__STEP_LAUNCH, SHERD__KERNEL_PEAK);
    s->job = all;
    s->groups = 1;
    b->exponents += sizeof(double);
    return to;
}

static void add_quantised(builder *b, uint64_t from, uint64_t to, size_t n, uint64_t exponent)
{
    add_layer(b, KERNEL_QUANTISE, from, to, n)->right_at = exponent;
}

static operand operand_of(const builder *b, uint64_t at, uint64_t exponent, size_t rows,
                          size_t cols)
{
    return (operand){ at, exponent, (UINT64_C(1) << (b->bits - 1)) - 1, rows, cols };
}

/* Adds a matrix in whole numbers, in new memory. */
static operand add_operand(builder *b, uint64_t from, size_t rows, size_t cols)
{
    const uint64_t to = take(b, rows, cols), exponent = add_exponent(b, from, rows * cols);
    add_quantised(b, from, to, rows * cols, exponent);
    return operand_of(b, to, exponent, rows, cols);
}

/* Adds to = u v, or u^T v; biases, if there are any, are added. */
static void add_product(builder *b, const operand *u, bool transposed, const operand *v,
                        const uint64_t *biases, uint64_t to)
{
    const size_t n = transposed ? u->cols : u->rows, m = v->cols;
    sherd__program_step *s = add(b, SHERD__STEP_MULTIPLY, SHERD__KERNEL_F64);
    s->job = (sherd__kernel_job){ .left_at = u->at,
                                  .right_at = v->at,
                                  .out_at = to,
                                  .n = n,
                                  .k = v->rows,
                                  .m = m,
                                  .left_type = KERNEL_F64,
                                  .right_type = KERNEL_F64,
                                  .out_type = KERNEL_F64,
                                  .transposed = transposed };
    s->flops = 2 * (double)n * (double)v->rows * (double)m;
    sherd__kernel_job *job = add_layer(b, KERNEL_UNSCALE, to, to, n * m);
    job->right_at = u->exponent;
    job->more_at = v->exponent;
    job->m = m;
    job->k = biases != NULL;
    job->biases_at = biases ? *biases : 0;
    if (!sherd__exact_in_f64(v->rows, u->bound, v->bound)) b->unsupported = true;
}

/* ---- forward --------------------------------------------------------------------------------- */

static bool is_conv(const sherd__layer *l)
{
    return l->spec.kind == &sherd__layer_conv2d;
}

static size_t size_of(sherd__tensor_shape s)
{
    return s.height * s.width * s.channels; /* fit has checked that this does not overflow */
}

/* Adds the windows of images. Windows that leave pixels out can have another exponent. */
static operand add_windows(builder *b, const sherd__layer *l, uint64_t x)
{
    const sherd__windows w = sherd__layer_windows(l);
    const size_t rows = b->examples * w.count;
    const bool cover = sherd__windows_cover(&w);
    const uint64_t to = take(b, rows, l->rows), before = b->at;
    uint64_t from = x, exponent = 0;
    if (cover) {
        const operand whole = add_operand(b, x, b->examples, size_of(l->in));
        from = whole.at;
        exponent = whole.exponent;
    }
    add_layer(b, KERNEL_WINDOWS, from, to, rows * l->rows);
    set_windows(b, l);
    if (!cover) {
        exponent = add_exponent(b, to, rows * l->rows);
        add_quantised(b, to, to, rows * l->rows, exponent);
    }
    b->at = before;
    return operand_of(b, to, exponent, rows, l->rows);
}

/* x: the layer's input, or if it is whole numbers `whole`. */
static void add_forward(builder *b, const sherd__layer *l, kept *k, const operand *whole)
{
    const size_t len = l->rows * l->cols;
    k->left = whole->rows  ? *whole
              : is_conv(l) ? add_windows(b, l, k->x)
                           : add_operand(b, k->x, b->examples, l->rows);
    k->y = take(b, k->left.rows, l->cols);
    const uint64_t weights = take(b, l->rows, l->cols), biases = take(b, 1, l->cols);
    add_copy(b, SHERD__STEP_WRITE, weights, l->weights, len * sizeof(double));
    add_copy(b, SHERD__STEP_WRITE, biases, l->biases, l->cols * sizeof(double));
    k->right = operand_of(b, weights, add_exponent(b, weights, len), l->rows, l->cols);
    add_quantised(b, weights, weights, len, k->right.exponent);
    add_product(b, &k->left, false, &k->right, &biases, k->y);
}

static void add_pool(builder *b, const sherd__layer *l, kept *k)
{
    const size_t n = b->examples * size_of(l->out);
    const bool max = l->spec.kind == &sherd__layer_max_pool;
    if (reads_of(l) > READS) b->unsupported = true;
    k->y = take(b, b->examples, size_of(l->out));
    add_layer(b, max ? KERNEL_MAX : KERNEL_MEAN, k->x, k->y, n);
    set_windows(b, l);
}

/* needed: the memory below must not change. */
static void add_activation(builder *b, const sherd__layer *l, kept *k, bool needed)
{
    sherd__program_step *s = add(b, SHERD__STEP_LAUNCH, SHERD__KERNEL_MAP);
    k->y = needed ? take(b, b->examples, size_of(l->out)) : k->x;
    s->flops = 64 * (double)(b->examples * size_of(l->out));
    s->job = (sherd__kernel_job){ .left_at = k->x,
                                  .out_at = k->y,
                                  .n = b->examples * size_of(l->out),
                                  .left_type = KERNEL_F64,
                                  .out_type = KERNEL_F64,
                                  .op = l->spec.kind->op };
}

static void forward(builder *b, kept *layers, uint64_t x, operand whole)
{
    const sherd__network *n = b->p->network;
    bool needed = true;
    for (size_t i = 0; i < sherd__network_len(n); i++) {
        const sherd__layer *l = sherd__network_layer(n, i);
        const unsigned traits = l->spec.kind->traits;
        kept *k = &layers[i];
        k->x = k->y = x;
        if (traits & SHERD__LAYER_ALIAS) continue;
        if (l->cols > 0) add_forward(b, l, k, &whole);
        else if (l->spec.window > 0) add_pool(b, l, k);
        else if (l->spec.kind->op) add_activation(b, l, k, needed);
        else b->unsupported = true;
        needed = traits & SHERD__LAYER_IN_PLACE;
        whole.rows = 0;
        x = k->y;
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Adds a parametrised layer's gradients, and that of its input at `to`, if it is wanted. */
static void add_gradients(builder *b, const sherd__layer *l, const kept *k, uint64_t dy,
                          const uint64_t *to)
{
    const operand *u = &k->left;
    const size_t len = l->rows * l->cols;
    const operand d = add_operand(b, dy, u->rows, l->cols);
    const uint64_t weights = take(b, l->rows, l->cols), biases = take(b, 1, l->cols);
    add_product(b, u, true, &d, NULL, weights);
    sherd__program_step *s = add(b, SHERD__STEP_LAUNCH, SHERD__KERNEL_COLUMNS);
    s->groups = (uint32_t)((l->cols + 15) / 16);
    s->flops = 16 * (double)u->rows * (double)l->cols;
    if (u->rows > TERMS) b->unsupported = true;
    s->job = (sherd__kernel_job){ .left_at = dy, .out_at = biases, .k = u->rows, .m = l->cols };
    add_copy(b, SHERD__STEP_READ, weights, l->weights_gradient, len * sizeof(double));
    add_copy(b, SHERD__STEP_READ, biases, l->biases_gradient, l->cols * sizeof(double));
    if (!to) return;
    operand turned = operand_of(b, take(b, l->cols, l->rows), k->right.exponent, l->cols, l->rows);
    sherd__kernel_job *job = add_layer(b, KERNEL_TRANSPOSE, k->right.at, turned.at, len);
    job->transposed = 1;
    job->k = l->rows;
    job->m = l->cols;
    const uint64_t down = is_conv(l) ? take(b, u->rows, l->rows) : *to;
    add_product(b, &d, false, &turned, NULL, down);
    if (!is_conv(l)) return;
    add_layer(b, KERNEL_WINDOWS_DOWN, down, *to, b->examples * size_of(l->in));
    set_windows(b, l);
}

static void add_slope(builder *b, const sherd__layer *l, const kept *k, uint64_t dy)
{
    const uint32_t op = l->spec.kind->op == SHERD_OP_SIGMOID ? KERNEL_SIGMOID_DOWN
                        : l->spec.kind->op == SHERD_OP_TANH  ? KERNEL_TANH_DOWN
                                                             : KERNEL_RELU_DOWN;
    add_layer(b, op, k->y, dy, b->examples * size_of(l->out))->right_at = dy;
}

static void add_pool_down(builder *b, const sherd__layer *l, const kept *k, uint64_t dy,
                          uint64_t to)
{
    const bool max = l->spec.kind == &sherd__layer_max_pool;
    sherd__kernel_job *job = add_layer(b, max ? KERNEL_MAX_DOWN : KERNEL_MEAN_DOWN, k->x, to,
                                       b->examples * size_of(l->in));
    job->right_at = dy;
    set_windows(b, l);
}

static void backward(builder *b, const kept *layers, const uint64_t delta[2])
{
    const sherd__network *n = b->p->network;
    unsigned at = 0;
    for (size_t i = sherd__network_len(n); i-- > b->p->first;) {
        const sherd__layer *l = sherd__network_layer(n, i);
        const unsigned traits = l->spec.kind->traits;
        const uint64_t before = b->at, *to = i > b->p->first ? &delta[1 - at] : NULL;
        if (traits & SHERD__LAYER_ALIAS) continue;
        if (traits & SHERD__LAYER_IN_PLACE) {
            add_slope(b, l, &layers[i], delta[at]);
            continue;
        }
        if (l->cols > 0) add_gradients(b, l, &layers[i], delta[at], to);
        else if (to) add_pool_down(b, l, &layers[i], delta[at], *to);
        b->at = before;
        at = 1 - at;
    }
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Returns the largest whole number of a dtype as which integers are taken; 0 for floats. */
static uint64_t whole_bound(sherd_dtype t)
{
    switch (t) {
    case SHERD_U8: return 255;
    case SHERD_I8: return 128;
    case SHERD_U16: return 65535;
    case SHERD_I16: return 32768;
    default: return 0;
    }
}

/* Adds x in float64, from its bytes or from a copy; returns where it is. */
static uint64_t add_input(builder *b, size_t size)
{
    const sherd_view v = b->p->x;
    const size_t each = sherd_dtype_size(v.dtype);
    const uint64_t x = take(b, v.rows, size), before = b->at;
    sherd__pass_program *p = b->to;
    const bool dense = v.col_stride == 1 && v.row_stride == (ptrdiff_t)v.cols;
    if (v.dtype == SHERD_U32 || v.dtype == SHERD_I32 || v.dtype == SHERD_I64) b->unsupported = true;
    if (dense && v.dtype == SHERD_F64) {
        add_copy(b, SHERD__STEP_WRITE, x, v.data, v.rows * size * each);
    } else if (dense) {
        const uint64_t raw = take(b, v.rows, size);
        add_copy(b, SHERD__STEP_WRITE, raw, v.data, v.rows * size * each);
        add_layer(b, KERNEL_CONVERT, raw, x, v.rows * size)->left_type = (uint32_t)v.dtype;
    } else if (!b->unsupported) {
        if (p->input_room < v.rows * size) {
            sherd__free(p->input);
            p->input_room = v.rows * size;
            p->input = sherd__alloc(p->input_room * sizeof *p->input);
        }
        if (!p->input) {
            p->input_room = 0;
            b->full = true;
            return x;
        }
        sherd__view_dense_f64(v, p->input, size);
        add_copy(b, SHERD__STEP_WRITE, x, p->input, v.rows * size * sizeof(double));
    }
    b->at = before;
    return x;
}

/* Returns the first layer that computes. */
static const sherd__layer *lowest(const sherd__network *n)
{
    size_t i = 0;
    while (sherd__network_layer(n, i)->spec.kind->traits & SHERD__LAYER_ALIAS) i++;
    return sherd__network_layer(n, i);
}

/* Returns x as an operand if the lowest layer takes its integers as they are (rows 0: it does
 * not). Their exponent is 0, as a number that no step writes. */
static operand whole_input(builder *b, uint64_t x, size_t size)
{
    const uint64_t bound = whole_bound(b->p->x.dtype);
    if (!bound || !(lowest(b->p->network)->spec.kind->traits & SHERD__LAYER_ANY_VIEW))
        return (operand){ .rows = 0 };
    b->exponents += sizeof(double);
    return (operand){ x, b->exponents - sizeof(double), bound, b->p->x.rows, size };
}

static void build(builder *b, kept *layers)
{
    const sherd__network *n = b->p->network;
    const size_t len = sherd__network_len(n), width = sherd__network_width(n);
    const size_t size = size_of(sherd__network_layer(n, 0)->in);
    const size_t outputs = b->examples * width * sizeof(double);
    size_t widest = 0;
    for (size_t i = 0; i < len; i++) {
        const size_t out = size_of(sherd__network_layer(n, i)->out);
        widest = out > widest ? out : widest;
    }
    (void)take(b, 4, len + 1); /* exponents: at most three for each layer, and that of x */
    b->to->program.zeroed = b->at;
    b->partial = take(b, 1, PEAKS);
    const uint64_t x = add_input(b, size);
    forward(b, layers, x, whole_input(b, x, size));
    add_copy(b, SHERD__STEP_READ, layers[len - 1].y, b->p->y, outputs);
    (void)add(b, SHERD__STEP_CALL, SHERD__KERNEL_LAYER);
    const uint64_t delta[] = { take(b, b->examples, widest), take(b, b->examples, widest) };
    add_copy(b, SHERD__STEP_WRITE, delta[0], b->p->dy, outputs);
    backward(b, layers, delta);
}

int sherd__pass_program_make(sherd__pass_program *out, const sherd__network_pass *p, unsigned bits)
{
    builder b = { .to = out, .p = p, .bits = bits, .examples = p->x.rows };
    kept *layers = sherd__calloc(sherd__network_len(p->network), sizeof *layers);
    if (!layers) return SHERD_ENOMEM;
    out->program = (sherd__program){ .count = 0 };
    build(&b, layers);
    sherd__free(layers);
    out->program.steps = out->steps;
    out->program.memory = b.most;
    return b.full ? SHERD_ENOMEM : b.unsupported ? SHERD_EUNSUPPORTED : SHERD_OK;
}

void sherd__pass_program_free(sherd__pass_program *out)
{
    sherd__free(out->steps);
    sherd__free(out->input);
}
