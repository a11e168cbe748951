/*
 * Mask files: what is written is read back, any changed byte is found, and no row is given out
 * twice, whatever happens to the file, its copies, its counter or the process.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "matrix/residue.h"
#include "store/maskfile.h"
#include "tests/unit/store/scratch.h"

#define ROWS 7u
#define COLS 3u

static char path[256], copy[256], state[256];
static uint8_t root[32], key[32];

static sherd__maskfile_head head_of(void)
{
    sherd__maskfile_head h = { .k = 5, .m = COLS, .rows = ROWS, .bits_a = 17, .bits_b = 9,
                               .primes_len = 2, .primes = { 5931641, 5931637 } };
    memset(h.id, 0xab, sizeof h.id);
    memset(h.b.sha256, 0xcd, sizeof h.b.sha256);
    return h;
}

static uint8_t byte_of(uint64_t row, size_t i)
{
    return (uint8_t)(row * 31 + i * 7 + 1);
}

static void make_file(void)
{
    sherd__maskfile_head h = head_of();
    sherd__maskfile_writer *w;
    sherd_diag d = { .code = 0 };
    uint8_t row[64];
    memset(root, 0x5a, sizeof root);
    if (sherd__maskfile_begin(&w, path, state, &h, root, key, &d)) fail_msg("%s", d.message);
    size_t len = sherd__maskfile_row_bytes(&h);
    for (uint64_t r = 0; r < ROWS; r++) {
        for (size_t i = 0; i < len; i++) row[i] = byte_of(r, i);
        assert_int_equal(sherd__maskfile_row(w, row, NULL), 0);
    }
    assert_int_equal(sherd__maskfile_row(w, row, NULL), SHERD_EINVAL);
    if (sherd__maskfile_commit(w, &d)) fail_msg("%s", d.message);
}

static int fresh(void **s)
{
    (void)s;
    scratch_clear();
    snprintf(path, sizeof path, "%s/B.masks", scratch_dir());
    snprintf(copy, sizeof copy, "%s/copy.masks", scratch_dir());
    snprintf(state, sizeof state, "%s/state/of/ours", scratch_dir());
    make_file();
    return 0;
}

static char *counter_file(void)
{
    static char name[300];
    snprintf(name, sizeof name, "%s/abababababababababababababababab", state);
    return name;
}

static uint8_t *slurp(const char *name, size_t *len)
{
    uint8_t *bytes = scratch_read(name, len);
    assert_non_null(bytes);
    return bytes;
}

/* In place: what is cut to nothing first is flushed by some file systems, which takes its time. */
static void put(const char *name, const uint8_t *bytes, size_t len)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, 0), len);
    assert_int_equal(ftruncate(fd, (off_t)len), 0);
    assert_int_equal(close(fd), 0);
}

/* Opens and takes n rows; the error, or where they begin. */
static int take(const char *name, uint64_t n, uint64_t *first, sherd_diag *d)
{
    sherd__maskfile *f;
    uint8_t got[32];
    int err = sherd__maskfile_open(&f, name, state, true, d);
    if (err) return err;
    err = sherd__maskfile_strike(f, n, first, got, d);
    if (!err) assert_memory_equal(got, key, sizeof key);
    sherd__maskfile_close(f);
    return err;
}

static void must_refuse(const char *name, int code, const char *says)
{
    sherd_diag d = { .code = 0 };
    uint64_t first;
    int err = take(name, 1, &first, &d);
    if (err != code || !strstr(d.message, says) || !d.hint[0])
        fail_msg("%s (%s), expected %s: ...%s...", sherd_err_name(err), d.message,
                 sherd_err_name(code), says);
}

