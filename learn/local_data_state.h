/* Internals of a grader of an owner's examples, shared by local_data.c (examples, batches) and
   local_data_clip.c. No other file includes this. */
#ifndef LEARN_LOCAL_DATA_STATE_H
#define LEARN_LOCAL_DATA_STATE_H

#include "crypto/privacy.h"
#include "learn/grader.h"
#include "learn/local_data.h"

/* Most numbers kept of a chunk for convolutions; it limits the examples of a chunk. */
#define SHERD__OWN_APART ((size_t)1 << 20)

typedef struct sherd__own_tier sherd__own_tier; /* local_data_clip.c */

struct sherd__own_grader {
    sherd__own data;
    double divide, clip;
    bool (*stop)(void *ctx);
    void *stop_ctx;
    bool values; /* targets are values; else labels */
    size_t inputs, width, count, chunk;
    size_t tiers, at[SHERD__RECIPE_LAYERS_MAX + 1]; /* tier t has parameters at[t] to at[t+1] */
    sherd__network *network;
    sherd_multiplier products; /* of the options */
    sherd_multiplier here;     /* this machine's: of single examples; may be `products` */
    sherd_multiplier now;      /* of the current passes: one of these two */
    double *x, *targets;       /* chunk x inputs, chunk x width */
    uint32_t *labels;
    uint8_t *absent;
    double *sum; /* `count` numbers: sums of gradients; with clipping, integers */
    /* with clipping */
    sherd__own_tier *apart;
    double unit;        /* clipping norm in the units of the current pass */
    double *norms, *by; /* for each example of the chunk: its squared norm, its factor */
    double *squared;    /* for each example: sums of squares of its integers */
    double *slope;      /* width numbers of scratch */
    size_t examples;    /* of the current pass */
    sherd__loss loss;
};

typedef struct sherd__own_figures {
    uint64_t present, hits;
    double cost;     /* sum; may be NaN */
    const double *y; /* outputs, rows x width */
} sherd__own_figures;

/* Computes the examples of a pass, and the numbers kept of each for convolutions. Both depend only
   on the recipe and on whether it clips. */
int sherd__own_chunk(const sherd__recipe *r, bool clips, size_t *chunk, size_t *kept,
                     sherd_diag *d) SHERD_MUST;
/* Copies places [first, first + len) to the rows of the buffers, unless `stop` returns true
   (SHERD_EINTERRUPTED). */
int sherd__own_take(sherd__own_grader *g, uint64_t first, size_t len, sherd_diag *d) SHERD_MUST;
/* Makes a pass over the first `rows` rows of the buffers. */
int sherd__own_learn(sherd__own_grader *g, size_t rows, sherd__own_figures *f,
                     sherd_diag *d) SHERD_MUST;
/* Returns rint(x), saturated at `most`; 0 for NaN. */
int64_t sherd__own_saturated(double x, double most);

/* local_data_clip.c */

int sherd__own_clip_new(sherd__own_grader *g) SHERD_MUST;
void sherd__own_clip_free(sherd__own_grader *g);
int sherd__own_grade_clipped(sherd__own_grader *g, uint64_t first, uint64_t rows,
                             const int32_t *scales, int64_t *out, sherd_diag *d) SHERD_MUST;

#endif
