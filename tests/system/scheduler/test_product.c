/*
 * Products, element-wise operations and resident operands through the public interface, over real
 * node processes: every combination of options at random sizes against a reference on this machine,
 * and what happens when a call ends early.
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
#include "core/rand.h"
#include "matrix/fixed.h"
#include "matrix/funcs.h"
#include "matrix/reference.h"
#include "matrix/view.h"
#include "sherd/meta.h"
#include "sherd/multiplier.h"
#include "sherd/product.h"

#define NODES 4u

static sherd_cluster *cluster;
static sherd_entropy_seeded rng_state;
static sherd_entropy rng;
static bool stop_now;
static unsigned warnings;

static bool interrupted(void *ctx)
{
    (void)ctx;
    return stop_now;
}

static void count_warnings(void *ctx, sherd_log_level level, const char *text)
{
    (void)ctx;
    (void)text;
    warnings += level == SHERD_LOG_WARN;
}

static sherd_cluster *open_nodes(uint32_t nodes, const char *program)
{
    sherd_cluster *c;
    sherd_diag d = { 0 };
    sherd_cluster_options o = { .local_nodes = nodes, .program = program,
                                .interrupted = interrupted,
                                .log = count_warnings };
    signal(SIGPIPE, SIG_IGN);
    if (sherd_cluster_open(&c, &o, &d)) fail_msg("%s", d.message);
    return c;
}

static int begin(void **state)
{
    (void)state;
    rng = sherd__entropy_seeded(&rng_state, 11);
    cluster = open_nodes(NODES, getenv("SHERD"));
    return 0;
}

static int end(void **state)
{
    (void)state;
    sherd_cluster_close(cluster);
    return 0;
}

static size_t below(size_t n)
{
    return (size_t)sherd__entropy_below(&rng, n);
}

/* --- operands -------------------------------------------------------------------------------- */

typedef struct operand {
    uint8_t *memory;
    sherd_view v;
} operand;

static void put(uint8_t *at, sherd_dtype t, double x)
{
    switch (t) {
    case SHERD_F64: memcpy(at, &x, 8); break;
    case SHERD_F32: memcpy(at, &(float){ (float)x }, 4); break;
    case SHERD_U8: *at = (uint8_t)fabs(x); break;
    case SHERD_I32: memcpy(at, &(int32_t){ (int32_t)(x * 99) }, 4); break;
    default: memcpy(at, &(int64_t){ (int64_t)(x * 999) }, 8); break;
    }
}

/* Random values, a third of them zero; in C order, Fortran order, or with gaps between. */
static operand make(size_t rows, size_t cols, sherd_dtype t)
{
    size_t size = sherd_dtype_size(t), gap = below(3), room = (rows + 3) * (cols + 3);
    operand o = { calloc(room, size), sherd_view_c(NULL, t, rows, cols) };
    bool fortran = below(2);
    for (size_t i = 0; i < room; i++)
        put(o.memory + i * size, t, below(3) ? ((double)below(4001) - 2000) / 16 : 0);
    o.v.data = o.memory;
    o.v.row_stride = fortran ? 1 : (ptrdiff_t)(cols + gap);
    o.v.col_stride = fortran ? (ptrdiff_t)(rows + gap) : 1;
    return o;
}

static operand make_any(size_t rows, size_t cols)
{
    static const sherd_dtype types[] = { SHERD_F64, SHERD_F32, SHERD_U8, SHERD_I32, SHERD_I64 };
    return make(rows, cols, types[below(5)]);
}

static void describe(const sherd_product_options *o, sherd_view a, sherd_view b, const char *what)
{
    fail_msg("%s: %zu x %zu x %zu, dtypes %d %d, scheme %d exact %d bits %u group %u balanced %d "
             "rows %d memory %llu", what, a.rows, a.cols, b.cols, a.dtype, b.dtype, o->scheme,
             o->exact, o->bits, o->group, o->balanced, o->shuffle_rows,
             (unsigned long long)o->memory);
}

/* Exact: the same bits. Float: |C - AB| <= gamma |A||B|, and the same class where not finite. */
static void must_equal(const sherd_product_options *o, sherd_view a, sherd_view b, const double *c,
                       size_t ldc)
{
    size_t n = a.rows, m = b.cols;
    double *ref = calloc(n * m + 1, 8);
    if (o->exact) {
        sherd__fixed fa, fb;
        assert_int_equal(sherd__fixed_choose(a, o->bits, "A", &fa, NULL), 0);
        assert_int_equal(sherd__fixed_choose(b, o->bits, "B", &fb, NULL), 0);
        assert_int_equal(sherd__reference_i128(a, b, &fa, &fb, ref, m ? m : 1, NULL), 0);
        for (size_t i = 0; i < n; i++)
            if (m && memcmp(ref + i * m, c + i * ldc, m * 8)) describe(o, a, b, "bits differ");
    } else {
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < m; j++) {
                double sum = 0, abs = 0, got = c[i * ldc + j];
                for (size_t t = 0; t < a.cols; t++) {
                    double x = sherd__view_at(a, i, t) * sherd__view_at(b, t, j);
                    sum += x;
                    abs += fabs(x);
                }
                bool ok = isfinite(sum)
                              ? fabs(got - sum) <= 4 * (double)(a.cols + 1) * 0x1p-53 * abs
                          : isnan(sum) ? isnan(got)
                                       : got == sum;
                if (!ok) describe(o, a, b, "wrong value");
            }
        }
    }
    free(ref);
}

