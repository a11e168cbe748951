/*
 * Mask files: what was written is read back, every changed byte is detected, and files that other
 * users could read, or that are incomplete, are refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "tests/unit/store/maskfile_world.h"
#include "tests/unit/store/scratch.h"

static void a_mask_file_that_was_written_is_read_back(void **s)
{
    (void)s;
    sherd__maskfile *f;
    sherd_diag d = { .code = 0 };
    struct stat st;
    sherd__maskfile_head h = masks_head();
    uint8_t part[64];
    uint64_t first;
    assert_int_equal(stat(masks_path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, sherd__maskfile_bytes(&h));
    assert_int_equal(stat(masks_state, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    if (sherd__maskfile_open(&f, masks_path, masks_state, true, &d)) fail_msg("%s", d.message);
    assert_memory_equal(sherd__maskfile_head_of(f), &h, sizeof h);
    assert_int_equal(sherd__maskfile_left(f), ROWS);
    assert_int_equal(sherd__maskfile_strike(f, 2, &first, part, &d), 0);
    assert_int_equal(first, 0);
    assert_memory_equal(part, masks_key, 32);
    assert_memory_not_equal(part, masks_root, 32);
    for (uint64_t r = ROWS; r-- > 0;)
        for (size_t at = 0; at <= sherd__maskfile_row_bytes(&h); at++) {
            size_t n = sherd__maskfile_row_bytes(&h) - at;
            assert_int_equal(sherd__maskfile_read(f, r, at, n, part, &d), 0);
            for (size_t i = 0; i < n; i++) assert_int_equal(part[i], masks_byte(r, at + i));
        }
    assert_int_equal(sherd__maskfile_read(f, ROWS, 0, 1, part, &d), SHERD_EINVAL);
    assert_int_equal(sherd__maskfile_read(f, 0, 1, sherd__maskfile_row_bytes(&h), part, &d),
                     SHERD_EINVAL);
    sherd__maskfile_close(f);
    sherd__maskfile_close(NULL);
}

/* Checks that the file is refused and that no row is marked as used. */
static void flipped(uint8_t *bytes, size_t len, size_t byte, unsigned bit)
{
    sherd_diag d = { .code = 0 };
    uint64_t first = 99;
    bytes[byte] ^= (uint8_t)(1 << bit);
    masks_put(masks_path, bytes, len);
    int err = masks_take(masks_path, ROWS, &first, &d);
    bool version = byte >= 8 && byte < 12;
    if (err != (version ? SHERD_EVERSION : SHERD_EFORMAT) || first != 99 || !d.message[0])
        fail_msg("byte %zu, bit %u: %s %s", byte, bit, sherd_err_name(err), d.message);
    bytes[byte] ^= (uint8_t)(1 << bit);
}

static void every_changed_byte_is_detected(void **s)
{
    (void)s;
    size_t len;
    uint64_t first;
    uint8_t *bytes = masks_slurp(masks_path, &len);
    for (size_t i = 0; i < len; i++) flipped(bytes, len, i, i * 5 % 8);
    for (unsigned i = 0; i < 16 * 8; i++) flipped(bytes, len, i / 8, i % 8);
    masks_put(masks_path, bytes, len);
    assert_int_equal(masks_take(masks_path, ROWS, &first, NULL), 0);
    assert_int_equal(first, 0);
    free(bytes);
}

static void damage_in_an_unused_row_is_reported_when_the_row_is_used(void **s)
{
    (void)s;
    size_t len;
    uint64_t first;
    uint8_t *bytes = masks_slurp(masks_path, &len);
    bytes[len - 1] ^= 1;
    masks_put(masks_path, bytes, len);
    assert_int_equal(masks_take(masks_path, ROWS - 1, &first, NULL), 0);
    masks_must_refuse(masks_path, SHERD_EFORMAT, "row 6 does not fit its tag");
    free(bytes);
}

static void every_other_length_is_detected(void **s)
{
    (void)s;
    size_t len;
    uint8_t *bytes = masks_slurp(masks_path, &len);
    uint64_t first;
    for (size_t n = 0; n < len; n++) {
        sherd_diag d = { .code = 0 };
        masks_put(masks_path, bytes, n);
        if (masks_take(masks_path, 1, &first, &d) != SHERD_EFORMAT)
            fail_msg("%zu bytes: %s", n, d.message);
    }
    bytes = realloc(bytes, len + 1);
    bytes[len] = 0;
    masks_put(masks_path, bytes, len + 1);
    masks_must_refuse(masks_path, SHERD_EFORMAT, "it was cut or extended");
    free(bytes);
}

/* A row in the place of another does not match its tag; neither does a mark in the place of the
 * counter. */
