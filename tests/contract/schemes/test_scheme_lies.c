/*
 * Wrong answers: for every scheme, an answer with one wrong entry is not accepted, and the right
 * answer still is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schemes/partition/partition.h"
#include "tests/contract/schemes/scheme_world.h"
#include "wire/session.h"

/* Every kind of wrong answer must be refused; then the right answer is restored. */
static unsigned spoiled;

static void must_refuse(const sherd__hiding *h, sherd__cell c, const uint8_t *body,
                        const char *what)
{
    spoiled++;
    if (h->ops->check(h->ctx, c, body) != SHERD_EWRONG) fail_msg("%s was accepted", what);
}

/* Adds x to the first entry of a residue answer, modulo every prime; x = 0 restores it. */
static void add_everywhere(uint8_t *body, uint64_t len, const sherd__scheme_shape *s, uint64_t x)
{
    static uint32_t before[4];
    for (uint32_t i = 0; i < s->primes_len; i++) {
        uint8_t *at = body + i * (len / s->primes_len);
        uint32_t v = (uint32_t)(at[0] | at[1] << 8 | at[2] << 16);
        if (x) before[i] = v;
        v = x ? (uint32_t)((v + x % s->primes[i]) % s->primes[i]) : before[i];
        at[0] = (uint8_t)v, at[1] = (uint8_t)(v >> 8), at[2] = (uint8_t)(v >> 16);
    }
}

static void spoil_exact(const sherd__hiding *h, sherd__cell c, uint8_t *body, uint64_t len)
{
    double *y = (double *)(void *)body;
    size_t n = len / 8, i = scheme_below(n), j = scheme_below(n);
    sherd__scheme_shape s;
    h->ops->shape(h->ctx, &s);
    if (s.primes_len) {
        uint8_t *b = body + scheme_below(len / 3) * 3, was = *b;
        *b ^= 1;
        must_refuse(h, c, body, "a residue that is one off");
        *b = was;
        add_everywhere(body, len, &s, UINT64_C(0x1fffffffffffffff));
        must_refuse(h, c, body, "an entry that is off by 2^61-1");
        add_everywhere(body, len, &s, 0);
        return;
    }
    double was = y[i];
    const double wrong[] = { was + 1, was - 1, was + 0.5, -was - 1, NAN, INFINITY, was + 0x1p53 };
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        y[i] = wrong[w];
        must_refuse(h, c, body, "an entry that is off");
    }
    y[i] = was;
    if (y[i] != y[j]) {
        double t = y[j];
        y[j] = y[i];
        y[i] = t;
        must_refuse(h, c, body, "two entries exchanged");
        y[i] = was;
        y[j] = t;
    }
}

static void one_wrong_entry_of_an_exact_answer_is_detected(void **state)
{
    (void)state;
    spoiled = 0;
    for (int i = 0; i < 150; i++) {
        scheme_fixture f = scheme_random();
        f.exact = true;
        scheme_multiply(&f, spoil_exact);
    }
    assert_true(spoiled > 10000);
}

static void spoil_float(const sherd__hiding *h, sherd__cell c, uint8_t *body, uint64_t len)
{
    double *y = (double *)(void *)body;
    size_t i = scheme_below(len / 8);
    double was = y[i];
    const double wrong[] = { was + 1, was * 1.001 + 1e-3, -was - 1e-3, NAN, INFINITY };
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        y[i] = wrong[w];
        must_refuse(h, c, body, "an entry that is grossly off");
    }
    y[i] = was;
}

static void a_gross_error_in_a_float_answer_is_detected(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        scheme_fixture f = scheme_random();
        f.exact = false;
        scheme_multiply(&f, spoil_float);
    }
}

/* If the correct entry is finite, an error is detected, even if its neighbours are NaN; if it is
 * not, a finite entry is detected. */
static void spoil_odd(const sherd__hiding *h, sherd__cell c, uint8_t *body, uint64_t len)
{
    double *y = (double *)(void *)body;
    size_t i = scheme_below(len / 8);
    double was = y[i];
    y[i] = isfinite(was) ? was + 1 : 7;
    must_refuse(h, c, body, isfinite(was) ? "a wrong entry beside NaN" : "a number for NaN");
    y[i] = isfinite(was) ? NAN : isnan(was) ? INFINITY : -was;
    must_refuse(h, c, body, "another kind of entry");
    y[i] = was;
}

static void nan_does_not_conceal_errors(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        scheme_fixture f = scheme_odd();
        scheme_multiply(&f, spoil_odd);
    }
}

