/*
 * A scheme that is registered by one line (schemes.c) and claims nothing: the library reports that
 * it is not private, and its products, forecasts and kept operands are correct.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/plan/schemes.h"
#include "sherd/cluster.h"
#include "sherd/forecast.h"
#include "sherd/multiplier.h"
#include "sherd/product.h"
#include "tests/contract/unhidden/unhidden.h"

#define ROWS 24
#define INNER 18
#define COLS 15

static sherd_cluster *cluster;
static double a_data[ROWS * INNER], b_data[INNER * COLS], t_data[ROWS * COLS], want[ROWS * COLS],
    want_t[INNER * COLS];
static sherd_view a, b, t;

static int begin(void **state)
{
    static char program[4096];
    const char *build = getenv("BUILD");
    sherd_diag d = { 0 };
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ROWS * INNER; i++) a_data[i] = (double)(i * 7 % 31) - 15;
    for (size_t i = 0; i < INNER * COLS; i++) b_data[i] = (double)(i * 5 % 23) - 11;
    for (size_t i = 0; i < ROWS * COLS; i++) t_data[i] = (double)(i * 3 % 17) - 8;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < COLS; j++)
            for (size_t k = 0; k < INNER; k++) {
                want[i * COLS + j] += a_data[i * INNER + k] * b_data[k * COLS + j];
                want_t[k * COLS + j] += a_data[i * INNER + k] * t_data[i * COLS + j];
            }
    a = sherd_view_c(a_data, SHERD_F64, ROWS, INNER);
    b = sherd_view_c(b_data, SHERD_F64, INNER, COLS);
    t = sherd_view_c(t_data, SHERD_F64, ROWS, COLS);
    snprintf(program, sizeof program, "%s/tests/contract/unhidden/prog_sherd",
             build ? build : "build/plain");
    sherd_cluster_options o = { .size = sizeof o, .local_nodes = 3, .program = program };
    if (sherd_cluster_open(&cluster, &o, &d)) fail_msg("%s", d.message);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sherd_cluster_close(cluster);
    return 0;
}

static sherd_product_options options(bool exact)
{
    sherd_product_options o = { .size = sizeof o };
    o.scheme = UNHIDDEN;
    o.exact = exact;
    return o;
}

static void a_scheme_without_claims_is_not_private(void **state)
{
    (void)state;
    const sherd_scheme_info *s = sherd_scheme_get(UNHIDDEN);
    assert_string_equal(s->name, "unhidden");
    assert_false(sherd_scheme_private(UNHIDDEN));
    assert_false(sherd_scheme_private((sherd_scheme)78)); /* not in the table */
    assert_string_equal(sherd_scheme_get((sherd_scheme)78)->name, "unknown");
    for (size_t i = 0; (s = sherd_scheme_at(i)); i++) {
        const sherd__scheme *e = sherd__scheme_find(s->scheme);
        assert_ptr_equal(e->info, s); /* no number occurs twice */
        assert_true(strlen(s->name) < 16);
        assert_int_equal(s->keeps == SHERD_KEEPS_RIGHT, e->planner->next != NULL);
        assert_int_equal(s->keeps == SHERD_KEEPS_LEFT, e->planner->keep != NULL);
        assert_int_equal(s->keeps == SHERD_KEEPS_LEFT, e->planner->right != NULL);
        if (s->hides_b) assert_true(s->hides_a);
        assert_int_equal(s->hides_a, s->withstands != SHERD_WITHSTANDS_NONE);
        if (!sherd_scheme_private(s->scheme)) continue;
        assert_true(s->exact_only && s->hides_zeros); /* floats and zeros cannot be hidden */
        assert_false(s->takes & (SHERD_TAKES_ENCODING | SHERD_TAKES_SHUFFLES));
        assert_non_null(s->about);
    }
}

static void only_schemes_that_hide_an_operand_are_private(void **state)
{
    (void)state;
    static const sherd_scheme private[] = { SHERD_SHARE, SHERD_SHARE1, SHERD_BLIND };
    static const sherd_scheme clear[] = { SHERD_PERMUTE, SHERD_PLAIN, (sherd_scheme)0 };
    for (unsigned i = 0; i < 3; i++) {
        assert_true(sherd_scheme_private(private[i]));
        assert_false(sherd_scheme_private(clear[i]));
    }
}

static void its_products_are_correct_and_match_the_forecast(void **state)
{
    (void)state;
    for (unsigned exact = 0; exact < 2; exact++) {
        double c[ROWS * COLS];
        sherd_diag d = { 0 };
        sherd_report r = { .size = sizeof r };
        sherd_forecast f = { .size = sizeof f };
        sherd_product_options o = options(exact);
        const sherd_forecast_options with = { .size = sizeof with,
                                              .cluster = cluster,
                                              .no_time = true };
        if (sherd_forecast_multiply(a, b, &o, &with, &f, &d)) fail_msg("%s", d.message);
        if (sherd_multiply(cluster, a, b, c, COLS, &o, &r, &d)) fail_msg("%s", d.message);
        assert_memory_equal(c, want, sizeof c);
        assert_int_equal(f.bytes_out, r.work_out);
        assert_int_equal(f.bytes_in, r.work_in);
        assert_true(r.exposed_a[0] > 0 && r.exposed_b[0] == 1); /* all of B is shown */
        assert_int_equal(r.threshold, 0);
        assert_true(r.masks_left == 0 && r.fragments == 0 && r.blocks == 0);
        assert_int_equal(r.encoding, SHERD_ENCODING_AUTO); /* it reads no encoding */
        sherd_report_fini(&r);
    }
}

