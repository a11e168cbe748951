/* The table of codes, one line for each. There is no other list of them. */
#include "crypto/code.h"

#include <stddef.h>

#include "crypto/inner.h"

const sherd__code *const sherd__codes[] = { &sherd__code_lagrange, &sherd__code_inner, NULL };

uint32_t sherd__code_right_blocks(const sherd__code *code, const sherd__lcc *c)
{
    return code->cut == SHERD__CUT_ROWS ? 1 : c->blocks;
}
