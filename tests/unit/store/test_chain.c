/*
 * Chains of checkpoints: what was written is found, damage is named, and whichever call fails, the
 * earlier chain remains intact.
 *
 * link: -Wl,--wrap=openat,--wrap=fsync,--wrap=linkat,--wrap=renameat,--wrap=write,--wrap=pwrite
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "scratch.h"
#include "store/chain.h"

/* The call that fails, counted from 1 over all wrapped calls; 0: none. */
static unsigned fail_at, calls;

static bool fails(int code)
{
    if (++calls != fail_at) return false;
    errno = code;
    return true;
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_linkat(int a, const char *from, int b, const char *to, int flags);
int __wrap_linkat(int a, const char *from, int b, const char *to, int flags);
int __real_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to);
ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at);

int __wrap_openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return fails(EACCES) ? -1 : __real_openat(dir, path, flags, mode);
}

int __wrap_fsync(int fd)
{
    return fails(EIO) ? -1 : __real_fsync(fd);
}

int __wrap_linkat(int a, const char *from, int b, const char *to, int flags)
{
    return fails(ENOSPC) ? -1 : __real_linkat(a, from, b, to, flags);
}

int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    return fails(EIO) ? -1 : __real_renameat(a, from, b, to);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    return fails(ENOSPC) ? -1 : __real_write(fd, bytes, len);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return fails(ENOSPC) ? -1 : __real_pwrite(fd, bytes, len, at);
}

/* ---- chains for the cases -------------------------------------------------------------------- */

static const char *folder;

static int fresh(void **state)
{
    (void)state;
    fail_at = calls = 0;
    scratch_clear();
    folder = scratch_path("run");
    return 0;
}

static int add(sherd__chain *c, uint64_t number, sherd_diag *d)
{
    const double w[6] = { 1, 2, 3, 4, 5, (double)number };
    const int64_t step = (int64_t)number;
    const sherd__chain_member members[] = {
        { "w1", SHERD_F64, 2, 2, 3, w },
        { "step", SHERD_I64, 1, 1, 1, &step },
        { "nothing", SHERD_F64, 1, 1, 0, NULL },
    };
    return sherd__chain_add(c, number, members, 3, d);
}

/* Makes checkpoints 10, 20, ... up to `last`. */
static void make(uint64_t last)
{
    sherd__chain *c;
    assert_int_equal(sherd__chain_open(&c, folder, false, NULL), 0);
    for (uint64_t n = 10; n <= last; n += 10) assert_int_equal(add(c, n, NULL), 0);
    sherd__chain_close(c);
}

