/* What the library itself does with identities and lists of peers (sherd/identity.h): fingerprints
 * in binary, signatures, and peers as they are compared. */
#ifndef WIRE_IDENTITY_H
#define WIRE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/identity.h"

#define SHERD__FINGERPRINT_BYTES 32
/** "sha256:" + 43 base64 characters (no padding) + NUL. */
#define SHERD__FINGERPRINT_TEXT 51

typedef struct sherd__fingerprint {
    uint8_t sha256[SHERD__FINGERPRINT_BYTES]; /* of the DER SubjectPublicKeyInfo */
} sherd__fingerprint;

void sherd__fingerprint_text(const sherd__fingerprint *fp, char out[SHERD__FINGERPRINT_TEXT]);
int sherd__fingerprint_parse(sherd__fingerprint *fp, const char *text) SHERD_MUST;
bool sherd__fingerprint_equal(const sherd__fingerprint *a, const sherd__fingerprint *b);

/* sherd_identity (sherd/identity.h) is a key pair with the self-signed certificate that TLS
 * requires. */

/** As sherd_identity_load, for a key in memory, such as one that was received over a pipe. */
int sherd__identity_parse(sherd_identity **out, const char *pem, size_t len,
                          sherd_diag *d) SHERD_MUST;
/** Makes another handle of the same key, so that either may be freed first. */
int sherd__identity_share(sherd_identity **out, const sherd_identity *id) SHERD_MUST;
/** Returns the private key as PEM text; the caller wipes *pem and frees it with sherd__free. */
int sherd__identity_pem(const sherd_identity *id, char **pem, size_t *len) SHERD_MUST;
const sherd__fingerprint *sherd__identity_fingerprint(const sherd_identity *id);
/** Signs msg with Ed25519; sig has 64 bytes. Used for certificates of results (store/). */
int sherd__identity_sign(const sherd_identity *id, const uint8_t *msg, size_t len,
                         uint8_t sig[64]) SHERD_MUST;
/** Returns the raw 32-byte public key in `out`. */
void sherd__identity_public(const sherd_identity *id, uint8_t out[32]);
/** Returns true if sig is a valid signature of msg under this raw public key. */
bool sherd__identity_verify(const uint8_t public_key[32], const uint8_t *msg, size_t len,
                            const uint8_t sig[64]);
/** Computes the fingerprint of a raw public key. */
void sherd__fingerprint_public(sherd__fingerprint *out, const uint8_t public_key[32]);

typedef struct sherd__peer {
    char host[256]; /* "*" in an allow-list: any host */
    uint16_t port;
    bool has_key;
    sherd__fingerprint key;
    char name[64];
    char domain[64]; /* empty: the host is the domain */
    double weight;   /* > 0, default 1; not used: coordinators warn about other values */
    char role[16];   /* "node", "coordinator", or empty */
    uint32_t line;   /* in the file it was read from, counted from 1; 0: not from a file */
} sherd__peer;

typedef struct sherd__peers {
    sherd__peer *list;
    size_t len;
} sherd__peers;

/** Parses one line; `where` ("nodes.txt:3") is the prefix of the error message. For an unknown
 *  word the message suggests the most similar known one. A blank or comment line sets *found to
 *  false. */
int sherd__peer_parse(sherd__peer *out, bool *found, const char *line, const char *where,
                      sherd_diag *d) SHERD_MUST;
/** Returns true if `name` is valid for name= or domain=: 1 to 63 letters, digits or ._-:/@+ */
bool sherd__peer_name_valid(const char *name);
/** Formats the line for a peer, without a newline. Returns its length as snprintf does. */
int sherd__peer_format(const sherd__peer *p, char *out, size_t size);
/** Returns true if the peer's host denotes the local machine: 127.0.0.0/8, ::1, the unspecified
 *  addresses 0.0.0.0 and :: (Linux connects both to loopback), or a name that RFC 6761 reserves for
 *  loopback ("localhost" and names that end in ".localhost"). Other names are not resolved. */
bool sherd__peer_loopback(const sherd__peer *p);
struct in6_addr; /* not included: netinet/in.h defines many names */
/** Does the same for an address. IPv4-mapped IPv6 addresses are recognised. */
bool sherd__address_loopback(const struct in6_addr *at);
/** Reads a file of peers. Two lines with the same key are an error, and the message names both. The
 *  caller frees *out with sherd__peers_fini. */
int sherd__peers_load(sherd__peers *out, const char *path, sherd_diag *d) SHERD_MUST;
/** Does the same for text of len bytes in memory; `where` names it in messages. */
int sherd__peers_parse(sherd__peers *out, const char *text, size_t len, const char *where,
                       sherd_diag *d) SHERD_MUST;
void sherd__peers_fini(sherd__peers *p);
/** Returns the peer with this key, or NULL. The result points into p. */
const sherd__peer *sherd__peers_find(const sherd__peers *p, const sherd__fingerprint *key);

#endif