static void multiply_with(sherd_cluster *on, const sherd_product_options *o, sherd_view a,
                          sherd_view b, sherd_report *r)
{
    size_t ldc = b.cols + below(3);
    double *c = malloc((a.rows + 1) * (ldc + 1) * 8);
    sherd_diag d = { 0 };
    memset(c, 0x5a, (a.rows + 1) * (ldc + 1) * 8);
    if (sherd_multiply(on, a, b, c, ldc, o, r, &d)) {
        fprintf(stderr, "%s\n", d.message);
        describe(o, a, b, "failed");
    }
    must_equal(o, a, b, c, ldc);
    free(c);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void every_combination_of_options_gives_the_reference(void **state)
{
    (void)state;
    static const uint32_t groups[] = { 0, 1, 2, 3, 7 };
    for (unsigned round = 0; round < 240; round++) {
        sherd_product_options o;
        sherd_report r;
        sherd_product_options_init(&o);
        o.scheme = below(4) ? SHERD_PERMUTE : SHERD_PLAIN;
        o.exact = round & 1;
        o.bits = 2 + (uint32_t)below(25);
        o.group = groups[below(5)];
        o.balanced = below(2);
        o.shuffle_rows = below(3) == 0;
        o.encoding = (sherd_encoding)below(3);
        o.memory = below(2) ? 0 : UINT64_C(1) << (17 + below(4));
        o.exposure_max = below(4) ? 0 : 1;
        operand a = make_any(below(40), below(30)), b = make_any(a.v.cols, below(30));
        multiply_with(cluster, &o, a.v, b.v, &r);
        double sum = 0;
        uint64_t planned = 0;
        for (uint32_t i = 0; i < NODES; i++) {
            sum += r.exposed_a[i];
            planned += r.planned[i];
        }
        assert_int_equal(planned, o.scheme == SHERD_PLAIN ? a.v.rows : a.v.cols);
        if (a.v.rows && a.v.cols && b.v.cols && o.scheme == SHERD_PERMUTE)
            assert_true(fabs(sum - 1) < 1e-9); /* every entry of A went to one node */
        assert_int_equal(r.tasks_repeated, 0);
        sherd_report_fini(&r);
        free(a.memory);
        free(b.memory);
    }
}

static void nan_and_infinity_come_out_as_from_one_machine(void **state)
{
    (void)state;
    static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 0 };
    for (unsigned round = 0; round < 60; round++) {
        sherd_product_options o;
        sherd_product_options_init(&o);
        o.group = round % 4;
        o.scheme = round % 5 ? SHERD_PERMUTE : SHERD_PLAIN;
        operand a = make(1 + below(20), 1 + below(20), SHERD_F64);
        operand b = make(a.v.cols, 1 + below(20), SHERD_F64);
        operand *one = below(2) ? &a : &b;
        for (unsigned i = 0; i < 4; i++) {
            ptrdiff_t at = (ptrdiff_t)below(one->v.rows) * one->v.row_stride +
                           (ptrdiff_t)below(one->v.cols) * one->v.col_stride;
            put(one->memory + 8 * at, SHERD_F64, odd[below(5)]);
        }
        multiply_with(cluster, &o, a.v, b.v, NULL);
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

static void one_node_does_it_all(void **state)
{
    (void)state;
    sherd_cluster *one = open_nodes(1, getenv("SHERD"));
    for (unsigned round = 0; round < 10; round++) {
        sherd_product_options o;
        sherd_product_options_init(&o);
        o.exact = round & 1;
        o.group = round % 3;
        operand a = make_any(1 + below(9), below(9)), b = make_any(a.v.cols, 1);
        multiply_with(one, &o, a.v, b.v, NULL);
        free(a.memory);
        free(b.memory);
    }
    sherd_cluster_close(one);
}

static void the_exposure_bound_is_kept_or_the_call_fails(void **state)
{
    (void)state;
    sherd_product_options o;
    sherd_report r;
    sherd_product_options_init(&o);
    o.balanced = true;
    operand a = make(40, 40, SHERD_F64), b = make(40, 10, SHERD_F64);
    double c[400];
    o.exposure_max = 0.2; /* four nodes: a quarter each */
    sherd_diag d = { 0 };
    assert_int_equal(sherd_multiply(cluster, a.v, b.v, c, 10, &o, &r, &d), SHERD_EEXPOSURE);
    assert_string_equal(d.message,
                        "the plan gives node-1's domain 0.25 of A; --exposure-max is 0.2");
    assert_int_equal(r.nodes, 0); /* nothing was begun */
    o.exposure_max = 0.25;
    multiply_with(cluster, &o, a.v, b.v, &r);
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

/* A product that takes some seconds: a number comes back for every entry of A and column of B. */
static int long_product(sherd_product_options *o, sherd_report *r, sherd_diag *d)
{
    size_t n = 2000, k = 200, m = 300;
    double *a = malloc(n * k * 8), *b = malloc(k * m * 8), *c = malloc(n * m * 8);
    for (size_t i = 0; i < n * k; i++) a[i] = (double)(i % 7) + 1;
    for (size_t i = 0; i < k * m; i++) b[i] = (double)(i % 5);
    o->group = 1;
    int err = sherd_multiply(cluster, sherd_view_c(a, SHERD_F64, n, k),
                             sherd_view_c(b, SHERD_F64, k, m), c, m, o, r, d);
    memset(a, 0xff, n * k * 8); /* nothing may read them any more */
    memset(b, 0xff, k * m * 8);
    free(a);
    free(b);
    free(c);
    return err;
}

static void still_works(void)
{
    sherd_product_options o;
    sherd_product_options_init(&o);
    o.exact = true;
    operand a = make_any(20, 20), b = make_any(20, 20);
    multiply_with(cluster, &o, a.v, b.v, NULL);
    free(a.memory);
    free(b.memory);
}

static void progress_never_goes_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) { /* the second must not begin where the first ended */
        sherd_product_options o;
        watch w = { 0 };
        sherd_product_options_init(&o);
        o.progress = see;
        o.progress_ctx = &w;
        assert_int_equal(long_product(&o, NULL, NULL), SHERD_OK);
        assert_true(w.calls > 1);
        assert_false(w.backwards);
    }
}

static void a_call_whose_time_is_over_ends_and_the_next_one_works(void **state)
{
    (void)state;
    static const uint32_t times[] = { 1, 20, 60, 200 };
    for (unsigned i = 0; i < 4; i++) {
        sherd_product_options o;
        sherd_report r;
        sherd_diag d = { 0 };
        sherd_product_options_init(&o);
        o.timeout_ms = times[i];
        assert_int_equal(long_product(&o, &r, &d), SHERD_ETIMEOUT);
        assert_true(r.seconds < 5);
        assert_non_null(strstr(d.message, "time given is over"));
        sherd_report_fini(&r);
        still_works();
    }
}

static void an_interrupted_call_ends_and_the_next_one_works(void **state)
{
    (void)state;
    sherd_product_options o;
    sherd_diag d = { 0 };
    sherd_product_options_init(&o);
    stop_now = true;
    int err = long_product(&o, NULL, &d);
    stop_now = false;
    assert_int_equal(err, SHERD_EINTERRUPTED);
    still_works();
}

static uint64_t all(const uint64_t *per_node)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < NODES; i++) sum += per_node[i];
    return sum;
}

