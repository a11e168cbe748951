/* The list of passed self-tests: what is remembered, and what is never taken for a pass. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "store/passed.h"
#include "tests/unit/store/scratch.h"

static const uint8_t key[SHERD__HASH] = { 1, 2, 3 }, other[SHERD__HASH] = { 1, 2, 4 };
static char folder[400], file[450];

static int fresh(void **s)
{
    (void)s;
    scratch_clear();
    snprintf(folder, sizeof folder, "%s/cache/sherd", scratch_dir());
    snprintf(file, sizeof file, "%s/selftests", folder);
    return 0;
}

static bool known(const uint8_t *k)
{
    sherd__passed p;
    bool found = sherd__passed_begin(&p, folder, k, 0);
    sherd__passed_end(&p, false);
    return found;
}

static void pass(const uint8_t *k)
{
    sherd__passed p;
    assert_false(sherd__passed_begin(&p, folder, k, 0));
    sherd__passed_end(&p, true);
}

static void write_file(const char *text, size_t len)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static long size_of_file(void)
{
    struct stat st;
    return stat(file, &st) == 0 ? (long)st.st_size : -1;
}

static void a_passed_test_is_remembered_and_no_other(void **s)
{
    (void)s;
    struct stat st;
    assert_false(known(key));
    pass(key);
    assert_true(known(key));
    assert_false(known(other));
    pass(other);
    assert_true(known(key) && known(other));
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_test_that_did_not_pass_is_not_remembered(void **s)
{
    (void)s;
    sherd__passed p;
    assert_false(sherd__passed_begin(&p, folder, key, 0));
    sherd__passed_end(&p, false);
    assert_false(known(key));
    assert_int_equal(size_of_file(), 0);
}

static void a_failure_removes_what_passed_before(void **s)
{
    (void)s;
    pass(key);
    sherd__passed_forget(folder);
    assert_false(known(key));
    pass(key);
    assert_true(known(key));
}

static void a_line_that_is_cut_off_or_changed_is_no_pass(void **s)
{
    (void)s;
    char text[66];
    pass(key);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, text, 66), 65);
    close(fd);
    for (size_t len = 0; len < 65; len++) {
        write_file(text, len);
        assert_false(known(key));
    }
    for (size_t i = 0; i < 65; i++) {
        text[i] ^= 1;
        write_file(text, 65);
        assert_false(known(key));
        text[i] ^= 1;
    }
    write_file(text, 30); /* the next writer clears it */
    pass(key);
    assert_true(known(key));
    assert_int_equal(size_of_file(), 65);
}

static void the_file_does_not_grow_without_end(void **s)
{
    (void)s;
    uint8_t k[SHERD__HASH] = { 9 };
    for (unsigned i = 0; i < 600; i++) {
        k[1] = (uint8_t)i;
        k[2] = (uint8_t)(i >> 8);
        pass(k);
        assert_true(known(k));
        assert_in_range(size_of_file(), 65, 256 * 65);
    }
}

static void what_others_may_write_is_not_trusted(void **s)
{
    (void)s;
    static const mode_t modes[] = { 0720, 0702, 0777 };
    pass(key);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(folder, modes[i]), 0);
        assert_false(known(key));
        assert_int_equal(chmod(folder, 0700), 0);
        assert_int_equal(chmod(file, modes[i]), 0);
        assert_false(known(key));
        assert_int_equal(chmod(file, 0600), 0);
    }
    assert_true(known(key));
    if (geteuid() != 0) return;
    assert_int_equal(chown(file, 1, 1), 0);
    assert_false(known(key));
    assert_int_equal(chown(file, 0, 0), 0);
    assert_int_equal(chown(folder, 1, 1), 0);
    assert_false(known(key));
    assert_int_equal(chown(folder, 0, 0), 0);
    assert_true(known(key));
}

static void links_and_other_kinds_of_files_are_not_followed(void **s)
{
    (void)s;
    char real[450];
    pass(key);
    snprintf(real, sizeof real, "%s/real", scratch_dir());
    assert_int_equal(rename(file, real), 0);
    assert_int_equal(symlink(real, file), 0);
    assert_false(known(key));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_false(known(key)); /* and does not wait for a writer */
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_false(known(key));
    assert_int_equal(rmdir(file), 0);
    assert_int_equal(rename(real, file), 0);
    assert_true(known(key));
    snprintf(real, sizeof real, "%s/folder", scratch_dir());
    assert_int_equal(rename(folder, real), 0);
    assert_int_equal(symlink(real, folder), 0);
    assert_false(known(key));
}

