/* The share of a turn of the loop that connections of one key get if each takes as much as it
 * may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/turn.h"

enum {
    MANY = 48,
    TURNS = 1000,
    RECORDS = 512,
    BYTES = 16384
}; /* bytes that one TLS buffer may
                                                                 * hold */

typedef struct crowd {
    sherd__turn turn;
    sherd__turn_part part[MANY];
    uint64_t records[MANY], bytes[MANY], turn_records, turn_bytes;
} crowd;

enum { EACH_NS = 8000 }; /* counts as one more record */

static void take(sherd__turn_part *p, uint32_t records, uint64_t bytes)
{
    if (records) sherd__turn_record(p, (records - 1) * (uint64_t)EACH_NS);
    sherd__turn_bytes(p, bytes);
}

/* Runs turns in which `n` connections continue until they have to wait, the first one first. */
static void run_turns(crowd *c, unsigned n, uint32_t records, uint64_t bytes, unsigned turns)
{
    *c = (crowd){ .turn_records = 0 };
    for (unsigned i = 0; i < MANY; i++) c->part[i].of = &c->turn;
    for (unsigned t = 1; t <= turns; t++) {
        uint64_t r = 0, b = 0;
        for (unsigned i = 0; i < n; i++)
            while (!sherd__turn_over(&c->part[i], t)) {
                take(&c->part[i], records, bytes);
                c->records[i] += records;
                c->bytes[i] += bytes;
                r += records;
                b += bytes;
            }
        if (r > c->turn_records) c->turn_records = r;
        if (b > c->turn_bytes) c->turn_bytes = b;
    }
}

static void many_connections_get_no_more_of_a_turn_than_one(void **s)
{
    (void)s;
    crowd one, all;
    run_turns(&one, 1, 1, 32, TURNS);
    assert_int_equal(one.turn_records, SHERD__TURN_RECORDS);
    run_turns(&all, MANY, 1, 32, TURNS);
    assert_in_range(all.turn_records, SHERD__TURN_RECORDS / 2, SHERD__TURN_RECORDS);
    run_turns(&all, MANY, RECORDS, BYTES, TURNS);
    assert_in_range(all.turn_records, 1, SHERD__TURN_RECORDS + RECORDS);
    run_turns(&one, 1, 0, BYTES, TURNS);
    assert_int_equal(one.turn_bytes, SHERD__TURN_BYTES);
    run_turns(&all, MANY, 0, BYTES, TURNS);
    assert_in_range(all.turn_bytes, SHERD__TURN_BYTES / 2, SHERD__TURN_BYTES + BYTES);
}

/* For any order within a turn, and for any amount taken at a time. */
static void each_connection_gets_its_share(void **s)
{
    static const uint32_t records[] = { 1, 100, RECORDS, 0 };
    (void)s;
    crowd all;
    for (unsigned k = 0; k < 4; k++) {
        run_turns(&all, MANY, records[k], BYTES, TURNS);
        for (unsigned i = 0; i < MANY; i++) {
            if (records[k])
                assert_true(all.records[i] > (uint64_t)TURNS * SHERD__TURN_RECORDS / MANY / 4);
            else assert_true(all.bytes[i] > (uint64_t)TURNS * SHERD__TURN_BYTES / MANY / 4);
        }
    }
}

static void a_connection_that_becomes_the_only_one_gets_the_whole_turn(void **s)
{
    (void)s;
    unsigned n = 0;
    crowd all;
    run_turns(&all, MANY, 1, 32, TURNS);
    for (uint64_t t = TURNS + 1; t < TURNS + 4; t++)
        for (n = 0; !sherd__turn_over(&all.part[MANY - 1], t); n++)
            take(&all.part[MANY - 1], 1, 32);
    assert_int_equal(n, SHERD__TURN_RECORDS);
}

static void a_record_of_any_length_costs_two_turns_at_most(void **s)
{
    (void)s;
    sherd__turn all = { 0 };
    sherd__turn_part one = { .of = &all };
    assert_false(sherd__turn_over(&one, 1));
    sherd__turn_record(&one, UINT64_MAX);
    assert_true(sherd__turn_over(&one, 1));
    assert_true(sherd__turn_over(&one, 2));
    assert_false(sherd__turn_over(&one, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_connections_get_no_more_of_a_turn_than_one),
        cmocka_unit_test(each_connection_gets_its_share),
        cmocka_unit_test(a_connection_that_becomes_the_only_one_gets_the_whole_turn),
        cmocka_unit_test(a_record_of_any_length_costs_two_turns_at_most),
    };
    return cmocka_run_group_tests_name("wire/turn", tests, NULL, NULL);
}
