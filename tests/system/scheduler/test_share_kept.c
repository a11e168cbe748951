/*
 * Operands kept as shares: they serve both orientations, their nodes may be lost between products
 * and within one, and released operands are freed at the nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/send_signal.h"
#include "tests/system/scheduler/local_nodes.h"
#include "tests/system/scheduler/share_world.h"

/* ---- kept operands --------------------------------------------------------------------------- */

#define N 801u /* not divisible into two blocks */
#define K 90u
#define M 20u

typedef struct kept_case {
    sherd_multiplier m;
    sherd_kept *x;
    double *xs, *w, *d;
} kept_case;

static void keep(kept_case *t, sherd_cluster *c, const sherd_product_options *o)
{
    sherd_diag d = { 0 };
    t->xs = share_matrix(N, K);
    t->w = share_matrix(K, M);
    t->d = share_matrix(N, M);
    if (sherd_multiplier_cluster(&t->m, c, o, &d)) fail_msg("%s", d.message);
    if (sherd_multiplier_keep(&t->x, t->m, share_view(t->xs, N, K), NULL, &d))
        fail_msg("%s", d.message);
}

static void kept_product(kept_case *t, bool transposed)
{
    sherd_view x = share_view(t->xs, N, K);
    sherd_view b = transposed ? share_view(t->d, N, M) : share_view(t->w, K, M);
    size_t len = (transposed ? K : N) * M;
    double *want = share_reference(transposed ? sherd_view_t(x) : x, b);
    double *got = malloc(len * sizeof *got);
    sherd_diag d = { 0 };
    assert_non_null(got);
    if (sherd_multiplier_multiply_kept(t->m, t->x, transposed, b, got, M, &d))
        fail_msg("%s", d.message);
    share_must_equal(got, want, len, transposed ? "X^T D" : "X W");
    free(got);
    free(want);
}

static void keep_end(kept_case *t)
{
    sherd_multiplier_release(t->m, t->x);
    sherd_multiplier_free(t->m);
    free(t->xs);
    free(t->w);
    free(t->d);
}

/* Two primes hold 801 products of 17 bits, or six of one byte: a share of W has 6 bytes an entry.
 * Bytes are sent in tiles of 64 terms and 16 columns. */
static uint64_t tiles_of(uint64_t terms, uint64_t cols)
{
    return NODES * 6 * ((terms + 63) / 64 * 64) * ((cols + 15) / 16 * 16);
}

static void kept_shares_serve_both_orientations(void **s)
{
    (void)s;
    kept_case t;
    sherd_product_options o = share_options(SHERD_SHARE, 0);
    keep(&t, share_cluster, &o);
    uint64_t sent = local_sent(share_cluster);
    kept_product(&t, false);
    uint64_t first = local_sent(share_cluster) - sent;
    assert_true(first > NODES * (N / 2) * K * 6); /* X's shares, of half its rows */
    for (unsigned round = 0; round < 3; round++) {
        uint64_t before = local_sent(share_cluster);
        for (unsigned i = 0; i < K * M; i++) t.w[i] += 1;
        kept_product(&t, false);
        uint64_t up = local_sent(share_cluster) - before, shares = NODES * K * M * 6;
        if (up < shares || up > tiles_of(K, M) + 65536)
            fail_msg("%llu bytes up, of which W's shares are %llu", (unsigned long long)up,
                     (unsigned long long)shares);
        before = local_sent(share_cluster);
        kept_product(&t, true);
        up = local_sent(share_cluster) - before, shares = NODES * ((N + 1) / 2) * M * 6;
        if (up < shares || up > tiles_of((N + 1) / 2, M) + 65536)
            fail_msg("%llu bytes up, of which D's shares are %llu", (unsigned long long)up,
                     (unsigned long long)shares);
    }
    keep_end(&t);
}

static void a_node_may_be_lost_between_products_with_a_kept_operand(void **s)
{
    (void)s;
    kept_case t;
    sherd_product_options o = share_options(SHERD_SHARE, 0);
    sherd_cluster *c = local_open(NODES, NULL, 0);
    keep(&t, c, &o);
    kept_product(&t, false);
    send_signal(local_pid(c, 2), SIGKILL);
    *local_warned = '\0';
    kept_product(&t, true);
    if (!strstr(local_warned, "all shares are made again for the 4 domains"))
        fail_msg("%s", local_warned);
    *local_warned = '\0';
    kept_product(&t, false); /* with the shares that were made again */
    assert_string_equal(local_warned, "");
    keep_end(&t);
    sherd_cluster_close(c);
}

