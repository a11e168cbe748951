/* The ledger compared with a plain table of what every domain has seen, for gifts in random
 * order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "scheduler/plan/ledger.h"

#define MOST 6u

/* A layout with a distinct size for every part. */
typedef struct layout {
    sherd__scheme_shape shape;
    uint64_t a[MOST][MOST], b[MOST][MOST]; /* by slot and panel; slot and tile */
} layout;

static void get_shape(const void *ctx, sherd__scheme_shape *out)
{
    *out = ((const layout *)ctx)->shape;
}

static void get_entries(const void *ctx, sherd__cell c, uint64_t *a, uint64_t *b)
{
    const layout *l = ctx;
    *a = l->a[c.slot][c.panel];
    *b = l->b[l->shape.shared ? 0 : c.slot][c.tile];
}

static const sherd__hiding_ops ops = { .shape = get_shape, .entries = get_entries };

static sherd__seeded rng_state;
static sherd__entropy rng;

static uint32_t below(uint32_t n)
{
    return (uint32_t)sherd__entropy_below(&rng, n);
}

static void draw(layout *l)
{
    *l = (layout){ .shape = { .slots = 1 + below(MOST),
                              .tiles = 1 + below(MOST),
                              .panels = 1 + below(MOST),
                              .shared = below(2) } };
    for (unsigned s = 0; s < MOST; s++) {
        for (unsigned i = 0; i < MOST; i++) {
            l->a[s][i] = below(4) ? below(100) : 0;
            l->b[s][i] = below(4) ? below(100) : 0;
        }
    }
}

/* The gifts to domains, as a plain table. */
typedef struct table {
    bool left[MOST][MOST][MOST], right[MOST][MOST][MOST]; /* domain, slot, panel or tile */
} table;

static double seen(const layout *l, const table *t, uint32_t domain, int which)
{
    double part = 0, whole = 0;
    for (uint32_t s = 0; s < l->shape.slots; s++) {
        for (uint32_t i = 0; i < (which ? l->shape.tiles : l->shape.panels); i++) {
            if (which && l->shape.shared && s) continue;
            double x = (double)(which ? l->b[s][i] : l->a[s][i]);
            whole += x;
            part += (which ? t->right : t->left)[domain][s][i] ? x : 0;
        }
    }
    return whole > 0 ? part / whole : 0;
}

static void grants_in_any_order_agree_with_a_plain_table(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 400; round++) {
        layout l;
        table t = { 0 };
        uint32_t domain_of[MOST], domains = 1 + below(MOST);
        sherd__exposure_ledger *led;
        draw(&l);
        for (unsigned s = 0; s < MOST; s++) domain_of[s] = below(domains);
        double bound = 0.05 * (1 + below(20));
        sherd__hiding h = { &ops, &l };
        sherd__ledger_options o = { &h, domains, bound, domain_of };
        assert_int_equal(sherd__ledger_new(&led, &o), SHERD_OK);
        memset(domain_of, 0xff, sizeof domain_of); /* it was copied */
        for (unsigned i = 0; i < 120; i++) {
            sherd__cell c = { below(l.shape.slots), below(l.shape.tiles), below(l.shape.panels) };
            uint32_t d = below(domains), rs = l.shape.shared ? 0 : c.slot;
            table after = t;
            after.left[d][c.slot][c.panel] = after.right[d][rs][c.tile] = true;
            bool may = true;
            for (int w = 0; w < 2; w++) {
                double now = seen(&l, &t, d, w), then = seen(&l, &after, d, w), whole = 0;
                for (uint32_t s = 0; s < l.shape.slots; s++)
                    for (uint32_t q = 0; q < (w ? l.shape.tiles : l.shape.panels); q++)
                        whole += (double)(w ? (l.shape.shared && s ? 0 : l.b[s][q]) : l.a[s][q]);
                may = may && (then == now || then * whole <= bound * whole + 0.5 + 1e-9);
            }
            assert_int_equal(sherd__ledger_may(led, d, c), may);
            assert_int_equal(sherd__ledger_give(led, d, c), may ? SHERD_OK : SHERD_EEXPOSURE);
            if (may) t = after;
            for (int w = 0; w < 2; w++)
                assert_true(fabs(sherd__ledger_fraction(led, d, w) - seen(&l, &t, d, w)) < 1e-12);
        }
        sherd__ledger_free(led);
    }
}

