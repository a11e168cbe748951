/*
 * A profile: what the library has found out about the values of one operand. A product examines its
 * operands (zeros, magnitudes, NaN) before it plans anything, and so do the checks before it, its
 * forecast and its certificate. With a profile each of these passes over the data is made once:
 * give it to all these calls as sherd_product_options.profile_a or profile_b, and keep it for
 * further products of the same operand. Without one, every call examines the operand itself.
 *
 * A profile computes a value when it is first asked for, and keeps it. The operand must therefore
 * not change as long as its profile is used. Any number of threads may use a profile at the same
 * time, and so may the hooks of a call that it was given to.
 */
#ifndef SHERD_PROFILE_H
#define SHERD_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/mat.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sherd_profile sherd_profile;

/** Makes a profile of v, whose memory it refers to: it must stay valid until sherd_profile_free.
 *  Nothing is read yet. The caller frees *out. SHERD_EINVAL (a view without data), SHERD_ENOMEM. */
SHERD_API int sherd_profile_new(sherd_profile **out, sherd_view v, sherd_diag *d) SHERD_MUST;
/** Ends the computation of the digest if its thread still runs, which takes some milliseconds. NULL
 *  is allowed. */
SHERD_API void sherd_profile_free(sherd_profile *p);

typedef struct sherd_profile_info {
    size_t size; /* sizeof(sherd_profile_info), set by the caller */
    uint64_t rows, cols;
    uint64_t nonzeros;       /* entries that are not 0; NaN and infinities count */
    uint64_t nonfinite;      /* NaN and infinities */
    double min_abs, max_abs; /* magnitudes, over the finite entries; 0 and 0 if there are none */
    bool integers;           /* every entry is finite and whole */
} sherd_profile_info;

/** Examines the operand, in one pass over it. */
SHERD_API int sherd_profile_get(sherd_profile *p, sherd_profile_info *out,
                                sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_profile_info_fields(size_t *count);

/** The effect of rounding an operand to fixed point (sherd_product_options.exact). */
typedef struct sherd_rounding {
    size_t size;               /* sizeof(sherd_rounding), set by the caller */
    uint64_t vanished;         /* entries that are not 0 and become 0 */
    uint64_t nonzeros;         /* entries that are not 0; 0 for integers, which are not rounded */
    double relative_error;     /* largest error of an entry, divided by the largest entry */
    double max_error, max_abs; /* these two; 0 and 0 for integers */
    int32_t scale;             /* s of the fixed point: entries are multiples of 2^-s */
} sherd_rounding;

/** Measures what rounding to `bits` bits does (2..53), in one more pass over the operand. Errors
 *  are those of the product: SHERD_ERANGE for NaN, infinity and integers beyond 2^53;
 *  SHERD_EINVAL. */
SHERD_API int sherd_profile_rounding_get(sherd_profile *p, uint32_t bits, sherd_rounding *out,
                                         sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_rounding_fields(size_t *count);

/** Writes the operand's SHA-256, 32 bytes, as in certificates (docs/CERTIFICATES.md, "Digests").
 *  SHERD_ENOMEM. */
SHERD_API int sherd_profile_digest(sherd_profile *p, uint8_t sha256[32], sherd_diag *d) SHERD_MUST;
/** Starts to compute the digest in a thread of its own, while a product runs. It is an
 *  optimisation: if no thread can be started, sherd_profile_digest computes it. */
SHERD_API void sherd_profile_digest_start(sherd_profile *p);

#ifdef __cplusplus
}
#endif

#endif
