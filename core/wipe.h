/* Erasing what must not outlive its use. */
#ifndef CORE_WIPE_H
#define CORE_WIPE_H

#include <stddef.h>

/** Zeroes len bytes at p, and is not optimised away even where nobody reads them again. */
void sherd__wipe(void *p, size_t len);
/** The same for memory of sherd__alloc* that is freed next. 16 whole pages and more go back to the
 *  system, which zeroes them as it gives them out again; pages never touched cost nothing. */
void sherd__wipe_pages(void *p, size_t len);

#endif
