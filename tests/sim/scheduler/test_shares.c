/*
 * Schedules of a whole cluster under share and share1. As many nodes as may be missing are slow,
 * dead, disconnected, lying or lying together: the product is always exact, with one encoding. With
 * more faults, shares are made again for the remaining nodes, or the job ends with a reason; the
 * product is never wrong, and the job never exceeds its deadlines. SIM_SEED=n runs one schedule,
 * SIM_VERBOSE=1 prints it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "scheduler/plan/prepare.h"
#include "core/rand.h"
#include "crypto/lagrange.h"
#include "sim.h"

#define WITHIN_MS 15000u

/* Shapes of all kinds, including those that K does not divide and single rows and columns. */
static sim_options drawn(uint64_t seed)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, seed ^ UINT64_C(0x5a4e));
    sim_options o = { .seed = seed,
                      .nodes = 3 + (uint32_t)sherd__entropy_below(&e, 14),
                      .n = 1 + sherd__entropy_below(&e, 30),
                      .k = 1 + sherd__entropy_below(&e, 20),
                      .m = 1 + sherd__entropy_below(&e, 20),
                      .node_memory = 1 << 22 };
    sherd__product_options_init(&o.product);
    bool both = sherd__entropy_below(&e, 4) != 0;
    o.product.scheme = both ? SHERD_SHARE : SHERD_SHARE1;
    o.product.exact = true;
    o.product.memory = UINT64_C(1) << (14 + sherd__entropy_below(&e, 5)); /* cells of a few rows */
    uint32_t most = both ? (o.nodes - 1) / 2 : o.nodes - 1; /* of T, with K = 1 and S = 0 */
    o.product.colluding = 1 + (uint32_t)sherd__entropy_below(&e, most);
    o.product.code = SHERD_CODE_LAGRANGE;
    uint32_t left = o.nodes - (both ? 2 * o.product.colluding + 1 : o.product.colluding + 1);
    o.product.spare = (uint32_t)sherd__entropy_below(&e, left + 1);
    /* Includes the projections of two panels and tiles: two primes, two trials, doubles. */
    uint32_t terms = sherd__lcc_blocks(o.nodes, o.product.colluding, 0, both) +
                     2 * o.product.colluding + 1;
    o.product.memory += (UINT64_C(2) * 2 * 2 * 8 * terms * o.k) * 5 / 3;
    o.delay_ms = (uint32_t)(1 << sherd__entropy_below(&e, 6));
    return o;
}

/* The same by the inner-product code, under which no node is spare. */
static sim_options drawn_inner(uint64_t seed)
{
    sim_options o = drawn(seed);
    o.product.scheme = SHERD_SHARE;
    o.product.code = SHERD_CODE_INNER;
    o.product.spare = 0;
    if (o.nodes < 2 * o.product.colluding + 1) o.product.colluding = (o.nodes - 1) / 2;
    o.product.memory += UINT64_C(1) << 16; /* answers are whole rows of the product */
    return o;
}

/* Returns how many nodes may fail without a new encoding. */
static uint32_t slack(const sim_options *o)
{
    bool both = o->product.scheme == SHERD_SHARE;
    if (o->product.code == SHERD_CODE_INNER) return 0;
    uint32_t k = sherd__lcc_blocks(o->nodes, o->product.colluding, o->product.spare, both);
    if (k > o->n) k = (uint32_t)o->n;
    return o->nodes - sherd__lcc_threshold(k, o->product.colluding, both);
}

static void describe(const sim_options *o, const sim_outcome *r, const char *what)
{
    fail_msg("seed %llu: %s (error %d \"%s\", after %llu ms, %u encodings, %s on %u of %u nodes, "
             "%u colluding, %u spare)",
             (unsigned long long)o->seed, what, r->err, r->message,
             (unsigned long long)r->virtual_ms, r->encodings, sim_fault_name(o->fault), o->faulty,
             o->nodes, o->product.colluding, o->product.spare);
}

