/*
 * From B to masks to a product: a file contains R*B, for any memory with which it was made.
 * Preparing a product checks everything before a row is marked as used, and only rows that hide
 * something are marked.
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
#include <unistd.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "matrix/residue.h"
#include "scheduler/plan/prepare.h"
#include "schemes/blind/blind.h"
#include "sherd/forecast.h"
#include "sherd/masks.h"

static char dir[64], path[128], state[128];
static double a_data[12 * 20], b_data[20 * 10], other_data[20 * 10], c_data[12 * 10];
static sherd_view a, b;
static const uint32_t domain[] = { 0, 1, 2, 0 };
static const sherd__nodes nodes = {
    .count = 4, .domain = domain, .domains = 3, .memory = UINT64_C(1) << 26, .usable = 3
};

static int begin(void **s)
{
    (void)s;
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/masks-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/B.masks", dir);
    snprintf(state, sizeof state, "%s/state", dir);
    for (unsigned i = 0; i < 240; i++) a_data[i] = ((double)(i * 37 % 101) - 50) / 7;
    for (unsigned i = 0; i < 200; i++) b_data[i] = ((double)(i * 53 % 97) - 48) / 5;
    memcpy(other_data, b_data, sizeof b_data);
    other_data[77] += 0x1p-30;
    a = sherd_view_c(a_data, SHERD_F64, 12, 20);
    b = sherd_view_c(b_data, SHERD_F64, 20, 10);
    return 0;
}

static int end(void **s)
{
    (void)s;
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    FILE *f = popen(command, "r");
    return f ? pclose(f) : -1;
}

static sherd_masks_options masks_of(uint64_t rows)
{
    return (
        sherd_masks_options){ .size = sizeof(sherd_masks_options), .rows = rows, .state = state };
}

static void make(sherd_view v, const sherd_masks_options *opt, sherd_masks_info *info)
{
    sherd_diag d = { .code = 0 };
    if (sherd_masks_prepare(path, v, opt, info, &d)) fail_msg("%s", d.message);
}

/* Checks that every row of the file is R*B, where R is generated from its key. */
static void must_hold_products(sherd_view v, const sherd_masks_options *opt)
{
    sherd__maskfile *f;
    sherd__masks *masks;
    sherd__fixed fixed;
    sherd_diag d = { .code = 0 };
    uint8_t key[32];
    uint64_t first;
    make(v, opt, NULL);
    if (sherd__maskfile_open(&f, path, state, true, &d)) fail_msg("%s", d.message);
    const sherd__maskfile_head *h = sherd__maskfile_head_of(f);
    assert_int_equal(sherd__maskfile_strike(f, opt->rows, &first, key, &d), 0);
    assert_int_equal(sherd__masks_from_key(&masks, key), 0);
    assert_int_equal(sherd__fixed_choose(v, h->bits_b, "B", &fixed, &d), 0);
    size_t k = v.rows, m = v.cols;
    double *q_b = calloc(k * m + 1, 8), *r = calloc(k + 1, 8), *rb = calloc(m + 1, 8);
    uint8_t *packed = malloc(3 * m + 1);
    sherd__fixed_dense(&fixed, v, q_b, m);
    for (uint64_t row = 0; row < opt->rows; row++)
        for (uint32_t q = 0; q < h->primes_len; q++) {
            int64_t p = h->primes[q];
            assert_int_equal(sherd__blind_mask(masks, q, h->primes[q],
                                               (sherd__mask_part){ row, 1, 0, k }, r),
                             0);
            assert_int_equal(sherd__maskfile_read(f, row, 3 * q * m, 3 * m, packed, &d), 0);
            assert_int_equal(sherd__residue_unpack(packed, m, h->primes[q], rb, NULL), 0);
            for (size_t j = 0; j < m; j++) {
                int64_t sum = 0;
                for (size_t l = 0; l < k; l++)
                    sum = (sum + (int64_t)r[l] * (int64_t)q_b[l * m + j]) % p;
                assert_int_equal((sum - (int64_t)rb[j]) % p, 0);
            }
        }
    sherd__masks_free(masks);
    sherd__maskfile_close(f);
    free(q_b);
    free(r);
    free(rb);
    free(packed);
}

static void a_file_contains_the_products_of_its_masks(void **s)
{
    (void)s;
    /* One row and one column at a time, and more */
    static const uint64_t memories[] = { 0, 1, 700, 3000 };
    for (size_t i = 0; i < 4; i++) {
        sherd_masks_options o = masks_of(12);
        o.memory = memories[i];
        o.bits_a = i == 2 ? 26 : 0;
        o.bits_b = i == 3 ? 26 : 0;
        must_hold_products(b, &o);
    }
    for (unsigned i = 0; i < 4; i++) { /* sizes 0 and 1 */
        sherd_masks_options o = masks_of(3);
        must_hold_products(sherd_view_c(b_data, SHERD_F64, i & 1, i >> 1), &o);
    }
    sherd_masks_options o = masks_of(5);
    must_hold_products(sherd_view_t(b), &o);
}

