/*
 * A sequence of layers, its parameters and the memory of its passes. The engine of each call
 * decides where a pass is computed; learn/optimiser.h, or the code that collects gradients, uses
 * its result. All memory is allocated when a network is created, for one largest batch; a pass
 * allocates nothing (a multiplier may). One thread at a time may use a network.
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
    sherd__tensor_shape in;
    const sherd__layer_spec *layers; /* borrowed during sherd__network_new */
    size_t len;
    size_t batch; /* examples of the largest batch */
    sherd__loss loss;
    double l2; /* adds l2/2 * (sum of squared weights, without biases) to the cost; 0 or more */
    /** A known mistake that published results depend on: every bias gradient of a layer is replaced
     *  by the sum of all the layer's bias gradients. */
    bool bias_total;
    /** SHERD_F64 (also 0) or SHERD_F32. With SHERD_F32 parameters, passes and gradients are f32, on
     *  this machine and in floats only (SHERD_EUNSUPPORTED by any other engine). Costs, targets and
     *  the outputs that calls return are still f64. A dense first layer reads x as f64, f32 or
     *  u8. */
    sherd_dtype dtype;
    bool unset; /* parameters and gradients start undefined, with their pages untouched */
} sherd__network_spec;

typedef struct sherd__network sherd__network;

/** Examples of one pass. All borrowed; x may have any dtype and strides. */
typedef struct sherd__batch {
    sherd_view x;     /* examples x input size; 1..batch rows */
    sherd_kept *kept; /* x as the engine's multiplier holds it (sherd__network_keep), or NULL. The
                         kept matrix may have all examples, in parts; x then is whole parts of
                         it. */
    size_t first;     /* index in `kept` of the first example of x */
    sherd__targets targets; /* not needed if only a forward pass is made */
} sherd__batch;

/**
 * Hooks called around the layers that have parameters, so that parameters and gradients can be
 * exchanged over a network while other layers compute. A failure ends the pass with that error.
 * Slots may be NULL.
 */
typedef struct sherd__network_hooks {
    /** Called before this layer's parameters are read; they are read until after_backward. */
    int (*before_forward)(void *ctx, size_t layer, sherd_diag *d);
    /** Called when this layer's gradients, L2 included, are final and layers below have not
     *  started. */
    int (*after_backward)(void *ctx, size_t layer, sherd_diag *d);
    void *ctx;
} sherd__network_hooks;

/** Size of a network. */
typedef struct sherd__network_size {
    size_t count; /* parameters */
    size_t width; /* outputs per example */
    size_t bytes; /* of memory; SIZE_MAX: overflow */
} sherd__network_size;

/** Computes what sherd__network_new would allocate, and returns its errors, without allocating
 *  it. */
int sherd__network_measure(const sherd__network_spec *spec, sherd__network_size *out,
                           sherd_diag *d) SHERD_MUST;
/**
 * Fits the layers to each other and allocates all memory. Parameters are 0, unless `unset`. The
 * caller frees *out with sherd__network_free; it is NULL on failure. SHERD_EINVAL: no layer, batch
 * or input, a negative l2, an unknown loss, a layer lacks a number; SHERD_ESHAPE: layers that do
 * not fit (names the layer and the reason); SHERD_ENOMEM.
 */
int sherd__network_new(const sherd__network_spec *spec, sherd__network **out,
                       sherd_diag *d) SHERD_MUST;
/** As sherd__network_new, without memory for parameters and passes: only the functions that read
 *  shapes (len, layer, width, count, dtype) may be called. */
