/*
 * Attacks on clear values and on shares: planted data are found, noise gives chance results, and no
 * attack depends on the truth with which it is evaluated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/assign.h"
#include "audit/coded.h"
#include "core/alloc.h"
#include "core/rand.h"
#include "learn/digits.h"
#include "matrix/fixed.h"
#include "matrix/view.h"

#define N 1500u
#define P 400u
#define SIDE 14u
#define K (SIDE * SIDE)
#define SEEN 28u /* columns that one of seven nodes sees */
#define MIDDLE (7 * SIDE + 7)

static uint8_t pixels[N * K], labels[N], pub_pixels[P * K], pub_labels[P];
static sherd__public pub;
static uint32_t cols[SEEN];

/* Digits of half their width and height, each pixel the mean of four: with a quarter of the
 * columns, and as many rows, an attack takes a sixty-fourth of the time, which matters under
 * valgrind. */
static void draw_small(uint64_t first, size_t rows, uint8_t *out, uint8_t *of)
{
    static uint8_t whole[SHERD__DIGIT_PIXELS];
    for (size_t r = 0; r < rows; r++) {
        sherd__digits_draw(7, first + r, 1, whole, of + r);
        for (size_t i = 0; i < K; i++) {
            const uint8_t *p = whole + 2 * (i / SIDE) * 2 * SIDE + 2 * (i % SIDE);
            out[r * K + i] = (uint8_t)((p[0] + p[1] + p[2 * SIDE] + p[2 * SIDE + 1]) / 4);
        }
    }
}

static int draw(void **state)
{
    (void)state;
    draw_small(0, N, pixels, labels);
    draw_small(N, P, pub_pixels, pub_labels);
    sherd_view l = sherd_view_c(pub_labels, SHERD_U8, P, 1);
    for (uint32_t i = 0; i < SEEN; i++) cols[i] = 7 * i + i % 7;
    return sherd__public_make(&pub, sherd_view_c(pub_pixels, SHERD_U8, P, K), &l, P, NULL);
}

static int clear(void **state)
{
    (void)state;
    sherd__public_fini(&pub);
    return 0;
}

static sherd_view all(void)
{
    return sherd_view_c(pixels, SHERD_U8, N, K);
}

static const sherd_audit_finding *find(const sherd__findings *l, const char *test,
                                       const char *statistic)
{
    for (size_t i = 0; i < l->len; i++)
        if (!strcmp(l->list[i].test, test) && !strcmp(l->list[i].statistic, statistic))
            return &l->list[i];
    return NULL;
}

static void attack_columns(sherd__findings *l, sherd_audit_form form, sherd_view a,
                           const uint32_t *of, size_t len, const uint8_t *lab, bool side)
{
    sherd__adversary_view s;
    sherd__truth t;
    sherd__clear_options opt = { .n = a.rows, .test_rows = 400 };
    memset(l, 0, sizeof *l);
    assert_int_equal(sherd__truth_open(&t, a, false, 0, NULL), 0);
    t.labels = lab;
    assert_int_equal(sherd__adversary_view_make(&s, form, a,
                                                &(sherd__node_part){ of, len, 100, 700 }, 1200),
                     0);
    assert_int_equal(sherd__audit_clear(&(sherd__attack){ "node-1", &t, side ? &pub : NULL, l,
                                                          NULL },
                                        &s, &opt, NULL),
                     0);
    assert_int_equal(sherd__findings_judge(l, SHERD__AUDIT_FAMILY), 0);
    sherd__adversary_view_fini(&s);
    sherd__truth_fini(&t);
}

static void attack(sherd__findings *l, sherd_audit_form form, sherd_view a, const uint8_t *lab,
                   bool side)
{
    attack_columns(l, form, a, cols, SEEN, lab, side);
}

