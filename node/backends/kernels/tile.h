/*
 * The kernel of a product, for one kind of numbers: the body of a function, which a header of a
 * kind (product_*.h) parametrises and which is read once after each of them.
 *
 *   TILE_NAME              the kernel
 *   TILE_NUMBER, TILE_SUM  types of numbers in the group's memory, and of sums
 *   TILE_TERMS             terms of a sum in one number
 *   TILE_LEFT(i, k)        reads number k of row i of the left operand
 *   TILE_RIGHT(k, j)       reads number k of column j of the right operand
 *   TILE_ADD(sum, u, v)    returns the sum with a product added
 *   TILE_FOLD(sum)         makes room in a sum; called after every TILE_FOLD_STEPS steps
 *   TILE_PUT(at, sum)      stores element `at` of the result
 *
 * A group computes a tile of 64 x 64. In each step its items copy 16 numbers of each of the tile's
 * rows and columns to the group's memory, and each item adds their products to its 16 sums, whose
 * rows and columns are 16 apart: so neighbours read and write neighbouring numbers. Every sum is
 * added up by ascending k, whatever the other rows and columns are.
 */
#ifdef TILE_NAME

#define TILE_STEP(k)                                                                               \
    for (uint32_t i = 0; i < 4; i++)                                                               \
        for (uint32_t j = 0; j < 4; j++)                                                           \
    SHERD__MINE(sums)[i][j] = TILE_ADD(SHERD__MINE(sums)[i][j], u[k][y + 16 * i], v[k][x + 16 * j])

SHERD__ENTRY(TILE_NAME)
{
    SHERD__SHARED TILE_NUMBER u[KERNEL_DEPTH][KERNEL_TILE + 1], v[KERNEL_DEPTH][KERNEL_TILE];
    SHERD__PRIVATE(TILE_SUM, sums, [4][4]);
    const uint64_t row = job.row + (uint64_t)SHERD__GROUP_Y * KERNEL_TILE;
    const uint64_t col = (uint64_t)SHERD__GROUP_X * KERNEL_TILE;
    const uint64_t numbers = (job.k + TILE_TERMS - 1) / TILE_TERMS;
    SHERD__ITEMS
    {
        for (uint32_t i = 0; i < 4; i++)
            for (uint32_t j = 0; j < 4; j++) SHERD__MINE(sums)[i][j] = 0;
    }
    for (uint64_t step = 0; step * KERNEL_DEPTH < numbers; step++) {
        const uint64_t first = step * KERNEL_DEPTH;
        SHERD__ITEMS
        {
            for (uint32_t l = item; l < KERNEL_TILE * KERNEL_DEPTH; l += SHERD__GROUP) {
                const uint32_t down = l / KERNEL_TILE, line = l % KERNEL_TILE;
                const uint32_t i = job.transposed ? line : l / KERNEL_DEPTH;
                const uint32_t k = job.transposed ? down : l % KERNEL_DEPTH;
                u[k][i] = row + i < job.n && first + k < numbers ? TILE_LEFT(row + i, first + k)
                                                                 : 0;
                v[down][line] = col + line < job.m && first + down < numbers
                                    ? TILE_RIGHT(first + down, col + line)
                                    : 0;
            }
        }
        SHERD__BARRIER;
        SHERD__ITEMS
        {
            const uint32_t x = item % 16, y = item / 16;
            /* Not where all sums of the item are beyond the edges of the result. */
            const uint32_t used = row + y < job.n && col + x < job.m;
            if (used && numbers - first >= KERNEL_DEPTH) {
                for (uint32_t k = 0; k < KERNEL_DEPTH; k++) TILE_STEP(k);
            } else if (used) {
                for (uint32_t k = 0; k < numbers - first; k++) TILE_STEP(k);
            }
            if (step % TILE_FOLD_STEPS == TILE_FOLD_STEPS - 1)
                for (uint32_t i = 0; i < 4; i++)
                    for (uint32_t j = 0; j < 4; j++)
                        SHERD__MINE(sums)[i][j] = TILE_FOLD(SHERD__MINE(sums)[i][j]);
        }
        SHERD__BARRIER;
    }
    SHERD__ITEMS
    {
        for (uint32_t i = 0; i < 4; i++)
            for (uint32_t j = 0; j < 4; j++) {
                const uint64_t r = row + item / 16 + 16 * i;
                const uint64_t c = col + item % 16 + 16 * j;
                if (r < job.n && c < job.m) TILE_PUT(r * job.m + c, SHERD__MINE(sums)[i][j]);
            }
    }
#ifndef SHERD__DEVICE
    (void)bad;
#endif
}

#undef TILE_STEP
#undef TILE_NAME
#undef TILE_NUMBER
#undef TILE_SUM
#undef TILE_TERMS
#undef TILE_LEFT
#undef TILE_RIGHT
#undef TILE_ADD
#undef TILE_FOLD
#undef TILE_FOLD_STEPS
#undef TILE_PUT

#endif
