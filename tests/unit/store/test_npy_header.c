#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "store/npy_header.h"

/* Makes a version 1.0 header around a dictionary; returns its length. */
static size_t head(uint8_t *out, const char *dict)
{
    size_t n = strlen(dict);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (uint8_t)n;
    out[9] = (uint8_t)(n >> 8);
    memcpy(out + 10, dict, n);
    return 10 + n;
}

static int parse(const char *dict, sherd__npy_header *h, sherd_diag *d)
{
    uint8_t b[600];
    return sherd__npy_header_parse(h, b, head(b, dict), "A.npy", d);
}

static void a_header_that_was_written_reads_back_equal(void **s)
{
    (void)s;
    static const size_t sizes[] = { 0, 1, 2, 9, 10, 784, 60000, 1u << 24 };
    for (int t = SHERD_F64; t <= SHERD_I64; t++)
        for (unsigned ndim = 0; ndim <= 2; ndim++)
            for (size_t i = 0; i < 8; i++) {
                uint8_t b[SHERD__NPY_HEADER_OUT];
                sherd__npy_header h;
                size_t rows = ndim == 2 ? sizes[7 - i] : 1, cols = ndim ? sizes[i] : 1;
                size_t len = sherd__npy_header_format(b, (sherd_dtype)t, ndim, rows, cols);
                assert_int_equal(len % 64, 0);
                assert_int_equal(b[len - 1], '\n');
                assert_int_equal(sherd__npy_header_parse(&h, b, len, "x", NULL), 0);
                assert_int_equal(h.dtype, t);
                assert_int_equal(h.ndim, ndim);
                assert_int_equal(h.rows, rows);
                assert_int_equal(h.cols, cols);
                assert_int_equal(h.data_at, len);
                assert_int_equal(h.data_len, rows * cols * sherd_dtype_size(h.dtype));
                assert_false(h.fortran);
            }
}

static void any_order_quotes_and_spacing_are_read(void **s)
{
    (void)s;
    static const char *const good[] = {
        "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }        \n",
        "{\"shape\":(3,4),\"descr\":\"<f8\",\"fortran_order\":True}",
        "  {  'fortran_order' :True , 'shape' :( 3 ,\t4 , ) ,'descr':'<f8' }\n",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (3L, 4L), }\n",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        sherd__npy_header h;
        assert_int_equal(parse(good[i], &h, NULL), 0);
        assert_true(h.fortran && h.rows == 3 && h.cols == 4 && h.dtype == SHERD_F64);
    }
    sherd__npy_header h;
    assert_int_equal(parse("{'descr': '>u1', 'fortran_order': False, 'shape': (5,)}", &h, NULL), 0);
    assert_true(h.dtype == SHERD_U8 && h.ndim == 1 && h.rows == 1 && h.cols == 5);
    assert_int_equal(parse("{'descr': '=i4', 'fortran_order': False, 'shape': ()}", &h, NULL), 0);
    assert_true(h.dtype == SHERD_I32 && h.ndim == 0 && h.rows == 1 && h.cols == 1);
}

static void a_version_2_header_is_read(void **s)
{
    (void)s;
    static const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    uint8_t b[200];
    sherd__npy_header h;
    memcpy(b, "\x93NUMPY\x02\x00", 8);
    memcpy(b + 8, &(uint32_t){ sizeof dict - 1 }, 4);
    memcpy(b + 12, dict, sizeof dict - 1);
    assert_int_equal(sherd__npy_header_parse(&h, b, 12 + sizeof dict - 1, "x", NULL), 0);
    assert_int_equal(h.data_at, 12 + sizeof dict - 1);
    assert_int_equal(h.data_len, 24);
}

