/*
 * Products of packed residues, from bytes to bytes, on processors that multiply tiles of bytes
 * (AMX). The three bytes of a residue on the wire are its limbs, so that nothing is converted to
 * doubles. It is about five times as fast as residue_gemm on dgemm (which other processors use) and
 * gives the same bits: the canonical residues of the same sums.
 */
#ifndef MATRIX_RESIDUE_LIMBS_H
#define MATRIX_RESIDUE_LIMBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/team.h"
#include "sherd/err.h"

/** Parameters of out = a * b modulo p. All matrices are packed, row after row. p passes
 *  sherd__prime_ok. */
typedef struct sherd__limbs {
    uint32_t p;
    bool transposed; /* a is stored as k x n and used transposed */
    size_t n, k, m;
    const uint8_t *a, *b;               /* n x k, k x m; values may come from an attacker */
    uint8_t *out;                       /* n x m; must not overlap a or b */
    bool add;                           /* add to the residues below p in out */
    size_t ld;                          /* values from one row of out to the next; 0: m */
    const uint8_t *sorted_a, *sorted_b; /* a and b, sorted; NULL: they are sorted in parts */
    const atomic_bool *stop; /* once it is true, calls return SHERD_EINTERRUPTED soon; NULL: none */
} sherd__limbs;

/** Number of terms that are added up before their sums are joined and reduced. */
#define SHERD__LIMBS_DEPTH 2048
/** Maximum working memory of a product for either operand, in bytes. */
#define SHERD__LIMBS_MOST ((size_t)3 * 1024 * SHERD__LIMBS_DEPTH)

/** Returns whether this processor has such tiles and the system lets the process use them; the
 *  system is asked once. Returns false if OPENBLAS_CORETYPE is set: a user who names an older
 *  processor gets what that processor supports. */
bool sherd__limbs_here(void);
/** Computes the bytes of working memory that a product needs for each operand, at most
 *  SHERD__LIMBS_MOST. */
void sherd__limbs_room(const sherd__limbs *x, size_t *left, size_t *right);
/**
 * Sort a whole operand, so that it can be used in many products without being sorted again, and
 * compare its values with p. `out` has sherd__limbs_sorted_left or _right bytes, aligned to 64.
 * Of x, sort_left reads p, stop, transposed, n, k and a; sort_right reads p, stop, k, m and b,
 * which are columns [col, col+cols) of the m columns of the operand, k x cols. col is a multiple of
 * 64.
 * Return SHERD_EFRAME if a residue is not below p, and SHERD_EINTERRUPTED; out is then undefined.
 */
size_t sherd__limbs_sorted_left(const sherd__limbs *x);
size_t sherd__limbs_sorted_right(const sherd__limbs *x);
int sherd__limbs_sort_left(const sherd__limbs *x, sherd__team *team, uint8_t *out) SHERD_MUST;
int sherd__limbs_sort_right(const sherd__limbs *x, size_t col, size_t cols, sherd__team *team,
                            uint8_t *out) SHERD_MUST;
/**
 * Computes the product; fast only if sherd__limbs_here. left and right are the caller's memory, of
 * the sizes from sherd__limbs_room, aligned to 64 bytes; afterwards they contain parts of a and b.
 * A sorted operand needs none, and its values are not compared with p again. team may be NULL;
 * results do not depend on it. Returns SHERD_EFRAME if a residue is not below p, and
 * SHERD_EINTERRUPTED; out is then undefined.
 */
int sherd__limbs_multiply(const sherd__limbs *x, sherd__team *team, uint8_t *left,
                          uint8_t *right) SHERD_MUST;
/** Test hook: 1 the kernels for any processor, 2 AVX-512, 3 AVX-512 and AMX, 0 the best available.
 *  From 1 on sherd__limbs_here returns true. Returns false and changes nothing where this CPU does
 *  not have these instructions. */
bool sherd__limbs_force(unsigned level);
/** Compares products of random and worst-case values with int64, for every prime of the tables.
 *  Returns SHERD_OK if there are no such tiles. Errors: SHERD_EDEVICE, SHERD_ENOMEM. */
int sherd__limbs_selftest(sherd_diag *d) SHERD_MUST;
/** Returns billions of operations a second (two for each term of a sum) of products of this shape,
 *  with each dimension cut to 768, the best of several runs; 0 if there are no such tiles or no
 *  memory. */
double sherd__limbs_gflops(sherd__team *team, size_t n, size_t k, size_t m);

#endif
