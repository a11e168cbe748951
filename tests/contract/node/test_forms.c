/*
 * Forms of blocks that the CPU backend keeps with their handles: which are made, when, how often,
 * and what becomes of their memory. All tests of products in this folder check that results have
 * the same bits with and without forms: each product is computed several times over the same
 * handles.
 * link: -Wl,--wrap=sherd__view_row_f64
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "matrix/residue_limbs.h"
#include "matrix/view.h"
#include "node/backends/cpu.h"
#include "tests/contract/node/backend_world.h"

enum { OWNER = 1, N = 20, K = 80, M = 60 };

/* ---- conversions of integers and floats that the backend makes ------------------------------- */

void __real_sherd__view_row_f64(sherd_view v, size_t row, size_t col, size_t n, double *out);
void __wrap_sherd__view_row_f64(sherd_view v, size_t row, size_t col, size_t n, double *out);
static uint64_t converted; /* numbers */
static sherd__call *to_cancel;

void __wrap_sherd__view_row_f64(sherd_view v, size_t row, size_t col, size_t n, double *out)
{
    converted += n;
    if (to_cancel) backend_now->cancel(backend_ctx, to_cancel);
    __real_sherd__view_row_f64(v, row, col, n, out);
}

/* ---- one product over handles that stay ------------------------------------------------------ */

typedef struct stay {
    sherd__fragment *a, *b;
    sherd__handle left, right;
    sherd__task task;
    uint8_t *want, *out;
    calling c;
} stay;

static void stay_begin(stay *p, sherd__fragment *a, sherd__fragment *b, const sherd__task *t)
{
    *p = (stay){ .a = a, .b = b, .task = *t, .want = out_new(t->result.len) };
    backend_lent.none = true;
    assert_int_equal(backend_run(t, a, b, p->want), SHERD_OK);
    backend_lent = (lending){ .none = false };
    p->out = out_new(t->result.len);
    p->left = backend_hold(a, OWNER);
    p->right = backend_hold(b, OWNER);
    converted = 0;
}

static int call(stay *p)
{
    memset(p->out, 0xFF, p->task.result.len);
    assert_int_equal(backend_begin(&p->c, &p->task, p->left, p->right, OWNER, p->out), SHERD_OK);
    backend_settle();
    assert_int_equal(p->c.dones, 1);
    return p->c.call.err;
}

static void call_right(stay *p)
{
    assert_int_equal(call(p), SHERD_OK);
    assert_memory_equal(p->out, p->want, p->task.result.len);
}

static void stay_drop(stay *p)
{
    backend_now->drop(backend_ctx, &p->left);
    backend_now->drop(backend_ctx, &p->right);
}

static void stay_end(stay *p)
{
    assert_int_equal(backend_lent.gets, backend_lent.gives);
    assert_int_equal(backend_lent.bytes, 0);
    sherd__fragment_free(p->a);
    sherd__fragment_free(p->b);
    free(p->want);
    free(p->out);
}

static sherd__fragment *block_of(uint8_t dtype, uint32_t rows, uint32_t cols)
{
    plan p = plan_dense(0, rows, cols, dtype);
    block b = block_new(&p);
    free(b.values);
    return b.f;
}

static sherd__fragment *block_of_residues(uint32_t rows, uint32_t cols, uint32_t primes)
{
    uint32_t *v = residues_draw(rows, cols, primes, false);
    sherd__fragment *f = residues_new(0, rows, cols, primes, v);
    free(v);
    return f;
}

/* A in float64, B in f32: only B is converted. */
static void floats(stay *p)
{
    sherd__fragment *a = block_of(SHERD_F64, N, K), *b = block_of(SHERD_F32, K, M);
    sherd__task t = task_product(a, b, SHERD_F64);
    stay_begin(p, a, b, &t);
}

/* Residues by integers, as under share1. */
static void integers(stay *p)
{
    sherd__fragment *a = block_of_residues(N, K, 2), *b = block_of(SHERD_I32, K, M);
    sherd__task t = task_modular(N, M, 2);
    stay_begin(p, a, b, &t);
}

