/*
 * TLS 1.3 without a socket: ciphertext in, ciphertext out, and plaintext on the other side. Mutual,
 * with pinned Ed25519 keys and no certificate authority; protocol name `sherd/1` (ALPN); one round
 * trip, no tickets, no resumption, no early data. wire/link.c moves the bytes, tests use memory.
 *
 *     feed ciphertext -> read until it gives nothing -> write plaintext -> pending -> sent
 *
 * After any call, errors included, send what sherd__tls_pending offers: an alert may tell the peer
 * what was wrong.
 */
#ifndef WIRE_TLS_H
#define WIRE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/identity.h"

#define SHERD__ALPN "sherd/1"
/** Ciphertext that is gathered while as much is being sent: two such buffers a connection. */
#define SHERD__TLS_GATHER (256u * 1024u)
/** Sending keys change after so many plaintext bytes; AES-GCM under one key is good for 388 GB
 *  (RFC 8446, 5.5). OpenSSL never does it by itself. */
#define SHERD__TLS_REKEY (UINT64_C(64) << 30)

/** One role under one identity: shared by connections, counted by them. */
typedef struct sherd_tls_context sherd_tls_context;
/** One connection. */
typedef struct sherd_tls sherd_tls;

/** The identity's key and certificate are counted too: it may go before the context does. */
int sherd__tls_context_new(sherd_tls_context **out, const sherd_identity *id, bool server,
                           sherd_diag *d) SHERD_MUST;
/** One more owner, who frees it too. */
sherd_tls_context *sherd__tls_context_share(sherd_tls_context *c);
void sherd__tls_context_free(sherd_tls_context *c);

/** Whom to accept. Nobody else gets further than its certificate. */
typedef struct sherd__tls_policy {
    const sherd__fingerprint *pinned; /* exactly this key; read during the call of new only */
    bool (*allow)(void *ctx, const sherd__fingerprint *key); /* asked where pinned is NULL */
    void *ctx;
    uint64_t rekey_bytes; /* 0: SHERD__TLS_REKEY */
} sherd__tls_policy;

/** A client's first flight is pending at once. SHERD_ENOMEM. */
int sherd__tls_new(sherd_tls **out, sherd_tls_context *c,
                   const sherd__tls_policy *policy) SHERD_MUST;
void sherd__tls_free(sherd_tls *t);

/** Lends received bytes, until sherd__tls_read has given nothing more (it has used them all then).
 *  All bytes lent before must have been used. */
void sherd__tls_feed(sherd_tls *t, const uint8_t *in, size_t len);
/**
 * Goes on with the handshake and decrypts: *got bytes in out, 0 where more must be fed first.
 * Gives at most one record at a time, so 16 KB is all the room that is of use.
 * Errors: sherd__tls_failure has the sentence. SHERD_EAUTH  keys, certificates, TLS before 1.3;
 * SHERD_EVERSION  the protocol name; SHERD_EFRAME  no TLS at all, or damaged; SHERD_ENOMEM.
 */
int sherd__tls_read(sherd_tls *t, uint8_t *out, size_t room, size_t *got) SHERD_MUST;
/** The handshake is done on our side and the peer has proved that it owns an accepted key. A
 *  server may still turn a client away after that, which then sherd__tls_read tells. */
bool sherd__tls_ready(const sherd_tls *t);
/** The peer has said that it sends no more. */
bool sherd__tls_ended(const sherd_tls *t);
/** The key that the peer showed, or NULL while it has shown none. */
const sherd__fingerprint *sherd__tls_peer_key(const sherd_tls *t);
/** code, message and hint of what ended the connection; message reads on from "ADDRESS: ". */
const sherd_diag *sherd__tls_failure(const sherd_tls *t);

/** Whether sherd__tls_write would take something. */
bool sherd__tls_room(const sherd_tls *t);
/** Encrypts the first *taken bytes of in, as many as there is room for. Only when ready. */
int sherd__tls_write(sherd_tls *t, const uint8_t *in, size_t len, size_t *taken) SHERD_MUST;
/** Says that no more will be sent (close_notify). */
void sherd__tls_end(sherd_tls *t);

/** Ciphertext to send; it stays where it is until all of it was sent: writes gather elsewhere. */
size_t sherd__tls_pending(sherd_tls *t, const uint8_t **out);
/** The first n bytes of what pending offered are sent. */
void sherd__tls_sent(sherd_tls *t, size_t n);

#endif
