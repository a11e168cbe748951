/* Memory allocation. All allocations go through these functions, so that tests can make the n-th
 * one fail. */
#ifndef CORE_ALLOC_H
#define CORE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/** Returns n bytes, uninitialised, or NULL on failure; n = 0 gives a unique pointer. All functions
 *  here also fail where n is at least 256 MiB and exceeds the memory available (core/memory.h). */
void *sherd__alloc(size_t n);
/** Like sherd__alloc, for buffers of megabytes that are filled soon: uses huge pages where the
 *  system has them, which halves the cost of the first touch. */
void *sherd__alloc_large(size_t n);
/** Like sherd__alloc, for memory that is read repeatedly, such as weights: aligned to whole huge
 *  pages where n exceeds half of one, otherwise to a cache line. */
void *sherd__alloc_pages(size_t n);
/** Lets the process keep up to `most` freed bytes, in blocks of up to an eighth of that, for later
 *  allocations. Without it, memory allocated and freed for every product costs one page fault per
 *  page. Call it once, before other threads start, and only in a program of this project. */
void sherd__alloc_reuse(size_t most);
/** Returns count * size bytes, zeroed, or NULL on failure and where the product would wrap. */
void *sherd__calloc(size_t count, size_t size);
/** Resizes p to n bytes. Returns NULL on failure; p then stays valid. */
void *sherd__realloc(void *p, size_t n);
void sherd__free(void *p);
/** Sets whether this thread returns large blocks to the system some MB at a time when it frees
 *  them. Other threads that allocate or free memory then wait for at most one slice instead of the
 *  whole block. Freeing takes twice as long. The default is false. */
void sherd__free_in_slices(bool slices);
/** Returns a copy of a terminated string, or NULL on failure. The caller frees it with
 *  sherd__free. */
char *sherd__strdup(const char *s);

/** Test hook: makes the nth allocation from now fail (0 = never). Returns the number of allocations
 *  since the last call. Process-wide, atomic. */
size_t sherd__alloc_fail_nth(size_t n);

#endif
