/*
 * Copies to and from devices, and memory of devices, over stand-ins for drivers, which copy as late
 * as they may: a part of the memory for copies that is used again too early has other bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sherd/mat.h"
#include "sherd/op.h"
#include "tests/support/under_valgrind.h"
#include "tests/unit/node/standins.h"

#define PART ((uint64_t)1 << 20) /* a copy is made in pieces of this size */
#define PARTS 4                  /* ... of which so many are in progress */

/* ---- a call that copies n bytes to a device and 8 n from it ---------------------------------- */

typedef struct widening {
    uint64_t n;
    uint8_t *bytes;
    double *out;
    sherd__fragment *block;
    sherd__handle handle;
    calling c;
} widening;

static widening *widening_new(void *ctx, uint64_t n)
{
    widening *w = calloc(1, sizeof *w);
    w->n = n;
    w->bytes = malloc(n);
    w->out = malloc(8 * n);
    for (uint64_t i = 0; i < n; i++) w->bytes[i] = (uint8_t)(i * 2654435761u >> 24);
    w->block = block_over(SHERD_U8, 0, 1, n, w->bytes);
    w->handle = held(ctx, w->block);
    return w;
}

static void widening_free(void *ctx, widening *w)
{
    backend->drop(ctx, &w->handle);
    sherd__fragment_free(w->block);
    free(w->bytes);
    free(w->out);
    free(w);
}

static void widen_begin(void *ctx, widening *w)
{
    sherd_diag d;
    w->c = (calling){ .task = { .op = SHERD_OP_RELU,
                                .left = 1,
                                .result = { .origin = SHERD__RESULT,
                                            .dtype = SHERD_F64,
                                            .rows = 1,
                                            .cols = w->n,
                                            .len = 8 * w->n } } };
    memset(w->out, 0xff, 8 * w->n);
    if (begin_task(ctx, &w->c, w->handle, (sherd__handle){ .id = 0 }, (uint8_t *)w->out, &d))
        fail_msg("%s", d.message);
}

static void check_widened(const widening *w)
{
    for (uint64_t i = 0; i < w->n; i++)
        if (w->out[i] != w->bytes[i]) fail_msg("%zu of %zu", (size_t)i, (size_t)w->n);
}

static int widen(void *ctx, widening *w)
{
    widen_begin(ctx, w);
    settle(ctx);
    assert_int_equal(w->c.dones, 1);
    if (!w->c.call.err) check_widened(w);
    return w->c.call.err;
}

/* Makes one call over n bytes. */
static void widen_once(void *ctx, uint64_t n)
{
    widening *w = widening_new(ctx, n);
    if (widen(ctx, w)) fail_msg("%s", w->c.call.text);
    widening_free(ctx, w);
}

static void *opened_by(uint32_t threads, uint64_t memory)
{
    void *ctx;
    sherd_diag d;
    const sherd__backend_options o = {
        .threads = threads, .device_memory = memory, .tested = true, .timeout_s = 60
    };
    if (open_with(&ctx, "", o, &d)) fail_msg("%s", d.message);
    return ctx;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void blocks_and_results_of_any_size_arrive(void **s)
{
    (void)s;
    static const uint64_t sizes[] = {
        1,        PART / 8 - 1,     PART / 8, PART / 8 + 1,
        PART - 1, PARTS * PART / 8, PART,     (PARTS + 1) * PART + 5
    };
    for (uint32_t threads = 1; threads <= 16; threads += 15) { /* 16: four for each lane's copies */
        if (under_valgrind() && threads > 1) break;
        void *ctx = opened_by(threads, 0);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) widen_once(ctx, sizes[i]);
        backend->close(ctx);
        assert_int_equal(on->dirty(), 0);
    }
}