static void must_be_right(const sim_options *o, sim_outcome *r)
{
    sim_run(o, r);
    if (r->hung) describe(o, r, "it hangs");
    if (r->err) describe(o, r, "it failed");
    if (!r->equal) describe(o, r, "the product is wrong");
    if (r->virtual_ms > WITHIN_MS) describe(o, r, "it took more than 15 s");
}

static void without_faults_every_product_is_correct(void **state)
{
    (void)state;
    for (uint64_t seed = 100000; seed < 100600; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        must_be_right(&o, &r);
        if (r.encodings != 1 || r.lost || r.banned) describe(&o, &r, "something happened");
    }
}

/* Every kind of fault, at as many nodes as may be missing: one encoding is enough. */
static void as_many_faults_as_spare_nodes_do_not_change_the_result(void **state)
{
    (void)state;
    unsigned struck = 0, cancelled = 0;
    for (uint64_t seed = 110000; seed < 112600; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.faulty = slack(&o);
        o.fault = (sim_fault)(SIM_NONE + 1 + seed % SIM_FAULTS); /* SIM_FAULTS: any mix */
        o.fault_early = seed % 3 == 0;
        must_be_right(&o, &r);
        if (r.encodings != 1) describe(&o, &r, "it was coded again");
        struck += r.struck;
        cancelled += r.cancelled > 0;
    }
    assert_true(struck > 1500);
    assert_true(cancelled > 200);
}

/* The same for kept images, whose windows nodes multiply in their shares, in both orientations. */
static void products_of_windows_survive_as_many_faults(void **state)
{
    (void)state;
    unsigned struck = 0;
    for (uint64_t seed = 115000; seed < 115300; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        uint32_t side = 1 + (uint32_t)(seed % 3);
        o.windows = (sherd_windows){
            3, 2 + side, 1 + (uint32_t)(seed & 1), side, 1 + (uint32_t)(seed / 3 % 2), side - 1
        };
        o.k = (size_t)o.windows.height * o.windows.width * o.windows.channels;
        o.transposed = seed / 2 & 1;
        o.product.scheme = SHERD_SHARE;
        if (o.nodes < 2 * o.product.colluding + 1) o.product.colluding = (o.nodes - 1) / 2;
        o.product.spare = o.product.spare % (o.nodes - 2 * o.product.colluding);
        o.product.memory += UINT64_C(1) << 20;
        o.faulty = slack(&o);
        o.fault = (sim_fault)(SIM_NONE + 1 + seed % SIM_FAULTS);
        o.fault_early = seed % 3 == 0;
        must_be_right(&o, &r);
        if (r.encodings != 1) describe(&o, &r, "it was coded again");
        struck += r.struck;
    }
    assert_true(struck > 150);
}

/* The same in residues of one byte, of either code: T shares of each operand are seeds, which some
 * nodes do not expand. With more faults shares are made again, with other seeds. */
static void products_from_seeds_survive_faults(void **state)
{
    (void)state;
    unsigned bytes = 0, anew = 0, struck = 0;
    for (uint64_t seed = 116000; seed < 116600; seed++) {
        sim_options o = seed % 2 ? drawn(seed) : drawn_inner(seed);
        sim_outcome r;
        o.bytes = true;
        o.older = seed % 3 ? 0 : o.nodes / 2;
        o.product.scheme = SHERD_SHARE;
        if (o.nodes < 2 * o.product.colluding + 1) o.product.colluding = (o.nodes - 1) / 2;
        o.product.spare = seed % 2 ? o.product.spare % (o.nodes - 2 * o.product.colluding) : 0;
        o.product.memory += UINT64_C(1) << 21; /* whole tiles, and tables of check vectors */
        o.faulty = seed % 2 ? slack(&o) : (uint32_t)(seed / 2 % 3);
        o.fault = (sim_fault)(SIM_NONE + 1 + seed % SIM_FAULTS);
        sim_run(&o, &r);
        if (r.hung) describe(&o, &r, "it hangs");
        if (r.err && (seed % 2 || r.err != SHERD_EFEWNODES)) describe(&o, &r, "it failed");
        if (!r.err && !r.equal) describe(&o, &r, "the product is wrong");
        bytes += r.bytes;
        anew += !r.err && r.encodings > 1;
        struck += r.struck;
    }
    assert_true(bytes > 500);
    assert_true(anew > 20);
    assert_true(struck > 200);
}

