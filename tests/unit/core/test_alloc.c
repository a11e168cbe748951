/* The allocation wrapper: sizes of 0, sizes that overflow, and failure of the n-th allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/alloc.h"

static void an_allocation_of_zero_bytes_has_an_address_of_its_own(void **state)
{
    (void)state;
    void *a = sherd__alloc(0), *b = sherd__calloc(0, 8), *c = sherd__calloc(8, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_ptr_not_equal(a, b);
    assert_ptr_not_equal(b, c);
    assert_non_null(a = sherd__realloc(a, 0));
    sherd__free(a);
    sherd__free(b);
    sherd__free(c);
    sherd__free(NULL);
}

static void a_count_that_overflows_is_refused(void **state)
{
    (void)state;
    volatile size_t half = SIZE_MAX / 2 + 1; /* volatile: the compiler would warn about the overflow
                                              * under test */
    assert_null(sherd__calloc(half, 2));
    assert_null(sherd__calloc(2, half + 1));
}

static void cleared_memory_is_zero(void **state)
{
    (void)state;
    static const uint8_t zero[999];
    for (int i = 0; i < 20; i++) {
        uint8_t *dirty = sherd__alloc(sizeof zero);
        assert_non_null(dirty);
        memset(dirty, 0xa5, sizeof zero);
        sherd__free(dirty);
        uint8_t *p = sherd__calloc(333, 3);
        assert_non_null(p);
        assert_memory_equal(p, zero, sizeof zero);
        sherd__free(p);
    }
}

static void exactly_the_nth_allocation_fails(void **state)
{
    (void)state;
    char *keep = sherd__strdup("kept");
    assert_non_null(keep);
    for (size_t n = 1; n <= 6; n++) {
        sherd__alloc_fail_nth(n);
        void *got[4] = { sherd__alloc(3), sherd__calloc(1, 3), sherd__strdup("abc"), NULL };
        got[3] = sherd__realloc(keep, 50);
        assert_string_equal(got[3] ? got[3] : keep, "kept");
        if (got[3]) keep = got[3];
        assert_int_equal(sherd__alloc_fail_nth(0), 4);
        for (size_t i = 0; i < 4; i++) assert_int_equal(!got[i], i + 1 == n);
        for (size_t i = 0; i < 3; i++) sherd__free(got[i]);
    }
    void *p = sherd__alloc(1);
    assert_non_null(p); /* 0 disables failing */
    sherd__free(p);
    sherd__free(keep);
}

static void allocated_pages_are_aligned_and_writable(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 65, 1000000, 3000000, 4194305 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *p = sherd__alloc_pages(sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (sizes[i] > 1 << 20 ? 1 << 21 : 64), 0);
        memset(p, 0xa5, sizes[i]);
        sherd__free(p);
    }
    assert_null(sherd__alloc_pages(SIZE_MAX));
    assert_null(sherd__alloc_pages(PTRDIFF_MAX));
    sherd__alloc_fail_nth(1);
    assert_null(sherd__alloc_pages(1));
    assert_int_equal(sherd__alloc_fail_nth(0), 1);
}

/* What the allocator requests from the system. */
static size_t longest, given_back;

int madvise(void *p, size_t n, int advice)
{
    if (advice == MADV_DONTNEED) {
        given_back += n;
        if (n > longest) longest = n;
    }
    return (int)syscall(SYS_madvise, p, n, advice);
}

static void large_allocations_are_returned_to_the_system_in_slices(void **state)
{
    enum { MB = 1 << 20, SMALL = 16 * MB, LARGE = 100 * MB };
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        void *small = sherd__alloc(SMALL);
        uint8_t *p = kind == 0   ? sherd__alloc(LARGE)
                     : kind == 1 ? sherd__alloc_large(LARGE)
                     : kind == 2 ? sherd__alloc_pages(LARGE)
                                 : sherd__calloc(LARGE, 1);
        sherd__free_in_slices(kind < 4);
        assert_non_null(p);
        for (size_t i = 0; i < LARGE; i += 4096) p[i] = 1;
        longest = given_back = 0;
        sherd__free(small);
        assert_int_equal(given_back, 0);
        sherd__free(p);
        sherd__free_in_slices(false);
        if (kind == 4) {
            assert_int_equal(given_back, 0); /* slices are not enabled */
            continue;
        }
        assert_true(longest <= 16 * MB);
        assert_true(given_back >= LARGE - 20 * MB && given_back <= LARGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_of_zero_bytes_has_an_address_of_its_own),
        cmocka_unit_test(a_count_that_overflows_is_refused),
        cmocka_unit_test(cleared_memory_is_zero),
        cmocka_unit_test(exactly_the_nth_allocation_fails),
        cmocka_unit_test(allocated_pages_are_aligned_and_writable),
        cmocka_unit_test(large_allocations_are_returned_to_the_system_in_slices),
    };
    return cmocka_run_group_tests_name("core/alloc", tests, NULL, NULL);
}
