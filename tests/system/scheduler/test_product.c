/*
 * Products and element-wise operations through the public interface, over real node processes:
 * every combination of options at random sizes compared with a reference on this machine, and calls
 * that end early.
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
#include <unistd.h>

#include "core/alloc.h"
#include "matrix/funcs.h"
#include "matrix/view.h"
#include "sherd/meta.h"
#include "sherd/multiplier.h"
#include "tests/system/scheduler/local_nodes.h"
#include "tests/system/scheduler/product_world.h"

static void every_combination_of_options_equals_the_reference(void **state)
{
    (void)state;
    static const uint32_t groups[] = { 0, 1, 2, 3, 7 };
    for (unsigned round = 0; round < 240; round++) {
        sherd_product_options o = { .size = sizeof o };
        sherd_report r = { .size = sizeof r };
        o.scheme = cluster_below(4) ? SHERD_PERMUTE : SHERD_PLAIN;
        o.exact = round & 1;
        o.bits = 2 + (uint32_t)cluster_below(25);
        o.group = groups[cluster_below(5)];
        o.balanced = cluster_below(2);
        o.shuffle_rows = cluster_below(3) == 0;
        o.encoding = (sherd_encoding)cluster_below(3);
        o.memory = cluster_below(2) ? 0 : UINT64_C(1) << (17 + cluster_below(4));
        o.exposure_max = cluster_below(4) ? 0 : 1;
        operand a = operand_any(cluster_below(40), cluster_below(30));
        operand b = operand_any(a.v.cols, cluster_below(30));
        operand_multiply(cluster, &o, a.v, b.v, &r);
        double sum = 0;
        uint64_t planned = 0;
        for (uint32_t i = 0; i < NODES; i++) {
            sum += r.exposed_a[i];
            planned += r.planned[i];
        }
        assert_int_equal(planned, o.scheme == SHERD_PLAIN ? a.v.rows : a.v.cols);
        if (a.v.rows && a.v.cols && b.v.cols && o.scheme == SHERD_PERMUTE)
            assert_true(fabs(sum - 1) < 1e-9); /* every entry of A was sent to one node */
        assert_int_equal(r.tasks_repeated, 0);
        sherd_report_fini(&r);
        free(a.memory);
        free(b.memory);
    }
}

static void nan_and_infinity_equal_those_of_one_machine(void **state)
{
    (void)state;
    static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 0 };
    for (unsigned round = 0; round < 60; round++) {
        sherd_product_options o = { .size = sizeof o };
        o.group = round % 4;
        o.scheme = round % 5 ? SHERD_PERMUTE : SHERD_PLAIN;
        operand a = operand_new(1 + cluster_below(20), 1 + cluster_below(20), SHERD_F64);
        operand b = operand_new(a.v.cols, 1 + cluster_below(20), SHERD_F64);
        operand *one = cluster_below(2) ? &a : &b;
        for (unsigned i = 0; i < 4; i++) {
            ptrdiff_t at = (ptrdiff_t)cluster_below(one->v.rows) * one->v.row_stride +
                           (ptrdiff_t)cluster_below(one->v.cols) * one->v.col_stride;
            operand_put(one->memory + 8 * at, SHERD_F64, odd[cluster_below(5)]);
        }
        operand_multiply(cluster, &o, a.v, b.v, NULL);
        o.exact = true;
        double c[400];
        sherd__scan sa, sb;
        sherd__view_scan(a.v, &sa);
        sherd__view_scan(b.v, &sb);
        int err = sherd_multiply(cluster, a.v, b.v, c, b.v.cols, &o, NULL, NULL);
        assert_int_equal(err, sa.nonfinite + sb.nonfinite ? SHERD_ERANGE : SHERD_OK);
        free(a.memory);
        free(b.memory);
    }
}

static void a_single_node_computes_everything(void **state)
{
    (void)state;
    sherd_cluster *one = cluster_of(1, NULL);
    for (unsigned round = 0; round < 10; round++) {
        sherd_product_options o = { .size = sizeof o };
        o.exact = round & 1;
        o.group = round % 3;
        operand a = operand_any(1 + cluster_below(9), cluster_below(9));
        operand b = operand_any(a.v.cols, 1);
        operand_multiply(one, &o, a.v, b.v, NULL);
        free(a.memory);
        free(b.memory);
    }
    sherd_cluster_close(one);
}

