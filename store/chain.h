/*
 * A chain of checkpoints: a private folder (0700) of numbered .npz files. Each contains the SHA-256
 * of the previous file. A file `head` names the last one and its hash.
 *
 *     checkpoint-000000000040.npz    members as given, and: format, number, previous
 *     checkpoint-000000000080.npz
 *     head                           checkpoint-000000000080.npz sha256:...
 *
 * A file is synced before it gets its name, and gets its name before `head` refers to it. A process
 * that is killed therefore leaves all earlier files intact, and at most one file that `head` does
 * not name yet. Walking the chain detects damaged, exchanged and missing files. A user who can
 * write to the folder can replace the whole chain; only a copy of the head's hash, stored
 * elsewhere, reveals that.
 *
 * Who learns it: a checkpoint contains model, seed and gradients. Files have mode 0600.
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
/** Maximum number of files in one folder. */
#define SHERD__CHAIN_MAX 1000000u

typedef struct sherd__chain_link {
    char name[SHERD__CHAIN_NAME]; /* of the file in the folder; empty: no file */
    uint64_t number;
    sherd__digest hash; /* of the bytes of the file */
} sherd__chain_link;

/** The result of a walk. */
typedef struct sherd__chain_report {
    size_t len; /* number of files; each is intact and named by the next */
    sherd__chain_link first, last;
    bool whole; /* the first file names no previous one; otherwise earlier files were removed */
    bool late;  /* the head does not name the last file yet */
} sherd__chain_report;

/**
 * Reads every file of the folder and checks it against the next file and the head. Sets len to 0 if
 * the folder has no checkpoint. Errors: SHERD_ECHAIN says which file is damaged, is not the one
 * that the next file names, or is missing at the end; SHERD_EVERSION: another format; SHERD_EOPEN,
 * SHERD_EIO, SHERD_ENOMEM.
 */
int sherd__chain_walk(const char *folder, sherd__chain_report *out, sherd_diag *d) SHERD_MUST;

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct sherd__chain sherd__chain;

/** One array of a checkpoint, in C order. Borrowed until the call returns. */
typedef struct sherd__chain_member {
    const char *name; /* not format, number or previous */
    sherd_dtype dtype;
    unsigned ndim; /* 1: rows is 1 */
    size_t rows, cols;
    const void *values;
} sherd__chain_member;

/**
 * Opens a folder for adding, creates it if it does not exist, and walks its files. The folder is
 * locked while it is open. The caller closes *out with sherd__chain_close; it is NULL on failure.
 * Errors: SHERD_EBUSY if another process has the folder open; SHERD_EINVAL if `go_on` is false and
 * the folder has checkpoints; the errors of sherd__chain_walk.
 */
int sherd__chain_open(sherd__chain **out, const char *folder, bool go_on, sherd_diag *d) SHERD_MUST;
/** Returns the newest file in *out, or false if there is none. */
bool sherd__chain_newest(const sherd__chain *c, sherd__chain_link *out);
/** Adds a checkpoint; `number` must be above the newest one's. On failure the chain is unchanged,
 *  or has the new file as its newest and a head that does not name it yet, which the next addition
 *  repairs first. Errors: SHERD_EINVAL (number, a name), SHERD_EIO, SHERD_EOPEN, SHERD_ENOMEM. */
int sherd__chain_add(sherd__chain *c, uint64_t number, const sherd__chain_member *members,
                     size_t len, sherd_diag *d) SHERD_MUST;
/** Removes all files except the newest `keep` (at least 1), oldest first. Errors: SHERD_EIO. */
int sherd__chain_prune(sherd__chain *c, size_t keep, sherd_diag *d) SHERD_MUST;
/** Closes the folder and releases its lock. NULL is allowed. */
void sherd__chain_close(sherd__chain *c);

#endif
