/*
 * The statistical audit as a whole: it does not accuse the scheme, and it detects each way to break
 * it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/controls.h"
#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "honest.h"
#include "tests/support/under_valgrind.h"

static const sherd__audit_options options = { .seed = 1 };

static size_t flagged(const sherd__findings *l, const char *test)
{
    size_t n = 0;
    for (size_t i = 0; i < l->len; i++)
        n += l->list[i].flagged && (!test || strcmp(l->list[i].test, test) == 0);
    return n;
}

/* Returns the smallest p of a statistic of a test (statistic NULL: any). */
static double smallest(const sherd__findings *l, const char *test, const char *statistic)
{
    double least = 0;
    for (size_t i = 0; i < l->len; i++)
        if (strcmp(l->list[i].test, test) == 0 && l->list[i].ln_p < least &&
            (!statistic || strcmp(l->list[i].statistic, statistic) == 0))
            least = l->list[i].ln_p;
    return least;
}

static const sherd_audit_finding *find(const sherd__findings *l, const char *statistic)
{
    for (size_t i = 0; i < l->len; i++)
        if (strcmp(l->list[i].statistic, statistic) == 0) return &l->list[i];
    fail_msg("no finding of %s", statistic);
    return NULL;
}

static void judge(sherd__findings *l)
{
    assert_int_equal(sherd__findings_judge(l, SHERD__AUDIT_FAMILY), 0);
}

/* ---- judging --------------------------------------------------------------------------------- */

static void holms_procedure_stops_at_the_first_test_that_passes(void **s)
{
    static const double p[] = { 0.012, 0.3, 0.001, 0.026, 0.012, 0.9 };
    static const bool want[] = { false, false, true, false, false, false };
    sherd__findings l = { 0 };
    (void)s;
    for (size_t i = 0; i < 6; i++) {
        sherd_audit_finding f = sherd__finding_of("t", "s", false);
        f.ln_p = log(p[i]);
        assert_int_equal(sherd__findings_add(&l, &f), 0);
    }
    sherd_audit_finding measured = sherd__finding_of("t", "m", false), control = measured;
    measured.flagged = true;
    control.control = true;
    control.ln_p = log(1e-11);
    assert_int_equal(sherd__findings_add(&l, &measured), 0);
    assert_int_equal(sherd__findings_add(&l, &control), 0);
    assert_int_equal(sherd__findings_judge(&l, 0.05), 0);
    assert_int_equal(l.tests, 6);
    for (size_t i = 0; i < 6; i++) assert_int_equal(l.list[i].flagged, want[i]);
    assert_true(fabs(l.list[2].ln_threshold - log(0.05 / 6)) < 1e-12);
    assert_true(fabs(l.list[5].ln_threshold - log(0.05)) < 1e-12);
    assert_true(l.list[6].flagged && !l.list[7].flagged); /* 1e-11 is not sufficient for a
                                                           * control */
    /* 0.012 fails 0.05/5 at second place: 0.026 would pass 0.05/2 later, but must not be
     * flagged. */
    l.list[0].ln_p = l.list[4].ln_p = log(0.009);
    assert_int_equal(sherd__findings_judge(&l, 0.05), 0);
    assert_true(l.list[0].flagged && l.list[4].flagged && !l.list[3].flagged);
    l.list[3].ln_p = log(0.016); /* <= 0.05/3 */
    assert_int_equal(sherd__findings_judge(&l, 0.05), 0);
    assert_true(l.list[3].flagged && !l.list[1].flagged);
    sherd__findings_fini(&l);
}

/* ---- the scheme is not accused --------------------------------------------------------------- */

static void audit_both(sherd__findings *l, honest *a, honest *b, const sherd__audit_options *opt)
{
    sherd__seen seen[2] = { a->seen, b->seen };
    assert_int_equal(sherd__audit_uniformity(l, seen, 2, opt, NULL), 0);
    for (uint32_t size = 1; size <= a->code.masks; size++)
        for (int e = 0; e < 2; e++)
            assert_int_equal(sherd__audit_coalitions(l, &seen[e], size, opt, NULL, NULL), 0);
}

