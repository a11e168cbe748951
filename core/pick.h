/*
 * One of two numbers by a mask. A conditional is a branch where the compiler likes it so, and a
 * branch's time depends on what it went by: here both are read, always.
 */
#ifndef CORE_PICK_H
#define CORE_PICK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SHERD__PICK static inline __attribute__((always_inline))

/* All ones if a = b, else 0. A comparison might become a branch again, also behind a mask. */
SHERD__PICK uint64_t sherd__pick_equal(uint32_t a, uint32_t b)
{
    return 0 - (((uint64_t)(a ^ b) - 1) >> 63);
}

/* c ? a : b, bit for bit. */
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

/* x where the mask is all ones, 0 where it is 0. */
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