/* The node ends at its second answer, and a product has more panels than that; once in either
 * orientation. */
static void a_node_may_be_lost_within_a_product_with_a_kept_operand(void **s)
{
    (void)s;
    for (unsigned i = 0; i < 4; i++) {
        kept_case t;
        bool transposed = i % 2;
        sherd_product_options o = share_options(SHERD_SHARE, 0);
        sherd_cluster *c = local_open(NODES, i < 2 ? "crash:1@node-4" : "refuse:1@node-4", 0);
        o.memory = UINT64_C(1) << 20;
        keep(&t, c, &o);
        *local_warned = '\0';
        kept_product(&t, transposed);
        if (!strstr(local_warned, "all shares are made again for the 4 domains"))
            fail_msg("%s", local_warned);
        kept_product(&t, !transposed);
        keep_end(&t);
        sherd_cluster_close(c);
    }
}

/* Its shares take half of a node's memory: a third operand would be refused. */
static void released_operands_are_freed_at_the_nodes(void **s)
{
    (void)s;
    enum { ROWS = 2000, COLS = 1400 };
    sherd_cluster *c = local_open(NODES, NULL, UINT64_C(20) << 20);
    sherd_product_options o = share_options(SHERD_SHARE, 0);
    sherd_multiplier m;
    sherd_diag d = { 0 };
    double *xs = share_matrix(ROWS, COLS), *w = share_matrix(COLS, 1), *got = malloc(8 * ROWS);
    double *want = share_reference(share_view(xs, ROWS, COLS), share_view(w, COLS, 1));
    assert_non_null(got);
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    for (unsigned round = 0; round < 4; round++) {
        sherd_kept *x;
        if (sherd_multiplier_keep(&x, m, share_view(xs, ROWS, COLS), NULL, &d))
            fail_msg("%s", d.message);
        if (sherd_multiplier_multiply_kept(m, x, false, share_view(w, COLS, 1), got, 1, &d))
            fail_msg("round %u: %s", round, d.message);
        share_must_equal(got, want, ROWS, "X w");
        sherd_multiplier_release(m, x);
    }
    sherd_multiplier_free(m);
    sherd_cluster_close(c);
    free(xs);
    free(w);
    free(got);
    free(want);
}

/* It reads nothing while the others finish: most of its share of W is not yet sent then. */
static void a_node_that_lags_behind_does_not_delay_the_next_product(void **s)
{
    (void)s;
    enum { ROWS = 300, INNER = 3000, COLS = 900 };
    sherd_product_options o = share_options(SHERD_SHARE, 1);
    sherd_cluster *c = local_open(4, NULL, 0);
    sherd_multiplier m;
    sherd_kept *x;
    sherd_diag d = { 0 };
    double *xs = share_matrix(ROWS, INNER), *w = share_matrix(INNER, COLS),
           *e = share_matrix(ROWS, 7), *got = malloc(8 * ROWS * COLS),
           *want = share_reference(share_view(xs, ROWS, INNER), share_view(w, INNER, COLS)),
           *back = share_reference(sherd_view_t(share_view(xs, ROWS, INNER)),
                                   share_view(e, ROWS, 7));
    assert_non_null(got);
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    if (sherd_multiplier_keep(&x, m, share_view(xs, ROWS, INNER), NULL, &d))
        fail_msg("%s", d.message);
    send_signal(local_pid(c, 3), SIGSTOP);
    if (sherd_multiplier_multiply_kept(m, x, false, share_view(w, INNER, COLS), got, COLS, &d))
        fail_msg("%s", d.message);
    share_must_equal(got, want, ROWS * COLS, "X W");
    send_signal(local_pid(c, 3), SIGCONT);
    for (unsigned round = 0; round < 3; round++) {
        if (sherd_multiplier_multiply_kept(m, x, true, share_view(e, ROWS, 7), got, 7, &d))
            fail_msg("%s", d.message);
        share_must_equal(got, back, INNER * 7, "X^T E");
    }
    sherd_multiplier_release(m, x);
    sherd_multiplier_free(m);
    sherd_cluster_close(c);
    free(xs);
    free(w);
    free(e);
    free(got);
    free(want);
    free(back);
}