static void the_exposure_bound_is_respected_or_the_call_fails(void **state)
{
    (void)state;
    sherd_product_options o = { .size = sizeof o };
    sherd_report r = { .size = sizeof r };
    o.balanced = true;
    operand a = operand_new(40, 40, SHERD_F64), b = operand_new(40, 10, SHERD_F64);
    double c[400];
    o.exposure_max = 0.2; /* four nodes: a quarter for each */
    sherd_diag d = { 0 };
    assert_int_equal(sherd_multiply(cluster, a.v, b.v, c, 10, &o, &r, &d), SHERD_EEXPOSURE);
    assert_string_equal(d.message,
                        "the plan gives node-1's domain 0.25 of A; --exposure-max is 0.2");
    assert_int_equal(r.nodes, 0); /* nothing was started */
    o.exposure_max = 0.25;
    operand_multiply(cluster, &o, a.v, b.v, &r);
    for (uint32_t i = 0; i < NODES; i++) assert_true(r.exposed_a[i] == 0.25);
    sherd_report_fini(&r);
    o.exposure_max = 1.5;
    assert_int_equal(sherd_multiply(cluster, a.v, b.v, c, 10, &o, NULL, NULL), SHERD_EINVAL);
    free(a.memory);
    free(b.memory);
}

typedef struct watch {
    uint64_t done, total, in;
    double seconds;
    unsigned calls;
    bool backwards;
} watch;

static void see(void *ctx, const sherd_progress *p)
{
    watch *w = ctx;
    w->backwards = w->backwards || p->done < w->done || p->done > p->total || p->bytes_in < w->in ||
                   p->seconds < w->seconds || (w->total && p->total != w->total);
    w->done = p->done;
    w->in = p->bytes_in;
    w->seconds = p->seconds;
    w->total = p->total;
    w->calls++;
}

/* A product that takes some seconds: a number is returned for every entry of A and column of B. */
static int long_product(sherd_product_options *o, sherd_report *r, sherd_diag *d)
{
    size_t n = 2000, k = 200, m = 300;
    double *a = malloc(n * k * 8), *b = malloc(k * m * 8), *c = malloc(n * m * 8);
    for (size_t i = 0; i < n * k; i++) a[i] = (double)(i % 7) + 1;
    for (size_t i = 0; i < k * m; i++) b[i] = (double)(i % 5);
    o->group = 1;
    int err = sherd_multiply(cluster, sherd_view_c(a, SHERD_F64, n, k),
                             sherd_view_c(b, SHERD_F64, k, m), c, m, o, r, d);
    memset(a, 0xff, n * k * 8); /* no code may read them any more */
    memset(b, 0xff, k * m * 8);
    free(a);
    free(b);
    free(c);
    return err;
}

static void still_works(void)
{
    sherd_product_options o = { .size = sizeof o };
    o.exact = true;
    operand a = operand_any(20, 20), b = operand_any(20, 20);
    operand_multiply(cluster, &o, a.v, b.v, NULL);
    free(a.memory);
    free(b.memory);
}

static void progress_never_decreases(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) { /* the second must not start at the end of the first */
        sherd_product_options o = { .size = sizeof o };
        watch w = { 0 };
        o.hooks.progress = see;
        o.hooks.ctx = &w;
        assert_int_equal(long_product(&o, NULL, NULL), SHERD_OK);
        assert_true(w.calls > 1);
        assert_false(w.backwards);
    }
}

static void a_call_beyond_its_time_limit_ends_and_the_next_one_works(void **state)
{
    (void)state;
    static const uint32_t times[] = { 1, 20, 60, 200 };
    for (unsigned i = 0; i < 4; i++) {
        sherd_product_options o = { .size = sizeof o };
        sherd_report r = { .size = sizeof r };
        sherd_diag d = { 0 };
        o.timeout_ms = times[i];
        assert_int_equal(long_product(&o, &r, &d), SHERD_ETIMEOUT);
        assert_true(r.seconds < 5);
        assert_non_null(strstr(d.message, "the time limit expired"));
        sherd_report_fini(&r);
        still_works();
    }
}

