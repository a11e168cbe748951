/*
 * Atomic replacement: what is visible at each step, and what remains after each failure. System
 * calls are wrapped where a case needs a file system that fails or lacks O_TMPFILE.
 *
 * link: -Wl,--wrap=openat,--wrap=fsync,--wrap=renameat,--wrap=pwrite,--wrap=lstat
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "tests/support/send_signal.h"
#include "store/file.h"
#include "tests/unit/store/scratch.h"

static struct {
    bool no_tmpfile, slow_writes;
    const char *made; /* created by another process just before lstat */
    int fsync_errno, folder_sync_errno, rename_errno;
} faults;

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at);

int __wrap_openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (faults.no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_openat(dir, path, flags, mode);
}

int __wrap_fsync(int fd)
{
    struct stat st;
    int e = faults.fsync_errno;
    if (faults.folder_sync_errno && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        e = faults.folder_sync_errno;
    if (!e) return __real_fsync(fd);
    errno = e;
    return -1;
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    if (!faults.rename_errno) return __real_renameat(from_dir, from, to_dir, to);
    errno = faults.rename_errno;
    return -1;
}

int __wrap_lstat(const char *path, struct stat *st)
{
    if (faults.made) (void)scratch_write(faults.made, "theirs", 6);
    faults.made = NULL;
    return __real_lstat(path, st);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    static int turn;
    if (!faults.slow_writes) return __real_pwrite(fd, bytes, len, at);
    if (++turn % 2) {
        errno = EINTR;
        return -1;
    }
    return __real_pwrite(fd, bytes, len < 3 ? len : 3, at);
}

static int fresh(void **state)
{
    (void)state;
    memset(&faults, 0, sizeof faults);
    umask(022);
    scratch_clear();
    return 0;
}

static int put(const char *path, const char *text, sherd__file_kind kind, sherd_diag *d)
{
    sherd__file *f;
    int err = sherd__file_begin(&f, path, kind, d);
    if (err) return err;
    err = sherd__file_write(f, text, strlen(text), d);
    if (err) {
        sherd__file_abort(f);
        return err;
    }
    return sherd__file_commit(f, d);
}

static void assert_holds(const char *path, const char *text)
{
    size_t len;
    uint8_t *got = scratch_read(path, &len);
    assert_non_null(got);
    assert_string_equal((char *)got, text);
    free(got);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void a_file_appears_whole_and_only_at_commit(void **s)
{
    (void)s;
    for (int named = 0; named < 2; named++) {
        const char *path = scratch_path("new");
        sherd__file *f;
        faults.no_tmpfile = named;
        assert_int_equal(sherd__file_begin(&f, path, SHERD__FILE_PUBLIC, NULL), 0);
        assert_int_equal(sherd__file_write(f, "ab", 2, NULL), 0);
        assert_int_equal(scratch_entries(), named);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(sherd__file_write(f, "cd", 2, NULL), 0);
        assert_int_equal(sherd__file_write_at(f, 1, "X", 1, NULL), 0);
        assert_int_equal(sherd__file_commit(f, NULL), 0);
        assert_holds(path, "aXcd");
        assert_int_equal(scratch_entries(), 1);
        fresh(NULL);
    }
}

static void an_earlier_file_is_replaced_in_one_step(void **s)
{
    (void)s;
    for (int named = 0; named < 2; named++) {
        const char *path = scratch_write("old", "before", 6);
        sherd__file *f;
        faults.no_tmpfile = named;
        assert_int_equal(sherd__file_begin(&f, path, SHERD__FILE_PUBLIC, NULL), 0);
        assert_int_equal(sherd__file_write(f, "after", 5, NULL), 0);
        assert_holds(path, "before");
        assert_int_equal(sherd__file_commit(f, NULL), 0);
        assert_holds(path, "after");
        assert_int_equal(scratch_entries(), 1);
        fresh(NULL);
    }
}

static void an_aborted_file_leaves_no_file_and_changes_none(void **s)
{
    (void)s;
    for (int named = 0; named < 2; named++) {
        const char *path = scratch_write("old", "before", 6);
        sherd__file *f;
        faults.no_tmpfile = named;
        assert_int_equal(sherd__file_begin(&f, path, SHERD__FILE_PUBLIC, NULL), 0);
        assert_int_equal(sherd__file_write(f, "after", 5, NULL), 0);
        sherd__file_abort(f);
        assert_holds(path, "before");
        assert_int_equal(scratch_entries(), 1);
    }
    sherd__file_abort(NULL);
}

static void permissions_follow_the_kind(void **s)
{
    (void)s;
    const char *path = scratch_path("f");
    umask(027);
    assert_int_equal(put(path, "x", SHERD__FILE_PUBLIC, NULL), 0);
    assert_int_equal(mode_of(path), 0640);
    assert_int_equal(chmod(path, 0664), 0);
    assert_int_equal(put(path, "y", SHERD__FILE_PUBLIC, NULL), 0);
    assert_int_equal(mode_of(path), 0664);
    assert_int_equal(put(path, "z", SHERD__FILE_PRIVATE, NULL), 0);
    assert_int_equal(mode_of(path), 0600);
    faults.no_tmpfile = true;
    assert_int_equal(put(scratch_path("g"), "z", SHERD__FILE_PRIVATE, NULL), 0);
    assert_int_equal(mode_of(scratch_path("g")), 0600);
}

static void a_killed_writer_leaves_no_file(void **s)
{
    (void)s;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        sherd__file *f;
        if (sherd__file_begin(&f, scratch_path("old"), SHERD__FILE_PUBLIC, NULL)) _exit(1);
        if (sherd__file_write(f, "after", 5, NULL)) _exit(1);
        if (write(ready[1], "", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char c;
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    send_signal(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(scratch_entries(), 0);
}

static void the_file_of_a_dead_writer_is_removed_by_the_next(void **s)
{
    (void)s;
    for (int named = 0; named < 2; named++) {
        const char *path = scratch_write("old", "before", 6);
        scratch_write(".old.sherd-0", "half", 4);
        faults.no_tmpfile = named;
        assert_int_equal(put(path, "after", SHERD__FILE_PUBLIC, NULL), 0);
        assert_holds(path, "after");
        assert_int_equal(scratch_entries(), 1);
        fresh(NULL);
    }
}

static void the_file_of_a_live_writer_is_kept(void **s)
{
    (void)s;
    for (int named = 0; named < 2; named++) {
        sherd__file *first, *second;
        const char *path = scratch_write("old", "before", 6);
        faults.no_tmpfile = true;
        assert_int_equal(sherd__file_begin(&first, path, SHERD__FILE_PUBLIC, NULL), 0);
        faults.no_tmpfile = named;
        assert_int_equal(sherd__file_begin(&second, path, SHERD__FILE_PUBLIC, NULL), 0);
        assert_int_equal(sherd__file_write(first, "1", 1, NULL), 0);
        assert_int_equal(sherd__file_write(second, "2", 1, NULL), 0);
        assert_int_equal(sherd__file_commit(second, NULL), 0);
        assert_holds(path, "2");
        assert_int_equal(sherd__file_commit(first, NULL), 0);
        assert_holds(path, "1");
        assert_int_equal(scratch_entries(), 1);
        fresh(NULL);
    }
}

static void foreign_files_under_hidden_names_are_kept(void **s)
{
    (void)s;
    const char *path = scratch_write("old", "before", 6);
    const char *other = scratch_write("other", "precious", 8);
    assert_int_equal(mkdir(scratch_path(".old.sherd-0"), 0700), 0);
    assert_int_equal(symlink(other, scratch_path(".old.sherd-1")), 0);
    assert_int_equal(mkfifo(scratch_path(".old.sherd-2"), 0600), 0);
    assert_int_equal(put(path, "after", SHERD__FILE_PUBLIC, NULL), 0);
    assert_holds(path, "after");
    assert_holds(other, "precious");
    assert_int_equal(scratch_entries(), 5);
}

static void a_symbolic_link_is_followed(void **s)
{
    (void)s;
    const char *path = scratch_write("real", "before", 6), *link = scratch_path("link");
    struct stat st;
    assert_int_equal(symlink("real", link), 0);
    assert_int_equal(put(link, "after", SHERD__FILE_PUBLIC, NULL), 0);
    assert_holds(path, "after");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    unlink(path);
    sherd_diag d = { 0 };
    assert_int_equal(put(link, "x", SHERD__FILE_PUBLIC, &d), SHERD_EOPEN);
    assert_non_null(strstr(d.message, "symbolic link to a file that does not exist"));
}

static void a_derived_name_follows_no_link_and_replaces_files_only(void **s)
{
    (void)s;
    char real[256], name[256];
    sherd__file *f = NULL;
    sherd_diag d = { 0 };
    snprintf(real, sizeof real, "%s", scratch_path("real"));
    snprintf(name, sizeof name, "%s", scratch_path("derived"));
    assert_int_equal(put(real, "precious", SHERD__FILE_PUBLIC, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(i == 0   ? symlink("real", name)
                         : i == 1 ? symlink("nothing", name)
                                  : mkfifo(name, 0600),
                         0);
        d = (sherd_diag){ 0 };
        assert_int_equal(put(name, "x", SHERD__FILE_DERIVED, &d), SHERD_EOPEN);
        assert_non_null(strstr(d.message, "derived: is not a regular file"));
        unlink(name);
    }
    for (int i = 0; i < 2; i++) { /* also if a link comes while it is written */
        assert_int_equal(put(name, "before", SHERD__FILE_DERIVED, NULL), 0);
        assert_int_equal(sherd__file_begin(&f, name, SHERD__FILE_DERIVED, NULL), 0);
        if (i) assert_int_equal(unlink(name) | symlink("real", name), 0);
        assert_int_equal(sherd__file_write(f, "after", 5, NULL), 0);
        assert_int_equal(sherd__file_commit(f, NULL), 0);
        assert_holds(name, "after");
    }
    assert_holds(real, "precious");
}

static void a_derived_file_stays_as_private_as_it_was(void **s)
{
    (void)s;
    char path[256];
    mode_t mask = umask(022);
    snprintf(path, sizeof path, "%s", scratch_path("derived"));
    assert_int_equal(put(path, "x", SHERD__FILE_DERIVED, NULL), 0);
    assert_int_equal(mode_of(path), 0644);
    for (int i = 0; i < 2; i++) {
        faults.no_tmpfile = i;
        assert_int_equal(chmod(path, 0600), 0);
        assert_int_equal(put(path, "x", SHERD__FILE_DERIVED, NULL), 0);
        assert_int_equal(mode_of(path), 0600);
        assert_int_equal(chmod(path, 0666), 0);
        assert_int_equal(put(path, "x", SHERD__FILE_DERIVED, NULL), 0);
        assert_int_equal(mode_of(path), 0644);
    }
    umask(mask);
}

static void a_file_whose_folder_cannot_be_synced_is_published(void **s)
{
    (void)s;
    sherd__file *f;
    sherd_diag d = { 0 };
    bool published = true;
    assert_int_equal(sherd__file_begin(&f, scratch_path("f"), SHERD__FILE_PUBLIC, NULL), 0);
    assert_int_equal(sherd__file_write(f, "after", 5, NULL), 0);
    faults.fsync_errno = EIO;
    assert_int_equal(sherd__file_publish(f, &published, NULL), SHERD_EIO);
    assert_false(published);
    assert_int_equal(scratch_entries(), 0);
    faults.fsync_errno = 0;
    assert_int_equal(sherd__file_begin(&f, scratch_path("f"), SHERD__FILE_PUBLIC, NULL), 0);
    assert_int_equal(sherd__file_write(f, "after", 5, NULL), 0);
    faults.folder_sync_errno = EIO;
    assert_int_equal(sherd__file_publish(f, &published, &d), SHERD_EIO);
    faults.folder_sync_errno = 0;
    assert_true(published);
    assert_non_null(strstr(d.message, "written, but its folder"));
    assert_holds(scratch_path("f"), "after");
}

/* A pipe without a reader would block the check. */
static void a_target_is_checked_without_being_opened_for_good(void **s)
{
    (void)s;
    char path[256];
    sherd_diag d = { 0 };
    snprintf(path, sizeof path, "%s", scratch_path("checked"));
    assert_int_equal(sherd__file_check(path, SHERD__FILE_PRIVATE, NULL), 0);
    assert_int_equal(scratch_entries(), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(sherd__file_check(path, SHERD__FILE_PRIVATE, NULL), 0);
    assert_int_equal(sherd__file_check("/nonexistent/C", SHERD__FILE_PRIVATE, &d), SHERD_EOPEN);
}

static void a_file_that_another_process_creates_meanwhile_is_replaced(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    faults.made = "new";
    if (put(scratch_path("new"), "ours", SHERD__FILE_PUBLIC, &d)) fail_msg("%s", d.message);
    assert_null(faults.made);
    assert_holds(scratch_path("new"), "ours");
    assert_int_equal(scratch_entries(), 1);
}

static void a_path_that_cannot_be_written_is_named(void **s)
{
    (void)s;
    char too_long[5000];
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    const char *bad[] = {
        scratch_path("none/f"), scratch_dir(), scratch_path("sub/"), "", "/", "..", too_long
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sherd_diag d = { 0 };
        assert_int_equal(put(bad[i], "x", SHERD__FILE_PUBLIC, &d), SHERD_EOPEN);
        assert_true(d.message[0] && d.hint[0]);
    }
    assert_int_equal(scratch_entries(), 0);
}

/* Runs f as a user without privileges; returns its exit status. */
static int as_nobody(int (*f)(void))
{
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) || setuid(65534))) _exit(99);
        _exit(f());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int write_closed(void)
{
    sherd_diag d = { 0 };
    if (put(scratch_path("mine"), "x", SHERD__FILE_PUBLIC, &d) != SHERD_EOPEN) return 1;
    if (!strstr(d.message, "ermission")) return 2;
    return put(scratch_path("new"), "x", SHERD__FILE_PUBLIC, NULL) == SHERD_EOPEN ? 0 : 3;
}

static void a_file_and_a_folder_without_write_permission_are_refused(void **s)
{
    (void)s;
    scratch_write("mine", "before", 6);
    assert_int_equal(chmod(scratch_path("mine"), 0444), 0);
    assert_int_equal(chmod(scratch_dir(), 0555), 0);
    int got = as_nobody(write_closed);
    assert_int_equal(chmod(scratch_dir(), 0700), 0);
    assert_int_equal(got, 0);
    assert_holds(scratch_path("mine"), "before");
}

static void writes_continue_after_signals_and_short_counts(void **s)
{
    (void)s;
    faults.slow_writes = true;
    assert_int_equal(put(scratch_path("f"), "0123456789", SHERD__FILE_PUBLIC, NULL), 0);
    assert_holds(scratch_path("f"), "0123456789");
}

static void a_failed_sync_or_rename_leaves_the_earlier_file(void **s)
{
    (void)s;
    const char *path = scratch_write("old", "before", 6);
    for (int named = 0; named < 2; named++) {
        sherd_diag d = { 0 };
        faults.no_tmpfile = named;
        faults.fsync_errno = EIO;
        assert_int_equal(put(path, "after", SHERD__FILE_PUBLIC, &d), SHERD_EIO);
        assert_non_null(strstr(d.message, path));
        faults.fsync_errno = 0;
        faults.rename_errno = EACCES;
        assert_int_equal(put(path, "after", SHERD__FILE_PUBLIC, NULL), SHERD_EOPEN);
        faults.rename_errno = 0;
        assert_holds(path, "before");
        assert_int_equal(scratch_entries(), 1);
    }
}

static int write_past_limit(void)
{
    static const char block[1 << 16];
    struct rlimit lim = { 100000, 100000 };
    sherd__file *f;
    sherd_diag d = { 0 };
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &lim)) return 1;
    if (sherd__file_begin(&f, scratch_path("old"), SHERD__FILE_PUBLIC, &d)) return 2;
    if (sherd__file_reserve(f, 1 << 20, &d) != SHERD_EIO) return 3;
    if (!strstr(d.hint, "ulimit -f")) return 4;
    int err = 0;
    for (int i = 0; i < 4 && !err; i++) err = sherd__file_write(f, block, sizeof block, NULL);
    sherd__file_abort(f);
    return err == SHERD_EIO ? 0 : 5;
}

static void a_size_limit_leaves_the_earlier_file(void **s)
{
    (void)s;
    const char *path = scratch_write("old", "before", 6);
    pid_t child = fork();
    if (child == 0) _exit(write_past_limit());
    int status = 0;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_holds(path, "before");
    assert_int_equal(scratch_entries(), 1);
}

/* In a mount namespace of its own, on a tmpfs of 64 KB. 77: the user is not permitted to do so. */
static int write_full_disk(void)
{
    static const char block[1 << 16];
    char full[64];
    snprintf(full, sizeof full, "%s/disk", scratch_dir());
    if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, "")) return 77;
    if (mount("tmpfs", full, "tmpfs", 0, "size=64k")) return 77;
    const char *path = scratch_write("disk/old", "before", 6);
    for (int i = 0; i < 2; i++) {
        sherd_diag d = { 0 };
        sherd__file *f;
        if (sherd__file_begin(&f, path, SHERD__FILE_PUBLIC, &d)) return 2;
        int err = i ? sherd__file_reserve(f, 1 << 20, &d) : 0;
        for (int k = 0; k < 4 && !err; k++) err = sherd__file_write(f, block, sizeof block, &d);
        sherd__file_abort(f);
        if (err != SHERD_EIO || !strstr(d.hint, "free some room")) return 3;
    }
    size_t len;
    uint8_t *got = scratch_read(path, &len);
    bool same = got && !strcmp((char *)got, "before");
    free(got);
    return same ? 0 : 4;
}

static void a_full_disk_leaves_the_earlier_file(void **s)
{
    (void)s;
    assert_int_equal(mkdir(scratch_path("disk"), 0755), 0);
    pid_t child = fork();
    if (child == 0) _exit(write_full_disk());
    int status = 0;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_device_is_written_through_and_stays_a_device(void **s)
{
    (void)s;
    struct stat st;
    sherd_diag d = { 0 };
    assert_int_equal(put("/dev/null", "x", SHERD__FILE_PRIVATE, NULL), 0);
    assert_int_equal(put("/dev/full", "x", SHERD__FILE_PUBLIC, &d), SHERD_EIO);
    assert_non_null(strstr(d.message, "No space left"));
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    sherd__file *f;
    assert_int_equal(sherd__file_begin(&f, "/dev/null", SHERD__FILE_PUBLIC, NULL), 0);
    assert_int_equal(sherd__file_fd(f), -1);
    assert_int_equal(sherd__file_write_at(f, 0, "x", 1, NULL), SHERD_EUNSUPPORTED);
    sherd__file_abort(f);
}

static void a_pipe_receives_the_bytes_in_order(void **s)
{
    (void)s;
    int ends[2];
    char path[64], got[8] = { 0 };
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    assert_int_equal(put(path, "abc", SHERD__FILE_PUBLIC, NULL), 0);
    assert_int_equal(read(ends[0], got, sizeof got), 3);
    assert_string_equal(got, "abc");
    close(ends[0]);
    close(ends[1]);
}

static void the_longest_name_works(void **s)
{
    (void)s;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    for (int i = 0; i < 4; i++) {
        faults.no_tmpfile = i & 1;
        assert_int_equal(put(scratch_path(name), "x", SHERD__FILE_PUBLIC, NULL), 0);
    }
    assert_int_equal(scratch_entries(), 1);
}

static void an_extended_file_reads_as_zeros(void **s)
{
    (void)s;
    sherd__file *f;
    size_t len;
    assert_int_equal(sherd__file_begin(&f, scratch_path("f"), SHERD__FILE_PUBLIC, NULL), 0);
    assert_int_equal(sherd__file_write_at(f, 2, "x", 1, NULL), 0);
    assert_int_equal(sherd__file_stretch(f, 5, NULL), 0);
    assert_int_equal(sherd__file_stretch(f, 1, NULL), 0);
    assert_int_equal(sherd__file_commit(f, NULL), 0);
    uint8_t *got = scratch_read(scratch_path("f"), &len);
    assert_int_equal(len, 5);
    assert_memory_equal(got, "\0\0x\0\0", 5);
    free(got);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    const char *path = scratch_write("old", "before", 6);
    for (size_t n = 1;; n++) {
        sherd__alloc_fail_nth(n);
        int err = put(path, "after", SHERD__FILE_PUBLIC, NULL);
        if (sherd__alloc_fail_nth(0) < n) {
            assert_int_equal(err, 0);
            break;
        }
        assert_int_equal(err, SHERD_ENOMEM);
        assert_holds(path, "before");
        assert_int_equal(scratch_entries(), 1);
    }
}

#define T(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_file_appears_whole_and_only_at_commit),
        T(an_earlier_file_is_replaced_in_one_step),
        T(an_aborted_file_leaves_no_file_and_changes_none),
        T(permissions_follow_the_kind),
        T(a_killed_writer_leaves_no_file),
        T(the_file_of_a_dead_writer_is_removed_by_the_next),
        T(the_file_of_a_live_writer_is_kept),
        T(foreign_files_under_hidden_names_are_kept),
        T(a_symbolic_link_is_followed),
        T(a_derived_name_follows_no_link_and_replaces_files_only),
        T(a_target_is_checked_without_being_opened_for_good),
        T(a_derived_file_stays_as_private_as_it_was),
        T(a_file_whose_folder_cannot_be_synced_is_published),
        T(a_file_that_another_process_creates_meanwhile_is_replaced),
        T(a_path_that_cannot_be_written_is_named),
        T(a_file_and_a_folder_without_write_permission_are_refused),
        T(writes_continue_after_signals_and_short_counts),
        T(a_failed_sync_or_rename_leaves_the_earlier_file),
        T(a_size_limit_leaves_the_earlier_file),
        T(a_full_disk_leaves_the_earlier_file),
        T(a_device_is_written_through_and_stays_a_device),
        T(a_pipe_receives_the_bytes_in_order),
        T(the_longest_name_works),
        T(an_extended_file_reads_as_zeros),
        T(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("store/file", tests, scratch_setup, scratch_teardown);
}