static void a_plan_always_fits_its_own_bound(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        layout l;
        uint32_t domain_of[MOST], domains = 1 + below(MOST);
        sherd__exposure_ledger *led;
        draw(&l);
        for (unsigned s = 0; s < MOST; s++) domain_of[s] = below(domains);
        sherd__hiding h = { &ops, &l };
        sherd__ledger_options o = { &h, domains, 0, domain_of };
        assert_int_equal(sherd__ledger_new(&led, &o), SHERD_OK);
        for (uint32_t s = 0; s < l.shape.slots; s++)
            for (uint32_t q = 0; q < l.shape.tiles; q++)
                for (uint32_t p = 0; p < l.shape.panels; p++)
                    assert_int_equal(sherd__ledger_give(led, domain_of[s],
                                                        (sherd__cell){ s, q, p }),
                                     SHERD_OK);
        double most = 0, all = 0;
        for (uint32_t d = 0; d < domains; d++) {
            double x = sherd__ledger_fraction(led, d, 0);
            most = x > most ? x : most;
            all += x;
        }
        assert_true(fabs(sherd__ledger_bound(led, 0) - 2 * most) < 1e-12);
        assert_true(all == 0 || fabs(all - 1) < 1e-12);
        sherd__ledger_free(led);
    }
}

static void nodes_of_one_domain_share_one_account(void **state)
{
    (void)state;
    layout l = { .shape = { .slots = 4, .tiles = 1, .panels = 1 } };
    for (unsigned s = 0; s < 4; s++) l.a[s][0] = l.b[s][0] = 25;
    uint32_t domain_of[] = { 0, 0, 1, 2 };
    sherd__hiding h = { &ops, &l };
    sherd__ledger_options o = { &h, 3, 0.5, domain_of };
    sherd__exposure_ledger *led;
    assert_int_equal(sherd__ledger_new(&led, &o), SHERD_OK);
    assert_int_equal(sherd__ledger_give(led, 0, (sherd__cell){ 0, 0, 0 }), SHERD_OK);
    assert_int_equal(sherd__ledger_give(led, 0, (sherd__cell){ 1, 0, 0 }), SHERD_OK);
    assert_int_equal(sherd__ledger_give(led, 0, (sherd__cell){ 1, 0, 0 }), SHERD_OK); /* again */
    assert_int_equal(sherd__ledger_give(led, 0, (sherd__cell){ 2, 0, 0 }), SHERD_EEXPOSURE);
    assert_true(sherd__ledger_fraction(led, 0, 0) == 0.5);
    assert_int_equal(sherd__ledger_give(led, 1, (sherd__cell){ 2, 0, 0 }), SHERD_OK);
    sherd__ledger_free(led);
}

static void the_next_left_operand_starts_at_zero_exposure_and_the_right_one_continues(void **state)
{
    (void)state;
    layout l = { .shape = { .slots = 2, .tiles = 1, .panels = 2 } };
    for (unsigned s = 0; s < 2; s++) l.a[s][0] = l.a[s][1] = l.b[s][0] = 10;
    uint32_t domain_of[] = { 0, 1 };
    sherd__hiding h = { &ops, &l };
    sherd__ledger_options o = { &h, 2, 0, domain_of };
    sherd__exposure_ledger *led;
    assert_int_equal(sherd__ledger_new(&led, &o), SHERD_OK);
    assert_int_equal(sherd__ledger_give(led, 0, (sherd__cell){ 0, 0, 1 }), SHERD_OK);
    l.shape.panels = 1; /* like plain with one row: slot 0 has all of it */
    l.a[1][0] = 0;
    sherd__ledger_next_left(led);
    assert_true(sherd__ledger_fraction(led, 0, 0) == 0);
    assert_true(sherd__ledger_fraction(led, 0, 1) == 0.5);
    assert_true(sherd__ledger_bound(led, 0) == 2);
    assert_int_equal(sherd__ledger_give(led, 0, (sherd__cell){ 0, 0, 0 }), SHERD_OK);
    assert_true(sherd__ledger_fraction(led, 0, 0) == 1);
    sherd__ledger_free(led);
    sherd__ledger_free(NULL);
}

