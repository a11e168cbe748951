/* The network whose metadata the tests make, and its files; see meta_world.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/scheduler/meta_world.h"

char meta_seeded[96], meta_tables[96], meta_other[96];
const uint8_t meta_seed[32] = { 3, 1, 4, 1, 5, 9, 2, 6 };
const sherd_meta_settings meta_seven = { .size = sizeof meta_seven, .nodes = 7, .group = 1 };

static char dir[64];

int meta_begin(void **s)
{
    (void)s;
    /* In memory if possible: the test should not wait for the disk. */
    snprintf(dir, sizeof dir, "%s/sherd-meta-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    assert_non_null(mkdtemp(dir));
    snprintf(meta_seeded, sizeof meta_seeded, "%s/seed.npz", dir);
    snprintf(meta_tables, sizeof meta_tables, "%s/arrays.npz", dir);
    snprintf(meta_other, sizeof meta_other, "%s/other.npz", dir);
    return 0;
}

int meta_end(void **s)
{
    (void)s;
    unlink(meta_seeded);
    unlink(meta_tables);
    unlink(meta_other);
    return rmdir(dir);
}

sherd_meta *meta_network(const sherd_meta_settings *s, uint64_t samples)
{
    static const uint64_t widths[] = { 30, 12, 5 };
    sherd_diag d = { .code = 0 };
    sherd_meta *m;
    assert_int_equal(sherd_meta_new(&m, s, meta_seed, &d), 0);
    assert_int_equal(sherd_meta_add_network(m, widths, 3, samples, &d), 0);
    return m;
}

void meta_save(sherd_meta *m, const char *path, sherd_meta_save_options opt)
{
    sherd_diag d = { .code = 0 };
    struct stat st;
    uint64_t size = 0;
    if (sherd_meta_save(m, path, &opt, &size, &d)) fail_msg("%s", d.message);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, size);
    assert_int_equal(st.st_mode & 0777, 0600);
}

sherd_meta *meta_load(const char *path)
{
    sherd_diag d = { .code = 0 };
    sherd_meta *m = NULL;
    if (sherd_meta_load(&m, path, &d)) fail_msg("%s", d.message);
    return m;
}

void meta_compare(sherd_meta *a, sherd_meta *b)
{
    sherd_diag d = { .code = 0 };
    static uint32_t x[4096], y[4096];
    assert_int_equal(sherd_meta_count(a), sherd_meta_count(b));
    for (size_t i = 0; i < sherd_meta_count(a); i++) {
        const sherd_meta_operation *op = sherd_meta_at(a, i);
        size_t len = sherd_meta_columns(op);
        assert_memory_equal(op->name, sherd_meta_at(b, i)->name, sizeof op->name);
        assert_int_equal(sherd_meta_exposures(a, i, x, &d), 0);
        assert_int_equal(sherd_meta_exposures(b, i, y, &d), 0);
        assert_memory_equal(x, y, len * 4);
        for (int t = SHERD_META_ENSHUFFLES; t <= SHERD_META_UNROWS; t++) {
            bool rows = t >= SHERD_META_ROWS;
            uint64_t length = rows ? op->n : op->m, last = sherd_meta_table_rows(op);
            if (rows && (op->kind != SHERD_OP_PRODUCT || !sherd_meta_get(a)->shuffle_rows)) {
                assert_int_equal(sherd_meta_rows(a, i, t, 0, 0, 0, x, NULL), SHERD_EINVAL);
                continue;
            }
            for (uint64_t r = 0; r + 3 <= last; r += 3) {
                assert_int_equal(sherd_meta_rows(a, i, t, 0, r, 3, x, &d), 0);
                assert_int_equal(sherd_meta_rows(b, i, t, 0, r, 3, y, &d), 0);
                assert_memory_equal(x, y, 3 * length * 4);
            }
            assert_int_equal(sherd_meta_rows(b, i, t, 0, last, 1, y, NULL), SHERD_EINVAL);
            assert_int_equal(sherd_meta_rows(a, i, t, 0, last + 1, 0, y, NULL), SHERD_EINVAL);
        }
    }
}