/* By the inner-product code each node has one of N - 2T = 3 blocks of columns. */
static void the_inner_code_keeps_an_operand_for_one_orientation(void **s)
{
    (void)s;
    kept_case t;
    sherd_product_options o = share_options(SHERD_SHARE, 0);
    sherd_diag d = { 0 };
    sherd_report r = { .size = sizeof r };
    double got[K * M];
    o.code = SHERD_CODE_INNER;
    uint64_t sent = local_sent(share_cluster);
    keep(&t, share_cluster, &o);
    assert_int_equal(sherd_multiplier_report_set(t.m, &r, &d), 0);
    for (unsigned round = 0; round < 3; round++) {
        uint64_t before = local_sent(share_cluster);
        for (unsigned i = 0; i < K * M; i++) t.w[i] += 1;
        kept_product(&t, false);
        uint64_t up = local_sent(share_cluster) - before;
        assert_int_equal(r.code, SHERD_CODE_INNER);
        assert_int_equal(r.blocks, 3);
        if (round && up > tiles_of((K + 2) / 3, M) + 65536)
            fail_msg("%llu bytes up", (unsigned long long)up);
        before = local_sent(share_cluster);
        int err = sherd_multiplier_multiply_kept(t.m, t.x, true, share_view(t.d, N, M), got, M, &d);
        assert_int_equal(err, SHERD_EUNSUPPORTED);
        assert_string_equal(d.hint, "use --code lagrange, which multiplies it from both sides");
        assert_int_equal(local_sent(share_cluster), before);
    }
    assert_true(local_sent(share_cluster) - sent > (uint64_t)NODES * N * (K / 3));
    sherd_report_fini(&r);
    assert_int_equal(sherd_multiplier_report_set(t.m, NULL, &d), 0);
    keep_end(&t);
    o.spare = 1;
    assert_int_equal(sherd_multiplier_cluster(&t.m, share_cluster, &o, &d), 0);
    double x[4] = { 1, 2, 3, 4 };
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_multiplier_keep(&t.x, t.m, share_view(x, 2, 2), NULL, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "--code inner needs the answers of all nodes"));
    sherd_multiplier_free(t.m);
}

static bool stopping;
static bool stops(void *ctx)
{
    (void)ctx;
    return stopping;
}

/* A product is interrupted, which drops the shares: they are made for the nodes that are left. */
static void interrupted_once(kept_case *t, sherd_cluster *c)
{
    double got[N * M];
    stopping = true;
    for (uint32_t i = 3; i < NODES; i++) local_stop(c, i);
    assert_int_equal(sherd_multiplier_multiply_kept(t->m, t->x, false, share_view(t->w, K, M), got,
                                                    M, NULL),
                     SHERD_EINTERRUPTED);
    stopping = false;
    for (uint32_t i = 3; i < NODES; i++) send_signal(local_pid(c, i), SIGCONT);
    kept_product(t, false);
}

/* A node is killed between two products, or lies, or ends within one: the operand is coded again
 * for the four that are left, by a code that does not need them all. */
