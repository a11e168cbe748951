/*
 * Wrong answers under share: none is accepted, and the refusal of one reveals nothing that helps to
 * forge the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/unit/schemes/share_world.h"

/* --- wrong answers --------------------------------------------------------------------------- */

/* All correct answers of a product, by tile, panel, slot; its positions stay open. */
typedef struct answers {
    uint8_t **body;
    uint64_t *len;
    size_t n;
} answers;

static sherd__cell cell_at(const product *x, size_t i)
{
    return (sherd__cell){ (uint32_t)(i % x->s.slots), (uint32_t)(i / x->s.slots / x->s.panels),
                          (uint32_t)(i / x->s.slots % x->s.panels) };
}

static answers all_answers(product *x)
{
    answers a = { .n = (size_t)x->s.slots * x->s.tiles * x->s.panels };
    a.body = calloc(a.n + 1, sizeof *a.body);
    a.len = calloc(a.n + 1, sizeof *a.len);
    for (size_t i = 0; i < a.n; i++) a.body[i] = share_answer(x, cell_at(x, i), &a.len[i]);
    return a;
}

static void free_answers(answers *a)
{
    for (size_t i = 0; i < a->n; i++) free(a->body[i]);
    free(a->body);
    free(a->len);
}

static void put_u24(uint8_t *to, uint32_t v)
{
    to[0] = (uint8_t)v, to[1] = (uint8_t)(v >> 8), to[2] = (uint8_t)(v >> 16);
}

static size_t width_of(const product *x)
{
    return x->f.bytes ? 1 : 3;
}

static uint32_t get(const product *x, const uint8_t *body, size_t i)
{
    return x->f.bytes ? body[i] : get_u24(body + 3 * i);
}

static void put(const product *x, uint8_t *body, size_t i, uint32_t v)
{
    if (x->f.bytes) body[i] = (uint8_t)v;
    else put_u24(body + 3 * i, v);
}

enum { ONE_OFF, ANY_RESIDUE, OUT_OF_RANGE, ZERO, EXCHANGED, OTHER_ANSWER, EARLIER, KINDS };

/* Changes an answer; returns false if it is unchanged. old: correct answers of an earlier
 * product. */
static bool spoil(const product *x, const answers *a, const answers *old, size_t which, int kind,
                  uint8_t *body)
{
    uint64_t len = a->len[which];
    size_t n = len / width_of(x), i = share_below(n), part = n / x->s.primes_len;
    uint32_t p = x->s.primes[i / part], v = get(x, body, i);
    uint32_t beyond = (1u << 8 * width_of(x)) - p;
    const answers *from = kind == EARLIER ? old : a;
    size_t j = from ? share_below(from->n) : 0;
    switch (kind) {
    case ONE_OFF: put(x, body, i, (v + (share_below(2) ? 1 : p - 1)) % p); break;
    case ANY_RESIDUE: put(x, body, i, (uint32_t)share_below(p)); break;
    case OUT_OF_RANGE: put(x, body, i, p + (uint32_t)share_below(beyond)); break;
    case ZERO: memset(body, 0, len); break;
    case EXCHANGED: /* two values of one prime exchanged */
        j = i / part * part + share_below(part);
        put(x, body, i, get(x, body, j));
        put(x, body, j, v);
        break;
    default: /* an answer of another node, panel or tile, or of an earlier product */
        if (!from || from->len[j] != len) return false;
        memcpy(body, from->body[j], len);
    }
    return memcmp(body, a->body[which], len) != 0;
}

static size_t must_refuse(product *x, const answers *a, const answers *old, size_t tries)
{
    size_t refused = 0;
    for (size_t i = 0; i < tries; i++) {
        size_t which = share_below(a->n);
        int kind = (int)share_below(KINDS);
        uint8_t *body = malloc(a->len[which] + 1);
        memcpy(body, a->body[which], a->len[which]);
        if (spoil(x, a, old, which, kind, body)) {
            refused++;
            if (share_judge(x, cell_at(x, which), body) != SHERD_EWRONG)
                fail_msg("a wrong answer of kind %d was accepted", kind);
        }
        free(body);
        if (share_below(4) == 0)
            assert_int_equal(share_judge(x, cell_at(x, which), a->body[which]), 0);
    }
    return refused;
}

