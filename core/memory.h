/* How much memory there is for this process to take. */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include <stdint.h>

/**
 * Bytes that can be had and filled without swapping or being killed: the least of what the machine
 * has available, what control groups leave, and what limits on the address space (ulimit -v) leave;
 * UINT64_MAX where nothing of that is told. A moment later it may be another number.
 */
uint64_t sherd__memory_available(void);
/** The same of files under `root` in place of /, for tests; limits of the process are left out. */
uint64_t sherd__memory_told(const char *root);

#endif
