/* A mask file, its counter and what tests do with them; see maskfile_world.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/store/maskfile_world.h"
#include "tests/unit/store/scratch.h"

char masks_path[256], masks_copy[256], masks_state[256];
uint8_t masks_root[32], masks_key[32];

sherd__maskfile_head masks_head(void)
{
    sherd__maskfile_head h = { .k = 5,
                               .m = COLS,
                               .rows = ROWS,
                               .bits_a = 17,
                               .bits_b = 9,
                               .primes_len = 2,
                               .primes = { 5931641, 5931637 } };
    memset(h.id, 0xab, sizeof h.id);
    memset(h.b.sha256, 0xcd, sizeof h.b.sha256);
    return h;
}

uint8_t masks_byte(uint64_t row, size_t i)
{
    return (uint8_t)(row * 31 + i * 7 + 1);
}

void masks_make(void)
{
    sherd__maskfile_head h = masks_head();
    sherd__maskfile_writer *w;
    sherd_diag d = { .code = 0 };
    uint8_t row[64];
    memset(masks_root, 0x5a, sizeof masks_root);
    if (sherd__maskfile_begin(&w, (sherd__maskfile_place){ masks_path, masks_state }, &h,
                              masks_root, masks_key, &d))
        fail_msg("%s", d.message);
    size_t len = sherd__maskfile_row_bytes(&h);
    for (uint64_t r = 0; r < ROWS; r++) {
        for (size_t i = 0; i < len; i++) row[i] = masks_byte(r, i);
        assert_int_equal(sherd__maskfile_row(w, row, NULL), 0);
    }
    assert_int_equal(sherd__maskfile_row(w, row, NULL), SHERD_EINVAL);
    if (sherd__maskfile_commit(w, &d)) fail_msg("%s", d.message);
}

int masks_fresh(void **s)
{
    (void)s;
    scratch_clear();
    snprintf(masks_path, sizeof masks_path, "%s/B.masks", scratch_dir());
    snprintf(masks_copy, sizeof masks_copy, "%s/copy.masks", scratch_dir());
    snprintf(masks_state, sizeof masks_state, "%s/state/of/ours", scratch_dir());
    masks_make();
    return 0;
}

char *masks_counter(void)
{
    static char name[300];
    snprintf(name, sizeof name, "%s/abababababababababababababababab", masks_state);
    return name;
}

uint8_t *masks_slurp(const char *name, size_t *len)
{
    uint8_t *bytes = scratch_read(name, len);
    assert_non_null(bytes);
    return bytes;
}

/* Overwrites the file in place: some file systems flush a file that was truncated first, which
 * takes time. */
void masks_put(const char *name, const uint8_t *bytes, size_t len)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, 0), len);
    assert_int_equal(ftruncate(fd, (off_t)len), 0);
    assert_int_equal(close(fd), 0);
}

int masks_take(const char *name, uint64_t n, uint64_t *first, sherd_diag *d)
{
    sherd__maskfile *f;
    uint8_t got[32];
    int err = sherd__maskfile_open(&f, name, masks_state, true, d);
    if (err) return err;
    err = sherd__maskfile_strike(f, n, first, got, d);
    if (!err) assert_memory_equal(got, masks_key, sizeof masks_key);
    sherd__maskfile_close(f);
    return err;
}

void masks_must_refuse(const char *name, int code, const char *says)
{
    sherd_diag d = { .code = 0 };
    uint64_t first;
    int err = masks_take(name, 1, &first, &d);
    if (err != code || !strstr(d.message, says) || !d.hint[0])
        fail_msg("%s (%s), expected %s: ...%s...", sherd_err_name(err), d.message,
                 sherd_err_name(code), says);
}