static void projections_of_a_kept_operand_stay_within_their_memory(void **state)
{
    (void)state;
    fixture f = { .n = 60,
                  .k = 8,
                  .m = 3,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 3,
                  .tile_cols = 2,
                  .left_stays = true,
                  .type = SHERD_F64,
                  .bits = 17 };
    for (unsigned i = 0; i < 3; i++) {
        f.check_bytes = (size_t[]){ 0, 5000, 1u << 20 }[i];
        product x;
        share_open(&x, f);
        const share *d = x.h.ctx;
        size_t each = sizeof(double) * 2 * x.s.primes_len, all = 0, kept = 0;
        size_t direct = each * 3 * 8, both = direct + each * 3 * 3; /* ru; and ur */
        for (unsigned round = 0; round < 4; round++) {
            if (round) share_next(&x, 3, round & 1);
            share_run(&x, NULL, 0);
            all = kept = 0;
            for (uint32_t p = 0; p < d->lefts; p++) {
                const share_panel *s = &d->panel[p];
                all += (s->ru ? direct : 0) + (s->ur ? both - direct : 0);
                kept += s->ru != NULL;
            }
            assert_int_equal(d->held, all);
            assert_true(all <= f.check_bytes);
        }
        assert_int_equal(kept, i == 0 ? 0 : i == 1 ? 5000 / both : d->lefts);
        answers a = all_answers(&x); /* late answers, and wrong answers of the next */
        share_next(&x, 3, false);
        answers b = all_answers(&x);
        assert_true(must_refuse(&x, &b, &a, 50) > 0);
        free_answers(&a);
        free_answers(&b);
        share_close(&x);
    }
}

/* One pass over A makes its shares and the projections that check them, for products from both
 * sides. */
static void shares_of_a_are_projected_while_they_are_made(void **state)
{
    (void)state;
    for (unsigned transposed = 0; transposed < 2; transposed++) {
        fixture f = { .n = 12,
                      .k = 4,
                      .m = 3,
                      .blocks = 2,
                      .masks = 1,
                      .shares = 5,
                      .panel_rows = 2,
                      .tile_cols = 3,
                      .left_stays = true,
                      .type = SHERD_F64,
                      .bits = 17 };
        sherd__fragment *u;
        product x;
        share_open(&x, f);
        share_next(&x, 3, transposed);
        const share *d = x.h.ctx;
        assert_int_equal(x.h.ops->left(x.h.ctx, 1, 0, &u), 0);
        assert_true((d->panel[0].ur != NULL) == transposed);
        assert_true((d->panel[0].ru != NULL) == !transposed);
        sherd__fragment_free(u);
        share_run(&x, NULL, 0);
        share_close(&x);
    }
}

static void ten_thousand_wrong_answers_are_refused(void **state)
{
    (void)state;
    size_t refused = 0;
    for (int i = 0; refused < 10000; i++) {
        fixture f = i % 8 ? share_random_fixture() : share_windows_fixture();
        f.left_stays = true;
        product x;
        share_open(&x, f);
        if (x.w.count) share_next(&x, f.m, false);
        answers first = all_answers(&x);
        refused += must_refuse(&x, &first, NULL, 60);
        bool transposed = share_both_ways(f) && share_below(2);
        share_next(&x, x.f.m, transposed);
        answers second = all_answers(&x);
        refused += must_refuse(&x, &second, &first, 100);
        free_answers(&first);
        free_answers(&second);
        share_run(&x, NULL, 0); /* wrong answers have no effect on the result */
        share_close(&x);
    }
}

/* An error that vanishes under all entries of r but the first, or all entries of s: detected
 * because r and s are random. */