int sherd__network_shapes(const sherd__network_spec *spec, sherd__network **out,
                          sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__network_free(sherd__network *n);

size_t sherd__network_len(const sherd__network *n);
/** Returns layer i < len, with shapes and pointers to its parameters and gradients. */
const sherd__layer *sherd__network_layer(const sherd__network *n, size_t i);
/** Returns how many numbers an output has. */
size_t sherd__network_width(const sherd__network *n);
/** Access all parameters: layer by layer, weights row-major, then biases. The caller may write them
 *  between passes; gradients are stored in the same order. Owned by the network. */
size_t sherd__network_count(const sherd__network *n);
double *sherd__network_params(sherd__network *n);
const double *sherd__network_gradient(const sherd__network *n);
/** For a network of f32 the two pointers above are to floats (sherd__optimiser_apply_here accepts
 *  them as they are; other callers cast). The functions below work for both types. They copy all
 *  parameters, or the gradient, to and from f64. */
sherd_dtype sherd__network_dtype(const sherd__network *n);
void sherd__network_get(const sherd__network *n, double *params);
void sherd__network_set(sherd__network *n, const double *params);
void sherd__network_get_gradient(const sherd__network *n, double *gradient);
/** Sets the gradient to NaN, after an interrupted pass has left a mixture of two steps. */
void sherd__network_forget_gradient(sherd__network *n);
/** Makes a layer of f64 read its parameters (weights, then biases) from `params` instead of the
 *  network's memory. NULL: the network's memory again. For passes that change no parameters;
 *  borrowed. */
void sherd__network_lend(sherd__network *n, size_t layer, const double *params);
/** Makes passes run to their end even if the cost is not finite, so that neither their errors nor
 *  their time depend on the examples. */
void sherd__network_steady(sherd__network *n);
/** Makes passes hand out the factors of weight gradients instead of computing the gradients. */
void sherd__network_apart(sherd__network *n, sherd__layer_apart apart);
/** The hooks are copied; NULL: no hooks. */
void sherd__network_hook(sherd__network *n, const sherd__network_hooks *hooks);

/**
 * Draws weights from a normal distribution (polar method: Marsaglia and Bray 1964), in the order of
 * parameters; biases are 0. scale is the standard deviation; 0 means sqrt(2 / inputs of a unit) for
 * each layer (He et al., arXiv 1502.01852, eq. 10). The same bytes of entropy give the same bits on
 * every machine.
 */
void sherd__network_draw(sherd__network *n, const sherd__entropy *e, double scale);

/** Returns whether the lowest layer that computes can use a kept operand of a multiplier as its
 *  input. */
bool sherd__network_keeps(const sherd__network *n);
/**
 * Keeps examples for later batches, in the form that the lowest layer that computes needs (a
 * convolution: windows), in parts of `part` examples. The caller releases *kept, before or after
 * the network is freed. *kept is NULL, without an error, if that layer cannot use a kept operand.
 * Errors of sherd_multiplier_keep.
 */
int sherd__network_keep(const sherd__network *n, sherd__engine e, sherd_view x, size_t part,
                        sherd_kept **kept, sherd_diag *d) SHERD_MUST;

/**
 * Computes the outputs of a batch: *y is x.rows x width, owned by the network and valid until its
 * next pass. `unbiased` leaves all biases out. SHERD_EINVAL, SHERD_ESHAPE: too many or no rows,
 * rows of another length, fewer rows kept than x needs; errors of the hooks and the multiplier.
 */
int sherd__network_forward(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                           bool unbiased, const double **y, sherd_diag *d) SHERD_MUST;
/**
 * Makes a forward and a backward pass: computes *cost (L2 included) and all gradients. Unless y is
 * NULL, *y is set to the outputs (x.rows x width, before any update), which the network owns and
 * which are valid until its next pass. On failure gradients are undefined, and parameters and *cost
 * are untouched. Errors of sherd__network_forward and sherd__loss_gradient; SHERD_ERANGE if the
 * cost is not finite (training diverged).
 */
int sherd__network_learn(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                         double *cost, const double **y, sherd_diag *d) SHERD_MUST;
/** The cost and the outputs y of a batch, as sherd__network_learn returns them. */
typedef struct sherd__learnt {
    double cost;
    const double *y;
} sherd__learnt;
/** A pass whose layers are computed elsewhere. All borrowed. */
typedef struct sherd__network_pass {
    const sherd__network *network; /* the result: the gradients of its layers from `first` on */
    size_t first;                  /* the lowest layer with parameters */
    sherd_view x;                  /* examples x input size */
    double *y, *dy;                /* examples x width */
    int (*loss)(void *ctx, sherd_diag *d); /* sets dy from y */
    void *ctx;
} sherd__network_pass;
/** What computes the layers of passes in place of this machine. */
typedef struct sherd__elsewhere {
    /** Computes y, calls p->loss, and computes all gradients (again, where a device failed), with
     *  the bits of sherd__network_learn. Returns SHERD_EUNSUPPORTED where it cannot compute this
     *  network or batch: sherd__network_learn then makes the pass. Errors of p->loss. */
    int (*run)(void *ctx, const sherd__network_pass *p, sherd_diag *d);
    void (*free)(void *ctx);
    void *ctx;
} sherd__elsewhere;
/** Makes sherd__network_learn with layers that are computed by `by`. Hooks are called for all
 *  layers before the pass, and for all after it. SHERD_EUNSUPPORTED as above; the hooks before the
 *  pass may have been called then. */
int sherd__network_learn_by(sherd__network *n, const sherd__elsewhere *by,
                            const sherd__batch *batch, sherd__learnt *out,
                            sherd_diag *d) SHERD_MUST;
/** A step of an optimiser at a rate. keep: the gradient is needed afterwards. */
typedef struct sherd__network_update {
    sherd__optimiser *optimiser;
    double rate;
    bool keep;
} sherd__network_update;
/**
 * Makes sherd__network_learn and one step of the optimiser (the step is started here),
 * with the same bits as two separate calls. If products are computed on this machine and there are
 * no hooks, weights are updated while their gradient is in cache, and the gradient is stored only
 * if `keep` is set. On failure parameters and optimiser are untouched, except for SHERD_ENOMEM:
 * then a part of the step may have been made.
 */
int sherd__network_step(sherd__network *n, sherd__engine e, const sherd__batch *batch,
                        const sherd__network_update *by, sherd__learnt *out,
                        sherd_diag *d) SHERD_MUST;

#endif
