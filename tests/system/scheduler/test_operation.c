/*
 * Operations from operands to files through sherd/operation.h: what is found before there are
 * nodes, what is written and when, and what is known of an operation afterwards.
 *
 * link: -Wl,--wrap=fsync
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "sherd/certificate.h"
#include "sherd/npy.h"
#include "sherd/operation.h"
#include "tests/system/scheduler/command.h"
#include "tests/system/scheduler/product_world.h"

enum { N = 31, K = 17, M = 13 };

static double a[N * K], b[K * M], c[N * M];
static char top[128], file_a[160], file_b[160], file_c[160], file_json[160];
static uint64_t steps, others; /* reports that all is done: of the product; of anything else */
static bool stop;
static unsigned dawdle; /* ms that the next question whether to stop takes */

static void progress(void *ctx, const sherd_progress *p)
{
    (void)ctx;
    steps += p->done == p->total && p->bytes_out > 0;
    others += p->done == p->total && p->bytes_out == 0;
}

static bool stops(void *ctx)
{
    (void)ctx;
    if (dawdle > 0) pause_ms(dawdle);
    dawdle = 0;
    return stop;
}

static int begin(void **s)
{
    for (int i = 0; i < N * K; i++) a[i] = sin(i);
    for (int i = 0; i < K * M; i++) b[i] = cos(i);
    folder_new(top);
    snprintf(file_a, sizeof file_a, "%s/A.npy", top);
    snprintf(file_b, sizeof file_b, "%s/B.npy", top);
    snprintf(file_c, sizeof file_c, "%s/C.npy", top);
    snprintf(file_json, sizeof file_json, "%s/C.json", top);
    assert_int_equal(sherd_npy_save(file_a, sherd_view_c(a, SHERD_F64, N, K), NULL), 0);
    assert_int_equal(sherd_npy_save(file_b, sherd_view_c(b, SHERD_F64, K, M), NULL), 0);
    return cluster_begin(s);
}

static int end(void **s)
{
    folder_remove(top);
    return cluster_end(s);
}

static int clean(void **s)
{
    (void)s;
    steps = others = 0;
    stop = false;
    dawdle = 0;
    unlink(file_c);
    unlink(file_json);
    return 0;
}

static int folder_syncs = -1; /* folders that can still be synced; -1: all */

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
    struct stat st;
    bool folder = folder_syncs >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    if (!folder || folder_syncs > 0) {
        folder_syncs -= folder;
        return __real_fsync(fd);
    }
    errno = EIO;
    return -1;
}

/* A product of the two files over the nodes that all cases share. */
static sherd_operation_options of_files(void)
{
    return (sherd_operation_options){ .size = sizeof(sherd_operation_options),
                                      .file_a = file_a,
                                      .file_b = file_b,
                                      .cluster = cluster,
                                      .output = file_c,
                                      .hooks = { .interrupted = stops, .progress = progress } };
}

static sherd_operation_options in_memory(void)
{
    return (sherd_operation_options){ .size = sizeof(sherd_operation_options),
                                      .a = sherd_view_c(a, SHERD_F64, N, K),
                                      .b = sherd_view_c(b, SHERD_F64, K, M),
                                      .cluster = cluster };
}

static sherd_operation *operation(const sherd_operation_options *o)
{
    sherd_operation *w;
    sherd_diag d = { 0 };
    if (sherd_operation_new(&w, o, &d)) fail_msg("%s", d.message);
    return w;
}

