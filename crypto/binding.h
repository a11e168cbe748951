/*
 * Binding of masks to the content that they hide. A mask may hide one content only: u = x + r sent
 * for one x and for another reveals x - x'. Operands are mapped files and memory of the caller,
 * which other programs may write while a job runs, and rows are hidden again for every tile, every
 * repeated attempt and every check. Each run of rows that has masks of its own is therefore bound
 * to its content by a keyed hash. The hash covers the private copy that is encoded, never the
 * operand, which may change in between. A mask hides only numbers that are small compared with
 * 2^53. The copy is therefore also checked against the range that was found when the job began: a
 * number beyond it, or a NaN, counts as changed content.
 *
 * The hash is NH (Black, Halevi, Krawczyk, Krovetz, Rogaway, "UMAC", Crypto 1999) of the 64 bits of
 * every number, two instances by a shifted key, then a polynomial modulo 2^61-1 over blocks of
 * SHERD__BINDING_BLOCK numbers. For a secret key two contents of n numbers have the same tag with
 * probability below 2^-64 + (n / SHERD__BINDING_BLOCK + 1) * 2^-59. Its time depends on n alone.
 *
 * Who learns it: key and tags stay with the coordinator, in memory only. Peers can see only that
 * the job ends when a comparison fails.
 */
#ifndef CRYPTO_BINDING_H
#define CRYPTO_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "sherd/err.h"

#define SHERD__BINDING_BLOCK 512u

/** The runs of one operand. Several threads may call add and hold at the same time. */
typedef struct sherd__binding sherd__binding;

/** State of the hash of a run; zero it before the first number. */
typedef struct sherd__binding_hash {
    uint64_t sum[2], tag;
    size_t at; /* numbers added to the sums */
} sherd__binding_hash;

/** Creates `runs` runs that are not bound yet, under a fresh key, for numbers of magnitude at most
 *  `bound`. The caller frees *out with sherd__binding_free. Errors: SHERD_ENOMEM. */
int sherd__binding_new(sherd__binding **out, size_t runs, double bound,
                       const sherd__entropy *entropy) SHERD_MUST;
/** Prepares for another operand with masks of its own: forgets all tags and keeps the key. Returns
 *  SHERD_ENOMEM, with nothing changed. */
int sherd__binding_reset(sherd__binding *b, size_t runs, double bound) SHERD_MUST;
/** Wipes and frees it; NULL is allowed. */
void sherd__binding_free(sherd__binding *b);

/**
 * Adds n numbers of the private copy; call it before any of them is hidden. The hash does not
 * depend on how a run is divided among calls. Returns SHERD_EIO if a number is beyond the bound or
 * is a NaN; the numbers must then not be sent, and sherd__binding_broken returns true from then on.
 */
int sherd__binding_add(sherd__binding *b, sherd__binding_hash *h, const double *x,
                       size_t n) SHERD_MUST;
/**
 * Ends the run and zeroes *h. The first call binds the run to the content that was hashed. Returns
 * SHERD_EIO if it is bound to another content. Nothing that the run's masks hide may then be sent,
 * and sherd__binding_broken returns true from then on.
 */
int sherd__binding_hold(sherd__binding *b, size_t run, sherd__binding_hash *h) SHERD_MUST;
/** Returns whether any run was found to have changed; false for NULL. */
bool sherd__binding_broken(const sherd__binding *b);

#endif