static void residues(stay *p)
{
    sherd__fragment *a = block_of_residues(N, K, 2), *b = block_of_residues(K, M, 2);
    sherd__task t = task_modular(N, M, 2);
    stay_begin(p, a, b, &t);
}

/* ---- what is made, and when ------------------------------------------------------------------ */

static void a_form_is_made_by_the_second_call_and_used_by_the_others(void **s)
{
    (void)s;
    static void (*const of[])(stay * p) = { floats, integers };
    static const uint64_t bytes[] = { 8 * K * M, 2 * 3 * K * M }, each[] = { K * M, 2 * K * M };
    for (size_t i = 0; i < 2; i++) {
        stay p;
        of[i](&p);
        for (unsigned k = 0; k < 6; k++) {
            call_right(&p);
            assert_int_equal(backend_lent.gets, k > 0);
            assert_int_equal(backend_lent.bytes, k > 0 ? bytes[i] : 0);
            assert_int_equal(p.c.call.derived[0], 0);
            assert_int_equal(p.c.call.derived[1], k == 1 ? bytes[i] : 0);
            assert_int_equal(converted, (k > 0 ? 2 : 1) * each[i]); /* with the second product */
        }
        stay_drop(&p);
        stay_end(&p);
    }
}

static void a_block_that_is_used_once_has_no_form(void **s)
{
    (void)s;
    stay p;
    integers(&p);
    for (unsigned k = 0; k < 4; k++) {
        call_right(&p);
        assert_int_equal(backend_lent.gets, 0);
        backend_now->drop(backend_ctx, &p.right); /* A stays */
        p.right = backend_hold(p.b, OWNER);
    }
    stay_drop(&p);
    stay_end(&p);
}

/* The left block has its form already, so tiles of bytes could multiply it, without reading the
 * right one in panels. */
static void a_form_is_filled_although_the_other_block_has_one(void **s)
{
    (void)s;
    sherd__fragment *a = block_of(SHERD_I32, N, K), *b = block_of(SHERD_I32, K, M);
    sherd__task t = task_modular(N, M, 2);
    stay p;
    assert_true(sherd__limbs_force(1));
    stay_begin(&p, a, b, &t);
    for (unsigned k = 0; k < 2; k++) {
        call_right(&p);
        backend_now->drop(backend_ctx, &p.right);
        p.right = backend_hold(p.b, OWNER);
    }
    assert_int_equal(backend_lent.gets, 1);
    for (unsigned k = 0; k < 3; k++) call_right(&p);
    assert_int_equal(backend_lent.gets, 2);
    stay_drop(&p);
    stay_end(&p);
    assert_true(sherd__limbs_force(0));
}

/* No row of the first product uses group 1 of B; all rows of the others do. */
static void groups_without_rows_are_in_the_form(void **s)
{
    (void)s;
    enum { HIGH = 5, WIDE = 7 };
    plan one = { .groups = 2, .rows = { HIGH, 0 }, .cols = { 6, 9 }, .dtype = SHERD_F64 };
    plan both = { .groups = 2, .rows = { 2, HIGH }, .cols = { 6, 9 }, .dtype = SHERD_F64 };
    plan right = { .groups = 2, .rows = { 6, 9 }, .cols = { WIDE, WIDE }, .dtype = SHERD_I16 };
    block a = block_new(&one), c = block_new(&both), b = block_new(&right);
    sherd__task t = task_product(a.f, b.f, SHERD_F64), u = task_product(c.f, b.f, SHERD_F64);
    double *want = block_product(&c, &b, 2 + HIGH, WIDE);
    stay p;
    stay_begin(&p, a.f, b.f, &t);
    for (unsigned k = 0; k < 2; k++) call_right(&p);
    sherd__handle left = backend_hold(c.f, OWNER);
    uint8_t *out = out_new(u.result.len);
    calling call;
    assert_int_equal(backend_begin(&call, &u, left, p.right, OWNER, out), SHERD_OK);
    backend_settle();
    assert_int_equal(backend_lent.gets, 1);
    assert_memory_equal(out, want, u.result.len);
    backend_now->drop(backend_ctx, &left);
    stay_drop(&p);
    stay_end(&p);
    free(out);
    free(want);
    block_free(&c);
    free(a.values);
    free(b.values);
}

