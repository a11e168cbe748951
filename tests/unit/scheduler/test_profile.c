/* Profiles: values that are computed once, shared by all calls that a profile is given to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "scheduler/plan/prepare.h"
#include "scheduler/plan/profile.h"
#include "sherd/forecast.h"
#include "sherd/profile.h"
#include "store/digest.h"

enum { N = 6, K = 5, M = 4 };

static double a[N * K], b[K * M];

static void fill(void)
{
    for (int i = 0; i < N * K; i++) a[i] = i % 3 ? i - 11.25 : 0;
    for (int i = 0; i < K * M; i++) b[i] = i + 1;
}

static sherd_profile *profile_of(sherd_view v)
{
    sherd_profile *p;
    assert_int_equal(sherd_profile_new(&p, v, NULL), 0);
    return p;
}

static void a_profile_describes_the_values(void **s)
{
    (void)s;
    fill();
    sherd_profile *p = profile_of(sherd_view_c(a, SHERD_F64, N, K));
    sherd_profile_info i = { .size = sizeof i }, none = { .size = 0 };
    assert_int_equal(sherd_profile_get(p, &i, NULL), 0);
    assert_int_equal(i.rows, N);
    assert_int_equal(i.cols, K);
    assert_int_equal(i.nonzeros, 20);
    assert_true(i.nonfinite == 0 && i.min_abs == 0 && i.max_abs == 17.75 && !i.integers);
    assert_int_equal(sherd_profile_get(p, &none, NULL), SHERD_EINVAL);
    sherd_profile_free(p);
    a[7] = INFINITY;
    p = profile_of(sherd_view_c(a, SHERD_F64, N, K));
    assert_int_equal(sherd_profile_get(p, &i, NULL), 0);
    assert_true(i.nonfinite == 1 && i.nonzeros == 20);
    sherd_profile_free(p);
    sherd_profile_free(NULL);
}

static void a_view_that_repeats_one_number_is_not_read_entry_by_entry(void **s)
{
    (void)s;
    sherd_view v = { .data = b, .dtype = SHERD_F64, .rows = 1u << 30, .cols = 1u << 30 };
    sherd_profile *p = profile_of(v);
    sherd_profile_info i = { .size = sizeof i };
    fill();
    assert_int_equal(sherd_profile_get(p, &i, NULL), 0);
    assert_true(i.nonzeros == UINT64_C(1) << 60 && i.max_abs == 1 && i.integers);
    sherd_profile_free(p);
}

static void rounding_is_that_of_the_fixed_point(void **s)
{
    (void)s;
    sherd_rounding r = { .size = sizeof r };
    sherd_diag d = { 0 };
    fill();
    a[1] = 1e-9;
    sherd_profile *p = profile_of(sherd_view_c(a, SHERD_F64, N, K));
    for (int again = 0; again < 2; again++)
        for (uint32_t bits = 8; bits <= 26; bits += 18) {
            sherd__fixed f;
            sherd__fixed_loss loss;
            sherd_view v = sherd_view_c(a, SHERD_F64, N, K);
            assert_int_equal(sherd__fixed_choose(v, bits, "A", &f, NULL), 0);
            sherd__fixed_measure(v, f.scale, &loss);
            assert_int_equal(sherd_profile_rounding_get(p, bits, &r, NULL), 0);
            assert_true(r.scale == f.scale && r.vanished == 1 && r.vanished == loss.vanished);
            assert_true(r.nonzeros == loss.nonzeros && r.max_error == loss.max_error);
            assert_true(r.max_abs == 17.75 && r.relative_error == r.max_error / 17.75);
        }
    assert_int_equal(sherd_profile_rounding_get(p, 1, &r, &d), SHERD_EINVAL);
    sherd_profile_free(p);
    static const uint8_t bytes[] = { 0, 1, 255 };
    p = profile_of(sherd_view_c(bytes, SHERD_U8, 1, 3));
    assert_int_equal(sherd_profile_rounding_get(p, 8, &r, NULL), 0);
    assert_true(r.nonzeros == 0 && r.max_error == 0 && r.relative_error == 0 && r.scale == 0);
    sherd_profile_free(p);
    a[2] = NAN;
    p = profile_of(sherd_view_c(a, SHERD_F64, N, K));
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_profile_rounding_get(p, 8, &r, &d), SHERD_ERANGE);
    assert_string_equal(d.message, "the operand: row 0, column 2 is NaN: fixed point has no such "
                                   "value");
    sherd_profile_free(p);
}

static void the_digest_is_computed_once_also_in_a_thread(void **s)
{
    (void)s;
    fill();
    sherd_view v = sherd_view_t(sherd_view_c(a, SHERD_F64, N, K));
    for (int started = 0; started < 3; started++) {
        uint8_t first[32], second[32];
        sherd__digest wanted;
        sherd_profile *p = profile_of(v);
        a[0] = started;
        assert_int_equal(sherd__digest_view(&wanted, v, NULL), 0);
        if (started) sherd_profile_digest_start(p);
        if (started == 2) sherd_profile_digest_start(p);
        assert_int_equal(sherd_profile_digest(p, first, NULL), 0);
        assert_memory_equal(first, wanted.sha256, 32);
        a[0] = 17;
        assert_int_equal(sherd_profile_digest(p, second, NULL), 0);
        assert_memory_equal(first, second, 32);
        sherd_profile_digest_start(p);
        sherd_profile_free(p);
    }
    sherd_profile *p = profile_of(v);
    sherd_profile_digest_start(p);
    sherd_profile_free(p);
}

enum { BROAD = 16384 };

static bool stops(void *ctx)
{
    int *asked = ctx;
    return ++*asked > 0;
}

static bool hashes(sherd_profile *p)
{
    pthread_mutex_lock(&p->hashing);
    bool yes = p->hashes;
    pthread_mutex_unlock(&p->hashing);
    return yes;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One row that is read again and again, 32 GB: the whole digest takes ten seconds at least. */
