/*
 * The matrix of windows compared with a loop over pixels, for elements of several sizes and any
 * range of rows; which pixels windows cover; invalid descriptions. Then windows that a multiplier
 * keeps: the products equal those of the matrix, by parts, in both orders, in floats and fixed
 * point.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "matrix/scaling.h"
#include "matrix/windows.h"
#include "sherd/multiplier.h"

static sherd__seeded rng_state;
static sherd__entropy rng;

static int seed(void **state)
{
    (void)state;
    rng = sherd__entropy_seeded(&rng_state, 7);
    return 0;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)sherd__entropy_below(&rng, n);
}

/* Returns element `k` of window row `row`, or 0 outside of the image. */
static double pixel(const sherd_windows *w, size_t wide, size_t count, const double *images,
                    size_t row, size_t k)
{
    size_t c = k % w->channels, x = k / w->channels % w->window, y = k / w->channels / w->window;
    size_t at = row % count;
    long down = (long)(at / wide * w->stride + y) - (long)w->padding;
    long across = (long)(at % wide * w->stride + x) - (long)w->padding;
    if (down < 0 || across < 0 || down >= (long)w->height || across >= (long)w->width) return 0;
    return images[((row / count * w->height + (size_t)down) * w->width + (size_t)across) *
                      w->channels +
                  c];
}

static sherd_windows drawn(void)
{
    sherd_windows w;
    do {
        w = (sherd_windows){
            1 + below(7), 1 + below(7), 1 + below(3), 1 + below(5), 1 + below(4), 0
        };
        w.padding = below(w.window);
    } while (w.window > w.height + 2 * w.padding || w.window > w.width + 2 * w.padding);
    return w;
}

static double *numbers(size_t n)
{
    double *x = malloc((n + 1) * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (double)below(250) + 1;
    return x;
}

static void rows_equal_those_of_a_loop_over_pixels(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 400; i++) {
        sherd_windows of = drawn();
        sherd__windows w;
        assert_true(sherd__windows_fit(&of, &w));
        assert_int_equal(w.wide, (of.width + 2 * of.padding - of.window) / of.stride + 1);
        assert_int_equal(w.count, w.high * w.wide);
        size_t images = 1 + below(3), first = below((uint32_t)(images * w.count));
        size_t rows = below((uint32_t)(images * w.count - first + 1)), each = i & 1 ? 8 : 3;
        double *x = numbers(images * w.image);
        uint8_t *in = calloc(images * w.image + 1, each), *out = malloc(rows * w.row * each + 1);
        for (size_t k = 0; k < images * w.image; k++) {
            if (each == 8) memcpy(in + 8 * k, x + k, 8);
            else in[3 * k + 1] = (uint8_t)x[k];
        }
        out[rows * w.row * each] = 77;
        sherd__windows_rows(&w, in, each, first, rows, out);
        for (size_t k = 0; k < rows * w.row; k++) {
            double want = pixel(&of, w.wide, w.count, x, first + k / w.row, k % w.row), got;
            if (each == 8) memcpy(&got, out + 8 * k, 8);
            else got = out[3 * k + 1];
            if (got != want)
                fail_msg("case %u: number %zu of row %zu is %g, not %g", i, k % w.row,
                         first + k / w.row, got, want);
        }
        assert_int_equal(out[rows * w.row * each], 77);
        free(x);
        free(in);
        free(out);
    }
}

static void windows_cover_the_image_if_every_pixel_is_in_a_window(void **state)
{
    (void)state;
    unsigned yes = 0;
    for (unsigned i = 0; i < 400; i++) {
        sherd_windows of = drawn();
        sherd__windows w;
        assert_true(sherd__windows_fit(&of, &w));
        double *one = calloc(w.image, sizeof *one), *out = malloc(w.count * w.row * sizeof *out);
        bool all = true;
        for (size_t p = 0; p < w.image; p++) {
            bool seen = false;
            one[p] = 1;
            sherd__windows_rows(&w, one, sizeof *one, 0, w.count, out);
            for (size_t k = 0; k < w.count * w.row; k++) seen = seen || out[k] == 1;
            one[p] = 0;
            all = all && seen;
        }
        assert_int_equal(sherd__windows_cover(&w), all);
        yes += all;
        free(one);
        free(out);
    }
    assert_in_range(yes, 50, 350);
}

static void invalid_descriptions_are_refused(void **state)
{
    (void)state;
    static const sherd_windows bad[] = {
        { 0, 3, 1, 1, 1, 0 },
        { 3, 0, 1, 1, 1, 0 },
        { 3, 3, 0, 1, 1, 0 },
        { 3, 3, 1, 0, 1, 0 },
        { 3, 3, 1, 1, 0, 0 },
        { 3, 3, 1, 2, 1, 2 },
        { 3, 9, 1, 4, 1, 0 },
        { 9, 3, 1, 4, 1, 0 },
        { UINT32_MAX, UINT32_MAX, 2, 1, 1, 0 },
        { 1u << 20, 1u << 20, 1, 1u << 12, 1, 0 }, /* all sizes of windows overflow, those of images
                                                    * do not */
        { 1, 1, UINT32_MAX, UINT32_MAX, 1, UINT32_MAX - 1 },
    };
    sherd__windows w = { .count = 5 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (sherd__windows_fit(&bad[i], &w)) fail_msg("case %zu", i);
        assert_int_equal(w.count, 5);
    }
}