static void correct_shares_are_not_accused_in_200_audits(void **s)
{
    static const uint32_t shapes[][3] = {
        { 3, 1, 7 }, { 3, 1, 8 }, { 2, 2, 8 }, { 5, 2, 16 }, { 1, 3, 7 }
    };
    size_t tests = 0, below = 0;
    const uint64_t audits = under_valgrind() ? 10 : 200;
    (void)s;
    for (uint64_t seed = 0; seed < audits; seed++) {
        const uint32_t *k = shapes[seed % 5];
        sherd__audit_options opt = { .seed = seed, .coalitions = 10 };
        sherd__findings l = { 0 };
        honest a, b;
        honest_make(&a, k[0], k[1], k[2], 9, 15, 2 * seed + 1000);
        honest_make(&b, k[0], k[1], k[2], 9, 11, 2 * seed + 1001);
        audit_both(&l, &a, &b, &opt);
        judge(&l);
        assert_int_equal(flagged(&l, NULL), 0);
        assert_int_equal((int)find(&l, "coalitions that cancel the masks")->value, 0);
        tests += l.tests;
        for (size_t i = 0; i < l.len; i++) below += l.list[i].ln_p < log(1e-3);
        sherd__findings_fini(&l);
        honest_free(&a);
        honest_free(&b);
    }
    /* The tests have power: there are as many small p-values as expected by chance, within bounds
     * that only err downwards. */
    assert_true(tests > 250 * audits);
    if (under_valgrind()) return; /* too few */
    assert_true((double)below < 1.2e-3 * (double)tests && (double)below > 1e-4 * (double)tests);
}

/* ---- each break is detected ------------------------------------------------------------------ */

static void every_control_is_flagged(void **s)
{
    static const uint32_t shapes[][3] = {
        { 5, 2, 16 }, { 1, 1, 3 }, { 3, 1, 7 }, { 2, 3, 8 }, { 47, 1, 96 }
    };
    (void)s;
    for (size_t k = 0; k < (under_valgrind() ? 2 : 5); k++) {
        sherd__seen_code c = { .blocks = shapes[k][0],
                               .masks = shapes[k][1],
                               .shares = shapes[k][2],
                               .primes_len = 2,
                               .primes = { 5931641, 5931637 } };
        sherd__audit_options opt = { .seed = k, .rounds = under_valgrind() ? 120 : 300 };
        sherd__findings l = { 0 };
        sherd__control missed = SHERD__CONTROLS;
        assert_int_equal(sherd__audit_controls(&l, &c, (sherd__code_blocks){ 0, 0, NULL }, &opt,
                                               NULL),
                         0);
        assert_int_equal(l.len, SHERD__CONTROLS - 2 + 2 * SHERD__CONTROL_PRIMES);
        assert_true(sherd__controls_flagged(&l, &missed) == false); /* not yet judged */
        judge(&l);
        for (size_t i = 0; i < l.len; i++)
            if (!l.list[i].flagged) fail_msg("%s: %s", l.list[i].subject, l.list[i].sentence);
        assert_true(sherd__controls_flagged(&l, NULL));
        l.list[2].flagged = l.list[12].flagged = l.list[13].flagged = false;
        assert_false(sherd__controls_flagged(&l, &missed));
        assert_int_equal(missed, SHERD__CONTROL_COALITION);
        sherd__findings_fini(&l);
    }
}

static void bytes_of_more_than_t_shares_look_random_and_their_combination_does_not(void **s)
{
    honest h;
    sherd__findings raw = { 0 }, together = { 0 };
    (void)s;
    honest_make(&h, 3, 1, 7, 32, 40, 5);
    assert_int_equal(sherd__audit_uniformity(&raw, &h.seen, 1, &options, NULL), 0);
    judge(&raw);
    assert_int_equal(flagged(&raw, NULL), 0);
    uint32_t drawn = 0;
    assert_int_equal(sherd__audit_coalitions(&together, &h.seen, 2, &options, &drawn, NULL), 0);
    judge(&together);
    assert_int_equal(drawn, 21);
    const sherd_audit_finding *open = find(&together, "coalitions that cancel the masks");
    assert_true(open->value == 21 && open->flagged && open->control);
    assert_true(smallest(&together, "coalition", "smallness") < -10000);
    assert_true(smallest(&together, "coalition", "repeats") < -100);
    /* For an attacker that only guesses the blocks: all 1280 entries agree, each by chance with
     * probability 1/5931641. */
    assert_true(fabs(smallest(&together, "coalition", "entries as guessed") + 1280 * log(5931641)) <
                1);
    assert_true(smallest(&together, "reconstruction", "R^2 of a linear attacker") < -10);
    sherd__findings_fini(&raw);
    sherd__findings_fini(&together);
    honest_free(&h);
}

