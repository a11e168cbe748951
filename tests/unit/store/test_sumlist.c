/*
 * The list of sums that were to be opened: a process that opens it again finds what was added; a
 * truncated line is ignored; damage is named; a sum that could not be written counts as not added.
 *
 * link: -Wl,--wrap=fsync
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "store/sumlist.h"
#include "tests/support/draw.h"

static bool fail_sync;
static unsigned syncs;

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
    syncs++;
    if (!fail_sync) return __real_fsync(fd);
    errno = EIO;
    return -1;
}

static sherd__digest key(uint32_t i)
{
    sherd__digest d;
    memset(d.sha256, (int)(i * 37), sizeof d.sha256);
    d.sha256[31] = (uint8_t)i;
    return d;
}

/* Nodes of a step: from 3 to 12 of 40, and the same for some steps. */
static size_t draw_set(uint32_t *who, uint32_t step)
{
    size_t len = 3 + (step / 7) % 10;
    for (size_t i = 0; i < len; i++) who[i] = (uint32_t)((step / 7 * 5 + 3 * i) % 40);
    return len;
}

static const sherd__digest *of(const sherd__sumlist *s, uint64_t step, size_t *len)
{
    const sherd__sumlist_step was = sherd__sumlist_find(s, step);
    *len = was.len;
    assert_true(was.opened || !was.who);
    return was.who;
}

static void is_there(const sherd__sumlist *s, uint32_t step)
{
    uint32_t who[12];
    size_t len = draw_set(who, step), had;
    const sherd__digest *keys = of(s, step, &had);
    assert_int_equal(had, len);
    for (size_t i = 0; i < len; i++) {
        const sherd__digest wanted = key(who[i]);
        size_t at = 0;
        while (at < had && memcmp(&keys[at], &wanted, sizeof wanted)) at++;
        assert_true(at < had);
    }
}

static int add(sherd__sumlist *s, uint32_t step)
{
    uint32_t who[12];
    sherd__digest keys[12];
    size_t len = draw_set(who, step);
    for (size_t i = 0; i < len; i++) keys[i] = key(who[i]);
    return sherd__sumlist_add(s, step, keys, len, NULL);
}

static void sums_that_were_added_are_found_after_reopening(void **state)
{
    (void)state;
    sherd__sumlist *s;
    size_t had;
    assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), true, NULL), 0);
    assert_null(of(s, 0, &had));
    assert_int_equal(had, 0);
    for (uint32_t step = 0; step < 100; step++) {
        unsigned before = syncs;
        assert_int_equal(add(s, 2 * step), 0);
        assert_int_equal(syncs, before + 1); /* it is on disk before any node is asked */
        if (step % 9 == 0) {                 /* the process was killed */
            sherd__sumlist_close(s);
            assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), false, NULL), 0);
        }
        for (uint32_t k = 0; k <= step; k++) is_there(s, 2 * k);
        assert_null(of(s, 2 * step + 1, &had));
    }
    struct stat st;
    assert_int_equal(stat(scratch_path("sums"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    sherd__sumlist_close(s);
    assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), true, NULL), 0);
    assert_null(of(s, 4, &had));
    sherd__sumlist_close(s);
}

static void a_list_that_is_open_is_not_replaced(void **state)
{
    (void)state;
    sherd__sumlist *s, *other;
    assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), true, NULL), 0);
    assert_int_equal(sherd__sumlist_open(&other, scratch_dir(), true, NULL), SHERD_EBUSY);
    assert_int_equal(add(s, 0), 0);
    sherd__sumlist_close(s);
    assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), false, NULL), 0);
    is_there(s, 0);
    sherd__sumlist_close(s);
}

