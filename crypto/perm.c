/*
 * perm-v1, expo-v1, rows-v1 (specified in the header). One keystream is read for many rows at a
 * time, since a new nonce costs as much as fifty indices. A row is shuffled in its final place, and
 * its inverse is filled in during the same pass, because position i-1 is final after its exchange.
 * Macros generate the inner loop for three widths and six batch sizes: a batch must be unrolled so
 * that the multiplications of one word overlap with the exchanges of the previous one.
 */
#include "crypto/perm.h"

#include <sodium.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/keystream.h"

/* Words read at a time: 32 KiB, so that they are still in the first-level cache when they are
 * used. */
enum { WORDS = 4096, BLOCK_WORDS = SHERD__KEYSTREAM_BLOCK / 8 };

/* While i > above, one word gives q draws. Part of the format. */
static const struct {
    uint32_t above;
    uint32_t q;
} bands[] = {
    { UINT32_C(1) << 30, 1 }, { UINT32_C(1) << 19, 2 }, { UINT32_C(1) << 14, 3 },
    { UINT32_C(1) << 11, 4 }, { UINT32_C(1) << 9, 5 },  { 6, 6 },
};

/* ---- keys ---------------------------------------------------------------------------------- */

void sherd__perm_key(uint8_t key[32], const uint8_t seed[32], const char *label, uint64_t op_index,
                     uint64_t step)
{
    crypto_generichash_state st;
    uint8_t n[16];
    sherd__put_u64(n, op_index);
    sherd__put_u64(n + 8, step);
    crypto_generichash_init(&st, seed, 32, 32);
    crypto_generichash_update(&st, (const uint8_t *)label, strlen(label) + 1);
    crypto_generichash_update(&st, n, step ? 16 : 8);
    crypto_generichash_final(&st, key, 32);
    sodium_memzero(&st, sizeof st);
}

void sherd__seed_commitment(uint8_t out[32], const uint8_t seed[32])
{
    static const char label[] = "sherd seed-v1"; /* its terminator is hashed too */
    uint8_t text[sizeof label + 32];
    memcpy(text, label, sizeof label);
    memcpy(text + sizeof label, seed, 32);
    crypto_hash_sha256(out, text, sizeof text);
    sodium_memzero(text, sizeof text);
}

unsigned sherd__perm_width(uint64_t n)
{
    return n <= 256 ? 1 : n <= 65536 ? 2 : 4;
}

/* ---- the shuffle --------------------------------------------------------------------------- */

uint64_t sherd__perm_words_needed(uint32_t n)
{
    uint64_t words = 0;
    for (size_t b = 0; b < sizeof bands / sizeof bands[0]; b++) {
        if (n <= bands[b].above) continue;
        uint64_t batches = ((uint64_t)n - bands[b].above + bands[b].q - 1) / bands[b].q;
        words += batches;
        n = (uint32_t)(n - batches * bands[b].q);
    }
    return words + (n > 1);
}

static inline uint64_t word_le(const uint64_t *w)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return *w;
#else
    return __builtin_bswap64(*w);
#endif
}

__extension__ typedef unsigned __int128 u128;

/* Draws q numbers below i, i-1, ... from one word; returns 0 if the word is rejected. */
static inline __attribute__((always_inline)) int draw(uint64_t w, uint32_t i, uint32_t q,
                                                      uint32_t *d)
{
    uint64_t product = 1;
#pragma GCC unroll 6
    for (uint32_t j = 0; j < q; j++) {
        u128 m = (u128)w * (i - j);
        d[j] = (uint32_t)(m >> 64);
        w = (uint64_t)m;
        product *= i - j;
    }
    return !(__builtin_expect(w < product, 0) && w < (0 - product) % product);
}

/* batch_T: performs q steps from i down. shuffle_T: performs steps from i down while there are
 * words in [*at, end); returns the new i. inv may be NULL; its entry for position 0 is set at the
 * end. */