/* Residues have a form only for tiles of bytes: then both operands have one. */
static void residues_are_sorted_once(void **s)
{
    (void)s;
    stay p;
    residues(&p);
    for (unsigned k = 0; k < 3; k++) call_right(&p);
    assert_int_equal(backend_lent.gets, sherd__limbs_here() ? 2 : 0);
    assert_true(sherd__limbs_force(1));
    for (unsigned k = 0; k < 3; k++) call_right(&p);
    assert_int_equal(backend_lent.gets, 2);
    const uint64_t bytes = backend_lent.bytes;
    p.task.op = SHERD__OP_MULTIPLY_T; /* another form of A, as its transpose; the same one of B */
    sherd__fragment *d = block_of_residues(N, M, 2);
    sherd__handle right = p.right;
    p.task.result.rows = K;
    p.task.result.len = 2 * 3 * K * M;
    p.right = backend_hold(d, OWNER);
    free(p.out);
    free(p.want);
    p.want = out_new(p.task.result.len);
    p.out = out_new(p.task.result.len);
    assert_int_equal(call(&p), SHERD_OK);
    memcpy(p.want, p.out, p.task.result.len);
    for (unsigned k = 0; k < 3; k++) call_right(&p);
    assert_int_equal(backend_lent.gets, 4);
    assert_true(backend_lent.bytes > bytes);
    backend_now->drop(backend_ctx, &p.right);
    p.right = right;
    stay_drop(&p);
    stay_end(&p);
    sherd__fragment_free(d);
    assert_true(sherd__limbs_force(0));
}

/* Other primes, another form; of which a block has no more than four. */
static void a_block_has_few_forms(void **s)
{
    (void)s;
    stay p;
    integers(&p);
    for (uint32_t i = 0; i < 9; i++) {
        p.task.primes[0] = 5 + 2 * i; /* more residues are out of range: calls may fail */
        (void)call(&p);
        assert_int_equal(backend_lent.gets, i < SHERD__FORMS_MAX ? i : SHERD__FORMS_MAX);
    }
    stay_drop(&p);
    stay_end(&p);
}

/* What a product converts in some microseconds, or where the conversion is next to nothing. */
static void small_blocks_and_those_beside_wide_ones_have_no_forms(void **s)
{
    (void)s;
    static const uint32_t sizes[][3] = { { N, 30, 30 }, { 600, K, M }, { N, K, M } };
    sherd__cpu_forms_always(false);
    for (size_t i = 0; i < 3; i++) {
        stay p;
        sherd__fragment *a = block_of(SHERD_F64, sizes[i][0], sizes[i][1]);
        sherd__fragment *b = block_of(SHERD_F32, sizes[i][1], sizes[i][2]);
        sherd__task t = task_product(a, b, SHERD_F64);
        stay_begin(&p, a, b, &t);
        for (unsigned k = 0; k < 3; k++) call_right(&p);
        assert_int_equal(backend_lent.gets, i == 2);
        stay_drop(&p);
        stay_end(&p);
    }
    sherd__cpu_forms_always(true);
}

