/* The inner-product code: weights in 64-bit integers. Sums of residues are those of lagrange.c. */
#include "crypto/inner.h"

#include <assert.h>
#include <string.h>

#include "crypto/lagrange_internal.h"
#include "matrix/residue.h"

#define POINTS_MAX (2 * SHERD__LCC_BLOCKS_MAX) /* M + 2T, where M + T and T are limited */

static uint32_t threshold_of(uint32_t blocks, uint32_t masks, bool both)
{
    return both ? blocks + 2 * masks : 0;
}

static uint32_t blocks_for(uint32_t nodes, uint32_t masks, uint32_t spare, bool both)
{
    if (spare > 0 || !both || masks < 1 || masks >= SHERD__LCC_BLOCKS_MAX || nodes <= 2 * masks)
        return 0;
    uint32_t blocks = nodes - 2 * masks;
    return blocks <= SHERD__LCC_BLOCKS_MAX - masks ? blocks : 0;
}

static uint32_t alpha(uint32_t share)
{
    return share;
}

static int check(const sherd__lcc *c, uint32_t p)
{
    if (c->blocks < 1 || c->masks < 1 || c->blocks > SHERD__LCC_BLOCKS_MAX ||
        c->masks > SHERD__LCC_BLOCKS_MAX || c->blocks + c->masks > SHERD__LCC_BLOCKS_MAX ||
        c->shares != c->blocks + 2 * c->masks)
        return SHERD_EINVAL;
    /* The points are 0, 1, ..., N-1. */
    return sherd__prime_ok(p) && c->shares <= p ? SHERD_OK : SHERD_EINVAL;
}

/* Computes the coefficients of P, from that of x^0 to that of x^N. */
static void point_polynomial(const sherd__lcc *c, uint32_t p, uint64_t *coefficient)
{
    memset(coefficient, 0, (c->shares + 1) * sizeof *coefficient);
    coefficient[0] = 1;
    for (uint32_t i = 0; i < c->shares; i++) {
        uint64_t root = lcc_difference(0, alpha(i), p);
        for (uint32_t s = i + 1; s > 0; s--)
            coefficient[s] = (coefficient[s - 1] + root * coefficient[s]) % p;
        coefficient[0] = root * coefficient[0] % p;
    }
}

/* Returns w of a share. */
static uint64_t share_weight(const sherd__lcc *c, uint32_t p, uint32_t share)
{
    uint64_t below = 1;
    for (uint32_t i = 0; i < c->shares; i++)
        if (i != share) below = below * lcc_difference(alpha(share), alpha(i), p) % p;
    return lcc_power(below, p - 2, p);
}

static int left_weights(const sherd__lcc *c, uint32_t p, uint32_t share, double *w)
{
    uint64_t x = alpha(share), power = 1;
    if (share >= c->shares || share >= p) return SHERD_EINVAL;
    for (uint32_t t = 0; t < c->masks; t++, power = power * x % p)
        w[c->blocks + t] = lcc_balanced(power, p);
    for (uint32_t j = 0; j < c->blocks; j++, power = power * x % p) w[j] = lcc_balanced(power, p);
    return SHERD_OK;
}

static int right_weights(const sherd__lcc *c, uint32_t p, uint32_t share, double *w)
{
    uint64_t coefficient[POINTS_MAX + 1], x = alpha(share);
    if (share >= c->shares || share >= p) return SHERD_EINVAL;
    uint64_t power = share_weight(c, p, share);
    assert(c->shares == c->blocks + 2 * c->masks && c->shares <= POINTS_MAX);
    point_polynomial(c, p, coefficient);
    for (uint32_t t = 0; t < c->masks; t++, power = power * x % p)
        w[c->blocks + t] = lcc_balanced(power, p);
    uint64_t q = 0; /* Q_j(x): Q_(j-1) = x Q_j + p_(2T+j) */
    for (uint32_t j = c->blocks; j-- > 0;) {
        q = (q * x + coefficient[2 * c->masks + j + 1]) % p;
        w[j] = lcc_balanced(power * q % p, p);
    }
    return SHERD_OK;
}

/* The product is the plain sum of the answers. */
static void ones(const sherd__lcc *c, uint32_t p, uint32_t block, const uint32_t *share,
                 uint32_t len, double *w)
{
    (void)p;
    (void)block;
    (void)share;
    (void)c;
    assert(len == c->shares);
    for (uint32_t i = 0; i < len; i++) w[i] = 1;
}

const sherd__code sherd__code_inner = {
    .name = "inner",
    .cut = SHERD__CUT_INNER,
    .complete = true,
    .threshold = threshold_of,
    .blocks = blocks_for,
    .check = check,
    .left = left_weights,
    .right = right_weights,
    .decode = ones,
};
