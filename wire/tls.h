/*
 * TLS 1.3 without a socket: ciphertext in, ciphertext out, and plaintext on the other side.
 * Authentication is mutual, with pinned Ed25519 keys and no certificate authority. The protocol
 * name (ALPN) is `sherd/1`. The handshake takes one round trip; there are no tickets, no resumption
 * and no early data. wire/link.c moves the bytes; tests use memory.
 *
 *     feed ciphertext -> read until it gives nothing -> write plaintext -> pending -> sent
 *
 * After any call, errors included, send what sherd__tls_pending returns: an alert may tell the peer
 * the reason of an error.
 */
#ifndef WIRE_TLS_H
#define WIRE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/identity.h"

#define SHERD__ALPN "sherd/1"
/** Ciphertext bytes gathered while as many are being sent: each connection has two such buffers. */
#define SHERD__TLS_GATHER (256u * 1024u)
/** Plaintext bytes after which the sending keys change. AES-GCM under one key is safe for 388 GB
 *  (RFC 8446, 5.5). OpenSSL never changes keys by itself. */
#define SHERD__TLS_REKEY (UINT64_C(64) << 30)

/** One role under one identity. Reference-counted and shared by connections. */
typedef struct sherd__tls_context sherd__tls_context;
/** One connection. */
typedef struct sherd__tls sherd__tls;

/** Creates a context. It holds references to the key and certificate of the identity, so the
 *  identity may be freed first. The caller frees it with sherd__tls_context_free. */
int sherd__tls_context_new(sherd__tls_context **out, const sherd_identity *id, bool server,
                           sherd_diag *d) SHERD_MUST;
/** Adds an owner, who must call sherd__tls_context_free too. Returns c. */
sherd__tls_context *sherd__tls_context_share(sherd__tls_context *c);
void sherd__tls_context_free(sherd__tls_context *c);

/** Which peer keys to accept. Any other peer is rejected when it presents its certificate. */
typedef struct sherd__tls_policy {
    const sherd__fingerprint *pinned; /* only this key; read only during sherd__tls_new */
    bool (*allow)(void *ctx, const sherd__fingerprint *key); /* called if pinned is NULL */
    void *ctx;
    uint64_t rekey_bytes; /* 0: SHERD__TLS_REKEY */
} sherd__tls_policy;

/** Creates a connection. A client's first flight is pending at once. Errors: SHERD_ENOMEM. */
int sherd__tls_new(sherd__tls **out, sherd__tls_context *c,
                   const sherd__tls_policy *policy) SHERD_MUST;
void sherd__tls_free(sherd__tls *t);

/** Lends received bytes to the connection until sherd__tls_read returns nothing more, when all of
 *  them have been used. All bytes lent before must have been used. */
void sherd__tls_feed(sherd__tls *t, const uint8_t *in, size_t len);
/**
 * Continues the handshake and decrypts: writes *got bytes to out, 0 if more must be fed first. It
 * decrypts at most one record per call, so room of more than 16 KB is not useful. On error
 * sherd__tls_failure has the message. Errors: SHERD_EAUTH  keys, certificates, TLS before 1.3;
 * SHERD_EVERSION  the protocol name; SHERD_EFRAME  not TLS, or damaged; SHERD_ENOMEM.
 */
int sherd__tls_read(sherd__tls *t, uint8_t *out, size_t room, size_t *got) SHERD_MUST;
/** Returns true if the handshake is done on our side and the peer has proved that it owns an
 *  accepted key. A server may still reject a client after that; sherd__tls_read then reports it. */
bool sherd__tls_ready(const sherd__tls *t);
/** Returns true if the peer has announced that it sends no more data. */
bool sherd__tls_ended(const sherd__tls *t);
/** Returns the key that the peer presented, or NULL if it has presented none yet. */
const sherd__fingerprint *sherd__tls_peer_key(const sherd__tls *t);
/** Returns code, message and hint of the error that ended the connection; message is written to
 *  follow "ADDRESS: ". */
const sherd_diag *sherd__tls_failure(const sherd__tls *t);

/** Returns true if sherd__tls_write would accept data. */
bool sherd__tls_room(const sherd__tls *t);
/** Encrypts the first *taken bytes of in, as many as there is room for. The connection must be
 *  ready. */
int sherd__tls_write(sherd__tls *t, const uint8_t *in, size_t len, size_t *taken) SHERD_MUST;
/** Announces that no more data will be sent (close_notify). */
void sherd__tls_end(sherd__tls *t);

/** Returns ciphertext to send. It stays valid until all of it has been sent: writes go to another
 *  buffer. */
size_t sherd__tls_pending(sherd__tls *t, const uint8_t **out);
/** Reports that the first n bytes that sherd__tls_pending returned have been sent. */
void sherd__tls_sent(sherd__tls *t, size_t n);

#endif