static void what_is_written_is_read_back(void **s)
{
    (void)s;
    sherd__maskfile *f;
    sherd_diag d = { .code = 0 };
    struct stat st;
    sherd__maskfile_head h = head_of();
    uint8_t part[64];
    uint64_t first;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, sherd__maskfile_bytes(&h));
    assert_int_equal(stat(state, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    if (sherd__maskfile_open(&f, path, state, true, &d)) fail_msg("%s", d.message);
    assert_memory_equal(sherd__maskfile_head_of(f), &h, sizeof h);
    assert_int_equal(sherd__maskfile_left(f), ROWS);
    assert_int_equal(sherd__maskfile_strike(f, 2, &first, part, &d), 0);
    assert_int_equal(first, 0);
    assert_memory_equal(part, key, 32);
    assert_memory_not_equal(part, root, 32);
    for (uint64_t r = ROWS; r-- > 0;)
        for (size_t at = 0; at <= sherd__maskfile_row_bytes(&h); at++) {
            size_t n = sherd__maskfile_row_bytes(&h) - at;
            assert_int_equal(sherd__maskfile_read(f, r, at, n, part, &d), 0);
            for (size_t i = 0; i < n; i++) assert_int_equal(part[i], byte_of(r, at + i));
        }
    assert_int_equal(sherd__maskfile_read(f, ROWS, 0, 1, part, &d), SHERD_EINVAL);
    assert_int_equal(sherd__maskfile_read(f, 0, 1, sherd__maskfile_row_bytes(&h), part, &d),
                     SHERD_EINVAL);
    sherd__maskfile_close(f);
    sherd__maskfile_close(NULL);
}

static void rows_are_given_out_once(void **s)
{
    (void)s;
    uint64_t first, next = 0;
    static const uint64_t takes[] = { 1, 3, 0, 2, 1 };
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++) {
        assert_int_equal(take(path, takes[i], &first, NULL), 0);
        assert_int_equal(first, next);
        next += takes[i];
    }
    must_refuse(path, SHERD_EEXPOSURE, "0 rows of masks are left, and the product needs 1");
}

static void too_many_rows_use_up_none(void **s)
{
    (void)s;
    sherd_diag d = { .code = 0 };
    uint64_t first = 99;
    assert_int_equal(take(path, 5, &first, NULL), 0);
    assert_int_equal(take(path, 3, &first, &d), SHERD_EEXPOSURE);
    assert_non_null(strstr(d.message, "2 rows of masks are left, and the product needs 3"));
    assert_int_equal(take(path, UINT64_MAX, &first, NULL), SHERD_EEXPOSURE);
    assert_int_equal(take(path, 2, &first, NULL), 0);
    assert_int_equal(first, 5);
}

static void a_look_takes_nothing_and_needs_no_lock(void **s)
{
    (void)s;
    sherd__maskfile *user, *f;
    uint64_t first;
    uint8_t got[32] = { 0 };
    assert_int_equal(sherd__maskfile_open(&user, path, state, true, NULL), 0);
    assert_int_equal(sherd__maskfile_open(&f, path, state, false, NULL), 0);
    assert_int_equal(sherd__maskfile_left(f), ROWS);
    assert_int_equal(sherd__maskfile_strike(f, 1, &first, got, NULL), SHERD_EINTERNAL);
    assert_int_equal(got[0], 0);
    sherd__maskfile_close(f);
    sherd__maskfile_close(user);
}

/* Refused, and nothing is struck off. */
static void flipped(uint8_t *bytes, size_t len, size_t byte, unsigned bit)
{
    sherd_diag d = { .code = 0 };
    uint64_t first = 99;
    bytes[byte] ^= (uint8_t)(1 << bit);
    put(path, bytes, len);
    int err = take(path, ROWS, &first, &d);
    bool version = byte >= 8 && byte < 12;
    if (err != (version ? SHERD_EVERSION : SHERD_EFORMAT) || first != 99 || !d.message[0])
        fail_msg("byte %zu, bit %u: %s %s", byte, bit, sherd_err_name(err), d.message);
    bytes[byte] ^= (uint8_t)(1 << bit);
}

static void any_byte_that_was_changed_is_found(void **s)
{
    (void)s;
    size_t len;
    uint64_t first;
    uint8_t *bytes = slurp(path, &len);
    for (size_t i = 0; i < len; i++) flipped(bytes, len, i, i * 5 % 8);
    for (unsigned i = 0; i < 16 * 8; i++) flipped(bytes, len, i / 8, i % 8);
    put(path, bytes, len);
    assert_int_equal(take(path, ROWS, &first, NULL), 0);
    assert_int_equal(first, 0);
    free(bytes);
}

static void damage_in_rows_that_are_not_used_is_met_when_they_are(void **s)
{
    (void)s;
    size_t len;
    uint64_t first;
    uint8_t *bytes = slurp(path, &len);
    bytes[len - 1] ^= 1;
    put(path, bytes, len);
    assert_int_equal(take(path, ROWS - 1, &first, NULL), 0);
    must_refuse(path, SHERD_EFORMAT, "row 6 does not fit its tag");
    free(bytes);
}

