/* The rule by which a node gives up its cores and takes them back, and the system calls that apply
 * it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "node/cores.h"
#include "tests/support/send_signal.h"

#define MS UINT64_C(1000000)
#define LOOK SHERD__CORES_LOOK_MS

/* Judges n times, each after the usual interval; returns the state after the last one. */
static bool looks(sherd__cores_rule *r, uint64_t *now, int n, uint64_t ran_ms, uint64_t waited_ms)
{
    bool bound = r->bound;
    for (int i = 0; i < n; i++) {
        *now += LOOK;
        bound = sherd__cores_judge(r, *now, ran_ms * MS, waited_ms * MS);
    }
    return bound;
}

static void a_core_that_is_contended_twice_in_succession_is_given_up(void **s)
{
    (void)s;
    sherd__cores_rule r;
    uint64_t now = 1000;
    sherd__cores_rule_init(&r, now);
    assert_true(looks(&r, &now, 1, 120, 120));
    assert_true(looks(&r, &now, 1, 240, 5)); /* only for a moment */
    assert_true(looks(&r, &now, 1, 120, 120));
    assert_false(looks(&r, &now, 1, 120, 120));
}

static void occasional_waits_for_a_coordinator_are_not_contention(void **s)
{
    (void)s;
    sherd__cores_rule r;
    uint64_t now = 0;
    sherd__cores_rule_init(&r, now);
    assert_true(looks(&r, &now, 100, 160, 75)); /* less than half of the time */
    assert_true(looks(&r, &now, 100, 10, 40));  /* nearly idle: not worth a move */
    assert_true(looks(&r, &now, 100, 0, 0));
}

static void cores_are_taken_back_and_given_up_for_longer_each_time(void **s)
{
    (void)s;
    sherd__cores_rule r;
    uint64_t now = 0, away = SHERD__CORES_AWAY_MS;
    sherd__cores_rule_init(&r, now);
    for (int i = 0; i < 8; i++) {
        assert_false(looks(&r, &now, 2, 120, 120));
        uint64_t since = now;
        while (!looks(&r, &now, 1, 120, 120)) assert_true(now - since < away);
        assert_int_equal(now - since, away);
        away = 2 * away < SHERD__CORES_AWAY_MAX_MS ? 2 * away : SHERD__CORES_AWAY_MAX_MS;
    }
    assert_true(looks(&r, &now, (int)(SHERD__CORES_AWAY_MAX_MS / LOOK) + 1, 240, 0));
    assert_false(looks(&r, &now, 2, 120, 120)); /* it was bound for a long time: earlier contention
                                                 * is forgotten */
    assert_true(looks(&r, &now, (int)(SHERD__CORES_AWAY_MS / LOOK), 120, 120));
}

static void the_loop_is_unbound_if_other_threads_compute(void **s)
{
    (void)s;
    assert_false(sherd__cores_frees_loop(0));
    assert_false(sherd__cores_frees_loop(LOOK * MS / 10));
    assert_true(sherd__cores_frees_loop(LOOK * MS / 10 + 1));
    assert_true(sherd__cores_frees_loop(LOOK * MS));
}

static void an_invalid_list_of_cores_is_refused(void **s)
{
    (void)s;
    static const char *const bad[] = {
        "", ",", "0,", ",0", "0 ", "0,,1", "-1", "0-1", "x", "1024", "99999999999999999999"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd__cores *c = NULL;
        sherd_diag d = { .code = 0 };
        assert_int_equal(sherd__cores_take(&c, bad[i], &d), SHERD_EINVAL);
        assert_null(c);
        assert_non_null(strstr(d.message, bad[i]));
    }
}

