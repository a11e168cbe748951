/*
 * Tasks for which a device has too little memory, over stand-ins for drivers: each kind of task is
 * computed in parts, with the bytes that it has as a whole.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/under_valgrind.h"
#include "tests/unit/node/device_tasks.h"
#include "tests/unit/node/standins.h"

#define ROOM 300000u /* bytes; the tasks need about a million */

typedef struct trial {
    device_task t;
    sherd__handle left, right;
    calling c;
} trial;

static void hold(void *ctx, trial *t)
{
    t->left = held(ctx, t->t.left);
    t->right = t->t.kind->same ? t->left
               : t->t.right    ? held(ctx, t->t.right)
                               : (sherd__handle){ .id = 0 };
}

static void drop(void *ctx, const trial *t)
{
    backend->drop(ctx, &t->left);
    if (t->t.right && !t->t.kind->same) backend->drop(ctx, &t->right);
}

static int run(void *ctx, trial *t, bool in_parts, uint8_t *out)
{
    sherd_diag d = { .code = 0 };
    t->c = (calling){ .task = t->t.task, .call.in_parts = in_parts };
    assert_int_equal(begin_task(ctx, &t->c, t->left, t->right, out, &d), SHERD_OK);
    settle(ctx);
    assert_int_equal(t->c.dones, 1);
    return t->c.call.err;
}

/* Opens the backend without a self-test. */
static void *opened_tested(void)
{
    void *ctx;
    sherd_diag d;
    const sherd__backend_options o = { .tested = true, .timeout_s = 60 };
    assert_int_equal(open_with(&ctx, "", o, &d), SHERD_OK);
    return ctx;
}

static void set_room(unsigned long long bytes)
{
    char faults[64];
    snprintf(faults, sizeof faults, "room=%llu", bytes);
    set_faults(faults);
}

static void every_kind_of_task_has_the_same_bytes_in_parts(void **s)
{
    (void)s;
    /* All kinds over CUDA: parts are cut before a driver sees them. */
    const bool few = under_valgrind() && backend == &sherd__backend_opencl;
    for (const task_kind *k = task_kinds; k < task_kinds + TASK_KINDS; k += few ? 5 : 1) {
        trial t;
        void *ctx = opened_tested();
        device_task_init(&t.t, k);
        const uint64_t len = t.t.task.result.len;
        hold(ctx, &t);
        if (run(ctx, &t, false, t.t.whole)) fail_msg("%s: %s", k->name, t.c.call.text);
        drop(ctx, &t);
        backend->close(ctx); /* it keeps memory for a moment */
        ctx = opened_tested();
        set_room(on->held() + ROOM);
        hold(ctx, &t);
        if (run(ctx, &t, false, t.t.out) != SHERD_ENOMEM) fail_msg("%s has room", k->name);
        assert_non_null(strstr(t.c.call.text, "Stand-in GPU 0 lacks "));
        const unsigned launches = on->launches();
        memset(t.t.out, 0x55, len);
        if (run(ctx, &t, true, t.t.out)) fail_msg("%s: %s", k->name, t.c.call.text);
        assert_true(on->launches() - launches >= 3);
        if (memcmp(t.t.out, t.t.whole, len) != 0) fail_msg("%s", k->name);
        drop(ctx, &t);
        device_task_fini(&t.t);
        backend->close(ctx);
        assert_int_equal(on->dirty(), 0);
    }
}

static void a_device_without_memory_refuses_and_works_later(void **s)
{
    (void)s;
    trial t;
    void *ctx = opened_tested();
    const unsigned long long before = on->held();
    device_task_init(&t.t, &task_kinds[0]);
    hold(ctx, &t);
    set_room(before + 1000);
    assert_int_equal(run(ctx, &t, true, t.t.out), SHERD_ENOMEM);
    assert_false(t.c.call.lost);
    set_room(before + ROOM);
    assert_int_equal(run(ctx, &t, true, t.t.out), SHERD_OK);
    set_faults("");
    assert_int_equal(run(ctx, &t, true, t.t.whole), SHERD_OK);
    assert_memory_equal(t.t.out, t.t.whole, t.t.task.result.len);
    drop(ctx, &t);
    device_task_fini(&t.t);
    backend->close(ctx);
}

static void a_device_that_is_lost_between_parts_ends_the_task(void **s)
{
    (void)s;
    trial t;
    char faults[64];
    void *ctx = opened_tested();
    device_task_init(&t.t, &task_kinds[0]);
    hold(ctx, &t);
    snprintf(faults, sizeof faults, "room=%llu,lost=2", on->held() + ROOM);
    on->reset();
    set_faults(faults);
    assert_int_equal(run(ctx, &t, true, t.t.out), SHERD_EDEVICE);
    assert_true(t.c.call.lost);
    assert_int_equal(on->launches(), 2);
    drop(ctx, &t);
    device_task_fini(&t.t);
    backend->close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH(every_kind_of_task_has_the_same_bytes_in_parts),
        OVER_BOTH(a_device_without_memory_refuses_and_works_later),
        OVER_BOTH(a_device_that_is_lost_between_parts_ends_the_task),
    };
    return cmocka_run_group_tests_name("node/parts", tests, standins_open, standins_close);
}
