/* The predicted sizes of blocks, tasks and results equal those that two sessions count, for every
 * length at which a body is split, and for numbers of every encoded length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/wire/pair.h"
#include "wire/size.h"

#define JOB 77u

static const uint32_t numbers[] = { 1, 2, 127, 128, 16383, 16384, 2097151, 2097152, UINT32_MAX };
#define NUMBERS (sizeof numbers / sizeof *numbers)

/* Sends one block, one task over it, and the node's answer. */
static void converse(uint64_t cols, uint64_t answer, uint32_t number, uint32_t attempt)
{
    pair p;
    sherd__fragment_info block = block_info(1, cols);
    sherd__task t = task_of(JOB, 1, 1, answer);
    t.attempt = attempt;
    t.left = number;
    t.right = number / 2;
    t.flags = number % 2 ? SHERD__DROP_LEFT : 0;
    assert_int_equal(pair_open(&p), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(put_block(&p, JOB, number, 1, cols), SHERD_OK);
    assert_int_equal(sherd__session_task(p.co.s, &t), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    const sherd__session_stats *co = sherd__session_stats_of(p.co.s);
    const sherd__session_stats *no = sherd__session_stats_of(p.no.s);
    uint64_t out = sherd__size_put(&block) + sherd__size_task(&t);
    uint64_t in = sherd__size_result(&t.result, attempt);
    assert_int_equal(p.co.events[SHERD__EV_RESULT], 1);
    assert_int_equal(co->work_out, out);
    assert_int_equal(no->work_in, out);
    assert_int_equal(co->work_in, in);
    assert_int_equal(no->work_out, in);
    assert_true(co->bytes_out > out && co->bytes_in > in); /* HELLO and WELCOME do not count as
                                                            * work */
    pair_close(&p);
}

static void sizes_equal_what_sessions_count_for_every_split_of_a_body(void **state)
{
    (void)state;
    static const uint64_t lengths[] = { 0,
                                        1,
                                        SHERD__CHUNK - 9,
                                        SHERD__CHUNK - 8,
                                        SHERD__CHUNK - 7,
                                        2 * SHERD__CHUNK - 8,
                                        2 * SHERD__CHUNK + 5 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        converse(lengths[i], lengths[i] / 8, 7, 1);
}

static void sizes_equal_what_sessions_count_for_numbers_of_every_length(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUMBERS; i++)
        for (size_t j = 0; j < NUMBERS; j++) converse(5, 3, numbers[i], numbers[j]);
}

static void heartbeats_and_drops_do_not_count_as_work(void **state)
{
    (void)state;
    pair p;
    assert_int_equal(pair_open(&p), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(sherd__session_drop(p.co.s, JOB, 0), SHERD_OK);
    p.now += SHERD__PING_MS;
    side_tick(&p.co, p.now);
    pair_run(&p, SIZE_MAX);
    const sherd__session_stats *co = sherd__session_stats_of(p.co.s);
    assert_int_equal(co->work_out + co->work_in, 0);
    assert_true(co->bytes_out > 0 && co->bytes_in > 0);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_equal_what_sessions_count_for_every_split_of_a_body),
        cmocka_unit_test(sizes_equal_what_sessions_count_for_numbers_of_every_length),
        cmocka_unit_test(heartbeats_and_drops_do_not_count_as_work),
    };
    return cmocka_run_group_tests_name("wire/size", tests, NULL, NULL);
}
