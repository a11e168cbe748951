/* Assignments compared with an exhaustive search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "audit/assign.h"
#include "audit/subsets.h"
#include "core/rand.h"

static double best_of(const double *cost, size_t rows, size_t cols, size_t r, unsigned used,
                      bool ascending, size_t least)
{
    if (r == rows) return 0;
    double best = INFINITY;
    for (size_t c = ascending ? least : 0; c < cols; c++) {
        if (used >> c & 1) continue;
        double v = cost[r * cols + c] +
                   best_of(cost, rows, cols, r + 1, used | 1u << c, ascending, c + 1);
        if (v < best) best = v;
    }
    return best;
}

static double sum_of(const double *cost, size_t rows, size_t cols, const size_t *to, bool *valid)
{
    double sum = 0;
    unsigned used = 0;
    for (size_t r = 0; r < rows; r++) {
        if (to[r] == SHERD__ASSIGN_NONE) continue;
        if (to[r] >= cols || used >> to[r] & 1) *valid = false;
        used |= 1u << to[r];
        sum += cost[r * cols + to[r]];
    }
    return sum;
}

static void the_assignment_has_the_least_cost_of_all(void **state)
{
    (void)state;
    sherd__seeded seed;
    sherd__entropy e = sherd__entropy_seeded(&seed, 5);
    for (unsigned trial = 0; trial < 600; trial++) {
        size_t rows = 1 + sherd__entropy_below(&e, 6), cols = 1 + sherd__entropy_below(&e, 7),
               to[8];
        double cost[64], turned[64];
        bool ties = trial % 3 == 0, valid = true;
        for (size_t i = 0; i < rows * cols; i++)
            cost[i] = ties ? (double)sherd__entropy_below(&e, 4)
                           : (double)(int64_t)sherd__entropy_u64(&e) * 0x1p-60;
        for (size_t i = 0; i < rows * cols; i++) turned[i % cols * rows + i / cols] = cost[i];
        assert_int_equal(sherd__assign(cost, rows, cols, to), 0);
        double sum = sum_of(cost, rows, cols, to, &valid);
        double best = rows <= cols ? best_of(cost, rows, cols, 0, 0, false, 0)
                                   : best_of(turned, cols, rows, 0, 0, false, 0);
        assert_true(valid && fabs(sum - best) < 1e-9);
        size_t given = 0;
        for (size_t r = 0; r < rows; r++) given += to[r] != SHERD__ASSIGN_NONE;
        assert_int_equal(given, rows < cols ? rows : cols);
        if (rows > cols) {
            assert_int_equal(sherd__assign_ascending(cost, rows, cols, to), SHERD_EINVAL);
            continue;
        }
        assert_int_equal(sherd__assign_ascending(cost, rows, cols, to), 0);
        for (size_t r = 1; r < rows; r++) assert_true(to[r] > to[r - 1]);
        sum = sum_of(cost, rows, cols, to, &valid);
        assert_true(valid && fabs(sum - best_of(cost, rows, cols, 0, 0, true, 0)) < 1e-9);
    }
}

static void empty_sets_are_assigned(void **state)
{
    (void)state;
    size_t to[1] = { 3 };
    double cost[1] = { 1 };
    assert_int_equal(sherd__assign(cost, 0, 1, to), 0);
    assert_int_equal(sherd__assign_ascending(cost, 0, 1, to), 0);
    assert_int_equal(to[0], 3);
    assert_int_equal(sherd__assign(cost, 1, 0, to), 0);
    assert_true(to[0] == SHERD__ASSIGN_NONE);
}

static void small_numbers_of_coalitions_are_listed_completely(void **state)
{
    (void)state;
    sherd__subsets m;
    assert_int_equal(sherd__subsets_choose(&m, 7, 2, 200, 1), 0);
    assert_true(m.len == 21 && m.of == 21);
    for (uint32_t i = 0; i < m.len; i++) {
        assert_true(m.list[2 * i] < m.list[2 * i + 1] && m.list[2 * i + 1] < 7);
        for (uint32_t j = 0; j < i; j++)
            assert_false(m.list[2 * i] == m.list[2 * j] && m.list[2 * i + 1] == m.list[2 * j + 1]);
    }
    sherd__subsets_fini(&m);
    assert_int_equal(sherd__subsets_choose(&m, 7, 7, 200, 1), 0);
    assert_true(m.len == 1 && m.list[6] == 6);
    sherd__subsets_fini(&m);
    assert_int_equal(sherd__subsets_choose(&m, 3, 4, 200, 1), 0);
    assert_int_equal(m.len, 0);
}

static void large_numbers_of_coalitions_are_sampled_without_repetition(void **state)
{
    (void)state;
    sherd__subsets m, again;
    uint32_t seen[40] = { 0 };
    assert_int_equal(sherd__subsets_choose(&m, 40, 3, 200, 9), 0);
    assert_true(m.len == 200 && m.of == 9880);
    for (uint32_t i = 0; i < m.len; i++) {
        const uint32_t *a = m.list + 3 * i;
        assert_true(a[0] < a[1] && a[1] < a[2] && a[2] < 40);
        for (unsigned k = 0; k < 3; k++) seen[a[k]]++;
        for (uint32_t j = 0; j < i; j++)
            assert_false(a[0] == m.list[3 * j] && a[1] == m.list[3 * j + 1] &&
                         a[2] == m.list[3 * j + 2]);
    }
    for (unsigned k = 0; k < 40; k++) assert_in_range(seen[k], 2, 40); /* 15 on average */
    assert_int_equal(sherd__subsets_choose(&again, 40, 3, 200, 9), 0);
    assert_memory_equal(again.list, m.list, 600 * sizeof *m.list);
    sherd__subsets_fini(&m);
    sherd__subsets_fini(&again);
    assert_int_equal(sherd__subsets_choose(&m, 1000, 60, 3, 9), 0);
    assert_true(m.len == 3 && m.of == UINT64_MAX);
    sherd__subsets_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_assignment_has_the_least_cost_of_all),
        cmocka_unit_test(empty_sets_are_assigned),
        cmocka_unit_test(small_numbers_of_coalitions_are_listed_completely),
        cmocka_unit_test(large_numbers_of_coalitions_are_sampled_without_repetition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
