/* Residues for tests of the Lagrange code; see lagrange_world.h. */
#include "tests/unit/crypto/lagrange_world.h"

#include "tests/support/draw.h"

double lcc_residue(uint32_t p)
{
    return (double)((int64_t)(draw() % p) - (int64_t)((p - 1) / 2));
}

uint64_t lcc_mod(int64_t x, uint32_t p)
{
    x %= (int64_t)p;
    return (uint64_t)(x < 0 ? x + p : x);
}
