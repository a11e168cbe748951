/* Settings of the command's process, inspected from inside it. A child process is used, since the
 * settings are permanent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/process.h"

/* Returns a mask of the settings that are wrong after the start. */
static int faults_after_start(void)
{
    struct rlimit core;
    struct sigaction pipe;
    sherd__process_start();
    int faults = prctl(PR_GET_DUMPABLE) != 0;
    if (getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_cur != 0 || core.rlim_max != 0) faults |= 2;
    if (sigaction(SIGPIPE, NULL, &pipe) != 0 || pipe.sa_handler != SIG_IGN) faults |= 4;
    return faults;
}

static void memory_is_neither_dumped_nor_readable_by_other_processes(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(faults_after_start());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_neither_dumped_nor_readable_by_other_processes),
    };
    return cmocka_run_group_tests_name("cli/process", tests, NULL, NULL);
}
