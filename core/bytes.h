/* Little-endian loads and stores, size arithmetic that cannot wrap, and limits of shapes. */
#ifndef CORE_BYTES_H
#define CORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void sherd__put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void sherd__put_u32(uint8_t *p, uint32_t v)
{
    sherd__put_u16(p, (uint16_t)v);
    sherd__put_u16(p + 2, (uint16_t)(v >> 16));
}

static inline void sherd__put_u64(uint8_t *p, uint64_t v)
{
    sherd__put_u32(p, (uint32_t)v);
    sherd__put_u32(p + 4, (uint32_t)(v >> 32));
}

static inline uint16_t sherd__get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t sherd__get_u32(const uint8_t *p)
{
    return (uint32_t)sherd__get_u16(p) | (uint32_t)sherd__get_u16(p + 2) << 16;
}

static inline uint64_t sherd__get_u64(const uint8_t *p)
{
    return (uint64_t)sherd__get_u32(p) | (uint64_t)sherd__get_u32(p + 4) << 32;
}

/** Sets *out = a * b. Returns false and leaves *out unchanged where the product would wrap. */
static inline bool sherd__mul(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

/** Returns the greatest common divisor; that of 0 and b is b. */
static inline size_t sherd__gcd(size_t a, size_t b)
{
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/** Sets *out = a + b. Returns false and leaves *out unchanged where the sum would wrap. */
static inline bool sherd__add(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

/** Limits of a matrix. A matrix without values has a lower limit, because its work grows with its
 *  dimensions although its file is small: a header of 128 bytes could take gigabytes of
 *  permutations and hours. */
#define SHERD__DIMENSION_MAX UINT32_MAX
#define SHERD__DIMENSION_MAX_EMPTY ((uint32_t)1 << 24)
#define SHERD__DIMENSION_LIMITS "at most 2^32 - 1, and at most 2^24 in a matrix without values"

/** Returns whether a matrix may have this shape. */
static inline bool sherd__shape_ok(uint64_t rows, uint64_t cols)
{
    uint64_t most = rows == 0 || cols == 0 ? SHERD__DIMENSION_MAX_EMPTY : SHERD__DIMENSION_MAX;
    return rows <= most && cols <= most;
}

#endif
