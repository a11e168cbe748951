/*
 * Operands that stay at nodes, separately and in multipliers: the bytes sent, and the exposure when
 * an operand is sent again, taken over or multiplied from both sides; tasks are counted once.
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

#include "matrix/view.h"
#include "scheduler/cluster/internal.h"
#include "tests/support/send_signal.h"
#include "sherd/multiplier.h"
#include "tests/system/scheduler/local_nodes.h"
#include "tests/system/scheduler/product_world.h"

static void a_resident_operand_is_sent_once(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 24; round++) {
        sherd_product_options o = { .size = sizeof o };
        sherd_resident *kept;
        sherd_diag d = { 0 };
        o.exact = round & 1;
        o.scheme = round & 2 ? SHERD_PERMUTE : SHERD_PLAIN;
        o.group = round % 3;
        size_t k = 90, m = 110, n_max = 50;
        operand b = operand_new(k, m, round & 4 ? SHERD_F64 : SHERD_F32);
        if (sherd_resident_new(&kept, cluster, b.v, n_max, &o, &d)) fail_msg("%s", d.message);
        uint64_t sent = 0;
        static const size_t rows[] = { 3, 50, 1, 0, 17, 2 };
        for (unsigned i = 0; i < 6; i++) {
            operand a = operand_new(rows[i], k, i & 1 ? SHERD_F64 : SHERD_F32);
            double *c = malloc((rows[i] + 1) * m * 8);
            sherd_report r = { .size = sizeof r };
            if (sherd_resident_multiply(kept, a.v, c, m, &r, &d)) fail_msg("%s", d.message);
            operand_must_equal(&o, a.v, b.v, c, m);
            uint64_t b_bytes = k * m * 2; /* the minimum without messages */
            sent += bytes_of_all(r.bytes_out);
            if (i == 1) assert_true(sent > b_bytes); /* by then all nodes have rows */
            if (i > 1) assert_true(bytes_of_all(r.bytes_out) < rows[i] * k * 8 + 20000);
            sherd_report_fini(&r);
            free(c);
            free(a.memory);
        }
        operand wide = operand_new(n_max + 1, k, SHERD_F64);
        double c[60 * 110];
        assert_int_equal(sherd_resident_multiply(kept, wide.v, c, m, NULL, NULL), SHERD_ESHAPE);
        free(wide.memory);
        sherd_resident_free(kept);
        free(b.memory);
    }
}

static void a_failed_resident_operand_reports_its_error_and_others_continue(void **state)
{
    (void)state;
    sherd_product_options o = { .size = sizeof o };
    sherd_resident *kept, *other;
    sherd_diag d = { 0 };
    size_t n = 4000, k = 300, m = 300;
    operand a = operand_new(n, k, SHERD_F64), b = operand_new(k, m, SHERD_F64);
    operand few = operand_new(5, k, SHERD_F64);
    double *c = malloc(n * m * 8);
    assert_int_equal(sherd_resident_new(&other, cluster, b.v, 10, &o, NULL), SHERD_OK);
    o.timeout_ms = 1;
    o.group = 1;
    assert_int_equal(sherd_resident_new(&kept, cluster, b.v, n, &o, NULL), SHERD_OK);
    assert_int_equal(sherd_resident_multiply(kept, a.v, c, m, NULL, NULL), SHERD_ETIMEOUT);
    assert_int_equal(sherd_resident_multiply(kept, few.v, c, m, NULL, &d), SHERD_EINVAL);
    o.timeout_ms = 0;
    assert_int_equal(sherd_resident_multiply(other, few.v, c, m, NULL, NULL), SHERD_OK);
    operand_must_equal(&o, few.v, b.v, c, m);
    sherd_resident_free(kept);
    assert_int_equal(sherd_resident_multiply(other, few.v, c, m, NULL, NULL), SHERD_OK);
    operand_must_equal(&o, few.v, b.v, c, m);
    sherd_resident_free(other);
    free(a.memory);
    free(b.memory);
    free(few.memory);
    free(c);
}

static void script(sherd_multiplier m, double *out)
{
    double x[30 * 20], y[20 * 25], z[30 * 25];
    sherd_kept *kept;
    for (size_t i = 0; i < 600; i++) x[i] = sin((double)i) * 3;
    for (size_t i = 0; i < 500; i++) y[i] = i % 4 ? cos((double)i) : 0;
    for (size_t i = 0; i < 750; i++) z[i] = (double)(i % 11) - 5;
    sherd_view vx = sherd_view_c(x, SHERD_F64, 30, 20), vz = sherd_view_c(z, SHERD_F64, 30, 25);
    assert_int_equal(sherd_multiplier_keep(&kept, m, vx, NULL, NULL), 0);
    memset(x, 0, sizeof x); /* the values were copied */
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
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_SIGMOID, vz, vz, out, 25, NULL), 0);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_TIMES, vz, vz, out + 800, 25, NULL), 0);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_TANH, vz, vz, z, 25, NULL), 0); /* in place */
    memcpy(out + 1600, z, sizeof z);
}

