/*
 * Faults of devices at places that a seed chooses: two threads compute tasks of all kinds over
 * stand-ins for drivers. Each task ends, with the right bytes, or with an error if the seed has
 * lost all devices. SHERD_TEST_SEED names the one seed to repeat.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/devices.h"
#include "tests/support/draw.h"
#include "tests/support/under_valgrind.h"
#include "tests/unit/node/device_tasks.h"
#include "tests/unit/node/standins.h"

enum { SEEDS = 24, THREADS = 2, EACH = 4, PATIENCE_S = 60 };

static device_task tasks[TASK_KINDS];
static char faults[128], label[192]; /* label: of the seed, for messages */

static void never_ended(int signal)
{
    (void)signal;
    if (write(STDERR_FILENO, label, strlen(label))) _exit(1);
    _exit(1);
}

/* Chooses one or two faults. `held` bytes are allocated. Returns whether tasks may fail, since no
 * device is left. Where memory is short there is one device: the stand-in counts that of all. */
static bool choose_faults(bool cramped, unsigned long long held)
{
    static const char *const counted[] = { "full", "fail", "nocopy",  "hang",
                                           "dies", "lost", "lostcopy" };
    const bool only = cramped && draw() % 2;
    const uint64_t which = draw() % 7, at = 1 + draw() % 24;
    size_t len = (size_t)snprintf(faults, sizeof faults, "devices=%u,code=%u", cramped ? 1u : 2u,
                                  draw() % 2 ? 214u : 719u);
    if (cramped)
        len += (size_t)snprintf(faults + len, sizeof faults - len, ",room=%llu",
                                held + 270000 + draw() % 900000);
    if (!only) snprintf(faults + len, sizeof faults - len, ",%s=%u", counted[which], (unsigned)at);
    return !only && which >= (cramped ? 3 : 5);
}

typedef struct worker {
    sherd__devices *devices;
    sherd__executor *executor;
    const device_task *list[EACH];
    uint64_t owner;
    char wrong[256], failed[256]; /* empty: no task had other bytes, none failed */
} worker;

static void *work(void *ctx)
{
    worker *w = ctx;
    for (size_t i = 0; i < EACH && !w->wrong[0]; i++) {
        const device_task *t = w->list[i];
        const uint64_t len = t->task.result.len;
        uint8_t *out = malloc(len);
        sherd_diag d = { .code = 0 };
        const sherd__device_run r = { .task = &t->task,
                                      .left = t->left,
                                      .right = t->right,
                                      .owner = w->owner,
                                      .out = out,
                                      .executor = w->executor };
        const int err = sherd__devices_run(w->devices, &r, &d);
        if (!err && memcmp(out, t->whole, len) != 0)
            snprintf(w->wrong, sizeof w->wrong, "%s: other bytes", t->kind->name);
        if (err)
            snprintf(err == SHERD_EDEVICE ? w->failed : w->wrong, sizeof w->wrong, "%s: %.200s",
                     t->kind->name, d.message);
        free(out);
    }
    return NULL;
}

static void try_seed(unsigned seed)
{
    sherd_diag d;
    void *ctx;
    uint32_t count;
    sherd__devices devices;
    worker w[THREADS];
    pthread_t threads[THREADS];
    const sherd__backend_options o = { .all_devices = true, .timeout_s = 0.3 };
    draw_state = seed * 0x9e3779b97f4a7c15u; /* else the first numbers of seeds are alike */
    snprintf(label, sizeof label, "# seed %u of %s: the start does not end\n", seed, backend->name);
    alarm(PATIENCE_S);
    const bool cramped = draw() % 2;
    assert_int_equal(open_with(&ctx, cramped ? "" : "devices=2", o, &d), SHERD_OK);
    const sherd__device *list = backend->devices(ctx, &count);
    sherd__devices_init(&devices, backend, ctx, list, count);
    const bool fatal = choose_faults(cramped, on->held());
    snprintf(label, sizeof label, "# seed %u of %s: %s does not end\n", seed, backend->name,
             faults);
    on->reset();
    set_faults(faults);
    for (size_t i = 0; i < THREADS; i++) {
        w[i] = (worker){ .devices = &devices, .owner = i + 1 };
        for (size_t k = 0; k < EACH; k++) w[i].list[k] = &tasks[draw() % TASK_KINDS];
        assert_int_equal(sherd__executor_new_inline(&w[i].executor), SHERD_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &w[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sherd__executor_free(w[i].executor);
    }
    backend->close(ctx);
    alarm(0);
    for (size_t i = 0; i < THREADS; i++)
        if (w[i].wrong[0])
            fail_msg("seed %u of %s, %s: %s", seed, backend->name, faults, w[i].wrong);
        else if (w[i].failed[0] && !fatal)
            fail_msg("seed %u of %s, %s: %s", seed, backend->name, faults, w[i].failed);
}

static void tasks_have_the_right_bytes_unless_all_devices_are_lost(void **s)
{
    (void)s;
    const char *one = getenv("SHERD_TEST_SEED");
    const unsigned first = one ? (unsigned)strtoul(one, NULL, 10) : 1;
    const unsigned count = one ? 1 : under_valgrind() ? 3 : SEEDS;
    signal(SIGALRM, never_ended);
    for (unsigned seed = first; seed < first + count; seed++) try_seed(seed);
}

/* Computes all tasks without faults. */
static int open_all(void **s)
{
    void *ctx;
    sherd_diag d;
    uint32_t count;
    sherd__devices devices;
    (void)standins_open(s);
    on = &standins[STANDIN_CUDA];
    backend = on->backend;
    if (open_with(&ctx, "", (sherd__backend_options){ .tested = true, .timeout_s = 60 }, &d))
        return 1;
    const sherd__device *list = backend->devices(ctx, &count);
    sherd__devices_init(&devices, backend, ctx, list, count);
    for (size_t i = 0; i < TASK_KINDS; i++) {
        device_task *t = &tasks[i];
        device_task_init(t, &task_kinds[i]);
        const sherd__device_run r = { .task = &t->task,
                                      .left = t->left,
                                      .right = t->right,
                                      .owner = 1,
                                      .out = t->whole,
                                      .executor = executor };
        if (sherd__devices_run(&devices, &r, &d)) return 1;
    }
    backend->close(ctx);
    return 0;
}

static int close_all(void **s)
{
    for (size_t i = 0; i < TASK_KINDS; i++) device_task_fini(&tasks[i]);
    return standins_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH(tasks_have_the_right_bytes_unless_all_devices_are_lost),
    };
    return cmocka_run_group_tests_name("node/faults", tests, open_all, close_all);
}
