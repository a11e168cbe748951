/*
 * One-time masks for the scheme `blind`: a file of R*B for one public B and a secret random R. A
 * product A*B uses up as many rows of the file as A has. No row is used twice (product.h:
 * SHERD_BLIND).
 */
#ifndef SHERD_MASKS_H
#define SHERD_MASKS_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/mat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero-initialise, set size, then set what differs. */
typedef struct sherd_masks_options {
    size_t size;       /* sizeof(sherd_masks_options) */
    uint64_t rows;     /* number of rows, in all A together, that these masks will serve */
    uint32_t bits_a;   /* width of A's entries, sign included, 2 to 26; 0: 17 */
    uint32_t bits_b;   /* width of B's entries; 0: as bits_a, or the width of B's integers */
    const char *state; /* folder of the counters of used rows; NULL: the user's folder,
                          $XDG_STATE_HOME/sherd/masks */
    uint64_t memory;   /* working memory, bytes; 0: 64 MiB */
    const char *name;  /* name of B in messages; NULL: "B" */
    sherd_hooks hooks; /* progress counts rows */
    /** NULL, or called with check_ctx when B has been read completely and the file has no name yet,
     *  to check that B did not change meanwhile. An error ends the call, and nothing is written. */
    int (*check)(void *ctx, sherd_diag *d);
    void *check_ctx;
} sherd_masks_options;

typedef struct sherd_masks_info {
    size_t size;         /* sizeof(sherd_masks_info), set by the caller */
    uint64_t k, m;       /* shape of B */
    uint64_t rows, left; /* number of rows; number of unused rows */
    uint64_t bytes;      /* size of the file */
    uint32_t bits_a, bits_b, primes;
    uint8_t b_sha256[32]; /* digest of B, as in certificates */
} sherd_masks_info;

SHERD_API const sherd_field *sherd_masks_info_fields(size_t *count);

/**
 * Makes `path` (mode 0600) and the counter of its used rows. The file is written completely or not
 * at all; an earlier file survives every failure. The work on this machine costs as much as the
 * products that the masks will serve. *out may be NULL.
 *
 * Errors: SHERD_ERANGE: NaN, infinity or too wide integers in B, or sums that no set of primes
 * holds; SHERD_EINVAL; SHERD_EOPEN, SHERD_EIO; SHERD_EINTERRUPTED; SHERD_ENOMEM. Who learns it: no
 * node. Every reader of the file, also later or from a backup, can remove the masks of all data
 * that was or will be sent with it: delete the file when it is used up.
 */
SHERD_API int sherd_masks_prepare(const char *path, sherd_view b, const sherd_masks_options *opt,
                                  sherd_masks_info *out, sherd_diag *d) SHERD_MUST;
/** Reads what a file is for and how many of its rows are left; `state` as in sherd_masks_options.
 *  Errors: as of a product that uses the file. */
SHERD_API int sherd_masks_get(const char *path, const char *state, sherd_masks_info *out,
                              sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
