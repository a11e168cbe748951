/* The number of shards of a part follows from the time that the loop's thread takes to transfer a
 * part. */
#include "scheduler/train/shard_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define MS 1e-3

/* Simulates a thread that is busy for `part` seconds with a part, while nodes take `shard` seconds
 * for each of its shards. Returns the final number of shards of a part. */
static uint32_t in_the_end(sherd__shard_size *g, double part, double shard, uint32_t most)
{
    double now = g->now + 1, busy = g->busy;
    uint64_t parts = g->parts;
    uint32_t n = 0;
    for (unsigned i = 0; i < 400; i++) {
        n = sherd__shard_size_shards(g, now, busy, parts, most);
        assert_in_range(n, 1, most);
        now += shard * n > part ? shard * n : part;
        busy += part;
        parts++;
    }
    return n;
}

static void parts_are_single_shards_until_times_are_known(void **s)
{
    (void)s;
    sherd__shard_size g = { 0 };
    double busy = 50; /* busy before the start */
    for (uint64_t i = 0; i < SHERD__SHARD_SIZE_PARTS; i++) {
        assert_int_equal(sherd__shard_size_shards(&g, 100 + (double)i * MS, busy, i, 8), 1);
        busy += MS;
    }
    double now = 100 + SHERD__SHARD_SIZE_PARTS * MS;
    assert_int_equal(sherd__shard_size_shards(&g, now, busy, SHERD__SHARD_SIZE_PARTS, 8), 2);
    assert_int_equal(sherd__shard_size_shards(&g, now + 1, busy + 1, SHERD__SHARD_SIZE_PARTS, 8),
                     2);
}

static void parts_grow_until_transferring_them_takes_an_eighth_of_the_time(void **s)
{
    (void)s;
    sherd__shard_size a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    assert_int_equal(in_the_end(&a, 1.0 * MS, 10 * MS, 64), 1);
    assert_int_equal(in_the_end(&b, 1.5 * MS, 10 * MS, 64), 2);
    assert_int_equal(in_the_end(&c, 1.6 * MS, 4 * MS, 64), 4);
    assert_int_equal(in_the_end(&d, 9.0 * MS, 1 * MS, 64), 64); /* the maximum */
}

static void parts_never_exceed_the_maximum(void **s)
{
    (void)s;
    for (uint32_t most = 1; most < 12; most++) {
        sherd__shard_size g = { 0 };
        uint32_t power = 1;
        while (2 * power <= most) power *= 2;
        assert_int_equal(in_the_end(&g, 10 * MS, 1 * MS, most), power);
        assert_int_equal(sherd__shard_size_shards(&g, g.now, g.busy, g.parts, 0), 1);
    }
}

static void parts_shrink_if_transferring_them_takes_almost_no_time(void **s)
{
    (void)s;
    sherd__shard_size g = { 0 };
    assert_int_equal(in_the_end(&g, 10 * MS, 1 * MS, 16), 16);
    assert_int_equal(in_the_end(&g, 0.2 * MS, 10 * MS, 16), 1);
}

/* Between an eighth and a thirty-second nothing changes: with half the shards, the cost doubles. */
static void the_size_of_parts_does_not_oscillate(void **s)
{
    (void)s;
    sherd__shard_size g = { 0 };
    double now = 0, busy = 0;
    uint32_t before = 0, turns = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        uint32_t n = sherd__shard_size_shards(&g, now, busy, i, 64);
        turns += n != before;
        before = n;
        now += 4 * MS * n;
        busy += (i / 16 % 2 ? 1.1 : 1.9) * MS; /* as noisy as a real machine */
    }
    assert_int_equal(before, 4);
    assert_int_equal(turns, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_single_shards_until_times_are_known),
        cmocka_unit_test(parts_grow_until_transferring_them_takes_an_eighth_of_the_time),
        cmocka_unit_test(parts_never_exceed_the_maximum),
        cmocka_unit_test(parts_shrink_if_transferring_them_takes_almost_no_time),
        cmocka_unit_test(the_size_of_parts_does_not_oscillate),
    };
    return cmocka_run_group_tests_name("scheduler/shards_per_task", tests, NULL, NULL);
}