/* Hides a cell, and returns the verdict on its answer with `error` added to one entry. */
static int check_with(sherd__prepared *p, double error)
{
    const sherd__cell cell = { .slot = 1 };
    sherd__cell_work work;
    sherd__cell_sizes sizes;
    double y[ROWS * COLS] = { 0 };
    assert_int_equal(p->hiding.ops->sizes(p->hiding.ctx, cell, &sizes), 0);
    assert_int_equal(p->hiding.ops->hide(p->hiding.ctx, cell, &work), 0);
    const double *x = (const double *)(const void *)sherd__fragment_bytes(work.left);
    const size_t rows = work.result.rows;
    assert_true(work.result.len == sizes.result.len && work.result.cols == COLS);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < COLS; j++)
            for (size_t k = 0; k < INNER; k++)
                y[i * COLS + j] += x[i * INNER + k] * b_data[k * COLS + j];
    y[3] += error;
    sherd__fragment_free(work.left);
    return p->hiding.ops->check(p->hiding.ctx, cell, (const uint8_t *)y);
}

static void its_wrong_answers_are_found(void **state)
{
    (void)state;
    static const uint32_t domain[] = { 0, 1, 2 };
    const sherd__nodes nodes = {
        .count = 3, .domain = domain, .domains = 3, .usable = 3, .memory = UINT64_C(1) << 24
    };
    double c[ROWS * COLS];
    sherd_product_options o;
    sherd__prepared p;
    sherd_diag d = { 0 };
    sherd__product_options_init(&o);
    o.scheme = UNHIDDEN;
    if (sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c, COLS }, &nodes, &o, &d))
        fail_msg("%s", d.message);
    assert_int_equal(check_with(&p, 0), 0);
    assert_int_equal(check_with(&p, 1), SHERD_EWRONG);
    assert_int_equal(check_with(&p, NAN), SHERD_EWRONG);
    sherd__prepared_fini(&p);
}

static void values_that_it_cannot_multiply_are_refused(void **state)
{
    (void)state;
    double c[1], row[16] = { 0 }, column[16] = { 0 };
    const sherd_view v = sherd_view_c(row, SHERD_F64, 1, 16),
                     w = sherd_view_c(column, SHERD_F64, 16, 1);
    for (unsigned i = 0; i < 16; i++) row[i] = column[i] = 1;
    for (unsigned exact = 0; exact < 2; exact++) {
        sherd_product_options o = options(exact);
        o.bits = 26; /* sums of 16 products take more than 53 bits */
        assert_int_equal(sherd_product_range(v, w, &o, NULL), exact ? SHERD_ERANGE : SHERD_OK);
        column[3] = NAN;
        assert_int_equal(sherd_product_range(v, w, &o, NULL), SHERD_ERANGE);
        assert_int_equal(sherd_multiply(cluster, v, w, c, 1, &o, NULL, NULL), SHERD_ERANGE);
        column[3] = 1;
    }
}

static void its_kept_operands_are_in_clear(void **state)
{
    (void)state;
    double c[ROWS * COLS], ct[INNER * COLS], back[ROWS * COLS];
    sherd_diag d = { 0 };
    sherd_resident *resident;
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_product_options o = options(true);
    if (sherd_resident_new(&resident, cluster, b, ROWS, &o, &d)) fail_msg("%s", d.message);
    if (sherd_resident_multiply(resident, a, c, COLS, NULL, &d)) fail_msg("%s", d.message);
    assert_memory_equal(c, want, sizeof c);
    sherd_resident_free(resident);
    if (sherd_multiplier_cluster(&m, cluster, &o, &d)) fail_msg("%s", d.message);
    if (sherd_multiplier_keep(&kept, m, a, NULL, &d)) fail_msg("%s", d.message);
    memset(c, 0, sizeof c);
    if (sherd_multiplier_multiply_kept(m, kept, false, b, c, COLS, &d)) fail_msg("%s", d.message);
    if (sherd_multiplier_multiply_kept(m, kept, true, t, ct, COLS, &d)) fail_msg("%s", d.message);
    assert_memory_equal(c, want, sizeof c);
    assert_memory_equal(ct, want_t, sizeof ct);
    if (sherd_multiplier_map(m, SHERD_OP_SQUARE, t, t, back, COLS, &d)) fail_msg("%s", d.message);
    for (size_t i = 0; i < ROWS * COLS; i++)
        assert_true(back[i] == t_data[i] * t_data[i]); /* over the nodes, as under plain */
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
}

static void its_operands_are_not_kept_as_shares(void **state)
{
    (void)state;
    sherd__prepared p;
    static const uint32_t domain[] = { 0, 1, 2 };
    const sherd__nodes nodes = {
        .count = 3, .domain = domain, .domains = 3, .usable = 3, .memory = UINT64_C(1) << 24
    };
    sherd_product_options o = options(true);
    sherd_diag d = { 0 };
    assert_int_equal(sherd__prepare_kept(&p, a, &(sherd_keep_options){ .part = ROWS }, &nodes, &o,
                                         &d),
                     SHERD_EUNSUPPORTED);
    assert_non_null(strstr(d.message, "unhidden"));
    sherd__prepared_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scheme_without_claims_is_not_private),
        cmocka_unit_test(only_schemes_that_hide_an_operand_are_private),
        cmocka_unit_test(its_products_are_correct_and_match_the_forecast),
        cmocka_unit_test(its_wrong_answers_are_found),
        cmocka_unit_test(values_that_it_cannot_multiply_are_refused),
        cmocka_unit_test(its_kept_operands_are_in_clear),
        cmocka_unit_test(its_operands_are_not_kept_as_shares),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