static void a_step_has_one_set_of_nodes(void **state)
{
    (void)state;
    sherd__sumlist *s;
    size_t len;
    sherd__digest keys[4] = { key(9), key(2), key(5), key(7) };
    assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), true, NULL), 0);
    assert_int_equal(sherd__sumlist_add(s, 5, keys, 3, NULL), 0);
    sherd__digest turned[4] = { keys[1], keys[2], keys[0], keys[3] };
    assert_int_equal(sherd__sumlist_add(s, 5, turned, 3, NULL), 0);
    assert_int_equal(sherd__sumlist_add(s, 5, turned, 2, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__sumlist_add(s, 5, turned, 4, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__sumlist_add(s, 5, turned + 1, 3, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__sumlist_add(s, 4, keys, 3, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__sumlist_add(s, 6, keys, 0, NULL), SHERD_EINVAL);
    assert_non_null(of(s, 5, &len));
    assert_int_equal(len, 3);
    sherd__sumlist_close(s);
}

static void a_sum_that_could_not_be_synced_was_not_added(void **state)
{
    (void)state;
    sherd__sumlist *s;
    assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), true, NULL), 0);
    assert_int_equal(add(s, 1), 0);
    fail_sync = true;
    assert_int_equal(add(s, 2), SHERD_EIO);
    fail_sync = false;
    assert_int_equal(add(s, 2), SHERD_EIO);
    sherd__sumlist_close(s);
}

/* The file is truncated at every byte: all steps whose line is complete are found, and steps can be
 * added. */
static void a_truncated_line_is_ignored(void **state)
{
    (void)state;
    sherd__sumlist *s;
    size_t len, had;
    assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), true, NULL), 0);
    for (uint32_t step = 0; step < 9; step++) assert_int_equal(add(s, step), 0);
    sherd__sumlist_close(s);
    uint8_t *all = scratch_read(scratch_path("sums"), &len);
    for (size_t cut = 13; cut <= len; cut++) {
        scratch_write("sums", all, cut);
        uint32_t steps = 0;
        for (size_t i = 0; i + 5 <= cut; i++)
            steps += !memcmp(all + i, "step ", 5) && memchr(all + i, '\n', cut - i);
        assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), false, NULL), 0);
        for (uint32_t k = 0; k < steps; k++) is_there(s, k);
        assert_null(of(s, steps, &had));
        assert_int_equal(add(s, steps), 0);
        sherd__sumlist_close(s);
        assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), false, NULL), 0);
        for (uint32_t k = 0; k <= steps; k++) is_there(s, k);
        sherd__sumlist_close(s);
    }
    free(all);
}

static void damage_is_named_with_its_line(void **state)
{
    (void)state;
#define K "aa00000000000000000000000000000000000000000000000000000000000000"
    static const struct {
        const char *text, *line;
    } bad[] = {
        { "", ":1:" },
        { "sherd-sums-2\n", ":1:" },
        { "sherd-sums-1\nstep 1\n", ":2:" },
        { "sherd-sums-1\nover\n", ":2:" },
        { "sherd-sums-1\nover " K "\nstep 1\nstep 1\n", ":4:" },
        { "sherd-sums-1\nover " K "\nstep -1\n", ":3:" },
        { "sherd-sums-1\nover " K "\nstep \n", ":3:" },
        { "sherd-sums-1\nover " K "\nstep 99999999999999999999\n", ":3:" },
        { "sherd-sums-1\nover " K " " K "\n", ":2:" },
        { "sherd-sums-1\nover " K "x\n", ":2:" },
        { "sherd-sums-1\nover zz" K "\n", ":2:" },
        { "sherd-sums-1\nnothing\n", ":2:" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd__sumlist *s = NULL;
        sherd_diag d = { 0 };
        scratch_write("sums", bad[i].text, strlen(bad[i].text));
        assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), false, &d), SHERD_EFORMAT);
        assert_null(s);
        assert_non_null(strstr(d.message, bad[i].line));
    }
    sherd__sumlist *s;
    sherd_diag d = { 0 };
    unlink(scratch_path("sums"));
    assert_int_equal(sherd__sumlist_open(&s, scratch_dir(), false, &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "does not exist"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_that_were_added_are_found_after_reopening),
        cmocka_unit_test(a_list_that_is_open_is_not_replaced),
        cmocka_unit_test(a_step_has_one_set_of_nodes),
        cmocka_unit_test(a_sum_that_could_not_be_synced_was_not_added),
        cmocka_unit_test(a_truncated_line_is_ignored),
        cmocka_unit_test(damage_is_named_with_its_line),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
