/*
 * A layer: constant functions over a shape, parameters and a multiplier. Every product goes through
 * the multiplier, so the same layer trains on this machine or on untrusted nodes. The multiplier's
 * scheme decides what those learn (docs/THREATS.md); a layer reveals nothing else.
 *
 * Numbers are f64 or f32 (the dtype of a layer). Layers of f32 train on this machine only. Fields
 * and functions with the suffix 32 are the f32 counterparts of the others, compiled from the same
 * source (the .inc files).
 *
 * A batch is row-major, one example a row. Within a row channels vary fastest, then columns, then
 * rows of the image. Sums are made in one fixed order (ascending examples), so that results depend
 * only on the values and on the guarantees of the multiplier.
 */
#ifndef LEARN_LAYER_H
#define LEARN_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/team.h"
#include "learn/optimiser.h"
#include "matrix/windows.h"
#include "sherd/mat.h"
#include "sherd/multiplier.h"

/** The shape of one example. A plain vector of n numbers is 1 x 1 x n. */
typedef struct sherd__tensor_shape {
    size_t height, width, channels;
} sherd__tensor_shape;

/** Where and how arithmetic is done. */
typedef struct sherd__engine {
    sherd_multiplier products;
    bool maps;    /* the multiplier also computes sigmoid, tanh, ReLU and their gradients; same
                     bits */
    bool keeps;   /* the multiplier keeps the inputs of layers from the forward pass to the backward
                     one, and lays out windows of images; pays if both passes use the same shares;
                     same bits */
    size_t whole; /* fixed point: how many products of two numbers a double can add up without
                     rounding; 0: unknown. If a gradient of an image is a sum of no more products,
                     it may be made as one product */
    /** Called before a pass of a training, with the number of the pass: the step, or
     *  sherd__pass_of_validation. Two passes with one number have the same operands. NULL: not
     *  called. */
    void (*begin)(void *ctx, uint64_t pass);
    void *begin_ctx;
} sherd__engine;

/** Limits of the numbers of passes: batches of one validation, and steps. */
#define SHERD__PASS_BATCHES (UINT64_C(1) << 20)
#define SHERD__PASS_STEPS (UINT64_C(1) << 43)
#define SHERD__PASS_VALIDATION (UINT64_C(1) << 63)
/** Returns the number of the pass over batch `batch` of a validation after `step` steps. */
static inline uint64_t sherd__pass_of_validation(uint64_t step, uint64_t batch)
{
    return SHERD__PASS_VALIDATION | step * SHERD__PASS_BATCHES | batch;
}

typedef struct sherd__layer_kind sherd__layer_kind;

/** Parameters of a layer; fields that its kind does not use are 0. */
typedef struct sherd__layer_spec {
    const sherd__layer_kind *kind;
    size_t units;   /* dense: outputs; conv2d: output channels */
    size_t window;  /* conv2d and pools: side of the square that one output sees */
    size_t stride;  /* conv2d: 0 is 1; pools: 0 is the window */
    size_t padding; /* conv2d: rings of zeros around the image */
} sherd__layer_spec;

/** A layer of a network. The network owns all that the pointers refer to. */
typedef struct sherd__layer {
    sherd__layer_spec spec;
    sherd__tensor_shape in, out;
    size_t rows, cols;   /* of the weights; 0 and 0 without parameters. There are cols biases. */
    size_t scratch_each; /* numbers of scratch for one example */
    sherd_dtype dtype;   /* SHERD_F64 or SHERD_F32: selects the member of each union below */
    union {
        double *weights;
        float *weights32;
    }; /* rows x cols */
    union {
        double *biases;
        float *biases32;
    }; /* cols */
    union {
        double *weights_gradient;
        float *weights_gradient32;
    }; /* the same shapes as the parameters */
    union {
        double *biases_gradient;
        float *biases_gradient32;
    };
    union {
        double *scratch;
        float *scratch32;
    };
    sherd_kept *held; /* between two passes: the left operand of both (engine.keeps) */
    size_t from;      /* offset of this layer's parameters in those of the network */
    double x_peak;    /* max |x| of the current pass, as the products found it
                         (sherd__tiled.peak_a) */
    bool updated;     /* set by the backward pass: call->update has been applied to the weights */
    bool bias_total;  /* every bias gradient is the sum over all of them (sherd__network_spec) */
} sherd__layer;

/** An update of a layer's parameters by a step of the optimiser that has been started. The layer
 *  may make it part by part while gradients are in cache. */
