/*
 * Schemes that are folded, run with a real backend in this process: random operands, all cells of a
 * job in turn, and a comparison with the result of one machine.
 */
#ifndef TESTS_CONTRACT_SCHEMES_SCHEME_WORLD_H
#define TESTS_CONTRACT_SCHEMES_SCHEME_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "schemes/scheme.h"
#include "sherd/mat.h"

/** Set-up and teardown of a group of tests: the backend. */
int scheme_begin(void **state);
int scheme_end(void **state);

/** Random numbers from the tests' seed. */
extern sherd__entropy scheme_rng;
size_t scheme_below(size_t n);
/** Makes a matrix of one dtype, which the caller frees; `zeros` of ten entries are zero. */
void *scheme_matrix(size_t rows, size_t cols, sherd_dtype t, unsigned zeros);

/** Called with each answer before it is checked; it must leave the right answer. */
typedef void (*scheme_visit)(const sherd__hiding *h, sherd__cell c, uint8_t *body, uint64_t len);

/** Runs every cell of a job with the backend, some of them hidden twice; op: SHERD__OP_*. */
void scheme_run(const sherd__hiding *h, uint32_t op, scheme_visit spoil);

/** The left blocks of the last run. */
typedef struct scheme_total {
    uint64_t cells, csr_cells, bytes;
} scheme_total;
extern scheme_total scheme_sent;

/** A product. */
typedef struct scheme_fixture {
    size_t n, k, m;
    sherd_dtype ta, tb;
    uint32_t slots, group;
    bool plain, exact, shuffle_rows, balanced, csr;
    bool stays;            /* plain: panels of A stay at the nodes */
    unsigned odd_a, odd_b; /* number of entries that are NaN or infinite */
    unsigned bits, zeros;
    size_t panel_rows, tile_cols, cache;
} scheme_fixture;

scheme_fixture scheme_random(void);
/** Returns a product in floats, with NaN and infinities. */
scheme_fixture scheme_odd(void);
/** Fails unless the product equals that of one machine: bit for bit in exact mode. */
void scheme_multiply(const scheme_fixture *f, scheme_visit spoil);
/** Cells that were sent in CSR in all products so far. */
extern uint64_t scheme_csr_cells;

/** Runs an element-wise operation of n x m and compares it with that of this machine. */
void scheme_apply(uint32_t op, size_t n, size_t m, uint32_t slots, bool permute,
                  scheme_visit spoil);

#endif
