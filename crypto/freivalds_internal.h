/* Shared by the files of the check modulo p: freivalds_fp.c for every processor, and
 * freivalds_wide.c for AVX-512 only. */
#ifndef CRYPTO_FREIVALDS_INTERNAL_H
#define CRYPTO_FREIVALDS_INTERNAL_H

#include "crypto/freivalds.h"

/** Does sherd__fvp_answer without judging the peer: sets *most to the largest residue; if that is
 *  not below p, out is undefined. Returns false, and does nothing, where the processor does not
 *  support it. */
bool sherd__fvp_answer_wide(const uint8_t *packed, size_t rows, size_t cols,
                            const double *const r[SHERD__FVP_TRIALS],
                            const double *const s[SHERD__FVP_TRIALS], uint32_t p, uint32_t *most,
                            uint32_t out[SHERD__FVP_TRIALS]);

#endif