static void a_digest_in_a_thread_can_be_interrupted_and_discarded(void **s)
{
    (void)s;
    static const double row[BROAD];
    sherd_view v = {
        .data = row, .dtype = SHERD_F64, .rows = 1u << 18, .cols = BROAD, .col_stride = 1
    };
    sherd__digest digest;
    sherd_diag d = { 0 };
    int asked = 0;
    const sherd_hooks hooks = { .interrupted = stops, .ctx = &asked };
    sherd_profile *p = profile_of(v);
    sherd_profile_digest_start(p);
    while (!hashes(p)) sched_yield();
    assert_int_equal(sherd__profile_hash(p, &digest, &hooks, &d), SHERD_EINTERRUPTED);
    assert_true(asked == 1 && hashes(p));
    double began = cpu_s();
    sherd_profile_free(p);
    assert_true(cpu_s() - began < 5);
}

typedef struct curious {
    sherd_profile *p;
    sherd_profile_info info;
    uint8_t digest[32];
    int asked;
} curious;

static bool looks(void *ctx)
{
    curious *c = ctx;
    if (c->asked++) return false;
    c->info = (sherd_profile_info){ .size = sizeof c->info };
    assert_int_equal(sherd_profile_get(c->p, &c->info, NULL), 0);
    assert_int_equal(sherd_profile_digest(c->p, c->digest, NULL), 0);
    return false;
}

static void hooks_may_use_the_profile(void **s)
{
    (void)s;
    fill();
    sherd_view v = sherd_view_c(a, SHERD_F64, N, K);
    for (int digest = 0; digest < 2; digest++) {
        sherd__digest found, wanted;
        curious c = { .p = profile_of(v) };
        const sherd_hooks hooks = { .interrupted = looks, .ctx = &c };
        if (digest) assert_int_equal(sherd__profile_hash(c.p, &found, &hooks, NULL), 0);
        else assert_int_equal(sherd__profile_examine(c.p, &hooks, NULL), 0);
        assert_true(c.asked > 0 && c.info.nonzeros == 20);
        assert_int_equal(sherd__digest_view(&wanted, v, NULL), 0);
        assert_memory_equal(c.digest, wanted.sha256, 32);
        if (digest) assert_memory_equal(found.sha256, wanted.sha256, 32);
        sherd_profile_free(c.p);
    }
}