static void a_file_that_cannot_be_written_is_no_error(void **s)
{
    (void)s;
    sherd__passed p;
    snprintf(folder, sizeof folder, "/proc/sherd");
    assert_false(sherd__passed_begin(&p, folder, key, 1000));
    sherd__passed_end(&p, true);
    sherd__passed_forget(folder);
    assert_false(known(key));
}

/* A full disk or a limit leaves a part of the line at most. */
static void a_full_disk_is_no_pass(void **s)
{
    (void)s;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = { 40, 40 };
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit)) _exit(2);
        sherd__passed p;
        if (sherd__passed_begin(&p, folder, key, 0)) _exit(3);
        sherd__passed_end(&p, true);
        _exit(known(key) ? 4 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(known(key));
    pass(key);
    assert_true(known(key));
}

/* The second process waits until the first one has passed, and does not repeat the test. */
static void of_two_processes_one_makes_the_test(void **s)
{
    (void)s;
    int ready[2];
    char byte;
    sherd__passed p;
    assert_int_equal(pipe(ready), 0);
    assert_false(sherd__passed_begin(&p, folder, key, 0));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sherd__passed mine;
        if (write(ready[1], "", 1) != 1) _exit(2);
        _exit(sherd__passed_begin(&mine, folder, key, 60000) ? 0 : 3);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    usleep(20000); /* so that it is likely to wait; without it the test passes as well */
    sherd__passed_end(&p, true);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
}

static void the_wait_has_a_limit(void **s)
{
    (void)s;
    sherd__passed first, second;
    assert_false(sherd__passed_begin(&first, folder, key, 0));
    assert_false(sherd__passed_begin(&second, folder, key, 10));
    sherd__passed_end(&second, true); /* it has no lock, and writes nothing */
    assert_int_equal(size_of_file(), 0);
    sherd__passed_end(&first, true);
    assert_true(known(key));
}

static void the_folder_is_the_users_cache(void **s)
{
    (void)s;
    char home[420], want[500];
    sherd__passed p;
    char *was = getenv("HOME"), *kept = was ? strdup(was) : NULL, *xdg = getenv("XDG_CACHE_HOME");
    char *kept_xdg = xdg ? strdup(xdg) : NULL;
    snprintf(home, sizeof home, "%s/home", scratch_dir());
    assert_int_equal(mkdir(home, 0700), 0);
    setenv("HOME", home, 1);
    unsetenv("XDG_CACHE_HOME");
    assert_false(sherd__passed_begin(&p, NULL, key, 0));
    sherd__passed_end(&p, true);
    snprintf(want, sizeof want, "%s/.cache/sherd/selftests", home);
    assert_int_equal(access(want, F_OK), 0);
    snprintf(want, sizeof want, "%s/xdg", home);
    setenv("XDG_CACHE_HOME", want, 1);
    assert_false(sherd__passed_begin(&p, NULL, key, 0));
    sherd__passed_end(&p, true);
    snprintf(want, sizeof want, "%s/xdg/sherd/selftests", home);
    assert_int_equal(access(want, F_OK), 0);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_false(sherd__passed_begin(&p, NULL, key, 0));
    sherd__passed_end(&p, true);
    if (kept) setenv("HOME", kept, 1);
    if (kept_xdg) setenv("XDG_CACHE_HOME", kept_xdg, 1);
    free(kept);
    free(kept_xdg);
}

static void without_memory_nothing_is_remembered(void **s)
{
    (void)s;
    pass(key);
    sherd__alloc_fail_nth(1);
    assert_false(known(key));
    sherd__alloc_fail_nth(0);
    assert_true(known(key));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, fresh)
    const struct CMUnitTest tests[] = {
        CASE(a_passed_test_is_remembered_and_no_other),
        CASE(a_test_that_did_not_pass_is_not_remembered),
        CASE(a_failure_removes_what_passed_before),
        CASE(a_line_that_is_cut_off_or_changed_is_no_pass),
        CASE(the_file_does_not_grow_without_end),
        CASE(what_others_may_write_is_not_trusted),
        CASE(links_and_other_kinds_of_files_are_not_followed),
        CASE(a_file_that_cannot_be_written_is_no_error),
        CASE(a_full_disk_is_no_pass),
        CASE(of_two_processes_one_makes_the_test),
        CASE(the_wait_has_a_limit),
        CASE(the_folder_is_the_users_cache),
        CASE(without_memory_nothing_is_remembered),
    };
    return cmocka_run_group_tests_name("store/passed", tests, scratch_setup, scratch_teardown);
}