static void a_list_with_an_unavailable_core_binds_nothing(void **s)
{
    (void)s;
    cpu_set_t before, after;
    char list[16] = "";
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (unsigned core = CPU_SETSIZE - 1; core > 0; core--)
        if (!CPU_ISSET(core, &before)) {
            snprintf(list, sizeof list, "%u", core);
            break;
        }
    sherd__cores *c = NULL;
    assert_int_equal(sherd__cores_take(&c, list, NULL), SHERD_OK);
    assert_null(c);
    assert_false(sherd__cores_bound(c));
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

/* ---- with real threads ----------------------------------------------------------------------- */

static volatile sig_atomic_t over;

static void on_alarm(int number)
{
    (void)number;
    over = 1;
}

static void burn_at(unsigned core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
    for (;;) {}
}

static void spin(uv_idle_t *h)
{
    cpu_set_t now;
    struct timespec t0, t;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    do clock_gettime(CLOCK_MONOTONIC, &t);
    while ((t.tv_sec - t0.tv_sec) * 1000000000 + t.tv_nsec - t0.tv_nsec < 1000000);
    (void)sched_getaffinity(0, sizeof now, &now);
    if (CPU_EQUAL(&now, (cpu_set_t *)h->data) || over) uv_stop(h->loop);
}

/* Runs a busy process on a core on which two others are busy. Returns 0 once it has all cores
 * again. */
static int crowded(cpu_set_t *all, unsigned core)
{
    char list[16];
    cpu_set_t now;
    uv_loop_t loop;
    uv_idle_t idle;
    sherd__cores *c = NULL;
    snprintf(list, sizeof list, "%u", core);
    signal(SIGALRM, on_alarm);
    alarm(20);
    if (sherd__cores_take(&c, list, NULL) || !c || !sherd__cores_bound(c)) return 2;
    if (sched_getaffinity(0, sizeof now, &now) || CPU_COUNT(&now) != 1 || !CPU_ISSET(core, &now))
        return 3;
    uv_loop_init(&loop);
    sherd__cores_watch(c, &loop);
    uv_idle_init(&loop, &idle);
    idle.data = all;
    uv_idle_start(&idle, spin);
    uv_run(&loop, UV_RUN_DEFAULT);
    bool gave_way = !over && !sherd__cores_bound(c);
    uv_close((uv_handle_t *)&idle, NULL);
    sherd__cores_unwatch(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop)) return 4;
    sherd__cores_free(c);
    return gave_way ? 0 : 1;
}