static void parts_cannot_be_exchanged(void **s)
{
    (void)s;
    size_t len, size;
    uint64_t first;
    uint8_t *bytes = masks_slurp(masks_path, &len), spare[64];
    sherd__maskfile_head h = masks_head();
    size_t stride = sherd__maskfile_row_bytes(&h) + SHERD__MASKFILE_TAG;
    memcpy(spare, bytes + SHERD__MASKFILE_HEAD, stride);
    memcpy(bytes + SHERD__MASKFILE_HEAD, bytes + SHERD__MASKFILE_HEAD + stride, stride);
    memcpy(bytes + SHERD__MASKFILE_HEAD + stride, spare, stride);
    masks_put(masks_path, bytes, len);
    masks_must_refuse(masks_path, SHERD_EFORMAT, "row 0");
    free(bytes);
    assert_int_equal(unlink(masks_path), 0);
    assert_int_equal(unlink(masks_counter()), 0);
    masks_make();
    assert_int_equal(masks_take(masks_path, 2, &first, NULL), 0);
    uint8_t *count = masks_slurp(masks_counter(), &size);
    assert_int_equal(size, 64);
    bytes = masks_slurp(masks_path, &len);
    memcpy(bytes + SHERD__MASKFILE_HEAD - 64, count, 64);
    masks_put(masks_path, bytes, len);
    masks_must_refuse(masks_path, SHERD_EFORMAT, "the mark of used rows");
    free(bytes);
    free(count);
}

static void a_file_that_others_may_read_or_change_is_refused(void **s)
{
    (void)s;
    static const mode_t modes[] = { 0640, 0604, 0620, 0602, 0610, 0601, 0644, 0666 };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(masks_path, modes[i]), 0);
        masks_must_refuse(masks_path, SHERD_EKEY, "lets others read the masks, expected 0600");
    }
    assert_int_equal(chmod(masks_path, 0600), 0);
    assert_int_equal(chmod(masks_state, 0770), 0);
    masks_must_refuse(masks_path, SHERD_EOPEN, "others can write here");
    assert_int_equal(chmod(masks_state, 0700), 0);
    uint64_t first;
    assert_int_equal(masks_take(masks_path, 1, &first, NULL), 0);
}

static void files_that_are_not_mask_files_are_refused(void **s)
{
    (void)s;
    char folder[300];
    snprintf(folder, sizeof folder, "%s/folder", scratch_dir());
    masks_must_refuse("/nonexistent/masks", SHERD_EOPEN, "cannot open");
    assert_int_equal(mkdir(folder, 0700), 0);
    masks_must_refuse(folder, SHERD_EOPEN, "cannot open");
    masks_put(masks_copy, (const uint8_t *)"no masks", 8);
    masks_must_refuse(masks_copy, SHERD_EFORMAT, "is not a file of masks");
    masks_put(masks_copy, (const uint8_t *)"", 0);
    masks_must_refuse(masks_copy, SHERD_EFORMAT, "is not a file of masks");
}

static void no_message_contains_a_secret(void **s)
{
    (void)s;
    size_t len;
    uint8_t *bytes = masks_slurp(masks_path, &len);
    char hex[65];
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", masks_root[i]);
    for (size_t i = 0; i < len; i++) {
        sherd_diag d = { .code = 0 };
        uint64_t first;
        bytes[i] ^= 0x10;
        masks_put(masks_path, bytes, len);
        (void)!masks_take(masks_path, ROWS, &first, &d);
        assert_null(strstr(d.message, "5a5a"));
        assert_null(strstr(d.message, hex));
        assert_null(memmem(d.message, sizeof d.message, masks_root, 8));
        bytes[i] ^= 0x10;
    }
    free(bytes);
}

static void a_header_out_of_range_is_not_written(void **s)
{
    (void)s;
    sherd__maskfile_head bad[10];
    for (size_t i = 0; i < 10; i++) bad[i] = masks_head();
    bad[0].bits_a = 1;
    bad[1].bits_a = 27;
    bad[2].bits_b = 0;
    bad[3].primes_len = 0;
    bad[4].primes_len = 5;
    bad[5].primes[1] = bad[5].primes[0];
    bad[6].primes[0] = 5931642;
    bad[7].rows = UINT64_C(1) << 32;
    bad[8].m = UINT64_C(1) << 32;
    bad[9].m = UINT32_MAX;
    bad[9].rows = UINT32_MAX;
    for (size_t i = 0; i < 10; i++) {
        sherd__maskfile_writer *w;
        sherd_diag d = { .code = 0 };
        assert_int_equal(sherd__maskfile_begin(&w,
                                               (sherd__maskfile_place){ masks_copy, masks_state },
                                               &bad[i], masks_root, masks_key, &d),
                         SHERD_EINVAL);
        assert_null(w);
    }
    sherd__maskfile_head h = masks_head();
    h.m = h.k = h.rows = 0;
    assert_int_equal(sherd__maskfile_bytes(&h), SHERD__MASKFILE_HEAD);
}

