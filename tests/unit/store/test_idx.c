#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/alloc.h"
#include "store/idx.h"
#include "tests/unit/store/scratch.h"

/* Makes 3 images of 2 x 5. */
static size_t make_idx(uint8_t *b)
{
    memcpy(b, "\0\0\x08\x03\0\0\0\3\0\0\0\2\0\0\0\5", 16);
    for (size_t i = 0; i < 30; i++) b[16 + i] = (uint8_t)(i * 9);
    return 46;
}

static size_t gzip(uint8_t *out, size_t cap, const uint8_t *in, size_t len)
{
    z_stream z = { .next_in = (z_const Bytef *)in,
                   .avail_in = (uInt)len,
                   .next_out = out,
                   .avail_out = (uInt)cap };
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static int parse(sherd__idx *x, const uint8_t *b, size_t len, sherd_diag *d)
{
    uint8_t *exact = malloc(len ? len : 1); /* exact, so that sanitizers see an overrun */
    memcpy(exact, b, len);
    int err = sherd__idx_parse(x, exact, len, "images", d);
    free(exact);
    return err;
}

static void plain_and_gzipped_files_read_alike(void **s)
{
    (void)s;
    uint8_t b[64], z[256];
    size_t len = make_idx(b), packed = gzip(z, sizeof z, b, len);
    for (int i = 0; i < 2; i++) {
        sherd__idx x;
        assert_int_equal(parse(&x, i ? z : b, i ? packed : len, NULL), 0);
        assert_int_equal(x.ndim, 3);
        assert_int_equal(x.rows, 3);
        assert_int_equal(x.cols, 10);
        assert_memory_equal(x.values, b + 16, 30);
        assert_int_equal(sherd__idx_view(&x).dtype, SHERD_U8);
        sherd__idx_fini(&x);
        sherd__idx_fini(&x);
    }
}

static void labels_are_one_column_and_empty_files_are_valid(void **s)
{
    (void)s;
    sherd__idx x;
    assert_int_equal(parse(&x, (const uint8_t *)"\0\0\x08\1\0\0\0\4abcd", 12, NULL), 0);
    assert_true(x.rows == 4 && x.cols == 1 && x.ndim == 1 && x.values[3] == 'd');
    sherd__idx_fini(&x);
    assert_int_equal(parse(&x, (const uint8_t *)"\0\0\x08\1\0\0\0\0", 8, NULL), 0);
    assert_true(x.rows == 0 && x.values);
    sherd__idx_fini(&x);
}

static void every_prefix_is_refused(void **s)
{
    (void)s;
    uint8_t b[64], z[256];
    size_t len = make_idx(b), packed = gzip(z, sizeof z, b, len);
    for (int i = 0; i < 2; i++)
        for (size_t n = 0; n < (i ? packed : len); n++) {
            sherd__idx x = { .rows = 77 };
            sherd_diag d = { 0 };
            assert_int_equal(parse(&x, i ? z : b, n, &d), SHERD_EFORMAT);
            assert_true(d.message[0] && d.hint[0] && x.rows == 77);
        }
}

static void no_flipped_bit_of_a_gzipped_file_changes_a_value(void **s)
{
    (void)s;
    uint8_t b[64], z[256];
    size_t packed = gzip(z, sizeof z, b, make_idx(b)), unread = 0;
    for (size_t bit = 0; bit < packed * 8; bit++) {
        sherd__idx x;
        z[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (parse(&x, z, packed, NULL) == 0) { /* time stamp, padding and the like: not read */
            unread++;
            assert_memory_equal(x.values, b + 16, 30);
            sherd__idx_fini(&x);
        }
        z[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(unread < 80);
}

static void every_flipped_bit_of_a_plain_header_is_refused(void **s)
{
    (void)s;
    uint8_t b[64];
    size_t len = make_idx(b);
    for (size_t bit = 0; bit < 16 * 8; bit++) {
        sherd__idx x;
        b[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(parse(&x, b, len, NULL), SHERD_EFORMAT);
        b[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void bytes_after_the_values_are_refused(void **s)
{
    (void)s;
    uint8_t b[64], z[256];
    size_t len = make_idx(b);
    sherd__idx x;
    sherd_diag d = { 0 };
    b[len] = 0;
    assert_int_equal(parse(&x, b, len + 1, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "too long"));
    size_t packed = gzip(z, sizeof z, b, len + 1);
    assert_int_equal(parse(&x, z, packed, NULL), SHERD_EFORMAT);
    packed = gzip(z, sizeof z, b, len);
    assert_int_equal(parse(&x, z, packed + 1, NULL), SHERD_EFORMAT);
}

/* If memory were allocated before the check, this test would take 4 GiB. */
static void a_size_beyond_the_file_is_refused_before_allocation(void **s)
{
    (void)s;
    static const struct {
        const char *head;
        const char *message;
    } bad[] = {
        { "\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "claims" },
        { "\0\0\x08\3\xff\xff\xff\xff\0\0\0\2\0\0\0\1", "claims" },
        { "\0\0\x08\3\xff\xff\xff\x00\0\0\0\1\0\0\0\1", "" },
        { "\0\0\x08\3\x01\0\0\1\0\0\0\0\0\0\0\1", "claims 16777217 x 0 values" },
        { "\0\0\x08\3\0\0\0\0\x01\0\0\1\0\0\0\1", "claims 0 x 16777217 values" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int zipped = 0; zipped < 2; zipped++) {
            uint8_t b[20] = { 0 }, z[256];
            sherd__idx x;
            sherd_diag d = { 0 };
            memcpy(b, bad[i].head, 16);
            size_t len = zipped ? gzip(z, sizeof z, b, 20) : 20;
            sherd__alloc_fail_nth(0);
            assert_int_equal(parse(&x, zipped ? z : b, len, &d), SHERD_EFORMAT);
            assert_non_null(strstr(d.message, bad[i].message));
            if (i == 2 && zipped) assert_non_null(strstr(d.message, "can unpack to"));
        }
}

static void files_of_other_formats_are_named(void **s)
{
    (void)s;
    static const char *const bad[] = { "not an idx file at all", "\0\0\x0d\3zzzzzzzzzzzzzzzz",
                                       "\0\0\x08\0zzzzzzzzzzzzzzzz", "\0\0\x08\4zzzzzzzzzzzzzzzz" };
    for (size_t i = 0; i < 4; i++) {
        sherd__idx x;
        sherd_diag d = { 0 };
        assert_int_equal(parse(&x, (const uint8_t *)bad[i], 20, &d), SHERD_EFORMAT);
        assert_int_equal(strncmp(d.message, "images: ", 8), 0);
    }
}

static void a_set_needs_both_files_and_equal_counts(void **s)
{
    (void)s;
    uint8_t b[64];
    sherd__idx_set set = { 0 };
    sherd_diag d = { 0 }, e = { 0 };
    size_t len = make_idx(b);
    scratch_clear();
    assert_int_equal(sherd__idx_set_load(&set, scratch_dir(), "train", &d), SHERD_EOPEN);
    assert_non_null(strstr(d.message, "train-images-idx3-ubyte"));
    scratch_write("train-images-idx3-ubyte", b, len);
    assert_int_equal(sherd__idx_set_load(&set, scratch_dir(), "train", NULL), SHERD_EOPEN);
    scratch_write("train-labels.idx1-ubyte", "\0\0\x08\1\0\0\0\2ab", 10);
    assert_int_equal(sherd__idx_set_load(&set, scratch_dir(), "train", &e), SHERD_ESHAPE);
    assert_non_null(strstr(e.message, "3 images, but 2 labels"));
    scratch_write("train-labels.idx1-ubyte", "\0\0\x08\1\0\0\0\3abc", 11);
    assert_int_equal(sherd__idx_set_load(&set, scratch_dir(), "train", NULL), 0);
    assert_int_equal(set.images.rows, 3);
    assert_int_equal(set.labels.values[2], 'c');
    sherd__idx_set_fini(&set);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    uint8_t b[64], z[256];
    size_t len = make_idx(b);
    size_t packed = gzip(z, sizeof z, b, len);
    const char *paths[2] = { scratch_write("a", b, len), scratch_write("b", z, packed) };
    for (int i = 0; i < 2; i++)
        for (size_t n = 1, reached = 1; reached; n++) {
            sherd__idx x;
            sherd__alloc_fail_nth(n);
            int err = sherd__idx_load(&x, paths[i], NULL);
            reached = sherd__alloc_fail_nth(0) >= n;
            assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
            if (!err) sherd__idx_fini(&x);
        }
}

/* The published data set, if it is at $SHERD_MNIST or ../shared/data/mnist. */
static void the_published_mnist_files_are_read(void **s)
{
    (void)s;
    const char *folder = getenv("SHERD_MNIST");
    sherd__idx_set train, test;
    sherd_diag d = { 0 };
    if (!folder) folder = "../shared/data/mnist";
    if (access(folder, R_OK)) skip();
    if (sherd__idx_set_load(&train, folder, "train", &d)) fail_msg("%s", d.message);
    if (sherd__idx_set_load(&test, folder, "t10k", &d)) fail_msg("%s", d.message);
    assert_true(train.images.rows == 60000 && train.images.cols == 784);
    assert_true(test.images.rows == 10000 && test.images.cols == 784);
    const uint8_t first[10] = { 5, 0, 4, 1, 9, 2, 1, 3, 1, 4 };
    assert_memory_equal(train.labels.values, first, 10);
    size_t zeros = 0, classes[10] = { 0 };
    for (size_t i = 0; i < 60000u * 784u; i++) zeros += train.images.values[i] == 0;
    for (size_t i = 0; i < 60000; i++) {
        assert_true(train.labels.values[i] < 10);
        classes[train.labels.values[i]]++;
    }
    assert_true(zeros > 60000u * 784u / 100 * 80 && zeros < 60000u * 784u / 100 * 82);
    assert_int_equal(classes[5], 5421);
    sherd__idx_set_fini(&train);
    sherd__idx_set_fini(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_gzipped_files_read_alike),
        cmocka_unit_test(labels_are_one_column_and_empty_files_are_valid),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(no_flipped_bit_of_a_gzipped_file_changes_a_value),
        cmocka_unit_test(every_flipped_bit_of_a_plain_header_is_refused),
        cmocka_unit_test(bytes_after_the_values_are_refused),
        cmocka_unit_test(a_size_beyond_the_file_is_refused_before_allocation),
        cmocka_unit_test(files_of_other_formats_are_named),
        cmocka_unit_test(a_set_needs_both_files_and_equal_counts),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(the_published_mnist_files_are_read),
    };
    return cmocka_run_group_tests_name("store/idx", tests, scratch_setup, scratch_teardown);
}
