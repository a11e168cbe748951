/*
 * Certificates of real products and element-wise operations, made, written, read and verified
 * through the public headers; and certificates that were edited, or are of other matrices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "sherd/certificate.h"
#include "sherd/forecast.h"
#include "sherd/masks.h"
#include "sherd/meta.h"
#include "tests/system/scheduler/command.h"
#include "tests/system/scheduler/product_world.h"

enum { N = 31, K = 17, M = 13 };

static double a[N * K], b[K * M], c[N * M], t[N * K];
static char folder[64];

static sherd_view va(void)
{
    return sherd_view_c(a, SHERD_F64, N, K);
}

static sherd_view vb(void)
{
    return sherd_view_c(b, SHERD_F64, K, M);
}

static sherd_view vc(void)
{
    return sherd_view_c(c, SHERD_F64, N, M);
}

static const char *file(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int begin(void **s)
{
    for (int i = 0; i < N * K; i++) a[i] = sin(i);
    for (int i = 0; i < K * M; i++) b[i] = cos(i);
    strcpy(folder, "/tmp/sherd-cert-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    return cluster_begin(s);
}

static int end(void **s)
{
    unlink(file("C.json"));
    unlink(file("me.key"));
    rmdir(folder);
    return cluster_end(s);
}

/* What is certified: the arguments and the report of one product. */
typedef struct made {
    sherd_product_options opt;
    sherd_report report;
    sherd_certified what;
} made;

static void multiply(made *x, const sherd_product_options *o)
{
    sherd_diag d = { 0 };
    *x = (made){ .opt = *o, .report = { .size = sizeof x->report } };
    if (sherd_multiply(cluster, va(), vb(), c, M, &x->opt, &x->report, &d))
        fail_msg("%s", d.message);
    x->what = (sherd_certified){ .size = sizeof x->what,
                                 .cluster = cluster,
                                 .a = va(),
                                 .b = vb(),
                                 .result = vc(),
                                 .options = &x->opt,
                                 .report = &x->report,
                                 .verdict = SHERD_EQUAL };
}

/* Makes the certificate and reads its text again; the caller's. */
static sherd_certificate *certificate_of(const made *x, const char *key)
{
    sherd_certificate *one, *again;
    sherd_diag d = { 0 };
    size_t len;
    if (sherd_certificate_new(&one, key, &d)) fail_msg("%s", d.message);
    if (sherd_certificate_make(one, &x->what, &d)) fail_msg("%s", d.message);
    const char *text = sherd_certificate_text(one, &len);
    assert_int_equal(strlen(text), len);
    if (sherd_certificate_parse(&again, text, len, "C.json", &d)) fail_msg("%s", d.message);
    assert_null(sherd_certificate_text(again, NULL));
    sherd_certificate_free(one);
    return again;
}

static int verify(const sherd_certificate *one, sherd_view x, sherd_view y, sherd_view z,
                  sherd_check *out, sherd_diag *d)
{
    const sherd_view matrices[] = { x, y, z };
    const sherd_verify_options opt = { .size = sizeof opt };
    *d = (sherd_diag){ 0 };
    return sherd_certificate_verify(one, matrices, 3, &opt, out, d);
}

