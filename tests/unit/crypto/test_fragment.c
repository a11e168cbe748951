/*
 * Fragments: valid descriptions, valid group tables, and ownership of the bytes. Descriptions and
 * tables are compared with sums computed in 128 bits, at the limits of every field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/rand.h"
#include "crypto/fragment_make.h"
#include "sherd/mat.h"
#include "tests/support/under_valgrind.h"

__extension__ typedef unsigned __int128 wide;

static sherd__seeded rng_state;
static sherd__entropy rng;

static uint64_t below(uint64_t n)
{
    return sherd__entropy_below(&rng, n);
}

static bool is_bytes(uint8_t dtype)
{
    return dtype >= 33 && dtype <= 35;
}

static unsigned element(uint8_t dtype)
{
    static const unsigned sizes[] = { 0, 8, 4, 1, 2, 4, 1, 2, 4, 8 };
    return dtype == SHERD__RESIDUES ? 3 : dtype < 10 ? sizes[dtype] : is_bytes(dtype) ? 1 : 0;
}

/* Returns the bytes of the values: a laid out operand has complete strips and tiles. */
static wide values_of(const sherd__fragment_info *i)
{
    wide high = i->dtype == SHERD__BYTES_LEFT ? 16 : i->dtype == SHERD__BYTES_RIGHT ? 64 : 1;
    wide across = i->dtype == SHERD__BYTES_LEFT ? 64 : i->dtype == SHERD__BYTES_RIGHT ? 16 : 1;
    return (i->rows + high - 1) / high * high * ((i->cols + across - 1) / across * across) *
           element(i->dtype) * (i->primes ? i->primes : 1);
}

/* Returns whether some number of entries, at most rows * cols, gives the length. */
static bool csr_allowed(const sherd__fragment_info *i)
{
    wide width = i->cols < 256 ? 1 : i->cols < 65536 ? 2 : 4, each = width + element(i->dtype);
    wide head = (wide)8 * i->groups + width * i->rows, most = (wide)i->rows * i->cols;
    if (i->origin != SHERD__HIDDEN || i->primes || !i->groups || i->len < head) return false;
    if (i->len > SHERD__CSR_MAX) return false;
    wide entries = (i->len - head) / each;
    return entries * each == i->len - head && entries <= most;
}

/* A second, slow implementation of the rules of fragment.h. */
static bool allowed(const sherd__fragment_info *i)
{
    wide len = values_of(i) + (wide)8 * i->groups;
    if (i->origin != SHERD__HIDDEN && i->origin != SHERD__RESULT) return false;
    if (!element(i->dtype) || i->encoding > SHERD__CSR) return false;
    if (i->primes > (i->dtype == SHERD__RESIDUES ? 4 : is_bytes(i->dtype) ? 8 : 0)) return false;
    if ((i->dtype == SHERD__RESIDUES || is_bytes(i->dtype)) != (i->primes > 0)) return false;
    if (is_bytes(i->dtype) && (i->groups || (i->dtype == 35) != (i->origin == SHERD__RESULT)))
        return false;
    if (i->groups > SHERD__GROUPS_MAX || (i->primes && i->groups > 1)) return false;
    if (i->origin == SHERD__RESULT && i->groups) return false;
    if (i->rows > UINT32_MAX || i->cols > UINT32_MAX) return false;
    if (i->encoding == SHERD__CSR) return csr_allowed(i);
    if (len > SIZE_MAX) return false;
    return i->groups <= 1 ? i->len == len : i->len <= len && i->len >= (wide)8 * i->groups;
}

static uint64_t edge(void)
{
    static const uint64_t edges[] = {
        0, 1, 2, 3, 255, 65536, UINT32_MAX, (uint64_t)UINT32_MAX + 1, UINT64_C(1) << 62, UINT64_MAX
    };
    return below(2) ? below(20) : edges[below(10)];
}