static void a_resident_operand_travels_once(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 24; round++) {
        sherd_product_options o;
        sherd_resident *kept;
        sherd_diag d = { 0 };
        sherd_product_options_init(&o);
        o.exact = round & 1;
        o.scheme = round & 2 ? SHERD_PERMUTE : SHERD_PLAIN;
        o.group = round % 3;
        size_t k = 90, m = 110, n_max = 50;
        operand b = make(k, m, round & 4 ? SHERD_F64 : SHERD_F32);
        if (sherd_resident_new(&kept, cluster, b.v, n_max, &o, &d)) fail_msg("%s", d.message);
        uint64_t sent = 0;
        static const size_t rows[] = { 3, 50, 1, 0, 17, 2 };
        for (unsigned i = 0; i < 6; i++) {
            operand a = make(rows[i], k, i & 1 ? SHERD_F64 : SHERD_F32);
            double *c = malloc((rows[i] + 1) * m * 8);
            sherd_report r;
            if (sherd_resident_multiply(kept, a.v, c, m, &r, &d)) fail_msg("%s", d.message);
            must_equal(&o, a.v, b.v, c, m);
            uint64_t b_bytes = k * m * 2; /* as it travels at the least, but for its messages */
            sent += all(r.bytes_out);
            if (i == 1) assert_true(sent > b_bytes); /* all nodes have rows by now */
            if (i > 1) assert_true(all(r.bytes_out) < rows[i] * k * 8 + 20000);
            sherd_report_fini(&r);
            free(c);
            free(a.memory);
        }
        operand wide = make(n_max + 1, k, SHERD_F64);
        double c[60 * 110];
        assert_int_equal(sherd_resident_multiply(kept, wide.v, c, m, NULL, NULL), SHERD_ESHAPE);
        free(wide.memory);
        sherd_resident_free(kept);
        free(b.memory);
    }
}

static void a_resident_operand_that_failed_says_so_and_others_go_on(void **state)
{
    (void)state;
    sherd_product_options o;
    sherd_resident *kept, *other;
    sherd_diag d = { 0 };
    sherd_product_options_init(&o);
    size_t n = 4000, k = 300, m = 300;
    operand a = make(n, k, SHERD_F64), b = make(k, m, SHERD_F64), few = make(5, k, SHERD_F64);
    double *c = malloc(n * m * 8);
    assert_int_equal(sherd_resident_new(&other, cluster, b.v, 10, &o, NULL), SHERD_OK);
    o.timeout_ms = 1;
    o.group = 1;
    assert_int_equal(sherd_resident_new(&kept, cluster, b.v, n, &o, NULL), SHERD_OK);
    assert_int_equal(sherd_resident_multiply(kept, a.v, c, m, NULL, NULL), SHERD_ETIMEOUT);
    assert_int_equal(sherd_resident_multiply(kept, few.v, c, m, NULL, &d), SHERD_EINVAL);
    o.timeout_ms = 0;
    assert_int_equal(sherd_resident_multiply(other, few.v, c, m, NULL, NULL), SHERD_OK);
    must_equal(&o, few.v, b.v, c, m);
    sherd_resident_free(kept);
    assert_int_equal(sherd_resident_multiply(other, few.v, c, m, NULL, NULL), SHERD_OK);
    must_equal(&o, few.v, b.v, c, m);
    sherd_resident_free(other);
    free(a.memory);
    free(b.memory);
    free(few.memory);
    free(c);
}

