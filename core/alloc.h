/* The one way to allocate, so that tests can make the n-th allocation fail. */
#ifndef CORE_ALLOC_H
#define CORE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/** n bytes, uninitialised (n = 0 gives a unique pointer), or NULL: here and below also where n is
 *  256 MiB or more and more than there is (core/memory.h). */
void *sherd__alloc(size_t n);
/** The same for megabytes that will be filled soon: with huge pages where the system has them, the
 *  first touch costs half. */
void *sherd__alloc_large(size_t n);
/** For memory that is gone over again and again, as weights are: in whole huge pages where it would
 *  fill most of one, elsewhere on a cache line of its own. */
void *sherd__alloc_pages(size_t n);
/** Has the process keep up to `most` freed bytes, in pieces of up to an eighth of that, for the
 *  next who asks: what is taken and given back for every product would else cost a fault a page.
 *  For a process of our own, once, before other threads. */
void sherd__alloc_reuse(size_t most);
/** count * size bytes, zeroed; NULL on failure and where the product would wrap. */
void *sherd__calloc(size_t count, size_t size);
/** Grows or shrinks p to n bytes; on failure NULL, and p stays valid. */
void *sherd__realloc(void *p, size_t n);
void sherd__free(void *p);
/** Whether what this thread frees goes back to the system some MB at a time, where it is large:
 *  other threads that take or free memory wait for one slice at most, and not for all of it. false
 *  at first; it takes twice as long. */
void sherd__free_in_slices(bool slices);
/** A copy of a terminated string, or NULL. */
char *sherd__strdup(const char *s);

/** Test hook: makes the nth allocation from now fail (0 = never); returns how many happened since
 *  the last call. Process-wide, atomic. */
size_t sherd__alloc_fail_nth(size_t n);

#endif
