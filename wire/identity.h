/*
 * Who is who: Ed25519 key files, their fingerprints, and the one line grammar of node files,
 * allow-lists and coordinators:
 *
 *     host:port key=sha256:BASE64 name=... domain=... weight=... role=node|coordinator
 *
 * One peer a line, `#` starts a comment, blank lines are skipped. In an allow-list host:port may be
 * `*`. IPv6 hosts stand in brackets.
 */
#ifndef WIRE_IDENTITY_H
#define WIRE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__FINGERPRINT_BYTES 32
/** "sha256:" + 43 base64 characters (no padding) + NUL. */
#define SHERD__FINGERPRINT_TEXT 51

typedef struct sherd__fingerprint {
    uint8_t sha256[SHERD__FINGERPRINT_BYTES]; /* of the DER SubjectPublicKeyInfo */
} sherd__fingerprint;

void sherd__fingerprint_text(const sherd__fingerprint *fp, char out[SHERD__FINGERPRINT_TEXT]);
int sherd__fingerprint_parse(sherd__fingerprint *fp, const char *text) SHERD_MUST;
bool sherd__fingerprint_equal(const sherd__fingerprint *a, const sherd__fingerprint *b);

/** An Ed25519 key pair with the self-signed certificate that TLS wants. Opaque; wiped when
 *  freed. */
typedef struct sherd_identity sherd_identity;

/** A fresh key, in memory only. */
int sherd__identity_new(sherd_identity **out) SHERD_MUST;
/** Reads a PKCS#8 PEM file. SHERD_EOPEN; SHERD_EKEY for a malformed one, another algorithm, or one
 *  that others may read (mode & 077), each with sentence and remedy in *d. */
int sherd__identity_load(sherd_identity **out, const char *path, sherd_diag *d) SHERD_MUST;
/** The same from memory (a key that came over a pipe). */
int sherd__identity_parse(sherd_identity **out, const char *pem, size_t len,
                          sherd_diag *d) SHERD_MUST;
/** Writes a new 0600 PKCS#8 PEM file; never overwrites one (SHERD_EOPEN). */
int sherd__identity_save(const sherd_identity *id, const char *path, sherd_diag *d) SHERD_MUST;
/** PEM text of the private key; *pem is the caller's: wipe and sherd__free it. */
int sherd__identity_pem(const sherd_identity *id, char **pem, size_t *len) SHERD_MUST;
const sherd__fingerprint *sherd__identity_fingerprint(const sherd_identity *id);
/** Ed25519 over msg; sig has 64 bytes. For certificates of results (store/). */
int sherd__identity_sign(const sherd_identity *id, const uint8_t *msg, size_t len,
                         uint8_t sig[64]) SHERD_MUST;
/** The raw 32-byte public key. */
void sherd__identity_public(const sherd_identity *id, uint8_t out[32]);
/** Whether sig is the signature of msg by whoever has the private half of this raw public key. */
bool sherd__identity_verify(const uint8_t public_key[32], const uint8_t *msg, size_t len,
                            const uint8_t sig[64]);
/** The fingerprint of a raw public key. */
void sherd__fingerprint_public(sherd__fingerprint *out, const uint8_t public_key[32]);
void sherd__identity_free(sherd_identity *id);

typedef struct sherd__peer {
    char host[256]; /* "*" in an allow-list: any */
    uint16_t port;
    bool has_key;
    sherd__fingerprint key;
    char name[64];
    char domain[64]; /* empty: the host is the domain */
    double weight;   /* > 0, default 1; of no effect: coordinators warn of any other */
    char role[16];   /* "node", "coordinator", or empty */
    uint32_t line;   /* of the file it was read from, from 1; 0: none */
} sherd__peer;

typedef struct sherd__peers {
    sherd__peer *list;
    size_t len;
} sherd__peers;

/** Parses one line; `where` ("nodes.txt:3") opens the message. Unknown words name the nearest known
 *  one. A blank or comment line gives *found = false. */
int sherd__peer_parse(sherd__peer *out, bool *found, const char *line, const char *where,
                      sherd_diag *d) SHERD_MUST;
/** True where a line may have it as name= or domain=: 1 to 63 letters, digits and . _ - : / @ + */
bool sherd__peer_name_valid(const char *name);
/** Writes the line for a peer (without newline); returns its length as snprintf does. */
int sherd__peer_format(const sherd__peer *p, char *out, size_t size);
/** Whether its address means the machine that asks: 127.0.0.0/8, ::1, the unspecified 0.0.0.0 and
 *  :: (Linux connects both to loopback), or a name that RFC 6761 keeps for it ("localhost" and what
 *  ends in ".localhost"). Other names are not looked up. */
bool sherd__peer_loopback(const sherd__peer *p);
struct in6_addr; /* netinet/in.h, whose names are many */
/** The same of an address, IPv4 in IPv6's form included. */
bool sherd__address_loopback(const struct in6_addr *at);
/** Reads a file; two lines with one key are an error that names both. sherd__peers_fini frees. */
int sherd__peers_load(sherd__peers *out, const char *path, sherd_diag *d) SHERD_MUST;
/** The same from memory: text of len bytes, `where` names it in messages. */
int sherd__peers_parse(sherd__peers *out, const char *text, size_t len, const char *where,
                       sherd_diag *d) SHERD_MUST;
void sherd__peers_fini(sherd__peers *p);
/** The peer with this key, or NULL. */
const sherd__peer *sherd__peers_find(const sherd__peers *p, const sherd__fingerprint *key);

#endif
