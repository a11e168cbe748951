/* The steps of an all-reduce, carried out for every worker in memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "learn/reduce.h"

#define MOST 33

static const sherd__reduce kinds[] = { SHERD__REDUCE_RING, SHERD__REDUCE_HALVING };

/* Copies a part of v to flat, or sets (or adds) a part of v from flat. */
static size_t gather(const uint64_t *v, size_t len, uint32_t n, sherd__reduce_part p,
                     uint64_t *flat)
{
    size_t at = 0;
    for (uint32_t b = 0; b < p.count; b++) {
        uint32_t block = (p.first + b) % n;
        size_t from = sherd__reduce_at(len, n, block), to = sherd__reduce_at(len, n, block + 1);
        memcpy(flat + at, v + from, (to - from) * sizeof *v);
        at += to - from;
    }
    return at;
}

static void scatter(uint64_t *v, size_t len, uint32_t n, sherd__reduce_part p, const uint64_t *flat,
                    bool add)
{
    size_t at = 0;
    for (uint32_t b = 0; b < p.count; b++) {
        uint32_t block = (p.first + b) % n;
        size_t from = sherd__reduce_at(len, n, block), to = sherd__reduce_at(len, n, block + 1);
        for (size_t i = from; i < to; i++) v[i] = add ? v[i] + flat[at++] : flat[at++];
    }
}

/* Checks that every worker has the sum of the block with its number. */
static void owners_have_sums(uint32_t n, size_t len, uint64_t **v, const uint64_t *sum)
{
    for (uint32_t i = 0; i < n; i++) {
        size_t from = sherd__reduce_at(len, n, i), to = sherd__reduce_at(len, n, i + 1);
        assert_memory_equal(v[i] + from, sum + from, (to - from) * sizeof *sum);
    }
}

/* Runs all steps; sent[i] is the number of numbers that worker i sent. */
static void run(sherd__reduce kind, uint32_t n, size_t len, uint64_t **v, const uint64_t *sum,
                size_t *sent)
{
    uint64_t *flat[MOST];
    for (uint32_t i = 0; i < n; i++) flat[i] = malloc((len + 1) * sizeof(uint64_t));
    for (uint32_t t = 0; t < sherd__reduce_steps(kind, n); t++) {
        if (t == sherd__reduce_steps(kind, n) / 2) owners_have_sums(n, len, v, sum);
        for (uint32_t i = 0; i < n; i++) {
            sherd__reduce_step s = sherd__reduce_step_of(kind, n, i, t);
            size_t got = gather(v[i], len, n, s.out, flat[i]);
            assert_int_equal(got, sherd__reduce_len(len, n, s.out));
            sent[i] += got;
        }
        for (uint32_t i = 0; i < n; i++) {
            sherd__reduce_step s = sherd__reduce_step_of(kind, n, i, t);
            sherd__reduce_step o = sherd__reduce_step_of(kind, n, s.from, t);
            assert_true(s.to < n && s.from < n && s.to != i && s.from != i);
            assert_int_equal(o.to, i);
            assert_int_equal(o.out.first, s.in.first);
            assert_int_equal(o.out.count, s.in.count);
            scatter(v[i], len, n, s.in, flat[s.from], s.add);
        }
    }
    for (uint32_t i = 0; i < n; i++) free(flat[i]);
}

static void all_workers_get_the_sum_and_none_sends_more_than_its_part(void **state)
{
    static const size_t lens[] = { 0, 1, 5, 64, 1001 };
    (void)state;
    for (size_t k = 0; k < 2; k++)
        for (uint32_t n = 1; n <= MOST; n++)
            for (size_t l = 0; l < 5; l++) {
                size_t len = lens[l], sent[MOST] = { 0 };
                uint64_t *v[MOST], *sum = calloc(len + 1, sizeof *sum);
                for (uint32_t i = 0; i < n; i++) {
                    v[i] = malloc((len + 1) * sizeof **v);
                    for (size_t j = 0; j < len; j++) {
                        v[i][j] = (i + 3) * UINT64_C(0x9e3779b97f4a7c15) * (j + 1);
                        sum[j] += v[i][j];
                    }
                }
                run(kinds[k], n, len, v, sum, sent);
                for (uint32_t i = 0; i < n; i++) {
                    assert_memory_equal(v[i], sum, len * sizeof *sum);
                    /* 2 (n - 1) blocks, each at most one number above len / n */
                    assert_true(sent[i] <= 2 * (n - 1) * (len / n + (len % n != 0)));
                    if (len % n == 0) assert_int_equal(sent[i], 2 * (n - 1) * (len / n));
                    free(v[i]);
                }
                free(sum);
            }
}

static void a_ring_uses_neighbours_only_and_halving_takes_few_steps(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= MOST; n++) {
        uint32_t bits = 0;
        while (1u << bits < n) bits++;
        assert_int_equal(sherd__reduce_steps(SHERD__REDUCE_RING, n), 2 * (n - 1));
        assert_int_equal(sherd__reduce_steps(SHERD__REDUCE_HALVING, n), 2 * bits);
        for (uint32_t t = 0; t < n - 1; t++) {
            assert_int_equal(sherd__reduce_step_of(SHERD__REDUCE_RING, n, 0, t).to, 1 % n);
            assert_int_equal(sherd__reduce_step_of(SHERD__REDUCE_RING, n, 0, t).from, n - 1);
        }
    }
    assert_int_equal(sherd__reduce_steps(SHERD__REDUCE_RING, 1), 0);
    assert_string_equal(sherd__reduce_name(SHERD__REDUCE_RING), "ring");
    assert_string_equal(sherd__reduce_name(SHERD__REDUCE_HALVING), "halving-doubling");
    assert_null(sherd__reduce_name((sherd__reduce)7));
}

static void blocks_cover_a_vector_exactly_once(void **state)
{
    (void)state;
    for (size_t len = 0; len < 40; len++)
        for (uint32_t n = 1; n < 9; n++) {
            assert_int_equal(sherd__reduce_at(len, n, 0), 0);
            assert_int_equal(sherd__reduce_at(len, n, n), len);
            for (uint32_t b = 0; b < n; b++) {
                size_t each = sherd__reduce_at(len, n, b + 1) - sherd__reduce_at(len, n, b);
                assert_true(each == len / n || each == len / n + 1);
                assert_int_equal(sherd__reduce_len(len, n, (sherd__reduce_part){ b, n }), len);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_workers_get_the_sum_and_none_sends_more_than_its_part),
        cmocka_unit_test(a_ring_uses_neighbours_only_and_halving_takes_few_steps),
        cmocka_unit_test(blocks_cover_a_vector_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