static void an_exact_product_is_described_and_verified_bit_for_bit(void **s)
{
    (void)s;
    const sherd_product_options o = {
        .size = sizeof o, .exact = true, .bits = 22, .group = 4, .balanced = true
    };
    made x;
    sherd_diag d;
    sherd_check found = { .size = sizeof found };
    sherd_certificate_info i = { .size = sizeof i };
    multiply(&x, &o);
    sherd_certificate *one = certificate_of(&x, NULL);
    if (verify(one, va(), vb(), vc(), &found, &d)) fail_msg("%s", d.message);
    assert_true(found.equal && found.judged == SHERD_JUDGED_BITS && found.entries == N * M);
    assert_int_equal(sherd_certificate_get(one, &i, NULL), 0);
    assert_string_equal(i.operation, "product");
    assert_true(i.mode == SHERD_MODE_EXACT && i.bits_a == 22 && i.bits_b == 22);
    assert_true(i.inputs == 2 && i.inputs_compared && i.equal == SHERD_EQUAL);
    assert_string_equal(i.scheme, "permute");
    assert_string_equal(i.exposure, "balanced");
    assert_true(i.group == 4 && i.colluding == 0 && !i.reused_metadata);
    assert_string_equal(i.method, "freivalds");
    assert_true(i.freivalds_trials == 1 && i.freivalds_error_log2 == -60);
    assert_true(i.nodes == NODES && i.nodes_listed == NODES && i.domains == NODES);
    assert_true(i.domains_simulated && labs((long)(i.created - time(NULL))) < 100);
    assert_int_equal(strncmp(i.signer, "sha256:", 7), 0);
    for (uint32_t n = 0; n < NODES; n++) {
        sherd_certificate_node node = { .size = sizeof node };
        sherd_node_info info = { .size = sizeof info };
        assert_int_equal(sherd_cluster_node_at(cluster, n, &info, NULL), 0);
        assert_int_equal(sherd_certificate_node_at(one, n, &node, NULL), 0);
        assert_string_equal(node.name, info.name);
        assert_string_equal(node.key, info.key);
    }
    sherd_certificate_node node = { .size = sizeof node };
    assert_int_equal(sherd_certificate_node_at(one, NODES, &node, NULL), SHERD_EINVAL);
    assert_null(sherd_certificate_warning_at(one, 0));
    sherd_check_options how = { .size = sizeof how };
    sherd_distance far = { .size = sizeof far };
    assert_int_equal(sherd_certificate_options(one, &how, NULL), 0);
    assert_true(how.exact && how.bits == 22 && how.op == SHERD_OP_PRODUCT);
    assert_int_equal(sherd_check_distance(va(), vb(), vc(), &how, &far, NULL), 0);
    assert_true(far.largest > 0 && far.largest <= far.bound);
    sherd_certificate_free(one);
    sherd_report_fini(&x.report);
}

static void matrices_are_described(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o };
    uint8_t digest[32];
    sherd_profile *p;
    made x;
    multiply(&x, &o);
    assert_int_equal(sherd_profile_new(&p, vb(), NULL), 0);
    assert_int_equal(sherd_profile_digest(p, digest, NULL), 0);
    for (int without = 0; without < 2; without++) {
        sherd_certificate_matrix m = { .size = sizeof m };
        x.what.without_inputs = without;
        sherd_certificate *one = certificate_of(&x, NULL);
        assert_int_equal(sherd_certificate_matrix_at(one, 1, &m, NULL), 0);
        assert_true(m.rows == K && m.cols == M && m.has_digest == !without);
        assert_string_equal(m.dtype, "<f8");
        if (!without) assert_memory_equal(m.sha256, digest, 32);
        assert_int_equal(sherd_certificate_matrix_at(one, 2, &m, NULL), 0);
        assert_true(m.rows == N && m.cols == M && m.has_digest);
        assert_int_equal(sherd_certificate_matrix_at(one, 3, &m, NULL), SHERD_EINVAL);
        sherd_certificate_free(one);
    }
    sherd_profile_free(p);
    sherd_report_fini(&x.report);
}

static void digests_that_are_left_out_are_not_computed(void **s)
{
    (void)s;
    sherd_product_options o = { .size = sizeof o };
    uint8_t digest[2][32];
    made x;
    assert_int_equal(sherd_profile_new(&o.profile_b, vb(), NULL), 0);
    multiply(&x, &o);
    x.what.without_inputs = true;
    sherd_certificate *one = certificate_of(&x, NULL);
    b[0] += 1; /* a profile that had a digest would keep it */
    assert_int_equal(sherd_profile_digest(o.profile_b, digest[0], NULL), 0);
    b[0] -= 1;
    sherd_profile_free(o.profile_b);
    assert_int_equal(sherd_profile_new(&o.profile_b, vb(), NULL), 0);
    assert_int_equal(sherd_profile_digest(o.profile_b, digest[1], NULL), 0);
    assert_memory_not_equal(digest[0], digest[1], 32);
    sherd_profile_free(o.profile_b);
    sherd_certificate_free(one);
    sherd_report_fini(&x.report);
}

static void profiles_give_the_digests_of_the_inputs(void **s)
{
    (void)s;
    sherd_product_options o = { .size = sizeof o };
    sherd_diag d;
    made x;
    assert_int_equal(sherd_profile_new(&o.profile_a, va(), NULL), 0);
    sherd_profile_digest_start(o.profile_a);
    multiply(&x, &o);
    sherd_certificate *one = certificate_of(&x, NULL);
    assert_int_equal(verify(one, va(), vb(), vc(), NULL, &d), 0);
    sherd_certificate_free(one);
    a[0] += 1; /* the profile still has the digest of the A that was multiplied */
    one = certificate_of(&x, NULL);
    assert_int_equal(verify(one, va(), vb(), vc(), NULL, &d), SHERD_EFORMAT);
    a[0] -= 1;
    assert_int_equal(verify(one, va(), vb(), vc(), NULL, &d), 0);
    sherd_certificate_free(one);
    sherd_profile_free(o.profile_a);
    sherd_report_fini(&x.report);
}

