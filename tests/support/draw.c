/* Knuth's linear congruential generator. Only its upper bits are used, since its lower bits have
 * short periods. */
#include "tests/support/draw.h"

uint64_t draw_state = 1;

uint64_t draw(void)
{
    draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return draw_state >> 33;
}