static void a_mask_file_is_complete_or_absent(void **s)
{
    (void)s;
    sherd__maskfile_head h = masks_head();
    sherd__maskfile_writer *w;
    uint8_t row[64] = { 0 };
    h.id[0] = 1;
    assert_int_equal(sherd__maskfile_begin(&w, (sherd__maskfile_place){ masks_copy, masks_state },
                                           &h, masks_root, masks_key, NULL),
                     0);
    assert_int_equal(sherd__maskfile_row(w, row, NULL), 0);
    assert_int_equal(sherd__maskfile_commit(w, NULL), SHERD_EINVAL);
    assert_int_equal(access(masks_copy, F_OK), -1);
    assert_int_equal(sherd__maskfile_begin(&w, (sherd__maskfile_place){ masks_copy, masks_state },
                                           &h, masks_root, masks_key, NULL),
                     0);
    sherd__maskfile_abort(w);
    assert_int_equal(access(masks_copy, F_OK), -1);
    /* An id that has a counter already: a counter is never set back. */
    h = masks_head();
    h.rows = 0;
    assert_int_equal(sherd__maskfile_begin(&w, (sherd__maskfile_place){ masks_copy, masks_state },
                                           &h, masks_root, masks_key, NULL),
                     0);
    assert_int_equal(sherd__maskfile_commit(w, NULL), SHERD_EOPEN);
    assert_int_equal(access(masks_copy, F_OK), -1);
}

static void a_failed_allocation_gives_out_no_rows(void **s)
{
    (void)s;
    for (size_t n = 1;; n++) {
        sherd_diag d = { .code = 0 };
        uint64_t first = 99;
        sherd__alloc_fail_nth(n);
        int err = masks_take(masks_path, 1, &first, &d);
        sherd__alloc_fail_nth(0);
        if (!err) break;
        assert_int_equal(err, SHERD_ENOMEM);
        assert_int_equal(first, 99);
        assert_true(n < 20);
    }
}

/* Rows larger than the read buffer, so that each is read twice. */
static void a_row_that_changed_after_its_check_is_not_given_out(void **s)
{
    (void)s;
    enum { WIDE = 50000 };
    sherd__maskfile_head h = masks_head();
    sherd__maskfile_writer *w;
    sherd__maskfile *f;
    sherd_diag d = { .code = 0 };
    uint64_t first;
    uint8_t got[32], byte = 0;
    h.m = WIDE;
    h.rows = 3;
    h.id[0] = 1;
    size_t len = sherd__maskfile_row_bytes(&h);
    uint8_t *row = calloc(len, 1);
    assert_int_equal(sherd__maskfile_begin(&w, (sherd__maskfile_place){ masks_copy, masks_state },
                                           &h, masks_root, masks_key, &d),
                     0);
    for (uint64_t r = 0; r < h.rows; r++) assert_int_equal(sherd__maskfile_row(w, row, &d), 0);
    assert_int_equal(sherd__maskfile_commit(w, &d), 0);
    assert_int_equal(sherd__maskfile_open(&f, masks_copy, masks_state, true, &d), 0);
    assert_int_equal(sherd__maskfile_check(f, 4, &d), SHERD_EEXPOSURE);
    assert_int_equal(sherd__maskfile_check(f, 3, &d), 0);
    assert_int_equal(sherd__maskfile_left(f), 3); /* opened without taking rows */
    assert_int_equal(sherd__maskfile_strike(f, 3, &first, got, &d), 0);
    assert_int_equal(sherd__maskfile_read(f, 1, 5, 1, &byte, &d), 0);
    int fd = open(masks_copy, O_WRONLY);
    off_t at = (off_t)(SHERD__MASKFILE_HEAD + len + SHERD__MASKFILE_TAG + len - 1);
    assert_int_equal(pwrite(fd, "x", 1, at), 1); /* the last byte of row 1 */
    assert_int_equal(sherd__maskfile_read(f, 1, len - 1, 1, &byte, &d), 0); /* is in the buffer */
    assert_int_equal(byte, 0);
    assert_int_equal(sherd__maskfile_read(f, 0, 0, 1, &byte, &d), 0);
    d = (sherd_diag){ .code = 0 };
    assert_int_equal(sherd__maskfile_read(f, 1, 0, 1, &byte, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "row 1 does not fit its tag"));
    assert_int_equal(sherd__maskfile_read(f, 1, 0, 1, &byte, &d), SHERD_EFORMAT);
    assert_int_equal(sherd__maskfile_read(f, 2, 0, 1, &byte, &d), 0);
    assert_int_equal(ftruncate(fd, 1000), 0);
    assert_int_equal(sherd__maskfile_read(f, 0, 0, 1, &byte, &d), SHERD_EIO);
    close(fd);
    sherd__maskfile_close(f);
    free(row);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, masks_fresh)
    const struct CMUnitTest tests[] = {
        CASE(a_mask_file_that_was_written_is_read_back),
        CASE(every_changed_byte_is_detected),
        CASE(damage_in_an_unused_row_is_reported_when_the_row_is_used),
        CASE(every_other_length_is_detected),
        CASE(parts_cannot_be_exchanged),
        CASE(a_file_that_others_may_read_or_change_is_refused),
        CASE(files_that_are_not_mask_files_are_refused),
        CASE(no_message_contains_a_secret),
        CASE(a_header_out_of_range_is_not_written),
        CASE(a_mask_file_is_complete_or_absent),
        CASE(a_failed_allocation_gives_out_no_rows),
        CASE(a_row_that_changed_after_its_check_is_not_given_out),
    };
    return cmocka_run_group_tests_name("store/maskfile", tests, scratch_setup, scratch_teardown);
}
