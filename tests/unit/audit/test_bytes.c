/*
 * Shares over primes below 256: the attacks find nothing in those of the scheme's functions, and
 * find every control, in particular one stream of bytes for several primes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "audit/controls.h"
#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "honest.h"
#include "schemes/share/share.h"
#include "tests/support/under_valgrind.h"

static const honest_primes six = { 6, { 251, 241, 239, 233, 229, 227 } };
static const honest_primes eight = { 8, { 251, 241, 239, 233, 229, 227, 223, 211 } };
static const honest_primes two = { 2, { 5931641, 5931637 } };
static sherd__audit_options options = { .seed = 1, .rounds = 300 };

static void judge(sherd__findings *l)
{
    assert_int_equal(sherd__findings_judge(l, SHERD__AUDIT_FAMILY), SHERD_OK);
}

static void no_attack_succeeds_on_fresh_masks(void **s)
{
    (void)s;
    size_t tests = 0, below = 0;
    for (uint32_t t = 1; t <= 2; t++) {
        sherd__findings l = { 0 };
        sherd__streams_reach reach;
        honest a, b;
        honest_under = t == 1 ? six : eight;
        honest_make(&a, 3, t, 8, 64, 60, 5 + t);
        honest_make(&b, 3, t, 8, 64, 60, 50 + t);
        sherd__seen seen[2] = { a.seen, b.seen };
        assert_int_equal(sherd__audit_uniformity(&l, seen, 2, &options, NULL), SHERD_OK);
        assert_int_equal(sherd__audit_coalitions(&l, &seen[0], t, &options, NULL, NULL), SHERD_OK);
        assert_int_equal(sherd__audit_independence(&l, &seen[0], seen[0].blocks, 64 * 60, &options,
                                                   NULL),
                         SHERD_OK);
        assert_int_equal(sherd__audit_streams(&l, seen, 2, &options, &reach, NULL), SHERD_OK);
        assert_int_equal(reach.unsolved, 0);
        assert_int_equal(sherd__audit_share_games(&l, &a.code, (sherd__code_blocks){ 12, 12, NULL },
                                                  &options, NULL),
                         SHERD_OK);
        judge(&l);
        for (size_t i = 0; i < l.len; i++) {
            if (l.list[i].flagged) fail_msg("%s: %s", l.list[i].subject, l.list[i].sentence);
            below += l.list[i].ln_p < log(1e-3);
        }
        tests += l.tests;
        sherd__findings_fini(&l);
        honest_free(&a);
        honest_free(&b);
    }
    honest_under = two;
    assert_true(tests > 5000);
    assert_true((double)below < 2e-3 * (double)tests && (double)below > 1e-4 * (double)tests);
}

static void more_than_t_shares_are_solved(void **s)
{
    (void)s;
    sherd__findings l = { 0 };
    honest a;
    bool rebuilt = false;
    honest_under = six;
    honest_make(&a, 3, 1, 7, 32, 40, 9);
    honest_under = two;
    assert_int_equal(sherd__audit_coalitions(&l, &a.seen, 4, &options, NULL, NULL), SHERD_OK);
    judge(&l);
    for (size_t i = 0; i < l.len; i++)
        rebuilt |= strcmp(l.list[i].statistic, "entries rebuilt exactly") == 0 &&
                   l.list[i].value == 1;
    assert_true(rebuilt);
    sherd__findings_fini(&l);
    honest_free(&a);
}

static void every_control_is_flagged(void **s)
{
    (void)s;
    static const uint32_t shapes[][3] = { { 3, 1, 7 }, { 3, 2, 9 }, { 1, 1, 3 }, { 5, 1, 12 } };
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        if (under_valgrind() && k > 1) break; /* the same paths */
        const honest_primes *of = k & 1 ? &eight : &six;
        sherd__seen_code c = { .blocks = shapes[k][0],
                               .masks = shapes[k][1],
                               .shares = shapes[k][2],
                               .primes_len = of->len };
        sherd__findings l = { 0 };
        memcpy(c.primes, of->p, sizeof c.primes);
        assert_int_equal(sherd__audit_controls(&l, &c, (sherd__code_blocks){ 0, 0, NULL }, &options,
                                               NULL),
                         SHERD_OK);
        assert_int_equal(l.len, SHERD__CONTROLS + 2 * SHERD__CONTROL_PRIMES);
        judge(&l);
        for (size_t i = 0; i < l.len; i++)
            if (!l.list[i].flagged) fail_msg("%s: %s", l.list[i].subject, l.list[i].sentence);
        sherd__findings_fini(&l);
    }
}