static void without_a_node_of_the_inner_code_an_operand_is_coded_again(void **s)
{
    (void)s;
    static const char *const faults[] = { NULL, "wrong@node-4", "crash:1@node-4" };
    for (unsigned i = 0; i < 3; i++) {
        kept_case t;
        sherd_diag d = { 0 };
        sherd_report r = { .size = sizeof r };
        sherd_product_options o = share_options(SHERD_SHARE, 0);
        sherd_cluster *c = local_open(NODES, faults[i], 0);
        double got[K * M];
        o.code = SHERD_CODE_INNER;
        o.hooks = (sherd_hooks){ .interrupted = stops, .log = local_note };
        if (i == 2) o.memory = UINT64_C(1) << 20;
        keep(&t, c, &o);
        assert_int_equal(sherd_multiplier_report_set(t.m, &r, &d), 0);
        if (i == 0) {
            kept_product(&t, false);
            assert_int_equal(r.encodings, 1);
            send_signal(local_pid(c, 2), SIGKILL);
        }
        *local_warned = '\0';
        kept_product(&t, false);
        if (!strstr(local_warned, "all shares are made again for the 4 domains"))
            fail_msg("%s", local_warned);
        assert_int_equal(r.encodings, 2);
        assert_int_equal(r.code, SHERD_CODE_LAGRANGE);
        assert_int_equal(r.nodes_banned, i == 1);
        *local_warned = '\0';
        kept_product(&t, false);
        assert_string_equal(local_warned, "");
        if (i == 0) interrupted_once(&t, c);
        int err = sherd_multiplier_multiply_kept(t.m, t.x, true, share_view(t.d, N, M), got, M, &d);
        assert_int_equal(err, SHERD_EUNSUPPORTED); /* as before the loss */
        sherd_report_fini(&r);
        assert_int_equal(sherd_multiplier_report_set(t.m, NULL, &d), 0);
        keep_end(&t);
        sherd_cluster_close(c);
    }
}

/* Coded again, an operand of the inner-product code is still kept for one orientation. */
static void without_a_node_of_the_inner_code_no_more_primes_are_needed(void **s)
{
    (void)s;
    enum { ROWS = 8000, TERMS = 40, COLS = 64 };
    sherd_multiplier m;
    sherd_kept *x;
    sherd_diag d = { 0 };
    sherd_report r = { .size = sizeof r };
    sherd_product_options o = share_options(SHERD_SHARE, 0);
    sherd_cluster *c = local_open(NODES, NULL, 0);
    double *xs = share_matrix(ROWS, TERMS), *w = share_matrix(TERMS, COLS);
    double *got = malloc(sizeof *got * ROWS * COLS);
    assert_non_null(got);
    o.code = SHERD_CODE_INNER;
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    if (sherd_multiplier_keep(&x, m, share_view(xs, ROWS, TERMS), NULL, &d))
        fail_msg("%s", d.message);
    assert_int_equal(sherd_multiplier_report_set(m, &r, &d), 0);
    uint32_t primes = 0;
    for (int i = 0; i < 2; i++) {
        if (i == 1) send_signal(local_pid(c, 2), SIGKILL);
        if (sherd_multiplier_multiply_kept(m, x, false, share_view(w, TERMS, COLS), got, COLS, &d))
            fail_msg("%s", d.message);
        if (i == 0) primes = r.primes;
    }
    assert_int_equal(r.code, SHERD_CODE_LAGRANGE);
    assert_int_equal(r.primes, primes);
    sherd_report_fini(&r);
    assert_int_equal(sherd_multiplier_report_set(m, NULL, &d), 0);
    sherd_multiplier_release(m, x);
    sherd_multiplier_free(m);
    sherd_cluster_close(c);
    free(xs);
    free(w);
    free(got);
}

/* Kept one way, an operand needs no primes for sums over its rows, and is not multiplied
 * transposed, whatever its code. */
static void an_operand_may_be_kept_for_one_orientation(void **s)
{
    (void)s;
    const sherd_keep_options how = { .size = sizeof how, .one_way = true };
    const sherd_code codes[] = { SHERD_CODE_AUTO, SHERD_CODE_LAGRANGE, SHERD_CODE_INNER };
    double *xs = share_matrix(N, K), *w = share_matrix(K, M), *got = malloc(8 * N * M);
    double *want = share_reference(share_view(xs, N, K), share_view(w, K, M));
    assert_non_null(got);
    for (unsigned i = 0; i < 3; i++) {
        sherd_multiplier m;
        sherd_kept *x;
        sherd_diag d = { 0 };
        sherd_product_options o = share_options(SHERD_SHARE, 0);
        o.code = codes[i];
        if (sherd_multiplier_cluster(&m, share_cluster, &o, &d)) fail_msg("%s", d.message);
        if (sherd_multiplier_keep(&x, m, share_view(xs, N, K), &how, &d)) fail_msg("%s", d.message);
        if (sherd_multiplier_multiply_kept(m, x, false, share_view(w, K, M), got, M, &d))
            fail_msg("%s", d.message);
        share_must_equal(got, want, (size_t)N * M, "X W");
        assert_int_equal(sherd_multiplier_multiply_kept(m, x, true, share_view(got, N, M), got, M,
                                                        &d),
                         SHERD_EUNSUPPORTED);
        sherd_multiplier_release(m, x);
        sherd_multiplier_free(m);
    }
    free(xs);
    free(w);
    free(got);
    free(want);
}

