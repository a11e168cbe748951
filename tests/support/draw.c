/* Knuth's linear congruential generator; its upper bits, since the lower ones hardly differ. */
#include "tests/support/draw.h"

uint64_t draw_state = 1;

uint64_t draw(void)
{
    draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return draw_state >> 33;
}