static void no_two_files_share_a_mask(void **s)
{
    (void)s;
    uint8_t keys[2][32];
    for (int i = 0; i < 2; i++) {
        sherd__maskfile *f;
        uint64_t first;
        sherd_masks_options o = masks_of(2);
        make(b, &o, NULL);
        assert_int_equal(sherd__maskfile_open(&f, path, state, true, NULL), 0);
        assert_int_equal(sherd__maskfile_strike(f, 1, &first, keys[i], NULL), 0);
        sherd__maskfile_close(f);
    }
    assert_memory_not_equal(keys[0], keys[1], 32);
}

static void integers_in_b_get_the_smallest_width_that_holds_them(void **s)
{
    (void)s;
    static const int32_t wide[4] = { 1, -100000, 5, 0 }, none[4] = { 0 };
    sherd_masks_options o = masks_of(1);
    sherd_masks_info info = { .size = sizeof info };
    make(sherd_view_c(wide, SHERD_I32, 2, 2), &o, &info);
    assert_int_equal(info.bits_a, 17);
    assert_int_equal(info.bits_b, 18);
    assert_int_equal(info.primes, 2);
    make(sherd_view_c(none, SHERD_I32, 2, 2), &o, &info);
    assert_int_equal(info.bits_b, 2);
    make(b, &o, &info);
    assert_int_equal(info.bits_b, 17);
    o.bits_a = 9;
    make(b, &o, &info);
    assert_int_equal(info.bits_b, 9);
    assert_int_equal(info.rows, 1);
    assert_int_equal(info.left, 1);
    assert_int_equal(info.k, 20);
    assert_int_equal(info.m, 10);
}

static bool stop(void *ctx)
{
    static unsigned asked;
    (void)ctx;
    return ++asked == 2;
}

static void a_failed_preparation_leaves_the_earlier_file(void **s)
{
    (void)s;
    static const int32_t wide[1] = { 1 << 26 };
    double nan = (double)NAN;
    sherd_masks_info before = { .size = sizeof before }, after = { .size = sizeof after };
    sherd_masks_options o = masks_of(4);
    make(b, &o, &before);
    struct {
        sherd_view v;
        sherd_masks_options o;
        int err;
        const char *says;
    } cases[] = {
        { b, masks_of(0), SHERD_EINVAL, "at least one row" },
        { b,
          { .size = sizeof o, .rows = 1, .state = state, .bits_a = 1 },
          SHERD_EINVAL,
          "2 to 26" },
        { b,
          { .size = sizeof o, .rows = 1, .state = state, .bits_b = 27 },
          SHERD_EINVAL,
          "2 to 26" },
        { sherd_view_c(&nan, SHERD_F64, 1, 1), masks_of(1), SHERD_ERANGE, "NaN" },
        { sherd_view_c(wide, SHERD_I32, 1, 1), masks_of(1), SHERD_ERANGE, "67108864" },
        { b,
          { .size = sizeof o,
            .rows = 600,
            .state = state,
            .memory = 1,
            .hooks = { .interrupted = stop } },
          SHERD_EINTERRUPTED,
          "interrupted" },
        { b, { .size = sizeof o, .rows = 1, .state = "/proc/nowhere" }, SHERD_EOPEN, "/proc" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd_diag d = { .code = 0 };
        int err = sherd_masks_prepare(path, cases[i].v, &cases[i].o, NULL, &d);
        if (err != cases[i].err || !strstr(d.message, cases[i].says))
            fail_msg("%zu: %s %s", i, sherd_err_name(err), d.message);
    }
    assert_int_equal(sherd_masks_get(path, state, &after, NULL), 0);
    assert_memory_equal(&before, &after, sizeof before);
}

/* ---- products -------------------------------------------------------------------------------- */

static sherd_product_options options(void)
{
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.scheme = SHERD_BLIND;
    o.masks = path;
    o.masks_state = state;
    return o;
}

static uint64_t left(void)
{
    sherd_masks_info info = { .size = sizeof info };
    assert_int_equal(sherd_masks_get(path, state, &info, NULL), 0);
    return info.left;
}

static void only_hiding_marks_rows_as_used(void **s)
{
    (void)s;
    sherd__prepared p;
    sherd_diag d = { .code = 0 };
    sherd_product_options o = options();
    sherd_masks_options mo = masks_of(30);
    sherd__cell_work w;
    sherd__cell first = { 0, 0, 0 };
    make(b, &mo, NULL);
    if (sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 10 }, &nodes, &o, &d))
        fail_msg("%s", d.message);
    assert_int_equal(left(), 30);
    sherd__prepared_fini(&p);
    assert_int_equal(left(), 30);
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 10 }, &nodes, &o,
                                             &d),
                     0);
    assert_int_equal(sherd__prepared_ready(&p, &d), 0); /* no node is up yet */
    assert_int_equal(left(), 30);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(p.hiding.ops->hide(p.hiding.ctx, first, &w), 0);
        assert_int_equal(left(), 18);
        sherd__fragment_free(w.left);
    }
    sherd__prepared_fini(&p);
    sherd_forecast e = { .size = sizeof e }; /* a dry run */
    const sherd_forecast_options with = { .size = sizeof with, .nodes = 4, .node_memory = 1 << 26 };
    assert_int_equal(sherd_forecast_multiply(a, b, &o, &with, &e, &d), 0);
    assert_true(e.exposure_a == 0 && e.exposure_b == 1);
    assert_true(e.bytes_in > 12 * 10 * 3 * 2); /* plus headers */
    assert_true(e.bytes_out > 12 * 20 * 3 * 2 + 4 * 20 * 10 * 4);
    assert_int_equal(left(), 18);
}

