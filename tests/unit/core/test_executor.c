/*
 * The compute thread: what runs where, in which order, and what happens to queued work at the end.
 * link: -Wl,--wrap=pthread_join
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/executor.h"

enum { MANY = 1000 };

typedef struct bench {
    sherd__executor *e;
    sem_t woken, go, entered;
    atomic_int wakes, runs;
    int order_run[MANY], order_done[MANY], dones;
    pthread_t runner, drainer;
} bench;

typedef struct piece {
    sherd__executor_item work;
    bench *b;
    int id;
    bool ran;
} piece;

static void wake(void *ctx)
{
    bench *b = ctx;
    atomic_fetch_add(&b->wakes, 1);
    sem_post(&b->woken);
}

static void run(sherd__executor_item *w)
{
    piece *p = (piece *)w;
    p->b->order_run[atomic_fetch_add(&p->b->runs, 1)] = p->id;
    p->b->runner = pthread_self();
    p->ran = true;
}

static void run_when_released(sherd__executor_item *w)
{
    sem_post(&((piece *)w)->b->entered);
    sem_wait(&((piece *)w)->b->go);
    run(w);
}

static void done(sherd__executor_item *w)
{
    piece *p = (piece *)w;
    p->b->order_done[p->b->dones++] = p->id;
    p->b->drainer = pthread_self();
}

static void begin(bench *b, size_t queue_max)
{
    *b = (bench){ .e = NULL };
    assert_int_equal(sem_init(&b->woken, 0, 0) | sem_init(&b->go, 0, 0), 0);
    assert_int_equal(sem_init(&b->entered, 0, 0), 0);
    assert_int_equal(sherd__executor_new(&b->e, queue_max, wake, b), SHERD_OK);
}

static void end(bench *b)
{
    sem_destroy(&b->woken);
    sem_destroy(&b->go);
    sem_destroy(&b->entered);
}

static void work_runs_in_order_on_the_compute_thread_and_is_delivered_on_the_callers(void **state)
{
    (void)state;
    static bench b;
    static piece p[MANY];
    begin(&b, MANY);
    for (int i = 0; i < MANY; i++) {
        p[i] = (piece){ .work = { run, done, NULL }, .b = &b, .id = i };
        assert_int_equal(sherd__executor_submit(b.e, &p[i].work), SHERD_OK);
    }
    while (b.dones < MANY) {
        sem_wait(&b.woken);
        size_t before = (size_t)b.dones, n = sherd__executor_drain(b.e);
        assert_int_equal(before + n, b.dones);
        assert_int_equal(sherd__executor_pending(b.e), MANY - b.dones);
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(b.order_run[i], i);
        assert_int_equal(b.order_done[i], i);
    }
    assert_false(pthread_equal(b.runner, pthread_self()));
    assert_true(pthread_equal(b.drainer, pthread_self()));
    assert_int_equal(sherd__executor_drain(b.e), 0);
    sherd__executor_free(b.e);
    end(&b);
}

static void work_that_finishes_while_other_work_waits_for_the_drain_does_not_wake(void **state)
{
    (void)state;
    static bench b;
    static piece p[MANY];
    begin(&b, MANY);
    for (int i = 0; i < MANY; i++) {
        p[i] = (piece){ .work = { i < MANY - 1 ? run : run_when_released, done, NULL },
                        .b = &b,
                        .id = i };
        assert_int_equal(sherd__executor_submit(b.e, &p[i].work), SHERD_OK);
    }
    sem_wait(&b.entered); /* the last one runs: the others are finished */
    assert_int_equal(atomic_load(&b.wakes), 1);
    assert_int_equal(sherd__executor_drain(b.e), MANY - 1);
    sem_post(&b.go);
    sem_wait(&b.woken);
    sem_wait(&b.woken);
    assert_int_equal(sherd__executor_drain(b.e), 1);
    sherd__executor_free(b.e);
    assert_int_equal(atomic_load(&b.wakes), 2);
    end(&b);
}