static void float_products_private_ones_and_element_wise_operations_verify(void **s)
{
    (void)s;
    sherd_product_options o = { .size = sizeof o };
    sherd_check found = { .size = sizeof found };
    sherd_certificate_info i = { .size = sizeof i };
    sherd_diag d;
    made x;
    multiply(&x, &o);
    sherd_certificate *one = certificate_of(&x, NULL);
    if (verify(one, va(), vb(), vc(), &found, &d)) fail_msg("%s", d.message);
    assert_int_equal(found.judged, SHERD_JUDGED_GAMMA);
    assert_non_null(strstr(sherd_certificate_warning_at(one, 0), "gross errors only"));
    sherd_certificate_free(one);
    sherd_report_fini(&x.report);

    o.scheme = SHERD_SHARE;
    o.bits = 14;
    o.bits_b = 9;
    multiply(&x, &o);
    one = certificate_of(&x, NULL);
    if (verify(one, va(), vb(), vc(), &found, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd_certificate_get(one, &i, NULL), 0);
    assert_true(i.mode == SHERD_MODE_EXACT && i.bits_a == 14 && i.bits_b == 9);
    assert_true(i.colluding == 1 && i.freivalds_modulus_bits == 23 && i.primes > 0);
    sherd_certificate_free(one);
    sherd_report_fini(&x.report);

    const sherd_product_options plain = { .size = sizeof plain };
    x = (made){ .opt = plain, .report = { .size = sizeof x.report } };
    assert_int_equal(sherd_apply(cluster, SHERD_OP_TANH, va(), va(), t, K, &x.opt, &x.report, NULL),
                     0);
    x.what = (sherd_certified){ .size = sizeof x.what,
                                .cluster = cluster,
                                .op = SHERD_OP_TANH,
                                .a = va(),
                                .result = sherd_view_c(t, SHERD_F64, N, K),
                                .options = &x.opt,
                                .report = &x.report };
    one = certificate_of(&x, NULL);
    const sherd_view both[] = { va(), x.what.result };
    const sherd_verify_options opt = { .size = sizeof opt };
    assert_int_equal(sherd_certificate_verify(one, both, 2, &opt, &found, NULL), 0);
    assert_int_equal(sherd_certificate_get(one, &i, NULL), 0);
    assert_string_equal(i.operation, "tanh");
    assert_true(i.inputs == 1 && i.equal == SHERD_UNCHECKED && i.sample_missed_ppm > 0);
    t[5] += 1e-3;
    assert_int_equal(sherd_certificate_verify(one, both, 2, &opt, &found, NULL), SHERD_EDIFFERS);
    sherd_certificate_free(one);
    sherd_report_fini(&x.report);
}

static void other_matrices_are_refused(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o, .exact = true };
    sherd_check found = { .size = sizeof found, .entries = 77 };
    sherd_diag d;
    made x;
    multiply(&x, &o);
    sherd_certificate *one = certificate_of(&x, NULL);
    assert_int_equal(verify(one, vb(), va(), vc(), NULL, &d), SHERD_ESHAPE);
    assert_string_equal(d.message,
                        "input 1 is 17 x 13 of float64, the certificate states 31 x 17 of float64");
    const sherd_view three[] = { va(), vb(), vc() };
    for (size_t len = 0; len < 5; len++) {
        d = (sherd_diag){ 0 };
        if (len == 3) continue;
        assert_int_equal(sherd_certificate_verify(one, three, len, NULL, NULL, &d), SHERD_EINVAL);
        assert_non_null(strstr(d.message, "C.json is about 3 matrices"));
    }
    const double third = a[3];
    a[3] += 1;
    assert_int_equal(verify(one, va(), vb(), vc(), NULL, &d), SHERD_EFORMAT);
    assert_string_equal(d.message, "input 1 is not the input that the certificate names: its "
                                   "SHA-256 differs");
    a[3] = third;
    c[3] += 1;
    assert_int_equal(verify(one, va(), vb(), vc(), &found, &d), SHERD_EDIFFERS);
    assert_int_equal(found.entries, 77); /* found by its digest: nothing was computed */
    sherd_certificate_free(one);

    /* A coordinator that certifies a wrong result is found out by computing it again. */
    one = certificate_of(&x, NULL);
    assert_int_equal(verify(one, va(), vb(), vc(), &found, &d), SHERD_EDIFFERS);
    assert_true(!found.equal && found.row == 0 && found.col == 3 && found.entries == N * M);
    assert_string_equal(d.message, "the result: 1 of 403 entries differ from the centralized "
                                   "result, the first at row 0, column 3");
    sherd_certificate_free(one);
    sherd_report_fini(&x.report);
}

