/*
 * Products of packed residues from bytes to bytes, where the processor multiplies tiles of bytes
 * (AMX): a residue's three bytes are its limbs as they travel, so nothing goes through doubles.
 * Some five times as fast as residue_gemm on dgemm (which is what there is elsewhere), the same
 * bits: the canonical residues of the same sums.
 */
#ifndef MATRIX_RESIDUE_LIMBS_H
#define MATRIX_RESIDUE_LIMBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/team.h"
#include "sherd/err.h"

/** out = a * b modulo p; all lie packed, row after row. p as sherd__prime_ok says. */
typedef struct sherd__limbs {
    uint32_t p;
    bool transposed; /* a lies as k x n, and its transpose is meant */
    size_t n, k, m;
    const uint8_t *a, *b; /* n x k, k x m; values may be hostile */
    uint8_t *out;         /* n x m; overlaps neither */
    bool add;             /* on top of what out holds, residues below p */
    size_t ld;            /* values from a row of out to the next; 0: m */
} sherd__limbs;

/** Terms that are summed up before their sums are put together and reduced. */
#define SHERD__LIMBS_DEPTH 2048
/** No product needs more than this for either operand. */
#define SHERD__LIMBS_MOST ((size_t)3 * 1024 * SHERD__LIMBS_DEPTH)

/** Whether this processor has such tiles and the system lets the process use them; asked once. Not
 *  where OPENBLAS_CORETYPE is set: who names an older processor gets what that one has. */
bool sherd__limbs_here(void);
/** Bytes that a product works in, for each operand: at most SHERD__LIMBS_MOST. */
void sherd__limbs_room(const sherd__limbs *x, size_t *left, size_t *right);
/**
 * Only where sherd__limbs_here. left and right are the caller's, as sherd__limbs_room says, on
 * lines of 64 bytes, and hold a and b in part afterwards. team may be NULL; results do not depend
 * on it. SHERD_EFRAME: a residue is not below p; out is of no use.
 */
int sherd__limbs_multiply(const sherd__limbs *x, sherd__team *team, uint8_t *left,
                          uint8_t *right) SHERD_MUST;
/** Random and worst values against int64, for every table prime. SHERD_OK where there are no such
 *  tiles; SHERD_EDEVICE, SHERD_ENOMEM. */
int sherd__limbs_selftest(sherd_diag *d) SHERD_MUST;
/** Billions of operations a second (two for each term of a sum) of products of such a shape, cut
 *  to 768 each way, the best of a few; 0 where there are no such tiles, or no memory. */
double sherd__limbs_gflops(sherd__team *team, size_t n, size_t k, size_t m);

#endif
