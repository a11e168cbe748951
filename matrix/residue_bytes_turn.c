/*
 * The transpose of a left operand of byte residues. One tile of the result comes from a quarter of
 * the columns of four tiles, 16 rows each; eight rows of eight bytes are transposed at a time, in
 * registers of any processor.
 */
#include <string.h>

#include "core/bytes.h"
#include "matrix/residue_bytes_kernels.h"

enum { TILE = SHERD__BYTES_TILE, STEP = SHERD__BYTES_STEP, LEN = BYTES_TILE_LEN };

/* Exchanges the upper halves of a with the lower ones of b, in units of 2*shift bits. */
static inline void exchange(uint64_t *a, uint64_t *b, unsigned shift, uint64_t lower)
{
    uint64_t differ = (*a >> shift ^ *b) & lower;
    *b ^= differ;
    *a ^= differ << shift;
}

/* Transposes 8 x 8 bytes. Rows are STEP bytes apart in both. */
static inline void turn_eight(const uint8_t *in, uint8_t *out)
{
    uint64_t x[8];
    for (size_t r = 0; r < 8; r++) x[r] = sherd__get_u64(in + r * STEP);
    for (size_t r = 0; r < 4; r++) exchange(&x[r], &x[r + 4], 32, UINT64_C(0x00000000ffffffff));
    for (size_t r = 0; r < 8; r += r & 1 ? 3 : 1)
        exchange(&x[r], &x[r + 2], 16, UINT64_C(0x0000ffff0000ffff));
    for (size_t r = 0; r < 8; r += 2) exchange(&x[r], &x[r + 1], 8, UINT64_C(0x00ff00ff00ff00ff));
    for (size_t c = 0; c < 8; c++) sherd__put_u64(out + c * STEP, x[c]);
}

void sherd__bytes_turn(const uint8_t *in, size_t n, size_t strip, size_t number, uint8_t *out)
{
    const size_t strips = (n + TILE - 1) / TILE, rows = STEP / TILE;
    const uint8_t *from = in + number / rows * LEN + number % rows * TILE;
    for (size_t s = 0; s < (strips + rows - 1) / rows * rows; s++, from += strip) {
        uint8_t *to = out + s / rows * LEN + s % rows * TILE;
        for (size_t r = 0; r < TILE; r += 8)
            for (size_t c = 0; c < TILE; c += 8) {
                if (s < strips) turn_eight(from + r * STEP + c, to + c * STEP + r);
                else
                    for (size_t i = 0; i < 8; i++) memset(to + (c + i) * STEP + r, 0, 8);
            }
    }
}