static void the_signer_is_identified_by_its_key(void **s)
{
    (void)s;
    char key[128], fingerprint[64], signer[80];
    const sherd_product_options o = { .size = sizeof o, .exact = true };
    sherd_certificate_info i = { .size = sizeof i };
    sherd_certificate *one, *read;
    sherd_diag d = { 0 };
    struct stat st;
    made x;
    snprintf(key, sizeof key, "%s", file("me.key"));
    key_file(key, fingerprint);
    multiply(&x, &o);
    if (sherd_certificate_new(&one, key, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd_certificate_write(one, file("C.json"), NULL), SHERD_EINVAL); /* empty */
    assert_int_equal(sherd_certificate_get(one, &i, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_certificate_make(one, &x.what, &d), 0);
    assert_int_equal(sherd_certificate_make(one, &x.what, NULL), SHERD_EINVAL); /* once */
    assert_int_equal(sherd_certificate_write(one, file("C.json"), &d), 0);
    assert_true(stat(file("C.json"), &st) == 0 && (st.st_mode & 0777) == 0600);
    assert_int_equal(sherd_certificate_write(one, "/nowhere/C.json", NULL), SHERD_EOPEN);
    assert_int_equal(sherd_certificate_commit(one, NULL), SHERD_EINVAL); /* nothing to publish */
    if (sherd_certificate_load(&read, file("C.json"), &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd_certificate_get(read, &i, NULL), 0);
    assert_string_equal(i.signer, fingerprint);
    snprintf(signer, sizeof signer, "key=%s", i.signer);
    assert_int_equal(sherd_certificate_accept(read, NULL, NULL), 0);
    assert_int_equal(sherd_certificate_accept(read, signer, NULL), 0);
    assert_int_equal(sherd_certificate_accept(read, i.signer, NULL), 0);
    assert_int_equal(sherd_certificate_accept(read, "me", NULL), SHERD_EINVAL);
    signer[20] = signer[20] == 'A' ? 'B' : 'A';
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_certificate_accept(read, signer, &d), SHERD_EAUTH);
    assert_non_null(strstr(d.message, "C.json: is signed by sha256:"));
    sherd_certificate_free(read);
    sherd_certificate_free(one);
    assert_int_equal(sherd_certificate_new(&one, file("C.json"), NULL), SHERD_EKEY);
    assert_null(one);
    assert_int_equal(sherd_certificate_new(&one, file("none.key"), NULL), SHERD_EOPEN);
    sherd_report_fini(&x.report);
}

static void a_file_appears_when_it_is_committed(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o };
    sherd_certificate *one;
    made x;
    multiply(&x, &o);
    unlink(file("C.json"));
    for (int commits = 0; commits < 2; commits++) {
        assert_int_equal(sherd_certificate_new(&one, NULL, NULL), 0);
        assert_int_equal(sherd_certificate_begin(one, file("C.json"), NULL), SHERD_EINVAL);
        assert_int_equal(sherd_certificate_make(one, &x.what, NULL), 0);
        assert_int_equal(sherd_certificate_begin(one, file("C.json"), NULL), 0);
        assert_int_equal(sherd_certificate_begin(one, file("C.json"), NULL), SHERD_EINVAL);
        assert_int_equal(access(file("C.json"), F_OK), -1);
        if (commits) assert_int_equal(sherd_certificate_commit(one, NULL), 0);
        sherd_certificate_free(one);
        assert_int_equal(access(file("C.json"), F_OK), commits ? 0 : -1);
    }
    sherd_report_fini(&x.report);
}

static void an_edited_text_is_refused(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o };
    sherd_certificate *one, *read = (sherd_certificate *)&one;
    sherd_diag d = { 0 };
    size_t len;
    made x;
    multiply(&x, &o);
    assert_int_equal(sherd_certificate_new(&one, NULL, NULL), 0);
    assert_int_equal(sherd_certificate_make(one, &x.what, NULL), 0);
    char *text = strdup(sherd_certificate_text(one, &len));
    *strstr(text, "permute") = 'q';
    assert_int_equal(sherd_certificate_parse(&read, text, len, NULL, &d), SHERD_EAUTH);
    assert_null(read);
    assert_non_null(strstr(d.message, "the certificate: the signature does not fit"));
    assert_int_equal(sherd_certificate_parse(&read, text, len / 2, NULL, NULL), SHERD_EFORMAT);
    free(text);
    sherd_certificate_free(one);
    sherd_certificate_free(NULL);
    sherd_report_fini(&x.report);
}

