/* Predictions for products without nodes, and limits that are reported with figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/plan/prepare.h"
#include "sherd/forecast.h"
#include "tests/support/under_valgrind.h"
#include "wire/identity.h"

#define MEMORY (UINT64_C(1) << 24)

static const double zeros[30 * 20];

static sherd_product_options options(void)
{
    static const uint8_t seed[32] = { 1, 2, 3 };
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.seed = seed;
    return o;
}

/* As many answers as code and nodes allow are needed to decode: 2 K + 2 T - 1 with K + T = 64. */
static void a_product_of_a_hundred_shares_can_be_predicted(void **state)
{
    (void)state;
    const sherd_view tall = { .rows = 128, .cols = 4, .dtype = SHERD_F64 },
                     right = { .rows = 4, .cols = 3, .dtype = SHERD_F64 };
    sherd_forecast f = { .size = sizeof f };
    sherd_forecast_options with = { .size = sizeof with, .node_memory = MEMORY };
    sherd_product_options o = options();
    o.scheme = SHERD_SHARE;
    for (with.nodes = 63; with.nodes < (under_valgrind() ? 64 : 130); with.nodes += 33) {
        sherd_diag d = { 0 };
        if (sherd_forecast_multiply(tall, right, &o, &with, &f, &d)) fail_msg("%s", d.message);
        uint32_t blocks = (with.nodes + 1) / 2 - 1;
        assert_int_equal(f.blocks, blocks < 63 ? blocks : 63);
        assert_int_equal(f.threshold, 2 * f.blocks + 1);
        assert_true(f.seconds > 0 && f.seconds_here > 0);
    }
}

/* The work of this machine is measured for a part of a large product and scaled by bytes. So it
 * grows with the product. Sixteen times the rows and columns have 256 times the answers; the bounds
 * leave room for a busy machine. */
static void the_work_of_a_large_product_is_scaled_from_a_part(void **state)
{
    (void)state;
    if (under_valgrind()) skip(); /* a comparison of times */
    const sherd_forecast_options with = {
        .size = sizeof with, .nodes = 4, .node_memory = MEMORY << 6, .remote = true
    };
    static const sherd_scheme schemes[] = { SHERD_PLAIN, SHERD_SHARE };
    for (size_t i = 0; i < 2; i++) {
        double here[2];
        for (size_t large = 0; large < 2; large++) {
            size_t side = large ? 40000 : 2500;
            const sherd_view a = { .dtype = SHERD_F64, .rows = side, .cols = 40 },
                             b = { .dtype = SHERD_F64, .rows = 40, .cols = side };
            sherd_forecast f = { .size = sizeof f };
            sherd_diag d = { 0 };
            sherd_product_options o = options();
            o.scheme = schemes[i];
            o.exact = o.scheme == SHERD_SHARE;
            if (sherd_forecast_multiply(a, b, &o, &with, &f, &d)) fail_msg("%s", d.message);
            assert_true(f.seconds > 0 && f.own_seconds > 0 && !f.local);
            here[large] = f.seconds_here;
        }
        assert_true(here[1] > 32 * here[0] && here[1] < 2048 * here[0]);
    }
}