/* 2 rows of 180 KB: more than the read buffer. */
static void masks_that_change_during_a_product_are_named(void **s)
{
    (void)s;
    enum { WIDE = 30000 };
    sherd__prepared p;
    sherd_diag d = { .code = 0 };
    sherd__cell_work w;
    sherd__cell cell = { 0, 0, 0 };
    sherd_product_options o = options();
    sherd_masks_options mo = masks_of(3);
    double *wide = calloc(20 * WIDE, sizeof *wide), *c = calloc(3 * WIDE, sizeof *c);
    sherd_view right = sherd_view_c(wide, SHERD_F64, 20, WIDE), left_rows = a;
    sherd__nodes one = nodes;
    one.count = one.domains = one.usable = 1;
    left_rows.rows = 3;
    make(right, &mo, NULL);
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ left_rows, right, c, WIDE },
                                             &one, &o, &d),
                     0);
    assert_int_equal(sherd__prepared_ready(&p, &d), 0);
    assert_int_equal(p.hiding.ops->hide(p.hiding.ctx, cell, &w), 0);
    FILE *f = fopen(path, "r+b");
    fseek(f, 256 + 100, SEEK_SET);
    fputc(0x5a, f);
    fclose(f);
    uint8_t *answer = calloc(w.result.len, 1);
    assert_int_equal(p.hiding.ops->fold(p.hiding.ctx, cell, answer), SHERD_EFORMAT);
    sherd__prepared_why(&p, SHERD_EFORMAT, &d);
    assert_non_null(strstr(d.message, "B.masks: row 0 does not fit its tag"));
    d = (sherd_diag){ .code = 0 };
    sherd__prepared_why(&p, SHERD_EFEWNODES, &d); /* an error with another reason */
    assert_int_equal(d.code, 0);
    sherd__fragment_free(w.left);
    sherd__prepared_fini(&p);
    free(answer);
    free(wide);
    free(c);
}

static void two_products_share_no_mask(void **s)
{
    (void)s;
    sherd_product_options o = options();
    sherd_masks_options mo = masks_of(24);
    sherd__nodes one = nodes;
    uint8_t seen[2][12 * 20 * 6];
    make(b, &mo, NULL);
    one.count = 1;
    for (int i = 0; i < 2; i++) { /* the same A twice: equal bytes would mean equal masks */
        sherd__prepared p;
        sherd__cell_work w;
        size_t at = 0;
        assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 10 }, &one,
                                                 &o, NULL),
                         0);
        for (uint32_t panel = 0; at < sizeof seen[i]; panel++) {
            assert_int_equal(p.hiding.ops->hide(p.hiding.ctx, (sherd__cell){ 0, 0, panel }, &w), 0);
            size_t len = sherd__fragment_info_of(w.left)->len;
            memcpy(seen[i] + at, sherd__fragment_bytes(w.left), len);
            at += len;
            sherd__fragment_free(w.left);
        }
        sherd__prepared_fini(&p);
    }
    unsigned equal = 0;
    for (size_t i = 0; i < sizeof seen[0]; i += 3) equal += !memcmp(seen[0] + i, seen[1] + i, 3);
    assert_int_equal(equal, 0);
}

