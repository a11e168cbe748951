/* Shared by the files of packed residues: residue_pack.c for every processor, and residue_wide.c
 * for AVX-512 only. Both functions return false and do nothing where the processor does not support
 * them. */
#ifndef MATRIX_RESIDUE_INTERNAL_H
#define MATRIX_RESIDUE_INTERNAL_H

#include "matrix/residue.h"

bool sherd__residue_pack_wide(const double *x, size_t n, uint32_t p, uint8_t *out);
/** Sets *most to the largest value; if that is not below p, out is undefined. */
bool sherd__residue_unpack_wide(const uint8_t *in, size_t n, uint32_t p, double *out,
                                uint32_t *most);

#endif
