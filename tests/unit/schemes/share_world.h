/*
 * share and share1, called through their vtable, with nodes that multiply by a plain loop modulo p:
 * products of random operands, the answers of nodes, and the expected results.
 */
#ifndef TESTS_UNIT_SCHEMES_SHARE_WORLD_H
#define TESTS_UNIT_SCHEMES_SHARE_WORLD_H

#include "core/alloc.h"
#include "core/rand.h"
#include "matrix/exact.h"
#include "schemes/share/internal.h"

typedef struct fixture {
    size_t n, k, m;
    uint32_t blocks, masks, shares;
    bool inner; /* the inner-product code; otherwise Lagrange's */
    bool public_b, left_stays, zero_a, bytes;
    uint32_t seeds; /* bytes: the first slots, which take turns with seeds; 0: none */
    size_t panel_rows, tile_cols, part;
    unsigned bits, primes; /* primes: minimum number */
    sherd_dtype type;      /* of A and B */
    size_t check_bytes;
    double all;            /* f64: the value of all entries of A and D; 0: random entries */
    bool grouped;          /* primes hold only sums over columns */
    sherd_windows windows; /* window 0: no windows. Otherwise A consists of the windows of n images,
                            * k follows from them, and the first product comes with share_next */
} fixture;

typedef struct product {
    fixture f;
    void *da, *db, *laid;
    sherd_view a, b; /* a: images, if there are windows */
    sherd__windows w;
    sherd__fixed fa, fb;
    double *c, *ref;
    size_t c_rows;
    sherd__share_params p;
    sherd__hiding h;
    sherd__scheme_shape s;
    bool transposed;
} product;

static inline uint32_t get_u24(const uint8_t *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
}

/** The random numbers of the code under test. */
extern sherd__seeded share_scheme_state;
/** The set-up of a group of tests: restarts all random series. */
int share_seed(void **state);
size_t share_below(size_t n);
/** Returns a random small valid fixture. */
fixture share_random_fixture(void);
/** Returns the number of answers that decode a product of the fixture. */
uint32_t share_threshold(fixture f);
/** Returns whether kept shares of the fixture serve products from both sides. */
bool share_both_ways(fixture f);
/** Returns a random fixture with windows. */
fixture share_windows_fixture(void);
/** Returns A itself: windows are laid out, in memory of the product. */
sherd_view share_left(product *x);

/** Makes a matrix of f's type, random or constant; *data is freed and allocated again. */
void share_set_view(fixture f, size_t rows, size_t cols, bool zero, void **data, sherd_view *v,
                    sherd__fixed *fixed);
void share_open(product *x, fixture f);
void share_close(product *x);
/** Sets another right operand for the same shares of A. */
void share_next(product *x, size_t m, bool transposed);
sherd_rows share_rows(const product *x);
void share_is_exact(const product *x);

/** Replaces a seed by its share; leaves other fragments. */
void share_grow(sherd__fragment **f);
/** Returns a fragment's bytes, read in pieces of any size; the caller frees them. */
uint8_t *share_read(sherd__fragment *f);
/** Returns number `at`, in row-major order, of a fragment modulo prime q. A right operand in bytes
 *  has signed residues. */
int64_t share_value(const sherd__fragment_info *i, const uint8_t *body, uint32_t q, size_t at);
/** Returns the product of two blocks modulo every prime, computed by a plain loop. */
uint8_t *share_compute(const product *x, sherd__fragment *u, const uint8_t *ub, sherd__fragment *v,
                       const uint8_t *vb, const sherd__fragment_info *result);
/** Returns the correct answer of a cell, and its length (unless len is NULL). */
uint8_t *share_answer(product *x, sherd__cell c, uint64_t *len);
int share_judge(product *x, sherd__cell c, const uint8_t *body);

/** Returns the bytes that hide sends, or that stay at the node. */
uint8_t *share_hidden(product *x, sherd__cell c, uint64_t *len);
/** Returns a random set of `take` of n slots, as bits. */
uint32_t share_random_set(uint32_t n, uint32_t take);
/** Decodes a position from the answers of a set of slots, given in random order. */
void share_decode_from(product *x, uint32_t tile, uint32_t panel, uint8_t *const *body,
                       uint32_t set);
/** Runs every position; `sets` (NULL: random) are the sets of slots from which they are decoded, in
 *  turn. */
void share_run(product *x, const uint32_t *sets, size_t nsets);

/** Counts steps that failed for lack of memory and were repeated. */
extern unsigned share_shortages;
int share_again(int err);

/* Runs a step, and repeats it if it fails for lack of memory. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        int err_ = (call);                                                                         \
        if (err_ && share_again(err_)) assert_int_equal(call, 0);                                  \
    } while (0)

#endif
