/* How long the job waits for nodes that it does not need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/cluster/wait_policy.h"

static void late_nodes_get_time_in_proportion_to_the_others(void **s)
{
    (void)s;
    assert_int_equal(sherd__wait_policy_until(5000, 5000, INT64_MAX), 6000);
    assert_int_equal(sherd__wait_policy_until(5000, 5200, INT64_MAX), 6600);
    assert_int_equal(sherd__wait_policy_until(5000, 25000, INT64_MAX), 66000); /* a busy machine */
}

static void half_of_the_time_limit_is_reserved_for_the_work(void **s)
{
    (void)s;
    assert_int_equal(sherd__wait_policy_until(0, 1000, 2000), 1500);
    assert_int_equal(sherd__wait_policy_until(0, 1000, 1001), 1000);
    assert_int_equal(sherd__wait_policy_until(0, 1000, 7000), 4000); /* as much as without a
                                                                      * limit */
    assert_int_equal(sherd__wait_policy_until(0, 1000, 60000), 4000);
}

static void a_node_without_processor_time_gets_more_within_the_time_limit(void **s)
{
    (void)s;
    assert_int_equal(sherd__wait_policy_starved(5000, 15000, 0, INT64_MAX), 15000);
    assert_int_equal(sherd__wait_policy_starved(5000, 15000, 7000, INT64_MAX), 22000);
    assert_int_equal(sherd__wait_policy_starved(5000, 15000, 900000, INT64_MAX), 65000); /* 6 x */
    assert_int_equal(sherd__wait_policy_starved(5000, 15000, 7000, 20000), 20000);
    assert_int_equal(sherd__wait_policy_starved(5000, 8000, 7000, 8000), 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_nodes_get_time_in_proportion_to_the_others),
        cmocka_unit_test(half_of_the_time_limit_is_reserved_for_the_work),
        cmocka_unit_test(a_node_without_processor_time_gets_more_within_the_time_limit),
    };
    return cmocka_run_group_tests_name("scheduler/patience", tests, NULL, NULL);
}