/* Divides B of four slots with 30 entries each into `tiles`. */
static void cut(layout *l, uint32_t tiles)
{
    *l = (layout){ .shape = { .slots = 4, .tiles = tiles, .panels = 1 } };
    for (unsigned s = 0; s < 4; s++) {
        l->a[s][0] = 1;
        for (unsigned t = 0; t < tiles; t++) l->b[s][t] = 30 / tiles;
    }
}

static sherd__exposure_ledger *followed(layout *l, sherd__exposure_account *account, unsigned side,
                                        double bound)
{
    static const uint32_t domain_of[] = { 0, 1, 2, 3 };
    sherd__exposure_ledger *led;
    sherd__hiding h = { &ops, l };
    sherd__ledger_options o = { &h, 4, bound, domain_of };
    assert_int_equal(sherd__ledger_new(&led, &o), SHERD_OK);
    assert_int_equal(sherd__ledger_follow(led, account, side, NULL), 0);
    return led;
}

static void exposure_of_a_kept_operand_counts_in_every_later_ledger(void **state)
{
    (void)state;
    layout l;
    sherd__exposure_account *account;
    assert_int_equal(sherd__exposure_account_new(&account, 4, 4), SHERD_OK);
    cut(&l, 1);
    sherd__exposure_ledger *led = followed(&l, account, 0, 0);
    assert_true(sherd__ledger_bound(led, 1) == 0.5);
    assert_int_equal(sherd__ledger_give(led, 0, (sherd__cell){ 0, 0, 0 }), SHERD_OK);
    assert_int_equal(sherd__ledger_give(led, 0, (sherd__cell){ 3, 0, 0 }),
                     SHERD_OK); /* node 3 died */
    sherd__ledger_free(led);

    cut(&l, 3); /* sent again, divided otherwise */
    led = followed(&l, account, 0, 0);
    assert_true(sherd__ledger_fraction(led, 0, 1) == 0.5);
    for (uint32_t t = 0; t < 3; t++) { /* the same entries cost nothing, others do not fit */
        assert_int_equal(sherd__ledger_give(led, 0, (sherd__cell){ 0, t, 0 }), SHERD_OK);
        assert_false(sherd__ledger_may(led, 0, (sherd__cell){ 2, t, 0 }));
        assert_true(sherd__ledger_may(led, 1, (sherd__cell){ 2, t, 0 }));
    }
    assert_true(sherd__ledger_fraction(led, 0, 1) == 0.5);
    sherd__ledger_free(led);
    sherd__exposure_account_free(account);
}

static void both_orientations_of_an_operand_share_one_account(void **state)
{
    (void)state;
    layout l;
    sherd__exposure_account *account;
    uint32_t domain;
    assert_int_equal(sherd__exposure_account_new(&account, 4, 4), SHERD_OK);
    cut(&l, 1);
    sherd__exposure_ledger *rows = followed(&l, account, 0, 0.4), *cols;
    assert_true(sherd__ledger_planned(rows, 1, &domain) == 0.25);
    assert_int_equal(sherd__ledger_give(rows, 1, (sherd__cell){ 1, 0, 0 }), SHERD_OK);
    cols = followed(&l, account, 1, 0.4);
    assert_true(sherd__ledger_planned(cols, 1, &domain) == 0.5);
    assert_true(sherd__ledger_fraction(cols, 1, 1) == 0.25);
    assert_int_equal(sherd__ledger_give(cols, 1, (sherd__cell){ 1, 0, 0 }), SHERD_EEXPOSURE);
    assert_int_equal(sherd__ledger_give(rows, 1, (sherd__cell){ 1, 0, 0 }), SHERD_OK);
    sherd__ledger_free(cols);
    cols = followed(&l, account, 1, 0); /* the plans of both, twice */
    assert_true(sherd__ledger_bound(cols, 1) == 1);
    sherd__ledger_free(cols);
    cols = followed(&l, account, 1, 1);
    for (uint32_t s = 0; s < 4; s++)
        assert_int_equal(sherd__ledger_give(cols, 1, (sherd__cell){ s, 0, 0 }), SHERD_OK);
    assert_true(sherd__ledger_fraction(cols, 1, 1) == 1); /* at most all of it */
    sherd__ledger_free(rows);
    sherd__ledger_free(cols);
    sherd__exposure_account_free(account);
}

