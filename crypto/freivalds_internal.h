/* What the files of the check modulo p share: freivalds_fp.c for every processor, and
 * freivalds_wide.c for AVX-512 alone. */
#ifndef CRYPTO_FREIVALDS_INTERNAL_H
#define CRYPTO_FREIVALDS_INTERNAL_H

#include "crypto/freivalds.h"

/** sherd__fvp_answer without its verdict on the peer: *most is the largest residue, and where that
 *  is not below p, out is of no use. False where that cannot be: nothing was done. */
bool sherd__fvp_answer_wide(const uint8_t *packed, size_t rows, size_t cols,
                            const double *const r[SHERD__FVP_TRIALS],
                            const double *const s[SHERD__FVP_TRIALS], uint32_t p, uint32_t *most,
                            uint32_t out[SHERD__FVP_TRIALS]);

#endif
