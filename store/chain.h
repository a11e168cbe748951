/*
 * A chain of checkpoints: a private folder (0700) of numbered .npz files, each holding the SHA-256
 * of the file before it, and a file `head` that names the last one and its hash.
 *
 *     checkpoint-000000000040.npz    members as given, and: format, number, previous
 *     checkpoint-000000000080.npz
 *     head                           checkpoint-000000000080.npz sha256:...
 *
 * A file is synced before it has its name, and named before `head` speaks of it: a process that is
 * killed leaves all that was there, and at most one file that `head` does not know yet. Walking the
 * chain finds damage, exchanged and missing files. Whoever may write the folder can make another
 * chain; only the head's hash, kept elsewhere, tells that.
 *
 * Who learns it: a checkpoint holds model, seed and gradients. Files are 0600.
 */
#ifndef STORE_CHAIN_H
#define STORE_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"
#include "store/digest.h"

#define SHERD__CHAIN_FORMAT "sherd-checkpoint-1"
#define SHERD__CHAIN_NAME 40u
/** Files of one folder that are looked at. */
#define SHERD__CHAIN_MAX 1000000u

typedef struct sherd__chain_link {
    char name[SHERD__CHAIN_NAME]; /* of the file in the folder; empty: there is none */
    uint64_t number;
    sherd__digest hash; /* of its bytes */
} sherd__chain_link;

/** What a walk found. */
typedef struct sherd__chain_report {
    size_t len; /* files, all of them whole and each named by the next */
    sherd__chain_link first, last;
    bool whole; /* the first names none before it; else earlier ones have been removed */
    bool late;  /* the head does not know the last file yet */
} sherd__chain_report;

/**
 * Reads every file of the folder through and holds each against the next and the head. With no
 * checkpoint in it len is 0. SHERD_ECHAIN says which file, and what is wrong: damaged, not the one
 * that the next names, missing at the end. SHERD_EVERSION: another format; SHERD_EOPEN, SHERD_EIO,
 * SHERD_ENOMEM.
 */
int sherd__chain_walk(const char *folder, sherd__chain_report *out, sherd_diag *d) SHERD_MUST;

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct sherd__chain sherd__chain;

/** One array of a checkpoint: C order, borrowed until the call returns. */
typedef struct sherd__chain_member {
    const char *name; /* not format, number or previous */
    sherd_dtype dtype;
    unsigned ndim; /* 1: rows is 1 */
    size_t rows, cols;
    const void *values;
} sherd__chain_member;

/**
 * Opens a folder to add to, making it where it is not there, and walks what is in it. It is locked
 * for as long as it is open: SHERD_EBUSY where another process has it. `go_on` false: a folder that
 * has checkpoints is SHERD_EINVAL. *out is the caller's (sherd__chain_close), NULL on failure.
 * Errors of sherd__chain_walk.
 */
int sherd__chain_open(sherd__chain **out, const char *folder, bool go_on, sherd_diag *d) SHERD_MUST;
/** The newest file; false where there is none. */
bool sherd__chain_newest(const sherd__chain *c, sherd__chain_link *out);
/** Adds a checkpoint; `number` is above the newest's. On failure the chain is as it was, or has the
 *  new file as its newest and a late head, which the next one that is added mends first.
 *  SHERD_EINVAL (number, a name), SHERD_EIO, SHERD_EOPEN, SHERD_ENOMEM. */
int sherd__chain_add(sherd__chain *c, uint64_t number, const sherd__chain_member *members,
                     size_t len, sherd_diag *d) SHERD_MUST;
/** Removes all but the newest `keep` (at least 1) files, oldest first. SHERD_EIO. */
int sherd__chain_prune(sherd__chain *c, size_t keep, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__chain_close(sherd__chain *c);

#endif
