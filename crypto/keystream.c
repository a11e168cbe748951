/*
 * Uses OpenSSL's ChaCha20 instead of libsodium's: the same bytes, three times as fast (it has
 * AVX-512 code). Its IV of 16 bytes is the block counter and the nonce, both 64 bits little-endian,
 * so that seeking means setting an IV. The cipher uses a 32-bit counter internally. A read that
 * crosses a multiple of 2^32 blocks is split there and the IV is set again, so that the result does
 * not depend on how a version of OpenSSL carries.
 */
#include "crypto/keystream.h"

#include <openssl/evp.h>

#include "core/bytes.h"

/* The plain text: zeros from the first-level cache cost nothing, while clearing the output first
 * would write it twice. */
enum { CHUNK = 1 << 14 };
static const uint8_t zeros[CHUNK];

int sherd__keystream_init(sherd__keystream *ks, const uint8_t key[32])
{
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    ks->cipher = NULL;
    if (!c) return SHERD_ENOMEM;
    if (EVP_EncryptInit_ex(c, EVP_chacha20(), NULL, key, NULL) != 1) {
        EVP_CIPHER_CTX_free(c);
        return SHERD_EINTERNAL;
    }
    ks->cipher = c;
    return SHERD_OK;
}

void sherd__keystream_fini(sherd__keystream *ks)
{
    EVP_CIPHER_CTX_free(ks->cipher); /* wipes the key; NULL is allowed */
    ks->cipher = NULL;
}

/* Reads within one span of 2^32 blocks. */
static int read_span(EVP_CIPHER_CTX *c, uint64_t nonce, uint64_t block, uint8_t *out, size_t len)
{
    uint8_t iv[16];
    sherd__put_u64(iv, block);
    sherd__put_u64(iv + 8, nonce);
    if (EVP_EncryptInit_ex(c, NULL, NULL, NULL, iv) != 1) return SHERD_EINTERNAL;
    while (len > 0) {
        size_t n = len < CHUNK ? len : CHUNK;
        int done;
        if (EVP_EncryptUpdate(c, out, &done, zeros, (int)n) != 1) return SHERD_EINTERNAL;
        out += n;
        len -= n;
    }
    return SHERD_OK;
}

int sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                          size_t len)
{
    uint8_t *at = out;
    while (len > 0) {
        uint64_t blocks = (UINT64_C(1) << 32) - (block & UINT32_MAX);
        size_t n = len / SHERD__KEYSTREAM_BLOCK >= blocks ? (size_t)blocks * SHERD__KEYSTREAM_BLOCK
                                                          : len;
        int err = read_span(ks->cipher, nonce, block, at, n);
        if (err) return err;
        at += n;
        len -= n;
        block += blocks;
    }
    return SHERD_OK;
}
