/*
 * Masks used twice are found at any offset, wherever the second place is; fresh masks are not
 * accused; the report names encodings that could not be solved for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "audit/stats_internal.h"
#include "core/alloc.h"
#include "honest.h"

static const sherd__audit_options options = { .seed = 1 };

enum { MOST = 8, ROWS = 48, COLS = 40 };

/* A keystream of words for all encodings: where each mask begins in it, and whether primes have
 * words of their own. */
typedef struct shared {
    uint32_t *word; /* of 30 bits */
    size_t len, first[3];
    bool numbers;    /* the same number modulo each prime, rather than the same fraction of it */
    size_t primes;   /* offset of the next prime's words; SIZE_MAX: unrelated words */
    size_t restart;  /* rows until the words repeat; 0: never */
    bool minus;      /* the negatives of all words */
    uint32_t factor; /* multiplier of all words; 0: 1 */
} shared;

static void words(shared *s, size_t len, uint64_t seed)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, seed);
    *s = (shared){ .len = len, .primes = SIZE_MAX };
    s->word = malloc(len * sizeof *s->word);
    e.fill(e.ctx, s->word, len * sizeof *s->word);
    for (size_t i = 0; i < len; i++) s->word[i] >>= 2;
}

static void of_shared(void *ctx, uint32_t t, uint32_t prime, uint32_t p, size_t row, size_t cols,
                      double *out)
{
    const shared *s = ctx;
    if (s->restart) row %= s->restart;
    size_t at = s->first[t] + row * cols;
    at += s->primes == SIZE_MAX ? prime * (s->len / 2) : prime * s->primes;
    for (size_t i = 0; i < cols; i++) {
        uint64_t w = s->word[(at + i) % s->len];
        uint64_t r = s->numbers ? w % 5931637 : w * p >> 30;
        if (s->factor) r = r * s->factor % p;
        out[i] = r > p / 2 ? (double)r - p : (double)r; /* balanced, like terms */
        if (s->minus) out[i] = -out[i];
    }
}

typedef struct audit {
    honest h[MOST];
    size_t len;
    sherd__seen seen[MOST];
    sherd__findings l;
    sherd__streams_reach reach;
} audit;

static void add(audit *a, honest_mask *mask, void *ctx, uint32_t t, size_t rows, size_t cols)
{
    static const char *const names[MOST] = { "A", "B", "C", "D", "E", "F", "G", "H" };
    size_t i = a->len++;
    honest_make_under(&a->h[i], 3, t, 8, rows, cols, 70 + i, mask, ctx);
    a->seen[i] = a->h[i].seen;
    a->seen[i].name = names[i];
}

static void look(audit *a)
{
    sherd__findings_fini(&a->l);
    memset(&a->l, 0, sizeof a->l);
    assert_int_equal(sherd__audit_streams(&a->l, a->seen, a->len, &options, &a->reach, NULL), 0);
    assert_int_equal(sherd__findings_judge(&a->l, SHERD__AUDIT_FAMILY), 0);
    for (size_t i = 0; i < a->l.len; i++) assert_string_equal(a->l.list[i].test, "offset");
}

static void done(audit *a)
{
    for (size_t i = 0; i < a->len; i++) honest_free(&a->h[i]);
    sherd__findings_fini(&a->l);
}

/* Removes the knowledge of the operands; all shares are present. */
static void forget(audit *a)
{
    for (size_t i = 0; i < a->len; i++) a->seen[i].blocks = NULL;
}

/* Returns a flagged finding whose sentence contains these words. */
static const sherd_audit_finding *flagged(const audit *a, const char *words)
{
    for (size_t i = 0; i < a->l.len; i++)
        if (a->l.list[i].flagged && strstr(a->l.list[i].sentence, words)) return &a->l.list[i];
    return NULL;
}

static size_t count(const audit *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->l.len; i++) n += a->l.list[i].flagged;
    return n;
}

static void fresh_masks_have_nothing_in_common(void **state)
{
    (void)state;
    for (uint32_t t = 1; t <= 3; t++) {
        audit a = { .len = MOST };
        for (size_t i = 0; i < MOST; i++) {
            honest_make(&a.h[i], 2, t, 8, 64, 64, 900 + 10 * t + i);
            a.seen[i] = a.h[i].seen;
        }
        for (int known = 1; known >= 0; known--) {
            if (!known) forget(&a);
            look(&a);
            assert_int_equal(a.l.len, 1);
            assert_false(a.l.list[0].flagged);
            assert_true(a.l.list[0].value == 0 && a.l.list[0].ln_p == 0);
        }
        done(&a);
    }
}

/* The case for which the attack was made: at one node, masks cancel between rows r + 5 and r of two
 * encodings. Tests of differences detect nothing, since they compare equal places. */