static void errors_that_sum_to_zero_are_refused(void **state)
{
    (void)state;
    fixture f = { .n = 8,
                  .k = 5,
                  .m = 6,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 4,
                  .tile_cols = 6,
                  .type = SHERD_F64,
                  .bits = 17,
                  .primes = 2 };
    for (int i = 0; i < 200; i++) {
        product x;
        f.bytes = i % 2;
        share_open(&x, f);
        sherd__cell c = { (uint32_t)share_below(5), 0, 0 };
        uint64_t len;
        uint8_t *body = share_answer(&x, c, &len);
        size_t part = len / width_of(&x) / x.s.primes_len, row = 6;
        size_t a = share_below(4), b = (a + 1 + share_below(3)) % 4;
        size_t q = share_below(x.s.primes_len), j = share_below(6);
        uint32_t p = x.s.primes[q];
        size_t u = q * part + a * row + j, v = q * part + b * row + j;
        put(&x, body, u, (get(&x, body, u) + 1) % p);
        put(&x, body, v, (get(&x, body, v) + p - 1) % p);
        assert_int_equal(share_judge(&x, c, body), SHERD_EWRONG);
        free(body);
        share_close(&x);
    }
}

/* Errors that cancel between images, or between places of windows: r is the product of two vectors,
 * and both are random. */
static void errors_that_cancel_across_windows_are_refused(void **state)
{
    (void)state;
    fixture f = { .n = 4,
                  .m = 2,
                  .blocks = 1,
                  .masks = 1,
                  .shares = 3,
                  .panel_rows = 4,
                  .tile_cols = 2,
                  .left_stays = true,
                  .type = SHERD_F64,
                  .bits = 9,
                  .primes = 1,
                  .windows = { 3, 3, 1, 2, 1, 0 } };
    for (int i = 0; i < 40; i++) {
        product x;
        share_open(&x, f);
        share_next(&x, 2, false);
        sherd__cell c = { (uint32_t)share_below(3), 0, 0 };
        uint8_t *body = share_answer(&x, c, NULL);
        size_t image = share_below(4), place = share_below(4), j = share_below(2);
        size_t other = i & 1 ? image * 4 + (place + 1 + share_below(3)) % 4
                             : (image + 1 + share_below(3)) % 4 * 4 + place;
        uint32_t p = x.s.primes[0];
        uint8_t *u = body + 3 * (2 * (image * 4 + place) + j), *v = body + 3 * (2 * other + j);
        put_u24(u, (get_u24(u) + 1) % p);
        put_u24(v, (get_u24(v) + p - 1) % p);
        assert_int_equal(share_judge(&x, c, body), SHERD_EWRONG);
        free(body);
        share_close(&x);
    }
}

static void after_a_wrong_answer_all_check_vectors_are_drawn_again(void **state)
{
    (void)state;
    fixture f = { .n = 8,
                  .k = 5,
                  .m = 6,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 2,
                  .tile_cols = 3,
                  .type = SHERD_F64,
                  .bits = 17,
                  .primes = 2,
                  .left_stays = true };
    for (int i = 0; i < 4; i++) {
        product x;
        f.bytes = i / 2;
        share_open(&x, f);
        if (i % 2) share_next(&x, 6, true);
        answers a = all_answers(&x);
        for (size_t j = 0; j < a.n; j++)
            assert_int_equal(share_judge(&x, cell_at(&x, j), a.body[j]), 0);
        uint64_t drawn = share_scheme_state.drawn;
        for (size_t j = 0; j < a.n; j++)
            assert_int_equal(share_judge(&x, cell_at(&x, j), a.body[j]), 0);
        assert_true(share_scheme_state.drawn == drawn);
        a.body[0][0] ^= 1;
        assert_int_equal(share_judge(&x, cell_at(&x, 0), a.body[0]), SHERD_EWRONG);
        a.body[0][0] ^= 1;
        for (size_t j = a.n; j-- > 0;) { /* r and s of panels and tiles that are open already */
            assert_int_equal(share_judge(&x, cell_at(&x, j), a.body[j]), 0);
            if (j == a.n - 1 || j == 0) assert_true(share_scheme_state.drawn > drawn);
            if (j == a.n - 1) drawn = share_scheme_state.drawn;
        }
        free_answers(&a);
        share_close(&x);
    }
}

