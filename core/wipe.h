/* Erasing what must not outlive its use. */
#ifndef CORE_WIPE_H
#define CORE_WIPE_H

#include <stddef.h>

/** Zeroes len bytes at p, and is not optimised away even where nobody reads them again. */
void sherd__wipe(void *p, size_t len);

#endif
