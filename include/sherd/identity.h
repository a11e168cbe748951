/*
 * Identities: the private keys of nodes and coordinators, and the lists by which they know each
 * other. A key is Ed25519. Its fingerprint, "sha256:" and 43 base64 characters, is not secret.
 *
 * Node files and allow-lists have one form. Each line describes one peer, `#` starts a comment, and
 * blank lines are skipped:
 *
 *     host:port key=sha256:... name=... domain=... weight=... role=node|coordinator
 *
 * In an allow-list host:port may be `*`. IPv6 hosts are enclosed in brackets.
 */
#ifndef SHERD_IDENTITY_H
#define SHERD_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A private key. Any thread may read it. */
typedef struct sherd_identity sherd_identity;

/** Makes a new key in memory. The caller frees *out with sherd_identity_free. SHERD_ENOMEM. */
SHERD_API int sherd_identity_new(sherd_identity **out, sherd_diag *d) SHERD_MUST;
/** Reads a PKCS#8 PEM file. The caller frees *out with sherd_identity_free. SHERD_EOPEN; SHERD_EKEY
 *  if the file is malformed, has a passphrase, holds a key of another algorithm, or is accessible
 *  to other users (mode & 077); SHERD_ENOMEM. */
SHERD_API int sherd_identity_load(sherd_identity **out, const char *path, sherd_diag *d) SHERD_MUST;
/** Writes a new PKCS#8 PEM file with mode 0600, completely or not at all. Never overwrites an
 *  existing file (SHERD_EOPEN). SHERD_EIO, SHERD_ENOMEM. */
SHERD_API int sherd_identity_save(const sherd_identity *id, const char *path,
                                  sherd_diag *d) SHERD_MUST;
/** Returns the fingerprint of the key, the text after key= in a list. It is valid as long as id. */
SHERD_API const char *sherd_identity_key(const sherd_identity *id);
/** Wipes and frees; NULL is allowed. */
SHERD_API void sherd_identity_free(sherd_identity *id);

typedef enum sherd_role {
    SHERD_ROLE_NONE, /* not given: a node in a node file, a coordinator in an allow-list */
    SHERD_ROLE_NODE,
    SHERD_ROLE_COORDINATOR
} sherd_role;

/** One line of a list. */
typedef struct sherd_peer {
    size_t size;     /* sizeof(sherd_peer), set by the caller */
    char host[256];  /* name or address, IPv6 without brackets; "*": any host */
    uint32_t port;   /* 1 to 65535; 0 if host is "*" */
    char key[56];    /* fingerprint; empty: not given */
    char name[64];   /* empty: not given */
    char domain[64]; /* empty: not given, the host is the domain */
    double weight;   /* part of the work relative to that of others; 1 if not given */
    sherd_role role;
    bool loopback; /* host is a loopback address, an unspecified one, or a name that is reserved
                      for loopback; other names are not resolved */
    uint32_t line; /* in the list, counted from 1 */
} sherd_peer;

SHERD_API const sherd_field *sherd_peer_fields(size_t *count);

/** A list that was read. */
typedef struct sherd_peers sherd_peers;

/** Reads a list from a file. The caller frees *out with sherd_peers_free. SHERD_EOPEN, SHERD_EIO;
 *  SHERD_EFORMAT with the line and its fault: two lines with one key, too; SHERD_ENOMEM. */
SHERD_API int sherd_peers_load(sherd_peers **out, const char *path, sherd_diag *d) SHERD_MUST;
/** Reads a list from a terminated text; `name` names it in messages, NULL: "list". Otherwise as
 *  sherd_peers_load. */
SHERD_API int sherd_peers_parse(sherd_peers **out, const char *text, const char *name,
                                sherd_diag *d) SHERD_MUST;
SHERD_API size_t sherd_peers_count(const sherd_peers *p);
/** Fills *out with the i-th peer, i < sherd_peers_count. SHERD_EINVAL. */
SHERD_API int sherd_peers_at(const sherd_peers *p, size_t i, sherd_peer *out,
                             sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_peers_free(sherd_peers *p);

/** Size that is enough for every line. */
#define SHERD_PEER_LINE_SIZE 1024u

/** Writes a peer's line, terminated and without a newline, to out (size bytes). `loopback` and
 *  `line` are not read; weight 0 means 1. SHERD_EINVAL: size is too small; SHERD_EFORMAT: a member
 *  that no line can have, such as a name with a space. out is unchanged then. */
SHERD_API int sherd_peer_write(const sherd_peer *p, char *out, size_t size,
                               sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
