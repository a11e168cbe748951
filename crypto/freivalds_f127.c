/*
 * The field of 2^127 - 1, for exact products with sums beyond 61 bits. It is slow and used only for
 * products that need residues. Reduction is folding, since 2^127 is 1.
 */
#include "crypto/freivalds.h"

#define F127 (((sherd__f127)1 << 127) - 1)

/* Reduces x < 2^128. */
static sherd__f127 fold(sherd__f127 x)
{
    x = (x & F127) + (x >> 127);
    return x >= F127 ? x - F127 : x;
}

sherd__f127 sherd__f127_add(sherd__f127 a, sherd__f127 b)
{
    return fold(a + b);
}

sherd__f127 sherd__f127_mul(sherd__f127 a, sherd__f127 b)
{
    uint64_t a0 = (uint64_t)a, a1 = (uint64_t)(a >> 64), b0 = (uint64_t)b, b1 = (uint64_t)(b >> 64);
    sherd__f127 low = (sherd__f127)a0 * b0, high = (sherd__f127)a1 * b1; /* high < 2^126 */
    sherd__f127 mid = (sherd__f127)a1 * b0 + (sherd__f127)a0 * b1;       /* < 2^128 */
    /* mid * 2^64: its upper part is multiplied by 2^127 = 1; high * 2^128 = 2 * high. */
    sherd__f127 part = fold((mid >> 63) + ((mid & (((sherd__f127)1 << 63) - 1)) << 64));
    return fold(fold(fold(low) + part) + fold(2 * high));
}

__extension__ sherd__f127 sherd__f127_from(__int128 x)
{
    return x >= 0 ? fold((sherd__f127)x) : F127 - fold((sherd__f127)-x);
}
