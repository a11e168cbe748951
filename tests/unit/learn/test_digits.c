#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "learn/digits.h"

#define ROWS 3000u
#define PIXELS SHERD__DIGIT_PIXELS

static uint8_t pixels[ROWS * PIXELS], labels[ROWS];

static int draw_all(void **s)
{
    (void)s;
    sherd__digits_draw(SHERD__DIGITS_SEED, 0, ROWS, pixels, labels);
    return 0;
}

static void a_row_depends_on_seed_and_number_only(void **s)
{
    (void)s;
    static const size_t cuts[] = { 1, 7, 100, ROWS };
    static uint8_t p[ROWS * PIXELS], l[ROWS];
    for (size_t k = 0; k < 4; k++) {
        memset(p, 0xee, sizeof p);
        for (size_t r = ROWS; r > 0;) { /* from the end, so that no state can be carried over */
            size_t n = r < cuts[k] ? r : cuts[k];
            r -= n;
            sherd__digits_draw(SHERD__DIGITS_SEED, r, n, p + r * PIXELS, l + r);
        }
        assert_memory_equal(p, pixels, sizeof p);
        assert_memory_equal(l, labels, sizeof l);
    }
    sherd__digits_draw(SHERD__DIGITS_SEED, 5, 1, p, NULL);
    assert_memory_equal(p, pixels + 5 * PIXELS, PIXELS);
    sherd__digits_draw(SHERD__DIGITS_SEED, 5, 0, NULL, NULL);
}

static void four_fifths_of_the_pixels_are_zero(void **s)
{
    (void)s;
    size_t zeros = 0, strong = 0;
    for (size_t i = 0; i < sizeof pixels; i++) {
        zeros += pixels[i] == 0;
        strong += pixels[i] > 200;
    }
    assert_in_range(zeros * 1000 / sizeof pixels, 760, 850); /* MNIST: 808 */
    assert_in_range(strong * 1000 / sizeof pixels, 50, 150); /* MNIST: 90 */
}

static void all_digits_are_equally_frequent(void **s)
{
    (void)s;
    size_t seen[10] = { 0 };
    for (size_t i = 0; i < ROWS; i++) {
        assert_true(labels[i] < 10);
        seen[labels[i]]++;
    }
    for (int k = 0; k < 10; k++) assert_in_range(seen[k], 230, 370);
}

static void images_and_seeds_differ(void **s)
{
    (void)s;
    static uint8_t other[100 * PIXELS];
    for (size_t i = 0; i < 100; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(pixels + i * PIXELS, pixels + j * PIXELS, PIXELS);
    sherd__digits_draw(SHERD__DIGITS_SEED + 1, 0, 100, other, NULL);
    for (size_t i = 0; i < 100; i++)
        assert_memory_not_equal(pixels + i * PIXELS, other + i * PIXELS, PIXELS);
    sherd__digits_draw(SHERD__DIGITS_SEED, UINT64_MAX - 99, 100, other, NULL);
}

/* Assigning rows to the nearest of ten mean images, computed from other rows, recognises most
 * digits: images of one digit resemble each other. */
static void the_labels_can_be_learnt_from_the_pixels(void **s)
{
    (void)s;
    static double mean[10][PIXELS];
    size_t count[10] = { 0 }, right = 0;
    for (size_t i = 0; i < ROWS / 2; i++) {
        count[labels[i]]++;
        for (size_t p = 0; p < PIXELS; p++) mean[labels[i]][p] += pixels[i * PIXELS + p];
    }
    for (int k = 0; k < 10; k++)
        for (size_t p = 0; p < PIXELS; p++) mean[k][p] /= (double)count[k];
    for (size_t i = ROWS / 2; i < ROWS; i++) {
        double best = 0;
        int who = -1;
        for (int k = 0; k < 10; k++) {
            double d2 = 0;
            for (size_t p = 0; p < PIXELS; p++) {
                double d = pixels[i * PIXELS + p] - mean[k][p];
                d2 += d * d;
            }
            if (who < 0 || d2 < best) best = d2, who = k;
        }
        right += who == labels[i];
    }
    assert_in_range(right * 100 / (ROWS / 2), 75, 99); /* MNIST: 82 */
}

/* FNV-1a over pixels and labels: the test fails if a machine or a change draws other values. */
static void the_bits_are_the_same_on_every_machine(void **s)
{
    (void)s;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof pixels; i++) h = (h ^ pixels[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < sizeof labels; i++) h = (h ^ labels[i]) * UINT64_C(0x100000001b3);
    assert_int_equal(h, UINT64_C(0xe999113f3ea758d1));
}

/* Any seed, so that sanitizers see every stroke: one outside the canvas would be detected. */
static void no_seed_draws_outside_the_canvas(void **s)
{
    (void)s;
    static uint8_t p[PIXELS];
    for (uint64_t seed = 0; seed < 20000; seed++)
        sherd__digits_draw(seed * UINT64_C(0x9e3779b97f4a7c15), seed, 1, p, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_depends_on_seed_and_number_only),
        cmocka_unit_test(four_fifths_of_the_pixels_are_zero),
        cmocka_unit_test(all_digits_are_equally_frequent),
        cmocka_unit_test(images_and_seeds_differ),
        cmocka_unit_test(the_labels_can_be_learnt_from_the_pixels),
        cmocka_unit_test(the_bits_are_the_same_on_every_machine),
        cmocka_unit_test(no_seed_draws_outside_the_canvas),
    };
    return cmocka_run_group_tests_name("learn/digits", tests, draw_all, NULL);
}