/* Tests of single shares and of pairs of shares find nothing: rejection shifts the streams. */
static void one_stream_of_bytes_for_two_primes_is_found_by_its_runs(void **s)
{
    (void)s;
    sherd__seen_code c = {
        .blocks = 3, .masks = 2, .shares = 7, .primes_len = 2, .primes = { 251, 211 }
    };
    sherd__control_view v;
    sherd__findings l = { 0 };
    sherd__streams_reach reach;
    assert_int_equal(sherd__control_make(&v, SHERD__CONTROL_STREAM, &c,
                                         (sherd__code_blocks){ 64, 64, NULL }, 3),
                     SHERD_OK);
    assert_int_equal(sherd__audit_uniformity(&l, v.seen, 1, &options, NULL), SHERD_OK);
    judge(&l);
    for (size_t i = 0; i < l.len; i++) assert_false(l.list[i].flagged);
    sherd__findings_fini(&l);
    assert_int_equal(sherd__audit_streams(&l, v.seen, 1, &options, &reach, NULL), SHERD_OK);
    judge(&l);
    assert_true(l.list[0].flagged);
    assert_non_null(strstr(l.list[0].sentence, "prime 251"));
    assert_non_null(strstr(l.list[0].sentence, "prime 211"));
    assert_non_null(strstr(l.list[0].sentence, "are the same for"));
    assert_true(fabs(l.list[0].ln_p - 2 * log(4 * 64 * 64) + l.list[0].value * log(211)) < 1e-6);
    sherd__findings_fini(&l);
    sherd__control_fini(&v);
    c.primes[0] = 5931641; /* the control is for bytes */
    assert_false(sherd__control_of(SHERD__CONTROL_STREAM, &c));
}

/* Masks of a left operand of two tiles for 16 rows, which take the bytes of one stream. */
typedef struct tiled {
    uint8_t laid[2][8 * 1024];
} tiled;

static void in_tiles(void *ctx, uint32_t t, uint32_t prime, uint32_t p, size_t row, size_t cols,
                     double *out)
{
    const tiled *m = ctx;
    (void)t;
    for (size_t c = 0; c < cols; c++) {
        uint8_t x = m->laid[prime][row / 16 * 2048 + c / 64 * 1024 + row % 16 * 64 + c % 64];
        out[c] = x > p / 2 ? (double)x - p : x;
    }
}

static void one_stream_is_found_in_the_order_of_drawing(void **s)
{
    (void)s;
    static uint32_t order[64 * 128];
    tiled m;
    sherd__seeded state;
    honest h;
    double run = 0; /* the longest in rows */
    honest_under = (honest_primes){ 2, { 251, 211 } };
    for (int q = 0; q < 2; q++) {
        sherd__entropy e = sherd__entropy_seeded(&state, 4);
        for (size_t i = 0; i < sizeof m.laid[q];) {
            e.fill(e.ctx, &m.laid[q][i], 1);
            i += m.laid[q][i] < honest_under.p[q];
        }
    }
    honest_make_under(&h, 3, 1, 8, 64, 128, 5, in_tiles, &m);
    honest_under = two;
    sherd__share_drawn(true, 64, 128, 64, order);
    for (int drawn = 0; drawn < 2; drawn++) {
        sherd__findings l = { 0 };
        sherd__streams_reach reach;
        h.seen.order = drawn ? order : NULL;
        assert_int_equal(sherd__audit_streams(&l, &h.seen, 1, &options, &reach, NULL), SHERD_OK);
        judge(&l);
        if (drawn) assert_true(l.list[0].flagged && l.list[0].value > run);
        run = l.list[0].value;
        sherd__findings_fini(&l);
    }
    honest_free(&h);
}

int main(void)
{
    if (under_valgrind()) options.rounds = 120;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_attack_succeeds_on_fresh_masks),
        cmocka_unit_test(more_than_t_shares_are_solved),
        cmocka_unit_test(every_control_is_flagged),
        cmocka_unit_test(one_stream_of_bytes_for_two_primes_is_found_by_its_runs),
        cmocka_unit_test(one_stream_is_found_in_the_order_of_drawing),
    };
    return cmocka_run_group_tests_name("audit/bytes", tests, NULL, NULL);
}
