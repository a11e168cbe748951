/*
 * A share that is sent as a seed: a fragment in encoding SHERD__SEED, which its receiver expands to
 * the residues of crypto/fragment.h. The body has the seed, 32 bytes; the columns of a block of the
 * share, u16 LE: 256 for a left operand, 16 or 64 for a right one; and the primes, one byte each.
 *
 * Expansion. Prime number q has a key of its own: BLAKE2b-256 with the seed as key of "sherd
 * byte-v1", 0x00, and u32 LE: 1 (left) or 2 (right), 0, q, p, 0, 0. The share is divided into
 * blocks: of 32 rows of a left operand or 64 of a right one, and as many columns as the body says.
 * The block that begins at row r and column c is drawn from the ChaCha20 keystream of nonce r 2^32
 * + c, from block 0: the bytes that are below p, in their order, are its residues. Their order is
 * that of rows; in a left block that consists of complete tiles, of 16 rows and 64 columns, it is
 * that of tiles, first those of the first 16 rows, and of rows within a tile. Residues of right
 * operands are then written in their signed form.
 *
 * Who learns it: a seed is as secret as the share; it is sent to the slot's domain only.
 */
#ifndef CRYPTO_SEED_H
#define CRYPTO_SEED_H

#include "crypto/fragment.h"
#include "crypto/fragment_make.h"

/** Returns the bytes of the body. */
uint64_t sherd__seed_len(uint32_t primes);
/** Checks the body of a fragment in this encoding, which may come from a peer. SHERD_EFRAME. */
int sherd__seed_check(const sherd__fragment *f, sherd_diag *d) SHERD_MUST;
/** Computes the share: sherd__fragment_whole of the description, `out` has its bytes. The body has
 *  passed the check. SHERD_ENOMEM, SHERD_EINTERNAL: from the cipher. */
int sherd__seed_expand(const sherd__fragment *f, uint8_t *out) SHERD_MUST;
/**
 * Makes a fragment of the share in `bytes`, memory for as many as it has, which is filled by
 * sherd__fragment_settle. It takes f, which has passed the check, and bytes, as
 * sherd__fragment_take does. SHERD_ENOMEM: the caller still owns both.
 */
int sherd__seed_defer(sherd__fragment **out, sherd__fragment *f, uint8_t *bytes,
                      void (*release)(void *ctx, uint8_t *bytes, uint64_t len),
                      void *ctx) SHERD_MUST;

#endif