/* The answers of T colluders never belong to a wrong polynomial undetected. */
static void liars_that_agree_are_named_and_do_not_change_the_result(void **state)
{
    (void)state;
    unsigned named = 0;
    for (uint64_t seed = 120000; seed < 120500; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        uint32_t may = slack(&o);
        o.faulty = o.product.colluding < may ? o.product.colluding : may;
        o.fault = SIM_COLLUDE;
        o.fault_early = true;
        must_be_right(&o, &r);
        if (r.banned > o.faulty) describe(&o, &r, "an honest node was named");
        named += r.banned;
    }
    assert_true(named > 100);
}

static void with_more_faults_the_result_is_correct_or_an_error(void **state)
{
    (void)state;
    unsigned right = 0, anew = 0, refused = 0;
    for (uint64_t seed = 130000; seed < 131400; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        uint32_t may = slack(&o);
        o.faulty = may + 1 + (uint32_t)(seed % (o.nodes - may));
        if (o.faulty > o.nodes) o.faulty = o.nodes;
        o.fault = SIM_FAULTS;
        o.fault_early = seed % 2;
        sim_run(&o, &r);
        if (r.hung) describe(&o, &r, "it hangs");
        if (r.err == 0) {
            if (!r.equal) describe(&o, &r, "the product is wrong");
            right++;
            anew += r.encodings > 1;
        } else {
            if (r.err != SHERD_EFEWNODES) describe(&o, &r, "it failed for another reason");
            if (!r.message[0]) describe(&o, &r, "it does not say why");
            refused++;
        }
    }
    assert_true(right > 300);
    assert_true(anew > 50);
    assert_true(refused > 50);
}

/* Runs with up to two nodes that are slow, dead, disconnected, lying or lying together. */
static void run_inner(sim_options *o, uint64_t seed, sim_outcome *r)
{
    const uint32_t most = o->nodes - 2 * o->product.colluding - 1;
    o->faulty = (uint32_t)(seed % 3);
    if (o->faulty > most) o->faulty = most;
    o->fault = (sim_fault)(SIM_NONE + 1 + seed % SIM_FAULTS);
    o->fault_early = seed % 2;
    sim_run(o, r);
    if (r->hung) describe(o, r, "it hangs");
    if (r->err && r->err != SHERD_EFEWNODES) describe(o, r, "it failed for another reason");
    if (r->err && !o->faulty) describe(o, r, "it failed without faults");
    if (!r->err && !r->equal) describe(o, r, "a product is wrong");
    if (r->banned > o->faulty) describe(o, r, "an honest node was named");
    if (!o->faulty && r->encodings != 1) describe(o, r, "it was coded again");
}

/* What can be coded again is, without the nodes
 * that were lost or banned, and by a code that needs fewer answers. */
static void without_all_nodes_of_the_inner_code_shares_are_made_again(void **state)
{
    (void)state;
    unsigned once = 0, again = 0, named = 0;
    for (uint64_t seed = 170000; seed < 171200; seed++) {
        sim_options o = drawn_inner(seed);
        sim_outcome r;
        run_inner(&o, seed, &r);
        once += !r.err && r.encodings == 1;
        again += !r.err && r.encodings > 1;
        named += r.banned > 0;
    }
    assert_true(once > 300);
    assert_true(again > 100);
    assert_true(named > 30);
}

/* An A that is kept by the inner-product code, for three products with a B each: after a loss or a
 * lie it is coded again for the nodes that are left, and the products that follow use that. */
