/*
 * The Lagrange code: weights in 64-bit integers, sums of residues in doubles. A sum of K+T (encode)
 * or R (decode) products of canonical residues, at most 127 * 2^44, is an integer below 2^53 in any
 * order, so that a share is reduced once. The weights of a share's masks form a generalised Cauchy
 * matrix (P(alpha)/(alpha - beta_j) times a constant per j). Every T x T minor is therefore
 * invertible if all points are distinct, which is why T shares reveal nothing.
 */
#include "crypto/lagrange.h"

#include <assert.h>
#include <string.h>

#include "core/wipe.h"
#include "crypto/code.h"
#include "crypto/lagrange_internal.h"
#include "matrix/clones.h"
#include "matrix/residue.h"

enum { CHUNK = LCC_CHUNK, TERMS = LCC_TERMS };

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

uint32_t sherd__lcc_alpha(const sherd__lcc *c, uint32_t p, uint32_t share)
{
    uint64_t x = (uint64_t)c->blocks + c->masks + 1 + share;
    return x <= p ? (uint32_t)x : 0;
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

/* l_j(x) of the Lagrange basis on the points at(ctx, 0..len-1). */
typedef uint32_t point_fn(const void *ctx, uint32_t j);

static double basis(point_fn *at, const void *ctx, uint32_t len, uint32_t j, uint32_t x, uint32_t p)
{
    uint64_t above = 1, below = 1;
    for (uint32_t m = 0; m < len; m++) {
        if (m == j) continue;
        above = above * lcc_difference(x, at(ctx, m), p) % p;
        below = below * lcc_difference(at(ctx, j), at(ctx, m), p) % p;
    }
    return lcc_balanced(above * lcc_power(below, p - 2, p) % p, p);
}

static uint32_t beta_point(const void *ctx, uint32_t j)
{
    (void)ctx;
    return sherd__lcc_beta(j);
}

int sherd__lcc_encode_weights(const sherd__lcc *c, uint32_t p, uint32_t share, double *w)
{
    uint32_t len = c->blocks + c->masks, x = sherd__lcc_alpha(c, p, share);
    if (x == 0) return SHERD_EINVAL;
    for (uint32_t j = 0; j < len; j++) w[j] = basis(beta_point, NULL, len, j, x, p);
    return SHERD_OK;
}

struct answers {
    const sherd__lcc *code;
    uint32_t p;
    const uint32_t *share;
};

static uint32_t alpha_point(const void *ctx, uint32_t i)
{
    const struct answers *a = ctx;
    uint32_t x = sherd__lcc_alpha(a->code, a->p, a->share[i]);
    assert(x != 0);
    return x;
}

void sherd__lcc_decode_weights(const sherd__lcc *c, uint32_t p, uint32_t block,
                               const uint32_t *share, uint32_t len, double *w)
{
    struct answers a = { c, p, share };
    for (uint32_t i = 0; i < len; i++)
        w[i] = basis(alpha_point, &a, len, i, sherd__lcc_beta(block), p);
}

/* B is used at all K points: the weight of its one block is the sum of their weights. */
static int right_weights(const sherd__lcc *c, uint32_t p, uint32_t share, double *w)
{
    double all[SHERD__LCC_BLOCKS_MAX], sum = 0; /* |w| < 2^22, K <= 64: exact */
    int err = sherd__lcc_encode_weights(c, p, share, all);
    if (err) return err;
    for (uint32_t j = 0; j < c->blocks; j++) sum += all[j];
    sherd__residue_from_f64(&sum, 1, p, w);
    memcpy(w + 1, all + c->blocks, c->masks * sizeof *w);
    return SHERD_OK;
}

const sherd__code sherd__code_lagrange = {
    .name = "lagrange",
    .cut = SHERD__CUT_ROWS,
    .threshold = sherd__lcc_threshold,
    .blocks = sherd__lcc_blocks,
    .check = sherd__lcc_check,
    .left = sherd__lcc_encode_weights,
    .right = right_weights,
    .decode = sherd__lcc_decode_weights,
};

/* ---- kernels --------------------------------------------------------------------------------- */

/* Computes out[i] = sum_j w[j]*in[j][i] modulo p in [0, p), see lcc_division. It is inlined for
 * each number of terms, so that weights and pointers stay in registers. */
static inline __attribute__((always_inline)) void sum_words(uint32_t terms, const double *w,
                                                            const double *const *in, size_t n,
                                                            uint32_t p, int32_t *restrict out)
{
    const lcc_division d = lcc_divide_by(p);
    const double *x[TERMS];
    double v[TERMS];
    for (uint32_t j = 0; j < terms; j++) {
        v[j] = w[j];
        x[j] = in[j];
    }
    for (size_t i = 0; i < n; i++) {
        double sum = LCC_MAGIC;
        for (uint32_t j = 0; j < terms; j++) sum += v[j] * x[j][i];
        double quotient = sum * d.inverse + d.start;
        uint64_t s, q;
        memcpy(&s, &sum, sizeof s);
        memcpy(&q, &quotient, sizeof q);
        uint32_t r = (uint32_t)s - (uint32_t)q * p, up = r + p;
        out[i] = (int32_t)(r < up ? r : up);
    }
}

SHERD__CLONES_WHOLE
static void sum_few(uint32_t terms, const double *w, const double *const *in, size_t n, uint32_t p,
                    int32_t *restrict out)
{
    switch (terms) {
    case 1: sum_words(1, w, in, n, p, out); break;
    case 2: sum_words(2, w, in, n, p, out); break;
    case 3: sum_words(3, w, in, n, p, out); break;
    case 4: sum_words(4, w, in, n, p, out); break;
    case 5: sum_words(5, w, in, n, p, out); break;
    case 6: sum_words(6, w, in, n, p, out); break;
    case 7: sum_words(7, w, in, n, p, out); break;
    case 8: sum_words(8, w, in, n, p, out); break;
    }
}

/* Converts values in [0, p) to canonical doubles. */
SHERD__CLONES_WHOLE
static void centre(const int32_t *v, size_t n, int32_t p, double *restrict out)
{
    int32_t h = (p - 1) / 2;
    for (size_t i = 0; i < n; i++) out[i] = (double)(v[i] - (v[i] > h ? p : 0));
}

/* Sums any number of terms for n <= CHUNK: the sum of the first terms becomes one more term of the
 * next ones. partial: room for n numbers. */
static void sum(uint32_t terms, const double *w, const double *const *in, size_t n, uint32_t p,
                double *partial, int32_t *out)
{
    double v[TERMS];
    const double *x[TERMS];
    uint32_t done = terms < TERMS ? terms : TERMS;
    sum_few(done, w, in, n, p, out);
    while (done < terms) {
        uint32_t some = terms - done < TERMS - 1 ? terms - done : TERMS - 1;
        centre(out, n, (int32_t)p, partial);
        v[0] = 1.0;
        x[0] = partial;
        memcpy(v + 1, w + done, some * sizeof *v);
        memcpy(x + 1, in + done, some * sizeof *x);
        sum_few(some + 1, v, x, n, p, out);
        done += some;
    }
}

void sherd__lcc_encode(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                       const double *const *in, size_t n, uint8_t *const *out)
{
    int32_t words[CHUNK];
    double partial[CHUNK];
    const double *x[SHERD__LCC_BLOCKS_MAX];
    assert(blocks <= SHERD__LCC_BLOCKS_MAX);
    if (sherd__lcc_encode_steps(w, shares, blocks, p, in, n, out)) return;
    size_t wide = sherd__lcc_encode_wide(w, shares, blocks, p, in, n, out);
    for (size_t at = wide; at < n; at += CHUNK) {
        size_t part = n - at < CHUNK ? n - at : CHUNK;
        for (uint32_t j = 0; j < blocks; j++) x[j] = in[j] + at;
        for (uint32_t i = 0; i < shares; i++) {
            if (!out[i]) continue;
            sum(blocks, w + (size_t)i * blocks, x, part, p, partial, words);
            sherd__residue_pack_words(words, part, out[i] + SHERD__RESIDUE_BYTES * at);
        }
    }
    size_t used = n - wide < CHUNK ? n - wide : CHUNK;
    sherd__wipe(words, used * sizeof *words);
    if (blocks > TERMS) sherd__wipe(partial, used * sizeof *partial);
}

/* Takes a few answers at a time: each is unpacked once, and the outputs so far are one more
 * term. */
int sherd__lcc_decode(const double *w, uint32_t blocks, uint32_t len, uint32_t p,
                      const uint8_t *const *in, size_t n, double *const *out)
{
    double value[TERMS - 1][CHUNK], v[TERMS];
    const double *x[TERMS];
    int32_t words[CHUNK];
    for (uint32_t j = 0; j < TERMS - 1; j++) x[j] = value[j];
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t part = n - at < CHUNK ? n - at : CHUNK;
        for (uint32_t i = 0, some; i < len; i += some) {
            some = len - i < TERMS - 1 ? len - i : TERMS - 1;
            for (uint32_t j = 0; j < some; j++) {
                int err = sherd__residue_unpack(in[i + j] + SHERD__RESIDUE_BYTES * at, part, p,
                                                value[j], NULL);
                if (err != 0) return err;
            }
            for (uint32_t k = 0; k < blocks; k++) {
                memcpy(v, w + (size_t)k * len + i, some * sizeof *v);
                v[some] = 1.0;
                x[some] = out[k] + at;
                sum_few(i == 0 ? some : some + 1, v, x, part, p, words);
                centre(words, part, (int32_t)p, out[k] + at);
            }
            if (some < TERMS - 1) x[some] = value[some];
        }
    }
    return SHERD_OK;
}