static void each_unsupported_dtype_gets_its_reason(void **s)
{
    (void)s;
    static const struct {
        const char *descr, *message, *hint;
    } bad[] = {
        { "'|O'", "Python objects", "allow_pickle=False" },
        { "'>f8'", "big endian", "newbyteorder" },
        { "'<c16'", "complex", "real and imaginary" },
        { "'|b1'", "boolean", "uint8" },
        { "'<u8'", "'<u8'", "int64" },
        { "'<f2'", "'<f2'", "float32" },
        { "'<f16'", "'<f16'", "float64" },
        { "'<U5'", "text", "astype" },
        { "'|S3'", "text", "astype" },
        { "'|V8'", "structure", "field" },
        { "'<M8[ns]'", "'<M8[ns]'", "astype" },
        { "[('x', '<f8')]", "structures", "field" },
        { "'f8'", "'f8'", "astype" },
        { "'|f8'", "'|f8'", "astype" },
        { "''", "''", "astype" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char dict[200];
        sherd__npy_header h;
        sherd_diag d = { 0 };
        snprintf(dict, sizeof dict, "{'descr': %s, 'fortran_order': False, 'shape': (1, 1), }",
                 bad[i].descr);
        assert_int_equal(parse(dict, &h, &d), SHERD_EFORMAT);
        assert_int_equal(strncmp(d.message, "A.npy: ", 7), 0);
        assert_non_null(strstr(d.message, bad[i].message));
        assert_non_null(strstr(d.hint, bad[i].hint));
    }
}

static void malformed_dictionaries_are_refused_with_their_place(void **s)
{
    (void)s;
    static const char *const bad[] = {
        "",
        "{",
        "}",
        "{}",
        "[]",
        "{'descr': '<f8', 'fortran_order': False}",
        "{'descr': '<f8', 'shape': (1, 1)}",
        "{'shape': (1, 1), 'fortran_order': False}",
        "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), 'more': 1}",
        "{'descr': '<f8' 'fortran_order': False, 'shape': (1, 1)}",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (1, 1)}",
        "{'descr': '<f8', 'fortran_order': false, 'shape': (1, 1)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': [1, 1]}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 1)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0, 1)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0x1, 1)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)} x",
        "{'descr': '<f\\x38', 'fortran_order': False, 'shape': (1, 1)}",
        "{'descr': '<f8, 'fortran_order': False, 'shape': (1, 1)}",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': (1, 1)}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sherd__npy_header h = { .rows = 77 };
        sherd_diag d = { 0 };
        assert_int_equal(parse(bad[i], &h, &d), SHERD_EFORMAT);
        assert_true(d.message[0] && d.hint[0]);
        assert_int_equal(h.rows, 77);
    }
    sherd__npy_header h;
    sherd_diag d = { 0 };
    assert_int_equal(parse("{'descr': '<f8', 'fortran_order': Nope}", &h, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "byte 44: expected True or False, found 'N'"));
}

static void three_dimensions_and_sizes_that_overflow_are_refused(void **s)
{
    (void)s;
    static const char *const bad[] = {
        "(1, 2, 3)",
        "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)",
        "(4294967296, 4294967296)",
        "(2305843009213693952, 4)",
        "(1, 9223372036854775807)",
        "(18446744073709551615, 1)",
        "(18446744073709551616, 1)",
        "(99999999999999999999999999999, 0)",
        "(9223372036854775808, 0)",
        "(1152921504606846975, 1)",
        "(4294967296, 1)",
        "(4294967296,)",
        "(2, 4294967296)",
        "(0, 2305843009213693952)",
        "(2305843009213693952, 0)",
        "(0, 16777217)",
        "(16777217, 0)",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char dict[200];
        sherd__npy_header h;
        sherd_diag d = { 0 };
        snprintf(dict, sizeof dict, "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }",
                 bad[i]);
        assert_int_equal(parse(dict, &h, &d), SHERD_ESHAPE);
        assert_true(d.message[0] && d.hint[0]);
    }
}

