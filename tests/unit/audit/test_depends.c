/* Independence from the data: schemes that hide pass, and schemes that leave a trace are flagged;
 * one-time masks, their games and their controls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/controls.h"
#include "audit/modular.h"
#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "tests/unit/audit/honest.h"

#define ROWS 64u
#define COLS 128u
#define N ((size_t)ROWS * COLS)

static const sherd__audit_options options = { .seed = 5 };
static const sherd__seen_code one_time = { .blocks = 1,
                                           .masks = 1,
                                           .shares = 1,
                                           .primes_len = 2,
                                           .primes = { 5931641, 5931637 },
                                           .one_time = true };

/* Makes one share of `made` data: masked, except for a trace of the data. */
typedef enum trace { NOTHING, NO_MASK, ZEROS_SHOW, FAINT } trace;

typedef struct masked {
    double **blocks;
    uint32_t *x;
    const uint32_t *residues[2];
    sherd__seen seen;
} masked;

static void mask(masked *m, trace what)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, 77 + what);
    memset(m, 0, sizeof *m);
    assert_int_equal(sherd__audit_blocks(&m->blocks, 1, N), 0);
    sherd__audit_make_up(&e, m->blocks, 1, ROWS, COLS);
    m->x = sherd__calloc(2 * N, sizeof *m->x);
    for (unsigned q = 0; q < 2; q++) {
        uint32_t p = one_time.primes[q], *x = m->x + q * N;
        sherd__audit_draw(&e, p, N, x);
        for (size_t i = 0; i < N; i++) {
            uint32_t a = sherd__audit_residue(m->blocks[0][i], p);
            if (what == NO_MASK) x[i] = a;
            else if (what == ZEROS_SHOW && a == 0)
                x[i] = x[i] / 2; /* only values of the lower
                                                                     * half */
            else if (what == FAINT) x[i] = (uint32_t)(((uint64_t)x[i] / 2 + a * 10000ull) % p);
            else x[i] = (x[i] + a) % p;
        }
        m->residues[q] = x;
    }
    m->seen = (sherd__seen){
        .name = "A", .code = &one_time, .rows = ROWS, .cols = COLS, .residues = m->residues
    };
}

static void unmask(masked *m)
{
    sherd__free(m->blocks);
    sherd__free(m->x);
}

static size_t flagged(const sherd__findings *l, const char *statistic)
{
    size_t n = 0;
    for (size_t i = 0; i < l->len; i++)
        n += l->list[i].flagged && (!statistic || !strcmp(l->list[i].statistic, statistic));
    return n;
}

static void look(sherd__findings *l, trace what)
{
    masked m;
    mask(&m, what);
    memset(l, 0, sizeof *l);
    assert_int_equal(sherd__audit_independence(l, &m.seen, (const double *const *)m.blocks, N,
                                               &options, NULL),
                     0);
    for (size_t i = 0; i < l->len; i++) assert_string_equal(l->list[i].test, "independence");
    assert_int_equal(sherd__findings_judge(l, SHERD__AUDIT_FAMILY), 0);
    unmask(&m);
}

static void a_share_that_hides_does_not_depend_on_the_data(void **state)
{
    (void)state;
    sherd__findings l = { 0 };
    honest h;
    look(&l, NOTHING);
    assert_int_equal(l.len, 2 * 5 + 1); /* by prime: two tests of high and low bits, two subsets,
                                         * one correlation; and one fit */
    assert_int_equal(flagged(&l, NULL), 0);
    sherd__findings_fini(&l);
    honest_make(&h, 3, 2, 9, ROWS, COLS, 3);
    assert_int_equal(sherd__audit_independence(&l, &h.seen, (const double *const *)h.blocks, N,
                                               &options, NULL),
                     0);
    assert_int_equal(sherd__findings_judge(&l, SHERD__AUDIT_FAMILY), 0);
    assert_true(l.len > 9 * 3 * 2 * 5);
    assert_int_equal(flagged(&l, NULL), 0);
    sherd__findings_fini(&l);
    honest_free(&h);
}

static void each_trace_of_the_data_is_flagged(void **state)
{
    (void)state;
    sherd__findings l;
    look(&l, NO_MASK);
    assert_true(flagged(&l, "chi2 of high bits") && flagged(&l, "R^2 of a linear attacker"));
    sherd__findings_fini(&l);
    look(&l, ZEROS_SHOW); /* only if it is known which entries are zero */
    assert_true(flagged(&l, "chi2 of high bits") >= 2);
    sherd__findings_fini(&l);
    look(&l, FAINT);
    assert_true(flagged(&l, "correlation with the data") == 2);
    assert_true(flagged(&l, "R^2 of a linear attacker") == 1);
    sherd__findings_fini(&l);
}