static void a_keystream_shared_by_all_encodings_five_rows_apart_is_found(void **state)
{
    (void)state;
    audit a = { .len = 0 };
    shared s[MOST];
    sherd__findings old = { 0 };
    for (size_t i = 0; i < MOST; i++) {
        words(&s[i], (size_t)1 << 15, 5);
        s[i].first[0] = 5 * i * COLS;
        add(&a, of_shared, &s[i], 1, ROWS, COLS);
    }
    assert_int_equal(sherd__audit_uniformity(&old, a.seen, a.len, &options, NULL), 0);
    assert_int_equal(sherd__findings_judge(&old, SHERD__AUDIT_FAMILY), 0);
    for (size_t i = 0; i < old.len; i++) assert_false(old.list[i].flagged);
    for (int known = 1; known >= 0; known--) {
        if (!known) forget(&a);
        look(&a);
        assert_true(count(&a) >= 7);
        const sherd_audit_finding *f = flagged(&a, "whole rows");
        assert_non_null(f);
        assert_true(f->value >= 5 * COLS && f->ln_p < -1000);
    }
    for (size_t i = 0; i < MOST; i++) free(s[i].word);
    sherd__findings_fini(&old);
    done(&a);
}

/* Every second encoding has the negated masks, at the same place or some rows further. */
static void negated_masks_are_found_and_named_as_such(void **state)
{
    (void)state;
    for (size_t apart = 0; apart < 2; apart++) {
        audit a = { .len = 0 };
        shared s[MOST];
        for (size_t i = 0; i < MOST; i++) {
            words(&s[i], (size_t)1 << 15, 16 + i / 2);
            s[i].first[0] = apart * 5 * i * COLS;
            s[i].minus = i % 2;
            add(&a, of_shared, &s[i], 1, ROWS, COLS);
        }
        for (int known = 1; known >= 0; known--) {
            if (!known) forget(&a);
            look(&a);
            assert_int_equal(count(&a), MOST); /* four pairs modulo both primes */
            const sherd_audit_finding *f = flagged(&a,
                                                   "mask of A, prime 5931641 and mask of B, prime "
                                                   "5931641 are negatives of one another");
            if (!f) f = flagged(&a, "mask of B, prime 5931641 and mask of A, prime 5931641");
            assert_true(f && f->value >= 40 * COLS && f->ln_p < -1000);
            assert_null(flagged(&a, "are the same"));
        }
        for (size_t i = 0; i < MOST; i++) free(s[i].word);
        done(&a);
    }
}

static void multiplied_masks_are_found_at_any_offset(void **state)
{
    (void)state;
    static const uint32_t factors[] = { 2, 5931636, 1234567, 3 };
    for (size_t k = 0; k < 4; k++) {
        audit a = { .len = 0 };
        shared s[3];
        for (size_t i = 0; i < 3; i++) {
            words(&s[i], (size_t)1 << 15, i < 2 ? 30 : 31);
            if (i == 1) s[i].word[300] = 0; /* 0 has no inverse, and ends a run */
            s[i].first[0] = i == 1 && k > 0 ? 77 : 0;
            s[i].factor = i == 1 ? factors[k] : 0;
            add(&a, of_shared, &s[i], 1, ROWS, i == 1 ? COLS + 1 : COLS);
            forget(&a);
        }
        look(&a);
        for (size_t i = 0; i < a.l.len; i++)
            if (a.l.list[i].flagged)
                assert_non_null(
                    strstr(a.l.list[i].sentence,
                           factors[k] == 5931636 && strstr(a.l.list[i].sentence, "5931637")
                               ? "negatives"
                               : "multiples of one"));
        assert_int_equal(count(&a), 2);
        for (size_t i = 0; i < 2; i++)
            assert_true(a.l.list[i].value > 1500 && a.l.list[i].ln_p < -1000);
        for (size_t i = 0; i < 3; i++) free(s[i].word);
        done(&a);
    }
}

/* Operands of different widths, at an offset of 77 numbers. */
static void a_mask_of_another_operand_is_found(void **state)
{
    (void)state;
    audit a = { .len = 0 };
    shared s;
    words(&s, (size_t)1 << 15, 6);
    add(&a, of_shared, &s, 1, ROWS, COLS);
    s.first[0] = 77;
    add(&a, of_shared, &s, 1, 30, 57);
    look(&a);
    const sherd_audit_finding *f = flagged(&a, "of B, prime 5931637");
    assert_non_null(f);
    assert_true(f->value >= 30 * 57);
    assert_true(flagged(&a, "lag -77") && flagged(&a, "of A, prime 5931641"));
    free(s.word);
    done(&a);
}

