/* Creating an event loop with few descriptors left fails with an error and its reason, not by
 * libuv's abort(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/loop.h"

#define TAKES 6
enum { MADE, REFUSED, SILENT, UNCLOSED };

/* Creates a loop while `left` descriptors are available. Runs in a process of its own, since libuv
 * creates its lock once. */
static int make_loop(int left)
{
    struct rlimit few;
    int top = -1, fd;
    uv_loop_t loop;
    sherd_diag d = { 0 };
    if (getrlimit(RLIMIT_NOFILE, &few)) return SILENT;
    few.rlim_cur = 64;
    if (setrlimit(RLIMIT_NOFILE, &few)) return SILENT;
    while ((fd = dup(0)) >= 0) top = fd;
    for (int i = 0; i < left; i++) close(top - i);
    if (sherd__loop_init(&loop, &d))
        return d.code == SHERD_ENOMEM && strstr(d.message, "too many open files") &&
                       strstr(d.hint, "ulimit -n")
                   ? REFUSED
                   : SILENT;
    return uv_loop_close(&loop) == 0 ? MADE : UNCLOSED;
}

static void too_few_descriptors_are_an_error_with_its_reason(void **s)
{
    (void)s;
    for (int left = 0; left < TAKES + 3; left++) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(make_loop(left));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), left < TAKES ? REFUSED : MADE);
    }
}

static void a_loop_can_be_created_after_a_refusal(void **s)
{
    (void)s;
    uv_loop_t loop;
    struct rlimit was, none;
    sherd_diag d = { 0 };
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int err = sherd__loop_init(&loop, &d);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(err, SHERD_ENOMEM);
    assert_int_equal(sherd__loop_init(&loop, &d), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_few_descriptors_are_an_error_with_its_reason),
        cmocka_unit_test(a_loop_can_be_created_after_a_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
