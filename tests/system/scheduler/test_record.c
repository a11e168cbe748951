/*
 * Records of both sides: the bytes that the coordinator has recorded as sent equal those that each
 * node has recorded as received, control messages included, and vice versa; their sizes equal the
 * counters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "tests/support/send_signal.h"
#include "sherd/npy.h"
#include "sherd/sherd.h"

#define NODES 3
#define SLACK 512 /* handshake and goodbye, which no product counts */

static char top[128], mine[160], nodes_file[160], a[160], b[160], c_out[160];
static command node[NODES];
static char record_of[NODES][200];
static unsigned sessions;

static int begin(void **s)
{
    (void)s;
    char allow[160], fingerprint[64], line[1024], text[NODES * 1100] = "", name[8];
    folder_new(top);
    snprintf(mine, sizeof mine, "%s/me.key", top);
    snprintf(allow, sizeof allow, "%s/allow", top);
    snprintf(nodes_file, sizeof nodes_file, "%s/nodes", top);
    snprintf(a, sizeof a, "%s/A.npy", top);
    snprintf(b, sizeof b, "%s/B.npy", top);
    snprintf(c_out, sizeof c_out, "%s/C.npy", top);
    matrix_file(a, 300, 260, 1);
    matrix_file(b, 260, 120, 2);
    key_file(mine, fingerprint);
    allow_file(allow, fingerprint);
    for (unsigned i = 0; i < NODES; i++) {
        const char *more[] = { "--record", record_of[i], "--memory", "256M", NULL };
        snprintf(record_of[i], sizeof record_of[i], "%s/seen-%u", top, i);
        snprintf(name, sizeof name, "n%u", i);
        node_start(&node[i], top, name, allow, more, line);
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s domain=d%u\n", line, i);
    }
    file_put(nodes_file, text, strlen(text));
    return 0;
}

static int end(void **s)
{
    (void)s;
    for (unsigned i = 0; i < NODES; i++) {
        send_signal(node[i].pid, SIGTERM);
        (void)command_wait(&node[i], 10000);
        command_free(&node[i]);
    }
    folder_remove(top);
    return 0;
}

/* The last bytes may still be in transit to the other side's file. */
static void must_agree(const char *sent, const char *received)
{
    int64_t deadline = clock_now_ms() + 30000 * patience();
    while (file_size(sent) != file_size(received) && clock_now_ms() < deadline) pause_ms(5);
    if (!files_equal(sent, received))
        fail_msg("%s (%lld bytes) and %s (%lld bytes) differ", sent, (long long)file_size(sent),
                 received, (long long)file_size(received));
    assert_true(file_size(sent) > 100);
}

static void must_count(json_t *of, const char *field, const char *file)
{
    int64_t counted = json_integer_value(json_object_get(of, field)), there = file_size(file);
    if (counted <= 0 || there < counted || there > counted + SLACK)
        fail_msg("%s: %lld counted, %lld recorded", field, (long long)counted, (long long)there);
}

/* Runs `sherd VERB... --nodes`, and compares all records that it and the nodes have written. */
static void recorded(const char *const *verb)
{
    char record[200];
    const char *argv[32] = { "sherd" };
    size_t n = 1;
    command k;
    snprintf(record, sizeof record, "%s/record-%u", top, ++sessions);
    while (*verb) argv[n++] = *verb++;
    const char *rest[] = { "-o",       c_out,  "--nodes", nodes_file, "--key", mine,
                           "--record", record, "--json",  "-q",       NULL };
    for (const char **r = rest; *r; r++) argv[n++] = *r;
    if (command_run(&k, argv, 60000) != 0)
        fail_msg("%s%s", command_said(k.out), command_said(k.err));
    json_t *root = command_json(&k), *of;
    size_t i;
    json_array_foreach(json_object_get(root, "nodes"), i, of)
    {
        char sent[240], received[240], saw[700], said[700];
        const char *name = json_string_value(json_object_get(of, "name"));
        snprintf(sent, sizeof sent, "%s/%s.sent", record, name);
        snprintf(received, sizeof received, "%s/%s.received", record, name);
        snprintf(saw, sizeof saw, "%s/session-%u.received", record_of[i], sessions);
        snprintf(said, sizeof said, "%s/session-%u.sent", record_of[i], sessions);
        must_agree(sent, saw);
        must_agree(said, received);
        must_count(of, "bytes_out", sent);
        must_count(of, "bytes_in", received);
    }
    assert_int_equal(i, NODES);
    json_decref(root);
    command_free(&k);
}

