/*
 * The sampler of crypto/gaussian.h. A Bernoulli trial of rational probability n/d compares the
 * binary digits of n/d, 16 at a time, with random ones: the first digit that differs decides. One
 * division is therefore nearly always enough, and the result is exact.
 *
 * A sample takes 28 digits on average (42 where the variance is 1), with a standard deviation of 22
 * (40) and geometric tails. Discarded samples bring each draw to the same number of digits.
 */
#include "crypto/gaussian.h"

#include <stdbool.h>

#include "core/wipe.h"
#include "crypto/keystream.h"

__extension__ typedef unsigned __int128 wide;

#define BUFFER 4096u
#define LAPLACE_MOST 256u /* limit of t: larger values are rejected; see the header */

typedef struct source {
    sherd__keystream ks;
    uint64_t block, digits; /* read so far */
    size_t at;
    int err;
    uint8_t bytes[BUFFER];
} source;

static uint32_t digit(source *s)
{
    if (s->at + 2 > BUFFER) {
        if (!s->err) s->err = sherd__keystream_read(&s->ks, 0, s->block, s->bytes, BUFFER);
        s->block += BUFFER / SHERD__KEYSTREAM_BLOCK;
        s->at = 0;
    }
    uint32_t v = (uint32_t)(s->bytes[s->at] | s->bytes[s->at + 1] << 8);
    s->at += 2;
    s->digits++;
    return v;
}

/* Returns a uniform number below n <= 2^48, by rejection. */
static uint64_t below(source *s, uint64_t n)
{
    const uint64_t all = UINT64_C(1) << 48, fair = all - all % n;
    uint64_t v;
    do v = (uint64_t)digit(s) << 32 | (uint64_t)digit(s) << 16 | digit(s);
    while (v >= fair && !s->err);
    return v % n;
}

/* Returns true with probability n/d; n <= d < 2^112. */
static bool chance(source *s, wide n, wide d)
{
    while (n < d && !s->err) {
        n <<= 16;
        uint32_t want = (uint32_t)(n / d), got = digit(s);
        if (got != want) return got < want;
        n -= (wide)want * d;
        if (n == 0) return false;
    }
    return n >= d;
}

/* Returns true with probability exp(-n/d), 0 <= n <= d < 2^112 (algorithm 1, gamma at most 1). */
static bool chance_exp_fraction(source *s, wide n, wide d)
{
    uint64_t k = 1;
    while (chance(s, n, d) && (k == 1 || below(s, k) == 0) && !s->err) k++;
    return k % 2 == 1;
}

/* Like chance_exp_fraction, for any n (algorithm 1). */
static bool chance_exp(source *s, wide n, wide d)
{
    for (; n > d; n -= d)
        if (!chance_exp_fraction(s, 1, 1)) return false;
    return chance_exp_fraction(s, n, d);
}

/* Returns the magnitude of a discrete Laplace variable of scale t, and its sign (algorithm 2). */
static uint64_t laplace(source *s, uint64_t t, bool *negative)
{
    while (!s->err) {
        uint64_t u = below(s, t), v = 0;
        if (!chance_exp_fraction(s, u, t)) continue;
        while (v < LAPLACE_MOST && chance_exp_fraction(s, 1, 1)) v++;
        *negative = digit(s) & 1;
        if (v < LAPLACE_MOST && !(*negative && u == 0 && v == 0)) return u + t * v;
    }
    return 0;
}

static uint64_t root(uint64_t n)
{
    uint64_t r = 0;
    for (unsigned bit = 32; bit-- > 0;) {
        uint64_t more = r | UINT64_C(1) << bit;
        if (more * more <= n) r = more;
    }
    return r;
}

/* Algorithm 3: draws a Laplace variable of scale t and accepts it with probability exp(-(|y| -
 * variance/t)^2 / (2 variance)) = exp(-(|y| t - variance)^2 / (2 variance t^2)). */
static int64_t gaussian(source *s, uint64_t variance, uint64_t t)
{
    wide d = (wide)2 * variance * t * t;
    while (!s->err) {
        bool negative = false;
        uint64_t y = laplace(s, t, &negative);
        wide far = (wide)y * t > variance ? (wide)y * t - variance : variance - (wide)y * t;
        if (chance_exp(s, far * far, d)) return negative ? -(int64_t)y : (int64_t)y;
    }
    return 0;
}

/* Returns a number of digits that n samples exceed once in 2^40 draws. The discarded samples that
 * fill a draw up to it exceed it a little, within the same buffer. */
static uint64_t digits_of(size_t n, uint64_t variance)
{
    const uint64_t buffer = BUFFER / 2;
    uint64_t mean = variance < 1000 ? 48 : 30, deviation = variance < 1000 ? 48 : 24;
    uint64_t most = mean * n + 12 * deviation * (root(n) + 1) + 1024;
    return (most + buffer - 1) / buffer * buffer + buffer / 2;
}

int sherd__gaussian_draw(int64_t *out, size_t n, uint64_t variance, const sherd__entropy *e)
{
    source s = { .at = BUFFER };
    uint8_t key[32];
    if (variance == 0 || variance > SHERD__GAUSSIAN_VARIANCE) return SHERD_EINVAL;
    e->fill(e->ctx, key, sizeof key);
    s.err = sherd__keystream_init(&s.ks, key);
    sherd__wipe(key, sizeof key);
    uint64_t t = root(variance) + 1;
    for (size_t i = 0; i < n && !s.err; i++) out[i] = gaussian(&s, variance, t);
    for (uint64_t all = digits_of(n, variance); s.digits < all && !s.err;)
        (void)gaussian(&s, variance, t);
    int err = s.err;
    sherd__keystream_fini(&s.ks);
    sherd__wipe(&s, sizeof s);
    return err;
}
