#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "wire/handoff.h"

static sherd__handoff sample(void)
{
    static char key[] = "-----BEGIN PRIVATE KEY-----\nabc\n", allow[] = "* key=sha256:xyz\n";
    return (sherd__handoff){ key, allow, sizeof key - 1, sizeof allow - 1 };
}

/* Reads these bytes from a pipe, which is closed behind them or left open. */
static int read_back(const void *bytes, size_t len, int open, sherd__handoff *out)
{
    int ends[2];
    sherd_diag d = { .code = 0 };
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, len), (ssize_t)len);
    if (!open) close(ends[1]);
    int err = sherd__handoff_read(ends[0], open ? 30 : 5000, out, &d);
    if (open) close(ends[1]);
    close(ends[0]);
    assert_int_equal(err != 0, d.message[0] != '\0');
    return err;
}

static size_t written(uint8_t *out, size_t size)
{
    sherd__handoff h = sample();
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(sherd__handoff_write(ends[1], &h, NULL), SHERD_OK);
    ssize_t len = read(ends[0], out, size);
    close(ends[0]);
    close(ends[1]);
    assert_true(len > 0);
    return (size_t)len;
}

static void key_and_list_arrive_unchanged(void **s)
{
    (void)s;
    uint8_t bytes[1024];
    sherd__handoff want = sample(), got;
    size_t len = written(bytes, sizeof bytes);
    assert_int_equal(read_back(bytes, len, 1, &got), SHERD_OK);
    assert_string_equal(got.key, want.key);
    assert_string_equal(got.allow, want.allow);
    assert_int_equal(got.key_len, want.key_len);
    assert_int_equal(got.allow_len, want.allow_len);
    sherd__handoff_fini(&got);
    assert_null(got.key);
}

static void every_prefix_ends_too_early(void **s)
{
    (void)s;
    uint8_t bytes[1024];
    sherd__handoff got;
    size_t len = written(bytes, sizeof bytes);
    for (size_t n = 0; n < len; n++) assert_int_equal(read_back(bytes, n, 0, &got), SHERD_ECLOSED);
}

static void silence_is_a_timeout(void **s)
{
    (void)s;
    uint8_t bytes[1024];
    sherd__handoff got;
    size_t len = written(bytes, sizeof bytes);
    assert_int_equal(read_back(bytes, 0, 1, &got), SHERD_ETIMEOUT);
    assert_int_equal(read_back(bytes, len - 1, 1, &got), SHERD_ETIMEOUT);
}

static void a_wrong_magic_and_lengths_beyond_the_cap_are_malformed(void **s)
{
    (void)s;
    uint8_t bytes[1024];
    sherd__handoff got;
    size_t len = written(bytes, sizeof bytes);
    for (size_t bit = 0; bit < 16 * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(read_back(bytes, len, 0, &got), SHERD_EFRAME);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    bytes[19] = 0xFF; /* the highest byte of the key's length */
    assert_int_equal(read_back(bytes, len, 0, &got), SHERD_EFRAME);
}

static void a_handoff_that_does_not_fit_into_a_pipe_is_not_written(void **s)
{
    (void)s;
    sherd__handoff h = sample();
    h.allow_len = SHERD__HANDOFF_MAX;
    assert_int_equal(sherd__handoff_write(-1, &h, NULL), SHERD_EINVAL);
    h.key_len = SIZE_MAX;
    assert_int_equal(sherd__handoff_write(-1, &h, NULL), SHERD_EINVAL);
    h = sample();
    assert_int_equal(sherd__handoff_write(-1, &h, NULL), SHERD_EIO);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    uint8_t bytes[1024];
    size_t len = written(bytes, sizeof bytes);
    for (size_t nth = 1;; nth++) {
        sherd__handoff got;
        sherd__alloc_fail_nth(nth);
        int err = read_back(bytes, len, 0, &got);
        size_t seen = sherd__alloc_fail_nth(0);
        if (!err) sherd__handoff_fini(&got);
        if (seen < nth) break;
        assert_int_equal(err, SHERD_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_and_list_arrive_unchanged),
        cmocka_unit_test(every_prefix_ends_too_early),
        cmocka_unit_test(silence_is_a_timeout),
        cmocka_unit_test(a_wrong_magic_and_lengths_beyond_the_cap_are_malformed),
        cmocka_unit_test(a_handoff_that_does_not_fit_into_a_pipe_is_not_written),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("wire/handoff", tests, NULL, NULL);
}