#define DEFINE_SHUFFLE(T)                                                                          \
    static inline __attribute__((always_inline))                                                   \
    uint32_t batch_##T(T *p, T *inv, uint32_t i, uint32_t q, uint64_t w)                           \
    {                                                                                              \
        uint32_t d[6];                                                                             \
        if (!draw(w, i, q, d)) return i;                                                           \
        _Pragma("GCC unroll 6") for (uint32_t j = 0; j < q; j++)                                   \
        {                                                                                          \
            uint32_t last = i - 1 - j;                                                             \
            T v = p[d[j]];                                                                         \
            p[d[j]] = p[last];                                                                     \
            p[last] = v;                                                                           \
            if (inv) inv[v] = (T)last;                                                             \
        }                                                                                          \
        return i - q;                                                                              \
    }                                                                                              \
    static inline __attribute__((always_inline))                                                   \
    uint32_t steps_##T(T *p, T *inv, uint32_t i, const uint64_t **at, const uint64_t *end)         \
    {                                                                                              \
        const uint64_t *w = *at;                                                                   \
        for (; i > bands[0].above && w < end; w++) i = batch_##T(p, inv, i, 1, word_le(w));        \
        for (; i > bands[1].above && w < end; w++) i = batch_##T(p, inv, i, 2, word_le(w));        \
        for (; i > bands[2].above && w < end; w++) i = batch_##T(p, inv, i, 3, word_le(w));        \
        for (; i > bands[3].above && w < end; w++) i = batch_##T(p, inv, i, 4, word_le(w));        \
        for (; i > bands[4].above && w < end; w++) i = batch_##T(p, inv, i, 5, word_le(w));        \
        for (; i > bands[5].above && w < end; w++) i = batch_##T(p, inv, i, 6, word_le(w));        \
        for (; i > 1 && w < end; w++) i = batch_##T(p, inv, i, i - 1, word_le(w));                 \
        *at = w;                                                                                   \
        return i;                                                                                  \
    }                                                                                              \
    static uint32_t shuffle_##T(void *row, void *inverse, uint32_t i, const uint64_t **at,         \
                                const uint64_t *end)                                               \
    {                                                                                              \
        return inverse ? steps_##T(row, inverse, i, at, end) : steps_##T(row, NULL, i, at, end);   \
    }                                                                                              \
    static void begin_##T(void *row, uint32_t n)                                                   \
    {                                                                                              \
        T *p = row;                                                                                \
        for (uint32_t i = 0; i < n; i++) p[i] = (T)i;                                              \
    }                                                                                              \
    static void end_##T(const void *row, void *inverse)                                            \
    {                                                                                              \
        ((T *)inverse)[*(const T *)row] = 0;                                                       \
    }

DEFINE_SHUFFLE(uint8_t)
DEFINE_SHUFFLE(uint16_t)
DEFINE_SHUFFLE(uint32_t)

typedef struct kernel {
    uint32_t (*shuffle)(void *row, void *inverse, uint32_t i, const uint64_t **at,
                        const uint64_t *end);
    void (*begin)(void *row, uint32_t n);
    void (*end)(const void *row, void *inverse);
} kernel;

static const kernel kernels[] = {
    [1] = { shuffle_uint8_t, begin_uint8_t, end_uint8_t },
    [2] = { shuffle_uint16_t, begin_uint16_t, end_uint16_t },
    [4] = { shuffle_uint32_t, begin_uint32_t, end_uint32_t },
};

void sherd__perm_from_words(const sherd__perm_words *src, uint32_t n, uint32_t *perm)
{
    const uint64_t *at = src->words;
    const uint64_t *end = at + sherd__perm_words_needed(n);
    uint32_t i = n;
    begin_uint32_t(perm, n);
    i = shuffle_uint32_t(perm, NULL, i, &at, end);
    while (i > 1) {
        uint64_t word = src->more(src->ctx);
        at = &word;
        i = shuffle_uint32_t(perm, NULL, i, &at, &word + 1);
    }
}

/* ---- rows from a keystream ----------------------------------------------------------------- */

typedef struct generator {
    sherd__keystream ks;
    const kernel *k;
    uint64_t *words; /* WORDS of them */
    uint64_t needed; /* words of a row without rejections */
    uint32_t n;
} generator;

/* Completes a row that needs more than its own words because some were rejected. */
static int shuffle_more(generator *g, uint64_t row, void *perm, void *inverse, uint32_t i)
{
    uint64_t words[BLOCK_WORDS];
    int err = SHERD_OK;
    for (uint64_t block = 0; i > 1 && !err; block++) {
        const uint64_t *at = words;
        err = sherd__keystream_read(&g->ks, 1 + row, block, words, sizeof words);
        if (!err) i = g->k->shuffle(perm, inverse, i, &at, words + BLOCK_WORDS);
    }
    sodium_memzero(words, sizeof words);
    return err;
}

/* Computes a row whose words do not fit the buffer, alternating reads and shuffles. */
static int long_row(generator *g, uint64_t row, uint64_t block, void *perm, void *inverse)
{
    uint64_t left = g->needed;
    uint32_t i = g->n;
    g->k->begin(perm, g->n);
    while (left > 0) {
        size_t now = left < WORDS ? (size_t)left : WORDS;
        const uint64_t *at = g->words;
        int err = sherd__keystream_read(&g->ks, 0, block, g->words, now * 8);
        if (err) return err;
        i = g->k->shuffle(perm, inverse, i, &at, g->words + now);
        left -= now;
        block += WORDS / BLOCK_WORDS;
    }
    int err = shuffle_more(g, row, perm, inverse, i);
    if (!err && inverse) g->k->end(perm, inverse);
    return err;
}

/* Computes `count` rows from the words in the buffer, `stride` words apart. */
static int short_rows(generator *g, uint64_t row, size_t count, size_t stride, uint8_t *perm,
                      uint8_t *inverse, size_t row_bytes)
{
    for (size_t r = 0; r < count; r++) {
        const uint64_t *at = g->words + r * stride;
        g->k->begin(perm, g->n);
        uint32_t i = g->k->shuffle(perm, inverse, g->n, &at, at + g->needed);
        if (i > 1) {
            int err = shuffle_more(g, row + r, perm, inverse, i);
            if (err) return err;
        }
        if (inverse) {
            g->k->end(perm, inverse);
            inverse += row_bytes;
        }
        perm += row_bytes;
    }
    return SHERD_OK;
}

