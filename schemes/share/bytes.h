/*
 * Shares modulo primes below 256. Layout, lifetime, batches and the order of checks are those of
 * internal.h; these functions replace the arithmetic of encode.c, resident.c, check.c and decode.c.
 *
 * Terms are made in blocks that stay in cache: quantised, reduced modulo
 * every prime, masked, and laid out in the order in which nodes multiply them
 * (matrix/residue_bytes.h), so that a sum of laid terms is a piece of a share. Where a block has
 * rows or columns beyond the operand, terms are zero there, masks included: the positions depend on
 * the shape alone.
 *
 * A mask has a unit of its stream for each block (crypto/mask.h), with the elements of the block
 * tile after tile, if it is a whole one of A, and else row after row (sherd__share_drawn). Blocks
 * of an encoding are always cut at the same places.
 */
#ifndef SCHEMES_SHARE_BYTES_H
#define SCHEMES_SHARE_BYTES_H

#include "crypto/seeded.h"
#include "schemes/share/internal.h"

#define CHECKS SHERD__BYTE_CHECKS

/* Both kinds of check vectors take equally many bytes for an element and a prime. */
_Static_assert(CHECKS == TRIALS * sizeof(double), "check data of both kinds have the same size");

/** Returns the signed form of a residue below p. */
static inline int8_t share_bytes_signed(uint8_t x, uint32_t p)
{
    return (int8_t)(x > p / 2 ? (int)x - (int)p : (int)x);
}

/** Allocates d->bytes. SHERD_ENOMEM. */
int sherd__share_bytes_open(share *d) SHERD_MUST;
void sherd__share_bytes_free(share *d);

/** Returns the bytes of a laid out operand of `lines` rows or columns of `terms` residues. */
size_t sherd__share_bytes_laid(const share *d, size_t lines, size_t terms);
/** Does sherd__share_pass, with buffers of d. Of the probe, r is [q][v][rows] and left
 *  [q][v][term][cols], signed; s is laid out for each prime, and right is [q][term][rows][v],
 *  unsigned, but for A [q][v][term][rows], signed. Shares of B are made by sherd__share_bytes_read
 *  only. */
int sherd__share_bytes_pass(const share *d, const share_source *of, uint8_t *const *out,
                            const share_probe *probe) SHERD_MUST;

/** Makes the fragment of a seed, for a slot of the operand's seeds. SHERD_ENOMEM. */
int sherd__share_bytes_seed(const share *d, const share_source *of, uint32_t slot,
                            sherd__fragment **out) SHERD_MUST;

/** Cuts B's tiles into chunks of columns, for which the loop thread makes terms. */
void sherd__share_bytes_loop_size(share *d);
/** Returns the number of chunks in a tile. */
size_t sherd__share_bytes_runs(const share *d);
/** Computes bytes [offset, offset+len) of a slot's share of a tile of B. Loop thread. */
int sherd__share_bytes_read(share *d, uint32_t slot, uint32_t tile, uint64_t offset, uint8_t *out,
                            size_t len) SHERD_MUST;
/** Wipes and frees what was made of B. */
void sherd__share_bytes_forget_b(share *d);

/** Draws CHECKS vectors of n residues for each prime: [q][v][n], signed. */
int sherd__share_bytes_draw(const share *d, size_t n, int8_t *out) SHERD_MUST;
/** Lays out vectors [q][v][n], by which rows are multiplied. SHERD_ENOMEM. */
int sherd__share_bytes_lay(const share *d, const int8_t *s, size_t n, uint8_t *out) SHERD_MUST;
/** Returns the bytes that this takes. */
size_t sherd__share_bytes_laid_vectors(const share *d, size_t n);
/** Returns the bytes of the table of a position. */
size_t sherd__share_bytes_table_len(const share *d);
/** Computes the table of a position from projected terms: of the left operand, [q][v][term][len],
 *  and of the right one, [q][term][len][v]. */
void sherd__share_bytes_table(const share *d, const int8_t *x, const uint8_t *y, size_t len,
                              uint8_t *gram);
/** Checks an answer of rows x width for each prime. r [q][v][rows], s laid out for each prime.
 *  SHERD_EWRONG, SHERD_ENOMEM. */
int sherd__share_bytes_judge(share *d, sherd__cell c, const int8_t *r, const uint8_t *s,
                             size_t rows, const uint8_t *body) SHERD_MUST;

#endif