static void a_full_queue_refuses_work_and_changes_nothing(void **state)
{
    (void)state;
    static bench b;
    static piece p[5];
    begin(&b, 2);
    for (int i = 0; i < 5; i++)
        p[i] = (piece){ .work = { i ? run : run_when_released, done, NULL }, .b = &b, .id = i };
    assert_int_equal(sherd__executor_submit(b.e, &p[0].work), SHERD_OK);
    sem_wait(&b.entered); /* p[0] is running: it no longer counts as queued */
    assert_int_equal(sherd__executor_submit(b.e, &p[1].work), SHERD_OK);
    assert_int_equal(sherd__executor_submit(b.e, &p[2].work), SHERD_OK);
    assert_int_equal(sherd__executor_submit(b.e, &p[3].work), SHERD_EBUSY);
    assert_int_equal(sherd__executor_pending(b.e), 3);
    sem_post(&b.go);
    while (b.dones < 3) {
        sem_wait(&b.woken);
        sherd__executor_drain(b.e);
    }
    assert_int_equal(sherd__executor_submit(b.e, &p[4].work), SHERD_OK);
    sherd__executor_free(b.e);
    assert_int_equal(b.dones, 4);
    assert_false(p[3].ran);
    end(&b);
}

/* Freeing joins the thread as the last step before it waits: the running piece continues only
 * then. */
static bench *released_at_join;
int __real_pthread_join(pthread_t thread, void **value);
int __wrap_pthread_join(pthread_t thread, void **value);
int __wrap_pthread_join(pthread_t thread, void **value)
{
    if (released_at_join) sem_post(&released_at_join->go);
    return __real_pthread_join(thread, value);
}

static void freeing_waits_for_the_running_piece_and_drops_the_queued_ones(void **state)
{
    (void)state;
    static bench b;
    static piece p[4];
    begin(&b, 8);
    for (int i = 0; i < 4; i++) {
        p[i] = (piece){ .work = { run_when_released, done, NULL }, .b = &b, .id = i };
        assert_int_equal(sherd__executor_submit(b.e, &p[i].work), SHERD_OK);
    }
    sem_wait(&b.entered);
    released_at_join = &b;
    sherd__executor_free(b.e);
    released_at_join = NULL;
    assert_int_equal(b.dones, 4);
    assert_true(p[0].ran);
    assert_int_equal(atomic_load(&b.runs), 1);
    for (int i = 0; i < 4; i++) assert_int_equal(b.order_done[i], i);
    end(&b);
}

static int said;
static void done_submits_more(sherd__executor_item *w)
{
    piece *p = (piece *)w;
    done(w);
    said = sherd__executor_submit(p->b->e, w);
}

static void work_submitted_while_freeing_is_refused(void **state)
{
    (void)state;
    for (int inlined = 0; inlined < 2; inlined++) {
        static bench b;
        piece p = { .work = { run, done_submits_more, NULL }, .b = &b };
        begin(&b, 4);
        if (inlined) {
            sherd__executor_free(b.e);
            assert_int_equal(sherd__executor_new_inline(&b.e), SHERD_OK);
        }
        said = SHERD_OK;
        assert_int_equal(sherd__executor_submit(b.e, &p.work), SHERD_OK);
        sherd__executor_free(b.e);
        assert_int_equal(said, SHERD_EBUSY);
        assert_int_equal(b.dones, 1);
        end(&b);
    }
}