/* What is given by mistake stays as it is. */
static void no_file_is_written_in_place_of_another(void **s)
{
    (void)s;
    char link_b[160], key[160];
    snprintf(link_b, sizeof link_b, "%s/b-too.npy", top);
    snprintf(key, sizeof key, "%s/me.key", top);
    assert_int_equal(symlink(file_b, link_b), 0);
    const struct {
        const char *output, *certificate, *key, *want;
    } cases[] = {
        { file_a, NULL, NULL, "the output would replace" },
        { link_b, NULL, NULL, "which is also an operand" },
        { file_c, file_b, NULL, "the certificate would replace" },
        { file_c, file_c, NULL, "which is also the certificate" },
        { key, NULL, key, "which is also the key" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd_operation *w = NULL;
        sherd_operation_options o = of_files();
        sherd_diag d = { 0 };
        o.output = cases[i].output;
        o.certificate = cases[i].certificate;
        o.key_file = cases[i].key;
        assert_int_equal(sherd_operation_new(&w, &o, &d), SHERD_EINVAL);
        assert_null(w);
        if (!strstr(d.message, cases[i].want)) fail_msg("%s", d.message);
        assert_string_equal(d.hint, "name another file");
    }
    unlink(link_b);
}

static sherd_operation_info info_of(const sherd_operation *w)
{
    sherd_operation_info x = { .size = sizeof x };
    assert_int_equal(sherd_operation_get(w, &x, NULL), 0);
    return x;
}

static sherd_operation *ran(const sherd_operation_options *o)
{
    sherd_diag d = { 0 };
    sherd_operation *w = operation(o);
    if (sherd_operation_run(w, &d)) fail_msg("%s", d.message);
    return w;
}

static void refused(const sherd_operation_options *o, int expected, const char *words)
{
    sherd_operation *w = (sherd_operation *)(void *)top;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_operation_new(&w, o, &d), expected);
    assert_null(w);
    if (!strstr(d.message, words)) fail_msg("%s", d.message);
    assert_int_equal(file_size(file_c), -1);
    assert_int_equal(file_size(file_json), -1);
}

/* ---- results --------------------------------------------------------------------------------- */

static void files_become_a_file_that_is_compared_and_certified(void **state)
{
    (void)state;
    const sherd_product_options exact = { .size = sizeof exact, .exact = true };
    sherd_operation_options o = of_files();
    sherd_certificate *certificate;
    sherd_npy *written;
    o.product = &exact;
    o.check = o.distance = o.forecast = true;
    o.certificate = file_json;
    sherd_operation *w = ran(&o);
    sherd_operation_info x = info_of(w);
    assert_true(x.written && x.certified && x.seconds > 0);
    assert_true(steps > 0 && others == 0);
    assert_true(x.check && x.check->equal && x.check->entries == N * M);
    assert_true(x.distance && x.distance->bound > 0);
    assert_true(x.forecast && x.forecast->bytes_out == x.report->work_out);
    assert_ptr_equal(x.cluster, cluster);
    assert_int_equal(x.options->bits, 17);
    assert_string_equal(x.options->name_a, file_a);
    assert_memory_equal(x.options->seed, x.report->seed, 32);
    assert_int_equal(sherd_npy_open(&written, file_c, NULL), 0);
    const double *values = sherd_npy_view(written).data;
    assert_memory_equal(values, x.result.data, sizeof c);
    const sherd_view matrices[] = { x.a, x.b, sherd_npy_view(written) };
    assert_int_equal(sherd_certificate_load(&certificate, file_json, NULL), 0);
    assert_int_equal(sherd_certificate_verify(certificate, matrices, 3, NULL, NULL, NULL), 0);
    sherd_certificate_free(certificate);
    sherd_npy_close(written);
    sherd_operation_free(w);
    assert_int_equal(sherd_cluster_size(cluster), NODES);
}

static void a_result_may_stay_in_the_memory_of_the_caller(void **state)
{
    (void)state;
    sherd_operation_options o = in_memory();
    o.result = c;
    o.check = true;
    sherd_operation *w = ran(&o);
    sherd_operation_info x = info_of(w);
    assert_ptr_equal(x.result.data, c);
    assert_true(!x.written && !x.certified && x.check->judged == SHERD_JUDGED_GAMMA);
    assert_null(x.distance);
    assert_null(x.forecast);
    sherd_operation_free(w);
    assert_true(c[0] != 0);
}

