/* Reports of several attempts at one product. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/cluster/internal.h"

static sherd_report report(uint64_t tasks, uint32_t used, double seconds)
{
    sherd_report r;
    assert_int_equal(sherd__report_init(&r, 2), 0);
    r.bytes_out[1] = r.tasks = tasks;
    r.nodes_used = used;
    r.seconds = seconds;
    return r;
}

static void attempts_are_added(void **state)
{
    (void)state;
    sherd_report first = report(3, 2, 0.5), second = report(10, 1, 0.25);
    sherd__report_add(&second, &first);
    assert_true(second.tasks == 13 && second.bytes_out[1] == 13 && second.nodes_used == 2);
    assert_true(second.seconds == 0.75);
    sherd_report_fini(&second);
}

static void an_attempt_without_nodes_keeps_the_report_of_those_before(void **state)
{
    (void)state;
    sherd_report first = report(3, 2, 0.5), second = { .nodes = 0 };
    sherd__report_add(&second, &first);
    assert_true(second.nodes == 2 && second.tasks == 3 && second.bytes_out[1] == 3);
    sherd_report_fini(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempts_are_added),
        cmocka_unit_test(an_attempt_without_nodes_keeps_the_report_of_those_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