/* Sums of floats are rounded: their order must not depend on what is kept. */
static void float_products_have_the_same_bits_with_forms(void **s)
{
    (void)s;
    enum { LONG = 2100 };
    plan pa = plan_dense(0, N, LONG, SHERD_F32), pb = plan_dense(0, LONG, M, SHERD_F32);
    double *x = malloc(LONG * M * sizeof *x);
    for (size_t i = 0; i < LONG * M; i++)
        x[i] = (double)sherd__entropy_below(&backend_rnd, 1u << 30) / 7;
    sherd__fragment *a = block_encode(&pa, x), *b = block_encode(&pb, x);
    sherd__task t = task_product(a, b, SHERD_F64);
    stay p;
    stay_begin(&p, a, b, &t);
    for (unsigned k = 0; k < 4; k++) call_right(&p);
    assert_int_equal(backend_lent.gets, 2);
    stay_drop(&p);
    stay_end(&p);
    free(x);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void without_memory_calls_compute_from_the_block(void **s)
{
    (void)s;
    stay p;
    floats(&p);
    backend_lent.none = true;
    for (unsigned k = 0; k < 3; k++) call_right(&p);
    assert_int_equal(converted, 3 * K * M);
    backend_lent.none = false; /* there is some now */
    call_right(&p);
    call_right(&p);
    assert_int_equal(converted, 4 * K * M);
    stay_drop(&p);
    stay_end(&p);
}

static void a_form_stays_until_the_last_call_that_uses_it(void **s)
{
    (void)s;
    stay p;
    calling more[2];
    sherd__executor *inline_one = backend_executor;
    integers(&p);
    for (unsigned k = 0; k < 2; k++) call_right(&p);
    for (unsigned k = 0; k < 2; k++)
        assert_int_equal(backend_begin(&more[k], &p.task, p.left, p.right, OWNER, p.out), SHERD_OK);
    stay_drop(&p);
    assert_int_equal(backend_lent.gives, 0);
    backend_settle();
    assert_memory_equal(p.out, p.want, p.task.result.len);
    assert_ptr_equal(backend_executor, inline_one);
    stay_end(&p);
}

/* None of which leaves the call without its result. */
static void every_failed_allocation_is_survived(void **s)
{
    (void)s;
    for (size_t nth = 1, seen = nth; seen >= nth; nth++) {
        stay p;
        floats(&p);
        call_right(&p);
        sherd__alloc_fail_nth(nth);
        int err = call(&p);
        seen = sherd__alloc_fail_nth(0);
        assert_int_equal(err, SHERD_OK);
        call_right(&p);
        stay_drop(&p);
        stay_end(&p);
    }
}

/* ---- calls that do not finish one ------------------------------------------------------------ */

static void a_call_that_is_cancelled_leaves_a_form_to_the_next(void **s)
{
    (void)s;
    enum { LONG = 1500, WIDE = 50 }; /* two panels */
    stay p;
    sherd__fragment *a = block_of(SHERD_F64, 2, LONG), *b = block_of(SHERD_F32, LONG, WIDE);
    sherd__task t = task_product(a, b, SHERD_F64);
    stay_begin(&p, a, b, &t);
    call_right(&p);
    to_cancel = &p.c.call;
    assert_int_equal(call(&p), SHERD_EINTERRUPTED);
    to_cancel = NULL;
    converted = 0;
    call_right(&p);
    call_right(&p);
    assert_int_equal(converted, LONG * WIDE);
    assert_int_equal(backend_lent.gets, 1);
    stay_drop(&p);
    stay_end(&p);
}

static void a_value_out_of_range_is_reported_as_without_forms(void **s)
{
    (void)s;
    for (int tiles = 0; tiles < 2; tiles++) {
        double values[K * M] = { [K * M - 1] = 0x1p60 };
        plan pb = plan_dense(0, K, M, SHERD_I64);
        sherd__fragment *a = block_of_residues(N, K, 2), *b = block_encode(&pb, values);
        sherd__task t = task_modular(N, M, 2);
        uint8_t *out = out_new(t.result.len);
        assert_true(sherd__limbs_force(tiles ? 1 : 0));
        backend_lent = (lending){ .none = false };
        assert_int_equal(backend_run(&t, a, b, out), SHERD_ERANGE); /* three times */
        assert_int_equal(backend_lent.gets, backend_lent.gives);
        free(out);
        sherd__fragment_free(a);
        sherd__fragment_free(b);
    }
    assert_true(sherd__limbs_force(0));
}

/* ---- several threads ------------------------------------------------------------------------- */

static sherd__form *shared;
static _Atomic unsigned begun;
static pthread_barrier_t start;

static void *begin_one(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&start);
    uint8_t *bytes = sherd__form_begin(shared);
    if (bytes) begun++;
    return bytes;
}