static void a_kept_operand_survives_the_loss_of_a_node_of_the_inner_code(void **state)
{
    (void)state;
    unsigned once = 0, again = 0, named = 0, bytes = 0;
    for (uint64_t seed = 180000; seed < 180900; seed++) {
        sim_options o = drawn_inner(seed);
        sim_outcome r;
        o.products = 3;
        o.one_way = seed / 2 % 2;
        o.bytes = seed % 3 == 1;
        o.product.memory += UINT64_C(1) << 21;
        run_inner(&o, seed, &r);
        if (!r.err && r.cut_inner != (r.encodings == 1)) describe(&o, &r, "by the wrong code");
        once += !r.err && r.encodings == 1;
        again += !r.err && r.encodings > 1;
        named += r.banned > 0;
        bytes += r.bytes;
    }
    assert_true(once > 250);
    assert_true(again > 100);
    assert_true(named > 30);
    assert_true(bytes > 200);
}

static void strict_ends_with_the_first_lie(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (uint64_t seed = 140000; seed < 140100; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.faulty = 1;
        o.fault = SIM_LIE;
        o.fault_early = true;
        o.product.strict = true;
        sim_run(&o, &r);
        assert_false(r.hung);
        if (r.err) assert_int_equal(r.err, SHERD_EWRONG);
        else assert_true(r.equal);
        refused += r.err != 0;
    }
    assert_true(refused > 20);
}

static void a_hundred_nodes_decode_with_any_sufficient_remainder(void **state)
{
    (void)state;
    for (uint64_t seed = 150000; seed < 150100; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.nodes = 100;
        o.n = o.k = o.m = 24;
        o.product.scheme = SHERD_SHARE;
        o.product.colluding = 1 + (uint32_t)(seed % 20);
        o.product.spare = 20;
        o.product.memory = 1 << 20;
        o.faulty = 20;
        o.fault = SIM_FAULTS;
        must_be_right(&o, &r);
        if (r.encodings != 1) describe(&o, &r, "it was coded again");
    }
}

static void one_seed_gives_one_sequence_of_events(void **state)
{
    (void)state;
    for (uint64_t seed = 160000; seed < 160030; seed++) {
        sim_options o = drawn(seed);
        sim_outcome one, two;
        o.fault = SIM_FAULTS;
        o.faulty = 2;
        sim_run(&o, &one);
        sim_run(&o, &two);
        assert_true(one.log_hash == two.log_hash);
        assert_true(one.events == two.events && one.events > 5);
    }
}

static void one_schedule(uint64_t seed)
{
    sim_options o = drawn(seed);
    sim_outcome r;
    o.fault = SIM_FAULTS;
    o.faulty = slack(&o);
    sim_run(&o, &r);
    printf("seed %llu: error %d %s, equal %d, %u encodings, %llu ms\n", (unsigned long long)seed,
           r.err, r.message, r.equal, r.encodings, (unsigned long long)r.virtual_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_from_seeds_survive_faults),
        cmocka_unit_test(without_faults_every_product_is_correct),
        cmocka_unit_test(as_many_faults_as_spare_nodes_do_not_change_the_result),
        cmocka_unit_test(products_of_windows_survive_as_many_faults),
        cmocka_unit_test(liars_that_agree_are_named_and_do_not_change_the_result),
        cmocka_unit_test(with_more_faults_the_result_is_correct_or_an_error),
        cmocka_unit_test(without_all_nodes_of_the_inner_code_shares_are_made_again),
        cmocka_unit_test(a_kept_operand_survives_the_loss_of_a_node_of_the_inner_code),
        cmocka_unit_test(strict_ends_with_the_first_lie),
        cmocka_unit_test(a_hundred_nodes_decode_with_any_sufficient_remainder),
        cmocka_unit_test(one_seed_gives_one_sequence_of_events),
    };
    if (getenv("SIM_SEED")) {
        one_schedule(strtoull(getenv("SIM_SEED"), NULL, 10));
        return 0;
    }
    return cmocka_run_group_tests_name("scheduler/shares", tests, NULL, NULL);
}
