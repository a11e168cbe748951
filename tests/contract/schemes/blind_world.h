/*
 * Products under `blind`, run with a real backend in this process: random operands, masks of one
 * key, and a comparison with the fixed-point reference. A step that fails fails the test.
 */
#ifndef TESTS_CONTRACT_SCHEMES_BLIND_WORLD_H
#define TESTS_CONTRACT_SCHEMES_BLIND_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "schemes/blind/blind.h"
#include "sherd/mat.h"

/* One product: operands, masks, and R*B by a plain loop. */
typedef struct blinded {
    size_t n, k, m;
    uint32_t slots, primes_len;
    size_t panel_rows, tile_cols;
    sherd_dtype ta, tb;
    unsigned bits_a, bits_b, zeros; /* zeros: tenths of the entries of A */
    uint64_t first;                 /* first row of the masks */
    uint8_t key[32];
    void *a, *b;
    double *c, *ref, *qa, *qb; /* quantised */
    uint8_t *rb;               /* by row of A, prime, column: packed */
    double *r;                 /* by prime, row, column */
    sherd__blind_params p;
    sherd__hiding h;
} blinded;

/** Set-up and tear-down of a group of tests: the backend. */
int blind_begin(void **state);
int blind_end(void **state);

/** Random numbers from the tests' seed. */
extern sherd__entropy blind_rng;
size_t blind_below(size_t n);
/** Returns a case with random shapes, dtypes and widths. */
blinded blind_case(void);

/** Makes operands, masks and the scheme for x's shapes; the scheme has no masks yet
 *  (sherd__blind_arm). */
void blinded_new(blinded *x);
void blinded_free(blinded *x);
/** Returns the node's answer to a cell; the caller frees it and work->left. NULL: the cell is
 *  empty. */
uint8_t *blind_answer(const blinded *x, sherd__cell c, sherd__cell_work *work);
/** Runs all cells of a product, some of them hidden twice; its bits must be those of the
 *  reference. */
void blind_run(blinded *x);

#endif