static void the_time_of_preparing_counts_in_the_time_limit(void **state)
{
    (void)state;
    sherd_product_options o = { .size = sizeof o };
    sherd_report r = { .size = sizeof r };
    sherd_diag d = { 0 };
    operand a = operand_new(4000, 1000, SHERD_F64), b = operand_new(1000, 3, SHERD_F64);
    double *c = malloc(4000 * 3 * sizeof *c);
    o.exact = true;
    o.timeout_ms = 1;
    assert_int_equal(sherd_multiply(cluster, a.v, b.v, c, 3, &o, &r, &d), SHERD_ETIMEOUT);
    assert_non_null(strstr(d.message, "preparing took all"));
    assert_int_equal(r.nodes, 0); /* no byte was sent */
    sherd_report_fini(&r);
    free(a.memory);
    free(b.memory);
    free(c);
    still_works();
}

static void an_interrupted_call_ends_and_the_next_one_works(void **state)
{
    (void)state;
    sherd_product_options o = { .size = sizeof o };
    sherd_diag d = { 0 };
    cluster_stop = true;
    int err = long_product(&o, NULL, &d);
    cluster_stop = false;
    assert_int_equal(err, SHERD_EINTERRUPTED);
    still_works();
}

static bool never(void *ctx)
{
    ++*(unsigned *)ctx;
    return false;
}

static void the_hooks_of_a_call_replace_those_of_the_cluster(void **state)
{
    (void)state;
    unsigned asked = 0;
    sherd_product_options o = { .size = sizeof o };
    o.hooks = (sherd_hooks){ .interrupted = never, .ctx = &asked };
    cluster_stop = true;
    int err = long_product(&o, NULL, NULL);
    cluster_stop = false;
    assert_int_equal(err, SHERD_OK);
    assert_true(asked > 0);
}

static void a_call_that_fails_before_nodes_are_at_work_leaves_its_report(void **state)
{
    (void)state;
    sherd_product_options o = { .size = sizeof o };
    sherd_report r = { .size = sizeof r, .tasks = 77 };
    double x[4] = { 1, 2, 3, NAN }, c[4];
    const sherd_view v = sherd_view_c(x, SHERD_F64, 2, 2), w = sherd_view_c(x, SHERD_F64, 1, 3);
    sherd_diag d = { 0 };
    cluster_stop = true; /* also as a hook of the cluster */
    int err = sherd_multiply(cluster, v, v, c, 2, &o, &r, &d);
    cluster_stop = false;
    assert_int_equal(err, SHERD_EINTERRUPTED);
    assert_string_equal(d.message, "interrupted");
    assert_true(r.tasks == 77 && r.nodes == 0);
    assert_int_equal(sherd_multiply(cluster, v, w, c, 3, &o, &r, NULL), SHERD_ESHAPE);
    o.exact = true;
    assert_int_equal(sherd_multiply(cluster, v, v, c, 2, &o, &r, NULL), SHERD_ERANGE);
    assert_int_equal(sherd_apply(cluster, SHERD_OP_SQUARE, v, v, c, 2, &o, &r, NULL),
                     SHERD_EUNSUPPORTED);
    assert_true(r.tasks == 77 && r.nodes == 0 && !r.planned);
    o.exact = false;
    assert_int_equal(sherd_multiply(cluster, v, v, c, 2, &o, &r, NULL), SHERD_OK);
    assert_true(r.tasks != 77 && r.nodes == NODES);
    sherd_report_fini(&r);
}