static void the_records_of_both_sides_agree_for_a_float_product(void **s)
{
    (void)s;
    const char *verb[] = { "multiply", a, b, NULL };
    recorded(verb);
}

static void the_records_of_both_sides_agree_for_an_exact_product_in_many_panels(void **s)
{
    (void)s;
    const char *verb[] = { "multiply", a,   b,          "--mode", "exact",
                           "--group",  "1", "--memory", "2M",     NULL };
    recorded(verb);
}

static void the_records_of_both_sides_agree_for_a_product_in_shares(void **s)
{
    (void)s;
    const char *verb[] = { "multiply", a,    b,   "--scheme", "share", "--same-host-domains",
                           "--memory", "2M", NULL };
    recorded(verb);
}

static void the_records_of_both_sides_agree_for_a_plain_product(void **s)
{
    (void)s;
    const char *verb[] = { "multiply", a, b, "--scheme", "plain", NULL };
    recorded(verb);
}

static void the_records_of_both_sides_agree_for_an_elementwise_operation(void **s)
{
    (void)s;
    const char *verb[] = { "apply", "tanh", a, NULL };
    recorded(verb);
}

static void the_sessions_counters_equal_the_sizes_of_records(void **s)
{
    (void)s;
    char record[200];
    sherd_diag d = { .code = 0 };
    sherd_cluster *cluster;
    sherd_npy *fa, *fb;
    sherd_product_options opt;
    snprintf(record, sizeof record, "%s/record-local", top);
    sherd_cluster_options o = {
        .size = sizeof o, .local_nodes = NODES, .program = sherd_path(), .record_dir = record
    };
    if (sherd_cluster_open(&cluster, &o, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd_npy_open(&fa, a, &d), 0);
    assert_int_equal(sherd_npy_open(&fb, b, &d), 0);
    sherd_view va = sherd_npy_view(fa), vb = sherd_npy_view(fb);
    double *out = malloc(va.rows * vb.cols * sizeof *out);
    opt = (sherd_product_options){ .size = sizeof opt };
    for (int run = 0; run < 2; run++) {
        if (sherd_multiply(cluster, va, vb, out, vb.cols, &opt, NULL, &d))
            fail_msg("%s", d.message);
        for (uint32_t i = 0; i < NODES; i++) {
            char sent[240], received[240];
            sherd_node_info info = { .size = sizeof info };
            snprintf(sent, sizeof sent, "%s/node-%u.sent", record, i + 1);
            snprintf(received, sizeof received, "%s/node-%u.received", record, i + 1);
            int64_t deadline = clock_now_ms() + 30000;
            /* The counters are published ten times a second; the goodbye of the job is in
             * transit */
            do {
                assert_int_equal(sherd_cluster_node_at(cluster, i, &info, NULL), 0);
                if (info.bytes_out == (uint64_t)file_size(sent) &&
                    info.bytes_in == (uint64_t)file_size(received))
                    break;
                pause_ms(10);
            } while (clock_now_ms() < deadline);
            assert_int_equal(info.bytes_out, file_size(sent));
            assert_int_equal(info.bytes_in, file_size(received));
            assert_true(info.bytes_out > 1000 && info.bytes_in > 1000);
        }
    }
    sherd_node_info info = { .size = sizeof info };
    assert_int_equal(sherd_cluster_end(cluster, &d), 0);
    assert_int_equal(sherd_cluster_end(cluster, &d), 0);
    assert_int_equal(sherd_cluster_node_at(cluster, 0, &info, NULL), 0);
    assert_int_equal(info.state, SHERD_NODE_UP); /* the state before */
    assert_int_equal(sherd_multiply(cluster, va, vb, out, vb.cols, &opt, NULL, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "ended"));
    sherd_cluster_close(cluster);
    sherd_npy_close(fa);
    sherd_npy_close(fb);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_records_of_both_sides_agree_for_a_float_product),
        cmocka_unit_test(the_records_of_both_sides_agree_for_an_exact_product_in_many_panels),
        cmocka_unit_test(the_records_of_both_sides_agree_for_a_plain_product),
        cmocka_unit_test(the_records_of_both_sides_agree_for_a_product_in_shares),
        cmocka_unit_test(the_records_of_both_sides_agree_for_an_elementwise_operation),
        cmocka_unit_test(the_sessions_counters_equal_the_sizes_of_records),
    };
    return cmocka_run_group_tests_name("scheduler/record", tests, begin, end);
}