static int keep_form(void *ctx, const sherd__call *c, const sherd__fragment *left,
                     const sherd__fragment *right, sherd_diag *d)
{
    (void)ctx, (void)left, (void)right, (void)d;
    shared = sherd__hosted_form(c, 1);
    return SHERD_OK;
}

static void wish_for_right(const sherd__task *t, const sherd__fragment *left,
                           const sherd__fragment *right, sherd__form_wish wish[2])
{
    (void)t, (void)left, (void)right;
    wish[1] = (sherd__form_wish){ { .kind = 1 }, 100 };
}

static int submit_wishing(stay *p)
{
    p->c.dones = 0;
    p->c.call.derived[0] = p->c.call.derived[1] = 0;
    int err = sherd__hosted_submit_wishing(NULL, keep_form, wish_for_right, &p->c.call, NULL);
    backend_settle();
    return err;
}

static void one_of_several_threads_makes_a_form(void **s)
{
    (void)s;
    enum { THREADS = 4, ROUNDS = 50 };
    stay p;
    floats(&p);
    call_right(&p);
    assert_int_equal(submit_wishing(&p), SHERD_OK);
    assert_non_null(shared);
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread[THREADS];
        begun = 0;
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, begin_one, NULL), 0);
        for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
        assert_int_equal(begun, 1);
        assert_null(sherd__form_bytes(shared)); /* not finished */
        sherd__form_end(shared, SHERD_EINTERRUPTED);
    }
    assert_non_null(sherd__form_begin(shared));
    sherd__form_end(shared, SHERD_OK);
    assert_null(sherd__form_begin(shared));
    assert_non_null(sherd__form_bytes(shared));
    pthread_barrier_destroy(&start);
    stay_drop(&p);
    stay_end(&p);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

/* On a compute thread, with the next ones submitted while it makes the form. */
static void calls_in_progress_together_share_a_form(void **s)
{
    (void)s;
    enum { CALLS = 8 };
    sherd__executor *inline_one = backend_executor;
    for (int round = 0; round < 20; round++) {
        stay p;
        calling c[CALLS];
        uint8_t *out[CALLS];
        (round & 1 ? integers : floats)(&p);
        assert_int_equal(sherd__executor_new(&backend_executor, CALLS, nothing, NULL), SHERD_OK);
        for (int i = 0; i < CALLS; i++) {
            out[i] = out_new(p.task.result.len);
            assert_int_equal(backend_begin(&c[i], &p.task, p.left, p.right, OWNER, out[i]),
                             SHERD_OK);
        }
        stay_drop(&p);
        backend_settle();
        for (int i = 0; i < CALLS; i++) {
            assert_int_equal(c[i].call.err, SHERD_OK);
            assert_memory_equal(out[i], p.want, p.task.result.len);
            free(out[i]);
        }
        assert_int_equal(backend_lent.gets, 1);
        sherd__executor_free(backend_executor);
        backend_executor = inline_one;
        stay_end(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_form_is_made_by_the_second_call_and_used_by_the_others, 0),
        EACH(a_block_that_is_used_once_has_no_form, 0),
        EACH(a_form_is_filled_although_the_other_block_has_one, 0),
        EACH(groups_without_rows_are_in_the_form, 0),
        EACH(residues_are_sorted_once, 0),
        EACH(a_block_has_few_forms, 0),
        EACH(small_blocks_and_those_beside_wide_ones_have_no_forms, 0),
        EACH(float_products_have_the_same_bits_with_forms, 0),
        EACH(without_memory_calls_compute_from_the_block, 0),
        EACH(a_form_stays_until_the_last_call_that_uses_it, 0),
        EACH(every_failed_allocation_is_survived, 0),
        EACH(a_call_that_is_cancelled_leaves_a_form_to_the_next, 0),
        EACH(a_value_out_of_range_is_reported_as_without_forms, 0),
        EACH(one_of_several_threads_makes_a_form, 0),
        EACH(calls_in_progress_together_share_a_form, 0),
    };
    return cmocka_run_group_tests_name("node/forms", tests, backend_open_all, backend_close_all);
}