static void a_forecast_that_fails_leaves_its_result(void **state)
{
    (void)state;
    const sherd_view a = { .rows = 8, .cols = 4, .dtype = SHERD_F64 },
                     b = { .rows = 4, .cols = 3, .dtype = SHERD_F64 };
    sherd_forecast_options with = {
        .size = sizeof with, .nodes = 3, .remote = true, .no_time = true
    };
    sherd_forecast f = { .size = sizeof f, .tasks = 77, .bound = "mine" };
    sherd_product_options o = options();
    sherd_diag d = { 0 };
    assert_int_equal(sherd_forecast_multiply(a, a, &o, &with, &f, NULL), SHERD_ESHAPE);
    with.nodes = 65536;
    assert_int_equal(sherd_forecast_multiply(a, b, &o, &with, &f, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "a forecast for 65536 nodes: expected at most 65535");
    assert_true(f.tasks == 77 && strcmp(f.bound, "mine") == 0);
    with.nodes = 1000;
    d = (sherd_diag){ 0 };
    if (sherd_forecast_multiply(a, b, &o, &with, &f, &d)) fail_msg("%s", d.message);
    assert_int_equal(f.nodes, 1000);
}

static unsigned asked, ends_at;

static bool interrupted(void *ctx)
{
    (void)ctx;
    return ++asked == ends_at;
}

/* Ends the forecast at each of its questions. */
static void a_forecast_can_be_interrupted_at_each_question(void **state)
{
    (void)state;
    const sherd_view a = { .rows = 64, .cols = 40, .dtype = SHERD_F64 },
                     b = { .rows = 40, .cols = 30, .dtype = SHERD_F64 };
    const sherd_forecast_options with = { .size = sizeof with,
                                          .nodes = 3,
                                          .node_memory = MEMORY,
                                          .rates = { .session = 1e9, .link = 1e9 },
                                          .hooks = { .interrupted = interrupted } };
    sherd_forecast f = { .size = sizeof f, .tasks = 77 };
    sherd_product_options o = options();
    int err = SHERD_EINTERRUPTED;
    for (ends_at = 1; err && ends_at < 100; ends_at++) {
        sherd_diag d = { 0 };
        asked = 0;
        err = sherd_forecast_multiply(a, b, &o, &with, &f, &d);
        if (!err) break;
        assert_int_equal(err, SHERD_EINTERRUPTED);
        assert_string_equal(d.message, "interrupted");
        assert_true(asked == ends_at && f.tasks == 77);
    }
    /* For each operand, slot, round and part of the measurement, and while cells are hidden. */
    assert_true(err == 0 && asked >= 15 && f.tasks != 77);
}

/* Writes a node file of these lines, each with a key of its own; *with refers to it. */
static void list_nodes(char path[32], const char *const *lines, uint32_t len,
                       sherd_forecast_options *with)
{
    strcpy(path, "/tmp/sherd-nodes-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (uint32_t i = 0; i < len; i++) {
        sherd__peer p = { .key = { { (uint8_t)i } } };
        char text[SHERD__FINGERPRINT_TEXT];
        sherd__fingerprint_text(&p.key, text);
        dprintf(fd, "%s key=%s\n", lines[i], text);
    }
    close(fd);
    *with = (sherd_forecast_options){ .size = sizeof(sherd_forecast_options),
                                      .nodes_file = path,
                                      .node_memory = MEMORY,
                                      .no_time = true };
}

static void a_prediction_uses_the_domains_of_a_node_file(void **state)
{
    (void)state;
    static const char *const lines[][4] = {
        { "10.0.0.1:7 domain=a", "10.0.0.2:7 domain=a", "10.0.0.3:7 domain=b",
          "* role=coordinator" },
        { "10.0.0.1:7 domain=a", "10.0.0.2:7 domain=b", "10.0.0.3:7 domain=c",
          "* role=coordinator" },
        { "10.0.0.1:7 domain=a", "10.0.0.2:7 domain=b", "one.test:7", "* role=coordinator" },
        { "10.0.0.1:7 domain=a", "10.0.0.2:7 domain=b", "10.0.0.2:8 domain=c",
          "* role=coordinator" },
        { "localhost:7 domain=a", "127.0.0.9:7 domain=b", "[::1]:8 domain=c",
          "* role=coordinator" },
    };
    static const int coded[] = { SHERD_EFEWNODES, SHERD_OK, SHERD_EFORMAT, SHERD_EFORMAT,
                                 SHERD_EFORMAT };
    const sherd_view a = sherd_view_c(zeros, SHERD_F64, 30, 20),
                     b = sherd_view_c(zeros, SHERD_F64, 20, 10);
    for (uint32_t i = 0; i < 5; i++) {
        char path[32], text[1024] = "";
        sherd_forecast_options with = { .size = sizeof with };
        sherd_forecast f = { .size = sizeof f };
        sherd_product_options o = options();
        sherd_diag d = { 0 };
        list_nodes(path, lines[i], 4, &with);
        o.balanced = true;
        assert_int_equal(sherd_forecast_multiply(a, b, &o, &with, &f, &d), SHERD_OK);
        assert_int_equal(f.nodes, 3);
        double most = i == 0 ? 14.0 / 20 : 7.0 / 20;
        if (fabs(f.exposure_a - most) > 0.051) fail_msg("%u: %g", i, f.exposure_a);
        o.scheme = SHERD_SHARE;
        int err = sherd_forecast_multiply(a, b, &o, &with, &f, &d);
        if (err != coded[i]) fail_msg("%u: %d, %s", i, err, d.message);
        with.same_host_domains = true;
        d = (sherd_diag){ 0 };
        err = sherd_forecast_multiply(a, b, &o, &with, &f, &d);
        if (err != (i > 2 ? SHERD_OK : coded[i])) fail_msg("%u: %d, %s", i, err, d.message);
        int fd = open(path, O_RDONLY);
        assert_true(read(fd, text, sizeof text - 1) > 0);
        close(fd);
        with.nodes_file = "/nowhere/at/all";
        assert_int_equal(sherd_forecast_multiply(a, b, &o, &with, &f, &d), SHERD_EOPEN);
        with.nodes_text = text;
        assert_int_equal(sherd_forecast_multiply(a, b, &o, &with, &f, &d), err);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_of_a_hundred_shares_can_be_predicted),
        cmocka_unit_test(a_prediction_uses_the_domains_of_a_node_file),
        cmocka_unit_test(a_forecast_that_fails_leaves_its_result),
        cmocka_unit_test(a_forecast_can_be_interrupted_at_each_question),
        cmocka_unit_test(the_work_of_a_large_product_is_scaled_from_a_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
