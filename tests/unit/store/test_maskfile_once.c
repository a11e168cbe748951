/*
 * No row of masks is given out twice, whatever happens to the file, its copies, its counter or the
 * process.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/store/maskfile_world.h"
#include "tests/unit/store/scratch.h"

static void rows_are_given_out_once(void **s)
{
    (void)s;
    uint64_t first, next = 0;
    static const uint64_t takes[] = { 1, 3, 0, 2, 1 };
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++) {
        assert_int_equal(masks_take(masks_path, takes[i], &first, NULL), 0);
        assert_int_equal(first, next);
        next += takes[i];
    }
    masks_must_refuse(masks_path, SHERD_EEXPOSURE,
                      "0 rows of masks are left, and the product needs 1");
}

static void a_request_for_too_many_rows_uses_none(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    uint64_t first = 99;
    assert_int_equal(masks_take(masks_path, 5, &first, NULL), 0);
    assert_int_equal(masks_take(masks_path, 3, &first, &d), SHERD_EEXPOSURE);
    assert_non_null(strstr(d.message, "2 rows of masks are left, and the product needs 3"));
    assert_int_equal(masks_take(masks_path, UINT64_MAX, &first, NULL), SHERD_EEXPOSURE);
    assert_int_equal(masks_take(masks_path, 2, &first, NULL), 0);
    assert_int_equal(first, 5);
}

static void opening_without_taking_rows_uses_none_and_needs_no_lock(void **s)
{
    (void)s;
    sherd__maskfile *user, *f;
    uint64_t first;
    uint8_t got[32] = { 0 };
    assert_int_equal(sherd__maskfile_open(&user, masks_path, masks_state, true, NULL), 0);
    assert_int_equal(sherd__maskfile_open(&f, masks_path, masks_state, false, NULL), 0);
    assert_int_equal(sherd__maskfile_left(f), ROWS);
    assert_int_equal(sherd__maskfile_strike(f, 1, &first, got, NULL), SHERD_EINTERNAL);
    assert_int_equal(got[0], 0);
    sherd__maskfile_close(f);
    sherd__maskfile_close(user);
}

static void an_older_copy_is_refused(void **s)
{
    (void)s;
    size_t len;
    uint64_t first;
    uint8_t *old = masks_slurp(masks_path, &len);
    assert_int_equal(masks_take(masks_path, 2, &first, NULL), 0);
    masks_put(masks_copy, old, len); /* kept elsewhere, or restored from a backup */
    masks_must_refuse(masks_copy, SHERD_EEXPOSURE,
                      "an older copy: it records 0 used rows, and 2 were used");
    masks_put(masks_path, old, len);
    masks_must_refuse(masks_path, SHERD_EEXPOSURE, "an older copy");
    free(old);
}

static void the_newest_copy_continues(void **s)
{
    (void)s;
    size_t len;
    uint64_t first;
    assert_int_equal(masks_take(masks_path, 2, &first, NULL), 0);
    uint8_t *bytes = masks_slurp(masks_path, &len);
    masks_put(masks_copy, bytes, len);
    assert_int_equal(masks_take(masks_copy, 1, &first, NULL), 0);
    assert_int_equal(first, 2);
    masks_must_refuse(masks_path, SHERD_EEXPOSURE, "an older copy");
    free(bytes);
}

static void a_copy_of_a_file_in_use_is_refused(void **s)
{
    (void)s;
    size_t len;
    sherd__maskfile *f;
    uint8_t *bytes = masks_slurp(masks_path, &len);
    masks_put(masks_copy, bytes, len);
    assert_int_equal(sherd__maskfile_open(&f, masks_path, masks_state, true, NULL), 0);
    masks_must_refuse(masks_path, SHERD_EBUSY, "another run is using these masks");
    masks_must_refuse(masks_copy, SHERD_EBUSY, "or a copy of them");
    sherd__maskfile_close(f);
    uint64_t first;
    assert_int_equal(masks_take(masks_copy, 1, &first, NULL), 0);
    free(bytes);
}

static void a_file_without_its_counter_is_refused(void **s)
{
    (void)s;
    size_t len;
    uint8_t *bytes = masks_slurp(masks_counter(), &len);
    assert_int_equal(unlink(masks_counter()), 0);
    masks_must_refuse(masks_path, SHERD_EEXPOSURE,
                      "is missing: it is unknown which rows were used");
    for (size_t i = 0; i < len * 8; i += 7) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        masks_put(masks_counter(), bytes, len);
        masks_must_refuse(masks_path, SHERD_EFORMAT, "damaged or edited");
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t n = 0; n < len; n++) {
        masks_put(masks_counter(), bytes, n);
        masks_must_refuse(masks_path, SHERD_EFORMAT, "damaged or edited");
    }
    free(bytes);
}