/* The vectors of places, too, which all panels share; no entry stays the same. */
static void after_a_wrong_answer_the_vectors_of_places_are_drawn_again(void **state)
{
    (void)state;
    fixture f = { .n = 4,
                  .m = 2,
                  .blocks = 1,
                  .masks = 1,
                  .shares = 3,
                  .panel_rows = 4,
                  .tile_cols = 2,
                  .left_stays = true,
                  .type = SHERD_F64,
                  .bits = 9,
                  .primes = 1,
                  .windows = { 3, 3, 1, 2, 1, 0 } };
    double before[2 * 4]; /* of the first prime */
    product x;
    share_open(&x, f);
    share_next(&x, 2, false);
    const share *d = x.h.ctx;
    sherd__cell c = { 0, 0, 0 };
    uint8_t *body = share_answer(&x, c, NULL);
    assert_int_equal(share_judge(&x, c, body), 0);
    assert_non_null(d->across);
    memcpy(before, d->across, sizeof before);
    body[0] ^= 1;
    assert_int_equal(share_judge(&x, c, body), SHERD_EWRONG);
    assert_null(d->across);
    assert_null(d->spread);
    assert_null(d->panel[0].r);
    body[0] ^= 1;
    assert_int_equal(share_judge(&x, c, body), 0);
    assert_non_null(d->across);
    assert_memory_not_equal(before, d->across, sizeof before);
    free(body);
    share_close(&x);
}

static void projections_of_a_serve_the_next_product(void **state)
{
    (void)state;
    fixture f = { .n = 800,
                  .k = 2,
                  .m = 1,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 50,
                  .tile_cols = 1,
                  .type = SHERD_F64,
                  .bits = 17,
                  .primes = 2,
                  .left_stays = true,
                  .check_bytes = 1u << 20 };
    product x;
    share_open(&x, f);
    uint64_t start = share_scheme_state.drawn;
    share_run(&x, NULL, 0);
    uint64_t first = share_scheme_state.drawn - start;
    assert_int_equal(sherd__share_next(&x.h,
                                       &(sherd__kept_product){ share_rows(&x), false, x.b, x.c, 1 },
                                       &x.fb),
                     0);
    share_run(&x, NULL, 0);
    /* B's masks and s, but no r of 8 panels */
    uint64_t second = share_scheme_state.drawn - start - first;
    assert_true(second + 8 * 2 * 32 <= first); /* keys, one a prime */
    share_close(&x);
}

static void a_late_wrong_answer_is_refused_and_has_no_effect(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        fixture f = i < 20 ? share_random_fixture() : share_windows_fixture();
        product x;
        share_open(&x, f);
        if (x.w.count) share_next(&x, f.m, i & 1);
        answers a = all_answers(&x);
        share_run(&x, NULL, 0);
        size_t which = share_below(a.n);
        a.body[which][0] ^= 1;
        assert_int_equal(share_judge(&x, cell_at(&x, which), a.body[which]), SHERD_EWRONG);
        a.body[which][0] ^= 1;
        for (size_t j = 0; j < a.n; j++)
            assert_int_equal(share_judge(&x, cell_at(&x, j), a.body[j]),
                             SHERD_EBUSY); /* the answer is not read */
        share_is_exact(&x);
        free_answers(&a);
        share_close(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_a_are_projected_while_they_are_made),
        cmocka_unit_test(projections_of_a_kept_operand_stay_within_their_memory),
        cmocka_unit_test(ten_thousand_wrong_answers_are_refused),
        cmocka_unit_test(errors_that_sum_to_zero_are_refused),
        cmocka_unit_test(errors_that_cancel_across_windows_are_refused),
        cmocka_unit_test(after_a_wrong_answer_all_check_vectors_are_drawn_again),
        cmocka_unit_test(after_a_wrong_answer_the_vectors_of_places_are_drawn_again),
        cmocka_unit_test(projections_of_a_serve_the_next_product),
        cmocka_unit_test(a_late_wrong_answer_is_refused_and_has_no_effect),
    };
    return cmocka_run_group_tests_name("crypto/share_wrong", tests, share_seed, NULL);
}
