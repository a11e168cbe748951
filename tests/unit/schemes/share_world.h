/*
 * share and share1 through their vtable, with nodes that multiply by a plain loop modulo p:
 * products of drawn operands, what a node would answer, and what they should be.
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
    bool public_b, left_stays, zero_a;
    size_t panel_rows, tile_cols, part;
    unsigned bits, primes; /* primes: at least */
    sherd_dtype type;      /* of A and B */
    size_t check_bytes;
    double all;            /* f64: what all entries of A, and of D, are; 0: they are drawn */
    bool grouped;          /* primes hold sums over columns alone */
    sherd_windows windows; /* window 0: none; else A is of the windows of n images, k follows, and
                              the first product comes with share_next */
} fixture;

typedef struct product {
    fixture f;
    void *da, *db, *laid;
    sherd_view a, b; /* a: images, where there are windows */
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

/** Draws of what is tested. */
extern sherd__seeded share_scheme_state;
/** A group's set-up: all draws begin anew. */
int share_seed(void **state);
size_t share_below(size_t n);
/** Any that is small and allowed. */
fixture share_random_fixture(void);
/** Any with windows. */
fixture share_windows_fixture(void);
/** A itself: windows are laid out, in memory of the product's. */
sherd_view share_left(product *x);

/** A matrix of f's type, drawn or all alike; *data is freed and taken anew. */
void share_set_view(fixture f, size_t rows, size_t cols, bool zero, void **data, sherd_view *v,
                    sherd__fixed *fixed);
void share_open(product *x, fixture f);
void share_close(product *x);
/** Another right operand for the same shares of A. */
void share_next(product *x, size_t m, bool transposed);
sherd_rows share_rows(const product *x);
void share_is_exact(const product *x);

/** A fragment's bytes, read in pieces of any size; the caller's. */
uint8_t *share_read(sherd__fragment *f);
/** The product of two blocks modulo every prime, by a plain loop. */
uint8_t *share_compute(const product *x, sherd__fragment *u, const uint8_t *ub, sherd__fragment *v,
                       const uint8_t *vb, const sherd__fragment_info *result);
/** The honest answer of a cell, and how long it is (unless NULL). */
uint8_t *share_answer(product *x, sherd__cell c, uint64_t *len);
int share_judge(product *x, sherd__cell c, const uint8_t *body);

/** The bytes that hide sends, or that stay with the node. */
uint8_t *share_hidden(product *x, sherd__cell c, uint64_t *len);
/** `take` of n slots, drawn: ones in bits. */
uint32_t share_random_set(uint32_t n, uint32_t take);
/** Decodes a position from the answers of a set of slots, given in any order. */
void share_decode_from(product *x, uint32_t tile, uint32_t panel, uint8_t *const *body,
                       uint32_t set);
/** Runs every position; `sets` (NULL: drawn) are what each is decoded from, in turn. */
void share_run(product *x, const uint32_t *sets, size_t nsets);

/** Steps that failed for want of memory, and were tried again. */
extern unsigned share_shortages;
int share_again(int err);

/* A step, which may be tried again where there was no memory. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        int err_ = (call);                                                                         \
        if (err_ && share_again(err_)) assert_int_equal(call, 0);                                  \
    } while (0)

#endif
