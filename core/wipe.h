/* Erasure of data that must not outlive its use. */
#ifndef CORE_WIPE_H
#define CORE_WIPE_H

#include <stddef.h>

/** Zeroes len bytes at p. The compiler does not remove it, even if the memory is not read again. */
void sherd__wipe(void *p, size_t len);
/** Like sherd__wipe, for memory of sherd__alloc* that is freed next. Inner pages, if at least 16,
 *  go back to the system, which zeroes them before it hands them out again; pages never touched
 *  cost nothing. */
void sherd__wipe_pages(void *p, size_t len);

#endif
