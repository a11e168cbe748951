/* Sizes of the parts of a whole. */
#ifndef CORE_PIECES_H
#define CORE_PIECES_H

#include <stddef.h>

/** Returns the smaller number. */
static inline size_t sherd__least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** Returns the number of pieces of `each` > 0 elements, the last of which may be smaller; 0 of
 *  none. */
static inline size_t sherd__pieces(size_t all, size_t each)
{
    return all / each + (all % each != 0);
}

#endif
