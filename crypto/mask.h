/*
 * Masks: uniform residues that hide a coded operand. Every encoding has a fresh 32-byte key of its own,
 * drawn from the entropy it is given (getrandom, but in simulations), never from a seed, never stored;
 * so two encodings never share a mask, in one process, after a resume or anywhere. From the key every
 * (role, prime, t) has its own stream (BLAKE2b), so masks are independent per prime, and every row its
 * own nonce, so that a share can be made again, row by row, for the node that lost it.
 */
#ifndef CRYPTO_MASK_H
#define CRYPTO_MASK_H

#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "sherd/err.h"

typedef enum sherd__mask_role { SHERD__MASK_LEFT = 1, SHERD__MASK_RIGHT = 2 } sherd__mask_role;

/** The masks of one encoding. Opaque; its key lies in guarded memory. Not shared between threads. */
typedef struct sherd__masks sherd__masks;

/** SHERD_ENOMEM. */
int sherd__masks_new(sherd__masks **out, const sherd_entropy *entropy) SHERD_MUST;
/** A second handle on the same masks, for another thread. SHERD_ENOMEM. */
int sherd__masks_clone(sherd__masks **out, const sherd__masks *m) SHERD_MUST;
/** Wipes the key; NULL is allowed. */
void sherd__masks_free(sherd__masks *m);
/**
 * Row `row` of mask t of an operand, modulo its prime_index-th prime p: n canonical residues, uniform
 * by rejection. The same arguments give the same row. SHERD_ENOMEM from the cipher.
 */
int sherd__masks_row(sherd__masks *m, sherd__mask_role role, uint32_t t, uint32_t prime_index,
                     uint32_t p, uint64_t row, size_t n, double *out) SHERD_MUST;

#endif