/* The numbers of results of products have three bytes. */
static void a_result_of_an_odd_size_arrives(void **s)
{
    (void)s;
    enum { R = 1201, C = 1213, P = 8388593 };
    static uint8_t a[3 * R], b[3 * C], out[3 * R * C];
    sherd_diag d;
    void *ctx = opened("");
    for (uint32_t i = 0; i < R; i++) a[3 * i] = (uint8_t)i, a[3 * i + 1] = (uint8_t)(i >> 8);
    for (uint32_t i = 0; i < C; i++) b[3 * i] = (uint8_t)i, b[3 * i + 1] = (uint8_t)(i >> 8);
    sherd__fragment *left = block_over(SHERD__RESIDUES, 1, R, 1, a);
    sherd__fragment *right = block_over(SHERD__RESIDUES, 1, 1, C, b);
    sherd__handle u = held(ctx, left), v = held(ctx, right);
    static calling c;
    c = (calling){ .task = { .op = SHERD__OP_MULTIPLY,
                             .left = 1,
                             .right = 2,
                             .primes = { P },
                             .primes_len = 1,
                             .result = { .origin = SHERD__RESULT,
                                         .dtype = SHERD__RESIDUES,
                                         .primes = 1,
                                         .rows = R,
                                         .cols = C,
                                         .len = sizeof out } } };
    assert_true(sizeof out > PARTS * PART);
    assert_int_equal(begin_task(ctx, &c, u, v, out, &d), SHERD_OK);
    settle(ctx);
    assert_string_equal(c.call.text, "");
    for (uint32_t i = 0; i < R; i++)
        for (uint32_t j = 0; j < C; j++) {
            const uint8_t *x = out + 3 * (i * (size_t)C + j);
            if ((x[0] | (uint32_t)x[1] << 8 | (uint32_t)x[2] << 16) != i * j % P)
                fail_msg("(%u, %u)", i, j);
        }
    backend->drop(ctx, &u);
    backend->drop(ctx, &v);
    backend->close(ctx);
    sherd__fragment_free(left);
    sherd__fragment_free(right);
}

/* Both lanes. */
static void two_calls_copy_at_the_same_time(void **s)
{
    (void)s;
    void *ctx = opened_by(16, 0);
    widening *w[4];
    for (size_t i = 0; i < 4; i++) w[i] = widening_new(ctx, PART + i);
    for (size_t i = 0; i < 4; i++) widen_begin(ctx, w[i]);
    settle(ctx);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(w[i]->c.call.err, SHERD_OK);
        check_widened(w[i]);
        widening_free(ctx, w[i]);
    }
    backend->close(ctx);
    assert_int_equal(on->dirty(), 0);
}

/* Copies of the call: 5 of the block, one word, and 33 of the result. */
#define MANY (4 * PART + 5)
static const unsigned nth[] = { 1, 5, 7, 11 };

static void a_copy_that_fails_fails_its_call_only(void **s)
{
    (void)s;
    char faults[32];
    for (size_t i = 0; i < sizeof nth / sizeof *nth; i++) {
        void *ctx = opened_by(1, 0);
        widening *w = widening_new(ctx, MANY);
        snprintf(faults, sizeof faults, "nocopy=%u", nth[i]);
        on->reset();
        set_faults(faults);
        assert_int_equal(widen(ctx, w), SHERD_EDEVICE);
        assert_false(w->c.call.lost);
        assert_non_null(strstr(w->c.call.text, nth[i] < 6 ? "copy a block" : "copy a result"));
        assert_int_equal(widen(ctx, w), SHERD_OK);
        widening_free(ctx, w);
        backend->close(ctx);
        assert_int_equal(on->dirty(), 0);
    }
}

static void a_device_that_is_lost_during_a_copy_ends_its_call(void **s)
{
    (void)s;
    char faults[32];
    for (size_t i = 0; i < 2; i++) {
        void *ctx = opened_by(1, 0);
        widening *w = widening_new(ctx, MANY);
        snprintf(faults, sizeof faults, "lostcopy=%u", i ? 7u : 2u);
        on->reset();
        set_faults(faults);
        assert_int_equal(widen(ctx, w), SHERD_EDEVICE);
        assert_true(w->c.call.lost);
        widening_free(ctx, w);
        backend->close(ctx);
    }
}

