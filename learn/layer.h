/*
 * A layer: constant functions over a shape, parameters and a multiplier. Every product goes through
 * the multiplier, so the same layer trains on this machine or on nodes that are not trusted; what
 * those learn is said by the multiplier's scheme (docs/THREATS.md), nothing else leaves a layer.
 *
 * Numbers are f64, or f32 (dtype of a layer), which trains on this machine alone: fields and
 * functions in ...32 are then what the others are for f64, compiled from the same source
 * (learn/...inc).
 *
 * A batch is row-major, one example a row; within a row channels vary fastest, then columns,
 * then rows of the image. Sums are made in one fixed order (ascending examples), so that results
 * depend on nothing but values and the multiplier's own promise.
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
typedef struct sherd__form {
    size_t height, width, channels;
} sherd__form;

/** Where arithmetic happens. */
typedef struct sherd__engine {
    sherd_multiplier products;
    bool maps;  /* sigmoid, tanh, ReLU and their gradients too go through `products`; same bits */
    bool keeps; /* inputs of layers stay with `products` from the forward pass to the backward one,
                   and windows of images are taken there: pays where both passes take the same
                   shares; same bits */
    size_t whole; /* fixed point: that many products of two numbers add up to a double without being
                     rounded; 0: not known. Where a gradient of an image is such a sum, it may be
                     made as one */
} sherd__engine;

typedef struct sherd__layer_kind sherd__layer_kind;

/** What a layer is to be; fields that its kind does not name are 0. */
typedef struct sherd__layer_spec {
    const sherd__layer_kind *kind;
    size_t units;   /* dense: outputs; conv2d: output channels */
    size_t window;  /* conv2d and pools: side of the square that one output sees */
    size_t stride;  /* conv2d: 0 is 1; pools: 0 is the window */
    size_t padding; /* conv2d: rings of zeros around the image */
} sherd__layer_spec;

/** A layer within a network, which owns all that is pointed to. */
typedef struct sherd__layer {
    sherd__layer_spec spec;
    sherd__form in, out;
    size_t rows, cols;   /* of the weights; 0 and 0 without any. There are cols biases. */
    size_t scratch_each; /* numbers of scratch for one example */
    sherd_dtype dtype;   /* SHERD_F64 or SHERD_F32: which one of each pair below */
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
    }; /* the same shapes */
    union {
        double *biases_gradient;
        float *biases_gradient32;
    };
    union {
        double *scratch;
        float *scratch32;
    };
    sherd_kept *held; /* between two passes: the left operand of both (engine.keeps) */
    size_t from;      /* of all parameters of the network, the first of this layer */
    double x_peak;    /* max |x| of the pass under way, as products left it (sherd__tiled.peak_a) */
    bool updated;     /* set by the pass back: call->update has been made of the weights */
    bool bias_total;  /* every bias gets the sum over all of them (sherd__network_spec) */
} sherd__layer;

/** What becomes of a layer's gradient: a step of the optimiser (begun), which a layer may make part
 *  by part while gradients are in cache. */
typedef struct sherd__layer_update {
    sherd__optimiser *optimiser;
    double rate, l2; /* l2 times the weights is added to their gradient first */
    bool keep;       /* the gradient is to be in the layer's memory afterwards, l2 included */
} sherd__layer_update;

/** What the gradient of a layer's weights is made of, handed out in its place: x, one row or
 *  several for each example, and dy, a row of the layer's columns for each of these; the gradient
 *  would be x^T dy. Of layers of f64 whose products sherd__here_can make. x and dy last for the
 *  call, and x of a layer that is no convolution for the pass. A failure ends the pass with that
 *  error. */
typedef struct sherd__layer_apart {
    int (*take)(void *ctx, const sherd__layer *l, sherd_view x, const double *dy, sherd_diag *d);
    void *ctx;
} sherd__layer_apart;