static void a_mask_of_another_prime_is_found(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        audit a = { .len = 0 };
        shared s;
        words(&s, (size_t)1 << 15, 8);
        s.primes = i % 2 ? 123 : 0;
        s.numbers = i >= 2;
        add(&a, of_shared, &s, 1, ROWS, COLS);
        look(&a);
        const sherd_audit_finding *f = flagged(&a, "prime 5931641 and mask of A, prime 5931637");
        if (!f) f = flagged(&a, "prime 5931637 and mask of A, prime 5931641");
        assert_non_null(f);
        assert_true(f->value >= 100); /* a fraction at the edge of a step ends a run */
        free(s.word);
        done(&a);
    }
}

static void a_mask_that_repeats_is_found(void **state)
{
    (void)state;
    audit a = { .len = 0 };
    shared s;
    words(&s, (size_t)1 << 15, 9);
    s.restart = 16;
    add(&a, of_shared, &s, 1, ROWS, COLS);
    look(&a);
    assert_int_equal(count(&a), 2); /* modulo both primes */
    assert_true(flagged(&a, "whole rows")->value >= 16 * COLS);
    free(s.word);
    done(&a);
}

/* T = 2: each mask separately, from two shares; from one share only their sum. */
static void of_two_masks_each_is_found_and_from_one_share_only_their_sum(void **state)
{
    (void)state;
    for (int both = 0; both < 2; both++) {
        audit a = { .len = 0 };
        shared s, other;
        words(&s, (size_t)1 << 15, 10);
        words(&other, (size_t)1 << 15, both ? 10 : 11);
        s.first[1] = 4000;
        add(&a, of_shared, &s, 2, ROWS, COLS);
        other.first[0] = both ? 3 * COLS : 9000;
        other.first[1] = 4000 + 3 * COLS;
        if (!both) memcpy(other.word + 4000, s.word + 4000, 6000 * sizeof *s.word);
        add(&a, of_shared, &other, 2, ROWS, COLS);
        look(&a);
        assert_non_null(flagged(&a, "mask 2 of A, prime 5931641 and mask 2 of B, prime 5931641"));
        const sherd_audit_finding *one =
            flagged(&a, "mask 1 of A, prime 5931641 and mask 1 of B, prime 5931641");
        assert_true((one != NULL) == both);
        for (uint32_t i = 0; i < 8; i++) /* only the record of one domain */
            for (size_t e = 0; i != 3 && e < 2; e++)
                for (uint32_t q = 0; q < 2; q++) a.h[e].pointers[2 * i + q] = NULL;
        look(&a);
        one = flagged(&a, "masks in share 4 of A, prime 5931641 and masks in share 4 of B");
        assert_true((one != NULL) == both);
        assert_true(a.reach.encodings == 2 && a.reach.sums == 2 && a.reach.unsolved == 0);
        forget(&a); /* without the operand, too */
        look(&a);
        assert_true(a.reach.encodings == 2 && a.reach.sums == 0 && a.reach.unsolved == 2);
        assert_string_equal(a.reach.names, "A, B");
        assert_int_equal(a.l.len, 1);
        assert_false(a.l.list[0].flagged);
        assert_non_null(strstr(a.l.list[0].sentence, "no mask could be solved for"));
        free(s.word);
        free(other.word);
        done(&a);
    }
}

/* Rows of one-time masks: the same row at two nodes is no reuse; the same mask of two rows is. */
static void one_masked_row_may_be_sent_to_two_nodes(void **state)
{
    (void)state;
    enum { N = 20 * COLS };
    static const sherd__seen_code code = { .blocks = 1,
                                           .masks = 1,
                                           .shares = 1,
                                           .primes_len = 2,
                                           .primes = { 5931641, 5931637 },
                                           .one_time = true };
    for (int reuse = 0; reuse < 2; reuse++) {
        uint32_t row[2][20], *x = malloc(4 * N * sizeof *x);
        const uint32_t *at[4] = { x, x + N, x + 2 * N, x + 3 * N };
        double *data = malloc(2 * N * sizeof *data);
        const double *block[2] = { data, data + N };
        sherd__seen seen[2];
        sherd__findings l = { 0 };
        sherd__streams_reach reach;
        sherd__seeded state_;
        sherd__entropy e = sherd__entropy_seeded(&state_, 12);
        for (uint32_t q = 0; q < 2; q++) sherd__audit_draw(&e, code.primes[q], N, x + q * N);
        for (size_t i = 0; i < 2 * N; i++)
            data[i] = reuse || i < N ? (double)sherd__entropy_below(&e, 256) : data[i - N];
        for (uint32_t q = 0; q < 2; q++)
            for (size_t i = 0; i < N; i++) {
                uint32_t mask = x[q * N + i], p = code.primes[q];
                x[q * N + i] = (mask + (uint32_t)data[i]) % p;
                x[(2 + q) * N + i] = (mask + (uint32_t)data[N + i]) % p;
            }
        for (uint32_t i = 0; i < 20; i++) row[0][i] = i, row[1][i] = reuse ? 20 + i : i;
        for (int d = 0; d < 2; d++)
            seen[d] = (sherd__seen){ .name = "A",
                                     .code = &code,
                                     .rows = 20,
                                     .cols = COLS,
                                     .residues = at + 2 * d,
                                     .row = row[d],
                                     .blocks = &block[d] };
        assert_int_equal(sherd__audit_streams(&l, seen, 2, &options, &reach, NULL), 0);
        assert_int_equal(sherd__findings_judge(&l, SHERD__AUDIT_FAMILY), 0);
        assert_int_equal(l.list[0].flagged, reuse);
        sherd__findings_fini(&l);
        free(x);
        free(data);
    }
}

