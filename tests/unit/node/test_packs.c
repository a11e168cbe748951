/*
 * Examples by number: for packs that arrived in any order, and were dropped, a shard consists of
 * the rows of its list, each taken from the last pack with it; rows that are not present are
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "crypto/fragment_make.h"
#include "node/allreduce/packs.h"

enum { JOB = 7, MOST = 60, COLS = 3 };

static sherd__pool *pool;
static sherd__store store;
static sherd__packs packs;
static sherd__pack_chunk *old;
static uint64_t state = 5;

static uint32_t below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

static void put(uint32_t number, uint8_t dtype, size_t rows, size_t cols, const void *from)
{
    sherd__fragment *f;
    size_t len = sherd_dtype_size((sherd_dtype)dtype) * rows * cols;
    uint8_t *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    if (len) memcpy(copy, from, len);
    sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = dtype, .rows = rows, .cols = cols, .len = len
    };
    assert_int_equal(sherd__fragment_take(&f, &i, copy, NULL, NULL), 0);
    assert_int_equal(sherd__store_put(&store, JOB, number, f), 0);
}

/* Row r is (r, r + 0.5, version); its label is r, or its value is -r. */
static void put_pack(uint32_t pack, const uint32_t *rows, size_t n, double version, bool labels)
{
    double x[MOST * COLS], values[MOST];
    for (size_t i = 0; i < n; i++) {
        x[COLS * i] = rows[i];
        x[COLS * i + 1] = rows[i] + 0.5;
        x[COLS * i + 2] = version;
        values[i] = -(double)rows[i];
    }
    put(sherd__allreduce_pack(pack), SHERD_U32, 1, n, rows);
    put(sherd__allreduce_pack(pack) + 1, SHERD_F64, n, COLS, x);
    if (labels) put(sherd__allreduce_pack(pack) + 2, SHERD_U32, n, 1, rows);
    else put(sherd__allreduce_pack(pack) + 2, SHERD_F64, n, 1, values);
}

static void drop_pack(uint32_t pack)
{
    for (uint32_t b = 0; b < 3; b++)
        assert_int_equal(sherd__store_drop(&store, JOB, sherd__allreduce_pack(pack) + b), 1);
}

static void note_left(void *ctx, const sherd__block *b)
{
    sherd__packs_drop(ctx, b);
}

static int open_packs(void **unused)
{
    (void)unused;
    assert_int_equal(sherd__pool_new(&pool, 1 << 20), 0);
    sherd__store_init(&store);
    store.left = note_left;
    store.left_ctx = &packs;
    assert_int_equal(sherd__packs_open(&packs, pool, MOST, NULL), 0);
    return 0;
}

static int close_packs(void **unused)
{
    (void)unused;
    sherd__packs_close(&packs, &old);
    sherd__packs_close(&packs, &old);
    (void)sherd__packs_reap(&old, SIZE_MAX);
    assert_null(old);
    sherd__store_fini(&store);
    assert_int_equal(sherd__pool_stats_of(pool)->used, 0);
    sherd__pool_free(pool);
    return 0;
}

static int take(uint32_t n)
{
    int err = sherd__packs_take(&packs, &store, JOB, n, UINT32_MAX, NULL);
    return err ? err : sherd__packs_note(&packs, NULL);
}

static int list_of(const sherd__rows *r)
{
    int err = sherd__packs_list(&packs, r, NULL);
    return err ? err : sherd__packs_note(&packs, NULL);
}

static bool apart;

static int find(uint64_t first, uint64_t rows)
{
    sherd__step_plan_shard s = { .first = first, .rows = rows };
    return sherd__packs_find(&packs, &s, COLS, 1, &apart, NULL);
}

