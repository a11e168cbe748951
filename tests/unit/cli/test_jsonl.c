/* Lines of JSON: the contents of the file after its writer ends in any way, and what is kept when
 * it continues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/jsonl.h"

static char path[] = "/tmp/sherd-jsonl-XXXXXX";

static int make_file(void **state)
{
    int fd = mkstemp(path);
    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static void put(const char *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* Returns the contents of the file, NUL-terminated; the caller frees it. */
static char *get(size_t *len)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    char *bytes = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(bytes);
    *len = fread(bytes, 1, (size_t)st.st_size, f);
    fclose(f);
    return bytes;
}

static void assert_holds(const char *bytes, size_t len)
{
    size_t found;
    char *all = get(&found);
    assert_int_equal(found, len);
    assert_memory_equal(all, bytes, len);
    free(all);
}

static int add(sherd__jsonl *l, int number, sherd_diag *d)
{
    return sherd__jsonl_add(l, json_pack("{s:i}", "n", number), 17, d);
}

static void a_new_file_has_its_lines_and_no_others(void **state)
{
    sherd__jsonl l;
    (void)state;
    put("what was here before\n", 21);
    assert_int_equal(sherd__jsonl_open(&l, path, false, NULL), 0);
    assert_int_equal(add(&l, 1, NULL), 0);
    assert_int_equal(add(&l, 2, NULL), 0);
    assert_int_equal(sherd__jsonl_sync(&l, NULL), 0);
    sherd__jsonl_close(&l);
    sherd__jsonl_close(&l);
    assert_holds("{\"n\":1}\n{\"n\":2}\n", 16);
}

/* Files of all lengths around the size of the pieces in which they are read. */
static void continuing_a_file_keeps_all_complete_lines_and_nothing_else(void **state)
{
    static const size_t lens[] = { 0, 1, 7, 4094, 4095, 4096, 4097, 8191, 8192, 8193, 13000 };
    (void)state;
    for (size_t whole = 0; whole < 11; whole++)
        for (size_t part = 0; part < 11; part++) {
            size_t kept = lens[whole], len = kept + lens[part];
            char *bytes = malloc(len + 8);
            assert_non_null(bytes);
            memset(bytes, 'x', len);
            for (size_t i = 0; i + 1 < kept; i += 50) bytes[i] = '\n';
            if (kept > 0) bytes[kept - 1] = '\n';
            put(bytes, len);
            sherd__jsonl l;
            assert_int_equal(sherd__jsonl_open(&l, path, true, NULL), 0);
            assert_int_equal(l.size, kept);
            assert_int_equal(add(&l, 3, NULL), 0);
            sherd__jsonl_close(&l);
            memcpy(bytes + kept, "{\"n\":3}\n", 8);
            assert_holds(bytes, kept + 8);
            free(bytes);
        }
}

/* The disk becomes full after this many bytes of the line, simulated by a limit on the size of
 * files. */
static void a_partly_written_line_is_removed_and_earlier_lines_are_kept(void **state)
{
    struct rlimit all;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    for (int append = 0; append < 2; append++)
        for (rlim_t room = 0; room < 8; room++) {
            sherd__jsonl l;
            sherd_diag d = { 0 };
            put("{\"n\":1}\n", 8);
            assert_int_equal(sherd__jsonl_open(&l, path, append != 0, NULL), 0);
            assert_int_equal(add(&l, 2, NULL), 0);
            struct rlimit some = { l.size + room, all.rlim_max };
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &some), 0);
            assert_int_equal(add(&l, 3, &d), SHERD_EIO);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
            assert_non_null(strstr(d.message, path));
            assert_int_equal(add(&l, 4, NULL), 0);
            sherd__jsonl_close(&l);
            const char *want = "{\"n\":1}\n{\"n\":2}\n{\"n\":4}\n" + (append ? 0 : 8);
            assert_holds(want, strlen(want));
        }
    signal(SIGXFSZ, SIG_DFL);
}

static void a_path_that_is_not_a_regular_file_is_written_without_truncation(void **state)
{
    sherd__jsonl l;
    sherd_diag d = { 0 };
    (void)state;
    assert_int_equal(sherd__jsonl_open(&l, "/dev/null", true, NULL), 0);
    assert_int_equal(add(&l, 1, NULL), 0);
    assert_int_equal(sherd__jsonl_sync(&l, NULL), 0);
    sherd__jsonl_close(&l);
    assert_int_equal(sherd__jsonl_open(&l, "/dev/full", true, NULL), 0);
    assert_int_equal(add(&l, 1, &d), SHERD_EIO);
    assert_non_null(strstr(d.message, "/dev/full: cannot write"));
    sherd__jsonl_close(&l);
    assert_int_equal(sherd__jsonl_open(&l, "/tmp/no/such/folder", true, &d), SHERD_EOPEN);
    assert_int_equal(l.fd, -1);
}

static void a_null_object_writes_nothing(void **state)
{
    sherd__jsonl l;
    (void)state;
    assert_int_equal(sherd__jsonl_open(&l, path, false, NULL), 0);
    assert_int_equal(sherd__jsonl_add(&l, NULL, 17, NULL), SHERD_ENOMEM);
    sherd__jsonl_close(&l);
    assert_holds("", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_file_has_its_lines_and_no_others),
        cmocka_unit_test(continuing_a_file_keeps_all_complete_lines_and_nothing_else),
        cmocka_unit_test(a_partly_written_line_is_removed_and_earlier_lines_are_kept),
        cmocka_unit_test(a_path_that_is_not_a_regular_file_is_written_without_truncation),
        cmocka_unit_test(a_null_object_writes_nothing),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
