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

/** Deterministic stream (ChaCha20 under `seed`): for tests and simulations only. */
typedef struct sherd_entropy_seeded {
    uint8_t key[32];
    uint64_t drawn; /* bytes drawn so far, rounded up to whole 64-byte blocks */
} sherd_entropy_seeded;
sherd_entropy sherd__entropy_seeded(sherd_entropy_seeded *state, uint64_t seed);

uint64_t sherd__entropy_u64(const sherd_entropy *e);
/** Uniform in [0, n), n > 0, by rejection. */
uint64_t sherd__entropy_below(const sherd_entropy *e, uint64_t n);

#endif