/* Three parts of one operand; each slot has 30 entries of every part, 90 of the whole. */
static void exposure_of_parts_counts_in_proportion_to_the_whole(void **state)
{
    (void)state;
    layout l;
    sherd__exposure_account *account;
    sherd__exposure_ledger *led[4];
    static const uint32_t domain_of[] = { 0, 1, 2, 3 };
    static const uint64_t all[] = { 90, 90, 90, 90 };
    uint32_t domain;
    assert_int_equal(sherd__exposure_account_new(&account, 4, 4), SHERD_OK);
    cut(&l, 3);
    memset(l.a, 0, sizeof l.a); /* only B matters */
    sherd__hiding h = { &ops, &l };
    sherd__ledger_options o = { &h, 4, 1, domain_of };
    for (unsigned i = 0; i < 4; i++) { /* the fourth overlaps the second and the third */
        uint64_t from = i < 3 ? 30 * i : 45, before[] = { from, from, from, from };
        const sherd__ledger_whole whole = { before, all, 0.35 };
        assert_int_equal(sherd__ledger_new(&led[i], &o), SHERD_OK);
        assert_int_equal(sherd__ledger_follow(led[i], account, 0, &whole), SHERD_OK);
        assert_true(sherd__ledger_planned(led[i], 1, &domain) == 0.25);
    }
    for (unsigned i = 0; i < 3; i++) { /* the first block counts as all entries of the slot in it */
        for (uint32_t t = 0; t < 3; t++) {
            assert_int_equal(sherd__ledger_give(led[i], 1, (sherd__cell){ 1, t, 0 }), SHERD_OK);
            assert_true(sherd__ledger_fraction(led[0], 1, 1) == 30.0 * (i + 1) / 360);
        }
    }
    assert_int_equal(sherd__ledger_give(led[3], 1, (sherd__cell){ 1, 0, 0 }), SHERD_OK);
    assert_true(sherd__ledger_fraction(led[3], 1, 1) == 0.25); /* it has seen these entries */
    for (unsigned i = 0; i < 3; i++)                           /* 36 entries remain for the other
                                                                * parts */
        assert_int_equal(sherd__ledger_give(led[i], 1, (sherd__cell){ 2, 0, 0 }),
                         i == 0 ? SHERD_OK : SHERD_EEXPOSURE);
    assert_int_equal(sherd__ledger_give(led[3], 0, (sherd__cell){ 1, 2, 0 }), SHERD_OK);
    assert_true(sherd__ledger_fraction(led[3], 0, 1) == 30.0 / 360);
    for (unsigned i = 0; i < 4; i++) sherd__ledger_free(led[i]);
    sherd__exposure_account_free(account);
}

static void a_returning_node_costs_nothing_and_its_replacement_counts(void **state)
{
    (void)state;
    layout l;
    sherd__exposure_account *account;
    assert_int_equal(sherd__exposure_account_new(&account, 4, 4), SHERD_OK);
    cut(&l, 2);
    sherd__exposure_ledger *led = followed(&l, account, 0, 0.5);
    for (unsigned session = 0; session < 3; session++) { /* its blocks are sent in each session */
        for (uint32_t t = 0; t < 2; t++)
            assert_int_equal(sherd__ledger_give(led, 2, (sherd__cell){ 2, t, 0 }), SHERD_OK);
        assert_true(sherd__ledger_fraction(led, 2, 0) == 0.25);
        assert_true(sherd__ledger_fraction(led, 2, 1) == 0.25);
    }
    assert_int_equal(sherd__ledger_give(led, 3, (sherd__cell){ 2, 1, 0 }), SHERD_OK);
    assert_true(sherd__ledger_fraction(led, 3, 0) == 0.25);
    assert_true(sherd__ledger_fraction(led, 3, 1) == 0.125);
    assert_true(sherd__ledger_fraction(led, 2, 1) == 0.25);
    sherd__ledger_free(led);
    sherd__exposure_account_free(account);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    layout l = { .shape = { .slots = 2, .tiles = 1, .panels = 2 } };
    uint32_t domain_of[] = { 0, 1 };
    sherd__hiding h = { &ops, &l };
    sherd__ledger_options o = { &h, 2, 0, domain_of };
    int err = SHERD_ENOMEM;
    for (size_t n = 1; err; n++) {
        sherd__exposure_ledger *led;
        (void)sherd__alloc_fail_nth(n);
        err = sherd__ledger_new(&led, &o);
        (void)sherd__alloc_fail_nth(0);
        assert_true(err ? !led && err == SHERD_ENOMEM : led != NULL);
        sherd__ledger_free(led);
        assert_true(n < 20);
    }
}

