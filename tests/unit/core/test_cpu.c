/* Processors: only those in the affinity mask count, and a task that has ended has no times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cpu.h"

static void only_usable_processors_count(void **s)
{
    (void)s;
    cpu_set_t all, one;
    size_t first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    uint32_t quota = sherd__cpu_quota(SHERD__CPU_QUOTA), most = (uint32_t)CPU_COUNT(&all);
    assert_int_equal(sherd__cpu_usable(), quota && quota < most ? quota : most);
    while (!CPU_ISSET(first, &all)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(sherd__cpu_usable(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void a_cgroup_quota_limits_the_number_of_processors(void **s)
{
    (void)s;
    static const struct {
        const char *text;
        uint32_t quota;
    } of[] = {
        { "200000 100000\n", 2 },
        { "150000 100000\n", 2 },
        { "1000 100000\n", 1 },
        { "max 100000\n", 0 },
        { "", 0 },
        { "100000", 0 },
        { "100000 0", 0 },
        { "-1 5", 0 },
        { "1e300 1", 0 },
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char path[] = "/tmp/sherd-cpu-XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, of[i].text, strlen(of[i].text)), strlen(of[i].text));
        close(fd);
        uint32_t found = sherd__cpu_quota(path);
        unlink(path);
        if (found != of[i].quota) fail_msg("%s: %u", of[i].text, found);
        assert_int_equal(sherd__cpu_quota(path), 0);
    }
}

static void a_missing_task_has_no_times(void **s)
{
    (void)s;
    sherd__cpu_times t = { 1, 2, 3 };
    pid_t gone = fork();
    if (gone == 0) _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    assert_false(sherd__cpu_times_of(gone, &t));
    assert_true(t.ran == 0 && t.waited == 0 && t.turns == 0);
    if (access("/proc/self/schedstat", R_OK)) skip();
    assert_true(sherd__cpu_times_of(getpid(), &t));
    assert_true(t.ran > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_usable_processors_count),
        cmocka_unit_test(a_cgroup_quota_limits_the_number_of_processors),
        cmocka_unit_test(a_missing_task_has_no_times),
    };
    return cmocka_run_group_tests_name("core/cpu", tests, NULL, NULL);
}