static void a_description_is_valid_if_and_only_if_its_sums_agree(void **state)
{
    (void)state;
    static const uint32_t groups[] = {
        0, 0, 1, 1, 2, 7, SHERD__GROUPS_MAX, SHERD__GROUPS_MAX + 1, UINT32_MAX
    };
    const unsigned rounds = under_valgrind() ? 20000 : 200000;
    unsigned good = 0, csr = 0, bytes = 0;
    for (unsigned round = 0; round < rounds; round++) {
        sherd__fragment_info i = {
            .origin = (uint8_t)(below(16) ? 1 + below(2) : below(256)),
            .dtype = (uint8_t)(below(16)  ? 1 + below(9)
                               : below(2) ? SHERD__RESIDUES + below(4)
                                          : below(256)),
            .encoding = (uint8_t)(below(16) ? below(2) : below(256)),
            .groups = groups[below(9)],
            .rows = edge(),
            .cols = edge(),
        };
        if (below(4) == 0) i.dtype = (uint8_t)(SHERD__RESIDUES + below(4));
        if (is_bytes(i.dtype) && below(4)) i.groups = i.encoding = 0;
        i.primes = (uint8_t)(i.dtype == SHERD__RESIDUES ? below(6)
                             : is_bytes(i.dtype)        ? below(10)
                             : below(16)                ? 0
                                                        : below(256));
        i.len = (uint64_t)values_of(&i) + 8 * (uint64_t)i.groups;
        if (i.encoding == SHERD__CSR)
            i.len = sherd__csr_len(i.groups, i.rows, i.cols,
                                   i.rows * i.cols < 1000 ? below(i.rows * i.cols + 1) : edge(),
                                   element(i.dtype));
        if (below(4) == 0) i.len += below(17) - 8;
        sherd_diag d = { 0 };
        bool ok = allowed(&i);
        assert_int_equal(sherd__fragment_info_check(&i, &d), ok ? SHERD_OK : SHERD_EFRAME);
        assert_int_equal(d.code, ok ? SHERD_OK : SHERD_EFRAME);
        assert_true(ok || d.message[0]);
        good += ok;
        csr += ok && i.encoding == SHERD__CSR;
        bytes += ok && is_bytes(i.dtype) && i.len;
    }
    assert_true(good > rounds / 20);
    assert_true(csr > rounds / 70);
    assert_true(bytes > rounds / 200);
}

typedef struct body {
    sherd__fragment_info info;
    uint8_t *bytes;
} body;

static body tabled(uint32_t groups)
{
    body b = { .info = { .origin = SHERD__HIDDEN, .dtype = SHERD_F32, .groups = groups } };
    b.bytes = malloc(8 * (size_t)groups + 1);
    b.info.len = 8 * (uint64_t)groups;
    for (uint32_t q = 0; q < groups; q++) {
        uint32_t rows = (uint32_t)below(6), cols = (uint32_t)below(6);
        sherd__put_u32(b.bytes + 8 * q, rows);
        sherd__put_u32(b.bytes + 8 * q + 4, cols);
        b.info.rows += rows;
        if (cols > b.info.cols) b.info.cols = cols;
        b.info.len += 4 * (uint64_t)rows * cols;
    }
    return b;
}

static void a_table_must_agree_with_its_description(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        body b = tabled((uint32_t)below(9));
        assert_int_equal(sherd__fragment_table_check(&b.info, b.bytes, NULL), SHERD_OK);
        if (b.info.groups > 1)
            assert_int_equal(sherd__fragment_info_check(&b.info, NULL), SHERD_OK);
        sherd__fragment_info other = b.info;
        other.rows++;
        if (other.groups)
            assert_int_equal(sherd__fragment_table_check(&other, b.bytes, NULL), SHERD_EFRAME);
        other = b.info;
        other.cols++;
        if (other.groups)
            assert_int_equal(sherd__fragment_table_check(&other, b.bytes, NULL), SHERD_EFRAME);
        other = b.info;
        other.len += 4;
        if (other.groups)
            assert_int_equal(sherd__fragment_table_check(&other, b.bytes, NULL), SHERD_EFRAME);
        free(b.bytes);
    }
}

