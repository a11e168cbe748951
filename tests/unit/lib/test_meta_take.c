/* Metadata for one product: the operation, settings, the reuse rule, the lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/alloc.h"
#include "sherd/product.h"

enum { N = 6, K = 5, M = 4 };

static double a[N * K], b[K * M], other[K * M];
static char path[64];

static sherd_view va(void)
{
    return sherd_view_c(a, SHERD_F64, N, K);
}

static sherd_view vb(void)
{
    return sherd_view_c(b, SHERD_F64, K, M);
}

static void add(sherd_meta *m, const char *name, sherd_op kind, uint64_t n, uint64_t k,
                uint64_t cols)
{
    sherd_meta_operation op = { .size = sizeof op, .kind = kind, .n = n, .k = k, .m = cols };
    snprintf(op.name, sizeof op.name, "%s", name);
    assert_int_equal(sherd_meta_add(m, &op, NULL), 0);
}

/* Three nodes, groups of two columns, balanced; operations z, y (of one shape), x and t. */
static int set_up(void **s)
{
    (void)s;
    const sherd_meta_settings settings = {
        .size = sizeof settings, .nodes = 3, .group = 2, .balanced = true
    };
    const sherd_meta_save_options as = { .size = sizeof as };
    sherd_meta *m;
    for (int i = 0; i < N * K; i++) a[i] = i;
    for (int i = 0; i < K * M; i++) b[i] = other[i] = i + 1;
    other[3] = 9;
    strcpy(path, "/tmp/sherd-meta-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(sherd_meta_new(&m, &settings, NULL, NULL), 0);
    add(m, "z", SHERD_OP_PRODUCT, N, K, M);
    add(m, "y", SHERD_OP_PRODUCT, N, K, M);
    add(m, "x", SHERD_OP_PRODUCT, 2, 2, 2);
    add(m, "t", SHERD_OP_TANH, N, 0, K);
    assert_int_equal(sherd_meta_save(m, path, &as, NULL, NULL), 0);
    sherd_meta_free(m);
    return 0;
}

static int tear_down(void **s)
{
    (void)s;
    return unlink(path);
}

static sherd_meta_request request(const char *operation)
{
    return (sherd_meta_request){
        .size = sizeof(sherd_meta_request), .a = va(), .b = vb(), .operation = operation, .nodes = 3
    };
}

static bool is_used(const char *name)
{
    sherd_meta *m;
    assert_int_equal(sherd_meta_load(&m, path, NULL), 0);
    bool used = sherd_meta_at(m, (size_t)sherd_meta_find(m, name))->used;
    sherd_meta_free(m);
    return used;
}

/* Takes the operation, which must give this error. */
static void refused(const sherd_meta_request *r, sherd_product_options o, int err,
                    const char *words)
{
    sherd_meta *m = (sherd_meta *)&m;
    sherd_product_options before = o;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_meta_take(&m, path, r, &o, NULL, &d), err);
    if (!strstr(d.message, words)) fail_msg("%s", d.message);
    assert_null(m);
    assert_memory_equal(&o, &before, sizeof o);
}

static void options_to_fill_in_are_required(void **s)
{
    (void)s;
    const sherd_meta_request r = request("y");
    sherd_meta *m = (sherd_meta *)&m;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_meta_take(&m, path, &r, NULL, NULL, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "sherd_product_options is NULL");
    assert_null(m);
    assert_false(is_used("y"));
}

static void an_operation_sets_the_options_of_its_product(void **s)
{
    (void)s;
    const sherd_meta_request r = request("y");
    sherd_product_options o = { .size = sizeof o };
    sherd_meta_usage usage;
    sherd_meta *m;
    assert_int_equal(sherd_meta_take(&m, path, &r, &o, &usage, NULL), 0);
    assert_true(o.group == 2 && o.balanced && !o.shuffle_rows && o.operation == 1);
    assert_true(o.seed == sherd_meta_seed(m) && o.shuffles && o.scheme == SHERD_PERMUTE);
    for (int i = 0; i < K; i++) assert_true(o.shuffles->exposures[i] < 3);
    assert_int_equal(usage, SHERD_META_FIRST_USE);
    sherd_meta_free(m);
    assert_true(is_used("y") && !is_used("z"));
}

