/* The system's entropy source, seeded streams that replace it, and unbiased numbers from either. */
#include "core/rand.h"

#include <sodium.h>
#include <string.h>

#include "core/bytes.h"

static void fill_os(void *ctx, void *out, size_t len)
{
    (void)ctx;
    randombytes_buf(out, len);
}

sherd__entropy sherd__entropy_os(void)
{
    return (sherd__entropy){ fill_os, NULL };
}

static void keystream(const sherd__seeded *st, uint64_t block, uint8_t *out, size_t len)
{
    static const uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
    memset(out, 0, len);
    crypto_stream_chacha20_xor_ic(out, out, len, nonce, block, st->key);
}

/* Each draw begins at a block of its own. Most draws are single numbers, for which a group of
 * blocks is made at a time, which takes as long as one block does. */
static void fill_seeded(void *ctx, void *out, size_t len)
{
    enum { BLOCK = 64, GROUP = sizeof((sherd__seeded *)0)->blocks / BLOCK };
    sherd__seeded *st = ctx;
    const uint64_t block = st->drawn / BLOCK, group = block / GROUP;
    st->drawn += (len + BLOCK - 1) / BLOCK * BLOCK;
    if (len > BLOCK) {
        keystream(st, block, out, len);
        return;
    }
    if (st->ahead != group + 1) keystream(st, group * GROUP, st->blocks, sizeof st->blocks);
    st->ahead = group + 1;
    memcpy(out, st->blocks + block % GROUP * BLOCK, len);
}

static sherd__entropy begin(sherd__seeded *st)
{
    /* Selects the fastest code for this processor; without it the bytes are the same. */
    const int started = sodium_init();
    (void)started;
    st->drawn = st->ahead = 0;
    return (sherd__entropy){ fill_seeded, st };
}

sherd__entropy sherd__entropy_seeded(sherd__seeded *st, uint64_t seed)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(seed >> 8 * i);
    crypto_generichash(st->key, sizeof st->key, bytes, sizeof bytes, NULL, 0);
    return begin(st);
}

sherd__entropy sherd__entropy_keyed(sherd__seeded *st, const uint8_t key[32])
{
    memcpy(st->key, key, sizeof st->key);
    return begin(st);
}

sherd__entropy sherd__entropy_derived(sherd__seeded *st, const uint8_t seed[32], const char *label,
                                      uint64_t number)
{
    crypto_generichash_state hash;
    uint8_t bytes[8];
    sherd__put_u64(bytes, number);
    crypto_generichash_init(&hash, seed, 32, sizeof st->key);
    crypto_generichash_update(&hash, (const uint8_t *)label, strlen(label) + 1);
    crypto_generichash_update(&hash, bytes, sizeof bytes);
    crypto_generichash_final(&hash, st->key, sizeof st->key);
    return begin(st);
}

uint64_t sherd__entropy_u64(const sherd__entropy *e)
{
    uint64_t v;
    e->fill(e->ctx, &v, sizeof v);
    return v;
}

uint64_t sherd__entropy_below(const sherd__entropy *e, uint64_t n)
{
    uint64_t reject = (0 - n) % n, v; /* 2^64 mod n values are rejected: they would cause a bias */
    do v = sherd__entropy_u64(e);
    while (v < reject);
    return v % n;
}