static void every_flipped_bit_of_a_table_is_detected_or_keeps_the_sums(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 100; round++) {
        body b = tabled(1 + (uint32_t)below(5));
        for (size_t bit = 0; bit < 64 * (size_t)b.info.groups; bit++) {
            wide rows = 0, values = 0;
            uint64_t widest = 0;
            b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            for (uint32_t q = 0; q < b.info.groups; q++) {
                uint64_t r = sherd__get_u32(b.bytes + 8 * q),
                         c = sherd__get_u32(b.bytes + 8 * q + 4);
                rows += r;
                values += (wide)r * c;
                if (c > widest) widest = c;
            }
            bool same = rows == b.info.rows && widest == b.info.cols &&
                        4 * values + 8 * (wide)b.info.groups == b.info.len;
            assert_int_equal(sherd__fragment_table_check(&b.info, b.bytes, NULL),
                             same ? SHERD_OK : SHERD_EFRAME);
            b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        free(b.bytes);
    }
}

static void a_table_whose_sums_overflow_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[16];
    sherd__put_u32(bytes, UINT32_MAX);
    sherd__put_u32(bytes + 4, UINT32_MAX);
    sherd__put_u32(bytes + 8, 1);
    sherd__put_u32(bytes + 12, UINT32_MAX);
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = SHERD_U8,
                               .groups = 2,
                               .rows = 0,
                               .cols = UINT32_MAX,
                               .len = 16 };
    assert_int_equal(sherd__fragment_table_check(&i, bytes, NULL), SHERD_EFRAME);
}

/* --- CSR ------------------------------------------------------------------------------------- */

static void put(uint8_t **at, unsigned width, uint64_t v)
{
    for (unsigned k = 0; k < width; k++) *(*at)++ = (uint8_t)(v >> 8 * k);
}

/* Makes random rows. The first group has `wide` columns, which fixes the width. */
static body sparse(uint32_t groups, uint32_t wide_cols, uint64_t one_in)
{
    static uint8_t count[80];
    static uint32_t column[80 * 300];
    uint32_t rows[8], cols[8];
    size_t n = 0, entries = 0;
    body b = { .info = { .origin = SHERD__HIDDEN,
                         .dtype = SHERD_U16,
                         .encoding = SHERD__CSR,
                         .groups = groups } };
    for (uint32_t q = 0; q < groups; q++) {
        rows[q] = (uint32_t)below(9);
        cols[q] = q ? (uint32_t)below(20) : wide_cols;
        b.info.rows += rows[q];
        if (cols[q] > b.info.cols) b.info.cols = cols[q];
        for (uint32_t r = 0; r < rows[q]; r++, n++) {
            count[n] = 0;
            for (uint64_t c = below(one_in); c < cols[q] && count[n] < 200; c += 1 + below(one_in))
                column[entries++] = (uint32_t)c, count[n]++;
        }
    }
    unsigned width = wide_cols < 256 ? 1 : wide_cols < 65536 ? 2 : 4;
    b.info.len = sherd__csr_len(groups, n, b.info.cols, entries, 2);
    uint8_t *at = b.bytes = malloc(b.info.len + 1);
    for (uint32_t q = 0; q < groups; q++) put(&at, 4, rows[q]), put(&at, 4, cols[q]);
    for (size_t k = 0; k < n; k++) put(&at, width, count[k]);
    for (size_t k = 0; k < entries; k++) put(&at, width, column[k]);
    for (size_t k = 0; k < entries; k++) put(&at, 2, below(65536));
    assert_int_equal(at - b.bytes, b.info.len);
    return b;
}

static uint64_t get(const uint8_t *at, unsigned width)
{
    uint64_t v = 0;
    for (unsigned k = width; k-- > 0;) v = v << 8 | at[k];
    return v;
}