static void the_published_permute_reveals_columns_and_labels(void **state)
{
    (void)state;
    sherd__findings l;
    attack(&l, SHERD_AUDIT_PERMUTE_PUBLISHED, all(), labels, true);
    const sherd_audit_finding *f = find(&l, "columns", "with correlations");
    assert_true(f->value >= 0.35 && f->flagged && f->low < f->value && f->value < f->high);
    assert_true(fabs(f->chance - 1.0 / K) < 1e-12);
    assert_true(find(&l, "columns", "own statistics")->value < f->value);
    assert_null(find(&l, "columns", "with correlations and order"));
    f = find(&l, "labels", "5 nearest public rows");
    assert_true(f->value >= 0.55 && f->flagged);
    size_t of[10] = { 0 }, most = 0; /* the 400 tested columns are spread over the 1200 that are
                                      * kept */
    for (size_t r = 0; r < 1200; r += 3) of[labels[r]]++;
    for (unsigned c = 0; c < 10; c++) most = of[c] > most ? of[c] : most;
    assert_true(fabs(f->chance - (double)most / 400) < 1e-9);
    f = find(&l, "rebuilding", "R2, linear");
    assert_true(f->value > 0.3 && f->flagged && fabs(f->chance) < 0.05);
    f = find(&l, "verbatim", "fraction of the entries of A");
    assert_true(fabs(f->value - (double)SEEN / K) < 1e-12 && f->flagged);
    f = find(&l, "zero mask", "F1");
    assert_true(f->value == 1 && f->chance < 0.95 && f->flagged);
    sherd__findings_fini(&l);
}

static void visible_order_of_columns_helps_the_attack(void **state)
{
    (void)state;
    sherd__findings l;
    uint32_t more[2 * SEEN]; /* as many as a node of 3 or 4 sees: one column less has little
                              * effect */
    for (uint32_t i = 0; i < 2 * SEEN; i++) more[i] = 7 * i / 2 + i % 3;
    attack_columns(&l, SHERD_AUDIT_PERMUTE, all(), more, 2 * SEEN, labels, true);
    const sherd_audit_finding *f = find(&l, "columns", "with correlations and order");
    assert_true(f->value > find(&l, "columns", "with correlations")->value);
    sherd__findings_fini(&l);
}

/* With --group 1 there are no rows to compare: no finding can concern rows, and only the order
 * helps. */
static void single_columns_reveal_statistics_only(void **state)
{
    (void)state;
    sherd__findings l;
    attack(&l, SHERD_AUDIT_PERMUTE_SINGLE, all(), labels, true);
    assert_true(find(&l, "columns", "own statistics")->flagged);
    assert_null(find(&l, "columns", "with correlations"));
    assert_null(find(&l, "labels", "linear"));
    assert_null(find(&l, "rebuilding", "R2, linear"));
    assert_true(find(&l, "verbatim", "fraction of the entries of A")->value < (double)SEEN / K / 2);
    sherd__findings_fini(&l);
}

static void plain_reveals_whole_rows(void **state)
{
    (void)state;
    sherd__findings l;
    attack(&l, SHERD_AUDIT_PLAIN, all(), labels, true);
    assert_true(find(&l, "columns", "with correlations and order")->value > 0.5);
    assert_true(fabs(find(&l, "verbatim", "fraction of the entries of A")->value - 700.0 / N) <
                1e-9);
    assert_true(find(&l, "labels", "5 nearest public rows")->value > 0.8);
    sherd__findings_fini(&l);
}

/* Values unrelated to the public data give results at chance, which are not flagged. */
static void attacks_on_noise_give_chance_results(void **state)
{
    (void)state;
    static uint8_t noise[N * K], any[N];
    sherd__seeded seed;
    sherd__entropy e = sherd__entropy_seeded(&seed, 3);
    e.fill(e.ctx, noise, sizeof noise);
    for (size_t i = 0; i < N; i++) any[i] = (uint8_t)sherd__entropy_below(&e, 10);
    sherd__findings l;
    attack(&l, SHERD_AUDIT_PERMUTE_PUBLISHED, sherd_view_c(noise, SHERD_U8, N, K), any, true);
    for (size_t i = 0; i < l.len; i++)
        if (strcmp(l.list[i].test, "verbatim") && strcmp(l.list[i].test, "zero mask") &&
            l.list[i].flagged)
            fail_msg("%s %s: %s", l.list[i].test, l.list[i].statistic, l.list[i].sentence);
    assert_true(find(&l, "columns", "with correlations")->value < 0.05);
    assert_true(find(&l, "labels", "linear")->value < 0.25);
    assert_true(find(&l, "rebuilding", "R2, linear")->value < 0.05);
    sherd__findings_fini(&l);
}