static void k_plus_t_shares_rebuild_every_entry(void **s)
{
    static const uint32_t shapes[][3] = { { 3, 1, 7 }, { 2, 2, 8 }, { 4, 3, 16 }, { 1, 1, 3 } };
    (void)s;
    for (size_t k = 0; k < 4; k++) {
        honest h;
        sherd__findings l = { 0 };
        sherd__audit_options opt = { .seed = k, .coalitions = 20 };
        uint32_t all = shapes[k][0] + shapes[k][1], drawn;
        honest_make(&h, shapes[k][0], shapes[k][1], shapes[k][2], 20, 16, k);
        assert_int_equal(sherd__audit_coalitions(&l, &h.seen, all, &opt, &drawn, NULL), 0);
        assert_true(drawn >= 1 && drawn <= 20);
        size_t rebuilt = 0;
        for (size_t i = 0; i < l.len; i++) {
            const sherd_audit_finding *f = &l.list[i];
            if (strcmp(f->statistic, "entries rebuilt exactly") != 0) continue;
            assert_true(f->value == 1);
            rebuilt++;
        }
        assert_int_equal(rebuilt, drawn);
        assert_true(find(&l, "R^2 of a linear attacker")->value > 0.99);
        sherd__findings_fini(&l);
        /* With one share less there are combinations, but none gives a block. */
        if (all - 1 > shapes[k][1]) {
            assert_int_equal(sherd__audit_coalitions(&l, &h.seen, all - 1, &opt, NULL, NULL), 0);
            for (size_t i = 0; i < l.len; i++)
                assert_string_not_equal(l.list[i].statistic, "entries rebuilt exactly");
            sherd__findings_fini(&l);
        }
        honest_free(&h);
    }
}

static void a_domain_with_two_shares_is_found_within_t(void **s)
{
    honest h;
    sherd__findings l = { 0 };
    (void)s;
    honest_make(&h, 3, 1, 7, 16, 16, 8);
    h.domains[5] = 2;
    assert_int_equal(sherd__audit_coalitions(&l, &h.seen, 1, &options, NULL, NULL), 0);
    judge(&l);
    const sherd_audit_finding *open = find(&l, "coalitions that cancel the masks");
    assert_true(open->value == 1 && open->flagged && !open->control);
    assert_true(flagged(&l, "coalition") > 4);
    for (size_t i = 0; i < l.len; i++)
        if (l.list[i].flagged && !isnan(l.list[i].ln_p))
            assert_string_equal(l.list[i].who, "domain 3");
    sherd__findings_fini(&l);
    honest_free(&h);
}

static void shares_that_were_not_sent_are_left_out(void **s)
{
    honest h;
    sherd__findings l = { 0 };
    uint32_t drawn;
    (void)s;
    honest_make(&h, 1, 1, 4, 16, 16, 9);
    h.pointers[2] = NULL; /* share 1, first prime */
    assert_int_equal(sherd__audit_uniformity(&l, &h.seen, 1, &options, NULL), 0);
    for (size_t i = 0; i < l.len; i++) assert_string_not_equal(l.list[i].who, "domain 2");
    assert_int_equal(sherd__audit_coalitions(&l, &h.seen, 2, &options, &drawn, NULL), 0);
    assert_int_equal(drawn, 3);
    assert_int_equal(sherd__audit_coalitions(&l, &h.seen, 4, &options, &drawn, NULL), 0);
    assert_int_equal(drawn, 0);
    sherd__findings_fini(&l);
    honest_free(&h);
}