static void a_result_that_overlaps_an_operand_is_refused(void **state)
{
    (void)state;
    double x[36], y[36], z[36];
    for (int i = 0; i < 36; i++) x[i] = y[i] = i + 1;
    const sherd_view a = sherd_view_c(x, SHERD_F64, 6, 6), b = sherd_view_c(y, SHERD_F64, 6, 6);
    const struct {
        double *out;
        const char *named;
    } bad[] = { { x, "A" }, { y, "B" } };
    sherd_resident *kept;
    assert_int_equal(sherd_resident_new(&kept, cluster, b, 6, NULL, NULL), SHERD_OK);
    for (int i = 0; i < 2; i++) {
        sherd_diag d = { 0 };
        assert_int_equal(sherd_multiply(cluster, a, b, bad[i].out, 6, NULL, NULL, &d),
                         SHERD_EINVAL);
        if (!strstr(d.message, bad[i].named)) fail_msg("%s", d.message);
        assert_int_equal(sherd_apply(cluster, SHERD_OP_MINUS, a, b, bad[i].out + 1, 6, NULL, NULL,
                                     NULL),
                         SHERD_EINVAL);
        assert_int_equal(sherd_resident_multiply(kept, a, bad[i].out, 6, NULL, NULL), SHERD_EINVAL);
    }
    assert_int_equal(sherd_resident_multiply(kept, a, z, 6, NULL, NULL), SHERD_OK);
    for (int i = 0; i < 36; i++) assert_true(x[i] == i + 1 && y[i] == i + 1);
    assert_int_equal(sherd_apply(cluster, SHERD_OP_TIMES, a, b, x, 6, NULL, NULL, NULL),
                     SHERD_OK); /* in place */
    for (int i = 0; i < 36; i++) assert_true(x[i] == (i + 1) * (i + 1));
    sherd_resident_free(kept);
}

static void options_and_reports_without_a_size_are_refused(void **state)
{
    (void)state;
    sherd_product_options o = { .size = sizeof o }, none = { .exact = true };
    sherd_report r = { .nodes = 0 };
    sherd_diag d = { 0 };
    assert_int_equal(long_product(&none, NULL, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "sherd_product_options.size is 0"));
    assert_int_equal(long_product(&o, &r, NULL), SHERD_EINVAL);
    assert_null(r.planned);
}

static void element_wise_operations_give_the_promised_bits(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        sherd_op op = (sherd_op)(SHERD_OP_SIGMOID + round % 7);
        sherd_product_options o = { .size = sizeof o };
        sherd_report r = { .size = sizeof r };
        o.scheme = cluster_below(3) ? SHERD_PERMUTE : SHERD_PLAIN;
        operand a = operand_any(cluster_below(30), cluster_below(30));
        operand b = operand_any(a.v.rows, a.v.cols);
        bool two = op == SHERD_OP_MINUS || op == SHERD_OP_TIMES;
        double *c = calloc(a.v.rows * a.v.cols + 1, 8);
        sherd_diag d = { 0 };
        if (sherd_apply(cluster, op, a.v, b.v, c, a.v.cols, &o, &r, &d)) fail_msg("%s", d.message);
        for (size_t i = 0; i < a.v.rows; i++) {
            for (size_t j = 0; j < a.v.cols; j++) {
                double x = sherd__view_at(a.v, i, j), y = sherd__view_at(b.v, i, j), z;
                assert_int_equal(sherd__map_f64(op, &x, two ? &y : NULL, 1, &z), 0);
                assert_memory_equal(&z, &c[i * a.v.cols + j], 8);
            }
        }
        for (uint32_t i = 0; i < NODES; i++)
            assert_true(r.exposed_b[i] == (two ? r.exposed_a[i] : 0));
        sherd_report_fini(&r);
        free(c);
        free(a.memory);
        free(b.memory);
    }
}

/* Products, kept operands in both orientations with increasing widths, element-wise operations. */
/* Computes one product or operation with the shuffles of a metadata file, or (NULL) with its
 * seed. */
static void with_shuffles(const char *path, const uint8_t *seed, bool dot, bool exact, double *out,
                          sherd_report *r)
{
    static double x[40 * 30], y[30 * 50];
    sherd_product_options o = { .size = sizeof o };
    sherd_meta *meta = NULL;
    sherd_shuffles s = { .size = sizeof s };
    sherd_diag d = { 0 };
    for (unsigned i = 0; i < 1200; i++) x[i] = sin((double)i);
    for (unsigned i = 0; i < 1500; i++) y[i] = cos((double)i);
    o.exact = exact;
    o.group = 2;
    o.operation = dot ? 0 : 1;
    o.seed = seed;
    if (path) {
        if (sherd_meta_load(&meta, path, &d) ||
            sherd_meta_shuffles(meta, dot ? 0 : 1, &s, NULL, &d))
            fail_msg("%s", d.message);
        o.shuffles = &s;
    }
    sherd_view a = sherd_view_c(x, SHERD_F64, 40, 30), b = sherd_view_c(y, SHERD_F64, 30, 50);
    int err = dot ? sherd_multiply(cluster, a, b, out, 50, &o, r, &d)
                  : sherd_apply(cluster, SHERD_OP_TANH, a, a, out, 30, &o, r, &d);
    if (err) fail_msg("%s", d.message);
    sherd_meta_free(meta);
}