/* A mask is searched completely, however long it is. */
static void a_mask_used_again_far_behind_is_found(void **state)
{
    (void)state;
    enum { N = (1 << 20) + 2048, RUN = 700 };
    static const sherd__seen_code code = { .blocks = 1,
                                           .masks = 1,
                                           .shares = 1,
                                           .primes_len = 1,
                                           .primes = { 5931641 },
                                           .one_time = true };
    uint32_t *x = malloc(N * sizeof *x);
    const uint32_t *at[1] = { x };
    double *data = calloc(N, sizeof *data);
    const double *block[1] = { data };
    sherd__findings l = { 0 };
    sherd__streams_reach reach;
    sherd__seeded state_;
    sherd__entropy e = sherd__entropy_seeded(&state_, 14);
    sherd__audit_draw(&e, code.primes[0], N, x);
    memcpy(x + N - RUN, x + 5, RUN * sizeof *x);
    const sherd__seen seen = {
        .name = "A", .code = &code, .rows = 1, .cols = N, .residues = at, .blocks = block
    };
    assert_int_equal(sherd__audit_streams(&l, &seen, 1, &options, &reach, NULL), 0);
    assert_int_equal(sherd__findings_judge(&l, SHERD__AUDIT_FAMILY), 0);
    assert_true(l.len == 1 && l.list[0].flagged && l.list[0].value >= RUN);
    assert_true(reach.encodings == 1 && reach.unsolved == 0);
    sherd__findings_fini(&l);
    free(x);
    free(data);
}

static int enough(void *ctx, uint32_t done, uint32_t total)
{
    (void)done;
    (void)total;
    return ++*(int *)ctx == 2;
}

static void a_long_search_can_be_interrupted(void **state)
{
    (void)state;
    audit a = { .len = 0 };
    shared s;
    int asked = 0;
    const sherd__audit_options stopped = { .step = enough, .ctx = &asked };
    words(&s, (size_t)1 << 15, 15);
    add(&a, of_shared, &s, 2, 10, 10);
    assert_int_equal(sherd__audit_streams(&a.l, a.seen, 1, &stopped, &a.reach, NULL),
                     SHERD_EINTERRUPTED);
    assert_true(asked == 2 && a.l.len == 0);
    free(s.word);
    done(&a);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    audit a = { .len = 0 };
    shared s;
    int err = SHERD_ENOMEM;
    words(&s, (size_t)1 << 15, 13);
    add(&a, of_shared, &s, 2, 10, 10);
    for (size_t nth = 1; err; nth++) {
        sherd__findings l = { 0 };
        sherd__alloc_fail_nth(nth);
        err = sherd__audit_streams(&l, a.seen, 1, &options, &a.reach, NULL);
        sherd__alloc_fail_nth(0);
        assert_true(err == 0 || err == SHERD_ENOMEM);
        sherd__findings_fini(&l);
    }
    free(s.word);
    done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_masks_have_nothing_in_common),
        cmocka_unit_test(a_keystream_shared_by_all_encodings_five_rows_apart_is_found),
        cmocka_unit_test(negated_masks_are_found_and_named_as_such),
        cmocka_unit_test(multiplied_masks_are_found_at_any_offset),
        cmocka_unit_test(a_mask_of_another_operand_is_found),
        cmocka_unit_test(a_mask_of_another_prime_is_found),
        cmocka_unit_test(a_mask_that_repeats_is_found),
        cmocka_unit_test(of_two_masks_each_is_found_and_from_one_share_only_their_sum),
        cmocka_unit_test(one_masked_row_may_be_sent_to_two_nodes),
        cmocka_unit_test(a_mask_used_again_far_behind_is_found),
        cmocka_unit_test(a_long_search_can_be_interrupted),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("audit/streams", tests, NULL, NULL);
}
