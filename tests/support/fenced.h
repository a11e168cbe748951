/* Operands of kernels in memory that ends at an inaccessible page, so that one byte beyond is a
 * fault, and the numbers in them. Included after cmocka.h. */
#ifndef TESTS_SUPPORT_FENCED_H
#define TESTS_SUPPORT_FENCED_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static uint64_t state = 17;

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % below);
}

/* len bytes in front of an inaccessible page. */
typedef struct fenced {
    uint8_t *map, *at;
    size_t size;
} fenced;

static fenced fence(size_t len)
{
    size_t size = (len + PAGE - 1) / PAGE * PAGE + PAGE;
    uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + size - PAGE, PAGE, PROT_NONE), 0);
    memset(p, 0xa5, size - PAGE);
    return (fenced){ p, p + size - PAGE - len, size };
}

#endif