static void a_multiplier_over_nodes_gives_the_bits_of_this_machine(void **state)
{
    (void)state;
    static double here[12000], there[12000];
    for (unsigned scheme = SHERD_PERMUTE; scheme <= SHERD_PLAIN; scheme++) {
        sherd_multiplier local, remote;
        sherd_product_options o = { .size = sizeof o };
        o.scheme = (sherd_scheme)scheme;
        o.exact = true;
        memset(here, 0, sizeof here);
        memset(there, 0, sizeof there);
        assert_int_equal(sherd_multiplier_local(&local, o.bits ? o.bits : SHERD__FIXED_BITS, NULL),
                         0);
        assert_int_equal(sherd_multiplier_cluster(&remote, cluster, &o, NULL), 0);
        script(local, here);
        script(remote, there);
        assert_memory_equal(here, there, sizeof here);
        sherd_multiplier_free(local);
        sherd_multiplier_free(remote);
    }
    sherd_multiplier none;
    sherd_product_options o = { .size = sizeof o };
    o.shuffle_rows = true;
    assert_int_equal(sherd_multiplier_cluster(&none, cluster, &o, NULL), SHERD_EUNSUPPORTED);
    assert_null(none.ops);
}

/* Bytes of blocks and tasks: the number of heartbeats in between depends on the machine. */
static void bytes_to(uint64_t out[NODES])
{
    sherd_node_info info = { .size = sizeof info };
    sherd__cluster_refresh(cluster);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(sherd_cluster_node_at(cluster, i, &info, NULL), 0);
        out[i] = info.work_out;
    }
}

static void an_operand_sent_again_shows_each_node_the_same_entries(void **state)
{
    (void)state;
    enum { K = 200 };
    static double k[K * K], b[K * 2], c[K * 2];
    uint64_t bytes[4][NODES];
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_product_options o = { .size = sizeof o };
    for (unsigned i = 0; i < K * K; i++) k[i] = i + 0.5;
    for (unsigned i = 0; i < K * 2; i++) b[i] = i;
    assert_int_equal(sherd_multiplier_cluster(&m, cluster, &o, NULL), 0);
    assert_int_equal(sherd_multiplier_keep(&kept, m, sherd_view_c(k, SHERD_F64, K, K), NULL, NULL),
                     0);
    /* One column, again, then two: too many for the first plan */
    for (unsigned i = 0; i < 4; i++) {
        size_t w = i < 2 ? 1 : 2;
        bytes_to(bytes[i]);
        if (i == 3) break;
        assert_int_equal(sherd_multiplier_multiply_kept(m, kept, false,
                                                        sherd_view_c(b, SHERD_F64, K, w), c, w,
                                                        NULL),
                         0);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        uint64_t first = bytes[1][i] - bytes[0][i], same = bytes[2][i] - bytes[1][i];
        uint64_t anew = bytes[3][i] - bytes[2][i];
        assert_true(first > 20 * K * 8 && same < 3000);
        assert_true(anew > first - 1400 && anew < first + 1400); /* one more column would be 1600 */
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
    sherd_product_options o = { .size = sizeof o };
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
        for (uint32_t n = 0; n < NODES; n++) { /* one more column would be 400 */
            uint64_t first = bytes[1][n] - bytes[0][n], next = bytes[i + 1][n] - bytes[i][n];
            assert_true(first > 20 * N * 8 && next < first + 200 && first < next + 200);
        }
    }
    sherd_multiplier_free(m);
}

/* Which node took over from which, according to the log. */
static struct takeover {
    char to[64], from[64];
} takeovers[8];
static unsigned takeovers_len, losses;

static void note_takeovers(void *ctx, sherd_log_level level, const char *text)
{
    struct takeover t;
    char address[64];
    (void)ctx;
    (void)level;
    losses += strstr(text, ") lost: ") != NULL;
    if (takeovers_len < 8 &&
        sscanf(text, "%63s %63s takes over from %63s", t.to, address, t.from) == 3)
        takeovers[takeovers_len++] = t;
}

