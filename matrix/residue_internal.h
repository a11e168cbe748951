/* What the files of packed residues share: residue_pack.c for every processor, and residue_wide.c
 * for AVX-512 alone. Both say false where that cannot be: nothing was done. */
#ifndef MATRIX_RESIDUE_INTERNAL_H
#define MATRIX_RESIDUE_INTERNAL_H

#include "matrix/residue.h"

bool sherd__residue_pack_wide(const double *x, size_t n, uint32_t p, uint8_t *out);
/** *most is the largest value: where that is not below p, out is of no use. */
bool sherd__residue_unpack_wide(const uint8_t *in, size_t n, uint32_t p, double *out,
                                uint32_t *most);

#endif