static void an_invalid_second_operand_is_refused(void **state)
{
    (void)state;
    double x[6] = { 1 }, out[6];
    sherd_product_options o = { .size = sizeof o };
    const sherd_view a = sherd_view_c(x, SHERD_F64, 2, 3);
    sherd_view b = a;
    sherd_diag d = { 0 };
    b.dtype = (sherd_dtype)99;
    assert_int_equal(sherd_apply(cluster, SHERD_OP_MINUS, a, b, out, 3, &o, NULL, &d),
                     SHERD_EINVAL);
    assert_non_null(strstr(d.message, "B"));
    b = a;
    b.data = NULL;
    assert_int_equal(sherd_apply(cluster, SHERD_OP_MINUS, a, b, out, 3, &o, NULL, NULL),
                     SHERD_EINVAL);
    b = (sherd_view){ .data = NULL };
    assert_int_equal(sherd_apply(cluster, SHERD_OP_TANH, a, b, out, 3, &o, NULL, NULL), 0);
}

static void stored_metadata_gives_the_results_of_its_seed(void **state)
{
    (void)state;
    char dir[] = "/tmp/sherd-product-XXXXXX", files[3][64];
    const uint8_t seed[32] = { 7, 7 };
    sherd_meta *meta;
    sherd_meta_settings settings = { .size = sizeof settings, .nodes = NODES, .group = 2 };
    sherd_meta_operation dot = {
        .size = sizeof dot, .name = "z", .kind = SHERD_OP_PRODUCT, .n = 40, .k = 30, .m = 50
    };
    sherd_meta_operation map = {
        .size = sizeof map, .name = "a", .kind = SHERD_OP_TANH, .n = 40, .m = 30
    };
    assert_non_null(mkdtemp(dir));
    assert_int_equal(sherd_meta_new(&meta, &settings, seed, NULL), SHERD_OK);
    assert_int_equal(sherd_meta_add(meta, &dot, NULL), SHERD_OK);
    assert_int_equal(sherd_meta_add(meta, &map, NULL), SHERD_OK);
    for (unsigned f = 0; f < 3; f++) { /* with the seed; arrays with the seed; arrays only */
        sherd_meta_save_options so = { .size = sizeof so,
                                       .expanded = f > 0,
                                       .without_seed = f == 2 };
        snprintf(files[f], sizeof files[f], "%s/%u.npz", dir, f);
        assert_int_equal(sherd_meta_save(meta, files[f], &so, NULL, NULL), SHERD_OK);
    }
    sherd_meta_free(meta);
    for (unsigned kind = 0; kind < 3; kind++) {
        static double want[2000], got[2000];
        sherd_report r = { .size = sizeof r }, q = { .size = sizeof q };
        memset(want, 0, sizeof want);
        with_shuffles(NULL, seed, kind < 2, kind == 1, want, &r);
        for (unsigned f = 0; f < 3; f++) {
            memset(got, 0, sizeof got);
            with_shuffles(files[f], f == 2 ? NULL : seed, kind < 2, kind == 1, got, &q);
            assert_memory_equal(got, want, sizeof got);
            assert_memory_equal(r.planned, q.planned, NODES * sizeof *r.planned);
            sherd_report_fini(&q);
        }
        sherd_report_fini(&r);
    }
    for (unsigned f = 0; f < 3; f++) unlink(files[f]);
    rmdir(dir);
}

