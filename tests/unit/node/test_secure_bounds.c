/*
 * The resources that secure sums take of a node are counted, are freed with the task that needed
 * them, and none is left; every request is answered once, whatever it contains.
 *
 * link: -Wl,--wrap=sherd__gaussian_draw
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "crypto/gaussian.h"
#include "tests/support/draw.h"
#include "tests/unit/node/secure_member.h"

static void memory_is_counted_before_it_is_used(void **s)
{
    (void)s;
    unsigned no_room = 0, room = 0;
    for (uint64_t memory = 4096; memory < 65536; memory += 1024) {
        member_start_with(memory, &m.own, NULL);
        int err = member_join();
        no_room += err == SHERD_ENOMEM || err == SHERD_EINVAL;
        room += err == 0;
        member_stop();
    }
    assert_true(no_room > 0 && room > 0);
}

static void every_request_is_answered_once_whatever_it_contains(void **s)
{
    (void)s;
    member_start(NULL);
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t words[16];
        sherd__secure_plan p = member_plan();
        sherd__secure_plan_write((uint8_t *)words, &p);
        if (i % 50 == 0) member_meet();
        if (i % 50 == 0) assert_int_equal(member_seal(i + 1), 0);
        uint32_t op = SHERD__OP_JOIN + (uint32_t)(draw() % 6);
        if (op > SHERD__OP_OPEN) op = draw() % 2 ? SHERD__OP_CONFIRM : SHERD__OP_CHECK;
        uint32_t left = m.next_block++, right = 0;
        uint64_t rows = 1 + draw() % 2;
        uint64_t len = op == SHERD__OP_JOIN ? SHERD__SECURE_PLAN : draw() % 7;
        if (op != SHERD__OP_JOIN) words[1] = i / 50 * 50 + 1 + draw() % 3;
        if (draw() % 3) words[draw() % 10] = draw() % 5;
        if (draw() % 9 == 0) words[draw() % 10] = draw() << 33;
        member_put(left, draw() % 9 ? SHERD_I64 : SHERD_F64, rows, len / rows, words);
        if (draw() % 4) {
            right = m.next_block++;
            uint64_t cols = draw() % 3 ? COUNT : draw() % 200;
            uint8_t any[200 * 8];
            for (size_t k = 0; k < sizeof any; k++) any[k] = (uint8_t)draw();
            member_put(right, draw() % 2 ? SHERD_F64 : SHERD_U8, 1, cols, any);
        }
        (void)member_task(op, left, right, draw() % 2 ? SHERD_U8 : SHERD_I64, 1 + draw() % 4,
                          draw() % 2 ? LEN : draw() % 300);
        for (uint32_t k = 1; k < N && i % 50 == 49; k++) {
            sherd__aggregate_member_free(m.others[k].member);
            m.others[k].member = NULL;
        }
    }
    member_stop();
}

static void a_dropped_job_leaves_nothing_behind(void **s)
{
    (void)s;
    member_start(NULL);
    member_meet();
    member_round(1);
    assert_int_equal(sherd__session_drop(m.j.co, JOB, 0), 0);
    joined_settle(&m.j, m.executor);
    assert_int_equal(sherd__worker_memory(m.worker)->used, 0);
    assert_int_equal(member_seal(2), SHERD_EINVAL);
    member_stop();
}

static atomic_uint draws; /* of noise */
static int draw_error;

int __real_sherd__gaussian_draw(int64_t *out, size_t n, uint64_t variance, const sherd__entropy *e);
int __wrap_sherd__gaussian_draw(int64_t *out, size_t n, uint64_t variance, const sherd__entropy *e);

int __wrap_sherd__gaussian_draw(int64_t *out, size_t n, uint64_t variance, const sherd__entropy *e)
{
    atomic_fetch_add(&draws, 1);
    if (draw_error) return draw_error;
    return __real_sherd__gaussian_draw(out, n, variance, e);
}

/* The compute thread serves all clients, and one coordinator chooses the number of places. */
static void a_round_ends_with_the_request_that_needed_it(void **s)
{
    (void)s;
    m.threaded = true;
    m.places = UINT32_MAX;
    for (unsigned how = 0; how < 4; how++) { /* CANCEL of the task, CANCEL of its job, DROP, end of
                                              * the connection */
        m.noise = how == 2;
        member_start(NULL);
        member_meet();
        assert_int_equal(member_seal(1), 0);
        uint32_t block = member_put_hide(1, 20);
        member_ask(SHERD__OP_HIDE, block, block + 1, SHERD_I64, 1, LEN);
        for (unsigned i = 0; i < 60000 && !atomic_load(&m.charged); i++) usleep(1000);
        assert_int_equal(sherd__executor_pending(m.executor), 1);
        if (how == 2) /* queued behind it; stops when it draws noise */
            member_ask(SHERD__OP_SEAL, member_put_seal(2, 20), 0, SHERD_U8, N,
                       sherd__aggregate_sealed_len(&member_agreed));
        if (how < 2) {
            assert_int_equal(sherd__session_cancel(m.j.co, JOB, how ? 0 : m.tasks, how ? 0 : 1), 0);
            m.tasks--; /* the coordinator receives no answer */
        }
        if (how == 2) assert_int_equal(sherd__session_drop(m.j.co, JOB, 0), 0);
        if (how == 3) {
            joined_cut(&m.j);
            m.tasks--;
        } else {
            joined_settle(&m.j, m.executor);
        }
        assert_true(member_idle());
        if (how == 2) assert_int_equal(m.refused, SHERD_EINTERRUPTED);
        assert_int_equal(atomic_load(&draws), how >= 2); /* of the first SEAL with noise */
        assert_int_equal(m.ledger.len, 1);
        if (how == 3) joined_open(&m.j, m.worker, member_hear, NULL);
        member_stop();
    }
    m.threaded = false;
    m.places = ROWS;
    m.noise = 0;
}

/* The member neither confirms nor answers for the previous round, which it has left. */
static void a_seal_that_fails_to_draw_noise_ends_its_round_and_the_previous_one(void **s)
{
    (void)s;
    m.noise = 1;
    member_start(NULL);
    member_meet();
    assert_int_equal(member_seal(1), 0);
    members_seal(1);
    assert_int_equal(member_hide(1, 20), 0);
    draw_error = SHERD_EDEVICE;
    assert_int_equal(member_seal(2), SHERD_EDEVICE);
    draw_error = 0;
    members_seal(2);
    for (uint64_t round = 1; round <= 2; round++) {
        assert_int_equal(member_confirm(round, member_all, N), SHERD_EINVAL);
        members_confirm(round, member_all, N);
        assert_int_equal(member_check(round, N), SHERD_EINVAL);
        assert_int_equal(member_open(round, N, member_all, N), SHERD_EINVAL);
        assert_int_equal(member_hide(round, 20), SHERD_EINVAL);
    }
    assert_int_equal(m.ledger.len, 1);
    member_round(3);
    member_stop();
    m.noise = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_counted_before_it_is_used),
        cmocka_unit_test(every_request_is_answered_once_whatever_it_contains),
        cmocka_unit_test(a_dropped_job_leaves_nothing_behind),
        cmocka_unit_test(a_round_ends_with_the_request_that_needed_it),
        cmocka_unit_test(a_seal_that_fails_to_draw_noise_ends_its_round_and_the_previous_one),
    };
    return cmocka_run_group_tests(tests, member_fill, member_empty);
}