static void any_other_length_is_found(void **s)
{
    (void)s;
    size_t len;
    uint8_t *bytes = slurp(path, &len);
    uint64_t first;
    for (size_t n = 0; n < len; n++) {
        sherd_diag d = { .code = 0 };
        put(path, bytes, n);
        if (take(path, 1, &first, &d) != SHERD_EFORMAT) fail_msg("%zu bytes: %s", n, d.message);
    }
    bytes = realloc(bytes, len + 1);
    bytes[len] = 0;
    put(path, bytes, len + 1);
    must_refuse(path, SHERD_EFORMAT, "cut or added to");
    free(bytes);
}

/* A row in the place of another fits no tag, nor does a mark in the place of the counter. */
static void parts_cannot_be_exchanged(void **s)
{
    (void)s;
    size_t len, size;
    uint64_t first;
    uint8_t *bytes = slurp(path, &len), spare[64];
    sherd__maskfile_head h = head_of();
    size_t stride = sherd__maskfile_row_bytes(&h) + SHERD__MASKFILE_TAG;
    memcpy(spare, bytes + SHERD__MASKFILE_HEAD, stride);
    memcpy(bytes + SHERD__MASKFILE_HEAD, bytes + SHERD__MASKFILE_HEAD + stride, stride);
    memcpy(bytes + SHERD__MASKFILE_HEAD + stride, spare, stride);
    put(path, bytes, len);
    must_refuse(path, SHERD_EFORMAT, "row 0");
    free(bytes);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(counter_file()), 0);
    make_file();
    assert_int_equal(take(path, 2, &first, NULL), 0);
    uint8_t *count = slurp(counter_file(), &size);
    assert_int_equal(size, 64);
    bytes = slurp(path, &len);
    memcpy(bytes + SHERD__MASKFILE_HEAD - 64, count, 64);
    put(path, bytes, len);
    must_refuse(path, SHERD_EFORMAT, "the mark of used rows");
    free(bytes);
    free(count);
}

static void an_older_copy_is_refused(void **s)
{
    (void)s;
    size_t len;
    uint64_t first;
    uint8_t *old = slurp(path, &len);
    assert_int_equal(take(path, 2, &first, NULL), 0);
    put(copy, old, len); /* kept aside, or put back from a backup */
    must_refuse(copy, SHERD_EEXPOSURE, "an older copy: it says that 0 rows were used, and 2 were");
    put(path, old, len);
    must_refuse(path, SHERD_EEXPOSURE, "an older copy");
    free(old);
}

static void the_newest_copy_goes_on(void **s)
{
    (void)s;
    size_t len;
    uint64_t first;
    assert_int_equal(take(path, 2, &first, NULL), 0);
    uint8_t *bytes = slurp(path, &len);
    put(copy, bytes, len);
    assert_int_equal(take(copy, 1, &first, NULL), 0);
    assert_int_equal(first, 2);
    must_refuse(path, SHERD_EEXPOSURE, "an older copy");
    free(bytes);
}

static void a_copy_of_a_file_in_use_is_refused(void **s)
{
    (void)s;
    size_t len;
    sherd__maskfile *f;
    uint8_t *bytes = slurp(path, &len);
    put(copy, bytes, len);
    assert_int_equal(sherd__maskfile_open(&f, path, state, true, NULL), 0);
    must_refuse(path, SHERD_EBUSY, "another run is using these masks");
    must_refuse(copy, SHERD_EBUSY, "or a copy of them");
    sherd__maskfile_close(f);
    uint64_t first;
    assert_int_equal(take(copy, 1, &first, NULL), 0);
    free(bytes);
}

static void a_file_without_its_counter_is_refused(void **s)
{
    (void)s;
    size_t len;
    uint8_t *bytes = slurp(counter_file(), &len);
    assert_int_equal(unlink(counter_file()), 0);
    must_refuse(path, SHERD_EEXPOSURE, "is not there: nobody can say which rows were used");
    for (size_t i = 0; i < len * 8; i += 7) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        put(counter_file(), bytes, len);
        must_refuse(path, SHERD_EFORMAT, "damaged or edited");
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t n = 0; n < len; n++) {
        put(counter_file(), bytes, n);
        must_refuse(path, SHERD_EFORMAT, "damaged or edited");
    }
    free(bytes);
}

/* Killed between the two marks: the file is ahead of its counter, and counts. */
static void a_mark_ahead_of_the_counter_counts(void **s)
{
    (void)s;
    size_t len;
    uint64_t first;
    uint8_t *old = slurp(counter_file(), &len);
    assert_int_equal(take(path, 3, &first, NULL), 0);
    put(counter_file(), old, len);
    assert_int_equal(take(path, 1, &first, NULL), 0);
    assert_int_equal(first, 3);
    free(old);
}