static void a_liar_ends_a_strict_call_and_is_left_out_of_others(void **state)
{
    (void)state;
    sherd_product_options o = { .size = sizeof o };
    sherd_report r = { .size = sizeof r };
    sherd_diag d = { 0 };
    sherd_node_info info = { .size = sizeof info };
    sherd_cluster *c = cluster_of(3, "wrong@node-2");
    o.exact = o.strict = true;
    operand a = operand_new(60, 60, SHERD_F64), b = operand_new(60, 30, SHERD_F64);
    double *out = malloc(60 * 30 * 8);
    assert_int_equal(sherd_multiply(c, a.v, b.v, out, 30, &o, &r, &d), SHERD_EWRONG);
    assert_non_null(strstr(d.message, "node-2"));
    assert_int_equal(r.nodes_banned, 1);
    assert_int_equal(r.states[1], SHERD_NODE_BANNED);
    sherd_report_fini(&r);
    o.strict = false;
    for (unsigned i = 0; i < 4; i++) {
        operand_multiply(c, &o, a.v, b.v, &r);
        assert_int_equal(r.nodes_banned + r.nodes_lost, 0); /* in this call */
        assert_int_equal(r.states[1], SHERD_NODE_BANNED);
        sherd_report_fini(&r);
    }
    assert_int_equal(sherd_cluster_node_at(c, 1, &info, NULL), 0);
    assert_int_equal(info.state, SHERD_NODE_BANNED);
    sherd_cluster_close(c);
    free(a.memory);
    free(b.memory);
    free(out);
}

static unsigned times_warned(const char *words)
{
    unsigned n = 0;
    for (const char *at = local_warned; (at = strstr(at, words)); at++) n++;
    return n;
}

static unsigned times_banned(void)
{
    return times_warned(": banned\n");
}

/* Once for each reason and connection, not for each product. */
static void a_refusal_is_reported_again_for_another_reason(void **state)
{
    (void)state;
    static const unsigned first[] = { 1, 1, 2, 2, 2 }, second[] = { 0, 0, 0, 1, 1 };
    const sherd_product_options o = { .size = sizeof o };
    sherd_cluster *c = cluster_of(1, "moody");
    operand a = operand_new(60, 60, SHERD_F64), b = operand_new(60, 30, SHERD_F64);
    double *out = malloc(60 * 30 * 8);
    for (unsigned i = 0; i < sizeof first / sizeof *first; i++) {
        assert_int_equal(sherd_multiply(c, a.v, b.v, out, 30, &o, NULL, NULL), SHERD_EFEWNODES);
        assert_int_equal(times_warned("refuses its work (not enough memory)"), first[i]);
        assert_int_equal(times_warned("refuses its work ("), first[i] + second[i]);
    }
    sherd_cluster_close(c);
    free(a.memory);
    free(b.memory);
    free(out);
}

/* After the product, or (twice) at its very end: it is reported once, in a consistent report. */
static void a_node_that_sends_garbage_after_a_product_is_named(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        sherd_product_options o = { .size = sizeof o };
        sherd_report r = { .size = sizeof r };
        sherd_node_info info = { .size = sizeof info };
        sherd_cluster *c = cluster_of(2, i % 2 ? "twice@node-2" : "idle@node-2");
        operand a = operand_new(60, 60, SHERD_F64), b = operand_new(60, 30, SHERD_F64);
        operand_multiply(c, &o, a.v, b.v, &r);
        assert_int_equal(r.nodes_banned, r.states[1] == SHERD_NODE_BANNED);
        assert_true(times_banned() >= r.nodes_banned);
        for (unsigned t = 0; t < 20000 && info.state != SHERD_NODE_BANNED; t++) {
            usleep(1000);
            assert_int_equal(sherd_cluster_node_at(c, 1, &info, NULL), 0);
        }
        assert_int_equal(info.state, SHERD_NODE_BANNED);
        assert_int_equal(times_banned(), 1);
        assert_non_null(strstr(local_warned, "node-2"));
        sherd_report_fini(&r);
        sherd_cluster_close(c);
        free(a.memory);
        free(b.memory);
    }
}

static void a_node_whose_connection_breaks_gets_its_operand_again(void **state)
{
    (void)state;
    sherd_product_options o = { .size = sizeof o };
    sherd_resident *kept;
    sherd_diag d = { 0 };
    sherd_cluster *c = cluster_of(3, "cut:2@node-1");
    o.exact = true;
    operand b = operand_new(60, 30, SHERD_F64);
    double *out = malloc(60 * 30 * 8);
    assert_int_equal(sherd_resident_new(&kept, c, b.v, 60, &o, NULL), 0);
    for (unsigned i = 0; i < 8; i++) {
        operand a = operand_new(60, 60, SHERD_F64);
        if (sherd_resident_multiply(kept, a.v, out, 30, NULL, &d)) fail_msg("%s", d.message);
        operand_must_equal(&o, a.v, b.v, out, 30);
        free(a.memory);
        usleep(i == 3 ? 700000 : 1000);
    }
    sherd_resident_free(kept);
    sherd_cluster_close(c);
    free(b.memory);
    free(out);
}