/* The rule: each value has a fresh mask. Here every row has the same masks. */
static void masks_that_repeat_in_every_row_are_found(void **s)
{
    honest h;
    sherd__findings l = { 0 };
    (void)s;
    honest_make(&h, 1, 1, 3, 24, 24, 10);
    /* Gives each row the mask of the first one: the first row's residue plus the difference of the
     * data. */
    for (size_t v = 0; v < 6; v++)
        for (size_t e = 24; e < 576; e++) {
            uint32_t p = h.code.primes[v % 2];
            uint32_t was = sherd__audit_residue(h.blocks[0][e % 24], p);
            uint32_t is = sherd__audit_residue(h.blocks[0][e], p);
            uint32_t x = h.residues[v * 576 + e % 24];
            uint64_t weight = p - 1 - v / 2; /* of the block in share i: -(i+1) */
            h.residues[v * 576 + e] = (uint32_t)((x + weight * (is + p - was)) % p);
        }
    assert_int_equal(sherd__audit_uniformity(&l, &h.seen, 1, &options, NULL), 0);
    judge(&l);
    assert_true(flagged(&l, "differences") > 0);
    assert_true(smallest(&l, "differences", NULL) < log(1e-12));
    sherd__findings_fini(&l);
    honest_free(&h);
}

/* The rule: each encoding has its own mask. The control has two operands; here one operand is
 * hidden twice under one key. */
static void a_mask_used_for_two_encodings_is_found_for_any_operands(void **s)
{
    honest a, b;
    sherd__findings l = { 0 };
    (void)s;
    for (uint32_t k = 1; k <= 7; k += 3) {
        honest_make(&a, k, 2, 9, 16, 20, 12);
        honest_make(&b, k, 2, 9, 16, 20, 12); /* the same seed gives the same masks and the same
                                               * operand */
        sherd__seen seen[2] = { a.seen, b.seen };
        assert_int_equal(sherd__audit_uniformity(&l, seen, 2, &options, NULL), 0);
        judge(&l);
        assert_true(smallest(&l, "differences", "repeats") < log(1e-12));
        assert_int_equal(flagged(&l, "uniformity"), 0);
        sherd__findings_fini(&l);
        honest_free(&a);
        honest_free(&b);
    }
}

/* At one node the mask vanishes from the sum of its shares, and from no difference. */
static void a_negated_mask_is_found_in_sums(void **s)
{
    sherd__seen_code c = {
        .blocks = 3, .masks = 2, .shares = 7, .primes_len = 2, .primes = { 5931641, 5931637 }
    };
    sherd__control_view v;
    sherd__findings l = { 0 };
    size_t sums = 0;
    (void)s;
    assert_int_equal(sherd__control_make(&v, SHERD__CONTROL_NEGATED, &c,
                                         (sherd__code_blocks){ 32, 40, NULL }, 3),
                     0);
    assert_int_equal(sherd__audit_uniformity(&l, v.seen, v.seen_len, &options, NULL), 0);
    judge(&l);
    for (size_t i = 0; i < l.len; i++) {
        if (!l.list[i].flagged) continue;
        assert_string_equal(l.list[i].test, "differences");
        assert_non_null(strstr(l.list[i].subject, "A plus B"));
        sums++;
    }
    assert_true(sums > 0 && smallest(&l, "differences", NULL) < -1000);
    sherd__findings_fini(&l);
    sherd__control_fini(&v);
}

/* After the loss of a node, operands are encoded again, with fewer blocks; here the old masks are
 * used again. */
static void a_mask_used_under_two_codes_is_found(void **s)
{
    honest a, b;
    sherd__findings l = { 0 };
    (void)s;
    honest_make(&a, 3, 1, 7, 16, 20, 21);
    honest_make(&b, 2, 1, 6, 24, 20, 21);
    b.domains[0] = 4; /* the domain that has share 0 of one code may have another share of the
                       * other */
    b.domains[4] = 0;
    sherd__seen seen[2] = { a.seen, b.seen };
    assert_int_equal(sherd__audit_uniformity(&l, seen, 2, &options, NULL), 0);
    judge(&l);
    assert_int_equal(flagged(&l, "uniformity"), 0);
    assert_true(smallest(&l, "differences", "smallness") < -1000);
    size_t domains = 0;
    for (size_t i = 0; i < l.len; i++)
        domains += strcmp(l.list[i].statistic, "smallness") == 0 && l.list[i].ln_p < -1000 &&
                   strstr(l.list[i].subject, "two primes");
    assert_int_equal(domains, 6);
    sherd__findings_fini(&l);
    honest_free(&b);
    /* Fresh masks under two codes are not accused. */
    honest_make(&b, 2, 1, 6, 24, 20, 22);
    seen[1] = b.seen;
    assert_int_equal(sherd__audit_uniformity(&l, seen, 2, &options, NULL), 0);
    judge(&l);
    assert_int_equal(flagged(&l, NULL), 0);
    sherd__findings_fini(&l);
    honest_free(&a);
    honest_free(&b);
}