static void a_cancelled_call_ends_before_its_next_piece(void **s)
{
    (void)s;
    void *ctx = opened_by(1, 0);
    widening *w = widening_new(ctx, MANY);
    on->reset();
    set_faults("holdcopy=3");
    widen_begin(ctx, w);
    while (on->copies() < 3) usleep(1000);
    backend->cancel(ctx, &w->c.call);
    on->pass();
    settle(ctx);
    assert_int_equal(w->c.call.err, SHERD_EINTERRUPTED);
    assert_int_equal(on->copies(), 3);
    set_faults("");
    assert_int_equal(widen(ctx, w), SHERD_OK);
    widening_free(ctx, w);
    backend->close(ctx);
    assert_int_equal(on->dirty(), 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void memory_is_kept_for_the_next_call_and_freed_after_a_moment(void **s)
{
    (void)s;
    void *ctx = opened_by(1, 0);
    const unsigned long long before = on->held();
    widening *w = widening_new(ctx, 1000);
    on->reset();
    for (int i = 0; i < 3; i++) assert_int_equal(widen(ctx, w), SHERD_OK);
    assert_int_equal(on->allocations(), 2);
    assert_true(on->held() > before);
    widening_free(ctx, w);
    while (on->held() > before) usleep(10000);
    backend->close(ctx);
}

static void kept_memory_leaves_room_for_what_does_not_fit_beside_it(void **s)
{
    (void)s;
    char faults[64];
    void *ctx = opened_by(1, 0);
    const unsigned long long before = on->held();
    widening *w = widening_new(ctx, 100000);
    assert_int_equal(widen(ctx, w), SHERD_OK); /* its result is kept */
    snprintf(faults, sizeof faults, "room=%llu", before + 100016 + 1008 + 8016);
    set_faults(faults);
    widen_once(ctx, 1000);
    widening_free(ctx, w);
    backend->close(ctx);
    assert_int_equal(on->dirty(), 0);
}

static void kept_memory_stays_within_the_budget(void **s)
{
    (void)s;
    enum { CALLS = 10 };
    const uint64_t budget = 4 << 20;
    widening *w[CALLS];
    void *ctx = opened_by(1, budget);
    const unsigned long long before = on->held();
    for (uint64_t i = 0; i < CALLS; i++) { /* their results need twice the budget */
        w[i] = widening_new(ctx, 20000 * (i + 1));
        assert_int_equal(widen(ctx, w[i]), SHERD_OK);
        assert_true(on->held() - before <= budget + 1024); /* sizes are rounded up */
    }
    for (size_t i = 0; i < CALLS; i++) widening_free(ctx, w[i]);
    backend->close(ctx);
    assert_int_equal(on->dirty(), 0);
}

static void many_sizes_of_memory_are_overwritten(void **s)
{
    (void)s;
    void *ctx = opened_by(1, 0);
    for (uint64_t n = 100; n < 4100; n += 100) widen_once(ctx, n);
    backend->close(ctx);
    assert_int_equal(on->dirty(), 0);
}

static void closing_does_not_wait_for_a_driver_that_hangs(void **s)
{
    (void)s;
    void *ctx;
    sherd_diag d;
    const sherd__backend_options o = { .tested = true, .timeout_s = 0.3 };
    assert_int_equal(open_with(&ctx, "", o, &d), SHERD_OK);
    widening *w = widening_new(ctx, 1000);
    assert_int_equal(widen(ctx, w), SHERD_OK);
    set_faults("nozero");
    widening_free(ctx, w);
    backend->close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH(blocks_and_results_of_any_size_arrive),
        OVER_BOTH(a_result_of_an_odd_size_arrives),
        OVER_BOTH(two_calls_copy_at_the_same_time),
        OVER_BOTH(a_copy_that_fails_fails_its_call_only),
        OVER_BOTH(a_device_that_is_lost_during_a_copy_ends_its_call),
        OVER_BOTH(a_cancelled_call_ends_before_its_next_piece),
        OVER_BOTH(memory_is_kept_for_the_next_call_and_freed_after_a_moment),
        OVER_BOTH(kept_memory_leaves_room_for_what_does_not_fit_beside_it),
        OVER_BOTH(kept_memory_stays_within_the_budget),
        OVER_BOTH(many_sizes_of_memory_are_overwritten),
        /* last: its threads never end */
        OVER_BOTH(closing_does_not_wait_for_a_driver_that_hangs),
    };
    return cmocka_run_group_tests_name("node/device_copies", tests, standins_open, standins_close);
}