static void no_game_against_one_time_masks_is_won_and_every_control_is_flagged(void **state)
{
    (void)state;
    sherd__findings l = { 0 };
    sherd__control missed;
    unsigned ran = 0;
    assert_int_equal(sherd__audit_share_games(&l, &one_time, (sherd__code_blocks){ 8, 8, NULL },
                                              &options, NULL),
                     0);
    assert_int_equal(l.len, 2);
    assert_int_equal(sherd__findings_judge(&l, SHERD__AUDIT_FAMILY), 0);
    assert_int_equal(flagged(&l, NULL), 0);
    assert_int_equal(sherd__audit_controls(&l, &one_time, (sherd__code_blocks){ 8, 8, NULL },
                                           &options, NULL),
                     0);
    assert_int_equal(sherd__findings_judge(&l, SHERD__AUDIT_FAMILY), 0);
    assert_true(sherd__controls_flagged(&l, &missed));
    for (size_t i = 0; i < l.len; i++) {
        ran += !strcmp(l.list[i].test, "control");
        if (l.list[i].control) assert_true(l.list[i].flagged);
    }
    assert_int_equal(ran, 5); /* permute, reuse, one mask for all primes, reuse at an offset,
                               * negation */
    assert_false(sherd__control_of(SHERD__CONTROL_COALITION, &one_time));
    assert_false(sherd__control_of(SHERD__CONTROL_POINT, &one_time));
    sherd__findings_fini(&l);
}

static void a_one_time_share_is_block_plus_mask(void **state)
{
    (void)state;
    sherd__seen_code odd = one_time;
    uint32_t w[2] = { 0 };
    sherd__modular_weights(&one_time, 1, 0, w);
    assert_true(w[0] == 1 && w[1] == 1);
    odd.blocks = 2;
    assert_int_equal(sherd__modular_check(&odd, NULL), SHERD_EINVAL);
}

/* Audits two products of a record together. Returns the number of flagged findings about both. */
static size_t reuse(sherd_audit *r, sherd__seen *first, sherd__seen *other)
{
    const char *names[16] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
    sherd__shares s = { .code = *first->code, .seen = first, .seen_len = 1 },
                  more = { .code = *other->code, .seen = other, .seen_len = 1 };
    const sherd__audit_plan plan = { .seed = 4, .domain_name = names };
    memset(r, 0, sizeof *r);
    assert_int_equal(sherd__audit_reuse(r, &s, &more, 1, &plan, NULL), 0);
    assert_int_equal(sherd__audit_judge(r, NULL), 0);
    sherd_audit_info info = { .size = sizeof info };
    assert_int_equal(sherd_audit_get(r, &info, NULL), 0);
    return (size_t)info.flagged;
}

static void masks_of_one_product_reused_in_another_are_found(void **state)
{
    (void)state;
    sherd_audit r;
    sherd__control_view v;
    honest h[2];
    for (unsigned i = 0; i < 2; i++) honest_make(&h[i], 2, 1, 5, ROWS, COLS, 40 + i);
    assert_int_equal(reuse(&r, &h[0].seen, &h[1].seen), 0);
    assert_true(r.findings.tests > 100);
    sherd__audit_fini(&r);
    assert_int_equal(reuse(&r, &h[0].seen, &h[0].seen), 0); /* the same share sent again */
    assert_int_equal(r.findings.len, 0);
    sherd__audit_fini(&r);
    assert_int_equal(sherd__control_make(&v, SHERD__CONTROL_REUSE, &h[0].code,
                                         (sherd__code_blocks){ ROWS, COLS, NULL }, 6),
                     0);
    size_t all = reuse(&r, &v.seen[0], &v.seen[1]), offset = 0, differences = 0;
    for (size_t i = 0; i < r.findings.len; i++) {
        const sherd_audit_finding *f = &r.findings.list[i];
        differences += f->flagged && !strcmp(f->test, "differences");
        offset += f->flagged && !strcmp(f->test, "offset");
    }
    assert_true(differences > 0 && offset > 0 && all == differences + offset);
    sherd__audit_fini(&r);
    sherd__control_fini(&v);
    assert_int_equal(sherd__control_make(&v, SHERD__CONTROL_OFFSET, &h[0].code,
                                         (sherd__code_blocks){ ROWS, COLS, NULL }, 6),
                     0);
    assert_true(reuse(&r, &v.seen[0], &v.seen[1]) > 0);
    for (size_t i = 0; i < r.findings.len; i++)
        if (r.findings.list[i].flagged) assert_string_equal(r.findings.list[i].test, "offset");
    sherd__audit_fini(&r);
    sherd__control_fini(&v);
    for (unsigned i = 0; i < 2; i++) honest_free(&h[i]);
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    masked m;
    mask(&m, NOTHING);
    for (size_t n = 1, reached = 1; reached; n++) {
        sherd__findings l = { 0 };
        sherd__alloc_fail_nth(n);
        int err = sherd__audit_independence(&l, &m.seen, (const double *const *)m.blocks, N,
                                            &options, NULL);
        reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
        sherd__findings_fini(&l);
    }
    unmask(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_that_hides_does_not_depend_on_the_data),
        cmocka_unit_test(each_trace_of_the_data_is_flagged),
        cmocka_unit_test(no_game_against_one_time_masks_is_won_and_every_control_is_flagged),
        cmocka_unit_test(a_one_time_share_is_block_plus_mask),
        cmocka_unit_test(masks_of_one_product_reused_in_another_are_found),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
