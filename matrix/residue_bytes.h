/*
 * Products of residues modulo primes below 256, one byte each. In A a residue is unsigned, in
 * [0, p); in B it is signed, in [-(p-1)/2, (p-1)/2]; the result is unsigned again. So one
 * instruction of VNNI or AMX multiplies bytes of A by bytes of B and adds the products to
 * sums of 32 bits, without a correction. Every path gives the same bytes.
 *
 * Operands are laid out in strips of 16 rows of A or 16 columns of B, in the order in which they
 * are multiplied, so that a processor that receives them sorts nothing. A strip has a tile of 1024
 * bytes for every 64 terms. In A, a tile is 16 rows of 64 terms; in B, it is 16 groups of four
 * terms, each group 16 columns of four terms. Missing elements at edges are zero, which adds
 * nothing.
 *
 * Any bytes have a defined product, those that are no residues as well: sums of 65,536 terms fit 32
 * bits for all of them. A node therefore compares nothing.
 */
#ifndef MATRIX_RESIDUE_BYTES_H
#define MATRIX_RESIDUE_BYTES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/team.h"
#include "sherd/err.h"

#define SHERD__BYTE_PRIMES 8u
/** The largest primes below 256, in the order in which they are used. */
extern const uint32_t sherd__byte_primes[SHERD__BYTE_PRIMES];

enum {
    SHERD__BYTES_TILE = 16, /* rows or columns of a strip */
    SHERD__BYTES_STEP = 64, /* terms of a tile */
};

/** How products are computed. */
typedef enum sherd__bytes_path {
    SHERD__BYTES_BEST, /* the fastest that this processor has */
    SHERD__BYTES_ANY,  /* instructions of any processor */
    SHERD__BYTES_NEON, /* ARM's I8MM */
    SHERD__BYTES_AVX2,
    SHERD__BYTES_AVX_VNNI, /* the 256-bit form of the next */
    SHERD__BYTES_VNNI,     /* AVX-512-VNNI */
    SHERD__BYTES_AMX,      /* AMX-INT8 */
    SHERD__BYTES_PATHS
} sherd__bytes_path;

/** Returns the name of a path, "vnni". */
const char *sherd__bytes_path_name(sherd__bytes_path path);
/** Returns the path that SHERD__BYTES_BEST selects: the one forced, otherwise the fastest that
 *  the processor has and the system permits. OPENBLAS_CORETYPE limits it
 *  (sherd__bytes_path_of_core). */
sherd__bytes_path sherd__bytes_path_here(void);
/** Returns the fastest path that the processor has whose kernels OPENBLAS_CORETYPE names, except
 *  AMX, for which tiles.h has the rule. NULL and "": SHERD__BYTES_AMX. */
sherd__bytes_path sherd__bytes_path_of_core(const char *core);
/** Test hook: uses this path from now on. Returns false and changes nothing if this processor does
 *  not have it. */
bool sherd__bytes_force(sherd__bytes_path path);

/** Returns the bytes of an operand of `lines` rows of A or columns of B, of k terms each, laid
 *  out. */
size_t sherd__bytes_laid(size_t lines, size_t k);
/** Lays out n rows of k residues of A, `stride` bytes apart. */
void sherd__bytes_lay_rows(const uint8_t *in, size_t n, size_t k, size_t stride, uint8_t *out);
/** Lays out m columns of k rows of B, `stride` bytes apart. */
void sherd__bytes_lay_columns(const int8_t *in, size_t k, size_t m, size_t stride, uint8_t *out);
/** Lays out rows [from, from+rows) of the k rows of B; `in` is the first of these. `from` is a
 *  multiple of 64, and so is from+rows if it is less than k. out is the whole operand, whose strips
 *  are `strip` bytes apart; 0: they follow each other. Other tiles of it are left unchanged. */
void sherd__bytes_lay_columns_at(const int8_t *in, size_t rows, size_t m, size_t stride,
                                 size_t from, size_t k, uint8_t *out, size_t strip);

/** Lays out strip `number` of the transpose of a left operand, as a strip of a left operand: rows
 *  are columns [16*number, 16*number+16) of `in`, terms its n rows. In `in`, `strip` bytes are from
 *  one strip to the next. */
void sherd__bytes_turn(const uint8_t *in, size_t n, size_t strip, size_t number, uint8_t *out);

/** Parameters of out = a * b modulo p, or out + a * b. */
typedef struct sherd__bytes_product {
    uint32_t p; /* 3 to 255 */
    size_t n, k, m;
    const uint8_t *a, *b;    /* n rows and m columns of k terms, laid out, aligned to 64 bytes */
    size_t a_strip, b_strip; /* bytes from one strip to the next, multiples of 64; 0: strips follow
                                each other. Strips of several primes can so be interleaved. */
    size_t a_ld;             /* if not 0, a is not laid out: rows of k bytes in any position, a_ld
                                bytes apart. No byte beyond the last row is read. */
    uint8_t *out;            /* n x m, `ld` bytes from one row to the next; overlaps neither */
    size_t ld;
    bool add;                /* to the residues in out, which are below p */
    const atomic_bool *stop; /* once it is true, the call returns SHERD_EINTERRUPTED soon; NULL:
                                none */
} sherd__bytes_product;

/** Computes the product. team may be NULL; results do not depend on it. Where a is not laid out,
 *  rows beyond a multiple of 16 and terms beyond a multiple of 64 are laid out for every 96
 *  columns, and the others are multiplied where they are. SHERD_EINTERRUPTED: out is undefined. */
int sherd__bytes_multiply(const sherd__bytes_product *x, sherd__team *team) SHERD_MUST;
/** Compares products of random and worst-case bytes with sums in 64 bits, for every prime, by the
 *  path that sherd__bytes_path_here names. Errors: SHERD_EDEVICE, SHERD_ENOMEM. */
int sherd__bytes_selftest(sherd_diag *d) SHERD_MUST;
/** Returns billions of operations a second (two for each term of a sum) of products of this shape
 *  on one core, the best of up to four runs in 2 ms, by processor time: threads of a team would be
 *  slowed down by other processes. 0 if there is no memory. */
double sherd__bytes_gops(size_t n, size_t k, size_t m);

#endif