static int begin(void **state)
{
    (void)state;
    rng = sherd__entropy_seeded(&rng_state, 5);
    return 0;
}

/* For any plan or repeated send: a domain has one share, and a share one domain, for good. */
static void two_shares_never_meet_in_one_domain(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        layout l;
        uint32_t slot_of[MOST], holder[MOST], domain_of[MOST] = { 0 }, domains = 1 + below(MOST);
        sherd__exposure_ledger *led;
        draw(&l);
        l.shape.threshold = 1;
        memset(slot_of, 0xff, sizeof slot_of);
        memset(holder, 0xff, sizeof holder);
        sherd__hiding h = { &ops, &l };
        sherd__ledger_options o = { &h, domains, 1, domain_of }; /* a malicious plan: everything to
                                                                  * one domain */
        assert_int_equal(sherd__ledger_new(&led, &o), SHERD_OK);
        for (unsigned i = 0; i < 100; i++) {
            sherd__cell c = { below(l.shape.slots), below(l.shape.tiles), below(l.shape.panels) };
            uint32_t d = below(domains);
            bool may = (slot_of[d] == UINT32_MAX || slot_of[d] == c.slot) &&
                       (holder[c.slot] == UINT32_MAX || holder[c.slot] == d);
            assert_int_equal(sherd__ledger_may(led, d, c), may);
            assert_int_equal(sherd__ledger_give(led, d, c), may ? SHERD_OK : SHERD_EEXPOSURE);
            if (may) slot_of[d] = c.slot, holder[c.slot] = d;
            /* For a further product, earlier shares still count. */
            if (below(10) == 0) sherd__ledger_next_left(led);
        }
        sherd__ledger_free(led);
    }
}

/* A plan that names a cell that does not exist is refused, for any bound. */
static void a_cell_outside_the_scheme_is_refused(void **state)
{
    (void)state;
    for (uint32_t threshold = 0; threshold < 2; threshold++) {
        layout l;
        draw(&l);
        l.shape = (sherd__scheme_shape){
            .slots = 2, .tiles = 3, .panels = 2, .threshold = threshold
        };
        sherd__hiding h = { &ops, &l };
        const uint32_t own[] = { 0, 1 };
        sherd__exposure_ledger *ledger;
        sherd__ledger_options o = {
            .hiding = &h, .domains = 2, .max_fraction = 1, .domain_of_slot = own
        };
        assert_int_equal(sherd__ledger_new(&ledger, &o), SHERD_OK);
        const struct {
            uint32_t domain;
            sherd__cell cell;
        } odd[] = { { 2, { 0, 0, 0 } },          { UINT32_MAX, { 0, 0, 0 } }, { 0, { 2, 0, 0 } },
                    { 0, { UINT32_MAX, 0, 0 } }, { 0, { 0, 3, 0 } },          { 0, { 0, 0, 2 } } };
        for (size_t n = 0; n < (threshold ? 4 : 6); n++) {
            assert_false(sherd__ledger_may(ledger, odd[n].domain, odd[n].cell));
            assert_int_equal(sherd__ledger_give(ledger, odd[n].domain, odd[n].cell),
                             SHERD_EEXPOSURE);
        }
        assert_int_equal(sherd__ledger_give(ledger, 1, (sherd__cell){ 1, 2, 1 }), SHERD_OK);
        sherd__ledger_free(ledger);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grants_in_any_order_agree_with_a_plain_table),
        cmocka_unit_test(a_cell_outside_the_scheme_is_refused),
        cmocka_unit_test(a_plan_always_fits_its_own_bound),
        cmocka_unit_test(nodes_of_one_domain_share_one_account),
        cmocka_unit_test(the_next_left_operand_starts_at_zero_exposure_and_the_right_one_continues),
        cmocka_unit_test(exposure_of_a_kept_operand_counts_in_every_later_ledger),
        cmocka_unit_test(both_orientations_of_an_operand_share_one_account),
        cmocka_unit_test(exposure_of_parts_counts_in_proportion_to_the_whole),
        cmocka_unit_test(a_returning_node_costs_nothing_and_its_replacement_counts),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(two_shares_never_meet_in_one_domain),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