/* Random labels are guessed at chance by every attack: an attack has no access to the labels. */
static void random_labels_are_not_recovered(void **state)
{
    (void)state;
    static uint8_t any[N];
    sherd__seeded seed;
    sherd__entropy e = sherd__entropy_seeded(&seed, 4);
    for (size_t i = 0; i < N; i++) any[i] = (uint8_t)sherd__entropy_below(&e, 10);
    sherd__findings l;
    attack(&l, SHERD_AUDIT_PERMUTE, all(), any, true);
    assert_false(find(&l, "labels", "linear")->flagged);
    assert_false(find(&l, "labels", "5 nearest public rows")->flagged);
    assert_true(find(&l, "columns", "with correlations")->flagged);
    sherd__findings_fini(&l);
}

static void without_side_information_only_verbatim_entries_are_reported(void **state)
{
    (void)state;
    sherd__findings l;
    attack(&l, SHERD_AUDIT_PERMUTE, all(), labels, false);
    assert_int_equal(l.len, 2);
    assert_non_null(find(&l, "verbatim", "fraction of the entries of A"));
    sherd__findings_fini(&l);
}

static void public_data_with_other_columns_are_refused(void **state)
{
    (void)state;
    sherd__findings l = { 0 };
    sherd__adversary_view s;
    sherd__truth t;
    sherd__clear_options opt = { .n = N };
    sherd_view part = sherd_view_sub(all(), 0, N, 0, K - 21);
    assert_int_equal(sherd__truth_open(&t, part, false, 0, NULL), 0);
    assert_int_equal(sherd__adversary_view_make(&s, SHERD_AUDIT_PERMUTE, part,
                                                &(sherd__node_part){ cols, 12, 0, N }, N),
                     0);
    assert_int_equal(sherd__audit_clear(&(sherd__attack){ "x", &t, &pub, &l, NULL }, &s, &opt,
                                        NULL),
                     SHERD_ESHAPE);
    sherd__adversary_view_fini(&s);
    sherd__truth_fini(&t);
    sherd__findings_fini(&l);
}

/* --- truth ------------------------------------------------------------------------------------ */

static void the_truth_identifies_columns_in_any_order_and_their_rows(void **state)
{
    (void)state;
    sherd__truth t;
    sherd__adversary_view s;
    uint32_t col[SEEN], alike[SEEN], row[1200];
    const uint32_t mixed[5] = { MIDDLE, 21, MIDDLE - 1, 0, MIDDLE + 3 };
    assert_int_equal(sherd__truth_open(&t, all(), false, 0, NULL), 0);
    assert_int_equal(sherd__adversary_view_make(&s, SHERD_AUDIT_PERMUTE_PUBLISHED, all(),
                                                &(sherd__node_part){ mixed, 5, 0, N }, 1200),
                     0);
    sherd__truth_columns(&t, &s.sheaves[0], col, alike);
    for (unsigned j = 0; j < 5; j++) {
        assert_int_equal(t.first[mixed[j]], col[j]);
        assert_true(alike[j] >= 1);
        if (alike[j] == 1) assert_int_equal(col[j], mixed[j]);
    }
    assert_true(alike[3] > 1); /* a corner pixel: empty, like many others */
    assert_int_equal(sherd__truth_rows(&t, &s.sheaves[0], col, alike, row), 0);
    for (size_t r = 0; r < 1200; r++) {
        assert_true(row[r] < N);
        for (unsigned j = 0; j < 5; j++)
            assert_true(pixels[row[r] * K + mixed[j]] == s.sheaves[0].values[r * 5 + j]);
    }
    s.sheaves[0].keys[0].sum++; /* a column that A does not have */
    sherd__truth_columns(&t, &s.sheaves[0], col, alike);
    assert_true(col[0] == SHERD__TRUTH_NONE && alike[0] == 0);
    sherd__adversary_view_fini(&s);
    sherd__truth_fini(&t);
}

