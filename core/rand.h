/*
 * Where random bytes come from. Sessions, jobs and schemes never read the entropy source
 * themselves: they are handed one, so that a simulation can replay them from a seed.
 */
#ifndef CORE_RAND_H
#define CORE_RAND_H

#include <stddef.h>
#include <stdint.h>

typedef struct sherd_entropy {
    void (*fill)(void *ctx, void *out, size_t len);
    void *ctx;
} sherd_entropy;

/** getrandom through libsodium. */
sherd_entropy sherd__entropy_os(void);

/** Deterministic stream, ChaCha20 under a key. */
typedef struct sherd_entropy_seeded {
    uint8_t key[32];
    uint64_t drawn; /* bytes drawn so far, rounded up to whole 64-byte blocks */
} sherd_entropy_seeded;
/** Key from a number: for tests and simulations only. */
sherd_entropy sherd__entropy_seeded(sherd_entropy_seeded *state, uint64_t seed);
/** Under this key. */
sherd_entropy sherd__entropy_keyed(sherd_entropy_seeded *state, const uint8_t key[32]);
/** The same stream under a key that is BLAKE2b of (label, number) keyed by a 32-byte seed: what one
 *  seed decides in several places without their streams meeting. */
sherd_entropy sherd__entropy_derived(sherd_entropy_seeded *state, const uint8_t seed[32],
                                     const char *label, uint64_t number);

uint64_t sherd__entropy_u64(const sherd_entropy *e);
/** Uniform in [0, n), n > 0, by rejection. */
uint64_t sherd__entropy_below(const sherd_entropy *e, uint64_t n);

#endif
