/*
 * Conversion of residues to and from three bytes each, eight at a time: one shuffle of bytes within
 * halves of 16 bytes and one of words across them, both AVX2 instructions. 24 bytes are written or
 * read as 32, so the last values of a buffer are converted one by one. Between bytes and doubles
 * there are words in the first-level cache. The loops that convert these are left to the compiler,
 * which chooses the vector width.
 */
#include <string.h>

#include "matrix/clones.h"
#include "matrix/residue_internal.h"

enum { CHUNK = 512 };

typedef uint8_t bytes32 __attribute__((vector_size(32)));
typedef int32_t words8 __attribute__((vector_size(32)));

/* Returns the groups of eight of n values. At least three more values must follow, for the 8 bytes
 * beyond a group. */
static size_t groups_of(size_t n)
{
    return n < 3 ? 0 : (n - 3) / 8;
}

SHERD__CLONES
static void pack_groups(const int32_t *v, size_t groups, uint8_t *out)
{
    for (size_t i = 0; i < groups; i++) {
        bytes32 b;
        words8 w;
        memcpy(&b, v + 8 * i, sizeof b);
        b = __builtin_shufflevector(b, b, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0, 16,
                                    17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30, 16, 16, 16, 16);
        w = (words8)b;
        w = __builtin_shufflevector(w, w, 0, 1, 2, 4, 5, 6, 3, 7);
        memcpy(out + 24 * i, &w, sizeof w);
    }
}

void sherd__residue_pack_words(const int32_t *v, size_t n, uint8_t *out)
{
    size_t groups = groups_of(n);
    pack_groups(v, groups, out);
    for (size_t i = 8 * groups; i < n; i++) {
        out[3 * i] = (uint8_t)v[i];
        out[3 * i + 1] = (uint8_t)(v[i] >> 8);
        out[3 * i + 2] = (uint8_t)(v[i] >> 16);
    }
}

SHERD__CLONES
static void to_words(const double *x, size_t n, int32_t p, int32_t *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        int32_t v = (int32_t)x[i];
        out[i] = v + ((v >> 31) & p);
    }
}

void sherd__residue_pack(const double *x, size_t n, uint32_t p, uint8_t *out)
{
    int32_t words[CHUNK];
    if (sherd__residue_pack_wide(x, n, p, out)) return;
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t part = n - i < CHUNK ? n - i : CHUNK;
        to_words(x + i, part, (int32_t)p, words);
        sherd__residue_pack_words(words, part, out + SHERD__RESIDUE_BYTES * i);
    }
}

SHERD__CLONES
static void unpack_groups(const uint8_t *in, size_t groups, int32_t *out)
{
    for (size_t i = 0; i < groups; i++) {
        bytes32 b;
        words8 w;
        memcpy(&w, in + 24 * i, sizeof w);
        b = (bytes32)__builtin_shufflevector(w, w, 0, 1, 2, 6, 3, 4, 5, 7);
        b = __builtin_shufflevector(b, b, 0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 16, 17,
                                    18, 18, 19, 20, 21, 21, 22, 23, 24, 24, 25, 26, 27, 27);
        w = (words8)b & 0xffffff;
        memcpy(out + 8 * i, &w, sizeof w);
    }
}

static uint32_t get_u24(const uint8_t *in)
{
    return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16;
}

/* Returns the largest of the words, so that values out of range are detected after the loop. */
SHERD__CLONES
static int32_t from_words(const int32_t *v, size_t n, int32_t p, double *restrict out)
{
    int32_t h = (p - 1) / 2, most = 0;
    for (size_t i = 0; i < n; i++) {
        most = v[i] > most ? v[i] : most;
        out[i] = (double)(v[i] - (v[i] > h ? p : 0));
    }
    return most;
}

/* Returns the largest value, or one that is not below p; in that case out is undefined. */
static uint32_t unpack(const uint8_t *in, size_t n, uint32_t p, double *out)
{
    int32_t words[CHUNK];
    uint32_t most = 0;
    if (sherd__residue_unpack_wide(in, n, p, out, &most)) return most;
    for (size_t i = 0; i < n && most < p; i += CHUNK, in += SHERD__RESIDUE_BYTES * CHUNK) {
        size_t part = n - i < CHUNK ? n - i : CHUNK, groups = groups_of(part);
        unpack_groups(in, groups, words);
        for (size_t j = 8 * groups; j < part; j++) words[j] = (int32_t)get_u24(in + 3 * j);
        uint32_t some = (uint32_t)from_words(words, part, (int32_t)p, out + i);
        if (some > most) most = some;
    }
    return most;
}

int sherd__residue_unpack(const uint8_t *in, size_t n, uint32_t p, double *out, size_t *bad)
{
    if (unpack(in, n, p, out) < p) return SHERD_OK;
    if (bad)
        for (*bad = 0; get_u24(in + 3 * *bad) < p;) ++*bad;
    return SHERD_EFRAME;
}
