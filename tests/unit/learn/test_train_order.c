/* The rows of a step: orders of all sizes, epoch by epoch, as lists and one by one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "learn/train.h"

static const uint8_t seed[32] = { 4, 5, 6 };

static const sherd__order orders[] = { SHERD__ORDER_GIVEN, SHERD__ORDER_SHUFFLED,
                                       SHERD__ORDER_BATCHES, SHERD__ORDER_DRAWN };
static const struct {
    size_t examples, batch;
} sizes[] = { { 1, 1 }, { 10, 1 }, { 10, 3 }, { 10, 10 }, { 12, 4 }, { 7, 6 } };
#define SIZES (sizeof sizes / sizeof *sizes)

static sherd__train_order order_of(sherd__order order, size_t examples, size_t batch)
{
    sherd__train_order o;
    sherd_diag d = { 0 };
    if (sherd__train_order_init(&o, order, examples, batch, seed, &d) != SHERD_OK)
        fail_msg("%s", d.message);
    return o;
}

static void an_epoch_takes_every_row_once(void **s)
{
    (void)s;
    for (size_t k = 0; k < 3 * SIZES; k++) {
        size_t examples = sizes[k % SIZES].examples, batch = sizes[k % SIZES].batch;
        sherd__train_order o = order_of(orders[k / SIZES], examples, batch);
        assert_int_equal(o.per_epoch, (examples + batch - 1) / batch);
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            unsigned seen[16] = { 0 };
            size_t all = 0;
            for (uint64_t i = 0; i < o.per_epoch; i++) {
                uint32_t rows[16];
                size_t len = sherd__train_order_rows(&o, epoch * o.per_epoch + i, rows);
                assert_in_range(len, 1, batch);
                for (size_t r = 0; r < len; r++) seen[rows[r]]++;
                all += len;
            }
            assert_int_equal(all, examples);
            for (size_t r = 0; r < examples; r++) assert_int_equal(seen[r], 1);
        }
        sherd__train_order_fini(&o);
    }
}

static void rows_are_a_function_of_seed_and_step(void **s)
{
    (void)s;
    for (size_t k = 0; k < 4 * SIZES; k++) {
        size_t examples = sizes[k % SIZES].examples, batch = sizes[k % SIZES].batch;
        sherd__train_order o = order_of(orders[k / SIZES], examples, batch);
        uint32_t there[40][16], back[16];
        size_t lens[40];
        for (uint64_t i = 0; i < 40; i++) lens[i] = sherd__train_order_rows(&o, i, there[i]);
        for (uint64_t i = 40; i-- > 0;) { /* backwards, and each from a new state */
            sherd__train_order fresh = order_of(orders[k / SIZES], examples, batch);
            assert_int_equal(sherd__train_order_rows(&o, i, back), lens[i]);
            assert_memory_equal(back, there[i], lens[i] * sizeof *back);
            assert_int_equal(sherd__train_order_rows(&fresh, i, back), lens[i]);
            assert_memory_equal(back, there[i], lens[i] * sizeof *back);
            sherd__train_order_fini(&fresh);
        }
        sherd__train_order_fini(&o);
    }
}

/* The list determines the rows and does not reveal the seed. */
static void a_list_has_the_rows_of_its_steps(void **s)
{
    (void)s;
    for (sherd__order order = SHERD__ORDER_GIVEN; order <= SHERD__ORDER_DRAWN; order++)
        for (size_t batch = 1; batch <= 23; batch += 11) {
            sherd__train_order o = order_of(order, 23, batch);
            for (uint64_t step = 0; step < 3 * o.per_epoch; step++) {
                uint32_t rows[23], list[23];
                size_t first, len = sherd__train_order_rows(&o, step, rows);
                sherd__rows r = sherd__train_order_list(&o, step, &first);
                assert_true(sherd__rows_valid(&r));
                assert_in_range(first + len, 1, r.len);
                assert_memory_not_equal(r.key, o.seed, sizeof r.key);
                sherd__rows_list(&r, list);
                assert_memory_equal(rows, list + first, len * sizeof *rows);
            }
            sherd__train_order_fini(&o);
        }
    sherd__rows r = { SHERD__ROWS_SHUFFLED, 5, 4, { 0 } };
    assert_false(sherd__rows_valid(&r));
    r.kind = SHERD__ROWS_DRAWN;
    assert_true(sherd__rows_valid(&r));
    r.examples = 0;
    assert_false(sherd__rows_valid(&r));
}