/* Returns whether the body is valid by fragment.h; checks each number separately, in 128 bits. */
static bool sound(const body *b)
{
    const sherd__fragment_info *i = &b->info;
    unsigned width = i->cols < 256 ? 1 : i->cols < 65536 ? 2 : 4;
    wide rows = 0, entries = 0, all;
    uint64_t widest = 0;
    for (uint32_t q = 0; q < i->groups; q++) {
        rows += get(b->bytes + 8 * q, 4);
        uint64_t c = get(b->bytes + 8 * q + 4, 4);
        if (c > widest) widest = c;
    }
    if (rows != i->rows || widest != i->cols) return false;
    all = (i->len - 8 * i->groups - width * i->rows) / (width + element(i->dtype));
    const uint8_t *count = b->bytes + 8 * i->groups, *column = count + width * i->rows;
    for (uint32_t q = 0; q < i->groups; q++) {
        uint64_t c = get(b->bytes + 8 * q + 4, 4);
        for (uint64_t r = get(b->bytes + 8 * q, 4); r-- > 0; count += width) {
            uint64_t n = get(count, width), next = 0;
            if (n > all - entries) return false;
            entries += n;
            for (; n-- > 0; column += width) {
                uint64_t x = get(column, width);
                if (x < next || x >= c) return false;
                next = x + 1;
            }
        }
    }
    return entries == all;
}

/* Checks a body as it arrives, in parts of any length; the bytes that have not arrived are
 * arbitrary. */
static int check_parts(const sherd__fragment_info *i, const uint8_t *bytes)
{
    sherd__fragment_check c = { 0 };
    uint8_t *here = malloc(i->len);
    int err = SHERD_OK;
    memset(here, (int)below(256), i->len);
    for (uint64_t got = 0, n; got < i->len && !err; got += n) {
        n = 1 + below(below(2) ? 9 : i->len);
        if (n > i->len - got) n = i->len - got;
        memcpy(here + got, bytes + got, n);
        err = sherd__fragment_check_part(&c, i, here, got + n, NULL);
    }
    free(here);
    return err;
}

static const uint32_t widths[] = { 7, 255, 256, 65535, 65536 };

static void a_csr_body_must_agree_with_its_description(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        uint32_t cols = widths[below(5)];
        body b = sparse(1 + (uint32_t)below(6), cols, 1 + below(cols > 300 ? 2 * cols : 20));
        sherd__csr at;
        assert_int_equal(sherd__fragment_info_check(&b.info, NULL), SHERD_OK);
        assert_int_equal(sherd__fragment_table_check(&b.info, b.bytes, NULL), SHERD_OK);
        assert_int_equal(check_parts(&b.info, b.bytes), SHERD_OK);
        assert_true(sherd__csr_layout(&b.info, &at));
        assert_int_equal(at.width, cols < 256 ? 1 : cols < 65536 ? 2 : 4);
        assert_int_equal(at.counts, 8 * b.info.groups);
        assert_int_equal(at.columns, at.counts + at.width * b.info.rows);
        assert_int_equal(at.values, at.columns + at.width * at.entries);
        assert_int_equal(at.values + 2 * at.entries, b.info.len);
        for (unsigned k = 0; k < 4; k++) {
            body other = b;
            if (k == 0) other.info.rows++;
            if (k == 1) other.info.cols++;
            if (k == 2) other.info.len -= b.info.len > 12 ? at.width + 2 : 1;
            if (k == 3) other.info.encoding = SHERD__DENSE;
            sherd_diag d = { 0 };
            int err = sherd__fragment_info_check(&other.info, &d);
            if (!err) err = sherd__fragment_table_check(&other.info, b.bytes, &d);
            /* A dense body of the same length can be valid. */
            if (k < 3 || err) assert_int_equal(err, SHERD_EFRAME);
            assert_true(!err || d.message[0]);
        }
        free(b.bytes);
    }
}