/* A node that took over a slot in the middle, and one whose record was truncated. */
static void the_truth_identifies_columns_that_were_seen_in_part(void **state)
{
    (void)state;
    sherd__truth t;
    sherd__adversary_view s, two;
    uint32_t col[SEEN], alike[SEEN], row[N];
    sherd__findings l = { 0 };
    sherd__clear_options opt = { .n = N };
    sherd_view part = sherd_view_sub(all(), 333, 500, 0, K);
    assert_int_equal(sherd__truth_open(&t, all(), false, 0, NULL), 0);
    assert_int_equal(sherd__adversary_view_make(&s, SHERD_AUDIT_PERMUTE, part,
                                                &(sherd__node_part){ cols, SEEN, 0, 500 }, 400),
                     0);
    sherd__truth_columns(&t, &s.sheaves[0], col, alike);
    assert_int_equal(sherd__truth_rows(&t, &s.sheaves[0], col, alike, row), 0);
    for (size_t r = 0; r < 400; r++) assert_int_equal(row[r], 333 + r);
    for (unsigned j = 0; j < SEEN; j++) {
        assert_true(alike[j] >= 1 && col[j] != SHERD__TRUTH_NONE);
        if (alike[j] == 1) assert_int_equal(col[j], cols[j]);
    }
    assert_int_equal(sherd__audit_clear(&(sherd__attack){ "x", &t, NULL, &l, NULL }, &s, &opt,
                                        NULL),
                     0);
    const sherd_audit_finding *f = find(&l, "verbatim", "fraction of the entries of A");
    assert_true(fabs(f->value - SEEN * 500.0 / (N * K)) < 1e-9);
    sherd__findings_fini(&l);
    /* together with a sheaf of its own */
    const sherd__adversary_view *parts[2] = { &two, &s };
    sherd__adversary_view joined;
    assert_int_equal(sherd__adversary_view_make(&two, SHERD_AUDIT_PERMUTE, all(),
                                                &(sherd__node_part){ cols, SEEN - 1, 0, N }, 400),
                     0);
    s.sheaves[0].keys[0].sum++; /* the narrower one */
    assert_int_equal(sherd__adversary_view_join(&joined, parts, 2, K), 0);
    assert_int_equal(joined.len, 2);
    memset(&l, 0, sizeof l);
    assert_int_equal(sherd__audit_clear(&(sherd__attack){ "x", &t, NULL, &l, NULL }, &joined, &opt,
                                        NULL),
                     0);
    assert_true(find(&l, "verbatim", "fraction of the entries of A")->value > (SEEN - 1.0) / K);
    sherd__findings_fini(&l);
    /* not in A */
    for (size_t i = 0; i < 400 * SEEN; i++) s.sheaves[0].values[i] = (double)(i % 97);
    sherd__truth_columns(&t, &s.sheaves[0], col, alike);
    s.sheaves[0].cols = SEEN;
    for (unsigned j = 0; j < SEEN; j++) col[j] = SHERD__TRUTH_NONE;
    assert_int_equal(sherd__truth_rows(&t, &s.sheaves[0], col, alike, row), 0);
    for (size_t r = 0; r < 400; r++) assert_true(row[r] == SHERD__TRUTH_NONE);
    sherd__adversary_view_fini(&joined);
    sherd__adversary_view_fini(&two);
    sherd__adversary_view_fini(&s);
    sherd__truth_fini(&t);
}

static void floats_are_compared_in_the_form_that_was_sent(void **state)
{
    (void)state;
    double x[40 * 6], fixed[40 * 6];
    sherd__seeded seed;
    sherd__entropy e = sherd__entropy_seeded(&seed, 8);
    for (size_t i = 0; i < 240; i++) x[i] = (double)(int64_t)sherd__entropy_u64(&e) * 0x1p-66;
    sherd_view a = sherd_view_c(x, SHERD_F64, 40, 6);
    sherd__fixed f;
    sherd__truth t;
    sherd__adversary_view s;
    uint32_t col[6], alike[6];
    const uint32_t three[3] = { 1, 4, 5 };
    assert_int_equal(sherd__fixed_choose(a, 17, "A", &f, NULL), 0);
    sherd__fixed_dense(&f, a, fixed, 6);
    assert_int_equal(sherd__adversary_view_make(&s, SHERD_AUDIT_PERMUTE,
                                                sherd_view_c(fixed, SHERD_F64, 40, 6),
                                                &(sherd__node_part){ three, 3, 0, 40 }, 40),
                     0);
    assert_int_equal(sherd__truth_open(&t, a, true, s.largest, NULL), 0);
    sherd__truth_columns(&t, &s.sheaves[0], col, alike);
    for (unsigned j = 0; j < 3; j++) assert_int_equal(col[j], three[j]);
    sherd__truth_fini(&t);
    sherd__adversary_view_fini(&s);
}

/* --- pooling ---------------------------------------------------------------------------------- */

