/* The distinguishing game: fair if the shares reveal nothing, won if they reveal anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/stats_internal.h"
#include "audit/tail.h"
#include "core/alloc.h"
#include "tests/support/under_valgrind.h"

enum { ROWS = 6, COLS = 5, N = ROWS * COLS, P = 5931641, Q = 5931637 };

static const uint32_t members[] = { 0, 1, 2 };
static const sherd__seen_code one = {
    .blocks = 1, .masks = 1, .shares = 3, .primes_len = 1, .primes = { P }
};
static double zero[N], data[N];
static const double *const first[] = { zero }, *const second[] = { data };

/* An encoder that puts uniform numbers into shares and, with some probability, lets one entry show
 * which operand it encodes. */
typedef struct leak {
    sherd__seeded state;
    sherd__entropy entropy;
    uint32_t views;
    double chance; /* probability of the leak in each round */
    int err;
    size_t calls;
} leak;

static int encode(void *ctx, const double *const *blocks, uint32_t *const *out)
{
    leak *l = ctx;
    l->calls++;
    if (l->err != 0 && l->calls == 50) return l->err;
    for (uint32_t v = 0; v < l->views; v++) sherd__audit_draw(&l->entropy, P, N, out[v]);
    if ((double)sherd__entropy_below(&l->entropy, 1000) < 1000 * l->chance)
        for (size_t e = 0; e < N; e++) out[0][e] = sherd__audit_residue(blocks[0][e], P);
    return SHERD_OK;
}

static leak leaking(double chance, uint64_t seed)
{
    leak l = { .views = 1, .chance = chance };
    l.entropy = sherd__entropy_seeded(&l.state, seed);
    return l;
}

static sherd_audit_finding play(leak *l, uint32_t rounds, uint64_t seed)
{
    sherd__findings found = { 0 };
    sherd__audit_options opt = { .seed = seed, .rounds = rounds };
    sherd__game g = { "test", &one, members, 1, ROWS, COLS, { first, second }, { encode, l } };
    l->entropy.ctx = &l->state;
    for (size_t e = 0; e < N; e++) data[e] = (double)(e % 7 * 30);
    assert_int_equal(sherd__audit_game(&found, &g, &opt, NULL), 0);
    assert_int_equal(found.len, 1);
    sherd_audit_finding f = found.list[0];
    sherd__findings_fini(&found);
    return f;
}

static void uniform_shares_give_no_advantage_on_average(void **s)
{
    double sum = 0, least = 0;
    (void)s;
    for (uint64_t seed = 0; seed < 100; seed++) {
        leak l = leaking(0, seed + 100);
        sherd_audit_finding f = play(&l, 200, seed);
        sum += f.value;
        if (f.ln_p < least) least = f.ln_p;
        assert_true(f.low <= f.value && f.value <= f.high);
    }
    /* 100 games with 100 counted rounds each: the standard deviation of the mean is 0.01. The
     * attacker was trained on other rounds. */
    assert_true(fabs(sum / 100) < 0.035);
    assert_true(least > log(1e-5) && least < log(0.2));
}

static void a_rare_leak_gives_an_advantage_of_its_probability(void **s)
{
    leak l = leaking(0.2, 7);
    sherd_audit_finding f = play(&l, 4000, 7);
    (void)s;
    assert_true(f.value > 0.1 && f.value < 0.3);
    assert_true(f.low > 0.02 && f.high < 0.35 && f.ln_p < log(1e-6));
    l = leaking(1, 8);
    f = play(&l, 1000, 8);
    assert_true(f.value == 1 && fabs(f.ln_p + 500 * log(2)) < 1e-6 && f.high == 1);
    assert_int_equal(l.calls, 2000); /* each round encodes operand 0 first, then the challenge */
}

/* Each mask is used twice, for consecutive encodings; no two challenges share a mask. */
typedef struct forgetful {
    leak l;
    uint32_t mask[N];
} forgetful;

static int encode_again(void *ctx, const double *const *blocks, uint32_t *const *out)
{
    forgetful *f = ctx;
    if (f->l.calls++ % 2 == 0) sherd__audit_draw(&f->l.entropy, P, N, f->mask);
    for (size_t e = 0; e < N; e++) /* the block has weight -1 in the first share, the mask 2 */
        out[0][e] =
            (uint32_t)((2 * (uint64_t)f->mask[e] + P - sherd__audit_residue(blocks[0][e], P)) % P);
    return SHERD_OK;
}