static void a_csr_body_has_a_maximum_length(void **state)
{
    (void)state;
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = SHERD_U8,
                               .groups = 1,
                               .encoding = SHERD__CSR,
                               .rows = SHERD__CSR_MAX - 8,
                               .cols = 1,
                               .len = SHERD__CSR_MAX };
    assert_int_equal(sherd__fragment_info_check(&i, NULL), SHERD_OK);
    i.rows++;
    i.len++;
    assert_int_equal(sherd__fragment_info_check(&i, NULL), SHERD_EFRAME);
}

static void every_flipped_bit_of_a_csr_body_is_detected_or_leaves_it_valid(void **state)
{
    (void)state;
    unsigned seen = 0, left = 0;
    for (unsigned round = 0; round < (under_valgrind() ? 10 : 60); round++) {
        uint32_t cols = widths[below(5)];
        body b = sparse(1 + (uint32_t)below(4), cols, 1 + below(cols > 300 ? cols : 12));
        sherd__csr at;
        assert_true(sherd__csr_layout(&b.info, &at));
        for (size_t bit = 0; bit < 8 * at.values; bit++) {
            b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            bool ok = sound(&b);
            assert_int_equal(sherd__fragment_table_check(&b.info, b.bytes, NULL),
                             ok ? SHERD_OK : SHERD_EFRAME);
            assert_int_equal(check_parts(&b.info, b.bytes), ok ? SHERD_OK : SHERD_EFRAME);
            b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            seen += !ok;
            left += ok;
        }
        free(b.bytes);
    }
    assert_true(seen > 1000);
    assert_true(left > 100);
}

static void checking_random_bytes_as_a_csr_body_never_reads_beyond_their_end(void **state)
{
    (void)state;
    for (unsigned round = 0; round < (under_valgrind() ? 2000 : 20000); round++) {
        sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                                   .dtype = SHERD_U8,
                                   .encoding = SHERD__CSR,
                                   .groups = 1 + (uint32_t)below(3),
                                   .rows = below(6),
                                   .cols = widths[below(5)] };
        i.len = sherd__csr_len(i.groups, i.rows, i.cols, below(12), 1);
        uint8_t *bytes = malloc(i.len); /* exact, so that the sanitizer sees an overrun */
        body b = { i, bytes };
        for (uint64_t k = 0; k < i.len; k++) bytes[k] = (uint8_t)(below(3) ? below(4) : below(256));
        for (uint32_t q = 0; q < i.groups && below(4); q++) { /* often a table whose sums agree */
            sherd__put_u32(bytes + 8 * q, q ? 0 : (uint32_t)i.rows);
            sherd__put_u32(bytes + 8 * q + 4, (uint32_t)i.cols);
        }
        int err = sherd__fragment_info_check(&i, NULL);
        if (!err) err = sherd__fragment_table_check(&i, bytes, NULL);
        if (!err) assert_true(sound(&b));
        free(bytes);
    }
}

static unsigned released;

static void count_release(void *ctx, uint8_t *bytes, uint64_t len)
{
    released++;
    *(uint64_t *)ctx = len;
    for (uint64_t k = 0; k < len; k++) assert_int_equal(bytes[k], k);
}

static void any_range_of_bytes_can_be_read_and_the_owner_gets_them_back(void **state)
{
    (void)state;
    uint8_t bytes[24], out[24];
    uint64_t len = 0;
    sherd__fragment *f;
    for (uint8_t k = 0; k < 24; k++) bytes[k] = k;
    sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_F64, .rows = 3, .cols = 1, .len = 24
    };
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, count_release, &len), SHERD_OK);
    assert_ptr_equal(sherd__fragment_bytes(f), bytes);
    for (size_t from = 0; from <= 24; from++) {
        for (size_t n = 0; from + n <= 24; n++) {
            assert_int_equal(sherd__fragment_read(f, from, out, n), SHERD_OK);
            assert_memory_equal(out, bytes + from, n);
        }
        assert_int_equal(sherd__fragment_read(f, from, out, 25 - from), SHERD_EINVAL);
    }
    assert_int_equal(sherd__fragment_read(f, UINT64_MAX, out, 2), SHERD_EINVAL);
    sherd__fragment_free(f);
    assert_int_equal(released, 1);
    assert_int_equal(len, 24);
    sherd__fragment_free(NULL);
}