static void element_wise_operations_give_the_promised_bits(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        sherd_elementwise op = (sherd_elementwise)(SHERD_OP_SIGMOID + round % 7);
        sherd_product_options o;
        sherd_report r;
        sherd_product_options_init(&o);
        o.scheme = below(3) ? SHERD_PERMUTE : SHERD_PLAIN;
        operand a = make_any(below(30), below(30)), b = make_any(a.v.rows, a.v.cols);
        bool two = op == SHERD_OP_MINUS || op == SHERD_OP_MULTIPLY;
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

/* Products, kept operands in both directions with growing widths, element-wise operations. */
static void script(sherd_multiplier m, double *out)
{
    double x[30 * 20], y[20 * 25], z[30 * 25];
    sherd_kept *kept;
    for (size_t i = 0; i < 600; i++) x[i] = sin((double)i) * 3;
    for (size_t i = 0; i < 500; i++) y[i] = i % 4 ? cos((double)i) : 0;
    for (size_t i = 0; i < 750; i++) z[i] = (double)(i % 11) - 5;
    sherd_view vx = sherd_view_c(x, SHERD_F64, 30, 20), vz = sherd_view_c(z, SHERD_F64, 30, 25);
    assert_int_equal(sherd_multiplier_keep(m, vx, &kept, NULL), 0);
    memset(x, 0, sizeof x); /* its values were taken */
    for (size_t w = 1; w <= 25; w += 8, out += 2000) {
        sherd_view vy = sherd_view_sub(sherd_view_c(y, SHERD_F64, 20, 25), 0, 20, 0, w);
        sherd_view some = sherd_view_sub(vz, 0, 30, 0, w);
        assert_int_equal(sherd_multiplier_multiply_kept(m, kept, false, vy, out, 26, NULL), 0);
        assert_int_equal(sherd_multiplier_multiply_kept(m, kept, true, some, out + 800, 25, NULL),
                         0);
        assert_int_equal(sherd_multiplier_multiply(m, sherd_view_t(some), vz, out + 1300, 25, NULL),
                         0);
    }
    sherd_multiplier_release(m, kept);
    assert_int_equal(sherd_multiplier_map(m, SHERD_SIGMOID, vz, NULL, out, 25, NULL), 0);
    assert_int_equal(sherd_multiplier_map(m, SHERD_TIMES, vz, &vz, out + 800, 25, NULL), 0);
    assert_int_equal(sherd_multiplier_map(m, SHERD_TANH, vz, NULL, z, 25, NULL), 0); /* in place */
    memcpy(out + 1600, z, sizeof z);
}

static void a_multiplier_over_nodes_gives_the_bits_of_this_machine(void **state)
{
    (void)state;
    static double here[12000], there[12000];
    for (unsigned scheme = SHERD_PERMUTE; scheme <= SHERD_PLAIN; scheme++) {
        sherd_multiplier local, remote;
        sherd_product_options o;
        sherd_product_options_init(&o);
        o.scheme = (sherd_scheme)scheme;
        o.exact = true;
        memset(here, 0, sizeof here);
        memset(there, 0, sizeof there);
        assert_int_equal(sherd_multiplier_local(o.bits, &local, NULL), 0);
        assert_int_equal(sherd_multiplier_cluster(&remote, cluster, &o, NULL), 0);
        script(local, here);
        script(remote, there);
        assert_memory_equal(here, there, sizeof here);
        sherd_multiplier_free(local);
        sherd_multiplier_free(remote);
    }
    sherd_multiplier none;
    sherd_product_options o;
    sherd_product_options_init(&o);
    o.shuffle_rows = true;
    assert_int_equal(sherd_multiplier_cluster(&none, cluster, &o, NULL), SHERD_EUNSUPPORTED);
    assert_null(none.ops);
}

static void bytes_to(uint64_t out[NODES])
{
    sherd_node_info info;
    usleep(250000); /* told ten times a second */
    for (uint32_t i = 0; i < NODES; i++) {
        sherd_cluster_node(cluster, i, &info);
        out[i] = info.bytes_out;
    }
}

static void an_operand_that_is_sent_again_shows_each_node_what_it_has_seen(void **state)
{
    (void)state;
    enum { K = 200 };
    static double k[K * K], b[K * 2], c[K * 2];
    uint64_t bytes[4][NODES];
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_product_options o;
    sherd_product_options_init(&o);
    for (unsigned i = 0; i < K * K; i++) k[i] = i + 0.5;
    for (unsigned i = 0; i < K * 2; i++) b[i] = i;
    assert_int_equal(sherd_multiplier_cluster(&m, cluster, &o, NULL), 0);
    assert_int_equal(sherd_multiplier_keep(m, sherd_view_c(k, SHERD_F64, K, K), &kept, NULL), 0);
    /* One column, again, then two: too many for the first plan */
    for (unsigned i = 0; i < 4; i++) {
        size_t w = i < 2 ? 1 : 2;
        bytes_to(bytes[i]);
        if (i == 3) break;
        assert_int_equal(sherd_multiplier_multiply_kept(
                             m, kept, false, sherd_view_c(b, SHERD_F64, K, w), c, w, NULL),
                         0);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        uint64_t first = bytes[1][i] - bytes[0][i], same = bytes[2][i] - bytes[1][i];
        uint64_t anew = bytes[3][i] - bytes[2][i];
        assert_true(first > 20 * K * 8 && same < 3000);
        assert_true(anew > first - 1400 && anew < first + 1400); /* a column more would be 1600 */
    }
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
}

static void products_of_one_operand_show_each_node_the_same_columns(void **state)
{
    (void)state;
    enum { N = 50, K = 200 };
    static double a[N * K], b[K], c[N];
    uint64_t bytes[5][NODES];
    sherd_multiplier m;
    sherd_product_options o;
    sherd_product_options_init(&o);
    for (unsigned i = 0; i < N * K; i++) a[i] = i + 0.5;
    for (unsigned i = 0; i < K; i++) b[i] = i;
    assert_int_equal(sherd_multiplier_cluster(&m, cluster, &o, NULL), 0);
    for (unsigned i = 0;; i++) {
        bytes_to(bytes[i]);
        if (i == 4) break;
        assert_int_equal(sherd_multiplier_multiply(m, sherd_view_c(a, SHERD_F64, N, K),
                                                   sherd_view_c(b, SHERD_F64, K, 1), c, 1, NULL),
                         0);
        for (unsigned r = 0; r < N; r++) {
            double sum = 0;
            for (unsigned k = 0; k < K; k++) sum += a[r * K + k] * b[k];
            assert_true(fabs(c[r] - sum) <= 1e-10 * sum);
        }
    }
    for (unsigned i = 1; i < 4; i++) {
        for (uint32_t n = 0; n < NODES; n++) { /* a column more would be 400 */
            uint64_t first = bytes[1][n] - bytes[0][n], next = bytes[i + 1][n] - bytes[i][n];
            assert_true(first > 20 * N * 8 && next < first + 200 && first < next + 200);
        }
    }
    sherd_multiplier_free(m);
}

/* Who took over from whom, as the log tells it. */
static struct takeover {
    char to[64], from[64];
} takeovers[8];
static unsigned takeovers_len;

static void note_takeovers(void *ctx, sherd_log_level level, const char *text)
{
    struct takeover t;
    char address[64];
    (void)ctx;
    (void)level;
    if (takeovers_len < 8 &&
        sscanf(text, "%63s %63s takes over from %63s", t.to, address, t.from) == 3)
        takeovers[takeovers_len++] = t;
}

static void what_was_taken_over_still_counts_when_an_operand_is_sent_again(void **state)
{
    (void)state;
    enum { K = 40 };
    static double k[K * K], b[K * 2], c[K * 2];
    sherd_cluster *four;
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_product_options o;
    sherd_diag d = { 0 };
    sherd_cluster_options co = { .local_nodes = 4, .program = getenv("SHERD"),
                                 .log = note_takeovers };
    if (sherd_cluster_open(&four, &co, &d)) fail_msg("%s", d.message);
    sherd_product_options_init(&o);
    o.balanced = true; /* a quarter each; the bound is half */
    takeovers_len = 0;
    assert_int_equal(sherd_multiplier_cluster(&m, four, &o, NULL), 0);
    assert_int_equal(sherd_multiplier_keep(m, sherd_view_c(k, SHERD_F64, K, K), &kept, NULL), 0);
    for (unsigned w = 1; w <= 2; w++) { /* two columns: the operand is sent again */
        sherd_node_info info;
        sherd_cluster_node(four, 4 - w, &info);
        kill(info.pid, SIGKILL);
        usleep(200000);
        if (sherd_multiplier_multiply_kept(m, kept, false, sherd_view_c(b, SHERD_F64, K, w), c, w,
                                           &d))
            fail_msg("%s", d.message);
    }
    assert_true(takeovers_len >= 2);
    for (unsigned i = 0; i < takeovers_len; i++)
        for (unsigned j = 0; j < i; j++)
            if (strcmp(takeovers[i].to, takeovers[j].to) == 0)
                assert_string_equal(takeovers[i].from, takeovers[j].from);
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
    sherd_cluster_close(four);
}

static void both_directions_of_a_kept_operand_share_its_bound(void **state)
{
    (void)state;
    enum { K = 40 };
    static double k[K * K], b[K], c[K];
    uint64_t before[NODES], after[NODES];
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_product_options o;
    sherd_diag d = { 0 };
    sherd_product_options_init(&o);
    o.balanced = true;
    o.exposure_max = 0.3;
    assert_int_equal(sherd_multiplier_cluster(&m, cluster, &o, NULL), 0);
    assert_int_equal(sherd_multiplier_keep(m, sherd_view_c(k, SHERD_F64, K, K), &kept, NULL), 0);
    sherd_view v = sherd_view_c(b, SHERD_F64, K, 1);
    assert_int_equal(sherd_multiplier_multiply_kept(m, kept, false, v, c, 1, NULL), 0);
    bytes_to(before);
    assert_int_equal(sherd_multiplier_multiply_kept(m, kept, true, v, c, 1, &d), SHERD_EEXPOSURE);
    assert_non_null(strstr(d.message, "the plan gives node-1's domain 0.5 of B"));
    bytes_to(after);
    for (unsigned i = 0; i < NODES; i++) assert_true(after[i] - before[i] < 500); /* pings */
    assert_int_equal(sherd_multiplier_multiply_kept(m, kept, false, v, c, 1, NULL), 0);
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
}

static void a_node_counts_each_task_once(void **state)
{
    (void)state;
    uint64_t before = 0, after = 0, told = 0;
    sherd_node_info info;
    sherd_resident *kept;
    sherd_report r;
    sherd_product_options o;
    sherd_product_options_init(&o);
    for (uint32_t i = 0; i < NODES; i++) {
        sherd_cluster_node(cluster, i, &info);
        before += info.tasks;
    }
    operand a = make(20, 20, SHERD_F64), b = make(20, 20, SHERD_F64);
    double c[400];
    assert_int_equal(sherd_resident_new(&kept, cluster, b.v, 20, &o, NULL), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(sherd_resident_multiply(kept, a.v, c, 20, &r, NULL), 0);
        told += r.tasks;
        sherd_report_fini(&r);
    }
    sherd_resident_free(kept);
    usleep(250000); /* what is published later counts too */
    for (uint32_t i = 0; i < NODES; i++) {
        sherd_cluster_node(cluster, i, &info);
        after += info.tasks;
    }
    assert_int_equal(after - before, told);
    free(a.memory);
    free(b.memory);
}

/* One product or operation with the shuffles of a metadata file, or (NULL) with its seed. */
static void with_shuffles(const char *path, const uint8_t *seed, bool dot, bool exact, double *out,
                          sherd_report *r)
{
    static double x[40 * 30], y[30 * 50];
    sherd_product_options o;
    sherd_meta *meta = NULL;
    sherd_shuffles s;
    sherd_diag d = { 0 };
    for (unsigned i = 0; i < 1200; i++) x[i] = sin((double)i);
    for (unsigned i = 0; i < 1500; i++) y[i] = cos((double)i);
    sherd_product_options_init(&o);
    o.exact = exact;
    o.group = 2;
    o.operation = dot ? 0 : 1;
    o.seed = seed;
    if (path) {
        if (sherd_meta_load(&meta, path, &d) ||
            sherd_meta_shuffles(meta, dot ? 0 : 1, &s, &d)) fail_msg("%s", d.message);
        o.shuffles = &s;
    }
    sherd_view a = sherd_view_c(x, SHERD_F64, 40, 30), b = sherd_view_c(y, SHERD_F64, 30, 50);
    int err = dot ? sherd_multiply(cluster, a, b, out, 50, &o, r, &d)
                  : sherd_apply(cluster, SHERD_OP_TANH, a, a, out, 30, &o, r, &d);
    if (err) fail_msg("%s", d.message);
    sherd_meta_free(meta);
}

static void stored_metadata_gives_what_its_seed_gives(void **state)
{
    (void)state;
    char dir[] = "/tmp/sherd-product-XXXXXX", files[3][64];
    const uint8_t seed[32] = { 7, 7 };
    sherd_meta *meta;
    sherd_meta_settings settings = { .nodes = NODES, .group = 2 };
    sherd_meta_operation dot = { .name = "z", .kind = SHERD_META_DOT, .n = 40, .k = 30, .m = 50 };
    sherd_meta_operation map = { .name = "a", .kind = SHERD_META_TANH, .n = 40, .m = 30 };
    assert_non_null(mkdtemp(dir));
    assert_int_equal(sherd_meta_new(&meta, &settings, seed, NULL), SHERD_OK);
    assert_int_equal(sherd_meta_add(meta, &dot, NULL), SHERD_OK);
    assert_int_equal(sherd_meta_add(meta, &map, NULL), SHERD_OK);
    for (unsigned f = 0; f < 3; f++) { /* the seed; arrays; arrays alone */
        sherd_meta_save_options so = { .expanded = f > 0, .without_seed = f == 2 };
        snprintf(files[f], sizeof files[f], "%s/%u.npz", dir, f);
        assert_int_equal(sherd_meta_save(meta, files[f], &so, NULL, NULL), SHERD_OK);
    }
    sherd_meta_free(meta);
    for (unsigned kind = 0; kind < 3; kind++) {
        static double want[2000], got[2000];
        sherd_report r, q;
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

static void misbehave(const char *how, char program[256])
{
    const char *build = getenv("B");
    snprintf(program, 256, "%s/tests/system/node/prog_misbehave", build ? build : "build/plain");
    setenv("SHERD_TEST_MISBEHAVE", how, 1);
}

static void a_liar_ends_a_strict_call_and_is_left_out_of_others(void **state)
{
    (void)state;
    char program[256];
    sherd_product_options o;
    sherd_report r;
    sherd_diag d = { 0 };
    sherd_node_info info;
    misbehave("wrong@node-2", program);
    sherd_cluster *c = open_nodes(3, program);
    sherd_product_options_init(&o);
    o.exact = o.strict = true;
    operand a = make(60, 60, SHERD_F64), b = make(60, 30, SHERD_F64);
    double *out = malloc(60 * 30 * 8);
    assert_int_equal(sherd_multiply(c, a.v, b.v, out, 30, &o, &r, &d), SHERD_EWRONG);
    assert_non_null(strstr(d.message, "node-2"));
    sherd_report_fini(&r);
    o.strict = false;
    uint32_t banned = 0;
    for (unsigned i = 0; i < 4; i++) {
        multiply_with(c, &o, a.v, b.v, &r);
        banned += r.nodes_banned;
        assert_int_equal(r.nodes_lost, 0);
        sherd_report_fini(&r);
    }
    assert_true(banned <= 1);
    sherd_cluster_node(c, 1, &info);
    assert_int_equal(info.state, SHERD_NODE_BANNED);
    sherd_cluster_close(c);
    unsetenv("SHERD_TEST_MISBEHAVE");
    free(a.memory);
    free(b.memory);
    free(out);
}

static void a_node_whose_connection_breaks_comes_back_with_the_operand_it_lost(void **state)
{
    (void)state;
    char program[256];
    sherd_product_options o;
    sherd_resident *kept;
    sherd_diag d = { 0 };
    misbehave("cut:2@node-1", program);
    sherd_cluster *c = open_nodes(3, program);
    sherd_product_options_init(&o);
    o.exact = true;
    operand b = make(60, 30, SHERD_F64);
    double *out = malloc(60 * 30 * 8);
    assert_int_equal(sherd_resident_new(&kept, c, b.v, 60, &o, NULL), 0);
    for (unsigned i = 0; i < 8; i++) {
        operand a = make(60, 60, SHERD_F64);
        if (sherd_resident_multiply(kept, a.v, out, 30, NULL, &d)) fail_msg("%s", d.message);
        must_equal(&o, a.v, b.v, out, 30);
        free(a.memory);
        usleep(i == 3 ? 700000 : 1000);
    }
    sherd_resident_free(kept);
    sherd_cluster_close(c);
    unsetenv("SHERD_TEST_MISBEHAVE");
    free(b.memory);
    free(out);
}

static void without_memory_a_call_fails_and_the_cluster_lives(void **state)
{
    (void)state;
    operand a = make(40, 40, SHERD_F64), b = make(40, 20, SHERD_F64);
    double *c = malloc(40 * 20 * 8);
    unsigned failed = 0, fine = 0;
    for (size_t n = 1; n < 400 && fine < 5; n++) {
        sherd_product_options o;
        sherd_report r;
        sherd_diag d = { 0 };
        sherd_product_options_init(&o);
        o.exact = n & 1;
        o.group = (uint32_t)(n % 3);
        (void)sherd__alloc_fail_nth(n);
        int err = sherd_multiply(cluster, a.v, b.v, c, 20, &o, &r, &d);
        (void)sherd__alloc_fail_nth(0);
        if (!err) must_equal(&o, a.v, b.v, c, 20);
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
        sherd_cluster_options o = { .local_nodes = 2, .program = getenv("SHERD"),
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

/* `per_mille` of the entries are not zero; none of every ninth row. */
static operand make_sparse(size_t rows, size_t cols, sherd_dtype t, unsigned per_mille)
{
    size_t size = sherd_dtype_size(t);
    operand o = { calloc(rows * cols + 1, size), sherd_view_c(NULL, t, rows, cols) };
    for (size_t i = 0; i < rows * cols; i++)
        if (i / (cols ? cols : 1) % 9 && below(1000) < per_mille)
            put(o.memory + i * size, t, 1 + (double)below(200));
    o.v.data = o.memory;
    return o;
}

static uint64_t spent(const sherd_product_options *o, operand a, operand b, sherd_report *r)
{
    multiply_with(cluster, o, a.v, b.v, r);
    uint64_t out = all(r->bytes_out);
    sherd_report numbers = { .encoding = r->encoding, .tasks = r->tasks,
                             .tasks_csr = r->tasks_csr };
    sherd_report_fini(r);
    *r = numbers;
    return out;
}

static void sparse_operands_give_the_reference_in_fewer_bytes(void **state)
{
    (void)state;
    static const unsigned densities[] = { 0, 1, 10, 50, 190, 400, 700, 1000 };
    static const sherd_dtype types[] = { SHERD_U8, SHERD_F64, SHERD_I32 };
    static const size_t sizes[][3] = { { 500, 120, 16 }, { 90, 300, 40 }, { 1, 64, 1 }, { 64, 1,
                                                                                          9 },
                                       { 0, 9, 9 },      { 9, 0, 9 },     { 9, 9, 0 } };
    uint8_t seed[32] = { 7 };
    for (unsigned round = 0; round < 56; round++) {
        const size_t *s = sizes[round / 8 % 7];
        unsigned density = densities[round % 8];
        sherd_dtype t = types[round % 3];
        operand a = make_sparse(s[0], s[1], t, density), b = make_any(s[1], s[2]);
        sherd_product_options o;
        sherd_report r;
        sherd_product_options_init(&o);
        o.seed = seed;
        o.scheme = (round ^ round / 8) & 1 ? SHERD_PLAIN : SHERD_PERMUTE;
        o.exact = round / 2 & 1;
        o.group = density == 190 || round % 5 ? 0 : 4;
        o.encoding = SHERD_ENCODING_DENSE;
        uint64_t dense = spent(&o, a, b, &r);
        assert_int_equal(r.encoding, SHERD_ENCODING_DENSE);
        assert_int_equal(r.tasks_csr, 0);
        o.encoding = SHERD_ENCODING_CSR;
        uint64_t csr = spent(&o, a, b, &r);
        assert_true(csr <= dense + 1000); /* heartbeats */
        if (r.tasks_csr == 0) assert_true(csr + 1000 >= dense);
        if (s[0] == 500 && density == 190) /* a fifth of the entries, with their columns */
            assert_true(r.tasks_csr == r.tasks && csr < dense - 10000);
        o.encoding = SHERD_ENCODING_AUTO;
        multiply_with(cluster, &o, a.v, b.v, &r);
        assert_in_range(r.encoding, SHERD_ENCODING_DENSE, SHERD_ENCODING_CSR);
        assert_true(r.encoding == SHERD_ENCODING_CSR || r.tasks_csr == 0);
        sherd_report_fini(&r);
        free(a.memory);
        free(b.memory);
    }
}

static void zeros_count_where_b_is_not_finite(void **state)
{
    (void)state;
    operand a = make_sparse(40, 30, SHERD_F64, 100), b = make_sparse(30, 5, SHERD_F64, 1000);
    sherd_product_options o;
    sherd_report r;
    ((double *)(void *)b.memory)[7] = INFINITY;
    ((double *)(void *)b.memory)[33] = NAN;
    sherd_product_options_init(&o);
    o.encoding = SHERD_ENCODING_CSR;
    multiply_with(cluster, &o, a.v, b.v, &r);
    assert_int_equal(r.encoding, SHERD_ENCODING_DENSE);
    assert_int_equal(r.tasks_csr, 0);
    sherd_report_fini(&r);
    ((double *)(void *)b.memory)[7] = ((double *)(void *)b.memory)[33] = 1;
    ((double *)(void *)a.memory)[50] = INFINITY; /* of A they are values like others */
    ((double *)(void *)a.memory)[80] = NAN;
    multiply_with(cluster, &o, a.v, b.v, &r);
    assert_int_equal(r.encoding, SHERD_ENCODING_CSR);
    assert_true(r.tasks_csr > 0);
    sherd_report_fini(&r);
    free(a.memory);
    free(b.memory);
}

static void a_kept_operand_is_multiplied_by_sparse_and_dense_ones_in_turn(void **state)
{
    (void)state;
    for (unsigned exact = 0; exact < 2; exact++) {
        operand b = make_sparse(80, 30, SHERD_F64, 1000);
        sherd_product_options o;
        sherd_resident *kept;
        sherd_product_options_init(&o);
        o.exact = exact;
        assert_int_equal(sherd_resident_new(&kept, cluster, b.v, 200, &o, NULL), 0);
        for (unsigned round = 0; round < 4; round++) {
            operand a = make_sparse(200 - round, 80, SHERD_F64, round & 1 ? 1000 : 60);
            double *c = malloc(200 * 30 * 8);
            sherd_report r;
            assert_int_equal(sherd_resident_multiply(kept, a.v, c, 30, &r, NULL), 0);
            must_equal(&o, a.v, b.v, c, 30);
            /* Eight-byte values of which one in sixteen is there, or nearly all. */
            if (!exact) assert_int_equal(r.encoding, round & 1 ? SHERD_ENCODING_DENSE
                                                               : SHERD_ENCODING_CSR);
            sherd_report_fini(&r);
            free(c);
            free(a.memory);
        }
        sherd_resident_free(kept);
        free(b.memory);
    }
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_combination_of_options_gives_the_reference),
        T(nan_and_infinity_come_out_as_from_one_machine),
        T(one_node_does_it_all),
        T(the_exposure_bound_is_kept_or_the_call_fails),
        T(progress_never_goes_back),
        T(a_call_whose_time_is_over_ends_and_the_next_one_works),
        T(an_interrupted_call_ends_and_the_next_one_works),
        T(a_resident_operand_travels_once),
        T(a_resident_operand_that_failed_says_so_and_others_go_on),
        T(element_wise_operations_give_the_promised_bits),
        T(a_multiplier_over_nodes_gives_the_bits_of_this_machine),
        T(an_operand_that_is_sent_again_shows_each_node_what_it_has_seen),
        T(products_of_one_operand_show_each_node_the_same_columns),
        T(what_was_taken_over_still_counts_when_an_operand_is_sent_again),
        T(both_directions_of_a_kept_operand_share_its_bound),
        T(a_node_counts_each_task_once),
        T(sparse_operands_give_the_reference_in_fewer_bytes),
        T(zeros_count_where_b_is_not_finite),
        T(a_kept_operand_is_multiplied_by_sparse_and_dense_ones_in_turn),
        T(stored_metadata_gives_what_its_seed_gives),
        T(a_liar_ends_a_strict_call_and_is_left_out_of_others),
        T(a_node_whose_connection_breaks_comes_back_with_the_operand_it_lost),
        T(without_memory_a_call_fails_and_the_cluster_lives),
        T(without_memory_a_cluster_does_not_open_and_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