static void products_that_the_masks_do_not_fit_are_refused_and_use_none(void **s)
{
    (void)s;
    static const int32_t wide[20] = { [7] = 70000 };
    double nan_data[20] = { [3] = (double)NAN };
    sherd_masks_options mo = masks_of(12);
    make(b, &mo, NULL);
    sherd_view other = sherd_view_c(other_data, SHERD_F64, 20, 10);
    static double long_data[13 * 20];
    sherd_view long_a = sherd_view_c(long_data, SHERD_F64, 13, 20);
    struct {
        sherd_view a, b;
        sherd_product_options o;
        int err;
        const char *says;
    } cases[] = {
        { a, other, options(), SHERD_EEXPOSURE, "masks for another B: its digest differs" },
        { a, sherd_view_sub(b, 0, 20, 0, 9), options(), SHERD_ESHAPE, "for a B of 20 x 10" },
        { a, b, options(), SHERD_EINVAL, "masks for 17 bits of A and 17 of B, requested 12 of A" },
        { a, b, options(), SHERD_EINVAL, "requested 9 of B" },
        { sherd_view_c(nan_data, SHERD_F64, 1, 20), b, options(), SHERD_ERANGE, "NaN" },
        { sherd_view_c(wide, SHERD_I32, 1, 20), b, options(), SHERD_ERANGE, "70000" },
        { long_a, b, options(), SHERD_EEXPOSURE, "12 rows of masks are left, and A has 13" },
        { a, b, options(), SHERD_EINVAL, "needs masks" },
        { a, b, options(), SHERD_EOPEN, "nowhere" },
        { sherd_view_c(NULL, SHERD_F64, 12, 20), b, options(), SHERD_EUNSUPPORTED, "not kept" },
        { a, b, options(), SHERD_EFEWNODES, "does not fit" },
    };
    cases[2].o.bits = 12;
    cases[3].o.bits_b = 9;
    cases[7].o.masks = NULL;
    cases[8].o.masks = "/nowhere";
    cases[10].o.memory = 10;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd_diag d = { .code = 0 };
        sherd__prepared p;
        int err = sherd__prepare_multiply(&p,
                                          &(sherd__matrices){ cases[i].a, cases[i].b, c_data,
                                                              cases[i].b.cols },
                                          &nodes, &cases[i].o, &d);
        if (err != cases[i].err || !strstr(d.message, cases[i].says))
            fail_msg("%zu: %s %s", i, sherd_err_name(err), d.message);
    }
    assert_int_equal(left(), 12);
    sherd__prepared p;
    sherd_product_options o = options();
    sherd_diag d = { .code = 0 };
    assert_int_equal(sherd__prepare_apply(&p, SHERD_OP_TANH, &(sherd__matrices){ a, a, c_data, 20 },
                                          &nodes, &o, &d),
                     SHERD_EUNSUPPORTED);
    sherd_multiplier m;
    assert_int_equal(sherd_multiplier_cluster(&m, NULL, &o, &d), SHERD_EUNSUPPORTED);
    o.bits = 0; /* as the masks state */
    assert_int_equal(sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 10 }, &nodes, &o,
                                             NULL),
                     0);
    sherd__prepared_fini(&p);
}

static void a_failed_allocation_uses_no_rows(void **s)
{
    (void)s;
    sherd_masks_options mo = masks_of(12);
    sherd_product_options o = options();
    make(b, &mo, NULL);
    for (size_t n = 1;; n++) {
        sherd__prepared p;
        sherd_diag d = { .code = 0 };
        sherd__alloc_fail_nth(n);
        int err = sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c_data, 10 }, &nodes, &o,
                                          &d);
        sherd__alloc_fail_nth(0);
        assert_int_equal(left(), 12);
        if (!err) sherd__prepared_fini(&p);
        if (!err) break;
        assert_int_equal(err, SHERD_ENOMEM);
        assert_true(n < 80);
    }
    for (size_t n = 1;; n++) {
        sherd_diag d = { .code = 0 };
        sherd__alloc_fail_nth(n);
        int err = sherd_masks_prepare(path, b, &mo, NULL, &d);
        sherd__alloc_fail_nth(0);
        if (!err) break;
        assert_int_equal(err, SHERD_ENOMEM);
        assert_int_equal(left(), 12);
        assert_true(n < 80);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_contains_the_products_of_its_masks),
        cmocka_unit_test(no_two_files_share_a_mask),
        cmocka_unit_test(integers_in_b_get_the_smallest_width_that_holds_them),
        cmocka_unit_test(a_failed_preparation_leaves_the_earlier_file),
        cmocka_unit_test(only_hiding_marks_rows_as_used),
        cmocka_unit_test(masks_that_change_during_a_product_are_named),
        cmocka_unit_test(two_products_share_no_mask),
        cmocka_unit_test(products_that_the_masks_do_not_fit_are_refused_and_use_none),
        cmocka_unit_test(a_failed_allocation_uses_no_rows),
    };
    return cmocka_run_group_tests_name("scheduler/masks", tests, begin, end);
}
