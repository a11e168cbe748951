/*
 * The ChaCha20 keystream (the original version: 64-bit nonce, 64-bit block counter), readable from
 * any block. Everything that the seed determines (permutations, exposures, row shuffles) is drawn
 * from it.
 */
#ifndef CRYPTO_KEYSTREAM_H
#define CRYPTO_KEYSTREAM_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__KEYSTREAM_BLOCK 64u

/** A keystream under one key. It must not be shared between threads. */
typedef struct sherd__keystream {
    void *cipher; /* EVP_CIPHER_CTX */
} sherd__keystream;

/** Sets the key. Errors: SHERD_ENOMEM, or SHERD_EINTERNAL where OpenSSL has no ChaCha20 (a
 *  FIPS-only configuration). */
int sherd__keystream_init(sherd__keystream *ks, const uint8_t key[32]) SHERD_MUST;
/** Wipes the key. Allowed on a zeroed struct and after a failed init. */
void sherd__keystream_fini(sherd__keystream *ks);

/**
 * Writes len bytes of the stream of `nonce`, from the start of `block`. The bytes equal libsodium's
 * crypto_stream_chacha20_xor_ic over zeros with the nonce little-endian. A call has a fixed cost of
 * some 0.1 us: read many short rows in one call.
 */
int sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                          size_t len) SHERD_MUST;

#endif
