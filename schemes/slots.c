/* Equal weights give the ranges that there were before weights: their order must not change, since
 * the bits of float products depend on where rows are cut. */
#include "schemes/slots.h"

#include <assert.h>

static uint64_t weight(const uint32_t *weights, uint32_t slot)
{
    return weights ? weights[slot] : 1;
}

static uint64_t total(uint32_t slots, const uint32_t *weights)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < slots; i++) sum += weight(weights, i);
    assert(sum > 0 && sum <= (uint64_t)slots * SHERD__WEIGHT_MAX);
    return sum;
}

static size_t part(size_t n, uint64_t weight, uint64_t total)
{
    return (size_t)((uint64_t)n * weight / total); /* below 2^32 * 60 */
}

static size_t left_over(size_t n, uint32_t slots, const uint32_t *weights, uint64_t sum)
{
    size_t left = n;
    for (uint32_t i = 0; i < slots; i++) left -= part(n, weight(weights, i), sum);
    return left;
}

void sherd__slots_bounds(size_t n, uint32_t slots, const uint32_t *weights, size_t *bounds)
{
    uint64_t sum = total(slots, weights);
    size_t more = left_over(n, slots, weights, sum);
    bounds[0] = 0;
    for (uint32_t i = 0; i < slots; i++)
        bounds[i + 1] = bounds[i] + part(n, weight(weights, i), sum) + (i < more);
}

size_t sherd__slots_longest(size_t n, uint32_t slots, const uint32_t *weights)
{
    uint64_t sum = total(slots, weights);
    size_t more = left_over(n, slots, weights, sum), most = 0;
    for (uint32_t i = 0; i < slots; i++) {
        size_t rows = part(n, weight(weights, i), sum) + (i < more);
        if (rows > most) most = rows;
    }
    return most;
}