static void aligned_sheaves_are_joined_side_by_side(void **state)
{
    (void)state;
    sherd__adversary_view a, b, c, j;
    const sherd__adversary_view *parts[3] = { &a, &b, &c };
    static uint8_t mixed[N * K]; /* the same rows in another order */
    for (size_t r = 0; r < N; r++) memcpy(mixed + r * K, pixels + (r * 7 + 5) % N * K, K);
    assert_int_equal(sherd__adversary_view_make(&a, SHERD_AUDIT_PERMUTE, all(),
                                                &(sherd__node_part){ cols, 14, 0, N }, 800),
                     0);
    assert_int_equal(sherd__adversary_view_make(&b, SHERD_AUDIT_PERMUTE, all(),
                                                &(sherd__node_part){ cols + 10, 14, 0, N }, 800),
                     0);
    assert_int_equal(sherd__adversary_view_make(&c, SHERD_AUDIT_PERMUTE,
                                                sherd_view_c(mixed, SHERD_U8, N, K),
                                                &(sherd__node_part){ cols + 24, 4, 0, N }, 800),
                     0);
    assert_int_equal(sherd__adversary_view_join(&j, parts, 3, K), 0);
    assert_int_equal(j.len, 2); /* shuffled sheaves are not joined */
    size_t twice = 0;           /* four columns occur twice; empty ones cannot be identified */
    for (size_t i = 10; i < 14; i++) twice += a.sheaves[0].keys[i].nonzeros > 0;
    assert_int_equal(j.sheaves[0].cols, 28 - twice);
    assert_int_equal(j.cols, 32 - twice);
    assert_false(j.ordered);
    for (size_t r = 0; r < 800; r++)
        assert_true(j.sheaves[0].values[r * j.sheaves[0].cols + 7] ==
                    a.sheaves[0].values[r * 14 + 7]);
    sherd__adversary_view_fini(&j);
    sherd__adversary_view_fini(&a);
    sherd__adversary_view_fini(&b);
    sherd__adversary_view_fini(&c);
}

static void row_ranges_of_plain_are_stacked(void **state)
{
    (void)state;
    sherd__adversary_view a, b, j;
    const sherd__adversary_view *parts[2] = { &a, &b };
    assert_int_equal(sherd__adversary_view_make(&a, SHERD_AUDIT_PLAIN, all(),
                                                &(sherd__node_part){ NULL, 0, 0, 300 }, N),
                     0);
    assert_int_equal(sherd__adversary_view_make(&b, SHERD_AUDIT_PLAIN, all(),
                                                &(sherd__node_part){ NULL, 0, 300, 200 }, N),
                     0);
    assert_int_equal(sherd__adversary_view_join(&j, parts, 2, K), 0);
    assert_true(j.len == 1 && j.cols == K && j.ordered && j.sheaves[0].rows == 500);
    assert_true(j.sheaves[0].values[499 * K + MIDDLE] == pixels[499 * K + MIDDLE]);
    sherd__adversary_view_fini(&j);
    sherd__adversary_view_fini(&a);
    sherd__adversary_view_fini(&b);
}

/* --- shares ----------------------------------------------------------------------------------- */

/* Attacks one share of a code of one block, hidden by a mask or not: modulo a prime of 23 bits, or
 * modulo primes below 256, of which none holds a number that was coded. g receives the pictures; it
 * may be NULL. */
static void attack_share(sherd__findings *l, bool hidden, bool bytes, sherd__gallery *g)
{
    static uint32_t share[4][N * K];
    const uint32_t *index[4] = { share[0], share[1], share[2], share[3] };
    const sherd__seen_code wide = {
        .blocks = 1, .masks = 1, .shares = 1, .primes_len = 1, .primes = { 5931641 }
    };
    const sherd__seen_code small = {
        .blocks = 1, .masks = 1, .shares = 1, .primes_len = 4, .primes = { 251, 241, 239, 233 }
    };
    const sherd__seen_code *code = bytes ? &small : &wide;
    sherd__seen seen = { .name = "A", .code = code, .rows = N, .cols = K, .residues = index };
    sherd__clear_options opt = { .n = N, .test_rows = 300 };
    const uint32_t scale = bytes ? 256 : 1;
    sherd__seeded seed;
    sherd__entropy e = sherd__entropy_seeded(&seed, 6);
    sherd__truth t;
    for (uint32_t q = 0; q < code->primes_len; q++)
        for (size_t i = 0; i < N * K; i++) {
            const uint32_t p = code->primes[q];
            uint64_t mask = hidden ? sherd__entropy_u64(&e) % p : 0;
            share[q][i] = (uint32_t)((mask + pixels[i] * scale) % p);
        }
    memset(l, 0, sizeof *l);
    assert_int_equal(sherd__truth_open_scaled(&t, all(), NULL, 0, 255 * scale, NULL), 0);
    t.labels = labels;
    assert_int_equal(sherd__audit_coded(&(sherd__attack){ "node-1", &t, &pub, l, g }, &seen, 0,
                                        &opt, NULL),
                     0);
    assert_int_equal(sherd__findings_judge(l, SHERD__AUDIT_FAMILY), 0);
    sherd__truth_fini(&t);
}