static int all_rows(generator *g, uint64_t row, size_t nrows, unsigned width, uint8_t *perm,
                    uint8_t *inverse)
{
    uint64_t blocks = (g->needed + BLOCK_WORDS - 1) / BLOCK_WORDS;
    size_t row_bytes = (size_t)g->n * width;
    size_t at_once = WORDS / BLOCK_WORDS / (blocks ? (size_t)blocks : 1);
    int err = SHERD_OK;
    while (nrows > 0 && !err) {
        size_t count = at_once < nrows ? at_once : nrows;
        if (at_once == 0) {
            count = 1;
            err = long_row(g, row, row * blocks, perm, inverse);
        } else {
            err = sherd__keystream_read(&g->ks, 0, row * blocks, g->words,
                                        count * (size_t)blocks * SHERD__KEYSTREAM_BLOCK);
            if (!err)
                err = short_rows(g, row, count, (size_t)blocks * BLOCK_WORDS, perm, inverse,
                                 row_bytes);
        }
        row += count;
        nrows -= count;
        perm += count * row_bytes;
        if (inverse) inverse += count * row_bytes;
    }
    return err;
}

int sherd__perm_rows(const uint8_t key[32], uint64_t row0, size_t nrows, uint32_t n, unsigned width,
                     void *perm, void *inverse)
{
    generator g = { .n = n, .needed = sherd__perm_words_needed(n) };
    if ((width != 1 && width != 2 && width != 4) || width < sherd__perm_width(n))
        return SHERD_EINVAL;
    if (n == 0 || nrows == 0) return SHERD_OK;
    g.k = &kernels[width];
    g.words = sherd__alloc(WORDS * 8);
    if (!g.words) return SHERD_ENOMEM;
    int err = sherd__keystream_init(&g.ks, key);
    if (!err) err = all_rows(&g, row0, nrows, width, perm, inverse);
    sherd__keystream_fini(&g.ks);
    sodium_memzero(g.words, WORDS * 8);
    sherd__free(g.words);
    return err;
}

int sherd__perm_row(const uint8_t key[32], uint64_t row, uint32_t n, uint32_t *perm)
{
    return sherd__perm_rows(key, row, 1, n, 4, perm, NULL);
}

static int row_of_key(void *ctx, uint64_t row, uint32_t n, uint32_t *perm)
{
    return sherd__perm_row(ctx, row, n, perm);
}

sherd__perm_source sherd__perm_from_key(const uint8_t *key)
{
    return (sherd__perm_source){ row_of_key, (void *)(uintptr_t)key };
}

/* ---- exposures ----------------------------------------------------------------------------- */

/* Writes the exposures to out or, if it is NULL, counts them. */
static int uniform_exposures(const uint8_t key[32], size_t k, uint32_t nodes, uint32_t *out,
                             uint64_t *counts)
{
    uint64_t words[64];
    sherd__keystream ks;
    int err = sherd__keystream_init(&ks, key);
    for (uint64_t block = 0; k > 0 && !err; block += sizeof words / SHERD__KEYSTREAM_BLOCK) {
        err = sherd__keystream_read(&ks, 0, block, words, sizeof words);
        for (size_t w = 0; w < 64 && k > 0 && !err; w++) {
            u128 m = (u128)word_le(&words[w]) * nodes;
            if ((uint64_t)m < nodes && (uint64_t)m < (0 - (uint64_t)nodes) % nodes) continue;
            if (out) *out++ = (uint32_t)(m >> 64);
            else counts[(uint32_t)(m >> 64)]++;
            k--;
        }
    }
    sodium_memzero(words, sizeof words);
    sherd__keystream_fini(&ks);
    return err;
}

int sherd__exposures(const uint8_t key[32], size_t k, uint32_t nodes, int balanced, uint32_t *out)
{
    if (nodes == 0) return SHERD_EINVAL;
    if (!balanced) return uniform_exposures(key, k, nodes, out, NULL);
    if (k > UINT32_MAX) return SHERD_EINVAL;
    int err = sherd__perm_row(key, 0, (uint32_t)k, out);
    if (err) return err;
    for (size_t c = 0; c < k; c++) out[c] %= nodes;
    return SHERD_OK;
}

int sherd__exposure_counts(const uint8_t key[32], size_t k, uint32_t nodes, int balanced,
                           uint64_t *counts)
{
    if (nodes == 0 || (balanced && k > UINT32_MAX)) return SHERD_EINVAL;
    for (uint32_t n = 0; n < nodes; n++) counts[n] = balanced ? k / nodes + (n < k % nodes) : 0;
    return balanced ? SHERD_OK : uniform_exposures(key, k, nodes, NULL, counts);
}
