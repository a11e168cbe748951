/* Inside of the stepper by gradients, shared by gradients.c (sums, scales, updates, synchronous
 * steps) and gradients_async.c. No other file includes this. */
#ifndef LEARN_GRADIENTS_STATE_H
#define LEARN_GRADIENTS_STATE_H

#include "core/team.h"
#include "learn/gradients.h"

/* Headroom of a scale: a shard may exceed the sum of the step before by 2^24 before the step is
 * graded once more; what is left of `room` are digits. */
#define GRADIENTS_HEADROOM 24
/* A gradient that does not fit is graded again with a scale 2^16 coarser, then with one for entries
 * of about 1, then with ever coarser ones that leave so many digits: at last every finite number
 * fits. */
#define GRADIENTS_DIGITS 40
#define GRADIENTS_TRIES 32u

/* What all steps and pieces of one stepper share. */
typedef struct gradients {
    sherd__gradients_options o;
    size_t tiers, count; /* count: parameters */
    size_t *layers, *at; /* by tier: layer, and where its parameters begin */
    size_t *counts;
    uint64_t updates;
    sherd__gradients_stats stats;
    sherd__version *current;     /* parameters as they are; NULL: not copied since they changed */
    size_t blocks;               /* of an update */
    double *block_peaks, *peaks; /* max |gradient|, by block and by tier; not finite: unknown */
    bool peaks_known;
    sherd__team *team; /* NULL: the network is small */
    bool broken;       /* the engine has failed */
    /* synchronous */
    sherd__part *parts; /* room for SHERD__SHARDS_MAX */
    size_t *cuts;       /* shards + 1 */
    double *costs;
    uint64_t *hits;
    sherd__local_steps *local;
    int32_t *scales;
    sherd__sums sums;
    /* asynchronous */
    struct piece *pieces, *idle, *held; /* pieces: all of them */
    uint32_t under_way;
    uint64_t *versions;  /* of those under way: how stale they may become */
    double applied_cost; /* of pieces applied since the step began */
    uint64_t applied, applied_hits;
} gradients;

/** A sum of gradients, over `by` examples or what they weigh. */
typedef struct sherd__gradients_sum {
    const sherd__sums *sums;
    const int32_t *scales; /* by tier; not looked at for floats */
    double by;
    bool add; /* to the gradient, else in its place */
} sherd__gradients_sum;

/** Memory for a network's tiers; what was given before a failure is sherd__gradients_fini's. */
int sherd__gradients_lay_out(gradients *g) SHERD_MUST;
/** Parts of that: which tiers there are and where; what belongs to shards and scales. */
int sherd__gradients_number(gradients *g) SHERD_MUST;
/** What updates need, once tiers are numbered. */
int sherd__gradients_blocks(gradients *g) SHERD_MUST;
int sherd__gradients_shards(gradients *g) SHERD_MUST;
/** Options that no stepper over shards can be made of. */
int sherd__gradients_check(const sherd__gradients_options *o, sherd_diag *d) SHERD_MUST;
/** Frees g, but for what belongs to asynchronous steps and the engine. */
void sherd__gradients_fini(gradients *g);
extern const sherd__stepper_ops sherd__summed_ops;
extern const sherd__stepper_ops sherd__allreduce_stepper_ops;

int sherd__sums_init(sherd__sums *s, size_t tiers, const size_t *counts, bool whole) SHERD_MUST;
void sherd__sums_fini(sherd__sums *s);
void sherd__sums_clear(sherd__sums *s);

/** Scales for sums over `examples` at this rate; lowered for the try-th time. */
void sherd__gradients_scales(const gradients *g, double rate, double examples, unsigned room,
                             unsigned try, int32_t *scales);
/** The same from the largest entries of the gradient before, by tier, which most gives. */
void sherd__gradients_scales_of(const gradients *g, const double *most, double rate,
                                double examples, unsigned room, unsigned try, int32_t *scales);
void sherd__gradients_most(const gradients *g, double *most);
/** Whether somebody is left who could compute: then a step of which all was dropped is made
 *  anew. */
bool sherd__gradients_others(const gradients *g);
/** How each of n shards makes its local steps; the sum of weights. */
double sherd__gradients_local(const gradients *g, double rate, const size_t *cuts, uint32_t n,
                              sherd__local_steps *out);
/** Cuts a batch of len rows into shards (g->cuts); how many. */
uint32_t sherd__gradients_cut(gradients *g, size_t len);
unsigned sherd__gradients_room(uint32_t shards);
/** The parameters as they are now, with one more holder for the caller. */
sherd__version *sherd__gradients_version(gradients *g, sherd_diag *d);
/** Network's gradient = s, or with s->add += s. */
void sherd__gradients_take(gradients *g, const sherd__gradients_sum *s);
/** The gradient of s (NULL: as the network holds it), L2, and the optimiser; a copy of what the
 *  parameters are then. Tells whom it concerns. */
void sherd__gradients_apply(gradients *g, double rate, const sherd__gradients_update *u,
                            const sherd__gradients_sum *s);
double sherd__gradients_l2(const gradients *g);
/** The part of L2 in the network's gradient. */
void sherd__gradients_add_l2(gradients *g);

int sherd__gradients_async_step(gradients *g, const sherd__step *s, sherd__step_result *out,
                                sherd_diag *d) SHERD_MUST;
/** Waits for all that is under way. */
int sherd__gradients_async_settle(gradients *g, sherd_diag *d) SHERD_MUST;
void sherd__gradients_async_fini(gradients *g);

#endif