static void the_attacker_wins_if_a_mask_is_used_twice(void **s)
{
    forgetful f = { .l = leaking(0, 10) };
    sherd__findings found = { 0 };
    sherd__audit_options opt = { .seed = 10, .rounds = 1000 };
    sherd__game g = {
        "test", &one, members, 1, ROWS, COLS, { first, second }, { encode_again, &f }
    };
    (void)s;
    f.l.entropy.ctx = &f.l.state;
    assert_int_equal(sherd__audit_game(&found, &g, &opt, NULL), 0);
    assert_true(found.list[0].value == 1);
    sherd__findings_fini(&found);
}

static void an_odd_number_of_rounds_is_counted_completely(void **s)
{
    leak l = leaking(1, 9);
    sherd_audit_finding f = play(&l, 7, 9);
    (void)s;
    assert_true(f.value == 1 && fabs(f.ln_p + 4 * log(2)) < 1e-9);
}

static void the_scheme_hides_from_t_domains(void **s)
{
    static const uint32_t shapes[][3] = {
        { 3, 1, 7 }, { 2, 2, 8 }, { 5, 2, 16 }, { 1, 3, 8 }, { 1, 1, 3 }
    };
    const uint64_t games = under_valgrind() ? 5 : 10;
    sherd__findings l = { 0 };
    (void)s;
    for (uint64_t seed = 0; seed < games; seed++) {
        sherd__seen_code c = { .blocks = shapes[seed % 5][0],
                               .masks = shapes[seed % 5][1],
                               .shares = shapes[seed % 5][2],
                               .primes_len = 2,
                               .primes = { P, Q } };
        sherd__audit_options opt = { .seed = seed, .rounds = under_valgrind() ? 300 : 0 };
        assert_int_equal(sherd__audit_share_games(&l, &c, (sherd__code_blocks){ 6, 6, NULL }, &opt,
                                                  NULL),
                         0);
    }
    assert_int_equal(sherd__findings_judge(&l, SHERD__AUDIT_FAMILY), 0);
    assert_int_equal(l.len, 2 * games);
    for (size_t i = 0; i < l.len; i++) {
        assert_false(l.list[i].flagged);
        assert_true(fabs(l.list[i].value) < 0.25);
    }
    sherd__findings_fini(&l);
}

static void invalid_games_are_refused(void **s)
{
    leak l = leaking(0, 1);
    sherd__findings found = { 0 };
    sherd__audit_options opt = { .seed = 1 };
    sherd__game g = { "test", &one, members, 1, ROWS, COLS, { first, second }, { encode, &l } };
    sherd__seen_code bad = one;
    (void)s;
    l.entropy.ctx = &l.state;
    g.rows = 0;
    assert_int_equal(sherd__audit_game(&found, &g, &opt, NULL), SHERD_EINVAL);
    g.rows = ROWS;
    g.members_len = 0;
    assert_int_equal(sherd__audit_game(&found, &g, &opt, NULL), SHERD_EINVAL);
    g.members_len = 1;
    l.err = SHERD_EIO;
    assert_int_equal(sherd__audit_game(&found, &g, &opt, NULL), SHERD_EIO);
    opt.rounds = 3;
    assert_int_equal(sherd__audit_game(&found, &g, &opt, NULL), SHERD_EINVAL);
    bad.alpha = members;
    assert_int_equal(sherd__audit_share_games(&found, &bad, (sherd__code_blocks){ 4, 4, NULL },
                                              &opt, NULL),
                     SHERD_EINVAL);
    bad = one;
    bad.masks = 4;
    assert_int_equal(sherd__audit_share_games(&found, &bad, (sherd__code_blocks){ 4, 4, NULL },
                                              &opt, NULL),
                     SHERD_EINVAL);
    bad = one;
    assert_int_equal(sherd__audit_share_games(&found, &bad, (sherd__code_blocks){ 0, 4, NULL },
                                              &opt, NULL),
                     SHERD_EINVAL);
    assert_int_equal(found.len, 0);
}

static void every_failed_allocation_is_reported(void **s)
{
    int err = SHERD_ENOMEM;
    sherd__audit_options opt = { .seed = 1, .rounds = 4 };
    (void)s;
    for (size_t nth = 1; err != 0; nth++) {
        sherd__findings l = { 0 };
        sherd__alloc_fail_nth(nth);
        err = sherd__audit_share_games(&l, &one, (sherd__code_blocks){ 2, 2, NULL }, &opt, NULL);
        sherd__alloc_fail_nth(0);
        assert_true(err == 0 || err == SHERD_ENOMEM);
        sherd__findings_fini(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_shares_give_no_advantage_on_average),
        cmocka_unit_test(a_rare_leak_gives_an_advantage_of_its_probability),
        cmocka_unit_test(the_attacker_wins_if_a_mask_is_used_twice),
        cmocka_unit_test(an_odd_number_of_rounds_is_counted_completely),
        cmocka_unit_test(the_scheme_hides_from_t_domains),
        cmocka_unit_test(invalid_games_are_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