static void every_prefix_is_refused_and_nothing_beyond_it_is_read(void **s)
{
    (void)s;
    uint8_t b[SHERD__NPY_HEADER_OUT];
    size_t len = sherd__npy_header_format(b, SHERD_F64, 2, 3, 4);
    for (size_t n = 0; n < len; n++) {
        uint8_t exact[SHERD__NPY_HEADER_OUT]; /* the bytes behind the prefix must not matter */
        sherd__npy_header h;
        sherd_diag d = { 0 };
        memset(exact, 0xff, sizeof exact);
        memcpy(exact, b, n);
        assert_int_equal(sherd__npy_header_parse(&h, exact, n, "x", &d), SHERD_EFORMAT);
        assert_true(d.message[0]);
    }
}

static void with_any_flipped_bit_a_header_is_refused_or_consistent(void **s)
{
    (void)s;
    uint8_t b[SHERD__NPY_HEADER_OUT];
    size_t len = sherd__npy_header_format(b, SHERD_F32, 2, 31, 47);
    for (size_t bit = 0; bit < len * 8; bit++) {
        sherd__npy_header h;
        b[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (sherd__npy_header_parse(&h, b, len, "x", NULL) == 0) {
            assert_int_equal(h.data_len, h.rows * h.cols * sherd_dtype_size(h.dtype));
            assert_true(h.data_at <= len);
            assert_true(h.ndim <= 2);
        }
        b[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void a_header_beyond_the_cap_is_refused(void **s)
{
    (void)s;
    uint8_t b[16] = "\x93NUMPY\x01\x00\x11\x27"; /* 10001 */
    sherd__npy_header h;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__npy_header_parse(&h, b, sizeof b, "x", &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "10001"));
    memcpy(b, "\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
    assert_int_equal(sherd__npy_header_parse(&h, b, sizeof b, "x", NULL), SHERD_EFORMAT);
}

static void other_formats_are_distinguished_from_npy(void **s)
{
    (void)s;
    static const struct {
        const char *bytes, *message;
    } bad[] = {
        { "PK\3\4abcdefgh", ".npz archive" },
        { "1,2,3\n4,5,6\n", "not a .npy file" },
        { "\x93NUMPY\x03\x00xxxxx", "format 3.0" },
        { "\x93NUMPX\x01\x00xxxxx", "not a .npy file" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sherd__npy_header h;
        sherd_diag d = { 0 };
        const uint8_t *b = (const uint8_t *)bad[i].bytes;
        assert_int_equal(sherd__npy_header_parse(&h, b, 12, "x", &d), SHERD_EFORMAT);
        assert_non_null(strstr(d.message, bad[i].message));
    }
}

static void sizes_are_compared_with_the_file(void **s)
{
    (void)s;
    sherd__npy_header h = {
        .dtype = SHERD_F64, .ndim = 2, .rows = 3, .cols = 4, .data_at = 128, .data_len = 96
    };
    sherd_diag d = { 0 }, e = { 0 };
    assert_int_equal(sherd__npy_size_check(&h, 224, "x", NULL), 0);
    assert_int_equal(sherd__npy_size_check(&h, 223, "x", &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "need 224 bytes with the header, it has 223"));
    assert_int_equal(sherd__npy_size_check(&h, 225, "x", &e), SHERD_EFORMAT);
    assert_non_null(strstr(e.message, "too long"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_that_was_written_reads_back_equal),
        cmocka_unit_test(any_order_quotes_and_spacing_are_read),
        cmocka_unit_test(a_version_2_header_is_read),
        cmocka_unit_test(each_unsupported_dtype_gets_its_reason),
        cmocka_unit_test(malformed_dictionaries_are_refused_with_their_place),
        cmocka_unit_test(three_dimensions_and_sizes_that_overflow_are_refused),
        cmocka_unit_test(every_prefix_is_refused_and_nothing_beyond_it_is_read),
        cmocka_unit_test(with_any_flipped_bit_a_header_is_refused_or_consistent),
        cmocka_unit_test(a_header_beyond_the_cap_is_refused),
        cmocka_unit_test(other_formats_are_distinguished_from_npy),
        cmocka_unit_test(sizes_are_compared_with_the_file),
    };
    return cmocka_run_group_tests_name("store/npy_header", tests, NULL, NULL);
}
