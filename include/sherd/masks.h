/*
 * One-time masks for the scheme `blind`: a file of R*B for one public B and a secret random R. A
 * product A*B uses up as many rows of it as A has; none is used twice (product.h: SHERD_BLIND).
 */
#ifndef SHERD_MASKS_H
#define SHERD_MASKS_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/mat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero-initialise, then set what differs. */
typedef struct sherd_masks_options {
    uint64_t rows;     /* of all the A together that these masks will serve */
    uint32_t bits_a;   /* width of A's entries, sign included, 2 to 26; 0: 17 */
    uint32_t bits_b;   /* of B's; 0: as A's, or what B's integers need */
    const char *state; /* folder of the counters of used rows; NULL: the user's,
                             $XDG_STATE_HOME/sherd/masks */
    uint64_t memory;   /* for the work; 0: 64 MiB */
    const char *name;  /* what messages call B; NULL: B */
    /** Told the rows done from time to time, on the calling thread; not 0 stops with
     *  SHERD_EINTERRUPTED. Told of all rows, B is not read any more and the file has no name yet:
     *  the moment to ask whether B's file is what it was. */
    int (*watch)(void *ctx, uint64_t done, uint64_t rows);
    void *ctx;
} sherd_masks_options;

typedef struct sherd_masks_info {
    uint64_t k, m;       /* shape of B */
    uint64_t rows, left; /* all; not used yet */
    uint64_t bytes;      /* of the file */
    uint32_t bits_a, bits_b, primes;
    uint8_t b_sha256[32]; /* digest of B, as certificates have it */
} sherd_masks_info;

/**
 * Makes `path` (0600; all or nothing, an earlier file survives every failure) and the counter of
 * its used rows. Costs as much as the products that it will serve, here. *out may be NULL.
 *
 * Errors: SHERD_ERANGE: NaN, infinity or too wide integers in B, or sums that no set of primes
 * holds; SHERD_EINVAL; SHERD_EOPEN, SHERD_EIO; SHERD_EINTERRUPTED; SHERD_ENOMEM.
 * Who learns it: nobody. Whoever reads the file, also later or from a backup, can undo the masks of
 * all that was and will be sent with it: delete it when it is used up.
 */
SHERD_API int sherd_masks_prepare(const char *path, sherd_view b, const sherd_masks_options *opt,
                                  sherd_masks_info *out, sherd_diag *d) SHERD_MUST;
/** What a file is for and how much is left of it; state as above. Errors as those of its use. */
SHERD_API int sherd_masks_look(sherd_masks_info *out, const char *path, const char *state,
                               sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