static void the_only_operation_of_a_shape_needs_no_name(void **s)
{
    (void)s;
    sherd_meta_request r = request(NULL);
    const sherd_product_options o = { .size = sizeof o };
    refused(&r, o, SHERD_EINVAL, "2 operations are of this kind and shape");
    r.op = SHERD_OP_TANH;
    sherd_product_options own = o;
    sherd_meta *m;
    assert_int_equal(sherd_meta_take(&m, path, &r, &own, NULL, NULL), 0);
    assert_int_equal(own.operation, 3);
    sherd_meta_free(m);
    r.a = vb();
    refused(&r, o, SHERD_ESHAPE, "none of its 4 operations is tanh of this shape");
    r.op = 0;
    refused(&r, o, SHERD_ESHAPE, "none of its 4 operations is a product of this shape");
}

static void operations_and_settings_that_do_not_fit_are_refused(void **s)
{
    (void)s;
    sherd_meta_request r = request("x");
    sherd_product_options o = { .size = sizeof o };
    refused(&r, o, SHERD_ESHAPE,
            "operation x is dot of 2 x 2 x 2, which does not match these operands");
    r.operation = "w";
    refused(&r, o, SHERD_EFORMAT, "has no operation 'w'");
    r.operation = "z";
    r.nodes = 4;
    refused(&r, o, SHERD_ESHAPE, "is for 3 nodes, not for 4");
    r.nodes = 0;
    o.group = 3;
    refused(&r, o, SHERD_EINVAL, "--group disagrees with");
    o.group = 0;
    r.settings = SHERD_META_GROUP; /* all columns, and nothing else */
    refused(&r, o, SHERD_EINVAL, "--group disagrees with");
    r.settings = SHERD_META_EXPOSURE;
    refused(&r, o, SHERD_EINVAL, "--exposure disagrees with");
    r.settings = 0;
    o.shuffle_rows = true;
    refused(&r, o, SHERD_EINVAL, "--shuffle-rows disagrees with");
    o.shuffle_rows = false;
    o.scheme = SHERD_PLAIN;
    refused(&r, o, SHERD_EINVAL, "--scheme disagrees with");
    o.scheme = 0;
    r.op = (sherd_op)9;
    refused(&r, o, SHERD_EINVAL, "unknown operation 9");
    r.op = 0;
    r.a.data = NULL;
    refused(&r, o, SHERD_EINVAL, "A");
    assert_false(is_used("z"));
}

static void other_operands_need_reuse(void **s)
{
    (void)s;
    sherd_meta_request r = request("z");
    sherd_product_options o = { .size = sizeof o };
    sherd_meta_usage usage;
    sherd_meta *m;
    const sherd_product_options none = o;
    assert_int_equal(sherd_meta_take(&m, path, &r, &o, &usage, NULL), 0);
    sherd_meta_free(m);
    o = none;
    assert_int_equal(sherd_meta_take(&m, path, &r, &o, &usage, NULL), 0);
    assert_int_equal(usage, SHERD_META_SAME_USE);
    sherd_meta_free(m);
    r.b = sherd_view_c(other, SHERD_F64, K, M);
    refused(&r, none, SHERD_EEXPOSURE, "operation z was used for other operands");
    r.look_only = true;
    o = none;
    assert_int_equal(sherd_meta_take(&m, path, &r, &o, &usage, NULL), 0);
    sherd_meta_free(m);
    r.look_only = false;
    r.reuse = true;
    o = none;
    assert_int_equal(sherd_meta_take(&m, path, &r, &o, &usage, NULL), 0);
    assert_int_equal(usage, SHERD_META_REUSED);
    sherd_meta_free(m);
}

static void a_preview_records_nothing(void **s)
{
    (void)s;
    sherd_meta_request r = request("z");
    sherd_product_options o = { .size = sizeof o };
    sherd_meta_usage usage;
    sherd_meta *m;
    r.look_only = true;
    assert_int_equal(sherd_meta_take(&m, path, &r, &o, &usage, NULL), 0);
    assert_true(o.shuffles && usage == SHERD_META_SAME_USE);
    sherd_meta_free(m);
    assert_false(is_used("z"));
}

