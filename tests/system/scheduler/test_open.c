/*
 * Clusters opened from a node file: nodes that are up, nodes that never come up, nodes with another
 * key, and nodes that leave between two products.
 *
 * link: -Wl,--wrap=getaddrinfo
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/cluster/internal.h"
#include "scheduler/cluster/launch.h"
#include "tests/support/send_signal.h"
#include "sherd/product.h"
#include "tests/support/far_resolver.h"
#include "tests/system/scheduler/local_nodes.h"

#define UP 3u

static char dir[] = "/tmp/sherd-open-XXXXXX", key_file[64], node_file[64];
static sherd_identity *me, *stranger;
static sherd__launch *nodes;

static int begin(void **state)
{
    (void)state;
    sherd_diag d = { 0 };
    signal(SIGPIPE, SIG_IGN);
    assert_non_null(mkdtemp(dir));
    snprintf(key_file, sizeof key_file, "%s/key", dir);
    snprintf(node_file, sizeof node_file, "%s/nodes", dir);
    assert_int_equal(sherd_identity_new(&me, NULL) | sherd_identity_new(&stranger, NULL), SHERD_OK);
    assert_int_equal(sherd_identity_save(me, key_file, NULL), SHERD_OK);
    sherd__launch_options o = { .nodes = UP,
                                .program = getenv("SHERD"),
                                .memory = 64 << 20,
                                .allow = *sherd__identity_fingerprint(me) };
    if (sherd__launch_start(&nodes, &o, &d)) fail_msg("%s", d.message);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sherd__launch_stop(nodes, 0);
    sherd_identity_free(me);
    sherd_identity_free(stranger);
    unlink(key_file);
    unlink(node_file);
    return rmdir(dir);
}

/* Returns a port on which no process listens. */
static uint16_t dead_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

/* Writes the launched nodes, each in its own domain unless `together`, and optionally one more. */
static void write_nodes(const sherd__peer *more, bool together)
{
    FILE *f = fopen(node_file, "we");
    assert_non_null(f);
    for (uint32_t i = 0; i < UP + (more != NULL); i++) {
        char line[1200];
        sherd__peer p = i < UP ? sherd__launch_node(nodes, i)->peer : *more;
        snprintf(p.domain, sizeof p.domain, "d%u", together ? 0 : i);
        (void)sherd__peer_format(&p, line, sizeof line);
        fprintf(f, "%s\n", line);
    }
    assert_int_equal(fclose(f), 0);
}

static sherd__peer nobody(uint16_t port)
{
    sherd__peer p = {
        .host = "127.0.0.1", .port = port, .has_key = true, .weight = 1, .name = "absent"
    };
    p.key = *sherd__identity_fingerprint(stranger);
    return p;
}