/* The rule: residues are drawn by rejection from enough bits. test_uniform shows from which number
 * of values on a bias is detected. */
static void masks_reduced_from_24_bits_are_found(void **s)
{
    honest h;
    sherd__findings l = { 0 };
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, 3);
    (void)s;
    honest_make(&h, 1, 1, 2, 160, 160, 13);
    for (size_t i = 0; i < 4 * 25600; i++) {
        uint64_t word = sherd__entropy_u64(&e);
        h.residues[i] = (uint32_t)((word >> 40) % h.code.primes[i / 25600 % 2]);
    }
    assert_int_equal(sherd__audit_uniformity(&l, &h.seen, 1, &options, NULL), 0);
    judge(&l);
    assert_true(smallest(&l, "uniformity", "chi2 of high bits") < log(1e-12));
    assert_true(flagged(&l, "uniformity") >= 4);
    sherd__findings_fini(&l);
    honest_free(&h);
}

/* ---- inputs of the audit --------------------------------------------------------------------- */

static void invalid_views_are_refused(void **s)
{
    honest h;
    sherd__findings l = { 0 };
    sherd_diag d = { 0 };
    (void)s;
    honest_make(&h, 2, 1, 4, 4, 4, 14);
    h.residues[37] = h.code.primes[0];
    assert_int_equal(sherd__audit_uniformity(&l, &h.seen, 1, &options, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "share 1, element 5"));
    assert_int_equal(sherd__audit_coalitions(&l, &h.seen, 1, &options, NULL, NULL), SHERD_EINVAL);
    h.residues[37] = 0;
    h.seen.rows = 0;
    assert_int_equal(sherd__audit_uniformity(&l, &h.seen, 1, &options, NULL), SHERD_EINVAL);
    h.seen.rows = SIZE_MAX / 2;
    assert_int_equal(sherd__audit_uniformity(&l, &h.seen, 1, &options, NULL), SHERD_EINVAL);
    h.seen.rows = 4;
    h.code.primes[1] = 4;
    assert_int_equal(sherd__audit_coalitions(&l, &h.seen, 1, &options, NULL, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__audit_uniformity(&l, NULL, 0, &options, NULL), 0);
    assert_int_equal(l.len, 0);
    honest_free(&h);
}

static void single_entries_are_audited(void **s)
{
    honest h, g;
    sherd__findings l = { 0 };
    (void)s;
    honest_make(&h, 1, 1, 3, 1, 1, 15);
    honest_make(&g, 1, 1, 3, 1, 1, 16);
    audit_both(&l, &h, &g, &options);
    assert_int_equal(sherd__audit_coalitions(&l, &h.seen, 2, &options, NULL, NULL), 0);
    judge(&l);
    assert_int_equal(flagged(&l, "uniformity"), 0);
    assert_true(find(&l, "entries rebuilt exactly")->value == 1);
    sherd__findings_fini(&l);
    honest_free(&h);
    honest_free(&g);
}

static void equal_seeds_give_equal_reports(void **s)
{
    honest h;
    sherd__findings l[2] = { { 0 }, { 0 } };
    sherd__audit_options opt = { .seed = 4, .coalitions = 5 };
    (void)s;
    honest_make(&h, 2, 2, 9, 8, 8, 17);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sherd__audit_uniformity(&l[i], &h.seen, 1, &opt, NULL), 0);
        assert_int_equal(sherd__audit_coalitions(&l[i], &h.seen, 3, &opt, NULL, NULL), 0);
    }
    assert_int_equal(l[0].len, l[1].len);
    for (size_t i = 0; i < l[0].len; i++) {
        assert_string_equal(l[0].list[i].who, l[1].list[i].who);
        assert_string_equal(l[0].list[i].sentence, l[1].list[i].sentence);
    }
    sherd__findings_fini(&l[0]);
    sherd__findings_fini(&l[1]);
    honest_free(&h);
}