static const char *in(const char *name)
{
    static char path[4][512];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static const char *file(uint64_t number)
{
    char name[64];
    snprintf(name, sizeof name, "checkpoint-%012llu.npz", (unsigned long long)number);
    return in(name);
}

static int walk(sherd__chain_report *r)
{
    sherd_diag d = { 0 };
    int err = sherd__chain_walk(folder, r, &d);
    if (err) assert_true(d.message[0] != '\0');
    return err;
}

static void put(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

static void move(const char *from, const char *to)
{
    assert_int_equal(rename(from, to), 0);
}

/* ---- */

static void a_chain_is_walked_from_its_first_file_to_its_head(void **state)
{
    sherd__chain_report r;
    struct stat st;
    (void)state;
    make(40);
    assert_int_equal(walk(&r), 0);
    assert_int_equal(r.len, 4);
    assert_int_equal(r.first.number, 10);
    assert_int_equal(r.last.number, 40);
    assert_true(r.whole);
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(file(40), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    char head[300];
    snprintf(head, sizeof head, "%s/head", folder);
    assert_int_equal(stat(head, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void numpy_reads_a_checkpoint_and_follows_its_hash(void **state)
{
    (void)state;
    make(20);
    if (access("/usr/bin/python3", X_OK) != 0) skip();
    assert_int_equal(
        scratch_python(
            "import numpy, hashlib\n"
            "a = 'run/checkpoint-000000000010.npz'; b = 'run/checkpoint-000000000020.npz'\n"
            "z = numpy.load(b)\n"
            "assert z['w1'].tolist() == [[1, 2, 3], [4, 5, 20]] and z['step'][0] == 20\n"
            "assert z['number'][0] == 20 and z['nothing'].size == 0\n"
            "assert bytes(z['format']) == b'sherd-checkpoint-1'\n"
            "assert bytes(z['previous']) == hashlib.sha256(open(a, 'rb').read()).digest()\n"
            "assert not numpy.load(a)['previous'].any()\n"
            "h = hashlib.sha256(open(b, 'rb').read()).hexdigest()\n"
            "name = 'checkpoint-000000000020.npz'\n"
            "assert open('run/head').read() == name + ' sha256:' + h + '\\n'\n"),
        0);
}

static void every_changed_byte_is_detected(void **state)
{
    sherd__chain_report r;
    (void)state;
    make(30);
    const char *names[] = { "checkpoint-000000000010.npz", "checkpoint-000000000020.npz",
                            "checkpoint-000000000030.npz", "head" };
    for (size_t i = 0; i < 4; i++) {
        size_t len;
        uint8_t *bytes = scratch_read(in(names[i]), &len);
        assert_non_null(bytes);
        for (size_t at = 0; at < len; at += i < 3 ? 17 : 1) {
            bytes[at] ^= (uint8_t)(1u << at % 8);
            put(in(names[i]), bytes, len);
            int err = walk(&r);
            assert_true(err == SHERD_ECHAIN || err == SHERD_EVERSION);
            bytes[at] ^= (uint8_t)(1u << at % 8);
        }
        put(in(names[i]), bytes, len);
        assert_int_equal(walk(&r), 0);
        put(in(names[i]), bytes, len - 1); /* truncated */
        assert_int_equal(walk(&r), SHERD_ECHAIN);
        put(in(names[i]), bytes, len);
        free(bytes);
    }
}

static void missing_exchanged_and_foreign_files_are_detected(void **state)
{
    sherd__chain_report r;
    (void)state;
    make(30);
    move(file(20), in("away"));
    assert_int_equal(walk(&r), SHERD_ECHAIN);
    move(in("away"), file(20));
    move(file(30), in("away"));
    assert_int_equal(walk(&r), SHERD_ECHAIN);
    move(file(20), in("away2"));
    move(file(10), in("away3"));
    assert_int_equal(walk(&r), SHERD_ECHAIN); /* only the head is left */
    move(in("away"), file(20));
    move(in("away3"), file(10));
    assert_int_equal(walk(&r), SHERD_ECHAIN); /* 30 under the name of 20 */
    move(file(20), file(30));
    move(in("away2"), file(20));
    assert_int_equal(walk(&r), 0);
    move(in("head"), in("away"));
    assert_int_equal(walk(&r), SHERD_ECHAIN);
    move(in("away"), in("head"));
    put(in("checkpoint-7.npz"), "x", 1); /* not a name of a checkpoint: ignored */
    put(in("checkpoint-000000000040.npz.bak"), "x", 1);
    assert_int_equal(walk(&r), 0);
}

static void all_files_but_the_newest_may_be_removed(void **state)
{
    sherd__chain_report r;
    sherd__chain *c;
    (void)state;
    make(50);
    assert_int_equal(sherd__chain_open(&c, folder, true, NULL), 0);
    assert_int_equal(sherd__chain_prune(c, 2, NULL), 0);
    assert_int_equal(add(c, 60, NULL), 0);
    assert_int_equal(walk(&r), 0);
    assert_int_equal(r.len, 3);
    assert_int_equal(r.first.number, 40);
    assert_false(r.whole);
    assert_int_equal(sherd__chain_prune(c, 9, NULL), 0);
    sherd__chain_close(c);
    assert_int_equal(walk(&r), 0);
    assert_int_equal(r.len, 3);
}

static void a_chain_can_continue_after_a_kill_before_the_head_was_written(void **state)
{
    sherd__chain_report r;
    sherd__chain_link newest;
    sherd__chain *c;
    size_t len;
    (void)state;
    make(20);
    uint8_t *head = scratch_read(in("head"), &len);
    assert_int_equal(sherd__chain_open(&c, folder, true, NULL), 0);
    assert_int_equal(add(c, 30, NULL), 0);
    sherd__chain_close(c);
    put(in("head"), head, len); /* restored */
    assert_int_equal(walk(&r), 0);
    assert_int_equal(r.last.number, 30);
    assert_int_equal(sherd__chain_open(&c, folder, true, NULL), 0);
    assert_true(sherd__chain_newest(c, &newest));
    assert_int_equal(newest.number, 30);
    assert_int_equal(add(c, 40, NULL), 0);
    put(in("head"), head, len); /* two files behind: a kill does not leave this */
    sherd__chain_close(c);
    assert_int_equal(walk(&r), SHERD_ECHAIN);
    free(head);
    fresh(NULL);
    make(10);
    assert_int_equal(remove(in("head")), 0); /* killed while writing the first checkpoint */
    assert_int_equal(walk(&r), 0);
    assert_int_equal(r.len, 1);
}

static void whichever_call_fails_the_earlier_chain_remains(void **state)
{
    sherd__chain_report r;
    unsigned all;
    (void)state;
    make(20);
    for (unsigned at = 1;; at++) {
        sherd__chain *c;
        sherd__chain_link newest;
        assert_int_equal(sherd__chain_open(&c, folder, true, NULL), 0);
        assert_true(sherd__chain_newest(c, &newest));
        uint64_t next = newest.number + 10;
        calls = 0;
        fail_at = at;
        sherd_diag d = { 0 };
        int err = add(c, next, &d);
        all = calls;
        fail_at = 0;
        sherd__chain_close(c);
        assert_int_equal(walk(&r), 0);
        assert_true(r.last.number == newest.number || r.last.number == next);
        if (at > all) {
            assert_int_equal(err, 0);
            break;
        }
        if (err != 0) assert_true(d.message[0] != '\0');
        else assert_int_equal(r.last.number, next); /* a failed call that has an alternative */
    }
    assert_true(all > 8);
}

static void a_folder_that_cannot_be_synced_is_not_created(void **state)
{
    sherd__chain *c = NULL;
    sherd_diag d = { 0 };
    (void)state;
    fail_at = 1;
    assert_int_equal(sherd__chain_open(&c, folder, false, &d), SHERD_EIO);
    assert_null(c);
    assert_int_equal(access(folder, F_OK), -1);
    fail_at = 0;
    make(20);
}

static void after_a_failure_a_writer_continues_without_a_gap(void **state)
{
    sherd__chain_report r;
    (void)state;
    for (unsigned at = 1; at < 30; at++) {
        sherd__chain *c;
        fresh(NULL);
        make(20);
        assert_int_equal(sherd__chain_open(&c, folder, true, NULL), 0);
        calls = 0;
        fail_at = at;
        int err = add(c, 30, NULL);
        fail_at = 0;
        assert_int_equal(add(c, 40, NULL), 0);
        sherd__chain_close(c);
        assert_int_equal(walk(&r), 0);
        assert_int_equal(r.last.number, 40);
        assert_true(r.len == 4 || (r.len == 3 && err != 0));
    }
}

static void a_failed_allocation_is_reported_and_keeps_the_chain(void **state)
{
    sherd__chain_report r;
    (void)state;
    for (size_t n = 1;; n++) {
        sherd__chain *c = NULL;
        fresh(NULL);
        make(10);
        sherd__alloc_fail_nth(n);
        int err = sherd__chain_open(&c, folder, true, NULL);
        if (!err) err = add(c, 30, NULL);
        sherd__alloc_fail_nth(0);
        sherd__chain_close(c);
        assert_int_equal(walk(&r), 0);
        if (!err) break;
        assert_int_equal(err, SHERD_ENOMEM);
    }
}

static void one_process_at_a_time_adds_in_ascending_order(void **state)
{
    sherd__chain *c, *other;
    sherd_diag d = { 0 };
    (void)state;
    make(20);
    assert_int_equal(sherd__chain_open(&c, folder, false, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "2 checkpoints"));
    assert_int_equal(sherd__chain_open(&c, folder, true, NULL), 0);
    assert_int_equal(sherd__chain_open(&other, folder, true, NULL), SHERD_EBUSY);
    assert_int_equal(add(c, 20, NULL), SHERD_EINVAL);
    assert_int_equal(add(c, 19, NULL), SHERD_EINVAL);
    assert_int_equal(add(c, 21, NULL), 0);
    sherd__chain_close(c);
    assert_int_equal(sherd__chain_open(&other, folder, true, NULL), 0);
    sherd__chain_close(other);
    assert_int_equal(sherd__chain_open(&c, in("no/such"), true, NULL), SHERD_EOPEN);
    sherd__chain_report r;
    assert_int_equal(sherd__chain_walk(in("nowhere"), &r, NULL), SHERD_EOPEN);
}

/* A kill between linkat and rename leaves the hidden name; the lock of its writer is gone. */
static void files_of_a_killed_writer_are_removed_by_the_next_run(void **s)
{
    (void)s;
    static const char *const left[] = { ".head.sherd-0", ".checkpoint-000000000007.npz.sherd-12" };
    static const char *const stay[] = { ".head.sherd-1", ".head.sherd-",   "head.sherd-0",
                                        ".sherd-0",      ".head.sherd-0x", ".head-0" };
    sherd__chain *c;
    char path[512];
    assert_int_equal(sherd__chain_open(&c, folder, false, NULL), 0);
    assert_int_equal(add(c, 1, NULL), 0);
    sherd__chain_close(c);
    for (size_t i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i < 2 ? left[i] : stay[i - 2]);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        close(fd);
    }
    snprintf(path, sizeof path, "%s/%s", folder, stay[0]);
    int writer = open(path, O_RDWR | O_CLOEXEC); /* a writer that is alive */
    assert_int_equal(flock(writer, LOCK_EX), 0);
    assert_int_equal(sherd__chain_open(&c, folder, true, NULL), 0);
    for (size_t i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i < 2 ? left[i] : stay[i - 2]);
        assert_int_equal(access(path, F_OK) == 0, i >= 2);
    }
    sherd__chain *other; /* the lock of the folder is still held */
    assert_int_equal(sherd__chain_open(&other, folder, true, NULL), SHERD_EBUSY);
    sherd__chain_close(c);
    close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_chain_is_walked_from_its_first_file_to_its_head, fresh),
        cmocka_unit_test_setup(numpy_reads_a_checkpoint_and_follows_its_hash, fresh),
        cmocka_unit_test_setup(every_changed_byte_is_detected, fresh),
        cmocka_unit_test_setup(missing_exchanged_and_foreign_files_are_detected, fresh),
        cmocka_unit_test_setup(all_files_but_the_newest_may_be_removed, fresh),
        cmocka_unit_test_setup(a_chain_can_continue_after_a_kill_before_the_head_was_written,
                               fresh),
        cmocka_unit_test_setup(whichever_call_fails_the_earlier_chain_remains, fresh),
        cmocka_unit_test_setup(a_folder_that_cannot_be_synced_is_not_created, fresh),
        cmocka_unit_test_setup(after_a_failure_a_writer_continues_without_a_gap, fresh),
        cmocka_unit_test_setup(a_failed_allocation_is_reported_and_keeps_the_chain, fresh),
        cmocka_unit_test_setup(files_of_a_killed_writer_are_removed_by_the_next_run, fresh),
        cmocka_unit_test_setup(one_process_at_a_time_adds_in_ascending_order, fresh),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
