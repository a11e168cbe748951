/*
 * The differences between a computed product and the centralized one, which --check prints and
 * judges.
 */
#ifndef MATRIX_COMPARE_H
#define MATRIX_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/mat.h"

typedef struct sherd__compare {
    uint64_t count;      /* entries compared */
    uint64_t equal;      /* bit for bit; any NaN equals any NaN, +0 and -0 differ */
    uint64_t close;      /* numpy.isclose(c, reference, equal_nan=True), its tolerances */
    uint64_t nan;        /* NaN on both sides: among `equal` and `close` */
    uint64_t mismatched; /* NaN or infinity on one side only, or of opposite signs */
    double max_abs;      /* largest |c - reference| over entries finite on both sides */
    size_t abs_row, abs_col;
    uint64_t max_ulp; /* steps between adjacent doubles, over the same entries */
    size_t ulp_row, ulp_col;
    size_t bit_row, bit_col; /* the first entry that is not bit-equal, if equal < count */

    /* Set by sherd__compare_product only. */
    uint64_t beyond;   /* entries with |c - A*B| > gamma_k*(|A|*|B|), or of a wrong class */
    uint64_t unjudged; /* |A|*|B| overflows, with A's row and B's column finite */
    size_t beyond_row, beyond_col; /* the first of `beyond` */
    double worst;                  /* largest |c - reference| / bound; may exceed 1, see below */
} sherd__compare;

/** Initialises an empty comparison; sherd__compare_rows adds to it, in any number of calls. */
void sherd__compare_init(sherd__compare *out);
/** Rows [row, row+rows) and columns [col, col+cols) of the matrices that are compared. */
typedef struct sherd__compare_part {
    size_t row, col, rows, cols;
} sherd__compare_part;
/** Adds the entries of a part; c and ref point at the first of them. */
void sherd__compare_rows(sherd__compare *out, const double *c, size_t ldc, const double *ref,
                         size_t ldr, sherd__compare_part at);

/**
 * Compares C with A*B, computed here in float64 panel by panel, and judges every entry by |c - A*B|
 * <= gamma_k*(|A|*|B|), gamma_k = k*u/(1-k*u), u = 2^-53 (Higham, section 3.1; valid for any order
 * of summation, fused or not), plus k*2^-1074 for underflow. The local product has an error of its
 * own. An entry within gamma_k of it therefore passes, one beyond 2 gamma_k fails, and one in
 * between is judged against a dot product in twice the precision: an honest entry never fails.
 * Where operands contain NaN or infinity the classes must agree.
 *
 * Returns 0 if it could compare; the verdict is out->beyond == 0. Temporaries take less than 64 MB
 * for any shape. Errors: SHERD_ESHAPE, SHERD_ENOMEM.
 */
int sherd__compare_product(sherd_view a, sherd_view b, const double *c, size_t ldc,
                           sherd__compare *out, sherd_diag *d) SHERD_MUST;

#endif
