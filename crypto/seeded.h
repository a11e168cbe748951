/*
 * Shares from seeds. Instead of the T masks of an encoding, the shares of any T slots may be chosen
 * uniformly at random: the masks follow from them by interpolation. A node of such a slot is sent a
 * seed in place of its share, and expands it.
 *
 * With generator F = (F_D; F_R) of K data rows and T mask rows, and Z the T chosen slots, let L =
 * F_R[:,Z]^-1 F_R. All shares are then s L + A (F_D - F_D[:,Z] L), where s are the shares of Z. For
 * every A, s = A F_D[:,Z] + R F_R[:,Z] is an affine bijection between the masks R and s, because
 * every T x T minor of F_R is invertible. So for uniform s the masks are uniform, and the view of
 * any T slots has the distribution that it has with drawn masks: it is independent of A. What is
 * computational is the expansion alone, as it is for masks.
 *
 * Thus a code with seeds differs from one without in its weights only: mask t is the share of slot
 * Z[t]. Decoding is the same.
 *
 * Only residues of one byte have seeds. The streams are those of crypto/mask.h.
 */
#ifndef CRYPTO_SEEDED_H
#define CRYPTO_SEEDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/mask.h"
#include "crypto/seed.h"

/**
 * Replaces the weights w of an encoding, `shares` rows of blocks + masks numbers, canonical modulo
 * p, by those for which mask t is the share of slot seeded[t]. Returns SHERD_EINVAL, with w
 * unspecified, if the slots are not distinct, or if their masks' weights are no invertible matrix.
 */
int sherd__seeded_weights(uint32_t p, uint32_t shares, uint32_t blocks, uint32_t masks,
                          const uint32_t *seeded, double *w) SHERD_MUST;

/* ---- the order of drawing -------------------------------------------------------------------- */

/* Masks of bytes are drawn in blocks; each is a unit of a stream. */
#define SHERD__DRAWN_LEFT_ROWS 32u
#define SHERD__DRAWN_LEFT_COLS 256u
#define SHERD__DRAWN_RIGHT_ROWS 64u
#define SHERD__DRAWN_RIGHT_COLS 64u
/** Most elements of a block. */
#define SHERD__DRAWN_AREA 8192u

/** A block of a left or right operand, of at most the rows and columns above. */
typedef struct sherd__drawn {
    bool left;
    size_t rows, cols;
} sherd__drawn;

/** Returns the elements that a block takes in memory, those beyond its rows and columns
 *  included. */
size_t sherd__drawn_area(const sherd__drawn *b);
/** Returns where row i of the 64 columns from `col` on is in memory: of a left block in tiles of 16
 *  x 64, of a right one in rows of 64. col is a multiple of 64. */
size_t sherd__drawn_place(const sherd__drawn *b, size_t i, size_t col);
/** Returns whether the block is drawn in the order in which it is in memory: a left one of complete
 *  tiles, or a right one of 64 x 64. Others are drawn row after row. */
bool sherd__drawn_whole(const sherd__drawn *b);
/** Draws a block from a unit of a mask; seed NULL, or of a fragment of a seeded mask, where the
 *  mask's t and width are not used. Elements beyond rows and columns are zero. */
int sherd__masks_block(sherd__masks *m, const sherd__mask_id *id, const sherd__seed_id *seed,
                       uint64_t unit, const sherd__drawn *b, uint8_t *out) SHERD_MUST;

/* ---- fragments ------------------------------------------------------------------------------- */

/** Makes a fragment that encodes the share `whole`, the description of residues of one byte,
 *  left or right; it is a seed in encoding SHERD__SEED. cols: columns of a block of it: left 256,
 *  right 16 or 64. primes: `whole->primes` of them. SHERD_ENOMEM. */
int sherd__seeded_fragment(sherd__fragment **out, const sherd__fragment_info *whole,
                           const uint8_t seed[SHERD__SEED_BYTES], uint32_t cols,
                           const uint32_t *primes) SHERD_MUST;

#endif