/* After a kill between the two marks, the file is ahead of its counter; the file's mark counts. */
static void a_mark_ahead_of_the_counter_counts(void **s)
{
    (void)s;
    size_t len;
    uint64_t first;
    uint8_t *old = masks_slurp(masks_counter(), &len);
    assert_int_equal(masks_take(masks_path, 3, &first, NULL), 0);
    masks_put(masks_counter(), old, len);
    assert_int_equal(masks_take(masks_path, 1, &first, NULL), 0);
    assert_int_equal(first, 3);
    free(old);
}

/* The disk refuses the mark: no key is returned, and rows that may have been marked count as
 * used. */
static void if_the_mark_cannot_be_written_no_key_is_returned(void **s)
{
    (void)s;
    pid_t child = fork();
    if (child == 0) {
        sherd__maskfile *f;
        sherd_diag d = { .code = 0 };
        uint64_t first = 99;
        uint8_t got[32] = { 0 }, zero[32] = { 0 };
        struct rlimit none = { 100, 100 };
        signal(SIGXFSZ, SIG_IGN);
        if (sherd__maskfile_open(&f, masks_path, masks_state, true, &d)) _exit(1);
        if (setrlimit(RLIMIT_FSIZE, &none) != 0) _exit(2);
        if (sherd__maskfile_strike(f, 1, &first, got, &d) != SHERD_EIO) _exit(3);
        if (first != 99 || memcmp(got, zero, sizeof got) != 0) _exit(4);
        if (sherd__maskfile_left(f) != ROWS - 1) _exit(5);
        sherd__maskfile_close(f);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void the_counter_is_in_the_users_state_folder(void **s)
{
    (void)s;
    char xdg[300], expected[400];
    sherd__maskfile_head h = masks_head();
    sherd__maskfile_writer *w;
    h.rows = 0;
    snprintf(xdg, sizeof xdg, "%s/xdg", scratch_dir());
    char *home = getenv("HOME"), *kept = home ? strdup(home) : NULL;
    setenv("XDG_STATE_HOME", xdg, 1);
    assert_int_equal(sherd__maskfile_begin(&w, (sherd__maskfile_place){ masks_copy, NULL }, &h,
                                           masks_root, masks_key, NULL),
                     0);
    assert_int_equal(sherd__maskfile_commit(w, NULL), 0);
    snprintf(expected, sizeof expected, "%s/sherd/masks/abababababababababababababababab", xdg);
    assert_int_equal(access(expected, F_OK), 0);
    setenv("XDG_STATE_HOME", "relative", 1); /* relative paths are ignored */
    setenv("HOME", xdg, 1);
    assert_int_equal(sherd__maskfile_begin(&w, (sherd__maskfile_place){ masks_copy, NULL }, &h,
                                           masks_root, masks_key, NULL),
                     0);
    assert_int_equal(sherd__maskfile_commit(w, NULL), 0);
    snprintf(expected, sizeof expected,
             "%s/.local/state/sherd/masks/abababababababababababababababab", xdg);
    assert_int_equal(access(expected, F_OK), 0);
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    assert_int_equal(sherd__maskfile_begin(&w, (sherd__maskfile_place){ masks_copy, NULL }, &h,
                                           masks_root, masks_key, NULL),
                     SHERD_EOPEN);
    if (kept) setenv("HOME", kept, 1);
    free(kept);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, masks_fresh)
    const struct CMUnitTest tests[] = {
        CASE(rows_are_given_out_once),
        CASE(a_request_for_too_many_rows_uses_none),
        CASE(opening_without_taking_rows_uses_none_and_needs_no_lock),
        CASE(an_older_copy_is_refused),
        CASE(the_newest_copy_continues),
        CASE(a_copy_of_a_file_in_use_is_refused),
        CASE(a_file_without_its_counter_is_refused),
        CASE(a_mark_ahead_of_the_counter_counts),
        CASE(if_the_mark_cannot_be_written_no_key_is_returned),
        CASE(the_counter_is_in_the_users_state_folder),
    };
    return cmocka_run_group_tests_name("store/maskfile_once", tests, scratch_setup,
                                       scratch_teardown);
}
