/*
 * The Lagrange code: weights in 64-bit integers, sums of residues in doubles. A sum of K+T (encode) or
 * R (decode) products of canonical residues, at most 127 * 2^44, is an integer below 2^53 however it is
 * ordered, so a share is reduced once. Weights of a share's masks form a generalised Cauchy matrix
 * (P(alpha)/(alpha - beta_j) times a constant per j), so every T x T minor is invertible as long as all
 * points are distinct: that is what hides.
 */
#include "crypto/lagrange.h"

#include <string.h>

#include "matrix/clones.h"
#include "matrix/residue.h"

enum { CHUNK = 512 };

/* ---- the code -------------------------------------------------------------------------------- */

uint32_t sherd__lcc_threshold(uint32_t blocks, uint32_t masks, bool both)
{
    return both ? 2 * blocks + 2 * masks - 1 : blocks + masks;
}

uint32_t sherd__lcc_blocks(uint32_t nodes, uint32_t masks, uint32_t spare, bool both)
{
    if (spare > nodes || masks >= SHERD__LCC_BLOCKS_MAX) return 0;
    uint32_t most = both ? (nodes - spare + 1) / 2 : nodes - spare;
    if (most <= masks) return 0;
    uint32_t room = SHERD__LCC_BLOCKS_MAX - masks;
    return most - masks < room ? most - masks : room;
}

uint32_t sherd__lcc_alpha(const sherd__lcc *c, uint32_t share)
{
    return c->blocks + c->masks + 1 + share;
}

uint32_t sherd__lcc_beta(uint32_t block)
{
    return block + 1;
}

int sherd__lcc_check(const sherd__lcc *c, uint32_t p)
{
    if (c->blocks < 1 || c->masks < 1 || c->shares < 1) return SHERD_EINVAL;
    if (c->blocks > SHERD__LCC_BLOCKS_MAX || c->masks > SHERD__LCC_BLOCKS_MAX ||
        c->blocks + c->masks > SHERD__LCC_BLOCKS_MAX || c->shares > SHERD__LCC_SHARES_MAX)
        return SHERD_EINVAL;
    /* The points are 1, 2, ..., K+T+N. */
    if (!sherd__prime_ok(p) || c->blocks + c->masks + c->shares > p) return SHERD_EINVAL;
    return SHERD_OK;
}

/* ---- weights --------------------------------------------------------------------------------- */

static uint64_t power(uint64_t x, uint32_t e, uint32_t p)
{
    uint64_t r = 1;
    for (x %= p; e != 0; e /= 2, x = x * x % p)
        if (e & 1) r = r * x % p;
    return r;
}

static uint64_t difference(uint32_t a, uint32_t b, uint32_t p)
{
    return a >= b ? (a - b) % p : p - (b - a) % p;
}

static double balanced(uint64_t x, uint32_t p)
{
    return x > (p - 1) / 2 ? (double)x - (double)p : (double)x;
}

/* l_j(x) of the Lagrange basis on the points at(ctx, 0..len-1). */
typedef uint32_t point_fn(const void *ctx, uint32_t j);

static double basis(point_fn *at, const void *ctx, uint32_t len, uint32_t j, uint32_t x, uint32_t p)
{
    uint64_t above = 1, below = 1;
    for (uint32_t m = 0; m < len; m++) {
        if (m == j) continue;
        above = above * difference(x, at(ctx, m), p) % p;
        below = below * difference(at(ctx, j), at(ctx, m), p) % p;
    }
    return balanced(above * power(below, p - 2, p) % p, p);
}

static uint32_t beta_point(const void *ctx, uint32_t j)
{
    (void)ctx;
    return sherd__lcc_beta(j);
}

void sherd__lcc_encode_weights(const sherd__lcc *c, uint32_t p, uint32_t share, double *w)
{
    uint32_t len = c->blocks + c->masks, x = sherd__lcc_alpha(c, share);
    for (uint32_t j = 0; j < len; j++) w[j] = basis(beta_point, NULL, len, j, x, p);
}

struct answers {
    const sherd__lcc *code;
    const uint32_t *share;
};

static uint32_t alpha_point(const void *ctx, uint32_t i)
{
    const struct answers *a = ctx;
    return sherd__lcc_alpha(a->code, a->share[i]);
}

void sherd__lcc_decode_weights(const sherd__lcc *c, uint32_t p, uint32_t block, const uint32_t *share,
                               uint32_t len, double *w)
{
    struct answers a = {c, share};
    for (uint32_t i = 0; i < len; i++)
        w[i] = basis(alpha_point, &a, len, i, sherd__lcc_beta(block), p);
}

/* ---- kernels --------------------------------------------------------------------------------- */

SHERD__CLONES
static void add_scaled(const double *x, size_t n, double w, double *acc)
{
    for (size_t i = 0; i < n; i++) acc[i] += w * x[i];
}

void sherd__lcc_encode(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                       const double *const *in, size_t n, uint8_t *const *out)
{
    double sum[CHUNK];
    for (size_t c = 0; c < n; c += CHUNK) {
        size_t part = n - c < CHUNK ? n - c : CHUNK;
        for (uint32_t i = 0; i < shares; i++) {
            if (out[i] == NULL) continue;
            memset(sum, 0, part * sizeof *sum);
            for (uint32_t j = 0; j < blocks; j++)
                add_scaled(in[j] + c, part, w[(size_t)i * blocks + j], sum);
            sherd__residue_from_f64(sum, part, p, sum);
            sherd__residue_pack(sum, part, p, out[i] + SHERD__RESIDUE_BYTES * c);
        }
    }
}

int sherd__lcc_decode(const double *w, uint32_t blocks, uint32_t len, uint32_t p,
                      const uint8_t *const *in, size_t n, double *const *out)
{
    double value[CHUNK];
    for (size_t c = 0; c < n; c += CHUNK) {
        size_t part = n - c < CHUNK ? n - c : CHUNK;
        for (uint32_t j = 0; j < blocks; j++) memset(out[j] + c, 0, part * sizeof **out);
        for (uint32_t i = 0; i < len; i++) {
            int err = sherd__residue_unpack(in[i] + SHERD__RESIDUE_BYTES * c, part, p, value, NULL);
            if (err != 0) return err;
            for (uint32_t j = 0; j < blocks; j++)
                add_scaled(value, part, w[(size_t)j * len + i], out[j] + c);
        }
        for (uint32_t j = 0; j < blocks; j++)
            sherd__residue_from_f64(out[j] + c, part, p, out[j] + c);
    }
    return SHERD_OK;
}
