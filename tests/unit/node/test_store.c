#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "crypto/fragment_make.h"
#include "node/store.h"
#include "sherd/mat.h"

static int alive; /* bodies that have not been released */

static void release(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx;
    (void)len;
    alive--;
    free(bytes);
}

static sherd__fragment *body(uint64_t len)
{
    sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_U8, .rows = 1, .cols = len, .len = len
    };
    sherd__fragment *f;
    assert_int_equal(sherd__fragment_take(&f, &i, malloc(len + 1), release, NULL), SHERD_OK);
    alive++;
    return f;
}

static void blocks_are_found_by_their_exact_name_only(void **state)
{
    (void)state;
    sherd__store s, other;
    sherd__store_init(&s);
    sherd__store_init(&other);
    assert_null(sherd__store_find(&s, 1, 1));
    assert_int_equal(sherd__store_put(&s, 1, 7, body(3)), SHERD_OK);
    assert_non_null(sherd__store_find(&s, 1, 7));
    assert_null(sherd__store_find(&s, 2, 7));
    assert_null(sherd__store_find(&s, 1, 8));
    assert_null(sherd__store_find(&other, 1, 7));
    assert_int_equal(s.bytes, 3);
    sherd__store_fini(&s);
    assert_int_equal(alive, 0);
}

static void a_number_is_used_once_and_is_never_zero(void **state)
{
    (void)state;
    sherd__store s;
    sherd__store_init(&s);
    sherd__fragment *f = body(1);
    assert_int_equal(sherd__store_put(&s, 1, 1, body(1)), SHERD_OK);
    assert_int_equal(sherd__store_put(&s, 1, 1, f), SHERD_EINVAL);
    assert_int_equal(sherd__store_put(&s, 1, 0, f), SHERD_EINVAL);
    assert_int_equal(sherd__store_drop(&s, 1, 1), 1);
    assert_int_equal(sherd__store_drop(&s, 1, 1), 0);
    assert_int_equal(sherd__store_put(&s, 1, 1, f), SHERD_OK);
    sherd__store_fini(&s);
    assert_int_equal(alive, 0);
}

static void a_dropped_block_lives_until_its_last_user_releases_it(void **state)
{
    (void)state;
    sherd__store s;
    sherd__store_init(&s);
    assert_int_equal(sherd__store_put(&s, 1, 1, body(5)), SHERD_OK);
    sherd__block *b = sherd__store_find(&s, 1, 1);
    sherd__block_hold(b);
    assert_int_equal(sherd__store_drop(&s, 1, 0), 1);
    assert_null(sherd__store_find(&s, 1, 1));
    assert_int_equal(alive, 1);
    sherd__store_fini(&s);
    assert_int_equal(alive, 1);
    sherd__block_release(b);
    assert_int_equal(alive, 0);
}

static void random_names_agree_with_a_plain_table(void **state)
{
    (void)state;
    enum { JOBS = 5, NUMBERS = 200 };
    static bool have[JOBS][NUMBERS];
    size_t count = 0;
    sherd__seeded seeded;
    sherd__entropy rnd = sherd__entropy_seeded(&seeded, 3);
    sherd__store s;
    sherd__store_init(&s);
    for (int step = 0; step < 20000; step++) {
        uint64_t j = sherd__entropy_below(&rnd, JOBS);
        uint32_t n = (uint32_t)sherd__entropy_below(&rnd, NUMBERS);
        if (sherd__entropy_below(&rnd, 500) == 0) {
            size_t want = 0;
            for (int i = 0; i < NUMBERS; i++) want += have[j][i] ? 1 : 0, have[j][i] = false;
            assert_int_equal(sherd__store_drop(&s, j, 0), want);
            assert_int_equal(sherd__store_reap(&s, SIZE_MAX), want);
            count -= want;
        } else if (have[j][n]) {
            assert_non_null(sherd__store_find(&s, j, n + 1));
            assert_int_equal(sherd__store_drop(&s, j, n + 1), 1);
            have[j][n] = false;
            count--;
        } else {
            assert_null(sherd__store_find(&s, j, n + 1));
            assert_int_equal(sherd__store_put(&s, j, n + 1, body(1)), SHERD_OK);
            have[j][n] = true;
            count++;
        }
        assert_int_equal(s.table.len, count);
        assert_int_equal(alive, count);
    }
    sherd__store_fini(&s);
    assert_int_equal(alive, 0);
}

static void every_failed_allocation_leaves_the_block_with_its_owner(void **state)
{
    (void)state;
    for (size_t nth = 1;; nth++) {
        sherd__store s;
        sherd__store_init(&s);
        sherd__fragment *f = body(1);
        sherd__alloc_fail_nth(nth);
        int err = sherd__store_put(&s, 1, 1, f);
        size_t seen = sherd__alloc_fail_nth(0);
        if (err) sherd__fragment_free(f);
        sherd__store_fini(&s);
        assert_int_equal(alive, 0);
        if (seen < nth) break;
        assert_int_equal(err, SHERD_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_found_by_their_exact_name_only),
        cmocka_unit_test(a_number_is_used_once_and_is_never_zero),
        cmocka_unit_test(a_dropped_block_lives_until_its_last_user_releases_it),
        cmocka_unit_test(random_names_agree_with_a_plain_table),
        cmocka_unit_test(every_failed_allocation_leaves_the_block_with_its_owner),
    };
    return cmocka_run_group_tests_name("node/store", tests, NULL, NULL);
}
