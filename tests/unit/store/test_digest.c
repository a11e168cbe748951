#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "sherd/digest.h"
#include "sherd/npy.h"
#include "store/digest.h"
#include "tests/unit/store/scratch.h"

static void fill(uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) bytes[i] = (uint8_t)(i * 31 + i / 253);
}

static void the_digest_equals_the_headers_definition_in_python(void **s)
{
    (void)s;
    static const char *const names[] = { "", "f8", "f4", "u1", "u2", "u4", "i1", "i2", "i4", "i8" };
    static const char program[] =
        "import numpy as np, hashlib, glob\n"
        "for name in sorted(glob.glob('*.npy')):\n"
        "    a = np.ascontiguousarray(np.load(name))\n"
        "    head = 'sherd-matrix-v1 %s %d %d\\n' % (a.dtype.str, *a.shape)\n"
        "    want = hashlib.sha256(head.encode() + a.tobytes()).hexdigest()\n"
        "    assert open(name[:-4] + '.sum').read() == want, name\n";
    const size_t shapes[][2] = { { 0, 0 }, { 0, 3 }, { 1, 1 }, { 37, 41 }, { 3, 40000 } };
    uint8_t *bytes = malloc(3 * 40000 * 8);
    fill(bytes, 3 * 40000 * 8);
    for (int t = SHERD_F64; t <= SHERD_I64; t++)
        for (size_t k = 0; k < 5; k++)
            for (int transposed = 0; transposed < 2; transposed++) {
                if (t != SHERD_F64 && t != SHERD_U8 && k != 3) continue; /* each save is synced */
                char name[40], text[SHERD__DIGEST_TEXT];
                sherd__digest g;
                sherd_view v = sherd_view_c(bytes, (sherd_dtype)t, shapes[k][0], shapes[k][1]);
                if (transposed) v = sherd_view_t(v);
                assert_int_equal(sherd__digest_view(&g, v, NULL), 0);
                sherd__digest_text(&g, text);
                snprintf(name, sizeof name, "%s-%zu-%d.npy", names[t], k, transposed);
                assert_int_equal(sherd_npy_save(scratch_path(name), v, NULL), 0);
                snprintf(name, sizeof name, "%s-%zu-%d.sum", names[t], k, transposed);
                scratch_write(name, text, 64);
            }
    free(bytes);
    assert_int_equal(scratch_python(program), 0);
    scratch_clear();
}

static void the_public_digests_are_the_same(void **s)
{
    (void)s;
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const double x[6] = { 1, 2, 3, 4, 5, 6 };
    const sherd_view v = sherd_view_t(sherd_view_c(x, SHERD_F64, 2, 3));
    uint8_t out[32];
    char text[SHERD__DIGEST_TEXT];
    sherd__digest g;
    assert_int_equal(sherd_digest_matrix(v, out, NULL), 0);
    assert_int_equal(sherd__digest_view(&g, v, NULL), 0);
    assert_memory_equal(out, g.sha256, sizeof out);
    assert_int_equal(sherd_digest_bytes("abc", 3, g.sha256, NULL), 0);
    sherd__digest_text(&g, text);
    assert_string_equal(text, abc);
    assert_int_equal(sherd_digest_matrix((sherd_view){ .rows = 1, .cols = 1 }, out, NULL),
                     SHERD_EINVAL);
}

static void shape_dtype_and_each_bit_change_the_digest(void **s)
{
    (void)s;
    uint8_t b[24] = { 0 };
    sherd__digest g[5];
    assert_int_equal(sherd__digest_view(&g[0], sherd_view_c(b, SHERD_U8, 4, 6), NULL), 0);
    assert_int_equal(sherd__digest_view(&g[1], sherd_view_c(b, SHERD_U8, 6, 4), NULL), 0);
    assert_int_equal(sherd__digest_view(&g[2], sherd_view_c(b, SHERD_I8, 4, 6), NULL), 0);
    assert_int_equal(sherd__digest_view(&g[3], sherd_view_c(b, SHERD_F64, 1, 3), NULL), 0);
    b[23] = 1;
    assert_int_equal(sherd__digest_view(&g[4], sherd_view_c(b, SHERD_U8, 4, 6), NULL), 0);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++) assert_memory_not_equal(&g[i], &g[j], sizeof g[0]);
}

static void rows_in_parts_of_any_size_give_the_same_digest(void **s)
{
    (void)s;
    uint8_t b[7 * 5 * 4];
    sherd__digest whole, parts;
    fill(b, sizeof b);
    sherd_view v = sherd_view_t(sherd_view_c(b, SHERD_U32, 5, 7));
    assert_int_equal(sherd__digest_view(&whole, v, NULL), 0);
    for (size_t step = 1; step <= 7; step++) {
        sherd__digest_stream *st;
        assert_int_equal(sherd__digest_new(&st, SHERD_U32, 7, 5, NULL), 0);
        for (size_t r = 0; r < 7; r += step) {
            size_t n = r + step <= 7 ? step : 7 - r;
            assert_int_equal(sherd__digest_rows(st, sherd_view_sub(v, r, n, 0, 5), NULL), 0);
        }
        assert_int_equal(sherd__digest_end(st, &parts, NULL), 0);
        assert_memory_equal(&parts, &whole, sizeof whole);
    }
}