static void what_others_may_read_or_change_is_refused(void **s)
{
    (void)s;
    static const mode_t modes[] = { 0640, 0604, 0620, 0602, 0610, 0601, 0644, 0666 };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        must_refuse(path, SHERD_EKEY, "lets others read the masks, expected 0600");
    }
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chmod(state, 0770), 0);
    must_refuse(path, SHERD_EOPEN, "others may write here");
    assert_int_equal(chmod(state, 0700), 0);
    uint64_t first;
    assert_int_equal(take(path, 1, &first, NULL), 0);
}

static void what_is_no_mask_file_is_refused(void **s)
{
    (void)s;
    char folder[300];
    snprintf(folder, sizeof folder, "%s/folder", scratch_dir());
    must_refuse("/nonexistent/masks", SHERD_EOPEN, "cannot open");
    assert_int_equal(mkdir(folder, 0700), 0);
    must_refuse(folder, SHERD_EOPEN, "cannot open");
    put(copy, (const uint8_t *)"no masks", 8);
    must_refuse(copy, SHERD_EFORMAT, "is no file of masks");
    put(copy, (const uint8_t *)"", 0);
    must_refuse(copy, SHERD_EFORMAT, "is no file of masks");
}

static void no_message_holds_a_secret(void **s)
{
    (void)s;
    size_t len;
    uint8_t *bytes = slurp(path, &len);
    char hex[65];
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", root[i]);
    for (size_t i = 0; i < len; i++) {
        sherd_diag d = { .code = 0 };
        uint64_t first;
        bytes[i] ^= 0x10;
        put(path, bytes, len);
        (void)!take(path, ROWS, &first, &d);
        assert_null(strstr(d.message, "5a5a"));
        assert_null(strstr(d.message, hex));
        assert_null(memmem(d.message, sizeof d.message, root, 8));
        bytes[i] ^= 0x10;
    }
    free(bytes);
}

/* The disk refuses to take the mark: no key comes out, and what may have been struck off counts
 * so. */
static void a_mark_that_cannot_be_written_gives_no_key(void **s)
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
        if (sherd__maskfile_open(&f, path, state, true, &d)) _exit(1);
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

static void a_head_out_of_range_is_not_made(void **s)
{
    (void)s;
    sherd__maskfile_head bad[10];
    for (size_t i = 0; i < 10; i++) bad[i] = head_of();
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
        assert_int_equal(sherd__maskfile_begin(&w, copy, state, &bad[i], root, key, &d),
                         SHERD_EINVAL);
        assert_null(w);
    }
    sherd__maskfile_head h = head_of();
    h.m = h.k = h.rows = 0;
    assert_int_equal(sherd__maskfile_bytes(&h), SHERD__MASKFILE_HEAD);
}

static void a_file_is_whole_or_not_there(void **s)
{
    (void)s;
    sherd__maskfile_head h = head_of();
    sherd__maskfile_writer *w;
    uint8_t row[64] = { 0 };
    h.id[0] = 1;
    assert_int_equal(sherd__maskfile_begin(&w, copy, state, &h, root, key, NULL), 0);
    assert_int_equal(sherd__maskfile_row(w, row, NULL), 0);
    assert_int_equal(sherd__maskfile_commit(w, NULL), SHERD_EINVAL);
    assert_int_equal(access(copy, F_OK), -1);
    assert_int_equal(sherd__maskfile_begin(&w, copy, state, &h, root, key, NULL), 0);
    sherd__maskfile_abort(w);
    assert_int_equal(access(copy, F_OK), -1);
    /* An id that is there already: a counter is never set back. */
    h = head_of();
    h.rows = 0;
    assert_int_equal(sherd__maskfile_begin(&w, copy, state, &h, root, key, NULL), 0);
    assert_int_equal(sherd__maskfile_commit(w, NULL), SHERD_EOPEN);
    assert_int_equal(access(copy, F_OK), -1);
}