static void share1_keeps_an_operand_for_one_orientation(void **s)
{
    (void)s;
    kept_case t;
    sherd_product_options o = share_options(SHERD_SHARE1, 1);
    sherd_diag d = { 0 };
    double got[K * M];
    keep(&t, share_cluster, &o);
    kept_product(&t, false);
    int err = sherd_multiplier_multiply_kept(t.m, t.x, true, share_view(t.d, N, M), got, M, &d);
    assert_int_equal(err, SHERD_EUNSUPPORTED);
    assert_string_equal(d.hint, "use --scheme share");
    kept_product(&t, false);
    keep_end(&t);
}

/* Where nodes keep shares of X, and where they keep X as a right operand. */
static void every_product_of_a_multiplier_writes_its_report(void **s)
{
    (void)s;
    const sherd_scheme schemes[] = { SHERD_SHARE, SHERD_PLAIN };
    for (unsigned i = 0; i < 2; i++) {
        kept_case t;
        sherd_diag d = { 0 };
        sherd_report r = { .size = sizeof r };
        sherd_product_options o = share_options(schemes[i], 0);
        o.exact = true;
        keep(&t, share_cluster, &o);
        assert_int_equal(sherd_multiplier_report_set(t.m, &r, &d), 0);
        kept_product(&t, false);
        assert_int_equal(r.nodes, NODES);
        assert_true(r.tasks > 0 && r.seconds > 0 && r.check_error < 1e-9);
        uint64_t first = r.work_out, tasks = r.tasks;
        kept_product(&t, false); /* X is at the nodes */
        assert_true(r.work_out > 0 && r.work_out < first);
        assert_int_equal(r.tasks, tasks);
        assert_int_equal(sherd_multiplier_report_set(t.m, NULL, &d), 0);
        uint64_t last = r.work_out;
        kept_product(&t, true);
        assert_int_equal(r.work_out, last);
        sherd_report_fini(&r);
        keep_end(&t);
    }
}

static void only_a_multiplier_over_a_cluster_has_reports(void **s)
{
    (void)s;
    sherd_multiplier here, there;
    sherd_diag d = { 0 };
    sherd_report r = { .size = sizeof r }, unset = { 0 };
    sherd_product_options o = share_options(SHERD_SHARE, 0);
    assert_int_equal(sherd_multiplier_local(&here, 0, &d), 0);
    assert_int_equal(sherd_multiplier_report_set(here, &r, &d), SHERD_EINVAL);
    sherd_multiplier_free(here);
    assert_int_equal(sherd_multiplier_cluster(&there, share_cluster, &o, &d), 0);
    assert_int_equal(sherd_multiplier_report_set(there, &unset, NULL), SHERD_EINVAL);
    sherd_multiplier_free(there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_shares_serve_both_orientations),
        cmocka_unit_test(the_inner_code_keeps_an_operand_for_one_orientation),
        cmocka_unit_test(without_a_node_of_the_inner_code_an_operand_is_coded_again),
        cmocka_unit_test(without_a_node_of_the_inner_code_no_more_primes_are_needed),
        cmocka_unit_test(an_operand_may_be_kept_for_one_orientation),
        cmocka_unit_test(share1_keeps_an_operand_for_one_orientation),
        cmocka_unit_test(a_node_may_be_lost_between_products_with_a_kept_operand),
        cmocka_unit_test(a_node_may_be_lost_within_a_product_with_a_kept_operand),
        cmocka_unit_test(a_node_that_lags_behind_does_not_delay_the_next_product),
        cmocka_unit_test(every_product_of_a_multiplier_writes_its_report),
        cmocka_unit_test(only_a_multiplier_over_a_cluster_has_reports),
        cmocka_unit_test(released_operands_are_freed_at_the_nodes),
    };
    return cmocka_run_group_tests_name("scheduler/share_kept", tests, share_begin, share_end);
}