static void any_strides_give_the_digest_of_the_values(void **s)
{
    (void)s;
    uint16_t wide[6 * 10], tight[3 * 5];
    sherd__digest want, got;
    for (size_t i = 0; i < 60; i++) wide[i] = (uint16_t)(i * 1021);
    for (size_t r = 0; r < 3; r++)
        for (size_t c = 0; c < 5; c++) tight[r * 5 + c] = wide[2 * r * 10 + 2 * c + 1];
    sherd_view every_other = { wide + 1, SHERD_U16, 3, 5, 20, 2 };
    assert_int_equal(sherd__digest_view(&want, sherd_view_c(tight, SHERD_U16, 3, 5), NULL), 0);
    assert_int_equal(sherd__digest_view(&got, every_other, NULL), 0);
    assert_memory_equal(&got, &want, sizeof want);
}

static void missing_and_surplus_rows_are_refused(void **s)
{
    (void)s;
    uint8_t b[8] = { 0 };
    sherd__digest g;
    sherd__digest_stream *st;
    assert_int_equal(sherd__digest_new(&st, (sherd_dtype)99, 1, 1, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__digest_new(&st, SHERD_U8, 2, 4, NULL), 0);
    assert_int_equal(sherd__digest_rows(st, sherd_view_c(b, SHERD_U8, 1, 4), NULL), 0);
    assert_int_equal(sherd__digest_rows(st, sherd_view_c(b, SHERD_U8, 2, 4), NULL), SHERD_EINVAL);
    assert_int_equal(sherd__digest_rows(st, sherd_view_c(b, SHERD_U8, 1, 3), NULL), SHERD_EINVAL);
    assert_int_equal(sherd__digest_rows(st, sherd_view_c(b, SHERD_I8, 1, 4), NULL), SHERD_EINVAL);
    assert_int_equal(sherd__digest_end(st, &g, NULL), SHERD_EINVAL);
}

static void labels_separate_commitments(void **s)
{
    (void)s;
    sherd__digest a, b, c;
    char text[SHERD__DIGEST_TEXT];
    assert_int_equal(sherd__digest_labelled(&a, "", "abc", 3), 0);
    assert_int_equal(sherd__digest_labelled(&b, "a", "bc", 2), 0);
    assert_int_equal(sherd__digest_labelled(&c, "a", "bc", 2), 0);
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_memory_equal(&b, &c, sizeof b);
    sherd__digest_text(&a, text); /* printf '\0abc' | sha256sum */
    assert_string_equal(text, "609f6e36d2405585188d5cfd761f407c7cc46a7d3f314c88270469dde315fcd1");
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    uint8_t b[8] = { 0 };
    for (size_t n = 1, reached = 1; reached; n++) {
        sherd__digest g;
        sherd__alloc_fail_nth(n);
        int err = sherd__digest_view(&g, sherd_view_c(b, SHERD_U8, 2, 4), NULL);
        reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
    }
    sherd__digest_free(NULL);
}

static unsigned asked, ends_at;

static bool interrupted(void *ctx)
{
    (void)ctx;
    return ++asked == ends_at;
}

static void a_long_digest_asks_whether_to_stop(void **s)
{
    (void)s;
    const sherd_hooks hooks = { .interrupted = interrupted };
    static const double row[1000];
    const sherd_view v = { row, SHERD_F64, 5000, 1000, 0, 1 }; /* 40 MB */
    sherd__digest all, asking;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__digest_view(&all, v, NULL), 0);
    assert_int_equal(sherd__digest_view_asking(&asking, v, &hooks, NULL), 0);
    assert_memory_equal(&asking, &all, sizeof all);
    assert_in_range(asked, 8, 20);
    ends_at = asked;
    asked = 0;
    assert_int_equal(sherd__digest_view_asking(&asking, v, &hooks, &d), SHERD_EINTERRUPTED);
    assert_int_equal(asked, ends_at);
    assert_string_equal(d.message, "interrupted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_digest_equals_the_headers_definition_in_python),
        cmocka_unit_test(the_public_digests_are_the_same),
        cmocka_unit_test(shape_dtype_and_each_bit_change_the_digest),
        cmocka_unit_test(rows_in_parts_of_any_size_give_the_same_digest),
        cmocka_unit_test(any_strides_give_the_digest_of_the_values),
        cmocka_unit_test(missing_and_surplus_rows_are_refused),
        cmocka_unit_test(labels_separate_commitments),
        cmocka_unit_test(a_long_digest_asks_whether_to_stop),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("store/digest", tests, scratch_setup, scratch_teardown);
}
