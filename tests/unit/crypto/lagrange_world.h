/* Residues, drawn and reduced with integers, for tests of the Lagrange code. */
#ifndef TESTS_UNIT_CRYPTO_LAGRANGE_WORLD_H
#define TESTS_UNIT_CRYPTO_LAGRANGE_WORLD_H

#include <stdint.h>

#include "crypto/lagrange.h"

/** Maximum number of terms of a code. */
#define MOST SHERD__LCC_BLOCKS_MAX

/** Draws a balanced residue: |x| <= (p - 1) / 2. */
double lcc_residue(uint32_t p);
/** Returns x modulo p, in [0, p). */
uint64_t lcc_mod(int64_t x, uint32_t p);

#endif
