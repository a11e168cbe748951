/*
 * Schedules of a whole cluster under `blind`: any node may take over the work of any other, since a
 * masked row is the same for all. One live honest node is enough, whatever happens to the others.
 * At most as many masks are used as A has rows, however often work is sent again, and none if there
 * is no node.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/plan/prepare.h"
#include "core/rand.h"
#include "sherd/masks.h"
#include "sim.h"

static char dir[64], masks[80], state[80];
static unsigned spared; /* runs that sent nothing and used no masks */

static int begin(void **s)
{
    (void)s;
    /* Masks are synced to disk in each schedule, which costs nothing in memory. */
    const char *tmp = getenv("TMPDIR");
    bool shm = access("/dev/shm", W_OK) == 0;
    snprintf(dir, sizeof dir, "%s/sim-XXXXXX",
             shm                       ? "/dev/shm"
             : tmp && strlen(tmp) < 40 ? tmp
                                       : "/tmp");
    if (!mkdtemp(dir)) return -1;
    snprintf(masks, sizeof masks, "%s/B.masks", dir);
    snprintf(state, sizeof state, "%s/state", dir);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static int end(void **s)
{
    (void)s;
    return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static sim_options drawn(uint64_t seed)
{
    sherd__seeded st;
    sherd__entropy e = sherd__entropy_seeded(&st, seed ^ UINT64_C(0xb11d));
    sim_options o = { .seed = seed,
                      .nodes = 1 + (uint32_t)sherd__entropy_below(&e, 8),
                      .n = 1 + sherd__entropy_below(&e, 90),
                      .k = 1 + sherd__entropy_below(&e, 40),
                      .m = 1 + sherd__entropy_below(&e, 40),
                      .node_memory = 1 << 22 };
    sherd__product_options_init(&o.product);
    o.product.scheme = SHERD_BLIND;
    o.product.exact = true;
    o.product.masks = masks;
    o.product.masks_state = state;
    o.product.memory = UINT64_C(1) << (16 + sherd__entropy_below(&e, 4));
    o.delay_ms = (uint32_t)(1 << sherd__entropy_below(&e, 6));
    return o;
}

static void run(const sim_options *o, sim_outcome *r)
{
    sherd_masks_info info = { .size = sizeof info };
    sim_run(o, r);
    const char *what = r->hung                    ? "it hangs"
                       : r->err == 0 && !r->equal ? "the product is wrong"
                       : r->exposure != 0         ? "entries of A count as shown"
                                                  : NULL;
    if (what)
        fail_msg("seed %llu: %s (error %d \"%s\", fault %s on %u of %u nodes)",
                 (unsigned long long)o->seed, what, r->err, r->message, sim_fault_name(o->fault),
                 o->faulty, o->nodes);
    assert_int_equal(sherd_masks_get(masks, state, &info, NULL), 0);
    if (info.left) {
        assert_int_equal(info.left, o->n);
        assert_int_equal(r->err, SHERD_EFEWNODES);
        spared++;
    }
}

static void without_faults_every_product_is_correct(void **s)
{
    (void)s;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        run(&o, &r);
        assert_int_equal(r.err, 0);
        assert_int_equal(r.lost + r.banned, 0);
    }
    assert_int_equal(spared, 0);
}

static void one_honest_node_is_enough(void **s)
{
    (void)s;
    unsigned struck = 0, again = 0;
    for (uint64_t seed = 1000; seed < 1300; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.fault = seed % 3 ? SIM_FAULTS : SIM_LIE;
        o.faulty = o.nodes - 1;
        o.fault_early = seed % 2;
        run(&o, &r);
        if (r.err) fail_msg("seed %llu: %d %s", (unsigned long long)seed, r.err, r.message);
        struck += r.struck;
        again += r.repeated > 0;
    }
    assert_true(struck > 300 && again > 80);
    assert_int_equal(spared, 0);
}

static void without_an_honest_node_the_result_is_correct_or_an_error(void **s)
{
    (void)s;
    unsigned refused = 0;
    for (uint64_t seed = 2000; seed < 2150; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.fault = SIM_FAULTS;
        o.faulty = o.nodes;
        o.fault_early = true;
        run(&o, &r);
        if (r.err && (r.err != SHERD_EFEWNODES || !r.message[0]))
            fail_msg("%d %s", r.err, r.message);
        refused += r.err != 0;
    }
    assert_true(refused > 20);
    assert_in_range(spared, 1, refused);
}

static void a_seed_determines_the_run(void **s)
{
    (void)s;
    for (uint64_t seed = 3000; seed < 3020; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r, again;
        o.fault = SIM_FAULTS;
        o.faulty = o.nodes / 2;
        run(&o, &r);
        run(&o, &again);
        assert_int_equal(r.log_hash, again.log_hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults_every_product_is_correct),
        cmocka_unit_test(one_honest_node_is_enough),
        cmocka_unit_test(without_an_honest_node_the_result_is_correct_or_an_error),
        cmocka_unit_test(a_seed_determines_the_run),
    };
    return cmocka_run_group_tests_name("scheduler/blind (sim)", tests, begin, end);
}
