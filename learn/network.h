/*
 * A sequence of layers, its parameters and the memory of its passes. It knows neither who computes
 * (the engine of each call) nor what becomes of gradients (learn/optimiser.h, or whoever collects
 * them). All memory is taken when a network is made, for one largest batch; a pass allocates
 * nothing of its own (a multiplier may). One network belongs to one thread at a time.
 */
#ifndef LEARN_NETWORK_H
#define LEARN_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rand.h"
#include "learn/layer.h"
#include "learn/loss.h"
#include "learn/optimiser.h"

typedef struct sherd__network_spec {
    sherd__form in;
    const sherd__layer_spec *layers; /* borrowed during sherd__network_new */
    size_t len;
    size_t batch; /* examples of the largest batch */
    sherd__loss loss;
    double l2; /* adds l2/2 * (sum of squared weights, not biases) to the cost; 0 or more */
    /** A known mistake that published results depend on: every bias of a layer gets the sum over
     *  all of the layer's bias gradients. */
    bool bias_total;
    /** SHERD_F64 (0 is that), or SHERD_F32: then parameters, passes and gradients are f32, on this
     *  machine in floats only (SHERD_EUNSUPPORTED by any other engine); costs, targets and the
     *  outputs that calls return are f64 still. A dense first layer reads x as f64, f32 or u8. */
    sherd_dtype dtype;
    bool unset; /* parameters and gradients are undefined at first, and their pages untouched */
} sherd__network_spec;

typedef struct sherd__network sherd__network;

/** Examples. All borrowed; x may have any dtype and strides. */
typedef struct sherd__batch {
    sherd_view x;     /* examples x input size; 1..batch rows */
    sherd_kept *kept; /* x again as the engine's multiplier holds it (sherd__network_keep), or NULL.
                         What is kept may be all examples, in parts, x then being whole parts of
                         it. */
    size_t first;     /* which of its examples is the first of x */
    sherd__targets targets; /* not needed by a forward pass alone */
} sherd__batch;

/**
 * Called around the layers that have parameters, so that whoever exchanges them over a network can
 * do so while other layers compute. A failure ends the pass with that error. Slots may be NULL.
 */
typedef struct sherd__network_hooks {
    /** This layer's parameters are read from here on, until after_backward. */
    int (*before_forward)(void *ctx, size_t layer, sherd_diag *d);
    /** This layer's gradients, L2 included, are final; layers below have not begun. */
    int (*after_backward)(void *ctx, size_t layer, sherd_diag *d);
    void *ctx;
} sherd__network_hooks;

/** What a network takes. */
typedef struct sherd__network_weight {
    size_t count; /* parameters */
    size_t width; /* outputs of an example */
    size_t bytes; /* of memory; SIZE_MAX: too many to count */
} sherd__network_weight;

/** What sherd__network_new would take, and its errors, without taking it. */
int sherd__network_weigh(const sherd__network_spec *spec, sherd__network_weight *out,
                         sherd_diag *d) SHERD_MUST;
/**
 * Fits the layers to each other and takes all memory; parameters are 0, unless `unset`. *out is the
 * caller's (sherd__network_free), NULL on failure. SHERD_EINVAL: no layer, batch or input, a
 * negative l2, no such loss, a layer lacks a number; SHERD_ESHAPE: layers that do not fit (which
 * one, and why); SHERD_ENOMEM.
 */
int sherd__network_new(const sherd__network_spec *spec, sherd__network **out,
                       sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__network_free(sherd__network *n);

size_t sherd__network_len(const sherd__network *n);
/** Layer i < len, with shapes and pointers to its parameters and gradients. */
const sherd__layer *sherd__network_layer(const sherd__network *n, size_t i);
/** Numbers in one output. */
size_t sherd__network_width(const sherd__network *n);
/** All parameters: layer by layer, weights row-major, then biases. The caller may write them
 *  between passes; gradients lie in the same order. Owned by the network. */
size_t sherd__network_count(const sherd__network *n);
double *sherd__network_params(sherd__network *n);
const double *sherd__network_gradient(const sherd__network *n);
/** A network of f32: the two above are floats (sherd__optimiser_apply_here takes them as they are;
 *  others cast). These are for either: all parameters, or the gradient, to and from f64. */
sherd_dtype sherd__network_dtype(const sherd__network *n);
void sherd__network_get(const sherd__network *n, double *params);
void sherd__network_set(sherd__network *n, const double *params);
void sherd__network_get_gradient(const sherd__network *n, double *gradient);
/** All of it NaN: a pass that was broken off has left parts of two steps'. */
void sherd__network_forget_gradient(sherd__network *n);
/** A layer of f64 reads its parameters there from now on, weights and then biases, and not among
 *  its network's; NULL: its own again. For passes that change none; borrowed. */
void sherd__network_lend(sherd__network *n, size_t layer, const double *params);
/** Passes go to their end although the cost is not finite: then neither their errors nor their time
 *  depend on the examples. */
void sherd__network_steady(sherd__network *n);
/** Passes hand out what gradients of weights are made of, and make none. */
void sherd__network_apart(sherd__network *n, sherd__layer_apart apart);
/** Copied; NULL: none. */
void sherd__network_hook(sherd__network *n, const sherd__network_hooks *hooks);

/**
 * Weights from a normal distribution (polar method: Marsaglia and Bray 1964), in the order of
 * parameters; biases 0. scale is the standard deviation; 0 means sqrt(2 / inputs of a unit) for
 * each layer (He et al., arXiv 1502.01852, eq. 10). The same bytes of entropy give the same bits
 * everywhere.
 */
void sherd__network_draw(sherd__network *n, const sherd_entropy *e, double scale);

/** Whether the lowest layer that computes can take its input from what a multiplier keeps. */
bool sherd__network_keeps(const sherd__network *n);
/**
 * Keeps examples for batches to come, as the lowest layer that computes takes them (a convolution:
 * windows), in parts of `part` examples: *kept is the caller's to release, before the network is
 * freed or after. NULL, and no error, where that layer takes none. Errors of
 * sherd_multiplier_keep_as.
 */
int sherd__network_keep(const sherd__network *n, sherd__engine e, sherd_view x, size_t part,
                        sherd_kept **kept, sherd_diag *d) SHERD_MUST;

/**
 * The outputs of a batch: *y is x.rows x width, the network's own, until its next pass. `unbiased`
 * leaves all biases out. SHERD_EINVAL, SHERD_ESHAPE: too many or no rows, rows of another length,
 * fewer rows kept than x needs; else what hooks and multiplier say.
 */
int sherd__network_forward(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                           bool unbiased, const double **y, sherd_diag *d) SHERD_MUST;
/**
 * Forward and backward: *cost (L2 included) and all gradients; outputs (x.rows x width, before any
 * update) into *y unless y is NULL, the network's own until its next pass. On failure gradients are
 * undefined, parameters and *cost untouched. Errors of sherd__network_forward and
 * sherd__loss_gradient; SHERD_ERANGE where the cost is not finite (training diverged).
 */
int sherd__network_learn(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                         double *cost, const double **y, sherd_diag *d) SHERD_MUST;
/**
 * sherd__network_learn and one step of the optimiser (begun here) at this rate: the same bits as
 * one after the other. Where products are computed here and there are no hooks, weights change
 * while their gradient is in cache, and the gradient is to be had afterwards only if `keep` is
 * set. On failure parameters and optimiser are untouched, unless it is SHERD_ENOMEM: then the step
 * may have been made in part.
 */
int sherd__network_step(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                        sherd__optimiser *o, double rate, bool keep, double *cost, const double **y,
                        sherd_diag *d) SHERD_MUST;

#endif
