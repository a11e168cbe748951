/*
 * A record of a conversation (--record DIR): for each peer the plaintext protocol bytes that were
 * sent to it and received from it, as they went, and index.json which names them. Coordinator and
 * node write the same form, so that two records can be compared byte for byte and an audit can read
 * what a node saw.
 *
 *     DIR/README      what this is
 *     DIR/NAME.sent, DIR/NAME.received
 *     DIR/index.json  {"schema": "sherd/record/2", "side": ..., "peers": [{"name", "about", "key",
 *                     "domain": {"number", "name"}, "sent": {"file", "bytes", "sha256"},
 *                     "received": {...}}]}, written at the end. domain: in a coordinator's
 *                     record; nodes of one number count as one adversary. Version 1 had neither key
 *                     nor domain, and groups of columns travelled in A's order then.
 *     DIR/coded.jsonl one line for each coded operand (share, share1), as it is coded: see
 *                     sherd__record_coding
 *     DIR/rows.npy    a training's, by sherd train: which row of its data is row i of the operand
 *                     that is kept at the nodes
 *
 * Who learns it: the folder contains enough to rebuild the data; it is made with mode 0700, its
 * files 0600. Every byte is written when it is tapped, so a killed process leaves all that it saw.
 * One thread at a time.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__record sherd__record;
typedef struct sherd__record_peer sherd__record_peer;

/**
 * Makes the folder `dir`, or takes an empty one. side is "coordinator" or "node". SHERD_EOPEN where
 * it cannot be made, is no folder, or holds something already; SHERD_EIO, SHERD_ENOMEM.
 */
int sherd__record_new(sherd__record **out, const char *dir, const char *side,
                      sherd_diag *d) SHERD_MUST;
/**
 * Opens a peer's two files. `name` becomes the files' name: characters outside [A-Za-z0-9._-] turn
 * into '_', and a second peer of a name gets "-2". *out belongs to the record.
 */
int sherd__record_peer_add(sherd__record_peer **out, sherd__record *r, const char *name,
                           sherd_diag *d) SHERD_MUST;
/** What the index says about a peer (its address, key, ...); the last call counts. */
int sherd__record_peer_about(sherd__record_peer *p, const char *about) SHERD_MUST;
/** Its key's fingerprint, as text. SHERD_ENOMEM. */
int sherd__record_peer_key(sherd__record_peer *p, const char *key) SHERD_MUST;
/** Who it counts for: the number and the name of its domain. SHERD_ENOMEM. */
int sherd__record_peer_domain(sherd__record_peer *p, uint32_t number, const char *name) SHERD_MUST;

/** A session's tap (wire/session.h): peer is a sherd__record_peer. A write that fails is kept,
 *  stops the recording of all peers, and is told by sherd__record_error and by the end. */
void sherd__record_tap(void *peer, bool out, const uint8_t *bytes, size_t len);
uint64_t sherd__record_sent(const sherd__record_peer *p);
uint64_t sherd__record_received(const sherd__record_peer *p);
/** The peer says nothing more: its files are closed, and stay. Frees no peer. */
void sherd__record_peer_end(sherd__record_peer *p);

/**
 * How an operand is cut and coded: what a listener sees of it, but not which row of the operand a
 * row of a share has to do with. Share i is domain i's.
 */
typedef struct sherd__record_coded {
    uint64_t job;
    const char *scheme;             /* "share", "share1" */
    uint32_t blocks, masks, shares; /* K, T, N */
    uint64_t rows, cols;            /* of the operand */
    uint64_t part;    /* rows that are cut into K blocks together; the last may be less */
    uint64_t panel;   /* rows of a share in one block that travels, at most */
    bool stays;       /* blocks are numbered by panels, and serve many products */
    uint64_t largest; /* magnitude in fixed point: the scale, in whatever unit the data are */
    uint64_t right;   /* that of B; 0: A stays, and each product has another */
} sherd__record_coded;

/** Appends a line to DIR/coded.jsonl, at once: a killed process leaves it. From any thread, but one
 *  at a time. SHERD_EIO, SHERD_EOPEN, SHERD_ENOMEM. */
int sherd__record_coding(sherd__record *r, const sherd__record_coded *c, sherd_diag *d) SHERD_MUST;

/** 0, or the first write that failed. */
int sherd__record_error(const sherd__record *r, sherd_diag *d) SHERD_MUST;
/** Writes the index and frees everything, also on failure. */
int sherd__record_end(sherd__record *r, sherd_diag *d) SHERD_MUST;

#endif