static int open_file(sherd_cluster **c, uint32_t nodes_min, sherd_diag *d)
{
    sherd_cluster_options o = { .size = sizeof o,
                                .nodes_file = node_file,
                                .key_file = key_file,
                                .nodes_min = nodes_min,
                                .connect_timeout_ms = 3000 };
    return sherd_cluster_open(c, &o, d);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void product_is_right(sherd_cluster *c, sherd_report *r)
{
    static double a[50 * 40], b[40 * 30], out[50 * 30];
    sherd_product_options o = { .size = sizeof o };
    sherd_diag d = { 0 };
    double began = now();
    for (unsigned i = 0; i < 2000; i++) a[i] = (double)(i % 17) - 8;
    for (unsigned i = 0; i < 1200; i++) b[i] = (double)(i % 13) - 6;
    o.balanced = true;
    if (sherd_multiply(c, sherd_view_c(a, SHERD_F64, 50, 40), sherd_view_c(b, SHERD_F64, 40, 30),
                       out, 30, &o, r, &d))
        fail_msg("%s", d.message);
    assert_true(now() - began < 10);
    for (unsigned i = 0; i < 50; i++) {
        for (unsigned j = 0; j < 30; j++) {
            double sum = 0;
            for (unsigned k = 0; k < 40; k++) sum += a[i * 40 + k] * b[k * 30 + j];
            assert_true(sum == out[i * 30 + j]); /* small whole numbers: exact in any order */
        }
    }
}

static void options_must_name_the_nodes(void **state)
{
    (void)state;
    sherd_cluster *c;
    sherd_cluster_options none = { .size = sizeof none },
                          both = { .size = sizeof both, .local_nodes = 1, .nodes_file = node_file };
    sherd_cluster_options keyless = { .size = sizeof keyless, .nodes_file = node_file };
    assert_int_equal(sherd_cluster_open(&c, &none, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_cluster_open(&c, &both, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_cluster_open(&c, &keyless, NULL), SHERD_EINVAL);
    assert_null(c);
    sherd_cluster_close(NULL);
}

static void the_nodes_of_a_file_do_the_work(void **state)
{
    (void)state;
    sherd_cluster *c;
    sherd_diag d = { 0 };
    sherd_report r = { .size = sizeof r };
    write_nodes(NULL, false);
    for (unsigned i = 0; i < 2; i++) { /* and once more, over new connections */
        if (open_file(&c, 0, &d)) fail_msg("%s", d.message);
        assert_int_equal(sherd_cluster_size(c), UP);
        assert_true(sherd_cluster_simulated(c)); /* all are on loopback */
        product_is_right(c, &r);
        assert_int_equal(r.nodes_lost, 0);
        sherd_report_fini(&r);
        sherd_cluster_close(c);
    }
}

static void plans_use_what_nodes_declare_of_their_devices(void **state)
{
    (void)state;
    sherd_cluster *c;
    sherd_diag d = { 0 };
    sherd__nodes all;
    double slowest = INFINITY;
    write_nodes(NULL, false);
    if (open_file(&c, 0, &d)) fail_msg("%s", d.message);
    sherd__cluster_refresh(c);
    sherd__cluster_nodes(c, &all);
    for (uint32_t i = 0; i < UP; i++) {
        sherd_node_info info = { .size = sizeof info };
        assert_int_equal(sherd_cluster_node_at(c, i, &info, NULL), 0);
        assert_int_equal(info.devices, 1);
        slowest = fmin(slowest, info.gflops);
    }
    assert_true(all.gflops == slowest && all.gflops > 0);
    assert_int_equal(all.cell, 1 << 20); /* as node/backends/cpu.c declares them */
    assert_int_equal(all.depth, 2);
    assert_false(all.no_csr);
    sherd_cluster_close(c);
}

static void a_node_that_never_comes_up_is_an_error_or_left_out(void **state)
{
    (void)state;
    sherd_cluster *c;
    sherd_diag d = { 0 };
    sherd_report r = { .size = sizeof r };
    sherd_node_info info = { .size = sizeof info };
    sherd__peer absent = nobody(dead_port());
    write_nodes(&absent, false);
    assert_int_not_equal(open_file(&c, 0, &d), SHERD_OK);
    assert_null(c);
    assert_non_null(strstr(d.message, "3 of 4 nodes are up; absent"));
    assert_int_equal(open_file(&c, 4, NULL) < 0, 1);
    if (open_file(&c, 3, &d)) fail_msg("%s", d.message);
    for (unsigned i = 0; i < 2; i++) {
        product_is_right(c, &r);
        assert_int_equal(r.nodes_lost, 0); /* it was never up */
        assert_true(r.planned[3] == 10 && r.exposed_a[3] == 0);
        sherd_report_fini(&r);
    }
    assert_int_equal(sherd_cluster_node_at(c, 3, &info, NULL), 0);
    assert_int_not_equal(info.state, SHERD_NODE_UP);
    assert_string_equal(info.name, "absent");
    sherd_cluster_close(c);
}

/* Returns a port that does not answer: the kernel accepts connections, and nothing is sent on
 * them. */
static uint16_t mute_port(int *fd)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(*fd, 8), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

#define TRIES 20 /* of cases for which this machine is sometimes too busy */

static void opening_beyond_the_time_limit_is_a_timeout_for_any_number_of_nodes(void **state)
{
    (void)state;
    int fd;
    sherd__peer mute = nobody(mute_port(&fd));
    write_nodes(&mute, false);
    for (uint32_t least = 1; least <= 4; least += 3) {
        bool others_up = false;
        for (unsigned i = 0; i < TRIES && !others_up; i++) {
            sherd_cluster *c;
            sherd_diag d = { 0 };
            sherd_cluster_options o = { .size = sizeof o,
                                        .nodes_file = node_file,
                                        .key_file = key_file,
                                        .nodes_min = least,
                                        .timeout_ms = 700 };
            double began = now();
            assert_int_equal(sherd_cluster_open(&c, &o, &d), SHERD_ETIMEOUT);
            assert_null(c);
            others_up = now() - began < 5 &&
                        strstr(d.message, "3 of 4 nodes are up, absent (127.0.0.1:");
        }
        assert_true(others_up);
    }
    for (uint32_t ms = 1; ms <= 400; ms *= 7) { /* local nodes: before and while they start */
        double took = 2;
        for (unsigned i = 0; i < TRIES && took >= ms * 1e-3 + 1; i++) {
            sherd_cluster *c;
            sherd_cluster_options o = {
                .size = sizeof o, .local_nodes = 2, .program = getenv("SHERD"), .timeout_ms = ms
            };
            double began = now();
            int err = sherd_cluster_open(&c, &o, NULL);
            took = now() - began;
            if (err || ms == 1) assert_int_equal(err, SHERD_ETIMEOUT); /* none starts in 1 ms */
            sherd_cluster_close(c);
        }
        assert_true(took < ms * 1e-3 + 1);
    }
    close(fd);
}

static void an_absent_node_is_named_once_with_one_hint(void **state)
{
    (void)state;
    sherd_cluster *c;
    sherd_diag d = { 0 };
    char address[32];
    sherd__peer absent = nobody(dead_port());
    snprintf(address, sizeof address, "127.0.0.1:%u", absent.port);
    write_nodes(&absent, false);
    assert_true(open_file(&c, 0, &d) < 0);
    const char *first = strstr(d.message, address);
    assert_non_null(first);
    assert_null(strstr(first + 1, address));
    assert_null(strchr(d.message, '?')); /* the hint is not part of the message */
    assert_string_equal(d.hint, "is a node running there?");
}

static char told[4000];

static void hear(void *ctx, sherd_log_level level, const char *text)
{
    (void)ctx;
    if (level >= SHERD_LOG_WARN)
        snprintf(told + strlen(told), sizeof told - strlen(told), "%s\n", text);
}

static void a_node_with_another_key_is_named_and_left_out(void **state)
{
    (void)state;
    sherd_cluster *c;
    sherd_diag d = { 0 };
    sherd_report r = { .size = sizeof r };
    sherd_cluster_options o = { .size = sizeof o,
                                .nodes_file = node_file,
                                .key_file = key_file,
                                .nodes_min = UP,
                                .connect_timeout_ms = 3000,
                                .hooks = { .log = hear } };
    sherd__peer false_key = nobody(sherd__launch_node(nodes, 0)->peer.port);
    write_nodes(&false_key, false);
    told[0] = '\0';
    if (sherd_cluster_open(&c, &o, &d)) fail_msg("%s", d.message);
    for (unsigned i = 0; i < 2; i++) {
        product_is_right(c, &r);
        assert_true(r.exposed_a[3] == 0);
        sherd_report_fini(&r);
    }
    sherd_cluster_close(c);
    if (!strstr(told, "continuing with 3 of 4 nodes; absent (127.0.0.1:")) fail_msg("%s", told);
    assert_null(strstr(told, "takes over")); /* it was already reported that it takes no part */
    int err = open_file(&c, UP + 1, &d);     /* if it is needed, the error says why it is absent */
    assert_true(err < 0);
    assert_int_equal(sherd_err_class(err), SHERD_BLAME_PEER);
    assert_non_null(strstr(d.message, "absent"));
    assert_null(c);
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

static void an_unresponsive_name_server_does_not_delay_the_others(void **state)
{
    (void)state;
    static const struct {
        uint32_t timeout_ms, connect_ms;
        bool stop;
        int err;
        const char *says;
    } ways[] = {
        { 200, 0, false, SHERD_ETIMEOUT, "the name slow.example is not resolved" },
        { 0, 0, true, SHERD_EINTERRUPTED, "interrupted" },
        { 0, 200, false, SHERD_ECONNECT, "its name is not resolved" },
        { 600, 400, false, SHERD_ETIMEOUT, "slow.example" }, /* while the link resolves the name */
    };
    sherd__peer absent = nobody(7000);
    snprintf(absent.host, sizeof absent.host, "slow.example");
    write_nodes(&absent, false);
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        sherd_cluster *c;
        sherd_diag d = { 0 };
        sherd_cluster_options o = { .size = sizeof o,
                                    .nodes_file = node_file,
                                    .key_file = key_file,
                                    .timeout_ms = ways[i].timeout_ms,
                                    .connect_timeout_ms = ways[i].connect_ms,
                                    .hooks = { .interrupted = ways[i].stop ? always : NULL } };
        double began = now();
        assert_int_equal(sherd_cluster_open(&c, &o, &d), ways[i].err);
        assert_true(now() - began < 5);
        if (!strstr(d.message, ways[i].says)) fail_msg("%u: %s", i, d.message);
    }
    far_release();
}

static void the_weight_of_a_line_is_reported_with_its_node(void **state)
{
    (void)state;
    static const double weights[] = { 2, 1, 0.5 };
    for (unsigned i = 0; i < 3; i++) {
        sherd_cluster *c;
        sherd_diag d = { 0 };
        sherd_cluster_options o = { .size = sizeof o,
                                    .nodes_file = node_file,
                                    .key_file = key_file,
                                    .hooks = { .log = hear },
                                    .nodes_min = UP,
                                    .connect_timeout_ms = 3000 };
        sherd__peer absent = nobody(dead_port());
        absent.weight = weights[i];
        write_nodes(&absent, false);
        told[0] = '\0';
        if (sherd_cluster_open(&c, &o, &d)) fail_msg("%s", d.message);
        for (uint32_t k = 0; k < sherd_cluster_size(c); k++) {
            sherd_node_info n = { .size = sizeof n };
            assert_int_equal(sherd_cluster_node_at(c, k, &n, NULL), SHERD_OK);
            assert_true(n.weight == (strcmp(n.name, "absent") == 0 ? weights[i] : 1));
        }
        sherd_cluster_close(c);
        assert_null(strstr(told, "weight=")); /* it has no effect under some schemes only */
    }
}

static void nodes_of_one_domain_count_as_one_adversary(void **state)
{
    (void)state;
    sherd_cluster *c;
    sherd_diag d = { 0 };
    sherd_report r = { .size = sizeof r };
    write_nodes(NULL, true);
    if (open_file(&c, 0, &d)) fail_msg("%s", d.message);
    product_is_right(c, &r);
    for (uint32_t i = 0; i < UP; i++) assert_true(r.exposed_a[i] == 1);
    sherd_report_fini(&r);
    sherd_cluster_close(c);
}

static void nodes_that_end_between_two_products_are_left_out(void **state)
{
    (void)state;
    sherd_cluster *c;
    sherd_diag d = { 0 };
    sherd_report r = { .size = sizeof r };
    static double a[20 * 20], b[20 * 20], out[400];
    sherd_resident *kept;
    sherd_product_options o = { .size = sizeof o };
    write_nodes(NULL, false);
    if (open_file(&c, 0, &d)) fail_msg("%s", d.message);
    for (unsigned i = 0; i < 400; i++) a[i] = b[i] = (double)(i % 5);
    sherd_view va = sherd_view_c(a, SHERD_F64, 20, 20), vb = sherd_view_c(b, SHERD_F64, 20, 20);
    assert_int_equal(sherd_resident_new(&kept, c, vb, 20, &o, NULL), SHERD_OK);
    assert_int_equal(sherd_resident_multiply(kept, va, out, 20, NULL, NULL), SHERD_OK);
    assert_int_equal(send_signal(sherd__launch_node(nodes, 1)->pid, SIGKILL), 0);
    local_gone(c, 1); /* no call is in progress, so the kept job is not notified */
    if (sherd_resident_multiply(kept, va, out, 20, NULL, &d)) fail_msg("%s", d.message);
    for (unsigned i = 0; i < 400; i++) {
        double sum = 0;
        for (unsigned k = 0; k < 20; k++) sum += a[i / 20 * 20 + k] * b[k * 20 + i % 20];
        assert_true(sum == out[i]);
    }
    product_is_right(c, &r);
    assert_int_equal(r.nodes_lost, 0); /* not in this call */
    assert_true(r.exposed_a[1] == 0);
    sherd_report_fini(&r);
    assert_int_equal(send_signal(sherd__launch_node(nodes, 2)->pid, SIGKILL), 0);
    local_gone(c, 2);
    sherd_resident_free(kept); /* it drops blocks at nodes that no longer exist */
    sherd_cluster_close(c);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(options_must_name_the_nodes),
        T(the_nodes_of_a_file_do_the_work),
        T(plans_use_what_nodes_declare_of_their_devices),
        T(a_node_that_never_comes_up_is_an_error_or_left_out),
        T(opening_beyond_the_time_limit_is_a_timeout_for_any_number_of_nodes),
        T(an_absent_node_is_named_once_with_one_hint),
        T(a_node_with_another_key_is_named_and_left_out),
        T(an_unresponsive_name_server_does_not_delay_the_others),
        T(the_weight_of_a_line_is_reported_with_its_node),
        T(nodes_of_one_domain_count_as_one_adversary),
        T(nodes_that_end_between_two_products_are_left_out), /* last, since it ends nodes */
    };
    return cmocka_run_group_tests(tests, begin, end);
}