static unsigned fills, frees;

static int fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    (void)ctx;
    fills++;
    if (offset >= 16) return SHERD_EIO;
    memset(out, (int)offset, len);
    return SHERD_OK;
}

static void freed(void *ctx)
{
    (void)ctx;
    frees++;
}

static void a_source_is_read_only_within_its_length_and_freed_once(void **state)
{
    (void)state;
    uint8_t out[24];
    sherd__fragment *f;
    sherd__fragment_source source = { fill, freed, NULL };
    sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_F64, .rows = 3, .cols = 1, .len = 24
    };
    assert_int_equal(sherd__fragment_new_source(&f, &i, source), SHERD_OK);
    assert_null(sherd__fragment_bytes(f));
    assert_int_equal(sherd__fragment_read(f, 8, out, 8), SHERD_OK);
    assert_int_equal(out[7], 8);
    assert_int_equal(sherd__fragment_read(f, 16, out, 8), SHERD_EIO); /* the error of the source */
    assert_int_equal(sherd__fragment_read(f, 17, out, 8), SHERD_EINVAL);
    assert_int_equal(fills, 2);
    sherd__fragment_free(f);
    assert_int_equal(frees, 1);
}

static void on_failure_the_caller_keeps_the_bytes_and_the_source(void **state)
{
    (void)state;
    uint8_t *bytes = sherd__calloc(1, 24);
    sherd__fragment *f;
    unsigned before = frees;
    sherd__fragment_source source = { fill, freed, NULL };
    sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_F64, .rows = 3, .cols = 1, .len = 24
    };
    (void)sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, NULL, NULL), SHERD_ENOMEM);
    assert_null(f);
    (void)sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__fragment_new_source(&f, &i, source), SHERD_ENOMEM);
    (void)sherd__alloc_fail_nth(0);
    i.len = 25; /* not a valid description */
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, NULL, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__fragment_new_source(&f, &i, source), SHERD_EINVAL);
    sherd__fragment_info csr = { .origin = SHERD__HIDDEN,
                                 .dtype = SHERD_U8,
                                 .encoding = SHERD__CSR,
                                 .groups = 1,
                                 .rows = 2,
                                 .cols = 2,
                                 .len = 8 + 2 + 2 };
    assert_int_equal(sherd__fragment_info_check(&csr, NULL), SHERD_OK);
    assert_int_equal(sherd__fragment_new_source(&f, &csr, source),
                     SHERD_EINVAL); /* sources are dense only */
    assert_null(f);
    assert_int_equal(frees, before);
    i.len = 24;
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, NULL, NULL), SHERD_OK);
    sherd__fragment_free(f); /* release is NULL: sherd__free is used */
}

static int begin(void **state)
{
    (void)state;
    rng = sherd__entropy_seeded(&rng_state, 29);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_description_is_valid_if_and_only_if_its_sums_agree),
        cmocka_unit_test(a_table_must_agree_with_its_description),
        cmocka_unit_test(every_flipped_bit_of_a_table_is_detected_or_keeps_the_sums),
        cmocka_unit_test(a_table_whose_sums_overflow_is_refused),
        cmocka_unit_test(a_csr_body_must_agree_with_its_description),
        cmocka_unit_test(a_csr_body_has_a_maximum_length),
        cmocka_unit_test(every_flipped_bit_of_a_csr_body_is_detected_or_leaves_it_valid),
        cmocka_unit_test(checking_random_bytes_as_a_csr_body_never_reads_beyond_their_end),
        cmocka_unit_test(any_range_of_bytes_can_be_read_and_the_owner_gets_them_back),
        cmocka_unit_test(a_source_is_read_only_within_its_length_and_freed_once),
        cmocka_unit_test(on_failure_the_caller_keeps_the_bytes_and_the_source),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