static void reveals_nothing(bool bytes)
{
    sherd__findings l;
    attack_share(&l, true, bytes, NULL);
    assert_in_range(l.len, 8, 8);
    for (size_t i = 0; i < l.len; i++) {
        if (l.list[i].flagged) fail_msg("%s", l.list[i].sentence);
        assert_true(isfinite(l.list[i].chance));
    }
    sherd__findings_fini(&l);
}

static void a_share_reveals_nothing(void **state)
{
    (void)state;
    reveals_nothing(false);
    reveals_nothing(true);
}

/* A has columns of zeros, which are equal; those of the share are not. */
static void draws_noise_in_every_column(bool bytes)
{
    sherd__findings l;
    sherd__gallery g = { 0 };
    attack_share(&l, true, bytes, &g);
    const sherd_audit_picture *truth = &g.picture[0], *sent = &g.picture[1];
    assert_true(g.len == SHERD__GALLERY && truth->rows == 10 && truth->cols == K);
    size_t blank = 0, all = 0;
    for (size_t c = 0; c < K; c++) {
        unsigned sum = 0, ink = 0;
        for (size_t r = 0; r < sent->rows; r++) {
            sum += sent->pixels[r * K + c];
            ink += truth->pixels[r * K + c];
        }
        blank += ink == 0;
        all += sum;
        assert_in_range(sum, 150, 2400); /* ten bytes with the mean 127 */
    }
    assert_true(blank > 10);
    assert_in_range(all / (10 * K), 120, 135);
    sherd__gallery_fini(&g);
    sherd__findings_fini(&l);
}

static void the_picture_of_a_share_is_noise_in_every_column(void **state)
{
    (void)state;
    draws_noise_in_every_column(false);
    draws_noise_in_every_column(true);
}

static void is_flagged_without_a_mask(bool bytes)
{
    sherd__findings l;
    attack_share(&l, false, bytes, NULL);
    const sherd_audit_finding *own = find(&l, "verbatim", "fraction of the entries of A");
    assert_true(own->flagged && own->value == 1 && own->chance < 1e-6);
    assert_true(find(&l, "zero mask", "F1")->flagged);
    assert_true(find(&l, "columns", "with correlations")->flagged);
    assert_true(find(&l, "labels", "5 nearest public rows")->flagged);
    assert_true(find(&l, "rebuilding", "R2, linear")->flagged);
    sherd__findings_fini(&l);
}

static void a_share_without_a_mask_is_flagged(void **state)
{
    (void)state;
    is_flagged_without_a_mask(false);
    is_flagged_without_a_mask(true);
}

/* --- inference -------------------------------------------------------------------------------- */

static void linear_equations_are_solved(void **state)
{
    (void)state;
    double s[9] = { 4, 2, 1, 2, 5, 3, 1, 3, 6 }, w[6] = { 1, -2, 0, 3, 2, 1 }, r[6] = { 0 };
    for (unsigned i = 0; i < 3; i++)
        for (unsigned c = 0; c < 2; c++)
            for (unsigned q = 0; q < 3; q++) r[i * 2 + c] += s[i * 3 + q] * w[q * 2 + c];
    assert_int_equal(sherd__cholesky_solve(s, 3, r, 2), 0);
    for (unsigned i = 0; i < 6; i++) assert_true(fabs(r[i] - w[i]) < 1e-12);
    double bad[4] = { 1, 2, 2, 1 };
    assert_int_equal(sherd__cholesky_solve(bad, 2, r, 1), SHERD_ERANGE);
}

