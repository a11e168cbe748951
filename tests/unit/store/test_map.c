#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "store/file.h"
#include "tests/unit/store/scratch.h"

static void sizes_around_the_copy_limit_read_alike(void **s)
{
    (void)s;
    const size_t sizes[] = {
        0, 1, 4096, SHERD__MAP_COPY - 1, SHERD__MAP_COPY, SHERD__MAP_COPY + 1, 3 * SHERD__MAP_COPY
    };
    uint8_t *bytes = malloc(3 * SHERD__MAP_COPY);
    for (size_t i = 0; i < 3 * SHERD__MAP_COPY; i++) bytes[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        sherd__map m;
        const char *path = scratch_write("f", bytes, sizes[i]);
        assert_int_equal(sherd__map_open(&m, path, 10, NULL), 0);
        assert_int_equal(m.len, sizes[i]);
        assert_int_equal(m.mapped, sizes[i] > SHERD__MAP_COPY);
        assert_non_null(m.bytes);
        assert_memory_equal(m.bytes, bytes, sizes[i]);
        assert_int_equal(sherd__map_check(&m, path, NULL), 0);
        sherd__map_close(&m);
        sherd__map_close(&m);
    }
    free(bytes);
}

static void a_mapped_file_that_changes_is_detected(void **s)
{
    (void)s;
    static uint8_t bytes[2 * SHERD__MAP_COPY];
    for (int i = 0; i < 3; i++) {
        sherd__map m;
        sherd_diag d = { 0 };
        const char *path = scratch_write("f", bytes, sizeof bytes);
        assert_int_equal(sherd__map_open(&m, path, 10, NULL), 0);
        usleep(20000); /* the kernel's time stamps advance in steps of some milliseconds */
        FILE *f = fopen(path, i == 0 ? "ab" : "r+b");
        assert_non_null(f);
        if (i < 2) fputc('x', f);
        fclose(f);
        if (i == 2) assert_int_equal(truncate(path, 4096), 0);
        assert_int_equal(sherd__map_check(&m, path, &d), SHERD_EIO);
        assert_non_null(strstr(d.message, "changed while it was read"));
        sherd__map_close(&m);
    }
}

static void a_pipe_is_read_up_to_its_cap(void **s)
{
    (void)s;
    const size_t len = 60000;
    for (int i = 0; i < 3; i++) {
        int ends[2];
        char path[64];
        sherd__map m = { 0 };
        sherd_diag d = { 0 };
        uint8_t *bytes = calloc(1, len);
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], bytes, len), len);
        close(ends[1]);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        int err = sherd__map_open(&m, path, len - 1 + (size_t)i, &d);
        assert_int_equal(err, i == 0 ? SHERD_EFORMAT : 0);
        if (!err) assert_int_equal(m.len, len);
        sherd__map_close(&m);
        close(ends[0]);
        free(bytes);
    }
}

static void files_of_proc_with_size_zero_are_read(void **s)
{
    (void)s;
    sherd__map m;
    assert_int_equal(sherd__map_open(&m, "/proc/self/status", 1 << 20, NULL), 0);
    assert_true(m.len > 100);
    sherd__map_close(&m);
}

static void folders_and_missing_files_are_named(void **s)
{
    (void)s;
    const char *bad[] = { scratch_dir(), scratch_path("none"), "", "/dev/null/x" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sherd__map m = { 0 };
        sherd_diag d = { 0 };
        assert_int_equal(sherd__map_open(&m, bad[i], 10, &d), SHERD_EOPEN);
        assert_true(d.message[0] && d.hint[0]);
        sherd__map_close(&m);
    }
}

static void a_small_file_is_read_with_a_nul_appended(void **s)
{
    (void)s;
    uint8_t *bytes;
    size_t len;
    sherd_diag d = { 0 };
    const char *path = scratch_write("f", "abc", 3);
    assert_int_equal(sherd__file_read_small(&bytes, &len, path, 3, NULL), 0);
    assert_int_equal(len, 3);
    assert_string_equal((char *)bytes, "abc");
    sherd__free(bytes);
    assert_int_equal(sherd__file_read_small(&bytes, &len, path, 2, &d), SHERD_EFORMAT);
    assert_null(bytes);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    const char *path = scratch_write("f", "abc", 3);
    for (size_t n = 1;; n++) {
        sherd__map m = { 0 };
        sherd__alloc_fail_nth(n);
        int err = sherd__map_open(&m, path, 10, NULL);
        bool reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
        sherd__map_close(&m);
        if (!reached) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_around_the_copy_limit_read_alike),
        cmocka_unit_test(a_mapped_file_that_changes_is_detected),
        cmocka_unit_test(a_pipe_is_read_up_to_its_cap),
        cmocka_unit_test(files_of_proc_with_size_zero_are_read),
        cmocka_unit_test(folders_and_missing_files_are_named),
        cmocka_unit_test(a_small_file_is_read_with_a_nul_appended),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("store/map", tests, scratch_setup, scratch_teardown);
}
