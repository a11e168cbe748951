/*
 * Masks: uniform residues that hide a coded operand. Every encoding has a fresh 32-byte key of its
 * own, drawn from the entropy it is given (getrandom, but in simulations), never from a seed, never
 * stored; so two encodings never share a mask, in one process, after a resume or anywhere. From the
 * key every (role, prime, t, width) has its own ChaCha20 key (BLAKE2b), so masks are independent
 * per prime.
 *
 * An element of a mask is a pure function of its place: mask t of an operand is a matrix of `width`
 * columns, and any part of it can be made again at any time, for the share that a lost node had, or
 * tile by tile. Whoever cuts an operand into tiles names parts of one mask, never a mask per tile
 * with the same rows: that would be one mask used twice.
 *
 * Stream: with S = ceil(width/16) blocks a row, element (row, c) is decided by the 32-bit word
 * e = 16*S*row + c of nonce 0, little-endian, as v = its upper 30 bits, signed: v*p = r*2^30 + l
 * with -2^29 <= l < 2^29, and r is the residue, balanced as it comes. Where l < -2^29 + (2^30 mod
 * p) the word is dropped for the first of nonce 1+e that is not: what is left of every r's range
 * holds equally many multiples of p (Lemire, arXiv 1805.10941, there with ranges that begin at 0).
 */
#ifndef CRYPTO_MASK_H
#define CRYPTO_MASK_H

#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "sherd/err.h"

typedef enum sherd__mask_role { SHERD__MASK_LEFT = 1, SHERD__MASK_RIGHT = 2 } sherd__mask_role;

/** The masks of one encoding. Opaque; its key lies in guarded memory (locked where the system lets
 *  us, never in a core dump). Not shared between threads. */
typedef struct sherd__masks sherd__masks;

/** SHERD_ENOMEM. */
int sherd__masks_new(sherd__masks **out, const sherd_entropy *entropy) SHERD_MUST;
/** The masks of a key that was drawn earlier and stored: for schemes/blind/blind.h alone.
 *  SHERD_ENOMEM. */
int sherd__masks_from_key(sherd__masks **out, const uint8_t key[32]) SHERD_MUST;
/** A second handle on the same masks, for another thread. SHERD_ENOMEM. */
int sherd__masks_clone(sherd__masks **out, const sherd__masks *m) SHERD_MUST;
/** Wipes the key; NULL is allowed. */
void sherd__masks_free(sherd__masks *m);

/** Which mask: of an operand that is `width` columns wide, modulo its prime_index-th prime p. */
typedef struct sherd__mask_id {
    sherd__mask_role role;
    uint32_t t, prime_index, p;
    size_t width;
} sherd__mask_id;

/**
 * Rows [row0, row0+rows) and columns [c0, c0+n) of a mask, c0+n <= width: canonical residues,
 * uniform by rejection, out with row stride ld. Many short rows at once cost much less than one by
 * one. SHERD_ENOMEM or SHERD_EINTERNAL from the cipher.
 */
int sherd__masks_part(sherd__masks *m, const sherd__mask_id *id, uint64_t row0, size_t rows,
                      size_t c0, size_t n, double *out, size_t ld) SHERD_MUST;
/** One whole row: sherd__masks_part of width n. The same arguments give the same row. */
int sherd__masks_row(sherd__masks *m, sherd__mask_role role, uint32_t t, uint32_t prime_index,
                     uint32_t p, uint64_t row, size_t n, double *out) SHERD_MUST;

#endif