/** One pass over a batch, in either direction. */
typedef struct sherd__layer_call {
    sherd__engine engine;
    size_t examples;
    sherd_view x;     /* examples x in; row-major, of the layer's dtype, unless the kind says
                         SHERD__LAYER_ANY_VIEW */
    sherd_kept *kept; /* x again, where the multiplier holds it (sherd__layer_keep), from example
                         `first` on; or NULL */
    size_t first;
    union {
        double *y;
        float *y32;
    };              /* examples x out: forward writes, backward reads it */
    bool unbiased;  /* forward: leave biases out */
    double *y_peak; /* forward: gets max |y|, or 0: not known; NULL: nobody asks */
    bool returns;   /* forward: backward follows, with the same x */
    union {
        double *dy;
        float *dy32;
    }; /* examples x out: d cost / dy; backward may overwrite it */
    union {
        double *dx;
        float *dx32;
    };                 /* examples x in, gets d cost / dx; NULL where nobody needs
                                           it. dy itself for SHERD__LAYER_IN_PLACE */
    sherd__team *team; /* for passes over elements; may be NULL */
    /** A layer that says SHERD__LAYER_FINISHES: the sherd_op of the layer above, which it then is
     *  too: y and dy are those of that layer. 0: none. Only where sherd__here_can. */
    uint32_t then;
    const sherd__layer_update *update; /* backward; NULL: gradients only */
    const sherd__layer_apart *apart;   /* backward; NULL: gradients are made */
} sherd__layer_call;

enum {
    SHERD__LAYER_ANY_VIEW = 1, /* takes x of any dtype and strides */
    SHERD__LAYER_IN_PLACE = 2, /* y may be x; backward needs y but not x */
    SHERD__LAYER_ALIAS = 4,    /* y always is x, dx always dy: nothing is computed */
    SHERD__LAYER_FINISHES = 8  /* may do the work of an activation above it in its own passes */
};

/** A kind of layer. Constant and shared. */
struct sherd__layer_kind {
    const char *name;
    unsigned traits; /* SHERD__LAYER_* */
    /** From l->spec and l->in (no side 0): out, rows, cols, scratch_each. SHERD_EINVAL (a missing
     *  number), SHERD_ESHAPE (a window larger than the image, sizes that wrap). */
    int (*fit)(sherd__layer *l, sherd_diag *d);
    /** y from x. What the multiplier says; outputs are undefined then. */
    int (*forward)(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d);
    /** From dy (and x, y of the forward pass just made): the gradients, and dx unless NULL. */
    int (*backward)(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d);
    /** The same for a layer of f32. */
    int (*forward32)(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d);
    int (*backward32)(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d);
    uint32_t op; /* an activation: its sherd_op (sherd/multiplier.h), which a layer below may do */
};

/** y = x W + b; dW = x^T dy, db = column sums of dy, dx = dy W^T. */
extern const sherd__layer_kind sherd__layer_dense;
/** max(x, 0); the gradient at 0 is 0. */
extern const sherd__layer_kind sherd__layer_relu;
/** 1/(1+exp(-x)), for any x; gradient y - y^2. */
extern const sherd__layer_kind sherd__layer_sigmoid;
/** tanh x; gradient 1 - y^2. */
extern const sherd__layer_kind sherd__layer_tanh;
/** exp(x_j)/sum exp(x_i) over an example, for any finite x. With cross-entropy use the loss that
 *  contains it instead (learn/loss.h). */
extern const sherd__layer_kind sherd__layer_softmax;
/** An image as a plain vector. */
extern const sherd__layer_kind sherd__layer_flatten;
/** Each output pixel: the window around it, a vector of window x window x channels (rows of the
 *  window, columns, channels), times the weights (that many x units), plus biases. A side becomes
 *  (side + 2 padding - window) / stride + 1, rounded down; padding is below the window. */
extern const sherd__layer_kind sherd__layer_conv2d;
/** The largest, or the mean, of a window, for each channel; a side becomes
 *  (side - window) / stride + 1, rounded down. */