static void a_busy_process_leaves_a_core_on_which_others_are_busy(void **s)
{
    (void)s;
    cpu_set_t all;
    unsigned core = 0;
    pid_t others[2], it;
    int status;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2 || access("/proc/self/schedstat", R_OK)) skip();
    while (!CPU_ISSET(core, &all)) core++;
    for (int i = 0; i < 2; i++)
        if ((others[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            burn_at(core);
        }
    if ((it = fork()) == 0) _exit(crowded(&all, core));
    assert_int_equal(waitpid(it, &status, 0), it);
    for (int i = 0; i < 2; i++) {
        send_signal(others[i], SIGKILL);
        (void)waitpid(others[i], NULL, 0);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int told[2], ended[2];

static void *sleeper(void *arg)
{
    pid_t me = gettid();
    (void)!write(told[1], &me, sizeof me);
    (void)!read(ended[0], &me, sizeof me);
    return arg;
}

/* Checks that a thread that exists before the binding is bound, too; returns 0 if so. */
static int with_a_thread(const cpu_set_t *all, unsigned core)
{
    (void)all;
    char list[16];
    cpu_set_t of;
    pid_t other;
    pthread_t thread;
    sherd__cores *c = NULL;
    snprintf(list, sizeof list, "%u", core);
    if (pipe(told) || pipe(ended) || pthread_create(&thread, NULL, sleeper, NULL)) return 2;
    if (read(told[0], &other, sizeof other) != sizeof other) return 3;
    if (sherd__cores_take(&c, list, NULL) || !c) return 4;
    if (sched_getaffinity(other, sizeof of, &of)) return 5;
    sherd__cores_free(c);
    close(ended[1]);
    if (pthread_join(thread, NULL)) return 6;
    return CPU_COUNT(&of) == 1 && CPU_ISSET(core, &of) ? 0 : 1;
}

#define BUSY 77 /* others keep this core busy: the node leaves it, and nothing can be observed */

/* Runs the check in a process of its own, bound to the first available core. */
static void ends_well(int (*run)(const cpu_set_t *all, unsigned core))
{
    cpu_set_t all;
    unsigned core = 0;
    pid_t it;
    int status;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2 || access("/proc/self/schedstat", R_OK)) skip();
    while (!CPU_ISSET(core, &all)) core++;
    if ((it = fork()) == 0) _exit(run(&all, core));
    assert_int_equal(waitpid(it, &status, 0), it);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == BUSY) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void existing_threads_are_bound(void **s)
{
    (void)s;
    ends_well(with_a_thread);
}

#define AWAY_MOST 1000u /* ten seconds: others are busy for longer than the first absence */

static atomic_bool computes = true, left;

static void *computing(void *arg)
{
    while (computes) {}
    while (!left) usleep(1000);
    return arg;
}

typedef struct course {
    uv_timer_t timer;
    const sherd__cores *cores;
    cpu_set_t all;
    pthread_t beside;
    unsigned ticks, away;                 /* of the timer: while bound to the core, and while not */
    bool freed, bound_again, beside_left; /* beside_left: the other thread left its core */
} course;

/* The other thread computes until the loop is unbound, then stops. */
static void watch_course(uv_timer_t *h)
{
    course *k = h->data;
    cpu_set_t now;
    (void)sched_getaffinity(0, sizeof now, &now);
    bool loose = CPU_EQUAL(&now, &k->all);
    if (!sherd__cores_bound(k->cores)) { /* others are busy on this core */
        if (++k->away == AWAY_MOST) uv_stop(h->loop);
        return;
    }
    if (!k->freed && loose) {
        k->freed = true;
        (void)pthread_getaffinity_np(k->beside, sizeof now, &now);
        k->beside_left = CPU_COUNT(&now) != 1;
        computes = false;
    }
    if (k->freed && !loose) k->bound_again = true;
    if (k->bound_again || ++k->ticks == 400) uv_stop(h->loop);
}

/* Runs a loop together with a thread that computes and then rests; returns 0 on success. */
static int beside_a_thread(const cpu_set_t *all, unsigned core)
{
    char list[16];
    uv_loop_t loop;
    sherd__cores *c = NULL;
    course k = { .all = *all };
    snprintf(list, sizeof list, "%u", core);
    if (sherd__cores_take(&c, list, NULL) || !c) return 2;
    if (pthread_create(&k.beside, NULL, computing, NULL)) return 3;
    k.cores = c;
    uv_loop_init(&loop);
    sherd__cores_watch(c, &loop);
    uv_timer_init(&loop, &k.timer);
    k.timer.data = &k;
    uv_timer_start(&k.timer, watch_course, 10, 10);
    uv_run(&loop, UV_RUN_DEFAULT);
    computes = false;
    left = true;
    pthread_join(k.beside, NULL);
    uv_close((uv_handle_t *)&k.timer, NULL);
    sherd__cores_unwatch(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop)) return 4;
    sherd__cores_free(c);
    if (k.away >= AWAY_MOST) return BUSY;
    return !k.freed ? 5 : k.beside_left ? 6 : !k.bound_again ? 7 : 0;
}

static void a_loop_leaves_its_core_to_a_computing_thread(void **s)
{
    (void)s;
    ends_well(beside_a_thread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_that_is_contended_twice_in_succession_is_given_up),
        cmocka_unit_test(occasional_waits_for_a_coordinator_are_not_contention),
        cmocka_unit_test(cores_are_taken_back_and_given_up_for_longer_each_time),
        cmocka_unit_test(the_loop_is_unbound_if_other_threads_compute),
        cmocka_unit_test(an_invalid_list_of_cores_is_refused),
        cmocka_unit_test(a_list_with_an_unavailable_core_binds_nothing),
        cmocka_unit_test(existing_threads_are_bound),
        cmocka_unit_test(a_loop_leaves_its_core_to_a_computing_thread),
        cmocka_unit_test(a_busy_process_leaves_a_core_on_which_others_are_busy),
    };
    return cmocka_run_group_tests_name("node/cores", tests, NULL, NULL);
}