static void every_failed_allocation_is_reported(void **s)
{
    honest h, g;
    int err = SHERD_ENOMEM;
    (void)s;
    honest_make(&h, 1, 1, 3, 8, 8, 18);
    honest_make(&g, 1, 1, 3, 8, 8, 19);
    sherd__seen seen[2] = { h.seen, g.seen };
    for (size_t nth = 1; err != 0; nth++) {
        sherd__findings l = { 0 };
        sherd__alloc_fail_nth(nth);
        err = sherd__audit_uniformity(&l, seen, 2, &options, NULL);
        if (err == 0) err = sherd__audit_coalitions(&l, &h.seen, 2, &options, NULL, NULL);
        if (err == 0) err = sherd__findings_judge(&l, 1e-6);
        sherd__alloc_fail_nth(0);
        assert_true(err == 0 || err == SHERD_ENOMEM);
        sherd__findings_fini(&l);
    }
    honest_free(&h);
    honest_free(&g);
}

static void controls_that_cannot_be_made_are_refused(void **s)
{
    sherd__seen_code c = {
        .blocks = 2, .masks = 1, .shares = 3, .primes_len = 2, .primes = { 5931641, 5931637 }
    };
    sherd__control_view v;
    (void)s;
    for (int which = 0; which < SHERD__CONTROLS; which++) {
        int err = SHERD_ENOMEM;
        if (which == SHERD__CONTROL_STREAM) c.primes[0] = 251, c.primes[1] = 241;
        for (size_t nth = 1; err != 0; nth++) {
            sherd__alloc_fail_nth(nth);
            err = sherd__control_make(&v, (sherd__control)which, &c,
                                      (sherd__code_blocks){ 3, 4, NULL }, 1);
            sherd__alloc_fail_nth(0);
            assert_true(err == 0 || (err == SHERD_ENOMEM && !v.memory));
        }
        sherd__control_fini(&v);
    }
    assert_int_equal(sherd__control_make(&v, SHERD__CONTROLS, &c,
                                         (sherd__code_blocks){ 3, 4, NULL }, 1),
                     SHERD_EINVAL);
    int err = sherd__control_make(&v, SHERD__CONTROL_REUSE, &c, (sherd__code_blocks){ 0, 4, NULL },
                                  1);
    assert_int_equal(err, SHERD_EINVAL);
    c.shares = 1; /* T + 1 domains are more than there are */
    err = sherd__control_make(&v, SHERD__CONTROL_REUSE, &c, (sherd__code_blocks){ 3, 4, NULL }, 1);
    assert_int_equal(err, SHERD_EINVAL);
    assert_string_equal(sherd__control_name(SHERD__CONTROL_POINT), "alpha = beta");
    assert_string_equal(sherd__control_name(SHERD__CONTROLS), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holms_procedure_stops_at_the_first_test_that_passes),
        cmocka_unit_test(correct_shares_are_not_accused_in_200_audits),
        cmocka_unit_test(every_control_is_flagged),
        cmocka_unit_test(bytes_of_more_than_t_shares_look_random_and_their_combination_does_not),
        cmocka_unit_test(k_plus_t_shares_rebuild_every_entry),
        cmocka_unit_test(a_domain_with_two_shares_is_found_within_t),
        cmocka_unit_test(shares_that_were_not_sent_are_left_out),
        cmocka_unit_test(masks_that_repeat_in_every_row_are_found),
        cmocka_unit_test(a_mask_used_for_two_encodings_is_found_for_any_operands),
        cmocka_unit_test(a_negated_mask_is_found_in_sums),
        cmocka_unit_test(a_mask_used_under_two_codes_is_found),
        cmocka_unit_test(masks_reduced_from_24_bits_are_found),
        cmocka_unit_test(invalid_views_are_refused),
        cmocka_unit_test(single_entries_are_audited),
        cmocka_unit_test(equal_seeds_give_equal_reports),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(controls_that_cannot_be_made_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