extern const sherd__layer_kind sherd__layer_max_pool;
extern const sherd__layer_kind sherd__layer_average_pool;

/** Numbers in one example; false, *size untouched, where that wraps. */
bool sherd__form_size(sherd__form f, size_t *size);
/** y += b, row by row. */
void sherd__bias_add(const sherd__layer *l, size_t rows, double *y);
/** biases_gradient from dy, rows x cols; rows ascending. */
void sherd__bias_gradient(sherd__layer *l, size_t rows, const double *dy);

/* ---- products of a layer with parameters, wherever they are computed (learn/dense.c) --------- */

/** Keeps the inputs of many batches for products of a dense layer or a convolution, in parts of
 *  `part` examples: *kept is the caller's. Errors of sherd_multiplier_keep_as. */
int sherd__layer_keep(const sherd__layer *l, sherd__engine e, sherd_view x, size_t part,
                      sherd_kept **kept, sherd_diag *d);
/** Leaves call->x with the multiplier for the way back, and images for their windows, where that
 *  pays; where nodes have no room for it, it travels twice, or as windows. *held: it is there, or
 *  was before; the functions below do not read x then. Errors of sherd_multiplier_keep_as. */
int sherd__products_hold(sherd__layer *l, const sherd__layer_call *call, bool *held, sherd_diag *d);
/** y = x W, plus biases unless call->unbiased; x is call->x, or the windows of a convolution.
 *  Errors of the multiplier. */
int sherd__products_forward(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                            sherd_diag *d);
/** weights_gradient = x^T dy, and biases_gradient; then dx = dy W^T (sherd__products_down) unless
 *  dx is NULL. dx may be x's memory. */
int sherd__products_backward(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                             double *dx, sherd_diag *d);
/** dx = dy W^T alone, of `rows` rows. */
int sherd__products_down(const sherd__layer *l, const sherd__layer_call *call, size_t rows,
                         double *dx, sherd_diag *d);
/** The gradient of a convolution's images, call->dx, as the windows of dy times W turned round,
 *  where that pays and gives the bits of dy W^T added up; else *done is false. Only after
 *  sherd__products_backward with dx NULL. Errors of the multiplier, SHERD_ENOMEM. */
int sherd__products_image(const sherd__layer *l, const sherd__layer_call *call, bool *done,
                          sherd_diag *d);
/** Windows of a convolution; count 0 for a dense layer. */
sherd__windows sherd__layer_windows(const sherd__layer *l);
/** Lets go of what a forward pass left with the multiplier. */
void sherd__products_release(sherd__layer *l, sherd__engine e);

/* ---- products of a layer with parameters, on this machine (learn/here.c) --------------------- */

/** Whether those below can be used: the engine is this machine (in fixed point: and keeps nothing),
 *  and sherd__tiled_takes x. Always true of layers of f32 that a network calls. */
bool sherd__here_can(const sherd__layer_call *call, sherd_view x);
/** y = x W, plus biases unless call->unbiased, then call->then; y is x.rows x cols.
 *  SHERD_ENOMEM. */
int sherd__here_forward(sherd__layer *l, const sherd__layer_call *call, sherd_view x, double *y,
                        sherd_diag *d);
/** dy times the slope of call->then at y, in place; gradients of biases and weights; dx = dy W^T
 *  unless dx is NULL. The bias gradients have the bits of sherd__bias_gradient. call->update is
 *  made of the weights (l->updated), unless dx is where x is. SHERD_ENOMEM. */
int sherd__here_backward(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                         const double *y, double *dy, double *dx, sherd_diag *d);
/** g += l2 w, n numbers. */
void sherd__here_l2(double l2, size_t n, const double *w, double *g);
void sherd__here_l232(double l2, size_t n, const float *w, float *g);
int sherd__here_forward32(sherd__layer *l, const sherd__layer_call *call, sherd_view x, float *y,
                          sherd_diag *d);
int sherd__here_backward32(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                           const float *y, float *dy, float *dx, sherd_diag *d);

#endif