static void invalid_labels_are_refused(void **state)
{
    (void)state;
    sherd__public p;
    double wrong[4] = { 1, 2, 0.5, 3 };
    sherd_view data = sherd_view_c(pub_pixels, SHERD_U8, 4, K),
               l = sherd_view_c(wrong, SHERD_F64, 4, 1);
    assert_int_equal(sherd__public_make(&p, data, &l, 100, NULL), SHERD_EFORMAT);
    l = sherd_view_c(wrong, SHERD_F64, 3, 1);
    assert_int_equal(sherd__public_make(&p, data, &l, 100, NULL), SHERD_ESHAPE);
    assert_int_equal(sherd__public_make(&p, sherd_view_c(pub_pixels, SHERD_U8, 1, K), NULL, 100,
                                        NULL),
                     SHERD_EINVAL);
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    sherd_view a = sherd_view_sub(all(), 0, 60, 70, 30),
               p = sherd_view_c(pub_pixels, SHERD_U8, 50, 30);
    sherd_view lp = sherd_view_c(pub_labels, SHERD_U8, 50, 1);
    const uint32_t some[6] = { 1, 4, 9, 14, 20, 28 };
    for (size_t n = 1; n < 500; n++) {
        sherd__truth t = { 0 };
        sherd__public q = { 0 };
        sherd__adversary_view s = { 0 };
        sherd__findings l = { 0 };
        sherd__gallery g = { 0 };
        sherd__clear_options opt = { .n = 60 };
        sherd__alloc_fail_nth(n);
        int err = sherd__public_make(&q, p, &lp, 50, NULL);
        if (!err) err = sherd__truth_open(&t, a, false, 0, NULL);
        t.labels = labels;
        if (!err)
            err = sherd__adversary_view_make(&s, SHERD_AUDIT_PERMUTE, a,
                                             &(sherd__node_part){ some, 6, 0, 60 }, 60);
        if (!err) err = sherd__audit_clear(&(sherd__attack){ "x", &t, &q, &l, &g }, &s, &opt, NULL);
        bool reached = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(err, reached ? SHERD_ENOMEM : 0);
        sherd__gallery_fini(&g);
        sherd__findings_fini(&l);
        sherd__adversary_view_fini(&s);
        sherd__truth_fini(&t);
        sherd__public_fini(&q);
        if (!reached) return;
    }
    fail();
}

/* The largest value of the data is in a row that was not coded. */
static void the_scale_is_that_of_the_rows_that_were_coded(void **state)
{
    (void)state;
    static const uint8_t a[3][2] = { { 255, 1 }, { 2, 241 }, { 7, 0 } };
    static const uint32_t rows[2] = { 2, 1 };
    const sherd_view v = sherd_view_c(a, SHERD_U8, 3, 2);
    for (int all = 0; all < 2; all++) {
        sherd__truth t;
        double row[2];
        assert_int_equal(sherd__truth_open_scaled(&t, v, all ? NULL : rows, all ? 0 : 2,
                                                  256 * (all ? 255 : 241), NULL),
                         0);
        sherd__truth_row(&t, 1, row);
        assert_true(row[0] == 512 && row[1] == 241 * 256);
        sherd__truth_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_permute_reveals_columns_and_labels),
        cmocka_unit_test(visible_order_of_columns_helps_the_attack),
        cmocka_unit_test(single_columns_reveal_statistics_only),
        cmocka_unit_test(plain_reveals_whole_rows),
        cmocka_unit_test(attacks_on_noise_give_chance_results),
        cmocka_unit_test(random_labels_are_not_recovered),
        cmocka_unit_test(without_side_information_only_verbatim_entries_are_reported),
        cmocka_unit_test(public_data_with_other_columns_are_refused),
        cmocka_unit_test(the_truth_identifies_columns_in_any_order_and_their_rows),
        cmocka_unit_test(the_truth_identifies_columns_that_were_seen_in_part),
        cmocka_unit_test(floats_are_compared_in_the_form_that_was_sent),
        cmocka_unit_test(aligned_sheaves_are_joined_side_by_side),
        cmocka_unit_test(row_ranges_of_plain_are_stacked),
        cmocka_unit_test(a_share_reveals_nothing),
        cmocka_unit_test(the_picture_of_a_share_is_noise_in_every_column),
        cmocka_unit_test(a_share_without_a_mask_is_flagged),
        cmocka_unit_test(linear_equations_are_solved),
        cmocka_unit_test(invalid_labels_are_refused),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(the_scale_is_that_of_the_rows_that_were_coded),
    };
    return cmocka_run_group_tests(tests, draw, clear);
}