/* The digests of profiles count: the values are not read again. */
static void profiles_give_the_digests(void **s)
{
    (void)s;
    const sherd_meta_request r = request("z");
    sherd_product_options o = { .size = sizeof o };
    uint8_t digest[32];
    sherd_meta_usage usage;
    sherd_meta *m;
    assert_int_equal(sherd_profile_new(&o.profile_b, vb(), NULL), 0);
    const sherd_product_options none = o;
    assert_int_equal(sherd_profile_digest(o.profile_b, digest, NULL), 0);
    assert_int_equal(sherd_meta_take(&m, path, &r, &o, &usage, NULL), 0);
    sherd_meta_free(m);
    b[0] = 77;
    o = none;
    assert_int_equal(sherd_meta_take(&m, path, &r, &o, &usage, NULL), 0);
    assert_int_equal(usage, SHERD_META_SAME_USE);
    sherd_meta_free(m);
    o = none;
    o.profile_b = NULL;
    refused(&r, o, SHERD_EEXPOSURE, "was used for other operands");
    o.profile_a = none.profile_b;
    refused(&r, o, SHERD_EINVAL, "the profile given for A belongs to another matrix");
    sherd_profile_free(none.profile_b);
}

static bool stop(void *ctx)
{
    unsigned *left = ctx;
    return (*left)-- == 0;
}

static void a_locked_file_is_waited_for(void **s)
{
    (void)s;
    unsigned left = 3;
    sherd_meta_request r = request("z");
    const sherd_product_options o = { .size = sizeof o };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    r.hooks = (sherd_hooks){ .interrupted = stop, .ctx = &left };
    assert_int_equal(flock(fd, LOCK_EX), 0);
    refused(&r, o, SHERD_EINTERRUPTED, "interrupted while another process uses");
    close(fd);
    assert_false(is_used("z"));
}

static bool at_once(void *ctx)
{
    unsigned *left = ctx;
    return (*left)-- == 0;
}

static void digesting_operands_can_be_interrupted(void **s)
{
    (void)s;
    sherd_product_options o = { .size = sizeof o };
    sherd_meta_request r = request("y");
    for (unsigned given = 0; given < 2; given++) {
        unsigned left = 1; /* interrupted at B */
        r.hooks = (sherd_hooks){ .interrupted = at_once, .ctx = &left };
        if (given) assert_int_equal(sherd_profile_new(&o.profile_b, vb(), NULL), 0);
        refused(&r, o, SHERD_EINTERRUPTED, "interrupted");
        assert_int_equal(left, UINT_MAX);
        assert_false(is_used("y"));
    }
    sherd_profile_free(o.profile_b);
}

static void a_missing_file_is_an_error_of_its_path(void **s)
{
    (void)s;
    const sherd_meta_request r = request("z");
    sherd_product_options o = { .size = sizeof o };
    sherd_meta *m;
    assert_int_equal(sherd_meta_take(&m, "/nowhere/at/all", &r, &o, NULL, NULL), SHERD_EOPEN);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    int err = SHERD_ENOMEM;
    for (size_t nth = 1; err; nth++) {
        const sherd_meta_request r = request("z");
        sherd_product_options o = { .size = sizeof o };
        sherd_meta *m;
        sherd__alloc_fail_nth(nth);
        err = sherd_meta_take(&m, path, &r, &o, NULL, NULL);
        sherd__alloc_fail_nth(0);
        if (err) assert_true(err == SHERD_ENOMEM && !m && !o.shuffles);
        else sherd_meta_free(m);
    }
    assert_true(is_used("z"));
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(options_to_fill_in_are_required),
        CASE(an_operation_sets_the_options_of_its_product),
        CASE(the_only_operation_of_a_shape_needs_no_name),
        CASE(operations_and_settings_that_do_not_fit_are_refused),
        CASE(other_operands_need_reuse),
        CASE(a_preview_records_nothing),
        CASE(profiles_give_the_digests),
        CASE(a_locked_file_is_waited_for),
        CASE(digesting_operands_can_be_interrupted),
        CASE(a_missing_file_is_an_error_of_its_path),
        CASE(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
