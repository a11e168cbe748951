/*
 * Masks: uniform residues that hide a coded operand. Every encoding has a fresh 32-byte key, drawn
 * from the entropy source that it is given (getrandom, except in simulations). The key is never
 * derived from a seed, so that two encodings never share a mask, neither in one process nor after a
 * resume. Only prepared masks of `blind` have a stored key; their file notes which rows were used
 * (store/maskfile.h). Every (role, prime, t, width) has its own ChaCha20 key, derived from
 * this key by BLAKE2b, so that masks are independent per prime.
 *
 * An element of a mask is a pure function of its position: mask t of an operand is a matrix of
 * `width` columns, and any part of it can be computed again at any time, for example for the share
 * of a lost node, or tile by tile. Code that divides an operand into tiles must take parts of one
 * mask, never a mask per tile with the same rows: that would use one mask twice.
 *
 * Stream: with S = ceil(width/16) blocks a row, element (row, c) is determined by the 32-bit word e
 * = 16*S*row + c of nonce 0, little-endian. Its upper 30 bits, signed, are v: v*p = r*2^30 + l with
 * -2^29 <= l < 2^29, and r is the residue, in balanced form. Where l < -2^29 + (2^30 mod p) the
 * word is rejected and replaced by the first word of nonce 1+e that is not rejected. The rest of
 * the range of every r then contains equally many multiples of p (Lemire, arXiv 1805.10941, there
 * with ranges that begin at 0).
 *
 * Masks of bytes, modulo primes below 256, are drawn by units: an encoding divides its operand into
 * units as it needs, and gives each unit of a mask a number of its own. Unit u is the keystream of
 * nonce u from block 0: its bytes that are below p, in their order, are the residues 0, 1, 2, ...
 * of the unit; the others are rejected. The keys of these masks are derived with another label, so
 * that they differ from those of the masks above.
 *
 * A seeded mask is itself the share of one slot (crypto/seeded.h). Each fragment of it has a seed
 * of 32 bytes, derived from the key, the role, the slot and the place of the fragment, with a label
 * of its own. The keys of its streams, one for each prime, are derived from the seed alone, so that
 * the slot's node can draw the fragment itself.
 */
#ifndef CRYPTO_MASK_H
#define CRYPTO_MASK_H

#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "sherd/err.h"

typedef enum sherd__mask_role { SHERD__MASK_LEFT = 1, SHERD__MASK_RIGHT = 2 } sherd__mask_role;

/** The masks of one encoding. The type is opaque; its key is stored in guarded memory (locked if
 *  the system permits, never in a core dump). It must not be shared between threads. */
typedef struct sherd__masks sherd__masks;

/** Creates masks with a fresh key. The caller frees *out with sherd__masks_free. Errors:
 *  SHERD_ENOMEM. */
int sherd__masks_new(sherd__masks **out, const sherd__entropy *entropy) SHERD_MUST;
/** Creates the masks of a key that was drawn earlier and stored; only schemes/blind/blind.h uses
 *  it. Errors: SHERD_ENOMEM. */
int sherd__masks_from_key(sherd__masks **out, const uint8_t key[32]) SHERD_MUST;
/** Creates a second handle on the same masks, for another thread. Errors: SHERD_ENOMEM. */
int sherd__masks_clone(sherd__masks **out, const sherd__masks *m) SHERD_MUST;
/** Wipes the key and frees the masks; NULL is allowed. */
void sherd__masks_free(sherd__masks *m);

/** Identifies a mask of an operand of `width` columns, modulo its prime_index-th prime p. */
typedef struct sherd__mask_id {
    sherd__mask_role role;
    uint32_t t, prime_index, p; /* prime_index: below 4, for masks of bytes below 8 */
    size_t width;
} sherd__mask_id;

/** Rows [row, row+rows) and columns [col, col+cols) of a mask, col+cols <= width. */
typedef struct sherd__mask_part {
    uint64_t row;
    size_t rows, col, cols;
} sherd__mask_part;

/**
 * Computes a part of a mask: canonical residues, uniform by rejection. out has row stride ld. Many
 * short rows in one call cost much less than one call for each. Errors: SHERD_ENOMEM or
 * SHERD_EINTERNAL from the cipher.
 */
int sherd__masks_part(sherd__masks *m, const sherd__mask_id *id, sherd__mask_part part, double *out,
                      size_t ld) SHERD_MUST;
/** Computes one whole row. The same arguments give the same row. */
int sherd__masks_row(sherd__masks *m, const sherd__mask_id *id, uint64_t row,
                     double *out) SHERD_MUST;
/**
 * Computes the first n residues of a unit of a mask of bytes, each in [0, p), uniform by rejection.
 * Fewer residues are the first of more. Where the key is the same, no unit may be used twice for
 * different numbers. id->p is 2 to 255; id->width selects the key only. Every processor computes
 * the same bytes. Errors: SHERD_ENOMEM or SHERD_EINTERNAL from the cipher.
 */
int sherd__masks_bytes(sherd__masks *m, const sherd__mask_id *id, uint64_t unit, size_t n,
                       uint8_t *out) SHERD_MUST;

#define SHERD__SEED_BYTES 32u

/** Identifies a fragment of a seeded mask. `at` differs for any two fragments of an operand. */
typedef struct sherd__seed_id {
    sherd__mask_role role;
    uint32_t slot;
    uint64_t at;
} sherd__seed_id;

/** Computes the seed of a fragment: a secret of the slot's node. */
void sherd__masks_seed(const sherd__masks *m, const sherd__seed_id *id,
                       uint8_t seed[SHERD__SEED_BYTES]);
/** Does sherd__masks_bytes for a fragment, modulo the prime of `of`, of which nothing else is used.
 *  Masks with this seed as their key (sherd__masks_from_key) draw the same as {id->role, 0,
 *  of->prime_index, of->p, 0}. */
int sherd__masks_seeded(sherd__masks *m, const sherd__seed_id *id, const sherd__mask_id *of,
                        uint64_t unit, size_t n, uint8_t *out) SHERD_MUST;

#endif
