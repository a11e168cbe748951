/*
 * What a mask has hidden, it hides for good: u = x + r sent for one x and for another gives x - x'
 * away. Operands are mapped files and memory of the caller, which others may write while a job
 * runs, and rows are hidden again for every tile, every repeated attempt and every check. So each
 * run of rows that has masks of its own is bound to its content: a keyed hash of the private copy
 * that is encoded, never of the operand itself, which may change in between. And since a mask hides
 * what is small beside 2^53 and no other number, the copy is held to the range that was found when
 * the job began: a number beyond it, or none, is another content too.
 *
 * The hash is NH (Black, Halevi, Krawczyk, Krovetz, Rogaway, "UMAC", Crypto 1999) of the 64 bits of
 * every number, two instances by a shifted key, then a polynomial modulo 2^61-1 over blocks of
 * SHERD__BINDING_BLOCK numbers. For a secret key two contents of n numbers have the same tag with
 * probability below 2^-64 + (n / SHERD__BINDING_BLOCK + 1) * 2^-59. Its time depends on n alone.
 *
 * Who learns it: key and tags stay with the coordinator, in memory only. What peers can see of a
 * comparison is that the job ends.
 */
#ifndef CRYPTO_BINDING_H
#define CRYPTO_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "sherd/err.h"

#define SHERD__BINDING_BLOCK 512u

/** The runs of one operand. Add and hold may be called by several threads at once. */
typedef struct sherd__binding sherd__binding;

/** The hash of a run so far: zeroed before the first number. */
typedef struct sherd__binding_hash {
    uint64_t sum[2], tag;
    size_t at; /* numbers in the sums */
} sherd__binding_hash;

/** `runs` runs of which nothing was hidden yet, under a fresh key, of numbers of magnitude `bound`
 *  at most. SHERD_ENOMEM. */
int sherd__binding_new(sherd__binding **out, size_t runs, double bound,
                       const sherd_entropy *entropy) SHERD_MUST;
/** For another operand with masks of its own: forgets all tags, keeps the key. SHERD_ENOMEM: as it
 *  was. */
int sherd__binding_reset(sherd__binding *b, size_t runs, double bound) SHERD_MUST;
/** Wipes it; NULL is allowed. */
void sherd__binding_free(sherd__binding *b);

/** Adds n numbers of the private copy, before any of them is hidden. The same numbers in other
 *  portions give the same hash. SHERD_EIO: one is beyond the bound or is not a number, so that they
 *  must not be sent; all calls of sherd__binding_broken say so from now on. */
int sherd__binding_add(sherd__binding *b, sherd__binding_hash *h, const double *x,
                       size_t n) SHERD_MUST;
/**
 * The run is complete, and *h is zeroed. The first time it is bound to what was hashed. SHERD_EIO:
 * it is bound to another content. Nothing that the run's masks hide may be sent then, and all calls
 * of sherd__binding_broken say so from now on.
 */
int sherd__binding_hold(sherd__binding *b, size_t run, sherd__binding_hash *h) SHERD_MUST;
/** Whether some run was found to have changed. NULL: no. */
bool sherd__binding_broken(const sherd__binding *b);

#endif
