/* malloc behind a counter, so that a torture test can make every allocation of a path fail in
 * turn. */
#include "core/alloc.h"

#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/bytes.h"
#include "core/memory.h"

static atomic_size_t count, fail_at;

static int fails_now(void)
{
    size_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    if (at == 0) return 0;
    return atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1 == at;
}

#define ASKED_FROM ((size_t)256 << 20)

/* No object is larger than PTRDIFF_MAX. A large request is compared with the memory available,
 * since the system grants more than it has and kills the process that fills it. */
static int absurd(size_t n)
{
    return n > PTRDIFF_MAX || (n >= ASKED_FROM && n > sherd__memory_available());
}

void *sherd__alloc(size_t n)
{
    return fails_now() || absurd(n) ? NULL : malloc(n ? n : 1);
}

#define HUGE_PAGE ((size_t)2 << 20)
#define LINE 64u

void *sherd__alloc_pages(size_t n)
{
    const bool huge = n > HUGE_PAGE / 2;
    void *p = NULL;
    if (fails_now() || absurd(n) || absurd(n + HUGE_PAGE)) return NULL;
    if (huge) n = (n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (posix_memalign(&p, huge ? HUGE_PAGE : LINE, n ? n : 1) != 0) return NULL;
    if (huge) (void)madvise(p, n, MADV_HUGEPAGE); /* advisory: an error changes nothing */
    return p;
}

void *sherd__alloc_large(size_t n)
{
    const uintptr_t page = 4096;
    void *p = sherd__alloc(n);
    if (!p || n < 2 * HUGE_PAGE) return p;
    uintptr_t from = ((uintptr_t)p + page - 1) & ~(page - 1), to = ((uintptr_t)p + n) & ~(page - 1);
    (void)madvise((void *)from, to - from, MADV_HUGEPAGE); /* advisory, as above */
    return p;
}

void sherd__alloc_reuse(size_t most)
{
    int all = most < INT_MAX ? (int)most : INT_MAX;
    (void)mallopt(M_TRIM_THRESHOLD, all); /* advisory, as above */
    (void)mallopt(M_MMAP_THRESHOLD, all / 8);
}

void *sherd__calloc(size_t n, size_t size)
{
    size_t all;
    if (fails_now() || !sherd__mul(n, size, &all) || absurd(all)) return NULL;
    return calloc(n ? n : 1, size ? size : 1);
}

void *sherd__realloc(void *p, size_t n)
{
    return fails_now() || absurd(n) ? NULL : realloc(p, n ? n : 1);
}

#define SLICED_FROM ((size_t)32 << 20) /* usually a mapping of its own: free keeps no page */
#define SLICE (8 * HUGE_PAGE)

static _Thread_local bool in_slices;

/* The system holds a lock on all mappings of the process while it takes pages back. The pause lets
 * threads that wait for the lock take it; without it this thread would take it first each time. */
static void give_back(void *p, size_t n)
{
    const struct timespec pause = { 0, 1 };
    uint8_t *end = (uint8_t *)p + n, *at = (uint8_t *)p + (-(uintptr_t)p & (HUGE_PAGE - 1));
    for (; (size_t)(end - at) >= SLICE; at += SLICE) {
        (void)madvise(at, SLICE, MADV_DONTNEED);
        (void)nanosleep(&pause, NULL);
    }
}

void sherd__free_in_slices(bool slices)
{
    in_slices = slices;
}

void sherd__free(void *p)
{
    size_t n = in_slices ? malloc_usable_size(p) : 0;
    if (n >= SLICED_FROM) give_back(p, n);
    free(p);
}

char *sherd__strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = sherd__alloc(n);
    return copy ? memcpy(copy, s, n) : NULL;
}

size_t sherd__alloc_fail_nth(size_t n)
{
    atomic_store(&fail_at, n);
    return atomic_exchange(&count, 0);
}
