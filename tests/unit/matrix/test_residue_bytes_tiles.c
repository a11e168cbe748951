/* Products by the code for AMX, with its tiles computed by functions of this file, so that it is
 * tested on processors without AMX as well (they need AVX-512). */
#include "tests/unit/matrix/bytes_emulated.h"

#include "matrix/tiles.h"

#ifdef SHERD__V4_BYTES
#include <immintrin.h>

static union tile {
    uint8_t bytes[16][64];
    int8_t whole[16][64];
    int32_t words[16][16];
} tiles[8];

static void load(unsigned t, const void *from, size_t stride)
{
    for (size_t r = 0; r < 16; r++) memcpy(tiles[t].bytes[r], (const char *)from + r * stride, 64);
}

static void store(unsigned t, void *to, size_t stride)
{
    for (size_t r = 0; r < 16; r++) memcpy((char *)to + r * stride, tiles[t].bytes[r], 64);
}

/* As Intel's manual defines TDPBUSD. */
static void multiply_add(unsigned sum, unsigned a, unsigned b)
{
    for (size_t m = 0; m < 16; m++)
        for (size_t k = 0; k < 16; k++)
            for (size_t n = 0; n < 16; n++)
                for (size_t i = 0; i < 4; i++)
                    tiles[sum].words[m][n] += tiles[a].bytes[m][4 * k + i] *
                                              tiles[b].whole[k][4 * n + i];
}

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbusd
#undef SHERD__TILES_BEGIN
#undef SHERD__TILES_END
#undef SHERD__TILES
#define _tile_loadd(t, from, stride) load(t, from, stride)
#define _tile_stored(t, to, stride) store(t, to, stride)
#define _tile_zero(t) memset(&tiles[t], 0, sizeof tiles[t])
#define _tile_dpbusd(sum, a, b) multiply_add(sum, a, b)
#define SHERD__TILES_BEGIN() memset(tiles, 0xa5, sizeof tiles)
#define SHERD__TILES_END() memset(tiles, 0xa5, sizeof tiles)
#define SHERD__TILES SHERD__V4_BYTES
#define sherd__tiles_here() SHERD__IS_V4_BYTES
#include "matrix/residue_bytes_wide.c" /* instead of the library's */

static bool here(void)
{
    return sherd__bytes_force(SHERD__BYTES_AMX);
}
#else
static bool here(void)
{
    return false;
}
#endif

int main(void)
{
    return run_emulated();
}
