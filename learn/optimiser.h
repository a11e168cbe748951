/*
 * Optimisers: compute new parameters from gradients. The state is a vector parallel to the
 * parameters, so it can be stored and restored as it is. A step may be applied in pieces (a layer
 * as soon as its gradient is complete): every number is updated independently, so the bits do not
 * depend on the pieces. Of the C library only sqrt is used, so the bits are the same on every
 * machine.
 */
#ifndef LEARN_OPTIMISER_H
#define LEARN_OPTIMISER_H

#include <stddef.h>
#include <stdint.h>

#include "core/team.h"
#include "sherd/mat.h"

/* g is the gradient, r the rate, w a parameter. */
typedef enum sherd__method {
    SHERD__SGD = 1,      /* w -= r g */
    SHERD__MOMENTUM = 2, /* v = beta1 v + g; w -= r v (Polyak 1964, as PyTorch writes it) */
    SHERD__ADAM = 3      /* Kingma and Ba, arXiv 1412.6980, algorithm 1 */
} sherd__method;

typedef struct sherd__optimiser_spec {
    sherd__method method;
    double beta1;      /* momentum; Adam's first moment. 0: 0.9 */
    double beta2;      /* Adam's second moment. 0: 0.999 */
    double epsilon;    /* Adam. 0: 1e-8 */
    sherd_dtype dtype; /* of parameters, gradient and state: SHERD_F64 or SHERD_F32. 0: f64 */
} sherd__optimiser_spec;

typedef struct sherd__optimiser {
    sherd__optimiser_spec spec; /* defaults filled in */
    size_t count;               /* parameters */
    size_t state_len;           /* 0, count or 2 count */
    union {
        double *state;
        float *state32;
    };                     /* v; or m, then v; of the spec's dtype. Owned; the caller may restore
                              the contents */
    uint64_t steps;        /* started so far */
    double power1, power2; /* Adam: beta1 and beta2 to the power of `steps` */
} sherd__optimiser;

/** Returns "sgd", "momentum" or "adam"; NULL for an unknown number. */
const char *sherd__method_name(sherd__method method);

/** Creates an optimiser with state 0 and no step made. SHERD_EINVAL: unknown method, a beta outside
 *  (0, 1), a negative epsilon, another dtype; SHERD_ENOMEM. The caller frees *out with
 *  sherd__optimiser_fini; it is zeroed on failure. */
int sherd__optimiser_init(sherd__optimiser *out, const sherd__optimiser_spec *spec, size_t count,
                          sherd_diag *d) SHERD_MUST;
/** Safe on a zeroed struct and when called twice. */
void sherd__optimiser_fini(sherd__optimiser *o);

/** Starts the next step: once for each gradient, before its pieces. */
void sherd__optimiser_begin(sherd__optimiser *o);
/** Sets the state as if `steps` steps had been started (for a checkpoint), with the same bits as
 *  starting them one by one. */
void sherd__optimiser_resume(sherd__optimiser *o, uint64_t steps);
/** Updates parameters [from, from + n) in the current step. params and gradient point at the first
 *  of all `count` numbers. Each range must be updated exactly once a step. */
void sherd__optimiser_apply(sherd__optimiser *o, double rate, size_t from, size_t n, double *params,
                            const double *gradient);

/** As sherd__optimiser_apply with several threads (NULL: one). params and gradient have the spec's
 *  dtype and point at number `from`, so a gradient may be stored apart from the others. Disjoint
 *  ranges may be updated at the same time. */
void sherd__optimiser_apply_here(sherd__optimiser *o, double rate, size_t from, size_t n,
                                 void *params, const void *gradient, sherd__team *team);

/* ---- the rate over time ---------------------------------------------------------------------- */

typedef enum sherd__schedule_kind {
    SHERD__CONSTANT = 0,
    SHERD__STEPWISE = 1, /* rate * factor^floor(step / period) */
    SHERD__INVERSE = 2,  /* rate / (1 + factor * step / period) */
    SHERD__LINEAR = 3    /* from rate to rate * factor over `period` steps, then constant */
} sherd__schedule_kind;

typedef struct sherd__schedule {
    sherd__schedule_kind kind;
    double rate;     /* above 0 */
    double factor;   /* STEPWISE: above 0; INVERSE and LINEAR: 0 or more */
    uint64_t period; /* steps; at least 1 unless CONSTANT */
    uint64_t warmup; /* the first `warmup` steps use 1/warmup, 2/warmup, ... of the rate; 0: no
                        warmup */
} sherd__schedule;

/** SHERD_EINVAL names the number that is outside its range above. */
int sherd__schedule_check(const sherd__schedule *s, sherd_diag *d) SHERD_MUST;
/** Returns the rate of step 0, 1, ... of a checked schedule. */
double sherd__schedule_rate(const sherd__schedule *s, uint64_t step);

#endif