/* Kept windows give the products of their matrix. */
static void kept_windows_multiply_like_their_matrix(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        sherd_windows of = drawn();
        sherd__windows w;
        sherd_multiplier m, inner;
        sherd_kept *kept;
        assert_true(sherd__windows_fit(&of, &w));
        size_t part = 1 + below(3), parts = 1 + below(3);
        size_t images = part * parts - below((uint32_t)part);
        size_t first = below((uint32_t)parts) * part, len = images - first, cols = 1 + below(3);
        if (below(2) && first + part < images) len = part;
        assert_int_equal(sherd_multiplier_local(&m, i % 3 ? 17 : 0, NULL), 0);
        inner = m;
        if (i % 3 == 2) assert_int_equal(sherd__scaling_new(&m, inner, NULL), 0);
        double *x = numbers(images * w.image), *laid = malloc(images * w.count * w.row * 8 + 1);
        double *b = numbers((w.row + len * w.count) * cols);
        double *c = malloc((w.row + len * w.count) * cols * 8);
        double *d = malloc((w.row + len * w.count) * cols * 8);
        const sherd_keep_options how = { sizeof how, part, &of, cols, false };
        sherd_view v = sherd_view_c(x, SHERD_F64, images, w.image);
        assert_int_equal(sherd_multiplier_keep(&kept, m, v, &how, NULL), 0);
        sherd__windows_rows(&w, x, sizeof *x, 0, images * w.count, laid);
        memset(x, 0, images * w.image * sizeof *x); /* the values were copied */
        sherd_rows rows = { first * w.count, len * w.count };
        sherd_view a = sherd_view_c(laid + rows.first * w.row, SHERD_F64, rows.count, w.row);
        for (unsigned t = 0; t < 2; t++) {
            size_t height = t ? rows.count : w.row, out = t ? w.row : rows.count;
            sherd_view right = sherd_view_c(b, SHERD_F64, height, cols);
            assert_int_equal(sherd_multiplier_multiply_rows(m, kept, rows, t, right, c, cols, NULL),
                             0);
            assert_int_equal(sherd_multiplier_multiply(m, t ? sherd_view_t(a) : a, right, d, cols,
                                                       NULL),
                             0);
            for (size_t k = 0; k < out * cols; k++) assert_true(c[k] == d[k]);
        }
        rows.count--; /* one window is missing */
        sherd_view fewer = sherd_view_c(b, SHERD_F64, rows.count, cols);
        if (w.count > 1)
            assert_int_equal(sherd_multiplier_multiply_rows(m, kept, rows, true, fewer, c, cols,
                                                            NULL),
                             SHERD_EINVAL);
        sherd_multiplier_release(m, kept);
        sherd_multiplier_free(m);
        free(x);
        free(laid);
        free(b);
        free(c);
        free(d);
    }
}

static void windows_of_rows_that_are_not_images_are_not_kept(void **state)
{
    (void)state;
    sherd_windows of = { 2, 3, 1, 2, 1, 0 };
    double x[12] = { 1 };
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_keep_options how = { sizeof how, 1, &of, 0, false };
    assert_int_equal(sherd_multiplier_local(&m, 17, NULL), 0);
    assert_int_equal(sherd_multiplier_keep(&kept, m, sherd_view_c(x, SHERD_F64, 2, 5), &how, NULL),
                     SHERD_ESHAPE);
    assert_null(kept);
    of.window = 3;
    assert_int_equal(sherd_multiplier_keep(&kept, m, sherd_view_c(x, SHERD_F64, 2, 6), &how, NULL),
                     SHERD_EINVAL);
    of.window = 2;
    double c[4];
    for (size_t n = 1, err = 1; err; n++) { /* every allocation fails in turn */
        sherd_view b = sherd_view_c(x, SHERD_F64, 4, 1);
        sherd__alloc_fail_nth(n);
        int e = sherd_multiplier_keep(&kept, m, sherd_view_c(x, SHERD_F64, 2, 6), &how, NULL);
        if (!e) {
            e = sherd_multiplier_multiply_kept(m, kept, false, b, c, 1, NULL);
            sherd_multiplier_release(m, kept);
        }
        err = sherd__alloc_fail_nth(0) >= n;
        assert_int_equal(e, err ? SHERD_ENOMEM : SHERD_OK);
    }
    sherd_multiplier_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_equal_those_of_a_loop_over_pixels),
        cmocka_unit_test(windows_cover_the_image_if_every_pixel_is_in_a_window),
        cmocka_unit_test(invalid_descriptions_are_refused),
        cmocka_unit_test(kept_windows_multiply_like_their_matrix),
        cmocka_unit_test(windows_of_rows_that_are_not_images_are_not_kept),
    };
    return cmocka_run_group_tests(tests, seed, NULL);
}