static void the_counter_lies_in_the_users_state_folder(void **s)
{
    (void)s;
    char xdg[300], expected[400];
    sherd__maskfile_head h = head_of();
    sherd__maskfile_writer *w;
    h.rows = 0;
    snprintf(xdg, sizeof xdg, "%s/xdg", scratch_dir());
    char *home = getenv("HOME"), *kept = home ? strdup(home) : NULL;
    setenv("XDG_STATE_HOME", xdg, 1);
    assert_int_equal(sherd__maskfile_begin(&w, copy, NULL, &h, root, key, NULL), 0);
    assert_int_equal(sherd__maskfile_commit(w, NULL), 0);
    snprintf(expected, sizeof expected, "%s/sherd/masks/abababababababababababababababab", xdg);
    assert_int_equal(access(expected, F_OK), 0);
    setenv("XDG_STATE_HOME", "relative", 1); /* does not count */
    setenv("HOME", xdg, 1);
    assert_int_equal(sherd__maskfile_begin(&w, copy, NULL, &h, root, key, NULL), 0);
    assert_int_equal(sherd__maskfile_commit(w, NULL), 0);
    snprintf(expected, sizeof expected,
             "%s/.local/state/sherd/masks/abababababababababababababababab", xdg);
    assert_int_equal(access(expected, F_OK), 0);
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    assert_int_equal(sherd__maskfile_begin(&w, copy, NULL, &h, root, key, NULL), SHERD_EOPEN);
    if (kept) setenv("HOME", kept, 1);
    free(kept);
}

static void a_failed_allocation_gives_nothing_out(void **s)
{
    (void)s;
    for (size_t n = 1;; n++) {
        sherd_diag d = { .code = 0 };
        uint64_t first = 99;
        sherd__alloc_fail_nth(n);
        int err = take(path, 1, &first, &d);
        sherd__alloc_fail_nth(0);
        if (!err) break;
        assert_int_equal(err, SHERD_ENOMEM);
        assert_int_equal(first, 99);
        assert_true(n < 20);
    }
}

/* Rows that are larger than what is read at a time, so that each is read again. */
static void a_row_that_changed_since_it_was_checked_is_not_given_out(void **s)
{
    (void)s;
    enum { WIDE = 50000 };
    sherd__maskfile_head h = head_of();
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
    assert_int_equal(sherd__maskfile_begin(&w, copy, state, &h, root, key, &d), 0);
    for (uint64_t r = 0; r < h.rows; r++) assert_int_equal(sherd__maskfile_row(w, row, &d), 0);
    assert_int_equal(sherd__maskfile_commit(w, &d), 0);
    assert_int_equal(sherd__maskfile_open(&f, copy, state, true, &d), 0);
    assert_int_equal(sherd__maskfile_check(f, 4, &d), SHERD_EEXPOSURE);
    assert_int_equal(sherd__maskfile_check(f, 3, &d), 0);
    assert_int_equal(sherd__maskfile_left(f), 3); /* only looked at */
    assert_int_equal(sherd__maskfile_strike(f, 3, &first, got, &d), 0);
    assert_int_equal(sherd__maskfile_read(f, 1, 5, 1, &byte, &d), 0);
    int fd = open(copy, O_WRONLY);
    off_t at = (off_t)(SHERD__MASKFILE_HEAD + len + SHERD__MASKFILE_TAG + len - 1);
    assert_int_equal(pwrite(fd, "x", 1, at), 1); /* the last byte of row 1 */
    assert_int_equal(sherd__maskfile_read(f, 1, len - 1, 1, &byte, &d), 0); /* is held */
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
#define CASE(name) cmocka_unit_test_setup(name, fresh)
    const struct CMUnitTest tests[] = {
        CASE(what_is_written_is_read_back),
        CASE(rows_are_given_out_once),
        CASE(too_many_rows_use_up_none),
        CASE(a_look_takes_nothing_and_needs_no_lock),
        CASE(any_byte_that_was_changed_is_found),
        CASE(damage_in_rows_that_are_not_used_is_met_when_they_are),
        CASE(any_other_length_is_found),
        CASE(parts_cannot_be_exchanged),
        CASE(an_older_copy_is_refused),
        CASE(the_newest_copy_goes_on),
        CASE(a_copy_of_a_file_in_use_is_refused),
        CASE(a_file_without_its_counter_is_refused),
        CASE(a_mark_ahead_of_the_counter_counts),
        CASE(what_others_may_read_or_change_is_refused),
        CASE(what_is_no_mask_file_is_refused),
        CASE(no_message_holds_a_secret),
        CASE(a_mark_that_cannot_be_written_gives_no_key),
        CASE(a_head_out_of_range_is_not_made),
        CASE(a_file_is_whole_or_not_there),
        CASE(the_counter_lies_in_the_users_state_folder),
        CASE(a_failed_allocation_gives_nothing_out),
        CASE(a_row_that_changed_since_it_was_checked_is_not_given_out),
    };
    return cmocka_run_group_tests_name("store/maskfile", tests, scratch_setup, scratch_teardown);
}