static void failed_allocations_leave_a_profile_usable(void **s)
{
    (void)s;
    uint8_t digest[32];
    sherd_profile *p = (sherd_profile *)&p;
    fill();
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd_profile_new(&p, sherd_view_c(a, SHERD_F64, N, K), NULL), SHERD_ENOMEM);
    assert_null(p);
    sherd__alloc_fail_nth(0);
    assert_int_equal(sherd_profile_new(&p, sherd_view_c(NULL, SHERD_F64, N, K), NULL),
                     SHERD_EINVAL);
    assert_null(p);
    /* A transpose is read in pieces, which takes memory. */
    p = profile_of(sherd_view_t(sherd_view_c(a, SHERD_F64, N, K)));
    sherd__alloc_fail_nth(1);
    int err = sherd_profile_digest(p, digest, NULL);
    sherd__alloc_fail_nth(0);
    assert_int_equal(err, SHERD_ENOMEM);
    assert_int_equal(sherd_profile_digest(p, digest, NULL), 0);
    sherd_profile_free(p);
}

/* The values become NaN behind the profile's back: who reads them again finds out. */
static void an_operand_with_a_profile_is_not_examined_again(void **s)
{
    (void)s;
    static const sherd_scheme schemes[] = { SHERD_PERMUTE, SHERD_PLAIN, SHERD_SHARE };
    sherd_view va = sherd_view_c(a, SHERD_F64, N, K), vb = sherd_view_c(b, SHERD_F64, K, M);
    const sherd_forecast_options with = {
        .size = sizeof with, .nodes = 3, .node_memory = 1u << 26, .no_time = true
    };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        sherd_product_options o;
        sherd_forecast f = { .size = sizeof f };
        sherd_profile_info info = { .size = sizeof info };
        sherd__product_options_init(&o);
        fill();
        o.scheme = schemes[i];
        o.exact = true;
        o.profile_a = profile_of(va);
        o.profile_b = profile_of(vb);
        assert_int_equal(sherd_profile_get(o.profile_a, &info, NULL), 0);
        assert_int_equal(sherd_product_range(va, vb, &o, NULL), 0);
        a[3] = b[3] = NAN;
        assert_int_equal(sherd_product_range(va, vb, &o, NULL), 0);
        assert_int_equal(sherd_forecast_multiply(va, vb, &o, &with, &f, NULL), 0);
        sherd_product_options alone = o;
        alone.profile_a = alone.profile_b = NULL;
        assert_int_equal(sherd_product_range(va, vb, &alone, NULL), SHERD_ERANGE);
        sherd_profile_free(o.profile_a);
        sherd_profile_free(o.profile_b);
    }
}

static void a_profile_of_another_matrix_is_refused(void **s)
{
    (void)s;
    sherd_view va = sherd_view_c(a, SHERD_F64, N, K), vb = sherd_view_c(b, SHERD_F64, K, M);
    const sherd_forecast_options with = { .size = sizeof with,
                                          .nodes = 3,
                                          .node_memory = 1u << 26 };
    sherd_product_options o;
    sherd_forecast f = { .size = sizeof f };
    sherd_diag d = { 0 };
    fill();
    sherd__product_options_init(&o);
    o.profile_b = profile_of(sherd_view_c(b, SHERD_F64, M, K));
    assert_int_equal(sherd_forecast_multiply(va, vb, &o, &with, &f, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "the profile given for B belongs to another matrix");
    sherd_profile_free(o.profile_b);
}

static void *examine(void *p)
{
    sherd_profile_info i = { .size = sizeof i };
    uint8_t digest[32];
    sherd_rounding r = { .size = sizeof r };
    int err = sherd_profile_get(p, &i, NULL);
    if (!err) err = sherd_profile_rounding_get(p, 12, &r, NULL);
    if (!err) err = sherd_profile_digest(p, digest, NULL);
    return err || i.nonzeros != 20 ? p : NULL;
}

static void threads_share_a_profile(void **s)
{
    (void)s;
    pthread_t threads[4];
    fill();
    sherd_profile *p = profile_of(sherd_view_c(a, SHERD_F64, N, K));
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, examine, p), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    sherd_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profile_describes_the_values),
        cmocka_unit_test(a_view_that_repeats_one_number_is_not_read_entry_by_entry),
        cmocka_unit_test(rounding_is_that_of_the_fixed_point),
        cmocka_unit_test(the_digest_is_computed_once_also_in_a_thread),
        cmocka_unit_test(a_digest_in_a_thread_can_be_interrupted_and_discarded),
        cmocka_unit_test(hooks_may_use_the_profile),
        cmocka_unit_test(failed_allocations_leave_a_profile_usable),
        cmocka_unit_test(an_operand_with_a_profile_is_not_examined_again),
        cmocka_unit_test(a_profile_of_another_matrix_is_refused),
        cmocka_unit_test(threads_share_a_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