static void each_order_shuffles_as_documented(void **s)
{
    (void)s;
    uint32_t a[100], b[100];
    uint8_t other[32] = { 9 };
    sherd__train_order o = order_of(SHERD__ORDER_GIVEN, 100, 10);
    assert_int_equal(sherd__train_order_rows(&o, 13, a), 10);
    for (uint32_t i = 0; i < 10; i++) assert_int_equal(a[i], 30 + i);
    assert_null(sherd__train_order_fixed(&o));
    sherd__train_order_fini(&o);

    o = order_of(SHERD__ORDER_SHUFFLED, 100, 100);
    sherd__train_order_rows(&o, 0, a);
    sherd__train_order_rows(&o, 1, b);
    assert_memory_not_equal(a, b, sizeof a);
    sherd__train_order_fini(&o);

    o = order_of(SHERD__ORDER_BATCHES, 100, 10);
    const uint32_t *fixed = sherd__train_order_fixed(&o);
    unsigned moved = 0;
    for (uint64_t step = 0; step < 30; step++) {
        uint64_t batch = sherd__train_order_batch(&o, step);
        sherd__train_order_rows(&o, step, a);
        assert_memory_equal(a, fixed + 10 * batch, 10 * sizeof *a);
        moved += batch != step % 10;
    }
    assert_true(moved > 15);
    for (uint64_t step = moved = 0; step < 10; step++)
        moved += sherd__train_order_batch(&o, step) != sherd__train_order_batch(&o, step + 10);
    assert_true(moved > 5); /* again for each epoch */
    memcpy(a, fixed, sizeof a);
    sherd__train_order_fini(&o);
    assert_int_equal(sherd__train_order_init(&o, SHERD__ORDER_BATCHES, 100, 10, other, NULL),
                     SHERD_OK);
    assert_memory_not_equal(a, sherd__train_order_fixed(&o), sizeof a);
    sherd__train_order_fini(&o);

    unsigned seen[20] = { 0 }, twice = 0;
    o = order_of(SHERD__ORDER_DRAWN, 20, 10);
    for (uint64_t step = 0; step < 1000; step++) {
        unsigned mask = 0;
        assert_int_equal(sherd__train_order_rows(&o, step, a), 10);
        for (size_t i = 0; i < 10; i++) {
            twice += mask >> a[i] & 1;
            mask |= 1u << a[i];
            seen[a[i]]++;
        }
    }
    assert_true(twice > 1000); /* with replacement */
    for (size_t i = 0; i < 20; i++) assert_in_range(seen[i], 390, 610);
    sherd__train_order_fini(&o);
}

static void a_batch_larger_than_the_data_is_refused(void **s)
{
    (void)s;
    sherd__train_order o;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__train_order_init(&o, SHERD__ORDER_GIVEN, 10, 11, seed, &d),
                     SHERD_EINVAL);
    assert_non_null(strstr(d.message, "a batch of 11 is larger than the data"));
    assert_int_equal(sherd__train_order_init(&o, SHERD__ORDER_GIVEN, 0, 0, seed, NULL),
                     SHERD_EINVAL);
    o = order_of(SHERD__ORDER_GIVEN, 10, 0); /* all examples */
    assert_int_equal(o.batch, 10);
    sherd__train_order_fini(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_takes_every_row_once),
        cmocka_unit_test(rows_are_a_function_of_seed_and_step),
        cmocka_unit_test(a_list_has_the_rows_of_its_steps),
        cmocka_unit_test(each_order_shuffles_as_documented),
        cmocka_unit_test(a_batch_larger_than_the_data_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
