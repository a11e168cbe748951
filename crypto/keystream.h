/*
 * The ChaCha20 keystream (the original: 64-bit nonce, 64-bit block counter), read at any block.
 * All that the seed decides (permutations, exposures, row shuffles) is drawn from it.
 */
#ifndef CRYPTO_KEYSTREAM_H
#define CRYPTO_KEYSTREAM_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__KEYSTREAM_BLOCK 64u

/** One key, ready to be read. Not shared between threads. */
typedef struct sherd__keystream {
    void *cipher; /* EVP_CIPHER_CTX */
} sherd__keystream;

/** SHERD_ENOMEM, or SHERD_EINTERNAL where OpenSSL has no ChaCha20 (a FIPS-only configuration). */
int sherd__keystream_init(sherd__keystream *ks, const uint8_t key[32]) SHERD_MUST;
/** Forgets the key. Allowed on a zeroed struct and after a failed init. */
void sherd__keystream_fini(sherd__keystream *ks);

/**
 * Writes len bytes of the stream of `nonce` from the start of `block` on. The bytes equal
 * libsodium's crypto_stream_chacha20_xor_ic over zeros with the nonce little-endian. A call costs
 * some 0.1 us beside the bytes: ask for many short rows at once.
 */
int sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                          size_t len) SHERD_MUST;

#endif
