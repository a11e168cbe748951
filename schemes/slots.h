/* Divides rows among slots in proportion to weights; shared by the schemes whose slots are ranges
 * of A's rows. */
#ifndef SCHEMES_SLOTS_H
#define SCHEMES_SLOTS_H

#include <stddef.h>
#include <stdint.h>

/** Largest weight of a slot. */
#define SHERD__WEIGHT_MAX 60u

/** Writes slots + 1 numbers, ascending from 0 to n: slot i has the rows from bounds[i] on, before
 *  bounds[i + 1]. Each slot has its part, rounded down, and the rows that are left go to the first
 *  slots, one each. weights: by slot, 0 to SHERD__WEIGHT_MAX, not all 0; NULL: all equal. n is at
 *  most 2^32. */
void sherd__slots_bounds(size_t n, uint32_t slots, const uint32_t *weights, size_t *bounds);
/** Returns the number of rows of the longest slot. */
size_t sherd__slots_longest(size_t n, uint32_t slots, const uint32_t *weights);

#endif