typedef struct sherd__layer_update {
    sherd__optimiser *optimiser;
    double rate, l2; /* l2 times the weights is first added to their gradient */
    bool keep;       /* store the gradient in the layer's memory afterwards, including l2 */
} sherd__layer_update;

/** Receives the factors of a layer's weight gradient instead of the gradient x^T dy: x, one or
 *  several rows for each example, and dy, for each of these a row of the layer's columns. Only for
 *  layers of f64 and products without kept operands. x and dy are valid during the call; x of
 *  a layer that is not a convolution is valid until the end of the pass. A failure ends the pass
 *  with that error. */
typedef struct sherd__layer_apart {
    int (*take)(void *ctx, const sherd__layer *l, sherd_view x, const double *dy, sherd_diag *d);
    void *ctx;
} sherd__layer_apart;

/** One pass over a batch, in either direction. */
typedef struct sherd__layer_call {
    sherd__engine engine;
    size_t examples;
    sherd_view x;     /* examples x in; row-major, of the layer's dtype, unless the kind has
                         SHERD__LAYER_ANY_VIEW */
    sherd_kept *kept; /* x from example `first` on, if the multiplier holds it (sherd__layer_keep),
                         or NULL */
    size_t first;
    union {
        double *y;
        float *y32;
    };              /* examples x out: forward writes it, backward reads it */
    bool unbiased;  /* forward: do not add biases */
    double *y_peak; /* forward: receives max |y|, or 0 if unknown; NULL: not wanted */
    bool returns;   /* forward: a backward pass with the same x follows */
    union {
        double *dy;
        float *dy32;
    }; /* examples x out: d cost / dy; backward may overwrite it */
    union {
        double *dx;
        float *dx32;
    };                 /* examples x in, receives d cost / dx; NULL if not wanted. For
                          SHERD__LAYER_IN_PLACE it is dy */
    sherd__team *team; /* for passes over elements; may be NULL */
    /** Only for a kind with SHERD__LAYER_FINISHES: the sherd_op of the layer above, which this
     *  layer then computes as well, so y and dy are those of that layer. 0: none. Only if
     *  sherd__here_can. */
    uint32_t then;
    const sherd__layer_update *update; /* backward; NULL: gradients only */
    const sherd__layer_apart *apart;   /* backward; NULL: gradients are computed */
} sherd__layer_call;

enum {
    SHERD__LAYER_ANY_VIEW = 1, /* takes x of any dtype and strides */
    SHERD__LAYER_IN_PLACE = 2, /* y may be x; backward needs y but not x */
    SHERD__LAYER_ALIAS = 4,    /* y always is x and dx always is dy: nothing is computed */
    SHERD__LAYER_FINISHES = 8  /* can compute an activation above it in its own passes */
};

/** A kind of layer. Constant and shared. */
struct sherd__layer_kind {
    const char *name;
    unsigned traits; /* SHERD__LAYER_* */
    /** Sets out, rows, cols and scratch_each from l->spec and l->in (no side is 0). SHERD_EINVAL (a
     *  missing number), SHERD_ESHAPE (a window larger than the image, sizes that overflow). */
    int (*fit)(sherd__layer *l, sherd_diag *d);
    /** Computes y from x. Errors of the multiplier; outputs are undefined then. */
    int (*forward)(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d);
    /** Computes the gradients, and dx unless NULL, from dy and from x and y of the last forward
     *  pass. */
    int (*backward)(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d);
    /** As forward and backward, for a layer of f32. */
    int (*forward32)(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d);
    int (*backward32)(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d);
    uint32_t op; /* an activation: its sherd_op (sherd/multiplier.h), which a layer below may
                    compute */
};

/** y = x W + b; dW = x^T dy, db = column sums of dy, dx = dy W^T. */
extern const sherd__layer_kind sherd__layer_dense;
/** max(x, 0); the gradient at 0 is 0. */
extern const sherd__layer_kind sherd__layer_relu;
/** 1/(1+exp(-x)), for any x; gradient y - y^2. */
extern const sherd__layer_kind sherd__layer_sigmoid;
/** tanh x; gradient 1 - y^2. */
extern const sherd__layer_kind sherd__layer_tanh;
/** exp(x_j)/sum exp(x_i) over an example, for any finite x. For cross-entropy, use the loss that
 *  includes softmax instead (learn/loss.h). */
extern const sherd__layer_kind sherd__layer_softmax;
/** Turns an image into a plain vector. */
extern const sherd__layer_kind sherd__layer_flatten;
/** Convolution. An output pixel is its window as a vector of window x window x channels (rows of
 *  the window, columns, channels), times the weights (that many x units), plus biases. A side
 *  becomes (side + 2 padding - window) / stride + 1, rounded down; padding is smaller than the
 *  window. */
