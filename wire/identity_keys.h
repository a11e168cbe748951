/* Contents of an identity. Only wire/tls.c may include this file; all other files use
 * wire/identity.h. */
#ifndef WIRE_IDENTITY_KEYS_H
#define WIRE_IDENTITY_KEYS_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "wire/identity.h"

struct sherd_identity {
    EVP_PKEY *key; /* Ed25519 private key */
    X509 *cert;    /* self-signed with `key`; only its public key is used */
    uint8_t public_key[32];
    sherd__fingerprint fingerprint;
    char text[SHERD__FINGERPRINT_TEXT];
};

/** Computes the SHA-256 of the DER SubjectPublicKeyInfo of a public key of any type. Errors:
 *  SHERD_ENOMEM, SHERD_EINTERNAL. */
int sherd__fingerprint_of(sherd__fingerprint *out, EVP_PKEY *key) SHERD_MUST;

#endif
