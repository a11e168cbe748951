/* Memory for answers that is reused: each buffer has one owner, buffers do not overlap, and idle
 * memory is limited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "scheduler/cluster/buffers.h"

static sherd__buffers *fresh(void)
{
    sherd__buffers *b;
    assert_int_equal(sherd__buffers_new(&b), SHERD_OK);
    return b;
}

static void buffers_of_any_length_do_not_overlap(void **state)
{
    (void)state;
    static const uint64_t lens[] = { 0, 1, 7, 16383, 16384, 65535, 65536, 65537, 1000000 };
    sherd__buffers *b = fresh();
    for (unsigned round = 0; round < 3; round++) {
        uint8_t *got[9];
        for (unsigned i = 0; i < 9; i++) {
            got[i] = sherd__buffers_get(b, lens[i]);
            assert_non_null(got[i]);
            assert_int_equal((uintptr_t)got[i] % sizeof(double), 0);
            memset(got[i], (int)i, lens[i]);
        }
        for (unsigned i = 0; i < 9; i++) {
            for (uint64_t j = 0; j < lens[i]; j += 1 + lens[i] / 9) assert_int_equal(got[i][j], i);
            sherd__buffers_give(b, got[i]);
        }
    }
    sherd__buffers_give(b, NULL);
    sherd__buffers_free(b);
    sherd__buffers_free(NULL);
}

static void a_returned_buffer_is_reused_for_lengths_that_fill_it(void **state)
{
    (void)state;
    sherd__buffers *b = fresh();
    uint8_t *p = sherd__buffers_get(b, 1000000);
    sherd__buffers_give(b, p);
    uint8_t *little = sherd__buffers_get(b, 1000); /* would waste it */
    assert_ptr_not_equal(little, p);
    uint8_t *much = sherd__buffers_get(b, 2000000); /* does not fit */
    assert_ptr_not_equal(much, p);
    uint8_t *same = sherd__buffers_get(b, 999000);
    assert_ptr_equal(same, p);
    uint8_t *other = sherd__buffers_get(b, 999000); /* the buffer has an owner now */
    assert_ptr_not_equal(other, p);
    sherd__buffers_give(b, little);
    sherd__buffers_give(b, much);
    sherd__buffers_give(b, same);
    sherd__buffers_give(b, other);
    sherd__buffers_free(b);
}

static bool all_are(const uint8_t *p, size_t len, uint8_t x)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] != x) return false;
    return true;
}

static void idle_buffers_are_wiped_between_jobs_and_stay(void **state)
{
    (void)state;
    enum { LEN = 100000 };
    sherd__buffers *b = fresh();
    uint8_t *used = sherd__buffers_get(b, LEN), *idle = sherd__buffers_get(b, LEN);
    memset(used, 3, LEN);
    memset(idle, 4, LEN);
    sherd__buffers_give(b, idle);
    uint8_t *again = sherd__buffers_get(b, LEN - 9999); /* its end holds what was there before */
    assert_ptr_equal(again, idle);
    sherd__buffers_give(b, again);
    sherd__buffers_rest(b);
    sherd__buffers_rest(b);
    assert_true(all_are(used, LEN, 3));
    (void)sherd__alloc_fail_nth(1); /* it is not allocated again */
    assert_ptr_equal(sherd__buffers_get(b, LEN), idle);
    (void)sherd__alloc_fail_nth(0);
    assert_true(all_are(idle, LEN, 0));
    sherd__buffers_give(b, idle);
    sherd__buffers_give(b, used);
    sherd__buffers_free(b);
}

static void only_some_idle_memory_stays_between_jobs(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    const size_t len = SHERD__BUFFERS_KEPT / 8;
    sherd__buffers *b = fresh();
    uint8_t *got[COUNT];
    for (unsigned i = 0; i < COUNT; i++) assert_non_null(got[i] = sherd__buffers_get(b, len));
    for (unsigned i = 0; i < COUNT; i++) sherd__buffers_give(b, got[i]);
    sherd__buffers_rest(b);
    (void)sherd__alloc_fail_nth(1);
    for (unsigned i = 0; i < 8; i++) /* those that were given back last, the last one first */
        assert_ptr_equal(sherd__buffers_get(b, len), got[COUNT - 1 - i]);
    assert_null(sherd__buffers_get(b, len));
    (void)sherd__alloc_fail_nth(0);
    for (unsigned i = 0; i < 8; i++) sherd__buffers_give(b, got[COUNT - 1 - i]);
    sherd__buffers_free(b);
}

/* Takes and returns `count` buffers of len bytes, and returns how many of them are idle then. */
static unsigned idle_of(unsigned count, size_t len)
{
    sherd__buffers *b = fresh();
    uint8_t **got = calloc(count + 1, sizeof *got);
    unsigned idle = 0;
    for (unsigned i = 0; i < count; i++) assert_non_null(got[i] = sherd__buffers_get(b, len));
    for (unsigned i = 0; i < count; i++) sherd__buffers_give(b, got[i]);
    (void)sherd__alloc_fail_nth(1);
    while ((got[idle] = sherd__buffers_get(b, len))) idle++;
    (void)sherd__alloc_fail_nth(0);
    for (unsigned i = 0; i < idle; i++) sherd__buffers_give(b, got[i]);
    sherd__buffers_free(b);
    free(got);
    return idle;
}

static void idle_buffers_beyond_the_limits_are_freed(void **state)
{
    (void)state;
    assert_int_equal(idle_of(300, 70000), 300); /* as many answers as 63 nodes have in progress */
    unsigned many = idle_of(2000, 70000), large = idle_of(40, 16 << 20);
    assert_true(many >= 300 && many < 2000);
    assert_true(large >= 8 && large < 40);
}

static void lengths_that_overflow_are_refused(void **state)
{
    (void)state;
    sherd__buffers *b = fresh();
    assert_null(sherd__buffers_get(b, UINT64_MAX));
    sherd__buffers_free(b);
    (void)sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__buffers_new(&b), SHERD_ENOMEM);
    (void)sherd__alloc_fail_nth(0);
    assert_null(b);
}

static void *give_back(void *ctx)
{
    sherd__buffers *b = ((void **)ctx)[0];
    for (unsigned i = 0; i < 2000; i++) {
        uint8_t *p = __atomic_exchange_n(&((void **)ctx)[1], NULL, __ATOMIC_ACQ_REL);
        sherd__buffers_give(b, p);
    }
    return NULL;
}

static void another_thread_may_return_buffers(void **state)
{
    (void)state;
    sherd__buffers *b = fresh();
    void *shared[2] = { b, NULL };
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, give_back, shared), 0);
    for (unsigned i = 0; i < 2000; i++) {
        uint8_t *p = sherd__buffers_get(b, 20000 + i), *old;
        memset(p, 1, 20000 + i);
        old = __atomic_exchange_n(&shared[1], p, __ATOMIC_ACQ_REL);
        sherd__buffers_give(b, old);
    }
    pthread_join(t, NULL);
    sherd__buffers_give(b, shared[1]);
    sherd__buffers_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_of_any_length_do_not_overlap),
        cmocka_unit_test(a_returned_buffer_is_reused_for_lengths_that_fill_it),
        cmocka_unit_test(idle_buffers_are_wiped_between_jobs_and_stay),
        cmocka_unit_test(only_some_idle_memory_stays_between_jobs),
        cmocka_unit_test(idle_buffers_beyond_the_limits_are_freed),
        cmocka_unit_test(lengths_that_overflow_are_refused),
        cmocka_unit_test(another_thread_may_return_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
