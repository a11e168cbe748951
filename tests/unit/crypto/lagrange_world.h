/* Residues, drawn and reduced in integers, for tests of the Lagrange code. */
#ifndef TESTS_UNIT_CRYPTO_LAGRANGE_WORLD_H
#define TESTS_UNIT_CRYPTO_LAGRANGE_WORLD_H

#include <stdint.h>

#include "crypto/lagrange.h"

/** Terms of a code. */
#define MOST SHERD__LCC_BLOCKS_MAX

/** The next one drawn, balanced: at most (p - 1) / 2 either way. */
double lcc_residue(uint32_t p);
/** x modulo p, in [0, p). */
uint64_t lcc_mod(int64_t x, uint32_t p);

#endif
