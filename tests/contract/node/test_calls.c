/*
 * Handles and calls of every backend: several calls in progress, each of which ends once, whether
 * cancelled or not; blocks that are dropped while a call uses them; owners. Running out of memory,
 * failing and loss of a device are tested with the backend of the tests only.
 * link: -Wl,--wrap=sherd__gemm_f64 -Wl,--wrap=sherd__gemm_t_f64 -Wl,--wrap=sherd__team_run
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "core/team.h"
#include "matrix/local.h"
#include "matrix/residue_limbs.h"
#include "matrix/windows.h"
#include "node/programs.h"
#include "node/products.h"
#include "tests/contract/node/backend_world.h"
#include "tests/support/remote.h"

enum { N = 40, K = 30, M = 20, MOST = 6, OWNER = 7 };

/* Two blocks on a device, a task over them, and the expected result. */
typedef struct product {
    block a, b;
    sherd__handle left, right;
    sherd__task task;
    double *want;
    uint8_t *out;
    calling c;
} product;

static void product_new(product *p, uint32_t rows)
{
    plan a = plan_dense(0, rows, K, SHERD_F32), b = plan_dense(0, K, M, SHERD_I16);
    memset(p, 0, sizeof *p);
    p->a = block_new(&a);
    p->b = block_new(&b);
    p->task = task_product(p->a.f, p->b.f, SHERD_F64);
    p->want = block_product(&p->a, &p->b, rows, M);
    p->out = out_new(p->task.result.len);
}

static void product_hold(product *p)
{
    p->left = backend_hold(p->a.f, OWNER);
    p->right = backend_hold(p->b.f, OWNER);
}

static int product_begin(product *p)
{
    return backend_begin(&p->c, &p->task, p->left, p->right, OWNER, p->out);
}

static void product_drop(product *p)
{
    backend_now->drop(backend_ctx, &p->left);
    backend_now->drop(backend_ctx, &p->right);
}

static void product_right(const product *p)
{
    assert_int_equal(p->c.dones, 1);
    assert_int_equal(p->c.call.err, SHERD_OK);
    assert_memory_equal(p->out, p->want, p->task.result.len);
    out_guarded(p->out, p->task.result.len);
}

/* No call is in progress: its result's memory is the caller's. */
static void product_unwritten(const product *p)
{
    for (size_t i = 0; i < p->task.result.len; i++) assert_int_equal(p->out[i], 0xFF);
}

static void product_free(product *p)
{
    block_free(&p->a);
    block_free(&p->b);
    free(p->want);
    free(p->out);
}

static void devices_have_kinds_rates_and_a_depth(void **s)
{
    (void)s;
    uint32_t count = 0;
    const sherd__device *list = backend_now->devices(backend_ctx, &count);
    assert_true(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(list[i].name[0] && list[i].core[0] && list[i].threads > 0);
        assert_true(list[i].does && list[i].gflops > 0 && list[i].cell > 0 && list[i].depth > 0);
    }
}

static void a_handle_carries_kind_layout_and_owner(void **s)
{
    (void)s;
    uint32_t values[6] = { 1, 2, 3, 4, 0, 1 };
    sherd__fragment *f = residues_new(0, 2, 3, 1, values);
    sherd__handle h = backend_hold(f, 5);
    assert_true(h.id && h.owner == 5 && h.device == 0);
    assert_int_equal(h.dtype, SHERD__RESIDUES);
    assert_int_equal(h.primes, 1);
    assert_int_equal(h.encoding, SHERD__DENSE);
    backend_now->drop(backend_ctx, &h);
    sherd__fragment_free(f);
}

static void calls_that_are_in_progress_together_end_once_each(void **s)
{
    (void)s;
    for (uint32_t round = 0; round < 20; round++) {
        product p[MOST];
        uint32_t n = 0;
        for (uint32_t i = 0; i < MOST; i++) {
            product_new(&p[i], N + i);
            product_hold(&p[i]);
            int err = product_begin(&p[i]);
            assert_true(err == SHERD_OK || err == SHERD_EBUSY);
            assert_int_equal(p[i].c.dones, 0); /* never called from within submit */
            if (err) {
                product_drop(&p[i]);
                product_free(&p[i]);
                break;
            }
            n++;
        }
        assert_true(n > 1);
        backend_settle();
        for (uint32_t i = 0; i < n; i++) {
            product_right(&p[i]);
            product_drop(&p[i]);
            product_free(&p[i]);
        }
    }
}