extern const sherd__layer_kind sherd__layer_conv2d;
/** The maximum or the mean of a window, for each channel. A side becomes (side - window) / stride +
 *  1, rounded down. */
extern const sherd__layer_kind sherd__layer_max_pool;
extern const sherd__layer_kind sherd__layer_average_pool;

/** Computes how many numbers an example has. Returns false, with *size untouched, on overflow. */
bool sherd__form_size(sherd__tensor_shape f, size_t *size);
/** Computes y += b, row by row. */
void sherd__bias_add(const sherd__layer *l, size_t rows, double *y);
/** Computes biases_gradient from dy, rows x cols, summing rows in ascending order. */
void sherd__bias_gradient(sherd__layer *l, size_t rows, const double *dy);

/* ---- products of a layer with parameters, by the multiplier (learn/dense.c) ------------------ */

/** Keeps the inputs of many batches for products of a dense layer or a convolution, in parts of
 *  `part` examples. The caller owns *kept. Errors of sherd_multiplier_keep. */
int sherd__layer_keep(const sherd__layer *l, sherd__engine e, sherd_view x, size_t part,
                      sherd_kept **kept, sherd_diag *d);
/** Keeps call->x with the multiplier for the backward pass, and images for their windows, if that
 *  pays. If nodes have no room for it, x is sent twice, or as windows. *held: the multiplier has x,
 *  perhaps from before; the functions below then do not read x. Errors of
 *  sherd_multiplier_keep. */
int sherd__products_hold(sherd__layer *l, const sherd__layer_call *call, bool *held, sherd_diag *d);
/** Computes y = x W, plus biases unless call->unbiased. x is call->x or the windows of a
 *  convolution. Errors of the multiplier. */
int sherd__products_forward(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                            sherd_diag *d);
/** Computes weights_gradient = x^T dy and biases_gradient, then dx = dy W^T (sherd__products_down)
 *  unless dx is NULL. dx may be x's memory. */
int sherd__products_backward(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                             double *dx, sherd_diag *d);
/** Computes dx = dy W^T only, for `rows` rows. */
int sherd__products_down(const sherd__layer *l, const sherd__layer_call *call, size_t rows,
                         double *dx, sherd_diag *d);
/** Computes the gradient of a convolution's images, call->dx, as the windows of dy times the
 *  rotated W, if that pays and gives the bits of adding up dy W^T; otherwise sets *done to false.
 *  Only after sherd__products_backward with dx NULL. Errors of the multiplier, SHERD_ENOMEM. */
int sherd__products_image(const sherd__layer *l, const sherd__layer_call *call, bool *done,
                          sherd_diag *d);
/** Returns the windows of a convolution; count 0 for a dense layer. */
sherd__windows sherd__layer_windows(const sherd__layer *l);
/** Releases what a forward pass left with the multiplier. */
void sherd__products_release(sherd__layer *l, sherd__engine e);

/* ---- products of a layer with parameters, on this machine (learn/here.c) --------------------- */

/** Returns whether the functions below can be used: the engine is this machine (in fixed point: and
 *  keeps nothing), and sherd__tiled_takes x. Always true for layers of f32 that a network calls. */
bool sherd__here_can(const sherd__layer_call *call, sherd_view x);
/** Computes y = x W, plus biases unless call->unbiased, then call->then; y is x.rows x cols.
 *  SHERD_ENOMEM. */
int sherd__here_forward(sherd__layer *l, const sherd__layer_call *call, sherd_view x, double *y,
                        sherd_diag *d);
/** Multiplies dy by the slope of call->then at y, in place; then computes the gradients of biases
 *  and weights, and dx = dy W^T unless dx is NULL. The bias gradients have the bits of
 *  sherd__bias_gradient. Applies call->update to the weights (l->updated), unless dx overlaps x.
 *  SHERD_ENOMEM. */
int sherd__here_backward(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                         const double *y, double *dy, double *dx, sherd_diag *d);
/** Computes g += l2 w over n numbers. */
void sherd__here_l2(double l2, size_t n, const double *w, double *g);
void sherd__here_l232(double l2, size_t n, const float *w, float *g);
int sherd__here_forward32(sherd__layer *l, const sherd__layer_call *call, sherd_view x, float *y,
                          sherd_diag *d);
int sherd__here_backward32(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                           const float *y, float *dy, float *dx, sherd_diag *d);

#endif