static char warned[600];

static void warning(void *ctx, sherd_log_level level, const char *text)
{
    (void)ctx;
    if (level == SHERD_LOG_WARN) snprintf(warned, sizeof warned, "%s", text);
}

/* The warning is complete, however long the path is; a pipe is not opened before there is text. */
static void a_certificate_may_be_a_pipe_with_a_long_path(void **state)
{
    (void)state;
    char path[1024];
    sherd_operation_options o = in_memory();
    snprintf(path, sizeof path, "%s", top);
    while (strlen(path) < 700) strcat(path, "/.");
    strcat(path, "/pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    o.certificate = path;
    o.hooks.log = warning;
    sherd_operation_free(operation(&o));
    assert_non_null(strstr(warned, "/pipe will be signed"));
    assert_non_null(strstr(warned, "(--key) signs it with yours"));
    unlink(path);
}

static void an_element_wise_operation_needs_one_operand_or_two(void **state)
{
    (void)state;
    sherd_operation_options o = in_memory();
    o.op = SHERD_OP_TANH;
    o.check = o.distance = true;
    sherd_operation *w = ran(&o);
    sherd_operation_info x = info_of(w);
    assert_true(x.result.rows == N && x.result.cols == K && x.check->judged == SHERD_JUDGED_BITS);
    assert_null(x.distance);
    sherd_operation_free(w);
    o.op = SHERD_OP_MINUS;
    refused(&o, SHERD_ESHAPE, "A is 31 x 17 and B is 17 x 13");
}

/* Writes metadata of the product to top/meta.npz. */
static void make_metadata(char path[160])
{
    const sherd_meta_settings settings = { .size = sizeof settings, .nodes = NODES };
    const sherd_meta_save_options as = { .size = sizeof as, .expanded = true };
    const sherd_meta_operation product = {
        .size = sizeof product, .name = "z", .kind = SHERD_OP_PRODUCT, .n = N, .k = K, .m = M
    };
    sherd_meta *meta;
    snprintf(path, 160, "%s/meta.npz", top);
    assert_int_equal(sherd_meta_new(&meta, &settings, NULL, NULL), 0);
    assert_int_equal(sherd_meta_add(meta, &product, NULL), 0);
    assert_int_equal(sherd_meta_save(meta, path, &as, NULL, NULL), 0);
    sherd_meta_free(meta);
}

static void metadata_is_taken_before_the_nodes_are_used(void **state)
{
    (void)state;
    sherd_operation_options o = of_files();
    char path[160];
    make_metadata(path);
    o.meta = path;
    sherd_operation *w = operation(&o);
    assert_int_equal(steps + others, 0);
    assert_int_equal(sherd_operation_run(w, NULL), 0);
    assert_non_null(info_of(w).options->shuffles);
    assert_true(steps > 0);
    sherd_operation_free(w);
    unlink(path);
}

static void nodes_that_it_opens_are_ended(void **state)
{
    (void)state;
    const sherd_cluster_options two = { .size = sizeof two,
                                        .local_nodes = 2,
                                        .program = sherd_path() };
    sherd_operation_options o = in_memory();
    sherd_node_info node = { .size = sizeof node };
    o.cluster = NULL;
    o.nodes = &two;
    o.timeout_ms = (uint32_t)(60000 * patience());
    sherd_operation *w = operation(&o);
    assert_null(info_of(w).cluster);
    assert_int_equal(sherd_operation_run(w, NULL), 0);
    sherd_operation_info x = info_of(w);
    assert_int_equal(sherd_cluster_node_at(x.cluster, 1, &node, NULL), 0);
    pid_t pid = (pid_t)node.pid;
    assert_true(pid > 0 && processes_gone(&pid, 1, 10000 * patience()));
    sherd_operation_free(w);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Of a result that no memory could hold, too. */
static void shapes_come_first(const sherd_operation_options *of)
{
    const size_t n = 3000000;
    sherd_operation_options o = *of;
    double *zeros = calloc(2 * n, sizeof *zeros);
    assert_non_null(zeros);
    o.file_a = o.file_b = NULL;
    o.a = sherd_view_c(zeros, SHERD_F64, n, 1);
    o.b = sherd_view_c(zeros, SHERD_F64, 2, n);
    refused(&o, SHERD_ESHAPE, "A is 3000000 x 1 and B is 2 x 3000000: they cannot be multiplied");
    free(zeros);
}

/* Nodes that cannot be started show that none was. */
static void errors_are_found_before_there_are_nodes(void **state)
{
    (void)state;
    const sherd_cluster_options none = { .size = sizeof none,
                                         .local_nodes = 3,
                                         .program = "/nonexistent" };
    sherd_product_options p = { .size = sizeof p };
    sherd_operation_options o = of_files();
    o.cluster = NULL;
    refused(&o, SHERD_EINVAL, "either `cluster` or `nodes`");
    o.nodes = &none;
    o.op = (sherd_op)99;
    refused(&o, SHERD_EINVAL, "unknown operation 99");
    o.op = 0;
    o.file_b = file_a;
    refused(&o, SHERD_ESHAPE, "they cannot be multiplied");
    o.file_b = file_b;
    shapes_come_first(&o);
    o.file_b = "/nonexistent/B.npy";
    refused(&o, SHERD_EOPEN, "/nonexistent/B.npy");
    o.file_b = file_b;
    o.output = "/nonexistent/C.npy";
    refused(&o, SHERD_EOPEN, "/nonexistent");
    o.output = file_c;
    o.certificate = "/nonexistent/C.json";
    refused(&o, SHERD_EOPEN, "/nonexistent");
    o.certificate = file_json;
    o.key_file = "/nonexistent/me.key";
    refused(&o, SHERD_EOPEN, "/nonexistent/me.key");
    o.key_file = NULL;
    o.product = &p;
    p.exposure_max = 0.01;
    refused(&o, SHERD_EEXPOSURE, "");
    p.exposure_max = 0;
    p.scheme = SHERD_SHARE;
    p.colluding = 9;
    refused(&o, SHERD_EFEWNODES, "");
    o.size = 0;
    refused(&o, SHERD_EINVAL, "sherd_operation_options");
}

/* A use that is recorded would bind the operation to these operands. */
static void metadata_of_an_operation_that_is_refused_is_not_used_up(void **state)
{
    (void)state;
    const sherd_product_options p = { .size = sizeof p, .exposure_max = 0.01 };
    sherd_operation_options o = of_files();
    char path[160];
    sherd_meta *meta;
    make_metadata(path);
    o.meta = path;
    o.product = &p;
    refused(&o, SHERD_EEXPOSURE, "");
    assert_int_equal(sherd_meta_load(&meta, path, NULL), 0);
    assert_false(sherd_meta_at(meta, 0)->used);
    sherd_meta_free(meta);
    unlink(path);
}

static void the_nodes_of_every_operation_are_checked_first(void **state)
{
    (void)state;
    const sherd_cluster_options bad = { .size = sizeof bad, .nodes = "no node\n" };
    sherd_operation_options o = in_memory();
    o.cluster = NULL;
    o.nodes = &bad;
    refused(&o, SHERD_EFORMAT, "list of nodes");
    o.op = SHERD_OP_TANH;
    refused(&o, SHERD_EFORMAT, "list of nodes");
    o.op = SHERD_OP_PRODUCT;
    o.forecast_only = true;
    refused(&o, SHERD_EFORMAT, "list of nodes");
}

static void an_interrupted_operation_keeps_the_files_that_were_there(void **state)
{
    (void)state;
    sherd_operation_options o = of_files();
    sherd_diag d = { 0 };
    file_put(file_c, "before", 6);
    file_put(file_json, "before", 6);
    o.certificate = file_json;
    sherd_operation *w = operation(&o);
    stop = true;
    assert_int_equal(sherd_operation_run(w, &d), SHERD_EINTERRUPTED);
    sherd_operation_info x = info_of(w);
    assert_true(!x.written && !x.certified);
    sherd_operation_free(w);
    assert_true(file_holds(file_c, "before") && file_holds(file_json, "before"));
    assert_int_equal(folder_hidden(top), 0);
}

static void files_that_exist_after_an_error_are_known(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        sherd_operation_options o = of_files();
        sherd_diag d = { 0 };
        o.certificate = file_json;
        sherd_operation *w = operation(&o);
        folder_syncs = i;
        assert_int_equal(sherd_operation_run(w, &d), SHERD_EIO);
        folder_syncs = -1;
        const char *last = strstr(d.message, i ? "C.json: written, but" : "C.npy: written, but");
        if (!last || strstr(d.message, "certificate was not")) fail_msg("%s", d.message);
        sherd_operation_info x = info_of(w);
        assert_true(x.written && x.certified == (i == 1));
        assert_true(file_size(file_c) > 0 && (file_size(file_json) > 0) == x.certified);
        sherd_operation_free(w);
    }
}

static void a_timeout_includes_all_that_comes_before_the_product(void **state)
{
    (void)state;
    sherd_operation_options o = of_files();
    sherd_diag d = { 0 };
    o.timeout_ms = 1;
    sherd_operation *w = operation(&o);
    pause_ms(5);
    assert_int_equal(sherd_operation_run(w, &d), SHERD_ETIMEOUT);
    assert_non_null(strstr(d.message, "before the product began"));
    sherd_operation_free(w);
    assert_int_equal(file_size(file_c), -1);
}

/* The time of a forecast is not the operation's, also if nothing was computed after it. */
static void a_timeout_may_expire_during_the_forecast(void **state)
{
    (void)state;
    sherd_operation_options o = of_files();
    sherd_diag d = { 0 };
    o.forecast = true;
    o.timeout_ms = 300;
    sherd_operation *w = operation(&o);
    dawdle = 310;
    assert_int_equal(sherd_operation_run(w, &d), SHERD_ETIMEOUT);
    assert_int_equal(dawdle, 0);
    assert_non_null(strstr(d.message, "before the product began"));
    sherd_operation_info x = info_of(w);
    assert_non_null(x.forecast);
    assert_true(x.seconds == 0);
    sherd_operation_free(w);
}

static void a_product_that_failed_has_no_time(void **state)
{
    (void)state;
    const sherd_product_options p = { .size = sizeof p, .scheme = SHERD_SHARE, .colluding = 9 };
    sherd_operation_options o = in_memory();
    o.product = &p;
    sherd_operation *w = operation(&o);
    assert_int_equal(sherd_operation_run(w, NULL), SHERD_EFEWNODES);
    assert_true(info_of(w).seconds == 0);
    sherd_operation_free(w);
}

static void an_operation_runs_once(void **state)
{
    (void)state;
    const sherd_operation_options o = in_memory();
    sherd_operation_info x = { .size = 0 };
    sherd_diag d = { 0 };
    sherd_operation *w = ran(&o);
    assert_int_equal(sherd_operation_run(w, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "this operation has run");
    assert_int_equal(sherd_operation_get(w, &x, NULL), SHERD_EINVAL);
    sherd_operation_free(w);
    sherd_operation_free(NULL);
}

static void all_choices_are_forecast_and_nothing_is_written(void **state)
{
    (void)state;
    const sherd_cluster_options seven = { .size = sizeof seven,
                                          .local_nodes = 7,
                                          .program = "/nonexistent" };
    const sherd_cluster_options listed = { .size = sizeof listed,
                                           .nodes = "10.0.0.1:7 domain=a\n10.0.0.2:7 domain=a\n"
                                                    "10.0.0.3:7 domain=b\n" };
    const sherd_product_options balanced = { .size = sizeof balanced, .balanced = true };
    sherd_operation_options o = of_files();
    sherd_forecast f = { .size = sizeof f };
    sherd_choices *choices;
    sherd_diag d = { 0 };
    o.cluster = NULL;
    o.nodes = &seven;
    o.product = &balanced;
    o.forecast_only = true;
    o.output = "/nonexistent/C.npy"; /* not looked at */
    o.hooks.progress = NULL;
    sherd_operation *w = operation(&o);
    if (sherd_operation_choices_new(&choices, w, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd_choices_at(choices, 0, &f, NULL), 0);
    assert_true(f.nodes == 7 && f.scheme == SHERD_PERMUTE);
    assert_true(sherd_choices_count(choices) > 1);
    sherd_choices_free(choices);
    assert_int_equal(sherd_operation_run(w, &d), SHERD_EINVAL);
    sherd_operation_free(w);
    o.nodes = &listed; /* two of the three share a domain */
    w = operation(&o);
    if (sherd_operation_choices_new(&choices, w, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd_choices_at(choices, 0, &f, NULL), 0);
    assert_true(f.nodes == 3 && f.exposure_a > 0.5);
    sherd_choices_free(choices);
    sherd_operation_free(w);
    o.op = SHERD_OP_TANH;
    w = operation(&o);
    assert_int_equal(sherd_operation_choices_new(&choices, w, NULL), SHERD_EINVAL);
    assert_null(choices);
    sherd_operation_free(w);
}

static void a_failed_allocation_is_an_error_that_leaves_nothing(void **state)
{
    (void)state;
    sherd_operation_options o = of_files();
    o.certificate = file_json;
    o.check = true;
    for (size_t n = 1, made = n; made >= n; n++) {
        sherd_operation *w;
        sherd__alloc_fail_nth(n);
        int err = sherd_operation_new(&w, &o, NULL);
        made = sherd__alloc_fail_nth(0);
        if (made < n) assert_int_equal(err, 0);
        else assert_true(err == SHERD_ENOMEM || (err == 0 && w)); /* some can do without */
        sherd_operation_free(w);
        assert_int_equal(folder_hidden(top), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(files_become_a_file_that_is_compared_and_certified, clean),
        cmocka_unit_test_setup(a_result_may_stay_in_the_memory_of_the_caller, clean),
        cmocka_unit_test_setup(a_certificate_may_be_a_pipe_with_a_long_path, clean),
        cmocka_unit_test_setup(an_element_wise_operation_needs_one_operand_or_two, clean),
        cmocka_unit_test_setup(metadata_is_taken_before_the_nodes_are_used, clean),
        cmocka_unit_test_setup(nodes_that_it_opens_are_ended, clean),
        cmocka_unit_test_setup(errors_are_found_before_there_are_nodes, clean),
        cmocka_unit_test_setup(no_file_is_written_in_place_of_another, clean),
        cmocka_unit_test_setup(metadata_of_an_operation_that_is_refused_is_not_used_up, clean),
        cmocka_unit_test_setup(the_nodes_of_every_operation_are_checked_first, clean),
        cmocka_unit_test_setup(an_interrupted_operation_keeps_the_files_that_were_there, clean),
        cmocka_unit_test_setup(files_that_exist_after_an_error_are_known, clean),
        cmocka_unit_test_setup(a_timeout_includes_all_that_comes_before_the_product, clean),
        cmocka_unit_test_setup(a_timeout_may_expire_during_the_forecast, clean),
        cmocka_unit_test_setup(a_product_that_failed_has_no_time, clean),
        cmocka_unit_test_setup(an_operation_runs_once, clean),
        cmocka_unit_test_setup(all_choices_are_forecast_and_nothing_is_written, clean),
        cmocka_unit_test_setup(a_failed_allocation_is_an_error_that_leaves_nothing, clean),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