static void assert_rows(uint64_t first, uint64_t rows, const uint32_t *list, const double *version,
                        bool labels)
{
    sherd__step_plan_shard what = { .first = first, .rows = rows };
    uint8_t *scratch = malloc((size_t)sherd__packs_scratch(&packs, rows, COLS, 1));
    sherd__shard s = sherd__packs_shard(&packs, &what, apart ? scratch : NULL);
    assert_int_equal(s.x.rows, rows);
    for (size_t i = 0; i < s.x.rows; i++) {
        const double *x = (const double *)s.x.data + COLS * i;
        uint32_t row = list[first + i];
        assert_true(x[0] == row && x[1] == row + 0.5 && x[2] == version[row]);
        if (labels) assert_int_equal(s.targets.labels[i], row);
        else assert_true(s.targets.values[i] == -(double)row);
    }
    free(scratch);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void any_packs_give_the_rows_of_any_list(void **unused)
{
    (void)unused;
    for (unsigned round = 0; round < 300; round++) {
        bool labels = round % 2;
        double version[MOST];
        uint32_t n = 1 + below(MOST), numbers[MOST], list[MOST];
        open_packs(NULL);
        sherd__rows all = { SHERD__ROWS_SHUFFLED, n, n, { (uint8_t)round } };
        sherd__rows_list(&all, numbers);
        uint32_t pack = 0;
        for (uint32_t at = 0, len; at < n; at += len) {
            len = 1 + below(n - at);
            put_pack(pack++, numbers + at, len, 1, labels);
            if (below(2)) assert_int_equal(take(pack), 0);
        }
        for (uint32_t i = 0; i < n; i++) version[numbers[i]] = 1;
        if (below(2)) { /* some are sent again */
            uint32_t again = 1 + below(n);
            put_pack(pack++, numbers, again, 2, labels);
            for (uint32_t i = 0; i < again; i++) version[numbers[i]] = 2;
        }
        assert_int_equal(take(pack), 0);
        sherd__rows r = { (sherd__rows_kind)below(3), n, n, { (uint8_t)below(9) } };
        sherd__rows_list(&r, list);
        assert_int_equal(list_of(&r), 0);
        assert_int_equal(list_of(&r), 0);
        uint32_t first = below(n), rows = 1 + below(n - first);
        assert_int_equal(find(first, rows), 0);
        for (uint32_t k = 0; k < pack; k++) drop_pack(k); /* the data of a step are kept */
        assert_rows(first, rows, list, version, labels);
        assert_int_equal(sherd__packs_release(&packs, SIZE_MAX), pack);
        assert_int_equal(find(first, rows), SHERD_EINVAL);
        close_packs(NULL);
    }
}

static void contiguous_rows_are_not_copied(void **unused)
{
    (void)unused;
    uint32_t rows[MOST];
    sherd__rows r = { SHERD__ROWS_GIVEN, MOST, MOST, { 0 } };
    sherd__step_plan_shard what = { .first = 10, .rows = 20 };
    sherd__rows_list(&r, rows);
    put_pack(0, rows, MOST, 1, true);
    assert_int_equal(take(1), 0);
    assert_int_equal(list_of(&r), 0);
    assert_int_equal(find(10, 20), 0);
    assert_false(apart);
    const sherd__fragment *f =
        sherd__store_find(&store, JOB, sherd__allreduce_pack(0) + 1)->fragment;
    assert_ptr_equal(sherd__packs_shard(&packs, &what, NULL).x.data,
                     sherd__fragment_bytes(f) + sizeof(double) * COLS * 10);
}

static void missing_rows_are_refused(void **unused)
{
    (void)unused;
    static const uint32_t rows[] = { 0, 1, 2, MOST };
    double x[4 * COLS] = { 0 };
    sherd__rows r = { SHERD__ROWS_GIVEN, MOST, MOST, { 0 } };
    assert_int_equal(list_of(&r), 0);
    assert_int_equal(find(0, 1), SHERD_EINVAL); /* no pack has arrived */
    put_pack(0, rows, 3, 1, true);
    assert_int_equal(take(1), 0);
    assert_int_equal(find(0, 3), 0);
    assert_int_equal(find(0, 4), SHERD_EINVAL);
    for (uint32_t k = 1; k <= 2; k++) { /* inputs of too few rows, and of another width */
        put(sherd__allreduce_pack(k), SHERD_U32, 1, 3, rows);
        put(sherd__allreduce_pack(k) + 1, SHERD_F64, k + 1, k == 1 ? COLS : COLS - 1, x);
        put(sherd__allreduce_pack(k) + 2, SHERD_U32, k + 1, 1, rows);
        assert_int_equal(take(k + 1), 0);
        assert_int_equal(find(0, 3), SHERD_ESHAPE);
    }
    put(sherd__allreduce_pack(3), SHERD_U32, 1, 1, rows); /* without targets, it is incomplete */
    put(sherd__allreduce_pack(3) + 1, SHERD_F64, 1, COLS, x);
    assert_int_equal(take(4), 0);
    assert_int_equal(find(0, 3), SHERD_ESHAPE);
    assert_int_equal(sherd__packs_list(&packs,
                                       &(sherd__rows){ SHERD__ROWS_DRAWN, MOST, 1u << 30, { 0 } },
                                       NULL),
                     SHERD_ENOMEM);
}

static void numbers_of_packs_that_no_coordinator_uses_are_refused(void **unused)
{
    (void)unused;
    uint32_t rows[MOST + 1] = { 0 };
    double x[COLS] = { 0 };
    assert_int_equal(take(UINT32_MAX), SHERD_EFORMAT);
    for (uint32_t k = 0; k < 2; k++) {
        rows[0] = k * MOST; /* the first row of the second one does not exist */
        put(sherd__allreduce_pack(k), SHERD_U32, 1, k ? 1 : MOST + 1, rows);
        put(sherd__allreduce_pack(k) + 1, SHERD_F64, 1, COLS, x);
        put(sherd__allreduce_pack(k) + 2, SHERD_F64, 1, 1, x);
        assert_int_equal(take(k + 1), SHERD_EFORMAT);
        assert_int_equal(take(k + 1), SHERD_EFORMAT);
        drop_pack(k);
        assert_int_equal(sherd__packs_release(&packs, SIZE_MAX), 1);
        assert_int_equal(take(k + 1), 0);
    }
}

/* A session may send and drop packs without end. */
static void dropped_packs_take_no_memory(void **unused)
{
    (void)unused;
    uint32_t row = 0;
    uint64_t before = 0;
    for (uint32_t k = 0; k < 3000; k++) {
        put_pack(k, &row, 1, 1, true);
        assert_int_equal(take(k + 1), 0);
        drop_pack(k);
        assert_int_equal(sherd__packs_release(&packs, SIZE_MAX), 1);
        if (k == 0) before = sherd__pool_stats_of(pool)->used;
    }
    assert_int_equal(sherd__pool_stats_of(pool)->used, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_packs_give_the_rows_of_any_list),
        cmocka_unit_test_setup_teardown(contiguous_rows_are_not_copied, open_packs, close_packs),
        cmocka_unit_test_setup_teardown(missing_rows_are_refused, open_packs, close_packs),
        cmocka_unit_test_setup_teardown(numbers_of_packs_that_no_coordinator_uses_are_refused,
                                        open_packs, close_packs),
        cmocka_unit_test_setup_teardown(dropped_packs_take_no_memory, open_packs, close_packs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