static void one_block_may_be_both_operands_of_many_calls(void **s)
{
    (void)s;
    plan square = plan_dense(0, M, M, SHERD_I16);
    block a = block_new(&square);
    sherd__task t = task_product(a.f, a.f, SHERD_F64);
    double *want = block_product(&a, &a, M, M);
    sherd__handle h = backend_hold(a.f, OWNER);
    uint8_t *out[2] = { out_new(t.result.len), out_new(t.result.len) };
    calling c[2];
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(backend_begin(&c[i], &t, h, h, OWNER, out[i]), SHERD_OK);
    backend_now->drop(backend_ctx, &h);
    backend_settle();
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(c[i].dones, 1);
        assert_memory_equal(out[i], want, t.result.len);
        free(out[i]);
    }
    free(want);
    block_free(&a);
}

static void a_block_dropped_while_a_call_uses_it_is_used_to_the_end(void **s)
{
    (void)s;
    for (uint32_t round = 0; round < 10; round++) {
        product p;
        product_new(&p, N);
        product_hold(&p);
        assert_int_equal(product_begin(&p), SHERD_OK);
        product_drop(&p);
        backend_settle();
        product_right(&p);
        product_free(&p);
    }
    if (backend_now == &remote_backend) assert_true(remote_is_clean(backend_ctx));
}

