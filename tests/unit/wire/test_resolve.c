/*
 * Name look-ups that finish, are polled, and are dropped while the resolver still waits.
 *
 * link: -Wl,--wrap=getaddrinfo
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "core/alloc.h"
#include "tests/support/far_resolver.h"
#include "wire/resolve.h"

static void count(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static void wait_until(atomic_int *n, int value)
{
    struct timespec pause = { .tv_nsec = 1000000 };
    for (int i = 0; i < 20000 && atomic_load(n) < value; i++) nanosleep(&pause, NULL);
    assert_int_equal(atomic_load(n), value);
}

static void expect(sherd__lookup *l, const char *address, uint16_t port)
{
    const struct addrinfo *list = NULL;
    int error = -1;
    char text[64];
    assert_true(sherd__lookup_done(l, &error, &list));
    assert_int_equal(error, 0);
    const struct sockaddr_in *in = (const void *)list->ai_addr;
    assert_int_equal(list->ai_family, AF_INET);
    assert_int_equal(list->ai_socktype, SOCK_STREAM);
    assert_int_equal(ntohs(in->sin_port), port);
    assert_string_equal(inet_ntop(AF_INET, &in->sin_addr, text, sizeof text), address);
}

static void a_numeric_address_is_answered_at_once(void **state)
{
    (void)state;
    sherd__lookup *l;
    atomic_int told = 0;
    assert_int_equal(sherd__lookup_start(&l, "192.0.2.7", 7000, NULL, count, &told), SHERD_OK);
    assert_int_equal(told, 1);
    expect(l, "192.0.2.7", 7000);
    sherd__lookup_drop(l);
    sherd__lookup_drop(NULL);
}

static void a_name_is_answered_from_another_thread(void **state)
{
    (void)state;
    sherd__lookup *l;
    atomic_int told = 0;
    const struct addrinfo *list;
    int error;
    assert_int_equal(sherd__lookup_start(&l, "slow.example", 1, NULL, count, &told), SHERD_OK);
    far_wait(1);
    assert_false(sherd__lookup_done(l, &error, &list));
    assert_int_equal(atomic_load(&told), 0);
    far_release();
    wait_until(&told, 1);
    expect(l, "192.0.2.1", 1);
    sherd__lookup_drop(l);
}

static void a_name_that_does_not_exist_is_an_error(void **state)
{
    (void)state;
    sherd__lookup *l;
    atomic_int told = 0;
    const struct addrinfo *list;
    int error = 0;
    assert_int_equal(sherd__lookup_start(&l, "no such host", 1, NULL, count, &told), SHERD_OK);
    wait_until(&told, 1);
    assert_true(sherd__lookup_done(l, &error, &list));
    assert_int_not_equal(error, 0);
    sherd__lookup_drop(l);
}

static void a_dropped_look_up_calls_back_no_more(void **state)
{
    (void)state;
    enum { MANY = 20 };
    sherd__lookup *l[MANY];
    atomic_int told = 0;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(sherd__lookup_start(&l[i], "slow.example", 1, NULL, count, &told), 0);
    far_wait(MANY); /* all at the same time */
    for (int i = 0; i < MANY; i++) sherd__lookup_drop(l[i]);
    far_release();
    struct timespec pause = { .tv_nsec = 20000000 };
    nanosleep(&pause, NULL);
    assert_int_equal(atomic_load(&told), 0);
}

/* Starts a look-up for that peer and drops it at once. */
static int start_one(const void *whose, atomic_int *told)
{
    sherd__lookup *l;
    int err = sherd__lookup_start(&l, "slow.example", 1, whose, count, told);
    sherd__lookup_drop(l);
    return err;
}

static int until_there_is_room(const void *whose, atomic_int *told)
{
    struct timespec pause = { .tv_nsec = 1000000 };
    int err = SHERD_EBUSY;
    for (int i = 0; i < 20000 && err == SHERD_EBUSY; i++) {
        err = start_one(whose, told);
        if (err) nanosleep(&pause, NULL);
    }
    return err;
}

static void look_ups_count_until_the_resolver_answers(void **state)
{
    (void)state;
    char peers[SHERD__LOOKUPS / SHERD__LOOKUPS_OF + 1];
    atomic_int told = 0;
    sherd__lookup *number;
    for (int p = 0; p < SHERD__LOOKUPS / SHERD__LOOKUPS_OF; p++) {
        for (int i = 0; i < SHERD__LOOKUPS_OF; i++)
            assert_int_equal(start_one(&peers[p], &told), 0);
        assert_int_equal(start_one(&peers[p], &told), SHERD_EBUSY);
    }
    const char *last = &peers[sizeof peers - 1];
    assert_int_equal(start_one(last, &told), SHERD_EBUSY);
    assert_int_equal(start_one(NULL, &told), 0); /* a look-up of the process itself */
    assert_int_equal(sherd__lookup_start(&number, "192.0.2.7", 1, last, count, &told), 0);
    assert_int_equal(told, 1);
    sherd__lookup_drop(number);
    far_wait(SHERD__LOOKUPS + 1);
    assert_int_equal(far.waiting, SHERD__LOOKUPS + 1);
    far_release();
    assert_int_equal(until_there_is_room(last, &told), 0);
    for (int i = 0; i < SHERD__LOOKUPS_OF; i++)
        assert_int_equal(until_there_is_room(&peers[0], &told), 0);
    far_wait(SHERD__LOOKUPS_OF + 1);
    far_release();
    assert_int_equal(told, 1);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    sherd__lookup *l;
    atomic_int told = 0;
    int err = SHERD_ENOMEM;
    for (size_t n = 1; err; n++) {
        (void)sherd__alloc_fail_nth(n);
        err = sherd__lookup_start(&l, "192.0.2.7", 7000, NULL, count, &told);
        (void)sherd__alloc_fail_nth(0);
        assert_int_equal(told, err == 0);
        assert_true(err ? !l : n > 2);
        assert_true(n < 10);
    }
    sherd__lookup_drop(l);
}

static int threads; /* of this process before the first look-up */

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int entries = 0;
    while (tasks && readdir(tasks)) entries++;
    if (tasks) closedir(tasks);
    return entries;
}

static void *nothing(void *arg)
{
    return arg;
}

/* The first thread may bring another one: the sanitizers' own. */
static int before_threads(void **state)
{
    (void)state;
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL)) return -1;
    struct timespec pause = { .tv_nsec = 5000000 };
    nanosleep(&pause, NULL); /* a joined thread is listed for some time yet */
    threads = count_threads();
    return 0;
}

/* Waits until the threads of dropped look-ups have ended: their stacks are not lost. */
static int after_threads(void **state)
{
    (void)state;
    struct timespec pause = { .tv_nsec = 1000000 };
    for (int i = 0; i < 20000 && count_threads() > threads; i++) nanosleep(&pause, NULL);
    return count_threads() > threads ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_numeric_address_is_answered_at_once),
        cmocka_unit_test(a_name_is_answered_from_another_thread),
        cmocka_unit_test(a_name_that_does_not_exist_is_an_error),
        cmocka_unit_test(a_dropped_look_up_calls_back_no_more),
        cmocka_unit_test(look_ups_count_until_the_resolver_answers),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, before_threads, after_threads);
}