static void a_takeover_still_counts_when_an_operand_is_sent_again(void **state)
{
    (void)state;
    enum { K = 40 };
    static double k[K * K], b[K * 2], c[K * 2];
    sherd_cluster *four;
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_product_options o = { .size = sizeof o };
    sherd_diag d = { 0 };
    sherd_cluster_options co = { .size = sizeof co,
                                 .local_nodes = 4,
                                 .program = getenv("SHERD"),
                                 .hooks = { .log = note_takeovers } };
    if (sherd_cluster_open(&four, &co, &d)) fail_msg("%s", d.message);
    o.balanced = true; /* a quarter for each; the bound is a half */
    takeovers_len = losses = 0;
    assert_int_equal(sherd_multiplier_cluster(&m, four, &o, NULL), 0);
    assert_int_equal(sherd_multiplier_keep(&kept, m, sherd_view_c(k, SHERD_F64, K, K), NULL, NULL),
                     0);
    for (unsigned w = 1; w <= 2; w++) { /* two columns: the operand is sent again */
        send_signal(local_pid(four, 4 - w), SIGKILL);
        local_gone(four, 4 - w);
        if (sherd_multiplier_multiply_kept(m, kept, false, sherd_view_c(b, SHERD_F64, K, w), c, w,
                                           &d))
            fail_msg("%s", d.message);
    }
    assert_true(takeovers_len >= 2);
    assert_int_equal(losses, 2); /* a lost node is named between products, too */
    for (unsigned i = 0; i < takeovers_len; i++)
        for (unsigned j = 0; j < i; j++)
            if (strcmp(takeovers[i].to, takeovers[j].to) == 0)
                assert_string_equal(takeovers[i].from, takeovers[j].from);
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
    sherd_cluster_close(four);
}

static void both_orientations_of_a_kept_operand_share_its_bound(void **state)
{
    (void)state;
    enum { K = 40 };
    static double k[K * K], b[K], c[K];
    uint64_t before[NODES], after[NODES];
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_product_options o = { .size = sizeof o };
    sherd_diag d = { 0 };
    o.balanced = true;
    o.exposure_max = 0.3;
    assert_int_equal(sherd_multiplier_cluster(&m, cluster, &o, NULL), 0);
    assert_int_equal(sherd_multiplier_keep(&kept, m, sherd_view_c(k, SHERD_F64, K, K), NULL, NULL),
                     0);
    sherd_view v = sherd_view_c(b, SHERD_F64, K, 1);
    assert_int_equal(sherd_multiplier_multiply_kept(m, kept, false, v, c, 1, NULL), 0);
    bytes_to(before);
    assert_int_equal(sherd_multiplier_multiply_kept(m, kept, true, v, c, 1, &d), SHERD_EEXPOSURE);
    assert_non_null(strstr(d.message, "the plan gives node-1's domain 0.5 of B"));
    bytes_to(after);
    assert_memory_equal(after, before, sizeof after);
    assert_int_equal(sherd_multiplier_multiply_kept(m, kept, false, v, c, 1, NULL), 0);
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
}

static void a_node_counts_each_task_once(void **state)
{
    (void)state;
    uint64_t before = 0, after = 0, told = 0;
    sherd_node_info info = { .size = sizeof info };
    sherd_resident *kept;
    sherd_report r = { .size = sizeof r };
    sherd_product_options o = { .size = sizeof o };
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(sherd_cluster_node_at(cluster, i, &info, NULL), 0);
        before += info.tasks;
    }
    operand a = operand_new(20, 20, SHERD_F64), b = operand_new(20, 20, SHERD_F64);
    double c[400];
    assert_int_equal(sherd_resident_new(&kept, cluster, b.v, 20, &o, NULL), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(sherd_resident_multiply(kept, a.v, c, 20, &r, NULL), 0);
        told += r.tasks;
        sherd_report_fini(&r);
    }
    sherd_resident_free(kept);
    sherd__cluster_refresh(cluster); /* numbers that are published later count, too */
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(sherd_cluster_node_at(cluster, i, &info, NULL), 0);
        after += info.tasks;
    }
    assert_int_equal(after - before, told);
    free(a.memory);
    free(b.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resident_operand_is_sent_once),
        cmocka_unit_test(a_failed_resident_operand_reports_its_error_and_others_continue),
        cmocka_unit_test(a_multiplier_over_nodes_gives_the_bits_of_this_machine),
        cmocka_unit_test(an_operand_sent_again_shows_each_node_the_same_entries),
        cmocka_unit_test(products_of_one_operand_show_each_node_the_same_columns),
        cmocka_unit_test(a_takeover_still_counts_when_an_operand_is_sent_again),
        cmocka_unit_test(both_orientations_of_a_kept_operand_share_its_bound),
        cmocka_unit_test(a_node_counts_each_task_once),
    };
    return cmocka_run_group_tests(tests, cluster_begin, cluster_end);
}