static void blocks_of_another_owner_are_refused(void **s)
{
    (void)s;
    product p;
    product_new(&p, N);
    for (uint32_t i = 0; i < 2; i++) {
        p.left = backend_hold(p.a.f, OWNER + (i == 0));
        p.right = backend_hold(p.b.f, OWNER + (i == 1));
        assert_int_equal(product_begin(&p), SHERD_EINVAL);
        backend_settle();
        assert_int_equal(p.c.dones, 0);
        product_drop(&p);
    }
    product_free(&p);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

typedef struct gate {
    sherd__executor_item work;
    sem_t open;
} gate;

static void wait_for_gate(sherd__executor_item *w)
{
    (void)sem_wait(&((gate *)w)->open);
}

static void nothing(sherd__executor_item *w)
{
    (void)w;
}

static void woken(void *ctx)
{
    (void)ctx;
}

/* The compute thread is kept busy until the call is cancelled. */
static void a_call_cancelled_before_it_runs_ends_once(void **s)
{
    (void)s;
    gate g = { .work = { .run = wait_for_gate, .done = nothing } };
    sherd__executor *inline_one = backend_executor;
    product p;
    assert_int_equal(sem_init(&g.open, 0, 0), 0);
    assert_int_equal(sherd__executor_new(&backend_executor, 8, woken, NULL), SHERD_OK);
    assert_int_equal(sherd__executor_submit(backend_executor, &g.work), SHERD_OK);
    product_new(&p, N);
    product_hold(&p);
    assert_int_equal(product_begin(&p), SHERD_OK);
    backend_now->cancel(backend_ctx, &p.c.call);
    backend_now->cancel(backend_ctx, &p.c.call);
    assert_int_equal(p.c.dones, 0);
    sem_post(&g.open);
    backend_settle();
    assert_int_equal(p.c.dones, 1);
    if (p.c.call.err) assert_int_equal(p.c.call.err, SHERD_EINTERRUPTED);
    else product_right(&p);
    if (backend_now == &sherd__backend_cpu) assert_int_equal(p.c.call.err, SHERD_EINTERRUPTED);
    product_drop(&p);
    product_free(&p);
    sherd__executor_free(backend_executor);
    backend_executor = inline_one;
    sem_destroy(&g.open);
}

typedef int gemm(size_t n, size_t k, size_t m, const double *a, size_t lda, const double *b,
                 size_t ldb, double beta, double *c, size_t ldc);
gemm __real_sherd__gemm_f64, __wrap_sherd__gemm_f64;
gemm __real_sherd__gemm_t_f64, __wrap_sherd__gemm_t_f64;
typedef void team_run(sherd__team *t, size_t count,
                      void (*fn)(void *ctx, size_t i, unsigned thread), void *ctx);
team_run __real_sherd__team_run, __wrap_sherd__team_run;
static sherd__call *to_cancel;
static unsigned steps, cancel_at; /* steps of a product; the one during which it is cancelled */

static void step(void)
{
    steps++;
    if (to_cancel && steps == cancel_at) backend_now->cancel(backend_ctx, to_cancel);
}

int __wrap_sherd__gemm_f64(size_t n, size_t k, size_t m, const double *a, size_t lda,
                           const double *b, size_t ldb, double beta, double *c, size_t ldc)
{
    step();
    return __real_sherd__gemm_f64(n, k, m, a, lda, b, ldb, beta, c, ldc);
}

int __wrap_sherd__gemm_t_f64(size_t n, size_t k, size_t m, const double *a, size_t lda,
                             const double *b, size_t ldb, double beta, double *c, size_t ldc)
{
    step();
    return __real_sherd__gemm_t_f64(n, k, m, a, lda, b, ldb, beta, c, ldc);
}

void __wrap_sherd__team_run(sherd__team *t, size_t count,
                            void (*fn)(void *ctx, size_t i, unsigned thread), void *ctx)
{
    step();
    __real_sherd__team_run(t, count, fn, ctx);
}

static void a_call_cancelled_while_it_runs_ends_soon(void **s)
{
    (void)s;
    plan wide = plan_dense(0, 2, 5000, SHERD_F32), high = plan_dense(0, 5000, 2, SHERD_F32);
    block a = block_new(&wide), b = block_new(&high);
    sherd__task t = task_product(a.f, b.f, SHERD_F64);
    sherd__handle left = backend_hold(a.f, OWNER), right = backend_hold(b.f, OWNER);
    uint8_t *out = out_new(t.result.len);
    calling c;
    to_cancel = &c.call;
    steps = 0;
    cancel_at = 1;
    assert_int_equal(backend_begin(&c, &t, left, right, OWNER, out), SHERD_OK);
    backend_settle();
    to_cancel = NULL;
    assert_int_equal(c.dones, 1);
    assert_int_equal(c.call.err, SHERD_EINTERRUPTED);
    assert_int_equal(steps, 1);
    backend_now->drop(backend_ctx, &left);
    backend_now->drop(backend_ctx, &right);
    free(out);
    block_free(&a);
    block_free(&b);
}

/* A product of residues, which is computed twice over the same handles: the second call makes
 * forms, where there are some. */
typedef struct modular {
    sherd__fragment *a, *b;
    sherd__task task;
} modular;

/* Cancels one of the calls (1, 2, or 0 none) at a step. Returns its steps. */
static unsigned modular_run(const modular *p, unsigned call, unsigned at)
{
    sherd__handle left = backend_hold(p->a, OWNER), right = backend_hold(p->b, OWNER);
    uint8_t *out = out_new(p->task.result.len);
    calling c;
    for (unsigned k = 1; k <= (call ? call : 2); k++) {
        steps = 0;
        cancel_at = at;
        to_cancel = k == call ? &c.call : NULL;
        assert_int_equal(backend_begin(&c, &p->task, left, right, OWNER, out), SHERD_OK);
        backend_settle();
        to_cancel = NULL;
        assert_int_equal(c.dones, 1);
        if (k != call || !at) assert_int_equal(c.call.err, SHERD_OK);
    }
    if (at && steps > at) assert_int_equal(c.call.err, SHERD_EINTERRUPTED);
    if (c.call.err) assert_string_equal(c.call.text, "the task was cancelled");
    backend_now->drop(backend_ctx, &left);
    backend_now->drop(backend_ctx, &right);
    free(out);
    return steps;
}

/* One more step may run, but not if it would be the last. */
static void modular_ends_soon(modular *p)
{
    for (unsigned tiles = 0; tiles < 2; tiles++) {
        assert_true(sherd__limbs_force(tiles));
        for (unsigned call = 1; call <= 2; call++) {
            const unsigned all = modular_run(p, call, 0);
            assert_true(all > 2);
            for (unsigned at = 1; at + 2 <= all; at++)
                assert_in_range(modular_run(p, call, at), at, at + 1);
        }
    }
    assert_true(sherd__limbs_force(0));
    sherd__fragment_free(p->a);
    sherd__fragment_free(p->b);
}

static sherd__fragment *residues_of(uint32_t rows, uint32_t cols)
{
    uint32_t *v = residues_draw(rows, cols, 1, false);
    sherd__fragment *f = residues_new(0, rows, cols, 1, v);
    free(v);
    return f;
}

static void a_cancelled_product_of_residues_ends_soon(void **s)
{
    static const struct {
        uint32_t n, k, m;
    } of[] = { { 3, 4200, 260 }, { 2100, 40, 20 } };
    (void)s;
    for (unsigned i = 0; i < sizeof of / sizeof *of; i++)
        for (unsigned integers = 0; integers < 2; integers++) {
            plan right = plan_dense(0, of[i].k, of[i].m, SHERD_I16);
            modular p = { .a = residues_of(of[i].n, of[i].k),
                          .b = integers ? NULL : residues_of(of[i].k, of[i].m),
                          .task = task_modular(of[i].n, of[i].m, 1) };
            block b = { .f = NULL };
            if (integers) b = block_new(&right), p.b = b.f;
            modular_ends_soon(&p);
            free(b.values);
        }
}

/* More windows than are laid out at a time. */
static void a_cancelled_product_of_windows_ends_soon(void **s)
{
    enum { IMAGES = 4, COLS = 3 };
    const sherd_windows w = { 40, 36, 1, 2, 1, 1 };
    sherd__windows of;
    (void)s;
    assert_true(sherd__windows_fit(&w, &of));
    const uint32_t rows = IMAGES * (uint32_t)of.count, inner = (uint32_t)of.row;
    for (unsigned transposed = 0; transposed < 2; transposed++) {
        modular p = { .a = residues_of(IMAGES, (uint32_t)of.image),
                      .b = residues_of(transposed ? rows : inner, COLS),
                      .task = task_modular(transposed ? inner : rows, COLS, 1) };
        p.task.windows = w;
        if (transposed) p.task.op = SHERD__OP_MULTIPLY_T;
        modular_ends_soon(&p);
    }
}

/* ---- devices that fail ----------------------------------------------------------------------- */

static void the_calls_of_a_lost_device_end_once_each(void **s)
{
    (void)s;
    void *whole = backend_ctx;
    remote_options o = { .seed = 3, .depth = MOST, .late = 9, .dies_at = 2, .cpu = backend_cpu };
    product p[MOST];
    uint32_t lost = 0;
    sherd_diag d;
    assert_int_equal(remote_open(&backend_ctx, &o), SHERD_OK);
    for (uint32_t i = 0; i < MOST; i++) {
        product_new(&p[i], N);
        product_hold(&p[i]);
        assert_int_equal(product_begin(&p[i]), SHERD_OK);
    }
    backend_settle();
    for (uint32_t i = 0; i < MOST; i++) {
        assert_int_equal(p[i].c.dones, 1);
        if (!p[i].c.call.err) product_right(&p[i]);
        else assert_true(p[i].c.call.err == SHERD_EDEVICE && p[i].c.call.lost);
        lost += p[i].c.call.lost;
    }
    assert_true(lost > 1);
    assert_int_equal(product_begin(&p[0]), SHERD_EDEVICE);
    assert_int_equal(p[0].c.dones, 0);
    sherd__handle h;
    assert_int_equal(backend_now->hold(backend_ctx, 0, p[0].a.f, OWNER, &h, &d), SHERD_EDEVICE);
    for (uint32_t i = 0; i < MOST; i++) {
        product_drop(&p[i]);
        product_free(&p[i]);
    }
    backend_now->close(backend_ctx);
    backend_ctx = whole;
}

/* Holds, drops, calls and cancels in any order, on a small device that fails. */
static void under_all_failures_every_call_ends_once(void **s)
{
    (void)s;
    void *whole = backend_ctx;
    remote_stats all = { 0 };
    for (uint64_t seed = 1; seed <= 60; seed++) {
        remote_options o = { .seed = seed,
                             .depth = 3,
                             .late = 4,
                             .full_in = 6,
                             .fail_in = 6,
                             .memory = 40000,
                             .dies_at = seed % 5 ? 0 : 8,
                             .cpu = backend_cpu };
        product p[MOST];
        bool held[MOST][2] = { { false } }, under_way[MOST] = { false };
        sherd_diag d;
        assert_int_equal(remote_open(&backend_ctx, &o), SHERD_OK);
        for (uint32_t i = 0; i < MOST; i++) product_new(&p[i], 1 + 7 * i);
        for (uint32_t step = 0; step < 150; step++) {
            uint32_t i = (uint32_t)sherd__entropy_below(&backend_rnd, MOST);
            uint32_t what = (uint32_t)sherd__entropy_below(&backend_rnd, 6);
            for (int side = 0; side < 2 && what < 2; side++) {
                sherd__handle *h = side ? &p[i].right : &p[i].left;
                if (what == 0 && !held[i][side])
                    held[i][side] = !backend_now->hold(backend_ctx, 0, side ? p[i].b.f : p[i].a.f,
                                                       OWNER, h, &d);
                else if (what == 1 && held[i][side])
                    backend_now->drop(backend_ctx, h), held[i][side] = false;
            }
            if (what == 2 && held[i][0] && held[i][1] && !under_way[i])
                under_way[i] = !product_begin(&p[i]);
            if (what == 3 && under_way[i]) backend_now->cancel(backend_ctx, &p[i].c.call);
            if (what > 3) (void)remote_turn(backend_ctx);
            if (what > 4) (void)sherd__executor_drain(backend_executor);
            for (i = 0; i < MOST; i++) {
                if (!under_way[i]) product_unwritten(&p[i]);
                if (!under_way[i] || !p[i].c.dones) continue;
                if (!p[i].c.call.err) product_right(&p[i]);
                memset(p[i].out, 0xFF, p[i].task.result.len);
                under_way[i] = false;
            }
        }
        backend_settle();
        for (uint32_t i = 0; i < MOST; i++) {
            if (under_way[i]) assert_int_equal(p[i].c.dones, 1);
            if (held[i][0]) backend_now->drop(backend_ctx, &p[i].left);
            if (held[i][1]) backend_now->drop(backend_ctx, &p[i].right);
            product_free(&p[i]);
        }
        assert_true(remote_is_clean(backend_ctx));
        const remote_stats *r = remote_stats_of(backend_ctx);
        assert_int_equal(r->holds, r->drops);
        all.dones += r->dones;
        all.full += r->full;
        all.failed += r->failed;
        all.lost += r->lost;
        all.cancelled += r->cancelled;
        all.overtaken += r->overtaken;
        all.dropped_in_use += r->dropped_in_use;
        backend_now->close(backend_ctx);
    }
    backend_ctx = whole;
    assert_true(all.dones > 100 && all.full > 100 && all.failed > 20 && all.lost > 5);
    assert_true(all.cancelled > 20 && all.overtaken > 20 && all.dropped_in_use > 20);
}

/* By calls that are waited for, or on the thread of the pass. */
static void a_backend_computes_passes_in_one_of_two_ways(void **s)
{
    (void)s;
    product p[3];
    assert_true(!backend_now->wait == (backend_now->multiplier != NULL));
    if (!backend_now->wait) return;
    backend_now->wait(backend_ctx, NULL); /* nothing is in progress */
    for (size_t i = 0; i < 3; i++) {
        product_new(&p[i], N);
        product_hold(&p[i]);
        assert_int_equal(product_begin(&p[i]), SHERD_OK);
    }
    backend_now->wait(backend_ctx, NULL);
    unsigned ended = (unsigned)sherd__executor_drain(backend_executor);
    assert_in_range(ended, 1, 3);
    backend_now->wait(backend_ctx, &p[1].c.call); /* it may have ended */
    (void)sherd__executor_drain(backend_executor);
    product_right(&p[1]);
    backend_settle();
    for (size_t i = 0; i < 3; i++) {
        product_right(&p[i]);
        product_drop(&p[i]);
        product_free(&p[i]);
    }
}

/* Computes a product as a layer does in a pass. */
static void multiply(sherd_multiplier m, sherd_view a, sherd_view b, double *c)
{
    sherd__tiled p = { .type = SHERD_F64, .a = a, .b = b, .c = c, .ldc = b.cols };
    if (sherd__local_is(m)) assert_int_equal(sherd__local_multiply(m, &p, NULL), SHERD_OK);
    else assert_int_equal(sherd_multiplier_multiply(m, a, b, c, b.cols, NULL), SHERD_OK);
}

/* Numbers whose sums are rounded; each row of A separately, and the whole. */
static void products_for_own_examples_do_not_depend_on_other_rows(void **s)
{
    (void)s;
    enum { ROWS = 37, INNER = 301, COLS = 19 };
    static double a[ROWS * INNER], b[INNER * COLS], whole[ROWS * COLS], row[COLS];
    sherd__devices devices;
    sherd__products of = { .devices = &devices, .owner = OWNER };
    sherd_multiplier m;
    uint32_t count;
    const sherd__device *list = backend_now->devices(backend_ctx, &count);
    sherd__devices_init(&devices, backend_now, backend_ctx, list, count);
    sherd__arithmetic by = sherd__products_own(&of);
    assert_int_equal(sherd__arithmetic_multiplier(&by, 0, &m, NULL), SHERD_OK);
    for (size_t i = 0; i < ROWS * INNER; i++)
        a[i] = (double)sherd__entropy_below(&backend_rnd, 1u << 30) / 3;
    for (size_t i = 0; i < INNER * COLS; i++)
        b[i] = (double)sherd__entropy_below(&backend_rnd, 1u << 30) / 7;
    sherd_view right = sherd_view_c(b, SHERD_F64, INNER, COLS);
    multiply(m, sherd_view_c(a, SHERD_F64, ROWS, INNER), right, whole);
    for (size_t r = 0; r < ROWS; r++) {
        sherd_view alone = sherd_view_c(a + r * INNER, SHERD_F64, 1, INNER);
        multiply(m, alone, right, row);
        assert_memory_equal(row, whole + r * COLS, sizeof row);
    }
    sherd_multiplier_free(m);
}

static void devices_that_run_programs_compute_passes_with_the_bits_of_the_host(void **s)
{
    (void)s;
    sherd__devices devices;
    uint32_t count;
    const sherd__device *list = backend_now->devices(backend_ctx, &count);
    sherd__devices_init(&devices, backend_now, backend_ctx, list, count);
    assert_int_equal(sherd__programs_test(&devices, NULL), SHERD_OK);
    for (uint32_t i = 0; i < count; i++) assert_int_equal(devices.list[i].what.does, list[i].does);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(devices_have_kinds_rates_and_a_depth),
        ALL(a_handle_carries_kind_layout_and_owner),
        ALL(calls_that_are_in_progress_together_end_once_each),
        ALL(one_block_may_be_both_operands_of_many_calls),
        ALL(a_block_dropped_while_a_call_uses_it_is_used_to_the_end),
        ALL(blocks_of_another_owner_are_refused),
        ALL(a_call_cancelled_before_it_runs_ends_once),
        ALL(a_backend_computes_passes_in_one_of_two_ways),
        ALL(devices_that_run_programs_compute_passes_with_the_bits_of_the_host),
        HOSTED(products_for_own_examples_do_not_depend_on_other_rows),
        EACH(a_call_cancelled_while_it_runs_ends_soon, 0),
        EACH(the_calls_of_a_lost_device_end_once_each, 1),
        EACH(under_all_failures_every_call_ends_once, 1),
        EACH(a_cancelled_product_of_residues_ends_soon, 0),
        EACH(a_cancelled_product_of_windows_ends_soon, 0),
    };
    return cmocka_run_group_tests_name("node/calls", tests, backend_open_all, backend_close_all);
}
