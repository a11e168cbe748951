/*
 * A recording of an exchange (--record DIR): for each peer the plaintext protocol bytes that were
 * sent to it and received from it, in the order of transmission, and index.json, which names the
 * files. Coordinator and node write the same format, so that two recordings can be compared byte
 * for byte, and an audit can read what a node saw.
 *
 *     DIR/README      explains the folder
 *     DIR/NAME.sent, DIR/NAME.received
 *     DIR/index.json  {"schema": "sherd/record/2", "side": ..., "peers": [{"name", "about", "key",
 *                     "domain": {"number", "name"}, "sent": {"file", "bytes", "sha256"},
 *                     "received": {...}}]}, written at the end. domain: only in a coordinator's
 *                     recording; nodes with the same number count as one adversary. Version 1 had
 *                     neither key nor domain, and sent groups of columns in A's order.
 *     DIR/coded.jsonl one line for each coded operand (share, share1), written when it is coded:
 *                     see sherd__record_coding
 *     DIR/rows.npy    written by sherd train: the row of its data that is row i of the operand
 *                     stored at the nodes
 *
 * Who learns it: the folder contains enough to reconstruct the data. It is created with mode 0700,
 * its files with 0600. Every byte is written when it is tapped, so a killed process leaves
 * everything that it saw. One thread at a time.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__recording sherd__recording;
typedef struct sherd__record_peer sherd__record_peer;

/**
 * Creates the folder `dir`, or uses an empty one. side is "coordinator" or "node". The caller frees
 * *out with sherd__record_end. Errors: SHERD_EOPEN if it cannot be created, is not a folder, or is
 * not empty; SHERD_EIO, SHERD_ENOMEM.
 */
int sherd__record_new(sherd__recording **out, const char *dir, const char *side,
                      sherd_diag *d) SHERD_MUST;
/**
 * Opens the two files of a peer. `name` becomes the name of the files: characters outside
 * [A-Za-z0-9._-] are replaced by '_', and a second peer of the same name gets the suffix "-2". *out
 * belongs to the recording.
 */
int sherd__record_peer_add(sherd__record_peer **out, sherd__recording *r, const char *name,
                           sherd_diag *d) SHERD_MUST;
/** Sets the description of a peer in the index (its address, key, ...); the last call is
 *  effective. */
int sherd__record_peer_about(sherd__record_peer *p, const char *about) SHERD_MUST;
/** Sets the fingerprint of the peer's key, as text. Errors: SHERD_ENOMEM. */
int sherd__record_peer_key(sherd__record_peer *p, const char *key) SHERD_MUST;
/** Sets the number and name of the peer's domain. Errors: SHERD_ENOMEM. */
int sherd__record_peer_domain(sherd__record_peer *p, uint32_t number, const char *name) SHERD_MUST;

/** The tap of a session (wire/session.h); peer is a sherd__record_peer. The first write error is
 *  stored and stops the recording of all peers. sherd__record_error and sherd__record_end report
 *  it. */
void sherd__record_tap(void *peer, bool out, const uint8_t *bytes, size_t len);
/** Returns the folder. */
const char *sherd__record_dir(const sherd__recording *r);
/** Closes the files of a peer that sends nothing more. The files stay, and the peer is not
 *  freed. */
void sherd__record_peer_end(sherd__record_peer *p);

/**
 * How an operand is partitioned and coded: what an observer of the traffic sees of it, but not
 * which row of the operand corresponds to a row of a share. Share i belongs to domain i.
 */
typedef struct sherd__record_coded {
    uint64_t job;
    const char *scheme;             /* "share", "share1" */
    const char *code;               /* "lagrange", "inner" */
    uint32_t blocks, masks, shares; /* K, T, N */
    uint64_t rows, cols;            /* of the operand */
    /* rows that are divided into K blocks together; the last part may have fewer */
    uint64_t part;
    uint64_t panel;   /* maximum rows of a share in one transmitted block */
    bool stays;       /* blocks are numbered by panels, and are used for many products */
    uint64_t largest; /* largest magnitude in fixed point: the scale, in the data's unit */
    uint64_t right;   /* likewise for B; 0: A is kept, and each product has another B */
} sherd__record_coded;

/** Appends a line to DIR/coded.jsonl at once, so that a killed process leaves it. Any thread may
 *  call it, but only one at a time. Errors: SHERD_EIO, SHERD_EOPEN, SHERD_ENOMEM. */
int sherd__record_coding(sherd__recording *r, const sherd__record_coded *c,
                         sherd_diag *d) SHERD_MUST;

/** Returns 0, or the first write error. */
int sherd__record_error(const sherd__recording *r, sherd_diag *d) SHERD_MUST;
/** Writes the index and frees everything, on failure too. */
int sherd__record_end(sherd__recording *r, sherd_diag *d) SHERD_MUST;

#endif
