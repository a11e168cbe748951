/*
 * Losses. Softmax and cross-entropy are one function. Their joint gradient is softmax - t and their
 * joint value log(sum exp(y - max)) + max - y_label, so neither divides by, nor takes the logarithm
 * of, a number that may have become zero. exp and log are the functions with guaranteed bits.
 */
#include "learn/loss.h"

#include <string.h>

#include "core/diag.h"
#include "core/pick.h"
#include "matrix/funcs.h"

const char *sherd__loss_name(sherd__loss loss)
{
    switch (loss) {
    case SHERD__LOSS_SQUARED: return "squared";
    case SHERD__LOSS_CROSS_ENTROPY: return "cross-entropy";
    }
    return NULL;
}

static int check(sherd__loss loss, size_t m, size_t width, sherd__targets t, sherd_diag *d)
{
    const char *name = sherd__loss_name(loss);
    if (!name) return sherd__fail(d, SHERD_EINVAL, NULL, "%d is not a loss", (int)loss);
    if ((t.values != NULL) == (t.labels != NULL))
        return sherd__fail(d, SHERD_EINVAL, NULL, "targets are either values or labels");
    if (loss == SHERD__LOSS_CROSS_ENTROPY && !t.labels)
        return sherd__fail(d, SHERD_EINVAL, "use the squared loss for values",
                           "the cross-entropy loss takes labels, values given");
    for (size_t r = 0; t.labels && r < m; r++)
        if (t.labels[r] >= width)
            return sherd__fail(d, SHERD_EINVAL, "labels count from 0",
                               "example %zu of the batch has label %u, the network has %zu "
                               "outputs",
                               r, (unsigned)t.labels[r], width);
    return SHERD_OK;
}

/* exp and log are called for many rows at once, because the call takes most of the time for a few
   numbers. */
#define LOSS_ROWS 64u

/* Returns the target of output j for an example with this label, without a branch on the label. */
static double wanted_of(uint32_t label, size_t j)
{
    return sherd__pick_masked(sherd__pick_equal(label, (uint32_t)j), 1);
}

#define REAL double
#define R(name) name
#define OF(name) name##_f64
#include "learn/loss.inc"
#undef REAL
#undef R
#undef OF

#define REAL float
#define R(name) name##32
#define OF(name) name##_f32
#include "learn/loss.inc"

uint32_t sherd__label_of(const double *row, size_t width, bool *sound)
{
    double most = row[0];
    uint32_t best = 0;
    bool all = row[0] == row[0];
    for (size_t j = 1; j < width; j++) {
        const bool larger = row[j] > most;
        all &= row[j] == row[j];
        most = sherd__pick_f64(larger, row[j], most);
        best ^= (best ^ (uint32_t)j) & ((uint32_t)0 - (uint32_t)larger);
    }
    *sound = all;
    return best;
}

size_t sherd__labels_hit(const double *y, size_t m, size_t width, const uint32_t *labels)
{
    size_t hits = 0;
    bool sound;
    for (size_t r = 0; r < m; r++) {
        uint32_t best = sherd__label_of(y + r * width, width, &sound);
        hits += sound & (best == labels[r]);
    }
    return hits;
}

void sherd__labels_confuse(const double *y, size_t m, size_t width, const uint32_t *labels,
                           uint64_t *counts)
{
    bool sound;
    for (size_t r = 0; r < m; r++)
        counts[labels[r] * width + sherd__label_of(y + r * width, width, &sound)]++;
}
