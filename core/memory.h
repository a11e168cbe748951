/* The amount of memory that this process can take. */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include <stdint.h>

/**
 * Returns the number of bytes that can be allocated and filled without swapping or being killed:
 * the minimum of the memory available on the machine, the rest of the control groups' limits, and
 * the rest of the limit on the address space (ulimit -v). Returns UINT64_MAX where none of them is
 * known. The value can change at any time.
 */
uint64_t sherd__memory_available(void);
/** Returns the memory of the machine, in bytes; 0 where it is not known. *limit receives the limit
 *  of the container that this process runs in, or 0 if there is none below that. */
uint64_t sherd__memory_machine(uint64_t *limit);
/** Returns the default budget of each of `nodes` nodes, at least 1, on one machine like this: half
 *  of the memory of the machine (or its container), divided by their number. */
uint64_t sherd__memory_of_node(uint32_t nodes);
/** Like sherd__memory_available, for files under `root` instead of / (for tests) and without the
 *  limits of the process. */
uint64_t sherd__memory_available_in(const char *root);

#endif
