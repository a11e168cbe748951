/*
 * Selection of one of two numbers by a mask. A compiler may turn a conditional expression into a
 * branch, and the time of a branch depends on its condition. These functions always read both
 * numbers.
 */
#ifndef CORE_PICK_H
#define CORE_PICK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SHERD__PICK static inline __attribute__((always_inline))

/* Returns all ones if a = b, else 0. It does not compare: the compiler could turn a comparison into
 * a branch even if its result is used as a mask. */
SHERD__PICK uint64_t sherd__pick_equal(uint32_t a, uint32_t b)
{
    return 0 - (((uint64_t)(a ^ b) - 1) >> 63);
}

/* Returns c ? a : b, bit for bit. */
SHERD__PICK double sherd__pick_f64(bool c, double a, double b)
{
    const uint64_t mask = (uint64_t)0 - (uint64_t)c;
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = (x & mask) | (y & ~mask);
    memcpy(&a, &x, sizeof a);
    return a;
}

/* Returns x if the mask is all ones, 0 if the mask is 0. */
SHERD__PICK double sherd__pick_masked(uint64_t mask, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= mask;
    memcpy(&x, &bits, sizeof x);
    return x;
}

SHERD__PICK float sherd__pick_f32(bool c, float a, float b)
{
    const uint32_t mask = (uint32_t)0 - (uint32_t)c;
    uint32_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = (x & mask) | (y & ~mask);
    memcpy(&a, &x, sizeof a);
    return a;
}

#endif