static void an_operation_that_cannot_be_certified_is_refused(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o };
    sherd_certificate *one;
    made x;
    multiply(&x, &o);
    assert_int_equal(sherd_certificate_new(&one, NULL, NULL), 0);
    sherd_certified w = x.what;
    w.report = NULL;
    assert_int_equal(sherd_certificate_make(one, &w, NULL), SHERD_EINVAL);
    sherd_report odd = x.report;
    w.report = &odd;
    static const size_t sizes[] = { 0, 5, SIZE_MAX };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        odd.size = sizes[i];
        assert_int_equal(sherd_certificate_make(one, &w, NULL), SHERD_EINVAL);
    }
    w = x.what;
    w.op = (sherd_op)3;
    assert_int_equal(sherd_certificate_make(one, &w, NULL), SHERD_EINVAL);
    w = x.what;
    w.result.data = NULL;
    assert_int_equal(sherd_certificate_make(one, &w, NULL), SHERD_EINVAL);
    w.size = 0;
    assert_int_equal(sherd_certificate_make(one, &w, NULL), SHERD_EINVAL);
    int err = SHERD_ENOMEM;
    for (size_t nth = 1; err; nth++) {
        sherd__alloc_fail_nth(nth);
        err = sherd_certificate_make(one, &x.what, NULL);
        sherd__alloc_fail_nth(0);
        if (err) assert_true(err == SHERD_ENOMEM && !sherd_certificate_text(one, NULL));
    }
    sherd_certificate_free(one);
    sherd_report_fini(&x.report);
}

static void an_exact_product_is_certified_with_the_error_of_its_check(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o, .exact = true };
    static const double odd[] = { 0, -1, 2, NAN };
    sherd_certificate *one;
    made x;
    multiply(&x, &o);
    const double right = x.report.check_error;
    assert_int_equal(sherd_certificate_new(&one, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        sherd_diag d = { 0 };
        x.report.check_error = odd[i];
        assert_int_equal(sherd_certificate_make(one, &x.what, &d), SHERD_EINVAL);
        assert_non_null(strstr(d.message, "check_error"));
    }
    x.report.check_error = right;
    assert_int_equal(sherd_certificate_make(one, &x.what, NULL), 0);
    sherd_certificate_free(one);
    sherd_report_fini(&x.report);
}

static bool interrupted(void *ctx)
{
    unsigned *left = ctx;
    return (*left)-- == 0;
}

static void making_and_verifying_can_be_interrupted(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o };
    const sherd_view matrices[] = { va(), vb(), vc() };
    sherd_certificate *one;
    made x;
    multiply(&x, &o);
    assert_int_equal(sherd_certificate_new(&one, NULL, NULL), 0);
    for (unsigned n = 0; n < 3; n++) {
        unsigned left = n;
        x.what.hooks = (sherd_hooks){ .interrupted = interrupted, .ctx = &left };
        assert_int_equal(sherd_certificate_make(one, &x.what, NULL), SHERD_EINTERRUPTED);
        assert_null(sherd_certificate_text(one, NULL));
    }
    x.what.hooks = (sherd_hooks){ .interrupted = NULL };
    assert_int_equal(sherd_certificate_make(one, &x.what, NULL), 0);
    for (unsigned n = 0; n < 4; n++) {
        unsigned left = n;
        const sherd_verify_options how = { .size = sizeof how,
                                           .hooks = { .interrupted = interrupted, .ctx = &left } };
        assert_int_equal(sherd_certificate_verify(one, matrices, 3, &how, NULL, NULL),
                         SHERD_EINTERRUPTED);
    }
    sherd_certificate_free(one);
    sherd_report_fini(&x.report);
}

