/*
 * Freivalds' check modulo q = 2^61-1, on whole numbers that arrive as doubles. A product of a value
 * below 2^53 and one below 2^61 takes 114 bits, so a chunk of 512 is summed in one signed 128-bit
 * accumulator and reduced once; the sign of y needs no special case. Values are checked chunk by
 * chunk just before they are used, while they are in L1, since an answer comes from an untrusted
 * peer.
 */
#include <math.h>

#include "core/wipe.h"
#include "crypto/freivalds.h"
#include "matrix/clones.h"

#define CHUNK 512u

__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

/* No branches: the numbers are private data, and the time of a branch would reveal information
 * about them. */

/* Returns x mod q for -q <= x < q. */
static uint64_t canonical(uint64_t x)
{
    return x + (SHERD__F61 & (0 - (x >> 63)));
}

/* Returns x mod q. */
static uint64_t fold(u128 x)
{
    uint64_t low = (uint64_t)x & SHERD__F61;
    u128 high = x >> 61; /* below 2^67 */
    uint64_t sum = low + ((uint64_t)high & SHERD__F61) + (uint64_t)(high >> 61);
    sum = (sum & SHERD__F61) + (sum >> 61);
    return canonical(sum - SHERD__F61);
}

/* Returns x mod q for |x| <= 2^126; it adds a multiple of q larger than that. */
static uint64_t fold_signed(i128 x)
{
    return fold((u128)x + ((u128)SHERD__F61 << 66));
}

uint64_t sherd__f61_add(uint64_t a, uint64_t b)
{
    return canonical(a + b - SHERD__F61);
}

uint64_t sherd__f61_sub(uint64_t a, uint64_t b)
{
    return canonical(a - b);
}

uint64_t sherd__f61_mul(uint64_t a, uint64_t b)
{
    return fold((u128)a * b);
}

uint64_t sherd__f61_from_i64(int64_t x)
{
    return fold_signed(x);
}

void sherd__f61_draw(const sherd__entropy *e, size_t n, uint64_t *out)
{
    uint64_t word[64];
    for (size_t i = 0; i < n;) {
        size_t want = n - i < 64 ? n - i : 64;
        e->fill(e->ctx, word, want * sizeof *word);
        for (size_t j = 0; j < want; j++)
            if (word[j] >> 3 < SHERD__F61) out[i++] = word[j] >> 3;
    }
    sherd__wipe(word, sizeof word);
}

uint64_t sherd__f61_dot(const uint64_t *a, const uint64_t *b, size_t n)
{
    u128 sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (u128)a[i] * b[i]; /* below 2^122: 16 products and a remainder fit */
        if (i % 16 == 15) sum = fold(sum);
    }
    return fold(sum);
}

/* Converts n whole doubles below 2^53 in magnitude to integers; returns false if one is anything
 * else. */
SHERD__CLONES_DQ
static bool to_integers(const double *y, size_t n, int64_t *out)
{
    uint64_t bad = 0;
    for (size_t i = 0; i < n; i++) bad |= !(fabs(y[i]) < 0x1p53) | (rint(y[i]) != y[i]);
    if (bad) return false;
    for (size_t i = 0; i < n; i++) out[i] = (int64_t)y[i];
    return true;
}

/* Uses two accumulators, since an addition with carry waits for the previous one. */
static i128 chunk_dot(const int64_t *y, const uint64_t *s, size_t n)
{
    i128 even = 0, odd = 0;
    size_t i = 0;
    for (; i + 1 < n; i += 2) {
        even += (i128)y[i] * (int64_t)s[i];
        odd += (i128)y[i + 1] * (int64_t)s[i + 1];
    }
    if (i < n) even += (i128)y[i] * (int64_t)s[i];
    return even + odd;
}

static bool dot(const double *y, const uint64_t *s, size_t n, uint64_t *out)
{
    int64_t whole[CHUNK];
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t part = n - i < CHUNK ? n - i : CHUNK;
        if (!to_integers(y + i, part, whole)) return false;
        sum = sherd__f61_add(sum, fold_signed(chunk_dot(whole, s + i, part)));
    }
    *out = sum;
    return true;
}

int sherd__f61_dot_f64(const double *y, const uint64_t *s, size_t n, uint64_t *out)
{
    return dot(y, s, n, out) ? SHERD_OK : SHERD_EFRAME;
}

int sherd__f61_right(const double *x, size_t rows, size_t cols, size_t ld, const uint64_t *s,
                     uint64_t *out)
{
    for (size_t i = 0; i < rows; i++)
        if (!dot(x + i * ld, s, cols, out + i)) return SHERD_EINVAL;
    return SHERD_OK;
}

int sherd__f61_answer(const double *y, size_t rows, size_t cols, size_t ld, const uint64_t *r,
                      const uint64_t *s, uint64_t *acc)
{
    uint64_t sum = *acc, row;
    for (size_t i = 0; i < rows; i++) {
        if (!dot(y + i * ld, s, cols, &row)) return SHERD_EFRAME;
        sum = sherd__f61_add(sum, sherd__f61_mul(row, r[i]));
    }
    *acc = sum;
    return SHERD_OK;
}
