/* What an identity holds, for wire/tls.c alone: everybody else uses wire/identity.h. */
#ifndef WIRE_IDENTITY_KEYS_H
#define WIRE_IDENTITY_KEYS_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "wire/identity.h"

struct sherd_identity {
    EVP_PKEY *key; /* Ed25519, private */
    X509 *cert;    /* self-signed with it; only its public key means anything */
    uint8_t public_key[32];
    sherd__fingerprint fingerprint;
};

/** SHA-256 of the DER SubjectPublicKeyInfo of any public key. SHERD_ENOMEM, SHERD_EINTERNAL. */
int sherd__fingerprint_of(sherd__fingerprint *out, EVP_PKEY *key) SHERD_MUST;

#endif