static void a_node_that_does_not_exist_and_a_struct_without_size_are_refused(void **s)
{
    (void)s;
    static const size_t sizes[] = { 0, 8, SIZE_MAX };
    sherd_node_info info = { .size = sizeof info, .pid = 77 };
    sherd_report_node n = { .size = sizeof n };
    const sherd_report empty = { .size = sizeof empty };
    assert_int_equal(sherd_cluster_node_at(cluster, NODES, &info, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_report_node_at(&empty, cluster, NODES, &n, NULL), SHERD_EINVAL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        info.size = sizes[i];
        assert_int_equal(sherd_cluster_node_at(cluster, 0, &info, NULL), SHERD_EINVAL);
    }
    assert_int_equal(info.pid, 77);
}

static void options_may_be_null(void **s)
{
    (void)s;
    sherd_report r = { .size = sizeof r };
    sherd_check found = { .size = sizeof found };
    sherd_forecast f = { .size = sizeof f };
    sherd_certificate *one;
    sherd_cluster *none;
    sherd_meta *meta;
    sherd_diag d = { 0 };
    if (sherd_multiply(cluster, va(), vb(), c, M, NULL, &r, &d)) fail_msg("%s", d.message);
    if (sherd_check_result(va(), vb(), vc(), NULL, &found, &d)) fail_msg("%s", d.message);
    assert_true(found.equal && found.judged == SHERD_JUDGED_GAMMA);
    const sherd_certified what = {
        .size = sizeof what, .cluster = cluster, .a = va(), .b = vb(), .result = vc(), .report = &r
    };
    made x = { .what = what };
    one = certificate_of(&x, NULL);
    const sherd_view matrices[] = { va(), vb(), vc() };
    assert_int_equal(sherd_certificate_verify(one, matrices, 3, NULL, NULL, &d), 0);
    assert_int_equal(sherd_certificate_options(one, NULL, NULL), SHERD_EINVAL);
    sherd_certificate_free(one);
    sherd_report_fini(&r);

    assert_int_equal(sherd_cluster_open(&none, NULL, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "no nodes are given");
    assert_int_equal(sherd_forecast_multiply(va(), vb(), NULL, NULL, &f, NULL), SHERD_EFEWNODES);
    assert_int_equal(sherd_masks_prepare(file("B.masks"), vb(), NULL, NULL, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_meta_take(&meta, file("m.npz"), NULL, NULL, NULL, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_certificate_new(&one, NULL, NULL), 0);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_certificate_make(one, NULL, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "needs the cluster"));
    sherd_certificate_free(one);
}

static void a_report_lists_its_nodes(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o };
    sherd_report_node n = { .size = sizeof n };
    uint32_t planned = 0;
    made x;
    multiply(&x, &o);
    assert_true(x.report.nodes_used == NODES && x.report.domains_used == NODES);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(sherd_report_node_at(&x.report, cluster, i, &n, NULL), 0);
        assert_true(n.pid > 0 && n.state == SHERD_NODE_UP && *n.address && *n.blas_core);
        assert_true(n.bytes_out == x.report.bytes_out[i] && n.exposed_a == x.report.exposed_a[i]);
        planned += n.planned;
    }
    assert_int_equal(planned, K);
    const sherd_report empty = { .size = sizeof empty };
    assert_int_equal(sherd_report_node_at(&empty, cluster, 0, &n, NULL), 0);
    assert_true(n.pid > 0 && n.planned == 0 && n.bytes_out == 0 && n.state == SHERD_NODE_UP);
    sherd_report_fini(&x.report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exact_product_is_described_and_verified_bit_for_bit),
        cmocka_unit_test(matrices_are_described),
        cmocka_unit_test(digests_that_are_left_out_are_not_computed),
        cmocka_unit_test(profiles_give_the_digests_of_the_inputs),
        cmocka_unit_test(float_products_private_ones_and_element_wise_operations_verify),
        cmocka_unit_test(other_matrices_are_refused),
        cmocka_unit_test(the_signer_is_identified_by_its_key),
        cmocka_unit_test(a_file_appears_when_it_is_committed),
        cmocka_unit_test(an_edited_text_is_refused),
        cmocka_unit_test(an_operation_that_cannot_be_certified_is_refused),
        cmocka_unit_test(an_exact_product_is_certified_with_the_error_of_its_check),
        cmocka_unit_test(making_and_verifying_can_be_interrupted),
        cmocka_unit_test(a_node_that_does_not_exist_and_a_struct_without_size_are_refused),
        cmocka_unit_test(options_may_be_null),
        cmocka_unit_test(a_report_lists_its_nodes),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
