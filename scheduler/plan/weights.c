/* Weights are integers, so that exposures are integer arithmetic and the same everywhere. */
#include "scheduler/plan/weights.h"

#include <math.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/median.h"
#include "crypto/perm.h"
#include "schemes/slots.h"

void sherd__weights_round(const double *w, uint32_t len, uint32_t *out)
{
    double most = 0;
    uint32_t divisor = 0;
    for (uint32_t i = 0; i < len; i++) most = fmax(most, w[i]);
    for (uint32_t i = 0; i < len; i++) {
        double x = rint(w[i] / most * SHERD__WEIGHT_MAX);
        out[i] = x < 1 ? 1 : (uint32_t)x;
        divisor = (uint32_t)sherd__gcd(out[i], divisor);
    }
    for (uint32_t i = 0; i < len; i++) out[i] /= divisor;
}

void sherd__speed_learn(sherd__speed *s, double rate, bool verified)
{
    const bool lower = rate <= s->rate;
    if (!(rate > 0)) s->rate = sqrt(s->rate);
    else if (verified || !s->verified) *s = (sherd__speed){ rate, verified };
    else if (lower || s->rate < 1) *s = (sherd__speed){ rate, lower };
}

void sherd__weights_of_speeds(const sherd__speed *speeds, uint32_t len, double *out, double *room)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < len; i++)
        if (speeds[i].rate > 0) room[known++] = speeds[i].rate;
    /* Of two middle values the lower one, and only if most speeds are known: whatever fewer than
       half of the nodes report, the median is not above that of an honest node. */
    double median = 2 * known > len ? sherd__median(room, known, false) : 0;
    for (uint32_t i = 0; i < len; i++) {
        double rate = speeds[i].rate;
        bool slow = rate > 0 && rate * SHERD__WEIGHTS_SLOWER < median;
        bool fast = speeds[i].verified && median > 0 && rate > SHERD__WEIGHTS_SLOWER * median;
        out[i] = slow || fast ? fmin(rate / median, SHERD__WEIGHTS_FASTER) : 1;
    }
}

bool sherd__weights_differ(const double *w, uint32_t len)
{
    for (uint32_t i = 1; i < len; i++)
        if (w[i] != w[0]) return true;
    return false;
}

#define SERIES 5u
#define SLOWER 2.0
#define SLOWER_S 2.0

uint32_t sherd__weights_slowest(const double *seconds, uint32_t len, uint64_t jobs, double *room,
                                double *median)
{
    uint32_t worst = 0, others = 0;
    if (jobs < SERIES || len < 2) return UINT32_MAX;
    for (uint32_t i = 1; i < len; i++)
        if (seconds[i] > seconds[worst]) worst = i;
    for (uint32_t i = 0; i < len; i++)
        if (i != worst) room[others++] = seconds[i];
    *median = sherd__median(room, others, true);
    bool slow = seconds[worst] >= SLOWER * *median && seconds[worst] >= SLOWER_S + *median;
    return slow ? worst : UINT32_MAX;
}

int sherd__weights_exposures(const uint8_t key[32], size_t k, uint32_t nodes,
                             const uint32_t *weights, int balanced, uint32_t *out)
{
    uint32_t sum = 0;
    if (!weights) return sherd__exposures(key, k, nodes, balanced, out);
    for (uint32_t i = 0; i < nodes; i++) sum += weights[i];
    uint32_t *node_of = sherd__calloc(sum, sizeof *node_of);
    if (!node_of) return SHERD_ENOMEM;
    for (uint32_t i = 0, at = 0; i < nodes; i++)
        for (uint32_t w = 0; w < weights[i]; w++) node_of[at++] = i;
    int err = sherd__exposures(key, k, sum, balanced, out);
    for (size_t c = 0; c < k && !err; c++) out[c] = node_of[out[c]];
    sherd__free(node_of);
    return err;
}
