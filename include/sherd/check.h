/*
 * Comparison of a result with the centralized one, which is computed on this machine: the proof
 * that nodes computed what they were asked. It costs as much as the operation does here.
 *
 * Exact products and element-wise operations have one correct result, and every bit must equal it.
 * An entry of a product in floats is right if it is within gamma_k |A||B| of the true value, which
 * every order of summation is (docs/CERTIFICATES.md, "Computing the result again").
 */
#ifndef SHERD_CHECK_H
#define SHERD_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/mat.h"
#include "sherd/op.h"
#include "sherd/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What was computed. Zero-initialise, set size, then set what differs. */
typedef struct sherd_check_options {
    size_t size;                          /* sizeof(sherd_check_options) */
    sherd_op op;                          /* 0: SHERD_OP_PRODUCT */
    bool exact;                           /* products: in fixed point */
    uint32_t bits;                        /* exact: width that A was rounded to, 2..53; 0: 17 */
    uint32_t bits_b;                      /* exact: width of B; 0: as bits */
    const char *name_a, *name_b, *name_c; /* names of operands and result in messages; NULL: "A",
                                             "B", and no name */
    sherd_profile *profile_a, *profile_b; /* profiles of the operands, or NULL */
    sherd_hooks hooks;                    /* progress counts rows */
} sherd_check_options;

/** How entries were judged. */
typedef enum sherd_judged {
    SHERD_JUDGED_BITS = 0, /* by their bits; any NaN equals any NaN */
    SHERD_JUDGED_GAMMA = 1 /* by gamma_k |A||B| */
} sherd_judged;

typedef struct sherd_check {
    size_t size;         /* sizeof(sherd_check), set by the caller */
    bool equal;          /* every entry is right */
    sherd_judged judged; /* how entries were judged */
    uint64_t entries;    /* number of entries compared */
    uint64_t bit_equal;  /* number of entries that are equal in every bit */
    uint64_t isclose;    /* by numpy.isclose with its tolerances, equal_nan=True */
    uint64_t mismatched; /* NaN or infinity on one side only, or of opposite signs */
    double max_abs;      /* largest difference of entries that are finite on both sides */
    uint64_t max_ulp;    /* the same difference in steps between adjacent doubles */
    uint64_t beyond;     /* gamma: number of entries beyond the bound, or of another class than the
                          true entry */
    double worst;      /* gamma: largest difference, as a fraction of its bound. It may exceed 1 for
                          a correct entry, because the result computed here has errors, too */
    uint64_t row, col; /* unless `equal`: the first wrong entry */
    double seconds;    /* time of computing and comparing */
    uint64_t blas_calls; /* number of BLAS calls that this took */
    uint64_t unjudged;   /* gamma: number of entries without a bound, because |A||B| overflows; they
                            are not compared */
    uint64_t nan;        /* number of entries that are NaN in both results; they count as equal, in
                            `bit_equal` and `isclose`, too */
} sherd_check;

SHERD_API const sherd_field *sherd_check_fields(size_t *count);

/**
 * Computes the operation here and compares c with it; all views of any strides, c in float64.
 * Element-wise operations with one operand ignore b. *out may be NULL. Memory besides operands and
 * result: some 64 MB for a product; a copy of c, unless its rows are contiguous.
 *
 * Errors: SHERD_EDIFFERS: c is wrong; *out is filled, and the message says where. SHERD_ESHAPE,
 * SHERD_EINVAL, SHERD_ERANGE (exact: values that fixed point cannot represent; gamma: no entry can
 * be judged), SHERD_EINTERRUPTED, SHERD_ENOMEM; *out is unchanged.
 */
SHERD_API int sherd_check_result(sherd_view a, sherd_view b, sherd_view c,
                                 const sherd_check_options *opt, sherd_check *out,
                                 sherd_diag *d) SHERD_MUST;

/** The distance of an exact product from the product in float64: what rounding to fixed point
 *  costs. */
typedef struct sherd_distance {
    size_t size;       /* sizeof(sherd_distance), set by the caller */
    double largest;    /* largest difference of an entry */
    uint64_t row, col; /* the first entry with that difference */
    double bound;      /* largest difference that rounding and both computations allow */
    double
        relative; /* norm of all differences, divided by that of the float64 product (Frobenius) */
} sherd_distance;

SHERD_API const sherd_field *sherd_distance_fields(size_t *count);
/** Measures it by computing the product in float64 here. opt as above; its op must be a product.
 *  Errors as above, except SHERD_EDIFFERS. */
SHERD_API int sherd_check_distance(sherd_view a, sherd_view b, sherd_view c,
                                   const sherd_check_options *opt, sherd_distance *out,
                                   sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
