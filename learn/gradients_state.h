/* Internals of the stepper by gradients, shared by gradients.c (sums, scales, updates, synchronous
   steps) and gradients_async.c. No other file includes this. */
#ifndef LEARN_GRADIENTS_STATE_H
#define LEARN_GRADIENTS_STATE_H

#include "core/team.h"
#include "learn/gradients.h"

/* Headroom of a scale: a shard may exceed the sum of the step before by 2^24 before the step is
   graded again. The remaining bits of `room` are digits. */
#define GRADIENTS_HEADROOM 24
/* A gradient that does not fit is graded again, first with a scale 2^16 coarser, then with one for
   entries of about 1, then with ever coarser ones that leave this many digits. In the end every
   finite number fits. */
#define GRADIENTS_DIGITS 40
#define GRADIENTS_TRIES 32u

/* State that all steps and pieces of one stepper share. */
typedef struct gradients {
    sherd__gradients_options o;
    size_t tiers, count; /* count: parameters */
    size_t *layers, *at; /* by tier: layer, and offset of its parameters */
    size_t *counts;
    uint64_t updates;
    sherd__gradients_stats stats;
    sherd__version *current;     /* copy of the parameters; NULL: they changed since the last
                                    copy */
    size_t blocks;               /* blocks of an update */
    double *block_peaks, *peaks; /* max |gradient|, by block and by tier; not finite if unknown */
    bool peaks_known;
    sherd__team *team; /* NULL: the network is small */
    bool broken;       /* the engine has failed */
    /* synchronous */
    sherd__part *parts; /* room for SHERD__SHARDS_MAX */
    sherd__division *division;
    size_t *cuts; /* shards + 1 */
    double *costs;
    uint64_t *hits;
    sherd__local_steps *local;
    int32_t *scales;
    sherd__sums sums;
    /* asynchronous */
    struct piece *pieces, *idle, *held; /* pieces: all of them */
    uint32_t under_way;
    uint64_t *versions;  /* of the pieces in progress, to compute how stale they may become */
    double applied_cost; /* of pieces applied since the step began */
    uint64_t applied, applied_hits;
} gradients;

/** A sum of gradients. `by` is the number of examples or the sum of their weights. */
typedef struct sherd__gradients_sum {
    const sherd__sums *sums;
    const int32_t *scales; /* by tier; ignored for floats */
    double by;
    bool add; /* add to the gradient instead of replacing it */
} sherd__gradients_sum;

/** Allocates memory for a network's tiers. After a failure, sherd__gradients_fini frees what was
 *  allocated. */
int sherd__gradients_lay_out(gradients *g) SHERD_MUST;
/** Parts of sherd__gradients_lay_out: the tiers and their offsets; the memory for shards and
 *  scales. */
int sherd__gradients_number(gradients *g) SHERD_MUST;
/** Allocates what updates need, after tiers are numbered. */
int sherd__gradients_blocks(gradients *g) SHERD_MUST;
int sherd__gradients_shards(gradients *g) SHERD_MUST;
/** Checks the options of a stepper over shards. */
int sherd__gradients_check(const sherd__gradients_options *o, sherd_diag *d) SHERD_MUST;
/** Frees g, except the memory of asynchronous steps and the engine. */
void sherd__gradients_fini(gradients *g);
extern const sherd__stepper_ops sherd__summed_ops;
extern const sherd__stepper_ops sherd__allreduce_stepper_ops;

int sherd__sums_init(sherd__sums *s, size_t tiers, const size_t *counts, bool whole) SHERD_MUST;
void sherd__sums_fini(sherd__sums *s);
void sherd__sums_clear(sherd__sums *s);

/** Sums over so many examples at this rate, in integers up to 2^room; the scales are coarser with
 *  each `try`. */
typedef struct sherd__scaling {
    double rate, examples;
    unsigned room, try;
} sherd__scaling;
/** Computes scales for sums over `examples` at this rate. */
void sherd__gradients_scales(const gradients *g, double rate, double examples, unsigned room,
                             unsigned try, int32_t *scales);
/** As sherd__gradients_scales, with the largest entries of the last gradient given by tier in
 *  `most`. */
void sherd__gradients_scales_of(const gradients *g, const double *most, const sherd__scaling *by,
                                int32_t *scales);
void sherd__gradients_most(const gradients *g, double *most);
/** Returns whether a worker is left that could compute. If so, a step is repeated if all its parts
 *  were dropped. */
bool sherd__gradients_others(const gradients *g);
/** Sets how each of n shards makes its local steps. Returns the sum of weights. */
double sherd__gradients_local(const gradients *g, double rate, const size_t *cuts, uint32_t n,
                              sherd__local_steps *out);
/** Cuts a batch of len rows into shards (g->cuts). Returns how many. */
uint32_t sherd__gradients_cut(gradients *g, size_t len);
unsigned sherd__gradients_room(uint32_t shards);
/** Returns the current parameters with one more holder, which is the caller's. */
sherd__version *sherd__gradients_version(gradients *g, sherd_diag *d);
/** Sets the network's gradient to s or, with s->add, adds s to it. */
void sherd__gradients_take(gradients *g, const sherd__gradients_sum *s);
/** Makes an update: the gradient of s (NULL: the one the network holds), L2, the optimiser, and a
 *  copy of the resulting parameters. Then calls the note of the options. */
void sherd__gradients_apply(gradients *g, double rate, const sherd__gradients_update *u,
                            const sherd__gradients_sum *s);
double sherd__gradients_l2(const gradients *g);
/** Adds the L2 term to the network's gradient. */
void sherd__gradients_add_l2(gradients *g);

int sherd__gradients_async_step(gradients *g, const sherd__step *s, sherd__step_result *out,
                                sherd_diag *d) SHERD_MUST;
/** Waits for all pieces in progress. */
int sherd__gradients_async_settle(gradients *g, sherd_diag *d) SHERD_MUST;
void sherd__gradients_async_fini(gradients *g);

#endif