static void without_a_thread_submit_runs_the_work_and_drain_delivers_it(void **state)
{
    (void)state;
    static bench b;
    static piece p[3];
    b = (bench){ .e = NULL };
    assert_int_equal(sherd__executor_new_inline(&b.e), SHERD_OK);
    for (int i = 0; i < 3; i++) {
        p[i] = (piece){ .work = { run, done, NULL }, .b = &b, .id = i };
        assert_int_equal(sherd__executor_submit(b.e, &p[i].work), SHERD_OK);
        assert_true(p[i].ran);
        assert_int_equal(b.dones, 0);
    }
    assert_true(pthread_equal(b.runner, pthread_self()));
    assert_int_equal(sherd__executor_pending(b.e), 3);
    assert_int_equal(sherd__executor_drain(b.e), 3);
    assert_int_equal(sherd__executor_pending(b.e), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(b.order_done[i], i);
    sherd__executor_free(b.e);
}

static void *finish_in_turn(void *arg)
{
    piece *p = arg;
    for (int i = 2; i >= 0; i--) sherd__executor_finish(p[i].b->e, &p[i].work);
    return NULL;
}

static void drain_delivers_work_that_other_threads_finish(void **state)
{
    (void)state;
    for (int inlined = 0; inlined < 2; inlined++) {
        static bench b;
        static piece p[3];
        pthread_t other;
        begin(&b, 4);
        if (inlined) {
            sherd__executor_free(b.e);
            assert_int_equal(sherd__executor_new_inline(&b.e), SHERD_OK);
        }
        for (int i = 0; i < 3; i++) {
            p[i] = (piece){ .work = { NULL, done, NULL }, .b = &b, .id = i };
            sherd__executor_expect(b.e);
        }
        assert_int_equal(sherd__executor_pending(b.e), 3);
        assert_int_equal(sherd__executor_drain(b.e), 0);
        assert_int_equal(pthread_create(&other, NULL, finish_in_turn, p), 0);
        while (b.dones < 3) sherd__executor_drain(b.e);
        assert_int_equal(pthread_join(other, NULL), 0);
        assert_int_equal(atomic_load(&b.wakes), inlined ? 0 : 3);
        for (int i = 0; i < 3; i++) assert_int_equal(b.order_done[i], 2 - i);
        assert_int_equal(sherd__executor_pending(b.e), 0);
        sherd__executor_free(b.e);
        end(&b);
    }
}

static void *finish_when_released(void *arg)
{
    piece *p = arg;
    sem_wait(&p->b->go); /* freeing has joined its thread */
    struct timespec some = { .tv_nsec = 2000000 };
    nanosleep(&some, NULL);
    sherd__executor_finish(p->b->e, &p->work);
    return NULL;
}

static void freeing_waits_for_work_that_other_threads_finish(void **state)
{
    (void)state;
    static bench b;
    pthread_t other;
    begin(&b, 4);
    piece p = { .work = { NULL, done, NULL }, .b = &b };
    sherd__executor_expect(b.e);
    assert_int_equal(pthread_create(&other, NULL, finish_when_released, &p), 0);
    released_at_join = &b;
    sherd__executor_free(b.e);
    released_at_join = NULL;
    assert_int_equal(b.dones, 1);
    assert_int_equal(pthread_join(other, NULL), 0);
    end(&b);
}

static void a_failed_allocation_creates_no_executor(void **state)
{
    (void)state;
    bench b = { .e = NULL };
    sherd__executor *e = (sherd__executor *)&b;
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__executor_new(&e, 1, wake, &b), SHERD_ENOMEM);
    assert_null(e);
    e = (sherd__executor *)&b;
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__executor_new_inline(&e), SHERD_ENOMEM);
    assert_null(e);
    sherd__alloc_fail_nth(0);
    sherd__executor_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_runs_in_order_on_the_compute_thread_and_is_delivered_on_the_callers),
        cmocka_unit_test(work_that_finishes_while_other_work_waits_for_the_drain_does_not_wake),
        cmocka_unit_test(a_full_queue_refuses_work_and_changes_nothing),
        cmocka_unit_test(freeing_waits_for_the_running_piece_and_drops_the_queued_ones),
        cmocka_unit_test(work_submitted_while_freeing_is_refused),
        cmocka_unit_test(without_a_thread_submit_runs_the_work_and_drain_delivers_it),
        cmocka_unit_test(drain_delivers_work_that_other_threads_finish),
        cmocka_unit_test(freeing_waits_for_work_that_other_threads_finish),
        cmocka_unit_test(a_failed_allocation_creates_no_executor),
    };
    return cmocka_run_group_tests_name("core/executor", tests, NULL, NULL);
}
