/*
 * Sources of random bytes. Sessions, jobs and schemes never read the system's entropy source
 * directly: they receive a sherd__entropy, so that a simulation can replay them from a seed.
 */
#ifndef CORE_RAND_H
#define CORE_RAND_H

#include <stddef.h>
#include <stdint.h>

typedef struct sherd__entropy {
    void (*fill)(void *ctx, void *out, size_t len);
    void *ctx;
} sherd__entropy;

/** Returns the system's source, getrandom through libsodium. */
sherd__entropy sherd__entropy_os(void);

/** State of a deterministic stream, ChaCha20 under a key. */
typedef struct sherd__seeded {
    uint8_t key[32];
    uint64_t drawn; /* bytes drawn so far, rounded up to whole 64-byte blocks */
    uint64_t ahead; /* number, from 1, of the group of blocks in `blocks`; 0: none */
    uint8_t blocks[512];
} sherd__seeded;
/** Returns a stream with a key derived from a number. For tests and simulations only. */
sherd__entropy sherd__entropy_seeded(sherd__seeded *state, uint64_t seed);
/** Returns the stream of this key. */
sherd__entropy sherd__entropy_keyed(sherd__seeded *state, const uint8_t key[32]);
/** Returns the stream of the key BLAKE2b of (label, number), keyed by a 32-byte seed. Different
 *  labels and numbers give independent streams from one seed. */
sherd__entropy sherd__entropy_derived(sherd__seeded *state, const uint8_t seed[32],
                                      const char *label, uint64_t number);

uint64_t sherd__entropy_u64(const sherd__entropy *e);
/** Returns a uniform number in [0, n), n > 0, by rejection. */
uint64_t sherd__entropy_below(const sherd__entropy *e, uint64_t n);

#endif