static void spoil_all(const sherd__hiding *h, sherd__cell c, uint8_t *body, uint64_t len)
{
    uint8_t *copy = malloc(len);
    memcpy(copy, body, len);
    for (size_t i = 0; i < len / 8; i++) body[8 * i + 3] ^= 1;
    double *y = (double *)(void *)body;
    bool all_nan = true;
    for (size_t i = 0; i < len / 8; i++) all_nan = all_nan && isnan(y[i]);
    if (!all_nan) must_refuse(h, c, body, "an answer that is wrong everywhere");
    memcpy(body, copy, len);
    free(copy);
}

static void a_wrong_element_wise_answer_is_detected(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        scheme_apply(SHERD__OP_TANH, 1 + scheme_below(9), 1 + scheme_below(9), 3, true, spoil_all);
}

static bool nothing_drawn;

static void fill_or_nothing(void *ctx, void *out, size_t len)
{
    (void)ctx;
    if (nothing_drawn) memset(out, 0, len);
    else scheme_rng.fill(scheme_rng.ctx, out, len);
}

/* Hides the cell of the only slot, and returns the right answer. */
static double *answer_of(const sherd__hiding *h, sherd__cell c, const sherd__partition_params *p,
                         size_t rows, size_t cols)
{
    const double *a = p->a.data, *b = p->b.data;
    double unit = p->exact ? ldexp(1, p->fixed_a.scale + p->fixed_b.scale) : 1;
    sherd__cell_work w;
    double *y = calloc(rows * cols, sizeof *y);
    assert_int_equal(h->ops->hide(h->ctx, c, &w), SHERD_OK);
    assert_int_equal(w.result.rows, rows);
    assert_int_equal(w.result.cols, cols);
    sherd__fragment_free(w.left);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            for (size_t k = 0; k < p->a.cols; k++)
                y[i * cols + j] += a[(c.panel * rows + i) * p->a.cols + k] *
                                   b[k * p->b.cols + c.tile * cols + j] * unit;
    return y;
}

/* With equal weights, an error passes that moves a value from one row to another. r is that of the
 * cell, s that of its tile. */
static void cells_hidden_before_a_wrong_answer_are_checked_with_new_vectors(void **state)
{
    (void)state;
    enum { N = 4, K = 3, M = 4, ROWS = 2, COLS = 2 };
    for (int round = 0; round < 4; round++) {
        double a_data[N * K], b_data[K * M], c[N * M] = { 0 };
        for (int i = 0; i < N * K; i++) a_data[i] = i + 1;
        for (int i = 0; i < K * M; i++) b_data[i] = 100 - 7 * i;
        sherd__partition_params p = { .a = sherd_view_c(a_data, SHERD_F64, N, K),
                                      .b = sherd_view_c(b_data, SHERD_F64, K, M),
                                      .c = c,
                                      .ldc = M,
                                      .slots = 1,
                                      .group = SHERD__GROUP_ALL,
                                      .panel_rows = ROWS,
                                      .tile_cols = COLS,
                                      .finite = true,
                                      .exact = round & 2,
                                      .entropy = { fill_or_nothing, NULL } };
        sherd__cell liar = { 0, 0, 0 }, other = { 0, round & 1, 1 };
        sherd__hiding h;
        assert_int_equal(sherd__fixed_choose(p.a, 17, "A", &p.fixed_a, NULL), 0);
        assert_int_equal(sherd__fixed_choose(p.b, 17, "B", &p.fixed_b, NULL), 0);
        assert_int_equal(sherd__partition_open(&h, &p), 0);
        double *wrong = answer_of(&h, liar, &p, ROWS, COLS);
        nothing_drawn = true;
        double *y = answer_of(&h, other, &p, ROWS, COLS);
        nothing_drawn = false;
        uint64_t skipped, before, after;
        sherd__partition_counts(&h, &skipped, &before);
        wrong[0] += 1;
        assert_int_equal(h.ops->check(h.ctx, liar, (uint8_t *)wrong), SHERD_EWRONG);
        y[0] += 1, y[COLS] -= 1;
        assert_int_equal(h.ops->check(h.ctx, other, (uint8_t *)y), SHERD_EWRONG);
        y[0] -= 1, y[COLS] += 1;
        assert_int_equal(h.ops->check(h.ctx, other, (uint8_t *)y), SHERD_OK);
        sherd__partition_counts(&h, &skipped, &after);
        assert_int_equal(before, after); /* projected again, but not sent */
        h.ops->free(h.ctx);
        free(wrong);
        free(y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_wrong_entry_of_an_exact_answer_is_detected),
        cmocka_unit_test(a_gross_error_in_a_float_answer_is_detected),
        cmocka_unit_test(nan_does_not_conceal_errors),
        cmocka_unit_test(a_wrong_element_wise_answer_is_detected),
        cmocka_unit_test(cells_hidden_before_a_wrong_answer_are_checked_with_new_vectors),
    };
    return cmocka_run_group_tests_name("crypto/scheme_lies", tests, scheme_begin, scheme_end);
}
