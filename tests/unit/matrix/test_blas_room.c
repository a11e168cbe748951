/* Without address space for its buffer, OpenBLAS would never return: the library checks for room
 * before it calls OpenBLAS. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "matrix/blas_room.h"
#include "matrix/gemm.h"

enum { DIM = 64 };
static double a[DIM * DIM], b[DIM * DIM], c[DIM * DIM];

static struct rlimit was;

/* After this call no memory can be mapped; memory that the heap already has can be used. */
static void close_address_space(void)
{
    assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
    free(malloc(100000)); /* opening a folder needs 32 KiB */
    struct rlimit none = { 1, was.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
}

static void open_address_space(void)
{
    assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
}

static int product(void)
{
    return sherd__gemm_f64(DIM, DIM, DIM, a, DIM, b, DIM, 0.0, c, DIM);
}

/* This case must be the first: later OpenBLAS has its buffer. alarm: a hang ends the test. */
static void a_first_product_without_room_fails_and_leaves_its_output_unchanged(void **s)
{
    (void)s;
    for (size_t i = 0; i < DIM * DIM; i++) a[i] = b[i] = 1.0, c[i] = 7.0;
    alarm(10);
    close_address_space();
    int err = product();
    open_address_space();
    alarm(0);
    assert_int_equal(err, SHERD_ENOMEM);
    for (size_t i = 0; i < DIM * DIM; i++) assert_true(c[i] == 7.0);
    assert_int_equal(product(), SHERD_OK);
    for (size_t i = 0; i < DIM * DIM; i++) assert_true(c[i] == DIM);
}

static void a_product_that_has_its_buffer_needs_no_room(void **s)
{
    (void)s;
    assert_int_equal(product(), SHERD_OK);
    close_address_space();
    int err = product();
    open_address_space();
    assert_int_equal(err, SHERD_OK);
}

static void each_concurrent_caller_needs_a_buffer_of_its_own(void **s)
{
    (void)s;
    assert_int_equal(product(), SHERD_OK);
    close_address_space();
    int first = sherd__blas_enter(), second = sherd__blas_enter(), third = sherd__blas_enter();
    open_address_space();
    assert_int_equal(first, SHERD_OK);
    assert_int_equal(second, SHERD_ENOMEM); /* the second caller is not inside */
    assert_int_equal(third, SHERD_ENOMEM);
    assert_int_equal(sherd__blas_enter(), SHERD_OK);
    sherd__blas_leave();
    sherd__blas_leave();
    close_address_space();
    first = sherd__blas_enter(), second = sherd__blas_enter(), third = sherd__blas_enter();
    open_address_space();
    assert_int_equal(first, SHERD_OK);
    assert_int_equal(second, SHERD_OK);
    assert_int_equal(third, SHERD_ENOMEM);
    sherd__blas_leave();
    sherd__blas_leave();
}

static void threads_without_room_are_not_started(void **s)
{
    (void)s;
    unsigned before = sherd__blas_threads();
    close_address_space();
    sherd__blas_threads_set(before + 3);
    unsigned got = sherd__blas_threads();
    open_address_space();
    assert_int_equal(got, before);
    assert_true(sherd__blas_room(1));
    assert_false(sherd__blas_room(UINT32_MAX));
}

static void *spin(void *on)
{
    while (__atomic_load_n((int *)on, __ATOMIC_RELAXED)) continue;
    return NULL;
}

static double used(void)
{
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Waits until OpenBLAS's threads have found their memory and sleep. Until then they are as restless
 * as the thread that the test makes; on a busy machine this takes a while. */
static void await_rest(void)
{
    double before;
    unsigned looks = 0;
    do {
        before = used();
        usleep(200000);
    } while (used() - before > 1e-3 && ++looks < 100);
    assert_true(looks < 100);
}

/* A thread that never sleeps, like a thread of OpenBLAS that finds no memory. */
static void restless_threads_are_an_error_only_if_room_is_short(void **s)
{
    (void)s;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* it maps memory for a thread that ends */
#endif
    if (sherd__blas_threads() < 2) skip(); /* nothing to wait for */
    int on = 1;
    pthread_t t;
    sherd_diag d = { 0 };
    assert_int_equal(product(), SHERD_OK);
    assert_int_equal(sherd__blas_settle(&d), SHERD_OK);
    await_rest();
    assert_int_equal(pthread_create(&t, NULL, spin, &on), 0);
    assert_int_equal(sherd__blas_settle(&d), SHERD_OK);
    close_address_space();
    int err = 0; /* on a busy machine the thread may not run while it is observed */
    for (int looks = 0; !err && looks < 50; looks++) err = sherd__blas_settle(&d);
    __atomic_store_n(&on, 0, __ATOMIC_RELAXED);
    pthread_join(t, NULL);
    int asleep = sherd__blas_settle(NULL);
    open_address_space();
    assert_int_equal(err, SHERD_ENOMEM);
    assert_non_null(strstr(d.message, "OpenBLAS needs"));
    assert_int_equal(asleep, SHERD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_product_without_room_fails_and_leaves_its_output_unchanged),
        cmocka_unit_test(a_product_that_has_its_buffer_needs_no_room),
        cmocka_unit_test(each_concurrent_caller_needs_a_buffer_of_its_own),
        cmocka_unit_test(threads_without_room_are_not_started),
        cmocka_unit_test(restless_threads_are_an_error_only_if_room_is_short),
    };
    return cmocka_run_group_tests_name("matrix/blas_room", tests, NULL, NULL);
}
