/*
 * `unhidden`, a scheme of the tests that hides nothing and claims nothing: node i is given a range
 * of A's rows and all of B, as doubles. It is written as CONTRIBUTING's "Adding a scheme" says;
 * nothing in the library refers to it.
 */
#ifndef TESTS_CONTRACT_UNHIDDEN_H
#define TESTS_CONTRACT_UNHIDDEN_H

#include "core/rand.h"
#include "matrix/fixed.h"
#include "schemes/scheme.h"
#include "sherd/scheme.h"

#define UNHIDDEN ((sherd_scheme)77)

extern const sherd_scheme_info unhidden;
extern const struct sherd__planner unhidden_planner;

typedef struct unhidden_params {
    sherd_view b; /* k x m; read by unhidden_open only */
    uint32_t slots;
    size_t rows_max, panel_rows, tile_cols; /* rows_max: of any A */
    const sherd__fixed *fixed_a, *fixed_b;  /* NULL: the operands are floats. Borrowed */
    sherd__entropy entropy;
} unhidden_params;

/** Opens a hiding without an A. SHERD_ENOMEM. */
int unhidden_open(sherd__hiding *out, const unhidden_params *p);
/** Sets A and the destination of the product. SHERD_ESHAPE. */
int unhidden_next(sherd__hiding *h, sherd_view a, double *c, size_t ldc);
/** Returns the number of rows of the slot. */
size_t unhidden_planned(const sherd__hiding *h, uint32_t slot);

#endif