static void without_memory_a_call_fails_and_the_cluster_remains_usable(void **state)
{
    (void)state;
    operand a = operand_new(40, 40, SHERD_F64), b = operand_new(40, 20, SHERD_F64);
    double *c = malloc(40 * 20 * 8);
    unsigned failed = 0, fine = 0;
    for (size_t n = 1; n < 400 && fine < 5; n++) {
        sherd_product_options o = { .size = sizeof o };
        sherd_report r = { .size = sizeof r };
        sherd_diag d = { 0 };
        o.exact = n & 1;
        o.group = (uint32_t)(n % 3);
        (void)sherd__alloc_fail_nth(n);
        int err = sherd_multiply(cluster, a.v, b.v, c, 20, &o, &r, &d);
        (void)sherd__alloc_fail_nth(0);
        if (!err) operand_must_equal(&o, a.v, b.v, c, 20);
        else if (!d.code || !d.message[0]) fail_msg("allocation %zu: no message", n);
        fine = err ? 0 : fine + 1;
        failed += err != 0;
        sherd_report_fini(&r);
    }
    assert_true(failed > 20);
    still_works();
    free(a.memory);
    free(b.memory);
    free(c);
}

static void without_memory_a_cluster_does_not_open_and_nothing_is_left(void **state)
{
    (void)state;
    unsigned failed = 0;
    for (size_t n = 1; n < 60; n += 6) {
        sherd_cluster *c = NULL;
        sherd_diag d = { 0 };
        sherd_cluster_options o = { .size = sizeof o,
                                    .local_nodes = 2,
                                    .program = getenv("SHERD"),
                                    .connect_timeout_ms = 3000 };
        (void)sherd__alloc_fail_nth(n);
        int err = sherd_cluster_open(&c, &o, &d);
        (void)sherd__alloc_fail_nth(0);
        if (err) assert_null(c);
        if (err && !d.message[0]) fail_msg("allocation %zu: no message", n);
        failed += err != 0;
        sherd_cluster_close(c);
    }
    assert_true(failed > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_of_options_equals_the_reference),
        cmocka_unit_test(nan_and_infinity_equal_those_of_one_machine),
        cmocka_unit_test(a_single_node_computes_everything),
        cmocka_unit_test(the_exposure_bound_is_respected_or_the_call_fails),
        cmocka_unit_test(progress_never_decreases),
        cmocka_unit_test(a_call_beyond_its_time_limit_ends_and_the_next_one_works),
        cmocka_unit_test(the_time_of_preparing_counts_in_the_time_limit),
        cmocka_unit_test(an_interrupted_call_ends_and_the_next_one_works),
        cmocka_unit_test(the_hooks_of_a_call_replace_those_of_the_cluster),
        cmocka_unit_test(a_call_that_fails_before_nodes_are_at_work_leaves_its_report),
        cmocka_unit_test(a_result_that_overlaps_an_operand_is_refused),
        cmocka_unit_test(options_and_reports_without_a_size_are_refused),
        cmocka_unit_test(element_wise_operations_give_the_promised_bits),
        cmocka_unit_test(an_invalid_second_operand_is_refused),
        cmocka_unit_test(stored_metadata_gives_the_results_of_its_seed),
        cmocka_unit_test(a_liar_ends_a_strict_call_and_is_left_out_of_others),
        cmocka_unit_test(a_refusal_is_reported_again_for_another_reason),
        cmocka_unit_test(a_node_that_sends_garbage_after_a_product_is_named),
        cmocka_unit_test(a_node_whose_connection_breaks_gets_its_operand_again),
        cmocka_unit_test(without_memory_a_call_fails_and_the_cluster_remains_usable),
        cmocka_unit_test(without_memory_a_cluster_does_not_open_and_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, cluster_begin, cluster_end);
}
